/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/module.c - a file's sections into a module
 */
#include "common/base/utf8.h"
#include "common/wasm/wasm_int.h"
#include <errno.h>

/* What one file may have. Others' engines have these limits too, or lower ones. */
#define MAX_TYPES    1000000u
#define MAX_FUNCS    1000000u
#define MAX_EXTERNS  100000u
#define MAX_GLOBALS  1000000u
#define MAX_SEGMENTS 100000u
#define MAX_ELEMENTS 10000000u
#define MAX_PARAMS   255u
#define MAX_RESULTS  64u

enum section {
    CUSTOM,
    TYPES,
    IMPORTS,
    FUNCTIONS,
    TABLES,
    MEMORIES,
    GLOBALS,
    EXPORTS,
    START,
    ELEMENTS,
    CODE,
    DATA,
    DATA_COUNT,
    TAGS
};

struct loader {
    struct reader r;
    struct bh_wasm_module *m;
    uint32_t n_bodies;
    const uint8_t *names, *names_end;
};

static void bad(struct loader *l, const uint8_t *at, const char *what)
{
    bh_wasm_bad(&l->r, -EINVAL, at, "%s", what);
}

static void *new_array(struct loader *l, uint32_t n, size_t size)
{
    return bh_arena_array(&l->m->arena, BH_MAX(n, 1u), size);
}

static uint32_t below(struct loader *l, uint32_t n, const char *what)
{
    const uint8_t *at = l->r.p;
    uint32_t i = bh_wasm_u32(&l->r);

    if (!l->r.rc && i >= n)
        bh_wasm_bad(&l->r, -EINVAL, at, "unknown %s %u: there are %u", what, i, n);
    return l->r.rc ? 0 : i;
}

static struct bh_str text(struct loader *l)
{
    uint32_t n = bh_wasm_count(&l->r, UINT32_MAX, "bytes of a name");
    struct bh_str s = {(const char *)l->r.p, n};

    for (size_t i = 0, w; i < n && !l->r.rc; i += w) {
        w = bh_utf8_len(s.p + i, s.p + n);
        if (!w)
            bad(l, l->r.p + i, "a name is not UTF-8");
    }
    if (!l->r.rc)
        l->r.p += n;
    return s;
}

/* ---- types ----------------------------------------------------------------------------------- */
static char letter(uint8_t type)
{
    static const char by_code[] = {[I32 - 0x6f] = 'i',     [I64 - 0x6f] = 'I',
                                   [F32 - 0x6f] = 'f',     [F64 - 0x6f] = 'F',
                                   [FUNCREF - 0x6f] = 'r', [EXTERNREF - 0x6f] = 'x'};

    return by_code[type - 0x6f];
}

static void use_type(struct loader *l, uint8_t type)
{
    if (type == FUNCREF || type == EXTERNREF)
        l->m->features |= REFERENCES;
}

static void read_type(struct loader *l, struct func_type *t)
{
    const uint8_t *at = l->r.p, *p;
    uint8_t form = bh_wasm_u8(&l->r);
    char *word;

    if (form != 0x60) {
        bad(l, at,
            form >= 0x4d && form <= 0x5f
                ? "garbage collection (a type that is no function) is not supported"
                : "a type has to be a function's (0x60)");
        return;
    }
    t->params = bh_wasm_count(&l->r, MAX_PARAMS, "parameters");
    p = l->r.p;
    for (uint32_t i = 0; i < t->params && !l->r.rc; i++)
        use_type(l, bh_wasm_type(&l->r));
    t->results = bh_wasm_count(&l->r, MAX_RESULTS, "results");
    uint8_t *v = new_array(l, t->params + t->results, 1);
    memcpy(v, p, t->params);
    for (uint32_t i = 0; i < t->results && !l->r.rc; i++)
        use_type(l, v[t->params + i] = bh_wasm_type(&l->r));
    t->v = v;
    if (t->results > 1)
        l->m->features |= MULTI_VALUE;
    if (l->r.rc)
        return;
    t->word = word = new_array(l, t->params + t->results + 2, 1);
    for (uint32_t i = 0; i < t->params + t->results; i++)
        word[i + (i >= t->params)] = letter(v[i]);
    word[t->params] = ':';
}

static int by_word(const void *a, const void *b)
{
    const struct func_type *x = *(struct func_type *const *)a, *y = *(struct func_type *const *)b;
    int d = strcmp(x->word, y->word);

    return d ? d : BH_CMP(x, y);
}

