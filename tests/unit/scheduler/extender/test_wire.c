/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/extender/test_wire.c - requests and replies as text, without a network
 */
#include "scheduler/extender/ext_int.h"
#include "tests/unit/scheduler/extender/fixture.h"

static struct {
    struct bh_arena a;
    struct bh_sched_config *config;
    struct bh_ext *x;
    struct bh_buf out;
} t;

static const char high[] =
    "{'metadata':{'name':'high','namespace':'default','uid':'u-high','resourceVersion':'14',"
    "'creationTimestamp':'2026-01-01T00:00:00Z'},'spec':{'containers':[{'name':'c','image':'i',"
    "'resources':{'requests':{'cpu':'3'}}}],'schedulerName':'default-scheduler','priority':100},"
    "'status':{'phase':'Pending'}}";
static const struct bh_ext_pod high_pod = {
    .namespace_ = {"default", 7}, .name = {"high", 4}, .uid = {"u-high", 6}};

static void put(bool node, const char *key, const char *json)
{
    struct bh_str b = ext_bytes(&t.a, node ? &k8s__node__descriptor : &k8s__pod__descriptor, json);

    if (node)
        bh_ext_put_node(t.x, key, b.p, b.n);
    else
        bh_ext_put_pod(t.x, bh_str_c(key), b.p, b.n);
}

static void begin(const char *extenders)
{
    struct bh_err err = {{0}};

    memset(&t, 0, sizeof t);
    bh_arena_init(&t.a, 0);
    t.config = ext_config(&t.a, extenders);
    CU_ASSERT_FATAL(bh_ext_new(t.config, NULL, NULL, &t.x, &err) == 0);
    put(false, "u-high", high);
}

static void end(void)
{
    bh_ext_free(t.x);
    bh_sched_config_free(t.config);
    bh_buf_fini(&t.out);
    bh_arena_fini(&t.a);
}

static void wrote(const char *error, const char *want_error, const char *want)
{
    BH_CLEANUP(bh_freep) char *text = quoted(want);

    FX_STR(error ? error : "", want_error);
    if (!error)
        FX_STR(bh_buf_str(&t.out), text);
    bh_buf_reset(&t.out);
}

#define CAPABLE "{'urlPrefix':'http://127.0.0.1:1','filterVerb':'f','nodeCacheCapable':true}"
#define WHOLE                                                                                      \
    "{'urlPrefix':'http://127.0.0.1:1','filterVerb':'f','preemptVerb':'p','prioritizeVerb':'s',"   \
    "'weight':1}"

static void test_args(void)
{
    const struct bh_ext_node two[] = {{.name = "n1"}, {.name = "n\"2"}};
    char want[2048];

    begin(WHOLE);
    put(true, "n1",
        "{'metadata':{'name':'n1','uid':'u-n1'},'spec':{},'status':{'allocatable':"
        "{'cpu':'4'}}}");
    put(true, "n\"2", "{'metadata':{'name':'n-2'}}");
    snprintf(want, sizeof want, "{'Pod':%s,'Nodes':null,'NodeNames':['n1','n\\'2']}", high);
    wrote(bh_ext_encode_args(t.x, &t.out, true, &high_pod, two, 2), "", want);
    snprintf(want, sizeof want, "{'Pod':%s,'Nodes':null,'NodeNames':[]}", high);
    wrote(bh_ext_encode_args(t.x, &t.out, true, &high_pod, two, 0), "", want);
    snprintf(want, sizeof want,
             "{'Pod':%s,'Nodes':{'metadata':{},'items':[{'metadata':{'name':'n1','uid':'u-n1'},"
             "'spec':{},'status':{'allocatable':{'cpu':'4'}}},{'metadata':{'name':'n-2'}}]},"
             "'NodeNames':null}",
             high);
    wrote(bh_ext_encode_args(t.x, &t.out, false, &high_pod, two, 2), "", want);
    /* the second time from the kept text */
    wrote(bh_ext_encode_args(t.x, &t.out, false, &high_pod, two, 2), "", want);
    end();
}

