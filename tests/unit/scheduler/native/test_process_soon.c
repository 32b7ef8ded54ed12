/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores that a plugin's process is asked for before its turn: who takes the answer, and that nothing else is said to
 * the process before somebody did. What its end means for the plugin and for pods. The process is a child of the
 * test's, which answers whatever it is asked.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/native/process_int.h"
#include "tests/unit/scheduler/engine/fixture.h"

#define ROWS 64u

struct counts { /* of what the process was asked; shared */
    _Atomic unsigned score, create, destroy, others;
    _Atomic bool dies, asks; /* when it is asked for scores: it ends, it asks back */
    _Atomic uint32_t
        reason;         /* bytes of the reason with which it refuses everything; 0: it does not */
    _Atomic int signal; /* ... or ends by this one; 0: by none */
};
struct one { /* plugin of the file, and its instance */
    struct bh_native_plugin *of;
    struct bh_native in;
    void *self;
};
static struct bh_native_plugin *volatile loaded[64]; /* stays; nobody else knows it */
static unsigned n_loaded;
static struct {
    struct fx f;
    struct bh_cache c;
    struct bh_call call;
    struct bh_px x;
    struct bh_native_file file;
    struct counts *n;
    struct one a, b;
} t;

/* ---- the process ------------------------------------------------------------------------------- */

static void refuse(struct bh_px_area *down, struct bh_px_area *up, uint32_t reason)
{
    struct bh_px_out o = bh_px_main(up);
    struct bh_px_reply *r = bh_px_room(&o, sizeof *r);
    char *text = bh_px_room(&o, reason);

    *r = (struct bh_px_reply){.code = BERTH_ERROR, .n_reason = reason};
    memset(text, 'r', reason);
    bh_px_say(up, down, o.n, false);
}

static void reply(struct bh_px_area *down, struct bh_px_area *up, uint64_t scores)
{
    struct bh_px_out o = bh_px_main(up);
    struct bh_px_reply *r = bh_px_room(&o, sizeof *r);
    const size_t begins = o.n;
    int64_t score[ROWS];

    *r = (struct bh_px_reply){.code = BERTH_SUCCESS};
    for (unsigned i = 0; i < ROWS; i++)
        score[i] = (int64_t)(scores + i);
    if (scores)
        bh_px_put_scores(&o, score, ROWS);
    r->payload = o.n - begins;
    bh_px_say(up, down, o.n, false);
}

static void ask_back(struct bh_px_area *down, struct bh_px_area *up, uint32_t seen)
{
    struct bh_px_out o = bh_px_side(up);

    bh_px_put_u64(&o, BH_PX_UP_INTERN);
    bh_px_put_str(&o, "asked", 5);
    bh_px_say(up, down, o.n, true);
    (void)bh_px_listen(up, down, seen, 0, NULL, NULL);
}

/* Its n-th scores are n, n + 1 ... */
static _Noreturn void process(struct bh_px_area *down, struct bh_px_area *up, struct counts *n)
{
    struct bh_px_request q;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint32_t seen = 0;; seen++) {
        (void)bh_px_listen(up, down, seen, 0, NULL, NULL);
        struct bh_px_in m = bh_px_heard(down, false);
        memcpy(&q, bh_px_get(&m, sizeof q), sizeof q);
        const bool scores = q.op == BH_PX_CALL && q.fn == BH_PX_SCORE_ROWS;
        if (scores && n->dies)
            _exit(3);
        if (scores && n->signal)
            raise(n->signal);
        if (scores && n->asks)
            ask_back(down, up, ++seen);
        n->score += scores;
        n->create += q.op == BH_PX_CREATE;
        n->destroy += q.op == BH_PX_DESTROY;
        n->others += !scores && q.op != BH_PX_CREATE && q.op != BH_PX_DESTROY;
        if (n->reason)
            refuse(down, up, n->reason);
        else
            reply(down, up, scores ? n->score : 0); /* last: it is looked at then */
    }
}

/* ---- the world --------------------------------------------------------------------------------- */

static void *shared(size_t n)
{
    void *p =
        mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CU_ASSERT_FATAL(p != MAP_FAILED);
    return p;
}

