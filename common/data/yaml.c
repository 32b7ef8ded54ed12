/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/yaml.c - YAML text into the JSON tree
 *
 * libyaml does scanning and syntax; typing, anchors, merge keys, duplicates and all limits are here
 * (libyaml passes them through and has no limits).
 *
 * Invariants: an alias is copied, so the tree stays a tree; copies share their texts. What aliases
 *             and merge keys add is paid from `budget`, one unit a node and one each 64 bytes of
 * text. Fails with: -EINVAL (syntax, types, duplicates), -E2BIG (arena limit, depth, budget).
 * Upstream:   sigs.k8s.io/yaml YAMLToJSON over goyaml.v2. differences: a key of a mapping always
 *             wins over what << brings (there: only when it stands behind it); !!binary is refused.
 */
#include "common/data/json_priv.h"
#include "common/data/yaml.h"
#include "common/data/yaml_resolve.h"
#include "common/base/map.h"

#include <errno.h>
#include <yaml.h>

#define ALIAS_NODES_MAX 1000000

struct anchor {
    struct bh_json *v; /* NULL while the node is being read: an alias now would contain itself */
};
struct loader {
    struct bh_arena *a;
    yaml_parser_t parser;
    struct bh_map anchors; /* name -> struct anchor */
    size_t budget;
    unsigned depth, flags;
    struct bh_err *err;
};

static int load_node(struct loader *l, const yaml_event_t *ev, struct bh_json **ret);

static void event_delete(yaml_event_t *ev)
{
    yaml_event_delete(ev); /* clears the event; deleting it twice is harmless */
}
#define EVENT BH_CLEANUP(event_delete) yaml_event_t

static int fail(struct loader *l, yaml_mark_t m, int rc, const char *what)
{
    return bh_err_set(l->err, rc, "line %zu, column %zu: %s", m.line + 1, m.column + 1, what);
}

static int too_big(struct loader *l, yaml_mark_t m)
{
    return fail(l, m, -E2BIG, "object is too large");
}

static int next_event(struct loader *l, yaml_event_t *ev)
{
    memset(ev, 0, sizeof(*ev));
    if (yaml_parser_parse(&l->parser, ev))
        return 0;
    const char *what = l->parser.problem ? l->parser.problem : "not YAML";
    if (l->parser.error == YAML_READER_ERROR)
        return bh_err_set(l->err, -EINVAL, "byte %zu: %s", l->parser.problem_offset, what);
    return fail(l, l->parser.problem_mark, -EINVAL, what);
}

/* ---- scalars --------------------------------------------------------------------------------- */

static struct bh_json *new_text(struct loader *l, enum bh_json_type t, const char *p, size_t n)
{
    char *s = bh_json_text(l->a, p, n);
    return s ? bh_json_new_text(l->a, t, (struct bh_str){s, n}) : NULL;
}

/* Is the explicit tag the standard one of this kind? */
static bool tag_is(const yaml_event_t *ev, const char *name)
{
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *tag = (const char *)ev->data.scalar.tag;
    return tag && strncmp(tag, prefix, sizeof(prefix) - 1) == 0 &&
           bh_streq(tag + sizeof(prefix) - 1, name);
}

static int resolve(struct loader *l, const yaml_event_t *ev, struct bh_yaml_scalar *s)
{
    s->kind = BH_YAML_STRING;
    if (!ev->data.scalar.tag && !ev->data.scalar.plain_implicit)
        return 0;
    bh_yaml_resolve((const char *)ev->data.scalar.value, ev->data.scalar.length, s);
    /* An explicit standard tag must fit what the text resolves to; foreign tags make strings. */
    if (!ev->data.scalar.tag)
        return 0;
    bool known = true, fits = true;
    if (tag_is(ev, "int"))
        fits = s->kind == BH_YAML_INT;
    else if (tag_is(ev, "float"))
        fits = s->kind == BH_YAML_FLOAT || s->kind == BH_YAML_INT || s->kind == BH_YAML_NOT_FINITE;
    else if (tag_is(ev, "bool"))
        fits = s->kind == BH_YAML_BOOL;
    else if (tag_is(ev, "null"))
        fits = s->kind == BH_YAML_NULL;
    else
        known = false;
    if (tag_is(ev, "binary"))
        return fail(l, ev->start_mark, -EINVAL, "!!binary is not supported");
    if (!fits)
        return fail(l, ev->start_mark, -EINVAL, "value does not fit its tag");
    if (!known)
        s->kind = BH_YAML_STRING;
    return 0;
}

