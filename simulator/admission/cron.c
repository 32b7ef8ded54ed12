/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/cron.c - schedules of CronJobs
 */
#include "simulator/admission/cron.h"

#include "common/base/opt.h"
#include <errno.h>
#include <strings.h>
#include <time.h>

#define FAR_S ((int64_t)5 * 366 * 86400)

struct range {
    const char *what;
    int min, max;
    const char *const *names; /* of min, min + 1, ... */
};
static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                     "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

/* ---- parsing --------------------------------------------------------------------------------- */

/* A number or a name at *p; moves *p behind it. -1 = neither. */
static int number(const char **p, const struct range *r)
{
    char *end;

    for (int i = 0; r->names && r->names[i]; i++) {
        size_t n = strlen(r->names[i]);
        if (strncasecmp(*p, r->names[i], n) == 0) {
            *p += n;
            return r->min + i;
        }
    }
    if (**p < '0' || **p > '9')
        return -1;
    long v = strtol(*p, &end, 10);
    *p = end;
    return v > 1000 ? 1000 : (int)v;
}

/* One element of a list. *ret_open: a star without step. */
static int element(const char **p, const struct range *r, uint64_t *bits, bool *ret_open,
                   struct bh_err *err)
{
    int lo, hi, step = 1;
    const char *text = *p;

    if (**p == '*' || **p == '?') {
        (*p)++;
        lo = r->min;
        hi = r->max;
        *ret_open = **p != '/';
    } else {
        lo = hi = number(p, r);
        if (**p == '-') {
            (*p)++;
            hi = number(p, r);
        } else if (**p == '/') {
            hi = r->max;
        }
    }
    if (**p == '/') {
        (*p)++;
        step = number(p, &(struct range){"step", 1, 1000, NULL});
    }
    int n = (int)strcspn(text, ", \t");
    if (lo >= 0 && hi >= 0 && lo < r->min)
        return bh_err_set(err, -EINVAL, "beginning of range (%d) below minimum (%d): %.*s", lo,
                          r->min, n, text);
    if (lo >= 0 && hi > r->max)
        return bh_err_set(err, -EINVAL, "end of range (%d) above maximum (%d): %.*s", hi, r->max, n,
                          text);
    if (hi >= 0 && lo > hi)
        return bh_err_set(err, -EINVAL, "beginning of range (%d) beyond end of range (%d): %.*s",
                          lo, hi, n, text);
    if (lo < 0 || hi < 0 || step < 1)
        return bh_err_set(err, -EINVAL, "%s: want values from %d to %d, ranges A-B and steps /N",
                          r->what, r->min, r->max);
    for (int v = lo; v <= hi; v += step)
        *bits |= (uint64_t)1 << v;
    return 0;
}

static int field(const char **p, const struct range *r, uint64_t *bits, bool *ret_open,
                 struct bh_err *err)
{
    *p += strspn(*p, " \t");
    for (;;) {
        int rc = element(p, r, bits, ret_open, err);
        if (rc < 0)
            return rc;
        if (**p != ',')
            break;
        (*p)++;
    }
    if (**p && **p != ' ' && **p != '\t')
        return bh_err_set(err, -EINVAL, "%s: unexpected \"%.20s\"", r->what, *p);
    return 0;
}

static int fields(const char *text, struct bh_cron *c, struct bh_err *err)
{
    static const struct range ranges[] = {{"minute", 0, 59, NULL},
                                          {"hour", 0, 23, NULL},
                                          {"day of month", 1, 31, NULL},
                                          {"month", 1, 12, months},
                                          {"day of week", 0, 6, days}};
    uint64_t *const bits[] = {&c->minute, &c->hour, &c->day, &c->month, &c->weekday};
    bool open[BH_ARRAY_LEN(ranges)] = {false};
    const char *p = text;
    size_t n = 0;

    for (const char *q = text; *(q += strspn(q, " \t")); q += strcspn(q, " \t"))
        n++;
    if (n != BH_ARRAY_LEN(ranges))
        return bh_err_set(err, -EINVAL, "expected exactly 5 fields, found %zu: [%.80s]", n, text);
    for (size_t i = 0; i < BH_ARRAY_LEN(ranges); i++) {
        int rc = field(&p, &ranges[i], bits[i], &open[i], err);
        if (rc < 0)
            return rc;
    }
    c->any_day = open[2];
    c->any_weekday = open[4];
    return 0;
}

int bh_cron_parse(const char *text, struct bh_cron *c, struct bh_err *err)
{
    static const struct {
        const char *name, *fields;
    } known[] = {{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
                 {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
                 {"@hourly", "0 * * * *"}};
    int64_t ns;

    *c = (struct bh_cron){0};
    if (*text != '@')
        return fields(text, c, err);
    for (size_t i = 0; i < BH_ARRAY_LEN(known); i++)
        if (bh_streq(text, known[i].name))
            return fields(known[i].fields, c, err);
    if (strncmp(text, "@every ", 7) != 0 || bh_parse_duration_ns(text + 7, &ns) < 0)
        return bh_err_set(err, -EINVAL, "unrecognized descriptor: %.80s", text);
    c->every_s = BH_MAX(ns / 1000000000, 1);
    return 0;
}

/* ---- times ----------------------------------------------------------------------------------- */

static bool has(uint64_t bits, int v)
{
    return bits >> v & 1;
}

static bool day_fits(const struct bh_cron *c, const struct tm *tm)
{
    bool day = has(c->day, tm->tm_mday), weekday = has(c->weekday, tm->tm_wday);

    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

/* When clocks show a time; one that they leave out is that of before the change. */
static int64_t when_shown(const struct bh_zone *zone, int64_t shown, int64_t near)
{
    int64_t t = shown - bh_zone_offset(zone, near);

    return shown - bh_zone_offset(zone, t);
}

int64_t bh_cron_next(const struct bh_cron *c, const struct bh_zone *zone, int64_t after)
{
    int64_t t = after - after % 60 + 60;

    if (c->every_s)
        return after + c->every_s;
    while (t <= after + FAR_S) {
        struct tm tm;
        int64_t ahead = bh_zone_offset(zone, t), on = t;
        time_t at = (time_t)(t + ahead);
        gmtime_r(&at, &tm);
        if (!has(c->month, tm.tm_mon + 1)) {
            struct tm first = {.tm_year = tm.tm_year, .tm_mon = tm.tm_mon + 1, .tm_mday = 1};
            on = when_shown(zone, (int64_t)timegm(&first), t);
        } else if (!day_fits(c, &tm)) {
            on = when_shown(zone, at + 86400 - at % 86400, t);
        } else if (!has(c->hour, tm.tm_hour)) {
            on += 3600 - at % 3600;
        } else if (!has(c->minute, tm.tm_min)) {
            on += 60;
        } else {
            return t;
        }
        t = on > t ? on : t + 3600 - at % 3600; /* clocks left midnight out */
    }
    return INT64_MAX;
}
