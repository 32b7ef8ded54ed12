/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/parts.h - what the files of this folder are to each other: handlers, parts with
 * a life, and what one subject asks another
 */
#ifndef BH_CONSOLE_PARTS_H
#define BH_CONSOLE_PARTS_H

#include "simulator/console/console.h"

/* ---- handlers (docs/simulator-api.md) -------------------------------------------------------- */
bh_console_fn bh_console_config_get, bh_console_config_post;  /* config.c */
bh_console_fn bh_console_guests;                              /* config.c */
bh_console_fn bh_console_reset, bh_console_export;            /* reset.c, export.c */
bh_console_fn bh_console_import, bh_console_manifest;         /* import.c */
bh_console_fn bh_console_list_watch, bh_console_watch;        /* stream.c */
bh_console_fn bh_console_overview;                            /* overview.c */
bh_console_fn bh_console_decisions, bh_console_pod_decisions; /* decisions.c */
bh_console_fn bh_console_whatif;                              /* whatif.c */
bh_console_fn bh_console_capacity, bh_console_drain;          /* capacity.c */
bh_console_fn bh_console_rebalance;                           /* rebalance.c */
bh_console_fn bh_console_configs;                             /* configs.c */
bh_console_fn bh_console_queue;                               /* scheduler.c */
bh_console_fn bh_console_timeline, bh_console_utilisation;    /* past.c */
bh_console_fn bh_console_asof;                                /* asof.c */
bh_console_fn bh_console_replay_get, bh_console_replay_post, bh_console_replay_patch,
    bh_console_replay_delete; /* replay.c */
bh_console_fn bh_console_scenarios_post, bh_console_scenarios_get,
    bh_console_scenarios_delete;     /* scenarios.c */
bh_console_fn bh_console_comparison; /* observe.c */
bh_console_fn bh_console_podgroup;   /* podgroup.c */

/* ---- life --------------------------------------------------------------------------------------
 * Order: parts[] in console.c. */
typedef void bh_console_part_fn(struct bh_console *c);
/* Readers of decisions outlive the jobs that use them. */
bh_console_part_fn bh_console_decisions_start, bh_console_decisions_stop;
/* Stopped after HTTP ended, before the store goes. Waits for what runs. */
bh_console_part_fn bh_console_jobs_start, bh_console_jobs_stop;
bh_console_part_fn bh_console_totals_start, bh_console_totals_stop;
bh_console_part_fn bh_console_streams_start, bh_console_streams_stop; /* they ended with HTTP */
bh_console_part_fn bh_console_scheduler_start, bh_console_scheduler_stop;
bh_console_part_fn bh_console_decision_rows_start; /* rows of the stream */
/* Writes annotations of every attempt onto its pod, if --annotate-decisions says so. */
bh_console_part_fn bh_console_annotator_start, bh_console_annotator_stop;
bh_console_part_fn bh_console_baseline_start, bh_console_baseline_stop; /* reset.c */
bh_console_part_fn bh_console_past_start, bh_console_past_stop;
bh_console_part_fn bh_console_import_stop;
bh_console_part_fn bh_console_replay_start, bh_console_replay_stop;
bh_console_part_fn bh_console_scenarios_start, bh_console_scenarios_stop;
bh_console_part_fn bh_console_observe_stop; /* begun by observe.h */

/* The request of a client that was kept waiting; http NULL: it has left. (work.c) */
struct bh_sim_req bh_console_late_req(struct bh_sim *s, struct bh_http_req *http,
                                      struct bh_arena *a, uint64_t start_ns);

/* ---- observe.c: the cluster that is followed; NULL: none is ------------------------------------ */
struct bh_json *bh_console_observed(struct bh_console *c, struct bh_arena *a);

/* ---- config.c, in a worker thread -------------------------------------------------------------
 * The scheduler of a runtime directory. */
/* The configuration in force as text, and the file it came from ("" = none); both malloc.
 * -ENOENT: no scheduler runs there. */
int bh_console_config_running(const char *runtime_dir, bool yaml, char **ret, char **ret_path,
                              struct bh_err *err);
/* Findings begin with the field they are about: "profiles[0].plugins: Invalid value: ...". Its
 * length, 0 = none. */
size_t bh_console_field_of(const char *finding);
struct bh_console_place { /* what is wrong */
    unsigned line;        /* 0 = unknown */
    char field[160];      /* "" = none in particular */
};
/* Validates text, writes the scheduler's file, makes the scheduler take it, waits until it runs. A
 * configuration that does not get into force is taken back. 0; -EINVAL with *ret: not valid;
 * -EBUSY: another change is under way; other -errno: no scheduler, or it did not come back. */
int bh_console_config_apply(const char *runtime_dir, const char *text, size_t n,
                            struct bh_console_place *ret, struct bh_err *err);

/* ---- reset.c, in the loop -------------------------------------------------------------------- */
/* Takes out what people made: all but what a cluster has from its start. Returns how many. */
size_t bh_console_wipe(struct bh_sim *s);
/* Part of a fresh cluster, not of what people made. */
bool bh_console_is_system(const struct bh_sim_type *t, const char *ns, const char *name);

/* ---- past.c, in the loop --------------------------------------------------------------------- */
/* Something that is no commit: what "config", "reset", "import". */
void bh_console_past_note(struct bh_console *c, const char *what, const char *detail);

/* ---- decisions.c: recorded decisions (scheduler/decisions/decisions.h), the file of --decisions -
 * Questions are answered in worker threads, each with a reader of its own that is kept for the next
 * one. The stream's rows are read in the loop, a few hundred at a time, once for all streams. */
/* The member "recording" of the overview. Some 50 us. */
struct bh_json *bh_console_recording(struct bh_console *c, struct bh_arena *a);

/* ---- scheduler.c: the scheduler of this runtime directory ---------------------------------------
 * Its control socket (common/control/ask.h) is asked in worker threads; the loop sees what the
 * last answer said. Without --runtime-dir there is no scheduler. */
/* The newest answer; when it is older than a second, the next one is asked for in the background.
 * running: it answered. trouble: what it reports, or why no answer came. profiles: the schedulerNames
 * that its configuration has profiles for, a list of strings; NULL: not known. The console's. */
struct bh_console_scheduler_view {
    bool known; /* a scheduler was asked at all */
    bool running, deciding;
    char trouble[512];
    struct bh_json *profiles;
};
const struct bh_console_scheduler_view *bh_console_scheduler(struct bh_console *c);

/* ---- export.c: the document that is exported and imported ------------------------------------ */
/* Its lists; the last entry has no name and stands for "others" (whole objects of any kind). */
struct bh_console_list {
    const char *name, *api_version, *kind;
    const char *stream, *version_query; /* kube-scheduler-simulator's stream of the kind */
};
#define BH_CONSOLE_LISTS 8
extern const struct bh_console_list bh_console_lists[BH_CONSOLE_LISTS];
#endif
