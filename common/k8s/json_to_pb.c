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
 */
#include "common/k8s/codec.h"

#include <errno.h>
#include <stdio.h>

#include "common/base/base64.h"
#include "common/k8s/quantity.h"
#include "common/k8s/schema.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define WIRE_VARINT  0u
#define WIRE_FIXED64 1u
#define WIRE_BYTES   2u
#define TAG_BYTES    5u
#define VARINT_BYTES 10u

static uint32_t tag_of(const ProtobufCFieldDescriptor *f)
{
    uint32_t type = f->type == PROTOBUF_C_TYPE_DOUBLE ? WIRE_FIXED64
                    : f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_STRING ||
                            f->type == PROTOBUF_C_TYPE_BYTES
                        ? WIRE_BYTES
                        : WIRE_VARINT;
    return f->id << 3 | type;
}

/* Fields are looked for by the names of a JSON object's members, which mostly come in their order. */
struct search {
    const ProtobufCMessageDescriptor *d;
    unsigned at; /* where the next one is looked for first */
};

/* NULL also for the member that is inlined. Forward from the last one, once around: a look at two
 * letters a field costs less than protobuf-c's bisection. */
static const ProtobufCFieldDescriptor *find_field(struct search *s, const char *name)
{
    const ProtobufCFieldDescriptor *fields = s->d->fields;
    const unsigned n = s->d->n_fields;

    for (unsigned left = n, i = s->at; left; left--, i++) {
        i = i < n ? i : 0;
        const char *known = fields[i].name;
        if (known[0] != name[0] || known[1] != name[1] || !bh_streq(known, name))
            continue;
        s->at = i + 1;
        const bool inlined = fields[i].type == PROTOBUF_C_TYPE_MESSAGE &&
                             fields[i].label != PROTOBUF_C_LABEL_REPEATED &&
                             &fields[i] == bh_schema_inlined(s->d);
        return inlined ? NULL : &fields[i];
    }
    return NULL;
}

