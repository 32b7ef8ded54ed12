/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/http/test_server.c - requests, deferred replies, streams
 */
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/resource.h>

#include "simulator/http/head.h"
#include "simulator/http/server.h"
#include "tests/unit/common/http/fixture.h"

static struct bh_http_server *server;
static struct bh_http_req *deferred;
static struct bh_http_stream *stream;
static _Atomic int aborted, closed, deferrals, streams;
static const char *cert_pem, *key_pem;

static void note_abort(void *arg)
{
    (void)arg;
    deferred = NULL;
    aborted++;
}
static void note_close(void *arg)
{
    (void)arg;
    stream = NULL;
    closed++;
}

static void add_param(void *arg, const char *name, const char *value)
{
    bh_buf_addf(arg, "[%s=%s]", name, value);
}

static void describe(struct bh_http_req *r)
{
    struct bh_buf b = {0};
    const char *accept = bh_http_header(r, "accept"), *q = bh_http_query(r, "q");
    bh_buf_addf(&b, "%s %s from %s accept=%s q=%s ", bh_http_method(r), bh_http_path(r),
                bh_http_peer(r), accept ? accept : "none", q ? q : "none");
    bh_http_query_each(r, add_param, &b);
    bh_buf_addf(&b, " body=%.*s", (int)bh_http_body(r).n, bh_http_body(r).p);
    bh_http_set_header(r, "X-One", "1");
    bh_http_set_header(r, "X-Two", "2");
    bh_http_reply(r, 203, "text/plain", b.p, b.n);
    bh_buf_fini(&b);
}

static void handle(struct bh_http_req *r, void *arg)
{
    CU_ASSERT_PTR_EQUAL(arg, &server);
    if (bh_streq(bh_http_path(r), "/defer")) {
        deferred = r;
        bh_http_on_abort(r, note_abort, NULL);
        deferrals++;
    } else if (bh_streq(bh_http_path(r), "/stream")) {
        stream = bh_http_stream_start(r, "application/json", note_close, NULL);
        streams++;
    } else if (bh_streq(bh_http_path(r), "/empty")) {
        bh_http_reply(r, 204, NULL, NULL, 0);
    } else if (bh_streq(bh_http_path(r), "/echo")) {
        bh_http_reply(r, 200, NULL, bh_http_body(r).p, bh_http_body(r).n);
    } else {
        describe(r);
    }
}

static void start(void *arg)
{
    struct bh_http_options o = {.address = "127.0.0.1",
                                .max_body_bytes = 100000,
                                .max_connections = 600,
                                .tls_cert_pem = cert_pem,
                                .tls_key_pem = key_pem};
    struct bh_err err = {{0}};
    (void)arg;
    int rc = bh_sim_http_server_new(&fx.loop, &o, handle, &server, &server, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.msg);
    CU_ASSERT_EQUAL(rc, 0);
    fx.port = bh_http_server_port(server);
}
static void stop(void *arg)
{
    (void)arg;
    bh_http_server_free(server);
    server = NULL;
}

static void begin(void)
{
    aborted = closed = deferrals = streams = 0;
    fixture_begin();
    on_loop(start, NULL);
}
static void end(void)
{
    if (server)
        on_loop(stop, NULL);
    fixture_end();
}

static void test_a_handler_sees_the_request(void)
{
    begin();
    char *text = ask("POST /a%2Fb?q=1+2&x&q=3", "Accept: text/x\r\n", "hello");
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 203 ", 13), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\r\nX-One: 1\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\r\nX-Two: 2\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\r\nContent-Type: text/plain\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "POST /a/b from 127.0.0.1 accept=text/x q=1 2 "
                                        "[q=1 2][x=][q=3] body=hello"));
    free(text);
    text = ask("GET /plain", NULL, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "GET /plain from 127.0.0.1 accept=none q=none  body="));
    free(text);
    text = ask("GET /empty", NULL, NULL);
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 204 ", 13), 0);
    free(text);
    text = ask("GET /x%00y", NULL, NULL);
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 400 ", 13), 0);
    free(text);
    end();
}

