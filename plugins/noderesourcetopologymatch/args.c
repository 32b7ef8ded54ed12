/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/args.c - NodeResourceTopologyMatch: arguments, instances, the file
 *
 * Upstream:   sigs.k8s.io/scheduler-plugins, pkg/noderesourcetopology and apis/config.
 * Difference: cache.informerMode is checked and not used: the watcher sees what it sees.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nrt.h"

#define PERIOD_MAX 86400

const struct berth_host *nrt_host;

/* What is one of a few words, the default first, in the order of nrt.h's enumerations. */
enum { STRATEGY, DETECT, METHOD, INFORMER, SCOPE, PREEMPTION, CHOICES };
static const struct {
    const char *path, *what, *name[4];
} choices[CHOICES] = {
    [STRATEGY] = {"scoringStrategy.type",
                  "invalid ScoringStrategyType",
                  {"LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"}},
    [DETECT] = {"cache.foreignPodsDetect",
                "None, All or OnlyExclusiveResources is needed",
                {"All", "None", "OnlyExclusiveResources"}},
    [METHOD] = {"cache.resyncMethod",
                "Autodetect, All or OnlyExclusiveResources is needed",
                {"Autodetect", "All", "OnlyExclusiveResources"}},
    [INFORMER] = {"cache.informerMode", "Shared or Dedicated is needed", {"Dedicated", "Shared"}},
    [SCOPE] = {"cache.resyncScope", "All or OnlyResources is needed", {"All", "OnlyResources"}},
    [PREEMPTION] = {"preemptionMode", "invalid PreemptionMode", {"Disabled", "Enabled"}},
};

/* NULL: it is not there, or null. */
static const struct berth_value *get(const struct berth_value *v, const char *name)
{
    const struct berth_value *m =
        v ? nrt_host->values->get(v, (struct berth_str){name, strlen(name)}) : NULL;

    return nrt_host->values->type(m) == BERTH_NULL ? NULL : m;
}

static struct berth_str text(const struct berth_value *v, const char *name)
{
    const struct berth_value *m = get(v, name);

    return m ? nrt_host->values->text(m) : (struct berth_str){"", 0};
}

static void complain(struct berth_errors *errors, const char *path, const char *what)
{
    nrt_host->values->error(errors, (struct berth_str){path, strlen(path)},
                            (struct berth_str){what, strlen(what)});
}

/* ---- checking -------------------------------------------------------------------------------- */

/* An object or a list, if it is given at all; what it is not is told. */
static const struct berth_value *get_all(const struct berth_value *v, const char *name,
                                         uint32_t type, const char *path,
                                         struct berth_errors *errors)
{
    const struct berth_value *m = get(v, name);

    if (!m || nrt_host->values->type(m) == type)
        return m;
    complain(errors, path, type == BERTH_ARRAY ? "a list is needed" : "an object is needed");
    return NULL;
}

/* Its number; -1: it is another word, or none. */
static int chosen(const struct berth_value *v, unsigned which)
{
    struct berth_str s = v ? nrt_host->values->text(v) : (struct berth_str){"", 0};

    for (int i = 0; i < 4 && choices[which].name[i]; i++)
        if (nrt_is(s, choices[which].name[i]))
            return i;
    return -1;
}

static const struct berth_value *choice(const struct berth_value *args, unsigned which)
{
    const char *path = choices[which].path;
    const struct berth_value *v =
        nrt_host->values->path(args, (struct berth_str){path, strlen(path)});

    return nrt_host->values->type(v) == BERTH_NULL ? NULL : v;
}

/* A strategy has to have a type. */
static void check_choices(const struct berth_value *args, int has_strategy,
                          struct berth_errors *errors)
{
    char what[256];

