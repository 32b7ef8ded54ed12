/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/metrics_int.h - the metrics' inside, shared by daemon_metrics.c (families, what
 * is read at a scrape) and daemon_observe.c (what is counted where it happens)
 *
 * What a decision touches is resolved once and kept: a cell per profile, point and status. A cell
 * exists from its first use on, as upstream's vectors; those that upstream makes at the start are
 * made at the start.
 */
#ifndef BH_SCHED_METRICS_INT_H
#define BH_SCHED_METRICS_INT_H

#include "scheduler/daemon/daemon.h"

#define BH_RESULTS       3u /* scheduled, unschedulable, error */
#define BH_EVENT_ACTIONS 14u
#define BH_EVENT_KINDS   (BH_KIND_ALL + 3u) /* assigned pods, pending pods, nodes, objects */
#define BH_INCOMING_KEPT 32u
#define BH_PLUGIN_KEPT   256u

struct bh_profile_cells {
    char *name;
    struct bh_cell *attempts[BH_RESULTS], *attempt_s[BH_RESULTS];
    struct bh_cell *point[BH_SEEN_COUNT][BH_PENDING + 1];
    struct bh_cell *hint_used, *no_hint;
    struct bh_profile_stats told; /* of what is told at a scrape */
};
struct bh_plugin_cell {
    const char *plugin; /* by address: a plugin's name lives as long as it */
    enum bh_seen_point at;
    enum bh_code code;
    struct bh_cell *cell;
};
struct bh_sched_metrics {
    char *families;                    /* texts of metrics.data */
    struct bh_profile_cells *profiles; /* in the order of the configuration */
    uint32_t n_profiles;
    struct bh_metric *attempts, *attempt_s, *point_s, *plugin_s, *hint_s, *event_s, *sli_s, *permit,
        *incoming, *evaluations, *unschedulable, *in_flight, *goroutines, *batch, *claims,
        *binding_conditions, *binding_conditions_s, *volume_errors, *pending, *cache;
    struct bh_metric *group_attempts, *group_attempt_s; /* with the gate GenericWorkload */
    struct bh_cell *group_algorithm_s;
    struct bh_metric *group_placements;
    struct bh_cell *algorithm_s, *attempts_hist, *preemptions, *victims, *flushed, *sli[15], *lost;
    struct bh_metric *record_cpu; /* this and the next with a recorder */
    struct bh_cell *recorded, *record_dropped, *record_full, *record_attempts, *record_bytes;
    struct bh_cell *event_cells[BH_EVENT_KINDS][BH_EVENT_ACTIONS];
    struct { /* the last ones used; the label is copied: the caller may reuse its buffer */
        const char *queue;
        char label[96];
        struct bh_cell *cell;
    } incoming_cells[BH_INCOMING_KEPT];
    unsigned n_incoming;
    struct bh_plugin_cell plugin_cells[BH_PLUGIN_KEPT]; /* by hash; the last one used stays */
    unsigned plugin_samples;                            /* left in this second */
    uint64_t plugin_second_ns;

    /* Berth's own */
    struct bh_cell *outcome_cells[8]; /* by outcome, made at the first one */
    struct bh_metric *outcomes, *ledger, *adopted, *engine, *snapshot, *control, *depth, *limit,
        *alone, *plugins, *measured_age, *measured_nodes, *process_calls, *process_starts;
};
/* daemon_observe.c */
/* At a scrape: what was only counted. */
void bh_sched_count_quiet(struct bh_sched_metrics *m, uint32_t profile,
                          const struct bh_profile_stats *p);
void bh_sched_observe_init(struct bh_sched_daemon *d);
#endif
