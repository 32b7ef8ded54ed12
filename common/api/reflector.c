/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/reflector.c - LIST and WATCH of one kind, without losing or doubling anything
 *
 * Owns:       at most one running request, one timer, the set of delivered objects.
 * Invariants: exactly one of: a request runs, the timer runs, or the reflector is being freed.
 *             While watching, everything up to version `rv` was delivered.
 * Runs in:    the loop; the consumer's callbacks may start requests but not free the reflector.
 * Upstream:   client-go/tools/cache/reflector.go (v1.36); differences: classic list+watch only; a
 *             kind the server does not have counts as empty and is asked for again now and then.
 */
#include "common/api/reflector_int.h"

#include "proto/kubernetes/kubernetes.pb-c.h"

#define NS_PER_S        UINT64_C(1000000000)
#define PAGE_ITEMS      500
#define FRAME_MAX_BYTES ((size_t)16 << 20) /* one event of a watch; etcd takes objects of 1.5 MiB */
/* One object of a list: above it the whole list is refused, so far above what may come. */
#define ITEM_MAX_BYTES   ((size_t)64 << 20)
#define LIST_IDLE_NS     (90 * NS_PER_S)
#define WATCH_IDLE_NS    (180 * NS_PER_S) /* bookmarks come about once a minute */
#define SHORT_WATCH_NS   NS_PER_S
#define HEALTHY_NS       (120 * NS_PER_S) /* as client-go: so long without trouble ends it */
#define UNREACHABLE_NS   (2 * NS_PER_S)   /* waits of 2 to 4 s */
#define ABSENT_RETRY_NS  (60 * NS_PER_S)
#define CUSTOM_RETRY_NS  (5 * NS_PER_S) /* its definition may be applied after the plugin */
#define COMPANY_MS       25             /* pods, of their watch; far less than creating one takes */
#define OBJECT_FACTOR    64
#define OBJECT_MIN_BYTES ((size_t)1 << 20)
#define SAME_VERSION_MAX 3 /* broken streams from one version before a list is asked */

#define ACCEPT "application/vnd.kubernetes.protobuf, application/json"
#define EXTRA  "Berth-Projection: scheduling"

enum next { NEXT_LIST, NEXT_WATCH };
enum verdict { GO_ON = 0, STOP_RELIST = 1, STOP_BACKOFF = 2 };

struct bh_reflector {
    uv_loop_t *loop;
    struct bh_api_client *client;
    const struct bh_kind_info *kind;
    struct bh_reflector_callbacks cb;
    struct bh_api_req *req;
    bool watching; /* what req is */
    uv_timer_t timer;
    enum next next; /* when the timer fires */
    struct bh_backoff backoff;
    struct bh_arena arena;
    struct bh_str raw; /* bytes of the object in arena, when they are protobuf */
    struct bh_refl_store store;
    struct bh_list_reader *list;
    struct bh_watch_reader *watch;

    char rv[64];       /* list: of the list being read; watch: last seen; "" = consistent read */
    char floor_rv[64]; /* highest version a list or bookmark gave: going below is a restore */
    char *cont;        /* continue token of the next page */
    bool whole;        /* the next list is asked in one piece: a token expired */
    bool again;        /* a list is wanted that delivers everything */
    bool repeating;    /* the running one does */
    bool synced, troubled, served, freed;
    bool absent;           /* the last trouble told: the server does not have the kind */
    const char *forbidden; /* verb */
    bool unreachable;      /* the last request did not even leave */
    bool expired;          /* the running request ended with: version too old or too new */
    bool expiring;         /* one did, and no watch lasted since */
    enum verdict stop;     /* why our own reader ended the stream */
    struct bh_err why;
    unsigned versions_tried; /* since one was there */
    unsigned broken, silent; /* streams in a row without progress */
    uint64_t watch_start_ns, watch_events, watch_bytes;
    uint64_t idle_ns;
    unsigned hurry; /* waits are divided by it */
    struct bh_reflector_stats stats;
};

static bool is_custom(const struct bh_reflector *r)
{
    return r->kind->kind >= BH_KIND_CUSTOM;
}

static void start_list(struct bh_reflector *r);
static void start_watch(struct bh_reflector *r);

/* ---- delivering ------------------------------------------------------------------------------ */

