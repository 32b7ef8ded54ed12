/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json.c - the tree: look-up, building, comparing, copying
 *
 * Invariants: c.n is the number of children and c.last the last of them; an object has no two
 *             members of one name. Trees are at most BH_JSON_MAX_DEPTH deep (reader and patches see
 *             to that), so recursion is bounded.
 * Fails with: NULL when the arena is at its limit. Every builder takes NULL for a node it should
 *             have been given and passes it on, so a caller may look at arena->failed once at the
 * end.
 */
#include "common/data/json.h"
#include "common/data/json_priv.h"

#include <errno.h>
#include <stdio.h>

/* ---- look-up --------------------------------------------------------------------------------- */

static struct bh_json *find_member(const struct bh_json *obj, const char *key, size_t n)
{
    if (!obj || obj->type != BH_JSON_OBJECT)
        return NULL;
    bh_json_each(m, obj)
        if (m->key.n == n && memcmp(m->key.p, key, n) == 0)
            return m;
    return NULL;
}

struct bh_json *bh_json_get(const struct bh_json *obj, const char *key)
{
    return find_member(obj, key, strlen(key));
}

struct bh_json *bh_json_path(const struct bh_json *v, const char *dotted)
{
    for (;;) {
        const char *dot = strchrnul(dotted, '.');
        struct bh_json *m = find_member(v, dotted, (size_t)(dot - dotted));
        if (!m || !*dot)
            return m;
        v = m;
        dotted = dot + 1;
    }
}

struct bh_json *bh_json_at(const struct bh_json *arr, size_t i)
{
    struct bh_json *v = arr && arr->type == BH_JSON_ARRAY ? arr->c.first : NULL;
    while (v && i--)
        v = v->next;
    return v;
}

const char *bh_json_cstr(const struct bh_json *v)
{
    if (!v || v->type != BH_JSON_STRING)
        return NULL;
    return bh_likely(!memchr(v->s.p, 0, v->s.n)) ? v->s.p : BH_NUL_TEXT;
}

const char *bh_json_get_str(const struct bh_json *obj, const char *key)
{
    return bh_json_cstr(bh_json_get(obj, key));
}

const char *bh_json_get_text(const struct bh_json *obj, const char *key)
{
    const char *s = bh_json_get_str(obj, key);
    return s ? s : "";
}

struct bh_json *bh_json_get_list(const struct bh_json *obj, const char *key)
{
    struct bh_json *v = bh_json_get(obj, key);
    return v && v->type == BH_JSON_ARRAY ? v : NULL;
}

