/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/instance.c - an instance: imports, memory, tables, calls
 *
 * The memory's address space is kept from the beginning up to its limit and given pages as it
 * grows, so that it never moves.
 */
#include "common/wasm/wasm_int.h"
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

/* ---- memory and tables ------------------------------------------------------------------------- */
uint32_t bh_wasm_memory_grow(struct bh_wasm *w, uint32_t pages)
{
    uint64_t before = w->x.memory_n / BH_WASM_PAGE, after = (before + pages) * BH_WASM_PAGE;

    if (after > w->memory_cap)
        return UINT32_MAX;
    if (pages && mprotect(w->x.memory, after, PROT_READ | PROT_WRITE) < 0)
        return UINT32_MAX;
    w->x.memory_n = after;
    return (uint32_t)before;
}

bool bh_wasm_memory_init(struct bh_wasm *w, uint32_t data, uint32_t to, uint32_t from, uint32_t n)
{
    const struct segment *s = &w->m->datas[data];
    uint32_t has = w->x.gone_datas[data] ? 0 : s->n;

    if ((uint64_t)from + n > has || (uint64_t)to + n > w->x.memory_n)
        return false;
    if (n)
        memcpy(w->x.memory + to, s->bytes + from, n);
    return true;
}

uint32_t bh_wasm_table_grow(struct bh_wasm *w, uint32_t table, uint32_t n, uint32_t ref)
{
    struct live_table *t = &w->x.tables[table];
    uint32_t before = t->n;

    if (n > t->max - t->n || n > w->limits.elements - w->n_elements)
        return UINT32_MAX;
    t->refs = bh_reallocarray(t->refs, (size_t)t->n + n + 1, sizeof *t->refs);
    for (uint32_t i = 0; i < n; i++)
        t->refs[before + i] = ref;
    t->n += n;
    w->n_elements += n;
    return before;
}

