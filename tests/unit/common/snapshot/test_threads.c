/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_threads.c - one writer thread, reader threads, one mapping: the
 * same protocol where ThreadSanitizer can watch it
 */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/common/snapshot/fixture.h"

/* ThreadSanitizer knows memory by its address, and orders what goes through a file only where both
 * use one descriptor. So the linker has all threads get one mapping of each object (--wrap in
 * tools/targets.mk), and the slots' system calls take and release one word. */
struct shared_map {
    void *base;
    size_t bytes;
    ino_t inode;
    unsigned refs;
};
static struct shared_map maps[64];
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t slots_word; /* atomic */

void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off);
int __real_munmap(void *base, size_t n);
int __wrap_munmap(void *base, size_t n);
ssize_t __real_pread(int fd, void *p, size_t n, off_t off);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t off);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t off);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t off);

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
    struct shared_map *m = NULL;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return __real_mmap(at, n, prot, flags, fd, off);
    pthread_mutex_lock(&maps_lock);
    for (size_t i = 0; i < BH_ARRAY_LEN(maps); i++)
        if (maps[i].refs && maps[i].inode == st.st_ino)
            m = &maps[i];
    for (size_t i = 0; i < BH_ARRAY_LEN(maps) && !m; i++)
        if (!maps[i].refs) {
            m = &maps[i];
            *m = (struct shared_map){__real_mmap(at, n, prot, flags, fd, off), n, st.st_ino, 0};
        }
    bh_assert(m && m->base != MAP_FAILED && m->bytes >= n); /* the writer came first */
    m->refs++;
    pthread_mutex_unlock(&maps_lock);
    return m->base;
}

int __wrap_munmap(void *base, size_t n)
{
    int rc = -1;
    pthread_mutex_lock(&maps_lock);
    for (size_t i = 0; i < BH_ARRAY_LEN(maps) && rc < 0; i++)
        if (maps[i].refs && maps[i].base == base)
            rc = --maps[i].refs ? 0 : __real_munmap(base, maps[i].bytes);
    pthread_mutex_unlock(&maps_lock);
    return rc < 0 ? __real_munmap(base, n) : rc;
}

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t off)
{
    (void)__atomic_fetch_add(&slots_word, 1, __ATOMIC_ACQ_REL);
    ssize_t got = __real_pread(fd, p, n, off);
    (void)__atomic_fetch_add(&slots_word, 1, __ATOMIC_ACQ_REL);
    return got;
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t off)
{
    (void)__atomic_fetch_add(&slots_word, 1, __ATOMIC_ACQ_REL);
    ssize_t put = __real_pwrite(fd, p, n, off);
    (void)__atomic_fetch_add(&slots_word, 1, __ATOMIC_ACQ_REL);
    return put;
}

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
