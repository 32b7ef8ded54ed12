/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_volumes.c - the volumes of a pod that scheduling depends on
 *
 * One entry a volume whose source some plugin looks at, in the order of the spec; configMap,
 * emptyDir, nfs and the like leave nothing behind.
 * Upstream: pkg/scheduler/framework/plugins/{volumebinding,
 * volumerestrictions,volumezone,nodevolumelimits}.
 */
#include "common/k8s/compile_priv.h"

static struct bh_volume volume(struct bh_compiler *c, enum bh_volume_type type, const char *source)
{
    return (struct bh_volume){.type = type, .source = bh_compile_sym(c, source)};
}

static struct bh_volume disk(struct bh_compiler *c, enum bh_volume_type type, const char *source,
                             bool read_only)
{
    struct bh_volume v = volume(c, type, source);

    v.flags = read_only ? BH_VOL_READ_ONLY : 0;
    return v;
}

/* Only names are kept; false: no plugin looks at the source. */
static bool named(struct bh_compiler *c, const K8s__VolumeSource *s, struct bh_volume *ret)
{
    if (s->persistentvolumeclaim)
        *ret = volume(c, BH_VOL_CLAIM, s->persistentvolumeclaim->claimname);
    else if (s->ephemeral)
        *ret = volume(c, BH_VOL_EPHEMERAL, NULL);
    else if (s->csi)
        *ret = volume(c, BH_VOL_CSI, s->csi->driver);
    else if (s->awselasticblockstore)
        *ret = volume(c, BH_VOL_EBS, s->awselasticblockstore->volumeid);
    else if (s->azurefile)
        *ret = volume(c, BH_VOL_AZURE_FILE, s->azurefile->sharename);
    else if (s->cinder)
        *ret = volume(c, BH_VOL_CINDER, s->cinder->volumeid);
    else if (s->vspherevolume)
        *ret = volume(c, BH_VOL_VSPHERE, s->vspherevolume->volumepath);
    else if (s->portworxvolume)
        *ret = volume(c, BH_VOL_PORTWORX, s->portworxvolume->volumeid);
    else
        return false;
    return true;
}

static bool described(struct bh_compiler *c, const K8s__VolumeSource *s, struct bh_volume *ret)
{
    if (s->gcepersistentdisk) {
        *ret = disk(c, BH_VOL_GCE_PD, s->gcepersistentdisk->pdname, s->gcepersistentdisk->readonly);
    } else if (s->iscsi) {
        *ret = disk(c, BH_VOL_ISCSI, s->iscsi->iqn, s->iscsi->readonly);
    } else if (s->rbd) {
        *ret = disk(c, BH_VOL_RBD, s->rbd->image, s->rbd->readonly);
        ret->extra = bh_compile_sym(c, *s->rbd->pool ? s->rbd->pool : "rbd");
    } else if (s->azuredisk) {
        *ret = volume(c, BH_VOL_AZURE_DISK, s->azuredisk->diskuri);
        ret->extra = bh_compile_sym(c, s->azuredisk->kind);
        ret->disk_name = bh_compile_sym(c, s->azuredisk->diskname);
    } else {
        return false;
    }
    return true;
}

static bool read_volume(struct bh_compiler *c, const K8s__Volume *v, struct bh_volume *ret)
{
    if (!v->volumesource ||
        (!named(c, v->volumesource, ret) && !described(c, v->volumesource, ret)))
        return false;
    ret->name = bh_compile_sym(c, v->name);
    return true;
}

int bh_compile_volumes(struct bh_compiler *c, const K8s__PodSpec *spec, struct bh_slice *ret)
{
    struct bh_volume *v = bh_arena_new_array(c->a, struct bh_volume, spec->n_volumes + 1);
    const K8s__Volume **from = bh_arena_new_array(c->a, const K8s__Volume *, spec->n_volumes + 1);
    size_t n = 0;

    if (!v || !from)
        return bh_compile_no_memory(c, "volumes");
    for (size_t i = 0; i < spec->n_volumes; i++) {
        if (read_volume(c, spec->volumes[i], &v[n]))
            from[n++] = spec->volumes[i];
    }
    bh_rec_room(&c->b, n, sizeof(*v), ret);
    for (size_t i = 0; i < n && !c->b.failed; i++) {
        const K8s__RBDVolumeSource *rbd = from[i]->volumesource->rbd;
        if (v[i].type == BH_VOL_RBD)
            v[i].monitors = bh_compile_syms(c, rbd->monitors, rbd->n_monitors);
        if (!c->b.failed)
            ((struct bh_volume *)(c->b.p + ret->off))[i] = v[i];
    }
    return 0;
}
