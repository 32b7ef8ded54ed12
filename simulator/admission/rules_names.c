/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/rules_names.c - rules of texts: names, labels, paths, addresses
 *
 * Upstream: apimachinery/pkg/util/validation, apimachinery/pkg/api/validate/content,
 * apimachinery/pkg/api/validation/objectmeta.go (v1.36).
 */
#include "simulator/admission/rules.h"

#include "common/k8s/selector.h"
#include "common/regex/regex.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define ANNOTATION_BYTES_MAX ((size_t)256 * 1024)

/* ---- faults ---------------------------------------------------------------------------------- */

static struct bh_rule_fault **add_fault(struct bh_rule_run *r, struct bh_rule_fault **end,
                                        const char *text)
{
    struct bh_rule_fault *f = bh_arena_new(r->w->arena, struct bh_rule_fault);

    f->text = text;
    *end = f;
    return &f->next;
}

bool bh_rule_faults(struct bh_rule_run *r, const struct bh_rule_at *at, const char *value,
                    const struct bh_rule_fault *f)
{
    bool fine = !f;

    for (; f; f = f->next)
        bh_rule_invalid_text(r, at, value, f->text);
    return fine;
}

/* ---- texts that match an expression ---------------------------------------------------------- */

#define LABEL_RE "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
/* What is longer than max, if it is not 0, and what does not match, is wrong. */
struct format {
    const char *name, *re;
    unsigned max;
    const char *unit, *text;
};
static const struct format formats[] = {
    {"dns-subdomain-underscore",
     "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*", 253, "characters",
     "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' "
     "or "
     "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
     "for "
     "validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"},
    {"dns1035-label", "[a-z]([-a-z0-9]*[a-z0-9])?", 63, "characters",
     "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
     "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
     "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"},
    {"c-identifier", "[A-Za-z_][A-Za-z0-9_]*", 0, "",
     "a valid C identifier must start with alphabetic character or '_', followed by a string of "
     "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
     "validation is '[A-Za-z_][A-Za-z0-9_]*')"},
    {"http-header", "[-A-Za-z0-9]+", 0, "",
     "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
     "regex used for validation is '[-A-Za-z0-9]+')"},
    {"env-name", "[ -<>-~]+", 0, "",
     "a valid environment variable name must consist only of printable ASCII characters other than "
     "'='"},
    {"sysctl", "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", 0, "",
     "must have at most 253 characters and match regex "
     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"},
    {"integer", "0|-?[1-9][0-9]*", 0, "", "must be a valid decimal integer in canonical form"},
};
static struct bh_regex *compiled[BH_ARRAY_LEN(formats)];
static pthread_once_t compiled_once = PTHREAD_ONCE_INIT;

static void compile_formats(void)
{
    static struct bh_arena arena;
    const char *why;

    bh_arena_init(&arena, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(formats); i++) {
        compiled[i] = bh_regex_compile(
            &arena, bh_str_c(bh_arena_printf(&arena, "^(%s)$", formats[i].re)), &why);
        bh_assert(compiled[i]);
    }
}

static struct bh_rule_fault *check_format(struct bh_rule_run *r, size_t i, const char *s)
{
    struct bh_rule_fault *all = NULL, **end = &all;
    const struct format *f = &formats[i];
    size_t from, to;
    uint64_t steps = 0;

    pthread_once(&compiled_once, compile_formats);
    if (f->max && strlen(s) > f->max)
        end = add_fault(r, end, bh_rule_printf(r, "must be no more than %u %s", f->max, f->unit));
    if (!bh_regex_find(compiled[i], r->w->arena, bh_str_c(s), 0, &from, &to, &steps, UINT64_MAX))
        add_fault(r, end, f->text);
    return all;
}

bool bh_rule_format(struct bh_rule_run *r, const struct bh_rule_at *at,
                    const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    size_t i = 0;

    while (i < BH_ARRAY_LEN(formats) && !bh_streq(formats[i].name, c->arg[0]))
        i++;
    bh_assert(i < BH_ARRAY_LEN(formats));
    return !s || bh_rule_faults(r, at, s, check_format(r, i, s));
}

/* ---- names ----------------------------------------------------------------------------------- */

struct bh_rule_fault *bh_name_label(struct bh_rule_run *r, const char *s)
{
    struct bh_rule_fault *all = NULL, **end = &all;
    size_t n = strlen(s);

    if (n > 63)
        end = add_fault(r, end, "must be no more than 63 characters");
    if (n && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n && *s != '-' &&
        s[n - 1] != '-')
        return all;
    bool dots = n && bh_valid_dns1123_subdomain(s, BH_MIN(n, (size_t)253));
    add_fault(r, end, dots ? "must not contain dots" : BH_SIM_LABEL_TEXT);
    return all;
}

static bool is_subdomain(const char *s)
{
    size_t n = strlen(s);
    char last = '.';

    for (size_t i = 0; i < n; last = s[i++]) {
        bool inner = s[i] == '-' || s[i] == '.';
        if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && !inner)
            return false;
        if ((s[i] == '.' && !isalnum((unsigned char)last)) || (s[i] == '-' && last == '.'))
            return false;
    }
    return n && isalnum((unsigned char)last);
}

