/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/patch_schema.c - how do the lists of the built-in types merge?
 *
 * A list that no table names is atomic (tolerations, taints, command, terms of affinity ...): a
 * patch replaces it as a whole. Paths have no indices; those of a pod template are looked up in the
 * pod's tables, behind the prefix of their kind.
 *
 * Upstream: struct tags patchStrategy, patchMergeKey (strategic merge) and the markers +listType,
 *           +listMapKey (server-side apply) of k8s.io/api v1.36. The two disagree in places; then
 *           `apply` differs from `key`. differences: kinds that the API server of Berth does not
 *           serve are left out.
 */
#include "common/data/patch_schema.h"

struct rule {
    const char *path;
    const char *key;   /* strategic merge: "" atomic, "-" set of primitives */
    const char *apply; /* server-side apply: comma separated keys in order; NULL = as key */
};

static const struct rule meta_rules[] = {
    {"finalizers", "-", NULL},
    {"ownerReferences", "uid", NULL},
    {NULL, NULL, NULL},
};
static const struct rule pod_spec_rules[] = {
    {"containers", "name", NULL},
    {"ephemeralContainers", "name", NULL},
    {"hostAliases", "ip", NULL},
    {"imagePullSecrets", "name", NULL},
    {"initContainers", "name", NULL},
    {"resourceClaims", "name", NULL},
    {"schedulingGates", "name", NULL},
    {"topologySpreadConstraints", "topologyKey", "topologyKey,whenUnsatisfiable"},
    {"volumes", "name", NULL},
    {"resources.claims", "", "name"},
    {NULL, NULL, NULL},
};
static const struct rule container_rules[] = {
    {"env", "name", NULL},
    {"ports", "containerPort", "containerPort,protocol"},
    {"resources.claims", "", "name"},
    {"volumeDevices", "devicePath", NULL},
    {"volumeMounts", "mountPath", NULL},
    {NULL, NULL, NULL},
};
static const struct rule pod_rules[] = {
    {"status.conditions", "type", NULL},
    {"status.hostIPs", "ip", ""},
    {"status.podIPs", "ip", NULL},
    {"status.resourceClaimStatuses", "name", NULL},
    {NULL, NULL, NULL},
};
static const struct rule node_rules[] = {
    {"spec.podCIDRs", "-", NULL},
    {"status.addresses", "type", NULL},
    {"status.conditions", "type", NULL},
    {NULL, NULL, NULL},
};
static const struct rule service_rules[] = {
    {"spec.ports", "port", "port,protocol"},
    {"status.conditions", "type", NULL},
    {NULL, NULL, NULL},
};
static const struct rule service_account_rules[] = {
    {"secrets", "name", NULL},
    {NULL, NULL, NULL},
};
static const struct rule job_rules[] = {
    {"status.conditions", "type", ""},
    {NULL, NULL, NULL},
};
static const struct rule conditions_rules[] = {
    {"status.conditions", "type", NULL},
    {NULL, NULL, NULL},
};
static const struct rule csinode_rules[] = {
    {"spec.drivers", "name", NULL},
    {NULL, NULL, NULL},
};
static const struct rule csidriver_rules[] = {
    {"spec.volumeLifecycleModes", "", "-"},
    {NULL, NULL, NULL},
};
static const struct rule claim_rules[] = {
    {"status.devices", "", "device,driver,pool,shareID"},
    {"status.reservedFor", "uid", NULL},
    {NULL, NULL, NULL},
};
static const struct rule webhook_rules[] = {
    {"webhooks", "name", NULL},
    {"webhooks.matchConditions", "name", NULL},
    {NULL, NULL, NULL},
};
static const struct rule admission_policy_rules[] = {
    {"spec.matchConditions", "name", NULL},
    {"spec.variables", "name", NULL},
    {"status.conditions", "type", NULL},
    {NULL, NULL, NULL},
};
static const struct rule no_rules[] = {{NULL, NULL, NULL}};

/* template: path prefix of the pod template's metadata and spec, NULL when there is none. Sorted by
 * name for the binary search. */
