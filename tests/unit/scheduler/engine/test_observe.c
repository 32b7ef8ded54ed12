/* SPDX-License-Identifier: Apache-2.0
 *
 * What an observer of the engine is told: points once per pod on both paths, samples of plugins,
 * evaluations that were really made.
 */
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/engine/fixture.h"

struct seen {
    unsigned point[BH_SEEN_COUNT][BH_PENDING + 1], samples[BH_SEEN_COUNT];
    uint64_t ns[BH_SEEN_COUNT];
};
static uint64_t ticks;

static uint64_t tick(void)
{
    return ticks += 1000;
}

static void on_point(void *arg, uint32_t profile, enum bh_seen_point at, enum bh_code code,
                     uint64_t ns)
{
    struct seen *s = arg;

    CU_ASSERT(profile == 0);
    s->point[at][code]++;
    s->ns[at] += ns;
}

static void on_fast(void *arg, uint32_t profile, const uint64_t ns[static 3])
{
    on_point(arg, profile, BH_SEEN_PRE_FILTER, BH_SUCCESS, ns[0]);
    on_point(arg, profile, BH_SEEN_FILTER, BH_SUCCESS, ns[1]);
    on_point(arg, profile, BH_SEEN_SCORE, BH_SUCCESS, ns[2]);
}

static void on_plugin(void *arg, const char *plugin, enum bh_seen_point at, enum bh_code code,
                      uint64_t ns)
{
    CU_ASSERT(*plugin != 0);
    CU_ASSERT(code <= BH_PENDING);
    CU_ASSERT(ns >= 1000);
    ((struct seen *)arg)->samples[at]++;
}

struct watched {
    struct fx f;
    struct seen seen;
    struct bh_engine_observer observer;
};

static void setup(struct watched *w, bool reference)
{
    char name[16];

    memset(w, 0, sizeof *w);
    ticks = 0;
    w->observer = (struct bh_engine_observer){
        .now_ns = tick, .point = on_point, .fast = on_fast, .plugin = on_plugin, .arg = &w->seen};
    fx_init_with(&w->f, NULL,
                 (struct bh_engine_options){
                     .tie_break = BH_TIE_FIRST, .reference = reference, .observer = &w->observer});
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "n%02u", i);
        fx_node(&w->f, name, "'cpu':'4','memory':'8Gi','pods':'10'", "", "", "");
    }
}

static void schedule(struct watched *w, unsigned n, const char *cpu, unsigned flags)
{
    char name[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "p%u", i);
        struct fx_pod p = fx_pod(&w->f, name, cpu, "");
        const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
        const struct bh_decision *d = bh_engine_schedule(w->f.e, &pending, flags, 0);
        if (d->kind == BH_DECIDED && !flags)
            CU_ASSERT(bh_engine_assume(w->f.e, &pending, d->node) == 0);
    }
}

struct fit {
    struct bh_plugin_stats fit, ports;
    unsigned enabled;
};
static void find_plugins(void *arg, const struct bh_plugin_stats *s)
{
    struct fit *f = arg;

    if (bh_streq(s->plugin, "NodeResourcesFit"))
        f->fit = *s;
    if (bh_streq(s->plugin, "NodePorts"))
        f->ports = *s;
    f->enabled++;
}

