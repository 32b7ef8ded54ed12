/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/compile.c - a function's body: validated, and translated to instructions on slots
 *
 * One pass, as the specification's algorithm: a stack of operand types and one of labels. For
 * translation an operand also knows where its value is: in the slot of its place on the stack, in a
 * local that was not written since, or it is a constant. So local.get and constants are no
 * instructions; the operation that takes them names the local, or has the constant in itself.
 *
 * Where paths meet, values have to be in one place. So all of them go to their slots before a block
 * begins, and a branch's results to those of the label. Reading a local late is safe because a
 * write to it first moves the operands that still mean its old value (they are chained).
 *
 * Every loop here is bounded by the bytes that are read: an operand is moved to its slot once, and
 * functions have few results.
 */
#include "common/wasm/wasm_int.h"
#include <errno.h>

#define MAX_LABELS 65535u
#define ANY        0 /* the type of an operand after code that is never reached */

enum place { IN_SLOT, IN_LOCAL, IS_CONSTANT };
struct operand {
    uint8_t type;
    uint8_t place;
    uint16_t local;
    uint32_t below; /* the next one below of the same local, + 1 */
    uint64_t value;
};
struct label {
    uint8_t opcode;   /* block, loop, if, else; 0 for the function */
    bool dead_before; /* began where nothing gets to */
    bool unreachable; /* nothing gets to where we are */
    uint32_t height;  /* operands below its parameters */
    uint32_t begin;   /* a loop's first instruction */
    uint32_t jumps;   /* to its end: chained in `to`, + 1 */
    uint32_t to_else; /* the jump over the first half of an if, + 1 */
    const struct func_type *type;
};
struct run_of_locals {
    uint32_t until;
    uint8_t type;
};
struct compiler {
    struct bh_wasm_module *m;
    struct reader *r;
    const void *const *labels_of_run;
    const uint8_t *at; /* the instruction that is read */
    uint8_t opcode;
    const struct func_type *type;
    struct run_of_locals *locals;
    struct operand *operands;
    struct label *labels;
    uint32_t n_runs, cap_runs, n_locals;
    uint32_t n_operands, cap_operands, deepest;
    uint32_t n_labels, cap_labels;
    uint32_t in_slots; /* so many operands from the bottom are in their slots */
    uint32_t last;     /* the instruction that made the top operand and may still be changed */
    uint16_t last_op;
    uint32_t newest[MAX_SLOTS];     /* by local: the topmost operand that is it, + 1 */
    struct func_type one_result[6]; /* types of blocks, as in one_type */
};

static const uint8_t one_type[] = {I32, I64, F32, F64, FUNCREF, EXTERNREF};

struct compiler *bh_wasm_compiler_new(struct bh_wasm_module *m)
{
    struct compiler *c = bh_calloc(1, sizeof *c);

    c->m = m;
    bh_wasm_run(NULL, 0, &c->labels_of_run);
    for (unsigned i = 0; i < BH_ARRAY_LEN(one_type); i++)
        c->one_result[i] = (struct func_type){.v = &one_type[i], .results = 1};
    return c;
}

void bh_wasm_compiler_free(struct compiler *c)
{
    free(c->locals);
    free(c->operands);
    free(c->labels);
    free(c);
}

static void bad(struct compiler *c, const char *what)
{
    bh_wasm_bad(c->r, -EINVAL, c->at, "%s", what);
}

static struct label *innermost(struct compiler *c)
{
    return &c->labels[c->n_labels - 1];
}

static bool dead(struct compiler *c)
{
    return innermost(c)->unreachable || innermost(c)->dead_before;
}

/* ---- instructions ------------------------------------------------------------------------------ */
/* The slot of the operand at that height. */
static uint16_t slot(const struct compiler *c, uint32_t height)
{
    return (uint16_t)(c->n_locals + height);
}

static struct ins *emit(struct compiler *c, unsigned op, uint16_t d, uint16_t a, uint32_t k)
{
    struct bh_wasm_module *m = c->m;

    BH_GROW(m->code, m->n_code, m->cap_code);
    if (m->n_code >= MAX_INSTRUCTIONS)
        bh_wasm_bad(c->r, -EFBIG, c->at, "the module is too large: more than %u instructions",
                    MAX_INSTRUCTIONS);
    m->n_code = BH_MIN(m->n_code, MAX_INSTRUCTIONS);
    c->last = NONE;
    m->code[m->n_code] = (struct ins){.run = c->labels_of_run[op], .d = d, .a = a, .k = k};
    return &m->code[m->n_code++];
}

static void emit_constant(struct compiler *c, uint16_t d, uint64_t v)
{
    if (v <= UINT32_MAX)
        emit(c, OP_CONST_U, d, 0, (uint32_t)v);
    else if ((int64_t)v == (int32_t)v)
        emit(c, OP_CONST_S, d, 0, (uint32_t)v);
    else {
        emit(c, OP_CONST_WIDE, d, 0, 0);
        emit(c, 0, 0, 0, 0)->wide = v;
    }
}

static void land_here(struct compiler *c, uint32_t jumps)
{
    while (jumps) {
        struct ins *i = &c->m->code[jumps - 1];
        uint32_t next = i->k;
        i->to = (int32_t)(c->m->n_code - (jumps - 1));
        jumps = next;
    }
    c->last = NONE;
}

/* The instruction at `from` jumps to that label. */
static void aim(struct compiler *c, uint32_t from, struct label *to)
{
    struct ins *i = &c->m->code[from];

    if (to->opcode == 0x03) {
        i->to = (int32_t)to->begin - (int32_t)from;
    } else {
        i->k = to->jumps;
        to->jumps = from + 1;
    }
}

