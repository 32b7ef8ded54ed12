/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_control.c - the control socket: questions, rubbish, askers that
 * do not read
 */
#include "common/bus/bus_int.h"
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/daemon/fixture.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- a plugin that lets every pod wait --------------------------------------------------------- */

BH_STATUS_CONST(please_wait, BH_WAIT, "TestPermit", "");

static const struct bh_status *wait_a_minute(struct bh_call *c, bh_sym node, int64_t *ret)
{
    (void)c, (void)node;
    *ret = INT64_C(60000000000);
    return &please_wait;
}

static const struct bh_plugin plugin = {BH_PLUGIN_HEAD("TestPermit"), .permit = wait_a_minute};
const struct bh_plugin *const bh_plugins_extra[] = {&plugin, NULL};

/* ---- who asks ---------------------------------------------------------------------------------- */

struct asker {
    struct bh_bus *bus;
    struct bh_arena a;
    uint64_t id;
};

static void asker_open(struct fixture *f, struct asker *k)
{
    static unsigned n;
    struct bh_err err = {0};
    char endpoint[128], id[16];

    *k = (struct asker){.id = 0};
    bh_arena_init(&k->a, 0);
    snprintf(id, sizeof(id), "asker-%u", n++);
    CU_ASSERT_FATAL(bh_bus_endpoint(f->dir, "control", endpoint, &err) == 0);
    CU_ASSERT_FATAL(bh_bus_open(BH_BUS_DEALER_CONNECT, endpoint, id, &k->bus, &err) == 0);
}

static void asker_close(struct asker *k)
{
    bh_bus_close(k->bus);
    bh_arena_fini(&k->a);
}

static bool receive(struct asker *k, const Berth__ControlReply **ret)
{
    Berth__Envelope *e = NULL;

    bh_arena_reset(&k->a);
    if (bh_bus_recv(k->bus, &k->a, NULL, &e) != BH_BUS_OK)
        return false;
    CU_ASSERT_FATAL(e->control_reply != NULL);
    *ret = e->control_reply;
    return true;
}

static const Berth__ControlReply *await_reply(struct fixture *f, struct asker *k)
{
    const Berth__ControlReply *r = NULL;

    SPIN(f, receive(k, &r));
    return r;
}

static const Berth__ControlReply *ask(struct fixture *f, struct asker *k, Berth__ControlRequest *q)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    const Berth__ControlReply *r;

    q->has_id = q->has_what = true;
    q->id = ++k->id;
    e.control = q;
    CU_ASSERT_FATAL(bh_bus_send(k->bus, NULL, &e) == BH_BUS_OK);
    r = await_reply(f, k);
    CU_ASSERT_EQUAL(r->id, k->id);
    CU_ASSERT_PTR_NULL(r->error);
    return r;
}

static const Berth__ControlStatus *ask_status(struct fixture *f, struct asker *k)
{
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    const Berth__ControlReply *r = ask(f, k, &q);

    CU_ASSERT_FATAL(r->status != NULL);
    return r->status;
}

static const Berth__QueuePod *ask_pod(struct fixture *f, struct asker *k, const char *uid)
{
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    const Berth__ControlReply *r;

    q.what = BERTH__CONTROL_WHAT__CONTROL_POD;
    q.uid = (char *)(uintptr_t)uid;
    r = ask(f, k, &q);
    CU_ASSERT_FATAL(r->n_pod <= 1);
    return r->n_pod ? r->pod[0] : NULL;
}

static const Berth__ControlReply *ask_page(struct fixture *f, struct asker *k, const char *ns,
                                           uint32_t places, uint64_t cursor, uint32_t limit)
{
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;

    q.what = BERTH__CONTROL_WHAT__CONTROL_QUEUE;
    q.namespace_ = (char *)(uintptr_t)ns;
    q.has_cursor = q.has_limit = q.has_places = true;
    q.cursor = cursor;
    q.limit = limit;
    q.places = places;
    return ask(f, k, &q);
}