static void test_bodies_up_to_the_limit(void)
{
    begin();
    enum { LIMIT = 100000 };
    char *body = bh_malloc(LIMIT + 2);
    memset(body, 'b', LIMIT + 1);
    body[LIMIT + 1] = '\0';
    char *text = ask("POST /echo", NULL, body);
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 413 ", 13), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Content-Type: application/json\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Request entity too large: limit is 100000\""));
    free(text);
    body[LIMIT] = '\0';
    text = ask("POST /echo", NULL, body);
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 200 ", 13), 0);
    CU_ASSERT(strlen(text) > LIMIT && strspn(text + strlen(text) - LIMIT, "b") == LIMIT);
    free(text);
    text = ask("POST /echo", "Content-Length: 99999999999999999999999999\r\n", NULL);
    CU_ASSERT(*text == '\0' || strncmp(text, "HTTP/1.1 4", 10) == 0);
    free(text);
    free(body);
    end();
}

static void test_a_chunked_body_above_the_limit(void)
{
    begin();
    static const size_t sizes[] = {100000, 150000, 1000000};
    static const char *const want[] = {"HTTP/1.1 200 ", "HTTP/1.1 413 ", ""};
    for (size_t i = 0; i < BH_ARRAY_LEN(sizes); i++) {
        struct bh_buf out = {0}, in = {0};
        bh_buf_adds(&out, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                          "Connection: close\r\n\r\n");
        for (size_t n = 0; n < sizes[i]; n += 1000)
            bh_buf_addf(&out, "3e8\r\n%01000d\r\n", 0);
        bh_buf_adds(&out, "0\r\n\r\n");
        int fd = connect_to(fx.port);
        send_text(fd, out.p); /* the last one is cut while it sends */
        read_until(fd, &in, NULL);
        CU_ASSERT_EQUAL(strncmp(bh_buf_str(&in), want[i], 13), 0);
        close(fd);
        bh_buf_fini(&out), bh_buf_fini(&in);
    }
    end();
}

static void test_many_requests_on_one_connection(void)
{
    begin();
    struct bh_buf out = {0}, in = {0};
    for (int i = 0; i < 100; i++) /* pipelined */
        bh_buf_addf(&out, "GET /n%d HTTP/1.1\r\nHost: x\r\n%s\r\n", i,
                    i == 99 ? "Connection: close\r\n" : "");
    int fd = connect_to(fx.port);
    send_text(fd, out.p);
    CU_ASSERT(read_until(fd, &in, NULL));
    const char *at = bh_buf_str(&in);
    for (int i = 0; at && i < 100; i++) {
        char want[32];
        snprintf(want, sizeof(want), "GET /n%d from", i);
        at = strstr(at, want);
        CU_ASSERT_PTR_NOT_NULL(at);
    }
    close(fd);
    bh_buf_fini(&out), bh_buf_fini(&in);
    end();
}

static void reply_late(void *arg)
{
    if (deferred)
        bh_http_reply(deferred, 202, "text/plain", arg, strlen(arg));
    deferred = NULL;
}

static void test_deferred_replies(void)
{
    begin();
    int fd = connect_to(fx.port);
    struct bh_buf in = {0};
    for (int i = 1; i <= 3; i++) { /* the connection stays usable */
        send_text(fd, "GET /defer HTTP/1.1\r\nHost: x\r\n\r\n");
        while (deferrals < i)
            sched_yield();
        static char late[] = "late";
        on_loop(reply_late, late);
        bh_buf_reset(&in);
        CU_ASSERT(read_until(fd, &in, "\r\n\r\nlate"));
        CU_ASSERT_EQUAL(strncmp(bh_buf_str(&in), "HTTP/1.1 202 ", 13), 0);
    }
    CU_ASSERT_EQUAL(aborted, 0);
    close(fd);
    bh_buf_fini(&in);
    end();
}

static void test_a_client_that_leaves_aborts_a_deferred_request(void)
{
    begin();
    int fd = connect_to(fx.port);
    send_text(fd, "GET /defer HTTP/1.1\r\nHost: x\r\n\r\n");
    CU_ASSERT(wait_flag(&deferrals));
    close(fd);
    CU_ASSERT(wait_flag(&aborted));
    char *text = ask("GET /alive", NULL, NULL);
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 203 ", 13), 0);
    free(text);
    CU_ASSERT_EQUAL(aborted, 1);
    end();
}

/* Adds `arg` as one chunk and drops it: the stream has its own reference. */
static void add_text(void *arg)
{
    struct bh_http_chunk *c = bh_http_chunk_new(arg, strlen(arg));
    if (stream)
        bh_http_stream_add(stream, c);
    bh_http_chunk_unref(c);
}
static void end_stream(void *arg)
{
    (void)arg;
    if (stream)
        bh_http_stream_end(stream);
}
static void abort_stream(void *arg)
{
    (void)arg;
    if (stream)
        bh_http_stream_abort(stream);
}

