/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon_metrics.c - the scheduler's metrics: families, and what is read at a
 * scrape (what is counted where it happens: daemon_observe.c)
 *
 * Names, labels, buckets and help texts of scheduler_* are upstream's; what a number means here
 * where nothing quite like upstream's happens stands in docs/metrics.md.
 *
 * Upstream: pkg/scheduler/metrics/metrics.go; differences: without asynchronous API calls, pod
 *           groups and goroutines of preemption, so without their metrics.
 */
#include "common/flags/feature_gates.h"
#include "scheduler/daemon/metrics_int.h"

#define KUBERNETES_BINARY "1.36.2"

/* ---- families -------------------------------------------------------------------------------- */

struct family {
    size_t off; /* of the struct bh_metric *, or without labels of the struct bh_cell * */
    enum bh_metric_kind kind;
    const char *name, *help, *labels;
    double start, factor; /* histograms: n exponential buckets */
    unsigned n;
};
#define F(member) offsetof(struct bh_sched_metrics, member)
static const struct family families[] = {
    {F(attempts), BH_COUNTER, "scheduler_schedule_attempts_total",
     "[STABLE] Number of attempts to schedule pods, by the result. 'unschedulable' means a pod "
     "could not be scheduled, while 'error' means an internal scheduler problem.",
     "profile,result", 0, 0, 0},
    {F(attempt_s), BH_HISTOGRAM, "scheduler_scheduling_attempt_duration_seconds",
     "[STABLE] Scheduling attempt latency in seconds (scheduling algorithm + binding)",
     "profile,result", 0.001, 2, 15},
    {F(point_s), BH_HISTOGRAM, "scheduler_framework_extension_point_duration_seconds",
     "[STABLE] Latency for running all plugins of a specific extension point.",
     "extension_point,profile,status", 0.0001, 2, 12},
    {F(plugin_s), BH_HISTOGRAM, "scheduler_plugin_execution_duration_seconds",
     "[ALPHA] Duration for running a plugin at a specific extension point.",
     "extension_point,plugin,status", 0.00001, 1.5, 20},
    {F(hint_s), BH_HISTOGRAM, "scheduler_queueing_hint_execution_duration_seconds",
     "[ALPHA] Duration for running a queueing hint function of a plugin.", "event,hint,plugin",
     0.00001, 1.5, 20},
    {F(event_s), BH_HISTOGRAM, "scheduler_event_handling_duration_seconds",
     "[ALPHA] Event handling latency in seconds.", "event", 0.0001, 2, 12},
    {F(sli_s), BH_HISTOGRAM, "scheduler_pod_scheduling_sli_duration_seconds",
     "[BETA] E2e latency for a pod being scheduled, from the time the pod enters the scheduling "
     "queue and might involve multiple scheduling attempts.",
     "attempts", 0.01, 2, 20},
    {F(permit), BH_HISTOGRAM, "scheduler_permit_wait_duration_seconds",
     "[BETA] Duration of waiting on permit.", "result", 0.001, 2, 15},
    {F(incoming), BH_COUNTER, "scheduler_queue_incoming_pods_total",
     "[STABLE] Number of pods added to scheduling queues by event and queue type.", "event,queue",
     0, 0, 0},
    {F(evaluations), BH_COUNTER, "scheduler_plugin_evaluation_total",
     "[BETA] Number of attempts to schedule pods by each plugin and the extension point (available "
     "only in PreFilter, Filter, PreScore, and Score).",
     "extension_point,plugin,profile", 0, 0, 0},
    {F(unschedulable), BH_GAUGE, "scheduler_unschedulable_pods",
     "[BETA] The number of unschedulable pods broken down by plugin name. A pod will increment the "
     "gauge for all plugins that caused it to not schedule and so this metric have meaning only "
     "when broken down by plugin.",
     "plugin,profile", 0, 0, 0},
    {F(in_flight), BH_GAUGE, "scheduler_inflight_events",
     "[ALPHA] Number of events currently tracked in the scheduling queue.", "event", 0, 0, 0},
    {F(goroutines), BH_GAUGE, "scheduler_goroutines",
     "[BETA] Number of running goroutines split by the work they do such as binding.", "operation",
     0, 0, 0},
    {F(batch), BH_COUNTER, "scheduler_batch_attempts_total",
     "[ALPHA] Counts of results when we attempt to use batching.", "profile,result", 0, 0, 0},
    {F(claims), BH_COUNTER, "scheduler_resourceclaim_creates_total",
     "[ALPHA] Number of ResourceClaims creation requests within scheduler", "status", 0, 0, 0},
    {F(binding_conditions), BH_COUNTER, "scheduler_dra_bindingconditions_allocations_total",
     "[ALPHA] Number of allocations using devices with BindingConditions, counted per driver per "
     "scheduling attempt",
     "driver,profile,status", 0, 0, 0},
    {F(binding_conditions_s), BH_HISTOGRAM, "scheduler_dra_bindingconditions_wait_duration_seconds",
     "[ALPHA] Time in seconds spent waiting for BindingConditions to be satisfied during PreBind.",
     "driver,profile,status", 0.1, 2, 14},
    {F(volume_errors), BH_COUNTER, "scheduler_volume_scheduling_stage_error_total",
     "[ALPHA] Volume scheduling stage error count", "operation", 0, 0, 0},
    {F(outcomes), BH_COUNTER, "berth_scheduler_write_outcomes_total",
     "Answers of binders, by outcome.", "outcome", 0, 0, 0},
    {F(ledger), BH_GAUGE, "berth_scheduler_ledger",
     "Writes handed to binders and not yet answered, and what became of them.", "what", 0, 0, 0},
    {F(adopted), BH_GAUGE, "berth_scheduler_adopted",
     "What the scheduler before this one left on the wire: what is waited for before the first "
     "decision, and what came of it.",
     "what", 0, 0, 0},
    {F(engine), BH_GAUGE, "berth_scheduler_engine",
     "Decisions by path, and the work of the fast path.", "what", 0, 0, 0},
    {F(snapshot), BH_GAUGE, "berth_scheduler_snapshot",
     "Position in the snapshot's change log, and the watcher's heartbeat.", "what", 0, 0, 0},
    {F(control), BH_GAUGE, "berth_scheduler_control",
     "Questions to the control socket by what became of them, and the time they took.", "what", 0,
     0, 0},
    {F(depth), BH_GAUGE, "berth_queue_depth", "Entries in a bounded queue between processes.",
     "queue", 0, 0, 0},
    {F(limit), BH_GAUGE, "berth_queue_limit",
     "Bound of a queue between processes: at it, its source waits or the oldest are given up.",
     "queue", 0, 0, 0},
    {F(alone), BH_GAUGE, "berth_scheduler_plugin_without_batch_form",
     "1 for a plugin that is asked node by node at the extension point, on both paths.",
     "extension_point,plugin,profile", 0, 0, 0},
    {F(algorithm_s), BH_HISTOGRAM, "scheduler_scheduling_algorithm_duration_seconds",
     "[ALPHA] Scheduling algorithm latency in seconds", "", 0.001, 2, 15},
    {F(attempts_hist), BH_HISTOGRAM, "scheduler_pod_scheduling_attempts",
     "[STABLE] Number of attempts to successfully schedule a pod.", "", 1, 2, 5},
    {F(victims), BH_HISTOGRAM, "scheduler_preemption_victims",
     "[STABLE] Number of selected preemption victims", "", 1, 2, 7},
    {F(preemptions), BH_COUNTER, "scheduler_preemption_attempts_total",
     "[STABLE] Total preemption attempts in the cluster till now", "", 0, 0, 0},
    {F(flushed), BH_COUNTER, "scheduler_pod_scheduled_after_flush_total",
     "[ALPHA] Number of pods that were successfully scheduled after being flushed from "
     "unschedulablePods due to timeout. This metric helps detect potential queueing hint "
     "misconfigurations or event handling issues.",
     "", 0, 0, 0},
    {F(lost), BH_COUNTER, "berth_pods_lost_total",
     "Pending pods that were found in no queue and in nobody's hands, and taken up again. Not 0: a "
     "defect.",
     "", 0, 0, 0},
    {F(pending), BH_GAUGE, "scheduler_pending_pods",
     "[STABLE] Number of pending pods, by the queue type. 'active' means number of pods in "
     "activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods "
     "in unschedulablePods that the scheduler attempted to schedule and failed; 'gated' is the "
     "number of unschedulable pods that the scheduler never attempted to schedule because they "
     "are gated.",
     "queue", 0, 0, 0},
    {F(cache), BH_GAUGE, "scheduler_cache_size",
     "[ALPHA] Number of nodes, pods, and assumed (bound) pods in the scheduler cache.", "type", 0,
     0, 0},
};
static const struct family recording[] = {
    {F(recorded), BH_COUNTER, "berth_decisions_recorded_total",
     "Scheduling attempts written to the file of decisions.", "", 0, 0, 0},
    {F(record_dropped), BH_COUNTER, "berth_decisions_dropped_total",
     "Scheduling attempts that were not recorded: the writer could not keep up, or the file could "
     "not be written.",
     "", 0, 0, 0},
    {F(record_attempts), BH_GAUGE, "berth_decisions_attempts",
     "Scheduling attempts in the file of decisions.", "", 0, 0, 0},
    {F(record_bytes), BH_GAUGE, "berth_decisions_bytes", "Size of the file of decisions.", "", 0, 0,
     0},
};
#undef F

