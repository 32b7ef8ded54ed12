/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_sim_api.c - any request to the built-in API server gets a well-formed answer
 *
 * Input: "METHOD path\nContent-Type\nAccept\n" and the body. It is sent over a real connection; the
 * answer must be HTTP with a known code, and a JSON answer must be JSON. The server is made anew
 * now and then.
 */
#include "common/base/buf.h"
#include "common/base/loop.h"
#include "common/data/json.h"
#include "simulator/server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef FUZZ_ONLY /* fuzz_console.c: the requests that it is for, and one that is made first */
#define FUZZ_ONLY(path)   ((path) != NULL)
#define FUZZ_FIRST        NULL
#define INPUTS_PER_SERVER 1000
#endif
#define LOOP_TURNS_MAX 2000

static uv_loop_t loop;
static struct bh_sim *sim;

static void request(const char *data, size_t size);

static void ensure_server(void)
{
    static const struct bh_sim_options o = {.no_kubelet = true, .first_revision = 1000};
    static unsigned inputs;
    struct bh_err err;
    if (sim && ++inputs % INPUTS_PER_SERVER)
        return;
    if (sim) {
        bh_sim_free(sim);
        bh_loop_drain_close(&loop);
    }
    uv_loop_init(&loop);
    if (bh_sim_new(&loop, &o, &sim, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        abort();
    }
    const char *first = FUZZ_FIRST;
    if (first)
        request(first, strlen(first));
}

/* Takes the next line; control characters would only test libmicrohttpd's request parser. */
static struct bh_str line(struct bh_str *rest)
{
    const char *nl = memchr(rest->p, '\n', rest->n);
    struct bh_str l = {rest->p, nl ? (size_t)(nl - rest->p) : rest->n};
    rest->n -= l.n + (nl != NULL);
    rest->p += l.n + (nl != NULL);
    for (size_t i = 0; i < l.n; i++) {
        if ((unsigned char)l.p[i] < ' ' || (unsigned char)l.p[i] >= 127)
            l.n = i;
    }
    return l;
}

static bool make_request(struct bh_buf *b, const char *data, size_t size)
{
    struct bh_str rest = {data, size};
    struct bh_str first = line(&rest), type = line(&rest), accept = line(&rest);
    const char *space = memchr(first.p, ' ', first.n);
    if (!space || space == first.p || first.n - (size_t)(space - first.p) > 4000 || type.n > 200 ||
        accept.n > 500)
        return false;
    BH_CLEANUP(bh_freep)
    char *path = bh_strndup(space + 1, first.n - (size_t)(space + 1 - first.p));
    if (!FUZZ_ONLY(path))
        return false;
    bh_buf_addf(b, "%.*s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", (int)first.n,
                first.p);
    bh_buf_addf(b, "Content-Type: %.*s\r\nAccept: %.*s\r\nContent-Length: %zu\r\n\r\n", (int)type.n,
                type.p, (int)accept.n, accept.p, rest.n);
    bh_buf_add(b, rest.p, rest.n);
    return true;
}

static int connect_server(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(bh_sim_port(sim))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 && errno != EINPROGRESS))
        abort();
    return fd;
}

/* Reads until the server closes, or (watches, waiting requests) until it has nothing more to
 * say. */
static bool exchange(int fd, const struct bh_buf *out, struct bh_buf *in)
{
    size_t sent = 0;
    for (int turn = 0; turn < LOOP_TURNS_MAX; turn++) {
        char buf[65536];
        uv_run(&loop, loop.active_reqs.count ? UV_RUN_ONCE : UV_RUN_NOWAIT); /* a worker is at it */
        ssize_t n = sent < out->n ? send(fd, out->p + sent, out->n - sent, MSG_NOSIGNAL) : 0;
        sent += n > 0 ? (size_t)n : 0;
        n = recv(fd, buf, sizeof(buf), 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN))
            return true;
        if (n > 0)
            bh_buf_add(in, buf, (size_t)n);
    }
    return false;
}

static void check_answer(struct bh_buf *in)
{
    static struct bh_arena a;
    struct bh_json *v;
    char *body = strstr(in->p, "\r\n\r\n");
    if (strncmp(in->p, "HTTP/1.1 ", 9) != 0 || !body)
        abort();
    if (!strstr(in->p, "Content-Type: application/json\r\n") || strstr(in->p, "chunked") ||
        strncmp(in->p + 9, "304", 3) == 0)
        return;
    body += 4;
    size_t n = in->n - (size_t)(body - in->p);
    if (n && bh_json_parse(&a, body, n, BH_JSON_NUL, &v, NULL) < 0) {
        fprintf(stderr, "not JSON: %s\n", body);
        abort();
    }
    bh_arena_reset(&a);
}

static void request(const char *data, size_t size)
{
    struct bh_buf out = {0}, in = {0};

    if (make_request(&out, data, size)) {
        int fd = connect_server();
        bool whole = exchange(fd, &out, &in);
        if (whole && in.n && strncmp(data, "HEAD ", 5) != 0)
            check_answer(&in);
        close(fd);
        for (int i = 0; i < 5; i++)
            uv_run(&loop, UV_RUN_NOWAIT);
    }
    bh_buf_fini(&out);
    bh_buf_fini(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && size <= 65536) {
        ensure_server();
        request((const char *)data, size);
    }
    return 0;
}
