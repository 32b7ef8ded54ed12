/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/world.c - what the operations of a workload share, whatever carries them out
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>

#include "bench/perf/perf.h"

#define TICKS_AT_ONCE 1000000u

struct bh_bench_namespace *bh_bench_namespace(struct bh_bench_world *w, const char *name)
{
    struct bh_bench_namespace *ns = bh_map_get(&w->namespaces, name, strlen(name));

    if (!ns) {
        ns = bh_calloc(1, sizeof *ns);
        ns->name = bh_strdup(name);
        bh_map_put(&w->namespaces, name, strlen(name), ns);
    }
    return ns;
}

/* ---- the window ------------------------------------------------------------------------------ */

int bh_bench_window_begin(struct bh_bench_world *w, const char *name,
                          const struct bh_json *namespaces, struct bh_selector *selector,
                          struct bh_err *err)
{
    if (w->window.on) {
        bh_selector_free(selector);
        return bh_err_set(err, -EBUSY, "metrics are being collected already");
    }
    w->driver->begin(w);
    w->window = (struct bh_bench_window){.on = true,
                                         .name = name,
                                         .namespaces = namespaces,
                                         .selector = selector,
                                         .began_wall_ns = bh_mono_ns()};
    return 0;
}

static void window_fini(struct bh_bench_window *x)
{
    bh_selector_free(x->selector);
    free(x->bound_ns);
    *x = (struct bh_bench_window){0};
}

void bh_bench_window_end(struct bh_bench_world *w)
{
    bh_bench_collect(w);
    window_fini(&w->window);
}

void bh_bench_saw_bound(struct bh_bench_world *w, const char *name, bh_bench_label *label,
                        void *arg)
{
    struct bh_bench_namespace *ns = bh_bench_namespace(w, name);
    struct bh_bench_window *x = &w->window;
    bool counts = false;

    ns->scheduled++;
    ns->bound++;
    w->bound++;
    bh_json_each(n, x->on ? x->namespaces : NULL)
        counts |= n->type == BH_JSON_STRING && bh_streq(n->s.p, name);
    if (!counts || (x->selector && !bh_selector_match(x->selector, label, arg)))
        return;
    BH_GROW(x->bound_ns, x->n_bound, x->cap_bound);
    x->bound_ns[x->n_bound++] = w->driver->clock_ns(w);
}

void bh_bench_saw_gone(struct bh_bench_world *w, const char *ns)
{
    bh_bench_namespace(w, ns)->scheduled--;
}

int bh_bench_alive(struct bh_bench_world *w, struct bh_err *err)
{
    if (w->total)
        bh_progress_draw(w->progress, w->done, w->total, "%s: %s %zu of %zu", w->target->name,
                         w->step ? w->step->op->name : "", w->done, w->total);
    if (w->began_ns && bh_mono_ns() - w->began_ns > (uint64_t)w->o->limit_ns)
        return bh_err_set(err, -ETIMEDOUT, "it took longer than %g s (--time-limit)",
                          (double)w->o->limit_ns / 1e9);
    return 0;
}

bool bh_bench_next(struct bh_bench_world *w, int64_t count, int64_t *i, int *rc, struct bh_err *err)
{
    if (*i >= 0 && *rc >= 0)
        *rc = w->driver->settle(w, err);
    w->total = (size_t)count;
    w->done = (size_t)++ * i;
    return *rc >= 0 && *i < count;
}

void bh_bench_add_victim(void *arg, const struct bh_bench_seen *o)
{
    struct bh_bench_victims *l = arg;

    if ((l->glob && fnmatch(l->glob, o->name, FNM_PATHNAME) != 0) ||
        (l->unallocated && o->allocated))
        return;
    BH_GROW(l->v, l->n, l->cap);
    l->v[l->n++] = (struct bh_bench_victim){.ns = bh_strdup(o->ns), .name = bh_strdup(o->name)};
}

void bh_bench_victims_fini(struct bh_bench_victims *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].ns);
        free(l->v[i].name);
    }
    free(l->v);
}

/* ---- the background -------------------------------------------------------------------------- */

bool bh_bench_tick(struct bh_bench_world *w, int64_t now_ns)
{
    bool ran = false;

    if (w->ticking) /* a tick waits for the server */
        return false;
    w->ticking = true;
    for (struct bh_bench_background *b = w->background; b; b = b->next) {
        bool on = true;
        for (unsigned i = 0; on && b->due_ns <= now_ns && i < TICKS_AT_ONCE; i++) {
            b->due_ns += b->interval_ns;
            on = b->tick(w, b);
            ran = true;
        }
        if (!on)
            b->due_ns = INT64_MAX; /* freed with the world: its step may still look at it */
    }
    w->ticking = false;
    return ran;
}

int64_t bh_bench_next_tick(const struct bh_bench_world *w)
{
    int64_t next = INT64_MAX;

    for (const struct bh_bench_background *b = w->background; b; b = b->next)
        next = BH_MIN(next, b->due_ns);
    return next;
}

