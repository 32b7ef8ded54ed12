/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon_observe.c - what is counted where it happens: attempts, durations of
 * points, plugins, hints and events
 *
 * Invariants: a decision resolves no labels: cells are kept per profile and found by index.
 * Runs in:    the duty cycle; the engine's and the queue's callbacks come from inside of a cycle.
 * Upstream:   pkg/scheduler/metrics/{metrics,metric_recorder,profile_metrics}.go; differences:
 *             samples are observed at once, not up to a second later.
 */
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/daemon/metrics_int.h"

static const char *const results[BH_RESULTS] = {"scheduled", "unschedulable", "error"};

static struct bh_profile_cells *profile_cells(struct bh_sched_metrics *m, const char *name)
{
    for (uint32_t i = 0; i < m->n_profiles; i++)
        if (bh_streq(m->profiles[i].name, name))
            return &m->profiles[i];
    return NULL;
}

/* ---- the engine's observer (framework/observe.h) --------------------------------------------- */

static struct bh_cell *point_cell(struct bh_sched_metrics *m, struct bh_profile_cells *p,
                                  enum bh_seen_point at, enum bh_code code)
{
    struct bh_cell **c = &p->point[at][code];

    if (!*c)
        *c = bh_metric_cell(m->point_s, bh_seen_point_name(at), p->name, bh_code_name(code));
    return *c;
}

static void on_point(void *arg, uint32_t profile, enum bh_seen_point at, enum bh_code code,
                     uint64_t ns)
{
    const struct bh_sched_daemon *d = arg;
    struct bh_sched_metrics *m = d->m;

    if (!m || profile >= m->n_profiles)
        return;
    if (bh_unlikely(d->recorder) && at != BH_SEEN_PRE_ENQUEUE)
        bh_recorder_point(d->recorder, bh_seen_point_name(at), ns);
    bh_cell_observe(point_cell(m, &m->profiles[profile], at, code), (double)ns * 1e-9);
    if (at == BH_SEEN_POST_FILTER)
        bh_cell_add(m->preemptions, 1);
}

static void on_fast(void *arg, uint32_t profile, const uint64_t ns[static 3])
{
    struct bh_sched_metrics *m = ((struct bh_sched_daemon *)arg)->m;

    if (!m || profile >= m->n_profiles)
        return;
    struct bh_profile_cells *p = &m->profiles[profile];
    bh_cell_observe(point_cell(m, p, BH_SEEN_PRE_FILTER, BH_SUCCESS),
                    (double)(int64_t)ns[0] * 1e-9);
    bh_cell_observe(point_cell(m, p, BH_SEEN_FILTER, BH_SUCCESS), (double)(int64_t)ns[1] * 1e-9);
    bh_cell_observe(point_cell(m, p, BH_SEEN_SCORE, BH_SUCCESS), (double)(int64_t)ns[2] * 1e-9);
}

/* n of them, each within the first bucket, ns in all. */
static void add_quiet(struct bh_sched_metrics *m, uint32_t profile, enum bh_seen_point at,
                      uint64_t n, uint64_t ns)
{
    if (n)
        bh_cell_observe_n(point_cell(m, &m->profiles[profile], at, BH_SUCCESS),
                          (double)ns * 1e-9 / (double)n, n);
}

void bh_sched_count_quiet(struct bh_sched_metrics *m, uint32_t profile,
                          const struct bh_profile_stats *p)
{
    static const enum bh_seen_point points[3] = {BH_SEEN_PRE_FILTER, BH_SEEN_FILTER, BH_SEEN_SCORE};

    if (profile >= m->n_profiles)
        return;
    struct bh_profile_stats *told = &m->profiles[profile].told;
    add_quiet(m, profile, BH_SEEN_RESERVE, p->quiet_reserve - told->quiet_reserve, 0);
    add_quiet(m, profile, BH_SEEN_PERMIT, p->quiet_permit - told->quiet_permit, 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(points); i++)
        add_quiet(m, profile, points[i], p->quiet_fast - told->quiet_fast,
                  p->quiet_fast_ns[i] - told->quiet_fast_ns[i]);
    *told = *p;
}

