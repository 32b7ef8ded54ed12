/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/http/test_probes.c - /metrics, /healthz, /livez, /readyz of a daemon
 */
#include "common/http/probes.h"

#include <sys/stat.h>
#include <sys/un.h>

#include "common/base/log.h"

#include "tests/unit/common/http/fixture.h"

static struct bh_probes *probes;
static struct bh_metrics *metrics;
static bool alive, ready;

static bool check(void *arg)
{
    return *(bool *)arg;
}
static const struct bh_probe_check checks[] = {
    {"loop", check, &alive, true, true, NULL}, {"synced", check, &ready, false, true, NULL}, {0}};

static void start(void *arg)
{
    struct bh_err err = {{0}};
    static const double bounds[] = {0.001, 0.01, 0.1, 1};
    metrics = bh_metrics_new();
    bh_metrics_add_process(metrics, "test");
    bh_cell_add(bh_metric_cell(bh_metric_new(metrics, BH_COUNTER, "berth_things_total",
                                             "Things that happened.", "result", NULL, 0),
                               "ok \"quoted\" \\ \n line"),
                1);
    bh_cell_set(
        bh_metric_cell(bh_metric_new(metrics, BH_GAUGE, "berth_depth", "Depth.", "", NULL, 0)), -1);
    struct bh_metric *h = bh_metric_new(metrics, BH_HISTOGRAM, "berth_wait_seconds",
                                        "Time spent waiting.", "queue,kind", bounds, 4);
    bh_cell_observe(bh_metric_cell(h, "active", "a"), 0.02);
    bh_cell_observe(bh_metric_cell(h, "backoff", ""), 5);
    CU_ASSERT_EQUAL(
        bh_probes_start(&fx.loop, "127.0.0.1:0", NULL, NULL, metrics, arg, &probes, &err), 0);
    fx.port = bh_probes_port(probes);
}
static void stop(void *arg)
{
    (void)arg;
    bh_probes_free(probes);
    bh_metrics_free(metrics);
}
static void begin(const struct bh_probe_check *c)
{
    alive = ready = true;
    fixture_begin();
    on_loop(start, (void *)(uintptr_t)c);
}
static void end(void)
{
    on_loop(stop, NULL);
    fixture_end();
}

/* The reply to request_line is `status`, has `header` and exactly this body. */
static void expect(const char *request_line, const char *status, const char *header,
                   const char *body)
{
    char *text = ask(request_line, NULL, NULL);
    const char *end_of_headers = strstr(text, "\r\n\r\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(end_of_headers);
    CU_ASSERT_EQUAL(strncmp(text + 9, status, strlen(status)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, header));
    CU_ASSERT_STRING_EQUAL(end_of_headers + 4, body);
    free(text);
}

static void test_healthy(void)
{
    begin(checks);
    expect("GET /healthz", "200", "Content-Type: text/plain; charset=utf-8", "ok");
    expect("GET /livez", "200", "X-Content-Type-Options: nosniff", "ok");
    expect("GET /readyz/", "200", "text/plain", "ok");
    expect("GET /healthz?verbose", "200", "text/plain", "[+]loop ok\nhealthz check passed\n");
    expect("GET /readyz?verbose=1", "200", "text/plain",
           "[+]loop ok\n[+]synced ok\nreadyz check passed\n");
    expect("GET /readyz/synced", "200", "text/plain", "ok");
    expect("HEAD /healthz", "200", "Content-Length: 2", "");
    end();
}

static void test_unhealthy(void)
{
    begin(checks);
    ready = false;
    expect("GET /healthz", "200", "text/plain", "ok");
    expect("GET /readyz", "500", "text/plain",
           "[+]loop ok\n[-]synced failed: reason withheld\nreadyz check failed\n");
    expect("GET /readyz/synced", "500", "text/plain", "internal server error: reason withheld\n");
    alive = false;
    expect("GET /livez", "500", "text/plain",
           "[-]loop failed: reason withheld\nlivez check failed\n");
    end();
}

static void test_without_checks_there_is_ping(void)
{
    begin(NULL);
    expect("GET /livez?verbose", "200", "text/plain", "[+]ping ok\nlivez check passed\n");
    expect("GET /livez/ping", "200", "text/plain", "ok");
    end();
}

static void test_what_does_not_exist(void)
{
    begin(checks);
    expect("GET /", "404", "text/plain", "404 page not found\n");
    expect("GET /healthzz", "404", "text/plain", "404 page not found\n");
    expect("GET /livez/synced", "404", "text/plain", "404 page not found\n"); /* readiness only */
    expect("GET /readyz/", "200", "text/plain", "ok");
    expect("DELETE /healthz", "405", "Allow: GET, HEAD", "405 method not allowed\n");
    end();
}

static void test_promtool_finds_nothing_in_metrics(void)
{
    char path[4200], command[4300];
    begin(checks);
    char *text = ask("GET /metrics", NULL, NULL);
    const char *body = strstr(text, "\r\n\r\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(body);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "\nberth_depth -1\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(body, "berth_wait_seconds_bucket{queue=\"active\",kind=\"a\","
                                        "le=\"0.1\"} 1\n"));
    if (system("command -v promtool >/dev/null") != 0) {
        bh_test_skip("promtool is not installed");
    } else {
        snprintf(path, sizeof(path), "%s/metrics", bh_test_tmpdir());
        bh_write_file(path, body + 4, strlen(body + 4), 0600);
        snprintf(command, sizeof(command), "promtool check metrics < %s", path);
        CU_ASSERT_EQUAL(system(command), 0);
    }
    free(text);
    end();
}

static void test_addresses(void)
{
    static const char *const bad[] = {
        "10259",  "localhost:1", "127.0.0.1",       "127.0.0.1:",   "1.2.3.4:-1",
        "::1:80", "[::1]",       "127.0.0.1:99999", "127.0.0.1:1x", "300.0.0.1:1"};
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct bh_probes *p = (struct bh_probes *)&loop;
    struct bh_err err;
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        CU_ASSERT_EQUAL(bh_probes_start(&loop, bad[i], NULL, NULL, NULL, NULL, &p, &err), -EINVAL);
        CU_ASSERT_PTR_EQUAL(p, (struct bh_probes *)&loop);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "address "));
    }
    static const char *const off[] = {"", "0", NULL};
    for (size_t i = 0; i < BH_ARRAY_LEN(off); i++) {
        CU_ASSERT_EQUAL(bh_probes_start(&loop, off[i], NULL, NULL, NULL, NULL, &p, &err), 0);
        CU_ASSERT_PTR_NULL(p);
        CU_ASSERT_EQUAL(bh_probes_port(p), 0);
        bh_probes_free(p);
    }
    CU_ASSERT_EQUAL(bh_probes_start(&loop, ":0", NULL, NULL, NULL, NULL, &p, &err), 0);
    CU_ASSERT(bh_probes_port(p) > 0);
    bh_probes_free(p);
    bh_loop_drain_close(&loop);
}

