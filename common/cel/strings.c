/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/strings.c - functions of strings
 *
 * Positions count code points. The price is paid by the caller; copies are work, which is limited
 * before the copy is made.
 * Upstream: cel-go/ext/strings.go (version 2), k8s.io/apiserver/pkg/cel/library/regex.go.
 */
#include "common/cel/cel_int.h"

static struct bh_str str(const struct cel_value *v)
{
    return (struct bh_str){v->s, v->n};
}

/* An int that may be missing. */
static int64_t option(const struct cel_value *v, int64_t otherwise)
{
    return v->kind == CEL_INT ? v->i : otherwise;
}

/* Byte offset of the rune with this index; -1 when there are fewer. The end counts as one more. */
static int64_t offset_of(const struct cel_value *s, int64_t rune)
{
    size_t at = 0, w;

    for (; rune > 0 && at < s->n; rune--, at += w)
        (void)bh_utf8_get(s->s + at, s->n - at, &w);
    return rune == 0 ? (int64_t)at : -1;
}

/* Byte offset of the needle at or behind `from`; -1 = none. */
static int64_t find_bytes(struct bh_str s, size_t from, struct bh_str needle)
{
    if (needle.n == 0)
        return (int64_t)from;
    const char *at = memmem(s.p + from, s.n - from, needle.p, needle.n);
    return at ? at - s.p : -1;
}

struct cel_value bh_cel_contains(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return cel_bool(find_bytes(str(&arg[0]), 0, str(&arg[1])) >= 0);
}

struct cel_value bh_cel_starts_with(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return cel_bool(arg[0].n >= arg[1].n && memcmp(arg[0].s, arg[1].s, arg[1].n) == 0);
}

struct cel_value bh_cel_ends_with(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return cel_bool(arg[0].n >= arg[1].n &&
                    memcmp(arg[0].s + (arg[0].n - arg[1].n), arg[1].s, arg[1].n) == 0);
}

/* ---- regular expressions ---- */

/* A pattern made while evaluating is compiled each time: its code is charged, what a malformed one
 * left behind is given back. */
static const struct bh_regex *pattern_of(struct cel_eval *e, const struct cel_value *arg,
                                         struct cel_value *ret_err)
{
    struct bh_arena_mark mark = bh_arena_mark(e->arena);
    const char *why = NULL;

    if (e->node->call.regex)
        return e->node->call.regex;
    if (!bh_cel_work(e, 100 + arg[1].n))
        return NULL;
    const struct bh_regex *re = bh_regex_compile(e->arena, str(&arg[1]), &why);
    if (re)
        return bh_cel_work(e, bh_regex_size(re)) ? re : NULL;
    bh_arena_rewind(e->arena, mark);
    *ret_err =
        bh_cel_error(e, "%serror parsing regexp: %s",
                     bh_streq(e->node->call.func->name, "matches") ? "" : "Illegal regex: ", why);
    return NULL;
}

/* Work that the estimate above did not foresee (counted repetitions) is charged as well. */
static bool search(struct cel_eval *e, const struct bh_regex *re, struct bh_str s, size_t from,
                   size_t *ret_from, size_t *ret_to)
{
    enum { STEPS_PER_UNIT = 20 };
    uint64_t steps = 0, left = CEL_WORK_LIMIT - e->work;
    bool found =
        bh_regex_find(re, e->arena, s, from, ret_from, ret_to, &steps, (left + 1) * STEPS_PER_UNIT);

    return bh_cel_work(e, steps / STEPS_PER_UNIT) && found;
}

struct cel_value bh_cel_matches(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value err = cel_bool(false);
    const struct bh_regex *re = pattern_of(e, arg, &err);
    size_t from, to;

    return re ? cel_bool(search(e, re, str(arg), 0, &from, &to)) : err;
}

struct cel_value bh_cel_find(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value err = cel_str("", 0);
    const struct bh_regex *re = pattern_of(e, arg, &err);
    size_t from, to;

    if (!re)
        return err;
    return search(e, re, str(arg), 0, &from, &to) ? cel_str(arg->s + from, to - from)
                                                  : cel_str("", 0);
}

