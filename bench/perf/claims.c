/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/claims.c - claims that are allocated without a pod, for allocResourceClaims
 */
#include <errno.h>

#include "bench/perf/engine.h"
#include "common/k8s/codec.h"

/* A pod that exists nowhere asks for the claim; what it gets stays when it is gone. */
static int stand_in(struct bh_offline *w, struct bh_arena *a, const char *ns, const char *claim,
                    struct bh_pending *ret, struct bh_err *err)
{
    const char *text = bh_arena_printf(
        a,
        "{\"metadata\":{\"name\":\"allocate\",\"namespace\":\"%s\",\"uid\":\"allocate\"},"
        "\"spec\":{\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"claims\":[{\"name\":\"c\"}]}}],\"tolerations\":[{\"operator\":"
        "\"Exists\"}],\"resourceClaims\":[{\"name\":\"c\",\"resourceClaimName\":\"%s\"}]}}",
        ns, claim);
    struct bh_offline_object x;
    struct bh_json *tree;
    int rc = bh_json_parse(a, text, strlen(text), 0, &tree, err);

    if (rc >= 0)
        rc = bh_offline_read(w->engine, a, &bh_kinds[BH_KIND_POD], tree, &x, err);
    if (rc < 0)
        return rc;
    *ret = (struct bh_pending){.pod = x.pod, .shape = bh_engine_shape(w->engine, x.shape)};
    x.pod->shape = ret->shape;
    return 0;
}

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
    struct bh_pending p;
    int rc = stand_in(w, a, ns, claim, &p, err);

    if (rc < 0)
        return rc;
    rc = decide(w, a, &p, err);
    bh_engine_shape_unref(w->engine, p.shape);
    if (rc < 0)
        return rc;
    const ProtobufCMessage *m = bh_engine_get_object(w->engine, BH_KIND_RESOURCECLAIM, ns, claim);
    *ret_allocation = m ? bh_json_path(bh_pb_to_json(a, m), "status.allocation") : NULL;
    return *ret_allocation ? 0 : bh_err_set(err, -ENOSPC, "it got no allocation");
}