    for (unsigned i = 0; i < CHOICES; i++) {
        const struct berth_value *v = choice(args, i);
        struct berth_str s = v ? nrt_host->values->text(v) : (struct berth_str){"", 0};
        snprintf(what, sizeof what, "Invalid value: \"%.*s\": %s", (int)(s.n < 100 ? s.n : 100),
                 s.n ? s.p : "", choices[i].what);
        if ((v || (i == STRATEGY && has_strategy)) && chosen(v, i) < 0)
            complain(errors, choices[i].path, what);
    }
}

static void check_weights(const struct berth_value *list, struct berth_errors *errors)
{
    const struct berth_host_values *h = nrt_host->values;
    unsigned n = 0;

    for (const struct berth_value *r = list ? h->first(list) : NULL; r; r = h->next(r), n++) {
        char path[64];
        int64_t weight;
        snprintf(path, sizeof path, "scoringStrategy.resources[%u]", n);
        if (!text(r, "name").n)
            complain(errors, path, "an object with name and weight is needed");
        snprintf(path, sizeof path, "scoringStrategy.resources[%u].", n);
        berth_check_fields(h, r, path, "name weight", errors);
        snprintf(path, sizeof path, "scoringStrategy.resources[%u].weight", n);
        if (get(r, "weight") && !h->integer(get(r, "weight"), &weight))
            complain(errors, path, "an integer is needed");
    }
    if (n > NRT_WEIGHTS)
        complain(errors, "scoringStrategy.resources", "at most 32 are allowed");
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *h = nrt_host->values;
    const struct berth_value *strategy =
        get_all(args, "scoringStrategy", BERTH_OBJECT, "scoringStrategy", errors);
    const struct berth_value *cache = get_all(args, "cache", BERTH_OBJECT, "cache", errors);
    int64_t period = 0;
    int32_t discard;

    berth_check_fields(
        h, args, "",
        "scoringStrategy cacheResyncPeriodSeconds discardReservedNodes cache preemptionMode",
        errors);
    berth_check_fields(h, strategy, "scoringStrategy.", "type resources", errors);
    check_weights(get_all(strategy, "resources", BERTH_ARRAY, "scoringStrategy.resources", errors),
                  errors);
    berth_check_fields(h, cache, "cache.",
                       "foreignPodsDetect resyncMethod informerMode resyncScope", errors);
    check_choices(args, strategy != NULL, errors);
    if (get(args, "discardReservedNodes") &&
        !h->boolean(get(args, "discardReservedNodes"), &discard))
        complain(errors, "discardReservedNodes", "true or false is needed");
    if (get(args, "cacheResyncPeriodSeconds") &&
        !h->integer(get(args, "cacheResyncPeriodSeconds"), &period))
        complain(errors, "cacheResyncPeriodSeconds", "an integer is needed");
    if (period > PERIOD_MAX)
        complain(errors, "cacheResyncPeriodSeconds", "at most 86400 are allowed");
}

/* ---- instances ------------------------------------------------------------------------------- */

static unsigned read_choice(const struct berth_value *args, unsigned which)
{
    int i = chosen(choice(args, which), which);

    return i < 0 ? 0 : (unsigned)i;
}

/* discardReservedNodes wins, as upstream. */
static void read_cache(struct nrt_instance *in, const struct berth_value *args)
{
    int64_t period = 0;

    if (get(args, "cacheResyncPeriodSeconds"))
        (void)nrt_host->values->integer(get(args, "cacheResyncPeriodSeconds"), &period);
    in->cached = period > 0 && !in->discard_reserved;
    in->preempts = in->cached && read_choice(args, PREEMPTION);
    in->period = period * 1000000000;
    in->detect = (enum nrt_detect)read_choice(args, DETECT);
    in->method = (enum nrt_method)read_choice(args, METHOD);
    in->scope = (enum nrt_scope)read_choice(args, SCOPE);
}