static void make_families(struct bh_sched_metrics *m, struct bh_metrics *r, const struct family *f,
                          size_t n)
{
    double b[20];

    for (; n-- > 0; f++) {
        if (f->n)
            bh_buckets_exponential(f->start, f->factor, f->n, b);
        struct bh_metric *metric = bh_metric_new(r, f->kind, f->name, f->help, f->labels, b, f->n);
        void *made = *f->labels ? (void *)metric : bh_metric_cell(metric);
        memcpy((char *)m + f->off, &made, sizeof made);
    }
}

/* The component that stands here behaves as this one; only the scheduler says so, or a sum over
 * Berth's processes would not be 1. */
static void make_versions(struct bh_metrics *r, const struct bh_feature_gates *g)
{
    char emulation[16], min_compat[16];
    struct bh_metric *build = bh_metric_new(
        r, BH_GAUGE, "kubernetes_build_info",
        "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git "
        "commit, git tree state, build date, Go version, and compiler from which Kubernetes was "
        "built, and platform on which it is running.",
        "build_date,compiler,git_commit,git_tree_state,git_version,go_version,major,minor,"
        "platform",
        NULL, 0);
    struct bh_metric *version = bh_metric_new(
        r, BH_GAUGE, "version_info",
        "[ALPHA] Provides the compatibility version info of the component. The component label is "
        "the name of the component, usually kube, but is relevant for aggregated-apiservers.",
        "binary,component,emulation,min_compat", NULL, 0);

    bh_cell_set(bh_metric_cell(build, "", BH_COMPILER, "", "",
                               "v" KUBERNETES_BINARY "+berth." BH_VERSION, "", "1", "36",
                               "linux/" BH_ARCH),
                1);
    snprintf(emulation, sizeof(emulation), "1.%d", g->emulated);
    snprintf(min_compat, sizeof(min_compat), "1.%d", g->min_compatibility);
    bh_cell_set(bh_metric_cell(version, KUBERNETES_BINARY, "kube", emulation, min_compat), 1);
}

