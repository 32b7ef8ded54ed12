/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/dynamicresources/test_dynamic_resources.c - claims find devices,
 * devices find nodes
 */
#include "tests/unit/scheduler/plugins/dynamicresources/world.h"

static const char *gate(const char *claims)
{
    struct bh_pending p = pod("p", claims);
    const struct bh_status *s = bh_engine_pre_enqueue(e, &p);

    bh_buf_reset(&text);
    if (s)
        bh_buf_addf(&text, "%s: %s", code(s), s->reasons[0]);
    bh_engine_shape_unref(e, p.shape);
    return bh_buf_str(&text);
}

static void test_which_claim(void)
{
    const char *made = "{'name':'x','resourceClaimTemplateName':'t'}";

    begin();
    CU_ASSERT_STRING_EQUAL(gate(ONE), "UU: could not find ResourceClaim \"ns/one\"");
    CU_ASSERT_STRING_EQUAL(gate(made), "UU: pod \"ns/p\": ResourceClaim not created yet");
    CU_ASSERT_STRING_EQUAL(gate("{'name':'x'}"),
                           "UU: pod \"ns/p\", spec.resourceClaim \"x\": none of the supported "
                           "fields are set");
    pod_status = "'resourceClaimStatuses':[{'name':'x'}]";
    CU_ASSERT_STRING_EQUAL(gate(made), "");
    EXPECT(made, ""); /* no claim needed */
    pod_status = "'resourceClaimStatuses':[{'name':'x','resourceClaimName':'one'}]";
    request("");
    CU_ASSERT_STRING_EQUAL(
        gate(made), "UU: ResourceClaim ns/one was not created for Pod ns/p (Pod is not owner)");
    CU_ASSERT_STRING_EQUAL(gate(ONE), ""); /* a named claim has no owner */
    struct bh_cluster_event ev = {0};
    put_event(&ev, BH_KIND_RESOURCECLAIM, "one",
              ",'ownerReferences':[{'controller':true,'uid':'uid-p'}]}}");
    CU_ASSERT_STRING_EQUAL(gate(made), "");
    put_event(&ev, BH_KIND_RESOURCECLAIM, "one", ",'deletionTimestamp':'2026-01-01T00:00:00Z'}}");
    CU_ASSERT_STRING_EQUAL(gate(ONE), "UU: resourceclaim \"one\" is being deleted");
    end();
}

static void test_exact_count(void)
{
    begin();
    on_node("a", "{'name':'d0'},{'name':'d1'}");
    on_node("b", "{'name':'d0'}");
    request("");
    EXPECT(ONE, "");
    request(",'count':2");
    EXPECT(ONE, "b=" CANNOT);
    request(",'allocationMode':'ExactCount','count':3");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    request(",'count':33");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one: number of requested "
                "devices 33 exceeds the claim limit of 32");
    request(",'allocationMode':'Some'");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one, request r: unsupported "
                "count mode Some");
    requests("{'name':'r','exactly':{'deviceClassName':'nope'}}");
    EXPECT(ONE, "*DynamicResources/UU: request r: device class nope does not exist");
    requests("{'name':'r','firstAvailable':[{'name':'s','deviceClassName':'any'},{'name':'t',"
             "'deviceClassName':'nope'}]}");
    EXPECT(ONE, "*DynamicResources/UU: request r/t: device class nope does not exist");
    requests("{'name':'r'}");
    EXPECT(ONE, "*DynamicResources/UU: resource claim ns/one, request r: unknown request type");
    requests(""); /* nothing wanted: allocated everywhere */
    EXPECT(ONE, "");
    end();
}

