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

/* pod: the API object, with a uid; explanation: how it comes out now. */
struct bh_json *bh_offline_fixes(struct bh_offline *w, struct bh_arena *a,
                                 const struct bh_json *pod, const struct bh_json *explanation);
#endif
