/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/cost.c - what an expression may cost at worst, from the bounds of the schema
 *
 * One walk over the tree: every node leaves how large its value can be (as size() counts), what its
 * elements are, and by which path of the schema it is reached; prices multiply what loops with what
 * they loop over. The macros are priced as the folds that upstream makes of them. No number may go
 * over: UINT64_MAX is "no bound".
 *
 * Paths live in slices that grow in place, as in Go, and share their room as there: a later path may
 * overwrite the end of an earlier one, which is seen where the size of a range is asked for behind
 * its body. Upstream's defect decides which definitions are taken, so it is kept.
 * Upstream: cel-go/checker/cost.go, cel-go/ext/{lists,sets}.go, k8s.io/apiserver/pkg/cel/library/cost.go.
 */
#include <math.h>

#include "common/cel/cel_int.h"

#define NO_BOUND UINT64_MAX

/* How large a value is; !known: nothing is known of it. */
struct extent {
    bool known;
    uint64_t min, max;
};
/* What a literal, or a loop, holds: of a list its items, of a map its keys as well. */
struct entry {
    bool known, list;
    struct extent key, value;
};
struct path {
    struct cel_step *step;
    uint32_t n, cap;
};
struct found { /* of a node, or of the variable of a slot */
    struct path path;
    struct extent size;
    struct entry entry;
};
struct estimate {
    const struct bh_cel_program *p;
    const struct bh_json *schema; /* of self */
    struct bh_arena a;
    struct found *node, *slot;
};

static const struct extent unknown = {true, 0, NO_BOUND};
static const struct extent nothing; /* known: false */
static const struct entry no_entry;

static uint64_t cost_of(struct estimate *e, uint32_t at);

/* ---- numbers ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
    return __builtin_add_overflow(a, b, &a) ? NO_BOUND : a;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return __builtin_mul_overflow(a, b, &a) ? NO_BOUND : a;
}

static uint64_t scale(uint64_t n, double factor)
{
    double r = ceil((double)n * factor);

    return r >= 0x1p64 ? NO_BOUND : (uint64_t)r;
}

static uint64_t tenth(uint64_t n)
{
    return scale(n, 0.1);
}

static struct extent exactly(uint64_t n)
{
    return (struct extent){true, n, n};
}

static struct extent either(struct extent a, struct extent b)
{
    return (struct extent){true, BH_MIN(a.min, b.min), BH_MAX(a.max, b.max)};
}

static struct entry either_entry(const struct entry *a, const struct entry *b)
{
    if (!a->known || !b->known)
        return no_entry;
    return (struct entry){true, a->list, either(a->key, b->key), either(a->value, b->value)};
}

/* ---- paths ---- */

static struct path append(struct estimate *e, struct path path, enum cel_step_kind what,
                          const char *name)
{
    if (path.n == path.cap) { /* otherwise into the room that others may share */
        struct cel_step *old = path.step;
        path.cap = BH_MAX(path.cap * 2, 1u);
        path.step = bh_arena_new_array(&e->a, struct cel_step, path.cap);
        if (path.n)
            memcpy(path.step, old, path.n * sizeof(*old));
    }
    path.step[path.n++] = (struct cel_step){what, name};
    return path;
}

static struct path root_path(struct estimate *e)
{
    return append(e, (struct path){NULL, 0, 0}, CEL_STEP_FIELD, "self");
}

static struct extent extent_at(struct estimate *e, struct path path)
{
    struct cel_sized v = {.schema = e->schema, .root = e->p->flags & BH_CEL_ROOT};

    for (uint32_t i = 1; i < path.n; i++)
        if (!bh_cel_sized_step(&v, &path.step[i]))
            return nothing;
    return path.n ? (struct extent){true, 0, (uint64_t)bh_cel_max_elements(&v)} : nothing;
}

/* ---- what is known of a node ---- */

static const struct cel_node *node_at(const struct estimate *e, uint32_t at)
{
    return &e->p->node[at];
}

