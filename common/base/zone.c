/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/zone.c - the files of the time zone database, and the rule at their end
 */
#include "common/base/zone.h"

#include <ctype.h>
#include <errno.h>
#include <time.h>

#define FOLDER    "/usr/share/zoneinfo/"
#define MAX_FILE  (1u << 20)
#define HEAD      44u
#define HOUR      3600
#define DAY       86400
#define FAR_HOURS 167 /* what a rule's times are at most from the day's begin */

static int64_t big_endian(const unsigned char *p, unsigned n)
{
    uint64_t v = p[0] & 0x80 ? UINT64_MAX : 0;

    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

/* ---- the file -------------------------------------------------------------------------------- */

struct counts {
    uint64_t isut, isstd, leap, when, types, chars;
};

static bool read_head(const unsigned char *p, size_t n, struct counts *c)
{
    uint64_t *const all[] = {&c->isut, &c->isstd, &c->leap, &c->when, &c->types, &c->chars};

    if (n < HEAD || memcmp(p, "TZif", 4) != 0 || p[4] < '2')
        return false;
    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++)
        *all[i] = (uint32_t)big_endian(p + 20 + 4 * i, 4);
    return true;
}

static uint64_t body_size(const struct counts *c, unsigned time)
{
    return c->when * (time + 1) + c->types * 6 + c->chars + c->leap * (time + 4) + c->isstd +
           c->isut;
}

/* The second part, with times of 8 bytes; the first is for programs of before 2005. */
static bool read_parts(struct bh_zone *z, size_t n)
{
    const unsigned char *p = (const unsigned char *)z->file, *end = p + n;
    struct counts c;

    if (!read_head(p, n, &c) || body_size(&c, 4) > n - HEAD)
        return false;
    p += HEAD + body_size(&c, 4);
    if (!read_head(p, (size_t)(end - p), &c) || !c.types || c.types > 256 ||
        body_size(&c, 8) > (size_t)(end - p) - HEAD)
        return false;
    z->when = p + HEAD;
    z->into = z->when + c.when * 8;
    z->types = z->into + c.when;
    z->n_when = (uint32_t)c.when;
    z->n_types = (uint32_t)c.types;
    for (uint32_t i = 0; i < z->n_when; i++)
        if (z->into[i] >= z->n_types)
            return false;
    z->rule = "";
    p += HEAD + body_size(&c, 8);
    char *close = p < end && *p == '\n' ? memchr(p + 1, '\n', (size_t)(end - p) - 1) : NULL;
    if (close) {
        *close = '\0';
        z->rule = (const char *)p + 1;
    }
    return true;
}

static bool is_name(const char *name)
{
    return *name != '/' && *name != '\\' && !strstr(name, "..");
}

int bh_zone_load(struct bh_zone *z, const char *name, struct bh_err *err)
{
    size_t n;

    *z = (struct bh_zone){0};
    if (!*name || bh_streq(name, "UTC"))
        return 0;
    if (!is_name(name))
        return bh_err_set(err, -EINVAL, "time: invalid location name");
    BH_CLEANUP(bh_freep) char *path = bh_asprintf(FOLDER "%s", name);
    if (bh_read_file(path, MAX_FILE, &z->file, &n) == 0 && read_parts(z, n))
        return 0;
    bh_zone_fini(z);
    return bh_err_set(err, -ENOENT, "unknown time zone %s", name);
}

void bh_zone_fini(struct bh_zone *z)
{
    free(z->file);
    *z = (struct bh_zone){0};
}

/* ---- the rule: "CET-1CEST,M3.5.0,M10.5.0/3" -------------------------------------------------- */

