/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/compiled.h - what a guest that was compiled ahead of time and its instance share
 *
 * Its text stands in the C of a compiled guest (emit.c), so it includes nothing of Berth's. The file
 * says which text it was made with, and is not used by a program that has another one.
 *
 * Invariants: struct bh_wasm begins with a struct bh_wasm_view.
 *             Steps, depth and slots are counted as the interpreter counts them: what is compiled
 *             traps where it traps, but where the thread's own stack ends before (no_stack).
 */
#ifndef BH_WASM_COMPILED_H
#define BH_WASM_COMPILED_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifndef BH_WASM_IN_GUEST /* there these texts stand before this one */
#include "common/wasm/trap.h"
#endif

/* To be changed when emit.c makes other code of the same module. */
#define BH_WASM_EMITTED "3"

#define STEPS_A_LOOK 65536 /* some 0.1 ms */
#define HOST_STEPS   4096  /* a call of the host, which may take longer than most loops */
#define BYTES_A_STEP 16
#define FRAMES_KEPT  32u /* of a trap: one more than a text has */

struct live_table {
    uint32_t *refs; /* 0: null, else a function's index + 1 */
    uint32_t n, max;
};

struct bh_wasm;
struct bh_wasm_view;
typedef bool bh_wasm_host_call(struct bh_wasm *w, void *user, uint64_t *v);
/* What takes more than a few instructions. */
struct bh_wasm_help {
    bool (*look)(struct bh_wasm_view *w); /* takes and gives w->steps; false: the time is over */
    uint32_t (*memory_grow)(struct bh_wasm_view *w, uint32_t pages);
    bool (*memory_init)(struct bh_wasm_view *w, uint32_t data, uint32_t to, uint32_t from,
                        uint32_t n);
    bool (*table_init)(struct bh_wasm_view *w, uint32_t table, uint32_t elem, uint32_t to,
                       uint32_t from, uint32_t n);
    bool (*table_copy)(struct bh_wasm_view *w, uint32_t table, uint32_t other, uint32_t to,
                       uint32_t from, uint32_t n);
    bool (*table_fill)(struct bh_wasm_view *w, uint32_t table, uint32_t at, uint32_t ref,
                       uint32_t n);
    uint32_t (*table_grow)(struct bh_wasm_view *w, uint32_t table, uint32_t n, uint32_t ref);
};

/* What compiled code sees of an instance. */
struct bh_wasm_view {
    uint8_t *memory; /* never moves */
    uint64_t memory_n;
    uint64_t *globals;
    struct live_table *tables;
    bool *gone_elems, *gone_datas; /* dropped segments */
    const struct bh_wasm_help *help;
    bh_wasm_host_call **host; /* by function */
    void *user;
    /* ---- of the call that runs ---- */
    int64_t steps;         /* until the next look at the clock */
    uint64_t slots;        /* of the stack, from the running function's frame on */
    const char *stack_low; /* the thread's own stack has no room below */
    bool no_stack;         /* it trapped there, where the interpreter goes on */
    uint32_t depth;        /* calls within calls that may still be */
    uint32_t host_func;    /* the last one that was called */
    uint32_t reader;       /* the imported function that gives about; UINT32_MAX: none */
    const char *about;     /* what the call is about, where it is one of many; else NULL */
    uint64_t about_n;
    uint32_t n_frames; /* of its trap, the innermost first; those beyond are not kept */
    uint32_t frames[FRAMES_KEPT];
};

/* v: arguments, then results; an enum bh_wasm_trap. */
typedef unsigned bh_wasm_entry(struct bh_wasm_view *w, uint64_t *v);
/* The only symbol of a compiled guest. */
struct bh_wasm_compiled {
    char made_with[65]; /* digest of BH_WASM_EMITTED, and of trap.h, operations.h and this file */
    char sha256[65];    /* of the guest */
    uint32_t n;         /* functions that are not imported */
    bh_wasm_entry *const *entries;
};
#define BH_WASM_COMPILED_SYMBOL "bh_wasm_compiled_guest"

/* A few bytes without a call, in two parts that may overlap: most names of nodes are not longer. */
static inline void bh_wasm_copy_text(uint8_t *to, const char *from, uint64_t n)
{
    uint64_t first[2], last[2];

    if (n - 8 <= 8) {
        memcpy(first, from, 8);
        memcpy(last, from + n - 8, 8);
        memcpy(to, first, 8);
        memcpy(to + n - 8, last, 8);
    } else if (n - 16 <= 16) {
        memcpy(first, from, 16);
        memcpy(last, from + n - 16, 16);
        memcpy(to, first, 16);
        memcpy(to + n - 16, last, 16);
    } else {
        memcpy(to, from, n);
    }
}
/* What the reader does: the text's length, and the text at `at` where that is memory and the limit is not
 * less. */
