/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/clean.c - the table of what is kept, and what makes an object creatable
 */
#include "simulator/replay/clean.h"

#include <stdio.h>

#include "common/api/client.h"
#include "common/data/patch.h"

#define CLAIM                                                                                      \
    "accessModes resources(requests limits) selector storageClassName volumeMode volumeName "      \
    "volumeAttributesClassName"
#define CONTAINER                                                                                  \
    "name image restartPolicy resources(requests limits claims) "                                  \
    "ports(containerPort hostPort hostIP protocol)"
#define POD                                                                                        \
    "affinity nodeSelector tolerations topologySpreadConstraints schedulerName schedulingGates "   \
    "schedulingGroup priority priorityClassName preemptionPolicy overhead hostNetwork nodeName "   \
    "restartPolicy terminationGracePeriodSeconds resources resourceClaims "                        \
    "initContainers(" CONTAINER ") containers(" CONTAINER ") volumes(name "                        \
    "persistentVolumeClaim(claimName readOnly) "                                                   \
    "ephemeral(volumeClaimTemplate(metadata(labels) spec(" CLAIM "))) csi(driver readOnly) "       \
    "awsElasticBlockStore(volumeID partition readOnly) "                                           \
    "gcePersistentDisk(pdName partition readOnly) iscsi(iqn lun readOnly) "                        \
    "rbd(monitors image pool readOnly))"
#define TEMPLATE "template(metadata(labels) spec(" POD "))"
#define NS       BH_CLEAN_NAMESPACED
#define ST       BH_CLEAN_STATUS
#define WORK     (BH_CLEAN_NAMESPACED | BH_CLEAN_WORKLOAD | BH_CLEAN_ONCE)

const struct bh_clean_kind bh_clean_kinds[] = {
    {"", "v1", "Namespace", "namespaces", 0, ""},
    {"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", 0,
     "value globalDefault preemptionPolicy"},
    {"storage.k8s.io", "v1", "StorageClass", "storageclasses", 0,
     "provisioner reclaimPolicy volumeBindingMode allowVolumeExpansion allowedTopologies"},
    {"storage.k8s.io", "v1", "CSIDriver", "csidrivers", 0,
     "spec(attachRequired storageCapacity preventPodSchedulingIfMissing)"},
    {"resource.k8s.io", "v1", "DeviceClass", "deviceclasses", 0,
     "spec(selectors extendedResourceName)"},
    {"", "v1", "Node", "nodes", ST,
     "spec(unschedulable taints) status(allocatable capacity conditions(type status reason) images "
     "declaredFeatures)"},
    {"storage.k8s.io", "v1", "CSINode", "csinodes", 0,
     "spec(drivers(name nodeID topologyKeys allocatable))"},
    {"resource.k8s.io", "v1", "ResourceSlice", "resourceslices", 0, "spec"},
    {"storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", NS,
     "nodeTopology storageClassName capacity maximumVolumeSize"},
    {"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", NS | ST,
     "spec(" CLAIM ") status(phase accessModes capacity)"},
    {"", "v1", "PersistentVolume", "persistentvolumes", ST,
     "spec(accessModes capacity claimRef(apiVersion kind namespace name uid) nodeAffinity "
     "storageClassName volumeMode volumeAttributesClassName csi(driver volumeHandle readOnly) "
     "awsElasticBlockStore(volumeID) gcePersistentDisk(pdName) local(path) hostPath(path)) "
     "status(phase)"},
    {"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", ST,
     "spec(attacher nodeName source(persistentVolumeName)) status(attached)"},
    {"", "v1", "Service", "services", NS, "spec(selector ports(name port protocol))"},
    {"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", NS,
     "spec(minAvailable maxUnavailable selector unhealthyPodEvictionPolicy)"},
    {"resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", NS,
     "spec(metadata(labels) spec(devices(requests constraints)))"},
    {"", "v1", "Pod", "pods", NS | ST,
     "spec(" POD ") status(phase startTime nominatedNodeName conditions(type status reason) "
     "resourceClaimStatuses)"},
    {"resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", NS | ST,
     "spec(devices(requests constraints)) status(allocation(devices(results) nodeSelector "
     "allocationTimestamp) reservedFor)"},
    {"", "v1", "LimitRange", "limitranges", NS | BH_CLEAN_ONCE, "spec"},
    {"", "v1", "ResourceQuota", "resourcequotas", NS | BH_CLEAN_ONCE, "spec"},
    {"", "v1", "ReplicationController", "replicationcontrollers", WORK,
     "spec(replicas selector minReadySeconds " TEMPLATE ")"},
    {"apps", "v1", "ReplicaSet", "replicasets", WORK,
     "spec(replicas selector minReadySeconds " TEMPLATE ")"},
    {"apps", "v1", "StatefulSet", "statefulsets", WORK,
     "spec(replicas selector serviceName podManagementPolicy " TEMPLATE
     " volumeClaimTemplates(metadata(name labels) spec(" CLAIM ")))"},
    {"apps", "v1", "Deployment", "deployments", WORK,
     "spec(replicas selector strategy minReadySeconds " TEMPLATE ")"},
};
const size_t bh_clean_n_kinds = BH_ARRAY_LEN(bh_clean_kinds);

