/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/dynamicresources/test_assume.c - Reserve takes devices, Unreserve
 * gives them back; what is to be written, and what comes of it
 */
#include <errno.h>

#include "tests/unit/scheduler/plugins/dynamicresources/world.h"

#define MS ((int64_t)1000000)

static bh_sym sym(const char *name)
{
    return bh_sym_internc(bh_engine_symtab(e), name);
}

static struct bh_str uid_of(const struct bh_pending *p)
{
    return bh_rec_text(p->pod, p->pod->uid);
}

static void reserve(const struct bh_pending *p, const char *node_name)
{
    const struct bh_status *s = bh_engine_reserve(e, p, sym(node_name));

    if (s)
        printf("  %s\n", s->reasons[0]);
    CU_ASSERT_PTR_NULL(s);
}

static const struct bh_write *work(const struct bh_pending *p, uint32_t n)
{
    uint32_t have;
    const struct bh_write *v = bh_engine_prebind_work(e, uid_of(p), &have);

    CU_ASSERT_EQUAL_FATAL(have, n);
    return v;
}

static const K8s__ResourceClaim *claim_of(const struct bh_write *w)
{
    return (const void *)w->object;
}

/* As JSON with ' for ", without what is the same for all. */
static const char *json_of(const ProtobufCMessage *m)
{
    struct bh_buf b = {0};

    bh_json_write(&b, bh_pb_to_json(&arena, m));
    char *t = bh_arena_strdup(&arena, bh_buf_str(&b));
    bh_buf_fini(&b);
    for (char *p = t; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    return t;
}

#define EXPECT_JSON(m, want)                                                                       \
    do {                                                                                           \
        const char *got_ = json_of(m);                                                             \
        if (!bh_streq(got_, (want)))                                                               \
            printf("  line %d: got %s\n", __LINE__, got_);                                         \
        CU_ASSERT_STRING_EQUAL(got_, (want));                                                      \
    } while (0)

static void test_allocation(void)
{
    begin();
    on_node("a", "{'name':'d0'},{'name':'d1'}");
    request(",'tolerations':[{'key':'k','operator':'Exists'}]");
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any','count':2}}]", "");
    struct bh_pending p = pod("p", ONE);
    reserve(&p, "a");
    const struct bh_write *w = work(&p, 1);
    CU_ASSERT_EQUAL(w->what, BH_WRITE_ALLOCATION);
    CU_ASSERT_EQUAL(w->kind, BH_KIND_RESOURCECLAIM);
    CU_ASSERT_STRING_EQUAL(w->namespace_, "ns");
    CU_ASSERT_STRING_EQUAL(w->name, "one");
    CU_ASSERT_STRING_EQUAL(w->uid, "uid-one");
    CU_ASSERT_EQUAL_FATAL(claim_of(w)->metadata->n_finalizers, 1);
    CU_ASSERT_STRING_EQUAL(claim_of(w)->metadata->finalizers[0],
                           "resource.kubernetes.io/delete-protection");
    EXPECT_JSON(
        &claim_of(w)->status->base,
        "{'allocation':{'devices':{'results':[{'request':'r','driver':'d.x','pool':'a',"
        "'device':'d0','tolerations':[{'key':'k','operator':'Exists'}]}]},'nodeSelector':{"
        "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In',"
        "'values':['a']}]}]}},'reservedFor':[{'resource':'pods','name':'p','uid':'uid-p'}]}");
    /* The device is gone for others, and the claim is nobody else's to use. */
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    EXPECT(ONE, "*DynamicResources/UU: resource claim ns/one is in the process of being allocated");
    bh_engine_unreserve(e, &p, sym("a"));
    EXPECT(NAMED("two"), "b=" CANNOT);
    EXPECT(ONE, "b=" CANNOT);
    uint32_t n;
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(e, uid_of(&p), &n));
    bh_engine_unreserve(e, &p, sym("a")); /* again: nothing */
    bh_engine_shape_unref(e, p.shape);
    end();
}

