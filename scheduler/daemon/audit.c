/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/audit.c - no pod is lost
 *
 * A pod that the watcher shows as pending, and that a profile here is responsible for, is always
 * somewhere: it waits in the queue, or its place is BINDING or WAITING and the ledger or prebinds
 * have it. One that is nowhere would never be tried again. Nothing may lead to that; if something
 * does all the same, this finds it: once a second counts are compared, and when they differ, or
 * WALK_NS after the last time, pod by pod. What is found goes back to the queue, is logged, and
 * counted by berth_pods_lost_total, which is a defect of ours whenever it is not 0. One that is in
 * neither queue nor cluster has to be missed twice, while both processes are at work: the snapshot may
 * be ahead of the feed, and show a pod as gone from its node before the feed has told that it was
 * bound. What it told may be lost, too, with their connection: so then the watcher is asked for
 * everything again, and a pod that is still pending was lost.
 *
 * What the watcher shows is kept apart from the queue, so that the one can be held against the
 * other.
 *
 * Upstream: none.
 */
#include "common/base/log.h"
#include "scheduler/daemon/daemon.h"

#define WALK_NS      UINT64_C(30000000000)
#define ASK_EVERY_NS UINT64_C(5000000000) /* the watcher, for everything again */
#define NAMES_MAX    5u                   /* log lines of one walk */

enum found { FINE, MISSING, STRAY };

static enum found look(struct bh_sched_daemon *d, const struct bh_pod_state *s)
{
    struct bh_known_pod on_node;

    switch (bh_pod_phase(s)) {
    case BH_POD_NONE: /* on its node: BOUND follows */
        on_node = bh_engine_known_pod(d->engine, bh_pod_uid(s));
        return on_node.rec && !on_node.assumed ? FINE : MISSING;
    case BH_POD_DECIDING: /* between turns none is */
    case BH_POD_LOST:
        return STRAY;
    default:
        return FINE;
    }
}

static void count_lost(struct bh_sched_daemon *d, const struct bh_pod_state *s, const char *where)
{
    d->audit.lost++;
    if (++d->audit.n_named <= NAMES_MAX)
        bh_log_error("A pending pod was lost, taking it up again", bh_kv_s("uid", s->uid),
                     bh_kv_s("where", where));
}

void bh_sched_audit_shown(struct bh_sched_daemon *d, struct bh_pod_state *s)
{
    /* Everything was asked for again, and it is pending as before. */
    if (s->shown && s->shown != d->audit.generation && s->missed && look(d, s) == MISSING)
        count_lost(d, s, "not in the queue");
    if (!s->shown) {
        (void)bh_pod_hold(s);
        d->audit.n_shown++;
    }
    s->shown = d->audit.generation;
}

void bh_sched_audit_hidden(struct bh_sched_daemon *d, struct bh_pod_state *s)
{
    if (!s->shown)
        return;
    s->shown = 0;
    d->audit.n_shown--;
    bh_pod_drop(s);
}

void bh_sched_audit_complete(struct bh_sched_daemon *d)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&d->pods->by_uid, &it));)
        if (((struct bh_pod_state *)m->value)->shown != d->audit.generation)
            bh_sched_audit_hidden(d, m->value);
}

void bh_sched_audit_fini(struct bh_sched_daemon *d)
{
    struct bh_map_entry *m;

    for (size_t it = 0; d->pods && (m = bh_map_next(&d->pods->by_uid, &it));)
        bh_sched_audit_hidden(d, m->value);
}

/* ---- once a second --------------------------------------------------------------------------- */

static void walk(struct bh_sched_daemon *d)
{
    unsigned missing = 0, suspected = 0;
    struct bh_map_entry *m;

    d->audit.n_named = 0;
    for (size_t it = 0; (m = bh_map_next(&d->pods->by_uid, &it));) {
        struct bh_pod_state *s = m->value;
        const enum found f = s->shown ? look(d, s) : FINE;
        const bool before = s->missed && !d->audit.stalled;
        s->missed = f == MISSING;
        suspected += s->missed && !before;
        missing += s->missed && before;
        if (f == STRAY) {
            count_lost(d, s, "in nobody's hands");
            /* The queue has its object: the pod is tried again. */
            const struct bh_known_pod on_node = bh_engine_known_pod(d->engine, bh_pod_uid(s));
            if (on_node.rec && on_node.assumed)
                bh_sched_unwind(d, s->queued, on_node.rec->node, BH_OVER_RECALLED, "", "");
            else if (on_node.rec)
                bh_queue_done(d->queue, s);
            else
                bh_queue_return(d->queue, s, NULL, 0, NULL, 0, bh_sched_now(d));
        }
    }
    d->audit.stalled = false;
    if (suspected) /* look again with the next second's look */
        d->audit.walked_ns = 0;
    if (!missing)
        return;
    d->audit.asked_ns = bh_mono_ns();
    bh_feed_ask_again(&d->in.feed); /* only the watcher has the object */
}

void bh_sched_audit_turn(struct bh_sched_daemon *d)
{
    const uint64_t now = bh_mono_ns();
    struct bh_sched_audit *a = &d->audit;

    if (now - a->turn_ns > BH_AUDIT_NS / 2)
        a->stalled = true; /* stopped: what came meanwhile has not been read */
    a->turn_ns = now;
    if (now - a->looked_ns < BH_AUDIT_NS || !bh_intake_complete(&d->in))
        return;
    a->looked_ns = now;
    if (!bh_intake_fresh(&d->in, BH_AUDIT_NS)) {
        a->stalled = true; /* stopped between what it published and what it tells of that */
        return;
    }
    if (a->asked_ns && now - a->asked_ns < ASK_EVERY_NS)
        return;
    struct bh_ledger_stats l;
    struct bh_queue_stats q;
    bh_queue_stats(d->queue, &q);
    bh_ledger_stats(d->ledger, &l);
    if ((q.pods == d->audit.n_shown + l.seen && !q.popped &&
         q.binding == l.binds + l.kept + d->prebinds.n) &&
        now - a->walked_ns < WALK_NS)
        return;
    a->walked_ns = now;
    walk(d);
}