/* The operand; of an entry that may be missing what it holds. */
static uint32_t arg_at(const struct estimate *e, const struct cel_node *n, uint32_t i)
{
    uint32_t at = e->p->arg[n->first + i];

    return node_at(e, at)->op == OP_ENTRY ? e->p->arg[node_at(e, at)->first] : at;
}

/* self and oldSelf are what the schema says, the others have what they were given. */
static const struct found *variable_of(const struct estimate *e, const struct cel_node *n)
{
    return n->op == OP_VAR && n->slot > 1 ? &e->slot[n->slot] : NULL;
}

static struct path path_of(const struct estimate *e, uint32_t at)
{
    const struct found *v = variable_of(e, node_at(e, at));

    return v ? v->path : e->node[at].path;
}

static struct entry entry_of(const struct estimate *e, uint32_t at)
{
    const struct found *v = variable_of(e, node_at(e, at));

    return v && !e->node[at].entry.known ? v->entry : e->node[at].entry;
}

static bool is_scalar(const struct cel_type *t)
{
    const uint32_t scalars =
        CEL_NUMBERS | 1u << CEL_BOOL | 1u << CEL_TIMESTAMP | 1u << CEL_DURATION;

    return cel_in(t->kind == CEL_OPTIONAL && t->elem ? t->elem->kind : t->kind, scalars);
}

static struct extent size_of(struct estimate *e, uint32_t at)
{
    const struct cel_node *n = node_at(e, at);
    const struct found *v = variable_of(e, n);
    struct found *f = &e->node[at];

    if (f->size.known)
        return f->size;
    if (n->op == OP_CONST && n->value.kind != CEL_TYPE)
        return exactly(bh_cel_size(&n->value));
    if (n->op == OP_LIST || n->op == OP_MAP)
        return exactly(n->op == OP_MAP ? n->n_args / 2 : n->n_args);
    f->size = extent_at(e, path_of(e, at));
    if (f->size.known)
        return f->size;
    return is_scalar(n->type) ? exactly(1) : v ? v->size : nothing;
}

static struct extent size_or_unknown(struct estimate *e, uint32_t at)
{
    struct extent x = size_of(e, at);

    return x.known ? x : unknown;
}

/* What a call made. */
static void note_size(struct estimate *e, uint32_t at, struct extent size)
{
    struct extent x = size.known ? size : size_of(e, at);

    if (x.known)
        e->node[at].size = x;
}

/* ---- members and literals ---- */

static uint64_t costs_of_args(struct estimate *e, const struct cel_node *n)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n->n_args; i++)
        sum = add(sum, cost_of(e, arg_at(e, n, i)));
    return sum;
}

/* Of what costs one besides its operands. */
static uint64_t plain_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    uint64_t cost = add(costs_of_args(e, n), 1);

    note_size(e, at, nothing);
    return cost;
}

static uint64_t select_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    uint32_t from = arg_at(e, n, 0);
    uint8_t kind = node_at(e, from)->type->kind;
    uint64_t cost = cost_of(e, from);

    if (n->op == OP_HAS)
        return cost;
    e->node[at].path = append(e, path_of(e, from), CEL_STEP_FIELD, n->name.p);
    return add(cost, kind == CEL_MAP || kind == CEL_OBJECT);
}

static uint64_t index_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    uint64_t cost = add(costs_of_args(e, n), 1);
    uint32_t from = arg_at(e, n, 0);
    uint8_t kind = node_at(e, from)->type->kind;
    struct extent size = nothing;

    if (kind == CEL_LIST || kind == CEL_MAP || kind == CEL_DYN) {
        size = entry_of(e, from).value;
        e->node[at].path = append(e, path_of(e, from), CEL_STEP_VALUES, NULL);
    }
    note_size(e, at, size);
    return cost;
}

