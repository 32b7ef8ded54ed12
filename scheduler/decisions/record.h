/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/record.h - one attempt as bytes, and back
 *
 * Two blocks. The head is small and says what a list shows; it is all that mode summary keeps. The
 * body holds what single plugins and nodes said, in columns: nodes are numbers, positions in a list
 * of names that only grows and that many attempts share; a byte per position tells which verdict a
 * node got (as a rule two or three different ones in a cluster); every score plugin has a column of
 * numbers in as many bytes as they need. Both are packed by the scheduler's thread, which
 * allocates nothing once its buffers have grown; compressing and writing is done in another thread
 * (writer.h).
 *
 * A block begins with its version; a reader refuses one it does not know. What is read is not
 * trusted: every length and position is checked, -EIO when something is wrong.
 *
 * Threads:    one owner for each packer.
 * Memory:     what is unpacked lives in the arena given.
 */
#ifndef BH_DECISION_RECORD_H
#define BH_DECISION_RECORD_H

#include "common/base/buf.h"
#include "scheduler/engine/engine.h"

#define BH_RECORD_VERSION   1u
#define BH_RECORD_BODY_MAX  ((size_t)128 << 20)
#define BH_RECORD_NODES_MAX (1u << 24)

/* AUTO is a recorder's; an attempt on record is of one of the others. */
enum bh_record_mode { BH_RECORD_OFF, BH_RECORD_SUMMARY, BH_RECORD_FULL, BH_RECORD_AUTO };
extern const char *const bh_record_modes[];   /* "off", "summary", "full", "auto", NULL */
extern const char *const bh_record_results[]; /* by enum bh_decision_kind */

/* ---- the names of nodes ------------------------------------------------------------------------
 * A name gets the next position when it is first needed and keeps it. When most of a list are
 * names of nodes that are gone, a new list begins. */
struct bh_node_list {
    uint32_t id;     /* of the list, from 1 on */
    uint32_t *place; /* by symbol: position + 1, 0 = none */
    uint32_t n_place;
    bh_sym *name; /* by position */
    uint32_t n, cap;
};
uint32_t bh_node_list_place(struct bh_node_list *l, bh_sym name);
/* A new list, when this one is too large for a cluster of n_nodes. */
void bh_node_list_review(struct bh_node_list *l, uint32_t n_nodes);
void bh_node_list_fini(struct bh_node_list *l);

/* ---- the head -------------------------------------------------------------------------------- */
struct bh_record_point { /* how long an extension point took */
    const char *point;   /* upstream's name */
    uint64_t ns;
};
struct bh_record_head {
    enum bh_record_mode mode;
    enum bh_decision_kind result;
    uint32_t attempt, n_nodes, evaluated, feasible, n_victims;
    int32_t priority;
    uint64_t duration_ns;
    const char *profile, *trigger, *reason, *message, *nominated; /* "" = none */
    uint32_t fit_n, post_n; /* the message begins and ends with FitError's and PostFilter's text */
    struct bh_record_point points[16];
    uint32_t n_points;
};
/* result, reason, message and its parts. Texts are borrowed. */
void bh_record_set_texts(struct bh_record_head *h, const struct bh_decision *d);
void bh_record_pack_head(struct bh_buf *out, const struct bh_record_head *h);
/* The end of a head: they are known later than the rest. */
void bh_record_pack_points(struct bh_buf *out, const struct bh_record_head *h);
/* Strings live in a. */
int bh_record_unpack_head(struct bh_arena *a, const void *p, size_t n, struct bh_record_head *h);

/* ---- the body -------------------------------------------------------------------------------- */
struct bh_record_step {           /* what a plugin said after the decision: Reserve, Permit */
    const char *plugin, *message; /* "success", "wait", or why not */
    int64_t timeout_ns;           /* Permit */
};
#define BH_RECORD_STEPS 16u
#define BH_RECORD_WAYS  16u /* equally good preemptions whose victims are kept */
struct bh_record_after {
    struct bh_record_step reserve[BH_RECORD_STEPS], permit[BH_RECORD_STEPS];
    const char *pre_bind[BH_RECORD_STEPS],
        *bind[BH_RECORD_STEPS]; /* plugins, if it comes to that */
    uint32_t n_reserve, n_permit, n_pre_bind, n_bind;
    bool overruled; /* Reserve or Permit made something else of the decision */
};
enum bh_node_mark {                 /* what a place of the list was in an attempt */
                    BH_NODE_ABSENT, /* no node of the cluster */
                    BH_NODE_UNSEEN, /* a node that was not looked at */
                    BH_NODE_FEASIBLE,
                    BH_NODE_VERDICTS /* rejected: this + the number of the verdict */
};
struct bh_placed {     /* what became of the nodes of one attempt */
    uint32_t *mark, n; /* by position */
    uint32_t *score;   /* of the first feasible position, the second ...: index into d->scores */
    const struct bh_status **verdicts; /* each kind once */
    uint32_t n_verdicts;
};
struct bh_packer {
    struct bh_node_list list;
    struct bh_placed placed;
    uint32_t cap_places, cap_verdicts;
    uint64_t *verdict_hash;
    uint32_t *slots, n_slots; /* hash table over verdicts */
};
void bh_packer_fini(struct bh_packer *p);
/* Fills `placed`; every node of d and of the cluster has its place then (places.c). */
void bh_packer_place(struct bh_packer *p, struct bh_engine *e, const struct bh_decision *d);
/* d: taken with BH_EXPLAIN (BH_RECORD or not) by e just now. Names of nodes get places. */
void bh_record_pack(struct bh_packer *p, struct bh_engine *e, const struct bh_decision *d,
                    struct bh_buf *out);
/* What came after it, behind the body. */
void bh_record_pack_after(struct bh_buf *out, const struct bh_record_after *after);

struct bh_record_names { /* a list of names, as a reader has it */
    const struct bh_symtab *tab;
    const bh_sym *name;      /* by position */
    const uint32_t *by_name; /* positions, sorted by name */
    uint32_t n;
};
struct bh_recorded {
    struct bh_decision d; /* as with BH_EXPLAIN: lists sorted by name. Texts: of the head */
    struct bh_record_after after;
    const bh_sym *others; /* nodes of the cluster that were neither feasible nor rejected */
    uint32_t n_others;
};
int bh_record_unpack(struct bh_arena *a, const struct bh_record_names *names,
                     const struct bh_record_head *head, const void *p, size_t n,
                     struct bh_recorded *ret);
#endif