/* ---- configuration --------------------------------------------------------------------------- */

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; p && (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

/* A gate that is off takes those with it that need it: a config does not name them all. */
static void put_gate(struct bh_buf *b, const char *name, bool on, unsigned depth)
{
    bh_buf_addf(b, "%s%s=%s", b->n ? "," : "--feature-gates=", name, on ? "true" : "false");
    for (size_t i = 0; !on && depth && i < bh_n_feature_rows; i++)
        if (has_word(bh_feature_rows[i].needs, name))
            put_gate(b, bh_feature_rows[i].name, false, depth - 1);
}

static void add_gate(struct bh_bench_world *w, struct bh_buf *b, const struct bh_json *g)
{
    const char *value = g->b ? "true" : "false", *instead = bh_sched_gate_instead(g->key.p);
    struct bh_feature_gates defaults;

    bh_feature_gates_init(&defaults);
    for (size_t i = 0; i < bh_n_feature_rows; i++) {
        if (!bh_streq(bh_feature_rows[i].name, g->key.p))
            continue;
        if (!instead)
            put_gate(b, g->key.p, g->b, 3);
        else if (bh_feature_enabled(&defaults, g->key.p) != g->b)
            bh_bench_note(w->report, w->target->name, "feature gate %s=%s has no effect: %s",
                          g->key.p, value, instead);
        return;
    }
    bh_bench_note(w->report, w->target->name,
                  "feature gate %s=%s is not known to kube-scheduler %s", g->key.p, value,
                  BH_KUBERNETES_VERSION);
}

int bh_bench_setup_init(struct bh_bench_setup *s, struct bh_bench_world *w, struct bh_err *err)
{
    static const struct bh_opt none[] = {{0}};
    static const struct bh_opt_usage usage = {.program = "berth bench perf"};
    const struct bh_bench_target *t = w->target;
    const char *path = t->test_case->scheduler_config;
    struct bh_buf gates = {0};
    char name[] = "bench";

    *s = (struct bh_bench_setup){0};
    bh_json_each(g, t->test_case->gates) {
        const struct bh_json *v = bh_json_get(t->workload->gates, g->key.p);
        if ((v ? v : bh_json_get(t->test_case->gates, g->key.p)) == g)
            add_gate(w, &gates, g);
    }
    bh_json_each(g, t->workload->gates)
        add_gate(w, &gates, g);
    s->gates = gates.n ? bh_buf_take(&gates) : NULL;
    if (path && *path != '/')
        s->path = bh_asprintf("%s/%s", t->file->dir, path);
    else if (path || w->o->config)
        s->path = bh_strdup(path ? path : w->o->config);
    char *argv[] = {name, s->gates, NULL};
    int rc = bh_sched_config_load(s->path, &s->config, err);
    if (rc >= 0)
        rc = bh_kube_flags_parse(&s->flags, none, &usage, s->gates ? 2 : 1, argv, err);
    s->has_flags = rc == 0;
    if (rc >= 0 && bh_kube_flags_gates_error(&s->flags))
        rc = bh_err_set(err, -EINVAL, "featureGates: %s", bh_kube_flags_gates_error(&s->flags));
    if (rc >= 0)
        bh_sched_config_apply_flags(s->config, &s->flags);
    return BH_MIN(rc, 0);
}

void bh_bench_setup_fini(struct bh_bench_setup *s)
{
    bh_sched_config_free(s->config);
    if (s->has_flags)
        bh_kube_flags_free(&s->flags);
    free(s->path);
    free(s->gates);
    *s = (struct bh_bench_setup){0};
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_bench_world_init(struct bh_bench_world *w, const struct bh_bench_options *o,
                        const struct bh_bench_target *t, struct bh_bench_report *r,
                        struct bh_progress *p, struct bh_err *err)
{
    *w = (struct bh_bench_world){
        .o = o, .driver = o->driver, .target = t, .report = r, .progress = p};
    bh_rand_seed(&w->rand, o->seed);
    int rc = w->driver->open(w, err);
    w->began_ns = bh_mono_ns(); /* a start has limits of its own */
    return rc;
}

void bh_bench_world_fini(struct bh_bench_world *w)
{
    struct bh_bench_background *next;
    struct bh_map_entry *e;

    w->driver->close(w);
    for (struct bh_bench_background *b = w->background; b; b = next) {
        next = b->next;
        bh_bench_victims_fini(&b->slots);
        for (size_t i = 0; i < b->n_templates; i++)
            bh_bench_template_fini(&b->templates[i]);
        free(b->templates);
        free(b);
    }
    for (struct bh_bench_custom *k; (k = w->customs);) {
        w->customs = k->next;
        for (size_t i = 0; i < BH_ARRAY_LEN(k->texts); i++)
            free(k->texts[i]);
        free(k);
    }
    window_fini(&w->window);
    for (size_t it = 0; (e = bh_map_next(&w->namespaces, &it));) {
        struct bh_bench_namespace *ns = e->value;
        free(ns->name);
        free(ns);
    }
    bh_map_fini(&w->namespaces);
    bh_map_fini(&w->drawn);
    bh_buf_fini(&w->text);
    bh_arena_fini(&w->arena);
}

/* ---- a workload ------------------------------------------------------------------------------ */

int bh_bench_run(struct bh_bench_world *w, const struct bh_bench_step *steps, uint32_t n,
                 struct bh_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < n && rc >= 0; i++) {
        w->done = w->total = 0;
        w->step = &steps[i];
        rc = steps[i].op->run(w, &steps[i], err);
        if (rc >= 0)
            rc = w->driver->flush(w, err);
        if (rc < 0)
            bh_err_prefix(err, rc, "op %u (%s)", steps[i].index, steps[i].op->name);
    }
    if (rc >= 0 && w->window.on)
        rc = bh_err_set(err, -EINVAL, "startCollectingMetrics without stopCollectingMetrics");
    return rc;
}
