/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/volumerestrictions/test_volume_restrictions.c - disks and claims of
 * one pod
 */
#include "tests/unit/scheduler/plugins/volumebinding/world.h"

#define DISK "VolumeRestrictions/U: node(s) had no available disk; "
#define ONE_POD                                                                                    \
    "VolumeRestrictions/U: node(s) unavailable due to PersistentVolumeClaim with "                 \
    "ReadWriteOncePod "                                                                            \
    "access mode already in-use by another pod; "

static struct world w;

static void begin(void)
{
    world_begin(&w);
    world_node(&w, "a", "");
    world_node(&w, "b", "");
}

static void test_disks(void)
{
    static const struct {
        const char *running, *wanted;
        bool clash;
    } rows[] = {
        {"'gcePersistentDisk':{'pdName':'x'}", "'gcePersistentDisk':{'pdName':'x'}", true},
        {"'gcePersistentDisk':{'pdName':'x'}", "'gcePersistentDisk':{'pdName':'y'}", false},
        {"'gcePersistentDisk':{'pdName':'x','readOnly':true}",
         "'gcePersistentDisk':{'pdName':'x','readOnly':true}", false},
        {"'gcePersistentDisk':{'pdName':'x','readOnly':true}", "'gcePersistentDisk':{'pdName':'x'}",
         true},
        {"'awsElasticBlockStore':{'volumeID':'x','readOnly':true}",
         "'awsElasticBlockStore':{'volumeID':'x','readOnly':true}", true},
        {"'awsElasticBlockStore':{'volumeID':'x'}", "'gcePersistentDisk':{'pdName':'x'}", false},
        {"'iscsi':{'targetPortal':'p','iqn':'i','lun':0}",
         "'iscsi':{'targetPortal':'q','iqn':'i','lun':1}", true},
        {"'iscsi':{'iqn':'i','readOnly':true}", "'iscsi':{'iqn':'i','readOnly':true}", false},
        {"'rbd':{'monitors':['m','n'],'image':'i','pool':'rbd'}",
         "'rbd':{'monitors':['o','n'],'image':'i'}", true},
        {"'rbd':{'monitors':['m'],'image':'i'}", "'rbd':{'monitors':['n'],'image':'i'}", false},
        {"'rbd':{'monitors':['m'],'image':'i'}", "'rbd':{'monitors':['m'],'image':'i','pool':'q'}",
         false},
        {"'rbd':{'monitors':['m'],'image':'i'}", "'rbd':{'monitors':['m'],'image':'j'}", false},
        {"'azureDisk':{'diskName':'x','diskURI':'u'}", "'azureDisk':{'diskName':'x','diskURI':'u'}",
         false},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        begin();
        world_running(&w, "r", "a", bh_arena_printf(&w.a, "{'name':'v',%s}", rows[i].running));
        WORLD_EXPECT(&w, "p", bh_arena_printf(&w.a, "{'name':'v',%s}", rows[i].wanted),
                     rows[i].clash ? "a=" DISK : "");
        world_end(&w);
    }
}

static void test_one_pod(void)
{
    begin();
    world_volume(&w, "pv", "", "'storageClassName':''");
    world_claim(&w, "one", "'pv.kubernetes.io/bind-completed':''",
                "'volumeName':'pv','accessModes':['ReadWriteOncePod']");
    world_bound_claim(&w, "many", "pv");
    WORLD_EXPECT(&w, "p", CLAIM("one"), "");
    world_running(&w, "m", "a", CLAIM("many"));
    WORLD_EXPECT(&w, "p", CLAIM("many"), "");
    WORLD_EXPECT(&w, "p", CLAIM("one"), "");
    world_running(&w, "r", "b", CLAIM("one"));
    WORLD_EXPECT(&w, "p", CLAIM("one"), "a=" ONE_POD "b=" ONE_POD);
    /* Pods on nodes that are not known do not count; they do once the node appears. */
    bh_engine_del_node(w.e, bh_sym_internc(bh_engine_symtab(w.e), "b"));
    WORLD_EXPECT(&w, "p", CLAIM("one"), "");
    world_node(&w, "b", "");
    WORLD_EXPECT(&w, "p", CLAIM("one"), "a=" ONE_POD "b=" ONE_POD);
    bh_engine_del_pod(w.e, bh_str_c("uid-r"));
    WORLD_EXPECT(&w, "p", CLAIM("one"), "");
    world_end(&w);
}

/* The user of the claim is evicted, wherever the newcomer goes. */
static void test_preemption_frees_a_claim(void)
{
    struct bh_shape_rec *high;

    begin();
    world_volume(&w, "pv", "", "'storageClassName':''");
    world_claim(&w, "one", "'pv.kubernetes.io/bind-completed':''",
                "'volumeName':'pv','accessModes':['ReadWriteOncePod']");
    world_running(&w, "r", "b", CLAIM("one"));
    struct bh_pending p = world_pod(&w, "p", "", CLAIM("one"));
    high = bh_arena_memdup(&w.a, bh_engine_shape_rec(w.e, p.shape),
                           bh_engine_shape_rec(w.e, p.shape)->h.size);
    high->priority = 10;
    bh_engine_shape_unref(w.e, p.shape);
    p.shape = bh_engine_shape(w.e, high);
    const struct bh_decision *d = bh_engine_schedule(w.e, &p, BH_EXPLAIN, 0);
    CU_ASSERT_EQUAL(d->kind, BH_NO_FIT);
    CU_ASSERT_STRING_EQUAL(bh_sym_text(bh_engine_symtab(w.e), d->nominated_node), "b");
    CU_ASSERT_EQUAL_FATAL(d->n_victims, 1);
    CU_ASSERT(bh_str_eqc(d->victims[0].name, "r"));
    world_end(&w);
}

BH_TESTS("scheduler/plugins/volumerestrictions", {"disks that two pods cannot share", test_disks},
         {"a claim for one pod", test_one_pod},
         {"preemption frees a claim for one pod", test_preemption_frees_a_claim})
