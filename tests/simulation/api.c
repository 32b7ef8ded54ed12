/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/api.c - client.h, and the API server's HTTP, over a made-up network
 *
 * A request is an exchange: it leaves its process in a turn of its loop, arrives, is handled in the
 * server's loop, and what is answered comes back in pieces. Bodies are the bytes that a real
 * connection would carry; only HTTP's own framing is left out. What the network does to an exchange
 * is drawn when it leaves (struct net).
 */
#include "common/api/client.h"
#include "common/http/carrier.h"
#include "simulator/http/stream.h"
#include "tests/simulation/simulation.h"

#include <errno.h>
#include <strings.h>

#define LATENCY_MIN  UINT64_C(100000)
#define ATTEMPTS_MAX 10
#define SILENCE_MAX  (20 * SECOND)
#define OPENED_NS    (5 * SECOND) /* for what a new watch brings to be seen to */
#define ACCEPT_JSON  "application/json"

enum fate { GOES_WELL, LOST, ANSWER_LOST, HALF, NEVER, REFUSED };
enum piece_kind { PIECE_HEAD, PIECE_DATA, PIECE_END, PIECE_CUT, PIECE_LATE, PIECE_CANCEL };
struct exchange {           /* never freed: what is on the way names it */
    struct bh_api_req *req; /* NULL: nobody waits for it any more */
    struct process *of;
    unsigned life;
    enum fate fate;
    bool watch, writes, binds;
    bool ended; /* by the server, or cut */
    bool hole;  /* a piece was lost */
    uint64_t last_ns, heard_ns, latency_ns;
    struct bh_http_conn *conn; /* the server's, of a stream */
    struct call *call;         /* waiting at the server */
    unsigned served_by;        /* life of the server that conn and call are of */
    LIST_ENTRY(exchange) link; /* of all that are under way */
    bool listed;
};
struct piece {
    TAILQ_ENTRY(piece) link;
    struct exchange *x;
    enum piece_kind kind;
    bool local; /* the client itself sees it happen */
    int code, retry_after_s;
    char content_type[96];
    size_t n;
    char p[];
};
TAILQ_HEAD(pieces, piece);
struct bh_api_req {
    TAILQ_ENTRY(bh_api_req) link;
    struct bh_api_client *c;
    struct bh_api_call call; /* strings are owned */
    struct exchange *x;
    bool queued, canceled, head, sent;
    unsigned attempts;
    uint64_t deadline_ns;
    int code, retry_after_s;
    char content_type[96];
    struct bh_buf body;
};
TAILQ_HEAD(reqs, bh_api_req);
struct bh_api_client {
    uv_loop_t *loop;
    struct process *of;
    unsigned life;
    char *agent, *manager, *token;
    struct source *source;
    struct pieces in;
    struct reqs reqs;
    unsigned n_live;
    bool closing, json;
};
static LIST_HEAD(, exchange) exchanges;
struct net net = {.latency_ns = 2 * MS};
/* What sequences.c orders for the writes of some pods. */
static struct {
    const char *pods; /* their names begin so; NULL: nothing is ordered */
    uint64_t
        delay_ns; /* the network delays the next binding by so much; 0: it refuses all writes */
    bool cut;     /* the client of the delayed binding loses its connection at once */
    struct process *sender; /* of the delayed binding, or of one that was refused */
} order;

/* ---- the server's side ----------------------------------------------------------------------- */

struct call {
    struct bh_http_req r; /* first: the server sees nothing else */
    TAILQ_ENTRY(call) link;
    struct bh_http_field fields[8];
    struct exchange *x;
    char *texts; /* what fields and method point to */
};
struct bh_http_conn {
    struct bh_http_stream *stream;
    struct exchange *x;
    bool over, listed;
    TAILQ_ENTRY(bh_http_conn) link;
};
static struct {
    struct bh_http_server s;
    unsigned life;
    struct source *source;
    TAILQ_HEAD(, call) in, done, aborted;
    TAILQ_HEAD(, bh_http_conn) over;
} web;

