/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_resources.c - rules of resource names and quantities
 *
 * Upstream: pkg/apis/core/validation/validation.go validateResourceRequirements, ValidateLimitRange,
 * ValidateResourceQuota; pkg/apis/core/helper (v1.36).
 */
#include "simulator/admission/rules.h"

#include "common/base/map.h"
#include "common/k8s/quantity.h"

#include <stdio.h>

#define NANO ((bh_nano)1000000000)

static bool fails(struct bh_rule_run *r, const struct bh_rule_at *at, const char *kind,
                  const char *value, const char *text)
{
    bh_rule_error(r, at, kind, value, text);
    return false;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char standard[] =
    "cpu memory ephemeral-storage requests.cpu requests.memory requests.ephemeral-storage "
    "limits.cpu "
    "limits.memory limits.ephemeral-storage pods resourcequotas services replicationcontrollers "
    "secrets configmaps persistentvolumeclaims storage requests.storage services.nodeports "
    "services.loadbalancers";
static const char integers[] =
    "pods resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims "
    "services.nodeports services.loadbalancers";

static bool is_in(const char *words, const char *s)
{
    return *s && bh_word_at(words, s) >= 0;
}

static bool is_huge(const char *s)
{
    return strncmp(s, "hugepages-", 10) == 0;
}

static bool is_quota_huge(const char *s)
{
    return is_huge(s) || strncmp(s, "requests.hugepages-", 19) == 0;
}

static bool is_native(const char *s)
{
    return !strchr(s, '/') || strstr(s, "kubernetes.io/");
}

static bool is_extended(struct bh_rule_run *r, const char *s)
{
    return !is_native(s) && strncmp(s, "requests.", 9) != 0 &&
           !bh_name_key(r, bh_rule_printf(r, "requests.%s", s));
}

static bool may_overcommit(const char *s)
{
    return is_native(s) && !is_huge(s);
}

/* Of any kind. */
static bool check_name(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s)
{
    if (!bh_rule_faults(r, at, s, bh_name_key(r, s)))
        return false;
    return strchr(s, '/') || is_in(standard, s) || is_quota_huge(s) ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "must be a standard resource type or fully qualified");
}

static void check_container_name(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s)
{
    check_name(r, at, s);
    if (!strchr(s, '/')) {
        if (!is_in("cpu memory ephemeral-storage", s) && !is_huge(s))
            fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                  "must be a standard resource for containers");
    } else if (!is_native(s) && !is_extended(r, s)) {
        fails(r, at, "Invalid value", bh_rule_quoted(r, s),
              "doesn't follow extended resource name standard");
    }
}

static void check_pod_name(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s)
{
    static const char *const words[] = {"cpu", "hugepages-", "memory"};

    if (check_name(r, at, s) && !is_in("cpu memory", s) && !is_huge(s))
        bh_rule_unsupported(r, at, bh_rule_quoted(r, s), BH_ARRAY_LEN(words), words);
}

static void check_quota_name(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s)
{
    check_name(r, at, s);
    if (!strchr(s, '/') && (!is_in(standard, s) || bh_streq(s, "storage")) && !is_quota_huge(s))
        fails(r, at, "Invalid value", bh_rule_quoted(r, s),
              "must be a standard resource for quota");
}

/* ---- quantities ------------------------------------------------------------------------------ */

static const char *quantity_text(struct bh_rule_run *r, const struct bh_json *v)
{
    struct bh_buf b = {0};

    if (!bh_tree_scalar(&b, v))
        bh_buf_adds(&b, "0");
    const char *s = bh_rule_printf(r, "%s", b.p);
    bh_buf_fini(&b);
    return s;
}

static void check_quantity(struct bh_rule_run *r, const struct bh_rule_at *at, const char *name)
{
    bh_nano q;

    if (!at->v || !bh_adm_parse_quantity(at->v, &q))
        return;
    if (q < 0)
        bh_rule_invalid(r, at, "must be greater than or equal to 0");
    if ((is_in(integers, name) || is_extended(r, name)) && bh_quantity_milli_value(q) % 1000)
        bh_rule_invalid(r, at, "must be an integer");
}

