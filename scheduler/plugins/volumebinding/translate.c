/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/translate.c - volumes of in-tree plugins as their CSI drivers see
 * them
 *
 * Upstream: csi-translation-lib/plugins; differences: an aws:// volume ID is not percent-decoded.
 */
#include <strings.h>

#include "scheduler/plugins/volumebinding/translate.h"

#define ZONE        "topology.kubernetes.io/zone"
#define REGION      "topology.kubernetes.io/region"
#define ZONE_BETA   "failure-domain.beta.kubernetes.io/zone"
#define REGION_BETA "failure-domain.beta.kubernetes.io/region"

const struct bh_in_tree_info bh_in_tree_info[BH_IN_TREE_COUNT] = {
    [BH_IN_TREE_NONE] = {"", "", NULL, false},
    [BH_IN_TREE_EBS] = {"kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone",
                        true},
    [BH_IN_TREE_GCE_PD] = {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone",
                           true},
    [BH_IN_TREE_AZURE_DISK] = {"kubernetes.io/azure-disk", "disk.csi.azure.com", NULL, true},
    [BH_IN_TREE_CINDER] = {"kubernetes.io/cinder", "cinder.csi.openstack.org",
                           "topology.cinder.csi.openstack.org/zone", true},
    [BH_IN_TREE_PORTWORX] = {"kubernetes.io/portworx-volume", "pxd.portworx.com", NULL, true},
    [BH_IN_TREE_AZURE_FILE] = {"kubernetes.io/azure-file", "file.csi.azure.com", NULL, false},
    [BH_IN_TREE_VSPHERE] = {"kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", NULL, false},
};

enum bh_in_tree bh_in_tree_of(const K8s__PersistentVolume *v)
{
    const K8s__PersistentVolumeSource *s = v->spec ? v->spec->persistentvolumesource : NULL;

    if (!s)
        return BH_IN_TREE_NONE;
    if (s->awselasticblockstore)
        return BH_IN_TREE_EBS;
    if (s->gcepersistentdisk)
        return BH_IN_TREE_GCE_PD;
    if (s->azuredisk)
        return BH_IN_TREE_AZURE_DISK;
    if (s->cinder)
        return BH_IN_TREE_CINDER;
    if (s->portworxvolume)
        return BH_IN_TREE_PORTWORX;
    if (s->azurefile)
        return BH_IN_TREE_AZURE_FILE;
    return s->vspherevolume ? BH_IN_TREE_VSPHERE : BH_IN_TREE_NONE;
}

enum bh_in_tree bh_in_tree_inline(const struct bh_volume *v)
{
    static const uint8_t by_type[BH_VOL_TYPES] = {
        [BH_VOL_EBS] = BH_IN_TREE_EBS,
        [BH_VOL_GCE_PD] = BH_IN_TREE_GCE_PD,
        [BH_VOL_AZURE_DISK] = BH_IN_TREE_AZURE_DISK,
        [BH_VOL_CINDER] = BH_IN_TREE_CINDER,
        [BH_VOL_PORTWORX] = BH_IN_TREE_PORTWORX,
        [BH_VOL_AZURE_FILE] = BH_IN_TREE_AZURE_FILE,
        [BH_VOL_VSPHERE] = BH_IN_TREE_VSPHERE,
    };
    return (enum bh_in_tree)by_type[v->type];
}

enum bh_in_tree bh_in_tree_named(const char *plugin)
{
    for (unsigned i = 1; i < BH_IN_TREE_COUNT; i++)
        if (bh_streq(bh_in_tree_info[i].name, plugin))
            return (enum bh_in_tree)i;
    return BH_IN_TREE_NONE;
}

bool bh_migrated_on(const K8s__CSINode *n, enum bh_in_tree p)
{
    const char *list =
        n ? bh_meta_annotation(n->metadata, "storage.alpha.kubernetes.io/migrated-plugins") : NULL;

    if (!bh_in_tree_info[p].migrates)
        return false;
    while (list) {
        const char *comma = strchrnul(list, ',');
        if (bh_str_eqc((struct bh_str){list, (size_t)(comma - list)}, bh_in_tree_info[p].name))
            return true;
        list = *comma ? comma + 1 : NULL;
    }
    return false;
}

/* ---- handles ---- */

/* "vol-1", "aws://zone/vol-1", "aws:///vol-1". */
static const char *ebs_handle(struct bh_arena *a, const char *id, const char **ret_error)
{
    if (strncmp(id, "aws://", 6) != 0)
        return id;
    size_t n = strcspn(id + 6, "?#");
    const char *p = memchr(id + 6, '/', n), *end = id + 6 + n;
    while (p && p < end && *p == '/')
        p++;
    while (p && end > p && end[-1] == '/')
        end--;
    if (p && end - p >= 4 && strncmp(p, "vol-", 4) == 0 && !memchr(p, '/', (size_t)(end - p)))
        return bh_arena_strndup(a, p, (size_t)(end - p));
    *ret_error =
        bh_arena_printf(a,
                        "failed to translate Kubernetes ID to EBS Volume ID invalid format "
                        "for AWS volume (%s)",
                        id);
    return NULL;
}

