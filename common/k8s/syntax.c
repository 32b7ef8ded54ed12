/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/syntax.c - syntax of names, label keys and values, with upstream's explanations
 *
 * Hand-written matchers instead of regular expressions: linear, no state, a few nanoseconds; the
 * patterns are quoted only in the messages.
 * Upstream: apimachinery/pkg/api/validate/content, apimachinery/pkg/labels.
 */
#include "common/k8s/syntax.h"

#include <stdio.h>

#include "common/k8s/selector.h"

#define LABEL_PATTERN "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
#define LABEL_CHARS                                                                                \
    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "       \
    "character"
#define DNS_LABEL_PATTERN "[a-z0-9]([-a-z0-9]*[a-z0-9])?"

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || bh_is_digit(c);
}

static bool is_alnum(char c)
{
    return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool is_label_text(const char *s, size_t n)
{
    if (n == 0 || !is_alnum(s[0]) || !is_alnum(s[n - 1]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!is_alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    return true;
}

/* A DNS label, or several with dots between them; of any length. */
static bool is_dns_text(const char *s, size_t n, bool dots)
{
    bool start = true;

    if (n == 0 || !is_lower_alnum(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (start ? !is_lower_alnum(s[i])
                  : !is_lower_alnum(s[i]) && s[i] != '-' && !(dots && s[i] == '.'))
            return false;
        start = s[i] == '.';
        if (start && s[i - 1] == '-')
            return false;
    }
    return true;
}

bool bh_valid_dns1123_label(const char *s, size_t n)
{
    return n <= 63 && is_dns_text(s, n, false);
}

bool bh_valid_dns1123_subdomain(const char *s, size_t n)
{
    return n <= 253 && is_dns_text(s, n, true);
}

bool bh_valid_label_value(const char *s, size_t n)
{
    return n == 0 || (n <= 63 && is_label_text(s, n));
}

bool bh_valid_label_key(const char *s, size_t n)
{
    const char *slash = n ? memchr(s, '/', n) : NULL;

    if (slash) {
        size_t prefix = (size_t)(slash - s);
        if (!bh_valid_dns1123_subdomain(s, prefix))
            return false;
        s = slash + 1;
        n -= prefix + 1;
    }
    return n <= 63 && is_label_text(s, n);
}

bool bh_parse_int64(const char *s, size_t n, int64_t *ret)
{
    bool neg = n && *s == '-';
    size_t i = n && (*s == '-' || *s == '+');
    uint64_t v = 0, max = (uint64_t)INT64_MAX + neg;

    if (i == n)
        return false;
    for (; i < n; i++) {
        unsigned d = (unsigned char)s[i] - (unsigned)'0';
        if (d > 9 || v > (max - d) / 10)
            return false;
        v = v * 10 + d;
    }
    *ret = neg ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* "; " between reasons. */
static void reason(struct bh_buf *out, size_t start, const char *text)
{
    if (out->n > start)
        bh_buf_adds(out, "; ");
    bh_buf_adds(out, text);
}

static void prefix_why(struct bh_buf *out, size_t start, const char *s, size_t n)
{
    if (n == 0) {
        reason(out, start, "prefix part must be non-empty");
        return;
    }
    if (n > 253)
        reason(out, start, "prefix part must be no more than 253 bytes");
    if (!is_dns_text(s, n, true))
        reason(
            out, start,
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
            "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
            "'example.com', regex used for validation is '" DNS_LABEL_PATTERN
            "(\\." DNS_LABEL_PATTERN ")*')");
}

bool bh_label_key_why(struct bh_buf *out, const char *s, size_t n)
{
    size_t start = out->n;
    const char *slash = n ? memchr(s, '/', n) : NULL;

    if (bh_valid_label_key(s, n))
        return false;
    if (slash && memchr(slash + 1, '/', n - (size_t)(slash + 1 - s))) {
        reason(out, start,
               "a valid label key must consist of " LABEL_CHARS
               " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
               "'" LABEL_PATTERN "') with an optional DNS subdomain prefix and '/' (e.g. "
               "'example.com/MyName')");
        return true;
    }
    if (slash) {
        prefix_why(out, start, s, (size_t)(slash - s));
        n -= (size_t)(slash + 1 - s);
        s = slash + 1;
    }
    if (n == 0)
        reason(out, start, "name part must be non-empty");
    else if (n > 63)
        reason(out, start, "name part must be no more than 63 bytes");
    if (!is_label_text(s, n))
        reason(out, start,
               "name part must consist of " LABEL_CHARS
               " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
               "'" LABEL_PATTERN "')");
    return true;
}

/* ---- errors of requirements ---- */

const char *const bh_req_op_names[] = {
    [BH_REQ_IN] = "In",         [BH_REQ_NOT_IN] = "NotIn",
    [BH_REQ_EXISTS] = "Exists", [BH_REQ_NOT_EXISTS] = "DoesNotExist",
    [BH_REQ_GT] = "Gt",         [BH_REQ_LT] = "Lt",
};

int bh_req_op_of(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bh_streq(name, bh_req_op_names[i]))
            return (int)i;
    return -1;
}

bool bh_why_begin(struct bh_why *w, const char *path)
{
    if (w->n == BH_WHY_MAX)
        return false;
    if (w->n++)
        bh_buf_adds(&w->text, ", ");
    w->start[w->n - 1] = w->text.n;
    bh_buf_adds(&w->text, path);
    bh_buf_adds(&w->text, ": ");
    return true;
}

static bool begin(struct bh_why *w, const char *path, const char *child)
{
    char full[768];

    /* An absent root path is printed as the child alone. */
    snprintf(full, sizeof(full), "%s%s%s", path, *path ? "." : "", child);
    return bh_why_begin(w, full);
}

void bh_why_values(struct bh_why *w, const char *const *values, size_t n_values)
{
    if (n_values == 0) {
        bh_buf_adds(&w->text, "null");
        return;
    }
    bh_buf_addc(&w->text, '[');
    for (size_t i = 0; i < BH_MIN(n_values, BH_WHY_MAX); i++) {
        bh_buf_adds(&w->text, i ? "," : "");
        bh_buf_add_json_str(&w->text, values[i], strnlen(values[i], 256));
    }
    bh_buf_addc(&w->text, ']');
}

static void invalid_value(struct bh_why *w, const char *text, size_t n)
{
    bh_buf_adds(&w->text, "Invalid value: ");
    bh_buf_add_json_str(&w->text, text, BH_MIN(n, 256));
    bh_buf_adds(&w->text, ": ");
}

static void count_why(struct bh_why *w, const char *path, const char *const *values,
                      size_t n_values, const char *detail)
{
    if (!begin(w, path, "values"))
        return;
    bh_buf_adds(&w->text, "Invalid value: ");
    bh_why_values(w, values, n_values);
    bh_buf_addf(&w->text, ": %s", detail);
}

static void value_why(struct bh_why *w, const char *path, const char *key, size_t i,
                      const char *value)
{
    size_t n = strlen(value);
    char child[192];

    if (bh_valid_label_value(value, n))
        return;
    snprintf(child, sizeof(child), "values[%zu][%.128s]", i, key);
    if (!begin(w, path, child))
        return;
    invalid_value(w, value, n);
    size_t start = w->text.n;
    if (n > 63)
        reason(&w->text, start, "must be no more than 63 bytes");
    if (!is_label_text(value, n))
        reason(&w->text, start,
               "a valid label must be an empty string or consist of " LABEL_CHARS
               " (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
               "'(" LABEL_PATTERN ")?')");
}

static void number_why(struct bh_why *w, const char *path, const char *const *values,
                       size_t n_values)
{
    int64_t ignored;

    if (n_values != 1)
        count_why(w, path, values, n_values,
                  "for 'Gt', 'Lt' operators, exactly one value is required");
    for (size_t i = 0; i < n_values; i++) {
        char child[32];
        if (bh_parse_int64(values[i], strlen(values[i]), &ignored))
            continue;
        snprintf(child, sizeof(child), "values[%zu]", i);
        if (!begin(w, path, child))
            return;
        invalid_value(w, values[i], strlen(values[i]));
        bh_buf_adds(&w->text, "for 'Gt', 'Lt' operators, the value must be an integer");
    }
}

void bh_why_requirement(struct bh_why *w, const char *path, const char *key, enum bh_req_op op,
                        const char *const *values, size_t n_values)
{
    size_t n_key = strlen(key);

    if (!bh_valid_label_key(key, n_key) && begin(w, path, "key")) {
        invalid_value(w, key, n_key);
        bh_label_key_why(&w->text, key, n_key);
    }
    switch (op) {
    case BH_REQ_IN:
    case BH_REQ_NOT_IN:
        if (n_values == 0)
            count_why(w, path, values, n_values,
                      "for 'in', 'notin' operators, values set can't be empty");
        break;
    case BH_REQ_EXISTS:
    case BH_REQ_NOT_EXISTS:
        if (n_values != 0)
            count_why(w, path, values, n_values,
                      "values set must be empty for exists and does not exist");
        break;
    case BH_REQ_GT:
    case BH_REQ_LT:
        number_why(w, path, values, n_values);
        break;
    }
    for (size_t i = 0; i < n_values; i++)
        value_why(w, path, key, i, values[i]);
}

void bh_why_finish(struct bh_why *w)
{
    if (w->n < 2)
        return;
    struct bh_buf all = {0};
    bh_buf_addc(&all, '[');
    bh_buf_add(&all, w->text.p, w->text.n);
    bh_buf_addc(&all, ']');
    bh_buf_fini(&w->text);
    w->text = all;
}
