/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/twin.c - a compiled instance and an interpreted one that have to do the same
 *
 * The compiled one runs first. What its host functions were asked and answered, and the memory that
 * they took, before and after, is written down; the interpreted one is given the same in the same
 * order, so that clocks, random numbers and effects are there once. Then how both ended, their
 * results, memory and stack trace are compared.
 *
 * Invariants: a call that ended by its time, or where the thread's own stack does, is not compared:
 *             the two do not take the same. What they remember differs from then on, so the
 *             interpreted one goes.
 */
#include <errno.h>

#include "common/wasm/wasm_int.h"

#define SLOWER 100u /* as much time as this has the interpreted one, if there is a limit */

struct region { /* of memory that a host function took */
    struct region *next;
    uint32_t at, n;
    const uint8_t *before, *after;
};
struct asked { /* a call of a host function */
    struct asked *next;
    uint32_t func;
    bool good;
    const uint64_t *v, *results;
    const char *why;
    struct region *regions, **end;
};
struct bh_wasm_twin {
    struct bh_wasm *w; /* the interpreted one; NULL: it is gone */
    struct bh_wasm_host *hosts;
    struct bh_arena a; /* of the call's notes */
    struct asked *first, **last, *next;
    struct bh_buf differs;
};

static const struct func_type *type_of(const struct bh_wasm *w, uint32_t func)
{
    return &w->m->types[w->m->funcs[func].type];
}

static void differ(struct bh_wasm_twin *t, const char *fmt, ...) BH_PRINTF(2, 3);
static void differ(struct bh_wasm_twin *t, const char *fmt, ...)
{
    va_list ap;

    if (t->differs.n)
        return;
    va_start(ap, fmt);
    bh_buf_vaddf(&t->differs, fmt, ap);
    va_end(ap);
}

/* ---- the compiled one: notes ------------------------------------------------------------------- */

void bh_wasm_note(struct bh_wasm *w, uint32_t at, uint32_t n)
{
    struct bh_wasm_twin *t = w->twin;
    struct asked *last = bh_container_of(t->last, struct asked, next);
    struct region *r = bh_arena_new(&t->a, struct region);

    *r = (struct region){.at = at, .n = n};
    r->before = bh_arena_memdup(&t->a, w->x.memory + at, n);
    *last->end = r;
    last->end = &r->next;
}

/* In the place of all host functions. */
static bool note(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_wasm_twin *t = w->twin;
    const uint32_t func = w->x.host_func;
    const struct func_type *type = type_of(w, func);
    struct asked *a = bh_arena_new(&t->a, struct asked);

    *a = (struct asked){.func = func, .end = &a->regions};
    a->v = bh_arena_memdup(&t->a, v, type->params * sizeof *v);
    *t->last = a;
    t->last = &a->next;
    w->noted = true;
    a->good = w->hosts[func]->call(w, user, v);
    w->noted = false;
    a->results = bh_arena_memdup(&t->a, v, type->results * sizeof *v);
    a->why = bh_arena_strndup(&t->a, bh_buf_str(&w->why), w->why.n);
    for (struct region *r = a->regions; r; r = r->next)
        r->after = bh_arena_memdup(&t->a, w->x.memory + r->at, r->n);
    return a->good;
}

/* ---- the interpreted one: given the same ------------------------------------------------------- */

static bool overlaps(const struct region *first, const struct region *r)
{
    for (; first != r; first = first->next)
        if ((uint64_t)first->at + first->n > r->at && (uint64_t)r->at + r->n > first->at)
            return true;
    return false;
}

static bool give(struct bh_wasm *w, void *user, uint64_t *v)
{
    struct bh_wasm_twin *t = user;
    const struct func_type *type = type_of(w, w->x.host_func);
    const struct asked *a = t->next;

    if (!a || a->func != w->x.host_func || memcmp(v, a->v, type->params * sizeof *v) != 0) {
        differ(t, "it calls function %u of the host, with these arguments, only interpreted",
               w->x.host_func);
        return bh_wasm_fail(w, "verify");
    }
    t->next = a->next;
    for (const struct region *r = a->regions; r; r = r->next)
        if ((uint64_t)r->at + r->n > w->x.memory_n ||
            (!overlaps(a->regions, r) && memcmp(w->x.memory + r->at, r->before, r->n) != 0)) {
            differ(t, "function %u of the host is given other memory at %u", a->func, r->at);
            return bh_wasm_fail(w, "verify");
        }
    for (const struct region *r = a->regions; r; r = r->next)
        memcpy(w->x.memory + r->at, r->after, r->n);
    memcpy(v, a->results, type->results * sizeof *v);
    return a->good || bh_wasm_fail(w, "%s", a->why);
}