static int load_scalar(struct loader *l, const yaml_event_t *ev, struct bh_json **ret)
{
    struct bh_yaml_scalar s;
    struct bh_json *v = NULL;
    int rc = resolve(l, ev, &s);
    if (rc < 0)
        return rc;
    switch (s.kind) {
    case BH_YAML_NULL:
        v = bh_json_new(l->a, BH_JSON_NULL);
        break;
    case BH_YAML_BOOL:
        v = bh_json_new_bool(l->a, s.b);
        break;
    case BH_YAML_INT:
    case BH_YAML_FLOAT:
        v = new_text(l, BH_JSON_NUMBER, s.number, strlen(s.number));
        break;
    case BH_YAML_NOT_FINITE:
        return fail(l, ev->start_mark, -EINVAL, "infinity and nan have no JSON form");
    case BH_YAML_STRING:
    case BH_YAML_TIMESTAMP:
        if (!(l->flags & BH_JSON_NUL) && memchr(ev->data.scalar.value, 0, ev->data.scalar.length))
            return fail(l, ev->start_mark, -EINVAL, "NUL in string");
        v = new_text(l, BH_JSON_STRING, (const char *)ev->data.scalar.value,
                     ev->data.scalar.length);
        break;
    }
    if (!v)
        return too_big(l, ev->start_mark);
    v->line = (uint32_t)ev->start_mark.line + 1;
    *ret = v;
    return 0;
}

/* ---- anchors --------------------------------------------------------------------------------- */

static int anchor_begin(struct loader *l, const yaml_event_t *ev, const yaml_char_t *name,
                        struct anchor **ret)
{
    *ret = NULL;
    if (!name)
        return 0;
    struct anchor *an = bh_arena_new(l->a, struct anchor);
    if (!an)
        return too_big(l, ev->start_mark);
    bh_map_put(&l->anchors, (const char *)name, strlen((const char *)name), an);
    *ret = an;
    return 0;
}

/* The anchor keeps its own node: the one in the tree may yet be overwritten as a repeated
 * member. */
static int anchor_end(struct loader *l, const yaml_event_t *ev, struct anchor *an,
                      const struct bh_json *v)
{
    if (!an)
        return 0;
    an->v = bh_arena_memdup(l->a, v, sizeof(*v));
    return an->v ? 0 : too_big(l, ev->start_mark);
}

/* Deep copy that shares texts. NULL: budget, depth or arena used up. */
static struct bh_json *copy_shared(struct loader *l, const struct bh_json *v, unsigned depth)
{
    bool container = v->type == BH_JSON_ARRAY || v->type == BH_JSON_OBJECT;
    size_t cost = 1 + v->key.n / 64 + (container ? 0 : v->type >= BH_JSON_NUMBER ? v->s.n / 64 : 0);
    if (l->budget < cost || depth > BH_JSON_MAX_DEPTH)
        return NULL;
    l->budget -= cost;
    struct bh_json *c = bh_arena_memdup(l->a, v, sizeof(*v));
    if (!c)
        return NULL;
    c->next = NULL;
    if (!container)
        return c;
    bh_json_clear(c);
    bh_json_each(m, v) {
        bool deeper = m->type == BH_JSON_ARRAY || m->type == BH_JSON_OBJECT;
        struct bh_json *mc = copy_shared(l, m, depth + deeper);
        if (!mc)
            return NULL;
        bh_json_push(c, mc);
    }
    return c;
}

