/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/route.c - from a request's path and method to its handler
 *
 * Upstream: apiserver/pkg/endpoints/request/requestinfo.go
 */
#include "common/base/opt.h"
#include "simulator/server/req.h"

#include "simulator/server/faults.h"

#define SEGMENTS_MAX 8

static void not_served(struct bh_sim_req *r)
{
    bh_sim_fail(&r->e, 404, "NotFound", "the server could not find the requested resource");
}

static void not_allowed(struct bh_sim_req *r)
{
    bh_sim_fail(&r->e, 405, "MethodNotAllowed",
                "the server does not allow this method on the requested resource");
}

/* Splits path (without its first slash) in place; 0 when it has too many or empty segments. */
static size_t split(char *path, const char *seg[SEGMENTS_MAX])
{
    size_t n = 0;
    while (path && *path) {
        char *p = strsep(&path, "/");
        if (n == SEGMENTS_MAX || !*p)
            return 0;
        seg[n++] = p;
    }
    return n;
}

/* [ns-part] plural [name [sub]] after the group and version. */
static bool locate(struct bh_sim_req *r, const char *group, const char *version,
                   const char *const *seg, size_t n)
{
    size_t i = 0;
    bool own_sub =
        !*group && n == 3 && (bh_streq(seg[2], "status") || bh_streq(seg[2], "finalize"));
    if (n >= 3 && bh_streq(seg[0], "namespaces") && !own_sub) {
        r->ns = seg[1];
        i = 2;
    }
    if (n - i < 1 || n - i > 3)
        return false;
    r->type = bh_sim_find_type(r->sim, group, version, seg[i]);
    r->name = n - i > 1 ? seg[i + 1] : "";
    r->sub = n - i > 2 ? seg[i + 2] : "";
    if (!r->type)
        return false;
    bool namespaced = r->type->flags & BH_SIM_NAMESPACED;
    return namespaced ? (*r->ns || !*r->name) : !*r->ns;
}

static bool sub_exists(const struct bh_sim_type *t, const char *sub)
{
    if (bh_streq(sub, "status"))
        return t->flags & BH_SIM_HAS_STATUS;
    if (bh_streq(sub, "scale"))
        return t->flags & BH_SIM_HAS_SCALE;
    if (bh_streq(sub, "finalize"))
        return !*t->group && bh_streq(t->kind, "Namespace");
    if (bh_streq(sub, "token"))
        return !*t->group && bh_streq(t->kind, "ServiceAccount");
    return (t->flags & BH_SIM_GRACEFUL) &&
           bh_word_at("binding eviction log resize ephemeralcontainers", sub) >= 0;
}