static void on_gate(void *arg, const struct bh_feature_state *s)
{
    bh_cell_set(bh_metric_cell(arg, s->name, s->stage), s->enabled);
}

static void make_gates(struct bh_metrics *r, const struct bh_feature_gates *given)
{
    struct bh_feature_gates defaults;
    struct bh_metric *f = bh_metric_new(
        r, BH_GAUGE, "kubernetes_feature_enabled",
        "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
        "name,stage", NULL, 0);

    bh_feature_gates_init(&defaults);
    bh_feature_gates_each(given ? given : &defaults, on_gate, f);
    make_versions(r, given ? given : &defaults);
}

/* ---- at a scrape ----------------------------------------------------------------------------- */

static void set(struct bh_metric *f, const char *what, double v)
{
    bh_cell_set(bh_metric_cell(f, what), v);
}

static void on_rejector(void *arg, const char *plugin, bh_sym profile, uint64_t n)
{
    const struct bh_sched_daemon *d = arg;

    bh_cell_set(bh_metric_cell(d->m->unschedulable, plugin, bh_sym_text(d->symtab, profile)),
                (double)n);
}

static void on_in_flight(void *arg, const char *label)
{
    bh_cell_add(bh_metric_cell(arg, label), 1);
}

static void zero(void *arg, struct bh_cell *c)
{
    (void)arg;
    bh_cell_set(c, 0);
}

