/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/extender/test_cycle.c - what extenders change in the engine's decisions
 */
#include "tests/unit/scheduler/extender/fixture.h"

static struct fx f;

static void begin_with(const char *extenders, struct bh_engine_options o)
{
    struct bh_err err = {{0}};

    memset(&f, 0, sizeof f);
    bh_arena_init(&f.arena, 0);
    f.config = ext_config(&f.arena, extenders);
    o.config = f.config;
    o.tie_break = BH_TIE_FIRST;
    CU_ASSERT_FATAL(bh_engine_new(&o, &f.e, &err) == 0);
}

static void begin(const char *extenders)
{
    begin_with(extenders, (struct bh_engine_options){.verify = true});
}

static void node(const char *name, const char *cpu, const char *labels)
{
    char alloc[128], json[512];

    snprintf(alloc, sizeof alloc, "'cpu':'%s','memory':'8Gi','pods':'10'", cpu);
    fx_node(&f, name, alloc, labels, "", "");
    snprintf(json, sizeof json,
             "{'metadata':{'name':'%s','labels':{%s}},'status':{'allocatable':{%s}}}", name, labels,
             alloc);
    struct bh_str b = ext_bytes(&f.arena, &k8s__node__descriptor, json);
    bh_engine_put_raw(f.e, BH_KIND_NODE, name, b.p, b.n);
}

static struct fx_pod pod(const char *name, const char *requests, const char *more)
{
    struct fx_pod p = fx_pod(&f, name, requests, more);
    const char *uid = bh_arena_printf(&f.arena, "uid-%s", name);
    struct bh_str b =
        ext_bytes(&f.arena, &k8s__pod__descriptor,
                  bh_arena_printf(&f.arena,
                                  "{'metadata':{'name':'%s','namespace':'default','uid':"
                                  "'%s'},'spec':{'containers':[{'name':'c','resources':"
                                  "{'requests':{%s}}}]}}",
                                  name, uid, requests));
    bh_engine_put_raw(f.e, BH_KIND_POD, uid, b.p, b.n);
    return p;
}

static const char *decided(const struct bh_decision *d)
{
    return d->kind == BH_DECIDED ? fx_text(&f, d->node)
                                 : bh_arena_printf(&f.arena, "%s: %s", d->reason, d->message);
}

static bool rejected_by(const struct bh_decision *d, const char *plugin)
{
    for (uint32_t i = 0; i < d->n_unschedulable_plugins; i++)
        if (bh_streq(d->unschedulable_plugins[i], plugin))
            return true;
    return false;
}

static int64_t total(const struct bh_decision *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_scores; i++)
        if (bh_streq(fx_text(&f, d->scores[i].node), name))
            return d->scores[i].total;
    return -1;
}

#define NAMES(path, more)                                                                          \
    "{'urlPrefix':'http://127.0.0.1:%u/" path "','filterVerb':'f','nodeCacheCapable':true" more "}"
#define SCORES(path, weight, more)                                                                 \
    "{'urlPrefix':'http://127.0.0.1:%u/" path "','prioritizeVerb':'s','weight':" weight            \
    ",'nodeCacheCapable':true" more "}"

static void three_nodes(void)
{
    node("n1", "4", "");
    node("n2", "4", "");
    node("n3", "4", "");
}

