/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/watcher/test_watcher.c - the whole watcher between a made-up API server, a reader of
 * the snapshot and a scheduler on the bus
 */
#include "watcher/watcher.h"

#include "common/base/loop.h"
#include "common/bus/bus.h"
#include "common/k8s/codec.h"
#include "common/k8s/pod_group.h"
#include "common/snapshot/announce.h"
#include "common/snapshot/snapshot.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/common/api/raw_server.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_SEEN 64

struct env {
    uv_loop_t loop;
    struct raw_server server;
    struct bh_watcher *watcher;
    char *dir, url[64], shm[64];
    unsigned synced, failed;
    bool hold_claims;   /* ResourceClaims are not answered */
    bool pod_groups;    /* are watched; the server has them in v1beta1 */
    bool coscheduling;  /* those of the plugin are */
    bool refuse_nodes;  /* no list of nodes */
    bool refuse_groups; /* nor of the plugin's */
    bool elect;         /* there is an election, and no lease yet */
    unsigned lease_gets, lease_posts;
    struct bh_pod_group group; /* the last one told */
    struct raw_conn *held, *pods, *nodes, *namespaces, *claims;
    uint64_t epoch; /* the scheduler's */
    /* as a scheduler sees it */
    struct bh_symtab *symtab;
    struct bh_snap_reader *reader;
    unsigned nodes_seen, pods_seen;
    struct bh_bus *bus;
    struct bh_arena arena, kept;
    bool begun, feed_synced;
    uint32_t unusable; /* the last kind that plugins read and the watcher cannot, 0: none */
    uint64_t seq, incarnation, bound_pos, progress;
    struct {
        char op;
        uint32_t kind;
        char name[64];
        bool in_list, raw;
        uint64_t log_pos;
        size_t bytes;
    } seen[MAX_SEEN];
    unsigned n_seen;
    /* condition being waited for */
    unsigned want_nodes, want_pods, want_seen;
};

/* ---- API server ------------------------------------------------------------------------------ */

#define META(name, uid, rv)                                                                        \
    "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" uid                      \
    "\",\"resourceVersion\":\"" rv "\"}"
#define NODE(name, rv)                                                                             \
    "{\"metadata\":{\"name\":\"" name "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" rv        \
    "\"},\"status\":{\"allocatable\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"pods\":\"110\"}}}"
#define POD(name, rv, spec)                                                                        \
    "{" META(name, "u-" name, rv) ",\"spec\":{" spec "\"containers\":[{\"name\":\"c\","            \
                                  "\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":"          \
                                  "\"1\"}}}]}}"
#define ON(node) "\"nodeName\":\"" node "\","
#define LIST(items)                                                                                \
    "{\"kind\":\"XList\",\"metadata\":{\"resourceVersion\":\"50\"},\"items\":[" items "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static const char nodes_list[] =
    LIST(NODE("n1", "1") ",{\"metadata\":{\"name\":\"broken\",\"uid\":"
                         "\"x\",\"resourceVersion\":\"2\"},\"status\":{\"allocatable\":"
                         "{\"cpu\":\"not a number\"}}},{\"metadata\":[]}");
static const char pods_list[] =
    LIST(POD("running", "11", ON("n1")) "," POD("waiting", "12", "") ",{" META(
        "finished", "u-finished",
        "13") ",\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Succeeded\"}}");

static void list_reply(struct env *e, struct raw_conn *c, const char *target)
{
    if (strstr(target, "/nodes?") && e->refuse_nodes)
        raw_json(c, 403,
                 "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":"
                 "\"nodes is forbidden\"}");
    else if (strstr(target, "/nodes?"))
        raw_json(c, 200, nodes_list);
    else if (strstr(target, "/pods?"))
        raw_json(c, 200, pods_list);
    else if (strstr(target, "/namespaces?"))
        raw_json(c, 200,
                 LIST("{\"metadata\":{\"name\":\"ns\",\"uid\":\"u-ns\",\"resourceVersion\":"
                      "\"3\",\"labels\":{\"team\":\"a\"}}}"));
    else if (strstr(target, "/scheduling.x-k8s.io/") && e->refuse_groups)
        raw_json(c, 403, "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\"}");
    else if (strstr(target, "/scheduling.x-k8s.io/v1alpha1/podgroups?"))
        raw_json(c, 200,
                 LIST("{" META("three", "u-three", "4") ",\"spec\":{\"minMember\":3}},{" META(
                     "odd", "u-odd", "5") ",\"spec\":{\"minMember\":-2}}"));
    else if (strstr(target, "/v1beta1/podgroups?"))
        raw_json(c, 200,
                 LIST("{" META("gang", "u-gang",
                               "4") ",\"spec\":{\"schedulingPolicy\":{\"gang\":{"
                                    "\"minCount\":3}},\"disruptionMode\":{\"all\":{}}}},{" META(
                                        "nothing", "u-nothing", "5") "}"));
    else if (strstr(target, "/deviceclasses?") || strstr(target, "/podgroups?"))
        raw_json(c, 404, "{\"kind\":\"Status\",\"code\":404,\"reason\":\"NotFound\"}");
    else if (strstr(target, "/resourceclaims?") && e->hold_claims)
        e->held = c;
    else
        raw_json(c, 200, LIST(""));
}