static int open_stream(struct bh_buf *in)
{
    int fd = connect_to(fx.port);
    send_text(fd, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    CU_ASSERT(read_until(fd, in, "\r\n\r\n")); /* headers come before any chunk */
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(in), "Transfer-Encoding: chunked"));
    bh_buf_reset(in);
    return fd;
}

static void test_a_stream_sends_each_event_at_once_and_ends(void)
{
    begin();
    struct bh_buf in = {0};
    int fd = open_stream(&in);
    char text[32];
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof(text), "{event %d}\n", i);
        on_loop(add_text, text);
        CU_ASSERT(read_until(fd, &in, text));
    }
    CU_ASSERT_EQUAL(closed, 0);
    on_loop(end_stream, NULL);
    CU_ASSERT(read_until(fd, &in, "\r\n0\r\n\r\n"));
    CU_ASSERT(wait_flag(&closed));
    send_text(fd, "GET /after HTTP/1.1\r\nHost: x\r\n\r\n"); /* the connection lives on */
    CU_ASSERT(read_until(fd, &in, "GET /after from"));
    close(fd);
    bh_buf_fini(&in);
    end();
    CU_ASSERT_EQUAL(closed, 1);
}

static void add_burst(void *arg)
{
    char text[32];
    size_t n = 0;
    (void)arg;
    for (int i = 0; i < 500; i++) {
        n += (size_t)snprintf(text, sizeof(text), "<%d>", i);
        add_text(text);
    }
    CU_ASSERT_EQUAL(bh_http_stream_pending(stream), n);
    bh_http_stream_end(stream);
    add_text((char[]){"too late"});
}

static void test_a_burst_is_sent_in_few_pieces_in_order(void)
{
    begin();
    struct bh_buf in = {0};
    int fd = open_stream(&in);
    on_loop(add_burst, NULL);
    CU_ASSERT(read_until(fd, &in, "\r\n0\r\n\r\n"));
    int pieces = 0;
    for (const char *p = bh_buf_str(&in); (p = strstr(p, "\r\n")); p += 2)
        pieces++;
    CU_ASSERT(pieces <= 8);
    CU_ASSERT_PTR_NOT_NULL(strstr(in.p, "<0><1><2>"));
    CU_ASSERT_PTR_NOT_NULL(strstr(in.p, "<499>"));
    CU_ASSERT_PTR_NULL(strstr(in.p, "too late"));
    close(fd);
    bh_buf_fini(&in);
    end();
}

static void test_a_client_that_leaves_closes_a_silent_stream(void)
{
    begin();
    struct bh_buf in = {0};
    int fd = open_stream(&in);
    close(fd);
    CU_ASSERT(wait_flag(&closed));
    bh_buf_fini(&in);
    end();
    CU_ASSERT_EQUAL(closed, 1);
}

static void test_an_aborted_stream_is_cut(void)
{
    begin();
    struct bh_buf in = {0};
    int fd = open_stream(&in);
    on_loop(abort_stream, NULL);
    CU_ASSERT(read_until(fd, &in, NULL));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&in), "0\r\n\r\n")); /* no orderly end */
    CU_ASSERT(wait_flag(&closed));
    close(fd);
    bh_buf_fini(&in);
    end();
}

static void fill(void *arg)
{
    struct bh_http_chunk *c = bh_calloc(1, sizeof(*c) + (1 << 20));
    (void)arg;
    c->refs = 1;
    c->n = 1 << 20;
    for (int i = 0; i < 64; i++)
        bh_http_stream_add(stream, c);
    CU_ASSERT_EQUAL(c->refs, 65);
    bh_http_chunk_unref(c);
    CU_ASSERT_EQUAL(bh_http_stream_pending(stream), 64u << 20);
}

static void test_a_reader_that_does_not_read_can_be_cut(void)
{
    begin();
    struct bh_buf in = {0};
    int fd = open_stream(&in);
    on_loop(fill, NULL);
    char one;
    CU_ASSERT_EQUAL(recv(fd, &one, 1, 0), 1); /* the server is in the middle of it */
    CU_ASSERT_EQUAL(closed, 0);
    on_loop(abort_stream, NULL);
    CU_ASSERT(wait_flag(&closed));
    close(fd);
    bh_buf_fini(&in);
    end();
}