static void send_piece(struct exchange *x, enum piece_kind kind, const struct piece *head,
                       const void *p, size_t n);

static int retry_after(const struct bh_buf *lines)
{
    const char *at_ =
        lines->n ? strcasestr(bh_buf_str((struct bh_buf *)lines), "Retry-After: ") : NULL;

    return at_ ? (int)strtol(at_ + strlen("Retry-After: "), NULL, 10) : -1;
}

static void call_free(struct call *c)
{
    bh_http_req_fini(&c->r);
    free(c->texts);
    free(c);
}

/* In portions, as they come from a socket. */
static void send_body(struct exchange *x, const char *p, size_t n)
{
    size_t whole = n;

    if (x->fate == HALF && !x->watch)
        n = draw(DRAW_NET, n + 1);
    while (n) {
        size_t part = n > 200 && chance(DRAW_NET, 30) ? 1 + draw(DRAW_NET, n) : n;
        send_piece(x, PIECE_DATA, NULL, p, part);
        p += part;
        n -= part;
    }
    if (x->fate == HALF && !x->watch && whole) {
        reach(half_an_answer);
        send_piece(x, PIECE_CUT, NULL, NULL, 0);
    }
}

static void reply(struct bh_http_req *r, int code, const char *content_type, const void *body,
                  size_t n)
{
    struct call *c = (struct call *)r;
    struct piece head = {.code = code, .retry_after_s = retry_after(&r->lines)};

    r->state = BH_HTTP_ANSWERED;
    if (code == 429 || code >= 500)
        reach(server_refuses);
    if (content_type)
        snprintf(head.content_type, sizeof(head.content_type), "%s", content_type);
    if (c->x->call == c) { /* it had to wait */
        c->x->call = NULL;
        TAILQ_INSERT_TAIL(&web.done, c, link);
        source_set(web.source);
    }
    if (c->x->fate == ANSWER_LOST) {
        if (c->x->writes && code < 300)
            reach(answer_lost_after_effect);
        send_piece(c->x, PIECE_CUT, NULL, NULL, 0);
        return;
    }
    send_piece(c->x, PIECE_HEAD, &head, NULL, 0);
    send_body(c->x, body, code == 204 ? 0 : n);
    send_piece(c->x, PIECE_END, NULL, NULL, 0);
}

static void web_end(struct bh_http_server *s)
{
    (void)s;
    source_close(web.source);
    web.source = NULL;
}

/* The handler may have kept it: then it is answered from another callback. */
static void handle(struct call *c)
{
    struct exchange *x = c->x;

    bh_http_dispatch(&c->r);
    if (c->r.state == BH_HTTP_ANSWERED) {
        call_free(c);
        return;
    }
    c->r.state = BH_HTTP_DEFERRED;
    x->call = c;
    x->served_by = web.life;
}

static void on_web(void *arg)
{
    struct bh_http_conn *conn;
    struct call *c;

    (void)arg;
    while ((c = TAILQ_FIRST(&web.in))) {
        TAILQ_REMOVE(&web.in, c, link);
        handle(c);
    }
    while ((c = TAILQ_FIRST(&web.done))) {
        TAILQ_REMOVE(&web.done, c, link);
        call_free(c);
    }
    while ((c = TAILQ_FIRST(&web.aborted))) {
        TAILQ_REMOVE(&web.aborted, c, link);
        call_free(c); /* tells whoever kept it */
    }
    while ((conn = TAILQ_FIRST(&web.over))) {
        TAILQ_REMOVE(&web.over, conn, link);
        conn->x->conn = NULL;
        bh_http_stream_over(conn->stream);
        free(conn);
    }
}

int bh_sim_http_server_new(uv_loop_t *loop, const struct bh_http_options *o,
                           bh_http_handler *handler, void *arg, struct bh_http_server **ret_s,
                           struct bh_err *err)
{
    static const struct bh_http_carrier carrier = {.reply = reply, .end = web_end};