static void test_a_pod_at_permit_tells_for_whom_it_waits(void)
{
    const uint32_t waiting = 1u << BERTH__QUEUE_PLACE__QUEUE_WAITING;
    struct fixture f;
    struct asker k;
    const Berth__QueuePod *p;

    setup_with(&f, "profiles:\n- plugins: {permit: {enabled: [{name: TestPermit}]}}\n");
    go(&f);
    asker_open(&f, &k);
    add_pod(&f, "p", "1");
    SPIN(&f, place(&f, "p") == BH_Q_WAITING);
    const Berth__ControlReply *page = ask_page(&f, &k, NULL, waiting, 0, 10);
    CU_ASSERT_FATAL(page->n_pod == 1);
    p = page->pod[0];
    CU_ASSERT_STRING_EQUAL(p->node, "n1");
    CU_ASSERT_STRING_EQUAL(p->message, "waiting on permit");
    CU_ASSERT_FATAL(p->n_plugin == 1);
    CU_ASSERT_STRING_EQUAL(p->plugin[0], "TestPermit");
    const int64_t left = p->permit_ns - bh_sched_now(&f.d);
    CU_ASSERT(left > 0 && left <= INT64_C(60000000000));
    asker_close(&k);
    teardown(&f);
}

static void test_status_tells_what_it_waits_for(void)
{
    struct fixture f;
    struct asker k;
    const Berth__ControlStatus *s;

    setup(&f);
    asker_open(&f, &k);
    s = ask_status(&f, &k); /* nothing is there yet: it answers all the same */
    CU_ASSERT(!s->deciding && !s->snapshot_ready && !s->feed_synced);
    CU_ASSERT(strlen(s->trouble) > 0);
    CU_ASSERT(s->epoch == f.d.epoch && s->started_ns <= s->now_ns);
    CU_ASSERT_FATAL(s->n_profile == 1);
    CU_ASSERT_STRING_EQUAL(s->profile[0], "default-scheduler");

    snap_node(&f, "n1", "4");
    snap_pod(&f, "there", "1", "n1", "");
    go(&f);
    add_pod(&f, "big", "100");
    (void)await(&f, &f.b[0], BERTH__WORK_KIND__WORK_PATCH_STATUS, "big");
    s = ask_status(&f, &k);
    CU_ASSERT(s->deciding && s->leading && s->snapshot_ready && s->feed_synced);
    CU_ASSERT_STRING_EQUAL(s->trouble, "");
    CU_ASSERT_EQUAL(s->incarnation, f.incarnation);
    CU_ASSERT_EQUAL(s->position, s->head);
    CU_ASSERT(s->heartbeat_age_ns > 0 && s->heartbeat_age_ns < SPIN_NS);
    CU_ASSERT(s->nodes == 1 && s->pods == 1 && s->unschedulable == 1 && s->binders == 1);
    asker_close(&k);
    teardown(&f);
}

/* Who has nothing to do says so: its loop sleeps then. */
static void test_a_turn_without_a_question_is_no_work(void)
{
    struct fixture f;
    unsigned idle = 0;

    setup(&f);
    go(&f);
    settle(&f);
    for (unsigned i = 0; i < 1000; i++)
        idle += bh_sched_daemon_turn(&f.d) == 0;
    CU_ASSERT(idle > 0);
    teardown(&f);
}