/* ---- operands ---------------------------------------------------------------------------------- */
static void push_operand(struct compiler *c, struct operand o)
{
    if (c->n_locals + c->n_operands >= MAX_SLOTS) {
        bh_wasm_bad(c->r, -EFBIG, c->at, "more than %u locals and operands", MAX_SLOTS);
        return;
    }
    if (dead(c))
        o.place = IN_SLOT;
    if (o.place == IN_LOCAL) {
        o.below = c->newest[o.local];
        c->newest[o.local] = c->n_operands + 1;
    }
    BH_GROW(c->operands, c->n_operands, c->cap_operands);
    c->operands[c->n_operands++] = o;
    c->deepest = BH_MAX(c->deepest, c->n_operands);
}

static void push(struct compiler *c, uint8_t type)
{
    push_operand(c, (struct operand){.type = type, .place = IN_SLOT});
}

static void push_types(struct compiler *c, const uint8_t *types, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        push(c, types[i]);
}

static void push_constant(struct compiler *c, uint8_t type, uint64_t v)
{
    push_operand(c, (struct operand){.type = type, .place = IS_CONSTANT, .value = v});
}

/* Its local may be written from now on. */
static void forget_local(struct compiler *c, struct operand *o)
{
    if (o->place == IN_LOCAL)
        c->newest[o->local] = o->below;
}

static struct operand take(struct compiler *c)
{
    struct operand o = c->operands[--c->n_operands];

    forget_local(c, &o);
    c->in_slots = BH_MIN(c->in_slots, c->n_operands);
    return o;
}

/* The operand above the stack's top now; its slot is slot(c, c->n_operands). */
static struct operand pop(struct compiler *c, uint8_t type)
{
    struct label *l = innermost(c);
    struct operand o = {.type = ANY, .place = IN_SLOT};

    if (c->n_operands > l->height)
        o = take(c);
    else if (!l->unreachable)
        bh_wasm_bad(c->r, -EINVAL, c->at,
                    "type mismatch: opcode 0x%02x expects %s, the stack is empty", c->opcode,
                    bh_wasm_type_name(type));
    if (o.type != type && o.type != ANY && type != ANY)
        bh_wasm_bad(c->r, -EINVAL, c->at, "type mismatch: opcode 0x%02x expects %s, found %s",
                    c->opcode, bh_wasm_type_name(type), bh_wasm_type_name(o.type));
    return o;
}

static void pop_types(struct compiler *c, const uint8_t *types, uint32_t n)
{
    while (n-- && !c->r->rc)
        pop(c, types[n]);
}

/* The value of an operand at that height goes to a slot. */
static void move(struct compiler *c, const struct operand *o, uint32_t height, uint16_t to)
{
    if (o->place == IS_CONSTANT)
        emit_constant(c, to, o->value);
    else if (o->place == IN_LOCAL)
        emit(c, OP_COPY, to, o->local, 0);
    else if (slot(c, height) != to)
        emit(c, OP_COPY, to, slot(c, height), 0);
}

/* The operands from that height on to their slots, the top one first: chains are in order then. */
static void settle(struct compiler *c, uint32_t from)
{
    if (c->r->rc || dead(c))
        return;
    for (uint32_t i = c->n_operands; i-- > BH_MAX(from, c->in_slots);) {
        struct operand *o = &c->operands[i];
        if (o->place == IN_SLOT)
            continue;
        forget_local(c, o);
        move(c, o, i, slot(c, i));
        o->place = IN_SLOT;
    }
    if (from <= c->in_slots)
        c->in_slots = c->n_operands;
}

/* The slot that has a popped operand's value. */
static uint16_t value_of(struct compiler *c, const struct operand *o, uint32_t height)
{
    if (o->place == IN_LOCAL)
        return o->local;
    if (o->place == IS_CONSTANT)
        emit_constant(c, slot(c, height), o->value);
    return slot(c, height);
}

/* An operation on popped operands, whose result goes to the top; its instruction may be changed. */
static void emit_result(struct compiler *c, unsigned op, uint16_t a, uint32_t k, uint8_t type)
{
    if (!dead(c) && !c->r->rc) {
        emit(c, op, slot(c, c->n_operands), a, k);
        c->last = c->m->n_code - 1;
        c->last_op = (uint16_t)op;
    }
    push(c, type);
}

static bool made_by_last(const struct compiler *c, const struct operand *o, uint32_t height)
{
    return o->place == IN_SLOT && c->last != NONE && c->last == c->m->n_code - 1 &&
           c->m->code[c->last].d == slot(c, height);
}

/* ---- jumps ------------------------------------------------------------------------------------- */
static bool is_compare(unsigned op)
{
    return (op >= 0x46 && op <= 0x4f) || (op >= 0x51 && op <= 0x5a);
}

static unsigned opposite(unsigned op)
{
    /* of eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u */
    static const uint8_t other[] = {1, 0, 8, 9, 6, 7, 4, 5, 2, 3};
    unsigned first = op < 0x51 ? 0x46 : 0x51;

    return first + other[op - first];
}

/* A jump to be: taken when a popped condition holds, or does not. */
struct test {
    unsigned op;
    uint16_t d, a;
};

/* Takes back the comparison that made the condition, if it can be part of the jump. What it
 * compares stays good: only slots below are written before the jump. */
