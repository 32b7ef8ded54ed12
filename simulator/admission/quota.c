/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/quota.c - ResourceQuota: what a namespace may hold
 *
 * A quota's status.used is kept as the API server keeps it: a creation adds to it or is refused;
 * what goes away is taken off by counting anew (controllers/quota.c). Counted are pods with their
 * requests and limits, claims with their sizes, services by type, and any kind by
 * count/RESOURCE.GROUP.
 * Upstream: apiserver/pkg/admission/plugin/resourcequota, pkg/quota/v1/evaluator/core; differences:
 * a resize is counted afterwards, never refused; devices of claims are not counted.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/quantity.h"

#define USES_MAX 64

struct use {
    const char *name;
    bh_nano v;
};
struct usage {
    struct bh_arena *a;
    struct use u[USES_MAX];
    size_t n;
};

static void add(struct usage *u, const char *name, bh_nano v)
{
    for (size_t i = 0; i < u->n; i++) {
        if (bh_streq(u->u[i].name, name)) {
            u->u[i].v = v > BH_NANO_MAX - u->u[i].v ? BH_NANO_MAX : u->u[i].v + v;
            return;
        }
    }
    if (u->n < USES_MAX)
        u->u[u->n++] = (struct use){name, v};
}

static void add_one(struct usage *u, const char *name)
{
    add(u, name, 1000000000);
}

/* ---- what an object uses --------------------------------------------------------------------- */

static void add_resource(struct usage *u, const struct bh_json *spec, const char *map,
                         const char *name)
{
    bh_nano v = bh_adm_containers_sum(spec, map, name), over;
    const char *full = bh_arena_printf(u->a, "%s.%s", map, name);

    for (size_t i = 0; i < u->n; i++) {
        if (bh_streq(u->u[i].name, full))
            return; /* another container asks for it too: it is in the sum */
    }
    if (bh_adm_parse_quantity(bh_json_get(bh_tree_obj(spec, "overhead"), name), &over))
        v += over;
    add(u, full, v);
    if (bh_streq(map, "requests") && (bh_word_at("cpu memory ephemeral-storage", name) >= 0 ||
                                      strncmp(name, "hugepages-", 10) == 0))
        add(u, name, v);
}

static void pod_usage(struct usage *u, const struct bh_json *pod)
{
    static const char *const lists[] = {"containers", "initContainers"};
    static const char *const maps[] = {"requests", "limits"};
    const struct bh_json *spec = bh_tree_obj(pod, "spec");

    if (bh_tree_is(pod, "status.phase", "Succeeded") || bh_tree_is(pod, "status.phase", "Failed"))
        return;
    add_one(u, "pods");
    for (size_t i = 0; i < 4; i++) {
        bh_json_each(c, bh_tree_arr(spec, lists[i / 2])) {
            bh_json_each(m, bh_json_get(bh_tree_obj(c, "resources"), maps[i % 2]))
                add_resource(u, spec, maps[i % 2], m->key.p);
        }
    }
}

static void claim_usage(struct usage *u, const struct bh_json *pvc)
{
    const char *class = bh_tree_str(pvc, "spec.storageClassName");
    bh_nano v = 0;

    (void)bh_adm_parse_quantity(bh_json_get(bh_tree_obj(pvc, "spec.resources.requests"), "storage"),
                                &v);
    add(u, "requests.storage", v);
    if (!class)
        return;
    add(u, bh_arena_printf(u->a, "%s.storageclass.storage.k8s.io/requests.storage", class), v);
    add_one(u,
            bh_arena_printf(u->a, "%s.storageclass.storage.k8s.io/persistentvolumeclaims", class));
}

static void usage_of(struct usage *u, const struct bh_sim_type *t, const struct bh_json *obj)
{
    add_one(u, bh_arena_printf(u->a, "count/%s%s%s", t->plural, *t->group ? "." : "", t->group));
    if (*t->group)
        return;
    if (bh_streq(t->plural, "pods")) {
        pod_usage(u, obj);
        return;
    }
    add_one(u, t->plural);
    if (bh_streq(t->plural, "persistentvolumeclaims"))
        claim_usage(u, obj);
    else if (bh_streq(t->plural, "services")) {
        bool balanced = bh_tree_is(obj, "spec.type", "LoadBalancer");
        size_t ports = bh_tree_len(bh_tree_arr(obj, "spec.ports"));
        if (balanced)
            add_one(u, "services.loadbalancers");
        if (balanced || bh_tree_is(obj, "spec.type", "NodePort"))
            add(u, "services.nodeports", (bh_nano)ports * 1000000000);
    }
}

/* ---- which objects a quota is about ---------------------------------------------------------- */

/* A term of pod affinity or anti-affinity that names namespaces. */
static bool crosses_namespaces(const struct bh_json *pod)
{
    static const char *const lists[] = {
        "podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "podAffinity.preferredDuringSchedulingIgnoredDuringExecution",
        "podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(e, bh_tree_arr(bh_tree_obj(pod, "spec.affinity"), lists[i])) {
            const struct bh_json *term = i < 2 ? e : bh_tree_obj(e, "podAffinityTerm");
            if (bh_tree_len(bh_tree_arr(term, "namespaces")) ||
                bh_tree_obj(term, "namespaceSelector"))
                return true;
        }
    }
    return false;
}