    (void)err;
    web.s = (struct bh_http_server){.carrier = &carrier,
                                    .loop = loop,
                                    .handler = handler,
                                    .arg = arg,
                                    .listen_fd = -1,
                                    .max_body_bytes = (size_t)16 << 20,
                                    .body_limit = o->body_limit};
    TAILQ_INIT(&web.in);
    TAILQ_INIT(&web.done);
    TAILQ_INIT(&web.aborted);
    TAILQ_INIT(&web.over);
    web.source = source_new(loop, on_web, NULL);
    web.life++;
    *ret_s = &web.s;
    return 0;
}

/* ---- streams --------------------------------------------------------------------------------- */

static void conn_over(struct bh_http_conn *c)
{
    if (c->over)
        return;
    c->over = true;
    TAILQ_INSERT_TAIL(&web.over, c, link);
    source_set(web.source);
}

struct bh_http_conn *bh_http_conn_stream(struct bh_http_req *r, const char *content_type,
                                         struct bh_http_stream *s)
{
    struct call *call = (struct call *)r;
    struct bh_http_conn *c = bh_calloc(1, sizeof(*c));
    struct piece head = {.code = 200, .retry_after_s = -1};

    if (content_type)
        snprintf(head.content_type, sizeof(head.content_type), "%s", content_type);
    c->stream = s;
    c->x = call->x;
    r->state = BH_HTTP_ANSWERED;
    if (call->x->call == call) {
        call->x->call = NULL;
        TAILQ_INSERT_TAIL(&web.done, call, link);
        source_set(web.source);
    }
    c->x->conn = c;
    c->x->served_by = web.life;
    send_piece(c->x, PIECE_HEAD, &head, NULL, 0);
    if (!c->x->req)
        conn_over(c);
    (void)api_watches_stand(); /* counts them */
    world.doubt_until_ns = BH_MAX(world.doubt_until_ns, world.now_ns + OPENED_NS);
    return c;
}

void bh_http_conn_wake(struct bh_http_conn *c)
{
    char part[16 << 10];
    size_t n;

    if (c->over)
        return;
    while ((n = bh_http_stream_take(c->stream, part, sizeof(part))))
        send_piece(c->x, PIECE_DATA, NULL, part, n);
    if (!c->stream->cut && !c->stream->ending)
        return;
    send_piece(c->x, c->stream->cut ? PIECE_CUT : PIECE_END, NULL, NULL, 0);
    conn_over(c);
}

size_t bh_http_conn_unsent(const struct bh_http_conn *c)
{
    (void)c;
    return 0;
}

/* ---- on the way ------------------------------------------------------------------------------ */

static uint64_t way(const struct exchange *x)
{
    return draw_between(DRAW_NET, LATENCY_MIN, LATENCY_MIN + x->latency_ns);
}

static bool waits(const struct exchange *x)
{
    return x->req && x->of->alive && x->life == x->of->life;
}

static void unlist(struct exchange *x)
{
    if (x->listed)
        LIST_REMOVE(x, link);
    x->listed = false;
}

static void on_piece(void *arg)
{
    struct piece *p = arg;
    struct exchange *x = p->x;

    /* What was lost is followed by nothing but the connection's end. */
    x->hole |= x->of->host->cut_off && !p->local;
    if (!waits(x) || (x->hole && !p->local && (x->of->host->cut_off || p->kind != PIECE_CUT))) {
        free(p);
        return;
    }
    x->heard_ns = world.now_ns;
    if (p->kind >= PIECE_END)
        unlist(x);
    TAILQ_INSERT_TAIL(&x->req->c->in, p, link);
    source_set(x->req->c->source);
}

static void send_piece(struct exchange *x, enum piece_kind kind, const struct piece *head,
                       const void *bytes, size_t n)
{
    struct piece *p;
    uint64_t when = world.now_ns + way(x);

    if (x->ended || x->fate == NEVER)
        return;
    p = bh_malloc(sizeof(*p) + n + 1);
    *p = head ? *head : (struct piece){0};
    p->x = x;
    p->kind = kind;
    p->n = n;
    if (n)
        memcpy(p->p, bytes, n);
    if (kind >= PIECE_END)
        x->ended = true;
    x->last_ns = BH_MAX(when, x->last_ns + 1);
    at(x->last_ns, on_piece, p);
}

