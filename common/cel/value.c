/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/value.c - values: errors, equality, order, lookup, UTF-8
 *
 * Lists may share parts ([a, a] of [b, b] ...), so walking a value can take exponentially longer
 * than building it: every container walked over is charged.
 * Upstream: cel-go/common/types.
 */
#include <math.h>

#include "common/cel/cel_int.h"

struct cel_value bh_cel_error(struct cel_eval *e, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return (struct cel_value){.kind = CEL_ERROR, .s = bh_arena_strdup(e->arena, text)};
}

struct cel_value bh_cel_take_text(struct cel_eval *e, struct bh_buf *b)
{
    struct cel_value v = cel_str(bh_arena_memdup(e->arena, bh_buf_str(b), b->n), b->n);

    bh_buf_fini(b);
    return v;
}

const char *bh_cel_kind_name(uint32_t kind)
{
    static const char *const name[] = {
        [CEL_ERROR] = "error",
        [CEL_NULL] = "null_type",
        [CEL_BOOL] = "bool",
        [CEL_INT] = "int",
        [CEL_UINT] = "uint",
        [CEL_DOUBLE] = "double",
        [CEL_STRING] = "string",
        [CEL_BYTES] = "bytes",
        [CEL_LIST] = "list",
        [CEL_MAP] = "map",
        [CEL_TYPE] = "type",
        [CEL_IP] = "net.IP",
        [CEL_CIDR] = "net.CIDR",
        [CEL_URL] = "kubernetes.URL",
        [CEL_FORMAT] = "kubernetes.NamedFormat",
        [CEL_QUANTITY] = "kubernetes.Quantity",
        [CEL_DYN] = "dyn",
        [CEL_SEMVER] = "kubernetes.Semver",
        [CEL_TIMESTAMP] = "google.protobuf.Timestamp",
        [CEL_DURATION] = "google.protobuf.Duration",
        [CEL_DEVICE] = "kubernetes.DRADevice",
        [CEL_OBJECT] = "object",
        [CEL_LAZY] = "lazy",
        [CEL_OPTIONAL] = "optional_type",
    };
    return name[kind];
}

struct cel_value bh_cel_type_name(const struct cel_value *type)
{
    const char *name = bh_cel_kind_name((uint32_t)type->i);

    return cel_str(name, strlen(name));
}

struct cel_value bh_cel_no_overload(struct cel_eval *e, const char *name,
                                    const struct cel_value *arg, unsigned n)
{
    char kinds[160] = "";
    size_t at = 0;

    for (unsigned i = 0; i < n && at < sizeof(kinds); i++)
        at += (size_t)snprintf(kinds + at, sizeof(kinds) - at, "%s%s", i ? ", " : "",
                               bh_cel_kind_name(arg[i].kind));
    return bh_cel_error(e, "no such overload: %s(%s)", name, kinds);
}

bool bh_cel_charge(struct cel_eval *e, uint64_t n)
{
    if (__builtin_add_overflow(e->cost, n, &e->cost) || e->cost > BH_CEL_COST_LIMIT)
        e->exhausted = true;
    return !e->exhausted;
}

bool bh_cel_work(struct cel_eval *e, uint64_t n)
{
    if (__builtin_add_overflow(e->work, n, &e->work) || e->work > CEL_WORK_LIMIT)
        e->exhausted = true;
    return !e->exhausted;
}

/* ---- equality and order ---- */

/* Upstream's own types give an error instead of an answer beside a value of another type; in a list
 * or map it passes for equality. */
bool bh_cel_no_equality(const struct cel_value *a, const struct cel_value *b)
{
    return a->kind != b->kind && b->kind != CEL_NULL &&
           (a->kind == CEL_QUANTITY || a->kind == CEL_SEMVER || a->kind == CEL_IP ||
            a->kind == CEL_CIDR || a->kind == CEL_URL || a->kind == CEL_FORMAT);
}

static bool equal_maps(struct cel_eval *e, const struct cel_map *a, const struct cel_map *b)
{
    if (a->n != b->n || !bh_cel_work(e, 1 + a->n / 16))
        return false;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct cel_value *other = bh_cel_map_find(e, b, &a->entry[i].key);
        if (!other || (!bh_cel_no_equality(&a->entry[i].value, other) &&
                       !bh_cel_equal(e, &a->entry[i].value, other)))
            return false;
    }
    return true;
}