/* Matches do not overlap; an empty one right behind another match does not count. */
struct cel_value bh_cel_find_all(struct cel_eval *e, const struct cel_value *arg)
{
    int64_t max = option(&arg[2], -1);
    struct cel_value err = cel_list(NULL, 0), *item;
    const struct bh_regex *re = pattern_of(e, arg, &err);
    size_t at = 0, from, to, last = SIZE_MAX, n = 0, w = 1;
    int64_t most = max < 0 || max > (int64_t)arg->n + 1 ? (int64_t)arg->n + 1 : max;

    if (!re || !bh_cel_work(e, arg->n))
        return err;
    item = bh_arena_new_array(e->arena, struct cel_value, (size_t)most + 1);
    while ((int64_t)n < most && at <= arg->n && search(e, re, str(arg), at, &from, &to)) {
        if (to > from || from != last)
            item[n++] = cel_str(arg->s + from, to - from);
        last = to;
        if (to == from && to < arg->n)
            (void)bh_utf8_get(arg->s + to, arg->n - to, &w);
        at = to + (to == from ? w : 0);
    }
    return cel_list(item, n);
}

/* ---- positions ---- */

struct cel_value bh_cel_char_at(struct cel_eval *e, const struct cel_value *arg)
{
    int64_t at = offset_of(arg, arg[1].i);
    size_t w;

    if (arg[1].i < 0 || at < 0)
        return bh_cel_error(e, "index out of range: %lld", (long long)arg[1].i);
    if (at == (int64_t)arg->n)
        return cel_str("", 0);
    (void)bh_utf8_get(arg->s + at, arg->n - (size_t)at, &w);
    return cel_str(arg->s + at, w);
}

struct cel_value bh_cel_index_of(struct cel_eval *e, const struct cel_value *arg)
{
    int64_t first = option(&arg[2], 0);

    if (!bh_cel_work(e, 1 + arg[0].n / 100))
        return cel_int(-1);
    if (arg[1].n == 0)
        return cel_int(first);
    if (first < 0)
        return bh_cel_error(e, "index out of range: %lld", (long long)first);
    int64_t at = offset_of(arg, first);
    if (at < 0)
        return cel_int(-1);
    at = find_bytes(str(&arg[0]), (size_t)at, str(&arg[1]));
    return cel_int(at < 0 ? -1 : (int64_t)bh_utf8_count(arg->s, (size_t)at));
}

static char *backwards(struct cel_eval *e, const char *s, size_t n)
{
    char *p = bh_arena_alloc(e->arena, n + 1);

    for (size_t i = 0; i < n; i++)
        p[i] = s[n - 1 - i];
    return p;
}

/* The last needle that begins at or before this byte: the first of the text read backwards, which
 * takes no longer than the two are. */
static struct cel_value last_before(struct cel_eval *e, const struct cel_value *arg, size_t first)
{
    struct bh_str needle = str(&arg[1]);
    size_t n = BH_MIN(first + needle.n, (size_t)arg[0].n);

    if (!bh_cel_work(e, 1 + (arg[0].n + needle.n) / 16) || needle.n > n)
        return cel_int(-1);
    const struct bh_str s = {backwards(e, arg[0].s, n), n};
    int64_t at = find_bytes(s, 0, (struct bh_str){backwards(e, needle.p, needle.n), needle.n});
    return cel_int(at < 0 ? -1 : (int64_t)bh_utf8_count(arg->s, n - (size_t)at - needle.n));
}

struct cel_value bh_cel_last_index_of(struct cel_eval *e, const struct cel_value *arg)
{
    if (e->node->n_args == 2)
        return last_before(e, arg, arg[0].n);
    int64_t at = arg[2].i < 0 ? -1 : offset_of(arg, arg[2].i);

    if (arg[1].n == 0)
        return arg[2];
    if (arg[2].i < 0)
        return bh_cel_error(e, "index out of range: %lld", (long long)arg[2].i);
    if (at < 0 || at == (int64_t)arg->n)
        return cel_int(-1);
    return last_before(e, arg, (size_t)at);
}