static void push(struct exchange *x, enum piece_kind kind)
{
    struct piece *p = bh_calloc(1, sizeof(*p) + 1);

    p->x = x;
    p->kind = kind;
    p->local = true;
    on_piece(p);
}

/* The other end is not there any more, which the server learns in the end. */
static void on_hang_up(void *arg)
{
    struct exchange *x = arg;

    x->ended = true;
    if (!x->req) /* else it may have to learn of it yet */
        unlist(x);
    if (!web.source || x->served_by != web.life) { /* it is gone itself, with what it had of it */
        x->conn = NULL;
        x->call = NULL;
    }
    if (x->conn)
        conn_over(x->conn);
    if (x->call) {
        TAILQ_INSERT_TAIL(&web.aborted, x->call, link);
        x->call = NULL;
        source_set(web.source);
    }
}

static void hang_up(struct exchange *x)
{
    if (!x->req)
        return;
    x->req = NULL;
    at(world.now_ns + way(x), on_hang_up, x);
}

static void cut(struct exchange *x)
{
    if (x->ended)
        return;
    send_piece(x, PIECE_CUT, NULL, NULL, 0);
    at(world.now_ns + way(x), on_hang_up, x);
}

void api_cut_watches(void)
{
    struct exchange *x, *next;

    for (x = LIST_FIRST(&exchanges); x; x = next) {
        next = LIST_NEXT(x, link);
        if (!x->watch || !chance(DRAW_NET, 50))
            continue;
        reach(watch_cut);
        cut(x);
    }
}

void api_host_cut(struct host *h)
{
    struct exchange *x, *next;

    for (x = LIST_FIRST(&exchanges); x; x = next) {
        next = LIST_NEXT(x, link);
        if (x->of->host != h || h->cut_off)
            continue;
        if (x->hole) /* back again: the peer knows nothing of the connection */
            push(x, PIECE_CUT);
        else
            cut(x);
    }
}

bool api_watches_stand(void)
{
    static unsigned most;
    unsigned n[MAX_HOSTS] = {0};
    const struct exchange *x;

    LIST_FOREACH(x, &exchanges, link)
        n[x->of->host->n] += x->watch && waits(x) && x->conn && !x->conn->over;
    for (unsigned i = 0; i < world.n_hosts; i++)
        most = BH_MAX(most, n[i]);
    for (unsigned i = 0; i < world.n_hosts; i++)
        if (n[i] < most)
            return false;
    return most > 0;
}

void api_server_gone(void)
{
    struct exchange *x;

    web.source = NULL;
    LIST_FOREACH(x, &exchanges, link) {
        x->conn = NULL;
        x->call = NULL;
        cut(x);
    }
}

void api_no_silence(void)
{
    struct exchange *x, *next;

    for (x = LIST_FIRST(&exchanges); x; x = next) {
        next = LIST_NEXT(x, link);
        if (x->fate == NEVER && waits(x))
            push(x, PIECE_CUT);
    }
}

void api_process_gone(struct process *p)
{
    struct exchange *x, *next;

    for (x = LIST_FIRST(&exchanges); x; x = next) {
        next = LIST_NEXT(x, link);
        if (x->of != p)
            continue;
        if (x->binds)
            reach(killed_while_binding);
        hang_up(x);
    }
}

/* ---- a request arrives ----------------------------------------------------------------------- */

struct parcel {
    struct exchange *x;
    struct call *call;
    char *target, *body;
    size_t body_n;
};