static void handle(struct raw_server *s, const struct raw_request *r)
{
    struct env *e = s->arg;
    if (strstr(r->target, "/leases")) {
        bool get = bh_streq(r->method, "GET");
        *(get ? &e->lease_gets : &e->lease_posts) += 1;
        raw_json(r->conn, get ? 404 : 409, "{\"kind\":\"Status\"}");
        return;
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(r->head, "Berth-Projection: scheduling"));
    CU_ASSERT_PTR_NOT_NULL(strstr(r->head, "Accept: application/vnd.kubernetes.protobuf, "
                                           "application/json"));
    if (!strstr(r->target, "watch=true")) {
        list_reply(e, r->conn, r->target);
        return;
    }
    if (strstr(r->target, "/resourceclaims?") && e->hold_claims) {
        raw_json(r->conn, 410,
                 "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":"
                 "\"too old resource version\"}");
        return;
    }
    raw_stream(r->conn, "application/json");
    if (strstr(r->target, "/pods?"))
        e->pods = r->conn;
    else if (strstr(r->target, "/nodes?"))
        e->nodes = r->conn;
    else if (strstr(r->target, "/namespaces?"))
        e->namespaces = r->conn;
    else if (strstr(r->target, "/resourceclaims?"))
        e->claims = r->conn;
}

/* ---- a scheduler's eyes ---------------------------------------------------------------------- */

static void on_snap(void *arg, const struct bh_snap_event *ev)
{
    struct env *e = arg;
    e->nodes_seen += ev->op == BH_SNAP_NODE_PUT;
    e->nodes_seen -= ev->op == BH_SNAP_NODE_DEL;
    e->pods_seen += ev->op == BH_SNAP_POD_PUT;
    e->pods_seen -= ev->op == BH_SNAP_POD_DEL;
    if (ev->op == BH_SNAP_BEGIN)
        e->nodes_seen = e->pods_seen = 0;
}

/* Whatever the server has, it travels as v1alpha2. */
static void see_group(struct env *e, const Berth__ObjectChange *c)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {""};

    CU_ASSERT_EQUAL_FATAL(bh_pb_unpack(&e->kept, bh_kinds[BH_KIND_PODGROUP].desc, c->object.data,
                                       c->object.len, &m, &err),
                          0);
    CU_ASSERT_EQUAL(bh_pod_group_read((const K8s__PodGroup *)m, &e->group, &err), 0);
}

static void see(struct env *e, const Berth__ObjectChange *c)
{
    static const char ops[] = {'+', '~', '-', '='};
    if (e->n_seen == MAX_SEEN)
        return;
    if (c->kind == BH_KIND_PODGROUP && c->object.len)
        see_group(e, c);
    e->seen[e->n_seen].op = ops[c->op];
    e->seen[e->n_seen].kind = c->kind;
    e->seen[e->n_seen].in_list = c->in_list;
    e->seen[e->n_seen].raw = c->raw;
    e->seen[e->n_seen].bytes = c->object.len;
    e->seen[e->n_seen].log_pos = c->log_pos;
    snprintf(e->seen[e->n_seen++].name, 64, "%s", c->name);
}

