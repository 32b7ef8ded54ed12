/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_devices.c - rules of resource.k8s.io that look at more than one member
 *
 * Upstream: pkg/apis/resource/validation/validation.go (v1.36).
 */
#include "simulator/admission/rules.h"

#include "common/cel/cel.h"
#include "common/k8s/quantity.h"

#include <ctype.h>

static bool fails(struct bh_rule_run *r, const struct bh_rule_at *at, const char *kind,
                  const char *value, const char *text)
{
    bh_rule_error(r, at, kind, value, text);
    return false;
}

static const char *text_at(const struct bh_json *v, const char *member)
{
    return bh_json_get_text(v, member);
}

static void apply(struct bh_rule_run *r, const char *set, const struct bh_rule_at *at)
{
    bh_rules_apply_at(r, bh_rules_find(set), at);
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool check_identifier(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s)
{
    const struct bh_rule_call format = {.n = 1, .arg = {"c-identifier"}};
    struct bh_json v = {.type = BH_JSON_STRING, .s = bh_str_c(s)};
    struct bh_rule_at place = *at;

    if (strlen(s) > 32)
        bh_rule_error(r, at, "Too long", NULL, "may not be more than 32 bytes");
    place.v = &v;
    return bh_rule_format(r, &place, &format);
}

static void check_domain(struct bh_rule_run *r, const struct bh_rule_at *at, const char *s)
{
    char *lower = bh_arena_strndup(r->w->arena, s, strlen(s));

    bh_lower(lower);
    if (strlen(s) > 63)
        bh_rule_error(r, at, "Too long", NULL, "may not be more than 63 bytes");
    bh_rule_faults(r, at, s, bh_name_subdomain(r, lower));
}

/* "memory", "gpu.example.com/memory" */
static bool rule_device_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at), *slash = s ? strchr(s, '/') : NULL;

    (void)c;
    if (!s || (slash && strchr(slash + 1, '/')))
        return true;
    if (!slash)
        return check_identifier(r, at, s);
    if (slash == s)
        bh_rule_invalid_text(r, at, "", "the domain must not be empty");
    else
        check_domain(r, at, bh_rule_printf(r, "%.*s", (int)(slash - s), s));
    if (!slash[1])
        return fails(r, at, "Invalid value", "\"\"", "the name must not be empty");
    return check_identifier(r, at, slash + 1);
}

static bool rule_full_device_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                                  const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    if (!s)
        return true;
    rule_device_name(r, at, c);
    return strchr(s, '/') ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "a fully qualified name must be a domain and a name separated by a slash");
}

static bool rule_pool_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at), *p = s;

    (void)c;
    if (!*s)
        return fails(r, at, "Required value", NULL, "");
    if (strlen(s) > 253)
        bh_rule_error(r, at, "Too long", NULL, "may not be more than 253 bytes");
    for (;; p += strcspn(p, "/") + 1) {
        size_t n = strcspn(p, "/");
        const char *part = bh_rule_printf(r, "%.*s", (int)n, p);
        bh_rule_faults(r, at, part, bh_name_subdomain(r, part));
        if (!p[n])
            return true;
    }
}

static bool rule_extended_resource(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    return !s ||
           (strchr(s, '/') && !strstr(s, "kubernetes.io/") && strncmp(s, "requests.", 9) != 0 &&
            !bh_name_key(r, bh_rule_printf(r, "requests.%s", s))) ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "must be a valid extended resource name");
}

/* ---- claims ---------------------------------------------------------------------------------- */

static bool rule_device_expression(struct bh_rule_run *r, const struct bh_rule_at *at,
                                   const struct bh_rule_call *c)
{
    struct bh_cel_program *p;
    struct bh_err err = {{0}};
    const char *s = bh_rule_text(at);

    (void)c;
    if (!s || bh_cel_compile(s, &p, &err) == 0) {
        if (s)
            bh_cel_free(p);
        return true;
    }
    return fails(r, at, "Invalid value", bh_rule_quoted(r, s), err.msg);
}

