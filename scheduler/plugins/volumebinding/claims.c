/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/claims.c - a pod's claims before any node is looked at
 *
 * Upstream: pkg/scheduler/framework/plugins/volumebinding/{volume_binding,binder}.go (PreFilter,
 *           GetPodVolumeClaims), component-helpers/storage/volume (FindMatchingVolume).
 */
#include "scheduler/plugins/volumebinding/binder.h"

BH_STATUS_CONST(unbound_immediate, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "VolumeBinding",
                "pod has unbound immediate PersistentVolumeClaims");

static const struct bh_status *reject(struct bh_call *c, const char *text)
{
    return bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "VolumeBinding", "%s", text);
}

/* The claim of one volume; rejected when it is not there or not fit for use. */
static const struct bh_status *read_claim(struct bh_call *c, const struct bh_volume *v,
                                          const K8s__PersistentVolumeClaim **ret)
{
    const char *name = bh_claim_name(c->arena, c->tab, c->pod->rec, v);
    const K8s__PersistentVolumeClaim *claim =
        bh_find_claim(c->objects, bh_rec_namespace(c->pod->rec), name);
    struct bh_arena *a = c->arena;

    *ret = claim;
    if (!claim && v->type == BH_VOL_CLAIM)
        return reject(c, bh_not_found(a, "persistentvolumeclaim", name));
    if (!claim)
        return reject(c, bh_arena_printf(a,
                                         "waiting for ephemeral volume controller to create the "
                                         "persistentvolumeclaim %s",
                                         bh_quoted(a, name)));
    if (claim->status && bh_streq(claim->status->phase, "Lost"))
        return reject(c, bh_arena_printf(a,
                                         "persistentvolumeclaim %s bound to non-existent "
                                         "persistentvolume %s",
                                         bh_quoted(a, name),
                                         bh_quoted(a, bh_claim_volume_name(claim))));
    if (claim->metadata->deletiontimestamp)
        return reject(
            c, bh_arena_printf(a, "persistentvolumeclaim %s is being deleted", bh_quoted(a, name)));
    if (v->type == BH_VOL_EPHEMERAL && !bh_is_controlled_by(claim->metadata, c->pod->rec))
        return reject(c, bh_not_owned(a, claim, c->pod->rec));
    return NULL;
}

void bh_claims_read_bound(struct bh_call *c, const K8s__PersistentVolume *v,
                          struct bh_bound_claim *out)
{
    *out = (struct bh_bound_claim){.missing = !v};
    if (!v)
        return;
    out->affinity = bh_terms_of_affinity(c->arena, c->tab, v->spec ? v->spec->nodeaffinity : NULL);
    enum bh_in_tree p = bh_in_tree_of(v);
    if (!bh_in_tree_info[p].migrates)
        return;
    out->in_tree = p;
    if (bh_csi_handle(c->arena, v, p, &out->csi_error))
        out->csi_affinity = bh_csi_affinity(c->arena, c->tab, v, p);
}

/* ---- volumes for a waiting claim ---- */

static bool same_text(const char *a, const char *b, const char *absent)
{
    return bh_streq(a ? a : absent, b ? b : absent);
}

static bool has_modes(const K8s__PersistentVolumeSpec *v, const K8s__PersistentVolumeClaimSpec *c)
{
    for (size_t i = 0; i < c->n_accessmodes; i++) {
        size_t k = 0;
        while (k < v->n_accessmodes && !bh_streq(v->accessmodes[k], c->accessmodes[i]))
            k++;
        if (k == v->n_accessmodes)
            return false;
    }
    return true;
}

static bool selects(struct bh_call *c, const struct bh_terms *selector,
                    const K8s__PersistentVolume *v)
{
    size_t n = v->metadata->n_labels;

    if (selector->kind != BH_TERMS_SOME)
        return selector->kind == BH_TERMS_ALL;
    struct bh_kv *labels = bh_arena_new_array(c->arena, struct bh_kv, n + 1);
    for (size_t i = 0; i < n; i++) /* the last of duplicates first: it is the one that is found */
        labels[n - 1 - i] = (struct bh_kv){bh_sym_internc(c->tab, v->metadata->labels[i]->key),
                                           bh_sym_internc(c->tab, v->metadata->labels[i]->value)};
    return bh_terms_match(selector, c->tab, labels, (uint32_t)n);
}

enum fitness { UNFIT, RESERVED, FREE };

