/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/validate.c - an object against a schema
 *
 * Patterns run in the linear-time engine of common/regex.
 * Upstream: apiextensions-apiserver/pkg/apiserver/validation, kube-openapi/pkg/validation/validate
 */
#include "common/base/base64.h"
#include "common/base/utf8.h"
#include "common/k8s/quantity.h"
#include "common/regex/regex.h"
#include "simulator/crd/crd.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdlib.h>

#define PATTERN_STEPS_MAX 2000000
#define DEPTH_MAX         64

struct check {
    struct bh_arena *a;
    struct bh_sim_error *e;
};

/* A value, and what stood in its place (NULL: nothing, or nothing that it could be compared with). */
struct held {
    const struct bh_json *v, *old;
};

static bool validate(struct check *c, const struct bh_json *s, struct held h, const char *path,
                     bool root, int depth);

static const char *json_text(struct check *c, const struct bh_json *v)
{
    struct bh_buf b = {0};
    if (v->type == BH_JSON_OBJECT || v->type == BH_JSON_ARRAY)
        bh_buf_adds(&b, v->type == BH_JSON_OBJECT ? "\"object\"" : "\"array\"");
    else
        bh_json_write(&b, v);
    char *text = bh_arena_strndup(c->a, bh_buf_str(&b), BH_MIN(b.n, (size_t)200));
    bh_buf_fini(&b);
    return text;
}

static const char *type_name(const struct bh_json *v)
{
    static const char *const names[] = {"null", "boolean", "number", "string", "array", "object"};
    int64_t n;
    return v->type == BH_JSON_NUMBER && bh_json_i64(v, &n) ? "integer" : names[v->type];
}

/* e NULL: the caller asks whether, not why (anyOf, oneOf, not). */
static bool bad(struct check *c, const char *path, const struct bh_json *v, const char *fmt, ...)
    BH_PRINTF(4, 5);
static bool bad(struct check *c, const char *path, const struct bh_json *v, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (c->e)
        bh_sim_field_error(c->e, path, "Invalid value", v ? json_text(c, v) : NULL, "%s", text);
    return false;
}

static bool type_fits(const struct bh_json *s, const struct bh_json *v)
{
    const char *want = bh_json_get_text(s, "type"), *have = type_name(v);
    if (v->type == BH_JSON_NULL)
        return bh_json_get_bool(s, "nullable", false);
    if (bh_json_get_bool(s, "x-kubernetes-int-or-string", false))
        return v->type == BH_JSON_STRING || bh_streq(have, "integer");
    return !*want || bh_streq(want, have) ||
           (bh_streq(want, "number") && v->type == BH_JSON_NUMBER);
}

static bool check_enum(struct check *c, const struct bh_json *s, const struct bh_json *v,
                       const char *path)
{
    const struct bh_json *l = bh_json_get_list(s, "enum");
    struct bh_buf all = {0};
    bool listed = !l;
    bh_json_each(m, l)
        listed = listed || bh_json_equal(m, v);
    if (listed)
        return true;
    bh_json_each(m, l)
        bh_buf_addf(&all, "%s%s", all.n ? ", " : "", json_text(c, m));
    if (c->e)
        bh_sim_field_error(c->e, path, "Unsupported value", json_text(c, v),
                           "supported values: %.200s", bh_buf_str(&all));
    bh_buf_fini(&all);
    return false;
}

/* kube-openapi's way: whole numbers exactly; else the quotient may lie a billionth above a whole number
 * (not below: 0.29 is no multiple of 0.01), and beyond 2^53 there are no multiples. */
static bool is_multiple(const struct bh_json *v, const struct bh_json *step)
{
    double n = strtod(v->s.p, NULL), x = strtod(step->s.p, NULL), times, whole;
    int64_t i, k;
    if (x <= 0)
        return true;
    if (bh_json_i64(v, &i) && bh_json_i64(step, &k))
        return i % k == 0;
    times = x < 1 ? 1 / x * n : n / x;
    whole = trunc(times);
    if (!(fabs(times) <= 0x1p53 - 1))
        return false;
    return times == whole || (times > 0 && (times - whole) / (times + whole) < 1e-9);
}

