/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/yaml_resolve.c - typing of plain YAML scalars
 *
 * Upstream: sigs.k8s.io/yaml/goyaml.v2 resolve.go, encode.go; strconv.ParseInt(s, 0, 64);
 *           encoding/json floatEncoder. differences: none known.
 */
#include "common/data/yaml_resolve.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>

/* ---- patterns -------------------------------------------------------------------------------- */

#define CLOCK "([01]?[0-9]|2[0-3])(:[0-5]?[0-9]){2}([.][0-9]*)?"
enum pattern { FLOAT, DATE, BASE60, PATTERNS };
static const char *const patterns[PATTERNS] = {
    [FLOAT] = "^[-+]?([.][0-9]+|[0-9]+([.][0-9]*)?)([eE][-+]?[0-9]+)?$",
    /* 2006-1-2, 2006-1-2 15:4:5.9, 2006-1-2T15:4:5.9Z07:00 */
    [DATE] = "^[0-9]{4}-(0?[1-9]|1[0-2])-(0?[1-9]|[12][0-9]|3[01])"
             "( " CLOCK "|[Tt]" CLOCK "(Z|[-+][0-9]{2}:[0-9]{2}))?$",
    [BASE60] = "^[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+([.][0-9_]*)?$",
};
static regex_t compiled[PATTERNS];

static void compile(void)
{
    for (size_t i = 0; i < PATTERNS; i++)
        bh_assert(regcomp(&compiled[i], patterns[i], REG_EXTENDED | REG_NOSUB) == 0);
}

static bool matches(enum pattern which, const char *p, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    regmatch_t text = {.rm_so = 0, .rm_eo = (regoff_t)n};

    if (n > INT_MAX)
        return false;
    pthread_once(&once, compile);
    return regexec(&compiled[which], p, 0, &text, REG_STARTEND) == 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The words of each kind, between blanks. */
static const char nulls[] = " ~ null Null NULL ";
static const char trues[] = " true True TRUE y Y yes Yes YES on On ON ";
static const char falses[] = " false False FALSE n N no No NO off Off OFF ";
static const char not_finite[] =
    " .nan .NaN .NAN .inf .Inf .INF +.inf +.Inf +.INF -.inf -.Inf -.INF ";

static bool resolve_word(const char *p, size_t n, struct bh_yaml_scalar *ret)
{
    char word[8];

    if (n > 5 || memchr(p, ' ', n) || memchr(p, 0, n))
        return false;
    snprintf(word, sizeof(word), " %.*s ", (int)n, n ? p : "");
    ret->b = strstr(trues, word) != NULL;
    if (n == 0 || strstr(nulls, word))
        ret->kind = BH_YAML_NULL;
    else if (ret->b || strstr(falses, word))
        ret->kind = BH_YAML_BOOL;
    else if (strstr(not_finite, word))
        ret->kind = BH_YAML_NOT_FINITE;
    return ret->kind != BH_YAML_STRING;
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
    for (; *e && *e != 'e'; e++)
        if (bh_is_digit(*e))
            digits[nd++] = *e;
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
        unsigned d = (unsigned)bh_hex_value(*p); /* beyond every base: it is none */
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

/* ---- timestamps ------------------------------------------------------------------------------ */

static bool is_timestamp(const char *p, size_t n)
{
    char date[11];
    int year, month, day;

    if (!matches(DATE, p, n))
        return false;
    snprintf(date, sizeof(date), "%.*s", (int)BH_MIN(n, 10), p);
    if (sscanf(date, "%4d-%2d-%2d", &year, &month, &day) != 3)
        return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= (month == 2                                              ? 28 + leap
                   : month == 4 || month == 6 || month == 9 || month == 11 ? 30
                                                                           : 31);
}

bool bh_yaml_is_base60(const char *p, size_t n)
{
    return n > 0 && (bh_is_digit(*p) || *p == '-' || *p == '+') && matches(BASE60, p, n);
}

void bh_yaml_resolve(const char *p, size_t n, struct bh_yaml_scalar *ret)
{
    *ret = (struct bh_yaml_scalar){.kind = BH_YAML_STRING};
    if (resolve_word(p, n, ret))
        return;
    if (bh_is_digit(*p) && is_timestamp(p, n)) {
        ret->kind = BH_YAML_TIMESTAMP;
        return;
    }
    if (bh_is_digit(*p) || *p == '-' || *p == '+' || *p == '.') {
        char small[64], *t = n < sizeof(small) ? small : bh_malloc(n + 1);
        size_t o = 0;
        bool underscores = *p != '.';
        for (size_t i = 0; i < n; i++)
            if (p[i] != '_' || !underscores)
                t[o++] = p[i];
        t[o] = 0;
        if (!memchr(p, 0, n) && !(underscores && resolve_int(t, ret))) {
            double f = matches(FLOAT, t, o) ? strtod(t, NULL) : INFINITY;
            if (!isinf(f)) {
                ret->kind = BH_YAML_FLOAT;
                ret->f = f;
                float_json(f, ret->number);
            }
        }
        if (t != small)
            free(t);
    }
}