static void test_what_is_allocated_is_gone(void)
{
    begin();
    on_node("a", "{'name':'d0'}");
    on_node("b", "{'name':'d0'}");
    request("");
    claim("other", "'requests':[]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'a','device':'d0'}]}}");
    EXPECT(ONE, "a=" CANNOT);
    request(",'adminAccess':true"); /* looks at devices in use */
    EXPECT(ONE, "");
    request("");
    claim("other", "'requests':[]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'a','device':'d0','adminAccess':true}]}}");
    EXPECT(ONE, "");
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    EXPECT(ONE "," NAMED("two"), "a=" CANNOT "b=" CANNOT); /* one device, two claims */
    end();
}

static void test_all(void)
{
    begin();
    on_node("a", "{'name':'d0'},{'name':'d1'}");
    request(",'allocationMode':'All'");
    EXPECT(ONE, "b=" CANNOT); /* all of nothing is nothing */
    claim("other", "'requests':[]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'a','device':'d1'}]}}");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    put(BH_KIND_RESOURCECLAIM, "other", NULL);
    on_node("a", "{'name':'d0','attributes':{'m':{'string':'x'}}},{'name':'d1','attributes':{'m':{"
                 "'string':'y'}}}");
    claim("one",
          "'requests':[{'name':'r','exactly':{'deviceClassName':'any','allocationMode':'All'}}],"
          "'constraints':[{'matchAttribute':'" DRV "/m'}]",
          "");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one, request r: cannot add "
                "device d.x/a/d1 because a claim constraint would not be satisfied");
    end();
}

static void test_match_and_distinct(void)
{
    const char *two = "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}},{'name':'s',"
                      "'exactly':{'deviceClassName':'any'}}],'constraints':[{'%s':'" DRV "/m'%s}]";

    begin();
    /* Only the second and the third go together: the first choice is taken back. */
    on_node("a", "{'name':'d0','attributes':{'m':{'int':1}}},{'name':'d1','attributes':{'m':{"
                 "'string':'1'}}},{'name':'d2','attributes':{'" DRV "/m':{'string':'1'}}}");
    on_node("b", "{'name':'d0','attributes':{'m':{'int':1}}},{'name':'d1'}");
    claim("one", bh_arena_printf(&arena, two, "matchAttribute", ""), "");
    EXPECT(ONE, "b=" CANNOT);
    claim("one", bh_arena_printf(&arena, two, "matchAttribute", ",'requests':['r']"), "");
    EXPECT(ONE, "");
    claim("one", bh_arena_printf(&arena, two, "distinctAttribute", ""), "");
    EXPECT(ONE, "b=" CANNOT);
    /* Of one request only the latest device is remembered, as upstream. */
    on_node("a", "{'name':'d0','attributes':{'m':{'int':1}}},{'name':'d1','attributes':{'m':{"
                 "'int':2}}},{'name':'d2','attributes':{'m':{'int':1}}}");
    claim("one",
          "'requests':[{'name':'r','exactly':{'deviceClassName':'any','count':3}}],"
          "'constraints':[{'distinctAttribute':'" DRV "/m'}]",
          "");
    EXPECT(ONE, "b=" CANNOT);
    claim("one", "'requests':[],'constraints':[{}]", "");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one, constraint #0: empty "
                "constraint (unsupported constraint type?)");
    end();
}

static void test_selectors(void)
{
    begin();
    on_node("a", "{'name':'d0','attributes':{'m':{'string':'x'}},'capacity':{'mem':{'value':"
                 "'40Gi'}}}");
    on_node("b", "{'name':'d0','attributes':{'m':{'string':'y'}},'capacity':{'mem':{'value':"
                 "'80Gi'}}}");
    request(",'selectors':[{'cel':{'expression':'device.attributes[`d.x`].m == `x`'}}]");
    EXPECT(ONE, "b=" CANNOT);
    request(",'selectors':[{'cel':{'expression':'device.capacity[`d.x`].mem.compareTo(quantity("
            "`64Gi`)) >= 0'}}]");
    EXPECT(ONE, "a=" CANNOT);
    request(",'selectors':[{'cel':{'expression':'device.attributes[`d.x`].gone == `x`'}}]");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one: selector #0: CEL "
                "runtime error: no such key: gone");
    put(BH_KIND_DEVICECLASS, "any",
        "'spec':{'selectors':[{'cel':{'expression':'device.driver == `other`'}}]}");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT); /* the class is asked first */
    request(",'selectors':[{}]");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one, request r, selector #0: "
                "CEL expression empty (unsupported selector type?)");
    end();
}

