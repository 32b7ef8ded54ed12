/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/semver.c - semantic versions
 *
 * Upstream: github.com/blang/semver/v4, k8s.io/apiserver/pkg/cel/library/semverlib.go; differences:
 *           build metadata is checked, then dropped.
 */
#include "common/cel/cel_int.h"

#define ALNUM "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"

/* The text up to the separator; *s moves behind it. */
static struct bh_str cut(struct bh_str *s, char separator)
{
    const char *at = s->n ? memchr(s->p, separator, s->n) : NULL;
    struct bh_str head = {s->p, at ? (size_t)(at - s->p) : s->n};
    size_t skip = at ? head.n + 1 : s->n;

    s->p += skip;
    s->n -= skip;
    return head;
}

static const char *number(struct bh_str s, uint64_t *ret)
{
    *ret = 0;
    if (s.n == 0)
        return "invalid character(s) found in version number \"\"";
    if (s.n > 1 && s.p[0] == '0')
        return "version number must not contain leading zeroes";
    for (size_t i = 0; i < s.n; i++) {
        if (!bh_is_digit(s.p[i]))
            return "invalid character(s) found in version number";
        if (__builtin_mul_overflow(*ret, 10u, ret) ||
            __builtin_add_overflow(*ret, (unsigned)(s.p[i] - '0'), ret))
            return "version number out of range";
    }
    return NULL;
}

static bool all_digits(struct bh_str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!bh_is_digit(s.p[i]))
            return false;
    return s.n > 0;
}

/* Identifiers between dots, behind '-' (numeric ones without leading zeros) or '+'. */
static const char *identifiers(struct bh_str s, bool pre)
{
    for (size_t left = s.n + 1; left > 0;) {
        struct bh_str id = cut(&s, '.');
        left -= id.n + 1;
        if (id.n == 0)
            return pre ? "prerelease is empty" : "build meta data is empty";
        for (size_t i = 0; i < id.n; i++)
            if (!strchr(ALNUM, id.p[i]) || !id.p[i])
                return "invalid character(s) found in version";
        if (pre && id.n > 1 && id.p[0] == '0' && all_digits(id))
            return "numeric PreRelease version must not contain leading zeroes";
    }
    return NULL;
}

/* A "v", missing minor and patch, leading zeros. The result lives in the arena. */
static const char *normalize(struct bh_arena *a, struct bh_str *s)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    unsigned parts = 0;
    struct bh_str rest = *s;

    if (rest.n && rest.p[0] == 'v')
        rest = (struct bh_str){rest.p + 1, rest.n - 1};
    for (bool more = true; parts < 3 && more; parts++) {
        size_t before = rest.n;
        struct bh_str part = parts < 2 ? cut(&rest, '.') : rest;
        more = part.n < before;
        bool last = parts < 2 && !more;
        if (last && (memchr(part.p, '+', part.n) || memchr(part.p, '-', part.n)))
            return "short version cannot contain PreRelease/Build meta data";
        while (part.n > 1 && part.p[0] == '0' && bh_is_digit(part.p[1]))
            part = (struct bh_str){part.p + 1, part.n - 1};
        bh_buf_adds(&b, parts ? "." : "");
        bh_buf_add(&b, part.p, part.n);
    }
    for (; parts < 3; parts++)
        bh_buf_adds(&b, ".0");
    *s = (struct bh_str){bh_arena_strndup(a, bh_buf_str(&b), b.n), b.n};
    return NULL;
}

const char *bh_cel_semver_parse(struct bh_arena *a, struct bh_str s, bool normal,
                                struct cel_semver *ret)
{
    const char *why = normal ? normalize(a, &s) : NULL;

    *ret = (struct cel_semver){0};
    if (why)
        return why;
    if (s.n == 0)
        return "version string empty";
    bool has_build = memchr(s.p, '+', s.n) != NULL;
    struct bh_str build = s;
    s = cut(&build, '+');
    bool has_pre = s.n && memchr(s.p, '-', s.n) != NULL;
    struct bh_str pre = s;
    s = cut(&pre, '-');
    struct bh_str major = cut(&s, '.'), minor = cut(&s, '.');
    if (s.n == 0)
        return "No Major.Minor.Patch elements found";
    if ((why = number(major, &ret->major)) || (why = number(minor, &ret->minor)) ||
        (why = number(s, &ret->patch)) || (has_pre && (why = identifiers(pre, true))) ||
        (has_build && (why = identifiers(build, false))))
        return why;
    if (has_pre)
        ret->pre = pre;
    return NULL;
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* Numbers by value (no leading zeros: the longer is larger), before words, which go by bytes. */
static int compare_identifier(struct bh_str a, struct bh_str b)
{
    bool a_num = all_digits(a), b_num = all_digits(b);

    if (a_num != b_num)
        return a_num ? -1 : 1;
    int c = a_num && a.n != b.n ? 0 : memcmp(a.p, b.p, BH_MIN(a.n, b.n));
    return c ? (c < 0 ? -1 : 1) : order(a.n, b.n);
}

int bh_cel_semver_compare(const struct cel_semver *a, const struct cel_semver *b)
{
    struct bh_str x = a->pre, y = b->pre;
    int c = order(a->major, b->major);

    c = c ? c : order(a->minor, b->minor);
    c = c ? c : order(a->patch, b->patch);
    if (c || (x.n == 0 && y.n == 0))
        return c;
    if (x.n == 0 || y.n == 0)
        return x.n == 0 ? 1 : -1; /* a release comes after its pre-releases */
    while (c == 0 && x.n && y.n)
        c = compare_identifier(cut(&x, '.'), cut(&y, '.'));
    return c ? c : order(x.n > 0, y.n > 0);
}

struct cel_value bh_cel_semver(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_semver *v = bh_arena_new(e->arena, struct cel_semver);
    bool normal = e->node->n_args == 2 && arg[1].b;
    bh_cel_work(e, arg->n / 10);
    const char *why = bh_cel_semver_parse(e->arena, (struct bh_str){arg->s, arg->n}, normal, v);

    if (why)
        return bh_cel_error(e, "%s", why);
    return (struct cel_value){.kind = CEL_SEMVER, .v = v};
}

/* major(), minor() and patch(): how is the offset of the number. */
struct cel_value bh_cel_semver_part(struct cel_eval *e, const struct cel_value *arg)
{
    return cel_int((int64_t) * (const uint64_t *)((const char *)arg->v + e->how));
}

/* isLessThan(), isGreaterThan() and compareTo(). */
struct cel_value bh_cel_order(struct cel_eval *e, const struct cel_value *arg)
{
    int c = arg->kind == CEL_SEMVER ? bh_cel_semver_compare(arg[0].v, arg[1].v)
                                    : (*arg[0].q > *arg[1].q) - (*arg[0].q < *arg[1].q);

    return e->how ? cel_bool(e->how == '<' ? c < 0 : c > 0) : cel_int(c);
}
