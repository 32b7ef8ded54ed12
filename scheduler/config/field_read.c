/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/field_read.c - a tree against the tables of its fields
 *
 * Invariants: recursion is bounded by the depth of the tree (BH_JSON_MAX_DEPTH). Strings end at
 * their first NUL for all other code, so one with a NUL inside is refused here.
 *
 * Upstream: sigs.k8s.io/json (strict), encoding/json's UnmarshalTypeError.
 */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/opt.h"
#include "scheduler/config/field.h"

#define STRICT_MAX 100 /* upstream's maximum, too */

const struct bh_field bh_field_shape_point[] = {
    {"utilization", BH_FIELD_INT32, NULL, NULL},
    {"score", BH_FIELD_INT32, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

/* Where the reader is. Type errors name fields without the indices of lists. */
struct place {
    const char *go_struct, *path, *go_path;
};

const char *bh_field_json_type(const struct bh_json *v)
{
    static const char *const names[] = {
        [BH_JSON_NULL] = "null",     [BH_JSON_BOOL] = "bool",   [BH_JSON_NUMBER] = "number",
        [BH_JSON_STRING] = "string", [BH_JSON_ARRAY] = "array", [BH_JSON_OBJECT] = "object"};

    return names[v->type];
}

/* The struct's name without its package. */
static const char *bare_type(const char *go_type)
{
    const char *dot = strchr(go_type, '.');
    return dot ? dot + 1 : go_type;
}

static const char *full_type(struct bh_field_reader *r, const char *go_type, const char *before)
{
    bool full = strchr(go_type, '.') != NULL;

    return bh_arena_printf(r->strict->a, "%s%s%s%s", before, full ? "" : r->package,
                           full ? "" : ".", go_type);
}

static const char *type_of(struct bh_field_reader *r, const struct bh_field *f)
{
    static const char *const names[] = {
        [BH_FIELD_STRING] = "string", [BH_FIELD_BOOL] = "bool",
        [BH_FIELD_INT32] = "int32",   [BH_FIELD_INT64] = "int64",
        [BH_FIELD_FLOAT] = "float32", [BH_FIELD_DURATION] = "string",
        [BH_FIELD_BYTES] = "[]uint8", [BH_FIELD_STRINGS] = "[]string"};

    if (f->type >= BH_FIELD_OBJECT || (f->type == BH_FIELD_STRING && f->go_type))
        return full_type(r, f->go_type, f->type == BH_FIELD_OBJECTS ? "[]" : "");
    return names[f->type];
}

static int bad(struct bh_field_reader *r, const struct bh_json *v, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    r->error = bh_arena_vprintf(r->strict->a, fmt, ap);
    va_end(ap);
    r->error_line = v->line;
    return -EINVAL;
}

static int wrong_type(struct bh_field_reader *r, const struct bh_json *v, const char *type,
                      const struct place *at, bool show_number)
{
    const char *number = v->type == BH_JSON_NUMBER && show_number ? v->s.p : "";

    return bad(r, v, "json: cannot unmarshal %s%s%s into Go struct field %s.%s of type %s",
               bh_field_json_type(v), *number ? " " : "", number, at->go_struct, at->go_path, type);
}

static int check_duration(struct bh_field_reader *r, const struct bh_json *v)
{
    static const char *const units[] = {"ns", "us", "\xc2\xb5s", "\xce\xbcs", "ms", "s", "m", "h"};
    const char *s = v->s.p;
    bool known = false;
    int64_t ns;

    if (bh_parse_duration_ns(s, &ns) == 0)
        return 0;
    const char *p = s + strspn(s, "+-0123456789.");
    size_t unit = strcspn(p, "0123456789.");
    for (unsigned i = 0; i < BH_ARRAY_LEN(units); i++)
        known |= strlen(units[i]) == unit && memcmp(units[i], p, unit) == 0;
    if (p != s && unit && !known)
        return bad(r, v, "time: unknown unit \"%.*s\" in duration \"%s\"", (int)unit, p, s);
    return bad(r, v,
               p != s && !unit ? "time: missing unit in duration \"%s\""
                               : "time: invalid duration \"%s\"",
               s);
}

static bool scalar_ok(const struct bh_json *v, enum bh_field_type t)
{
    int64_t i;

    switch (t) {
    case BH_FIELD_BOOL:
        return v->type == BH_JSON_BOOL;
    case BH_FIELD_INT32:
        return v->type == BH_JSON_NUMBER && bh_json_i64(v, &i) && i >= INT32_MIN && i <= INT32_MAX;
    case BH_FIELD_INT64:
        return v->type == BH_JSON_NUMBER && bh_json_i64(v, &i);
    case BH_FIELD_FLOAT: {
        double d = v->type == BH_JSON_NUMBER ? strtod(v->s.p, NULL) : 0;
        return v->type == BH_JSON_NUMBER && d <= FLT_MAX && d >= -FLT_MAX;
    }
    default:
        return v->type == BH_JSON_STRING;
    }
}

static int check_scalar(struct bh_field_reader *r, const struct bh_json *v,
                        const struct bh_field *f, const struct place *at)
{
    bool number = f->type == BH_FIELD_INT32 || f->type == BH_FIELD_INT64 ||
                  (f->type == BH_FIELD_FLOAT && v->type == BH_JSON_NUMBER);

    if (!scalar_ok(v, f->type))
        return wrong_type(r, v, type_of(r, f), at, number);
    if (v->type == BH_JSON_STRING && memchr(v->s.p, 0, v->s.n))
        return bad(r, v, "%s: Invalid value: must not contain a NUL byte", at->path);
    if (f->type == BH_FIELD_DURATION)
        return check_duration(r, v);
    if (f->type != BH_FIELD_BYTES)
        return 0;
    struct bh_str bytes;
    int64_t wrong = bh_field_base64(r->strict->a, v->s.p, &bytes);
    return wrong < 0 ? 0 : bad(r, v, "illegal base64 data at input byte %" PRId64, wrong);
}

static int check_object(struct bh_field_reader *r, const struct bh_json *v,
                        const struct bh_field *table, const struct place *at);

static int check_list(struct bh_field_reader *r, const struct bh_json *v, const struct bh_field *f,
                      const struct place *at)
{
    static const struct bh_field text = {"", BH_FIELD_STRING, NULL, NULL};
    unsigned i = 0;
    int rc = 0;

    bh_json_each(e, v) {
        struct place in = *at;
        in.path = bh_arena_printf(r->strict->a, "%s[%u]", at->path, i++);
        if (e->type == BH_JSON_NULL && f->type == BH_FIELD_OBJECTS)
            continue;
        if (f->type == BH_FIELD_STRINGS) {
            rc = check_scalar(r, e, &text, &in);
        } else if (e->type != BH_JSON_OBJECT) {
            rc = wrong_type(r, e, full_type(r, f->go_type, ""), &in, false);
        } else {
            in.go_struct = bare_type(f->go_type);
            rc = check_object(r, e, f->sub, &in);
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_field(struct bh_field_reader *r, const struct bh_json *v, const struct bh_field *f,
                       const struct place *at)
{
    struct place in = *at;

    if (v->type == BH_JSON_NULL || f->type == BH_FIELD_RAW)
        return 0;
    switch (f->type) {
    case BH_FIELD_OBJECT:
        if (v->type != BH_JSON_OBJECT)
            return wrong_type(r, v, type_of(r, f), at, false);
        in.go_struct = bare_type(f->go_type);
        return check_object(r, v, f->sub, &in);
    case BH_FIELD_OBJECTS:
    case BH_FIELD_STRINGS:
        if (v->type != BH_JSON_ARRAY)
            return wrong_type(r, v, type_of(r, f), at, false);
        return check_list(r, v, f, at);
    default:
        return check_scalar(r, v, f, at);
    }
}

static void strict_error(struct bh_field_reader *r, const struct bh_json *v, const char *what,
                         const char *path)
{
    struct bh_buf b = {0};

    if (r->strict->n >= STRICT_MAX)
        return;
    bh_buf_add_json_str(&b, path, strlen(path));
    r->strict->line = v->line;
    bh_field_error(r->strict, "%s %s", what, bh_buf_str(&b));
    bh_buf_fini(&b);
}

static int check_object(struct bh_field_reader *r, const struct bh_json *v,
                        const struct bh_field *table, const struct place *at)
{
    struct bh_arena *a = r->strict->a;
    uint64_t seen = 0; /* by place in the table; none is that long */

    bh_json_each(m, v) {
        const struct bh_field *f = table;
        struct place in = *at;
        while (f->name && !bh_streq(f->name, m->key.p))
            f++;
        in.path = bh_arena_printf(a, "%s%s%s", at->path, *at->path ? "." : "", m->key.p);
        if (!f->name) {
            strict_error(r, m, "unknown field", in.path);
            continue;
        }
        uint64_t bit = (uint64_t)1 << (f - table);
        if (seen & bit && r->repeats)
            strict_error(r, m, "duplicate field", in.path);
        seen |= bit;
        in.go_path = bh_arena_printf(a, "%s%s%s", at->go_path, *at->go_path ? "." : "", m->key.p);
        int rc = check_field(r, m, f, &in);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int bh_fields_check(struct bh_field_reader *r, const struct bh_json *v,
                    const struct bh_field *table, const char *go_type)
{
    const struct place at = {.go_struct = bare_type(go_type), .path = "", .go_path = ""};

    if (v->type != BH_JSON_OBJECT)
        return bad(r, v, "json: cannot unmarshal %s into Go value of type %s",
                   bh_field_json_type(v), full_type(r, go_type, ""));
    return check_object(r, v, table, &at);
}
