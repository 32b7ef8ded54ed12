/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/cron.h - schedules of CronJobs: "0 3 * * mon", "@hourly", "@every 90s"
 *
 * Five fields (minute, hour, day of month, month, day of week), each a list of *, ?, N, A-B with an
 * optional /STEP; months and days of the week also by their English names. When neither day field
 * is open, either of them is enough. A time that clocks leave out in spring has no run that day,
 * one that they show twice in autumn has two. Mirrors: github.com/robfig/cron/v3 ParseStandard and
 * SpecSchedule.Next; without TZ= prefixes.
 */
#ifndef BH_SIM_CRON_H
#define BH_SIM_CRON_H

#include "common/base/zone.h"

struct bh_cron {
    uint64_t minute, hour, day, month, weekday; /* bit n = value n */
    bool any_day, any_weekday;                  /* the field is open */
    int64_t every_s;                            /* @every; 0 = the fields count */
};
/* 0 or -EINVAL with err. */
int bh_cron_parse(const char *text, struct bh_cron *c, struct bh_err *err);
/* The first time after `after` (seconds since 1970) by the zone's clocks; INT64_MAX = none in five
 * years. */
int64_t bh_cron_next(const struct bh_cron *c, const struct bh_zone *zone, int64_t after);
#endif
