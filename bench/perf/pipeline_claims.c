/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench_pipeline_claims.c - allocResourceClaims against an API server
 *
 * Upstream's driver allocates with the scheduler's own allocator and writes the result. So does
 * this: an engine in this process gets a copy of the cluster's nodes, device classes, slices and
 * claims.
 */
#include <errno.h>

#include "cli/bench_engine.h"
#include "cli/bench_pipeline.h"
#include "simulator/admission/tree.h"

static bool set_status(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_set(a, obj, "status", bh_json_clone(a, arg));
    return true;
}

static int copy_object(struct bh_world *copy, const struct bh_sim_type *t, struct bh_arena *a,
                       struct bh_json *o, struct bh_err *err)
{
    static const char *const drawn[] = {"uid", "resourceVersion", "creationTimestamp", "generation",
                                        "managedFields"};
    struct bh_json *meta = bh_json_get(o, "metadata"), *status = bh_json_get(o, "status");
    const char *ns = bh_json_get_text(meta, "namespace"), *name = bh_json_get_text(meta, "name");
    struct bh_sim_error e = {0};

    for (size_t i = 0; i < BH_ARRAY_LEN(drawn); i++)
        bh_json_unset(meta, drawn[i]);
    status = status ? bh_json_clone(a, status) : NULL;
    int code = bh_sim_create(copy->sim, t, ns, a, o, NULL, &e);
    if (!code && status && bh_streq(t->kind, "ResourceClaim"))
        code =
            bh_sim_edit(copy->sim, t, ns, name, NULL, BH_SIM_STATUS, set_status, status, NULL, &e);
    return code && code != 409 ? bh_err_set(err, -EINVAL, "%s", e.message) : 0;
}

static int copy_kind(struct bh_bench_world *w, struct bh_world *copy, const struct bh_sim_type *t,
                     struct bh_err *err)
{
    struct bh_buf path = {0}, body = {0};
    struct bh_json *tree;
    struct bh_arena a;
    int code;

    bh_arena_init(&a, 0);
    bh_bench_path(&path, t, NULL, NULL, NULL);
    const struct bh_bench_request q = {.method = "GET", .path = bh_buf_str(&path)};
    int rc = bh_bench_ask(w, &q, &code, &body, err);
    if (rc >= 0 && code != 200)
        rc = bh_bench_refused(&q, code, (struct bh_str){body.p, body.n}, err);
    if (rc >= 0)
        rc = bh_json_parse(&a, body.p, body.n, 0, &tree, err);
    bh_json_each (o, rc >= 0 ? bh_json_get_list(tree, "items") : NULL) {
        if (rc >= 0)
            rc = copy_object(copy, t, &a, o, err);
    }
    bh_arena_fini(&a);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
    return rc;
}

static int make_copy(struct bh_bench_world *w, struct bh_err *err)
{
    static const struct {
        const char *group, *plural;
    } kinds[] = {{"", "namespaces"},
                 {"", "nodes"},
                 {"resource.k8s.io", "deviceclasses"},
                 {"resource.k8s.io", "resourceslices"},
                 {"resource.k8s.io", "resourceclaims"}};
    struct bh_bench_pipeline *p = w->d;
    const struct bh_world_options o = {
        .config = p->setup.config, .seed = w->o->seed, .start_ns = bh_wall_ns()};

    p->copy = bh_calloc(1, sizeof *p->copy);
    int rc = bh_world_init(p->copy, &o, err);
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds) && rc >= 0; i++)
        rc = copy_kind(w, p->copy, bh_sim_type_find(kinds[i].group, "v1", kinds[i].plural), err);
    return rc < 0 ? rc : bh_world_settle(p->copy, err);
}

void bh_bench_pipeline_forget_copy(struct bh_bench_pipeline *p)
{
    if (p->copy)
        bh_world_fini(p->copy);
    free(p->copy);
    p->copy = NULL;
}

/* What the copy gave, into the copy's store and the server's. */
static int write_status(struct bh_bench_world *w, const char *ns, const char *claim,
                        struct bh_json *allocation, struct bh_arena *a, struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    const struct bh_bench_pipeline *p = w->d;
    struct bh_json *patch = bh_json_new(a, BH_JSON_OBJECT), *status;
    struct bh_buf path = {0}, body = {0};
    struct bh_sim_error e = {0};

    status = bh_json_obj_at(a, patch, "status");
    bh_json_set(a, status, "allocation", bh_json_clone(a, allocation));
    if (bh_sim_edit(p->copy->sim, t, ns, claim, NULL, BH_SIM_STATUS, set_status, status, NULL, &e))
        return bh_err_set(err, -EINVAL, "%s", e.message);
    int rc = bh_world_settle(p->copy, err);
    bh_json_write(&body, patch);
    bh_bench_path(&path, t, ns, claim, "status");
    const struct bh_bench_request q = {.method = "PATCH",
                                       .path = bh_buf_str(&path),
                                       .content_type = "application/merge-patch+json",
                                       .body = {body.p, body.n}};
    if (rc >= 0)
        rc = bh_bench_send(w, &q, err);
    bh_buf_fini(&path);
    bh_buf_fini(&body);
    return rc;
}

int bh_bench_pipeline_allocate(struct bh_bench_world *w, const char *ns, const char *claim,
                               struct bh_err *err)
{
    const struct bh_bench_pipeline *p = w->d;
    struct bh_json *allocation;
    struct bh_arena a;
    int rc = p->copy ? 0 : make_copy(w, err);

    bh_arena_init(&a, 0);
    if (rc >= 0)
        rc = bh_bench_allocate(p->copy, &a, ns, claim, &allocation, err);
    if (rc >= 0)
        rc = write_status(w, ns, claim, allocation, &a, err);
    bh_arena_fini(&a);
    return rc;
}