static bool check_number(struct check *c, const struct bh_json *s, const struct bh_json *v,
                         const char *path)
{
    const struct bh_json *min = bh_json_get(s, "minimum"), *max = bh_json_get(s, "maximum");
    const struct bh_json *step = bh_json_get(s, "multipleOf");
    bool over = bh_json_get_bool(s, "exclusiveMinimum", false);
    bool under = bh_json_get_bool(s, "exclusiveMaximum", false);
    double n = strtod(v->s.p, NULL), x;
    if (min && min->type == BH_JSON_NUMBER &&
        (n < (x = strtod(min->s.p, NULL)) || (over && n == x)))
        return bad(c, path, v, "%s in body should be greater than %s%s", path,
                   over ? "" : "or equal to ", min->s.p);
    if (max && max->type == BH_JSON_NUMBER &&
        (n > (x = strtod(max->s.p, NULL)) || (under && n == x)))
        return bad(c, path, v, "%s in body should be less than %s%s", path,
                   under ? "" : "or equal to ", max->s.p);
    if (step && step->type == BH_JSON_NUMBER && !is_multiple(v, step))
        return bad(c, path, v, "%s in body should be a multiple of %s", path, step->s.p);
    return true;
}

static bool format_fits(const char *format, const char *text)
{
    unsigned char bin[16];
    int64_t seconds;
    if (bh_streq(format, "date-time"))
        return bh_time_parse(text, strlen(text), &seconds, NULL) == 0;
    if (bh_streq(format, "ipv4"))
        return inet_pton(AF_INET, text, bin) == 1;
    if (bh_streq(format, "ipv6"))
        return inet_pton(AF_INET6, text, bin) == 1;
    if (bh_streq(format, "uuid"))
        return strlen(text) == 36 && strspn(text, "0123456789abcdefABCDEF-") == 36;
    if (bh_streq(format, "byte")) {
        size_t n = strlen(text);
        char *bytes = bh_malloc(BH_BASE64_ROOM(n) + 1);
        bool ok = bh_base64_decode(text, n, bytes, &n) == 0;
        free(bytes);
        return ok;
    }
    return true;
}

/* n has the bounds that the schema's members name; is: "be" or "have". */
static bool within(struct check *c, const struct bh_json *s, const struct bh_json *shown,
                   const char *path, size_t n, const char *const bounds[2], const char *is,
                   const char *of)
{
    int64_t min = bh_json_get_i64(s, bounds[0], 0), max = bh_json_get_i64(s, bounds[1], -1);
    bool few = (int64_t)n < min;
    if (!few && (max < 0 || (int64_t)n <= max))
        return true;
    return bad(c, path, shown, "%s in body should %s at %s %lld %s", path, is,
               few ? "least" : "most", (long long)(few ? min : max), of);
}

static bool check_string(struct check *c, const struct bh_json *s, const struct bh_json *v,
                         const char *path)
{
    static const char *const bounds[] = {"minLength", "maxLength"};
    const char *pattern = bh_json_get_str(s, "pattern"), *why;
    const char *format = bh_json_get_text(s, "format");
    if (!within(c, s, v, path, bh_utf8_count(v->s.p, v->s.n), bounds, "be", "chars long"))
        return false;
    if (pattern && *pattern) {
        struct bh_arena_mark m = bh_arena_mark(c->a);
        size_t from, to;
        uint64_t steps = 0;
        struct bh_regex *re =
            bh_regex_compile(c->a, (struct bh_str){pattern, strlen(pattern)}, &why);
        bool found = !re || bh_regex_find(re, c->a, v->s, 0, &from, &to, &steps, PATTERN_STEPS_MAX);
        bh_arena_rewind(c->a, m);
        if (!found)
            return bad(c, path, v, "%s in body should match '%.160s'", path, pattern);
    }
    if (!format_fits(format, bh_json_cstr(v)))
        return bad(c, path, v, "%s in body must be of type %s: %s", path, format, json_text(c, v));
    return true;
}

