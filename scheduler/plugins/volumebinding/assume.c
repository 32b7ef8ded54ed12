/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/assume.c - Reserve, Unreserve and PreBind's checks
 *
 * Reserve chooses anew: what a Filter found on the node is what it finds again, because nothing
 * changed since. Chosen volumes are assumed to be their claims', claims to be provisioned to have
 * their node. The writes go into the pod's reservation.
 *
 * Upstream: pkg/scheduler/framework/plugins/volumebinding/binder.go (AssumePodVolumes,
 *           RevertAssumedPodVolumes, BindPodVolumes), component-helpers/storage/volume
 *           (GetBindVolumeToClaim); differences: where the claim turns out to have another volume than
 *           the one chosen for it, that one has to reach the node, as with provisioned ones (upstream
 *           binds the pod all the same).
 */
#include "common/k8s/codec.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/volumebinding/binder.h"

BH_STATUS_CONST(waits, BH_WAIT, "VolumeBinding", "volumes are not bound yet");

static const struct bh_binder *binder(const struct bh_call *c)
{
    return c->args;
}

static const struct bh_status *failed(struct bh_call *c, const char *text)
{
    return bh_status_new(c->arena, BH_ERROR, "VolumeBinding", "%s", text);
}

/* The volume as the claim's. *ret_same: it needs no change. */
static K8s__PersistentVolume *bind_volume(struct bh_arena *a, const K8s__PersistentVolume *v,
                                          const K8s__PersistentVolumeClaim *claim, bool *ret_same)
{
    K8s__PersistentVolume *copy = (void *)bh_pb_copy(a, &v->base);
    const K8s__ObjectMeta *m = claim->metadata;

    *ret_same = v->spec->claimref && bh_streq(v->spec->claimref->name, m->name) &&
                bh_streq(v->spec->claimref->namespace_, m->namespace_) &&
                bh_streq(v->spec->claimref->uid, m->uid);
    if (!*ret_same) {
        K8s__ObjectReference *r = bh_pb_new(a, &k8s__object_reference__descriptor);
        r->kind = bh_arena_strdup(a, "PersistentVolumeClaim");
        r->apiversion = bh_arena_strdup(a, "v1");
        r->namespace_ = bh_arena_strdup(a, m->namespace_);
        r->name = bh_arena_strdup(a, m->name);
        r->uid = bh_arena_strdup(a, m->uid);
        r->resourceversion = bh_arena_strdup(a, m->resourceversion);
        copy->spec->claimref = r;
    }
    if (!bh_volume_is_for(v, claim) && !bh_meta_annotation(v->metadata, BH_BOUND_BY_BINDER)) {
        bh_annotate(a, copy->metadata, BH_BOUND_BY_BINDER, "yes");
        *ret_same = false;
    }
    return copy;
}

/* Lists the write. false: the object needs no change. */
static bool choose(struct bh_call *c, struct bh_reservation *r, const struct bh_waiting_claim *w,
                   const struct bh_offer *o)
{
    struct bh_write write;
    bool same = false;

    if (o) {
        K8s__PersistentVolume *v = bind_volume(&r->arena, o->volume, w->claim, &same);
        write = bh_write_of(BH_WRITE_VOLUME_CLAIM, BH_KIND_PERSISTENTVOLUME, &v->base);
    } else {
        K8s__PersistentVolumeClaim *copy = (void *)bh_pb_copy(&r->arena, &w->claim->base);
        bh_annotate(&r->arena, copy->metadata, BH_SELECTED_NODE, bh_sym_text(c->tab, r->node));
        write = bh_write_of(BH_WRITE_SELECTED_NODE, BH_KIND_PERSISTENTVOLUMECLAIM, &copy->base);
    }
    bh_reservation_add(r, &write);
    return !same;
}

/* Volumes first, then claims to be provisioned: the order of upstream's writes. Everything is
 * copied before anything is assumed, because assuming frees what p points at. */
