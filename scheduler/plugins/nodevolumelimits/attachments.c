/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/attachments.c - which volumes a pod or a node has attached
 */
#include "scheduler/plugins/nodevolumelimits/attachments.h"

/* Stands for upstream's random prefix of claims without a volume: no driver makes such a handle. */
#define UNBOUND_PREFIX "\x01"

void bh_claim_memory_fini(struct bh_claim_memory *m)
{
    bh_umap_fini(&m->claims);
    free(m->known);
    free(m->attached);
}

/* One symbol for "driver/handle". */
static bh_sym volume_symbol(struct bh_call *c, const char *driver, const char *handle)
{
    size_t n = strlen(driver), m = strlen(handle);
    char *text = bh_arena_alloc(c->arena, n + 1 + m);

    memcpy(text, driver, n);
    text[n] = '/';
    memcpy(text + n + 1, handle, m);
    return bh_sym_intern(c->tab, text, n + 1 + m);
}

static struct bh_attachable attachable(struct bh_call *c, const char *driver, const char *handle,
                                       bool migrated)
{
    if (!*driver || !*handle)
        return (struct bh_attachable){0};
    return (struct bh_attachable){.volume = volume_symbol(c, driver, handle),
                                  .driver = bh_sym_internc(c->tab, driver),
                                  .migrated = migrated};
}

/* ---- claims ---- */

struct bh_attachable bh_attachable_of(struct bh_call *c, const K8s__PersistentVolumeClaim *claim)
{
    const char *name = bh_claim_volume_name(claim), *error;
    const K8s__PersistentVolume *v = *name ? bh_find_volume(c->objects, name) : NULL;
    const K8s__PersistentVolumeSource *s = v && v->spec ? v->spec->persistentvolumesource : NULL;

    if (!v) {
        /* A claim without volume: its class tells the driver, and it stands for its future
         * volume. */
        const char *class = bh_claim_class(claim);
        const K8s__StorageClass *sc = *class ? bh_find_class(c->objects, class) : NULL;
        if (!sc)
            return (struct bh_attachable){0};
        enum bh_in_tree p = bh_in_tree_named(sc->provisioner);
        if (p != BH_IN_TREE_NONE && !bh_in_tree_info[p].migrates)
            return (struct bh_attachable){0};
        const char *driver = p != BH_IN_TREE_NONE ? bh_in_tree_info[p].driver : sc->provisioner;
        const char *handle = bh_arena_printf(c->arena, UNBOUND_PREFIX "%s/%s",
                                             claim->metadata->namespace_, claim->metadata->name);
        return attachable(c, driver, handle, p != BH_IN_TREE_NONE);
    }
    if (s && s->csi)
        return attachable(c, s->csi->driver, s->csi->volumehandle, false);
    enum bh_in_tree p = bh_in_tree_of(v);
    if (!bh_in_tree_info[p].migrates)
        return (struct bh_attachable){0};
    const char *handle = bh_csi_handle(c->arena, v, p, &error);
    return attachable(c, bh_in_tree_info[p].driver, handle ? handle : "", true);
}

/* What a claim stands for, if that was worked out before. */
static bool remembered(struct bh_claim_memory *m, uint64_t key, struct bh_attachable *ret)
{
    uint64_t i;

    if (!bh_umap_get(&m->claims, key, &i))
        return false;
    *ret = m->known[i];
    return true;
}

static const struct bh_status *claim_of(struct bh_call *c, struct bh_claim_memory *m,
                                        const struct bh_pod_info *pod, const struct bh_volume *v,
                                        bool is_new, struct bh_attachable *ret)
{
    uint64_t key = (uint64_t)pod->shape->namespace_ << 32 | v->source;
    bool named = v->type == BH_VOL_CLAIM;

    const K8s__PersistentVolumeClaim *claim;

    if (named && !is_new && remembered(m, key, ret))
        return NULL;
    const struct bh_status *s = bh_claim_of(c, "NodeVolumeLimits", pod->rec, v, is_new, &claim);
    if (s)
        return s;
    if (!named)
        *ret = claim ? bh_attachable_of(c, claim) : (struct bh_attachable){0};
    else if (!remembered(m, key, ret)) {
        BH_GROW(m->known, m->n_known, m->cap_known);
        m->known[m->n_known] = claim ? bh_attachable_of(c, claim) : (struct bh_attachable){0};
        bh_umap_put(&m->claims, key, m->n_known);
        *ret = m->known[m->n_known++];
    }
    return NULL;
}

/* ---- a pod's volumes ---- */

const struct bh_status *bh_attachable_inline(struct bh_call *c, const struct bh_volume *v,
                                             struct bh_attachable *ret)
{
    enum bh_in_tree p = bh_in_tree_inline(v);
    const char *error;
    const char *handle = bh_csi_inline_handle(c->arena, c->tab, v, &error);