static void look(struct env *e)
{
    Berth__Envelope *m;
    for (;;) {
        bh_arena_reset(&e->arena);
        enum bh_bus_outcome o = bh_bus_recv(e->bus, &e->arena, NULL, &m);
        if (o == BH_BUS_EMPTY)
            break;
        CU_ASSERT_EQUAL(o, BH_BUS_OK);
        if (m->feed_begin) {
            e->begun = true;
            e->seq = 0;
            e->incarnation = m->feed_begin->incarnation;
        } else if (m->feed_batch) {
            CU_ASSERT_EQUAL(m->feed_batch->seq, e->seq + 1);
            e->seq = m->feed_batch->seq;
            e->feed_synced = e->feed_synced || m->feed_batch->synced;
            for (size_t i = 0; i < m->feed_batch->n_watch; i++)
                e->unusable = m->feed_batch->watch[i]->usable ? 0 : m->feed_batch->watch[i]->kind;
            for (size_t i = 0; i < m->feed_batch->n_change; i++)
                see(e, m->feed_batch->change[i]);
        }
    }
    (void)bh_snap_follow(e->reader, 1000, on_snap, e);
}

static void say_hello_for(struct env *e, uint32_t raw)
{
    Berth__FeedHello h = BERTH__FEED_HELLO__INIT;
    Berth__Envelope m = BERTH__ENVELOPE__INIT;
    h.has_epoch = h.has_credit = 1;
    h.epoch = 1 + e->epoch;
    h.credit = 64;
    h.has_raw = true;
    h.raw = raw;
    m.feed_hello = &h;
    CU_ASSERT_EQUAL(bh_bus_send(e->bus, NULL, &m), BH_BUS_OK);
}

static void say_hello(struct env *e)
{
    say_hello_for(e, 0);
}

/* The scheduler and a binder of it go on. */
static void advance(struct env *e)
{
    Berth__FeedAck a = BERTH__FEED_ACK__INIT;
    Berth__Envelope m = BERTH__ENVELOPE__INIT;
    a.has_seq = a.has_ready = a.ready = a.has_binder_progress = 1;
    a.seq = e->seq;
    a.binder_progress = ++e->progress;
    m.feed_ack = &a;
    CU_ASSERT_EQUAL(bh_bus_send(e->bus, NULL, &m), BH_BUS_OK);
}

