/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/objects.c - what a change of an object is about, for queueing hints
 *
 * Events wait in the queue for longer than objects live, so they carry symbols and bits, no
 * messages.
 *
 * Upstream:   the hints of
 *             pkg/scheduler/framework/plugins/{volumebinding,volumezone,nodevolumelimits,
 *             dynamicresources}.
 */
#include "common/k8s/codec.h"
#include "scheduler/engine/state.h"
#include "scheduler/plugins/volumebinding/translate.h"

static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    struct bh_buf pa = {0}, pb = {0};

    bh_pb_pack(&pa, a);
    bh_pb_pack(&pb, b);
    bool same = pa.n == pb.n && (pa.n == 0 || memcmp(pa.p, pb.p, pa.n) == 0);
    bh_buf_fini(&pa);
    bh_buf_fini(&pb);
    return same;
}

static uint32_t class_changes(const K8s__StorageClass *old, const K8s__StorageClass *neu)
{
    const char *mode = neu->volumebindingmode;
    uint32_t bits = mode && bh_streq(mode, "WaitForFirstConsumer") ? BH_CLASS_WAITS : 0;
    bool same = old && old->n_allowedtopologies == neu->n_allowedtopologies;

    for (size_t i = 0; same && i < neu->n_allowedtopologies; i++)
        same = same_message(&old->allowedtopologies[i]->base, &neu->allowedtopologies[i]->base);
    return bits | (old && !same ? BH_CLASS_TOPOLOGIES : 0);
}

static bool limits_grew(const K8s__CSINode *old, const K8s__CSINode *neu)
{
    int32_t before, after;

    for (size_t i = 0; neu->spec && i < neu->spec->n_drivers; i++) {
        const char *driver = neu->spec->drivers[i]->name;
        (void)bh_attach_limit(old, driver, &before);
        (void)bh_attach_limit(neu, driver, &after);
        if (after > before)
            return true;
    }
    for (size_t i = 0; old->spec && i < old->spec->n_drivers; i++) /* upstream misses these */
        if (bh_attach_limit(old, old->spec->drivers[i]->name, &before) &&
            !bh_attach_limit(neu, old->spec->drivers[i]->name, &after))
            return true;
    return false;
}

static uint32_t csi_node_changes(const K8s__CSINode *old, const K8s__CSINode *neu)
{
    static const char key[] = "storage.alpha.kubernetes.io/migrated-plugins";
    uint32_t bits = 0;

    if (!old)
        return 0;
    const char *a = bh_meta_annotation(old->metadata, key);
    const char *b = bh_meta_annotation(neu->metadata, key);
    if (!bh_streq(a ? a : "", b ? b : ""))
        bits |= BH_CSI_NODE_MIGRATION;
    return bits | (limits_grew(old, neu) ? BH_CSI_NODE_LIMIT_GREW : 0);
}

/* Upstream compares the lists it would make constraints of; comparing the texts wakes a
 * superset. */
static uint32_t volume_changes(const K8s__PersistentVolume *old, const K8s__PersistentVolume *neu)
{
    static const char *const keys[] = {
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};

    for (unsigned i = 0; old && i < BH_ARRAY_LEN(keys); i++) {
        const char *a = bh_meta_label(old->metadata, keys[i]);
        const char *b = bh_meta_label(neu->metadata, keys[i]);
        if (!a != !b || (a && !bh_streq(a, b)))
            return BH_VOLUME_ZONES;
    }
    return 0;
}

static bool is_allocated(const K8s__ResourceClaim *c)
{
    return c->status && c->status->allocation;
}

uint32_t bh_claim_changes(const K8s__ResourceClaim *old, const K8s__ResourceClaim *neu)
{
    static const K8s__ResourceClaimStatus none = K8S__RESOURCE_CLAIM_STATUS__INIT;
    const K8s__ResourceClaimStatus *a = old && old->status ? old->status : &none;
    const K8s__ResourceClaimStatus *b = neu->status ? neu->status : &none;

    if (!old)
        return 0;
    return (is_allocated(old) && !is_allocated(neu) ? BH_CLAIM_DEALLOCATED : 0) |
           (same_message(&a->base, &b->base) ? 0 : BH_CLAIM_STATUS);
}

static uint32_t namespace_changes(const K8s__Namespace *old, const K8s__Namespace *neu)
{
    const K8s__ObjectMeta *a = old ? old->metadata : NULL, *b = neu->metadata;
    bool same = a && b && a->n_labels == b->n_labels;

    /* In another order they count as others: one wake-up too many. */
    for (size_t i = 0; same && i < a->n_labels; i++)
        same = same_message(&a->labels[i]->base, &b->labels[i]->base);
    return old && !same ? BH_NAMESPACE_LABELS : 0;
}