static void on_request(void *arg)
{
    struct parcel p = *(struct parcel *)arg;

    free(arg);
    if (!web.source || p.x->fate == LOST ||
        (p.x->of->host->cut_off && !chance(DRAW_NET, 20))) { /* some are through already */
        if (p.x->fate == LOST)
            reach(request_lost);
        if (p.x->fate == LOST || !web.source) /* nobody listens */
            send_piece(p.x, PIECE_CUT, NULL, NULL, 0);
        free(p.call->texts);
        free(p.call);
    } else {
        if (p.x->writes && !waits(p.x))
            reach(effect_after_the_process_died);
        if (p.x->writes && p.x->of->kind == P_BINDER)
            world.binder_wrote_ns = world.now_ns;
        if (p.x->writes && p.x->of->kind == P_BINDER && host_served(p.x->of) != p.x->of->host)
            reach(binder_of_another_host_wrote);
        bh_http_req_init(&p.call->r, &web.s, p.target);
        (void)bh_http_take_body(&p.call->r, p.body, p.body_n);
        TAILQ_INSERT_TAIL(&web.in, p.call, link);
        source_set(web.source);
    }
    free(p.target);
    free(p.body);
}

static const char *add_text(struct bh_buf *b, const char *s)
{
    const char *off = (const char *)(uintptr_t)(b->n + 1); /* + 1: never NULL */

    bh_buf_add(b, s, strlen(s) + 1);
    return off;
}

static void add_field(struct call *c, struct bh_buf *b, const char *name, const char *value)
{
    if (value)
        c->fields[c->r.n_fields++] = (struct bh_http_field){add_text(b, name), add_text(b, value)};
}

static void add_extra(struct call *c, struct bh_buf *b, const char *line)
{
    char name[64];
    const char *colon = line ? strchr(line, ':') : NULL;

    if (!colon)
        return;
    snprintf(name, sizeof(name), "%.*s", (int)(colon - line), line);
    add_field(c, b, name, colon + 1 + strspn(colon + 1, " "));
}

/* Offsets in b become addresses. */
static const char *settle(const struct bh_buf *b, const char *off)
{
    return b->p + ((uintptr_t)off - 1);
}

static struct call *make_call(const struct bh_api_req *r)
{
    const struct bh_api_client *c = r->c;
    struct call *call = bh_calloc(1, sizeof(*call));
    struct bh_buf b = {0};

    call->x = r->x;
    call->r.method = add_text(&b, r->call.method);
    call->r.fields = call->fields;
    add_field(call, &b, "User-Agent", c->agent);
    add_field(call, &b, "Authorization", c->token);
    add_field(call, &b, "Accept", r->call.accept);
    add_field(call, &b, "Content-Type", r->call.body_n ? r->call.content_type : NULL);
    add_field(call, &b, "Host", "127.0.0.1");
    add_extra(call, &b, r->call.extra_header);
    snprintf(call->r.peer, sizeof(call->r.peer), "10.0.0.%d", r->x->of->host->n + 1);
    for (size_t i = 0; i < call->r.n_fields; i++) {
        call->fields[i].name = settle(&b, call->fields[i].name);
        call->fields[i].value = settle(&b, call->fields[i].value);
    }
    call->r.method = settle(&b, call->r.method);
    call->texts = b.p;
    return call;
}

static bool is_ordered(const struct exchange *x, const char *path)
{
    const char *name = order.pods ? strstr(path, "/pods/") : NULL;

    return name && (order.delay_ns ? x->binds : x->writes) &&
           strncmp(name + strlen("/pods/"), order.pods, strlen(order.pods)) == 0;
}

void api_refuse_writes(const char *pods)
{
    order.pods = pods;
    order.delay_ns = 0;
    order.sender = NULL;
}

void api_delay_binding(const char *pod, uint64_t ns, bool cut)
{
    order.pods = pod;
    order.delay_ns = ns;
    order.cut = cut;
    order.sender = NULL;
}

struct process *api_ordered_sender(void)
{
    return order.sender;
}

void api_delay_watch(const struct host *h, const char *plural, uint64_t ns)
{
    struct exchange *x;

    LIST_FOREACH(x, &exchanges, link)
        if (x->watch && waits(x) && x->of->host == h && strstr(x->req->call.path, plural))
            x->last_ns = BH_MAX(x->last_ns, world.now_ns + ns);
}