static void test_a_pod_is_followed_through_its_places(void)
{
    struct fixture f;
    struct asker k;
    const Berth__QueuePod *p;

    setup(&f);
    snap_node(&f, "n1", "4");
    asker_open(&f, &k);
    go(&f);
    CU_ASSERT_PTR_NULL(ask_pod(&f, &k, "u-nobody"));
    add_pod(&f, "big", "100");
    struct item *patch = await(&f, &f.b[0], BERTH__WORK_KIND__WORK_PATCH_STATUS, "big");
    p = ask_pod(&f, &k, "u-big");
    CU_ASSERT_FATAL(p != NULL);
    CU_ASSERT_STRING_EQUAL(p->namespace_, "ns");
    CU_ASSERT_STRING_EQUAL(p->profile, "default-scheduler");
    CU_ASSERT(p->place == BERTH__QUEUE_PLACE__QUEUE_UNSCHEDULABLE && p->attempts == 1);
    CU_ASSERT(p->first_attempt_ns > 0 && p->added_ns >= p->first_attempt_ns && !p->backoff_ns);
    CU_ASSERT_FATAL(p->n_plugin == 1);
    CU_ASSERT_STRING_EQUAL(p->plugin[0], "NodeResourcesFit");
    CU_ASSERT_STRING_EQUAL(p->reason, "Unschedulable");
    CU_ASSERT_STRING_EQUAL(p->message, patch->message); /* what users read */
    CU_ASSERT_PTR_NULL(p->node);

    add_pod(&f, "small", "1");
    (void)await(&f, &f.b[0], BERTH__WORK_KIND__WORK_BIND, "small");
    p = ask_pod(&f, &k, "u-small");
    CU_ASSERT_FATAL(p != NULL);
    CU_ASSERT(p->place == BERTH__QUEUE_PLACE__QUEUE_BINDING);
    CU_ASSERT_STRING_EQUAL(p->node, "n1");
    CU_ASSERT_STRING_EQUAL(p->binder, "host/x");
    CU_ASSERT(p->bind_ns > 0);
    CU_ASSERT_PTR_NULL(p->message);

    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED,
             pod(&f, "gated", "1", "\"schedulingGates\":[{\"name\":\"hold\"}],", ""));
    settle(&f);
    p = ask_pod(&f, &k, "u-gated");
    CU_ASSERT_FATAL(p != NULL);
    CU_ASSERT(p->place == BERTH__QUEUE_PLACE__QUEUE_GATED && p->attempts == 0);
    CU_ASSERT_STRING_EQUAL(p->plugin[0], "SchedulingGates");
    CU_ASSERT_STRING_EQUAL(p->message, "waiting for scheduling gates: [hold]");
    asker_close(&k);
    teardown(&f);
}

static void test_the_queue_comes_in_pages(void)
{
    struct fixture f;
    struct asker k;
    const Berth__ControlReply *r;
    unsigned seen = 0, pages = 0;
    uint64_t cursor = 0;

    setup(&f);
    snap_node(&f, "n1", "1");
    asker_open(&f, &k);
    go(&f);
    r = ask_page(&f, &k, NULL, 0, 0, 10);
    CU_ASSERT(r->n_pod == 0 && r->cursor == 0 && !r->restart);
    for (unsigned i = 0; i < 30; i++)
        add_pod(&f, bh_arena_printf(&f.a, "p%u", i), "2");
    settle(&f);
    do {
        r = ask_page(&f, &k, "ns", 0, cursor, 7);
        CU_ASSERT_FATAL(r->n_pod <= 7 && !r->restart);
        seen += (unsigned)r->n_pod;
        cursor = r->cursor;
        pages++;
    } while (cursor);
    CU_ASSERT(seen == 30 && pages >= 5);
    r = ask_page(&f, &k, "other", 0, 0, 7);
    CU_ASSERT(r->n_pod == 0 && r->cursor == 0);
    r = ask_page(&f, &k, NULL, 1u << BERTH__QUEUE_PLACE__QUEUE_GATED, 0, 7);
    CU_ASSERT(r->n_pod == 0 && r->cursor == 0);
    r = ask_page(&f, &k, NULL, 1u << BERTH__QUEUE_PLACE__QUEUE_UNSCHEDULABLE, 0, 256);
    CU_ASSERT_EQUAL(r->n_pod, 30);
    r = ask_page(&f, &k, NULL, 0, UINT64_C(12345) << 32 | 3, 7); /* of no table */
    CU_ASSERT(r->n_pod == 0 && r->cursor == 0 && r->restart);
    asker_close(&k);
    teardown(&f);
}

