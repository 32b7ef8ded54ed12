/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_random.c - random updates, read by other processes, against a
 * plain model: at random prefixes and at the end. `make check-deep` makes a million of them.
 */
#include "common/snapshot/layout.h"
#include "tests/unit/common/snapshot/fixture.h"

#include <stdlib.h>
#include <unistd.h>

#define OPS_MAX 1000000u
#define OBJECTS 3000u
#define SEED    20u

/* The writer notes the model's sum for each log position at which an operation ended. */
struct shared {
    uint64_t final_head;  /* atomic; 0 = still writing */
    uint64_t synced_head; /* atomic; position at synced, plus one; 0 = not yet */
    uint64_t sum[4 * OPS_MAX];
};
struct reader_args {
    const char *name;
    struct shared *sh;
    unsigned max_events;
    uint64_t compared; /* atomic; result, through shared memory */
};

static uint64_t n_ops(void)
{
#ifdef BH_SNAP_TSAN /* 30 times slower, and blind between processes: test_threads is for it */
    return 50000;
#else
    return getenv("BERTH_TEST_LONG") ? OPS_MAX : 200000;
#endif
}

static uint64_t sum_or_mark(uint64_t sum)
{
    return sum ? sum : 1; /* 0 = no operation ended here */
}

static int read_all(void *arg)
{
    struct reader_args *a = arg;
    struct fx_reader x;
    uint64_t end = 0, compared_at = 0, deadline = fx_in(90);
    fx_reader_init(&x, a->name, NULL);
    enum bh_snap_outcome o = BH_SNAP_NOT_READY;
    while (!end || o != BH_SNAP_OK || bh_snap_reader_pos(x.r) < end) {
        o = bh_snap_follow(x.r, a->max_events, fx_on_event, &x);
        if (o == BH_SNAP_CORRUPT || o == BH_SNAP_VERSION) {
            fprintf(stderr, "# %s\n", bh_snap_reader_error(x.r));
            return 1;
        }
        x.overruns += o == BH_SNAP_OVERRUN;
        uint64_t synced = __atomic_load_n(&a->sh->synced_head, __ATOMIC_ACQUIRE);
        if (x.ends && (!synced || x.end_pos + 1 < synced))
            return 7; /* complete before everything was there */
        /* At END itself the change in flight may be in already. */
        if ((o == BH_SNAP_OK || o == BH_SNAP_MORE) && !x.rebuilding && x.last_pos > x.end_pos) {
            uint64_t sum = __atomic_load_n(&a->sh->sum[bh_snap_reader_pos(x.r)], __ATOMIC_ACQUIRE);
            if (sum && sum != sum_or_mark(x.state.sum))
                return 2; /* not a prefix */
            if (sum && bh_snap_reader_pos(x.r) != compared_at)
                __atomic_add_fetch(&a->compared, 1, __ATOMIC_RELAXED);
            compared_at = bh_snap_reader_pos(x.r);
        }
        if (!fx_before(deadline))
            return 3;
        end = __atomic_load_n(&a->sh->final_head, __ATOMIC_ACQUIRE);
    }
    struct bh_snap_stats st;
    struct fx_state model = {0}; /* the plain model, in this process */
    for (uint64_t op = 1, ops = n_ops(); op <= ops; op++)
        fx_model(&model, SEED, op, OBJECTS);
    if (x.wrong)
        return 4;
    if (!fx_equal(&x.state, &model))
        return 5;
    if (!bh_snap_reader_info(x.r, &st) || x.shapes != st.shapes)
        return 6;
    fx_reader_fini(&x);
    return 0;
}

static bool all_compared(const struct reader_args *args, int n)
{
    int i = 0;
    while (i < n && __atomic_load_n(&args[i].compared, __ATOMIC_RELAXED) > 0)
        i++;
    return i == n;
}

/* early: readers may follow from the start, and it is synced when a third is written. */
static void run(size_t bytes, uint32_t log, bool early)
{
    enum { READERS = 3 };
    static const unsigned max_events[READERS] = {0, 17, 1000};
    const uint64_t ops = n_ops();
    char name[FX_NAME];
    struct fx_state model = {0};
    struct bh_snap_stats st;
    struct shared *sh = fx_shared(sizeof(*sh));
    struct reader_args *args = fx_shared(READERS * sizeof(*args));
    pid_t pid[READERS];
    snprintf(name, sizeof(name), "%s", fx_name());
    for (int i = 0; i < READERS; i++) {
        args[i] = (struct reader_args){.name = name, .sh = sh, .max_events = max_events[i]};
        pid[i] = fx_spawn(read_all, &args[i]);
    }
    struct bh_snap_writer *w = fx_writer(name, bytes, log);
    if (early)
        bh_snap_open(w);
    unsigned failed = 0;
    for (uint64_t op = 1; op <= ops; op++) {
        if (op == (early ? ops / 3 : 1)) {
            __atomic_store_n(&sh->synced_head, bh_snap_head(w) + 1, __ATOMIC_RELEASE);
            bh_snap_set_synced(w, true);
        }
        failed += fx_write(w, SEED, op, OBJECTS) != 0;
        fx_model(&model, SEED, op, OBJECTS);
        uint64_t head = bh_snap_head(w);
        bh_assert(head < BH_ARRAY_LEN(sh->sum));
        __atomic_store_n(&sh->sum[head], sum_or_mark(model.sum), __ATOMIC_RELEASE);
        if (op % 1000 == 0)
            bh_snap_writer_tick(w);
        /* A tiny ring runs away from a reader that hardly gets a processor: now they walk. */
        if (op > ops / 3 * 2 && !all_compared(args, READERS))
            usleep(1000);
    }
    CU_ASSERT_EQUAL(failed, 0);
    bh_snap_writer_stats(w, &st);
    CU_ASSERT(st.nodes == model.count[FX_NODES] && st.pods == model.count[FX_PODS]);
    CU_ASSERT(st.shapes > FX_VARIANTS && st.shapes <= FX_VARIANTS + OBJECTS);
    __atomic_store_n(&sh->final_head, bh_snap_head(w), __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++) {
        int result = fx_wait(pid[i]);
        CU_ASSERT_EQUAL(result, 0);
        printf("# reader %d: result %d, %llu prefixes compared, %llu moves\n", i, result,
               (unsigned long long)args[i].compared, (unsigned long long)st.moves);
        CU_ASSERT(args[i].compared > 0);
    }
    bh_snap_writer_free(w);
    munmap(sh, sizeof(*sh));
    munmap(args, READERS * sizeof(*args));
}

static void test_default_sizes(void)
{
    run(0, 0, false);
}

static void test_tiny_segment_and_ring(void)
{
    run(4096, 256, true);
}

BH_TESTS("common/snapshot/random", {"random updates, default sizes", test_default_sizes},
         {"random updates, tiny segment and ring, followed early", test_tiny_segment_and_ring},
         {"nothing is left in /dev/shm", test_nothing_is_left_in_dev_shm})