static int load_alias(struct loader *l, const yaml_event_t *ev, struct bh_json **ret)
{
    const char *name = (const char *)ev->data.alias.anchor;
    struct anchor *an = bh_map_get(&l->anchors, name, strlen(name));
    if (!an)
        return fail(l, ev->start_mark, -EINVAL, "unknown anchor");
    if (!an->v)
        return fail(l, ev->start_mark, -EINVAL, "anchor contains itself");
    *ret = copy_shared(l, an->v, l->depth + 1);
    if (!*ret)
        return fail(l, ev->start_mark, -E2BIG, "document contains excessive aliasing");
    (*ret)->line = (uint32_t)ev->start_mark.line + 1;
    return 0;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static int key_text(struct loader *l, yaml_mark_t m, struct bh_yaml_scalar *s, struct bh_str *ret)
{
    char text[48];
    switch (s->kind) {
    case BH_YAML_STRING:
    case BH_YAML_TIMESTAMP:
        return 0; /* as it stands */
    case BH_YAML_BOOL:
        snprintf(text, sizeof(text), "%s", s->b ? "true" : "false");
        break;
    case BH_YAML_INT:
        memcpy(text, s->number, sizeof(text));
        break;
    case BH_YAML_FLOAT:
        bh_yaml_float_key(s->f, text);
        break;
    case BH_YAML_NULL:
    case BH_YAML_NOT_FINITE:
        return fail(l, m, -EINVAL, "mapping key must not be null, infinity or nan");
    }
    char *t = bh_json_text(l->a, text, strlen(text));
    if (!t)
        return too_big(l, m);
    *ret = (struct bh_str){t, strlen(t)};
    return 0;
}

static int load_key(struct loader *l, const yaml_event_t *ev, struct bh_str *ret)
{
    struct bh_yaml_scalar s = {.kind = BH_YAML_STRING};
    if (ev->type == YAML_ALIAS_EVENT) {
        struct bh_json *v;
        int rc = load_alias(l, ev, &v);
        bool text = rc == 0 && (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER);
        if (rc == 0 && (!text || memchr(v->s.p, 0, v->s.n)))
            rc = fail(l, ev->start_mark, -EINVAL, "mapping key must be a scalar");
        if (rc == 0)
            *ret = v->s;
        return rc;
    }
    if (ev->type != YAML_SCALAR_EVENT)
        return fail(l, ev->start_mark, -EINVAL, "mapping key must be a scalar");
    if (memchr(ev->data.scalar.value, 0, ev->data.scalar.length))
        return fail(l, ev->start_mark, -EINVAL, "NUL in mapping key");
    int rc = resolve(l, ev, &s);
    if (rc < 0)
        return rc;
    /* Loaded as a string in any case: the key may carry an anchor. */
    struct bh_json *v =
        new_text(l, BH_JSON_STRING, (const char *)ev->data.scalar.value, ev->data.scalar.length);
    struct anchor *an;
    if (!v)
        return too_big(l, ev->start_mark);
    rc = anchor_begin(l, ev, ev->data.scalar.anchor, &an);
    if (rc == 0)
        rc = anchor_end(l, ev, an, v);
    *ret = v->s;
    return rc < 0 ? rc : key_text(l, ev->start_mark, &s, ret);
}

static int merge_one(struct loader *l, yaml_mark_t m, struct bh_json *into,
                     const struct bh_json *from)
{
    if (from->type != BH_JSON_OBJECT)
        return fail(l, m, -EINVAL, "map merge requires map or sequence of maps as the value");
    bh_json_each(f, from) {
        struct bh_json *c = copy_shared(l, f, l->depth + 1);
        if (!c)
            return fail(l, m, -E2BIG, "document contains excessive aliasing");
        bh_json_push(into, c);
    }
    return 0;
}

/* Adds what << brings. In dedup the later member of a name wins, so the weakest come first. */
static int merge_all(struct loader *l, yaml_mark_t m, struct bh_json *obj,
                     const struct bh_json *merges)
{
    struct bh_json *all = bh_json_new(l->a, BH_JSON_OBJECT);
    int rc = all ? 0 : too_big(l, m);
    for (const struct bh_json *from = merges->c.first; rc == 0 && from; from = from->next) {
        if (from->type != BH_JSON_ARRAY) {
            rc = merge_one(l, m, all, from);
            continue;
        }
        /* In a sequence of maps the earlier one takes precedence. */
        BH_CLEANUP(bh_freep) const struct bh_json **v = bh_calloc(from->c.n + 1, sizeof(*v));
        size_t n = 0;
        bh_json_each(e, from)
            v[n++] = e;
        while (rc == 0 && n > 0)
            rc = merge_one(l, m, all, v[--n]);
    }
    if (rc < 0)
        return rc;
    for (struct bh_json *v = obj->c.first, *next; v; v = next) {
        next = v->next;
        bh_json_push(all, v);
    }
    bh_json_dedup(all, false);
    obj->c = all->c;
    return 0;
}

static int load_member(struct loader *l, const yaml_event_t *key_ev, struct bh_json *obj,
                       struct bh_json *merges)
{
    bool merge = key_ev->type == YAML_SCALAR_EVENT && key_ev->data.scalar.length == 2 &&
                 memcmp(key_ev->data.scalar.value, "<<", 2) == 0 &&
                 (key_ev->data.scalar.plain_implicit || tag_is(key_ev, "merge"));
    struct bh_str key = {NULL, 0};
    struct bh_json *v;
    int rc = merge ? 0 : load_key(l, key_ev, &key);
    if (rc < 0)
        return rc;
    EVENT ev;
    rc = next_event(l, &ev);
    if (rc == 0)
        rc = load_node(l, &ev, &v);
    if (rc < 0)
        return rc;
    if (merge) {
        bh_json_push(merges, v);
    } else {
        v->key = key;
        v->line = (uint32_t)key_ev->start_mark.line + 1;
        bh_json_push(obj, v);
    }
    return 0;
}

static int load_mapping(struct loader *l, const yaml_event_t *start, struct bh_json *obj)
{
    struct bh_json merges = {.type = BH_JSON_ARRAY};
    for (;;) {
        EVENT ev;
        int rc = next_event(l, &ev);
        if (rc < 0)
            return rc;
        if (ev.type == YAML_MAPPING_END_EVENT)
            break;
        rc = load_member(l, &ev, obj, &merges);
        if (rc < 0)
            return rc;
    }
    if (l->flags & BH_JSON_REPEATS && !merges.c.n)
        return 0;
    /* What << brings must not hide a repeated key. */
    struct bh_json *dup = bh_json_dedup(obj, l->flags & (BH_JSON_STRICT | BH_JSON_REPEATS));
    if (dup)
        return bh_err_set(l->err, -EINVAL, "line %u: duplicate field \"%.250s\"", dup->line,
                          dup->key.p);
    return merges.c.n ? merge_all(l, start->start_mark, obj, &merges) : 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static int load_sequence(struct loader *l, struct bh_json *arr)
{
    for (;;) {
        struct bh_json *v;
        EVENT ev;
        int rc = next_event(l, &ev);
        if (rc < 0)
            return rc;
        if (ev.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        rc = load_node(l, &ev, &v);
        if (rc < 0)
            return rc;
        bh_json_push(arr, v);
    }
}

static int load_container(struct loader *l, const yaml_event_t *ev, struct bh_json **ret)
{
    bool mapping = ev->type == YAML_MAPPING_START_EVENT;
    struct anchor *an;
    if (l->depth == BH_JSON_MAX_DEPTH)
        return fail(l, ev->start_mark, -E2BIG, "nested too deeply");
    struct bh_json *v = bh_json_new(l->a, mapping ? BH_JSON_OBJECT : BH_JSON_ARRAY);
    if (!v)
        return too_big(l, ev->start_mark);
    v->line = (uint32_t)ev->start_mark.line + 1;
    int rc = anchor_begin(
        l, ev, mapping ? ev->data.mapping_start.anchor : ev->data.sequence_start.anchor, &an);
    if (rc < 0)
        return rc;
    l->depth++;
    rc = mapping ? load_mapping(l, ev, v) : load_sequence(l, v);
    l->depth--;
    if (rc < 0)
        return rc;
    *ret = v;
    return anchor_end(l, ev, an, v);
}

static int load_node(struct loader *l, const yaml_event_t *ev, struct bh_json **ret)
{
    struct anchor *an;
    int rc;
    switch (ev->type) {
    case YAML_SCALAR_EVENT:
        rc = anchor_begin(l, ev, ev->data.scalar.anchor, &an);
        if (rc == 0)
            rc = load_scalar(l, ev, ret);
        return rc < 0 ? rc : anchor_end(l, ev, an, *ret);
    case YAML_ALIAS_EVENT:
        return load_alias(l, ev, ret);
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return load_container(l, ev, ret);
    default:
        return fail(l, ev->start_mark, -EINVAL, "unexpected end of document");
    }
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Next document of the stream; *ret is NULL at its end. */
static int load_document(struct loader *l, struct bh_json **ret)
{
    *ret = NULL;
    for (;;) {
        EVENT ev;
        int rc = next_event(l, &ev);
        if (rc < 0 || ev.type == YAML_STREAM_END_EVENT)
            return rc;
        if (ev.type == YAML_STREAM_START_EVENT || ev.type == YAML_DOCUMENT_END_EVENT)
            continue;
        if (ev.type != YAML_DOCUMENT_START_EVENT)
            return load_node(l, &ev, ret);
        bh_map_clear(&l->anchors); /* anchors end with their document */
    }
}

static void loader_fini(struct loader *l)
{
    yaml_parser_delete(&l->parser);
    bh_map_fini(&l->anchors);
}

static void loader_init(struct loader *l, struct bh_arena *a, const char *p, size_t n,
                        unsigned flags, struct bh_err *err)
{
    *l = (struct loader){.a = a, .budget = ALIAS_NODES_MAX, .flags = flags, .err = err};
    if (!yaml_parser_initialize(&l->parser))
        abort(); /* out of ordinary memory, see base.h */
    yaml_parser_set_input_string(&l->parser, (const unsigned char *)p, n);
}

/* JSON goes to the JSON reader: it is faster, and libyaml rejects \ud83d\ude00. */
static bool looks_like_json(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
        i++;
    return i < n && p[i] == '{';
}

static int parse_first(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                       struct bh_json **ret_v, struct bh_err *err)
{
    BH_CLEANUP(loader_fini) struct loader l;
    struct bh_json *v;
    loader_init(&l, a, p, n, flags, err);
    int rc = load_document(&l, &v);
    if (rc == 0 && !v)
        v = bh_json_new(a, BH_JSON_NULL);
    if (rc == 0 && !v)
        rc = bh_err_set(err, -E2BIG, "object is too large");
    if (rc == 0)
        *ret_v = v;
    return rc;
}

int bh_yaml_parse(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                  struct bh_json **ret_v, struct bh_err *err)
{
    if (!looks_like_json(p, n))
        return parse_first(a, p, n, flags, ret_v, err);
    int rc = bh_json_parse(a, p, n, flags, ret_v, err);
    /* `{a: 1}` is YAML's flow style. When it is not even that, the JSON reader's message stands. */
    if (rc == -EINVAL && parse_first(a, p, n, flags, ret_v, NULL) == 0)
        rc = 0;
    return rc;
}

static int parse_stream(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                        struct bh_json *all, struct bh_err *err)
{
    BH_CLEANUP(loader_fini) struct loader l;
    struct bh_json *v;
    int rc;
    loader_init(&l, a, p, n, flags, err);
    while ((rc = load_document(&l, &v)) == 0 && v)
        if (v->type != BH_JSON_NULL)
            bh_json_push(all, v);
    return rc;
}

struct json_docs {
    struct bh_arena *a;
    unsigned flags;
    struct bh_json *all;
    struct bh_err *err;
};

static int on_json_doc(void *arg, const char *p, size_t n)
{
    struct json_docs *d = arg;
    struct bh_json *v;
    int rc = bh_json_parse(d->a, p, n, d->flags, &v, d->err);
    if (rc == 0)
        bh_json_push(d->all, v);
    return rc;
}

int bh_yaml_parse_all(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                      struct bh_json **ret_array, struct bh_err *err)
{
    struct bh_json *all = bh_json_new(a, BH_JSON_ARRAY);
    if (!all)
        return bh_err_set(err, -E2BIG, "object is too large");
    int rc;
    if (looks_like_json(p, n)) {
        struct json_docs d = {.a = a, .flags = flags, .all = all, .err = err};
        struct bh_json_split *s = bh_json_split_new(BH_JSON_SPLIT_DOCS, n, on_json_doc, &d);
        bh_err_set(err, 0, "unexpected end of input");
        rc = bh_json_split_feed(s, p, n);
        if (rc == 0)
            rc = bh_json_split_finish(s, NULL);
        bh_json_split_free(s);
        if (rc == -EINVAL) {
            all = bh_json_new(a, BH_JSON_ARRAY);
            if (all && parse_stream(a, p, n, flags, all, NULL) == 0)
                rc = 0;
        }
    } else {
        rc = parse_stream(a, p, n, flags, all, err);
    }
    if (rc == 0)
        *ret_array = all;
    return rc;
}