static void check_huge(struct bh_rule_run *r, const struct bh_rule_at *at, const char *name)
{
    bh_nano page, q;

    if (!bh_adm_parse_quantity(at->v, &q))
        return;
    if (!bh_quantity_parse(name + 10, strlen(name + 10), &page) && page > 0 && page % NANO == 0 &&
        bh_quantity_value(q) % (int64_t)(page / NANO) == 0)
        return;
    bh_rule_invalid_text(r, at, quantity_text(r, at->v),
                         bh_rule_printf(r, "%s is not positive integer multiple of %s",
                                        quantity_text(r, at->v), name));
}

/* ---- requests and limits --------------------------------------------------------------------- */

typedef void name_check(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s);
struct seen {
    bool compute, huge;
};

static void check_entry(struct bh_rule_run *r, const struct bh_rule_at *at, name_check *name,
                        struct seen *seen)
{
    name(r, at, at->key);
    check_quantity(r, at, at->key);
    seen->compute |= is_in("cpu memory", at->key);
    seen->huge |= is_huge(at->key);
}

static void check_request(struct bh_rule_run *r, const struct bh_rule_at *requests,
                          const struct bh_rule_at *limits, const struct bh_json *v)
{
    const struct bh_json *limit = bh_json_get(limits->v, v->key.p);
    bool over = may_overcommit(v->key.p);
    bh_nano have, max;

    if (!limit) {
        if (!over)
            fails(r, limits, "Required value", NULL,
                  "Limit must be set for non overcommitable resources");
        return;
    }
    if (!bh_adm_parse_quantity(v, &have) || !bh_adm_parse_quantity(limit, &max) ||
        (over ? have <= max : have == max))
        return;
    bh_rule_invalid_text(r, requests, quantity_text(r, v),
                         bh_rule_printf(r, "must be %s %s limit of %s",
                                        over ? "less than or equal to" : "equal to", v->key.p,
                                        quantity_text(r, limit)));
}

static void check_lists(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_at *limits, const struct bh_rule_at *requests,
                        name_check *name)
{
    struct seen seen = {0};

    bh_json_each(v, limits->v) {
        struct bh_rule_at e = bh_rule_entry(limits, v);
        check_entry(r, &e, name, &seen);
        if (is_huge(e.key))
            check_huge(r, &e, e.key);
    }
    bh_json_each(v, requests->v) {
        struct bh_rule_at e = bh_rule_entry(requests, v);
        check_entry(r, &e, name, &seen);
        check_request(r, requests, limits, v);
        if (is_huge(e.key))
            check_huge(r, &e, e.key);
    }
    if (seen.huge && !seen.compute)
        fails(r, at, "Forbidden", NULL, "HugePages require cpu or memory");
}

/* ---- claims of a container ------------------------------------------------------------------- */

static bool names_same(struct bh_rule_run *r, const struct bh_json *a, const struct bh_json *b,
                       const char **ret_key)
{
    const char *x = bh_json_get_text(a, "name"), *y = bh_json_get_text(b, "name");
    const char *p = bh_json_get_text(a, "request"), *q = bh_json_get_text(b, "request");

    *ret_key = !*p || !*q ? y : bh_rule_printf(r, "%s/%s", y, q);
    return bh_streq(x, y) && (!*p || !*q || bh_streq(p, q));
}

static void check_claim(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_json *pod_claims)
{
    const char *name = bh_json_get_text(at->v, "name"),
               *request = bh_json_get_text(at->v, "request"), *key;
    struct bh_buf names = {0};
    bool known = false, twice = false;

    if (!*name) {
        fails(r, at, "Required value", NULL, "");
        return;
    }
    struct bh_rule_at m = bh_rule_member(at, "request");
    for (const struct bh_json *p = at->up->v->c.first; p != at->v && !twice; p = p->next)
        twice = names_same(r, p, at->v, &key);
    if (*request && !twice)
        bh_rule_faults(r, &m, request, bh_name_label(r, request));
    if (twice)
        fails(r, at, "Duplicate value", bh_rule_quoted(r, key), "");
    bh_json_each(c, pod_claims) {
        const char *s = bh_json_get_text(c, "name");
        known = known || bh_streq(s, name);
        bh_buf_addf(&names, "%s%s", names.n ? ", " : ": ", s);
    }
    if (!known)
        fails(r, at, "Not found", bh_rule_quoted(r, name),
              bh_rule_printf(r, "must be one of the names in pod.spec.resourceClaims%s",
                             names.n ? names.p : " which is empty"));
    bh_buf_fini(&names);
}