/* Another profile sees what the first one took. */
static void test_profiles_share(void)
{
    struct bh_sched_config *config = NULL;
    char json[] = "{'apiVersion':'kubescheduler.config.k8s.io/v1','kind':"
                  "'KubeSchedulerConfiguration','profiles':[{'schedulerName':'default-scheduler'},"
                  "{'schedulerName':'other'}]}";
    struct bh_json *v = NULL;
    struct bh_arena a;

    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    bh_arena_init(&a, 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, json, strlen(json), 0, &v, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(v, &config, NULL), 0);
    bh_arena_fini(&a);
    begin_with(config);
    on_node("a", "{'name':'d0'}");
    request("");
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    pod_extra = "'schedulerName':'other','containers':[{'name':'c'}],";
    struct bh_pending p = pod("p", ONE);
    pod_extra = "";
    reserve(&p, "a");
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    bh_engine_unreserve(e, &p, sym("a"));
    EXPECT(NAMED("two"), "b=" CANNOT);
    bh_engine_shape_unref(e, p.shape);
    end();
    bh_sched_config_free(config);
}

static void test_config_and_alternatives(void)
{
    begin();
    put(BH_KIND_DEVICECLASS, "any",
        "'spec':{'config':[{'opaque':{'driver':'c1'}},{'opaque':{'driver':'c2'}}]}");
    on_node("a", "{'name':'d0'},{'name':'d1','bindsToNode':true,'bindingConditions':['Up'],"
                 "'bindingFailureConditions':['No']}");
    claim("one",
          "'requests':[{'name':'r','firstAvailable':[{'name':'x','deviceClassName':'any','count':3}"
          ",{'name':'y','deviceClassName':'any'}]},{'name':'s','exactly':{'deviceClassName':'any',"
          "'adminAccess':true}}],'config':[{'opaque':{'driver':'all'}},{'requests':['r','s'],"
          "'opaque':{'driver':'both'}},{'requests':['r/y'],'opaque':{'driver':'y'}},{'requests':["
          "'r/x'],'opaque':{'driver':'x'}}]",
          "");
    struct bh_pending p = pod("p", ONE);
    reserve(&p, "a");
    EXPECT_JSON(
        &claim_of(work(&p, 1))->status->allocation->devices->base,
        "{'results':[{'request':'r/y','driver':'d.x','pool':'a','device':'d0'},{'request':'s',"
        "'driver':'d.x','pool':'a','device':'d1','adminAccess':true,'bindingConditions':['Up'],"
        "'bindingFailureConditions':['No']}],'config':[{'source':'FromClass','requests':['r/"
        "y','s'],"
        "'opaque':{'driver':'c1'}},{'source':'FromClass','requests':['r/y','s'],'opaque':{'driver':"
        "'c2'}},{'source':'FromClaim','opaque':{'driver':'all'}},{'source':'FromClaim','requests':["
        "'r','s'],'opaque':{'driver':'both'}},{'source':'FromClaim','requests':['r','s'],'opaque':{"
        "'driver':'both'}},{'source':'FromClaim','requests':['r/y'],'opaque':{'driver':'y'}}]}");
    bh_engine_unreserve(e, &p, sym("a"));
    bh_engine_shape_unref(e, p.shape);
    end();
}

static void test_reach(void)
{
    const char *zone = "'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone',"
                       "'operator':'In','values':['za','%s']}]}]}";

    begin();
    slice("p1", bh_arena_printf(&arena, zone, "zb"), "'devices':[{'name':'d0'}]");
    slice("p2", bh_arena_printf(&arena, zone, "zb"), "'devices':[{'name':'d0'}]");
    slice("p3", bh_arena_printf(&arena, zone, "zc"), "'devices':[{'name':'d0'}]");
    request(",'count':3");
    struct bh_pending p = pod("p", ONE);
    reserve(&p, "a");
    EXPECT_JSON(
        &claim_of(work(&p, 1))->status->allocation->nodeselector->base,
        "{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In','values':["
        "'za','zb']},{'key':'zone','operator':'In','values':['za','zc']}]}]}");
    bh_engine_unreserve(e, &p, sym("a"));
    slice("p1", "'allNodes':true", "'devices':[{'name':'d0'}]");
    request("");
    reserve(&p, "b");
    CU_ASSERT_PTR_NULL(claim_of(work(&p, 1))->status->allocation->nodeselector); /* everywhere */
    bh_engine_unreserve(e, &p, sym("b"));
    slice("p1",
          "'nodeSelector':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':"
          "'Exists'}]},{}]}",
          "'devices':[{'name':'d0'}]");
    EXPECT(ONE, "running \"DynamicResources\" filter plugin: create NodeSelector for claim one: "
                "unsupported ResourceSlice.NodeSelector with 2 terms");
    bh_engine_shape_unref(e, p.shape);
    end();
}

