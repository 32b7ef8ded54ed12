/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/stream.c - GET /berth/v1/watch: one stream of changes for the whole page
 *
 * A stream holds no queue of its own, only how far it has come in the store's history (one
 * revision for each kind): every 100 ms it is given what is newer, each object once, and only
 * while its reader keeps up. A reader that stays behind until the history has moved on is told
 * "reset" and starts with the state again; one that takes nothing for a minute is cut. So a reader
 * costs the server a constant amount of memory, whatever happens in the cluster.
 *
 * The state of big clusters is told in portions, from references that were taken at one moment.
 * Invariants: `id` is sent only with the last event of a turn in which everything was told, so a
 *             reader that comes back with it has missed nothing before it.
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <stdio.h>

#include "simulator/console/rows.h"
#include "simulator/console/totals.h"

#define TURN_NS     ((int64_t)100 * 1000000)
#define SOON_NS     ((int64_t)2 * 1000000) /* when something was left over */
#define MOMENT_NS   UINT64_C(8000000)
#define SUMS_NS     UINT64_C(400000000)
#define COMMENT_NS  UINT64_C(15000000000)
#define STUCK_NS    UINT64_C(60000000000)
#define PENDING_MAX ((size_t)512 << 10)
#define EVENT_BYTES ((size_t)128 << 10) /* an event ends when it is larger */
#define EVENT_ROWS  256
#define BATCH_MAX   4096 /* commits looked at in one turn, per kind */
#define KINDS_MAX   16
#define STREAMS_MAX 64
#define SOURCES_MAX 16

enum what { PODS, NODES, OBJECTS, SOURCE };
struct subject {
    enum what what;
    char name[128];
    bool from_here;               /* no state is wanted: told from rv on */
    struct bh_sim_bucket *bucket; /* but for SOURCE */
    uint64_t rv;                  /* told up to here */
    bool state_told;
    struct bh_sim_objs state;
    size_t state_at;
    bh_console_rows_fn *fn; /* SOURCE */
    uint64_t cursor;
};
struct stream {
    struct bh_console_streams *all;
    struct stream *prev, *next;
    struct bh_http_stream *http;
    unsigned n;
    struct subject subject[KINDS_MAX];
    bool lines; /* kube-scheduler-simulator's form: a line for every change, nothing else */
    bool begun, synced, wants_nodes, ended;
    uint64_t rv;   /* of the state */
    uint64_t sums; /* cursor of the nodes' sums */
    uint64_t sums_ns, written_ns, moved_ns;
    size_t pending; /* at the last look */
};
struct bh_console_streams {
    struct bh_console *c;
    struct stream *first, *at; /* at: whose turn is next, NULL = the first one's */
    unsigned n;
    struct bh_sim_timer *timer;
    struct bh_arena arena; /* of the object at hand */
    struct bh_buf text, frame;
    unsigned n_sources;
    struct {
        const char *kind;
        bh_console_rows_fn *fn;
    } source[SOURCES_MAX];
};

/* ---- writing --------------------------------------------------------------------------------- */

static void send_text(struct stream *s, const struct bh_buf *b)
{
    struct bh_http_chunk *c = bh_http_chunk_new(b->p, b->n);

    bh_http_stream_add(s->http, c);
    bh_http_chunk_unref(c);
    s->written_ns = bh_mono_ns();
}

/* id 0: none. data: one line. */
static void send_event(struct stream *s, uint64_t id, const char *event, const char *data, size_t n)
{
    struct bh_buf *b = &s->all->frame;

    bh_buf_reset(b);
    if (id)
        bh_buf_addf(b, "id: %llu\n", (unsigned long long)id);
    bh_buf_addf(b, "event: %s\ndata: ", event);
    bh_buf_add(b, data, n);
    bh_buf_adds(b, "\n\n");
    send_text(s, b);
}

void bh_console_change(struct bh_buf *out, const char *type, const struct bh_json *row)
{
    bh_buf_addf(out, "%s{\"type\":\"%s\",\"row\":", out->n > 1 ? "," : "", type);
    bh_json_write(out, row);
    bh_buf_addc(out, '}');
}

static void start_text(struct stream *s)
{
    bh_buf_reset(&s->all->text);
    if (!s->lines)
        bh_buf_addc(&s->all->text, '[');
}