static void test_fast_path(void)
{
    struct watched w;
    struct fit fit = {0};
    struct bh_profile_stats p;
    struct bh_engine_stats st;

    setup(&w, false);
    schedule(&w, 30, "'cpu':'100m'", 0);
    bh_engine_stats(w.f.e, &st);
    CU_ASSERT(st.fast_cycles == 30);
    CU_ASSERT(bh_engine_profile_stats(w.f.e, 0, &p));
    /* the first two are about 20 nodes, and every tenth is told; the others are summed up */
    CU_ASSERT(p.quiet_fast == 26);
    CU_ASSERT(p.quiet_fast_ns[0] > 0 && p.quiet_fast_ns[1] > 0 && p.quiet_fast_ns[2] > 0);
    CU_ASSERT(p.quiet_fast_ns[0] + p.quiet_fast_ns[1] + p.quiet_fast_ns[2] == 26 * 1000);
    CU_ASSERT(w.seen.point[BH_SEEN_PRE_FILTER][BH_SUCCESS] == 4);
    CU_ASSERT(w.seen.point[BH_SEEN_FILTER][BH_SUCCESS] == 4);
    CU_ASSERT(w.seen.point[BH_SEEN_SCORE][BH_SUCCESS] == 4);
    CU_ASSERT(w.seen.point[BH_SEEN_PRE_SCORE][BH_SUCCESS] == 0);
    CU_ASSERT(w.seen.samples[BH_SEEN_FILTER] > 0);
    CU_ASSERT(w.seen.samples[BH_SEEN_FILTER] < 30 * 20); /* batch forms: calls, not nodes */
    CU_ASSERT(bh_engine_took_ns(w.f.e) > 0);
    /* 20 nodes at first sight, 20 when the results are kept, then those that changed: one a pod */
    bh_engine_each_plugin(w.f.e, find_plugins, &fit);
    CU_ASSERT(fit.fit.n.filter == 20 + 20 + 28);
    CU_ASSERT(fit.fit.n.pre_filter == 2);
    CU_ASSERT(fit.fit.at_filter && fit.fit.at_score && !fit.fit.filters_alone);
    CU_ASSERT(fit.ports.n.pre_filter == 0); /* Skip does not count */
    CU_ASSERT(fit.ports.at_pre_filter && !fit.ports.at_score);
    CU_ASSERT(bh_engine_profile_stats(w.f.e, 0, &p));
    CU_ASSERT_STRING_EQUAL(p.name, "default-scheduler");
    CU_ASSERT(p.cycles == 30);
    CU_ASSERT(p.hinted == 28);
    CU_ASSERT(!bh_engine_profile_stats(w.f.e, 1, &p));
    fx_fini(&w.f);
}

static void test_reference_path(void)
{
    struct watched w;
    struct fit fit = {0};

    setup(&w, true);
    schedule(&w, 12, "'cpu':'100m'", 0);
    CU_ASSERT(w.seen.point[BH_SEEN_PRE_FILTER][BH_SUCCESS] == 12);
    CU_ASSERT(w.seen.point[BH_SEEN_FILTER][BH_SUCCESS] == 12);
    CU_ASSERT(w.seen.point[BH_SEEN_PRE_SCORE][BH_SUCCESS] == 12);
    CU_ASSERT(w.seen.point[BH_SEEN_SCORE][BH_SUCCESS] == 12);
    bh_engine_each_plugin(w.f.e, find_plugins, &fit);
    CU_ASSERT(fit.fit.n.filter == 12 * 20);
    CU_ASSERT(fit.fit.n.score == 12 * 20);
    CU_ASSERT(fit.fit.n.pre_filter == 12);
    /* one cycle in ten is sampled, node by node */
    CU_ASSERT(w.seen.samples[BH_SEEN_FILTER] >= 20);
    CU_ASSERT(w.seen.samples[BH_SEEN_FILTER] <= 2 * BH_SAMPLES_MAX);
    fx_fini(&w.f);
}

/* Nothing fits: Filter succeeded all the same, and PostFilter had its say. */
static void test_no_fit(void)
{
    struct watched w;

    setup(&w, false);
    schedule(&w, 1, "'cpu':'100'", 0);
    CU_ASSERT(w.seen.point[BH_SEEN_FILTER][BH_SUCCESS] == 1);
    CU_ASSERT(w.seen.point[BH_SEEN_POST_FILTER][BH_UNSCHEDULABLE] == 1);
    CU_ASSERT(w.seen.point[BH_SEEN_SCORE][BH_SUCCESS] == 0);
    fx_fini(&w.f);
}

