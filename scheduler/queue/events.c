/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/events.c - which waiting pods a cluster event can help
 *
 * The pool is indexed by rejecting plugin, and pods of one shape form a group: an event visits the
 * lists of plugins that registered for it and no others, and asks a group once. Its cost grows with
 * the pods it helps and the kinds of pods it could help, not with all that wait.
 * Upstream: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing,
 * moveAllToActiveOrBackoffQueue); differences: a pod under several registered plugins is judged
 * once, pods of one shape together, where no hint looks at the single pod.
 */
#include "scheduler/queue/queue_int.h"

static const char *action_text(uint32_t action)
{
    static const char *const names[] = {/* by bit */
                                        "Add",
                                        "Delete",
                                        "UpdateNodeAllocatable",
                                        "UpdateNodeLabel",
                                        "UpdateNodeTaint",
                                        "UpdateNodeCondition",
                                        "UpdateNodeAnnotation",
                                        "UpdateNodeDeclaredFeature",
                                        "UpdatePodLabel",
                                        "UpdatePodScaleDown",
                                        "UpdatePodToleration",
                                        "UpdatePodSchedulingGatesEliminated",
                                        "UpdatePodGeneratedResourceClaim"};
    const unsigned bit = action ? (unsigned)__builtin_ctz(action) : 0;

    if (action == BH_EV_UPDATE)
        return "Update";
    return action == 1u << bit && bit < BH_ARRAY_LEN(names) ? names[bit] : "All";
}

const char *bh_queue_event_label(const struct bh_cluster_event *ev, char out[static 96])
{
    const char *res = "Node";

    if (ev->resource == BH_EV_POD_ASSIGNED)
        res = "AssignedPod";
    else if (ev->resource == BH_EV_POD_UNSCHEDULED)
        res = "UnschedulablePod";
    else if (ev->resource == BH_EV_OBJECT && bh_kind_of(ev->kind))
        res = bh_kind_of(ev->kind)->event_resource;
    else if (ev->resource == BH_EV_PLUGIN)
        res = "Plugin";
    /* Each event of the cluster is named: no printf. */
    const char *a = res ? res : "";
    const char *b = action_text(ev->action);
    const size_t n_a = BH_MIN(strlen(a), 96 - 1), n_b = BH_MIN(strlen(b), 96 - 1 - n_a);
    memcpy(out, a, n_a);
    memcpy(out + n_a, b, n_b);
    out[n_a + n_b] = '\0';
    return out;
}

static bool interested(struct bh_queue *q, uint32_t plugin, const struct bh_cluster_event *ev)
{
    return plugin == BH_QUEUE_OTHERS ||
           bh_engine_plugin_interested(q->engine, q->plugins[plugin], ev);
}

enum worth bh_queue_worth(struct bh_queue *q, struct entry *e, const struct bh_cluster_event *ev,
                          bool *ret_by_pod)
{
    enum worth best = WORTH_SKIP;
    uint64_t set = e->rejectors | e->pendings;

    *ret_by_pod = false;
    if (!set)
        return WORTH_AFTER_BACKOFF;
    while (set) {
        uint32_t i = (uint32_t)__builtin_ctzll(set);
        set &= set - 1;
        if (!interested(q, i, ev))
            continue;
        q->count.hints++;
        if (bh_queue_hint(q, q->plugins[i], e, ev, ret_by_pod) != BH_QUEUE)
            continue;
        if (e->pendings >> i & 1)
            return WORTH_IMMEDIATELY;
        best = WORTH_AFTER_BACKOFF;
        if (!e->pendings)
            return best;
    }
    return best;
}

/* The event's own pod, when it is one of the pool: it is judged alone. */
static struct entry *own_entry(const struct bh_queue *q, const struct bh_pod_rec *pod)
{
    if (!pod)
        return NULL;
    struct bh_str uid = bh_rec_text(pod, pod->uid);
    struct entry *e = bh_queue_entry(bh_pods_find(&q->pods, uid));
    return e && e->group ? e : NULL;
}

