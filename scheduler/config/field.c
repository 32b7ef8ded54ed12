/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/field.c - strict reading of a configuration tree
 *
 * Upstream: sigs.k8s.io/json (strict), apimachinery/pkg/util/validation/field.
 */
#include <errno.h>
#include <stdio.h>

#include "common/base/buf.h"
#include "common/base/opt.h"
#include "scheduler/config/field.h"

void bh_field_error(struct bh_field_errors *e, const char *fmt, ...)
{
    struct bh_buf b = {0};
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&b, fmt, ap);
    va_end(ap);
    bool known = false;
    for (uint32_t i = 0; i < e->n && !known; i++)
        known = bh_streq(e->v[i], bh_buf_str(&b));
    if (!known) {
        if (e->n == e->cap) {
            uint32_t cap = e->cap ? 2 * e->cap : 8;
            const char **v = bh_arena_new_array(e->a, const char *, cap);
            if (e->n)
                memcpy(v, e->v, e->n * sizeof *v);
            e->v = v;
            e->cap = cap;
        }
        e->v[e->n++] = bh_arena_strndup(e->a, bh_buf_str(&b), b.n);
    }
    bh_buf_fini(&b);
}

void bh_field_errors_join(const struct bh_field_errors *e, struct bh_err *err)
{
    struct bh_buf b = {0};

    if (e->n > 1)
        bh_buf_addc(&b, '[');
    for (uint32_t i = 0; i < e->n; i++) {
        if (i)
            bh_buf_adds(&b, ", ");
        bh_buf_adds(&b, e->v[i]);
    }
    if (e->n > 1)
        bh_buf_addc(&b, ']');
    bh_err_set(err, 0, "%s", bh_buf_str(&b));
    bh_buf_fini(&b);
}

const char *bh_field_value(struct bh_arena *a, const struct bh_json *v)
{
    struct bh_buf b = {0};

    bh_json_write(&b, v);
    const char *text = bh_arena_strndup(a, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return text;
}

struct reader {
    struct bh_field_errors *unknown;
    struct bh_err *err;
};

static const char *json_type(const struct bh_json *v)
{
    switch (v->type) {
    case BH_JSON_NULL:
        return "null";
    case BH_JSON_BOOL:
        return "bool";
    case BH_JSON_NUMBER:
        return "number";
    case BH_JSON_STRING:
        return "string";
    case BH_JSON_ARRAY:
        return "array";
    case BH_JSON_OBJECT:
        break;
    }
    return "object";
}

static const char *go_type_of(const struct bh_field *f)
{
    switch (f->type) {
    case BH_FIELD_BOOL:
        return "bool";
    case BH_FIELD_INT32:
        return "int32";
    case BH_FIELD_INT64:
        return "int64";
    case BH_FIELD_FLOAT:
        return "float32";
    case BH_FIELD_STRINGS:
        return "[]string";
    case BH_FIELD_OBJECT:
    case BH_FIELD_OBJECTS:
        return f->go_type;
    case BH_FIELD_STRING:
    case BH_FIELD_DURATION:
    case BH_FIELD_RAW:
        break;
    }
    return "string";
}

static int wrong_type(struct reader *r, const struct bh_json *v, const struct bh_field *f,
                      const char *go_struct, const char *go_path)
{
    char what[80];

    snprintf(what, sizeof what, "%s", json_type(v));
    if (v->type == BH_JSON_NUMBER && (f->type == BH_FIELD_INT32 || f->type == BH_FIELD_INT64))
        snprintf(what, sizeof what, "number %.40s", v->s.p);
    return bh_err_set(r->err, -EINVAL,
                      "json: cannot unmarshal %s into Go struct field %s.%s of type %s", what,
                      go_struct, go_path, go_type_of(f));
}

static int check_duration(struct reader *r, const char *s)
{
    int64_t ns;

    if (bh_parse_duration_ns(s, &ns) == 0)
        return 0;
    const char *p = s + strspn(s, "+-0123456789.");
    size_t unit = strcspn(p, "0123456789.");
    bool known = false;
    static const char *const units[] = {"ns", "us", "\xc2\xb5s", "\xce\xbcs", "ms", "s", "m", "h"};
    for (unsigned i = 0; i < BH_ARRAY_LEN(units); i++)
        known |= strlen(units[i]) == unit && memcmp(units[i], p, unit) == 0;
    if (p != s && unit && !known)
        return bh_err_set(r->err, -EINVAL, "time: unknown unit \"%.*s\" in duration \"%s\"",
                          (int)unit, p, s);
    if (p != s && !unit)
        return bh_err_set(r->err, -EINVAL, "time: missing unit in duration \"%s\"", s);
    return bh_err_set(r->err, -EINVAL, "time: invalid duration \"%s\"", s);
}

static int check_object(struct reader *r, const struct bh_json *v, const struct bh_field *table,
                        const char *go_struct, const char *path, const char *go_path);

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
    case BH_FIELD_FLOAT:
        return v->type == BH_JSON_NUMBER;
    default:
        return v->type == BH_JSON_STRING;
    }
}

