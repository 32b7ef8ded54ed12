/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/view.c - looking at the queue from outside: one entry, all entries page by page
 *
 * A page costs what it is allowed to cost: the walk goes through the table's slots from a cursor on
 * and stops at a budget, however many pods there are. When the table was laid out anew in between,
 * a cursor means nothing any more, and the walk says so.
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

/* Low half: the slot to go on with. High half: which table it belongs to. */
static uint64_t layout_of(const struct bh_map *m)
{
    return bh_hash(&m->e, sizeof(m->e), m->seed + m->cap) << 32;
}

enum bh_queue_walk bh_queue_walk(const struct bh_queue *q, uint64_t *cursor, unsigned budget,
                                 bool (*fn)(void *arg, const struct bh_queued_pod *p,
                                            enum bh_queue_place place),
                                 void *arg)
{
    const struct bh_map *m = &q->pods.by_uid;
    const uint64_t layout = layout_of(m);
    size_t at = (uint32_t)*cursor, end;

    bh_assert(m->cap < UINT32_MAX);
    if (*cursor && *cursor >> 32 != layout >> 32) {
        *cursor = 0;
        return BH_QUEUE_WALK_MOVED;
    }
    end = BH_MIN(m->cap, at + budget);
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
