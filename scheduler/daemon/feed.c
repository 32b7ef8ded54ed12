/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/feed.c - what the watcher tells (intake.h), and what the scheduler does about it
 *
 * Upstream: pkg/scheduler/eventhandlers.go; differences: a rebuild (new watcher) wakes every
 * rejected pod instead of replaying single events.
 */
#include "common/base/log.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/daemon/daemon.h"

/* ---- the cluster ----------------------------------------------------------------------------- */

static void on_event(void *arg, const struct bh_cluster_event *ev)
{
    struct bh_sched_daemon *d = arg;
    int64_t began = bh_sched_now(d);

    bh_sched_log_event(d, ev);
    bh_queue_event(d->queue, ev, began);
    bh_sched_count_event(d, ev, began);
}

static void on_rebuilt(void *arg)
{
    struct bh_sched_daemon *d = arg;

    bh_queue_wake_all(d->queue, bh_sched_now(d));
    bh_log_info("Snapshot attached", bh_kv_u("nodes", bh_engine_node_count(d->engine)),
                bh_kv_u("pods", bh_engine_pod_count(d->engine)));
}

bool bh_sched_snapshot_fresh(const struct bh_sched_daemon *d)
{
    return bh_intake_fresh(&d->in, d->timing.snapshot_stale_ns);
}

/* ---- pending pods ---------------------------------------------------------------------------- */

/* The condition that the pod carries already (ours, from before a restart), or NULL. */
static const K8s__PodCondition *condition_of(const K8s__Pod *p)
{
    for (size_t i = 0; p->status && i < p->status->n_conditions; i++) {
        const K8s__PodCondition *c = p->status->conditions[i];
        if (c->type && bh_streq(c->type, "PodScheduled") && c->status &&
            bh_streq(c->status, "False") && c->reason && c->message)
            return c;
    }
    return NULL;
}

static void on_pending(void *arg, const struct bh_intake_pod *p)
{
    struct bh_sched_daemon *d = arg;
    struct bh_str uid = bh_rec_text(p->pod, p->pod->uid);
    int64_t began = bh_sched_now(d);

    if (!bh_engine_responsible(d->engine, bh_sym_text(d->symtab, p->shape->scheduler_name)))
        return;
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *s = bh_pods_hold(d->pods, uid);
    const bool known = s->queued;

    const struct bh_known_pod on_node = bh_engine_known_pod(d->engine, uid);
    if (on_node.rec) {
        if (!on_node.assumed)
            return; /* on its node in the cache: the log was ahead, BOUND follows */
        if (p->pod->flags & BH_POD_TERMINATING) {
            bh_sched_audit_hidden(d, s);
            bh_sched_pod_gone(d, s);
            return;
        }
        /* else the entry gets the new object, in case the bind fails */
    }
    bh_sched_log_pending(p->pod, known ? BH_EV_UPDATE : BH_EV_ADD);
    if (p->pod->flags & BH_POD_TERMINATING) /* needs no decision */
        bh_sched_audit_hidden(d, s);
    else
        bh_sched_audit_shown(d, s);
    bh_sched_pod_update(d, s, p->pod, p->shape, p->resource_version);
    bh_sched_count_pod_event(d, known ? BH_EV_UPDATE : BH_EV_ADD, began);
    const K8s__PodCondition *told = condition_of(p->object);
    if (!told)
        return;
    bh_queue_told(s, bh_sched_condition_hash(told->reason, told->message), p->pod->nominated_node);
    /* What this scheduler found out itself is newer; an observer finds out nothing. */
    if (s->queued && (d->o.observe || !s->queued->last_message))
        bh_queue_say(s, told->reason, told->message);
}

/* The watch has shown what became of a pod that was bound: it is no longer looked after. A bind whose
 * answer was bad may have been done all the same, by an earlier request. */
static void end_kept(struct bh_sched_daemon *d, struct bh_pod_state *s)
{
    struct bh_work *w = s->bind;

    if (!w || !w->kept)
        return;
    const struct bh_known_pod p = bh_engine_known_pod(d->engine, bh_pod_uid(s));
    if (p.rec && !p.assumed && bh_streq(bh_sym_text(d->symtab, p.rec->node), w->item.node))
        bh_sched_post_bind(d, w);
    bh_ledger_finish(d->ledger, w);
}

static void on_deleted(void *arg, const char *text)
{
    struct bh_sched_daemon *d = arg;
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *s = bh_pods_hold(d->pods, bh_str_c(text));
    int64_t began = bh_sched_now(d);

    if (s->queued)
        bh_sched_log_pending(s->queued->pending.pod, BH_EV_DELETE);
    bh_sched_audit_hidden(d, s);
    bh_sched_unadopt(d, s);
    end_kept(d, s);
    bh_sched_pod_gone(d, s);
    bh_sched_count_pod_event(d, BH_EV_DELETE, began);
}