static void test_questions_do_not_count(void)
{
    struct watched w;
    struct bh_profile_stats p;

    setup(&w, false);
    schedule(&w, 3, "'cpu':'100m'", BH_EXPLAIN);
    CU_ASSERT(w.seen.point[BH_SEEN_FILTER][BH_SUCCESS] == 0);
    CU_ASSERT(bh_engine_took_ns(w.f.e) == 0);
    CU_ASSERT(bh_engine_profile_stats(w.f.e, 0, &p) && p.cycles == 0);
    fx_fini(&w.f);
}

static void test_after_the_decision(void)
{
    struct watched w;
    struct bh_profile_stats stats;
    int64_t timeout;

    setup(&w, false);
    struct fx_pod pod = fx_pod(&w.f, "p", "'cpu':'100m'", "");
    const struct bh_pending p = {.pod = pod.rec, .shape = pod.shape};
    const struct bh_decision *d = bh_engine_schedule(w.f.e, &p, 0, 0);
    bh_sym node = d->node;
    CU_ASSERT(bh_engine_assume(w.f.e, &p, node) == 0);
    CU_ASSERT(!bh_engine_reserve(w.f.e, &p, node));
    uint64_t before = ticks;
    CU_ASSERT(!bh_engine_permit(w.f.e, &p, node, &timeout));
    CU_ASSERT(ticks == before); /* no plugin permits: nobody looks at the clock */
    bh_engine_unreserve(w.f.e, &p, node);
    CU_ASSERT(!bh_engine_pre_enqueue(w.f.e, &p));
    CU_ASSERT(w.seen.point[BH_SEEN_RESERVE][BH_SUCCESS] == 1);
    CU_ASSERT(bh_engine_profile_stats(w.f.e, 0, &stats) && stats.quiet_permit == 1);
    CU_ASSERT(stats.quiet_reserve == 0);
    CU_ASSERT(w.seen.point[BH_SEEN_UNRESERVE][BH_SUCCESS] == 1);
    CU_ASSERT(w.seen.point[BH_SEEN_PRE_ENQUEUE][BH_SUCCESS] == 1);
    CU_ASSERT(w.seen.ns[BH_SEEN_RESERVE] > 0); /* the first cycle is sampled */
    struct fx_pod other = fx_pod(&w.f, "q", "'cpu':'100m'", "");
    const struct bh_pending q = {.pod = other.rec, .shape = other.shape};
    CU_ASSERT(bh_engine_assume(w.f.e, &q, bh_engine_schedule(w.f.e, &q, 0, 0)->node) == 0);
    before = ticks; /* no volumes, no claims, not sampled */
    CU_ASSERT(!bh_engine_reserve(w.f.e, &q, node));
    CU_ASSERT(ticks == before);
    CU_ASSERT(bh_engine_profile_stats(w.f.e, 0, &stats) && stats.quiet_reserve == 1);
    fx_fini(&w.f);
}

/* ---- Score that is asked for before its turn --------------------------------------------------- */

static struct {
    uint32_t rows[32], n;
    unsigned told, asked, told_first; /* ... before the one beside it was asked */
    uint64_t ns;
    unsigned samples;
} apart;