static const char *azure_handle(struct bh_arena *a, const char *uri, const char *kind,
                                const char **ret_error)
{
    if (!kind || strcasecmp(kind, "Managed") == 0)
        return uri;
    *ret_error = bh_arena_printf(a, "kind(%s) is not supported in csi migration", kind);
    return NULL;
}

static const char *pd_handle(struct bh_arena *a, const char *scope, const char *place,
                             const char *disk)
{
    return bh_arena_printf(a, "projects/UNSPECIFIED/%s/%s/disks/%s", scope, place, disk);
}

/* "europe-west1-b": the region is what stands before the second dash. */
static size_t region_length(const char *zone)
{
    const char *dash = strchr(zone, '-');
    const char *second = dash ? strchr(dash + 1, '-') : NULL;

    return second && !strchr(second + 1, '-') ? (size_t)(second - zone) : 0;
}

char **bh_split_zones(struct bh_arena *a, const char *label, bool trim, size_t *ret_n)
{
    char **v = bh_arena_new_array(a, char *, strlen(label) / 2 + 2);
    size_t n = 0;

    for (const char *p = label, *end; p; p = *end ? end + 2 : NULL) {
        const char *from = p, *to;
        end = strstr(p, "__");
        end = end ? end : p + strlen(p);
        to = end;
        while (trim && from < to && strchr(" \t\r\n", *from))
            from++;
        while (trim && to > from && strchr(" \t\r\n", to[-1]))
            to--;
        v[n++] = bh_arena_strndup(a, from, (size_t)(to - from));
    }
    *ret_n = n;
    return v;
}

static const char *gce_handle(struct bh_arena *a, const K8s__PersistentVolume *v,
                              const char **ret_error)
{
    const char *disk = v->spec->persistentvolumesource->gcepersistentdisk->pdname;
    const char *label = bh_meta_label(v->metadata, ZONE_BETA);
    size_t n, region = 0;

    if (!label || !*label)
        label = bh_meta_label(v->metadata, ZONE);
    if (!label || !*label)
        return pd_handle(a, "zones", "UNSPECIFIED", disk);
    char **zone = bh_split_zones(a, label, false, &n);
    if (n == 1)
        return pd_handle(a, "zones", zone[0], disk);
    for (size_t i = 0; i < n; i++) {
        region = region_length(zone[i]);
        if (!region) {
            *ret_error = bh_arena_printf(a,
                                         "failed to get region from zones: zone in unexpected "
                                         "format, expected: {locale}-{region}-{zone}, got: %s",
                                         zone[i]);
            return NULL;
        }
        if (region != region_length(zone[0]) || strncmp(zone[0], zone[i], region) != 0) {
            *ret_error = bh_arena_printf(a,
                                         "failed to get region from zones: multiple or no regions "
                                         "gotten from zones, got: %s",
                                         label);
            return NULL;
        }
    }
    return pd_handle(a, "regions", bh_arena_strndup(a, zone[0], region), disk);
}

const char *bh_csi_handle(struct bh_arena *a, const K8s__PersistentVolume *v, enum bh_in_tree p,
                          const char **ret_error)
{
    const K8s__PersistentVolumeSource *s = v->spec->persistentvolumesource;

    *ret_error = NULL;
    switch (p) {
    case BH_IN_TREE_EBS:
        return ebs_handle(a, s->awselasticblockstore->volumeid, ret_error);
    case BH_IN_TREE_GCE_PD:
        return gce_handle(a, v, ret_error);
    case BH_IN_TREE_AZURE_DISK:
        return azure_handle(a, s->azuredisk->diskuri, s->azuredisk->kind, ret_error);
    case BH_IN_TREE_CINDER:
        return s->cinder->volumeid;
    case BH_IN_TREE_PORTWORX:
        return s->portworxvolume->volumeid;
    default:
        *ret_error = "not migrated";
        return NULL;
    }
}

const char *bh_csi_inline_handle(struct bh_arena *a, const struct bh_symtab *tab,
                                 const struct bh_volume *v, const char **ret_error)
{
    const char *source = bh_sym_text(tab, v->source);

    *ret_error = NULL;
    switch (v->type) {
    case BH_VOL_EBS:
        return ebs_handle(a, source, ret_error);
    case BH_VOL_GCE_PD:
        return pd_handle(a, "zones", "UNSPECIFIED", source);
    case BH_VOL_AZURE_DISK:
        return azure_handle(a, source, v->extra ? bh_sym_text(tab, v->extra) : NULL, ret_error);
    default:
        return source;
    }
}

