/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/events.c - which waiting pods a cluster event can help
 *
 * The pool is indexed by rejecting plugin: an event visits the lists of plugins that registered for
 * it and no others, so its cost grows with the pods it could help, not with all that wait.
 * Upstream: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing,
 * moveAllToActiveOrBackoffQueue); differences: a pod under several registered plugins is judged
 * once.
 */
#include "scheduler/queue/queue_int.h"

static const char *action_text(uint32_t action)
{
    static const struct {
        uint32_t bit;
        const char *text;
    } names[] = {{BH_EV_ADD, "Add"},
                 {BH_EV_DELETE, "Delete"},
                 {BH_EV_NODE_ALLOCATABLE, "UpdateNodeAllocatable"},
                 {BH_EV_NODE_LABEL, "UpdateNodeLabel"},
                 {BH_EV_NODE_TAINT, "UpdateNodeTaint"},
                 {BH_EV_NODE_CONDITION, "UpdateNodeCondition"},
                 {BH_EV_NODE_ANNOTATION, "UpdateNodeAnnotation"},
                 {BH_EV_NODE_FEATURE, "UpdateNodeDeclaredFeature"},
                 {BH_EV_POD_LABEL, "UpdatePodLabel"},
                 {BH_EV_POD_SCALE_DOWN, "UpdatePodScaleDown"},
                 {BH_EV_POD_TOLERATION, "UpdatePodToleration"},
                 {BH_EV_POD_GATES_ELIMINATED, "UpdatePodSchedulingGatesEliminated"},
                 {BH_EV_POD_CLAIM, "UpdatePodGeneratedResourceClaim"},
                 {BH_EV_UPDATE, "Update"}};

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++)
        if (names[i].bit == action)
            return names[i].text;
    return "All";
}

const char *bh_queue_event_label(const struct bh_cluster_event *ev, char out[static 96])
{
    const char *res = "Node";

    if (ev->resource == BH_EV_POD_ASSIGNED)
        res = "AssignedPod";
    else if (ev->resource == BH_EV_POD_UNSCHEDULED)
        res = "UnschedulablePod";
    else if (ev->resource == BH_EV_OBJECT && ev->kind < BH_KIND_COUNT)
        res = bh_kinds[ev->kind].event_resource;
    snprintf(out, 96, "%s%s", res ? res : "", action_text(ev->action));
    return out;
}

enum worth bh_queue_worth(struct bh_queue *q, struct entry *e, const struct bh_cluster_event *ev)
{
    enum worth best = WORTH_SKIP;
    uint64_t set = e->rejectors | e->pendings;

    if (!set)
        return WORTH_AFTER_BACKOFF;
    while (set) {
        uint32_t i = (uint32_t)__builtin_ctzll(set);
        set &= set - 1;
        if (!bh_engine_plugin_interested(q->engine, q->plugins[i], ev))
            continue;
        if (bh_engine_hint(q->engine, q->plugins[i], &e->pub.pending, ev) != BH_QUEUE)
            continue;
        if (e->pendings >> i & 1)
            return WORTH_IMMEDIATELY;
        best = WORTH_AFTER_BACKOFF;
        if (!e->pendings)
            return best;
    }
    return best;
}

static void judge(struct bh_queue *q, struct entry *e, const struct bh_cluster_event *ev,
                  const char *label, int64_t now_ns)
{
    enum worth w;

    if (ev->was_assumed && bh_str_eq(bh_rec_text(ev->old_pod, ev->old_pod->uid),
                                     bh_rec_text(e->pub.pending.pod, e->pub.pending.pod->uid)))
        return; /* it makes no room for itself */
    if (e->gating_plugin != BH_QUEUE_NO_PLUGIN &&
        !bh_engine_plugin_interested(q->engine, q->plugins[e->gating_plugin], ev))
        return;
    w = bh_queue_worth(q, e, ev);
    if (w != WORTH_SKIP)
        bh_queue_requeue(q, e, w, label, now_ns);
}

void bh_queue_event(struct bh_queue *q, const struct bh_cluster_event *ev, int64_t now_ns)
{
    char label[96];
    uint64_t seen = 0; /* plugins whose list was walked: their entries are judged already */

    if (!bh_engine_interested(q->engine, ev))
        return;
    bh_queue_event_label(ev, label);
    for (uint32_t i = 0; i < q->n_plugins; i++) {
        struct pool_link *head = &q->pool[i], *l, *next;
        if (head->next == head || !bh_engine_plugin_interested(q->engine, q->plugins[i], ev))
            continue;
        /* requeue() unlinks the entry, possibly puts it back (re-gated) at the tail of lists: stop
         * at what was the tail when the walk began. */
        struct pool_link *last = head->prev;
        for (l = head->next; l != head; l = next) {
            bool end = l == last;
            next = l->next;
            if (!((l->entry->rejectors | l->entry->pendings) & seen))
                judge(q, l->entry, ev, label, now_ns);
            if (end)
                break;
        }
        seen |= UINT64_C(1) << i;
    }
    bh_queue_flight_record(q, ev);
}
