/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/storage.c - claims, volumes and classes: which belongs to which
 */
#include "common/k8s/codec.h"
#include "scheduler/plugins/volumebinding/storage.h"

#define CLASS_ANNOTATION "volume.beta.kubernetes.io/storage-class"
#define BOUND_ANNOTATION "pv.kubernetes.io/bind-completed"

const K8s__PersistentVolumeClaim *bh_find_claim(const struct bh_objects *o, const char *ns,
                                                const char *name)
{
    return (const void *)bh_objects_get(o, BH_KIND_PERSISTENTVOLUMECLAIM, ns, name);
}

const K8s__PersistentVolume *bh_find_volume(const struct bh_objects *o, const char *name)
{
    return (const void *)bh_objects_get(o, BH_KIND_PERSISTENTVOLUME, "", name);
}

const K8s__StorageClass *bh_find_class(const struct bh_objects *o, const char *name)
{
    return (const void *)bh_objects_get(o, BH_KIND_STORAGECLASS, "", name);
}

const K8s__CSINode *bh_find_csi_node(const struct bh_objects *o, const char *node)
{
    return (const void *)bh_objects_get(o, BH_KIND_CSINODE, "", node);
}

/* Of duplicates (on the wire) the last wins. */
static const char *entry(K8s__StringEntry *const *v, size_t n, const char *key)
{
    for (; n > 0; n--)
        if (bh_streq(v[n - 1]->key, key))
            return v[n - 1]->value;
    return NULL;
}

const char *bh_meta_label(const K8s__ObjectMeta *m, const char *key)
{
    return m ? entry(m->labels, m->n_labels, key) : NULL;
}

const char *bh_meta_annotation(const K8s__ObjectMeta *m, const char *key)
{
    return m ? entry(m->annotations, m->n_annotations, key) : NULL;
}

void bh_annotate(struct bh_arena *a, K8s__ObjectMeta *m, const char *key, const char *value)
{
    size_t n = m->n_annotations;
    K8s__StringEntry **v = bh_arena_new_array(a, K8s__StringEntry *, n + 1), *e = NULL;

    for (size_t i = 0; i < n; i++) {
        v[i] = m->annotations[i];
        if (bh_streq(v[i]->key, key))
            e = v[i];
    }
    if (!e) {
        e = v[n++] = bh_pb_new(a, &k8s__string_entry__descriptor);
        e->key = bh_arena_strdup(a, key);
    }
    e->value = bh_arena_strdup(a, value);
    m->annotations = v;
    m->n_annotations = n;
}

const char *bh_claim_class(const K8s__PersistentVolumeClaim *c)
{
    const char *beta = bh_meta_annotation(c->metadata, CLASS_ANNOTATION);

    if (beta)
        return beta;
    return c->spec && c->spec->storageclassname ? c->spec->storageclassname : "";
}

const char *bh_volume_class(const K8s__PersistentVolume *v)
{
    const char *beta = bh_meta_annotation(v->metadata, CLASS_ANNOTATION);

    return beta ? beta : v->spec ? v->spec->storageclassname : "";
}

const char *bh_claim_volume_name(const K8s__PersistentVolumeClaim *c)
{
    return c->spec ? c->spec->volumename : "";
}

bool bh_claim_is_bound(const K8s__PersistentVolumeClaim *c)
{
    return *bh_claim_volume_name(c) && bh_meta_annotation(c->metadata, BOUND_ANNOTATION);
}

bool bh_volume_is_for(const K8s__PersistentVolume *v, const K8s__PersistentVolumeClaim *c)
{
    const K8s__ObjectReference *r = v->spec ? v->spec->claimref : NULL;

    return r && c->metadata && bh_streq(r->name, c->metadata->name) &&
           bh_streq(r->namespace_, c->metadata->namespace_) &&
           (!*r->uid || bh_streq(r->uid, c->metadata->uid));
}

static bool storage_of(K8s__QuantityEntry *const *v, size_t n, bh_nano *ret)
{
    *ret = 0;
    for (; n > 0; n--) {
        const K8s__QuantityEntry *e = v[n - 1];
        if (!bh_streq(e->key, "storage"))
            continue;
        if (e->value && e->value->string &&
            bh_quantity_parse(e->value->string, strlen(e->value->string), ret) < 0)
            *ret = 0;
        return true;
    }
    return false;
}

bool bh_claim_size(const K8s__PersistentVolumeClaim *c, bh_nano *ret)
{
    const K8s__VolumeResourceRequirements *r = c->spec ? c->spec->resources : NULL;

    return storage_of(r ? r->requests : NULL, r ? r->n_requests : 0, ret);
}