static void test_shares(void)
{
    begin();
    on_node("a", "{'name':'d0','allowMultipleAllocations':true,'capacity':{'mem':{'value':'4Ki',"
                 "'requestPolicy':{'default':'1Ki','validRange':{'min':'1Ki','step':'1Ki'}}}}}");
    request(",'capacity':{'requests':{'mem':'1500'}}");
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    claim("three", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    struct bh_pending p = pod("p", ONE), q = pod("q", NAMED("two"));
    reserve(&p, "a");
    reserve(&q, "a");
    const K8s__DeviceRequestAllocationResult *r =
        claim_of(work(&p, 1))->status->allocation->devices->results[0];
    const K8s__DeviceRequestAllocationResult *s =
        claim_of(work(&q, 1))->status->allocation->devices->results[0];
    CU_ASSERT_STRING_EQUAL(r->consumedcapacity[0]->value->string, "2Ki"); /* rounded up */
    CU_ASSERT_STRING_EQUAL(s->consumedcapacity[0]->value->string, "1Ki"); /* the default */
    CU_ASSERT_EQUAL(strlen(r->shareid), 36);
    CU_ASSERT_STRING_NOT_EQUAL(r->shareid, s->shareid);
    EXPECT(NAMED("three"), "b=" CANNOT); /* 1Ki is left */
    claim("four",
          "'requests':[{'name':'r','exactly':{'deviceClassName':'any','capacity':{"
          "'requests':{'mem':'2Ki'}}}}]",
          "");
    EXPECT(NAMED("four"), "a=" CANNOT "b=" CANNOT);
    bh_engine_unreserve(e, &p, sym("a"));
    EXPECT(NAMED("four"), "b=" CANNOT);
    bh_engine_unreserve(e, &q, sym("a"));
    bh_engine_shape_unref(e, p.shape);
    bh_engine_shape_unref(e, q.shape);
    end();
}

static void test_reservation(void)
{
    begin();
    claim("one", "'requests':[]", "'allocation':{'devices':{}}");
    struct bh_pending p = pod("p", ONE "," ONE);
    reserve(&p, "b");
    const struct bh_write *w = work(&p, 1); /* once, though it is listed twice */
    CU_ASSERT_EQUAL(w->what, BH_WRITE_RESERVATION);
    EXPECT_JSON(&claim_of(w)->status->base,
                "{'allocation':{'devices':{}},'reservedFor':[{'resource':'pods','name':'p','uid':"
                "'uid-p'}]}");
    EXPECT(ONE, ""); /* allocated claims are shared */
    bh_engine_unreserve(e, &p, sym("b"));
    claim("one", "'requests':[]",
          "'allocation':{'devices':{}},'reservedFor':[{'resource':'pods','uid':'uid-p'}]");
    reserve(&p, "b");
    uint32_t n;
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(e, uid_of(&p), &n)); /* ours already */
    /* To be undone: the pod's entry, whoever wrote it. */
    const struct bh_write *undo = bh_engine_undo_work(e, &p, &n);
    CU_ASSERT_EQUAL_FATAL(n, 2); /* upstream patches once for each entry of the pod */
    CU_ASSERT_EQUAL(undo[0].what, BH_WRITE_UNRESERVATION);
    EXPECT_JSON(&claim_of(&undo[0])->status->base, "{'allocation':{'devices':{}}}");
    bh_engine_unreserve(e, &p, sym("b"));
    bh_engine_shape_unref(e, p.shape);
    end();
}

static void put_versioned(const char *name, const char *version, const char *rest)
{
    struct bh_cluster_event ev = {0};

    put_event(&ev, BH_KIND_RESOURCECLAIM, name,
              bh_arena_printf(&arena, ",'resourceVersion':'%s'},%s}", version, rest));
}

#define SPEC "'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]}}"
#define GIVEN                                                                                      \
    "'status':{'allocation':{'devices':{'results':[{'request':'r','driver':'d.x','pool':'a','"     \
    "device':'d0'}]}},'reservedFor':[{'resource':'pods','uid':'uid-p'}]}"