static const struct kind {
    const char *name;
    const char *template;
    const struct rule *rules;
} kinds[] = {
    {"APIService", NULL, conditions_rules},
    {"Binding", NULL, no_rules},
    {"CSIDriver", NULL, csidriver_rules},
    {"CSINode", NULL, csinode_rules},
    {"CSIStorageCapacity", NULL, no_rules},
    {"CertificateSigningRequest", NULL, conditions_rules},
    {"ClusterRole", NULL, no_rules},
    {"ClusterRoleBinding", NULL, no_rules},
    {"ComponentStatus", NULL, no_rules},
    {"ConfigMap", NULL, no_rules},
    {"ControllerRevision", NULL, no_rules},
    {"CronJob", "spec.jobTemplate.spec.template.", no_rules},
    {"CustomResourceDefinition", NULL, conditions_rules},
    {"DaemonSet", "spec.template.", conditions_rules},
    {"Deployment", "spec.template.", conditions_rules},
    {"DeviceClass", NULL, no_rules},
    {"EndpointSlice", NULL, no_rules},
    {"Endpoints", NULL, no_rules},
    {"Event", NULL, no_rules},
    {"FlowSchema", NULL, conditions_rules},
    {"HorizontalPodAutoscaler", NULL, conditions_rules},
    {"IPAddress", NULL, no_rules},
    {"Ingress", NULL, no_rules},
    {"IngressClass", NULL, no_rules},
    {"Job", "spec.template.", job_rules},
    {"Lease", NULL, no_rules},
    {"LimitRange", NULL, no_rules},
    {"MutatingWebhookConfiguration", NULL, webhook_rules},
    {"Namespace", NULL, conditions_rules},
    {"NetworkPolicy", NULL, no_rules},
    {"Node", NULL, node_rules},
    {"PersistentVolume", NULL, no_rules},
    {"PersistentVolumeClaim", NULL, conditions_rules},
    {"Pod", "", pod_rules},
    {"PodDisruptionBudget", NULL, conditions_rules},
    {"PodTemplate", "template.", no_rules},
    {"PriorityClass", NULL, no_rules},
    {"PriorityLevelConfiguration", NULL, conditions_rules},
    {"ReplicaSet", "spec.template.", conditions_rules},
    {"ReplicationController", "spec.template.", conditions_rules},
    {"ResourceClaim", NULL, claim_rules},
    {"ResourceClaimTemplate", NULL, no_rules},
    {"ResourceQuota", NULL, no_rules},
    {"ResourceSlice", NULL, no_rules},
    {"Role", NULL, no_rules},
    {"RoleBinding", NULL, no_rules},
    {"RuntimeClass", NULL, no_rules},
    {"Scale", NULL, no_rules},
    {"Secret", NULL, no_rules},
    {"Service", NULL, service_rules},
    {"ServiceAccount", NULL, service_account_rules},
    {"ServiceCIDR", NULL, conditions_rules},
    {"StatefulSet", "spec.template.", conditions_rules},
    {"StorageClass", NULL, no_rules},
    {"ValidatingAdmissionPolicy", NULL, admission_policy_rules},
    {"ValidatingAdmissionPolicyBinding", NULL, no_rules},
    {"ValidatingWebhookConfiguration", NULL, webhook_rules},
    {"VolumeAttachment", NULL, no_rules},
    {"VolumeAttributesClass", NULL, no_rules},
};

static const struct kind *find_kind(const char *name)
{
    size_t lo = 0, hi = BH_ARRAY_LEN(kinds);
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = strcmp(name, kinds[mid].name);
        if (c == 0)
            return &kinds[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

static const struct rule *in(const struct rule *rules, const char *path)
{
    for (; rules->path; rules++) {
        if (bh_streq(rules->path, path))
            return rules;
    }
    return NULL;
}

/* path behind prefix, or NULL */
static const char *behind(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 ? path + n : NULL;
}

static const struct rule *pod_spec_rule(const char *path)
{
    static const char *const lists[] = {"containers.", "initContainers.", "ephemeralContainers."};
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        const char *rest = behind(path, lists[i]);
        if (rest)
            return in(container_rules, rest);
    }
    return in(pod_spec_rules, path);
}

static const struct rule *find_rule(const char *kind, const char *path)
{
    const char *rest = behind(path, "metadata.");
    const struct kind *k = kind ? find_kind(kind) : NULL;
    if (rest)
        return in(meta_rules, rest);
    if (!k)
        return NULL;
    if (k->template && (rest = behind(path, k->template))) {
        const char *spec = behind(rest, "spec."), *meta = behind(rest, "metadata.");
        const struct rule *r = spec ? pod_spec_rule(spec) : meta ? in(meta_rules, meta) : NULL;
        if (r)
            return r;
    }
    return in(k->rules, path);
}

bool bh_patch_kind_known(const char *kind)
{
    return kind && find_kind(kind);
}

const char *bh_patch_merge_key(const char *kind, const char *path)
{
    const struct rule *r = find_rule(kind, path);
    return r ? r->key : "";
}

const char *bh_patch_apply_keys(const char *kind, const char *path)
{
    const struct rule *r = find_rule(kind, path);
    return !r ? "" : r->apply ? r->apply : r->key;
}
