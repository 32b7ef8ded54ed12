/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/http/test_gate.c - connections before libmicrohttpd: what goes in, what does
 * not, and how many may come in at all
 */
#include <openssl/ssl.h>
#include <signal.h>

#include "common/http/selfsigned.h"
#include "tests/unit/common/http/fixture.h"

#define BODY_MAX ((size_t)100000)

static struct bh_http_server *server;
static struct bh_http_options options;
static struct bh_http_req *deferred;
static unsigned handled, aborted, deferrals;
static SSL_CTX *ctx;
static bool no_tls;
static char big[3 << 20];

static void note_abort(void *arg)
{
    (void)arg;
    deferred = NULL;
    __atomic_add_fetch(&aborted, 1, __ATOMIC_SEQ_CST);
}

static void handle(struct bh_http_req *r, void *arg)
{
    struct bh_str body = bh_http_body(r);

    (void)arg;
    __atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
    if (bh_streq(bh_http_path(r), "/defer")) {
        deferred = r;
        bh_http_on_abort(r, note_abort, NULL);
        __atomic_add_fetch(&deferrals, 1, __ATOMIC_SEQ_CST);
    } else if (bh_streq(bh_http_path(r), "/big")) {
        bh_http_reply(r, 200, "text/plain", big, sizeof(big));
    } else {
        bh_http_reply(r, 200, "text/plain", body.p, body.n);
    }
}

static void start(void *arg)
{
    struct bh_err err = {""};

    (void)arg;
    CU_ASSERT_EQUAL_FATAL(bh_http_server_new(&fx.loop, &options, handle, NULL, &server, &err), 0);
    fx.port = bh_http_server_port(server);
}

static void stop(void *arg)
{
    (void)arg;
    bh_http_server_free(server);
}

static void begin(void)
{
    static struct bh_selfsigned pair;
    struct bh_err err;

    if (!ctx) {
        CU_ASSERT_EQUAL_FATAL(bh_selfsigned_make("test-ca", "test", "DNS:localhost", &pair, &err),
                              0);
        ctx = SSL_CTX_new(TLS_client_method());
        memset(big, 'b', sizeof(big));
    }
    handled = aborted = deferrals = 0;
    options.address = "127.0.0.1";
    options.max_body_bytes = BODY_MAX;
    options.tls_cert_pem = no_tls ? NULL : pair.cert_pem;
    options.tls_key_pem = no_tls ? NULL : pair.key_pem;
    signal(SIGPIPE, SIG_IGN); /* a server that ends first */
    fixture_begin();
    on_loop(start, NULL);
}

static void end(void)
{
    on_loop(stop, NULL);
    fixture_end();
    options = (struct bh_http_options){0};
}

static SSL *tls_over(int fd)
{
    SSL *s = SSL_new(ctx);

    SSL_set_fd(s, fd);
    if (SSL_connect(s) == 1)
        return s;
    close(SSL_get_fd(s));
    SSL_free(s);
    return NULL;
}

static SSL *tls_connect(void)
{
    return tls_over(connect_to(fx.port));
}

static void tls_close(SSL *s)
{
    close(SSL_get_fd(s));
    SSL_free(s);
}

static void put(SSL *s, const char *text)
{
    CU_ASSERT_EQUAL(SSL_write(s, text, (int)strlen(text)), (int)strlen(text));
}

/* Until the connection ends, or `until` has come. */
static char *get(SSL *s, const char *until)
{
    struct bh_buf b = {0};
    char part[16384];
    int n;

    while ((!until || !strstr(bh_buf_str(&b), until)) && (n = SSL_read(s, part, sizeof(part))) > 0)
        bh_buf_add(&b, part, (size_t)n);
    return b.p ? b.p : bh_strdup("");
}

