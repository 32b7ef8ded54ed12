/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/nodemetadata/go_time.c - times as Go's time.Parse reads them
 *
 * A layout shows how the reference time looks, Mon Jan 2 15:04:05 MST 2006: its parts stand for
 * themselves, everything else has to be there as it is. Which texts are times is what Go 1.26 says, with
 * its oddities; of a time only whole seconds are kept. Names of time zones say nothing: on a machine that
 * has UTC, Go takes the time for UTC's.
 */
#include "node_metadata.h"

enum part {
    LITERAL,
    YEAR,
    SHORT_YEAR,
    MONTH,
    DAY,
    YEAR_DAY,
    HOUR,
    HALF_HOUR, /* of a half day: up to 12 */
    MINUTE,
    SECOND,
    FRACTION,      /* as many digits as the layout has */
    FREE_FRACTION, /* any number of them, or none at all */
    MONTH_NAME,    /* here and below, arg: how many letters, 0: the whole name */
    DAY_NAME,
    NOON, /* arg: how much lower its letters are */
    ZONE, /* arg: ZULU, COLON, and how many numbers */
    ZONE_NAME
};
#define FIXED 1 /* as many digits as there are at most */
#define BLANK 2 /* instead of leading zeros */
#define ZULU  4 /* or a Z */
#define COLON 8

/* In this order: the first that fits is meant. */
static const struct layout_part {
    const char *text;
    uint8_t part, arg;
} parts[] = {{"January", MONTH_NAME, 0},
             {"Jan", MONTH_NAME, 3},
             {"Monday", DAY_NAME, 0},
             {"Mon", DAY_NAME, 3},
             {"MST", ZONE_NAME, 0},
             {"01", MONTH, FIXED},
             {"02", DAY, FIXED},
             {"03", HALF_HOUR, FIXED},
             {"04", MINUTE, FIXED},
             {"05", SECOND, FIXED},
             {"06", SHORT_YEAR, 0},
             {"002", YEAR_DAY, FIXED},
             {"15", HOUR, 0},
             {"1", MONTH, 0},
             {"2006", YEAR, 0},
             {"2", DAY, 0},
             {"_2", DAY, BLANK},
             {"__2", YEAR_DAY, BLANK},
             {"3", HALF_HOUR, 0},
             {"4", MINUTE, 0},
             {"5", SECOND, 0},
             {"PM", NOON, 0},
             {"pm", NOON, 0x20},
             {"-070000", ZONE, 3},
             {"-07:00:00", ZONE, COLON | 3},
             {"-0700", ZONE, 2},
             {"-07:00", ZONE, COLON | 2},
             {"-07", ZONE, 1},
             {"Z070000", ZONE, ZULU | 3},
             {"Z07:00:00", ZONE, ZULU | COLON | 3},
             {"Z0700", ZONE, ZULU | 2},
             {"Z07:00", ZONE, ZULU | COLON | 2},
             {"Z07", ZONE, ZULU | 1}};

struct reader {
    const char *p, *end;
};

static uint64_t left(const struct reader *r)
{
    return (uint64_t)(r->end - r->p);
}

