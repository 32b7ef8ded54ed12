/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/pipeline_claims.c - allocResourceClaims against an API server
 *
 * Upstream's driver allocates with the scheduler's own allocator and writes the result. So does
 * this: an engine in this process gets a copy of the cluster's nodes, device classes, slices and
 * claims.
 */
#include <errno.h>

#include "bench/perf/engine.h"
#include "bench/perf/pipeline.h"
#include "simulator/server/tree.h"

static int copy_kind(struct bh_bench_world *w, struct bh_offline *copy, enum bh_kind kind,
                     struct bh_err *err)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, body BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_json *tree;
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    int code;

    bh_arena_init(&a, 0);
    bh_cluster_path(&path, bh_sim_type_of_kind(NULL, bh_kinds[kind].kind_name), NULL, NULL, NULL);
    const struct bh_bench_request q = {.method = "GET", .path = bh_buf_str(&path)};
    int rc = bh_bench_ask(w, &q, &code, &body, err);
    if (rc >= 0 && code != 200)
        rc = bh_bench_refused(&q, code, (struct bh_str){body.p, body.n}, err);
    if (rc >= 0)
        rc = bh_json_parse(&a, body.p, body.n, 0, &tree, err);
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

void bh_bench_pipeline_forget_copy(struct bh_bench_pipeline *p)
{
    if (p->copy)
        bh_offline_fini(p->copy);
    free(p->copy);
    p->copy = NULL;
}

/* What the copy gave (and has kept) goes to the server. */
static int write_status(struct bh_bench_world *w, const char *ns, const char *claim,
                        struct bh_json *allocation, struct bh_arena *a, struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    struct bh_json *patch = bh_json_new(a, BH_JSON_OBJECT), *status;
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0}, body BH_CLEANUP(bh_buf_fini) = {0};

    status = bh_json_obj_at(a, patch, "status");
    bh_json_set(a, status, "allocation", bh_json_clone(a, allocation));
    bh_json_write(&body, patch);
    bh_cluster_path(&path, t, ns, claim, "status");
    const struct bh_bench_request q = {.method = "PATCH",
                                       .path = bh_buf_str(&path),
                                       .content_type = "application/merge-patch+json",
                                       .body = {body.p, body.n}};
    return bh_bench_send(w, &q, err);
}

int bh_bench_pipeline_allocate(struct bh_bench_world *w, const char *ns, const char *claim,
                               struct bh_err *err)
{
    const struct bh_bench_pipeline *p = w->d;
    struct bh_json *allocation;
    struct bh_arena a BH_CLEANUP(bh_arena_fini);
    int rc = p->copy ? 0 : make_copy(w, err);

    bh_arena_init(&a, 0);
    if (rc >= 0)
        rc = bh_bench_allocate(p->copy, &a, ns, claim, &allocation, err);
    if (rc >= 0)
        rc = write_status(w, ns, claim, allocation, &a, err);
    return rc;
}
