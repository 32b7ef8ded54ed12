/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/opt.c - the command line, from one table
 *
 * Fails with: -EINVAL and pflag's text in err.
 * Upstream:   github.com/spf13/pflag flag.go, k8s.io/component-base/cli/flag
 * (WordSepNormalizeFunc); differences: integers take no digit separators; lists no quoted commas;
 * floats are C's.
 */
#include "common/base/opt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>

#include "common/base/buf.h"

struct parse {
    const struct bh_opt *table;
    int argc, at; /* at: next argument */
    char **argv;
    bool *given; /* by table index; of a list: the default is gone */
    const struct bh_opt *go_texts;
    struct bh_opt_list args;
    bool args_allowed;
    bool help, words, version;
    struct bh_err *err;
};

static bool same_name(const char *given, size_t n, const char *name)
{
    if (strlen(name) != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((given[i] == '_' ? '-' : given[i]) != name[i])
            return false;
    return true;
}

BH_PRINTF(4, 5)
static int invalid(struct parse *p, const struct bh_opt *o, const char *v, const char *fmt, ...)
{
    char why[512], letter[] = {'-', o->letter, ',', ' ', '\0'};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    return bh_err_set(p->err, -EINVAL, "invalid argument \"%s\" for \"%s--%s\" flag: %s", v,
                      o->letter ? letter : "", o->name, why);
}

/* A value that is none of its kind: what was expected, or for kube-scheduler's flags Go's text. */
static int report_value(struct parse *p, const struct bh_opt *o, const char *v,
                        const char *function, bool range, const char *expected)
{
    return p->go_texts && o >= p->go_texts
               ? invalid(p, o, v, "strconv.%s: parsing \"%.64s\": %s", function, v,
                         range ? "value out of range" : "invalid syntax")
               : invalid(p, o, v, "%s", expected);
}

int bh_parse_bool(const char *v)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};

    for (size_t i = 0; i < BH_ARRAY_LEN(yes); i++)
        if (bh_streq(v, yes[i]) || bh_streq(v, no[i]))
            return bh_streq(v, yes[i]);
    return -1;
}

static int set_bool(struct parse *p, const struct bh_opt *o, const char *v)
{
    int value = bh_parse_bool(v);

    if (value < 0)
        return report_value(p, o, v, "ParseBool", false, "expected true or false");
    *(bool *)o->target = value;
    return 0;
}

/* min 0: no sign and only decimal digits, as ParseUint with a base. */
static int set_int(struct parse *p, const struct bh_opt *o, const char *v, int64_t min, int64_t max)
{
    const char *digits = v + (min < 0 && (*v == '-' || *v == '+'));
    char *end = NULL;

    errno = 0;
    long long n = bh_is_digit(*digits) ? strtoll(v, &end, min < 0 ? 0 : 10) : 0;
    bool number = end && !*end;
    if (number && errno == 0 && n >= min && n <= max) {
        *(int64_t *)o->target = n;
        return 0;
    }
    char expected[80] = "expected a whole number";
    if (number)
        snprintf(expected, sizeof(expected), "out of range, expected %lld to %lld", (long long)min,
                 (long long)max);
    return report_value(p, o, v, min < 0 ? "ParseInt" : "ParseUint", number, expected);
}

static int set_float(struct parse *p, const struct bh_opt *o, const char *v)
{
    char *end = NULL;
    double d = *v && !strchr(" \t\n\v\f\r", *v) ? strtod(v, &end) : 0;
    bool number = end && !*end;

    if (number &&
        (isinf(d) ? !!strcasestr(v, "inf") : fabs(d) <= (double)__FLT_MAX__ || isnan(d))) {
        *(double *)o->target = d;
        return 0;
    }
    return report_value(p, o, v, "ParseFloat", number,
                        number ? "out of range" : "expected a number");
}

static int set_ip(struct parse *p, const struct bh_opt *o, const char *v)
{
    unsigned char address[sizeof(struct in6_addr)];

    if (!*v || inet_pton(AF_INET, v, address) == 1 || inet_pton(AF_INET6, v, address) == 1) {
        *(const char **)o->target = v;
        return 0;
    }
    return invalid(p, o, v, "failed to parse IP: \"%.64s\"", v);
}

