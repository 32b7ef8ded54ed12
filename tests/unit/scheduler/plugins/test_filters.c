/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters of the plugins that look at one node: reasons, codes, order.
 */
#include "tests/unit/scheduler/engine/fixture.h"

#define BIG "'cpu':'4','memory':'8Gi','pods':'110'"

static void expect(struct fx *f, struct fx_pod p, const char *node, const char *want)
{
    const struct bh_decision *d = fx_schedule(f, p);
    FX_STR(fx_verdict(f, d, node), want);
}

static void test_unschedulable(void)
{
    const char *no = "UnschedulableAndUnresolvable: node(s) were unschedulable";
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "'unschedulable':true", "");
    expect(&f, fx_pod(&f, "p", "", ""), "a", no);
    expect(&f,
           fx_pod(&f, "q", "",
                  "'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':"
                  "'Exists','effect':'NoSchedule'}]"),
           "a", "");
    expect(&f, fx_pod(&f, "r", "", "'tolerations':[{'operator':'Exists'}]"), "a", "");
    expect(&f,
           fx_pod(&f, "s", "",
                  "'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':"
                  "'Equal','value':'true'}]"),
           "a", no);
    fx_fini(&f);
}

static void test_taints(void)
{
    const char *no = "UnschedulableAndUnresolvable: node(s) had untolerated taint(s)";
    struct {
        const char *taint, *toleration;
        bool ok;
    } cases[] = {
        {"'key':'a','value':'1','effect':'NoSchedule'", "", false},
        {"'key':'a','value':'1','effect':'NoExecute'", "", false},
        {"'key':'a','value':'1','effect':'PreferNoSchedule'", "", true},
        {"'key':'a','value':'1','effect':'NoSchedule'", "'key':'a','value':'1'", true},
        {"'key':'a','value':'1','effect':'NoSchedule'", "'key':'a','value':'2'", false},
        {"'key':'a','value':'1','effect':'NoSchedule'", "'key':'a','operator':'Exists'", true},
        {"'key':'a','value':'1','effect':'NoSchedule'",
         "'key':'a','operator':'Exists','effect':'NoExecute'", false},
        {"'key':'a','value':'1','effect':'NoSchedule'", "'operator':'Exists'", true},
        {"'key':'a','value':'5','effect':'NoSchedule'", "'key':'a','operator':'Gt','value':'3'",
         false},
    };
    struct fx f;

    fx_init(&f, NULL);
    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        fx_node(&f, "a", BIG, "", bh_arena_printf(&f.arena, "'taints':[{%s}]", cases[i].taint), "");
        const char *t = *cases[i].toleration
                            ? bh_arena_printf(&f.arena, "'tolerations':[{%s}]", cases[i].toleration)
                            : "";
        expect(&f, fx_pod(&f, "p", "", t), "a", cases[i].ok ? "" : no);
    }
    fx_fini(&f);
}

static const char *required(struct fx *f, const char *terms)
{
    return bh_arena_printf(
        &f->arena,
        "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
        "{'nodeSelectorTerms':[%s]}}}",
        terms);
}

#define EXPR(k, op, v) "{'key':'" k "','operator':'" op "','values':[" v "]}"
#define NAME_IN(v)     "'matchFields':[{'key':'metadata.name','operator':'In','values':[" v "]}]"

