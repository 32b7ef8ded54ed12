/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/schema.c - JSON facts that descriptors do not hold
 *
 * A message is looked up by its short name in two small sorted tables. Results are not cached: a
 * look-up is a handful of string comparisons, and no state means no locking.
 * Upstream: struct tags of k8s.io/api types (`json:",inline"`, absence of omitempty).
 */
#include "common/k8s/schema.h"

#include "proto/kubernetes/kubernetes.pb-c.h"

#define INLINES_MAX 10 /* fields of a message with such a member */
static const struct {
    const ProtobufCMessageDescriptor *message;
    const char *field;
} inline_members[] = {
    {&k8s__config_map_env_source__descriptor, "localObjectReference"},
    {&k8s__config_map_key_selector__descriptor, "localObjectReference"},
    {&k8s__config_map_projection__descriptor, "localObjectReference"},
    {&k8s__config_map_volume_source__descriptor, "localObjectReference"},
    {&k8s__device_allocation_configuration__descriptor, "deviceConfiguration"},
    {&k8s__device_claim_configuration__descriptor, "deviceConfiguration"},
    {&k8s__device_class_configuration__descriptor, "deviceConfiguration"},
    {&k8s__ephemeral_container__descriptor, "ephemeralContainerCommon"},
    {&k8s__ingress_rule__descriptor, "ingressRuleValue"},
    {&k8s__named_rule_with_operations__descriptor, "ruleWithOperations"},
    {&k8s__persistent_volume_spec__descriptor, "persistentVolumeSource"},
    {&k8s__probe__descriptor, "handler"},
    {&k8s__rule_with_operations__descriptor, "rule"},
    {&k8s__secret_env_source__descriptor, "localObjectReference"},
    {&k8s__secret_key_selector__descriptor, "localObjectReference"},
    {&k8s__secret_projection__descriptor, "localObjectReference"},
    {&k8s__volume__descriptor, "volumeSource"},
};

struct always_printed {
    const char *message, *fields;
};
/* Numbers, booleans and possibly empty strings without omitempty. Required strings are left out:
 * validation keeps them non-empty. Sorted by message. */
static const struct always_printed always_printed[] = {
    {"APIServiceSpec", "groupPriorityMinimum versionPriority"},
    {"ContainerPort", "containerPort"},
    {"ContainerStateTerminated", "exitCode"},
    {"ContainerStatus", "ready restartCount image imageID"},
    {"ControllerRevision", "revision"},
    {"CrossVersionObjectReference", "kind name"},
    {"DaemonEndpoint", "Port"},
    {"DaemonSetStatus",
     "currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady"},
    {"EndpointPort", "port"},
    {"EventsEventSeries", "count"},
    {"GRPCAction", "port"},
    {"HPAScalingPolicy", "value periodSeconds"},
    {"HTTPHeader", "name value"},
    {"HorizontalPodAutoscalerSpec", "maxReplicas"},
    {"HorizontalPodAutoscalerSpecV1", "maxReplicas"},
    {"HorizontalPodAutoscalerStatus", "desiredReplicas"},
    {"HorizontalPodAutoscalerStatusV1", "currentReplicas desiredReplicas"},
    {"NodeSystemInfo", "machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion "
                       "kubeletVersion kubeProxyVersion operatingSystem architecture"},
    {"PodDisruptionBudgetStatus", "disruptionsAllowed currentHealthy desiredHealthy expectedPods"},
    {"PortStatus", "port protocol"},
    {"PreferredSchedulingTerm", "weight"},
    {"PriorityClass", "value"},
    {"ReplicaSetStatus", "replicas"},
    {"ReplicationControllerStatus", "replicas"},
    {"ResourcePool", "generation resourceSliceCount"},
    {"RoleRef", "apiGroup kind name"},
    {"ScaleStatus", "replicas"},
    {"ServicePort", "port"},
    {"SleepAction", "seconds"},
    {"StatefulSetOrdinals", "start"},
    {"StatefulSetSpec", "serviceName"},
    {"StatefulSetStatus", "replicas availableReplicas"},
    {"SubjectAccessReviewStatus", "allowed"},
    {"SubjectRulesReviewStatus", "incomplete"},
    {"Sysctl", "name value"},
    {"TokenRequestStatus", "token"},
    {"TopologySpreadConstraint", "maxSkew"},
    {"VolumeAttachmentStatus", "attached"},
    {"WeightedPodAffinityTerm", "weight"},
};

static int by_message(const void *key, const void *row)
{
    return strcmp(key, ((const struct always_printed *)row)->message);
}

enum bh_json_form bh_json_form_of(const ProtobufCMessageDescriptor *d)
{
    if (d->n_fields > 3) /* none of those below has more */
        return BH_FORM_OBJECT;
    if (d == &k8s__quantity__descriptor)
        return BH_FORM_QUANTITY;
    if (d == &k8s__time__descriptor)
        return BH_FORM_TIME;
    if (d == &k8s__micro_time__descriptor)
        return BH_FORM_MICRO_TIME;
    if (d == &k8s__int_or_string__descriptor)
        return BH_FORM_INT_OR_STRING;
    if (d == &k8s__raw_extension__descriptor)
        return BH_FORM_RAW;
    if (d == &k8s__extra_value__descriptor)
        return BH_FORM_STRING_LIST;
    /* The schema writes map<string, V> as repeated XEntry {key = 1, value = 2}. */
    if (d->n_fields != 2 || *d->fields[0].name != 'k' || *d->fields[1].name != 'v' ||
        !bh_streq(d->fields[0].name, "key") || !bh_streq(d->fields[1].name, "value"))
        return BH_FORM_OBJECT;
    size_t n = strlen(d->short_name);
    return n > 5 && bh_streq(d->short_name + n - 5, "Entry") ? BH_FORM_MAP_ENTRY : BH_FORM_OBJECT;
}

const ProtobufCFieldDescriptor *bh_schema_inlined(const ProtobufCMessageDescriptor *d)
{
    if (d->n_fields > INLINES_MAX)
        return NULL;
    for (size_t i = 0; i < BH_ARRAY_LEN(inline_members); i++)
        if (inline_members[i].message == d)
            return protobuf_c_message_descriptor_get_field_by_name(d, inline_members[i].field);
    return NULL;
}

const char *bh_schema_always(const ProtobufCMessageDescriptor *d)
{
    const struct always_printed *a =
        bsearch(d->short_name, always_printed, BH_ARRAY_LEN(always_printed),
                sizeof(always_printed[0]), by_message);
    return a ? a->fields : "";
}

size_t bh_pb_element_size(ProtobufCType t)
{
    switch (t) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_INT32:
        return 4;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(void *);
    }
}
