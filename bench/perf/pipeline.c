/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/pipeline.c - `berth bench perf --mode pipeline`: a cluster of real processes
 *
 * Every workload gets its own: API server (no kubelet: upstream has none), watcher, scheduler,
 * binders, a runtime directory of their own, free ports; all of it goes with the workload, also
 * after Ctrl-C. Nothing here knows what happens in them but through the API server, /proc and the
 * scheduler's metrics.
 */
#include <errno.h>

#include "bench/perf/pipeline.h"
#include "common/control/ask.h"
#include "simulator/offline/offline.h"

#define READY_NS    UINT64_C(120000000000) /* an end is noticed at once; this is for one that hangs */
#define LOOK_MIN_NS INT64_C(20000000)      /* between two looks at pods by LIST, */
#define LOOK_SHARE  5                      /* and as many times as long as the LIST takes */
#define JSON        "application/json"
#define POD_GROUPS  "--runtime-config=scheduling.k8s.io/v1alpha2=true" /* with their gate */

/* ---- objects --------------------------------------------------------------------------------- */

static int create(struct bh_bench_world *w, const struct bh_bench_new *o, struct bh_err *err)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_json *made;

    bh_cluster_path(&path, o->type, o->ns, NULL, NULL);
    const struct bh_bench_request q = {.method = "POST",
                                       .path = bh_buf_str(&path),
                                       .content_type = JSON,
                                       .body = o->json,
                                       .may_exist = o->may_exist,
                                       .may_refuse = o->may_refuse,
                                       .redraw = true};
    if (!o->ret_name)
        return bh_bench_send(w, &q, err);
    int rc = bh_bench_ask(w, &q, &a, &made, err);
    if (rc >= 0)
        *o->ret_name = bh_strdup(bh_json_get_text(bh_json_get(made, "metadata"), "name"));
    return rc;
}

static int update(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                  const char *name, const char *sub, struct bh_str json, struct bh_err *err)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};

    bh_cluster_path(&path, t, ns, name, sub);
    const struct bh_bench_request q = {
        .method = "PUT", .path = bh_buf_str(&path), .content_type = JSON, .body = json};
    return bh_bench_send(w, &q, err);
}

static void remove_one(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                       const char *name)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};

    bh_cluster_path(&path, t, ns, name, NULL);
    const struct bh_bench_request q = {
        .method = "DELETE", .path = bh_buf_str(&path), .may_fail = true};
    (void)bh_bench_send(w, &q, NULL);
}

/* "?labelSelector=a%3Db%2Cc%3Dd" */
static void add_selector(struct bh_buf *path, const struct bh_json *labels)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};

    bh_json_each(m, labels)
        bh_buf_addf(&text, "%s%s=%s", text.n ? "," : "", m->key.p,
                    bh_json_cstr(m) ? bh_json_cstr(m) : "");
    if (text.n) {
        bh_buf_adds(path, "?labelSelector=");
        bh_url_escape(path, bh_buf_str(&text));
    }
}

static int remove_pods(struct bh_bench_world *w, const char *ns, const struct bh_json *labels,
                       bool at_once, struct bh_err *err)
{
    static const char options[] = "{\"gracePeriodSeconds\":0,\"propagationPolicy\":\"Background\"}";
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};

    bh_cluster_path(&path, bh_sim_type_find("", "v1", "pods"), ns, NULL, NULL);
    add_selector(&path, labels);
    const struct bh_bench_request q = {.method = "DELETE",
                                       .path = bh_buf_str(&path),
                                       .content_type = at_once ? JSON : NULL,
                                       .body = at_once ? bh_str_c(options) : (struct bh_str){0}};
    return bh_bench_ask(w, &q, NULL, NULL, err);
}

static int get(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
               const char *name, struct bh_json **ret, struct bh_err *err)
{
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};

    bh_cluster_path(&path, t, ns, name, NULL);
    const struct bh_bench_request q = {
        .method = "GET", .path = bh_buf_str(&path), .may_miss = true};
    return bh_bench_ask(w, &q, &w->arena, ret, err);
}

