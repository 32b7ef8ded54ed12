/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/openapi.c - what kubectl reads of OpenAPI
 *
 * v3: one document per group and version: the schemas of its kinds (schema/, crd/), and of the
 * paths PATCH operations with their kind and the parameters fieldValidation and dryRun. With it
 * kubectl leaves validation to the server, explains fields, and computes its apply patches from its
 * built-in types. strategic-merge-patch is not listed: kubectl would compute them from the schemas
 * then.
 * v2: the same operations and schemas as protobuf (openapi.v2.Document) for kubectl before 1.27;
 * custom resources have none there.
 * Upstream: kube-openapi/pkg/handler, handler3; kubectl/pkg/util/openapi
 */
#include "simulator/crd/crd.h"
#include "simulator/server/docs.h"
#include "simulator/server/req.h"
#include "simulator/server/tree.h"
#include "simulator/schema/schema.h"

#include <stdio.h>

/* ---- v3 -------------------------------------------------------------------------------------- */

static void type_path(const struct bh_sim_type *t, char *out, size_t n)
{
    snprintf(out, n, "/%s%s%s/%s%s/%s/{name}", *t->group ? "apis" : "api", *t->group ? "/" : "",
             t->group, t->version, t->flags & BH_SIM_NAMESPACED ? "/namespaces/{namespace}" : "",
             t->plural);
}

