/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_early.c - readers that follow while the writer still fills
 */
#include "tests/unit/common/snapshot/fixture.h"

static enum bh_snap_outcome once(struct fx_reader *x)
{
    return bh_snap_follow(x->r, 0, fx_on_event, x);
}

static void test_changes_but_no_end(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 0, 0);
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    CU_ASSERT_EQUAL(fx_write_node(w, 1, 1), 0);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT_FALSE(bh_snap_reader_absent(x.r));
    CU_ASSERT_EQUAL(x.begins, 0);
    bh_snap_open(w);
    bh_snap_open(w); /* once is enough, twice does no harm */
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(strstr(bh_snap_reader_error(x.r), "not synced") != NULL);
    CU_ASSERT_FALSE(bh_snap_reader_absent(x.r)); /* it is being filled */
    CU_ASSERT(x.begins == 1 && x.ends == 0 && x.state.op[FX_NODES][1] == 1);
    CU_ASSERT_EQUAL(fx_write_pod(w, 5, 2), 0);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(x.ends == 0 && x.state.op[FX_PODS][5] == 2);
    CU_ASSERT_EQUAL(fx_write_node(w, 2, 3), 0);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_write_node(w, 3, 4), 0);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_OK);
    CU_ASSERT(x.begins == 1 && x.ends == 1 && x.wrong == 0);
    CU_ASSERT(x.state.count[FX_NODES] == 3 && x.state.count[FX_PODS] == 1);
    CU_ASSERT_EQUAL(bh_snap_reader_pos(x.r), bh_snap_head(w));
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

/* Not even at a limit that happens to lie where everything is delivered. */
static void test_end_comes_with_synced_only(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 0, 0);
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    bh_snap_open(w);
    for (unsigned i = 0; i < 10; i++)
        CU_ASSERT_EQUAL(fx_write_node(w, i, i + 1), 0);
    for (unsigned i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(bh_snap_follow(x.r, 1, fx_on_event, &x), BH_SNAP_NOT_READY);
        CU_ASSERT_EQUAL(x.ends, 0);
    }
    CU_ASSERT_EQUAL(x.state.count[FX_NODES], 10);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 1, fx_on_event, &x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(x.ends, 1);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

/* Growth while it fills: whoever follows goes along, whoever was slow starts again. */
static void test_moves_while_filling(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 4096, 64);
    struct fx_state model = {0};
    struct bh_snap_stats st;
    struct fx_reader quick, slow;
    fx_reader_init(&quick, name, NULL);
    fx_reader_init(&slow, name, NULL);
    bh_snap_open(w);
    CU_ASSERT_EQUAL(once(&slow), BH_SNAP_NOT_READY);
    for (uint64_t op = 1; op <= 2000; op++) {
        CU_ASSERT_EQUAL(fx_write(w, 7, op, 300), 0);
        fx_model(&model, 7, op, 300);
        if (op % 5 == 0)
            CU_ASSERT_EQUAL(once(&quick), BH_SNAP_NOT_READY);
    }
    bh_snap_writer_stats(w, &st);
    CU_ASSERT(st.moves > 2 && quick.begins == 1);
    CU_ASSERT_EQUAL(once(&slow), BH_SNAP_OVERRUN);
    CU_ASSERT_EQUAL(once(&slow), BH_SNAP_NOT_READY);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(once(&quick), BH_SNAP_OK);
    CU_ASSERT_EQUAL(once(&slow), BH_SNAP_OK);
    CU_ASSERT(quick.begins == 1 && quick.ends == 1 && fx_equal(&quick.state, &model));
    CU_ASSERT(slow.begins == 2 && slow.ends == 1 && fx_equal(&slow.state, &model));
    CU_ASSERT(quick.wrong == 0 && slow.wrong == 0);
    fx_reader_fini(&quick);
    fx_reader_fini(&slow);
    bh_snap_writer_free(w);
}

/* A writer that goes before it was synced, and its successor. */
static void test_writer_goes_early(void)
{
    const char *name = fx_name();
    struct bh_snap_writer *w = fx_writer(name, 4096, 0);
    struct fx_reader x;
    fx_reader_init(&x, name, NULL);
    bh_snap_open(w);
    CU_ASSERT_EQUAL(fx_write_node(w, 1, 1), 0);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_NOT_READY);
    bh_snap_writer_free(w);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_NOT_READY);
    w = fx_writer(name, 4096, 0);
    bh_snap_open(w);
    CU_ASSERT_EQUAL(fx_write_node(w, 2, 2), 0);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_NEW_INCARNATION);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT_EQUAL(x.ends, 0);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(once(&x), BH_SNAP_OK);
    CU_ASSERT(x.ends == 1 && x.wrong == 0);
    CU_ASSERT(x.state.count[FX_NODES] == 1 && x.state.op[FX_NODES][2] == 2);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

BH_TESTS("common/snapshot/early",
         {"changes come before synced, END does not", test_changes_but_no_end},
         {"END waits for synced, whatever the limit", test_end_comes_with_synced_only},
         {"moves while it fills", test_moves_while_filling},
         {"a writer that goes before it is synced", test_writer_goes_early},
         {"nothing is left in /dev/shm", test_nothing_is_left_in_dev_shm})
