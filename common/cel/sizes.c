/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/sizes.c - how large values of a schema can get, and how small
 *
 * By its bounds; where there are none, by what has room in the largest request. All bytes are those
 * of JSON, and the bound of a text counts four for each character.
 * Upstream: k8s.io/apiserver/pkg/cel/common/schemas.go, pkg/cel/limits.go.
 */
#include "common/cel/cel_int.h"

enum {
    REQUEST_MAX = 3 * 1024 * 1024,
    DATE_BYTES = 12,
    TIME_BYTES_MIN = 21,
    TIME_BYTES_MAX = 32, /* of a date with a time, and of a span of time */
    SPAN_BYTES_MIN = 3,
};

static const struct bh_json plain_text; /* a string without any bound, as kind and apiVersion */

static bool is_flag(const struct bh_json *schema, const char *name)
{
    return bh_json_get_bool(schema, name, false);
}

static bool is(const struct bh_json *schema, const char *member, const char *text)
{
    return bh_streq(bh_json_get_text(schema, member), text);
}

static const struct bh_json *values_of(const struct bh_json *schema)
{
    const struct bh_json *more = bh_json_get(schema, "additionalProperties");

    return more && more->type == BH_JSON_OBJECT ? more : NULL;
}

/* The schema bounds what every object has: then its own words count. */
static bool names_itself(const struct bh_json *schema)
{
    const struct bh_json *p = bh_json_get(schema, "properties"), *meta = bh_json_get(p, "metadata"),
                         *in = bh_json_get(meta, "properties");

    return is(bh_json_get(p, "kind"), "type", "string") &&
           is(bh_json_get(p, "apiVersion"), "type", "string") && is(meta, "type", "object") &&
           is(bh_json_get(in, "name"), "type", "string") &&
           is(bh_json_get(in, "generateName"), "type", "string");
}

/* A bound of the schema, false: it has none. */
static bool bound(const struct bh_json *schema, const char *name, int64_t *ret)
{
    const struct bh_json *v = bh_json_get(schema, name);

    *ret = BH_MAX(bh_json_get_i64(schema, name, 0), 0);
    return v && v->type == BH_JSON_NUMBER;
}

/* ---- the smallest ---- */

static int64_t min_bytes(const struct bh_json *schema, bool root);

static int64_t min_of(const struct bh_json *schema)
{
    return min_bytes(schema, is_flag(schema, "x-kubernetes-embedded-resource"));
}

static bool is_required(const struct bh_json *schema, const char *name)
{
    bh_json_each(r, bh_json_get_list(schema, "required"))
        if (bh_streq(bh_json_cstr(r), name))
            return true;
    return false;
}

static int64_t text_min(const struct bh_json *schema)
{
    return is(schema, "format", "duration")    ? SPAN_BYTES_MIN
           : is(schema, "format", "date")      ? DATE_BYTES
           : is(schema, "format", "date-time") ? TIME_BYTES_MIN
                                               : 2;
}

static int64_t object_min(const struct bh_json *schema, bool root)
{
    bool implied = root && !names_itself(schema);
    int64_t sum = 2;

    bh_json_each(p, bh_json_get(schema, "properties")) {
        const char *name = p->key.p;
        bool given = implied && bh_word_at("kind apiVersion metadata", name) >= 0;
        int64_t n = given ? 2 : min_of(p);
        if (!given && bh_json_get(p, "default"))
            continue;
        if (n > 0 && is_required(schema, name))
            sum += (int64_t)p->key.n + n + 4;
    }
    bh_json_each(r, implied ? bh_json_get_list(schema, "required") : NULL) {
        const char *name = bh_json_cstr(r) ? bh_json_cstr(r) : "";
        if (bh_word_at("kind apiVersion metadata", name) >= 0 &&
            !bh_json_get(bh_json_get(schema, "properties"), name))
            sum += (int64_t)strlen(name) + 6;
    }
    return sum;
}

