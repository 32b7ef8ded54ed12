/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/template.c - the part of Go's templates that scheduler_perf's files use
 *
 * Actions are {{ OPERAND }} and {{ FUNCTION OPERAND... }}; operands are .Index, .Count, numbers and
 * quoted numbers. Everything is a number: upstream's functions go through float64, and the Int
 * forms cut once at the end.
 * Upstream: test/integration/scheduler_perf/scheduler_perf.go (getTemplateFuncMap); differences: no
 * pipelines, conditions, loops, variables or comments.
 */
#include "bench/perf/perf.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <strings.h>

#include "common/data/yaml.h"

#define OPERANDS_MAX 16u

struct action {
    const char *p, *end; /* between the braces */
    int64_t index, count;
    unsigned line;
};

/* ---- operands -------------------------------------------------------------------------------- */

static bool next_word(struct action *x, struct bh_str *ret)
{
    while (x->p < x->end && isspace((unsigned char)*x->p))
        x->p++;
    if (x->p == x->end)
        return false;
    ret->p = x->p;
    if (*x->p == '"') {
        x->p++;
        while (x->p < x->end && *x->p != '"')
            x->p++;
        x->p += x->p < x->end;
    } else {
        while (x->p < x->end && !isspace((unsigned char)*x->p))
            x->p++;
    }
    ret->n = (size_t)(x->p - ret->p);
    return true;
}

static int operand(const struct action *x, struct bh_str w, double *ret, struct bh_err *err)
{
    bool quoted = w.n >= 2 && w.p[0] == '"' && w.p[w.n - 1] == '"';
    char text[64], *end;

    if (bh_str_eqc(w, ".Index") || bh_str_eqc(w, ".Count")) {
        *ret = (double)(w.p[1] == 'I' ? x->index : x->count);
        return 0;
    }
    snprintf(text, sizeof text, "%.*s", (int)(quoted ? w.n - 2 : w.n), w.p + quoted);
    *ret = strtod(text, &end);
    if (end == text || *end || !isfinite(*ret))
        return bh_err_set(err, -EINVAL,
                          "line %u: template: \"%.*s\" is not known here: .Index, .Count or a "
                          "number is expected",
                          x->line, (int)BH_MIN(w.n, (size_t)60), w.p);
    return 0;
}

/* ---- functions ------------------------------------------------------------------------------- */

enum operation { ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO };
static const struct function {
    const char *name;
    enum operation op;
    bool whole;
    unsigned min, max; /* operands */
} functions[] = {
    {"AddInt", ADD, true, 0, OPERANDS_MAX},
    {"AddFloat", ADD, false, 0, OPERANDS_MAX},
    {"SubtractInt", SUBTRACT, true, 2, 2},
    {"SubtractFloat", SUBTRACT, false, 2, 2},
    {"MultiplyInt", MULTIPLY, true, 1, OPERANDS_MAX},
    {"MultiplyFloat", MULTIPLY, false, 1, OPERANDS_MAX},
    {"DivideInt", DIVIDE, true, 2, 2},
    {"DivideFloat", DIVIDE, false, 2, 2},
    {"Mod", MODULO, true, 2, 2},
};

static int apply(const struct function *f, const double *v, unsigned n, double *ret,
                 const struct action *x, struct bh_err *err)
{
    bool by_zero = (f->op == DIVIDE && v[1] == 0) || (f->op == MODULO && trunc(v[1]) == 0);
    double r = f->op == ADD ? 0 : v[0];

    if (by_zero)
        return bh_err_set(err, -EINVAL, "line %u: template: %s: division by zero", x->line,
                          f->name);
    switch (f->op) {
    case ADD:
        for (unsigned i = 0; i < n; i++)
            r += v[i];
        break;
    case SUBTRACT:
        r -= v[1];
        break;
    case MULTIPLY:
        for (unsigned i = 1; i < n; i++)
            r *= v[i];
        break;
    case DIVIDE:
        r /= v[1];
        break;
    case MODULO:
        r = fmod(trunc(v[0]), trunc(v[1]));
        break;
    }
    *ret = f->whole ? trunc(r) : r;
    return 0;
}