/* Array and text in one block: the pointers are laid out again for each use of the option. */
static int set_list(struct parse *p, const struct bh_opt *o, const char *v)
{
    struct bh_opt_list *list = o->target;
    const char *separators = o->kind == BH_OPT_ARRAY ? "" : ",";
    bool *seen = &p->given[o - p->table];
    size_t kept = *seen ? list->n : 0, n = kept, bytes = strlen(v) + 1;

    if (*v || !*separators)
        n++;
    for (const char *c = v; *c; c++)
        n += *c == *separators;
    for (size_t i = 0; i < kept; i++)
        bytes += strlen(list->v[i]) + 1;

    const char **block = bh_malloc(n * sizeof(*block) + bytes);
    char *text = (char *)(block + n);
    for (size_t i = 0; i < kept; i++) {
        size_t len = strlen(list->v[i]) + 1;
        block[i] = memcpy(text, list->v[i], len);
        text += len;
    }
    memcpy(text, v, strlen(v) + 1);
    for (size_t i = kept; i < n; i++) {
        block[i] = text;
        text += strcspn(text, separators);
        *text++ = '\0';
    }
    if (*seen)
        free(list->v);
    list->v = block;
    list->n = n;
    return 0;
}

static int set_choice(struct parse *p, const struct bh_opt *o, const char *v)
{
    struct bh_buf known BH_CLEANUP(bh_buf_fini) = {0};

    for (const char *word = o->arg, *end; *word; word = end + (*end == '|')) {
        end = strchrnul(word, '|');
        if (strlen(v) == (size_t)(end - word) && memcmp(v, word, strlen(v)) == 0) {
            *(const char **)o->target = v;
            return 0;
        }
        if (known.n)
            bh_buf_adds(&known, *end ? ", " : " or ");
        bh_buf_add(&known, word, (size_t)(end - word));
    }
    return bh_err_set(p->err, -EINVAL, "invalid value \"%s\" for --%s: %s", v, o->name,
                      bh_buf_str(&known));
}

static int set_value(struct parse *p, const struct bh_opt *o, const char *v)
{
    int rc = 0;

    switch (o->kind) {
    case BH_OPT_BOOL:
        rc = set_bool(p, o, v);
        break;
    case BH_OPT_INT:
        rc = set_int(p, o, v, INT64_MIN, INT64_MAX);
        break;
    case BH_OPT_INT32:
        rc = set_int(p, o, v, INT32_MIN, INT32_MAX);
        break;
    case BH_OPT_LEVEL:
        rc = set_int(p, o, v, 0, INT32_MAX);
        break;
    case BH_OPT_FLOAT:
        rc = set_float(p, o, v);
        break;
    case BH_OPT_DURATION_NS:
        if (bh_parse_duration_ns(v, o->target) < 0)
            rc = invalid(p, o, v, "time: invalid duration \"%.64s\"", v);
        break;
    case BH_OPT_STRLIST:
    case BH_OPT_ARRAY:
        rc = set_list(p, o, v);
        break;
    case BH_OPT_IP:
        rc = set_ip(p, o, v);
        break;
    case BH_OPT_CHOICE:
        rc = set_choice(p, o, v);
        break;
    case BH_OPT_STR:
    case BH_OPT_WORD:
        *(const char **)o->target = v;
        break;
    case BH_OPT_SECTION:
        break;
    }
    if (rc == 0)
        p->given[o - p->table] = true;
    return rc;
}

/* The option that was meant, with a slip of the finger; NULL: none. */
static const char *near_name(const struct parse *p, const char *name)
{
    const char *near = NULL;

    for (unsigned i = 0, best = BH_NEAR; p->table[i].name; i++)
        if (strlen(name) >= BH_NEAR && *p->table[i].name &&
            bh_is_nearer(name, p->table[i].name, &best))
            near = p->table[i].name;
    return near;
}

static int parse_long(struct parse *p, const char *arg)
{
    const char *name = arg + 2, *eq = strchr(name, '=');
    size_t n = eq ? (size_t)(eq - name) : strlen(name);

    if (n == 0 || *name == '-')
        return bh_err_set(p->err, -EINVAL, "bad flag syntax: %s", arg);
    const struct bh_opt *o = p->table;
    while (o->name && !same_name(name, n, o->name))
        o++;
    if (!o->name) {
        p->help = same_name(name, n, "help");
        p->words = eq && bh_streq(eq + 1, "words");
        p->version = same_name(name, n, "version");
        if (p->help || p->version)
            return 0;
        BH_CLEANUP(bh_freep) char *alone = bh_strndup(name, BH_MIN(n, (size_t)256));
        const char *near = near_name(p, alone);
        bh_err_set(p->err, -EINVAL, "unknown flag: --%s", alone);
        return near ? bh_err_set(p->err, -EINVAL, "%s, did you mean --%s?", p->err->msg, near)
                    : -EINVAL;
    }
    if (eq)
        return set_value(p, o, eq + 1);
    if (o->kind == BH_OPT_BOOL || o->kind == BH_OPT_WORD)
        return set_value(p, o, "true");
    if (p->at == p->argc)
        return bh_err_set(p->err, -EINVAL, "flag needs an argument: --%s", o->name);
    return set_value(p, o, p->argv[p->at++]);
}