static bool check_array(struct check *c, const struct bh_json *s, struct held h, const char *path,
                        int depth)
{
    static const char *const bounds[] = {"minItems", "maxItems"};
    const struct bh_json *items = bh_json_get(s, "items");
    size_t i = 0, at_old;
    bool good = true;
    if (!within(c, s, NULL, path, h.v->c.n, bounds, "have", "items"))
        return false;
    for (const struct bh_json *m = h.v->c.first; items && m; m = m->next) {
        const char *at = bh_arena_printf(c->a, "%s[%zu]", path, i++);
        const struct held item = {m, bh_crd_old_item(s, h.old, m, &at_old)};
        good = validate(c, items, item, at, false, depth) && good;
    }
    return good;
}

static bool check_object(struct check *c, const struct bh_json *s, struct held h, const char *path,
                         bool root, int depth)
{
    static const char *const bounds[] = {"minProperties", "maxProperties"};
    const struct bh_json *more = bh_json_get(s, "additionalProperties");
    bool good = true;
    bh_json_each(m, bh_json_get_list(s, "required")) {
        const char *name = bh_json_cstr(m);
        if (!name || bh_json_get(h.v, name))
            continue;
        if (c->e)
            bh_sim_field_error(c->e, bh_arena_printf(c->a, "%s%s%s", path, *path ? "." : "", name),
                               "Required value", NULL, "%s", "");
        good = false;
    }
    good = within(c, s, NULL, path, h.v->c.n, bounds, "have", "properties") && good;
    bh_json_each(m, h.v) {
        const struct bh_json *p = bh_json_get(bh_json_get(s, "properties"), m->key.p);
        if (root && bh_word_at("metadata kind apiVersion", m->key.p) >= 0)
            continue;
        const struct bh_json *ms = p ? p : more;
        if (ms && ms->type == BH_JSON_OBJECT)
            good = validate(c, ms, (struct held){m, bh_json_get(h.old, m->key.p)},
                            bh_arena_printf(c->a, "%s%s%s", path, *path ? "." : "", m->key.p),
                            false, depth) &&
                   good;
    }
    return good;
}

static bool check_logic(struct check *c, const struct bh_json *s, struct held h, const char *path,
                        bool root, int depth)
{
    const struct bh_json *v = h.v;
    const struct held alone = {.v = v};
    struct check quiet = {.a = c->a};
    const struct bh_json *any = bh_json_get_list(s, "anyOf"), *one = bh_json_get_list(s, "oneOf");
    const struct bh_json *no = bh_json_get(s, "not");
    size_t n = 0;
    bool good = true;
    bh_json_each(m, bh_json_get_list(s, "allOf"))
        good = validate(c, m, h, path, root, depth) && good;
    bh_json_each(m, any)
        n += validate(&quiet, m, alone, path, root, depth);
    if (any && any->c.n && !n)
        good = bad(c, path, v, "%s in body must validate at least one schema (anyOf)", path);
    n = 0;
    bh_json_each(m, one)
        n += validate(&quiet, m, alone, path, root, depth);
    if (one && one->c.n && n != 1)
        good = bad(c, path, v, "%s in body must validate one and only one schema (oneOf)", path);
    if (no && no->type == BH_JSON_OBJECT && validate(&quiet, no, alone, path, root, depth))
        good = bad(c, path, v, "%s in body must not validate the schema (not)", path);
    return good;
}

/* What a write leaves as it was is taken, as bad as it may be by the schema of today. */
static bool validate(struct check *c, const struct bh_json *s, struct held h, const char *path,
                     bool root, int depth)
{
    const struct bh_json *v = h.v;
    bool good = true;
    if (s->type != BH_JSON_OBJECT || depth >= DEPTH_MAX || (h.old && bh_json_equal(v, h.old)))
        return true;
    if (!type_fits(s, v))
        return bad(c, path, v, "%s in body must be of type %s: \"%s\"", path,
                   bh_json_get_text(s, "type"), type_name(v));
    if (v->type == BH_JSON_NULL)
        return true;
    good = check_enum(c, s, v, path);
    if (v->type == BH_JSON_NUMBER)
        good = check_number(c, s, v, path) && good;
    else if (v->type == BH_JSON_STRING)
        good = check_string(c, s, v, path) && good;
    else if (v->type == BH_JSON_ARRAY)
        good = check_array(c, s, h, path, depth + 1) && good;
    else if (v->type == BH_JSON_OBJECT)
        good = check_object(c, s, h, path, root, depth + 1) && good;
    return check_logic(c, s, h, path, root, depth + 1) && good;
}