static struct bh_rule_fault *check_subdomain(struct bh_rule_run *r, const char *s,
                                             const char *before, const char *unit)
{
    struct bh_rule_fault *all = NULL, **end = &all;

    if (strlen(s) > 253)
        end = add_fault(r, end, bh_rule_printf(r, "%smust be no more than 253 %s", before, unit));
    if (!is_subdomain(s))
        add_fault(r, end, bh_rule_printf(r, "%s%s", before, BH_SIM_SUBDOMAIN_TEXT));
    return all;
}

struct bh_rule_fault *bh_name_subdomain(struct bh_rule_run *r, const char *s)
{
    return is_subdomain(s) && strlen(s) <= 253 ? NULL : check_subdomain(r, s, "", "characters");
}

struct bh_rule_fault *bh_name_key(struct bh_rule_run *r, const char *s)
{
    struct bh_rule_fault *all = NULL, **end = &all;
    const char *slash = strchr(s, '/'), *name = slash ? slash + 1 : s;
    size_t n = strlen(name);

    if (bh_valid_label_key(s, strlen(s)))
        return NULL;
    if (slash && strchr(name, '/')) {
        add_fault(
            r, end,
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and "
            "must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name', "
            " or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?"
            "[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
            "'example.com/MyName')");
        return all;
    }
    if (slash == s)
        end = add_fault(r, end, "prefix part must be non-empty");
    else if (slash)
        *end = check_subdomain(r, bh_rule_printf(r, "%.*s", (int)(slash - s), s), "prefix part ",
                               "bytes");
    while (*end)
        end = &(*end)->next;
    if (!n)
        end = add_fault(r, end, "name part must be non-empty");
    else if (n > 63)
        end = add_fault(r, end, "name part must be no more than 63 bytes");
    bool odd =
        strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != n;
    if (!n || odd || !isalnum((unsigned char)*name) || !isalnum((unsigned char)name[n - 1]))
        add_fault(r, end, BH_SIM_KEY_TEXT);
    return all;
}

struct bh_rule_fault *bh_name_label_value(struct bh_rule_run *r, const char *s)
{
    struct bh_rule_fault *all = NULL, **end = &all;
    size_t n = strlen(s);

    if (n > 63)
        end = add_fault(r, end, "must be no more than 63 bytes");
    bool odd = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != n;
    if (n && (odd || !isalnum((unsigned char)*s) || !isalnum((unsigned char)s[n - 1])))
        add_fault(r, end, BH_SIM_VALUE_TEXT);
    return all;
}

static struct bh_rule_fault *check_port_name(struct bh_rule_run *r, const char *s)
{
    struct bh_rule_fault *all = NULL, **end = &all;
    size_t n = strlen(s);

    if (n > 15)
        end = add_fault(r, end, "must be no more than 15 characters");
    if (!n || strspn(s, "-abcdefghijklmnopqrstuvwxyz0123456789") != n)
        end = add_fault(r, end,
                        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    if (!strpbrk(s, "abcdefghijklmnopqrstuvwxyz"))
        end = add_fault(r, end, "must contain at least one letter (a-z)");
    if (strstr(s, "--"))
        end = add_fault(r, end, "must not contain consecutive hyphens");
    if (n && (*s == '-' || s[n - 1] == '-'))
        add_fault(r, end, "must not begin or end with a hyphen");
    return all;
}

static struct bh_rule_fault *check_config_key(struct bh_rule_run *r, const char *s)
{
    struct bh_rule_fault *all = NULL, **end = &all;
    size_t n = strlen(s);

