/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/format.c - format() of strings
 *
 * One walk over the pattern serves twice: with types while compiling, when pattern and list are
 * literals, and with values while evaluating. A clause may take certain kinds, whichever it is.
 * Upstream: cel-go/ext/formatting.go (the first version, in the locale en_US: thousands have
 * commas, %e is written with a power of ten, and its "precision" is a width).
 */
#include <math.h>

#include "common/cel/cel_int.h"
#include <float.h>
#include <limits.h>

enum {
    INTEGERS = 1u << CEL_INT | 1u << CEL_UINT,
    DOUBLES = 1u << CEL_DOUBLE | 1u << CEL_STRING, /* "NaN", "Infinity", "-Infinity" */
    TEXTS = 1u << CEL_STRING | 1u << CEL_BYTES,
    SHOWN = CEL_ORDERED | 1u << CEL_NULL | 1u << CEL_TYPE | 1u << CEL_LIST | 1u << CEL_MAP,
};
static const struct clause {
    char letter;
    uint32_t kinds;
    const char *needs;
} clauses[] = {
    {'s', SHOWN,
     "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
     "durations, and timestamps"},
    {'d', INTEGERS, "decimal clause can only be used on integers"},
    {'f', DOUBLES, "fixed-point clause can only be used on doubles"},
    {'e', DOUBLES, "scientific clause can only be used on doubles"},
    {'b', INTEGERS | 1u << CEL_BOOL, "only integers and bools can be formatted as binary"},
    {'x', INTEGERS | TEXTS, "only integers, byte buffers, and strings can be formatted as hex"},
    {'X', INTEGERS | TEXTS, "only integers, byte buffers, and strings can be formatted as hex"},
    {'o', INTEGERS, "octal clause can only be used on integers"},
};

struct format {
    struct cel_eval *e;           /* NULL: only the types are looked at */
    struct cel_parser *ps;        /* then */
    const struct cel_node *items; /* then: the literal */
    const struct cel_value *list;
    struct bh_buf out;
    struct bh_buf why; /* not empty: failed */
    size_t why_pos;    /* of the item, when it is one that fails while compiling */
};

#define FORMATTING "error during formatting: "
#define PARSING    "could not parse formatting clause: "