static struct test test_of(struct compiler *c, const struct operand *o, bool holds)
{
    if (made_by_last(c, o, c->n_operands)) {
        struct ins i = c->m->code[c->last];
        unsigned op = c->last_op & 0xff, form = c->last_op & ~0xffu;
        bool compare = is_compare(op) && (form == 0 || (int32_t)i.k == (int16_t)i.k);
        if (compare || ((op == 0x45 || op == 0x50) && form == 0)) {
            c->m->n_code--;
            c->last = NONE;
        }
        if (compare)
            return (struct test){(form ? COMPARE_JUMP_K : COMPARE_JUMP) +
                                     (holds ? op : opposite(op)),
                                 i.a, form ? (uint16_t)i.k : i.b};
        if (op == 0x45 && form == 0)
            return (struct test){holds ? OP_JUMP_UNLESS : OP_JUMP_IF, i.a, 0};
        if (op == 0x50 && form == 0) /* i64.eqz: a comparison with 0 */
            return (struct test){COMPARE_JUMP_K + (holds ? 0x51 : 0x52), i.a, 0};
    }
    return (struct test){holds ? OP_JUMP_IF : OP_JUMP_UNLESS, value_of(c, o, c->n_operands), 0};
}

static uint32_t emit_test(struct compiler *c, struct test t)
{
    emit(c, t.op, t.d, t.a, 0);
    return c->m->n_code - 1;
}

static const uint8_t *label_types(const struct label *l, uint32_t *ret_n)
{
    bool loop = l->opcode == 0x03;

    *ret_n = loop ? l->type->params : l->type->results;
    return loop ? l->type->v : l->type->v + l->type->params;
}

static struct label *read_label(struct compiler *c)
{
    uint32_t depth = bh_wasm_u32(c->r);

    if (depth >= c->n_labels) {
        bh_wasm_bad(c->r, -EINVAL, c->at, "unknown label %u: there are %u", depth, c->n_labels);
        return &c->labels[0];
    }
    return &c->labels[c->n_labels - 1 - depth];
}

/* The values that a label takes are on the top, and stay. */
static void need_values(struct compiler *c, const struct label *to, bool retype)
{
    uint32_t n;
    const uint8_t *types = label_types(to, &n);
    const struct label *l = innermost(c);

    if (dead(c) && retype) { /* the specification's way; here nothing has a place */
        pop_types(c, types, n);
        push_types(c, types, n);
        return;
    }
    for (uint32_t i = 0; i < n && !c->r->rc; i++) {
        uint8_t found = ANY;
        if (c->n_operands - l->height > i)
            found = c->operands[c->n_operands - 1 - i].type;
        else if (!l->unreachable)
            bad(c, "type mismatch: the label takes more values than there are");
        if (found != ANY && found != types[n - 1 - i])
            bh_wasm_bad(c->r, -EINVAL, c->at, "type mismatch: the label takes %s, found %s",
                        bh_wasm_type_name(types[n - 1 - i]), bh_wasm_type_name(found));
    }
}

static void emit_return(struct compiler *c)
{
    uint32_t n = c->type->results, from = c->n_operands - n;

    if (n == 0) {
        emit(c, OP_RETURN, 0, 0, 0);
    } else if (n == 1) {
        struct operand o = c->operands[from];
        uint16_t a = value_of(c, &o, from);
        emit(c, OP_RETURN_ONE, 0, a, 0);
    } else {
        settle(c, from);
        emit(c, OP_RETURN_MANY, 0, slot(c, from), n);
    }
}

/* Values to the label's slots, and the jump. */
static void emit_jump(struct compiler *c, struct label *to)
{
    uint32_t n, from;

    if (to->opcode == 0) {
        emit_return(c);
        return;
    }
    label_types(to, &n);
    from = c->n_operands - n;
    if (n > 1) {
        settle(c, from);
        if (from != to->height)
            emit(c, OP_COPY_MANY, slot(c, to->height), slot(c, from), n);
    } else if (n == 1) {
        struct operand o = c->operands[from];
        move(c, &o, from, slot(c, to->height));
    }
    emit(c, OP_JUMP, 0, 0, 0);
    aim(c, c->m->n_code - 1, to);
}

static void end_of_path(struct compiler *c)
{
    while (c->n_operands > innermost(c)->height)
        take(c);
    innermost(c)->unreachable = true;
}

static void branch(struct compiler *c)
{
    struct label *to = read_label(c);

    need_values(c, to, false);
    if (!c->r->rc && !dead(c))
        emit_jump(c, to);
    end_of_path(c);
}

static void branch_if(struct compiler *c)
{
    struct label *to = read_label(c);
    struct operand cond = pop(c, I32);

    need_values(c, to, true);
    if (c->r->rc || dead(c))
        return;
    uint32_t n;
    label_types(to, &n);
    if (to->opcode != 0 && (n == 0 || c->n_operands - n == to->height)) {
        struct test t = test_of(c, &cond, true);
        settle(c, c->n_operands - n);
        aim(c, emit_test(c, t), to);
        return;
    }
    struct test t = test_of(c, &cond, false);
    uint32_t over = emit_test(c, t);
    emit_jump(c, to);
    c->m->code[over].to = (int32_t)(c->m->n_code - over);
    c->last = NONE;
}

/* The labels of a br_table, without code: how many values they take. */
static uint32_t check_table(struct compiler *c, uint32_t n)
{
    uint32_t arity = 0;

    for (uint32_t i = 0; i <= n && !c->r->rc; i++) {
        struct label *to = read_label(c);
        uint32_t takes;
        label_types(to, &takes);
        if (i && takes != arity)
            bad(c, "type mismatch: the labels of br_table take different numbers of values");
        arity = takes;
        need_values(c, to, false);
    }
    return arity;
}

