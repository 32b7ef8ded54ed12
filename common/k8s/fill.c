/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/fill.c - messages with all that Kubernetes' own marshaller writes
 *
 * Go's structs have values where proto2 knows "absent": gogo writes an empty text as one of length
 * 0. A scalar with a default is such a value; which messages are is a table, of what pods and nodes
 * hold.
 *
 * Upstream: k8s.io/api generated.pb.go (MarshalToSizedBuffer).
 */
#include "common/k8s/codec.h"
#include "common/k8s/schema.h"

/* A message, and its members that are no pointers. Inlined members are in schema.c. */
static const struct {
    const char *message, *members;
} values[] = {
    {"Container", "resources"},
    {"Node", "metadata spec status"},
    {"NodeCondition", "lastHeartbeatTime lastTransitionTime"},
    {"NodeDaemonEndpoints", "kubeletEndpoint"},
    {"NodeStatus", "daemonEndpoints nodeInfo"},
    {"ObjectMeta", "creationTimestamp"},
    {"Pod", "metadata spec status"},
    {"PodCondition", "lastProbeTime lastTransitionTime"},
    {"PreferredSchedulingTerm", "preference"},
    {"WeightedPodAffinityTerm", "podAffinityTerm"},
};

static bool is_value(const ProtobufCMessageDescriptor *d, const ProtobufCFieldDescriptor *f)
{
    if (bh_schema_inlined(d) == f)
        return true;
    for (size_t i = 0; i < BH_ARRAY_LEN(values); i++)
        if (bh_streq(values[i].message, d->short_name))
            return bh_word_at(values[i].members, f->name) >= 0;
    return false;
}

static bool fill_message(struct bh_arena *a, const ProtobufCMessageDescriptor *d,
                         const ProtobufCFieldDescriptor *f, ProtobufCMessage **m)
{
    if (*m)
        return bh_pb_fill(a, *m);
    if (!is_value(d, f))
        return true;
    *m = bh_pb_new(a, f->descriptor);
    /* No time is one without members. */
    return *m && (bh_json_form_of(f->descriptor) == BH_FORM_TIME || bh_pb_fill(a, *m));
}

static bool fill_field(struct bh_arena *a, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    static const char empty[] = ""; /* not the default itself, which is not written */
    char *at = (char *)m + f->offset, *quantifier = (char *)m + f->quantifier_offset;
    bool one = f->label != PROTOBUF_C_LABEL_REPEATED, good = true;

    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        size_t n = one ? 1 : *(size_t *)(void *)quantifier;
        ProtobufCMessage **v =
            one ? (ProtobufCMessage **)(void *)at : *(ProtobufCMessage ***)(void *)at;
        for (size_t i = 0; i < n && good; i++)
            good = fill_message(a, m->descriptor, f, &v[i]);
    } else if (one && f->default_value && f->type == PROTOBUF_C_TYPE_STRING) {
        const char **text = (const char **)(void *)at;
        if (*text == f->default_value)
            *text = empty;
    } else if (one && f->default_value && f->type != PROTOBUF_C_TYPE_BYTES) {
        *(protobuf_c_boolean *)(void *)quantifier = true;
    }
    return good;
}

bool bh_pb_fill(struct bh_arena *a, ProtobufCMessage *m)
{
    bool good = true;

    for (unsigned i = 0; i < m->descriptor->n_fields && good; i++)
        good = fill_field(a, m, &m->descriptor->fields[i]);
    return good;
}