/* The text is a list without its end, or lines; sent when there is anything in it. */
static void send_rows(struct stream *s, const struct subject *k)
{
    struct bh_buf *text = &s->all->text;

    if (s->lines && text->n) {
        send_text(s, text);
    } else if (text->n > 1) {
        bh_buf_addc(text, ']');
        send_event(s, 0, k->name, text->p, text->n);
    }
    start_text(s);
}

static void add_node(struct bh_console_streams *all, const char *type, const struct bh_sim_obj *o)
{
    struct bh_console_amounts requested;

    bh_console_totals_requested(all->c, o->name, &requested);
    bh_console_change(
        &all->text, type,
        bh_console_node_row(&all->arena, o, bh_sim_obj_tree(&all->arena, o), &requested));
    bh_arena_reset(&all->arena);
}

static void add_object(struct stream *s, const struct subject *k, const char *type,
                       const struct bh_sim_obj *o)
{
    struct bh_console_streams *all = s->all;

    if (s->lines) {
        /* {"Kind":"pods","EventType":"ADDED","Obj":{...}}, without its apiVersion and kind. */
        struct bh_json *obj = bh_sim_obj_tree(&all->arena, o);
        bh_json_drop(obj, "apiVersion kind");
        bh_buf_addf(&all->text, "{\"Kind\":\"%s\",\"EventType\":\"%s\",\"Obj\":", o->type->plural,
                    type);
        bh_json_write(&all->text, obj);
        bh_buf_adds(&all->text, "}\n");
        bh_arena_reset(&all->arena);
        return;
    }
    if (k->what == NODES) {
        add_node(all, type, o);
    } else if (k->what == PODS) {
        bh_console_change(&all->text, type,
                          bh_console_pod_row(&all->arena, o, bh_sim_obj_tree(&all->arena, o)));
        bh_arena_reset(&all->arena);
    } else {
        bh_buf_addf(&all->text, "%s{\"type\":\"%s\",\"object\":", all->text.n > 1 ? "," : "", type);
        bh_buf_add(&all->text, o->json, o->json_n);
        bh_buf_addc(&all->text, '}');
    }
}

/* ---- the state ------------------------------------------------------------------------------- */

static void begin_state(struct stream *s)
{
    struct bh_sim *sim = s->all->c->sim;

    s->begun = true;
    s->synced = false;
    s->rv = sim->rv;
    s->sums = bh_console_totals_revision(s->all->c);
    for (unsigned i = 0; i < s->n; i++) {
        struct subject *k = &s->subject[i];
        if (k->from_here) {
            k->state_told = true;
            continue;
        }
        k->cursor = 0;
        k->rv = sim->rv;
        k->state_told = false;
        bh_sim_objs_fini(&k->state);
        k->state_at = 0;
        if (k->what != SOURCE)
            bh_sim_list(sim, k->bucket->type, NULL, &k->state);
    }
}

/* One event of the state. true: something of k is left. */
static bool tell_state(struct stream *s, struct subject *k)
{
    struct bh_console_streams *all = s->all;
    bool left;

    if (k->what == SOURCE) {
        left = k->fn(all->c->sim, &k->cursor, &all->text) == 1;
    } else {
        for (int i = 0; i < EVENT_ROWS && k->state_at < k->state.n && all->text.n < EVENT_BYTES;
             i++)
            add_object(s, k, "ADDED", k->state.v[k->state_at++]);
        left = k->state_at < k->state.n;
        if (!left)
            bh_sim_objs_fini(&k->state);
    }
    send_rows(s, k);
    return left;
}

/* true: not all is told. */
static bool feed_state(struct stream *s)
{
    const char *lost = s->all->c->sim->opt.lost;

    for (unsigned i = 0; i < s->n; i++) {
        struct subject *k = &s->subject[i];
        if (k->state_told)
            continue;
        k->state_told = !tell_state(s, k);
        return true;
    }
    s->synced = true;
    if (s->lines)
        return true; /* what came meanwhile */
    struct bh_buf *data = &s->all->text;
    bh_buf_reset(data);
    bh_json_write(data, bh_json_make(&s->all->arena, "revision: %lu, lost?: %s", s->rv,
                                     lost && *lost ? lost : NULL));
    bh_arena_reset(&s->all->arena);
    send_event(s, s->rv, "synced", data->p, data->n);
    return false;
}

/* ---- changes --------------------------------------------------------------------------------- */

static const char *change_name(enum bh_sim_change first, enum bh_sim_change last)
{
    if (last == BH_SIM_DELETED)
        return "DELETED";
    return first == BH_SIM_ADDED ? "ADDED" : "MODIFIED";
}

