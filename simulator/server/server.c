/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/server.c - the built-in API server as a component: start, requests, stop
 *
 * Runs in: the caller's loop. One request at a time owns the arena; a request that was deferred
 * (wait.c) starts over.
 */
#include "simulator/server/server.h"

#include "simulator/server/audit.h"
#include "simulator/server/bootstrap.h"
#include "simulator/server/data.h"
#include "simulator/server/docs.h"
#include "simulator/server/faults.h"
#include "simulator/server/features.h"
#include "simulator/server/history.h"
#include "simulator/server/req.h"
#include "simulator/server/watch.h"
#include <errno.h>
#include <unistd.h>

#define PAGES_LIVE_NS     ((uint64_t)300 * 1000000000)
#define CONNECTIONS_MAX   20000
#define ARENA_KEEP_BYTES  ((size_t)16 << 20)
#define FILE_BODY_BYTES   ((size_t)256 << 20)
#define IMPORT_BODY_BYTES ((size_t)64 << 20)
#define EPOCH_NS          ((int64_t)1767225600 * 1000000000) /* 2026-01-01T00:00:00Z */

/* ---- metrics --------------------------------------------------------------------------------- */

static void on_scrape(void *arg)
{
    struct bh_sim *s = arg;
    bh_cell_set(s->metrics.revision, (double)s->rv);
    bh_cell_set(s->metrics.listener_queue, (double)s->pending.n);
    bh_cell_set(s->metrics.turn_max, s->turn_max);
    s->turn_max = 0;
    for (size_t i = 0; i < bh_sim_type_count(s); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(s, i);
        if (t && bh_sim_type_stores(t) && bh_sim_count(s, t))
            bh_cell_set(bh_metric_cell(s->metrics.objects, t->group, t->plural),
                        (double)bh_sim_count(s, t));
    }
}

static void metrics_init(struct bh_sim *s)
{
    static const double buckets[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                                     0.01,   0.025,   0.05,   0.1,   0.5,    1};
#define CELL(member) offsetof(struct bh_sim_metrics, member)
    static const struct {
        size_t at;
        enum bh_metric_kind kind;
        const char *name, *help;
    } cells[] = {
        {CELL(watch_events), BH_COUNTER, "berth_simulator_watch_events_total",
         "Events sent to watchers."},
        {CELL(watch_dropped), BH_COUNTER, "berth_simulator_watches_cut_total",
         "Watches cut because their client was too slow."},
        {CELL(watches), BH_GAUGE, "berth_simulator_watches", "Open watches."},
        {CELL(revision), BH_GAUGE, "berth_simulator_revision",
         "resourceVersion of the last commit."},
        {CELL(commits), BH_COUNTER, "berth_simulator_commits_total",
         "Changes committed to the store."},
        {CELL(listener_queue), BH_GAUGE, "berth_simulator_listener_queue",
         "Commits the controllers have not seen yet."},
        {CELL(turn), BH_HISTOGRAM, "berth_simulator_loop_turn_seconds",
         "Time a turn of the loop takes: nobody else is served meanwhile."},
        {CELL(turn_max), BH_GAUGE, "berth_simulator_loop_turn_max_seconds",
         "The longest turn of the loop since the last time this was asked."},
    };
    struct bh_sim_metrics *m = &s->metrics;
    m->m = bh_metrics_new();
    bh_metrics_add_process(m->m, "berth-simulator");
    m->requests =
        bh_metric_new(m->m, BH_COUNTER, "berth_simulator_requests_total",
                      "API requests answered, by verb and HTTP code.", "verb,code", NULL, 0);
    m->latency = bh_metric_new(m->m, BH_HISTOGRAM, "berth_simulator_request_duration_seconds",
                               "Time from the complete request to its answer.", "verb", buckets,
                               BH_ARRAY_LEN(buckets));
    m->objects = bh_metric_new(m->m, BH_GAUGE, "berth_simulator_objects",
                               "Objects stored, by group and resource.", "group,resource", NULL, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(cells); i++)
        *(struct bh_cell **)((char *)m + cells[i].at) = bh_metric_cell(
            bh_metric_new(m->m, cells[i].kind, cells[i].name, cells[i].help, "",
                          cells[i].kind == BH_HISTOGRAM ? buckets : NULL,
                          cells[i].kind == BH_HISTOGRAM ? BH_ARRAY_LEN(buckets) : 0));
    bh_metrics_on_scrape(m->m, on_scrape, s);
}