static void test_missing_objects(void)
{
    const struct bh_ext_node one = {.name = "n9"};
    const struct bh_ext_pod other = {
        .namespace_ = {"ns", 2}, .name = {"p", 1}, .uid = {"u-other", 7}};

    begin(WHOLE);
    wrote(bh_ext_encode_args(t.x, &t.out, false, &high_pod, &one, 1),
          "the object of node n9 is not known", "");
    wrote(bh_ext_encode_args(t.x, &t.out, true, &other, &one, 1),
          "the object of pod ns/p is not known", "");
    CU_ASSERT(!bh_ext_knows_node(t.x, "n9"));
    put(true, "n9", "{'metadata':{'name':'n9'}}");
    CU_ASSERT(bh_ext_knows_node(t.x, "n9"));
    bh_ext_put_node(t.x, "n9", NULL, 0);
    CU_ASSERT(!bh_ext_knows_node(t.x, "n9"));
    /* a new feed that does not name the pod again */
    bh_ext_objects_begin(t.x);
    put(true, "n1", "{'metadata':{'name':'n1'}}");
    bh_ext_objects_end(t.x);
    CU_ASSERT(bh_ext_knows_node(t.x, "n1"));
    wrote(bh_ext_encode_args(t.x, &t.out, true, &high_pod, &one, 1),
          "the object of pod default/high is not known", "");
    end();
}

static void test_victims(void)
{
    struct bh_ext_victim low = {
        .namespace_ = {"default", 7}, .name = {"low", 3}, .uid = {"u-low", 5}};
    const struct bh_ext_victims v[] = {
        {.node = "n1", .pods = &low, .n_pods = 1},
        {.node = "n2", .pods = &low, .n_pods = 1, .violations = 2},
    };
    char want[2048];

    begin(WHOLE);
    /* the example of the protocol's description */
    snprintf(want, sizeof want,
             "{'Pod':%s,'NodeNameToVictims':null,'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':"
             "'u-low'}],'NumPDBViolations':0}}}",
             high);
    wrote(bh_ext_encode_victims(t.x, &t.out, true, &high_pod, v, 1), "", want);
    /* victims are sent even when their object is not there */
    snprintf(want, sizeof want,
             "{'Pod':%s,'NodeNameToVictims':{'n1':{'Pods':[{'metadata':{'name':'low','namespace':"
             "'default','uid':'u-low'},'spec':{'containers':null,'nodeName':'n1'},'status':{}}],"
             "'NumPDBViolations':0}},'NodeNameToMetaVictims':null}",
             high);
    wrote(bh_ext_encode_victims(t.x, &t.out, false, &high_pod, v, 1), "", want);
    /* an assumed one is on the node it was chosen for */
    put(false, "u-low", "{'metadata':{'name':'low','uid':'u-low'},'spec':{'priority':1}}");
    snprintf(want, sizeof want,
             "{'Pod':%s,'NodeNameToVictims':{'n1':{'Pods':[{'metadata':{'name':'low','uid':'u-low'}"
             ",'spec':{'nodeName':'n1','priority':1}}],'NumPDBViolations':0},'n2':{'Pods':[{"
             "'metadata':{'name':'low','uid':'u-low'},'spec':{'nodeName':'n2','priority':1}}],"
             "'NumPDBViolations':2}},'NodeNameToMetaVictims':null}",
             high);
    wrote(bh_ext_encode_victims(t.x, &t.out, false, &high_pod, v, 2), "", want);
    end();
}

static void test_bind_args(void)
{
    memset(&t, 0, sizeof t);
    bh_ext_encode_bind(&t.out, &high_pod, "n1");
    wrote(NULL, "", "{'PodName':'high','PodNamespace':'default','PodUID':'u-high','Node':'n1'}");
    bh_buf_fini(&t.out);
}

/* ---- replies --------------------------------------------------------------------------------- */

static struct bh_arena a;

