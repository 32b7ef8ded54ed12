/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/work.c - one work item from taking it to its answer
 *
 * A job keeps its message's memory (struct bh_batch) alive, so items are not copied. Its states are
 * the request that runs: bind -> (409) look; look alone; patch; evict = patch, then delete; object,
 * as often as objects.h says; event is answered at once.
 */
#include "binder/binder.h"
#include "binder/objects.h"
#include "common/base/log.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

struct bh_batch {
    struct bh_arena arena;
    uint32_t refs;
};
#define WRITE_MIN_NS    UINT64_C(1000000000) /* less than half of BH_BUS_GRANT_TAIL_NS */
#define PATCH_CONFLICTS 5u /* a status patch that meets 409 this often is refused */

enum step { STEP_BIND, STEP_LOOK, STEP_PATCH, STEP_DELETE, STEP_OBJECT };
struct bh_job {
    LIST_ENTRY(bh_job) link;
    struct bh_binder *b;
    struct bh_batch *batch;
    const Berth__WorkItem *item;
    uint64_t epoch, term, taken_ns;
    uint64_t lapses; /* of the grant, when it was taken */
    enum step step;
    struct bh_object_job *object; /* STEP_OBJECT */
    bool writing;                 /* the request that runs is counted in n_writing */
    unsigned tries;
    bool unclear;             /* a try of the binding may have taken effect, its answer was lost */
    uint64_t strays_until_ns; /* boot clock: until then one that was not answered may come in */
    struct {                  /* what a later one was answered: it holds if the first did not */
        int code;
        char *reason, *message;
    } refused;
    bool last_pause;  /* the deadline comes before the next try may */
    bool paused;      /* pause is a handle of the loop; most jobs never need it */
    uv_timer_t pause; /* active: waits to be repeated */
};

struct bh_batch *bh_batch_new(void)
{
    struct bh_batch *b = bh_calloc(1, sizeof(*b));

    bh_arena_init(&b->arena, 4u * BH_BUS_MAX_BYTES);
    b->refs = 1;
    return b;
}

struct bh_arena *bh_batch_arena(struct bh_batch *b)
{
    return &b->arena;
}

void bh_batch_unref(struct bh_batch *b)
{
    bh_assert(b->refs > 0);
    if (--b->refs)
        return;
    bh_arena_fini(&b->arena);
    free(b);
}

static void job_free(struct bh_job *j)
{
    bh_object_job_free(j->object);
    bh_batch_unref(j->batch);
    free(j->refused.reason);
    free(j->refused.message);
    free(j);
}

static void on_closed(uv_handle_t *h)
{
    job_free(h->data);
}

static bool is_status(const Berth__WorkItem *it)
{
    return it->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS ||
           it->kind == BERTH__WORK_KIND__WORK_GROUP_STATUS;
}

/* Late, it would undo what was written after it. */
static bool undoes(const Berth__WorkItem *it)
{
    return is_status(it) || it->kind == BERTH__WORK_KIND__WORK_UNRESERVATION ||
           it->kind == BERTH__WORK_KIND__WORK_PATCH;
}

/* Given up here, or by a proxy: the server may get to it later. */
static bool strays(const struct bh_api_reply *r)
{
    return r->outcome == BH_API_OK ? r->code == 502 || r->code == 504 : r->sent;
}

static bool is_refusal(const struct bh_api_reply *r)
{
    return r->outcome == BH_API_OK && r->code >= 400 && r->code < 500 && r->code != 401 &&
           r->code != 404 && r->code != 409 && r->code != 429;
}

/* For how long a try may come in yet; 0: none. A timer of libuv's ends up to two milliseconds early: it
 * counts whole ones, of a clock that may be a tick behind. */
static uint64_t strays_ms(const struct bh_job *j)
{
    const uint64_t now = bh_boot_ns();

    return now < j->strays_until_ns ? (j->strays_until_ns - now) / 1000000 + 3 : 0;
}

static bool only_reads(const struct bh_job *j)
{
    return j->step == STEP_LOOK || (j->step == STEP_OBJECT && bh_object_job_reads(j->object));
}

