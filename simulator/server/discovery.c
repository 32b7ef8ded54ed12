/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/discovery.c - what is served: aggregated (v2, v2beta1) and the legacy documents
 *
 * kubectl takes a reply as aggregated by its Content-Type; drain and can-i always read the legacy
 * form. All documents come from the types of this server: they change with its
 * CustomResourceDefinitions only.
 * Upstream: apiserver/pkg/endpoints/discovery
 */
#include "simulator/server/docs.h"
#include "simulator/server/req.h"
#include "simulator/server/tree.h"

#include <openssl/evp.h>
#include <stdio.h>

#define JSON_TYPE "application/json"

static const char *const verb_names[] = {"create", "delete", "deletecollection", "get",
                                         "list",   "patch",  "update",           "watch"};

static void add_verbs(struct bh_buf *b, unsigned verbs)
{
    bh_buf_adds(b, "\"verbs\":[");
    for (size_t i = 0; i < BH_ARRAY_LEN(verb_names); i++) {
        if (!(verbs & (1u << i)))
            continue;
        bh_tree_comma(b);
        bh_buf_addf(b, "\"%s\"", verb_names[i]);
    }
    bh_buf_addc(b, ']');
}

static void add_words(struct bh_buf *b, const char *key, const char *csv)
{
    if (!*csv)
        return;
    bh_buf_addf(b, ",\"%s\":[", key);
    for (const char *p = csv; *p;) {
        size_t n = strcspn(p, ",");
        bh_buf_addf(b, "%s\"%.*s\"", p == csv ? "" : ",", (int)n, p);
        p += n + (p[n] == ',');
    }
    bh_buf_addc(b, ']');
}

/* ---- sub-resources --------------------------------------------------------------------------- */

struct sub {
    const char *name, *group, *version, *kind; /* kind NULL = the type's own */
    unsigned verbs;
};
#define GET_PATCH_UPDATE (BH_SIM_GET | BH_SIM_PATCH | BH_SIM_UPDATE)

static size_t subs_of(const struct bh_sim_type *t, struct sub out[8])
{
    size_t n = 0;
    if (t->flags & BH_SIM_GRACEFUL) {
        out[n++] = (struct sub){"binding", "", "v1", "Binding", BH_SIM_CREATE};
        out[n++] = (struct sub){"ephemeralcontainers", "", "v1", NULL, GET_PATCH_UPDATE};
        out[n++] = (struct sub){"eviction", "policy", "v1", "Eviction", BH_SIM_CREATE};
        out[n++] = (struct sub){"log", "", "v1", NULL, BH_SIM_GET};
        out[n++] = (struct sub){"resize", "", "v1", NULL, GET_PATCH_UPDATE};
    }
    if (!*t->group && bh_streq(t->kind, "Namespace"))
        out[n++] = (struct sub){"finalize", "", "v1", NULL, BH_SIM_UPDATE};
    if (!*t->group && bh_streq(t->kind, "ServiceAccount"))
        out[n++] =
            (struct sub){"token", "authentication.k8s.io", "v1", "TokenRequest", BH_SIM_CREATE};
    if (t->flags & BH_SIM_HAS_SCALE)
        out[n++] = (struct sub){"scale", "autoscaling", "v1", "Scale", GET_PATCH_UPDATE};
    if (t->flags & BH_SIM_HAS_STATUS)
        out[n++] = (struct sub){"status", t->group, t->version, NULL, GET_PATCH_UPDATE};
    return n;
}

/* ---- aggregated ------------------------------------------------------------------------------ */

static void aggregated_type(struct bh_buf *b, const struct bh_sim_type *t)
{
    struct sub subs[8];
    size_t n = subs_of(t, subs);
    bh_buf_addf(b,
                "{\"resource\":\"%s\",\"responseKind\":{\"group\":\"%s\",\"version\":\"%s\","
                "\"kind\":\"%s\"},\"scope\":\"%s\",\"singularResource\":\"%s\",",
                t->plural, t->group, t->version, t->kind,
                t->flags & BH_SIM_NAMESPACED ? "Namespaced" : "Cluster", t->singular);
    add_verbs(b, t->verbs);
    add_words(b, "shortNames", t->short_names);
    add_words(b, "categories", t->categories);
    for (size_t i = 0; i < n; i++) {
        bh_buf_addf(b,
                    "%s{\"subresource\":\"%s\",\"responseKind\":{\"group\":\"%s\",\"version\":"
                    "\"%s\",\"kind\":\"%s\"},",
                    i ? "," : ",\"subresources\":[", subs[i].name, subs[i].group, subs[i].version,
                    subs[i].kind ? subs[i].kind : t->kind);
        add_verbs(b, subs[i].verbs);
        bh_buf_addc(b, '}');
    }
    bh_buf_adds(b, n ? "]}" : "}");
}

