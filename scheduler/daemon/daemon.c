/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon.c - start, duty cycle, stop
 */
#include "scheduler/daemon/daemon.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/bus/curve.h"
#include "scheduler/native/native.h"
#include "scheduler/wasm/guest.h"

#define TURNED_AWAY_EVERY_NS UINT64_C(10000000000)
#define BH_LEAVE_NS          UINT64_C(1000000000) /* at stop: binders may end what they have on the wire */
#define GOODBYE_MS           100                  /* for the last message to leave */

int64_t bh_sched_now(const struct bh_sched_daemon *d)
{
    return d->wall_base_ns + (int64_t)(bh_mono_ns() - d->mono_base_ns);
}

static bool check_live(void *arg BH_UNUSED)
{
    return true;
}

static bool check_snapshot(void *arg)
{
    const struct bh_sched_daemon *d = arg;

    return d->in.snapshot_ready && bh_sched_snapshot_fresh(d);
}

static bool check_feed(void *arg)
{
    return ((const struct bh_sched_daemon *)arg)->in.feed.synced;
}

static bool check_binders(void *arg)
{
    const struct bh_sched_daemon *d = arg;
    struct bh_ledger_stats s;

    bh_ledger_stats(d->ledger, &s);
    return s.binders > 0;
}

static void is_missed(void *arg, const char *plugin BH_UNUSED, const char *aside, bool skips)
{
    *(bool *)arg |= aside && !skips;
}

/* Pods whose profile has a plugin that is put aside are not scheduled, if its entry does not say
 * that it can be done without. */
static bool check_plugins(void *arg BH_UNUSED)
{
    bool missed = false;

    bh_native_each(is_missed, &missed);
    return !missed;
}

/* The sockets only wake the loop: draining happens in the turn, in its order. */
static bool wake(void *arg)
{
    *(bool *)arg = true;
    return false;
}

static void on_idle_timer(uv_timer_t *t BH_UNUSED)
{
}

static void on_stop(void *arg)
{
    ((struct bh_sched_daemon *)arg)->stopping = true;
}

int bh_sched_reload(struct bh_sched_daemon *d, struct bh_err *err)
{
    struct bh_sched_config *c = NULL;
    struct bh_buf text = {0};
    struct bh_config_report r;

    if (!d->o.config_path)
        return bh_err_set(err, -ENOENT,
                          "there is no file to read: the scheduler runs without --config");
    const int plugins = bh_native_refresh(err);
    if (plugins < 0)
        return plugins;
    bh_config_report_init(&r);
    (void)bh_guest_changed();
    int rc = bh_sched_config_load_report(d->o.config_path, &c, &r);
    if (rc < 0)
        bh_err_set(err, rc, "%s", bh_config_report_line(&r, d->o.config_path));
    else if (!d->o.config_text || c->n_extenders)
        rc = BH_SCHED_RELOAD; /* files that extenders are asked with may have changed without it */
    else
        bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, true, &text);
    const bool guests = bh_guest_changed();
    if (rc == 0 && (plugins || guests || !bh_streq(bh_buf_str(&text), d->o.config_text)))
        rc = BH_SCHED_RELOAD;
    bh_buf_fini(&text);
    bh_sched_config_free(c);
    bh_config_report_fini(&r);
    if (rc == BH_SCHED_RELOAD)
        d->stopping = d->reloading = true;
    return rc;
}

static void on_hup(void *arg)
{
    struct bh_sched_daemon *d = arg;
    struct bh_err err = {0};
    int rc = bh_sched_reload(d, &err);

    if (rc < 0)
        bh_log_error("SIGHUP: the configuration stays as it is", bh_kv_s("err", err.msg));
    else if (rc == 0)
        bh_log_info("SIGHUP: the configuration's file says what is in force",
                    bh_kv_s("file", d->o.config_path));
}

