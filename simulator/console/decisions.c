/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/decisions.c - /berth/v1/decisions: what the scheduler has recorded
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <inttypes.h>

#include "scheduler/decisions/decisions.h"

#define POLL_NS UINT64_C(80000000)
/* Without a stream for so long: what came meanwhile is not read any more. */
#define IDLE_NS    UINT64_C(5000000000)
#define ROWS_KEPT  2048u
#define ROWS_POLL  500u
#define ROWS_START 200u
#define NUMBER_MAX 1000000

struct bh_console_decisions {
    const char *path;                           /* NULL: there is no file */
    struct bh_decisions *idle[BH_CONSOLE_JOBS]; /* readers that no job uses */
    unsigned n_idle;
    /* The stream's rows: a ring. */
    struct bh_decisions *reader;
    struct bh_decisions_cursor cursor;
    uint64_t serial, polled_ns; /* rows that ever came */
    char *ring[ROWS_KEPT];
};

/* ---- rows of the stream ---------------------------------------------------------------------- */

/* Streams that fell behind, or were not there, start anew from what is there now. */
static void jump(struct bh_console_decisions *d)
{
    bh_decisions_now(d->reader, &d->cursor);
    d->serial += ROWS_KEPT + 1;
}

static void poll_rows(struct bh_console_decisions *d)
{
    uint64_t now = bh_mono_ns();
    struct bh_json *list = NULL;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (now - d->polled_ns < POLL_NS)
        return;
    if (now - d->polled_ns > IDLE_NS)
        jump(d);
    d->polled_ns = now;
    if (bh_decisions_changes(d->reader, &a, &d->cursor, ROWS_POLL, &list, NULL) == 0) {
        bh_json_each(change, list) {
            struct bh_buf b = {0};
            unsigned i = d->serial++ % ROWS_KEPT;
            bh_console_change(&b, bh_json_get_text(change, "type"), bh_json_get(change, "row"));
            free(d->ring[i]);
            d->ring[i] = bh_buf_take(&b);
        }
        if (list->c.n >= ROWS_POLL) /* more than a stream can show */
            jump(d);
    }
}

