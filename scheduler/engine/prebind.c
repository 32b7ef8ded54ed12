/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/prebind.c - what Reserve took: the writes, their outcome, undoing, and standing
 * in for the API server and its controllers in simulations
 *
 * Upstream: PreBind of pkg/scheduler/framework/plugins/{volumebinding,dynamicresources}, split into
 *           writes that a binder does and checks of what came of them.
 */
#include <errno.h>
#include <inttypes.h>

#include "common/k8s/codec.h"
#include "scheduler/engine/state.h"
#include "scheduler/plugins/volumebinding/storage.h"

const struct bh_write *bh_engine_prebind_work(const struct bh_engine *e, struct bh_str uid,
                                              uint32_t *ret_n)
{
    const struct bh_reservation *r = bh_reservation_of(&e->reserved, uid);

    *ret_n = r ? r->n : 0;
    return r && r->n ? r->v : NULL;
}

int bh_engine_prebind_written(struct bh_engine *e, struct bh_str uid, uint32_t i,
                              const void *object, size_t n, struct bh_err *err)
{
    struct bh_reservation *r = bh_reservation_of(&e->reserved, uid);
    ProtobufCMessage *m;

    if (!r || i >= r->n)
        return bh_err_set(err, -ENOENT, "nothing is reserved for the pod");
    int rc = bh_pb_unpack(&r->arena, bh_kinds[r->v[i].kind].desc, object, n, &m, err);
    if (rc < 0)
        return rc;
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    if (!meta || !*meta->name)
        return bh_err_set(err, -EINVAL, "%s without name", bh_kinds[r->v[i].kind].kind_name);
    r->state[i].written = m;
    /* Unless a newer one is known. One that is not known at all was deleted before its answer came,
     * if it was not just created: it must not come back, it would never be deleted again. */
    if (r->v[i].kind == BH_KIND_RESOURCECLAIM)
        (void)bh_objects_assume(&e->objects, BH_KIND_RESOURCECLAIM, m,
                                r->v[i].what == BH_WRITE_NEW_CLAIM, NULL);
    bh_reservation_land(&e->reserved, r, i);
    return 0;
}

int bh_engine_learn(struct bh_engine *e, enum bh_kind kind, const void *object, size_t n,
                    bool created, struct bh_cluster_event *ev, struct bh_err *err)
{
    ProtobufCMessage *m;

    if (kind != BH_KIND_RESOURCECLAIM)
        return 0;
    bh_arena_reset(&e->aside);
    int rc = bh_pb_unpack(&e->aside, bh_kinds[kind].desc, object, n, &m, err);
    if (rc < 0)
        return rc;
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    const ProtobufCMessage *old =
        meta ? bh_objects_get(&e->objects, kind, meta->namespace_, meta->name) : NULL;
    const uint32_t changes = old ? bh_claim_changes((const void *)old, (const void *)m) : 0;
    if (bh_objects_assume(&e->objects, kind, m, created, NULL) == 0 && changes && ev)
        *ev =
            (struct bh_cluster_event){.resource = BH_EV_OBJECT,
                                      .kind = kind,
                                      .action = BH_EV_UPDATE,
                                      .object_namespace = bh_sym_internc(e->tab, meta->namespace_),
                                      .object_name = bh_sym_internc(e->tab, meta->name),
                                      .object_changes = changes};
    return 0;
}

uint64_t bh_engine_claims_version(const struct bh_engine *e)
{
    const uint64_t *v = e->objects.version;

    return v[BH_KIND_PERSISTENTVOLUME] + v[BH_KIND_PERSISTENTVOLUMECLAIM] +
           v[BH_KIND_RESOURCECLAIM];
}

enum bh_prebind_state bh_engine_prebind_check(struct bh_engine *e, const struct bh_pending *p,
                                              bh_sym node, int64_t since_ns, int64_t now_ns,
                                              const char **ret_text)
{
    struct bh_pod_info pod;
    struct bh_cycle cy;

    *ret_text = "";
    if (!bh_aside_cycle(e, p, &pod, &cy))
        return BH_PREBIND_READY;
    for (uint32_t i = 0; i < cy.fw->n_plugins; i++)
        cy.calls[i].now_ns = now_ns;
    const struct bh_status *s = bh_run_pre_bind(&cy, node, since_ns);
    if (!s)
        return BH_PREBIND_READY;
    if (bh_status_code(s) == BH_WAIT) {
        *ret_text = s->plugin;
        return BH_PREBIND_WAITS;
    }
    *ret_text = bh_status_message(&e->aside, s);
    return bh_status_rejected(s) ? BH_PREBIND_REFUSED : BH_PREBIND_FAILED;
}