static void test_filter(void)
{
    ext_begin();
    begin(NAMES("a", "") "," NAMES("b", ""));
    three_nodes();
    node("full", "1", "");
    struct fx_pod p = pod("p", "'cpu':'2'", "");
    ext_say({.target = "/a/f", .body = "{'NodeNames':['n3','n2'],'FailedNodes':{'n1':'no gpu'}}"},
            {.target = "/b/f", .body = "{'NodeNames':['n2']}"});
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_STR(decided(d), "n2");
    FX_STR(fx_verdict(&f, d, "n1"), "Unschedulable: no gpu");
    FX_STR(fx_verdict(&f, d, "full"), "UnschedulableAndUnresolvable: Insufficient cpu");
    FX_INT(d->feasible, 1);
    FX_INT(d->evaluated, 3); /* n2, n1, full: nobody said anything about n3 */
    /* the second sees what the first left, in its order */
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(1)->body, "\"NodeNames\":[\"n3\",\"n2\"]"));
    CU_ASSERT_PTR_NULL(strstr(heard(0)->body, "full"));
    /* nothing is left: the second is not asked */
    ext_say({.target = "/a/f",
             .body = "{'NodeNames':[],'FailedNodes':{'n1':'full','n2':'full','elsewhere':'gone'},"
                     "'FailedAndUnresolvableNodes':{'n2':'never'}}"},
            {.target = "/b/f", .body = "{}"});
    d = fx_schedule(&f, p);
    FX_INT(d->kind, BH_NO_FIT);
    FX_STR(d->fit_message, "0/4 nodes are available: 1 Insufficient cpu, 1 full, 1 gone, 1 never.");
    CU_ASSERT(rejected_by(d, "Extender"));
    CU_ASSERT(rejected_by(d, "NodeResourcesFit"));
    FX_STR(fx_verdict(&f, d, "n2"), "UnschedulableAndUnresolvable: never");
    FX_INT(ext.n_heard, 1);
    fx_fini(&f);
    ext_end();
}

static void test_filter_errors(void)
{
    ext_begin();
    begin(NAMES("a", "") "," NAMES("b", ",'ignorable':true"));
    three_nodes();
    struct fx_pod p = pod("p", "'cpu':'2'", "");
    ext_say({.target = "/a/f", .body = "{'Error':'backend is away'}"});
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_STR(decided(d), "SchedulerError: backend is away");
    CU_ASSERT(d->clear_nomination);
    FX_INT(d->n_unschedulable_plugins, 0);
    ext_say({.target = "/a/f", .body = "{'NodeNames':['n1','n9']}"});
    FX_STR(decided(fx_schedule(&f, p)),
           bh_arena_printf(&f.arena,
                           "SchedulerError: extender \"http://127.0.0.1:%u/a\" claims a filtered "
                           "node \"n9\" which is not found in the input node list",
                           ext.server.port));
    /* the failure of the other one does not matter */
    ext_say({.target = "/a/f", .body = "{'NodeNames':['n3','n2']}"},
            {.target = "/b/f", .body = "{'NodeNames':['n1'],'FailedNodes':{'n3':'x'}}"});
    d = fx_schedule(&f, p);
    FX_STR(decided(d), "n2");
    FX_STR(fx_verdict(&f, d, "n3"), "");
    FX_INT(d->feasible, 2);
    /* its object is not there */
    bh_engine_put_raw(f.e, BH_KIND_POD, "uid-p", NULL, 0);
    FX_STR(decided(fx_schedule(&f, p)),
           bh_arena_printf(&f.arena,
                           "SchedulerError: extender http://127.0.0.1:%u/a: the object "
                           "of pod default/p is not known",
                           ext.server.port));
    fx_fini(&f);
    ext_end();
}

static void test_same_node_twice(void)
{
    ext_begin();
    begin(NAMES("a", "") "," SCORES("b", "1", ""));
    three_nodes();
    ext_say({.target = "/a/f", .body = "{'NodeNames':['n1','n1','n2','n1','n2','n2']}"},
            {.target = "/b/s", .body = "[{'Host':'n2','Score':1}]"});
    const struct bh_decision *d = fx_schedule(&f, pod("p", "'cpu':'2'", ""));
    FX_STR(decided(d), "n2");
    FX_INT(d->feasible, 2);
    fx_fini(&f);
    ext_end();
}

