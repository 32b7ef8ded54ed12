/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/metrics.c - counters, gauges, histograms and their Prometheus text (0.0.4)
 *
 * Owns:       families, their cells and the copies of label values.
 * Invariants: family names are unique; a cell has as many values as its family has labels; a
 *             histogram cell has n_buckets + 1 counts (the last is +Inf), not cumulative.
 * Runs in:    the loop thread.
 * Fails with: nothing; misuse is our own bug and asserted.
 */
#include "common/base/metrics.h"

#include "common/base/map.h"

#define LABELS_MAX 10
#define HOOKS_MAX  16

struct bh_cell {
    struct bh_metric *family;
    char *label_text; /* a="x",b="y" without braces; "" without labels */
    double value;     /* counter, gauge; histogram: sum */
    uint64_t count;   /* histogram */
    uint64_t buckets[];
};
struct bh_metric {
    enum bh_metric_kind kind;
    const char *name, *help;
    char *labels[LABELS_MAX];
    size_t n_labels;
    double *bounds;
    size_t n_bounds;
    struct bh_map cells; /* by label text */
    struct bh_cell **order;
    size_t n_cells, cap_cells;
    bool sorted;
};
struct bh_metrics {
    struct bh_metric **families; /* by name */
    size_t n, cap;
    struct {
        void (*fn)(void *);
        void *arg;
    } hooks[HOOKS_MAX];
    size_t n_hooks;
    void *owned[HOOKS_MAX];
    size_t n_owned;
};

struct bh_metrics *bh_metrics_new(void)
{
    return bh_calloc(1, sizeof(struct bh_metrics));
}

static void family_free(struct bh_metric *f)
{
    for (size_t i = 0; i < f->n_cells; i++) {
        free(f->order[i]->label_text);
        free(f->order[i]);
    }
    for (size_t i = 0; i < f->n_labels; i++)
        free(f->labels[i]);
    free(f->order);
    free(f->bounds);
    bh_map_fini(&f->cells);
    free(f);
}

void bh_metrics_free(struct bh_metrics *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        family_free(m->families[i]);
    for (size_t i = 0; i < m->n_owned; i++)
        free(m->owned[i]);
    free(m->families);
    free(m);
}

struct bh_metric *bh_metric_new(struct bh_metrics *m, enum bh_metric_kind kind, const char *name,
                                const char *help, const char *labels, const double *buckets,
                                size_t n_buckets)
{
    bh_assert((kind == BH_HISTOGRAM) == (n_buckets > 0));
    for (size_t i = 1; i < n_buckets; i++)
        bh_assert(buckets[i - 1] < buckets[i]);

    struct bh_metric *f = bh_calloc(1, sizeof(*f));
    *f = (struct bh_metric){.kind = kind, .name = name, .help = help, .n_bounds = n_buckets};
    f->bounds = bh_memdup(buckets, n_buckets * sizeof(*buckets));
    for (const char *l = labels ? labels : ""; *l;) {
        size_t n = strcspn(l, ",");
        bh_assert(n && f->n_labels < LABELS_MAX);
        f->labels[f->n_labels++] = bh_strndup(l, n);
        l += n + (l[n] == ',');
    }

    BH_GROW(m->families, m->n, m->cap);
    size_t at = m->n;
    for (; at > 0; at--) { /* sorted, as client_golang's output */
        int order = strcmp(m->families[at - 1]->name, name);
        bh_assert(order != 0);
        if (order < 0)
            break;
        m->families[at] = m->families[at - 1];
    }
    m->families[at] = f;
    m->n++;
    return f;
}

/* A label's value, or help. */
static void add_escaped(struct bh_buf *b, const char *v, bool quotes)
{
    for (size_t n; *v; v += n) {
        n = strcspn(v, quotes ? "\\\n\"" : "\\\n");
        bh_buf_add(b, v, n);
        v += n;
        n = *v != '\0';
        if (*v == '\n')
            bh_buf_adds(b, "\\n");
        else if (n)
            bh_buf_add(b, (const char[]){'\\', *v}, 2);
    }
}

static struct bh_cell *cell_new(struct bh_metric *f, const char *label_text, size_t n)
{
    size_t buckets = f->kind == BH_HISTOGRAM ? f->n_bounds + 1 : 0;
    struct bh_cell *c = bh_calloc(1, sizeof(*c) + buckets * sizeof(uint64_t));
    c->family = f;
    c->label_text = bh_strndup(label_text, n);
    bh_map_put(&f->cells, label_text, n, c);
    BH_GROW(f->order, f->n_cells, f->cap_cells);
    f->order[f->n_cells++] = c;
    f->sorted = false;
    return c;
}

struct bh_cell *bh_metric_cell(struct bh_metric *f, ...)
{
    struct bh_buf text = {0};
    va_list ap;

    va_start(ap, f);
    for (size_t i = 0; i < f->n_labels; i++) {
        const char *v = va_arg(ap, const char *);
        bh_assert(v);
        if (i)
            bh_buf_addc(&text, ',');
        bh_buf_adds(&text, f->labels[i]);
        bh_buf_adds(&text, "=\"");
        add_escaped(&text, v, true);
        bh_buf_addc(&text, '"');
    }
    va_end(ap);
    struct bh_cell *c = bh_map_get(&f->cells, bh_buf_str(&text), text.n);
    if (!c)
        c = cell_new(f, bh_buf_str(&text), text.n);
    bh_buf_fini(&text);
    return c;
}

