/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/volumebinding/test_volume_binding.c - claims find volumes, volumes
 * nodes
 */
#include "scheduler/plugins/volumebinding/translate.h"
#include "tests/unit/scheduler/plugins/volumebinding/world.h"

#define CONFLICT  "VolumeBinding/UU: node(s) didn't match PersistentVolume's node affinity"
#define NOT_FOUND "VolumeBinding/UU: node(s) didn't find available persistent volumes to bind"
#define NO_SPACE  "VolumeBinding/UU: node(s) did not have enough free storage"
#define EPHEMERAL "{'name':'scratch','ephemeral':{}}"

static struct world w;

/* Two nodes in two zones; classes wait (provisioned), local (not provisioned), now (immediate). */
static void begin(void)
{
    world_begin(&w);
    world_node(&w, "a", "'zone':'za'");
    world_node(&w, "b", "'zone':'zb'");
    world_class(&w, "wait", "csi.x", "WaitForFirstConsumer", "");
    world_class(&w, "local", BH_NO_PROVISIONER, "WaitForFirstConsumer", "");
    world_class(&w, "now", "csi.x", "Immediate", "");
}

static void waiting(const char *name, const char *class, const char *size, const char *more)
{
    world_claim(&w, name, "",
                bh_arena_printf(&w.a,
                                "'storageClassName':'%s','resources':{'requests':{'storage':'%s'}},"
                                "'accessModes':['ReadWriteOnce']%s",
                                class, size, more));
}

static void local_volume(const char *name, const char *zone, const char *size, const char *more)
{
    world_volume(&w, name, "'kind':'fast'",
                 bh_arena_printf(&w.a,
                                 "'capacity':{'storage':'%s'},'accessModes':['ReadWriteOnce'],"
                                 "'storageClassName':'local','nodeAffinity':{'required':{"
                                 "'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone',"
                                 "'operator':'In','values':['%s']}]}]}}%s",
                                 size, zone, more));
}

static void test_missing_claims(void)
{
    begin();
    WORLD_EXPECT(&w, "p", "{'name':'v','nfs':{}}", "");
    WORLD_EXPECT(&w, "p", CLAIM("x"),
                 "*VolumeRestrictions/UU: persistentvolumeclaim \"x\" not found");
    WORLD_EXPECT(&w, "p", EPHEMERAL,
                 "*VolumeBinding/UU: waiting for ephemeral volume controller to create the "
                 "persistentvolumeclaim \"p-scratch\"");
    world_bound_claim(&w, "p-scratch", "pv");
    WORLD_EXPECT(
        &w, "p", EPHEMERAL,
        "*VolumeBinding/UU: PVC ns/p-scratch was not created for pod ns/p (pod is not owner)");
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "lost",
                 "{'metadata':{'name':'lost','namespace':'ns'},'spec':{'volumeName':'gone'},"
                 "'status':{'phase':'Lost'}}",
                 NULL);
    WORLD_EXPECT(&w, "p", CLAIM("lost"),
                 "*VolumeBinding/UU: persistentvolumeclaim \"lost\" bound to non-existent "
                 "persistentvolume \"gone\"");
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "going",
                 "{'metadata':{'name':'going','namespace':'ns','deletionTimestamp':"
                 "'2026-01-01T00:00:00Z'}}",
                 NULL);
    WORLD_EXPECT(&w, "p", CLAIM("going"),
                 "*VolumeBinding/UU: persistentvolumeclaim \"going\" is being deleted");
    world_end(&w);
}