static bool is_request(const struct bh_json *requests, const char *name)
{
    size_t n = strcspn(name, "/");

    bh_json_each(q, requests) {
        const char *s = text_at(q, "name");
        if (strlen(s) != n || strncmp(s, name, n) != 0)
            continue;
        if (!name[n])
            return true;
        bh_json_each(sub, bh_tree_arr(q, "firstAvailable"))
            if (bh_streq(text_at(sub, "name"), name + n + 1))
                return true;
    }
    return false;
}

static bool check_request_name(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_json *requests, const char *s)
{
    const char *slash = strchr(s, '/');
    bool deep = slash && strchr(slash + 1, '/');

    if (!deep) {
        const char *first = slash ? bh_rule_printf(r, "%.*s", (int)(slash - s), s) : s;
        bh_rule_faults(r, at, first, bh_name_label(r, first));
        if (slash)
            bh_rule_faults(r, at, slash + 1, bh_name_label(r, slash + 1));
    }
    return (!deep && is_request(requests, s)) ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "must be the name of a request in the claim or the name of a request and a "
                 "subrequest separated by '/'");
}

static bool check_request_names(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_json *requests)
{
    size_t i = 0;

    if (bh_tree_len(at->v) > 32)
        return fails(r, at, "Too many", bh_rule_printf(r, "%zu", bh_tree_len(at->v)),
                     "must have at most 32 items");
    bh_json_each(e, at->v) {
        struct bh_rule_at place = bh_rule_element(at, e, i++);
        check_request_name(r, &place, requests, bh_json_cstr(e) ? bh_json_cstr(e) : "");
    }
    i = 0;
    bh_json_each(e, at->v) {
        struct bh_rule_at place = bh_rule_element(at, e, i++);
        for (const struct bh_json *p = at->v->c.first; p != e; p = p->next) {
            if (!bh_json_equal(p, e))
                continue;
            fails(r, &place, "Duplicate value", bh_rule_shown(r, &place), "");
            break;
        }
    }
    return true;
}

static bool rule_request_names(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const struct bh_rule_at *claim = bh_rule_holder(bh_rule_holder(at));

    (void)c;
    return check_request_names(r, at, bh_tree_arr(claim->v, "requests"));
}

static bool rule_raw_object(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    struct bh_buf b = {0};

    if (at->v)
        bh_json_write(&b, at->v);
    size_t n = b.n;
    bh_buf_fini(&b);
    if (!at->v)
        return fails(r, at, "Required value", NULL, "");
    if (n > (size_t)c->num[0])
        return fails(r, at, "Too long", NULL,
                     bh_rule_printf(r, "may not be more than %s bytes", c->arg[0]));
    return at->v->type == BH_JSON_OBJECT ||
           fails(r, at, "Invalid value", "\"<value omitted>\"", "must be a valid JSON object");
}

/* ---- a claim's status ------------------------------------------------------------------------ */

static bool is_allocated(const struct bh_json *results, const struct bh_json *d)
{
    static const char *const keys[] = {"driver", "pool", "device", "shareID"};

    bh_json_each(e, results) {
        bool same = true;
        for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++)
            same = same && bh_streq(text_at(e, keys[i]), text_at(d, keys[i]));
        if (same)
            return true;
    }
    return false;
}