/* substring(from) and substring(from, to); the call tells which. */
struct cel_value bh_cel_substring(struct cel_eval *e, const struct cel_value *arg)
{
    bool open = e->node->n_args == 2;

    int64_t from = arg[1].i < 0 ? -1 : offset_of(arg, arg[1].i);
    int64_t to = open ? (int64_t)arg->n : arg[2].i < 0 ? -1 : offset_of(arg, arg[2].i);
    if (from < 0 || to < 0)
        return bh_cel_error(e, "index out of range: %lld",
                            (long long)(from < 0 ? arg[1].i : arg[2].i));
    if (from > to)
        return bh_cel_error(e, "invalid substring range. start: %lld, end: %lld",
                            (long long)arg[1].i, (long long)arg[2].i);
    return cel_str(arg->s + from, (size_t)(to - from));
}

/* ---- copies ---- */

/* lowerAscii() and upperAscii(): how is the first letter of those that change. */
struct cel_value bh_cel_map_ascii(struct cel_eval *e, const struct cel_value *arg)
{
    const int first = e->how;

    if (!bh_cel_work(e, 1 + arg->n / 16))
        return *arg;
    char *p = bh_arena_memdup(e->arena, arg->s, arg->n);
    for (uint32_t i = 0; i < arg->n; i++)
        if (p[i] >= first && p[i] < first + 26)
            p[i] ^= 'a' ^ 'A';
    return cel_str(p, arg->n);
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

struct cel_value bh_cel_trim(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    size_t from = 0, to = 0, w;
    bool started = false;

    for (size_t i = 0; i < arg->n; i += w) {
        if (is_space(bh_utf8_get(arg->s + i, arg->n - i, &w)))
            continue;
        from = started ? from : i;
        started = true;
        to = i + w;
    }
    return cel_str(arg->s + from, to - from);
}

/* A literal of CEL with this value. */
/* Neither controls nor blanks, invisible characters, private use. */
static bool is_printable(uint32_t c)
{
    static const uint32_t hidden[][2] = {{0, 0x1f},          {0x7f, 0xa0},         {0xad, 0xad},
                                         {0x1680, 0x1680},   {0x2000, 0x200f},     {0x2028, 0x202f},
                                         {0x205f, 0x206f},   {0x3000, 0x3000},     {0xe000, 0xf8ff},
                                         {0xfeff, 0xfeff},   {0xfff0, 0xfffb},     {0xfffe, 0xffff},
                                         {0xe0000, 0xe00ff}, {0xf0000, UINT32_MAX}};

    for (size_t i = 0; i < BH_ARRAY_LEN(hidden); i++)
        if (c >= hidden[i][0] && c <= hidden[i][1])
            return false;
    return true;
}

void bh_cel_add_quoted(struct bh_buf *b, struct bh_str s, bool go)
{
    static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
    size_t w;

    bh_buf_addc(b, '"');
    for (size_t i = 0; i < s.n; i += w) {
        uint32_t c = bh_utf8_get(s.p + i, s.n - i, &w);
        const char *known = c && c < 0x80 ? strchr(from, (int)c) : NULL;
        bool broken = c == BH_UTF8_BAD && w == 1;
        if (known)
            bh_buf_addf(b, "\\%c", to[known - from]);
        else if (go && (broken || (c < 0x80 && !is_printable(c))))
            bh_buf_addf(b, "\\x%02x", (unsigned char)s.p[i]);
        else if (go && !is_printable(c))
            bh_buf_addf(b, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        else if (broken)
            bh_buf_adds(b, "\xef\xbf\xbd");
        else
            bh_buf_add(b, s.p + i, w);
    }
    bh_buf_addc(b, '"');
}

struct cel_value bh_cel_quote(struct cel_eval *e, const struct cel_value *arg)
{
    struct bh_buf b = {0};

    if (!bh_cel_work(e, 1 + arg->n / 16))
        return *arg;
    bh_cel_add_quoted(&b, str(arg), false);
    return bh_cel_take_text(e, &b);
}

/* End of the piece that begins at `at`: before the separator, or behind a rune if it is empty. */
static size_t piece_end(struct bh_str s, size_t at, struct bh_str sep, bool *ret_last)
{
    size_t w;

    if (sep.n == 0) {
        (void)bh_utf8_get(s.p + at, s.n - at, &w);
        *ret_last = at + w == s.n;
        return at + w;
    }
    int64_t end = find_bytes(s, at, sep);
    *ret_last = end < 0;
    return end < 0 ? s.n : (size_t)end;
}

struct cel_value bh_cel_split(struct cel_eval *e, const struct cel_value *arg)
{
    int64_t max = option(&arg[2], -1);
    struct bh_str s = str(&arg[0]), sep = str(&arg[1]);
    size_t most = max < 0 || max > (int64_t)s.n + 1 ? s.n + 1 : (size_t)max, n = 0, at = 0;
    bool last = false;

    if (most == 0 || (s.n == 0 && sep.n == 0) || !bh_cel_work(e, s.n))
        return cel_list(NULL, 0);
    struct cel_value *item = bh_arena_new_array(e->arena, struct cel_value, most);
    while (!last) {
        size_t end = piece_end(s, at, sep, &last);
        if (n + 1 == most) {
            end = s.n;
            last = true;
        }
        item[n++] = cel_str(s.p + at, end - at);
        at = end + sep.n;
    }
    return cel_list(item, n);
}

struct replacing {
    struct cel_eval *e;
    struct bh_str s, old, new;
    struct bh_buf out;
    int64_t left;
};

static bool put(struct replacing *r, struct bh_str s)
{
    if (!bh_cel_work(r->e, 1 + s.n / 10))
        return false;
    bh_buf_add(&r->out, s.p, s.n);
    return true;
}

/* An empty `old` stands before every rune and at the end. */
static void replace_between(struct replacing *r)
{
    size_t at = 0, w;

    for (; r->left > 0 && put(r, r->new); r->left--, at += w) {
        if (at == r->s.n)
            return;
        (void)bh_utf8_get(r->s.p + at, r->s.n - at, &w);
        if (!put(r, (struct bh_str){r->s.p + at, w}))
            return;
    }
    (void)put(r, (struct bh_str){r->s.p + at, r->s.n - at});
}

static void replace_found(struct replacing *r)
{
    size_t at = 0;
    int64_t found = -1;

    while (r->left-- > 0 && (found = find_bytes(r->s, at, r->old)) >= 0) {
        if (!put(r, (struct bh_str){r->s.p + at, (size_t)found - at}) || !put(r, r->new))
            return;
        at = (size_t)found + r->old.n;
    }
    (void)put(r, (struct bh_str){r->s.p + at, r->s.n - at});
}

struct cel_value bh_cel_replace(struct cel_eval *e, const struct cel_value *arg)
{
    int64_t max = option(&arg[3], -1);
    struct replacing r = {
        e, str(&arg[0]), str(&arg[1]), str(&arg[2]), {0}, max < 0 ? INT64_MAX : max};

    if (bh_cel_work(e, 1 + r.s.n / 16)) {
        if (r.old.n == 0)
            replace_between(&r);
        else
            replace_found(&r);
    }
    return bh_cel_take_text(e, &r.out);
}

struct cel_value bh_cel_join(struct cel_eval *e, const struct cel_value *list)
{
    struct bh_str sep = e->node->n_args == 2 ? str(&list[1]) : BH_STR("");
    struct bh_buf b = {0};

    for (uint32_t i = 0; i < list->n; i++) {
        const struct cel_value *item = &list->list[i];
        if (item->kind != CEL_STRING) {
            bh_buf_fini(&b);
            return bh_cel_no_overload(e, "join", list, e->node->n_args);
        }
        if (!bh_cel_work(e, 1 + (item->n + sep.n) / 10))
            break;
        bh_buf_add(&b, sep.p, i ? sep.n : 0);
        bh_buf_add(&b, item->s, item->n);
    }
    return bh_cel_take_text(e, &b);
}
