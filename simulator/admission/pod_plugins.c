/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_plugins.c - the admission plugins that change a pod's scheduling
 *
 * Upstream: plugin/pkg/admission/priority, plugin/pkg/admission/defaulttolerationseconds,
 * plugin/pkg/admission/limitranger, pkg/registry/core/pod/strategy.go (match label keys) (v1.36);
 * differences: a requirement that a label key would add is not added twice.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/quantity.h"

#include <inttypes.h>

/* ---- Priority -------------------------------------------------------------------------------- */

static const struct bh_sim_type *classes_type(void)
{
    return BH_SIM_TYPE("scheduling.k8s.io", "v1", "priorityclasses");
}

/* The default class with the lowest value. Stored text is compact, so that a class that is no
 * default is told apart without parsing it: this runs for every pod. */
static struct bh_json *default_class(struct bh_sim_write *w)
{
    struct bh_json *best = NULL;
    struct bh_sim_objs l = {0};

    bh_sim_list(w->sim, classes_type(), NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (!strstr(l.v[i]->json, "\"globalDefault\":true"))
            continue;
        struct bh_json *c = bh_sim_obj_tree(w->arena, l.v[i]);
        if (bh_tree_bool(c, "globalDefault", false) &&
            (!best || bh_tree_i64(c, "value", 0) < bh_tree_i64(best, "value", 0)))
            best = c;
    }
    bh_sim_objs_fini(&l);
    return best;
}

static int check_given(struct bh_sim_write *w, const struct bh_json *spec, int64_t priority,
                       const char *policy)
{
    const char *given = bh_tree_str(spec, "preemptionPolicy");
    int64_t p = bh_tree_i64(spec, "priority", priority);

    if (p != priority)
        return bh_adm_forbid(w,
                             "the integer value of priority (%" PRId64
                             ") must not be provided in pod spec; priority admission "
                             "controller computed %" PRId64 " from the given PriorityClass name",
                             p, priority);
    if (given && policy && !bh_streq(given, policy))
        return bh_adm_forbid(w,
                             "the string value of PreemptionPolicy (%s) must not be provided in "
                             "pod spec; priority admission controller computed %s from the given "
                             "PriorityClass name",
                             given, policy);
    return 0;
}

/* The class that spec names, or the default one, whose name goes into spec; *ret NULL: there is none.
 * 0 or 403. */
static int find_class(struct bh_sim_write *w, struct bh_json *spec, const struct bh_json **ret)
{
    const char *name = bh_tree_str(spec, "priorityClassName");

    if (name && *name) {
        const struct bh_sim_obj *o = bh_sim_get(w->sim, classes_type(), "", name);
        if (!o)
            return bh_adm_forbid(w, "no PriorityClass with name %s was found", name);
        *ret = bh_sim_obj_tree(w->arena, o);
    } else if ((*ret = default_class(w))) {
        bh_json_set_str(w->arena, spec, "priorityClassName", bh_tree_str(*ret, "metadata.name"));
    }
    return 0;
}

int bh_adm_group_priority(struct bh_sim_write *w, struct bh_json *spec)
{
    const struct bh_json *class = NULL;

    if (find_class(w, spec, &class))
        return w->error->code;
    const int64_t priority = bh_tree_i64(class, "value", 0);
    const int64_t given = bh_tree_i64(spec, "priority", priority);
    if (given != priority)
        return bh_adm_forbid(w,
                             "priority set in the pod group (%" PRId64
                             ") must match the priority computed (%" PRId64
                             ") based on the priority class set in the spec",
                             given, priority);
    bh_json_set_i64(w->arena, spec, "priority", priority);
    return 0;
}

int bh_adm_pod_priority(struct bh_sim_write *w, struct bh_json *spec)
{
    const char *policy = "PreemptLowerPriority";
    const struct bh_json *class = NULL;
    int64_t priority = 0;

    if (find_class(w, spec, &class))
        return w->error->code;
    if (class) {
        priority = bh_tree_i64(class, "value", 0);
        policy = bh_tree_str(class, "preemptionPolicy");
    }
    if (check_given(w, spec, priority, policy))
        return w->error->code;
    bh_json_set_i64(w->arena, spec, "priority", priority);
    if (policy)
        bh_json_set_str(w->arena, spec, "preemptionPolicy", policy);
    return 0;
}

/* ---- DefaultTolerationSeconds ---------------------------------------------------------------- */

static bool tolerates(const struct bh_json *list, const char *key)
{
    bh_json_each(t, list) {
        const char *k = bh_tree_str(t, "key"), *e = bh_tree_str(t, "effect");
        if ((!k || !*k || bh_streq(k, key)) && (!e || !*e || bh_streq(e, "NoExecute")))
            return true;
    }
    return false;
}