/* "n1,n2 copies|says|n3=reason n4!reason" or the error */
static const char *filtered(const char *json, bool names)
{
    BH_CLEANUP(bh_freep) char *text = quoted(json);
    struct bh_ext_filtered f = {0};
    const char *says = NULL, *out = "";
    struct bh_err err = {{0}};

    bh_arena_fini(&a);
    if (bh_ext_decode_filter(&a, bh_str_c(text), names, &f, &says, &err) < 0)
        return bh_arena_strdup(&a, err.msg);
    for (uint32_t i = 0; i < f.n; i++)
        out = bh_arena_printf(&a, "%s%s%s", out, i ? "," : "", f.nodes[i].name);
    out = bh_arena_printf(&a, "%s%s|%s|", out, f.copies ? " copies" : "", says ? says : "");
    for (uint32_t i = 0; i < f.n_failed; i++)
        out = bh_arena_printf(&a, "%s%s%s%s%s", out, i ? " " : "", f.failed[i].node,
                              f.failed[i].unresolvable ? "!" : "=", f.failed[i].reason);
    return out;
}

static void test_filter_reply(void)
{
    FX_STR(filtered("{'Nodes':null,'NodeNames':['n2','n1'],'FailedNodes':{'n3':'no room'},"
                    "'FailedAndUnresolvableNodes':{'n4':'never'},'Error':''}",
                    true),
           "n2,n1||n3=no room n4!never");
    /* any case, unknown members, what follows */
    FX_STR(filtered("{'nodenames':['a'],'FAILEDNODES':{'b':'x'},'more':1}\ntrailing <", true),
           "a||b=x");
    FX_STR(filtered("{'NodeNames':[],'Nodes':{'items':[{'metadata':{'name':'c'}}]}}", true), "||");
    /* names are not for those who asked for objects, objects are for both */
    FX_STR(filtered("{'NodeNames':['a']}", false), "||");
    FX_STR(filtered("{'Nodes':{'metadata':{},'items':[{'metadata':{'name':'c'}},{}]}}", false),
           "c, copies||");
    FX_STR(filtered("{'Nodes':{'Items':[{'metadata':{'name':'c'}}]}}", true), "c copies||");
    FX_STR(filtered("{'Nodes':{'items':null}}", false), " copies||");
    FX_STR(filtered("{}", true), "||");
    FX_STR(filtered("null", true), "||");
    FX_STR(filtered("{'Error':'busy'}", true), "|busy|");
    FX_STR(filtered("{'FailedNodes':{'b':null},'FailedAndUnresolvableNodes':null}", true), "||b=");
    bh_arena_fini(&a);
}

static void test_filter_rubbish(void)
{
    FX_STR(filtered("", true), "EOF");
    FX_STR(filtered(" \n\t ", true), "EOF");
    FX_STR(filtered("<html>", true), "invalid character '<' looking for beginning of value");
    FX_STR(filtered("\x80", true), "invalid character '\\x80' looking for beginning of value");
    FX_STR(filtered("{'NodeNames':['a'", true), "unexpected EOF");
    FX_STR(filtered("{'NodeNames':['a']", true), "unexpected EOF");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(filtered("{'NodeNames':['a' 1]}", true), "the reply is not JSON"));
    FX_STR(filtered("[]", true),
           "json: cannot unmarshal array into Go value of type v1.ExtenderFilterResult");
    FX_STR(filtered("'x'", true),
           "json: cannot unmarshal string into Go value of type v1.ExtenderFilterResult");
    FX_STR(filtered("{'NodeNames':'a'}", true), "json: cannot unmarshal string into Go struct "
                                                "field ExtenderFilterResult.NodeNames of type "
                                                "[]string");
    FX_STR(filtered("{'NodeNames':[1]}", true), "json: cannot unmarshal number into Go struct "
                                                "field ExtenderFilterResult.NodeNames of type "
                                                "string");
    FX_STR(filtered("{'FailedNodes':{'a':{}}}", true),
           "json: cannot unmarshal object into Go struct field ExtenderFilterResult.FailedNodes of "
           "type string");
    FX_STR(filtered("{'Error':true}", true), "json: cannot unmarshal bool into Go struct field "
                                             "ExtenderFilterResult.Error of type string");
    CU_ASSERT_PTR_NOT_NULL(strstr(filtered("{'Nodes':{'items':[1]}}", true), "v1.Node"));
    /* deep, and more than the memory for replies */
    char deep[600];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    CU_ASSERT_PTR_NOT_NULL(strstr(filtered(deep, true), "too large"));
    bh_arena_fini(&a);
    bh_arena_init(&a, 256);
    struct bh_ext_filtered f;
    const char *says;
    struct bh_err err = {{0}};
    CU_ASSERT(bh_ext_decode_filter(&a, BH_STR("{\"FailedNodes\":{\"a\":\"b\",\"c\":\"d\"}}"), true,
                                   &f, &says, &err) < 0);
    bh_arena_fini(&a);
    bh_arena_init(&a, 0);
}

