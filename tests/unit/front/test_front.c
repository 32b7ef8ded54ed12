/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/front/test_front.c - the whole port in one loop: its client, an API server, the other
 * processes' sockets, the scheduler's control socket and the watcher's feed are played here
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/k8s/codec.h"
#include "front/front.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/front/certs.h"

enum others { WATCHER, SCHEDULER, BINDER, OTHERS };
static struct {
    uv_loop_t loop;
    char dir[64], path[128];
    struct bh_http_server *api, *others[OTHERS];
    int others_code[OTHERS];
    const char *metrics;
    struct bh_bus *control, *feed;
    struct bh_bus_poll *control_poll, *feed_poll;
    struct bh_arena arena;
    bool leading, refuses, mute, api_fails, stuck;
    unsigned asked, left, told;
    struct bh_kube_flags flags;
    struct bh_component_config file;
    struct bh_front front;
    struct cert ca, client;
    struct bh_api_client *caller;
    int code;
    struct bh_buf body;
    char type[128];
    bool done;
} fx;

/* ---- the others ------------------------------------------------------------------------------ */

static void on_left(void *arg)
{
    (void)arg;
    fx.left++;
}

static void on_api(struct bh_http_req *r, void *arg)
{
    const char *body = bh_buf_str(&(struct bh_buf){.p = (char *)(uintptr_t)bh_http_body(r).p});
    const char *status = "{\"authenticated\":false,\"allowed\":false}";
    char answer[256];

    (void)arg;
    fx.asked++;
    if (fx.stuck) {
        bh_http_on_abort(r, on_left, NULL);
        return;
    }
    if (strstr(body, "\"token\":\"root\""))
        status = "{\"authenticated\":true,\"user\":{\"username\":\"root\",\"groups\":["
                 "\"system:masters\"]}}";
    else if (strstr(body, "\"token\":\"alice\""))
        status = "{\"authenticated\":true,\"user\":{\"username\":\"al<i>ce\"}}";
    else if (strstr(body, "\"path\":\"/flagz\""))
        status = "{\"allowed\":true}";
    else if (strstr(body, "\"path\":\"/why\""))
        status = "{\"allowed\":false,\"reason\":\"so\"}";
    int n = snprintf(answer, sizeof(answer), "{%s,\"status\":%s}",
                     strstr(body, "TokenReview")
                         ? "\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\""
                         : "\"kind\":\"SubjectAccessReview\","
                           "\"apiVersion\":\"authorization.k8s.io/v1\"",
                     status);
    bh_http_reply(r, fx.api_fails ? 403 : 201, "application/json", answer, (size_t)n);
}

static void on_other(struct bh_http_req *r, void *arg)
{
    int code = *(int *)arg;
    const char *text = bh_streq(bh_http_path(r), "/metrics") ? fx.metrics : "ok";

    fx.told += bh_streq(bh_http_method(r), "PUT");
    bh_http_reply(r, code, "text/plain", text, strlen(text));
}

static bool on_control(void *arg)
{
    Berth__Envelope *in = NULL, out = BERTH__ENVELOPE__INIT;
    Berth__ControlReply reply = BERTH__CONTROL_REPLY__INIT;
    Berth__ControlStatus status = BERTH__CONTROL_STATUS__INIT;
    Berth__ControlConfig config = BERTH__CONTROL_CONFIG__INIT;
    static char json[] = "{\"kind\":\"KubeSchedulerConfiguration\"}", no[] = "refused";
    struct bh_peer peer;

    (void)arg;
    while (bh_bus_recv(fx.control, &fx.arena, &peer, &in) == BH_BUS_OK) {
        if (fx.mute)
            continue;
        reply.has_id = true;
        reply.id = in->control->id;
        status.has_leading = true;
        status.leading = fx.leading;
        config.in_force_json = json;
        if (fx.refuses)
            reply.error = no;
        else if (in->control->what == BERTH__CONTROL_WHAT__CONTROL_CONFIG)
            reply.config = &config;
        else
            reply.status = &status;
        out.control_reply = &reply;
        (void)bh_bus_send(fx.control, &peer, &out);
    }
    return false;
}

