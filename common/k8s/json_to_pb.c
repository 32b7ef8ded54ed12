/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/json_to_pb.c - JSON tree into a protobuf-c message, by walking the descriptor
 *
 * One function per JSON form; a frame on the C stack per level, chained upwards, so that an error
 * can name its path ("spec.containers[2].resources.requests[cpu]") and a good object pays nothing
 * for it. Depth is bounded by the schema, which is not recursive. Like Go's decoder: null means
 * absent, names are case-sensitive, a later duplicate wins.
 */
#include "common/k8s/codec.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/base64.h"
#include "common/k8s/quantity.h"
#include "common/k8s/schema.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

struct frame {
    const struct frame *up;
    const char *name; /* member or map key; NULL = array element */
    size_t index;
};
struct conv {
    struct bh_arena *a;
    struct bh_err *err;
    unsigned dropped;
};

static int message_from(struct conv *c, const struct frame *fr, const ProtobufCMessageDescriptor *d,
                        const struct bh_json *v, ProtobufCMessage **ret);

/* Outermost first; returns the length written. */
static size_t write_path(const struct frame *fr, char *out, size_t cap)
{
    if (!fr)
        return 0;
    size_t n = write_path(fr->up, out, cap);
    if (n + 1 >= cap)
        return n;
    int k = fr->name ? snprintf(out + n, cap - n, "%s%s", n ? "." : "", fr->name)
                     : snprintf(out + n, cap - n, "[%zu]", fr->index);
    return BH_MIN(n + (size_t)BH_MAX(k, 0), cap - 1);
}

static int fail(struct conv *c, const struct frame *fr, int rc, const char *what)
{
    char path[256] = "";

    write_path(fr, path, sizeof(path));
    return bh_err_set(c->err, rc, "%s%s%s", path, *path ? ": " : "", what);
}

static int no_memory(struct conv *c, const struct frame *fr)
{
    return fail(c, fr, -E2BIG, "needs more memory than allowed");
}

/* A quantity must parse, as upstream's decoder demands; the text is kept as it came. */
static int quantity_from(struct conv *c, const struct frame *fr, const struct bh_json *v,
                         K8s__Quantity *q)
{
    struct bh_str s = v->s;
    bh_nano ignored;

    if (v->type != BH_JSON_STRING && v->type != BH_JSON_NUMBER)
        return fail(c, fr, -EINVAL, "quantity must be a string or a number");
    while (s.n && strchr(" \t\r\n", s.p[0]))
        s.p++, s.n--;
    while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    if (bh_quantity_parse(s.p, s.n, &ignored))
        return fail(c, fr, -EINVAL, "quantity does not parse");
    q->string = bh_arena_strndup(c->a, s.p, s.n);
    return q->string ? 0 : no_memory(c, fr);
}

static int time_from(struct conv *c, const struct frame *fr, const struct bh_json *v, bool micro,
                     ProtobufCMessage *m)
{
    int64_t s;
    int32_t ns;

    if (v->type != BH_JSON_STRING)
        return fail(c, fr, -EINVAL, "time must be a string");
    if (v->s.n == 0)
        return 0;
    if (bh_time_parse(v->s.p, v->s.n, &s, &ns))
        return fail(c, fr, -EINVAL, "time is not RFC 3339");
    /* Kubernetes keeps whole seconds in Time, microseconds in MicroTime. */
    if (micro) {
        K8s__MicroTime *t = (K8s__MicroTime *)m;
        t->has_seconds = t->has_nanos = true;
        t->seconds = s;
        t->nanos = ns / 1000 * 1000;
    } else {
        K8s__Time *t = (K8s__Time *)m;
        t->has_seconds = true;
        t->seconds = s;
    }
    return 0;
}