static int open_bus(struct bh_sched_daemon *d, struct bh_err *err)
{
    const struct bh_intake_options in = {.runtime_dir = d->o.runtime_dir,
                                         .users = d->o.users,
                                         .engine = d->engine,
                                         .epoch = d->epoch,
                                         .cb = bh_sched_feed_callbacks(d)};
    char binders[128];
    int rc = bh_intake_init(&d->in, &in, err);

    if (rc == 0)
        rc = bh_bus_endpoint(d->o.runtime_dir, "scheduler", binders, err);
    if (rc == 0)
        rc = bh_bus_open_among(BH_BUS_ROUTER_BIND, binders, NULL, d->o.users, BH_BUS_BINDER,
                               &d->binders, err);
    if (rc == 0 && d->o.binder_listen) {
        const struct bh_bus_listen l = {d->o.binder_listen, d->o.key_file, d->o.binder_keys};
        char where[128];
        rc = bh_bus_listen(d->binders, &l, where, err);
        if (rc == 0)
            bh_log_info("Binders of other hosts may connect", bh_kv_s("endpoint", where),
                        bh_kv_s("keys", l.allow_dir));
    }
    if (rc < 0)
        return rc;
    d->feed_poll = bh_bus_poll_new(d->loop, d->in.feed.bus, wake, &d->feed_news);
    d->binders_poll = bh_bus_poll_new(d->loop, d->binders, wake, &d->binders_news);
    return 0;
}

static int start(struct bh_sched_daemon *d, struct bh_err *err)
{
    const struct bh_probe_check checks[] = {
        {"ping", check_live, d, true, true, NULL},
        {"snapshot", check_snapshot, d, false, true, NULL},
        {"sched-handler-sync", check_feed, d, false, true, NULL},
        {"binders", check_binders, d, false, true, NULL},
        {"plugins", check_plugins, d, false, true, NULL},
        {0},
    };
    struct bh_engine_options eo = {.config = d->o.config,
                                   .tie_break = d->o.tie_break,
                                   .group_stays = d->o.group_stays,
                                   .seed = d->o.seed,
                                   .verify = d->o.verify,
                                   .waiting = bh_sched_waiting,
                                   .waiting_arg = d,
                                   .observer = &d->observer};
    struct bh_queue_options qo = {.verify = d->o.verify,
                                  .initial_backoff_ns = 1000000000,
                                  .max_backoff_ns = 10000000000,
                                  .max_in_unschedulable_ns = 300 * INT64_C(1000000000)};

    if (d->o.config) {
        qo.initial_backoff_ns = d->o.config->pod_initial_backoff_ns;
        qo.max_backoff_ns = d->o.config->pod_max_backoff_ns;
    }
    if (d->o.max_in_unschedulable_ns)
        qo.max_in_unschedulable_ns = d->o.max_in_unschedulable_ns;
    qo.keep_backoff = !bh_sched_config_gate(d->o.config, "SchedulerPopFromBackoffQ");
    d->observer = bh_sched_observer(d);
    int rc = bh_engine_new(&eo, &d->engine, err);
    if (rc < 0)
        return rc;
    d->symtab = bh_engine_symtab(d->engine);
    d->queue = bh_queue_new(d->engine, &qo);
    d->pods = bh_queue_pods(d->queue);
    d->ledger = bh_ledger_new(d->epoch);
    if (d->o.record.mode != BH_RECORD_OFF)
        d->recorder = bh_recorder_new(&d->o.record);
    if (d->o.record.mode >= BH_RECORD_FULL)
        d->decide_flags = BH_EXPLAIN | BH_RECORD;
    bh_sched_metrics_init(d);
    bh_sched_extenders_start(d);
    rc = open_bus(d, err);
    if (rc == 0) /* the record belongs to the process that has the sockets */
        rc = bh_sched_adopt_start(d, err);
    if (rc == 0)
        rc = bh_control_open(d, &d->control, err);
    if (rc == 0)
        rc = bh_probes_start(d->loop, d->o.metrics_address, d->o.runtime_dir, "scheduler",
                             d->metrics, checks, &d->probes, err);
    return rc;
}

