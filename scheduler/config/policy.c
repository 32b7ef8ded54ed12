/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/policy.c - the Policy file of old (predicates and priorities), said in v1
 *
 * What each entry became is noted, with its line. Everything is listed point by point and v1's
 * defaults are switched off, as these files meant it.
 *
 * Upstream: pkg/scheduler/framework/plugins/legacy_registry.go, pkg/scheduler/factory.go
 *           (createFromPolicy), kube-scheduler/config/v1/types_legacy.go, all until 1.22.
 * Differences: LabelsPresence becomes NodeAffinity's addedAffinity (there: plugin NodeLabel).
 */
#include <errno.h>
#include <inttypes.h>

#include "common/base/opt.h"
#include "scheduler/config/config_int.h"
#include "scheduler/config/policy_tables.h"
#include "scheduler/framework/plugin.h"

#define WEIGHT_MAX (INT64_MAX / 100) /* the highest total score, by the highest score */

struct point_list {
    struct bh_plugin_ref v[40];
    unsigned n;
};
struct policy {
    struct bh_config_ctx *x;
    struct bh_arena *a;
    struct bh_field_errors errs;
    struct point_list points[BH_POINT_KEYS];
    const struct bh_json *predicates[BH_PREDICATES]; /* the entry that names it, or any non-NULL */
    const struct bh_json *priorities[BH_PRIORITIES];
    int64_t weights[BH_PRIORITIES];
    struct bh_json *presence;       /* expressions of LabelsPresence */
    const struct bh_json *strategy; /* the priority that decided NodeResourcesFit's strategy */
    struct bh_json *fit, *spread, *affinity; /* args, NULL: none */
};

static const struct bh_json by_default = {.type = BH_JSON_NULL};

/* ---- points ---------------------------------------------------------------------------------- */

static void add_at(struct policy *p, unsigned point, const char *name, int32_t weight)
{
    const struct bh_plugin *pl = bh_plugin_find(name);
    struct point_list *l = &p->points[point];

    if (!pl || !(bh_plugin_points(pl) & BH_POINT_BIT(point)))
        return;
    for (unsigned i = 0; i < l->n; i++) {
        if (bh_streq(l->v[i].name, name)) {
            l->v[i].weight = BH_MAX(l->v[i].weight, weight);
            return;
        }
    }
    if (l->n < BH_ARRAY_LEN(l->v))
        l->v[l->n++] = (struct bh_plugin_ref){.name = pl->name, .weight = weight};
}

/* With the points at which the plugin prepares for it, or follows it up. */
static void add_filter(struct policy *p, const char *name)
{
    add_at(p, BH_POINT_PRE_FILTER, name, 0);
    add_at(p, BH_POINT_FILTER, name, 0);
    add_at(p, BH_POINT_RESERVE, name, 0);
    add_at(p, BH_POINT_PRE_BIND, name, 0);
}

static void add_score(struct policy *p, const char *name, int64_t weight)
{
    add_at(p, BH_POINT_PRE_SCORE, name, 0);
    add_at(p, BH_POINT_SCORE, name, (int32_t)weight);
}

/* ---- predicates ------------------------------------------------------------------------------ */

static const struct bh_predicate *find_predicate(const char *name)
{
    if (bh_streq(name, "PodFitsPorts"))
        name = "PodFitsHostPorts";
    for (unsigned i = 0; i < BH_PREDICATES; i++)
        if (bh_streq(bh_predicates[i].name, name))
            return &bh_predicates[i];
    return NULL;
}

static unsigned count_arguments(const struct bh_json *argument, const char *const *names,
                                unsigned n)
{
    unsigned found = 0;

    for (unsigned i = 0; i < n; i++)
        found += bh_config_present(argument, names[i]) != NULL;
    return found;
}

