/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/http/test_burst.c - pipelined requests: against our server, and against servers
 * that cut, lie and close
 */
#include "simulator/http/burst.h"
#include "simulator/http/server.h"
#include "tests/unit/common/http/fixture.h"

enum { MANY = 500 };
struct asked {
    int n, code, error;
    bool sent;
    int retry_after_s;
    char body[64];
    size_t body_n;
};
static struct asked asked[MANY];
static size_t answered, in_order;
static uv_loop_t loop;
static struct bh_burst *burst;

static void on_done(void *arg, const struct bh_burst_reply *r)
{
    struct asked *a = arg;
    a->n++;
    a->code = r->code;
    a->error = r->error;
    a->sent = r->sent;
    a->retry_after_s = r->retry_after_s;
    a->body_n = r->body.n;
    snprintf(a->body, sizeof(a->body), "%.*s", (int)BH_MIN(r->body.n, sizeof(a->body) - 1),
             r->body.n ? r->body.p : "");
    in_order += a == &asked[answered];
    answered++;
}

static void client(uint16_t port, unsigned depth, uint64_t silence_ns)
{
    char url[64];
    struct bh_err err = {{0}};
    memset(asked, 0, sizeof(asked));
    answered = in_order = 0;
    uv_loop_init(&loop);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    CU_ASSERT_EQUAL_FATAL(bh_burst_new(&loop,
                                       &(struct bh_burst_options){.server = url,
                                                                  .depth = depth,
                                                                  .silence_ns = silence_ns,
                                                                  .max_reply_bytes = 1000,
                                                                  .headers = "X-All: 1\r\n"},
                                       &burst, &err),
                          0);
}

static void post(size_t i, const char *path, const char *body)
{
    bh_burst_send(burst, &(struct bh_burst_call){.method = body ? "POST" : "GET",
                                                 .path = path,
                                                 .content_type = body ? "text/plain" : NULL,
                                                 .body = bh_str_c(body),
                                                 .on_done = on_done,
                                                 .arg = &asked[i]});
}

static void until(size_t n)
{
    uint64_t end = bh_mono_ns() + WAIT_S * 1000000000ull;
    while (answered < n && bh_mono_ns() < end)
        uv_run(&loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL(answered, n);
}

static void client_end(void)
{
    bh_burst_free(burst);
    burst = NULL;
    bh_loop_drain_close(&loop);
}

/* ---- against our server ---------------------------------------------------------------------- */

static struct bh_http_server *server;
static _Atomic int requests;

static void handle(struct bh_http_req *r, void *arg)
{
    struct bh_str b = bh_http_body(r);
    (void)arg;
    requests++;
    if (bh_streq(bh_http_path(r), "/stream")) {
        struct bh_http_stream *s = bh_http_stream_start(r, "text/plain", NULL, NULL);
        struct bh_http_chunk *c = bh_http_chunk_new("chunk", 5);
        bh_http_stream_add(s, c);
        bh_http_stream_add(s, c);
        bh_http_chunk_unref(c);
        bh_http_stream_end(s);
    } else if (bh_streq(bh_http_path(r), "/large")) {
        char *p = bh_calloc(1, 1001);
        bh_http_reply(r, 200, "text/plain", p, 1001);
        free(p);
    } else {
        const char *all = bh_http_header(r, "x-all");
        bh_http_set_header(r, "Retry-After", "7");
        bh_http_reply(r, all ? 200 : 400, "text/plain", b.p, b.n);
    }
}

static void start(void *arg)
{
    struct bh_err err = {{0}};
    CU_ASSERT_EQUAL(bh_sim_http_server_new(&fx.loop,
                                           &(struct bh_http_options){.address = "127.0.0.1"},
                                           handle, arg, &server, &err),
                    0);
    fx.port = bh_http_server_port(server);
}
static void stop(void *arg)
{
    (void)arg;
    bh_http_server_free(server);
}

static void test_answers_come_in_order(void)
{
    char body[32];
    requests = 0;
    fixture_begin();
    on_loop(start, NULL);
    client(fx.port, 16, 0);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(body, sizeof(body), "body %zu", i);
        post(i, "/x", body);
    }
    until(MANY);
    CU_ASSERT_EQUAL(in_order, MANY);
    CU_ASSERT_EQUAL(requests, MANY);
    for (size_t i = 0; i < MANY; i++) {
        snprintf(body, sizeof(body), "body %zu", i);
        CU_ASSERT(asked[i].n == 1 && asked[i].code == 200 && asked[i].retry_after_s == 7);
        CU_ASSERT_STRING_EQUAL(asked[i].body, body);
    }
    client_end();
    on_loop(stop, NULL);
    fixture_end();
}

