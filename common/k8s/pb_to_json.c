/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/pb_to_json.c - protobuf-c message into a JSON tree, printed as Kubernetes would
 *
 * Which fields appear follows Go's omitempty: a value-typed scalar (one with a default in the
 * schema) only when it is not zero, a pointer when it is set, lists and maps when not empty. Maps
 * are sorted by key and a later duplicate wins, as after a decode into a Go map.
 * Fails with: NULL when the arena's limit is hit.
 */
#include "common/k8s/codec.h"

#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "common/k8s/quantity.h"
#include "common/k8s/schema.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

static bool members_of(struct bh_arena *a, struct bh_json *obj, const ProtobufCMessage *m);

/* Links v as member `key` (a string that lives as long as the tree); no look for duplicates. */
static bool add_member(struct bh_json *obj, const char *key, struct bh_json *v)
{
    if (!v)
        return false;
    v->key = bh_str_c(key);
    bh_json_push(obj, v);
    return true;
}

static struct bh_json *time_json(struct bh_arena *a, const ProtobufCMessage *m, bool micro,
                                 bool *skip)
{
    /* Both messages have the same members, so one layout serves. */
    const K8s__MicroTime *t = (const K8s__MicroTime *)m;
    char text[40];

    if (t->seconds == 0 && t->nanos == 0) {
        *skip = true; /* the zero time */
        return NULL;
    }
    if (micro)
        bh_time_format_micro(text, t->seconds, t->nanos);
    else
        bh_time_format(text, t->seconds);
    return bh_json_new_cstr(a, text);
}

static struct bh_json *raw_json(struct bh_arena *a, const K8s__RawExtension *m, bool *skip)
{
    struct bh_json *v = NULL;

    if (!m->has_raw || m->raw.len == 0 ||
        bh_json_parse(a, (const char *)m->raw.data, m->raw.len, BH_JSON_NUL, &v, NULL) != 0) {
        *skip = !a->failed; /* not JSON (an envelope, or garbage): nothing to print */
        return NULL;
    }
    return v;
}

static struct bh_json *bytes_json(struct bh_arena *a, const ProtobufCBinaryData *b)
{
    if (b->len > INT32_MAX / 2)
        return NULL;
    char *text = bh_arena_alloc(a, (b->len + 2) / 3 * 4 + 1);
    if (!text)
        return NULL;
    int n = b->len ? EVP_EncodeBlock((uint8_t *)text, b->data, (int)b->len) : 0;
    return bh_json_new_str(a, text, (size_t)n);
}

static struct bh_json *list_json(struct bh_arena *a, const ProtobufCFieldDescriptor *f,
                                 const ProtobufCMessage *m);

static struct bh_json *message_json(struct bh_arena *a, const ProtobufCMessage *m, bool *skip)
{
    switch (bh_json_form_of(m->descriptor)) {
    case BH_FORM_QUANTITY: {
        const char *s = ((const K8s__Quantity *)m)->string;
        return bh_json_new_cstr(a, s && *s ? s : "0");
    }
    case BH_FORM_TIME:
        return time_json(a, m, false, skip);
    case BH_FORM_MICRO_TIME:
        return time_json(a, m, true, skip);
    case BH_FORM_INT_OR_STRING: {
        const K8s__IntOrString *v = (const K8s__IntOrString *)m;
        return v->type == 1 ? bh_json_new_cstr(a, v->strval ? v->strval : "")
                            : bh_json_new_i64(a, v->intval);
    }
    case BH_FORM_RAW:
        return raw_json(a, (const K8s__RawExtension *)m, skip);
    case BH_FORM_STRING_LIST:
        return list_json(a, &m->descriptor->fields[0], m);
    case BH_FORM_OBJECT:
    case BH_FORM_MAP_ENTRY:
        break;
    }
    struct bh_json *obj = bh_json_new(a, BH_JSON_OBJECT);
    return obj && members_of(a, obj, m) ? obj : NULL;
}

/* The value of field f stored at `at`; NULL with *skip when there is nothing to print. */
static struct bh_json *value_json(struct bh_arena *a, const ProtobufCFieldDescriptor *f,
                                  const void *at, bool *skip)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_json(a, *(ProtobufCMessage *const *)at, skip);
    case PROTOBUF_C_TYPE_STRING:
        return bh_json_new_cstr(a, *(char *const *)at ? *(char *const *)at : "");
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_json(a, at);
    case PROTOBUF_C_TYPE_BOOL:
        return bh_json_new_bool(a, *(const protobuf_c_boolean *)at);
    case PROTOBUF_C_TYPE_INT32:
        return bh_json_new_i64(a, *(const int32_t *)at);
    case PROTOBUF_C_TYPE_INT64:
        return bh_json_new_i64(a, *(const int64_t *)at);
    case PROTOBUF_C_TYPE_DOUBLE: {
        double d = *(const double *)at;
        char text[32];
        if (!isfinite(d))
            return bh_json_new(a, BH_JSON_NULL);
        snprintf(text, sizeof(text), "%.17g", d);
        struct bh_json *v = bh_json_new_cstr(a, text);
        if (v)
            v->type = BH_JSON_NUMBER;
        return v;
    }
    default:
        *skip = true;
        return NULL;
    }
}

