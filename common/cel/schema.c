/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/schema.c - types and values of a structural schema
 *
 * An object is a type of its own: what its schema names are its fields, and nothing else can be
 * asked of it. Types of fields are made when an expression asks for them, so a schema that contains
 * itself many times over costs nothing.
 * Upstream: k8s.io/apiserver/pkg/cel/common/{schemas,values}.go, pkg/cel/escaping.go; differences:
 * lists of the types set and map are equal when their items stand in the same order.
 */
#include "common/base/base64.h"
#include "common/base/opt.h"
#include "common/cel/cel_int.h"

static bool is_flag(const struct bh_json *schema, const char *name)
{
    return bh_json_get_bool(schema, name, false);
}

/* Of a type that holds nothing; CEL_ERROR: it is none. */
static enum cel_kind scalar_kind(const struct bh_json *schema)
{
    static const struct {
        const char *type, *formats;
        enum cel_kind kind;
    } table[] = {{"string", "byte", CEL_BYTES},
                 {"string", "date date-time", CEL_TIMESTAMP},
                 {"string", "duration", CEL_DURATION},
                 {"string", NULL, CEL_STRING},
                 {"boolean", NULL, CEL_BOOL},
                 {"number", NULL, CEL_DOUBLE},
                 {"integer", NULL, CEL_INT}};
    const char *type = bh_json_get_text(schema, "type"),
               *format = bh_json_get_text(schema, "format");

    for (size_t i = 0; i < BH_ARRAY_LEN(table); i++)
        if (bh_streq(table[i].type, type) &&
            (!table[i].formats || bh_word_at(table[i].formats, format) >= 0))
            return table[i].kind;
    return CEL_ERROR;
}

static const struct cel_type *holder(struct bh_arena *a, enum cel_kind kind,
                                     const struct bh_json *of)
{
    const struct cel_type *elem =
        bh_cel_schema_type(a, of, is_flag(of, "x-kubernetes-embedded-resource"));
    struct cel_type t = {.kind = (uint8_t)kind,
                         .elem = elem,
                         .key = kind == CEL_MAP ? &bh_cel_types[CEL_STRING] : NULL};

    return elem ? bh_arena_memdup(a, &t, sizeof(t)) : NULL;
}

const struct cel_type *bh_cel_schema_type(struct bh_arena *a, const struct bh_json *schema,
                                          bool root)
{
    const struct bh_json *more = bh_json_get(schema, "additionalProperties");
    const char *type = bh_json_get_text(schema, "type");
    struct cel_type object = {.kind = CEL_OBJECT, .schema = schema, .root = root};
    enum cel_kind kind = scalar_kind(schema);

    if (is_flag(schema, "x-kubernetes-int-or-string"))
        return &bh_cel_types[CEL_DYN];
    if (bh_streq(type, "array"))
        return holder(a, CEL_LIST, bh_json_get(schema, "items"));
    if (!root && bh_streq(type, "object") && more && more->type == BH_JSON_OBJECT)
        return holder(a, CEL_MAP, more);
    if (root || bh_streq(type, "object"))
        return bh_arena_memdup(a, &object, sizeof(object));
    return kind == CEL_ERROR ? NULL : &bh_cel_types[kind];
}

static bool is_reserved(const char *name)
{
    return bh_word_at("true false null in as break const continue else for function if import let "
                      "loop namespace package return var void while",
                      name) >= 0;
}

/* What is no identifier is written with escapes: "a__dash__b", "__namespace__". NULL: no property
 * is written like this. */
