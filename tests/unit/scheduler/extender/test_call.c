/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/extender/test_call.c - one extender over a socket: what it is sent, and what
 * becomes of everything it may do
 */
#include "common/base/metrics.h"
#include "scheduler/extender/ext_int.h"
#include "tests/unit/common/api/tls_server.h"
#include "tests/unit/scheduler/extender/fixture.h"

#include <signal.h>

static struct {
    struct bh_arena a;
    struct bh_sched_config *config;
    struct bh_ext *x;
    unsigned waits, give_up_after;
    char want[512];
} t;

static const struct bh_ext_pod pod = {.namespace_ = {"ns", 2}, .name = {"p", 1}, .uid = {"u", 1}};
static const struct bh_ext_node nodes[] = {{.name = "n1"}, {.name = "n2"}};

static bool waiting(void *arg)
{
    (void)arg;
    t.waits++;
    return !t.give_up_after || t.waits < t.give_up_after;
}

/* From here on an answer may take its time: the machine may be busy with other things. */
static void be_patient(void)
{
    ((struct bh_extender_config *)t.x->v[0].c)->http_timeout_ns = 60 * INT64_C(1000000000);
}

static void begin(const char *extenders)
{
    struct bh_err err = {{0}};

    memset(&t, 0, sizeof t);
    bh_arena_init(&t.a, 0);
    t.config = ext_config(&t.a, extenders);
    if (bh_ext_new(t.config, waiting, NULL, &t.x, &err) < 0)
        fprintf(stderr, "fixture: %s\n", err.msg);
    CU_ASSERT_FATAL(t.x != NULL);
    struct bh_str b = ext_bytes(&t.a, &k8s__pod__descriptor, "{'metadata':{'name':'p'}}");
    bh_ext_put_pod(t.x, bh_str_c("u"), b.p, b.n);
}

static void end(void)
{
    bh_ext_free(t.x);
    bh_sched_config_free(t.config);
    bh_arena_fini(&t.a);
}

static const char *filter(struct bh_ext_filtered *ret)
{
    struct bh_ext_filtered f;

    bh_ext_begin(t.x);
    const char *error = bh_ext_filter(t.x, 0, &pod, nodes, 2, ret ? ret : &f);
    return error ? error : "";
}

/* %u is the extender's port. */
static const char *want(const char *text)
{
    snprintf(t.want, sizeof t.want, text, ext.server.port, ext.server.port);
    return t.want;
}

#define ONE(more)                                                                                  \
    "{'urlPrefix':'http://127.0.0.1:%u/','filterVerb':'filter','nodeCacheCapable':true" more "}"

static void test_request(void)
{
    struct bh_ext_filtered f;

    ext_begin();
    begin(ONE(""));
    ext_say({.target = "/filter", .body = "{'NodeNames':['n2'],'FailedNodes':{'n1':'no'}}"});
    FX_STR(filter(&f), "");
    FX_INT(f.n, 1);
    FX_STR(f.nodes[0].name, "n2");
    FX_INT(f.n_failed, 1);
    FX_STR(heard(0)->method, "POST");
    FX_STR(heard(0)->body, "{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"Nodes\":null,\"NodeNames\":["
                           "\"n1\",\"n2\"]}");
    CU_ASSERT_PTR_NOT_NULL(strcasestr(heard(0)->head, "\r\nContent-Type: application/json"));
    CU_ASSERT_PTR_NULL(strcasestr(heard(0)->head, "\r\nExpect:"));
    CU_ASSERT_PTR_NULL(strcasestr(heard(0)->head, "\r\nAuthorization:"));
    for (int i = 0; i < 20; i++)
        FX_STR(filter(NULL), "");
    FX_INT(ext.n_heard, 21);
    FX_INT(ext.connections, 1); /* kept and used again */
    end();
    ext_end();
}

