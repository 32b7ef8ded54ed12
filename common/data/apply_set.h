/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/apply_set.h - sets of fields and how objects map to them; private to the folder
 *
 * A set is FieldsV1 itself, a tree of objects: a node is a member when it is empty or has a child
 * named `.`; so every node below the root is a member or has children. The root is never a member.
 * NULL stands for the empty set wherever a set is passed or returned.
 * Running out of the arena shows as arena->failed, to be checked once at the end.
 */
#ifndef BH_APPLY_SET_H
#define BH_APPLY_SET_H

#include "common/data/json.h"

enum bh_fset_op { BH_FSET_UNION, BH_FSET_MINUS, BH_FSET_COMMON };
/* The result shares nothing with x and y. */
struct bh_json *bh_fset_combine(struct bh_arena *a, enum bh_fset_op op, const struct bh_json *x,
                                const struct bh_json *y);
bool bh_fset_member(const struct bh_json *node); /* not for the root */
bool bh_fset_valid(const struct bh_json *set);   /* objects all the way down */
bool bh_fset_equal(const struct bh_json *x, const struct bh_json *y);
/* Children by name, as upstream serialises sets. */
void bh_fset_sort(struct bh_arena *a, struct bh_json *set);
/* Calls fn for each member with its path as upstream prints it: .spec.containers[name="x"].image */
void bh_fset_each(const struct bh_json *set, void (*fn)(void *arg, const char *path), void *arg);

struct bh_fdiff {
    struct bh_json *added, *removed, *modified;
};
struct bh_fwalk {
    struct bh_arena *a;
    const char *kind;
    struct bh_buf path; /* dotted names of the value being looked at */
    struct bh_buf name; /* scratch */
    struct bh_err *err;
};
void bh_fwalk_fini(struct bh_fwalk *w);
/* The fields obj sets. -EINVAL: a keyed list with a missing or repeated key. */
int bh_fwalk_fields(struct bh_fwalk *w, const struct bh_json *obj, struct bh_json **ret_set);
struct bh_fdiff bh_fwalk_compare(struct bh_fwalk *w, const struct bh_json *from,
                                 const struct bh_json *to);
/* Lays config over live; both are taken apart. */
struct bh_json *bh_fwalk_merge(struct bh_fwalk *w, struct bh_json *live, struct bh_json *config);
/* Removes from obj the fields of last that owned (fields of all managers) does not hold. */
void bh_fwalk_prune(struct bh_fwalk *w, struct bh_json *obj, const struct bh_json *last,
                    const struct bh_json *owned);
#endif