static void test_prioritize(void)
{
    ext_begin();
    begin(SCORES("a", "2", "") "," SCORES("b", "1", "") "," SCORES("c", "1", ""));
    three_nodes();
    struct fx_pod p = pod("p", "'cpu':'2'", "");
    ext_say({.target = "/c/s", .code = 500});
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_STR(decided(d), "n1");
    int64_t base = total(d, "n1");
    ext_say({.target = "/a/s", .body = "[{'Host':'n3','Score':7},{'Host':'n9','Score':9}]"},
            {.target = "/b/s",
             .body = "[{'Host':'n2','Score':20},{'Host':'n3','Score':3},"
                     "{'Host':'n3','Score':3},{'Host':'n1','Score':-1}]"},
            {.target = "/c/s", .body = "rubbish"});
    d = fx_schedule(&f, p);
    FX_STR(decided(d), "n2"); /* of two equals the smaller name */
    FX_INT(total(d, "n1"), base - 10);
    FX_INT(total(d, "n2"), base + 200);
    FX_INT(total(d, "n3"), base + 7 * 2 * 10 + 6 * 10);
    FX_INT(fx_score(&f, d, "n3",
                    bh_arena_printf(&f.arena, "http://127.0.0.1:%u/a", ext.server.port), false),
           140);
    ext_say({.target = "/a/s",
             .body = "[{'Host':'n3','Score':9223372036854775807},"
                     "{'Host':'n2','Score':-9223372036854775808}]"});
    d = fx_schedule(&f, p);
    FX_STR(decided(d), "n3");
    FX_INT(total(d, "n3"), INT64_MAX);
    FX_INT(total(d, "n2"), INT64_MIN + base);
    fx_fini(&f);
    ext_end();
}

/* Upstream draws lots among equals that an extender listed; the others come after them. */
static void test_listed_first(void)
{
    ext_begin();
    begin(SCORES("a", "1", ""));
    three_nodes();
    struct fx_pod p = pod("p", "'cpu':'2'", "");
    ext_say({.target = "/a/s", .body = "[{'Host':'n2','Score':0},{'Host':'n3','Score':0}]"});
    FX_STR(decided(fx_schedule(&f, p)), "n2");
    /* a single node is taken unseen */
    node("big", "64", "");
    ext_say({.target = "/a/s", .body = "[]"});
    FX_STR(decided(fx_schedule(&f, pod("q", "'cpu':'32'", ""))), "big");
    FX_INT(ext.n_heard, 0);
    fx_fini(&f);
    ext_end();
}

static void test_whole_nodes(void)
{
    static const char extender[] =
        "{'urlPrefix':'http://127.0.0.1:%u/a','filterVerb':'f'},"
        "{'urlPrefix':'http://127.0.0.1:%u/b','filterVerb':'f','prioritizeVerb':'s','weight':1}";

    ext_begin();
    begin(extender);
    node("n1", "4", "");
    node("n2", "8", "'disk':'ssd'");
    CU_ASSERT(bh_engine_raw_complete(f.e));
    fx_place(&f, pod("other", "'cpu':'6'", ""), "n2");
    struct fx_pod p =
        pod("p", "'cpu':'2'",
            "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
            "'weight':1,'preference':{'matchExpressions':[{'key':'disk','operator':'In','values':"
            "['hdd']}]}}]}}");
    ext_say({.target = "/a/f",
             .body = "{'Nodes':{'items':[{'metadata':{'name':'n2','labels':{"
                     "'disk':'hdd'}},'status':{'allocatable':{'cpu':'8',"
                     "'memory':'8Gi','pods':'10'}}},{'metadata':{'name':'n1'},"
                     "'status':{'allocatable':{'cpu':'4','memory':'8Gi',"
                     "'pods':'10'}}}]}}"},
            {.target = "/b/f", .body = "{'Error':'stop here'}"}, {.target = "/b/s", .code = 500});
    FX_STR(decided(fx_schedule(&f, p)), "SchedulerError: stop here");
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(0)->body, "\"disk\":\"ssd\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(0)->body, "]},\"NodeNames\":null}"));
    /* the next one is shown the first one's copy */
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(1)->body, "{\"metadata\":{\"name\":\"n2\",\"labels\":{"
                                                  "\"disk\":\"hdd\"}}"));
    fx_fini(&f);

    /* alone: the copy is scored, and no pods are on it */
    begin("{'urlPrefix':'http://127.0.0.1:%u/a','filterVerb':'f'}");
    node("n1", "4", "");
    node("n2", "8", "'disk':'ssd'");
    fx_place(&f, pod("other", "'cpu':'6'", ""), "n2");
    p = pod("p", "'cpu':'2'",
            "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{"
            "'weight':1,'preference':{'matchExpressions':[{'key':'disk','operator':'In','values':"
            "['hdd']}]}}]}}");
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_STR(decided(d), "n2");
    FX_INT(fx_score(&f, d, "n2", "NodeAffinity", true), 1);
    FX_INT(fx_score(&f, d, "n2", "NodeResourcesFit", true), (75 + 97) / 2); /* 2 of 8 cores */
    FX_INT(fx_score(&f, d, "n1", "NodeResourcesFit", true), (50 + 97) / 2);
    /* objects that are no nodes of this cluster, or no nodes at all */
    ext_say({.target = "/a/f", .body = "{'Nodes':{'items':[{'metadata':{'name':'zz'}}]}}"});
    CU_ASSERT_PTR_NOT_NULL(strstr(decided(fx_schedule(&f, p)), "claims a filtered node \"zz\""));
    ext_say({.target = "/a/f",
             .body = "{'Nodes':{'items':[{'metadata':{'name':'n1'},'status':{"
                     "'allocatable':{'cpu':'many'}}}]}}"});
    CU_ASSERT_PTR_NOT_NULL(strstr(decided(fx_schedule(&f, p)), "SchedulerError: "));
    /* names from one who was sent objects */
    ext_say({.target = "/a/f", .body = "{'NodeNames':['n1']}"});
    FX_STR(decided(fx_schedule(&f, p)),
           "Unschedulable: 0/2 nodes are available: no new claims to deallocate, preemption: 0/2 "
           "nodes are available: 2 Preemption is not helpful for scheduling.");
    fx_fini(&f);
    ext_end();
}