/* The binding is visible: the cache has the pod through the log already, unless the log has come round
 * since, or nothing was to be read, and the pod is gone. */
static void on_bound(void *arg, const char *text)
{
    struct bh_sched_daemon *d = arg;
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *s = bh_pods_hold(d->pods, bh_str_c(text));
    int64_t began = bh_sched_now(d);

    bh_sched_audit_hidden(d, s);
    bh_sched_unadopt(d, s);
    bh_sched_prebind_drop(d, s);
    end_kept(d, s);
    if (s->bind)
        bh_ledger_bound_seen(d->ledger, s->bind); /* its answer ends the entry */
    else
        bh_queue_delete(d->queue, s);
    d->sweep_due |= bh_engine_is_assumed(d->engine, bh_pod_uid(s)); /* no later message ends that */
    bh_sched_count_pod_event(d, BH_EV_DELETE, began);
}

/* ---- feed ------------------------------------------------------------------------------------ */

static void on_begin(void *arg)
{
    struct bh_sched_daemon *d = arg;

    bh_queue_sync_begin(d->queue);
    d->audit.generation++;
}

/* Its pods were errors until now, most of them. */
static void on_kind_known(void *arg)
{
    struct bh_sched_daemon *d = arg;

    bh_queue_wake_all(d->queue, bh_sched_now(d));
}

static bool not_pending(void *arg BH_UNUSED, const struct bh_work *w)
{
    return !w->pod->queued;
}

/* The initial state is complete: what was not named is gone, and events in between are not
 * known. */
static void on_complete(void *arg)
{
    struct bh_sched_daemon *d = arg;
    struct bh_queue_stats s;

    bh_queue_sync_end(d->queue);
    bh_sched_audit_complete(d);
    bh_sched_review_adopted(d);
    bh_ledger_end_kept(d->ledger, not_pending, NULL);
    bh_queue_wake_all(d->queue, bh_sched_now(d));
    d->sweep_due = true;
    bh_queue_stats(d->queue, &s);
    bh_log_info("Watcher's feed is complete",
                bh_kv_u("pending", s.active + s.backoff + s.unschedulable + s.gated));
}

struct bh_intake_callbacks bh_sched_feed_callbacks(struct bh_sched_daemon *d)
{
    return (struct bh_intake_callbacks){.event = on_event,
                                        .rebuilt = on_rebuilt,
                                        .begin = on_begin,
                                        .kind_known = on_kind_known,
                                        .complete = on_complete,
                                        .pending = on_pending,
                                        .deleted = on_deleted,
                                        .bound = on_bound,
                                        .arg = d};
}

bool bh_sched_ready(const struct bh_sched_daemon *d)
{
    return d->in.snapshot_ready && !d->in.rebuilding && d->in.feed.synced &&
           bh_intake_one_incarnation(&d->in) && bh_engine_raw_complete(d->engine) &&
           !bh_sched_binders_awaited(d) && bh_sched_snapshot_fresh(d);
}

bool bh_sched_may_decide(const struct bh_sched_daemon *d)
{
    return !d->o.observe && bh_sched_ready(d) && bh_sched_leads(d) && bh_sched_adopted(d) &&
           bh_boot_ns() >= BH_MAX(d->lease.settled_ns, d->adopt.settled_ns);
}

/* ---- sweep ----------------------------------------------------------------------------------- */

struct lost {
    struct bh_sched_daemon *d;
    struct bh_pod_state **pod; /* held */
    size_t n;
};

static void look_for_lost(void *arg, struct bh_str uid)
{
    struct lost *l = arg;
    const struct bh_pod_state *s = bh_pods_find(l->d->pods, uid);

    if (s && (s->queued || s->bind))
        return;
    l->pod = bh_reallocarray(l->pod, l->n + 1, sizeof(*l->pod));
    l->pod[l->n++] = bh_pods_hold(l->d->pods, uid);
}

void bh_sched_sweep(struct bh_sched_daemon *d)
{
    struct lost l = {.d = d};

    if (!d->sweep_due || !bh_intake_complete(&d->in))
        return;
    d->sweep_due = false;
    bh_engine_each_assumed(d->engine, look_for_lost, &l);
    for (size_t i = 0; i < l.n; i++) {
        bh_sched_pod_gone(d, l.pod[i]);
        bh_pod_drop(l.pod[i]);
    }
    if (l.n)
        bh_log_info("Forgot assumed pods that are gone", bh_kv_u("pods", l.n));
    free(l.pod);
}