static void v3_type(struct bh_buf *b, const struct bh_sim_type *t)
{
    static const char *const params[] = {"dryRun", "fieldManager", "fieldValidation", "force"};
    char path[600];
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

/* Type i when it has a document, else NULL. */
static const struct bh_sim_type *at(const struct bh_sim *s, size_t i)
{
    const struct bh_sim_type *t = bh_sim_type_at(s, i);
    return t && bh_sim_type_served(s, t) && (t->verbs & BH_SIM_PATCH) ? t : NULL;
}

/* "/openapi/v3/apis/apps/v1" */
static void v3_path(const struct bh_sim_type *t, char *out, size_t n)
{
    snprintf(out, n, "/openapi/v3/%s%s%s/%s", *t->group ? "apis" : "api", *t->group ? "/" : "",
             t->group, t->version);
}

/* key: "/openapi/v3/apis/apps/v1". Unknown group: empty text. */
static void build_v3(const struct bh_sim *s, const char *key, struct bh_buf *b)
{
    bool any = false;
    struct bh_buf schemas = {0};
    struct bh_map done = {0};
    for (size_t i = 0; i < bh_sim_type_count(s); i++) {
        const struct bh_sim_type *t = at(s, i);
        char mine[400];
        if (!t)
            continue;
        v3_path(t, mine, sizeof(mine));
        if (!bh_streq(mine, key))
            continue;
        if (t->custom) {
            bh_oas_emit_named("meta.v1", "ObjectMeta", &done, &schemas);
            bh_buf_addc(&schemas, ',');
            bh_crd_emit(t, &schemas);
        } else {
            bh_oas_emit(t, &done, &schemas);
        }
        bh_buf_adds(b, any ? ","
                           : "{\"openapi\":\"3.0.0\",\"info\":{\"title\":\"Kubernetes\","
                             "\"version\":\"v1.36.0\"},\"paths\":{");
        any = true;
        v3_type(b, t);
    }
    if (any)
        bh_buf_addf(b, "},\"components\":{\"schemas\":{%s}}}\n", bh_buf_str(&schemas));
    bh_buf_fini(&schemas);
    bh_map_fini(&done);
}

static void reply_v3_index(struct bh_sim_req *r)
{
    struct bh_buf b = {0};
    bh_buf_adds(&b, "{\"paths\":{");
    for (size_t i = 0; i < bh_sim_type_count(r->sim); i++) {
        const struct bh_sim_type *t = at(r->sim, i);
        char path[400];
        bool seen = !t;
        for (size_t k = 0; k < i && !seen; k++) {
            const struct bh_sim_type *o = at(r->sim, k);
            seen = o && bh_streq(o->group, t->group) && bh_streq(o->version, t->version);
        }
        if (seen)
            continue;
        v3_path(t, path, sizeof(path));
        bh_tree_comma(&b);
        bh_buf_addf(&b, "\"%s\":{\"serverRelativeURL\":\"%s?hash=%s\"}",
                    path + strlen("/openapi/v3/"), path, bh_sim_doc(r->sim, path, build_v3)->etag);
    }
    bh_buf_adds(&b, "}}\n");
    bh_sim_reply_raw(r, 200, "application/json", b.p, b.n);
    bh_buf_fini(&b);
}

static bool known_version(const struct bh_sim *s, const char *path)
{
    for (size_t i = 0; i < bh_sim_type_count(s); i++) {
        char mine[400] = "";
        if (at(s, i))
            v3_path(at(s, i), mine, sizeof(mine));
        if (bh_streq(mine, path))
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

/* ---- v2, protobuf ---------------------------------------------------------------------------- */

static void v2_path(const struct bh_sim_type *t, struct bh_buf *paths)
{
    struct bh_buf op = {0}, item = {0}, named = {0};
    char path[600];
    type_path(t, path, sizeof(path));
    /* Operation { 8 parameters, 13 vendor_extension }: ParametersItem{1 parameter{2 non_body{3
     * query{ 1 required, 2 in, 4 name, 6 type}}}}. */
    struct bh_buf a = {0}, b = {0}, c = {0}, d = {0};
    char yaml[500];
    bh_oas_put_str(&a, 2, "query");
    bh_oas_put_str(&a, 4, "dryRun");
    bh_oas_put_str(&a, 6, "string");
    bh_oas_put_msg(&b, 3, &a);  /* NonBodyParameter.query_parameter_sub_schema */
    bh_oas_put_msg(&c, 2, &b);  /* Parameter.non_body_parameter */
    bh_oas_put_msg(&d, 1, &c);  /* ParametersItem.parameter */
    bh_oas_put_msg(&op, 8, &d); /* Operation.parameters */
    snprintf(yaml, sizeof(yaml), "group: \"%s\"\nkind: %s\nversion: %s\n", t->group, t->kind,
             t->version);
    bh_oas_put_extension(&op, 13, "x-kubernetes-group-version-kind", yaml);
    bh_oas_put_msg(&item, 8, &op); /* PathItem.patch */
    bh_oas_put_str(&named, 1, path);
    bh_oas_put_msg(&named, 2, &item);
    bh_oas_put_msg(paths, 2, &named); /* Paths.path: NamedPathItem */
}

static void build_v2(const struct bh_sim *s, const char *key, struct bh_buf *out)
{
    struct bh_buf info = {0}, paths = {0}, definitions = {0};
    struct bh_map done = {0};
    (void)key;
    bh_oas_put_str(out, 1, "2.0");
    bh_oas_put_str(&info, 1, "Kubernetes");
    bh_oas_put_str(&info, 2, "v1.36.0");
    bh_oas_put_msg(out, 2, &info);
    for (size_t i = 0; i < bh_sim_type_count(s); i++) {
        if (!at(s, i))
            continue;
        v2_path(at(s, i), &paths);
        bh_oas_emit_v2(at(s, i), &done, &definitions);
    }
    bh_oas_put_msg(out, 8, &paths);
    bh_oas_put_msg(out, 9, &definitions);
    bh_map_fini(&done);
}

bool bh_sim_do_openapi(struct bh_sim_req *r)
{
    if (!bh_streq(r->method, "GET") || strncmp(r->path, "/openapi/", 9) != 0)
        return false;
    r->verb = "openapi";
    if (bh_streq(r->path, "/openapi/v3")) {
        reply_v3_index(r);
    } else if (known_version(r->sim, r->path)) {
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
