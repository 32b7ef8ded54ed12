/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/convert.c - size() and the conversions between scalar types
 *
 * Upstream: cel-go/common/types; a number that does not fit is a "range error".
 */
#include <math.h>

#include "common/base/opt.h"
#include "common/base/zone.h"
#include "common/cel/cel_int.h"
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

struct cel_value bh_cel_size_fn(struct cel_eval *e, const struct cel_value *arg)
{
    if (arg->kind == CEL_STRING)
        bh_cel_work(e, arg->n / 64);
    return cel_int((int64_t)bh_cel_size(arg));
}

/* Decimal digits of the whole string with an optional sign; false = anything else, too large. */
static bool parse_int(const struct cel_value *s, bool *ret_neg, uint64_t *ret)
{
    uint64_t v = 0;
    uint32_t i = 0;

    *ret_neg = s->n && s->s[0] == '-';
    i += s->n && (s->s[0] == '-' || s->s[0] == '+');
    if (i == s->n)
        return false;
    for (; i < s->n; i++) {
        if (s->s[i] < '0' || s->s[i] > '9' || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (unsigned)(s->s[i] - '0'), &v))
            return false;
    }
    *ret = v;
    return true;
}

static struct cel_value conversion_error(struct cel_eval *e, const char *to)
{
    return bh_cel_error(e, "type conversion error from 'string' to '%s'", to);
}

struct cel_value bh_cel_int(struct cel_eval *e, const struct cel_value *arg)
{
    uint64_t v;
    bool neg;

    switch (arg->kind) {
    case CEL_INT:
        return *arg;
    case CEL_UINT:
        return arg->u > INT64_MAX ? bh_cel_error(e, "integer overflow") : cel_int((int64_t)arg->u);
    case CEL_DOUBLE:
        if (!(arg->d > -0x1p63 && arg->d < 0x1p63))
            return bh_cel_error(e, "integer overflow");
        return cel_int((int64_t)arg->d);
    case CEL_TIMESTAMP: /* whole seconds */
        return cel_int(arg->i / NS_PER_S - (arg->i % NS_PER_S < 0));
    case CEL_DURATION: /* nanoseconds */
        return cel_int(arg->i);
    default:
        bh_cel_work(e, arg->n / 10);
        if (!parse_int(arg, &neg, &v) || v > (uint64_t)INT64_MAX + neg)
            return conversion_error(e, "int");
        return cel_int((int64_t)(neg ? 0 - v : v));
    }
}

struct cel_value bh_cel_uint(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value r = {.kind = CEL_UINT};
    bool neg;

    switch (arg->kind) {
    case CEL_UINT:
        return *arg;
    case CEL_INT:
        r.u = (uint64_t)arg->i;
        return arg->i < 0 ? bh_cel_error(e, "unsigned integer overflow") : r;
    case CEL_DOUBLE:
        if (!(arg->d >= 0 && arg->d < 0x1p64))
            return bh_cel_error(e, "unsigned integer overflow");
        r.u = (uint64_t)arg->d;
        return r;
    default:
        bh_cel_work(e, arg->n / 10);
        if (!arg->n || arg->s[0] < '0' || !parse_int(arg, &neg, &r.u))
            return conversion_error(e, "uint");
        return r;
    }
}

struct cel_value bh_cel_double(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value r = {.kind = CEL_DOUBLE};
    char *end, *text;

    switch (arg->kind) {
    case CEL_DOUBLE:
        return *arg;
    case CEL_INT:
        r.d = (double)arg->i;
        return r;
    case CEL_UINT:
        r.d = (double)arg->u;
        return r;
    default:
        bh_cel_work(e, arg->n / 10);
        text = bh_arena_strndup(e->arena, arg->s, arg->n);
        r.d = strtod(text, &end);
        /* what C accepts and Go does not: blanks in front, a text behind "nan" */
        if (arg->n == 0 || end != text + arg->n || (unsigned char)text[0] <= ' ' ||
            strchr(text, '('))
            return conversion_error(e, "double");
        return r;
    }
}

struct cel_value bh_cel_string(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value r = *arg;
    struct bh_buf b = {0};
    size_t w;

    switch (arg->kind) {
    case CEL_STRING:
        return r;
    case CEL_BYTES:
        bh_cel_work(e, arg->n / 10);
        r.kind = CEL_STRING;
        for (size_t i = 0; i < arg->n; i += w)
            if (bh_utf8_get(arg->s + i, arg->n - i, &w) == 0xfffd && w == 1)
                return bh_cel_error(e, "invalid UTF-8 in bytes, cannot convert to string");
        return r;
    case CEL_BOOL:
        return arg->b ? cel_str("true", 4) : cel_str("false", 5);
    case CEL_INT:
        bh_buf_addi64(&b, arg->i);
        break;
    case CEL_UINT:
        bh_buf_addf(&b, "%llu", (unsigned long long)arg->u);
        break;
    case CEL_TIMESTAMP: {
        int64_t ns = arg->i % 1000000000 + (arg->i % 1000000000 < 0 ? 1000000000 : 0);
        char text[32], part[16];
        bh_time_format_ns(text, arg->i);
        int n = snprintf(part, sizeof(part), ".%09lld", (long long)ns);
        while (n && (part[n - 1] == '0' || part[n - 1] == '.'))
            n--;
        bh_buf_addf(&b, "%.*s%.*sZ", (int)strlen(text) - 1, text, n, part);
        break;
    }
    case CEL_DURATION:
        bh_buf_addf64(&b, (double)arg->i / 1e9);
        bh_buf_addc(&b, 's');
        break;
    default:
        bh_buf_addf64(&b, arg->d);
    }
    return bh_cel_take_text(e, &b);
}

