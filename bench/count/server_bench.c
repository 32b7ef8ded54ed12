/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/count/server_bench.c - what a pod costs the built-in API server
 *
 *   server_bench [pipelined|serial] [PODS] [NODES]
 *
 * One pod is what a scheduled pod means to the server: its creation, its binding, its Scheduled
 * event, the kubelet's status, and all of that to two watches of pods in protobuf (berth-watcher,
 * `berth load`) and one of nodes. Prints the CPU time of the server's thread per pod.
 *   pipelined  one connection, 64 requests on the wire
 *   serial     16 connections with one request each, as HTTP clients without pipelining do
 * Instructions, where callgrind is installed (the thread with bh_sim_handle is the server's):
 *   valgrind --tool=callgrind --separate-threads=yes build/bench/server_bench pipelined 2000 100
 */
#include "common/api/client.h"
#include "common/base/loop.h"
#include "common/data/json.h"
#include "simulator/server/server.h"
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define WATCHES     3
#define CONNECTIONS 16

struct server {
    pthread_t thread;
    uv_loop_t loop;
    uv_async_t stop;
    struct bh_sim *sim;
    uint16_t port;
};
struct bench {
    uv_loop_t loop;
    struct bh_api_client *client[CONNECTIONS]; /* one connection each */
    size_t n_clients, pods, nodes, next, done, failed, width;
    bool creating_nodes;
};
struct pod {
    struct bench *b;
    size_t i, slot; /* slot: whose connection */
    int step;
    char uid[40];
};

static uint64_t cpu_ns(pthread_t t)
{
    clockid_t clock;
    struct timespec ts;

    pthread_getcpuclockid(t, &clock);
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- the server ------------------------------------------------------------------------------ */

static void on_stop(uv_async_t *a)
{
    struct server *s = a->data;

    bh_sim_free(s->sim);
    uv_close((uv_handle_t *)a, NULL);
    uv_stop(&s->loop);
}

static void *serve(void *arg)
{
    struct server *s = arg;

    uv_run(&s->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- watchers -------------------------------------------------------------------------------- */

struct watcher {
    pthread_t thread;
    int fd[WATCHES];
    atomic_size_t bytes;
};

static int watch(uint16_t port, const char *what)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (connect(fd, (const struct sockaddr *)(const void *)&a, sizeof(a)) < 0)
        exit(1);
    dprintf(fd,
            "GET /api/v1/%s?watch=true HTTP/1.1\r\nHost: 127.0.0.1\r\nBerth-Projection: "
            "scheduling\r\nAccept: application/vnd.kubernetes.protobuf;stream=watch\r\n\r\n",
            what);
    return fd;
}

static void *read_watches(void *arg)
{
    static char buf[1 << 20];
    struct watcher *w = arg;
    struct pollfd p[WATCHES];
    size_t open = WATCHES;

    for (int i = 0; i < WATCHES; i++)
        p[i] = (struct pollfd){.fd = w->fd[i], .events = POLLIN};
    while (open && poll(p, WATCHES, -1) > 0) {
        for (int i = 0; i < WATCHES; i++) {
            ssize_t n = p[i].revents ? read(p[i].fd, buf, sizeof(buf)) : -1;
            if (n > 0)
                w->bytes += (size_t)n;
            if (p[i].revents && n <= 0) {
                p[i].fd = -1;
                open--;
            }
        }
    }
    return NULL;
}

/* ---- the clients ----------------------------------------------------------------------------- */

static void next_pod(struct bench *b, size_t slot);
static void step(struct pod *p);

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct pod *p = arg;
    struct bench *b = p->b;

    if (r->code != 201) {
        if (!b->failed++)
            fprintf(stderr, "%s %d %.*s\n", r->error ? r->error : "", r->code, (int)r->body.n,
                    r->body.p);
        p->step = 2;
    }
    if (p->step == 0 && !b->creating_nodes) {
        const char *uid = memmem(r->body.p, r->body.n, "\"uid\":\"", 7);
        snprintf(p->uid, sizeof(p->uid), "%.36s", uid ? uid + 7 : "");
    }
    if (++p->step < 3 && !b->creating_nodes) {
        step(p);
        return;
    }
    b->done++;
    next_pod(b, p->slot);
    free(p);
}

static void send_json(struct pod *p, const char *path, const struct bh_buf *body)
{
    bh_api_start(p->b->client[p->slot], &(struct bh_api_call){.method = "POST",
                                                              .path = path,
                                                              .content_type = "application/json",
                                                              .body = body->p,
                                                              .body_n = body->n,
                                                              .on_done = on_done,
                                                              .arg = p});
}

static void step(struct pod *p)
{
    static struct bh_buf body, path;

    bh_buf_reset(&body);
    bh_buf_reset(&path);
    if (p->b->creating_nodes) {
        bh_buf_addf(&body,
                    "{\"metadata\":{\"name\":\"node-%06zu\"},\"status\":{\"allocatable\":{\"cpu\":"
                    "\"32\",\"memory\":\"256Gi\",\"pods\":\"110\"}}}",
                    p->i);
        bh_buf_adds(&path, "/api/v1/nodes");
    } else if (p->step == 0) {
        bh_buf_addf(
            &body,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"default\","
            "\"name\":\"load-%06zu\",\"labels\":{\"app\":\"load\"}},\"spec\":{\"containers\":[{"
            "\"name\":\"c\",\"image\":\"registry.k8s.io/pause:3.9\",\"resources\":{"
            "\"requests\":{\"cpu\":\"100m\",\"memory\":\"200Mi\"}}}]}}",
            p->i);
        bh_buf_adds(&path, "/api/v1/namespaces/default/pods");
    } else if (p->step == 1) {
        bh_buf_addf(
            &body,
            "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"load-%06zu\","
            "\"namespace\":\"default\",\"uid\":\"%s\"},\"target\":{\"kind\":\"Node\",\"name\":"
            "\"node-%06zu\"}}",
            p->i, p->uid, p->i % p->b->nodes);
        bh_buf_addf(&path, "/api/v1/namespaces/default/pods/load-%06zu/binding?timeout=30s", p->i);
    } else {
        bh_buf_addf(
            &body,
            "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":"
            "\"load-%06zu.18f2a0b1c2d3e4f5\",\"namespace\":\"default\"},\"eventTime\":"
            "\"2026-01-01T00:00:00.000000Z\",\"reportingController\":\"default-scheduler\","
            "\"reportingInstance\":\"default-scheduler-host\",\"action\":\"Binding\",\"reason\""
            ":\"Scheduled\",\"regarding\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
            "\"namespace\":\"default\",\"name\":\"load-%06zu\",\"uid\":\"%s\"},\"note\":"
            "\"Successfully assigned default/load-%06zu to node-%06zu\",\"type\":\"Normal\"}",
            p->i, p->i, p->uid, p->i, p->i % p->b->nodes);
        bh_buf_adds(&path, "/apis/events.k8s.io/v1/namespaces/default/events"
                           "?fieldManager=kube-scheduler");
    }
    send_json(p, path.p, &body);
}

static void next_pod(struct bench *b, size_t slot)
{
    if (b->next == (b->creating_nodes ? b->nodes : b->pods))
        return;
    struct pod *p = bh_malloc(sizeof(*p));
    *p = (struct pod){.b = b, .i = b->next++, .slot = slot};
    step(p);
}

static void run(struct bench *b, bool nodes)
{
    b->creating_nodes = nodes;
    b->next = b->done = 0;
    for (size_t i = 0; i < b->width; i++)
        next_pod(b, i % b->n_clients);
    while (b->done < (nodes ? b->nodes : b->pods))
        uv_run(&b->loop, UV_RUN_ONCE);
}

static void measure(bool pipelined, size_t pods, size_t nodes)
{
    struct server s = {0};
    struct watcher w = {0};
    struct bench b = {.pods = pods, .nodes = nodes, .width = pipelined ? 64 : CONNECTIONS};
    char url[64];

    struct bh_err err = {{0}};
    uv_loop_init(&s.loop);
    uv_async_init(&s.loop, &s.stop, on_stop);
    s.stop.data = &s;
    if (bh_sim_new(&s.loop, &(struct bh_sim_options){0}, &s.sim, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    s.port = bh_sim_port(s.sim);
    pthread_create(&s.thread, NULL, serve, &s);
    uv_loop_init(&b.loop);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", s.port);
    for (; b.n_clients < (pipelined ? 1 : CONNECTIONS); b.n_clients++)
        if (bh_api_client_new(&b.loop, &(struct bh_api_config){.server = url},
                              &(struct bh_api_options){.max_connections = 1, .lean = true},
                              &b.client[b.n_clients], NULL) < 0)
            exit(1);
    run(&b, true);
    w.fd[0] = watch(s.port, "pods");
    w.fd[1] = watch(s.port, "pods");
    w.fd[2] = watch(s.port, "nodes");
    pthread_create(&w.thread, NULL, read_watches, &w);
    usleep(200000);
    uint64_t before = cpu_ns(s.thread);
    run(&b, false);
    usleep(100000); /* the kubelet's last ones */
    double us = (double)(cpu_ns(s.thread) - before) / 1e3 / (double)pods;
    printf("%-9s %7zu pods %6zu nodes  %6.2f us of the server a pod, %zu watched bytes a pod%s\n",
           pipelined ? "pipelined" : "serial", pods, nodes, us, w.bytes / pods,
           b.failed ? "  (with failures)" : "");
    while (b.n_clients)
        bh_api_client_free(b.client[--b.n_clients]);
    bh_loop_drain_close(&b.loop);
    uv_async_send(&s.stop);
    pthread_join(s.thread, NULL);
    pthread_join(w.thread, NULL);
    bh_loop_drain_close(&s.loop);
}

int main(int argc, char **argv)
{
    size_t pods = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
    size_t nodes = argc > 3 ? strtoul(argv[3], NULL, 10) : 5000;

    if (!pods || !nodes || (argc > 1 && !strchr("ps", *argv[1]))) {
        fprintf(stderr, "usage: server_bench [pipelined|serial] [PODS] [NODES]\n");
        return 2;
    }
    if (argc < 2 || *argv[1] == 'p')
        measure(true, pods, nodes);
    if (argc < 2 || *argv[1] == 's')
        measure(false, pods, nodes);
    return 0;
}