/* Upstream's checks in upstream's order, without the node's part. */
static enum fitness fitness(struct bh_call *c, const struct bh_waiting_claim *w,
                            const struct bh_terms *selector, const K8s__PersistentVolume *v,
                            bh_nano size)
{
    static const K8s__PersistentVolumeClaimSpec nothing = K8S__PERSISTENT_VOLUME_CLAIM_SPEC__INIT;
    const K8s__PersistentVolumeClaimSpec *cs = w->claim->spec ? w->claim->spec : &nothing;
    const K8s__PersistentVolumeSpec *vs = v->spec;
    bool reserved = bh_volume_is_for(v, w->claim);

    if ((vs->claimref && !reserved) || size < w->size ||
        !same_text(vs->volumemode, cs->volumemode, "Filesystem") ||
        !same_text(vs->volumeattributesclassname, cs->volumeattributesclassname, "") ||
        v->metadata->deletiontimestamp)
        return UNFIT;
    if (reserved)
        return RESERVED;
    return v->status && bh_streq(v->status->phase, "Available") && selects(c, selector, v) &&
                   has_modes(vs, cs)
               ? FREE
               : UNFIT;
}

static int by_size(const void *pa, const void *pb)
{
    const struct bh_offer *a = pa, *b = pb;

    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return strcmp(a->volume->metadata->name, b->volume->metadata->name);
}

/* Compiled once in the volume's life, not once a pod. */
static struct bh_terms affinity_of(struct bh_call *c, const struct bh_object *o)
{
    const K8s__PersistentVolume *v = (const void *)o->msg;
    struct bh_object *ob = (struct bh_object *)(uintptr_t)o; /* only its derived part changes */

    if (ob->derived)
        return *(const struct bh_terms *)ob->derived;
    struct bh_terms t = bh_terms_of_affinity(c->arena, c->tab, v->spec->nodeaffinity), kept = t;
    if (t.rec)
        kept.rec = bh_arena_memdup(&ob->arena, t.rec, t.rec->h.size);
    if (!t.rec || kept.rec) /* NULL: the arena's limit; then it stays with the cycle */
        ob->derived = bh_arena_memdup(&ob->arena, &kept, sizeof kept);
    return t;
}

static void add_offer(struct bh_call *c, struct bh_offer *list, uint32_t *n,
                      const struct bh_object *o, bh_nano size)
{
    list[(*n)++] = (struct bh_offer){
        .volume = (const void *)o->msg, .size = size, .affinity = affinity_of(c, o)};
}

static void read_offers(struct bh_call *c, const char *class, struct bh_waiting_claim *w)
{
    const K8s__LabelSelector *s = w->claim->spec ? w->claim->spec->selector : NULL;
    struct bh_volumes *volumes = ((const struct bh_binder *)c->args)->volumes;
    struct bh_terms selector = {.kind = BH_TERMS_ALL};
    const char *error = NULL;
    size_t n = 0;

    if (s)
        selector = bh_terms_of_selector(c->arena, c->tab, s, &error);
    if (error) {
        w->match_error =
            bh_arena_printf(c->arena, "error creating internal label selector for claim: %s/%s: %s",
                            w->claim->metadata->namespace_, w->claim->metadata->name, error);
        return;
    }
    bh_volumes_sync(volumes, c->objects);
    const uint32_t list[] = {bh_volumes_of_claim(volumes, w->claim),
                             bh_volumes_of_class(volumes, class)};
    for (unsigned k = 0; k < BH_ARRAY_LEN(list); k++)
        for (uint32_t at = list[k]; bh_volumes_next(volumes, &at);)
            n++;
    struct bh_offer *reserved = bh_arena_new_array(c->arena, struct bh_offer, n + 1);
    struct bh_offer *offers = bh_arena_new_array(c->arena, struct bh_offer, n + 1);
    for (unsigned k = 0; k < BH_ARRAY_LEN(list); k++) {
        const struct bh_object *o;
        for (uint32_t at = list[k]; (o = bh_volumes_next(volumes, &at));) {
            const K8s__PersistentVolume *v = (const void *)o->msg;
            bh_nano size = bh_volume_size(v);
            enum fitness fit = (v->spec && v->metadata && bh_streq(bh_volume_class(v), class))
                                   ? fitness(c, w, &selector, v, size)
                                   : UNFIT;
            if (fit == RESERVED)
                add_offer(c, reserved, &w->n_reserved, o, size);
            else if (fit == FREE)
                add_offer(c, offers, &w->n_offers, o, size);
        }
    }
    if (w->n_reserved > 1)
        qsort(reserved, w->n_reserved, sizeof *reserved, by_size);
    if (w->n_offers > 1)
        qsort(offers, w->n_offers, sizeof *offers, by_size);
    w->reserved = reserved;
    w->offers = offers;
    w->index = bh_offers_index(c->arena, offers, w->n_offers);
}

/* ---- provisioning ---- */

static void read_waiting(struct bh_call *c, const K8s__PersistentVolumeClaim *claim,
                         struct bh_waiting_claim *w)
{
    const char *class = bh_claim_class(claim);
    const K8s__StorageClass *sc = bh_find_class(c->objects, class); /* it waits, so there is one */