/* What an ignorable one says is taken as a whole or not at all: a node that it had emptied before the
 * rubbish began would win. */
static void test_half_an_answer(void)
{
    static const char *const rest[] = {"{'metadata':{'name':'zz'}}",
                                       "{'metadata':{'name':'n1'},'status':{'allocatable':{"
                                       "'cpu':'many'}}}"};

    ext_begin();
    begin("{'urlPrefix':'http://127.0.0.1:%u/a','filterVerb':'f','ignorable':true}");
    node("n1", "4", "");
    node("n2", "8", "");
    fx_place(&f, pod("other", "'cpu':'6'", ""), "n2");
    struct fx_pod p = pod("p", "'cpu':'2'", "");
    for (size_t i = 0; i < BH_ARRAY_LEN(rest); i++) {
        ext_say({.target = "/a/f",
                 .body = bh_arena_printf(&f.arena,
                                         "{'Nodes':{'items':[{'metadata':{'name':'n2'},'status':{"
                                         "'allocatable':{'cpu':'8','memory':'8Gi','pods':'10'}}},"
                                         "%s]}}",
                                         rest[i])});
        const struct bh_decision *d = fx_schedule(&f, p);
        FX_STR(decided(d), "n1");
        FX_INT(fx_score(&f, d, "n2", "NodeResourcesFit", true), (0 + 95) / 2); /* with "other" */
    }
    fx_fini(&f);
    ext_end();
}

static void test_raw_complete(void)
{
    ext_begin();
    begin("{'urlPrefix':'http://127.0.0.1:%u/a','filterVerb':'f'}");
    FX_INT(bh_engine_raw_needs(f.e), BH_EXT_NEED_PENDING | BH_EXT_NEED_NODES);
    CU_ASSERT(bh_engine_raw_complete(f.e));
    fx_node(&f, "n1", "'cpu':'1'", "", "", "");
    CU_ASSERT(!bh_engine_raw_complete(f.e));
    struct bh_str b = ext_bytes(&f.arena, &k8s__node__descriptor, "{'metadata':{'name':'n1'}}");
    bh_engine_put_raw(f.e, BH_KIND_NODE, "n1", b.p, b.n);
    CU_ASSERT(bh_engine_raw_complete(f.e));
    bh_engine_objects_begin(f.e);
    bh_engine_objects_end(f.e); /* a feed that does not name it */
    CU_ASSERT(!bh_engine_raw_complete(f.e));
    fx_fini(&f);
    fx_init(&f, NULL);
    FX_INT(bh_engine_raw_needs(f.e), 0);
    bh_engine_put_raw(f.e, BH_KIND_NODE, "n1", b.p, 0);
    CU_ASSERT(bh_engine_raw_complete(f.e));
    fx_fini(&f);
    ext_end();
}