static const char *unescape(struct bh_arena *a, struct bh_str name)
{
    static const struct {
        const char *from, *to;
    } table[] = {
        {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
    char *out = bh_arena_strndup(a, name.p, name.n);
    size_t n = 0, k;

    if (is_reserved(out))
        return NULL;
    if (name.n > 4 && memcmp(out, "__", 2) == 0 && memcmp(out + name.n - 2, "__", 2) == 0) {
        char *inner = bh_arena_strndup(a, out + 2, name.n - 4);
        if (is_reserved(inner))
            return inner;
    }
    for (size_t i = 0; i < name.n;) {
        for (k = 0; k < BH_ARRAY_LEN(table); k++)
            if (strncmp(name.p + i, table[k].from, BH_MIN(strlen(table[k].from), name.n - i)) ==
                    0 &&
                name.n - i >= strlen(table[k].from))
                break;
        if (k == BH_ARRAY_LEN(table)) {
            out[n++] = name.p[i++];
            continue;
        }
        for (const char *p = table[k].to; *p; p++)
            out[n++] = *p;
        i += strlen(table[k].from);
    }
    out[n] = '\0';
    return out;
}

const struct cel_type *bh_cel_field_type(struct bh_arena *a, const struct cel_type *t,
                                         struct bh_str *name)
{
    static const struct cel_type metadata = {.kind = CEL_OBJECT};
    const char *plain = unescape(a, *name);

    if (!plain)
        return NULL;
    *name = bh_str_c(plain);
    if (t->root && bh_streq(plain, "metadata"))
        return &metadata;
    if (bh_word_at(t->root ? "kind apiVersion" : t->schema ? "" : "name generateName", plain) >= 0)
        return &bh_cel_types[CEL_STRING];
    const struct bh_json *field = bh_json_get(bh_json_get(t->schema, "properties"), plain);
    return field ? bh_cel_schema_type(a, field, is_flag(field, "x-kubernetes-embedded-resource"))
                 : NULL;
}

/* ---- values ---- */

/* A text that its format does not fit is an error where it is used. */
static struct cel_value text_of(struct bh_arena *a, const struct bh_json *schema,
                                const struct bh_json *v)
{
    enum cel_kind kind = scalar_kind(schema);
    size_t n = v->s.n;
    struct cel_value r = {.kind = CEL_ERROR};
    const char *text = bh_streq(bh_json_get_text(schema, "format"), "date")
                           ? bh_arena_printf(a, "%sT00:00:00Z", bh_json_cstr(v))
                           : bh_json_cstr(v);

    if (kind == CEL_BYTES) {
        char *bytes = bh_arena_alloc(a, BH_BASE64_ROOM(n) + 1);
        if (bh_base64_decode(v->s.p, n, bytes, &n) == 0)
            return (struct cel_value){.kind = CEL_BYTES, .n = (uint32_t)n, .s = bytes};
    } else if (kind == CEL_TIMESTAMP || kind == CEL_DURATION) {
        int rc =
            kind == CEL_DURATION ? bh_parse_duration_ns(text, &r.i) : bh_time_parse_ns(text, &r.i);
        if (rc == 0) {
            r.kind = kind;
            return r;
        }
    } else {
        return cel_str(v->s.p, n);
    }
    r.s = bh_arena_printf(a, "Invalid %s formatted string %.200s",
                          bh_json_get_text(schema, "format"), bh_json_cstr(v));
    return r;
}

static struct cel_value number_of(const struct bh_json *schema, const struct bh_json *v)
{
    struct cel_value r = {.kind = CEL_INT};

    if (scalar_kind(schema) == CEL_DOUBLE || !bh_json_i64(v, &r.i)) /* 1.0 is no int */
        r = (struct cel_value){.kind = CEL_DOUBLE, .d = strtod(v->s.p, NULL)};
    return r;
}

static struct cel_value value_of(struct bh_arena *a, const struct bh_json *schema,
                                 const struct bh_json *v);

static struct cel_value list_of(struct bh_arena *a, const struct bh_json *schema,
                                const struct bh_json *v)
{
    struct cel_value *item = bh_arena_new_array(a, struct cel_value, v->c.n + 1);
    size_t n = 0;

    bh_json_each(m, v)
        item[n++] = value_of(a, bh_json_get(schema, "items"), m);
    return cel_list(item, n);
}

static struct cel_value map_of(struct bh_arena *a, const struct bh_json *schema,
                               const struct bh_json *v)
{
    const struct bh_json *properties = bh_json_get(schema, "properties");
    struct cel_entry *entry = bh_arena_new_array(a, struct cel_entry, v->c.n + 1);
    struct cel_map *map = bh_arena_new(a, struct cel_map);

    *map = (struct cel_map){.entry = entry};
    bh_json_each(m, v) {
        const struct bh_json *of = bh_json_get(properties, m->key.p);
        of = of ? of : bh_json_get(schema, "additionalProperties");
        entry[map->n++] = (struct cel_entry){cel_str(m->key.p, m->key.n), value_of(a, of, m)};
    }
    return (struct cel_value){.kind = CEL_MAP, .map = map};
}

static struct cel_value value_of(struct bh_arena *a, const struct bh_json *schema,
                                 const struct bh_json *v)
{
    switch (v->type) {
    case BH_JSON_BOOL:
        return cel_bool(v->b);
    case BH_JSON_NUMBER:
        return number_of(schema, v);
    case BH_JSON_STRING:
        return text_of(a, schema, v);
    case BH_JSON_ARRAY:
        return list_of(a, schema, v);
    case BH_JSON_OBJECT:
        return map_of(a, schema, v);
    default:
        return (struct cel_value){.kind = CEL_NULL};
    }
}

const struct cel_value *bh_cel_value_of(struct bh_arena *a, const struct bh_json *schema,
                                        const struct bh_json *v)
{
    struct cel_value r = value_of(a, schema, v);

    return bh_arena_memdup(a, &r, sizeof(r));
}

const struct cel_value *bh_cel_child(const struct cel_value *v, size_t i)
{
    return v->kind == CEL_LIST ? &v->list[i] : &v->map->entry[i].value;
}