/* ---- requests -------------------------------------------------------------------------------- */

void bh_sim_handle(struct bh_sim *s, struct bh_http_req *http, bool waited, uint64_t start_ns)
{
    struct bh_sim_req r;
    memset(&r, 0, offsetof(struct bh_sim_req, e));
    bh_sim_error_init(&r.e);
    r.sim = s;
    r.http = http;
    r.a = &s->arena;
    r.method = bh_http_method(http);
    r.path = bh_http_path(http);
    r.ns = r.name = r.sub = "";
    r.waited = waited;
    r.start_ns = start_ns;
    s->request = &r;
    bh_sim_route(&r);
    if (!r.done)
        bh_sim_reply_error(&r);
    s->request = NULL;
    bh_assert(r.done);
    bh_buf_fini(&r.warnings);
    if (s->arena.used_bytes > ARENA_KEEP_BYTES) {
        bh_arena_fini(&s->arena);
        bh_arena_init(&s->arena, 0);
    } else {
        bh_arena_reset(&s->arena);
    }
}

static void on_request(struct bh_http_req *http, void *arg)
{
    bh_sim_handle(arg, http, false, bh_mono_ns());
}

static void on_bookmark(void *arg)
{
    struct bh_sim *s = arg;
    bh_sim_watch_bookmarks(s);
    bh_sim_pages_expire(s, PAGES_LIVE_NS);
    if (!s->opt.manual_clock)
        bh_sim_events_tick(s);
    s->bookmark_timer = bh_sim_after_real(s, s->opt.bookmark_interval_ns, on_bookmark, s);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void set_defaults(struct bh_sim_options *o)
{
    if (!o->address)
        o->address = "127.0.0.1";
    if (o->history_events <= 0)
        o->history_events = 20000;
    if (o->bookmark_interval_ns <= 0)
        o->bookmark_interval_ns = (int64_t)60 * 1000000000;
    if (!o->watch_buffer_bytes)
        o->watch_buffer_bytes = (size_t)64 << 20;
}

/* Ten thousand revisions a second from an epoch: a restarted server, whose store is empty, starts
 * above everything clients remember, so they get 410 and list again. */
static uint64_t revision_of_now(void)
{
    int64_t ms = (bh_wall_ns() - EPOCH_NS) / 1000000;
    return ms > 0 ? (uint64_t)ms * 10 : 1;
}

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || bh_streq(address, "::1") ||
           bh_streq(address, "localhost");
}

static void start_controllers(struct bh_sim *s)
{
    const struct bh_sim_controller_options o = {.kubelet_delay_ns = s->opt.kubelet_delay_ns,
                                                .node_grace_ns = s->opt.node_grace_ns,
                                                .kubelet = !s->opt.no_kubelet};
    if (!s->opt.no_controllers)
        s->controllers = bh_sim_controllers_start(s, &o);
}

int bh_sim_new_bare(uv_loop_t *loop, const struct bh_sim_options *o, struct bh_sim **ret_s,
                    struct bh_err *err)
{
    struct bh_sim *s = bh_calloc(1, sizeof(*s));
    uint64_t n_restored;
    s->loop = loop;
    s->audit_fd = s->history_fd = -1;
    s->opt = *o;
    set_defaults(&s->opt);
    s->clock_ns = o->clock_ns ? o->clock_ns : EPOCH_NS;
    s->rv = o->first_revision ? o->first_revision : o->manual_clock ? 1 : revision_of_now();
    bh_rand_seed(&s->rand, o->seed ? o->seed : bh_rand_entropy());
    bh_rand_seed(&s->uid_rand, o->seed ? ~o->seed : bh_rand_entropy());
    for (size_t i = 0; i < BH_ARRAY_LEN(s->token_key); i++)
        s->token_key[i] = bh_rand_entropy();
    bh_arena_init(&s->arena, 0);
    bh_arena_init(&s->edit_arena, 0);
    metrics_init(s);
    bh_sim_clock_init(s);
    bh_sim_store_init(s);
    int rc = bh_sim_features_init(s, err);
    if (rc == 0)
        rc = bh_sim_audit_open(o->audit_log, &s->audit_fd, err);
    if (rc == 0)
        rc = bh_sim_faults_parse(o->faults, &s->faults, err);
    if (rc == 0)
        rc = bh_sim_history_open(s, o->history_file, &n_restored, err);
    if (rc == 0 && o->history_file && o->data_file)
        rc = bh_err_set(err, -EINVAL,
                        "a history file and a data file: both are what is started "
                        "from; want one of them");
    if (rc == 0 && o->data_file)
        rc = bh_sim_data_open(s, o->data_file, o->data_full, &n_restored, err);
    if (rc == 0)
        rc = bh_sim_bootstrap(s, !n_restored, err);
    if (rc < 0) {
        bh_sim_free(s);
        return rc;
    }
    start_controllers(s);
    s->bookmark_timer = bh_sim_after_real(s, s->opt.bookmark_interval_ns, on_bookmark, s);
    *ret_s = s;
    return 0;
}