static bool is_map(const ProtobufCFieldDescriptor *f)
{
    return f->type == PROTOBUF_C_TYPE_MESSAGE && f->label == PROTOBUF_C_LABEL_REPEATED &&
           bh_json_form_of(f->descriptor) == BH_FORM_MAP_ENTRY;
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

static void add_text(struct out *o, uint32_t tag, struct bh_str s)
{
    room(o, TAG_BYTES + VARINT_BYTES + s.n);
    varint(o, tag);
    varint(o, s.n);
    if (s.n)
        memcpy(o->b->p + o->b->n, s.p, s.n);
    o->b->n += s.n;
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

static const char *put_message(struct out *o, const ProtobufCMessageDescriptor *d,
                               const struct bh_json *v);

static void in_path(struct out *o, const char *mark, struct bh_str name)
{
    const size_t n = BH_MIN(name.n, sizeof(o->path) - o->path_n);

    memcpy(o->path + sizeof(o->path) - o->path_n - n, name.p + name.n - n, n);
    o->path_n += n;
    if (*mark)
        in_path(o, "", bh_str_c(mark));
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

static const char *put_number(struct out *o, const ProtobufCFieldDescriptor *f,
                              const struct bh_json *v)
{
    int64_t i;

    if (f->type == PROTOBUF_C_TYPE_DOUBLE) {
        if (v->type != BH_JSON_NUMBER)
            return "must be a number";
        double d = strtod(v->s.p, NULL);
        room(o, TAG_BYTES + sizeof(d));
        varint(o, tag_of(f));
        memcpy(o->b->p + o->b->n, &d, sizeof(d)); /* little endian, as amd64 and arm64 are */
        o->b->n += sizeof(d);
        return NULL;
    }
    if (!bh_json_i64(v, &i))
        return "must be an integer";
    if (f->type == PROTOBUF_C_TYPE_INT32 && (i < INT32_MIN || i > INT32_MAX))
        return "must be a 32-bit integer";
    add_number(o, tag_of(f), (uint64_t)i);
    return NULL;
}

static const char *put_value(struct out *o, const ProtobufCFieldDescriptor *f,
                             const struct bh_json *v)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE: {
        size_t from = open_message(o, tag_of(f));
        const char *why = put_message(o, f->descriptor, v);
        close_message(o, from);
        return why;
    }
    case PROTOBUF_C_TYPE_STRING:
        if (v->type != BH_JSON_STRING)
            return "must be a string";
        add_text(o, tag_of(f), v->s);
        return NULL;
    case PROTOBUF_C_TYPE_BYTES: {
        uint32_t tag = tag_of(f);
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
    case PROTOBUF_C_TYPE_BOOL:
        if (v->type != BH_JSON_BOOL)
            return "must be true or false";
        add_number(o, tag_of(f), v->b);
        return NULL;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return put_number(o, f, v);
    default:
        return "has a type that the decoder does not know";
    }
}

/* null in a list is the zero value of the element. */
static void put_null(struct out *o, const ProtobufCFieldDescriptor *f)
{
    static const char zero[sizeof(double)];

    if (f->type == PROTOBUF_C_TYPE_DOUBLE) {
        room(o, TAG_BYTES + sizeof(zero));
        varint(o, tag_of(f));
        memcpy(o->b->p + o->b->n, zero, sizeof(zero));
        o->b->n += sizeof(zero);
    } else {
        add_number(o, tag_of(f), 0); /* also the length of an empty message or text */
    }
}

/* {"k": v, ...} as repeated entries. */
static const char *put_map(struct out *o, const ProtobufCFieldDescriptor *f,
                           const struct bh_json *v)
{
    const ProtobufCFieldDescriptor *entry =
        ((const ProtobufCMessageDescriptor *)f->descriptor)->fields;

    if (v->type != BH_JSON_OBJECT)
        return "must be an object";
    bh_json_each(e, v) {
        size_t from = open_message(o, tag_of(f));
        const char *why = NULL;
        add_text(o, tag_of(&entry[0]), e->key);
        if (e->type != BH_JSON_NULL)
            why = put_value(o, &entry[1], e);
        else if (entry[1].type == PROTOBUF_C_TYPE_MESSAGE)
            put_null(o, &entry[1]);
        if (why) {
            in_path(o, ".", e->key);
            return why;
        }
        close_message(o, from);
    }
    return NULL;
}

static const char *put_list(struct out *o, const ProtobufCFieldDescriptor *f,
                            const struct bh_json *v)
{
    char index[32];
    size_t i = 0;

    if (v->type != BH_JSON_ARRAY)
        return "must be a list";
    o->empty += v->c.n == 0;
    for (const struct bh_json *e = v->c.first; e; e = e->next, i++) {
        const char *why = NULL;
        if (e->type == BH_JSON_NULL)
            put_null(o, f);
        else
            why = put_value(o, f, e);
        if (why) {
            snprintf(index, sizeof(index), "[%zu]", i);
            in_path(o, "", bh_str_c(index));
            return why;
        }
    }
    return NULL;
}

static const char *put_member(struct out *o, const ProtobufCFieldDescriptor *f,
                              const struct bh_json *v)
{
    if (f->label != PROTOBUF_C_LABEL_REPEATED)
        return put_value(o, f, v);
    return is_map(f) ? put_map(o, f, v) : put_list(o, f, v);
}

/* Members that are no part of the schema on purpose: type meta, and managedFields (trimmed). */
static bool known_unknown(const ProtobufCMessageDescriptor *d, bool root, struct bh_str name)
{
    if (root && (bh_str_eqc(name, "apiVersion") || bh_str_eqc(name, "kind")))
        return true;
    return d == &k8s__object_meta__descriptor && bh_str_eqc(name, "managedFields");
}

/* e into the field of its name, or that of an inlined message; *ret_known false: there is none. */
static const char *put_named(struct out *o, struct search *s, const struct bh_json *e,
                             bool *ret_known)
{
    const ProtobufCFieldDescriptor *f = find_field(s, e->key.p);

    *ret_known = f != NULL;
    const ProtobufCFieldDescriptor *inlined = f ? NULL : bh_schema_inlined(s->d);
    if (!inlined)
        return f ? put_member(o, f, e) : NULL;
    struct search in = {.d = inlined->descriptor};
    const size_t before = o->b->n, from = open_message(o, tag_of(inlined));
    const char *why = put_named(o, &in, e, ret_known);
    if (*ret_known)
        close_message(o, from);
    else
        o->b->n = before;
    return why;
}

static const char *put_object(struct out *o, const ProtobufCMessageDescriptor *d,
                              const struct bh_json *v)
{
    struct search s = {.d = d};

    if (v->type != BH_JSON_OBJECT)
        return "must be an object";
    bh_json_each(e, v) {
        bool known = true;
        const char *why = e->type == BH_JSON_NULL ? NULL : put_named(o, &s, e, &known);
        if (why) {
            in_path(o, v == o->root ? "" : ".", e->key);
            return why;
        }
        o->dropped += !known && !known_unknown(d, v == o->root, e->key);
    }
    return NULL;
}

static const char *put_message(struct out *o, const ProtobufCMessageDescriptor *d,
                               const struct bh_json *v)
{
    const enum bh_json_form form = bh_json_form_of(d);

    switch (form) {
    case BH_FORM_QUANTITY: {
        /* A quantity must parse, as upstream's decoder demands; the text is kept as it came. */
        struct bh_str s = v->s;
        bh_nano ignored;
        if (v->type != BH_JSON_STRING && v->type != BH_JSON_NUMBER)
            return "quantity must be a string or a number";
        while (s.n && *s.p <= ' ' && memchr(" \t\r\n", *s.p, 4))
            s.p++, s.n--;
        while (s.n && s.p[s.n - 1] <= ' ' && memchr(" \t\r\n", s.p[s.n - 1], 4))
            s.n--;
        if (bh_quantity_parse(s.p, s.n, &ignored))
            return "quantity does not parse";
        add_text(o, 1 << 3 | WIRE_BYTES, s); /* Quantity.string */
        return NULL;
    }
    case BH_FORM_TIME:
    case BH_FORM_MICRO_TIME:
        return put_time(o, v, form == BH_FORM_MICRO_TIME);
    case BH_FORM_INT_OR_STRING: {
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
    case BH_FORM_RAW: {
        size_t from = open_message(o, 1 << 3 | WIRE_BYTES); /* RawExtension.raw */
        bh_json_write(o->b, v);
        close_message(o, from);
    }
        return NULL;
    case BH_FORM_STRING_LIST:
        return put_list(o, &d->fields[0], v);
    case BH_FORM_OBJECT:
    case BH_FORM_MAP_ENTRY:
        break;
    }
    return put_object(o, d, v);
}

/* Appends v as a message of type d; out stays as it was when that fails. */
static int write_tree(struct out *o, const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                      struct bh_err *err)
{
    size_t before = o->b->n;
    const char *why = put_message(o, d, v);

    if (why)
        o->b->n = before;
    if (o->b->p)
        o->b->p[o->b->n] = '\0';
    return why ? bh_err_set(err, -EINVAL, "%s: %.*s%s%s", d->short_name, (int)o->path_n,
                            o->path + sizeof(o->path) - o->path_n, o->path_n ? ": " : "", why)
               : 0;
}

/* An empty list keeps a pointer, which bytes cannot tell: "preferred: []" differs from no list in a
 * few places. */
static void keep_empty_lists(const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                             ProtobufCMessage *m)
{
    static void *nothing;
    struct search s = {.d = d};

    if (bh_json_form_of(d) != BH_FORM_OBJECT)
        return;
    bh_json_each(e, v) {
        const ProtobufCFieldDescriptor *f =
            e->type == BH_JSON_NULL ? NULL : find_field(&s, e->key.p);
        if (!f || is_map(f))
            continue;
        const bool message = f->type == PROTOBUF_C_TYPE_MESSAGE;
        void **at = (void **)((char *)m + f->offset);
        if (f->label != PROTOBUF_C_LABEL_REPEATED) {
            if (message)
                keep_empty_lists(f->descriptor, e, *at);
        } else if (e->c.n == 0) {
            *at = &nothing;
        } else if (message) {
            ProtobufCMessage **element = *at;
            bh_json_each(child, e)
                keep_empty_lists(f->descriptor, child, *element++);
        }
    }
    const ProtobufCFieldDescriptor *inlined = bh_schema_inlined(d);
    ProtobufCMessage *in = inlined ? *(ProtobufCMessage **)((char *)m + inlined->offset) : NULL;
    if (in)
        keep_empty_lists(inlined->descriptor, v, in);
}

int bh_json_to_wire(const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                    struct bh_buf *out, struct bh_err *err)
{
    struct out o = {.b = out, .root = v};

    return write_tree(&o, d, v, err);
}

int bh_json_to_pb(struct bh_arena *a, const ProtobufCMessageDescriptor *d, const struct bh_json *v,
                  ProtobufCMessage **ret_m, unsigned *ret_dropped, struct bh_err *err)
{
    struct bh_buf wire BH_CLEANUP(bh_buf_fini) = {0};
    struct out o = {.b = &wire, .root = v};

    bh_buf_reserve(&wire, 4096); /* most objects */
    int rc = write_tree(&o, d, v, err);
    rc = rc ? rc : bh_pb_unpack(a, d, wire.p, wire.n, ret_m, err);
    if (rc)
        return rc;
    if (o.empty)
        keep_empty_lists(d, v, *ret_m);
    if (ret_dropped)
        *ret_dropped = o.dropped;
    return 0;
}