static void branch_table(struct compiler *c)
{
    uint32_t n = bh_wasm_count(c->r, UINT32_MAX, "labels");
    struct operand index = pop(c, I32);
    const uint8_t *labels = c->r->p;
    uint32_t arity = check_table(c, n);

    if (!c->r->rc && !dead(c)) {
        uint16_t a = value_of(c, &index, c->n_operands);
        settle(c, c->n_operands - arity);
        emit(c, OP_JUMP_TABLE, 0, a, n);
        uint32_t rows = c->m->n_code;
        for (uint32_t i = 0; i <= n && !c->r->rc; i++)
            emit(c, OP_UNREACHABLE, 0, 0, 0);
        c->r->p = c->r->rc ? c->r->end : labels;
        for (uint32_t i = 0; i <= n && !c->r->rc; i++) {
            struct label *to = read_label(c);
            if (to->opcode != 0 && (arity == 0 || c->n_operands - arity == to->height)) {
                aim(c, rows + i, to);
            } else {
                c->m->code[rows + i].to = (int32_t)(c->m->n_code - (rows + i));
                emit_jump(c, to);
            }
        }
    }
    end_of_path(c);
}

/* ---- blocks ------------------------------------------------------------------------------------ */
static const struct func_type *block_type(struct compiler *c)
{
    static const struct func_type none = {.v = one_type};
    const uint8_t *at = c->r->p;

    if (at < c->r->end && *at == 0x40) {
        c->r->p++;
        return &none;
    }
    if (at<c->r->end && * at> 0x40 && *at < 0x80) { /* negative: a type */
        uint8_t type = bh_wasm_type(c->r);
        const uint8_t *p = memchr(one_type, type, sizeof one_type);
        if (type < F64)
            c->m->features |= REFERENCES;
        return c->one_result + (p - one_type);
    }
    int64_t i = bh_wasm_leb(c->r, 33);
    if (c->r->rc)
        return &none;
    if (i < 0 || i >= c->m->n_types) {
        bad(c, "unknown type of a block");
        return &none;
    }
    c->m->features |= MULTI_VALUE;
    return &c->m->types[i];
}

static void begin_block(struct compiler *c, uint8_t opcode)
{
    struct label l = {.opcode = opcode, .dead_before = dead(c), .type = block_type(c)};
    struct test t = {0};

    if (opcode == 0x04) {
        struct operand cond = pop(c, I32);
        if (!l.dead_before && !c->r->rc)
            t = test_of(c, &cond, false);
    }
    settle(c, 0);
    pop_types(c, l.type->v, l.type->params);
    l.height = c->n_operands;
    if (c->n_labels == MAX_LABELS)
        bh_wasm_bad(c->r, -EFBIG, c->at, "more than %u blocks in each other", MAX_LABELS);
    if (c->r->rc)
        return;
    if (opcode == 0x04 && !l.dead_before)
        l.to_else = emit_test(c, t) + 1;
    if (opcode == 0x03)
        c->last = NONE;
    l.begin = c->m->n_code;
    BH_GROW(c->labels, c->n_labels, c->cap_labels);
    c->labels[c->n_labels++] = l;
    push_types(c, l.type->v, l.type->params);
}

/* What a block leaves is on the stack, and nothing else of it; gone from the stack afterwards. */
static void leave_block(struct compiler *c)
{
    struct label *l = innermost(c);
    uint32_t n = l->type->results;

    if (!dead(c)) {
        if (c->n_operands != l->height + n)
            bh_wasm_bad(c->r, -EINVAL, c->at,
                        "type mismatch: a block ends with %u values, it has to have %u",
                        c->n_operands - l->height, n);
        if (c->r->rc)
            return;
        if (l->opcode == 0)
            emit_return(c);
        else
            settle(c, l->height);
    }
    pop_types(c, l->type->v + l->type->params, n);
    if (!c->r->rc && c->n_operands != l->height)
        bad(c, "type mismatch: a block ends with values left");
}

static void otherwise(struct compiler *c)
{
    struct label *l = innermost(c);
    bool reached = !dead(c);

    if (l->opcode != 0x04) {
        bad(c, "else without if");
        return;
    }
    leave_block(c);
    if (c->r->rc)
        return;
    if (reached) {
        emit(c, OP_JUMP, 0, 0, 0);
        aim(c, c->m->n_code - 1, l);
    }
    land_here(c, l->to_else);
    l->to_else = 0;
    l->opcode = 0x05;
    l->unreachable = false;
    push_types(c, l->type->v, l->type->params);
}

static void end_block(struct compiler *c)
{
    struct label l;

    leave_block(c);
    if (c->r->rc)
        return;
    l = *innermost(c);
    if (l.opcode == 0x04 && (l.type->params != l.type->results ||
                             memcmp(l.type->v, l.type->v + l.type->params, l.type->params) != 0))
        bad(c, "type mismatch: an if without else has to leave what it takes");
    c->n_labels--;
    if (!c->n_labels)
        return;
    land_here(c, l.to_else);
    land_here(c, l.jumps);
    push_types(c, l.type->v + l.type->params, l.type->results);
}

/* ---- calls, variables --------------------------------------------------------------------------- */
/* The n on the top, if there are so many, to their slots: arguments stand in a row. */
static void settle_top(struct compiler *c, uint32_t n)
{
    if (c->n_operands - innermost(c)->height >= n)
        settle(c, c->n_operands - n);
}

