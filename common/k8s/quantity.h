/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/quantity.h - resource quantities and times of the API
 *
 * Quantity: exact decimal in nano-units as __int128, saturating at parse; integers are extracted by
 * ceiling (away from zero for negatives in milli), clamped into int64 (M9: exact sums, a clamped
 * request fits nowhere).
 * Upstream: apimachinery/pkg/api/resource; differences: saturation where upstream wraps.
 */
#ifndef BH_QUANTITY_H
#define BH_QUANTITY_H

#include "common/base/buf.h"

typedef __int128 bh_nano;
#define BH_NANO_MAX ((bh_nano)(((unsigned __int128)1 << 126) - 1))

/* 0 or -EINVAL. Accepts upstream's grammar, see the reference's table; linear time. */
int bh_quantity_parse(const char *s, size_t n, bh_nano *ret);
int64_t bh_quantity_value(bh_nano q);       /* ceil(q) */
int64_t bh_quantity_milli_value(bh_nano q); /* ceil(q * 1000) */
/* Canonical text: value with the suffix family of the original is not kept; binary = Ki/Mi/...,
 * otherwise decimal SI ("1500m", "2", "64Gi" with binary). */
void bh_quantity_format(struct bh_buf *b, bh_nano q, bool binary);

/* RFC 3339 ("2026-01-01T00:00:18Z", fractions and offsets accepted) <-> unix seconds and nanos.
 * 0 or -EINVAL; ret_ns may be NULL. */
int bh_time_parse(const char *s, size_t n, int64_t *ret_s, int32_t *ret_ns);
/* The same as nanoseconds. -EINVAL: no time, or s is NULL. -ERANGE: before 1678 or after 2262, and
 * ret_ns is the nearest instant that can be told. */
int bh_time_parse_ns(const char *s, int64_t *ret_ns);
void bh_time_format(char out[static 32], int64_t unix_s);                   /* seconds, Z */
void bh_time_format_micro(char out[static 40], int64_t unix_s, int32_t ns); /* MicroTime */
void bh_time_format_ns(char out[static 32], int64_t unix_ns);
void bh_time_format_micro_ns(char out[static 40], int64_t unix_ns);
#endif
