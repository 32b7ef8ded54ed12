/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/capacityscheduling/capacity_scheduling.c - namespaces that lend each other what they do not use
 *
 * Upstream: scheduler-plugins, pkg/capacityscheduling; what differs stands in README.md.
 *
 * PreFilter's verdict is idle()'s, too: a pod that the quotas let pass is decided about as if the plugin
 * was not there, and takes the fast path.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quota.h"

const struct berth_host *cs_host;

/* ---- arguments ------------------------------------------------------------------------------- */

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = cs_host->values;

    for (const struct berth_value *m = v->first(args); m; m = v->next(m))
        v->error(errors, v->key(m), BERTH_STR("there is no such argument: none is needed"));
}

static void destroy(void *self)
{
    cs_usage_fini(self);
    free(self);
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct cs_instance *in;

    (void)args;
    if (!cs_host->preemption || !cs_host->pods->nominated || !cs_host->columns->changed) {
        why->reason =
            BERTH_STR("it needs the queue's nominations and preemption, which this Berth does not "
                      "have");
        return BERTH_ERROR;
    }
    in = calloc(1, sizeof *in);
    if (!in)
        return cs_no_memory(why);
    in->home = home;
    cs_resource(in, cs_host->base->intern(home, BERTH_STR("cpu")));
    cs_resource(in, cs_host->base->intern(home, BERTH_STR("memory")));
    cs_resource(in, cs_host->base->intern(home, BERTH_STR("ephemeral-storage")));
    *ret = in;
    return BERTH_SUCCESS;
}

/* ---- PreFilter ------------------------------------------------------------------------------- */

enum verdict { PASSES, OVER_MAX, OVER_TOTAL_MIN, NO_MEMORY };

static enum verdict judge(struct cs_instance *in, struct berth_call *c)
{
    struct cs_pod p;

    if (!cs_current(in, c) || !cs_pod_at_hand(in, c, &p))
        return NO_MEMORY;
    if (!in->ns[p.ns].has_quota)
        return PASSES;
    return cs_over_max_with(in, p.ns, &p.with_own)   ? OVER_MAX
           : cs_total_over_min_with(in, &p.with_all) ? OVER_TOTAL_MIN
                                                     : PASSES;
}

static int32_t idle(void *self, struct berth_call *c)
{
    return judge(self, c) == PASSES;
}

static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names, uint64_t *n,
                          struct berth_why *why)
{
    const struct berth_host_pods *h = cs_host->pods;
    enum verdict verdict = judge(self, c);

    (void)names, (void)n;
    if (verdict == PASSES)
        return BERTH_SUCCESS;
    struct berth_str ns = h->namespace_(c, h->current(c)), name = h->name(c, h->current(c));
    uint64_t bytes = 2 * ns.n + name.n + 128;
    char *text = verdict == NO_MEMORY ? NULL : cs_host->base->alloc(c, bytes);
    if (!text)
        return cs_no_memory(why);
    int len = verdict == OVER_MAX
                  ? snprintf(text, bytes,
                             "Pod %.*s/%.*s is rejected in PreFilter because ElasticQuota %.*s is "
                             "more than Max",
                             (int)ns.n, ns.p, (int)name.n, name.p, (int)ns.n, ns.p)
                  : snprintf(text, bytes,
                             "Pod %.*s/%.*s is rejected in PreFilter because total ElasticQuota "
                             "used is more than min",
                             (int)ns.n, ns.p, (int)name.n, name.p);
    why->reason = (struct berth_str){text, (uint64_t)len};
    return BERTH_UNSCHEDULABLE;
}

/* Profiles of the original's name it at Reserve; what is used the host knows. */
static int32_t reserve(void *self, struct berth_call *c, berth_sym node, struct berth_why *why)
{
    (void)self, (void)c, (void)node, (void)why;
    return BERTH_SUCCESS;
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct berth_kind kinds[] = {
    {{"scheduling.x-k8s.io", 19}, {"v1alpha1", 8}, {"elasticquotas", 13}, 1, 0}};
static const struct berth_event events[] = {
    {BERTH_ON_POD, BERTH_DELETE},
    {BERTH_ON_KIND(0), BERTH_ALL},
};
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"CapacityScheduling", 18},
    .reads = BERTH_READS_NODE | BERTH_READS_PODS | BERTH_READS_IDENTITY | BERTH_READS_OTHERS |
             BERTH_READS_OBJECTS,
    .events = events,
    .n_events = sizeof events / sizeof *events,
    .check_args = check_args,
    .create = create,
    .destroy = destroy,
    .pre_filter = pre_filter,
    .post_filter = cs_post_filter,
    .reserve = reserve,
    .idle = idle,
    .kinds = kinds,
    .n_kinds = 1,
    .tend = cs_tend,
};
BERTH_NOTE("CapacityScheduling", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    /* And with it what else came with it. */
    if (h->size < offsetof(struct berth_host, preemption) + sizeof h->preemption)
        return 1;
    cs_host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
