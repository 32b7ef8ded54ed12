/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/recorder.h - keeps every attempt of a running scheduler in a file
 *
 * The scheduler's thread packs (record.h) into a buffer of its own. Each turn it lays the buffer
 * into a slot, if the slot is empty, and takes another one; a thread of ours empties the slot,
 * compresses, and writes to the file in one transaction. Neither waits for the other: when the
 * thread cannot keep up, or the file cannot be written, the buffer grows to BH_RECORDER_QUEUE_MAX
 * and what comes then is dropped and counted. Nothing that happens to the file reaches a decision.
 *
 * The file (SQLite, write-ahead log) has one writer: the holder of the lock of FILE-lock. A second
 * scheduler records nothing until the first is gone, and says so. The oldest attempts go when the
 * file reaches max_bytes or they are older than max_age_ns. A file that was deleted is made anew,
 * one that is not ours is left alone, one of ours that is damaged is moved to FILE.bad.
 *
 * A steady cycle allocates nothing here: buffers keep their memory. Readers: decisions.h.
 * Upstream: none.
 */
#ifndef BH_RECORDER_H
#define BH_RECORDER_H

#include "common/base/trusted_file.h"
#include "scheduler/decisions/record.h"

#define BH_RECORDER_QUEUE_MAX  ((size_t)32 << 20)
#define BH_DECISIONS_MAX_BYTES (INT64_C(256) << 20) /* the default */
#define BH_DECISIONS_MIN_BYTES (INT64_C(1) << 20)
#define BH_DECISIONS_FILE      "decisions.db"                         /* in a state directory */
#define BH_DECISIONS_RUNTIME   BH_SCHEDULER_DIR "/" BH_DECISIONS_FILE /* in a runtime directory */

/* Lines of an option table (opt.h), the same for every program that starts a scheduler. */
#define BH_RECORD_OPTIONS(mode, file, max_bytes, max_age_ns)                                       \
    {"record-decisions",                                                                           \
     0,                                                                                            \
     BH_OPT_CHOICE,                                                                                \
     &(mode),                                                                                      \
     "off|summary|full|auto",                                                                      \
     "keep every scheduling attempt in a file: off, summary (pod, result, message, timings), "     \
     "full (every node, plugin and score; slower, see docs/decisions.md), auto (full as long as "  \
     "that takes little of the time: summary under load, pods that waited before the others)"},    \
        {"decisions-file",                                                                         \
         0,                                                                                        \
         BH_OPT_STR,                                                                               \
         &(file),                                                                                  \
         "FILE",                                                                                   \
         "that file (default decisions.db in $STATE_DIRECTORY, or scheduler/decisions.db in the "  \
         "runtime directory)"},                                                                    \
        {"decisions-max-bytes", 0,   BH_OPT_INT,                                                   \
         &(max_bytes),          "N", "the oldest attempts go when the file reaches this size"},    \
    {                                                                                              \
        "decisions-max-age", 0, BH_OPT_DURATION_NS, &(max_age_ns), "DURATION",                     \
            "attempts older than this go; 0 keeps them"                                            \
    }

enum bh_record_outcome {
    BH_OUTCOME_NONE,
    BH_OUTCOME_BINDING,
    BH_OUTCOME_BOUND,
    BH_OUTCOME_FAILED,
    BH_OUTCOME_GROUP_WAITS, /* the pod has a node, and its group does not go */
    BH_N_OUTCOMES
};
extern const char *const bh_record_outcomes[]; /* "", "Binding", "Bound", "Failed", "GroupWaits" */

struct bh_recorder_options {
    enum bh_record_mode mode; /* not OFF */
    const char *path;
    int64_t max_bytes;  /* 0: BH_DECISIONS_MAX_BYTES */
    int64_t max_age_ns; /* 0: no limit */
};
struct bh_recorder;
/* Never fails: a file that cannot be opened is tried again every few seconds. */
struct bh_recorder *bh_recorder_new(const struct bh_recorder_options *o);
/* What is packed is written, for at most two seconds. */
void bh_recorder_free(struct bh_recorder *r);
/* An attempt is to begin: is every node of it kept, that is, to be decided with BH_EXPLAIN |
 * BH_RECORD? again: it failed before. In mode auto this is so while all that takes is a small part of
 * the time; the last half of what is saved up is for pods that fail. */
bool bh_recorder_next(struct bh_recorder *r, bool again);
/* How the attempt under way is kept: FULL or SUMMARY. */
enum bh_record_mode bh_recorder_mode(const struct bh_recorder *r);

/* ---- an attempt: begin, then end, nothing of another attempt in between ---------------------- */
struct bh_recorder_pod {
    struct bh_str namespace_, name, uid;
    const char *profile, *trigger;
    uint32_t attempt;
    int32_t priority;
    int64_t time_ns; /* unix time of the attempt */
};
/* d: what bh_engine_schedule said, with BH_EXPLAIN | BH_RECORD in mode full. Packs it at once: d
 * need not stay. Returns the attempt's number, for outcomes. */
uint64_t bh_recorder_begin(struct bh_recorder *r, struct bh_engine *e,
                           const struct bh_recorder_pod *pod, const struct bh_decision *d,
                           uint64_t duration_ns);
/* An attempt begins: forgets the points that were reported before. */
void bh_recorder_clear(struct bh_recorder *r);
/* An extension point took so long; from clear to end. point: static. */
void bh_recorder_point(struct bh_recorder *r, const char *point, uint64_t ns);
/* overruled: not NULL when Reserve or Permit said no: that decision stands instead of d. */
void bh_recorder_end(struct bh_recorder *r, const struct bh_record_after *after,
                     const struct bh_decision *overruled);
/* What became of a bind. number 0: nothing was recorded of it. */
void bh_recorder_outcome(struct bh_recorder *r, uint64_t number, enum bh_record_outcome o,
                         const char *message);
/* Once a turn of the scheduler's loop. */
void bh_recorder_turn(struct bh_recorder *r);

struct bh_recorder_stats {
    uint64_t recorded, dropped; /* attempts, since the start */
    uint64_t full;              /* of these two: every node of them was kept */
    uint64_t writing_ns;        /* CPU time of the thread that writes */
    uint64_t full_ns;           /* ... and of the scheduler's: full attempts, deciding included */
    uint64_t attempts, bytes;   /* in the file */
};
void bh_recorder_stats(const struct bh_recorder *r, struct bh_recorder_stats *ret);
#endif
