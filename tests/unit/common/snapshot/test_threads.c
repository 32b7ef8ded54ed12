/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_threads.c - one writer thread, reader threads, one anonymous
 * mapping: the same protocol where ThreadSanitizer can watch it
 */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/common/snapshot/fixture.h"

enum { READERS = 3, OPS = 60000, OBJECTS = 200, SEED = 50 };

struct reader_thread {
    struct fx_reader x;
    unsigned max_events;
    bool ok;
};
static uint64_t final_head; /* atomic */
static uint64_t ready;      /* atomic: readers attached */

static void *read_all(void *arg)
{
    struct reader_thread *t = arg;
    enum bh_snap_outcome o = BH_SNAP_NOT_READY;
    uint64_t end = 0;
    bool told = false;
    while (!end || o != BH_SNAP_OK || bh_snap_reader_pos(t->x.r) < end) {
        struct bh_snap_stats st;
        o = bh_snap_follow(t->x.r, t->max_events, fx_on_event, &t->x);
        if (o == BH_SNAP_CORRUPT)
            return NULL;
        if (!told && t->x.ends) {
            told = true;
            __atomic_fetch_add(&ready, 1, __ATOMIC_ACQ_REL);
        }
        (void)bh_snap_reader_info(t->x.r, &st);
        if (o == BH_SNAP_OK)
            sched_yield();
        end = __atomic_load_n(&final_head, __ATOMIC_ACQUIRE);
    }
    t->ok = true;
    return NULL;
}

static void run(size_t bytes, uint32_t log)
{
    struct reader_thread *t = bh_calloc(READERS, sizeof(*t));
    struct fx_state *model = bh_calloc(1, sizeof(*model));
    struct bh_snap_stats st;
    pthread_t thread[READERS];
    struct bh_snap_writer *w = fx_writer(NULL, bytes, log);
    final_head = ready = 0;
    bh_snap_set_synced(w, true);
    for (unsigned i = 0; i < READERS; i++) {
        fx_reader_init(&t[i].x, NULL, w);
        t[i].max_events = i * 13;
        CU_ASSERT_EQUAL(pthread_create(&thread[i], NULL, read_all, &t[i]), 0);
    }
    uint64_t deadline = fx_in(60);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < READERS && fx_before(deadline))
        sched_yield();
    for (uint64_t op = 1; op <= OPS; op++) {
        CU_ASSERT_EQUAL(fx_write(w, SEED, op, OBJECTS), 0);
        fx_model(model, SEED, op, OBJECTS);
        if (op % 100 == 0) {
            bh_snap_writer_tick(w);
            sched_yield();
        }
    }
    bh_snap_writer_stats(w, &st);
    __atomic_store_n(&final_head, bh_snap_head(w), __ATOMIC_RELEASE);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(thread[i], NULL);
    bh_snap_writer_free(w); /* before its readers */
    for (unsigned i = 0; i < READERS; i++) {
        CU_ASSERT(t[i].ok && t[i].x.wrong == 0);
        CU_ASSERT(fx_equal(&t[i].x.state, model) && t[i].x.shapes == st.shapes);
        printf("# reader %u: %llu events, %llu overruns, %llu moves\n", i,
               (unsigned long long)t[i].x.events, (unsigned long long)t[i].x.overruns,
               (unsigned long long)st.moves);
        fx_reader_fini(&t[i].x);
    }
    free(t);
    free(model);
}

static void test_roomy(void)
{
    run(0, 0);
}

static void test_recycling(void)
{
    run(1 << 18, 4096);
}

static void test_moving(void)
{
    run(4096, 512);
}

BH_TESTS("common/snapshot/threads", {"threads, default sizes", test_roomy},
         {"threads, space recycled all the time", test_recycling},
         {"threads, moving all the time", test_moving})