static void test_freeing_the_server_ends_everything(void)
{
    begin();
    struct bh_buf in = {0};
    int idle = connect_to(fx.port), waits = connect_to(fx.port), half = connect_to(fx.port);
    int reads = open_stream(&in);
    send_text(half, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
    send_text(waits, "GET /defer HTTP/1.1\r\nHost: x\r\n\r\n");
    CU_ASSERT(wait_flag(&deferrals));
    on_loop(stop, NULL);
    CU_ASSERT_EQUAL(aborted, 1);
    CU_ASSERT_EQUAL(closed, 1);
    CU_ASSERT(read_until(reads, &in, NULL));
    close(idle), close(waits), close(half), close(reads);
    bh_buf_fini(&in);
    end();
}

enum { CLIENTS = 1100 }; /* enough for the pacing of resumes (drive.c) */
static struct bh_http_stream *many[CLIENTS];
static _Atomic int n_many, n_closed;
static void close_one(void *arg)
{
    many[(uintptr_t)arg] = NULL;
    n_closed++;
}
static void handle_many(struct bh_http_req *r, void *arg)
{
    (void)arg;
    uintptr_t i = (uintptr_t)n_many;
    many[i] = bh_http_stream_start(r, "text/plain", close_one, (void *)i);
    n_many++;
}
static void start_many(void *arg)
{
    struct bh_http_options o = {.address = "127.0.0.1", .max_connections = CLIENTS + 8};
    struct bh_err err;
    (void)arg;
    CU_ASSERT_EQUAL(bh_sim_http_server_new(&fx.loop, &o, handle_many, NULL, &server, &err), 0);
    fx.port = bh_http_server_port(server);
}
static void shout(void *arg)
{
    struct bh_http_chunk *c = bh_http_chunk_new(arg, strlen(arg));
    for (int i = 0; i < CLIENTS; i++)
        if (many[i])
            bh_http_stream_add(many[i], c);
    bh_http_chunk_unref(c);
}

static void test_many_streams_hear_every_event(void)
{
    static int fd[CLIENTS];
    static struct bh_buf in[CLIENTS];
    struct rlimit lim;
    getrlimit(RLIMIT_NOFILE, &lim);
    if (lim.rlim_max < 2 * CLIENTS + 100) {
        bh_test_skip("RLIMIT_NOFILE is too low");
        return;
    }
    lim.rlim_cur = lim.rlim_max;
    setrlimit(RLIMIT_NOFILE, &lim);
    n_many = n_closed = 0;
    fixture_begin();
    on_loop(start_many, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = connect_to(fx.port);
        send_text(fd[i], "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    while (n_many < CLIENTS)
        sched_yield();
    char text[32];
    for (int event = 0; event < 20; event++) {
        snprintf(text, sizeof(text), "<event %d>", event);
        on_loop(shout, text);
    }
    for (int i = 0; i < CLIENTS; i++)
        CU_ASSERT(read_until(fd[i], &in[i], "<event 19>"));
    for (int i = 0; i < CLIENTS; i += 2)
        close(fd[i]);
    while (n_closed < CLIENTS / 2)
        sched_yield();
    on_loop(shout, (char[]){"<last>"});
    for (int i = 1; i < CLIENTS; i += 2) {
        CU_ASSERT(read_until(fd[i], &in[i], "<last>"));
        close(fd[i]);
    }
    for (int i = 0; i < CLIENTS; i++)
        bh_buf_fini(&in[i]);
    end();
    CU_ASSERT_EQUAL(n_closed, CLIENTS);
}

struct start_case {
    struct bh_http_options o;
    const char *says;
    int rc;
};
static void start_badly(void *arg)
{
    struct start_case *c = arg;
    struct bh_http_server *s = NULL;
    struct bh_err err = {{0}};
    c->rc = bh_sim_http_server_new(&fx.loop, &c->o, handle, &server, &s, &err);
    CU_ASSERT_PTR_NULL(s);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, c->says));
}

static void test_start_failures_say_why(void)
{
    begin();
    struct start_case cases[] = {
        {{.address = "localhost"}, "localhost: not an IPv4 or IPv6 address", 0},
        {{.address = "127.0.0.1", .port = fx.port}, "Address already in use", 0},
        {{.address = "192.0.2.1"}, "could not listen on 192.0.2.1", 0},
        {{.address = "127.0.0.1", .tls_cert_pem = "x"}, "both a certificate and a key", 0},
        {{.address = "127.0.0.1", .tls_cert_pem = "x", .tls_key_pem = "y"}, "HTTP server", 0}};
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        on_loop(start_badly, &cases[i]);
        CU_ASSERT(cases[i].rc < 0);
    }
    end();
}

