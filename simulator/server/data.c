/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/data.c - --data: commits on their way into the file, and answers that wait for it
 *
 * Owns:       the writing thread, the changes that are not written yet, replies that wait.
 * Invariants: the batch belongs to the thread while busy is set, else to the loop; queue holds what
 *             came after it. References are taken and given back in the loop only.
 * Runs in:    the loop, but for work(), which is the thread.
 */
#include "simulator/server/data.h"

#include "common/base/log.h"
#include "common/base/loop.h"
#include "simulator/server/data_file.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

struct changes {
    struct bh_data_change *v;
    size_t n, cap, bytes;
};
/* A reply that waits for its commit to be written. */
struct held {
    struct bh_sim_data *d;
    TAILQ_ENTRY(held) other;
    struct bh_http_req *http;
    uint64_t rv;
    int code;
    char content_type[80];
    size_t n;
    char *body;
};
struct bh_sim_data {
    struct bh_sim *sim;
    struct bh_data_file *file;
    bool full, failing;
    struct changes queue, batch;
    uint64_t limit, written_rv; /* both are in the file */
    struct bh_sim_timer *timer; /* NULL while a batch is under way or nothing waits */
    TAILQ_HEAD(, held) held;    /* by rv */
    struct bh_cell *m_batches, *m_errors, *m_waiting, *m_duration;
    uint64_t begun_ns;
    /* with the thread */
    uv_thread_t thread;
    uv_mutex_t lock; /* of what follows */
    uv_cond_t wake;
    bool busy, stop;
    uint64_t want_limit;
    int rc;
    struct bh_err err;
    uv_async_t *done;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static void work(void *arg)
{
    struct bh_sim_data *d = arg;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* signals are the loop's; SIGXFSZ is an error code */
    uv_mutex_lock(&d->lock);
    for (;;) {
        while (!d->busy && !d->stop)
            uv_cond_wait(&d->wake, &d->lock);
        if (!d->busy)
            break;
        uv_mutex_unlock(&d->lock);
        struct bh_err err = {{0}};
        int rc = bh_data_file_write(d->file, d->batch.v, d->batch.n, d->want_limit, &err);
        uv_mutex_lock(&d->lock);
        d->rc = rc;
        d->err = err;
        d->busy = false;
        uv_async_send(d->done);
    }
    uv_mutex_unlock(&d->lock);
}

/* ---- replies that wait ----------------------------------------------------------------------- */

static void held_free(struct held *h)
{
    TAILQ_REMOVE(&h->d->held, h, other);
    free(h->body);
    free(h);
}

static void on_abort(void *arg)
{
    held_free(arg);
}

bool bh_sim_data_hold(struct bh_sim_req *r, int code, const char *content_type, const void *p,
                      size_t n)
{
    struct bh_sim_data *d = r->sim->data;
    struct held *h;

    if (!d || !d->full || d->written_rv >= r->sim->rv || bh_streq(r->method, "GET") ||
        bh_streq(r->method, "HEAD") || code >= 400)
        return false;
    h = bh_calloc(1, sizeof(*h));
    *h = (struct held){.d = d,
                       .http = r->http,
                       .rv = r->sim->rv,
                       .code = code,
                       .n = n,
                       .body = bh_memdup(p, n ? n : 1)};
    snprintf(h->content_type, sizeof(h->content_type), "%s", content_type);
    TAILQ_INSERT_TAIL(&d->held, h, other);
    bh_http_on_abort(r->http, on_abort, h);
    return true;
}

/* ok: those up to rv as they are; else all of them as 500. */
static void release(struct bh_sim_data *d, bool ok, uint64_t rv)
{
    static const char lost[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
        "\"message\":\"the change was made in memory only: the data file cannot be written\","
        "\"reason\":\"InternalError\",\"code\":500}\n";
    struct held *h;

    while ((h = TAILQ_FIRST(&d->held)) && (!ok || h->rv <= rv)) {
        bh_http_on_abort(h->http, NULL, NULL);
        if (ok)
            bh_http_reply(h->http, h->code, h->content_type, h->body, h->n);
        else
            bh_http_reply(h->http, 500, "application/json", lost, sizeof(lost) - 1);
        held_free(h);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

static void changes_clear(struct changes *c)
{
    for (size_t i = 0; i < c->n; i++)
        bh_sim_obj_unref(c->v[i].obj);
    c->n = c->bytes = 0;
}

static void submit(void *arg)
{
    struct bh_sim_data *d = arg;

    d->timer = NULL;
    if (!d->batch.n) { /* else it failed before and is tried again */
        struct changes empty = d->batch;
        d->batch = d->queue;
        d->queue = empty;
    }
    d->begun_ns = bh_mono_ns();
    uv_mutex_lock(&d->lock);
    /* The limit to claim with the next batch, early enough that it is there when it is needed. */
    d->want_limit =
        d->sim->rv + BH_DATA_RESERVE / 2 > d->limit ? d->sim->rv + BH_DATA_RESERVE : d->limit;
    d->busy = true;
    uv_cond_signal(&d->wake);
    uv_mutex_unlock(&d->lock);
}

static void arm(struct bh_sim_data *d, int64_t delay_ns)
{
    if (!d->timer && !d->batch.n)
        d->timer = bh_sim_after_real(d->sim, delay_ns, submit, d);
}

static void on_done(uv_async_t *h)
{
    struct bh_sim_data *d = h->data;

    uv_mutex_lock(&d->lock);
    bool busy = d->busy;
    uv_mutex_unlock(&d->lock);
    if (busy || !d->batch.n || d->timer)
        return;
    if (d->rc < 0) {
        if (!d->failing)
            bh_log_error("The data file cannot be written; it is tried again each second, and what "
                         "changes meanwhile is only in memory",
                         bh_kv_s("err", d->err.msg));
        d->failing = true;
        bh_cell_add(d->m_errors, 1);
        release(d, false, 0);
        d->timer = bh_sim_after_real(d->sim, BH_DATA_RETRY_NS, submit, d);
        return;
    }
    if (d->failing)
        bh_log_info("The data file is written again", bh_kv_u("changes", d->batch.n));
    d->failing = false;
    d->limit = d->want_limit;
    d->written_rv = d->batch.v[d->batch.n - 1].obj->rv;
    bh_cell_add(d->m_batches, 1);
    bh_cell_observe(d->m_duration, (double)(bh_mono_ns() - d->begun_ns) / 1e9);
    changes_clear(&d->batch);
    release(d, true, d->written_rv);
    if (d->queue.n)
        arm(d, d->full ? 0 : BH_DATA_EVERY_NS);
}

void bh_sim_data_add(struct bh_sim *s, enum bh_sim_change c, struct bh_sim_obj *obj)
{
    struct bh_sim_data *d = s->data;

    if (!d)
        return;
    struct changes *q = &d->queue;
    BH_GROW(q->v, q->n, q->cap);
    q->v[q->n++] = (struct bh_data_change){bh_sim_obj_ref(obj), c == BH_SIM_DELETED};
    q->bytes += obj->json_n;
    arm(d, d->full ? 0 : BH_DATA_EVERY_NS);
}

bool bh_sim_data_refuses(struct bh_sim *s, struct bh_sim_error *e)
{
    const struct bh_sim_data *d = s->data;

    if (!d)
        return false;
    bool much = d->queue.bytes + d->batch.bytes >= BH_DATA_WAITING_MAX;
    if (s->rv < d->limit && !(s->request && (much || (d->failing && d->full))))
        return false;
    e->retry_after_s = 1;
    bh_sim_fail(e, 503, "ServiceUnavailable", "nothing can be changed now: %s",
                d->failing ? d->err.msg : "the data file is too slow");
    return true;
}

/* ---- open and close -------------------------------------------------------------------------- */

struct loading {
    struct bh_sim *sim;
    uint64_t n;
};

static int load_row(void *arg, const char *json, size_t n, uint64_t rv, struct bh_err *err)
{
    struct loading *l = arg;
    struct bh_json *obj = NULL;
    int rc = json ? bh_json_parse(&l->sim->arena, json, n, BH_JSON_NUL, &obj, err) : -EINVAL;

    if (rc == 0)
        rc = bh_sim_store_restore_tree(l->sim, obj, rv, false, err);
    bh_arena_reset(&l->sim->arena);
    l->n++;
    return rc;
}

static void on_scrape(void *arg)
{
    struct bh_sim_data *d = arg;

    bh_cell_set(d->m_waiting, (double)(d->queue.n + d->batch.n));
}

static void metrics_init(struct bh_sim_data *d)
{
    static const double buckets[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1};
    struct bh_metrics *m = d->sim->metrics.m;

    d->m_batches =
        bh_metric_cell(bh_metric_new(m, BH_COUNTER, "berth_simulator_data_batches_total",
                                     "Batches of changes written to the data file.", "", NULL, 0));
    d->m_errors = bh_metric_cell(bh_metric_new(m, BH_COUNTER, "berth_simulator_data_errors_total",
                                               "Batches that could not be written.", "", NULL, 0));
    d->m_waiting =
        bh_metric_cell(bh_metric_new(m, BH_GAUGE, "berth_simulator_data_waiting",
                                     "Changes that are not in the data file yet.", "", NULL, 0));
    d->m_duration = bh_metric_cell(bh_metric_new(
        m, BH_HISTOGRAM, "berth_simulator_data_batch_duration_seconds",
        "Time a batch takes until it is written.", "", buckets, BH_ARRAY_LEN(buckets)));
    bh_metrics_on_scrape(m, on_scrape, d);
}

static int load(struct bh_sim_data *d, uint64_t *ret_n, struct bh_err *err)
{
    struct loading l = {.sim = d->sim};
    int rc = bh_data_file_load(d->file, load_row, &l, err);

    if (rc < 0)
        return rc;
    uint64_t rv = BH_MAX(d->sim->rv, bh_data_file_limit(d->file));
    d->limit = rv + BH_DATA_RESERVE;
    d->written_rv = rv;
    *ret_n = l.n;
    bh_sim_store_restored(d->sim, rv);
    return bh_data_file_write(d->file, NULL, 0, d->limit, err);
}

/* Nothing is asked of it yet. */
static int start_thread(struct bh_sim_data *d, const char *path, struct bh_err *err)
{
    uv_mutex_init(&d->lock);
    uv_cond_init(&d->wake);
    int rc = uv_thread_create(&d->thread, work, d);
    if (rc == 0)
        return 0;
    uv_cond_destroy(&d->wake);
    uv_mutex_destroy(&d->lock);
    return bh_err_set(err, rc, "data file %s: no thread to write it: %s", path, strerror(-rc));
}

int bh_sim_data_open(struct bh_sim *s, const char *path, bool full, uint64_t *ret_n,
                     struct bh_err *err)
{
    struct bh_sim_data *d;
    struct bh_data_file *file;

    *ret_n = 0;
    if (!path)
        return 0;
    int rc = bh_data_file_open(path, full, &file, err);
    if (rc < 0)
        return rc;
    d = bh_calloc(1, sizeof(*d));
    *d = (struct bh_sim_data){.sim = s, .file = file, .full = full};
    TAILQ_INIT(&d->held);
    rc = load(d, ret_n, err);
    if (rc == 0)
        rc = start_thread(d, path, err);
    if (rc < 0) {
        bh_data_file_close(file);
        free(d);
        return rc;
    }
    metrics_init(d);
    d->done = bh_calloc(1, sizeof(*d->done));
    uv_async_init(s->loop, d->done, on_done);
    d->done->data = d;
    s->data = d;
    return 0;
}

void bh_sim_data_close(struct bh_sim *s)
{
    struct bh_sim_data *d = s->data;

    if (!d)
        return;
    uv_mutex_lock(&d->lock);
    d->stop = true;
    uv_cond_signal(&d->wake);
    uv_mutex_unlock(&d->lock);
    uv_thread_join(&d->thread); /* after the batch it has */
    bh_sim_cancel(d->timer);
    /* The rest, and the versions that were claimed and not used. */
    struct bh_err err = {{0}};
    bool again = d->rc < 0; /* the batch under way was not written */
    int rc = 0;
    if (d->batch.n && again)
        rc = bh_data_file_write(d->file, d->batch.v, d->batch.n, d->limit, &err);
    if (rc == 0)
        rc = bh_data_file_write(d->file, d->queue.v, d->queue.n, d->sim->rv, &err);
    if (rc < 0)
        bh_log_error("The last changes are lost: the data file cannot be written",
                     bh_kv_u("changes", d->queue.n + (again ? d->batch.n : 0)),
                     bh_kv_s("err", err.msg));
    changes_clear(&d->batch);
    changes_clear(&d->queue);
    free(d->batch.v);
    free(d->queue.v);
    while (!TAILQ_EMPTY(&d->held))
        held_free(TAILQ_FIRST(&d->held));
    bh_loop_close_free(d->done);
    uv_mutex_destroy(&d->lock);
    uv_cond_destroy(&d->wake);
    bh_data_file_close(d->file);
    free(d);
    s->data = NULL;
}
