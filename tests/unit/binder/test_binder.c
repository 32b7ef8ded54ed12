/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/binder/test_binder.c - a whole binder between a scheduler that the test plays and an
 * API server that answers by script: every answer there is, cut connections, stops and take-overs
 *
 * Runs in one loop; nothing sleeps for a fixed time: SPIN turns the loop until a condition holds.
 */
#include <fcntl.h>
#include <unistd.h>

#include "binder/binder.h"
#include "common/data/json.h"
#include "simulator/http/server.h"
#include "common/k8s/codec.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

#define SPIN_NS     UINT64_C(120000000000)
#define MAX_PODS    400u
#define MAX_RESULTS 1000u
#define BIND        BERTH__WORK_KIND__WORK_BIND
#define PATCH       BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DELETE      BERTH__WORK_KIND__WORK_DELETE
#define EVENT       BERTH__WORK_KIND__WORK_EVENT

#define NS_PER_S UINT64_C(1000000000)

enum act {
    AS_USUAL,
    SAY_409, /* although nothing is wrong */
    SAY_403,
    SAY_429, /* Retry-After: 1 */
    SAY_500,
    CUT_BEFORE, /* the connection ends, nothing was written */
    CUT_AFTER,  /* it was written, the reply is lost */
    HANG        /* no answer ever */
};
struct pod {
    char name[32], uid[32], node[32];
    bool gated, gone;
    unsigned bindings, patches;
};
struct result {
    uint64_t id, epoch;
    Berth__Outcome outcome;
    int code;
    char message[128];
    unsigned objects;
};
struct fixture {
    uv_loop_t loop;
    uv_timer_t tick;
    char dir[108];
    struct bh_http_server *server;
    struct bh_api_config api;
    struct pod pods[MAX_PODS];
    unsigned n_pods;
    enum act script[16]; /* for the next writes, in order; then AS_USUAL */
    unsigned n_script, at;
    unsigned gets, writes, events, deletes;
    unsigned event_failures; /* how many event writes get a 500 first */
    unsigned series;         /* events that were patched */
    bool events_gone;        /* PATCH of an event finds none */
    bool events_late;        /* nor does the next one, but POST finds it is there by then */
    char last_patch[1024], last_delete[512], last_event[2048];
    struct {
        unsigned version, allocations;
        bool is_protected, allocated;
    } claim; /* ResourceClaim r; it exists when it has a version */

    struct bh_bus *router;
    struct bh_peer peer;
    struct bh_arena msg;
    unsigned hellos;
    uint64_t hello_epoch;
    uint32_t window, in_flight; /* of the last hello; reported in all hellos */
    uint64_t stamp, grant_seen;
    uint32_t on_wire;
    uint64_t quiet_stamp; /* of the first hello that has nothing on the wire any more */
    bool leaving;
    char reported[32];
    struct result results[MAX_RESULTS];
    unsigned n_results;

    struct bh_binder_options options;
    struct bh_binder b;
};

/* ---- the API server -------------------------------------------------------------------------- */

static void reply(struct bh_http_req *r, int code, const char *json)
{
    bh_http_reply(r, code, "application/json", json, strlen(json));
}

static void reply_status(struct bh_http_req *r, int code, const char *reason, const char *message)
{
    char body[400];

    snprintf(body, sizeof(body),
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"%s\","
             "\"message\":\"%s\",\"code\":%d}",
             reason, message, code);
    reply(r, code, body);
}

static void on_stream_end(void *arg)
{
    (void)arg;
}

static void cut(struct bh_http_req *r)
{
    bh_http_stream_abort(bh_http_stream_start(r, "application/json", on_stream_end, NULL));
}

static struct pod *find(struct fixture *f, const char *name, size_t n)
{
    for (unsigned i = 0; i < f->n_pods; i++)
        if (strlen(f->pods[i].name) == n && memcmp(f->pods[i].name, name, n) == 0 &&
            !f->pods[i].gone)
            return &f->pods[i];
    return NULL;
}

/* The write itself; the reply as code. */
static int write_pod(struct pod *p, const char *method, const char *sub, const struct bh_json *body)
{
    const char *uid = bh_json_get_str(bh_json_get(body, "metadata"), "uid");

    if (!p)
        return 404;
    if (bh_streq(method, "DELETE"))
        uid = bh_json_get_str(bh_json_get(body, "preconditions"), "uid");
    if (uid && !bh_streq(uid, p->uid))
        return 409;
    if (bh_streq(method, "DELETE")) {
        p->gone = true;
    } else if (bh_streq(sub, "/status")) {
        p->patches++;
    } else {
        if (p->gated || *p->node)
            return 409;
        p->bindings++;
        snprintf(p->node, sizeof(p->node), "%s",
                 bh_json_get_str(bh_json_get(body, "target"), "name"));
        return 201;
    }
    return 200;
}

static void answer_write(struct fixture *f, struct bh_http_req *r, struct pod *p, const char *sub)
{
    enum act act = f->at < f->n_script ? f->script[f->at++] : AS_USUAL;
    struct bh_str text = bh_http_body(r);
    struct bh_arena a;
    struct bh_json *body = NULL;
    struct bh_err err;
    int code;

    f->writes++;
    if (act == HANG || act == CUT_BEFORE || act == SAY_500) {
        if (act == CUT_BEFORE)
            cut(r);
        else if (act == SAY_500)
            reply_status(r, 500, "InternalError", "etcd is away");
        return;
    }
    if (act == SAY_409 || act == SAY_403) {
        reply_status(r, act == SAY_409 ? 409 : 403, "Whatever", "no");
        return;
    }
    if (act == SAY_429) {
        bh_http_set_header(r, "Retry-After", "1");
        reply_status(r, 429, "TooManyRequests", "slow down");
        return;
    }
    bh_arena_init(&a, 0);
    CU_ASSERT_FATAL(bh_json_parse(&a, text.p, text.n, BH_JSON_STRICT, &body, &err) == 0);
    code = write_pod(p, bh_http_method(r), sub, body);
    bh_arena_fini(&a);
    if (act == CUT_AFTER)
        cut(r);
    else if (code < 300)
        reply(r, code, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\"}");
    else
        reply_status(r, code, code == 404 ? "NotFound" : "Conflict", "refused");
}

/* Patches with a version that is not today's are conflicts; the rest is taken as it comes. */
static int write_claim(struct fixture *f, struct bh_http_req *r)
{
    BH_CLEANUP(bh_freep) char *body = bh_strndup(bh_http_body(r).p, bh_http_body(r).n);
    char version[48];

    snprintf(version, sizeof(version), "\"resourceVersion\":\"%u\"", f->claim.version);
    if (!strstr(body, version))
        return 409;
    f->claim.version++;
    f->claim.is_protected |= strstr(body, "delete-protection") != NULL;
    if (strstr(bh_http_path(r), "/status")) {
        f->claim.allocated = true;
        f->claim.allocations++;
    }
    return 200;
}

static void on_claim(struct fixture *f, struct bh_http_req *r)
{
    bool get = bh_streq(bh_http_method(r), "GET");
    enum act act = !get && f->at < f->n_script ? f->script[f->at++] : AS_USUAL;
    int code = f->claim.version ? 200 : 404;
    char json[512];

    f->writes += !get;
    f->gets += get;
    if (act == HANG)
        return;
    if (act == CUT_BEFORE) {
        cut(r);
        return;
    }
    if (act == SAY_500) {
        reply_status(r, 500, "InternalError", "etcd is away");
        return;
    }
    if (!get && code == 200)
        code = write_claim(f, r);
    if (act == CUT_AFTER) {
        cut(r);
        return;
    }
    if (code != 200) {
        reply_status(r, code, code == 404 ? "NotFound" : "Conflict", "refused");
        return;
    }
    snprintf(json, sizeof(json),
             "{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/v1\",\"metadata\":{"
             "\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"u-r\",\"resourceVersion\":\"%u\"%s},"
             "\"status\":{%s}}",
             f->claim.version,
             f->claim.is_protected
                 ? ",\"finalizers\":[\"resource.kubernetes.io/delete-protection\"]"
                 : "",
             f->claim.allocated ? "\"allocation\":{\"devices\":{\"results\":[{\"request\":\"q\","
                                  "\"driver\":\"d\",\"pool\":\"n1\",\"device\":\"g0\"}]}},"
                                  "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\","
                                  "\"uid\":\"u-p\"}]"
                                : "");
    reply(r, 200, json);
}