static void test_nominated(void)
{
    ext_begin();
    begin(NAMES("a", ""));
    three_nodes();
    struct fx_pod p = pod("p", "'cpu':'2'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "n3"));
    ext_say({.target = "/a/f", .body = "{'NodeNames':['n3']}"});
    FX_STR(decided(fx_schedule(&f, p)), "n3");
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(0)->body, "\"NodeNames\":[\"n3\"]}"));
    FX_INT(ext.n_heard, 1);
    /* an error there is not the cycle's; the search over all nodes has its own */
    ext_say({.target = "/a/f", .body = "{'Error':'no'}"});
    FX_STR(decided(fx_schedule(&f, p)), "SchedulerError: no");
    FX_INT(ext.n_heard, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(1)->body, "[\"n1\",\"n2\",\"n3\"]"));
    ext_say({.target = "/a/f", .body = "{'NodeNames':[],'FailedNodes':{'n3':'busy'}}"});
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_INT(d->kind, BH_NO_FIT);
    FX_STR(d->fit_message, "0/3 nodes are available: 1 busy.");
    fx_fini(&f);
    ext_end();
}

/* ---- preemption ------------------------------------------------------------------------------ */

static void full_cluster(void)
{
    node("n1", "2", "");
    node("n2", "2", "");
    fx_place(&f, pod("low1", "'cpu':'1'", "'priority':1"), "n1");
    fx_place(&f, pod("low1b", "'cpu':'1'", "'priority':1"), "n1");
    fx_place(&f, pod("low2", "'cpu':'2'", "'priority':2"), "n2");
}

static const char *victims(const struct bh_decision *d)
{
    const char *text = d->nominated_node ? fx_text(&f, d->nominated_node) : "none";

    for (uint32_t i = 0; i < d->n_victims; i++)
        text = bh_arena_printf(&f.arena, "%s %.*s", text, (int)d->victims[i].name.n,
                               d->victims[i].name.p);
    return text;
}

static const char preempt_one[] =
    "{'urlPrefix':'http://127.0.0.1:%u/a','preemptVerb':'p','nodeCacheCapable':true}";

static void test_preempt(void)
{
    ext_begin();
    begin(preempt_one);
    full_cluster();
    struct fx_pod p = pod("high", "'cpu':'1'", "'priority':100");
    /* as it stands: n1 has the less important victims */
    ext_say({.target = "/a/p",
             .body = "{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'uid-low1b'}]},"
                     "'n2':{'Pods':[{'UID':'uid-low2'}]}}}"});
    FX_STR(victims(fx_schedule(&f, p)), "n1 low1b");
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(0)->body,
                                  ",\"NodeNameToVictims\":null,\"NodeNameToMetaVictims\":{\"n1\":{"
                                  "\"Pods\":[{\"UID\":\"uid-low1\"}],\"NumPDBViolations\":0},"
                                  "\"n2\":{\"Pods\":[{\"UID\":\"uid-low2\"}],\"NumPDBViolations\":"
                                  "0}}}"));
    /* it takes the other node; or finds that n1 breaks a budget */
    ext_say({.target = "/a/p",
             .body = "{'NodeNameToMetaVictims':{'n2':{'Pods':[{'UID':'uid-low2'}]}}}"});
    FX_STR(victims(fx_schedule(&f, p)), "n2 low2");
    ext_say({.target = "/a/p",
             .body = "{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'uid-low1'},{'UID':"
                     "'uid-low1b'}],'NumPDBViolations':1},'n2':{'Pods':[{'UID':'uid-low2'}],"
                     "'NumPDBViolations':-5}}}"});
    FX_STR(victims(fx_schedule(&f, p)), "n2 low2");
    ext_say({.target = "/a/p",
             .body = "{'NodeNameToMetaVictims':{'n2':{'Pods':[{'UID':'uid-low2'},{'UID':"
                     "'uid-low2'}]}}}"});
    FX_STR(victims(fx_schedule(&f, p)), "n2 low2"); /* named twice, evicted once */
    /* nothing is left */
    ext_say({.target = "/a/p", .body = "{}"});
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_STR(victims(d), "none");
    FX_STR(d->post_filter_message, "no new claims to deallocate, preemption: no candidate node for "
                                   "preemption");
    CU_ASSERT(!d->clear_nomination);
    fx_fini(&f);
    ext_end();
}

