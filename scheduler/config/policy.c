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
#include "scheduler/framework/plugin.h"

#define RATIO         "RequestedToCapacityRatio" /* a strategy */
#define SYSTEM_SPREAD "SelectorSpreadPriority"
#define WEIGHT_MAX    (INT64_MAX / 100) /* the highest total score, by the highest score */

struct policy {
    struct bh_config_ctx *x;
    struct bh_arena *a;
    struct bh_field_errors errs;
    struct bh_json *plugins;                       /* of the profile */
    const struct bh_json *predicates, *priorities; /* of defaults.data */
    struct bh_json *used, *weights; /* of those that count: predicate, priority -> its weight */
    struct bh_json *presence;       /* expressions of LabelsPresence */
    const struct bh_json *strategy; /* the priority that decided NodeResourcesFit's strategy */
    struct bh_json *fit, *spread, *affinity; /* args, NULL: none */
};

static const struct bh_json by_default = {.type = BH_JSON_NULL};

/* ---- points ---------------------------------------------------------------------------------- */

static void add_at(struct policy *p, unsigned point, const char *name, int32_t weight)
{
    const struct bh_plugin *pl = bh_plugin_find(name);

    if (!pl || !(bh_plugin_points(pl) & BH_POINT_BIT(point)))
        return;
    struct bh_json *set = bh_json_obj_at(p->a, p->plugins, bh_point_names[point]);
    struct bh_json *there = bh_config_named(bh_json_get(set, "enabled"), name);
    if (!there)
        bh_config_push_plugin(p->a, set, "enabled", pl->name, weight, 0);
    else if (bh_json_get_i64(there, "weight", 0) < weight)
        bh_json_set_i64(p->a, there, "weight", weight);
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
        struct bh_json *e = bh_json_append(p->a, p->presence, "key: %s, operator: %s", label->s.p,
                                           presence ? "Exists" : "DoesNotExist");
        e->line = label->line;
    }
    bh_config_note(p->x, entry,
                   "predicate %s (LabelsPresence) became NodeAffinity's addedAffinity, which "
                   "requires the labels to be %s",
                   bh_json_get_text(entry, "name"), presence ? "there" : "absent");
}

/* What a predicate or priority became, for people. */
static const char *became(const struct bh_json *it, const char *plugins)
{
    const char *s = bh_json_get_text(it, "became");
    return *s ? s : bh_json_get_text(it, plugins);
}

static void read_predicate(struct policy *p, const struct bh_json *entry)
{
    static const char *const names[] = {"serviceAffinity", "labelsPresence"};
    const char *name = bh_json_get_text(entry, "name");
    const struct bh_json *arg = bh_config_present(entry, "argument");
    const struct bh_json *pred =
        bh_json_get(p->predicates, bh_streq(name, "PodFitsPorts") ? "PodFitsHostPorts" : name);
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
    } else if (arg || (pred && !pred->c.n)) {
        bh_config_warn(p->x, entry,
                       "predicate %s is no longer there and nothing takes its place: it is left "
                       "out. %s",
                       name,
                       arg ? "Use podAffinity instead of ServiceAffinity" : "It had no labels");
    } else if (!pred) {
        bh_field_error(&p->errs, "Invalid configuration: Predicate type not found for %s", name);
    } else {
        bh_json_set_bool(p->a, p->used, pred->key.p, true);
        bh_config_note(p->x, entry, "predicate %s became %s", name, became(pred, "plugins"));
    }
}

/* ---- priorities ------------------------------------------------------------------------------ */

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
    p->fit = bh_json_make(p->a, "scoringStrategy: {type: %s}", type);
    p->fit->line = entry->line;
    return true;
}

static void use_priority(struct policy *p, const struct bh_json *prio, const struct bh_json *entry,
                         int64_t weight)
{
    const char *strategy = bh_json_get_text(prio, "strategy");

    if (*strategy && !bh_streq(strategy, RATIO))
        (void)claim_strategy(p, entry, strategy);
    bh_json_set_i64(p->a, p->weights, prio->key.p, weight);
    if (entry != &by_default)
        bh_config_note(p->x, entry, "priority %s became %s%s, weight %" PRId64,
                       bh_json_get_text(entry, "name"),
                       *strategy ? "NodeResourcesFit with the strategy " : "",
                       *strategy ? strategy : became(prio, "plugin"), weight);
}

static struct bh_json *copy_of(struct policy *p, const struct bh_json *o, const char *key)
{
    const struct bh_json *v = bh_config_present(o, key);
    return v ? bh_json_clone(p->a, v) : NULL;
}