static void handler(struct bh_http_req *r, void *arg)
{
    struct fixture *f = arg;
    const char *path = bh_http_path(r), *method = bh_http_method(r), *sub;
    static const char pods[] = "/api/v1/namespaces/ns/pods/";
    static const char events[] = "/apis/events.k8s.io/v1/namespaces/ns/events";
    struct bh_str body = bh_http_body(r);
    struct pod *p;
    char json[256];

    if (strncmp(path, events, sizeof(events) - 1) == 0) {
        bool patch = bh_streq(method, "PATCH");
        snprintf(f->last_event, sizeof(f->last_event), "%.*s", (int)body.n, body.p);
        if (f->event_failures) {
            f->event_failures--;
            reply_status(r, 503, "ServiceUnavailable", "later");
            return;
        }
        if (patch && (f->events_gone || f->events_late)) {
            reply_status(r, 404, "NotFound", "no such event");
            return;
        }
        if (f->events_late) {
            f->events_late = false;
            reply_status(r, 409, "AlreadyExists", "it is there");
            return;
        }
        CU_ASSERT(patch == (path[sizeof(events) - 1] == '/'));
        *(patch ? &f->series : &f->events) += 1;
        reply(r, patch ? 200 : 201, "{}");
        return;
    }
    if (strstr(path, "/resourceclaims/")) {
        on_claim(f, r);
        return;
    }
    CU_ASSERT_FATAL(strncmp(path, pods, sizeof(pods) - 1) == 0);
    path += sizeof(pods) - 1;
    sub = path + strcspn(path, "/");
    p = find(f, path, (size_t)(sub - path));
    if (bh_streq(method, "PATCH"))
        snprintf(f->last_patch, sizeof(f->last_patch), "%.*s", (int)body.n, body.p);
    if (bh_streq(method, "DELETE"))
        snprintf(f->last_delete, sizeof(f->last_delete), "%.*s", (int)body.n, body.p);
    if (!bh_streq(method, "GET")) {
        f->deletes += bh_streq(method, "DELETE");
        answer_write(f, r, p, sub);
        return;
    }
    f->gets++;
    if (*sub) { /* a binding can be written, not read */
        CU_ASSERT_STRING_EQUAL(sub, "");
        reply_status(r, 405, "MethodNotAllowed", "the server does not allow this method");
        return;
    }
    if (!p) {
        reply_status(r, 404, "NotFound", "not found");
        return;
    }
    snprintf(
        json, sizeof(json),
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},"
        "\"spec\":{\"nodeName\":\"%s\"}}",
        p->name, p->uid, p->node);
    reply(r, 200, json);
}

/* ---- the scheduler --------------------------------------------------------------------------- */

static void greet(struct fixture *f, uint64_t epoch)
{
    Berth__SchedulerHello h = BERTH__SCHEDULER_HELLO__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    h.has_epoch = true;
    h.epoch = epoch;
    e.scheduler_hello = &h;
    CU_ASSERT(bh_bus_send(f->router, &f->peer, &e) == BH_BUS_OK);
}

static void on_hello(struct fixture *f, const Berth__BinderHello *h)
{
    f->hellos++;
    f->hello_epoch = h->epoch_seen;
    f->window = h->window;
    f->stamp = h->stamp_boot_ns;
    f->grant_seen = h->grant_seen;
    if (f->on_wire && !h->on_wire)
        f->quiet_stamp = h->stamp_boot_ns;
    f->on_wire = h->on_wire;
    f->leaving = h->leaving;
    f->in_flight += (uint32_t)h->n_in_flight;
    if (h->n_in_flight)
        snprintf(f->reported, sizeof(f->reported), "%s %s", h->in_flight[0]->uid,
                 h->in_flight[0]->node);
}

static void hear(struct fixture *f)
{
    Berth__Envelope *e;

    bh_arena_reset(&f->msg);
    while (bh_bus_recv(f->router, &f->msg, &f->peer, &e) == BH_BUS_OK) {
        if (e->binder_hello)
            on_hello(f, e->binder_hello);
        for (size_t i = 0; e->results && i < e->results->n_result; i++) {
            const Berth__WorkResult *r = e->results->result[i];
            CU_ASSERT_FATAL(f->n_results < MAX_RESULTS);
            f->results[f->n_results] =
                (struct result){r->id, r->epoch, r->outcome, r->code, "", r->has_object};
            snprintf(f->results[f->n_results++].message, 128, "%s", r->message ? r->message : "");
        }
    }
}

static void work_of(Berth__WorkItem *w, uint64_t id, Berth__WorkKind kind, struct pod *p)
{
    static char ns[] = "ns", node[] = "n1";

    berth__work_item__init(w);
    w->has_id = w->has_kind = true;
    w->id = id;
    w->kind = kind;
    w->namespace_ = ns;
    w->name = p->name;
    w->uid = p->uid;
    if (kind == BIND)
        w->node = node;
}

static void send_items(struct fixture *f, uint64_t epoch, Berth__WorkItem **items, size_t n,
                       uint64_t term)
{
    Berth__WorkBatch b = BERTH__WORK_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    b.has_epoch = b.has_lease_term = true;
    b.epoch = epoch;
    b.lease_term = term;
    b.n_item = n;
    b.item = items;
    e.work = &b;
    CU_ASSERT_FATAL(bh_bus_send(f->router, &f->peer, &e) == BH_BUS_OK);
}

static void send_bind(struct fixture *f, uint64_t epoch, uint64_t id, struct pod *p)
{
    Berth__WorkItem w, *list = &w;

    work_of(&w, id, BIND, p);
    send_items(f, epoch, &list, 1, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_tick(uv_timer_t *t)
{
    hear(t->data);
}

#define SPIN(f, expr)                                                                              \
    do {                                                                                           \
        uint64_t end_ = bh_mono_ns() + SPIN_NS;                                                    \
        bool held_ = false;                                                                        \
        while (!(held_ = (expr)) && bh_mono_ns() < end_)                                           \
            uv_run(&(f)->loop, UV_RUN_ONCE);                                                       \
        CU_ASSERT_FATAL(held_);                                                                    \
    } while (0)

static struct pod *add_pod(struct fixture *f, const char *name)
{
    struct pod *p = &f->pods[f->n_pods++];

    snprintf(p->name, sizeof(p->name), "%s", name);
    snprintf(p->uid, sizeof(p->uid), "u-%.20s", name);
    return p;
}

static void setup(struct fixture *f)
{
    static unsigned n;
    struct bh_http_options ho = {.address = "127.0.0.1"};
    char endpoint[128];
    struct bh_err err = {0};

    memset(f, 0, sizeof(*f));
    uv_loop_init(&f->loop);
    bh_arena_init(&f->msg, 64u << 20);
    snprintf(f->dir, sizeof(f->dir), "%s/b%u", bh_test_tmpdir(), n++);
    CU_ASSERT_FATAL(bh_runtime_dir(f->dir, f->dir, &err) == 0);
    CU_ASSERT_FATAL(bh_sim_http_server_new(&f->loop, &ho, handler, f, &f->server, &err) == 0);
    f->api.server = bh_asprintf("http://127.0.0.1:%u", bh_http_server_port(f->server));
    CU_ASSERT_FATAL(bh_bus_endpoint(f->dir, "scheduler", endpoint, &err) == 0);
    CU_ASSERT_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &f->router, &err) == 0);
    uv_timer_init(&f->loop, &f->tick);
    f->tick.data = f;
    uv_timer_start(&f->tick, on_tick, 1, 1);
    f->options = (struct bh_binder_options){.runtime_dir = f->dir,
                                            .instance = "1",
                                            .metrics_address = "0",
                                            .api = &f->api,
                                            .limits.burst = 100};
}

static void open_binder(struct fixture *f)
{
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_binder_open(&f->b, &f->options, &f->loop, &err) == 0);
    SPIN(f, f->hellos > 0);
    greet(f, 10);
    SPIN(f, f->hello_epoch == 10);
}

static void close_binder(struct fixture *f)
{
    bh_binder_close(&f->b);
}

static void teardown(struct fixture *f)
{
    uv_close((uv_handle_t *)&f->tick, NULL);
    bh_http_server_free(f->server);
    bh_loop_drain_close(&f->loop);
    bh_bus_close(f->router);
    bh_arena_fini(&f->msg);
    free(f->api.server);
}

/* ---- answers of the API server --------------------------------------------------------------- */

struct bind_case {
    const char *name;
    enum act script[4];
    unsigned n_script;
    const char *node; /* where the pod is already */
    bool gated, gone, recreated;
    Berth__Outcome outcome;
    int code;
    unsigned writes, gets, bindings;
};

