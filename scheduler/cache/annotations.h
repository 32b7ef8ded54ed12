/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/annotations.h - annotations of nodes and pods, for the plugins that ask for them
 *
 * Records leave them out: kubelets, controllers and people write a lot there that no decision looks at.
 * They come with the whole objects that the watcher sends besides; nothing is kept unless `wanted` says so.
 *
 * Owns:       one block an object that has some.
 * Invariants: a node whose annotations have changed is a changed row, whatever its record says.
 * Runs in:    the engine's thread.
 */
#ifndef BH_CACHE_ANNOTATIONS_H
#define BH_CACHE_ANNOTATIONS_H

#include "common/base/map.h"
#include "common/k8s/kinds.h"

enum bh_annotations_of { BH_ANNOTATIONS_NODES = 1, BH_ANNOTATIONS_PODS = 2 };
struct bh_annotations {
    unsigned wanted;     /* bits of enum bh_annotations_of; set before anything is put */
    struct bh_map of[2]; /* nodes by name, pods by uid */
    uint64_t feed;       /* raised when everything is told anew */
};
void bh_annotations_fini(struct bh_annotations *a);
/* meta NULL: the object is gone. True: they are others than before. */
bool bh_annotations_put(struct bh_annotations *a, enum bh_annotations_of of, struct bh_str key,
                        const struct K8s__ObjectMeta *meta);
/* The object has been told, with or without any. */
bool bh_annotations_known(const struct bh_annotations *a, enum bh_annotations_of of,
                          struct bh_str key);
/* Drops what was not put since feed was raised. */
void bh_annotations_sweep(struct bh_annotations *a);
/* p NULL: there is no such annotation. Lives until the next change. */
struct bh_str bh_annotations_get(const struct bh_annotations *a, enum bh_annotations_of of,
                                 struct bh_str key, struct bh_str name);
#endif
