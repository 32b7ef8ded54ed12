/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/property.h - random clusters, pods and changes, and what must hold for all of them
 *
 * A scenario is data: a configuration and a list of operations, each complete in itself (objects in
 * full, names instead of pointers). generate*.c make one from a seed; world.c plays it; shrink.c
 * leaves out what a failure does not need. An operation whose subject is gone does nothing, so any
 * subset of a scenario is a scenario.
 *
 *   {"seed": N, "features": "taints,spread,...", "rebuilt": bool, "first": bool,
 *    "gates": "A=true,..."?, "config": {KubeSchedulerConfiguration}?, "ops": [...]}
 *
 *   op         members              meaning
 *   apply      object               create or update; a pod without spec.nodeName is pending
 *   delete     kind, namespace, name
 *   schedule   pod, then            decide; then: bind, assume, forget, look; of a pod with a group
 *                                   the group is decided about, and bound or not
 *   confirm    pod                  an assumed pod shows up as bound
 *   forget     pod                  its binding failed
 *   nominate   pod, node            status.nominatedNodeName (node "" clears)
 *   rebuild    drop                 nodes and pods again from a snapshot, those in drop left out
 *   feed       drop                 the same for all other kinds
 *   check                           engine against engines built from the present state
 *
 * Threads: one. A round runs in a process of its own, so aborts and crashes are findings like
 * others.
 */
#ifndef BH_PROPERTY_H
#define BH_PROPERTY_H

#include "common/base/map.h"
#include "common/data/json.h"
#include "simulator/offline/offline.h"

/* ---- scenarios ------------------------------------------------------------------------------- */

enum feature { /* of one round: what its objects have */
               F_TAINTS = 1,
               F_AFFINITY = 2,
               F_PORTS = 4,
               F_IMAGES = 8,
               F_SPREAD = 16,
               F_POD_AFFINITY = 32,
               F_PRIORITY = 64, /* with budgets and preemption */
               F_GATES = 128,
               F_VOLUMES = 256,
               F_DEVICES = 512,
               F_SERVICES = 1024,
               F_PROFILES = 2048,
               F_FEATURES = 4096, /* declared by nodes */
               F_NOMINATE = 8192,
               F_TERMINATING = 16384,
               F_ODD = 32768, /* odd quantities, resized pods, pod-level resources */
               F_NAMESPACES = 65536,
               F_SAMPLING = 131072,
               F_CROWDED = 262144, /* with priority: full nodes, most pods preempt others */
               F_GROUPS = 524288,  /* PodGroups, with their gates */
               F_ALL = 1048575
};
struct generate_options {
    uint64_t seed;
    unsigned nodes;    /* 0 = any number */
    unsigned ops;      /* 0 = any number */
    uint32_t features; /* only these, all of them when exact */
    bool exact;
};
struct bh_json *generate(struct bh_arena *a, const struct generate_options *o);

/* ---- a round --------------------------------------------------------------------------------- */

/* What went wrong: kind is a few words that stay the same while the scenario shrinks. */
struct finding {
    char kind[96];
    char text[8192];
};
struct counts { /* what a round did; a property that is never tried proves nothing */
    uint64_t ops, decisions, decided, refused, errors, gated, preemptions, fresh, forgets, checked,
        complete, events, woken, slept, writes, groups, groups_placed;
};
/* Plays the scenario in this process; false with a finding. */
bool play(const struct bh_json *scenario, struct counts *n, struct finding *f);
/* In a process of its own, at most seconds long. */
bool play_apart(const struct bh_json *scenario, unsigned seconds, struct counts *n,
                struct finding *f);
/* The same finding with less; tries: how many scenarios may be played. The arena holds the
 * result. */
struct bh_json *shrink(struct bh_arena *a, const struct bh_json *scenario, const struct finding *f,
                       unsigned tries, unsigned seconds);

/* ---- the world of a round -------------------------------------------------------------------- */

enum { MAIN /* verify, with a queue */, FAST, ENGINES };
enum pod_place { POD_PENDING, POD_ASSUMED, POD_BOUND };