static void test_error_texts(void)
{
    ext_begin();
    begin(ONE(",'httpTimeout':'10m'"));
    ext_say({.target = "/filter", .code = 500, .body = "{'Error':'not read'}"});
    FX_STR(filter(NULL),
           want("failed filter with extender at URL http://127.0.0.1:%u/filter, code 500"));
    ext_say({.target = "/filter", .code = 201, .body = "{}"});
    FX_STR(filter(NULL),
           want("failed filter with extender at URL http://127.0.0.1:%u/filter, code 201"));
    ext_say({.target = "/filter", .body = "{'Error':'out of\\nluck'}"});
    FX_STR(filter(NULL), "out of luck");
    ext_say({.target = "/filter", .body = "<html>sorry</html>"});
    FX_STR(filter(NULL), "invalid character '<' looking for beginning of value");
    ext_say({.target = "/filter", .body = ""});
    FX_STR(filter(NULL), "EOF");
    ext_say({.target = "/filter", .how = CLOSE});
    FX_STR(filter(NULL), want("Post \"http://127.0.0.1:%u/filter\": EOF"));
    ext_say({.target = "/filter", .how = CUT});
    FX_STR(filter(NULL), "unexpected EOF");
    ext_say({.target = "/filter", .how = HUGE_BODY});
    FX_STR(filter(NULL), want("failed filter with extender at URL http://127.0.0.1:%u/filter, the "
                              "reply is larger than 67108864 bytes"));
    /* a reply that is none of JSON's business but its length */
    ext_say(
        {.target = "/filter", .body = "{'NodeNames':['n1']}", .headers = "Content-Type: a/b\r\n"});
    FX_STR(filter(NULL), "");
    end();
    ext_end();
}

static void test_unreachable(void)
{
    ext_begin();
    uint16_t port = ext.server.port;
    ext_end(); /* nobody listens there now */
    ext.server.port = port;
    begin(ONE(""));
    FX_STR(filter(NULL),
           want("Post \"http://127.0.0.1:%u/filter\": dial tcp 127.0.0.1:%u: connect: "
                "connection refused"));
    FX_STR(filter(NULL),
           want("Post \"http://127.0.0.1:%u/filter\": dial tcp 127.0.0.1:%u: connect: "
                "connection refused"));
    end();
    begin("{'urlPrefix':'ftp://x/','filterVerb':'filter','nodeCacheCapable':true}");
    FX_STR(filter(NULL), "Post \"ftp://x/filter\": unsupported protocol scheme \"ftp\"");
    end();
    begin("{'urlPrefix':'','filterVerb':'filter','nodeCacheCapable':true}");
    FX_STR(filter(NULL), "Post \"/filter\": unsupported protocol scheme \"\"");
    end();
    begin("{'urlPrefix':'http:///a','filterVerb':'filter','nodeCacheCapable':true}");
    FX_STR(filter(NULL), "Post \"http:///a/filter\": http: no Host in request URL");
    end();
}

static void test_timeouts(void)
{
    const char *headers = "Post \"http://127.0.0.1:%u/filter\": context deadline exceeded "
                          "(Client.Timeout exceeded while awaiting headers)";

    ext_begin();
    begin(ONE(",'httpTimeout':'120ms'"));
    ext_say({.target = "/filter", .how = HANG});
    FX_STR(filter(NULL), want(headers));
    CU_ASSERT(t.waits >= 2); /* the owner went on living */
    end();
    /* a byte now and then does not help; the headers are there long before that */
    begin(ONE(",'httpTimeout':'2s'"));
    ext_say({.target = "/filter", .how = DRIP});
    FX_STR(filter(NULL), "context deadline exceeded (Client.Timeout or context cancellation while "
                         "reading body)");
    /* an answer ends the row */
    be_patient();
    ext_say({.target = "/filter", .body = "{}"});
    FX_STR(filter(NULL), "");
    end();
    ext_end();
}

static void test_breaker(void)
{
    const char *headers = "Post \"http://127.0.0.1:%u/filter\": context deadline exceeded "
                          "(Client.Timeout exceeded while awaiting headers)";

    ext_begin();
    begin(ONE(",'httpTimeout':'300ms'"));
    ext_say({.target = "/filter", .how = HANG});
    for (unsigned i = 0; i < BH_EXT_TRIES; i++)
        FX_STR(filter(NULL), want(headers));
    FX_INT(ext.n_heard, BH_EXT_TRIES);
    for (unsigned i = 0; i < 10; i++)
        FX_STR(filter(NULL), want(headers)); /* the same words at once */
    FX_INT(ext.n_heard, BH_EXT_TRIES);
    /* its rest is over: one more try, which ends it or doubles it */
    ext_say({.target = "/filter", .body = "{'NodeNames':['n1']}"});
    t.x->v[0].rest_until_ns = bh_mono_ns();
    be_patient();
    FX_STR(filter(NULL), "");
    FX_STR(filter(NULL), "");
    FX_INT(ext.n_heard, 2);
    FX_INT(t.x->v[0].timeouts, 0);
    end();
    ext_end();
}