static uint64_t list_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    struct extent item = {true, n->n_args ? NO_BOUND : 0, 0};
    uint64_t sum = 10;

    for (uint32_t i = 0; i < n->n_args; i++) {
        sum = add(sum, cost_of(e, arg_at(e, n, i)));
        item = either(item, size_or_unknown(e, arg_at(e, n, i)));
    }
    e->node[at].entry = (struct entry){true, true, exactly(1), item};
    return sum;
}

static uint64_t map_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    struct extent of[2] = {{true, n->n_args ? NO_BOUND : 0, 0},
                           {true, n->n_args ? NO_BOUND : 0, 0}};
    uint64_t sum = 30;

    for (uint32_t i = 0; i < n->n_args; i++) {
        sum = add(sum, cost_of(e, arg_at(e, n, i)));
        of[i % 2] = either(of[i % 2], size_or_unknown(e, arg_at(e, n, i)));
    }
    e->node[at].entry = (struct entry){true, false, of[0], of[1]};
    return sum;
}

/* ---- operators ---- */

/* An operator that may mean any of several: can its operands be of this kind? */
static bool may_be(const struct estimate *e, const struct cel_node *n, enum cel_kind kind)
{
    for (uint32_t i = 0; i < n->n_args; i++) {
        uint8_t k = node_at(e, arg_at(e, n, i))->type->kind;
        if (k != kind && k != CEL_DYN)
            return false;
    }
    return true;
}

static bool is_text(const struct estimate *e, const struct cel_node *n)
{
    return may_be(e, n, CEL_STRING) || may_be(e, n, CEL_BYTES);
}

/* All operands are known to be text, so that the operator means nothing else. */
static bool is_only_text(const struct estimate *e, const struct cel_node *n)
{
    for (uint32_t i = 0; i < n->n_args; i++)
        if (cel_in(node_at(e, arg_at(e, n, i))->type->kind, 1u << CEL_STRING | 1u << CEL_BYTES))
            return true;
    return false;
}

static uint64_t compare_cost(const struct estimate *e, const struct cel_node *n,
                             const struct extent size[2])
{
    uint64_t walk = tenth(BH_MIN(size[0].max, size[1].max));

    if (n->op == OP_EQ || n->op == OP_NE)
        return walk;
    return !is_text(e, n) ? 1 : is_only_text(e, n) ? walk : BH_MAX(walk, 1u);
}

/* Equality of what upstream knows beside the language; false: it is compared as all else. */
static bool equal_cost(struct estimate *e, const struct cel_node *n, uint64_t *ret)
{
    const uint32_t cheap = 1u << CEL_IP | 1u << CEL_CIDR | 1u << CEL_QUANTITY | 1u << CEL_SEMVER;
    uint8_t kind = node_at(e, arg_at(e, n, 0))->type->kind;
    struct extent right = size_of(e, arg_at(e, n, 1));

    if (n->op != OP_EQ || kind != node_at(e, arg_at(e, n, 1))->type->kind)
        return false;
    *ret = cel_in(kind, cheap)  ? 1
           : kind == CEL_FORMAT ? tenth(64)
                                : tenth(right.known ? right.max : 1);
    return cel_in(kind, cheap) || kind == CEL_FORMAT || kind == CEL_URL;
}

static uint64_t sum_cost(struct estimate *e, uint32_t at, const struct cel_node *n,
                         const struct extent size[2], struct extent *ret)
{
    bool lists = may_be(e, n, CEL_LIST), text = is_text(e, n);
    struct entry a = entry_of(e, arg_at(e, n, 0)), b = entry_of(e, arg_at(e, n, 1));

    if (!lists && !text)
        return 1;
    *ret = (struct extent){true, add(size[0].min, size[1].min), add(size[0].max, size[1].max)};
    struct entry both = either_entry(&a, &b);
    if (both.known)
        e->node[at].entry = both;
    return !text ? 1 : lists ? BH_MAX(tenth(ret->max), 1u) : tenth(ret->max);
}