/* 0: it has no type. */
static int64_t min_bytes(const struct bh_json *schema, bool root)
{
    const char *type = bh_json_get_text(schema, "type");

    if (is_flag(schema, "x-kubernetes-int-or-string"))
        return 1;
    if (bh_streq(type, "array"))
        return min_of(bh_json_get(schema, "items")) ? 2 : 0;
    if (bh_streq(type, "object") && values_of(schema))
        return min_of(values_of(schema)) ? 2 : 0;
    if (bh_streq(type, "object"))
        return object_min(schema, root);
    if (bh_streq(type, "string"))
        return text_min(schema);
    return bh_streq(type, "boolean")                               ? 4
           : bh_streq(type, "number") || bh_streq(type, "integer") ? 1
                                                                   : 0;
}

uint64_t bh_cel_max_cardinality(const struct bh_json *schema, bool root)
{
    return REQUEST_MAX / (uint64_t)(min_bytes(schema, root) + 1);
}

/* ---- the largest ---- */

static int64_t longest_of(const struct bh_json *names)
{
    int64_t n = 0;

    bh_json_each(v, names)
        if (v->type == BH_JSON_STRING)
            n = BH_MAX(n, (int64_t)v->s.n);
    return n;
}

static int64_t text_max(const struct bh_json *schema)
{
    bool bytes = is(schema, "format", "byte");
    const struct bh_json *names = bh_json_get_list(schema, "enum");
    int64_t n;

    if (is(schema, "format", "date"))
        return DATE_BYTES;
    if (is(schema, "format", "date-time") || is(schema, "format", "duration"))
        return TIME_BYTES_MAX;
    if (bound(schema, "maxLength", &n))
        return bytes ? n : n > INT64_MAX / 4 ? INT64_MAX : n * 4;
    return !bytes && bh_json_first(names) ? longest_of(names) : REQUEST_MAX - 2;
}

int64_t bh_cel_max_elements(const struct cel_sized *v)
{
    const struct bh_json *s = v->schema, *of = values_of(s);
    int64_t n;

    if (v->key || v->meta)
        return 0;
    if (s == &plain_text)
        return REQUEST_MAX - 2;
    if (is_flag(s, "x-kubernetes-int-or-string"))
        return !bound(s, "maxLength", &n) ? REQUEST_MAX - 2 : n > INT64_MAX / 4 ? INT64_MAX : n * 4;
    if (is(s, "type", "array"))
        return bound(s, "maxItems", &n) ? n
                                        : (REQUEST_MAX - 2) / (min_of(bh_json_get(s, "items")) + 1);
    if (is(s, "type", "object"))
        return !of ? 0 : bound(s, "maxProperties", &n) ? n : (REQUEST_MAX - 2) / (min_of(of) + 6);
    return is(s, "type", "string") ? text_max(s) : 0;
}

/* ---- along a path ---- */

bool bh_cel_sized_step(struct cel_sized *v, const struct cel_step *step)
{
    const struct bh_json *s = v->schema, *next = NULL;
    bool list = is(s, "type", "array"), map = !v->root && is(s, "type", "object") && values_of(s);

    if (v->key || s == &plain_text || is_flag(s, "x-kubernetes-int-or-string"))
        return false;
    if (step->what == CEL_STEP_KEYS) {
        v->key = map;
        return map;
    }
    if (step->what == CEL_STEP_VALUES)
        next = list ? bh_json_get(s, "items") : map ? values_of(s) : NULL;
    else if (step->what == CEL_STEP_FIELD && !list && !map)
        next = v->meta ? &plain_text : bh_json_get(bh_json_get(s, "properties"), step->name);
    if (v->root && !names_itself(s) && step->what == CEL_STEP_FIELD) {
        v->meta = bh_streq(step->name, "metadata");
        v->root = false;
        if (v->meta)
            return true;
        next = bh_word_at("kind apiVersion", step->name) >= 0 ? &plain_text : next;
    }
    v->meta = false;
    v->schema = next;
    v->root = is_flag(next, "x-kubernetes-embedded-resource");
    return next != NULL;
}