static void read_args(struct nrt_instance *in, const struct berth_value *args)
{
    const struct berth_host_values *h = nrt_host->values;
    const struct berth_value *list = get(get(args, "scoringStrategy"), "resources");
    int32_t discard = 0;

    in->strategy = (enum nrt_strategy)read_choice(args, STRATEGY);
    for (const struct berth_value *r = list ? h->first(list) : NULL;
         r && in->n_weights < NRT_WEIGHTS; r = h->next(r)) {
        int64_t weight = 1;
        if (get(r, "weight"))
            (void)h->integer(get(r, "weight"), &weight);
        in->weight[in->n_weights++] = (struct nrt_amount){
            nrt_host->base->intern(in->home, text(r, "name")), weight < 1 ? 1 : weight};
    }
    if (get(args, "discardReservedNodes"))
        (void)h->boolean(get(args, "discardReservedNodes"), &discard);
    in->discard_reserved = discard;
    read_cache(in, args);
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct nrt_instance *in = calloc(1, sizeof *in);

    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    in->home = home;
    in->now = -1;
    in->cpu = nrt_host->base->intern(home, BERTH_STR("cpu"));
    in->memory = nrt_host->base->intern(home, BERTH_STR("memory"));
    in->storage = nrt_host->base->intern(home, BERTH_STR("ephemeral-storage"));
    read_args(in, args);
    if (in->cached && !(in->waker = nrt_waker_new(home, in->period))) {
        why->reason = BERTH_STR("a thread cannot be started");
        free(in);
        return BERTH_ERROR;
    }
    *ret = in;
    return BERTH_SUCCESS;
}

static void destroy(void *self)
{
    struct nrt_instance *in = self;

    nrt_waker_free(in->waker);
    nrt_topology_fini(in);
    free(in->reserved);
    free(in->scratch);
    free(in->dirty);
    free(in->hash);
    free(in);
}

/* ---- before filter ----------------------------------------------------------------- */

static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names, uint64_t *n,
                          struct berth_why *why)
{
    const struct nrt_pod *pod = nrt_pod(self, c);
    void **state = nrt_host->base->filter_state(c);

    (void)names;
    (void)n;
    *state = pod ? nrt_new_state(c, pod) : NULL;
    if (*state)
        return BERTH_SUCCESS;
    why->reason = BERTH_STR("out of memory");
    return BERTH_ERROR;
}

static const struct berth_kind kinds[] = {
    {{"topology.node.k8s.io", 20}, {"v1alpha2", 8}, {"noderesourcetopologies", 22}, 0, 0}};
static const struct berth_event events[] = {
    {BERTH_ON_POD, BERTH_DELETE},
    {BERTH_ON_NODE, BERTH_ADD | BERTH_NODE_ALLOCATABLE},
    {BERTH_ON_KIND(0), BERTH_ADD | BERTH_UPDATE},
};
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .flags = BERTH_STANDS_ALONE,
    .name = {"NodeResourceTopologyMatch", 25},
    /* Of SUMS nothing is asked: a node whose pods changed is to be looked at anew, for what is reserved
     * there. */
    .reads = BERTH_READS_NODE | BERTH_READS_SUMS | BERTH_READS_OBJECTS,
    .normal = BERTH_NORMAL_NONE,
    .events = events,
    .n_events = sizeof events / sizeof *events,
    .check_args = check_args,
    .create = create,
    .destroy = destroy,
    .epoch = nrt_epoch,
    .pre_filter = pre_filter,
    .change_pod = nrt_change_pod,
    .clone_state = nrt_clone_state,
    .filter = nrt_filter,
    .score = nrt_score,
    .reserve = nrt_reserve,
    .unreserve = nrt_unreserve,
    .post_bind = nrt_post_bind,
    .kinds = kinds,
    .n_kinds = 1,
};
BERTH_NOTE("NodeResourceTopologyMatch", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h, objects) || !BERTH_HAS(h->nodes, changed) ||
        !BERTH_HAS(h->pods, scheduler_name) || !BERTH_HAS(h->pods, container_name))
        return 1;
    nrt_host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