static void adopt(struct one *o, const char *name, uint32_t reads)
{
    static char text[1024];
    const uint64_t numbers[] = {
        0,
        reads,
        BERTH_NORMAL_MAX,
        1u << BH_PX_SCORE | 1u << BH_PX_SCORE_ROWS | 1u << BH_PX_PRE_ENQUEUE,
        0,
        0,
        0};
    struct bh_px_out to = {.p = text, .cap = sizeof text};
    struct bh_err err = {0};

    bh_px_put_str(&to, name, strlen(name));
    for (size_t i = 0; i < BH_ARRAY_LEN(numbers); i++)
        bh_px_put_u64(&to, numbers[i]);
    struct bh_px_in m = {.p = text, .end = text + to.n};
    int rc = bh_px_adopt(&t.x, &m, &o->of, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.msg);
    CU_ASSERT_FATAL(rc == 0);
    CU_ASSERT_FATAL(n_loaded < BH_ARRAY_LEN(loaded));
    t.x.plugin[t.x.n_plugins++] = loaded[n_loaded++] = o->of;
    o->in = (struct bh_native){.of = o->of,
                               .tab = bh_engine_symtab(t.f.e),
                               .arena = &t.f.arena,
                               .call = &t.call,
                               .hook = BH_HOOK_SCORE,
                               .may = reads};
}

static int32_t make(struct one *o)
{
    struct berth_why why = {.size = sizeof why};

    return o->of->p.create((struct berth_home *)(void *)&o->in, NULL, &o->self, &why);
}

static void put_node(const char *name)
{
    bh_cache_put_node(&t.c, fx_node_rec(&t.f, name, "'cpu':'4'", "", "", ""));
    bh_cache_sync(&t.c);
}

static void *reads_nothing(void *arg)
{
    return arg;
}

/* As bh_px_start() does. */
static void start_process(void)
{
    atomic_store(&t.x.down->seq, 0);
    t.x.seen = atomic_load(&t.x.up->seq);
    t.x.generation++;
    t.x.sock = -1;
    CU_ASSERT_FATAL(pthread_create(&t.x.reader, NULL, reads_nothing, NULL) == 0);
    t.x.pid = fork();
    if (t.x.pid == 0)
        process(t.x.down, t.x.up, t.n);
    CU_ASSERT_FATAL(t.x.pid > 0);
}

static void setup(uint32_t reads)
{
    memset(&t, 0, sizeof t);
    fx_init(&t.f, NULL);
    bh_cache_init(&t.c, bh_engine_symtab(t.f.e), false);
    put_node("n");
    t.call = (struct bh_call){.cache = &t.c, .arena = &t.f.arena};
    t.n = shared(sizeof *t.n);
    t.file = (struct bh_native_file){.file = "soon.so", .names = "A B", .version = "0"};
    t.x = (struct bh_px){.f = &t.file,
                         .down = shared(BH_PX_AREA_BYTES),
                         .up = shared(BH_PX_AREA_BYTES),
                         .parent = getpid()};
    pthread_mutex_init(&t.x.lock, NULL);
    pthread_mutex_init(&t.x.list, NULL);
    start_process();
    adopt(&t.a, "A", reads);
    adopt(&t.b, "B", reads);
    CU_ASSERT_FATAL(make(&t.a) == BERTH_SUCCESS && t.n->create == 1);
}

static void teardown(void)
{
    char how[128];

    bh_native_inside = NULL;
    (void)bh_px_end(&t.x, 0, how, sizeof how);
    munmap(t.x.down, BH_PX_AREA_BYTES);
    munmap(t.x.up, BH_PX_AREA_BYTES);
    munmap(t.n, sizeof *t.n);
    bh_buf_fini(&t.x.heard);
    bh_cache_fini(&t.c);
    fx_fini(&t.f);
}

static void forgotten(struct one *o)
{
    bh_native_inside = NULL;
    o->of->p.destroy(o->self);
}

/* Rows from that one on. */
static const uint32_t *rows_from(uint32_t first)
{
    static uint32_t rows[ROWS];

    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = first + i;
    return rows;
}

static void soon(struct one *o, uint32_t first)
{
    bh_native_inside = &o->in;
    bh_px_score_soon(o->self, rows_from(first), ROWS);
}

