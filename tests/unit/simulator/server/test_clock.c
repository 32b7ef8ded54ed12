/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/server/test_clock.c - timers in order, a clock moved by hand, runs that repeat
 */
#include "tests/unit/simulator/sim_test.h"

#include <errno.h>

#define S  ((int64_t)1000000000)
#define T0 (1000000 * S)

static void manual(struct fixture *f, uint64_t seed)
{
    const struct bh_sim_options o = {
        .manual_clock = true, .clock_ns = T0, .seed = seed, .first_revision = 100};
    fixture_init(f, &o, false);
    CU_ASSERT_EQUAL(bh_sim_advance(f->s, T0), 0);
}

/* ---- timers ---------------------------------------------------------------------------------- */

struct log {
    struct fixture *f;
    char text[200];
    int left;
};
struct mark {
    struct log *log;
    const char *name;
    int64_t again_ns; /* arms one more after this long, while log->left */
};

static void note(void *arg)
{
    struct mark *m = arg;
    size_t n = strlen(m->log->text);
    snprintf(m->log->text + n, sizeof(m->log->text) - n, "%s@%lld ", m->name,
             (long long)((bh_sim_now_ns(m->log->f->s) - T0) / 1000000));
    if (m->log->left > 0 && m->again_ns >= 0) {
        m->log->left--;
        bh_sim_after(m->log->f->s, m->again_ns, note, m);
    }
}

static void timers_fire_in_order(void)
{
    struct fixture f;
    manual(&f, 1);
    struct log log = {.f = &f, .left = 2};
    struct mark a = {&log, "a", -1}, b = {&log, "b", 10 * S / 1000}, c = {&log, "c", -1};
    bh_sim_after(f.s, 50 * S / 1000, note, &a);
    bh_sim_after(f.s, 20 * S / 1000, note, &b);
    struct bh_sim_timer *gone = bh_sim_after(f.s, 30 * S / 1000, note, &c);
    bh_sim_after(f.s, 20 * S / 1000, note, &c);
    bh_sim_cancel(gone);
    CU_ASSERT_EQUAL(bh_sim_next_ns(f.s), T0 + 20 * S / 1000);
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + 19 * S / 1000), 0);
    CU_ASSERT_STRING_EQUAL(log.text, "");
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + S), 0);
    CU_ASSERT_STRING_EQUAL(log.text, "b@20 c@20 b@30 b@40 a@50 ");
    CU_ASSERT_EQUAL(bh_sim_now_ns(f.s), T0 + S);
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0), 0); /* never back */
    CU_ASSERT_EQUAL(bh_sim_now_ns(f.s), T0 + S);
    CU_ASSERT_EQUAL(bh_sim_next_ns(f.s), INT64_MAX);
    fixture_fini(&f);
}

/* Many, armed in a shuffled order, some cancelled: they fire by time, equal ones as armed. */
struct shot {
    int64_t at;
    int nr;
};
static struct shot shots[2000];
static int n_shots;

static void shoot(void *arg)
{
    shots[n_shots++] = *(struct shot *)arg;
}

static void a_heap_of_timers_is_sorted(void)
{
    static struct shot plan[2000];
    static struct bh_sim_timer *armed[2000];
    struct fixture f;
    struct bh_rand r;
    int cancelled = 0;
    manual(&f, 1);
    bh_rand_seed(&r, 42);
    n_shots = 0;
    for (int i = 0; i < 2000; i++) {
        plan[i] = (struct shot){(int64_t)bh_rand_below(&r, 300), i};
        armed[i] = bh_sim_after(f.s, plan[i].at * 1000, shoot, &plan[i]);
    }
    for (int i = 0; i < 2000; i += 3, cancelled++)
        bh_sim_cancel(armed[i]);
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + S), 0);
    CU_ASSERT_EQUAL(n_shots, 2000 - cancelled);
    for (int i = 1; i < n_shots; i++)
        CU_ASSERT(shots[i - 1].at < shots[i].at ||
                  (shots[i - 1].at == shots[i].at && shots[i - 1].nr < shots[i].nr));
    fixture_fini(&f);
}

static void a_circle_is_noticed(void)
{
    struct fixture f;
    manual(&f, 1);
    struct log log = {.f = &f, .left = INT32_MAX};
    struct mark a = {&log, "a", 0};
    bh_sim_after(f.s, 0, note, &a);
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + S), -ELOOP);
    CU_ASSERT_EQUAL(bh_sim_now_ns(f.s), T0);
    fixture_fini(&f);
}

