/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/human.c - ages for people: two or fewer units, coarser with age
 *
 * Upstream: apimachinery/pkg/util/duration/duration.go HumanDuration; differences: whole seconds
 * only, the API's timestamps have no fraction.
 */
#include "common/base/buf.h"

#include <inttypes.h>

static void two_units(struct bh_buf *b, int64_t big, char big_unit, int64_t small, char small_unit)
{
    bh_buf_addf(b, "%" PRId64 "%c", big, big_unit);
    if (small)
        bh_buf_addf(b, "%" PRId64 "%c", small, small_unit);
}

void bh_human_duration(struct bh_buf *b, int64_t seconds)
{
    int64_t m = seconds / 60, h = seconds / 3600;

    if (seconds < -1)
        bh_buf_adds(b, "<invalid>");
    else if (seconds < 0)
        bh_buf_adds(b, "0s");
    else if (seconds < 120)
        bh_buf_addf(b, "%" PRId64 "s", seconds);
    else if (m < 10)
        two_units(b, m, 'm', seconds % 60, 's');
    else if (m < 180)
        bh_buf_addf(b, "%" PRId64 "m", m);
    else if (h < 8)
        two_units(b, h, 'h', m % 60, 'm');
    else if (h < 48)
        bh_buf_addf(b, "%" PRId64 "h", h);
    else if (h < 24 * 8)
        two_units(b, h / 24, 'd', h % 24, 'h');
    else if (h < 24 * 365 * 2)
        bh_buf_addf(b, "%" PRId64 "d", h / 24);
    else if (h < 24 * 365 * 8)
        two_units(b, h / 24 / 365, 'y', h / 24 % 365, 'd');
    else
        bh_buf_addf(b, "%" PRId64 "y", h / 24 / 365);
}