/* All labels are there on the node, or none of them. */
static void add_presence(struct policy *p, const struct bh_json *entry, const struct bh_json *arg)
{
    bool presence = bh_json_get_bool(arg, "presence", false);

    if (!p->presence)
        p->presence = bh_json_new(p->a, BH_JSON_ARRAY);
    bh_json_each(label, bh_json_get(arg, "labels")) {
        struct bh_json *e = bh_json_new(p->a, BH_JSON_OBJECT);
        e->line = label->line;
        bh_json_set_str(p->a, e, "key", label->s.p);
        bh_json_set_str(p->a, e, "operator", presence ? "Exists" : "DoesNotExist");
        bh_json_push(p->presence, e);
    }
    bh_config_note(p->x, entry,
                   "predicate %s (LabelsPresence) became NodeAffinity's addedAffinity, which "
                   "requires the labels to be %s",
                   bh_json_get_text(entry, "name"), presence ? "there" : "absent");
}

static void read_predicate(struct policy *p, const struct bh_json *entry)
{
    static const char *const names[] = {"serviceAffinity", "labelsPresence"};
    const char *name = bh_json_get_text(entry, "name");
    const struct bh_json *arg = bh_config_present(entry, "argument");
    const struct bh_predicate *pred = find_predicate(name);
    unsigned n_args = count_arguments(arg, names, BH_ARRAY_LEN(names));

    p->errs.line = entry->line;
    if (arg && n_args != 1) {
        bh_field_error(&p->errs,
                       "exactly 1 predicate argument is required, numArgs: %u, predicate: %s",
                       n_args, name);
        return;
    }
    if (arg && bh_config_present(arg, "labelsPresence")) {
        add_presence(p, entry, bh_json_get(arg, "labelsPresence"));
    } else if (arg || (pred && pred->gone)) {
        bh_config_warn(p->x, entry,
                       "predicate %s is no longer there and nothing takes its place: it is left "
                       "out. %s",
                       name,
                       arg ? "Use podAffinity instead of ServiceAffinity" : "It had no labels");
    } else if (!pred) {
        bh_field_error(&p->errs, "Invalid configuration: Predicate type not found for %s", name);
    } else {
        p->predicates[pred - bh_predicates] = entry;
        bh_config_note(p->x, entry, "predicate %s became %s", name, pred->became);
    }
}

static void read_predicates(struct policy *p, const struct bh_json *list)
{
    if (!list)
        bh_config_note(p->x, NULL,
                       "there is no list of predicates: the defaults of Kubernetes 1.22 stand for "
                       "it");
    bh_json_each(e, list)
        read_predicate(p, e);
    for (unsigned i = 0; i < BH_PREDICATES; i++) {
        const struct bh_predicate *pred = &bh_predicates[i];
        if (list && pred->mandatory && !p->predicates[i])
            bh_config_note(p->x, NULL, "predicate %s was mandatory and is added as %s", pred->name,
                           pred->became);
        if ((!list && pred->is_default) || pred->mandatory)
            p->predicates[i] = p->predicates[i] ? p->predicates[i] : &by_default;
    }
}

/* ---- priorities ------------------------------------------------------------------------------ */

static const struct bh_priority *find_priority(const char *name)
{
    if (bh_streq(name, "ServiceSpreadingPriority"))
        name = "SelectorSpreadPriority";
    for (unsigned i = 0; i < BH_PRIORITIES; i++)
        if (bh_streq(bh_priorities[i].name, name))
            return &bh_priorities[i];
    return NULL;
}

/* NodeResourcesFit has one strategy only. */
static bool claim_strategy(struct policy *p, const struct bh_json *entry, const char *type)
{
    if (p->strategy) {
        bh_field_error(&p->errs,
                       "priorities %s and %s cannot be translated together: NodeResourcesFit has "
                       "one scoring strategy",
                       bh_json_get_text(p->strategy, "name"), bh_json_get_text(entry, "name"));
        return false;
    }
    p->strategy = entry;
    p->fit = bh_json_new(p->a, BH_JSON_OBJECT);
    p->fit->line = entry->line;
    bh_json_set_str(p->a, bh_json_obj_at(p->a, p->fit, "scoringStrategy"), "type", type);
    return true;
}

