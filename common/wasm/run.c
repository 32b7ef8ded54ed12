/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/run.c - the interpreter: direct threaded code on slots
 *
 * Each instruction holds the address of its label. What it may touch was proved when it was
 * translated: slots are inside the frame (a call checks that the frame is inside the stack), jumps
 * are inside the function, constants and indices are valid. Left to check here: addresses of
 * memory, indices of tables, divisors, conversions, the depth, and the time.
 *
 * Time: the steps between two looks at the clock are counted down. A jump costs one and adds its distance,
 * which is negative for one back: around a loop that sums up to the steps that were done. A call
 * is charged the callee's length, a bulk operation its size.
 */
#include "common/wasm/operations.h"
#include "common/wasm/wasm_int.h"

bool bh_wasm_more_time(struct bh_wasm *w, int64_t *steps)
{
    uint64_t done = (uint64_t)(STEPS_A_LOOK - *steps);

    if (w->limits.steps) {
        if (done >= w->steps)
            return false;
        w->steps -= done;
    }
    if (w->limits.call_ns || w->due_ns) {
        uint64_t now = bh_mono_ns();
        if (!w->until_ns)
            w->until_ns = w->limits.call_ns ? now + w->limits.call_ns : UINT64_MAX;
        if (now >= w->until_ns || (w->due_ns && now >= w->due_ns))
            return false;
    }
    *steps = STEPS_A_LOOK;
    return true;
}

/* clang-format off */
/* All others. */
#define OTHERS(X)                                                                                  \
    X(UNREACHABLE) X(LEAVE) X(COPY) X(COPY_MANY) X(CONST_U) X(CONST_S) X(CONST_WIDE) X(SELECT)     \
    X(GLOBAL_GET) X(GLOBAL_SET) X(JUMP) X(JUMP_IF) X(JUMP_UNLESS) X(JUMP_TABLE) X(RETURN)          \
    X(RETURN_ONE) X(RETURN_MANY) X(CALL) X(CALL_HOST) X(CALL_INDIRECT) X(MEMORY_SIZE)              \
    X(MEMORY_GROW) X(MEMORY_INIT) X(DATA_DROP) X(MEMORY_COPY) X(MEMORY_FILL) X(TABLE_INIT)         \
    X(ELEM_DROP) X(TABLE_COPY) X(TABLE_GET) X(TABLE_SET) X(TABLE_GROW) X(TABLE_SIZE) X(TABLE_FILL)

#define ROW_COMPARE(op, T, e)                                                                      \
    [op] = &&L_##op, [WITH_K + (op)] = &&K_##op, [COMPARE_JUMP + (op)] = &&J_##op,                 \
    [COMPARE_JUMP_K + (op)] = &&JK_##op,
#define ROW_INTEGER(op, T, U, check, e) [op] = &&L_##op, [WITH_K + (op)] = &&K_##op,
#define ROW_TRUNCATION(op, sat, ...)    [op] = &&L_##op, [sat] = &&L_##sat,
#define ROW(op, ...)                    [op] = &&L_##op,
#define ROW_OTHER(name)                 [OP_##name] = &&L_##name,
/* clang-format on */

#define DISPATCH() goto * ip->run
#define NEXT()                                                                                     \
    do {                                                                                           \
        ip++;                                                                                      \
        goto * ip->run;                                                                            \
    } while (0)
#define TRAP(kind)                                                                                 \
    do {                                                                                           \
        w->trap = (kind);                                                                          \
        goto trapped;                                                                              \
    } while (0)
/* Steps were taken off: is there time? Then goes on at ip. */
#define GO_ON()                                                                                    \
    do {                                                                                           \
        if (bh_unlikely(steps < 0))                                                                \
            goto look;                                                                             \
        DISPATCH();                                                                                \
    } while (0)
#define JUMP(distance)                                                                             \
    do {                                                                                           \
        int64_t by_ = (distance);                                                                  \
        ip += by_;                                                                                 \
        steps += by_ - 1;                                                                          \
        GO_ON();                                                                                   \
    } while (0)
#define CHECK(ok, kind)                                                                            \
    if (bh_unlikely(!(ok)))                                                                        \
    TRAP(kind)