/* What a simulated cluster has not got: containers that run. */
static bool refuse_unreal(struct bh_sim_req *r)
{
    static const struct {
        const char *plural, *sub, *text;
    } unreal[] = {
        {"pods", "exec", "pods are simulated: there is no container to exec"},
        {"pods", "attach", "pods are simulated: there is no container to attach"},
        {"pods", "portforward", "pods are simulated: there is no container to portforward"},
        {"pods", "proxy", "pods are simulated: there is no container to proxy"},
        {"services", "proxy", "pods are simulated: there is nothing behind a service"},
        {"nodes", "proxy", "nodes are simulated: there is no kubelet behind one"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(unreal) && !*r->type->group; i++) {
        if (!bh_streq(r->type->plural, unreal[i].plural) || !bh_streq(r->sub, unreal[i].sub))
            continue;
        bh_sim_fail(&r->e, 501, "NotImplemented", "%s", unreal[i].text);
        return true;
    }
    return false;
}

/* Parts of an object that are read and written as the object is. */
static bool is_part(const char *sub)
{
    return bh_word_at("status resize ephemeralcontainers", sub) >= 0;
}

static void do_subresource(struct bh_sim_req *r)
{
    const char *m = r->method;
    if (bh_streq(r->sub, "scale") && bh_word_at("GET PUT PATCH", m) >= 0) {
        bh_sim_do_scale(r);
    } else if (bh_streq(r->sub, "log") && bh_streq(m, "GET")) {
        bh_sim_do_log(r);
    } else if (bh_streq(r->sub, "token") && bh_streq(m, "POST")) {
        bh_sim_do_token(r);
    } else if (bh_streq(m, "POST") &&
               (bh_streq(r->sub, "binding") || bh_streq(r->sub, "eviction"))) {
        bh_sim_do_post(r);
    } else if (bh_streq(r->sub, "finalize") && bh_streq(m, "PUT")) {
        bh_sim_do_put(r);
    } else if (is_part(r->sub) && bh_streq(m, "GET")) {
        bh_sim_do_get(r);
    } else if (is_part(r->sub) && bh_streq(m, "PUT")) {
        bh_sim_do_put(r);
    } else if (is_part(r->sub) && bh_streq(m, "PATCH")) {
        bh_sim_do_patch(r);
    } else {
        not_allowed(r);
    }
}

static void do_resource(struct bh_sim_req *r)
{
    const char *m = r->method;
    unsigned verbs = r->type->verbs;
    if (bh_streq(m, "GET") && (r->type->flags & BH_SIM_COMPUTED))
        bh_sim_do_metrics(r);
    else if (bh_streq(m, "POST") && (verbs & BH_SIM_CREATE))
        bh_sim_do_post(r);
    else if (bh_streq(m, "GET") && (verbs & BH_SIM_WATCH) && bh_sim_query_bool(r, "watch", false))
        bh_sim_do_watch(r);
    else if (bh_streq(m, "GET") && *r->name && (verbs & BH_SIM_GET))
        bh_sim_do_get(r);
    else if (bh_streq(m, "GET") && !*r->name && (verbs & BH_SIM_LIST))
        bh_sim_do_list(r);
    else if (bh_streq(m, "PUT") && *r->name && (verbs & BH_SIM_UPDATE))
        bh_sim_do_put(r);
    else if (bh_streq(m, "PATCH") && *r->name && (verbs & BH_SIM_PATCH))
        bh_sim_do_patch(r);
    else if (bh_streq(m, "DELETE") && (verbs & BH_SIM_DELETE))
        bh_sim_do_remove(r);
    else
        not_allowed(r);
}

/* Whether the path is that of an object, a kind of objects, or a part of one. */
static bool find_resource(struct bh_sim_req *r)
{
    const char *seg[SEGMENTS_MAX];
    bool core = strncmp(r->path, "/api/", 5) == 0;
    if (!core && strncmp(r->path, "/apis/", 6) != 0)
        return false;
    size_t n = split(bh_arena_strdup(r->a, r->path + 1), seg), head = core ? 2 : 3;
    return n > head && locate(r, core ? "" : seg[1], seg[head - 1], seg + head, n - head);
}

static void do_api(struct bh_sim_req *r)
{
    if (r->sim->faults && bh_sim_fault_before(r)) {
        return;
    } else if (!*r->sub) {
        do_resource(r);
    } else if (sub_exists(r->type, r->sub)) {
        do_subresource(r);
    } else if (!refuse_unreal(r)) {
        not_served(r);
    }
}

/* How long a client would wait at most: whatever it is, it is answered before. */
static bool refuse_timeout(struct bh_sim_req *r)
{
    const char *text = bh_http_query(r->http, "timeout");
    int64_t ns;

    if (!text || !*text || bh_sim_query_bool(r, "watch", false) ||
        bh_parse_duration_ns(text, &ns) == 0)
        return false;
    (void)bh_sim_fail(
        &r->e, 400, "BadRequest",
        "invalid timeout specified in the request URL - time: invalid duration \"%.80s\"", text);
    return true;
}

void bh_sim_route(struct bh_sim_req *r)
{
    if (bh_sim_check_client(r))
        return;
    bool found = find_resource(r);
    if (refuse_timeout(r) || bh_sim_authorize(r))
        return;
    if (bh_console_route(r) || bh_sim_do_misc(r) || bh_sim_do_openapi(r) || bh_sim_do_discovery(r))
        return;
    r->verb = "other";
    if (found)
        do_api(r);
    else
        not_served(r);
}