void bh_adm_pod_tolerations(struct bh_sim_write *w, struct bh_json *spec)
{
    static const char *const keys[] = {"node.kubernetes.io/not-ready",
                                       "node.kubernetes.io/unreachable"};
    struct bh_json *list = bh_tree_dflt_arr(w->arena, spec, "tolerations");

    for (size_t i = 0; list && i < BH_ARRAY_LEN(keys); i++) {
        if (!tolerates(list, keys[i]))
            bh_json_append(w->arena, list,
                           "key: %s, operator: Exists, effect: NoExecute, tolerationSeconds: 300",
                           keys[i]);
    }
}

/* ---- matchLabelKeys, mismatchLabelKeys ------------------------------------------------------- */

static bool has_requirement(const struct bh_json *exprs, const char *key, const char *op,
                            const char *value)
{
    bh_json_each(e, exprs) {
        const struct bh_json *values = bh_tree_arr(e, "values");
        const char *v = values ? bh_json_cstr(values->c.first) : NULL;
        if (bh_tree_is(e, "key", key) && bh_tree_is(e, "operator", op) && values->c.n == 1 && v &&
            bh_streq(v, value))
            return true;
    }
    return false;
}

/* Keys that the pod does not carry are ignored; a missing selector selects nothing and stays so. */
static void merge_keys(struct bh_sim_write *w, struct bh_json *term, const char *keys,
                       const char *op)
{
    struct bh_arena *a = w->arena;
    struct bh_json *sel = bh_tree_obj(term, "labelSelector");
    const struct bh_json *list = bh_tree_arr(term, keys);

    if (!sel || !list)
        return;
    bh_json_each(k, list) {
        const char *key = bh_json_cstr(k), *v = key ? bh_tree_label(w->obj, key) : NULL;
        if (!v)
            continue;
        struct bh_json *exprs = bh_tree_dflt_arr(a, sel, "matchExpressions");
        if (exprs && !has_requirement(exprs, key, op, v))
            bh_json_append(a, exprs, "key: %s, operator: %s, values: [%s]", key, op, v);
    }
}

static void merge_terms(struct bh_sim_write *w, const struct bh_json *affinity, const char *which)
{
    const struct bh_json *pa = bh_tree_obj(affinity, which);

    bh_json_each(t, bh_tree_arr(pa, "requiredDuringSchedulingIgnoredDuringExecution")) {
        merge_keys(w, t, "matchLabelKeys", "In");
        merge_keys(w, t, "mismatchLabelKeys", "NotIn");
    }
    bh_json_each(p, bh_tree_arr(pa, "preferredDuringSchedulingIgnoredDuringExecution")) {
        struct bh_json *t = bh_tree_obj(p, "podAffinityTerm");
        merge_keys(w, t, "matchLabelKeys", "In");
        merge_keys(w, t, "mismatchLabelKeys", "NotIn");
    }
}

void bh_adm_pod_label_keys(struct bh_sim_write *w, struct bh_json *spec)
{
    const struct bh_json *affinity = bh_tree_obj(spec, "affinity");

    bh_json_each(c, bh_tree_arr(spec, "topologySpreadConstraints"))
        merge_keys(w, c, "matchLabelKeys", "In");
    merge_terms(w, affinity, "podAffinity");
    merge_terms(w, affinity, "podAntiAffinity");
}

/* ---- LimitRanger ----------------------------------------------------------------------------- */

/* One bound on one amount; kind: "Container", "Pod" or a claim. v < 0: nothing is specified. */
static int check_amount(struct bh_sim_write *w, const char *kind, const struct bh_json *m,
                        bool is_min, bh_nano v)
{
    const char *what = is_min || bh_streq(kind, "PersistentVolumeClaim") ? "request" : "limit";
    struct bh_buf b = {0};
    bh_nano bound;
    int rc = 0;

    if (!bh_adm_parse_quantity(m, &bound))
        return 0;
    if (v < 0)
        return bh_adm_forbid(w, "%simum %s usage per %s is %s.  No %s is specified",
                             is_min ? "min" : "max", m->key.p, kind, m->s.p, what);
    bh_quantity_format(&b, v, m->s.n && m->s.p[m->s.n - 1] == 'i');
    if (is_min ? v < bound : v > bound)
        rc = bh_adm_forbid(w, "%simum %s usage per %s is %s, but %s is %s", is_min ? "min" : "max",
                           m->key.p, kind, m->s.p, what, bh_buf_str(&b));
    bh_buf_fini(&b);
    return rc;
}