static void test_the_configuration_is_told_without_keys(void)
{
    static const char text[] = "apiVersion: kubescheduler.config.k8s.io/v1\n"
                               "kind: KubeSchedulerConfiguration\n"
                               "profiles: [{schedulerName: mine}]\n"
                               "extenders:\n- urlPrefix: https://x\n  filterVerb: f\n  tlsConfig:\n"
                               "    serverName: x\n    keyData: c2VjcmV0\n    certData: Y2VydA==\n";
    struct fixture f;
    struct asker k;
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    const Berth__ControlConfig *c;
    struct bh_control *other = NULL;
    struct bh_config_report report;
    struct bh_sched_config *config = NULL;
    struct bh_err err = {0};

    setup(&f);
    asker_open(&f, &k);
    q.what = BERTH__CONTROL_WHAT__CONTROL_CONFIG;
    c = ask(&f, &k, &q)->config;
    CU_ASSERT_FATAL(c != NULL);
    CU_ASSERT_STRING_EQUAL(c->path, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(c->in_force, "schedulerName: default-scheduler"));
    CU_ASSERT(c->tie_break_first);
    CU_ASSERT_EQUAL(bh_control_open(&f.d, &other, &err), -EADDRINUSE); /* the socket is served */

    bh_config_report_init(&report);
    CU_ASSERT_FATAL(bh_sched_config_read(text, sizeof(text) - 1, &config, &report) == 0);
    bh_control_close(f.d.control);
    f.d.o.config = config;
    f.d.o.config_path = "/etc/mine.yaml";
    CU_ASSERT_FATAL(bh_control_open(&f.d, &f.d.control, &err) == 0);
    asker_close(&k); /* its connection is to the old socket */
    asker_open(&f, &k);
    c = ask(&f, &k, &q)->config;
    CU_ASSERT_FATAL(c != NULL && c->in_force != NULL);
    CU_ASSERT_STRING_EQUAL(c->path, "/etc/mine.yaml");
    CU_ASSERT_PTR_NOT_NULL(strstr(c->in_force, "schedulerName: mine"));
    CU_ASSERT_PTR_NOT_NULL(strstr(c->in_force, "serverName: x"));
    CU_ASSERT_PTR_NULL(strstr(c->in_force, "c2VjcmV0"));
    CU_ASSERT_PTR_NULL(strstr(c->in_force, "Y2VydA"));
    bh_config_report_fini(&report);
    f.d.o.config = f.config;
    bh_sched_config_free(config);
    asker_close(&k);
    teardown(&f);
}

/* ---- groups ------------------------------------------------------------------------------------ */

static void feed_group(struct fixture *f, enum bh_kind kind, const ProtobufCMessageDescriptor *d,
                       const char *spec)
{
    static char ns[] = "ns", name[] = "g";
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    struct bh_buf bytes = {0};

    bh_pb_pack(&bytes, decode(f, d,
                              bh_arena_printf(&f->a,
                                              "{\"metadata\":{\"name\":\"g\",\"namespace\":"
                                              "\"ns\",\"uid\":\"u-g\"},\"spec\":{%s}}",
                                              spec)));
    c.has_op = c.has_kind = c.has_log_pos = c.has_object = true;
    c.op = BERTH__CHANGE_OP__CHANGE_ADDED;
    c.kind = kind;
    c.namespace_ = ns;
    c.name = name;
    c.log_pos = bh_snap_head(f->snap);
    c.object = (ProtobufCBinaryData){bytes.n, (uint8_t *)bytes.p};
    feed_batch(f, &c, false);
    bh_buf_fini(&bytes);
}

static void expect_group(struct fixture *f, struct asker *k, bool found, uint32_t min_count)
{
    const Berth__QueuePod *p = ask_pod(f, k, "u-m");

    CU_ASSERT_FATAL(p != NULL && p->group != NULL);
    CU_ASSERT_STRING_EQUAL(p->group->name, "g");
    CU_ASSERT_EQUAL(p->group->found, found);
    CU_ASSERT_EQUAL(p->group->min_count, min_count);
    CU_ASSERT(p->group->members == 1 && p->group->scheduled == 0);
}