/* Of a tenth of the cycles, as many calls as upstream's buffer takes. */
static uint32_t wanted_samples(void *arg, uint64_t now_ns)
{
    struct bh_sched_metrics *m = ((struct bh_sched_daemon *)arg)->m;

    if (!m)
        return 0;
    if (now_ns >= m->plugin_second_ns) {
        m->plugin_second_ns = now_ns + UINT64_C(1000000000);
        m->plugin_samples = BH_SAMPLES_MAX;
    }
    return m->plugin_samples;
}

static void on_plugin(void *arg, const char *plugin, enum bh_seen_point at, enum bh_code code,
                      uint64_t ns)
{
    struct bh_sched_metrics *m = ((struct bh_sched_daemon *)arg)->m;

    if (!m || !m->plugin_samples)
        return;
    m->plugin_samples--;
    struct bh_plugin_cell *c =
        &m->plugin_cells[((uintptr_t)plugin / 8 * 31 + at * 7u + code) % BH_PLUGIN_KEPT];
    if (c->plugin != plugin || c->at != at || c->code != code)
        *c = (struct bh_plugin_cell){
            plugin, at, code,
            bh_metric_cell(m->plugin_s, bh_seen_point_name(at), plugin, bh_code_name(code))};
    bh_cell_observe(c->cell, (double)ns * 1e-9);
}

void bh_sched_saw(struct bh_sched_daemon *d, const char *profile, enum bh_seen_point at,
                  enum bh_code code, int64_t ns)
{
    const struct bh_profile_cells *p = profile_cells(d->m, profile);

    if (p)
        on_point(d, (uint32_t)(p - d->m->profiles), at, code, (uint64_t)BH_MAX(ns, 0));
}

/* ---- queue ----------------------------------------------------------------------------------- */

static void on_incoming(void *arg, const char *queue, const char *label)
{
    struct bh_sched_metrics *m = ((struct bh_sched_daemon *)arg)->m;

    for (unsigned i = 0; i < m->n_incoming; i++) {
        if (bh_streq(m->incoming_cells[i].label, label) &&
            bh_streq(m->incoming_cells[i].queue, queue)) {
            bh_cell_add(m->incoming_cells[i].cell, 1);
            return;
        }
    }
    struct bh_cell *c = bh_metric_cell(m->incoming, label, queue);
    bh_cell_add(c, 1);
    if (m->n_incoming == BH_INCOMING_KEPT)
        return;
    m->incoming_cells[m->n_incoming].queue = queue; /* a literal */
    snprintf(m->incoming_cells[m->n_incoming].label, 96, "%s", label);
    m->incoming_cells[m->n_incoming++].cell = c;
}

static void on_hint(void *arg, const char *plugin, const struct bh_cluster_event *ev,
                    enum bh_hint hint, uint64_t ns)
{
    const struct bh_sched_daemon *d = arg;
    char label[96];

    bh_cell_observe(bh_metric_cell(d->m->hint_s, bh_queue_event_label(ev, label),
                                   hint == BH_QUEUE ? "Queue" : "QueueSkip", plugin),
                    (double)ns * 1e-9);
}

/* ---- events ---------------------------------------------------------------------------------- */

void bh_sched_count_event(struct bh_sched_daemon *d, const struct bh_cluster_event *ev,
                          int64_t began_ns)
{
    struct bh_sched_metrics *m = d->m;
    uint32_t kind = (uint32_t)ev->resource, action;
    char label[96];

    if (ev->resource == BH_EV_OBJECT && !bh_kind_of(ev->kind)->event_resource)
        return; /* no event of upstream's */
    if (ev->resource == BH_EV_OBJECT)
        kind += (uint32_t)ev->kind;
    action =
        ev->action == BH_EV_UPDATE ? BH_EVENT_ACTIONS - 1 : (uint32_t)__builtin_ctz(ev->action);
    bh_assert(kind < BH_EVENT_KINDS && action < BH_EVENT_ACTIONS);
    struct bh_cell **c = &m->event_cells[kind][action];
    if (!*c)
        *c = bh_metric_cell(m->event_s, bh_queue_event_label(ev, label));
    bh_cell_observe(*c, (double)(bh_sched_now(d) - began_ns) * 1e-9);
}

