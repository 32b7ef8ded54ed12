/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/emit.c - a module as C: the interpreter's instructions, written down
 *
 * The C is made of what was validated and translated, so it means what the interpreter does, step by
 * step: a function is a C function, a slot of its frame a variable, an instruction a statement out of
 * the operations' table (operations.h). Nothing of the guest's own text gets into it, only numbers.
 *
 * A call checks depth and slots before, and looks at how it ended after; the functions that a trap
 * leaves are noted on the way out.
 */
#include <errno.h>

#include "common/wasm/store.h"
#include "common/wasm/wasm_int.h"

#define FRAME_MAX 8192u /* slots of a function, which are on the thread's stack */

static const char texts[] =
#include "common/wasm/trap.text.h"
#include "common/wasm/operations.text.h"
#include "common/wasm/compiled.text.h"
    ;

void bh_wasm_made_with(char out[static 65])
{
    BH_CLEANUP(bh_freep) char *all = bh_asprintf(BH_WASM_EMITTED "\n%s", texts);

    bh_wasm_digest(all, strlen(all), out);
}

struct emitter {
    const struct bh_wasm_module *m;
    struct bh_buf *b;
    const char *link; /* of functions: "static", or "" where other files call them */
    uint32_t func;
    const struct ins *first, *end; /* its instructions */
    uint8_t *lands;                /* by instruction of the module: something jumps there */
    const void *const *labels;
};

/* ---- instructions by their label --------------------------------------------------------------- */

struct row {
    uintptr_t run;
    uint16_t op;
};

static int by_run(const void *pa, const void *pb)
{
    const struct row *a = pa, *b = pb;

    return (a->run > b->run) - (a->run < b->run);
}

/* Labels that a compiler has put together do the same. */
static unsigned operation(const struct row *rows, size_t n, const void *run)
{
    const struct row key = {.run = (uintptr_t)run};
    const struct row *r = bsearch(&key, rows, n, sizeof *rows, by_run);

    bh_assert(r);
    return r->op;
}

static size_t operations(struct row *rows)
{
    const void *const *labels;
    size_t n = 0;

    bh_wasm_run(NULL, 0, &labels);
    for (unsigned op = 0; op < OPERATIONS; op++)
        if (labels[op])
            rows[n++] = (struct row){(uintptr_t)labels[op], (uint16_t)op};
    qsort(rows, n, sizeof *rows, by_run);
    return n;
}

/* With what belongs to it: rows of a table, a wide constant, the second half of a call. */
static uint32_t length(unsigned op, const struct ins *i)
{
    return op == OP_JUMP_TABLE ? i->k + 2 : op == OP_CONST_WIDE || op == OP_CALL_INDIRECT ? 2 : 1;
}

static bool jumps(unsigned op)
{
    return op == OP_JUMP || op == OP_JUMP_IF || op == OP_JUMP_UNLESS || op >= COMPARE_JUMP;
}

/* ---- statements -------------------------------------------------------------------------------- */

static void jump(struct emitter *e, const struct ins *from, int64_t by)
{
    bh_buf_addf(e->b, "JUMP(%lld, L%td);", (long long)by, from + by - e->m->code);
}

static void jump_if(struct emitter *e, const struct ins *i, unsigned op)
{
    const unsigned number = op & 0xff;

    if (op == OP_JUMP_IF || op == OP_JUMP_UNLESS)
        bh_buf_addf(e->b, "if (%s(uint32_t)s%u) ", op == OP_JUMP_IF ? "" : "!", i->d);
    else if (op >= COMPARE_JUMP_K)
        bh_buf_addf(e->b, "if (o_0x%02x(s%u, K(%d))) ", number, i->d, (int16_t)i->a);
    else if (op >= COMPARE_JUMP)
        bh_buf_addf(e->b, "if (o_0x%02x(s%u, s%u)) ", number, i->d, i->a);
    jump(e, i, i->to);
}

static void jump_table(struct emitter *e, const struct ins *i)
{
    bh_buf_addf(e->b, "switch ((uint32_t)s%u) {", i->a);
    for (uint32_t k = 0; k <= i->k; k++) {
        if (k < i->k)
            bh_buf_addf(e->b, "\n\tcase %u: ", k);
        else
            bh_buf_adds(e->b, "\n\tdefault: ");
        jump(e, i, (int64_t)k + 1 + i[k + 1].to);
    }
    bh_buf_adds(e->b, "}");
}