/* *cursor: serial + 1 of the next row. */
static int decision_rows(struct bh_sim *s, uint64_t *cursor, struct bh_buf *out)
{
    struct bh_console_decisions *d = s->console->decisions;

    if (!d->path)
        return 0;
    poll_rows(d);
    if (!*cursor) {
        const struct bh_decision_filter f = {.limit = ROWS_START};
        struct bh_json *list = NULL, *items;
        BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
        (void)bh_decisions_list(d->reader, &a, &f, &list, NULL);
        items = bh_json_get_list(list, "items");
        for (size_t i = items ? items->c.n : 0; i-- > 0;) { /* oldest first */
            bh_console_change(out, "ADDED", bh_json_at(items, i));
        }
        *cursor = d->serial + 1;
        return 0;
    }
    if (*cursor - 1 > d->serial || d->serial - (*cursor - 1) > ROWS_KEPT)
        return -ESTALE;
    for (; *cursor - 1 < d->serial; ++*cursor) {
        const char *text = d->ring[(*cursor - 1) % ROWS_KEPT];
        if (text)
            bh_buf_addf(out, "%s%s", out->n > 1 ? "," : "", text);
    }
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_console_decisions_start(struct bh_console *c)
{
    struct bh_console_decisions *d = c->decisions = bh_calloc(1, sizeof(*d));

    d->path = c->sim->opt.decisions_file;
    if (d->path)
        d->reader = bh_decisions_new(d->path);
}

void bh_console_decision_rows_start(struct bh_console *c)
{
    bh_console_publish(c->sim, "decisions", decision_rows);
}

void bh_console_decisions_stop(struct bh_console *c)
{
    struct bh_console_decisions *d = c->decisions;

    if (!d)
        return;
    for (unsigned i = 0; i < d->n_idle; i++)
        bh_decisions_free(d->idle[i]);
    for (unsigned i = 0; i < ROWS_KEPT; i++)
        free(d->ring[i]);
    bh_decisions_free(d->reader);
    free(d);
    c->decisions = NULL;
}

struct bh_json *bh_console_recording(struct bh_console *c, struct bh_arena *a)
{
    return bh_decisions_recording(c->decisions ? c->decisions->reader : NULL, a);
}

/* ---- questions ------------------------------------------------------------------------------- */

enum what { LIST, ONE, NODES, NODE, ANNOTATIONS, EXPLANATION };
struct question {
    struct bh_console_decisions *all;
    struct bh_decisions *d; /* NULL: nothing is recorded here */
    struct bh_arena a;
    enum what what;
    int64_t id;
    const char *node, *present_uid;
    struct bh_decision_filter filter;
    struct bh_decision_nodes_query nodes;
};

static int ask(struct question *q, struct bh_json **ret, struct bh_err *err)
{
    int rc;

    switch (q->what) {
    case LIST:
        rc = bh_decisions_list(q->d, &q->a, &q->filter, ret, err);
        if (rc == 0) {
            /* Of one pod: attempts of the pod that lives now come first. */
            const char *uid = q->present_uid;
            struct bh_json *items = bh_json_get_list(*ret, "items"), *next;
            size_t n = items && uid ? items->c.n : 0;
            for (struct bh_json *i = n ? items->c.first : NULL; n; i = next, n--) {
                next = i->next;
                if (bh_streq(bh_json_get_text(bh_json_get(i, "pod"), "uid"), uid))
                    continue;
                bh_json_remove(items, i);
                bh_json_push(items, i);
            }
        }
        return rc;
    case ONE:
        return bh_decisions_get(q->d, &q->a, q->id, ret, err);
    case NODES:
        return bh_decisions_nodes(q->d, &q->a, q->id, &q->nodes, ret, err);
    case NODE:
        return bh_decisions_node(q->d, &q->a, q->id, q->node, ret, err);
    case ANNOTATIONS:
        return bh_decisions_annotations(q->d, &q->a, q->id, NULL, ret, err);
    case EXPLANATION:
        break;
    }
    return bh_decisions_explanation(q->d, &q->a, q->id, ret, err);
}

static void run_question(struct bh_console_job *j, void *arg)
{
    struct question *q = arg;
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};
    int rc = ask(q, &v, &err);
    int code = rc == -ENOENT ? 404 : rc == -EINVAL ? 400 : rc == -EAGAIN ? 503 : 500;

    if (rc < 0)
        bh_console_job_fail(j, code, NULL, 0, "%s", err.msg);
    else
        bh_console_job_reply(j, 200, v);
}

static void release_question(void *arg)
{
    struct question *q = arg;
    struct bh_console_decisions *d = q->all;

    if (q->d && d->n_idle < BH_ARRAY_LEN(d->idle))
        d->idle[d->n_idle++] = q->d;
    else
        bh_decisions_free(q->d);
    bh_arena_fini(&q->a);
    free(q);
}

static struct question *question_new(struct bh_console_req *c, enum what what)
{
    struct bh_console_decisions *d = c->r->sim->console->decisions;
    struct question *q = bh_calloc(1, sizeof(*q));

    q->all = d;
    q->what = what;
    if (d->path)
        q->d = d->n_idle ? d->idle[--d->n_idle] : bh_decisions_new(d->path);
    return q;
}

/* ---- parameters ------------------------------------------------------------------------------ */

static const char *text_of(struct bh_console_req *c, struct question *q, const char *name)
{
    const char *v = bh_http_query(c->r->http, name);

    return v && *v ? bh_arena_strdup(&q->a, v) : NULL;
}