static void deliver(struct bh_reflector *r, enum bh_watch_type type, bool in_list,
                    const struct bh_refl_key *k, const ProtobufCMessage *m)
{
    struct bh_reflector_event ev = {type,   in_list, k->ns, k->name,
                                    k->uid, k->rv,   m,     m ? r->raw : (struct bh_str){NULL, 0}};
    r->stats.events++;
    r->cb.on_event(r->cb.arg, r->kind, &ev);
}

static void bad_object(struct bh_reflector *r, const char *name, const char *why)
{
    r->stats.bad_objects++;
    if (r->cb.on_bad)
        r->cb.on_bad(r->cb.arg, r->kind, name, why);
}

static void deliver_gone(void *arg, const struct bh_refl_key *k)
{
    deliver(arg, BH_WATCH_DELETED, true, k, NULL);
}

static void object_present(struct bh_reflector *r, const ProtobufCMessage *m, bool in_list,
                           const struct bh_refl_key *k)
{
    char *old_uid BH_CLEANUP(bh_freep) = NULL;
    switch (bh_refl_store_put(&r->store, k, in_list, &old_uid)) {
    case BH_REFL_NEW:
        deliver(r, BH_WATCH_ADDED, in_list, k, m);
        break;
    case BH_REFL_CHANGED:
        deliver(r, BH_WATCH_MODIFIED, in_list, k, m);
        break;
    case BH_REFL_REPLACED: {
        struct bh_refl_key old = {k->ns, k->name, old_uid, k->rv};
        deliver(r, BH_WATCH_DELETED, in_list, &old, NULL);
        deliver(r, BH_WATCH_ADDED, in_list, k, m);
        break;
    }
    case BH_REFL_SAME:
        if (in_list && r->repeating)
            deliver(r, BH_WATCH_MODIFIED, in_list, k, m);
        else
            r->stats.duplicates++;
        break;
    case BH_REFL_INVALID:
        bad_object(r, k->name, "metadata.name: too long");
        break;
    }
}

/* The name, where it can still be read: JSON of which only some field is wrong. */
static const char *name_of_bad(struct bh_reflector *r, const void *p, size_t n)
{
    struct bh_json *v = NULL;
    bh_arena_reset(&r->arena);
    if (bh_is_pb_envelope(p, n) || bh_json_parse(&r->arena, p, n, BH_JSON_NUL, &v, NULL) < 0)
        return "";
    const char *name = bh_json_cstr(bh_json_path(v, "metadata.name"));
    return name ? name : "";
}

/* Decodes one object into the arena. NULL: reported as bad. */
static const ProtobufCMessage *decode(struct bh_reflector *r, const void *p, size_t n, bool bare_pb,
                                      struct bh_refl_key *ret_k)
{
    ProtobufCMessage *m = NULL;
    struct bh_envelope e;
    struct bh_err err = {""};
    int rc = 0;