static void told_soon(struct bh_call *c BH_UNUSED, const uint32_t *rows, uint32_t n)
{
    CU_ASSERT_FATAL(n <= BH_ARRAY_LEN(apart.rows));
    memcpy(apart.rows, rows, n * sizeof *rows);
    apart.n = n;
    apart.told++;
    ticks += 5000;
}
static void score_apart(struct bh_call *c BH_UNUSED, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    apart.asked++;
    CU_ASSERT(n == apart.n && memcmp(rows, apart.rows, n * sizeof *rows) == 0);
    memset(ret, 0, n * sizeof *ret);
}
static void score_beside(struct bh_call *c BH_UNUSED, const uint32_t *rows BH_UNUSED, uint32_t n,
                         int64_t *ret)
{
    apart.told_first += apart.told > apart.asked;
    memset(ret, 0, n * sizeof *ret);
}
static const struct bh_status *
score_nothing(struct bh_call *c BH_UNUSED, const struct bh_node_info *node BH_UNUSED, int64_t *ret)
{
    *ret = 0;
    return NULL;
}
static const struct bh_plugin apart_plugin = {BH_PLUGIN_HEAD("Apart"),
                                              .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_READS_NODE,
                                              .events = bh_no_events,
                                              .score = score_nothing,
                                              .score_rows = score_apart,
                                              .score_soon = told_soon},
                              beside_plugin = {BH_PLUGIN_HEAD("Beside"),
                                               .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_READS_NODE,
                                               .events = bh_no_events, .score = score_nothing,
                                               .score_rows = score_beside};
const struct bh_plugin *const bh_plugins_extra[] = {&apart_plugin, &beside_plugin, NULL};

static uint32_t all_samples(void *arg BH_UNUSED, uint64_t now_ns BH_UNUSED)
{
    return UINT32_MAX;
}
static void on_apart(void *arg BH_UNUSED, const char *plugin, enum bh_seen_point at,
                     enum bh_code code BH_UNUSED, uint64_t ns)
{
    if (at == BH_SEEN_SCORE && bh_streq(plugin, "Apart")) {
        apart.ns += ns;
        apart.samples++;
    }
}

static void test_soon(void)
{
    struct watched w;

    memset(&apart, 0, sizeof apart);
    memset(&w, 0, sizeof w);
    ticks = 0;
    w.observer = (struct bh_engine_observer){.now_ns = tick,
                                             .point = on_point,
                                             .fast = on_fast,
                                             .samples = all_samples,
                                             .plugin = on_apart,
                                             .arg = &w.seen};
    fx_init_with(&w.f, "{'plugins':{'score':{'enabled':[{'name':'Beside'},{'name':'Apart'}]}}}",
                 (struct bh_engine_options){.tie_break = BH_TIE_FIRST, .observer = &w.observer});
    for (unsigned i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%02u", i);
        fx_node(&w.f, name, "'cpu':'4','memory':'8Gi','pods':'10'", "", "", "");
    }
    schedule(&w, 3, "'cpu':'100m'", 0);
    CU_ASSERT(apart.asked > 0);
    CU_ASSERT_EQUAL(apart.told, apart.asked);
    CU_ASSERT_EQUAL(apart.told_first, apart.asked);
    CU_ASSERT(apart.samples > 0 && apart.samples <= apart.asked); /* of one call each */
    CU_ASSERT(apart.ns >= apart.samples * UINT64_C(5000));        /* with what it did early */
    fx_fini(&w.f);
}

static void test_names(void)
{
    for (unsigned i = 0; i < BH_SEEN_COUNT; i++)
        CU_ASSERT_PTR_NOT_NULL(bh_seen_point_name((enum bh_seen_point)i));
    CU_ASSERT_STRING_EQUAL(bh_seen_point_name(BH_SEEN_ADD_POD), "PreFilterExtensionAddPod");
    CU_ASSERT_STRING_EQUAL(bh_seen_point_name(BH_SEEN_PRE_FLIGHT), "PreBindPreFlight");
}

BH_TESTS("scheduler/engine/observe",
         {"fast path: points once per pod, real evaluations", test_fast_path},
         {"reference path: points once per pod, every node", test_reference_path},
         {"no fit: Filter says Success, PostFilter is seen", test_no_fit},
         {"questions of people do not count", test_questions_do_not_count},
         {"Reserve, Permit, Unreserve, PreEnqueue", test_after_the_decision},
         {"Score that is asked for before its turn", test_soon}, {"names of points", test_names})
