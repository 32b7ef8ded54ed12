/* SPDX-License-Identifier: Apache-2.0
 *
 * nodemetrics/fetch.c - asks a source for the nodes' metrics
 */
#include <errno.h>

#include "common/base/opt.h"
#include "nodemetrics/nodemetrics.h"

#define REPLY_MAX  ((size_t)64 << 20)
#define ARENA_MAX  ((size_t)512 << 20)
#define TIMEOUT_NS (UINT64_C(20) * 1000000000)

/* A GET whose reply is JSON. */
static int get(uv_loop_t *loop, struct bh_api_client *c, const char *path, struct bh_arena *a,
               struct bh_json **ret, struct bh_err *err)
{
    const struct bh_api_call call = {
        .method = "GET", .path = path, .timeout_ns = TIMEOUT_NS, .max_reply_bytes = REPLY_MAX};
    struct bh_buf body BH_CLEANUP(bh_buf_fini) = {0};
    int code = 0, rc = bh_api_do(loop, c, &call, &code, &body, err);

    if (rc == 0 && (code < 200 || code > 299))
        rc = bh_err_set(err, -EIO, "HTTP %d: %.200s", code, bh_buf_str(&body));
    if (rc == 0)
        rc = bh_json_parse(a, body.p, body.n, BH_JSON_NUL, ret, err);
    return rc < 0 ? bh_err_prefix(err, rc, "GET %s", path) : 0;
}

static int ask_watcher(uv_loop_t *loop, struct bh_api_client *c, const struct bh_nm_options *o,
                       struct bh_arena *a, struct bh_nm *m, struct bh_err *err)
{
    struct bh_json *v = NULL;
    int rc = get(loop, c, o->watcher_path, a, &v, err);

    return rc < 0 ? rc : bh_nm_add_watcher(m, v, err);
}

static int ask_prometheus(uv_loop_t *loop, struct bh_api_client *c, const struct bh_nm_options *o,
                          struct bh_arena *a, struct bh_nm *m, struct bh_err *err)
{
    const struct {
        const char *fn, *series, *word;
    } queries[] = {{"avg_over_time", o->cpu, "CPU/AVG"},
                   {"stddev_over_time", o->cpu, "CPU/STD"},
                   {"avg_over_time", o->memory, "Memory/AVG"},
                   {"stddev_over_time", o->memory, "Memory/STD"}};
    int64_t window_ns;
    int rc = bh_parse_duration_ns(o->window, &window_ns);

    for (size_t i = 0; i < BH_ARRAY_LEN(queries) && rc == 0; i++) {
        struct bh_buf path BH_CLEANUP(bh_buf_fini) = {0};
        struct bh_json *v = NULL;
        BH_CLEANUP(bh_freep)
        char *query = bh_asprintf("%s(%s[%s])", queries[i].fn, queries[i].series, o->window);
        bh_url_addf(&path, "/api/v1/query?query=%s", query);
        rc = get(loop, c, bh_buf_str(&path), a, &v, err);
        if (rc == 0)
            rc = bh_nm_add_vector(m, v, o->node_label, queries[i].word, err);
    }
    m->start_s = m->end_s ? m->end_s - window_ns / 1000000000 : 0;
    return rc;
}

static int ask_kubernetes(uv_loop_t *loop, struct bh_api_client *c, struct bh_arena *a,
                          struct bh_nm *m, struct bh_err *err)
{
    struct bh_json *metrics = NULL, *nodes = NULL;
    int rc = get(loop, c, "/apis/metrics.k8s.io/v1beta1/nodes", a, &metrics, err);

    if (rc == 0)
        rc = get(loop, c, "/api/v1/nodes?resourceVersion=0", a, &nodes, err);
    return rc < 0 ? rc : bh_nm_add_usage(m, metrics, nodes, err);
}

int bh_nm_fetch(uv_loop_t *loop, struct bh_api_client *c, const struct bh_nm_options *o,
                struct bh_nm *m, struct bh_err *err)
{
    struct bh_arena a;
    int rc;

    bh_arena_init(&a, ARENA_MAX);
    rc = o->source == BH_NM_LOAD_WATCHER ? ask_watcher(loop, c, o, &a, m, err)
         : o->source == BH_NM_PROMETHEUS ? ask_prometheus(loop, c, o, &a, m, err)
                                         : ask_kubernetes(loop, c, &a, m, err);
    bh_arena_fini(&a);
    return rc;
}
