/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/lists.c - functions of lists, sets and optionals
 *
 * Upstream: cel-go/ext/sets.go, cel-go/cel/library.go (optionals),
 *           k8s.io/apiserver/pkg/cel/library/lists.go, k8s.io/dynamic-resource-allocation/cel
 * (includes).
 */
#include "scheduler/cel/functions.h"

static bool list_has(struct cel_eval *e, const struct cel_value *list, const struct cel_value *v)
{
    if (!bh_cel_work(e, list->n))
        return false;
    for (uint32_t i = 0; i < list->n && !e->exhausted; i++) {
        if (bh_cel_equal(e, &list->list[i], v))
            return true;
    }
    return false;
}

/* Is every item of b in a? */
static bool covers(struct cel_eval *e, const struct cel_value *a, const struct cel_value *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (!list_has(e, a, &b->list[i]))
            return false;
    }
    return true;
}

struct cel_value bh_cel_sets_contains(struct cel_eval *e, const struct cel_value *arg)
{
    return cel_bool(covers(e, &arg[0], &arg[1]));
}

struct cel_value bh_cel_sets_equivalent(struct cel_eval *e, const struct cel_value *arg)
{
    return cel_bool(covers(e, &arg[0], &arg[1]) && covers(e, &arg[1], &arg[0]));
}

struct cel_value bh_cel_sets_intersects(struct cel_eval *e, const struct cel_value *arg)
{
    for (uint32_t i = 0; i < arg[1].n && !e->exhausted; i++) {
        if (list_has(e, &arg[0], &arg[1].list[i]))
            return cel_bool(true);
    }
    return cel_bool(false);
}

/* A scalar attribute includes its only value. */
struct cel_value bh_cel_includes(struct cel_eval *e, const struct cel_value *arg)
{
    if (arg->kind == CEL_LIST)
        return cel_bool(list_has(e, arg, &arg[1]));
    return cel_bool(bh_cel_equal(e, &arg[0], &arg[1]));
}

/* Long strings are charged by their length. */
static int compare(struct cel_eval *e, const struct cel_value *a, const struct cel_value *b)
{
    if (a->kind == CEL_STRING && b->kind == CEL_STRING && !bh_cel_work(e, BH_MIN(a->n, b->n) / 100))
        return 0;
    return bh_cel_compare(a, b);
}

struct cel_value bh_cel_is_sorted(struct cel_eval *e, const struct cel_value *arg)
{
    if (!bh_cel_work(e, arg->n))
        return cel_bool(false);
    for (uint32_t i = 1; i < arg->n && !e->exhausted; i++) {
        int c = compare(e, &arg->list[i - 1], &arg->list[i]);
        if (c == 2)
            return bh_cel_error(e, "no such overload");
        if (c > 0)
            return cel_bool(false);
    }
    return cel_bool(true);
}

struct cel_value bh_cel_sum(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value r = arg->n ? arg->list[0] : cel_int(0);

    for (uint32_t i = 1; i < arg->n && !e->exhausted && r.kind != CEL_ERROR; i++)
        r = bh_cel_binary(e, OP_ADD, &r, &arg->list[i]);
    return r;
}

/* min() and max(): how is -1 or 1. */
struct cel_value bh_cel_extreme(struct cel_eval *e, const struct cel_value *arg)
{
    const int sign = e->how;

    if (arg->n == 0)
        return bh_cel_error(e, sign < 0 ? "min called on empty list" : "max called on empty list");
    struct cel_value r = arg->list[0];
    if (!bh_cel_work(e, arg->n))
        return r;
    for (uint32_t i = 1; i < arg->n && !e->exhausted; i++) {
        int c = compare(e, &arg->list[i], &r);
        if (c == 2)
            return bh_cel_error(e, "no such overload");
        if (c == sign)
            r = arg->list[i];
    }
    return r;
}

/* indexOf() and lastIndexOf(): how is the direction. */
struct cel_value bh_cel_list_index_of(struct cel_eval *e, const struct cel_value *arg)
{
    const bool back = e->how < 0;

    if (!bh_cel_work(e, arg->n))
        return cel_int(-1);
    for (uint32_t k = 0; k < arg->n && !e->exhausted; k++) {
        uint32_t i = back ? arg->n - 1 - k : k;
        if (bh_cel_equal(e, &arg->list[i], &arg[1]))
            return cel_int(i);
    }
    return cel_int(-1);
}

/* ---- optionals ---- */

struct cel_value bh_cel_optional_of(struct cel_eval *e, const struct cel_value *arg)
{
    return cel_optional(bh_arena_memdup(e->arena, arg, sizeof(*arg)));
}

struct cel_value bh_cel_optional_none(struct cel_eval *e BH_UNUSED,
                                      const struct cel_value *arg BH_UNUSED)
{
    return cel_optional(NULL);
}

static bool is_zero(const struct cel_value *v)
{
    switch (v->kind) {
    case CEL_NULL:
        return true;
    case CEL_BOOL:
        return !v->b;
    case CEL_INT:
    case CEL_UINT:
        return v->u == 0;
    case CEL_DOUBLE:
        return v->d == 0;
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_LIST:
    case CEL_OPTIONAL:
        return v->n == 0;
    default:
        return v->kind == CEL_MAP && v->map->n == 0;
    }
}

struct cel_value bh_cel_optional_non_zero(struct cel_eval *e, const struct cel_value *arg)
{
    return is_zero(arg) ? cel_optional(NULL) : bh_cel_optional_of(e, arg);
}

struct cel_value bh_cel_has_value(struct cel_eval *e BH_UNUSED, const struct cel_value *arg)
{
    return cel_bool(arg->n == 1);
}

struct cel_value bh_cel_value(struct cel_eval *e, const struct cel_value *arg)
{
    return arg->n ? *arg->opt : bh_cel_error(e, "optional.none() dereference");
}