static int find(const struct env *e, char op, const char *name)
{
    for (unsigned i = 0; i < e->n_seen; i++)
        if (e->seen[i].op == op && bh_streq(e->seen[i].name, name))
            return (int)i;
    return -1;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static void on_synced(void *arg)
{
    ((struct env *)arg)->synced++;
}

static void on_failed(void *arg)
{
    ((struct env *)arg)->failed++;
}

static int start(struct env *e, struct bh_watcher **ret, struct bh_err *err)
{
    struct bh_api_config api = {.server = e->url};
    struct bh_component_config c;
    CU_ASSERT_EQUAL_FATAL(bh_component_config_of(NULL, &c, err), 0);
    c.leader.leader_elect = e->elect;
    c.leader.retry_period_ns = 10000000;
    const struct bh_watcher_options o = {.api = &api,
                                         .leader = &c.leader,
                                         .event_source = "my-scheduler",
                                         .runtime_dir = e->dir,
                                         .metrics_address = "127.0.0.1:0",
                                         .pod_groups = e->pod_groups,
                                         .coscheduling = e->coscheduling,
                                         .user_agent = "berth-watcher/test"};
    const struct bh_watcher_callbacks cb = {on_synced, on_failed, e};
    return bh_watcher_new(&e->loop, &o, &cb, ret, err);
}

static void setup(struct env *e)
{
    static unsigned n;
    struct bh_err err = {""};
    char endpoint[128];
    e->dir = bh_asprintf("%s/rt%u", bh_test_tmpdir(), n++);
    CU_ASSERT_EQUAL_FATAL(mkdir(e->dir, 0750), 0);
    snprintf(e->shm, sizeof(e->shm), "berth-%016llx-",
             (unsigned long long)bh_snap_instance(e->dir));
    uv_loop_init(&e->loop);
    raw_start(&e->server, &e->loop, handle, e);
    snprintf(e->url, sizeof(e->url), "http://127.0.0.1:%u", e->server.port);
    int rc = start(e, &e->watcher, &err);
    if (rc < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    e->symtab = bh_symtab_new();
    e->reader = bh_snap_reader_new(e->dir, e->symtab);
    bh_arena_init(&e->arena, 0);
    bh_arena_init(&e->kept, 0);
    CU_ASSERT_EQUAL(bh_bus_endpoint(e->dir, "watcher", endpoint, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_DEALER_CONNECT, endpoint, "sched", &e->bus, &err), 0);
}

static unsigned shm_files(const struct env *e)
{
    unsigned n = 0;
    struct dirent *d;
    DIR *dir = opendir("/dev/shm");
    while (dir && (d = readdir(dir)))
        n += strncmp(d->d_name, e->shm, strlen(e->shm)) == 0;
    closedir(dir);
    return n;
}

static void teardown(struct env *e)
{
    char *socket = bh_asprintf("%s/watcher.sock", e->dir);
    CU_ASSERT_EQUAL(access(socket, F_OK), 0);
    CU_ASSERT(shm_files(e) > 0);
    bh_snap_reader_free(e->reader);
    bh_bus_close(e->bus);
    bh_watcher_free(e->watcher);
    raw_stop(&e->server);
    bh_loop_drain_close(&e->loop);
    CU_ASSERT_EQUAL(access(socket, F_OK), -1); /* a clean stop leaves nothing */
    CU_ASSERT_EQUAL(shm_files(e), 0);
    bh_symtab_free(e->symtab);
    bh_arena_fini(&e->arena);
    bh_arena_fini(&e->kept);
    free(socket);
    free(e->dir);
}

static bool is_there(void *arg)
{
    struct env *e = arg;
    look(e);
    return e->feed_synced && e->nodes_seen == e->want_nodes && e->pods_seen == e->want_pods &&
           e->n_seen >= e->want_seen;
}

static void wait_for(struct env *e, unsigned nodes, unsigned pods, unsigned seen)
{
    e->want_nodes = nodes;
    e->want_pods = pods;
    e->want_seen = seen;
    if (!run_until(&e->loop, is_there, e)) {
        printf("# nodes %u pods %u seen %u synced %d\n", e->nodes_seen, e->pods_seen, e->n_seen,
               e->feed_synced);
        CU_FAIL("the state that was waited for did not come");
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_initial_state(void)
{
    struct env e = {.hold_claims = false};
    struct bh_snap_stats s;
    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 2); /* node n1; pod running; to be told: pod waiting, namespace ns */
    CU_ASSERT(find(&e, '+', "waiting") >= 0);
    CU_ASSERT(find(&e, '+', "ns") >= 0);
    CU_ASSERT_EQUAL(e.n_seen, 2);
    CU_ASSERT(e.seen[0].in_list && e.seen[1].in_list);
    CU_ASSERT_EQUAL(e.synced, 1);
    CU_ASSERT(bh_watcher_synced(e.watcher));
    CU_ASSERT(bh_watcher_healthy(e.watcher));
    CU_ASSERT(bh_snap_reader_info(e.reader, &s));
    CU_ASSERT(s.synced);
    CU_ASSERT_EQUAL(s.incarnation, e.incarnation);
    CU_ASSERT(s.lease_term == 0 && s.lease_until_boot_ns == BH_SNAP_NO_ELECTION);
    char line[128];
    bh_watcher_status(e.watcher, line);
    CU_ASSERT_STRING_EQUAL(line, "watching: 1 nodes, 1 assigned pods, 1 pending, 1 schedulers");
    teardown(&e);
}

static void test_groups_of_pods(void)
{
    struct env e = {.pod_groups = true};

    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 3);
    CU_ASSERT(find(&e, '+', "gang") >= 0);
    CU_ASSERT(find(&e, '+', "nothing") < 0); /* it says nothing that could be acted on */
    CU_ASSERT_STRING_EQUAL(e.group.version, "v1beta1");
    CU_ASSERT_STRING_EQUAL(e.group.condition, "PodGroupInitiallyScheduled");
    CU_ASSERT(e.group.min_count == 3 && e.group.whole);
    teardown(&e);
}

static void test_groups_of_the_plugin(void)
{
    struct env e = {.coscheduling = true};

    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 3);
    const int at = find(&e, '+', "three");
    CU_ASSERT_FATAL(at >= 0);
    CU_ASSERT_EQUAL(e.seen[at].kind, BH_KIND_COSCHEDULING_PODGROUP);
    CU_ASSERT(find(&e, '+', "odd") < 0); /* a negative minMember */
    teardown(&e);
}

static bool is_synced(void *arg)
{
    struct env *e = arg;

    look(e);
    return e->feed_synced;
}

/* Without the right to read them all else is served; the scheduler has its state before it decides. */
static void test_forbidden_groups_of_the_plugin_hold_nothing_else_up(void)
{
    struct env e = {.coscheduling = true, .refuse_groups = true};

    setup(&e);
    say_hello(&e);
    CU_ASSERT(run_until(&e.loop, is_synced, &e));
    CU_ASSERT(bh_watcher_synced(e.watcher));
    CU_ASSERT_EQUAL(e.unusable, BH_KIND_COSCHEDULING_PODGROUP);
    wait_for(&e, 1, 1, 2); /* nodes, pods and what stands for them are there */
    teardown(&e);
}

static bool claims_asked(void *arg)
{
    struct env *e = arg;
    look(e);
    return e->held && e->pods && e->nodes && e->n_seen == 2;
}

static bool watches_open(void *arg)
{
    struct env *e = arg;
    return e->pods && e->nodes;
}

static void test_synced_means_everything(void)
{
    struct env e = {.hold_claims = true};
    setup(&e);
    say_hello(&e);
    CU_ASSERT(run_until(&e.loop, claims_asked, &e));
    CU_ASSERT(!e.feed_synced); /* told what is known, but not that it is all */
    CU_ASSERT_EQUAL(e.synced, 0);
    CU_ASSERT(!bh_watcher_synced(e.watcher));
    CU_ASSERT_EQUAL(bh_snap_follow(e.reader, 100, on_snap, &e), BH_SNAP_NOT_READY);
    raw_json(e.held, 200, LIST(""));
    wait_for(&e, 1, 1, 2);
    CU_ASSERT_EQUAL(e.synced, 1);
    teardown(&e);
}

static void test_pod_transitions(void)
{
    struct env e = {.hold_claims = false};
    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 2);

    raw_chunks(e.pods, EVENT("MODIFIED", POD("waiting", "60", ON("n1"))));
    wait_for(&e, 1, 2, 3);
    int i = find(&e, '=', "waiting");
    CU_ASSERT_FATAL(i >= 0);
    CU_ASSERT(!e.seen[i].in_list);
    CU_ASSERT(e.seen[i].log_pos > 0 && e.seen[i].log_pos <= bh_snap_reader_pos(e.reader));

    raw_chunks(e.pods, EVENT("ADDED", POD("new", "61", "")) EVENT("DELETED", POD("new", "62", ""))
                           EVENT("ADDED", POD("born", "63", ON("n1"))));
    raw_chunks(e.pods, EVENT("ADDED", POD("other", "64", "\"schedulerName\":\"mine\",")));
    wait_for(&e, 1, 3, 4);
    CU_ASSERT(find(&e, '+', "other") >= 0); /* schedulers choose by profile, not the watcher */

    /* a terminated pod is none, whatever it was before */
    raw_chunks(e.pods,
               EVENT("MODIFIED", "{" META("born", "u-born", "65") ",\"spec\":{\"nodeName\":\"n1\"},"
                                                                  "\"status\":{\"phase\":"
                                                                  "\"Failed\"}}"));
    raw_chunks(e.pods, EVENT("DELETED", POD("running", "66", ON("n1")))
                           EVENT("DELETED", POD("other", "67", "")));
    wait_for(&e, 1, 1, 5);
    CU_ASSERT(find(&e, '-', "other") >= 0);
    CU_ASSERT_EQUAL(find(&e, '-', "running"), -1); /* the snapshot says so */

    /* same name, another pod */
    raw_chunks(e.pods, EVENT("MODIFIED", "{" META("waiting", "u-2", "70") ",\"spec\":{}}"));
    wait_for(&e, 1, 0, 6);
    CU_ASSERT(find(&e, '+', "waiting") >= 0);
    teardown(&e);
}

