/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/dynamicresources/test_search.c - what a search remembers
 *
 * The engines verify: each search is made a second time without anything that is remembered, and a
 * difference in outcome, error or devices aborts, as does one between fast and reference path.
 */
#include "scheduler/engine/engine.h"
#include "tests/unit/scheduler/plugins/dynamicresources/world.h"

static struct bh_rand rnd;

static unsigned below(unsigned n)
{
    return (unsigned)bh_rand_below(&rnd, n);
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

#define ONE_OF(...)                                                                                \
    ({                                                                                             \
        const char *const v_[] = {__VA_ARGS__};                                                    \
        v_[below(BH_ARRAY_LEN(v_))];                                                               \
    })

/* ---- random slices --------------------------------------------------------------------------- */

static const char *where(void)
{
    return ONE_OF("'nodeName':'a'", "'nodeName':'n2'", "'allNodes':true",
                  "'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone',"
                  "'operator':'In','values':['za','zc']}]}]}");
}

static const char *device(unsigned i, bool counters)
{
    struct bh_buf b = {0};

    bh_buf_addf(&b, "{'name':'d%u'", i);
    if (chance(80))
        bh_buf_addf(&b, ",'attributes':{'m':{%s},'" DRV "/s':{'int':%u}}",
                    ONE_OF("'string':'x'", "'string':'y'", "'version':'1.0.0'", "'bool':true"),
                    below(3));
    if (chance(30))
        bh_buf_addf(&b, ",'allowMultipleAllocations':true");
    if (chance(40))
        bh_buf_addf(&b, ",'capacity':{'mem':{'value':'%uGi'%s}}", 4 + below(5),
                    ONE_OF("", "", ",'requestPolicy':{'default':'1Gi','validRange':{'min':'1Gi'}}",
                           ",'requestPolicy':{'default':'2Gi','validValues':['2Gi','4Gi']}"));
    if (counters && chance(80))
        bh_buf_addf(&b, ",'consumesCounters':[{'counterSet':'s','counters':{'%s':{'value':'%u'}}}]",
                    ONE_OF("c1", "c2"), 1 + below(2));
    if (chance(10))
        bh_buf_addf(&b, ",'taints':[{'key':'t','effect':'NoSchedule'}]");
    if (chance(5))
        bh_buf_addf(&b, ",'bindingConditions':['ready'],'bindingFailureConditions':['failed']");
    bh_buf_addc(&b, '}');
    const char *text_ = bh_arena_strdup(&arena, bh_buf_str(&b));
    bh_buf_fini(&b);
    return text_;
}

static void put_slice(const char *name, const char *pool, unsigned n, const char *more)
{
    put(BH_KIND_RESOURCESLICE, name,
        bh_arena_printf(&arena,
                        "'spec':{'driver':'" DRV "','pool':{'name':'%s','generation':1,"
                        "'resourceSliceCount':%u},%s}",
                        pool, n, more));
}

/* Counters stand in a slice of their own, and sometimes are missing or too small. */
static void put_pool(unsigned i)
{
    const char *name = bh_arena_printf(&arena, "p%u", i), *at = where();
    const char *devices = "";
    bool counters = chance(50);
    unsigned n = 1 + below(5);

    for (unsigned k = 0; k < n; k++)
        devices = bh_arena_printf(&arena, "%s%s%s", devices, k ? "," : "", device(k, counters));
    put_slice(bh_arena_printf(&arena, "s%u", i), name, 1 + counters,
              bh_arena_printf(&arena, "%s,'devices':[%s]", at, devices));
    if (!counters)
        put(BH_KIND_RESOURCESLICE, bh_arena_printf(&arena, "c%u", i), NULL);
    else if (chance(97))
        put_slice(bh_arena_printf(&arena, "c%u", i), name, 2,
                  bh_arena_printf(&arena,
                                  "%s,'sharedCounters':[{'name':'s','counters':{'c1':{'value':"
                                  "'%u'},'c2':{'value':'%u'}}}]",
                                  at, 1 + below(4), 1 + below(4)));
}

/* ---- random claims --------------------------------------------------------------------------- */

static const char *a_request(unsigned i)
{
    struct bh_buf b = {0};

    bh_buf_addf(&b, "{'name':'r%u','exactly':{'deviceClassName':'%s'", i,
                ONE_OF("any", "any", "m-x"));
    if (chance(5))
        bh_buf_addf(&b, ",'allocationMode':'All'");
    else
        bh_buf_addf(&b, ",'count':%u", 1 + below(2));
    if (chance(20))
        bh_buf_addf(&b, ",'capacity':{'requests':{'mem':'%uGi'}}", 1 + below(4));
    if (chance(20))
        bh_buf_addf(&b, ",'selectors':[{'cel':{'expression':'%s'}}]",
                    ONE_OF("device.allowMultipleAllocations == true",
                           "device.attributes[`d.x`].s < 2", "`m` in device.attributes[`d.x`]"));
    if (chance(15))
        bh_buf_addf(&b, ",'tolerations':[{'key':'t','operator':'Exists'}]");
    if (chance(4))
        bh_buf_addf(&b, ",'adminAccess':true");
    bh_buf_addf(&b, "}}");
    const char *text_ = bh_arena_strdup(&arena, bh_buf_str(&b));
    bh_buf_fini(&b);
    return text_;
}

static void put_claim(const char *name)
{
    const char *requests_ = a_request(0);
    unsigned n = 1 + below(2) * below(3);

    for (unsigned i = 1; i < n; i++)
        requests_ = bh_arena_printf(&arena, "%s,%s", requests_, a_request(i));
    claim(name,
          bh_arena_printf(&arena, "'requests':[%s]%s", requests_,
                          ONE_OF("", "", ",'constraints':[{'matchAttribute':'" DRV "/s'}]",
                                 ",'constraints':[{'matchAttribute':'" DRV "/m'}]",
                                 ",'constraints':[{'distinctAttribute':'" DRV
                                 "/s','requests':['r0']},{'matchAttribute':'" DRV "/m'}]",
                                 ",'constraints':[{'matchAttribute':'" DRV
                                 "/s'},{'distinctAttribute':'" DRV "/m'}]")),
          "");
}

/* ---- a random life --------------------------------------------------------------------------- */

#define CLAIMS 8u
#define NODES  4u

static const char *claim_name(unsigned i)
{
    return bh_arena_printf(&arena, "claim-%u", i);
}

static struct bh_str uid_of(const struct bh_pending *p)
{
    return bh_rec_text(p->pod, p->pod->uid);
}

/* Schedules a pod with the claim; where it fits the devices are taken, and kept more often than
 * not. true: it fits. */
static bool decide(unsigned i, bool two)
{
    const char *claims =
        two ? bh_arena_printf(&arena,
                              "{'name':'x','resourceClaimName':'claim-%u'},{'name':'y',"
                              "'resourceClaimName':'claim-%u'}",
                              i, (i + 1) % CLAIMS)
            : bh_arena_printf(&arena, "{'name':'x','resourceClaimName':'claim-%u'}", i);
    struct bh_pending p = pod(bh_arena_printf(&arena, "pod-%u", i), claims);
    const struct bh_decision *d = bh_engine_schedule(e, &p, 0, 1000);
    bool fits = d->kind == BH_DECIDED;
    bh_sym at = d->node;

    if (fits) {
        CU_ASSERT_PTR_NULL(bh_engine_reserve(e, &p, at));
        if (chance(70))
            bh_engine_prebind_commit(e, uid_of(&p));
        if (chance(80))
            bh_engine_unreserve(e, &p, at);
    }
    bh_engine_shape_unref(e, p.shape);
    return fits;
}

static void change_something(void)
{
    switch (below(40)) {
    case 0:
        put_pool(below(4));
        break;
    case 1:
        put(BH_KIND_DEVICECLASS, "m-x",
            ONE_OF("'spec':{'selectors':[{'cel':{'expression':'device.driver == `d.x`'}}]}",
                   "'spec':{'selectors':[{'cel':{'expression':'`m` in device.attributes[`d.x`]'}}]"
                   "}"));
        break;
    case 2:
        node("n2", ONE_OF("'zone':'zc'", "'zone':'zd'"), "");
        break;
    case 3:
        put(BH_KIND_RESOURCECLAIM, claim_name(below(CLAIMS)), NULL);
        break;
    default:
        break;
    }
}

static uint32_t live(const struct bh_sched_config *config, uint64_t seed, unsigned rounds)
{
    uint32_t n_fit = 0;

    bh_rand_seed(&rnd, seed);
    begin_with(config);
    node("n2", "'zone':'zc'", "");
    node("n3", "'zone':'za'", "");
    put(BH_KIND_DEVICECLASS, "m-x", "'spec':{}");
    for (unsigned i = 0; i < 4; i++)
        put_pool(i);
    for (unsigned k = 0; k < rounds; k++) {
        unsigned i = below(CLAIMS);
        change_something();
        put_claim(claim_name(i));
        if (chance(20))
            put_claim(claim_name((i + 1) % CLAIMS));
        n_fit += decide(i, chance(20));
    }
    end();
    return n_fit;
}

static void test_random(void)
{
    uint32_t n = 0;

    for (uint64_t seed = 1; seed <= 30; seed++)
        n += live(NULL, seed, 60);
    n += live(NULL, 99, 400);       /* more requests than are remembered */
    CU_ASSERT(n > 300 && n < 1900); /* neither always nor never */
}

/* Devices that are stepped over cost the same time: 30 steps. */
static void test_random_in_a_hurry(void)
{
    struct bh_sched_config *config = with_timeout("3us");
    uint32_t n = 0;

    for (uint64_t seed = 101; seed <= 115; seed++)
        n += live(config, seed, 60);
    CU_ASSERT(n > 150 && n < 750);
    bh_sched_config_free(config);
}

/* A device that was given up is found again, also by requests that could not have it, and so are
 * others of its pool that shared a counter with it. */
static void test_freed(void)
{
    begin();
    put_slice("c", "p", 2,
              "'allNodes':true,'sharedCounters':[{'name':'s','counters':{'c':{'value':'1'}}}]");
    put_slice("s", "p", 2,
              "'allNodes':true,'devices':[{'name':'d0','consumesCounters':[{'counterSet':'s',"
              "'counters':{'c':{'value':'1'}}}]},{'name':'d1','attributes':{'b':{'bool':true}},"
              "'consumesCounters':[{'counterSet':'s','counters':{'c':{'value':'1'}}}]}]");
    request(",'selectors':[{'cel':{'expression':'`b` in device.attributes[`d.x`]'}}]");
    EXPECT(ONE, "");
    claim("other", "'requests':[]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'p','device':'d0'}]}}");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    put(BH_KIND_RESOURCECLAIM, "other", NULL);
    EXPECT(ONE, "");
    end();
}

BH_TESTS("scheduler/plugins/dynamicresources/search",
         {"what is remembered changes nothing", test_random},
         {"... not even when time runs out", test_random_in_a_hurry},
         {"what was given up is found again", test_freed})
