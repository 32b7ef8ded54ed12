/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_crash.c - writers and readers killed and stopped at every step
 *
 * The writer is a child process that kills (or stops) itself inside a publication through the crash
 * hook. Whatever the instant: what a reader sees is the state after some number of operations, and
 * at least all those whose put had returned.
 */
#include "tests/unit/common/snapshot/fixture.h"

#define OPS     4000u
#define OBJECTS 60u

struct plan {
    char name[FX_NAME];
    int step;       /* where */
    uint64_t count; /* at which passage */
    int signal;     /* SIGKILL or SIGSTOP */
    uint64_t seed;
    size_t bytes;
    uint32_t log;
    uint64_t done;    /* shared: operations whose call has returned */
    uint64_t synced;  /* shared */
    uint64_t reached; /* shared: the hook struck */
    uint64_t go_on;   /* shared: 0 = writer waits before its last half */
};

static struct plan *plan;

static void strike(int step)
{
    if (step != plan->step || plan->count == 0 || --plan->count > 0)
        return;
    __atomic_store_n(&plan->reached, 1, __ATOMIC_RELEASE);
    kill(getpid(), plan->signal);
}

static int write_plan(void *arg)
{
    plan = arg;
    bh_snap_crash_hook = strike;
    struct bh_snap_writer *w = fx_writer(plan->name, plan->bytes, plan->log);
    for (uint64_t op = 1; op <= OPS; op++) {
        if (fx_write(w, plan->seed, op, OBJECTS) != 0)
            return 1;
        __atomic_store_n(&plan->done, op, __ATOMIC_RELEASE);
        if (op == OPS / 20) {
            bh_snap_set_synced(w, true);
            __atomic_store_n(&plan->synced, 1, __ATOMIC_RELEASE);
        }
        if (op % 50 == 0)
            bh_snap_writer_tick(w);
    }
    bh_snap_writer_tick(w);
    _exit(bh_snap_head(w) ? 0 : 2); /* as it stands: like a kill after the last step */
}

/* Is the reader's state that after n operations, for some n in [from, to]? */
static bool is_prefix(const struct fx_reader *x, uint64_t seed, uint64_t from, uint64_t to)
{
    static struct fx_state model;
    memset(&model, 0, sizeof(model));
    for (uint64_t op = 1; op <= to; op++) {
        fx_model(&model, seed, op, OBJECTS);
        if (op >= from && fx_equal(&x->state, &model))
            return true;
    }
    return from == 0 && x->state.sum == 0;
}

static struct plan *new_plan(int step, uint64_t count, int signal)
{
    struct plan *p = fx_shared(sizeof(*p));
    *p = (struct plan){.step = step,
                       .count = count,
                       .signal = signal,
                       .seed = 31 + (uint64_t)step * 100 + count,
                       .bytes = 8192,
                       .log = 32};
    snprintf(p->name, sizeof(p->name), "%s", fx_name());
    return p;
}