static void run_case(struct fixture *f, const struct bind_case *c, uint64_t id)
{
    struct pod *p = add_pod(f, c->name);
    unsigned writes = f->writes, gets = f->gets, before = f->n_results;
    Berth__WorkItem w, *list = &w;
    char old_uid[] = "u-old";

    if (c->node)
        snprintf(p->node, sizeof(p->node), "%s", c->node);
    p->gated = c->gated;
    p->gone = c->gone;
    memcpy(f->script, c->script, sizeof(c->script));
    f->n_script = c->n_script;
    f->at = 0;
    work_of(&w, id, BIND, p);
    if (c->recreated)
        w.uid = old_uid;
    send_items(f, 10, &list, 1, 0);
    SPIN(f, f->n_results > before);
    if (f->results[before].outcome != c->outcome || f->results[before].code != c->code ||
        f->writes - writes != c->writes || f->gets - gets != c->gets || p->bindings != c->bindings)
        printf("# %s: outcome %d code %d writes %u gets %u bindings %u\n", c->name,
               f->results[before].outcome, f->results[before].code, f->writes - writes,
               f->gets - gets, p->bindings);
    CU_ASSERT(f->results[before].id == id);
    CU_ASSERT(f->results[before].outcome == c->outcome);
    CU_ASSERT(f->results[before].code == c->code);
    CU_ASSERT(f->writes - writes == c->writes);
    CU_ASSERT(f->gets - gets == c->gets);
    CU_ASSERT(p->bindings == c->bindings);
}

static void test_every_answer_to_a_binding_has_its_meaning(void)
{
    static const struct bind_case cases[] = {
        {"created",
         {AS_USUAL},
         0,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_DONE,
         201,
         1,
         0,
         1},
        {"ours-already",
         {AS_USUAL},
         0,
         "n1",
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_DONE,
         409,
         1,
         1,
         0},
        {"elsewhere",
         {AS_USUAL},
         0,
         "n9",
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE,
         409,
         1,
         1,
         0},
        {"gated",
         {AS_USUAL},
         0,
         NULL,
         true,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_REJECTED,
         409,
         1,
         1,
         0},
        {"gone",
         {AS_USUAL},
         0,
         NULL,
         false,
         true,
         false,
         BERTH__OUTCOME__OUTCOME_GONE,
         404,
         1,
         0,
         0},
        {"recreated",
         {AS_USUAL},
         0,
         NULL,
         false,
         false,
         true,
         BERTH__OUTCOME__OUTCOME_GONE,
         409,
         1,
         1,
         0},
        {"forbidden",
         {SAY_403},
         1,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_REJECTED,
         403,
         1,
         0,
         0},
        {"busy",
         {SAY_429},
         1,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_DONE,
         201,
         2,
         0,
         1},
        {"broken",
         {SAY_500, SAY_500},
         2,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_DONE,
         201,
         3,
         0,
         1},
        {"cut-before",
         {CUT_BEFORE},
         1,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_DONE,
         201,
         2,
         0,
         1},
        {"cut-after",
         {CUT_AFTER},
         1,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_DONE,
         409,
         2,
         1,
         1},
        {"cut-after-then-refused",
         {CUT_AFTER, SAY_403},
         2,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_DONE,
         409,
         2,
         1,
         1},
        {"cut-before-then-refused",
         {CUT_BEFORE, SAY_403},
         2,
         NULL,
         false,
         false,
         false,
         BERTH__OUTCOME__OUTCOME_REJECTED,
         403,
         2,
         2, /* once more when the first cannot come in any more */
         0},
    };
    struct fixture f;

    setup(&f);
    open_binder(&f);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++)
        run_case(&f, &cases[i], i + 1);
    CU_ASSERT(f.n_results == BH_ARRAY_LEN(cases)); /* one answer an item */
    close_binder(&f);
    teardown(&f);
}

static void test_retry_after_is_honoured(void)
{
    struct fixture f;
    uint64_t t0;

    setup(&f);
    open_binder(&f);
    f.script[0] = SAY_429;
    f.n_script = 1;
    t0 = bh_mono_ns();
    send_bind(&f, 10, 1, add_pod(&f, "p"));
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_DONE);
    CU_ASSERT(bh_mono_ns() - t0 >= 998000000); /* a second, less what a timer may lack */
    close_binder(&f);
    teardown(&f);
}

static void test_no_answer_before_the_deadline_is_unknown(void)
{
    struct fixture f;

    setup(&f);
    f.options.request_ns = 60000000;
    f.options.deadline_ns = 900000000;
    open_binder(&f);
    for (unsigned i = 0; i < 16; i++)
        f.script[i] = HANG;
    f.n_script = 16;
    send_bind(&f, 10, 1, add_pod(&f, "p"));
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN);
    CU_ASSERT(f.writes >= 2); /* it was tried again meanwhile */
    /* a server that wants a longer pause than there is time: held, then unknown, not tried early */
    f.script[0] = SAY_429;
    f.n_script = 1;
    f.at = f.writes = 0;
    send_bind(&f, 10, 2, add_pod(&f, "q"));
    SPIN(&f, f.n_results == 2);
    CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN);
    CU_ASSERT(f.writes == 1);
    close_binder(&f);
    teardown(&f);
}

/* The scheduler doubts that a pod is where it should be: it is read, and nothing is written. */
static void test_a_look_writes_nothing(void)
{
    static const struct {
        const char *node; /* where it is */
        Berth__Outcome outcome;
    } cases[] = {{"n1", BERTH__OUTCOME__OUTCOME_DONE},
                 {"", BERTH__OUTCOME__OUTCOME_REJECTED},
                 {"n2", BERTH__OUTCOME__OUTCOME_BOUND_ELSEWHERE}};
    struct fixture f;
    Berth__WorkItem w, *list = &w;
    struct pod *p, nobody = {.name = "nobody", .uid = "u-nobody"};

    setup(&f);
    open_binder(&f);
    p = add_pod(&f, "p");
    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        snprintf(p->node, sizeof(p->node), "%s", cases[i].node);
        work_of(&w, i + 1, BIND, p);
        w.has_look = w.look = true;
        send_items(&f, 10, &list, 1, 0);
        SPIN(&f, f.n_results == i + 1);
        CU_ASSERT(f.results[i].outcome == cases[i].outcome);
    }
    work_of(&w, 9, BIND, &nobody);
    w.has_look = w.look = true;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.n_results == BH_ARRAY_LEN(cases) + 1);
    CU_ASSERT(f.results[BH_ARRAY_LEN(cases)].outcome == BERTH__OUTCOME__OUTCOME_GONE);
    CU_ASSERT(f.writes == 0 && f.events == 0);
    close_binder(&f);
    teardown(&f);
}

/* A plugin's patch in the Binding's place, as far as plugins may write such objects. */
static void test_a_bind_that_is_a_patch_posts_no_binding(void)
{
    static char ns[] = "ns", version[] = "v1", resource[] = "pods", sub[] = "status",
                body[] = "{\"status\":{\"x\":\"y\"}}";
    struct fixture f;
    Berth__WorkItem w, *list = &w;
    Berth__ObjectWrite o = BERTH__OBJECT_WRITE__INIT;
    Berth__ObjectPatch patch = BERTH__OBJECT_PATCH__INIT;
    struct pod *p;

    setup(&f);
    f.options.plugin_writes = "pods/status";
    open_binder(&f);
    p = add_pod(&f, "p");
    o.namespace_ = ns;
    o.name = p->name;
    o.uid = p->uid;
    o.patch = &patch;
    patch.api_version = version;
    patch.resource = resource;
    patch.subresource = sub;
    patch.body = body;
    for (unsigned i = 0; i < 2; i++) {
        work_of(&w, i + 1, BIND, p);
        w.write = &o;
        w.has_look = w.look = i == 1; /* the look is as ever */
        send_items(&f, 10, &list, 1, 0);
        SPIN(&f, f.n_results == i + 1);
    }
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_DONE);
    CU_ASSERT(p->patches == 1 && p->bindings == 0 && f.writes == 1 && f.gets == 1);
    CU_ASSERT(strstr(f.last_patch, "\"x\":\"y\"") != NULL);
    CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_REJECTED); /* on no node yet */
    patch.subresource = NULL; /* pods themselves are not named */
    work_of(&w, 3, BIND, p);
    w.write = &o;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.n_results == 3);
    CU_ASSERT(f.results[2].outcome == BERTH__OUTCOME__OUTCOME_REJECTED && f.writes == 1);
    close_binder(&f);
    teardown(&f);
}

