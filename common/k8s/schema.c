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

struct inline_member {
    const char *message, *field;
};
/* Sorted by message. */
static const struct inline_member inline_members[] = {
    {"ConfigMapEnvSource", "localObjectReference"},
    {"ConfigMapKeySelector", "localObjectReference"},
    {"ConfigMapProjection", "localObjectReference"},
    {"ConfigMapVolumeSource", "localObjectReference"},
    {"DeviceAllocationConfiguration", "deviceConfiguration"},
    {"DeviceClaimConfiguration", "deviceConfiguration"},
    {"DeviceClassConfiguration", "deviceConfiguration"},
    {"EphemeralContainer", "ephemeralContainerCommon"},
    {"IngressRule", "ingressRuleValue"},
    {"PersistentVolumeSpec", "persistentVolumeSource"},
    {"Probe", "handler"},
    {"SecretEnvSource", "localObjectReference"},
    {"SecretKeySelector", "localObjectReference"},
    {"SecretProjection", "localObjectReference"},
    {"Volume", "volumeSource"},
};

struct always_printed {
    const char *message, *fields;
};
/* Numbers, booleans and possibly empty strings without omitempty. Required strings are left out:
 * validation keeps them non-empty. Sorted by message. */
static const struct always_printed always_printed[] = {
    {"ContainerPort", " containerPort "},
    {"ContainerStateTerminated", " exitCode "},
    {"ContainerStatus", " ready restartCount image imageID "},
    {"CrossVersionObjectReference", " kind name "},
    {"DaemonEndpoint", " Port "},
    {"DaemonSetStatus",
     " currentNumberScheduled numberMisscheduled desiredNumberScheduled numberReady "},
    {"EventsEventSeries", " count "},
    {"GRPCAction", " port "},
    {"HPAScalingPolicy", " value periodSeconds "},
    {"HTTPHeader", " name value "},
    {"HorizontalPodAutoscalerSpec", " maxReplicas "},
    {"HorizontalPodAutoscalerSpecV1", " maxReplicas "},
    {"HorizontalPodAutoscalerStatus", " desiredReplicas "},
    {"HorizontalPodAutoscalerStatusV1", " currentReplicas desiredReplicas "},
    {"NodeSystemInfo", " machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion "
                       "kubeletVersion kubeProxyVersion operatingSystem architecture "},
    {"PodDisruptionBudgetStatus",
     " disruptionsAllowed currentHealthy desiredHealthy expectedPods "},
    {"PortStatus", " port protocol "},
    {"PreferredSchedulingTerm", " weight "},
    {"PriorityClass", " value "},
    {"ReplicaSetStatus", " replicas "},
    {"ReplicationControllerStatus", " replicas "},
    {"ResourcePool", " generation resourceSliceCount "},
    {"RoleRef", " apiGroup kind name "},
    {"ScaleStatus", " replicas "},
    {"ServicePort", " port "},
    {"SleepAction", " seconds "},
    {"StatefulSetOrdinals", " start "},
    {"StatefulSetSpec", " serviceName "},
    {"StatefulSetStatus", " replicas availableReplicas "},
    {"SubjectAccessReviewStatus", " allowed "},
    {"Sysctl", " name value "},
    {"TokenRequestStatus", " token "},
    {"TopologySpreadConstraint", " maxSkew "},
    {"VolumeAttachmentStatus", " attached "},
    {"WeightedPodAffinityTerm", " weight "},
};

static int by_message(const void *key, const void *row)
{
    /* Both row types begin with the message's name. */
    return strcmp(key, *(const char *const *)row);
}

static enum bh_json_form form_of(const ProtobufCMessageDescriptor *d)
{
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
    size_t n = strlen(d->short_name);
    if (d->n_fields == 2 && n > 5 && memcmp(d->short_name + n - 5, "Entry", 5) == 0 &&
        strcmp(d->fields[0].name, "key") == 0 && strcmp(d->fields[1].name, "value") == 0)
        return BH_FORM_MAP_ENTRY;
    return BH_FORM_OBJECT;
}

struct bh_schema bh_schema_of(const ProtobufCMessageDescriptor *d)
{
    struct bh_schema s = {.desc = d, .form = form_of(d)};

    if (s.form != BH_FORM_OBJECT)
        return s;
    const struct inline_member *member =
        bsearch(d->short_name, inline_members, BH_ARRAY_LEN(inline_members),
                sizeof(inline_members[0]), by_message);
    if (member)
        s.inlined = protobuf_c_message_descriptor_get_field_by_name(d, member->field);
    const struct always_printed *always =
        bsearch(d->short_name, always_printed, BH_ARRAY_LEN(always_printed),
                sizeof(always_printed[0]), by_message);
    s.always = always ? always->fields : NULL;
    return s;
}

bool bh_schema_always(const struct bh_schema *s, const char *field_name)
{
    size_t n = strlen(field_name);

    for (const char *p = s->always; p && (p = strstr(p, field_name)); p += n) {
        if (p[-1] == ' ' && p[n] == ' ') /* the list begins and ends with a blank */
            return true;
    }
    return false;
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