static int int_or_string_from(struct conv *c, const struct frame *fr, const struct bh_json *v,
                              K8s__IntOrString *m)
{
    int64_t i;

    m->has_type = true;
    if (v->type == BH_JSON_STRING) {
        m->type = 1;
        m->strval = bh_arena_strndup(c->a, v->s.p, v->s.n);
        return m->strval ? 0 : no_memory(c, fr);
    }
    if (!bh_json_i64(v, &i) || i < INT32_MIN || i > INT32_MAX)
        return fail(c, fr, -EINVAL, "must be a string or a 32-bit integer");
    m->type = 0;
    m->has_intval = true;
    m->intval = (int32_t)i;
    return 0;
}

static int raw_from(struct conv *c, const struct frame *fr, const struct bh_json *v,
                    K8s__RawExtension *m)
{
    struct bh_buf text = {0};

    bh_json_write(&text, v);
    m->raw.data = bh_arena_memdup(c->a, text.p, text.n);
    m->raw.len = text.n;
    m->has_raw = true;
    bh_buf_fini(&text);
    return m->raw.data ? 0 : no_memory(c, fr);
}

static int string_from(struct conv *c, const struct frame *fr, const struct bh_json *v, char **ret)
{
    if (v->type != BH_JSON_STRING)
        return fail(c, fr, -EINVAL, "must be a string");
    *ret = bh_arena_strndup(c->a, v->s.p, v->s.n);
    return *ret ? 0 : no_memory(c, fr);
}

static int bytes_from(struct conv *c, const struct frame *fr, const struct bh_json *v,
                      ProtobufCBinaryData *ret)
{
    if (v->type != BH_JSON_STRING)
        return fail(c, fr, -EINVAL, "must be a base64 string");
    ret->data = bh_arena_alloc(c->a, BH_BASE64_ROOM(v->s.n) + 1);
    if (!ret->data)
        return no_memory(c, fr);
    return bh_base64_decode(v->s.p, v->s.n, ret->data, &ret->len) == 0
               ? 0
               : fail(c, fr, -EINVAL, "must be a base64 string");
}

static int number_from(struct conv *c, const struct frame *fr, ProtobufCType type,
                       const struct bh_json *v, void *at)
{
    int64_t i;

    if (type == PROTOBUF_C_TYPE_DOUBLE) {
        if (v->type != BH_JSON_NUMBER)
            return fail(c, fr, -EINVAL, "must be a number");
        *(double *)at = strtod(v->s.p, NULL);
        return 0;
    }
    if (!bh_json_i64(v, &i))
        return fail(c, fr, -EINVAL, "must be an integer");
    if (type == PROTOBUF_C_TYPE_INT64) {
        *(int64_t *)at = i;
        return 0;
    }
    if (i < INT32_MIN || i > INT32_MAX)
        return fail(c, fr, -EINVAL, "must be a 32-bit integer");
    *(int32_t *)at = (int32_t)i;
    return 0;
}

/* One value of field f, stored at `at` (a member, or an element of a repeated member's array). */
static int value_from(struct conv *c, const struct frame *fr, const ProtobufCFieldDescriptor *f,
                      const struct bh_json *v, void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return message_from(c, fr, f->descriptor, v, at);
    case PROTOBUF_C_TYPE_STRING:
        return string_from(c, fr, v, at);
    case PROTOBUF_C_TYPE_BYTES:
        return bytes_from(c, fr, v, at);
    case PROTOBUF_C_TYPE_BOOL:
        if (v->type != BH_JSON_BOOL)
            return fail(c, fr, -EINVAL, "must be true or false");
        *(protobuf_c_boolean *)at = v->b;
        return 0;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return number_from(c, fr, f->type, v, at);
    default:
        return fail(c, fr, -EINVAL, "has a type that the decoder does not know");
    }
}

static ProtobufCMessage *new_message(struct conv *c, const ProtobufCMessageDescriptor *d)
{
    ProtobufCMessage *m = bh_arena_alloc(c->a, d->sizeof_message);
    if (m)
        protobuf_c_message_init(d, m);
    return m;
}