/* 0 behind the end. */
static char at(const struct reader *r, uint64_t i)
{
    return i < left(r) ? r->p[i] : 0;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int has(const struct reader *r, const char *text, int any_case)
{
    for (uint64_t i = 0; text[i]; i++) {
        const char a = at(r, i), b = text[i], low = (char)(a | 0x20);
        if (a != b && !(any_case && low == (b | 0x20) && low >= 'a' && low <= 'z'))
            return 0;
    }
    return 1;
}

static uint64_t length(const char *s)
{
    uint64_t n = 0;

    while (s[n])
        n++;
    return n;
}

/* ---- layouts --------------------------------------------------------------------------------- */

/* ".000" and ".999", also with a comma: digits to the end of the number. Their number, 0: it is none. */
static uint64_t fraction_at(const struct reader *l)
{
    const char digit = at(l, 1);
    uint64_t n = 1;

    if ((at(l, 0) != '.' && at(l, 0) != ',') || (digit != '0' && digit != '9'))
        return 0;
    while (at(l, n) == digit)
        n++;
    return is_digit(at(l, n)) ? 0 : n - 1;
}

/* What the layout begins with; *n: its bytes. */
static enum part part_at(const struct reader *l, uint64_t *n, uint8_t *arg)
{
    *n = fraction_at(l) + 1;
    *arg = 0;
    if (*n > 1)
        return at(l, 1) == '0' ? FRACTION : FREE_FRACTION;
    if (has(l, "_2006", 0)) /* an underscore before the year */
        return LITERAL;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct layout_part *p = &parts[i];
        const uint64_t len = length(p->text);
        const char next = at(l, len);
        const int is_name = (p->part == MONTH_NAME || p->part == DAY_NAME) && p->arg;
        if (!has(l, p->text, 0) || (is_name && next >= 'a' && next <= 'z'))
            continue;
        *n = len;
        *arg = p->arg;
        return (enum part)p->part;
    }
    return LITERAL;
}

/* The next part that is no literal. */
static enum part next_part(struct reader l)
{
    enum part p = LITERAL;
    uint64_t n;
    uint8_t arg;

