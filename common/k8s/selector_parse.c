/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/selector_parse.c - selectors in text form: labels ("a=b,c in (d,e),!f") and fields
 *
 * A token at a time with one token of look-ahead, no token list. Blanks separate; `in` and `notin`
 * are operators only where an operator can stand.
 * Upstream: apimachinery/pkg/labels/selector.go (Parser), apimachinery/pkg/fields/selector.go.
 */
#include <errno.h>

#include "common/k8s/selector_priv.h"
#include "common/k8s/syntax.h"

enum token {
    T_ERROR,
    T_END,
    T_CLOSE,
    T_COMMA,
    T_NOT,
    T_EQUAL2,
    T_EQUAL,
    T_GREATER,
    T_WORD,
    T_LESS,
    T_NOT_EQUAL,
    T_OPEN
};
struct parser {
    struct bh_selector *sel;
    struct bh_err *err;
    const char *p;   /* behind the current token */
    enum token tok;  /* current token */
    struct bh_str s; /* its text */
};
#define FOUND (int)BH_MIN(p->s.n, 128), p->s.p

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_special(char c)
{
    return c && strchr("=!(),><", c) != NULL;
}

static void next(struct parser *p)
{
    static const struct {
        const char *text;
        enum token tok;
    } specials[] = {{"==", T_EQUAL2}, {"!=", T_NOT_EQUAL}, {"=", T_EQUAL},
                    {"!", T_NOT},     {"(", T_OPEN},       {")", T_CLOSE},
                    {",", T_COMMA},   {">", T_GREATER},    {"<", T_LESS}};

    while (is_blank(*p->p))
        p->p++;
    const char *start = p->p;
    p->tok = *start ? T_WORD : T_END;
    if (is_special(*start)) {
        for (size_t i = 0; i < BH_ARRAY_LEN(specials); i++) {
            size_t n = strlen(specials[i].text);
            if (strncmp(start, specials[i].text, n) == 0) {
                p->tok = specials[i].tok;
                p->p += n;
                break;
            }
        }
    } else {
        while (*p->p && !is_special(*p->p) && !is_blank(*p->p))
            p->p++;
    }
    p->s = (struct bh_str){start, (size_t)(p->p - start)};
}

static const char *word(struct parser *p)
{
    return bh_arena_strndup(&p->sel->a, p->s.p, p->s.n);
}

struct values {
    const char **v;
    size_t n, cap;
};

static void values_add(struct parser *p, struct values *set, const char *s)
{
    BH_ARENA_GROW(&p->sel->a, set->v, set->n, set->cap);
    set->v[set->n++] = s;
}

static int parse_operator(struct parser *p, enum bh_req_op *ret_op, bool *ret_list)
{
    bool in = p->tok == T_WORD && bh_str_eqc(p->s, "in");
    bool not_in = p->tok == T_WORD && bh_str_eqc(p->s, "notin");

    *ret_list = in || not_in;
    if (in || p->tok == T_EQUAL || p->tok == T_EQUAL2)
        *ret_op = BH_REQ_IN;
    else if (not_in || p->tok == T_NOT_EQUAL)
        *ret_op = BH_REQ_NOT_IN;
    else if (p->tok == T_GREATER || p->tok == T_LESS)
        *ret_op = p->tok == T_GREATER ? BH_REQ_GT : BH_REQ_LT;
    else
        return bh_err_set(p->err, -EINVAL, "found '%.*s', expected: in, notin, =, ==, !=, gt, lt",
                          FOUND);
    return 0;
}

static int parse_values(struct parser *p, bool list, struct values *set)
{
    if (list) {
        if (p->tok != T_OPEN)
            return bh_err_set(p->err, -EINVAL, "found '%.*s' expected: '('", FOUND);
        next(p);
        /* Behind "(": words and empty places between commas, up to ")". */
        bool place_open = true; /* a value may stand here; an empty one when none does */
        for (;; next(p)) {
            switch (p->tok) {
            case T_WORD:
                if (!place_open)
                    return bh_err_set(p->err, -EINVAL, "found '%.*s', expected: ',' or ')'", FOUND);
                values_add(p, set, word(p));
                place_open = false;
                break;
            case T_COMMA:
                if (place_open)
                    values_add(p, set, "");
                place_open = true;
                break;
            case T_CLOSE:
                if (place_open)
                    values_add(p, set, "");
                next(p);
                return 0;
            default:
                return bh_err_set(p->err, -EINVAL, "found '%.*s', expected: ',', ')' or identifier",
                                  FOUND);
            }
        }
    }
    if (p->tok == T_END || p->tok == T_COMMA) {
        values_add(p, set, "");
        return 0;
    }
    if (p->tok != T_WORD)
        return bh_err_set(p->err, -EINVAL, "found '%.*s', expected: identifier", FOUND);
    values_add(p, set, word(p));
    next(p);
    return 0;
}