/* Takes the n-th answer. */
static void scores(struct one *o, uint32_t first, int64_t n)
{
    struct berth_why why = {.size = sizeof why};
    int64_t ret[ROWS] = {0};

    bh_native_inside = &o->in;
    CU_ASSERT_EQUAL(o->of->p.score_rows(o->self, (struct berth_call *)(void *)&t.call,
                                        rows_from(first), ROWS, ret, &why),
                    BERTH_SUCCESS);
    CU_ASSERT(ret[0] == n && ret[ROWS - 1] == n + ROWS - 1);
}

/* ---- whose answer it is ------------------------------------------------------------------------ */

static void test_taken(void)
{
    setup(BERTH_READS_NODE);
    soon(&t.a, 0);
    scores(&t.a, 0, 1);
    scores(&t.a, 0, 2); /* once */
    soon(&t.a, 0);
    scores(&t.a, 1, 4); /* of other rows it is another one */
    soon(&t.a, 0);
    t.call.now_ns++;
    scores(&t.a, 0, 6); /* and in another attempt */
    soon(&t.a, 0);
    put_node("m");
    scores(&t.a, 0, 8); /* and of a cluster that is another one */
    soon(&t.a, 0);
    t.call.pre_score_state = &t;
    scores(&t.a, 0, 10); /* and after another PreScore */
    CU_ASSERT(t.n->score == 10 && t.n->others == 0 && t.x.pid > 0);
    t.call.pre_score_state = NULL;
    forgotten(&t.a);
    teardown();
}

/* What would ask back, of which nobody would hear when the attempt ends. */
static void test_not_early(void)
{
    static const uint32_t reads[] = {0, BERTH_READS_NODE | BERTH_READS_PODS,
                                     BERTH_READS_NODE | BERTH_READS_ANNOTATIONS,
                                     BERTH_READS_NODE | BERTH_READS_OTHERS};

    for (size_t i = 0; i < BH_ARRAY_LEN(reads); i++) {
        setup(reads[i]);
        soon(&t.a, 0);
        CU_ASSERT(!t.x.asked);
        scores(&t.a, 0, 1);
        forgotten(&t.a);
        teardown();
    }
}

/* What is not about scores waits for their end, and takes no answer of theirs. */
static void test_meanwhile(void)
{
    setup(BERTH_READS_NODE);
    soon(&t.a, 0);
    CU_ASSERT_FATAL(make(&t.b) == BERTH_SUCCESS);
    CU_ASSERT(t.n->score == 1 && t.n->create == 2);
    scores(&t.b, 0, 2);
    forgotten(&t.b);
    soon(&t.a, 0);
    forgotten(&t.a);
    CU_ASSERT(t.n->score == 3 && t.n->destroy == 2 && !t.x.asked && !t.x.first);
    teardown();
}

/* It ends before anybody comes for the answer: who comes is told, and nobody else waits. */
static void test_dies(void)
{
    struct berth_why why = {.size = sizeof why};
    int64_t ret[ROWS];

    setup(BERTH_READS_NODE);
    t.n->dies = true;
    soon(&t.a, 0);
    CU_ASSERT_EQUAL(t.a.of->p.score_rows(t.a.self, (struct berth_call *)(void *)&t.call,
                                         rows_from(0), ROWS, ret, &why),
                    BERTH_ERROR);
    CU_ASSERT_STRING_EQUAL(why.reason.p, "its process ended with status 3, at Score");
    CU_ASSERT(!t.x.asked && !t.x.pid);
    forgotten(&t.a);
    teardown();
    setup(BERTH_READS_NODE);
    t.n->dies = true;
    soon(&t.a, 0);
    forgotten(&t.a);
    CU_ASSERT(!t.x.asked && !t.x.pid && !t.x.first);
    teardown();
}

/* A question is answered by who comes for the scores; when nobody does, the process begins anew. */
static void test_asks_back(void)
{
    setup(BERTH_READS_NODE);
    t.n->asks = true;
    soon(&t.a, 0);
    scores(&t.a, 0, 1);
    CU_ASSERT(bh_sym_find(t.a.in.tab, "asked", 5) != BH_SYM_NONE);
    soon(&t.a, 0);
    forgotten(&t.a);
    CU_ASSERT(t.n->score == 1 && t.n->destroy == 0 && !t.x.asked && !t.x.pid && !t.x.first);
    teardown();
}

/* A reason that is too long costs as many bytes as show that it is, in a call and when the instance is made again for each
 * pod. */
