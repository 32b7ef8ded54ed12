/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/watch.c - WATCH: streams of changes to clients
 *
 * A watch lives through two phases. FEED: it is sent the initial state (from a frozen list, in
 * portions, so that one big list does not hold up the loop or the memory), then the commits that
 * happened meanwhile (from history). LIVE: every commit reaches it from the store.
 * Each commit is encoded at most once per representation (JSON, protobuf; ADDED, MODIFIED, DELETED)
 * and the bytes are shared by all watchers; tables and partial metadata are made for each watcher.
 * Watches that can only see one node's pods or one name are found by that key, so thousands of
 * kubelets, each watching its own pods, cost a commit nothing.
 * Invariants: a watch is sent every commit newer than its rv that its filter selects, in order,
 *             exactly once, or its stream ends.
 * Upstream: apiserver/pkg/storage/cacher/{cacher,cache_watcher}.go,
 *           apiserver/pkg/endpoints/handlers/watch.go; differences: bookmarks at a fixed interval.
 */
#include "simulator/server/custom.h"
#include "simulator/server/watch.h"

#include "simulator/server/faults.h"
#include "simulator/server/req.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include <stdio.h>

#define FEED_PENDING_MAX ((size_t)4 << 20)       /* queued bytes above which feeding pauses */
#define CUT_AFTER_NS     ((int64_t)30 * 1000000) /* lets what is queued reach the client */
#define FEED_PAUSE_NS    ((int64_t)2 * 1000000)
#define FEED_BURST       512

struct bh_sim_watch {
    struct bh_sim *sim;
    struct bh_sim_bucket *bucket;
    struct bh_sim_watch_list *list;
    LIST_ENTRY(bh_sim_watch) same_key;
    struct bh_http_stream *stream;
    const struct bh_sim_type *type; /* representation */
    struct bh_sim_filter filter;
    enum bh_sim_format format;
    enum bh_sim_include include;
    bool bookmarks, initial_end, columns_sent, live, ended;
    uint64_t rv; /* everything up to here is sent or not wanted */
    struct bh_sim_objs feed;
    size_t feed_at;
    struct bh_sim_timer *feed_timer, *end_timer, *cut_timer;
    uint64_t n_sent;
};

/* ---- index: watches by what they can see ----------------------------------------------------- */

struct bh_sim_watch_list {
    LIST_HEAD(, bh_sim_watch) all;
    size_t key_n;
    char key[]; /* "" = everything, "nNODE", "mNAME" */
};
#define KEY_MAX 300

static size_t make_key(char key[KEY_MAX], char kind, const char *value)
{
    int n = snprintf(key, KEY_MAX, "%c%s", kind, value);
    return BH_MIN((size_t)n, (size_t)KEY_MAX - 1);
}

/* A longer value than the API allows matches nothing; then the general list is right too. */
static size_t key_of(const struct bh_sim_filter *f, char key[KEY_MAX])
{
    if (f->name)
        return make_key(key, 'm', f->name);
    for (unsigned i = 0; i < f->n_terms; i++) {
        const struct bh_sim_field_term *t = &f->terms[i];
        if (!t->equal || strlen(t->value) > 253)
            continue;
        if (t->what == BH_SIM_F_NAME)
            return make_key(key, 'm', t->value);
        if (t->what == BH_SIM_F_NODE)
            return make_key(key, 'n', t->value);
    }
    return 0;
}

static void index_add(struct bh_sim_watch *w)
{
    char key[KEY_MAX];
    size_t n = key_of(&w->filter, key);
    struct bh_sim_watch_list *l = bh_map_get(&w->bucket->watches, key, n);
    if (!l) {
        l = bh_malloc(sizeof(*l) + n);
        LIST_INIT(&l->all);
        l->key_n = n;
        memcpy(l->key, key, n);
        bh_map_put(&w->bucket->watches, key, n, l);
    }
    w->list = l;
    LIST_INSERT_HEAD(&l->all, w, same_key);
    w->bucket->n_watches++;
}

/* ---- frames: one commit in every representation a watch needs ------------------------------- */

