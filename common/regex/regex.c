/* SPDX-License-Identifier: Apache-2.0
 *
 * common/regex/regex.c - RE2 patterns into programs of a Pike machine
 *
 * Code is emitted while parsing. Jumps are relative, so the code of an atom can be moved (to put a
 * split in front) and copied (counted repetition) as it stands. Patterns and texts are code points.
 * Not supported, and an error: \p{..} and \pN classes, \C, case folding of characters beyond ASCII.
 * What RE2 itself lacks (look-around, back-references, possessive operators) is an error by its
 * own. Limits: 1,000 per count, also of nested counts together; 10,000 instructions; 100 levels of
 * groups.
 * Upstream: Go's regexp/syntax.
 */
#include "common/base/utf8.h"
#include "common/regex/regex_int.h"

enum { REPEAT_MAX = 1000, INST_MAX = 10000, GROUPS_MAX = 100 };

struct flags {
    bool fold, dot_nl, multi, ungreedy;
};
struct compiler {
    struct bh_arena *arena;
    struct bh_str s;
    size_t at;
    struct regex_inst *inst;
    uint32_t n, cap;
    struct flags flags;
    unsigned depth;
    const char *why;
};

static bool alternation(struct compiler *c, unsigned *ret_repeat);

static bool fail(struct compiler *c, const char *why)
{
    if (!c->why)
        c->why = why;
    return false;
}

static bool more(const struct compiler *c)
{
    return c->at < c->s.n;
}

static char peek(const struct compiler *c)
{
    return more(c) ? c->s.p[c->at] : '\0';
}

