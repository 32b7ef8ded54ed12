/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/openapi.c - the least of OpenAPI that kubectl needs
 *
 * v3: one document per group and version without schemas, only PATCH operations with their kind and
 * the parameters fieldValidation and dryRun. With it kubectl leaves validation to the server, and
 * computes its apply patches from its built-in types. strategic-merge-patch is not listed: kubectl
 * would look for schemas then.
 * v2: the same operations as protobuf (openapi.v2.Document) for older kubectl, which looks there
 * for dryRun; its definitions are empty too.
 * Upstream: kube-openapi/pkg/handler, handler3; kubectl/pkg/util/openapi
 */
#include "simulator/docs.h"
#include "simulator/req.h"

#include <stdio.h>

/* ---- v3
 * ------------------------------------------------------------------------------------------- */

static void type_path(const struct bh_sim_type *t, char *out, size_t n)
{
    snprintf(out, n, "/%s%s%s/%s%s/%s/{name}", *t->group ? "apis" : "api", *t->group ? "/" : "",
             t->group, t->version, t->flags & BH_SIM_NAMESPACED ? "/namespaces/{namespace}" : "",
             t->plural);
}

static void v3_type(struct bh_buf *b, const struct bh_sim_type *t)
{
    static const char *const params[] = {"dryRun", "fieldManager", "fieldValidation", "force"};
    char path[256];
    type_path(t, path, sizeof(path));
    bh_buf_addf(b,
                "\"%s\":{\"patch\":{\"x-kubernetes-action\":\"patch\","
                "\"x-kubernetes-group-version-kind\":{\"group\":\"%s\",\"version\":\"%s\","
                "\"kind\":\"%s\"},\"parameters\":[",
                path, t->group, t->version, t->kind);
    for (size_t i = 0; i < BH_ARRAY_LEN(params); i++)
        bh_buf_addf(b, "%s{\"name\":\"%s\",\"in\":\"query\",\"schema\":{\"type\":\"string\"}}",
                    i ? "," : "", params[i]);
    bh_buf_adds(b, "],\"requestBody\":{\"content\":{\"application/merge-patch+json\":{},"
                   "\"application/json-patch+json\":{},\"application/apply-patch+yaml\":{}}},"
                   "\"responses\":{\"200\":{\"description\":\"OK\"}}}}");
}

static bool same_version(const struct bh_sim_type *a, const struct bh_sim_type *b)
{
    return bh_streq(a->group, b->group) && bh_streq(a->version, b->version);
}

/* key: "/openapi/v3/apis/apps/v1". Unknown group: empty text. */
static void build_v3(const char *key, struct bh_buf *b)
{
    bool any = false;
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        char mine[128];
        snprintf(mine, sizeof(mine), "/openapi/v3/%s%s%s/%s", *t->group ? "apis" : "api",
                 *t->group ? "/" : "", t->group, t->version);
        if (!bh_streq(mine, key) || !(t->verbs & BH_SIM_PATCH))
            continue;
        bh_buf_adds(b, any ? ","
                           : "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Kubernetes\","
                             "\"version\":\"v1.36.0\"},\"paths\":{");
        any = true;
        v3_type(b, t);
    }
    if (any)
        bh_buf_adds(b, "},\"components\":{\"schemas\":{}}}\n");
}

static void reply_v3_index(struct bh_sim_req *r)
{
    struct bh_buf b = {0};
    bool first = true;
    bh_buf_adds(&b, "{\"paths\":{");
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        bool seen = !(t->verbs & BH_SIM_PATCH);
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_version(&bh_sim_types[k], t) && (bh_sim_types[k].verbs & BH_SIM_PATCH);
        if (seen)
            continue;
        char path[128];
        snprintf(path, sizeof(path), "/openapi/v3/%s%s%s/%s", *t->group ? "apis" : "api",
                 *t->group ? "/" : "", t->group, t->version);
        bh_buf_addf(&b, "%s\"%s\":{\"serverRelativeURL\":\"%s?hash=%s\"}", first ? "" : ",",
                    path + strlen("/openapi/v3/"), path, bh_sim_doc(r->sim, path, build_v3)->etag);
        first = false;
    }
    bh_buf_adds(&b, "}}\n");
    bh_sim_reply_raw(r, 200, "application/json", b.p, b.n);
    bh_buf_fini(&b);
}

static bool known_version(const char *path)
{
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        char mine[128];
        snprintf(mine, sizeof(mine), "/openapi/v3/%s%s%s/%s", *t->group ? "apis" : "api",
                 *t->group ? "/" : "", t->group, t->version);
        if (bh_streq(mine, path) && (t->verbs & BH_SIM_PATCH))
            return true;
    }
    return false;
}

