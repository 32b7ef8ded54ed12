/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/rebalance.c - `berth rebalance`: which pods to move so that nodes become free, or a pod fits
 *
 * The plan is made in this process (simulator/offline/rebalance.h), of a running system as
 * `berth explain` sees it, or of files. With --apply nodes are closed and pods evicted through
 * the API server, which has the last word about disruption budgets.
 */
#include <errno.h>
#include <unistd.h>

#include "cli/cluster.h"
#include "cli/observer.h"
#include "common/control/ask.h"
#include "common/k8s/codec.h"
#include "scheduler/explain/explain.h"
#include "scheduler/explain/grid.h"
#include "simulator/offline/rebalance.h"
#include "simulator/trial/trial.h"

#define WHO          "berth rebalance"
#define EXIT_NOT_ALL 3
#define KEPT_SHOWN   10u
#define TURN_MS      50
#define ASK_NS       UINT64_C(30000000000)

struct arguments {
    struct bh_opt_list files, wanted, rest;
    const char *ns, *selector, *config, *output, *runtime, *kubeconfig;
    int64_t max_nodes, max_moves, rate, patience_s;
    bool apply;
    enum bh_form form;
};
struct session {
    const struct arguments *a;
    struct bh_arena arena;
    struct bh_rebalance_options o;
    struct bh_progress progress;
    struct bh_ask ask;
    struct bh_feature_gates gates; /* config points to them */
    struct bh_sched_config *config;
    struct bh_observer observer;
    struct bh_trial *trial;
    struct bh_json *plan;
};

/* ---- the world ------------------------------------------------------------------------------- */

static int read_running(struct session *s, struct bh_err *err)
{
    const char *from = "";
    bool draws;
    char dir[108];
    int rc = bh_cli_find_dir(WHO, s->a->runtime, dir, err);

    if (rc < 0)
        return rc;
    if (s->a->config)
        rc = bh_sched_config_load(s->a->config, &s->config, err);
    else if ((rc = bh_ask_open(&s->ask, dir, err)) >= 0)
        rc = bh_observer_config(&s->ask, &s->arena, &s->gates, &s->config, &from, &draws, err);
    if (rc < 0)
        return rc;
    if (s->config->n_extenders)
        fputs(WHO ": extenders are configured; they are not asked here\n", stderr);
    s->config->n_extenders = 0;
    rc = bh_observer_open(&s->observer, dir, s->config, err);
    for (size_t i = 0; i < s->a->wanted.n && rc == 0;
         i++) /* for its hints, if there is no such pod */
        if (!strchr(s->a->wanted.v[i], '/'))
            bh_observer_want(&s->observer, s->a->ns, s->a->wanted.v[i]);
    return rc < 0 ? rc : bh_observer_read(&s->observer, dir, err);
}

static int read_files(struct session *s, struct bh_err *err)
{
    const struct bh_trial_options o = {.config = s->a->config,
                                       .tie_break = BH_TIE_FIRST,
                                       .seed = 1,
                                       .no_extenders = true,
                                       .now_ns = bh_wall_ns()};
    int rc = bh_trial_new(&o, &s->trial, err);

    return rc < 0 ? rc : bh_trial_load(s->trial, s->a->files.v, s->a->files.n, err);
}

/* ---- pods that are to get room --------------------------------------------------------------- */

struct wanted {
    const struct session *s;
    struct bh_pending *v;
    size_t n;
};

/* NAME, pod/NAME; podgroup/NAME: the group's pods. */
static bool is_meant(const struct session *s, const struct bh_pod_rec *pod, const char *what)
{
    const struct bh_symtab *tab =
        bh_engine_symtab(s->trial ? s->trial->w.engine : s->observer.w.engine);
    const char *slash = strchr(what, '/'), *name = slash ? slash + 1 : what;
    bool group = slash && strncmp(what, "podgroup", 8) == 0;

    return bh_str_eqc(bh_rec_text(pod, pod->namespace_), s->a->ns) &&
           (group ? pod->group != BH_SYM_NONE && bh_streq(bh_sym_text(tab, pod->group), name)
                  : bh_str_eqc(bh_rec_text(pod, pod->name), name));
}

