/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/describe.c - what a module is, and where it trapped, as text
 */
#include "common/base/utf8.h"
#include "common/wasm/wasm_int.h"
#include <errno.h>

#define MAX_FRAMES 30 /* of a stack trace, as wazero's */

/* A name is a stranger's: on one line, whatever is in it. */
void bh_wasm_add_name(struct bh_buf *b, struct bh_str name)
{
    for (size_t i = 0, w; i < name.n; i += w) {
        uint32_t c = bh_utf8_get(name.p + i, name.n - i, &w);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029)
            bh_buf_addc(b, '?');
        else
            bh_buf_add(b, name.p + i, w);
    }
}

static const char *type_of_letter(char c)
{
    switch (c) {
    case 'i':
        return "i32";
    case 'I':
        return "i64";
    case 'f':
        return "f32";
    case 'F':
        return "f64";
    case 'r':
        return "funcref";
    default:
        return "externref";
    }
}

static const char *add_types(struct bh_buf *b, const char *letters)
{
    for (bool first = true; *letters && *letters != ':'; letters++, first = false)
        bh_buf_addf(b, "%s%s", first ? "" : ",", type_of_letter(*letters));
    return letters;
}

void bh_wasm_add_func_type(struct bh_buf *b, const char *word)
{
    bh_buf_addc(b, '(');
    word = add_types(b, word);
    bh_buf_adds(b, ") -> (");
    add_types(b, word + 1);
    bh_buf_addc(b, ')');
}

/* ---- items ------------------------------------------------------------------------------------- */
const struct bh_wasm_item *bh_wasm_imports(const struct bh_wasm_module *m, size_t *ret_n)
{
    *ret_n = m->n_imports;
    return m->imports;
}

const struct bh_wasm_item *bh_wasm_exports(const struct bh_wasm_module *m, size_t *ret_n)
{
    *ret_n = m->n_exports;
    return m->exports;
}

static void add_limits(struct bh_buf *b, const struct limits *s, const char *unit)
{
    bh_buf_addf(b, "%u %s", s->min, unit);
    if (s->max != BH_WASM_NO_MAX)
        bh_buf_addf(b, ", at most %u", s->max);
}

void bh_wasm_add_type(const struct bh_wasm_module *m, const struct bh_wasm_item *item,
                      struct bh_buf *b)
{
    switch (item->kind) {
    case BH_WASM_FUNC:
        bh_buf_adds(b, "func ");
        bh_wasm_add_func_type(b, m->types[m->funcs[item->index].type].word);
        break;
    case BH_WASM_TABLE:
        bh_buf_adds(b, "table ");
        add_limits(b, &m->tables[item->index].size, "funcref");
        break;
    case BH_WASM_MEMORY:
        bh_buf_adds(b, "memory ");
        add_limits(b, &m->memory, "pages");
        break;
    case BH_WASM_GLOBAL:
        bh_buf_addf(b, "global %s%s", m->globals[item->index].mutable ? "mut " : "",
                    bh_wasm_type_name(m->globals[item->index].type));
        break;
    }
}

void bh_wasm_add_features(const struct bh_wasm_module *m, struct bh_buf *b)
{
    static const char *const names[] = {"sign extension",  "saturating truncation",
                                        "bulk memory",     "multi-value",
                                        "reference types", "mutable globals"};
    const char *between = "";

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++)
        if (m->features & 1u << i) {
            bh_buf_addf(b, "%s%s", between, names[i]);
            between = ", ";
        }
}

size_t bh_wasm_code_bytes(const struct bh_wasm_module *m)
{
    return m->n_code * sizeof *m->code;
}

bool bh_wasm_has_start(const struct bh_wasm_module *m)
{
    return m->start != NONE;
}

bool bh_wasm_is_stub(const struct bh_wasm_module *m, uint32_t func)
{
    return m->funcs[func].stub;
}

