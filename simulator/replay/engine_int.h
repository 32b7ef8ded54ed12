/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/engine_int.h - what engine.c, load.c and apply.c share
 */
#ifndef BH_SIM_REPLAY_ENGINE_INT_H
#define BH_SIM_REPLAY_ENGINE_INT_H

#include <stdatomic.h>

#include "common/base/map.h"
#include "simulator/replay/clean.h"
#include "simulator/replay/engine.h"
#include "simulator/replay/record.h"

struct bh_player_error {
    unsigned line;
    char message[256];
};
struct bh_player_errors {
    struct bh_player_error *v; /* at most BH_REPLAY_LISTED */
    size_t n;
    uint64_t total;
};
void bh_player_error(struct bh_player_errors *e, unsigned line, const char *fmt, ...)
    BH_PRINTF(3, 4);

/* ---- load.c: from bytes to an index, in a worker thread -------------------------------------- */

struct bh_player_entry {
    int64_t time_ns; /* never before its predecessor's */
    size_t at;       /* in text: the cleaned resource */
    uint32_t n, line;
    enum bh_record_event event;
    bool takes; /* changes what pods before it may still need: nodes, ends of pods */
};
struct bh_player_file {
    struct bh_buf text;
    struct bh_player_entry *v;
    size_t n;
    uint64_t skipped; /* of kinds, or states, that scheduling has no use for */
    struct bh_player_errors errors;
    bool torn;
    struct bh_err fatal; /* nothing is played when set */
};
/* *drop: set by another thread to end early. */
void bh_player_file_read(struct bh_player_file *f, const void *p, size_t n,
                         const atomic_bool *drop);
void bh_player_file_fini(struct bh_player_file *f);

/* ---- the engine ------------------------------------------------------------------------------ */

/* A pod the replay made. */
struct bh_player_pod {
    char uid[40];
    char *recorded, *node; /* NULL: not known, not bound (yet) */
    bool decided;          /* the scheduler has said something: bound, or not now */
    bool counted;          /* compared */
    bool gone;             /* this cluster has removed it */
    bool given;            /* created with its node: no decision */
};
struct bh_player_difference {
    const char *ns, *name, *recorded, *node;
};
enum bh_player_phase {
    BH_REPLAY_NONE,
    BH_REPLAY_LOADING,
    BH_REPLAY_RUNNING,
    BH_REPLAY_PAUSED,
    BH_REPLAY_DONE,
    BH_REPLAY_FAILED
};
struct bh_player {
    struct bh_sim *sim;
    const struct bh_sim_type *pod_type, *claim_type, *namespace_type;
    enum bh_player_phase phase;
    char *name;
    double speed;
    bool follow, paused; /* paused: as asked for, also while loading */
    struct bh_player_load *load;
    struct bh_player_file file;
    size_t next;       /* entry */
    uint64_t to_step;  /* records to apply although paused */
    size_t clear_kind; /* kinds that are still to be cleared, counted down; 0 = none */
    /* Position: base_ns of the file was reached when the clock showed base_mono_ns. */
    int64_t base_ns;
    uint64_t base_mono_ns;
    /* Speed 0: waiting for decisions since then (0 = not), and how many pods it was in vain for. */
    uint64_t gate_ns, given_up;
    struct bh_sim_timer *timer;
    struct bh_arena arena;
    struct bh_map pods; /* "ns/name" -> bh_player_pod */
    uint64_t waiting, undecided, same, different, version;
    struct bh_arena told;               /* texts of diffs */
    struct bh_player_difference *diffs; /* at most BH_REPLAY_LISTED */
    size_t n_diffs;
    struct bh_player_errors errors; /* of applying */
    uint64_t late_max_ns, late_sum_ns, late_n;
};

/* ---- apply.c: one record into the store ------------------------------------------------------ */

void bh_player_apply(struct bh_player *r, const struct bh_player_entry *e);
struct bh_player_pod *bh_player_pod_get(struct bh_player *r, const char *ns, const char *name);
/* The source's and this cluster's node of a pod are both known: compare them, once. */
void bh_player_compare(struct bh_player *r, const char *ns, const char *name,
                       struct bh_player_pod *p);
/* Deletes some objects of what the table knows; true when there are more. */
bool bh_player_clear_some(struct bh_player *r);
#endif
