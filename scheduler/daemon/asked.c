/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/asked.c - what plugins ask for: pods to try next, events, other tries, writes
 *
 * What is wanted written (tend()) is asked for once a second while the scheduler decides, not before all of the last
 * time is answered, and ever more seldom while the API server refuses some of it.
 */
#include "common/base/log.h"
#include "scheduler/daemon/daemon.h"

#define TEND_EVERY_NS     UINT64_C(1000000000)
#define TEND_EVERY_MAX_NS UINT64_C(300000000000)

static void plugin_event(void *arg, const struct bh_asked_event *ev)
{
    struct bh_sched_daemon *d = arg;

    if (!bh_sched_leads(d))
        return;
    struct bh_work *w = bh_work_new(BERTH__WORK_KIND__WORK_EVENT, bh_str_c(ev->namespace_),
                                    bh_str_c(ev->name), bh_str_c(ev->uid));
    bh_work_event(w, ev->warning ? "Warning" : "Normal", ev->reason, "Scheduling",
                  bh_strdup(ev->note), ev->controller, NULL);
    (void)bh_ledger_add(d->ledger, w);
}

static void plugin_wakes(void *arg, const char *plugin)
{
    struct bh_sched_daemon *d = arg;
    const struct bh_cluster_event ev = {
        .resource = BH_EV_PLUGIN, .action = BH_EV_UPDATE, .plugin = plugin};

    bh_queue_event(d->queue, &ev, bh_sched_now(d));
}

/* The item is named for the object that it is about: there is no pod. */
static void plugin_writes(void *arg, const struct bh_write *x)
{
    struct bh_sched_daemon *d = arg;
    const char *uid = x->uid && *x->uid ? x->uid : "none"; /* a test in the patch says which */
    struct bh_work *w =
        bh_work_new(BERTH__WORK_KIND__WORK_PATCH, bh_str_c(*x->namespace_ ? x->namespace_ : "none"),
                    bh_str_c(x->name), bh_str_c(uid));

    bh_work_write(w, x);
    const char *unfit = bh_work_unfit(w);
    if (!unfit) {
        d->n_tended++;
        (void)bh_ledger_add(d->ledger, w);
        return;
    }
    bh_log_error("What a plugin wants written cannot be sent", bh_kv_s("plugin", x->plugin),
                 bh_kv_s("object", x->name), bh_kv_s("why", unfit));
    bh_work_free(w);
}

/* Of all that was wanted at once one answer counts: what is refused again and again is asked for later, however
 * much else there was. */
void bh_sched_tended(struct bh_sched_daemon *d, const struct bh_work *w, const Berth__WorkResult *r)
{
    if (r && r->outcome != BERTH__OUTCOME__OUTCOME_DONE) {
        d->tend_refused = true;
        bh_log_warn("What a plugin wants written was refused",
                    bh_kv_s("object", w->item.write->name),
                    bh_kv_s("namespace", w->item.write->namespace_),
                    bh_kv_s("resource", w->item.write->patch->resource), bh_kv_i("code", r->code),
                    bh_kv_s("message", r->message));
    }
    if (--d->n_tended)
        return;
    d->tend_every_ns =
        d->tend_refused ? BH_MIN(2 * d->tend_every_ns, TEND_EVERY_MAX_NS) : TEND_EVERY_NS;
    d->tend_refused = false;
}

static void tend(struct bh_sched_daemon *d)
{
    const uint64_t now = bh_mono_ns();

    if (!d->tend_every_ns)
        d->tend_every_ns = TEND_EVERY_NS;
    if (d->n_tended || now - d->tended_ns < d->tend_every_ns || !bh_sched_may_decide(d))
        return;
    d->tended_ns = now;
    bh_engine_tend(d->engine, bh_sched_now(d));
}

unsigned bh_sched_asked_turn(struct bh_sched_daemon *d)
{
    static const struct bh_asked asked = {plugin_event, plugin_wakes, plugin_writes};

    tend(d);
    return bh_sched_activate(d) + bh_engine_asked(d->engine, &asked, d) +
           bh_engine_wakes(d->engine, bh_sched_now(d), plugin_wakes, d);
}