static void test_a_member_of_a_gang_tells_its_group(void)
{
    static const struct bh_opt_usage usage = {.program = "prog"};
    char *argv[] = {(char[]){"prog"},
                    (char[]){"--feature-gates=GenericWorkload=true,GangScheduling=true"}, NULL};
    struct bh_kube_flags flags;
    struct bh_err err = {0};
    struct fixture f;
    struct asker k;
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;

    setup(&f);
    scheduler_stop(&f);
    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_parse(&flags, NULL, &usage, 2, argv, &err), 0);
    bh_sched_config_apply_flags(f.config, &flags);
    scheduler_start(&f);
    snap_node(&f, "n1", "4");
    go(&f);
    asker_open(&f, &k);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED,
             pod(&f, "m", "1", "\"schedulingGroup\":{\"podGroupName\":\"g\"},", ""));
    settle(&f);
    expect_group(&f, &k, false, 0);
    feed_group(&f, BH_KIND_PODGROUP, &k8s__pod_group__descriptor,
               "\"schedulingPolicy\":{\"gang\":{\"minCount\":3}}");
    settle(&f);
    expect_group(&f, &k, true, 3);
    q.what = BERTH__CONTROL_WHAT__CONTROL_CONFIG;
    const char *gates = ask(&f, &k, &q)->config->feature_gates;
    CU_ASSERT_PTR_NOT_NULL(strstr(gates, "GenericWorkload=true"));
    CU_ASSERT_PTR_NOT_NULL(strstr(gates, ",")); /* those that differ, and no others */
    CU_ASSERT_PTR_NULL(strstr(gates, "SchedulerQueueingHints"));
    asker_close(&k);
    teardown(&f);
    bh_kube_flags_free(&flags);
}

static void test_a_member_by_label_tells_its_group(void)
{
    struct fixture f;
    struct asker k;

    setup_with(&f,
               "profiles:\n- plugins: {multiPoint: {enabled: [{name: Coscheduling}]},\n"
               "    queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: \"*\"}]}}\n");
    go(&f);
    asker_open(&f, &k);
    feed_pod(&f, BERTH__CHANGE_OP__CHANGE_ADDED,
             pod(&f, "m", "1", "", ",\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}"));
    settle(&f);
    expect_group(&f, &k, false, 0);
    feed_group(&f, BH_KIND_COSCHEDULING_PODGROUP, &k8s__coscheduling_pod_group__descriptor,
               "\"minMember\":2");
    settle(&f);
    expect_group(&f, &k, true, 2);
    asker_close(&k);
    teardown(&f);
}

static void write_config(const char *path, const char *more)
{
    char text[200];

    snprintf(text, sizeof(text),
             "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n%s",
             more);
    CU_ASSERT_FATAL(bh_write_file(path, text, strlen(text), 0600) == 0);
}

static void test_the_file_is_read_again(void)
{
    struct fixture f;
    struct asker k;
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    struct bh_sched_config *c = NULL;
    struct bh_buf now = {0};
    struct bh_err err = {0};
    char path[160];

    setup(&f);
    CU_ASSERT_EQUAL(bh_sched_reload(&f.d, &err), -ENOENT); /* there is no file */
    snprintf(path, sizeof(path), "%s/config.yaml", f.dir);
    write_config(path, "");
    CU_ASSERT_FATAL(bh_sched_config_load(path, &c, &err) == 0);
    bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, true, &now);
    f.d.o.config_path = path;
    f.d.o.config_text = bh_buf_str(&now);
    CU_ASSERT_EQUAL(bh_sched_reload(&f.d, &err), 0);
    write_config(path, "podInitialBackoffSeconds: 0\n");
    CU_ASSERT_EQUAL(bh_sched_reload(&f.d, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "podInitialBackoffSeconds: Invalid value: 0"));
    CU_ASSERT_FALSE(f.d.stopping);
    write_config(path, "podInitialBackoffSeconds: 2\n");
    asker_open(&f, &k);
    q.what = BERTH__CONTROL_WHAT__CONTROL_RELOAD;
    CU_ASSERT(ask(&f, &k, &q)->restart);
    CU_ASSERT(f.d.stopping && f.d.reloading);
    unlink(path);
    bh_buf_fini(&now);
    bh_sched_config_free(c);
    asker_close(&k);
    teardown(&f);
}