static struct bh_json *list_json(struct bh_arena *a, const ProtobufCFieldDescriptor *f,
                                 const ProtobufCMessage *m)
{
    size_t n = *(const size_t *)((const char *)m + f->quantifier_offset);
    const char *items = *(char *const *)((const char *)m + f->offset);
    struct bh_json *arr = bh_json_new(a, BH_JSON_ARRAY);

    for (size_t i = 0; arr && i < n; i++) {
        bool skip = false;
        struct bh_json *v = value_json(a, f, items + i * bh_pb_element_size(f->type), &skip);
        if (!v && skip)
            v = bh_json_new(a, BH_JSON_NULL);
        if (!v)
            return NULL;
        bh_json_push(arr, v);
    }
    return arr;
}

struct map_item {
    const char *key;
    const ProtobufCMessage *entry;
    size_t order;
};

static int by_key(const void *pa, const void *pb)
{
    const struct map_item *a = pa, *b = pb;
    int c = strcmp(a->key, b->key);
    return c ? c : a->order < b->order ? -1 : 1;
}

static struct bh_json *map_json(struct bh_arena *a, const ProtobufCFieldDescriptor *f,
                                const ProtobufCMessage *m)
{
    size_t n = *(const size_t *)((const char *)m + f->quantifier_offset);
    ProtobufCMessage *const *entries = *(ProtobufCMessage * *const *)((const char *)m + f->offset);
    const ProtobufCFieldDescriptor *value =
        &((const ProtobufCMessageDescriptor *)f->descriptor)->fields[1];
    struct map_item *items = bh_arena_array(a, n, sizeof(*items));
    struct bh_json *obj = bh_json_new(a, BH_JSON_OBJECT);

    if (!items || !obj)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *key = *(char *const *)((const char *)entries[i] + sizeof(ProtobufCMessage));
        items[i] = (struct map_item){key ? key : "", entries[i], i};
    }
    qsort(items, n, sizeof(*items), by_key);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && bh_streq(items[i].key, items[i + 1].key))
            continue;
        const void *at = (const char *)items[i].entry + value->offset;
        bool skip = false;
        const char *key = bh_arena_strdup(a, items[i].key);
        struct bh_json *v;
        if (value->type == PROTOBUF_C_TYPE_MESSAGE && !*(void *const *)at)
            v = bh_json_new(a, BH_JSON_NULL);
        else
            v = value_json(a, value, at, &skip);
        if (!v && skip)
            v = bh_json_new(a, BH_JSON_NULL);
        if (!key || !add_member(obj, key, v))
            return NULL;
    }
    return obj;
}

static bool is_zero(const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
        return !*(char *const *)at || !**(char *const *)at;
    case PROTOBUF_C_TYPE_BOOL:
        return !*(const protobuf_c_boolean *)at;
    case PROTOBUF_C_TYPE_INT32:
        return *(const int32_t *)at == 0;
    case PROTOBUF_C_TYPE_INT64:
        return *(const int64_t *)at == 0;
    case PROTOBUF_C_TYPE_DOUBLE:
        return *(const double *)at == 0;
    default:
        return false;
    }
}

static bool is_printed(const char *always, const ProtobufCFieldDescriptor *f,
                       const ProtobufCMessage *m)
{
    const char *at = (const char *)m + f->offset;
    const char *quantifier = (const char *)m + f->quantifier_offset;

    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return *(const size_t *)quantifier != 0;
    if (f->type == PROTOBUF_C_TYPE_MESSAGE)
        return *(void *const *)at != NULL;
    if (f->default_value)
        return !is_zero(f, at) || bh_word_at(always, f->name) >= 0;
    if (f->type == PROTOBUF_C_TYPE_STRING)
        return *(void *const *)at != NULL;
    return *(const protobuf_c_boolean *)quantifier;
}

/* Appends m's printed fields to obj; false when out of memory. */
static bool members_of(struct bh_arena *a, struct bh_json *obj, const ProtobufCMessage *m)
{
    const ProtobufCFieldDescriptor *inlined = bh_schema_inlined(m->descriptor);
    const char *always = bh_schema_always(m->descriptor);

    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        const char *at = (const char *)m + f->offset;
        struct bh_json *v;
        bool skip = false;

        if (!is_printed(always, f, m))
            continue;
        if (f == inlined) {
            if (!members_of(a, obj, *(ProtobufCMessage *const *)at))
                return false;
            continue;
        }
        if (f->label != PROTOBUF_C_LABEL_REPEATED)
            v = value_json(a, f, at, &skip);
        else if (f->type == PROTOBUF_C_TYPE_MESSAGE &&
                 bh_json_form_of(f->descriptor) == BH_FORM_MAP_ENTRY)
            v = map_json(a, f, m);
        else
            v = list_json(a, f, m);
        if (skip)
            continue;
        if (!add_member(obj, f->name, v))
            return false;
    }
    return true;
}

struct bh_json *bh_pb_to_json(struct bh_arena *a, const ProtobufCMessage *m)
{
    bool skip = false;

    return message_json(a, m, &skip);
}
