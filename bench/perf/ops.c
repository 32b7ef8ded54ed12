/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/ops.c - operations about deletion, time and measuring
 *
 * Upstream: test/integration/scheduler_perf/{operations,executor,scheduler_perf}.go.
 */
#include "bench/perf/perf.h"

#include <errno.h>
#include <inttypes.h>

#define SECOND_NS INT64_C(1000000000)
#define CHURN_MS  500

/* ---- deletePods ------------------------------------------------------------------------------ */

static bool delete_tick(struct bh_bench_world *w, struct bh_bench_background *b)
{
    if ((size_t)b->n < b->slots.n) {
        const struct bh_bench_victim *v = &b->slots.v[b->n];
        w->driver->remove(w, bh_sim_type_find("", "v1", "pods"), v->ns, v->name);
    }
    return (size_t)++b->n < b->slots.n;
}

static struct bh_bench_background *
background(struct bh_bench_world *w, const struct bh_bench_step *s, int64_t interval_ns,
           bool (*tick)(struct bh_bench_world *, struct bh_bench_background *))
{
    struct bh_bench_background *b = bh_calloc(1, sizeof *b);

    *b = (struct bh_bench_background){.next = w->background,
                                      .due_ns = w->driver->now(w) + interval_ns,
                                      .interval_ns = interval_ns,
                                      .tick = tick,
                                      .step = s};
    return w->background = b;
}

/* Without a rate it is one request. */
int bh_bench_delete_pods(struct bh_bench_world *w, const struct bh_bench_step *s,
                         struct bh_err *err)
{
    int64_t tick = s->per_second > 0 ? BH_MAX((int64_t)(1e9 / s->per_second), 1) : 0;

    if (!s->namespace_)
        return bh_err_set(err, -EINVAL, "namespace: missing");
    if (!tick)
        return w->driver->remove_pods(w, s->namespace_, s->selector, false, err);
    struct bh_bench_background *b = background(w, s, tick, delete_tick);
    int rc = w->driver->list(w, bh_sim_type_find("", "v1", "pods"), s->namespace_, s->selector,
                             bh_bench_add_victim, &b->slots, err);
    if (rc < 0 || s->skip_wait)
        return rc;
    return w->driver->pass(w, w->driver->now(w) + tick * (int64_t)b->slots.n, err);
}

/* ---- churn ----------------------------------------------------------------------------------- */

/* Upstream goes on after errors, too; here the report notes them. */
static void churn_create(struct bh_bench_world *w, struct bh_bench_background *b, size_t k,
                         struct bh_bench_victim *slot)
{
    const struct bh_bench_template *t = &b->templates[k];
    const char *in = t->type->flags & BH_SIM_NAMESPACED ? b->step->namespace_ : "";
    char *name = NULL;
    struct bh_err err = {0};
    const struct bh_bench_new o = {.type = t->type,
                                   .ns = in,
                                   .json = bh_str_c(t->json),
                                   .may_refuse = true,
                                   .ret_name = slot ? &name : NULL};
    int rc = w->driver->create(w, &o, &err);

    if (rc < 0)
        bh_bench_note(w->report, w->target->name, "churn: %s: %s", t->path, err.msg);
    if (name)
        *slot = (struct bh_bench_victim){t->type, bh_strdup(in), name};
}

static bool churn_tick(struct bh_bench_world *w, struct bh_bench_background *b)
{
    const struct bh_bench_step *s = b->step;
    bool again = bh_streq(s->mode, "recreate");
    size_t slot = again ? (size_t)(b->n % s->number) * b->n_templates : 0;

    for (size_t k = 0; k < b->n_templates; k++) {
        struct bh_bench_victim *v = again ? &b->slots.v[slot + k] : NULL;
        if (v && v->name) {
            w->driver->remove(w, v->type, v->ns, v->name);
            free(v->name);
            free(v->ns);
            *v = (struct bh_bench_victim){0};
        } else {
            churn_create(w, b, k, v);
        }
    }
    b->n++;
    return again || !s->number || b->n < s->number;
}

int bh_bench_churn(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    int64_t ms = s->interval_ms ? s->interval_ms : CHURN_MS;
    struct bh_bench_background *b = background(w, s, ms * (SECOND_NS / 1000), churn_tick);
    int rc = bh_bench_know_namespace(w, s->namespace_, true, err);

    b->templates = bh_calloc(s->template_paths->c.n, sizeof *b->templates);
    bh_json_each(p, s->template_paths) {
        if (rc >= 0)
            rc = bh_bench_open_template(w, p->s.p, NULL, true, NULL, NULL,
                                        &b->templates[b->n_templates++], err);
    }
    if (rc >= 0 && bh_streq(s->mode, "recreate")) {
        b->slots.n = (size_t)s->number * b->n_templates;
        b->slots.v = bh_calloc(b->slots.n, sizeof *b->slots.v);
    }
    return rc;
}

/* ---- time, measuring ------------------------------------------------------------------------- */

int bh_bench_sleep(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    return w->driver->pass(w, w->driver->now(w) + s->duration_ns, err);
}

int bh_bench_start_collecting(struct bh_bench_world *w, const struct bh_bench_step *s,
                              struct bh_err *err)
{
    struct bh_selector *sel = NULL; /* all */
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    int rc = 0;

    if (s->selector && s->selector->c.n)
        rc = bh_selector_from_json(
            bh_json_make(&a, "matchLabels: %p", bh_json_clone(&a, s->selector)), &sel, err);
    return rc < 0 ? bh_err_prefix(err, rc, "labelSelector")
                  : bh_bench_window_begin(w, s->name ? s->name : "", s->namespaces, sel, err);
}

int bh_bench_stop_collecting(struct bh_bench_world *w, const struct bh_bench_step *s,
                             struct bh_err *err)
{
    (void)s;
    if (!w->window.on)
        return bh_err_set(err, -EINVAL, "nothing is being collected");
    bh_bench_window_end(w);
    return 0;
}