static unsigned times(const char *text, const char *what)
{
    unsigned n = 0;

    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* Over TLS, or plain: what comes back, to the end. */
static char *said(const char *text)
{
    struct bh_buf b = {0};

    if (options.tls_cert_pem) {
        SSL *s = tls_connect();
        put(s, text);
        char *in = get(s, NULL);
        tls_close(s);
        return in;
    }
    int fd = connect_to(fx.port);
    send_text(fd, text);
    read_until(fd, &b, NULL);
    close(fd);
    return b.p ? b.p : bh_strdup("");
}

static void refuse_all(void)
{
    static const struct {
        const char *text, *answer;
    } bad[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\nHost: a\n\n", " 400 "},
        {"GET / HTTP/1.1\r\nHost: a\rB: c\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", " 400 "},
        {"GET / HTTP/1.7\r\nHost: a\r\n\r\n", " 400 "},
        {"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n d\r\n\r\n", " 400 "},
        {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", " 400 "},
        {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", " 400 "},
        {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\nx", " 400 "},
        {"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
         "1\r\nx\r\n0\r\n\r\n",
         " 400 "},
        {"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
         " 400 "},
        {"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", " 400 "},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", " 400 "},
        {"GET /\tb HTTP/1.1\r\nHost: a\r\n\r\n", " 400 "},
        {"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nx", " 400 "},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        char *in = said(bad[i].text);
        if (!strstr(in, bad[i].answer))
            fprintf(stderr, "%s\n gets %s\n", bad[i].text, in);
        CU_ASSERT_PTR_NOT_NULL(strstr(in, bad[i].answer));
        CU_ASSERT_PTR_NOT_NULL(strstr(in, "\r\nConnection: close\r\n"));
        CU_ASSERT_EQUAL(times(in, "HTTP/1.1 "), 1);
        free(in);
    }
    CU_ASSERT_EQUAL(handled, 0);
}

static void test_what_makes_no_sense(void)
{
    begin();
    refuse_all();
    end();
}

static void test_plain(void)
{
    struct bh_buf in = {0};
    char c;

    no_tls = true;
    options.max_connections = 2;
    options.idle_timeout_s = 1;
    begin();
    refuse_all();
    char *text = said("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\r\n\r\nhello"));
    free(text);
    int fd = connect_to(fx.port); /* has said all, and listens */
    send_text(fd, "GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.0\r\n\r\n");
    shutdown(fd, SHUT_WR);
    read_until(fd, &in, NULL);
    CU_ASSERT(in.n > sizeof(big));
    CU_ASSERT_EQUAL(times(in.p, " 200 OK\r\n"), 2);
    close(fd);
    int first = connect_to(fx.port), second = connect_to(fx.port);
    fd = connect_to(fx.port); /* waits for its turn, which comes when those have been silent */
    send_text(fd, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    bh_buf_reset(&in);
    read_until(fd, &in, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&in), " 200 "));
    CU_ASSERT_EQUAL(recv(first, &c, 1, 0), 0);
    CU_ASSERT_EQUAL(recv(second, &c, 1, 0), 0);
    close(fd), close(first), close(second);
    end();
    no_tls = false;
    bh_buf_fini(&in);
}

static void test_too_long_a_head(void)
{
    static char line[9000], text[10000];

    begin();
    memset(line, 'x', sizeof(line) - 1);
    snprintf(text, sizeof(text), "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n", line);
    SSL *s = tls_connect();
    put(s, text);
    char *in = get(s, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "HTTP/1.1 414 "));
    free(in);
    tls_close(s);
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nB: %s\r\n\r\n", line);
    s = tls_connect();
    put(s, text);
    in = get(s, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "HTTP/1.1 431 "));
    free(in);
    tls_close(s);
    end();
}

