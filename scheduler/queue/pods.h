/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/pods.h - one handle for each pod that the scheduler is responsible for
 *
 * A message names a pod by its uid. That is looked up once, here; whatever there is about the pod
 * hangs on the handle: its entry in the queue, its bind and the write that goes first, what comes
 * between Reserve and Bind, what an earlier scheduler left on the wire, whether the watcher shows it.
 *
 *   phase     what hangs on the handle                  next
 *   NONE      no place: not pending, or not known yet   QUEUED (the watcher shows it)
 *   QUEUED    a place where it waits, gated too         DECIDING (pop), ADOPTED (adopt.c)
 *   DECIDING  place IN_FLIGHT                           QUEUED (no node), PREBIND, BINDING
 *   PREBIND   place BINDING or WAITING, and a prebind   BINDING, QUEUED (undone)
 *   ADOPTED   place BINDING, and adopted                BINDING, QUEUED (refused, or the lease ends)
 *   BINDING   place BINDING, and a bind                 NONE (bound, and shown), QUEUED (refused)
 *   LOST      place BINDING or WAITING, and nothing     QUEUED: a defect that audit.c mends
 *
 * Every phase ends with NONE when the pod is deleted. A bind, a prebind and victims that leave may
 * outlive their pod's place: the handle then is in NONE and stays until they are over.
 *
 * Owns:       the handles. What hangs on one belongs to the file that is named with it below, and no
 *             other writes that member.
 * Invariants: one handle a uid. It lives as long as it is held: by whatever keeps a pointer to it
 *             (the queue's entry, a work item, ...). The last drop frees it. bh_pods_find() only
 *             lends: what ends several things of one pod holds it meanwhile.
 * Runs in:    the scheduler's duty cycle. No locks.
 * Upstream:   none: there each component has a map of its own.
 */
#ifndef BH_QUEUE_PODS_H
#define BH_QUEUE_PODS_H

#include <stddef.h>
#include <sys/queue.h>

#include "common/base/map.h"

enum bh_queue_place {
    BH_Q_NONE,
    BH_Q_ACTIVE,
    BH_Q_BACKOFF,
    BH_Q_ERROR_BACKOFF,
    BH_Q_UNSCHEDULABLE,
    BH_Q_GATED,
    BH_Q_IN_FLIGHT,
    BH_Q_BINDING,
    BH_Q_WAITING /* at Permit */
};
enum bh_pod_phase {
    BH_POD_NONE,
    BH_POD_QUEUED,
    BH_POD_DECIDING,
    BH_POD_PREBIND,
    BH_POD_ADOPTED,
    BH_POD_BINDING,
    BH_POD_LOST
};
struct bh_pods {
    struct bh_map by_uid; /* uid -> struct bh_pod_state */
    size_t room;          /* bytes of each handle's room: set before the first is made */
};
struct bh_pod_state {
    struct bh_pods *table;
    uint32_t held;
    enum bh_queue_place place;    /* queue: of its entry; NONE = it has none */
    struct bh_queued_pod *queued; /* queue: its entry */
    struct bh_work *bind;         /* ledger: its BIND, be it queued, out, parked or kept */
    struct bh_work *first;        /* ledger: its BIND or PATCH_STATUS that is queued or out */
    struct bh_work *last_victim;  /* ledger: the eviction for it that waits for the others */
    uint32_t evictions;           /* ledger: DELETE items for it */
    uint32_t leaving;             /* results.c: victims of it that are deleted and seem to stay */
    uint32_t terminating;         /* results.c: of a group's member, victims that terminate */
    /* Daemon's group.c: of a group for which victims leave, one leads, and the others wait with it. */
    struct bh_pod_state *lead; /* held */
    LIST_HEAD(bh_followers, bh_pod_state) followers;
    LIST_ENTRY(bh_pod_state) follows;
    struct bh_prebind *prebind;       /* prebind.c */
    struct bh_adopted *adopted;       /* adopt.c */
    struct bh_waiting_pod *waiting;   /* prebind.c: the engine's, while it waits at Permit */
    struct bh_nomination *nomination; /* the engine's, through queued->pending */
    uint64_t shown; /* audit.c: the feed that showed it as pending; 0 = it is not */
    bool missed;    /* audit.c: was shown, and nowhere, at the last look */
    char *uid;      /* with NUL */
    size_t n_uid;
    max_align_t room[]; /* for the queue's entry: a pod that waits is one block */
};

struct bh_pod_state *bh_pods_find(const struct bh_pods *t, struct bh_str uid); /* NULL: none */
struct bh_pod_state *bh_pods_hold(struct bh_pods *t, struct bh_str uid); /* found or made; held */
void bh_pods_fini(struct bh_pods *t); /* nothing may be held any more */
void bh_pod_drop(struct bh_pod_state *s);
static inline void bh_pod_dropp(struct bh_pod_state **s) /* for BH_CLEANUP */
{
    if (*s)
        bh_pod_drop(*s);
}
static inline struct bh_pod_state *bh_pod_hold(struct bh_pod_state *s)
{
    s->held++;
    return s;
}
static inline struct bh_str bh_pod_uid(const struct bh_pod_state *s)
{
    return (struct bh_str){s->uid, s->n_uid};
}
static inline struct bh_pod_state *bh_pod_of(struct bh_nomination **at) /* whose nomination it is */
{
    return bh_container_of(at, struct bh_pod_state, nomination);
}
/* It waits for the victims of that one, which is not itself, as for its own; NULL: no longer. */
void bh_pod_follow(struct bh_pod_state *s, struct bh_pod_state *lead);
/* Victims of it, or of its group, are still to go: a decision now may evict twice. */
static inline bool bh_pod_evicts(const struct bh_pod_state *s)
{
    return s->evictions || s->leaving || (s->lead && (s->lead->evictions || s->lead->leaving));
}
enum bh_pod_phase bh_pod_phase(const struct bh_pod_state *s);
/* It has a node: from the decision until it is bound, or back in the queue. */
static inline bool bh_pod_has_node(const struct bh_pod_state *s)
{
    return s->place == BH_Q_BINDING || s->place == BH_Q_WAITING;
}
#endif