static const char *scores(const char *json)
{
    BH_CLEANUP(bh_freep) char *text = quoted(json);
    struct bh_ext_scores s = {0};
    const char *out = "";
    struct bh_err err = {{0}};

    bh_arena_fini(&a);
    if (bh_ext_decode_scores(&a, bh_str_c(text), &s, &err) < 0)
        return bh_arena_strdup(&a, err.msg);
    for (uint32_t i = 0; i < s.n; i++)
        out = bh_arena_printf(&a, "%s%s=%lld ", out, s.hosts[i].host, (long long)s.hosts[i].score);
    return out;
}

static void test_scores_reply(void)
{
    FX_STR(scores("[{'Host':'n1','Score':10},{'host':'n2','score':-3,'x':[]},{},null]"),
           "n1=10 n2=-3 =0 =0 ");
    FX_STR(scores("[]"), "");
    FX_STR(scores("null"), "");
    FX_STR(scores("[{'Host':'a','Score':9223372036854775807}]"), "a=9223372036854775807 ");
    FX_STR(scores("[{'Host':'a','Score':9223372036854775808}]"),
           "json: cannot unmarshal number 9223372036854775808 into Go struct field "
           "HostPriority.Score of type int64");
    FX_STR(scores("[{'Host':'a','Score':1.0}]"), "json: cannot unmarshal number 1.0 into Go struct "
                                                 "field HostPriority.Score of type int64");
    FX_STR(scores("[{'Host':'a','Score':'5'}]"), "json: cannot unmarshal string into Go struct "
                                                 "field HostPriority.Score of type int64");
    FX_STR(scores("{}"), "json: cannot unmarshal object into Go value of type v1.HostPriorityList");
    bh_arena_fini(&a);
}

static const char *victims(const char *json)
{
    BH_CLEANUP(bh_freep) char *text = quoted(json);
    struct bh_ext_victims *v = NULL;
    uint32_t n = 0;
    const char *out = "";
    struct bh_err err = {{0}};

    bh_arena_fini(&a);
    if (bh_ext_decode_victims(&a, bh_str_c(text), &v, &n, &err) < 0)
        return bh_arena_strdup(&a, err.msg);
    for (uint32_t i = 0; i < n; i++) {
        out = bh_arena_printf(&a, "%s%s(%lld):", out, v[i].node, (long long)v[i].violations);
        for (uint32_t k = 0; k < v[i].n_pods; k++)
            out = bh_arena_printf(&a, "%s%.*s ", out, (int)v[i].pods[k].uid.n, v[i].pods[k].uid.p);
    }
    return out;
}

static void test_victims_reply(void)
{
    FX_STR(victims("{'NodeNameToMetaVictims':{'n2':{'Pods':[{'UID':'b'},{'uid':'a'}],"
                   "'NumPDBViolations':3},'n1':{'pods':null}}}"),
           "n1(0):n2(3):b a ");
    FX_STR(victims("{'NodeNameToMetaVictims':{'n1':null,'n2':{'Pods':[null]}}}"),
           "n1(0):n2(0):<nil> ");
    FX_STR(victims("{}"), "");
    FX_STR(victims("{'NodeNameToMetaVictims':{'n1':{'NumPDBViolations':'x'}}}"),
           "json: cannot unmarshal string into Go struct field "
           "MetaVictims.NodeNameToMetaVictims.NumPDBViolations of type int64");
    FX_STR(victims("{'NodeNameToMetaVictims':[]}"),
           "json: cannot unmarshal array into Go struct field "
           "ExtenderPreemptionResult.NodeNameToMetaVictims of type map[string]*v1.MetaVictims");
    bh_arena_fini(&a);
}