/* null in a list is the zero value of the element. */
static int null_element(struct conv *c, const struct frame *fr, const ProtobufCFieldDescriptor *f,
                        void *at)
{
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *m = new_message(c, f->descriptor);
        *(ProtobufCMessage **)at = m;
        return m ? 0 : no_memory(c, fr);
    }
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        *(char **)at = bh_arena_strdup(c->a, "");
        return *(char **)at ? 0 : no_memory(c, fr);
    }
    return 0;
}

/* {"k": v, ...} as repeated entries. */
static int map_from(struct conv *c, const struct frame *fr, const ProtobufCMessageDescriptor *entry,
                    const struct bh_json *v, ProtobufCMessage **out)
{
    const ProtobufCFieldDescriptor *key = &entry->fields[0], *value = &entry->fields[1];
    size_t i = 0;

    bh_json_each(member, v) {
        struct frame here = {fr, member->key.p, 0};
        ProtobufCMessage *m = out[i++] = new_message(c, entry);
        int rc;

        if (!m)
            return no_memory(c, &here);
        char *text = bh_arena_strndup(c->a, member->key.p, member->key.n);
        if (!text)
            return no_memory(c, &here);
        *(char **)((char *)m + key->offset) = text;
        if (member->type == BH_JSON_NULL) {
            rc = value->type == PROTOBUF_C_TYPE_MESSAGE
                     ? null_element(c, &here, value, (char *)m + value->offset)
                     : 0;
        } else {
            rc = value_from(c, &here, value, member, (char *)m + value->offset);
            if (value->type == PROTOBUF_C_TYPE_BYTES)
                *(protobuf_c_boolean *)((char *)m + value->quantifier_offset) = true;
        }
        if (rc)
            return rc;
    }
    return 0;
}

static int repeated_from(struct conv *c, const struct frame *fr, const ProtobufCFieldDescriptor *f,
                         const struct bh_json *v, ProtobufCMessage *m)
{
    const ProtobufCMessageDescriptor *d = f->type == PROTOBUF_C_TYPE_MESSAGE ? f->descriptor : NULL;
    bool is_map = d && bh_schema_of(d).form == BH_FORM_MAP_ENTRY;
    size_t size = bh_pb_element_size(f->type), i = 0;

    if (v->type != (is_map ? BH_JSON_OBJECT : BH_JSON_ARRAY))
        return fail(c, fr, -EINVAL, is_map ? "must be an object" : "must be a list");
    /* An empty list keeps a pointer: "preferred: []" differs from no list in a few places. */
    char *items = bh_arena_array(c->a, v->c.n + 1, size);
    if (!items)
        return no_memory(c, fr);
    memset(items, 0, (v->c.n + 1) * size);
    if (is_map) {
        int rc = map_from(c, fr, d, v, (ProtobufCMessage **)items);
        if (rc)
            return rc;
    } else {
        bh_json_each(child, v) {
            struct frame here = {fr, NULL, i};
            void *at = items + i++ * size;
            int rc = child->type == BH_JSON_NULL ? null_element(c, &here, f, at)
                                                 : value_from(c, &here, f, child, at);
            if (rc)
                return rc;
        }
    }
    *(void **)((char *)m + f->offset) = items;
    *(size_t *)((char *)m + f->quantifier_offset) = v->c.n;
    return 0;
}

static int field_from(struct conv *c, const struct frame *fr, const ProtobufCFieldDescriptor *f,
                      const struct bh_json *v, ProtobufCMessage *m)
{
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return repeated_from(c, fr, f, v, m);
    int rc = value_from(c, fr, f, v, (char *)m + f->offset);
    if (rc == 0 && f->type != PROTOBUF_C_TYPE_MESSAGE && f->type != PROTOBUF_C_TYPE_STRING)
        *(protobuf_c_boolean *)((char *)m + f->quantifier_offset) = true;
    return rc;
}