static void read_types(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    uint32_t n = bh_wasm_count(&l->r, MAX_TYPES, "types");

    m->types = new_array(l, n, sizeof *m->types);
    for (; m->n_types < n && !l->r.rc; m->n_types++)
        read_type(l, &m->types[m->n_types]);
    if (l->r.rc)
        return;
    struct func_type **sorted = bh_reallocarray(NULL, n + 1, sizeof *sorted);
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = &m->types[i];
    qsort(sorted, n, sizeof(struct func_type *), by_word);
    for (uint32_t i = 0; i < n; i++)
        sorted[i]->id = i && bh_streq(sorted[i]->word, sorted[i - 1]->word)
                            ? sorted[i - 1]->id
                            : (uint32_t)(sorted[i] - m->types);
    free(sorted);
}

static struct limits read_limits(struct loader *l, uint32_t most, const char *what)
{
    const uint8_t *at = l->r.p;
    uint8_t flags = bh_wasm_u8(&l->r);
    struct limits s = {0, BH_WASM_NO_MAX};

    if (flags & 4)
        bad(l, at, "memory64 is not supported");
    else if (flags & 2)
        bad(l, at, "threads (shared memory) are not supported");
    else if (flags & 8)
        bad(l, at, "custom page sizes are not supported");
    else if (flags > 1)
        bad(l, at, "malformed limits");
    at = l->r.p;
    s.min = bh_wasm_u32(&l->r);
    if (flags & 1)
        s.max = bh_wasm_u32(&l->r);
    if (!l->r.rc && s.max < s.min)
        bh_wasm_bad(&l->r, -EINVAL, at, "%s has more at the beginning (%u) than at most (%u)", what,
                    s.min, s.max);
    if (!l->r.rc && (s.min > most || (flags & 1 && s.max > most)))
        bh_wasm_bad(&l->r, -EINVAL, at, "%s has more than %u", what, most);
    return s;
}

static void read_table(struct loader *l)
{
    const uint8_t *at = l->r.p;
    uint8_t first = l->r.p < l->r.end ? *at : 0, type;

    if (first == 0x40) {
        bad(l, at, "typed function references (a table with a first value) are not supported");
        return;
    }
    type = bh_wasm_type(&l->r);
    if (type == EXTERNREF)
        bad(l, at, "tables of externref are not supported");
    else if (type != FUNCREF)
        bad(l, at, "a table has to hold references");
    struct limits s = read_limits(l, UINT32_MAX, "a table");
    if (l->m->n_tables == MAX_TABLES)
        bh_wasm_bad(&l->r, -EFBIG, at, "at most %u tables are supported", MAX_TABLES);
    if (l->r.rc)
        return;
    l->m->tables =
        bh_regrown(l->m->tables, l->m->n_tables, l->m->n_tables + 1, sizeof *l->m->tables);
    l->m->tables[l->m->n_tables++].size = s;
    if (l->m->n_tables > 1)
        l->m->features |= REFERENCES;
}

static void read_memory(struct loader *l)
{
    const uint8_t *at = l->r.p;

    l->m->memory = read_limits(l, MAX_PAGES, "a memory");
    if (l->m->n_memories++)
        bad(l, at, "multiple memories are not supported");
}

static void read_global_type(struct loader *l, struct global *g)
{
    g->type = bh_wasm_type(&l->r);
    use_type(l, g->type);
    const uint8_t *at = l->r.p;
    uint8_t mutable = bh_wasm_u8(&l->r);
    if (mutable & 2)
        bad(l, at, "threads (a shared global) are not supported");
    else if (mutable > 1)
        bad(l, at, "malformed mutability");
    g->mutable = mutable;
}

/* ---- imports and declarations ------------------------------------------------------------------ */
static void read_import(struct loader *l, struct bh_wasm_item *item)
{
    struct bh_wasm_module *m = l->m;

    item->module = text(l);
    item->name = text(l);
    const uint8_t *at = l->r.p;
    uint8_t kind = bh_wasm_u8(&l->r);
    switch (l->r.rc ? (uint8_t)BH_WASM_FUNC : kind) {
    case BH_WASM_FUNC:
        item->index = m->n_funcs;
        m->funcs[m->n_funcs++].type = below(l, m->n_types, "type");
        m->n_imported_funcs++;
        break;
    case BH_WASM_TABLE:
        item->index = m->n_tables;
        read_table(l);
        break;
    case BH_WASM_MEMORY:
        item->index = m->n_memories;
        read_memory(l);
        break;
    case BH_WASM_GLOBAL:
        item->index = m->n_globals;
        read_global_type(l, &m->globals[m->n_globals++]);
        m->n_imported_globals++;
        m->features |= m->globals[item->index].mutable ? MUTABLE_GLOBALS : 0;
        break;
    case 4:
        bad(l, at, "exception handling (a tag) is not supported");
        break;
    default:
        bad(l, at, "malformed kind of an import");
    }
    item->kind = kind;
}