/* Slots from..from + n become those at `to`. */
static void copy(struct bh_buf *b, const char *to, unsigned at, unsigned from, uint32_t n)
{
    bh_buf_adds(b, "{");
    for (uint32_t k = 0; k < n; k++)
        bh_buf_addf(b, "slot c%u = s%u;", k, from + k);
    for (uint32_t k = 0; k < n; k++)
        if (to)
            bh_buf_addf(b, "%s[%u] = c%u;", to, k, k);
        else
            bh_buf_addf(b, "s%u = c%u;", at + k, k);
    bh_buf_adds(b, "}");
}

static const struct func_type *type_of(const struct emitter *e, uint32_t func)
{
    return &e->m->types[e->m->funcs[func].type];
}

static void row_of_values(struct emitter *e, const struct func_type *t, unsigned at)
{
    bh_buf_addf(e->b, "{slot v[%u];", BH_MAX(BH_MAX(t->params, t->results), 1u));
    for (uint32_t k = 0; k < t->params; k++)
        bh_buf_addf(e->b, "v[%u] = s%u;", k, at + k);
}

static void take_values(struct emitter *e, const struct func_type *t, unsigned at)
{
    for (uint32_t k = 0; k < t->results; k++)
        bh_buf_addf(e->b, "s%u = v[%u];", at + k, k);
    bh_buf_adds(e->b, "}");
}

static void call(struct emitter *e, const struct ins *i)
{
    const struct func_type *t = type_of(e, i->k);

    bh_buf_addf(e->b, "{slot v[%u]; ENTER(%u, %uu); trap = f%u(w", BH_MAX(t->results, 1u), i->d,
                e->m->funcs[i->k].slots, i->k);
    for (uint32_t k = 0; k < t->params; k++)
        bh_buf_addf(e->b, ", s%u", i->d + k);
    bh_buf_addf(e->b, ", v); LEAVE(%u);", i->d);
    take_values(e, t, i->d);
}

static void call_host(struct emitter *e, const struct ins *i)
{
    const struct func_type *t = type_of(e, i->k);

    if (bh_streq(t->word, BH_WASM_READER)) {
        bh_buf_addf(e->b, "READ(%u, s%u, s%u);", i->k, i->d, i->d + 1);
        return;
    }
    row_of_values(e, t, i->d);
    bh_buf_addf(e->b, "HOST(%u, v);", i->k);
    take_values(e, t, i->d);
}

static void call_indirect(struct emitter *e, const struct ins *i)
{
    const struct func_type *t = &e->m->types[i->k];

    row_of_values(e, t, i->d);
    bh_buf_addf(e->b,
                "uint32_t f = table_call(&w->tables[%u], s%u, &trap); MAY_TRAP();"
                "CHECK(types[f - 1] == %u, BH_WASM_BAD_CALL);"
                "if (f <= %uu) HOST(f - 1, v);"
                "else {ENTER(%u, slots[f - 1]); trap = entries[f - 1 - %u](w, v); LEAVE(%u);}",
                i[1].k, i->a, i->k, e->m->n_imported_funcs, i->d, e->m->n_imported_funcs, i->d);
    take_values(e, t, i->d);
}

static void leave(struct emitter *e, const struct ins *i, unsigned op)
{
    if (op == OP_RETURN_ONE)
        bh_buf_addf(e->b, "r[0] = s%u;", i->a);
    else if (op == OP_RETURN_MANY)
        copy(e->b, "r", 0, i->a, i->k);
    bh_buf_adds(e->b, "w->steps = steps; return 0;");
}

static void wide(struct emitter *e, unsigned d, uint64_t v)
{
    bh_buf_addf(e->b, "s%u = 0x%llxu;", d, (unsigned long long)v);
}

/* ---- memory and tables ------------------------------------------------------------------------- */