/* How far a limit may be above its request. */
static int check_ratio(struct bh_sim_write *w, const char *kind, const struct bh_json *m,
                       bh_nano request, bh_nano limit)
{
    bh_nano bound;

    if (!bh_adm_parse_quantity(m, &bound))
        return 0;
    if (request <= 0 || limit < 0)
        return bh_adm_forbid(w,
                             "%s max limit to request ratio per %s is %s, but no %s is specified",
                             m->key.p, kind, m->s.p, limit < 0 ? "limit" : "request");
    double ratio = (double)limit / (double)request;
    if (ratio * 1e9 > (double)bound)
        return bh_adm_forbid(w,
                             "%s max limit to request ratio per %s is %s, but provided "
                             "ratio is %f",
                             m->key.p, kind, m->s.p, ratio);
    return 0;
}

typedef bh_nano amount_fn(const struct bh_json *of, const char *map, const char *resource);

static bh_nano container_amount(const struct bh_json *c, const char *map, const char *resource)
{
    return bh_adm_container_amount(c, map, resource, -1);
}

static bh_nano pod_amount(const struct bh_json *spec, const char *map, const char *resource)
{
    bh_nano v = bh_adm_containers_sum(spec, map, resource);

    return v > 0 ? v : -1;
}

static int check_bounds(struct bh_sim_write *w, const char *kind, const struct bh_json *item,
                        const struct bh_json *of, amount_fn *amount)
{
    bh_json_each(m, bh_tree_obj(item, "min")) {
        if (check_amount(w, kind, m, true, amount(of, "requests", m->key.p)))
            return w->error->code;
    }
    bh_json_each(m, bh_tree_obj(item, "max")) {
        if (check_amount(w, kind, m, false, amount(of, "limits", m->key.p)))
            return w->error->code;
    }
    bh_json_each(m, bh_tree_obj(item, "maxLimitRequestRatio")) {
        if (check_ratio(w, kind, m, amount(of, "requests", m->key.p),
                        amount(of, "limits", m->key.p)))
            return w->error->code;
    }
    return 0;
}

static void limit_containers(struct bh_sim_write *w, struct bh_json *spec,
                             const struct bh_json *item)
{
    static const char *const lists[] = {"containers", "initContainers"};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(c, bh_tree_arr(spec, lists[i])) {
            struct bh_json *res = bh_tree_obj(c, "resources");
            bh_tree_fill(w->arena, res, "limits", bh_tree_obj(item, "default"));
            bh_tree_fill(w->arena, res, "requests", bh_tree_obj(item, "defaultRequest"));
            if (check_bounds(w, "Container", item, c, container_amount))
                return;
        }
    }
}

int bh_adm_pod_limits(struct bh_sim_write *w, struct bh_json *spec)
{
    const struct bh_sim_type *ranges = BH_SIM_TYPE("", "v1", "limitranges");
    struct bh_sim_objs l = {0};
    if (!bh_sim_count(w->sim, ranges))
        return 0;
    bh_sim_list(w->sim, ranges, bh_tree_str(w->obj, "metadata.namespace"), &l);
    for (size_t i = 0; i < l.n; i++) {
        bh_json_each(item, bh_tree_arr(bh_sim_obj_tree(w->arena, l.v[i]), "spec.limits")) {
            if (w->error->code)
                break;
            if (bh_tree_is(item, "type", "Container"))
                limit_containers(w, spec, item);
            else if (bh_tree_is(item, "type", "Pod"))
                check_bounds(w, "Pod", item, spec, pod_amount);
        }
    }
    bh_sim_objs_fini(&l);
    return w->error->code;
}

void bh_adm_validate_pvc(struct bh_sim_write *w)
{
    const struct bh_json *requests = bh_tree_obj(w->obj, "spec.resources.requests");
    struct bh_sim_objs l = {0};

    if (w->error->n_causes || w->op == BH_SIM_OP_UPDATE_STATUS)
        return;
    bh_sim_list(w->sim, BH_SIM_TYPE("", "v1", "limitranges"),
                bh_tree_str(w->obj, "metadata.namespace"), &l);
    for (size_t i = 0; i < l.n; i++) {
        bh_json_each(item, bh_tree_arr(bh_sim_obj_tree(w->arena, l.v[i]), "spec.limits")) {
            static const char *const bounds[] = {"min", "max"};
            if (!bh_tree_is(item, "type", "PersistentVolumeClaim"))
                continue;
            for (size_t k = 0; k < BH_ARRAY_LEN(bounds) && !w->error->code; k++) {
                const struct bh_json *m = bh_json_get(bh_tree_obj(item, bounds[k]), "storage");
                bh_nano v;
                if (m && bh_adm_parse_quantity(bh_json_get(requests, "storage"), &v))
                    check_amount(w, "PersistentVolumeClaim", m, k == 0, v);
            }
        }
    }
    bh_sim_objs_fini(&l);
}