static void test_node_affinity(void)
{
    struct {
        const char *terms;
        const char *passes; /* of a b c */
    } cases[] = {
        {"", ""},
        {"{}", ""},
        {"{'matchExpressions':[" EXPR("z", "In", "'1'") "]}", "ac"},
        {"{'matchExpressions':[" EXPR("z", "NotIn", "'1'") "]}", "b"},
        {"{'matchExpressions':[" EXPR("d", "Exists", "") "]}", "c"},
        {"{'matchExpressions':[" EXPR("d", "DoesNotExist", "") "]}", "ab"},
        {"{'matchExpressions':[" EXPR("n", "Gt", "'5'") "]}", "a"},
        {"{'matchExpressions':[" EXPR("n", "Lt", "'9'") "]}", "a"},
        {"{'matchExpressions':[" EXPR("z", "In", "'1'") "," EXPR("d", "Exists", "") "]}", "c"},
        {"{'matchExpressions':[" EXPR("z", "In", "'2'") "]},{'matchExpressions':[" EXPR(
             "d", "Exists", "") "]}",
         "bc"},
        {"{" NAME_IN("'a'") "},{" NAME_IN("'b'") "}", "ab"},
        {"{" NAME_IN("'a'") "},{'matchExpressions':[" EXPR("z", "In", "'2'") "]}", "ab"},
        {"{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['a']}]}", "bc"},
        {"{},{" NAME_IN("'a'") "}", "a"},
        {"{'matchExpressions':[" EXPR("z", "Near",
                                      "'1'") "]},{'matchExpressions':[" EXPR("z", "In", "'1'") "]}",
         "ac"},
        {"{" NAME_IN("'a','b'") "}",
         ""}, /* two names do not parse: narrowed, but matches nothing */
        {"{'matchExpressions':[" EXPR("none", "NotIn", "'1'") "]}", "abc"},
        {"{'matchExpressions':[" EXPR("n", "Gt", "'-5'") "]}", ""}, /* no label value */
        {"{'matchExpressions':[" EXPR("n", "Gt", "'5','6'") "]}", ""},
        {"{'matchExpressions':[" EXPR("n", "Gt", "") "]}", ""},
        {"{'matchExpressions':[" EXPR("n", "Gt", "'x'") "]}", ""},
        {"{'matchExpressions':[" EXPR("n", "Gt", "'007'") "]}", ""},
        {"{'matchExpressions':[" EXPR("n", "Lt", "'008'") "]}", "a"},
        {"{'matchExpressions':[" EXPR("n", "Lt", "'9223372036854775807'") "]}", "a"},
        {"{'matchExpressions':[" EXPR("n", "Lt", "'9223372036854775808'") "]}", ""},
        {"{'matchExpressions':[" EXPR("d", "Lt", "'9'") "]}", ""},
        {"{'matchExpressions':[" EXPR("z", "In", "") "]}", ""},
        {"{'matchExpressions':[" EXPR("z", "NotIn", "") "]}", ""},
        {"{'matchExpressions':[" EXPR("z", "Exists", "'1'") "]}", ""},
        {"{'matchExpressions':[" EXPR("z", "DoesNotExist", "'1'") "]}", ""},
        {"{'matchExpressions':[" EXPR("a b", "NotIn", "'1'") "]}", ""},
        {"{'matchExpressions':[" EXPR("z", "NotIn", "'a b'") "]}", ""},
        {"{'matchFields':[{'key':'spec.x','operator':'NotIn','values':['a']}]}", "abc"},
        {"{'matchFields':[{'key':'spec.x','operator':'In','values':['a']}]}", ""},
        {"{'matchFields':[{'key':'metadata.name','operator':'Exists'}]}", ""},
        {"{'matchFields':[{'key':'metadata.name','operator':'NotIn','values':['a','b']}]}", ""},
        {"{" NAME_IN("'a'") ",'matchExpressions':[" EXPR("z", "In", "'2'") "]}", ""},
    };
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "'z':'1','n':'7'", "", "");
    fx_node(&f, "b", BIG, "'z':'2','n':'x'", "", "");
    fx_node(&f, "c", BIG, "'z':'1','d':'ssd'", "", "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char passes[8] = "";
        const struct bh_decision *d =
            fx_schedule(&f, fx_pod(&f, "p", "", required(&f, cases[i].terms)));
        for (uint32_t k = 0; k < d->n_scores; k++)
            strncat(passes, fx_text(&f, d->scores[k].node), 1);
        FX_STR(passes, cases[i].passes);
    }
    expect(&f, fx_pod(&f, "q", "", "'nodeSelector':{'z':'1','d':'ssd'}"), "a",
           "UnschedulableAndUnresolvable: node(s) didn't match Pod's node affinity/selector");
    fx_fini(&f);
}

static void test_node_name(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    fx_node(&f, "b", BIG, "", "", "");
    const struct bh_decision *d =
        fx_schedule(&f, fx_pod_full(&f, "p", "", "'nodeName':'b','containers':[{'name':'c'}]", ""));
    FX_STR(fx_verdict(&f, d, "a"),
           "UnschedulableAndUnresolvable: node(s) didn't match the requested node name");
    FX_STR(fx_verdict(&f, d, "b"), "");
    fx_fini(&f);
}

