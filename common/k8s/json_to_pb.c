/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/json_to_pb.c - JSON tree into protobuf bytes, and through them into a message
 *
 * One walk over the tree. Fields come in the order of the tree's members, not of their numbers, and
 * a message that JSON inlines (a volume's source) may come in parts: readers put both right, as the
 * format demands. Like Go's decoder: null means absent, names are case-sensitive.
 *
 * What writes a value returns NULL or what is wrong with it; the levels above put the path in front
 * ("spec.containers[2].resources.requests[cpu]"), so a good object pays nothing for it. Depth is
 * bounded by the schema, which is not recursive.
 *
 * Owns: a plan per message type, made when it is first met: its members by name, with their tags.
 *       Plans never change and live as long as the process.
 */
#include "common/k8s/codec.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "common/base/base64.h"
#include "common/base/map.h"
#include "common/k8s/quantity.h"
#include "common/k8s/schema.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define WIRE_VARINT  0u
#define WIRE_FIXED64 1u
#define WIRE_BYTES   2u
#define TAG_BYTES    5u
#define VARINT_BYTES 10u

struct plan;
struct member {
    const ProtobufCFieldDescriptor *f;
    size_t name_n;
    const struct plan *sub; /* of a message */
    uint32_t tag, via_tag;  /* via_tag: of the inlined message around it, 0 = none */
    bool is_map;
};
struct plan {
    struct bh_schema schema;
    struct member *members;
    size_t n_members;
    uint16_t *slots; /* by name: index + 1 into members, 0 = empty */
    uint32_t mask;
};

/* ---- plans ---- */

static uint32_t name_hash(const char *p, size_t n)
{
    return n ? (uint32_t)(n * 37 + (uint8_t)p[0] * 5u + (uint8_t)p[n / 2] * 11u +
                          (uint8_t)p[n - 1] * 3u)
             : 0;
}

static const struct member *find_member(const struct plan *p, struct bh_str name)
{
    for (uint32_t i = name_hash(name.p, name.n) & p->mask;; i = (i + 1) & p->mask) {
        const struct member *m = p->slots[i] ? &p->members[p->slots[i] - 1] : NULL;
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

static const struct plan *plan_of(struct bh_umap *all, const ProtobufCMessageDescriptor *d);

/* The names of d that are not taken yet; via: d is inlined there. */
static void add_members(struct bh_umap *all, struct plan *p, const ProtobufCMessageDescriptor *d,
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
                            .sub = message ? plan_of(all, f->descriptor) : NULL,
                            .is_map = message && f->label == PROTOBUF_C_LABEL_REPEATED &&
                                      bh_schema_of(f->descriptor).form == BH_FORM_MAP_ENTRY};
        uint32_t at = name_hash(name.p, name.n) & p->mask;
        while (p->slots[at])
            at = (at + 1) & p->mask;
        p->slots[at] = (uint16_t)p->n_members;
    }
}

static const struct plan *plan_of(struct bh_umap *all, const ProtobufCMessageDescriptor *d)
{
    uint64_t found;

    if (bh_umap_get(all, (uintptr_t)d, &found))
        return (const struct plan *)(uintptr_t)found;
    struct plan *p = bh_calloc(1, sizeof(*p));
    bh_umap_put(all, (uintptr_t)d, (uintptr_t)p);
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
    add_members(all, p, d, NULL);
    if (in_d)
        add_members(all, p, in_d, in);
    return p;
}

static const struct plan *known_plan(const ProtobufCMessageDescriptor *d)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct bh_umap all; /* by descriptor */

    pthread_mutex_lock(&lock);
    const struct plan *p = plan_of(&all, d);
    pthread_mutex_unlock(&lock);
    return p;
}

/* ---- bytes ---- */