struct pod_side { /* one pod in one engine */
    struct bh_pod_rec *rec;
    bh_shape_id shape;
};
struct thing { /* one object as the API server has it */
    enum bh_kind kind;
    char *id;               /* "Pod default/p1" */
    struct bh_json *object; /* in the world's arena */
    uint64_t order;         /* of its last change */
    /* pods */
    enum pod_place place;
    const char *node;      /* assumed or bound there, else NULL */
    const char *nominated; /* NULL = nowhere */
    struct pod_side side[ENGINES];
};
struct world {
    struct bh_arena arena; /* the objects, for the whole round */
    const struct bh_json *scenario;
    struct bh_sched_config *config;
    struct bh_feature_gates gates;
    bool rebuilt, first;
    struct bh_offline w[ENGINES]; /* MAIN's has the queue and the clock */
    struct bh_map things;         /* id -> struct thing */
    struct bh_map rejectors;      /* uid -> text: who rejected the pod when it was popped last */
    uint64_t order;
    struct counts *n;
    struct finding *found; /* kind is empty while all is well */
    size_t op;             /* index of the running one */
    char why[256];         /* what the running op is, for findings */
};
bool failed(const struct world *w);
/* The first finding stays. */
void fail(struct world *w, const char *kind, const char *fmt, ...) BH_PRINTF(3, 4);

struct thing *find_thing(const struct world *w, enum bh_kind kind, const char *ns,
                         const char *name);
struct thing *find_pod(const struct world *w, const char *key /* "ns/name" */);
const char *thing_name(const struct thing *t);
const char *thing_namespace(const struct thing *t);
/* All things of a kind (BH_KIND_COUNT: all), ordered by last change; NULL-terminated, in a. */
struct thing **all_things(const struct world *w, struct bh_arena *a, enum bh_kind kind);
bool has_assumed(const struct world *w);
struct bh_pending pending_of(const struct world *w, const struct thing *pod, unsigned engine);
struct bh_str uid_of(const struct thing *pod);

/* Into a world. The record lives in the arena, the shape is a reference. */
int compile_pod(struct bh_engine *e, struct bh_arena *a, const struct bh_json *object,
                struct bh_pod_rec **ret, bh_shape_id *ret_shape, struct bh_err *err);
/* Pods only when they are bound. */
int put_thing(struct bh_offline *o, const struct thing *t, struct bh_err *err);
bh_sym sym_in(struct bh_engine *e, const char *text);

/* Engines' and the store's parts of what a decision leads to (world.c). */
bool assume_pod(struct world *w, struct thing *t, const char *node);
void bind_pod(struct world *w, struct thing *t, const char *node);
/* The pod's group is decided about in all engines, compared, and bound when bind says so (groups.c). */
void schedule_group(struct world *w, struct thing *pod, bool bind);
const char *group_name(const struct thing *pod); /* NULL: none */
/* One op. */
void step(struct world *w, const struct bh_json *op);

/* ---- properties ------------------------------------------------------------------------------ */

/* Everything a decision says, independent of symbols, rows and orders that carry no meaning. rooms:
 * what preemption would do as well; upstream's order among victims that have no start time yet is
 * one of chance, so not with assumed pods about. */
const char *decision_text(struct bh_arena *a, struct bh_engine *e, const struct bh_decision *d,
                          bool rooms);
const char *decide_text(struct world *w, struct bh_arena *a, const struct thing *pod);
/* The first line that differs, for findings. */
void first_difference(const char *a, const char *b, char *out, size_t n);

/* Decides for the pod in all engines and compares. Returns MAIN's decision, which explains unless
 * flags (enum bh_schedule_flags) are given. */
const struct bh_decision *decide(struct world *w, const struct thing *pod, unsigned flags);
/* Assume and forget change nothing. node: where the pod was decided to go. */
void check_forget(struct world *w, const struct thing *pod, const char *node);
/* Engines built from the present state, in two orders, decide as the one that lived through it. */
void check_fresh(struct world *w, uint64_t seed);

/* The independent checker: does the node suit the pod, as far as it looks? */
enum suits { SUITS_NOT, SUITS, SUITS_PERHAPS /* and nothing it does not look at takes part */ };
/* reason: of SUITS_NOT. */
enum suits suits(const struct world *w, const struct thing *pod, const struct thing *node,
                 char reason[static 128]);
void check_suits(struct world *w, const struct thing *pod, const struct bh_decision *d);

/* ---- no lost wake-up ------------------------------------------------------------------------- */
/* Decides for every pod the queue would hand out, then no pod that fits may be left waiting. */
void wake_check(struct world *w);
/* Set before the first round: wake_check says nothing. Upstream's hints have holes that a random
 * search goes on finding; a fresh seed in `make check` is about decisions, `make soak` about both.
 */
extern bool wake_off;
#endif