static void emit_here(struct compiler *c, unsigned op, uint16_t a, uint32_t k)
{
    if (!dead(c) && !c->r->rc)
        emit(c, op, slot(c, c->n_operands), a, k);
}

static void call_type(struct compiler *c, const struct func_type *t)
{
    settle_top(c, t->params);
    pop_types(c, t->v, t->params);
}

static uint32_t index_below(struct compiler *c, uint32_t n, const char *what)
{
    uint32_t i = bh_wasm_u32(c->r);

    if (!c->r->rc && i >= n)
        bh_wasm_bad(c->r, -EINVAL, c->at, "unknown %s %u: there are %u", what, i, n);
    return i;
}

static void call(struct compiler *c)
{
    uint32_t f = index_below(c, c->m->n_funcs, "function");

    if (c->r->rc)
        return;
    const struct func_type *t = &c->m->types[c->m->funcs[f].type];
    call_type(c, t);
    emit_here(c, f < c->m->n_imported_funcs ? OP_CALL_HOST : OP_CALL, 0, f);
    push_types(c, t->v + t->params, t->results);
}

static void call_indirect(struct compiler *c)
{
    uint32_t i = index_below(c, c->m->n_types, "type"), a = 0;
    uint32_t table = index_below(c, c->m->n_tables, "table");
    struct operand index = pop(c, I32);

    if (c->r->rc)
        return;
    if (!dead(c))
        a = value_of(c, &index, c->n_operands);
    const struct func_type *t = &c->m->types[i];
    call_type(c, t);
    emit_here(c, OP_CALL_INDIRECT, (uint16_t)a, t->id);
    emit_here(c, OP_UNREACHABLE, 0, table); /* never run: says the table, and d to the return */
    push_types(c, t->v + t->params, t->results);
}

static uint8_t type_of_local(struct compiler *c, uint32_t x)
{
    uint32_t low = 0, high = c->n_runs;

    if (x < c->type->params)
        return c->type->v[x];
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (x < c->locals[middle].until)
            high = middle;
        else
            low = middle + 1;
    }
    return c->locals[low].type;
}

static void push_local(struct compiler *c, uint32_t x, uint8_t type)
{
    push_operand(c, (struct operand){.type = type, .place = IN_LOCAL, .local = (uint16_t)x});
}

static void local_get(struct compiler *c)
{
    uint32_t x = index_below(c, c->n_locals, "local");

    if (!c->r->rc)
        push_local(c, x, type_of_local(c, x));
}

static void local_set(struct compiler *c, bool tee)
{
    uint32_t x = index_below(c, c->n_locals, "local"), next;

    if (c->r->rc)
        return;
    uint8_t type = type_of_local(c, x);
    struct operand o = pop(c, type);
    if (!dead(c) && !c->r->rc) {
        bool made = made_by_last(c, &o, c->n_operands);
        for (; c->newest[x]; c->newest[x] = next) { /* operands that mean its value until now */
            struct operand *old = &c->operands[c->newest[x] - 1];
            next = old->below;
            move(c, old, c->newest[x] - 1, slot(c, c->newest[x] - 1));
            old->place = IN_SLOT;
        }
        if (made && c->last != NONE)
            c->m->code[c->last].d = (uint16_t)x;
        else if (o.place != IN_LOCAL || o.local != x)
            move(c, &o, c->n_operands, (uint16_t)x);
        c->last = NONE;
    }
    if (tee)
        push_local(c, x, type);
}

static void global(struct compiler *c, bool set)
{
    uint32_t x = index_below(c, c->m->n_globals, "global");

    if (c->r->rc)
        return;
    const struct global *g = &c->m->globals[x];
    if (!set) {
        emit_result(c, OP_GLOBAL_GET, 0, x, g->type);
        return;
    }
    struct operand o = pop(c, g->type);
    if (!g->mutable)
        bad(c, "the global is immutable");
    if (!dead(c) && !c->r->rc)
        emit(c, OP_GLOBAL_SET, 0, value_of(c, &o, c->n_operands), x);
}

static void select_one(struct compiler *c, uint8_t type)
{
    struct operand cond = pop(c, I32), b = pop(c, type), a = pop(c, type);

    if (type == ANY) {
        type = a.type != ANY ? a.type : b.type;
        if ((a.type != ANY && b.type != ANY && a.type != b.type) || type == FUNCREF ||
            type == EXTERNREF)
            bad(c, "type mismatch: select needs two numbers of one type");
    }
    uint32_t at = c->n_operands, k = 0;
    uint16_t first = 0;
    if (!dead(c) && !c->r->rc) {
        first = value_of(c, &a, at);
        k = value_of(c, &b, at + 1);
        k |= (uint32_t)value_of(c, &cond, at + 2) << 16;
    }
    emit_result(c, OP_SELECT, first, k, type);
}

static void select_typed(struct compiler *c)
{
    uint32_t n = bh_wasm_u32(c->r);
    uint8_t type = bh_wasm_type(c->r);

    c->m->features |= REFERENCES;
    if (n != 1)
        bad(c, "invalid result arity: select has one result");
    if (!c->r->rc)
        select_one(c, type);
}

