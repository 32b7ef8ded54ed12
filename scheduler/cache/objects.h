/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/objects.h - the newest object of every kind that is neither node nor pod
 *
 * Owns:       the decoded messages, each in an arena of its own.
 * Invariants: version[kind] changes with every put and delete of the kind: results that depend on
 * the kind use it as their epoch. Runs in:    the engine's thread. Fails with: -EINVAL, -E2BIG for
 * messages that do not decode.
 */
#ifndef BH_OBJECTS_H
#define BH_OBJECTS_H

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/k8s/kinds.h"

struct bh_object {
    struct bh_arena arena;
    char *ns, *name;
    ProtobufCMessage *msg;
    void *derived;                 /* what a plugin made of msg, in arena; NULL = nothing yet */
    uint64_t feed;                 /* of struct bh_objects when it was last put */
    struct bh_object *prev, *next; /* of the same kind, unordered */
};
struct bh_objects {
    struct bh_map by_name[BH_KIND_COUNT]; /* "ns/name" -> struct bh_object * */
    struct bh_object *first[BH_KIND_COUNT];
    uint64_t version[BH_KIND_COUNT];
    uint64_t feed; /* raised when everything is told anew */
};
void bh_objects_fini(struct bh_objects *o);
/* p NULL deletes. */
int bh_objects_put(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                   const void *p, size_t n, struct bh_err *err);
/* Deletes what was not put since feed was raised. */
void bh_objects_sweep(struct bh_objects *o);
const ProtobufCMessage *bh_objects_get(const struct bh_objects *o, enum bh_kind kind,
                                       const char *ns, const char *name);
#define bh_objects_each(obj, o, kind)                                                              \
    for (const struct bh_object *obj = (o)->first[kind]; obj; obj = obj->next)
#endif