/* One function, because labels are of a function: a line or a few an operation. */
enum bh_wasm_trap bh_wasm_run(struct bh_wasm *w, uint32_t func, const void *const **ret_labels)
{
    static const void *const labels[OPERATIONS] = {
        COMPARISONS(ROW_COMPARE) INTEGERS(ROW_INTEGER) FLOATS(ROW) UNARY(ROW)
            TRUNCATIONS(ROW_TRUNCATION) LOADS(ROW) STORES(ROW) OTHERS(ROW_OTHER)};
    const struct bh_wasm_module *m;
    const struct ins *ip, **returns, **returns_end;
    const struct func *f;
    uint64_t *fp, *stack_end;
    uint8_t *memory;
    uint64_t memory_n;
    int64_t steps = STEPS_A_LOOK;

    if (!w) {
        *ret_labels = labels;
        return BH_WASM_DONE;
    }
    m = w->m;
    memory = w->x.memory;
    memory_n = w->x.memory_n;
    fp = w->stack;
    stack_end = w->stack + w->limits.slots;
    returns = w->returns;
    returns_end = returns + w->limits.depth;
    w->trap = BH_WASM_DONE;
    ip = &m->code[0];
    f = &m->funcs[func];
    goto enter;

enter: /* f, its arguments at fp; ip is the calling instruction, or its last part */
    if (bh_unlikely(returns == returns_end || (size_t)(stack_end - fp) < f->slots))
        TRAP(BH_WASM_DEPTH);
    *returns++ = ip + 1;
    for (uint64_t *p = fp + f->params, *end = p + f->zeros; p < end; p++)
        *p = 0;
    ip = &m->code[f->code];
    steps -= f->cost;
    GO_ON();
look:
    if (!bh_wasm_more_time(w, &steps))
        TRAP(BH_WASM_TIME);
    DISPATCH();
trapped:
    w->at = ip;
    w->returned = returns;
    return w->trap;

    /* ---- control ------------------------------------------------------------------------------- */
L_UNREACHABLE:
    TRAP(BH_WASM_UNREACHABLE);
L_LEAVE:
    return BH_WASM_DONE;
L_JUMP:
    JUMP(ip->to);
L_JUMP_IF:
    if ((uint32_t)fp[ip->d])
        JUMP(ip->to);
    NEXT();
L_JUMP_UNLESS:
    if (!(uint32_t)fp[ip->d])
        JUMP(ip->to);
    NEXT();
L_JUMP_TABLE : {
    uint32_t i = (uint32_t)fp[ip->a];
    i = BH_MIN(i, ip->k) + 1;
    JUMP((int64_t)i + ip[i].to);
}
L_RETURN_MANY:
    memmove(fp, fp + ip->a, ip->k * sizeof *fp);
    goto L_RETURN;
L_RETURN_ONE:
    fp[0] = fp[ip->a];
L_RETURN:
    ip = *--returns;
    fp -= ip[-1].d;
    DISPATCH();
L_CALL:
    f = &m->funcs[ip->k];
    fp += ip->d;
    goto enter;
L_CALL_INDIRECT : {
    const struct live_table *t = &w->x.tables[ip[1].k];
    uint32_t i = (uint32_t)fp[ip->a], ref;
    CHECK(i < t->n && (ref = t->refs[i]) != 0, BH_WASM_BAD_TABLE);
    f = &m->funcs[ref - 1];
    CHECK(m->types[f->type].id == ip->k, BH_WASM_BAD_CALL);
    if (ref <= m->n_imported_funcs) {
        steps -= HOST_STEPS;
        w->x.host_func = ref - 1;
        CHECK(w->x.host[ref - 1](w, w->x.user, fp + ip->d), BH_WASM_HOST);
        ip += 2;
        GO_ON();
    }
    ip++;
    fp += ip->d;
    goto enter;
}
L_CALL_HOST:
    steps -= HOST_STEPS;
    if (ip->k == w->x.reader) {
        uint64_t *v = fp + ip->d;
        v[0] = bh_wasm_read_text(&w->x, memory, memory_n, (uint32_t)v[0], (uint32_t)v[1]);
        ip++;
        GO_ON();
    }
    w->x.host_func = ip->k;
    CHECK(w->x.host[ip->k](w, w->x.user, fp + ip->d), BH_WASM_HOST);
    ip++;
    GO_ON();

    /* ---- values -------------------------------------------------------------------------------- */
L_COPY:
    fp[ip->d] = fp[ip->a];
    NEXT();
L_COPY_MANY:
    memmove(fp + ip->d, fp + ip->a, ip->k * sizeof *fp);
    NEXT();
L_CONST_U:
    fp[ip->d] = ip->k;
    NEXT();
L_CONST_S:
    fp[ip->d] = (uint64_t)(int32_t)ip->k;
    NEXT();
L_CONST_WIDE:
    fp[ip->d] = ip[1].wide;
    ip++;
    NEXT();
L_SELECT:
    fp[ip->d] = fp[(uint32_t)fp[ip->c] ? ip->a : ip->b];
    NEXT();
L_GLOBAL_GET:
    fp[ip->d] = w->x.globals[ip->k];
    NEXT();
L_GLOBAL_SET:
    w->x.globals[ip->k] = fp[ip->a];
    NEXT();