static void test_alternatives(void)
{
    begin();
    on_node("a", "{'name':'d0','attributes':{'m':{'string':'slow'}}}");
    on_node("b", "{'name':'d0','attributes':{'m':{'string':'fast'}}}");
    requests("{'name':'r','firstAvailable':[{'name':'f','deviceClassName':'any','selectors':[{"
             "'cel':{'expression':'device.attributes[`d.x`].m == `fast`'}}]},{'name':'g',"
             "'deviceClassName':'any','count':33},{'name':'s','deviceClassName':'any'}]}");
    EXPECT(ONE, "a+150 b+200 "); /* 6 and 8 of 8, weight 2 */
    /* Taking the first alternative would leave nothing for the second request. */
    requests("{'name':'r','firstAvailable':[{'name':'f','deviceClassName':'any','count':2},{"
             "'name':'s','deviceClassName':'any'}]},{'name':'t','exactly':{'deviceClassName':"
             "'any'}}");
    on_node("a", "{'name':'d0'},{'name':'d1'}");
    on_node("b", "{'name':'d0'},{'name':'d1'},{'name':'d2'}");
    EXPECT(ONE, "a+174 b+200 ");
    end();
}

static void test_taints(void)
{
    begin();
    on_node("a", "{'name':'d0','taints':[{'key':'k','value':'v','effect':'NoExecute'}]}");
    on_node("b", "{'name':'d0','taints':[{'key':'k','effect':'None'}]}");
    request("");
    EXPECT(ONE, "a=" CANNOT);
    request(",'adminAccess':true");
    EXPECT(ONE, "a=" CANNOT);
    request(",'tolerations':[{'key':'k','value':'v','effect':'NoExecute'}]");
    EXPECT(ONE, "");
    request(",'tolerations':[{'key':'k','value':'w'},{'operator':'Exists','effect':'NoSchedule'}]");
    EXPECT(ONE, "a=" CANNOT);
    request(",'tolerations':[{'operator':'Exists'}]");
    EXPECT(ONE, "");
    end();
}

static void test_where_pools_are(void)
{
    begin();
    request("");
    slice("all", "'allNodes':true", "'devices':[{'name':'d0'}]");
    EXPECT(ONE, "");
    slice("all",
          "'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In',"
          "'values':['zb']}]}]}",
          "'devices':[{'name':'d0'}]");
    EXPECT(ONE, "a=" CANNOT);
    slice("all",
          "'nodeSelector':{'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':"
          "'In','values':['a']}]}]}",
          "'devices':[{'name':'d0'}]");
    EXPECT(ONE, "b=" CANNOT);
    slice("all", "'perDeviceNodeSelection':true",
          "'devices':[{'name':'d0','nodeName':'b'},{'name':'d1','nodeName':'b'},{'name':'d2',"
          "'nodeName':'a'}]");
    EXPECT(ONE, "");
    request(",'count':2");
    EXPECT(ONE, "a=" CANNOT);
    slice("all", "'x':1", "'devices':[{'name':'d0'}]"); /* says nothing: for no node */
    request("");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    end();
}

static void part(const char *name, const char *on, int generation, int count, const char *device)
{
    put(BH_KIND_RESOURCESLICE, name,
        bh_arena_printf(&arena,
                        "'spec':{'driver':'" DRV "','pool':{'name':'p','generation':%d,"
                        "'resourceSliceCount':%d},'nodeName':'%s','devices':[{'name':'%s'}]}",
                        generation, count, on, device));
}