static void memory_or_table(struct emitter *e, const struct ins *i, unsigned op)
{
    struct bh_buf *b = e->b;
    const unsigned d = i->d;

    switch (op) {
    case OP_MEMORY_SIZE:
        bh_buf_addf(b, "s%u = memory_n / %zuu;", d, BH_WASM_PAGE);
        break;
    case OP_MEMORY_GROW:
        bh_buf_addf(b,
                    "s%u = w->help->memory_grow(w, (uint32_t)s%u); SIZE_OF_MEMORY();"
                    "steps -= HOST_STEPS; GO_ON();",
                    d, i->a);
        break;
    case OP_MEMORY_COPY:
    case OP_MEMORY_FILL:
        bh_buf_addf(b,
                    "memory_%s(w, s%u, s%u, s%u, &trap); MAY_TRAP();"
                    "steps -= (uint32_t)s%u / BYTES_A_STEP; GO_ON();",
                    op == OP_MEMORY_COPY ? "copy" : "fill", d, d + 1, d + 2, d + 2);
        break;
    case OP_MEMORY_INIT:
        bh_buf_addf(b,
                    "CHECK(w->help->memory_init(w, %u, (uint32_t)s%u, (uint32_t)s%u, "
                    "(uint32_t)s%u), BH_WASM_BAD_MEMORY);"
                    "steps -= (uint32_t)s%u / BYTES_A_STEP; GO_ON();",
                    i->k, d, d + 1, d + 2, d + 2);
        break;
    case OP_TABLE_GET:
        bh_buf_addf(b, "s%u = table_get(&w->tables[%u], s%u, &trap); MAY_TRAP();", d, i->k, i->a);
        break;
    case OP_TABLE_SET:
        bh_buf_addf(b, "table_set(&w->tables[%u], s%u, s%u, &trap); MAY_TRAP();", i->k, d, i->a);
        break;
    case OP_TABLE_SIZE:
        bh_buf_addf(b, "s%u = w->tables[%u].n;", d, i->k);
        break;
    case OP_TABLE_GROW:
        bh_buf_addf(b,
                    "s%u = w->help->table_grow(w, %u, (uint32_t)s%u, (uint32_t)s%u);"
                    "steps -= HOST_STEPS + ((uint32_t)s%u == UINT32_MAX ? 0 : "
                    "(int64_t)(uint32_t)s%u); GO_ON();",
                    d, i->k, d + 1, d, d, d + 1);
        break;
    case OP_TABLE_FILL:
        bh_buf_addf(b,
                    "CHECK(w->help->table_fill(w, %u, (uint32_t)s%u, (uint32_t)s%u, "
                    "(uint32_t)s%u), BH_WASM_BAD_TABLE); steps -= (uint32_t)s%u; GO_ON();",
                    i->k, d, d + 1, d + 2, d + 2);
        break;
    default: /* OP_TABLE_INIT, OP_TABLE_COPY */
        bh_buf_addf(b,
                    "CHECK(w->help->table_%s(w, %u, %u, (uint32_t)s%u, (uint32_t)s%u, "
                    "(uint32_t)s%u), BH_WASM_BAD_TABLE); steps -= (uint32_t)s%u; GO_ON();",
                    op == OP_TABLE_INIT ? "init" : "copy", i->a, i->k, d, d + 1, d + 2, d + 2);
    }
}

/* ---- numbers ----------------------------------------------------------------------------------- */

static bool may_trap(unsigned number)
{
    return (number >= 0x6d && number <= 0x70) || (number >= 0x7f && number <= 0x82) ||
           (number >= 0xa8 && number <= 0xb1 && number != 0xac && number != 0xad);
}

/* Integer arithmetic is written with a place for its trap, whether it has one or not. */
static bool is_integer(unsigned number)
{
    return (number >= 0x6a && number <= 0x78) || (number >= 0x7c && number <= 0x8a);
}

static bool is_unary(unsigned number)
{
    return number == 0x45 || number == 0x50 || (number >= 0x67 && number <= 0x69) ||
           (number >= 0x79 && number <= 0x7b) || (number >= 0x8b && number <= 0x91) ||
           (number >= 0x99 && number <= 0x9f) || number >= 0xa7;
}

static void number(struct emitter *e, const struct ins *i, unsigned op)
{
    const unsigned n = op & 0xff;
    struct bh_buf *b = e->b;

    if (n < 0x36) {
        bh_buf_addf(b, "s%u = o_0x%02x(memory, memory_n, s%u, %uu, &trap); MAY_TRAP();", i->d, n,
                    i->a, i->k);
        return;
    }
    if (n < 0x3f) {
        bh_buf_addf(b, "o_0x%02x(memory, memory_n, s%u, s%u, %uu, &trap); MAY_TRAP();", n, i->d,
                    i->a, i->k);
        return;
    }
    bh_buf_addf(b, "s%u = o_0x%02x(s%u", i->d, n, i->a);
    if (op >= WITH_K)
        bh_buf_addf(b, ", K(%d)", (int32_t)i->k);
    else if (!is_unary(n))
        bh_buf_addf(b, ", s%u", i->b);
    bh_buf_adds(b, is_integer(n) || may_trap(n) ? ", &trap);" : ");");
    if (may_trap(n))
        bh_buf_adds(b, " MAY_TRAP();");
}

