/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/volumes.h - which volumes a waiting claim has to look at
 *
 * Most volumes are some other claim's. Those that are no claim's are filed under their class, the
 * others under the claim they are for, and the files follow the objects' change log.
 *
 * Owns:       the files, not the objects.
 * Invariants: after bh_volumes_sync() every volume is in the one list where it belongs.
 * Memory:     the heap, by volumes.
 * Runs in:    the engine's thread.
 */
#ifndef BH_VOLUMES_H
#define BH_VOLUMES_H

#include "scheduler/plugins/volumebinding/storage.h"

struct bh_filed_volume {
    const struct bh_object *object; /* NULL: the place is free */
    uint64_t key;                   /* of the objects' change log */
    uint64_t list;                  /* a class's or a claim's */
    uint32_t next, prev;            /* in the list; UINT32_MAX ends */
    uint32_t next_key;              /* others of the same key, or the next free place */
};
struct bh_volumes {
    bool started;
    uint64_t pos; /* in the objects' change log: changes before this are in */
    struct bh_filed_volume *v;
    uint32_t n, cap, free;
    struct bh_umap by_key, by_list; /* -> first index of v[] */
};
void bh_volumes_fini(struct bh_volumes *x);
void bh_volumes_sync(struct bh_volumes *x, const struct bh_objects *o);
/* First and next volume of a list, NULL at its end; also some that do not belong there: lists are
 * told apart by hashes only. *at: begins with one of the first two. */
uint32_t bh_volumes_of_class(const struct bh_volumes *x, const char *class);
uint32_t bh_volumes_of_claim(const struct bh_volumes *x, const K8s__PersistentVolumeClaim *claim);
static inline const struct bh_object *bh_volumes_next(const struct bh_volumes *x, uint32_t *at)
{
    uint32_t i = *at;

    if (i == UINT32_MAX)
        return NULL;
    *at = x->v[i].next;
    return x->v[i].object;
}
#endif