enum { REP_STORED, REP_OTHER, N_REPS };
struct frames {
    struct bh_sim *sim;
    struct bh_sim_obj *obj;               /* the object this is about */
    const struct bh_json *tree;           /* of obj; parsed on demand */
    struct bh_json *other;                /* converted to the second representation, other_type */
    const struct bh_sim_type *other_type; /* custom resources can have more than two: see other() */
    struct bh_http_chunk *json[N_REPS][3], *pb[N_REPS][3];
    bool pb_failed[N_REPS];
    struct bh_arena arena;
    bool arena_used;
};
static const char *const change_name[] = {"ADDED", "MODIFIED", "DELETED"};

static void frames_init(struct frames *f, struct bh_sim *s, struct bh_sim_obj *o,
                        const struct bh_json *tree)
{
    memset(f, 0, sizeof(*f));
    f->sim = s;
    f->obj = o;
    f->tree = tree;
}

static void frames_fini(struct frames *f)
{
    for (int r = 0; r < N_REPS; r++) {
        for (int c = 0; c < 3; c++) {
            bh_http_chunk_unref(f->json[r][c]);
            bh_http_chunk_unref(f->pb[r][c]);
        }
    }
    if (f->arena_used)
        bh_arena_fini(&f->arena);
}

static struct bh_arena *frames_arena(struct frames *f)
{
    if (!f->arena_used)
        bh_arena_init(&f->arena, 0);
    f->arena_used = true;
    return &f->arena;
}

static const struct bh_json *frames_tree(struct frames *f, const struct bh_sim_type *t)
{
    if (t->stored_as) {
        if (!f->other || f->other_type != t) {
            f->other = bh_sim_obj_tree(frames_arena(f), f->obj);
            f->other_type = t;
            bh_sim_convert_out(&f->arena, t, f->other);
        }
        return f->other;
    }
    if (!f->tree)
        f->tree = bh_sim_obj_tree(frames_arena(f), f->obj);
    return f->tree;
}

/* Frames are kept for the stored representation and one other; a further one takes its place. */
static void other(struct frames *f, const struct bh_sim_type *t)
{
    if (!t->stored_as || !f->other_type || f->other_type == t)
        return;
    for (int c = 0; c < 3; c++) {
        bh_http_chunk_unref(f->json[REP_OTHER][c]);
        bh_http_chunk_unref(f->pb[REP_OTHER][c]);
        f->json[REP_OTHER][c] = f->pb[REP_OTHER][c] = NULL;
    }
    f->pb_failed[REP_OTHER] = false;
}

static struct bh_http_chunk *json_chunk(struct frames *f, const struct bh_sim_type *t, int change)
{
    struct bh_http_chunk **slot = &f->json[t->stored_as ? REP_OTHER : REP_STORED][change];
    other(f, t);
    if (*slot)
        return *slot;
    struct bh_buf *b = &f->sim->frame;
    bh_buf_reset(b);
    bh_buf_addf(b, "{\"type\":\"%s\",\"object\":", change_name[change]);
    if (t->stored_as)
        bh_json_write(b, frames_tree(f, t));
    else
        bh_buf_add(b, f->obj->json, f->obj->json_n);
    bh_buf_add(b, "}\n", 2);
    return *slot = bh_http_chunk_new(b->p, b->n);
}

/* NULL when the object does not fit the schema: such an object is left out. */
static struct bh_http_chunk *pb_chunk(struct frames *f, const struct bh_sim_type *t, int change)
{
    int rep = t->stored_as ? REP_OTHER : REP_STORED;
    struct bh_http_chunk **slot = &f->pb[rep][change];
    other(f, t);
    if (*slot || f->pb_failed[rep])
        return *slot;
    struct bh_buf *env = &f->sim->frame, *b = &f->sim->frame2;
    const struct bh_json *tree = frames_tree(f, t);
    bh_buf_reset(env);
    bh_buf_reset(b);
    if (!bh_sim_encode_pb(f->sim, t, tree, true, env)) {
        f->pb_failed[rep] = true;
        return NULL;
    }
    bh_watch_frame_pb(b, change_name[change], env->p, env->n);
    return *slot = bh_http_chunk_new(b->p, b->n);
}