static bool fail(struct format *f, const char *fmt, ...) BH_PRINTF(2, 3);
static bool fail(struct format *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    bh_buf_vaddf(&f->why, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- %s -------------------------------------------------------------------------------------- */

/* What a list or map holds is written as a literal. */
static bool add_value(struct format *f, struct bh_buf *b, const struct cel_value *v, bool nested);

static bool add_list(struct format *f, struct bh_buf *b, const struct cel_value *v)
{
    bh_buf_addc(b, '[');
    for (uint32_t i = 0; i < v->n; i++) {
        bh_buf_adds(b, i ? ", " : "");
        if (!add_value(f, b, &v->list[i], true))
            return false;
    }
    bh_buf_addc(b, ']');
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "key:value" in the order of the keys' texts, which a NUL ends meanwhile. */
static bool add_map(struct format *f, struct bh_buf *b, const struct cel_map *m)
{
    const uint32_t keys = CEL_KEYS & ~(1u << CEL_DOUBLE);
    const char **pair = bh_arena_new_array(f->e->arena, const char *, m->n + 1);

    for (uint32_t i = 0; i < m->n; i++) {
        const struct cel_entry *at = &m->entry[i];
        struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
        if (!cel_in(at->key.kind, keys))
            return fail(f, FORMATTING "no formatting function for map key of type %s",
                        bh_cel_kind_name(at->key.kind));
        if (!add_value(f, &text, &at->key, true))
            return false;
        bh_buf_addc(&text, '\0');
        if (!add_value(f, &text, &at->value, true))
            return false;
        pair[i] = bh_arena_memdup(f->e->arena, text.p, text.n + 1);
    }
    qsort(pair, m->n, sizeof(*pair), by_text);
    bh_buf_addc(b, '{');
    for (uint32_t i = 0; i < m->n; i++)
        bh_buf_addf(b, "%s%s:%s", i ? ", " : "", pair[i], pair[i] + strlen(pair[i]) + 1);
    bh_buf_addc(b, '}');
    return true;
}

static bool add_scalar(struct format *f, struct bh_buf *b, const struct cel_value *v, bool nested)
{
    struct cel_value text = v->kind == CEL_NULL   ? cel_str("null", 4)
                            : v->kind == CEL_TYPE ? bh_cel_type_name(v)
                                                  : bh_cel_string(f->e, v);
    struct bh_str s = {text.s, text.n};
    bool is_time = v->kind == CEL_TIMESTAMP, quoted = cel_in(v->kind, TEXTS);

    if (text.kind == CEL_ERROR)
        return fail(f, FORMATTING "could not convert argument \"%s\" to string", text.s);
    if (!bh_cel_work(f->e, 1 + s.n / 10))
        return false;
    if (!nested)
        bh_buf_add(b, s.p, s.n);
    else if (v->kind == CEL_DOUBLE && isfinite(v->d))
        bh_buf_addf(b, "%f", v->d);
    else if (is_time || v->kind == CEL_DURATION)
        bh_buf_addf(b, "%s(\"%.*s\")", is_time ? "timestamp" : "duration", (int)s.n, s.p);
    else if (quoted || v->kind == CEL_DOUBLE) {
        bh_buf_adds(b, v->kind == CEL_BYTES ? "b" : "");
        bh_cel_add_quoted(b, s, true);
    } else
        bh_buf_add(b, s.p, s.n);
    return true;
}

static bool add_value(struct format *f, struct bh_buf *b, const struct cel_value *v, bool nested)
{
    if (!cel_in(v->kind, SHOWN))
        return fail(f, FORMATTING "no formatting function for %s", bh_cel_kind_name(v->kind));
    if (!bh_cel_work(f->e, 1))
        return false;
    return v->kind == CEL_LIST  ? add_list(f, b, v)
           : v->kind == CEL_MAP ? add_map(f, b, v->map)
                                : add_scalar(f, b, v, nested);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void add_digits(struct bh_buf *b, const struct cel_value *v, char letter)
{
    unsigned base = letter == 'b' ? 2 : letter == 'o' ? 8 : letter == 'd' ? 10 : 16;
    bool negative = v->kind == CEL_INT && v->i < 0;
    uint64_t n = v->kind == CEL_BOOL ? v->b : negative ? 0 - (uint64_t)v->i : v->u;
    char text[65], *p = text + sizeof(text);

    do
        *--p = (letter == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[n % base];
    while (n /= base);
    bh_buf_adds(b, negative ? "-" : "");
    bh_buf_add(b, p, (size_t)(text + sizeof(text) - p));
}

static void add_hex(struct bh_buf *b, const struct cel_value *v, char letter)
{
    for (uint32_t i = 0; i < v->n; i++)
        bh_buf_addf(b, letter == 'X' ? "%02X" : "%02x", (unsigned char)v->s[i]);
}

static void add_fixed(struct bh_buf *b, double d, unsigned precision)
{
    char text[DBL_MAX_10_EXP + 1 + UINT8_MAX + 4]; /* sign, dot, NUL */
    const char *p = text;

    /* upstream keeps the precision in a byte */
    snprintf(text, sizeof(text), "%.*f", (int)(precision & UINT8_MAX), d);
    if (*p == '-')
        bh_buf_addc(b, *p++);
    for (size_t left = strspn(p, "0123456789"); left; left--) {
        bh_buf_addc(b, *p++);
        bh_buf_adds(b, left > 1 && left % 3 == 1 ? "," : "");
    }
    bh_buf_adds(b, p);
}

/* 1.500000x10^06, the exponent in raised digits. */
static void add_scientific(struct bh_buf *b, double d)
{
    static const char *const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char text[32];

    snprintf(text, sizeof(text), "%e", d);
    char *e = strchr(text, 'e');
    bh_buf_add(b, text, (size_t)(e - text));
    bh_buf_addf(b, "×10%s", e[1] == '-' ? "⁻" : "");
    for (e += 2; *e; e++)
        bh_buf_adds(b, raised[*e - '0']);
}

static bool add_double(struct format *f, const struct cel_value *v, const struct clause *c,
                       int precision)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_str s = {v->s, v->n};
    double d = v->d;

    if (v->kind == CEL_STRING) {
        bool negative = bh_str_eqc(s, "-Infinity"), infinite = bh_str_eqc(s, "Infinity");
        if (!negative && !infinite && !bh_str_eqc(s, "NaN"))
            return fail(f, FORMATTING "%s, was given string", c->needs);
        d = negative ? -INFINITY : infinite ? INFINITY : NAN;
    }
    unsigned width = precision < 0 ? 6 : (unsigned)precision;
    if (!bh_cel_work(f->e, 50 + width / 10))
        return false;
    if (isnan(d))
        bh_buf_adds(&text, "NaN");
    else if (isinf(d))
        bh_buf_adds(&text, d < 0 ? "-∞" : "∞");
    else if (c->letter == 'f')
        add_fixed(&text, d == 0 ? 0 : d, width);
    else
        add_scientific(&text, d == 0 ? 0 : d);
    size_t room = c->letter == 'e' ? bh_utf8_count(text.p, text.n) : width;
    for (; room < width; room++)
        bh_buf_addc(&f->out, ' ');
    bh_buf_add(&f->out, text.p, text.n);
    return true;
}

/* ---- clauses --------------------------------------------------------------------------------- */

/* The first item at or below this one of a literal that cannot be shown; CEL_NONE: none. */
static uint32_t unshown(const struct bh_cel_program *p, uint32_t at)
{
    const struct cel_node *n = &p->node[at];
    uint32_t bad = CEL_NONE;

    if (n->type->kind != CEL_DYN && !cel_in(n->type->kind, SHOWN))
        return at;
    bool literal = n->op == OP_LIST || n->op == OP_MAP ||
                   (n->op == OP_CONST && cel_in(n->type->kind, 1u << CEL_LIST | 1u << CEL_MAP));
    for (uint32_t i = 0; literal && i < n->n_args && bad == CEL_NONE; i++)
        bad = unshown(p, p->arg[n->first + i]);
    return bad;
}

static bool check_type(struct format *f, const struct clause *c, uint32_t item)
{
    const struct bh_cel_program *p = f->ps->p;
    uint32_t at = p->arg[f->items->first + item], bad = at;
    uint32_t kind = p->node[at].type->kind;

    if (c->kinds == SHOWN)
        bad = unshown(p, at);
    else if (kind == CEL_DYN || cel_in(kind, c->kinds))
        return true;
    if (bad == CEL_NONE)
        return true;
    f->why_pos = p->node[bad].pos;
    return fail(f, FORMATTING "%s, was given %s", c->needs,
                bh_cel_kind_name(p->node[bad].type->kind));
}

static bool add_item(struct format *f, const struct clause *c, int precision, uint32_t item)
{
    if (!f->e)
        return check_type(f, c, item);
    const struct cel_value *v = &f->list->list[item];
    if (!cel_in(v->kind, c->kinds))
        return fail(f, FORMATTING "%s, was given %s", c->needs, bh_cel_kind_name(v->kind));
    if (c->kinds == SHOWN)
        return add_value(f, &f->out, v, false);
    if (c->kinds == DOUBLES)
        return add_double(f, v, c, precision);
    if (!bh_cel_work(f->e, 1 + (cel_in(v->kind, TEXTS) ? v->n : 64) / 10))
        return false;
    if (cel_in(v->kind, TEXTS))
        add_hex(&f->out, v, c->letter);
    else
        add_digits(&f->out, v, c->letter);
    return true;
}

/* What stands behind '%': an optional ".digits" and a letter. *p stands behind it afterwards. */
static const struct clause *parse_clause(struct format *f, const char **p, const char *end,
                                         int *ret_precision)
{
    const char *from = *p + 1;
    uint64_t n = 0;

    *ret_precision = -1;
    if (**p == '.') {
        for (*p = from; *p < end && bh_is_digit(**p); ++*p)
            n = n > INT_MAX ? n : n * 10 + (unsigned)(**p - '0');
        int digits = (int)(*p - from);
        if (*p == end || !digits || n > INT_MAX) {
            const char *why = *p == end ? "could not find end of precision specifier"
                              : digits  ? "value out of range"
                                        : "invalid syntax";
            const char *how = "error while converting precision to integer: strconv.Atoi: parsing";
            if (*p == end)
                fail(f, PARSING "error while parsing precision: %s", why);
            else
                fail(f, PARSING "error while parsing precision: %s \"%.*s\": %s", how, digits, from,
                     why);
            return NULL;
        }
        *ret_precision = (int)n;
    }
    char letter = *(*p)++, shown[5] = "";
    for (size_t i = 0; i < BH_ARRAY_LEN(clauses); i++)
        if (clauses[i].letter == letter)
            return &clauses[i];
    shown[bh_utf8_put(shown, (unsigned char)letter)] = '\0';
    fail(f, PARSING "unrecognized formatting clause \"%s\"", shown);
    return NULL;
}

/* False: failed, or the limit is reached. *ret_used: how many items were asked for. */
static bool format(struct format *f, struct bh_str pattern, uint32_t n_items, uint32_t *ret_used)
{
    const char *p = pattern.p, *end = p + pattern.n;
    int precision;

    *ret_used = 0;
    while (p < end) {
        const char *percent = memchr(p, '%', (size_t)(end - p));
        bh_buf_add(&f->out, p, (size_t)((percent ? percent : end) - p));
        if (!percent)
            break;
        p = percent + 1;
        if (p < end && *p == '%') {
            bh_buf_addc(&f->out, *p++);
            continue;
        }
        uint32_t item = (*ret_used)++;
        if (p == end && (!f->e || item < n_items))
            return fail(f, "unexpected end of string");
        if (item >= n_items)
            return fail(f, "index %u out of range", item);
        const struct clause *c = parse_clause(f, &p, end, &precision);
        if (!c || !add_item(f, c, precision, item))
            return false;
    }
    return true;
}

struct cel_value bh_cel_format(struct cel_eval *e, const struct cel_value *arg)
{
    struct format f = {.e = e, .list = &arg[1]};
    struct cel_value v;
    uint32_t used;

    bool good = bh_cel_work(e, 1 + arg->n / 16) &&
                format(&f, (struct bh_str){arg->s, arg->n}, arg[1].n, &used);
    if (!good && f.why.n) {
        v = bh_cel_error(e, "%s", bh_buf_str(&f.why));
        bh_buf_fini(&f.out);
    } else
        v = bh_cel_take_text(e, &f.out);
    bh_buf_fini(&f.why);
    return v;
}

bool bh_cel_check_format(struct cel_parser *ps, const struct cel_node *call)
{
    const uint32_t *arg = &ps->p->arg[call->first];
    const struct cel_node *text = &ps->p->node[arg[0]], *items = &ps->p->node[arg[1]];
    struct format f = {.ps = ps, .items = items, .why_pos = call->pos};
    uint32_t used;

    if (text->op != OP_CONST || text->type->kind != CEL_STRING || items->type->kind != CEL_LIST ||
        (items->op != OP_CONST && items->op != OP_LIST))
        return true;
    bool good = format(&f, (struct bh_str){text->value.s, text->value.n}, items->n_args, &used);
    if (good && items->n_args > used)
        good = fail(&f, "too many arguments supplied to string.format (expected %u, got %u)", used,
                    items->n_args);
    if (!good)
        bh_cel_fail(ps, f.why_pos, "%s", bh_buf_str(&f.why));
    bh_buf_fini(&f.out);
    bh_buf_fini(&f.why);
    return good;
}