static const struct bh_status *assume_writes(struct bh_call *c, const struct bh_pod_claims *p,
                                             const struct bh_offer *const *match, bh_sym node)
{
    struct bh_str uid = bh_rec_uid(c->pod->rec);
    struct bh_reservation *r = bh_reservation_for(binder(c)->reserved, uid, node);
    bool *changes = bh_arena_new_array(c->arena, bool, p->n_waiting);
    uint32_t first = r->n, n = 0;
    struct bh_err err = {{0}};

    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < p->n_waiting; i++)
            if ((match[i] != NULL) == (pass == 0))
                changes[n++] = choose(c, r, &p->waiting[i], match[i]);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_write *w = &r->v[first + i];
        if (!changes[i] ||
            bh_objects_assume(binder(c)->objects, w->kind, w->object, false, &err) == 0)
            continue;
        bh_claims_unreserve(c, node);
        return failed(c, err.msg);
    }
    return NULL;
}

const struct bh_status *bh_claims_reserve(struct bh_call *c, bh_sym node)
{
    const struct bh_node_info *ni = bh_cache_node(c->cache, node);
    const struct bh_offer *const *match;
    const struct bh_pod_claims *p;

    if (bh_claims_all_bound(c))
        return NULL;
    const struct bh_status *s = bh_claims_read(c, &p);
    if (s || !p)
        return s;
    if (!ni)
        return failed(c, bh_arena_printf(c->arena, "no pod volume found for node %s",
                                         bh_quoted(c->arena, bh_sym_text(c->tab, node))));
    s = bh_claims_choose(c, p, ni->rec, &match);
    return s ? s : assume_writes(c, p, match, node);
}

static bool is_ours(const struct bh_write *w)
{
    return w->what == BH_WRITE_VOLUME_CLAIM || w->what == BH_WRITE_SELECTED_NODE;
}

void bh_claims_unreserve(struct bh_call *c, bh_sym node BH_UNUSED)
{
    const struct bh_binder *b = binder(c);
    struct bh_reservation *r = bh_reservation_of(b->reserved, bh_rec_uid(c->pod->rec));

    for (uint32_t i = 0; r && i < r->n; i++) {
        const struct bh_write *w = &r->v[i];
        if (is_ours(w) && !r->state[i].written)
            bh_objects_restore(b->objects, w->kind, w->namespace_, w->name, w->resource_version);
    }
}

/* ---- PreBind: what came of the writes ---- */

struct check {
    struct bh_call *c;
    const struct bh_node_rec *node;
    const char *error;
};
enum verdict { BOUND, NOT_YET, WRONG };

static enum verdict wrong(struct check *k, const char *text)
{
    k->error = text;
    return WRONG;
}

static uint64_t number_of(const K8s__ObjectMeta *m)
{
    return m ? strtoull(m->resourceversion, NULL, 10) : 0;
}

/* The API server's answer is newer than what it tells. */
static bool is_ahead(const ProtobufCMessage *written, const ProtobufCMessage *told)
{
    return written && number_of(bh_object_meta(written)) > number_of(bh_object_meta(told));
}

static const void *told(const struct check *k, enum bh_kind kind, const char *ns, const char *name)
{
    return bh_objects_told(k->c->objects, kind, ns, name);
}

static enum verdict check_affinity(struct check *k, const K8s__PersistentVolume *v,
                                   const char *prefix)
{
    struct bh_arena *a = k->c->arena;
    struct bh_bound_claim b;
    const char *error;

    bh_claims_read_bound(k->c, v, &b);
    if (bh_bound_reaches(k->c, &b, k->node, &error))
        return BOUND;
    if (error)
        return wrong(k, bh_arena_printf(a, "%s%s", prefix, error));
    return wrong(k,
                 bh_arena_printf(
                     a, "pv %s node affinity doesn't match node %s: no matching NodeSelectorTerms",
                     bh_quoted(a, v->metadata->name),
                     bh_quoted(a, bh_sym_text(k->c->tab, k->node->name))));
}

static enum verdict check_bound(struct check *k, const K8s__PersistentVolumeClaim *claim)
{
    const char *name = bh_claim_volume_name(claim);

    if (*name) {
        const K8s__PersistentVolume *v = told(k, BH_KIND_PERSISTENTVOLUME, "", name);
        enum verdict verdict = v ? check_affinity(k, v, "") : NOT_YET;
        if (verdict != BOUND)
            return verdict;
    }
    return bh_claim_is_bound(claim) ? BOUND : NOT_YET;
}