static void test_giving_up(void)
{
    ext_begin();
    begin(ONE(",'httpTimeout':'60s'"));
    t.give_up_after = 2;
    ext_say({.target = "/filter", .how = HANG});
    FX_STR(filter(NULL), want("Post \"http://127.0.0.1:%u/filter\": context canceled"));
    end();
    ext_end();
}

static void test_redirects(void)
{
    ext_begin();
    begin(ONE(",'httpTimeout':'10s'"));
    ext_say({.target = "/filter", .code = 307, .headers = "Location: /there?x=1\r\n"},
            {.target = "/there?x=1", .body = "{'NodeNames':['n1']}"});
    FX_STR(filter(NULL), "");
    FX_STR(heard(1)->method, "POST");
    FX_STR(heard(1)->body, heard(0)->body);
    ext_say({.target = "/filter", .code = 302, .headers = "Location: there\r\n"},
            {.target = "/there", .code = 308, .headers = "Location: /again\r\n"},
            {.target = "/again", .body = "{'NodeNames':['n1']}"});
    FX_STR(filter(NULL), "");
    FX_STR(heard(1)->method, "GET"); /* and it stays one */
    FX_STR(heard(1)->body, "");
    FX_STR(heard(2)->method, "GET");
    ext_say({.target = "/filter", .code = 308, .headers = "Location: /filter\r\n"});
    FX_STR(filter(NULL), want("Post \"http://127.0.0.1:%u/filter\": stopped after 10 redirects"));
    FX_INT(ext.n_heard, 10);
    /* to somebody else: not followed, the status is the error */
    ext_say({.target = "/filter", .code = 307, .headers = "Location: http://127.0.0.1:1/\r\n"});
    FX_STR(filter(NULL),
           want("failed filter with extender at URL http://127.0.0.1:%u/filter, code 307"));
    ext_say({.target = "/filter", .code = 303});
    FX_STR(filter(NULL),
           want("failed filter with extender at URL http://127.0.0.1:%u/filter, code 303"));
    end();
    ext_end();
}

static void test_urls(void)
{
    ext_begin();
    begin("{'urlPrefix':'HTTP://me:secret@127.0.0.1:%u/a b///','filterVerb':'v?q=1#x',"
          "'nodeCacheCapable':true}");
    ext_say({.target = "/a%20b/v?q=1", .body = "{'NodeNames':['n1']}"});
    FX_STR(filter(NULL), "");
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(0)->head, "Authorization: Basic bWU6c2VjcmV0"));
    ext_say({.target = "/x"});
    const char *error = filter(NULL);
    FX_STR(error, want("failed v?q=1#x with extender at URL HTTP://me:xxxxx@127.0.0.1:%u/a "
                       "b/v?q=1#x, code 404"));
    CU_ASSERT_PTR_NULL(strstr(bh_ext_name(t.x, 0), "secret"));
    end();
    ext_end();
}

static void test_all_at_once(void)
{
    struct bh_ext_scores got[BH_EXT_MAX];

    ext_begin();
    begin("{'urlPrefix':'http://127.0.0.1:%u/a','prioritizeVerb':'s','weight':1,"
          "'nodeCacheCapable':true,'httpTimeout':'300ms'},"
          "{'urlPrefix':'http://127.0.0.1:%u/b','prioritizeVerb':'s','weight':1,"
          "'nodeCacheCapable':true},"
          "{'urlPrefix':'http://127.0.0.1:%u/c','prioritizeVerb':'s','weight':1},"
          "{'urlPrefix':'http://127.0.0.1:%u/d','prioritizeVerb':'s','weight':1,"
          "'nodeCacheCapable':true}");
    ext_say({.target = "/a/s", .how = HANG},
            {.target = "/b/s", .body = "[{'Host':'n1','Score':3}]"}, {.target = "/d/s"});
    bh_ext_begin(t.x);
    bh_ext_prioritize(t.x, 0xf, &pod, nodes, 2, got);
    CU_ASSERT_PTR_NOT_NULL(strstr(got[0].error, "deadline exceeded"));
    CU_ASSERT_PTR_NULL(got[1].error);
    FX_INT(got[1].n, 1);
    FX_INT(got[1].hosts[0].score, 3);
    FX_STR(got[2].error,
           bh_arena_printf(&t.a,
                           "extender http://127.0.0.1:%u/c: the object of node n1 is not "
                           "known",
                           ext.server.port));
    FX_STR(got[3].error, "EOF");
    FX_INT(ext.n_heard, 3); /* all before the first was given up */
    FX_INT(ext.connections, 3);
    bh_ext_prioritize(t.x, 2, &pod, nodes, 2, got);
    CU_ASSERT_PTR_NULL(got[1].error);
    end();
    ext_end();
}