static void read_ratio(struct policy *p, const struct bh_json *entry, const struct bh_json *arg)
{
    if (!claim_strategy(p, entry, "RequestedToCapacityRatio"))
        return;
    struct bh_json *s = bh_json_get(p->fit, "scoringStrategy");
    const struct bh_json *shape = bh_config_present(arg, "shape");
    const struct bh_json *resources = bh_config_present(arg, "resources");
    struct bh_json *ratio = bh_json_obj_at(p->a, s, "requestedToCapacityRatio");

    if (shape)
        bh_json_set(p->a, ratio, "shape", bh_json_clone(p->a, shape));
    if (resources)
        bh_json_set(p->a, s, "resources", bh_json_clone(p->a, resources));
}

static void use_priority(struct policy *p, const struct bh_priority *prio,
                         const struct bh_json *entry, int64_t weight)
{
    unsigned i = (unsigned)(prio - bh_priorities);

    if (prio->strategy && !bh_streq(prio->strategy, "RequestedToCapacityRatio"))
        (void)claim_strategy(p, entry, prio->strategy);
    p->priorities[i] = entry;
    p->weights[i] = weight;
    if (entry != &by_default)
        bh_config_note(p->x, entry, "priority %s became %s, weight %" PRId64,
                       bh_json_get_text(entry, "name"), prio->became, weight);
}

static bool check_weight(struct policy *p, const char *name, int64_t weight)
{
    if (weight > 0 && weight < WEIGHT_MAX && weight <= INT32_MAX)
        return true;
    bh_field_error(&p->errs,
                   "priority %s should have a positive weight applied to it or it has overflown",
                   name);
    return false;
}

static void read_priority(struct policy *p, const struct bh_json *entry)
{
    static const char *const names[] = {"serviceAntiAffinity", "labelPreference",
                                        "requestedToCapacityRatioArguments"};
    const char *name = bh_json_get_text(entry, "name");
    const struct bh_json *arg = bh_config_present(entry, "argument");
    const struct bh_json *ratio = bh_config_present(arg, names[2]);
    const struct bh_priority *prio =
        find_priority(ratio ? "RequestedToCapacityRatioPriority" : name);
    unsigned n_args = count_arguments(arg, names, BH_ARRAY_LEN(names));
    int64_t weight = bh_json_get_i64(entry, "weight", 0);

    p->errs.line = entry->line;
    if (!check_weight(p, name, weight))
        return;
    if (arg && n_args != 1) {
        bh_field_error(&p->errs,
                       "exactly 1 priority argument is required, numArgs: %u, priority: %s", n_args,
                       name);
    } else if (bh_streq(name, "EqualPriority")) {
        bh_config_note(p->x, entry, "priority EqualPriority gave every node the same: left out");
    } else if ((arg && !ratio) || (prio && !prio->became)) {
        bh_config_warn(p->x, entry,
                       "priority %s is no longer there and nothing takes its place: it is left out",
                       name);
    } else if (!prio ||
               (prio->strategy && !ratio && bh_streq(prio->strategy, "RequestedToCapacityRatio"))) {
        bh_field_error(&p->errs, "Invalid configuration: Priority type not found for %s", name);
    } else {
        if (ratio)
            read_ratio(p, entry, ratio);
        use_priority(p, prio, entry, weight);
    }
}