int bh_sched_daemon_init(struct bh_sched_daemon *d, const struct bh_sched_daemon_options *o,
                         uv_loop_t *loop, struct bh_err *err)
{
    *d = (struct bh_sched_daemon){
        .o = *o,
        .loop = loop,
        .timing = {.snapshot_stale_ns = BH_SNAPSHOT_STALE_NS,
                   .binder_grace_ns = BH_BINDER_GRACE_NS,
                   .claim_ns = BH_INFLIGHT_REQUEST_NS,
                   .unseen_ns = BH_BOUND_UNSEEN_NS},
        .epoch = bh_boot_ns(),
        .audit = {.generation = 1},
        .wall_base_ns = bh_wall_ns(),
    };
    TAILQ_INIT(&d->letters);
    TAILQ_INIT(&d->prebinds.list);
    bh_arena_init(&d->text_arena, 0);
    bh_arena_init(&d->bus_arena, 4u * BH_BUS_MAX_BYTES);
    d->started_ns = d->mono_base_ns = bh_mono_ns();
    uv_timer_init(loop, &d->idle);
    return start(d, err);
}

void bh_sched_daemon_fini(struct bh_sched_daemon *d)
{
    uv_close((uv_handle_t *)&d->idle, NULL);
    bh_probes_free(d->probes);
    bh_control_close(d->control);
    bh_bus_poll_close(d->feed_poll);
    bh_bus_poll_close(d->binders_poll);
    bh_intake_fini(&d->in);
    bh_bus_close(d->binders);
    bh_sched_metrics_free(d);
    bh_recorder_free(d->recorder);
    bh_sched_drop_letters(d);
    bh_sched_drop_leaving(d);
    bh_sched_extenders_stop(d);
    bh_sched_prebind_fini(d);
    bh_sched_audit_fini(d);
    bh_ledger_free(d->ledger);
    bh_sched_adopt_fini(d);
    bh_queue_free(d->queue);
    bh_engine_free(d->engine);
    bh_arena_fini(&d->text_arena);
    bh_arena_fini(&d->bus_arena);
}

/* A binder with a key that is not allowed knocks again and again: one line in ten seconds. */
static void tell_turned_away(struct bh_sched_daemon *d)
{
    uint64_t now = bh_mono_ns();
    struct bh_bus_stats s;

    if (!d->o.binder_listen || now - d->told_turned_away_ns < TURNED_AWAY_EVERY_NS)
        return;
    d->told_turned_away_ns = now;
    bh_bus_stats(d->binders, &s);
    if (s.turned_away != d->told_turned_away)
        bh_log_warn("Turned binders away: their keys are not allowed",
                    bh_kv_u("handshakes", s.turned_away - d->told_turned_away),
                    bh_kv_s("keys", d->o.binder_keys));
    d->told_turned_away = s.turned_away;
}

unsigned bh_sched_daemon_turn(struct bh_sched_daemon *d)
{
    bh_engine_moment(d->engine, bh_sched_now(d));
    unsigned work = bh_intake_follow(&d->in, BH_TURN_LOG_EVENTS);

    bh_sched_sweep(d);
    unsigned feed = 0, binders = 0;
    if (d->feed_news) {
        feed = bh_feed_drain(&d->in.feed, BH_TURN_MESSAGES);
        d->feed_news = feed == BH_TURN_MESSAGES;
    }
    if (d->binders_news || d->n_letters) {
        binders = bh_sched_drain_binders(d);
        d->binders_news = binders >= BH_TURN_MESSAGES;
    }
    work += feed + binders;
    bh_sched_see_victims_off(d);
    bh_engine_extenders_serve(d->engine);
    bh_intake_tick(&d->in);
    tell_turned_away(d);
    (void)bh_ledger_expire(d->ledger, bh_mono_ns());
    bh_sched_lease_turn(d);
    (void)bh_queue_tick(d->queue, bh_sched_now(d));
    bh_sched_adopt_turn(d);
    unsigned unseen = bh_sched_may_decide(d) ? bh_ledger_overdue(d->ledger, bh_mono_ns()) : 0;
    if (unseen) /* the API server said that they are bound, and the watch, which is at work, not */
        bh_log_warn("The watch does not show pods that should be bound, looking at them",
                    bh_kv_u("pods", unseen));
    work += bh_sched_cycles(d, BH_TURN_CYCLES);
    bh_sched_prebind_turn(d);
    work += bh_sched_asked_turn(d);
    bh_sched_extenders_turn(d);
    if (bh_sched_leads(d)) /* decisions take time, and a process may be stopped */
        work += bh_ledger_flush(d->ledger, d->binders, bh_mono_ns());
    bh_sched_audit_turn(d);
    if (bh_unlikely(d->recorder))
        bh_recorder_turn(d->recorder);
    work += bh_control_serve(d->control);
    return work;
}