static void test_metrics(void)
{
    struct bh_metrics *m = bh_metrics_new();
    struct bh_buf text = {0};

    ext_begin();
    begin("{'urlPrefix':'http://me:secret@127.0.0.1:%u','filterVerb':'filter',"
          "'nodeCacheCapable':true}");
    bh_ext_set_metrics(t.x, m);
    ext_say({.target = "/filter", .body = "{}"});
    FX_STR(filter(NULL), "");
    ext_say({.target = "/filter", .code = 503});
    (void)filter(NULL);
    bh_metrics_render(m, &text);
    const char *label = bh_arena_printf(
        &t.a, "{extender=\"http://me:xxxxx@127.0.0.1:%u\",verb=\"filter\"", ext.server.port);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text.p, bh_arena_printf(&t.a, "berth_extender_requests_total%s} 2", label)));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.p, bh_arena_printf(&t.a,
                                                          "berth_extender_errors_total%s,"
                                                          "reason=\"status\"} 1",
                                                          label)));
    CU_ASSERT_PTR_NOT_NULL(strstr(text.p, bh_arena_printf(&t.a,
                                                          "berth_extender_duration_seconds_"
                                                          "count%s} 2",
                                                          label)));
    CU_ASSERT_PTR_NULL(strstr(text.p, "secret"));
    end();
    ext_end();
    bh_buf_fini(&text);
    bh_metrics_free(m);
}

/* ---- binding --------------------------------------------------------------------------------- */

static struct {
    unsigned n;
    enum bh_ext_bound how;
    char error[256];
} bound;

static void on_bound(void *arg, uint64_t id, enum bh_ext_bound how, const char *error)
{
    FX_INT(*(unsigned *)arg, 77);
    CU_ASSERT(id < 500);
    bound.n++;
    bound.how = how;
    snprintf(bound.error, sizeof bound.error, "%s", error ? error : "");
}

static unsigned cookie = 77;

static void bind_and_wait(unsigned times)
{
    memset(&bound, 0, sizeof bound);
    for (unsigned i = 0; i < times; i++)
        bh_ext_bind(t.x, UINT64_MAX, &pod, "n1", on_bound, &cookie, i);
    FX_INT(bound.n, 0);
    for (uint64_t until = bh_mono_ns() + WAIT_S * UINT64_C(1000000000);
         bound.n < times && bh_mono_ns() < until; sched_yield())
        bh_ext_serve(t.x);
    FX_INT(bound.n, times);
}

static void test_bind(void)
{
    ext_begin();
    begin("{'urlPrefix':'http://127.0.0.1:%u','filterVerb':'filter'},"
          "{'urlPrefix':'http://127.0.0.1:%u/b','bindVerb':'bind','httpTimeout':'10s'}");
    ext_say({.target = "/b/bind", .body = "{'Error':''}"});
    bind_and_wait(1);
    FX_INT(bound.how, BH_EXT_BOUND);
    FX_STR(heard(0)->body,
           "{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":\"n1\"}");
    ext_say({.target = "/b/bind", .body = "{'error':'no'}"});
    bind_and_wait(1);
    FX_INT(bound.how, BH_EXT_BIND_FAILED);
    FX_STR(bound.error, "no");
    ext_say({.target = "/b/bind", .body = "x"});
    bind_and_wait(1);
    FX_STR(bound.error, "invalid character 'x' looking for beginning of value");
    ext_say({.target = "/b/bind", .code = 409});
    bind_and_wait(1);
    FX_STR(bound.error, want("failed bind with extender at URL http://127.0.0.1:%u/b/bind, code "
                             "409"));
    /* more than may be on the wire */
    ext_say({.target = "/b/bind", .body = "{}"});
    bind_and_wait(200);
    FX_INT(bound.how, BH_EXT_BOUND);
    CU_ASSERT(ext.connections <= BH_EXT_BINDS + 1);
    FX_INT(ext.n_heard, 200);
    end();
    ext_end();
}

