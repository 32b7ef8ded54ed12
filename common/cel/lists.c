/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/lists.c - functions of lists, sets and optionals
 *
 * The price is paid by the caller; what is copied or compared is work.
 * Upstream: cel-go/ext/sets.go, cel-go/ext/lists.go (version 3), cel-go/cel/library.go (optionals),
 *           k8s.io/apiserver/pkg/cel/library/lists.go, k8s.io/dynamic-resource-allocation/cel
 *           (includes). Difference: sorting is stable at every length.
 */
#include "common/cel/cel_int.h"

static bool list_has(struct cel_eval *e, const struct cel_value *list, const struct cel_value *v)
{
    if (!bh_cel_work(e, list->n))
        return false;
    for (uint32_t i = 0; i < list->n && !e->exhausted; i++)
        if (bh_cel_equal(e, &list->list[i], v))
            return true;
    return false;
}

/* Is every item of b in a? */
static bool covers(struct cel_eval *e, const struct cel_value *a, const struct cel_value *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (!list_has(e, a, &b->list[i]))
            return false;
    return true;
}

/* sets.contains(), equivalent() and intersects(): how is 0, 1 or 2. */
struct cel_value bh_cel_sets(struct cel_eval *e, const struct cel_value *arg)
{
    if (e->how < 2)
        return cel_bool(covers(e, &arg[0], &arg[1]) && (!e->how || covers(e, &arg[1], &arg[0])));
    for (uint32_t i = 0; i < arg[1].n && !e->exhausted; i++)
        if (list_has(e, &arg[0], &arg[1].list[i]))
            return cel_bool(true);
    return cel_bool(false);
}

/* A scalar attribute includes its only value. */
struct cel_value bh_cel_includes(struct cel_eval *e, const struct cel_value *arg)
{
    if (arg->kind == CEL_LIST)
        return cel_bool(list_has(e, arg, &arg[1]));
    return cel_bool(bh_cel_equal(e, &arg[0], &arg[1]));
}

