/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_extend.c - extenders in the daemon: binds that they write, and
 * what goes on while a decision waits for one
 *
 * The extender is a server on the daemon's own loop: it answers while the decision waits.
 */
#include "scheduler/framework/plugin.h"
#include "tests/unit/common/api/raw_server.h"
#include "tests/unit/scheduler/daemon/fixture.h"

#define BIND    BERTH__WORK_KIND__WORK_BIND
#define STATUS  BERTH__WORK_KIND__WORK_PATCH_STATUS
#define DONE    BERTH__OUTCOME__OUTCOME_DONE
#define BOUND   BERTH__CHANGE_OP__CHANGE_BOUND
#define DELETED BERTH__CHANGE_OP__CHANGE_DELETED

const struct bh_plugin *const bh_plugins_extra[] = {NULL};

static struct extender {
    struct raw_server server;
    uv_timer_t later;
    struct fixture *f;
    const char *bind_says; /* body of its answers to bind; NULL: 500 */
    const char *says_once; /* of the first of them */
    unsigned binds;
    char bound[512]; /* the last request to bind */
    /* A filter that waits: until what came from a binder waits too. */
    const char *wait_for; /* a pod whose bind is answered meanwhile */
    struct raw_conn *waiting;
    unsigned waited;
    bool slow; /* the next bind waits, too */
} x;

#define NODES "{\"NodeNames\":[\"n1\"]}"

static bool bind_is_out(const char *uid)
{
    const struct bh_work *w = bind_of(x.f, uid);

    return w && w->binder && !w->kept;
}

/* The binder's answer has come, and nobody has looked at it. */
static void on_later(uv_timer_t *t)
{
    if (!x.waiting || !x.f->d.n_letters)
        return;
    x.waited++;
    CU_ASSERT(bind_is_out("u-a"));
    raw_json(x.waiting, 200, NODES);
    x.waiting = NULL;
    uv_timer_stop(t);
}

static void on_filter(const struct raw_request *r)
{
    struct item *i = x.wait_for ? find_item(&x.f->b[0], BIND, x.wait_for) : NULL;

    if (!i) {
        raw_json(r->conn, 200, NODES);
        return;
    }
    x.wait_for = NULL;
    x.waiting = r->conn;
    binder_hello(&x.f->b[0], 0); /* a sign of life is no letter */
    answer(&x.f->b[0], i, DONE, NULL);
    uv_timer_start(&x.later, on_later, 1, 1);
}

static void on_asked(struct raw_server *s, const struct raw_request *r)
{
    (void)s;
    if (bh_streq(r->target, "/x/filter")) {
        on_filter(r);
        return;
    }
    const char *says = x.says_once ? x.says_once : x.bind_says;
    x.says_once = NULL;
    x.binds++;
    snprintf(x.bound, sizeof(x.bound), "%.*s", (int)r->body_n, r->body);
    if (x.slow)
        x.waiting = r->conn;
    else if (says)
        raw_json(r->conn, 200, says);
    else
        raw_json(r->conn, 500, "away");
}

/* cached: it keeps nodes of its own. */
static void start_with(struct fixture *f, bool cached, const char *verbs)
{
    setup(f);
    x = (struct extender){.f = f, .bind_says = "{}"};
    raw_start(&x.server, &f->loop, on_asked, NULL);
    uv_timer_init(&f->loop, &x.later);
    restart_with(f, bh_arena_printf(&f->a,
                                    "extenders:\n- {urlPrefix: \"http://127.0.0.1:%u/x\", "
                                    "nodeCacheCapable: %s, %s}\n",
                                    x.server.port, cached ? "true" : "false", verbs));
    snap_node(f, "n1", "4");
}

static void begin(struct fixture *f, const char *verbs)
{
    start_with(f, true, verbs);
    go(f);
}

static void end(struct fixture *f)
{
    scheduler_stop(f);
    uv_close((uv_handle_t *)&x.later, NULL);
    raw_stop(&x.server);
    teardown(f);
}

/* ---- whole objects ----------------------------------------------------------------------------- */

