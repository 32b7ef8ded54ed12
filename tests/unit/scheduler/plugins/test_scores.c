/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores: the worked examples of the reference, and the arithmetic below them.
 */
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/noderesources/fit.h"
#include "tests/unit/scheduler/engine/fixture.h"

/* a 4/8Gi with 1/2Gi used; b 4/8Gi/8 gpu with 500m/1Gi/2 used; c 3/10000 bytes, empty. */
static void three_nodes(struct fx *f)
{
    fx_node(f, "a", "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
    fx_node(f, "b", "'cpu':'4','memory':'8Gi','pods':'110','nvidia.com/gpu':'8'", "", "", "");
    fx_node(f, "c", "'cpu':'3','memory':'10000','pods':'110'", "", "", "");
    fx_place(f, fx_pod(f, "ea", "'cpu':'1','memory':'2Gi'", ""), "a");
    fx_place(f, fx_pod(f, "eb", "'cpu':'500m','memory':'1Gi','nvidia.com/gpu':'2'", ""), "b");
}

/* Scores through the plugin itself, because the filter would reject most of these pods from c. */
static void expect_fit(const char *args, struct fx_pod (*make)(struct fx *), int a, int b, int c)
{
    struct fx f;
    const int want[] = {a, b, c};
    const char *profile =
        "{'schedulerName':'default-scheduler','plugins':{'filter':{'disabled':[{'name':'*'}]},"
        "'preFilter':{'disabled':[{'name':'*'}]},'score':{'disabled':[{'name':'DynamicResources'}]}"
        "},"
        "'pluginConfig':[{'name':'NodeResourcesFit','args':%s}]}";
    char text[1024];

    snprintf(text, sizeof text, profile, args);
    fx_init(&f, text);
    three_nodes(&f);
    const struct bh_decision *d = fx_schedule(&f, make(&f));
    CU_ASSERT_FATAL(d->n_scores == 3);
    for (unsigned i = 0; i < 3; i++)
        FX_INT(fx_score(&f, d, (const char *[]){"a", "b", "c"}[i], "NodeResourcesFit", true),
               want[i]);
    fx_fini(&f);
}

static struct fx_pod plain(struct fx *f)
{
    return fx_pod(f, "p", "'cpu':'500m','memory':'1Gi'", "");
}
static struct fx_pod nothing(struct fx *f)
{
    return fx_pod(f, "p", "", "");
}
static struct fx_pod zero(struct fx *f)
{
    return fx_pod(f, "p", "'cpu':'0','memory':'0'", "");
}
static struct fx_pod gpu(struct fx *f)
{
    return fx_pod(f, "p", "'cpu':'500m','memory':'1Gi','nvidia.com/gpu':'2'", "");
}
static struct fx_pod two(struct fx *f)
{
    return fx_pod_full(f, "p", "",
                       "'containers':[{'name':'a','resources':{'requests':{'cpu':'500m'}}},"
                       "{'name':'b','resources':{'requests':{'memory':'1Gi'}}}]",
                       "");
}
static struct fx_pod ephemeral(struct fx *f)
{
    return fx_pod(f, "p", "'ephemeral-storage':'1Gi'", "");
}
static struct fx_pod pod_level(struct fx *f)
{
    return fx_pod_full(
        f, "p", "",
        "'resources':{'requests':{'cpu':'2','memory':'4Gi'}},'containers':[{'name':'c'}]", "");
}

#define LEAST "{'scoringStrategy':{'type':'LeastAllocated'}}"
#define MOST  "{'scoringStrategy':{'type':'MostAllocated'}}"
#define GPU3                                                                                       \
    "'resources':[{'name':'cpu','weight':1},{'name':'memory','weight':1},{'name':'nvidia.com/"     \
    "gpu',"                                                                                        \
    "'weight':3}]"
#define LEAST_GPU "{'scoringStrategy':{'type':'LeastAllocated'," GPU3 "}}"
#define RATIO(points)                                                                              \
    "{'scoringStrategy':{'type':'RequestedToCapacityRatio'," GPU3 ",'requestedToCapacityRatio':{"  \
    "'shape':[" points "]}}}"
#define UP RATIO("{'utilization':0,'score':0},{'utilization':100,'score':10}")
#define DOWN                                                                                       \
    RATIO("{'utilization':0,'score':10},{'utilization':40,'score':7},{'utilization':100,'score':"  \
          "0}")

static void test_least_allocated(void)
{
    expect_fit(LEAST, plain, 62, 75, 41);
    expect_fit(LEAST, nothing, 72, 85, 48);
    expect_fit(LEAST, zero, 75, 87, 100);
    expect_fit(LEAST, gpu, 62, 75, 41);
    expect_fit(LEAST, two, 60, 72, 40);
    expect_fit(LEAST, ephemeral, 72, 85, 48);
    expect_fit(LEAST, pod_level, 72, 85, 48); /* pod-level requests do not score */
    expect_fit(LEAST_GPU, plain, 62, 75, 41);
    expect_fit(LEAST_GPU, gpu, 62, 60, 41);
}

static void test_most_allocated(void)
{
    expect_fit(MOST, plain, 37, 25, 58);
    expect_fit(MOST, nothing, 27, 14, 51);
    expect_fit(MOST, zero, 25, 12, 0);
    expect_fit(MOST, two, 39, 27, 60);
    expect_fit(MOST, pod_level, 27, 14, 51);
}

static void test_ratio(void)
{
    expect_fit(UP, plain, 37, 25, 58);
    expect_fit(UP, nothing, 27, 15, 52);
    expect_fit(UP, zero, 25, 12, 0);
    expect_fit(UP, gpu, 37, 40, 58);
    expect_fit(UP, two, 40, 27, 60);
    expect_fit(DOWN, plain, 73, 82, 88);
    expect_fit(DOWN, nothing, 80, 90, 98);
    expect_fit(DOWN, zero, 82, 91, 100);
    expect_fit(DOWN, gpu, 73, 68, 88);
    expect_fit(DOWN, two, 71, 80, 85);
    expect_fit(DOWN, ephemeral, 80, 90, 98);
}

static void expect_balance(const char *alloc, const char *used, const char *pod, int want)
{
    struct fx f;

    fx_init(
        &f,
        "{'schedulerName':'default-scheduler','plugins':{'filter':{'disabled':[{'name':'*'}]}}}");
    fx_node(&f, "n", alloc, "", "", "");
    fx_node(&f, "other", alloc, "", "", "");
    if (*used)
        fx_place(&f, fx_pod(&f, "e", used, ""), "n");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", pod, ""));
    FX_INT(fx_score(&f, d, "n", "NodeResourcesBalancedAllocation", true), want);
    fx_fini(&f);
}

static void test_balanced(void)
{
    const char *node = "'cpu':'4','memory':'8Gi','pods':'110'";

    expect_balance(node, "", "'cpu':'1','memory':'2Gi'", 75);
    expect_balance(node, "", "'cpu':'2','memory':'1Gi'", 65);
    expect_balance(node, "'cpu':'2','memory':'0'", "'cpu':'100m','memory':'4Gi'", 86);
    expect_balance(node, "'cpu':'2','memory':'1Gi'", "'cpu':'1','memory':'128Mi'", 69);
    expect_balance(node, "", "'cpu':'4','memory':'0'", 50);
    expect_balance("'cpu':'3','memory':'10000','pods':'110'", "", "'cpu':'500m','memory':'1Gi'",
                   54);
    expect_balance(node, "", "'nvidia.com/gpu':'1'",
                   -1); /* none of the configured resources: skips */
    expect_balance(node, "", "", -1);
    expect_balance("'cpu':'100','memory':'100','pods':'110'", "", "'memory':'68'",
                   50 + (50 + 65 - 100) / 2);
}

static void test_balanced_three(void)
{
    struct fx f;

    fx_init(
        &f,
        "{'schedulerName':'default-scheduler','pluginConfig':[{'name':"
        "'NodeResourcesBalancedAllocation','args':{'resources':[{'name':'cpu'},{'name':'memory'},"
        "{'name':'nvidia.com/gpu'}]}}]}");
    three_nodes(&f);
    fx_node(&f, "c", "'cpu':'4','memory':'8Gi','pods':'110','nvidia.com/gpu':'8'", "", "", "");
    FX_INT(fx_score(&f, fx_schedule(&f, gpu(&f)), "b", "NodeResourcesBalancedAllocation", true),
           72);
    fx_fini(&f);
}

static void test_taint_scores(void)
{
    struct {
        const char *toleration;
        int a, b, c;
    } cases[] = {
        {"", 100, 67, 0},
        {"'tolerations':[{'key':'x','operator':'Exists','effect':'NoSchedule'}]", 100, 67, 0},
        {"'tolerations':[{'key':'x','operator':'Exists'}]", 100, 100, 0},
        {"'tolerations':[{'operator':'Exists'}]", 100, 100, 100},
    };
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
    fx_node(&f, "b", "'cpu':'4','memory':'8Gi','pods':'110'", "",
            "'taints':[{'key':'x','effect':'PreferNoSchedule'}]", "");
    fx_node(
        &f, "c", "'cpu':'4','memory':'8Gi','pods':'110'", "",
        "'taints':[{'key':'x','effect':'PreferNoSchedule'},{'key':'y','effect':'PreferNoSchedule'},"
        "{'key':'z','effect':'PreferNoSchedule'}]",
        "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "", cases[i].toleration));
        FX_INT(fx_score(&f, d, "a", "TaintToleration", false), 3 * cases[i].a);
        FX_INT(fx_score(&f, d, "b", "TaintToleration", false), 3 * cases[i].b);
        FX_INT(fx_score(&f, d, "c", "TaintToleration", false), 3 * cases[i].c);
    }
    fx_fini(&f);
}

static const char *preferred(struct fx *f, const char *terms)
{
    return bh_arena_printf(
        &f->arena,
        "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[%s]}}",
        terms);
}

static void test_preferred_affinity(void)
{
#define TERM(w, k, op, v)                                                                          \
    "{'weight':" w ",'preference':{'matchExpressions':[{'key':'" k "','operator':'" op             \
    "','values':[" v "]}]}}"
    struct {
        const char *terms;
        int raw[3], norm[3];
    } cases[] = {
        {TERM("2", "z", "In", "'1'") "," TERM("5", "d", "Exists",
                                              "") ",{'weight':50,'preference':{}}",
         {2, 0, 7},
         {28, 0, 100}},
        {TERM("1", "q", "Exists", ""), {0, 0, 0}, {0, 0, 0}},
        {TERM("3", "z", "NotIn", "'1'") "," TERM("1", "n", "Gt", "'5'"), {1, 3, 0}, {33, 100, 0}},
    };
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", "'cpu':'4','memory':'8Gi','pods':'110'", "'z':'1','n':'7'", "", "");
    fx_node(&f, "b", "'cpu':'4','memory':'8Gi','pods':'110'", "'z':'2','n':'x'", "", "");
    fx_node(&f, "c", "'cpu':'4','memory':'8Gi','pods':'110'", "'z':'1','d':'ssd'", "", "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const struct bh_decision *d =
            fx_schedule(&f, fx_pod(&f, "p", "", preferred(&f, cases[i].terms)));
        for (unsigned k = 0; k < 3; k++) {
            const char *node = (const char *[]){"a", "b", "c"}[k];
            FX_INT(fx_score(&f, d, node, "NodeAffinity", true), cases[i].raw[k]);
            FX_INT(fx_score(&f, d, node, "NodeAffinity", false), 2 * cases[i].norm[k]);
        }
    }
    FX_INT(fx_score(&f, fx_schedule(&f, fx_pod(&f, "q", "", "")), "a", "NodeAffinity", true), -1);
    const struct bh_decision *d =
        fx_schedule(&f, fx_pod(&f, "r", "", preferred(&f, TERM("1", "z", "Near", "'1'"))));
    CU_ASSERT(d->kind == BH_DECISION_ERROR);
    FX_STR(d->reason, "SchedulerError");
    CU_ASSERT(strncmp(d->message, "running PreScore plugin \"NodeAffinity\": ", 40) == 0);
    fx_fini(&f);
}

static void test_images(void)
{
#define MI(n) #n "000000"
    struct {
        const char *containers, *volumes;
        int want[4];
    } cases[] = {
        {"{'name':'c','image':'r/x'}", "", {10, 10, 0, 0}},
        {"{'name':'c','image':'r/x'},{'name':'d','image':'r/y:v1'}", "", {5, 5, 0, 0}},
        {"{'name':'c','image':'r/z:v1'}", "", {0, 0, 100, 0}},
        {"{'name':'c','image':'r/z:v1'},{'name':'d','image':'r/x'}", "", {5, 5, 49, 0}},
        {"{'name':'c','image':'r/y:v1'}",
         ",'volumes':[{'name':'v','image':{'reference':'r/z:v1'}}]",
         {0, 0, 100, 0}},
    };
    struct fx f;
    const char *n = "'cpu':'4','memory':'8Gi','pods':'110'";
    const char *x = "{'names':['r/x:latest'],'sizeBytes':262144000}";

    fx_init(&f, NULL);
    fx_node(
        &f, "a", n, "", "",
        bh_arena_printf(&f.arena, "'images':[%s,{'names':['r/y:v1'],'sizeBytes':41943040}]", x));
    fx_node(&f, "b", n, "", "", bh_arena_printf(&f.arena, "'images':[%s]", x));
    fx_node(&f, "c", n, "", "", "'images':[{'names':['r/z:v1'],'sizeBytes':4194304000}]");
    fx_node(&f, "d", n, "", "", "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const char *spec =
            bh_arena_printf(&f.arena, "'containers':[%s]%s", cases[i].containers, cases[i].volumes);
        const struct bh_decision *d = fx_schedule(&f, fx_pod_full(&f, "p", "", spec, ""));
        for (unsigned k = 0; k < 4; k++)
            FX_INT(fx_score(&f, d, (const char *[]){"a", "b", "c", "d"}[k], "ImageLocality", true),
                   cases[i].want[k]);
    }
    fx_fini(&f);
}

/* Nobody tells the node with the image that a second one has it now: its count is as old as its
 * copy. */
static void test_image_counts_are_stale(void)
{
    const char *n = "'cpu':'4','memory':'8Gi','pods':'110'";
    const char *big = "'images':[{'names':['r/z:v1'],'sizeBytes':2000000000}]";
    const char *spec = "'containers':[{'name':'c','image':'r/z:v1'}]";
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", n, "", "", big);
    fx_node(&f, "b", n, "", "", "");
    const struct bh_decision *d = fx_schedule(&f, fx_pod_full(&f, "p", "", spec, ""));
    int64_t half = fx_score(&f, d, "a", "ImageLocality", true);
    fx_node(&f, "b", n, "", "", big);
    d = fx_schedule(&f, fx_pod_full(&f, "q", "", spec, ""));
    FX_INT(fx_score(&f, d, "a", "ImageLocality", true), half); /* still counts one node of two */
    CU_ASSERT(fx_score(&f, d, "b", "ImageLocality", true) > half);
    fx_place(&f, fx_pod(&f, "e", "", ""), "a"); /* a is copied again */
    d = fx_schedule(&f, fx_pod_full(&f, "r", "", spec, ""));
    CU_ASSERT(fx_score(&f, d, "a", "ImageLocality", true) > half);
    fx_fini(&f);
}

static void test_normalize(void)
{
    int64_t v[] = {1, 2, 3, 7}, w[] = {1, 2, 3, 7}, zero_[] = {0, 0}, zeros[] = {0, 0};
    const int64_t fwd[] = {14, 28, 42, 100}, rev[] = {86, 72, 58, 0};

    bh_default_normalize(v, 4, false);
    bh_default_normalize(w, 4, true);
    CU_ASSERT(memcmp(v, fwd, sizeof v) == 0 && memcmp(w, rev, sizeof w) == 0);
    bh_default_normalize(zero_, 2, false);
    bh_default_normalize(zeros, 2, true);
    CU_ASSERT(zero_[0] == 0 && zeros[1] == 100);
}

static void test_broken_line(void)
{
    const struct bh_fit_point fall[] = {{0, 100}, {30, 50}, {70, 0}}, rise[] = {{20, 10}, {90, 80}};
    const int64_t x[] = {1, 7, 10, 29, 31, 69, 71}, y[] = {99, 89, 84, 52, 49, 2, 0};

    for (unsigned i = 0; i < BH_ARRAY_LEN(x); i++)
        FX_INT(bh_broken_line(fall, 3, x[i]), y[i]);
    FX_INT(bh_broken_line(rise, 2, 0), 10);
    FX_INT(bh_broken_line(rise, 2, 20), 10);
    FX_INT(bh_broken_line(rise, 2, 21), 11);
    FX_INT(bh_broken_line(rise, 2, 100), 80);
}

static void test_percent_is_exact(void)
{
    struct bh_rand r;

    bh_rand_seed(&r, 42);
    for (unsigned i = 0; i < 300000; i++) {
        int64_t whole = (int64_t)(bh_rand_u64(&r) >> (1 + bh_rand_below(&r, 62)));
        whole = whole ? whole : 1;
        int64_t part = (int64_t)bh_rand_below(&r, (uint64_t)whole + 1);
        if (i % 3 == 0) /* close below a full percent: where rounding up would show */
            part = (int64_t)((bh_sum)whole * (int64_t)bh_rand_below(&r, 101) / 100);
        if (bh_percent(part, whole) != (int64_t)((bh_sum)part * 100 / whole))
            CU_FAIL_FATAL("percent differs from exact arithmetic");
    }
    FX_INT(bh_percent(INT64_MAX, INT64_MAX), 100);
    FX_INT(bh_percent(INT64_MAX - 1, INT64_MAX), 99);
}

BH_TESTS("scheduler/plugins/scores", {"LeastAllocated, worked examples", test_least_allocated},
         {"MostAllocated, worked examples", test_most_allocated},
         {"RequestedToCapacityRatio, worked examples", test_ratio},
         {"BalancedAllocation of two resources", test_balanced},
         {"BalancedAllocation of three resources", test_balanced_three},
         {"TaintToleration counts what is not tolerated", test_taint_scores},
         {"NodeAffinity sums weights", test_preferred_affinity},
         {"ImageLocality, worked examples", test_images},
         {"image counts are as old as the node's copy", test_image_counts_are_stale},
         {"the default normalisation", test_normalize},
         {"the broken line truncates toward zero", test_broken_line},
         {"percentages are exact for every operand", test_percent_is_exact})