int bh_wasm_find(const struct bh_wasm_module *m, const char *name, const char *type,
                 uint32_t *ret_func, const char **ret_type)
{
    struct bh_str key = bh_str_c(name);
    uint32_t low = 0, high = m->n_exports;

    while (low < high) { /* as by_name() in module.c */
        uint32_t middle = (low + high) / 2;
        struct bh_str has = m->by_name[middle]->name;
        int d = memcmp(has.p, key.p, BH_MIN(has.n, key.n));
        d = d ? d : BH_CMP(has.n, key.n);
        if (d == 0) {
            const struct bh_wasm_item *item = m->by_name[middle];
            if (item->kind != BH_WASM_FUNC)
                return -EPROTOTYPE;
            const char *own = m->types[m->funcs[item->index].type].word;
            if (ret_type)
                *ret_type = own;
            if (type && !bh_streq(type, own))
                return -EPROTOTYPE;
            *ret_func = item->index;
            return 0;
        }
        if (d < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -ENOENT;
}

/* ---- the name section -------------------------------------------------------------------------- */
static struct bh_str read_name(struct reader *r)
{
    uint32_t n = bh_wasm_count(r, UINT32_MAX, "bytes of a name");
    struct bh_str s = {(const char *)r->p, n};

    r->p += n;
    return s;
}

void bh_wasm_read_names(struct bh_wasm_module *m, const uint8_t *p, const uint8_t *end)
{
    struct reader r = {.file = m->file, .p = p, .end = end, .func = NONE};

    while (r.p < end && !r.rc) {
        uint8_t id = bh_wasm_u8(&r);
        uint32_t size = bh_wasm_count(&r, UINT32_MAX, "bytes");
        const uint8_t *next = r.p + size;
        r.end = next;
        if (id == 0 && !r.rc)
            m->name = read_name(&r);
        uint32_t n = id == 1 ? bh_wasm_count(&r, UINT32_MAX, "names") : 0;
        for (uint32_t i = 0; i < n && !r.rc; i++) {
            uint32_t f = bh_wasm_u32(&r);
            struct bh_str s = read_name(&r);
            if (!r.rc && f < m->n_funcs)
                m->funcs[f].name = s;
        }
        r.p = next;
        r.end = end;
    }
}

/* ---- traps ------------------------------------------------------------------------------------- */
static uint32_t func_of(const struct bh_wasm_module *m, const struct ins *at)
{
    uint32_t low = m->n_imported_funcs, high = m->n_funcs, code = (uint32_t)(at - m->code);

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (m->funcs[middle].code <= code)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void add_frame(const struct bh_wasm_module *m, struct bh_buf *b, uint32_t func)
{
    const struct func *f = &m->funcs[func];
    const char *word = m->types[f->type].word;

    bh_buf_adds(b, "\n\t");
    if (func < m->n_imported_funcs) {
        const struct bh_wasm_item *item = m->imports;
        while (item->kind != BH_WASM_FUNC || item->index != func)
            item++;
        bh_wasm_add_name(b, item->module);
        bh_buf_addc(b, '.');
        bh_wasm_add_name(b, item->name);
    } else {
        bh_wasm_add_name(b, m->name);
        bh_buf_addc(b, '.');
        if (f->name.n)
            bh_wasm_add_name(b, f->name);
        else
            bh_buf_addf(b, "$%u", func);
    }
    bh_buf_addc(b, '(');
    word = add_types(b, word);
    bh_buf_addc(b, ')');
    if (word[1] && word[2]) {
        bh_buf_adds(b, " (");
        add_types(b, word + 1);
        bh_buf_addc(b, ')');
    } else if (word[1]) {
        bh_buf_addf(b, " %s", type_of_letter(word[1]));
    }
}

void bh_wasm_add_trap(const struct bh_wasm *w, struct bh_buf *b)
{
    static const char *const texts[BH_WASM_TRAPS] = {
        [BH_WASM_DONE] = "none",
        [BH_WASM_UNREACHABLE] = "unreachable",
        [BH_WASM_BAD_MEMORY] = "out of bounds memory access",
        [BH_WASM_BAD_TABLE] = "invalid table access",
        [BH_WASM_BAD_CALL] = "indirect call type mismatch",
        [BH_WASM_DIVIDE] = "integer divide by zero",
        [BH_WASM_OVERFLOW] = "integer overflow",
        [BH_WASM_CONVERT] = "invalid conversion to integer",
        [BH_WASM_DEPTH] = "stack overflow",
        [BH_WASM_TIME] = "time limit exceeded",
    };
    const struct ins *at = w->at, *const *ret = w->returned;
    unsigned frames = 0;

    if (w->trap == BH_WASM_HOST)
        bh_wasm_add_name(b, (struct bh_str){bh_buf_str(&w->why), w->why.n});
    else
        bh_buf_addf(b, "wasm error: %s", texts[w->trap]);
    bh_buf_adds(b, "\nwasm stack trace:");
    if (w->trap == BH_WASM_HOST) {
        add_frame(w->m, b, w->x.host_func);
        frames++;
    }
    for (uint32_t i = 0; i < w->x.n_frames; i++) {
        if (frames++ == MAX_FRAMES) {
            bh_buf_adds(b, "\n\t... maybe followed by omitted frames");
            break;
        }
        add_frame(w->m, b, w->x.frames[i]);
    }
    /* Interpreted: what runs, then who called it; the first return is to outside. */
    for (; at && at > &w->m->code[1]; at = *--ret - 1) {
        if (frames++ == MAX_FRAMES) {
            bh_buf_adds(b, "\n\t... maybe followed by omitted frames");
            break;
        }
        add_frame(w->m, b, func_of(w->m, at));
    }
}