static void check_reserved(struct bh_rule_run *r, const struct bh_rule_at *status)
{
    static const char *const needed[] = {"resource", "name", "uid"};
    struct bh_rule_at list = bh_rule_member(status, "reservedFor");
    size_t i = 0;

    if (bh_tree_len(list.v) > 256) {
        fails(r, &list, "Too many", bh_rule_printf(r, "%zu", bh_tree_len(list.v)),
              "must have at most 256 items");
        return;
    }
    bh_json_each(e, list.v) {
        struct bh_rule_at user = bh_rule_element(&list, e, i++);
        for (size_t k = 0; k < BH_ARRAY_LEN(needed); k++) {
            struct bh_rule_at m = bh_rule_member(&user, needed[k]);
            if (!*text_at(e, needed[k]))
                fails(r, &m, "Required value", NULL, "");
        }
    }
    i = 0;
    bh_json_each(e, list.v) {
        struct bh_rule_at user = bh_rule_element(&list, e, i++);
        for (const struct bh_json *p = list.v->c.first; p != e; p = p->next) {
            if (!bh_streq(text_at(p, "uid"), text_at(e, "uid")))
                continue;
            fails(r, &user, "Duplicate value", bh_rule_quoted(r, text_at(e, "uid")), "");
            break;
        }
    }
}

static void check_driver_name(struct bh_rule_run *r, const struct bh_rule_at *m)
{
    if (!*bh_rule_text(m))
        fails(r, m, "Required value", NULL, "");
    else
        check_domain(r, m, bh_rule_text(m));
}

static void check_device(struct bh_rule_run *r, const struct bh_rule_at *at)
{
    struct bh_rule_at driver = bh_rule_member(at, "driver"), pool = bh_rule_member(at, "pool"),
                      device = bh_rule_member(at, "device");

    check_driver_name(r, &driver);
    rule_pool_name(r, &pool, NULL);
    bh_rule_faults(r, &device, bh_rule_text(&device), bh_name_label(r, bh_rule_text(&device)));
}

static void check_device_statuses(struct bh_rule_run *r, const struct bh_rule_at *status)
{
    struct bh_rule_at list = bh_rule_member(status, "devices");
    const struct bh_json *results = bh_tree_arr(status->v, "allocation.devices.results");
    size_t i = 0;

    bh_json_each(e, list.v) {
        struct bh_rule_at d = bh_rule_element(&list, e, i++);
        struct bh_rule_at conditions = bh_rule_member(&d, "conditions");
        size_t k = 0;
        check_device(r, &d);
        if (!is_allocated(results, e))
            fails(r, &d, "Invalid value",
                  bh_rule_printf(r, "{\"Driver\":%s,\"Pool\":%s,\"Device\":%s,\"ShareID\":%s}",
                                 bh_rule_quoted(r, text_at(e, "driver")),
                                 bh_rule_quoted(r, text_at(e, "pool")),
                                 bh_rule_quoted(r, text_at(e, "device")),
                                 bh_rule_quoted(r, text_at(e, "shareID"))),
                  "must be an allocated device in the claim");
        bh_json_each(cond, conditions.v) {
            struct bh_rule_at one = bh_rule_element(&conditions, cond, k++);
            apply(r, "Condition", &one);
        }
        for (const struct bh_json *p = list.v->c.first; p != e; p = p->next)
            if (is_allocated(list.v, e) && bh_streq(text_at(p, "device"), text_at(e, "device")) &&
                bh_streq(text_at(p, "pool"), text_at(e, "pool")) &&
                bh_streq(text_at(p, "driver"), text_at(e, "driver"))) {
                fails(r, &d, "Duplicate value",
                      bh_rule_printf(r, "{\"Driver\":%s,\"Pool\":%s,\"Device\":%s,\"ShareID\":%s}",
                                     bh_rule_quoted(r, text_at(e, "driver")),
                                     bh_rule_quoted(r, text_at(e, "pool")),
                                     bh_rule_quoted(r, text_at(e, "device")),
                                     bh_rule_quoted(r, text_at(e, "shareID"))),
                      "");
                break;
            }
    }
}

static void check_bindings(struct bh_rule_run *r, const struct bh_rule_at *at);