    *w = (struct bh_waiting_claim){
        .claim = claim, .selected_node = bh_meta_annotation(claim->metadata, BH_SELECTED_NODE)};
    (void)bh_claim_size(claim, &w->size);
    w->can_provision = *sc->provisioner && !bh_streq(sc->provisioner, BH_NO_PROVISIONER);
    w->topologies =
        bh_terms_of_topologies(c->arena, c->tab, sc->allowedtopologies, sc->n_allowedtopologies);
    if (w->can_provision) {
        size_t n = c->objects->by_name[BH_KIND_CSISTORAGECAPACITY].len;
        const K8s__CSIDriver *d =
            (const void *)bh_objects_get(c->objects, BH_KIND_CSIDRIVER, "", sc->provisioner);
        bh_nano size, limit;
        w->needs_capacity = bh_claim_size(w->claim, &size) && d && bh_driver_tells_capacity(d);
        if (w->needs_capacity) {
            struct bh_terms *list = bh_arena_new_array(c->arena, struct bh_terms, n + 1);
            bh_objects_each(o, c->objects, BH_KIND_CSISTORAGECAPACITY) {
                const K8s__CSIStorageCapacity *s = (const void *)o->msg;
                const char *ignored;
                if (bh_streq(s->storageclassname, sc->metadata->name) && s->nodetopology &&
                    bh_capacity_limit(s, &limit) &&
                    bh_quantity_value(limit) >= bh_quantity_value(size))
                    list[w->n_capacities++] =
                        bh_terms_of_selector(c->arena, c->tab, s->nodetopology, &ignored);
            }
            w->capacities = list;
        }
    }
    if (!w->selected_node)
        read_offers(c, class, w);
}

/* ---- all claims of the pod ---- */

/* Those with a selected node first, in the pod's order; the others by size, equals in the pod's
 * order. */
static bool goes_before(const struct bh_waiting_claim *a, const struct bh_waiting_claim *b)
{
    if (a->selected_node || b->selected_node)
        return a->selected_node && !b->selected_node;
    return a->size < b->size;
}

const struct bh_status *bh_claims_read(struct bh_call *c, const struct bh_pod_claims **ret)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_volume *v = bh_shape_volumes(s);
    const K8s__PersistentVolumeClaim **claims =
        bh_arena_new_array(c->arena, const K8s__PersistentVolumeClaim *, s->volumes.n + 1);
    uint32_t n = 0;

    *ret = NULL;
    for (uint32_t i = 0; i < s->volumes.n; i++) {
        if (!bh_uses_claim(&v[i]))
            continue;
        const struct bh_status *st = read_claim(c, &v[i], &claims[n++]);
        if (st)
            return st;
    }
    if (!n)
        return NULL;
    struct bh_pod_claims *p = bh_arena_new(c->arena, struct bh_pod_claims);
    *ret = p;
    /* Fully bound, waiting for a node, or of an immediate class and not bound by its controller
     * yet. */
    struct bh_bound_claim *bound = bh_arena_new_array(c->arena, struct bh_bound_claim, n);
    struct bh_waiting_claim *waiting = bh_arena_new_array(c->arena, struct bh_waiting_claim, n), w;
    bool immediate = false, modeless;
    for (uint32_t i = 0; i < n; i++) {
        if (bh_claim_is_bound(claims[i])) {
            bh_claims_read_bound(c, bh_find_volume(c->objects, bh_claim_volume_name(claims[i])),
                                 &bound[p->n_bound++]);
            continue;
        }
        bool waits = bh_claim_waits(c->objects, claims[i], &modeless);
        if (modeless)
            return bh_status_new(c->arena, BH_ERROR, "VolumeBinding",
                                 "VolumeBindingMode not set for StorageClass %s",
                                 bh_quoted(c->arena, bh_claim_class(claims[i])));
        if (!waits || *bh_claim_volume_name(claims[i])) {
            immediate = true;
            continue;
        }
        read_waiting(c, claims[i], &w);
        p->n_selected += w.selected_node != NULL;
        uint32_t at = p->n_waiting++;
        for (; at > 0 && goes_before(&w, &waiting[at - 1]); at--)
            waiting[at] = waiting[at - 1];
        waiting[at] = w;
    }
    p->bound = bound;
    p->waiting = waiting;
    return immediate ? &unbound_immediate : NULL;
}

bool bh_claims_all_bound(struct bh_call *c)
{
    const struct bh_shape_rec *s = c->pod->shape;
    const struct bh_volume *v = bh_shape_volumes(s);

    for (uint32_t i = 0; i < s->volumes.n; i++) {
        if (!bh_uses_claim(&v[i]))
            continue;
        const K8s__PersistentVolumeClaim *claim =
            bh_find_claim(c->objects, bh_rec_namespace(c->pod->rec),
                          bh_claim_name(c->arena, c->tab, c->pod->rec, &v[i]));
        if (!claim || !bh_claim_is_bound(claim) ||
            (v[i].type == BH_VOL_EPHEMERAL && !bh_is_controlled_by(claim->metadata, c->pod->rec)))
            return false;
    }
    return true;
}
