/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/claims.c - claims that are allocated without a pod, for allocResourceClaims
 *
 * Upstream's driver allocates with the scheduler's own allocator and writes the result. So does
 * this: in engine mode with the cluster's engine, in pipeline mode with one in this process that
 * gets a copy of the cluster's nodes, device classes, slices and claims.
 */
#include <errno.h>

#include "bench/perf/engine.h"
#include "bench/perf/pipeline.h"

/* What the engine keeps for the stand-in. */
static int decide(struct bh_offline *w, struct bh_arena *a, const struct bh_pending *p,
                  struct bh_err *err)
{
    const struct bh_decision *d = bh_engine_schedule(w->engine, p, BH_NO_PREEMPTION, w->now_ns);
    int rc = 0;

    if (d->kind != BH_DECIDED)
        return bh_err_set(err, -ENOSPC, "%s", d->message ? d->message : "no node has its devices");
    bh_sym node = d->node;
    (void)bh_engine_assume(w->engine, p, node);
    const struct bh_status *s = bh_engine_reserve(w->engine, p, node);
    if (s)
        rc = bh_err_set(err, -ENOSPC, "%s", bh_status_message(a, s));
    else
        bh_engine_prebind_commit(w->engine, BH_STR("allocate"));
    if (s)
        bh_engine_unreserve(w->engine, p, node);
    (void)bh_engine_forget(w->engine, BH_STR("allocate"));
    return rc;
}

int bh_bench_allocate(struct bh_offline *w, struct bh_arena *a, const char *ns, const char *claim,
                      struct bh_json **ret_allocation, struct bh_err *err)
{
    /* A pod that exists nowhere asks for the claim; what it gets stays when it is gone. */
    struct bh_json *stand_in = bh_json_make(
        a,
        "metadata: {name: allocate, namespace: %s, uid: allocate}, spec: {schedulerName: "
        "default-scheduler, containers: [{name: c, resources: {claims: [{name: c}]}}], "
        "tolerations: [{operator: Exists}], resourceClaims: [{name: c, resourceClaimName: %s}]}",
        ns, claim);
    struct bh_offline_object x;
    int rc = bh_offline_read(w->engine, a, &bh_kinds[BH_KIND_POD], stand_in, &x, err);

    if (rc < 0)
        return rc;
    const struct bh_pending p = {.pod = x.pod, .shape = bh_engine_shape(w->engine, x.shape)};
    x.pod->shape = p.shape;
    rc = decide(w, a, &p, err);
    bh_engine_shape_unref(w->engine, p.shape);
    if (rc < 0)
        return rc;
    const ProtobufCMessage *m = bh_engine_get_object(w->engine, BH_KIND_RESOURCECLAIM, ns, claim);
    *ret_allocation = m ? bh_json_path(bh_pb_to_json(a, m), "status.allocation") : NULL;
    return *ret_allocation ? 0 : bh_err_set(err, -ENOSPC, "it got no allocation");
}

/* ---- against an API server --------------------------------------------------------------------- */

static int copy_kind(struct bh_bench_world *w, struct bh_offline *copy, enum bh_kind kind,
                     struct bh_err *err)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_json *tree;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    bh_cluster_path(&path, bh_sim_type_of_kind(NULL, bh_kinds[kind].kind_name), NULL, NULL, NULL);
    const struct bh_bench_request q = {.method = "GET", .path = bh_buf_str(&path)};
    int rc = bh_bench_ask(w, &q, &a, &tree, err);
    bh_json_each(o, rc >= 0 ? bh_json_get_list(tree, "items") : NULL) {
        if (rc >= 0)
            rc = bh_offline_put_tree(copy, &a, &bh_kinds[kind], o, err);
    }
    return rc;
}

static int make_copy(struct bh_bench_world *w, struct bh_err *err)
{
    static const enum bh_kind kinds[] = {BH_KIND_NAMESPACE, BH_KIND_NODE, BH_KIND_DEVICECLASS,
                                         BH_KIND_RESOURCESLICE, BH_KIND_RESOURCECLAIM};
    struct bh_bench_pipeline *p = w->d;
    const struct bh_offline_options o = {
        .config = p->setup.config, .seed = w->o->seed, .no_queue = true, .now_ns = bh_wall_ns()};

    p->copy = bh_calloc(1, sizeof *p->copy);
    int rc = bh_offline_init(p->copy, &o, err);
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds) && rc >= 0; i++)
        rc = copy_kind(w, p->copy, kinds[i], err);
    return rc;
}

int bh_bench_pipeline_allocate(struct bh_bench_world *w, const char *ns, const char *claim,
                               struct bh_err *err)
{
    const struct bh_bench_pipeline *p = w->d;
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    struct bh_json *allocation;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, body BH_CLEANUP(bh_buf_fini) = {0};
    int rc = p->copy ? 0 : make_copy(w, err);

    if (rc >= 0)
        rc = bh_bench_allocate(p->copy, &a, ns, claim, &allocation, err);
    if (rc < 0)
        return rc;
    /* What the copy gave (and has kept) goes to the server. */
    bh_json_write(&body,
                  bh_json_make(&a, "status: {allocation: %p}", bh_json_clone(&a, allocation)));
    bh_cluster_path(&path, t, ns, claim, "status");
    const struct bh_bench_request q = {.method = "PATCH",
                                       .path = bh_buf_str(&path),
                                       .content_type = "application/merge-patch+json",
                                       .body = {body.p, body.n}};
    return bh_bench_send(w, &q, err);
}