static void test_requests_behind_each_other(void)
{
    begin();
    char *in = said("GET /big HTTP/1.1\r\nHost: a\r\n\r\n"
                    "GET /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
                    "\r\nGET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n"
                    "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    CU_ASSERT_EQUAL(times(in, "HTTP/1.1 200 "), 2);
    CU_ASSERT_EQUAL(times(in, "HTTP/1.1 400 "), 1);
    CU_ASSERT(strlen(in) > sizeof(big));
    CU_ASSERT_EQUAL(handled, 2);
    free(in);
    in = said("PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirst" /* the last one */
              "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    CU_ASSERT_EQUAL(times(in, "HTTP/1.1 "), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "\r\nConnection: close\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "\r\n\r\nfirst"));
    free(in);
    in = said("PUT /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" /* this, too */
              "3;x=y\r\nsec\r\n3\r\nond\r\n0\r\nA: b\r\n\r\n"
              "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    CU_ASSERT_EQUAL(times(in, "HTTP/1.1 "), 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "second"));
    free(in);
    in = said("PUT /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
              "1\nx\r\n0\n\n" /* wherever that ends */
              "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    CU_ASSERT_EQUAL(times(in, "HTTP/1.1 "), 1);
    CU_ASSERT(handled <= 5);
    free(in);
    end();
}

static void test_a_request_in_pieces(void)
{
    static const char text[] = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
                               "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    begin();
    SSL *s = tls_connect();
    for (const char *p = text; *p; p++)
        CU_ASSERT_EQUAL(SSL_write(s, p, 1), 1);
    char *in = get(s, NULL);
    CU_ASSERT_EQUAL(times(in, "HTTP/1.1 200 "), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "hello"));
    free(in);
    tls_close(s);
    end();
}

static void test_bodies(void)
{
    static char text[BODY_MAX + 1];

    begin();
    SSL *s = tls_connect();
    memset(text, 'x', BODY_MAX);
    put(s, "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n");
    put(s, text);
    char *in = get(s, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, text));
    free(in);
    tls_close(s);
    s = tls_connect(); /* answered before it has been sent */
    put(s, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n");
    put(s, text);
    in = get(s, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "HTTP/1.1 413 "));
    free(in);
    tls_close(s);
    CU_ASSERT_EQUAL(handled, 1);
    s = tls_connect(); /* gone in the middle of it */
    put(s, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n123");
    tls_close(s);
    s = tls_connect();
    put(s, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    free(get(s, NULL));
    tls_close(s);
    CU_ASSERT_EQUAL(handled, 2);
    end();
}

static void wait_for(const unsigned *n, unsigned want)
{
    while (__atomic_load_n(n, __ATOMIC_SEQ_CST) < want)
        usleep(1000);
}

static void reply(void *arg)
{
    bh_http_on_abort(deferred, NULL, NULL);
    bh_http_reply(deferred, 200, NULL, arg, strlen(arg));
}

static void test_clients_that_leave(void)
{
    begin();
    SSL *s = tls_connect();
    put(s, "GET /defer HTTP/1.1\r\nHost: a\r\n\r\nGET /behind HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&deferrals, 1);
    CU_ASSERT_EQUAL(handled, 1); /* the second one waits outside */
    tls_close(s);
    wait_for(&aborted, 1);
    s = tls_connect();
    put(s, "GET /defer HTTP/1.1\r\nHost: a\r\n\r\nGET /behind HTTP/1.1\r\nHost: a\r\n"
           "Connection: close\r\n\r\n");
    wait_for(&deferrals, 2);
    on_loop(reply, (void *)(uintptr_t) "late");
    char *in = get(s, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, "\r\n\r\nlateHTTP/1.1 200 "));
    CU_ASSERT_EQUAL(handled, 3);
    free(in);
    tls_close(s);
    s = tls_connect(); /* does not read what it gets */
    put(s, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&handled, 4);
    tls_close(s);
    s = tls_connect();
    put(s, "GET /defer HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for(&deferrals, 3);
    end(); /* the server ends with one that waits */
    CU_ASSERT_EQUAL(aborted, 2);
    tls_close(s);
}

struct numbers {
    struct bh_metrics *m;
    struct bh_metric *refused;
    struct bh_cell *open;
};

static void make_numbers(struct numbers *n)
{
    n->m = bh_metrics_new();
    n->refused = bh_metric_new(n->m, BH_COUNTER, "refused_total", "R.", "why", NULL, 0);
    options.refused = n->refused;
    options.open = n->open =
        bh_metric_cell(bh_metric_new(n->m, BH_GAUGE, "open", "O.", "", NULL, 0));
}

static double refused(const struct numbers *n, const char *why)
{
    return bh_cell_value(bh_metric_cell(n->refused, why));
}

static void test_a_reserve_for_probes(void)
{
    static const char *const paths[] = {"/livez", NULL};
    struct numbers n;
    SSL *s[2], *t;

    make_numbers(&n);
    options.per_address = 2;
    options.reserve = 2;
    options.reserve_paths = paths;
    begin();
    for (size_t i = 0; i < 2; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(s[i] = tls_connect());
    static const struct {
        const char *path, *answer;
    } asks[] = {{"/livez", " 200 "},  {"/livez/ping", " 200 "}, {"/livez?verbose", " 200 "},
                {"/livezz", " 503 "}, {"/", " 503 "},           {"/metrics?/livez", " 503 "},
                {"/x/livez", " 503 "}};
    for (size_t i = 0; i < BH_ARRAY_LEN(asks); i++) {
        char text[100];
        CU_ASSERT_PTR_NOT_NULL_FATAL(t = tls_connect());
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", asks[i].path);
        put(t, text);
        char *in = get(t, NULL); /* it ends after one */
        CU_ASSERT_PTR_NOT_NULL(strstr(in, asks[i].answer));
        free(in);
        tls_close(t);
    }
    int idle[20]; /* the newest two are there, the others made room */
    for (size_t i = 0; i < BH_ARRAY_LEN(idle); i++)
        idle[i] = connect_to(fx.port);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t = tls_connect());
    put(t, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
    char *in = get(t, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(in, " 200 "));
    free(in);
    tls_close(t);
    for (size_t i = 0; i < BH_ARRAY_LEN(idle); i++)
        close(idle[i]);
    put(s[0], "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"); /* those that have a place keep it */
    in = get(s[0], "\r\n\r\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(in, " 200 "));
    free(in);
    for (size_t i = 0; i < 2; i++)
        tls_close(s[i]);
    end();
    CU_ASSERT(refused(&n, "reserve") >= 4 + 18);
    CU_ASSERT_EQUAL(bh_cell_value(n.open), 0);
    bh_metrics_free(n.m);
}

static void test_a_full_house(void)
{
    struct numbers n;
    SSL *s[2];
    char c;

    make_numbers(&n);
    options.max_connections = 2;
    begin();
    for (size_t i = 0; i < 2; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(s[i] = tls_connect());
    int third = connect_to(fx.port);
    CU_ASSERT(recv(third, &c, 1, 0) <= 0);
    close(third);
    tls_close(s[0]);
    while (!(s[0] = tls_connect())) /* until the server has noticed */
        usleep(1000);
    for (size_t i = 0; i < 2; i++)
        tls_close(s[i]);
    end();
    CU_ASSERT(refused(&n, "full") >= 1);
    bh_metrics_free(n.m);
}

/* As another address of this host. */
static int connect_as(const char *address)
{
    struct sockaddr_in from = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET,
                             .sin_port = htons(fx.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL(inet_pton(AF_INET, address, &from.sin_addr), 1);
    CU_ASSERT_EQUAL(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
    CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void test_one_address(void)
{
    struct numbers n;
    char c;

    make_numbers(&n);
    options.per_address = 1;
    begin();
    SSL *s = tls_connect();
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    int second = connect_to(fx.port);
    CU_ASSERT(recv(second, &c, 1, 0) <= 0);
    close(second);
    SSL *neighbour = tls_over(connect_as("127.0.0.2")); /* has a place of its own */
    CU_ASSERT_PTR_NOT_NULL_FATAL(neighbour);
    tls_close(neighbour);
    tls_close(s);
    end();
    CU_ASSERT_EQUAL(refused(&n, "address"), 1);
    bh_metrics_free(n.m);
}

static void test_silence(void)
{
    struct numbers n;
    char c;

    make_numbers(&n);
    options.idle_timeout_s = 1;
    begin();
    int fd = connect_to(fx.port); /* no handshake */
    SSL *mute = tls_connect();    /* no request */
    SSL *part = tls_connect(), *body = tls_connect(), *idle = tls_connect();
    put(part, "GET / HTTP/1.1\r\n");
    put(body, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx");
    put(idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    char *in = get(idle, NULL); /* keep-alive has an end as well */
    CU_ASSERT_PTR_NOT_NULL(strstr(in, " 200 "));
    free(in);
    CU_ASSERT(SSL_read(body, &c, 1) <= 0);
    CU_ASSERT(SSL_read(part, &c, 1) <= 0);
    CU_ASSERT(SSL_read(mute, &c, 1) <= 0);
    CU_ASSERT_EQUAL(recv(fd, &c, 1, 0), 0);
    close(fd);
    fd = connect_to(fx.port);
    send_text(fd, "GET / HTTP/1.1\r\n\r\n"); /* no TLS */
    while (recv(fd, &c, 1, 0) > 0)
        ;
    close(fd);
    tls_close(mute), tls_close(part), tls_close(body), tls_close(idle);
    end();
    CU_ASSERT_EQUAL(refused(&n, "slow"), 4);
    CU_ASSERT_EQUAL(refused(&n, "handshake"), 1);
    bh_metrics_free(n.m);
}

BH_TESTS("common/http/gate", {"what makes no sense", test_what_makes_no_sense},
         {"plain HTTP", test_plain}, {"too long a head", test_too_long_a_head},
         {"requests behind each other", test_requests_behind_each_other},
         {"a request in pieces", test_a_request_in_pieces}, {"bodies", test_bodies},
         {"clients that leave", test_clients_that_leave},
         {"a reserve for probes", test_a_reserve_for_probes}, {"a full house", test_a_full_house},
         {"one address", test_one_address}, {"silence", test_silence})
