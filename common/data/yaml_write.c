/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/yaml_write.c - a tree as YAML, block style, as kubectl prints it
 *
 * libyaml lays it out, as its translation to Go does behind sigs.k8s.io/yaml; which style a string
 * asks for is decided here. It is never told that the document ends: it would mark the end of one
 * whose last scalar keeps its line breaks.
 *
 * Upstream: sigs.k8s.io/yaml/goyaml.v2 (encode.go). differences: members keep the order of the tree
 * (there: sorted by name, the caller's business here); `<<` as a name is quoted.
 */
#include "common/base/utf8.h"
#include "common/data/yaml.h"
#include "common/data/yaml_resolve.h"

#include <yaml.h>

static int add_output(void *buf, unsigned char *p, size_t n)
{
    bh_buf_add(buf, p, n);
    return 1;
}

/* made: the event was made. libyaml fails for lack of memory only: abort, as in base.h. */
static void emit(yaml_emitter_t *e, yaml_event_t *ev, int made)
{
    if (!made || !yaml_emitter_emit(e, ev))
        abort();
}

static void emit_scalar(yaml_emitter_t *e, const char *p, size_t n, yaml_scalar_style_t style)
{
    struct bh_buf clean = {0};
    yaml_event_t ev;
    size_t width;

    for (size_t i = 0; i < n; i += width) { /* libyaml takes nothing but UTF-8 */
        char c[4];
        bh_buf_add(&clean, c, bh_utf8_put(c, bh_utf8_get(p + i, n - i, &width)));
    }
    emit(e, &ev,
         yaml_scalar_event_initialize(&ev, NULL, NULL, (const yaml_char_t *)bh_buf_str(&clean),
                                      (int)clean.n, 1, 1, style));
    bh_buf_fini(&clean);
}

/* Line and paragraph separators are line breaks for YAML 1.1 readers. */
static bool has_separator(const char *p, size_t n)
{
    return memmem(p, n, "\u2028", 3) || memmem(p, n, "\u2029", 3);
}

/* A style that the text cannot have becomes another one in libyaml. */
static void emit_string(yaml_emitter_t *e, struct bh_str s)
{
    yaml_scalar_style_t style = YAML_PLAIN_SCALAR_STYLE;
    struct bh_yaml_scalar read_as;

    if (has_separator(s.p, s.n)) {
        style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    } else if (memchr(s.p, '\n', s.n)) {
        style = YAML_LITERAL_SCALAR_STYLE;
    } else {
        bh_yaml_resolve(s.p, s.n, &read_as);
        if (read_as.kind != BH_YAML_STRING || bh_yaml_is_base60(s.p, s.n) || bh_str_eqc(s, "<<"))
            style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    }
    emit_scalar(e, s.p, s.n, style);
}

static void emit_node(yaml_emitter_t *e, const struct bh_json *v)
{
    yaml_event_t ev;

    switch (v->type) {
    case BH_JSON_NULL:
        emit_scalar(e, "null", 4, YAML_PLAIN_SCALAR_STYLE);
        return;
    case BH_JSON_BOOL:
        emit_scalar(e, v->b ? "true" : "false", v->b ? 4 : 5, YAML_PLAIN_SCALAR_STYLE);
        return;
    case BH_JSON_NUMBER:
        emit_scalar(e, v->s.p, v->s.n, YAML_PLAIN_SCALAR_STYLE);
        return;
    case BH_JSON_STRING:
        emit_string(e, v->s);
        return;
    case BH_JSON_ARRAY:
        emit(e, &ev,
             yaml_sequence_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_SEQUENCE_STYLE));
        bh_json_each(m, v)
            emit_node(e, m);
        emit(e, &ev, yaml_sequence_end_event_initialize(&ev));
        return;
    case BH_JSON_OBJECT:
        emit(e, &ev,
             yaml_mapping_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
        bh_json_each(m, v) {
            emit_string(e, m->key);
            emit_node(e, m);
        }
        emit(e, &ev, yaml_mapping_end_event_initialize(&ev));
        return;
    }
}

void bh_yaml_write(struct bh_buf *b, const struct bh_json *v)
{
    yaml_emitter_t e;
    yaml_event_t ev;

    if (!yaml_emitter_initialize(&e))
        abort();
    yaml_emitter_set_output(&e, add_output, b);
    yaml_emitter_set_unicode(&e, 1);
    emit(&e, &ev, yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING));
    emit(&e, &ev, yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1));
    emit_node(&e, v);
    if (!yaml_emitter_flush(&e))
        abort();
    yaml_emitter_delete(&e);
    if (b->n == 0 || b->p[b->n - 1] != '\n')
        bh_buf_addc(b, '\n');
}