static void test_completeness(void)
{
    begin();
    request("");
    part("s0", "a", 1, 2, "d0");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    request(",'allocationMode':'All'");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one, request r: asks for all "
                "devices, but resource pool d.x/p is currently being updated");
    part("s1", "b", 1, 2, "d1"); /* the other half is on another node */
    EXPECT(ONE, "");
    part("s2", "b", 2, 1, "d2"); /* makes all others obsolete */
    EXPECT(ONE, "a=" CANNOT);
    put(BH_KIND_RESOURCESLICE, "s2", NULL);
    part("s1", "a", 1, 2, "d0"); /* one name twice */
    request("");
    EXPECT(ONE, "a=DynamicResources/UU: invalid resource pools were encountered; b=" CANNOT);
    request(",'allocationMode':'All'");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: claim ns/one, request r: asks for all "
                "devices, but resource pool d.x/p is currently invalid");
    end();
}

static void test_shared_counters(void)
{
    begin();
    put(BH_KIND_RESOURCESLICE, "counters",
        "'spec':{'driver':'" DRV "','pool':{'name':'a','generation':1,'resourceSliceCount':2},"
        "'sharedCounters':[{'name':'c','counters':{'mem':{'value':'10'}}}]}");
    put(BH_KIND_RESOURCESLICE, "devices",
        "'spec':{'driver':'" DRV
        "','pool':{'name':'a','generation':1,'resourceSliceCount':2},'nodeName':'a','devices':[{"
        "'name':'half0','consumesCounters':[{'counterSet':'c','counters':{'mem':{'value':'5'}}}]},{"
        "'name':'half1','consumesCounters':[{'counterSet':'c','counters':{'mem':{'value':'5'}}}]},{"
        "'name':'full','consumesCounters':[{'counterSet':'c','counters':{'mem':{'value':'10'}}}]}]"
        "}");
    request(",'count':2");
    EXPECT(ONE, "b=" CANNOT);
    request(",'count':3");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    request("");
    claim("other", "'requests':[]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'a','device':'half0'}]}}");
    EXPECT(ONE, "b=" CANNOT); /* the other half */
    claim("other", "'requests':[]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'a','device':'full'}]}}");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    put(BH_KIND_RESOURCECLAIM, "other", NULL);
    put(BH_KIND_RESOURCESLICE, "counters",
        "'spec':{'driver':'" DRV "','pool':{'name':'a','generation':1,'resourceSliceCount':2},"
        "'sharedCounters':[{'name':'c','counters':{'cores':{'value':'10'}}}]}");
    EXPECT(ONE, "a=DynamicResources/UU: invalid resource pools were encountered; "
                "b=DynamicResources/UU: invalid resource pools were encountered; ");
    end(); /* the counters are everybody's */
}

static void test_consumable_capacity(void)
{
    const char *ask_for = ",'capacity':{'requests':{'mem':'%s'}}";

    begin();
    on_node("a",
            "{'name':'d0','allowMultipleAllocations':true,'capacity':{'mem':{'value':'10',"
            "'requestPolicy':{'default':'1','validRange':{'min':'2','max':'8','step':'2'}}}}}");
    on_node("b", "{'name':'d0','capacity':{'mem':{'value':'4'}}}");
    request(bh_arena_printf(&arena, ask_for, "3"));
    EXPECT(ONE, "");
    request(bh_arena_printf(&arena, ask_for, "5")); /* 6 here; too large there */
    EXPECT(ONE, "b=" CANNOT);
    request(bh_arena_printf(&arena, ask_for, "9")); /* over max */
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    request(",'capacity':{'requests':{'cores':'1'}}");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    requests(bh_arena_printf(&arena,
                             "{'name':'r','exactly':{'deviceClassName':'any'%s}},{'name':'s',"
                             "'exactly':{'deviceClassName':'any'%s}}",
                             bh_arena_printf(&arena, ask_for, "5"),
                             bh_arena_printf(&arena, ask_for, "4")));
    EXPECT(ONE, "b=" CANNOT); /* 6 + 4 of one device */
    claim("other", "'requests':[]",
          "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
          "','pool':'a','device':'d0','shareID':'x','consumedCapacity':{'mem':'1'}}]}}");
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    request(""); /* the default of 1 is still there */
    EXPECT(ONE, "");
    end();
}

