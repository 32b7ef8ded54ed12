/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/fill.h - objects with every field set, and their comparison, by descriptor
 *
 * Header-only so that a test binary needs nothing but this file.
 */
#ifndef BH_TEST_FILL_H
#define BH_TEST_FILL_H

#include <CUnit/CUnit.h>
#include <stdio.h>

#include "common/base/arena.h"
#include "common/data/json.h"
#include "common/k8s/codec.h"
#include "common/k8s/schema.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

/* Top-level messages: everything that travels on its own. */
static const ProtobufCMessageDescriptor *const all_objects[] = {
    &k8s__node__descriptor,
    &k8s__pod__descriptor,
    &k8s__namespace__descriptor,
    &k8s__service__descriptor,
    &k8s__replication_controller__descriptor,
    &k8s__replica_set__descriptor,
    &k8s__stateful_set__descriptor,
    &k8s__persistent_volume__descriptor,
    &k8s__persistent_volume_claim__descriptor,
    &k8s__storage_class__descriptor,
    &k8s__csinode__descriptor,
    &k8s__csidriver__descriptor,
    &k8s__csistorage_capacity__descriptor,
    &k8s__volume_attachment__descriptor,
    &k8s__pod_disruption_budget__descriptor,
    &k8s__priority_class__descriptor,
    &k8s__resource_claim__descriptor,
    &k8s__resource_claim_template__descriptor,
    &k8s__resource_slice__descriptor,
    &k8s__device_class__descriptor,
    &k8s__pod_group__descriptor,
    &k8s__pod_group_v1beta1__descriptor,
    &k8s__workload__descriptor,
    &k8s__deployment__descriptor,
    &k8s__daemon_set__descriptor,
    &k8s__job__descriptor,
    &k8s__cron_job__descriptor,
    &k8s__resource_quota__descriptor,
    &k8s__config_map__descriptor,
    &k8s__secret__descriptor,
    &k8s__service_account__descriptor,
    &k8s__pod_template__descriptor,
    &k8s__role__descriptor,
    &k8s__role_binding__descriptor,
    &k8s__cluster_role__descriptor,
    &k8s__cluster_role_binding__descriptor,
    &k8s__ingress__descriptor,
    &k8s__horizontal_pod_autoscaler__descriptor,
    &k8s__horizontal_pod_autoscaler_v1__descriptor,
    &k8s__scale__descriptor,
    &k8s__self_subject_access_review__descriptor,
    &k8s__subject_access_review__descriptor,
    &k8s__self_subject_review__descriptor,
    &k8s__token_review__descriptor,
    &k8s__token_request__descriptor,
    &k8s__lease__descriptor,
    &k8s__event__descriptor,
    &k8s__events_event__descriptor,
    &k8s__binding__descriptor,
    &k8s__eviction__descriptor,
    &k8s__endpoints__descriptor,
    &k8s__limit_range__descriptor,
    &k8s__controller_revision__descriptor,
    &k8s__self_subject_rules_review__descriptor,
    &k8s__ingress_class__descriptor,
    &k8s__network_policy__descriptor,
    &k8s__runtime_class__descriptor,
    &k8s__endpoint_slice__descriptor,
    &k8s__volume_attributes_class__descriptor,
    &k8s__mutating_admission_policy__descriptor,
    &k8s__mutating_admission_policy_binding__descriptor,
    &k8s__mutating_webhook_configuration__descriptor,
    &k8s__validating_admission_policy__descriptor,
    &k8s__validating_admission_policy_binding__descriptor,
    &k8s__validating_webhook_configuration__descriptor,
    &k8s__apiservice__descriptor,
    &k8s__status__descriptor,
    &k8s__delete_options__descriptor,
};

struct fill {
    struct bh_arena *a;
    unsigned n; /* makes every value different */
};

static ProtobufCMessage *fill_message(struct fill *f, const ProtobufCMessageDescriptor *d);

static void fill_value(struct fill *f, const ProtobufCFieldDescriptor *fd, void *at)
{
    unsigned k = ++f->n;
    switch (fd->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = bh_arena_printf(f->a, "%s-%06u \"\\\xc3\xa4", fd->name, k);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)at =
            (ProtobufCBinaryData){k % 5 + 1, (uint8_t *)bh_arena_printf(f->a, "%05u", k)};
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = 1;
        break;
    case PROTOBUF_C_TYPE_INT32:
        *(int32_t *)at = k % 2 ? (int32_t)k : -(int32_t)k;
        break;
    case PROTOBUF_C_TYPE_INT64:
        *(int64_t *)at = k % 2 ? (int64_t)k << 33 : -((int64_t)k << 33);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = k + 0.1;
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = fill_message(f, fd->descriptor);
        break;
    default:
        CU_FAIL("field type without a filler");
    }
}