static void check_allocation(struct bh_rule_run *r, const struct bh_rule_at *status)
{
    const struct bh_json *requests = bh_tree_arr(bh_rule_root(status)->v, "spec.devices.requests");
    struct bh_rule_at allocation = bh_rule_member(status, "allocation");
    struct bh_rule_at devices = bh_rule_member(&allocation, "devices"),
                      results = bh_rule_member(&devices, "results"),
                      config = bh_rule_member(&devices, "config"),
                      selector = bh_rule_member(&allocation, "nodeSelector");
    size_t i = 0;

    if (bh_tree_len(results.v) > 32)
        fails(r, &results, "Too many", bh_rule_printf(r, "%zu", bh_tree_len(results.v)),
              "must have at most 32 items");
    bh_json_each(e, bh_tree_len(results.v) > 32 ? NULL : results.v) {
        struct bh_rule_at one = bh_rule_element(&results, e, i++);
        struct bh_rule_at request = bh_rule_member(&one, "request");
        check_request_name(r, &request, requests, bh_rule_text(&request));
        check_device(r, &one);
        check_bindings(r, &one);
    }
    i = 0;
    bh_json_each(e, config.v) {
        static const char *const sources[] = {"FromClaim", "FromClass"};
        struct bh_rule_at one = bh_rule_element(&config, e, i++);
        struct bh_rule_at source = bh_rule_member(&one, "source"),
                          names = bh_rule_member(&one, "requests"),
                          opaque = bh_rule_member(&one, "opaque");
        if (!*bh_rule_text(&source))
            fails(r, &source, "Required value", NULL, "");
        else if (bh_word_at("FromClaim FromClass", bh_rule_text(&source)) < 0)
            bh_rule_unsupported(r, &source, bh_rule_shown(r, &source), 2, sources);
        check_request_names(r, &names, requests);
        if (!opaque.v)
            fails(r, &opaque, "Required value", NULL, "");
        else
            apply(r, "OpaqueDeviceConfiguration", &opaque);
    }
    if (selector.v)
        apply(r, "NodeSelector", &selector);
}

static bool rule_claim_status(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    struct bh_rule_at reserved = bh_rule_member(at, "reservedFor"),
                      allocation = bh_rule_member(at, "allocation");

    (void)c;
    check_reserved(r, at);
    check_device_statuses(r, at);
    if (bh_tree_len(reserved.v) && !allocation.v)
        fails(r, &reserved, "Forbidden", NULL, "may not be specified when `allocated` is not set");
    else if (bh_tree_deleting(bh_rule_root(at)->v) &&
             bh_tree_len(reserved.v) > bh_tree_len(reserved.old))
        fails(r, &reserved, "Forbidden", NULL,
              "new entries may not be added while `deallocationRequested` or `deletionTimestamp` "
              "are set");
    if (allocation.v && allocation.old) {
        if (!bh_json_equal(allocation.v, allocation.old))
            bh_rule_invalid(r, &allocation, "field is immutable");
    } else if (allocation.v) {
        check_allocation(r, at);
    }
    return true;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool has_lists(const struct bh_json *device)
{
    static const char *const lists[] = {"bools", "ints", "strings", "versions"};

    bh_json_each(a, bh_tree_obj(device, "attributes"))
        for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++)
            if (bh_tree_has(a, lists[i]))
                return true;
    return false;
}

static size_t most_devices(const struct bh_json *devices)
{
    bh_json_each(d, devices)
        if (bh_tree_len(bh_tree_arr(d, "taints")) ||
            bh_tree_len(bh_tree_arr(d, "consumesCounters")) || has_lists(d))
            return 64;
    return 128;
}