static void test_added_affinity(void)
{
    struct fx f;

    fx_init(
        &f,
        "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'NodeAffinity','args':{"
        "'addedAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[{"
        "'matchExpressions':[{'key':'z','operator':'In','values':['1']}]}]},"
        "'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':4,'preference':{"
        "'matchExpressions':[{'key':'d','operator':'Exists'}]}}]}}}]}");
    fx_node(&f, "a", BIG, "'z':'1'", "", "");
    fx_node(&f, "b", BIG, "'z':'2'", "", "");
    fx_node(&f, "c", BIG, "'z':'1','d':'x'", "", "");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "", ""));
    FX_STR(fx_verdict(&f, d, "b"),
           "UnschedulableAndUnresolvable: node(s) didn't match scheduler-enforced "
           "node affinity");
    FX_INT(fx_score(&f, d, "a", "NodeAffinity", true), 0);
    FX_INT(fx_score(&f, d, "c", "NodeAffinity", true), 4);
    FX_INT(fx_score(&f, d, "c", "NodeAffinity", false), 200);
    fx_fini(&f);
}

static struct fx_pod with_port(struct fx *f, const char *name, const char *port)
{
    return fx_pod_full(
        f, name, "",
        bh_arena_printf(&f->arena, "'containers':[{'name':'c','ports':[{'containerPort':1,%s}]}]",
                        port),
        "");
}

static void test_ports(void)
{
    struct {
        const char *used, *wanted;
        bool conflict;
    } cases[] = {
        {"'hostPort':80", "'hostPort':80", true},
        {"'hostPort':80,'hostIP':'127.0.0.1'", "'hostPort':80", true},
        {"'hostPort':80,'hostIP':'0.0.0.0'", "'hostPort':80,'hostIP':'10.0.0.1'", true},
        {"'hostPort':80,'hostIP':'10.0.0.1'", "'hostPort':80,'hostIP':'10.0.0.2'", false},
        {"'hostPort':80,'hostIP':'10.0.0.1','protocol':'UDP'", "'hostPort':80,'hostIP':'10.0.0.1'",
         false},
        {"'hostPort':80,'hostIP':'::'", "'hostPort':80,'hostIP':'10.0.0.1'", false},
        {"'hostPort':80,'hostIP':'::'", "'hostPort':80,'hostIP':'0.0.0.0'", true},
        {"'hostPort':80", "'hostPort':0", false},
    };

    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct fx f;
        fx_init(&f, NULL);
        fx_node(&f, "a", BIG, "", "", "");
        fx_place(&f, with_port(&f, "used", cases[i].used), "a");
        expect(&f, with_port(&f, "p", cases[i].wanted), "a",
               cases[i].conflict
                   ? "Unschedulable: node(s) didn't have free ports for the requested pod ports"
                   : "");
        fx_fini(&f);
    }
}

/* A set, not a count: of two users of a port the first to go frees it. */
static void test_ports_are_a_set(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    struct fx_pod one = with_port(&f, "one", "'hostPort':80"),
                  two = with_port(&f, "two", "'hostPort':80");
    fx_place(&f, one, "a");
    fx_place(&f, two, "a");
    bh_engine_del_pod(f.e, bh_rec_text(one.rec, one.rec->uid));
    expect(&f, with_port(&f, "p", "'hostPort':80"), "a", "");
    fx_fini(&f);
}

