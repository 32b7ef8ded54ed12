/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_snapshot.c - the contract of snapshot.h, one process
 */
#include "tests/unit/common/snapshot/fixture.h"

static void test_not_ready_until_synced(void)
{
    const char *name = fx_name();
    struct bh_snap_stats st;
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(strstr(bh_snap_reader_error(x.r), name) != NULL);
    struct bh_snap_writer *w = fx_writer(name, 0, 0);
    CU_ASSERT_EQUAL(fx_write_node(w, 1, 1), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(strstr(bh_snap_reader_error(x.r), "not synced") != NULL);
    CU_ASSERT_FALSE(bh_snap_reader_info(x.r, &st));
    bh_snap_set_lease(w, 77, 1234);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.state.count[FX_NODES], 1);
    CU_ASSERT_TRUE(bh_snap_reader_info(x.r, &st));
    CU_ASSERT(st.synced && st.lease_term == 77 && st.lease_until_boot_ns == 1234 && st.nodes == 1 &&
              st.segment == 1);
    bh_snap_set_synced(w, false); /* later: only told */
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT(bh_snap_reader_info(x.r, &st) && !st.synced);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static void test_each_change_is_delivered_once(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 0, 0);
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT(x.begins == 1 && x.ends == 1 && x.events == 2);

    CU_ASSERT_EQUAL(fx_write_node(w, 3, 1), 0);
    CU_ASSERT_EQUAL(fx_write_pod(w, 5, 2), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.events, 5); /* node, shape, pod */
    CU_ASSERT_EQUAL(x.last_pos, bh_snap_head(w));
    CU_ASSERT_EQUAL(bh_snap_reader_pos(x.r), bh_snap_head(w));
    CU_ASSERT(x.state.op[FX_NODES][3] == 1 && x.state.op[FX_PODS][5] == 2 && x.shapes == 1);

    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.events, 5);

    CU_ASSERT_EQUAL(fx_write_pod(w, 6, 2 + FX_VARIANTS), 0); /* the same shape */
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.events, 6);

    CU_ASSERT_EQUAL(fx_delete(w, FX_PODS, 5), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.shapes, 1);
    CU_ASSERT_EQUAL(fx_delete(w, FX_PODS, 6), 0);
    CU_ASSERT_EQUAL(fx_delete(w, FX_NODES, 3), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.shapes, 0); /* its last pod took it along */
    CU_ASSERT(x.state.sum == 0 && x.state.count[FX_NODES] == 0 && x.state.count[FX_PODS] == 0);
    CU_ASSERT_EQUAL(fx_delete(w, FX_PODS, 6), -ENOENT);
    CU_ASSERT_EQUAL(fx_delete(w, FX_NODES, 3), -ENOENT);
    CU_ASSERT_EQUAL(bh_snap_del_node(w, "", 0), -ENOENT);
    CU_ASSERT_EQUAL(x.wrong, 0);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static void test_same_bytes_publish_nothing(void)
{
    struct bh_snap_writer *w = fx_writer(NULL, 0, 0);
    struct bh_interner in = bh_snap_interner(w);
    struct fx_blob n, p, s;
    struct bh_node_rec *node = fx_node(&n, in, 1, 1);
    struct bh_pod_rec *pod = fx_pod(&p, in, 1, 1);
    struct bh_shape_rec *shape = fx_shape(&s, in, 1);
    CU_ASSERT_EQUAL(bh_snap_put_node(w, node), 0);
    CU_ASSERT_EQUAL(bh_snap_put_pod(w, pod, shape), 0);
    uint64_t head = bh_snap_head(w);
    node->resource_version = 999;
    pod->resource_version = 999;
    pod->shape = 12345; /* ignored */
    CU_ASSERT_EQUAL(bh_snap_put_node(w, node), 1);
    CU_ASSERT_EQUAL(bh_snap_put_pod(w, pod, shape), 1);
    CU_ASSERT_EQUAL(bh_snap_head(w), head);
    node->flags = BH_NODE_UNSCHEDULABLE;
    CU_ASSERT_EQUAL(bh_snap_put_node(w, node), 0);
    shape->priority++; /* only the shape differs */
    CU_ASSERT_EQUAL(bh_snap_put_pod(w, pod, shape), 0);
    pod->uid = pod->uid;
    p.b[pod->name.off] = 'q'; /* only the tail differs */
    CU_ASSERT_EQUAL(bh_snap_put_pod(w, pod, shape), 0);
    bh_snap_writer_free(w);
}