static int parse_letters(struct parse *p, const char *arg)
{
    for (const char *c = arg + 1; *c; c++) {
        const struct bh_opt *o = p->table;
        while (o->name && o->letter != *c)
            o++;
        if (!o->name && *c == 'h') {
            p->help = true;
            return 0;
        }
        if (!o->name)
            return bh_err_set(p->err, -EINVAL, "unknown shorthand flag: '%c' in %s", *c, arg);
        if (c[1] == '=')
            return set_value(p, o, c + 2);
        if (o->kind == BH_OPT_BOOL) {
            int rc = set_value(p, o, "true");
            if (rc < 0)
                return rc;
            continue;
        }
        if (c[1])
            return set_value(p, o, c + 1);
        if (p->at == p->argc)
            return bh_err_set(p->err, -EINVAL, "flag needs an argument: '%c' in %s", *c, arg);
        return set_value(p, o, p->argv[p->at++]);
    }
    return 0;
}

static int parse_all(struct parse *p)
{
    bool options = true;

    while (p->at < p->argc && !p->help && !p->version) {
        const char *arg = p->argv[p->at++];
        int rc = 0;
        if (options && bh_streq(arg, "--"))
            options = false;
        else if (options && arg[0] == '-' && arg[1] == '-')
            rc = parse_long(p, arg);
        else if (options && arg[0] == '-' && arg[1])
            rc = parse_letters(p, arg);
        else if (p->args_allowed)
            p->args.v[p->args.n++] = arg;
        else
            rc = bh_err_set(p->err, -EINVAL, "unexpected argument: %.256s", arg);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int bh_opt_parse_given(const struct bh_opt *table, const struct bh_opt_usage *usage, int argc,
                       char **argv, struct bh_opt_list *ret_args, bool *given, struct bh_err *err)
{
    struct parse p = {.table = table,
                      .argc = argc,
                      .at = 1,
                      .argv = argv,
                      .given = given,
                      .go_texts = usage->go_texts,
                      .args = {.v = bh_calloc((size_t)argc + 1, sizeof(char *))},
                      .args_allowed = ret_args != NULL,
                      .err = err};
    int rc = parse_all(&p);

    if (rc == 0 && p.help) {
        rc = p.words ? BH_OPT_WORDS : 1;
        if (p.words)
            bh_opt_words(table, usage, p.args.n == 0);
        else
            bh_opt_help(table, usage);
    } else if (rc == 0 && p.version) {
        printf("%s %s\n", usage->program, BH_VERSION);
        rc = 1;
    } else if (rc == 0 && ret_args) {
        *ret_args = p.args;
        p.args.v = NULL;
    }
    free(p.args.v);
    return rc;
}

int bh_opt_parse(const struct bh_opt *table, const struct bh_opt_usage *usage, int argc,
                 char **argv, struct bh_opt_list *ret_args, struct bh_err *err)
{
    size_t n = 0;
    while (table[n].name)
        n++;
    bool *given = bh_calloc(n + 1, sizeof(bool));
    int rc = bh_opt_parse_given(table, usage, argc, argv, ret_args, given, err);
    free(given);
    return rc;
}

void bh_opt_value(const struct bh_opt *o, struct bh_buf *b)
{
    char text[32];

    switch (o->kind) {
    case BH_OPT_BOOL:
        bh_buf_adds(b, *(const bool *)o->target ? "true" : "false");
        break;
    case BH_OPT_INT:
    case BH_OPT_INT32:
    case BH_OPT_LEVEL:
        bh_buf_addi64(b, *(const int64_t *)o->target);
        break;
    case BH_OPT_FLOAT:
        bh_buf_addf64(b, *(const double *)o->target);
        break;
    case BH_OPT_DURATION_NS:
        bh_format_duration_ns(*(const int64_t *)o->target, text);
        bh_buf_adds(b, text);
        break;
    case BH_OPT_STRLIST:
    case BH_OPT_ARRAY: {
        const struct bh_opt_list *list = o->target;
        bh_buf_addc(b, '[');
        for (size_t i = 0; i < list->n; i++)
            bh_buf_addf(b, "%s%s", i ? "," : "", list->v[i]);
        bh_buf_addc(b, ']');
    } break;
    case BH_OPT_STR:
    case BH_OPT_IP:
    case BH_OPT_WORD:
    case BH_OPT_CHOICE:
        if (*(const char *const *)o->target)
            bh_buf_adds(b, *(const char *const *)o->target);
        break;
    case BH_OPT_SECTION:
        break;
    }
}