    if (!handle)
        return bh_status_new(c->arena, BH_ERROR, "NodeVolumeLimits",
                             "converting volume(%s) from inline to csi: %s",
                             bh_sym_text(c->tab, v->name), error);
    /* Upstream counts an inline volume even when its handle is empty. */
    ret->driver = bh_sym_internc(c->tab, bh_in_tree_info[p].driver);
    ret->volume = volume_symbol(c, bh_in_tree_info[p].driver, handle);
    ret->migrated = true;
    return NULL;
}

const struct bh_status *bh_attachables_of(struct bh_call *c, struct bh_claim_memory *m,
                                          const struct bh_pod_info *pod, bool has_csi, bool is_new,
                                          struct bh_attachables *out)
{
    const struct bh_volume *v = bh_shape_volumes(pod->shape);
    const uint64_t *version = c->objects->version;
    uint64_t now = version[BH_KIND_PERSISTENTVOLUME] + version[BH_KIND_PERSISTENTVOLUMECLAIM] +
                   version[BH_KIND_STORAGECLASS];

    if (m->claims_version != now) {
        bh_umap_clear(&m->claims);
        m->n_known = 0;
        m->claims_version = now;
    }
    for (uint32_t i = 0; i < pod->shape->volumes.n; i++) {
        struct bh_attachable a = {0};
        const struct bh_status *s = NULL;
        if (bh_uses_claim(&v[i]))
            s = claim_of(c, m, pod, &v[i], is_new, &a);
        else if (has_csi && bh_in_tree_info[bh_in_tree_inline(&v[i])].migrates)
            s = bh_attachable_inline(c, &v[i], &a);
        if (s)
            return s;
        if (a.volume != BH_SYM_NONE && (has_csi || !a.migrated))
            out->list[out->n++] = a;
    }
    return NULL;
}

static int by_volume(const void *pa, const void *pb)
{
    const struct bh_attachable *a = pa, *b = pb;

    return a->volume < b->volume ? -1 : a->volume > b->volume;
}

void bh_attachables_make_set(struct bh_attachables *s)
{
    s->n = (uint32_t)bh_sort_unique(s->list, s->n, sizeof *s->list, by_volume);
}

int64_t bh_attachables_by(const struct bh_attachables *s, bh_sym driver)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < s->n; i++)
        n += s->list[i].driver == driver;
    return n;
}

bool bh_attachables_contain(const struct bh_attachables *s, bh_sym volume)
{
    const struct bh_attachable key = {.volume = volume};

    return s->n && bsearch(&key, s->list, s->n, sizeof *s->list, by_volume);
}

/* ---- VolumeAttachments ---- */

static int by_node(const void *pa, const void *pb)
{
    const struct bh_attachment *a = pa, *b = pb;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->volume < b->volume ? -1 : a->volume > b->volume;
}

bh_sym bh_attached_volume(struct bh_call *c, bh_sym driver, const K8s__PersistentVolume *v)
{
    if (!v || !v->spec || !v->spec->persistentvolumesource || !v->spec->persistentvolumesource->csi)
        return BH_SYM_NONE;
    return volume_symbol(c, bh_sym_text(c->tab, driver),
                         v->spec->persistentvolumesource->csi->volumehandle);
}

const struct bh_attachment *bh_attached_to(struct bh_call *c, struct bh_claim_memory *m,
                                           bh_sym node, uint32_t *ret_n)
{
    const uint64_t *v = c->objects->version;
    uint64_t now = v[BH_KIND_PERSISTENTVOLUME] + v[BH_KIND_VOLUMEATTACHMENT];
    uint32_t lo = 0, hi, end;

    if (!m->attached_read || m->attached_version != now) {
        size_t n = c->objects->by_name[BH_KIND_VOLUMEATTACHMENT].len;
        uint32_t all = 0;
        m->attached = bh_reallocarray(m->attached, n + 1, sizeof *m->attached);
        bh_objects_each(o, c->objects, BH_KIND_VOLUMEATTACHMENT) {
            const K8s__VolumeAttachmentSpec *s = ((const K8s__VolumeAttachment *)o->msg)->spec;
            const char *name = s && s->source ? s->source->persistentvolumename : NULL;
            if (!name || !*s->attacher)
                continue;
            bh_sym driver = bh_sym_internc(c->tab, s->attacher);
            m->attached[all] = (struct bh_attachment){
                .node = bh_sym_internc(c->tab, s->nodename),
                .driver = driver,
                .volume = bh_attached_volume(c, driver, bh_find_volume(c->objects, name))};
            all += m->attached[all].volume != BH_SYM_NONE;
        }
        m->n_attached = (uint32_t)bh_sort_unique(m->attached, all, sizeof *m->attached, by_node);
        m->attached_version = now;
        m->attached_read = true;
    }
    for (hi = m->n_attached; lo < hi;) {
        uint32_t mid = (lo + hi) / 2;
        if (m->attached[mid].node < node)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (end = lo; end < m->n_attached && m->attached[end].node == node; end++)
        ;
    *ret_n = end - lo;
    return m->attached + lo;
}