static uint64_t binary_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    struct extent size[2], made = nothing;
    uint64_t sum = 0, own = 1;
    uint8_t in;

    for (uint32_t i = 0; i < 2; i++) {
        sum = add(sum, cost_of(e, arg_at(e, n, i)));
        size[i] = size_or_unknown(e, arg_at(e, n, i));
    }
    switch ((enum cel_op)n->op) {
    case OP_IN:
        in = node_at(e, arg_at(e, n, 1))->type->kind;
        own = in == CEL_LIST ? size[1].max : in == CEL_DYN ? BH_MAX(size[1].max, 1u) : 1;
        break;
    case OP_ADD:
        own = sum_cost(e, at, n, size, &made);
        break;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
        if (!equal_cost(e, n, &own))
            own = compare_cost(e, n, size);
        break;
    default:
        break;
    }
    note_size(e, at, made);
    return add(sum, own);
}

static uint64_t conditional_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    uint64_t cost[3];
    struct extent size[3];

    for (uint32_t i = 0; i < 3; i++) {
        cost[i] = cost_of(e, arg_at(e, n, i));
        size[i] = size_or_unknown(e, arg_at(e, n, i));
    }
    struct entry a = entry_of(e, arg_at(e, n, 1)), b = entry_of(e, arg_at(e, n, 2));
    struct entry both = either_entry(&a, &b);
    if (both.known)
        e->node[at].entry = both;
    note_size(e, at, either(size[1], size[2]));
    return add(cost[0], BH_MAX(cost[1], cost[2]));
}

/* ---- loops ---- */

/* The variables of a loop over a node, or over what a variable of upstream's own stands for. */
static void give_variables(struct estimate *e, const struct cel_node *n, uint32_t range)
{
    struct entry entry = entry_of(e, range);
    bool list = entry.known ? entry.list : node_at(e, range)->type->kind == CEL_LIST;
    enum cel_step_kind key = list ? CEL_STEP_INDICES : CEL_STEP_KEYS;
    struct found first = {.path = append(e, path_of(e, range), key, NULL), .size = entry.key};

    if (!n->two_vars && list)
        e->slot[n->slot] = (struct found){
            .path = append(e, path_of(e, range), CEL_STEP_VALUES, NULL), .size = entry.value};
    else
        e->slot[n->slot] = first;
    if (n->two_vars)
        e->slot[n->slot + 1] = (struct found){
            .path = append(e, path_of(e, range), CEL_STEP_VALUES, NULL), .size = entry.value};
}

/* One turn: looking whether it is over, and the step. */
static uint64_t turn_cost(struct estimate *e, const struct cel_node *n)
{
    uint64_t condition = n->n_args == 3 ? cost_of(e, arg_at(e, n, 2)) : 0;
    uint64_t body = cost_of(e, arg_at(e, n, 1));

    switch ((enum cel_op)n->op) {
    case OP_ALL:
        return add(body, 3);
    case OP_EXISTS:
        return add(body, 4);
    case OP_EXISTS_ONE:
        return add(body, 2);
    case OP_FILTER:
        return add(body, 13);
    case OP_TO_MAP:
        return add(condition, add(body, 3));
    case OP_TO_ENTRIES:
        return add(condition, add(body, 2));
    default: /* accu + [item] */
        return add(condition, add(body, 12));
    }
}

static uint64_t loop_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    uint32_t range = arg_at(e, n, 0);
    uint64_t begin = cost_of(e, range);
    bool list = n->op == OP_FILTER || n->op == OP_MAP_MACRO || n->op == OP_TO_LIST;
    bool map = n->op == OP_TO_MAP || n->op == OP_TO_ENTRIES;

    give_variables(e, n, range);
    uint64_t turn = turn_cost(e, n);
    struct extent turns = size_or_unknown(e, range), item = unknown;
    if (n->op == OP_FILTER) {
        struct found *x = &e->slot[n->slot];
        struct extent by_path = extent_at(e, x->path);
        item = by_path.known                               ? by_path
               : n->type->elem && is_scalar(n->type->elem) ? exactly(1)
               : x->size.known                             ? x->size
                                                           : unknown;
    } else if (list) {
        item = size_or_unknown(e, arg_at(e, n, 1));
    }
    e->node[at].size = list || map ? turns : exactly(1);
    if (list)
        e->node[at].entry = (struct entry){true, true, exactly(1), either(exactly(0), item)};
    begin = add(begin, map ? 30 : list ? 10 : 0);
    return add(add(begin, times(turns.max, turn)), n->op == OP_EXISTS_ONE ? 2 : 1);
}