static void statement(struct emitter *e, const struct ins *i, unsigned op)
{
    struct bh_buf *b = e->b;

    switch (op) {
    case OP_UNREACHABLE:
        bh_buf_adds(b, "TRAP(BH_WASM_UNREACHABLE);");
        break;
    case OP_COPY:
        bh_buf_addf(b, "s%u = s%u;", i->d, i->a);
        break;
    case OP_COPY_MANY:
        copy(b, NULL, i->d, i->a, i->k);
        break;
    case OP_CONST_U:
        wide(e, i->d, i->k);
        break;
    case OP_CONST_S:
        wide(e, i->d, (uint64_t)(int32_t)i->k);
        break;
    case OP_CONST_WIDE:
        wide(e, i->d, i[1].wide);
        break;
    case OP_SELECT:
        bh_buf_addf(b, "s%u = (uint32_t)s%u ? s%u : s%u;", i->d, i->c, i->a, i->b);
        break;
    case OP_GLOBAL_GET:
        bh_buf_addf(b, "s%u = w->globals[%u];", i->d, i->k);
        break;
    case OP_GLOBAL_SET:
        bh_buf_addf(b, "w->globals[%u] = s%u;", i->k, i->a);
        break;
    case OP_JUMP_TABLE:
        jump_table(e, i);
        break;
    case OP_RETURN:
    case OP_RETURN_ONE:
    case OP_RETURN_MANY:
        leave(e, i, op);
        break;
    case OP_CALL:
        call(e, i);
        break;
    case OP_CALL_HOST:
        call_host(e, i);
        break;
    case OP_CALL_INDIRECT:
        call_indirect(e, i);
        break;
    case OP_DATA_DROP:
        bh_buf_addf(b, "w->gone_datas[%u] = true;", i->k);
        break;
    case OP_ELEM_DROP:
        bh_buf_addf(b, "w->gone_elems[%u] = true;", i->k);
        break;
    default:
        if (jumps(op))
            jump_if(e, i, op);
        else if (op < 0x28)
            memory_or_table(e, i, op);
        else
            number(e, i, op);
    }
}

/* ---- functions --------------------------------------------------------------------------------- */

static void head(const struct emitter *e, uint32_t func)
{
    const struct func_type *t = type_of(e, func);

    bh_buf_addf(e->b, "%s unsigned f%u(view *w", e->link, func);
    for (uint32_t k = 0; k < t->params; k++)
        bh_buf_addf(e->b, ", slot s%u", k);
    bh_buf_adds(e->b, ", slot *r)");
}

/* Where its jumps land. */
static void find_landings(struct emitter *e, const struct row *rows, size_t n)
{
    for (const struct ins *i = e->first; i < e->end;) {
        unsigned op = operation(rows, n, i->run);
        if (jumps(op))
            e->lands[i + i->to - e->m->code] = 1;
        for (uint32_t k = 0; op == OP_JUMP_TABLE && k <= i->k; k++)
            e->lands[i + k + 1 + i[k + 1].to - e->m->code] = 1;
        i += length(op, i);
    }
}

static void function(struct emitter *e, const struct row *rows, size_t n)
{
    const struct func *f = &e->m->funcs[e->func];

    find_landings(e, rows, n);
    head(e, e->func);
    bh_buf_adds(e->b, "\n{\n");
    for (uint32_t k = f->params; k < f->slots; k++)
        bh_buf_addf(e->b, "slot s%u = 0;\n", k);
    bh_buf_addf(e->b,
                "uint8_t *const memory = w->memory; uint64_t memory_n; SIZE_OF_MEMORY();\n"
                "int64_t steps = w->steps - %u; unsigned trap = 0;\n"
                "(void)memory, (void)memory_n, (void)r;\nGO_ON();\n",
                f->cost);
    for (const struct ins *i = e->first; i < e->end;) {
        unsigned op = operation(rows, n, i->run);
        if (e->lands[i - e->m->code])
            bh_buf_addf(e->b, "L%td:;\n", i - e->m->code);
        statement(e, i, op);
        bh_buf_addc(e->b, '\n');
        i += length(op, i);
    }
    bh_buf_addf(e->b, "trapped:\nreturn left(w, %u, trap);\n}\n", e->func);
}

/* The same with arguments and results in a row. */
static void entry(const struct emitter *e, uint32_t func)
{
    const struct func_type *t = type_of(e, func);

    bh_buf_addf(e->b, "%s unsigned e%u(view *w, slot *v) {return f%u(w", e->link, func, func);
    for (uint32_t k = 0; k < t->params; k++)
        bh_buf_addf(e->b, ", v[%u]", k);
    bh_buf_adds(e->b, ", v);}\n");
}