/* ---- one watcher ----------------------------------------------------------------------------- */

static void watch_end(struct bh_sim_watch *w)
{
    if (w->ended)
        return;
    w->ended = true;
    bh_http_stream_end(w->stream);
}

static void mark_cut(struct bh_sim_watch *w)
{
    w->ended = true;
    bh_cell_add(w->sim->metrics.watch_dropped, 1);
}

static void cut_now(void *arg)
{
    struct bh_sim_watch *w = arg;
    w->cut_timer = NULL;
    bh_http_stream_abort(w->stream);
}

static void send_chunk(struct bh_sim_watch *w, struct bh_http_chunk *c)
{
    if (w->ended || !c)
        return;
    if (w->sim->faults && bh_sim_fault_drop_watch(w->sim)) {
        /* The fault: what was sent before arrives, as from a server whose connection breaks.
         * Were it thrown away, a client with more to catch up with than events between two
         * faults would never get on. */
        mark_cut(w);
        w->cut_timer = bh_sim_after_real(w->sim, CUT_AFTER_NS, cut_now, w);
        return;
    }
    bh_http_stream_add(w->stream, c);
    bh_cell_add(w->sim->metrics.watch_events, 1);
    w->n_sent++;
    if (bh_http_stream_pending(w->stream) > w->sim->opt.watch_buffer_bytes) {
        mark_cut(w);
        bh_http_stream_abort(w->stream);
    }
}

static void send_text(struct bh_sim_watch *w, const char *type, const struct bh_buf *object)
{
    struct bh_buf b = {0};
    bh_buf_addf(&b, "{\"type\":\"%s\",\"object\":", type);
    bh_buf_add(&b, object->p, object->n);
    bh_buf_add(&b, "}\n", 2);
    struct bh_http_chunk *c = bh_http_chunk_new(b.p, b.n);
    send_chunk(w, c);
    bh_http_chunk_unref(c);
    bh_buf_fini(&b);
}

static void send_object(struct bh_sim_watch *w, struct frames *f, int change)
{
    if (w->format != BH_SIM_FMT_TABLE && w->format != BH_SIM_FMT_PARTIAL) {
        send_chunk(w, w->format == BH_SIM_FMT_PB ? pb_chunk(f, w->type, change)
                                                 : json_chunk(f, w->type, change));
        return;
    }
    struct bh_buf b = {0};
    const struct bh_json *tree = frames_tree(f, bh_sim_type_stored(w->type));
    if (w->format == BH_SIM_FMT_TABLE)
        bh_sim_table_of(w->type, false, f->obj->rv, tree, bh_sim_now_ns(w->sim), w->include,
                        !w->columns_sent, &b);
    else
        bh_sim_encode_partial(tree, &b);
    w->columns_sent = true;
    send_text(w, change_name[change], &b);
    bh_buf_fini(&b);
}

/* The event as this watch sees it: an object that enters or leaves its selection is ADDED or
 * DELETED to it. left: frames of the old object at the new revision, made on demand. */
static void deliver(struct bh_sim_watch *w, const struct bh_sim_event *ev, struct frames *f,
                    struct frames *left)
{
    bool now = ev->change != BH_SIM_DELETED && bh_sim_filter_match(&w->filter, ev->obj);
    bool was = ev->old && bh_sim_filter_match(&w->filter, ev->old);
    w->rv = ev->rv;
    if (now)
        send_object(w, f, was ? BH_SIM_MODIFIED : BH_SIM_ADDED);
    else if (was && ev->change == BH_SIM_DELETED)
        send_object(w, f, BH_SIM_DELETED);
    else if (was) {
        if (!left->sim)
            frames_init(left, w->sim, bh_sim_obj_with_rv(ev->old, ev->rv), NULL);
        send_object(w, left, BH_SIM_DELETED);
    }
}

static void frames_fini_left(struct frames *left)
{
    if (!left->sim)
        return;
    bh_sim_obj_unref(left->obj);
    frames_fini(left);
}