static int call(struct action *x, const struct function *f, double *ret, struct bh_err *err)
{
    double v[OPERANDS_MAX] = {0};
    unsigned n = 0;
    struct bh_str w;

    while (next_word(x, &w)) {
        if (n == f->max)
            return bh_err_set(err, -EINVAL, "line %u: template: %s takes at most %u operands",
                              x->line, f->name, f->max);
        int rc = operand(x, w, &v[n++], err);
        if (rc < 0)
            return rc;
    }
    if (n < f->min)
        return bh_err_set(err, -EINVAL, "line %u: template: %s takes at least %u operands", x->line,
                          f->name, f->min);
    return apply(f, v, n, ret, x, err);
}

/* ---- a text ---------------------------------------------------------------------------------- */

static int action(struct bh_buf *out, struct action *x, struct bh_err *err)
{
    struct bh_str w, more;
    double v = 0;

    if (!next_word(x, &w))
        return bh_err_set(err, -EINVAL, "line %u: template: an action is empty", x->line);
    const struct function *f = NULL;
    for (size_t i = 0; !f && i < BH_ARRAY_LEN(functions); i++)
        f = bh_str_eqc(w, functions[i].name) ? &functions[i] : NULL;
    int rc = f ? call(x, f, &v, err) : operand(x, w, &v, err);
    if (rc < 0)
        return rc;
    if (next_word(x, &more))
        return bh_err_set(
            err, -EINVAL, "line %u: template: \"%.*s\" after \"%.*s\" is not known here", x->line,
            (int)BH_MIN(more.n, (size_t)60), more.p, (int)BH_MIN(w.n, (size_t)60), w.p);
    if (v == trunc(v) && fabs(v) < 1e15)
        bh_buf_addi64(out, (int64_t)v);
    else
        bh_buf_addf64(out, v);
    return 0;
}

int bh_bench_render(struct bh_buf *out, const char *text, int64_t index, int64_t count,
                    struct bh_err *err)
{
    struct action x = {.index = index, .count = count, .line = 1};