/* Upstream binds the list to a name, maps it to the keys, and sorts by these. */
static uint64_t sort_by_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    uint32_t range = arg_at(e, n, 0);
    uint8_t key = node_at(e, arg_at(e, n, 1))->type->kind;
    uint64_t begin = add(cost_of(e, range), 10);

    (void)size_of(e, range); /* before the keys are looked at */
    give_variables(e, n, range);
    uint64_t turn = turn_cost(e, n);
    struct extent turns = size_or_unknown(e, range);
    uint64_t keys = add(times(turns.max, turn), 12), square = times(turns.max, turns.max);
    double factor = key == CEL_STRING || key == CEL_BYTES || key == CEL_DYN ? 2.1 : 2.0;
    e->node[at].size = (struct extent){true, times(turns.min, turns.min), square};
    return add(add(begin, keys), add(scale(square, factor), 12));
}

/* ---- optionals ---- */

/* hasValue() ? bind(x, value(), body) : optional.none(), the result of bind in an optional or not. */
static uint64_t optional_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    uint64_t from = cost_of(e, arg_at(e, n, 0));
    const struct cel_type *t = node_at(e, arg_at(e, n, 0))->type;
    bool scalar = t->kind == CEL_OPTIONAL && t->elem && is_scalar(t->elem);

    e->slot[n->slot] = (struct found){.size = scalar ? exactly(1) : nothing};
    uint64_t body = cost_of(e, arg_at(e, n, 1));
    uint64_t bind = add(add(from, 11), add(body, n->op == OP_OPT_MAP));
    e->node[at].size = unknown;
    return add(add(from, 1), BH_MAX(bind, 1u));
}

/* ---- calls ---- */

struct priced {
    struct estimate *e;
    const struct cel_node *n;
    uint32_t at;
    struct extent size[CEL_ARGS_MAX]; /* of the operands, the receiver first */
    struct extent made;               /* size of the result, when the function says it */
};

/* The items of what is walked over: text is read, all else looked at. */
static struct extent items_of(struct priced *c, uint8_t *ret_kind)
{
    uint32_t list = arg_at(c->e, c->n, 0);
    const struct cel_type *t = node_at(c->e, list)->type;
    struct path path = path_of(c->e, list);
    struct cel_step *copy = bh_arena_new_array(&c->e->a, struct cel_step, path.n + 1);

    *ret_kind = t->kind == CEL_MAP ? t->key->kind : t->elem ? t->elem->kind : CEL_ERROR;
    if (path.n)
        memcpy(copy, path.step, path.n * sizeof(*copy));
    copy[path.n] = (struct cel_step){CEL_STEP_VALUES, NULL};
    struct extent x = extent_at(c->e, (struct path){copy, path.n ? path.n + 1 : 0, 0});
    return x.known ? x : unknown;
}

static uint64_t walk_cost(struct priced *c)
{
    uint8_t kind;
    struct extent item = items_of(c, &kind);

    if (kind == CEL_ERROR) /* a text */
        return tenth(c->size[0].max);
    bool text = kind == CEL_STRING || kind == CEL_BYTES;
    return times(c->size[0].max, add(1, text ? tenth(item.max) : 0));
}