static void test_max_events_cuts_rebuild_and_log(void)
{
    struct bh_snap_writer *w = fx_writer(NULL, 0, 0);
    struct fx_state model = {0};
    struct fx_reader x;
    fx_reader_init(&x, NULL, w);
    for (uint64_t op = 1; op <= 50; op++) {
        fx_model(&model, 9, op, 20);
        CU_ASSERT_EQUAL(fx_write(w, 9, op, 20), 0);
    }
    bh_snap_set_synced(w, true);
    unsigned rounds = 0;
    while (bh_snap_follow(x.r, 1, fx_on_event, &x) == BH_SNAP_MORE) {
        rounds++;
        if (rounds == 5) /* changes in the middle of a rebuild */
            for (uint64_t op = 51; op <= 200; op++) {
                fx_model(&model, 9, op, 20);
                CU_ASSERT_EQUAL(fx_write(w, 9, op, 20), 0);
            }
        CU_ASSERT(x.rebuilding || rounds > 5);
    }
    CU_ASSERT(rounds > 100);
    CU_ASSERT(x.begins == 1 && x.ends == 1 && x.wrong == 0);
    CU_ASSERT(fx_equal(&x.state, &model));
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static struct bh_snap_writer *race_writer;
static struct fx_state *race_model;
static uint64_t race_op;

/* Changes between any two steps of a rebuild, also of what was and will be delivered. */
static void change_meanwhile(struct fx_reader *x, const struct bh_snap_event *ev)
{
    (void)ev;
    if (x->rebuilding && race_op < 3000)
        for (int i = 0; i < 3; i++) {
            race_op++;
            fx_model(race_model, 10, race_op, 30);
            CU_ASSERT_EQUAL(fx_write(race_writer, 10, race_op, 30), 0);
        }
}

static void test_state_is_exact_from_end_on(void)
{
    struct bh_snap_writer *w = race_writer = fx_writer(NULL, 4 << 20, 0);
    struct fx_state model = {0};
    struct fx_reader x;
    race_model = &model;
    fx_reader_init(&x, NULL, w);
    x.on_event = change_meanwhile;
    for (race_op = 0; race_op < 100;) {
        race_op++;
        fx_model(&model, 10, race_op, 30);
        CU_ASSERT_EQUAL(fx_write(w, 10, race_op, 30), 0);
    }
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_follow(&x, 7), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.begins, 1);
    CU_ASSERT_EQUAL(x.ends, 1);
    CU_ASSERT_EQUAL(x.wrong, 0);
    CU_ASSERT(race_op > 200);
    CU_ASSERT(fx_equal(&x.state, &model));
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

/* Readers that attach, and one that goes on by a single event, between any two stores of the
 * writer. */
enum { STEP_READERS = 120 }; /* more than slots */
static struct fx_reader *step_reader;
static const char *step_name;
static unsigned step_attached, step_passages[BH_SNAP_STEPS];

static void read_at_step(int step)
{
    static bool moving;
    unsigned n = step_passages[step]++;
    moving = step == BH_SNAP_STEP_MOVE_RESERVED || (moving && step != BH_SNAP_STEP_MOVE_UNLINKED);
    bh_snap_follow(step_reader[0].r, 1, fx_on_event, &step_reader[0]);
    if ((!moving && n % 40 != 3) || step_attached == STEP_READERS)
        return;
    struct fx_reader *x = &step_reader[step_attached++];
    fx_reader_init(x, step_name, NULL);
    CU_ASSERT_EQUAL(fx_follow(x, 0), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x->begins, 1);
}

static void attach_at_every_step(size_t bytes, uint32_t log, unsigned ops)
{
    struct fx_state *model = bh_calloc(1, sizeof(*model));
    struct bh_snap_stats st;
    step_name = fx_name();
    step_reader = bh_calloc(STEP_READERS, sizeof(*step_reader));
    memset(step_passages, 0, sizeof(step_passages));
    fx_reader_init(&step_reader[0], step_name, NULL);
    step_attached = 1;
    struct bh_snap_writer *w = fx_writer(step_name, bytes, log);
    bh_snap_set_synced(w, true);
    bh_snap_crash_hook = read_at_step;
    for (uint64_t op = 1; op <= ops; op++) {
        fx_model(model, 13, op, 300);
        CU_ASSERT_EQUAL(fx_write(w, 13, op, 300), 0);
        if (op % 10 == 0)
            for (unsigned i = 1; i < step_attached; i++)
                CU_ASSERT_EQUAL(fx_follow(&step_reader[i], i % 7), BH_SNAP_OK);
    }
    bh_snap_crash_hook = NULL;
    bh_snap_writer_stats(w, &st);
    for (unsigned i = 0; i < step_attached; i++) {
        struct fx_reader *x = &step_reader[i];
        CU_ASSERT_EQUAL(fx_follow(x, 0), BH_SNAP_OK);
        CU_ASSERT(fx_equal(&x->state, model));
        CU_ASSERT(x->wrong == 0 && x->shapes == st.shapes && x->last_pos == bh_snap_head(w));
        fx_reader_fini(x);
    }
    for (int step = 1; step < BH_SNAP_STEPS; step++)
        if (step != BH_SNAP_STEP_HORIZON && step != BH_SNAP_STEP_RECYCLED)
            CU_ASSERT(step_passages[step] > 3);
    CU_ASSERT(st.moves > 3 && step_attached > 30);
    bh_snap_writer_free(w);
    free(step_reader);
    free(model);
}

static void test_readers_attach_between_any_two_stores(void)
{
    attach_at_every_step(4096, 1 << 14, 1500);
    CU_ASSERT(step_passages[BH_SNAP_STEP_RECYCLED] > 3);
    attach_at_every_step(4096, 32, 3000);
}

static void test_growth_moves_and_readers_notice_nothing(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 4096, 0);
    struct fx_state model = {0};
    struct bh_snap_stats st;
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    bh_snap_set_synced(w, true);
    for (uint64_t op = 1; op <= 6000; op++) {
        uint64_t idx = op % 3000;
        CU_ASSERT_EQUAL(op % 2 ? fx_write_node(w, idx, op) : fx_write_pod(w, idx, op), 0);
        fx_set(&model, op % 2 ? FX_NODES : FX_PODS, idx, op);
        if (op % 10 == 0)
            CU_ASSERT_EQUAL(fx_follow(&x, 3), BH_SNAP_OK);
    }
    CU_ASSERT_EQUAL(fx_follow(&x, 0), BH_SNAP_OK);
    CU_ASSERT(fx_equal(&x.state, &model));
    CU_ASSERT(x.begins == 1 && x.overruns == 0 && x.wrong == 0);
    bh_snap_writer_stats(w, &st);
    CU_ASSERT(st.moves >= 5 && st.segment == st.moves + 1 && st.nodes + st.pods == 3000);
    bh_snap_writer_tick(w);
    struct bh_snap_stats seen;
    CU_ASSERT(bh_snap_reader_info(x.r, &seen));
    CU_ASSERT(seen.segment == st.segment && seen.moves == st.moves && seen.pods == st.pods &&
              seen.nodes == st.nodes && seen.shapes == st.shapes && seen.head == st.head &&
              seen.symbols == st.symbols && seen.readers == 1 && seen.bytes_size == st.bytes_size);
    fx_write_node(w, 1, 77); /* the one before waits until nobody reads it */
    bh_snap_writer_tick(w);
    bh_snap_writer_stats(w, &st);
    CU_ASSERT(bh_snap_reader_info(x.r, &seen));
    CU_ASSERT(st.retired_waiting > 0 && seen.retired_waiting == st.retired_waiting);
    CU_ASSERT_EQUAL(fx_left_over(false), 3); /* control, slots, one data segment */
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static void test_space_is_used_again(void)
{
    struct bh_snap_writer *w = fx_writer(NULL, 1 << 18, 1024);
    struct bh_snap_stats st;
    struct fx_reader x;
    fx_reader_init(&x, NULL, w);
    bh_snap_set_synced(w, true);
    for (uint64_t op = 1; op <= 200000; op++) {
        fx_write_node(w, op % 100, op);
        if (op % 100 == 0)
            CU_ASSERT_EQUAL(fx_follow(&x, 0), BH_SNAP_OK);
    }
    bh_snap_writer_stats(w, &st);
    CU_ASSERT_EQUAL(st.moves, 0);
    CU_ASSERT_EQUAL(x.overruns, 0);
    CU_ASSERT(st.retired_waiting < 5000);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static void test_lagging_reader_is_left_behind_and_comes_back(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 4 << 20, 64); /* never too small */
    struct fx_state model = {0};
    struct bh_snap_stats st;
    struct fx_reader slow, quick;
    fx_reader_init(&slow, name, NULL);
    fx_reader_init(&quick, name, NULL);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_follow(&slow, 0), BH_SNAP_OK);
    for (uint64_t op = 1; op <= 40; op++) { /* more than half a ring, less than what it can keep */
        fx_model(&model, 11, op, 10);
        CU_ASSERT_EQUAL(fx_write(w, 11, op, 10), 0);
        CU_ASSERT_EQUAL(fx_follow(&quick, 0), BH_SNAP_OK);
    }
    bh_snap_writer_stats(w, &st);
    CU_ASSERT_EQUAL(st.moves, 1);
    CU_ASSERT_EQUAL(fx_follow(&slow, 0), BH_SNAP_OK); /* old log, then the new one */
    CU_ASSERT(slow.overruns == 0 && slow.begins == 1);
    CU_ASSERT(fx_equal(&slow.state, &model));
    for (uint64_t op = 41; op <= 3000; op++) { /* far too much */
        fx_model(&model, 11, op, 10);
        CU_ASSERT_EQUAL(fx_write(w, 11, op, 10), 0);
        CU_ASSERT_EQUAL(fx_follow(&quick, 0), BH_SNAP_OK);
    }
    bh_snap_writer_stats(w, &st);
    CU_ASSERT_EQUAL(st.moves, 2); /* moved away once, not again and again */
    CU_ASSERT_EQUAL(fx_follow(&slow, 0), BH_SNAP_OK);
    CU_ASSERT(slow.overruns == 1 && slow.begins == 2 && slow.wrong == 0);
    CU_ASSERT(fx_equal(&slow.state, &model));
    CU_ASSERT(quick.overruns == 0 && quick.begins == 1 && fx_equal(&quick.state, &model));
    fx_reader_fini(&slow);
    fx_reader_fini(&quick);
    bh_snap_writer_free(w);
}