static void see(struct wanted *w, const char *what, const struct bh_pod_rec *pod, bh_shape_id shape)
{
    if (!is_meant(w->s, pod, what))
        return;
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].pod == pod)
            return;
    w->v = bh_reallocarray(w->v, w->n + 1, sizeof(*w->v));
    w->v[w->n++] = (struct bh_pending){.pod = pod, .shape = shape};
}

static int by_name(const void *a, const void *b)
{
    const struct bh_pod_rec *x = ((const struct bh_pending *)a)->pod,
                            *y = ((const struct bh_pending *)b)->pod;

    return strcmp(bh_rec_text(x, x->name).p, bh_rec_text(y, y->name).p);
}

static int find_wanted(struct session *s, struct wanted *w, struct bh_err *err)
{
    struct bh_map_entry *m;

    for (size_t i = 0; i < s->a->wanted.n; i++) {
        size_t before = w->n;
        const char *what = s->a->wanted.v[i];
        for (size_t k = 0; s->trial && k < s->trial->n_list; k++)
            see(w, what, s->trial->list[k]->rec, s->trial->list[k]->shape);
        for (size_t it = 0; !s->trial && (m = bh_map_next(&s->observer.pending, &it));)
            see(w, what, ((struct bh_observed_pod *)m->value)->pod,
                ((struct bh_observed_pod *)m->value)->shape);
        if (w->n == before)
            return bh_err_set(err, -ENOENT, "no pod that waits in namespace \"%s\" is \"%s\"",
                              s->a->ns, what);
    }
    if (w->n > 1)
        qsort(w->v, w->n, sizeof(*w->v), by_name);
    return 0;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void on_progress(void *arg, size_t done, size_t total)
{
    bh_progress_draw(arg, done, total, "%zu of %zu nodes", done, total);
}

static int make_plan(struct session *s, struct bh_err *err)
{
    struct wanted w = {.s = s};
    int rc = s->a->files.n ? read_files(s, err) : read_running(s, err);
    struct bh_offline *world = s->trial ? &s->trial->w : &s->observer.w;

    if (rc == 0 && s->a->wanted.n)
        rc = find_wanted(s, &w, err);
    if (rc == 0) {
        bh_progress_patient(&s->progress);
        s->o.progress = on_progress;
        s->o.arg = &s->progress;
        world->now_ns = bh_wall_ns();
        s->plan = w.n ? bh_offline_make_room(world, &s->arena, &s->o, w.v, w.n, err)
                      : bh_offline_free_nodes(world, &s->arena, &s->o);
        bh_progress_end(&s->progress);
        rc = s->plan ? 0 : -ENOSPC; /* the only way for it to fail */
    }
    free(w.v);
    return rc;
}

static size_t count(const struct bh_json *plan, const char *list)
{
    size_t n = 0;

    bh_json_each(v, bh_json_get_list(plan, list))
        n += v != NULL;
    return n;
}

static void print_kept(const struct bh_json *plan, bool all, bool colour, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    size_t n = count(plan, "kept"), shown = 0;

    if (!n)
        return;
    bh_buf_addc(out, '\n');
    bh_grid_heading(&g, BH_CELL_BOLD, "KEPT", "WHY", NULL);
    bh_json_each(v, bh_json_get_list(plan, "kept")) {
        if (!all && shown++ == KEPT_SHOWN)
            break;
        bh_grid_members(&g, BH_CELL_DIM, v, "node reason");
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, colour);
    if (!all && n > KEPT_SHOWN)
        bh_buf_addf(out, "... and %zu more (-o wide)\n", n - KEPT_SHOWN);
}

static void print_plan(const struct session *s, struct bh_buf *out)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    const struct bh_json *p = s->plan;
    const bool colour = bh_colour_wanted(STDOUT_FILENO), wide = s->a->form == BH_FORM_WIDE;
    size_t moves = count(p, "moves"), place = count(p, "place"), freed = count(p, "free");

    if (s->a->form == BH_FORM_JSON || s->a->form == BH_FORM_YAML) {
        bh_form_write(out, p, s->a->form);
        return;
    }
    if (place)
        bh_buf_addf(out, "%zu pod%s that wait%s get%s a place by %zu move%s\n", place,
                    place == 1 ? "" : "s", place == 1 ? "s" : "", place == 1 ? "s" : "", moves,
                    moves == 1 ? "" : "s");
    else
        bh_buf_addf(out,
                    "%zu of %lld nodes become free by %zu move%s in %lld wave%s; %zu have nothing "
                    "to move\n",
                    freed, (long long)bh_json_get_i64(p, "nodes", 0), moves, moves == 1 ? "" : "s",
                    (long long)bh_json_get_i64(p, "waves", 0),
                    bh_json_get_i64(p, "waves", 0) == 1 ? "" : "s", count(p, "empty"));
    if (moves) {
        bh_buf_addc(out, '\n');
        bh_grid_heading(&g, BH_CELL_BOLD, ">WAVE", "NAMESPACE", "POD", "FROM", "TO", "BUDGET",
                        NULL);
        bh_json_each(m, bh_json_get_list(p, "moves")) {
            bh_grid_members(&g, 0, m, ">wave namespace name from to budget");
            bh_grid_row(&g);
        }
        bh_grid_print(&g, out, 0, colour);
    }
    if (freed) {
        bh_buf_adds(out, "\nfree: ");
        bh_text_join(out, bh_json_get_list(p, "free"), ", ");
        bh_buf_addc(out, '\n');
    }
    if (place)
        bh_buf_addc(out, '\n');
    bh_json_each(v, bh_json_get_list(p, "place")) {
        bh_grid_cell(&g, 0, "place");
        bh_grid_members(&g, BH_CELL_GOOD, v, "namespace name node");
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, colour);
    print_kept(p, wide, colour, out);
}