static void test_chunked_and_large_answers(void)
{
    fixture_begin();
    on_loop(start, NULL);
    client(fx.port, 4, 0);
    post(0, "/stream", NULL);
    post(1, "/x", "after");
    until(2);
    CU_ASSERT_STRING_EQUAL(asked[0].body, "chunkchunk");
    CU_ASSERT_STRING_EQUAL(asked[1].body, "after");
    post(2, "/large", NULL);
    until(3);
    CU_ASSERT_EQUAL(asked[2].error, -EMSGSIZE);
    post(3, "/x", "on a new connection");
    until(4);
    CU_ASSERT_EQUAL(asked[3].code, 200);
    client_end();
    on_loop(stop, NULL);
    fixture_end();
}

/* ---- against servers that misbehave ---------------------------------------------------------- */

struct script {
    int fd;
    pthread_t thread;
    const char *says[4]; /* one connection each; NULL ends */
    size_t after;        /* requests read before it speaks */
    bool hold;           /* keeps the connection until the client ends it */
};

static void *play(void *arg)
{
    struct script *s = arg;
    for (size_t i = 0; s->says[i]; i++) {
        struct bh_buf in = {0};
        char part[4096];
        size_t heads = 0;
        int fd = accept(s->fd, NULL, NULL);
        while (heads < s->after) {
            ssize_t n = recv(fd, part, sizeof(part), 0);
            if (n <= 0)
                break;
            bh_buf_add(&in, part, (size_t)n);
            heads = 0;
            for (const char *p = in.p; (p = strstr(p, "\r\n\r\n")); p += 4)
                heads++;
        }
        send_text(fd, s->says[i]);
        while (s->hold && recv(fd, part, sizeof(part), 0) > 0)
            ;
        shutdown(fd, SHUT_WR);
        while (recv(fd, part, sizeof(part), 0) > 0)
            ;
        close(fd);
        bh_buf_fini(&in);
    }
    return NULL;
}

static uint16_t script_begin(struct script *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL(bind(s->fd, (struct sockaddr *)&a, n), 0);
    listen(s->fd, 8);
    getsockname(s->fd, (struct sockaddr *)&a, &n);
    pthread_create(&s->thread, NULL, play, s);
    return ntohs(a.sin_port);
}

static void script_end(struct script *s)
{
    client_end();
    pthread_join(s->thread, NULL);
    close(s->fd);
}

#define OK_CLOSE "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n"

static void test_what_follows_a_close_is_sent_again(void)
{
    struct script s = {.says = {OK_CLOSE "a", OK_CLOSE "b", OK_CLOSE "c"}, .after = 1};
    client(script_begin(&s), 8, 0);
    for (size_t i = 0; i < 3; i++)
        post(i, "/x", NULL);
    until(3);
    CU_ASSERT_STRING_EQUAL(asked[0].body, "a");
    CU_ASSERT_STRING_EQUAL(asked[1].body, "b");
    CU_ASSERT_STRING_EQUAL(asked[2].body, "c");
    script_end(&s);
}

