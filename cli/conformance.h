/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/conformance.h - replaying recorded decisions; private to cli/conformance*.c
 */
#ifndef BH_CONFORMANCE_H
#define BH_CONFORMANCE_H

#include "common/data/json.h"
#include "scheduler/engine/engine.h"

/* One case: objects, then steps against the state they begin. */
struct bh_replay;
/* config: NULL = defaults. through_record: each decision is packed as --record-decisions=full does,
 * unpacked, must explain itself as before, and what came back stands for it. Errors name the
 * object. */
int bh_replay_new(const struct bh_json *config, bool verify, bool through_record,
                  struct bh_replay **ret, struct bh_err *err);
void bh_replay_free(struct bh_replay *r);
int bh_replay_put(struct bh_replay *r, const struct bh_json *obj, struct bh_err *err);
/* Runs one step. A decision's outcome goes into *ret_got in the recorded form (in arena a), NULL
 * for other steps. expect (may be NULL) chooses the form and the preemption outcome to apply. */
int bh_replay_step(struct bh_replay *r, struct bh_arena *a, const struct bh_json *step,
                   const struct bh_json *expect, bool compact, const struct bh_json **ret_got,
                   struct bh_err *err);

/* conformance_record.c: there and back, see through_record. NULL: it is not the same, see err. */
struct bh_through;
struct bh_through *bh_through_new(struct bh_engine *e);
void bh_through_free(struct bh_through *t);
const struct bh_decision *bh_through_record(struct bh_through *t, struct bh_arena *a,
                                            const struct bh_decision *d, struct bh_err *err);

/* Recorded form of a decision. */
struct bh_json *bh_decision_json(struct bh_arena *a, const struct bh_symtab *tab,
                                 const struct bh_decision *d, bool compact);
struct bh_json *bh_gated_json(struct bh_arena *a, const struct bh_status *s, bool compact);
struct bh_json *bh_error_json(struct bh_arena *a, const char *error, bool compact);

/* First field that differs, NULL when equal. Reasons of one node are a set: upstream's order among
 * scalar resources is random. A preemption is right when a recorded outcome ties with it. */
const char *bh_expect_diff(struct bh_arena *a, const struct bh_json *expect,
                           const struct bh_json *got, const struct bh_json **ret_want,
                           const struct bh_json **ret_have);
/* Leaves the outcome that Berth would choose; the others only tie with it. */
void bh_only_first_preemption(struct bh_json *got);
#endif
