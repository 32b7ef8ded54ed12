/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json_make.c - trees from templates
 *
 * A template is our own text, never input: what is wrong with one is an assertion.
 */
#include "common/data/json.h"

#include <ctype.h>
#include <stdio.h>

#define KEY_BYTES 320

struct maker {
    struct bh_arena *a;
    const char *p;
    va_list ap;
};

static void skip(struct maker *m, const char *set)
{
    m->p += strspn(m->p, set);
}

static struct bh_json *number(struct maker *m, long long v, bool *ret_empty)
{
    *ret_empty = !v;
    return bh_json_new_i64(m->a, v);
}

/* Behind a '%'. */
static struct bh_json *argument(struct maker *m, bool *ret_empty)
{
    char size = 0;
    const char *s;
    bool b;

    for (; *m->p == 'l' || *m->p == 'z'; m->p++)
        size = *m->p;
    switch (*m->p++) {
    case 's':
        s = va_arg(m->ap, const char *);
        *ret_empty = !s || !*s;
        return bh_json_new_cstr(m->a, s ? s : "");
    case 'i':
        b = va_arg(m->ap, int);
        *ret_empty = !b;
        return bh_json_new_bool(m->a, b);
    case 'd':
        return number(m, size ? va_arg(m->ap, long) : va_arg(m->ap, int), ret_empty);
    case 'u':
        return number(m, size ? va_arg(m->ap, long) : va_arg(m->ap, unsigned), ret_empty);
    default:
        bh_assert(m->p[-1] == 'p');
        struct bh_json *v = va_arg(m->ap, void *);
        *ret_empty = !v;
        return v ? v : bh_json_new(m->a, BH_JSON_NULL);
    }
}

static void members(struct maker *m, struct bh_json *obj);

/* there: the member that the value is for, as it is. */
static struct bh_json *value(struct maker *m, struct bh_json *there, bool *ret_empty)
{
    struct bh_json *v;

    skip(m, " ");
    switch (*m->p) {
    case '%':
        m->p++;
        return argument(m, ret_empty);
    case '{':
        v = there && there->type == BH_JSON_OBJECT ? there : bh_json_new(m->a, BH_JSON_OBJECT);
        m->p++;
        members(m, v);
        bh_assert(*m->p == '}');
        break;
    case '[':
        v = bh_json_new(m->a, BH_JSON_ARRAY);
        for (m->p++; skip(m, " ,"), *m->p != ']';)
            bh_json_push(v, value(m, NULL, ret_empty));
        break;
    default: {
        /* A word, or a text in single quotes. */
        static const char *const words[] = {"null", "false", "true"};
        const char *p = m->p;
        bool quoted = *p == '\'';
        size_t n = strcspn(p += quoted, quoted ? "'" : ",}]");
        m->p = p + n + quoted;
        while (n && !quoted && p[n - 1] == ' ')
            n--;
        for (size_t i = 0; !quoted && i < BH_ARRAY_LEN(words); i++)
            if (strlen(words[i]) == n && memcmp(words[i], p, n) == 0)
                return i ? bh_json_new_bool(m->a, i == 2) : bh_json_new(m->a, BH_JSON_NULL);
        if (!quoted && n && strspn(p, "0123456789") >= n)
            return bh_json_new_i64(m->a, strtoll(p, NULL, 10));
        return bh_json_new_str(m->a, p, n);
    }
    }
    m->p++;
    *ret_empty = !bh_json_first(v);
    return v;
}

static void take_key(char key[KEY_BYTES], const char *p, size_t n)
{
    n = BH_MIN(n, (size_t)KEY_BYTES - 1);
    memcpy(key, p, n);
    key[n] = '\0';
}

/* Up to the end, or to the '}' that closes them. */
static void members(struct maker *m, struct bh_json *obj)
{
    for (; skip(m, " ,"), *m->p && *m->p != '}';) {
        size_t n = strcspn(m->p, ":");
        bool optional = n && m->p[n - 1] == '?', empty = false;
        char key[KEY_BYTES];
        if (strncmp(m->p, "%s:", 3) == 0)
            snprintf(key, sizeof key, "%s", va_arg(m->ap, const char *));
        else
            take_key(key, m->p, n - optional);
        m->p += n + 1;
        struct bh_json *there = bh_json_get(obj, key), *v = value(m, there, &empty);
        if (optional && empty)
            bh_json_unset(obj, key);
        else if (v != there)
            bh_json_set(m->a, obj, key, v);
    }
}

struct bh_json *bh_json_vadd(struct bh_arena *a, struct bh_json *obj, const char *fmt, va_list ap)
{
    struct maker m = {.a = a, .p = fmt};

    va_copy(m.ap, ap);
    members(&m, obj);
    va_end(m.ap);
    bh_assert(!*m.p);
    return obj;
}

struct bh_json *bh_json_make(struct bh_arena *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    struct bh_json *obj = bh_json_vadd(a, bh_json_new(a, BH_JSON_OBJECT), fmt, ap);
    va_end(ap);
    return obj;
}

struct bh_json *bh_json_add(struct bh_arena *a, struct bh_json *obj, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    bh_json_vadd(a, obj, fmt, ap);
    va_end(ap);
    return obj;
}

struct bh_json *bh_json_append(struct bh_arena *a, struct bh_json *arr, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    struct bh_json *obj = bh_json_vadd(a, bh_json_new(a, BH_JSON_OBJECT), fmt, ap);
    va_end(ap);
    bh_json_push(arr, obj);
    return obj;
}

struct bh_json *bh_json_list_at(struct bh_arena *a, struct bh_json *obj, const char *key)
{
    struct bh_json *v = bh_json_get(obj, key);

    return v && v->type == BH_JSON_ARRAY ? v
                                         : bh_json_set(a, obj, key, bh_json_new(a, BH_JSON_ARRAY));
}