static bool number(const char **p, int max, int *ret)
{
    int n = 0;

    if (!isdigit((unsigned char)**p))
        return false;
    for (; isdigit((unsigned char)**p); (*p)++)
        if ((n = n * 10 + (**p - '0')) > max)
            return false;
    *ret = n;
    return true;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool clock_time(const char **p, int64_t *ret)
{
    int part[3] = {0}, sign = **p == '-' ? -1 : 1;

    *p += **p == '-' || **p == '+';
    for (int i = 0; i < 3 && (i == 0 || *(*p - 1) == ':'); i++) {
        if (!number(p, i ? 59 : FAR_HOURS, &part[i]))
            return false;
        if (i == 2 || **p != ':')
            break;
        (*p)++;
    }
    *ret = sign * (part[0] * (int64_t)HOUR + part[1] * 60 + part[2]);
    return true;
}

static bool skip_name(const char **p)
{
    const char *from = *p;

    if (*from == '<') {
        *p = strchr(from, '>');
        return *p && (*p)++;
    }
    while (isalpha((unsigned char)**p))
        (*p)++;
    return *p - from >= 3;
}

static int64_t first_of(int year, int month) /* 1970 is day 0; months from 0 on */
{
    struct tm t = {.tm_year = year - 1900, .tm_mon = month, .tm_mday = 1};

    return (int64_t)timegm(&t) / DAY;
}

/* When summer time begins or ends, in local seconds since 1970: Mm.w.d, Jn or n, /time behind it. */
static bool day_and_time(const char **p, int year, int64_t *ret)
{
    int month, week, weekday, n;
    int64_t day, time = 2 * HOUR;

    if (**p == 'M') {
        (*p)++;
        if (!number(p, 12, &month) || !month || *(*p)++ != '.' || !number(p, 5, &week) || !week ||
            *(*p)++ != '.' || !number(p, 6, &weekday))
            return false;
        day = first_of(year, month - 1);
        day += ((weekday - (day + 4)) % 7 + 7) % 7 + 7 * (int64_t)(week - 1); /* 1970: Thursday */
        while (day >= first_of(year, month))
            day -= 7; /* 5 is the last one */
    } else {
        bool no_leap_day = **p == 'J';
        *p += no_leap_day;
        if (!number(p, 365, &n) || (no_leap_day && !n))
            return false;
        day = first_of(year, 0) + n - no_leap_day;
        if (no_leap_day && n >= 60 && first_of(year, 2) - first_of(year, 0) == 60)
            day++;
    }
    if (**p == '/' && ((*p)++, !clock_time(p, &time)))
        return false;
    *ret = day * DAY + time;
    return true;
}

static bool by_rule(const char *p, int64_t at, int32_t *ret)
{
    int64_t standard, summer, begin, end;
    struct tm t;

    if (!skip_name(&p) || !clock_time(&p, &standard))
        return false;
    standard = -standard; /* of POSIX: west of Greenwich */
    *ret = (int32_t)standard;
    if (!*p)
        return true;
    if (!skip_name(&p))
        return false;
    summer = standard + HOUR;
    if (*p && *p != ',') {
        if (!clock_time(&p, &summer))
            return false;
        summer = -summer;
    }
    if (!*p)
        p = ",M3.2.0,M11.1.0";
    time_t local = (time_t)(at + standard);
    gmtime_r(&local, &t);
    if (*p++ != ',' || !day_and_time(&p, t.tm_year + 1900, &begin) || *p++ != ',' ||
        !day_and_time(&p, t.tm_year + 1900, &end) || *p)
        return false;
    begin -= standard;
    end -= summer;
    if (begin < end ? at >= begin && at < end : at >= begin || at < end)
        *ret = (int32_t)summer;
    return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int32_t offset_of(const struct bh_zone *z, uint32_t type)
{
    return (int32_t)big_endian(z->types + (size_t)6 * type, 4);
}

/* Before the first change: the first type that is no summer time. */
static uint32_t first_type(const struct bh_zone *z)
{
    for (uint32_t i = 0; i < z->n_types; i++)
        if (!z->types[(size_t)6 * i + 4])
            return i;
    return 0;
}

int32_t bh_zone_offset(const struct bh_zone *z, int64_t at)
{
    uint32_t low = 0, high = z->n_when; /* changes up to at: low of them */
    int32_t by;

    if (!z->file)
        return 0;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (big_endian(z->when + (size_t)8 * mid, 8) <= at)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == z->n_when && *z->rule && by_rule(z->rule, at, &by))
        return by;
    return offset_of(z, low ? z->into[low - 1] : first_type(z));
}
