/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/duration.c - Go's duration text
 *
 * Upstream:   Go time.ParseDuration, Duration.String; differences: none.
 */
#include "common/base/opt.h"

#include <errno.h>
#include <inttypes.h>

static int parse_unit(const char **s, uint64_t *ret_ns)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } units[] = {
        {"ns", 1},           {"us", 1000},      {"\xc2\xb5s", 1000}, /* U+00B5 micro sign */
        {"\xce\xbcs", 1000},                                         /* U+03BC Greek letter mu */
        {"ms", 1000000},     {"s", 1000000000}, {"m", 60000000000},  {"h", 3600000000000},
    };
    size_t n = strcspn(*s, ".0123456789");

    for (size_t i = 0; i < BH_ARRAY_LEN(units); i++) {
        if (strlen(units[i].text) == n && memcmp(*s, units[i].text, n) == 0) {
            *s += n;
            *ret_ns = units[i].ns;
            return 0;
        }
    }
    return -EINVAL;
}

/* One "number unit" group; false when it is malformed or too large. */
static bool parse_group(const char **s, uint64_t *ret_ns)
{
    uint64_t whole = 0, fraction = 0, unit_ns;
    double scale = 1;
    bool any = false, full = false;

    for (; bh_is_digit(**s); (*s)++, any = true)
        if (__builtin_mul_overflow(whole, 10, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(**s - '0'), &whole))
            return false;
    if (**s == '.') {
        (*s)++;
        for (; bh_is_digit(**s); (*s)++, any = true) {
            full = full || fraction > INT64_MAX / 10;
            if (!full) {
                fraction = fraction * 10 + (uint64_t)(**s - '0');
                scale *= 10;
            }
        }
    }
    if (!any || parse_unit(s, &unit_ns) < 0)
        return false;
    uint64_t ns;
    if (__builtin_mul_overflow(whole, unit_ns, &ns))
        return false;
    return !__builtin_add_overflow(ns, (uint64_t)((double)fraction * ((double)unit_ns / scale)),
                                   ret_ns);
}

int bh_parse_duration_ns(const char *s, int64_t *ret_ns)
{
    bool negative = *s == '-';
    uint64_t total = 0, group;

    if (*s == '-' || *s == '+')
        s++;
    if (bh_streq(s, "0")) {
        *ret_ns = 0;
        return 0;
    }
    if (!*s)
        return -EINVAL;
    while (*s) {
        if (!parse_group(&s, &group) || __builtin_add_overflow(total, group, &total) ||
            total > (uint64_t)INT64_MAX + 1)
            return -EINVAL;
    }
    if (total == (uint64_t)INT64_MAX + 1 && !negative)
        return -EINVAL;
    *ret_ns = negative ? (int64_t)-total : (int64_t)total;
    return 0;
}

void bh_format_duration_ns(int64_t ns, char out[static 32])
{
    uint64_t u = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, minutes = u / 60000000000;
    bool small = u > 0 && u < 1000000000;
    const char *unit = !small ? "s" : u < 1000 ? "ns" : u < 1000000 ? "\xc2\xb5s" : "ms";
    char hours[24] = "", rest[24] = "", fraction[24] = "";

    if (minutes >= 60)
        snprintf(hours, sizeof(hours), "%" PRIu64 "h", minutes / 60);
    if (minutes)
        snprintf(rest, sizeof(rest), "%" PRIu64 "m", minutes % 60);
    /* v / 10^digits, without trailing zeros. */
    uint64_t v = u % 60000000000;
    int digits = !small ? 9 : u < 1000 ? 0 : u < 1000000 ? 3 : 6;
    uint64_t scale = 1;
    for (; digits > 0 && v % 10 == 0; digits--)
        v /= 10;
    for (int i = 0; i < digits; i++)
        scale *= 10;
    if (digits)
        snprintf(fraction, sizeof(fraction), ".%0*" PRIu64, digits, v % scale);
    snprintf(out, 32, "%s%s%s%" PRIu64 "%s%s", ns < 0 ? "-" : "", hours, rest, v / scale, fraction,
             unit);
}