static void test_status_patches_and_evictions(void)
{
    struct fixture f;
    struct pod *p, *victim;
    Berth__WorkItem w, *list = &w;
    Berth__Condition c = BERTH__CONDITION__INIT;
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    char t[] = "DisruptionTarget", s[] = "True", normal[] = "Normal", preempted[] = "Preempted";
    char scheduled[] = "PodScheduled";

    setup(&f);
    open_binder(&f);
    p = add_pod(&f, "p");
    victim = add_pod(&f, "victim");
    c.type = scheduled;
    c.status = s;
    work_of(&w, 1, PATCH, p);
    w.condition = &c;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_DONE && p->patches == 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_patch, "\"uid\":\"u-p\""));
    /* 409 for ever: the pod under this name is another one; it must end */
    snprintf(p->uid, sizeof(p->uid), "u-new");
    work_of(&w, 2, PATCH, p);
    w.condition = &c;
    w.uid = t;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.n_results == 2);
    CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_REJECTED && p->patches == 1);
    /* a victim: condition, then deletion with its uid, then the event */
    e.type = normal;
    e.reason = preempted;
    c.type = t;
    work_of(&w, 3, DELETE, victim);
    w.condition = &c;
    w.event = &e;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.n_results == 3 && f.events == 1);
    CU_ASSERT(f.results[2].outcome == BERTH__OUTCOME__OUTCOME_DONE);
    CU_ASSERT(victim->patches == 1 && victim->gone);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_delete, "\"preconditions\":{\"uid\":\"u-victim\"}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_event, "Preempted"));
    /* again, as after a lost answer: gone is an end too */
    work_of(&w, 4, DELETE, victim);
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.n_results == 4);
    CU_ASSERT(f.results[3].outcome == BERTH__OUTCOME__OUTCOME_GONE && f.deletes == 2);
    close_binder(&f);
    teardown(&f);
}

static void test_events_are_repeated_and_never_delay_answers(void)
{
    struct fixture f;
    Berth__WorkItem w, *list = &w;
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    char warning[] = "Warning", reason[] = "FailedScheduling", note[] = "a \"quoted\" note";
    char other[] = "Other";

    setup(&f);
    open_binder(&f);
    e.type = warning;
    e.reason = reason;
    e.note = note;
    f.event_failures = 2;
    work_of(&w, 1, EVENT, add_pod(&f, "p"));
    w.event = &e;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_DONE);
    SPIN(&f, f.events == 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_event, "a \\\"quoted\\\" note"));
    f.event_failures = 1000000; /* and gives up */
    e.reason = other;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.b.n_events_running == 0 && f.n_results == 2);
    CU_ASSERT(f.events == 1);
    close_binder(&f);
    teardown(&f);
}

static void test_events_that_repeat_become_a_series(void)
{
    struct fixture f;
    Berth__WorkItem w, *list = &w;
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    char warning[] = "Warning", reason[] = "FailedScheduling", note[] = "0/1 nodes are available";
    char version[] = "7", scheduled[] = "Scheduled";
    int64_t now = bh_wall_ns();

    setup(&f);
    open_binder(&f);
    e.type = warning;
    e.reason = reason;
    e.note = note;
    work_of(&w, 1, EVENT, add_pod(&f, "p"));
    w.event = &e;
    for (unsigned i = 1; i <= 4; i++) {
        send_items(&f, 10, &list, 1, 0);
        SPIN(&f, f.n_results == i && f.events == 1 && f.series == (i > 1));
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_event, "{\"series\":{\"count\":2,\"lastObservedTime\""));
    bh_binder_write_series(&f.b, now); /* nothing is due yet */
    CU_ASSERT(f.b.n_events == 0 && f.b.n_events_running == 0);
    bh_binder_write_series(&f.b, now + 10 * BH_SERIES_FINISH_NS);
    SPIN(&f, f.series == 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_event, "\"count\":4"));
    CU_ASSERT(bh_series_count(&f.b.series) == 0);

    /* another version of the pod is another series; an Event that is gone is created again */
    e.regarding_resource_version = version;
    f.events_gone = true;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.events == 2 && f.n_results == 5);
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.events == 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_event, "\"note\":\"0/1 nodes are available\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_event, "\"series\":{\"count\":2"));

    version[0] = '8'; /* the update overtakes the Event itself */
    f.events_gone = false;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.events == 4);
    f.events_late = true;
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.series == 3 && !f.events_late);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.last_event, "{\"series\":{\"count\":2"));

    e.reason = scheduled; /* happens once to a pod: nothing is kept of it */
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.events == 5);
    CU_ASSERT(bh_series_count(&f.b.series) == 2);
    close_binder(&f);
    teardown(&f);
}

static void test_of_too_many_events_the_oldest_are_dropped(void)
{
    struct fixture f;
    Berth__WorkItem w;
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    char normal[] = "Normal", scheduled[] = "Scheduled";

    setup(&f);
    open_binder(&f);
    e.type = normal;
    e.reason = scheduled;
    work_of(&w, 1, EVENT, add_pod(&f, "p"));
    w.event = &e;
    for (unsigned i = 0; i < BH_BINDER_EVENTS_RUNNING + BH_BINDER_EVENTS_MAX + 3; i++)
        bh_binder_event(&f.b, &w, 0);
    CU_ASSERT_EQUAL(f.b.n_events_running, BH_BINDER_EVENTS_RUNNING);
    CU_ASSERT_EQUAL(f.b.n_events, BH_BINDER_EVENTS_MAX);
    CU_ASSERT(bh_cell_value(bh_metric_cell(f.b.m_events, "dropped")) == 3);
    close_binder(&f);
    teardown(&f);
}

/* ---- epochs, fences, stops ------------------------------------------------------------------- */

static void test_old_epochs_are_not_written(void)
{
    struct fixture f;

    setup(&f);
    open_binder(&f);
    send_bind(&f, 9, 1, add_pod(&f, "p"));
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_STALE);
    CU_ASSERT(f.writes == 0);
    close_binder(&f);
    teardown(&f);
}

static void test_readiness_ends_with_the_scheduler(void)
{
    struct fixture f;

    setup(&f);
    open_binder(&f);
    send_bind(&f, 10, 1, add_pod(&f, "p"));
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(bh_binder_has_scheduler(&f.b));
    f.b.heard_ns -= BH_BINDER_DEAF_NS; /* as if that time had passed */
    CU_ASSERT(!bh_binder_has_scheduler(&f.b));
    send_bind(&f, 10, 2, add_pod(&f, "q"));
    SPIN(&f, f.n_results == 2);
    CU_ASSERT(bh_binder_has_scheduler(&f.b));
    close_binder(&f);
    teardown(&f);
}

/* What is said when it has heard nothing for a while, and when it hears again. */
static void test_silence_is_told_and_its_end(void)
{
    char path[200], *text = NULL;
    struct fixture f;

    setup(&f);
    open_binder(&f);
    snprintf(path, sizeof(path), "%s/said", f.dir);
    int old = dup(STDERR_FILENO), fd = open(path, O_RDWR | O_CREAT, 0600);
    CU_ASSERT_FATAL(old >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    f.b.heard_ns -= BH_BINDER_DEAF_NS; /* as if that time had passed */
    SPIN(&f, f.b.deaf);
    send_bind(&f, 10, 1, add_pod(&f, "p"));
    SPIN(&f, f.n_results == 1 && !f.b.deaf);
    fflush(stderr);
    (void)dup2(old, STDERR_FILENO);
    close(old);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(bh_read_file(path, 1 << 20, &text, NULL), 0);
    const char *silent = strstr(text, "The scheduler is not heard any more"),
               *again = strstr(text, "The scheduler is heard again");
    CU_ASSERT(silent && again && silent < again);
    free(text);
    close_binder(&f);
    teardown(&f);
}

static void test_what_no_scheduler_may_ask_for_is_not_written(void)
{
    struct fixture f;
    Berth__WorkItem w, *list = &w;
    Berth__Condition c = BERTH__CONDITION__INIT;
    struct bad {
        Berth__WorkKind kind;
        char name[24], ns[12], node[12], nominated[12], type[20];
    } bad[] = {{BIND, "..", "default", "node-1", "", ""},
               {BIND, "p/../../nodes", "default", "node-1", "", ""},
               {BIND, "p", "..", "node-1", "", ""},
               {BIND, "p", "default", "../etc", "", ""},
               {BIND, "p", "default", "Node", "", ""},
               {PATCH, "p", "default", "", "a/b", "PodScheduled"},
               {PATCH, "p", "default", "", "", "Ready"},
               {DELETE, "p", "default", "", "", "PodScheduled"},
               {DELETE, "P", "default", "", "", "DisruptionTarget"},
               {EVENT, "p", "a?b", "", "", ""}};
    char status[] = "True", type[] = "Normal", reason[] = "Scheduled";

    setup(&f);
    open_binder(&f);
    add_pod(&f, "p");
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++) {
        work_of(&w, i + 1, bad[i].kind, &f.pods[0]);
        w.name = bad[i].name;
        w.namespace_ = bad[i].ns;
        w.node = bad[i].node;
        w.nominated_node = bad[i].nominated;
        c.type = bad[i].type;
        c.status = status;
        w.condition = *c.type ? &c : NULL;
        w.set_nominated_node = w.has_set_nominated_node = bad[i].kind == PATCH;
        Berth__EventText t = BERTH__EVENT_TEXT__INIT;
        t.type = type;
        t.reason = reason;
        w.event = bad[i].kind == EVENT ? &t : NULL;
        send_items(&f, 10, &list, 1, 0);
        SPIN(&f, f.n_results == i + 1);
        CU_ASSERT(f.results[i].outcome == BERTH__OUTCOME__OUTCOME_REJECTED);
        CU_ASSERT(*f.results[i].message != '\0');
    }
    CU_ASSERT(f.writes == 0 && f.deletes == 0 && f.events == 0);
    close_binder(&f);
    teardown(&f);
}

