/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/quantity.c - resource quantities
 *
 * A quantity is digits (without sign and dot) times a power of ten, or times a power of 1024 for
 * the binary suffixes. Everything is exact down to one nano-unit, and rounded away from zero below
 * it, as upstream does while parsing.
 * Upstream: apimachinery/pkg/api/resource/quantity.go.
 */
#include "common/k8s/quantity.h"

#include <errno.h>

typedef unsigned __int128 u128;

#define NANO                   ((bh_nano)1000000000)
#define KEEP_DIGITS            38 /* as many as BH_NANO_MAX has; 10^38 < 2^127 */
#define BINARY_FRACTION_DIGITS 25
#define SMALL_DIGITS           18 /* 10^18 < 2^63 */

struct suffix {
    bool binary;
    int exp; /* of 10, or of 2 when binary */
};

/* The decimal text taken apart. Leading zeros of `digits` are dropped. */
struct decimal {
    const char *int_p, *frac_p;
    size_t int_n, frac_n;
};

/* e<int>, E<int>: clamped, since beyond +-100 every value is 0, 1n or saturated. */
static bool parse_exponent(const char *s, size_t n, int *ret)
{
    size_t i = 0;
    bool neg = false;
    int v = 0;

    if (n && (*s == '+' || *s == '-'))
        neg = s[i++] == '-';
    if (i == n)
        return false;
    for (; i < n; i++) {
        if (!bh_is_digit(s[i]))
            return false;
        if (v < 100000000)
            v = v * 10 + (s[i] - '0');
    }
    *ret = neg ? -v : v;
    return true;
}

static bool parse_suffix(const char *s, size_t n, struct suffix *ret)
{
    static const char decimal[] = "num kMGTPE", binary[] = "KMGTPE";
    const char *at;

    *ret = (struct suffix){false, 0};
    if (n == 0)
        return true;
    if (n == 1 && *s != ' ' && (at = memchr(decimal, *s, sizeof(decimal) - 1))) {
        ret->exp = 3 * (int)(at - decimal) - 9;
        return true;
    }
    if (n == 2 && s[1] == 'i' && (at = memchr(binary, *s, sizeof(binary) - 1))) {
        *ret = (struct suffix){true, 10 * (int)(at - binary + 1)};
        return true;
    }
    return (*s == 'e' || *s == 'E') && parse_exponent(s + 1, n - 1, &ret->exp);
}

/* Up to SMALL_DIGITS of them, behind those of v. */
static uint64_t add_digits(uint64_t v, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v = v * 10 + (uint64_t)(p[i] - '0');
    return v;
}

/* v * 10^exp, saturating. */
static u128 scale_up(u128 v, int64_t exp)
{
    static const uint64_t tens[] = {1,      10,      100,      1000,      10000,
                                    100000, 1000000, 10000000, 100000000, 1000000000};

    while (exp > 0 && v) {
        const int64_t step = v >> 64 ? 1 : BH_MIN(exp, 9);
        if (v > (u128)BH_NANO_MAX / 10)
            return (u128)BH_NANO_MAX;
        v *= tens[step];
        exp -= step;
    }
    return BH_MIN(v, (u128)BH_NANO_MAX);
}

/* v / 10^exp; *inexact is set when something is left. */
static u128 scale_down(u128 v, int64_t exp, bool *inexact)
{
    for (; exp > 0 && v; exp--) {
        *inexact |= v % 10 != 0;
        v /= 10;
    }
    return v;
}

static u128 decimal_nano(const struct decimal *d, int exp10)
{
    size_t total = d->int_n + d->frac_n, i = 0, kept = 0;
    bool inexact = false;
    u128 v = 0;

    if (bh_likely(total <= SMALL_DIGITS)) { /* what amounts look like, without 128 bits a digit */
        v = add_digits(add_digits(0, d->int_p, d->int_n), d->frac_p, d->frac_n);
        i = total;
    }
    for (; i < total && kept < KEEP_DIGITS; i++) {
        v = v * 10 + (u128)((i < d->int_n ? d->int_p[i] : d->frac_p[i - d->int_n]) - '0');
        kept += v != 0;
    }
    for (size_t j = i; j < total && !inexact; j++)
        inexact = (j < d->int_n ? d->int_p[j] : d->frac_p[j - d->int_n]) != '0';
    int64_t exp = (int64_t)exp10 + 9 - (int64_t)d->frac_n + (int64_t)(total - i);
    if (exp >= 0)
        return scale_up(v, exp);
    v = scale_down(v, -exp, &inexact);
    return v + inexact;
}