static uint64_t replace_cost(struct priced *c)
{
    struct extent s = c->size[0], from = c->size[1], to = c->size[2], kept = exactly(0), n = kept;

    if (from.min == 0) { /* nothing is found before and behind each character */
        n.max = add(s.max, 1);
        kept.max = s.max;
    } else if (to.max <= from.min) {
        kept.max = s.max;
    } else {
        n.max = scale(1, ceil((double)s.max / (double)from.min));
    }
    if (from.max == 0) {
        n.min = add(s.min, 1);
        kept.min = s.min;
    } else if (from.max <= to.min) {
        kept.min = s.min;
    } else {
        n.min = scale(1, ceil((double)s.min / (double)from.max));
    }
    c->made = (struct extent){true, add(times(n.min, to.min), kept.min),
                              add(times(n.max, to.max), kept.max)};
    return scale(s.max, 0.2);
}

/* An operand that is written as a number. */
static uint64_t number(const struct priced *c, uint32_t i, uint64_t otherwise)
{
    const struct cel_node *n = c->n->n_args > i ? node_at(c->e, arg_at(c->e, c->n, i)) : NULL;

    if (!n || n->op != OP_CONST || n->value.kind != CEL_INT)
        return otherwise;
    return n->value.i < 0 ? 0 : (uint64_t)n->value.i;
}

static uint64_t split_cost(struct priced *c)
{
    const struct cel_node *most = c->n->n_args > 2 ? node_at(c->e, arg_at(c->e, c->n, 2)) : NULL;
    bool given = most && most->op == OP_CONST && most->value.kind == CEL_INT;

    c->made = (struct extent){true, 0, given ? (uint64_t)most->value.i : c->size[0].max};
    return scale(c->size[0].max, 0.2);
}

static uint64_t join_cost(struct priced *c)
{
    struct extent list = c->size[0], sep = c->size[1], made = exactly(0);
    uint8_t kind;
    struct extent item = items_of(c, &kind);

    if (kind != CEL_ERROR)
        made = (struct extent){true, times(list.min, item.min), times(list.max, item.max)};
    if (c->n->n_args > 1) {
        made.min = add(made.min, times(sep.min, list.min ? list.min - 1 : 0));
        made.max = add(made.max, times(sep.max, list.max ? list.max - 1 : 0));
    }
    c->made = made;
    return tenth(made.max);
}

static uint64_t find_cost(struct priced *c, bool made)
{
    if (made)
        c->made = (struct extent){true, 0, c->size[0].max};
    return times(tenth(add(c->size[0].max, 1)), scale(c->size[1].max, 0.25));
}

static uint64_t network_cost(struct priced *c, bool cidr)
{
    uint8_t kind = node_at(c->e, arg_at(c->e, c->n, 1))->type->kind;
    uint64_t cost = tenth(16 + 16) + (cidr ? tenth(16) + 1 : 0);

    return add(cost, kind == CEL_STRING || kind == CEL_DYN ? tenth(c->size[1].max) : 0);
}

/* A list is made: what that takes and what it holds. */
static uint64_t new_list(struct priced *c, struct extent size, double factor)
{
    c->made = size;
    return add(scale(size.max, factor), 11);
}

static struct extent squared(struct extent x)
{
    return (struct extent){true, times(x.min, x.min), times(x.max, x.max)};
}

static uint64_t sort_cost(struct priced *c)
{
    const struct cel_type *t = node_at(c->e, arg_at(c->e, c->n, 0))->type;
    uint8_t kind = t->elem ? t->elem->kind : CEL_DYN;
    bool text = kind == CEL_STRING || kind == CEL_BYTES || kind == CEL_DYN;

    return new_list(c, squared(c->size[0]), text ? 2.1 : 2.0);
}

static uint64_t list_call_cost(struct priced *c, const char *name)
{
    if (bh_streq(name, "slice"))
        return new_list(c, exactly(number(c, 2, c->size[0].max) - number(c, 1, 0)), 1);
    if (bh_streq(name, "lists.range"))
        return new_list(c, exactly(number(c, 0, NO_BOUND)), 1);
    if (bh_streq(name, "reverse"))
        return new_list(c, c->size[0], 1);
    if (bh_streq(name, "flatten"))
        return new_list(c, c->size[0], c->n->n_args > 1 ? (double)number(c, 1, NO_BOUND) : 1);
    if (bh_streq(name, "distinct"))
        return new_list(c, squared(c->size[0]), 2);
    return sort_cost(c);
}