static int written(const struct bh_pending *p, uint32_t i, const char *name, const char *version)
{
    struct bh_buf b = {0};

    bh_pb_pack(&b, read_json(&bh_kinds[BH_KIND_RESOURCECLAIM],
                             bh_arena_printf(&arena,
                                             "{'metadata':{'name':'%s','namespace':'ns','uid':"
                                             "'uid-%s','resourceVersion':'%s'}," SPEC "," GIVEN "}",
                                             name, name, version)));
    int rc = bh_engine_prebind_written(e, uid_of(p), i, bh_buf_str(&b), b.n, NULL);
    bh_buf_fini(&b);
    return rc;
}

/* The device stays taken at every moment between Reserve and the watch showing the write. */
static void test_written(void)
{
    begin();
    on_node("a", "{'name':'d0'}");
    put_versioned("one", "5", SPEC);
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    struct bh_pending p = pod("p", ONE);
    reserve(&p, "a");
    CU_ASSERT_EQUAL(written(&p, 0, "one", "9"), 0);
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    EXPECT(ONE, "");                 /* no longer in flight: others may share the claim */
    put_versioned("one", "8", SPEC); /* an older version, as the finalizer's write left it */
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    put_versioned("one", "9", SPEC "," GIVEN);
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    put_versioned("one", "10", SPEC); /* deallocated by somebody */
    EXPECT(NAMED("two"), "b=" CANNOT);
    bh_engine_unreserve(e, &p, sym("a"));
    bh_engine_shape_unref(e, p.shape);
    end();
}

static void test_confirmed(void)
{
    begin();
    on_node("a", "{'name':'d0'}");
    put_versioned("one", "5", SPEC);
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    struct bh_pending p = pod("p", ONE);
    reserve(&p, "a");
    CU_ASSERT_EQUAL(written(&p, 0, "one", "9"), 0);
    pod_extra = "'nodeName':'a','containers':[{'name':'c'}],";
    struct bh_pending on = pod("p", ONE);
    pod_extra = "";
    bh_engine_put_pod(e, on.pod, on.shape);
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    CU_ASSERT_EQUAL(written(&p, 0, "one", "10"), -ENOENT); /* the reservation is over */
    bh_engine_shape_unref(e, on.shape);
    bh_engine_shape_unref(e, p.shape);
    end();
}

static void test_extended(void)
{
    begin();
    put(BH_KIND_DEVICECLASS, "gpu", "'spec':{'extendedResourceName':'x.io/gpu'}");
    node("c", "", ",'x.io/gpu':'1'"); /* has a device plugin */
    on_node("a", "{'name':'d0'},{'name':'d1'},{'name':'d2'}");
    pod_extra = "'initContainers':[{'name':'i','resources':{'requests':{'x.io/gpu':'3'}}},{'name':"
                "'j','resources':{'requests':{'x.io/gpu':'1'}}}],'containers':[{'name':'k',"
                "'resources':{'requests':{'cpu':'1','x.io/gpu':'1'}}}],";
    struct bh_pending p = pod("p", "");
    reserve(&p, "a");
    const struct bh_write *w = work(&p, 1);
    CU_ASSERT_EQUAL(w->what, BH_WRITE_NEW_CLAIM);
    CU_ASSERT_STRING_EQUAL(w->name, "");
    EXPECT_JSON(
        &claim_of(w)->metadata->base,
        "{'generateName':'p-extended-resources-','namespace':'ns','annotations':{"
        "'resource.kubernetes.io/extended-resource-claim':'true'},'ownerReferences':[{'kind':"
        "'Pod','name':'p','uid':'uid-p','apiVersion':'v1','controller':true}],'finalizers':["
        "'resource.kubernetes.io/delete-protection']}");
    EXPECT_JSON(&claim_of(w)->spec->base,
                "{'devices':{'requests':[{'name':'container-0-request-0','exactly':{"
                "'deviceClassName':'gpu','allocationMode':'ExactCount','count':2}},{'name':"
                "'container-2-request-1','exactly':{'deviceClassName':'gpu','allocationMode':"
                "'ExactCount','count':1}}]}}");
    CU_ASSERT_EQUAL(claim_of(w)->status->allocation->devices->n_results, 3);
    EXPECT_JSON(&w->pod_status->base,
                "{'requestMappings':[{'containerName':'k','resourceName':'x.io/gpu','requestName':"
                "'container-2-request-1'},{'containerName':'i','resourceName':'x.io/gpu',"
                "'requestName':'container-2-request-1'},{'containerName':'i','resourceName':"
                "'x.io/gpu','requestName':'container-0-request-0'},{'containerName':'j',"
                "'resourceName':'x.io/gpu','requestName':'container-2-request-1'}]}");
    request("");
    pod_extra = "";
    EXPECT(ONE, "a=" CANNOT "b=" CANNOT "c=" CANNOT);
    /* The server's answer is known before the watch shows the claim. */
    CU_ASSERT_EQUAL(written(&p, 0, "p-extended-resources-xyz", "7"), 0);
    uint32_t n;
    const struct bh_write *undo = bh_engine_undo_work(e, &p, &n);
    CU_ASSERT_EQUAL_FATAL(n, 1);
    CU_ASSERT_EQUAL(undo->what, BH_WRITE_DELETE_CLAIM);
    CU_ASSERT_STRING_EQUAL(undo->name, "p-extended-resources-xyz");
    CU_ASSERT_PTR_NOT_NULL(
        bh_engine_get_object(e, BH_KIND_RESOURCECLAIM, "ns", "p-extended-resources-xyz"));
    bh_engine_unreserve(e, &p, sym("a"));
    bh_engine_shape_unref(e, p.shape);
    end();
}

