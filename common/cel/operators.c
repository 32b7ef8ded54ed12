/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/operators.c - arithmetic, comparison and membership
 *
 * Operands are values, not errors. Integers that overflow are errors, doubles follow IEEE 754.
 * Upstream: cel-go/common/types (int.go, uint.go, double.go, string.go, overflow.go).
 */
#include "common/cel/cel_int.h"

#include <math.h>

static struct cel_value no_overload(struct cel_eval *e)
{
    return bh_cel_error(e, "no such overload");
}

/* The first operand knows nothing of the operation. */
static struct cel_value unable(struct cel_eval *e, enum cel_op op)
{
    return bh_cel_error(e, "no such overload: %s", bh_cel_op_name[op]);
}

static struct cel_value int_arithmetic(struct cel_eval *e, enum cel_op op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool over = false;

    switch (op) {
    case OP_ADD:
        over = __builtin_add_overflow(a, b, &r);
        break;
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, &r);
        break;
    case OP_MUL:
        over = __builtin_mul_overflow(a, b, &r);
        break;
    default:
        if (b == 0)
            return bh_cel_error(e, op == OP_DIV ? "division by zero" : "modulus by zero");
        over = a == INT64_MIN && b == -1;
        if (!over)
            r = op == OP_DIV ? a / b : a % b;
    }
    return over ? bh_cel_error(e, "integer overflow") : cel_int(r);
}

static struct cel_value uint_arithmetic(struct cel_eval *e, enum cel_op op, uint64_t a, uint64_t b)
{
    uint64_t r = 0;
    bool over = false;

    switch (op) {
    case OP_ADD:
        over = __builtin_add_overflow(a, b, &r);
        break;
    case OP_SUB:
        over = __builtin_sub_overflow(a, b, &r);
        break;
    case OP_MUL:
        over = __builtin_mul_overflow(a, b, &r);
        break;
    default:
        if (b == 0)
            return bh_cel_error(e, op == OP_DIV ? "division by zero" : "modulus by zero");
        r = op == OP_DIV ? a / b : a % b;
    }
    if (over)
        return bh_cel_error(e, "unsigned integer overflow");
    return (struct cel_value){.kind = CEL_UINT, .u = r};
}

static struct cel_value double_arithmetic(struct cel_eval *e, enum cel_op op, double a, double b)
{
    double r;

    switch (op) {
    case OP_ADD:
        r = a + b;
        break;
    case OP_SUB:
        r = a - b;
        break;
    case OP_MUL:
        r = a * b;
        break;
    case OP_DIV:
        /* spelled out: dividing by zero is IEEE's business here, not undefined */
        r = b != 0                     ? a / b
            : a == 0 || a != a         ? (double)NAN
            : signbit(a) == signbit(b) ? (double)INFINITY
                                       : -(double)INFINITY;
        break;
    default:
        return unable(e, op);
    }
    return (struct cel_value){.kind = CEL_DOUBLE, .d = r};
}

static struct cel_value arithmetic(struct cel_eval *e, enum cel_op op, const struct cel_value *a,
                                   const struct cel_value *b)
{
    bool text = a->kind == CEL_STRING || a->kind == CEL_BYTES || a->kind == CEL_LIST;
    struct cel_value time = {.kind = cel_time_sum(op == OP_SUB, a->kind, b->kind)};

    if (time.kind != CEL_ERROR && (op == OP_ADD || op == OP_SUB)) {
        bool over = op == OP_ADD ? __builtin_add_overflow(a->i, b->i, &time.i)
                                 : __builtin_sub_overflow(a->i, b->i, &time.i);
        return over ? bh_cel_error(e, "integer overflow") : time;
    }
    if (text ? op != OP_ADD : a->kind != CEL_INT && a->kind != CEL_UINT && a->kind != CEL_DOUBLE)
        return unable(e, op);
    if (a->kind != b->kind)
        return no_overload(e);
    switch (a->kind) {
    case CEL_INT:
        return int_arithmetic(e, op, a->i, b->i);
    case CEL_UINT:
        return uint_arithmetic(e, op, a->u, b->u);
    case CEL_DOUBLE:
        return double_arithmetic(e, op, a->d, b->d);
    default: {
        /* What is copied is charged first: the limit bounds the memory, too. */
        size_t n = (size_t)a->n + b->n, size = a->kind == CEL_LIST ? sizeof(struct cel_value) : 1;
        struct cel_value v = {.kind = a->kind, .n = (uint32_t)n};
        if (!bh_cel_work(e, 1 + n * size / 16))
            return v;
        char *p = bh_arena_alloc(e->arena, n * size + 1);
        if (a->n)
            memcpy(p, a->s, a->n * size);
        if (b->n)
            memcpy(p + a->n * size, b->s, b->n * size);
        v.s = p;
        return v;
    }
    }
}

