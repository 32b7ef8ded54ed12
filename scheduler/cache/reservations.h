/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/reservations.h - what Reserve took for pods that are not bound yet
 *
 * A pod's reservation lists what has to be written for it (write.h). Assumed
 * versions of volumes and their claims stand in the object store, ResourceClaims whose allocation
 * is not written yet here: they are in flight, their devices count as allocated, and no other pod
 * may use them until the allocation is visible.
 *
 * Owns:       the reservations; a claim in flight is part of one.
 * Invariants: version changes whenever the set of claims in flight does.
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
    const char *in_flight;           /* the key of the claim that the write ends, or NULL */
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
    uint64_t serial;                 /* no two that were ever in flight have the same */
};
struct bh_reservations {
    struct bh_map by_pod;    /* uid -> struct bh_reservation * */
    struct bh_map in_flight; /* uid of the claim -> struct bh_in_flight * */
    uint64_t version, serial;
};
void bh_reservations_fini(struct bh_reservations *r);
struct bh_reservation *bh_reservation_of(const struct bh_reservations *r, struct bh_str uid);
/* The pod's reservation; made when there is none. */
struct bh_reservation *bh_reservation_for(struct bh_reservations *r, struct bh_str uid,
                                          bh_sym node);
/* A write of the object, which is as it shall be but for its metadata's version. */
struct bh_write bh_write_of(enum bh_write_what what, enum bh_kind kind, const ProtobufCMessage *m);
/* w's object and texts live as long as the reservation (its arena). in_flight: key of the claim
 * that is in flight until the write is done, NULL = none. */
void bh_reservation_add(struct bh_reservation *v, const struct bh_write *w, const char *in_flight);
/* Everything of the pod, its claims in flight too. */
void bh_reservation_drop(struct bh_reservations *r, struct bh_str uid);

/* claim: in the pod's reservation. */
void bh_in_flight_add(struct bh_reservations *r, const char *key, const K8s__ResourceClaim *claim);
void bh_in_flight_del(struct bh_reservations *r, const char *key);
static inline const K8s__ResourceClaim *bh_in_flight_of(const struct bh_reservations *r,
                                                        const char *key)
{
    const struct bh_in_flight *f =
        r->in_flight.len ? bh_map_get(&r->in_flight, key, strlen(key)) : NULL;

    return f ? f->claim : NULL;
}
#endif