static void read_priority(struct policy *p, const struct bh_json *entry)
{
    static const char *const names[] = {"serviceAntiAffinity", "labelPreference",
                                        "requestedToCapacityRatioArguments"};
    const char *name = bh_json_get_text(entry, "name");
    const struct bh_json *arg = bh_config_present(entry, "argument");
    const struct bh_json *ratio = bh_config_present(arg, names[2]);
    const struct bh_json *prio =
        bh_json_get(p->priorities, ratio                                        ? RATIO "Priority"
                                   : bh_streq(name, "ServiceSpreadingPriority") ? SYSTEM_SPREAD
                                                                                : name);
    unsigned n_args = count_arguments(arg, names, BH_ARRAY_LEN(names));
    int64_t weight = bh_json_get_i64(entry, "weight", 0);

    p->errs.line = entry->line;
    if (weight <= 0 || weight >= WEIGHT_MAX || weight > INT32_MAX) {
        bh_field_error(
            &p->errs, "priority %s should have a positive weight applied to it or it has overflown",
            name);
    } else if (arg && n_args != 1) {
        bh_field_error(&p->errs,
                       "exactly 1 priority argument is required, numArgs: %u, priority: %s", n_args,
                       name);
    } else if (bh_streq(name, "EqualPriority")) {
        bh_config_note(p->x, entry, "priority EqualPriority gave every node the same: left out");
    } else if ((arg && !ratio) || (prio && !prio->c.n)) {
        bh_config_warn(p->x, entry,
                       "priority %s is no longer there and nothing takes its place: it is left out",
                       name);
    } else if (!prio || (!ratio && bh_streq(bh_json_get_text(prio, "strategy"), RATIO))) {
        bh_field_error(&p->errs, "Invalid configuration: Priority type not found for %s", name);
    } else {
        if (ratio && claim_strategy(p, entry, RATIO))
            bh_json_add(p->a, p->fit,
                        "scoringStrategy: {requestedToCapacityRatio: {shape?: %p}, resources?: %p}",
                        copy_of(p, ratio, "shape"), copy_of(p, ratio, "resources"));
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
    bh_json_each(prio, list ? NULL : p->priorities) {
        int64_t weight = bh_json_get_i64(prio, "weight", 0);
        if (weight)
            use_priority(p, prio, &by_default, weight);
    }
}

/* ---- the tree -------------------------------------------------------------------------------- */

static void collect_points(struct policy *p)
{
    bool system = bh_json_get(p->weights, SYSTEM_SPREAD);
    bool even = bh_json_get(p->weights, "EvenPodsSpreadPriority");

    add_at(p, BH_POINT_QUEUE_SORT, "PrioritySort", 0);
    bh_json_each(pred, p->predicates) {
        char *names = bh_arena_strdup(p->a, bh_json_get_text(pred, "plugins")), *save;
        if (bh_json_get(p->used, pred->key.p))
            for (char *s = strtok_r(names, " ", &save); s; s = strtok_r(NULL, " ", &save))
                add_filter(p, s);
    }
    if (p->presence)
        add_filter(p, "NodeAffinity");
    bh_json_each(prio, p->priorities) {
        int64_t weight = bh_json_get_i64(p->weights, prio->key.p, 0);
        if (weight)
            add_score(p, bh_json_get_text(prio, "plugin"), weight);
    }
    if (even && !system)
        p->spread = bh_json_make(p->a, "defaultingType: List");
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
    if (!args)
        return;
    struct bh_json *list = bh_json_list_at(p->a, profile, "pluginConfig");
    bh_json_append(p->a, list, "name: %s, args: %p", plugin, args)->line = args->line;
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
    struct bh_json *tree = bh_json_make(a, "profiles: [{plugins: %p}]", p->plugins);
    struct bh_json *profile = bh_json_get(tree, "profiles")->c.first;

    tree->line = policy->line;
    put_args(p, profile, "InterPodAffinity", p->affinity);
    if (p->presence)
        put_args(p, profile, "NodeAffinity",
                 bh_json_make(a,
                              "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                              "{nodeSelectorTerms: [{matchExpressions: %p}]}}",
                              p->presence));
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
        p->affinity = bh_json_make(p->a, "hardPodAffinityWeight: %ld", weight);
        p->affinity->line = hard->line;
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

    if (bh_fields_check(&r, policy, bh_config_schema(x->a, x->version, "Policy"), "Policy") < 0) {
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
    *p = (struct policy){
        .x = x,
        .a = x->a,
        .errs = {.a = x->a},
        .predicates = bh_json_get(x->defaults, "predicates"),
        .priorities = bh_json_get(x->defaults, "priorities"),
        .plugins = bh_json_new(x->a, BH_JSON_OBJECT),
        .used = bh_json_new(x->a, BH_JSON_OBJECT),
        .weights = bh_json_new(x->a, BH_JSON_OBJECT),
    };
    bh_config_warn(x, bh_json_get(policy, "kind"),
                   "Policy files were removed from kube-scheduler in 1.23; this is what it became. "
                   "`berth config show -o yaml` prints it as v1");
    const struct bh_json *list = bh_config_present(policy, "predicates");
    if (!list)
        bh_config_note(p->x, NULL,
                       "there is no list of predicates: the defaults of Kubernetes 1.22 stand for "
                       "it");
    bh_json_each(e, list)
        read_predicate(p, e);
    bh_json_each(pred, p->predicates) {
        bool mandatory = bh_json_get_bool(pred, "mandatory", false);
        if (list && mandatory && !bh_json_get(p->used, pred->key.p))
            bh_config_note(p->x, NULL, "predicate %s was mandatory and is added as %s", pred->key.p,
                           became(pred, "plugins"));
        if (mandatory || (!list && bh_json_get_bool(pred, "default", false)))
            bh_json_set_bool(p->a, p->used, pred->key.p, true);
    }
    read_priorities(p, bh_config_present(policy, "priorities"));
    read_rest(p, policy);
    if (p->errs.n)
        return bh_config_fail_all(x, policy, "", &p->errs, false);
    collect_points(p);
    *ret = make_tree(p, policy);
    return 0;
}