static void fill_pod(Berth__ObjectChange *c, struct bh_buf *bytes)
{
    static const char json[] = "{\"metadata\":{\"namespace\":\"d\",\"name\":\"p\",\"uid\":\"u\"},"
                               "\"spec\":{\"containers\":[{"
                               "\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"250m\"},"
                               "\"limits\":{\"cpu\":\"1\"}}}]}}";
    ProtobufCMessage *m = NULL;
    struct bh_arena a;
    struct bh_err err;

    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(
        bh_decode_object(&a, &k8s__pod__descriptor, json, sizeof(json) - 1, &m, &err), 0);
    bh_pb_pack(bytes, m);
    bh_arena_fini(&a);
    c->has_op = c->has_kind = c->has_object = true;
    c->op = BERTH__CHANGE_OP__CHANGE_ADDED;
    c->kind = BH_KIND_POD;
    c->name = (char *)(uintptr_t) "p";
    c->uid = (char *)(uintptr_t) "u";
    c->object = (ProtobufCBinaryData){bytes->n, (uint8_t *)bytes->p};
}

static bool on_feed(void *arg)
{
    Berth__Envelope *in = NULL;
    struct bh_peer peer;

    (void)arg;
    while (bh_bus_recv(fx.feed, &fx.arena, &peer, &in) == BH_BUS_OK) {
        Berth__Envelope out = BERTH__ENVELOPE__INIT;
        Berth__FeedBegin begin = BERTH__FEED_BEGIN__INIT;
        Berth__FeedBatch batch = BERTH__FEED_BATCH__INIT;
        Berth__ObjectChange change = BERTH__OBJECT_CHANGE__INIT, *changes = &change;
        struct bh_buf bytes = {0};
        if (!in->feed_hello)
            continue;
        fill_pod(&change, &bytes);
        begin.has_incarnation = true;
        begin.incarnation = 1;
        out.feed_begin = &begin;
        (void)bh_bus_send(fx.feed, &peer, &out);
        out.feed_begin = NULL;
        out.feed_batch = &batch;
        batch.has_seq = batch.has_synced = true;
        batch.seq = 1;
        batch.synced = true;
        batch.n_change = 1;
        batch.change = &changes;
        (void)bh_bus_send(fx.feed, &peer, &out);
        bh_buf_fini(&bytes);
    }
    return false;
}

static struct bh_bus *open_bus(const char *name, bool (*cb)(void *), struct bh_bus_poll **ret)
{
    char endpoint[128];
    struct bh_err err = {""};
    struct bh_bus *b = NULL;

    CU_ASSERT_EQUAL_FATAL(bh_bus_endpoint(fx.dir, name, endpoint, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &b, &err), 0);
    *ret = bh_bus_poll_new(&fx.loop, b, cb, NULL);
    return b;
}

static void open_others(void)
{
    static const char *const names[] = {"watcher", "scheduler", "binder-1"};
    struct bh_err err;
    char path[128];

    for (size_t i = 0; i < OTHERS; i++) {
        snprintf(path, sizeof(path), "%s/%s.http", fx.dir, names[i]);
        const struct bh_http_options o = {.unix_path = path};
        fx.others_code[i] = 200;
        CU_ASSERT_EQUAL_FATAL(
            bh_http_server_new(&fx.loop, &o, on_other, &fx.others_code[i], &fx.others[i], &err), 0);
    }
    fx.control = open_bus("control", on_control, &fx.control_poll);
    fx.feed = open_bus("watcher", on_feed, &fx.feed_poll);
}