static void test_more_readers_than_slots(void)
{
    enum { READERS = 70 };
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 1 << 16, 64);
    struct fx_reader *x = bh_calloc(READERS, sizeof(*x));
    struct fx_state model = {0};
    struct bh_snap_stats st;
    bh_snap_set_synced(w, true);
    for (int i = 0; i < READERS; i++) {
        fx_reader_init(&x[i], name, NULL);
        CU_ASSERT_EQUAL(fx_follow(&x[i], 0), BH_SNAP_OK);
    }
    bh_snap_writer_tick(w);
    bh_snap_writer_stats(w, &st);
    CU_ASSERT_EQUAL(st.readers, 64);
    for (uint64_t op = 1; op <= 500; op++) {
        fx_model(&model, 12, op, 10);
        CU_ASSERT_EQUAL(fx_write(w, 12, op, 10), 0);
    }
    for (int i = 0; i < READERS; i++) {
        CU_ASSERT_EQUAL(fx_follow(&x[i], 0), BH_SNAP_OK);
        CU_ASSERT(fx_equal(&x[i].state, &model) && x[i].wrong == 0);
    }
    for (int i = 0; i < READERS; i++)
        fx_reader_fini(&x[i]);
    bh_snap_writer_tick(w);
    bh_snap_writer_stats(w, &st);
    CU_ASSERT_EQUAL(st.readers, 0);
    free(x);
    bh_snap_writer_free(w);
}