static void fill_queue(struct bh_sched_daemon *d)
{
    struct bh_queue_stats q;

    bh_queue_stats(d->queue, &q);
    set(d->m->pending, "active", (double)q.active);
    set(d->m->pending, "backoff", (double)q.backoff);
    set(d->m->pending, "unschedulable", (double)q.unschedulable);
    set(d->m->pending, "gated", (double)q.gated);
    set(d->m->cache, "nodes", bh_engine_node_count(d->engine));
    set(d->m->cache, "pods", bh_engine_pod_count(d->engine));
    set(d->m->cache, "assumed_pods", bh_engine_assumed_count(d->engine));
    bh_queue_each_rejector(d->queue, on_rejector, d);
    bh_metric_each(d->m->in_flight, zero, NULL);
    bh_queue_each_in_flight(d->queue, on_in_flight, d->m->in_flight);
}

static void fill_control(struct bh_sched_daemon *d)
{
    struct bh_control_stats c;

    if (!d->control)
        return;
    bh_control_stats(d->control, &c);
    set(d->m->control, "answered", (double)c.answered);
    set(d->m->control, "malformed", (double)c.malformed);
    set(d->m->control, "dropped", (double)c.dropped);
    set(d->m->control, "strangers", (double)c.strangers);
    set(d->m->control, "busy_seconds", (double)c.busy_ns / 1e9);
}

static void fill_ledger(struct bh_sched_daemon *d)
{
    struct bh_sched_metrics *m = d->m;
    struct bh_ledger_stats l;
    struct bh_bus_stats bus;

    bh_bus_stats(d->binders, &bus);
    bh_ledger_stats(d->ledger, &l);
    set(m->ledger, "queued", (double)l.queued);
    set(m->ledger, "out", (double)l.out);
    set(m->ledger, "binds", (double)l.binds);
    set(m->ledger, "bound_unseen", (double)l.kept);
    set(m->ledger, "before_bind", (double)d->prebinds.n);
    set(m->ledger, "binders", (double)l.binders);
    set(m->ledger, "dropped_events", (double)l.dropped_events);
    set(m->ledger, "refused", (double)l.refused);
    set(m->ledger, "reissued", (double)l.reissued);
    set(m->ledger, "turned_away", (double)bus.turned_away);
    set(m->adopted, "binds_waiting", (double)d->adopt.n_binds);
    set(m->adopted, "claims_waiting", (double)d->adopt.claims.len);
    set(m->adopted, "binds_counted", (double)d->adopt.n_counted);
    set(m->adopted, "binders_unheard", (double)bh_sched_binders_unheard(d));
    set(m->adopted, "binders_given_up", (double)d->adopt.n_silent);
    bh_cell_advance(m->lost, (double)d->audit.lost);
    set(m->ledger, "strangers", (double)bus.strangers);
    set(m->goroutines, "binding", (double)(l.binds + d->prebinds.n));
    set(m->goroutines, "PreBind", (double)d->prebinds.n);
    set(m->depth, "scheduler_binds", (double)(l.binds + d->prebinds.n));
    set(m->limit, "scheduler_binds", BH_LEDGER_MAX_BINDS);
    set(m->depth, "scheduler_writes_and_events",
        (double)(l.queued + l.out - BH_MIN(l.binds, l.queued + l.out)));
    set(m->limit, "scheduler_writes_and_events", BH_LEDGER_MAX_EVENTS);
    set(m->depth, "scheduler_letters", d->n_letters);
    set(m->limit, "scheduler_letters", BH_LETTERS_MAX);
}