bool bh_cel_equal(struct cel_eval *e, const struct cel_value *a, const struct cel_value *b)
{
    if (cel_in(a->kind, CEL_NUMBERS) && cel_in(b->kind, CEL_NUMBERS))
        return bh_cel_compare(a, b) == 0;
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case CEL_BOOL:
        return a->b == b->b;
    case CEL_STRING:
    case CEL_BYTES:
        return a->n == b->n && bh_cel_work(e, a->n / 100) && memcmp(a->s, b->s, a->n) == 0;
    case CEL_LIST:
        if (a->n != b->n || !bh_cel_work(e, 1 + a->n / 16))
            return false;
        for (uint32_t i = 0; i < a->n; i++) {
            if (!bh_cel_no_equality(&a->list[i], &b->list[i]) &&
                !bh_cel_equal(e, &a->list[i], &b->list[i]))
                return false;
        }
        return true;
    case CEL_MAP:
        return equal_maps(e, a->map, b->map);
    case CEL_QUANTITY:
        return *a->q == *b->q;
    case CEL_SEMVER:
        return bh_cel_semver_compare(a->v, b->v) == 0;
    case CEL_URL:
        return bh_cel_work(e, strlen(a->url->text) / 100) && bh_streq(a->url->text, b->url->text);
    case CEL_TYPE:
    case CEL_FORMAT:
    case CEL_TIMESTAMP:
    case CEL_DURATION:
        return a->i == b->i;
    case CEL_IP:
    case CEL_CIDR:
        return a->net->n == b->net->n && a->net->bits == b->net->bits &&
               memcmp(a->net->addr, b->net->addr, a->net->n) == 0;
    case CEL_OPTIONAL:
        return a->n == b->n &&
               (a->n == 0 || (bh_cel_work(e, 1) && bh_cel_equal(e, a->opt, b->opt)));
    case CEL_NULL:
    case CEL_DEVICE:
        return true;
    default:
        return false;
    }
}

#define ORDER(a, b) ((a) < (b) ? -1 : (a) > (b) ? 1 : 0)

/* As upstream: a double outside the other's range decides by itself, else both are doubles. */
static int compare_double(double d, const struct cel_value *b)
{
    double low = b->kind == CEL_INT ? -0x1p63 : 0, high = b->kind == CEL_INT ? 0x1p63 : 0x1p64;

    if (d != d)
        return 2;
    if (d < low)
        return -1;
    if (d >= high)
        return 1;
    double other = b->kind == CEL_INT ? (double)b->i : (double)b->u;
    return ORDER(d, other);
}

int bh_cel_compare(const struct cel_value *a, const struct cel_value *b)
{
    if (cel_in(a->kind, CEL_NUMBERS) && cel_in(b->kind, CEL_NUMBERS)) {
        if (a->kind == CEL_DOUBLE && b->kind == CEL_DOUBLE)
            return a->d != a->d || b->d != b->d ? 2 : ORDER(a->d, b->d);
        if (a->kind == CEL_DOUBLE)
            return compare_double(a->d, b);
        if (b->kind == CEL_DOUBLE) {
            int c = compare_double(b->d, a);
            return c == 2 ? 2 : -c;
        }
        if (a->kind == b->kind)
            return a->kind == CEL_INT ? ORDER(a->i, b->i) : ORDER(a->u, b->u);
        if (a->kind == CEL_INT)
            return a->i < 0 ? -1 : ORDER((uint64_t)a->i, b->u);
        return b->i < 0 ? 1 : ORDER(a->u, (uint64_t)b->i);
    }
    if (a->kind != b->kind)
        return 2;
    if (a->kind == CEL_BOOL)
        return (int)a->b - (int)b->b;
    if (a->kind == CEL_TIMESTAMP || a->kind == CEL_DURATION)
        return ORDER(a->i, b->i);
    if (a->kind != CEL_STRING && a->kind != CEL_BYTES)
        return 2;
    int c = memcmp(a->s, b->s, BH_MIN(a->n, b->n));
    return c < 0 ? -1 : c > 0 ? 1 : ORDER(a->n, b->n);
}

int bh_cel_compare_paid(struct cel_eval *e, const struct cel_value *a, const struct cel_value *b)
{
    const uint32_t texts = 1u << CEL_STRING | 1u << CEL_BYTES;

    if (a->kind == b->kind && cel_in(a->kind, texts) && !bh_cel_work(e, BH_MIN(a->n, b->n) / 100))
        return 0;
    return bh_cel_compare(a, b);
}

/* Maps of devices have few entries and literals are as short as the text, so a walk is good enough;
 * what makes it long is charged. */
const struct cel_value *bh_cel_map_find(struct cel_eval *e, const struct cel_map *m,
                                        const struct cel_value *key)
{
    if (!bh_cel_work(e, m->n / 64))
        return NULL;
    for (uint32_t i = 0; i < m->n; i++)
        if (bh_cel_equal(e, &m->entry[i].key, key))
            return &m->entry[i].value;
    return NULL;
}

/* In floating point as upstream, where a tenth of 70 is a little more than 7. */
uint64_t bh_cel_tenths(double n)
{
    return (uint64_t)ceil(n * 0.1);
}

size_t bh_cel_size(const struct cel_value *v)
{
    switch (v->kind) {
    case CEL_STRING:
        return bh_utf8_count(v->s, v->n);
    case CEL_BYTES:
    case CEL_LIST:
        return v->n;
    case CEL_MAP:
        return v->map->n;
    case CEL_OPTIONAL:
        return v->n ? bh_cel_size(v->opt) : 1;
    case CEL_IP:
        return v->net->n;
    case CEL_CIDR:
        return (v->net->bits + 7u) / 8;
    default:
        return 1;
    }
}

size_t bh_cel_size_paid(struct cel_eval *e, const struct cel_value *v)
{
    const struct cel_value *text = v;

    while (text->kind == CEL_OPTIONAL && text->n)
        text = text->opt;
    return text->kind == CEL_STRING && !bh_cel_work(e, text->n / 64) ? 0 : bh_cel_size(v);
}