/* Of a text made of bytes, or the other way. The product may run over as upstream's does. */
static uint64_t convert_cost(struct priced *c, bool to_bytes)
{
    uint8_t kind = node_at(c->e, arg_at(c->e, c->n, 0))->type->kind;
    struct extent s = c->size[0];

    if (kind != CEL_DYN && kind != (to_bytes ? CEL_STRING : CEL_BYTES))
        return 1;
    c->made = to_bytes ? (struct extent){true, s.min, s.max * 4}
                       : (struct extent){true, s.min / 4, s.max};
    return kind == CEL_DYN ? BH_MAX(tenth(s.max), 1u) : tenth(s.max);
}

enum price {
    P_ONE,
    P_TENTH, /* of the first operand */
    P_TENTH_KEPT,
    P_FIFTH,
    P_TENTH_OF_SECOND,
    P_WALK,
    P_REPLACE,
    P_SPLIT,
    P_JOIN,
    P_FIND,
    P_CONTAINS,
    P_CONTAINS_IP,
    P_CONTAINS_CIDR,
    P_VALIDATE,
    P_QUOTE,
    P_STRING,
    P_BYTES,
    P_SETS,
    P_SETS_TWICE,
    P_LIST,
    P_DYN,
};
static const struct {
    const char *names;
    enum price price;
} prices[] = {
    {"cidr isIP isCIDR quantity isQuantity semver isSemver format", P_TENTH},
    {"url lowerAscii upperAscii substring trim", P_TENTH_KEPT},
    {"ip.isCanonical", P_FIFTH},
    {"startsWith endsWith", P_TENTH_OF_SECOND},
    {"isSorted sum max min indexOf lastIndexOf", P_WALK},
    {"replace", P_REPLACE},
    {"split", P_SPLIT},
    {"join", P_JOIN},
    {"find findAll", P_FIND},
    {"contains", P_CONTAINS},
    {"containsIP", P_CONTAINS_IP},
    {"containsCIDR", P_CONTAINS_CIDR},
    {"validate", P_VALIDATE},
    {"strings.quote", P_QUOTE},
    {"string", P_STRING},
    {"bytes", P_BYTES},
    {"sets.contains sets.intersects", P_SETS},
    {"sets.equivalent", P_SETS_TWICE},
    {"slice flatten lists.range distinct reverse sort", P_LIST},
    {"dyn", P_DYN},
};

static enum price price_of(const struct cel_func *f)
{
    if (bh_streq(f->name, "ip"))
        return f->member ? P_ONE : P_TENTH;
    if (bh_streq(f->name, "matches")) /* the function of two operands is not looked at */
        return f->member ? P_FIND : P_ONE;
    for (size_t i = 0; i < BH_ARRAY_LEN(prices); i++)
        if (bh_word_at(prices[i].names, f->name) >= 0)
            return prices[i].price;
    return P_ONE;
}

static uint64_t own_cost(struct priced *c)
{
    const struct cel_func *f = c->n->call.func;
    const struct extent *s = c->size;

    switch (price_of(f)) {
    case P_TENTH:
        return tenth(s[0].max);
    case P_TENTH_KEPT:
        c->made = s[0];
        return tenth(s[0].max);
    case P_FIFTH:
        return scale(s[0].max, 0.2);
    case P_TENTH_OF_SECOND:
        return tenth(s[1].max);
    case P_WALK:
        return walk_cost(c);
    case P_REPLACE:
        return replace_cost(c);
    case P_SPLIT:
        return split_cost(c);
    case P_JOIN:
        return join_cost(c);
    case P_FIND:
        return find_cost(c, !bh_streq(f->name, "matches"));
    case P_CONTAINS:
        return times(tenth(s[0].max), tenth(s[1].max));
    case P_CONTAINS_IP:
    case P_CONTAINS_CIDR:
        return network_cost(c, bh_streq(f->name, "containsCIDR"));
    case P_VALIDATE: /* what the format's pattern might be */
        return scale(tenth(s[1].max), 128 * 0.25);
    case P_QUOTE:
        c->made = (struct extent){true, s[0].min + 2, s[0].max * 2 + 2};
        return tenth(s[0].max);
    case P_STRING:
    case P_BYTES:
        return convert_cost(c, bh_streq(f->name, "bytes"));
    case P_SETS:
        return add(times(s[0].max, s[1].max), 1);
    case P_SETS_TWICE:
        return add(scale(times(s[0].max, s[1].max), 2), 1);
    case P_LIST:
        return list_call_cost(c, f->name);
    default:
        return 1;
    }
}

