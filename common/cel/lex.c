/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/lex.c - tokens of CEL
 *
 * The bytes of strings are written one behind the other into a pool as large as the text, which
 * suffices because no escape is shorter than what it stands for. Fails with: TOK_BAD and why; never
 * reads past the text's end, NUL bytes are ordinary (bad) bytes.
 * Upstream: cel-spec/doc/langdef.md, "Lexis".
 */
#include "common/cel/cel_int.h"

#include <math.h>

static bool is_ident(char c)
{
    return c == '_' || bh_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char peek(const struct cel_lexer *l, size_t ahead)
{
    return l->at + ahead < l->n ? l->text[l->at + ahead] : '\0';
}

static void bad(struct cel_lexer *l, const char *why)
{
    l->tok = TOK_BAD;
    l->why = why;
}

/* Digits of one base into l->magnitude; false on overflow or when there is none. */
static bool digits(struct cel_lexer *l, unsigned base)
{
    size_t start = l->at;
    bool fits = true;

    l->magnitude = 0;
    for (; l->at < l->n; l->at++) {
        int v = bh_hex_value(l->text[l->at]);
        if (v < 0 || (unsigned)v >= base)
            break;
        fits &= !__builtin_mul_overflow(l->magnitude, base, &l->magnitude) &&
                !__builtin_add_overflow(l->magnitude, (unsigned)v, &l->magnitude);
    }
    return fits && l->at > start;
}

/* The part of a floating literal behind the integer digits; false = there is none. */
static bool fraction(struct cel_lexer *l)
{
    bool found = false;

    if (peek(l, 0) == '.' && bh_is_digit(peek(l, 1))) {
        for (l->at++; bh_is_digit(peek(l, 0)); l->at++)
            ;
        found = true;
    }
    if (peek(l, 0) == 'e' || peek(l, 0) == 'E') {
        size_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
        if (bh_is_digit(peek(l, 1 + sign))) {
            for (l->at += 1 + sign; bh_is_digit(peek(l, 0)); l->at++)
                ;
            found = true;
        }
    }
    return found;
}

static void number(struct cel_lexer *l)
{
    size_t start = l->at;
    bool hex = peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X');

    if (hex)
        l->at += 2;
    bool fits = digits(l, hex ? 16 : 10);
    if (!hex && fraction(l)) {
        char *copy = bh_arena_strndup(l->arena, l->text + start, l->at - start);
        l->value = (struct cel_value){.kind = CEL_DOUBLE, .d = strtod(copy, NULL)};
        l->tok = TOK_DOUBLE;
        if (!isfinite(l->value.d))
            bad(l, "invalid double literal");
    } else if (peek(l, 0) == 'u' || peek(l, 0) == 'U') {
        l->at++;
        l->value = (struct cel_value){.kind = CEL_UINT, .u = l->magnitude};
        l->tok = TOK_UINT;
        if (!fits)
            bad(l, "invalid uint literal");
    } else {
        l->value = cel_int((int64_t)l->magnitude);
        l->tok = TOK_INT;
        if (!fits || l->magnitude > (uint64_t)INT64_MAX + 1)
            bad(l, "invalid int literal");
    }
}

/* n digits of the given base at l->at, which moves behind them; -1 = malformed. */
static int64_t escape_number(struct cel_lexer *l, unsigned n, unsigned base)
{
    int64_t v = 0;

    for (; n > 0; n--, l->at++) {
        int d = bh_hex_value(peek(l, 0));
        if (l->at >= l->n || d < 0 || (unsigned)d >= base)
            return -1;
        v = v * base + d;
    }
    return v;
}

/* One escape behind the backslash, written to out. Returns its bytes; 0 = malformed. */
static size_t escape(struct cel_lexer *l, bool bytes, char out[static 4])
{
    static const char from[] = "abfnrtv\\?\"'`", to[] = "\a\b\f\n\r\t\v\\?\"'`";
    char c = peek(l, 0);
    const char *at = c ? strchr(from, c) : NULL;
    int64_t v = -1;

    l->at++;
    if (at) {
        out[0] = to[at - from];
        return 1;
    }
    if (c >= '0' && c <= '3') {
        l->at--;
        v = escape_number(l, 3, 8);
    } else if (c == 'x' || c == 'X') {
        v = escape_number(l, 2, 16);
    } else if (!bytes && (c == 'u' || c == 'U')) {
        v = escape_number(l, c == 'u' ? 4 : 8, 16);
        if (v >= 0xd800 && v <= 0xdfff)
            v = -1;
    }
    if (v < 0 || v > 0x10ffff)
        return 0;
    if (bytes) {
        out[0] = (char)v;
        return 1;
    }
    return bh_utf8_put(out, (uint32_t)v);
}

/* l->at stands on the opening quote. */
static void string(struct cel_lexer *l, bool raw, bool bytes)
{
    char quote = l->text[l->at], out[4];
    size_t marks = peek(l, 1) == quote && peek(l, 2) == quote ? 3 : 1;
    char *to = l->pool;
    size_t n = 0, same = 0;

    for (l->at += marks; l->at < l->n;) {
        char c = l->text[l->at++];
        same = c == quote ? same + 1 : 0;
        if (same == marks) {
            l->value = cel_str(to, n - (marks - 1));
            l->value.kind = bytes ? CEL_BYTES : CEL_STRING;
            l->tok = bytes ? TOK_BYTES : TOK_STRING;
            l->pool += n - (marks - 1);
            return;
        }
        if ((c == '\n' || c == '\r') && marks == 1)
            break;
        if (c == '\\' && !raw) {
            size_t w = escape(l, bytes, out);
            if (w == 0) {
                bad(l, "invalid escape sequence");
                return;
            }
            memcpy(to + n, out, w);
            n += w;
        } else {
            to[n++] = c;
        }
    }
    bad(l, "unterminated string");
}

/* r"", b"", rb"" and br"" in either case. Returns false when this is no string after all. */
static bool prefixed_string(struct cel_lexer *l)
{
    bool raw = false, bytes = false;
    size_t i = 0;

    for (; i < 2; i++) {
        char c = peek(l, i);
        if ((c == 'r' || c == 'R') && !raw)
            raw = true;
        else if ((c == 'b' || c == 'B') && !bytes)
            bytes = true;
        else
            break;
    }
    if (peek(l, i) != '"' && peek(l, i) != '\'')
        return false;
    l->at += i;
    string(l, raw, bytes);
    return true;
}

static void punctuation(struct cel_lexer *l)
{
    static const struct {
        char text[3];
        enum cel_token tok;
    } two[] = {{"&&", TOK_AND}, {"||", TOK_OR}, {"==", TOK_EQ},
               {"!=", TOK_NE},  {"<=", TOK_LE}, {">=", TOK_GE}};

    for (size_t i = 0; i < BH_ARRAY_LEN(two); i++) {
        if (peek(l, 0) == two[i].text[0] && peek(l, 1) == two[i].text[1]) {
            l->tok = two[i].tok;
            l->at += 2;
            return;
        }
    }
    l->ch = l->text[l->at++];
    l->tok = TOK_CHAR;
    if (!l->ch || !strchr("()[]{}.,:?!+-*/%<>", l->ch))
        bad(l, "token recognition error");
}

void bh_cel_lex(struct cel_lexer *l)
{
    for (; l->at < l->n && strchr(" \t\n\r\f/", l->text[l->at]) && l->text[l->at]; l->at++) {
        if (l->text[l->at] != '/')
            continue;
        if (peek(l, 1) != '/')
            break;
        while (l->at < l->n && l->text[l->at] != '\n')
            l->at++;
        l->at -= l->at == l->n;
    }
    l->pos = l->at;
    l->ch = '\0';
    if (l->at >= l->n) {
        l->tok = TOK_END;
    } else if (bh_is_digit(l->text[l->at]) || (l->text[l->at] == '.' && bh_is_digit(peek(l, 1)))) {
        number(l);
    } else if (prefixed_string(l)) {
        ;
    } else if (is_ident(l->text[l->at])) {
        while (is_ident(peek(l, 0)))
            l->at++;
        l->tok = TOK_IDENT;
    } else {
        punctuation(l);
    }
    l->end = l->at;
}