static inline uint32_t bh_wasm_read_text(const struct bh_wasm_view *w, uint8_t *memory,
                                         uint64_t memory_n, uint32_t at, uint32_t limit)
{
    const uint64_t n = w->about_n;

    if (n && n <= limit && at + n <= memory_n)
        bh_wasm_copy_text(memory + at, w->about, n);
    return (uint32_t)n;
}

/* ---- in a compiled guest ----------------------------------------------------------------------- */
#ifdef BH_WASM_IN_GUEST
typedef uint64_t slot;
typedef struct bh_wasm_view view;

#define INLINE static inline __attribute__((always_inline, unused))
#define K(v)   ((slot)(int64_t)(v)) /* a constant of an operation: signed */

/* Operations as functions; one that may trap says so in *trap. */
#define TRAP(kind)                                                                                 \
    do {                                                                                           \
        *trap = (kind);                                                                            \
        return 0;                                                                                  \
    } while (0)
#define DO_COMPARE(op, T, e)                                                                       \
    INLINE slot o_##op(slot x, slot y)                                                             \
    {                                                                                              \
        T a = (T)x, b = (T)y;                                                                      \
        return (e);                                                                                \
    }
COMPARISONS(DO_COMPARE)
#define DO_INTEGER(op, T, U, check, e)                                                             \
    INLINE slot o_##op(slot x, slot y, unsigned *trap)                                             \
    {                                                                                              \
        T a = (T)x, b = (T)y;                                                                      \
        (void)trap;                                                                                \
        check;                                                                                     \
        return (U)(e);                                                                             \
    }
INTEGERS(DO_INTEGER)
#define DO_FLOAT(op, read, write, e)                                                               \
    INLINE slot o_##op(slot x, slot y)                                                             \
    {                                                                                              \
        __auto_type a = read(x);                                                                   \
        __auto_type b = read(y);                                                                   \
        return write(e);                                                                           \
    }
FLOATS(DO_FLOAT)
#define DO_UNARY(op, read, e)                                                                      \
    INLINE slot o_##op(slot x)                                                                     \
    {                                                                                              \
        __auto_type a = read(x);                                                                   \
        return (e);                                                                                \
    }
UNARY(DO_UNARY)
#define DO_TRUNCATE(op, saturating, read, T, not_less, not_more, less, more)                       \
    INLINE slot o_##op(slot x, unsigned *trap)                                                     \
    {                                                                                              \
        __auto_type a = read(x);                                                                   \
        TRAP_IF(a != a, BH_WASM_CONVERT);                                                          \
        TRAP_IF(!((not_less) && (not_more)), BH_WASM_OVERFLOW);                                    \
        return SLOT_OF(T, (T)a);                                                                   \
    }                                                                                              \
    INLINE slot o_##saturating(slot x)                                                             \
    {                                                                                              \
        __auto_type a = read(x);                                                                   \
        return a != a        ? 0                                                                   \
               : !(not_less) ? (uint64_t)(less)                                                    \
               : !(not_more) ? (uint64_t)(more)                                                    \
                             : SLOT_OF(T, (T)a);                                                   \
    }
TRUNCATIONS(DO_TRUNCATE)
#define DO_LOAD(op, T, R)                                                                          \
    INLINE slot o_##op(const uint8_t *memory, uint64_t memory_n, slot base, uint32_t offset,       \
                       unsigned *trap)                                                             \
    {                                                                                              \
        uint64_t at = (uint64_t)(uint32_t)base + offset;                                           \
        T v;                                                                                       \
        TRAP_IF(at + sizeof v > memory_n, BH_WASM_BAD_MEMORY);                                     \
        memcpy(&v, memory + at, sizeof v);                                                         \
        return (R)v;                                                                               \
    }
LOADS(DO_LOAD)
#define DO_STORE(op, T)                                                                            \
    INLINE slot o_##op(uint8_t *memory, uint64_t memory_n, slot base, slot value, uint32_t offset, \
                       unsigned *trap)                                                             \
    {                                                                                              \
        uint64_t at = (uint64_t)(uint32_t)base + offset;                                           \
        T v = (T)value;                                                                            \
        TRAP_IF(at + sizeof v > memory_n, BH_WASM_BAD_MEMORY);                                     \
        memcpy(memory + at, &v, sizeof v);                                                         \
        return 0;                                                                                  \
    }