/* Annotations that take part in placement, or say whose object this is in other simulators. */
static const char *const annotation_prefixes[] = {"volume.kubernetes.io/",
                                                  "volume.beta.kubernetes.io/",
                                                  "pv.kubernetes.io/",
                                                  "storageclass.kubernetes.io/",
                                                  "storageclass.beta.kubernetes.io/",
                                                  "storage.alpha.kubernetes.io/",
                                                  "resource.kubernetes.io/",
                                                  "scheduler.alpha.kubernetes.io/",
                                                  "kwok.x-k8s.io/"};

/* ---- kinds ----------------------------------------------------------------------------------- */

const char *bh_clean_api_version(const struct bh_clean_kind *k, char out[static 80])
{
    snprintf(out, 80, "%s%s%s", k->group, *k->group ? "/" : "", k->version);
    return out;
}

const struct bh_clean_kind *bh_clean_kind_find(const char *api_version, const char *kind)
{
    char av[80];

    for (size_t i = 0; api_version && kind && i < bh_clean_n_kinds; i++)
        if (bh_streq(bh_clean_kinds[i].kind, kind) &&
            bh_streq(bh_clean_api_version(&bh_clean_kinds[i], av), api_version))
            return &bh_clean_kinds[i];
    return NULL;
}

const struct bh_clean_kind *bh_clean_kind_named(const char *name)
{
    for (size_t i = 0; i < bh_clean_n_kinds; i++)
        if (bh_streq(bh_clean_kinds[i].plural, name) || bh_streq(bh_clean_kinds[i].kind, name))
            return &bh_clean_kinds[i];
    return NULL;
}

