/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json_read.c - strict JSON reader
 *
 * The input is copied into the arena once and then edited in place: strings are unescaped where
 * they stand and the closing quote becomes their NUL. A number has no such byte behind it that
 * could be overwritten before it is read, so it moves one byte to the left, onto the byte that led
 * to it. So a tree costs the text once plus one node a value.
 *
 * Invariants: base[0] is spare (for a number at the very start), text[n] is NUL and ends every
 * loop. Fails with: -EINVAL (syntax, UTF-8, duplicate), -E2BIG (arena limit, depth). Grammar: RFC
 * 8259, nothing more: no comments, no NaN, no leading zeros, no lone surrogates; no NUL in a member
 * name, and none in a string without BH_JSON_NUL.
 */
#include "common/data/json_priv.h"
#include "common/data/json_scan.h"

#include <errno.h>

struct reader {
    struct bh_arena *a;
    char *text, *p, *end;
    uint32_t line;
    unsigned depth, flags;
    const char *src; /* the untouched input, to tell line and column of an error */
    struct bh_err *err;
};

static int parse_value(struct reader *r, struct bh_json **ret);

static void say_at(struct reader *r, const char *at, int rc, const char *what)
{
    size_t off = (size_t)(at - r->text), line = 1, col = 1;
    for (size_t i = 0; i < off; i++) {
        if (r->src[i] == '\n') {
            line++;
            col = 1;
        } else {
            col++;
        }
    }
    bh_err_set(r->err, rc, "line %zu, column %zu: %s", line, col, what);
}

static void say(struct reader *r, const char *what)
{
    say_at(r, r->p, -EINVAL, r->p >= r->end ? "unexpected end of input" : what);
}
/* The error number stands where it is returned: clang-tidy follows no call at this depth. */
#define fail_at(r, at, rc, what) (say_at(r, at, rc, what), (rc))
#define fail(r, what)            (say(r, what), -EINVAL)
#define too_big(r)               fail_at(r, (r)->p, -E2BIG, "object is too large")

static inline void skip_space(struct reader *r)
{
    for (;; r->p++) {
        if (bh_likely((unsigned char)*r->p > ' '))
            return;
        if (*r->p == '\n')
            r->line++;
        else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r')
            return;
    }
}

static struct bh_json *node(struct reader *r, enum bh_json_type t)
{
    struct bh_json *v = bh_arena_alloc(r->a, sizeof(*v));
    if (bh_likely(v != NULL))
        *v = (struct bh_json){.type = t, .line = r->line};
    return v;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Four hexadecimal digits at p, or -1. Stops at the NUL behind the text. */
static int32_t hex4(const char *p)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        int d = bh_hex_value(p[i]);
        if (d < 0)
            return -1;
        v = v << 4 | d;
    }
    return v;
}

/* r->p is at the `u`. */
static int unescape_unicode(struct reader *r, char **out)
{
    int32_t c = hex4(r->p + 1);
    if (c < 0)
        return fail(r, "invalid \\u escape in string");
    if (c >= 0xdc00 && c <= 0xdfff)
        return fail(r, "lone surrogate in string");
    if (c >= 0xd800 && c <= 0xdbff) {
        int32_t low = r->p[5] == '\\' && r->p[6] == 'u' ? hex4(r->p + 7) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail(r, "lone surrogate in string");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        r->p += 6;
    }
    if (!c && !(r->flags & BH_JSON_NUL))
        return fail(r, "NUL in string");
    r->p += 5;
    *out += bh_utf8_put(*out, (uint32_t)c);
    return 0;
}

/* r->p is at the backslash. */
static int unescape(struct reader *r, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = *++r->p;
    if (c == 'u')
        return unescape_unicode(r, out);
    const char *hit = c ? strchr(from, c) : NULL;
    if (!hit)
        return fail(r, "invalid escape in string");
    *(*out)++ = to[hit - from];
    r->p++;
    return 0;
}