/* Binders hear that nothing more is to be written, and the watcher, when that is so: it can give
 * the lease up at once. */
static void leave(struct bh_sched_daemon *d)
{
    uint64_t end = bh_mono_ns() + BH_LEAVE_NS;
    struct bh_ledger_stats s;

    while (!bh_sched_lease_left(d) && bh_mono_ns() < end) {
        (void)bh_sched_daemon_turn(d);
        uv_run(d->loop, UV_RUN_ONCE);
    }
    bh_ledger_stats(d->ledger, &s);
    if (bh_sched_lease_left(d) && !s.out)
        bh_sched_adopt_left(d);
    d->in.feed.life.leaving = true;
    bh_feed_tell(&d->in.feed);
    bh_bus_linger(d->in.feed.bus, GOODBYE_MS);
}

/* How long the loop may sleep when no socket wakes it. */
static void rest(struct bh_sched_daemon *d, bool deciding, uint64_t *idle_ms)
{
    struct bh_queue_stats q;

    bh_queue_stats(d->queue, &q);
    /* A snapshot that is still being filled: the feed tells when it is not. */
    const bool filling = d->in.rebuilding && !d->in.snapshot_ready;
    uint64_t ms = filling || (deciding && !q.backoff && !q.unschedulable && !d->prebinds.n &&
                              LIST_EMPTY(&d->leaving) && !d->sweep_due)
                      ? BH_REST_MS
                      : BH_IDLE_MS;
    if (ms == *idle_ms)
        return;
    *idle_ms = ms;
    uv_timer_start(&d->idle, on_idle_timer, ms, ms);
}

int bh_sched_daemon_run(const struct bh_sched_daemon_options *o, struct bh_err *err)
{
    uv_loop_t loop;
    struct bh_sched_daemon d;
    bool deciding = false;
    uint64_t idle_ms = BH_IDLE_MS;

    uv_loop_init(&loop);
    struct bh_signals *signals = bh_signals_new(&loop, on_stop, on_hup, &d);
    int rc = bh_sched_daemon_init(&d, o, &loop, err);
    if (rc == 0) {
        uv_timer_start(&d.idle, on_idle_timer, BH_IDLE_MS, BH_IDLE_MS);
        d.keepalive = bh_keepalive_new(&loop, check_live, &d);
        bh_log_info("Scheduler started", bh_kv_s("runtime_dir", o->runtime_dir),
                    bh_kv_s("version", BH_VERSION),
                    bh_kv_i("metrics_port", bh_probes_port(d.probes)));
        while (!d.stopping) {
            unsigned work = bh_sched_daemon_turn(&d);
            const bool decides = bh_sched_may_decide(&d);
            rest(&d, decides, &idle_ms);
            uv_run(&loop, work ? UV_RUN_NOWAIT : UV_RUN_ONCE);
            if (deciding == decides)
                continue;
            deciding = decides;
            bh_log_info(deciding ? "Scheduler decides" : "Scheduler pauses",
                        bh_kv_u("nodes", bh_engine_node_count(d.engine)));
        }
        if (d.reloading) {
            bh_log_info("Scheduler starts again with a changed configuration",
                        bh_kv_s("file", o->config_path));
            rc = BH_SCHED_RELOAD; /* the service manager goes on hearing from this process */
        } else {
            bh_log_info("Scheduler stops");
            leave(&d);
        }
        bh_keepalive_close(d.keepalive, !d.reloading);
    }
    bh_signals_close(signals);
    bh_sched_daemon_fini(&d);
    bh_loop_drain_close(&loop);
    return rc;
}