struct walk {
    const struct bh_cluster_event *ev;
    const char *label;
    int64_t now_ns;
    int32_t max_priority;
    struct entry *own[2]; /* judged before, or not at all */
};

static bool gate_is_deaf(struct bh_queue *q, uint32_t gating_plugin,
                         const struct bh_cluster_event *ev)
{
    return gating_plugin != BH_QUEUE_NO_PLUGIN && !interested(q, gating_plugin, ev);
}

static void judge_group(struct bh_queue *q, struct pool_group *g, const struct walk *w)
{
    struct entry *next, *last = TAILQ_LAST(&g->entries, entries);
    enum worth worth = WORTH_SKIP;
    bool by_pod = true, by_this;

    /* Those whose victims are leaving are moved when the last one has left: bh_queue_release(). */
    if (gate_is_deaf(q, g->key.gating_plugin, w->ev) || bh_queue_is_held(q, g->key.gating_plugin))
        return;
    /* requeue() unlinks the entry, possibly puts it back (gated again) at the tail: stop at what
     * was the tail when the walk began. */
    bh_queue_pool_hold(g);
    for (struct entry *e = TAILQ_FIRST(&g->entries); e; e = next) {
        bool end = e == last;
        next = end ? NULL : TAILQ_NEXT(e, pool_link);
        if (e == w->own[0] || e == w->own[1] || e->priority > w->max_priority)
            continue;
        if (by_pod)
            worth = bh_queue_worth(q, e, w->ev, &by_pod);
        else if (q->o.verify) /* the answer was taken for the whole group: is it this one's? */
            bh_assert(bh_queue_worth(q, e, w->ev, &by_this) == worth);
        if (worth != WORTH_SKIP)
            bh_queue_requeue(q, e, worth, w->label, w->now_ns);
        else if (!by_pod && !q->o.verify)
            break; /* nor does it help the others */
    }
    bh_queue_pool_release(q, g);
}

void bh_queue_event_up_to(struct bh_queue *q, const struct bh_cluster_event *ev,
                          int32_t max_priority, int64_t now_ns)
{
    char label[96];
    struct walk w = {.ev = ev, .label = label, .now_ns = now_ns, .max_priority = max_priority};
    uint64_t seen = 0; /* plugins whose list was walked: their groups are judged already */

    if (!q->groups.len && !q->count.in_flight) /* no pod waits for an event */
        return;
    if (!bh_engine_interested(q->engine, ev))
        return;
    bh_queue_event_label(ev, label);
    w.own[0] = own_entry(q, w.ev->old_pod);
    w.own[1] = own_entry(q, w.ev->new_pod);
    for (int i = 0; i < 2; i++) {
        struct entry *e = w.own[i];
        bool by_pod;
        if (!e || (i && e == w.own[0]) || gate_is_deaf(q, e->gating_plugin, w.ev))
            continue;
        if ((i == 0 && w.ev->was_assumed) || e->priority > max_priority)
            continue; /* it makes no room for itself */
        enum worth worth = bh_queue_worth(q, e, w.ev, &by_pod);
        if (worth != WORTH_SKIP)
            bh_queue_requeue(q, e, worth, w.label, w.now_ns);
    }
    for (uint32_t i = 0; i < q->n_plugins; i++) {
        /* New groups come at the tail: stop at what was the tail when the walk began. Judging
         * empties no other group than the one it judges. */
        struct pool_link *last = TAILQ_LAST(&q->pool[i], pool), *next;
        if (!last || !interested(q, i, ev))
            continue;
        for (struct pool_link *l = TAILQ_FIRST(&q->pool[i]); l; l = next) {
            next = l == last ? NULL : TAILQ_NEXT(l, link);
            if (!((l->group->key.rejectors | l->group->key.pendings) & seen))
                judge_group(q, l->group, &w);
        }
        seen |= UINT64_C(1) << i;
    }
    bh_queue_flight_record(q, ev);
}

void bh_queue_event(struct bh_queue *q, const struct bh_cluster_event *ev, int64_t now_ns)
{
    bh_queue_event_up_to(q, ev, INT32_MAX, now_ns);
}