/* Fraction digits beyond the 25th only count as "something": the error is below 2^60 * 10^-16. */
static u128 binary_fraction_nano(const struct decimal *d, int shift)
{
    bool inexact = false;
    u128 v = 0;
    int n = 0;

    for (size_t i = 0; i < d->frac_n; i++) {
        if (n < BINARY_FRACTION_DIGITS) {
            v = v * 10 + (u128)(d->frac_p[i] - '0');
            n++;
        } else {
            inexact |= d->frac_p[i] != '0';
        }
    }
    if (n <= 9)
        return scale_up(v, 9 - n) << shift; /* < 10^9 << 60 */
    /* v * 2^shift / 10^(n-9): halve numerator and denominator together to stay inside 128 bits. */
    int over = n - 9, twos = BH_MIN(over, shift);
    u128 div = 1;
    for (int i = 0; i < over; i++)
        div *= 5;
    div <<= over - twos;
    v <<= shift - twos;
    return v / div + (inexact || v % div != 0);
}

static u128 binary_nano(const struct decimal *d, int shift)
{
    const u128 cap = (u128)INT64_MAX * (u128)NANO;
    size_t n = BH_MIN(d->int_n, (size_t)SMALL_DIGITS + 1); /* as many are less than 2^64 */
    uint64_t whole = add_digits(0, d->int_p, n);

    if (n < d->int_n || whole > (uint64_t)INT64_MAX >> shift)
        return cap;
    u128 v = (u128)(whole << shift) * (u128)NANO + (d->frac_n ? binary_fraction_nano(d, shift) : 0);
    return BH_MIN(v, cap);
}

int bh_quantity_parse(const char *s, size_t n, bh_nano *ret)
{
    struct decimal d = {0};
    struct suffix suffix;
    size_t i = 0;
    bool neg = false;

    if (n == 0)
        return -EINVAL;
    if (*s == '+' || *s == '-')
        neg = s[i++] == '-';
    while (i < n && s[i] == '0')
        i++;
    for (d.int_p = s + i; i < n && bh_is_digit(s[i]); i++)
        d.int_n++;
    if (i < n && s[i] == '.') {
        for (d.frac_p = s + ++i; i < n && bh_is_digit(s[i]); i++)
            d.frac_n++;
    }
    if (!parse_suffix(s + i, n - i, &suffix))
        return -EINVAL;
    u128 v = suffix.binary ? binary_nano(&d, suffix.exp) : decimal_nano(&d, suffix.exp);
    *ret = neg ? -(bh_nano)v : (bh_nano)v;
    return 0;
}

/* q / (odd << twos), rounded away from zero, clamped. */
static inline int64_t extract(bh_nano q, unsigned twos, uint64_t odd)
{
    if (bh_likely(q >= 0 && q >> twos <= INT64_MAX)) { /* shifted it fits 64 bits: terabytes do */
        const uint64_t u = (uint64_t)(q >> twos);
        return (int64_t)(u / odd + (u % odd || (uint64_t)q & ((1u << twos) - 1)));
    }
    const bh_nano unit = (bh_nano)odd << twos;
    bh_nano v = q / unit, rest = q % unit;

    v += rest > 0 ? 1 : rest < 0 ? -1 : 0;
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

int64_t bh_quantity_value(bh_nano q)
{
    return extract(q, 9, 1953125); /* 10^9 */
}

int64_t bh_quantity_milli_value(bh_nano q)
{
    return extract(q, 6, 15625); /* 10^6 */
}

static void add_u128(struct bh_buf *b, u128 v)
{
    char tmp[40];
    size_t at = sizeof(tmp);

    do {
        tmp[--at] = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v);
    bh_buf_add(b, tmp + at, sizeof(tmp) - at);
}

/* Fewest digits: the largest unit of which q is a multiple. */
static void format_in(struct bh_buf *b, u128 v, const char *const *units, size_t n, unsigned step)
{
    size_t i = 0;

    while (i + 1 < n && v % step == 0) {
        v /= step;
        i++;
    }
    add_u128(b, v);
    bh_buf_adds(b, units[i]);
}

void bh_quantity_format(struct bh_buf *b, bh_nano q, bool binary)
{
    static const char *const si[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    static const char *const iec[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    u128 v = q < 0 ? -(u128)q : (u128)q;

    if (v == 0) {
        bh_buf_addc(b, '0');
        return;
    }
    if (q < 0)
        bh_buf_addc(b, '-');
    if (binary && v >= 1024 * (u128)NANO && v % (u128)NANO == 0)
        format_in(b, v / (u128)NANO, iec, BH_ARRAY_LEN(iec), 1024);
    else
        format_in(b, v, si, BH_ARRAY_LEN(si), 1000);
}