static void read_priorities(struct policy *p, const struct bh_json *list)
{
    if (!list)
        bh_config_note(p->x, NULL,
                       "there is no list of priorities: the defaults of Kubernetes 1.22 stand for "
                       "it");
    bh_json_each(e, list)
        read_priority(p, e);
    for (unsigned i = 0; i < BH_PRIORITIES && !list; i++)
        if (bh_priorities[i].default_weight)
            use_priority(p, &bh_priorities[i], &by_default, bh_priorities[i].default_weight);
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void collect_points(struct policy *p)
{
    bool system = false, even = false;

    add_at(p, BH_POINT_QUEUE_SORT, "PrioritySort", 0);
    for (unsigned i = 0; i < BH_PREDICATES; i++)
        for (unsigned k = 0; p->predicates[i] && bh_predicates[i].plugins[k]; k++)
            add_filter(p, bh_predicates[i].plugins[k]);
    if (p->presence)
        add_filter(p, "NodeAffinity");
    for (unsigned i = 0; i < BH_PRIORITIES; i++) {
        if (!p->priorities[i])
            continue;
        add_score(p, bh_priorities[i].plugin, p->weights[i]);
        system |= bh_streq(bh_priorities[i].name, "SelectorSpreadPriority");
        even |= bh_streq(bh_priorities[i].plugin, "PodTopologySpread");
    }
    if (even && !system) {
        p->spread = bh_json_new(p->a, BH_JSON_OBJECT);
        bh_json_set_str(p->a, p->spread, "defaultingType", "List");
    }
    /* What did not exist then and pods need today. */
    add_at(p, BH_POINT_PRE_ENQUEUE, "SchedulingGates", 0);
    add_at(p, BH_POINT_PRE_ENQUEUE, "DynamicResources", 0);
    add_at(p, BH_POINT_PRE_ENQUEUE, "DefaultPreemption", 0);
    add_at(p, BH_POINT_POST_FILTER, "DynamicResources", 0);
    add_at(p, BH_POINT_POST_FILTER, "DefaultPreemption", 0);
    add_filter(p, "DynamicResources");
    add_score(p, "DynamicResources", 2);
    add_filter(p, "NodeDeclaredFeatures");
    add_at(p, BH_POINT_BIND, "DefaultBinder", 0);
}

static void put_args(struct policy *p, struct bh_json *profile, const char *plugin,
                     struct bh_json *args)
{
    struct bh_json *list = bh_json_get(profile, "pluginConfig"), *e;

    if (!args)
        return;
    if (!list)
        list = bh_json_set(p->a, profile, "pluginConfig", bh_json_new(p->a, BH_JSON_ARRAY));
    e = bh_json_new(p->a, BH_JSON_OBJECT);
    e->line = args->line;
    bh_json_set_str(p->a, e, "name", plugin);
    bh_json_set(p->a, e, "args", args);
    bh_json_push(list, e);
}

static struct bh_json *added_affinity(struct policy *p)
{
    struct bh_arena *a = p->a;

    if (!p->presence)
        return NULL;
    struct bh_json *args = bh_json_new(a, BH_JSON_OBJECT), *term = bh_json_new(a, BH_JSON_OBJECT);
    struct bh_json *required = bh_json_obj_at(a, bh_json_obj_at(a, args, "addedAffinity"),
                                              "requiredDuringSchedulingIgnoredDuringExecution");
    bh_json_set(a, term, "matchExpressions", p->presence);
    bh_json_push(bh_json_set(a, required, "nodeSelectorTerms", bh_json_new(a, BH_JSON_ARRAY)),
                 term);
    return args;
}

/* Extenders had another spelling of one field and took the timeout in nanoseconds. */
static struct bh_json *translate_extenders(struct policy *p, const struct bh_json *list)
{
    struct bh_json *out = bh_json_clone(p->a, list);

    bh_json_each(e, out) {
        struct bh_json *https = bh_json_get(e, "enableHttps");
        const struct bh_json *timeout = bh_json_get(e, "httpTimeout");
        char text[32];
        int64_t ns;
        if (https) {
            (void)bh_json_remove(e, https);
            bh_json_set(p->a, e, "enableHTTPS", https);
        }
        if (timeout && bh_json_i64(timeout, &ns)) {
            uint32_t line = timeout->line;
            bh_format_duration_ns(ns, text);
            bh_json_set_str(p->a, e, "httpTimeout", text)->line = line;
        }
    }
    return out;
}

static struct bh_json *make_tree(struct policy *p, const struct bh_json *policy)
{
    const struct bh_json *extenders = bh_config_present(policy, "extenders");
    struct bh_arena *a = p->a;
    struct bh_json *tree = bh_json_new(a, BH_JSON_OBJECT), *profile;

    tree->line = policy->line;
    profile = bh_json_new(a, BH_JSON_OBJECT);
    bh_json_push(bh_json_set(a, tree, "profiles", bh_json_new(a, BH_JSON_ARRAY)), profile);
    struct bh_json *plugins = bh_json_obj_at(a, profile, "plugins");
    bh_config_push_plugin(a, bh_json_obj_at(a, plugins, "multiPoint"), "disabled", "*", 0, 0);
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++)
        for (unsigned i = 0; i < p->points[pt].n; i++)
            bh_config_push_plugin(a, bh_json_obj_at(a, plugins, bh_point_names[pt].key), "enabled",
                                  p->points[pt].v[i].name, p->points[pt].v[i].weight, 0);
    put_args(p, profile, "InterPodAffinity", p->affinity);
    put_args(p, profile, "NodeAffinity", added_affinity(p));
    put_args(p, profile, "NodeResourcesFit", p->fit);
    put_args(p, profile, "PodTopologySpread", p->spread);
    if (extenders)
        bh_json_set(a, tree, "extenders", translate_extenders(p, extenders));
    return tree;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_rest(struct policy *p, const struct bh_json *policy)
{
    const struct bh_json *hard = bh_config_present(policy, "hardPodAffinitySymmetricWeight");
    int64_t weight = bh_json_get_i64(policy, "hardPodAffinitySymmetricWeight", 0);

    p->errs.line = hard ? hard->line : 0;
    if (weight < 0 || weight > 100) {
        bh_field_error(&p->errs,
                       "hardPodAffinitySymmetricWeight: Invalid value: %" PRId64
                       ": not in valid range [0-100]",
                       weight);
    } else if (weight) {
        p->affinity = bh_json_new(p->a, BH_JSON_OBJECT);
        p->affinity->line = hard->line;
        bh_json_set_i64(p->a, p->affinity, "hardPodAffinityWeight", weight);
        bh_config_note(p->x, hard,
                       "hardPodAffinitySymmetricWeight became hardPodAffinityWeight of "
                       "InterPodAffinity");
    }
    if (bh_json_get_bool(policy, "alwaysCheckAllPredicates", false))
        bh_config_warn(p->x, bh_json_get(policy, "alwaysCheckAllPredicates"),
                       "alwaysCheckAllPredicates has no counterpart: a node's filters end with the "
                       "first that rejects it. Decisions are the same, messages name one reason a "
                       "node");
}

static int check_types(struct bh_config_ctx *x, const struct bh_json *policy)
{
    struct bh_field_reader r = {.strict = &x->strict, .package = "v1", .repeats = x->json};
    struct bh_json at = {0};

    if (bh_fields_check(&r, policy, bh_policy_schema, "Policy") < 0) {
        at.line = r.error_line;
        return bh_config_fail(x, &at, "%s", r.error);
    }
    bh_json_each(e, bh_json_get(policy, "extenders")) {
        const struct bh_json *t = bh_config_present(e, "httpTimeout");
        int64_t ns;
        if (t && !bh_json_i64(t, &ns) &&
            (t->type != BH_JSON_STRING || bh_parse_duration_ns(t->s.p, &ns) < 0))
            return bh_config_fail(x, t,
                                  "json: cannot unmarshal %s into Go struct field "
                                  "LegacyExtender.extenders.httpTimeout of type time.Duration",
                                  bh_field_json_type(t));
    }
    return 0;
}

int bh_config_policy(struct bh_config_ctx *x, const struct bh_json *policy, struct bh_json **ret)
{
    int rc = check_types(x, policy);

    if (rc >= 0)
        rc = bh_config_check_strict(x);
    if (rc < 0)
        return rc;
    struct policy *p = bh_arena_new(x->a, struct policy);
    p->x = x;
    p->a = x->a;
    p->errs.a = x->a;
    bh_config_warn(x, bh_json_get(policy, "kind"),
                   "Policy files were removed from kube-scheduler in 1.23; this is what it became. "
                   "`berth config show -o yaml` prints it as v1");
    read_predicates(p, bh_config_present(policy, "predicates"));
    read_priorities(p, bh_config_present(policy, "priorities"));
    read_rest(p, policy);
    if (p->errs.n)
        return bh_config_fail_all(x, policy, "", &p->errs, false);
    collect_points(p);
    *ret = make_tree(p, policy);
    return 0;
}