/* Who asked hears of it, although the scheduler leaves at once. */
static void test_the_answer_leaves_before_the_scheduler(void)
{
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    q.has_id = q.has_what = true;
    q.what = BERTH__CONTROL_WHAT__CONTROL_RELOAD;
    e.control = &q;
    for (unsigned i = 0; i < 20; i++) {
        struct fixture f;
        struct asker k;
        char path[160];

        setup(&f);
        snprintf(path, sizeof(path), "%s/config.yaml", f.dir);
        write_config(path, "podInitialBackoffSeconds: 2\n");
        f.d.o.config_path = path;
        f.d.o.config_text = "another";
        asker_open(&f, &k);
        (void)ask_status(&f, &k);
        CU_ASSERT_FATAL(bh_bus_send(k.bus, NULL, &e) == BH_BUS_OK);
        SPIN(&f, f.d.stopping);
        scheduler_stop(&f);
        CU_ASSERT(await_reply(&f, &k)->restart);
        asker_close(&k);
        teardown(&f);
    }
}

static void send_raw(struct asker *k, const void *p, size_t n)
{
    CU_ASSERT_FATAL(bh_bus_send_bytes(k->bus, NULL, p, n) == BH_BUS_OK);
}

/* Nothing of this kills the scheduler or keeps it from answering others. */
static void test_rubbish_is_answered_with_an_error(void)
{
    static char big[BH_BUS_SERVICE_BYTES + 1];
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__Heartbeat h = BERTH__HEARTBEAT__INIT;
    struct fixture f;
    struct asker k, good;
    const Berth__ControlReply *r;
    struct bh_control_stats s;

    setup(&f);
    asker_open(&f, &k);
    asker_open(&f, &good);
    send_raw(&k, "", 0);
    r = await_reply(&f, &k);
    CU_ASSERT(r->id == 0 && r->error != NULL);
    send_raw(&k, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    CU_ASSERT_PTR_NOT_NULL(await_reply(&f, &k)->error);
    h.has_progress = true;
    e.heartbeat = &h; /* a fine message, and no question */
    CU_ASSERT(bh_bus_send(k.bus, NULL, &e) == BH_BUS_OK);
    CU_ASSERT_PTR_NOT_NULL(await_reply(&f, &k)->error);
    bh_control_stats(f.d.control, &s);
    CU_ASSERT(s.malformed == 3 && s.answered == 0);

    send_raw(&k, big, sizeof(big)); /* ends this connection, not the others */
    CU_ASSERT_EQUAL(ask_status(&f, &good)->epoch, f.d.epoch);
    CU_ASSERT_EQUAL(ask_status(&f, &k)->epoch, f.d.epoch); /* it connected again */
    bh_control_stats(f.d.control, &s);
    CU_ASSERT(s.malformed == 3 && s.answered == 2);
    asker_close(&k);
    asker_close(&good);
    teardown(&f);
}

/* A plain socket that does not say who it is, and one that says nothing. */
static void test_strangers_on_the_socket(void)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct fixture f;
    struct asker k;
    int fd[2];

    setup(&f);
    asker_open(&f, &k);
    const char *path = bh_arena_printf(&f.a, "%s/control.sock", f.dir);
    CU_ASSERT_FATAL(strlen(path) < sizeof(sa.sun_path));
    memcpy(sa.sun_path, path, strlen(path) + 1);
    for (int i = 0; i < 2; i++) {
        fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        CU_ASSERT_FATAL(connect(fd[i], (struct sockaddr *)&sa, sizeof(sa)) == 0);
    }
    CU_ASSERT(send(fd[0], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL) == 18);
    CU_ASSERT_EQUAL(ask_status(&f, &k)->epoch, f.d.epoch);
    for (int i = 0; i < 2; i++)
        close(fd[i]);
    CU_ASSERT_EQUAL(ask_status(&f, &k)->epoch, f.d.epoch);
    asker_close(&k);
    teardown(&f);
}

