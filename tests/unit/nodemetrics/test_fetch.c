/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/nodemetrics/test_fetch.c - what each source is asked, and what its failures say
 */
#include "common/base/loop.h"
#include "nodemetrics/nodemetrics.h"
#include "tests/unit/common/api/raw_server.h"

#include <errno.h>

struct answer {
    const char *begins; /* the request's target */
    int code;
    const char *body;
};
struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_api_client *client;
    const struct answer *answers;
    char asked[4096];
    struct bh_nm m;
    struct bh_err err;
};
static const struct bh_nm_options options = {.cpu = "cpu:ratio",
                                             .memory = "mem{a=\"b c\"}",
                                             .node_label = "node",
                                             .window = "15m",
                                             .watcher_path = "/watcher"};

static void on_request(struct raw_server *s, const struct raw_request *r)
{
    struct env *e = s->arg;
    size_t n = strlen(e->asked);

    snprintf(e->asked + n, sizeof e->asked - n, "%s %s\n", r->method, r->target);
    for (const struct answer *a = e->answers; a->begins; a++)
        if (strncmp(r->target, a->begins, strlen(a->begins)) == 0) {
            raw_json(r->conn, a->code, a->body);
            return;
        }
    raw_json(r->conn, 404, "not here");
}

static int fetch(struct env *e, enum bh_nm_source source, const struct answer *answers)
{
    const struct bh_api_options o = {0};
    struct bh_api_config cfg = {0};
    struct bh_nm_options asked = options;
    char url[64];

    *e = (struct env){.answers = answers};
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, on_request, e);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", e->server.port);
    cfg.server = url;
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &cfg, &o, &e->client, &e->err), 0);
    asked.source = source;
    return bh_nm_fetch(&e->loop, e->client, &asked, &e->m, &e->err);
}

static void end(struct env *e)
{
    bh_nm_fini(&e->m);
    bh_api_client_free(e->client);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
}

static void expect_text(const struct env *e, const char *want)
{
    struct bh_buf b = {0};

    bh_nm_text(&e->m, &b);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), want);
    bh_buf_fini(&b);
}

#define VECTOR(value)                                                                              \
    "{\"status\": \"success\", \"data\": {\"resultType\": \"vector\", \"result\": [{\"metric\": "  \
    "{\"node\": \"a\"}, \"value\": [2000, \"" value "\"]}]}}"

static void test_prometheus_has_four_questions(void)
{
    static const struct answer answers[] = {
        {"/api/v1/query?query=avg_over_time%28cpu", 200, VECTOR("0.5")},
        {"/api/v1/query?query=stddev_over_time%28cpu", 200, VECTOR("0.25")},
        {"/api/v1/query?query=avg_over_time%28mem", 200, VECTOR("0.75")},
        {"/api/v1/query?query=stddev_over_time%28mem", 200, VECTOR("0.125")},
        {0}};
    struct env e;

    CU_ASSERT_EQUAL(fetch(&e, BH_NM_PROMETHEUS, answers), 0);
    CU_ASSERT_STRING_EQUAL(
        e.asked, "GET /api/v1/query?query=avg_over_time%28cpu%3Aratio%5B15m%5D%29\n"
                 "GET /api/v1/query?query=stddev_over_time%28cpu%3Aratio%5B15m%5D%29\n"
                 "GET /api/v1/query?query=avg_over_time%28mem%7Ba%3D%22b%20c%22%7D%5B15m%5D%29\n"
                 "GET /api/v1/query?query=stddev_over_time%28mem%7Ba%3D%22b%20c%22%7D%5B15m%5D%29"
                 "\n");
    expect_text(&e, "berth-node-metrics 1\nwindow 1100 2000\na CPU/AVG=50 CPU/STD=25 "
                    "Memory/AVG=75 Memory/STD=12.5\n");
    end(&e);
}

