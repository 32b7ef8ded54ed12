/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/world.h - a whole cluster in one process: store and controllers before an
 * offline world
 *
 * For scenarios and `berth bench perf`. The store admits every object as an API server does and
 * tells about commits; these go straight into the offline world, and what a binder would write goes
 * into the store. Binding is immediate. The clock is the owner's: it moves offline.now_ns and calls
 * bh_world_settle(), which lets the store's timers follow.
 *
 * Claims are written and taken for granted before the pod is bound: no wait for a provisioner
 * or a driver. Extenders are not asked.
 * Threads: one owner. Several worlds may live in one process, each with its own owner.
 */
#ifndef BH_OFFLINE_WORLD_H
#define BH_OFFLINE_WORLD_H

#include "simulator/offline/offline.h"
#include "simulator/server/server.h"
#include "simulator/server/sim.h"

struct bh_world_commit { /* a commit of a kind that schedulers look at; the engine has it already */
    enum bh_sim_change change;
    const struct bh_sim_obj *old, *obj;
    const struct bh_offline_object *read; /* NULL: it could not be read. Valid during the call. */
};
struct bh_world_options {
    const struct bh_sched_config *config; /* borrowed; no extenders */
    enum bh_tie_break tie_break;
    uint64_t seed;
    bool verify;
    bool controllers; /* of the store; claims are written there then, not only into the engine */
    int64_t kubelet_delay_ns;
    int64_t start_ns;        /* unix time at which the clock begins */
    uint64_t (*timer)(void); /* bh_offline_options */
    /* May be NULL. Neither may call the world. */
    void (*commit)(void *arg, const struct bh_world_commit *c);
    void (*tried)(void *arg, const struct bh_offline_try *t);
    void *arg;
    /* With controllers; the PodGroup has its condition already. */
    void (*grouped)(void *arg, const struct bh_offline_group *g);
};
struct bh_world {
    struct bh_world_options o;
    uv_loop_t loop;
    struct bh_sim *sim;
    struct bh_offline offline;
    struct bh_arena decoded; /* of the commit at hand */
    struct bh_err trouble;   /* first object that could not be read, or write that was refused */
    int trouble_rc;
};
/* What a fresh cluster has is in the engine afterwards. fini also after a failed init. */
int bh_world_init(struct bh_world *w, const struct bh_world_options *o, struct bh_err *err);
void bh_world_fini(struct bh_world *w);
/* The store follows the clock; what it committed goes into engine and queue. -EINVAL: an object
 * cannot be read; -ELOOP: controllers run in circles. */
int bh_world_settle(struct bh_world *w, struct bh_err *err);
/* Pod finished: it counts nowhere any more. */
static inline bool bh_world_finished(const struct bh_sim_obj *pod)
{
    return bh_streq(pod->phase, "Succeeded") || bh_streq(pod->phase, "Failed");
}
#endif
