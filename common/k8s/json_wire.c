/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/json_wire.c - JSON tree into protobuf bytes, without a message in between
 *
 * Owns:       a plan per message type, made when it is first met: its members by name, with their
 *             tags. Plans refer to each other and live as long as the set.
 * Invariants: accepts and refuses what json_to_pb.c does; what it writes unpacks to the same
 *             message (tests/unit/common/k8s/test_json_wire.c compares).
 */
#include "common/k8s/json_wire.h"

#include <errno.h>

#include "common/base/base64.h"
#include "common/base/map.h"
#include "common/k8s/codec.h"
#include "common/k8s/quantity.h"
#include "common/k8s/schema.h"

#define WIRE_VARINT  0u
#define WIRE_FIXED64 1u
#define WIRE_BYTES   2u
#define TAG_BYTES    5u
#define VARINT_BYTES 10u

struct plan;
struct member {
    const ProtobufCFieldDescriptor *f;
    size_t name_n;
    struct plan *sub;      /* of a message; NULL until it is first met */
    uint32_t tag, via_tag; /* via_tag: of the inlined message around it, 0 = none */
    bool is_map;
};
struct plan {
    struct bh_schema schema;
    struct member *members;
    size_t n_members;
    uint16_t *slots; /* by name: index + 1 into members, 0 = empty */
    uint32_t mask;
};
struct bh_wire_plans {
    struct bh_umap by_desc;
};

/* ---- plans ----------------------------------------------------------------------------------- */

static uint32_t name_hash(const char *p, size_t n)
{
    return n ? (uint32_t)(n * 37 + (uint8_t)p[0] * 5u + (uint8_t)p[n / 2] * 11u +
                          (uint8_t)p[n - 1] * 3u)
             : 0;
}

static struct member *find_member(const struct plan *p, struct bh_str name)
{
    for (uint32_t i = name_hash(name.p, name.n) & p->mask;; i = (i + 1) & p->mask) {
        struct member *m = p->slots[i] ? &p->members[p->slots[i] - 1] : NULL;
        if (!m || (m->name_n == name.n && memcmp(m->f->name, name.p, name.n) == 0))
            return m;
    }
}

static uint32_t tag_of(const ProtobufCFieldDescriptor *f)
{
    uint32_t type = f->type == PROTOBUF_C_TYPE_DOUBLE ? WIRE_FIXED64
                    : f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING ||
                            f->type == PROTOBUF_C_TYPE_BYTES
                        ? WIRE_BYTES
                        : WIRE_VARINT;
    return f->id << 3 | type;
}

/* The names of d that are not taken yet; via: d is inlined there. */
static void add_members(struct plan *p, const ProtobufCMessageDescriptor *d,
                        const ProtobufCFieldDescriptor *via)
{
    for (unsigned i = 0; i < d->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &d->fields[i];
        struct bh_str name = bh_str_c(f->name);
        if (f == p->schema.inlined || find_member(p, name))
            continue;
        bool message = f->type == PROTOBUF_C_TYPE_MESSAGE;
        p->members[p->n_members++] =
            (struct member){.f = f,
                            .name_n = name.n,
                            .tag = tag_of(f),
                            .via_tag = via ? tag_of(via) : 0,
                            .is_map = message && f->label == PROTOBUF_C_LABEL_REPEATED &&
                                      bh_schema_of(f->descriptor).form == BH_FORM_MAP_ENTRY};
        uint32_t at = name_hash(name.p, name.n) & p->mask;
        while (p->slots[at])
            at = (at + 1) & p->mask;
        p->slots[at] = (uint16_t)p->n_members;
    }
}

static struct plan *plan_of(struct bh_wire_plans *all, const ProtobufCMessageDescriptor *d)
{
    uint64_t found;

    if (bh_umap_get(&all->by_desc, (uintptr_t)d, &found))
        return (struct plan *)(uintptr_t)found;
    struct plan *p = bh_calloc(1, sizeof(*p));
    p->schema = bh_schema_of(d);
    const ProtobufCFieldDescriptor *in = p->schema.inlined;
    const ProtobufCMessageDescriptor *in_d = in ? in->descriptor : NULL;
    size_t n = d->n_fields + (in_d ? in_d->n_fields : 0), cap = 4;
    while (cap < 2 * n)
        cap *= 2;
    bh_assert(n < UINT16_MAX);
    p->members = bh_calloc(n ? n : 1, sizeof(*p->members));
    p->slots = bh_calloc(cap, sizeof(*p->slots));
    p->mask = (uint32_t)cap - 1;
    add_members(p, d, NULL);
    if (in_d)
        add_members(p, in_d, in);
    bh_umap_put(&all->by_desc, (uintptr_t)d, (uintptr_t)p);
    return p;
}

struct bh_wire_plans *bh_wire_plans_new(void)
{
    return bh_calloc(1, sizeof(struct bh_wire_plans));
}