/* ---- topology ---- */

static const K8s__NodeSelector *required_of(const K8s__PersistentVolume *v)
{
    return v->spec->nodeaffinity ? v->spec->nodeaffinity->required : NULL;
}

/* Some expression uses the key; with_values: and lists values. */
static bool affinity_has(const K8s__PersistentVolume *v, const char *key, bool with_values)
{
    const K8s__NodeSelector *s = required_of(v);

    for (size_t i = 0; s && i < s->n_nodeselectorterms; i++) {
        const K8s__NodeSelectorTerm *t = s->nodeselectorterms[i];
        for (size_t k = 0; k < t->n_matchexpressions; k++)
            if (bh_streq(t->matchexpressions[k]->key, key) &&
                (!with_values || t->matchexpressions[k]->n_values))
                return true;
    }
    return false;
}

/* "csi key In zones of the label", NULL without any. */
static K8s__NodeSelectorRequirement *zones_of_label(struct bh_arena *a,
                                                    const K8s__PersistentVolume *v,
                                                    const char *label_key, const char *csi_key)
{
    const char *label = bh_meta_label(v->metadata, label_key);
    K8s__NodeSelectorRequirement *r = bh_arena_new(a, K8s__NodeSelectorRequirement);
    size_t n = 0;

    if (!label)
        return NULL;
    k8s__node_selector_requirement__init(r);
    r->values = bh_split_zones(a, label, true, &n);
    for (size_t i = 0; i < n; i++)
        if (*r->values[i])
            r->values[r->n_values++] = r->values[i];
    r->key = (char *)(uintptr_t)csi_key;
    r->operator_ = (char *)(uintptr_t) "In";
    return r->n_values ? r : NULL;
}

static K8s__NodeSelectorTerm *translate_term(struct bh_arena *a, const K8s__NodeSelectorTerm *from,
                                             const char *zone_from, const char *zone_to,
                                             const char *region_from,
                                             K8s__NodeSelectorRequirement *more)
{
    K8s__NodeSelectorTerm *t = bh_arena_memdup(a, from, sizeof *from);
    size_t n = from->n_matchexpressions;

    t->matchexpressions = bh_arena_new_array(a, K8s__NodeSelectorRequirement *, n + 1);
    for (size_t i = 0; i < n; i++) {
        K8s__NodeSelectorRequirement *r = bh_arena_memdup(a, from->matchexpressions[i], sizeof *r);
        if (zone_from && bh_streq(r->key, zone_from))
            r->key = (char *)(uintptr_t)zone_to; /* only read */
        else if (region_from && bh_streq(r->key, region_from))
            r->key = (char *)(uintptr_t)REGION;
        t->matchexpressions[i] = r;
    }
    if (more)
        t->matchexpressions[t->n_matchexpressions++] = more;
    return t;
}

struct bh_terms bh_csi_affinity(struct bh_arena *a, struct bh_symtab *tab,
                                const K8s__PersistentVolume *v, enum bh_in_tree p)
{
    const char *to = bh_in_tree_info[p].zone_key;
    const K8s__NodeSelector *s = required_of(v);
    static const K8s__NodeSelectorTerm empty = K8S__NODE_SELECTOR_TERM__INIT;
    K8s__VolumeNodeAffinity na = K8S__VOLUME_NODE_AFFINITY__INIT;
    K8s__NodeSelector sel = K8S__NODE_SELECTOR__INIT;

    if (!to)
        return bh_terms_of_affinity(a, tab, v->spec->nodeaffinity);
    bool beta = !affinity_has(v, ZONE, false) &&
                (affinity_has(v, ZONE_BETA, false) ||
                 (!bh_meta_label(v->metadata, ZONE) && bh_meta_label(v->metadata, ZONE_BETA)));
    const char *zone = beta ? ZONE_BETA : ZONE;
    const char *region = beta && affinity_has(v, REGION_BETA, true) ? REGION_BETA : NULL;
    bool rename = affinity_has(v, zone, true);
    K8s__NodeSelectorRequirement *more = rename ? NULL : zones_of_label(a, v, zone, to);
    size_t n = s ? s->n_nodeselectorterms : 0;
    sel.nodeselectorterms = bh_arena_new_array(a, K8s__NodeSelectorTerm *, n + 1);
    for (size_t i = 0; i < n; i++)
        sel.nodeselectorterms[sel.n_nodeselectorterms++] =
            translate_term(a, s->nodeselectorterms[i], rename ? zone : NULL, to, region, more);
    if (n == 0 && more)
        sel.nodeselectorterms[sel.n_nodeselectorterms++] =
            translate_term(a, &empty, NULL, NULL, NULL, more);
    na.required = s || more ? &sel : NULL;
    return bh_terms_of_affinity(a, tab, &na);
}