/* A node whose device plugin serves the pod needs no claim. */
static void test_extended_by_plugin(void)
{
    uint32_t n;

    begin();
    put(BH_KIND_DEVICECLASS, "gpu", "'spec':{'extendedResourceName':'x.io/gpu'}");
    node("c", "", ",'x.io/gpu':'1'");
    slice("all", "'allNodes':true", "'devices':[{'name':'d0'}]");
    request("");
    pod_extra = "'containers':[{'name':'k','resources':{'requests':{'x.io/gpu':'1'}}}],";
    struct bh_pending p = pod("p", ""), q = pod("q", ONE);
    reserve(&p, "c");
    CU_ASSERT_PTR_NULL(bh_engine_prebind_work(e, uid_of(&p), &n));
    reserve(&q, "c");
    CU_ASSERT_EQUAL(work(&q, 1)->what, BH_WRITE_ALLOCATION); /* and no empty claim beside it */
    bh_engine_unreserve(e, &q, sym("c"));
    bh_engine_shape_unref(e, p.shape);
    bh_engine_shape_unref(e, q.shape);
    end();
}

#define EXPECT_CHECK(p, now, state, want)                                                          \
    do {                                                                                           \
        const char *text_;                                                                         \
        enum bh_prebind_state s_ = bh_engine_prebind_check(e, (p), sym("a"), 0, (now), &text_);    \
        CU_ASSERT_EQUAL(s_, (state));                                                              \
        if (s_ == BH_PREBIND_FAILED)                                                               \
            CU_ASSERT_STRING_EQUAL(text_, "running PreBind plugin \"DynamicResources\": " want);   \
    } while (0)

static void test_binding_conditions(void)
{
    const char *status =
        "'allocation':{'allocationTimestamp':'1970-01-01T00:00:%sZ','devices':{'results':[{'"
        "request':"
        "'r','driver':'" DRV "','pool':'a','device':'d0','bindingConditions':['Up'],"
        "'bindingFailureConditions':['Broken']}]}},'reservedFor':[{'uid':'uid-p'}],'devices':[{"
        "'driver':'" DRV "','pool':'a','device':'d0','conditions':[{'type':'%s','status':'True',"
        "'reason':'Why','message':'it \\\"said\\\"'}]}]";

    begin();
    claim("one", "'requests':[]", "'allocation':{'devices':{}},'reservedFor':[{'uid':'uid-p'}]");
    struct bh_pending p = pod("p", ONE);
    EXPECT_CHECK(&p, MS, BH_PREBIND_READY, "");
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, "00", "Other"));
    EXPECT_CHECK(&p, MS, BH_PREBIND_WAITS, "");
    EXPECT_CHECK(&p, 600001 * MS, BH_PREBIND_FAILED, "device binding timeout: claim=one");
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, "59", "Other"));
    EXPECT_CHECK(&p, 600001 * MS, BH_PREBIND_FAILED,
                 "device binding timeout: context deadline exceeded");
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, "00", "Up"));
    EXPECT_CHECK(&p, 600001 * MS, BH_PREBIND_READY, "");
    claim("one", "'requests':[]", bh_arena_printf(&arena, status, "00", "Broken"));
    EXPECT_CHECK(&p, MS, BH_PREBIND_FAILED,
                 "device binding failed: claim=one, reason=Why, message=\"it \\\"said\\\"\"");
    put(BH_KIND_RESOURCECLAIM, "one", NULL);
    EXPECT_CHECK(&p, MS, BH_PREBIND_FAILED, "could not find ResourceClaim \"ns/one\"");
    bh_engine_shape_unref(e, p.shape);
    end();
}