/* ---- numbers and memory -------------------------------------------------------------------------- */
struct signature {
    uint8_t in, out, operands;
};
/* clang-format off */
static const struct signature numeric[256] = {
    [0x45] = {I32, I32, 1}, [0x46 ... 0x4f] = {I32, I32, 2},
    [0x50] = {I64, I32, 1}, [0x51 ... 0x5a] = {I64, I32, 2},
    [0x5b ... 0x60] = {F32, I32, 2}, [0x61 ... 0x66] = {F64, I32, 2},
    [0x67 ... 0x69] = {I32, I32, 1}, [0x6a ... 0x78] = {I32, I32, 2},
    [0x79 ... 0x7b] = {I64, I64, 1}, [0x7c ... 0x8a] = {I64, I64, 2},
    [0x8b ... 0x91] = {F32, F32, 1}, [0x92 ... 0x98] = {F32, F32, 2},
    [0x99 ... 0x9f] = {F64, F64, 1}, [0xa0 ... 0xa6] = {F64, F64, 2},
    [0xa7] = {I64, I32, 1}, [0xa8 ... 0xa9] = {F32, I32, 1}, [0xaa ... 0xab] = {F64, I32, 1},
    [0xac ... 0xad] = {I32, I64, 1}, [0xae ... 0xaf] = {F32, I64, 1}, [0xb0 ... 0xb1] = {F64, I64, 1},
    [0xb2 ... 0xb3] = {I32, F32, 1}, [0xb4 ... 0xb5] = {I64, F32, 1}, [0xb6] = {F64, F32, 1},
    [0xb7 ... 0xb8] = {I32, F64, 1}, [0xb9 ... 0xba] = {I64, F64, 1}, [0xbb] = {F32, F64, 1},
    [0xbc] = {F32, I32, 1}, [0xbd] = {F64, I64, 1}, [0xbe] = {I32, F32, 1}, [0xbf] = {I64, F64, 1},
    [0xc0 ... 0xc1] = {I32, I32, 1}, [0xc2 ... 0xc4] = {I64, I64, 1},
    [SATURATE ... SATURATE + 1] = {F32, I32, 1}, [SATURATE + 2 ... SATURATE + 3] = {F64, I32, 1},
    [SATURATE + 4 ... SATURATE + 5] = {F32, I64, 1}, [SATURATE + 6 ... SATURATE + 7] = {F64, I64, 1},
};
/* Loads and stores from 0x28 on: type, and the alignment there may be at most. */
static const struct { uint8_t type, align; } access[] = {
    {I32, 2}, {I64, 3}, {F32, 2}, {F64, 3},
    {I32, 0}, {I32, 0}, {I32, 1}, {I32, 1}, {I64, 0}, {I64, 0}, {I64, 1}, {I64, 1}, {I64, 2}, {I64, 2},
    {I32, 2}, {I64, 3}, {F32, 2}, {F64, 3}, {I32, 0}, {I32, 1}, {I64, 0}, {I64, 1}, {I64, 2},
};
/* clang-format on */

static void binary(struct compiler *c, uint8_t op, const struct signature *s)
{
    struct operand b = pop(c, s->in), a = pop(c, s->in);
    bool integers = s->in == I32 || s->in == I64;
    uint32_t at = c->n_operands, k = 0;
    unsigned form = 0;
    uint16_t first = 0;

    if (!dead(c) && !c->r->rc) {
        int64_t v = s->in == I32 ? (int32_t)b.value : (int64_t)b.value;
        first = value_of(c, &a, at);
        if (integers && b.place == IS_CONSTANT && v == (int32_t)v) {
            form = WITH_K;
            k = (uint32_t)v;
        } else {
            k = value_of(c, &b, at + 1);
        }
    }
    emit_result(c, op + form, first, k, s->out);
}

static void unary(struct compiler *c, uint8_t op, const struct signature *s)
{
    struct operand o = pop(c, s->in);

    if ((op >= 0xbc && op <= 0xbf) || op == 0xad) { /* the same bits in a slot */
        o.type = s->out;
        push_operand(c, o);
    } else {
        uint16_t a = dead(c) || c->r->rc ? 0 : value_of(c, &o, c->n_operands);
        emit_result(c, op, a, 0, s->out);
    }
}

static void numbers(struct compiler *c, uint8_t op)
{
    const struct signature *s = &numeric[op];

    if (op >= 0xc0 && op <= 0xc4)
        c->m->features |= SIGN_EXTENSION;
    if (s->operands == 2)
        binary(c, op, s);
    else
        unary(c, op, s);
}

static void need_memory(struct compiler *c)
{
    if (!c->m->n_memories)
        bad(c, "unknown memory 0: there is none");
}

static void load_or_store(struct compiler *c, uint8_t op)
{
    uint8_t type = access[op - 0x28].type;
    uint32_t align = bh_wasm_u32(c->r), offset;

    need_memory(c);
    if (align & 0x40)
        bad(c, "multiple memories are not supported");
    else if (align > access[op - 0x28].align)
        bad(c, "alignment must not be larger than natural");
    offset = bh_wasm_u32(c->r);
    if (op < 0x36) {
        struct operand at = pop(c, I32);
        uint16_t a = dead(c) || c->r->rc ? 0 : value_of(c, &at, c->n_operands);
        emit_result(c, op, a, offset, type);
        return;
    }
    struct operand v = pop(c, type), at = pop(c, I32);
    if (dead(c) || c->r->rc)
        return;
    uint16_t d = value_of(c, &at, c->n_operands), a = value_of(c, &v, c->n_operands + 1);
    emit(c, op, d, a, offset);
}

static void zero_byte(struct compiler *c)
{
    if (bh_wasm_u8(c->r) != 0)
        bad(c, "multiple memories are not supported");
}