const struct bh_write *bh_engine_undo_work(struct bh_engine *e, const struct bh_pending *p,
                                           uint32_t *ret_n)
{
    const struct bh_write *v = NULL;
    struct bh_pod_info pod;
    struct bh_cycle cy;

    *ret_n = 0;
    if (!bh_aside_cycle(e, p, &pod, &cy))
        return NULL;
    for (uint32_t i = 0; i < cy.fw->n_plugins; i++) {
        const struct bh_write *more = NULL;
        uint32_t n = cy.fw->plugins[i].plugin->undo_work
                         ? cy.fw->plugins[i].plugin->undo_work(&cy.calls[i], &more)
                         : 0;
        if (!n)
            continue;
        struct bh_write *all = bh_arena_new_array(&e->aside, struct bh_write, *ret_n + n);
        if (v)
            memcpy(all, v, *ret_n * sizeof *v);
        memcpy(all + *ret_n, more, n * sizeof *more);
        v = all;
        *ret_n += n;
    }
    return v;
}

/* ---- without an API server ------------------------------------------------------------------- */

static void put(struct bh_engine *e, enum bh_kind kind, const ProtobufCMessage *m)
{
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    struct bh_buf b = {0};

    bh_objects_restore(&e->objects, kind, meta->namespace_, meta->name, meta->resourceversion);
    bh_pb_pack(&b, m);
    (void)bh_engine_put_object(e, kind, meta->namespace_, meta->name, bh_buf_str(&b), b.n, NULL);
    bh_buf_fini(&b);
}

/* The volume controller's part: the claim gets the volume that names it. */
static void bind_claim(struct bh_engine *e, struct bh_arena *a, const K8s__PersistentVolume *v)
{
    const K8s__ObjectReference *ref = v->spec->claimref;
    const ProtobufCMessage *m =
        bh_objects_get(&e->objects, BH_KIND_PERSISTENTVOLUMECLAIM, ref->namespace_, ref->name);
    K8s__PersistentVolumeClaim *c = m ? (void *)bh_pb_copy(a, m) : NULL;

    if (!c || !c->spec)
        return;
    c->spec->volumename = v->metadata->name;
    bh_annotate(a, c->metadata, "pv.kubernetes.io/bind-completed", "yes");
    if (!c->status)
        c->status = bh_pb_new(a, &k8s__persistent_volume_claim_status__descriptor);
    c->status->phase = bh_arena_strdup(a, "Bound");
    put(e, BH_KIND_PERSISTENTVOLUMECLAIM, &c->base);
}

/* What a binder does that finds the claim allocated: another member of the group wrote the allocation,
 * or a reservation, since this pod's Reserve. The pod's own reference is the last of the list. */
static const ProtobufCMessage *add_consumer(const struct bh_engine *e, struct bh_arena *a,
                                            const struct bh_write *w)
{
    const K8s__ResourceClaim *want = (const void *)w->object;
    const K8s__ResourceClaim *now =
        (const void *)bh_objects_get(&e->objects, w->kind, w->namespace_, w->name);

    if (!now || !now->status || !now->status->allocation || !want->status->n_reservedfor)
        return w->object;
    K8s__ResourceClaim *c = (void *)bh_pb_copy(a, &now->base);
    K8s__ResourceClaimStatus *s = c->status;
    K8s__ResourceClaimConsumerReference *own =
        want->status->reservedfor[want->status->n_reservedfor - 1];
    K8s__ResourceClaimConsumerReference **v =
        bh_arena_new_array(a, K8s__ResourceClaimConsumerReference *, s->n_reservedfor + 1);
    for (size_t i = 0; i < s->n_reservedfor; i++) {
        v[i] = s->reservedfor[i];
        if (bh_streq(v[i]->uid, own->uid))
            return &c->base;
    }
    v[s->n_reservedfor++] = own;
    s->reservedfor = v;
    return &c->base;
}

void bh_engine_prebind_commit(struct bh_engine *e, struct bh_str uid)
{
    struct bh_reservation *r = bh_reservation_of(&e->reserved, uid);

    for (uint32_t i = 0; r && i < r->n; i++) {
        const struct bh_write *w = &r->v[i];
        if (w->what == BH_WRITE_VOLUME_CLAIM) {
            struct bh_arena *a = &r->arena;
            K8s__PersistentVolume *v = (void *)bh_pb_copy(a, w->object);
            if (!v->status)
                v->status = bh_pb_new(a, &k8s__persistent_volume_status__descriptor);
            v->status->phase = bh_arena_strdup(a, "Bound");
            bind_claim(e, a, v);
            put(e, BH_KIND_PERSISTENTVOLUME, &v->base);
        } else if (w->what == BH_WRITE_NEW_CLAIM) {
            /* The server's part: a name that no other pod's claim has. */
            K8s__ResourceClaim *c = (void *)bh_pb_copy(&r->arena, w->object);
            c->metadata->name =
                bh_arena_printf(&r->arena, "%s%05" PRIx64, c->metadata->generatename,
                                bh_hash(uid.p, uid.n, 0) & 0xfffff);
            c->metadata->uid = c->metadata->name;
            put(e, BH_KIND_RESOURCECLAIM, &c->base);
        } else if (w->what == BH_WRITE_ALLOCATION || w->what == BH_WRITE_RESERVATION) {
            put(e, w->kind, add_consumer(e, &r->arena, w));
        } else if (w->what != BH_WRITE_PATCH) {
            put(e, w->kind, w->object);
        }
    }
    bh_reservation_drop(&e->reserved, uid);
}