static void test_immediate(void)
{
    const char *why = "*VolumeBinding/UU: pod has unbound immediate PersistentVolumeClaims";

    begin();
    waiting("now", "now", "1Gi", "");
    waiting("unknown", "no-such-class", "1Gi", "");
    waiting("none", "", "1Gi", "");
    waiting("half", "wait", "1Gi", ",'volumeName':'pv'");
    WORLD_EXPECT(&w, "p", CLAIM("now"), why);
    WORLD_EXPECT(&w, "p", CLAIM("unknown"), why);
    WORLD_EXPECT(&w, "p", CLAIM("none"), why);
    WORLD_EXPECT(&w, "p", CLAIM("half"), why);
    waiting("ok", "wait", "1Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("ok"), "");
    WORLD_EXPECT(&w, "p", CLAIM("ok") "," CLAIM("now"), why);
    /* The beta annotation wins over the field. */
    world_claim(&w, "beta", "'volume.beta.kubernetes.io/storage-class':'wait'",
                "'storageClassName':'now'");
    WORLD_EXPECT(&w, "p", CLAIM("beta"), "");
    world_end(&w);
}

static void test_bound(void)
{
    begin();
    world_volume(&w, "in-a", "", ON_NODE("zone", "za"));
    world_volume(&w, "fields", "",
                 "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchFields':[{'key':"
                 "'metadata.name','operator':'In','values':['nobody']}]}]}}");
    world_volume(&w, "nowhere", "", "'nodeAffinity':{'required':{'nodeSelectorTerms':[{}]}}");
    world_bound_claim(&w, "in-a", "in-a");
    world_bound_claim(&w, "fields", "fields");
    world_bound_claim(&w, "nowhere", "nowhere");
    world_bound_claim(&w, "missing", "missing");
    WORLD_EXPECT(&w, "p", CLAIM("in-a"), "b=" CONFLICT "; ");
    WORLD_EXPECT(&w, "p", CLAIM("fields"), "");
    WORLD_EXPECT(&w, "p", CLAIM("nowhere"), "a=" CONFLICT "; b=" CONFLICT "; ");
    waiting("local", "local", "1Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("in-a") "," CLAIM("local"),
                 "a=" NOT_FOUND "; b=" CONFLICT
                 " + node(s) didn't find available persistent volumes to bind; ");
    world_end(&w);
}

/* VolumeZone refuses such a pod earlier, unless the claim belongs to an ephemeral volume. */
static void test_bound_to_nothing(void)
{
    const char *gone = "VolumeBinding/UU: node(s) unavailable due to one or more pvc(s) bound to "
                       "non-existent pv(s); ";

    begin();
    world_object(&w, BH_KIND_PERSISTENTVOLUMECLAIM, "ns", "p-scratch",
                 "{'metadata':{'name':'p-scratch','namespace':'ns','annotations':{"
                 "'pv.kubernetes.io/bind-completed':''},'ownerReferences':[{'uid':'other'},{'uid':"
                 "'uid-p','controller':true}]},'spec':{'volumeName':'missing'}}",
                 NULL);
    WORLD_EXPECT(&w, "p", EPHEMERAL, bh_arena_printf(&w.a, "a=%sb=%s", gone, gone));
    world_end(&w);
}

static void test_static_matching(void)
{
    begin();
    waiting("small", "local", "1Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("small"), "a=" NOT_FOUND "; b=" NOT_FOUND "; ");
    local_volume("pv1", "za", "2Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("small"), "b=" NOT_FOUND "; ");
    waiting("large", "local", "3Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("large"), "a=" NOT_FOUND "; b=" NOT_FOUND "; ");
    local_volume("pv2", "zb", "5Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("large"), "a=" NOT_FOUND "; ");
    /* One volume serves one claim; the smaller claim chooses first and takes the smaller volume. */
    local_volume("pv3", "zb", "1Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("large") "," CLAIM("small"), "a=" NOT_FOUND "; ");
    WORLD_EXPECT(&w, "p", CLAIM("small") "," CLAIM("small"), "a=" NOT_FOUND "; ");
    WORLD_EXPECT(&w, "p", CLAIM("large") "," CLAIM("large"), "a=" NOT_FOUND "; b=" NOT_FOUND "; ");
    world_end(&w);
}

/* Volumes for several zones, for any node, and with alternatives are found next to those for one
 * zone. */
static void test_volumes_for_many_nodes(void)
{
    const char *both = "b=" NOT_FOUND "; ";

    begin();
    world_node(&w, "c", "");
    waiting("c1", "local", "1Gi", "");
    waiting("c2", "local", "1Gi", "");
    waiting("c3", "local", "2Gi", "");
    local_volume("one", "za", "1Gi", "");
    local_volume("two", "za','zb", "1Gi", "");
    world_volume(&w, "any", "",
                 "'capacity':{'storage':'2Gi'},'accessModes':['ReadWriteOnce'],'storageClassName':"
                 "'local'");
    WORLD_EXPECT(&w, "p", CLAIM("c1"), "");
    WORLD_EXPECT(&w, "p", CLAIM("c1") "," CLAIM("c2"), "c=" NOT_FOUND "; ");
    WORLD_EXPECT(&w, "p", CLAIM("c3") "," CLAIM("c1") "," CLAIM("c2"),
                 bh_arena_printf(&w.a, "%sc=%s; ", both, NOT_FOUND));
    world_volume(
        &w, "either", "",
        "'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce'],'storageClassName':"
        "'local','nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{"
        "'key':'zone','operator':'In','values':['zb']}]},{'matchExpressions':[{'key':'zone',"
        "'operator':'DoesNotExist'}]}]}}");
    WORLD_EXPECT(&w, "p", CLAIM("c3") "," CLAIM("c1") "," CLAIM("c2"), "c=" NOT_FOUND "; ");
    WORLD_EXPECT(&w, "p", CLAIM("c3") "," CLAIM("c1"), "");
    world_end(&w);
}

static void test_unfit_volumes(void)
{
    static const char *const claims[] = {
        ",'volumeMode':'Block'", ",'volumeAttributesClassName':'gold'",
        ",'selector':{'matchLabels':{'kind':'slow'}}",
        ",'selector':{'matchExpressions':[{'key':'kind','operator':'DoesNotExist'}]}",
        ",'accessModes':['ReadWriteMany']"};

    begin();
    local_volume("pv", "za", "2Gi", "");
    for (size_t i = 0; i < BH_ARRAY_LEN(claims); i++) {
        waiting("c", "local", "1Gi", claims[i]);
        WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; b=" NOT_FOUND "; ");
    }
    waiting("c", "local", "1Gi",
            ",'selector':{'matchLabels':{'kind':'fast'}},'volumeMode':'Filesystem'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "b=" NOT_FOUND "; ");
    waiting("c", "local", "1Gi", ",'selector':{}");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "b=" NOT_FOUND "; ");
    local_volume("pv", "za", "2Gi", ",'claimRef':{'name':'other','namespace':'ns'}");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; b=" NOT_FOUND "; ");
    waiting("c", "local", "1Gi", ",'selector':{'matchExpressions':[{'key':'k','operator':'Gt'}]}");
    WORLD_EXPECT(
        &w, "p", CLAIM("c"),
        "running \"VolumeBinding\" filter plugin: error creating internal label selector for "
        "claim: ns/c: \"Gt\" is not a valid label selector operator");
    world_end(&w);
}

/* Reserved by name: phase, access modes and selector do not count, affinity ends the search. */
static void test_reserved_volume(void)
{
    begin();
    waiting("c", "local", "1Gi", ",'selector':{'matchLabels':{'kind':'slow'}}");
    local_volume("mine", "za", "2Gi", ",'claimRef':{'name':'c','namespace':'ns'}");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "b=" NOT_FOUND "; ");
    waiting("c", "local", "1Gi", "");
    local_volume("free", "zb", "1Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "b=" NOT_FOUND "; ");
    local_volume("mine", "za", "2Gi", ",'claimRef':{'name':'c','namespace':'ns','uid':'old'}");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; ");
    /* Too small: as if it were not there. */
    local_volume("mine", "za", "1Mi", ",'claimRef':{'name':'c','namespace':'ns','uid':'claim-c'}");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; ");
    world_end(&w);
}

static void test_selected_node(void)
{
    begin();
    world_claim(&w, "c", "'volume.kubernetes.io/selected-node':'b'", "'storageClassName':'wait'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; ");
    world_claim(&w, "c", "'volume.kubernetes.io/selected-node':''", "'storageClassName':'wait'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; b=" NOT_FOUND "; ");
    /* Such a claim is provisioned even where a volume would match. */
    world_claim(&w, "c", "'volume.kubernetes.io/selected-node':'a'", "'storageClassName':'local'");
    local_volume("pv", "za", "2Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; b=" NOT_FOUND "; ");
    world_end(&w);
}

static void test_provisioning(void)
{
    begin();
    world_class(&w, "zonal", "csi.x", "WaitForFirstConsumer",
                ",'allowedTopologies':[{},{'matchLabelExpressions':[{'key':'zone','values':[]}]},"
                "{'matchLabelExpressions':[{'key':'zone','values':['zb','zc']}]}]");
    waiting("c", "zonal", "10Gi", "");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; ");
    world_object(&w, BH_KIND_CSIDRIVER, "", "csi.x",
                 "{'metadata':{'name':'csi.x'},'spec':{'storageCapacity':true}}", NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; b=" NO_SPACE "; ");
    world_object(&w, BH_KIND_CSISTORAGECAPACITY, "x", "big-elsewhere",
                 "{'metadata':{'name':'big-elsewhere','namespace':'x'},'storageClassName':'zonal',"
                 "'capacity':'99Gi','nodeTopology':{'matchLabels':{'zone':'za'}}}",
                 NULL);
    world_object(&w, BH_KIND_CSISTORAGECAPACITY, "x", "limited",
                 "{'metadata':{'name':'limited','namespace':'x'},'storageClassName':'zonal',"
                 "'capacity':'99Gi','maximumVolumeSize':'9Gi','nodeTopology':{}}",
                 NULL);
    world_object(&w, BH_KIND_CSISTORAGECAPACITY, "x", "no-topology",
                 "{'metadata':{'name':'no-topology','namespace':'x'},'storageClassName':'zonal',"
                 "'capacity':'99Gi'}",
                 NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; b=" NO_SPACE "; ");
    world_object(&w, BH_KIND_CSISTORAGECAPACITY, "x", "enough",
                 "{'metadata':{'name':'enough','namespace':'x'},'storageClassName':'zonal',"
                 "'capacity':'10Gi','nodeTopology':{}}",
                 NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" NOT_FOUND "; ");
    /* A claim that asks for nothing always has room. */
    world_claim(&w, "c", "", "'storageClassName':'wait'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "");
    world_end(&w);
}

/* With the plugin listed in the CSINode's annotation the node needs the driver's zone label. */
static void test_migrated_volume(void)
{
    begin();
    world_node(&w, "c", "'topology.kubernetes.io/zone':'z1'");
    world_node(&w, "d", "'topology.ebs.csi.aws.com/zone':'z1'");
    world_volume(&w, "pv", "",
                 "'awsElasticBlockStore':{'volumeID':'vol-1'}," ON_NODE(
                     "topology.kubernetes.io/zone", "z1"));
    world_bound_claim(&w, "c", "pv");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" CONFLICT "; b=" CONFLICT "; d=" CONFLICT "; ");
    for (const char *n = "abcd"; *n; n++)
        world_object(&w, BH_KIND_CSINODE, "", (const char[]){*n, 0},
                     bh_arena_printf(&w.a,
                                     "{'metadata':{'name':'%c','annotations':{'storage.alpha."
                                     "kubernetes.io/migrated-plugins':"
                                     "'kubernetes.io/gce-pd,kubernetes.io/aws-ebs'}}}",
                                     *n),
                     NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c"), "a=" CONFLICT "; b=" CONFLICT "; c=" CONFLICT "; ");
    world_volume(&w, "pv", "", "'awsElasticBlockStore':{'volumeID':'aws://z1/disk-1'}");
    WORLD_EXPECT(
        &w, "p", CLAIM("c"),
        "running \"VolumeBinding\" filter plugin: could not translate pv: failed to translate "
        "Kubernetes ID to EBS Volume ID invalid format for AWS volume (aws://z1/disk-1)");
    world_end(&w);
}

static void test_handles(void)
{
    static const struct {
        const char *volume, *handle; /* handle NULL: an error */
    } rows[] = {
        {"'spec':{'awsElasticBlockStore':{'volumeID':'vol-1'}}", "vol-1"},
        {"'spec':{'awsElasticBlockStore':{'volumeID':'aws:///vol-1'}}", "vol-1"},
        {"'spec':{'awsElasticBlockStore':{'volumeID':'aws://zone/vol-1/'}}", "vol-1"},
        {"'spec':{'awsElasticBlockStore':{'volumeID':'aws://zone/a/vol-1'}}", NULL},
        {"'spec':{'awsElasticBlockStore':{'volumeID':'aws://vol-1'}}", NULL},
        {"'spec':{'gcePersistentDisk':{'pdName':'d'}}",
         "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"},
        {"'metadata':{'labels':{'topology.kubernetes.io/"
         "zone':'r-x-a'}},'spec':{'gcePersistentDisk':{"
         "'pdName':'d'}}",
         "projects/UNSPECIFIED/zones/r-x-a/disks/d"},
        {"'metadata':{'labels':{'failure-domain.beta.kubernetes.io/zone':'r-x-a__r-x-b'}},'spec':{"
         "'gcePersistentDisk':{'pdName':'d'}}",
         "projects/UNSPECIFIED/regions/r-x/disks/d"},
        {"'metadata':{'labels':{'topology.kubernetes.io/zone':'r-x-a__r-y-b'}},'spec':{"
         "'gcePersistentDisk':{'pdName':'d'}}",
         NULL},
        {"'metadata':{'labels':{'topology.kubernetes.io/zone':'rxa__r-y-b'}},'spec':{"
         "'gcePersistentDisk':{'pdName':'d'}}",
         NULL},
        {"'spec':{'azureDisk':{'diskURI':'u','kind':'managed'}}", "u"},
        {"'spec':{'azureDisk':{'diskURI':'u','kind':'Shared'}}", NULL},
        {"'spec':{'cinder':{'volumeID':'c'}}", "c"},
        {"'spec':{'portworxVolume':{'volumeID':'c'}}", "c"},
    };

    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        const K8s__PersistentVolume *v = (const void *)world_read(
            &w, &bh_kinds[BH_KIND_PERSISTENTVOLUME], bh_arena_printf(&w.a, "{%s}", rows[i].volume));
        const char *error;
        const char *handle = bh_csi_handle(&w.a, v, bh_in_tree_of(v), &error);
        CU_ASSERT_EQUAL(!handle, !rows[i].handle);
        CU_ASSERT_EQUAL(!handle, error != NULL);
        if (handle && rows[i].handle)
            CU_ASSERT_STRING_EQUAL(handle, rows[i].handle);
    }
    world_end(&w);
}

static bool reaches(const char *volume, const char *key, const char *value)
{
    struct bh_symtab *tab = bh_engine_symtab(w.e);
    const K8s__PersistentVolume *v = (const void *)world_read(
        &w, &bh_kinds[BH_KIND_PERSISTENTVOLUME], bh_arena_printf(&w.a, "{%s}", volume));
    struct bh_terms t = bh_csi_affinity(&w.a, tab, v, bh_in_tree_of(v));
    const struct bh_kv label = {bh_sym_internc(tab, key), bh_sym_internc(tab, value)};

    return bh_terms_match(&t, tab, &label, 1);
}

static void test_topology_translation(void)
{
    const char *from_label = "'metadata':{'labels':{'topology.kubernetes.io/zone':'z1__ z2'}},"
                             "'spec':{'gcePersistentDisk':{'pdName':'d'}}";
    const char *beta = "'spec':{'cinder':{'volumeID':'c'}," ON_NODE(
        "failure-domain.beta.kubernetes.io/zone", "z1") "}";
    const char *region =
        "'metadata':{'labels':{'failure-domain.beta.kubernetes.io/zone':''}},'spec':{"
        "'cinder':{'volumeID':'c'}," ON_NODE("failure-domain.beta.kubernetes.io/region", "r1") "}";

    begin();
    CU_ASSERT(reaches(from_label, "topology.gke.io/zone", "z1"));
    CU_ASSERT(reaches(from_label, "topology.gke.io/zone", "z2"));
    CU_ASSERT(!reaches(from_label, "topology.gke.io/zone", "z3"));
    CU_ASSERT(!reaches(from_label, "topology.kubernetes.io/zone", "z1"));
    CU_ASSERT(reaches(beta, "topology.cinder.csi.openstack.org/zone", "z1"));
    CU_ASSERT(!reaches(beta, "failure-domain.beta.kubernetes.io/zone", "z1"));
    CU_ASSERT(reaches(region, "topology.kubernetes.io/region", "r1"));
    CU_ASSERT(!reaches(region, "failure-domain.beta.kubernetes.io/region", "r1"));
    /* Azure keeps its affinity as it is. */
    CU_ASSERT(reaches("'spec':{'azureDisk':{}," ON_NODE("topology.kubernetes.io/zone", "z") "}",
                      "topology.kubernetes.io/zone", "z"));
    world_end(&w);
}

BH_TESTS("scheduler/plugins/volumebinding",
         {"claims that are missing, lost, going or somebody else's", test_missing_claims},
         {"claims that should be bound already", test_immediate},
         {"a bound claim's volume has to reach the node", test_bound},
         {"a claim bound to a volume that is gone", test_bound_to_nothing},
         {"an unbound claim takes the smallest volume that fits", test_static_matching},
         {"volumes for many nodes", test_volumes_for_many_nodes},
         {"volumes that do not fit", test_unfit_volumes},
         {"a volume reserved for the claim", test_reserved_volume},
         {"a selected node", test_selected_node},
         {"provisioning: topology and capacity", test_provisioning},
         {"in-tree volumes on migrated nodes", test_migrated_volume},
         {"CSI handles of in-tree volumes", test_handles},
         {"topology of in-tree volumes", test_topology_translation})