static void fill_engine(struct bh_sched_daemon *d)
{
    struct bh_sched_metrics *m = d->m;
    struct bh_profile_stats p;
    struct bh_engine_stats e;

    bh_engine_stats(d->engine, &e);
    set(m->engine, "cycles", (double)e.cycles);
    set(m->engine, "fast_cycles", (double)e.fast_cycles);
    set(m->engine, "reference_cycles", (double)e.reference_cycles);
    set(m->engine, "shape_hits", (double)e.shape_hits);
    set(m->engine, "shape_misses", (double)e.shape_misses);
    set(m->engine, "nodes_rescored", (double)e.nodes_rescored);
    for (uint32_t i = 0; bh_engine_profile_stats(d->engine, i, &p); i++) {
        bh_cell_advance(bh_metric_cell(m->batch, p.name, "hint_used"), (double)p.hinted);
        bh_cell_advance(bh_metric_cell(m->batch, p.name, "no_hint"), (double)(p.cycles - p.hinted));
        bh_sched_count_quiet(m, i, &p);
    }
}

static void on_plugin(void *arg, const struct bh_plugin_stats *s)
{
    struct bh_sched_metrics *m = arg;
    const struct {
        bool enabled, alone;
        const char *point;
        uint64_t n;
    } at[] = {{s->at_pre_filter, false, "PreFilter", s->n.pre_filter},
              {s->at_filter, s->filters_alone, "Filter", s->n.filter},
              {s->at_pre_score, false, "PreScore", s->n.pre_score},
              {s->at_score, s->scores_alone, "Score", s->n.score}};

    for (size_t i = 0; i < BH_ARRAY_LEN(at); i++) {
        if (at[i].enabled)
            bh_cell_advance(bh_metric_cell(m->evaluations, at[i].point, s->plugin, s->profile),
                            (double)at[i].n);
        if (at[i].alone)
            bh_cell_set(bh_metric_cell(m->alone, at[i].point, s->plugin, s->profile), 1);
    }
}

static void fill_recording(struct bh_sched_daemon *d)
{
    struct bh_recorder_stats s;

    if (!d->recorder)
        return;
    bh_recorder_stats(d->recorder, &s);
    bh_cell_advance(d->m->recorded, (double)s.recorded);
    bh_cell_advance(d->m->record_dropped, (double)s.dropped);
    bh_cell_set(d->m->record_attempts, (double)s.attempts);
    bh_cell_set(d->m->record_bytes, (double)s.bytes);
}

static void fill(void *arg)
{
    struct bh_sched_daemon *d = arg;
    struct bh_snap_stats s;

    fill_queue(d);
    fill_control(d);
    fill_ledger(d);
    fill_engine(d);
    fill_recording(d);
    bh_engine_each_plugin(d->engine, on_plugin, d->m);
    if (bh_snap_reader_info(d->in.reader, &s)) {
        set(d->m->snapshot, "head", (double)s.head);
        set(d->m->snapshot, "position", (double)bh_snap_reader_pos(d->in.reader));
        uint64_t now = bh_boot_ns(), beat = s.heartbeat_boot_ns;
        set(d->m->snapshot, "heartbeat_age_seconds", (double)(now - BH_MIN(now, beat)) / 1e9);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_sched_metrics_init(struct bh_sched_daemon *d)
{
    struct bh_metrics *r = d->metrics = bh_metrics_new();
    struct bh_sched_metrics *m = d->m = bh_calloc(1, sizeof(*m));

    make_families(m, r, families, BH_ARRAY_LEN(families));
    if (d->recorder)
        make_families(m, r, recording, BH_ARRAY_LEN(recording));
    make_gates(r, d->o.gates);
    bh_metrics_on_scrape(r, fill, d);
    bh_metrics_add_process(r, "berth-scheduler");
    bh_sched_observe_init(d);
}

void bh_sched_metrics_free(struct bh_sched_daemon *d)
{
    bh_metrics_free(d->metrics);
    for (uint32_t i = 0; d->m && i < d->m->n_profiles; i++)
        free(d->m->profiles[i].name);
    if (d->m)
        free(d->m->profiles);
    free(d->m);
    d->metrics = NULL;
    d->m = NULL;
}