static void test_post_filter(void)
{
    const char *on_c =
        "'allocation':{'devices':{},'nodeSelector':{'nodeSelectorTerms':[{"
        "'matchFields':[{'key':'metadata.name','operator':'In','values':['c']}]}]}}%s";
    const struct bh_decision *d;

    begin();
    claim("one", "'requests':[]", bh_arena_printf(&arena, on_c, ""));
    struct bh_pending p = pod("p", ONE);
    d = bh_engine_schedule(e, &p, 0, 0);
    CU_ASSERT_EQUAL_FATAL(d->n_writes, 1);
    CU_ASSERT_EQUAL(d->writes->what, BH_WRITE_DEALLOCATION);
    CU_ASSERT_STRING_EQUAL(d->writes->name, "one");
    EXPECT_JSON(&claim_of(d->writes)->status->base, "{}");
    CU_ASSERT_PTR_NOT_NULL(strstr(d->message, "deallocation of ResourceClaim completed"));
    claim("one", "'requests':[]",
          bh_arena_printf(&arena, on_c, ",'reservedFor':[{'uid':'uid-p'}]"));
    CU_ASSERT_EQUAL(bh_engine_schedule(e, &p, 0, 0)->n_writes, 1);
    claim("one", "'requests':[]",
          bh_arena_printf(&arena, on_c, ",'reservedFor':[{'uid':'uid-q'}]")); /* another's */
    d = bh_engine_schedule(e, &p, 0, 0);
    CU_ASSERT_EQUAL(d->n_writes, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(d->message, "still not schedulable"));
    /* A node that lacks devices does not count against the allocated claim. */
    claim("one", "'requests':[]", bh_arena_printf(&arena, on_c, ""));
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    struct bh_pending q = pod("q", ONE "," NAMED("two"));
    d = bh_engine_schedule(e, &q, 0, 0);
    CU_ASSERT_EQUAL(d->n_writes, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(d->message, "still not schedulable"));
    struct bh_pending none = pod("none", NAMED("two") "," NAMED("missing"));
    d = bh_engine_schedule(e, &none, 0, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(d->message, "no new claims to deallocate"));
    bh_engine_shape_unref(e, p.shape);
    bh_engine_shape_unref(e, q.shape);
    bh_engine_shape_unref(e, none.shape);
    end();
}

static void test_post_filter_special(void)
{
    struct bh_cluster_event ev = {0};

    begin();
    put(BH_KIND_DEVICECLASS, "gpu", "'spec':{'extendedResourceName':'x.io/gpu'}");
    put_event(
        &ev, BH_KIND_RESOURCECLAIM, "left",
        ",'annotations':{'resource.kubernetes.io/extended-resource-claim':'true'},"
        "'finalizers':['x/y','resource.kubernetes.io/delete-protection'],"
        "'ownerReferences':[{'controller':true,'name':'p','uid':'uid-p'}]},'spec':{'devices':{"
        "'requests':[{'name':'r'}]}}}");
    pod_extra = "'containers':[{'name':'k','resources':{'requests':{'x.io/gpu':'1'}}}],";
    struct bh_pending p = pod("p", "");
    const struct bh_decision *d = bh_engine_schedule(e, &p, 0, 0);
    CU_ASSERT_EQUAL_FATAL(d->n_writes, 1);
    CU_ASSERT_EQUAL(d->writes->what, BH_WRITE_DELETE_CLAIM);
    CU_ASSERT_EQUAL_FATAL(claim_of(d->writes)->metadata->n_finalizers, 1);
    CU_ASSERT_STRING_EQUAL(claim_of(d->writes)->metadata->finalizers[0], "x/y");
    CU_ASSERT_PTR_NOT_NULL(strstr(d->message, "deletion of ResourceClaim completed"));
    bh_engine_shape_unref(e, p.shape);
    end();
}