static void tables(const struct emitter *e, const char *sha256)
{
    const struct bh_wasm_module *m = e->m;
    const uint32_t none = m->n_imported_funcs;
    char made[65];

    bh_wasm_made_with(made);
    for (uint32_t f = none; f < m->n_funcs; f++)
        bh_buf_addf(e->b, "%s unsigned e%u(view *w, slot *v);\n", e->link, f);
    bh_buf_addf(e->b, "%s bh_wasm_entry *const entries[%u] = {", e->link, m->n_funcs - none + 1);
    for (uint32_t f = none; f < m->n_funcs; f++)
        bh_buf_addf(e->b, "e%u,\n", f);
    bh_buf_addf(e->b,
                "0};\n__attribute__((visibility(\"default\"))) const struct bh_wasm_compiled "
                "bh_wasm_compiled_guest = {\"%s\", \"%s\", %u, entries};\n",
                made, sha256, m->n_funcs - none);
}

static void declarations(const struct emitter *e)
{
    const struct bh_wasm_module *m = e->m;
    const uint32_t none = m->n_imported_funcs;

    bh_buf_addf(e->b,
                "#define BH_WASM_IN_GUEST\n#define MEMORY_MIN %zuull\n%s\n%s bh_wasm_entry *const "
                "entries[%u];\n"
                "static const uint32_t types[] __attribute__((unused)) = {",
                m->n_memories ? m->memory.min * BH_WASM_PAGE : 0, texts,
                *e->link ? e->link : "extern", m->n_funcs - none + 1);
    for (uint32_t f = 0; f < m->n_funcs; f++)
        bh_buf_addf(e->b, "%u,", m->types[m->funcs[f].type].id);
    bh_buf_adds(e->b, "0};\nstatic const uint32_t slots[] __attribute__((unused)) = {");
    for (uint32_t f = 0; f < m->n_funcs; f++)
        bh_buf_addf(e->b, "%u,", m->funcs[f].slots);
    bh_buf_adds(e->b, "0};\n");
    for (uint32_t f = none; f < m->n_funcs; f++) {
        head(e, f);
        bh_buf_adds(e->b, ";\n");
    }
}

static int functions(struct emitter *e, uint32_t from, uint32_t to, struct bh_err *err)
{
    struct row *rows = bh_calloc(OPERATIONS, sizeof *rows);
    const struct bh_wasm_module *m = e->m;
    size_t n = operations(rows);
    int rc = 0;

    e->lands = bh_calloc(m->n_code + 1, 1);
    for (e->func = from; e->func < to && rc == 0; e->func++) {
        e->first = m->code + m->funcs[e->func].code;
        e->end = m->code + (e->func + 1 < m->n_funcs ? m->funcs[e->func + 1].code : m->n_code);
        if (m->funcs[e->func].slots > FRAME_MAX)
            rc = bh_err_set(err, -EFBIG,
                            "function %u has %u locals and operands, %u are compiled: the guest "
                            "can be interpreted",
                            e->func, m->funcs[e->func].slots, FRAME_MAX);
        else
            function(e, rows, n);
    }
    for (uint32_t f = from; f < to; f++)
        entry(e, f);
    free(e->lands);
    free(rows);
    return rc;
}

uint32_t bh_wasm_part(const struct bh_wasm_module *m, uint32_t from, uint32_t most)
{
    uint32_t to = from + 1;

    while (to < m->n_funcs && m->funcs[to].code - m->funcs[from].code < most)
        to++;
    return to < m->n_funcs ? to : m->n_funcs;
}

int bh_wasm_add_part(const struct bh_wasm_module *m, const char *sha256, uint32_t from, uint32_t to,
                     struct bh_buf *b, struct bh_err *err)
{
    struct emitter e = {.m = m, .b = b, .link = ""};

    if (from == m->n_imported_funcs && to == m->n_funcs)
        e.link = "static";
    declarations(&e);
    int rc = functions(&e, from, to, err);
    if (to == m->n_funcs)
        tables(&e, sha256);
    return rc;
}

int bh_wasm_add_c(const struct bh_wasm_module *m, const char *sha256, struct bh_buf *b,
                  struct bh_err *err)
{
    return bh_wasm_add_part(m, sha256, m->n_imported_funcs, m->n_funcs, b, err);
}