static enum fate draw_fate(const struct exchange *x)
{
    unsigned d = (unsigned)draw(DRAW_NET, 100);

    if (x->of->host->cut_off)
        return d < 50 ? REFUSED : NEVER;
    if (world.peace || (d -= net.lost) >= 100)
        return world.peace ? GOES_WELL : LOST;
    if ((d -= net.answer_lost) >= 100)
        return ANSWER_LOST;
    if ((d -= net.half) >= 100)
        return HALF;
    return (d -= net.never) >= 100 ? NEVER : GOES_WELL;
}

/* ---- the client: leaving --------------------------------------------------------------------- */

static void on_deadline(void *arg)
{
    struct exchange *x = arg;

    if (waits(x) && x->req->deadline_ns <= world.now_ns)
        push(x, PIECE_LATE);
}

static void on_quiet(void *arg)
{
    struct exchange *x = arg;
    uint64_t idle;

    if (!waits(x))
        return;
    idle = x->req->call.idle_timeout_ns;
    if (world.now_ns - x->heard_ns >= idle)
        push(x, PIECE_LATE);
    else
        at(x->heard_ns + idle, on_quiet, x);
}

/* No network is silent for ever without anybody's noticing. */
static void on_silence_over(void *arg)
{
    struct exchange *x = arg;

    if (waits(x))
        push(x, PIECE_CUT);
}

/* For how long the network holds a binding at least. */
static uint64_t binding_leaves(const struct bh_api_req *r)
{
    static const char before[] = "\"target\":{\"kind\":\"Node\",\"name\":\"";
    const char *at_ = memmem(r->call.body, r->call.body_n, before, strlen(before));
    char node[16] = "";

    const char *from = at_ ? at_ + strlen(before) : NULL, *body = r->call.body;
    const char *end = from ? memchr(from, '"', (size_t)(body + r->call.body_n - from)) : NULL;
    if (end) /* the body has no NUL */
        snprintf(node, sizeof(node), "%.*s", (int)(end - from), from);
    return plan_binding(r->x->of->host, node);
}

static void on_delayed_cut(void *arg)
{
    struct exchange *x = arg;

    if (!waits(x))
        return;
    push(x, PIECE_CUT);
    order.sender = x->of;
}

/* For how long the network delays the binding, by order. */
static uint64_t take_delay(struct exchange *x)
{
    const uint64_t ns = order.delay_ns;

    order.pods = NULL;
    if (order.cut)
        at(world.now_ns + MS, on_delayed_cut, x);
    else
        order.sender = x->of;
    return ns;
}

static void leave(struct bh_api_req *r)
{
    struct exchange *x = bh_calloc(1, sizeof(*x));
    struct parcel *p;

    if (r->x) /* it is tried again */
        r->x->req = NULL;
    r->x = x;
    *x = (struct exchange){.req = r, .of = r->c->of, .life = r->c->life};
    x->watch = r->call.long_lived && r->call.on_data && strstr(r->call.path, "watch=");
    x->writes = !bh_streq(r->call.method, "GET");
    x->binds = strstr(r->call.path, "/binding") != NULL;
    x->heard_ns = world.now_ns;
    x->latency_ns = world.peace ? MS : net.latency_ns;
    const bool ordered = is_ordered(x, r->call.path);
    x->fate = ordered && !order.delay_ns ? REFUSED : draw_fate(x);
    if (ordered && x->fate == REFUSED)
        order.sender = x->of;
    r->queued = false;
    note(r->call.path, strlen(r->call.path));
    if (r->call.not_after_boot_ns && boot_ns() >= r->call.not_after_boot_ns) {
        reach(fence_held_a_request);
        push(x, PIECE_LATE);
        return;
    }
    if (x->fate == REFUSED) {
        push(x, PIECE_CUT);
        return;
    }
    if (x->fate == NEVER) {
        reach(answer_never_comes);
        at(world.now_ns + draw_between(DRAW_NET, SECOND, SILENCE_MAX), on_silence_over, x);
    }
    r->sent = true;
    LIST_INSERT_HEAD(&exchanges, x, link);
    x->listed = true;
    const uint64_t held = ordered                    ? take_delay(x)
                          : x->binds && !world.peace ? binding_leaves(r)
                                                     : 0;
    p = bh_malloc(sizeof(*p));
    *p = (struct parcel){x, make_call(r), bh_strdup(r->call.path),
                         r->call.body_n ? bh_memdup(r->call.body, r->call.body_n) : NULL,
                         r->call.body_n};
    const uint64_t under_way = way(x);
    at(world.now_ns + BH_MAX(held, under_way), on_request, p);
    if (r->deadline_ns)
        at(r->deadline_ns, on_deadline, x);
    if (r->call.idle_timeout_ns)
        at(world.now_ns + r->call.idle_timeout_ns, on_quiet, x);
}