void bh_metric_each(struct bh_metric *f, void (*fn)(void *arg, struct bh_cell *c), void *arg)
{
    for (size_t i = 0; i < f->n_cells; i++)
        fn(arg, f->order[i]);
}

struct bh_metric *bh_metric_find(const struct bh_metrics *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (bh_streq(m->families[i]->name, name))
            return m->families[i];
    return NULL;
}

size_t bh_metrics_count(const struct bh_metrics *m, const char *help_prefix)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n; i++)
        n += strncmp(m->families[i]->help, help_prefix, strlen(help_prefix)) == 0;
    return n;
}

void bh_cell_add(struct bh_cell *c, double v)
{
    bh_assert(c->family->kind == BH_GAUGE || (c->family->kind == BH_COUNTER && v >= 0));
    c->value += v;
}

void bh_cell_set(struct bh_cell *c, double v)
{
    bh_assert(c->family->kind == BH_GAUGE);
    c->value = v;
}

void bh_cell_advance(struct bh_cell *c, double v)
{
    bh_assert(c->family->kind == BH_COUNTER);
    c->value = BH_MAX(c->value, v);
}

void bh_cell_observe(struct bh_cell *c, double v)
{
    const struct bh_metric *f = c->family;

    if (f->kind != BH_HISTOGRAM || !(v <= f->bounds[0])) {
        bh_cell_observe_n(c, v, 1);
        return;
    }
    c->buckets[0]++; /* most are that short */
    c->count++;
    c->value += v;
}

void bh_cell_observe_n(struct bh_cell *c, double v, uint64_t n)
{
    const struct bh_metric *f = c->family;
    bh_assert(f->kind == BH_HISTOGRAM);
    size_t lo = 0, hi = f->n_bounds;

    while (lo < hi) { /* first bound that is not below v; NaN belongs to +Inf */
        size_t mid = (lo + hi) / 2;
        if (v <= f->bounds[mid])
            hi = mid;
        else
            lo = mid + 1;
    }
    c->buckets[lo] += n;
    c->count += n;
    c->value += v * (double)n;
}

double bh_cell_value(const struct bh_cell *c)
{
    return c->family->kind == BH_HISTOGRAM ? (double)c->count : c->value;
}

void bh_metrics_on_scrape(struct bh_metrics *m, void (*fn)(void *), void *arg)
{
    bh_assert(m->n_hooks < HOOKS_MAX);
    m->hooks[m->n_hooks].fn = fn;
    m->hooks[m->n_hooks++].arg = arg;
}

void bh_metrics_own(struct bh_metrics *m, void *p)
{
    bh_assert(m->n_owned < HOOKS_MAX);
    m->owned[m->n_owned++] = p;
}

static void add_sample(struct bh_buf *out, const struct bh_cell *c, const char *suffix,
                       const char *le, double v)
{
    bool braces = *c->label_text || le;

    bh_buf_adds(out, c->family->name);
    bh_buf_adds(out, suffix);
    if (braces)
        bh_buf_addc(out, '{');
    bh_buf_adds(out, c->label_text);
    if (le)
        bh_buf_addf(out, "%sle=\"%s\"", *c->label_text ? "," : "", le);
    if (braces)
        bh_buf_addc(out, '}');
    bh_buf_addc(out, ' ');
    bh_buf_addf64(out, v);
    bh_buf_addc(out, '\n');
}

static void add_histogram(struct bh_buf *out, const struct bh_cell *c)
{
    const struct bh_metric *f = c->family;
    struct bh_buf le = {0};
    uint64_t below = 0;

    for (size_t i = 0; i < f->n_bounds; i++) {
        below += c->buckets[i];
        bh_buf_reset(&le);
        bh_buf_addf64(&le, f->bounds[i]);
        add_sample(out, c, "_bucket", le.p, (double)below);
    }
    bh_buf_fini(&le);
    add_sample(out, c, "_bucket", "+Inf", (double)c->count);
    add_sample(out, c, "_sum", NULL, c->value);
    add_sample(out, c, "_count", NULL, (double)c->count);
}

static int by_label_text(const void *a, const void *b)
{
    return strcmp((*(struct bh_cell *const *)a)->label_text,
                  (*(struct bh_cell *const *)b)->label_text);
}

static void add_family(struct bh_buf *out, struct bh_metric *f)
{
    static const char *const kinds[] = {
        [BH_COUNTER] = "counter", [BH_GAUGE] = "gauge", [BH_HISTOGRAM] = "histogram"};

    if (!f->n_cells)
        return;
    if (!f->sorted)
        qsort(f->order, f->n_cells, sizeof(struct bh_cell *), by_label_text);
    f->sorted = true;
    bh_buf_addf(out, "# HELP %s ", f->name);
    add_escaped(out, f->help, false);
    bh_buf_addf(out, "\n# TYPE %s %s\n", f->name, kinds[f->kind]);
    for (size_t i = 0; i < f->n_cells; i++) {
        if (f->kind == BH_HISTOGRAM)
            add_histogram(out, f->order[i]);
        else
            add_sample(out, f->order[i], "", NULL, f->order[i]->value);
    }
}

void bh_metrics_render(struct bh_metrics *m, struct bh_buf *out)
{
    for (size_t i = 0; i < m->n_hooks; i++)
        m->hooks[i].fn(m->hooks[i].arg);
    for (size_t i = 0; i < m->n; i++)
        add_family(out, m->families[i]);
}

void bh_buckets_exponential(double start, double factor, size_t n, double *out)
{
    bh_assert(start > 0 && factor > 1);
    for (size_t i = 0; i < n; i++, start *= factor)
        out[i] = start;
}
