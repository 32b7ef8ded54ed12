/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon_metrics.c - the scheduler's metrics: families, and what is read at a
 * scrape (what is counted where it happens: daemon_observe.c)
 *
 * Names, labels, buckets and help texts of scheduler_* are upstream's; what a number means here
 * where nothing quite like upstream's happens stands in docs/metrics.md.
 *
 * Upstream: pkg/scheduler/metrics/metrics.go; differences: without asynchronous API calls
 *           and goroutines of preemption, so without their metrics.
 */
#include <math.h>

#include "common/flags/feature_gates.h"
#include "scheduler/daemon/metrics_int.h"
#include "scheduler/native/native.h"

#define KUBERNETES_BINARY "1.36.2"

/* ---- families -------------------------------------------------------------------------------- */

static const char lines[] =
#include "scheduler/daemon/metrics.data.h"
    ;
static const char kinds[] = "counter gauge histogram"; /* by enum bh_metric_kind */

#define MEMBERS(X)                                                                                 \
    X(attempts), X(attempt_s), X(point_s), X(plugin_s), X(hint_s), X(event_s), X(sli_s),           \
        X(permit), X(incoming), X(evaluations), X(unschedulable), X(in_flight), X(goroutines),     \
        X(batch), X(claims), X(binding_conditions), X(binding_conditions_s), X(volume_errors),     \
        X(outcomes), X(ledger), X(adopted), X(engine), X(snapshot), X(control), X(depth),          \
        X(limit), X(alone), X(algorithm_s), X(attempts_hist), X(victims), X(preemptions),          \
        X(flushed), X(lost), X(pending), X(cache), X(recorded), X(record_dropped), X(record_full), \
        X(record_cpu), X(record_attempts), X(record_bytes), X(group_attempts), X(group_attempt_s), \
        X(group_algorithm_s), X(plugins), X(measured_age), X(measured_nodes), X(group_placements), \
        X(process_calls), X(process_starts)
#define NAME(member)   #member
#define OFFSET(member) offsetof(struct bh_sched_metrics, member)
static const char *const names[] = {MEMBERS(NAME)};
/* Of a struct bh_metric *, or without labels of a struct bh_cell *. */
static const size_t offsets[] = {MEMBERS(OFFSET)};