static void start_six(void *arg)
{
    struct bh_http_options o = {.address = arg};
    struct bh_err err;
    int rc = bh_sim_http_server_new(&fx.loop, &o, handle, &server, &server, &err);
    if (rc < 0)
        server = NULL;
}

static void test_ipv6_and_every_address(void)
{
    static char six[] = "[::1]", any[] = "";
    fixture_begin();
    on_loop(start_six, six);
    if (!server) {
        fixture_end();
        bh_test_skip("no IPv6 here");
        return;
    }
    struct sockaddr_in6 a = {.sin6_family = AF_INET6,
                             .sin6_port = htons(bh_http_server_port(server)),
                             .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct bh_buf in = {0};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    send_text(fd, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    read_until(fd, &in, NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&in), "from ::1 "));
    close(fd);
    bh_buf_fini(&in);
    on_loop(stop, NULL);
    on_loop(start_six, any);
    CU_ASSERT_PTR_NOT_NULL_FATAL(server);
    fx.port = bh_http_server_port(server);
    char *text = ask("GET /x", NULL, NULL); /* over IPv4 */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "from 127.0.0.1 "));
    free(text);
    end();
}

/* What comes back for text, until the server ends the connection. */
static char *talk(const char *text)
{
    struct bh_buf in = {0};
    int fd = connect_to(fx.port);
    send_text(fd, text);
    read_until(fd, &in, NULL);
    close(fd);
    return bh_buf_take(&in);
}

static void test_what_comes_in_pieces(void)
{
    static const char text[] =
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3;x\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
        "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    begin();
    for (size_t step = 1; step < sizeof(text); step += step < 8 ? 1 : 37) {
        struct bh_buf in = {0};
        int fd = connect_to(fx.port);
        for (size_t at = 0; at < sizeof(text) - 1; at += step) {
            char part[sizeof(text)];
            snprintf(part, sizeof(part), "%.*s", (int)step, text + at);
            send_text(fd, part);
        }
        CU_ASSERT(read_until(fd, &in, NULL));
        CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&in), "\r\n\r\nhelloHTTP/1.1 200 OK"));
        CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&in), "\r\n\r\nabcdeHTTP/1.1 203 "));
        CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&in), "GET /last from"));
        close(fd);
        bh_buf_fini(&in);
    }
    end();
}

static void test_requests_behind_an_error_are_not_looked_at(void)
{
    static const char *const bad[] = {
        "GET / HTTP/1.1\r\nHost: x\r\nBad Header: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n",
        "\x16\x03\x01\n",
    };
    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_buf b = {0};
        bh_buf_addf(&b, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n%s", bad[i]);
        bh_buf_adds(&b, "GET /second HTTP/1.1\r\nHost: x\r\n\r\n");
        char *text = talk(b.p);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "GET /first from"));
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "HTTP/1.1 4"));
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "\r\nConnection: close\r\n"));
        CU_ASSERT_PTR_NULL(strstr(text, "second"));
        free(text);
        bh_buf_fini(&b);
    }
    end();
}

/* Where one reader of a connection sees the end of a chunk's line and another does not, one of them
 * sees a request that is none (request smuggling). */
static void test_lines_of_chunks(void)
{
    static const char *const good[] = {
        "5\r\nhello\r\n0\r\n\r\n",
        "5 \t\r\nhello\r\n0\r\n\r\n",
        "5;a=b\r\nhello\r\n0 ;c\r\nTrailer: x\r\n\r\n",
    };
    static const char *const bad[] = {
        "5\nhello\r\n0\r\n\r\n",
        "5;a\nb\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "5;\x01\r\nhello\r\n0\r\n\r\n",
        "5\x7f\r\nhello\r\n0\r\n\r\n",
        "5 5\r\nhello\r\n0\r\n\r\n",
        "5 x\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nA: b\nC: d\r\n\r\n",
    };
    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(good) + BH_ARRAY_LEN(bad); i++) {
        bool fine = i < BH_ARRAY_LEN(good);
        char *request = bh_asprintf("POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                    "Transfer-Encoding: chunked\r\n\r\n%s",
                                    fine ? good[i] : bad[i - BH_ARRAY_LEN(good)]);
        char *text = talk(request);
        CU_ASSERT_EQUAL(strncmp(text, fine ? "HTTP/1.1 200 " : "HTTP/1.1 400 ", 13), 0);
        CU_ASSERT_EQUAL(strstr(text, "\r\n\r\nhello") != NULL, fine);
        free(text);
        free(request);
    }
    end();
}