static const char *file(const char *name, const char *text)
{
    snprintf(fx.path, sizeof(fx.path), "%s/%s", fx.dir, name);
    FILE *f = fopen(fx.path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
    return fx.path;
}

static void write_kubeconfig(char *path, size_t size)
{
    char text[400];

    snprintf(text, sizeof(text),
             "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "
             "\"http://127.0.0.1:%u\"}}], contexts: [{name: c, context: {cluster: c, user: u}}], "
             "users: [{name: u, user: {}}], current-context: c}",
             bh_http_server_port(fx.api));
    snprintf(path, size, "%s", file("kubeconfig", text));
}

static char *argv_of[12];
static int parse(const char *const *extra, size_t n)
{
    static const struct bh_opt_usage usage = {.program = "berth-front"};
    static const struct bh_opt own[] = {{0}};
    struct bh_err err;
    int argc = 0;

    argv_of[argc++] = (char *)(uintptr_t) "berth-front";
    argv_of[argc++] = (char *)(uintptr_t) "--bind-address=127.0.0.1";
    argv_of[argc++] = (char *)(uintptr_t) "--authentication-skip-lookup";
    for (size_t i = 0; i < n; i++)
        argv_of[argc++] = (char *)(uintptr_t)extra[i];
    return bh_kube_flags_parse(&fx.flags, own, &usage, argc, argv_of, &err);
}

static void begin_with(const char *const *extra, size_t n, bool asks)
{
    static char kubeconfig[128], authn[160], authz[160];
    const struct bh_http_options o = {.address = "127.0.0.1"};
    struct bh_err err = {""};
    const char *words[10];

    memset(&fx, 0, sizeof(fx));
    uv_loop_init(&fx.loop);
    bh_arena_init(&fx.arena, 1 << 20);
    snprintf(fx.dir, sizeof(fx.dir), "/tmp/berth-front-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(fx.dir));
    CU_ASSERT_EQUAL_FATAL(bh_http_server_new(&fx.loop, &o, on_api, NULL, &fx.api, &err), 0);
    write_kubeconfig(kubeconfig, sizeof(kubeconfig));
    snprintf(authn, sizeof(authn), "--authentication-kubeconfig=%s", kubeconfig);
    snprintf(authz, sizeof(authz), "--authorization-kubeconfig=%s", kubeconfig);
    words[0] = authn, words[1] = authz;
    for (size_t i = 0; i < n; i++)
        words[2 + i] = extra[i];
    CU_ASSERT_EQUAL_FATAL(asks ? parse(words, n + 2) : parse(extra, n), 0);
    fx.file.leader.leader_elect = true;
    fx.metrics = "# TYPE a counter\na 1\n";
    open_others();
    const struct bh_front_options fo = {&fx.flags, &fx.file, fx.dir, 0};
    CU_ASSERT_EQUAL_FATAL(bh_front_open(&fx.front, &fo, &fx.loop, &err), 0);
}

static void begin(void)
{
    begin_with(NULL, 0, true);
}

static void close_others(void)
{
    for (size_t i = 0; i < OTHERS; i++)
        bh_http_server_free(bh_take_ptr(fx.others[i]));
    bh_bus_poll_close(bh_take_ptr(fx.control_poll));
    bh_bus_close(bh_take_ptr(fx.control));
    bh_bus_poll_close(bh_take_ptr(fx.feed_poll));
    bh_bus_close(bh_take_ptr(fx.feed));
}

static void end(void)
{
    char command[160];

    bh_api_client_free(bh_take_ptr(fx.caller));
    bh_front_close(&fx.front);
    close_others();
    bh_http_server_free(fx.api);
    bh_loop_drain_close(&fx.loop);
    bh_kube_flags_free(&fx.flags);
    bh_arena_fini(&fx.arena);
    bh_buf_fini(&fx.body);
    snprintf(command, sizeof(command), "rm -rf %s", fx.dir);
    CU_ASSERT_EQUAL(system(command), 0);
    bh_log_set_verbosity(0);
}

/* ---- a client -------------------------------------------------------------------------------- */

static void on_done(void *arg, const struct bh_api_reply *r)
{
    (void)arg;
    fx.done = true;
    fx.code = r->outcome == BH_API_OK ? r->code : -1;
    bh_buf_reset(&fx.body);
    bh_buf_add(&fx.body, r->body.p, r->body.n);
    snprintf(fx.type, sizeof(fx.type), "%s", r->content_type ? r->content_type : "");
}

static void call_as(const char *token, const struct cert *cert)
{
    char url[64];
    struct bh_err err = {""};

    bh_api_client_free(bh_take_ptr(fx.caller));
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", bh_front_port(&fx.front));
    const struct bh_api_config cfg = {.server = url,
                                      .insecure_skip_tls_verify = true,
                                      .token = (char *)(uintptr_t)token,
                                      .cert_pem = cert ? cert->pem : NULL,
                                      .key_pem = cert ? cert->key_pem : NULL};
    const struct bh_api_options o = {.user_agent = "curl/7"};
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&fx.loop, &cfg, &o, &fx.caller, &err), 0);
}