static void test_long_reasons_are_not_kept(void)
{
    struct berth_why why = {.size = sizeof why};
    int64_t ret[ROWS] = {0};

    setup(BERTH_READS_NODE);
    t.n->reason = 1u << 20;
    bh_native_inside = &t.a.in;
    const size_t before = t.f.arena.used_bytes;
    for (unsigned i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(t.a.of->p.score_rows(t.a.self, (struct berth_call *)(void *)&t.call,
                                             rows_from(0), ROWS, ret, &why),
                        BERTH_ERROR);
        CU_ASSERT_EQUAL(why.reason.n, BH_PX_TEXT_MAX + 1);
    }
    for (unsigned i = 0; i < 8; i++) {
        ((struct bh_px_instance *)t.a.self)->generation = 0; /* as after a restart */
        CU_ASSERT_EQUAL(t.a.of->p.score_rows(t.a.self, (struct berth_call *)(void *)&t.call,
                                             rows_from(0), ROWS, ret, &why),
                        BERTH_ERROR);
        CU_ASSERT(why.reason.n == 17 && memcmp(why.reason.p, "it gave no reason", 17) == 0);
    }
    CU_ASSERT(t.f.arena.used_bytes - before < 16384);
    t.n->reason = 8u << 20;
    (void)t.a.of->p.score_rows(t.a.self, (struct berth_call *)(void *)&t.call, rows_from(0), ROWS,
                               ret, &why);
    t.n->reason = 0;
    scores(&t.a, 0, (int64_t)t.n->score + 1);
    CU_ASSERT(t.x.heard.cap <= BH_PX_HEARD_KEPT); /* nor the copy of the message */
    forgotten(&t.a);
    teardown();
}

/* There is one conversation with a file's process: where two of its plugins score, each would have the other's
 * answer dropped, and be asked twice. */
static void test_two_of_a_file(void)
{
    setup(BERTH_READS_NODE);
    CU_ASSERT_FATAL(make(&t.b) == BERTH_SUCCESS);
    soon(&t.a, 0);
    soon(&t.b, 0);
    scores(&t.a, 0, 1);
    scores(&t.b, 0, 2);
    CU_ASSERT_EQUAL(t.n->score, 2);
    forgotten(&t.b);
    soon(&t.a, 0); /* alone again */
    CU_ASSERT(t.x.asked == t.a.self);
    scores(&t.a, 0, 3);
    forgotten(&t.a);
    teardown();
}

/* ---- its end ----------------------------------------------------------------------------------- */

/* In a callback. */
static void end_by(int sig)
{
    struct berth_why why = {.size = sizeof why};
    int64_t ret[ROWS];

    if (!t.x.pid)
        start_process();
    t.n->signal = sig;
    bh_native_inside = &t.a.in;
    CU_ASSERT_EQUAL(t.a.of->p.score_rows(t.a.self, (struct berth_call *)(void *)&t.call,
                                         rows_from(0), ROWS, ret, &why),
                    BERTH_ERROR);
    CU_ASSERT(!t.x.pid);
}

/* Between callbacks; it is noticed by the next one. */
static void kill_by(int sig)
{
    siginfo_t info;

    CU_ASSERT_FATAL(kill(t.x.pid, sig) == 0);
    CU_ASSERT_FATAL(waitid(P_PID, (id_t)t.x.pid, &info, WEXITED | WNOWAIT) == 0);
}

static void test_external_end_is_not_counted_as_crash(void)
{
    setup(BERTH_READS_NODE);
    snprintf(t.file.sha256, sizeof t.file.sha256, "external"); /* whose crashes are counted */
    for (size_t i = 0; i < BH_ARRAY_LEN(bh_px_external); i++) {
        end_by(bh_px_external[i]);
        CU_ASSERT(strstr(((struct bh_px_instance *)t.a.self)->failure,
                         "its process was ended by another process or the kernel: ") != NULL);
        start_process();
        kill_by(bh_px_external[i]);
        atomic_store(&t.x.closed, true);
        bh_px_check(&t.x);
        CU_ASSERT(!t.x.pid);
    }
    CU_ASSERT_PTR_NULL(t.a.of->aside);
    end_by(SIGABRT);
    end_by(SIGABRT);
    CU_ASSERT_PTR_NULL(t.a.of->aside);
    end_by(SIGABRT);
    CU_ASSERT_PTR_NOT_NULL(t.a.of->aside);
    forgotten(&t.a);
    teardown();
}