/* ---- the Unix socket ------------------------------------------------------------------------- */

static struct bh_probes *local;
static int local_rc;
static struct bh_err local_err;

static void start_local(void *arg)
{
    local_rc =
        bh_probes_start(&fx.loop, "0", bh_test_tmpdir(), arg, NULL, checks, &local, &local_err);
}

static void stop_local(void *arg)
{
    (void)arg;
    bh_probes_free(local);
}

static void ask_local(const char *path, const char *request, char out[static 2048])
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    size_t n = 0;
    ssize_t k;

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    CU_ASSERT_EQUAL(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    while (n < 2047 && (k = read(fd, out + n, 2047 - n)) > 0)
        n += (size_t)k;
    out[n] = '\0';
    close(fd);
}

static void test_socket(void)
{
    char path[4200], text[2048];
    struct stat st;
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    snprintf(path, sizeof(path), "%s/x.http", bh_test_tmpdir());
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%.100s", path);
    CU_ASSERT_EQUAL(bind(stale, (struct sockaddr *)&sa, sizeof(sa)), 0);
    close(stale); /* as a killed process leaves it */
    alive = ready = true;
    fixture_begin();
    on_loop(start_local, (void *)(uintptr_t) "x");
    CU_ASSERT_EQUAL_FATAL(local_rc, 0);
    CU_ASSERT_EQUAL(bh_probes_port(local), 0);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 07777, 0660);
    ask_local(path, "GET /livez HTTP/1.0\r\n\r\n", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\r\n\r\nok"));
    CU_ASSERT_FALSE(bh_log_v_on(1, __FILE__));
    ask_local(path, "PUT /debug/flags/v HTTP/1.0\r\nContent-Length: 1\r\n\r\n7", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "successfully set klog.logging.verbosity to 7"));
    CU_ASSERT(bh_log_v_on(7, __FILE__) && !bh_log_v_on(8, __FILE__));
    ask_local(path, "PUT /debug/flags/v HTTP/1.0\r\nContent-Length: 1\r\n\r\nx", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " 400 "));
    ask_local(path, "GET /debug/flags/v HTTP/1.0\r\n\r\n", text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " 406 "));
    bh_log_set_verbosity(0);

    struct bh_probes *first = local;
    on_loop(start_local, (void *)(uintptr_t) "x"); /* it lives */
    CU_ASSERT_EQUAL(local_rc, -EADDRINUSE);
    CU_ASSERT_PTR_NOT_NULL(strstr(local_err.msg, "in use by a running process"));
    local = first;
    on_loop(stop_local, NULL);
    CU_ASSERT_EQUAL(stat(path, &st), -1);
    bh_write_file(path, "x", 1, 0600);
    on_loop(start_local, (void *)(uintptr_t) "x"); /* no socket: not ours to remove */
    CU_ASSERT_EQUAL(local_rc, -EEXIST);
    fixture_end();
}

BH_TESTS("common/http/probes", {"healthy", test_healthy}, {"unhealthy", test_unhealthy},
         {"the Unix socket", test_socket},
         {"without checks there is ping", test_without_checks_there_is_ping},
         {"what does not exist", test_what_does_not_exist},
         {"promtool finds nothing in /metrics", test_promtool_finds_nothing_in_metrics},
         {"addresses", test_addresses})