/* Far more questions than answers are read: the surplus is lost, memory is not. */
static void test_who_does_not_read_loses_answers(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    struct fixture f;
    struct asker deaf, k;
    struct bh_control_stats s;
    unsigned sent = 0;

    setup(&f);
    snap_node(&f, "n1", "1");
    asker_open(&f, &deaf);
    asker_open(&f, &k);
    go(&f);
    for (unsigned i = 0; i < 200; i++)
        add_pod(&f, bh_arena_printf(&f.a, "p%u", i), "2");
    settle(&f);
    q.has_id = q.has_what = q.has_limit = true;
    q.what = BERTH__CONTROL_WHAT__CONTROL_QUEUE;
    q.limit = BH_BUS_CONTROL_PODS;
    e.control = &q;
    for (s.dropped = 0; s.dropped == 0 && sent < 100000;) {
        if (bh_bus_send(deaf.bus, NULL, &e) == BH_BUS_OK)
            sent++;
        one_turn(&f);
        bh_control_stats(f.d.control, &s);
    }
    CU_ASSERT(s.dropped > 0);
    CU_ASSERT_EQUAL(ask_status(&f, &k)->unschedulable, 200);
    asker_close(&deaf); /* with questions still in the socket */
    CU_ASSERT_EQUAL(ask_status(&f, &k)->unschedulable, 200);
    asker_close(&k);
    teardown(&f);
}

/* However many questions wait: what the answers took is a share of the time that passed. */
static void test_answers_take_their_share_and_no_more(void)
{
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    struct bh_control_stats first, s;
    struct fixture f;
    struct asker k;
    uint64_t began;

    setup(&f);
    asker_open(&f, &k);
    (void)ask_status(&f, &k); /* connected */
    q.has_id = q.has_what = true;
    e.control = &q;
    bh_control_stats(f.d.control, &first);
    s = first;
    began = bh_mono_ns();
    for (uint64_t busy = 0; s.answered < first.answered + 20; busy = s.busy_ns - first.busy_ns) {
        const Berth__ControlReply *r;
        CU_ASSERT(bh_mono_ns() - began >= busy);
        (void)bh_bus_send(k.bus, NULL, &e);
        uv_run(f.d.loop, UV_RUN_NOWAIT);   /* tells that there is something */
        if (bh_control_serve(f.d.control)) /* not before the pause for those before is over */
            CU_ASSERT(bh_mono_ns() - began >= busy * BH_CONTROL_SHARE);
        while (receive(&k, &r))
            ;
        bh_control_stats(f.d.control, &s);
    }
    asker_close(&k);
    teardown(&f);
}

BH_TESTS("scheduler/control",
         {"the answer leaves before the scheduler", test_the_answer_leaves_before_the_scheduler},
         {"a turn without a question is no work", test_a_turn_without_a_question_is_no_work},
         {"status tells what it waits for", test_status_tells_what_it_waits_for},
         {"a pod is followed through its places", test_a_pod_is_followed_through_its_places},
         {"a pod at Permit tells for whom it waits", test_a_pod_at_permit_tells_for_whom_it_waits},
         {"a member of a gang tells its group", test_a_member_of_a_gang_tells_its_group},
         {"a member by label tells its group", test_a_member_by_label_tells_its_group},
         {"the queue comes in pages", test_the_queue_comes_in_pages},
         {"the configuration is told without keys", test_the_configuration_is_told_without_keys},
         {"the file is read again", test_the_file_is_read_again},
         {"rubbish is answered with an error", test_rubbish_is_answered_with_an_error},
         {"strangers on the socket", test_strangers_on_the_socket},
         {"who does not read loses answers", test_who_does_not_read_loses_answers},
         {"answers take their share and no more", test_answers_take_their_share_and_no_more})