static void test_allocated_claims(void)
{
    const char *on_b =
        "'allocation':{'devices':{},'nodeSelector':{'nodeSelectorTerms':[{"
        "'matchFields':[{'key':'metadata.name','operator':'In','values':['b']}]}]}}%s";
    const char *gone = "a=DynamicResources/UU: resourceclaim not available on the node; ";

    begin();
    claim("one", "'requests':[]", bh_arena_printf(&arena, on_b, ""));
    EXPECT(ONE, gone);
    end();
}

static void test_binding_conditions(void)
{
    const char *status =
        "'allocation':{'allocationTimestamp':'%s','devices':{'results':[{'request':"
        "'r','driver':'" DRV "','pool':'a','device':'d0','bindingConditions':['Up'],"
        "'bindingFailureConditions':['Broken']}]}},'devices':[{'driver':'" DRV
        "','pool':'a','device':'d0','conditions':[{'type':'%s','status':'True'}]}]";
    const char *late = "1969-01-01T00:00:00Z", *now = "1970-01-01T00:00:00Z";
    const char *gone = "a=DynamicResources/UU: resourceclaim not available on the node; "
                       "b=DynamicResources/UU: resourceclaim not available on the node; ";

    begin();
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, now, "Other"));
    EXPECT(ONE, "");
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, late, "Other"));
    EXPECT(ONE, gone);
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, late, "Up"));
    EXPECT(ONE, "");
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, now, "Broken"));
    EXPECT(ONE, gone);
    end();
}

#define CONTAINER(r, n) "{'name':'c','resources':{'requests':{'" r "':'" n "'}}}"

static void test_extended_resources(void)
{
    begin();
    put(BH_KIND_DEVICECLASS, "gpu", "'spec':{'extendedResourceName':'x.io/gpu'}");
    node("c", "", ",'x.io/gpu':'1'"); /* has a device plugin */
    on_node("a", "{'name':'d0'},{'name':'d1'}");
    pod_extra = "'containers':[" CONTAINER("x.io/gpu", "1") "],";
    EXPECT("", "b=" CANNOT);
    pod_extra = "'containers':[" CONTAINER("deviceclass.resource.kubernetes.io/any", "2") "],";
    EXPECT("", "b=" CANNOT "c=" CANNOT);
    /* An ended init container's devices are used again: 2, not 3. */
    pod_extra = "'initContainers':[" CONTAINER("x.io/gpu", "2") "],'containers':[" CONTAINER(
        "x.io/gpu", "1") "],";
    EXPECT("", "b=" CANNOT "c=NodeResourcesFit/UU: Insufficient x.io/gpu; ");
    /* A claim that an earlier attempt left behind. */
    struct bh_cluster_event ev = {0};
    put_event(
        &ev, BH_KIND_RESOURCECLAIM, "left",
        ",'annotations':{'resource.kubernetes.io/extended-resource-claim':'true'},"
        "'ownerReferences':[{'controller':true,'name':'p','uid':'uid-p'}]},'spec':{'devices':{"
        "'requests':[{'name':'r'}]}}}");
    pod_extra = "'containers':[" CONTAINER("x.io/gpu", "1") "],";
    EXPECT("", "a=DynamicResources/UU: cannot schedule extended resource claim; "
               "b=DynamicResources/UU: cannot schedule extended resource claim; "
               "c=DynamicResources/UU: cannot schedule extended resource claim; ");
    end();
}