STORES(DO_STORE)
INLINE slot memory_copy(view *w, slot to, slot from, slot n, unsigned *trap)
{
    TRAP_IF((uint64_t)(uint32_t)to + (uint32_t)n > w->memory_n ||
                (uint64_t)(uint32_t)from + (uint32_t)n > w->memory_n,
            BH_WASM_BAD_MEMORY);
    if ((uint32_t)n)
        memmove(w->memory + (uint32_t)to, w->memory + (uint32_t)from, (uint32_t)n);
    return 0;
}
INLINE slot memory_fill(view *w, slot to, slot byte, slot n, unsigned *trap)
{
    TRAP_IF((uint64_t)(uint32_t)to + (uint32_t)n > w->memory_n, BH_WASM_BAD_MEMORY);
    if ((uint32_t)n)
        memset(w->memory + (uint32_t)to, (int)(byte & 0xff), (uint32_t)n);
    return 0;
}
INLINE slot table_get(const struct live_table *t, slot i, unsigned *trap)
{
    TRAP_IF((uint32_t)i >= t->n, BH_WASM_BAD_TABLE);
    return t->refs[(uint32_t)i];
}
INLINE slot table_set(const struct live_table *t, slot i, slot ref, unsigned *trap)
{
    TRAP_IF((uint32_t)i >= t->n, BH_WASM_BAD_TABLE);
    t->refs[(uint32_t)i] = (uint32_t)ref;
    return 0;
}
/* The function that a call through a table means: its index + 1. */
INLINE uint32_t table_call(const struct live_table *t, slot i, unsigned *trap)
{
    TRAP_IF((uint32_t)i >= t->n || !t->refs[(uint32_t)i], BH_WASM_BAD_TABLE);
    return t->refs[(uint32_t)i];
}
#undef TRAP

/* In a function's body: w, trap, steps, memory, memory_n. A memory has never less than MEMORY_MIN bytes, which
 * the C of a guest defines: an address that is always below is not looked at. */
#define SIZE_OF_MEMORY()                                                                           \
    do {                                                                                           \
        memory_n = w->memory_n;                                                                    \
        if (memory_n < MEMORY_MIN)                                                                 \
            __builtin_unreachable();                                                               \
    } while (0)
#define TRAP(kind)                                                                                 \
    do {                                                                                           \
        trap = (kind);                                                                             \
        goto trapped;                                                                              \
    } while (0)
#define CHECK(ok, kind)                                                                            \
    if (__builtin_expect(!(ok), 0))                                                                \
    TRAP(kind)
#define MAY_TRAP()                                                                                 \
    if (__builtin_expect(trap != 0, 0))                                                            \
    goto trapped
/* steps is in a register: its address is nobody's. */
#define GO_ON()                                                                                    \
    do {                                                                                           \
        if (__builtin_expect(steps < 0, 0)) {                                                      \
            w->steps = steps;                                                                      \
            if (!w->help->look(w))                                                                 \
                TRAP(BH_WASM_TIME);                                                                \
            steps = w->steps;                                                                      \
        }                                                                                          \
    } while (0)
#define JUMP(by, to)                                                                               \
    do {                                                                                           \
        steps += (by)-1;                                                                           \
        if ((by) < 1) /* one forward gives steps back */                                           \
            GO_ON();                                                                               \
        goto to;                                                                                   \
    } while (0)
/* A frame for a function that has so many slots, from slot `at` of ours on. */
#define ENTER(at, has)                                                                             \
    do {                                                                                           \
        CHECK(w->depth && w->slots - (at) >= (has), BH_WASM_DEPTH);                                \
        if (__builtin_expect((const char *)__builtin_frame_address(0) <= w->stack_low, 0)) {       \
            w->no_stack = true;                                                                    \
            TRAP(BH_WASM_DEPTH);                                                                   \
        }                                                                                          \
        w->depth--;                                                                                \
        w->slots -= (at);                                                                          \
        w->steps = steps;                                                                          \
    } while (0)
#define LEAVE(at)                                                                                  \
    do {                                                                                           \
        MAY_TRAP();                                                                                \
        w->depth++;                                                                                \
        w->slots += (at);                                                                          \
        steps = w->steps;                                                                          \
        SIZE_OF_MEMORY();                                                                          \
    } while (0)
#define HOST(func, v)                                                                              \
    do {                                                                                           \
        steps -= HOST_STEPS;                                                                       \
        w->host_func = (func);                                                                     \
        CHECK(w->host[func]((struct bh_wasm *)w, w->user, v), BH_WASM_HOST);                       \
        GO_ON();                                                                                   \
    } while (0)
/* The same of a function that may be the reader: (at, limit) -> length. */
#define READ(func, at, limit)                                                                      \
    do {                                                                                           \
        if (__builtin_expect(w->reader == (func), 1)) {                                            \
            steps -= HOST_STEPS;                                                                   \
            at = bh_wasm_read_text(w, memory, memory_n, (uint32_t)at, (uint32_t)limit);            \
            GO_ON();                                                                               \
        } else {                                                                                   \
            slot v[2] = {at, limit};                                                               \
            HOST(func, v);                                                                         \
            at = v[0];                                                                             \
        }                                                                                          \
    } while (0)
static __attribute__((cold, noinline, unused)) unsigned left(view *w, uint32_t func, unsigned trap)
{
    if (w->n_frames < FRAMES_KEPT)
        w->frames[w->n_frames++] = func;
    return trap;
}
#endif
#endif