bool bh_wasm_table_fill(struct bh_wasm *w, uint32_t table, uint32_t at, uint32_t ref, uint32_t n)
{
    struct live_table *t = &w->x.tables[table];

    if ((uint64_t)at + n > t->n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        t->refs[at + i] = ref;
    return true;
}

bool bh_wasm_table_init(struct bh_wasm *w, uint32_t table, uint32_t elem, uint32_t to,
                        uint32_t from, uint32_t n)
{
    const struct segment *s = &w->m->elems[elem];
    struct live_table *t = &w->x.tables[table];
    uint32_t has = w->x.gone_elems[elem] ? 0 : s->n;

    if ((uint64_t)from + n > has || (uint64_t)to + n > t->n)
        return false;
    if (n)
        memcpy(t->refs + to, s->refs + from, n * sizeof *t->refs);
    return true;
}

bool bh_wasm_table_copy(struct bh_wasm *w, uint32_t table, uint32_t other, uint32_t to,
                        uint32_t from, uint32_t n)
{
    struct live_table *t = &w->x.tables[table], *o = &w->x.tables[other];

    if ((uint64_t)from + n > o->n || (uint64_t)to + n > t->n)
        return false;
    if (n)
        memmove(t->refs + to, o->refs + from, n * sizeof *t->refs);
    return true;
}

/* ---- beginning --------------------------------------------------------------------------------- */
static int link_import(struct bh_wasm *w, const struct bh_wasm_item *item,
                       const struct bh_wasm_host *hosts, size_t n_hosts, struct bh_err *err)
{
    struct bh_buf what BH_CLEANUP(bh_buf_fini) = {0};
    const struct bh_wasm_host *found = NULL;

    bh_wasm_add_name(&what, item->module);
    bh_buf_addc(&what, '.');
    bh_wasm_add_name(&what, item->name);
    if (item->kind != BH_WASM_FUNC)
        return bh_err_set(err, -EOPNOTSUPP, "import %s: only functions can be imported",
                          bh_buf_str(&what));
    const char *type = w->m->types[w->m->funcs[item->index].type].word;
    for (size_t i = 0; i < n_hosts; i++)
        if (bh_str_eqc(item->module, hosts[i].module) && bh_str_eqc(item->name, hosts[i].name)) {
            found = &hosts[i];
            if (bh_streq(found->type, type)) {
                w->hosts[item->index] = found;
                w->x.host[item->index] = found->call;
                return 0;
            }
        }
    if (!found)
        return bh_err_set(err, -ENOENT, "import %s: there is no such function", bh_buf_str(&what));
    bh_buf_adds(&what, ": it is imported as ");
    bh_wasm_add_func_type(&what, type);
    bh_buf_adds(&what, ", and is ");
    bh_wasm_add_func_type(&what, found->type);
    return bh_err_set(err, -EPROTOTYPE, "import %s", bh_buf_str(&what));
}

static int make_memory(struct bh_wasm *w, struct bh_err *err)
{
    const struct limits *s = &w->m->memory;
    uint32_t pages = BH_MIN(BH_MIN(w->limits.pages, MAX_PAGES), s->max);
    void *p;

    if (!w->m->n_memories)
        return 0;
    if (s->min > pages)
        return bh_err_set(err, -E2BIG, "needs %u pages of memory (64 KiB each): the limit is %u",
                          s->min, pages);
    p = mmap(NULL, BH_MAX(pages, 1u) * BH_WASM_PAGE, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return bh_err_set(err, -ENOMEM, "no address space for %u pages of memory", pages);
    w->x.memory = p;
    w->memory_cap = pages * BH_WASM_PAGE;
    if (bh_wasm_memory_grow(w, s->min) == UINT32_MAX)
        return bh_err_set(err, -ENOMEM, "no memory for %u pages", s->min);
    return 0;
}

static int make_tables(struct bh_wasm *w, struct bh_err *err)
{
    const struct bh_wasm_module *m = w->m;

    w->x.tables = bh_calloc(m->n_tables + 1, sizeof *w->x.tables);
    for (uint32_t i = 0; i < m->n_tables; i++) {
        w->x.tables[i].max = m->tables[i].size.max;
        if (bh_wasm_table_grow(w, i, m->tables[i].size.min, 0) == UINT32_MAX)
            return bh_err_set(err, -E2BIG, "table %u needs %u elements: the limit for all is %u", i,
                              m->tables[i].size.min, w->limits.elements);
    }
    return 0;
}

static int place_segments(struct bh_wasm *w, struct bh_err *err)
{
    const struct bh_wasm_module *m = w->m;

    for (uint32_t i = 0; i < m->n_elems; i++) {
        const struct segment *s = &m->elems[i];
        if (s->active && !bh_wasm_table_init(w, s->table, i, (uint32_t)s->offset.value, 0, s->n))
            return bh_err_set(err, -EFAULT, "out of bounds table access: element segment %u", i);
        w->x.gone_elems[i] = s->active || s->declared;
    }
    for (uint32_t i = 0; i < m->n_datas; i++) {
        const struct segment *s = &m->datas[i];
        if (s->active && !bh_wasm_memory_init(w, i, (uint32_t)s->offset.value, 0, s->n))
            return bh_err_set(err, -EFAULT, "out of bounds memory access: data segment %u", i);
        w->x.gone_datas[i] = s->active;
    }
    return 0;
}

static int set_up(struct bh_wasm *w, const struct bh_wasm_host *hosts, size_t n_hosts,
                  struct bh_err *err)
{
    const struct bh_wasm_module *m = w->m;
    int rc = 0;

    w->hosts = bh_calloc(m->n_imported_funcs + 1, sizeof *w->hosts);
    w->x.host = bh_calloc(m->n_imported_funcs + 1, sizeof *w->x.host);
    w->x.help = &bh_wasm_help;
    for (uint32_t i = 0; i < m->n_imports && rc == 0; i++)
        rc = link_import(w, &m->imports[i], hosts, n_hosts, err);
    if (rc < 0 || (rc = make_memory(w, err)) < 0 || (rc = make_tables(w, err)) < 0)
        return rc;
    w->x.globals = bh_calloc(m->n_globals + 1, sizeof *w->x.globals);
    for (uint32_t i = 0; i < m->n_globals; i++) {
        const struct constant *c = &m->globals[i].init;
        w->x.globals[i] = c->value; /* none is imported */
    }
    w->x.gone_elems = bh_calloc(m->n_elems + 1, sizeof *w->x.gone_elems);
    w->x.gone_datas = bh_calloc(m->n_datas + 1, sizeof *w->x.gone_datas);
    w->stack = mmap(NULL, w->limits.slots * sizeof *w->stack, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->stack == MAP_FAILED) {
        w->stack = NULL;
        return bh_err_set(err, -ENOMEM, "no address space for the stack");
    }
    w->returns = bh_reallocarray(NULL, w->limits.depth, sizeof *w->returns);
    return place_segments(w, err);
}

int bh_wasm_new(const struct bh_wasm_module *m, const struct bh_wasm_host *hosts, size_t n_hosts,
                void *user, const struct bh_wasm_limits *limits, struct bh_wasm **ret,
                struct bh_err *err)
{
    struct bh_wasm *w = bh_calloc(1, sizeof *w);
    int rc;

    w->m = m;
    w->x.user = user;
    w->x.reader = NONE;
    w->limits = *limits;
    w->compiled = m->compiled ? m->compiled->entries : NULL;
    rc = set_up(w, hosts, n_hosts, err);
    if (rc < 0)
        bh_wasm_free(w);
    else
        *ret = w;
    return rc;
}

void bh_wasm_free(struct bh_wasm *w)
{
    if (!w)
        return;
    if (w->x.memory)
        munmap(w->x.memory, BH_MAX(w->memory_cap, BH_WASM_PAGE));
    if (w->stack)
        munmap(w->stack, w->limits.slots * sizeof *w->stack);
    for (uint32_t i = 0; w->x.tables && i < w->m->n_tables; i++)
        free(w->x.tables[i].refs);
    free(w->x.tables);
    free(w->x.globals);
    free(w->x.gone_elems);
    free(w->x.gone_datas);
    free(w->hosts);
    free(w->x.host);
    free(w->returns);
    bh_wasm_twin_free(w->twin);
    bh_buf_fini(&w->why);
    free(w);
}

/* ---- calls ------------------------------------------------------------------------------------- */
/* What a compiled function's frame, the run time and host functions may need below the last look. */
#define STACK_MARGIN ((size_t)512 << 10)

static __attribute__((noinline)) const char *find_stack_low(void)
{
    pthread_attr_t attr;
    void *at = NULL;
    size_t n = 0;

    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return NULL;
    (void)pthread_attr_getstack(&attr, &at, &n);
    (void)pthread_attr_destroy(&attr);
    return (const char *)at + BH_MIN(STACK_MARGIN, n);
}

/* The lowest address of this thread's stack that a frame may begin at. */
static inline const char *stack_low(void)
{
    static _Thread_local const char *low;

    if (bh_unlikely(!low))
        low = find_stack_low();
    return low;
}

/* As bh_wasm_run(), of an instance that is compiled. v: arguments, and then results; untouched by a
 * trap. */
static inline enum bh_wasm_trap run_compiled(struct bh_wasm *w, uint32_t func, uint64_t *v)
{
    struct bh_wasm_view *x = &w->x;

    if (!w->limits.depth || w->limits.slots < w->m->funcs[func].slots)
        return BH_WASM_DEPTH;
    x->steps = STEPS_A_LOOK;
    x->slots = w->limits.slots;
    x->stack_low = stack_low();
    x->depth = w->limits.depth - 1;
    return (enum bh_wasm_trap)w->compiled[func - w->m->n_imported_funcs](x, v);
}

static void put_arguments(struct bh_wasm *w, const struct func_type *t, const uint64_t *v)
{
    for (uint32_t i = 0; i < t->params; i++)
        w->stack[i] = t->v[i] == I32 || t->v[i] == F32 ? (uint32_t)v[i] : v[i];
}

/* A host function, or what is interpreted. */
static __attribute__((noinline)) enum bh_wasm_trap run(struct bh_wasm *w, uint32_t func,
                                                       const struct func_type *t, uint64_t *v)
{
    size_t more = BH_MAX(t->params, t->results);

    w->returned = w->returns;
    if (w->limits.slots < more || w->limits.slots < w->m->funcs[func].slots)
        return BH_WASM_DEPTH;
    put_arguments(w, t, v);
    if (func >= w->m->n_imported_funcs) {
        w->trap = w->compiled ? run_compiled(w, func, w->stack) : bh_wasm_run(w, func, NULL);
    } else {
        w->x.host_func = func;
        w->trap = w->x.host[func](w, w->x.user, w->stack) ? BH_WASM_DONE : BH_WASM_HOST;
    }
    for (uint32_t i = 0; w->trap == BH_WASM_DONE && i < t->results; i++)
        v[i] = w->stack[i];
    return w->trap;
}

void bh_wasm_set_due(struct bh_wasm *w, uint64_t mono_ns)
{
    w->due_ns = mono_ns;
}

enum bh_wasm_trap bh_wasm_call_once(struct bh_wasm *w, uint32_t func, uint64_t *v)
{
    const struct func *f = &w->m->funcs[func];

    bh_assert(!w->running);
    w->running = true;
    w->until_ns = 0;
    w->steps = w->limits.steps;
    w->at = NULL;
    w->x.n_frames = 0;
    w->x.no_stack = false;
    if (w->why.n)
        bh_buf_reset(&w->why);
    if (w->compiled && !f->params && func >= w->m->n_imported_funcs)
        w->trap = run_compiled(w, func, v); /* straight to where the results belong */
    else
        w->trap = run(w, func, &w->m->types[f->type], v);
    w->running = false;
    return w->trap;
}

enum bh_wasm_trap bh_wasm_call(struct bh_wasm *w, uint32_t func, uint64_t *v)
{
    return bh_unlikely(w->twin != NULL) ? bh_wasm_call_twice(w, func, v)
                                        : bh_wasm_call_once(w, func, v);
}

/* ---- many calls -------------------------------------------------------------------------------- */
static uint32_t find_reader(const struct bh_wasm *w, const struct bh_wasm_questions *q)
{
    if (q->reader && !w->twin) /* the twin has to be told what was asked */
        for (uint32_t i = 0; i < w->m->n_imported_funcs; i++)
            if (w->hosts[i]->call == q->reader && bh_streq(w->hosts[i]->type, BH_WASM_READER))
                return i;
    return NONE;
}

/* A call that only read what it is about leaves host_func as it is, and with it all that a call needs. */
static __attribute__((noinline)) void begin_anew(struct bh_wasm *w,
                                                 const struct bh_wasm_questions *q)
{
    w->x.host_func = NONE;
    w->until_ns = 0;
    w->steps = w->limits.steps;
    if (q->between)
        q->between(w->x.user);
}

static inline void set_about(struct bh_wasm_view *x, const struct bh_str *s)
{
    x->about = s->p;
    x->about_n = s->n;
}

/* One question, with all that a call takes. */
static enum bh_wasm_trap ask_one(struct bh_wasm *w, const struct bh_wasm_questions *q, uint32_t i,
                                 uint64_t *v)
{
    if (w->x.host_func != NONE)
        begin_anew(w, q);
    set_about(&w->x, &q->texts[q->about[i]]);
    return bh_wasm_call(w, q->func, v);
}

/* Those after the first of a compiled function: what a call that did not trap leaves is what the next one
 * needs, but for its time. Looking at the clock notes itself in host_func. */
static uint32_t ask_compiled(struct bh_wasm *w, const struct bh_wasm_questions *q, uint64_t *v)
{
    struct bh_wasm_view *x = &w->x;
    bh_wasm_entry *const entry = w->compiled[q->func - w->m->n_imported_funcs];
    const struct bh_str *const texts = q->texts;
    const uint32_t *about = q->about + 1, *const end = q->about + q->n;
    int64_t *ret = q->ret + 1;
    unsigned trap = BH_WASM_DONE;

    w->running = true;
    for (; about < end; about++) {
        if (bh_unlikely(x->host_func != NONE))
            begin_anew(w, q);
        set_about(x, &texts[*about]);
        x->steps = STEPS_A_LOOK;
        trap = entry(x, v);
        if (bh_unlikely(trap != BH_WASM_DONE || (uint32_t)*v))
            break;
        *ret++ = (int64_t)*v >> 32;
    }
    w->trap = (enum bh_wasm_trap)trap;
    w->running = false;
    return (uint32_t)(about - q->about);
}

enum bh_wasm_trap bh_wasm_ask(struct bh_wasm *w, const struct bh_wasm_questions *q,
                              uint32_t *ret_done, uint64_t *ret_code)
{
    const struct bh_wasm_module *m = w->m;
    const bool straight = w->compiled && !w->twin && q->func >= m->n_imported_funcs;
    uint32_t i = 0;
    uint64_t v = 0;

    bh_assert(bh_streq(m->types[m->funcs[q->func].type].word, ":I"));
    w->trap = BH_WASM_DONE;
    w->x.reader = find_reader(w, q);
    w->x.host_func = NONE;
    while (i < q->n && ask_one(w, q, i, &v) == BH_WASM_DONE && !(uint32_t)v) {
        q->ret[i++] = (int64_t)v >> 32;
        if (straight) {
            i = ask_compiled(w, q, &v);
            break;
        }
    }
    w->x.reader = NONE;
    w->x.about = NULL;
    *ret_done = i;
    *ret_code = i < q->n && w->trap == BH_WASM_DONE ? v : 0;
    return w->trap;
}

struct bh_str bh_wasm_about(const struct bh_wasm *w)
{
    return (struct bh_str){w->x.about, w->x.about_n};
}

enum bh_wasm_trap bh_wasm_start(struct bh_wasm *w)
{
    uint64_t none = 0;

    return w->m->start == NONE ? BH_WASM_DONE : bh_wasm_call(w, w->m->start, &none);
}

bool bh_wasm_fail(struct bh_wasm *w, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&w->why, fmt, ap);
    va_end(ap);
    return false;
}

static __attribute__((noinline)) void *noted_memory(struct bh_wasm *w, uint32_t at, uint32_t n)
{
    bh_wasm_note(w, at, n);
    return w->x.memory + at;
}

void *bh_wasm_memory(struct bh_wasm *w, uint32_t at, uint32_t n)
{
    if (!w->x.memory || (uint64_t)at + n > w->x.memory_n)
        return NULL;
    return bh_unlikely(w->noted) ? noted_memory(w, at, n) : w->x.memory + at;
}

uint32_t bh_wasm_pages(const struct bh_wasm *w)
{
    return (uint32_t)(w->x.memory_n / BH_WASM_PAGE);
}
