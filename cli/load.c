/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/load.c - `berth load`: create nodes and pods, watch every pod until it is decided, report
 *
 * Latency of a pod: from the API server's answer to its creation until the watch shows it bound; so
 * it holds watcher, scheduler, binder and both trips through the API server. A pod is decided when
 * it has a node or a PodScheduled=False condition.
 * Runs in: one libuv loop; at most `parallel` creations on the wire.
 */
#include "cli/cluster.h"
#include "cli/load.h"
#include "common/api/reflector.h"
#include "common/base/key.h"
#include "common/base/map.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include <errno.h>
#include <unistd.h>

#define WHO              "berth load"
#define REQUEST_NS       UINT64_C(30000000000)
#define MAX_ERRORS_SHOWN 5u
#define CONNECTIONS      8u
#define KEY_MAX          600
#define CREATE_TRIES     6u /* when no definite reply came */

#define SETTLE_NS UINT64_C(2000000000)

enum cost { CPU, RECORDED, DROPPED, FULL, FULL_S, WRITING_S, COSTS };
static const char *const cost_names[] = {
    [CPU] = "process_cpu_seconds_total",
    [RECORDED] = "berth_decisions_recorded_total",
    [DROPPED] = "berth_decisions_dropped_total",
    [FULL] = "berth_decisions_full_total",
    [FULL_S] = "berth_decisions_cpu_seconds_total{what=\"full_attempts\"}",
    [WRITING_S] = "berth_decisions_cpu_seconds_total{what=\"writing\"}"};
enum state { WAITS, UNSCHEDULABLE, BOUND };
struct tracked {
    uint64_t created_ns, decided_ns;
    enum state state;
    char *message; /* of the condition */
};
struct load {
    struct bh_session session;
    struct bh_api_client *client;
    struct bh_reflector *pods_watch;
    struct bh_load_set set;
    struct bh_map by_name; /* namespace/name -> tracked */
    struct tracked *tracked;
    bool creating_pods, watch_ready;
    size_t next, done, failed, out;
    size_t bound, unschedulable;
    int64_t parallel;
    int64_t timeout_ns;
    uint64_t pods_start_ns, last_change_ns, first_bound_ns, last_bound_ns;
    char error[600], trouble[300];      /* of creations, of the watch */
    char *dir;                          /* of the kubeconfig */
    double before[COSTS], after[COSTS]; /* -1: not known */
};

/* ---- creating -------------------------------------------------------------------------------- */

struct creation {
    struct load *l;
    size_t i;
    unsigned tries;
    bool pod;
};

static void fill(struct load *l);
static void create(struct creation *c);

/* An unclear outcome is tried again. 409: it exists, from a try whose reply was lost or from
 * before. */
static void on_created(void *arg, const struct bh_api_reply *r)
{
    struct creation *c = arg;
    struct load *l = c->l;
    bool canceled = r->outcome == BH_API_CANCELED;
    bool unclear = r->outcome == BH_API_TRANSPORT || r->outcome == BH_API_TIMEOUT || r->code >= 500;

    if (unclear && ++c->tries < CREATE_TRIES && !l->session.stopping) {
        create(c);
        return;
    }
    if (r->outcome != BH_API_OK || (r->code >= 300 && r->code != 409)) {
        struct bh_api_status s = {0};
        if (r->outcome == BH_API_OK)
            bh_decode_status(r->body.p, r->body.n, r->code, &s);
        if (!l->failed++)
            snprintf(l->error, sizeof(l->error), "%s", r->error ? r->error : s.message);
    }
    l->out--;
    l->done++;
    if (c->pod)
        l->last_change_ns = l->tracked[c->i].created_ns = bh_mono_ns();
    free(c);
    if (!canceled)
        fill(l);
}

static void create(struct creation *c)
{
    const struct load *l = c->l;
    const struct bh_load_item *it = c->pod ? &l->set.pods[c->i] : &l->set.nodes[c->i];
    struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};

    if (c->pod)
        bh_url_addf(&path, "/api/v1/namespaces/%s/pods", it->namespace_);
    (void)bh_api_start(l->client, &(struct bh_api_call){.method = "POST",
                                                        .path = c->pod ? path.p : "/api/v1/nodes",
                                                        .content_type = "application/json",
                                                        .body = it->json,
                                                        .body_n = it->json_n,
                                                        .timeout_ns = REQUEST_NS,
                                                        .retry_429_5xx = true,
                                                        .on_done = on_created,
                                                        .arg = c});
}