static void read_imports(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    uint32_t n = bh_wasm_count(&l->r, MAX_EXTERNS, "imports");

    m->imports = new_array(l, n, sizeof *m->imports);
    m->funcs = new_array(l, n, sizeof *m->funcs);
    m->globals = new_array(l, n, sizeof *m->globals);
    for (; m->n_imports < n && !l->r.rc; m->n_imports++)
        read_import(l, &m->imports[m->n_imports]);
}

static void read_functions(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    uint32_t n = bh_wasm_count(&l->r, MAX_FUNCS, "functions");
    struct func *v = new_array(l, m->n_funcs + n, sizeof *v);

    if (m->n_funcs)
        memcpy(v, m->funcs, m->n_funcs * sizeof *v);
    m->funcs = v;
    for (uint32_t i = 0; i < n && !l->r.rc; i++)
        m->funcs[m->n_funcs++].type = below(l, m->n_types, "type");
}

/* A constant expression of that type. */
static struct constant read_constant(struct loader *l, uint8_t type)
{
    struct bh_wasm_module *m = l->m;
    const uint8_t *at = l->r.p;
    uint8_t op = bh_wasm_u8(&l->r), has = 0;
    struct constant c = {0};
    uint32_t i;

    switch (op) {
    case 0x41:
        c.value = (uint32_t)bh_wasm_leb(&l->r, 32);
        has = I32;
        break;
    case 0x42:
        c.value = (uint64_t)bh_wasm_leb(&l->r, 64);
        has = I64;
        break;
    case 0x43:
        c.value = bh_wasm_fixed(&l->r, 4);
        has = F32;
        break;
    case 0x44:
        c.value = bh_wasm_fixed(&l->r, 8);
        has = F64;
        break;
    case 0x23:
        i = below(l, m->n_imported_globals, "imported global");
        if (l->r.rc)
            break;
        if (m->globals[i].mutable)
            bad(l, at, "constant expression required: the global is mutable");
        c.imported = true;
        c.value = i;
        has = m->globals[i].type;
        break;
    case 0xd0:
        has = bh_wasm_type(&l->r);
        if (has != FUNCREF && has != EXTERNREF)
            bad(l, at, "ref.null needs the type of a reference");
        break;
    case 0xd2:
        i = below(l, m->n_funcs, "function");
        if (!l->r.rc)
            m->funcs[i].declared = true;
        c.value = i + 1;
        has = FUNCREF;
        break;
    default:
        bad(l, at, "constant expression required");
    }
    if (op >= 0xd0)
        m->features |= REFERENCES;
    if (!l->r.rc && has != type)
        bh_wasm_bad(&l->r, -EINVAL, at, "type mismatch: a constant of %s is needed, this is %s",
                    bh_wasm_type_name(type), bh_wasm_type_name(has));
    at = l->r.p;
    op = bh_wasm_u8(&l->r);
    if (op == 0x6a || op == 0x6b || op == 0x6c || (op >= 0x7c && op <= 0x7e) || op == 0x23 ||
        (op >= 0x41 && op <= 0x44))
        bad(l, at, "extended constant expressions are not supported");
    else if (op != 0x0b)
        bad(l, at, "constant expression required");
    return c;
}

static void read_globals(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    uint32_t n = bh_wasm_count(&l->r, MAX_GLOBALS, "globals");
    struct global *v = new_array(l, m->n_globals + n, sizeof *v);

    if (m->n_globals)
        memcpy(v, m->globals, m->n_globals * sizeof *v);
    m->globals = v;
    for (uint32_t i = 0; i < n && !l->r.rc; i++) {
        struct global *g = &v[m->n_globals];
        read_global_type(l, g);
        g->init = read_constant(l, g->type);
        m->n_globals++;
    }
}