/* What happened to each object in events [at, end), each told once, where it happened last. */
static void tell_batch(struct stream *s, struct subject *k, size_t at, size_t end)
{
    struct bh_console_streams *all = s->all;
    BH_CLEANUP(bh_map_fini) struct bh_map last = {0}, first = {0};
    unsigned rows = 0;

    for (size_t i = at; i < end && !s->lines; i++) {
        const struct bh_sim_event *e = bh_sim_history_at(k->bucket, i);
        size_t n = strlen(e->obj->uid);
        if (!bh_map_put(&last, e->obj->uid, n, (void *)(i + 1)))
            bh_map_put(&first, e->obj->uid, n, (void *)(i + 1));
    }
    for (size_t i = at; i < end; i++) {
        const struct bh_sim_event *e = bh_sim_history_at(k->bucket, i);
        size_t n = strlen(e->obj->uid);
        if (s->lines) { /* every single one */
            add_object(s, k, change_name(e->change, e->change), e->obj);
            if (all->text.n >= EVENT_BYTES)
                send_rows(s, k);
            continue;
        }
        if ((size_t)bh_map_get(&last, e->obj->uid, n) != i + 1)
            continue;
        size_t f = (size_t)bh_map_get(&first, e->obj->uid, n) - 1;
        add_object(s, k, change_name(bh_sim_history_at(k->bucket, f)->change, e->change), e->obj);
        if (++rows % EVENT_ROWS == 0 || all->text.n >= EVENT_BYTES)
            send_rows(s, k);
    }
    send_rows(s, k);
}

/* 1: something is left; 0; -ESTALE. */
static int tell_changes(struct stream *s, struct subject *k)
{
    struct bh_sim_bucket *b = k->bucket;

    if (k->what == SOURCE) {
        int rc = k->fn(s->all->c->sim, &k->cursor, &s->all->text);
        send_rows(s, k);
        return rc;
    }
    if (k->rv < b->evicted_rv)
        return -ESTALE;
    size_t at = bh_sim_history_after(b, k->rv);
    size_t end = BH_MIN(b->ring.n, at + BATCH_MAX);
    if (at < end)
        tell_batch(s, k, at, end);
    if (end < b->ring.n) {
        k->rv = bh_sim_history_at(b, end - 1)->rv;
        return 1;
    }
    k->rv = s->all->c->sim->rv;
    return 0;
}

static void on_changed_node(void *arg, const char *node)
{
    struct stream *s = arg;
    struct bh_sim *sim = s->all->c->sim;
    const struct bh_sim_obj *o = bh_sim_get(sim, bh_sim_type_find("", "v1", "nodes"), "", node);

    if (o)
        add_node(s->all, "MODIFIED", o);
}

/* Nodes whose pods changed; true when it was time for them and all are told. */
static bool tell_sums(struct stream *s)
{
    const struct subject *k = s->subject, *end = k + s->n;
    uint64_t now = bh_mono_ns(), before = s->sums;

    while (k < end && k->what != NODES)
        k++;
    if (k == end || s->lines)
        return true;
    if (now - s->sums_ns < SUMS_NS)
        return false;
    bh_console_totals_changed(s->all->c, &s->sums, EVENT_ROWS, on_changed_node, s);
    send_rows(s, k);
    if (s->sums == before || s->sums >= bh_console_totals_revision(s->all->c)) {
        s->sums_ns = now;
        return true;
    }
    return false;
}

