/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/zone.h - what clocks show at a place: time zones by their IANA names
 *
 * Read from the system's time zone database (TZif, RFC 9636, version 2 or later), because libc knows
 * one zone a process. Without a database only "" and "UTC" are known.
 *
 * Owns:       a zone's bytes, until bh_zone_fini().
 * Runs in:    any thread; a loaded zone is immutable.
 * Upstream:   Go's time.LoadLocation and Location.lookup.
 */
#ifndef BH_ZONE_H
#define BH_ZONE_H

#include "common/base/base.h"

struct bh_zone {
    char *file;                 /* NULL: UTC */
    const unsigned char *when;  /* of n_when changes, 8 bytes each, ascending */
    const unsigned char *into;  /* what each changes to: a type */
    const unsigned char *types; /* of n_types: 4 bytes of offset, 1: summer time, 1 */
    uint32_t n_when, n_types;
    const char *rule; /* for times after the last change; "" = there is none */
};
/* name "" and "UTC" are UTC. 0, -EINVAL (no name of a zone), -ENOENT (no such zone, or its file is
 * spoilt): err has Go's text. The file is read anew each time. */
int bh_zone_load(struct bh_zone *z, const char *name, struct bh_err *err);
void bh_zone_fini(struct bh_zone *z);
/* Seconds that clocks are ahead of UTC at a time, in seconds since 1970. */
int32_t bh_zone_offset(const struct bh_zone *z, int64_t at);
#endif
