/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/lease.c - what the leader lease lets this scheduler do, and what follows from
 * its end
 *
 * The watcher says in the snapshot under which term and until when this host may decide and write.
 * That is looked at before each turn's decisions and again before work goes out; binders look again
 * before each write, at what they were granted (proto Grant). So it does not matter where a process
 * was stopped: no process needs to be told that the time is over.
 *
 * At the end of a term everything that no binder has is taken back: its pods wait again, as if they
 * had not been decided. What binders have is refused there or ends with what the API server says;
 * an unknown outcome is not repeated, because another host may decide about the pod by now. (The
 * API server binds a pod once, whichever host asks.)
 */
#include <limits.h>
#include <unistd.h>

#include "common/base/log.h"
#include "scheduler/daemon/daemon.h"
#include "scheduler/native/native.h"

/* A new term is another time: what belongs to the old one ends first (bh_sched_lease_turn). */
bool bh_sched_leads(const struct bh_sched_daemon *d)
{
    return !d->lease.leaving && bh_boot_ns() < d->in.lease_until_ns &&
           (!d->lease.held || d->lease.term == d->in.lease_term);
}

static bool no_election(const struct bh_sched_daemon *d)
{
    return d->in.lease_until_ns == BH_SNAP_NO_ELECTION;
}

/* ---- binders --------------------------------------------------------------------------------- */

static void tell_grant(struct bh_sched_daemon *d, struct bh_binder *b)
{
    Berth__Grant g = BERTH__GRANT__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    uint64_t now = bh_boot_ns();

    if (!b->greeted)
        return;
    if (!d->lease.term || no_election(d)) { /* a binder that hears nothing is not ready */
        (void)bh_sched_hello(d, b);
        return;
    }
    g.has_epoch = g.has_lease_term = g.has_serial = g.has_stamp_boot_ns = g.has_valid_ns = true;
    g.epoch = d->epoch;
    g.lease_term = d->lease.term;
    g.serial = d->lease.serial;
    g.stamp_boot_ns = b->stamp_boot_ns;
    if (d->lease.held && bh_sched_leads(d) && b->stamp_boot_ns && now < d->in.lease_until_ns) {
        g.valid_ns = d->in.lease_until_ns - now;
        d->lease.granted_until_ns = BH_MAX(d->lease.granted_until_ns, d->in.lease_until_ns);
        b->idle = false;
    }
    e.grant = &g;
    (void)bh_bus_send(d->binders, &b->peer, &e); /* else with its next hello */
}

void bh_sched_binder_lives(struct bh_sched_daemon *d, struct bh_binder *b,
                           const Berth__BinderHello *h)
{
    bool revoked = !d->lease.held && h->grant_seen == d->lease.serial;

    d->lease.progress += h->window > 0;
    b->stamp_boot_ns = h->stamp_boot_ns;
    b->idle = h->leaving || (revoked && h->on_wire == 0);
    if (!h->leaving)
        tell_grant(d, b);
}

static void grant_all(struct bh_sched_daemon *d)
{
    struct bh_binder *b;

    d->lease.serial++;
    for (size_t it = 0; (b = bh_ledger_next_binder(d->ledger, &it));)
        tell_grant(d, b);
}

/* ---- the end of a term ----------------------------------------------------------------------- */

struct taking_back {
    struct bh_sched_daemon *d;
    struct bh_pod_state **preemptors; /* held: some of their evictions are not to be any more */
    unsigned n;
    bool in_doubt; /* something that may take effect yet */
};

static void taken_back(void *arg, struct bh_work *w)
{
    struct taking_back *t = arg;

    t->in_doubt |= w->term == t->d->lease.term && w->doubt_boot_ns > bh_boot_ns();
    if (w->item.kind == BERTH__WORK_KIND__WORK_BIND) {
        bh_sched_bind_recalled(t->d, w);
    } else if (bh_work_is_write(w->item.kind) && !w->pod) {
        bh_sched_tended(t->d, w, NULL);
    } else if (bh_work_is_write(w->item.kind)) {
        bh_sched_prebind_recalled(t->d, w);
    } else if (w->item.kind == BERTH__WORK_KIND__WORK_PATCH_STATUS) {
        bh_sched_patch_recalled(t->d, w);
    } else if (w->on_behalf) {
        t->preemptors = bh_reallocarray(t->preemptors, t->n + 1, sizeof(*t->preemptors));
        t->preemptors[t->n++] = bh_pod_hold(w->on_behalf);
    }
}

/* Preemptors are let go here, when the ledger forgot their evictions: no answer would do it. Under another
 * term somebody leads long after what is on the wire has come in; this host may take the lease back at once,
 * under the same, and would give the same room and devices to others. */
static unsigned take_back(struct bh_sched_daemon *d, bool all)
{
    struct taking_back t = {.d = d};
    unsigned n = bh_ledger_recall(d->ledger, all, taken_back, &t);

    if (t.in_doubt)
        d->lease.settled_ns = d->lease.granted_until_ns + BH_BUS_GRANT_TAIL_NS + BH_WATCH_LAG_NS;
    for (unsigned i = 0; i < t.n; i++) {
        bh_sched_eviction_over(d, t.preemptors[i]);
        bh_pod_drop(t.preemptors[i]);
    }
    free(t.preemptors);
    return n;
}