/* true: something is left over. */
static bool feed_changes(struct stream *s)
{
    uint64_t rv = s->all->c->sim->rv, written = s->written_ns;
    bool left = false, sums;

    for (unsigned i = 0; i < s->n; i++) {
        int rc = tell_changes(s, &s->subject[i]);
        if (rc == -ESTALE && s->lines) {
            s->ended = true;
            bh_http_stream_end(s->http);
            return false;
        }
        if (rc == -ESTALE) {
            send_event(s, 0, "reset", "{}", 2);
            begin_state(s);
            return true;
        }
        left |= rc == 1;
    }
    sums = tell_sums(s);
    if (!left && sums && s->written_ns != written && !s->lines) {
        struct bh_buf *b = &s->all->frame;
        bh_buf_reset(b);
        bh_buf_addf(b, "id: %llu\n\n", (unsigned long long)rv);
        send_text(s, b);
    }
    return left;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* true: there is more to tell at once. */
static bool turn(struct stream *s)
{
    uint64_t now = bh_mono_ns();

    if (s->ended)
        return false;

    size_t pending = bh_http_stream_pending(s->http);
    if (pending < s->pending || !pending)
        s->moved_ns = now;
    s->pending = pending;
    if (now - s->moved_ns > STUCK_NS) {
        s->ended = true;
        bh_http_stream_abort(s->http);
        return false;
    }
    if (s->pending > PENDING_MAX)
        return false;
    if (s->wants_nodes && !bh_console_totals(s->all->c))
        return true;
    if (!s->begun)
        begin_state(s);
    start_text(s);
    if (s->synced ? feed_changes(s) : feed_state(s))
        return true;
    if (!s->lines && now - s->written_ns > COMMENT_NS && now > s->written_ns) {
        struct bh_buf *b = &s->all->frame;
        bh_buf_reset(b);
        bh_buf_adds(b, ":\n\n");
        send_text(s, b);
    }
    return false;
}

/* As many streams as fit into a moment; the others go on where it ended. */
static void all_turn(void *arg)
{
    struct bh_console_streams *all = arg;
    uint64_t end = bh_mono_ns() + MOMENT_NS;
    bool again = false;
    unsigned n = all->n;

    all->timer = NULL;
    for (; n && all->first && bh_mono_ns() < end; n--) {
        struct stream *s = all->at ? all->at : all->first;
        all->at = s->next;
        again |= turn(s);
    }
    if (all->first)
        all->timer = bh_sim_after(all->c->sim, again || n ? SOON_NS : TURN_NS, all_turn, all);
}

static void on_close(void *arg)
{
    struct stream *s = arg;
    struct bh_console_streams *all = s->all;

    *(s->prev ? &s->prev->next : &all->first) = s->next;
    if (all->at == s)
        all->at = s->next;
    if (s->next)
        s->next->prev = s->prev;
    all->n--;
    for (unsigned i = 0; i < s->n; i++)
        bh_sim_objs_fini(&s->subject[i].state);
    free(s);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* "pods", "deployments.apps" */
static struct bh_sim_bucket *bucket_of(struct bh_sim *sim, const char *name)
{
    size_t n = strcspn(name, ".");
    const char *group = name[n] ? name + n + 1 : "";

    for (size_t i = 0; i < bh_sim_type_count(sim); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(sim, i);
        if (t && strlen(t->plural) == n && memcmp(t->plural, name, n) == 0 &&
            bh_streq(t->group, group) && !t->stored_as && !(t->flags & BH_SIM_REVIEW))
            return bh_sim_bucket(sim, t);
    }
    return NULL;
}

static bool add_subject(struct stream *s, struct bh_sim *sim, const char *name)
{
    struct subject *k = &s->subject[s->n];

    if (s->n == KINDS_MAX || strlen(name) >= sizeof(k->name))
        return false;
    memset(k, 0, sizeof(*k));
    memcpy(k->name, name, strlen(name) + 1);
    for (unsigned i = 0; i < s->all->n_sources; i++) {
        if (bh_streq(s->all->source[i].kind, name)) {
            k->what = SOURCE;
            k->fn = s->all->source[i].fn;
        }
    }
    if (!k->fn) {
        k->what = bh_streq(name, "pods") ? PODS : bh_streq(name, "nodes") ? NODES : OBJECTS;
        k->bucket = bucket_of(sim, name);
        s->wants_nodes |= k->what == NODES;
    }
    s->n += k->fn || k->bucket;
    return k->fn || k->bucket;
}

/* false: answered with an error. */
static bool read_kinds(struct bh_sim_req *r, struct stream *s)
{
    const char *kinds = bh_http_query(r->http, "kinds");
    char *list = bh_arena_strdup(r->a, kinds ? kinds : ""), *save = NULL;

    for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
        if (add_subject(s, r->sim, name))
            continue;
        return bh_console_fail(r, 400, "kinds", 0,
                               "\"%.64s\" is not one of the kinds (PLURAL or PLURAL.GROUP), or one "
                               "of more than %d",
                               name, KINDS_MAX);
    }
    if (!s->n)
        bh_console_fail(r, 400, "kinds", 0, "say which kinds: ?kinds=pods,nodes");
    return s->n > 0;
}

static bool read_revision(const char *text, uint64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    return !*end && !errno && *text >= '0' && *text <= '9';
}

/* since, or what the reader had when its connection broke. */
static bool read_since(struct bh_sim_req *r, struct stream *s, bool *ret_too_old)
{
    const char *text = bh_http_query(r->http, "since");
    uint64_t rv;

    *ret_too_old = false;
    if (!text)
        text = bh_http_header(r->http, "Last-Event-ID");
    if (!text || !*text)
        return true;
    if (!read_revision(text, &rv))
        return bh_console_fail(r, 400, "since", 0, "\"%.40s\" is no revision", text);
    *ret_too_old = rv > r->sim->rv;
    for (unsigned i = 0; i < s->n; i++) {
        s->subject[i].rv = s->subject[i].cursor = rv;
        if (s->subject[i].what == SOURCE)
            s->subject[i].cursor = 0;
        else
            *ret_too_old |= rv < s->subject[i].bucket->evicted_rv;
    }
    s->sums = rv;
    s->begun = s->synced = !*ret_too_old;
    return true;
}

/* Answers r with the stream. */
static void open_stream(struct bh_sim_req *r, struct stream *s, const char *type)
{
    struct bh_console_streams *all = s->all;

    s->next = all->first;
    if (s->next)
        s->next->prev = s;
    all->first = s;
    all->n++;
    s->written_ns = s->moved_ns = bh_mono_ns();
    bh_http_set_header(r->http, "Cache-Control", "no-cache, no-store");
    bh_http_set_header(r->http, "X-Content-Type-Options", "nosniff");
    s->http = bh_http_stream_start(r->http, type, on_close, s);
    bh_cell_add(bh_metric_cell(r->sim->metrics.requests, "console", "200"), 1);
    r->done = true;
    if (all->timer)
        bh_sim_cancel(all->timer);
    all->timer = bh_sim_after(r->sim, 0, all_turn, all);
}

/* NULL: answered with an error. */
static struct stream *new_stream(struct bh_sim_req *r)
{
    struct bh_console_streams *all = r->sim->console->streams;

    if (all->n >= STREAMS_MAX) {
        bh_console_fail(r, 429, NULL, 0, "%d streams are open already", STREAMS_MAX);
        return NULL;
    }
    struct stream *s = bh_calloc(1, sizeof(*s));
    s->all = all;
    return s;
}

void bh_console_watch(struct bh_console_req *c)
{
    struct stream *s = new_stream(c->r);
    bool too_old;

    if (!s)
        return;
    if (!read_kinds(c->r, s) || !read_since(c->r, s, &too_old)) {
        free(s);
        return;
    }
    open_stream(c->r, s, "text/event-stream");
    if (too_old)
        send_event(s, 0, "reset", "{}", 2);
}

/* ---- kube-scheduler-simulator's stream ------------------------------------------------------- */

/* Its seven kinds; a parameter for each says from which version on, absent: from its state. */
static bool read_versions(struct bh_sim_req *r, struct stream *s)
{
    for (size_t i = 0; bh_console_lists[i].name; i++) {
        const char *query = bh_console_lists[i].version_query;
        const char *text = bh_http_query(r->http, query);
        struct subject *k = &s->subject[i];
        (void)add_subject(s, r->sim, bh_console_lists[i].stream);
        if (!text || !*text)
            continue;
        k->from_here = true;
        if (!read_revision(text, &k->rv) || !k->rv)
            return bh_console_fail(r, 400, query, 0, "\"%.40s\" is no version to go on from", text);
    }
    s->wants_nodes = false; /* no sums are told */
    return true;
}

void bh_console_list_watch(struct bh_console_req *c)
{
    struct stream *s = new_stream(c->r);

    if (!s)
        return;
    s->lines = true;
    if (!read_versions(c->r, s)) {
        free(s);
        return;
    }
    open_stream(c->r, s, "application/json");
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_console_publish(struct bh_sim *s, const char *kind, bh_console_rows_fn *fn)
{
    struct bh_console_streams *all = s->console->streams;

    bh_assert(all->n_sources < SOURCES_MAX);
    all->source[all->n_sources].kind = kind;
    all->source[all->n_sources++].fn = fn;
}

void bh_console_streams_start(struct bh_console *c)
{
    c->streams = bh_calloc(1, sizeof(*c->streams));
    c->streams->c = c;
}

void bh_console_streams_stop(struct bh_console *c)
{
    struct bh_console_streams *all = c->streams;

    bh_assert(!all->first);
    bh_sim_cancel(all->timer);
    bh_arena_fini(&all->arena);
    bh_buf_fini(&all->text);
    bh_buf_fini(&all->frame);
    free(all);
    c->streams = NULL;
}
