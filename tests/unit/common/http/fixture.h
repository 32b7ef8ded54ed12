/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/http/fixture.h - a server in a thread of its own, raw clients in the test's
 *
 * The loop thread owns the server; the test talks through sockets and, where it must, through
 * on_loop(), which runs a function there and waits for it.
 */
#ifndef BH_TEST_HTTP_FIXTURE_H
#define BH_TEST_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/loop.h"
#include "common/http/server.h"
#include "tests/unit/harness.h"

#define WAIT_S 120

static struct fixture {
    uv_loop_t loop;
    uv_async_t async;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t done;
    void (*call)(void *);
    void *call_arg;
    bool called;
    uint16_t port;
} fx;

static inline void fixture_async(uv_async_t *a)
{
    (void)a;
    pthread_mutex_lock(&fx.lock);
    void (*call)(void *) = fx.call;
    fx.call = NULL;
    if (call) {
        call(fx.call_arg);
        fx.called = true;
        pthread_cond_signal(&fx.done);
    }
    pthread_mutex_unlock(&fx.lock);
}

static inline void on_loop(void (*fn)(void *), void *arg)
{
    pthread_mutex_lock(&fx.lock);
    fx.call = fn;
    fx.call_arg = arg;
    fx.called = false;
    uv_async_send(&fx.async);
    while (!fx.called)
        pthread_cond_wait(&fx.done, &fx.lock);
    pthread_mutex_unlock(&fx.lock);
}

static inline void *fixture_thread(void *arg)
{
    (void)arg;
    uv_run(&fx.loop, UV_RUN_DEFAULT);
    return NULL;
}

/* The loop runs; a server is started on it with on_loop(). */
static inline void fixture_begin(void)
{
    pthread_mutex_init(&fx.lock, NULL);
    pthread_cond_init(&fx.done, NULL);
    uv_loop_init(&fx.loop);
    uv_async_init(&fx.loop, &fx.async, fixture_async);
    pthread_create(&fx.thread, NULL, fixture_thread, NULL);
}

static inline void fixture_close_async(void *arg)
{
    (void)arg;
    uv_close((uv_handle_t *)&fx.async, NULL);
}

static inline void fixture_end(void)
{
    on_loop(fixture_close_async, NULL);
    pthread_join(fx.thread, NULL);
    bh_loop_drain_close(&fx.loop);
}

static inline int connect_to(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval wait = {.tv_sec = WAIT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static inline bool send_text(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n) {
        ssize_t put = send(fd, text, n, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        text += put;
        n -= (size_t)put;
    }
    return true;
}

/* Reads into b until it contains `until` (NULL: until the end). False at the end or the
 * deadline. */
static inline bool read_until(int fd, struct bh_buf *b, const char *until)
{
    char part[65536];
    for (;;) {
        if (until && strstr(bh_buf_str(b), until))
            return true;
        ssize_t n = recv(fd, part, sizeof(part), 0);
        if (n <= 0)
            return !until && n == 0;
        bh_buf_add(b, part, (size_t)n);
    }
}

/* One request on a connection of its own that the server is asked to close; the whole reply. */
static inline char *ask(const char *request_line, const char *headers, const char *body)
{
    struct bh_buf out = {0}, in = {0};
    int fd = connect_to(fx.port);
    bh_buf_addf(&out, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s", request_line,
                headers ? headers : "");
    if (body)
        bh_buf_addf(&out, "Content-Length: %zu\r\n", strlen(body));
    bh_buf_addf(&out, "\r\n%s", body ? body : "");
    send_text(fd, out.p);
    read_until(fd, &in, NULL);
    close(fd);
    bh_buf_fini(&out);
    return bh_buf_take(&in);
}

/* Waits until the loop thread has made *flag non-zero. */
static inline bool wait_flag(_Atomic int *flag)
{
    for (uint64_t end = bh_mono_ns() + WAIT_S * 1000000000ull; bh_mono_ns() < end; sched_yield())
        if (*flag)
            return true;
    return false;
}
#endif