    /* ---- numbers ------------------------------------------------------------------------------- */
#define DO_COMPARE(op, T, e)                                                                       \
    L_##op:                                                                                        \
    {                                                                                              \
        T a = (T)fp[ip->a], b = (T)fp[ip->b];                                                      \
        fp[ip->d] = (e);                                                                           \
        NEXT();                                                                                    \
    }                                                                                              \
    K_##op:                                                                                        \
    {                                                                                              \
        T a = (T)fp[ip->a], b = (T)(int32_t)ip->k;                                                 \
        fp[ip->d] = (e);                                                                           \
        NEXT();                                                                                    \
    }                                                                                              \
    J_##op:                                                                                        \
    {                                                                                              \
        T a = (T)fp[ip->d], b = (T)fp[ip->a];                                                      \
        if (e)                                                                                     \
            JUMP(ip->to);                                                                          \
        NEXT();                                                                                    \
    }                                                                                              \
    JK_##op:                                                                                       \
    {                                                                                              \
        T a = (T)fp[ip->d], b = (T)(int16_t)ip->a;                                                 \
        if (e)                                                                                     \
            JUMP(ip->to);                                                                          \
        NEXT();                                                                                    \
    }
    COMPARISONS(DO_COMPARE)
#define DO_INTEGER(op, T, U, check, e)                                                             \
    L_##op:                                                                                        \
    {                                                                                              \
        T a = (T)fp[ip->a], b = (T)fp[ip->b];                                                      \
        check;                                                                                     \
        fp[ip->d] = (U)(e);                                                                        \
        NEXT();                                                                                    \
    }                                                                                              \
    K_##op:                                                                                        \
    {                                                                                              \
        T a = (T)fp[ip->a], b = (T)(int32_t)ip->k;                                                 \
        check;                                                                                     \
        fp[ip->d] = (U)(e);                                                                        \
        NEXT();                                                                                    \
    }
    INTEGERS(DO_INTEGER)
#define DO_FLOAT(op, read, write, e)                                                               \
    L_##op:                                                                                        \
    {                                                                                              \
        __auto_type a = read(fp[ip->a]);                                                           \
        __auto_type b = read(fp[ip->b]);                                                           \
        fp[ip->d] = write(e);                                                                      \
        NEXT();                                                                                    \
    }
    FLOATS(DO_FLOAT)
#define DO_UNARY(op, read, e)                                                                      \
    L_##op:                                                                                        \
    {                                                                                              \
        __auto_type a = read(fp[ip->a]);                                                           \
        fp[ip->d] = (e);                                                                           \
        NEXT();                                                                                    \
    }
    UNARY(DO_UNARY)
#define DO_TRUNCATE(op, saturating, read, T, not_less, not_more, less, more)                       \
    L_##op:                                                                                        \
    {                                                                                              \
        __auto_type a = read(fp[ip->a]);                                                           \
        CHECK(a == a, BH_WASM_CONVERT);                                                            \
        CHECK((not_less) && (not_more), BH_WASM_OVERFLOW);                                         \
        fp[ip->d] = SLOT_OF(T, (T)a);                                                              \
        NEXT();                                                                                    \
    }                                                                                              \
    L_##saturating:                                                                                \
    {                                                                                              \
        __auto_type a = read(fp[ip->a]);                                                           \
        fp[ip->d] = a != a        ? 0                                                              \
                    : !(not_less) ? (uint64_t)(less)                                               \
                    : !(not_more) ? (uint64_t)(more)                                               \
                                  : SLOT_OF(T, (T)a);                                              \
        NEXT();                                                                                    \
    }
    TRUNCATIONS(DO_TRUNCATE)