void bh_sched_count_pod_event(struct bh_sched_daemon *d, enum bh_event_action action,
                              int64_t began_ns)
{
    const struct bh_cluster_event ev = {.resource = BH_EV_POD_UNSCHEDULED, .action = action};

    bh_sched_count_event(d, &ev, began_ns);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void observe_attempt(struct bh_sched_metrics *m, struct bh_profile_cells *p, unsigned r,
                            double s)
{
    if (!p->attempt_s[r])
        p->attempt_s[r] = bh_metric_cell(m->attempt_s, p->name, results[r]);
    bh_cell_observe(p->attempt_s[r], s);
}

void bh_sched_count_attempt(struct bh_sched_daemon *d, const char *result, const char *profile,
                            double algorithm_s)
{
    struct bh_sched_metrics *m = d->m;
    struct bh_profile_cells *p = profile_cells(m, profile);
    unsigned r = 0;

    if (!p)
        return;
    while (r < BH_RESULTS && !bh_streq(results[r], result))
        r++;
    bh_assert(r < BH_RESULTS);
    if (!p->attempts[r])
        p->attempts[r] = bh_metric_cell(m->attempts, p->name, results[r]);
    bh_cell_add(p->attempts[r], 1);
    bh_cell_observe(m->algorithm_s, algorithm_s);
    if (r) /* a scheduled one is observed when its binding is done */
        observe_attempt(m, p, r, algorithm_s);
}

void bh_sched_count_bound(struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                          const char *profile, int64_t now, double bind_s)
{
    struct bh_sched_metrics *m = d->m;
    struct bh_profile_cells *cells = profile_cells(m, profile);
    unsigned attempts = BH_MIN(p->attempts, BH_ARRAY_LEN(m->sli));
    struct bh_cell **sli = &m->sli[attempts ? attempts - 1 : 0];
    char label[16];

    if (!*sli) {
        snprintf(label, sizeof(label), attempts < BH_ARRAY_LEN(m->sli) ? "%u" : "15+", attempts);
        *sli = bh_metric_cell(m->sli_s, label);
    }
    if (cells)
        observe_attempt(m, cells, 0, (double)(now - p->popped_ns) / 1e9);
    bh_cell_observe(*sli, (double)(now - p->initial_attempt_ns) / 1e9);
    bh_cell_observe(m->attempts_hist, p->attempts);
    if (p->flushed)
        bh_cell_add(m->flushed, 1);
    bh_sched_saw(d, profile, BH_SEEN_BIND, BH_SUCCESS, (int64_t)(bind_s * 1e9));
}

void bh_sched_count_group_algorithm(struct bh_sched_daemon *d, double took_s)
{
    if (d->m->group_algorithm_s)
        bh_cell_observe(d->m->group_algorithm_s, took_s);
}

void bh_sched_count_group(struct bh_sched_daemon *d, const struct bh_group_result *r,
                          const char *profile, double took_s)
{
    const char *result = r->code == BH_SUCCESS ? "scheduled"
                         : r->code == BH_ERROR ? "error"
                         : r->waiting          ? "waiting_on_preemption"
                                               : "unschedulable";

    bh_cell_add(bh_metric_cell(d->m->group_attempts, profile, result), 1);
    bh_cell_observe(bh_metric_cell(d->m->group_attempt_s, profile, result), took_s);
    for (uint32_t i = 0; i < r->n_placements; i++)
        bh_cell_add(bh_metric_cell(d->m->group_placements, profile,
                                   r->placements[i].fits      ? "fits"
                                   : r->placements[i].waiting ? "waiting_on_preemption"
                                                              : "unschedulable"),
                    1);
}

void bh_sched_count_permit(struct bh_sched_daemon *d, const char *result, int64_t waited_ns)
{
    bh_cell_observe(bh_metric_cell(d->m->permit, result), (double)waited_ns / 1e9);
}

void bh_sched_count_preemption(struct bh_sched_daemon *d, uint32_t victims)
{
    bh_cell_observe(d->m->victims, victims);
}

void bh_sched_count_outcome(struct bh_sched_daemon *d, Berth__Outcome o)
{
    static const char *const names[] = {"done",  "rejected", "gone", "bound_elsewhere",
                                        "stale", "unknown"};

    const unsigned i = BH_MIN((unsigned)o, (unsigned)BH_ARRAY_LEN(names));
    struct bh_cell **c = &d->m->outcome_cells[i];

    _Static_assert(BH_ARRAY_LEN(names) < BH_ARRAY_LEN(d->m->outcome_cells), "one more for others");
    if (!*c)
        *c = bh_metric_cell(d->m->outcomes, i < BH_ARRAY_LEN(names) ? names[i] : "other");
    bh_cell_add(*c, 1);
}

/* ---- before the bind ------------------------------------------------------------------------- */

void bh_sched_count_claim_made(struct bh_sched_daemon *d, bool done)
{
    bh_cell_add(bh_metric_cell(d->m->claims, done ? "success" : "failure"), 1);
}

static void count_conditions(struct bh_sched_daemon *d, const K8s__ResourceClaim *c,
                             const char *profile, const char *status, double waited_s)
{
    const K8s__AllocationResult *a = c->status ? c->status->allocation : NULL;

    for (size_t i = 0; a && a->devices && i < a->devices->n_results; i++) {
        const K8s__DeviceRequestAllocationResult *r = a->devices->results[i];
        if (!r->n_bindingconditions)
            continue;
        bh_cell_add(bh_metric_cell(d->m->binding_conditions, r->driver, profile, status), 1);
        bh_cell_observe(bh_metric_cell(d->m->binding_conditions_s, r->driver, profile, status),
                        waited_s);
    }
}

void bh_sched_count_prebind(struct bh_sched_daemon *d, const struct bh_pending *p, bool failed,
                            const char *text, int64_t took_ns, int64_t waited_ns)
{
    const struct bh_shape_rec *shape = bh_engine_shape_rec(d->engine, p->shape);
    const char *profile = bh_sym_text(d->symtab, shape->scheduler_name), *status = "success";
    uint32_t n;
    const struct bh_write *v =
        bh_engine_prebind_work(d->engine, bh_rec_text(p->pod, p->pod->uid), &n);

    bh_sched_saw(d, profile, BH_SEEN_PRE_BIND, failed ? BH_ERROR : BH_SUCCESS, took_ns);
    if (failed && strstr(text, "\"VolumeBinding\""))
        bh_cell_add(bh_metric_cell(d->m->volume_errors, "bind"), 1);
    if (waited_ns < 0)
        return;
    if (failed)
        status = strstr(text, "timeout") ? "timeout" : strstr(text, "failed") ? "failure" : "error";
    for (uint32_t i = 0; v && i < n; i++)
        if (v[i].kind == BH_KIND_RESOURCECLAIM && v[i].object)
            count_conditions(d, (const K8s__ResourceClaim *)(const void *)v[i].object, profile,
                             status, (double)waited_ns / 1e9);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct bh_engine_observer bh_sched_observer(struct bh_sched_daemon *d)
{
    return (struct bh_engine_observer){.now_ns = bh_mono_ns,
                                       .point = on_point,
                                       .fast = on_fast,
                                       .samples = wanted_samples,
                                       .plugin = on_plugin,
                                       .arg = d};
}

void bh_sched_observe_init(struct bh_sched_daemon *d)
{
    struct bh_sched_metrics *m = d->m;
    struct bh_profile_stats p;

    while (bh_engine_profile_stats(d->engine, m->n_profiles, &p)) {
        m->profiles = bh_reallocarray(m->profiles, m->n_profiles + 1, sizeof(*m->profiles));
        m->profiles[m->n_profiles++] = (struct bh_profile_cells){.name = bh_strdup(p.name)};
    }
    bh_queue_on_incoming(d->queue, on_incoming, d);
    bh_queue_on_hint(d->queue, bh_mono_ns, on_hint, d);
}