static void test_commit(void)
{
    begin();
    on_node("a", "{'name':'d0'}");
    request("");
    claim("two", "'requests':[{'name':'r','exactly':{'deviceClassName':'any'}}]", "");
    struct bh_pending p = pod("p", ONE);
    reserve(&p, "a");
    bh_engine_prebind_commit(e, uid_of(&p));
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    EXPECT(ONE, "b=DynamicResources/UU: resourceclaim not available on the node; ");
    bh_engine_shape_unref(e, p.shape);
    end();
}

/* ---- what is told of claims ------------------------------------------------------------------ */

#define ALLOCATED "'allocation':{'devices':{}}"

static uint32_t watched(const char *version, const char *status)
{
    struct bh_cluster_event ev = {.action = BH_EV_UPDATE};

    put_event(&ev, BH_KIND_RESOURCECLAIM, "one",
              bh_arena_printf(&arena, ",'resourceVersion':'%s'},'spec':{},'status':{%s}}", version,
                              status));
    return ev.object_changes;
}

static uint32_t learned(const char *version, const char *status)
{
    struct bh_cluster_event ev = {.object_changes = 0};
    struct bh_buf b = {0};

    bh_pb_pack(&b,
               read_json(&bh_kinds[BH_KIND_RESOURCECLAIM],
                         bh_arena_printf(&arena,
                                         "{'metadata':{'name':'one','namespace':'ns','uid':'uid-"
                                         "one','resourceVersion':'%s'},'spec':{},'status':{%s}}",
                                         version, status)));
    CU_ASSERT_EQUAL(
        bh_engine_learn(e, BH_KIND_RESOURCECLAIM, bh_buf_str(&b), b.n, false, &ev, NULL), 0);
    bh_buf_fini(&b);
    CU_ASSERT(!ev.object_changes || (ev.resource == BH_EV_OBJECT && ev.object_name == sym("one") &&
                                     ev.object_namespace == sym("ns")));
    return ev.object_changes;
}

/* The watch is behind: it shows the claim before it was allocated, and after it was freed. */
static void test_events(void)
{
    begin();
    CU_ASSERT_EQUAL(watched("5", ""), 0);
    CU_ASSERT_EQUAL(learned("7", ALLOCATED), BH_CLAIM_STATUS);
    CU_ASSERT_EQUAL(watched("9", ""), BH_CLAIM_DEALLOCATED | BH_CLAIM_STATUS);
    CU_ASSERT_EQUAL(learned("11", ALLOCATED), BH_CLAIM_STATUS);
    CU_ASSERT_EQUAL(learned("12", ""), BH_CLAIM_DEALLOCATED | BH_CLAIM_STATUS);
    CU_ASSERT_EQUAL(learned("10", ALLOCATED), 0); /* older than what is known */
    CU_ASSERT_EQUAL(watched("13", ""), 0);
    end();
}

BH_TESTS("scheduler/plugins/dynamicresources/assume",
         {"what is told of a claim that the watch shows late", test_events},
         {"an allocation is in flight until it is given back", test_allocation},
         {"profiles see what others took", test_profiles_share},
         {"configuration and alternatives in the result", test_config_and_alternatives},
         {"where an allocation can be reached", test_reach}, {"shares of a device", test_shares},
         {"allocated claims are reserved", test_reservation},
         {"no moment between Reserve and the watch frees a device", test_written},
         {"a bound pod has no reservation", test_confirmed},
         {"a claim for extended resources", test_extended},
         {"no claim where a device plugin serves", test_extended_by_plugin},
         {"binding waits for the devices' conditions", test_binding_conditions},
         {"claims that PostFilter frees", test_post_filter},
         {"a claim for extended resources that was left over", test_post_filter_special},
         {"without an API server the writes are committed", test_commit})