static void memory_size(struct compiler *c, bool grow)
{
    struct operand o = {0};

    zero_byte(c);
    need_memory(c);
    if (grow)
        o = pop(c, I32);
    uint16_t a = grow && !dead(c) && !c->r->rc ? value_of(c, &o, c->n_operands) : 0;
    emit_result(c, grow ? OP_MEMORY_GROW : OP_MEMORY_SIZE, a, 0, I32);
}

/* Three operands in a row, the first at d. */
static void bulk(struct compiler *c, unsigned op, uint16_t a, uint32_t k, uint8_t second)
{
    const uint8_t types[] = {I32, second, I32};

    settle_top(c, 3);
    pop_types(c, types, 3);
    emit_here(c, op, a, k);
}

static void memory_or_table(struct compiler *c, uint32_t op)
{
    uint32_t x, y;

    switch (op) {
    case 8: /* memory.init */
    case 9: /* data.drop */
        if (c->m->said_datas == NONE)
            bad(c, "data count section required");
        x = index_below(c, c->m->said_datas, "data segment");
        if (op == 9) {
            emit_here(c, OP_DATA_DROP, 0, x);
            break;
        }
        zero_byte(c);
        need_memory(c);
        bulk(c, OP_MEMORY_INIT, 0, x, I32);
        break;
    case 10: /* memory.copy */
        zero_byte(c);
        zero_byte(c);
        need_memory(c);
        bulk(c, OP_MEMORY_COPY, 0, 0, I32);
        break;
    case 11: /* memory.fill */
        zero_byte(c);
        need_memory(c);
        bulk(c, OP_MEMORY_FILL, 0, 0, I32);
        break;
    case 12: /* table.init */
        x = index_below(c, c->m->n_elems, "element segment");
        y = index_below(c, c->m->n_tables, "table");
        if (!c->r->rc && c->m->elems[x].type != FUNCREF)
            bad(c, "type mismatch: the table holds funcref, the segment does not");
        bulk(c, OP_TABLE_INIT, (uint16_t)y, x, I32);
        break;
    case 13: /* elem.drop */
        x = index_below(c, c->m->n_elems, "element segment");
        emit_here(c, OP_ELEM_DROP, 0, x);
        break;
    default: /* table.copy */
        x = index_below(c, c->m->n_tables, "table");
        y = index_below(c, c->m->n_tables, "table");
        bulk(c, OP_TABLE_COPY, (uint16_t)x, y, I32);
    }
    c->m->features |= BULK;
}

/* ---- references ---------------------------------------------------------------------------------- */
static void table_access(struct compiler *c, bool set)
{
    uint32_t table = index_below(c, c->m->n_tables, "table");
    struct operand v = {0}, i;

    if (set)
        v = pop(c, FUNCREF);
    i = pop(c, I32);
    bool here = !dead(c) && !c->r->rc;
    uint16_t a = here ? value_of(c, &i, c->n_operands) : 0;
    if (!set)
        emit_result(c, OP_TABLE_GET, a, table, FUNCREF);
    else if (here)
        emit(c, OP_TABLE_SET, a, value_of(c, &v, c->n_operands + 1), table);
    c->m->features |= REFERENCES;
}

static void table_more(struct compiler *c, uint32_t op)
{
    static const uint8_t grow[] = {FUNCREF, I32};
    uint32_t table = index_below(c, c->m->n_tables, "table");

    if (op == 15) {
        settle_top(c, 2);
        pop_types(c, grow, 2);
        emit_here(c, OP_TABLE_GROW, 0, table);
        push(c, I32);
    } else if (op == 16) {
        emit_result(c, OP_TABLE_SIZE, 0, table, I32);
    } else {
        bulk(c, OP_TABLE_FILL, 0, table, FUNCREF);
    }
    c->m->features |= REFERENCES;
}

static void reference(struct compiler *c, uint8_t op)
{
    c->m->features |= REFERENCES;
    if (op == 0xd0) {
        uint8_t type = bh_wasm_type(c->r);
        if (type != FUNCREF && type != EXTERNREF)
            bad(c, "ref.null needs the type of a reference");
        push_constant(c, type, 0);
    } else if (op == 0xd1) { /* ref.is_null: is the slot zero, as i64.eqz */
        struct operand o = pop(c, ANY);
        if (o.type != ANY && o.type != FUNCREF && o.type != EXTERNREF)
            bad(c, "type mismatch: ref.is_null expects a reference");
        uint16_t a = dead(c) || c->r->rc ? 0 : value_of(c, &o, c->n_operands);
        emit_result(c, 0x50, a, 0, I32);
    } else {
        uint32_t f = index_below(c, c->m->n_funcs, "function");
        if (!c->r->rc && !c->m->funcs[f].declared)
            bad(c, "undeclared function reference");
        push_constant(c, FUNCREF, (uint64_t)f + 1);
    }
}

/* ---- instructions -------------------------------------------------------------------------------- */
static void prefixed(struct compiler *c)
{
    uint32_t op = bh_wasm_u32(c->r);

    if (op < 8) {
        c->m->features |= SATURATING;
        numbers(c, (uint8_t)(SATURATE + op));
    } else if (op < 15) {
        memory_or_table(c, op);
    } else if (op < 18) {
        table_more(c, op);
    } else {
        bh_wasm_bad(c->r, -EINVAL, c->at, "opcode 0xfc 0x%02x is not known", op);
    }
}