void bh_crd_validate(struct bh_arena *a, const struct bh_json *schema, const struct bh_json *obj,
                     const struct bh_json *old, struct bh_sim_error *e)
{
    struct check c = {.a = a, .e = e};
    if (schema)
        validate(&c, schema, (struct held){obj, old}, "", true, 0);
}

/* ---- the schema itself ----------------------------------------------------------------------- */

/* The schema is a client's and may be anything: true if the member is absent, or of that type. */
static bool is_shape(const struct bh_json *s, const char *member, enum bh_json_type want)
{
    const struct bh_json *v = bh_json_get(s, member);
    return !v || v->type == want;
}

static void check_schema(struct check *c, const struct bh_json *s, const char *at, bool root,
                         int depth)
{
    const char *type = bh_json_get_text(s, "type"), *pattern = bh_json_get_str(s, "pattern"), *why;
    if (s->type != BH_JSON_OBJECT || depth > DEPTH_MAX)
        return;
    if (*type && bh_word_at("object array string integer number boolean", type) < 0)
        bh_sim_field_error(c->e, bh_arena_printf(c->a, "%s.type", at), "Unsupported value",
                           bh_arena_printf(c->a, "\"%.40s\"", type),
                           "supported values: \"array\", \"boolean\", \"integer\", \"number\", "
                           "\"object\", \"string\"");
    else if (!*type && !bh_json_get_bool(s, "x-kubernetes-int-or-string", false) &&
             !bh_json_get_bool(s, "x-kubernetes-preserve-unknown-fields", false))
        bh_sim_field_error(c->e, bh_arena_printf(c->a, "%s.type", at), "Required value", NULL,
                           root ? "must not be empty at the root"
                                : "must not be empty for specified object fields");
    if (!is_shape(s, "properties", BH_JSON_OBJECT) || !is_shape(s, "items", BH_JSON_OBJECT) ||
        !is_shape(s, "required", BH_JSON_ARRAY) || !is_shape(s, "enum", BH_JSON_ARRAY)) {
        bh_sim_field_error(c->e, at, "Invalid value", NULL, "%s",
                           "properties and items are objects, required and enum lists");
        return;
    }
    if (bh_json_get(s, "$ref"))
        bh_sim_field_error(c->e, bh_arena_printf(c->a, "%s.$ref", at), "Forbidden", NULL,
                           "must not be used");
    if (bh_streq(type, "array") && !bh_json_get(s, "items"))
        bh_sim_field_error(c->e, bh_arena_printf(c->a, "%s.items", at), "Required value", NULL,
                           "must be specified");
    if (pattern && !bh_regex_compile(c->a, (struct bh_str){pattern, strlen(pattern)}, &why))
        bh_sim_field_error(c->e, bh_arena_printf(c->a, "%s.pattern", at), "Invalid value", NULL,
                           "must be a valid regular expression, but isn't: %.160s", why);
    bh_json_each(p, bh_json_get(s, "properties"))
        check_schema(c, p, bh_arena_printf(c->a, "%s.properties[%s]", at, p->key.p), false,
                     depth + 1);
    if (bh_json_get(s, "items"))
        check_schema(c, bh_json_get(s, "items"), bh_arena_printf(c->a, "%s.items", at), false,
                     depth + 1);
    if (bh_json_get(s, "additionalProperties"))
        check_schema(c, bh_json_get(s, "additionalProperties"),
                     bh_arena_printf(c->a, "%s.additionalProperties", at), false, depth + 1);
}

void bh_crd_check_schema(struct bh_arena *a, const struct bh_json *schema, const char *at,
                         struct bh_sim_error *e)
{
    struct check c = {.a = a, .e = e};
    check_schema(&c, schema, at, true, 0);
}
