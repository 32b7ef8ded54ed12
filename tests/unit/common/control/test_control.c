/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/control/test_control.c - who asks the running scheduler: pages, errors, silence,
 * schedulers that come and go
 *
 * The scheduler is a thread that answers as the test says.
 */
#include "common/control/asker.h"
#include "tests/unit/common/control/played.h"

#include <errno.h>

#define MS UINT64_C(1000000)

static Berth__QueuePod pods[4], *list[4];
static char dir[108];

/* ---- answers ----------------------------------------------------------------------------------- */

static bool tells_status(struct played *s, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    static Berth__ControlStatus status;

    (void)s, (void)q;
    berth__control_status__init(&status);
    status.has_epoch = true;
    status.epoch = 1000 + s->asked;
    r->status = &status;
    return true;
}

static bool refuses(struct played *s, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    static char why[] = "no such question";

    (void)s, (void)q;
    r->error = why;
    return true;
}

static bool is_silent(struct played *s, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    (void)s, (void)q, (void)r;
    return false;
}

/* Sends an answer to somebody else's question first. */
static bool mixes_up(struct played *s, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    Berth__Envelope out = BERTH__ENVELOPE__INIT;
    Berth__ControlReply other = BERTH__CONTROL_REPLY__INIT;
    static char why[] = "of another question";

    other.has_id = true;
    other.id = q->id + 17;
    other.error = why;
    out.control_reply = &other;
    if (s->asked)
        (void)bh_bus_send(s->bus, &s->last, &out);
    return tells_status(s, q, r);
}

static void put_pod(Berth__ControlReply *r, const char *uid)
{
    Berth__QueuePod *p = &pods[r->n_pod];

    berth__queue_pod__init(p);
    p->namespace_ = (char *)(uintptr_t) "ns";
    p->name = p->uid = (char *)(uintptr_t)uid;
    p->has_place = true;
    p->place = BERTH__QUEUE_PLACE__QUEUE_ACTIVE;
    list[r->n_pod++] = p;
    r->pod = list;
}

/* Three pages; after the second the table was made anew, and it begins again. */
static bool pages(struct played *s, const Berth__ControlRequest *q, Berth__ControlReply *r)
{
    static const char *const uids[][2] = {{"a", "b"}, {"c", "b"}, {"b", "a"}, {"d", "c"}};
    static const uint64_t cursors[] = {7, 0, 9, 0};
    const unsigned i = s->asked;

    CU_ASSERT_FATAL(i < 4);
    CU_ASSERT(q->what == BERTH__CONTROL_WHAT__CONTROL_QUEUE && q->limit == BH_BUS_CONTROL_PODS);
    CU_ASSERT(bh_streq(q->namespace_, "ns") && q->places == 6);
    CU_ASSERT(q->cursor == (i ? cursors[i - 1] : 0));
    put_pod(r, uids[i][0]);
    put_pod(r, uids[i][1]);
    r->has_cursor = r->has_restart = true;
    r->cursor = cursors[i];
    r->restart = i == 1;
    return true;
}

static bool never_stands_still(struct played *s, const Berth__ControlRequest *q,
                               Berth__ControlReply *r)
{
    (void)s, (void)q;
    put_pod(r, "a");
    r->has_cursor = r->has_restart = r->restart = true;
    return true;
}

/* ---- one who waits ----------------------------------------------------------------------------- */

static void test_nobody_to_ask(void)
{
    struct bh_err err = {""};
    struct bh_ask k;

    played_dir(dir);
    CU_ASSERT_EQUAL(bh_ask_open(&k, dir, &err), -ENOENT);
    CU_ASSERT(strncmp(err.msg, "no berth-scheduler runs in \"", 28) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "(control.sock: No such file or directory)"));
    bh_ask_close(&k);
    CU_ASSERT(bh_ask_probe("/nonexistent", "feed", "berth-watcher", &err) == -ENOENT);
    CU_ASSERT(strncmp(err.msg, "no berth-watcher runs in \"/nonexistent\"", 39) == 0);
}

static void test_an_answer(void)
{
    const Berth__ControlReply *r = NULL;
    struct bh_err err = {""};
    struct played s;
    struct bh_ask k;

    played_dir(dir);
    played_start(&s, dir, mixes_up);
    CU_ASSERT_FATAL(bh_ask_open(&k, dir, &err) == 0);
    for (unsigned i = 0; i < 3; i++) {
        CU_ASSERT_FATAL(bh_ask_for(&k, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, &err) == 0);
        CU_ASSERT_FATAL(r->status != NULL); /* not the other's answer */
        CU_ASSERT_EQUAL(r->status->epoch, 1000 + i);
    }
    bh_ask_close(&k);
    played_stop(&s);
}