static void test_trailers_end_somewhere(void)
{
    static const unsigned lines[] = {1, 200, 1000}; /* of 40 bytes: 8 KiB are allowed */
    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(lines); i++) {
        struct bh_buf b = {0};
        bh_buf_adds(&b, "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n");
        for (unsigned k = 0; k < lines[i]; k++)
            bh_buf_addf(&b, "Trailer: %029u\r\n", k);
        if (i == 0) /* a long one */
            bh_buf_addf(&b, "Signature: %0500u\r\n", 0u);
        bh_buf_adds(&b, "\r\n");
        char *text = talk(b.p);
        const char *want = lines[i] * 40 < BH_HTTP_HEAD_MAX ? "HTTP/1.1 200 " : "HTTP/1.1 400 ";
        CU_ASSERT_EQUAL(strncmp(text, want, 13), 0);
        free(text);
        bh_buf_fini(&b);
    }
    end();
}

/* ---- idle ---- */

static void start_impatient(void *arg)
{
    struct bh_http_options o = {.address = "127.0.0.1", .idle_timeout_s = 1};
    struct bh_err err;
    (void)arg;
    CU_ASSERT_EQUAL(bh_sim_http_server_new(&fx.loop, &o, handle, &server, &server, &err), 0);
    fx.port = bh_http_server_port(server);
}

static uv_timer_t late_timer;

static void on_late_timer(uv_timer_t *t)
{
    reply_late((char[]){"late"});
    add_text((char[]){"more"});
    uv_close((uv_handle_t *)t, NULL);
}

/* The loop is away for longer than the idle timeout: the timer that answers and the one that looks
 * for idle connections are due in the same turn, in this order. */
static void answer_in_the_turn_of_the_tick(void *arg)
{
    (void)arg;
    uv_timer_init(&fx.loop, &late_timer);
    uv_timer_start(&late_timer, on_late_timer, 1, 0);
    poll(NULL, 0, 1500);
}

static void begin_impatient(void)
{
    aborted = closed = deferrals = streams = 0;
    fixture_begin();
    on_loop(start_impatient, NULL);
}

static void test_an_answer_after_the_idle_timeout(void)
{
    struct bh_buf in = {0};
    begin_impatient();
    int fd = connect_to(fx.port);
    send_text(fd, "GET /defer HTTP/1.1\r\nHost: x\r\n\r\n");
    CU_ASSERT(wait_flag(&deferrals));
    on_loop(answer_in_the_turn_of_the_tick, NULL);
    CU_ASSERT(read_until(fd, &in, "\r\n\r\nlate"));
    CU_ASSERT_EQUAL(aborted, 0);
    close(fd);
    bh_buf_fini(&in);
    end();
}

/* A stream that got something to send in the turn that ends its connection. */
static void test_an_idle_connection_that_has_just_been_woken(void)
{
    struct bh_buf in = {0};
    begin_impatient();
    int fd = open_stream(&in);
    on_loop(fill, NULL);
    char one;
    CU_ASSERT_EQUAL(recv(fd, &one, 1, 0), 1); /* the rest stays where it is */
    on_loop(answer_in_the_turn_of_the_tick, NULL);
    CU_ASSERT(wait_flag(&closed));
    char *text = ask("GET /alive", NULL, NULL);
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 203 ", 13), 0);
    free(text);
    close(fd);
    bh_buf_fini(&in);
    end();
}

