/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/events.c - Kubernetes events: useful, never in the way
 *
 * Owns:       events that wait and events on the wire. Bounded: above BH_BINDER_EVENTS_MAX the
 *             oldest waiting one is dropped and counted; at most BH_BINDER_EVENTS_RUNNING are on
 *             the wire, so that binds always find room. A failed write is tried EVENT_TRIES times
 *             with a growing pause. What repeats becomes a series (series.h): its PATCH that finds
 *             no Event becomes the POST of the whole one, and back when that one finds it after
 *             all.
 * Upstream:   client-go/tools/events.
 */
#include "binder/binder.h"

#define EVENT_TRIES       4u
#define RETRY_AFTER_MAX_S 30
#define SERIES_PER_TURN   500u

struct bh_event_job {
    TAILQ_ENTRY(bh_event_job) link;
    struct bh_binder *b;
    char *path, *body;             /* creates the Event */
    char *patch_path, *patch_body; /* updates it; NULL = this is not about a series */
    bool patching;                 /* what is sent now */
    uint64_t term;                 /* of the lease; 0 = written at any time */
    unsigned tries;
    bool paused;      /* pause is a handle of the loop */
    uv_timer_t pause; /* active: waits to be repeated */
};

static void pump(struct bh_binder *b);

static void count(struct bh_binder *b, const char *result)
{
    bh_cell_add(bh_metric_cell(b->m_events, result), 1);
}

static void job_free(struct bh_event_job *j)
{
    free(j->path);
    free(j->body);
    free(j->patch_path);
    free(j->patch_body);
    free(j);
}

static void on_pause_closed(uv_handle_t *h)
{
    job_free(h->data);
}

static void job_end(struct bh_event_job *j)
{
    if (j->paused)
        uv_close((uv_handle_t *)&j->pause, on_pause_closed);
    else
        job_free(j);
}

static void send_event(struct bh_event_job *j);

static void on_pause(uv_timer_t *t)
{
    send_event(t->data);
}

static void finish(struct bh_event_job *j, const char *result)
{
    struct bh_binder *b = j->b;

    count(b, result);
    TAILQ_REMOVE(&b->events_running, j, link);
    b->n_events_running--;
    job_end(j);
    pump(b);
    bh_binder_ended(b);
}

/* A series whose Event is not there is created, one that is there is updated. */
static bool turned(struct bh_event_job *j, const struct bh_api_reply *r)
{
    if (!j->patch_path || r->outcome != BH_API_OK || r->code != (j->patching ? 404 : 409))
        return false;
    j->patching = !j->patching;
    return true;
}

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct bh_event_job *j = arg;
    bool unclear =
        r->outcome == BH_API_TRANSPORT || r->outcome == BH_API_TIMEOUT ||
        (r->outcome == BH_API_OK && (r->code == 429 || r->code == 401 || r->code >= 500)) ||
        turned(j, r);
    uint64_t ms = r->retry_after_s > 0
                      ? (uint64_t)BH_MIN(r->retry_after_s, RETRY_AFTER_MAX_S) * 1000
                      : 125u << BH_MIN(j->tries, 8u);

    j->b->progress++;
    j->b->n_requests--;
    if (!unclear && r->outcome == BH_API_OK && (r->code == 201 || r->code == 200 || r->code == 409))
        finish(j, "written"); /* 409: an earlier try of the same name arrived */
    else if (unclear && ++j->tries < EVENT_TRIES && !j->b->stopping) {
        if (!j->paused)
            uv_timer_init(j->b->loop, &j->pause);
        j->paused = true;
        j->pause.data = j;
        uv_timer_start(&j->pause, on_pause, ms + bh_rand_below(&j->b->rand, ms + 1), 0);
    } else {
        finish(j, "failed");
    }
}