static void test_second_writer_is_refused(void)
{
    const char *name = fx_name();
    struct bh_snap_options o = {0};
    struct bh_snap_writer *w = fx_writer(name, 4096, 0), *second = NULL;
    struct bh_err err = {{0}};
    CU_ASSERT_EQUAL(bh_snap_writer_new(name, &o, &second, &err), -EBUSY);
    CU_ASSERT_PTR_NULL(second);
    CU_ASSERT(strstr(err.msg, "another writer") && strstr(err.msg, name));
    CU_ASSERT_EQUAL(fx_write_node(w, 1, 1), 0); /* the first one is unharmed */
    bh_snap_writer_free(w);
    CU_ASSERT_EQUAL(bh_snap_writer_new(name, &o, &second, &err), 0);
    bh_snap_writer_free(second);
}

static void test_clean_stop_and_successor(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 4096, 0);
    struct bh_snap_stats before, after;
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    CU_ASSERT_EQUAL(fx_write_node(w, 1, 1), 0);
    CU_ASSERT_EQUAL(fx_write_node(w, 2, 2), 0);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(fx_write_node(w, 3, 3), 0); /* published, not yet read */
    bh_snap_writer_free(w);
    CU_ASSERT_EQUAL(fx_left_over(false), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK); /* what was published is still delivered */
    CU_ASSERT_EQUAL(x.state.count[FX_NODES], 3);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(bh_snap_reader_info(x.r, &before)); /* the old data stay visible */
    w = fx_writer(name, 4096, 0);
    CU_ASSERT_EQUAL(fx_write_node(w, 9, 9), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NEW_INCARNATION);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT(bh_snap_reader_info(x.r, &after) && after.incarnation > before.incarnation);
    CU_ASSERT(x.begins == 2 && x.ends == 2 && x.wrong == 0);
    CU_ASSERT(x.state.count[FX_NODES] == 1 && x.state.op[FX_NODES][9] == 9);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