static void test_head_continue_and_old_clients(void)
{
    begin();
    struct bh_buf in = {0};
    char *text = talk("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n"
                      "GET /empty HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const char *second = strstr(text, "\r\n\r\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\r\nContent-Length: "));
    CU_ASSERT_EQUAL(strncmp(second + 4, "HTTP/1.1 204 ", 13), 0); /* no body in between */
    free(text);
    text = talk("GET /old HTTP/1.0\r\n\r\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "GET /old from"));
    free(text);
    int fd = connect_to(fx.port);
    send_text(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: "
                  "100-continue\r\n\r\n");
    CU_ASSERT(read_until(fd, &in, "HTTP/1.1 100 Continue\r\n\r\n"));
    send_text(fd, "hi");
    CU_ASSERT(read_until(fd, &in, "\r\n\r\nhi"));
    close(fd);
    bh_buf_fini(&in);
    end();
}

static void test_what_follows_a_deferred_request_waits(void)
{
    begin();
    struct bh_buf in = {0};
    static char late[] = "late";
    int fd = connect_to(fx.port);
    send_text(fd, "GET /defer HTTP/1.1\r\nHost: x\r\n\r\nGET /n1 HTTP/1.1\r\nHost: x\r\n\r\n"
                  "GET /stream HTTP/1.1\r\nHost: x\r\n\r\nGET /n2 HTTP/1.1\r\nHost: x\r\n\r\n");
    CU_ASSERT(wait_flag(&deferrals));
    CU_ASSERT_EQUAL(streams, 0);
    on_loop(reply_late, late);
    CU_ASSERT(wait_flag(&streams));
    on_loop(add_text, (char[]){"<event>"});
    CU_ASSERT(read_until(fd, &in, "<event>"));
    CU_ASSERT_PTR_NULL(strstr(in.p, "/n2"));
    on_loop(end_stream, NULL);
    CU_ASSERT(read_until(fd, &in, "GET /n2 from"));
    const char *l = strstr(in.p, "late"), *one = strstr(in.p, "GET /n1 from"),
               *e = strstr(in.p, "<event>"), *two = strstr(in.p, "GET /n2 from");
    CU_ASSERT(l && one && e && two && l < one && one < e && e < two);
    close(fd);
    bh_buf_fini(&in);
    end();
}

/* A client that sends and sends and does not read: the server stops reading it, and goes on when
 * the client does. */
static void test_a_client_that_does_not_read_its_answers(void)
{
    enum { REQUESTS = 3000, BODY = 4000 };
    begin();
    struct bh_buf one = {0}, in = {0};
    bh_buf_addf(&one, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%0*d", BODY,
                BODY, 0);
    int fd = connect_to(fx.port);
    struct timeval soon = {.tv_usec = 200000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
    size_t total = one.n * REQUESTS, sent = 0;
    while (sent < total) { /* until nothing goes any more */
        ssize_t n = send(fd, one.p + sent % one.n, one.n - sent % one.n, MSG_NOSIGNAL);
        if (n <= 0)
            break;
        sent += (size_t)n;
    }
    CU_ASSERT(sent < total); /* else the server would have taken 12 MB of answers into memory */
    char *text = ask("GET /alive", NULL, NULL);
    CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 203 ", 13), 0);
    free(text);
    size_t whole = sent / one.n, seen = 0;
    while (seen < whole) {
        char part[65536];
        ssize_t n = recv(fd, part, sizeof(part), 0);
        if (n <= 0)
            break;
        bh_buf_add(&in, part, (size_t)n);
        const char *end = NULL;
        for (const char *p = bh_buf_str(&in); (p = strstr(p, "HTTP/1.1 200 OK\r\n")); p++)
            seen += (end = p) != NULL;
        if (end)
            bh_buf_consume(&in, (size_t)(end + 1 - in.p));
    }
    CU_ASSERT_EQUAL(seen, whole);
    close(fd);
    bh_buf_fini(&one), bh_buf_fini(&in);
    end();
}

static void test_a_client_that_has_said_all(void)
{
    begin();
    struct bh_buf in = {0};
    int fd = connect_to(fx.port);
    send_text(fd, "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"
                  "GET /half HTTP/1.1\r\n");
    shutdown(fd, SHUT_WR);
    CU_ASSERT(read_until(fd, &in, NULL));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&in), "GET /a from"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&in), "GET /b from"));
    CU_ASSERT_PTR_NULL(strstr(bh_buf_str(&in), "half"));
    close(fd);
    bh_buf_fini(&in);
    end();
}

static void test_more_clients_than_connections(void)
{
    static int fd[620]; /* the server takes 600 */
    struct bh_buf in = {0};
    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(fd); i++) {
        fd[i] = connect_to(fx.port);
        send_text(fd[i], "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(fd); i++) { /* each that goes makes room for one */
        bh_buf_reset(&in);
        CU_ASSERT(read_until(fd[i], &in, "GET /x from"));
        close(fd[i]);
    }
    bh_buf_fini(&in);
    end();
}