static void test_objects_and_nodes(void)
{
    struct env e = {.hold_claims = false};
    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 2);
    raw_chunks(e.nodes, EVENT("ADDED", NODE("n2", "60")) EVENT("MODIFIED", "7")
                            EVENT("ADDED", NODE("n3", "61")));
    raw_chunks(e.namespaces, EVENT("DELETED", "{\"metadata\":{\"name\":\"ns\",\"uid\":\"u-ns\","
                                              "\"resourceVersion\":\"62\"}}"));
    wait_for(&e, 3, 1, 3);
    CU_ASSERT(find(&e, '-', "ns") >= 0);
    raw_chunks(e.nodes, EVENT("DELETED", NODE("n1", "63")));
    wait_for(&e, 2, 1, 3);
    teardown(&e);
}

static void test_late_scheduler(void)
{
    struct env e = {.hold_claims = false};
    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 2);
    e.n_seen = 0;
    e.feed_synced = false;
    say_hello(&e); /* as after its restart: the whole state again, from a fresh FeedBegin */
    wait_for(&e, 1, 1, 2);
    CU_ASSERT(find(&e, '+', "waiting") >= 0);
    CU_ASSERT(find(&e, '+', "ns") >= 0);
    teardown(&e);
}

static bool claims_watched(void *arg)
{
    return ((struct env *)arg)->claims;
}

