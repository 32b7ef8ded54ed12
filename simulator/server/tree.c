/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/tree.c - type-checked look-ups and "set when absent" on JSON trees
 */
#include "simulator/server/tree.h"

#include "common/k8s/quantity.h"
#include <openssl/evp.h>

static struct bh_json *typed(const struct bh_json *v, const char *dotted, enum bh_json_type t)
{
    struct bh_json *m = strchr(dotted, '.') ? bh_json_path(v, dotted) : bh_json_get(v, dotted);

    return m && m->type == t ? m : NULL;
}

struct bh_json *bh_tree_arr(const struct bh_json *v, const char *dotted)
{
    return typed(v, dotted, BH_JSON_ARRAY);
}

struct bh_json *bh_tree_obj(const struct bh_json *v, const char *dotted)
{
    return typed(v, dotted, BH_JSON_OBJECT);
}

const char *bh_tree_str(const struct bh_json *v, const char *dotted)
{
    return bh_json_cstr(typed(v, dotted, BH_JSON_STRING));
}

int64_t bh_tree_i64(const struct bh_json *v, const char *dotted, int64_t dflt)
{
    const struct bh_json *m = typed(v, dotted, BH_JSON_NUMBER);
    int64_t n;

    return m && bh_json_i64(m, &n) ? n : dflt;
}

bool bh_tree_bool(const struct bh_json *v, const char *dotted, bool dflt)
{
    const struct bh_json *m = typed(v, dotted, BH_JSON_BOOL);

    return m ? m->b : dflt;
}

bool bh_tree_is(const struct bh_json *v, const char *dotted, const char *text)
{
    const char *s = bh_tree_str(v, dotted);

    return s && bh_streq(s, text);
}

bool bh_tree_has(const struct bh_json *v, const char *dotted)
{
    const struct bh_json *m =
        strchr(dotted, '.') ? bh_json_path(v, dotted) : bh_json_get(v, dotted);

    return m && m->type != BH_JSON_NULL;
}

bool bh_tree_lists(const struct bh_json *list, const char *text)
{
    bh_json_each(e, list) {
        const char *s = bh_json_cstr(e);
        if (s && bh_streq(s, text))
            return true;
    }
    return false;
}

int64_t bh_tree_scaled(const struct bh_json *v, int64_t total, bool up)
{
    const char *s = bh_json_cstr(v);
    int64_t n = 0;

    if (!v)
        return 0;
    if (!s)
        return bh_json_i64(v, &n) ? n : 0;
    __int128 part = (__int128)strtoll(s, NULL, 10) * total + (up ? 99 : 0);
    return (int64_t)BH_MIN(part / 100, INT32_MAX); /* as many as there can be of anything */
}

size_t bh_tree_len(const struct bh_json *v)
{
    return v && (v->type == BH_JSON_ARRAY || v->type == BH_JSON_OBJECT) ? v->c.n : 0;
}

bool bh_tree_scalar(struct bh_buf *b, const struct bh_json *v)
{
    if (!v)
        return false;
    if (v->type == BH_JSON_STRING || v->type == BH_JSON_NUMBER)
        bh_buf_add(b, v->s.p, v->s.n);
    else if (v->type == BH_JSON_BOOL)
        bh_buf_adds(b, v->b ? "true" : "false");
    else
        return false;
    return true;
}

void bh_tree_comma(struct bh_buf *b)
{
    if (!strchr("[{", b->p[b->n - 1]))
        bh_buf_addc(b, ',');
}

void bh_tree_add_str(struct bh_buf *b, const char *key, const char *value)
{
    bh_tree_comma(b);
    bh_buf_addf(b, "\"%s\":", key);
    bh_buf_add_json_str(b, value, strlen(value));
}

void bh_tree_add_base64(struct bh_buf *b, const void *p, size_t n)
{
    bh_buf_reserve(b, n / 3 * 4 + 8);
    b->n += (size_t)EVP_EncodeBlock((unsigned char *)b->p + b->n, p, (int)n);
}

bool bh_tree_deleting(const struct bh_json *obj)
{
    return bh_tree_str(obj, "metadata.deletionTimestamp") != NULL;
}

struct bh_json *bh_tree_condition(const struct bh_json *obj, const char *type)
{
    bh_json_each(c, bh_tree_arr(obj, "status.conditions")) {
        if (bh_tree_is(c, "type", type))
            return c;
    }
    return NULL;
}

bool bh_tree_condition_true(const struct bh_json *obj, const char *type)
{
    return bh_tree_is(bh_tree_condition(obj, type), "status", "True");
}

const char *bh_tree_label(const struct bh_json *obj, const char *key)
{
    return bh_json_get_str(bh_tree_obj(obj, "metadata.labels"), key);
}

const char *bh_tree_annotation(const struct bh_json *obj, const char *key)
{
    return bh_json_get_str(bh_tree_obj(obj, "metadata.annotations"), key);
}

bool bh_tree_is_default_class(const struct bh_json *storage_class)
{
    static const char *const keys[] = {"storageclass.kubernetes.io/is-default-class",
                                       "storageclass.beta.kubernetes.io/is-default-class"};

    for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++) {
        const char *v = bh_tree_annotation(storage_class, keys[i]);
        if (v && bh_streq(v, "true"))
            return true;
    }
    return false;
}