/* The member that holds JSON name `name`: m's own, or one of the message inlined into it. */
static const ProtobufCFieldDescriptor *find_field(struct conv *c, const struct bh_schema *s,
                                                  const char *name, ProtobufCMessage **m)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field_by_name(s->desc, name);

    if (!s->inlined)
        return f;
    if (f)
        return f == s->inlined ? NULL : f;
    f = protobuf_c_message_descriptor_get_field_by_name(s->inlined->descriptor, name);
    if (!f)
        return NULL;
    ProtobufCMessage **sub = (ProtobufCMessage **)((char *)*m + s->inlined->offset);
    if (!*sub)
        *sub = new_message(c, s->inlined->descriptor);
    *m = *sub;
    return f;
}

/* Members that are no part of the schema on purpose: type meta, and managedFields (trimmed). */
static bool known_unknown(const struct frame *fr, const ProtobufCMessageDescriptor *d,
                          const char *name)
{
    if (!fr && (bh_streq(name, "apiVersion") || bh_streq(name, "kind")))
        return true;
    return d == &k8s__object_meta__descriptor && bh_streq(name, "managedFields");
}

static int object_from(struct conv *c, const struct frame *fr, const struct bh_schema *s,
                       const struct bh_json *v, ProtobufCMessage *m)
{
    if (v->type != BH_JSON_OBJECT)
        return fail(c, fr, -EINVAL, "must be an object");
    bh_json_each(member, v) {
        struct frame here = {fr, member->key.p, 0};
        ProtobufCMessage *owner = m;

        if (member->type == BH_JSON_NULL)
            continue;
        const ProtobufCFieldDescriptor *f = find_field(c, s, member->key.p, &owner);
        if (!f) {
            c->dropped += !known_unknown(fr, s->desc, member->key.p);
            continue;
        }
        if (!owner)
            return no_memory(c, &here);
        int rc = field_from(c, &here, f, member, owner);
        if (rc)
            return rc;
    }
    return 0;
}

static int string_list_from(struct conv *c, const struct frame *fr, const struct bh_schema *s,
                            const struct bh_json *v, ProtobufCMessage *m)
{
    return repeated_from(c, fr, &s->desc->fields[0], v, m);
}

static int message_from(struct conv *c, const struct frame *fr, const ProtobufCMessageDescriptor *d,
                        const struct bh_json *v, ProtobufCMessage **ret)
{
    struct bh_schema s = bh_schema_of(d);
    ProtobufCMessage *m = new_message(c, d);
    int rc = 0;

    if (!m)
        return no_memory(c, fr);
    switch (s.form) {
    case BH_FORM_QUANTITY:
        rc = quantity_from(c, fr, v, (K8s__Quantity *)m);
        break;
    case BH_FORM_TIME:
    case BH_FORM_MICRO_TIME:
        rc = time_from(c, fr, v, s.form == BH_FORM_MICRO_TIME, m);
        break;
    case BH_FORM_INT_OR_STRING:
        rc = int_or_string_from(c, fr, v, (K8s__IntOrString *)m);
        break;
    case BH_FORM_RAW:
        rc = raw_from(c, fr, v, (K8s__RawExtension *)m);
        break;
    case BH_FORM_STRING_LIST:
        rc = string_list_from(c, fr, &s, v, m);
        break;
    case BH_FORM_OBJECT:
    case BH_FORM_MAP_ENTRY:
        rc = object_from(c, fr, &s, v, m);
        break;
    }
    if (rc == 0)
        *ret = m;
    return rc;
}

int bh_json_to_pb(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                  ProtobufCMessage **ret_m, unsigned *ret_dropped, struct bh_err *err)
{
    struct conv c = {a, err, 0};
    int rc = message_from(&c, NULL, d, v, ret_m);

    if (rc)
        return bh_err_prefix(err, rc, "%s", d->short_name);
    if (ret_dropped)
        *ret_dropped = c.dropped;
    return 0;
}
