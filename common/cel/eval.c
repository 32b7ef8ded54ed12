/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/eval.c - a checked program against one device
 *
 * Recursion over the tree; its depth is bounded while parsing. Errors are values and absorbed by &&
 * and || when the other side decides; running over the cost limit is not absorbed by anything.
 *
 * Costs are those of cel-go/interpreter/runtimecost.go. A chain of members costs one for its root,
 * be that a name or the result of something else, and one for each step. Nothing for the root under
 * has() and where a conditional picks the chain as its result (no_root, set by the parser).
 * Upstream: cel-go/interpreter.
 */
#include "common/cel/cel_int.h"

static struct cel_value eval_arg(struct cel_eval *e, const struct cel_node *n, uint32_t i)
{
    return bh_cel_eval(e, e->prog->arg[n->first + i]);
}

static const struct cel_value *keep(struct cel_eval *e, struct cel_value v)
{
    return bh_arena_memdup(e->arena, &v, sizeof(v));
}

/* ---- logic ---- */

/* && and ||: `decisive` ends it, whatever stands beside it; else the first error; else the
 * opposite. */
static struct cel_value logic(struct cel_eval *e, const struct cel_node *n, bool decisive)
{
    struct cel_value err = {.kind = CEL_BOOL};

    for (uint32_t i = 0; i < n->n_args && !e->exhausted; i++) {
        struct cel_value v = eval_arg(e, n, i);
        if (v.kind == CEL_BOOL && v.b == decisive)
            return v;
        if (v.kind != CEL_BOOL && err.kind == CEL_BOOL)
            err = v.kind == CEL_ERROR ? v : bh_cel_error(e, "no such overload");
    }
    return err.kind == CEL_ERROR ? err : cel_bool(!decisive);
}

static struct cel_value not_(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value v = eval_arg(e, n, 0);

    bh_cel_charge(e, 1);
    if (v.kind == CEL_BOOL)
        return cel_bool(!v.b);
    return v.kind == CEL_ERROR ? v : bh_cel_error(e, "no such overload");
}

bool bh_cel_is_attribute(const struct cel_node *n)
{
    return n->op == OP_VAR || n->op == OP_DEVICE || n->op == OP_SELECT || n->op == OP_OPT_SELECT ||
           n->op == OP_INDEX || n->op == OP_OPT_INDEX || n->op == OP_COND;
}

static struct cel_value conditional(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value v = eval_arg(e, n, 0);

    if (v.kind == CEL_BOOL)
        return eval_arg(e, n, v.b ? 1 : 2);
    return v.kind == CEL_ERROR ? v : bh_cel_error(e, "no such overload");
}

/* ---- members ---- */

static const struct cel_map empty_map;
static const struct cel_value empty_domain = {.kind = CEL_MAP, .map = &empty_map};

static struct cel_value no_such_key(struct cel_eval *e, const struct cel_value *key)
{
    switch (key->kind) {
    case CEL_STRING:
        return bh_cel_error(e, "no such key: %.*s", (int)BH_MIN(key->n, 200u), key->s);
    case CEL_INT:
        return bh_cel_error(e, "no such key: %lld", (long long)key->i);
    case CEL_UINT:
        return bh_cel_error(e, "no such key: %llu", (unsigned long long)key->u);
    case CEL_BOOL:
        return bh_cel_error(e, "no such key: %s", key->b ? "true" : "false");
    case CEL_DOUBLE:
        return bh_cel_error(e, "no such key: %g", key->d);
    default:
        return bh_cel_error(e, "unsupported key type: %s", bh_cel_kind_name(key->kind));
    }
}

static struct cel_value list_item(struct cel_eval *e, const struct cel_value *list,
                                  const struct cel_value *key)
{
    int64_t i = key->kind == CEL_INT ? key->i : -1;

    if (key->kind == CEL_UINT)
        i = key->u > INT64_MAX ? INT64_MAX : (int64_t)key->u;
    else if (key->kind == CEL_DOUBLE && key->d >= 0 && key->d < 0x1p53 &&
             key->d == (double)(int64_t)key->d)
        i = (int64_t)key->d;
    else if (key->kind != CEL_INT)
        return bh_cel_error(e, "unsupported index type '%s' in list", bh_cel_kind_name(key->kind));
    if (i < 0 || i >= (int64_t)list->n)
        return bh_cel_error(e, "index out of bounds: %lld", (long long)i);
    return list->list[i];
}

