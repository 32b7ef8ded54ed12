/* SPDX-License-Identifier: Apache-2.0
 *
 * front/peers.c - Berth's other processes, as their sockets tell
 *
 * Owns:       one HTTP client a process.
 * Invariants: each question is answered once, also when everything is being freed.
 */
#include "front/peers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/buf.h"
#include "common/base/map.h"
#include "common/base/sockpath.h"

#define SUFFIX ".http"

struct bh_peers {
    uv_loop_t *loop;
    char *dir;
    struct bh_map clients; /* name -> struct bh_api_client */
};

static struct bh_api_client *client_of(struct bh_peers *p, const char *name)
{
    struct bh_api_client *c = bh_map_get(&p->clients, name, strlen(name));
    char path[BH_SOCKPATH_MAX + 1];
    struct bh_err err;
    int n = snprintf(path, sizeof(path), "%s/%s" SUFFIX, p->dir, name);

    if (c || n < 0 || (size_t)n >= sizeof(path))
        return c;
    static char server[] = "http://localhost";
    const struct bh_api_config cfg = {.server = server, .unix_socket = path};
    const struct bh_api_options o = {.user_agent = "berth-front/" BH_VERSION};
    if (bh_api_client_new(p->loop, &cfg, &o, &c, &err) < 0)
        return NULL;
    (void)bh_map_put(&p->clients, name, strlen(name), c);
    return c;
}

struct bh_peers *bh_peers_new(uv_loop_t *loop, const char *runtime_dir)
{
    struct bh_peers *p = bh_calloc(1, sizeof(*p));

    p->loop = loop;
    p->dir = bh_strdup(runtime_dir);
    return p;
}

void bh_peers_free(struct bh_peers *p)
{
    struct bh_map_entry *e;

    if (!p)
        return;
    for (size_t it = 0; (e = bh_map_next(&p->clients, &it));)
        bh_api_client_free(e->value);
    bh_map_fini(&p->clients);
    free(p->dir);
    free(p);
}

/* ---- one question ---------------------------------------------------------------------------- */

struct question {
    void (*done)(void *arg, int code, struct bh_str body);
    void *arg;
    uv_timer_t soon; /* for the answer of a question that could not be asked */
};

static void on_reply(void *arg, const struct bh_api_reply *r)
{
    struct question q = *(struct question *)arg;
    bool ok = r->outcome == BH_API_OK;

    free(arg);
    q.done(q.arg, ok ? r->code : 0, ok ? r->body : (struct bh_str){"", 0});
}

static void on_soon_closed(uv_handle_t *h)
{
    free(bh_container_of((uv_timer_t *)h, struct question, soon));
}

static void on_soon(uv_timer_t *t)
{
    struct question *q = bh_container_of(t, struct question, soon);

    q->done(q->arg, 0, (struct bh_str){"", 0});
    uv_close((uv_handle_t *)t, on_soon_closed);
}

void bh_peers_ask(struct bh_peers *p, const char *name, const char *method, const char *path,
                  const char *body_in, uint64_t timeout_ns,
                  void (*done)(void *arg, int code, struct bh_str body), void *arg)
{
    struct bh_api_client *c = client_of(p, name);
    struct question *q = bh_calloc(1, sizeof(*q));
    const struct bh_api_call call = {.method = method,
                                     .path = path,
                                     .content_type = body_in ? "text/plain" : NULL,
                                     .accept = "text/plain",
                                     .body = body_in,
                                     .body_n = body_in ? strlen(body_in) : 0,
                                     .timeout_ns = timeout_ns,
                                     .max_reply_bytes = BH_PEER_ANSWER_BYTES,
                                     .on_done = on_reply,
                                     .arg = q};
    q->done = done;
    q->arg = arg;
    if (c && bh_api_start(c, &call))
        return;
    uv_timer_init(p->loop, &q->soon);
    uv_timer_start(&q->soon, on_soon, 0, 0);
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct gathering {
    struct bh_peer_answer v[BH_PEERS_MAX];
    size_t n, missing;
    void (*done)(void *arg, struct bh_peer_answer *v, size_t n);
    void *arg;
    struct part {
        struct gathering *g;
        size_t i;
    } parts[BH_PEERS_MAX];
};

static void add_name(struct gathering *g, const char *name, size_t n)
{
    char text[sizeof(g->v[0].name)];

    if (n == 0 || n >= sizeof(text) || g->n == BH_PEERS_MAX)
        return;
    memcpy(text, name, n);
    text[n] = '\0';
    if (text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")])
        return;
    for (size_t i = 0; i < g->n; i++)
        if (bh_streq(g->v[i].name, text))
            return;
    memcpy(g->v[g->n++].name, text, n + 1);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct bh_peer_answer *)a)->name,
                  ((const struct bh_peer_answer *)b)->name);
}

static void on_part(void *arg, int code, struct bh_str body)
{
    struct part *part = arg;
    struct gathering *g = part->g;
    struct bh_peer_answer *a = &g->v[part->i];

    a->code = code;
    if (code) {
        struct bh_buf b = {0};
        bh_buf_add(&b, body.p, body.n); /* it may hold NULs */
        a->body = bh_buf_take(&b);
        a->n = body.n;
    }
    if (--g->missing)
        return;
    g->done(g->arg, g->v, g->n);
    while (g->n)
        free(g->v[--g->n].body);
    free(g);
}

void bh_peers_ask_all(struct bh_peers *p, const char *method, const char *path, const char *body_in,
                      uint64_t timeout_ns,
                      void (*done)(void *arg, struct bh_peer_answer *v, size_t n), void *arg)
{
    struct gathering *g = bh_calloc(1, sizeof(*g));
    DIR *d = opendir(p->dir);
    struct bh_map_entry *e;
    struct dirent *file;
    struct stat st;

    g->done = done;
    g->arg = arg;
    add_name(g, "watcher", strlen("watcher"));
    add_name(g, "scheduler", strlen("scheduler"));
    while (d && (file = readdir(d))) {
        size_t n = strlen(file->d_name), k = strlen(SUFFIX);
        if (n > k && bh_streq(file->d_name + n - k, SUFFIX) &&
            fstatat(dirfd(d), file->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode))
            add_name(g, file->d_name, n - k);
    }
    if (d)
        closedir(d);
    qsort(g->v, g->n, sizeof(g->v[0]), by_name);
    /* Clients of processes whose sockets are gone. */
    for (size_t it = 0; (e = bh_map_next(&p->clients, &it));) {
        bool there = false;
        for (size_t i = 0; i < g->n; i++)
            there = there || bh_streq(g->v[i].name, e->key);
        if (!there)
            bh_api_client_free(bh_map_del(&p->clients, e->key, e->key_len));
    }
    g->missing = g->n;
    for (size_t i = 0, n = g->n; i < n; i++) { /* none is answered before the loop runs */
        g->parts[i] = (struct part){g, i};
        bh_peers_ask(p, g->v[i].name, method, path, body_in, timeout_ns, on_part, &g->parts[i]);
    }
}
