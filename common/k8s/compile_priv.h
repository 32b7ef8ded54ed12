/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_priv.h - shared by the compile_*.c files
 */
#ifndef BH_COMPILE_PRIV_H
#define BH_COMPILE_PRIV_H

#include "common/k8s/compile.h"
#include "common/k8s/quantity.h"
#include "common/k8s/record_layout.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

struct bh_compiler {
    struct bh_arena *a;
    const struct bh_interner *in;
    struct bh_err *err;
    int rc; /* the first error: the amounts below do nothing any more */
    struct bh_rec_builder b;
};

bh_sym bh_compile_sym(struct bh_compiler *c, const char *s); /* NULL and "" give BH_SYM_NONE */
struct bh_slice bh_compile_syms(struct bh_compiler *c, char *const *texts, size_t n);
bool bh_is_sidecar(const K8s__Container *k); /* of an init container */
uint32_t bh_compile_effect(const char *s);
uint64_t bh_compile_version(const char *s); /* resourceVersion, 0 when it is no number */
int bh_compile_no_memory(struct bh_compiler *c, const char *what);
/* The finished record, or -E2BIG. Its first n bytes become the caller's, all but the head. */
int bh_compile_end(struct bh_compiler *c, const char *what, const struct bh_rec_head *head,
                   size_t n, void *ret_rec);

/* Appends a string map sorted by key symbol; of duplicates (on the wire) the last wins. */
int bh_compile_map(struct bh_compiler *c, K8s__StringEntry *const *map, size_t n,
                   struct bh_slice *ret);
/* Appends the terms of a node affinity into the shape at the front of the builder. */
void bh_compile_affinity(struct bh_compiler *c, const K8s__NodeAffinity *na);
/* Appends the volumes that plugins look at. */
int bh_compile_volumes(struct bh_compiler *c, const K8s__PodSpec *spec, struct bh_slice *ret);
/* Appends what a pod asks of devices. */
int bh_compile_claims(struct bh_compiler *c, const K8s__PodSpec *spec, struct bh_slice *ret_claims,
                      struct bh_slice *ret_extended);
/* Appends pod affinity terms and spread constraints likewise. */
void bh_compile_pod_terms(struct bh_compiler *c, const K8s__Pod *p);

/* ---- resource amounts: exact, before rounding ---- */
enum { BH_CPU, BH_MEMORY, BH_EPHEMERAL, BH_STD_RESOURCES };
struct bh_amount {
    bh_sym name;
    bool hugepages;
    bh_nano v;
};
struct bh_amounts {
    bh_nano std[BH_STD_RESOURCES];
    bool has[BH_STD_RESOURCES];
    struct bh_amount *scalars; /* arena */
    uint32_t n, cap;
};
/* Reads a ResourceList; names that are neither standard nor scalar are left out. path names the
 * list in errors. */
void bh_amounts_read(struct bh_compiler *c, struct bh_amounts *out, K8s__QuantityEntry *const *list,
                     size_t n, const char *path);
/* Sorted integers of the scalars. */
struct bh_slice bh_amounts_put(struct bh_compiler *c, const struct bh_amounts *x);
/* Integers of all that is named, sorted: also of the standard ones. */
struct bh_slice bh_amounts_put_all(struct bh_compiler *c, const struct bh_amounts *x);
struct bh_container_amounts {
    bool init, restartable;
    struct bh_amounts spec, effective;
};
/* What a pod's lists of amounts say, each read once. */
struct bh_pod_amounts {
    struct bh_container_amounts
        *containers; /* arena; regular ones, then init containers in order */
    size_t n, n_statuses;
    struct bh_container_status *statuses; /* by container name */
    struct bh_amounts pod_level;          /* the supported ones of spec.resources.requests */
    struct bh_amounts pod_effective;
    struct bh_amounts overhead;
    bool has_pod_level, has_pod_status, infeasible;
    bool has_status; /* of any container or of the pod: status says of resources what counts */
    bool limits;     /* limits are read where requests would be */
};
/* The three request vectors and the non-zero amounts, into the shape at the builder's front. *ret is
 * what they were made of. */
void bh_compile_requests(struct bh_compiler *c, const K8s__Pod *p, struct bh_pod_amounts *ret);
/* Appends what the spec says of each container, and the overhead. */
int bh_compile_containers(struct bh_compiler *c, const K8s__Pod *p, const struct bh_pod_amounts *pa,
                          struct bh_slice *ret_containers, struct bh_slice *ret_overhead);

static inline struct bh_shape_rec *bh_shape_of(struct bh_compiler *c)
{
    return (struct bh_shape_rec *)c->b.p; /* NULL only before anything was reserved */
}
#endif