static bool fill_special(struct fill *f, ProtobufCMessage *m, enum bh_json_form form)
{
    unsigned k = ++f->n;
    switch (form) {
    case BH_FORM_QUANTITY:
        ((K8s__Quantity *)m)->string = bh_arena_printf(f->a, "%um", k);
        return true;
    case BH_FORM_TIME:
        ((K8s__Time *)m)->has_seconds = true;
        ((K8s__Time *)m)->seconds = 1700000000 + k;
        return true;
    case BH_FORM_MICRO_TIME: {
        K8s__MicroTime *t = (K8s__MicroTime *)m;
        t->has_seconds = t->has_nanos = true;
        t->seconds = 1700000000 + k;
        t->nanos = (int32_t)(k % 1000000) * 1000;
        return true;
    }
    case BH_FORM_INT_OR_STRING: {
        K8s__IntOrString *v = (K8s__IntOrString *)m;
        v->has_type = true;
        v->type = k % 2;
        if (v->type)
            v->strval = bh_arena_printf(f->a, "%u%%", k);
        else
            v->has_intval = true, v->intval = (int32_t)k;
        return true;
    }
    case BH_FORM_RAW: {
        K8s__RawExtension *r = (K8s__RawExtension *)m;
        r->raw.data = (uint8_t *)bh_arena_printf(f->a, "{\"k\":[%u,null,\"x\"]}", k);
        r->raw.len = strlen((char *)r->raw.data);
        r->has_raw = true;
        return true;
    }
    default:
        return false;
    }
}

static ProtobufCMessage *fill_message(struct fill *f, const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = bh_arena_alloc(f->a, d->sizeof_message);
    protobuf_c_message_init(d, m);
    if (fill_special(f, m, bh_json_form_of(d)))
        return m;
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *fd = &d->fields[i];
        char *at = (char *)m + fd->offset, *q = (char *)m + fd->quantifier_offset;
        if (fd->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t size = fd->type == PROTOBUF_C_TYPE_BOOL    ? sizeof(protobuf_c_boolean)
                          : fd->type == PROTOBUF_C_TYPE_INT32 ? 4
                                                              : 8;
            char *items = bh_arena_zalloc(f->a, 2 * size);
            fill_value(f, fd, items);
            fill_value(f, fd, items + size);
            *(char **)at = items;
            *(size_t *)q = 2;
            continue;
        }
        fill_value(f, fd, at);
        if (fd->type != PROTOBUF_C_TYPE_MESSAGE && fd->type != PROTOBUF_C_TYPE_STRING)
            *(protobuf_c_boolean *)q = 1;
    }
    return m;
}

/* Value *n of a tree, itself being the first; *n counts down. NULL: it has fewer. */
static inline struct bh_json *nth_value(struct bh_json *v, size_t *n)
{
    if (!(*n)--)
        return v;
    bh_json_each(m, v) {
        struct bh_json *found = nth_value(m, n);
        if (found)
            return found;
    }
    return NULL;
}

/* ---- comparison ------------------------------------------------------------------------------ */
static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b);

static bool differ(const ProtobufCFieldDescriptor *fd, const ProtobufCMessage *m)
{
    printf("  differs: %s.%s\n", m->descriptor->short_name, fd->name);
    return false;
}

static bool same_value(const ProtobufCFieldDescriptor *fd, const void *a, const void *b)
{
    switch (fd->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *x = *(char *const *)a, *y = *(char *const *)b;
        return x && y ? strcmp(x, y) == 0 : x == y;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *x = a, *y = b;
        return x->len == y->len && (x->len == 0 || memcmp(x->data, y->data, x->len) == 0);
    }
    case PROTOBUF_C_TYPE_BOOL:
        return *(const protobuf_c_boolean *)a == *(const protobuf_c_boolean *)b;
    case PROTOBUF_C_TYPE_INT32:
        return *(const int32_t *)a == *(const int32_t *)b;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return memcmp(a, b, 8) == 0;
    case PROTOBUF_C_TYPE_MESSAGE:
        return same_message(*(ProtobufCMessage *const *)a, *(ProtobufCMessage *const *)b);
    default:
        return false;
    }
}

static bool same_field(const ProtobufCFieldDescriptor *fd, const ProtobufCMessage *a,
                       const ProtobufCMessage *b)
{
    const char *x = (const char *)a + fd->offset, *y = (const char *)b + fd->offset;
    const char *qx = (const char *)a + fd->quantifier_offset;
    const char *qy = (const char *)b + fd->quantifier_offset;

    if (fd->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t n = *(const size_t *)qx;
        size_t size = fd->type == PROTOBUF_C_TYPE_BOOL    ? sizeof(protobuf_c_boolean)
                      : fd->type == PROTOBUF_C_TYPE_INT32 ? 4
                      : fd->type == PROTOBUF_C_TYPE_BYTES ? sizeof(ProtobufCBinaryData)
                                                          : 8;
        bool same = n == *(const size_t *)qy;
        for (size_t i = 0; same && i < n; i++)
            same = same_value(fd, *(char *const *)x + i * size, *(char *const *)y + i * size);
        return same;
    }
    /* Absent and zero are one for value-typed scalars, two for pointers. */
    if (!fd->default_value && fd->type != PROTOBUF_C_TYPE_MESSAGE &&
        fd->type != PROTOBUF_C_TYPE_STRING &&
        *(const protobuf_c_boolean *)qx != *(const protobuf_c_boolean *)qy)
        return false;
    return same_value(fd, x, y);
}

static bool same_message(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    if (!a || !b)
        return a == b;
    if (a->descriptor != b->descriptor)
        return false;
    for (unsigned i = 0; i < a->descriptor->n_fields; i++) {
        if (!same_field(&a->descriptor->fields[i], a, b))
            return differ(&a->descriptor->fields[i], a);
    }
    return true;
}
#endif