/* Whole clusters and record files come in one body. */
static size_t body_limit(const char *path)
{
    if (bh_streq(path, "/berth/v1/replay"))
        return FILE_BODY_BYTES;
    return bh_streq(path, "/api/v1/import") ? IMPORT_BODY_BYTES : 0;
}

int bh_sim_new(uv_loop_t *loop, const struct bh_sim_options *o, struct bh_sim **ret_s,
               struct bh_err *err)
{
    struct bh_sim *s = NULL;
    const char *address = o->address ? o->address : "127.0.0.1";
    if (!is_loopback(address) && (!o->tokens || !o->tls_cert_pem))
        return bh_err_set(err, -EINVAL,
                          "address %s is not the loopback: it needs --token-file and TLS", address);
    int rc = bh_sim_new_bare(loop, o, &s, err);
    if (rc < 0)
        return rc;
    bh_console_start(s);
    s->any_host = !is_loopback(address);
    const struct bh_http_options h = {.address = address,
                                      .port = o->port,
                                      .tls_cert_pem = o->tls_cert_pem,
                                      .tls_key_pem = o->tls_key_pem,
                                      .client_ca_pem = o->client_ca_pem,
                                      .max_connections = CONNECTIONS_MAX,
                                      .body_limit = body_limit};
    rc = bh_sim_http_server_new(loop, &h, on_request, s, &s->http, err);
    if (rc < 0) {
        bh_sim_free(s);
        return rc;
    }
    *ret_s = s;
    return 0;
}

int bh_sim_set_faults(struct bh_sim *s, const char *spec, struct bh_err *err)
{
    struct bh_sim_faults *f = NULL;
    int rc = bh_sim_faults_parse(spec, &f, err);
    if (rc < 0)
        return rc;
    bh_sim_faults_free(s->faults);
    s->faults = f;
    return 0;
}

const char *bh_sim_ca_pem(const struct bh_sim *s)
{
    return s->opt.ca_pem ? s->opt.ca_pem : "";
}

uint16_t bh_sim_port(const struct bh_sim *s)
{
    return s->http ? bh_http_server_port(s->http) : 0;
}

void bh_sim_free(struct bh_sim *s)
{
    if (!s)
        return;
    s->stopping = true;
    if (s->http)
        bh_http_server_free(s->http);
    bh_sim_faults_drop_holds(s);
    bh_console_stop(s);
    bh_sim_controllers_stop(s->controllers);
    bh_sim_data_close(s);
    bh_sim_listen_fini(s);
    bh_sim_clock_fini(s);
    bh_sim_objs_fini(&s->expired);
    bh_sim_store_fini(s);
    bh_sim_docs_fini(s);
    bh_sim_faults_free(s->faults);
    if (s->audit_fd >= 0)
        close(s->audit_fd);
    if (s->history_fd >= 0)
        close(s->history_fd);
    bh_buf_fini(&s->line);
    bh_metrics_free(s->metrics.m);
    bh_arena_fini(&s->arena);
    bh_arena_fini(&s->edit_arena);
    bh_buf_fini(&s->wire);
    bh_buf_fini(&s->scratch);
    bh_buf_fini(&s->reply);
    bh_buf_fini(&s->frame);
    bh_buf_fini(&s->frame2);
    free(s->features);
    free(s);
}

bool bh_sim_has_kubelet(const struct bh_sim *s)
{
    return s->controllers && !s->opt.no_kubelet;
}