static const char *failed_preemption(struct fx_pod p)
{
    const struct bh_decision *d = fx_schedule(&f, p);
    const char *text = strstr(d->post_filter_message, "preemption: ");

    FX_STR(victims(d), "none");
    FX_INT(d->kind, BH_NO_FIT);
    return text ? text : d->post_filter_message;
}

static void test_preempt_errors(void)
{
    ext_begin();
    begin(preempt_one);
    full_cluster();
    struct fx_pod p = pod("high", "'cpu':'1'", "'priority':100");
    ext_say({.target = "/a/p",
             .body = "{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'uid-low2'}]}}}"});
    FX_STR(failed_preemption(p),
           bh_arena_printf(&f.arena,
                           "preemption: extender: http://127.0.0.1:%u/a claims to preempt pod "
                           "(UID: &{uid-low2}) on node: n1, but the pod is not found on that node",
                           ext.server.port));
    ext_say({.target = "/a/p", .body = "{'NodeNameToMetaVictims':{'n9':{'Pods':[]}}}"});
    FX_STR(failed_preemption(p), "preemption: nodeinfo not found for node name \"n9\"");
    ext_say({.target = "/a/p", .body = "{'NodeNameToMetaVictims':{'n1':{'Pods':[]}}}"});
    FX_STR(failed_preemption(p), "preemption: expected at least one victim pod on node \"n1\"");
    ext_say({.target = "/a/p", .code = 500});
    FX_STR(failed_preemption(p), bh_arena_printf(&f.arena,
                                                 "preemption: failed p with extender at URL "
                                                 "http://127.0.0.1:%u/a/p, code 500",
                                                 ext.server.port));
    fx_fini(&f);

    /* ignorable: as if it had not been asked, and nodes without victims are left out */
    begin("{'urlPrefix':'http://127.0.0.1:%u/a','preemptVerb':'p','ignorable':true}");
    FX_INT(bh_engine_raw_needs(f.e), BH_EXT_NEED_PENDING | BH_EXT_NEED_ASSIGNED);
    full_cluster();
    p = pod("high", "'cpu':'1'", "'priority':100");
    ext_say({.target = "/a/p", .code = 500});
    FX_STR(victims(fx_schedule(&f, p)), "n1 low1");
    CU_ASSERT_PTR_NOT_NULL(strstr(heard(0)->body, "\"NodeNameToVictims\":{\"n1\":{\"Pods\":[{"
                                                  "\"metadata\":{\"name\":\"low1\""));
    ext_say({.target = "/a/p",
             .body = "{'NodeNameToMetaVictims':{'n1':{},'n2':{'Pods':["
                     "{'UID':'uid-low2'}]}}}"});
    FX_STR(victims(fx_schedule(&f, p)), "n2 low2");
    fx_fini(&f);
    ext_end();
}

/* ---- who notices ----------------------------------------------------------------------------- */

static const struct bh_decision *quickly(struct fx_pod p)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};

    return bh_engine_schedule(f.e, &pending, 0, 0);
}

