/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json_priv.h - what the readers (JSON, YAML) share with the tree; private to the
 * folder
 */
#ifndef BH_JSON_PRIV_H
#define BH_JSON_PRIV_H

#include "common/data/json.h"

/* NUL-terminated copy of n bytes, which may hold NULs. NULL at the arena's limit. */
char *bh_json_text(struct bh_arena *a, const char *p, size_t n);
/* A new scalar of type t that borrows text s (already in the arena). */
struct bh_json *bh_json_new_text(struct bh_arena *a, enum bh_json_type t, struct bh_str s);

/* Finds members of one name. strict: returns the first member that repeats an earlier name.
 * Otherwise the later value moves to the earlier member's place, the later member goes, and NULL is
 * returned. Linear in the number of members. */
struct bh_json *bh_json_dedup(struct bh_json *obj, bool strict);

/* Nesting of containers in v: 0 for a scalar, 1 for {} and so on. */
unsigned bh_json_depth(const struct bh_json *v);
#endif