static struct bh_api_req *start(const char *method, const char *path, const char *header,
                                const char *body)
{
    const struct bh_api_call call = {.method = method,
                                     .path = path,
                                     .accept = header && *header != 'X' ? header : "*/*",
                                     .extra_header = header && *header == 'X' ? header : NULL,
                                     .content_type = body ? "text/plain" : NULL,
                                     .body = body,
                                     .body_n = body ? strlen(body) : 0,
                                     .on_done = on_done};
    fx.done = false;
    return bh_api_start(fx.caller, &call);
}

static void request(const char *method, const char *path, const char *header, const char *body)
{
    (void)start(method, path, header, body);
    while (!fx.done)
        uv_run(&fx.loop, UV_RUN_ONCE);
}

static void expect(const char *path, int code, const char *text)
{
    request("GET", path, NULL, NULL);
    CU_ASSERT_EQUAL(fx.code, code);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&fx.body), text));
    if (fx.code != code || !strstr(bh_buf_str(&fx.body), text))
        fprintf(stderr, "%s: %d %s\n", path, fx.code, bh_buf_str(&fx.body));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_who_may(void)
{
    begin();
    call_as(NULL, NULL);
    expect("/livez", 200, "ok");
    expect("/metrics", 403, "forbidden: User \\\"system:anonymous\\\" cannot get path");
    expect("/metrics?pretty=0", 403, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},");
    expect("/metrics?pretty=true", 403, "\n  \"kind\": \"Status\"");
    expect("/why", 403, "\\\"/why\\\": so");
    call_as("nobody", NULL);
    expect("/livez", 401, "Unauthorized");
    call_as("alice", NULL);
    expect("/flagz", 200, "bind-address:127.0.0.1");
    expect("/a&b", 403, "User \\\"al&lt;i&gt;ce\\\" cannot get path \\\"/a&amp;b\\\"");
    call_as("root", NULL);
    expect("/nosuch", 404, "404 page not found");
    expect("/debug/pprof/heap", 404, "profiles are Go's");
    expect("/debug/other", 404, "404 page not found");
    request("POST", "/metrics", NULL, NULL);
    CU_ASSERT_EQUAL(fx.code, 405);
    end();
}

/* What says who calls may stand behind as many headers as a connection takes. */
static void test_many_headers(void)
{
    struct bh_buf many BH_CLEANUP(bh_buf_fini) = {0};

    begin();
    call_as(NULL, NULL);
    bh_buf_adds(&many, "X: 1");
    for (size_t i = 0; i < 140; i++)
        bh_buf_adds(&many, "\r\nX: 1");
    bh_buf_adds(&many, "\r\nAuthorization: Bearer nobody");
    request("GET", "/livez", bh_buf_str(&many), NULL);
    CU_ASSERT_EQUAL(fx.code, 401);
    end();
}

static void test_nobody_to_ask(void)
{
    begin_with(NULL, 0, false);
    call_as("root", NULL);
    expect("/livez", 200, "ok");
    expect("/metrics", 403, "system:anonymous");
    end();
}

static void test_an_api_server_that_fails(void)
{
    begin();
    fx.api_fails = true;
    call_as(NULL, NULL);
    expect("/metrics", 500, "Internal Server Error: \"/metrics\": the API server answered");
    call_as("root", NULL);
    expect("/livez", 401, "Unauthorized");
    end();
}