static const char *resource_of(const K8s__DeviceClass *c)
{
    return c->spec && c->spec->extendedresourcename ? c->spec->extendedresourcename : "";
}

static uint32_t changes(enum bh_kind kind, const void *old, const void *neu)
{
    switch (kind) {
    case BH_KIND_DEVICECLASS:
        return old && !bh_streq(resource_of(old), resource_of(neu)) ? BH_CLASS_RESOURCE : 0;
    case BH_KIND_NAMESPACE:
        return namespace_changes(old, neu);
    case BH_KIND_STORAGECLASS:
        return class_changes(old, neu);
    case BH_KIND_CSINODE:
        return csi_node_changes(old, neu);
    case BH_KIND_CSIDRIVER:
        return old && bh_driver_tells_capacity(old) && !bh_driver_tells_capacity(neu)
                   ? BH_CSI_DRIVER_UNCHECKED
                   : 0;
    case BH_KIND_CSISTORAGECAPACITY: {
        bh_nano a, b;
        return old && bh_capacity_limit(neu, &b) && (!bh_capacity_limit(old, &a) || b > a)
                   ? BH_CAPACITY_GREW
                   : 0;
    }
    case BH_KIND_PERSISTENTVOLUME:
        return volume_changes(old, neu);
    case BH_KIND_RESOURCECLAIM:
        return bh_claim_changes(old, neu);
    default:
        return 0;
    }
}

size_t bh_engine_kinds(const struct bh_engine *e, const struct bh_kind_info *ret[BH_CUSTOM_KINDS])
{
    uint64_t kinds = 0;
    size_t n = 0;

    for (uint32_t i = 0; i < e->n_profiles; i++)
        kinds |= e->profile[i].fw->kinds;
    for (; kinds; kinds &= kinds - 1)
        ret[n++] = bh_kind_of((unsigned)__builtin_ctzll(kinds));
    return n;
}

void bh_engine_kind_state(struct bh_engine *e, enum bh_kind kind, bool known, const char *why)
{
    struct bh_objects *o = &e->objects;
    const struct bh_kind_info *k = bh_kind_is_plugins(kind) ? bh_kind_of(kind) : NULL;

    if (!k)
        return;
    if (known)
        o->unknown &= ~(UINT64_C(1) << kind);
    else
        o->unknown |= UINT64_C(1) << kind;
    char *text = o->why_unknown[bh_plugin_kind_index(kind)];
    if (why && *why)
        snprintf(text, sizeof o->why_unknown[0], "%s", why);
    else
        snprintf(text, sizeof o->why_unknown[0], "%s is not listed yet", k->kind_name);
}

int bh_engine_put_object_event(struct bh_engine *e, struct bh_cluster_event *ev, const char *ns,
                               const char *name, const void *object, size_t n, struct bh_err *err)
{
    const ProtobufCMessage *m = bh_objects_told(&e->objects, ev->kind, ns, name);
    const K8s__VolumeAttachment *va = (const void *)m;
    struct bh_object *old;

    if (ev->kind != BH_KIND_VOLUMEATTACHMENT) { /* theirs say nothing, and symbols are for ever */
        ev->object_namespace = bh_sym_internc(e->tab, ns);
        ev->object_name = bh_sym_internc(e->tab, name);
    } else if (va && va->spec) {
        ev->object_driver = bh_sym_internc(e->tab, va->spec->attacher);
    }
    if (ev->kind == BH_KIND_RESOURCECLAIM && m && !object && is_allocated((const void *)m))
        ev->object_changes = BH_CLAIM_DEALLOCATED;
    int rc = bh_objects_replace(&e->objects, ev->kind, ns, name, object, n, &old, err);
    if (rc >= 0 && object)
        ev->object_changes = changes(ev->kind, old ? old->told : NULL,
                                     bh_objects_told(&e->objects, ev->kind, ns, name));
    /* As upstream's assume cache tells it: a watch that is behind may not have shown what counted meanwhile. */
    if (rc >= 0 && object && ev->kind == BH_KIND_RESOURCECLAIM && old && old->assumed)
        ev->object_changes |=
            bh_claim_changes((const void *)old->assumed->msg,
                             (const void *)bh_objects_told(&e->objects, ev->kind, ns, name));
    if (rc >= 0 && object && ev->kind == BH_KIND_DEVICECLASS)
        ev->object_resource = bh_sym_internc(
            e->tab, resource_of((const void *)bh_objects_told(&e->objects, ev->kind, ns, name)));
    bh_object_free(old);
    return rc;
}