static void unknown(struct compiler *c, uint8_t op)
{
    const char *what = NULL;

    if ((op >= 0x06 && op <= 0x0a) || op == 0x18 || op == 0x19 || op == 0x1f)
        what = "exception handling";
    else if (op == 0x12 || op == 0x13)
        what = "tail calls";
    else if (op == 0x14 || op == 0x15 || (op >= 0xd4 && op <= 0xd6))
        what = "typed function references";
    else if (op == 0xfb || op == 0xd3)
        what = "garbage collection";
    else if (op == 0xfd)
        what = "SIMD";
    else if (op == 0xfe)
        what = "threads (atomic operations)";
    if (what)
        bh_wasm_bad(c->r, -EINVAL, c->at, "%s: opcode 0x%02x is not supported", what, op);
    else
        bh_wasm_bad(c->r, -EINVAL, c->at, "opcode 0x%02x is not known", op);
}

static void control(struct compiler *c, uint8_t op)
{
    switch (op) {
    case 0x00:
        emit_here(c, OP_UNREACHABLE, 0, 0);
        end_of_path(c);
        break;
    case 0x01:
        break;
    case 0x02:
    case 0x03:
    case 0x04:
        begin_block(c, op);
        break;
    case 0x05:
        otherwise(c);
        break;
    case 0x0b:
        end_block(c);
        break;
    case 0x0c:
        branch(c);
        break;
    case 0x0d:
        branch_if(c);
        break;
    case 0x0e:
        branch_table(c);
        break;
    case 0x0f:
        need_values(c, &c->labels[0], false);
        if (!c->r->rc && !dead(c))
            emit_return(c);
        end_of_path(c);
        break;
    case 0x10:
        call(c);
        break;
    case 0x11:
        call_indirect(c);
        break;
    default:
        unknown(c, op);
    }
}

static void instruction(struct compiler *c)
{
    uint8_t op = c->opcode;

    if (numeric[op].operands && op < SATURATE)
        numbers(c, op);
    else if (op >= 0x28 && op <= 0x3e)
        load_or_store(c, op);
    else if (op <= 0x11)
        control(c, op);
    else if (op == 0x20)
        local_get(c);
    else if (op == 0x21 || op == 0x22)
        local_set(c, op == 0x22);
    else if (op == 0x41)
        push_constant(c, I32, (uint32_t)bh_wasm_leb(c->r, 32));
    else if (op == 0x42)
        push_constant(c, I64, (uint64_t)bh_wasm_leb(c->r, 64));
    else if (op == 0x43)
        push_constant(c, F32, bh_wasm_fixed(c->r, 4));
    else if (op == 0x44)
        push_constant(c, F64, bh_wasm_fixed(c->r, 8));
    else if (op == 0x1a)
        pop(c, ANY);
    else if (op == 0x1b)
        select_one(c, ANY);
    else if (op == 0x1c)
        select_typed(c);
    else if (op == 0x23 || op == 0x24)
        global(c, op == 0x24);
    else if (op == 0x25 || op == 0x26)
        table_access(c, op == 0x26);
    else if (op == 0x3f || op == 0x40)
        memory_size(c, op == 0x40);
    else if (op >= 0xd0 && op <= 0xd2)
        reference(c, op);
    else if (op == 0xfc)
        prefixed(c);
    else
        unknown(c, op);
}

static void read_locals(struct compiler *c)
{
    uint32_t runs = bh_wasm_count(c->r, UINT32_MAX, "groups of locals");

    c->n_locals = c->type->params;
    for (c->n_runs = 0; c->n_runs < runs && !c->r->rc;) {
        c->at = c->r->p;
        uint32_t n = bh_wasm_u32(c->r);
        if (n > MAX_SLOTS - c->n_locals) {
            bh_wasm_bad(c->r, -EFBIG, c->at, "more than %u locals and operands", MAX_SLOTS);
            return;
        }
        c->n_locals += n;
        BH_GROW(c->locals, c->n_runs, c->cap_runs);
        c->locals[c->n_runs++] = (struct run_of_locals){c->n_locals, bh_wasm_type(c->r)};
    }
}

void bh_wasm_compile(struct compiler *c, struct reader *r, uint32_t func)
{
    struct bh_wasm_module *m = c->m;
    struct func *f = &m->funcs[func];

    if (m->n_code == 0) { /* a call from outside returns to the second */
        BH_GROW(m->code, m->n_code, m->cap_code);
        m->code[0] = (struct ins){.run = c->labels_of_run[OP_UNREACHABLE]};
        m->code[1] = (struct ins){.run = c->labels_of_run[OP_LEAVE]};
        m->n_code = 2;
    }
    c->r = r;
    c->at = r->p;
    c->type = &m->types[f->type];
    c->n_operands = c->deepest = c->in_slots = c->n_labels = 0;
    c->last = NONE;
    f->code = m->n_code;
    read_locals(c);
    BH_GROW(c->labels, c->n_labels, c->cap_labels);
    c->labels[c->n_labels++] = (struct label){.type = c->type};
    while (c->n_labels && !r->rc) {
        c->at = r->p;
        c->opcode = bh_wasm_u8(r);
        if (!r->rc)
            instruction(c);
    }
    if (!r->rc && r->p != r->end)
        bh_wasm_bad(r, -EINVAL, r->p, "there are bytes behind the function's end");
    f->params = c->type->params;
    f->zeros = c->n_locals - c->type->params;
    f->slots = c->n_locals + c->deepest;
    f->cost = m->n_code - f->code + f->zeros;
}
