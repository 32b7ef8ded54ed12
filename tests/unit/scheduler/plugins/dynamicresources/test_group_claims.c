/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/dynamicresources/test_group_claims.c - claims of pods that are tried
 * together: shared, of templates, extended resources, all devices, and with victims
 */
#include "tests/unit/scheduler/plugins/dynamicresources/world.h"

#define MEMBERS 4u
#define GATES                                                                                      \
    "--feature-gates=GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
#define ANY(more) "'requests':[{'name':'r','exactly':{'deviceClassName':'any'" more "}}]"

static struct bh_kube_flags flags;
static struct bh_sched_config *config;
static struct bh_group_try try[MEMBERS];
static uint32_t n;
static struct bh_group_result result;

static void begin_gang(bool stays)
{
    static const struct bh_opt_usage usage = {.program = "prog"};
    char *argv[] = {(char[]){"prog"}, (char[]){GATES}, NULL};
    struct bh_err err;

    n = 0;
    bh_arena_init(&arena, 0);
    pod_extra = pod_status = "";
    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_parse(&flags, NULL, &usage, 2, argv, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(NULL, &config, &err), 0);
    bh_sched_config_apply_flags(config, &flags);
    const struct bh_engine_options o = {
        .config = config, .tie_break = BH_TIE_FIRST, .verify = true, .group_stays = stays};
    CU_ASSERT_EQUAL_FATAL(bh_engine_new(&o, &e, NULL), 0);
    node("a", "'zone':'za'", "");
    node("b", "'zone':'zb'", "");
    put(BH_KIND_DEVICECLASS, "any", "'spec':{}");
}

static void end_gang(void)
{
    end();
    bh_sched_config_free(config);
    bh_kube_flags_free(&flags);
}

static void gang_of(unsigned min)
{
    put(BH_KIND_PODGROUP, "g",
        bh_arena_printf(&arena,
                        "'spec':{'schedulingPolicy':{'gang':{'minCount':%u}},'priority':10}", min));
}

/* requests: of its container. */
static void member(const char *name, const char *claims, const char *requests)
{
    pod_extra = bh_arena_printf(&arena,
                                "'schedulingGroup':{'podGroupName':'g'},'priority':10,'containers':"
                                "[{'name':'c','resources':{'requests':{%s}}}],",
                                requests);
    struct bh_pending p = pod(name, claims);
    CU_ASSERT_FATAL(n < MEMBERS);
    bh_engine_waits(e, &p, true);
    try[n++] = (struct bh_group_try){.pod = p};
    pod_extra = "";
}

static void occupy(const char *name, const char *on, const char *cpu)
{
    pod_extra = bh_arena_printf(&arena,
                                "'nodeName':'%s','priority':1,'containers':[{'name':'c',"
                                "'resources':{'requests':{'cpu':'%s'}}}],",
                                on, cpu);
    const struct bh_pending p = pod(name, "");
    bh_engine_put_pod(e, p.pod, p.shape);
    bh_engine_shape_unref(e, p.shape);
    pod_extra = "";
}

static const char *name_of(uint32_t i)
{
    return bh_rec_text(try[i].pod.pod, try[i].pod.pod->name).p;
}

static struct bh_str uid_of(uint32_t i)
{
    return bh_rec_text(try[i].pod.pod, try[i].pod.pod->uid);
}

/* "m0=a m1=- " and the names of the victims. */
static const char *run(void)
{
    struct bh_symtab *tab = bh_engine_symtab(e);
    static struct bh_buf b;

    bh_engine_schedule_group(e, try, n, 0, 1000, &result);
    bh_buf_reset(&b);
    for (uint32_t i = 0; i < n; i++)
        bh_buf_addf(&b, "%s=%s ", name_of(i), try[i].assumed ? bh_sym_text(tab, try[i].node) : "-");
    for (uint32_t i = 0; i < result.n_victims; i++)
        bh_buf_addf(&b, "%s ", result.victims[i].name.p);
    const char *ret = bh_arena_strdup(&arena, bh_buf_str(&b));
    bh_buf_fini(&b);
    return ret;
}

#define RUN(want)                                                                                  \
    do {                                                                                           \
        const char *got_ = run();                                                                  \
        if (!bh_streq(got_, (want))) {                                                             \
            printf("  line %d: got %s: %s\n", __LINE__, got_, result.message);                     \
            for (uint32_t i_ = 0; i_ < n; i_++)                                                    \
                printf("    %s: %s\n", name_of(i_),                                                \
                       try[i_].decision.message ? try[i_].decision.message : "");                  \
        }                                                                                          \
        CU_ASSERT_STRING_EQUAL(got_, (want));                                                      \
    } while (0)

static const K8s__ResourceClaim *write_of(uint32_t i, uint32_t k)
{
    uint32_t have;
    const struct bh_write *w = bh_engine_prebind_work(e, uid_of(i), &have);

    CU_ASSERT_FATAL(k < have);
    CU_ASSERT_EQUAL(w[k].what, BH_WRITE_ALLOCATION);
    return (const void *)w[k].object;
}