static const char *claim_not_found(struct bh_arena *a, const char *prefix, const char *ns,
                                   const char *name)
{
    const char *key = bh_arena_printf(a, "%s/%s", ns, name);

    return bh_arena_printf(a, "%s: %s", prefix, bh_not_found(a, "persistentvolumeclaims", key));
}

static enum verdict check_volume(struct check *k, const struct bh_write *w,
                                 const ProtobufCMessage *written)
{
    const K8s__PersistentVolume *v = told(k, BH_KIND_PERSISTENTVOLUME, "", w->name);
    const K8s__ObjectReference *r =
        ((const K8s__PersistentVolume *)(const void *)w->object)->spec->claimref;
    struct bh_arena *a = k->c->arena;

    if (!v)
        return wrong(k, bh_arena_printf(a, "failed to check binding: %s",
                                        bh_not_found(a, "persistentvolumes", w->name)));
    const K8s__PersistentVolumeClaim *claim =
        told(k, BH_KIND_PERSISTENTVOLUMECLAIM, r->namespace_, r->name);
    if (!claim)
        return wrong(k, claim_not_found(a, "failed to check binding", r->namespace_, r->name));
    if (is_ahead(written, &v->base))
        return NOT_YET;
    enum verdict verdict = check_affinity(k, v, "failed to translate pv to csi: ");
    if (verdict != BOUND)
        return verdict;
    if (!v->spec || !v->spec->claimref || !*v->spec->claimref->uid)
        return wrong(k, bh_arena_printf(a, "ClaimRef got reset for pv %s", bh_quoted(a, w->name)));
    return check_bound(k, claim);
}

static enum verdict check_provisioned(struct check *k, const struct bh_write *w,
                                      const ProtobufCMessage *written)
{
    const K8s__PersistentVolumeClaim *claim =
        told(k, BH_KIND_PERSISTENTVOLUMECLAIM, w->namespace_, w->name);
    const char *node = bh_sym_text(k->c->tab, k->node->name);
    struct bh_arena *a = k->c->arena;

    if (!claim)
        return wrong(
            k, claim_not_found(a, "failed to check provisioning pvc", w->namespace_, w->name));
    if (is_ahead(written, &claim->base))
        return NOT_YET;
    if (!claim->metadata || !claim->metadata->n_annotations)
        return wrong(k, bh_arena_printf(a, "selectedNode annotation reset for PVC %s",
                                        bh_quoted(a, w->name)));
    const char *selected = bh_meta_annotation(claim->metadata, BH_SELECTED_NODE);
    if (!bh_streq(selected ? selected : "", node))
        return wrong(k,
                     bh_arena_printf(a, "provisioning failed for PVC %s", bh_quoted(a, w->name)));
    return check_bound(k, claim);
}

const struct bh_status *bh_claims_check(struct bh_call *c, bh_sym node, int64_t since_ns)
{
    const struct bh_binder *b = binder(c);
    const struct bh_reservation *r = bh_reservation_of(b->reserved, bh_rec_uid(c->pod->rec));
    const struct bh_node_info *ni = bh_cache_node(c->cache, node);
    struct check k = {.c = c, .node = ni ? ni->rec : NULL};
    enum verdict v = NOT_YET;
    uint32_t i = 0;

    while (r && i < r->n && !is_ours(&r->v[i]))
        i++;
    if (!r || i == r->n)
        return NULL;
    if (!ni)
        v = wrong(&k, bh_arena_printf(c->arena, "failed to get node %s: %s",
                                      bh_quoted(c->arena, bh_sym_text(c->tab, node)),
                                      bh_not_found(c->arena, "node", bh_sym_text(c->tab, node))));
    else if (b->timeout_ns) /* 0: upstream's time is over before the first look */
        for (v = BOUND; i < r->n && v == BOUND; i++)
            if (is_ours(&r->v[i]))
                v = r->v[i].what == BH_WRITE_VOLUME_CLAIM
                        ? check_volume(&k, &r->v[i], r->state[i].written)
                        : check_provisioned(&k, &r->v[i], r->state[i].written);
    if (v == NOT_YET && c->now_ns - since_ns >= b->timeout_ns)
        v = wrong(&k, "context deadline exceeded");
    if (v == WRONG)
        return failed(c, bh_arena_printf(c->arena, "binding volumes: %s", k.error));
    return v == BOUND ? NULL : &waits;
}
