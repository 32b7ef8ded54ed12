/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/collections.c - functions that make a list out of another
 *
 * The price is paid by the caller; what is copied or compared is work.
 * Upstream: cel-go/ext/lists.go (version 3). Difference: sorting is stable at every length.
 */
#include "scheduler/cel/functions.h"

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
        for (k = 0; k < n && bh_cel_work(e, 1); k++) {
            if (bh_cel_equal(e, &arg->list[i], &item[k]))
                break;
        }
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

static bool has_order(uint32_t kind)
{
    return kind == CEL_BOOL || kind == CEL_INT || kind == CEL_UINT || kind == CEL_DOUBLE ||
           kind == CEL_STRING || kind == CEL_BYTES;
}

struct cel_value bh_cel_sort_by(struct cel_eval *e, const struct cel_value *list,
                                const struct cel_value *keys)
{
    struct cel_value *item;
    struct sorted *s;

    if (list->n == 0)
        return *list;
    if (!has_order(keys->list[0].kind))
        return bh_cel_error(e, "list elements must be comparable");
    for (uint32_t i = 1; i < keys->n; i++) {
        if (keys->list[i].kind != keys->list[0].kind)
            return bh_cel_error(e, "list elements must have the same type");
    }
    item = new_list(e, (uint64_t)list->n * 8);
    if (!item)
        return cel_list(NULL, 0);
    s = bh_arena_new_array(e->arena, struct sorted, list->n);
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
