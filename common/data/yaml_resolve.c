/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/yaml_resolve.c - typing of plain YAML scalars
 *
 * Upstream: sigs.k8s.io/yaml/goyaml.v2 resolve.go, encode.go; strconv.ParseInt(s, 0, 64);
 *           encoding/json floatEncoder. differences: none known.
 */
#include "common/data/yaml_resolve.h"

#include <math.h>
#include <stdio.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum bh_yaml_kind kind;
    bool b;
} words[] = {
    {"", BH_YAML_NULL, false},
    {"~", BH_YAML_NULL, false},
    {"null", BH_YAML_NULL, false},
    {"Null", BH_YAML_NULL, false},
    {"NULL", BH_YAML_NULL, false},
    {"true", BH_YAML_BOOL, true},
    {"True", BH_YAML_BOOL, true},
    {"TRUE", BH_YAML_BOOL, true},
    {"false", BH_YAML_BOOL, false},
    {"False", BH_YAML_BOOL, false},
    {"FALSE", BH_YAML_BOOL, false},
    {"y", BH_YAML_BOOL, true},
    {"Y", BH_YAML_BOOL, true},
    {"yes", BH_YAML_BOOL, true},
    {"Yes", BH_YAML_BOOL, true},
    {"YES", BH_YAML_BOOL, true},
    {"on", BH_YAML_BOOL, true},
    {"On", BH_YAML_BOOL, true},
    {"ON", BH_YAML_BOOL, true},
    {"n", BH_YAML_BOOL, false},
    {"N", BH_YAML_BOOL, false},
    {"no", BH_YAML_BOOL, false},
    {"No", BH_YAML_BOOL, false},
    {"NO", BH_YAML_BOOL, false},
    {"off", BH_YAML_BOOL, false},
    {"Off", BH_YAML_BOOL, false},
    {"OFF", BH_YAML_BOOL, false},
    {".nan", BH_YAML_NOT_FINITE, false},
    {".NaN", BH_YAML_NOT_FINITE, false},
    {".NAN", BH_YAML_NOT_FINITE, false},
    {".inf", BH_YAML_NOT_FINITE, false},
    {".Inf", BH_YAML_NOT_FINITE, false},
    {".INF", BH_YAML_NOT_FINITE, false},
    {"+.inf", BH_YAML_NOT_FINITE, false},
    {"+.Inf", BH_YAML_NOT_FINITE, false},
    {"+.INF", BH_YAML_NOT_FINITE, false},
    {"-.inf", BH_YAML_NOT_FINITE, false},
    {"-.Inf", BH_YAML_NOT_FINITE, false},
    {"-.INF", BH_YAML_NOT_FINITE, false},
};

static bool resolve_word(const char *p, size_t n, struct bh_yaml_scalar *ret)
{
    if (n > 5)
        return false;
    for (size_t i = 0; i < BH_ARRAY_LEN(words); i++) {
        if (strlen(words[i].text) == n && memcmp(words[i].text, p, n) == 0) {
            ret->kind = words[i].kind;
            ret->b = words[i].b;
            return true;
        }
    }
    return false;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The fewest digits that read back as f (as float when single): d.ddde+XX. */
static void shortest(double f, bool single, char out[static 48])
{
    for (int prec = 0; prec <= 17; prec++) {
        snprintf(out, 48, "%.*e", prec, f);
        if (single ? strtof(out, NULL) == (float)f : strtod(out, NULL) == f)
            return;
    }
}

/* d.ddde+XX without its exponent: 1.5e+02 is 150. printf's %f would show digits that are not in the
 * shortest form. -7 < exponent < 21. */
static void plain_decimal(const char *e, char out[static 48])
{
    char digits[24];
    int nd = 0, ten = 0, o = 0;
    if (*e == '-')
        out[o++] = *e++;
    for (; *e && *e != 'e'; e++) {
        if (is_digit(*e))
            digits[nd++] = *e;
    }
    if (*e == 'e')
        ten = (int)strtol(e + 1, NULL, 10);
    if (ten < 0) {
        out[o++] = '0';
        out[o++] = '.';
        for (int i = -1; i > ten; i--)
            out[o++] = '0';
    }
    for (int i = 0; i < nd || i <= ten; i++) {
        if (ten >= 0 && i == ten + 1)
            out[o++] = '.';
        out[o++] = i < nd ? digits[i] : '0';
    }
    out[o] = 0;
}

/* encoding/json: decimal notation from 1e-6 to 1e21, else an exponent without leading zero. */
static void float_json(double f, char out[static 48])
{
    char e[48];
    double abs = fabs(f);
    shortest(f, false, e);
    if (abs == 0 || (abs >= 1e-6 && abs < 1e21)) {
        plain_decimal(e, out);
        return;
    }
    memcpy(out, e, sizeof(e));
    size_t n = strlen(out);
    if (out[n - 4] == 'e' && out[n - 3] == '-' && out[n - 2] == '0') {
        out[n - 2] = out[n - 1];
        out[n - 1] = 0;
    }
}

void bh_yaml_float_key(double f, char out[static 48])
{
    char e[48];
    shortest(f, true, e);
    long ten = strtol(strchr(e, 'e') + 1, NULL, 10);
    if (f != 0 && (ten < -4 || ten >= 6))
        memcpy(out, e, sizeof(e));
    else
        plain_decimal(e, out);
}

/* Go's base prefixes: 0x, 0o, 0b, and a plain 0 for octal. Whole text or nothing; a value beyond
 * int64 (negative) or uint64 (no sign) is no integer. */
static bool resolve_int(const char *p, struct bh_yaml_scalar *ret)
{
    bool neg = *p == '-', sign = neg || *p == '+';
    unsigned base = 10;
    uint64_t u = 0, max = neg ? (uint64_t)INT64_MAX + 1 : sign ? (uint64_t)INT64_MAX : UINT64_MAX;
    p += sign;
    if (p[0] == '0' && p[1]) {
        char c = (char)(p[1] | 0x20);
        base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
        p += c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
    }
    if (!*p)
        return false;
    for (; *p; p++) {
        char c = *p;
        unsigned d = is_digit(c)                              ? (unsigned)(c - '0')
                     : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (unsigned)((c | 0x20) - 'a') + 10
                                                              : 99;
        if (d >= base || u > (max - d) / base)
            return false;
        u = u * base + d;
    }
    ret->kind = BH_YAML_INT;
    ret->f = neg ? -(double)u : (double)u;
    snprintf(ret->number, sizeof(ret->number), "%s%llu", neg && u ? "-" : "",
             (unsigned long long)u);
    return true;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? and finite */
static bool resolve_float(const char *s, struct bh_yaml_scalar *ret)
{
    const char *p = s + (*s == '-' || *s == '+');
    if (*p == '.' && !is_digit(p[1]))
        return false;
    if (*p != '.' && !is_digit(*p))
        return false;
    while (is_digit(*p))
        p++;
    if (*p == '.')
        p++;
    while (is_digit(*p))
        p++;
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        if (!is_digit(*p))
            return false;
        while (is_digit(*p))
            p++;
    }
    if (*p)
        return false;
    double f = strtod(s, NULL);
    if (isinf(f))
        return false;
    ret->kind = BH_YAML_FLOAT;
    ret->f = f;
    float_json(f, ret->number);
    return true;
}

static bool resolve_number(const char *p, size_t n, struct bh_yaml_scalar *ret)
{
    char small[64], *t = n < sizeof(small) ? small : bh_malloc(n + 1);
    size_t o = 0;
    bool underscores = *p != '.', hit = memchr(p, 0, n) == NULL;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '_' || !underscores)
            t[o++] = p[i];
    }
    t[o] = 0;
    hit = hit && ((*p != '.' && resolve_int(t, ret)) || resolve_float(t, ret));
    if (t != small)
        free(t);
    return hit;
}