    if (n > 253)
        end = add_fault(r, end, "must be no more than 253 characters");
    if (!n || strspn(s, "-._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != n)
        end = add_fault(r, end,
                        "a valid config key must consist of alphanumeric characters, '-', '_' or "
                        "'.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for "
                        "validation is '[-._a-zA-Z0-9]+')");
    if (bh_streq(s, ".") || bh_streq(s, ".."))
        add_fault(r, end, bh_rule_printf(r, "must not be '%s'", s));
    else if (strncmp(s, "..", 2) == 0)
        add_fault(r, end, "must not start with '..'");
    return all;
}

/* A name that is part of a path. */
static struct bh_rule_fault *check_segment(struct bh_rule_run *r, const char *s)
{
    struct bh_rule_fault *all = NULL, **end = &all;

    if (bh_streq(s, ".") || bh_streq(s, "..")) {
        add_fault(r, end, bh_rule_printf(r, "may not be '%s'", s));
        return all;
    }
    if (strchr(s, '/'))
        end = add_fault(r, end, "may not contain '/'");
    if (strchr(s, '%'))
        add_fault(r, end, "may not contain '%'");
    return all;
}

static struct bh_rule_fault *in_bytes(struct bh_rule_run *r, struct bh_rule_fault *f)
{
    for (struct bh_rule_fault *p = f; p; p = p->next)
        if (strstr(p->text, " characters") && strncmp(p->text, "must be no more", 15) == 0)
            p->text = bh_rule_printf(r, "%.*s bytes", (int)(strlen(p->text) - 11), p->text);
    return f;
}

static struct bh_rule_fault *check_label_bytes(struct bh_rule_run *r, const char *s)
{
    return in_bytes(r, bh_name_label(r, s));
}

static struct bh_rule_fault *check_subdomain_bytes(struct bh_rule_run *r, const char *s)
{
    return in_bytes(r, bh_name_subdomain(r, s));
}

#define NAME_RULE(rule, check)                                                                     \
    static bool rule(struct bh_rule_run *r, const struct bh_rule_at *at,                           \
                     const struct bh_rule_call *c)                                                 \
    {                                                                                              \
        const char *s = bh_rule_text(at);                                                          \
        (void)c;                                                                                   \
        return !s || bh_rule_faults(r, at, s, check(r, s));                                        \
    }
NAME_RULE(rule_label, bh_name_label)
NAME_RULE(rule_subdomain, bh_name_subdomain)
NAME_RULE(rule_label_bytes, check_label_bytes)
NAME_RULE(rule_subdomain_bytes, check_subdomain_bytes)
NAME_RULE(rule_key, bh_name_key)
NAME_RULE(rule_label_value, bh_name_label_value)
NAME_RULE(rule_port_name, check_port_name)
NAME_RULE(rule_segment, check_segment)

bool bh_rule_config_key(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    return !s || bh_rule_faults(r, at, s, check_config_key(r, s));
}

/* A driver: 63 bytes, a subdomain in any case. */
static bool rule_driver(struct bh_rule_run *r, const struct bh_rule_at *at,
                        const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);
    bool fine = true;

    if (s && strlen(s) > 63) {
        bh_rule_error(r, at, "Too long", NULL, "may not be more than 63 bytes");
        fine = false;
    }
    if (!s)
        return true;
    char *lower = bh_arena_strndup(r->w->arena, s, strlen(s));
    bh_lower(lower);
    (void)c;
    return bh_rule_faults(r, at, s, bh_name_subdomain(r, lower)) && fine;
}

/* ---- labels, annotations --------------------------------------------------------------------- */

static bool rule_label_map(struct bh_rule_run *r, const struct bh_rule_at *at,
                           const struct bh_rule_call *c)
{
    bool fine = true;

    (void)c;
    bh_json_each(l, at->v) {
        const char *value = bh_json_cstr(l);
        fine = bh_rule_faults(r, at, l->key.p, bh_name_key(r, l->key.p)) && fine;
        fine =
            bh_rule_faults(r, at, value ? value : "", bh_name_label_value(r, value ? value : "")) &&
            fine;
    }
    return fine;
}

static bool rule_annotations(struct bh_rule_run *r, const struct bh_rule_at *at,
                             const struct bh_rule_call *c)
{
    size_t total = 0;

    (void)c;
    bh_json_each(m, at->v) {
        char *lower = bh_arena_strndup(r->w->arena, m->key.p, m->key.n);
        bh_lower(lower);
        total += m->key.n + (m->type == BH_JSON_STRING ? m->s.n : 0);
        bh_rule_faults(r, at, m->key.p, bh_name_key(r, lower));
    }
    if (total > ANNOTATION_BYTES_MAX)
        bh_rule_error(r, at, "Too long", NULL,
                      bh_rule_printf(r, "may not be more than %zu bytes", ANNOTATION_BYTES_MAX));
    return true;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static bool rule_port(struct bh_rule_run *r, const struct bh_rule_at *at,
                      const struct bh_rule_call *c)
{
    int64_t n = 0;
    const char *s = bh_json_cstr(at->v);

    (void)c;
    if (s)
        return bh_rule_faults(r, at, s, check_port_name(r, s));
    if (at->v)
        bh_json_i64(at->v, &n);
    if (n >= 1 && n <= 65535)
        return true;
    bh_rule_invalid_number(r, at, n, "must be between 1 and 65535, inclusive");
    return false;
}

/* ---- paths of files -------------------------------------------------------------------------- */

static bool has_backsteps(const char *s)
{
    for (const char *p = s; (p = strstr(p, "..")); p += 2)
        if ((p == s || p[-1] == '/') && (!p[2] || p[2] == '/'))
            return true;
    return false;
}

static bool rule_no_backsteps(struct bh_rule_run *r, const struct bh_rule_at *at,
                              const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    if (!s || !has_backsteps(s))
        return true;
    bh_rule_invalid_text(r, at, s, c->n ? c->arg[0] : "must not contain '..'");
    return false;
}

static bool rule_relative_path(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    if (s && *s == '/')
        bh_rule_invalid_text(r, at, s, "must be a relative path");
    return rule_no_backsteps(r, at, c) && s && *s != '/';
}

/* A relative path that does not look like one of the kubelet's own. */
static bool rule_local_path(struct bh_rule_run *r, const struct bh_rule_at *at,
                            const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    rule_relative_path(r, at, c);
    if (s && strncmp(s, "..", 2) == 0 && s[2] != '/')
        bh_rule_invalid_text(r, at, s, "must not start with '..'");
    return true;
}

static bool rule_absolute_path(struct bh_rule_run *r, const struct bh_rule_at *at,
                               const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    if (!s || *s == '/')
        return true;
    bh_rule_invalid_text(r, at, s, "must be an absolute path");
    return false;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Also with zeros in front, as old clients write it. */
static int family_of(const char *s)
{
    unsigned char bits[16];
    unsigned n[4];
    char more;

    if (inet_pton(AF_INET6, s, bits) == 1)
        return 6;
    if (strspn(s, "0123456789.") == strlen(s) &&
        sscanf(s, "%3u.%3u.%3u.%3u%c", n, n + 1, n + 2, n + 3, &more) == 4 && n[0] < 256 &&
        n[1] < 256 && n[2] < 256 && n[3] < 256)
        return 4;
    return 0;
}

bool bh_rule_ip(struct bh_rule_run *r, const struct bh_rule_at *at, const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at);

    (void)c;
    if (!s || family_of(s))
        return true;
    bh_rule_invalid_text(r, at, s, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    return false;
}

static bool rule_cidr(struct bh_rule_run *r, const struct bh_rule_at *at,
                      const struct bh_rule_call *c)
{
    const char *s = bh_rule_text(at), *slash = s ? strrchr(s, '/') : NULL;
    int family = slash ? family_of(bh_rule_printf(r, "%.*s", (int)(slash - s), s)) : 0;

    (void)c;
    if (!s || (family && slash[1] && strspn(slash + 1, "0123456789") == strlen(slash + 1) &&
               strlen(slash + 1) < 4 && strtol(slash + 1, NULL, 10) <= (family == 4 ? 32 : 128)))
        return true;
    bh_rule_invalid_text(r, at, s,
                         "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    return false;
}

const struct bh_rule bh_rules_names[] = {
    {"format", bh_rule_format},
    {"dns-label", rule_label},
    {"dns-subdomain", rule_subdomain},
    {"dns-label-bytes", rule_label_bytes},
    {"dns-subdomain-bytes", rule_subdomain_bytes},
    {"label-key", rule_key},
    {"label-value", rule_label_value},
    {"label-map", rule_label_map},
    {"annotations", rule_annotations},
    {"port-name", rule_port_name},
    {"port", rule_port},
    {"config-key", bh_rule_config_key},
    {"path-segment", rule_segment},
    {"driver", rule_driver},
    {"no-backsteps", rule_no_backsteps},
    {"relative-path", rule_relative_path},
    {"local-path", rule_local_path},
    {"absolute-path", rule_absolute_path},
    {"ip", bh_rule_ip},
    {"cidr", rule_cidr},
    {0},
};
