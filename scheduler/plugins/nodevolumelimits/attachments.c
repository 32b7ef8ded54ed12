/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodevolumelimits/attachments.c - which volumes a pod or a node has attached
 *
 * Runs in: the engine's thread.
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

static const char *ns_of(const struct bh_pod_info *pod)
{
    return bh_rec_text(pod->rec, pod->rec->namespace_).p;
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

/* A claim without volume: its class tells the driver, and it stands for its future volume. */
static struct bh_attachable of_class(struct bh_call *c, const K8s__PersistentVolumeClaim *claim)
{
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

struct bh_attachable bh_attachable_of(struct bh_call *c, const K8s__PersistentVolumeClaim *claim)
{
    const char *name = bh_claim_volume_name(claim), *error;
    const K8s__PersistentVolume *v = *name ? bh_find_volume(c->objects, name) : NULL;
    const K8s__PersistentVolumeSource *s = v && v->spec ? v->spec->persistentvolumesource : NULL;

    if (!v)
        return of_class(c, claim);
    if (s && s->csi)
        return attachable(c, s->csi->driver, s->csi->volumehandle, false);
    enum bh_in_tree p = bh_in_tree_of(v);
    if (!bh_in_tree_info[p].migrates)
        return (struct bh_attachable){0};
    const char *handle = bh_csi_handle(c->arena, v, p, &error);
    return attachable(c, bh_in_tree_info[p].driver, handle ? handle : "", true);
}

static void forget_outdated(struct bh_call *c, struct bh_claim_memory *m)
{
    const uint64_t *v = c->objects->version;
    uint64_t now =
        v[BH_KIND_PERSISTENTVOLUME] + v[BH_KIND_PERSISTENTVOLUMECLAIM] + v[BH_KIND_STORAGECLASS];

    if (m->claims_version == now)
        return;
    bh_umap_clear(&m->claims);
    m->n_known = 0;
    m->claims_version = now;
}

static struct bh_attachable look_up(struct bh_call *c, struct bh_claim_memory *m, uint64_t key,
                                    const K8s__PersistentVolumeClaim *claim)
{
    BH_GROW(m->known, m->n_known, m->cap_known);
    m->known[m->n_known] = claim ? bh_attachable_of(c, claim) : (struct bh_attachable){0};
    bh_umap_put(&m->claims, key, m->n_known);
    return m->known[m->n_known++];
}

static const struct bh_status *error_text(struct bh_call *c, const char *text)
{
    return bh_status_new(c->arena, BH_ERROR, "NodeVolumeLimits", "%s", text);
}

static const struct bh_status *missing(struct bh_call *c, const struct bh_pod_info *pod,
                                       const char *name)
{
    return bh_status_new(c->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "NodeVolumeLimits",
                         "looking up PVC %s/%s: %s", ns_of(pod), name,
                         bh_not_found(c->arena, "persistentvolumeclaim", name));
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

    if (named && v->source == BH_SYM_NONE)
        return error_text(c, "PersistentVolumeClaim had no name");
    if (named && !is_new && remembered(m, key, ret))
        return NULL;
    const char *name = bh_claim_name(c->arena, c->tab, pod->rec, v);
    const K8s__PersistentVolumeClaim *claim = bh_find_claim(c->objects, ns_of(pod), name);
    if (!claim && is_new)
        return missing(c, pod, name);
    if (claim && !named && !bh_claim_is_owned(claim, pod->rec))
        return error_text(c, bh_not_owned(c->arena, claim, pod->rec));
    if (!named)
        *ret = claim ? bh_attachable_of(c, claim) : (struct bh_attachable){0};
    else if (!remembered(m, key, ret))
        *ret = look_up(c, m, key, claim);
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
        return error_text(c,
                          bh_arena_printf(c->arena, "converting volume(%s) from inline to csi: %s",
                                          bh_sym_text(c->tab, v->name), error));
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

    forget_outdated(c, m);
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

static bool read_attachment(struct bh_call *c, const K8s__VolumeAttachment *va,
                            struct bh_attachment *out)
{
    const K8s__VolumeAttachmentSpec *s = va->spec;
    const char *name = s && s->source ? s->source->persistentvolumename : NULL;

    if (!name || !*s->attacher)
        return false;
    *out = (struct bh_attachment){.node = bh_sym_internc(c->tab, s->nodename),
                                  .driver = bh_sym_internc(c->tab, s->attacher)};
    out->volume = bh_attached_volume(c, out->driver, bh_find_volume(c->objects, name));
    return out->volume != BH_SYM_NONE;
}

static void read_all(struct bh_call *c, struct bh_claim_memory *m)
{
    size_t n = c->objects->by_name[BH_KIND_VOLUMEATTACHMENT].len;
    uint32_t all = 0;

    m->attached = bh_reallocarray(m->attached, n + 1, sizeof *m->attached);
    bh_objects_each(o, c->objects, BH_KIND_VOLUMEATTACHMENT) {
        all += read_attachment(c, (const void *)o->msg, &m->attached[all]);
    }
    m->n_attached = (uint32_t)bh_sort_unique(m->attached, all, sizeof *m->attached, by_node);
}

const struct bh_attachment *bh_attached_to(struct bh_call *c, struct bh_claim_memory *m,
                                           bh_sym node, uint32_t *ret_n)
{
    const uint64_t *v = c->objects->version;
    uint64_t now = v[BH_KIND_PERSISTENTVOLUME] + v[BH_KIND_VOLUMEATTACHMENT];
    uint32_t lo = 0, hi, end;

    if (!m->attached_read || m->attached_version != now) {
        read_all(c, m);
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
