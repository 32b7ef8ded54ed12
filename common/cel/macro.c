/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/macro.c - the macros that loop
 *
 * Upstream expands them into folds over an accumulator; here each is a loop of its own with the
 * result and the price of that fold: an error does not end the loop but becomes the accumulator.
 * Upstream: cel-go/parser/macro.go, cel-go/ext/comprehensions.go.
 */
#include "common/cel/cel_int.h"

struct fold {
    struct cel_eval *e;
    const struct cel_node *n;
    struct cel_value accu;  /* an error, or of all and exists a bool, or nothing */
    struct cel_value *item; /* of the list being made */
    struct cel_map *map;    /* being made */
    uint32_t n_items, cap, count;
    bool makes_list;
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

static bool failed(const struct fold *f)
{
    return f->accu.kind == CEL_ERROR;
}

/* One turn of all or exists. False = it has been decided by an earlier turn. */
static bool quantify(struct fold *f, bool decisive)
{
    bh_cel_charge(f->e, decisive ? 3 : 2);
    if (f->accu.kind == CEL_BOOL && f->accu.b == decisive)
        return false;
    bh_cel_charge(f->e, 1);
    struct cel_value v = as_bool(f, 1);
    if (v.kind == CEL_ERROR ? !failed(f) : v.b == decisive)
        f->accu = v;
    return true;
}

/* A condition decides about the rest of the turn; one that fails replaces what was there. */
static bool accepts(struct fold *f, uint32_t i)
{
    struct cel_value v = as_bool(f, i);

    if (v.kind == CEL_ERROR)
        f->accu = v;
    return v.kind == CEL_BOOL && v.b;
}

/* accu + [item], where the item is a variable, a constant or anything. */
static void append(struct fold *f, const struct cel_value *variable)
{
    uint64_t literal =
        !variable && (f->e->prog->node[f->e->prog->arg[f->n->first + 1]].op == OP_CONST) ? 0 : 10;

    bh_cel_charge(f->e, 1);
    struct cel_value v = variable ? *variable : body(f, 1);
    bh_cel_charge(f->e, literal + 1 + (variable ? 1 : 0));
    if (failed(f) || f->e->exhausted)
        return;
    if (v.kind == CEL_ERROR)
        f->accu = v;
    else
        f->item[f->n_items++] = v;
}

static void insert(struct fold *f, const struct cel_value *key, const struct cel_value *value)
{
    struct cel_entry *entry = (struct cel_entry *)(uintptr_t)f->map->entry;

    if (failed(f) || f->e->exhausted)
        return;
    if (bh_cel_map_find(f->e, f->map, key)) {
        struct cel_value text = bh_cel_string(f->e, key);
        f->accu = bh_cel_error(f->e, "insert failed: key %.*s already exists",
                               (int)BH_MIN(text.n, 200u), text.s);
        return;
    }
    if (f->map->n == f->cap) {
        f->cap = BH_MAX(f->cap * 2, 8u);
        if (!bh_cel_work(f->e, f->cap))
            return;
        entry =
            bh_arena_more(f->e->arena, entry, f->map->n * sizeof(*entry), f->cap * sizeof(*entry));
        f->map->entry = entry;
    }
    entry[f->map->n++] = (struct cel_entry){*key, *value};
}

static void put_value(struct fold *f, const struct cel_value *key)
{
    bh_cel_charge(f->e, 1);
    if (failed(f))
        return;
    bh_cel_charge(f->e, 1);
    struct cel_value v = body(f, 1);
    if (v.kind == CEL_ERROR) {
        f->accu = v;
        return;
    }
    bh_cel_charge(f->e, 1);
    insert(f, key, &v);
}

static void put_entries(struct fold *f)
{
    bh_cel_charge(f->e, 1);
    struct cel_value v = body(f, 1);
    bh_cel_charge(f->e, 1);
    if (failed(f))
        return;
    if (v.kind != CEL_MAP) {
        f->accu = v.kind == CEL_ERROR ? v : bh_cel_error(f->e, "no such overload");
        return;
    }
    for (uint32_t i = 0; i < v.map->n; i++)
        insert(f, &v.map->entry[i].key, &v.map->entry[i].value);
}

/* False = there is nothing left to decide. */
static bool turn(struct fold *f, const struct cel_value *range, uint32_t i)
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
        return quantify(f, false);
    case OP_EXISTS:
        return quantify(f, true);
    case OP_EXISTS_ONE:
        if (accepts(f, 1)) {
            bh_cel_charge(f->e, 2);
            f->count++;
        }
        return true;
    case OP_FILTER:
        if (accepts(f, 1))
            append(f, slot);
        return true;
    default:
        break;
    }
    if (f->n->n_args == 3 && !accepts(f, 2))
        return true;
    if (f->n->op == OP_TO_MAP)
        put_value(f, &key);
    else if (f->n->op == OP_TO_ENTRIES)
        put_entries(f);
    else
        append(f, NULL);
    return true;
}

