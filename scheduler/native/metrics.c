/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/metrics.c - what plugins measure, kept until somebody asks
 *
 * Metrics belong to the plugin, not to an instance: those of several profiles add up. Values come from
 * any thread, families and cells (common/base/metrics.h) are one thread's: so they are kept here,
 * under the plugin's lock, and taken at a scrape. Of a histogram counts and sums by bucket are.
 *
 * Runs in: define() in the engine's thread; the others in any.
 */
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "scheduler/native/native_int.h"

#define METRICS_MAX 32u /* of a plugin */
#define BOUNDS_MAX  32u
#define NAME_BYTES  64u
#define HELP_BYTES  256u

struct metric {
    char *name, *help;
    uint32_t kind, n_bounds;
    double bounds[BOUNDS_MAX];
    double value;                    /* counter, gauge */
    uint64_t counts[BOUNDS_MAX + 1]; /* since they were taken; the last is +Inf */
    double sums[BOUNDS_MAX + 1];
};
struct bh_native_metrics {
    pthread_mutex_t lock;
    struct metric v[METRICS_MAX];
    uint32_t n;
};

static struct bh_native_metrics *of(const struct berth_home *home)
{
    return ((const struct bh_native *)(const void *)home)->of->metrics;
}

struct bh_native_metrics *bh_native_metrics_new(void)
{
    struct bh_native_metrics *m = bh_calloc(1, sizeof *m);

    pthread_mutex_init(&m->lock, NULL);
    return m;
}

/* ---- a metric comes -------------------------------------------------------------------------- */

static bool is_name(struct berth_str s)
{
    if (!s.n || s.n > NAME_BYTES || !islower((unsigned char)*s.p))
        return false;
    for (uint64_t i = 0; i < s.n; i++)
        if (!islower((unsigned char)s.p[i]) && !isdigit((unsigned char)s.p[i]) && s.p[i] != '_')
            return false;
    return true;
}

static bool are_bounds(uint32_t kind, const double *bounds, uint64_t n)
{
    if (kind != BERTH_HISTOGRAM)
        return n == 0;
    if (!n || n > BOUNDS_MAX || !bounds)
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (!isfinite(bounds[i]) || (i && !(bounds[i - 1] < bounds[i])))
            return false;
    return true;
}

/* "berth_plugin_LabelGang_groups_total" */
static char *full_name(const struct bh_native *in, struct berth_str name)
{
    char *s = bh_asprintf("berth_plugin_%s_%.*s", in->of->d.name, (int)name.n, name.p);

    for (char *c = s; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
    return s;
}

/* Another instance has made it. */
static uint32_t made_before(const struct bh_native_metrics *m, const struct metric *x)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (bh_streq(m->v[i].name, x->name))
            return m->v[i].kind == x->kind && m->v[i].n_bounds == x->n_bounds &&
                           memcmp(m->v[i].bounds, x->bounds, sizeof x->bounds) == 0
                       ? i + 1
                       : 0;
    return UINT32_MAX;
}

static uint32_t define(struct berth_home *home, uint32_t kind, struct berth_str name,
                       struct berth_str help, const double *bounds, uint64_t n)
{
    const struct bh_native *in = bh_native_inside;

    if (!in || (const void *)in != (const void *)home || in->hook != BH_HOOK_CREATE ||
        kind > BERTH_HISTOGRAM || !is_name(name) || help.n > HELP_BYTES ||
        !bh_native_is_text(help) || !are_bounds(kind, bounds, n))
        return 0;
    struct bh_native_metrics *m = of(home);
    struct metric x = {.name = full_name(in, name), .kind = kind, .n_bounds = (uint32_t)n};
    if (n)
        memcpy(x.bounds, bounds, n * sizeof *bounds);
    pthread_mutex_lock(&m->lock);
    uint32_t at = made_before(m, &x);
    if (at == UINT32_MAX && (m->n == METRICS_MAX || bh_native_metric_taken(x.name, in->of)))
        at = 0;
    if (at == UINT32_MAX) {
        x.help = bh_strndup(help.n ? help.p : "", help.n);
        m->v[m->n++] = x;
        at = m->n;
    } else {
        free(x.name);
    }
    pthread_mutex_unlock(&m->lock);
    return at;
}

bool bh_native_metrics_have(struct bh_native_metrics *m, const char *name)
{
    bool has = false;

    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->n; i++)
        has |= bh_streq(m->v[i].name, name);
    pthread_mutex_unlock(&m->lock);
    return has;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void add(const struct berth_home *home, uint32_t metric, double v)
{
    struct bh_native_metrics *m = of(home);

    pthread_mutex_lock(&m->lock);
    struct metric *x = metric && metric <= m->n ? &m->v[metric - 1] : NULL;
    if (x && isfinite(v) && (x->kind == BERTH_GAUGE || (x->kind == BERTH_COUNTER && v >= 0)))
        x->value += v;
    pthread_mutex_unlock(&m->lock);
}

static void set(const struct berth_home *home, uint32_t metric, double v)
{
    struct bh_native_metrics *m = of(home);

    pthread_mutex_lock(&m->lock);
    if (metric && metric <= m->n && m->v[metric - 1].kind == BERTH_GAUGE)
        m->v[metric - 1].value = v;
    pthread_mutex_unlock(&m->lock);
}

static void observe(const struct berth_home *home, uint32_t metric, double v)
{
    struct bh_native_metrics *m = of(home);

    pthread_mutex_lock(&m->lock);
    struct metric *x = metric && metric <= m->n ? &m->v[metric - 1] : NULL;
    if (x && x->kind == BERTH_HISTOGRAM && isfinite(v)) {
        uint32_t i = 0;
        while (i < x->n_bounds && v > x->bounds[i])
            i++;
        x->counts[i]++;
        x->sums[i] += v;
    }
    pthread_mutex_unlock(&m->lock);
}

void bh_native_metrics_take(struct bh_native_metrics *m,
                            void (*fn)(void *arg, const struct bh_native_sample *s), void *arg)
{
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->n; i++) {
        struct metric *x = &m->v[i];
        const struct bh_native_sample s = {.name = x->name,
                                           .help = x->help,
                                           .kind = x->kind,
                                           .bounds = x->bounds,
                                           .n_bounds = x->n_bounds,
                                           .value = x->value,
                                           .counts = x->counts,
                                           .sums = x->sums};
        fn(arg, &s);
        memset(x->counts, 0, sizeof x->counts);
        memset(x->sums, 0, sizeof x->sums);
    }
    pthread_mutex_unlock(&m->lock);
}

const struct berth_host_metrics bh_native_metrics_table = {
    .size = sizeof bh_native_metrics_table,
    .define = define,
    .add = add,
    .set = set,
    .observe = observe,
};