/* A reader that slept: its segment has a successor, which went with the writer. */
static void test_successor_of_a_segment_that_is_gone(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 4096, 0);
    struct bh_snap_stats st;
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    CU_ASSERT_EQUAL(fx_write_node(w, 0, 1), 0);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    for (uint64_t i = 1; i <= 1000; i++)
        CU_ASSERT_EQUAL(fx_write_node(w, i, i + 1), 0);
    bh_snap_writer_stats(w, &st);
    CU_ASSERT(st.moves > 0);
    bh_snap_writer_free(w);
    w = fx_writer(name, 4096, 0);
    CU_ASSERT_EQUAL(fx_write_node(w, 9, 2000), 0);
    bh_snap_set_synced(w, true);
    enum bh_snap_outcome o = BH_SNAP_NOT_READY;
    for (int turn = 0; turn < 10 && o != BH_SNAP_OK; turn++)
        o = fx_once(&x);
    CU_ASSERT_EQUAL(o, BH_SNAP_OK);
    CU_ASSERT(x.state.count[FX_NODES] == 1 && x.state.op[FX_NODES][9] == 2000);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static void count_nodes(void *arg, const struct bh_snap_event *ev)
{
    *(unsigned *)arg += ev->op == BH_SNAP_NODE_PUT && ev->node->uid != BH_SYM_NONE;
}

static void test_symbols_many_and_long(void)
{
    struct bh_snap_writer *w = fx_writer(NULL, 4096, 0);
    struct bh_interner in = bh_snap_interner(w);
    struct bh_snap_stats st;
    struct fx_reader x;
    static char text[100000];
    memset(text, 'x', sizeof(text));
    fx_reader_init(&x, NULL, w);
    bh_snap_set_synced(w, true);
    bh_sym a = in.intern(in.arg, text, sizeof(text)), b = in.intern(in.arg, text, 99999);
    CU_ASSERT(a != b && a && b);
    CU_ASSERT_EQUAL(in.intern(in.arg, text, sizeof(text)), a);
    CU_ASSERT_EQUAL(in.intern(in.arg, NULL, 0), BH_SYM_NONE);
    for (uint64_t i = 0; i < 20000; i++)
        fx_sym(in, "a symbol that nobody uses, number %llu", i);
    CU_ASSERT_EQUAL(in.intern(in.arg, text, 99999), b);
    struct fx_blob o;
    struct bh_node_rec *rec = fx_node(&o, in, 1, 1);
    rec->uid = a;
    CU_ASSERT_EQUAL(bh_snap_put_node(w, rec), 0);
    CU_ASSERT_EQUAL(in.intern(in.arg, text, sizeof(text)), a); /* found in the segment now */
    bh_snap_writer_stats(w, &st);
    CU_ASSERT(st.symbols > 20000 && st.moves >= 1);
    unsigned nodes = 0;
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, count_nodes, &nodes), BH_SNAP_OK);
    CU_ASSERT_EQUAL(nodes, 1);
    CU_ASSERT(bh_sym_find(x.tab, text, sizeof(text)) != BH_SYM_NONE);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static void test_oversized_record_is_refused(void)
{
    struct bh_snap_writer *w = fx_writer(NULL, 4096, 0);
    struct bh_node_rec *big = bh_calloc(1, BH_REC_MAX_BYTES + 8);
    struct fx_blob o;
    big->h = (struct bh_rec_head){BH_REC_MAX_BYTES + 8, BH_REC_NODE, BH_REC_LAYOUT};
    big->name = fx_sym(bh_snap_interner(w), "big", 0);
    CU_ASSERT_EQUAL(bh_snap_put_node(w, big), -E2BIG);
    CU_ASSERT_EQUAL(bh_snap_head(w), 0);
    big->h.size = BH_REC_MAX_BYTES; /* the largest fits into the smallest segment, after a move */
    CU_ASSERT_EQUAL(bh_snap_put_node(w, big), 0);
    CU_ASSERT_EQUAL(bh_snap_put_node(w, fx_node(&o, bh_snap_interner(w), 1, 1)), 0);
    free(big);
    bh_snap_writer_free(w);
}