    /* ---- memory -------------------------------------------------------------------------------- */
#define DO_LOAD(op, T, R)                                                                          \
    L_##op:                                                                                        \
    {                                                                                              \
        uint64_t at = (uint64_t)(uint32_t)fp[ip->a] + ip->k;                                       \
        T v;                                                                                       \
        CHECK(at + sizeof v <= memory_n, BH_WASM_BAD_MEMORY);                                      \
        memcpy(&v, memory + at, sizeof v);                                                         \
        fp[ip->d] = (R)v;                                                                          \
        NEXT();                                                                                    \
    }
    LOADS(DO_LOAD)
#define DO_STORE(op, T)                                                                            \
    L_##op:                                                                                        \
    {                                                                                              \
        uint64_t at = (uint64_t)(uint32_t)fp[ip->d] + ip->k;                                       \
        T v = (T)fp[ip->a];                                                                        \
        CHECK(at + sizeof v <= memory_n, BH_WASM_BAD_MEMORY);                                      \
        memcpy(memory + at, &v, sizeof v);                                                         \
        NEXT();                                                                                    \
    }
    STORES(DO_STORE)
L_MEMORY_SIZE:
    fp[ip->d] = memory_n / BH_WASM_PAGE;
    NEXT();
L_MEMORY_GROW:
    fp[ip->d] = bh_wasm_memory_grow(w, (uint32_t)fp[ip->a]);
    memory = w->x.memory;
    memory_n = w->x.memory_n;
    steps -= HOST_STEPS;
    ip++;
    GO_ON();
L_MEMORY_COPY : {
    const uint64_t *v = fp + ip->d;
    uint32_t to = (uint32_t)v[0], from = (uint32_t)v[1], n = (uint32_t)v[2];
    CHECK((uint64_t)to + n <= memory_n && (uint64_t)from + n <= memory_n, BH_WASM_BAD_MEMORY);
    if (n)
        memmove(memory + to, memory + from, n);
    steps -= n / BYTES_A_STEP;
    ip++;
    GO_ON();
}
L_MEMORY_FILL : {
    const uint64_t *v = fp + ip->d;
    uint32_t to = (uint32_t)v[0], n = (uint32_t)v[2];
    CHECK((uint64_t)to + n <= memory_n, BH_WASM_BAD_MEMORY);
    if (n)
        memset(memory + to, (int)(v[1] & 0xff), n);
    steps -= n / BYTES_A_STEP;
    ip++;
    GO_ON();
}
L_MEMORY_INIT : {
    const uint64_t *v = fp + ip->d;
    CHECK(bh_wasm_memory_init(w, ip->k, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]),
          BH_WASM_BAD_MEMORY);
    steps -= (uint32_t)v[2] / BYTES_A_STEP;
    ip++;
    GO_ON();
}
L_DATA_DROP:
    w->x.gone_datas[ip->k] = true;
    NEXT();

    /* ---- tables -------------------------------------------------------------------------------- */
L_TABLE_GET : {
    const struct live_table *t = &w->x.tables[ip->k];
    uint32_t i = (uint32_t)fp[ip->a];
    CHECK(i < t->n, BH_WASM_BAD_TABLE);
    fp[ip->d] = t->refs[i];
    NEXT();
}
L_TABLE_SET : {
    const struct live_table *t = &w->x.tables[ip->k];
    uint32_t i = (uint32_t)fp[ip->d];
    CHECK(i < t->n, BH_WASM_BAD_TABLE);
    t->refs[i] = (uint32_t)fp[ip->a];
    NEXT();
}
L_TABLE_SIZE:
    fp[ip->d] = w->x.tables[ip->k].n;
    NEXT();
L_TABLE_GROW : {
    uint32_t n = (uint32_t)fp[ip->d + 1];
    fp[ip->d] = bh_wasm_table_grow(w, ip->k, n, (uint32_t)fp[ip->d]);
    steps -= HOST_STEPS + ((uint32_t)fp[ip->d] == UINT32_MAX ? 0 : (int64_t)n);
    ip++;
    GO_ON();
}
L_TABLE_FILL : {
    const uint64_t *v = fp + ip->d;
    CHECK(bh_wasm_table_fill(w, ip->k, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]),
          BH_WASM_BAD_TABLE);
    steps -= (uint32_t)v[2];
    ip++;
    GO_ON();
}
L_TABLE_INIT : {
    const uint64_t *v = fp + ip->d;
    CHECK(bh_wasm_table_init(w, ip->a, ip->k, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]),
          BH_WASM_BAD_TABLE);
    steps -= (uint32_t)v[2];
    ip++;
    GO_ON();
}
L_TABLE_COPY : {
    const uint64_t *v = fp + ip->d;
    CHECK(bh_wasm_table_copy(w, ip->a, ip->k, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]),
          BH_WASM_BAD_TABLE);
    steps -= (uint32_t)v[2];
    ip++;
    GO_ON();
}
L_ELEM_DROP:
    w->x.gone_elems[ip->k] = true;
    NEXT();
}