/* A whole number from 0 to max; absent: 0. false: answered with 400. */
static bool number_of(struct bh_console_req *c, const char *name, const char *text, int64_t max,
                      int64_t *ret)
{
    char *end;
    long long v;

    *ret = 0;
    if (!text || !*text)
        return true;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (errno || *end || v < 0 || v > max || *text < '0' || *text > '9')
        return bh_console_fail(c->r, 400, name, 0, "%s \"%.100s\": want a number up to %" PRId64,
                               name, text, max);
    *ret = v;
    return true;
}

static bool read_filter(struct bh_console_req *c, struct question *q)
{
    int64_t limit;

    if (!number_of(c, "limit", text_of(c, q, "limit"), BH_DECISIONS_PAGE_MAX, &limit) ||
        !number_of(c, "before", text_of(c, q, "before"), INT64_MAX, &q->filter.before))
        return false;
    q->filter.limit = (unsigned)limit;
    q->filter.namespace_ = text_of(c, q, "namespace");
    q->filter.pod = text_of(c, q, "pod");
    q->filter.uid = text_of(c, q, "uid");
    q->filter.node = text_of(c, q, "node");
    q->filter.result = text_of(c, q, "result");
    return true;
}

static bool read_nodes(struct bh_console_req *c, struct question *q)
{
    int64_t offset, limit;

    if (!number_of(c, "offset", text_of(c, q, "offset"), NUMBER_MAX * INT64_C(16), &offset) ||
        !number_of(c, "limit", text_of(c, q, "limit"), NUMBER_MAX, &limit))
        return false;
    q->nodes = (struct bh_decision_nodes_query){
        .offset = (unsigned)offset,
        .limit = (unsigned)limit,
        .sort = text_of(c, q, "sort"),
        .status = text_of(c, q, "status"),
        .q = text_of(c, q, "q"),
    };
    return true;
}

static bool read_path(struct bh_console_req *c, struct question *q)
{
    static const struct {
        const char *name;
        unsigned n;
        enum what what;
    } kinds[] = {{"nodes", 3, NODES},
                 {"nodes", 4, NODE},
                 {"annotations", 3, ANNOTATIONS},
                 {"explanation", 3, EXPLANATION}};

    if (c->n == 1)
        return read_filter(c, q);
    if (!number_of(c, "id", c->seg[1], INT64_MAX, &q->id))
        return false;
    if (c->n == 2)
        return true;
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        if (c->n != kinds[i].n || !bh_streq(c->seg[2], kinds[i].name))
            continue;
        q->what = kinds[i].what;
        q->node = c->n == 4 ? bh_arena_strdup(&q->a, c->seg[3]) : NULL;
        return q->what != NODES || read_nodes(c, q);
    }
    return bh_console_fail(c->r, 404, NULL, 0, "nothing is served at %s", c->r->path);
}

void bh_console_decisions(struct bh_console_req *c)
{
    struct question *q = question_new(c, c->n == 1 ? LIST : ONE);

    if (read_path(c, q))
        bh_console_work(c, run_question, release_question, q);
    else
        release_question(q);
}

void bh_console_pod_decisions(struct bh_console_req *c)
{
    struct bh_sim *s = c->r->sim;
    const struct bh_sim_type *pods = bh_sim_find_type(s, "", "v1", "pods");

    if (!bh_streq(c->seg[3], "decisions")) {
        bh_console_fail(c->r, 404, NULL, 0, "nothing is served at %s", c->r->path);
        return;
    }
    struct question *q = question_new(c, LIST);
    if (!read_filter(c, q)) {
        release_question(q);
        return;
    }
    q->filter.namespace_ = bh_arena_strdup(&q->a, c->seg[1]);
    q->filter.pod = bh_arena_strdup(&q->a, c->seg[2]);
    const struct bh_sim_obj *pod = pods ? bh_sim_get(s, pods, c->seg[1], c->seg[2]) : NULL;
    q->present_uid = pod ? bh_arena_strdup(&q->a, pod->uid) : NULL;
    bh_console_work(c, run_question, release_question, q);
}
