/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/disklimits/test_disk_limits.c - how many in-tree disks a node takes
 */
#include "tests/unit/scheduler/plugins/volumebinding/world.h"

#define FULL(plugin)     plugin "/U: node(s) exceed max volume count; "
#define EBS(id)          "{'name':'v','awsElasticBlockStore':{'volumeID':'" id "'}}"
#define PV_EBS(id)       "'awsElasticBlockStore':{'volumeID':'" id "'}"
#define UNBOUND(name)    world_claim(&w, name, "", "'storageClassName':'k'")
#define EBS_CLASS(class) world_class(&w, class, "kubernetes.io/aws-ebs", "WaitForFirstConsumer", "")

static const struct kind {
    const char *plugin, *key, *first, *other; /* volumes; first + i + other */
    int limit;
} kinds[] = {
    {"EBSLimits", "aws-ebs", "'awsElasticBlockStore':{'volumeID':'", "'}", 39},
    {"GCEPDLimits", "gce-pd", "'gcePersistentDisk':{'pdName':'", "'}", 16},
    {"AzureDiskLimits", "azure-disk", "'azureDisk':{'diskURI':'same','diskName':'", "'}", 16},
    {"CinderLimits", "cinder", "'cinder':{'volumeID':'", "'}", 256},
};

static struct world w;

static void node(const char *name, const char *labels, const char *allocatable)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w.e));
    struct bh_node_rec *rec;
    const char *json = bh_arena_printf(
        &w.a, "{'metadata':{'name':'%s','labels':{%s}},'status':{'allocatable':{'pods':'99'%s}}}",
        name, labels, allocatable);

    CU_ASSERT_EQUAL_FATAL(
        bh_compile_node(&w.a, (const void *)world_read(&w, &bh_kinds[BH_KIND_NODE], json), &in,
                        &rec, NULL),
        0);
    bh_engine_put_node(w.e, rec);
}

/* The list of n different disks, inline. */
static const char *disks(const struct kind *k, int n)
{
    struct bh_buf b = {0};

    for (int i = 0; i < n; i++)
        bh_buf_addf(&b, "%s{'name':'v%d',%s%d%s}", i ? "," : "", i, k->first, i, k->other);
    const char *list = bh_arena_strdup(&w.a, bh_buf_str(&b));
    bh_buf_fini(&b);
    return list;
}

static void expect_limit(const struct kind *k, int limit)
{
    const char *full = bh_arena_printf(&w.a, "a=" FULL("%s"), k->plugin);

    WORLD_EXPECT(&w, "p", disks(k, limit), "");
    WORLD_EXPECT(&w, "p", disks(k, limit + 1), full);
}

/* The cloud's limit, the environment's over it, the node's over both. */
static void test_limits(void)
{
    for (unsigned i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        const struct kind *k = &kinds[i];
        world_begin_with(&w, k->plugin);
        node("a", "", "");
        expect_limit(k, k->limit);
        WORLD_EXPECT(&w, "p", disks(&kinds[(i + 1) % 4], 300), "");
        node("a", "", bh_arena_printf(&w.a, ",'attachable-volumes-%s':'3'", k->key));
        expect_limit(k, 3);
        node("a", "", bh_arena_printf(&w.a, ",'attachable-volumes-%s':'0'", k->key));
        expect_limit(k, 0);
        world_end(&w);
    }
}

static void test_environment(void)
{
    static const struct {
        const char *value;
        int limit;
    } rows[] = {{"5", 5}, {"+5", 5},  {"05", 5},  {"0", 16}, {"-5", 16},
                {"", 16}, {" 5", 16}, {"5 ", 16}, {"x", 16}, {"99999999999999999999", 16}};

    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        CU_ASSERT_EQUAL_FATAL(setenv("KUBE_MAX_PD_VOLS", rows[i].value, 1), 0);
        world_begin_with(&w, "GCEPDLimits");
        node("a", "", "");
        expect_limit(&kinds[1], rows[i].limit);
        node("a", "", ",'attachable-volumes-gce-pd':'7'");
        expect_limit(&kinds[1], 7);
        world_end(&w);
    }
    CU_ASSERT_EQUAL_FATAL(unsetenv("KUBE_MAX_PD_VOLS"), 0);
}

