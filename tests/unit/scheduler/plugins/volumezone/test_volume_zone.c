/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/volumezone/test_volume_zone.c - zone labels of volumes
 */
#include "tests/unit/scheduler/plugins/volumebinding/world.h"

#define ZONE "VolumeZone/UU: node(s) had no available volume zone; "

static struct world w;

static void begin(void)
{
    world_begin(&w);
    world_node(&w, "beta", "'failure-domain.beta.kubernetes.io/zone':'z1'");
    world_node(&w, "ga", "'topology.kubernetes.io/zone':'z1','topology.kubernetes.io/region':'r1'");
    world_node(&w, "none", "");
}

static void volume(const char *labels)
{
    world_volume(&w, "pv", labels, "'storageClassName':''");
    world_bound_claim(&w, "c", "pv");
}

static void test_labels(void)
{
    begin();
    volume("");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "");
    /* A node without any of the labels takes every volume; GA is not satisfied by beta. */
    volume("'topology.kubernetes.io/zone':'z1'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "beta=" ZONE);
    volume("'failure-domain.beta.kubernetes.io/zone':'z1'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "");
    volume("'topology.kubernetes.io/zone':'z2'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "beta=" ZONE "ga=" ZONE);
    volume("'topology.kubernetes.io/zone':'z2__ z1 '");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "beta=" ZONE);
    volume("'topology.kubernetes.io/zone':'z2__'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "");
    volume("'failure-domain.beta.kubernetes.io/region':'r1'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "beta=" ZONE);
    volume("'topology.kubernetes.io/zone':'z1','topology.kubernetes.io/region':'r2'");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "beta=" ZONE "ga=" ZONE);
    world_end(&w);
}

/* What the plugins before it reject as well is asked of a profile in which they are off. */
static void begin_alone(void)
{
    static const char config[] =
        "{\"apiVersion\":\"kubescheduler.config.k8s.io/v1\",\"kind\":"
        "\"KubeSchedulerConfiguration\",\"profiles\":[{\"schedulerName\":\"default-scheduler\","
        "\"plugins\":{\"multiPoint\":{"
        "\"disabled\":[{\"name\":\"VolumeBinding\"},{\"name\":\"VolumeRestrictions\"},{\"name\":"
        "\"NodeVolumeLimits\"}]}}}]}";
    static struct bh_sched_config *sched;
    struct bh_err err = {{0}};
    struct bh_json *v;

    world_begin(&w);
    bh_engine_free(w.e);
    bh_sched_config_free(sched);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&w.a, config, strlen(config), 0, &v, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(v, &sched, &err), 0);
    const struct bh_engine_options o = {.config = sched, .verify = true};
    CU_ASSERT_EQUAL_FATAL(bh_engine_new(&o, &w.e, &err), 0);
    world_node(&w, "ga", "'topology.kubernetes.io/zone':'z1'");
}

static void test_claims(void)
{
    begin_alone();
    WORLD_EXPECT(&w, "p", CLAIM(""), "*VolumeZone/UU: PersistentVolumeClaim had no name");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "*VolumeZone/UU: persistentvolumeclaim \"c\" not found");
    world_claim(&w, "c", "", "");
    WORLD_EXPECT(&w, "p", CLAIM("c"),
                 "*VolumeZone/UU: PersistentVolumeClaim had no pv name and storageClass name");
    world_claim(&w, "c", "", "'storageClassName':'k'");
    WORLD_EXPECT(&w, "p", CLAIM("c"),
                 "*VolumeZone/UU: storageclass.storage.k8s.io \"k\" not found");
    world_object(&w, BH_KIND_STORAGECLASS, "", "k", "{'metadata':{'name':'k'}}", NULL);
    WORLD_EXPECT(&w, "p", CLAIM("c"),
                 "*VolumeZone/UU: VolumeBindingMode not set for StorageClass \"k\"");
    world_class(&w, "k", "x", "Immediate", "");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "*VolumeZone/UU: PersistentVolume had no name");
    world_class(&w, "k", "x", "WaitForFirstConsumer", "");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "");
    world_bound_claim(&w, "c", "pv");
    WORLD_EXPECT(&w, "p", CLAIM("c"), "*VolumeZone/UU: persistentvolume \"pv\" not found");
    WORLD_EXPECT(&w, "p", "{'name':'v','ephemeral':{}}", "");
    world_end(&w);
}

BH_TESTS("scheduler/plugins/volumezone", {"labels of volumes and nodes", test_labels},
         {"claims without a volume", test_claims})
