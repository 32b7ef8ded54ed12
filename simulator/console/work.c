/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/work.c - answers that take longer: in a worker thread, and back
 *
 * A job is linked into the server's list from bh_console_work() until its answer is given. Its
 * client may leave and its server may stop before; the worker thread never looks at either.
 * Invariants: arg is released in the loop, once. `http` is NULL as soon as the client is gone.
 * Stopping: what waits is cancelled, what runs is waited for (it sees bh_console_job_dropped()).
 */
#include "simulator/console/parts.h"

#include <stdarg.h>
#include <stdatomic.h>

struct bh_console_job {
    uv_work_t uv;
    struct bh_console_jobs *all;
    struct bh_console_job *prev, *next;
    struct bh_http_req *http;
    bh_console_run_fn *run;
    bh_console_done_fn *done;
    bh_console_release_fn *release;
    void *arg;
    uint64_t start_ns;
    atomic_bool dropped;
    bool ran;   /* written by the worker, read after it */
    bool ended; /* under all->lock */
    int code;
    const char *type;
    struct bh_buf body;
};
struct bh_console_jobs {
    struct bh_sim *sim;
    struct bh_console_job *first;
    unsigned n;
    uv_mutex_t lock;
    uv_cond_t one_ended;
};

/* ---- in the worker --------------------------------------------------------------------------- */

struct bh_buf *bh_console_job_body(struct bh_console_job *j, int code, const char *content_type)
{
    bh_buf_reset(&j->body);
    j->code = code;
    j->type = content_type ? content_type : "application/json";
    return &j->body;
}

void bh_console_job_reply(struct bh_console_job *j, int code, const struct bh_json *v)
{
    struct bh_buf *b = bh_console_job_body(j, code, NULL);

    bh_json_write(b, v);
    bh_buf_addc(b, '\n');
}

int bh_console_job_fail(struct bh_console_job *j, int code, const char *field, unsigned line,
                        const char *fmt, ...)
{
    struct bh_buf *b = bh_console_job_body(j, code, NULL);
    va_list ap;

    va_start(ap, fmt);
    bh_console_error_text(b, field, line, fmt, ap);
    va_end(ap);
    return -1;
}

bool bh_console_job_dropped(const struct bh_console_job *j)
{
    return atomic_load_explicit(&j->dropped, memory_order_relaxed);
}

static void work(uv_work_t *uv)
{
    struct bh_console_job *j = bh_container_of(uv, struct bh_console_job, uv);

    j->ran = !bh_console_job_dropped(j);
    if (j->ran)
        j->run(j, j->arg);
    uv_mutex_lock(&j->all->lock);
    j->ended = true;
    uv_cond_signal(&j->all->one_ended);
    uv_mutex_unlock(&j->all->lock);
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void unlink_job(struct bh_console_job *j)
{
    *(j->prev ? &j->prev->next : &j->all->first) = j->next;
    if (j->next)
        j->next->prev = j->prev;
    j->all->n--;
}

static void on_abort(void *arg)
{
    struct bh_console_job *j = arg;

    j->http = NULL;
    atomic_store(&j->dropped, true);
}

struct bh_sim_req bh_console_late_req(struct bh_sim *s, struct bh_http_req *http,
                                      struct bh_arena *a, uint64_t start_ns)
{
    if (http)
        bh_http_on_abort(http, NULL, NULL);
    return (struct bh_sim_req){.sim = s,
                               .http = http,
                               .a = a,
                               .method = http ? bh_http_method(http) : NULL,
                               .path = http ? bh_http_path(http) : NULL,
                               .ns = "",
                               .name = "",
                               .sub = "",
                               .verb = "console",
                               .start_ns = start_ns};
}

static void after_work(uv_work_t *uv, int status BH_UNUSED)
{
    struct bh_console_job *j = bh_container_of(uv, struct bh_console_job, uv);

    if (j->all) { /* the server did not stop meanwhile */
        unlink_job(j);
        struct bh_sim *s = j->all->sim;
        struct bh_sim_req r = bh_console_late_req(s, j->http, &s->arena, j->start_ns);
        if (j->done && j->ran && j->code < 300) /* a refusal needs no second step */
            j->done(j->http ? &r : NULL, s, j->arg);
        else if (j->http) {
            if (!j->code)
                bh_console_fail(&r, 500, NULL, 0, "the work ended without an answer");
            else
                bh_sim_reply_raw(&r, j->code, j->type, j->body.p, j->body.n);
        }
        bh_assert(!j->http || r.done);
        bh_buf_fini(&r.warnings);
        bh_arena_reset(&s->arena);
        j->release(j->arg);
    }
    bh_buf_fini(&j->body);
    free(j);
}

static struct bh_console_job *job_new(struct bh_console_jobs *all, bh_console_run_fn *run,
                                      bh_console_done_fn *done, bh_console_release_fn *release,
                                      void *arg)
{
    struct bh_console_job *j = bh_calloc(1, sizeof(*j));

    *j = (struct bh_console_job){
        .all = all, .next = all->first, .run = run, .done = done, .release = release, .arg = arg};
    if (all->first)
        all->first->prev = j;
    all->first = j;
    all->n++;
    uv_queue_work(all->sim->loop, &j->uv, work, after_work);
    return j;
}

void bh_console_work_then(struct bh_console_req *c, bh_console_run_fn *run,
                          bh_console_done_fn *done, bh_console_release_fn *release, void *arg)
{
    struct bh_console_jobs *all = c->r->sim->console->jobs;

    if (all->n >= BH_CONSOLE_JOBS) {
        c->r->e.code = 429;
        c->r->e.retry_after_s = 1;
        bh_console_fail(c->r, 429, NULL, 0, "%u requests are being worked on; try again later",
                        all->n);
        release(arg);
        return;
    }
    struct bh_console_job *j = job_new(all, run, done, release, arg);
    j->http = c->r->http;
    j->start_ns = c->r->start_ns;
    bh_http_on_abort(j->http, on_abort, j);
    c->r->done = true;
}

void bh_console_background(struct bh_sim *s, bh_console_run_fn *run, bh_console_done_fn *done,
                           bh_console_release_fn *release, void *arg)
{
    (void)job_new(s->console->jobs, run, done, release, arg);
}

void bh_console_work(struct bh_console_req *c, bh_console_run_fn *run,
                     bh_console_release_fn *release, void *arg)
{
    bh_console_work_then(c, run, NULL, release, arg);
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_console_jobs_start(struct bh_console *c)
{
    c->jobs = bh_calloc(1, sizeof(*c->jobs));
    c->jobs->sim = c->sim;
    uv_mutex_init(&c->jobs->lock);
    uv_cond_init(&c->jobs->one_ended);
}

/* HTTP is gone already, so no job has a client any more. */
void bh_console_jobs_stop(struct bh_console *c)
{
    struct bh_console_jobs *all = c->jobs;

    for (struct bh_console_job *j = all->first; j; j = j->next)
        atomic_store(&j->dropped, true);
    while (all->first) {
        struct bh_console_job *j = all->first;
        if (uv_cancel((uv_req_t *)&j->uv) != 0) {
            uv_mutex_lock(&all->lock);
            while (!j->ended)
                uv_cond_wait(&all->one_ended, &all->lock);
            uv_mutex_unlock(&all->lock);
        }
        unlink_job(j);
        j->release(j->arg);
        j->all = NULL; /* after_work() frees it */
    }
    uv_mutex_destroy(&all->lock);
    uv_cond_destroy(&all->one_ended);
    free(all);
    c->jobs = NULL;
}