/* ---- the lease ------------------------------------------------------------------------------- */

static void grant_at(struct fixture *f, uint64_t term, uint64_t serial, uint64_t stamp,
                     uint64_t valid_ns)
{
    Berth__Grant g = BERTH__GRANT__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    g.has_epoch = g.has_lease_term = g.has_serial = g.has_stamp_boot_ns = g.has_valid_ns = true;
    g.epoch = 10;
    g.lease_term = term;
    g.serial = serial;
    g.stamp_boot_ns = stamp;
    g.valid_ns = valid_ns;
    e.grant = &g;
    CU_ASSERT_FATAL(bh_bus_send(f->router, &f->peer, &e) == BH_BUS_OK);
}

static void grant(struct fixture *f, uint64_t term, uint64_t serial, uint64_t valid_ns)
{
    grant_at(f, term, serial, f->stamp, valid_ns);
    SPIN(f, f->grant_seen == serial); /* told at once, not with the next heartbeat */
}

/* Sends a bind of the term and returns its outcome. */
static Berth__Outcome bind_under(struct fixture *f, uint64_t term, const char *name)
{
    Berth__WorkItem w, *list = &w;
    unsigned before = f->n_results;

    work_of(&w, 100 + before, BIND, add_pod(f, name));
    send_items(f, 10, &list, 1, term);
    SPIN(f, f->n_results == before + 1);
    return f->results[before].outcome;
}

static void test_nothing_is_written_without_a_grant_that_holds(void)
{
    struct fixture f;

    setup(&f);
    open_binder(&f);
    CU_ASSERT(bind_under(&f, 7, "nobody-granted") == BERTH__OUTCOME__OUTCOME_STALE);
    grant(&f, 7, 1, 20 * NS_PER_S);
    CU_ASSERT(bind_under(&f, 7, "granted") == BERTH__OUTCOME__OUTCOME_DONE);
    CU_ASSERT(bind_under(&f, 6, "older-term") == BERTH__OUTCOME__OUTCOME_STALE);
    CU_ASSERT(bind_under(&f, 8, "newer-term") == BERTH__OUTCOME__OUTCOME_STALE);
    CU_ASSERT(bind_under(&f, 0, "no-election") == BERTH__OUTCOME__OUTCOME_DONE);
    grant_at(&f, 7, 2, 1, 1); /* was over before this machine had counted to two */
    SPIN(&f, f.grant_seen == 2);
    CU_ASSERT(bind_under(&f, 7, "over") == BERTH__OUTCOME__OUTCOME_STALE);
    grant(&f, 7, 3, 0);
    CU_ASSERT(bind_under(&f, 7, "revoked") == BERTH__OUTCOME__OUTCOME_STALE);
    grant(&f, 9, 4, 20 * NS_PER_S);
    CU_ASSERT(bind_under(&f, 9, "new-term") == BERTH__OUTCOME__OUTCOME_DONE);
    CU_ASSERT(f.writes == 3);
    close_binder(&f);
    teardown(&f);
}

/* The scheduler waits for the word that a grant is known, and for no other of the same. */
static void test_a_new_grant_is_answered_at_once(void)
{
    struct fixture f;

    setup(&f);
    open_binder(&f);
    uv_timer_stop(&f.b.heartbeat);
    grant(&f, 7, 1, 20 * NS_PER_S);
    const unsigned hellos = f.hellos;
    grant_at(&f, 7, 1, f.stamp, 20 * NS_PER_S);
    CU_ASSERT(bind_under(&f, 7, "p") == BERTH__OUTCOME__OUTCOME_DONE);
    CU_ASSERT_EQUAL(f.hellos, hellos);
    close_binder(&f);
    teardown(&f);
}

/* A binder that was stopped has a request whose turn comes when the grant is over: it waits for the
 * rate limit here. */
static void test_a_write_that_waited_too_long_is_not_sent(void)
{
    struct fixture f;
    Berth__WorkItem w[3], *list[3];
    unsigned stale = 0;

    setup(&f);
    f.options.limits.qps = 4;
    f.options.limits.burst = 1;
    open_binder(&f);
    grant(&f, 7, 1, 20 * NS_PER_S);
    grant(&f, 7, 2, NS_PER_S / 8);
    for (unsigned i = 0; i < 3; i++) {
        static const char *const names[] = {"one", "two", "three"};
        work_of(&w[i], i + 1, BIND, add_pod(&f, names[i]));
        list[i] = &w[i];
    }
    send_items(&f, 10, list, 3, 7);
    SPIN(&f, f.n_results == 3);
    for (unsigned i = 0; i < 3; i++)
        stale += f.results[i].outcome == BERTH__OUTCOME__OUTCOME_STALE;
    CU_ASSERT(stale >= 2);
    CU_ASSERT(f.writes == 3 - stale);
    close_binder(&f);
    teardown(&f);
}

static void send_status(struct fixture *f, uint64_t id, struct pod *p)
{
    static char type[] = "PodScheduled", status[] = "False";
    Berth__Condition c = BERTH__CONDITION__INIT;
    Berth__WorkItem w, *list = &w;

    c.type = type;
    c.status = status;
    work_of(&w, id, PATCH, p);
    w.condition = &c;
    send_items(f, 10, &list, 1, 7);
}

/* Until a pod's status waits to be repeated. */
static struct pod *setup_with_a_status(struct fixture *f)
{
    setup(f);
    open_binder(f);
    grant(f, 7, 1, 20 * NS_PER_S);
    f->script[0] = SAY_429;
    f->n_script = 1;
    struct pod *p = add_pod(f, "late");
    send_status(f, 1, p);
    SPIN(f, f->at == 1);
    return p;
}

/* The scheduler hears nothing of the binder, and gives it to another. */
static void test_a_status_that_may_be_anothers_is_not_written(void)
{
    struct fixture f;
    struct pod *p = setup_with_a_status(&f);

    f.b.grant.stamp_boot_ns = 1; /* it was stopped since the machine had counted to one */
    grant(&f, 7, 2, 20 * NS_PER_S);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_STALE && p->patches == 0);
    send_status(&f, 2, p);
    SPIN(&f, f.n_results == 2);
    CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_DONE && p->patches == 1);
    close_binder(&f);
    teardown(&f);
}

/* Its connection was cut, and the scheduler gave what it had to others: then it says hello again. */
static void test_a_status_of_before_the_scheduler_says_hello_is_not_written(void)
{
    struct fixture f;
    struct pod *p = setup_with_a_status(&f);

    greet(&f, 10);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_STALE && p->patches == 0);
    close_binder(&f);
    teardown(&f);
}

/* The host took the lease back under the term that it had: meanwhile the scheduler took the pod's binding
 * back, and gave its room to another. */