static void answer(struct bh_job *j, Berth__Outcome o, int code, const char *reason,
                   const char *message)
{
    static struct bh_buf object; /* one thread */
    uint64_t took = bh_mono_ns() - j->taken_ns;

    if (j->item->kind == BERTH__WORK_KIND__WORK_BIND && !j->item->look &&
        o == BERTH__OUTCOME__OUTCOME_DONE)
        bh_cell_observe(bh_metric_cell(j->b->m_bind_s), (double)took / 1e9);
    bh_binder_answer(j->b, j->epoch, j->item, o, code, reason, message, took);
    if (j->object && bh_object_job_seen(j->object, &object))
        bh_binder_answer_object(j->b, &object);
    if (o == BERTH__OUTCOME__OUTCOME_DONE && j->item->event && !j->item->look)
        bh_binder_event(j->b, j->item, 0);
    struct bh_binder *b = j->b;
    LIST_REMOVE(j, link);
    b->n_jobs--;
    if (j->epoch != b->epoch)
        b->n_old_jobs--;
    if (j->paused)
        uv_close((uv_handle_t *)&j->pause, on_closed);
    else
        job_free(j);
    bh_binder_ended(b);
}

static void run_step(struct bh_job *j);

static uint64_t time_left(const struct bh_job *j)
{
    uint64_t took = bh_mono_ns() - j->taken_ns;

    return took < j->b->o.deadline_ns ? j->b->o.deadline_ns - took : 0;
}

static void on_pause(uv_timer_t *t)
{
    struct bh_job *j = t->data;

    if (time_left(j) && !j->last_pause)
        run_step(j);
    else
        answer(j, BERTH__OUTCOME__OUTCOME_UNKNOWN, 0, "", "no definite answer before the deadline");
}

/* The outcome is not definite: the same request again, until the deadline. A server that asks for a
 * longer pause gets it: the item is held till the deadline, not handed back to be tried elsewhere
 * at once. */
static void again(struct bh_job *j, const struct bh_api_reply *r, const char *why)
{
    uint64_t ms = BH_MIN(50u << BH_MIN(j->tries, 6u), 2000u), left = time_left(j);

    ms = ms / 2 + bh_rand_below(&j->b->rand, ms / 2 + 1);
    if (r->retry_after_s > 0)
        ms = (uint64_t)r->retry_after_s * 1000;
    /* What is answered then is the last word: no earlier try comes in behind it. */
    if (undoes(j->item) || only_reads(j) || is_refusal(r))
        ms = BH_MAX(ms, strays_ms(j));
    j->tries++;
    if (!left || j->b->stopping) {
        answer(j, BERTH__OUTCOME__OUTCOME_UNKNOWN, r->code, "", why);
        return;
    }
    j->last_pause = ms * 1000000 >= left;
    if (!j->paused) {
        uv_timer_init(j->b->loop, &j->pause);
        j->pause.data = j;
        j->paused = true;
    }
    uv_update_time(j->b->loop); /* else the pause would be short by the time since the loop woke */
    uv_timer_start(&j->pause, on_pause, BH_MIN(ms, left / 1000000 + 1), 0);
}

static bool is_bound(const K8s__Pod *p)
{
    return p->spec && p->spec->nodename && *p->spec->nodename;
}

/* After a 409, or a refusal that came after a try without an answer: what does the API server say
 * about this pod now? */
