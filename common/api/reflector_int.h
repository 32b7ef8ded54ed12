/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/reflector_int.h - what a reflector has delivered, and what an incoming object means
 *
 *   reflector.c        LIST and WATCH: requests, waiting, recovery
 *   reflector_store.c  the set of delivered (namespace/name, uid, version)
 */
#ifndef BH_REFLECTOR_INT_H
#define BH_REFLECTOR_INT_H

#include "common/api/reflector.h"

/* A hash table of its own: there is one item for each object of the cluster, so each byte counts
 * (about 75 for a pod). */
struct bh_refl_item;
struct bh_refl_store {
    struct bh_refl_item **bucket; /* chains; by "namespace/name" */
    size_t n_buckets, len;        /* a power of two, or 0 */
    uint64_t seed;
    uint32_t mark; /* of the running list */
};
struct bh_refl_key {
    const char *ns, *name, *uid, *rv;
};
enum bh_refl_verdict {
    BH_REFL_NEW,      /* not known: ADDED */
    BH_REFL_CHANGED,  /* same uid, another version: MODIFIED */
    BH_REFL_REPLACED, /* another uid under this name: gone, then ADDED */
    BH_REFL_SAME,     /* delivered before, or older than what was */
    BH_REFL_INVALID   /* name too long */
};
/* -1, 0, 1 when both are decimal numbers, else 0 for equal and 1 (later) for different. */
int bh_refl_rv_cmp(const char *a, const char *b);
/* What an object that exists means; marks it as seen. from_list: versions may go back (relist). */
enum bh_refl_verdict bh_refl_store_put(struct bh_refl_store *s, const struct bh_refl_key *k,
                                       bool from_list, char **ret_old_uid);
/* What the deletion of an object means. True: one of that name was known, with *ret_uid (the
 * caller frees it), and is forgotten. */
bool bh_refl_store_del(struct bh_refl_store *s, const struct bh_refl_key *k, char **ret_uid);
void bh_refl_store_begin_list(struct bh_refl_store *s);
/* Calls gone() for each item that the list did not have, and forgets it. */
void bh_refl_store_sweep(struct bh_refl_store *s, void (*gone)(void *, const struct bh_refl_key *),
                         void *arg);
void bh_refl_store_fini(struct bh_refl_store *s);

/* Where no server listens an attempt is cheap, and its return shall be noticed soon: waits of at most 4 s.
 * A server that answers badly is given the full back-off, which these attempts do not lengthen: one that
 * has just come back answers badly first. */
uint64_t bh_refl_unreached_ns(struct bh_backoff *b);
#endif