static void fill(struct load *l)
{
    size_t n = l->creating_pods ? l->set.n_pods : l->set.n_nodes;

    while (!l->session.stopping && l->next < n && l->out < (size_t)l->parallel) {
        struct creation *c = bh_malloc(sizeof(*c));
        *c = (struct creation){.l = l, .i = l->next++, .pod = l->creating_pods};
        l->out++;
        create(c);
    }
}

/* ---- watching -------------------------------------------------------------------------------- */

static void set_state(struct load *l, struct tracked *t, enum state s)
{
    uint64_t now = bh_mono_ns();

    if (t->state == s || t->state == BOUND)
        return;
    if (t->state == UNSCHEDULABLE)
        l->unschedulable--;
    t->state = s;
    t->decided_ns = l->last_change_ns = now;
    if (s == BOUND) {
        l->bound++;
        l->last_bound_ns = now;
        if (!l->first_bound_ns)
            l->first_bound_ns = now;
    } else {
        l->unschedulable++;
    }
}

static void on_pod(void *arg, const struct bh_kind_info *k, const struct bh_reflector_event *ev)
{
    struct load *l = arg;
    const K8s__Pod *p = (const K8s__Pod *)ev->object;
    char key[KEY_MAX];

    (void)k;
    if (ev->type == BH_WATCH_DELETED || !p || !p->spec)
        return;
    size_t n = bh_key_pair(key, sizeof(key), ev->ns, ev->name);
    struct tracked *t = n ? bh_map_get(&l->by_name, key, n) : NULL;
    if (!t)
        return;
    if (p->spec->nodename && *p->spec->nodename) {
        set_state(l, t, BOUND);
        return;
    }
    for (size_t i = 0; p->status && i < p->status->n_conditions; i++) {
        const K8s__PodCondition *c = p->status->conditions[i];
        if (!c->type || !bh_streq(c->type, "PodScheduled") || !c->status ||
            !bh_streq(c->status, "False"))
            continue;
        free(t->message);
        t->message = bh_strdup(c->message ? c->message : "");
        set_state(l, t, UNSCHEDULABLE);
    }
}

static void on_synced(void *arg, const struct bh_kind_info *k, bool relist)
{
    struct load *l = arg;

    (void)k;
    (void)relist;
    l->watch_ready = true;
}

static void on_trouble(void *arg, const struct bh_kind_info *k, const char *text)
{
    (void)k;
    struct load *l = arg;
    if (text && !bh_streq(text, l->trouble)) /* a watch is tried again every second */
        fprintf(stderr, "\n" WHO ": watching pods: %s\n", text);
    snprintf(l->trouble, sizeof(l->trouble), "%s", text ? text : "");
}

/* ---- phases ---------------------------------------------------------------------------------- */

static int create_nodes(struct load *l, struct bh_err *err)
{
    fill(l);
    while (!l->session.stopping && l->done < l->set.n_nodes) {
        bh_progress_draw(&l->session.progress, l->done, l->set.n_nodes, "nodes %zu/%zu", l->done,
                         l->set.n_nodes);
        uv_run(&l->session.loop, UV_RUN_ONCE);
    }
    bh_progress_end(&l->session.progress);
    if (l->session.stopping)
        return bh_err_set(err, -EINTR, "stopped after %zu of %zu nodes", l->done, l->set.n_nodes);
    if (l->failed)
        return bh_err_set(err, -EIO, "%zu of %zu nodes could not be created: %s", l->failed,
                          l->set.n_nodes, l->error);
    return 0;
}

static int wait_for_watch(struct load *l, struct bh_err *err)
{
    uint64_t end = bh_mono_ns() + REQUEST_NS;

    while (!l->watch_ready && !l->session.stopping && bh_mono_ns() < end)
        uv_run(&l->session.loop, UV_RUN_ONCE);
    if (l->session.stopping)
        return bh_err_set(err, -EINTR, "stopped before any pod");
    return l->watch_ready ? 0 : bh_err_set(err, -ETIMEDOUT, "could not watch pods");
}

/* ---- what it costs the scheduler ------------------------------------------------------------- */

/* A metric's value, label and all; -1: it has none. */
static double metric(const struct bh_buf *text, const char *name)
{
    BH_CLEANUP(bh_freep) char *line = bh_asprintf("\n%s ", name);
    const char *at = strstr(bh_buf_str(text), line);

    return at ? strtod(at + strlen(line), NULL) : -1;
}