static void on_look(struct bh_job *j, const struct bh_api_reply *r)
{
    struct bh_arena a;
    struct bh_err err = {0};
    ProtobufCMessage *m = NULL;

    if (r->code == 404) {
        answer(j, BERTH__OUTCOME__OUTCOME_GONE, 404, "NotFound", "pod is gone");
        return;
    }
    bh_arena_init(&a, 64u << 20);
    if (r->code != 200 ||
        bh_decode_object(&a, &k8s__pod__descriptor, r->body.p, r->body.n, &m, &err) < 0) {
        again(j, r, "could not read the pod after a conflict");
        bh_arena_fini(&a);
        return;
    }
    const K8s__Pod *p = (const K8s__Pod *)m;
    if (!p->metadata || !p->metadata->uid || !bh_streq(p->metadata->uid, j->item->uid))
        answer(j, BERTH__OUTCOME__OUTCOME_GONE, 409, "Conflict", "pod was re-created");
    else if (!is_bound(p) && strays_ms(j))
        again(j, r, "an earlier try of the binding had no answer");
    else if (!is_bound(p) && j->refused.code)
        answer(j, BERTH__OUTCOME__OUTCOME_REJECTED, j->refused.code, j->refused.reason,
               j->refused.message);
    else if (!is_bound(p))
        answer(j, BERTH__OUTCOME__OUTCOME_REJECTED, 409, "Conflict",
               j->item->look
                   ? "the API server does not have the binding: the pod is on no node"
                   : "the API server refused the binding: the pod is being deleted or gated");
    else if (bh_streq(p->spec->nodename, j->item->node))
        answer(j, BERTH__OUTCOME__OUTCOME_DONE, 409, "", "");
    else
        answer(j, BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE, 409, "Conflict", p->spec->nodename);
    bh_arena_fini(&a);
}

static void keep_refusal(struct bh_job *j, int code, const struct bh_api_status *s)
{
    j->refused.code = code;
    j->refused.reason = bh_strdup(s->reason);
    j->refused.message = bh_strdup(s->message);
}

static void on_done(void *arg, const struct bh_api_reply *r)
{
    struct bh_job *j = arg;

    j->b->progress++;
    j->b->n_requests--;
    j->unclear |= r->outcome == BH_API_OK ? r->code >= 500 : r->sent;
    if (j->writing) {
        j->writing = false;
        j->b->n_writing--;
        if (strays(r))
            j->b->unanswered_until_ns = j->strays_until_ns = bh_boot_ns() + BH_BUS_GRANT_TAIL_NS;
        bh_binder_write_ended(j->b);
    }
    if (r->outcome == BH_API_CANCELED)
        answer(j, BERTH__OUTCOME__OUTCOME_UNKNOWN, 0, "", "the binder stops");
    else if (r->outcome != BH_API_OK)
        again(j, r, r->error ? r->error : "no reply from the API server");
    else if (r->code == 429 || r->code >= 500 || r->code == 401)
        again(j, r, "the API server is not ready for the request");
    else if (is_refusal(r) && j->step != STEP_BIND && strays_ms(j))
        again(j, r, "an earlier try had no answer");
    else if (j->step == STEP_OBJECT) {
        struct bh_object_end e;
        j->tries = 0;
        if (bh_object_job_reply(j->object, r, &e))
            answer(j, e.outcome, e.code, e.reason, e.message);
        else
            run_step(j);
    } else if (j->step == STEP_LOOK) {
        on_look(j, r);
    } else if (r->code >= 200 && r->code < 300 && j->step == STEP_PATCH &&
               j->item->kind == BERTH__WORK_KIND__WORK_DELETE) {
        j->step = STEP_DELETE;
        j->tries = 0;
        run_step(j);
    } else if (r->code >= 200 && r->code < 300) {
        answer(j, BERTH__OUTCOME__OUTCOME_DONE, r->code, "", "");
    } else {
        struct bh_api_status s;
        bh_decode_status(r->body.p, r->body.n, r->code, &s);
        if (j->step == STEP_BIND && (r->code == 409 || j->unclear)) {
            if (r->code != 409)
                keep_refusal(j, r->code, &s);
            j->step = STEP_LOOK;
            run_step(j);
        } else if (r->code == 404 || (r->code == 409 && j->step == STEP_DELETE)) {
            answer(j, BERTH__OUTCOME__OUTCOME_GONE, r->code, s.reason, s.message);
        } else if (r->code == 409 && j->tries < PATCH_CONFLICTS) {
            /* lost a race on the server, or the pod is another one by now */
            again(j, r, s.message);
        } else {
            answer(j, BERTH__OUTCOME__OUTCOME_REJECTED, r->code, s.reason, s.message);
        }
    }
}

/* Without an election nobody tells of stamps. */
static bool must_be_kept(const struct bh_job *j)
{
    return j->term && undoes(j->item);
}