/* Nothing is told while a decision waits: the owner's state must not change under it. */
static void test_bind_ends_meanwhile(void)
{
    ext_begin();
    begin("{'urlPrefix':'http://127.0.0.1:%u','filterVerb':'filter','nodeCacheCapable':true,"
          "'bindVerb':'bind','httpTimeout':'1s'}");
    ext_say({.target = "/bind", .body = "{}"}, {.target = "/filter", .how = HANG});
    memset(&bound, 0, sizeof bound);
    bh_ext_bind(t.x, UINT64_MAX, &pod, "n1", on_bound, &cookie, 0);
    CU_ASSERT(*filter(NULL));
    FX_INT(ext.n_heard, 2);
    FX_INT(bound.n, 0);
    bh_ext_serve(t.x);
    FX_INT(bound.n, 1);
    end();
    ext_end();
}

static void test_bind_ignorable(void)
{
    ext_begin();
    begin("{'urlPrefix':'http://127.0.0.1:%u','bindVerb':'bind','ignorable':true,"
          "'httpTimeout':'50ms'}");
    ext_say({.target = "/bind", .body = "{'Error':'no'}"});
    bind_and_wait(1);
    FX_INT(bound.how, BH_EXT_NOT_BOUND);
    ext_say({.target = "/bind", .how = HANG});
    bind_and_wait(500); /* all fail with the first ones: it rests */
    FX_INT(bound.how, BH_EXT_NOT_BOUND);
    CU_ASSERT(ext.n_heard < 500);
    ext_say({.target = "/bind", .how = HANG});
    t.x->v[0].rest_until_ns = 0;
    bh_ext_bind(t.x, UINT64_MAX, &pod, "n1", on_bound, &cookie, 0);
    bh_ext_bind(t.x, UINT64_MAX, &pod, "n1", on_bound, &cookie, 0);
    bound.n = 0;
    end(); /* with a request on the wire: nobody is told any more */
    FX_INT(bound.n, 0);
    ext_end();
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static struct tls_server server;

/* What a filter over TLS gives with this tlsConfig: who it was for the server, or the error. */
static const char *over_tls(const char *tls, bool enable)
{
    static char text[512];
    struct bh_arena a;
    const char *extender;

    bh_arena_init(&a, 0);
    extender =
        bh_arena_printf(&a,
                        "{'urlPrefix':'https://127.0.0.1:%u','filterVerb':'filter',"
                        "'nodeCacheCapable':true,'enableHTTPS':%s%s%s}",
                        server.port, enable ? "true" : "false", *tls ? ",'tlsConfig':" : "", tls);
    begin(extender);
    struct bh_ext_filtered f = {.n = 0};
    const char *error = filter(&f);
    snprintf(text, sizeof text, "%s", f.n_failed ? f.failed[0].reason : error);
    end();
    bh_arena_fini(&a);
    return text;
}

static const char *file_of(const char *name, const char *text)
{
    static char path[4][256];
    static unsigned n;
    char *p = path[n++ % 4];

    snprintf(p, sizeof path[0], "%s/%s", bh_test_tmpdir(), name);
    CU_ASSERT_FATAL(bh_write_file(p, text, strlen(text), 0600) == 0);
    return p;
}

static char *base64(const char *text)
{
    size_t n = strlen(text);
    char *out = bh_malloc(n * 2 + 8);

    EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)text, (int)n);
    return out;
}