/* The newest figures of the scheduler beside the kubeconfig, if one runs there. */
static void read_cost(struct load *l, double v[static COSTS])
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    BH_CLEANUP(bh_freep) char *socket = bh_asprintf("%s/scheduler.http", l->dir);
    struct bh_err err;
    int code = 0;

    for (size_t i = 0; i < COSTS; i++)
        v[i] = -1;
    if (!*l->dir || access(socket, F_OK) < 0 ||
        bh_scheduler_get(&l->session.loop, l->dir, "/metrics", &code, &text, &err) < 0 ||
        code != 200)
        return;
    for (size_t i = 0; i < COSTS; i++)
        v[i] = metric(&text, cost_names[i]);
}

/* What was decided last is not in the file yet. */
static void settle_cost(struct load *l)
{
    uint64_t end = bh_mono_ns() + SETTLE_NS;

    do {
        read_cost(l, l->after);
        if (l->after[RECORDED] < 0 ||
            l->after[RECORDED] + l->after[DROPPED] - l->before[RECORDED] - l->before[DROPPED] >=
                (double)l->bound)
            break;
        uv_run(&l->session.loop, UV_RUN_ONCE);
    } while (!l->session.stopping && bh_mono_ns() < end);
}

static void print_cost(const struct load *l, bool json)
{
    double v[COSTS];

    for (size_t i = 0; i < COSTS; i++)
        v[i] = l->after[i] - l->before[i];
    if (l->before[CPU] < 0 || v[CPU] < 0) /* nobody to ask, or it began anew meanwhile */
        return;
    printf(json ? ",\"scheduler\":{\"cpuSeconds\":%.3f" : "scheduler      %.2f s of CPU", v[CPU]);
    if (l->after[RECORDED] >= 0)
        printf(json ? ",\"recording\":{\"attempts\":%.0f,\"dropped\":%.0f,\"full\":%.0f,"
                      "\"fullSeconds\":%.3f,\"writingSeconds\":%.3f}}"
                    : "; recording: %.0f attempts, %.0f dropped, %.0f with every node (%.2f s), "
                      "writing (%.2f s)\n",
               v[RECORDED], v[DROPPED], v[FULL], v[FULL_S], v[WRITING_S]);
    else
        fputs(json ? "}" : "; no decision is recorded\n", stdout);
}

/* ---- report ---------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct report {
    size_t pods, bound, unschedulable, undecided, failed;
    double seconds, rate, p50, p90, p99, max;
};

static struct report make_report(const struct load *l)
{
    struct report r = {.pods = l->set.n_pods,
                       .bound = l->bound,
                       .unschedulable = l->unschedulable,
                       .failed = l->failed};
    double *ms = bh_reallocarray(NULL, BH_MAX(l->bound, (size_t)1), sizeof(*ms));
    size_t n = 0;

    for (size_t i = 0; i < l->set.n_pods; i++) {
        const struct tracked *t = &l->tracked[i];
        if (t->state == WAITS)
            r.undecided++;
        if (t->state == BOUND) /* the watch can be ahead of the creation's reply */
            ms[n++] =
                t->decided_ns > t->created_ns ? (double)(t->decided_ns - t->created_ns) / 1e6 : 0;
    }
    r.undecided -= BH_MIN(r.undecided, r.failed);
    if (l->bound)
        r.seconds = (double)(l->last_bound_ns - l->pods_start_ns) / 1e9;
    r.rate = r.seconds > 0 ? (double)l->bound / r.seconds : 0;
    qsort(ms, n, sizeof(*ms), by_value);
    if (n) {
        r.p50 = ms[n / 2];
        r.p90 = ms[n * 9 / 10];
        r.p99 = ms[n * 99 / 100];
        r.max = ms[n - 1];
    }
    free(ms);
    return r;
}

static void print_report(const struct load *l, const struct report *r, bool json)
{
    unsigned shown = 0;

    if (json) {
        printf("{\"pods\":%zu,\"bound\":%zu,\"unschedulable\":%zu,\"undecided\":%zu,\"failed\":%zu,"
               "\"seconds\":%.3f,\"podsPerSecond\":%.1f,\"latencyMs\":{\"p50\":%.2f,\"p90\":%.2f,"
               "\"p99\":%.2f,\"max\":%.2f}",
               r->pods, r->bound, r->unschedulable, r->undecided, r->failed, r->seconds, r->rate,
               r->p50, r->p90, r->p99, r->max);
        print_cost(l, true);
        puts("}");
        return;
    }
    printf("pods           %zu\nbound          %zu\nunschedulable  %zu\nundecided      %zu\n",
           r->pods, r->bound, r->unschedulable, r->undecided);
    if (r->failed)
        printf("not created    %zu (%s)\n", r->failed, l->error);
    printf("duration       %.2f s\nthroughput     %.0f pods/s\n", r->seconds, r->rate);
    printf(
        "latency        p50 %.1f ms  p90 %.1f ms  p99 %.1f ms  max %.1f ms  (created to bound)\n",
        r->p50, r->p90, r->p99, r->max);
    print_cost(l, false);
    for (size_t i = 0; i < l->set.n_pods && shown < MAX_ERRORS_SHOWN; i++)
        if (l->tracked[i].state == UNSCHEDULABLE)
            printf("%s%s/%s: %s\n", shown++ ? "  " : "\nwithout a node, for example:\n  ",
                   l->set.pods[i].namespace_, l->set.pods[i].name, l->tracked[i].message);
}