static enum bh_permit_verdict verdict_of(struct bh_waiting_pods *w, const char *uid,
                                         const char **text)
{
    const char *plugin;

    return bh_waiting_verdict(bh_waiting_find(w, bh_str_c(uid)), 1, &plugin, text);
}

static void test_pods_that_wait_for_an_ended_process_fail(void)
{
    static const char *const waits[][2] = {
        {"waits", "A"}, {"other", "C"}, {"both", "A"}, {"both", "C"}, {"allowed", "A"}};
    struct bh_waiting_pods w = {0};
    const char *text;

    setup(BERTH_READS_NODE);
    t.a.in.waiting = &w;
    for (size_t i = 0; i < BH_ARRAY_LEN(waits); i++)
        bh_waiting_add(&w, bh_str_c(waits[i][0]), waits[i][1], INT64_MAX);
    CU_ASSERT(bh_waiting_allow(&w, bh_str_c("allowed"), "A"));
    CU_ASSERT(bh_waiting_allow(&w, bh_str_c("both"), "A")); /* C has not */
    kill_by(SIGKILL);
    bh_px_check(&t.x); /* its socket is open: not looked for */
    CU_ASSERT(t.x.pid != 0);
    CU_ASSERT_EQUAL(verdict_of(&w, "waits", &text), BH_PERMIT_WAITS);
    atomic_store(&t.x.closed, true);
    bh_px_check(&t.x);
    CU_ASSERT_EQUAL(verdict_of(&w, "waits", &text), BH_PERMIT_FAILED);
    CU_ASSERT_STRING_EQUAL(text, "running Permit plugin \"A\": its process was ended by another "
                                 "process or the kernel: Killed while the pod waited");
    CU_ASSERT_EQUAL(verdict_of(&w, "other", &text), BH_PERMIT_WAITS);
    CU_ASSERT_EQUAL(verdict_of(&w, "both", &text), BH_PERMIT_WAITS);
    CU_ASSERT_EQUAL(verdict_of(&w, "allowed", &text), BH_PERMIT_ALLOWED);
    forgotten(&t.a);
    teardown();
    bh_waiting_fini(&w);
}

/* Nothing else would wake a pod that PreEnqueue holds back. */
static void test_pod_held_back_without_an_answer_is_tried_again(void)
{
    static struct bh_plugin_asks asks;
    struct berth_why why = {.size = sizeof why};

    setup(BERTH_READS_NODE);
    bh_asks_init(&asks);
    t.a.in.asks = &asks;
    t.call.now_ns = 77;
    setenv("BERTH_PLUGIN_HOST", "/nowhere", 1);
    for (int64_t before_ns = 0; before_ns < 2; before_ns++) {
        if (!t.x.pid)
            start_process();
        kill_by(SIGKILL);
        t.a.in.waker.at_ns = before_ns;
        bh_native_inside = &t.a.in;
        CU_ASSERT_EQUAL(t.a.of->p.pre_enqueue(t.a.self, (struct berth_call *)(void *)&t.call, &why),
                        BERTH_ERROR);
        CU_ASSERT(strstr(why.reason.p, "/nowhere") != NULL);
        /* Its own, earlier time stays. */
        CU_ASSERT_EQUAL(t.a.in.waker.at_ns, before_ns ? before_ns : 77 + INT64_C(1000000000));
    }
    unsetenv("BERTH_PLUGIN_HOST");
    forgotten(&t.a);
    teardown();
    bh_asks_fini(&asks);
}

BH_TESTS("scheduler/native/process_soon", {"whose answer it is", test_taken},
         {"who may ask back is not asked early", test_not_early},
         {"what is asked meanwhile", test_meanwhile}, {"it dies meanwhile", test_dies},
         {"it asks back", test_asks_back},
         {"long reasons are not kept", test_long_reasons_are_not_kept},
         {"two of a file", test_two_of_a_file},
         {"an external end is not counted as a crash", test_external_end_is_not_counted_as_crash},
         {"pods that wait for an ended process fail",
          test_pods_that_wait_for_an_ended_process_fail},
         {"a pod held back without an answer is tried again",
          test_pod_held_back_without_an_answer_is_tried_again})
