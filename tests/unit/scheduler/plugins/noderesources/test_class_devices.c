/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/noderesources/test_class_devices.c - devices count in the scores
 */
#include "tests/unit/scheduler/plugins/dynamicresources/world.h"

#define CONTAINER(cpu, r, n)                                                                       \
    "'containers':[{'name':'c','resources':{'requests':{'cpu':'" cpu "','" r "':'" n "'}}}],"
#define GPU       "x.io/gpu"
#define GPU_CLASS "'spec':{'extendedResourceName':'" GPU "'%s}"
#define FIT(type)                                                                                  \
    "{'name':'NodeResourcesFit','args':{'scoringStrategy':{'type':'" type                          \
    "','resources':[{'name':'" GPU "','weight':1}]}}}"
#define BALANCED                                                                                   \
    "{'name':'NodeResourcesBalancedAllocation','args':{'resources':[{'name':'cpu','weight':1},"    \
    "{'name':'" GPU "','weight':1}]}}"

static struct bh_sched_config *config;

/* DynamicResources is off where nodes are scored that it would reject. */
static void start(const char *args, bool allocates)
{
    struct bh_arena a;
    struct bh_json *tree = NULL;
    struct bh_err err = {{0}};

    bh_arena_init(&a, 0);
    char *json = bh_arena_printf(
        &a,
        "{'apiVersion':'kubescheduler.config.k8s.io/v1','kind':'KubeSchedulerConfiguration',"
        "'profiles':[{'plugins':{'multiPoint':{'disabled':[%s]}},'pluginConfig':[%s]}]}",
        allocates ? "" : "{'name':'DynamicResources'}", args);
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, json, strlen(json), 0, &tree, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(tree, &config, &err), 0);
    bh_arena_fini(&a);
    begin_with(config);
    put(BH_KIND_DEVICECLASS, "gpu", bh_arena_printf(&arena, GPU_CLASS, ""));
}

static void stop(void)
{
    end();
    bh_sched_config_free(config);
}

/* "a=50 b=87 ", of one plugin; twice, because the second time may use kept results. */
static const char *scores(const char *plugin)
{
    struct bh_symtab *tab = bh_engine_symtab(e);
    struct bh_pending p = pod("p", "");

    for (unsigned turn = 0; turn < 2; turn++) {
        const struct bh_decision *d = bh_engine_schedule(e, &p, BH_EXPLAIN, 1000);
        bh_buf_reset(&text);
        if (d->message && *d->message)
            bh_buf_adds(&text, d->message);
        for (uint32_t i = 0; d->scored && i < d->n_scores; i++)
            for (uint32_t k = 0; k < d->n_score_plugins; k++)
                if (bh_streq(d->scores[i].plugins[k].plugin, plugin))
                    bh_buf_addf(&text, "%s=%d ", bh_sym_text(tab, d->scores[i].node),
                                (int)d->scores[i].plugins[k].raw);
    }
    bh_engine_shape_unref(e, p.shape);
    return bh_buf_str(&text);
}

#define EXPECT_SCORES(plugin, want)                                                                \
    do {                                                                                           \
        const char *got_ = scores(plugin);                                                         \
        if (!bh_streq(got_, (want)))                                                               \
            printf("  line %d: got %s\n", __LINE__, got_ ? got_ : "-");                            \
        CU_ASSERT_STRING_EQUAL(got_, (want));                                                      \
    } while (0)

/* n devices d0, d1, … in a pool of that name; where: what the slice says about nodes. */
static void pool(const char *name, const char *where, int n)
{
    struct bh_buf b = {0};

    for (int i = 0; i < n; i++)
        bh_buf_addf(&b, "%s{'name':'d%d'}", i ? "," : "", i);
    slice(name, where, bh_arena_printf(&arena, "'devices':[%s]", n ? bh_buf_str(&b) : ""));
    bh_buf_fini(&b);
}