/* Choosing 20 of 19 devices: 2^19 ways to fail. */
static void hopeless(void)
{
    struct bh_buf b = {0};

    for (unsigned i = 0; i < 19; i++)
        bh_buf_addf(&b, "%s{'name':'d%u'}", i ? "," : "", i);
    on_node("a", bh_buf_str(&b));
    bh_buf_fini(&b);
    request(",'count':20");
}

static void test_search_is_bounded(void)
{
    struct bh_sched_config *config = with_timeout("1ms");

    begin_with(NULL);
    hopeless();
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT);
    end();
    begin_with(config);
    hopeless();
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: node a: timed out trying to allocate "
                "devices");
    end();
    bh_sched_config_free(config);
}

static enum bh_hint hint(const struct bh_pending *p, const char *name, const char *json,
                         uint32_t action)
{
    struct bh_cluster_event ev = {.action = action};

    put_event(&ev, BH_KIND_RESOURCECLAIM, name, json);
    return bh_engine_hint(e, "DynamicResources", p, &ev, &(bool){false});
}

static void test_hints(void)
{
    const char *plain = "},'spec':{}}", *given = "},'spec':{},'status':{'allocation':{}}}";

    begin();
    struct bh_pending p = pod("p", ONE);
    CU_ASSERT_EQUAL(hint(&p, "other", plain, BH_EV_ADD), BH_QUEUE_SKIP); /* own one is missing */
    CU_ASSERT_EQUAL(hint(&p, "one", plain, BH_EV_ADD), BH_QUEUE);
    CU_ASSERT_EQUAL(hint(&p, "one", plain, BH_EV_UPDATE), BH_QUEUE_SKIP);
    CU_ASSERT_EQUAL(hint(&p, "one", given, BH_EV_UPDATE), BH_QUEUE);
    CU_ASSERT_EQUAL(hint(&p, "other", given, BH_EV_UPDATE), BH_QUEUE_SKIP);
    CU_ASSERT_EQUAL(hint(&p, "other", plain, BH_EV_UPDATE), BH_QUEUE); /* its devices are free */
    struct bh_cluster_event ev = {
        .resource = BH_EV_POD_UNSCHEDULED, .action = BH_EV_POD_CLAIM, .new_pod = p.pod};
    CU_ASSERT_EQUAL(bh_engine_hint(e, "DynamicResources", &p, &ev, &(bool){false}), BH_QUEUE);
    struct bh_pending q = pod("q", ONE);
    ev.new_pod = q.pod;
    CU_ASSERT_EQUAL(bh_engine_hint(e, "DynamicResources", &p, &ev, &(bool){false}), BH_QUEUE_SKIP);
    bh_engine_shape_unref(e, p.shape);
    bh_engine_shape_unref(e, q.shape);
    end();
}

BH_TESTS("scheduler dynamic resources",
         {"a pod's entry names its claim, or its status does, for claims it owns",
          test_which_claim},
         {"a count of devices is found or not", test_exact_count},
         {"allocated devices are gone, except for administrators", test_what_is_allocated_is_gone},
         {"all devices means at least one, free and within the constraints", test_all},
         {"attributes match or differ, with upstream's memory", test_match_and_distinct},
         {"selectors of class and request, and their errors", test_selectors},
         {"alternatives are tried in order and score", test_alternatives},
         {"device taints need tolerations", test_taints},
         {"pools are for nodes by name, selector, device or for all", test_where_pools_are},
         {"pools are complete, obsolete or invalid", test_completeness},
         {"partitions share counters", test_shared_counters},
         {"capacity is consumed by policy", test_consumable_capacity},
         {"allocated claims bind the pod to their nodes", test_allocated_claims},
         {"devices that failed to bind are not available", test_binding_conditions},
         {"classes provide extended resources where no device plugin does",
          test_extended_resources},
         {"a search without solution ends", test_search_is_bounded},
         {"claim and pod events wake the right pods", test_hints})
