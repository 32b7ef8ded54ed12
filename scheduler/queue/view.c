/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/view.c - looking at the queue from outside: one entry, all entries page by page,
 * and what it tells for metrics
 *
 * A page costs what it is allowed to cost: the walk goes through the table's slots from a cursor on
 * and stops at a budget, however many pods there are. When the table was laid out anew in between,
 * a cursor means nothing any more, and the walk says so.
 *
 * Invariants: rejected[p].n[i] = how many entries of profile p have bit i in `counted`.
 * Runs in:    the scheduler's duty cycle.
 * Upstream:   pkg/scheduler/backend/queue (where UnschedulableReason and InFlightEvents change);
 *             differences: a plugin that gates a pod again is not counted again.
 */
#include "scheduler/queue/queue_int.h"

void bh_queue_view(const struct bh_queue *q, const struct bh_queued_pod *p,
                   struct bh_queue_view *ret)
{
    const struct entry *e = (const struct entry *)(const void *)p;
    uint64_t set = e->rejectors | e->pendings;

    *ret = (struct bh_queue_view){.place = p->pod->place};
    if (p->pod->place == BH_Q_BACKOFF || p->pod->place == BH_Q_ERROR_BACKOFF)
        ret->backoff_until_ns = e->backoff_expiry_ns;
    if (e->gating_plugin != BH_QUEUE_NO_PLUGIN && p->pod->place == BH_Q_GATED)
        set = UINT64_C(1) << e->gating_plugin;
    for (; set; set &= set - 1)
        ret->plugins[ret->n_plugins++] = q->plugins[__builtin_ctzll(set)];
}

enum bh_queue_walk bh_queue_walk(const struct bh_queue *q, uint64_t *cursor, unsigned budget,
                                 bool (*fn)(void *arg, const struct bh_queued_pod *p,
                                            enum bh_queue_place place),
                                 void *arg)
{
    const struct bh_map *m = &q->pods.by_uid;
    /* Low half: the slot to go on with. High half: which table it belongs to. */
    const uint64_t layout = bh_hash(&m->e, sizeof(m->e), m->seed + m->cap) << 32;
    size_t at = (uint32_t)*cursor;

    bh_assert(m->cap < UINT32_MAX);
    if (*cursor && *cursor >> 32 != layout >> 32) {
        *cursor = 0;
        return BH_QUEUE_WALK_MOVED;
    }
    const size_t end = BH_MIN(m->cap, at + budget);
    for (; at < end; at++) {
        const struct bh_pod_state *s = m->e[at].key ? m->e[at].value : NULL;
        if (s && s->queued && !fn(arg, s->queued, s->place))
            break;
    }
    *cursor = at < m->cap ? layout | at : 0;
    return *cursor ? BH_QUEUE_WALK_MORE : BH_QUEUE_WALK_END;
}

void bh_queue_say(struct bh_pod_state *s, const char *reason, const char *message)
{
    struct bh_queued_pod *p = s ? s->queued : NULL;

    if (!p ||
        (p->last_message && bh_streq(p->last_message, message) && bh_streq(p->last_reason, reason)))
        return;
    free(p->last_reason);
    free(p->last_message);
    p->last_reason = bh_strdup(reason);
    p->last_message = bh_strdup(message);
}

/* ---- metrics --------------------------------------------------------------------------------- */

void bh_queue_count_rejected(struct bh_queue *q, struct entry *e, uint64_t plugins)
{
    if (bh_likely(plugins == e->counted))
        return;
    for (uint64_t set = e->counted; set; set &= set - 1)
        q->rejected[e->counted_profile].n[__builtin_ctzll(set)]--;
    e->counted = plugins;
    if (plugins) {
        bh_sym name = bh_engine_shape_rec(q->engine, e->pub.pending.shape)->scheduler_name;
        uint32_t i = 0;
        while (i < q->n_rejected && q->rejected[i].profile != name)
            i++;
        if (i == q->n_rejected) {
            q->rejected = bh_reallocarray(q->rejected, ++q->n_rejected, sizeof(*q->rejected));
            q->rejected[i] = (struct rejected){.profile = name};
        }
        e->counted_profile = i;
    }
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
    struct flight_node *f;
    char label[96];

    TAILQ_FOREACH(f, &q->flight, link) {
        const struct flight_event *e = f->pod ? NULL : bh_flight_event(f);
        fn(arg, !e            ? "PodPopped"
                : e->activate ? "ForceActivate"
                : e->unseen   ? "UnschedulableTimeout"
                              : bh_queue_event_label(&e->ev, label));
    }
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
    if (!q->clock_ns || !q->hint_samples)
        return bh_engine_hint(q->engine, plugin, &e->pub.pending, ev, ret_by_pod);
    q->hint_samples--;
    uint64_t began = q->clock_ns();
    enum bh_hint hint = bh_engine_hint(q->engine, plugin, &e->pub.pending, ev, ret_by_pod);
    q->on_hint(q->on_hint_arg, plugin, ev, hint, q->clock_ns() - began);
    return hint;
}
