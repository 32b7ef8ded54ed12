/* SPDX-License-Identifier: Apache-2.0
 *
 * common/regex/regex.h - regular expressions: RE2's syntax, linear time
 *
 * For patterns that come from outside (CEL's matches, the simulator's schemas): no pattern takes
 * longer than its program times the text, and the work is counted. Programs live in the arena they
 * are compiled into and never change; any thread may search with one.
 * Upstream: Go's regexp; what is not supported stands in regex.c.
 */
#ifndef BH_REGEX_H
#define BH_REGEX_H

#include "common/base/arena.h"

struct bh_regex;
/* NULL with *ret_why (static) when the pattern is malformed or uses what is not supported. */
struct bh_regex *bh_regex_compile(struct bh_arena *a, struct bh_str pattern, const char **ret_why);
uint32_t bh_regex_size(const struct bh_regex *re); /* steps of the program: what compiling cost */
/* Leftmost match at or after `from`. *steps counts the work done; the search gives up (false) once
 * it passes max_steps. */
bool bh_regex_find(const struct bh_regex *re, struct bh_arena *scratch, struct bh_str s,
                   size_t from, size_t *ret_from, size_t *ret_to, uint64_t *steps,
                   uint64_t max_steps);
#endif