/* r->p is behind the opening quote. The text is unescaped in place; the output can never overtake
 * the input, every escape is longer than what it stands for. */
static int parse_string(struct reader *r, struct bh_str *ret)
{
    char *start = r->p, *out = start;
    for (;;) {
        char *stop = (char *)(uintptr_t)bh_json_scan_plain(r->p, r->end);
        size_t plain = (size_t)(stop - r->p);
        if (out != r->p)
            memmove(out, r->p, plain);
        out += plain;
        r->p = stop;
        if (r->p >= r->end)
            return fail(r, "");
        if (bh_likely(*r->p == '"'))
            break;
        if (*r->p == '\\') {
            int rc = unescape(r, &out);
            if (rc < 0)
                return rc;
            continue;
        }
        if ((unsigned char)*r->p < 0x20)
            return fail(r, "control character in string");
        unsigned len = bh_utf8_len(r->p, r->end);
        if (!len)
            return fail(r, "invalid UTF-8 in string");
        memmove(out, r->p, len);
        out += len;
        r->p += len;
    }
    r->p++;
    *out = 0;
    *ret = (struct bh_str){start, (size_t)(out - start)};
    return 0;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static inline char *skip_digits(char *p)
{
    while (bh_is_digit(*p))
        p++;
    return p;
}

static int parse_number(struct reader *r, struct bh_json **ret)
{
    char *start = r->p, *digits = start + (*start == '-');
    char *p = *digits == '0' ? digits + 1 : skip_digits(digits);
    if (p > digits && *p == '.') {
        digits = p + 1;
        p = skip_digits(digits);
    }
    if (p > digits && (*p == 'e' || *p == 'E')) {
        digits = p + (p[1] == '+' || p[1] == '-' ? 2 : 1);
        p = skip_digits(digits);
    }
    if (p == digits) {
        r->p = p;
        return fail(r, "invalid number");
    }
    struct bh_json *v = node(r, BH_JSON_NUMBER);
    if (!v)
        return too_big(r);
    size_t n = (size_t)(p - start);
    memmove(start - 1, start, n);
    start[n - 1] = 0;
    v->s = (struct bh_str){start - 1, n};
    r->p = p;
    *ret = v;
    return 0;
}

static int parse_word(struct reader *r, struct bh_json **ret)
{
    struct bh_json *v = node(r, BH_JSON_NULL);
    if (!v)
        return too_big(r);
    if (strncmp(r->p, "true", 4) == 0) {
        v->type = BH_JSON_BOOL;
        v->b = true;
        r->p += 4;
    } else if (strncmp(r->p, "false", 5) == 0) {
        v->type = BH_JSON_BOOL;
        r->p += 5;
    } else if (strncmp(r->p, "null", 4) == 0) {
        r->p += 4;
    } else {
        return fail(r, "unexpected character");
    }
    *ret = v;
    return 0;
}

/* ---- containers ------------------------------------------------------------------------------ */

static int parse_member(struct reader *r, struct bh_json **ret)
{
    struct bh_str key;
    skip_space(r);
    if (*r->p != '"')
        return fail(r, "expected a string as member name");
    r->p++;
    int rc = parse_string(r, &key);
    if (rc < 0)
        return rc;
    if (memchr(key.p, 0, key.n)) /* names are C strings to all users of the tree */
        return fail_at(r, key.p, -EINVAL, "NUL in member name");
    skip_space(r);
    if (*r->p != ':')
        return fail(r, "expected : after member name");
    r->p++;
    rc = parse_value(r, ret);
    if (rc < 0)
        return rc;
    (*ret)->key = key;
    return 0;
}

static int close_object(struct reader *r, struct bh_json *obj)
{
    char what[300];
    if (r->flags & BH_JSON_REPEATS)
        return 0;
    struct bh_json *dup = bh_json_dedup(obj, r->flags & BH_JSON_STRICT);
    if (!dup)
        return 0;
    snprintf(what, sizeof(what), "duplicate field \"%.250s\"", dup->key.p);
    return fail_at(r, dup->key.p, -EINVAL, what);
}

static inline void append(struct bh_json *parent, struct bh_json *v)
{
    if (parent->c.last)
        parent->c.last->next = v;
    else
        parent->c.first = v;
    parent->c.last = v;
    parent->c.n++;
}

/* Lists and objects apart: one loop that asks for each child which it is costs 12 instructions a value. */
static int parse_list(struct reader *r, struct bh_json *list)
{
    skip_space(r);
    for (char c = *r->p == ']' ? *r->p++ : ','; c != ']'; r->p++) {
        struct bh_json *v;
        int rc = parse_value(r, &v);
        if (rc < 0)
            return rc;
        append(list, v);
        skip_space(r);
        c = *r->p;
        if (c != ',' && c != ']')
            return fail(r, "expected , or ] in array");
    }
    return 0;
}

static int parse_object(struct reader *r, struct bh_json *obj)
{
    /* One bit a name: as long as no bit is met twice no name is either. */
    uint64_t seen = 0;
    bool maybe_dup = false;
    skip_space(r);
    for (char c = *r->p == '}' ? *r->p++ : ','; c != '}'; r->p++) {
        struct bh_json *v;
        int rc = parse_member(r, &v);
        if (rc < 0)
            return rc;
        append(obj, v);
        /* p[0] is the NUL of an empty name, p[n / 2] is in range for every n. */
        uint64_t bit = 1ull << ((v->key.n * 31 + (unsigned char)v->key.p[0] * 7 +
                                 (unsigned char)v->key.p[v->key.n / 2]) &
                                63);
        maybe_dup |= (seen & bit) != 0;
        seen |= bit;
        skip_space(r);
        c = *r->p;
        if (c != ',' && c != '}')
            return fail(r, "expected , or } in object");
    }
    return maybe_dup ? close_object(r, obj) : 0;
}

static int parse_value(struct reader *r, struct bh_json **ret)
{
    skip_space(r);
    char c = *r->p;
    if (c == '"') {
        struct bh_json *v = node(r, BH_JSON_STRING);
        if (!v)
            return too_big(r);
        r->p++;
        *ret = v;
        return parse_string(r, &v->s);
    }
    if (c == '{' || c == '[') {
        if (r->depth == BH_JSON_MAX_DEPTH)
            return fail_at(r, r->p, -E2BIG, "nested too deeply");
        struct bh_json *v = node(r, c == '{' ? BH_JSON_OBJECT : BH_JSON_ARRAY);
        if (!v)
            return too_big(r);
        r->p++;
        r->depth++;
        int rc = c == '{' ? parse_object(r, v) : parse_list(r, v);
        r->depth--;
        *ret = v;
        return rc;
    }
    if (c == '-' || bh_is_digit(c))
        return parse_number(r, ret);
    return parse_word(r, ret);
}

int bh_json_parse(struct bh_arena *a, const char *p, size_t n, unsigned flags,
                  struct bh_json **ret_v, struct bh_err *err)
{
    struct bh_json *v;
    char *base = n < SIZE_MAX - 2 ? bh_arena_alloc(a, n + 2) : NULL;
    if (!base)
        return bh_err_set(err, -E2BIG, "line 1, column 1: object is too large");
    struct reader r = {.a = a,
                       .text = base + 1,
                       .p = base + 1,
                       .end = base + 1 + n,
                       .line = 1,
                       .flags = flags,
                       .src = p,
                       .err = err};
    base[0] = 0;
    if (n)
        memcpy(r.text, p, n);
    r.text[n] = 0;
    int rc = parse_value(&r, &v);
    if (rc < 0)
        return rc;
    skip_space(&r);
    if (r.p != r.end && !(flags & BH_JSON_FIRST))
        return fail(&r, "unexpected text after the value");
    *ret_v = v;
    return 0;
}
