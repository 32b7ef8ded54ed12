/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/scenario.h - a file of steps at virtual times, run without servers
 *
 * A scenario is read and checked as a whole (read.c), then run once for each of its schedulers, on
 * the same steps and the same seed, in a world of its own (run.c, steps.c). What came of it is one
 * JSON tree (result.c; docs/scenarios.md tells its members), from which the HTML report is made
 * (html.c, plot.c). The same file and seed give the same bytes, wherever and whenever it runs.
 *
 * Threads: a scenario may be run by any one thread; nothing is shared between two of them.
 */
#ifndef BH_SIM_SCENARIO_H
#define BH_SIM_SCENARIO_H

#include <stdatomic.h>

#include "common/data/json.h"
#include "scheduler/config/config.h"

struct bh_scenario_scheduler {
    const char *name;
    struct bh_sched_config *config; /* owned */
};
/* Everything lives in the arena. Steps are read from the trees themselves, which were checked. */
struct bh_scenario {
    struct bh_arena arena;
    const char *name;
    const char *file, *dir; /* dir: what file names are relative to */
    bool files_allowed;
    uint64_t seed;
    bool ties_random, start_cluster;
    int64_t begin_ns;                           /* unix */
    int64_t decision_ns, kubelet_ns, sample_ns; /* sample_ns 0: as fits */
    int64_t until_ns, most_ns; /* after begin; until 0: when nothing happens any more */
    struct bh_json *setup, *timeline, *expect; /* lists, or NULL */
    struct bh_json *operations;                /* of a KEP-140 Scenario, instead of the timeline */
    struct bh_json *objects;       /* further documents of the file: there from the start */
    struct bh_feature_gates gates; /* of all schedulers, and of the world they work in */
    struct bh_scenario_scheduler *schedulers;
    uint32_t n_schedulers;
};

/* Where a finding is: "FILE: document 1, line 12: spec.timeline[2].generate.count: ..." is its
 * text; line and field also apart, for the page. */
struct bh_scenario_error {
    unsigned document, line;
    char field[256];
    char message[512]; /* without the place */
};
struct bh_scenario_source {
    const char *file; /* for messages; NULL: none */
    const char *text;
    size_t n;
    bool files_allowed;  /* steps may name files, relative to file's folder */
    const char *configs; /* comma separated files that take the place of the schedulers named in the
                            scenario; NULL = none */
};
/* 0, or -EINVAL with err the whole text and e (may be NULL) its parts. */
int bh_scenario_read(const struct bh_scenario_source *src, struct bh_scenario **ret,
                     struct bh_scenario_error *e, struct bh_err *err);
void bh_scenario_free(struct bh_scenario *s);

struct bh_scenario_progress {      /* shared with the asker; written by the runner only */
    _Atomic int64_t at_ns, end_ns; /* virtual; end 0 = not known */
    _Atomic bool cancel;           /* the asker's wish */
};
struct bh_scenario_options {
    struct bh_scenario_progress *progress; /* may be NULL */
    void (*tick)(void *arg);               /* now and then, from the runner; may be NULL */
    void *arg;
    bool verify; /* engine: both paths */
    bool times;  /* real times of decisions too: the result differs from run to run then */
    /* start: cluster: what is there, as a JSON text of a List; NULL = it cannot be had */
    const char *cluster;
    uint32_t max_events;  /* of the timeline that is kept for each scheduler; 0 = 50000 */
    uint32_t max_objects; /* nodes and pods that may ever be; 0 = no limit */
};
/* Runs it under every scheduler. *ret_json: the result, pretty, ends with a newline; *ret_passed:
 * no expectation failed. 0, -EINVAL (a step could not be carried out: err says which), -ECANCELED.
 */
int bh_scenario_run(const struct bh_scenario *s, const struct bh_scenario_options *o,
                    struct bh_buf *ret_json, bool *ret_passed, struct bh_err *err);

/* The report of a result: one HTML file, no scripts, nothing loaded. -EINVAL: not a result. */
int bh_scenario_html(const char *json, size_t n, struct bh_buf *out, struct bh_err *err);
/* A short account of a result for a terminal. */
int bh_scenario_text(const char *json, size_t n, bool colour, struct bh_buf *out,
                     struct bh_err *err);
#endif