static void test_no_answer_and_a_refusal(void)
{
    const Berth__ControlReply *r = NULL;
    struct bh_err err = {""};
    struct played s;
    struct bh_ask k;

    played_dir(dir);
    played_start(&s, dir, refuses);
    CU_ASSERT_FATAL(bh_ask_open(&k, dir, &err) == 0);
    CU_ASSERT_EQUAL(bh_ask_for(&k, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, &err), -EPROTO);
    CU_ASSERT_STRING_EQUAL(err.msg, "the scheduler answered: no such question");
    bh_ask_close(&k);
    played_stop(&s);

    played_dir(dir);
    played_start(&s, dir, is_silent);
    CU_ASSERT_FATAL(bh_ask_open(&k, dir, &err) == 0);
    k.timeout_ns = 50 * MS;
    CU_ASSERT_EQUAL(bh_ask_for(&k, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, &err), -ETIMEDOUT);
    CU_ASSERT(strncmp(err.msg, "the scheduler did not answer within 0.05 s", 42) == 0);
    bh_ask_close(&k);
    played_stop(&s);
}

static void note_uid(void *arg, const Berth__QueuePod *p)
{
    strncat(arg, p->uid, 1);
}

static void test_a_listing_names_each_pod_once(void)
{
    struct bh_err err = {""};
    char seen[16] = "";
    struct played s;
    struct bh_ask k;

    played_dir(dir);
    played_start(&s, dir, pages);
    CU_ASSERT_FATAL(bh_ask_open(&k, dir, &err) == 0);
    CU_ASSERT_EQUAL(bh_ask_queue(&k, "ns", 6, note_uid, seen, &err), 0);
    CU_ASSERT_STRING_EQUAL(seen, "abcd");
    bh_ask_close(&k);
    played_stop(&s);
    CU_ASSERT_EQUAL(s.asked, 4); /* counted behind the answer */
}

static void test_a_queue_that_never_stands_still_is_an_error(void)
{
    struct bh_err err = {""};
    char seen[16] = "";
    struct played s;
    struct bh_ask k;

    played_dir(dir);
    played_start(&s, dir, never_stands_still);
    CU_ASSERT_FATAL(bh_ask_open(&k, dir, &err) == 0);
    CU_ASSERT_EQUAL(bh_ask_queue(&k, NULL, 0, note_uid, seen, &err), -EAGAIN);
    CU_ASSERT_STRING_EQUAL(err.msg, "the queue changes faster than it can be listed");
    CU_ASSERT_STRING_EQUAL(seen, "a");
    bh_ask_close(&k);
    played_stop(&s);
}

/* ---- one with a loop --------------------------------------------------------------------------- */

struct got {
    unsigned n;
    uint64_t epoch; /* 0: no answer */
    char why[128];
};

static void on_answer(void *arg, const Berth__ControlReply *r, const char *why)
{
    struct got *g = arg;

    CU_ASSERT(!r == (why != NULL));
    g->n++;
    g->epoch = r && r->status ? r->status->epoch : 0;
    snprintf(g->why, sizeof(g->why), "%s", why ? why : "");
}

static void run_until(uv_loop_t *loop, const struct got *g, unsigned n)
{
    const uint64_t end = bh_mono_ns() + 60000 * MS;

    while (g->n < n && bh_mono_ns() < end)
        uv_run(loop, UV_RUN_ONCE);
    CU_ASSERT_EQUAL_FATAL(g->n, n);
}

static void test_answers_come_to_their_questions(void)
{
    struct played s;
    struct got a = {0}, b = {0};
    uv_loop_t loop;

    played_dir(dir);
    uv_loop_init(&loop);
    played_start(&s, dir, mixes_up);
    struct bh_asker *c = bh_asker_new(&loop, dir);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &a);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &b);
    CU_ASSERT(a.n == 0 && b.n == 0); /* from the loop */
    run_until(&loop, &a, 1);
    run_until(&loop, &b, 1);
    CU_ASSERT(a.epoch == 1000 && b.epoch == 1001);
    bh_asker_free(c);
    bh_loop_drain_close(&loop);
    played_stop(&s);
}

static void test_schedulers_come_and_go(void)
{
    struct played s;
    struct got g = {0};
    uv_loop_t loop;

    played_dir(dir);
    uv_loop_init(&loop);
    struct bh_asker *c = bh_asker_new(&loop, dir);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &g);
    run_until(&loop, &g, 1);
    CU_ASSERT_STRING_EQUAL(g.why, "berth-scheduler does not run");
    played_start(&s, dir, tells_status);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &g);
    run_until(&loop, &g, 2);
    CU_ASSERT_EQUAL(g.epoch, 1000);
    played_stop(&s);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &g);
    run_until(&loop, &g, 3);
    CU_ASSERT_STRING_EQUAL(g.why, "berth-scheduler does not run");
    played_start(&s, dir, refuses);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &g);
    run_until(&loop, &g, 4);
    CU_ASSERT_STRING_EQUAL(g.why, "no such question");
    bh_asker_free(c);
    bh_loop_drain_close(&loop);
    played_stop(&s);
}

static void test_questions_under_way_at_the_end(void)
{
    struct played s;
    struct got g = {0};
    uv_loop_t loop;

    played_dir(dir);
    uv_loop_init(&loop);
    played_start(&s, dir, is_silent);
    struct bh_asker *c = bh_asker_new(&loop, dir);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &g);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &g);
    bh_asker_free(c);
    CU_ASSERT_EQUAL(g.n, 2);
    CU_ASSERT_STRING_EQUAL(g.why, "the process ends");
    bh_asker_free(NULL);
    bh_loop_drain_close(&loop);
    played_stop(&s);
}