static void test_fit(void)
{
    struct fx f;
    const char *b = "'cpu':'4','memory':'8Gi','pods':'110','nvidia.com/gpu':'8'";

    fx_init(&f, NULL);
    fx_node(&f, "b", b, "", "", "");
    fx_place(&f, fx_pod(&f, "e", "'cpu':'500m','memory':'1Gi','nvidia.com/gpu':'2'", ""), "b");
    const struct bh_decision *d = fx_schedule(
        &f, fx_pod(&f, "p",
                   "'cpu':'3500m','memory':'9Gi','nvidia.com/gpu':'7','hugepages-2Mi':'2Mi'", ""));
    FX_INT(d->n_rejected, 1);
    FX_INT(d->rejected[0].status->code, BH_UNSCHEDULABLE_AND_UNRESOLVABLE);
    FX_INT(d->rejected[0].status->n_reasons, 3); /* cpu fits exactly */
    FX_STR(d->rejected[0].status->reasons[0], "Insufficient memory");
    expect(&f, fx_pod(&f, "q", "'cpu':'4'", ""), "b", "Unschedulable: Insufficient cpu");
    expect(&f, fx_pod(&f, "r", "'ephemeral-storage':'1'", ""), "b",
           "UnschedulableAndUnresolvable: Insufficient ephemeral-storage");
    expect(&f, fx_pod(&f, "s", "'nvidia.com/gpu':'7'", ""), "b",
           "Unschedulable: Insufficient "
           "nvidia.com/gpu");
    expect(&f, fx_pod(&f, "t", "'storage':'99','foo':'1'", ""), "b", ""); /* nobody tracks these */
    fx_node(&f, "b", "'cpu':'100m','memory':'1','pods':'1'", "", "", "");
    expect(&f, fx_pod(&f, "u", "'cpu':'0'", ""), "b", "Unschedulable: Too many pods");
    fx_node(&f, "b", "'cpu':'100m','memory':'1','pods':'0'", "", "", "");
    expect(&f, fx_pod(&f, "v", "'cpu':'1'", ""), "b",
           "UnschedulableAndUnresolvable: Too many pods, Insufficient cpu");
    fx_fini(&f);
}

static void test_fit_ignores_resources(void)
{
    struct fx f;
    const char *gpu = "UnschedulableAndUnresolvable: Insufficient nvidia.com/gpu";

    fx_init(
        &f,
        "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'NodeResourcesFit','args':{"
        "'ignoredResources':['example.com/foo','kubernetes.io/x'],"
        "'ignoredResourceGroups':['acme.org']}}]}");
    fx_node(&f, "a", BIG, "", "", "");
    expect(&f, fx_pod(&f, "p", "'example.com/foo':'1','acme.org/bar':'2'", ""), "a", "");
    expect(&f, fx_pod(&f, "q", "'nvidia.com/gpu':'1','acme.org/bar':'2'", ""), "a", gpu);
    expect(&f, fx_pod(&f, "r", "'kubernetes.io/x':'1'", ""), "a",
           "UnschedulableAndUnresolvable: Insufficient kubernetes.io/x"); /* native names never */
    fx_fini(&f);
}

static void test_exact_sums(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", "'cpu':'4','memory':'8Ei','pods':'110'", "", "", "");
    fx_place(&f, fx_pod(&f, "e1", "'memory':'7Ei'", ""), "a");
    fx_place(&f, fx_pod(&f, "e2", "'memory':'7Ei'", ""),
             "a"); /* the sum does not fit into 64 bits */
    expect(&f, fx_pod(&f, "p", "'memory':'1'", ""), "a", "Unschedulable: Insufficient memory");
    fx_fini(&f);
}

static void test_declared_features(void)
{
    const char *no = "UnschedulableAndUnresolvable: node(s) didn't match Pod's required features";
    const char *spec = "'hostNetwork':true,'hostUsers':false,'containers':[{'name':'c'}]";
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    fx_node(&f, "b", BIG, "", "",
            "'declaredFeatures':['Other','UserNamespacesHostNetworkSupport']");
    const struct bh_decision *d = fx_schedule(&f, fx_pod_full(&f, "p", "", spec, ""));
    FX_STR(fx_verdict(&f, d, "a"), no);
    FX_STR(fx_verdict(&f, d, "b"), "");
    expect(&f, fx_pod_full(&f, "q", "", "'hostNetwork':true,'containers':[{'name':'c'}]", ""), "a",
           "");
    expect(&f,
           fx_pod_full(
               &f, "r", "",
               "'containers':[{'name':'c','restartPolicy':'Never','restartPolicyRules':[{'action':"
               "'RestartAllContainers'}]}]",
               ""),
           "b", no);
    fx_fini(&f);
}