static void make_families(struct bh_sched_metrics *m, struct bh_metrics *r, bool recorder,
                          bool groups)
{
    char *rest = m->families = bh_strdup(lines), *line;

    while ((line = strsep(&rest, "\n")) && *line) {
        const char *member = strsep(&line, " "), *kind = strsep(&line, " ");
        const char *name = strsep(&line, " "), *labels = strsep(&line, " ");
        double start, factor, b[20];
        unsigned n = 0, at = 0;
        if (sscanf(strsep(&line, " "), "%lf*%lf^%u", &start, &factor, &n) == 3)
            bh_buckets_exponential(start, factor, n, b);
        if ((!recorder && strncmp(member, "record", 6) == 0) ||
            (!groups && strncmp(member, "group", 5) == 0))
            continue;
        while (!bh_streq(names[at], member))
            at++;
        bool labelled = !bh_streq(labels, "-");
        struct bh_metric *f = bh_metric_new(r, (enum bh_metric_kind)bh_word_at(kinds, kind), name,
                                            line, labelled ? labels : "", b, n);
        void *made = labelled ? (void *)f : bh_metric_cell(f);
        memcpy((char *)m + offsets[at], &made, sizeof made);
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

static void on_native(void *arg, const char *plugin, const char *aside, bool skips BH_UNUSED)
{
    bh_cell_set(bh_metric_cell(arg, plugin, aside ? "PutAside" : "Active"), 1);
}

/* Put aside while the scheduler goes on: only one in a process of its own can be. */
static void on_native_now(void *arg, const char *plugin, const char *aside, bool skips)
{
    on_native(arg, plugin, aside, skips);
    if (aside)
        bh_cell_set(bh_metric_cell(arg, plugin, "Active"), 0);
}

static void on_process(void *arg, const char *plugin, int pid BH_UNUSED, uint64_t starts,
                       uint64_t calls)
{
    const struct bh_sched_metrics *m = arg;

    bh_cell_advance(bh_metric_cell(m->process_calls, plugin), (double)calls);
    bh_cell_advance(bh_metric_cell(m->process_starts, plugin), (double)starts);
}

static void on_measured(void *arg, const char *plugin, int64_t at_ns, uint64_t n_nodes)
{
    const struct bh_sched_metrics *m = arg;

    bh_cell_set(bh_metric_cell(m->measured_age, plugin), (double)(bh_wall_ns() - at_ns) / 1e9);
    bh_cell_set(bh_metric_cell(m->measured_nodes, plugin), (double)n_nodes);
}

static void on_gate(void *arg, const struct bh_feature_state *s)
{
    bh_cell_set(bh_metric_cell(arg, s->name, s->stage), s->enabled);
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

static void zero(void *arg BH_UNUSED, struct bh_cell *c)
{
    bh_cell_set(c, 0);
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

_Static_assert(BH_COUNTER == 0 && BH_GAUGE == 1 && BH_HISTOGRAM == 2, "as plugins have them");

/* Of a bucket's observations the mean counts so many times: it is in the bucket, and the sum is the
 * same. */
static void observe_bucket(struct bh_cell *c, const struct bh_native_sample *s, uint32_t i)
{
    double mean = s->counts[i] ? s->sums[i] / (double)s->counts[i] : 0;

    if (!s->counts[i])
        return;
    if (i > 0)
        mean = BH_MAX(mean, nextafter(s->bounds[i - 1], INFINITY));
    if (i < s->n_bounds)
        mean = BH_MIN(mean, s->bounds[i]);
    bh_cell_observe_n(c, mean, s->counts[i]);
}

/* What a plugin out of a file measures. */
static void on_plugin_sample(void *arg, const struct bh_native_sample *s)
{
    struct bh_metrics *r = arg;
    struct bh_metric *f = bh_metric_find(r, s->name);

    if (!f)
        f = bh_metric_new(r, (enum bh_metric_kind)s->kind, s->name, s->help, "", s->bounds,
                          s->n_bounds);
    struct bh_cell *c = bh_metric_cell(f);
    if (s->kind == BH_COUNTER)
        bh_cell_advance(c, s->value);
    else if (s->kind == BH_GAUGE)
        bh_cell_set(c, s->value);
    else
        for (uint32_t i = 0; i <= s->n_bounds; i++)
            observe_bucket(c, s, i);
}

static void fill(void *arg)
{
    struct bh_sched_daemon *d = arg;
    struct bh_snap_stats s;
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
    struct bh_control_stats c;
    if (d->control) {
        bh_control_stats(d->control, &c);
        set(d->m->control, "answered", (double)c.answered);
        set(d->m->control, "malformed", (double)c.malformed);
        set(d->m->control, "dropped", (double)c.dropped);
        set(d->m->control, "strangers", (double)c.strangers);
        set(d->m->control, "busy_seconds", (double)c.busy_ns / 1e9);
    }
    fill_ledger(d);
    fill_engine(d);
    struct bh_recorder_stats r;
    if (d->recorder) {
        bh_recorder_stats(d->recorder, &r);
        bh_cell_advance(d->m->recorded, (double)r.recorded);
        bh_cell_advance(d->m->record_dropped, (double)r.dropped);
        bh_cell_advance(d->m->record_full, (double)r.full);
        bh_cell_advance(bh_metric_cell(d->m->record_cpu, "writing"), (double)r.writing_ns / 1e9);
        bh_cell_advance(bh_metric_cell(d->m->record_cpu, "full_attempts"), (double)r.full_ns / 1e9);
        bh_cell_set(d->m->record_attempts, (double)r.attempts);
        bh_cell_set(d->m->record_bytes, (double)r.bytes);
    }
    bh_engine_each_plugin(d->engine, on_plugin, d->m);
    bh_native_each(on_native_now, d->m->plugins);
    bh_native_each_process(on_process, d->m);
    bh_native_each_measured(on_measured, d->m);
    bh_native_each_metric(on_plugin_sample, d->metrics);
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

    make_families(m, r, d->recorder, bh_sched_config_gate(d->o.config, "GenericWorkload"));
    struct bh_feature_gates defaults;
    struct bh_metric *f = bh_metric_new(
        r, BH_GAUGE, "kubernetes_feature_enabled",
        "[BETA] This metric records the data about the stage and enablement of a k8s feature.",
        "name,stage", NULL, 0);
    bh_feature_gates_init(&defaults);
    bh_feature_gates_each(d->o.gates ? d->o.gates : &defaults, on_gate, f);
    make_versions(r, d->o.gates ? d->o.gates : &defaults);
    bh_native_each(on_native, m->plugins); /* a process loads them before, and keeps them */
    bh_metrics_on_scrape(r, fill, d);
    bh_metrics_add_process(r, "berth-scheduler");
    bh_sched_observe_init(d);
}

void bh_sched_metrics_free(struct bh_sched_daemon *d)
{
    bh_metrics_free(d->metrics);
    d->metrics = NULL;
    if (!d->m)
        return;
    for (uint32_t i = 0; i < d->m->n_profiles; i++)
        free(d->m->profiles[i].name);
    free(d->m->profiles);
    free(d->m->families);
    free(d->m);
    d->m = NULL;
}
