/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/nodevolumelimits/test_csi.c - how many volumes a node can attach
 */
#include "tests/unit/scheduler/plugins/volumebinding/world.h"

#define FULL             "NodeVolumeLimits/U: node(s) exceed max volume count; "
#define CSI_PV(handle)   "'csi':{'driver':'d','volumeHandle':'" handle "'}"
#define INLINE(name, id) "{'name':'" name "','awsElasticBlockStore':{'volumeID':'" id "'}}"

static struct world w;

static void limit(const char *node, const char *driver, int count)
{
    world_object(&w, BH_KIND_CSINODE, "", node,
                 bh_arena_printf(&w.a,
                                 "{'metadata':{'name':'%s'},'spec':{'drivers':[{'name':'free'},{"
                                 "'name':'%s','allocatable':{'count':%d}}]}}",
                                 node, driver, count),
                 NULL);
}

/* Claims c1, c2, c3 with volumes of driver d; node a attaches at most two of them. */
static void begin(void)
{
    static const char *const names[] = {"c1", "c2", "c3"};

    world_begin(&w);
    world_node(&w, "a", "");
    world_node(&w, "b", "");
    for (unsigned i = 0; i < 3; i++) {
        world_volume(&w, names[i], "",
                     bh_arena_printf(&w.a, "'csi':{'driver':'d','volumeHandle':'h%u'}", i));
        world_bound_claim(&w, names[i], names[i]);
    }
    limit("a", "d", 2);
}

static void test_counts(void)
{
    begin();
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "");
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2") "," CLAIM("c3"), "a=" FULL);
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c1") "," CLAIM("c2"), "");
    world_running(&w, "r", "a", CLAIM("c1"));
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "");
    WORLD_EXPECT(&w, "p", CLAIM("c3") "," CLAIM("c2"), "a=" FULL);
    world_running(&w, "s", "a", CLAIM("c2"));
    WORLD_EXPECT(&w, "p", CLAIM("c3"), "a=" FULL);
    limit("a", "d", 3);
    WORLD_EXPECT(&w, "p", CLAIM("c3"), "");
    limit("a", "other", 1);
    WORLD_EXPECT(&w, "p", CLAIM("c3"), "");
    limit("a", "d", 0);
    WORLD_EXPECT(&w, "p", CLAIM("c3"), "a=" FULL);
    /* Nothing new: nothing to check. */
    WORLD_EXPECT(&w, "p", CLAIM("c1"), "");
    world_end(&w);
}

/* An unbound claim counts once, for its class's provisioner. */
static void test_unbound(void)
{
    begin();
    world_class(&w, "k", "d", "WaitForFirstConsumer", "");
    world_class(&w, "in-tree", "kubernetes.io/azure-file", "WaitForFirstConsumer", "");
    world_claim(&w, "u1", "", "'storageClassName':'k'");
    world_claim(&w, "u2", "", "'storageClassName':'k'");
    world_claim(&w, "f", "", "'storageClassName':'in-tree'");
    world_running(&w, "r", "a", CLAIM("u1") "," CLAIM("u1"));
    WORLD_EXPECT(&w, "p", CLAIM("u1") "," CLAIM("u2"), "");
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("u2"), "a=" FULL);
    limit("a", "file.csi.azure.com", 0);
    WORLD_EXPECT(&w, "p", CLAIM("f"), "");
    world_end(&w);
}

static void test_attachments(void)
{
    static const char va[] = "{'metadata':{'name':'va'},'spec':{'attacher':'d','nodeName':'a',"
                             "'source':{'persistentVolumeName':'c1'}}}";

    begin();
    WORLD_EXPECT(&w, "p", CLAIM("c2") "," CLAIM("c3"), "");
    world_object(&w, BH_KIND_VOLUMEATTACHMENT, "", "va", va, NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c2") "," CLAIM("c3"), "a=" FULL);
    /* Attached and wanted, but used by no pod of the node: counted twice, as upstream. */
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "a=" FULL);
    world_running(&w, "r", "a", CLAIM("c1"));
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "");
    world_object(&w, BH_KIND_VOLUMEATTACHMENT, "", "va2",
                 "{'metadata':{'name':'va2'},'spec':{'attacher':'d','nodeName':'a','source':{"
                 "'persistentVolumeName':'gone'}}}",
                 NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "");
    world_end(&w);
}

/* Attachments come and go as long as the process lives; the symbols stay for ever. */
static void test_names_are_forgotten(void)
{
    uint32_t n = 0;

    begin();
    for (unsigned i = 0; i < 20; i++) {
        const char *name = bh_arena_printf(&w.a, "va-%u", i);
        world_object(&w, BH_KIND_VOLUMEATTACHMENT, "", name,
                     bh_arena_printf(&w.a,
                                     "{'metadata':{'name':'%s'},'spec':{'attacher':'d','nodeName':"
                                     "'a','source':{'persistentVolumeName':'volume-%u'}}}",
                                     name, i),
                     NULL);
        WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "");
        world_object(&w, BH_KIND_VOLUMEATTACHMENT, "", name, NULL, NULL);
        WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "");
        n = i ? n : bh_symtab_count(bh_engine_symtab(w.e));
    }
    CU_ASSERT_EQUAL(bh_symtab_count(bh_engine_symtab(w.e)), n);
    world_end(&w);
}

/* Migration is taken for granted where a CSINode exists. */
static void test_in_tree(void)
{
    begin();
    limit("a", "ebs.csi.aws.com", 1);
    WORLD_EXPECT(&w, "p", INLINE("x", "vol-1") "," INLINE("y", "vol-2"), "a=" FULL);
    WORLD_EXPECT(&w, "p", INLINE("x", "vol-1") "," INLINE("y", "aws://z/vol-1"), "");
    WORLD_EXPECT(
        &w, "p", INLINE("x", "aws://z/disk"),
        "running \"NodeVolumeLimits\" filter plugin: converting volume(x) from inline to csi: "
        "failed to translate Kubernetes ID to EBS Volume ID invalid format for AWS volume "
        "(aws://z/disk)");
    world_volume(&w, "ebs", "", "'awsElasticBlockStore':{'volumeID':'vol-9'}");
    world_bound_claim(&w, "ebs", "ebs");
    world_running(&w, "r", "a", CLAIM("ebs"));
    WORLD_EXPECT(&w, "p", INLINE("x", "vol-1"), "a=" FULL);
    world_end(&w);
}

/* A pod on the node with somebody else's claim: the cycle fails, in both paths. */
static void test_existing_pod_error(void)
{
    begin();
    world_bound_claim(&w, "r-e", "c1");
    world_running(&w, "r", "a", "{'name':'e','ephemeral':{}}");
    WORLD_EXPECT(
        &w, "p", CLAIM("c2"),
        "running \"NodeVolumeLimits\" filter plugin: PVC ns/r-e was not created for pod ns/r "
        "(pod is not owner)");
    /* No limits on the node: nobody asks. A claim that is gone is nobody's. */
    limit("a", "d", 2);
    world_object(&w, BH_KIND_CSINODE, "", "a", "{'metadata':{'name':'a'}}", NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c2"), "");
    limit("a", "d", 2);
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "r-e", NULL, NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c2"), "");
    world_end(&w);
}

BH_TESTS("scheduler/plugins/nodevolumelimits", {"volumes of pods count once", test_counts},
         {"claims without a volume count for their class", test_unbound},
         {"attached volumes count", test_attachments},
         {"names of attached volumes are not kept", test_names_are_forgotten},
         {"in-tree volumes count for their CSI driver", test_in_tree},
         {"an error in a running pod's claim", test_existing_pod_error})
