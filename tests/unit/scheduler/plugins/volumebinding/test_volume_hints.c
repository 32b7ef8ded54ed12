/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/volumebinding/test_volume_hints.c - which events wake pods with
 * volumes
 */
#include "tests/unit/scheduler/plugins/volumebinding/world.h"

static struct world w;

/* Would the change of the object wake a pod with these volumes that the plugin rejected? */
static bool wakes(const char *plugin, const char *volumes, enum bh_event_action action,
                  enum bh_kind kind, const char *ns, const char *name, const char *json)
{
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT, .action = action};
    struct bh_pending p = world_pod(&w, "p", "", volumes);

    world_object(&w, kind, ns, name, json, &ev);
    bool yes = bh_engine_hint(w.e, plugin, &p, &ev, &(bool){false}) == BH_QUEUE;
    bh_engine_shape_unref(w.e, p.shape);
    return yes;
}
#define ADD(plugin, volumes, kind, name, json)                                                     \
    wakes(plugin, volumes, BH_EV_ADD, BH_KIND_##kind, "", name, json)
#define UPDATE(plugin, volumes, kind, name, json)                                                  \
    wakes(plugin, volumes, BH_EV_UPDATE, BH_KIND_##kind, "", name, json)

static void test_claims(void)
{
    static const char eph[] = "{'name':'e','ephemeral':{}}";
    static const char *const all[] = {"VolumeBinding", "VolumeRestrictions", "VolumeZone",
                                      "NodeVolumeLimits"};

    world_begin(&w);
    for (unsigned i = 0; i < BH_ARRAY_LEN(all); i++) {
        bool ephemeral = i == 0 || i == 3;
        enum bh_kind k = BH_KIND_PERSISTENTVOLUMECLAIM;
        CU_ASSERT(wakes(all[i], CLAIM("c"), BH_EV_ADD, k, "ns", "c", "{'metadata':{'name':'c'}}"));
        CU_ASSERT(!wakes(all[i], CLAIM("c"), BH_EV_ADD, k, "no", "c", "{'metadata':{'name':'c'}}"));
        CU_ASSERT(!wakes(all[i], CLAIM("c"), BH_EV_ADD, k, "ns", "d", "{'metadata':{'name':'d'}}"));
        CU_ASSERT_EQUAL(
            wakes(all[i], eph, BH_EV_ADD, k, "ns", "p-e", "{'metadata':{'name':'p-e'}}"),
            ephemeral);
        CU_ASSERT(!wakes(all[i], eph, BH_EV_ADD, k, "ns", "p-f", "{'metadata':{'name':'p-f'}}"));
        CU_ASSERT_EQUAL(
            wakes(all[i], CLAIM("c"), BH_EV_UPDATE, k, "ns", "c", "{'metadata':{'name':'c'}}"),
            i == 0 || i == 2);
    }
    world_end(&w);
}

static void test_classes(void)
{
    static const char wait[] =
        "{'metadata':{'name':'k'},'volumeBindingMode':'WaitForFirstConsumer'}";
    static const char zoned[] =
        "{'metadata':{'name':'k'},'allowedTopologies':[{'matchLabelExpressions'"
        ":[{'key':'z','values':['a']}]}]}";

    world_begin(&w);
    CU_ASSERT(ADD("VolumeBinding", CLAIM("c"), STORAGECLASS, "k", "{'metadata':{'name':'k'}}"));
    CU_ASSERT(!ADD("VolumeZone", CLAIM("c"), STORAGECLASS, "k", "{'metadata':{'name':'k'}}"));
    CU_ASSERT(ADD("VolumeZone", CLAIM("c"), STORAGECLASS, "k", wait));
    CU_ASSERT(!UPDATE("VolumeBinding", CLAIM("c"), STORAGECLASS, "k", wait));
    CU_ASSERT(UPDATE("VolumeBinding", CLAIM("c"), STORAGECLASS, "k", zoned));
    CU_ASSERT(!UPDATE("VolumeBinding", CLAIM("c"), STORAGECLASS, "k", zoned));
    CU_ASSERT(!UPDATE("VolumeZone", CLAIM("c"), STORAGECLASS, "k", wait));
    world_end(&w);
}

static void test_nodes_and_drivers(void)
{
    static const char plain[] = "{'metadata':{'name':'n'},'spec':{'drivers':[{'name':'d'}]}}";
    static const char limited[] =
        "{'metadata':{'name':'n'},'spec':{'drivers':[{'name':'d','allocatable':{'count':2}}]}}";
    static const char migrated[] = "{'metadata':{'name':'n','annotations':{'storage.alpha."
                                   "kubernetes.io/migrated-plugins':'x'}}}";
    static const char inline_csi[] = "{'name':'v','csi':{'driver':'d'}}";
    static const char on[] = "{'metadata':{'name':'d'},'spec':{'storageCapacity':true}}";
    static const char off[] = "{'metadata':{'name':'d'},'spec':{'storageCapacity':false}}";

    world_begin(&w);
    CU_ASSERT(ADD("NodeVolumeLimits", CLAIM("c"), CSINODE, "n", plain));
    CU_ASSERT(UPDATE("NodeVolumeLimits", CLAIM("c"), CSINODE, "n", limited));
    CU_ASSERT(!UPDATE("NodeVolumeLimits", CLAIM("c"), CSINODE, "n", limited));
    CU_ASSERT(UPDATE("NodeVolumeLimits", CLAIM("c"), CSINODE, "n", plain)); /* no limit any more */
    CU_ASSERT(!UPDATE("VolumeBinding", CLAIM("c"), CSINODE, "n", limited));
    CU_ASSERT(UPDATE("VolumeBinding", CLAIM("c"), CSINODE, "n", migrated));
    CU_ASSERT(!ADD("VolumeBinding", inline_csi, CSIDRIVER, "d", on));
    CU_ASSERT(UPDATE("VolumeBinding", inline_csi, CSIDRIVER, "d", off));
    CU_ASSERT(!UPDATE("VolumeBinding", inline_csi, CSIDRIVER, "d", on));
    CU_ASSERT(UPDATE("VolumeBinding", CLAIM("c"), CSIDRIVER, "d", off)); /* not upstream */
    CU_ASSERT(!UPDATE("VolumeBinding", CLAIM("c"), CSIDRIVER, "d", on));
    world_end(&w);
}

static void test_capacities_and_volumes(void)
{
    world_begin(&w);
    CU_ASSERT(ADD("VolumeBinding", CLAIM("c"), CSISTORAGECAPACITY, "s",
                  "{'metadata':{'name':'s'},'capacity':'1Gi'}"));
    CU_ASSERT(UPDATE("VolumeBinding", CLAIM("c"), CSISTORAGECAPACITY, "s",
                     "{'metadata':{'name':'s'},'capacity':'2Gi'}"));
    CU_ASSERT(!UPDATE("VolumeBinding", CLAIM("c"), CSISTORAGECAPACITY, "s",
                      "{'metadata':{'name':'s'},'capacity':'9Gi','maximumVolumeSize':'1Gi'}"));
    CU_ASSERT(ADD("VolumeZone", CLAIM("c"), PERSISTENTVOLUME, "v", "{'metadata':{'name':'v'}}"));
    CU_ASSERT(!UPDATE("VolumeZone", CLAIM("c"), PERSISTENTVOLUME, "v",
                      "{'metadata':{'name':'v','labels':{'a':'b'}}}"));
    CU_ASSERT(UPDATE("VolumeZone", CLAIM("c"), PERSISTENTVOLUME, "v",
                     "{'metadata':{'name':'v','labels':{'topology.kubernetes.io/zone':'b'}}}"));
    CU_ASSERT(
        UPDATE("VolumeBinding", CLAIM("c"), PERSISTENTVOLUME, "v", "{'metadata':{'name':'v'}}"));
    world_end(&w);
}

static void test_detached(void)
{
    static const char va[] = "{'metadata':{'name':'a'},'spec':{'attacher':'ebs.csi.aws.com'}}";
    static const struct {
        const char *volumes;
        bool wakes;
    } rows[] = {{CLAIM("c"), true},
                {"{'name':'v','awsElasticBlockStore':{'volumeID':'x'}}", true},
                {"{'name':'v','cinder':{'volumeID':'x'}}", false},
                {"{'name':'v','ephemeral':{}}", false}};

    world_begin(&w);
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        world_object(&w, BH_KIND_VOLUMEATTACHMENT, "", "a", va, NULL);
        CU_ASSERT_EQUAL(wakes("NodeVolumeLimits", rows[i].volumes, BH_EV_DELETE,
                              BH_KIND_VOLUMEATTACHMENT, "", "a", NULL),
                        rows[i].wakes);
    }
    world_end(&w);
}

static bool pod_gone_wakes(const char *plugin, const char *waiting, const char *gone,
                           const char *node)
{
    struct bh_pending p = world_pod(&w, "p", "", waiting), g = world_pod(&w, "g", "", gone);
    struct bh_pod_rec rec = *g.pod; /* the texts behind it are not needed */
    struct bh_cluster_event ev = {.resource = BH_EV_POD_ASSIGNED,
                                  .action = BH_EV_DELETE,
                                  .old_pod = &rec,
                                  .old_shape = bh_engine_shape_rec(w.e, g.shape)};

    rec.node = bh_sym_internc(bh_engine_symtab(w.e), node);
    bool yes = bh_engine_hint(w.e, plugin, &p, &ev, &(bool){false}) == BH_QUEUE;
    bh_engine_shape_unref(w.e, p.shape);
    bh_engine_shape_unref(w.e, g.shape);
    return yes;
}

static void test_pods(void)
{
    static const char disk[] = "{'name':'v','gcePersistentDisk':{'pdName':'x'}}";
    static const char other[] = "{'name':'v','gcePersistentDisk':{'pdName':'y'}}";

    world_begin(&w);
    CU_ASSERT(pod_gone_wakes("VolumeRestrictions", disk, disk, "a"));
    CU_ASSERT(!pod_gone_wakes("VolumeRestrictions", disk, other, "a"));
    CU_ASSERT(pod_gone_wakes("VolumeRestrictions", CLAIM("c"), CLAIM("c"), "a"));
    CU_ASSERT(!pod_gone_wakes("VolumeRestrictions", CLAIM("c"), CLAIM("d"), "a"));
    CU_ASSERT(pod_gone_wakes("NodeVolumeLimits", CLAIM("c"), CLAIM("d"), "a"));
    CU_ASSERT(!pod_gone_wakes("NodeVolumeLimits", CLAIM("c"), CLAIM("d"), ""));
    CU_ASSERT(!pod_gone_wakes("NodeVolumeLimits", CLAIM("c"), "{'name':'v','emptyDir':{}}", "a"));
    world_end(&w);
}

BH_TESTS("scheduler/plugins/volume hints", {"claims", test_claims}, {"classes", test_classes},
         {"CSI nodes and drivers", test_nodes_and_drivers},
         {"capacities and volumes", test_capacities_and_volumes},
         {"detached volumes", test_detached}, {"pods that went", test_pods})