static bool rule_container_resources(struct bh_rule_run *r, const struct bh_rule_at *at,
                                     const struct bh_rule_call *c)
{
    struct bh_rule_at limits = bh_rule_member(at, "limits"),
                      requests = bh_rule_member(at, "requests"),
                      claims = bh_rule_member(at, "claims");
    const struct bh_rule_at *spec = at;
    size_t i = 0;

    (void)c;
    while (spec && !(spec->type && bh_streq(spec->type->name, "PodSpec")))
        spec = spec->up;
    check_lists(r, at, &limits, &requests, check_container_name);
    bh_json_each(v, claims.v) {
        struct bh_rule_at e = bh_rule_element(&claims, v, i++);
        check_claim(r, &e, bh_tree_arr(spec ? spec->v : NULL, "resourceClaims"));
    }
    return true;
}

/* What a pod has besides its containers: only limits, and the path of a container's. */
static bool rule_overhead(struct bh_rule_run *r, const struct bh_rule_at *at,
                          const struct bh_rule_call *c)
{
    struct bh_rule_at limits = *at, requests = {.form = ""};

    (void)c;
    if (!at->v)
        return true;
    limits.up = at;
    limits.base = NULL;
    limits.silent = false;
    limits.name = "limits";
    check_lists(r, at, &limits, &requests, check_container_name);
    return true;
}

/* ---- resources of the pod as a whole --------------------------------------------------------- */

static bool is_binary(const struct bh_json *spec, const char *map, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers"};

    for (size_t k = 0; k < 2; k++) {
        bh_json_each(c, bh_tree_arr(spec, lists[k])) {
            const char *s = bh_json_get_str(bh_json_get(bh_json_get(c, "resources"), map), name);
            if (s)
                return *s && s[strlen(s) - 1] == 'i';
        }
    }
    return false;
}

static const char *sum_text(struct bh_rule_run *r, bh_nano q, bool binary)
{
    struct bh_buf b = {0};

    bh_quantity_format(&b, q, binary);
    const char *s = bh_rule_printf(r, "%s", b.p);
    bh_buf_fini(&b);
    return s;
}

static void check_sums(struct bh_rule_run *r, const struct bh_rule_at *at, const char *list,
                       const struct bh_json *spec)
{
    struct bh_rule_at map = bh_rule_member(at, list);

    bh_json_each(v, map.v) {
        struct bh_rule_at e = bh_rule_entry(&map, v);
        bh_nano have, sum = bh_adm_containers_sum(spec, list, v->key.p);
        bool limits = bh_streq(list, "limits");
        if ((limits && !is_huge(v->key.p)) || !bh_adm_parse_quantity(v, &have) || sum <= have)
            continue;
        bh_rule_invalid_text(
            r, &e, quantity_text(r, v),
            bh_rule_printf(r, "must be greater than or equal to aggregate container %s of %s", list,
                           sum_text(r, sum, is_binary(spec, list, v->key.p))));
    }
}

static void check_container_limits(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_json *spec)
{
    size_t i = 0;

    bh_json_each(c, bh_tree_arr(spec, "containers")) {
        bh_json_each(v, bh_tree_obj(c, "resources.limits")) {
            const struct bh_json *max = bh_json_get(bh_tree_obj(at->v, "limits"), v->key.p);
            struct bh_rule_at m =
                bh_rule_named(at, bh_rule_printf(r, "containers[%zu][%s].limits", i, v->key.p));
            bh_nano have, most;
            if (max && bh_adm_parse_quantity(v, &have) && bh_adm_parse_quantity(max, &most) &&
                have > most)
                bh_rule_invalid_text(
                    r, &m, quantity_text(r, v),
                    bh_rule_printf(r, "must be less than or equal to pod limits of %s",
                                   quantity_text(r, max)));
        }
        i++;
    }
}