/* Upstream's pattern, ^[cmr]5.*|t3|z1d, is tied to the beginning in its first part only. */
static void test_nitro(void)
{
    static const struct {
        const char *label, *type;
        int limit;
    } rows[] = {
        {"node.kubernetes.io/instance-type", "m5.large", 25},
        {"node.kubernetes.io/instance-type", "c5d.xlarge", 25},
        {"node.kubernetes.io/instance-type", "r5", 25},
        {"node.kubernetes.io/instance-type", "t3.small", 25},
        {"node.kubernetes.io/instance-type", "z1d.large", 25},
        {"node.kubernetes.io/instance-type", "xt3", 25},
        {"node.kubernetes.io/instance-type", "xm5", 39},
        {"node.kubernetes.io/instance-type", "m4.large", 39},
        {"node.kubernetes.io/instance-type", "t2.small", 39},
        {"node.kubernetes.io/instance-type", "", 39},
        {"beta.kubernetes.io/instance-type", "m5.large", 25},
        {"kubernetes.io/instance-type", "m5.large", 39},
    };

    world_begin_with(&w, "EBSLimits");
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        node("a", bh_arena_printf(&w.a, "'%s':'%s'", rows[i].label, rows[i].type), "");
        expect_limit(&kinds[0], rows[i].limit);
    }
    world_end(&w);
}

static void begin(void)
{
    world_begin_with(&w, "EBSLimits");
    node("a", "", ",'attachable-volumes-aws-ebs':'2'");
    node("b", "", "");
}

/* Each disk once, however many pods use it, by whatever way. */
static void test_counts(void)
{
    begin();
    world_volume(&w, "pv-1", "", PV_EBS("vol-1"));
    world_bound_claim(&w, "c1", "pv-1");
    world_running(&w, "r", "a", EBS("vol-1"));
    world_running(&w, "s", "a", CLAIM("c1"));
    WORLD_EXPECT(&w, "p", EBS("vol-2"), "");
    WORLD_EXPECT(&w, "p", EBS("vol-2") "," EBS("vol-2") "," CLAIM("c1"), "");
    WORLD_EXPECT(&w, "p", EBS("vol-2") "," EBS("vol-3"), "a=" FULL("EBSLimits"));
    world_running(&w, "t", "a", EBS("vol-2"));
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," EBS("vol-2"), "");
    WORLD_EXPECT(&w, "p", EBS("vol-3"), "a=" FULL("EBSLimits"));
    WORLD_EXPECT(&w, "p", "{'name':'v','emptyDir':{}}", "");
    WORLD_EXPECT(&w, "p", "{'name':'v','gcePersistentDisk':{'pdName':'x'}}", "");
    /* Already beyond its limit: a pod that adds nothing is refused too. */
    node("a", "", ",'attachable-volumes-aws-ebs':'1'");
    WORLD_EXPECT(&w, "p", EBS("vol-1"), "a=" FULL("EBSLimits"));
    WORLD_EXPECT(&w, "p", "", "");
    world_end(&w);
}

static void test_claims(void)
{
    begin();
    EBS_CLASS("k");
    world_class(&w, "gce", "kubernetes.io/gce-pd", "WaitForFirstConsumer", "");
    /* Not found: nothing was tried for a running pod, a new one has to wait. */
    world_running(&w, "r", "a", CLAIM("gone"));
    WORLD_EXPECT(&w, "p", CLAIM("none"),
                 "a=EBSLimits/UU: looking up PVC ns/none: persistentvolumeclaim \"none\" not found;"
                 " b=EBSLimits/UU: looking up PVC ns/none: persistentvolumeclaim \"none\" not "
                 "found; ");
    /* Claims that are not bound, or whose volume is gone, count when their class makes disks. */
    UNBOUND("u1");
    UNBOUND("u2");
    world_running(&w, "s", "a", CLAIM("u1") "," CLAIM("u1"));
    WORLD_EXPECT(&w, "p", CLAIM("u1") "," CLAIM("u2"), "");
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," CLAIM("u2"), "a=" FULL("EBSLimits"));
    world_claim(&w, "u2", "", "'storageClassName':'k','volumeName':'lost'");
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," CLAIM("u2"), "a=" FULL("EBSLimits"));
    /* The class that makes other disks, no class, the old annotation: nothing of ours. */
    world_claim(&w, "u2", "", "'storageClassName':'gce'");
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," CLAIM("u2"), "");
    world_claim(&w, "u2", "", "'storageClassName':'no-such'");
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," CLAIM("u2"), "");
    world_claim(&w, "u2", "'volume.beta.kubernetes.io/storage-class':'k'", "");
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," CLAIM("u2"), "");
    /* The volume is of another kind. */
    world_volume(&w, "pd", "", "'gcePersistentDisk':{'pdName':'x'}");
    world_claim(&w, "u2", "", "'storageClassName':'k','volumeName':'pd'");
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," CLAIM("u2"), "");
    world_volume(&w, "pd", "", PV_EBS("vol-7"));
    WORLD_EXPECT(&w, "p", EBS("vol-1") "," CLAIM("u2"), "a=" FULL("EBSLimits"));
    WORLD_EXPECT(&w, "p", EBS("vol-7") "," CLAIM("u2"), "");
    world_end(&w);
}