/* Everything was listed, then the watch of claims ends, and no list of them is answered. */
static void setup_without_claims(struct env *e)
{
    setup(e);
    say_hello(e);
    wait_for(e, 1, 1, 2);
    CU_ASSERT_FATAL(run_until(&e->loop, claims_watched, e));
    e->hold_claims = true;
    raw_close(e->claims);
    CU_ASSERT(run_until(&e->loop, claims_asked, e));
}

static bool in_list_again(void *arg)
{
    struct env *e = arg;
    look(e);
    return find(e, '+', "waiting") >= 0 && find(e, '+', "ns") >= 0;
}

/* Its predecessor may have given devices away that are not seen as taken. */
static void test_a_scheduler_that_comes_while_claims_are_not_watched(void)
{
    struct env e = {.hold_claims = false};
    setup_without_claims(&e);
    for (e.epoch = 1; e.epoch < 3; e.epoch++) {
        e.n_seen = 0;
        e.feed_synced = false;
        say_hello(&e);
        CU_ASSERT(run_until(&e.loop, in_list_again, &e));
        CU_ASSERT(!e.feed_synced);
    }
    e.hold_claims = false;
    raw_json(e.held, 200, LIST(""));
    wait_for(&e, 1, 1, 2);
    teardown(&e);
}

static bool lease_is_written(void *arg)
{
    struct env *e = arg;
    look(e);
    advance(e);
    return e->lease_posts;
}

static bool lease_is_looked_at(void *arg)
{
    struct env *e = arg;
    return lease_is_written(e) || e->lease_gets >= 5;
}

/* It would give away what the last leader has given away. */
static void test_no_lease_while_claims_are_not_watched(void)
{
    struct env e = {.elect = true};
    setup_without_claims(&e);
    e.lease_gets = 0;
    CU_ASSERT(run_until(&e.loop, lease_is_looked_at, &e));
    CU_ASSERT_EQUAL(e.lease_posts, 0);
    e.hold_claims = false;
    raw_json(e.held, 200, LIST(""));
    CU_ASSERT(run_until(&e.loop, lease_is_written, &e));
    teardown(&e);
}

static bool is_raw(const struct env *e, char op, const char *name)
{
    int i = find(e, op, name);
    return i >= 0 && e->seen[i].raw && (op == '-' || e->seen[i].bytes > 0);
}

/* A scheduler with extenders comes to a watcher that has kept nothing but records so far. */
static void test_whole_objects(void)
{
    struct env e = {.hold_claims = false};
    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 2);
    e.n_seen = 0;
    e.feed_synced = false;
    e.pods = e.nodes = NULL;
    say_hello_for(&e, 3);
    wait_for(&e, 1, 1, 4); /* both are listed again; nothing else changes by that */
    CU_ASSERT_EQUAL(e.n_seen, 4);
    CU_ASSERT(is_raw(&e, '+', "n1"));
    CU_ASSERT(is_raw(&e, '+', "running"));
    CU_ASSERT(!e.seen[find(&e, '+', "waiting")].raw);
    CU_ASSERT(run_until(&e.loop, watches_open, &e)); /* the watches are back */

    e.n_seen = 0;
    raw_chunks(e.nodes, EVENT("ADDED", NODE("n2", "60")) EVENT("DELETED", NODE("n1", "61")));
    wait_for(&e, 1, 1, 2);
    CU_ASSERT(is_raw(&e, '+', "n2"));
    CU_ASSERT(is_raw(&e, '-', "n1"));
    e.n_seen = 0;
    raw_chunks(e.pods, EVENT("MODIFIED", POD("waiting", "62", ON("n2"))));
    wait_for(&e, 1, 2, 2);
    CU_ASSERT_EQUAL(e.seen[0].op, '='); /* bound first, its object after that */
    CU_ASSERT(is_raw(&e, '+', "waiting"));
    e.n_seen = 0;
    raw_chunks(e.pods, EVENT("DELETED", POD("waiting", "63", ON("n2"))));
    wait_for(&e, 1, 1, 1);
    CU_ASSERT(is_raw(&e, '-', "waiting"));
    teardown(&e);
}