static const char *device_of(const K8s__ResourceClaim *c)
{
    return c->status->allocation->devices->results[0]->device;
}

/* The API server's answer to write k of member i. */
static void write_done(uint32_t i, uint32_t k)
{
    K8s__ResourceClaim *c = (void *)bh_pb_copy(&arena, &write_of(i, k)->base);
    struct bh_buf b = {0};

    c->metadata->resourceversion = bh_arena_strdup(&arena, "77");
    bh_pb_pack(&b, &c->base);
    CU_ASSERT_EQUAL(bh_engine_prebind_written(e, uid_of(i), k, b.p, b.n, NULL), 0);
    bh_buf_fini(&b);
}

static void unreserve(uint32_t i)
{
    bh_engine_unreserve(e, &try[i].pod, try[i].node);
    CU_ASSERT_EQUAL(bh_engine_forget(e, uid_of(i)), 0);
}

#define IN_PROCESS                                                                                 \
    "*DynamicResources/UU: resource claim ns/one is in the process of being allocated"

/* Only node a has the device; the other node is emptier as soon as the first member is on a. */
static void test_members_of_one_cycle_share_a_claim(void)
{
    begin_gang(false);
    on_node("a", "{'name':'d0'}");
    request("");
    gang_of(3);
    for (unsigned i = 0; i < 3; i++)
        member(bh_arena_printf(&arena, "m%u", i), ONE, "'cpu':'1'");
    RUN("m0=a m1=a m2=a ");
    CU_ASSERT_EQUAL(result.code, BH_SUCCESS);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_STRING_EQUAL(device_of(write_of(i, 0)), "d0");
    EXPECT(ONE, IN_PROCESS); /* pods of other cycles do not share it */
    unreserve(0);
    EXPECT(ONE, IN_PROCESS);
    write_done(2, 0);
    EXPECT(ONE, "b=DynamicResources/UU: resourceclaim not available on the node; ");
    write_done(1, 0);
    EXPECT(ONE, "b=DynamicResources/UU: resourceclaim not available on the node; ");
    end_gang();
}

/* The one that put it in flight fails first, then the other before anything is written. */
static void test_shared_claim_is_free_when_its_last_member_fails(void)
{
    begin_gang(false);
    on_node("a", "{'name':'d0'}");
    request("");
    claim("two", ANY(""), "");
    gang_of(2);
    member("m0", ONE, "'cpu':'1'");
    member("m1", ONE, "'cpu':'1'");
    RUN("m0=a m1=a ");
    unreserve(0);
    EXPECT(NAMED("two"), "a=" CANNOT "b=" CANNOT);
    unreserve(1);
    EXPECT(NAMED("two"), "b=" CANNOT);
    end_gang();
}

static void test_shared_claim_of_a_gang_without_capacity_is_free(void)
{
    begin_gang(false);
    on_node("a", "{'name':'d0'}");
    request("");
    gang_of(3);
    for (unsigned i = 0; i < 3; i++)
        member(bh_arena_printf(&arena, "m%u", i), ONE, "'cpu':'4'");
    RUN("m0=- m1=- m2=- ");
    EXPECT(ONE, "b=" CANNOT);
    end_gang();
}

/* The pending claim stands before and behind the member's own: each gets its own devices. */
static void test_shared_claim_beside_own_claims(void)
{
    begin_gang(false);
    on_node("a", "{'name':'d0'},{'name':'d1'},{'name':'d2'},{'name':'d3'}");
    request("");
    claim("own1", ANY(",'count':2"), "");
    claim("own2", ANY(""), "");
    gang_of(3);
    member("m0", ONE, "");
    member("m1", ONE "," NAMED("own1"), "");
    member("m2", NAMED("own2") "," ONE, "");
    RUN("m0=a m1=a m2=a ");
    CU_ASSERT_STRING_EQUAL(device_of(write_of(1, 0)), "d0");
    CU_ASSERT_STRING_EQUAL(device_of(write_of(1, 1)), "d1");
    CU_ASSERT_EQUAL(write_of(1, 1)->status->allocation->devices->n_results, 2);
    CU_ASSERT_STRING_EQUAL(device_of(write_of(2, 0)), "d3");
    CU_ASSERT_STRING_EQUAL(device_of(write_of(2, 1)), "d0");
    end_gang();
}

static void from_template(const char *name)
{
    put_event(
        &(struct bh_cluster_event){0}, BH_KIND_RESOURCECLAIM,
        bh_arena_printf(&arena, "of-%s", name),
        bh_arena_printf(&arena,
                        ",'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'%s',"
                        "'uid':'uid-%s','controller':true}]},'spec':{'devices':{" ANY("") "}}}",
                        name, name));
    pod_status = bh_arena_printf(
        &arena, "'resourceClaimStatuses':[{'name':'c','resourceClaimName':'of-%s'}]", name);
    member(name, "{'name':'c','resourceClaimTemplateName':'t'}", "'cpu':'1'");
    pod_status = "";
}