struct out {
    struct bh_buf *b;
    const struct bh_json *root;
    unsigned dropped, empty; /* members without a place, lists without elements */
    char path[256];          /* of what is wrong, in its end */
    size_t path_n;
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

/* ---- values ---- */

static const char *put_message(struct out *o, const struct plan *p, const struct bh_json *v);

static void in_path(struct out *o, const char *mark, struct bh_str name)
{
    const size_t n = BH_MIN(name.n, sizeof(o->path) - o->path_n);

    memcpy(o->path + sizeof(o->path) - o->path_n - n, name.p + name.n - n, n);
    o->path_n += n;
    if (*mark)
        in_path(o, "", bh_str_c(mark));
}

/* A quantity must parse, as upstream's decoder demands; the text is kept as it came. */
static const char *put_quantity(struct out *o, const struct bh_json *v)
{
    struct bh_str s = v->s;
    bh_nano ignored;

    if (v->type != BH_JSON_STRING && v->type != BH_JSON_NUMBER)
        return "quantity must be a string or a number";
    while (s.n && strchr(" \t\r\n", s.p[0]))
        s.p++, s.n--;
    while (s.n && strchr(" \t\r\n", s.p[s.n - 1]))
        s.n--;
    if (bh_quantity_parse(s.p, s.n, &ignored))
        return "quantity does not parse";
    add_text(o, 1 << 3 | WIRE_BYTES, s); /* Quantity.string */
    return NULL;
}

/* Kubernetes keeps whole seconds in Time, microseconds in MicroTime. */
static const char *put_time(struct out *o, const struct bh_json *v, bool micro)
{
    int64_t s;
    int32_t ns;

    if (v->type != BH_JSON_STRING)
        return "time must be a string";
    if (v->s.n == 0)
        return NULL;
    if (bh_time_parse(v->s.p, v->s.n, &s, &ns))
        return "time is not RFC 3339";
    add_number(o, 1 << 3 | WIRE_VARINT, (uint64_t)s); /* Time.seconds, MicroTime.seconds */
    if (micro)
        add_number(o, 2 << 3 | WIRE_VARINT, (uint64_t)(ns / 1000 * 1000)); /* .nanos */
    return NULL;
}

static const char *put_int_or_string(struct out *o, const struct bh_json *v)
{
    int64_t i;

    if (v->type == BH_JSON_STRING) {
        add_number(o, 1 << 3 | WIRE_VARINT, 1); /* IntOrString.type */
        add_text(o, 3 << 3 | WIRE_BYTES, v->s); /* .strVal */
        return NULL;
    }
    if (!bh_json_i64(v, &i) || i < INT32_MIN || i > INT32_MAX)
        return "must be a string or a 32-bit integer";
    add_number(o, 1 << 3 | WIRE_VARINT, 0);
    add_number(o, 2 << 3 | WIRE_VARINT, (uint64_t)i); /* .intVal */
    return NULL;
}

static void put_raw(struct out *o, const struct bh_json *v)
{
    size_t from = open_message(o, 1 << 3 | WIRE_BYTES); /* RawExtension.raw */

    bh_json_write(o->b, v);
    close_message(o, from);
}

static const char *put_bytes(struct out *o, uint32_t tag, const struct bh_json *v)
{
    size_t len;

    if (v->type != BH_JSON_STRING)
        return "must be a base64 string";
    size_t from = open_message(o, tag);
    room(o, BH_BASE64_ROOM(v->s.n) + 1);
    if (bh_base64_decode(v->s.p, v->s.n, o->b->p + o->b->n, &len) < 0)
        return "must be a base64 string";
    o->b->n += len;
    close_message(o, from);
    return NULL;
}

static const char *put_number(struct out *o, const struct member *m, const struct bh_json *v)
{
    int64_t i;

    if (m->f->type == PROTOBUF_C_TYPE_DOUBLE) {
        if (v->type != BH_JSON_NUMBER)
            return "must be a number";
        double d = strtod(v->s.p, NULL);
        room(o, TAG_BYTES + sizeof(d));
        varint(o, m->tag);
        memcpy(o->b->p + o->b->n, &d, sizeof(d)); /* little endian, as amd64 and arm64 are */
        o->b->n += sizeof(d);
        return NULL;
    }
    if (!bh_json_i64(v, &i))
        return "must be an integer";
    if (m->f->type == PROTOBUF_C_TYPE_INT32 && (i < INT32_MIN || i > INT32_MAX))
        return "must be a 32-bit integer";
    add_number(o, m->tag, (uint64_t)i);
    return NULL;
}

static const char *put_value(struct out *o, const struct member *m, const struct bh_json *v)
{
    switch (m->f->type) {
    case PROTOBUF_C_TYPE_MESSAGE: {
        size_t from = open_message(o, m->tag);
        const char *why = put_message(o, m->sub, v);
        close_message(o, from);
        return why;
    }
    case PROTOBUF_C_TYPE_STRING:
        if (v->type != BH_JSON_STRING)
            return "must be a string";
        add_text(o, m->tag, v->s);
        return NULL;
    case PROTOBUF_C_TYPE_BYTES:
        return put_bytes(o, m->tag, v);
    case PROTOBUF_C_TYPE_BOOL:
        if (v->type != BH_JSON_BOOL)
            return "must be true or false";
        add_number(o, m->tag, v->b);
        return NULL;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return put_number(o, m, v);
    default:
        return "has a type that the decoder does not know";
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
static const char *put_map(struct out *o, const struct member *m, const struct bh_json *v)
{
    const struct member *value = &m->sub->members[1];

    if (v->type != BH_JSON_OBJECT)
        return "must be an object";
    bh_json_each(e, v) {
        size_t from = open_message(o, m->tag);
        const char *why = NULL;
        add_text(o, m->sub->members[0].tag, e->key);
        if (e->type != BH_JSON_NULL)
            why = put_value(o, value, e);
        else if (value->f->type == PROTOBUF_C_TYPE_MESSAGE)
            put_null(o, value);
        if (why) {
            in_path(o, ".", e->key);
            return why;
        }
        close_message(o, from);
    }
    return NULL;
}

static const char *put_list(struct out *o, const struct member *m, const struct bh_json *v)
{
    char index[32];
    size_t i = 0;

    if (v->type != BH_JSON_ARRAY)
        return "must be a list";
    o->empty += v->c.n == 0;
    for (const struct bh_json *e = v->c.first; e; e = e->next, i++) {
        const char *why = NULL;
        if (e->type == BH_JSON_NULL)
            put_null(o, m);
        else
            why = put_value(o, m, e);
        if (why) {
            snprintf(index, sizeof(index), "[%zu]", i);
            in_path(o, "", bh_str_c(index));
            return why;
        }
    }
    return NULL;
}

static const char *put_member(struct out *o, const struct member *m, const struct bh_json *v)
{
    if (m->is_map)
        return put_map(o, m, v);
    return m->f->label == PROTOBUF_C_LABEL_REPEATED ? put_list(o, m, v) : put_value(o, m, v);
}

/* Members that are no part of the schema on purpose: type meta, and managedFields (trimmed). */
static bool known_unknown(const struct plan *p, bool root, struct bh_str name)
{
    if (root && (bh_str_eqc(name, "apiVersion") || bh_str_eqc(name, "kind")))
        return true;
    return p->schema.desc == &k8s__object_meta__descriptor && bh_str_eqc(name, "managedFields");
}

static const char *put_object(struct out *o, const struct plan *p, const struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT)
        return "must be an object";
    for (const struct bh_json *e = v->c.first; e; e = e->next) {
        const struct member *m = e->type == BH_JSON_NULL ? NULL : find_member(p, e->key);
        size_t via = 0;
        if (!m) {
            o->dropped += e->type != BH_JSON_NULL && !known_unknown(p, v == o->root, e->key);
            continue;
        }
        if (m->via_tag)
            via = open_message(o, m->via_tag);
        const char *why = put_member(o, m, e);
        if (why) {
            in_path(o, v == o->root ? "" : ".", e->key);
            return why;
        }
        if (m->via_tag)
            close_message(o, via);
    }
    return NULL;
}

static const char *put_message(struct out *o, const struct plan *p, const struct bh_json *v)
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
        return NULL;
    case BH_FORM_STRING_LIST:
        return put_member(o, &p->members[0], v);
    case BH_FORM_OBJECT:
    case BH_FORM_MAP_ENTRY:
        break;
    }
    return put_object(o, p, v);
}