static void send_event(struct bh_event_job *j)
{
    const struct bh_api_call call = {
        .method = j->patching ? "PATCH" : "POST",
        .path = j->patching ? j->patch_path : j->path,
        .content_type = j->patching ? "application/strategic-merge-patch+json" : "application/json",
        .body = j->patching ? j->patch_body : j->body,
        .body_n = strlen(j->patching ? j->patch_body : j->body),
        .timeout_ns = j->b->o.request_ns,
        .not_after_boot_ns = j->term ? j->b->grant.until_boot_ns : 0,
        .on_done = on_done,
        .arg = j,
    };

    if (!bh_binder_may_write(j->b, j->term)) {
        finish(j, "stale");
        return;
    }
    j->b->n_requests++;
    if (!bh_api_start(j->b->event_client, &call)) { /* the client is being freed */
        j->b->n_requests--;
        finish(j, "failed");
    }
}

static struct bh_event_job *take_first(struct bh_binder *b)
{
    struct bh_event_job *j = TAILQ_FIRST(&b->events);

    TAILQ_REMOVE(&b->events, j, link);
    b->n_events--;
    return j;
}

static void drop_first(struct bh_binder *b, const char *result)
{
    count(b, result);
    job_end(take_first(b));
}

static void pump(struct bh_binder *b)
{
    while (b->n_events && b->n_events_running < BH_BINDER_EVENTS_RUNNING && !b->closing) {
        if (!bh_binder_may_write(b, TAILQ_FIRST(&b->events)->term)) {
            drop_first(b, "stale");
            continue;
        }
        struct bh_event_job *j = take_first(b);
        b->n_events_running++;
        TAILQ_INSERT_HEAD(&b->events_running, j, link);
        send_event(j);
    }
}

static void enqueue(struct bh_binder *b, struct bh_event_job *j)
{
    j->b = b;
    if (b->n_events >= BH_BINDER_EVENTS_MAX)
        drop_first(b, "dropped");
    TAILQ_INSERT_TAIL(&b->events, j, link);
    b->n_events++;
    pump(b);
}

static void enqueue_series(struct bh_binder *b, struct bh_series_write *w, uint64_t term)
{
    struct bh_event_job *j = bh_calloc(1, sizeof(*j));

    j->path = bh_buf_take(&w->post_path);
    j->body = bh_buf_take(&w->post_body);
    j->patch_path = bh_buf_take(&w->patch_path);
    j->patch_body = bh_buf_take(&w->patch_body);
    j->patching = true;
    j->term = term;
    enqueue(b, j);
}

void bh_binder_event(struct bh_binder *b, const Berth__WorkItem *item, uint64_t term)
{
    struct bh_series_write w = {0};
    int64_t now = bh_wall_ns();

    enum bh_series_verdict step = bh_series_observe(&b->series, item, now, &w);
    if (step == BH_SERIES_SECOND)
        enqueue_series(b, &w, term);
    else if (step == BH_SERIES_COUNTED)
        count(b, "counted");
    else {
        struct bh_event_job *j = bh_calloc(1, sizeof(*j));
        struct bh_buf path = {0}, body = {0};
        char name[256];
        /* the name must be unique even when two events fall into one tick of the clock */
        b->event_serial = BH_MAX((uint64_t)now, b->event_serial + 1);
        bh_request_event(&path, &body, item, b->hostname, b->event_serial);
        if (step == BH_SERIES_FIRST) {
            bh_request_event_name(name, item->name, b->event_serial);
            if (bh_series_start(&b->series, item, now, name, &path, &body, &w))
                enqueue_series(b, &w, 0);
        }
        j->path = bh_buf_take(&path);
        j->body = bh_buf_take(&body);
        j->term = term;
        enqueue(b, j);
    }
    bh_series_write_fini(&w);
}

void bh_binder_write_series(struct bh_binder *b, int64_t wall_ns)
{
    struct bh_series_write w = {0};

    /* not all at once: the others are due a minute later just as well */
    for (unsigned i = 0; i < SERIES_PER_TURN && bh_series_due(&b->series, wall_ns, &w); i++)
        enqueue_series(b, &w, 0);
    bh_series_write_fini(&w);
}

void bh_binder_drop_events(struct bh_binder *b)
{
    struct bh_event_job *next;

    while (b->n_events)
        drop_first(b, "dropped");
    for (struct bh_event_job *j = TAILQ_FIRST(&b->events_running); j; j = next) {
        next = TAILQ_NEXT(j, link);
        if (j->paused && uv_is_active((uv_handle_t *)&j->pause))
            finish(j, "dropped");
    }
}