static void test_a_binding_of_before_the_lease_was_lost_is_not_tried_again(void)
{
    static const enum act first[] = {SAY_429, HANG};

    for (unsigned i = 0; i < BH_ARRAY_LEN(first); i++) {
        struct fixture f;
        Berth__WorkItem w, *list = &w;

        setup(&f);
        f.options.request_ns = NS_PER_S / 2;
        f.script[0] = first[i];
        f.n_script = 1;
        open_binder(&f);
        grant(&f, 7, 1, 20 * NS_PER_S);
        work_of(&w, 1, BIND, add_pod(&f, "p"));
        send_items(&f, 10, &list, 1, 7);
        SPIN(&f, f.at == 1);
        f.b.grant.stamp_boot_ns = 1; /* it was stopped since the machine had counted to one */
        grant(&f, 7, 2, 20 * NS_PER_S);
        SPIN(&f, f.n_results == 1);
        CU_ASSERT_EQUAL(f.results[0].outcome, first[i] == HANG ? BERTH__OUTCOME__OUTCOME_UNKNOWN
                                                               : BERTH__OUTCOME__OUTCOME_STALE);
        CU_ASSERT_EQUAL(f.writes, 1);
        CU_ASSERT(bind_under(&f, 7, "q") == BERTH__OUTCOME__OUTCOME_DONE);
        close_binder(&f);
        teardown(&f);
    }
}

/* The first try would say behind the pod's binding that it has no node. */
static void test_a_status_is_tried_again_when_the_first_try_cannot_come_in(void)
{
    struct fixture f;
    uint64_t over_ns;

    setup(&f);
    f.options.request_ns = NS_PER_S / 10;
    open_binder(&f);
    grant(&f, 7, 1, 20 * NS_PER_S);
    f.script[0] = HANG;
    f.n_script = 1;
    struct pod *p = add_pod(&f, "slow");
    send_status(&f, 1, p);
    SPIN(&f, (over_ns = f.b.unanswered_until_ns));
    SPIN(&f, f.writes == 2);
    CU_ASSERT(bh_boot_ns() >= over_ns);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_DONE && p->patches == 1);
    close_binder(&f);
    teardown(&f);
}

/* Else the room is another pod's when the first try of the binding comes in. */
static void test_a_refusal_counts_when_no_earlier_try_can_come_in(void)
{
    struct fixture f;
    Berth__WorkItem w, *list = &w;
    uint64_t over_ns;

    setup(&f);
    f.options.request_ns = NS_PER_S / 10;
    open_binder(&f);
    f.script[0] = f.script[2] = HANG;
    f.script[1] = f.script[3] = SAY_403;
    f.n_script = 4;
    struct pod *p = add_pod(&f, "late");
    work_of(&w, 1, BIND, p);
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.gets == 1); /* it is on no node yet */
    snprintf(p->node, sizeof(p->node), "%s", w.node);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_DONE && f.writes == 2);
    p = add_pod(&f, "victim");
    work_of(&w, 2, DELETE, p);
    send_items(&f, 10, &list, 1, 0);
    SPIN(&f, f.writes == 4);
    over_ns = f.b.unanswered_until_ns;
    SPIN(&f, f.n_results == 2);
    CU_ASSERT(bh_boot_ns() >= over_ns);
    CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_DONE && p->gone);
    close_binder(&f);
    teardown(&f);
}

/* A plugin's patch, and a reservation that is taken back: what was written after them would be lost. */
static void test_what_undoes_later_writes_is_not_written_late(void)
{
    static char ns[] = "ns", version[] = "v1", resource[] = "pods", sub[] = "status",
                body[] = "{\"status\":{\"x\":\"y\"}}", claim[] = "r", uid[] = "u-r";
    static uint8_t none[] = {0x0a, 0};
    struct fixture f;
    Berth__WorkItem w[2], *list[] = {&w[0], &w[1]};
    Berth__ObjectWrite o[2] = {BERTH__OBJECT_WRITE__INIT, BERTH__OBJECT_WRITE__INIT};
    Berth__ObjectPatch patch = BERTH__OBJECT_PATCH__INIT;

    setup(&f);
    f.options.plugin_writes = "pods/status";
    open_binder(&f);
    grant(&f, 7, 1, 20 * NS_PER_S);
    f.script[0] = f.script[1] = SAY_500;
    f.n_script = 2;
    f.claim.version = 5;
    work_of(&w[0], 1, BERTH__WORK_KIND__WORK_PATCH, add_pod(&f, "patched"));
    work_of(&w[1], 2, BERTH__WORK_KIND__WORK_UNRESERVATION, &f.pods[0]);
    patch.api_version = version;
    patch.resource = resource;
    patch.subresource = sub;
    patch.body = body;
    o[0].patch = &patch;
    o[0].name = f.pods[0].name;
    o[0].uid = f.pods[0].uid;
    o[1].name = claim;
    o[1].uid = uid;
    o[1].has_object = true;
    o[1].object = (ProtobufCBinaryData){sizeof(none), none};
    for (unsigned i = 0; i < 2; i++) {
        o[i].namespace_ = ns;
        w[i].write = &o[i];
    }
    send_items(&f, 10, list, 2, 7);
    SPIN(&f, f.at == 2);
    f.b.grant.stamp_boot_ns = 1; /* it was stopped since the machine had counted to one */
    grant(&f, 7, 2, 20 * NS_PER_S);
    SPIN(&f, f.n_results == 2);
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT(f.results[i].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN); /* after a 500 */
    CU_ASSERT(f.writes == 2 && f.pods[0].patches == 0);
    close_binder(&f);
    teardown(&f);
}

static void test_a_revoked_binder_says_when_nothing_is_out(void)
{
    struct fixture f;
    Berth__WorkItem w, *list = &w;

    setup(&f);
    f.options.request_ns = NS_PER_S / 2;
    f.script[0] = HANG;
    f.n_script = 1;
    open_binder(&f);
    grant(&f, 7, 1, 20 * NS_PER_S);
    work_of(&w, 1, BIND, add_pod(&f, "p"));
    send_items(&f, 10, &list, 1, 7);
    SPIN(&f, f.writes == 1);
    grant(&f, 7, 2, 0);
    CU_ASSERT(f.on_wire == 1);
    SPIN(&f, f.on_wire == 0);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN); /* not tried again */
    CU_ASSERT(f.writes == 1 && !f.leaving);
    close_binder(&f);
    SPIN(&f, f.leaving);
    teardown(&f);
}

/* A write that the binder gave up on may still come in at the API server: until it cannot any more
 * the lease must not be released for its silence, nor for its end. */
static void test_a_write_that_was_given_up_is_out_for_a_while(void)
{
    for (unsigned ends = 0; ends < 2; ends++) {
        struct fixture f;
        Berth__WorkItem w, *list = &w;

        setup(&f);
        f.options.request_ns = NS_PER_S / 5;
        f.script[0] = HANG;
        f.n_script = 1;
        open_binder(&f);
        grant(&f, 7, 1, 20 * NS_PER_S);
        const uint64_t sent_ns = bh_boot_ns();
        work_of(&w, 1, BIND, add_pod(&f, "p"));
        send_items(&f, 10, &list, 1, 7);
        SPIN(&f, f.writes == 1);
        if (ends) { /* with the request running */
            close_binder(&f);
            SPIN(&f, f.window == 0);
            CU_ASSERT(!f.leaving || f.stamp >= sent_ns + BH_BUS_GRANT_TAIL_NS);
        } else {
            grant(&f, 7, 2, 0);
            SPIN(&f, f.quiet_stamp);
            CU_ASSERT(f.quiet_stamp >= sent_ns + BH_BUS_GRANT_TAIL_NS);
            CU_ASSERT(f.n_results == 1);
            close_binder(&f);
        }
        teardown(&f);
    }
}

static void test_events_of_their_own_end_with_the_lease(void)
{
    struct fixture f;
    static char normal[] = "Normal", reason[] = "R", note[] = "n";
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    Berth__WorkItem w, *list = &w;

    setup(&f);
    open_binder(&f);
    e.type = normal;
    e.reason = reason;
    e.note = note;
    grant(&f, 7, 1, 20 * NS_PER_S);
    work_of(&w, 1, BERTH__WORK_KIND__WORK_EVENT, add_pod(&f, "p"));
    w.event = &e;
    send_items(&f, 10, &list, 1, 7);
    SPIN(&f, f.events == 1);
    grant(&f, 7, 2, 0);
    work_of(&w, 2, BERTH__WORK_KIND__WORK_EVENT, add_pod(&f, "q"));
    w.event = &e;
    send_items(&f, 10, &list, 1, 7);
    SPIN(&f, f.n_results == 2 && f.b.n_events == 0 && f.b.n_events_running == 0);
    CU_ASSERT(f.events == 1);
    CU_ASSERT(bh_cell_value(bh_metric_cell(f.b.m_events, "stale")) == 1);
    close_binder(&f);
    teardown(&f);
}