/* Half of the answers are none: the caller leaves the file as it is. */
static void test_prometheus_fails_in_the_middle(void)
{
    static const struct answer answers[] = {
        {"/api/v1/query?query=avg_over_time%28cpu", 200, VECTOR("0.5")},
        {"/api/v1/query?query=stddev", 503, "busy"},
        {0}};
    struct env e;

    CU_ASSERT_EQUAL(fetch(&e, BH_NM_PROMETHEUS, answers), -EIO);
    CU_ASSERT_EQUAL(e.server.requests, 2);
    CU_ASSERT_STRING_EQUAL(e.err.msg, "GET /api/v1/query?query=stddev_over_time%28cpu%3Aratio"
                                      "%5B15m%5D%29: HTTP 503: busy");
    end(&e);
}

static void test_watcher(void)
{
    static const struct answer answers[] = {
        {"/watcher", 200,
         "{\"window\": {\"start\": 1, \"end\": 2}, \"data\": {\"NodeMetricsMap\": {\"a\": "
         "{\"metrics\": [{\"type\": \"CPU\", \"operator\": \"AVG\", \"value\": 5}]}}}}"},
        {0}};
    struct env e;

    CU_ASSERT_EQUAL(fetch(&e, BH_NM_LOAD_WATCHER, answers), 0);
    CU_ASSERT_STRING_EQUAL(e.asked, "GET /watcher\n");
    expect_text(&e, "berth-node-metrics 1\nwindow 1 2\na CPU/AVG=5\n");
    end(&e);
}

static void test_watcher_that_is_none(void)
{
    static const struct answer no_json[] = {{"/watcher", 200, "<html>"}, {0}}, nothing[] = {{0}};
    struct env e;

    CU_ASSERT_EQUAL(fetch(&e, BH_NM_LOAD_WATCHER, no_json), -EINVAL);
    CU_ASSERT_EQUAL(strncmp(e.err.msg, "GET /watcher: line 1", 20), 0);
    end(&e);
    CU_ASSERT_EQUAL(fetch(&e, BH_NM_LOAD_WATCHER, nothing), -EIO);
    CU_ASSERT_STRING_EQUAL(e.err.msg, "GET /watcher: HTTP 404: not here");
    end(&e);
}

static void test_kubernetes(void)
{
    static const struct answer answers[] =
        {{"/apis/metrics.k8s.io/v1beta1/nodes", 200,
          "{\"items\": [{\"metadata\": {\"name\": \"a\"}, \"timestamp\": "
          "\"1970-01-01T00:00:09Z\", \"usage\": {\"cpu\": \"1\", \"memory\": "
          "\"1Gi\"}}]}"},
         {"/api/v1/nodes", 200,
          "{\"items\": [{\"metadata\": {\"name\": \"a\"}, \"status\": {\"capacity\": "
          "{\"cpu\": \"4\", \"memory\": \"2Gi\"}}}]}"},
         {0}},
                               refused[] = {{"/apis/metrics.k8s.io", 200, "{\"items\": []}"},
                                            {"/api/v1/nodes", 403, "forbidden"},
                                            {0}};
    struct env e;

    CU_ASSERT_EQUAL(fetch(&e, BH_NM_KUBERNETES, answers), 0);
    CU_ASSERT_STRING_EQUAL(e.asked, "GET /apis/metrics.k8s.io/v1beta1/nodes\n"
                                    "GET /api/v1/nodes?resourceVersion=0\n");
    expect_text(&e, "berth-node-metrics 1\nwindow 9 9\na CPU/Latest=25 Memory/Latest=50\n");
    end(&e);
    CU_ASSERT_EQUAL(fetch(&e, BH_NM_KUBERNETES, refused), -EIO);
    CU_ASSERT_STRING_EQUAL(e.err.msg, "GET /api/v1/nodes?resourceVersion=0: HTTP 403: forbidden");
    end(&e);
    CU_ASSERT_EQUAL(fetch(&e, BH_NM_KUBERNETES, refused + 1), -EIO);
    CU_ASSERT_EQUAL(e.server.requests, 1);
    end(&e);
}

BH_TESTS("nodemetrics/fetch", {"Prometheus has four questions", test_prometheus_has_four_questions},
         {"Prometheus fails in the middle", test_prometheus_fails_in_the_middle},
         {"a load watcher", test_watcher},
         {"a load watcher that is none", test_watcher_that_is_none},
         {"metrics-server and the nodes' capacity", test_kubernetes})
