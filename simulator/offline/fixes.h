/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes.h - what would make a pod fit: changes of the pod, of nodes, and objects
 * that are missing, each of them tried
 *
 * Single changes first. When none of them helps, each is tried together with those that answer what
 * is still in the way after it ("tolerate the taint, and 31 cpu").
 *
 *   {tried: int, pairs: bool, fixes[]: those that help first, then those that name what is missing,
 *    then the others:
 *     {text, fits: bool, outcome: text, missing: true (an object is not there),
 *      pod?: the changed pod, node?: {name, patch: merge patch}, create?[]: manifests,
 *      note?: why the command is not simply a patch of the pod, commands?[]: for a shell}}
 *
 * Owns:       nothing; the tree lives in the arena given. The world is afterwards as it was.
 * Threads:    the world's.
 */
#ifndef BH_OFFLINE_FIXES_H
#define BH_OFFLINE_FIXES_H

#include "common/data/json.h"
#include "simulator/offline/offline.h"

/* Those of a group that wait, in the order of their turn. */
struct bh_offline_members {
    const char *ns, *name;      /* the group's */
    const struct bh_pending *v; /* what they are */
    const char *const *objects; /* and the API objects, as JSON; NULL = not known */
    uint32_t n;
};
/* The same for all members of a group: a change of the pod is one of each of them, and what is looked
 * for is room for the whole group. Besides: how many more nodes like one that is there. The members
 * get patches as the first one without room does; `pod` is about that one, commands about all. try: how
 * the group comes out now; NULL: nothing can be asked. */
struct bh_json *bh_offline_group_fixes(struct bh_offline *w, struct bh_arena *a,
                                       const struct bh_offline_members *m,
                                       const struct bh_group_try *try,
                                       const struct bh_group_result *r);

/* pod: the API object, with a uid; explanation: how it comes out now. */
struct bh_json *bh_offline_fixes(struct bh_offline *w, struct bh_arena *a,
                                 const struct bh_json *pod, const struct bh_json *explanation);
/* Whether the pod belongs to the group that is explained by this name: the PodGroup of
 * scheduling.k8s.io, or where there is none that of plugin Coscheduling, by label. */
bool bh_offline_of_group(const struct bh_offline *w, const char *ns, const char *name,
                         const struct bh_pending *p);
/* Why a group goes or waits (explain_group.c); the world is afterwards as it was. -ENOENT: there is no
 * such PodGroup; -EINVAL.
 * kind "PodGroupExplanation", apiVersion "berth/v1"
 *   group         {namespace, name, policy: "Gang", "Basic" or "Coscheduling", minCount, topologyKey}
 *   members       {known, onNodes, waiting: int}; onNodes: those on their way as well
 *   result        "Fits", "Preempts", "Unschedulable", "Gated", "Error", "Scheduled", "Empty"
 *   message       why
 *   placements[]  {name, nodes, placed: int, fits, chosen: bool, score, lack}, of a group with topology
 *   pods[]        of those that wait {name, state, node, message}, then those on nodes
 *   fixes         what would make all of it fit, as above; when it does not, and asked for.
 *                 Coscheduling: what would give fixesFor a node, with the others where they have room
 *   fixesFor      the member whose pod the changes of pods are shown with
 */
int bh_offline_explain_group(struct bh_offline *w, struct bh_arena *a,
                             const struct bh_offline_members *m, bool fixes,
                             struct bh_json **ret_doc, struct bh_err *err);
#endif