static void test_fast_path(void)
{
    struct bh_engine_stats s;

    ext_begin();
    begin_with(NAMES("a", ",'managedResources':[{'name':'x.com/gpu'}]"),
               (struct bh_engine_options){.verify = false});
    three_nodes();
    struct fx_pod plain = pod("plain", "'cpu':'1'", "");
    struct fx_pod gpu = pod("gpu", "'cpu':'1','x.com/gpu':'0'", "");
    ext_say({.target = "/a/f", .body = "{'NodeNames':['n2']}"});
    for (int i = 0; i < 5; i++)
        FX_STR(decided(quickly(plain)), "n1");
    bh_engine_stats(f.e, &s);
    FX_INT(s.fast_cycles, 5);
    FX_INT(ext.n_heard, 0);
    FX_STR(decided(quickly(gpu)), "n2");
    bh_engine_stats(f.e, &s);
    FX_INT(s.reference_cycles, 1);
    FX_INT(ext.n_heard, 1);
    fx_fini(&f);

    /* binding alone does not change decisions */
    begin_with("{'urlPrefix':'http://127.0.0.1:%u/a','bindVerb':'b'}",
               (struct bh_engine_options){.verify = false});
    three_nodes();
    plain = pod("plain", "'cpu':'1'", "");
    const struct bh_pending pending = {.pod = plain.rec, .shape = plain.shape};
    FX_STR(decided(quickly(plain)), "n1");
    bh_engine_stats(f.e, &s);
    FX_INT(s.fast_cycles, 1);
    CU_ASSERT(bh_engine_extender_binds(f.e, &pending));
    fx_fini(&f);
    ext_end();
}

static void test_events(void)
{
    const struct bh_cluster_event service = {
        .resource = BH_EV_OBJECT, .kind = BH_KIND_SERVICE, .action = BH_EV_ADD};
    const struct bh_cluster_event node_label = {.resource = BH_EV_NODE,
                                                .action = BH_EV_NODE_ANNOTATION};
    struct fx_pod p;

    ext_begin();
    begin(NAMES("a", ""));
    p = pod("p", "", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    CU_ASSERT(bh_engine_plugin_interested(f.e, "Extender", &node_label));
    CU_ASSERT(!bh_engine_plugin_interested(f.e, "Extender", &service));
    CU_ASSERT(bh_engine_interested(f.e, &node_label));
    FX_INT(bh_engine_hint(f.e, "Extender", &pending, &node_label, &(bool){false}), BH_QUEUE);
    fx_fini(&f);
    ext_end();
}

/* ---- waiting --------------------------------------------------------------------------------- */

static unsigned asked;
static struct fx_pod meanwhile;

static bool ask_meanwhile(void *arg)
{
    (void)arg;
    asked++;
    FX_STR(quickly(meanwhile)->message, "another decision waits for an extender");
    return asked < 3;
}

static void test_waiting(void)
{
    ext_begin();
    begin_with(NAMES("a", ",'httpTimeout':'1m'"),
               (struct bh_engine_options){.waiting = ask_meanwhile});
    three_nodes();
    meanwhile = pod("p", "'cpu':'1'", "");
    ext_say({.target = "/a/f", .how = HANG});
    FX_STR(decided(quickly(meanwhile)),
           bh_arena_printf(&f.arena,
                           "SchedulerError: Post \"http://127.0.0.1:%u/a/f\": context "
                           "canceled",
                           ext.server.port));
    FX_INT(asked, 3);
    fx_fini(&f);
    ext_end();
}

BH_TESTS("scheduler/extender/cycle", {"filter", test_filter}, {"filter fails", test_filter_errors},
         {"a node named twice", test_same_node_twice}, {"prioritize", test_prioritize},
         {"nodes an extender listed win among equals", test_listed_first},
         {"whole nodes, and copies of them", test_whole_nodes},
         {"half an answer is none", test_half_an_answer},
         {"objects that decisions need", test_raw_complete}, {"the nominated node", test_nominated},
         {"preempt", test_preempt}, {"preempt fails", test_preempt_errors},
         {"only interesting pods leave the fast path", test_fast_path},
         {"events that wake", test_events},
         {"the owner lives on while a decision waits", test_waiting})
