/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/extend.c - HTTP extenders in the daemon: what goes on while a decision waits for
 * one (or takes long by itself: a group), and binds that one of them writes
 *
 * A decision that waits holds the engine: nothing that changes it may happen, so the change log,
 * the feed and binders' answers wait too, where they are bounded by credit, ring and
 * BH_LETTERS_MAX. The rest of the process lives: probes and metrics are served, the watcher hears
 * from us, binders are heard and keep their grant of the lease, decided work goes out, `berth
 * queue` is answered. kube-scheduler's loop waits in the same place, while its informers go on:
 * there as here what came meanwhile is not looked at before the decision is over.
 *
 * Binds: an item of the ledger like any other, but out with an extender instead of a binder. What
 * the extender says is final, as upstream: a failure or a timeout sends the pod back, and if it was
 * bound all the same the watch tells. The event that a binder would write follows on its own.
 *
 * Upstream: pkg/scheduler/schedule_one.go (bind, extendersBinding).
 */
#include "common/base/log.h"
#include "scheduler/daemon/control.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/wasm/guest.h"

#define RAW_LATE_NS UINT64_C(10000000000)

bool bh_sched_waiting(void *daemon)
{
    struct bh_sched_daemon *d = daemon;

    uv_run(d->loop, UV_RUN_NOWAIT);
    bh_sched_receive_binders(d);
    d->in.feed.life.binder_progress = d->lease.progress;
    bh_intake_tick(&d->in);
    if (bh_sched_leads(d))
        (void)bh_ledger_flush(d->ledger, d->binders, bh_mono_ns());
    (void)bh_control_serve(d->control);
    return !d->stopping;
}

static void on_ready(uv_poll_t *h, int status, int events)
{
    (void)h, (void)status, (void)events; /* wakes the loop; the turn serves */
}

/* About an object that the guest names; who leads no longer tells nothing. */
static void on_guest_event(void *arg, const struct bh_guest_event *e)
{
    struct bh_sched_daemon *d = arg;

    if (!bh_sched_leads(d))
        return;
    struct bh_work *w = bh_work_new(BERTH__WORK_KIND__WORK_EVENT, bh_str_c(e->namespace_),
                                    bh_str_c(e->name), bh_str_c(e->uid ? e->uid : ""));
    w->item.node = e->of_node ? bh_strdup(e->name) : NULL;
    bh_work_event(w, e->type, e->reason, e->action, bh_strdup(e->note),
                  *e->profile   ? e->profile
                  : d->o.config ? d->o.config->profiles[0].scheduler_name
                                : "default-scheduler",
                  e->resource_version);
    (void)bh_ledger_add(d->ledger, w);
}

void bh_sched_extenders_start(struct bh_sched_daemon *d)
{
    int fd = bh_engine_extenders_fd(d->engine);

    bh_guest_set_metrics(d->metrics);
    bh_guest_set_events(on_guest_event, d);
    if (fd < 0)
        return;
    bh_engine_extenders_metrics(d->engine, d->metrics);
    int rc = uv_poll_init(d->loop, &d->extenders, fd);
    bh_assert(rc == 0);
    uv_poll_start(&d->extenders, UV_READABLE, on_ready);
}

void bh_sched_extenders_stop(struct bh_sched_daemon *d)
{
    bh_guest_set_events(NULL, NULL);
    if (d->extenders.type == UV_POLL)
        uv_close((uv_handle_t *)&d->extenders, NULL);
}

/* ---- binds ----------------------------------------------------------------------------------- */

static void on_bound(void *arg, uint64_t id, enum bh_ext_bound how, const char *error)
{
    struct bh_sched_daemon *d = arg;
    struct bh_work *w = bh_ledger_find(d->ledger, id);

    bh_assert(w && w->outside);
    switch (how) {
    case BH_EXT_NOT_BOUND:
        bh_sched_bind_inside(d, w);
        return;
    case BH_EXT_BOUND:
        bh_sched_count_outcome(d, BERTH__OUTCOME__OUTCOME_DONE);
        /* What a binder writes after a bind. */
        const Berth__EventText *e = w->item.event;
        struct bh_work *ev = bh_work_for(BERTH__WORK_KIND__WORK_EVENT, bh_str_c(w->item.namespace_),
                                         bh_str_c(w->item.name), w->pod);
        bh_work_event(ev, e->type, e->reason, e->action, bh_strdup(e->note),
                      e->reporting_controller, e->regarding_resource_version);
        (void)bh_ledger_add(d->ledger, ev);
        bh_sched_bound(d, w);
        return;
    case BH_EXT_BIND_FAILED:
        bh_sched_count_outcome(d, BERTH__OUTCOME__OUTCOME_REJECTED);
        bh_log_error("Binding failed", bh_kv_s("namespace", w->item.namespace_),
                     bh_kv_s("pod", w->item.name), bh_kv_s("node", w->item.node),
                     bh_kv_s("message", error));
        bh_sched_bind_refused(d, w, BH_OVER_ERROR, error);
        return;
    }
}

void bh_sched_extenders_turn(struct bh_sched_daemon *d)
{
    struct bh_work *w;

    while (bh_sched_leads(d) && (w = bh_ledger_next_outside(d->ledger))) {
        const struct bh_queued_pod *p = w->pod->queued;
        if (p)
            bh_engine_extender_bind(d->engine, &p->pending, bh_sym_internc(d->symtab, w->item.node),
                                    on_bound, d, w->item.id);
        else /* deleted meanwhile */
            bh_ledger_finish(d->ledger, w);
    }
    /* The watcher sends a node's object right behind its record; without it no decision is
     * taken. */
    uint64_t now = bh_mono_ns();
    if (!d->in.feed.synced || bh_engine_raw_complete(d->engine)) {
        d->raw_missed_ns = now;
    } else if (now - d->raw_missed_ns > RAW_LATE_NS) {
        d->raw_missed_ns = now;
        bh_log_warn("Waiting for objects of nodes, which extenders want to see");
    }
}