static int check_list(struct reader *r, const struct bh_json *v, const struct bh_field *f,
                      const char *go_struct, const char *path, const char *go_path)
{
    unsigned i = 0;

    bh_json_each(e, v)
    {
        const char *at = bh_arena_printf(r->unknown->a, "%s[%u]", path, i++);
        int rc = 0;
        if (f->type == BH_FIELD_STRINGS && e->type != BH_JSON_STRING)
            return bh_err_set(r->err, -EINVAL,
                              "json: cannot unmarshal %s into Go struct field %s.%s of type string",
                              json_type(e), go_struct, go_path);
        if (f->type == BH_FIELD_OBJECTS && e->type != BH_JSON_OBJECT)
            return wrong_type(r, e, f, go_struct, go_path);
        if (f->type == BH_FIELD_OBJECTS)
            rc = check_object(r, e, f->sub, f->go_type, at, go_path);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int check_field(struct reader *r, const struct bh_json *v, const struct bh_field *f,
                       const char *go_struct, const char *path, const char *go_path)
{
    if (v->type == BH_JSON_NULL || f->type == BH_FIELD_RAW)
        return 0;
    switch (f->type) {
    case BH_FIELD_OBJECT:
        if (v->type != BH_JSON_OBJECT)
            return wrong_type(r, v, f, go_struct, go_path);
        return check_object(r, v, f->sub, f->go_type, path, go_path);
    case BH_FIELD_OBJECTS:
    case BH_FIELD_STRINGS:
        if (v->type != BH_JSON_ARRAY)
            return wrong_type(r, v, f, go_struct, go_path);
        return check_list(r, v, f, go_struct, path, go_path);
    default:
        if (!scalar_ok(v, f->type))
            return wrong_type(r, v, f, go_struct, go_path);
        return f->type == BH_FIELD_DURATION ? check_duration(r, v->s.p) : 0;
    }
}

static int check_object(struct reader *r, const struct bh_json *v, const struct bh_field *table,
                        const char *go_struct, const char *path, const char *go_path)
{
    bh_json_each(m, v)
    {
        struct bh_arena *a = r->unknown->a;
        const char *at = bh_arena_printf(a, "%s%s%s", path, *path ? "." : "", m->key.p);
        const char *go_at = bh_arena_printf(a, "%s%s%s", go_path, *go_path ? "." : "", m->key.p);
        const struct bh_field *f = table;
        while (f->name && !bh_streq(f->name, m->key.p))
            f++;
        if (!f->name) {
            bh_field_error(r->unknown, "unknown field \"%s\"", at);
            continue;
        }
        int rc = check_field(r, m, f, go_struct, at, go_at);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int bh_fields_check(const struct bh_json *v, const struct bh_field *table, const char *go_type,
                    struct bh_field_errors *unknown, struct bh_err *err)
{
    struct reader r = {.unknown = unknown, .err = err};

    if (v->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "json: cannot unmarshal %s into Go value of type v1.%s",
                          json_type(v), go_type);
    return check_object(&r, v, table, go_type, "", "");
}