static void reply_v3(struct bh_sim_req *r)
{
    const struct bh_sim_doc *d = bh_sim_doc(r->sim, r->path, build_v3);
    const char *hash = bh_http_query(r->http, "hash");
    char text[256];
    if (hash && *hash && !bh_streq(hash, d->etag)) {
        snprintf(text, sizeof(text), "%s?hash=%s", r->path, d->etag);
        bh_http_set_header(r->http, "Location", text);
        bh_sim_reply_raw(r, 301, "text/plain", "", 0);
        return;
    }
    if (hash && *hash) {
        bh_http_set_header(r->http, "Expires", "Fri, 01 Jan 2100 00:00:00 GMT");
        r->immutable = true;
    }
    bh_sim_doc_reply(r, d, "application/json");
}

/* ---- v2, protobuf
 * --------------------------------------------------------------------------------- */

static void put_varint(struct bh_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        bh_buf_addc(b, (char)(v | 0x80));
    bh_buf_addc(b, (char)v);
}

static void put_bytes(struct bh_buf *b, unsigned field, const void *p, size_t n)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, n);
    bh_buf_add(b, p, n);
}

static void put_str(struct bh_buf *b, unsigned field, const char *s)
{
    put_bytes(b, field, s, strlen(s));
}

/* Puts msg into b as field and empties msg. */
static void put_msg(struct bh_buf *b, unsigned field, struct bh_buf *msg)
{
    put_bytes(b, field, msg->p, msg->n);
    bh_buf_reset(msg);
}

/* Operation { 8 parameters, 12 vendor_extension }: ParametersItem{1 parameter{2 non_body{3 query{
 * 1 required, 2 in, 4 name, 6 type}}}}; vendor extension: NamedAny{1 name, 2 Any{2 yaml}}. */
static void v2_operation(const struct bh_sim_type *t, struct bh_buf *op)
{
    struct bh_buf a = {0}, b = {0};
    char yaml[200];
    put_str(&a, 2, "query");
    put_str(&a, 4, "dryRun");
    put_str(&a, 6, "string");
    put_msg(&b, 3, &a); /* NonBodyParameter.query_parameter_sub_schema */
    put_msg(&a, 2, &b); /* Parameter.non_body_parameter */
    put_msg(&b, 1, &a); /* ParametersItem.parameter */
    put_msg(op, 8, &b); /* Operation.parameters */
    snprintf(yaml, sizeof(yaml), "group: \"%s\"\nkind: %s\nversion: %s\n", t->group, t->kind,
             t->version);
    put_str(&a, 2, yaml);
    put_str(&b, 1, "x-kubernetes-group-version-kind");
    put_msg(&b, 2, &a);
    put_msg(op, 13, &b);
    bh_buf_fini(&a);
    bh_buf_fini(&b);
}

static void build_v2(const char *key, struct bh_buf *out)
{
    struct bh_buf a = {0}, b = {0}, paths = {0};
    (void)key;
    put_str(out, 1, "2.0");
    put_str(&a, 1, "Kubernetes");
    put_str(&a, 2, "v1.36.0");
    put_msg(out, 2, &a); /* Info */
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        char path[256];
        if (!(t->verbs & BH_SIM_PATCH))
            continue;
        type_path(t, path, sizeof(path));
        v2_operation(t, &a);
        put_msg(&b, 8, &a); /* PathItem.patch */
        put_str(&a, 1, path);
        put_msg(&a, 2, &b);
        put_msg(&paths, 2, &a); /* Paths.path: NamedPathItem */
    }
    put_msg(out, 8, &paths);
    put_bytes(out, 9, "", 0); /* Definitions */
    bh_buf_fini(&a);
    bh_buf_fini(&b);
    bh_buf_fini(&paths);
}

bool bh_sim_do_openapi(struct bh_sim_req *r)
{
    if (!bh_streq(r->method, "GET"))
        return false;
    r->verb = "openapi";
    if (bh_streq(r->path, "/openapi/v3")) {
        reply_v3_index(r);
    } else if (known_version(r->path)) {
        reply_v3(r);
    } else if (bh_streq(r->path, "/openapi/v2")) {
        const char *accept = bh_http_header(r->http, "Accept");
        static const char json[] = "{\"swagger\":\"2.0\",\"info\":{\"title\":\"Kubernetes\","
                                   "\"version\":\"v1.36.0\"},\"paths\":{}}\n";
        /* The @ of the request's type would not parse as a reply's. */
        if (accept && strstr(accept, "proto-openapi"))
            bh_sim_doc_reply(r, bh_sim_doc(r->sim, "/openapi/v2", build_v2),
                             "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
        else
            bh_sim_reply_raw(r, 200, "application/json", json, sizeof(json) - 1);
    } else {
        return false;
    }
    return true;
}