/* ---- every turn ------------------------------------------------------------------------------ */

static void tell_watcher(struct bh_sched_daemon *d)
{
    struct bh_feed_life *life = &d->in.feed.life;
    struct bh_ledger_stats s;
    struct bh_binder *b;

    /* Quiet: nothing of the last term can be written any more. */
    bh_ledger_stats(d->ledger, &s);
    bool quiet = !d->lease.held && !s.out && bh_boot_ns() >= d->lease.strays_until_ns &&
                 !(d->lease.unseen_term && d->in.lease_term == d->lease.unseen_term);
    for (size_t it = 0; quiet && (b = bh_ledger_next_binder(d->ledger, &it));)
        quiet = b->idle;
    uint64_t quiet_term = quiet ? BH_MAX(d->lease.term, d->in.lease_term) : 0;
    bool ready = bh_sched_ready(d);
    bool news = (ready && !life->ready) || (quiet_term && quiet_term != life->quiet_term);

    life->ready = ready;
    life->quiet_term = quiet_term;
    life->binder_progress = d->lease.progress;
    if (news)
        bh_feed_tell(&d->in.feed);
}

/* About the node that this runs on, as kube-proxy's events: that it is a plugin of this host which
 * ends the scheduler is nobody else's. The lease is the watcher's, and may change hosts. */
static void aside_event(void *arg, const char *plugin, const char *aside, bool skips)
{
    struct bh_sched_daemon *d = arg;
    char host[HOST_NAME_MAX + 1] = "";

    if (!aside || gethostname(host, sizeof host - 1) < 0 || !*host)
        return;
    struct bh_work *w = bh_work_new(BERTH__WORK_KIND__WORK_EVENT, bh_str_c("default"),
                                    bh_str_c(host), bh_str_c(host));
    w->item.node = bh_strdup(host);
    bh_work_event(w, "Warning", "PluginPutAside", "Scheduling",
                  bh_asprintf("Plugin \"%s\": %s. %s", plugin, aside,
                              skips ? "Its pods are scheduled without it"
                                    : "Pods of profiles that use it are not scheduled"),
                  d->o.config ? d->o.config->profiles[0].scheduler_name : "default-scheduler",
                  NULL);
    (void)bh_ledger_add(d->ledger, w);
}

void bh_sched_lease_turn(struct bh_sched_daemon *d)
{
    bool leads = bh_sched_leads(d);
    struct bh_ledger_stats s;

    bh_ledger_stats(d->ledger, &s);
    if (s.strays != d->lease.strays) {
        /* A binder that was lost, not stopped, may write until its grant ends. */
        d->lease.strays = s.strays;
        d->lease.strays_until_ns = d->lease.granted_until_ns + BH_BUS_GRANT_TAIL_NS;
    }
    if (d->lease.held && !leads) {
        d->lease.held = false;
        grant_all(d);
        unsigned n = take_back(d, true);
        bh_sched_prebind_end_term(d);
        bh_sched_adopt_end_term(d);
        bh_log_info("The lease is gone, standing by", bh_kv_u("term", d->lease.term),
                    bh_kv_u("taken_back", n));
    }
    if (!d->lease.held && bh_sched_leads(d)) {
        /* A scheduler started in the middle of a term does not know which binders an earlier one
         * had. */
        if (d->lease.term != d->in.lease_term)
            d->lease.settled_ns = 0;
        d->lease.term = d->in.lease_term;
        d->lease.held = true;
        bh_ledger_begin_term(d->ledger, d->lease.term);
        if (!d->lease.stood_by && !no_election(d))
            d->lease.strays_until_ns = d->in.lease_until_ns + BH_BUS_GRANT_TAIL_NS;
        grant_all(d);
        bh_native_each(aside_event, d);
        if (d->lease.stood_by && d->lease.term) /* what a rejected pod waited for may be over */
            bh_queue_wake_all(d->queue, bh_sched_now(d));
    }
    if (d->lease.held)
        bh_native_each_newly_aside(aside_event, d);
    if (!leads) {
        /* The term ended before we came: until when a binder of the scheduler before may write under
         * it, nobody here knows. The watcher does, and waits for that. The lease is seen before there
         * is room for a snapshot. */
        if (!d->lease.stood_by && !d->lease.term && d->adopt.inherited)
            d->lease.unseen_term = d->in.lease_term;
        d->lease.stood_by |= d->in.snapshot_ready;
    }
    /* What came back since: refused by a binder, or lost with one. */
    (void)take_back(d, !d->lease.held);
    tell_watcher(d);
}

bool bh_sched_lease_left(struct bh_sched_daemon *d)
{
    d->lease.leaving = true;
    tell_watcher(d); /* its last word from us must be what we leave on */
    return no_election(d) || !d->lease.term || d->in.feed.life.quiet_term;
}