/* Why it is not to be written any more; NULL: it is. */
static const char *stale(const struct bh_job *j)
{
    if (!bh_binder_may_write(j->b, j->term))
        return "the lease this decision was taken under ended";
    if (j->epoch != j->b->epoch)
        return "a newer scheduler took over";
    /* Or have decided anew, where the host took the lease back under the same term. */
    if (j->term && j->lapses != j->b->grant.lapses)
        return "the scheduler may have given it to another binder";
    return NULL;
}

/* A write of a term ends with the grant, but is given a second. */
static void set_fence(const struct bh_job *j, struct bh_api_call *call)
{
    uint64_t now = bh_boot_ns(), until = j->b->grant.until_boot_ns;

    if (!j->term || only_reads(j))
        return;
    call->not_after_boot_ns = must_be_kept(j) ? BH_MIN(until, bh_binder_kept_until(j->b)) : until;
    call->timeout_ns = BH_MIN(call->timeout_ns, BH_MAX(until - BH_MIN(now, until), WRITE_MIN_NS));
}

static void run_step(struct bh_job *j)
{
    static struct bh_buf path, body; /* one thread; bh_api_start copies */
    struct bh_api_call call = {.timeout_ns = j->b->o.request_ns, .on_done = on_done, .arg = j};
    const char *why = only_reads(j) ? NULL : stale(j);

    set_fence(j, &call);
    if (why) { /* an earlier try may come in yet */
        answer(j, j->unclear ? BERTH__OUTCOME__OUTCOME_UNKNOWN : BERTH__OUTCOME__OUTCOME_STALE, 0,
               "", why);
        return;
    }
    bh_buf_reset(&body);
    switch (j->step) {
    case STEP_BIND:
        bh_request_bind(&path, &body, j->item, (unsigned)(call.timeout_ns / 1000000000 + 1));
        call.method = "POST";
        call.content_type = "application/json";
        break;
    case STEP_LOOK:
        bh_request_get_pod(&path, j->item);
        call.method = "GET";
        break;
    case STEP_PATCH:
        bh_request_patch_status(&path, &body, j->item);
        call.method = "PATCH";
        call.content_type = "application/strategic-merge-patch+json";
        break;
    case STEP_DELETE:
        bh_request_delete(&path, &body, j->item);
        call.method = "DELETE";
        call.content_type = "application/json";
        break;
    case STEP_OBJECT:
        bh_object_job_request(j->object, &path, &body, &call);
        break;
    }
    call.path = bh_buf_str(&path);
    call.body = body.n ? body.p : NULL;
    call.body_n = body.n;
    j->b->n_requests++;
    j->writing = !only_reads(j);
    j->b->n_writing += j->writing;
    if (!bh_api_start(j->b->client, &call)) { /* the client is being freed */
        j->b->n_requests--;
        j->b->n_writing -= j->writing;
        j->writing = false;
        answer(j, BERTH__OUTCOME__OUTCOME_UNKNOWN, 0, "", "the binder stops");
    }
}

static enum step first_step(const Berth__WorkItem *it)
{
    if (it->look)
        return STEP_LOOK;
    if (it->write)
        return STEP_OBJECT;
    if (it->kind == BERTH__WORK_KIND__WORK_BIND)
        return STEP_BIND;
    return it->kind == BERTH__WORK_KIND__WORK_DELETE && !it->condition ? STEP_DELETE : STEP_PATCH;
}

