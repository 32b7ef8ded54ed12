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

static const struct source {
    uint32_t at; /* in K8s__VolumeSource, a pointer to a message */
    enum bh_volume_type type;
    uint32_t text;      /* in the message: bh_volume.source; 0 = nothing is kept */
    uint32_t read_only; /* in the message: the flag, where it counts; 0 = it does not */
} sources[] = {
#define SOURCE(member, type, message, text)                                                        \
    {                                                                                              \
        offsetof(K8s__VolumeSource, member), type, offsetof(message, text), 0                      \
    }
#define DISK(member, type, message, text)                                                          \
    {                                                                                              \
        offsetof(K8s__VolumeSource, member), type, offsetof(message, text),                        \
            offsetof(message, readonly)                                                            \
    }
    SOURCE(persistentvolumeclaim, BH_VOL_CLAIM, K8s__PersistentVolumeClaimVolumeSource, claimname),
    {offsetof(K8s__VolumeSource, ephemeral), BH_VOL_EPHEMERAL, 0, 0},
    SOURCE(csi, BH_VOL_CSI, K8s__CSIVolumeSource, driver),
    SOURCE(awselasticblockstore, BH_VOL_EBS, K8s__AWSElasticBlockStoreVolumeSource, volumeid),
    SOURCE(azurefile, BH_VOL_AZURE_FILE, K8s__AzureFileVolumeSource, sharename),
    SOURCE(cinder, BH_VOL_CINDER, K8s__CinderVolumeSource, volumeid),
    SOURCE(vspherevolume, BH_VOL_VSPHERE, K8s__VsphereVirtualDiskVolumeSource, volumepath),
    SOURCE(portworxvolume, BH_VOL_PORTWORX, K8s__PortworxVolumeSource, volumeid),
    DISK(gcepersistentdisk, BH_VOL_GCE_PD, K8s__GCEPersistentDiskVolumeSource, pdname),
    DISK(iscsi, BH_VOL_ISCSI, K8s__ISCSIVolumeSource, iqn),
    DISK(rbd, BH_VOL_RBD, K8s__RBDVolumeSource, image),
    SOURCE(azuredisk, BH_VOL_AZURE_DISK, K8s__AzureDiskVolumeSource, diskuri),
};

/* false: no plugin looks at the source. */
static bool read_volume(struct bh_compiler *c, const K8s__Volume *v, struct bh_volume *ret)
{
    const K8s__VolumeSource *s = v->volumesource;
    const char *m = NULL;
    size_t i = 0;

    while (s && i < BH_ARRAY_LEN(sources) &&
           !(m = *(char *const *)((const char *)s + sources[i].at)))
        i++;
    if (!m)
        return false;
    const struct source *from = &sources[i];
    *ret = (struct bh_volume){.type = from->type, .name = bh_compile_sym(c, v->name)};
    if (from->text)
        ret->source = bh_compile_sym(c, *(char *const *)(m + from->text));
    if (from->read_only && *(const protobuf_c_boolean *)(m + from->read_only))
        ret->flags = BH_VOL_READ_ONLY;
    if (from->type == BH_VOL_RBD)
        ret->extra = bh_compile_sym(c, *s->rbd->pool ? s->rbd->pool : "rbd");
    if (from->type == BH_VOL_AZURE_DISK) {
        ret->extra = bh_compile_sym(c, s->azuredisk->kind);
        ret->disk_name = bh_compile_sym(c, s->azuredisk->diskname);
    }
    return true;
}

int bh_compile_volumes(struct bh_compiler *c, const K8s__PodSpec *spec, struct bh_slice *ret)
{
    struct bh_volume *v = bh_arena_new_array(c->a, struct bh_volume, spec->n_volumes + 1);
    const K8s__Volume **from = bh_arena_new_array(c->a, const K8s__Volume *, spec->n_volumes + 1);
    size_t n = 0;

    if (!v || !from)
        return bh_compile_no_memory(c, "volumes");
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (read_volume(c, spec->volumes[i], &v[n]))
            from[n++] = spec->volumes[i];
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
