/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/objects.h - the newest object of every kind that is neither node nor pod
 *
 * An object may be assumed: then a version that the scheduler means to write, or has written,
 * counts instead of the one the API server told, until the API server tells a newer one.
 * PersistentVolumes and their claims: another resourceVersion is newer (what is assumed of them was
 * not written yet). ResourceClaims: only a greater one is (assumed are the answers to writes).
 *
 * Owns:       the decoded messages, each in an arena of its own.
 * Invariants: version[kind] changes with every put, delete, assume and restore of the kind: results
 *             that depend on the kind use it as their epoch. Each of these changes is in the log
 *             as well, for readers that follow single objects.
 * Runs in:    the engine's thread.
 * Fails with: -EINVAL, -E2BIG for messages that do not decode.
 * Upstream:   client-go listers; pkg/scheduler/util/assumecache and
 *             plugins/volumebinding/passive_assume_cache.go; differences: one set of assumed
 *             volumes for all profiles (upstream: each profile its own, so that two may take one).
 */
#ifndef BH_OBJECTS_H
#define BH_OBJECTS_H

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/data/json.h"
#include "common/k8s/kinds.h"

struct bh_assumed { /* a version in memory of its own */
    struct bh_arena arena;
    ProtobufCMessage *msg;
};
struct bh_object {
    struct bh_arena arena;
    char *ns, *name;
    ProtobufCMessage *msg;         /* what counts: the assumed version while there is one */
    ProtobufCMessage *told;        /* as the API server told it last; NULL: not yet */
    struct bh_assumed *assumed;    /* NULL: nothing is */
    const struct bh_json *json;    /* of kinds that plugins read: the whole; in arena */
    void *derived;                 /* what a plugin made of told, in arena; NULL = nothing yet */
    uint64_t feed;                 /* of struct bh_objects when it was last put */
    uint64_t pos;                  /* of its last change in the change log */
    struct bh_object *prev, *next; /* of the same kind, the last changed first */
};
#define BH_OBJECT_LOG 65536u /* changes that the ring holds */
struct bh_object_entry {
    enum bh_kind kind;
    uint64_t key; /* bh_object_key(); two objects may share one, so it only says what to look at */
};
struct bh_objects {
    struct bh_map by_name[BH_KIND_ALL]; /* "ns/name" -> struct bh_object * */
    struct bh_object *first[BH_KIND_ALL];
    uint64_t version[BH_KIND_ALL];
    /* Bits 1 << kind: of those that plugins read what is not known as a whole, and why ("" = not yet). */
    uint64_t unknown;
    char why_unknown[BH_PLUGIN_KINDS][160]; /* by bh_plugin_kind_index() */
    /* A reader at position p has seen every change before p. One that is behind log_begin starts
     * anew. */
    struct bh_object_entry *log;
    uint64_t log_begin, log_end;
    uint64_t feed; /* raised when everything is told anew */
};
void bh_objects_fini(struct bh_objects *o);
/* p NULL deletes, whatever is assumed. */
int bh_objects_put(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                   const void *p, size_t n, struct bh_err *err);
/* The same, and hands out the object that was there before (NULL: none), to be freed. */
int bh_objects_replace(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                       const void *p, size_t n, struct bh_object **ret_old, struct bh_err *err);
void bh_object_free(struct bh_object *ob);
/* Deletes what was not put since feed was raised. */
void bh_objects_sweep(struct bh_objects *o);
const struct bh_object *bh_objects_find(const struct bh_objects *o, enum bh_kind kind,
                                        const char *ns, const char *name);
/* What counts. */
const ProtobufCMessage *bh_objects_get(const struct bh_objects *o, enum bh_kind kind,
                                       const char *ns, const char *name);
/* What the API server told; NULL: nothing. */
const ProtobufCMessage *bh_objects_told(const struct bh_objects *o, enum bh_kind kind,
                                        const char *ns, const char *name);
/* From now on m, which is copied, counts for the object of its namespace and name. -ENOENT: not
 * known, and not just created (create); -ESTALE: the API server tells another version than m was
 * made of (ResourceClaims: a newer one). */
int bh_objects_assume(struct bh_objects *o, enum bh_kind kind, const ProtobufCMessage *m,
                      bool create, struct bh_err *err);
/* What the API server told counts again, if what is assumed has this resourceVersion. */
void bh_objects_restore(struct bh_objects *o, enum bh_kind kind, const char *ns, const char *name,
                        const char *resource_version);
uint64_t bh_object_key(const char *ns, const char *name);
/* The change at a position from log_begin to below log_end. */
static inline const struct bh_object_entry *bh_objects_change(const struct bh_objects *o,
                                                              uint64_t pos)
{
    return &o->log[pos % BH_OBJECT_LOG];
}
#define bh_objects_each(obj, o, kind)                                                              \
    for (const struct bh_object *obj = (o)->first[kind]; obj; obj = obj->next)
#endif
