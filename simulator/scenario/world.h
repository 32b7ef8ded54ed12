/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/world.h - a whole cluster in one process: store, controllers, engine, queue
 *
 * For whoever lets a scheduler decide without servers and buses: scenarios and `berth bench`. The
 * store admits every object as an API server does and tells about commits; these go straight into
 * the engine and the scheduler's queue, the way a scheduler's intake takes them. Binding is
 * immediate. The clock is the owner's: it moves now_ns and calls bh_world_settle(), which lets the
 * store's timers follow. Nothing here looks at the machine's clock but to measure (decide_ns,
 * intake_ns), so a run is reproducible from its inputs and its seed.
 *
 * Differences from a live scheduler: claims are written and taken for granted before the pod is
 * bound (nobody waits for a provisioner or a driver); a pod that Permit makes wait is bound at
 * once; no condition is written to a pod that fits nowhere; extenders are not asked.
 * Threads: one owner. Several worlds may live in one process, each with its own owner.
 */
#ifndef BH_SIM_WORLD_H
#define BH_SIM_WORLD_H

#include "scheduler/daemon/intake.h"
#include "scheduler/engine.h"
#include "scheduler/queue/queue.h"
#include "simulator/server.h"
#include "simulator/sim.h"

struct bh_world_commit { /* a commit of a kind that schedulers look at; the engine has it already */
    enum bh_sim_change change;
    const struct bh_sim_obj *old, *obj;
    /* nodes and pods; NULL: it could not be read. Valid during the call. */
    const struct bh_node_rec *node;
    const struct bh_pod_rec *pod;
    const struct bh_shape_rec *shape;
};
struct bh_world_try { /* an attempt that ended; valid during the call */
    const struct bh_pod_rec *pod;
    const struct bh_decision *failed; /* NULL: the pod goes to node */
    bh_sym node;
    uint64_t took_ns; /* time in the scheduler's library, by the options' timer */
};
struct bh_world_options {
    const struct bh_sched_config *config; /* borrowed; no extenders */
    enum bh_tie_break tie_break;
    uint64_t seed;
    bool verify;
    bool controllers; /* of the store; claims are written there then, not only into the engine */
    int64_t kubelet_delay_ns;
    int64_t start_ns; /* unix time at which the clock begins */
    /* What the scheduler's library is timed by; NULL = bh_mono_ns. */
    uint64_t (*timer)(void);
    /* May be NULL. Neither may call the world. */
    void (*commit)(void *arg, const struct bh_world_commit *c);
    void (*tried)(void *arg, const struct bh_world_try *t);
    void *arg;
};
struct bh_world {
    struct bh_world_options o;
    uv_loop_t loop;
    struct bh_sim *sim;
    struct bh_engine *engine;
    struct bh_queue *queue;
    struct bh_intake intake; /* only what turns records into events */
    struct bh_arena decoded; /* of the commit at hand */
    struct bh_err trouble;   /* first object that could not be read, or write that was refused */
    int trouble_rc;
    int64_t now_ns;
    int64_t arrived_ns; /* of the last pod that entered the queue */
    /* Time spent in the scheduler's library, by the options' timer: deciding (from the pop to
     * Permit, and putting back what was rejected), and taking in changes (records, shapes, cache,
     * queue, hints). */
    uint64_t decide_ns, intake_ns;
    /* How often, and the allocations that it took: from the pod to its node (without the queue),
     * and per change. */
    uint64_t decisions, decide_allocations, changes, change_allocations;
};
/* What a fresh cluster has is in the engine afterwards. fini also after a failed init. */
int bh_world_init(struct bh_world *w, const struct bh_world_options *o, struct bh_err *err);
void bh_world_fini(struct bh_world *w);
/* The store follows the clock; what it committed goes into engine and queue. -EINVAL: an object
 * cannot be read; -ELOOP: controllers run in circles. */
int bh_world_settle(struct bh_world *w, struct bh_err *err);
/* One attempt, without settling afterwards. false: nobody can be tried now. */
bool bh_world_attempt(struct bh_world *w);
/* When the queue wants to be looked at again, and when the store does; INT64_MAX = only after a
 * change. */
int64_t bh_world_queue_due(struct bh_world *w);
int64_t bh_world_store_due(const struct bh_world *w);
/* Pod finished: it counts nowhere any more. */
static inline bool bh_world_finished(const struct bh_sim_obj *pod)
{
    return bh_streq(pod->phase, "Succeeded") || bh_streq(pod->phase, "Failed");
}
#endif