/* ---- doing it -------------------------------------------------------------------------------- */

struct work {
    const struct arguments *a;
    struct bh_session session;
    size_t done, gone, total;
    uint64_t due_ns; /* the next eviction */
};

/* *ret_code: 0 = stopped before. */
static int request(struct work *w, const char *method, const char *path, const char *type,
                   const struct bh_json *body, int *ret_code, struct bh_err *err)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0}, reply BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_api_status st;

    bh_json_write(&text, body);
    const struct bh_api_call call = {.method = method,
                                     .path = path,
                                     .content_type = type,
                                     .body = text.p,
                                     .body_n = text.n,
                                     .timeout_ns = ASK_NS};
    int rc = bh_api_do(&w->session.loop, w->session.to.client, &call, ret_code, &reply, err);
    if (rc < 0 || *ret_code < 300)
        return rc;
    bh_decode_status(reply.p, reply.n, *ret_code, &st);
    return bh_err_set(err, -EIO, "%s %s: %s (%d)", method, path, st.message, *ret_code);
}

static void rest(struct work *w, uint64_t until_ns)
{
    while (!w->session.stopping && bh_mono_ns() < until_ns)
        uv_run(&w->session.loop, UV_RUN_ONCE);
}

static int close_nodes(struct work *w, const struct bh_json *names, struct bh_err *err)
{
    int rc = 0, code;

    bh_json_each(v, names) {
        struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
        if (rc < 0 || w->session.stopping)
            break;
        bh_url_addf(&path, "/api/v1/nodes/%s", bh_json_cstr(v));
        rc = request(w, "PATCH", bh_buf_str(&path), "application/merge-patch+json",
                     bh_json_make(&w->session.arena, "spec: {unschedulable: true}"), &code, err);
    }
    return rc;
}

/* The room is promised to the pod, or those that were evicted would be there first. */
static int promise(struct work *w, const struct bh_json *pods, struct bh_err *err)
{
    int rc = 0, code;

    bh_json_each(v, pods) {
        struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
        if (rc < 0)
            break;
        bh_url_addf(&path, "/api/v1/namespaces/%s/pods/%s/status", bh_json_get_text(v, "namespace"),
                    bh_json_get_text(v, "name"));
        rc = request(w, "PATCH", bh_buf_str(&path), "application/merge-patch+json",
                     bh_json_make(&w->session.arena, "status: {nominatedNodeName: %s}",
                                  bh_json_get_text(v, "node")),
                     &code, err);
    }
    return rc;
}

