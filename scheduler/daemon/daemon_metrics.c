/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon_metrics.c - upstream's metrics of the scheduler, and Berth's own
 *
 * Upstream: pkg/scheduler/metrics/metrics.go (names, labels, buckets).
 */
#include "scheduler/daemon/daemon.h"

struct bh_sched_metrics {
    struct bh_metric *control, *attempts, *attempt_s, *algorithm_s, *sli_s, *attempts_hist,
        *pending, *incoming, *cache, *preemptions, *victims, *outcomes, *ledger, *engine, *snapshot;
    struct bh_metric *master, *permit;
};

static void on_incoming(void *arg, const char *queue, const char *event)
{
    struct bh_sched_daemon *d = arg;

    bh_cell_add(bh_metric_cell(d->m->incoming, queue, event), 1);
}

static void fill_queue(struct bh_sched_daemon *d)
{
    struct bh_queue_stats q;

    bh_queue_stats(d->queue, &q);
    bh_cell_set(bh_metric_cell(d->m->pending, "active"), (double)q.active);
    bh_cell_set(bh_metric_cell(d->m->pending, "backoff"), (double)q.backoff);
    bh_cell_set(bh_metric_cell(d->m->pending, "unschedulable"), (double)q.unschedulable);
    bh_cell_set(bh_metric_cell(d->m->pending, "gated"), (double)q.gated);
    bh_cell_set(bh_metric_cell(d->m->cache, "nodes"), bh_engine_node_count(d->engine));
    bh_cell_set(bh_metric_cell(d->m->cache, "pods"), bh_engine_pod_count(d->engine));
    bh_cell_set(bh_metric_cell(d->m->cache, "assumed_pods"), bh_engine_assumed_count(d->engine));
}

static void fill_control(struct bh_sched_daemon *d)
{
    struct bh_control_stats c;

    if (!d->control)
        return;
    bh_control_stats(d->control, &c);
    bh_cell_set(bh_metric_cell(d->m->control, "answered"), (double)c.answered);
    bh_cell_set(bh_metric_cell(d->m->control, "malformed"), (double)c.malformed);
    bh_cell_set(bh_metric_cell(d->m->control, "dropped"), (double)c.dropped);
    bh_cell_set(bh_metric_cell(d->m->control, "busy_seconds"), (double)c.busy_ns / 1e9);
}

static void fill(void *arg)
{
    struct bh_sched_daemon *d = arg;
    struct bh_ledger_stats l;
    struct bh_engine_stats e;
    struct bh_snap_stats s;

    fill_queue(d);
    fill_control(d);
    bh_ledger_stats(d->ledger, &l);
    bh_cell_set(bh_metric_cell(d->m->ledger, "queued"), (double)l.queued);
    bh_cell_set(bh_metric_cell(d->m->ledger, "out"), (double)l.out);
    bh_cell_set(bh_metric_cell(d->m->ledger, "binds"), (double)l.binds);
    bh_cell_set(bh_metric_cell(d->m->ledger, "before_bind"), (double)d->prebinds.by_uid.len);
    bh_cell_set(bh_metric_cell(d->m->ledger, "binders"), (double)l.binders);
    bh_cell_set(bh_metric_cell(d->m->ledger, "dropped_events"), (double)l.dropped_events);
    bh_cell_set(bh_metric_cell(d->m->ledger, "refused"), (double)l.refused);
    bh_cell_set(bh_metric_cell(d->m->ledger, "reissued"), (double)l.reissued);
    bh_engine_stats(d->engine, &e);
    bh_cell_set(bh_metric_cell(d->m->engine, "cycles"), (double)e.cycles);
    bh_cell_set(bh_metric_cell(d->m->engine, "fast_cycles"), (double)e.fast_cycles);
    bh_cell_set(bh_metric_cell(d->m->engine, "reference_cycles"), (double)e.reference_cycles);
    bh_cell_set(bh_metric_cell(d->m->engine, "shape_hits"), (double)e.shape_hits);
    bh_cell_set(bh_metric_cell(d->m->engine, "shape_misses"), (double)e.shape_misses);
    bh_cell_set(bh_metric_cell(d->m->engine, "nodes_rescored"), (double)e.nodes_rescored);
    if (d->lease.term) /* as upstream: only with election */
        bh_cell_set(bh_metric_cell(d->m->master, "kube-scheduler"), d->lease.held);
    if (bh_snap_reader_info(d->in.reader, &s)) {
        bh_cell_set(bh_metric_cell(d->m->snapshot, "head"), (double)s.head);
        bh_cell_set(bh_metric_cell(d->m->snapshot, "position"),
                    (double)bh_snap_reader_pos(d->in.reader));
        bh_cell_set(bh_metric_cell(d->m->snapshot, "heartbeat_age_seconds"),
                    (double)(bh_boot_ns() - BH_MIN(bh_boot_ns(), s.heartbeat_boot_ns)) / 1e9);
    }
}

