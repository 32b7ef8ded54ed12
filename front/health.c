/* SPDX-License-Identifier: Apache-2.0
 *
 * front/health.c - /healthz, /livez, /readyz
 */
#include "front/health.h"

#include "front/front.h"

#define EXCLUDED_MAX 32u

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_named(const char *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (bh_streq(list[i], name))
            return true;
    return false;
}

/* Names that are no check of this probe, sorted, each once. */
static void write_unknown(const struct bh_health_check *checks, size_t n,
                          const char *const *excluded, size_t n_excluded, struct bh_buf *out)
{
    const char *unknown[EXCLUDED_MAX];
    size_t k = 0;

    for (size_t i = 0; i < n_excluded && k < EXCLUDED_MAX; i++) {
        bool known = is_named(unknown, k, excluded[i]);
        for (size_t c = 0; c < n && !known; c++)
            known = bh_streq(checks[c].name, excluded[i]);
        if (!known)
            unknown[k++] = excluded[i];
    }
    if (!k)
        return;
    qsort(unknown, k, sizeof(unknown[0]), bh_by_text);
    bh_buf_adds(out, "warn: some health checks cannot be excluded: no matches for ");
    for (size_t i = 0; i < k; i++)
        bh_buf_add_json(out, i ? ",%s" : "%s", unknown[i]);
    bh_buf_addc(out, '\n');
}

int bh_health_write(const char *probe, const struct bh_health_check *checks, size_t n,
                    const char *const *excluded, size_t n_excluded, bool verbose,
                    struct bh_buf *out)
{
    struct bh_buf lines BH_CLEANUP(bh_buf_fini) = {0};
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        if (is_named(excluded, n_excluded, checks[i].name)) {
            bh_buf_addf(&lines, "[+]%s excluded: ok\n", checks[i].name);
            continue;
        }
        bh_buf_addf(&lines, checks[i].why ? "[-]%s failed: reason withheld\n" : "[+]%s ok\n",
                    checks[i].name);
        ok = ok && !checks[i].why;
    }
    write_unknown(checks, n, excluded, n_excluded, &lines);
    if (ok && !verbose) {
        bh_buf_adds(out, "ok");
    } else {
        bh_buf_add(out, bh_buf_str(&lines), lines.n);
        bh_buf_addf(out, "%s check %s\n", probe, ok ? "passed" : "failed");
    }
    return ok ? 200 : 500;
}

/* ---- numbers --------------------------------------------------------------------------------- */

struct bh_health {
    struct bh_metrics *slis; /* these two alone */
    struct bh_metric *now[2], *total[2];
};

static void register_in(struct bh_health *h, int i, struct bh_metrics *m)
{
    h->now[i] = bh_metric_new(m, BH_GAUGE, "kubernetes_healthcheck",
                              "[STABLE] This metric records the result of a single healthcheck.",
                              "name,type", NULL, 0);
    h->total[i] = bh_metric_new(m, BH_COUNTER, "kubernetes_healthchecks_total",
                                "[STABLE] This metric records the results of all healthcheck.",
                                "name,status,type", NULL, 0);
}

struct bh_health *bh_health_new(struct bh_metrics *m)
{
    struct bh_health *h = bh_calloc(1, sizeof(*h));

    h->slis = bh_metrics_new();
    register_in(h, 0, h->slis);
    register_in(h, 1, m);
    return h;
}

void bh_health_free(struct bh_health *h)
{
    if (!h)
        return;
    bh_metrics_free(h->slis);
    free(h);
}

void bh_health_observe(struct bh_health *h, const char *check, const char *probe, bool ok)
{
    for (int i = 0; i < 2; i++) {
        bh_cell_set(bh_metric_cell(h->now[i], check, probe), ok);
        bh_cell_add(bh_metric_cell(h->total[i], check, ok ? "success" : "error", probe), 1);
    }
}

void bh_health_render(struct bh_health *h, struct bh_buf *out)
{
    bh_metrics_render(h->slis, out);
}

/* ---- asking the others ----------------------------------------------------------------------- */

struct probing {
    struct bh_call *call;
    const char *probe;
    bool single;
    struct bh_health_check checks[BH_HEALTH_CHECKS];
    size_t n;
    unsigned missing;
    struct answer {
        struct probing *p;
        struct bh_health_check *check;
        const char *absent;
    } answers[BH_HEALTH_CHECKS];
};
struct exclusion {
    const char *v[EXCLUDED_MAX];
    size_t n;
};