static uint64_t call_cost(struct estimate *e, uint32_t at, const struct cel_node *n)
{
    struct priced c = {.e = e, .n = n, .at = at};
    uint32_t first = n->call.func->member;
    uint64_t sum = 0;

    for (uint32_t k = 0; k < n->n_args; k++) { /* the receiver comes last */
        uint32_t i = (k + first) % n->n_args;
        sum = add(sum, cost_of(e, arg_at(e, n, i)));
        c.size[i] = size_or_unknown(e, arg_at(e, n, i));
    }
    if (price_of(n->call.func) == P_DYN) { /* as if it were not there */
        e->node[at].size = size_of(e, arg_at(e, n, 0));
        e->node[at].entry = entry_of(e, arg_at(e, n, 0));
        return add(sum, 1);
    }
    sum = add(sum, own_cost(&c));
    note_size(e, at, c.made);
    return sum;
}

static uint64_t cost_of(struct estimate *e, uint32_t at)
{
    const struct cel_node *n = node_at(e, at);
    const struct found *v = variable_of(e, n);

    switch ((enum cel_op)n->op) {
    case OP_CONST: /* names of types are names like others */
        if (n->value.kind == CEL_TYPE)
            e->node[at].path = root_path(e);
        return n->value.kind == CEL_TYPE;
    case OP_VAR:
        e->node[at].path = v ? v->path : root_path(e);
        return 1;
    case OP_SELECT:
    case OP_HAS:
        return select_cost(e, at, n);
    case OP_INDEX:
        return index_cost(e, at, n);
    case OP_AND:
    case OP_OR:
        return costs_of_args(e, n);
    case OP_COND:
        return conditional_cost(e, at, n);
    case OP_LIST:
        return list_cost(e, at, n);
    case OP_MAP:
        return map_cost(e, at, n);
    case OP_CALL:
        return call_cost(e, at, n);
    case OP_OPT_MAP:
    case OP_OPT_FLATMAP:
        return optional_cost(e, at, n);
    case OP_SORT_BY:
        return sort_by_cost(e, at, n);
    case OP_ALL:
    case OP_EXISTS:
    case OP_EXISTS_ONE:
    case OP_FILTER:
    case OP_MAP_MACRO:
    case OP_TO_LIST:
    case OP_TO_MAP:
    case OP_TO_ENTRIES:
        return loop_cost(e, at, n);
    case OP_NOT:
    case OP_NEG:
    case OP_OPT_SELECT:
    case OP_OPT_INDEX:
        return plain_cost(e, at, n);
    default:
        return binary_cost(e, at, n);
    }
}

uint64_t bh_cel_estimate(const struct bh_cel_program *p, const struct bh_json *schema)
{
    struct estimate e = {.p = p, .schema = schema};

    bh_arena_init(&e.a, 0);
    e.node = bh_arena_new_array(&e.a, struct found, p->n_nodes + 1u);
    e.slot = bh_arena_new_array(&e.a, struct found, p->n_slots + 2u);
    memset(e.node, 0, p->n_nodes * sizeof(*e.node));
    memset(e.slot, 0, p->n_slots * sizeof(*e.slot));
    uint64_t cost = cost_of(&e, p->root);
    bh_arena_fini(&e.a);
    return cost;
}