/* Upstream walks both lists side by side, so that it overlooks names in one that is not sorted. */
static void test_features_out_of_order(void)
{
    static const struct {
        const char *list;
        bool found;
    } rows[] = {
        {"'UserNamespacesHostNetworkSupport'", true},
        {"'A','UserNamespacesHostNetworkSupport','Z'", true},
        {"'A','A','UserNamespacesHostNetworkSupport'", true},
        {"'ExtendWebSocketsToKubelet','UserNamespacesHostNetworkSupport'", true},
        {"'UserNamespacesHostNetworkSupport','A'", true},
        {"'Z','UserNamespacesHostNetworkSupport'", false},
        {"'Usually','UserNamespacesHostNetworkSupport'", false},
        {"'T','A','UserNamespacesHostNetworkSupport'", true},
        {"", false},
    };
    struct fx f;

    fx_init(&f, NULL);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        fx_node(&f, "a", BIG, "", "",
                bh_arena_printf(&f.arena, "'declaredFeatures':[%s]", rows[i].list));
        const struct bh_decision *d = fx_schedule(
            &f,
            fx_pod_full(&f, "p", "",
                        "'hostNetwork':true,'hostUsers':false,'containers':[{'name':'c'}]", ""));
        CU_ASSERT_EQUAL(!*fx_verdict(&f, d, "a"), rows[i].found);
    }
    fx_fini(&f);
}

static void test_order_decides_the_reason(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", "'cpu':'1','memory':'1','pods':'0'", "",
            "'unschedulable':true,'taints':[{'key':'x','effect':'NoSchedule'}]", "");
    expect(&f, fx_pod(&f, "p", "'cpu':'9'", "'nodeSelector':{'x':'y'}"), "a",
           "UnschedulableAndUnresolvable: node(s) were unschedulable");
    fx_node(&f, "a", "'cpu':'1','memory':'1','pods':'0'", "",
            "'taints':[{'key':'x','effect':'NoSchedule'}]", "");
    expect(&f, fx_pod(&f, "q", "'cpu':'9'", "'nodeSelector':{'x':'y'}"), "a",
           "UnschedulableAndUnresolvable: node(s) had untolerated taint(s)");
    fx_fini(&f);
}

static void test_device_class_takes_over(void)
{
    struct fx f;
    struct bh_buf b = {0};
    struct fx_pod p;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    p = fx_pod(&f, "p", "'example.com/gpu':'1'", "");
    expect(&f, p, "a", "UnschedulableAndUnresolvable: Insufficient example.com/gpu");
    bh_pb_pack(&b,
               fx_message(&f, &k8s__device_class__descriptor,
                          fx_json(&f, "{'metadata':{'name':'gpu'},'spec':{'extendedResourceName':"
                                      "'example.com/gpu'}}")));
    CU_ASSERT(
        bh_engine_put_object(f.e, BH_KIND_DEVICECLASS, "", "gpu", bh_buf_str(&b), b.n, NULL) == 0);
    expect(&f, p, "a", "UnschedulableAndUnresolvable: cannot allocate all claims");
    fx_node(&f, "a", BIG ",'example.com/gpu':'1'", "", "", "");
    expect(&f, p, "a", ""); /* the node offers it itself */
    CU_ASSERT(bh_engine_put_object(f.e, BH_KIND_DEVICECLASS, "", "gpu", NULL, 0, NULL) == 0);
    bh_buf_fini(&b);
    fx_fini(&f);
}

BH_TESTS("scheduler/plugins/filters",
         {"NodeUnschedulable asks for the cordon taint", test_unschedulable},
         {"TaintToleration rejects hard taints that are not tolerated", test_taints},
         {"NodeAffinity matches terms as upstream", test_node_affinity},
         {"NodeName wants its node", test_node_name},
         {"NodeAffinity enforces the added affinity", test_added_affinity},
         {"NodePorts knows one wildcard only", test_ports},
         {"used ports are a set", test_ports_are_a_set},
         {"NodeResourcesFit lists every shortage", test_fit},
         {"NodeResourcesFit leaves out ignored resources", test_fit_ignores_resources},
         {"sums beyond 64 bits are exact", test_exact_sums},
         {"NodeDeclaredFeatures wants every inferred feature", test_declared_features},
         {"NodeDeclaredFeatures takes lists for sorted", test_features_out_of_order},
         {"the first rejecting plugin alone gives reasons", test_order_decides_the_reason},
         {"a device class takes an extended resource over where the node has none",
          test_device_class_takes_over})