/* Type i when clients see it, else NULL. */
static const struct bh_sim_type *at(const struct bh_sim *s, size_t i)
{
    const struct bh_sim_type *t = bh_sim_type_at(s, i);
    return t && bh_sim_type_served(s, t) ? t : NULL;
}

/* Whether type i is the first one of its group, or (version) of its group and version. */
static bool first_of(const struct bh_sim *s, size_t i, bool version)
{
    const struct bh_sim_type *t = at(s, i), *o;
    for (size_t k = 0; t && k < i; k++) {
        if ((o = at(s, k)) && bh_streq(o->group, t->group) &&
            (!version || bh_streq(o->version, t->version)))
            return false;
    }
    return t != NULL;
}

static void aggregated_version(const struct bh_sim *s, struct bh_buf *b, size_t i)
{
    const struct bh_sim_type *v = at(s, i);
    bh_buf_addf(b, "{\"version\":\"%s\",\"freshness\":\"Current\",\"resources\":[", v->version);
    for (size_t k = i; k < bh_sim_type_count(s); k++) {
        const struct bh_sim_type *t = at(s, k);
        if (!t || !bh_streq(t->group, v->group) || !bh_streq(t->version, v->version))
            continue;
        bh_tree_comma(b);
        aggregated_type(b, t);
    }
    bh_buf_adds(b, "]}");
}

static void aggregated(const struct bh_sim *s, struct bh_buf *b, bool core, const char *version)
{
    bh_buf_addf(b,
                "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/%s\","
                "\"metadata\":{},\"items\":[",
                version);
    for (size_t i = 0; i < bh_sim_type_count(s); i++) {
        if (!first_of(s, i, false) || (*at(s, i)->group == 0) != core)
            continue;
        bh_tree_comma(b);
        const char *group = at(s, i)->group;
        bh_buf_addf(b, "{\"metadata\":{\"name\":\"%s\",\"creationTimestamp\":null},\"versions\":[",
                    group);
        for (size_t k = i; k < bh_sim_type_count(s); k++) {
            if (!first_of(s, k, true) || !bh_streq(at(s, k)->group, group))
                continue;
            bh_tree_comma(b);
            aggregated_version(s, b, k);
        }
        bh_buf_adds(b, "]}");
    }
    bh_buf_adds(b, "]}\n");
}

/* ---- legacy ---------------------------------------------------------------------------------- */

static void legacy_group(const struct bh_sim *s, struct bh_buf *b, size_t i)
{
    const struct bh_sim_type *g = at(s, i);
    bh_buf_addf(b, "{\"name\":\"%s\",\"versions\":[", g->group);
    for (size_t k = i; k < bh_sim_type_count(s); k++) {
        if (!first_of(s, k, true) || !bh_streq(at(s, k)->group, g->group))
            continue;
        bh_tree_comma(b);
        bh_buf_addf(b, "{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}", g->group,
                    at(s, k)->version, at(s, k)->version);
    }
    bh_buf_addf(b, "],\"preferredVersion\":{\"groupVersion\":\"%s/%s\",\"version\":\"%s\"}",
                g->group, g->version, g->version);
}

/* Clients that migrate storage compare it: it changes with what objects are stored as. */
static void add_storage_hash(struct bh_buf *b, const struct bh_sim_type *t)
{
    const struct bh_sim_type *stored = bh_sim_type_stored(t);
    unsigned char hash[EVP_MAX_MD_SIZE];
    char text[1024];

    if (!bh_sim_type_stores(stored))
        return;
    int n = snprintf(text, sizeof(text), "%s/%s/%s", stored->group, stored->version, stored->kind);
    if (n < 0 || (size_t)n >= sizeof(text) ||
        !EVP_Digest(text, (size_t)n, hash, NULL, EVP_sha256(), NULL))
        return;
    bh_buf_adds(b, ",\"storageVersionHash\":\"");
    bh_tree_add_base64(b, hash, 8);
    bh_buf_addc(b, '"');
}