static bool take_literal(struct compiler *c, const char *literal)
{
    size_t n = strlen(literal);

    if (c->s.n - c->at < n || memcmp(c->s.p + c->at, literal, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* Rejects malformed UTF-8, as upstream: the pattern's meaning would depend on the byte. */
static bool take_rune(struct compiler *c, uint32_t *ret)
{
    size_t w;

    if (!more(c))
        return fail(c, "missing argument to repetition operator");
    *ret = bh_utf8_get(c->s.p + c->at, c->s.n - c->at, &w);
    if (*ret == 0xfffd && w == 1)
        return fail(c, "invalid UTF-8");
    c->at += w;
    return true;
}

/* ---- code ---- */

static bool reserve(struct compiler *c, uint32_t n)
{
    if (c->n + n > INST_MAX)
        return fail(c, "expression too large");
    if (c->n + n > c->cap) {
        c->cap = BH_MAX(c->cap * 2, c->n + n + 16);
        c->inst =
            bh_arena_more(c->arena, c->inst, c->n * sizeof(*c->inst), c->cap * sizeof(*c->inst));
    }
    return true;
}

static bool emit(struct compiler *c, struct regex_inst i)
{
    if (!reserve(c, 1))
        return false;
    c->inst[c->n++] = i;
    return true;
}

/* A split in front of the code from `start` on. x is tried first. */
static bool insert_split(struct compiler *c, uint32_t start, int32_t x, int32_t y)
{
    if (!reserve(c, 1))
        return false;
    memmove(c->inst + start + 1, c->inst + start, (c->n - start) * sizeof(*c->inst));
    c->n++;
    c->inst[start] = (struct regex_inst){.op = RE_SPLIT, .x = x, .y = y};
    return true;
}

static bool append_copy(struct compiler *c, const struct regex_inst *code, uint32_t n)
{
    if (!reserve(c, n))
        return false;
    if (n)
        memcpy(c->inst + c->n, code, n * sizeof(*code));
    c->n += n;
    return true;
}

/* ---- classes ---- */

struct ranges {
    struct regex_range *p;
    uint32_t n, cap;
};

static void add_range(struct compiler *c, struct ranges *r, uint32_t lo, uint32_t hi)
{
    BH_ARENA_GROW(c->arena, r->p, r->n, r->cap);
    r->p[r->n++] = (struct regex_range){lo, hi};
}

static int by_low(const void *a, const void *b)
{
    const struct regex_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Sorts and joins, so that a class can be negated and searched. */
static void tidy(struct ranges *r)
{
    uint32_t n = 0;

    if (r->n)
        qsort(r->p, r->n, sizeof(*r->p), by_low);
    for (uint32_t i = 0; i < r->n; i++) {
        if (n && r->p[i].lo <= r->p[n - 1].hi + 1)
            r->p[n - 1].hi = BH_MAX(r->p[n - 1].hi, r->p[i].hi);
        else
            r->p[n++] = r->p[i];
    }
    r->n = n;
}

static void add_negated(struct compiler *c, struct ranges *to, struct ranges *from)
{
    uint32_t low = 0;

    tidy(from);
    for (uint32_t i = 0; i < from->n; i++) {
        if (from->p[i].lo > low)
            add_range(c, to, low, from->p[i].lo - 1);
        low = from->p[i].hi + 1;
    }
    if (low <= REGEX_RUNE_MAX)
        add_range(c, to, low, REGEX_RUNE_MAX);
}

/* "azAZ09" = pairs of bounds. */
static void add_pairs(struct compiler *c, struct ranges *to, const char *pairs, bool negated)
{
    struct ranges own = {0};

    for (; *pairs; pairs += 2)
        add_range(c, negated ? &own : to, (unsigned char)pairs[0], (unsigned char)pairs[1]);
    if (negated)
        add_negated(c, to, &own);
}

static const char *perl_class(char c)
{
    switch (c | 0x20) {
    case 'd':
        return "09";
    case 'w':
        return "azAZ09__";
    case 's':
        return "\t\n\f\r  ";
    default:
        return NULL;
    }
}

static const struct {
    const char *name, *pairs;
} posix[] = {
    {"alnum", "azAZ09"},
    {"alpha", "azAZ"},
    {"ascii", "\1\x7f"},
    {"blank", "\t\t  "},
    {"cntrl", "\1\x1f\x7f\x7f"},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "azAZ09__"},
    {"xdigit", "09afAF"},
};

/* "[:name:]" or "[:^name:]" inside a class. */
static bool take_posix(struct compiler *c, struct ranges *r)
{
    size_t start = c->at;

    if (!take_literal(c, "[:"))
        return false;
    bool negated = take_literal(c, "^");
    for (size_t i = 0; i < BH_ARRAY_LEN(posix); i++) {
        if (take_literal(c, posix[i].name) && take_literal(c, ":]")) {
            add_pairs(c, r, posix[i].pairs, negated);
            /* the strings cannot hold a NUL, which both of these contain */
            if (!negated && (bh_streq(posix[i].name, "ascii") || bh_streq(posix[i].name, "cntrl")))
                add_range(c, r, 0, 0);
            return true;
        }
        c->at = start + 2 + negated;
    }
    c->at = start;
    return fail(c, "invalid character class range");
}

/* \x41 or \x{10FFFF}, behind the x. */
static bool hex_escape(struct compiler *c, uint32_t *ret)
{
    bool braces = take_literal(c, "{");
    uint32_t v = 0;
    int digits = 0;

    for (; digits < (braces ? 8 : 2) && bh_hex_value(peek(c)) >= 0; digits++)
        v = v * 16 + (uint32_t)bh_hex_value(c->s.p[c->at++]);
    if (digits == 0 || (!braces && digits != 2) || (braces && !take_literal(c, "}")) ||
        v > REGEX_RUNE_MAX)
        return fail(c, "invalid escape sequence");
    *ret = v;
    return true;
}

/* An escape that is one character; the backslash is behind us. */
static bool escaped_rune(struct compiler *c, uint32_t *ret)
{
    static const char from[] = "afnrtv", to[] = "\a\f\n\r\t\v";
    char ch = peek(c);
    const char *at = ch ? strchr(from, ch) : NULL;

    if (!more(c))
        return fail(c, "trailing backslash at end of expression");
    if (at) {
        *ret = (uint32_t)to[at - from];
        c->at++;
        return true;
    }
    if (ch == 'x') {
        c->at++;
        return hex_escape(c, ret);
    }
    if (ch == '0') { /* \1 to \9 are back-references elsewhere and an error here */
        *ret = 0;
        for (int i = 0; i < 3 && peek(c) >= '0' && peek(c) <= '7' && more(c); i++)
            *ret = *ret * 8 + (uint32_t)(c->s.p[c->at++] - '0');
        return true;
    }
    if ((unsigned char)ch >= 0x80 || bh_is_digit(ch) || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z'))
        return fail(c, "invalid escape sequence");
    c->at++;
    *ret = (unsigned char)ch;
    return true;
}

static bool fold_range(struct compiler *c, struct ranges *r, uint32_t lo, uint32_t hi)
{
    if (!c->flags.fold)
        return true;
    if (hi >= 0x80)
        return fail(c, "case folding beyond ASCII is not supported");
    for (uint32_t v = lo; v <= hi; v++)
        if ((v | 0x20) >= 'a' && (v | 0x20) <= 'z')
            add_range(c, r, v ^ 0x20, v ^ 0x20);
    return true;
}

static bool class_bound(struct compiler *c, uint32_t *ret)
{
    return take_literal(c, "\\") ? escaped_rune(c, ret) : take_rune(c, ret);
}

static bool class_item(struct compiler *c, struct ranges *r)
{
    uint32_t lo;
    const char *pairs;

    if (c->s.n - c->at >= 2 && c->s.p[c->at] == '[' && c->s.p[c->at + 1] == ':')
        return take_posix(c, r);
    if (peek(c) == '\\' && c->s.n - c->at >= 2 && (pairs = perl_class(c->s.p[c->at + 1]))) {
        bool negated = c->s.p[c->at + 1] < 'a';
        add_pairs(c, r, pairs, negated);
        c->at += 2;
        return true;
    }
    if (!class_bound(c, &lo))
        return false;
    uint32_t hi = lo;
    if (peek(c) == '-' && c->s.n - c->at >= 2 && c->s.p[c->at + 1] != ']') {
        c->at++;
        if (!class_bound(c, &hi))
            return false;
    }
    if (hi < lo)
        return fail(c, "invalid character class range");
    add_range(c, r, lo, hi);
    return fold_range(c, r, lo, hi);
}

static bool emit_class(struct compiler *c, struct ranges *r)
{
    tidy(r);
    return emit(c, (struct regex_inst){.op = RE_CLASS, .range = r->p, .n_ranges = r->n});
}

/* ---- atoms ---- */

static bool emit_rune(struct compiler *c, uint32_t rune)
{
    struct ranges r = {0};

    add_range(c, &r, rune, rune);
    return fold_range(c, &r, rune, rune) && emit_class(c, &r);
}

static bool emit_op(struct compiler *c, enum regex_op op)
{
    return emit(c, (struct regex_inst){.op = op});
}

/* \Q...\E, behind the Q; every character an atom, and the last one what a repetition applies to. */
static bool quoted(struct compiler *c, uint32_t *start)
{
    uint32_t rune;

    while (more(c) && !take_literal(c, "\\E")) {
        *start = c->n;
        if (!take_rune(c, &rune) || !emit_rune(c, rune))
            return false;
    }
    return true;
}

static bool escape(struct compiler *c, uint32_t *start)
{
    struct ranges r = {0};
    char ch = peek(c);
    const char *pairs = ch ? perl_class(ch) : NULL;
    static const char edges[] = "AzbB";
    static const enum regex_op ops[] = {RE_BEGIN, RE_END, RE_WORD, RE_NOT_WORD};
    const char *at = ch ? strchr(edges, ch) : NULL;
    uint32_t rune;

    if (pairs) {
        c->at++;
        add_pairs(c, &r, pairs, ch < 'a');
        return emit_class(c, &r);
    }
    if (at) {
        c->at++;
        return emit_op(c, ops[at - edges]);
    }
    if (take_literal(c, "Q"))
        return quoted(c, start);
    return escaped_rune(c, &rune) && emit_rune(c, rune);
}

/* "i", "s-m" ... up to ')' or ':', behind "(?". */
static bool group_flags(struct compiler *c)
{
    struct flags f = c->flags;
    bool on = true, any = false;

    for (; more(c) && peek(c) != ')' && peek(c) != ':'; c->at++) {
        char ch = peek(c);
        if (ch == '-' && on) {
            on = false;
            any = false;
            continue;
        }
        bool *flag = ch == 'i'   ? &f.fold
                     : ch == 's' ? &f.dot_nl
                     : ch == 'm' ? &f.multi
                     : ch == 'U' ? &f.ungreedy
                                 : NULL;
        if (!flag)
            return fail(c, "invalid or unsupported Perl syntax");
        *flag = on;
        any = true;
    }
    if (!more(c) || (!any && (!on || peek(c) == ')')))
        return fail(c, "missing argument to repetition operator");
    c->flags = f;
    return true;
}

/* Behind the opening parenthesis. Flags set inside end with the group; "(?i)" alone sets them for
 * the rest of the group around it and is nothing that could be repeated. */
static bool group(struct compiler *c, unsigned *ret_repeat, bool *ret_is_atom)
{
    struct flags outer = c->flags;

    if (take_literal(c, "?P<") || take_literal(c, "?<")) {

        size_t start = c->at;
        while (more(c) && (bh_hex_value(peek(c)) >= 0 || peek(c) == '_' ||
                           ((peek(c) | 0x20) >= 'a' && (peek(c) | 0x20) <= 'z')))
            c->at++;
        if (!((c->at > start && take_literal(c, ">")) || fail(c, "invalid named capture")))
            return false;
    } else if (take_literal(c, "?")) {
        if (!group_flags(c))
            return false;
        if (take_literal(c, ")")) {
            *ret_is_atom = false;
            return true;
        }
        c->at++;
    }
    if (++c->depth > GROUPS_MAX)
        return fail(c, "expression nests too deeply");
    if (!alternation(c, ret_repeat))
        return false;
    c->depth--;
    c->flags = outer;
    return take_literal(c, ")") || fail(c, "missing closing )");
}

/* One atom; *start is where its code begins, *ret_repeat the counted repetitions nested in it. */
static bool atom(struct compiler *c, uint32_t *start, unsigned *ret_repeat, bool *ret_is_atom)
{
    uint32_t rune;

    if (take_literal(c, "("))
        return group(c, ret_repeat, ret_is_atom);
    if (take_literal(c, "[")) {
        /* Behind the opening bracket. A ']' that comes first is a member. */
        struct ranges r = {0}, negated = {0};
        bool negate = take_literal(c, "^"), first = true;
        for (; first || peek(c) != ']'; first = false) {
            if (!more(c))
                return fail(c, "missing closing ]");
            if (!class_item(c, &r))
                return false;
        }
        c->at++;
        if (!negate)
            return emit_class(c, &r);
        add_negated(c, &negated, &r);
        return emit_class(c, &negated);
    }
    if (take_literal(c, "\\"))
        return escape(c, start);
    if (take_literal(c, "."))
        return emit_op(c, c->flags.dot_nl ? RE_ANY : RE_ANY_NOT_NL);
    if (take_literal(c, "^"))
        return emit_op(c, c->flags.multi ? RE_LINE_BEGIN : RE_BEGIN);
    if (take_literal(c, "$"))
        return emit_op(c, c->flags.multi ? RE_LINE_END : RE_END);
    if (peek(c) == '*' || peek(c) == '+' || peek(c) == '?')
        return fail(c, "missing argument to repetition operator");
    return take_rune(c, &rune) && emit_rune(c, rune);
}

/* ---- repetition ---- */

static bool take_number(struct compiler *c, int *ret)
{
    size_t start = c->at;

    *ret = 0;
    while (bh_is_digit(peek(c))) {
        *ret = BH_MIN(*ret * 10 + (peek(c) - '0'), 10000);
        c->at++;
    }
    return c->at > start;
}

/* {n}, {n,} or {n,m}; anything else in braces is literal text, and at stays. max -1 = no end. */
static bool take_count(struct compiler *c, int *min, int *max)
{
    size_t start = c->at;

    if (take_literal(c, "{") && take_number(c, min)) {
        *max = *min;
        if (take_literal(c, ",") && !take_number(c, max))
            *max = -1;
        if (take_literal(c, "}"))
            return true;
    }
    c->at = start;
    return false;
}

/* x{min,max} of the code behind start: min copies, then max - min optional ones, each of which
 * opens only behind the one before it. */
static bool repeat(struct compiler *c, uint32_t start, int min, int max, bool greedy)
{
    uint32_t n = c->n - start;

    if (!n) /* of "()": as often as may be */
        return true;
    BH_CLEANUP(bh_freep)
    struct regex_inst *code = bh_memdup(c->inst + start, n * sizeof(*code)); /* not kept */
    int copies = max < 0 ? BH_MAX(min, 1) : max;

    c->n = start;
    for (int i = 0; i < copies; i++) {
        uint32_t at = c->n;
        if (!append_copy(c, code, n))
            return false;
        if (max < 0 && i == copies - 1) {
            int32_t back = -(int32_t)n;
            if (min == 0) {
                int32_t past = (int32_t)n + 2;
                if (!insert_split(c, at, greedy ? 1 : past, greedy ? past : 1) ||
                    !emit(c, (struct regex_inst){.op = RE_JUMP, .x = back - 1}))
                    return false;
            } else if (!emit(c, (struct regex_inst){.op = RE_SPLIT,
                                                    .x = greedy ? back : 1,
                                                    .y = greedy ? 1 : back})) {
                return false;
            }
        } else if (i >= min) {
            int32_t past = (int32_t)(n + 1) * (copies - i);
            if (!insert_split(c, at, greedy ? 1 : past, greedy ? past : 1))
                return false;
        }
    }
    return true;
}

/* The operators behind an atom. As upstream "a**" is an error, and so are nested counts beyond
 * 1,000. */
static bool repetitions(struct compiler *c, uint32_t start, unsigned *nested)
{
    int min = 0, max = -1;
    bool counted = false;

    if (take_literal(c, "+")) {
        min = 1;
    } else if (take_literal(c, "?")) {
        max = 1;
    } else if (!take_literal(c, "*")) {
        counted = take_count(c, &min, &max);
        if (!counted)
            return true;
    }
    if (min > REPEAT_MAX || max > REPEAT_MAX || (max >= 0 && min > max))
        return fail(c, "invalid repeat count");
    if (counted)
        *nested *= (unsigned)BH_MAX(1, BH_MAX(min, max));
    if (*nested > REPEAT_MAX)
        return fail(c, "invalid repeat count");
    bool greedy = !take_literal(c, "?") ^ c->flags.ungreedy;
    int more_min, more_max;
    size_t here = c->at;
    if (peek(c) == '*' || peek(c) == '+' || peek(c) == '?' || take_count(c, &more_min, &more_max))
        return fail(c, "invalid nested repetition operator");
    c->at = here;
    return repeat(c, start, min, max, greedy);
}

static bool concatenation(struct compiler *c, unsigned *ret_repeat)
{
    while (more(c) && peek(c) != '|' && peek(c) != ')') {
        uint32_t start = c->n;
        unsigned nested = 1;
        bool is_atom = true;
        if (!atom(c, &start, &nested, &is_atom))
            return false;
        if (is_atom && !repetitions(c, start, &nested))
            return false;
        *ret_repeat = BH_MAX(*ret_repeat, nested);
    }
    return true;
}

/* a|b|c: split(a, split(b, c)), each but the last ending in a jump over what follows. */
static bool alternation(struct compiler *c, unsigned *ret_repeat)
{
    uint32_t start = c->n, jumps = UINT32_MAX;

    if (!concatenation(c, ret_repeat))
        return false;
    while (take_literal(c, "|")) {
        if (!insert_split(c, start, 1, (int32_t)(c->n - start) + 2) ||
            !emit(c, (struct regex_inst){.op = RE_JUMP, .x = (int32_t)jumps}))
            return false;
        jumps = c->n - 1; /* a chain through the jumps until their target is known */
        start = c->n;
        if (!concatenation(c, ret_repeat))
            return false;
    }
    while (jumps != UINT32_MAX) {
        uint32_t previous = (uint32_t)c->inst[jumps].x;
        c->inst[jumps].x = (int32_t)(c->n - jumps);
        jumps = previous;
    }
    return true;
}

struct bh_regex *bh_regex_compile(struct bh_arena *a, struct bh_str pattern, const char **ret_why)
{
    struct compiler c = {.arena = a, .s = pattern};
    unsigned nested = 1;

    if (!alternation(&c, &nested) || (more(&c) && !fail(&c, "unexpected )")) ||
        !emit_op(&c, RE_MATCH)) {
        *ret_why = c.why;
        return NULL;
    }
    struct bh_regex *re = bh_arena_new(a, struct bh_regex);
    *re = (struct bh_regex){c.inst, c.n};
    return re;
}

uint32_t bh_regex_size(const struct bh_regex *re)
{
    return re->n;
}
