/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/json_write.c - a tree as JSON text, compact or indented
 */
#include "common/data/json.h"
#include "common/data/json_scan.h"

/* bh_buf_add without the call for the usual case: most tokens are a few bytes. */
static inline void put(struct bh_buf *b, const char *p, size_t n)
{
    if (bh_unlikely(b->cap < b->n + n + 1))
        bh_buf_reserve(b, n + 1);
    memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = 0;
}

static void write_string(struct bh_buf *b, struct bh_str s)
{
    if (!bh_json_is_plain(s.p, s.n)) {
        bh_buf_add_json_str(b, s.p, s.n);
        return;
    }
    if (bh_unlikely(b->cap < b->n + s.n + 3))
        bh_buf_reserve(b, s.n + 3);
    char *o = b->p + b->n;
    o[0] = '"';
    if (s.n)
        memcpy(o + 1, s.p, s.n);
    o[s.n + 1] = '"';
    o[s.n + 2] = 0;
    b->n += s.n + 2;
}

static void new_line(struct bh_buf *b, int level)
{
    bh_buf_addc(b, '\n');
    for (int i = 0; i < level; i++)
        bh_buf_add(b, "  ", 2);
}

/* level < 0: compact. */
static void write_value(struct bh_buf *b, const struct bh_json *v, int level)
{
    bool is_object = v->type == BH_JSON_OBJECT, pretty = level >= 0;
    switch (v->type) {
    case BH_JSON_NULL:
        put(b, "null", 4);
        return;
    case BH_JSON_BOOL:
        put(b, v->b ? "true" : "false", v->b ? 4 : 5);
        return;
    case BH_JSON_NUMBER:
        put(b, v->s.p, v->s.n);
        return;
    case BH_JSON_STRING:
        write_string(b, v->s);
        return;
    case BH_JSON_ARRAY:
    case BH_JSON_OBJECT:
        break;
    }
    put(b, is_object ? "{" : "[", 1);
    bh_json_each(m, v) {
        if (m != v->c.first)
            put(b, ",", 1);
        if (pretty)
            new_line(b, level + 1);
        if (is_object) {
            write_string(b, m->key);
            put(b, ": ", pretty ? 2 : 1);
        }
        write_value(b, m, pretty ? level + 1 : -1);
    }
    if (pretty && v->c.n)
        new_line(b, level);
    put(b, is_object ? "}" : "]", 1);
}

void bh_json_write(struct bh_buf *b, const struct bh_json *v)
{
    write_value(b, v, -1);
}

void bh_json_write_pretty(struct bh_buf *b, const struct bh_json *v)
{
    write_value(b, v, 0);
}