/* Four devices on a, one of them in use; eight on b. */
static void devices(void)
{
    pool("a", "'nodeName':'a'", 4);
    pool("b", "'nodeName':'b'", 8);
    claim("used", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'a','device':'d3'}]}}");
}

static void test_fit(void)
{
    static const struct {
        const char *args, *request, *want;
    } rows[] = {
        {FIT("LeastAllocated"), CONTAINER("1", GPU, "1"), "a=50 b=87 "},
        {FIT("LeastAllocated"), CONTAINER("1", GPU, "3"), "a=0 b=62 "},
        {FIT("MostAllocated"), CONTAINER("1", GPU, "1"), "a=50 b=12 "},
        /* Nothing of the kind wanted: nothing to weigh. */
        {FIT("LeastAllocated"), CONTAINER("1", "memory", "1"), "a=0 b=0 "},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        start(rows[i].args, true);
        devices();
        pod_extra = rows[i].request;
        EXPECT_SCORES("NodeResourcesFit", rows[i].want);
        stop();
    }
}

static void test_balanced(void)
{
    start(BALANCED, true);
    devices();
    /* a: 0, .25 -> .5, .5; b: 0, 0 -> .5, .125 */
    pod_extra = CONTAINER("4", GPU, "1");
    EXPECT_SCORES("NodeResourcesBalancedAllocation", "a=81 b=65 ");
    claim("used", "'requests':[]", "");
    EXPECT_SCORES("NodeResourcesBalancedAllocation", "a=68 b=65 ");
    stop();
}

/* What the node itself offers comes first; a class that takes the resource over comes and goes. */
static void test_allocatable_first(void)
{
    start(FIT("LeastAllocated"), true);
    devices();
    pod_extra = CONTAINER("1", GPU, "1");
    node("b", "", ",'" GPU "':'2'");
    EXPECT_SCORES("NodeResourcesFit", "a=50 b=50 ");
    node("b", "", ",'" GPU "':'0'");
    EXPECT_SCORES("NodeResourcesFit", "a=50 b=87 ");
    node("a", "", ",'" GPU "':'10'");
    node("b", "", ",'" GPU "':'10'");
    put(BH_KIND_DEVICECLASS, "gpu", NULL);
    EXPECT_SCORES("NodeResourcesFit", "a=90 b=90 ");
    stop();
}

static void test_implicit_name(void)
{
    start("{'name':'NodeResourcesFit','args':{'scoringStrategy':{'type':'LeastAllocated',"
          "'resources':[{'name':'deviceclass.resource.kubernetes.io/any','weight':1}]}}}",
          true);
    devices();
    pod_extra = CONTAINER("1", "deviceclass.resource.kubernetes.io/any", "1");
    EXPECT_SCORES("NodeResourcesFit", "a=50 b=87 ");
    stop();
}

/* A node's own devices come, go and are taken. */
static void test_changes(void)
{
    static const char taken[] = "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
                                "','pool':'%s','device':'d0'}]}}";
    static const char request[] = "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]";

    start(FIT("LeastAllocated"), true);
    devices();
    pod_extra = CONTAINER("1", GPU, "1");
    EXPECT_SCORES("NodeResourcesFit", "a=50 b=87 ");
    claim("more", request, bh_arena_printf(&arena, taken, "b"));
    EXPECT_SCORES("NodeResourcesFit", "a=50 b=75 ");
    pool("a", "'nodeName':'a'", 8);
    EXPECT_SCORES("NodeResourcesFit", "a=75 b=75 ");
    claim("more", request, bh_arena_printf(&arena, taken, "a"));
    EXPECT_SCORES("NodeResourcesFit", "a=62 b=87 ");
    pool("b", "'nodeName':'b'", 2);
    EXPECT_SCORES("NodeResourcesFit", "a=62 b=50 ");
    pool("a2", "'nodeName':'a'", 2);
    EXPECT_SCORES("NodeResourcesFit", "a=70 b=50 ");
    stop();
}