    for (; p == LITERAL && l.p < l.end; l.p += n)
        p = part_at(&l, &n, &arg);
    return p;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct moment { /* -1: the text does not say */
    int year, month, day, year_day, hour, minute, second, before_noon, after_noon, zulu;
    int64_t offset; /* of its zone, seconds */
};

/* At most `most` digits, or exactly. */
static int read_number(struct reader *v, int most, int fixed, int *ret)
{
    int n = 0;

    *ret = 0;
    for (; n < most && is_digit(at(v, 0)); n++)
        *ret = *ret * 10 + (*v->p++ - '0');
    return n && (!fixed || n == most);
}

/* n bytes, of which the first may be a sign, as Go's atoi: a sign alone is 0. */
static int read_signed(struct reader *v, uint64_t n, int *ret)
{
    int sign = at(v, 0) == '-' ? -1 : 1;
    uint64_t i = at(v, 0) == '-' || at(v, 0) == '+';

    *ret = 0;
    if (left(v) < n)
        return 0;
    for (; i < n; i++) {
        if (!is_digit(v->p[i]))
            return 0;
        *ret = *ret * 10 + sign * (v->p[i] - '0');
    }
    v->p += n;
    return 1;
}

static void skip_blanks(struct reader *r)
{
    while (at(r, 0) == ' ')
        r->p++;
}

/* One byte of the layout that is none of the parts, blanks for any number of them. */
static int read_literal(struct reader *l, struct reader *v)
{
    if (*l->p == ' ') {
        if (left(v) && *v->p != ' ')
            return 0;
        skip_blanks(l);
        skip_blanks(v);
        return 1;
    }
    return left(v) && *l->p++ == *v->p++;
}

/* 0 for the first; -1: none of these. */
static int read_name(struct reader *v, const char *const *names, int n, unsigned letters)
{
    for (int i = 0; i < n; i++) {
        char name[16];
        uint64_t k = 0;
        for (; names[i][k] && (!letters || k < letters); k++)
            name[k] = names[i][k];
        name[k] = 0;
        if (has(v, name, 1)) {
            v->p += k;
            return i;
        }
    }
    return -1;
}

static int read_month_name(struct reader *v, unsigned letters, int *month)
{
    static const char *const names[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

    *month = read_name(v, names, 12, letters) + 1;
    return *month > 0;
}

static int read_day_name(struct reader *v, unsigned letters)
{
    static const char *const names[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                        "Thursday", "Friday", "Saturday"};

    return read_name(v, names, 7, letters) >= 0;
}

static int read_day(struct reader *v, int most, unsigned arg, int *ret)
{
    for (int i = 1; arg & BLANK && i < most && at(v, 0) == ' '; i++)
        v->p++;
    return read_number(v, most, arg & FIXED, ret);
}

/* n bytes of a fraction with its point; Go looks at nine digits. */
static int read_fraction(struct reader *v, uint64_t n)
{
    struct reader digits = *v;
    int value;

    if (left(v) < n || (at(v, 0) != '.' && at(v, 0) != ','))
        return 0;
    digits.p++;
    v->p += n;
    return read_signed(&digits, (n > 10 ? 10 : n) - 1, &value) && value >= 0;
}

/* A fraction, if one begins here; its bytes. */
static uint64_t fraction_in(const struct reader *v)
{
    uint64_t n = 1;

    if ((at(v, 0) != '.' && at(v, 0) != ',') || !is_digit(at(v, 1)))
        return 0;
    while (is_digit(at(v, n)))
        n++;
    return n;
}

/* A fraction behind the seconds is read although the layout, whose rest is l, has none. */
static int read_second(struct reader *v, unsigned arg, struct reader l, int *ret)
{
    const enum part next = next_part(l);

    if (!read_number(v, 2, arg & FIXED, ret) || *ret > 59)
        return 0;
    if (next != FRACTION && next != FREE_FRACTION && fraction_in(v))
        return read_fraction(v, fraction_in(v));
    return 1;
}

static int read_noon(struct reader *v, int lower, struct moment *m)
{
    const char half = (char)(at(v, 0) - lower);

    if ((half != 'A' && half != 'P') || at(v, 1) != 'M' + lower)
        return 0;
    v->p += 2;
    m->after_noon |= half == 'P';
    m->before_noon |= half == 'A';
    return 1;
}

/* "+01:30" and its like. 24 hours, 60 minutes and 60 seconds are allowed. */
static int read_zone(struct reader *v, unsigned arg, struct moment *m)
{
    const int sign = at(v, 0) == '-' ? -1 : at(v, 0) == '+' ? 1 : 0;
    int unit = 3600;

    if (arg & ZULU && at(v, 0) == 'Z') {
        v->p++;
        m->zulu = 1;
        return 1;
    }
    if (!sign)
        return 0;
    v->p++;
    m->offset = 0;
    for (unsigned i = 0; i < (arg & 3); i++, unit /= 60) {
        int n;
        if (i && arg & COLON && !(left(v) && *v->p++ == ':'))
            return 0;
        if (!read_number(v, 2, 1, &n) || n > (i ? 60 : 24))
            return 0;
        m->offset += sign * n * unit;
    }
    return 1;
}

/* "+3" to "-23"; its bytes, 0: it is not there. */
static uint64_t offset_in(struct reader v)
{
    const char *begin = v.p;
    int hours = 0;

    if (at(&v, 0) != '+' && at(&v, 0) != '-')
        return 0;
    for (v.p++; is_digit(at(&v, 0)); v.p++)
        hours = hours > 23 ? hours : hours * 10 + (*v.p - '0');
    return v.p - begin == 1 || hours > 23 ? 0 : (uint64_t)(v.p - begin);
}

/* Three to five capitals, and what else zones are called. */
static int read_zone_name(struct reader *v, struct moment *m)
{
    uint64_t n = 0;

    if (has(v, "UTC", 0)) {
        m->zulu = 1;
        n = 3;
    } else if (has(v, "ChST", 0) || has(v, "MeST", 0)) {
        n = 4;
    } else if (has(v, "GMT", 0)) {
        n = 3 + offset_in((struct reader){v->p + 3, v->end});
    } else if (left(v) >= 3 && (n = offset_in(*v)) == 0) {
        while (n < 6 && at(v, n) >= 'A' && at(v, n) <= 'Z')
            n++;
        if (n < 3 || n > 5 || (n == 4 && v->p[3] != 'T' && !has(v, "WITA", 0)) ||
            (n == 5 && v->p[4] != 'T'))
            n = 0;
    }
    v->p += n;
    return n > 0;
}

static int read_part(enum part part, unsigned arg, uint64_t n, struct reader l, struct reader *v,
                     struct moment *m)
{
    switch (part) {
    case YEAR:
        return read_number(v, 4, 1, &m->year);
    case SHORT_YEAR:
        if (!read_signed(v, 2, &m->year))
            return 0;
        m->year += m->year >= 69 ? 1900 : 2000;
        return 1;
    case MONTH:
        return read_number(v, 2, arg & FIXED, &m->month) && m->month >= 1 && m->month <= 12;
    case MONTH_NAME:
        return read_month_name(v, arg, &m->month);
    case DAY_NAME:
        return read_day_name(v, arg);
    case DAY:
        return read_day(v, 2, arg, &m->day);
    case YEAR_DAY:
        return read_day(v, 3, arg, &m->year_day);
    case HOUR:
        return read_number(v, 2, 0, &m->hour) && m->hour <= 23;
    case HALF_HOUR:
        return read_number(v, 2, arg & FIXED, &m->hour) && m->hour <= 12;
    case MINUTE:
        return read_number(v, 2, arg & FIXED, &m->minute) && m->minute <= 59;
    case SECOND:
        return read_second(v, arg, l, &m->second);
    case FRACTION:
        return read_fraction(v, n);
    case FREE_FRACTION:
        return !fraction_in(v) || read_fraction(v, fraction_in(v));
    case NOON:
        return read_noon(v, arg, m);
    case ZONE:
        return read_zone(v, arg, m);
    case ZONE_NAME:
        return read_zone_name(v, m);
    default:
        return 0;
    }
}

static int read_all(struct reader l, struct reader v, struct moment *m)
{
    while (l.p < l.end) {
        uint64_t n;
        uint8_t arg;
        const enum part part = part_at(&l, &n, &arg);
        if (part == LITERAL) {
            if (!read_literal(&l, &v))
                return 0;
            continue;
        }
        l.p += n;
        if (!read_part(part, arg, n, l, &v, m))
            return 0;
    }
    return v.p == v.end;
}

/* ---- the calendar ---------------------------------------------------------------------------- */

static int is_leap(int y)
{
    return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

static int days_of(int y, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(y));
}

static int64_t days_since_1970(int y, int m, int d)
{
    int64_t era, of_era, of_year;

    y -= m <= 2;
    era = (y >= 0 ? y : y - 399) / 400;
    of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    of_era = (y - era * 400) * 365 + (y - era * 400) / 4 - (y - era * 400) / 100 + of_year;
    return era * 146097 + of_era - 719468;
}

/* Day and month by the day of the year, which must not say otherwise. */
static int by_year_day(struct moment *m)
{
    int day = m->year_day, month = 1;

    if (day < 1 || day > 365 + is_leap(m->year))
        return 0;
    for (; day > days_of(m->year, month); month++)
        day -= days_of(m->year, month);
    if ((m->month >= 0 && m->month != month) || (m->day >= 0 && m->day != day))
        return 0;
    m->month = month;
    m->day = day;
    return 1;
}

/* Differences of times are 64 bits of nanoseconds to Go. Which moment this is about is nobody's guess:
 * 2026, rounded. */
#define NOW      INT64_C(1800000000)
#define FARTHEST INT64_C(9223372036)

int64_t nm_time(struct berth_str layout, struct berth_str text)
{
    struct moment m = {.month = -1, .day = -1, .year_day = -1, .offset = 0};

    if (!read_all((struct reader){layout.p, layout.p + layout.n},
                  (struct reader){text.p, text.p + text.n}, &m))
        return NM_NO_VALUE;
    if (m.after_noon && m.hour < 12)
        m.hour += 12;
    else if (m.before_noon && m.hour == 12)
        m.hour = 0;
    if (m.year_day >= 0 && !by_year_day(&m))
        return NM_NO_VALUE;
    m.month = m.month < 0 ? 1 : m.month;
    m.day = m.day < 0 ? 1 : m.day;
    if (m.day < 1 || m.day > days_of(m.year, m.month))
        return NM_NO_VALUE;
    const int64_t t = days_since_1970(m.year, m.month, m.day) * 86400 + m.hour * 3600 +
                      m.minute * 60 + m.second - (m.zulu ? 0 : m.offset);
    return t < NOW - FARTHEST ? NOW - FARTHEST : t > NOW + FARTHEST ? NOW + FARTHEST : t;
}