/* 429: a budget allows none now; again, until patience ends. */
static int evict(struct work *w, const struct bh_json *m, struct bh_err *err)
{
    const char *ns = bh_json_get_text(m, "namespace"), *name = bh_json_get_text(m, "name");
    const struct bh_json *body = bh_json_make(
        &w->session.arena,
        "apiVersion: 'policy/v1', kind: Eviction, metadata: {namespace: %s, name: %s}, "
        "deleteOptions: {preconditions: {uid: %s}}",
        ns, name, bh_json_get_text(m, "uid"));
    uint64_t end_ns = bh_mono_ns() + (uint64_t)w->a->patience_s * UINT64_C(1000000000);
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
    int rc = 0, code = 0;

    bh_url_addf(&path, "/api/v1/namespaces/%s/pods/%s/eviction", ns, name);
    do {
        rest(w, w->due_ns);
        if (w->session.stopping)
            return 0;
        w->due_ns = bh_mono_ns() + UINT64_C(1000000000) / (uint64_t)w->a->rate;
        rc = request(w, "POST", bh_buf_str(&path), "application/json", body, &code, err);
        if (code == 429)
            w->due_ns = bh_mono_ns() + UINT64_C(1000000000);
    } while (rc < 0 && code == 429 && bh_mono_ns() < end_ns);
    if (rc < 0 && (code == 404 || code == 409)) { /* gone, or another one of that name */
        w->gone++;
        return 0;
    }
    w->done += rc == 0;
    return rc;
}

static int carry_out(const struct arguments *a, const struct bh_json *plan, struct bh_err *err)
{
    struct work w = {.a = a, .total = count(plan, "moves")};
    BH_CLEANUP(bh_freep) char *spec = NULL;
    int rc = bh_cli_find_cluster(WHO, a->kubeconfig, a->runtime, &spec, err);

    bh_session_begin(&w.session, TURN_MS, NULL, NULL);
    if (rc == 0)
        rc = bh_cluster_open(&w.session.to, &w.session.loop, spec, NULL, "berth-rebalance", err);
    if (rc == 0)
        rc = close_nodes(&w, bh_json_get_list(plan, "empty"), err);
    if (rc == 0)
        rc = close_nodes(&w, bh_json_get_list(plan, "free"), err);
    if (rc == 0)
        rc = promise(&w, bh_json_get_list(plan, "place"), err);
    bh_json_each(m, bh_json_get_list(plan, "moves")) {
        if (rc < 0 || w.session.stopping)
            break;
        bh_progress_draw(&w.session.progress, w.done + w.gone, w.total, "evicted %zu of %zu",
                         w.done, w.total);
        rc = evict(&w, m, err);
    }
    bh_progress_end(&w.session.progress);
    fprintf(stderr,
            WHO ": %s%zu of %zu pods evicted, %zu were gone already; closed nodes stay closed "
                "(kubectl uncordon)\n",
            w.session.stopping ? "stopped: " : "", w.done, w.total, w.gone);
    if (rc == 0 && w.session.stopping)
        rc = bh_err_set(err, -EINTR, "stopped by a signal");
    bh_session_end(&w.session);
    return rc;
}

/* ---- command --------------------------------------------------------------------------------- */

