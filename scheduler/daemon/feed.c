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

/* ---- the cluster -------------------------------------------------------------------------------
 */

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

/* ---- pending pods ------------------------------------------------------------------------------
 */

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
    const K8s__PodCondition *told;
    const struct bh_queued_pod *queued;
    int64_t began = bh_sched_now(d);
    bool known = bh_queue_find(d->queue, uid, NULL) != NULL;

    if (!bh_engine_responsible(d->engine, bh_sym_text(d->symtab, p->shape->scheduler_name)))
        return;
    if (bh_engine_is_assumed(d->engine, uid)) {
        if (p->pod->flags & BH_POD_TERMINATING) {
            bh_sched_pod_gone(d, uid);
            return;
        }
        /* else the entry gets the new object, in case the bind fails */
    } else if (bh_engine_find_pod(d->engine, uid, NULL)) {
        return; /* on its node in the cache: the log was ahead, BOUND follows */
    }
    bh_sched_log_pending(p->pod, known ? BH_EV_UPDATE : BH_EV_ADD);
    bh_sched_pod_update(d, p->pod, p->shape, p->resource_version);
    bh_sched_count_pod_event(d, known ? BH_EV_UPDATE : BH_EV_ADD, began);
    told = condition_of(p->object);
    if (!told)
        return;
    bh_queue_told(d->queue, uid, bh_sched_condition_hash(told->reason, told->message),
                  p->pod->nominated_node);
    queued = bh_queue_find(d->queue, uid, NULL);
    if (queued && !queued->last_message) /* what was found out here is newer */
        bh_queue_say(d->queue, uid, told->reason, told->message);
}

static void on_deleted(void *arg, const char *text)
{
    struct bh_sched_daemon *d = arg;
    struct bh_str uid = bh_str_c(text);
    int64_t began = bh_sched_now(d);

    const struct bh_queued_pod *p = bh_queue_find(d->queue, uid, NULL);

    if (p)
        bh_sched_log_pending(p->pending.pod, BH_EV_DELETE);
    bh_sched_unadopt(d, uid);
    bh_sched_pod_gone(d, uid);
    bh_sched_count_pod_event(d, BH_EV_DELETE, began);
}

/* The binding is visible: the cache has the pod through the log already. */
static void on_bound(void *arg, const char *text)
{
    struct bh_sched_daemon *d = arg;
    struct bh_str uid = bh_str_c(text);
    struct bh_work *w = bh_ledger_bind_of(d->ledger, text);
    int64_t began = bh_sched_now(d);

    bh_sched_unadopt(d, uid);
    bh_sched_prebind_drop(d, uid);
    if (w)
        w->bound_seen = true; /* its answer ends the entry */
    else
        bh_queue_delete(d->queue, uid);
    bh_sched_count_pod_event(d, BH_EV_DELETE, began);
}

/* ---- feed --------------------------------------------------------------------------------------
 */

static void on_begin(void *arg)
{
    struct bh_sched_daemon *d = arg;

    bh_queue_sync_begin(d->queue);
}

/* The initial state is complete: what was not named is gone, and events in between are not known.
 */
static void on_complete(void *arg)
{
    struct bh_sched_daemon *d = arg;
    struct bh_queue_stats s;

    bh_queue_sync_end(d->queue);
    bh_sched_review_adopted(d);
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
                                        .complete = on_complete,
                                        .pending = on_pending,
                                        .deleted = on_deleted,
                                        .bound = on_bound,
                                        .arg = d};
}

bool bh_sched_ready(const struct bh_sched_daemon *d)
{
    return d->in.snapshot_ready && !d->in.rebuilding && d->in.synced &&
           bh_intake_one_incarnation(&d->in) && bh_engine_raw_complete(d->engine) &&
           !bh_sched_former_silent(d) && bh_sched_snapshot_fresh(d);
}

bool bh_sched_may_decide(const struct bh_sched_daemon *d)
{
    return bh_sched_ready(d) && bh_sched_leads(d) && bh_sched_prebind_settled(d);
}

/* ---- sweep -------------------------------------------------------------------------------------
 */

struct lost {
    struct bh_sched_daemon *d;
    char **uid;
    size_t n;
};

static void look_for_lost(void *arg, struct bh_str uid)
{
    struct lost *l = arg;
    char *copy;

    if (bh_queue_find(l->d->queue, uid, NULL))
        return;
    copy = bh_strndup(uid.p, uid.n);
    if (bh_ledger_bind_of(l->d->ledger, copy)) {
        free(copy);
        return;
    }
    l->uid = bh_reallocarray(l->uid, l->n + 1, sizeof(*l->uid));
    l->uid[l->n++] = copy;
}

void bh_sched_sweep(struct bh_sched_daemon *d)
{
    struct lost l = {.d = d};

    if (!d->sweep_due || !bh_intake_complete(&d->in))
        return;
    d->sweep_due = false;
    bh_engine_each_assumed(d->engine, look_for_lost, &l);
    for (size_t i = 0; i < l.n; i++) {
        bh_sched_pod_gone(d, bh_str_c(l.uid[i]));
        free(l.uid[i]);
    }
    if (l.n)
        bh_log_info("Forgot assumed pods that are gone", bh_kv_u("pods", l.n));
    free(l.uid);
}