static void test_texts_are_tamed(void)
{
    char longest[600];

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    const char *cut = bh_ext_tame(&a, bh_str_c(longest));
    FX_INT(strlen(cut), BH_EXT_TEXT_MAX);
    FX_STR(cut + BH_EXT_TEXT_MAX - 4, "x...");
    FX_STR(bh_ext_tame(&a, BH_STR("a\nb\033[31mc\x7f")), "a b [31mc ");
    /* not in the middle of a character */
    for (size_t i = 0; i + 1 < sizeof longest - 1; i += 2)
        memcpy(longest + i, "\xc3\xa4", 2);
    cut = bh_ext_tame(&a, (struct bh_str){longest, 400});
    FX_INT(strlen(cut), 252 + 3);
    FX_INT((unsigned char)cut[251], 0xa4);
    bh_arena_fini(&a);
}

static void test_interest(void)
{
    static const char *const pods[] = {
        "{'spec':{'containers':[{'resources':{'requests':{'x.com/a':'1'}}}]}}",
        "{'spec':{'containers':[{},{'resources':{'limits':{'x.com/a':'0'}}}]}}",
        "{'spec':{'initContainers':[{'resources':{'limits':{'x.com/a':'1'}}}]}}",
        "{'spec':{'containers':[{'resources':{'requests':{'x.com/b':'1'}}}]}}",
        "{'spec':{'resources':{'requests':{'x.com/a':'1'}},'ephemeralContainers':[{'name':'e'}]}}",
        "{}",
    };
    static const uint64_t want[] = {3, 3, 3, 6, 2, 2};

    begin("{'urlPrefix':'http://127.0.0.1:1','filterVerb':'f','managedResources':"
          "[{'name':'x.com/a'}]},{'urlPrefix':'http://127.0.0.1:2','bindVerb':'b'},"
          "{'urlPrefix':'http://127.0.0.1:3','filterVerb':'g','ignorable':true,"
          "'managedResources':[{'name':'x.com/b'}]}");
    for (size_t i = 0; i < BH_ARRAY_LEN(pods); i++) {
        put(false, "u", pods[i]);
        FX_INT(bh_ext_interest(t.x, BH_STR("u"), NULL, NULL), want[i]);
    }
    FX_INT(bh_ext_with(t.x, 1u << BH_EXT_FILTER), 5);
    FX_INT(bh_ext_with(t.x, 1u << BH_EXT_BIND), 2);
    CU_ASSERT(bh_ext_binds(t.x, 2) && !bh_ext_binds(t.x, 5));
    FX_INT(bh_ext_needs(t.x), BH_EXT_NEED_PENDING | BH_EXT_NEED_NODES);
    end();
    begin(CAPABLE);
    FX_INT(bh_ext_needs(t.x), BH_EXT_NEED_PENDING);
    FX_INT(bh_ext_interest(t.x, BH_STR("nobody knows"), NULL, NULL), 1);
    end();
    begin(WHOLE);
    FX_INT(bh_ext_needs(t.x), BH_EXT_NEED_PENDING | BH_EXT_NEED_NODES | BH_EXT_NEED_ASSIGNED);
    /* Objects are kept for guests, and nobody is asked. */
    struct bh_sched_config *none = t.config;
    const uint32_t n = none->n_extenders;
    struct bh_err err = {{0}};
    struct bh_ext *x = NULL;
    none->n_extenders = 0;
    none->whole_objects = BH_EXT_NEED_NODES;
    CU_ASSERT_FATAL(bh_ext_new(none, NULL, NULL, &x, &err) == 0 && x);
    FX_INT(bh_ext_interest(x, BH_STR("u"), NULL, NULL), 0);
    CU_ASSERT(!bh_ext_binds(x, bh_ext_interest(x, BH_STR("u"), NULL, NULL)));
    bh_ext_free(x);
    none->n_extenders = n;
    end();
}

BH_TESTS("scheduler/extender/wire", {"arguments of filter and prioritize", test_args},
         {"objects that are not there", test_missing_objects},
         {"arguments of preempt", test_victims}, {"arguments of bind", test_bind_args},
         {"replies to filter", test_filter_reply},
         {"rubbish instead of replies to filter", test_filter_rubbish},
         {"replies to prioritize", test_scores_reply}, {"replies to preempt", test_victims_reply},
         {"texts are cut", test_texts_are_tamed}, {"who is interested in which pod", test_interest})