void bh_clean_path(const struct bh_clean_kind *k, const char *ns, struct bh_buf *out)
{
    char av[80];

    bh_buf_addf(out, "/%s/%s", *k->group ? "apis" : "api", bh_clean_api_version(k, av));
    if (ns && *ns && (k->flags & BH_CLEAN_NAMESPACED)) {
        bh_buf_adds(out, "/namespaces/");
        bh_url_escape(out, ns);
    }
    bh_buf_addf(out, "/%s", k->plural);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

/* Behind the ')' that belongs to the '(' at p. */
static const char *behind(const char *p)
{
    int depth = 0;

    do {
        depth += (*p == '(') - (*p == ')');
        p++;
    } while (depth);
    return p;
}

static struct bh_json *keep_part(struct bh_arena *a, const struct bh_json *v, const char *spec);

static void keep_members(struct bh_arena *a, const struct bh_json *from, struct bh_json *to,
                         const char *p)
{
    while (*p && *p != ')') {
        size_t n = strcspn(p, " ()");
        const char *sub = p[n] == '(' ? p + n : NULL;
        char name[64];

        bh_assert(n && n < sizeof(name));
        memcpy(name, p, n);
        name[n] = '\0';
        struct bh_json *m = bh_json_get(from, name);
        struct bh_json *part = !m || m->type == BH_JSON_NULL ? NULL
                               : sub                         ? keep_part(a, m, sub + 1)
                                                             : bh_json_clone(a, m);
        if (part)
            bh_json_set(a, to, name, part);
        p = sub ? behind(sub) : p + n;
        p += strspn(p, " ");
    }
}

/* NULL: nothing of v is kept, although something was there. */
static struct bh_json *keep_part(struct bh_arena *a, const struct bh_json *v, const char *spec)
{
    struct bh_json *to = bh_json_new(a, v->type);

    if (v->type == BH_JSON_OBJECT) {
        keep_members(a, v, to, spec);
        return to->c.n || !v->c.n ? to : NULL;
    }
    if (v->type != BH_JSON_ARRAY)
        return NULL;
    bh_json_each(m, v) {
        struct bh_json *part = keep_part(a, m, spec);
        if (part)
            bh_json_push(to, part);
    }
    return to->c.n || !v->c.n ? to : NULL;
}

static bool keeps_annotation(const char *key, const char *more)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(annotation_prefixes); i++)
        if (strncmp(key, annotation_prefixes[i], strlen(annotation_prefixes[i])) == 0)
            return true;
    const char *list = more;
    while (list && *list) {
        size_t n = strcspn(list, ",");
        if (n && strncmp(key, list, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* ---- kinds that need a second look ----------------------------------------------------------- */

static void pod_spec(struct bh_arena *a, struct bh_json *spec)
{
    struct bh_json *volumes = bh_json_get_list(spec, "volumes");

    if (!volumes)
        return;
    for (struct bh_json *v = volumes->c.first, *next; v; v = next) {
        struct bh_json *iscsi = bh_json_get(v, "iscsi");
        next = v->next;
        if (v->c.n < 2) /* of a secret, a config map, a host path: nothing is left but the name */
            bh_json_remove(volumes, v);
        if (iscsi) /* required, an address inside, of no use to the scheduler */
            bh_json_set_str(a, iscsi, "targetPortal", "127.0.0.1:3260");
    }
    if (!volumes->c.n)
        bh_json_unset(spec, "volumes");
}

static void volume(struct bh_arena *a, struct bh_json *pv)
{
    static const char *const sources[] = {"csi", "awsElasticBlockStore", "gcePersistentDisk"};
    struct bh_json *spec = bh_json_obj_at(a, pv, "spec");
    bool known = false;

    for (size_t i = 0; i < BH_ARRAY_LEN(sources); i++)
        known = known || bh_json_get(spec, sources[i]);
    if (!known) {
        const char *as = bh_json_get(spec, "local") ? "local" : "hostPath";
        bh_json_unset(spec, "hostPath");
        bh_json_set_str(a, bh_json_obj_at(a, spec, as), "path", "/redacted");
    }
    /* A copy's deletion shall never delete a disk. */
    bh_json_set_str(a, spec, "persistentVolumeReclaimPolicy", "Retain");
}

static const char *second_look(struct bh_arena *a, const struct bh_clean_kind *k, struct bh_json *o)
{
    const char *phase = bh_json_get_text(bh_json_get(o, "status"), "phase");

    if (bh_streq(k->kind, "Pod")) {
        pod_spec(a, bh_json_get(o, "spec"));
        if (bh_streq(phase, "Succeeded") || bh_streq(phase, "Failed"))
            return "finished";
    } else if (k->flags & BH_CLEAN_WORKLOAD) {
        pod_spec(a, bh_json_path(o, "spec.template.spec"));
    } else if (bh_streq(k->kind, "PersistentVolume")) {
        volume(a, o);
    } else if (bh_streq(k->kind, "CSINode")) {
        bh_json_each(d, bh_json_path(o, "spec.drivers"))
            bh_json_set_str(a, d, "nodeID", "redacted");
    } else if (bh_streq(k->kind, "Service")) {
        if (!bh_json_first(bh_json_path(o, "spec.selector")))
            return "without a selector";
        struct bh_json *spec = bh_json_get(o, "spec");
        if (!bh_json_first(bh_json_get_list(spec, "ports")))
            bh_json_set_str(a, spec, "clusterIP", "None");
    }
    return NULL;
}

struct bh_json *bh_clean(struct bh_arena *a, const struct bh_clean_kind *k,
                         const struct bh_json *obj, const char *more_annotations,
                         const char **ret_why)
{
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT), *m;
    char av[80];

    *ret_why = NULL;
    bh_json_set_str(a, o, "apiVersion", bh_clean_api_version(k, av));
    bh_json_set_str(a, o, "kind", k->kind);
    m = bh_json_obj_at(a, o, "metadata");
    keep_members(a, meta, m, "name namespace uid creationTimestamp labels");
    bh_json_each(n, bh_json_get(meta, "annotations"))
        if (n->type == BH_JSON_STRING && keeps_annotation(n->key.p, more_annotations))
            bh_json_set(a, bh_json_obj_at(a, m, "annotations"), n->key.p, bh_json_clone(a, n));
    keep_members(a, meta, m, "ownerReferences(apiVersion kind name uid controller)");
    keep_members(a, obj, o, k->keep);
    *ret_why = second_look(a, k, o);
    return o;
}

/* ---- what can be created --------------------------------------------------------------------- */

/* The server gives new ones. */
static void forget_identity(struct bh_json *obj)
{
    bh_json_drop(bh_json_get(obj, "metadata"), "uid creationTimestamp ownerReferences");
}

struct bh_json *bh_clean_new(struct bh_arena *a, const struct bh_clean_kind *k, struct bh_json *obj)
{
    forget_identity(obj);
    if (bh_streq(k->kind, "Pod")) {
        struct bh_json *spec = bh_json_get(obj, "spec"), *status = bh_json_get(obj, "status");
        /* admission computes both, and refuses what it would not */
        bh_json_drop(spec, "priority preemptionPolicy");
        /* The claim that a template made for the pod is named, else another one would be made. */
        const struct bh_json *made = bh_json_path(obj, "status.resourceClaimStatuses");
        bh_json_each(c, bh_json_path(obj, "spec.resourceClaims")) {
            const char *name = bh_json_get_text(c, "name");
            bh_json_each(m, made) {
                const char *claim = bh_json_get_text(m, "resourceClaimName");
                if (*claim && bh_streq(bh_json_get_text(m, "name"), name) &&
                    bh_json_unset(c, "resourceClaimTemplateName"))
                    bh_json_set_str(a, c, "resourceClaimName", claim);
            }
        }
        bh_json_unset(status, "resourceClaimStatuses");
        if (!*bh_json_get_text(spec, "nodeName")) /* the scheduler's to say */
            bh_json_unset(obj, "status");
    }
    struct bh_json *status = bh_json_get(obj, "status");
    if (!status || !(k->flags & BH_CLEAN_STATUS))
        return NULL;
    status = bh_json_clone(a, status);
    if (!bh_streq(k->kind, "Node"))
        bh_json_unset(obj, "status");
    return status;
}

/* ---- what can be changed --------------------------------------------------------------------- */

static void keep_member(struct bh_arena *a, struct bh_json *want, const struct bh_json *cur,
                        const char *name)
{
    const struct bh_json *m = bh_json_get(cur, name);

    bh_json_unset(want, name);
    if (m)
        bh_json_set(a, want, name, bh_json_clone(a, m));
}

/* Claim and volume that have found each other there stay together, whatever happened here. */
static void keep_binding(struct bh_arena *a, struct bh_json *want, const struct bh_json *cur,
                         const char *member)
{
    const struct bh_json *spec = bh_json_get(cur, "spec");

    if (!bh_json_get(spec, member))
        return;
    keep_member(a, bh_json_obj_at(a, want, "spec"), spec, member);
    keep_member(a, want, cur, "status");
    keep_member(a, bh_json_obj_at(a, want, "metadata"), bh_json_get(cur, "metadata"),
                "annotations");
}

struct bh_json *bh_clean_diff(struct bh_arena *a, const struct bh_clean_kind *k,
                              const struct bh_json *cur, const struct bh_json *want)
{
    struct bh_json *from, *to = bh_json_clone(a, want), *patch;
    const char *why;

    from = bh_clean(a, k, cur, NULL, &why);
    forget_identity(from);
    forget_identity(to);
    if (bh_streq(k->kind, "Pod")) {
        struct bh_json *gates = bh_json_path(to, "spec.schedulingGates"), *spec;
        const struct bh_json *cur_spec = bh_json_get(from, "spec"),
                             *old = bh_json_get(from, "status");
        const char *phase = bh_json_get_text(bh_json_get(to, "status"), "phase");
        bool ended = bh_streq(phase, "Succeeded") || bh_streq(phase, "Failed");
        spec = cur_spec ? bh_json_clone(a, cur_spec) : bh_json_new(a, BH_JSON_OBJECT);
        bh_json_add(a, spec, "schedulingGates?: %p", bh_json_clone(a, gates));
        bh_json_add(a, to, "spec: %p, status?: %p", spec, bh_json_clone(a, old));
        if (ended)
            bh_json_add(a, to, "status: {phase: %s}", phase);
    } else if (bh_streq(k->kind, "PersistentVolumeClaim"))
        keep_binding(a, to, from, "volumeName");
    else if (bh_streq(k->kind, "PersistentVolume"))
        keep_binding(a, to, from, "claimRef");
    patch = bh_patch_diff(a, from, to);
    return bh_json_first(patch) ? patch : NULL;
}