/* ---- the client: answers --------------------------------------------------------------------- */

static void req_free(struct bh_api_req *r)
{
    TAILQ_REMOVE(&r->c->reqs, r, link);
    r->c->n_live--;
    if (r->x) {
        unlist(r->x);
        r->x->req = NULL;
    }
    free((void *)r->call.method);
    free((void *)r->call.path);
    free((void *)r->call.content_type);
    free((void *)r->call.accept);
    free((void *)r->call.extra_header);
    free((void *)r->call.body);
    bh_buf_fini(&r->body);
    free(r);
}

static void deliver(struct bh_api_req *r, enum bh_api_outcome outcome, const char *error)
{
    const bool ok = outcome == BH_API_OK;
    const struct bh_api_reply reply_ = {.outcome = outcome,
                                        .sent = r->sent,
                                        .code = ok ? r->code : 0,
                                        .retry_after_s = ok ? r->retry_after_s : -1,
                                        .content_type = r->content_type,
                                        .body = {bh_buf_str(&r->body), r->body.n},
                                        .error = ok ? NULL : error,
                                        .head = !ok && r->head};

    if (r->x && outcome != BH_API_OK)
        hang_up(r->x);
    r->call.on_done(r->call.arg, &reply_);
    req_free(r);
}

static void on_again(void *arg)
{
    struct exchange *x = arg;

    if (!waits(x))
        return;
    x->req->queued = true;
    source_set(x->req->c->source);
}

static void ended(struct bh_api_req *r)
{
    uint64_t due = world.now_ns + (uint64_t)BH_MAX(r->retry_after_s, 0) * SECOND;

    if (!r->call.retry_429_5xx || (r->code != 429 && r->code < 500) || r->retry_after_s < 0 ||
        ++r->attempts >= ATTEMPTS_MAX || (r->deadline_ns && due >= r->deadline_ns)) {
        deliver(r, BH_API_OK, NULL);
        return;
    }
    r->head = false;
    bh_buf_reset(&r->body);
    at(due, on_again, r->x);
}

/* A callback may cancel its own request, or free the client. */
static void take(struct piece *p)
{
    struct bh_api_req *r = p->x->req;
    int rc = 0;

    if (!r || (r->canceled && p->kind != PIECE_CANCEL))
        return;
    const bool streams = r->call.on_data && r->head && r->code >= 200 && r->code < 300;
    switch (p->kind) {
    case PIECE_HEAD:
        r->head = true;
        r->code = p->code;
        r->retry_after_s = p->retry_after_s;
        memcpy(r->content_type, p->content_type, sizeof(r->content_type));
        if (r->call.on_data && r->call.on_head && r->code >= 200 && r->code < 300)
            rc = r->call.on_head(r->call.arg, r->code, r->content_type);
        break;
    case PIECE_DATA:
        if (streams)
            rc = r->call.on_data(r->call.arg, p->p, p->n);
        else
            bh_buf_add(&r->body, p->p, p->n);
        break;
    case PIECE_END:
        ended(r);
        return;
    case PIECE_CUT:
        deliver(r, BH_API_TRANSPORT, "the connection broke");
        return;
    case PIECE_LATE:
        deliver(r, BH_API_TIMEOUT, "no answer in time");
        return;
    case PIECE_CANCEL:
        deliver(r, BH_API_CANCELED, "canceled");
        return;
    }
    if (rc)
        deliver(r, BH_API_TRANSPORT, "stopped by its reader");
}

