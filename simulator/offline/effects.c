/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/effects.c - what binders and controllers would do, in the engine alone
 */
#include "simulator/offline/offline.h"

#include "common/data/json.h"
#include "common/k8s/codec.h"

/* Volumes and claims changed, and not by an object: pods that wait for any are asked. */
static void tell_claims(struct bh_offline *w, const struct bh_shape_rec *shape)
{
    static const enum bh_kind kinds[] = {BH_KIND_PERSISTENTVOLUMECLAIM, BH_KIND_PERSISTENTVOLUME,
                                         BH_KIND_RESOURCECLAIM};

    if (!shape->volumes.n && !shape->claims.n && !shape->extended.n)
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        const struct bh_cluster_event ev = {
            .resource = BH_EV_OBJECT, .kind = kinds[i], .action = BH_EV_UPDATE};
        bh_offline_event(w, &ev);
    }
}

void bh_offline_bind(struct bh_offline *w, const struct bh_pending *p, bh_sym node)
{
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(p->pod, p->pod->h.size);
    bh_shape_id id = p->shape; /* the engine has a reference, too */
    struct bh_str uid = bh_rec_text(pod, pod->uid);

    bh_engine_prebind_commit(w->engine, uid);
    pod->node = node;
    pod->start_ns = w->now_ns;
    if (w->queue)
        bh_queue_done(w->queue, bh_queue_pod(w->queue, uid));
    bh_engine_put_pod(w->engine, pod, id);
    const struct bh_shape_rec *shape = bh_engine_shape_rec(w->engine, id);
    const struct bh_cluster_event ev = {
        .resource = BH_EV_POD_ASSIGNED, .action = BH_EV_ADD, .new_pod = pod, .new_shape = shape};
    bh_offline_event(w, &ev);
    tell_claims(w, shape);
}

/* ---- devices -----------------------------------------------------------------------------------
 * Upstream: pkg/controller/resourceclaim
 */

static void release(struct bh_offline *w, const char *ns, bh_sym claim, const char *uid)
{
    const char *name = bh_sym_text(bh_engine_symtab(w->engine), claim);
    const ProtobufCMessage *m =
        claim == BH_SYM_NONE ? NULL
                             : bh_engine_get_object(w->engine, BH_KIND_RESOURCECLAIM, ns, name);
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (!m)
        return;
    struct bh_json *o = bh_pb_to_json(&a, m), *st = bh_json_get(o, "status");
    struct bh_json *list = bh_json_get(st, "reservedFor");
    for (struct bh_json *c = list ? list->c.first : NULL, *next; c; c = next) {
        const char *u = bh_json_get_str(c, "uid");
        next = c->next;
        if (u && bh_streq(u, uid))
            bh_json_remove(list, c);
    }
    if (!list || !list->c.n)
        bh_json_drop(st, "allocation devices reservedFor");
    (void)bh_offline_put_tree(w, &a, &bh_kinds[BH_KIND_RESOURCECLAIM], o, NULL);
}

/* ---- victims --------------------------------------------------------------------------------- */

void bh_offline_evict(struct bh_offline *w, struct bh_str uid)
{
    bh_shape_id id = 0;
    const struct bh_pod_rec *known = bh_engine_find_pod(w->engine, uid, &id);

    if (!known)
        return;
    const struct bh_shape_rec *rec = bh_engine_shape_rec(w->engine, id);
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(known, known->h.size);
    BH_CLEANUP(bh_freep) struct bh_shape_rec *shape = bh_memdup(rec, rec->h.size);
    const struct bh_pod_claim *c = bh_rec_at(shape, shape->claims, struct bh_pod_claim);
    const struct bh_claim_status *st = bh_rec_at(pod, pod->claim_statuses, struct bh_claim_status);
    const char *ns = bh_rec_text(pod, pod->namespace_).p, *own = bh_rec_text(pod, pod->uid).p;
    bh_offline_del(w, BH_KIND_POD, "", own);
    for (uint32_t i = 0; i < shape->claims.n; i++)
        release(w, ns, c[i].claim, own);
    for (uint32_t i = 0; i < pod->claim_statuses.n; i++)
        release(w, ns, st[i].claim, own);
    tell_claims(w, shape);
}