/* Which nodes can use it: one of several members. noun: of the slice or of a device. */
static void check_nodes(struct bh_rule_run *r, const struct bh_rule_at *at, bool slice)
{
    static const char *const flags[] = {"allNodes", "perDeviceNodeSelection"};
    struct bh_rule_at name = bh_rule_member(at, "nodeName"),
                      selector = bh_rule_member(at, "nodeSelector");
    const char *s = bh_json_cstr(name.v);
    struct bh_buf set = {0};
    size_t n = 0;

    if (s && *s) {
        bh_buf_addf(&set, "%s`nodeName`", n++ ? ", " : "");
        bh_rule_faults(r, &name, s, bh_name_subdomain(r, s));
    } else if (s) {
        bh_rule_invalid_text(r, &name, s,
                             slice ? "must be either unset or set to a non-empty string"
                                   : "must not be empty");
    }
    if (selector.v) {
        struct bh_rule_at terms = bh_rule_member(&selector, "nodeSelectorTerms");
        bh_buf_addf(&set, "%s`nodeSelector`", n++ ? ", " : "");
        apply(r, "NodeSelector", &selector);
        if (slice && bh_tree_len(terms.v) != 1)
            bh_rule_invalid(r, &terms, "must have exactly one node selector term");
    }
    for (size_t i = 0; i < (slice ? 2u : 1u); i++) {
        struct bh_rule_at flag = bh_rule_member(at, flags[i]);
        if (flag.v && flag.v->b)
            bh_buf_addf(&set, "%s`%s`", n++ ? ", " : "", flags[i]);
        else if (flag.v)
            bh_rule_invalid(r, &flag, "must be either unset or set to true");
    }
    const char *want =
        slice
            ? "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is "
              "required"
            : "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
              "`perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    if (!n)
        fails(r, at, "Required value", NULL, want);
    else if (n > 1)
        bh_rule_invalid_text(r, at, bh_rule_printf(r, "{%s}", set.p),
                             slice ? bh_rule_printf(r, "%s, but multiple fields are set", want)
                                   : want);
    bh_buf_fini(&set);
}

/* A list of named elements: how many, each by its set, no name twice. */
static void check_named(struct bh_rule_run *r, const struct bh_rule_at *list, size_t most,
                        const char *set)
{
    size_t i = 0;

    if (bh_tree_len(list->v) > most) {
        fails(r, list, "Too many", bh_rule_printf(r, "%zu", bh_tree_len(list->v)),
              bh_rule_printf(r, "must have at most %zu items", most));
        return;
    }
    bh_json_each(e, list->v) {
        struct bh_rule_at one = bh_rule_element(list, e, i++);
        apply(r, set, &one);
    }
    i = 0;
    bh_json_each(e, list->v) {
        struct bh_rule_at one = bh_rule_element(list, e, i++);
        for (const struct bh_json *p = list->v->c.first; p != e; p = p->next) {
            if (!bh_streq(text_at(p, "name"), text_at(e, "name")))
                continue;
            fails(r, &one, "Duplicate value", bh_rule_quoted(r, text_at(e, "name")), "");
            break;
        }
    }
}

static bool rule_slice(struct bh_rule_run *r, const struct bh_rule_at *at,
                       const struct bh_rule_call *c)
{
    struct bh_rule_at driver = bh_rule_member(at, "driver"), pool = bh_rule_member(at, "pool"),
                      devices = bh_rule_member(at, "devices"),
                      counters = bh_rule_member(at, "sharedCounters");

    (void)c;
    check_driver_name(r, &driver);
    apply(r, "ResourcePool", &pool);
    check_nodes(r, at, true);
    if (counters.v && devices.v)
        bh_rule_invalid_text(r, at, "", "only one of `sharedCounters` or `devices` is allowed");
    check_named(r, &devices, most_devices(devices.v), "Device");
    check_named(r, &counters, 8, "CounterSet");
    return true;
}

static bool rule_device_sizes(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    static const char *const lists[] = {"bools", "ints", "strings", "versions"};
    const struct bh_json *attributes = bh_tree_obj(at->v, "attributes");
    size_t n = bh_tree_len(attributes) + bh_tree_len(bh_tree_obj(at->v, "capacity")), values = 0;

    (void)c;
    bh_json_each(a, attributes) {
        size_t k = 0;
        for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++)
            k += bh_tree_len(bh_tree_arr(a, lists[i]));
        values += k ? k : 1;
    }
    if (n > 32)
        bh_rule_invalid_number(r, at, (int64_t)n,
                               "the total number of attributes and capacities must not exceed 32");
    if (values > 48)
        bh_rule_invalid_number(r, at, (int64_t)values,
                               "the total number of attribute values must not exceed 48");
    return true;
}

