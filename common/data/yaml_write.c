/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/yaml_write.c - a tree as YAML, block style, as kubectl prints it
 *
 * The layout decisions of the emitter behind sigs.k8s.io/yaml, reduced to what a JSON tree needs:
 * no anchors, no tags, one document, flow style only for {} and [].
 *
 * Upstream: sigs.k8s.io/yaml/goyaml.v2 (encode.go, emitterc.go). differences: members keep the
 * order of the tree (there: sorted by name, the caller's business here); `<<` as a name is quoted.
 */
#include "common/data/json_scan.h"
#include "common/data/yaml.h"
#include "common/data/yaml_resolve.h"

#define INDENT     2
#define WIDTH_BEST 80 /* a longer line is folded at its next space */

enum style { PLAIN, SINGLE, DOUBLE, LITERAL };

struct out {
    struct bh_buf *b;
    int column;
    bool whitespace; /* the last byte was white space */
    bool indention;  /* nothing but indentation and indicators stand on this line */
};

static void put(struct out *o, const char *p, size_t n)
{
    bh_buf_add(o->b, p, n);
    o->column++;
}

static void new_line(struct out *o)
{
    bh_buf_addc(o->b, '\n');
    o->column = 0;
}

/* Moves to column indent of a line that holds nothing else yet. */
static void write_indent(struct out *o, int indent)
{
    if (!o->indention || o->column > indent || (o->column == indent && !o->whitespace))
        new_line(o);
    while (o->column < indent)
        put(o, " ", 1);
    o->whitespace = o->indention = true;
}

static void write_indicator(struct out *o, const char *text, bool need_space, bool is_space,
                            bool is_indention)
{
    if (need_space && !o->whitespace)
        put(o, " ", 1);
    for (; *text; text++)
        put(o, text, 1);
    o->whitespace = is_space;
    o->indention = o->indention && is_indention;
}

/* ---- which style may a string have? ---------------------------------------------------------- */

struct traits {
    bool multiline, plain_ok, single_ok, literal_ok;
};

static bool is_blank_or_end(const char *p, const char *end)
{
    return p >= end || *p == ' ' || *p == '\t' || *p == '\n' || *p == '\r';
}

/* Characters that YAML prints as they are, without escapes. LS and PS count as line breaks for YAML
 * 1.1 readers and are escaped. */
static bool is_printable(const char *p, unsigned len)
{
    const unsigned char *u = (const unsigned char *)p;
    if (len == 1)
        return u[0] == '\n' || (u[0] >= 0x20 && u[0] < 0x7f);
    if (len == 2)
        return u[0] != 0xc2 || u[1] >= 0xa0;
    if (len == 3) {
        if (u[0] == 0xe2 && u[1] == 0x80 && (u[2] == 0xa8 || u[2] == 0xa9))
            return false;
        return !(u[0] == 0xef &&
                 ((u[1] == 0xbb && u[2] == 0xbf) || (u[1] == 0xbf && u[2] >= 0xbe)));
    }
    return false;
}

/* Would the character at p be read as syntax in a plain scalar? */
static bool is_syntax(const char *p, const char *start, const char *end)
{
    bool blank_follows = is_blank_or_end(p + 1, end);
    if (p == start) {
        if (*p == '?' || *p == ':' || *p == '-')
            return blank_follows;
        return strchr("#,[]{}&*!|>'\"%@`", *p) != NULL;
    }
    if (*p == ':')
        return blank_follows;
    return *p == '#' && is_blank_or_end(p - 1, end);
}

static struct traits analyze(const char *p, size_t n)
{
    const char *start = p, *end = p + n;
    bool special = false, breaks = false, syntax = false, break_space = false, space_break = false;
    if (n == 0)
        return (struct traits){false, true, true, false};
    if (n >= 3 && (memcmp(p, "---", 3) == 0 || memcmp(p, "...", 3) == 0))
        syntax = true;
    for (char prev = 0; p < end;) {
        unsigned len = bh_utf8_len(p, end);
        special |= len == 0 || !is_printable(p, len);
        if (len == 1) {
            syntax |= *p && is_syntax(p, start, end);
            breaks |= *p == '\n';
            break_space |= *p == ' ' && prev == '\n';
            space_break |= *p == '\n' && prev == ' ';
        }
        prev = *p;
        p += len ? len : 1;
    }
    bool edge_space = *start == ' ' || end[-1] == ' ';
    bool edge_break = *start == '\n' || end[-1] == '\n';
    bool odd = space_break || special;
    return (struct traits){
        .multiline = breaks,
        .plain_ok = !(edge_space || edge_break || break_space || odd || breaks || syntax),
        .single_ok = !(break_space || odd),
        .literal_ok = !(end[-1] == ' ' || odd),
    };
}

static enum style choose_style(const char *p, size_t n, bool is_key, struct traits *t)
{
    struct bh_yaml_scalar s;
    enum style style = PLAIN;
    *t = analyze(p, n);
    if (memchr(p, '\n', n)) {
        style = LITERAL;
    } else {
        bh_yaml_resolve(p, n, &s);
        if (s.kind != BH_YAML_STRING || bh_yaml_is_base60(p, n) || (n == 2 && !memcmp(p, "<<", 2)))
            style = DOUBLE;
    }
    if (is_key && t->multiline)
        style = DOUBLE;
    if (style == PLAIN && !t->plain_ok)
        style = SINGLE;
    if (style == SINGLE && !t->single_ok)
        style = DOUBLE;
    if (style == LITERAL && (!t->literal_ok || is_key))
        style = DOUBLE;
    return style;
}

/* ---- scalars --------------------------------------------------------------------------------- */

/* Plain and single quoted text; long lines are folded at single spaces. */
static void write_folded(struct out *o, const char *p, size_t n, int indent, bool fold, bool quoted)
{
    const char *start = p, *end = p + n;
    bool after_space = false;
    while (p < end) {
        unsigned len = BH_MAX(bh_utf8_len(p, end), 1u);
        bool space = *p == ' ';
        bool inner = !quoted || (p > start && p < end - 1);
        if (space && fold && !after_space && o->column > WIDTH_BEST && inner && p[1] != ' ')
            write_indent(o, indent);
        else
            put(o, p, len);
        if (quoted && *p == '\'')
            put(o, "'", 1);
        if (!space)
            o->indention = false;
        after_space = space;
        p += len;
    }
    o->whitespace = after_space;
}

static void write_escape(struct out *o, const char *p, unsigned len)
{
    static const char from[] = "\a\b\t\n\v\f\r\033\"\\", to[] = "abtnvfre\"\\";
    const unsigned char *u = (const unsigned char *)p;
    char text[16];
    const char *hit = len == 1 && *p ? strchr(from, *p) : NULL;
    uint32_t c = u[0];
    if (len == 2)
        c = (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu);
    else if (len == 3)
        c = (u[0] & 0x0fu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu);
    else if (len == 4)
        c = (u[0] & 0x07u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
    if (hit)
        snprintf(text, sizeof(text), "\\%c", to[hit - from]);
    else if (c == 0)
        snprintf(text, sizeof(text), "\\0");
    else if (c == 0x85)
        snprintf(text, sizeof(text), "\\N");
    else if (c == 0x2028 || c == 0x2029)
        snprintf(text, sizeof(text), "\\%c", c == 0x2028 ? 'L' : 'P');
    else
        snprintf(text, sizeof(text),
                 c <= 0xff     ? "\\x%02X"
                 : c <= 0xffff ? "\\u%04X"
                               : "\\U%08X",
                 c);
    for (const char *t = text; *t; t++)
        put(o, t, 1);
}

static void write_double(struct out *o, const char *p, size_t n, int indent, bool fold)
{
    const char *start = p, *end = p + n;
    bool after_space = false;
    write_indicator(o, "\"", true, false, false);
    while (p < end) {
        unsigned len = BH_MAX(bh_utf8_len(p, end), 1u);
        bool space = *p == ' ';
        if (!is_printable(p, len) || *p == '\n' || *p == '"' || *p == '\\') {
            write_escape(o, p, len);
        } else if (space && fold && !after_space && o->column > WIDTH_BEST && p > start &&
                   p < end - 1) {
            write_indent(o, indent);
            if (p[1] == ' ')
                put(o, "\\", 1);
        } else {
            put(o, p, len);
        }
        after_space = space;
        p += len;
    }
    write_indicator(o, "\"", false, false, false);
}

static void write_literal(struct out *o, const char *p, size_t n, int indent)
{
    const char *end = p + n;
    bool at_start = true;
    write_indicator(o, "|", true, false, false);
    if (*p == ' ' || *p == '\n')
        write_indicator(o, "2", false, false, false);
    if (end[-1] != '\n')
        write_indicator(o, "-", false, false, false);
    else if (n == 1 || end[-2] == '\n')
        write_indicator(o, "+", false, false, false);
    new_line(o);
    o->whitespace = o->indention = true;
    while (p < end) {
        unsigned len = BH_MAX(bh_utf8_len(p, end), 1u);
        if (*p == '\n') {
            new_line(o);
            o->indention = at_start = true;
        } else {
            if (at_start)
                write_indent(o, indent);
            put(o, p, len);
            o->indention = at_start = false;
        }
        p += len;
    }
}

/* indent: of the lines that continue this scalar. */
static void write_string(struct out *o, const char *p, size_t n, int indent, bool is_key)
{
    struct traits t;
    switch (choose_style(p, n, is_key, &t)) {
    case PLAIN:
        if (!o->whitespace)
            put(o, " ", 1);
        write_folded(o, p, n, indent, !is_key, false);
        o->whitespace = o->indention = false;
        break;
    case SINGLE:
        write_indicator(o, "'", true, false, false);
        write_folded(o, p, n, indent, !is_key, true);
        write_indicator(o, "'", false, false, false);
        break;
    case DOUBLE:
        write_double(o, p, n, indent, !is_key);
        break;
    case LITERAL:
        write_literal(o, p, n, indent);
        break;
    }
}

static void write_word(struct out *o, const char *p)
{
    if (!o->whitespace)
        put(o, " ", 1);
    for (; *p; p++)
        put(o, p, 1);
    o->whitespace = o->indention = false;
}

/* ---- containers ------------------------------------------------------------------------------ */

static void write_node(struct out *o, const struct bh_json *v, int indent, bool in_mapping);

/* A name of up to 128 bytes on one line is written `name:`, any other `? name` and `: value`. */
static void write_mapping(struct out *o, const struct bh_json *v, int indent)
{
    bh_json_each(m, v) {
        struct traits t = analyze(m->key.p, m->key.n);
        write_indent(o, indent);
        if (m->key.n <= 128 && !t.multiline) {
            write_string(o, m->key.p, m->key.n, indent + INDENT, true);
            write_indicator(o, ":", false, false, false);
        } else {
            write_indicator(o, "?", true, false, true);
            write_string(o, m->key.p, m->key.n, indent + INDENT, false);
            write_indent(o, indent);
            write_indicator(o, ":", true, false, true);
        }
        write_node(o, m, indent, true);
    }
}

/* indent: of the container v stands in, -1 at the root. */
static void write_node(struct out *o, const struct bh_json *v, int indent, bool in_mapping)
{
    int inner = indent < 0 ? 0 : indent + INDENT;
    switch (v->type) {
    case BH_JSON_NULL:
        write_word(o, "null");
        return;
    case BH_JSON_BOOL:
        write_word(o, v->b ? "true" : "false");
        return;
    case BH_JSON_NUMBER:
        write_word(o, v->s.p);
        return;
    case BH_JSON_STRING:
        write_string(o, v->s.p, v->s.n, indent < 0 ? INDENT : inner, false);
        return;
    case BH_JSON_ARRAY:
        if (v->c.n == 0) {
            write_word(o, "[]");
            return;
        }
        /* The dashes of a list stand below the first letter of its name. */
        inner = in_mapping && !o->indention ? indent : inner;
        bh_json_each(e, v) {
            write_indent(o, inner);
            write_indicator(o, "-", true, false, true);
            write_node(o, e, inner, false);
        }
        return;
    case BH_JSON_OBJECT:
        if (v->c.n == 0)
            write_word(o, "{}");
        else
            write_mapping(o, v, inner);
        return;
    }
}

void bh_yaml_write(struct bh_buf *b, const struct bh_json *v)
{
    struct out o = {.b = b, .whitespace = true, .indention = true};
    write_node(&o, v, -1, false);
    if (b->n == 0 || b->p[b->n - 1] != '\n')
        new_line(&o);
}
