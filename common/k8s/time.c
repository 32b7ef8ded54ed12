/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/time.c - timestamps of the API: RFC 3339 text and unix time
 *
 * Own calendar arithmetic (proleptic Gregorian): strptime and timegm depend on locale and libc.
 */
#include "common/k8s/quantity.h"

#include <errno.h>
#include <stdio.h>

#define SECONDS_YEAR_1    (-62135596800) /* 0001-01-01T00:00:00Z, the zero value of time.Time */
#define SECONDS_YEAR_9999 253402300799

/* Days since 1970-01-01; the year starts in March so that the leap day comes last. */
static int64_t days_of(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t year = y - era * 400;
    int64_t day = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + year * 365 + year / 4 - year / 100 + day - 719468;
}

static void date_of(int64_t days, int *ret_y, int *ret_m, int *ret_d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t rest = days - era * 146097;
    int64_t year = (rest - rest / 1460 + rest / 36524 - rest / 146096) / 365;
    int64_t day = rest - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * day + 2) / 153;
    *ret_d = (int)(day - (153 * month + 2) / 5 + 1);
    *ret_m = (int)(month < 10 ? month + 3 : month - 9);
    *ret_y = (int)(year + era * 400 + (*ret_m <= 2));
}

static int days_in_month(int y, int m)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return days[m - 1] + (m == 2 && leap);
}

struct reader {
    const char *p, *end;
    bool bad;
};

static int number(struct reader *r, int digits)
{
    int v = 0;

    for (; digits > 0; digits--, r->p++) {
        if (r->bad || r->p == r->end || !bh_is_digit(*r->p)) {
            r->bad = true;
            return 0;
        }
        v = v * 10 + (*r->p - '0');
    }
    return v;
}

static void expect(struct reader *r, char c)
{
    if (r->bad || r->p == r->end || *r->p != c)
        r->bad = true;
    else
        r->p++;
}

/* ".123": digits beyond nanoseconds are cut off. */
static int32_t fraction(struct reader *r)
{
    int32_t ns = 0, unit = 100000000;

    if (r->bad || r->p == r->end || *r->p != '.')
        return 0;
    r->p++;
    r->bad = r->p == r->end || !bh_is_digit(*r->p);
    for (; r->p < r->end && bh_is_digit(*r->p); r->p++, unit /= 10)
        ns += (*r->p - '0') * unit;
    return ns;
}

static int64_t zone_offset(struct reader *r)
{
    if (r->bad || r->p == r->end) {
        r->bad = true;
        return 0;
    }
    char sign = *r->p++;
    if (sign == 'Z')
        return 0;
    int hours = number(r, 2);
    expect(r, ':');
    int minutes = number(r, 2);
    if ((sign != '+' && sign != '-') || hours > 24 || minutes > 59)
        r->bad = true;
    return (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

int bh_time_parse(const char *s, size_t n, int64_t *ret_s, int32_t *ret_ns)
{
    struct reader r = {s, s + n, false};
    int y = number(&r, 4);
    expect(&r, '-');
    int mon = number(&r, 2);
    expect(&r, '-');
    int day = number(&r, 2);
    expect(&r, 'T');
    int h = number(&r, 2);
    expect(&r, ':');
    int min = number(&r, 2);
    expect(&r, ':');
    int sec = number(&r, 2);
    int32_t ns = fraction(&r);
    int64_t offset = zone_offset(&r);

    if (r.bad || r.p != r.end || mon < 1 || mon > 12 || day < 1 || day > days_in_month(y, mon) ||
        h > 23 || min > 59 || sec > 59)
        return -EINVAL;
    *ret_s = days_of(y, mon, day) * 86400 + h * 3600 + min * 60 + sec - offset;
    if (ret_ns)
        *ret_ns = ns;
    return 0;
}

int bh_time_parse_ns(const char *s, int64_t *ret_ns)
{
    int64_t seconds;
    int32_t ns;

    if (!s || bh_time_parse(s, strlen(s), &seconds, &ns) < 0)
        return -EINVAL;
    __int128 sum = (__int128)seconds * 1000000000 + ns;
    *ret_ns = (int64_t)BH_MIN(BH_MAX(sum, INT64_MIN), INT64_MAX);
    return *ret_ns == sum ? 0 : -ERANGE;
}

/* "2006-01-02T15:04:05" is 19 characters: seconds outside the years 1 to 9999 are clamped. */
static void format_seconds(char out[static 20], int64_t s)
{
    s = s < SECONDS_YEAR_1 ? SECONDS_YEAR_1 : s > SECONDS_YEAR_9999 ? SECONDS_YEAR_9999 : s;
    int64_t days = s / 86400, rest = s % 86400;
    if (rest < 0) {
        rest += 86400;
        days--;
    }
    int v[6];
    date_of(days, &v[0], &v[1], &v[2]);
    v[3] = (int)(rest / 3600);
    v[4] = (int)(rest / 60 % 60);
    v[5] = (int)(rest % 60);
    static const char form[] = "YYYY-MM-DDTHH:MM:SS";
    memcpy(out, form, sizeof(form));
    for (int i = 0, at = 0; i < 6; at += i ? 3 : 5, i++) {
        int width = i ? 2 : 4;
        for (int j = width - 1, x = v[i]; j >= 0; j--, x /= 10)
            out[at + j] = (char)('0' + x % 10);
    }
}

void bh_time_format(char out[static 32], int64_t unix_s)
{
    format_seconds(out, unix_s);
    memcpy(out + 19, "Z", 2);
}

void bh_time_format_micro(char out[static 40], int64_t unix_s, int32_t ns)
{
    int32_t us = ns < 0 ? 0 : ns > 999999999 ? 999999 : ns / 1000;

    format_seconds(out, unix_s);
    memcpy(out + 19, ".000000Z", 9);
    for (char *digit = out + 25; us; us /= 10)
        *digit-- = (char)('0' + us % 10);
}

static int64_t seconds_of(int64_t unix_ns)
{
    return unix_ns / 1000000000 - (unix_ns % 1000000000 < 0);
}

void bh_time_format_ns(char out[static 32], int64_t unix_ns)
{
    bh_time_format(out, seconds_of(unix_ns));
}

void bh_time_format_micro_ns(char out[static 40], int64_t unix_ns)
{
    int64_t s = seconds_of(unix_ns);

    bh_time_format_micro(out, s, (int32_t)(unix_ns - (__int128)s * 1000000000));
}