static void test_claims_of_templates_take_a_device_each(void)
{
    for (unsigned devices = 1; devices < 3; devices++) {
        begin_gang(false);
        on_node("a", devices == 2 ? "{'name':'d0'},{'name':'d1'}" : "{'name':'d0'}");
        gang_of(2);
        from_template("m0");
        from_template("m1");
        RUN(devices == 2 ? "m0=a m1=a " : "m0=- m1=- ");
        if (devices == 2)
            CU_ASSERT(!bh_streq(device_of(write_of(0, 0)), device_of(write_of(1, 0))));
        end_gang();
    }
}

static void test_extended_resources_take_a_device_each(void)
{
    for (unsigned devices = 1; devices < 3; devices++) {
        begin_gang(false);
        put(BH_KIND_DEVICECLASS, "gpu", "'spec':{'extendedResourceName':'x.com/gpu'}");
        on_node("a", devices == 2 ? "{'name':'d0'},{'name':'d1'}" : "{'name':'d0'}");
        gang_of(2);
        member("m0", "", "'x.com/gpu':'1'");
        member("m1", "", "'x.com/gpu':'1'");
        RUN(devices == 2 ? "m0=a m1=a " : "m0=- m1=- ");
        end_gang();
    }
}

static void test_all_devices_are_shared_or_missing(void)
{
    begin_gang(false);
    on_node("a", "{'name':'d0'},{'name':'d1'}");
    claim("one", ANY(",'allocationMode':'All'"), "");
    claim("two", ANY(",'allocationMode':'All'"), "");
    gang_of(2);
    member("m0", ONE, "");
    member("m1", ONE, "");
    RUN("m0=a m1=a ");
    CU_ASSERT_EQUAL(write_of(1, 0)->status->allocation->devices->n_results, 2);
    unreserve(0);
    unreserve(1);
    n = 0;
    member("m2", ONE, "");
    member("m3", NAMED("two"), "");
    RUN("m2=- m3=- ");
    end_gang();
}

/* Both ways of sparing victims: a member that may stay does not stand in its own way. */
static void test_group_with_claims_evicts_no_more_than_needed(void)
{
    static const char *const claims[] = {ONE, ""};

    for (unsigned stays = 0; stays < 2; stays++)
        for (unsigned k = 0; k < BH_ARRAY_LEN(claims) + 1; k++) {
            begin_gang(stays);
            put(BH_KIND_DEVICECLASS, "gpu", "'spec':{'extendedResourceName':'x.com/gpu'}");
            on_node("a", "{'name':'d0'},{'name':'d1'}");
            request("");
            gang_of(2);
            occupy("low1", "a", "4");
            occupy("low2", "a", "4");
            occupy("low3", "b", "8");
            for (unsigned i = 0; i < 2; i++)
                if (k < BH_ARRAY_LEN(claims))
                    member(bh_arena_printf(&arena, "m%u", i), claims[k],
                           k ? "'cpu':'2','x.com/gpu':'1'" : "'cpu':'2'");
                else
                    from_template(bh_arena_printf(&arena, "m%u", i));
            RUN("m0=- m1=- low2 ");
            end_gang();
        }
}

/* Commits of simulations, one after the other: the claim is every member's. */
static void test_committed_claim_is_reserved_for_all_members(void)
{
    for (unsigned allocated = 0; allocated < 2; allocated++) {
        begin_gang(false);
        on_node("a", "{'name':'d0'}");
        claim("one", ANY(""),
              allocated ? "'allocation':{'devices':{'results':[{'request':'r','driver':'" DRV
                          "','pool':'a','device':'d0'}]}},'reservedFor':[{'resource':'pods','name':"
                          "'x','uid':'x'}]"
                        : "");
        gang_of(3);
        for (unsigned i = 0; i < 3; i++)
            member(bh_arena_printf(&arena, "m%u", i), ONE, "'cpu':'1'");
        (void)run();
        CU_ASSERT_EQUAL(result.code, BH_SUCCESS);
        for (uint32_t i = 0; i < 3; i++)
            bh_engine_prebind_commit(e, uid_of(i));
        const K8s__ResourceClaim *c =
            (const void *)bh_engine_get_object(e, BH_KIND_RESOURCECLAIM, "ns", "one");
        CU_ASSERT_EQUAL(c->status->n_reservedfor, 3 + allocated);
        end_gang();
    }
}

BH_TESTS("scheduler/plugins/dynamicresources/group_claims",
         {"members of one cycle share a claim", test_members_of_one_cycle_share_a_claim},
         {"a shared claim is free when its last member fails",
          test_shared_claim_is_free_when_its_last_member_fails},
         {"a shared claim of a gang without capacity is free",
          test_shared_claim_of_a_gang_without_capacity_is_free},
         {"a shared claim beside own claims", test_shared_claim_beside_own_claims},
         {"claims of templates take a device each", test_claims_of_templates_take_a_device_each},
         {"extended resources take a device each", test_extended_resources_take_a_device_each},
         {"all devices are shared or missing", test_all_devices_are_shared_or_missing},
         {"a group with claims evicts no more than needed",
          test_group_with_claims_evicts_no_more_than_needed},
         {"a committed claim is reserved for all members",
          test_committed_claim_is_reserved_for_all_members})