/* *ret_absent: an error, but one that only says that nothing is there. */
static struct cel_value lookup(struct cel_eval *e, const struct cel_value *v,
                               const struct cel_value *key, bool *ret_absent)
{
    const struct cel_value *found;
    struct cel_value r;

    *ret_absent = false;
    switch (v->kind) {
    case CEL_MAP:
        found = bh_cel_map_find(e, v->map, key);
        if (!found && v->map->absent_is_empty && key->kind == CEL_STRING)
            found = &empty_domain;
        *ret_absent = !found;
        return found ? *found : no_such_key(e, key);
    case CEL_LIST:
        r = list_item(e, v, key);
        *ret_absent = r.kind == CEL_ERROR && key->kind != CEL_STRING;
        return r;
    case CEL_DEVICE: {
        static const char *const field[] = {"driver", "attributes", "capacity",
                                            "allowMultipleAllocations"};
        for (size_t i = 0; key->kind == CEL_STRING && i < BH_ARRAY_LEN(field); i++)
            if (bh_str_eqc((struct bh_str){key->s, key->n}, field[i]))
                return e->device[i];
        return no_such_key(e, key);
    }
    case CEL_ERROR:
        return *v;
    default:
        *ret_absent = true;
        return no_such_key(e, key);
    }
}

/* Selection and index, for which a step is paid unless there is nothing. What is looked up in an
 * optional, or optionally, is an optional. */
static struct cel_value get(struct cel_eval *e, const struct cel_value *from,
                            const struct cel_value *key, bool optional, uint64_t step)
{
    bool absent;

    if (from->kind == CEL_OPTIONAL && from->n == 0)
        return *from;
    struct cel_value r = lookup(e, from->kind == CEL_OPTIONAL ? from->opt : from, key, &absent);
    optional |= from->kind == CEL_OPTIONAL;
    if (optional && absent)
        return cel_optional(NULL);
    if (!bh_cel_charge(e, step))
        return cel_bool(false);
    return r.kind == CEL_ERROR || !optional ? r : cel_optional(keep(e, r));
}

static const struct cel_node *arg_node(const struct cel_eval *e, const struct cel_node *n,
                                       uint32_t i)
{
    return &e->prog->node[e->prog->arg[n->first + i]];
}

/* What the chain begins with. */
static struct cel_value base(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value from = eval_arg(e, n, 0);

    if (!n->no_root && !bh_cel_is_attribute(arg_node(e, n, 0)))
        bh_cel_charge(e, 1);
    return from;
}

static struct cel_value select_(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value from = base(e, n), key = cel_str(n->name.p, n->name.n);

    if (from.kind == CEL_ERROR)
        return from;
    if (n->op != OP_HAS)
        return get(e, &from, &key, n->op == OP_OPT_SELECT, 1);
    struct cel_value r = get(e, &from, &key, true, 0);
    bh_cel_charge(e, 1);
    return r.kind == CEL_ERROR ? r : cel_bool(r.kind == CEL_OPTIONAL && r.n == 1);
}

/* A key that is a chain of members itself is the step, and has been paid. */
static struct cel_value index_(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value from = base(e, n);

    if (from.kind == CEL_ERROR || (from.kind == CEL_OPTIONAL && from.n == 0))
        return from;
    const struct cel_node *k = arg_node(e, n, 1);
    uint64_t step = bh_cel_is_attribute(k) && k->op != OP_COND ? 0 : 1;
    struct cel_value key = eval_arg(e, n, 1);
    if (key.kind == CEL_ERROR)
        return bh_cel_charge(e, step) ? key : cel_bool(false);
    return get(e, &from, &key, n->op == OP_OPT_INDEX, step);
}

/* ---- literals ---- */

/* An entry written with a question mark: the value, or *ret_none. */
static struct cel_value entry_of(struct cel_eval *e, const struct cel_node *n, uint32_t i,
                                 bool *ret_none)
{
    const struct cel_node *arg = arg_node(e, n, i);
    struct cel_value v = eval_arg(e, n, i);

    *ret_none = false;
    if (arg->op != OP_ENTRY || v.kind == CEL_ERROR)
        return v;
    if (v.kind != CEL_OPTIONAL)
        return bh_cel_error(e, "cannot initialize optional entry from non-optional value %s",
                            bh_cel_kind_name(v.kind));
    *ret_none = v.n == 0;
    return *ret_none ? v : *v.opt;
}

static struct cel_value list(struct cel_eval *e, const struct cel_node *n)
{
    uint32_t made = 0;
    bool none;

    if (!bh_cel_work(e, n->n_args))
        return cel_bool(false);
    struct cel_value *item = bh_arena_new_array(e->arena, struct cel_value, n->n_args + 1);
    for (uint32_t i = 0; i < n->n_args && !e->exhausted; i++) {
        item[made] = entry_of(e, n, i, &none);
        if (item[made].kind == CEL_ERROR)
            return bh_cel_charge(e, 10) ? item[made] : cel_bool(false);
        made += !none;
    }
    return bh_cel_charge(e, 10) ? cel_list(item, made) : cel_bool(false);
}

static struct cel_value map(struct cel_eval *e, const struct cel_node *n)
{
    bool none;