static void the_loop_moves_nothing(void)
{
    struct fixture f;
    manual(&f, 1);
    struct log log = {.f = &f};
    struct mark a = {&log, "a", -1};
    bh_sim_after(f.s, 0, note, &a);
    CU_ASSERT_EQUAL(create(&f, "nodes", "", "{\"metadata\":{\"name\":\"n1\"}}", NULL), 0);
    for (int i = 0; i < 20; i++)
        uv_run(&f.loop, UV_RUN_NOWAIT);
    CU_ASSERT_STRING_EQUAL(log.text, "");
    CU_ASSERT_PTR_NULL(strstr(get(&f, "nodes", "", "n1")->json, "KubeletReady"));
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0), 0);
    CU_ASSERT_STRING_EQUAL(log.text, "a@0 ");
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&f, "nodes", "", "n1")->json, "KubeletReady"));
    fixture_fini(&f);
}

/* ---- runs that repeat ------------------------------------------------------------------------ */

static void all_objects(struct fixture *f, struct bh_buf *out)
{
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        const struct bh_sim_type *t = &bh_sim_types[i];
        struct bh_sim_objs l = {0};
        if ((t->flags & BH_SIM_REVIEW) || t->stored_as)
            continue;
        bh_sim_list(f->s, t, NULL, &l);
        for (size_t k = 0; k < l.n; k++) {
            bh_buf_add(out, l.v[k]->json, l.v[k]->json_n);
            bh_buf_adds(out, "\n");
        }
        bh_sim_objs_fini(&l);
    }
}

static void bind_pods(struct fixture *f)
{
    struct bh_sim_objs l = {0};
    bh_sim_list(f->s, type_of("pods"), NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (!*l.v[i]->node_name)
            CU_ASSERT_EQUAL(
                bh_sim_bind(f->s, l.v[i]->ns, l.v[i]->name, NULL, "n1", NULL, NULL, NULL), 0);
    }
    bh_sim_objs_fini(&l);
}

/* A small world: a roll-out, a job, a deletion, an hour. */
static void run_world(uint64_t seed, struct bh_buf *out)
{
    static const char deployment[] =
        "{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":7,\"selector\":{\"matchLabels\":{"
        "\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}";
    static const char job[] =
        "{\"metadata\":{\"name\":\"once\"},\"spec\":{\"completions\":5,\"parallelism\":2,"
        "\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}}}";
    struct fixture f;
    manual(&f, seed);
    CU_ASSERT_EQUAL(create(&f, "nodes", "", "{\"metadata\":{\"name\":\"n1\"}}", NULL), 0);
    CU_ASSERT_EQUAL(create(&f, "deployments", "default", deployment, NULL), 0);
    CU_ASSERT_EQUAL(create(&f, "jobs", "default", job, NULL), 0);
    for (int i = 1; i <= 20; i++) {
        CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + i * S), 0);
        bind_pods(&f);
    }
    CU_ASSERT_EQUAL(bh_sim_delete(f.s, type_of("deployments"), "default", "web", NULL, NULL), 0);
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + 300 * S), 0);
    bh_buf_addf(out, "%llu %lld\n", (unsigned long long)bh_sim_revision(f.s),
                (long long)bh_sim_next_ns(f.s));
    all_objects(&f, out);
    fixture_fini(&f);
}

static void a_seed_repeats_a_run(void)
{
    struct bh_buf a = {0}, b = {0}, c = {0};
    run_world(7, &a);
    run_world(7, &b);
    run_world(8, &c);
    CU_ASSERT(a.n > 10000);
    CU_ASSERT(a.n == b.n && memcmp(a.p, b.p, a.n) == 0);
    CU_ASSERT(a.n != c.n || memcmp(a.p, c.p, a.n) != 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_buf_str(&a), "\"completionTime\""));
    bh_buf_fini(&a);
    bh_buf_fini(&b);
    bh_buf_fini(&c);
}

static void events_end_by_the_manual_clock(void)
{
    struct fixture f;
    const struct bh_sim_type *events = type_of("events");
    manual(&f, 1);
    bh_sim_event(f.s, get(&f, "namespaces", "", "default"), "Normal", "Test", "me", "hello");
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + 1800 * S), 0);
    CU_ASSERT_EQUAL(bh_sim_count(f.s, events), 1);
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + 5400 * S), 0);
    CU_ASSERT_EQUAL(bh_sim_advance(f.s, T0 + 9000 * S), 0);
    CU_ASSERT_EQUAL(bh_sim_count(f.s, events), 0);
    fixture_fini(&f);
}

BH_TESTS("simulator/clock", {"timers fire in order", timers_fire_in_order},
         {"a heap of timers is sorted", a_heap_of_timers_is_sorted},
         {"a circle is noticed", a_circle_is_noticed},
         {"the loop moves nothing", the_loop_moves_nothing},
         {"a seed repeats a run, to the byte", a_seed_repeats_a_run},
         {"events end by the manual clock", events_end_by_the_manual_clock})