static void on_page(void *arg, const struct bh_api_reply *r)
{
    bh_buf_add(arg, r->body.p, r->body.n);
    bh_buf_addc(arg, '\n');
}

static bool has_page(void *arg)
{
    return ((struct bh_buf *)arg)->n > 0;
}

static void test_metrics(void)
{
    struct env e = {.hold_claims = false};
    struct bh_buf page = {0};
    struct bh_api_client *c = NULL;
    struct bh_err err = {""};
    char url[64];
    setup(&e);
    say_hello(&e);
    wait_for(&e, 1, 1, 2);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", bh_watcher_metrics_port(e.watcher));
    const struct bh_api_config cfg = {.server = url};
    const struct bh_api_options o = {.qps = 0};
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e.loop, &cfg, &o, &c, &err), 0);
    bh_api_start(c, &(struct bh_api_call){
                        .method = "GET", .path = "/metrics", .on_done = on_page, .arg = &page});
    CU_ASSERT(run_until(&e.loop, has_page, &page));
    static const char *const lines[] = {
        "berth_watcher_bad_objects_total{kind=\"Node\"} 2\n",
        "berth_watcher_objects{kind=\"Pod\"} 3\n",
        "berth_watcher_snapshot_nodes 1\n",
        "berth_watcher_snapshot_pods 1\n",
        "berth_watcher_feed_schedulers 1\n",
        "berth_watcher_feed_objects 2\n",
        "berth_watcher_synced 1\n",
        "rest_client_requests_total{code=\"404\",",
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(lines); i++) {
        if (!strstr(page.p, lines[i]))
            printf("# missing: %s\n", lines[i]);
        CU_ASSERT_PTR_NOT_NULL(strstr(page.p, lines[i]));
    }
    bh_buf_fini(&page);
    bh_api_client_free(c);
    teardown(&e);
}

static void test_second_watcher(void)
{
    struct env e = {.hold_claims = false};
    struct bh_watcher *second = NULL;
    struct bh_err err = {""};
    setup(&e);
    CU_ASSERT_EQUAL(start(&e, &second, &err), -EBUSY);
    CU_ASSERT_PTR_NULL(second);
    CU_ASSERT(*err.msg);
    say_hello(&e);
    wait_for(&e, 1, 1, 2); /* the first one is none the worse */
    teardown(&e);
}

/* ---- what goes wrong --------------------------------------------------------------------------- */

/* Asks the watcher's probes. The page is the caller's. */
static struct bh_buf ask(struct env *e, const char *path)
{
    struct bh_api_client *c = NULL;
    struct bh_buf page = {0};
    struct bh_err err = {""};
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u", bh_watcher_metrics_port(e->watcher));
    const struct bh_api_config cfg = {.server = url};
    const struct bh_api_options o = {.qps = 0};
    CU_ASSERT_EQUAL_FATAL(bh_api_client_new(&e->loop, &cfg, &o, &c, &err), 0);
    bh_api_start(
        c, &(struct bh_api_call){.method = "GET", .path = path, .on_done = on_page, .arg = &page});
    CU_ASSERT(run_until(&e->loop, has_page, &page));
    bh_api_client_free(c);
    return page;
}

static bool is_listing(void *arg)
{
    struct env *e = arg;
    char line[128];
    unsigned listed = 0, all = 0;

    bh_watcher_status(e->watcher, line);
    return sscanf(line, "listing: %u of %u kinds", &listed, &all) == 2 && listed + 1 == all;
}