static int check(struct session *s, struct arguments *a, struct bh_err *err)
{
    struct bh_selector *nodes = NULL;
    int rc = bh_form_parse(a->output, &a->form, err);

    if (rc == 0 && a->rest.n)
        rc = bh_err_set(err, -EINVAL, "unexpected argument \"%s\": --for NAME makes room for a pod",
                        a->rest.v[0]);
    if (rc == 0 && a->apply && a->files.n)
        rc = bh_err_set(err, -EINVAL, "--apply is for a running cluster: not with --filename");
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        const int64_t n = i ? a->max_moves : a->max_nodes;
        if (n < 0 || n > UINT32_MAX)
            rc =
                bh_err_set(err, -EINVAL, "invalid value %lld for %s: a number from 0 (no limit) on",
                           (long long)n, i ? "--max-moves" : "--max-nodes");
    }
    if (rc == 0 && (a->rate < 1 || a->rate > 1000))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --rate: 1 to 1000 evictions a second",
                        (long long)a->rate);
    if (rc == 0 && (a->patience_s < 0 || a->patience_s > 86400))
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --patience: 0 to 86400 seconds",
                        (long long)a->patience_s);
    if (rc == 0 && a->selector && bh_selector_parse(a->selector, &nodes, err) < 0)
        rc = bh_err_prefix(err, -EINVAL, "invalid value \"%s\" for --selector", a->selector);
    s->o = (struct bh_rebalance_options){
        .nodes = nodes, .max_nodes = (uint32_t)a->max_nodes, .max_moves = (uint32_t)a->max_moves};
    return rc;
}

int bh_cmd_rebalance(int argc, char **argv)
{
    struct arguments a = {.output = "table", .ns = "default", .rate = 5, .patience_s = 600};
    struct session s = {.a = &a};
    struct bh_err err = {0};
    struct bh_buf out = {0};
    int status = BH_EXIT_OK;
    const struct bh_opt table[] = {
        {"for", 0, BH_OPT_STRLIST, &a.wanted, "POD|podgroup/NAME",
         "make room for this pod, or for the pods of this group, instead of freeing nodes"},
        {"namespace", 'n', BH_OPT_STR, &a.ns, "NS", "of --for"},
        {"selector", 'l', BH_OPT_STR, &a.selector, "LABELS", "free only nodes with these labels"},
        {"max-nodes", 0, BH_OPT_INT, &a.max_nodes, "N", "free at most N nodes (no limit)"},
        {"max-moves", 0, BH_OPT_INT, &a.max_moves, "N", "move at most N pods (no limit)"},
        {"filename", 'f', BH_OPT_STRLIST, &a.files, "FILE",
         "file, folder or - with objects, instead of the running cluster (may be repeated)"},
        {"config", 0, BH_OPT_STR, &a.config, "FILE",
         "KubeSchedulerConfiguration to decide with (default: the one in force; with files the "
         "defaults)"},
        {"apply", 0, BH_OPT_BOOL, &a.apply, NULL,
         "do it: close the nodes, evict the pods through the eviction API"},
        {"rate", 0, BH_OPT_INT, &a.rate, "N", "with --apply: evictions a second"},
        {"patience", 0, BH_OPT_INT, &a.patience_s, "SECONDS",
         "with --apply: how long a disruption budget may hold up an eviction"},
        {"kubeconfig", 0, BH_OPT_STR, &a.kubeconfig, "FILE",
         "with --apply: the cluster (default: that of --runtime-dir, else as 'berth load')"},
        {"output", 'o', BH_OPT_STR, &a.output, BH_FORMS, "form of the plan"},
        {"runtime-dir", 0, BH_OPT_STR, &a.runtime, "DIR", "instance to ask " BH_INSTANCE_DEFAULT},
        {0},
    };
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &a.rest, &err);

    rc = rc != 0 ? rc : check(&s, &a, &err);
    if (rc != 0) {
        status = bh_cli_usage(WHO, rc, &err);
    } else if ((rc = make_plan(&s, &err)) < 0) {
        status = bh_cli_fail(WHO, &err);
        status = rc == -ENOSPC ? EXIT_NOT_ALL : status;
    } else {
        print_plan(&s, &out);
        status = bh_cli_print(WHO, &out);
        if (status == BH_EXIT_OK && a.apply && carry_out(&a, s.plan, &err) < 0)
            status = bh_cli_fail(WHO, &err);
    }
    bh_selector_free((struct bh_selector *)(uintptr_t)s.o.nodes);
    bh_trial_free(s.trial);
    bh_observer_close(&s.observer);
    bh_ask_close(&s.ask);
    bh_sched_config_free(s.config);
    bh_arena_fini(&s.arena);
    free(a.files.v);
    free(a.wanted.v);
    free(a.rest.v);
    return status;
}