/* Upstream checks the key with an absent path, which it prints as <nil>. */
static int check_key(struct parser *p, const char *key)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0}, why BH_CLEANUP(bh_buf_fini) = {0};

    if (!bh_label_key_why(&why, key, strlen(key)))
        return 0;
    bh_buf_add_json_str(&text, key, strnlen(key, 128));
    return bh_err_set(p->err, -EINVAL, "<nil>: Invalid value: %s: %s", bh_buf_str(&text),
                      bh_buf_str(&why));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int parse_requirement(struct parser *p)
{
    struct bh_sel_req r = {.op = BH_REQ_EXISTS};
    struct values set = {0};
    bool list;

    if (p->tok == T_NOT) {
        r.op = BH_REQ_NOT_EXISTS;
        next(p);
    }
    if (p->tok != T_WORD)
        return bh_err_set(p->err, -EINVAL, "found '%.*s', expected: identifier", FOUND);
    r.key = word(p);
    int bad_key = check_key(p, r.key);
    if (bad_key)
        return bad_key;
    next(p);
    if (r.op == BH_REQ_EXISTS && p->tok != T_END && p->tok != T_COMMA) {
        int rc = parse_operator(p, &r.op, &list);
        if (rc == 0) {
            next(p);
            rc = parse_values(p, list, &set);
        }
        if (rc)
            return rc;
    }
    r.values = set.v;
    r.n_values = bh_sort_unique(set.v, set.n, sizeof(*set.v), by_text); /* as upstream's set */
    return bh_selector_add_label(p->sel, r, p->err);
}

static int parse_labels(struct parser *p)
{
    for (next(p); p->tok != T_END;) {
        if (p->tok != T_WORD && p->tok != T_NOT)
            return bh_err_set(p->err, -EINVAL,
                              "found '%.*s', expected: !, identifier, or 'end of string'", FOUND);
        int rc = parse_requirement(p);
        if (rc)
            return bh_err_prefix(p->err, rc, "unable to parse requirement");
        if (p->tok == T_END)
            break;
        if (p->tok != T_COMMA)
            return bh_err_set(p->err, -EINVAL, "found '%.*s', expected: ',' or 'end of string'",
                              FOUND);
        next(p);
        if (p->tok != T_WORD && p->tok != T_NOT)
            return bh_err_set(p->err, -EINVAL, "found '%.*s', expected: identifier after ','",
                              FOUND);
    }
    return 0;
}

int bh_selector_parse(const char *text, struct bh_selector **ret, struct bh_err *err)
{
    struct bh_selector *s = bh_selector_new();
    struct parser p = {.sel = s, .err = err, .p = text};

    return bh_selector_finish(s, parse_labels(&p), ret);
}

/* ---- fields ---- */
static int unescape(struct bh_selector *s, const char *p, size_t n, const char **ret,
                    struct bh_err *err)
{
    char *out = bh_arena_alloc(&s->a, n + 1);
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        if (p[i] == ',' || p[i] == '=')
            return bh_err_set(err, -EINVAL,
                              "invalid field selector: unescaped character in value: %d", p[i]);
        if (p[i] == '\\') {
            i++;
            if (i == n || !strchr("\\,=", p[i]))
                return bh_err_set(err, -EINVAL,
                                  "invalid field selector: invalid escape sequence: \\%.*s",
                                  i < n ? 1 : 0, p + i);
        }
        out[k++] = p[i];
    }
    out[k] = '\0';
    *ret = out;
    return 0;
}

static int parse_field_term(struct bh_selector *s, const char *p, size_t n, const char *text,
                            struct bh_err *err)
{
    size_t i = 0, n_op = 1;

    while (i < n && p[i] != '=' && !(p[i] == '!' && i + 1 < n && p[i + 1] == '='))
        i++;
    if (i == n)
        return bh_err_set(err, -EINVAL, "invalid selector: '%.128s'; can't understand '%.*s'", text,
                          (int)BH_MIN(n, 128), p);
    if (p[i] == '!' || (i + 1 < n && p[i + 1] == '='))
        n_op = 2;
    const char **value = bh_arena_new_array(&s->a, const char *, 1);
    int rc = unescape(s, p + i + n_op, n - i - n_op, value, err);
    if (rc)
        return rc;
    bh_selector_add(s, (struct bh_sel_req){.key = bh_arena_strndup(&s->a, p, i),
                                           .op = p[i] == '!' ? BH_REQ_NOT_IN : BH_REQ_IN,
                                           .values = value,
                                           .n_values = 1});
    return 0;
}

int bh_field_selector_parse(const char *text, struct bh_selector **ret, struct bh_err *err)
{
    struct bh_selector *s = bh_selector_new();
    const char *start = text;
    int rc = 0;

    for (const char *p = text; rc == 0; p++) {
        if (*p == '\\' && p[1]) {
            p++;
            continue;
        }
        if (*p && *p != ',')
            continue;
        if (p > start)
            rc = parse_field_term(s, start, (size_t)(p - start), text, err);
        start = p + 1;
        if (!*p)
            break;
    }
    return bh_selector_finish(s, rc, ret);
}