static void take_item(struct bh_binder *b, struct bh_batch *batch, const Berth__WorkBatch *w,
                      const Berth__WorkItem *it)
{
    const char *why = bh_request_refused(it);
    struct bh_object_job *object = NULL;
    struct bh_err err = {0};
    struct bh_job *j;

    if (why) {
        bh_log_error("Refused what the scheduler asked for", bh_kv_u("kind", (unsigned)it->kind),
                     bh_kv_s("why", why));
        bh_binder_answer(b, w->epoch, it, BERTH__OUTCOME__OUTCOME_REJECTED, 0, "BadRequest", why,
                         0);
        return;
    }
    if (it->kind == BERTH__WORK_KIND__WORK_EVENT) {
        bh_binder_event(b, it, w->lease_term);
        bh_binder_answer(b, w->epoch, it, BERTH__OUTCOME__OUTCOME_DONE, 0, "", "", 0);
        return;
    }
    if (it->write && !it->look && !(object = bh_object_job_new(it, b->o.plugin_writes, &err))) {
        bh_log_error("Refused what the scheduler asked for", bh_kv_u("kind", (unsigned)it->kind),
                     bh_kv_s("why", err.msg));
        bh_binder_answer(b, w->epoch, it, BERTH__OUTCOME__OUTCOME_REJECTED, 0, "BadRequest",
                         err.msg, 0);
        return;
    }
    j = bh_calloc(1, sizeof(*j));
    j->b = b;
    j->batch = batch;
    batch->refs++;
    j->item = it;
    j->epoch = w->epoch;
    j->term = w->lease_term;
    j->lapses = b->grant.lapses;
    j->taken_ns = bh_mono_ns();
    j->object = object;
    j->step = first_step(it);
    LIST_INSERT_HEAD(&b->jobs, j, link);
    b->n_jobs++;
    run_step(j);
}

static void refuse(struct bh_binder *b, const Berth__WorkBatch *w, Berth__Outcome o,
                   const char *why)
{
    for (size_t i = 0; i < w->n_item; i++)
        bh_binder_answer(b, w->epoch, w->item[i], o, 0, "", why, 0);
}

void bh_binder_take(struct bh_binder *b, struct bh_batch *batch, const Berth__WorkBatch *w)
{
    if (w->epoch < b->epoch || (w->lease_term && w->lease_term < b->grant.term)) {
        refuse(b, w, BERTH__OUTCOME__OUTCOME_STALE, "a newer scheduler took over");
        return;
    }
    if (b->stopping || (w->epoch > b->epoch && !bh_binder_raise_epoch(b, w->epoch))) {
        refuse(b, w, BERTH__OUTCOME__OUTCOME_UNKNOWN, "the binder takes no work");
        return;
    }
    for (size_t i = 0; i < w->n_item; i++)
        take_item(b, batch, w, w->item[i]);
}

/* It writes devices: done late, it could take some that the next scheduler gave to another pod. What a
 * plugin's patch does late nobody knows. */
static bool takes_devices(const Berth__WorkItem *it)
{
    return it->kind == BERTH__WORK_KIND__WORK_ALLOCATION ||
           it->kind == BERTH__WORK_KIND__WORK_RESERVATION ||
           it->kind == BERTH__WORK_KIND__WORK_NEW_CLAIM || it->kind == BERTH__WORK_KIND__WORK_PATCH;
}

/* A status that only waits to be tried again is not: it is of the scheduler before. */
static bool is_told(const struct bh_job *j)
{
    return is_status(j->item) ? j->writing
                              : !j->item->look && (j->item->kind == BERTH__WORK_KIND__WORK_BIND ||
                                                   takes_devices(j->item));
}

size_t bh_binder_in_flight(struct bh_binder *b, struct bh_job **cursor, Berth__WorkItem *out,
                           size_t max)
{
    struct bh_job *j = *cursor ? *cursor : LIST_FIRST(&b->jobs);
    size_t n = 0;

    for (; j && n < max; j = LIST_NEXT(j, link)) {
        if (!is_told(j))
            continue;
        berth__work_item__init(&out[n]);
        out[n].has_id = out[n].has_kind = true;
        out[n].id = j->item->id;
        out[n].kind = j->item->kind;
        out[n].namespace_ = j->item->namespace_;
        out[n].name = j->item->name;
        out[n].uid = j->item->uid;
        out[n].node = j->item->node;
        n++;
    }
    *cursor = j;
    return n;
}

void bh_binder_drop_jobs(struct bh_binder *b)
{
    struct bh_job *next;

    for (struct bh_job *j = LIST_FIRST(&b->jobs); j; j = next) {
        next = LIST_NEXT(j, link);
        if (j->paused && uv_is_active((const uv_handle_t *)&j->pause))
            answer(j, BERTH__OUTCOME__OUTCOME_UNKNOWN, 0, "", "the binder stops");
    }
}