/* Appends v as a message of type d; out stays as it was when that fails. */
static int write_tree(struct out *o, const struct plan *p, const struct bh_json *v,
                      struct bh_err *err)
{
    size_t before = o->b->n;
    const char *why = put_message(o, p, v);

    if (why)
        o->b->n = before;
    if (o->b->p)
        o->b->p[o->b->n] = '\0';
    return why ? bh_err_set(err, -EINVAL, "%s: %.*s%s%s", p->schema.desc->short_name,
                            (int)o->path_n, o->path + sizeof(o->path) - o->path_n,
                            o->path_n ? ": " : "", why)
               : 0;
}

/* An empty list keeps a pointer, which bytes cannot tell: "preferred: []" differs from no list in a
 * few places. */
static void keep_empty_lists(const struct plan *p, const struct bh_json *v, ProtobufCMessage *m)
{
    static void *nothing;

    if (p->schema.form != BH_FORM_OBJECT)
        return;
    bh_json_each(e, v) {
        const struct member *f = e->type == BH_JSON_NULL ? NULL : find_member(p, e->key);
        if (!f || f->is_map)
            continue;
        const char *owner =
            f->via_tag ? *(char **)((char *)m + p->schema.inlined->offset) : (const char *)m;
        void **at = (void **)(owner + f->f->offset);
        if (f->f->label != PROTOBUF_C_LABEL_REPEATED) {
            if (f->sub)
                keep_empty_lists(f->sub, e, *at);
        } else if (e->c.n == 0) {
            *at = &nothing;
        } else if (f->sub) {
            ProtobufCMessage **element = *at;
            bh_json_each(child, e)
                keep_empty_lists(f->sub, child, *element++);
        }
    }
}

int bh_json_to_wire(const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                    struct bh_buf *out, struct bh_err *err)
{
    struct out o = {.b = out, .root = v};

    return write_tree(&o, known_plan(d), v, err);
}

int bh_json_to_pb(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                  ProtobufCMessage **ret_m, unsigned *ret_dropped, struct bh_err *err)
{
    struct bh_buf wire BH_CLEANUP(bh_buf_fini) = {0};
    struct out o = {.b = &wire, .root = v};
    const struct plan *p = known_plan(d);

    bh_buf_reserve(&wire, 4096); /* most objects */
    int rc = write_tree(&o, p, v, err);
    rc = rc ? rc : bh_pb_unpack(a, d, wire.p, wire.n, ret_m, err);
    if (rc)
        return rc;
    if (o.empty)
        keep_empty_lists(p, v, *ret_m);
    if (ret_dropped)
        *ret_dropped = o.dropped;
    return 0;
}