void bh_wire_plans_free(struct bh_wire_plans *all)
{
    uint64_t d, v;

    if (!all)
        return;
    for (size_t it = 0; bh_umap_next(&all->by_desc, &it, &d, &v);) {
        struct plan *p = (struct plan *)(uintptr_t)v;
        free(p->members);
        free(p->slots);
        free(p);
    }
    bh_umap_fini(&all->by_desc);
    free(all);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

struct out {
    struct bh_wire_plans *plans;
    struct bh_buf *b;
};

static inline void room(struct out *o, size_t n)
{
    if (bh_unlikely(o->b->cap < o->b->n + n + 1))
        bh_buf_reserve(o->b, n + 1);
}

/* There is room for it. */
static inline void varint(struct out *o, uint64_t v)
{
    char *p = o->b->p + o->b->n;

    for (; v >= 0x80; v >>= 7)
        *p++ = (char)(v | 0x80);
    *p++ = (char)v;
    o->b->n = (size_t)(p - o->b->p);
}

static void add_number(struct out *o, uint32_t tag, uint64_t v)
{
    room(o, TAG_BYTES + VARINT_BYTES);
    varint(o, tag);
    varint(o, v);
}

static void add_bytes(struct out *o, uint32_t tag, const char *p, size_t n)
{
    room(o, TAG_BYTES + VARINT_BYTES + n);
    varint(o, tag);
    varint(o, n);
    if (n)
        memcpy(o->b->p + o->b->n, p, n);
    o->b->n += n;
}

/* Texts end at a NUL, as they do in messages. */
static void add_text(struct out *o, uint32_t tag, struct bh_str s)
{
    add_bytes(o, tag, s.p, s.n ? strnlen(s.p, s.n) : 0);
}

/* What follows goes into a message; its length is one byte until close_message() knows better. */
static size_t open_message(struct out *o, uint32_t tag)
{
    room(o, TAG_BYTES + 1);
    varint(o, tag);
    o->b->n++;
    return o->b->n;
}

static void close_message(struct out *o, size_t from)
{
    size_t n = o->b->n - from, more = 0;

    for (size_t v = n; v >= 0x80; v >>= 7)
        more++;
    if (more) {
        room(o, more);
        memmove(o->b->p + from + more, o->b->p + from, n);
    }
    o->b->n = from - 1;
    varint(o, n);
    o->b->n += n;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int put_message(struct out *o, const struct plan *p, const struct bh_json *v);
static int put_member(struct out *o, struct member *m, const struct bh_json *v);

static int put_quantity(struct out *o, const struct bh_json *v)
{
    struct bh_str s = v->s;
    bh_nano ignored;

    if (v->type != BH_JSON_STRING && v->type != BH_JSON_NUMBER)
        return -EINVAL;
    while (s.n && strchr(" \t\r\n", s.p[0]))
        s.p++, s.n--;
    while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    if (bh_quantity_parse(s.p, s.n, &ignored))
        return -EINVAL;
    add_text(o, 1 << 3 | WIRE_BYTES, s); /* Quantity.string */
    return 0;
}

static int put_time(struct out *o, const struct bh_json *v, bool micro)
{
    int64_t s;
    int32_t ns;

    if (v->type != BH_JSON_STRING)
        return -EINVAL;
    if (v->s.n == 0)
        return 0;
    if (bh_time_parse(v->s.p, v->s.n, &s, &ns))
        return -EINVAL;
    add_number(o, 1 << 3 | WIRE_VARINT, (uint64_t)s); /* Time.seconds, MicroTime.seconds */
    if (micro)
        add_number(o, 2 << 3 | WIRE_VARINT, (uint64_t)(ns / 1000 * 1000)); /* .nanos */
    return 0;
}

static int put_int_or_string(struct out *o, const struct bh_json *v)
{
    int64_t i;

    if (v->type == BH_JSON_STRING) {
        add_number(o, 1 << 3 | WIRE_VARINT, 1); /* IntOrString.type */
        add_text(o, 3 << 3 | WIRE_BYTES, v->s); /* .strVal */
        return 0;
    }
    if (!bh_json_i64(v, &i) || i < INT32_MIN || i > INT32_MAX)
        return -EINVAL;
    add_number(o, 1 << 3 | WIRE_VARINT, 0);
    add_number(o, 2 << 3 | WIRE_VARINT, (uint64_t)i); /* .intVal */
    return 0;
}

static void put_raw(struct out *o, const struct bh_json *v)
{
    size_t from = open_message(o, 1 << 3 | WIRE_BYTES); /* RawExtension.raw */

    bh_json_write(o->b, v);
    close_message(o, from);
}

static int put_bytes(struct out *o, uint32_t tag, const struct bh_json *v)
{
    size_t len;

    if (v->type != BH_JSON_STRING)
        return -EINVAL;
    size_t from = open_message(o, tag);
    room(o, BH_BASE64_ROOM(v->s.n) + 1);
    if (bh_base64_decode(v->s.p, v->s.n, o->b->p + o->b->n, &len) < 0)
        return -EINVAL;
    o->b->n += len;
    close_message(o, from);
    return 0;
}

static int put_number(struct out *o, const struct member *m, const struct bh_json *v)
{
    int64_t i;

    if (m->f->type == PROTOBUF_C_TYPE_DOUBLE) {
        if (v->type != BH_JSON_NUMBER)
            return -EINVAL;
        double d = strtod(v->s.p, NULL);
        room(o, TAG_BYTES + sizeof(d));
        varint(o, m->tag);
        memcpy(o->b->p + o->b->n, &d, sizeof(d)); /* little endian, as amd64 and arm64 are */
        o->b->n += sizeof(d);
        return 0;
    }
    if (!bh_json_i64(v, &i))
        return -EINVAL;
    if (m->f->type == PROTOBUF_C_TYPE_INT32 && (i < INT32_MIN || i > INT32_MAX))
        return -EINVAL;
    add_number(o, m->tag, (uint64_t)i);
    return 0;
}

static int put_value(struct out *o, struct member *m, const struct bh_json *v)
{
    switch (m->f->type) {
    case PROTOBUF_C_TYPE_MESSAGE: {
        if (!m->sub)
            m->sub = plan_of(o->plans, m->f->descriptor);
        size_t from = open_message(o, m->tag);
        int rc = put_message(o, m->sub, v);
        close_message(o, from);
        return rc;
    }
    case PROTOBUF_C_TYPE_STRING:
        if (v->type != BH_JSON_STRING)
            return -EINVAL;
        add_text(o, m->tag, v->s);
        return 0;
    case PROTOBUF_C_TYPE_BYTES:
        return put_bytes(o, m->tag, v);
    case PROTOBUF_C_TYPE_BOOL:
        if (v->type != BH_JSON_BOOL)
            return -EINVAL;
        add_number(o, m->tag, v->b);
        return 0;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return put_number(o, m, v);
    default:
        return -EINVAL;
    }
}

/* null in a list is the zero value of the element. */
static void put_null(struct out *o, const struct member *m)
{
    static const char zero[sizeof(double)];

    if (m->f->type == PROTOBUF_C_TYPE_DOUBLE) {
        room(o, TAG_BYTES + sizeof(zero));
        varint(o, m->tag);
        memcpy(o->b->p + o->b->n, zero, sizeof(zero));
        o->b->n += sizeof(zero);
    } else {
        add_number(o, m->tag, 0); /* also the length of an empty message or text */
    }
}

/* {"k": v, ...} as repeated entries. */
static int put_map(struct out *o, struct member *m, const struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT)
        return -EINVAL;
    if (!m->sub)
        m->sub = plan_of(o->plans, m->f->descriptor);
    struct member *value = &m->sub->members[1];
    bh_json_each(e, v) {
        size_t from = open_message(o, m->tag);
        add_text(o, m->sub->members[0].tag, e->key);
        int rc = 0;
        if (e->type != BH_JSON_NULL)
            rc = put_value(o, value, e);
        else if (value->f->type == PROTOBUF_C_TYPE_MESSAGE)
            put_null(o, value);
        if (rc)
            return rc;
        close_message(o, from);
    }
    return 0;
}

static int put_member(struct out *o, struct member *m, const struct bh_json *v)
{
    int rc = 0;

    if (m->is_map)
        return put_map(o, m, v);
    if (m->f->label != PROTOBUF_C_LABEL_REPEATED)
        return put_value(o, m, v);
    if (v->type != BH_JSON_ARRAY)
        return -EINVAL;
    for (const struct bh_json *e = v->c.first; e && !rc; e = e->next) {
        if (e->type == BH_JSON_NULL)
            put_null(o, m);
        else
            rc = put_value(o, m, e);
    }
    return rc;
}

static int put_object(struct out *o, const struct plan *p, const struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT)
        return -EINVAL;
    for (const struct bh_json *e = v->c.first; e; e = e->next) {
        struct member *m = e->type == BH_JSON_NULL ? NULL : find_member(p, e->key);
        size_t via = 0;
        if (!m)
            continue;
        if (m->via_tag)
            via = open_message(o, m->via_tag);
        int rc = put_member(o, m, e);
        if (rc)
            return rc;
        if (m->via_tag)
            close_message(o, via);
    }
    return 0;
}

static int put_message(struct out *o, const struct plan *p, const struct bh_json *v)
{
    switch (p->schema.form) {
    case BH_FORM_QUANTITY:
        return put_quantity(o, v);
    case BH_FORM_TIME:
    case BH_FORM_MICRO_TIME:
        return put_time(o, v, p->schema.form == BH_FORM_MICRO_TIME);
    case BH_FORM_INT_OR_STRING:
        return put_int_or_string(o, v);
    case BH_FORM_RAW:
        put_raw(o, v);
        return 0;
    case BH_FORM_STRING_LIST:
        return put_member(o, &p->members[0], v);
    case BH_FORM_OBJECT:
    case BH_FORM_MAP_ENTRY:
        return put_object(o, p, v);
    }
    return -EINVAL;
}

int bh_json_to_wire(struct bh_wire_plans *plans, const ProtobufCMessageDescriptor *d,
                    const struct bh_json *v, struct bh_buf *out)
{
    struct out o = {plans, out};
    size_t before = out->n;
    int rc = put_message(&o, plan_of(plans, d), v);

    if (rc)
        out->n = before;
    if (out->p)
        out->p[out->n] = '\0';
    return rc;
}