static void on_query(void *arg, const char *name, const char *value)
{
    struct exclusion *e = arg;

    if (bh_streq(name, "exclude") && e->n < EXCLUDED_MAX)
        e->v[e->n++] = value;
}

static void conclude(struct probing *p)
{
    struct bh_call *c = p->call;
    struct exclusion e = {.n = 0};
    struct bh_buf out = {0};

    if (!c->http) {
        bh_call_text(c, 500, "");
    } else if (p->single && p->checks[0].why) {
        BH_CLEANUP(bh_freep)
        char *text = bh_asprintf("internal server error: %s", p->checks[0].why);
        bh_call_error(c, 500, text);
    } else if (p->single) {
        bh_call_text(c, 200, "ok");
    } else {
        bh_http_query_each(c->http, on_query, &e);
        for (size_t i = 0; i < p->n; i++)
            if (!is_named(e.v, e.n, p->checks[i].name))
                bh_health_observe(c->f->health, p->checks[i].name, p->probe, !p->checks[i].why);
        int code = bh_health_write(p->probe, p->checks, p->n, e.v, e.n,
                                   bh_http_query(c->http, "verbose") != NULL, &out);
        bh_http_set_header(c->http, "X-Content-Type-Options", "nosniff");
        bh_call_reply(c, code, NULL, bh_buf_str(&out), out.n);
        bh_buf_fini(&out);
    }
    free(p);
}

static void on_answer(void *arg, int code, struct bh_str body)
{
    struct answer *a = arg;

    (void)body;
    if (code == 200 || (code == 404 && bh_streq(a->check->name, "leaderElection")))
        a->check->why = NULL; /* 404: it does not elect */
    else if (code == 0)
        a->check->why = a->absent;
    if (--a->p->missing == 0)
        conclude(a->p);
}

static bool keep_one(struct probing *p, const char *check)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!bh_streq(p->checks[i].name, check))
            continue;
        p->checks[0] = p->checks[i];
        p->n = 1;
        p->single = true;
        return true;
    }
    return false;
}

static bool needs_asking(const struct bh_health_check *c)
{
    return bh_streq(c->name, "leaderElection") || bh_streq(c->name, "sched-handler-sync");
}

void bh_front_health(struct bh_call *c, const char *probe, const char *check)
{
    struct probing *p = bh_calloc(1, sizeof(*p));

    p->call = c;
    p->probe = probe;
    /* The checks of a probe, in upstream's order. why is what is said until an answer comes. */
    struct bh_front *f = c->f;
    bool elects = f->o.file->leader.leader_elect, ready = bh_streq(p->probe, "readyz");
    if (elects && !bh_streq(p->probe, "livez"))
        p->checks[p->n++] = (struct bh_health_check){
            .name = "leaderElection", .why = "failed election to renew leadership on lease"};
    if (ready) {
        p->checks[p->n++] = (struct bh_health_check){
            .name = "shutdown", .why = f->stopping ? "process is shutting down" : NULL};
        p->checks[p->n++] = (struct bh_health_check){.name = "sched-handler-sync",
                                                     .why = "handlers are not fully synchronized"};
    }
    if (!p->n)
        p->checks[p->n++] = (struct bh_health_check){.name = "ping"};
    if (check && !keep_one(p, check)) {
        free(p);
        bh_call_error(c, 404, "404 page not found");
        return;
    }
    for (size_t i = 0; i < p->n; i++)
        p->missing += needs_asking(&p->checks[i]);
    if (!p->missing) {
        conclude(p);
        return;
    }
    for (size_t i = 0, n = p->n; i < n; i++) { /* no answer comes before the loop runs */
        bool leader = bh_streq(p->checks[i].name, "leaderElection");
        if (!needs_asking(&p->checks[i]))
            continue;
        p->answers[i] = (struct answer){p, &p->checks[i],
                                        leader ? "berth-watcher does not answer"
                                               : "berth-scheduler does not answer"};
        bh_peers_ask(f->peers, leader ? "watcher" : "scheduler", "GET",
                     leader ? "/readyz/leaderElection" : "/readyz/sched-handler-sync", NULL,
                     BH_HEALTH_NS, on_answer, &p->answers[i]);
    }
}