    bh_arena_reset(&r->arena);
    r->arena.limit_bytes = BH_MAX(n * OBJECT_FACTOR, OBJECT_MIN_BYTES);
    r->raw = bare_pb ? (struct bh_str){p, n} : (struct bh_str){NULL, 0};
    if (!bare_pb && bh_is_pb_envelope(p, n)) {
        rc = bh_envelope_open(p, n, &e, &err);
        if (rc == 0)
            r->raw = e.raw.p ? e.raw : (struct bh_str){"", 0};
    }
    if (rc == 0 && is_custom(r))
        rc = r->raw.p ? bh_err_set(&err, -EINVAL, "it came as protobuf, which was not asked for")
                      : bh_decode_custom(&r->arena, p, n, &m, &err);
    else if (rc == 0)
        rc = r->raw.p ? bh_pb_unpack(&r->arena, r->kind->desc, r->raw.p, r->raw.n, &m, &err)
                      : bh_decode_object(&r->arena, r->kind->desc, p, n, &m, &err);
    if (rc < 0) {
        bad_object(r, name_of_bad(r, p, n), err.msg);
        return NULL;
    }
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    if (!meta || !*meta->name || !*meta->uid || !*meta->resourceversion) {
        bad_object(r, meta ? meta->name : "", "metadata: name, uid or resourceVersion is missing");
        return NULL;
    }
    *ret_k = (struct bh_refl_key){meta->namespace_, meta->name, meta->uid, meta->resourceversion};
    return m;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void set_rv(char dst[static 64], const char *rv)
{
    const size_t n = strnlen(rv, 63);

    memcpy(dst, rv, n);
    dst[n] = '\0';
}

static void trouble(struct bh_reflector *r, const char *text)
{
    if (!text && !r->troubled)
        return;
    r->troubled = text != NULL;
    r->absent = false;
    if (r->cb.on_trouble)
        r->cb.on_trouble(r->cb.arg, r->kind, text);
}

static void on_timer(uv_timer_t *h)
{
    struct bh_reflector *r = bh_container_of(h, struct bh_reflector, timer);
    if (r->next == NEXT_LIST)
        start_list(r);
    else
        start_watch(r);
}

static void go_after(struct bh_reflector *r, enum next next, uint64_t wait_ns)
{
    r->next = next;
    uv_update_time(r->loop);
    uv_timer_start(&r->timer, on_timer, wait_ns / r->hurry / 1000000, 0);
}

uint64_t bh_refl_unreached_ns(struct bh_backoff *b)
{
    const uint64_t most = BH_MAX(b->cur_ns, UNREACHABLE_NS), wait = bh_backoff_next_ns(b);

    b->cur_ns = BH_MIN(b->cur_ns, most);
    return BH_MIN(wait, UNREACHABLE_NS + wait % UNREACHABLE_NS);
}

static void go_backoff(struct bh_reflector *r, enum next next)
{
    go_after(r, next,
             r->unreachable ? bh_refl_unreached_ns(&r->backoff) : bh_backoff_next_ns(&r->backoff));
}

/* The server did what was asked: what follows is a new trouble, not more of the last. Unless it
 * calls our versions too old: each list brings it to the point where it may say so again. */
static void progress(struct bh_reflector *r)
{
    r->broken = 0;
    if (!r->expiring)
        r->backoff.cur_ns = 0;
}

/* A list from scratch. consistent: the version we know is of no use (too old, from before a
 * restore): ask for the newest state instead of "not older than". */
static void relist(struct bh_reflector *r, bool consistent, bool wait)
{
    free(r->cont);
    r->cont = NULL;
    if (consistent)
        r->rv[0] = r->floor_rv[0] = 0;
    if (wait)
        go_backoff(r, NEXT_LIST);
    else
        go_after(r, NEXT_LIST, 0);
}

/* The first time the watch has only lost its place, and a list puts that right. A server that says
 * so again and again would be asked for everything as fast as it can answer. */
static void relist_expired(struct bh_reflector *r)
{
    const bool again = r->expiring;
    r->expiring = true;
    relist(r, true, again);
}

static void finished(struct bh_reflector *r)
{
    bh_list_reader_free(r->list);
    bh_watch_reader_free(r->watch);
    r->list = NULL;
    r->watch = NULL;
    r->req = NULL;
}

static void free_now(struct bh_reflector *r)
{
    finished(r);
    free(r->cont);
    bh_refl_store_fini(&r->store);
    bh_arena_fini(&r->arena);
    free(r);
}

static void describe(struct bh_reflector *r, const char *what, const struct bh_api_reply *reply,
                     const struct bh_api_status *st)
{
    if (reply->outcome == BH_API_OK)
        bh_err_set(&r->why, 0, "%s: HTTP %d %s", what, reply->code, st->message);
    else if (!*r->why.msg) /* our own reader's reason says more than the transport's */
        bh_err_set(&r->why, 0, "%s: %s", what, reply->error);
}

static bool is_too_large(const struct bh_api_status *st)
{
    return bh_streq(st->reason, "Timeout") &&
           strstr(st->message, "Too large resource version") != NULL;
}

static bool is_expired(const struct bh_api_status *st)
{
    return st->code == 410 || bh_streq(st->reason, "Expired") || bh_streq(st->reason, "Gone");
}

static void add_selector(struct bh_reflector *r, struct bh_buf *url)
{
    if (r->kind->list_field_selector)
        bh_url_addf(url, "&fieldSelector=%s", r->kind->list_field_selector);
}

static void start(struct bh_reflector *r, const char *path, uint64_t idle_ns,
                  int (*on_head)(void *, int, const char *),
                  int (*on_data)(void *, const void *, size_t),
                  void (*on_done)(void *, const struct bh_api_reply *))
{
    const bool busy = r->watching && r->kind->kind == BH_KIND_POD;
    const bool json = is_custom(r) || bh_api_client_json(r->client);

    r->stop = GO_ON;
    r->why.msg[0] = 0;
    r->req =
        bh_api_start(r->client, &(struct bh_api_call){.method = "GET",
                                                      .path = path,
                                                      .accept = json ? "application/json" : ACCEPT,
                                                      .extra_header = is_custom(r) ? NULL : EXTRA,
                                                      .idle_timeout_ns = idle_ns,
                                                      .long_lived = true,
                                                      .gzip = !r->watching,
                                                      .company_ms = busy ? COMPANY_MS : 0,
                                                      .retry_429_5xx = true,
                                                      .on_head = on_head,
                                                      .on_data = on_data,
                                                      .on_done = on_done,
                                                      .arg = r});
}

/* ---- list ------------------------------------------------------------------------------------ */

static int on_list_item(void *arg, const void *p, size_t n, bool is_pb)
{
    struct bh_reflector *r = arg;
    struct bh_refl_key k;
    const ProtobufCMessage *m = decode(r, p, n, is_pb, &k);
    if (m)
        object_present(r, m, true, &k);
    return 0; /* one bad object costs no other */
}

static int on_list_head(void *arg, int code, const char *content_type)
{
    struct bh_reflector *r = arg;
    (void)code;
    r->list = bh_list_reader_new(content_type, ITEM_MAX_BYTES, on_list_item, r);
    return 0;
}

static int on_list_data(void *arg, const void *p, size_t n)
{
    struct bh_reflector *r = arg;
    r->stats.bytes += n;
    if (r->freed)
        return 1;
    int rc = bh_list_reader_feed(r->list, p, n);
    if (rc < 0)
        bh_list_reader_finish(r->list, &(struct bh_list_meta){0}, &r->why); /* its words */
    return rc;
}

static void page_complete(struct bh_reflector *r)
{
    struct bh_list_meta meta = {.resource_version = ""};
    struct bh_err err = {""};
    int rc = bh_list_reader_finish(r->list, &meta, &err);
    finished(r);
    if (rc < 0 || !*meta.resource_version) {
        trouble(r, rc < 0 ? err.msg : "list: metadata.resourceVersion is missing");
        free(meta.cont);
        relist(r, false, true);
        return;
    }
    /* A list that is older than what we saw comes from before a restore, unless it is the answer to
     * a consistent read: then that is the truth now. */
    if (*r->floor_rv && bh_refl_rv_cmp(meta.resource_version, r->floor_rv) < 0) {
        free(meta.cont);
        relist(r, true, false);
        return;
    }
    set_rv(r->rv, meta.resource_version);
    free(r->cont);
    r->cont = meta.cont;
    if (r->cont)
        start_list(r);
    else {
        const bool relisted = r->synced;
        r->whole = false;
        r->served = true;
        r->versions_tried = 0;
        r->broken = r->silent = 0;
        bh_refl_store_sweep(&r->store, deliver_gone, r);
        set_rv(r->floor_rv, r->rv);
        r->synced = true;
        r->repeating = false;
        if (relisted)
            r->stats.relists++;
        if (r->forbidden && bh_streq(r->forbidden, "list"))
            r->forbidden = NULL;
        if (!r->forbidden)
            trouble(r, NULL);
        if (r->cb.on_synced)
            r->cb.on_synced(r->cb.arg, r->kind, relisted);
        if (r->again)
            relist(r, false, false);
        else
            start_watch(r);
    }
}

static unsigned versions_of(const struct bh_kind_info *k)
{
    unsigned n = 0;

    for (; k; k = k->other)
        n++;
    return n;
}

/* A kind whose version the server has not may be there in another one, also after an upgrade of the
 * server. False: all have been tried since one was there; the first one is next. */
static bool other_version(struct bh_reflector *r)
{
    if (is_custom(r))
        return false;
    const struct bh_kind_info *first = &bh_kinds[r->kind->kind];

    if (!first->other)
        return false;
    r->kind = r->kind->other ? r->kind->other : first;
    return ++r->versions_tried % versions_of(first) != 0;
}

/* The server has no such kind: an old one, one with the group switched off, or the definition of a
 * custom resource is missing. */
static void absent(struct bh_reflector *r)
{
    const bool custom = is_custom(r), relist = r->synced && r->served;

    r->again = r->repeating = false; /* there is nothing to repeat */
    if (!r->absent) {                /* said once */
        bh_refl_store_sweep(&r->store, deliver_gone, r);
        r->synced = true;
        r->served = false;
        r->forbidden = NULL;
        trouble(r, custom
                       ? "the server does not have this kind: taken as empty, asked for every 5 s"
                       : "the server does not have this kind: taken as empty, asked for once a "
                         "minute");
        r->absent = true;
        if (r->cb.on_synced)
            r->cb.on_synced(r->cb.arg, r->kind, relist);
    }
    if (custom) /* versions of another definition say nothing about the next one's */
        r->rv[0] = r->floor_rv[0] = 0;
    go_after(r, NEXT_LIST, custom ? CUSTOM_RETRY_NS : ABSENT_RETRY_NS);
}

static void on_list_done(void *arg, const struct bh_api_reply *reply)
{
    struct bh_reflector *r = arg;
    struct bh_api_status st = {.code = 0};

    r->unreachable = reply->outcome == BH_API_TRANSPORT && !reply->sent;
    if (r->freed) {
        free_now(r);
        return;
    }
    if (reply->outcome == BH_API_CANCELED) { /* the client is going away */
        finished(r);
        return;
    }
    if (reply->outcome == BH_API_OK && reply->code == 200 && r->list) {
        page_complete(r);
        return;
    }
    if (reply->outcome == BH_API_OK)
        bh_decode_status(reply->body.p, reply->body.n, reply->code, &st);
    describe(r, "list", reply, &st);
    finished(r);
    if (reply->outcome == BH_API_OK && reply->code == 404 && other_version(r)) {
        relist(r, true, false);
    } else if (reply->outcome == BH_API_OK && reply->code == 404 &&
               (is_custom(r) || (*r->kind->group && !r->served))) {
        absent(r);
    } else if (is_expired(&st) || is_too_large(&st)) {
        /* A token that expires between pages would do so again: the list is too long for pages. */
        r->whole = r->cont != NULL;
        relist(r, true, !r->whole);
    } else {
        if (reply->outcome == BH_API_OK && reply->code == 403)
            r->forbidden = "list";
        trouble(r, r->why.msg);
        relist(r, false, true);
    }
}

static void start_list(struct bh_reflector *r)
{
    struct bh_buf url BH_CLEANUP(bh_buf_fini) = {0};
    char path[256];

    bh_kind_path(r->kind, NULL, path, sizeof(path));
    bh_buf_addf(&url, "%s?", path);
    if (!r->cont) {
        bh_refl_store_begin_list(&r->store);
        r->stats.lists++;
        r->repeating |= r->again;
        r->again = false;
    }
    if (!r->whole)
        bh_buf_addf(&url, "limit=%d&", PAGE_ITEMS);
    bh_url_addf(&url, r->cont ? "continue=%s" : "resourceVersion=%s", r->cont ? r->cont : r->rv);
    add_selector(r, &url);
    r->watching = false;
    start(r, bh_buf_str(&url), LIST_IDLE_NS, on_list_head, on_list_data, on_list_done);
}

/* ---- watch ----------------------------------------------------------------------------------- */

static int on_bookmark(struct bh_reflector *r, const void *p, size_t n)
{
    char rv[32];
    bool initial_end;
    if (bh_decode_bookmark(p, n, rv, &initial_end) < 0) {
        bad_object(r, "", "bookmark without resourceVersion");
        return 0;
    }
    r->stats.bookmarks++;
    if (bh_refl_rv_cmp(rv, r->floor_rv) < 0) {
        r->expired = true;
        bh_err_set(&r->why, 0, "versions went back from %s to %s", r->floor_rv, rv);
        return r->stop = STOP_RELIST;
    }
    set_rv(r->rv, rv);
    set_rv(r->floor_rv, rv);
    return 0;
}

static int on_watch_event(void *arg, enum bh_watch_type type, const void *p, size_t n)
{
    struct bh_reflector *r = arg;
    struct bh_refl_key k;

    if (type == BH_WATCH_ERROR) {
        struct bh_api_status st;
        bh_decode_status(p, n, 500, &st);
        r->expired = is_expired(&st) || is_too_large(&st);
        bh_err_set(&r->why, 0, "%s (%d)", st.message, st.code);
        return r->stop = STOP_RELIST;
    }
    r->watch_events++;
    progress(r);
    if (type == BH_WATCH_BOOKMARK)
        return on_bookmark(r, p, n);
    if (type == BH_WATCH_UNKNOWN) {
        bad_object(r, "", "unknown type of watch event");
        return 0;
    }
    const ProtobufCMessage *m = decode(r, p, n, false, &k);
    if (!m)
        return 0;
    if (bh_refl_rv_cmp(k.rv, r->rv) > 0)
        set_rv(r->rv, k.rv);
    if (type == BH_WATCH_DELETED) {
        char *old_uid BH_CLEANUP(bh_freep) = NULL;
        if (!bh_refl_store_del(&r->store, &k, &old_uid)) {
            r->stats.duplicates++;
        } else if (bh_streq(old_uid, k.uid)) {
            deliver(r, BH_WATCH_DELETED, false, &k, m);
        } else { /* we missed that another one came and went under this name */
            struct bh_refl_key old = {k.ns, k.name, old_uid, k.rv};
            deliver(r, BH_WATCH_DELETED, false, &old, NULL);
        }
    } else
        object_present(r, m, false, &k);
    return 0;
}

static int on_watch_head(void *arg, int code, const char *content_type)
{
    struct bh_reflector *r = arg;
    (void)code;
    r->watch = bh_watch_reader_new(content_type, FRAME_MAX_BYTES, on_watch_event, r);
    r->forbidden = NULL;
    trouble(r, NULL);
    return 0;
}

static int on_watch_data(void *arg, const void *p, size_t n)
{
    struct bh_reflector *r = arg;
    r->stats.bytes += n;
    r->watch_bytes += n;
    if (r->freed)
        return 1;
    int rc = bh_watch_reader_feed(r->watch, p, n);
    if (rc < 0) {
        bh_err_set(&r->why, 0, "undecodable stream: %s", strerror(-rc));
        r->stop = STOP_BACKOFF;
    }
    return rc;
}

/* The connection went, or cannot be had: that the version is too old when the server is back is a
 * new trouble. (A server that comes and goes is asked after the waits for connections.) */
static void connection_lost(struct bh_reflector *r)
{
    if (r->expiring)
        r->backoff.cur_ns = 0;
    r->expiring = false;
}

/* The stream was there and is over: end of its time, a lost connection, or our own verdict. */
static void watch_over(struct bh_reflector *r, const struct bh_api_reply *reply)
{
    const bool idle = reply->outcome == BH_API_TIMEOUT;
    const uint64_t lasted = bh_mono_ns() - r->watch_start_ns;
    const bool brief = lasted < SHORT_WATCH_NS / r->hurry;
    if (!idle && lasted >= HEALTHY_NS / r->hurry)
        r->expiring = false;
    if (!idle && reply->outcome != BH_API_OK && r->stop == GO_ON)
        connection_lost(r);
    /* Twice silent from the first byte on: this server does not know our version (restored). */
    r->silent = idle && r->watch_bytes == 0 ? r->silent + 1 : 0;
    if (!brief && !idle && r->stop == GO_ON)
        progress(r);
    if (r->stop == STOP_RELIST) {
        trouble(r, r->why.msg);
        if (r->expired)
            relist_expired(r);
        else
            relist(r, false, true);
    } else if (r->stop == STOP_BACKOFF) {
        trouble(r, r->why.msg);
        if (++r->broken >= SAME_VERSION_MAX) /* no event came between them */
            relist(r, false, true);
        else
            go_backoff(r, NEXT_WATCH);
    } else if (idle) {
        trouble(r, "watch: no byte arrived in time");
        if (r->silent >= 2)
            relist(r, true, false);
        else
            go_after(r, NEXT_WATCH, 0);
    } else if (r->watch_events == 0 && brief && reply->outcome == BH_API_OK) {
        trouble(r, "watch: ended at once without an event"); /* it does not like our version? */
        relist(r, false, true);
    } else if (r->watch_events == 0 && brief) {
        trouble(r, reply->error);
        go_backoff(r, NEXT_WATCH);
    } else {
        go_after(r, NEXT_WATCH, 0);
    }
}

static void on_watch_done(void *arg, const struct bh_api_reply *reply)
{
    struct bh_reflector *r = arg;
    if (r->freed) {
        free_now(r);
        return;
    }
    const bool opened = r->watch != NULL;
    r->unreachable = reply->outcome == BH_API_TRANSPORT && !reply->sent;
    finished(r);
    if (reply->outcome == BH_API_CANCELED) { /* the client is going away, unless we did it */
        if (r->again)
            relist(r, false, false);
        return;
    }
    if (opened)
        watch_over(r, reply);
    else {
        struct bh_api_status st = {.code = 0};
        if (reply->outcome == BH_API_OK)
            bh_decode_status(reply->body.p, reply->body.n, reply->code, &st);
        describe(r, "watch", reply, &st);
        if (reply->outcome == BH_API_OK && reply->code == 403)
            r->forbidden = "watch";
        trouble(r, r->why.msg);
        if (reply->outcome != BH_API_OK)
            connection_lost(r);
        if (is_expired(&st) || is_too_large(&st))
            relist_expired(r);
        else if (reply->outcome != BH_API_OK || reply->code == 429)
            go_backoff(r, NEXT_WATCH); /* no answer: our version is as good as before */
        else
            relist(r, false, true);
    }
}

static void start_watch(struct bh_reflector *r)
{
    struct bh_buf url BH_CLEANUP(bh_buf_fini) = {0};
    char path[256];

    r->stats.watches++;
    r->watch_events = r->watch_bytes = 0;
    r->watch_start_ns = bh_mono_ns();
    r->expired = false;
    bh_kind_path(r->kind, NULL, path, sizeof(path));
    bh_buf_adds(&url, path);
    bh_url_addf(&url, "?allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%d&watch=true",
                r->rv, 300 + (int)bh_rand_below(&r->backoff.rand, 300));
    add_selector(r, &url);
    r->watching = true;
    start(r, bh_buf_str(&url), r->idle_ns, on_watch_head, on_watch_data, on_watch_done);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct bh_reflector *bh_reflector_new(uv_loop_t *loop, struct bh_api_client *c,
                                      const struct bh_kind_info *kind,
                                      const struct bh_reflector_callbacks *cb)
{
    struct bh_reflector *r = bh_calloc(1, sizeof(*r));
    r->loop = loop;
    r->client = c;
    r->kind = kind;
    r->cb = *cb;
    r->idle_ns = cb->idle_ns ? cb->idle_ns : WATCH_IDLE_NS;
    r->hurry = cb->hurry ? cb->hurry : 1;
    set_rv(r->rv, "0");
    bh_backoff_init(&r->backoff);
    bh_arena_init(&r->arena, OBJECT_MIN_BYTES);
    uv_timer_init(loop, &r->timer);
    go_after(r, NEXT_LIST, 0);
    return r;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct bh_reflector *r = bh_container_of(h, struct bh_reflector, timer);
    r->freed = true;
    if (r->req)
        bh_api_cancel(r->req); /* the last callback frees */
    else
        free_now(r);
}

void bh_reflector_free(struct bh_reflector *r)
{
    if (r && !uv_is_closing((uv_handle_t *)&r->timer))
        uv_close((uv_handle_t *)&r->timer, on_timer_closed);
}

bool bh_reflector_follows(const struct bh_reflector *r)
{
    return r->synced && r->watch;
}

const char *bh_reflector_forbidden(const struct bh_reflector *r)
{
    return r->forbidden;
}

void bh_reflector_again(struct bh_reflector *r)
{
    if (uv_is_closing((uv_handle_t *)&r->timer))
        return;
    r->again = true;
    if (!r->req)
        relist(r, false, false);
    else if (r->watching)
        bh_api_cancel(r->req);
    /* else a list runs: the next one follows it */
}

bool bh_reflector_repeats(const struct bh_reflector *r)
{
    return r->again || r->repeating;
}

void bh_reflector_stats(const struct bh_reflector *r, struct bh_reflector_stats *ret)
{
    *ret = r->stats;
    ret->objects = r->store.len;
}