/* A self-signed certificate, as text. */
static void make_certificate(char **ret_cert, char **ret_key)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"127.0.0.1", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_sign(x, key, EVP_sha256());
    BIO *b = BIO_new(BIO_s_mem());
    char *p;
    PEM_write_bio_X509(b, x);
    size_t n = (size_t)BIO_get_mem_data(b, &p);
    *ret_cert = bh_strndup(p, n);
    BIO_free(b);
    b = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL);
    n = (size_t)BIO_get_mem_data(b, &p);
    *ret_key = bh_strndup(p, n);
    BIO_free(b);
    X509_free(x);
    EVP_PKEY_free(key);
}

static bool tls_read_until(SSL *ssl, struct bh_buf *in, const char *until)
{
    char part[4096];
    while (!strstr(bh_buf_str(in), until)) {
        int n = SSL_read(ssl, part, sizeof(part));
        if (n <= 0)
            return false;
        bh_buf_add(in, part, (size_t)n);
    }
    return true;
}

static void test_streams_over_tls(void)
{
    char *cert, *key;
    make_certificate(&cert, &key);
    cert_pem = cert, key_pem = key;
    begin();
    cert_pem = key_pem = NULL;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    int fd = connect_to(fx.port);
    struct bh_buf in = {0};
    SSL_set_fd(ssl, fd);
    CU_ASSERT_EQUAL_FATAL(SSL_connect(ssl), 1);
    static const char request[] = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";
    SSL_write(ssl, request, sizeof(request) - 1);
    CU_ASSERT(tls_read_until(ssl, &in, "\r\n\r\n"));
    for (int i = 0; i < 20; i++) {
        char text[32];
        snprintf(text, sizeof(text), "<event %d>", i);
        on_loop(add_text, text);
        CU_ASSERT(tls_read_until(ssl, &in, text));
    }
    on_loop(add_burst, NULL);
    CU_ASSERT(tls_read_until(ssl, &in, "<499>"));
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    close(fd);
    bh_buf_fini(&in);
    end();
    free(cert), free(key);
}

BH_TESTS("simulator/http/server", {"a handler sees the request", test_a_handler_sees_the_request},
         {"bodies up to the limit", test_bodies_up_to_the_limit},
         {"a chunked body above the limit", test_a_chunked_body_above_the_limit},
         {"many requests on one connection", test_many_requests_on_one_connection},
         {"deferred replies", test_deferred_replies},
         {"a client that leaves aborts a deferred request",
          test_a_client_that_leaves_aborts_a_deferred_request},
         {"a stream sends each event at once and ends",
          test_a_stream_sends_each_event_at_once_and_ends},
         {"a burst is sent in few pieces, in order", test_a_burst_is_sent_in_few_pieces_in_order},
         {"a client that leaves closes a silent stream",
          test_a_client_that_leaves_closes_a_silent_stream},
         {"an aborted stream is cut", test_an_aborted_stream_is_cut},
         {"a reader that does not read can be cut", test_a_reader_that_does_not_read_can_be_cut},
         {"freeing the server ends everything", test_freeing_the_server_ends_everything},
         {"many streams hear every event", test_many_streams_hear_every_event},
         {"start failures say why", test_start_failures_say_why},
         {"IPv6, and every address", test_ipv6_and_every_address},
         {"what comes in pieces", test_what_comes_in_pieces},
         {"requests behind an error are not looked at",
          test_requests_behind_an_error_are_not_looked_at},
         {"lines of chunks that could be read in two ways", test_lines_of_chunks},
         {"trailers end somewhere", test_trailers_end_somewhere},
         {"an answer after the idle timeout", test_an_answer_after_the_idle_timeout},
         {"an idle connection that has just been woken",
          test_an_idle_connection_that_has_just_been_woken},
         {"HEAD, 100-continue, HTTP/1.0", test_head_continue_and_old_clients},
         {"what follows a deferred request waits", test_what_follows_a_deferred_request_waits},
         {"a client that does not read its answers", test_a_client_that_does_not_read_its_answers},
         {"a client that has said all", test_a_client_that_has_said_all},
         {"more clients than connections", test_more_clients_than_connections},
         {"streams over TLS", test_streams_over_tls})