static void test_too_many_questions(void)
{
    begin();
    fx.stuck = true;
    bh_api_client_free(bh_take_ptr(fx.caller));
    call_as("root", NULL);
    struct bh_api_req *r = start("GET", "/metrics", NULL, NULL);
    while (!fx.asked)
        uv_run(&fx.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(fx.front.under_way, 1);
    bh_api_cancel(r); /* the question goes with its client */
    while (!fx.left || fx.front.under_way)
        uv_run(&fx.loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(fx.left, 1);
    struct bh_api_client *many[BH_REVIEW_ASKED_EACH];
    for (size_t i = 0; i < BH_ARRAY_LEN(many); i++) {
        char token[16];
        snprintf(token, sizeof(token), "t%zu", i);
        call_as(token, NULL);
        many[i] = bh_take_ptr(fx.caller);
        fx.caller = many[i];
        (void)start("GET", "/metrics", NULL, NULL);
        fx.caller = NULL;
    }
    while (fx.asked < 1 + BH_ARRAY_LEN(many))
        uv_run(&fx.loop, UV_RUN_ONCE);
    call_as("one-more", NULL);
    request("GET", "/metrics", NULL, NULL); /* it waits for a turn, and then no longer */
    CU_ASSERT_EQUAL(fx.code, 429);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&fx.body), "TooManyRequests"));
    for (size_t i = 0; i < BH_ARRAY_LEN(many); i++)
        bh_api_client_free(many[i]);
    end();
}

static void test_probes(void)
{
    begin();
    call_as(NULL, NULL);
    expect("/readyz?verbose", 200, "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync");
    expect("/readyz?exclude=shutdown&exclude=x", 200, "ok");
    expect("/healthz", 200, "ok");
    expect("/livez/ping", 403, "");
    call_as("root", NULL);
    expect("/livez/ping", 200, "ok");
    expect("/livez/nosuch", 404, "404 page not found");
    fx.others_code[WATCHER] = 404; /* it does not elect */
    expect("/healthz", 200, "ok");
    fx.others_code[WATCHER] = 500;
    expect("/healthz", 500, "[-]leaderElection failed: reason withheld");
    expect("/readyz/leaderElection", 500, "failed election to renew leadership on lease");
    bh_http_server_free(bh_take_ptr(fx.others[SCHEDULER]));
    expect("/readyz/sched-handler-sync", 500, "berth-scheduler does not answer");
    expect("/metrics/slis", 200, "kubernetes_healthcheck{name=\"leaderElection\"");
    fx.front.stopping = true;
    expect("/readyz", 500, "[-]shutdown failed");
    fx.front.stopping = false;
    end();
}

static void test_metrics_of_all(void)
{
    static const char *const flags[] = {"--disabled-metrics=b,b,nosuch"};
    static char many[4000];

    begin_with(flags, 1, true);
    size_t n = (size_t)snprintf(many, sizeof(many),
                                "# TYPE a counter\na 1\n# TYPE b gauge\nb 1\n"
                                "# TYPE process_start_time_seconds gauge\n"
                                "process_start_time_seconds 5\n");
    memset(many + n, '#', sizeof(many) - n - 2);
    many[sizeof(many) - 2] = '\n';
    fx.metrics = many;
    call_as("root", NULL);
    expect("/metrics", 200, "\na 3\n");
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&fx.body), "\nb "));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&fx.body), "\ndisabled_metrics_total 2\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&fx.body), "\nberth_front_connections 1\n"));
    fx.others_code[BINDER] = 500;
    expect("/metrics", 200, "berth_front_scrape_errors_total{process=\"binder-1\"} 1");
    static const char *const zips[] = {"X-A: b", "X-A: b\r\nAccept-Encoding: gzip",
                                       "X-A: b\r\nAccept-Encoding: gzip;q=0",
                                       "X-A: b\r\nAccept-Encoding: br, gzip;q=0.5"};
    for (size_t i = 0; i < BH_ARRAY_LEN(zips); i++) {
        request("GET", "/metrics", zips[i], NULL);
        bool packed = fx.body.n > 2 && memcmp(fx.body.p, "\x1f\x8b", 2) == 0;
        CU_ASSERT_EQUAL(packed, i == 1 || i == 3);
    }
    end();
}