static void test_a_new_scheduler_is_told_what_is_on_the_wire(void)
{
    struct fixture f;
    unsigned writes;

    setup(&f);
    f.options.request_ns = 100000000;
    open_binder(&f);
    for (unsigned i = 0; i < 16; i++)
        f.script[i] = HANG;
    f.n_script = 16;
    send_bind(&f, 10, 1, add_pod(&f, "p"));
    SPIN(&f, f.writes == 1);
    CU_ASSERT(f.in_flight == 0); /* heartbeats carry nothing */
    greet(&f, 11);
    SPIN(&f, f.hello_epoch == 11);
    CU_ASSERT(f.in_flight == 1);
    CU_ASSERT_STRING_EQUAL(f.reported, "u-p n1");
    CU_ASSERT(f.window == BH_BINDER_WINDOW - 1); /* one place is taken */
    writes = f.writes;
    SPIN(&f, f.n_results == 1); /* the request that is out ends; it is not repeated */
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN);
    CU_ASSERT(f.results[0].epoch == 10);
    CU_ASSERT(f.writes == writes);
    greet(&f, 11);
    SPIN(&f, f.window == BH_BINDER_WINDOW);
    close_binder(&f);
    teardown(&f);
}

/* The scheduler's host started again, and with it the clock that its epoch is of; the binder is on
 * another host. */
static void test_a_scheduler_of_a_host_that_was_restarted_is_newer(void)
{
    struct fixture f;
    unsigned hellos;

    setup(&f);
    f.options.request_ns = 100000000;
    open_binder(&f);
    f.script[0] = HANG;
    f.n_script = 1;
    send_bind(&f, 10, 1, add_pod(&f, "p"));
    SPIN(&f, f.writes == 1);
    hellos = f.hellos;
    greet(&f, 3);
    SPIN(&f, f.hellos > hellos);
    CU_ASSERT(f.hello_epoch == 10); /* that one has just been heard of: this one is the older */
    f.b.epoch_heard_ns -= BH_BINDER_DEAF_NS;
    greet(&f, 3);
    SPIN(&f, f.hello_epoch == 3);
    CU_ASSERT(f.in_flight == 1 && f.window == BH_BINDER_WINDOW - 1);
    SPIN(&f, f.n_results == 1); /* ends as for any successor */
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN && f.results[0].epoch == 10);
    CU_ASSERT(f.writes == 1);
    greet(&f, 3);
    SPIN(&f, f.window == BH_BINDER_WINDOW);
    send_bind(&f, 3, 1, &f.pods[0]);
    SPIN(&f, f.n_results == 2);
    CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_DONE && f.results[1].epoch == 3);
    close_binder(&f);
    teardown(&f);
}

/* What a plugin has patched nobody else repeats; a condition would come behind what is said of the pod next.
 * Evictions may be done twice. */
static void test_a_new_scheduler_is_told_of_patches_and_of_conditions_on_the_wire(void)
{
    static char ns[] = "ns", version[] = "v1", resource[] = "pods", sub[] = "status",
                body[] = "{\"status\":{\"x\":\"y\"}}", type[] = "PodScheduled", status[] = "False";
    struct fixture f;
    Berth__WorkItem w[3], *list[] = {&w[0], &w[1], &w[2]};
    Berth__Condition c = BERTH__CONDITION__INIT;
    Berth__ObjectWrite o = BERTH__OBJECT_WRITE__INIT;
    Berth__ObjectPatch patch = BERTH__OBJECT_PATCH__INIT;

    setup(&f);
    f.options.plugin_writes = "pods/status";
    f.options.request_ns = 100000000;
    open_binder(&f);
    for (unsigned i = 0; i < 3; i++)
        f.script[i] = HANG;
    f.n_script = 3;
    c.type = type;
    c.status = status;
    work_of(&w[0], 1, PATCH, add_pod(&f, "condition"));
    w[0].condition = &c;
    work_of(&w[1], 2, DELETE, add_pod(&f, "victim"));
    work_of(&w[2], 3, BERTH__WORK_KIND__WORK_PATCH, add_pod(&f, "patched"));
    o.namespace_ = ns;
    o.name = f.pods[2].name;
    o.uid = f.pods[2].uid;
    o.patch = &patch;
    patch.api_version = version;
    patch.resource = resource;
    patch.subresource = sub;
    patch.body = body;
    w[2].write = &o;
    send_items(&f, 10, list, 3, 0);
    SPIN(&f, f.writes == 3);
    greet(&f, 11);
    SPIN(&f, f.hello_epoch == 11);
    CU_ASSERT_EQUAL(f.in_flight, 2);
    CU_ASSERT(strncmp(f.reported, "u-patched ", 10) == 0);
    SPIN(&f, f.n_results == 3);
    f.script[0] = SAY_429; /* what only waits is not tried again */
    f.n_script = 1;
    f.at = f.in_flight = 0;
    send_items(&f, 11, list, 1, 0);
    SPIN(&f, f.at == 1 && !f.b.n_writing);
    greet(&f, 12);
    SPIN(&f, f.hello_epoch == 12);
    CU_ASSERT_EQUAL(f.in_flight, 0);
    close_binder(&f);
    teardown(&f);
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* The allocation of device g0 to claim r, for pod p; decided when the claim was at version 5. */
static void send_allocation(struct fixture *f, uint64_t id, uint64_t term)
{
    static const char json[] =
        "{\"metadata\":{\"name\":\"r\",\"namespace\":\"ns\",\"uid\":\"u-r\",\"finalizers\":["
        "\"resource.kubernetes.io/delete-protection\"]},\"status\":{\"allocation\":{\"devices\":{"
        "\"results\":[{\"request\":\"q\",\"driver\":\"d\",\"pool\":\"n1\",\"device\":\"g0\"}]}},"
        "\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\",\"uid\":\"u-p\"}]}}";
    static char ns[] = "ns", name[] = "r", uid[] = "u-r", version[] = "5";
    Berth__ObjectWrite o = BERTH__OBJECT_WRITE__INIT;
    Berth__WorkItem w, *list = &w;
    ProtobufCMessage *m = NULL;
    struct bh_buf b = {0};
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_decode_object(&f->msg, &k8s__resource_claim__descriptor, json,
                                     sizeof(json) - 1, &m, &err) == 0);
    bh_pb_pack(&b, m);
    work_of(&w, id, BERTH__WORK_KIND__WORK_ALLOCATION, f->n_pods ? &f->pods[0] : add_pod(f, "p"));
    o.namespace_ = ns;
    o.name = name;
    o.uid = uid;
    o.resource_version = version;
    o.has_object = true;
    o.object = (ProtobufCBinaryData){b.n, (uint8_t *)b.p};
    w.write = &o;
    send_items(f, 10, &list, 1, term);
    bh_buf_fini(&b);
}

static void test_an_allocation_survives_cuts_errors_and_repeats(void)
{
    static const enum act scripts[][4] = {{AS_USUAL},
                                          {CUT_BEFORE, AS_USUAL, CUT_AFTER},
                                          {CUT_AFTER, CUT_AFTER, CUT_AFTER},
                                          {SAY_500, AS_USUAL, SAY_500, CUT_AFTER}};

    for (unsigned i = 0; i < BH_ARRAY_LEN(scripts); i++) {
        struct fixture f;
        setup(&f);
        open_binder(&f);
        memcpy(f.script, scripts[i], sizeof(scripts[i]));
        f.n_script = 4;
        f.claim.version = 5;
        send_allocation(&f, 1, 0);
        SPIN(&f, f.n_results == 1);
        CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_DONE);
        send_allocation(&f, 1, 0); /* the answer was lost: another binder would do the same */
        SPIN(&f, f.n_results == 2);
        CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_DONE);
        CU_ASSERT(f.results[1].objects == 1);
        CU_ASSERT(f.claim.is_protected && f.claim.allocated);
        CU_ASSERT(f.claim.allocations == 1);
        close_binder(&f);
        teardown(&f);
    }
}