/* ---- command --------------------------------------------------------------------------------- */

struct arguments {
    const char *kubeconfig, *nodes, *pods, *output, *ns, *prefix;
    int64_t node_count, pod_count, parallel, timeout_ns;
};

/* Before anything waits for it: an API server that is not there is a mistake here. */
static int reach_server(struct load *l, const struct bh_api_config *cfg, struct bh_err *err)
{
    const struct bh_api_call call = {.method = "GET", .path = "/version", .timeout_ns = REQUEST_NS};
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
    int code = 0, rc = bh_api_do(&l->session.loop, l->client, &call, &code, &body, err);

    return rc < 0 ? bh_err_prefix(err, rc, "API server %s of kubeconfig \"%s\"", cfg->server,
                                  cfg->source)
                  : 0;
}

static int open_cluster(struct load *l, const struct arguments *a, struct bh_api_config **ret,
                        struct bh_err *err)
{
    const struct bh_reflector_callbacks cb = {
        .on_event = on_pod, .on_synced = on_synced, .on_trouble = on_trouble, .arg = l};
    BH_CLEANUP(bh_freep) char *kubeconfig = NULL;
    int rc = bh_cli_find_cluster(WHO, a->kubeconfig, NULL, &kubeconfig, err);

    if (rc == 0)
        rc = bh_kubeconfig_load(kubeconfig, NULL, ret, err);
    const struct bh_api_config *cfg = *ret;
    const char *file = kubeconfig ? kubeconfig : getenv("KUBECONFIG");
    const char *end = file ? strrchr(file, '/') : NULL;

    l->dir = bh_strndup(file ? file : "", end ? (size_t)(end - file) : 0);

    if (rc == 0)
        rc = bh_api_client_new(&l->session.loop, cfg,
                               &(struct bh_api_options){.user_agent = "berth-load",
                                                        .max_connections = CONNECTIONS,
                                                        .lean = true},
                               &l->client, err);
    rc = rc < 0 ? rc : reach_server(l, cfg, err);
    if (rc < 0)
        return rc;
    l->tracked = bh_calloc(BH_MAX(l->set.n_pods, (size_t)1), sizeof(*l->tracked));
    for (size_t i = 0; i < l->set.n_pods; i++) {
        char key[KEY_MAX];
        size_t n = bh_key_pair(key, sizeof(key), l->set.pods[i].namespace_, l->set.pods[i].name);
        if (n)
            (void)bh_map_put(&l->by_name, key, n, &l->tracked[i]);
    }
    if (l->set.n_pods)
        l->pods_watch = bh_reflector_new(&l->session.loop, l->client, &bh_kinds[BH_KIND_POD], &cb);
    return 0;
}

static void cleanup(struct load *l)
{
    bh_reflector_free(l->pods_watch);
    bh_api_client_free(l->client);
    bh_session_end(&l->session);
    for (size_t i = 0; l->tracked && i < l->set.n_pods; i++)
        free(l->tracked[i].message);
    free(l->tracked);
    bh_map_fini(&l->by_name);
    bh_load_set_fini(&l->set);
    free(l->dir);
    free(l);
}