static int by_name(const void *a, const void *b)
{
    struct bh_str x = (*(struct bh_wasm_item *const *)a)->name;
    struct bh_str y = (*(struct bh_wasm_item *const *)b)->name;
    int d = memcmp(x.p, y.p, BH_MIN(x.n, y.n));

    return d ? d : BH_CMP(x.n, y.n);
}

static void read_export(struct loader *l, struct bh_wasm_item *item)
{
    struct bh_wasm_module *m = l->m;

    item->name = text(l);
    const uint8_t *at = l->r.p;
    uint8_t kind = bh_wasm_u8(&l->r);
    switch (l->r.rc ? 0xff : kind) {
    case BH_WASM_FUNC:
        item->index = below(l, m->n_funcs, "function");
        if (!l->r.rc)
            m->funcs[item->index].declared = true;
        break;
    case BH_WASM_TABLE:
        item->index = below(l, m->n_tables, "table");
        break;
    case BH_WASM_MEMORY:
        item->index = below(l, m->n_memories, "memory");
        break;
    case BH_WASM_GLOBAL:
        item->index = below(l, m->n_globals, "global");
        if (!l->r.rc && m->globals[item->index].mutable)
            m->features |= MUTABLE_GLOBALS;
        break;
    case 4:
        bad(l, at, "exception handling (a tag) is not supported");
        break;
    default:
        bad(l, at, "malformed kind of an export");
    }
    item->kind = kind;
}

static void read_exports(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    uint32_t n = bh_wasm_count(&l->r, MAX_EXTERNS, "exports");

    m->exports = new_array(l, n, sizeof *m->exports);
    m->by_name = new_array(l, n, sizeof *m->by_name);
    for (; m->n_exports < n && !l->r.rc; m->n_exports++) {
        m->by_name[m->n_exports] = &m->exports[m->n_exports];
        read_export(l, &m->exports[m->n_exports]);
    }
    if (l->r.rc)
        return;
    qsort(m->by_name, n, sizeof *m->by_name, by_name);
    for (uint32_t i = 1; i < n; i++)
        if (by_name(&m->by_name[i - 1], &m->by_name[i]) == 0)
            bh_wasm_bad(&l->r, -EINVAL, (const uint8_t *)m->by_name[i]->name.p,
                        "duplicate export name");
}

static void read_start(struct loader *l)
{
    const uint8_t *at = l->r.p;
    uint32_t i = below(l, l->m->n_funcs, "function");

    if (!l->r.rc && !bh_streq(l->m->types[l->m->funcs[i].type].word, ":"))
        bad(l, at, "the start function has parameters or results");
    l->m->start = i;
}

/* ---- segments ---------------------------------------------------------------------------------- */
static void read_refs(struct loader *l, struct segment *s, bool expressions, uint8_t type)
{
    s->n = bh_wasm_count(&l->r, MAX_ELEMENTS, "elements of a segment");
    s->refs = new_array(l, s->n, sizeof *s->refs);
    for (uint32_t i = 0; i < s->n && !l->r.rc; i++) {
        if (expressions) {
            struct constant c = read_constant(l, type);
            s->refs[i] = c.imported ? 0 : (uint32_t)c.value; /* no instance has imported globals */
        } else {
            uint32_t f = below(l, l->m->n_funcs, "function");
            if (!l->r.rc)
                l->m->funcs[f].declared = true;
            s->refs[i] = f + 1;
        }
    }
}

static void read_elem(struct loader *l, struct segment *s)
{
    const uint8_t *at = l->r.p;
    uint32_t flags = bh_wasm_u32(&l->r);
    uint8_t type = FUNCREF;
    bool explicit = flags & 2;

    if (flags > 7)
        bad(l, at, "malformed element segment");
    s->active = !(flags & 1);
    s->declared = (flags & 3) == 3;
    if (s->active) {
        s->table = explicit ? bh_wasm_u32(&l->r) : 0;
        if (!l->r.rc && s->table >= l->m->n_tables)
            bh_wasm_bad(&l->r, -EINVAL, at, "unknown table %u: there are %u", s->table,
                        l->m->n_tables);
        s->offset = read_constant(l, I32);
    } else {
        l->m->features |= explicit ? REFERENCES : BULK;
    }
    if (flags & 3) { /* says what it holds: a kind, or a type before expressions */
        at = l->r.p;
        if (flags & 4)
            type = bh_wasm_type(&l->r);
        else if (bh_wasm_u8(&l->r) != 0)
            bad(l, at, "malformed kind of elements");
        if (type != FUNCREF && type != EXTERNREF)
            bad(l, at, "an element segment has to hold references");
        if (s->active && type != FUNCREF)
            bad(l, at, "type mismatch: the table holds funcref");
    }
    read_refs(l, s, flags & 4, type);
    s->type = type;
}