static void test_an_allocation_needs_a_grant_and_a_claim(void)
{
    struct fixture f;

    setup(&f);
    open_binder(&f);
    send_allocation(&f, 1, 0);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_GONE);
    f.claim.version = 5;
    f.writes = 0;
    grant(&f, 7, 1, 0); /* revoked */
    send_allocation(&f, 2, 7);
    SPIN(&f, f.n_results == 2);
    CU_ASSERT(f.results[1].outcome == BERTH__OUTCOME__OUTCOME_STALE);
    CU_ASSERT(f.writes == 0);
    close_binder(&f);
    teardown(&f);
}

static void test_a_new_scheduler_is_told_of_an_allocation_on_the_wire(void)
{
    struct fixture f;

    setup(&f);
    f.options.request_ns = 100000000;
    open_binder(&f);
    f.claim.version = 5;
    f.script[0] = HANG;
    f.n_script = 1;
    send_allocation(&f, 1, 0);
    SPIN(&f, f.writes == 1);
    greet(&f, 11);
    SPIN(&f, f.hello_epoch == 11);
    CU_ASSERT(f.in_flight == 1);
    SPIN(&f, f.n_results == 1);
    CU_ASSERT(f.results[0].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN);
    CU_ASSERT(f.writes == 1 && !f.claim.allocated);
    close_binder(&f);
    teardown(&f);
}

static void test_a_stop_lets_what_is_out_end_and_answers_the_rest(void)
{
    struct fixture f;

    setup(&f);
    open_binder(&f);
    f.script[0] = SAY_429; /* waits a second */
    f.n_script = 1;
    send_bind(&f, 10, 1, add_pod(&f, "paused"));
    SPIN(&f, f.writes == 1);
    send_bind(&f, 10, 2, add_pod(&f, "running"));
    SPIN(&f, f.writes == 2 || f.b.n_jobs == 2);
    bh_binder_wind_down(&f.b);
    SPIN(&f, f.window == 0);
    SPIN(&f, f.n_results == 2);
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT(f.results[i].outcome == (f.results[i].id == 1 ? BERTH__OUTCOME__OUTCOME_UNKNOWN
                                                                : BERTH__OUTCOME__OUTCOME_DONE));
    send_bind(&f, 10, 3, add_pod(&f, "too-late"));
    SPIN(&f, f.n_results == 3);
    CU_ASSERT(f.results[2].outcome == BERTH__OUTCOME__OUTCOME_UNKNOWN);
    close_binder(&f);
    teardown(&f);
}

static void test_closing_with_requests_running_answers_and_leaks_nothing(void)
{
    struct fixture f;
    Berth__WorkItem w, *list = &w;
    Berth__EventText e = BERTH__EVENT_TEXT__INIT;
    char warning[] = "Warning", reason[] = "FailedScheduling", version[16];

    setup(&f);
    open_binder(&f);
    for (unsigned i = 0; i < 16; i++)
        f.script[i] = i < 8 ? HANG : SAY_500;
    f.n_script = 16;
    for (unsigned i = 0; i < 16; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        send_bind(&f, 10, i + 1, add_pod(&f, name));
    }
    e.type = warning;
    e.reason = reason;
    f.event_failures = 1000;
    work_of(&w, 99, EVENT, &f.pods[0]);
    w.event = &e;
    e.regarding_resource_version = version;
    for (unsigned i = 0; i < 300; i++) { /* each an event of its own */
        snprintf(version, sizeof(version), "%u", i);
        send_items(&f, 10, &list, 1, 0);
    }
    SPIN(&f, f.writes >= 8 && f.b.n_events > 0);
    close_binder(&f);
    SPIN(&f, f.n_results >= 16 + 1);
    teardown(&f);
}

static void test_hundreds_of_binds_run_at_once_and_each_is_answered(void)
{
    struct fixture f;
    Berth__WorkItem items[MAX_PODS], *list[MAX_PODS];
    bool seen[MAX_PODS + 1] = {false};

    setup(&f);
    open_binder(&f);
    for (unsigned i = 0; i < MAX_PODS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%u", i);
        work_of(&items[i], i + 1, BIND, add_pod(&f, name));
        list[i] = &items[i];
    }
    send_items(&f, 10, list, MAX_PODS, 0);
    SPIN(&f, f.b.n_jobs > 200);
    SPIN(&f, f.n_results == MAX_PODS);
    for (unsigned i = 0; i < MAX_PODS; i++) {
        CU_ASSERT(f.results[i].outcome == BERTH__OUTCOME__OUTCOME_DONE);
        CU_ASSERT(!seen[f.results[i].id]);
        seen[f.results[i].id] = true;
        CU_ASSERT(f.pods[i].bindings == 1);
    }
    CU_ASSERT(f.b.n_jobs == 0);
    close_binder(&f);
    teardown(&f);
}

static void test_a_binder_that_cannot_start_says_why_and_leaks_nothing(void)
{
    struct fixture f;
    struct bh_err err = {0};

    setup(&f);
    f.options.metrics_address = "not an address";
    CU_ASSERT(bh_binder_open(&f.b, &f.options, &f.loop, &err) < 0);
    CU_ASSERT(*err.msg);
    close_binder(&f);
    teardown(&f);
}

BH_TESTS(
    "binder",
    {"every answer to a binding has its meaning", test_every_answer_to_a_binding_has_its_meaning},
    {"Retry-After is honoured", test_retry_after_is_honoured},
    {"no answer before the deadline is unknown", test_no_answer_before_the_deadline_is_unknown},
    {"status patches and evictions", test_status_patches_and_evictions},
    {"events are repeated and never delay answers",
     test_events_are_repeated_and_never_delay_answers},
    {"events that repeat become a series", test_events_that_repeat_become_a_series},
    {"old epochs are not written", test_old_epochs_are_not_written},
    {"readiness ends with the scheduler", test_readiness_ends_with_the_scheduler},
    {"silence is told, and its end", test_silence_is_told_and_its_end},
    {"what no scheduler may ask for is not written",
     test_what_no_scheduler_may_ask_for_is_not_written},
    {"nothing is written without a grant that holds",
     test_nothing_is_written_without_a_grant_that_holds},
    {"a new grant is answered at once", test_a_new_grant_is_answered_at_once},
    {"a write that waited too long is not sent", test_a_write_that_waited_too_long_is_not_sent},
    {"a revoked binder says when nothing is out", test_a_revoked_binder_says_when_nothing_is_out},
    {"a write that was given up is out for a while",
     test_a_write_that_was_given_up_is_out_for_a_while},
    {"events of their own end with the lease", test_events_of_their_own_end_with_the_lease},
    {"a look writes nothing", test_a_look_writes_nothing},
    {"a bind that is a patch posts no binding", test_a_bind_that_is_a_patch_posts_no_binding},
    {"a new scheduler is told what is on the wire",
     test_a_new_scheduler_is_told_what_is_on_the_wire},
    {"a scheduler of a host that was restarted is newer",
     test_a_scheduler_of_a_host_that_was_restarted_is_newer},
    {"a new scheduler is told of patches and of conditions on the wire",
     test_a_new_scheduler_is_told_of_patches_and_of_conditions_on_the_wire},
    {"of too many events the oldest are dropped", test_of_too_many_events_the_oldest_are_dropped},
    {"an allocation survives cuts, errors and repeats",
     test_an_allocation_survives_cuts_errors_and_repeats},
    {"a status that may be another's is not written",
     test_a_status_that_may_be_anothers_is_not_written},
    {"a status of before the scheduler says hello is not written",
     test_a_status_of_before_the_scheduler_says_hello_is_not_written},
    {"a binding of before the lease was lost is not tried again",
     test_a_binding_of_before_the_lease_was_lost_is_not_tried_again},
    {"a status is tried again when the first try cannot come in",
     test_a_status_is_tried_again_when_the_first_try_cannot_come_in},
    {"a refusal counts when no earlier try can come in",
     test_a_refusal_counts_when_no_earlier_try_can_come_in},
    {"what undoes later writes is not written late",
     test_what_undoes_later_writes_is_not_written_late},
    {"an allocation needs a grant and a claim", test_an_allocation_needs_a_grant_and_a_claim},
    {"a new scheduler is told of an allocation on the wire",
     test_a_new_scheduler_is_told_of_an_allocation_on_the_wire},
    {"a stop lets what is out end and answers the rest",
     test_a_stop_lets_what_is_out_end_and_answers_the_rest},
    {"closing with requests running answers and leaks nothing",
     test_closing_with_requests_running_answers_and_leaks_nothing},
    {"hundreds of binds run at once and each is answered",
     test_hundreds_of_binds_run_at_once_and_each_is_answered},
    {"a binder that cannot start says why and leaks nothing",
     test_a_binder_that_cannot_start_says_why_and_leaks_nothing})