static void test_verbosity(void)
{
    begin();
    call_as("root", NULL);
    request("PUT", "/debug/flags/v", NULL, "3");
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&fx.body), "successfully set klog.logging.verbosity to 3");
    CU_ASSERT_EQUAL(fx.told, 3);
    fx.others_code[BINDER] = 405;
    request("PUT", "/debug/flags/v", NULL, "2");
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&fx.body),
                           "successfully set klog.logging.verbosity to 2 (but not of: binder-1)");
    static const char *const bad[] = {"x", "1x", "99999999999999999999", "3000000000", " "};
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        request("PUT", "/debug/flags/v", NULL, bad[i]);
        CU_ASSERT_EQUAL(fx.code, 400);
    }
    request("GET", "/debug/flags/v", NULL, NULL);
    CU_ASSERT_EQUAL(fx.code, 406);
    end();
}

static void test_pages(void)
{
    begin();
    call_as("root", NULL);
    expect("/configz", 200, "{\"componentconfig\":{\"kind\":\"KubeSchedulerConfiguration\"}}");
    expect("/statusz", 200, "Paths  /configz /flagz");
    static const struct {
        const char *path, *accept, *text;
        int code;
    } forms[] = {
        {"/flagz", "application/json;v=v1beta1;g=config.k8s.io;as=Flagz",
         "{\"kind\":\"Flagz\",\"apiVersion\":\"config.k8s.io/v1beta1\"", 200},
        {"/flagz", "application/json;v=v9;g=config.k8s.io;as=Flagz", "not supported", 406},
        {"/flagz", "application/yaml, text/plain", "\nkube-scheduler flagz\n", 200},
        {"/flagz", "text/*", "authorization-always-allow-paths:[/healthz /readyz /livez]", 200},
        {"/statusz", "application/json;v=v1alpha1;g=config.k8s.io;as=Statusz",
         "{\"kind\":\"Statusz\",\"apiVersion\":\"config.k8s.io/v1alpha1\"", 200},
        {"/statusz", "application/yaml", "not supported", 406},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(forms); i++) {
        request("GET", forms[i].path, forms[i].accept, NULL);
        CU_ASSERT_EQUAL(fx.code, forms[i].code);
        CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&fx.body), forms[i].text));
    }
    expect("/metrics/resources", 200, ""); /* it does not lead */
    CU_ASSERT_EQUAL(fx.body.n, 0);
    fx.leading = true;
    expect("/metrics/resources", 200, "unit=\"cores\"} 0.25\n");
    expect("/metrics/resources", 200, "kube_pod_resource_limit{"); /* remembered */
    fx.refuses = true;
    expect("/configz", 503, "refused");
    expect("/metrics/resources", 503, "refused");
    bh_bus_poll_close(bh_take_ptr(fx.control_poll));
    bh_bus_close(bh_take_ptr(fx.control));
    expect("/configz", 503, "berth-scheduler does not run");
    expect("/metrics/resources", 503, "berth-scheduler does not run");
    end();
}