static bool is_text(const struct cel_type *t)
{
    return t->kind == CEL_STRING || t->kind == CEL_BYTES;
}

/* A constant list of scalars is a set upstream. */
static bool is_set(const struct cel_node *n)
{
    if (n->op != OP_CONST || n->type->kind != CEL_LIST)
        return false;
    for (uint32_t i = 0; i < n->value.n; i++) {
        uint32_t kind = n->value.list[i].kind;
        if (kind < CEL_BOOL || kind > CEL_STRING)
            return false;
    }
    return true;
}

/* A tenth of the shorter operand for what walks over it, one for the rest. Upstream knows only what
 * the checker found: an operand that is dyn leaves more than one overload and costs one. */
uint64_t bh_cel_binary_cost(struct cel_eval *e, const struct cel_node *n, const struct cel_value *a,
                            const struct cel_value *b)
{
    const struct cel_node *na = &e->prog->node[e->prog->arg[n->first]];
    const struct cel_node *nb = &e->prog->node[e->prog->arg[n->first + 1]];
    bool text = is_text(na->type) || is_text(nb->type);
    size_t size[2];

    if (n->op == OP_IN)
        return is_set(nb) ? 0 : nb->type->kind == CEL_LIST ? bh_cel_size_paid(e, b) : 1;
    size[0] = bh_cel_size_paid(e, a);
    size[1] = bh_cel_size_paid(e, b);
    switch (n->op) {
    case OP_EQ:
        if (a->kind == CEL_IP || a->kind == CEL_CIDR)
            return 1;
        return bh_cel_tenths((double)BH_MIN(size[0], size[1]));
    case OP_NE:
        return bh_cel_tenths((double)BH_MIN(size[0], size[1]));
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
        return text ? bh_cel_tenths((double)BH_MIN(size[0], size[1])) : 1;
    case OP_ADD:
        return text ? bh_cel_tenths((double)(size[0] + size[1])) : 1;
    default:
        return 1;
    }
}

struct cel_value bh_cel_binary(struct cel_eval *e, enum cel_op op, const struct cel_value *a,
                               const struct cel_value *b)
{
    switch (op) {
    case OP_EQ:
    case OP_NE:
        if (op == OP_EQ && bh_cel_no_equality(a, b))
            return no_overload(e);
        return cel_bool(bh_cel_equal(e, a, b) == (op == OP_EQ));
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE: {
        int c = bh_cel_compare_paid(e, a, b);
        if (!cel_in(a->kind, CEL_ORDERED))
            return unable(e, op);
        if (c == 2 && a->kind != CEL_DOUBLE && b->kind != CEL_DOUBLE)
            return no_overload(e);
        if (c == 2)
            return a->kind <= CEL_DOUBLE && b->kind <= CEL_DOUBLE && a->kind >= CEL_INT &&
                           b->kind >= CEL_INT
                       ? bh_cel_error(e, "NaN values cannot be ordered")
                       : no_overload(e);
        return cel_bool(op == OP_LT ? c < 0 : op == OP_LE ? c <= 0 : op == OP_GT ? c > 0 : c >= 0);
    }
    case OP_IN: {
        bool found = false;
        if (b->kind == CEL_MAP)
            return cel_bool(bh_cel_map_find(e, b->map, a) != NULL);
        if (b->kind != CEL_LIST)
            return no_overload(e);
        if (!bh_cel_work(e, b->n / 16))
            return cel_bool(false);
        for (uint32_t i = 0; i < b->n && !found && !e->exhausted; i++)
            found = bh_cel_equal(e, a, &b->list[i]);
        return cel_bool(found);
    }
    default:
        return arithmetic(e, op, a, b);
    }
}

struct cel_value bh_cel_negate(struct cel_eval *e, const struct cel_value *a)
{
    if (a->kind == CEL_DOUBLE)
        return (struct cel_value){.kind = CEL_DOUBLE, .d = -a->d};
    if (a->kind != CEL_INT)
        return no_overload(e);
    return a->i == INT64_MIN ? bh_cel_error(e, "integer overflow") : cel_int(-a->i);
}