struct dispatch {
    const struct bh_sim_event *ev;
    struct frames frames, left;
};

static void deliver_list(struct dispatch *d, const struct bh_sim_watch_list *l)
{
    for (struct bh_sim_watch *w = l ? LIST_FIRST(&l->all) : NULL, *next; w; w = next) {
        next = LIST_NEXT(w, same_key);
        if (w->live && !w->ended)
            deliver(w, d->ev, &d->frames, &d->left);
    }
}

static void deliver_key(struct dispatch *d, const struct bh_sim_bucket *b, char kind,
                        const char *value)
{
    char key[KEY_MAX];
    size_t n = make_key(key, kind, value);
    deliver_list(d, bh_map_get(&b->watches, key, n));
}

void bh_sim_watch_dispatch(struct bh_sim *s, struct bh_sim_bucket *b, const struct bh_sim_event *ev,
                           const struct bh_json *tree)
{
    struct dispatch d = {.ev = ev};
    const struct bh_sim_watch_list *all = bh_map_get(&b->watches, "", 0);
    frames_init(&d.frames, s, ev->obj, tree);
    deliver_list(&d, all);
    if (b->watches.len > (all ? 1 : 0)) {
        deliver_key(&d, b, 'm', ev->obj->name);
        if (b->type->flags & BH_SIM_GRACEFUL) {
            deliver_key(&d, b, 'n', ev->obj->node_name);
            if (ev->old && !bh_streq(ev->old->node_name, ev->obj->node_name))
                deliver_key(&d, b, 'n', ev->old->node_name);
        }
    }
    frames_fini(&d.frames);
    frames_fini_left(&d.left);
}

/* ---- bookmarks, errors ----------------------------------------------------------------------- */

/* A frame made of a tree: bookmarks and errors. desc: of the tree, for protobuf. */
static void send_tree(struct bh_sim_watch *w, const char *type, const struct bh_json *tree,
                      const ProtobufCMessageDescriptor *desc)
{
    struct bh_buf b = {0}, env = {0};
    if (w->format != BH_SIM_FMT_PB) {
        bh_json_write(&b, tree);
        send_text(w, type, &b);
    } else if (bh_json_to_wire(desc, tree, &b, NULL) == 0) {
        bh_envelope_write(&env, bh_json_get_str(tree, "apiVersion"), bh_json_get_str(tree, "kind"),
                          b.p, b.n);
        bh_buf_reset(&b);
        bh_watch_frame_pb(&b, type, env.p, env.n);
        struct bh_http_chunk *c = bh_http_chunk_new(b.p, b.n);
        send_chunk(w, c);
        bh_http_chunk_unref(c);
    }
    bh_buf_fini(&b);
    bh_buf_fini(&env);
}

static void send_bookmark(struct bh_sim_watch *w, bool initial_end)
{
    char api_version[80], rv[21];
    bool table = w->format == BH_SIM_FMT_TABLE, partial = w->format == BH_SIM_FMT_PARTIAL;
    struct bh_arena a;
    bh_arena_init(&a, 0);
    bh_sim_type_api_version(w->type, api_version);
    /* A live watch has seen everything; its selection only had nothing in the newest commits. */
    bh_dec_u64(rv, w->live ? w->sim->rv : w->rv);
    struct bh_json *o =
        bh_json_make(&a, "kind: %s, apiVersion: %s, metadata: {resourceVersion: %s}",
                     table     ? "Table"
                     : partial ? "PartialObjectMetadata"
                               : w->type->kind,
                     table || partial ? "meta.k8s.io/v1" : api_version, rv);
    if (initial_end)
        bh_json_add(&a, o, "metadata: {annotations: {k8s.io/initial-events-end: 'true'}}");
    if (table)
        bh_json_add(&a, o, "columnDefinitions: [], rows: []");
    else
        bh_json_add(&a, o, "metadata: {creationTimestamp: null}");
    send_tree(w, "BOOKMARK", o, w->type->pb);
    bh_arena_fini(&a);
}

