/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/stats.c - what the queue tells about itself, for metrics
 *
 * Invariants: rejected[p].n[i] = how many entries of profile p have bit i in `counted`.
 * Runs in:    the scheduler's duty cycle.
 * Upstream:   pkg/scheduler/backend/queue (where UnschedulableReason and InFlightEvents change);
 *             differences: a plugin that gates a pod again is not counted again.
 */
#include "scheduler/queue/queue_int.h"

static uint32_t profile_of(struct bh_queue *q, const struct entry *e)
{
    bh_sym name = bh_engine_shape_rec(q->engine, e->pub.pending.shape)->scheduler_name;

    for (uint32_t i = 0; i < q->n_rejected; i++)
        if (q->rejected[i].profile == name)
            return i;
    q->rejected = bh_reallocarray(q->rejected, q->n_rejected + 1, sizeof(*q->rejected));
    q->rejected[q->n_rejected] = (struct rejected){.profile = name};
    return q->n_rejected++;
}

void bh_queue_count_rejected(struct bh_queue *q, struct entry *e, uint64_t plugins)
{
    if (bh_likely(plugins == e->counted))
        return;
    for (uint64_t set = e->counted; set; set &= set - 1)
        q->rejected[e->counted_profile].n[__builtin_ctzll(set)]--;
    e->counted = plugins;
    if (plugins)
        e->counted_profile = profile_of(q, e);
    for (uint64_t set = plugins; set; set &= set - 1)
        q->rejected[e->counted_profile].n[__builtin_ctzll(set)]++;
}

void bh_queue_each_rejector(const struct bh_queue *q,
                            void (*fn)(void *arg, const char *plugin, bh_sym profile, uint64_t n),
                            void *arg)
{
    for (uint32_t p = 0; p < q->n_rejected; p++)
        for (uint32_t i = 0; i < q->n_plugins; i++)
            fn(arg, q->plugins[i], q->rejected[p].profile, q->rejected[p].n[i]);
}

void bh_queue_each_in_flight(const struct bh_queue *q, void (*fn)(void *arg, const char *label),
                             void *arg)
{
    const struct flight_node *f;
    char label[96];

    TAILQ_FOREACH(f, &q->flight, link)
        fn(arg, f->pod        ? "PodPopped"
                : f->activate ? "ForceActivate"
                              : bh_queue_event_label(&f->ev, label));
}

void bh_queue_on_hint(struct bh_queue *q, uint64_t (*clock_ns)(void), bh_queue_hint_fn *fn,
                      void *arg)
{
    q->clock_ns = clock_ns;
    q->on_hint = fn;
    q->on_hint_arg = arg;
}

enum bh_hint bh_queue_hint(struct bh_queue *q, const char *plugin, struct entry *e,
                           const struct bh_cluster_event *ev, bool *ret_by_pod)
{
    uint64_t began;
    enum bh_hint hint;

    if (!q->clock_ns || !q->hint_samples)
        return bh_engine_hint(q->engine, plugin, &e->pub.pending, ev, ret_by_pod);
    q->hint_samples--;
    began = q->clock_ns();
    hint = bh_engine_hint(q->engine, plugin, &e->pub.pending, ev, ret_by_pod);
    q->on_hint(q->on_hint_arg, plugin, ev, hint, q->clock_ns() - began);
    return hint;
}