/* One that keeps no nodes of its own is shown them whole: nothing is decided before they are there. */
static void test_whole_nodes_come_by_name(void)
{
    Berth__ObjectChange c = BERTH__OBJECT_CHANGE__INIT;
    char name[] = "n1", uid[] = "u-of-a-node";
    struct bh_buf bytes = {0};
    struct fixture f;

    start_with(&f, false, "filterVerb: filter");
    bh_snap_set_synced(f.snap, true);
    SPIN(&f, f.known);
    feed_begin(&f);
    feed_batch(&f, NULL, true);
    settle(&f);
    CU_ASSERT_FALSE(bh_engine_raw_complete(f.d.engine) || bh_sched_may_decide(&f.d));
    bh_pb_pack(&bytes, decode(&f, &k8s__node__descriptor,
                              "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u-of-a-node\"}}"));
    c.has_op = c.has_kind = c.has_log_pos = c.has_object = c.has_raw = true;
    c.op = BERTH__CHANGE_OP__CHANGE_ADDED;
    c.kind = BH_KIND_NODE;
    c.raw = true;
    c.name = name;
    c.uid = uid;
    c.log_pos = bh_snap_head(f.snap);
    c.object = (ProtobufCBinaryData){bytes.n, (uint8_t *)bytes.p};
    feed_batch(&f, &c, false);
    bh_buf_fini(&bytes);
    SPIN(&f, bh_sched_may_decide(&f.d));
    CU_ASSERT_TRUE(bh_engine_raw_complete(f.d.engine));
    end(&f);
}

/* ---- binds ------------------------------------------------------------------------------------- */

static void test_a_bind_that_the_extender_writes(void)
{
    struct fixture f;

    begin(&f, "bindVerb: bind");
    add_pod(&f, "p", "1");
    SPIN(&f, has_event(&f.b[0], "Scheduled", "Successfully assigned ns/p to n1"));
    CU_ASSERT_EQUAL(x.binds, 1);
    CU_ASSERT_STRING_EQUAL(x.bound, "{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":"
                                    "\"u-p\",\"Node\":\"n1\"}");
    CU_ASSERT_EQUAL(count_items(&f.b[0], BIND, "p"), 0);
    CU_ASSERT(is_assumed(&f, "p") && bind_of(&f, "u-p")->kept); /* until the watch shows it */
    snap_pod(&f, "p", "1", "n1", "");
    end_pod(&f, "p", BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    CU_ASSERT(!is_assumed(&f, "p"));
    end(&f);
}

static void test_a_bind_that_the_extender_refuses(void)
{
    struct fixture f;

    begin(&f, "bindVerb: bind");
    x.says_once = "{\"Error\":\"no licence left\"}";
    add_pod(&f, "p", "1");
    SPIN(&f, has_event(&f.b[0], "Scheduled", "Successfully assigned ns/p to n1"));
    CU_ASSERT(has_event(&f.b[0], "FailedScheduling", "no licence left"));
    CU_ASSERT(x.binds == 2);
    CU_ASSERT_EQUAL(count_items(&f.b[0], BIND, "p"), 0);
    end(&f);
}

static void test_a_binder_binds_what_an_ignorable_extender_could_not(void)
{
    struct fixture f;
    struct item *i;

    begin(&f, "bindVerb: bind, ignorable: true");
    x.bind_says = NULL;
    add_pod(&f, "p", "1");
    SPIN(&f, (i = find_item(&f.b[0], BIND, "p")) != NULL);
    CU_ASSERT_EQUAL(x.binds, 1);
    CU_ASSERT_STRING_EQUAL(i->node, "n1");
    answer(&f.b[0], i, DONE, NULL);
    snap_pod(&f, "p", "1", "n1", "");
    end_pod(&f, "p", BOUND);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    end(&f);
}

/* What no binder was given none can answer. */
static void test_a_binder_that_answers_what_the_extender_binds_is_not_believed(void)
{
    struct item lie = {.name = "p", .uid = "u-p"};
    struct fixture f;

    begin(&f, "bindVerb: bind");
    x.slow = true;
    add_pod(&f, "p", "1");
    SPIN(&f, x.waiting != NULL);
    lie.id = bind_of(&f, "u-p")->item.id;
    lie.epoch = f.d.epoch;
    answer(&f.b[0], &lie, DONE, NULL);
    settle(&f);
    CU_ASSERT(bind_is_out("u-p"));
    raw_json(x.waiting, 200, "{}");
    SPIN(&f, bind_of(&f, "u-p")->kept);
    end(&f);
}

/* Behind a patch that is out the bind waits; then there is nothing to bind any more. */
static void test_a_pod_that_is_deleted_before_the_extender_is_asked(void)
{
    struct fixture f;
    struct item *i;

    begin(&f, "bindVerb: bind");
    add_pod(&f, "p", "9");
    SPIN(&f, (i = find_item(&f.b[0], STATUS, "p")) != NULL);
    snap_node(&f, "n2", "16");
    SPIN(&f, bind_of(&f, "u-p") != NULL);
    settle(&f);
    CU_ASSERT_EQUAL(x.binds, 0);
    end_pod(&f, "p", DELETED);
    SPIN(&f, place(&f, "p") == BH_Q_NONE);
    answer(&f.b[0], i, DONE, NULL);
    SPIN(&f, bh_ledger_binds(f.d.ledger) == 0);
    CU_ASSERT_EQUAL(x.binds, 0);
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.d.engine), 0);
    end(&f);
}