static void test_certificates_of_clients(void)
{
    char flag[160], proxy[160];
    struct cert ca = cert_make("ca", NULL, NULL, NULL, 3);
    struct cert proxies = cert_make("proxies", NULL, NULL, NULL, 3);
    struct cert root = cert_make("root", "system:masters", &ca, "clientAuth", 3);
    struct cert old = cert_make("root", "system:masters", &ca, "clientAuth", 0);
    struct cert front_proxy = cert_make("front-proxy", NULL, &proxies, "clientAuth", 3);
    struct cert other_proxy = cert_make("other", NULL, &proxies, "clientAuth", 3);

    char path[] = "/tmp/berth-front-ca-XXXXXX", path2[] = "/tmp/berth-front-ca-XXXXXX";
    int fd = mkstemp(path), fd2 = mkstemp(path2);
    CU_ASSERT_EQUAL(write(fd, ca.pem, strlen(ca.pem)), (ssize_t)strlen(ca.pem));
    CU_ASSERT_EQUAL(write(fd2, proxies.pem, strlen(proxies.pem)), (ssize_t)strlen(proxies.pem));
    snprintf(flag, sizeof(flag), "--client-ca-file=%s", path);
    snprintf(proxy, sizeof(proxy), "--requestheader-client-ca-file=%s", path2);
    const char *const flags[] = {flag, proxy, "--requestheader-allowed-names=front-proxy"};
    begin_with(flags, 3, true);
    call_as(NULL, &root);
    expect("/statusz", 200, "statusz");
    CU_ASSERT_EQUAL(fx.asked, 0);
    call_as(NULL, &old);
    expect("/livez", 401, "Unauthorized");
    call_as(NULL, &front_proxy);
    request("GET", "/statusz", "X-Remote-User: bob\r\nX-Remote-Group: system:masters", NULL);
    CU_ASSERT_EQUAL(fx.code, 200);
    call_as(NULL, &other_proxy);
    request("GET", "/statusz", "X-Remote-User: bob\r\nX-Remote-Group: system:masters", NULL);
    CU_ASSERT_EQUAL(fx.code, 401);
    /* what cannot be read again stays */
    CU_ASSERT_EQUAL(ftruncate(fd, 0), 0);
    bh_front_reload(&fx.front);
    call_as(NULL, &root);
    expect("/statusz", 200, "statusz");
    end();
    close(fd), close(fd2);
    unlink(path), unlink(path2);
    cert_free(&ca), cert_free(&proxies), cert_free(&root), cert_free(&old);
    cert_free(&front_proxy), cert_free(&other_proxy);
}

static void test_what_cannot_be_opened(void)
{
    static const struct {
        const char *flag, *text;
    } bad[] = {
        {"--authentication-kubeconfig=/nonexistent", "--authentication-kubeconfig: "},
        {"--authorization-kubeconfig=/nonexistent", "--authorization-kubeconfig: "},
        {"--client-ca-file=/nonexistent", "--client-ca-file: /nonexistent: No such file"},
        {"--client-ca-file=/dev/null", "--client-ca-file: /dev/null"},
        {"--requestheader-client-ca-file=/nonexistent", "--requestheader-client-ca-file: "},
        {"--authorization-always-allow-paths=/a*b", "only trailing * allowed in \"/a*b\""},
        {"--tls-cert-file=/nonexistent", "must be given together"},
        {"--tls-min-version=9", "9"},
        {"--bind-address=192.0.2.77", "failed to create listener"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_err err = {""};
        memset(&fx, 0, sizeof(fx));
        uv_loop_init(&fx.loop);
        CU_ASSERT_EQUAL_FATAL(parse(&bad[i].flag, 1), 0);
        const struct bh_front_options o = {&fx.flags, &fx.file, "/nonexistent", 0};
        CU_ASSERT(bh_front_open(&fx.front, &o, &fx.loop, &err) < 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, bad[i].text));
        if (!strstr(err.msg, bad[i].text))
            fprintf(stderr, "%s: %s\n", bad[i].flag, err.msg);
        bh_front_close(&fx.front);
        bh_loop_drain_close(&fx.loop);
        bh_kube_flags_free(&fx.flags);
    }
}

BH_TESTS("front/front", {"who may what", test_who_may}, {"many headers", test_many_headers},
         {"nobody to ask", test_nobody_to_ask},
         {"an API server that fails", test_an_api_server_that_fails},
         {"too many questions", test_too_many_questions}, {"probes", test_probes},
         {"metrics of all", test_metrics_of_all}, {"verbosity", test_verbosity},
         {"pages", test_pages}, {"certificates of clients", test_certificates_of_clients},
         {"what cannot be opened", test_what_cannot_be_opened})