/* ---- setting --------------------------------------------------------------------------------- */

/* Nothing is absent from what is no object: there is no place to put it. */
static bool absent(const struct bh_json *obj, const char *key)
{
    const struct bh_json *m = bh_json_get(obj, key);

    return obj && obj->type == BH_JSON_OBJECT && (!m || m->type == BH_JSON_NULL);
}

const char *bh_tree_pinned_to(const struct bh_json *pod)
{
    bh_json_each(t, bh_tree_arr(pod, "spec.affinity.nodeAffinity."
                                     "requiredDuringSchedulingIgnoredDuringExecution."
                                     "nodeSelectorTerms")) {
        bh_json_each(f, bh_tree_arr(t, "matchFields")) {
            const char *node = bh_json_cstr(bh_json_first(bh_tree_arr(f, "values")));
            if (bh_tree_is(f, "key", "metadata.name") && node)
                return node;
        }
    }
    return "";
}

bool bh_tree_dflt_str(struct bh_arena *a, struct bh_json *obj, const char *key, const char *v)
{
    const char *s = bh_json_get_str(obj, key);

    if (!absent(obj, key) && !(s && !*s))
        return false;
    bh_json_set_str(a, obj, key, v);
    return true;
}

static struct bh_json *dflt_container(struct bh_arena *a, struct bh_json *obj, const char *key,
                                      enum bh_json_type t)
{
    struct bh_json *m = bh_json_get(obj, key);

    if (absent(obj, key))
        m = bh_json_set(a, obj, key, bh_json_new(a, t));
    return m && m->type == t ? m : NULL;
}

struct bh_json *bh_tree_dflt_obj(struct bh_arena *a, struct bh_json *obj, const char *key)
{
    return dflt_container(a, obj, key, BH_JSON_OBJECT);
}

struct bh_json *bh_tree_dflt_arr(struct bh_arena *a, struct bh_json *obj, const char *key)
{
    return dflt_container(a, obj, key, BH_JSON_ARRAY);
}

static void add_absent(struct bh_arena *a, struct bh_json *obj, const struct bh_json *from)
{
    for (struct bh_json *m = from->c.first, *next; m; m = next) {
        struct bh_json *has = bh_json_get(obj, m->key.p);
        next = m->next;
        if (m->type == BH_JSON_OBJECT && (has = bh_tree_dflt_obj(a, obj, m->key.p)))
            add_absent(a, has, m);
        else if (absent(obj, m->key.p) ||
                 (m->type == BH_JSON_STRING && has && has->type == BH_JSON_STRING && !has->s.n))
            bh_json_set(a, obj, m->key.p, m);
    }
}

void bh_tree_dflt(struct bh_arena *a, struct bh_json *obj, const char *fmt, ...)
{
    va_list ap;

    if (!obj || obj->type != BH_JSON_OBJECT)
        return;
    va_start(ap, fmt);
    add_absent(a, obj, bh_json_vadd(a, bh_json_new(a, BH_JSON_OBJECT), fmt, ap));
    va_end(ap);
}

void bh_tree_fill(struct bh_arena *a, struct bh_json *obj, const char *key,
                  const struct bh_json *from)
{
    struct bh_json *to = bh_tree_len(from) ? bh_tree_dflt_obj(a, obj, key) : NULL;

    bh_json_each(m, to ? from : NULL) {
        if (!bh_json_get(to, m->key.p))
            bh_json_set(a, to, m->key.p, bh_json_clone(a, m));
    }
}

struct bh_json *bh_tree_push_obj(struct bh_arena *a, struct bh_json *arr)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT);

    bh_json_push(arr, o);
    return o;
}

void bh_tree_set_quantity(struct bh_arena *a, struct bh_json *obj, const char *key, __int128 nano,
                          bool binary)
{
    struct bh_buf b = {0};

    bh_quantity_format(&b, nano, binary);
    bh_json_set_str(a, obj, key, bh_buf_str(&b));
    bh_buf_fini(&b);
}

static bool differs(const struct bh_json *obj, const char *key, const char *want)
{
    const char *s = bh_json_get_str(obj, key);

    return !bh_streq(s ? s : "", want);
}

bool bh_tree_set_condition(struct bh_arena *a, struct bh_json *obj, const char *type,
                           const char *status, const char *reason, const char *message,
                           const char *now)
{
    struct bh_json *c = bh_tree_condition(obj, type), *list;

    if (!c) {
        list = bh_tree_dflt_arr(a, bh_json_obj_at(a, obj, "status"), "conditions");
        if (!list)
            return false;
        c = bh_tree_push_obj(a, list);
        bh_json_set_str(a, c, "type", type);
    }
    bool flipped = differs(c, "status", status);
    bool changed = flipped || differs(c, "reason", reason) || differs(c, "message", message);
    if (flipped) {
        bh_json_set_str(a, c, "status", status);
        bh_json_set_str(a, c, "lastTransitionTime", now);
    }
    if (changed) {
        bh_json_set_str(a, c, "reason", reason);
        bh_json_set_str(a, c, "message", message);
    }
    return changed;
}