static int list(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                const struct bh_json *labels, bh_bench_list_fn *fn, void *arg, struct bh_err *err)
{
    struct bh_bench_pipeline *p = w->d;
    int64_t began = (int64_t)bh_mono_ns();
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_json *tree;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    bh_cluster_path(&path, t, ns, NULL, NULL);
    add_selector(&path, labels);
    const struct bh_bench_request q = {
        .method = "GET", .path = bh_buf_str(&path), .may_miss = true};
    int rc = bh_bench_ask(w, &q, &a, &tree, err);
    bh_json_each(o, rc >= 0 ? bh_json_get_list(tree, "items") : NULL) {
        const struct bh_json *meta = bh_json_get(o, "metadata");
        bool attempted = false;
        bh_json_each(c, bh_json_path(o, "status.conditions"))
            attempted |= bh_streq(bh_json_get_text(c, "type"), "PodScheduled");
        const struct bh_bench_seen seen = {.ns = bh_json_get_text(meta, "namespace"),
                                           .name = bh_json_get_text(meta, "name"),
                                           .bound = bh_json_path(o, "spec.nodeName") != NULL,
                                           .attempted = attempted,
                                           .allocated =
                                               bh_json_path(o, "status.allocation") != NULL};
        fn(arg, &seen);
    }
    p->list_ns = (int64_t)bh_mono_ns() - began;
    return rc;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int settle(struct bh_bench_world *w, struct bh_err *err)
{
    const struct bh_bench_pipeline *p = w->d;

    if (p->trouble_rc < 0 && err)
        *err = p->trouble;
    return p->trouble_rc;
}

static int64_t now(struct bh_bench_world *w)
{
    (void)w;
    return (int64_t)bh_mono_ns();
}

static int pass(struct bh_bench_world *w, int64_t until_ns, struct bh_err *err)
{
    int rc = 0;

    while (rc >= 0 && now(w) < until_ns)
        rc = bh_bench_pump(w, err);
    return rc;
}

static int advance(struct bh_bench_world *w, struct bh_bench_wait *x, int64_t until_ns,
                   bool *ret_idle, struct bh_err *err)
{
    const struct bh_bench_pipeline *p = w->d;
    int rc = bh_bench_pump(w, err);

    (void)until_ns;
    *ret_idle = now(w) >= x->look_ns;
    if (*ret_idle)
        x->look_ns = now(w) + BH_MAX(LOOK_MIN_NS, LOOK_SHARE * p->list_ns);
    return rc;
}

static uint64_t clock_ns(const struct bh_bench_world *w)
{
    return bh_mono_ns() - w->window.began_wall_ns;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Upstream's scheduler has its caches filled before the first operation. */
static int wait_until_ready(struct bh_bench_pipeline *p, struct bh_err *err)
{
    const Berth__ControlReply *r;
    struct bh_ask ask = {0};
    struct bh_err why = {0};
    bool ready = false, opened = false;
    int rc = 0;

    for (uint64_t end = bh_mono_ns() + READY_NS; rc == 0 && !ready && bh_up_pump(p->up);) {
        rc = bh_up_all_alive(p->up, err);
        if (rc == 0 && !opened)
            opened = bh_ask_probe(p->up->dir, "control", "berth-scheduler", &why) >= 0 &&
                     bh_ask_open(&ask, p->up->dir, &why) >= 0;
        if (rc == 0 && opened &&
            bh_ask_for(&ask, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, &why) >= 0)
            ready = r->status && r->status->snapshot_ready && r->status->feed_synced &&
                    r->status->leading;
        if (rc == 0 && !ready && bh_mono_ns() > end)
            rc = bh_err_set(err, -ETIMEDOUT, "the scheduler did not get ready: %s", why.msg);
    }
    bh_ask_close(&ask);
    return rc;
}

static int open_pipeline(struct bh_bench_world *w, struct bh_err *err)
{
    static const char *const programs[] = {"berth-watcher", "berth-scheduler", "berth-binder",
                                           "berth-simulator", NULL};
    struct bh_bench_pipeline *p = w->d = bh_calloc(1, sizeof *p);
    int rc = bh_bench_setup_init(&p->setup, w, err);

    if (rc < 0)
        return rc;
    const bool groups = bh_sched_config_gate(p->setup.config, "GenericWorkload");
    const struct bh_up_options o = {.config = p->setup.path,
                                    .gates = p->setup.gates,
                                    .runtime_config = groups ? POD_GROUPS : NULL,
                                    .record = w->o->record,
                                    .binders = w->o->binders,
                                    .no_kubelet = true,
                                    .no_front = true};
    p->up = bh_up_open("berth bench perf", NULL);
    bh_bench_client_init(p);
    p->up->own_server = true;
    rc = bh_up_find_programs(p->up, programs, err);
    if (rc >= 0)
        rc = bh_up_prepare(p->up, &o, err);
    for (unsigned i = 0; rc >= 0 && i < p->up->n && !p->up->stopping; i++)
        rc = bh_up_start_child(p->up, &p->up->child[i], err);
    if (rc >= 0)
        rc = wait_until_ready(p, err);
    if (rc >= 0 && p->up->stopping) {
        w->stopped = true;
        rc = bh_err_set(err, -EINTR, "stopped");
    }
    return rc < 0 ? rc : bh_bench_client_open(w, err);
}

static void close_pipeline(struct bh_bench_world *w)
{
    struct bh_bench_pipeline *p = w->d;

    if (p->n_refusals)
        bh_bench_note(w->report, w->target->name, "churn: %u writes were refused, the first: %s",
                      p->n_refusals, p->refusal.msg);
    if (p->up) {
        bh_bench_client_close(w);
        bh_up_stop(p->up);
        w->stopped |= p->up->signalled;
        bh_up_close(p->up);
    }
    if (p->copy)
        bh_offline_fini(p->copy);
    free(p->copy);
    bh_bench_setup_fini(&p->setup);
    bh_buf_fini(&p->before);
    free(p);
    w->d = NULL;
}

const struct bh_bench_driver bh_bench_pipeline_driver = {.name = "pipeline",
                                                         .open = open_pipeline,
                                                         .close = close_pipeline,
                                                         .create = create,
                                                         .update = update,
                                                         .remove = remove_one,
                                                         .remove_pods = remove_pods,
                                                         .get = get,
                                                         .list = list,
                                                         .allocate = bh_bench_pipeline_allocate,
                                                         .settle = settle,
                                                         .flush = bh_bench_client_flush,
                                                         .now = now,
                                                         .pass = pass,
                                                         .advance = advance,
                                                         .clock_ns = clock_ns,
                                                         .begin = bh_bench_begin_pipeline,
                                                         .collect = bh_bench_collect_pipeline};