static void client_over(struct bh_api_client *c)
{
    source_close(c->source);
    free(c->agent);
    free(c->manager);
    free(c->token);
    free(c);
}

static void on_client(void *arg)
{
    struct bh_api_client *c = arg;
    struct bh_api_req *r, *next;
    struct piece *p;

    while ((p = TAILQ_FIRST(&c->in))) {
        TAILQ_REMOVE(&c->in, p, link);
        take(p);
        free(p);
    }
    for (r = TAILQ_FIRST(&c->reqs); r; r = next) {
        next = TAILQ_NEXT(r, link);
        if (r->canceled || c->closing)
            deliver(r, BH_API_CANCELED, "canceled");
        else if (r->queued)
            leave(r);
    }
    if (c->closing)
        client_over(c);
}

/* ---- client.h -------------------------------------------------------------------------------- */

int bh_api_client_new(uv_loop_t *loop, const struct bh_api_config *cfg,
                      const struct bh_api_options *o, struct bh_api_client **ret,
                      struct bh_err *err)
{
    struct bh_api_client *c = bh_calloc(1, sizeof(*c));

    (void)err;
    c->loop = loop;
    c->of = world.running;
    c->life = c->of->life;
    c->agent = bh_strdup(o->user_agent);
    c->manager = o->field_manager ? bh_strdup(o->field_manager) : NULL;
    c->token = bh_asprintf("Bearer %s", cfg->token);
    c->json = o->json;
    TAILQ_INIT(&c->in);
    TAILQ_INIT(&c->reqs);
    c->source = source_new(loop, on_client, c);
    *ret = c;
    return 0;
}

bool bh_api_client_json(const struct bh_api_client *c)
{
    return c->json;
}

void bh_api_client_free(struct bh_api_client *c)
{
    if (!c || c->closing)
        return;
    c->closing = true;
    source_set(c->source);
}

void bh_api_client_reload(struct bh_api_client *c)
{
    (void)c;
}

static const char *copied(const char *s)
{
    return s ? bh_strdup(s) : NULL;
}

struct bh_api_req *bh_api_start(struct bh_api_client *c, const struct bh_api_call *call)
{
    struct bh_api_req *r;

    if (c->closing)
        return NULL;
    r = bh_calloc(1, sizeof(*r));
    r->c = c;
    r->call = *call;
    r->call.method = copied(call->method);
    r->call.path = c->manager && bh_word_at("POST PUT PATCH", call->method) >= 0
                       ? bh_asprintf("%s%cfieldManager=%s", call->path,
                                     strchr(call->path, '?') ? '&' : '?', c->manager)
                       : copied(call->path);
    r->call.content_type = copied(call->content_type);
    r->call.accept = copied(call->accept ? call->accept : ACCEPT_JSON);
    r->call.extra_header = copied(call->extra_header);
    r->call.body = call->body_n ? bh_memdup(call->body, call->body_n) : NULL;
    r->deadline_ns = call->timeout_ns ? world.now_ns + call->timeout_ns : 0;
    r->retry_after_s = -1;
    r->queued = true;
    TAILQ_INSERT_TAIL(&c->reqs, r, link);
    c->n_live++;
    source_set(c->source);
    c->of->in_request = !bh_streq(call->method, "GET");
    step();
    c->of->in_request = false;
    return r;
}

void bh_api_cancel(struct bh_api_req *r)
{
    r->canceled = true;
    source_set(r->c->source);
}

unsigned bh_api_in_flight(const struct bh_api_client *c)
{
    return c->n_live;
}