/* An ephemeral volume's claim has to be the pod's. */
static void test_ephemeral(void)
{
    static const char mine[] = "{'name':'e','ephemeral':{}}";

    begin();
    EBS_CLASS("k");
    UNBOUND("p-e");
    WORLD_EXPECT(&w, "p", mine,
                 "running \"EBSLimits\" filter plugin: PVC ns/p-e was not created for pod ns/p "
                 "(pod is not owner)");
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "p-e",
                 "{'metadata':{'name':'p-e','namespace':'ns','ownerReferences':[{'apiVersion':'v1',"
                 "'kind':'Pod','name':'p','uid':'uid-p','controller':true}]},"
                 "'spec':{'storageClassName':'k'}}",
                 NULL);
    WORLD_EXPECT(&w, "p", mine, "");
    WORLD_EXPECT(&w, "p", bh_arena_printf(&w.a, "%s," EBS("1") "," EBS("2"), mine),
                 "a=" FULL("EBSLimits"));
    /* A running pod with somebody else's claim fails the node's evaluation. */
    UNBOUND("r-e");
    world_running(&w, "r", "a", mine);
    WORLD_EXPECT(&w, "p", EBS("1"),
                 "running \"EBSLimits\" filter plugin: PVC ns/r-e was not created for pod ns/r "
                 "(pod is not owner)");
    world_end(&w);
}

/* Where the node has a CSINode, NodeVolumeLimits counts. */
static void test_migration(void)
{
    begin();
    node("a", "", ",'attachable-volumes-aws-ebs':'0'");
    WORLD_EXPECT(&w, "p", EBS("1"), "a=" FULL("EBSLimits"));
    world_object(&w, BH_KIND_CSINODE, "", "a", "{'metadata':{'name':'a'}}", NULL);
    WORLD_EXPECT(&w, "p", EBS("1"), "");
    world_object(&w, BH_KIND_CSINODE, "", "a", NULL, NULL);
    WORLD_EXPECT(&w, "p", EBS("1"), "a=" FULL("EBSLimits"));
    world_end(&w);
}

static void test_off_by_default(void)
{
    world_begin(&w);
    node("a", "", ",'attachable-volumes-aws-ebs':'0','attachable-volumes-cinder':'0'");
    WORLD_EXPECT(&w, "p", EBS("1"), "");
    world_end(&w);
}

static bool wakes(uint32_t resource, uint32_t action, enum bh_kind kind)
{
    struct bh_pending p = world_pod(&w, "p", "", EBS("1"));
    const struct bh_cluster_event ev = {.resource = resource, .action = action, .kind = kind};
    bool is = bh_engine_hint(w.e, "EBSLimits", &p, &ev, &(bool){false}) == BH_QUEUE;

    bh_engine_shape_unref(w.e, p.shape);
    return is;
}

static void test_events(void)
{
    begin();
    CU_ASSERT(wakes(BH_EV_NODE, BH_EV_ADD, 0));
    CU_ASSERT(wakes(BH_EV_POD_ASSIGNED, BH_EV_DELETE, 0));
    CU_ASSERT(wakes(BH_EV_OBJECT, BH_EV_ADD, BH_KIND_PERSISTENTVOLUMECLAIM));
    CU_ASSERT(!wakes(BH_EV_NODE, BH_EV_NODE_LABEL, 0));
    CU_ASSERT(!wakes(BH_EV_POD_ASSIGNED, BH_EV_ADD, 0));
    CU_ASSERT(!wakes(BH_EV_OBJECT, BH_EV_UPDATE, BH_KIND_PERSISTENTVOLUMECLAIM));
    CU_ASSERT(!wakes(BH_EV_OBJECT, BH_EV_ADD, BH_KIND_PERSISTENTVOLUME));
    world_end(&w);
}

BH_TESTS("scheduler/plugins/disklimits", {"whose limit counts", test_limits},
         {"KUBE_MAX_PD_VOLS", test_environment}, {"instance types of EBS", test_nitro},
         {"disks count once", test_counts}, {"claims", test_claims},
         {"ephemeral volumes", test_ephemeral}, {"a CSINode takes the node over", test_migration},
         {"off by default", test_off_by_default}, {"events", test_events})