/* ---- a decision that waits ------------------------------------------------------------------- */

static void test_binders_answers_wait_for_the_decision_and_are_not_lost(void)
{
    struct fixture f;

    begin(&f, "filterVerb: filter");
    add_pod(&f, "a", "1");
    SPIN(&f, find_item(&f.b[0], BIND, "a") && bind_is_out("u-a"));
    x.wait_for = "a";
    add_pod(&f, "b", "1");
    SPIN(&f, find_item(&f.b[0], BIND, "b") != NULL);
    CU_ASSERT_EQUAL(x.waited, 1);
    SPIN(&f, bind_of(&f, "u-a")->kept); /* the answer, after the decision */
    CU_ASSERT(f.d.n_letters == 0);
    end(&f);
}

/* As while a decision waits, until something waits for its end. */
static bool receives_letters(struct fixture *f)
{
    const uint64_t until = bh_mono_ns() + SPIN_NS;

    while (!f->d.n_letters && bh_mono_ns() < until) {
        bh_sched_receive_binders(&f->d);
        poll(NULL, 0, 1);
    }
    return f->d.n_letters > 0;
}

/* Signs of life count at once; what may change the engine waits, and is dropped at the end of the process:
 * binders are asked again. */
static void test_a_sign_of_life_is_no_letter(void)
{
    struct fixture f;

    begin(&f, "filterVerb: filter");
    add_pod(&f, "a", "1");
    SPIN(&f, find_item(&f.b[0], BIND, "a") && bind_is_out("u-a"));
    CU_ASSERT_EQUAL(bind_of(&f, "u-a")->binder->window, 32);
    f.b[0].window = 7;
    binder_hello(&f.b[0], 0);
    answer(&f.b[0], find_item(&f.b[0], BIND, "a"), DONE, NULL);
    CU_ASSERT(receives_letters(&f));
    CU_ASSERT(bind_is_out("u-a"));
    CU_ASSERT_EQUAL(f.d.n_letters, 1);
    CU_ASSERT_EQUAL(bind_of(&f, "u-a")->binder->window, 7);
    end(&f); /* under a sanitizer: frees it */
}

BH_TESTS("scheduler/daemon/extend", {"whole nodes come by name", test_whole_nodes_come_by_name},
         {"a bind that the extender writes", test_a_bind_that_the_extender_writes},
         {"a bind that the extender refuses", test_a_bind_that_the_extender_refuses},
         {"a binder binds what an ignorable extender could not",
          test_a_binder_binds_what_an_ignorable_extender_could_not},
         {"a binder that answers what the extender binds is not believed",
          test_a_binder_that_answers_what_the_extender_binds_is_not_believed},
         {"a pod that is deleted before the extender is asked",
          test_a_pod_that_is_deleted_before_the_extender_is_asked},
         {"binders' answers wait for the decision, and are not lost",
          test_binders_answers_wait_for_the_decision_and_are_not_lost},
         {"a sign of life is no letter", test_a_sign_of_life_is_no_letter})