void bh_sim_watch_bookmarks(struct bh_sim *s)
{
    for (size_t i = 0; i < bh_sim_bucket_count(s); i++) {
        const struct bh_map_entry *e;
        for (size_t it = 0; (e = bh_map_next(&bh_sim_bucket_at(s, i)->watches, &it));) {
            const struct bh_sim_watch_list *l = e->value;
            struct bh_sim_watch *w;
            LIST_FOREACH(w, &l->all, same_key) {
                if (w->live && w->bookmarks && !w->ended)
                    send_bookmark(w, false);
            }
        }
    }
}

void bh_sim_watch_end_all(struct bh_sim_bucket *b)
{
    const struct bh_map_entry *e;
    for (size_t it = 0; (e = bh_map_next(&b->watches, &it));) {
        const struct bh_sim_watch_list *l = e->value;
        struct bh_sim_watch *w;
        LIST_FOREACH(w, &l->all, same_key)
            watch_end(w);
    }
}

static void send_expired(struct bh_sim_watch *w, uint64_t rv)
{
    struct bh_arena a;
    struct bh_sim_error e = {0};
    bh_arena_init(&a, 0);
    bh_sim_fail(&e, 410, "Expired", "too old resource version: %llu (%llu)", (unsigned long long)rv,
                (unsigned long long)w->bucket->evicted_rv);
    send_tree(w, "ERROR", bh_sim_status_tree(&a, &e), &k8s__status__descriptor);
    bh_arena_fini(&a);
    watch_end(w);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void go_live(struct bh_sim_watch *w)
{
    struct bh_sim_bucket *b = w->bucket;
    if (w->rv < b->evicted_rv) {
        send_expired(w, w->rv);
        return;
    }
    for (size_t i = bh_sim_history_after(b, w->rv); i < b->ring.n && !w->ended; i++) {
        const struct bh_sim_event *ev = bh_sim_history_at(b, i);
        struct frames f, left = {0};
        frames_init(&f, w->sim, ev->obj, NULL);
        deliver(w, ev, &f, &left);
        frames_fini(&f);
        frames_fini_left(&left);
    }
    w->live = true;
    if (w->initial_end && !w->ended)
        send_bookmark(w, true);
}

static void feed(void *arg)
{
    struct bh_sim_watch *w = arg;
    w->feed_timer = NULL;
    for (int burst = 0; burst < FEED_BURST && w->feed_at < w->feed.n && !w->ended; burst++) {
        if (bh_http_stream_pending(w->stream) > FEED_PENDING_MAX)
            break;
        struct bh_sim_obj *o = w->feed.v[w->feed_at++];
        struct frames f;
        if (!bh_sim_filter_match(&w->filter, o))
            continue;
        frames_init(&f, w->sim, o, NULL);
        send_object(w, &f, BH_SIM_ADDED);
        frames_fini(&f);
    }
    if (w->ended)
        return;
    if (w->feed_at < w->feed.n) {
        bool full = bh_http_stream_pending(w->stream) > FEED_PENDING_MAX;
        w->feed_timer = bh_sim_after_real(w->sim, full ? FEED_PAUSE_NS : 0, feed, w);
        return;
    }
    bh_sim_objs_fini(&w->feed);
    go_live(w);
}

static void on_end(void *arg)
{
    struct bh_sim_watch *w = arg;
    w->end_timer = NULL;
    if (w->ended)
        return;
    if (w->live && w->bookmarks)
        send_bookmark(w, false);
    watch_end(w);
}

static void on_close(void *arg)
{
    struct bh_sim_watch *w = arg;
    LIST_REMOVE(w, same_key);
    if (LIST_EMPTY(&w->list->all)) {
        bh_map_del(&w->bucket->watches, w->list->key, w->list->key_n);
        free(w->list);
    }
    w->bucket->n_watches--;
    bh_cell_add(w->sim->metrics.watches, -1);
    bh_sim_cancel(w->feed_timer);
    bh_sim_cancel(w->end_timer);
    bh_sim_cancel(w->cut_timer);
    bh_sim_objs_fini(&w->feed);
    bh_sim_filter_fini(&w->filter);
    free(w);
}

/* ---- the request ----------------------------------------------------------------------------- */

struct start {
    uint64_t rv;
    bool initial, initial_end, too_old;
};

static int forbidden(struct bh_sim_req *r, const char *field, const char *why)
{
    bh_sim_field_error(&r->e, field, "Forbidden", NULL, "%s", why);
    return bh_sim_fail(&r->e, 422, "Invalid",
                       "ListOptions.meta.k8s.io \"\" is invalid: %s: Forbidden: %s", field, why);
}

static int read_start(struct bh_sim_req *r, struct start *st)
{
    const char *rv = bh_http_query(r->http, "resourceVersion");
    const char *match = bh_http_query(r->http, "resourceVersionMatch");
    bool given = bh_http_query(r->http, "sendInitialEvents") != NULL;
    bool send = bh_sim_query_bool(r, "sendInitialEvents", false);
    if (bh_sim_parse_rv(r, rv, &st->rv))
        return r->e.code;
    if (given && !(match && bh_streq(match, "NotOlderThan")))
        return forbidden(r, "resourceVersionMatch",
                         "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (!given && match && *match)
        return forbidden(r, "resourceVersionMatch",
                         "resourceVersionMatch is forbidden for watch unless sendInitialEvents is "
                         "provided");
    if (send && !bh_sim_query_bool(r, "allowWatchBookmarks", false))
        return forbidden(r, "sendInitialEvents", "sendInitialEvents requires allowWatchBookmarks");
    st->initial = send || (!given && !st->rv);
    st->initial_end = send;
    st->too_old = !st->initial && st->rv && st->rv < bh_sim_bucket(r->sim, r->type)->evicted_rv;
    if (!st->initial && !st->rv)
        st->rv = r->sim->rv;
    return 0;
}

void bh_sim_do_watch(struct bh_sim_req *r)
{
    struct start st = {0};
    struct bh_sim_filter filter = {0};
    r->verb = "watch";
    if (bh_sim_negotiate(r, true) || read_start(r, &st) || bh_sim_filter_init(r, &filter))
        return;
    if (!st.too_old && bh_sim_rv_future(r, st.rv)) {
        bh_sim_filter_fini(&filter);
        return;
    }
    struct bh_sim_watch *w = bh_calloc(1, sizeof(*w));
    w->sim = r->sim;
    w->type = r->type;
    w->bucket = bh_sim_bucket(r->sim, r->type);
    w->filter = filter;
    w->format = r->format;
    w->include = bh_sim_include_of(r);
    w->bookmarks = bh_sim_query_bool(r, "allowWatchBookmarks", false);
    w->initial_end = st.initial_end;
    w->rv = st.initial ? r->sim->rv : st.rv;
    index_add(w);
    bh_cell_add(r->sim->metrics.watches, 1);
    bh_cell_add(bh_metric_cell(r->sim->metrics.requests, "watch", "200"), 1);
    bh_http_set_header(r->http, "Cache-Control", "no-cache, private");
    w->stream = bh_http_stream_start(r->http,
                                     w->format == BH_SIM_FMT_PB
                                         ? "application/vnd.kubernetes.protobuf;stream=watch"
                                         : "application/json",
                                     on_close, w);
    r->done = true;
    uint64_t s = 0; /* a value that is none counts as absent */
    if (bh_sim_parse_rv(r, bh_http_query(r->http, "timeoutSeconds"), &s))
        r->e.code = 0;
    if (!s) /* upstream: between one and two times --min-request-timeout */
        s = 1800 + bh_mono_ns() / 1000 % 1800;
    w->end_timer =
        bh_sim_after_real(r->sim, (int64_t)BH_MIN(s, (uint64_t)86400) * 1000000000, on_end, w);
    if (st.too_old || (r->sim->faults && bh_sim_fault_expire(r->sim))) {
        send_expired(w, st.rv);
    } else if (st.initial) {
        bh_sim_list(r->sim, w->bucket->type, w->filter.ns, &w->feed);
        feed(w);
    } else {
        go_live(w);
    }
}
