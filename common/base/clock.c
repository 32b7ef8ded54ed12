/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/clock.c - the three clocks
 *
 * Monotonic stops while the machine sleeps, boot does not: leases and deadlines that another host
 * also counts use boot.
 */
#include "common/base/base.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    int rc = clock_gettime(id, &ts);
    bh_assert(rc == 0);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

uint64_t bh_mono_ns(void)
{
    return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

uint64_t bh_boot_ns(void)
{
    return (uint64_t)read_clock(CLOCK_BOOTTIME);
}

int64_t bh_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}