static bool rule_pod_resources(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const struct bh_json *spec = bh_rule_holder(at)->v;
    struct bh_rule_at limits = bh_rule_member(at, "limits"),
                      requests = bh_rule_member(at, "requests"),
                      claims = bh_rule_member(at, "claims");

    (void)c;
    if (!at->v)
        return true;
    if (bh_tree_is(spec, "os.name", "windows"))
        return fails(r, at, "Forbidden", NULL, "may not be set for a windows pod");
    if (claims.v)
        fails(r, &claims, "Forbidden", NULL, "claims may not be set for Resources at pod-level");
    check_lists(r, at, &limits, &requests, check_pod_name);
    check_sums(r, at, "requests", spec);
    check_sums(r, at, "limits", spec);
    check_container_limits(r, at, spec);
    return true;
}

/* ---- other kinds ----------------------------------------------------------------------------- */

/* node-quantities, quota-quantities: the entries of a map, by name. */
static bool rule_node_quantities(struct bh_rule_run *r, const struct bh_rule_at *at,
                                 const struct bh_rule_call *c)
{
    (void)c;
    bh_json_each(v, at->v) {
        struct bh_rule_at e = bh_rule_entry(at, v);
        e.name = e.key; /* as upstream writes it */
        check_quantity(r, &e, e.key);
    }
    return true;
}

static bool rule_quota_quantities(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    (void)c;
    bh_json_each(v, at->v) {
        struct bh_rule_at e = bh_rule_entry(at, v);
        check_quota_name(r, &e, e.key);
        check_quantity(r, &e, e.key);
    }
    return true;
}

static bool scope_fits(const char *scope, const char *resource)
{
    static const char best_effort[] = "pods";
    static const char pod_kinds[] = "cpu memory pods requests.cpu requests.memory limits.cpu "
                                    "limits.memory requests.ephemeral-storage ephemeral-storage "
                                    "limits.ephemeral-storage";

    if (bh_streq(scope, "BestEffort"))
        return is_in(best_effort, resource);
    if (is_in("Terminating NotTerminating NotBestEffort PriorityClass CrossNamespacePodAffinity",
              scope))
        return is_in(pod_kinds, resource);
    if (bh_streq(scope, "VolumeAttributesClass"))
        return is_in("persistentvolumeclaims requests.storage", resource);
    return true;
}

static bool is_scope(const char *s)
{
    return is_in("Terminating NotTerminating BestEffort NotBestEffort PriorityClass "
                 "CrossNamespacePodAffinity VolumeAttributesClass",
                 s);
}

static bool have_scope(const struct bh_json *list, const char *member, const char *scope)
{
    bh_json_each(e, list) {
        const char *s = member ? bh_json_get_text(e, member) : bh_json_cstr(e);
        if (s && bh_streq(s, scope))
            return true;
    }
    return false;
}

static void check_conflicts(struct bh_rule_run *r, const struct bh_rule_at *scopes,
                            const struct bh_json *list, const char *member)
{
    static const char *const pairs[][2] = {{"BestEffort", "NotBestEffort"},
                                           {"Terminating", "NotTerminating"}};

    for (size_t i = 0; i < 2; i++)
        if (have_scope(list, member, pairs[i][0]) && have_scope(list, member, pairs[i][1]))
            bh_rule_invalid(r, scopes, "conflicting scopes");
}

/* How many resources of a quota a scope cannot be about. */
static size_t count_misfits(const struct bh_json *spec, const char *scope)
{
    size_t n = 0;

    bh_json_each(h, bh_tree_obj(spec, "hard")) {
        bool known = (is_in(standard, h->key.p) && !bh_streq(h->key.p, "storage")) ||
                     is_quota_huge(h->key.p);
        n += known && !scope_fits(scope, h->key.p);
    }
    return n;
}