struct cel_value bh_cel_to_bool(struct cel_eval *e, const struct cel_value *arg)
{
    static const char *const text[] = {"0", "f", "F", "false", "False", "FALSE",
                                       "1", "t", "T", "true",  "True",  "TRUE"};

    if (arg->kind == CEL_BOOL)
        return *arg;
    for (size_t i = 0; i < BH_ARRAY_LEN(text); i++)
        if (bh_str_eqc((struct bh_str){arg->s, arg->n}, text[i]))
            return cel_bool(i >= BH_ARRAY_LEN(text) / 2);
    return conversion_error(e, "bool");
}

struct cel_value bh_cel_bytes(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value r = *arg;

    bh_cel_work(e, arg->n / 10);
    r.kind = CEL_BYTES;
    return r;
}

struct cel_value bh_cel_dyn(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return *arg;
}

struct cel_value bh_cel_type(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return (struct cel_value){.kind = CEL_TYPE, .i = arg->kind};
}

/* ---- times ----------------------------------------------------------------------------------- */

struct cel_value bh_cel_time(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value r = {.kind = (uint32_t)e->how};

    if (arg->kind == r.kind)
        return *arg;
    if (arg->kind == CEL_INT && r.kind == CEL_DURATION) /* declared upstream, but not made */
        return bh_cel_error(e, "type conversion error from 'int' to 'google.protobuf.Duration'");
    if (arg->kind == CEL_INT)
        return __builtin_mul_overflow(arg->i, NS_PER_S, &r.i)
                   ? bh_cel_error(e, "timestamp overflow")
                   : r;
    if (!bh_cel_work(e, arg->n / 16))
        return r;
    const char *text = bh_arena_strndup(e->arena, arg->s, arg->n);

    if (strlen(text) != arg->n || (r.kind == CEL_DURATION ? bh_parse_duration_ns(text, &r.i) < 0
                                                          : bh_time_parse_ns(text, &r.i) < 0))
        return conversion_error(e, bh_cel_kind_name(r.kind));
    return r;
}

/* Part number how: of a time by clocks that are so many seconds ahead of UTC, counted from zero but
 * for the day of getDate(); of a span the whole number of hours, minutes or seconds, and the
 * milliseconds that are left. */
static struct cel_value time_part(const struct cel_eval *e, const struct cel_value *arg,
                                  int64_t ahead)
{
    bool span = arg->kind == CEL_DURATION;
    int64_t ms = arg->i / 1000000 - (!span && arg->i % 1000000 < 0);
    time_t s = ms / 1000 - (!span && ms % 1000 < 0), shown = s + ahead;
    struct tm t = {0};

    gmtime_r(&shown, &t);
    const int64_t part[] = {span ? s / 3600 : t.tm_hour,
                            span ? s / 60 : t.tm_min,
                            span ? s : t.tm_sec,
                            ms - s * 1000,
                            t.tm_year + 1900,
                            t.tm_mon,
                            t.tm_mday,
                            t.tm_mday - 1,
                            t.tm_wday,
                            t.tm_yday};
    return cel_int(part[e->how]);
}

struct cel_value bh_cel_time_part(struct cel_eval *e, const struct cel_value *arg)
{
    return time_part(e, arg, 0);
}

static bool atoi_part(const char *p, size_t n, int64_t *ret)
{
    bool sign = n && (*p == '-' || *p == '+');
    int64_t v = 0;

    if (n == sign || n > 9)
        return false;
    for (size_t i = sign; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (p[i] - '0');
    }
    *ret = *p == '-' ? -v : v;
    return true;
}

/* "+02:00", "-5:30", or the name of a zone. */
struct cel_value bh_cel_time_part_at(struct cel_eval *e, const struct cel_value *arg)
{
    struct bh_err err = {{0}};
    struct bh_zone zone;
    int64_t part[2];

    if (!bh_cel_work(e, arg[1].n / 16))
        return cel_int(0);
    const char *place = bh_arena_strndup(e->arena, arg[1].s, arg[1].n), *colon = strchr(place, ':');
    if (strlen(place) != arg[1].n)
        return bh_cel_error(e, "unknown time zone %s", place);
    if (colon) {
        const char *text[] = {bh_arena_strndup(e->arena, place, (size_t)(colon - place)),
                              colon + 1};
        for (int i = 0; i < 2; i++)
            if (!atoi_part(text[i], strlen(text[i]), &part[i]))
                return bh_cel_error(e, "strconv.Atoi: parsing \"%s\": invalid syntax", text[i]);
        int64_t minutes = part[0] * 60 + (*place == '-' ? -part[1] : part[1]);
        return time_part(e, arg, minutes * 60);
    }
    (void)bh_cel_work(e, 200); /* to read the zone's file */
    if (bh_zone_load(&zone, place, &err) < 0)
        return bh_cel_error(e, "%s", err.msg);
    int64_t s = arg->i / 1000000000 - (arg->i % 1000000000 < 0);
    struct cel_value v = time_part(e, arg, bh_zone_offset(&zone, s));
    bh_zone_fini(&zone);
    return v;
}