static bool rule_device_nodes(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    const struct bh_rule_at *spec = bh_rule_holder(at);

    (void)c;
    if (bh_tree_bool(spec->v, "perDeviceNodeSelection", false))
        check_nodes(r, at, false);
    else if (bh_tree_has(at->v, "nodeName") || bh_tree_has(at->v, "nodeSelector") ||
             bh_tree_has(at->v, "allNodes"))
        fails(r, at, "Invalid value", "null",
              "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
              "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
    return true;
}

static void check_condition_list(struct bh_rule_run *r, const struct bh_rule_at *list)
{
    size_t i = 0;

    if (bh_tree_len(list->v) > 4) {
        fails(r, list, "Too many", bh_rule_printf(r, "%zu", bh_tree_len(list->v)),
              "must have at most 4 items");
        return;
    }
    bh_json_each(e, list->v) {
        struct bh_rule_at one = bh_rule_element(list, e, i++);
        const char *s = bh_json_cstr(e) ? bh_json_cstr(e) : "";
        bh_rule_faults(r, &one, s, bh_name_key(r, s));
    }
}

static bool stands_before(const struct bh_json *list, const struct bh_json *e)
{
    for (const struct bh_json *p = bh_json_first(list); p && p != e; p = p->next)
        if (bh_json_equal(p, e))
            return true;
    return false;
}

static void check_bindings(struct bh_rule_run *r, const struct bh_rule_at *at)
{
    struct bh_rule_at good = bh_rule_member(at, "bindingConditions"),
                      bad = bh_rule_member(at, "bindingFailureConditions");
    size_t i = 0;

    check_condition_list(r, &good);
    check_condition_list(r, &bad);
    bh_json_each(e, good.v) {
        struct bh_rule_at one = bh_rule_element(&good, e, i++);
        if (stands_before(good.v, e))
            fails(r, &one, "Duplicate value", bh_rule_shown(r, &one), "");
    }
    i = 0;
    bh_json_each(e, bad.v) {
        struct bh_rule_at one = bh_rule_element(&bad, e, i++);
        if (stands_before(bad.v, e))
            fails(r, &one, "Duplicate value", bh_rule_shown(r, &one), "");
        if (bh_json_cstr(e) && bh_tree_lists(good.v, bh_json_cstr(e)))
            bh_rule_invalid(r, &one,
                            "bindingFailureConditions must not overlap with bindingConditions");
    }
    if (!bh_tree_len(good.v) && bh_tree_len(bad.v))
        bh_rule_invalid(r, &good, "bindingConditions are required to use bindingFailureConditions");
    if (!bh_tree_len(bad.v) && bh_tree_len(good.v))
        bh_rule_invalid(r, &bad, "bindingFailureConditions are required to use bindingConditions");
}

static bool rule_binding_conditions(struct bh_rule_run *r, const struct bh_rule_at *at,
                                    const struct bh_rule_call *c)
{
    (void)c;
    check_bindings(r, at);
    return true;
}

static bool rule_one_attribute(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    static const char *const values[] = {"bool",  "int",  "string",  "version",
                                         "bools", "ints", "strings", "versions"};
    size_t n = 0;

    (void)c;
    for (size_t i = 0; i < BH_ARRAY_LEN(values); i++) {
        struct bh_rule_at m = bh_rule_member(at, values[i]);
        n += m.v != NULL;
        if (m.v && i > 3 && !m.v->c.n)
            bh_rule_invalid(r, &m, "must not be empty if specified");
    }
    if (!n)
        return fails(r, at, "Invalid value", "\"\"", "exactly one value must be specified");
    if (n > 1)
        bh_rule_invalid(r, at, "exactly one value must be specified");
    return true;
}

static const char *skip_identifiers(const char *p, bool release)
{
    for (;;) {
        size_t n = strspn(p, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-");
        bool digits = strspn(p, "0123456789") == n;
        if (!n || (release && digits && n > 1 && *p == '0'))
            return NULL;
        p += n;
        if (*p != '.')
            return p;
        p++;
    }
}

static bool is_semver(const char *p)
{
    for (size_t i = 0; i < 3; i++) {
        size_t n = strspn(p, "0123456789");
        if (!n || (n > 1 && *p == '0'))
            return false;
        p += n;
        if (i < 2 && *p++ != '.')
            return false;
    }
    if (*p == '-')
        p = skip_identifiers(p + 1, true);
    if (p && *p == '+')
        p = skip_identifiers(p + 1, false);
    return p && !*p;
}

static bool rule_semver(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    const char *s = bh_json_cstr(at->v);

    (void)c;
    return !s || is_semver(s) ||
           fails(r, at, "Invalid value", bh_rule_quoted(r, s),
                 "must be a string compatible with semver.org spec 2.0.0");
}

/* ---- what may be asked of a capacity --------------------------------------------------------- */

static bool quantity(const struct bh_rule_at *at, bh_nano *ret)
{
    return at->v && bh_adm_parse_quantity(at->v, ret);
}

static const char *shown(const struct bh_rule_at *at)
{
    return at->v ? at->v->s.p : "0";
}

static void check_values(struct bh_rule_run *r, const struct bh_rule_at *list,
                         const struct bh_rule_at *dflt, const struct bh_rule_at *max)
{
    bh_nano most = 0, want = 0, last = 0;
    bool found = false;
    size_t i = 0;

    quantity(max, &most);
    quantity(dflt, &want);
    bh_json_each(e, list->v) {
        struct bh_rule_at one = bh_rule_element(list, e, i++);
        bh_nano q = 0;
        quantity(&one, &q);
        if (i > 1 && last > q)
            bh_rule_invalid_text(r, &one, shown(&one), "values must be sorted in ascending order");
        last = q;
    }
    if (bh_tree_len(list->v) > 10) {
        fails(r, list, "Too many", bh_rule_printf(r, "%zu", bh_tree_len(list->v)),
              "must have at most 10 items");
    } else {
        i = 0;
        bh_json_each(e, list->v) {
            struct bh_rule_at one = bh_rule_element(list, e, i++);
            bh_nano q = 0;
            quantity(&one, &q);
            if (q > most)
                bh_rule_invalid_text(
                    r, &one, shown(&one),
                    bh_rule_printf(r, "option is larger than capacity value: %s", shown(max)));
            found = found || q == want;
        }
        i = 0;
        bh_json_each(e, list->v) {
            struct bh_rule_at one = bh_rule_element(list, e, i++);
            for (struct bh_json *p = list->v->c.first; p != e; p = p->next) {
                struct bh_rule_at other = bh_rule_element(list, p, 0);
                bh_nano a = 0, b = 0;
                quantity(&one, &a);
                quantity(&other, &b);
                if (bh_quantity_value(a) != bh_quantity_value(b))
                    continue;
                fails(r, &one, "Duplicate value",
                      bh_rule_printf(r, "\"%lld\"", (long long)bh_quantity_value(a)), "");
                break;
            }
        }
    }
    if (!found)
        bh_rule_invalid_text(r, list, shown(dflt),
                             "default value is not valid according to the requestPolicy");
}

static void check_multiple(struct bh_rule_run *r, const struct bh_rule_at *step,
                           const struct bh_rule_at *value, const struct bh_rule_at *min)
{
    bh_nano v = 0, m = 0, s = 0;

    quantity(value, &v);
    quantity(min, &m);
    quantity(step, &s);
    int64_t n = bh_quantity_value(s);
    if (n && (bh_quantity_value(v) - bh_quantity_value(m)) % n)
        bh_rule_invalid_text(
            r, step, shown(value),
            bh_rule_printf(r, "value is not a multiple of a given step (%s) from (%s)", shown(step),
                           shown(min)));
}

static void check_range(struct bh_rule_run *r, const struct bh_rule_at *range,
                        const struct bh_rule_at *dflt, const struct bh_rule_at *capacity)
{
    struct bh_rule_at min = bh_rule_member(range, "min"), max = bh_rule_member(range, "max"),
                      step = bh_rule_member(range, "step");
    bh_nano most = 0, want = 0, low = 0, high = 0, by = 0;

    quantity(capacity, &most);
    quantity(dflt, &want);
    if (!quantity(&min, &low)) {
        fails(r, &min, "Required value", NULL, "required when validRange is defined");
        return;
    }
    if (low > most)
        bh_rule_invalid_text(
            r, &min, shown(&min),
            bh_rule_printf(r, "min is larger than capacity value: %s", shown(capacity)));
    if (want < low)
        bh_rule_invalid_text(r, &min, shown(dflt),
                             bh_rule_printf(r, "default is less than min: %s", shown(&min)));
    if (quantity(&max, &high)) {
        if (low > high)
            bh_rule_invalid_text(r, &max, shown(&min),
                                 bh_rule_printf(r, "min is larger than max: %s", shown(&max)));
        if (high > most)
            bh_rule_invalid_text(
                r, &max, shown(&max),
                bh_rule_printf(r, "max is larger than capacity value: %s", shown(capacity)));
        if (want > high)
            bh_rule_invalid_text(r, &max, shown(dflt),
                                 bh_rule_printf(r, "default is more than max: %s", shown(&max)));
    }
    if (!quantity(&step, &by))
        return;
    if (low + by > most) {
        struct bh_buf b = {0};
        bh_quantity_format(&b, low + by, shown(&min)[strlen(shown(&min)) - 1] == 'i');
        bh_rule_invalid_text(r, &step, shown(&step),
                             bh_rule_printf(r, "one step %s is larger than capacity value: %s", b.p,
                                            shown(capacity)));
        bh_buf_fini(&b);
    }
    check_multiple(r, &step, dflt, &min);
    if (max.v)
        check_multiple(r, &step, &max, &min);
}

static bool rule_request_policy(struct bh_rule_run *r, const struct bh_rule_at *at,
                                const struct bh_rule_call *c)
{
    struct bh_rule_at capacity = bh_rule_member(at, "value"),
                      policy = bh_rule_member(at, "requestPolicy");
    struct bh_rule_at dflt = bh_rule_member(&policy, "default"),
                      values = bh_rule_member(&policy, "validValues"),
                      range = bh_rule_member(&policy, "validRange");

    (void)c;
    if (bh_tree_len(values.v) && range.v)
        return fails(r, &policy, "Forbidden", NULL,
                     "exactly one policy can be specified, cannot specify \"validValues\" and "
                     "\"validRange\" at the same time");
    if (!bh_tree_len(values.v) && !range.v)
        return true;
    if (!dflt.v)
        return fails(r, &dflt, "Required value", NULL,
                     range.v ? "required when validRange is defined"
                             : "required when validValues is defined");
    if (range.v)
        check_range(r, &range, &dflt, &capacity);
    else
        check_values(r, &values, &dflt, &capacity);
    return true;
}

const struct bh_rule bh_rules_devices[] = {
    {"device-name", rule_device_name},
    {"full-device-name", rule_full_device_name},
    {"pool-name", rule_pool_name},
    {"extended-resource", rule_extended_resource},
    {"device-expression", rule_device_expression},
    {"request-names", rule_request_names},
    {"raw-object", rule_raw_object},
    {"claim-status", rule_claim_status},
    {"slice", rule_slice},
    {"device-sizes", rule_device_sizes},
    {"device-nodes", rule_device_nodes},
    {"binding-conditions", rule_binding_conditions},
    {"one-attribute", rule_one_attribute},
    {"semver", rule_semver},
    {"request-policy", rule_request_policy},
    {0},
};