static int run(struct load *l, const struct arguments *a, struct bh_err *err)
{
    struct bh_api_config *cfg = NULL;
    struct report r = {0};
    int rc = open_cluster(l, a, &cfg, err);

    if (rc == 0)
        rc = create_nodes(l, err);
    if (rc == 0 && l->set.n_pods)
        rc = wait_for_watch(l, err);
    if (rc == 0 && l->set.n_pods) {
        l->creating_pods = true;
        read_cost(l, l->before);
        l->next = l->done = l->failed = 0;
        l->pods_start_ns = l->last_change_ns = bh_mono_ns();
        fill(l);
        for (;;) {
            size_t decided = l->bound + l->unschedulable;
            double s = (double)(bh_mono_ns() - l->pods_start_ns) / 1e9;
            bh_progress_draw(&l->session.progress, decided, l->set.n_pods,
                             "created %zu/%zu  bound %zu  unschedulable %zu  %.0f pods/s", l->done,
                             l->set.n_pods, l->bound, l->unschedulable,
                             s > 0 ? (double)l->bound / s : 0);
            if (l->session.stopping || bh_mono_ns() > l->last_change_ns + (uint64_t)l->timeout_ns)
                break;
            /* every pod decided, and those without a node had a second to find one after all */
            if (l->done == l->set.n_pods && decided + l->failed >= l->set.n_pods &&
                (!l->unschedulable || bh_mono_ns() - l->last_change_ns > UINT64_C(1000000000)))
                break;
            uv_run(&l->session.loop, UV_RUN_ONCE);
        }
        bh_progress_end(&l->session.progress);
        r = make_report(l);
        settle_cost(l);
        print_report(l, &r, bh_streq(a->output, "json"));
        if (r.undecided || r.failed)
            rc = bh_err_set(err, -EIO, "%zu pods were not decided, %zu not created", r.undecided,
                            r.failed);
    }
    bh_api_config_free(cfg);
    return rc;
}

int bh_cmd_load(int argc, char **argv)
{
    struct arguments a = {.output = "table",
                          .ns = "default",
                          .prefix = "load",
                          .node_count = 100,
                          .pod_count = 1000,
                          .parallel = 64,
                          .timeout_ns = INT64_C(30000000000)};
    const struct bh_opt table[] = {
        {"kubeconfig", 0, BH_OPT_STR, &a.kubeconfig, "FILE",
         "how to reach the API server " BH_CLUSTER_DEFAULT},
        {"nodes", 0, BH_OPT_STR, &a.nodes, "FILE", "openb: CSV of nodes"},
        {"pods", 0, BH_OPT_STR, &a.pods, "FILE", "openb: CSV of pods"},
        {"node-count", 0, BH_OPT_INT, &a.node_count, "N", "synthetic: nodes"},
        {"pod-count", 0, BH_OPT_INT, &a.pod_count, "N", "synthetic: pods"},
        {"namespace", 'n', BH_OPT_STR, &a.ns, "NS", "synthetic: namespace of the pods"},
        {"prefix", 0, BH_OPT_STR, &a.prefix, "TEXT", "synthetic: names start with this"},
        {"parallel", 0, BH_OPT_INT, &a.parallel, "N", "creations on the wire at a time"},
        {"timeout", 0, BH_OPT_DURATION_NS, &a.timeout_ns, "DURATION",
         "give up when nothing changed for this long"},
        {"output", 'o', BH_OPT_CHOICE, &a.output, "table|json", "form of the summary"},
        {0},
    };
    struct load *l;
    char near[64];
    struct bh_opt_list rest BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &rest, &err);

    if (rc == 0 && (a.parallel < 1 || a.node_count < 0 || a.pod_count < 0))
        rc = bh_err_set(&err, -EINVAL, "counts must not be negative, --parallel at least 1");
    const char *source = rc == 0 && rest.n == 1 ? rest.v[0] : NULL;
    bool openb = source && bh_streq(source, "openb");
    if (rc == 0 && !source)
        rc = bh_err_set(&err, -EINVAL, "say what to load: openb or synthetic");
    else if (rc == 0 && !openb && !bh_streq(source, "synthetic")) {
        bh_near_word(near, "openb synthetic", source);
        rc = bh_err_set(&err, -EINVAL, "unknown source \"%s\"%s: openb or synthetic", source, near);
    } else if (rc == 0 && openb && !a.nodes && !a.pods)
        rc = bh_err_set(&err, -EINVAL, "openb needs --nodes FILE, --pods FILE or both");
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    l = bh_calloc(1, sizeof(*l));
    l->parallel = a.parallel;
    l->timeout_ns = a.timeout_ns;
    bh_session_begin(&l->session, 100, NULL, NULL); /* deadlines are looked at ten times a second */
    if (openb)
        rc = bh_load_openb(&l->set, a.nodes, a.pods, &err);
    else
        bh_load_synth(&l->set, a.node_count, a.pod_count, a.ns, a.prefix);
    if (rc == 0)
        rc = run(l, &a, &err);
    cleanup(l);
    return rc < 0 ? bh_cli_fail(WHO, &err) : BH_EXIT_OK;
}