static void read_elems(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    uint32_t n = bh_wasm_count(&l->r, MAX_SEGMENTS, "element segments");

    m->elems = new_array(l, n, sizeof *m->elems);
    for (; m->n_elems < n && !l->r.rc; m->n_elems++)
        read_elem(l, &m->elems[m->n_elems]);
}

static void read_data(struct loader *l, struct segment *s)
{
    const uint8_t *at = l->r.p;
    uint32_t flags = bh_wasm_u32(&l->r), memory = 0;

    if (flags > 2)
        bad(l, at, "malformed data segment");
    s->active = flags != 1;
    if (flags == 2)
        memory = bh_wasm_u32(&l->r);
    if (s->active) {
        if (!l->r.rc && memory >= l->m->n_memories)
            bh_wasm_bad(&l->r, -EINVAL, at, "unknown memory %u", memory);
        s->offset = read_constant(l, I32);
    } else {
        l->m->features |= BULK;
    }
    s->n = bh_wasm_count(&l->r, UINT32_MAX, "bytes of a segment");
    s->bytes = l->r.p;
    if (!l->r.rc)
        l->r.p += s->n;
}

static void read_datas(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    const uint8_t *at = l->r.p;
    uint32_t n = bh_wasm_count(&l->r, MAX_SEGMENTS, "data segments");

    m->datas = new_array(l, n, sizeof *m->datas);
    if (m->said_datas != NONE && m->said_datas != n)
        bad(l, at, "data count and data section have inconsistent lengths");
    for (; m->n_datas < n && !l->r.rc; m->n_datas++)
        read_data(l, &m->datas[m->n_datas]);
}

/* ---- code -------------------------------------------------------------------------------------- */
/* No locals, maybe i32.const 0 or i64.const 0, and the end. */
static bool is_stub(const struct reader *body)
{
    const size_t n = (size_t)(body->end - body->p);

    return (n == 2 && memcmp(body->p, "\x00\x0b", 2) == 0) ||
           (n == 4 && (memcmp(body->p, "\x00\x41\x00\x0b", 4) == 0 ||
                       memcmp(body->p, "\x00\x42\x00\x0b", 4) == 0));
}

static void read_code(struct loader *l)
{
    struct bh_wasm_module *m = l->m;
    const uint8_t *at = l->r.p;
    uint32_t n = bh_wasm_count(&l->r, MAX_FUNCS, "function bodies");
    struct compiler *c;

    if (!l->r.rc && n != m->n_funcs - m->n_imported_funcs)
        bad(l, at, "function and code section have inconsistent lengths");
    c = bh_wasm_compiler_new(m);
    for (; l->n_bodies < n && !l->r.rc; l->n_bodies++) {
        struct reader body = l->r;
        uint32_t size = bh_wasm_count(&l->r, UINT32_MAX, "bytes of a function body");
        if (l->r.rc)
            break;
        body.p = l->r.p;
        body.end = l->r.p += size;
        body.func = m->n_imported_funcs + l->n_bodies;
        m->funcs[body.func].stub = is_stub(&body);
        bh_wasm_compile(c, &body, body.func);
        if (body.rc) {
            l->r.rc = body.rc;
            l->r.p = l->r.end;
        }
    }
    bh_wasm_compiler_free(c);
}

/* ---- sections ---------------------------------------------------------------------------------- */
static void read_all(struct loader *l, uint32_t n, void (*read)(struct loader *l))
{
    for (uint32_t i = 0; i < n && !l->r.rc; i++)
        read(l);
}

