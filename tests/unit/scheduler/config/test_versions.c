/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/framework/plugin.h"
#include "tests/unit/scheduler/config/fixture.h"

/* What a list of plugins is in this build: names that start with '?' only if they are there. */
static void expect(const struct fx_read *f, enum bh_point pt, const char *const *names)
{
    struct bh_buf b = {0};

    for (; *names; names++) {
        const char *name = *names + (**names == '?');
        if (**names == '?' && !bh_plugin_find(name))
            continue;
        bh_buf_addf(&b, "%s%s", b.n ? " " : "", name);
    }
    fx_expect_plugins(f->c, 0, pt, bh_buf_str(&b));
    bh_buf_fini(&b);
}
#define EXPECT(f, pt, ...) expect((f), (pt), (const char *const[]){__VA_ARGS__, NULL})

static void test_beta3_defaults(void)
{
    struct fx_read f = fx_good(BETA3);

    EXPECT(&f, BH_POINT_FILTER, "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
           "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "?EBSLimits", "?GCEPDLimits",
           "NodeVolumeLimits", "?AzureDiskLimits", "VolumeBinding", "VolumeZone",
           "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures");
    EXPECT(&f, BH_POINT_SCORE, "TaintToleration:3", "NodeAffinity:2", "NodeResourcesFit:1",
           "VolumeBinding:1", "PodTopologySpread:2", "InterPodAffinity:2", "DynamicResources:2",
           "NodeResourcesBalancedAllocation:1", "ImageLocality:1");
    EXPECT(&f, BH_POINT_PRE_ENQUEUE, "SchedulingGates", "DynamicResources", "DefaultPreemption");
    CU_ASSERT(fx_warned(&f, 1, "v1beta3 was removed from kube-scheduler in 1.29"));
    fx_done(&f);
}

static void test_beta2_defaults(void)
{
    struct fx_read f = fx_good(BETA2 "healthzBindAddress: ''\nmetricsBindAddress: '0.0.0.0:0'\n");

    EXPECT(&f, BH_POINT_QUEUE_SORT, "PrioritySort");
    EXPECT(&f, BH_POINT_PRE_FILTER, "NodeResourcesFit", "NodePorts", "VolumeRestrictions",
           "PodTopologySpread", "InterPodAffinity", "VolumeBinding", "VolumeZone", "NodeAffinity",
           "NodeVolumeLimits", "DynamicResources", "NodeDeclaredFeatures");
    EXPECT(&f, BH_POINT_FILTER, "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
           "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "?EBSLimits", "?GCEPDLimits",
           "NodeVolumeLimits", "?AzureDiskLimits", "VolumeBinding", "VolumeZone",
           "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures");
    EXPECT(&f, BH_POINT_POST_FILTER, "DynamicResources", "DefaultPreemption");
    EXPECT(&f, BH_POINT_SCORE, "NodeResourcesBalancedAllocation:1", "ImageLocality:1",
           "InterPodAffinity:1", "NodeResourcesFit:1", "NodeAffinity:1", "PodTopologySpread:2",
           "TaintToleration:1", "DynamicResources:2");
    EXPECT(&f, BH_POINT_RESERVE, "VolumeBinding", "DynamicResources");
    EXPECT(&f, BH_POINT_BIND, "DefaultBinder");
    CU_ASSERT(fx_warned(&f, 1, "v1beta2 was removed from kube-scheduler in 1.28"));
    fx_done(&f);
}

/* Points are merged one by one: replaced in place, disabled, appended. */
static void test_beta2_merge(void)
{
    struct fx_read f =
        fx_good(BETA2 "profiles:\n- plugins:\n    score:\n      disabled: [{name: ImageLocality}, "
                      "{name: NodeAffinity}]\n      enabled: [{name: TaintToleration, weight: 9}, "
                      "{name: NodeAffinity, weight: 4}]\n    filter:\n      disabled: [{name: "
                      "'*'}]\n      enabled: [{name: NodeName}]\n");

    EXPECT(&f, BH_POINT_SCORE, "NodeResourcesBalancedAllocation:1", "InterPodAffinity:1",
           "NodeResourcesFit:1", "PodTopologySpread:2", "TaintToleration:9", "DynamicResources:2",
           "NodeAffinity:4");
    EXPECT(&f, BH_POINT_FILTER, "NodeName");
    EXPECT(&f, BH_POINT_PRE_SCORE, "InterPodAffinity", "PodTopologySpread", "TaintToleration",
           "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation");
    fx_done(&f);
}

static void test_old_plugins(void)
{
    struct fx_read f = fx_good(BETA3 "profiles:\n- plugins:\n    filter:\n      enabled:\n"
                                     "      - name: CinderLimits\n");

    bool there = bh_plugin_find("CinderLimits") != NULL;
    CU_ASSERT(there != fx_warned(&f, 7, "plugin \"CinderLimits\" is no longer there"));
    fx_done(&f);
    /* v1 refuses it at single points; multiPoint is how it is switched on. */
    int rc = fx_text(&f, HEAD "profiles:\n- plugins:\n    multiPoint:\n      enabled:\n"
                              "      - name: EBSLimits\n");
    if (bh_plugin_find("EBSLimits")) {
        CU_ASSERT_FATAL(rc == 0);
        const struct bh_profile_config *p = &f.c->profiles[0];
        CU_ASSERT_STRING_EQUAL(p->points[BH_POINT_FILTER][p->n_points[BH_POINT_FILTER] - 1].name,
                               "EBSLimits");
    } else {
        CU_ASSERT(rc == -EINVAL && strstr(f.r.summary, "\"EBSLimits\" does not exist"));
    }
    fx_done(&f);
}

#define CREATING "initializing profiles: creating profile for scheduler name default-scheduler: "
static void test_beta_errors(void)
{
    static const struct fx_bad cases[] = {
        {BETA2 "healthzBindAddress: 0.0.0.0:10251\n",
         "healthzBindAddress: Invalid value: \"0.0.0.0:10251\": must be empty or with an explicit "
         "0 port",
         3},
        {BETA2 "metricsBindAddress: '[::]:x'\n",
         "metricsBindAddress: Invalid value: \"[::]:x\": must be empty or with an explicit 0 port",
         3},
        {BETA2 "profiles:\n- plugins:\n    score: {enabled: [{name: Foo}]}\n",
         CREATING "ScorePlugin \"Foo\" does not exist", 5},
        {BETA3 "profiles:\n- plugins:\n    multiPoint:\n      enabled:\n      - name: Foo\n",
         CREATING "PreFilterPlugin \"Foo\" does not exist", 7},
        {BETA3 "parallelism: 0\n",
         "parallelism: Invalid value: 0: should be an integer value greater than zero", 3},
        {"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: NodeAffinityArgs\n",
         "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1beta3, "
         "Kind=NodeAffinityArgs: ",
         1},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

BH_TESTS("scheduler/config/versions", {"v1beta3 has its own defaults", test_beta3_defaults},
         {"v1beta2 has its own defaults", test_beta2_defaults},
         {"v1beta2 merges point by point", test_beta2_merge},
         {"plugins that only old versions name", test_old_plugins},
         {"errors of old versions", test_beta_errors})