bool bh_json_i64(const struct bh_json *v, int64_t *ret)
{
    if (!v || v->type != BH_JSON_NUMBER || v->s.n == 0)
        return false;
    const char *p = v->s.p, *end = p + v->s.n;
    bool neg = *p == '-';
    uint64_t u = 0, max = neg ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    p += neg;
    if (p == end)
        return false;
    for (; p < end; p++) {
        if (!bh_is_digit(*p))
            return false;
        unsigned d = (unsigned)(*p - '0');
        if (u > (max - d) / 10)
            return false;
        u = u * 10 + d;
    }
    *ret = neg ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

int64_t bh_json_get_i64(const struct bh_json *obj, const char *key, int64_t dflt)
{
    int64_t v;
    return bh_json_i64(bh_json_get(obj, key), &v) ? v : dflt;
}

bool bh_json_get_bool(const struct bh_json *obj, const char *key, bool dflt)
{
    const struct bh_json *v = bh_json_get(obj, key);
    return v && v->type == BH_JSON_BOOL ? v->b : dflt;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static bool object_equal(const struct bh_json *a, const struct bh_json *b)
{
    /* Mostly both have the same order: look at the neighbour before searching. */
    const struct bh_json *hint = b->c.first;
    bh_json_each(m, a) {
        const struct bh_json *o =
            hint && bh_str_eq(hint->key, m->key) ? hint : find_member(b, m->key.p, m->key.n);
        if (!o || !bh_json_equal(m, o))
            return false;
        hint = o->next;
    }
    return true;
}

bool bh_json_equal(const struct bh_json *a, const struct bh_json *b)
{
    if (!a || !b)
        return a == b;
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case BH_JSON_NULL:
        return true;
    case BH_JSON_BOOL:
        return a->b == b->b;
    case BH_JSON_NUMBER: {
        /* 1 and 1.0 and 1e0 are one number (RFC 6902 4.6). Integers are compared exactly: two large
         * ones that a double cannot tell apart are different. */
        int64_t i, j;
        if (bh_str_eq(a->s, b->s))
            return true;
        bool ai = bh_json_i64(a, &i), bi = bh_json_i64(b, &j);
        if (ai && bi)
            return i == j;
        if (!strpbrk(a->s.p, ".eE") && !strpbrk(b->s.p, ".eE"))
            return false;
        return strtod(a->s.p, NULL) == strtod(b->s.p, NULL);
    }
    case BH_JSON_STRING:
        return bh_str_eq(a->s, b->s);
    case BH_JSON_ARRAY:
        if (a->c.n != b->c.n)
            return false;
        for (const struct bh_json *x = a->c.first, *y = b->c.first; x; x = x->next, y = y->next)
            if (!bh_json_equal(x, y))
                return false;
        return true;
    case BH_JSON_OBJECT:
        return a->c.n == b->c.n && object_equal(a, b);
    }
    return false;
}

/* ---- building -------------------------------------------------------------------------------- */

struct bh_json *bh_json_new(struct bh_arena *a, enum bh_json_type t)
{
    struct bh_json *v = bh_arena_new(a, struct bh_json);
    if (v)
        v->type = t;
    return v;
}

char *bh_json_text(struct bh_arena *a, const char *p, size_t n)
{
    char *t = bh_arena_alloc(a, n + 1);
    if (!t)
        return NULL;
    if (n)
        memcpy(t, p, n);
    t[n] = 0;
    return t;
}

struct bh_json *bh_json_new_text(struct bh_arena *a, enum bh_json_type t, struct bh_str s)
{
    struct bh_json *v = bh_json_new(a, t);
    if (v)
        v->s = s;
    return v;
}

struct bh_json *bh_json_new_str(struct bh_arena *a, const char *s, size_t n)
{
    char *t = bh_json_text(a, s, n);
    return t ? bh_json_new_text(a, BH_JSON_STRING, (struct bh_str){t, n}) : NULL;
}

struct bh_json *bh_json_new_cstr(struct bh_arena *a, const char *s)
{
    return bh_json_new_str(a, s, strlen(s));
}

struct bh_json *bh_json_new_i64(struct bh_arena *a, int64_t i)
{
    char text[22] = "-";
    size_t minus = i < 0, n = minus + bh_dec_u64(text + minus, minus ? -(uint64_t)i : (uint64_t)i);
    char *t = bh_json_text(a, text, n);
    return t ? bh_json_new_text(a, BH_JSON_NUMBER, (struct bh_str){t, n}) : NULL;
}

struct bh_json *bh_json_new_bool(struct bh_arena *a, bool b)
{
    struct bh_json *v = bh_json_new(a, BH_JSON_BOOL);
    if (v)
        v->b = b;
    return v;
}

struct bh_json *bh_json_set(struct bh_arena *a, struct bh_json *obj, const char *key,
                            struct bh_json *v)
{
    if (!obj || !v)
        return NULL;
    struct bh_json *old = bh_json_get(obj, key);
    if (old == v)
        return v;
    if (!old) {
        size_t n = strlen(key);
        char *k = bh_json_text(a, key, n);
        if (!k)
            return NULL;
        v->key = (struct bh_str){k, n};
        bh_json_push(obj, v);
        return v;
    }
    v->key = old->key;
    v->next = old->next;
    if (obj->c.last == old)
        obj->c.last = v;
    struct bh_json **at = &obj->c.first;
    while (*at != old)
        at = &(*at)->next;
    *at = v;
    return v;
}

struct bh_json *bh_json_set_str(struct bh_arena *a, struct bh_json *obj, const char *key,
                                const char *s)
{
    return bh_json_set(a, obj, key, bh_json_new_cstr(a, s));
}

void bh_json_set_text(struct bh_arena *a, struct bh_json *obj, const char *key, const char *s)
{
    if (s && *s)
        bh_json_set_str(a, obj, key, s);
}

struct bh_json *bh_json_set_i64(struct bh_arena *a, struct bh_json *obj, const char *key, int64_t v)
{
    return bh_json_set(a, obj, key, bh_json_new_i64(a, v));
}

struct bh_json *bh_json_set_bool(struct bh_arena *a, struct bh_json *obj, const char *key, bool b)
{
    return bh_json_set(a, obj, key, bh_json_new_bool(a, b));
}

struct bh_json *bh_json_obj_at(struct bh_arena *a, struct bh_json *obj, const char *key)
{
    struct bh_json *v = bh_json_get(obj, key);
    if (v && v->type == BH_JSON_OBJECT)
        return v;
    return bh_json_set(a, obj, key, bh_json_new(a, BH_JSON_OBJECT));
}

bool bh_json_unset(struct bh_json *obj, const char *key)
{
    struct bh_json *v = bh_json_get(obj, key);
    return v && bh_json_remove(obj, v);
}

void bh_json_drop(struct bh_json *obj, const char *names)
{
    for (struct bh_json *m = bh_json_first(obj), *next; m; m = next) {
        next = m->next;
        if (bh_word_at(names, m->key.p) >= 0)
            bh_json_remove(obj, m);
    }
}

void bh_json_push(struct bh_json *arr, struct bh_json *v)
{
    if (!arr || !v)
        return;
    v->next = NULL;
    if (arr->c.last)
        arr->c.last->next = v;
    else
        arr->c.first = v;
    arr->c.last = v;
    arr->c.n++;
}

bool bh_json_remove(struct bh_json *container, struct bh_json *child)
{
    struct bh_json *prev = NULL, **at = bh_json_first(container) ? &container->c.first : NULL;
    while (at && *at && *at != child) {
        prev = *at;
        at = &prev->next;
    }
    if (!at || !*at)
        return false;
    *at = child->next;
    if (container->c.last == child)
        container->c.last = prev;
    container->c.n--;
    child->next = NULL;
    return true;
}

static bool clone_text(struct bh_arena *a, struct bh_str *to, struct bh_str s)
{
    *to = (struct bh_str){bh_json_text(a, s.p, s.n), s.n};
    return to->p;
}

struct bh_json *bh_json_clone(struct bh_arena *a, const struct bh_json *v)
{
    if (!v)
        return NULL;
    struct bh_json *c = bh_json_new(a, v->type);
    if (!c)
        return NULL;
    c->line = v->line;
    switch (v->type) {
    case BH_JSON_NULL:
        break;
    case BH_JSON_BOOL:
        c->b = v->b;
        break;
    case BH_JSON_NUMBER:
    case BH_JSON_STRING:
        return clone_text(a, &c->s, v->s) ? c : NULL;
    case BH_JSON_ARRAY:
    case BH_JSON_OBJECT:
        bh_json_each(m, v) {
            struct bh_json *mc = bh_json_clone(a, m);
            if (!mc || (v->type == BH_JSON_OBJECT && !clone_text(a, &mc->key, m->key)))
                return NULL;
            bh_json_push(c, mc);
        }
    }
    return c;
}

unsigned bh_json_depth(const struct bh_json *v)
{
    unsigned deepest = 0;
    if (!v || v->type < BH_JSON_ARRAY)
        return 0;
    bh_json_each(m, v) {
        unsigned d = bh_json_depth(m);
        deepest = BH_MAX(d, deepest);
    }
    return deepest + 1;
}

/* ---- members of one name --------------------------------------------------------------------- */

/* Moves the value of later into earlier and unlinks later (prev is the member before it). */
static void fold(struct bh_json *obj, struct bh_json *earlier, struct bh_json *prev)
{
    struct bh_json *later = prev->next;
    prev->next = later->next;
    if (obj->c.last == later)
        obj->c.last = prev;
    obj->c.n--;
    later->key = earlier->key;
    later->next = earlier->next; /* after the unlinking: prev may be earlier itself */
    *earlier = *later;
}

static struct bh_json *dedup_few(struct bh_json *obj, bool strict)
{
    for (struct bh_json *prev = obj->c.first; prev && prev->next;) {
        struct bh_json *m = prev->next, *e = obj->c.first;
        while (e != m && !bh_str_eq(e->key, m->key))
            e = e->next;
        if (e != m) {
            if (strict)
                return m;
            fold(obj, e, prev);
        } else {
            prev = m;
        }
    }
    return NULL;
}

/* Open addressing over the members seen so far; the seed keeps hostile names from clustering. */
static struct bh_json *dedup_many(struct bh_json *obj, bool strict)
{
    size_t cap = 64;
    while (cap < obj->c.n * 2)
        cap *= 2;
    BH_CLEANUP(bh_freep) struct bh_json **slot = bh_calloc(cap, sizeof(*slot));
    uint64_t seed = bh_rand_entropy();
    struct bh_json *prev = NULL;
    for (struct bh_json *m = obj->c.first; m; m = prev ? prev->next : obj->c.first) {
        size_t i = bh_hash(m->key.p, m->key.n, seed) & (cap - 1);
        while (slot[i] && !bh_str_eq(slot[i]->key, m->key))
            i = (i + 1) & (cap - 1);
        if (!slot[i]) {
            slot[i] = m;
            prev = m;
        } else if (strict) {
            return m;
        } else {
            fold(obj, slot[i], prev);
        }
    }
    return NULL;
}

struct bh_json *bh_json_dedup(struct bh_json *obj, bool strict)
{
    return obj->c.n <= 16 ? dedup_few(obj, strict) : dedup_many(obj, strict);
}