/* A successor with fresh lists takes over; readers of both kinds rebuild from it. */
static void take_over(struct plan *p, struct fx_reader *old)
{
    struct fx_state model = {0};
    struct fx_reader fresh;
    struct bh_snap_writer *w = fx_writer(p->name, 0, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    for (uint64_t op = 1; op <= 300; op++) {
        fx_model(&model, p->seed + 1, op, OBJECTS);
        fx_write(w, p->seed + 1, op, OBJECTS);
    }
    fx_follow(old, 0);                                     /* finds out that there is a successor */
    CU_ASSERT_EQUAL(fx_follow(old, 0), BH_SNAP_NOT_READY); /* but not before it is synced */
    bh_snap_set_synced(w, true);
    fx_reader_init(&fresh, p->name, NULL);
    CU_ASSERT_EQUAL(fx_follow(&fresh, 0), BH_SNAP_OK);
    CU_ASSERT_EQUAL(fx_follow(old, 0), BH_SNAP_OK);
    CU_ASSERT(fx_equal(&fresh.state, &model) && fx_equal(&old->state, &model));
    CU_ASSERT(fresh.shapes == old->shapes && fresh.shapes > 0);
    CU_ASSERT(old->incarnations == (old->begins > 1) && fresh.incarnations == 0);
    fx_reader_fini(&fresh);
    bh_snap_writer_free(w);
}

/* One kill. False when the step was not reached that often. */
static bool kill_writer(int step, uint64_t count)
{
    struct plan *p = new_plan(step, count, SIGKILL);
    struct fx_reader during, after;
    fx_reader_init(&during, p->name, NULL);
    fx_reader_init(&after, p->name, NULL);
    pid_t pid = fx_spawn(write_plan, p);
    int st = 0;
    while (waitpid(pid, &st, WNOHANG) == 0) /* follow it while it lives */
        fx_follow(&during, 5);
    bool reached = p->reached;
    CU_ASSERT(reached ? WIFSIGNALED(st) : WIFEXITED(st) && WEXITSTATUS(st) == 0);
    /* Operations after the synced mark are seen; before it nothing is. */
    enum bh_snap_outcome o = fx_follow(&during, 0);
    enum bh_snap_outcome o2 = fx_follow(&after, 0); /* attaches to a dead writer's segments */
    bool early = step == BH_SNAP_STEP_ANNOUNCED;    /* announced, but not noted yet */
    CU_ASSERT_EQUAL(o, o2);
    CU_ASSERT(o == BH_SNAP_OK || (o == BH_SNAP_NOT_READY && !p->synced));
    CU_ASSERT(p->synced || early || o == BH_SNAP_NOT_READY);
    if (o == BH_SNAP_OK) {
        CU_ASSERT(is_prefix(&during, p->seed, p->done, p->done + 1));
        CU_ASSERT(is_prefix(&after, p->seed, p->done, p->done + 1));
        /* From the directory the change in flight is seen already, from the log not yet. */
        CU_ASSERT((step >= BH_SNAP_STEP_DIRECTORY && step < BH_SNAP_STEP_HEAD) ||
                  during.state.sum == after.state.sum);
    }
    take_over(p, &during);
    CU_ASSERT_EQUAL(during.wrong + after.wrong, 0);
    fx_reader_fini(&during);
    fx_reader_fini(&after);
    munmap(p, sizeof(*p));
    return reached;
}

static void test_writer_killed_at_every_step(void)
{
    static const uint64_t counts[] = {1, 2, 150, 201, 333, 700, 1500};
    unsigned reached[BH_SNAP_STEPS] = {0};
    for (int step = 1; step < BH_SNAP_STEPS; step++)
        for (unsigned i = 0; i < BH_ARRAY_LEN(counts); i++) {
            uint64_t count = step >= BH_SNAP_STEP_HORIZON ? 1 + i : counts[i];
            reached[step] += kill_writer(step, count);
        }
    for (int step = 1; step < BH_SNAP_STEPS; step++) {
        printf("# step %d: %u kills\n", step, reached[step]);
        CU_ASSERT(reached[step] >= 2); /* a plan that is never carried out proves nothing */
    }
}

/* One stop. False when the step was not reached that often. */
static bool stop_writer(int step, uint64_t count)
{
    struct plan *p = new_plan(step, count, SIGSTOP);
    struct fx_reader x;
    fx_reader_init(&x, p->name, NULL);
    pid_t pid = fx_spawn(write_plan, p);
    int st = 0;
    while (waitpid(pid, &st, WUNTRACED | WNOHANG) == 0)
        fx_follow(&x, 5);
    bool stopped = WIFSTOPPED(st);
    if (stopped) {
        if (p->synced) {
            CU_ASSERT_EQUAL(fx_follow(&x, 0), BH_SNAP_OK);
            CU_ASSERT(is_prefix(&x, p->seed, p->done, p->done + 1));
        }
        /* Its lock still holds: it is not dead. */
        struct bh_snap_writer *second = NULL;
        CU_ASSERT_EQUAL(bh_snap_writer_new(p->name, NULL, &second, NULL), -EBUSY);
        kill(pid, SIGCONT);
        while (waitpid(pid, &st, WNOHANG) == 0)
            fx_follow(&x, 5);
    }
    CU_ASSERT(WIFEXITED(st) && WEXITSTATUS(st) == 0);
    CU_ASSERT_EQUAL(fx_follow(&x, 0), BH_SNAP_OK);
    CU_ASSERT(is_prefix(&x, p->seed, OPS, OPS));
    CU_ASSERT_EQUAL(x.wrong, 0);
    take_over(p, &x);
    fx_reader_fini(&x);
    munmap(p, sizeof(*p));
    return stopped;
}

static void test_writer_stopped_at_every_step(void)
{
    for (int step = 1; step < BH_SNAP_STEPS; step++) {
        /* How often the writer recycles and moves depends on how quick the reader is. */
        uint64_t count = step >= BH_SNAP_STEP_HORIZON ? 3 : 400;
        while (count > 0 && !stop_writer(step, count))
            count--;
        CU_ASSERT(count > 0);
    }
}

static void test_successor_killed_while_taking_over(void)
{
    struct fx_reader x;
    struct plan *p = new_plan(BH_SNAP_STEP_HEAD, 900, SIGKILL);
    fx_reader_init(&x, p->name, NULL);
    CU_ASSERT_EQUAL(fx_wait(fx_spawn(write_plan, p)), 128 + SIGKILL);
    CU_ASSERT_EQUAL(fx_follow(&x, 0), BH_SNAP_OK);
    uint64_t sum = x.state.sum, seed = p->seed;
    for (uint64_t count = 1; count < 150; count += 37) { /* each dies before it is synced */
        p->count = count;
        p->done = p->synced = 0;
        p->seed++;
        CU_ASSERT_EQUAL(fx_wait(fx_spawn(write_plan, p)), 128 + SIGKILL);
        CU_ASSERT_EQUAL(fx_follow(&x, 0), count == 1 ? BH_SNAP_OK : BH_SNAP_NOT_READY);
        fx_follow(&x, 0);
        CU_ASSERT_EQUAL(x.state.sum, sum); /* what was known stays known */
    }
    p->seed = seed;
    take_over(p, &x);
    fx_reader_fini(&x);
    munmap(p, sizeof(*p));
}

/* ---- readers --------------------------------------------------------------------------------- */
struct reader_plan {
    char name[FX_NAME];
    uint64_t stop_at_event; /* the reader stops itself in the middle of this delivery; 0 = never */
    uint64_t target;        /* shared: head to reach; 0 = not known yet */
    uint64_t attached, sum, wrong, begins, overruns; /* results */
};
static struct reader_plan *reader_plan;

static void stop_here(struct fx_reader *x, const struct bh_snap_event *ev)
{
    (void)ev;
    if (x->events == reader_plan->stop_at_event)
        kill(getpid(), SIGSTOP);
}

static int read_plan(void *arg)
{
    struct fx_reader x;
    reader_plan = arg;
    fx_reader_init(&x, reader_plan->name, NULL);
    x.on_event = stop_here;
    uint64_t target, deadline = fx_in(60);
    do {
        target = __atomic_load_n(&reader_plan->target, __ATOMIC_ACQUIRE);
        if (fx_follow(&x, 3) == BH_SNAP_CORRUPT || !fx_before(deadline))
            return 1;
        __atomic_store_n(&reader_plan->attached, x.ends, __ATOMIC_RELEASE);
    } while (!target || bh_snap_reader_pos(x.r) < target);
    reader_plan->sum = x.state.sum;
    reader_plan->wrong = x.wrong;
    reader_plan->begins = x.begins;
    reader_plan->overruns = x.overruns;
    fx_reader_fini(&x);
    return 0;
}

static bool wait_until_stopped(pid_t pid)
{
    int st = 0;
    return waitpid(pid, &st, WUNTRACED) == pid && WIFSTOPPED(st);
}

/* The reader is stopped while the writer goes round the ring `laps` times. */
static void stopped_reader(uint64_t stop_at_event, unsigned laps, bool expect_smooth)
{
    enum { LOG = 256 };
    struct reader_plan *rp = fx_shared(sizeof(*rp));
    struct fx_state model = {0};
    struct bh_snap_stats before, after;
    uint64_t op = 0;
    rp->stop_at_event = stop_at_event;
    snprintf(rp->name, sizeof(rp->name), "%s", fx_name());
    struct bh_snap_writer *w = fx_writer(rp->name, 1 << 20, LOG);
    for (; op < 500; op++) {
        fx_model(&model, 41, op + 1, OBJECTS);
        CU_ASSERT_EQUAL(fx_write(w, 41, op + 1, OBJECTS), 0);
    }
    bh_snap_set_synced(w, true);
    pid_t pid = fx_spawn(read_plan, rp);
    if (!stop_at_event) {
        uint64_t deadline = fx_in(30);
        while (!__atomic_load_n(&rp->attached, __ATOMIC_ACQUIRE) && fx_before(deadline))
            ;
        kill(pid, SIGSTOP);
    }
    CU_ASSERT(wait_until_stopped(pid));
    bh_snap_writer_stats(w, &before);
    for (uint64_t end = op + laps * LOG; op < end; op++) {
        fx_model(&model, 41, op + 1, OBJECTS);
        CU_ASSERT_EQUAL(fx_write(w, 41, op + 1, OBJECTS), 0);
        if (op % 64 == 0)
            bh_snap_writer_tick(w);
    }
    bh_snap_writer_stats(w, &after);
    CU_ASSERT_EQUAL(after.moves, before.moves + 1); /* away from it, once */
    rp->target = bh_snap_head(w);
    kill(pid, SIGCONT);
    CU_ASSERT_EQUAL(fx_wait(pid), 0);
    CU_ASSERT_EQUAL(rp->sum, model.sum);
    CU_ASSERT_EQUAL(rp->wrong, 0);
    CU_ASSERT(rp->begins >= 1 && (!expect_smooth || rp->overruns == 0));
    bh_snap_writer_free(w);
    munmap(rp, sizeof(*rp));
}

static void test_reader_stopped_while_idle(void)
{
    stopped_reader(0, 1, true);
    stopped_reader(0, 20, false);
}

static void test_reader_stopped_inside_a_rebuild(void)
{
    for (uint64_t event = 1; event < 60; event += 7) {
        stopped_reader(event, 1, true);
        stopped_reader(event, 10, false);
    }
}

static int attach_and_hang(void *arg)
{
    struct reader_plan *rp = arg;
    struct fx_reader x;
    fx_reader_init(&x, rp->name, NULL);
    if (fx_follow(&x, 0) != BH_SNAP_OK)
        return 1;
    __atomic_fetch_add(&rp->attached, 1, __ATOMIC_ACQ_REL);
    for (;;)
        pause();
}

static void test_dead_readers_free_their_slots(void)
{
    enum { READERS = 64 };
    struct reader_plan *rp = fx_shared(sizeof(*rp));
    struct bh_snap_stats st;
    pid_t pid[READERS];
    snprintf(rp->name, sizeof(rp->name), "%s", fx_name());
    struct bh_snap_writer *w = fx_writer(rp->name, 1 << 16, 64);
    bh_snap_set_synced(w, true);
    for (unsigned round = 1; round <= 2; round++) {
        rp->attached = 0;
        for (int i = 0; i < READERS; i++)
            pid[i] = fx_spawn(attach_and_hang, rp);
        uint64_t deadline = fx_in(60);
        while (__atomic_load_n(&rp->attached, __ATOMIC_ACQUIRE) < READERS && fx_before(deadline))
            ;
        bh_snap_writer_tick(w);
        bh_snap_writer_stats(w, &st);
        CU_ASSERT_EQUAL(st.readers, READERS);
        for (int i = 0; i < READERS; i++) {
            kill(pid[i], SIGKILL);
            CU_ASSERT_EQUAL(fx_wait(pid[i]), 128 + SIGKILL);
        }
        bh_snap_writer_tick(w);
        bh_snap_writer_stats(w, &st);
        CU_ASSERT_EQUAL(st.readers, 0);
        uint64_t moves = st.moves;
        for (uint64_t op = 1; op <= 500; op++) /* nobody is there to lag */
            fx_write_node(w, op % 20, op + round * 1000);
        bh_snap_writer_stats(w, &st);
        CU_ASSERT_EQUAL(st.moves, moves);
    }
    bh_snap_writer_free(w);
    munmap(rp, sizeof(*rp));
}

static int hold_name(void *arg)
{
    struct reader_plan *rp = arg;
    if (!fx_writer(rp->name, 4096, 0))
        return 1;
    __atomic_store_n(&rp->attached, 1, __ATOMIC_RELEASE);
    for (;;)
        pause();
}

static void test_writer_of_another_process_is_respected(void)
{
    struct reader_plan *rp = fx_shared(sizeof(*rp));
    struct bh_snap_writer *w = NULL;
    snprintf(rp->name, sizeof(rp->name), "%s", fx_name());
    pid_t pid = fx_spawn(hold_name, rp);
    uint64_t deadline = fx_in(30);
    while (!__atomic_load_n(&rp->attached, __ATOMIC_ACQUIRE) && fx_before(deadline))
        ;
    CU_ASSERT_EQUAL(bh_snap_writer_new(rp->name, NULL, &w, NULL), -EBUSY);
    kill(pid, SIGKILL);
    CU_ASSERT_EQUAL(fx_wait(pid), 128 + SIGKILL);
    CU_ASSERT_EQUAL(bh_snap_writer_new(rp->name, NULL, &w, NULL), 0);
    CU_ASSERT_EQUAL(fx_left_over(false), 3); /* the dead one's segments are gone */
    bh_snap_writer_free(w);
    munmap(rp, sizeof(*rp));
}

BH_TESTS("common/snapshot/crash",
         {"the writer is killed at every step", test_writer_killed_at_every_step},
         {"the writer is stopped at every step", test_writer_stopped_at_every_step},
         {"a successor dies while it takes over", test_successor_killed_while_taking_over},
         {"a reader is stopped while idle, the ring wraps", test_reader_stopped_while_idle},
         {"a reader is stopped inside a rebuild, the ring wraps",
          test_reader_stopped_inside_a_rebuild},
         {"dead readers free their slots", test_dead_readers_free_their_slots},
         {"a writer of another process is respected", test_writer_of_another_process_is_respected},
         {"nothing is left in /dev/shm", test_nothing_is_left_in_dev_shm})
