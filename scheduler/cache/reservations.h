/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/reservations.h - what Reserve took for pods that are not bound yet
 *
 * A pod's reservation lists what has to be written for it (write.h). Assumed
 * versions of volumes and their claims stand in the object store, ResourceClaims whose allocation
 * is not written yet here: they are in flight, their devices count as allocated, and no other pod
 * may use them until the allocation is visible. Members of a group that are tried in the same cycle
 * share them: each of them may be the one that writes the allocation.
 *
 * Owns:       the reservations and the claims in flight.
 * Invariants: version changes whenever the set of claims in flight does; a flight ends with the first
 *             write that is done, or with the last reservation that shares it.
 * Runs in:    the engine's thread.
 * Upstream:   the cycle state of the volumebinding and dynamicresources plugins; dra_manager.go
 *             (inFlightAllocations).
 */
#ifndef BH_RESERVATIONS_H
#define BH_RESERVATIONS_H

#include "common/base/arena.h"
#include "common/base/map.h"
#include "common/base/symtab.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cache/write.h"

struct bh_reserved {                 /* one write and what became of it */
    const ProtobufCMessage *written; /* the API server's answer, NULL: not written */
    const char *in_flight;           /* the key of the claim whose flight the write ends, or NULL */
    uint64_t flight;                 /* which of the claim's flights */
};
struct bh_reservation {
    struct bh_arena arena;
    struct bh_str uid; /* of the pod */
    bh_sym node;
    struct bh_write *v;
    struct bh_reserved *state; /* by index into v */
    uint32_t n, cap;
};
struct bh_in_flight {
    const K8s__ResourceClaim *claim; /* with its allocation */
    uint64_t id, serial;             /* serial changes with claim; none is ever used again */
    uint32_t sharers;                /* reservations */
    struct bh_arena arena;           /* claim, once it is shared; before it is in the reservation */
};
struct bh_reservations {
    struct bh_map by_pod;    /* uid -> struct bh_reservation * */
    struct bh_map in_flight; /* uid of the claim -> struct bh_in_flight * */
    uint64_t version, serial;
    uint64_t group_id; /* flights from this id on belong to the group cycle in progress; 0: none */
};
void bh_reservations_fini(struct bh_reservations *r);
struct bh_reservation *bh_reservation_of(const struct bh_reservations *r, struct bh_str uid);
/* The pod's reservation; made when there is none. */
struct bh_reservation *bh_reservation_for(struct bh_reservations *r, struct bh_str uid,
                                          bh_sym node);
/* A write of the object, which is as it shall be but for its metadata's version. */
struct bh_write bh_write_of(enum bh_write_what what, enum bh_kind kind, const ProtobufCMessage *m);
/* w's object and texts live as long as the reservation (its arena). */
void bh_reservation_add(struct bh_reservation *v, const struct bh_write *w);
/* The last write that was added puts the claim in flight, until it is done; key and claim live as long
 * as v. Of a claim in flight (the same group cycle's): v shares it. */
void bh_reservation_fly(struct bh_reservations *r, struct bh_reservation *v, const char *key,
                        const K8s__ResourceClaim *claim);
/* Write i is done: its claim's allocation is visible, also for others that would have written it. */
void bh_reservation_land(struct bh_reservations *r, struct bh_reservation *v, uint32_t i);
/* Everything of the pod, its claims in flight too, unless others share them. */
void bh_reservation_drop(struct bh_reservations *r, struct bh_str uid);

static inline const struct bh_in_flight *bh_in_flight_of(const struct bh_reservations *r,
                                                         const char *key)
{
    return r->in_flight.len ? bh_map_get(&r->in_flight, key, strlen(key)) : NULL;
}
/* May the pod that is being tried use it? */
static inline bool bh_in_flight_is_shared(const struct bh_reservations *r,
                                          const struct bh_in_flight *f)
{
    return r->group_id && f->id >= r->group_id;
}
#endif