/* ---- timestamps ------------------------------------------------------------------------------ */

/* One or two digits within min and max; advances *p. The value, or -1. */
static int time_part(const char **p, const char *end, int min, int max)
{
    int v = 0, n = 0;
    for (; n < 2 && *p < end && is_digit(**p); n++)
        v = v * 10 + *(*p)++ - '0';
    return n > 0 && v >= min && v <= max ? v : -1;
}

static int days_in(int year, int month)
{
    if (month == 2)
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static bool lit(const char **p, const char *end, char c)
{
    return *p < end && *(*p)++ == c;
}

static bool zone(const char *p, const char *end)
{
    if (end - p == 1)
        return *p == 'Z';
    return end - p == 6 && (*p == '+' || *p == '-') && is_digit(p[1]) && is_digit(p[2]) &&
           p[3] == ':' && is_digit(p[4]) && is_digit(p[5]);
}

/* 2006-1-2, 2006-1-2 15:4:5.9, 2006-1-2T15:4:5.9Z07:00 */
static bool is_timestamp(const char *p, size_t n)
{
    const char *end = p + n;
    int year = 0, month;
    for (int i = 0; i < 4; i++) {
        if (p == end || !is_digit(*p))
            return false;
        year = year * 10 + *p++ - '0';
    }
    if (!lit(&p, end, '-') || (month = time_part(&p, end, 1, 12)) < 0 || !lit(&p, end, '-') ||
        time_part(&p, end, 1, days_in(year, month)) < 0)
        return false;
    if (p == end)
        return true;
    char sep = *p++;
    if (sep != 'T' && sep != 't' && sep != ' ')
        return false;
    if (time_part(&p, end, 0, 23) < 0 || !lit(&p, end, ':') || time_part(&p, end, 0, 59) < 0 ||
        !lit(&p, end, ':') || time_part(&p, end, 0, 59) < 0)
        return false;
    if (p < end && *p == '.') {
        p++;
        while (p < end && is_digit(*p))
            p++;
    }
    return sep == ' ' ? p == end : zone(p, end);
}

bool bh_yaml_is_base60(const char *p, size_t n)
{
    const char *end = p + n;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (p == end || !is_digit(*p))
        return false;
    while (p < end && (is_digit(*p) || *p == '_'))
        p++;
    if (p == end || *p != ':')
        return false;
    while (p < end && *p == ':') {
        p++;
        if (end - p >= 2 && *p <= '5' && is_digit(p[0]) && is_digit(p[1]))
            p++;
        if (p == end || !is_digit(*p++))
            return false;
    }
    if (p < end && *p == '.') {
        p++;
        while (p < end && (is_digit(*p) || *p == '_'))
            p++;
    }
    return p == end;
}

void bh_yaml_resolve(const char *p, size_t n, struct bh_yaml_scalar *ret)
{
    *ret = (struct bh_yaml_scalar){.kind = BH_YAML_STRING};
    if (resolve_word(p, n, ret))
        return;
    if (is_digit(*p) && is_timestamp(p, n)) {
        ret->kind = BH_YAML_TIMESTAMP;
        return;
    }
    if (is_digit(*p) || *p == '-' || *p == '+' || *p == '.')
        resolve_number(p, n, ret);
}
