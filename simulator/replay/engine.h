/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/engine.h - plays a record file into the store, at its own times or others
 *
 * One file at a time. It is read and cleaned (clean.h) in a worker thread, into an index in memory;
 * then each record is applied when its time has come by the simulator's clock, divided by the
 * speed. A turn of the loop applies some milliseconds' worth of records, so clients are served
 * meanwhile; what is late is applied in order, as fast as that goes.
 *
 * Pods that were bound when they were first seen are created bound: they are the state in which the
 * record begins. All others are created without a node, whatever the source decided later: the
 * scheduler of this cluster decides, and the source's choice is kept to compare. With `follow` they
 * are kept from every scheduler and bound as recorded.
 * Files need not be complete: namespaces that are missing are made, an Update of what is not there
 * creates it (not pods that this cluster has removed since), a Delete of it is nothing.
 * Threads: the loop's.
 */
#ifndef BH_SIM_REPLAY_ENGINE_H
#define BH_SIM_REPLAY_ENGINE_H

#include "simulator/server/sim.h"

/* The schedulerName of pods while recorded bindings are followed: no scheduler places them. */
#define BH_REPLAY_FOLLOWER "recorded"

#define BH_REPLAY_BODY_MAX ((size_t)256 << 20) /* of an uploaded file, packed or not */
#define BH_REPLAY_TEXT_MAX ((size_t)512 << 20) /* of the cleaned records in memory */
#define BH_REPLAY_LISTED   100                 /* errors and differences that are told one by one */

struct bh_player_options {
    const char *name; /* of the file, to show */
    /* 1 = as it was; 0 = as fast as the scheduler decides: nothing is taken away, and no node
     * changes, before the pods that came earlier are decided, or none is for two seconds. */
    double speed;
    bool paused, clear, follow;
};
struct bh_player;
struct bh_player *bh_player_new(struct bh_sim *s);
void bh_player_free(struct bh_player *r); /* before the store goes; NULL allowed */
/* A copy of p is made. -EBUSY: another file is being played. -EINVAL: a bad option. */
int bh_player_start(struct bh_player *r, const void *p, size_t n, const struct bh_player_options *o,
                    struct bh_err *err);
void bh_player_stop(struct bh_player *r); /* and forgets the file */
bool bh_player_active(const struct bh_player *r);
void bh_player_set_speed(struct bh_player *r, double speed);
void bh_player_pause(struct bh_player *r, bool paused);
/* Applies that many records now, while paused. -EINVAL when nothing is paused. */
int bh_player_step(struct bh_player *r, uint64_t records, struct bh_err *err);
/* docs/simulator-api.md, section 6. */
struct bh_json *bh_player_state(const struct bh_player *r, struct bh_arena *a);
/* Counts up with everything the state tells, but the passing of time. Never 0. */
uint64_t bh_player_version(const struct bh_player *r);
#endif