/* ---- both -------------------------------------------------------------------------------------- */

static void compare(struct bh_wasm *w, uint32_t func, const uint64_t *v, const uint64_t *others)
{
    struct bh_wasm_twin *t = w->twin;
    const struct bh_wasm *o = t->w;
    struct bh_buf mine BH_CLEANUP(bh_buf_fini) = {0}, its BH_CLEANUP(bh_buf_fini) = {0};

    bh_wasm_add_trap(w, &mine);
    bh_wasm_add_trap(o, &its);
    if (w->trap != o->trap || (w->trap != BH_WASM_DONE && mine.n != its.n) ||
        (w->trap != BH_WASM_DONE && memcmp(mine.p, its.p, mine.n) != 0))
        differ(t, "compiled: %s\ninterpreted: %s", bh_buf_str(&mine), bh_buf_str(&its));
    if (t->next)
        differ(t, "it calls function %u of the host only compiled", t->next->func);
    for (uint32_t i = 0; w->trap == BH_WASM_DONE && i < type_of(w, func)->results; i++)
        if (v[i] != others[i])
            differ(t, "result %u is 0x%llx compiled, 0x%llx interpreted", i,
                   (unsigned long long)v[i], (unsigned long long)others[i]);
    if (w->x.memory_n != o->x.memory_n)
        differ(t, "it has %llu bytes of memory compiled, %llu interpreted",
               (unsigned long long)w->x.memory_n, (unsigned long long)o->x.memory_n);
    else if (w->x.memory_n && memcmp(w->x.memory, o->x.memory, w->x.memory_n) != 0)
        differ(t, "its memory is another one");
}

enum bh_wasm_trap bh_wasm_call_twice(struct bh_wasm *w, uint32_t func, uint64_t *v)
{
    struct bh_wasm_twin *t = w->twin;
    const struct func_type *type = type_of(w, func);
    const size_t n = BH_MAX(type->params, type->results) * sizeof *v;

    bh_arena_reset(&t->a);
    t->first = NULL;
    t->last = &t->first;
    uint64_t *others = bh_arena_memdup(&t->a, v, n);
    enum bh_wasm_trap trap = bh_wasm_call_once(w, func, v);
    if (!t->w)
        return trap;
    t->next = t->first;
    if (trap == BH_WASM_TIME || w->x.no_stack ||
        bh_wasm_call_once(t->w, func, others) == BH_WASM_TIME) {
        bh_wasm_free(bh_take_ptr(t->w));
        return trap;
    }
    compare(w, func, v, others);
    return trap;
}

int bh_wasm_verify(struct bh_wasm *w, struct bh_err *err)
{
    const uint32_t n = w->m->n_imported_funcs;
    struct bh_wasm_limits limits = w->limits;
    struct bh_wasm_twin *t;

    bh_assert(!w->twin && w->compiled);
    t = bh_calloc(1, sizeof *t);
    bh_arena_init(&t->a, 0);
    limits.call_ns *= SLOWER;
    t->hosts = bh_calloc(n + 1, sizeof *t->hosts);
    for (uint32_t i = 0; i < n; i++) {
        t->hosts[i] = *w->hosts[i];
        t->hosts[i].call = give;
        w->x.host[i] = note;
    }
    w->twin = t;
    int rc = bh_wasm_new(w->m, t->hosts, n, t, &limits, &t->w, err);
    if (rc == 0)
        t->w->compiled = NULL;
    return rc;
}

const char *bh_wasm_differs(const struct bh_wasm *w)
{
    return w->twin && w->twin->differs.n ? bh_buf_str(&w->twin->differs) : NULL;
}

void bh_wasm_twin_free(struct bh_wasm_twin *t)
{
    if (!t)
        return;
    bh_wasm_free(t->w);
    free(t->hosts);
    bh_arena_fini(&t->a);
    bh_buf_fini(&t->differs);
    free(t);
}