static void legacy_type(struct bh_buf *b, const struct bh_sim_type *t)
{
    struct sub subs[8];
    size_t n = subs_of(t, subs);
    const char *namespaced = t->flags & BH_SIM_NAMESPACED ? "true" : "false";
    bh_buf_addf(b, "{\"name\":\"%s\",\"singularName\":\"%s\",\"namespaced\":%s,\"kind\":\"%s\",",
                t->plural, t->singular, namespaced, t->kind);
    add_verbs(b, t->verbs);
    add_words(b, "shortNames", t->short_names);
    add_words(b, "categories", t->categories);
    add_storage_hash(b, t);
    bh_buf_addc(b, '}');
    for (size_t i = 0; i < n; i++) {
        bh_buf_addf(b, ",{\"name\":\"%s/%s\",\"singularName\":\"\",\"namespaced\":%s,", t->plural,
                    subs[i].name, namespaced);
        if (subs[i].kind)
            bh_buf_addf(b, "\"group\":\"%s\",\"version\":\"%s\",", subs[i].group, subs[i].version);
        bh_buf_addf(b, "\"kind\":\"%s\",", subs[i].kind ? subs[i].kind : t->kind);
        add_verbs(b, subs[i].verbs);
        bh_buf_addc(b, '}');
    }
}

/* false: no such group and version. */
static bool reply_version(struct bh_sim_req *r, const char *group, const char *version)
{
    struct bh_buf b = {0};
    bool any = false;
    bh_buf_addf(&b,
                "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"%s%s%s\","
                "\"resources\":[",
                group, *group ? "/" : "", version);
    for (size_t i = 0; i < bh_sim_type_count(r->sim); i++) {
        const struct bh_sim_type *t = at(r->sim, i);
        if (!t || !bh_streq(t->group, group) || !bh_streq(t->version, version))
            continue;
        bh_tree_comma(&b);
        any = true;
        legacy_type(&b, t);
    }
    bh_buf_adds(&b, "]}\n");
    if (any)
        bh_sim_reply_raw(r, 200, JSON_TYPE, b.p, b.n);
    bh_buf_fini(&b);
    return any;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *aggregated_version_of(const struct bh_sim_req *r)
{
    const char *accept = bh_http_header(r->http, "Accept");
    if (!accept || !strstr(accept, "as=APIGroupDiscoveryList"))
        return NULL;
    return strstr(accept, "v=v2;") || strstr(accept, "v=v2,") ? "v2" : "v2beta1";
}

static void build(const struct bh_sim *s, const char *key, struct bh_buf *b)
{
    if (bh_streq(key, "/api+v2") || bh_streq(key, "/api+v2beta1"))
        aggregated(s, b, true, key + 5);
    else if (bh_streq(key, "/apis+v2") || bh_streq(key, "/apis+v2beta1"))
        aggregated(s, b, false, key + 6);
    else if (bh_streq(key, "/apis")) {
        bh_buf_adds(b, "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[");
        for (size_t i = 0; i < bh_sim_type_count(s); i++) {
            if (!first_of(s, i, false) || !*at(s, i)->group)
                continue;
            bh_tree_comma(b);
            legacy_group(s, b, i);
            bh_buf_addc(b, '}');
        }
        bh_buf_adds(b, "]}\n");
    } else
        bh_buf_adds(b, "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],"
                       "\"serverAddressByClientCIDRs\":[]}\n");
}

bool bh_sim_do_discovery(struct bh_sim_req *r)
{
    char path[200];
    if (strlen(r->path) >= sizeof(path) || !bh_streq(r->method, "GET"))
        return false;
    int n = snprintf(path, sizeof(path), "%s", r->path);
    if (n > 1 && path[n - 1] == '/') /* these documents answer with and without */
        path[n - 1] = 0;
    r->verb = "discovery";
    if (bh_streq(path, "/api") || bh_streq(path, "/apis")) {
        char key[220], type[128];
        const char *v = aggregated_version_of(r);
        snprintf(key, sizeof(key), "%s%s%s", path, v ? "+" : "", v ? v : "");
        snprintf(type, sizeof(type), JSON_TYPE "%s%s%s", v ? ";g=apidiscovery.k8s.io;v=" : "",
                 v ? v : "", v ? ";as=APIGroupDiscoveryList" : "");
        bh_sim_doc_reply(r, bh_sim_doc(r->sim, key, build), type);
        return true;
    }
    if (bh_streq(path, "/api/v1"))
        return reply_version(r, "", "v1");
    if (strncmp(path, "/apis/", 6) != 0)
        return false;
    char *group = path + 6, *slash = strchr(group, '/');
    if (!slash) {
        struct bh_buf b = {0};
        for (size_t i = 0; i < bh_sim_type_count(r->sim) && !b.n; i++) {
            if (!*group || !at(r->sim, i) || !bh_streq(at(r->sim, i)->group, group))
                continue;
            legacy_group(r->sim, &b, i);
            bh_buf_adds(&b, ",\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"}\n");
        }
        bool found = b.n > 0;
        if (found)
            bh_sim_reply_raw(r, 200, JSON_TYPE, b.p, b.n);
        bh_buf_fini(&b);
        return found;
    }
    if (strchr(slash + 1, '/'))
        return false;
    *slash = 0;
    return *group && reply_version(r, group, slash + 1);
}