static void test_a_path_that_is_too_long(void)
{
    char longer[300];
    struct got g = {0};
    uv_loop_t loop;

    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    uv_loop_init(&loop);
    struct bh_asker *c = bh_asker_new(&loop, longer);
    bh_asker_ask(c, BERTH__CONTROL_WHAT__CONTROL_STATUS, on_answer, &g);
    run_until(&loop, &g, 1);
    CU_ASSERT_STRING_EQUAL(g.why, "the runtime directory's path is too long");
    bh_asker_free(c);
    bh_loop_drain_close(&loop);
}

/* ---- as a document ----------------------------------------------------------------------------- */

static void expect_json(const Berth__QueuePod *p, const char *want)
{
    struct bh_buf b = {0};
    struct bh_arena a;

    bh_arena_init(&a, 0);
    bh_json_write(&b, bh_queue_pod_json(&a, p));
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), want);
    bh_buf_fini(&b);
    bh_arena_fini(&a);
}

static void test_a_pod_as_a_document(void)
{
    static char name[] = "p", ns[] = "ns", uid[] = "u", fit[] = "NodeResourcesFit", n1[] = "n1";
    static char b[] = "host/1", msg[] = "0/1 nodes are available";
    char *plugins[] = {fit};
    Berth__QueuePod p = BERTH__QUEUE_POD__INIT;

    p.namespace_ = ns;
    p.name = name;
    p.uid = uid;
    expect_json(&p, "{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":\"u\",\"priority\":0,\"queue\":"
                    "\"gone\",\"attempts\":0,\"plugins\":[]}");
    p.place = BERTH__QUEUE_PLACE__QUEUE_BINDING;
    p.plugin = plugins;
    p.n_plugin = 1;
    p.priority = -5;
    p.attempts = 2;
    p.created_ns = INT64_C(1700000000123456789);
    p.message = msg;
    p.node = n1;
    p.binder = b;
    p.bind_attempt = 1;
    p.bind_ns = INT64_C(1700000001000000000);
    expect_json(&p, "{\"namespace\":\"ns\",\"name\":\"p\",\"uid\":\"u\",\"priority\":-5,\"queue\":"
                    "\"binding\",\"attempts\":2,\"createdAt\":\"2023-11-14T22:13:20.123456Z\","
                    "\"plugins\":[\"NodeResourcesFit\"],\"message\":\"0/1 nodes are available\","
                    "\"binding\":{\"node\":\"n1\",\"binder\":\"host/1\",\"attempt\":1,\"since\":"
                    "\"2023-11-14T22:13:21.000000Z\"}}");
}

static void expect_state(Berth__QueueGroup g, const char *want)
{
    static char name[] = "g", ns[] = "ns", uid[] = "u";
    Berth__QueuePod p = BERTH__QUEUE_POD__INIT;
    struct bh_arena a;

    g.name = name;
    p.namespace_ = ns;
    p.name = p.uid = uid;
    p.group = &g;
    bh_arena_init(&a, 0);
    CU_ASSERT_STRING_EQUAL(
        bh_json_get_text(bh_json_get(bh_queue_pod_json(&a, &p), "group"), "state"), want);
    bh_arena_fini(&a);
}

static void test_what_a_group_waits_for(void)
{
    Berth__QueueGroup g = BERTH__QUEUE_GROUP__INIT;

    g.members = 2;
    g.scheduled = 1;
    expect_state(g, "there is no PodGroup");
    g.found = true;
    expect_state(g, "1 of 2 scheduled, any may go");
    g.min_count = 2;
    expect_state(g, "1 of 2 scheduled");
    g.min_count = 5;
    expect_state(g, "1 of 5 scheduled, 3 missing");
}

static void test_places_have_names(void)
{
    CU_ASSERT_STRING_EQUAL(bh_queue_place_name(BERTH__QUEUE_PLACE__QUEUE_GATED), "gated");
    CU_ASSERT_STRING_EQUAL(bh_queue_place_name(BERTH__QUEUE_PLACE__QUEUE_WAITING), "waiting");
    CU_ASSERT_STRING_EQUAL(bh_queue_place_name((Berth__QueuePlace)99), "gone"); /* of a newer one */
}

BH_TESTS("common/control", {"nobody to ask", test_nobody_to_ask},
         {"an answer, not to another question", test_an_answer},
         {"no answer, and a refusal", test_no_answer_and_a_refusal},
         {"a listing names each pod once", test_a_listing_names_each_pod_once},
         {"a queue that never stands still is an error",
          test_a_queue_that_never_stands_still_is_an_error},
         {"answers come to their questions", test_answers_come_to_their_questions},
         {"schedulers come and go", test_schedulers_come_and_go},
         {"questions under way at the end", test_questions_under_way_at_the_end},
         {"a path that is too long", test_a_path_that_is_too_long},
         {"a pod as a document", test_a_pod_as_a_document},
         {"what a group waits for", test_what_a_group_waits_for},
         {"places have names", test_places_have_names})