static struct cel_value not_iterable(struct cel_eval *e, uint32_t kind, bool two)
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
        [CEL_IP] = "cel.IP",
        [CEL_CIDR] = "cel.CIDR",
    };
    return bh_cel_error(
        e, two ? "unsupported comprehension range type: %s" : "got '%s', expected iterable type",
        go_name[kind] ? go_name[kind] : bh_cel_kind_name(kind));
}

static struct cel_value result(struct fold *f, const struct cel_value *range)
{
    bh_cel_charge(f->e, f->n->op == OP_EXISTS_ONE || (f->n->op == OP_SORT_BY && failed(f)) ? 2 : 1);
    if (failed(f))
        return f->accu;
    switch (f->n->op) {
    case OP_ALL:
    case OP_EXISTS:
        return f->accu;
    case OP_EXISTS_ONE:
        return cel_bool(f->count == 1);
    case OP_TO_MAP:
    case OP_TO_ENTRIES:
        return (struct cel_value){.kind = CEL_MAP, .map = f->map};
    case OP_SORT_BY: {
        /* The items hold the keys by now. */
        struct cel_value keys = cel_list(f->item, f->n_items);
        bool dyn = f->e->prog->node[f->e->prog->arg[f->n->first + 1]].type->kind == CEL_DYN;
        bh_cel_charge(f->e, dyn ? 1 : bh_cel_self_compare_cost(&keys));
        if (f->e->exhausted)
            return cel_bool(false);
        if (range->kind != CEL_LIST)
            return bh_cel_no_overload(f->e, "@sortByAssociatedKeys", range, 1);
        return bh_cel_sort_by(f->e, range, &keys);
    }
    default:
        return cel_list(f->item, f->n_items);
    }
}

struct cel_value bh_cel_comprehension(struct cel_eval *e, const struct cel_node *n)
{
    struct fold f = {.e = e, .n = n, .accu = cel_bool(n->op != OP_EXISTS)};
    bool sorts = n->op == OP_SORT_BY;
    struct cel_value range = bh_cel_eval(e, e->prog->arg[n->first]);

    if (range.kind == CEL_ERROR || e->exhausted)
        return range;
    if (range.kind != CEL_LIST && range.kind != CEL_MAP)
        return not_iterable(e, range.kind, n->two_vars);
    bh_cel_charge(e, sorts ? 2 : 0); /* upstream binds the list to a name that is used twice */
    f.makes_list = sorts || n->op == OP_FILTER || n->op == OP_MAP_MACRO || n->op == OP_TO_LIST;
    uint32_t turns = range.kind == CEL_LIST ? range.n : range.map->n;
    if (f.makes_list) {
        if (!bh_cel_work(e, turns))
            return cel_bool(false);
        f.item = bh_arena_new_array(e->arena, struct cel_value, turns + 1);
    } else if (n->op == OP_TO_MAP || n->op == OP_TO_ENTRIES) {
        f.map = bh_arena_new(e->arena, struct cel_map);
        *f.map = (struct cel_map){0};
    }
    for (uint32_t i = 0; i < turns && !e->exhausted; i++)
        if (!turn(&f, &range, i))
            break;
    return result(&f, &range);
}