static void read_section(struct loader *l, enum section id)
{
    switch (id) {
    case CUSTOM:
        if (bh_str_eqc(text(l), "name")) {
            l->names = l->r.p;
            l->names_end = l->r.end;
        }
        l->r.p = l->r.end;
        break;
    case TYPES:
        read_types(l);
        break;
    case IMPORTS:
        read_imports(l);
        break;
    case FUNCTIONS:
        read_functions(l);
        break;
    case TABLES:
        read_all(l, bh_wasm_count(&l->r, MAX_TABLES, "tables"), read_table);
        break;
    case MEMORIES:
        read_all(l, bh_wasm_count(&l->r, MAX_EXTERNS, "memories"), read_memory);
        break;
    case GLOBALS:
        read_globals(l);
        break;
    case EXPORTS:
        read_exports(l);
        break;
    case START:
        read_start(l);
        break;
    case ELEMENTS:
        read_elems(l);
        break;
    case DATA_COUNT:
        l->m->said_datas = bh_wasm_u32(&l->r);
        l->m->features |= BULK;
        break;
    case CODE:
        read_code(l);
        break;
    case DATA:
        read_datas(l);
        break;
    default:
        break;
    }
}

/* Sections come in this order; custom ones anywhere. */
static int place(uint8_t id)
{
    static const uint8_t order[] = {TYPES,      IMPORTS, FUNCTIONS, TABLES, MEMORIES,
                                    TAGS,       GLOBALS, EXPORTS,   START,  ELEMENTS,
                                    DATA_COUNT, CODE,    DATA};
    const uint8_t *p = memchr(order, id, sizeof order);

    return p ? (int)(p - order) : -1;
}

static void read_sections(struct loader *l)
{
    const uint8_t *end = l->r.end;
    int last = -1;

    while (l->r.p < end && !l->r.rc) {
        const uint8_t *at = l->r.p;
        uint8_t id = bh_wasm_u8(&l->r);
        if (id == TAGS)
            bad(l, at, "exception handling (a tag section) is not supported");
        else if (id != CUSTOM && place(id) < 0)
            bh_wasm_bad(&l->r, -EINVAL, at, "malformed section id %u", id);
        else if (id != CUSTOM && place(id) <= last)
            bad(l, at, "a section is out of order, or there twice");
        uint32_t n = bh_wasm_count(&l->r, UINT32_MAX, "bytes of a section");
        if (l->r.rc)
            return;
        last = id == CUSTOM ? last : place(id);
        l->r.end = l->r.p + n;
        read_section(l, id);
        if (!l->r.rc && l->r.p != l->r.end)
            bad(l, l->r.p, "section size mismatch: there are bytes left");
        l->r.end = end;
    }
    if (!l->r.rc && l->n_bodies != l->m->n_funcs - l->m->n_imported_funcs)
        bad(l, end, "function and code section have inconsistent lengths");
    if (!l->r.rc && l->m->said_datas != NONE && l->m->said_datas != l->m->n_datas)
        bad(l, end, "data count and data section have inconsistent lengths");
}

static void read_file(struct loader *l)
{
    static const uint8_t component[] = {0x0d, 0, 1, 0}, core[] = {1, 0, 0, 0};
    const uint8_t *p = l->r.p;

    if (l->m->file_n < 4 || memcmp(p, "\0asm", 4) != 0)
        bad(l, p, "this is no WebAssembly module: it does not begin with \\0asm");
    else if (l->m->file_n >= 8 && memcmp(p + 4, component, 4) == 0)
        bad(l, p + 4, "components are not supported, modules are");
    else if (l->m->file_n < 8 || memcmp(p + 4, core, 4) != 0)
        bad(l, p + 4, "unknown binary version");
    if (l->r.rc)
        return;
    l->r.p += 8;
    read_sections(l);
    if (!l->r.rc && l->names)
        bh_wasm_read_names(l->m, l->names, l->names_end);
}

int bh_wasm_load(const void *bytes, size_t n, struct bh_wasm_module **ret, struct bh_err *err)
{
    struct bh_wasm_module *m;

    if (n > BH_WASM_BYTES_MAX)
        return bh_err_set(err, -EFBIG, "%zu bytes: a module has at most %zu", n, BH_WASM_BYTES_MAX);
    m = bh_calloc(1, sizeof *m);
    m->start = m->said_datas = NONE;
    m->file = bh_memdup(bytes, n);
    m->file_n = n;
    struct loader l = {
        .r = {.file = m->file, .p = m->file, .end = m->file + n, .err = err, .func = NONE}, .m = m};
    read_file(&l);
    if (l.r.rc)
        bh_wasm_unload(m);
    else
        *ret = m;
    return l.r.rc;
}

void bh_wasm_unload(struct bh_wasm_module *m)
{
    if (!m)
        return;
    bh_arena_fini(&m->arena);
    free(m->tables);
    free(m->code);
    free((void *)m->file);
    free(m);
}