static void test_a_cut_connection(void)
{
    static const char *const cuts[] = {
        "", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"};
    for (size_t i = 0; i < BH_ARRAY_LEN(cuts); i++) {
        struct script s = {.says = {cuts[i]}, .after = 2};
        client(script_begin(&s), 2, 0);
        post(0, "/x", NULL);
        post(1, "/x", NULL);
        until(2);
        for (size_t k = 0; k < 2; k++) {
            CU_ASSERT_EQUAL(asked[k].error, -ECONNRESET);
            CU_ASSERT(asked[k].sent && !asked[k].code);
        }
        script_end(&s);
    }
}

static void test_nonsense(void)
{
    static const char *const texts[] = {
        "hello\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n", /* no end */
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\n: x\r\n\r\n",
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        struct script s = {.says = {texts[i]}, .after = 1, .hold = true};
        client(script_begin(&s), 1, 0);
        post(0, "/x", NULL);
        until(1);
        CU_ASSERT_EQUAL(asked[0].error, -EBADMSG);
        script_end(&s);
    }
}

static void test_an_answer_that_nobody_asked_for(void)
{
    struct script s = {.says = {OK_CLOSE "a"}, .after = 0, .hold = true};
    client(script_begin(&s), 1, 0);
    post(0, "/x", NULL); /* it connects; the answer may come before the request leaves */
    until(1);
    CU_ASSERT(asked[0].code == 200 || asked[0].error == -EBADMSG);
    script_end(&s);
}

static void test_answers_in_pieces_and_informational_ones(void)
{
    struct script s = {
        .says = {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: "
                 "chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
                 "HTTP/1.1 204 No Content\r\n\r\n"},
        .after = 2,
        .hold = true};
    client(script_begin(&s), 2, 0);
    post(0, "/x", NULL);
    post(1, "/x", NULL);
    until(2);
    CU_ASSERT_STRING_EQUAL(asked[0].body, "abcde");
    CU_ASSERT_EQUAL(asked[1].code, 204);
    script_end(&s);
}

static void test_silence(void)
{
    struct script s = {.says = {""}, .after = 1, .hold = true};
    client(script_begin(&s), 1, 50000000);
    post(0, "/x", NULL);
    until(1);
    CU_ASSERT_EQUAL(asked[0].error, -ETIMEDOUT);
    script_end(&s);
}

static void test_nobody_listens(void)
{
    struct script s = {.says = {NULL}};
    uint16_t port = script_begin(&s);
    pthread_join(s.thread, NULL);
    close(s.fd);
    client(port, 1, 0);
    post(0, "/x", NULL);
    post(1, "/x", NULL);
    until(2);
    CU_ASSERT_EQUAL(asked[0].error, -ECONNREFUSED);
    CU_ASSERT_FALSE(asked[0].sent);
    post(2, "/x", NULL);
    client_end(); /* before it had a chance */
    CU_ASSERT_EQUAL(asked[2].error, -ECANCELED);
}

static void test_what_is_no_server(void)
{
    struct bh_burst *b = NULL;
    struct bh_err err = {{0}};
    uv_loop_init(&loop);
    CU_ASSERT_EQUAL(
        bh_burst_new(&loop, &(struct bh_burst_options){.server = "https://x"}, &b, &err),
        -EPROTONOSUPPORT);
    CU_ASSERT_EQUAL(
        bh_burst_new(&loop, &(struct bh_burst_options){.server = "http://:1"}, &b, &err), -EINVAL);
    CU_ASSERT_EQUAL(
        bh_burst_new(&loop, &(struct bh_burst_options){.server = "http://[::1"}, &b, &err),
        -EINVAL);
    CU_ASSERT_PTR_NULL(b);
    bh_loop_drain_close(&loop);
}

BH_TESTS("simulator/http/burst", {"answers come in order", test_answers_come_in_order},
         {"chunked and too large answers", test_chunked_and_large_answers},
         {"what follows a close is sent again", test_what_follows_a_close_is_sent_again},
         {"a connection that is cut", test_a_cut_connection}, {"nonsense", test_nonsense},
         {"an answer that nobody asked for", test_an_answer_that_nobody_asked_for},
         {"pieces, trailers, informational answers", test_answers_in_pieces_and_informational_ones},
         {"silence", test_silence}, {"nobody listens", test_nobody_listens},
         {"what is no server", test_what_is_no_server})