static void test_options_are_checked(void)
{
    struct bh_snap_writer *w = NULL;
    struct bh_err err = {{0}};
    struct bh_snap_options odd = {.log_entries = 100};
    CU_ASSERT_EQUAL(bh_snap_writer_new(fx_name(), &odd, &w, &err), -EINVAL);
    CU_ASSERT(strstr(err.msg, "log_entries 100") != NULL);
    CU_ASSERT_EQUAL(bh_snap_writer_new("", NULL, &w, &err), -EINVAL);
    CU_ASSERT_EQUAL(bh_snap_writer_new("/no/such/folder", NULL, &w, &err), -ENOENT);
    CU_ASSERT(strstr(err.msg, "/no/such/folder") != NULL);
    CU_ASSERT_EQUAL(bh_snap_writer_new(NULL, NULL, &w, &err), -EINVAL);
    struct bh_snap_options group = {.group = "no such group here"};
    CU_ASSERT_EQUAL(bh_snap_writer_new(fx_name(), &group, &w, &err), -ENOENT);
    CU_ASSERT(strstr(err.msg, "no such group here") != NULL);
}

static void test_mapped_memory_outlives_its_writer(void)
{
    struct bh_snap_writer *w = fx_writer(NULL, 4096, 0);
    struct fx_reader x;
    fx_reader_init(&x, NULL, w);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(fx_write_node(w, 1, 1), 0);
    bh_snap_writer_free(w);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.state.count[FX_NODES], 1);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    fx_reader_fini(&x);
}

static void test_heartbeat_is_the_tick(void)
{
    struct bh_snap_writer *w = fx_writer(NULL, 4096, 0);
    struct bh_snap_stats a, b;
    struct fx_reader x;
    fx_reader_init(&x, NULL, w);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT(bh_snap_reader_info(x.r, &a));
    fx_write_node(w, 1, 1);
    CU_ASSERT(bh_snap_reader_info(x.r, &b));
    CU_ASSERT_EQUAL(a.heartbeat_boot_ns, b.heartbeat_boot_ns); /* changes are not a heartbeat */
    bh_snap_writer_tick(w);
    CU_ASSERT(bh_snap_reader_info(x.r, &b));
    CU_ASSERT(b.heartbeat_boot_ns > a.heartbeat_boot_ns && b.heartbeat_boot_ns <= bh_boot_ns());
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

BH_TESTS("common/snapshot/snapshot",
         {"not ready until the writer says synced", test_not_ready_until_synced},
         {"each change is delivered once, with its position", test_each_change_is_delivered_once},
         {"same bytes but the version publish nothing", test_same_bytes_publish_nothing},
         {"max_events cuts a rebuild and the log anywhere", test_max_events_cuts_rebuild_and_log},
         {"changes during a rebuild: exact from END on", test_state_is_exact_from_end_on},
         {"readers attach between any two stores", test_readers_attach_between_any_two_stores},
         {"growth moves and readers notice nothing", test_growth_moves_and_readers_notice_nothing},
         {"space is used again without moving", test_space_is_used_again},
         {"a lagging reader is left behind and comes back",
          test_lagging_reader_is_left_behind_and_comes_back},
         {"more readers than slots", test_more_readers_than_slots},
         {"a second live writer is refused", test_second_writer_is_refused},
         {"clean stop, then a successor", test_clean_stop_and_successor},
         {"a segment that went with its writer, then a successor",
          test_successor_of_a_segment_that_is_gone},
         {"symbols: many, long, none", test_symbols_many_and_long},
         {"an oversized record is refused", test_oversized_record_is_refused},
         {"options are checked", test_options_are_checked},
         {"mapped memory outlives its writer", test_mapped_memory_outlives_its_writer},
         {"the heartbeat is the tick", test_heartbeat_is_the_tick},
         {"nothing is left in /dev/shm", test_nothing_is_left_in_dev_shm})