static void test_tls(void)
{
    struct cert ca = cert_make("ca", NULL, NULL);
    struct cert extender = cert_make("server", &ca, "IP:127.0.0.1,DNS:extender.test");
    struct cert client = cert_make("client", &ca, NULL);
    struct cert other = cert_make("other ca", NULL, NULL);
    char *wrong = base64(other.pem), *right = base64(ca.pem), tls[4096];

    signal(SIGPIPE, SIG_IGN); /* as every daemon does */
    server_says = "{\"FailedNodes\":{\"n1\":\"hello %s\"}}";
    server_start(&server, &extender, NULL);
    const char *ca_file = file_of("ca.pem", ca.pem);
    CU_ASSERT_PTR_NOT_NULL(strstr(over_tls("", false), "certificate"));
    FX_STR(over_tls("", true), "hello nobody"); /* without a CA this means: do not look */
    FX_STR(over_tls("{'insecure':true}", false), "hello nobody");
    snprintf(tls, sizeof tls, "{'caFile':'%s'}", ca_file);
    FX_STR(over_tls(tls, false), "hello nobody");
    FX_STR(over_tls(tls, true), "hello nobody");
    snprintf(tls, sizeof tls, "{'caFile':'%s','serverName':'extender.test'}", ca_file);
    FX_STR(over_tls(tls, false), "hello nobody");
    snprintf(tls, sizeof tls, "{'caFile':'%s','serverName':'other.test'}", ca_file);
    CU_ASSERT_PTR_NOT_NULL(strstr(over_tls(tls, false), "other.test"));
    /* data beats the file */
    snprintf(tls, sizeof tls, "{'caFile':'%s','caData':'%s'}", ca_file, wrong);
    CU_ASSERT_PTR_NOT_NULL(strstr(over_tls(tls, false), "certificate"));
    snprintf(tls, sizeof tls, "{'caFile':'%s','caData':'%s'}", file_of("wrong.pem", other.pem),
             right);
    FX_STR(over_tls(tls, false), "hello nobody");
    server_stop(&server);

    /* a certificate of ours is asked for; half of one is none */
    server_start(&server, &extender, &ca);
    const char *cert_file = file_of("cert.pem", client.pem);
    snprintf(tls, sizeof tls, "{'caFile':'%s','certFile':'%s','keyFile':'%s'}", ca_file, cert_file,
             file_of("key.pem", client.key_pem));
    FX_STR(over_tls(tls, false), "hello client");
    snprintf(tls, sizeof tls, "{'caFile':'%s','certFile':'%s'}", ca_file, cert_file);
    CU_ASSERT_PTR_NOT_NULL(strstr(over_tls(tls, false), "Post \"https://127.0.0.1:"));
    server_stop(&server);
    free(wrong);
    free(right);
    cert_free(&ca);
    cert_free(&extender);
    cert_free(&client);
    cert_free(&other);
}

static void test_start_errors(void)
{
    struct bh_sched_config c = {.n_extenders = BH_EXT_MAX + 1};
    struct bh_ext *x = NULL;
    struct bh_err err = {{0}};

    CU_ASSERT(bh_ext_new(&c, NULL, NULL, &x, &err) < 0);
    FX_STR(err.msg, "couldn't build extenders: there are 65, more than 64");
    c.n_extenders = 0;
    CU_ASSERT(bh_ext_new(&c, NULL, NULL, &x, &err) == 0);
    CU_ASSERT_PTR_NULL(x);
    bh_ext_free(x);
    struct bh_extender_config one = {
        .url_prefix = "https://127.0.0.1:1",
        .filter_verb = "f",
        .prioritize_verb = "",
        .preempt_verb = "",
        .bind_verb = "",
        .http_timeout_ns = 1,
        .tls = {.server_name = "", .cert_file = "", .key_file = "", .ca_file = "/nope"}};
    c.n_extenders = 1;
    c.extenders = &one;
    CU_ASSERT(bh_ext_new(&c, NULL, NULL, &x, &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "couldn't build extenders: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "/nope"));
}

BH_TESTS("scheduler/extender/call", {"a request", test_request},
         {"texts of errors", test_error_texts}, {"nobody there", test_unreachable},
         {"timeouts", test_timeouts}, {"an extender that hangs is left alone", test_breaker},
         {"the owner gives up", test_giving_up}, {"redirects", test_redirects},
         {"prefixes and verbs", test_urls}, {"prioritize asks all at once", test_all_at_once},
         {"metrics", test_metrics}, {"bind", test_bind},
         {"a bind that ends while a decision waits", test_bind_ends_meanwhile},
         {"an ignorable binder", test_bind_ignorable}, {"TLS", test_tls},
         {"what cannot be started", test_start_errors})