static bool in_scope(const char *scope, const char *op, const struct bh_json *values,
                     const struct bh_json *pod)
{
    bool best_effort = bh_streq(bh_adm_pod_qos(bh_tree_obj(pod, "spec")), "BestEffort");
    bool ends = bh_tree_has(pod, "spec.activeDeadlineSeconds");
    const char *class = bh_tree_str(pod, "spec.priorityClassName");

    if (bh_streq(scope, "BestEffort"))
        return best_effort;
    if (bh_streq(scope, "NotBestEffort"))
        return !best_effort;
    if (bh_streq(scope, "Terminating"))
        return ends;
    if (bh_streq(scope, "NotTerminating"))
        return !ends;
    if (bh_streq(scope, "CrossNamespacePodAffinity"))
        return crosses_namespaces(pod);
    if (!bh_streq(scope, "PriorityClass"))
        return false;
    if (bh_streq(op, "Exists"))
        return class && *class;
    if (bh_streq(op, "DoesNotExist"))
        return !class || !*class;
    return bh_tree_lists(values, class ? class : "") == bh_streq(op, "In");
}

static bool is_about(const struct bh_json *quota, const struct bh_sim_type *t,
                     const struct bh_json *obj)
{
    const struct bh_json *scopes = bh_tree_arr(quota, "spec.scopes");
    const struct bh_json *terms = bh_tree_arr(quota, "spec.scopeSelector.matchExpressions");

    if (!bh_tree_len(scopes) && !bh_tree_len(terms))
        return true;
    if (*t->group || !bh_streq(t->plural, "pods"))
        return false;
    bh_json_each(s, scopes) {
        if (!bh_json_cstr(s) || !in_scope(bh_json_cstr(s), "Exists", NULL, obj))
            return false;
    }
    bh_json_each(m, terms) {
        if (!in_scope(bh_json_get_text(m, "scopeName"), bh_json_get_text(m, "operator"),
                      bh_json_get_list(m, "values"), obj))
            return false;
    }
    return true;
}

/* ---- counting anew --------------------------------------------------------------------------- */

/* Whether one of the quota's names is about objects of type t. */
static bool counts_type(const struct bh_json *hard, const struct bh_sim_type *t)
{
    char count[300];

    snprintf(count, sizeof(count), "count/%s%s%s", t->plural, *t->group ? "." : "", t->group);
    if (bh_json_get(hard, count))
        return true;
    return !*t->group &&
           (bh_streq(t->plural, "pods") || bh_streq(t->plural, "services") ||
            bh_streq(t->plural, "persistentvolumeclaims") || bh_json_get(hard, t->plural));
}

static bool is_binary(const char *name)
{
    return strstr(name, "memory") || strstr(name, "storage");
}

void bh_adm_quota_count(struct bh_sim *s, struct bh_arena *a, struct bh_json *quota)
{
    const struct bh_json *hard = bh_tree_obj(quota, "spec.hard");
    const char *ns = bh_tree_str(quota, "metadata.namespace");
    struct usage all = {.a = a};

    for (size_t i = 0; i < bh_sim_type_count(s) && ns; i++) {
        const struct bh_sim_type *t = bh_sim_type_at(s, i);
        struct bh_sim_objs l;
        if (!t || !bh_sim_type_stores(t) || !(t->flags & BH_SIM_NAMESPACED) ||
            !counts_type(hard, t) || !bh_sim_count(s, t))
            continue;
        bh_sim_list(s, t, ns, &l);
        for (size_t k = 0; k < l.n; k++) {
            const struct bh_json *o = bh_sim_obj_tree(a, l.v[k]);
            struct usage u = {.a = a};
            if (!is_about(quota, t, o))
                continue;
            usage_of(&u, t, o);
            for (size_t j = 0; j < u.n; j++)
                add(&all, u.u[j].name, u.u[j].v);
        }
        bh_sim_objs_fini(&l);
    }
    struct bh_json *used = bh_json_new(a, BH_JSON_OBJECT);
    bh_json_each(h, hard) {
        bh_nano v = 0;
        for (size_t i = 0; i < all.n; i++)
            v = bh_streq(all.u[i].name, h->key.p) ? all.u[i].v : v;
        bh_tree_set_quantity(a, used, h->key.p, v, is_binary(h->key.p));
    }
    bh_json_add(a, quota, "status: {hard: %p, used: %p}",
                hard ? bh_json_clone(a, hard) : bh_json_new(a, BH_JSON_OBJECT), used);
}

int bh_adm_default_quota(struct bh_sim_write *w)
{
    if (bh_adm_quantities_at(w, w->obj, "spec.hard"))
        return w->error->code;
    if (w->op != BH_SIM_OP_UPDATE_STATUS)
        bh_adm_quota_count(w->sim, w->arena, w->obj);
    return 0;
}

/* ---- at a creation --------------------------------------------------------------------------- */