/* Every kind of slice, whatever its pool's generation. */
static void test_where(void)
{
    start(FIT("LeastAllocated"), false);
    pod_extra = CONTAINER("1", GPU, "1");
    EXPECT_SCORES("NodeResourcesFit", "a=0 b=0 ");
    pool("all", "'allNodes':true", 4);
    EXPECT_SCORES("NodeResourcesFit", "a=75 b=75 ");
    pool("za",
         "'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In',"
         "'values':['za']}]}]}",
         4);
    EXPECT_SCORES("NodeResourcesFit", "a=87 b=75 ");
    pool("c", "'nodeName':'c'", 4);
    EXPECT_SCORES("NodeResourcesFit", "a=87 b=75 ");
    pool("all", "'allNodes':false", 4);
    EXPECT_SCORES("NodeResourcesFit", "a=87 b=75 "); /* a slice without nodes is for all */
    put(BH_KIND_RESOURCESLICE, "all", NULL);
    put(BH_KIND_RESOURCESLICE, "za", NULL);
    slice("own", "'perDeviceNodeSelection':true",
          "'devices':[{'name':'x','nodeName':'a'},{'name':'y','nodeName':'a'},"
          "{'name':'z','allNodes':true}]");
    EXPECT_SCORES("NodeResourcesFit", "a=66 b=0 ");
    node("c", "'zone':'zc'", "");
    EXPECT_SCORES("NodeResourcesFit", "a=66 b=0 c=80 ");
    stop();
}

/* A class counts what it selects; nothing on a node where a selector fails. */
static void test_selectors(void)
{
    static const char of_model[] =
        ",'selectors':[{'cel':{'expression':'device.attributes[`d.x`].model == `%s`'}}]";

    start(FIT("LeastAllocated"), false);
    pod_extra = CONTAINER("1", GPU, "1");
    on_node("a", "{'name':'x','attributes':{'model':{'string':'m'}}},"
                 "{'name':'y','attributes':{'model':{'string':'m'}}},"
                 "{'name':'z','attributes':{'model':{'string':'n'}}}");
    on_node("b", "{'name':'x','attributes':{'model':{'string':'m'}}},{'name':'y'}");
    EXPECT_SCORES("NodeResourcesFit", "a=66 b=50 ");
    put(BH_KIND_DEVICECLASS, "gpu",
        bh_arena_printf(&arena, GPU_CLASS, bh_arena_printf(&arena, of_model, "m")));
    EXPECT_SCORES("NodeResourcesFit", "a=50 b=0 ");
    on_node("b", "{'name':'x','attributes':{'model':{'string':'m'}}},"
                 "{'name':'w','attributes':{'model':{'string':'m'}}},{'name':'y'}");
    EXPECT_SCORES("NodeResourcesFit", "a=50 b=0 ");
    put(BH_KIND_DEVICECLASS, "gpu",
        bh_arena_printf(&arena, GPU_CLASS, bh_arena_printf(&arena, of_model, "none")));
    EXPECT_SCORES("NodeResourcesFit", "a=0 b=0 ");
    put(BH_KIND_DEVICECLASS, "gpu",
        bh_arena_printf(&arena, GPU_CLASS, ",'selectors':[{'cel':{'expression':'('}}]"));
    EXPECT_SCORES("NodeResourcesFit", "a=0 b=0 ");
    stop();
}

BH_TESTS("scheduler/plugins/noderesources/class_devices",
         {"NodeResourcesFit counts a class's devices", test_fit},
         {"NodeResourcesBalancedAllocation does", test_balanced},
         {"a node's own amount comes first", test_allocatable_first},
         {"a node's own devices come and go", test_changes},
         {"the implicit name of a class", test_implicit_name}, {"devices for a node", test_where},
         {"a class's selectors", test_selectors})