    for (const char *p = text, *open; *p; p = x.end + 2) {
        open = strstr(p, "{{");
        if (!open) {
            bh_buf_adds(out, p);
            return 0;
        }
        bh_buf_add(out, p, (size_t)(open - p));
        for (; p < open; p++)
            x.line += *p == '\n';
        x.p = open + 2;
        x.end = strstr(x.p, "}}");
        if (!x.end)
            return bh_err_set(err, -EINVAL, "line %u: template: \"{{\" is not closed", x.line);
        int rc = action(out, &x, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- spelling -------------------------------------------------------------------------------- */

void bh_bench_spell(const struct bh_json *obj, const ProtobufCMessageDescriptor *d)
{
    size_t n = strlen(d->short_name);

    /* the members of a map are its keys */
    if (obj->type != BH_JSON_OBJECT || (n > 5 && bh_streq(d->short_name + n - 5, "Entry")))
        return;
    bh_json_each(m, obj) {
        const char *key = m->key.p;
        const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field_by_name(d, key);
        for (unsigned i = 0; !f && i < d->n_fields; i++)
            if (strcasecmp(d->fields[i].name, key) == 0)
                f = &d->fields[i];
        if (!f)
            continue;
        m->key = bh_str_c(f->name);
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        bh_bench_spell(m, f->descriptor);
        bh_json_each(e, m->type == BH_JSON_ARRAY ? m : NULL) {
            bh_bench_spell(e, f->descriptor);
        }
    }
}

/* ---- an object's template -------------------------------------------------------------------- */

/* Actions travel through the YAML reader as numbers that stand nowhere else in the text: PREFIX and
 * four digits. */
#define MARK_DIGITS 4
#define MARKS_MAX   1000u

struct marks {
    char prefix[8];
    struct bh_str *actions; /* "{{ ... }}" */
    size_t n;
};

static int choose_prefix(struct marks *m, const char *text, struct bh_err *err)
{
    for (unsigned i = 91; i < 98; i++) {
        snprintf(m->prefix, sizeof m->prefix, "%u000", i);
        if (!strstr(text, m->prefix))
            return 0;
    }
    return bh_err_set(err, -EINVAL, "template: too many large numbers beside actions");
}

static int mark(struct marks *m, const char *text, struct bh_buf *out, struct bh_err *err)
{
    int rc = choose_prefix(m, text, err);

    for (const char *open, *end; rc >= 0; text = end) {
        open = strstr(text, "{{");
        if (!open)
            break;
        end = strstr(open, "}}");
        bh_assert(end); /* it was rendered already */
        end += 2;
        bh_buf_add(out, text, (size_t)(open - text));
        if (m->n == MARKS_MAX)
            return bh_err_set(err, -EINVAL, "template: more than %u actions", MARKS_MAX);
        bh_buf_addf(out, "%s%0*zu", m->prefix, MARK_DIGITS, m->n);
        m->actions = bh_reallocarray(m->actions, m->n + 1, sizeof *m->actions);
        m->actions[m->n++] = (struct bh_str){open, (size_t)(end - open)};
    }
    bh_buf_adds(out, text);
    return rc;
}

static void unmark(const struct marks *m, const char *json, struct bh_buf *out)
{
    size_t n = strlen(m->prefix), i;

    for (const char *at; m->n && (at = strstr(json, m->prefix)); json = at) {
        bh_buf_add(out, json, (size_t)(at - json));
        at += n;
        for (i = 0, n = 0; n < MARK_DIGITS && isdigit((unsigned char)at[n]); n++)
            i = 10 * i + (size_t)(at[n] - '0');
        bh_assert(n == MARK_DIGITS && i < m->n); /* nothing else looks like a mark */
        bh_buf_add(out, m->actions[i].p, m->actions[i].n);
        at += n;
        n = strlen(m->prefix);
    }
    bh_buf_adds(out, json);
}

int bh_bench_template_init(struct bh_bench_template *t, const char *path, const char *text,
                           bool plain, bh_bench_edit *edit, void *arg, struct bh_err *err)
{
    struct bh_buf marked BH_CLEANUP(bh_buf_fini) = {0}, json BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_buf first BH_CLEANUP(bh_buf_fini) = {0};
    struct marks m = {.n = 0};
    struct bh_json *obj;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    int rc = 0;

    *t = (struct bh_bench_template){.path = bh_strdup(path)};
    if (!plain)
        rc = bh_bench_render(&first, text, 0, 1, err); /* errors with their lines */
    if (rc >= 0 && !plain)
        rc = mark(&m, text, &marked, err);
    if (rc >= 0)
        rc = bh_yaml_parse(&a, plain ? text : bh_buf_str(&marked), plain ? strlen(text) : marked.n,
                           BH_JSON_STRICT, &obj, err);
    if (rc >= 0 && obj->type != BH_JSON_OBJECT)
        rc = bh_err_set(err, -EINVAL, "an object is expected");
    if (rc >= 0) {
        /* What is told about the kind, in the schema's spelling. */
        const char *kind = bh_json_get_str(obj, "kind");
        if (bh_streq(bh_json_get_text(obj, "apiVersion"), "resource.k8s.io/v1beta2"))
            bh_json_set_str(&a, obj, "apiVersion", "resource.k8s.io/v1"); /* the same schema */
        t->type = kind ? bh_sim_type_of_kind(bh_json_get_str(obj, "apiVersion"), kind) : NULL;
        if (t->type && t->type->pb)
            bh_bench_spell(obj, t->type->pb);
    }
    if (rc >= 0 && edit)
        rc = edit(arg, &a, obj, err);
    if (rc >= 0) {
        bh_json_write(&json, obj);
        bh_buf_reset(&first);
        unmark(&m, bh_buf_str(&json), &first);
        t->json = bh_buf_take(&first);
    }
    free(m.actions);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", path) : 0;
}

void bh_bench_template_fini(struct bh_bench_template *t)
{
    free(t->path);
    free(t->json);
    *t = (struct bh_bench_template){0};
}