static int forbidden(struct bh_sim_write *w, const char *text)
{
    bh_sim_error_about(w->error, w->type, w->type->plural,
                       bh_json_get_text(bh_json_get(w->obj, "metadata"), "name"));
    return bh_adm_forbid(w, "%s", text);
}

/* A quota of cpu or memory binds every container to say what it wants of it. */
static int must_specify(struct bh_sim_write *w, const char *quota, const struct bh_json *hard)
{
    static const struct {
        const char *name, *map, *resource;
    } bound[] = {{"cpu", "requests", "cpu"},
                 {"limits.cpu", "limits", "cpu"},
                 {"limits.memory", "limits", "memory"},
                 {"memory", "requests", "memory"},
                 {"requests.cpu", "requests", "cpu"},
                 {"requests.memory", "requests", "memory"}};
    struct bh_buf b = {0};
    int rc = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(bound); i++) {
        bool first = true;
        bh_json_each(c, bh_tree_arr(w->obj, "spec.containers")) {
            const struct bh_json *map = bh_json_get(bh_tree_obj(c, "resources"), bound[i].map);
            if (!bh_json_get(hard, bound[i].name) || bh_json_get(map, bound[i].resource))
                continue;
            if (first)
                bh_buf_addf(&b, "%s%s for: ", b.n ? "; " : "", bound[i].name);
            bh_buf_addf(&b, "%s%s", first ? "" : ",", bh_json_get_text(c, "name"));
            first = false;
        }
    }
    if (b.n)
        rc = forbidden(w,
                       bh_arena_printf(w->arena, "failed quota: %s: must specify %s", quota, b.p));
    bh_buf_fini(&b);
    return rc;
}

static void list_amount(struct bh_buf *b, const char *name, bh_nano v)
{
    bh_buf_addf(b, "%s%s=", b->n ? "," : "", name);
    bh_quantity_format(b, v, is_binary(name));
}

/* Adds u to the tree's status.used; 403 when that is too much. */
static int charge(struct bh_sim_write *w, struct bh_json *quota, const struct usage *u)
{
    const char *name = bh_json_get_text(bh_json_get(quota, "metadata"), "name");
    const struct bh_json *hard = bh_tree_obj(quota, "spec.hard");
    struct bh_json *used =
        bh_json_obj_at(w->arena, bh_json_obj_at(w->arena, quota, "status"), "used");
    struct bh_buf want = {0}, have = {0}, limit = {0};
    int rc = 0;

    for (size_t i = 0; i < u->n; i++) {
        bh_nano max, now = 0;
        if (!bh_adm_parse_quantity(bh_json_get(hard, u->u[i].name), &max))
            continue;
        (void)bh_adm_parse_quantity(bh_json_get(used, u->u[i].name), &now);
        if (u->u[i].v > 0 && now + u->u[i].v > max) {
            list_amount(&want, u->u[i].name, u->u[i].v);
            list_amount(&have, u->u[i].name, now);
            list_amount(&limit, u->u[i].name, max);
        }
        bh_tree_set_quantity(w->arena, used, u->u[i].name, now + u->u[i].v,
                             is_binary(u->u[i].name));
    }
    if (want.n)
        rc = forbidden(
            w, bh_arena_printf(w->arena, "exceeded quota: %s, requested: %s, used: %s, limited: %s",
                               name, want.p, have.p, limit.p));
    bh_buf_fini(&want);
    bh_buf_fini(&have);
    bh_buf_fini(&limit);
    return rc;
}

static bool take_status(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_set(a, obj, "status", bh_json_clone(a, bh_json_get(arg, "status")));
    return true;
}

/* A creation, or an update, which is charged to quotas that were not about the object before. */
int bh_sim_charge(struct bh_sim_write *w, bool dry_run)
{
    const struct bh_sim_type *t = BH_SIM_TYPE("", "v1", "resourcequotas");
    const char *ns = bh_tree_str(w->obj, "metadata.namespace");
    struct bh_json *charged[16];
    struct usage u = {.a = w->arena};
    struct bh_sim_objs l;
    size_t n = 0;

    if (!ns || w->type == t || !bh_sim_count(w->sim, t))
        return 0;
    usage_of(&u, w->type, w->obj);
    bh_sim_list(w->sim, t, ns, &l);
    for (size_t i = 0; i < l.n && !w->error->code && n < BH_ARRAY_LEN(charged); i++) {
        struct bh_json *q = bh_sim_obj_tree(w->arena, l.v[i]);
        if (!is_about(q, w->type, w->obj) || (w->old && is_about(q, w->type, w->old)))
            continue;
        if (!*w->type->group && bh_streq(w->type->plural, "pods") &&
            must_specify(w, l.v[i]->name, bh_tree_obj(q, "spec.hard")))
            break;
        if (!charge(w, q, &u))
            charged[n++] = q;
    }
    bh_sim_objs_fini(&l);
    for (size_t i = 0; i < n && !w->error->code && !dry_run; i++)
        bh_sim_edit(w->sim, t, ns, bh_json_get_text(bh_json_get(charged[i], "metadata"), "name"),
                    NULL, BH_SIM_STATUS, take_status, charged[i], NULL, NULL);
    return w->error->code;
}