bh_nano bh_volume_size(const K8s__PersistentVolume *v)
{
    bh_nano q;

    (void)storage_of(v->spec ? v->spec->capacity : NULL, v->spec ? v->spec->n_capacity : 0, &q);
    return q;
}

bool bh_claim_waits(const struct bh_objects *o, const K8s__PersistentVolumeClaim *c,
                    bool *ret_no_mode)
{
    const char *name = bh_claim_class(c);
    const K8s__StorageClass *sc = *name ? bh_find_class(o, name) : NULL;

    *ret_no_mode = sc && !sc->volumebindingmode;
    return sc && sc->volumebindingmode && bh_streq(sc->volumebindingmode, "WaitForFirstConsumer");
}

bool bh_capacity_limit(const K8s__CSIStorageCapacity *s, bh_nano *ret)
{
    const K8s__Quantity *q = s->maximumvolumesize ? s->maximumvolumesize : s->capacity;

    return q && q->string && bh_quantity_parse(q->string, strlen(q->string), ret) == 0;
}

bool bh_attach_limit(const K8s__CSINode *n, const char *driver, int32_t *ret)
{
    *ret = 0;
    for (size_t i = n->spec ? n->spec->n_drivers : 0; i > 0; i--) {
        const K8s__CSINodeDriver *d = n->spec->drivers[i - 1];
        if (!bh_streq(d->name, driver) || !d->allocatable || !d->allocatable->has_count)
            continue;
        *ret = d->allocatable->count;
        return true;
    }
    return false;
}

/* ---- a pod's claims ---- */

bool bh_shape_uses_claims(const struct bh_shape_rec *s, bool ephemeral_too)
{
    const struct bh_volume *v = bh_shape_volumes(s);

    for (uint32_t i = 0; i < s->volumes.n; i++)
        if (v[i].type == BH_VOL_CLAIM || (ephemeral_too && v[i].type == BH_VOL_EPHEMERAL))
            return true;
    return false;
}

const char *bh_claim_name(struct bh_arena *a, const struct bh_symtab *tab,
                          const struct bh_pod_rec *pod, const struct bh_volume *v)
{
    if (v->type == BH_VOL_CLAIM)
        return bh_sym_text(tab, v->source);
    return bh_arena_printf(a, "%s-%s", bh_rec_text(pod, pod->name).p, bh_sym_text(tab, v->name));
}

bool bh_is_controlled_by(const K8s__ObjectMeta *m, const struct bh_pod_rec *pod)
{
    for (size_t i = 0; m && i < m->n_ownerreferences; i++) {
        const K8s__OwnerReference *r = m->ownerreferences[i];
        if (r->has_controller && r->controller)
            return bh_str_eqc(bh_rec_text(pod, pod->uid), r->uid);
    }
    return false;
}

const struct bh_status *bh_claim_of(struct bh_call *c, const char *plugin,
                                    const struct bh_pod_rec *pod, const struct bh_volume *v,
                                    bool is_new, const K8s__PersistentVolumeClaim **ret)
{
    const char *ns = bh_rec_namespace(pod), *name = bh_claim_name(c->arena, c->tab, pod, v);
    struct bh_arena *a = c->arena;

    if (!*name)
        return bh_status_new(a, BH_ERROR, plugin, "PersistentVolumeClaim had no name");
    *ret = bh_find_claim(c->objects, ns, name);
    if (!*ret && is_new)
        return bh_status_new(a, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, plugin,
                             "looking up PVC %s/%s: %s", ns, name,
                             bh_not_found(a, "persistentvolumeclaim", name));
    if (*ret && v->type == BH_VOL_EPHEMERAL && !bh_is_controlled_by((*ret)->metadata, pod))
        return bh_status_new(a, BH_ERROR, plugin, "%s", bh_not_owned(a, *ret, pod));
    return NULL;
}

/* ---- texts ---- */

const char *bh_quoted(struct bh_arena *a, const char *s)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_buf_add_json_str(&b, s, strlen(s));
    return bh_arena_strdup(a, bh_buf_str(&b));
}

const char *bh_not_found(struct bh_arena *a, const char *resource, const char *name)
{
    return bh_arena_printf(a, "%s %s not found", resource, bh_quoted(a, name));
}

const char *bh_not_owned(struct bh_arena *a, const K8s__PersistentVolumeClaim *c,
                         const struct bh_pod_rec *pod)
{
    const char *ns = bh_rec_text(pod, pod->namespace_).p, *name = bh_rec_text(pod, pod->name).p;

    return bh_arena_printf(a, "PVC %s/%s was not created for pod %s/%s (pod is not owner)",
                           c->metadata->namespace_, c->metadata->name, ns, name);
}