/* Nodes may not be listed: it is not ready, says which kinds are missing, and goes on when they may. */
static void test_a_list_that_is_refused(void)
{
    struct env e = {.refuse_nodes = true};
    setup(&e);
    say_hello(&e);
    CU_ASSERT(run_until(&e.loop, is_listing, &e));
    CU_ASSERT(!bh_watcher_synced(e.watcher) && bh_watcher_healthy(e.watcher));
    struct bh_buf ready = ask(&e, "/readyz?verbose");
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&ready), "[-]synced failed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&ready), "[+]loop ok"));
    struct bh_buf live = ask(&e, "/livez?verbose"); /* a restart would change nothing */
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&live), "livez check passed"));
    struct bh_buf metrics = ask(&e, "/metrics");
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&metrics), "berth_watcher_synced 0\n"));
    e.refuse_nodes = false;
    wait_for(&e, 1, 1, 2);
    CU_ASSERT(bh_watcher_synced(e.watcher));
    struct bh_buf again = ask(&e, "/readyz?verbose");
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&again), "readyz check passed"));
    bh_buf_fini(&ready);
    bh_buf_fini(&live);
    bh_buf_fini(&metrics);
    bh_buf_fini(&again);
    teardown(&e);
}

/* Each says what is wrong, and leaves neither a socket nor a segment behind. */
static void test_starts_that_fail(void)
{
    static const struct {
        const char *server, *metrics, *says;
    } rows[] = {
        {"http://127.0.0.1:1", "nowhere", "nowhere"},
        {"http://127.0.0.1:1", "127.0.0.1:99999", "99999"},
    };
    struct env e = {.hold_claims = false};
    setup(&e);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        BH_CLEANUP(bh_freep) char *dir = bh_asprintf("%s/no%zu", bh_test_tmpdir(), i);
        BH_CLEANUP(bh_freep) char *socket = bh_asprintf("%s/watcher.sock", dir);
        struct bh_api_config api = {.server = bh_strdup(rows[i].server)};
        const struct bh_watcher_options o = {.api = &api,
                                             .runtime_dir = dir,
                                             .metrics_address = rows[i].metrics,
                                             .user_agent = "berth-watcher/test"};
        const struct bh_watcher_callbacks cb = {on_synced, on_failed, &e};
        struct bh_watcher *w = NULL;
        struct bh_err err = {""};
        struct env other = {.dir = dir};
        CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0750), 0);
        snprintf(other.shm, sizeof(other.shm), "berth-%016llx-",
                 (unsigned long long)bh_snap_instance(dir));
        CU_ASSERT(bh_watcher_new(&e.loop, &o, &cb, &w, &err) < 0);
        CU_ASSERT_PTR_NULL(w);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, rows[i].says));
        if (!strstr(err.msg, rows[i].says))
            printf("# %s\n", err.msg);
        CU_ASSERT_EQUAL(access(socket, F_OK), -1);
        CU_ASSERT_EQUAL(shm_files(&other), 0);
        free(api.server);
    }
    say_hello(&e);
    wait_for(&e, 1, 1, 2);
    teardown(&e);
}

BH_TESTS("watcher/watcher",
         {"nodes and assigned pods in the snapshot, the rest over the bus", test_initial_state},
         {"groups of pods, in one form", test_groups_of_pods},
         {"groups of plugin Coscheduling, as the API server has them", test_groups_of_the_plugin},
         {"forbidden groups of the plugin hold nothing else up",
          test_forbidden_groups_of_the_plugin_hold_nothing_else_up},
         {"synced only when every kind has been listed", test_synced_means_everything},
         {"pods: pending, bound, terminated, deleted, replaced", test_pod_transitions},
         {"nodes and other objects come and go; broken ones are skipped", test_objects_and_nodes},
         {"a scheduler that says hello again gets everything again", test_late_scheduler},
         {"a scheduler that comes while claims are not watched waits for them",
          test_a_scheduler_that_comes_while_claims_are_not_watched},
         {"no lease is taken while claims are not watched",
          test_no_lease_while_claims_are_not_watched},
         {"whole objects for a scheduler that wants them", test_whole_objects},
         {"metrics tell what was read, kept and skipped", test_metrics},
         {"a second watcher in the same directory is refused", test_second_watcher},
         {"a list that is refused", test_a_list_that_is_refused},
         {"starts that fail", test_starts_that_fail})