struct cel_value bh_cel_is_sorted(struct cel_eval *e, const struct cel_value *arg)
{
    if (!bh_cel_work(e, arg->n))
        return cel_bool(false);
    for (uint32_t i = 1; i < arg->n && !e->exhausted; i++) {
        int c = bh_cel_compare_paid(e, &arg->list[i - 1], &arg->list[i]);
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
        int c = bh_cel_compare_paid(e, &arg->list[i], &r);
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

/* ---- a list out of another -------------------------------------------------------------------- */

static struct cel_value *new_list(struct cel_eval *e, uint64_t n)
{
    return bh_cel_work(e, n) ? bh_arena_new_array(e->arena, struct cel_value, n + 1) : NULL;
}

struct cel_value bh_cel_slice(struct cel_eval *e, const struct cel_value *arg)
{
    long long from = arg[1].i, to = arg[2].i;

    if (from < 0 || to < 0)
        return bh_cel_error(e, "cannot slice(%lld, %lld), negative indexes not supported", from,
                            to);
    if (from > to)
        return bh_cel_error(e,
                            "cannot slice(%lld, %lld), start index must be less than or equal to "
                            "end index",
                            from, to);
    if ((long long)arg->n < to)
        return bh_cel_error(e, "cannot slice(%lld, %lld), list is length %u", from, to, arg->n);
    return cel_list(arg->list + from, (size_t)(to - from));
}

struct flat {
    struct cel_eval *e;
    struct cel_value *item;
    uint64_t n;
};

/* Counts when there is no room to put anything. Values nest as deep as expressions at most. */
static void flatten(struct flat *f, const struct cel_value *list, int64_t depth)
{
    for (uint32_t i = 0; i < list->n && bh_cel_work(f->e, 1); i++) {
        const struct cel_value *v = &list->list[i];
        if (v->kind == CEL_LIST && depth > 0) {
            flatten(f, v, depth - 1);
            continue;
        }
        if (f->item)
            f->item[f->n] = *v;
        f->n++;
    }
}

struct cel_value bh_cel_flatten(struct cel_eval *e, const struct cel_value *arg)
{
    int64_t depth = e->node->n_args == 2 ? arg[1].i : 1;
    struct flat f = {.e = e};

    if (depth < 0)
        return bh_cel_error(e, "level must be non-negative");
    flatten(&f, arg, depth);
    f.item = e->exhausted ? NULL : new_list(e, f.n);
    if (!f.item)
        return cel_list(NULL, 0);
    f.n = 0;
    flatten(&f, arg, depth);
    return cel_list(f.item, f.n);
}

struct cel_value bh_cel_range(struct cel_eval *e, const struct cel_value *arg)
{
    uint64_t n = arg->i > 0 ? (uint64_t)arg->i : 0;
    struct cel_value *item = new_list(e, n);

    if (!item)
        return cel_list(NULL, 0);
    for (uint64_t i = 0; i < n; i++)
        item[i] = cel_int((int64_t)i);
    return cel_list(item, n);
}

struct cel_value bh_cel_reverse(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value *item = new_list(e, arg->n);

    for (uint32_t i = 0; item && i < arg->n; i++)
        item[i] = arg->list[arg->n - 1 - i];
    return cel_list(item, item ? arg->n : 0);
}

struct cel_value bh_cel_distinct(struct cel_eval *e, const struct cel_value *arg)
{
    struct cel_value *item = new_list(e, arg->n);
    uint32_t n = 0, k;

    for (uint32_t i = 0; item && i < arg->n && !e->exhausted; i++) {
        for (k = 0; k < n && bh_cel_work(e, 1); k++)
            if (bh_cel_equal(e, &arg->list[i], &item[k]))
                break;
        if (k == n)
            item[n++] = arg->list[i];
    }
    return cel_list(item, n);
}

/* first() and last(): how is -1 or 1. */
struct cel_value bh_cel_end_of(struct cel_eval *e, const struct cel_value *arg)
{
    return cel_optional(!arg->n ? NULL : e->how < 0 ? arg->list : arg->list + arg->n - 1);
}

/* ---- sorting ---- */

struct sorted {
    const struct cel_value *key;
    uint32_t at;
};

static int by_key(const void *pa, const void *pb)
{
    const struct sorted *a = pa, *b = pb;
    int c = bh_cel_compare(a->key, b->key);

    return c == -1 || c == 1 ? c : a->at < b->at ? -1 : 1;
}

struct cel_value bh_cel_sort_by(struct cel_eval *e, const struct cel_value *list,
                                const struct cel_value *keys)
{
    if (list->n == 0)
        return *list;
    if (!cel_in(keys->list[0].kind, CEL_ORDERED))
        return bh_cel_error(e, "list elements must be comparable");
    for (uint32_t i = 1; i < keys->n; i++)
        if (keys->list[i].kind != keys->list[0].kind)
            return bh_cel_error(e, "list elements must have the same type");
    /* Each key is compared as often as a merge has levels, and all of a text may be looked at. */
    uint64_t bytes = 0, levels = 32u - (unsigned)__builtin_clz(list->n);
    for (uint32_t i = 0; i < keys->n; i++)
        bytes +=
            cel_in(keys->list[i].kind, 1u << CEL_STRING | 1u << CEL_BYTES) ? keys->list[i].n : 0;
    struct cel_value *item =
        bh_cel_work(e, bytes / 100 * levels) ? new_list(e, (uint64_t)list->n * 8) : NULL;
    if (!item)
        return cel_list(NULL, 0);
    struct sorted *s = bh_arena_new_array(e->arena, struct sorted, list->n);
    for (uint32_t i = 0; i < list->n; i++)
        s[i] = (struct sorted){&keys->list[i], i};
    qsort(s, list->n, sizeof(*s), by_key);
    for (uint32_t i = 0; i < list->n; i++)
        item[i] = list->list[s[i].at];
    return cel_list(item, list->n);
}

struct cel_value bh_cel_sort(struct cel_eval *e, const struct cel_value *arg)
{
    return bh_cel_sort_by(e, arg, arg);
}
