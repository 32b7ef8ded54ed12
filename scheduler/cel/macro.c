/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/macro.c - all, exists, exists_one, filter, map
 *
 * Each turn is charged what upstream's expansion of the macro into a fold costs, so that the limit
 * cuts in at about the same number of turns. Upstream: cel-go/parser/macro.go.
 */
#include "scheduler/cel/cel_int.h"

struct fold {
    struct cel_eval *e;
    const struct cel_node *n;
    struct cel_value err;   /* the first error of all and exists; decides when nothing else did */
    struct cel_value *item; /* of the list being made */
    uint32_t n_items, count;
};

static struct cel_value body(struct fold *f, uint32_t i)
{
    return bh_cel_eval(f->e, f->e->prog->arg[f->n->first + i]);
}

static struct cel_value as_bool(struct fold *f, uint32_t i)
{
    struct cel_value v = body(f, i);

    if (v.kind == CEL_BOOL || v.kind == CEL_ERROR)
        return v;
    return bh_cel_error(f->e, "no such overload");
}

/* One turn. True = the macro is decided, with *ret. */
static bool quantify(struct fold *f, bool decisive, struct cel_value *ret)
{
    bh_cel_charge(f->e, decisive ? 4 : 3);
    *ret = as_bool(f, 1);
    if (ret->kind == CEL_ERROR && f->err.kind != CEL_ERROR)
        f->err = *ret;
    return ret->kind == CEL_BOOL && ret->b == decisive;
}

static bool count_one(struct fold *f, struct cel_value *ret)
{
    *ret = as_bool(f, 1);
    bh_cel_charge(f->e, 1);
    if (ret->kind == CEL_BOOL && ret->b) {
        bh_cel_charge(f->e, 1);
        f->count++;
    }
    return ret->kind == CEL_ERROR;
}

static bool collect(struct fold *f, struct cel_value item, struct cel_value *ret)
{
    bool filter = f->n->op == OP_FILTER;

    if (filter || f->n->n_args == 3) {
        *ret = as_bool(f, filter ? 1 : 2);
        if (ret->kind == CEL_ERROR || !ret->b)
            return !bh_cel_charge(f->e, 1) || ret->kind == CEL_ERROR;
    }
    if (!bh_cel_charge(f->e, 12))
        return true;
    *ret = filter ? item : body(f, 1);
    if (ret->kind == CEL_ERROR)
        return true;
    f->item[f->n_items++] = *ret;
    return false;
}

static bool turn(struct fold *f, const struct cel_value *range, uint32_t i, struct cel_value *ret)
{
    bool map = range->kind == CEL_MAP;
    struct cel_value key = map ? range->map->entry[i].key : cel_int(i);
    struct cel_value value = map ? range->map->entry[i].value : range->list[i];
    struct cel_value *slot = &f->e->slot[f->n->slot];

    slot[0] = map || f->n->two_vars ? key : value;
    if (f->n->two_vars)
        slot[1] = value;
    switch (f->n->op) {
    case OP_ALL:
        return quantify(f, false, ret);
    case OP_EXISTS:
        return quantify(f, true, ret);
    case OP_EXISTS_ONE:
        return count_one(f, ret);
    default:
        return collect(f, slot[0], ret);
    }
}

static struct cel_value not_iterable(struct cel_eval *e, uint32_t kind)
{
    static const char *const go_name[CEL_DYN + 1] = {
        [CEL_NULL] = "types.Null",
        [CEL_BOOL] = "types.Bool",
        [CEL_INT] = "types.Int",
        [CEL_UINT] = "types.Uint",
        [CEL_STRING] = "types.String",
        [CEL_DOUBLE] = "types.Double",
        [CEL_BYTES] = "types.Bytes",
        [CEL_QUANTITY] = "cel.Quantity",
        [CEL_TYPE] = "*types.Type",
        [CEL_SEMVER] = "cel.Semver",
        [CEL_OPTIONAL] = "*types.Optional",
    };
    return bh_cel_error(e, "got '%s', expected iterable type",
                        go_name[kind] ? go_name[kind] : bh_cel_kind_name(kind));
}

static struct cel_value result(struct fold *f)
{
    switch (f->n->op) {
    case OP_ALL:
    case OP_EXISTS:
        return f->err.kind == CEL_ERROR ? f->err : cel_bool(f->n->op == OP_ALL);
    case OP_EXISTS_ONE:
        return cel_bool(f->count == 1);
    default:
        return cel_list(f->item, f->n_items);
    }
}

struct cel_value bh_cel_comprehension(struct cel_eval *e, const struct cel_node *n)
{
    struct fold f = {.e = e, .n = n, .err = {.kind = CEL_NULL}};
    struct cel_value range = bh_cel_eval(e, e->prog->arg[n->first]), ret;
    bool makes_list = n->op == OP_FILTER || n->op == OP_MAP_MACRO;

    if (range.kind == CEL_ERROR || e->exhausted)
        return range;
    if (range.kind != CEL_LIST && range.kind != CEL_MAP)
        return not_iterable(e, range.kind);
    uint32_t turns = range.kind == CEL_LIST ? range.n : range.map->n;
    if (!bh_cel_charge(e, makes_list ? 11 + turns / 16 : n->op == OP_EXISTS_ONE ? 2 : 1))
        return cel_bool(false);
    if (makes_list)
        f.item = bh_arena_new_array(e->arena, struct cel_value, turns + 1);
    for (uint32_t i = 0; i < turns && !e->exhausted; i++) {
        if (turn(&f, &range, i, &ret))
            return ret;
    }
    return result(&f);
}