static bool rule_quota_scopes(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    const struct bh_json *spec = bh_rule_holder(at)->v;

    (void)c;
    bh_json_each(s, at->v) {
        const char *scope = bh_json_cstr(s);
        if (!scope || !is_scope(scope))
            bh_rule_invalid(r, at, "unsupported scope");
        for (size_t n = count_misfits(spec, scope ? scope : ""); n; n--)
            bh_rule_invalid(r, at, "unsupported scope applied to resource");
    }
    check_conflicts(r, at, at->v, NULL);
    return true;
}

static void check_scope_requirement(struct bh_rule_run *r, const struct bh_rule_at *list,
                                    const struct bh_json *e, const struct bh_json *spec)
{
    const char *scope = bh_json_get_text(e, "scopeName"), *op = bh_json_get_text(e, "operator");
    struct bh_rule_at name = bh_rule_named(list, "scopeName"),
                      oper = bh_rule_named(list, "operator"),
                      values = bh_rule_named(list, "values");
    size_t n = bh_tree_len(bh_tree_arr(e, "values"));

    if (!is_scope(scope))
        bh_rule_invalid_text(r, &name, scope, "unsupported scope");
    for (size_t k = count_misfits(spec, scope); k; k--)
        bh_rule_error(r, list, "Invalid value", bh_rule_shown(r, list->up),
                      "unsupported scope applied to resource");
    if (is_scope(scope) && !is_in("PriorityClass VolumeAttributesClass", scope) &&
        !bh_streq(op, "Exists"))
        bh_rule_invalid_text(r, &oper, op,
                             "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                             "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                             "ResourceQuotaScopeNotBestEffort or "
                             "ResourceQuotaScopeCrossNamespacePodAffinity");
    if (is_in("In NotIn", op)) {
        if (!n)
            fails(
                r, &values, "Required value", NULL,
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    } else if (is_in("Exists DoesNotExist", op)) {
        struct bh_buf b = {0};
        bh_json_write(&b, bh_json_get(e, "values") ? bh_json_get(e, "values") : e);
        if (n)
            fails(
                r, &values, "Invalid value", b.p,
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
        bh_buf_fini(&b);
    } else {
        bh_rule_invalid_text(r, &oper, op, "not a valid selector operator");
    }
}

static bool rule_scope_selector(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    const struct bh_rule_at *spec = bh_rule_holder(at);
    struct bh_rule_at list = bh_rule_member(at, "matchExpressions"),
                      scopes = bh_rule_member(spec, "scopes");

    (void)c;
    bh_json_each(e, list.v)
        check_scope_requirement(r, &list, e, spec->v);
    check_conflicts(r, &scopes, list.v, "scopeName");
    return true;
}

/* ---- LimitRange ------------------------------------------------------------------------------ */

static bool compare(struct bh_rule_run *r, const struct bh_rule_at *item, const char *at_map,
                    const char *shown, const char *low, const char *low_words, const char *high,
                    const char *high_words, const char *name)
{
    const struct bh_json *a = bh_json_get(bh_tree_obj(item->v, low), name);
    const struct bh_json *b = bh_json_get(bh_tree_obj(item->v, high), name);
    bh_nano x, y;

    if (!a || !b || !bh_adm_parse_quantity(a, &x) || !bh_adm_parse_quantity(b, &y) || x <= y)
        return true;
    struct bh_rule_at m = bh_rule_named(item, bh_rule_printf(r, "%s[%s]", at_map, name));
    bh_rule_invalid_text(r, &m, quantity_text(r, bh_json_get(bh_tree_obj(item->v, shown), name)),
                         bh_rule_printf(r, "%s %s is greater than %s %s", low_words,
                                        quantity_text(r, a), high_words, quantity_text(r, b)));
    return false;
}

static void check_ratio(struct bh_rule_run *r, const struct bh_rule_at *item, const char *name)
{
    const struct bh_json *v = bh_json_get(bh_tree_obj(item->v, "maxLimitRequestRatio"), name);
    struct bh_rule_at m = bh_rule_named(item, bh_rule_printf(r, "maxLimitRequestRatio[%s]", name));
    bh_nano q, min, max;

    if (!v || !bh_adm_parse_quantity(v, &q))
        return;
    if (q < NANO)
        bh_rule_invalid_text(r, &m, quantity_text(r, v),
                             bh_rule_printf(r, "ratio %s is less than 1", quantity_text(r, v)));
    if (!bh_adm_parse_quantity(bh_json_get(bh_tree_obj(item->v, "min"), name), &min) ||
        !bh_adm_parse_quantity(bh_json_get(bh_tree_obj(item->v, "max"), name), &max))
        return;
    double most = (double)max / (double)min;
    if ((double)q / 1e9 > most)
        bh_rule_invalid_text(
            r, &m, quantity_text(r, v),
            bh_rule_printf(r, "ratio %s is greater than max/min = %f", quantity_text(r, v), most));
}

static void check_limits_of(struct bh_rule_run *r, const struct bh_rule_at *item, const char *name)
{
    const struct bh_json *dflt = bh_json_get(bh_tree_obj(item->v, "default"), name);
    const struct bh_json *request = bh_json_get(bh_tree_obj(item->v, "defaultRequest"), name);
    bh_nano x, y;

    compare(r, item, "min", "min", "min", "min value", "max", "max value", name);
    compare(r, item, "defaultRequest", "defaultRequest", "min", "min value", "defaultRequest",
            "default request value", name);
    compare(r, item, "defaultRequest", "defaultRequest", "defaultRequest", "default request value",
            "max", "max value", name);
    compare(r, item, "defaultRequest", "defaultRequest", "defaultRequest", "default request value",
            "default", "default limit value", name);
    compare(r, item, "default", "min", "min", "min value", "default", "default value", name);
    compare(r, item, "default", "max", "default", "default value", "max", "max value", name);
    check_ratio(r, item, name);
    struct bh_rule_at m = bh_rule_named(item, bh_rule_printf(r, "defaultRequest[%s]", name));
    if (!may_overcommit(name) && dflt && request && bh_adm_parse_quantity(dflt, &x) &&
        bh_adm_parse_quantity(request, &y) && x != y)
        bh_rule_invalid_text(
            r, &m, quantity_text(r, request),
            bh_rule_printf(r, "default value %s must equal to defaultRequest value %s in %s",
                           quantity_text(r, dflt), quantity_text(r, request), name));
}

static bool rule_limit_item(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    static const char *const maps[] = {"max", "min", "default", "defaultRequest",
                                       "maxLimitRequestRatio"};
    const char *type = bh_json_get_text(at->v, "type");
    struct bh_map seen = {0};

    (void)c;
    for (size_t i = 0; i < BH_ARRAY_LEN(maps); i++) {
        struct bh_rule_at map = bh_rule_member(at, maps[i]);
        bool forbidden = bh_streq(type, "Pod") && (i == 2 || i == 3);
        if (forbidden && bh_tree_len(map.v))
            fails(r, &map, "Forbidden", NULL, "may not be specified when `type` is 'Pod'");
        bh_json_each(v, forbidden ? NULL : map.v) {
            struct bh_rule_at e = bh_rule_entry(&map, v);
            if (is_in("Pod Container", type))
                check_container_name(r, &e, e.key);
            else
                check_name(r, &e, e.key);
        }
        if (i == 3 && bh_streq(type, "PersistentVolumeClaim") &&
            !bh_json_get(bh_tree_obj(at->v, "min"), "storage") &&
            !bh_json_get(bh_tree_obj(at->v, "max"), "storage")) {
            struct bh_rule_at limits = bh_rule_named(at, "limits");
            fails(r, &limits, "Required value", NULL,
                  "either minimum or maximum storage value is required, but neither was provided");
        }
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(maps); i++) {
        if (bh_streq(type, "Pod") && (i == 2 || i == 3))
            continue;
        bh_json_each(v, bh_tree_obj(at->v, maps[i]))
            if (!bh_map_put(&seen, v->key.p, v->key.n, v))
                check_limits_of(r, at, v->key.p);
    }
    bh_map_fini(&seen);
    return true;
}

static bool rule_limit_type(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    return !bh_rule_faults(r, at, s, bh_name_key(r, s)) || strchr(s, '/') ||
           is_in("Pod Container PersistentVolumeClaim", s) ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "must be a standard limit type or fully qualified");
}

/* ---- volumes --------------------------------------------------------------------------------- */

static bool rule_storage_only(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    static const char *const words[] = {"storage"};

    (void)c;
    if (!bh_json_get(at->v, "storage") || bh_tree_len(at->v) > 1)
        bh_rule_unsupported(r, at, bh_rule_shown(r, at), 1, words);
    return true;
}

static bool rule_volume_size(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    bh_nano q;

    (void)c;
    if (!bh_adm_parse_quantity(at->v, &q))
        return true;
    if (bh_quantity_value(q) < 0)
        bh_rule_invalid_number(r, at, bh_quantity_value(q), "must be a valid resource quantity");
    if (q <= 0)
        bh_rule_invalid(r, at, "must be greater than zero");
    return true;
}

static bool rule_basic_quantity(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    bh_nano q;

    (void)c;
    if (!bh_adm_parse_quantity(at->v, &q) || bh_quantity_value(q) >= 0)
        return true;
    bh_rule_invalid_number(r, at, bh_quantity_value(q), "must be a valid resource quantity");
    return false;
}

static bool check_claim_key(struct bh_rule_run *r, const struct bh_rule_at *at, const char *key)
{
    static const char *const words[] = {"storage"};

    if (!bh_rule_faults(r, at, key, bh_name_key(r, key)))
        return false;
    if (!is_native(key) || bh_streq(key, "storage"))
        return true;
    bh_rule_unsupported(r, at, bh_rule_quoted(r, key), 1, words);
    return false;
}

static bool rule_claim_statuses(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    static const char *const words[] = {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                                        "NodeResizeInProgress", "NodeResizeInfeasible",
                                        "NodeResizePending"};

    (void)c;
    bh_json_each(v, at->v) {
        bool known = false;
        check_claim_key(r, at, v->key.p);
        for (size_t i = 0; i < BH_ARRAY_LEN(words); i++)
            known = known || (v->type == BH_JSON_STRING && bh_streq(v->s.p, words[i]));
        if (!known)
            bh_rule_unsupported(r, at, bh_rule_quoted(r, v->key.p), BH_ARRAY_LEN(words), words);
    }
    return true;
}

static bool rule_claim_resource(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    if (check_claim_key(r, at->up, at->key) && rule_basic_quantity(r, at, c))
        check_quantity(r, at, "storage");
    return true;
}

static bool rule_claim_storage(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    struct bh_rule_at requests = bh_rule_member(at, "requests");
    struct bh_json *v = bh_json_get(requests.v, "storage");
    struct bh_rule_at place = bh_rule_named(at, "");
    bh_nano q;

    (void)c;
    place.name = NULL;
    place.key = "storage";
    place.v = v;
    if (!v)
        return fails(r, &place, "Required value", NULL, "");
    if (bh_adm_parse_quantity(v, &q) && q <= 0)
        bh_rule_invalid(r, &place, "must be greater than zero");
    return true;
}

const struct bh_rule bh_rules_resources[] = {
    {"container-resources", rule_container_resources},
    {"overhead", rule_overhead},
    {"pod-resources", rule_pod_resources},
    {"node-quantities", rule_node_quantities},
    {"quota-quantities", rule_quota_quantities},
    {"quota-scopes", rule_quota_scopes},
    {"scope-selector", rule_scope_selector},
    {"limit-item", rule_limit_item},
    {"limit-type", rule_limit_type},
    {"storage-only", rule_storage_only},
    {"volume-size", rule_volume_size},
    {"basic-quantity", rule_basic_quantity},
    {"claim-resource-statuses", rule_claim_statuses},
    {"claim-resource", rule_claim_resource},
    {"claim-storage", rule_claim_storage},
    {0},
};
