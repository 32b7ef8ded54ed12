/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/groups.h - pods that go together: who belongs to which group, and how far it is
 *
 * A pod belongs to the group that its spec.schedulingGroup names, or, in the second of these tables,
 * its label (plugin Coscheduling), in its own namespace, whether there is a PodGroup object or not. Two
 * sides know of a pod: the queue (it waits: bh_groups_wait) and the
 * cache (it is on a node, assumed or assigned: bh_groups_place). What the cache says counts. A pod of
 * which neither side knows any more is no member, and a group without members is gone.
 *
 * Owns:       groups and members; uids are copied.
 * Invariants: a member is in the list of its place, whose length is n[place].
 * Runs in:    the engine's thread.
 * Upstream:   pkg/scheduler/backend/cache/podgroupstate.go; differences: no copy for a cycle: what a
 *             cycle assumes it assumes in the cache, and takes it back.
 */
#ifndef BH_GROUPS_H
#define BH_GROUPS_H

#include <sys/queue.h>

#include "common/base/map.h"
#include "common/k8s/record.h"
#include "scheduler/cache/objects.h"

enum bh_member_place {
    BH_MEMBER_NOWHERE, /* not on a node */
    BH_MEMBER_UNSCHEDULED,
    BH_MEMBER_ASSUMED,
    BH_MEMBER_ASSIGNED,
    BH_MEMBER_PLACES
};
struct bh_group;
struct bh_member {
    TAILQ_ENTRY(bh_member) link;
    struct bh_group *group;
    enum bh_member_place at;
    enum bh_member_place placed; /* NOWHERE, ASSUMED, ASSIGNED: as the cache has it */
    bool waits;                  /* the queue has it */
    bool gated;                  /* and it has scheduling gates */
    uint32_t n_uid;
    char uid[]; /* with NUL */
};
struct bh_group {
    bh_sym namespace_, name;
    uint32_t n[BH_MEMBER_PLACES];
    uint32_t n_gated;                                       /* members with scheduling gates */
    TAILQ_HEAD(bh_members, bh_member) at[BH_MEMBER_PLACES]; /* in the order of their coming there */
    uint64_t
        told; /* fingerprint of the condition that was written last; 0 = none (daemon/group.c) */
};
struct bh_groups {
    bool on;      /* gate GenericWorkload, or the plugin is enabled; off: nothing is kept */
    bh_sym label; /* whose value names the group; NONE: spec.schedulingGroup does */
    struct bh_umap by_name;
    struct bh_map by_uid; /* struct bh_member * */
};
void bh_groups_fini(struct bh_groups *g);
/* The group's name of a pod of this shape, NONE: it has none. */
bh_sym bh_groups_name(const struct bh_groups *g, const struct bh_pod_rec *pod,
                      const struct bh_shape_rec *shape);
/* The queue has the pod, or has it no longer; nothing for one without a group. */
void bh_groups_wait(struct bh_groups *g, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape, bool waits);
/* placed: NOWHERE, ASSUMED, ASSIGNED. */
void bh_groups_place(struct bh_groups *g, const struct bh_pod_rec *pod,
                     const struct bh_shape_rec *shape, enum bh_member_place placed);
struct bh_group *bh_groups_find(const struct bh_groups *g, bh_sym namespace_,
                                bh_sym name); /* or NULL */
/* What the PodGroup object says. false: there is none. */
struct bh_group_policy {
    bool gang; /* else basic */
    uint32_t min_count;
    bool whole;               /* disruption takes all of its pods or none */
    int32_t priority;         /* in preemption by group and of it */
    const char *topology_key; /* NULL: members may be anywhere */
};
bool bh_group_policy(const struct bh_objects *o, const char *ns, const char *name,
                     struct bh_group_policy *ret);
static inline uint32_t bh_group_scheduled(const struct bh_group *g)
{
    return g->n[BH_MEMBER_ASSUMED] + g->n[BH_MEMBER_ASSIGNED];
}
static inline uint32_t bh_group_all(const struct bh_group *g)
{
    return g->n[BH_MEMBER_UNSCHEDULED] + bh_group_scheduled(g);
}
static inline struct bh_str bh_member_uid(const struct bh_member *m)
{
    return (struct bh_str){m->uid, m->n_uid};
}
#endif