static void make_histograms(struct bh_sched_metrics *m, struct bh_metrics *r)
{
    static const double counts[] = {1, 2, 4, 8, 16};
    static const double victims[] = {1, 2, 4, 8, 16, 32, 64};
    double b15[15], b20[20];

    bh_buckets_exponential(0.001, 2, 15, b15);
    bh_buckets_exponential(0.01, 2, 20, b20);
    m->attempt_s =
        bh_metric_new(r, BH_HISTOGRAM, "scheduler_scheduling_attempt_duration_seconds",
                      "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
                      "result,profile", b15, 15);
    m->algorithm_s =
        bh_metric_new(r, BH_HISTOGRAM, "scheduler_scheduling_algorithm_duration_seconds",
                      "Scheduling algorithm latency in seconds", "", b15, 15);
    m->sli_s =
        bh_metric_new(r, BH_HISTOGRAM, "scheduler_pod_scheduling_sli_duration_seconds",
                      "E2e latency for a pod being scheduled, from the time the pod enters the "
                      "scheduling queue and might involve multiple scheduling attempts.",
                      "attempts", b20, 20);
    m->permit = bh_metric_new(r, BH_HISTOGRAM, "scheduler_permit_wait_duration_seconds",
                              "Duration of waiting on permit", "result", b15, 15);
    m->attempts_hist =
        bh_metric_new(r, BH_HISTOGRAM, "scheduler_pod_scheduling_attempts",
                      "Number of attempts to successfully schedule a pod.", "", counts, 5);
    m->victims = bh_metric_new(r, BH_HISTOGRAM, "scheduler_preemption_victims",
                               "Number of selected preemption victims", "", victims, 7);
}

void bh_sched_metrics_init(struct bh_sched_daemon *d)
{
    struct bh_metrics *r = d->metrics = bh_metrics_new();
    struct bh_sched_metrics *m = d->m = bh_calloc(1, sizeof(*m));

    m->attempts = bh_metric_new(r, BH_COUNTER, "scheduler_schedule_attempts_total",
                                "Number of attempts to schedule pods, by the result.",
                                "result,profile", NULL, 0);
    make_histograms(m, r);
    m->pending = bh_metric_new(r, BH_GAUGE, "scheduler_pending_pods",
                               "Number of pending pods, by the queue type.", "queue", NULL, 0);
    m->incoming =
        bh_metric_new(r, BH_COUNTER, "scheduler_queue_incoming_pods_total",
                      "Number of pods added to scheduling queues by event and queue type.",
                      "queue,event", NULL, 0);
    m->cache = bh_metric_new(
        r, BH_GAUGE, "scheduler_cache_size",
        "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", "type", NULL, 0);
    m->preemptions =
        bh_metric_new(r, BH_COUNTER, "scheduler_preemption_attempts_total",
                      "Total preemption attempts in the cluster till now", "", NULL, 0);
    m->outcomes = bh_metric_new(r, BH_COUNTER, "berth_scheduler_write_outcomes_total",
                                "Answers of binders, by outcome.", "outcome", NULL, 0);
    m->ledger = bh_metric_new(
        r, BH_GAUGE, "berth_scheduler_ledger",
        "Writes handed to binders and not yet answered, and what became of them.", "what", NULL, 0);
    m->engine = bh_metric_new(r, BH_GAUGE, "berth_scheduler_engine",
                              "Decisions by path, and the work of the fast path.", "what", NULL, 0);
    m->snapshot = bh_metric_new(
        r, BH_GAUGE, "berth_scheduler_snapshot",
        "Position in the snapshot's change log, and the watcher's heartbeat.", "what", NULL, 0);
    m->control = bh_metric_new(r, BH_GAUGE, "berth_scheduler_control",
                               "Questions to the control socket by what became of them, and the "
                               "time they took.",
                               "what", NULL, 0);
    m->master = bh_metric_new(
        r, BH_GAUGE, "leader_election_master_status",
        "[ALPHA] Gauge of if the reporting system is master of the relevant lease, 0 indicates "
        "backup, 1 indicates master. 'name' is the string used to identify the lease. Please make "
        "sure to group by name.",
        "name", NULL, 0);
    bh_metrics_on_scrape(r, fill, d);
    bh_metrics_add_process(r, "berth-scheduler");
    bh_queue_on_incoming(d->queue, on_incoming, d);
}

void bh_sched_metrics_free(struct bh_sched_daemon *d)
{
    bh_metrics_free(d->metrics);
    free(d->m);
    d->metrics = NULL;
    d->m = NULL;
}

void bh_sched_count_attempt(struct bh_sched_daemon *d, const char *result, const char *profile,
                            double algorithm_s)
{
    bh_cell_add(bh_metric_cell(d->m->attempts, result, profile), 1);
    bh_cell_observe(bh_metric_cell(d->m->algorithm_s), algorithm_s);
    if (!bh_streq(result, "scheduled")) /* a scheduled one is observed when its binding is done */
        bh_cell_observe(bh_metric_cell(d->m->attempt_s, result, profile), algorithm_s);
}

void bh_sched_count_bound(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                          const char *profile, double attempt_s)
{
    char attempts[16];

    snprintf(attempts, sizeof(attempts), p->attempts < 15 ? "%u" : "15+", p->attempts);
    bh_cell_observe(bh_metric_cell(d->m->attempt_s, "scheduled", profile), attempt_s);
    bh_cell_observe(bh_metric_cell(d->m->sli_s, attempts),
                    (double)(bh_sched_now(d) - p->initial_attempt_ns) / 1e9);
    bh_cell_observe(bh_metric_cell(d->m->attempts_hist), p->attempts);
}

void bh_sched_count_permit(struct bh_sched_daemon *d, const char *result, int64_t waited_ns)
{
    bh_cell_observe(bh_metric_cell(d->m->permit, result), (double)waited_ns / 1e9);
}

void bh_sched_count_preemption(struct bh_sched_daemon *d, uint32_t victims)
{
    bh_cell_add(bh_metric_cell(d->m->preemptions), 1);
    bh_cell_observe(bh_metric_cell(d->m->victims), victims);
}

void bh_sched_count_outcome(struct bh_sched_daemon *d, Berth__Outcome o)
{
    static const char *const names[] = {"done",  "rejected", "gone", "bound_elsewhere",
                                        "stale", "unknown"};

    bh_cell_add(
        bh_metric_cell(d->m->outcomes, (unsigned)o < BH_ARRAY_LEN(names) ? names[o] : "other"), 1);
}