    if (!bh_cel_work(e, n->n_args))
        return cel_bool(false);
    struct cel_map *m = bh_arena_new(e->arena, struct cel_map);
    struct cel_entry *entry = bh_arena_new_array(e->arena, struct cel_entry, n->n_args / 2 + 1);
    m->entry = entry;
    for (uint32_t i = 0; i < n->n_args && !e->exhausted; i += 2) {
        struct cel_entry pair = {.key = eval_arg(e, n, i)};
        if (pair.key.kind == CEL_ERROR)
            return bh_cel_charge(e, 30) ? pair.key : cel_bool(false);
        if (!cel_in(pair.key.kind, CEL_KEYS))
            return bh_cel_error(e, "unsupported key type: %s", bh_cel_kind_name(pair.key.kind));
        pair.value = entry_of(e, n, i + 1, &none);
        if (pair.value.kind == CEL_ERROR)
            return bh_cel_charge(e, 30) ? pair.value : cel_bool(false);
        struct cel_value *old = (struct cel_value *)(uintptr_t)bh_cel_map_find(e, m, &pair.key);
        if (old && !none)
            *old = pair.value; /* the later one counts */
        else if (!none)
            entry[m->n++] = pair;
    }
    bh_cel_charge(e, 30);
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}

/* ---- the rest ---- */

/* Makes the variable stand for a node, which gets its value where it is used first. */
static void bind_lazily(struct cel_eval *e, const struct cel_node *n)
{
    e->slot[n->slot] =
        (struct cel_value){.kind = CEL_LAZY, .n = n->op != OP_BIND, .i = e->prog->arg[n->first]};
}

static struct cel_value variable(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value *v = &e->slot[n->slot];

    if (v->kind == CEL_LAZY) {
        bool optional = v->n;
        struct cel_value now = bh_cel_eval(e, (uint32_t)v->i);
        bh_cel_charge(e, optional ? 1 : 0); /* value() */
        *v = optional && now.kind == CEL_OPTIONAL && now.n ? *now.opt : now;
    }
    bh_cel_charge(e, n->no_root ? 0 : 1);
    return *v;
}

static struct cel_value opt_map(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value from = eval_arg(e, n, 0);

    bh_cel_charge(e, 1); /* hasValue() */
    if (from.kind == CEL_ERROR)
        return from;
    if (from.kind != CEL_OPTIONAL)
        return bh_cel_no_overload(e, "hasValue", &from, 1);
    if (from.n == 0)
        return bh_cel_charge(e, 1) ? from : cel_bool(false);
    bind_lazily(e, n);
    struct cel_value r = eval_arg(e, n, 1);
    if (n->op == OP_OPT_FLATMAP)
        return r;
    bh_cel_charge(e, 1); /* optional.of() */
    return r.kind == CEL_ERROR ? r : cel_optional(keep(e, r));
}

static struct cel_value binary(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value a = eval_arg(e, n, 0), b = eval_arg(e, n, 1);

    if (!bh_cel_charge(e, bh_cel_binary_cost(e, n, &a, &b)))
        return cel_bool(false);
    if (a.kind == CEL_ERROR || b.kind == CEL_ERROR)
        return a.kind == CEL_ERROR ? a : b;
    return bh_cel_binary(e, (enum cel_op)n->op, &a, &b);
}

static struct cel_value negate(struct cel_eval *e, const struct cel_node *n)
{
    struct cel_value a = eval_arg(e, n, 0);

    bh_cel_charge(e, 1);
    return a.kind == CEL_ERROR ? a : bh_cel_negate(e, &a);
}

struct cel_value bh_cel_eval(struct cel_eval *e, uint32_t node)
{
    const struct cel_node *n = &e->prog->node[node];

    if (e->exhausted)
        return cel_bool(false);
    switch ((enum cel_op)n->op) {
    case OP_CONST:
        return n->value;
    case OP_VAR:
        return variable(e, n);
    case OP_DEVICE:
        bh_cel_charge(e, n->no_root ? 0 : 1);
        return (struct cel_value){.kind = CEL_DEVICE};
    case OP_SELECT:
    case OP_HAS:
    case OP_OPT_SELECT:
        return select_(e, n);
    case OP_INDEX:
    case OP_OPT_INDEX:
        return index_(e, n);
    case OP_AND:
        return logic(e, n, false);
    case OP_OR:
        return logic(e, n, true);
    case OP_NOT:
        return not_(e, n);
    case OP_NEG:
        return negate(e, n);
    case OP_COND:
        return conditional(e, n);
    case OP_LIST:
        return list(e, n);
    case OP_MAP:
        return map(e, n);
    case OP_CALL:
        return bh_cel_call(e, n);
    case OP_BIND:
        bind_lazily(e, n);
        return eval_arg(e, n, 1);
    case OP_ENTRY:
        return eval_arg(e, n, 0);
    case OP_OPT_MAP:
    case OP_OPT_FLATMAP:
        return opt_map(e, n);
    case OP_ALL:
    case OP_EXISTS:
    case OP_EXISTS_ONE:
    case OP_FILTER:
    case OP_MAP_MACRO:
    case OP_TO_LIST:
    case OP_TO_MAP:
    case OP_TO_ENTRIES:
    case OP_SORT_BY:
        return bh_cel_comprehension(e, n);
    default: /* the operators with two operands */
        return binary(e, n);
    }
}
