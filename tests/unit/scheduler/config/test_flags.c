/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/config/test_flags.c - kube-scheduler's flags over a configuration
 */
#include "common/base/buf.h"
#include "scheduler/config/config.h"
#include "tests/unit/harness.h"

static const struct bh_opt_usage usage = {.program = "prog"};
static struct bh_kube_flags flags;
static struct bh_sched_config *c;
static const char *tree; /* the file; NULL: none */

static void load_v(const char *const *words)
{
    static char *argv[16];
    struct bh_config_report report;
    struct bh_err err;
    int argc = 0;

    bh_config_report_init(&report);
    for (; words[argc]; argc++)
        argv[argc] = (char *)words[argc];
    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_parse(&flags, NULL, &usage, argc, argv, &err), 0);
    CU_ASSERT_EQUAL_FATAL(tree ? bh_sched_config_read(tree, strlen(tree), &c, &report)
                               : bh_sched_config_new(NULL, &c, &err),
                          0);
    bh_sched_config_apply_flags(c, &flags);
    bh_config_report_fini(&report);
}
#define LOAD(...) load_v((const char *const[]){"prog", __VA_ARGS__ __VA_OPT__(, ) NULL})

static void done(void)
{
    bh_sched_config_free(c);
    bh_kube_flags_free(&flags);
}

static bool runs(const char *plugin)
{
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++)
        for (uint32_t i = 0; i < c->profiles[0].n_points[pt]; i++)
            if (bh_streq(c->profiles[0].points[pt][i].name, plugin))
                return true;
    return false;
}

static void test_nothing_given_changes_nothing(void)
{
    struct bh_sched_config *plain = NULL;
    struct bh_buf a = {0}, b = {0};

    LOAD("--v=2");
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(NULL, &plain, NULL), 0);
    bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, true, &a);
    bh_sched_config_write(plain, BH_SCHED_CONFIG_YAML, true, &b);
    CU_ASSERT_STRING_EQUAL(a.p, b.p);
    CU_ASSERT(runs("NodeDeclaredFeatures") && runs("DynamicResources"));
    bh_buf_fini(&a);
    bh_buf_fini(&b);
    bh_sched_config_free(plain);
    done();
}

static void test_flags_are_shown(void)
{
    static const char *const lines[] = {"\n  kubeconfig: /k\n",     "\n  qps: 7.5\n",
                                        "\n  burst: 9\n",           "\n  leaderElect: false\n",
                                        "\n  leaseDuration: 30s\n", "\nenableProfiling: false\n",
                                        "\n  resourceName: mine\n"};
    struct bh_buf b = {0};

    LOAD("--kubeconfig=/k", "--kube-api-qps=7.5", "--kube-api-burst=9", "--leader-elect=false",
         "--leader-elect-lease-duration=30s", "--profiling=false",
         "--leader-elect-resource-name=mine");
    bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, true, &b);
    for (size_t i = 0; i < BH_ARRAY_LEN(lines); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(b.p, lines[i]));
    CU_ASSERT(!c->enable_profiling && !c->leader_election.leader_elect);
    bh_buf_fini(&b);
    done();
}

static void test_gates(void)
{
    LOAD("--feature-gates=NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false,"
         "ExtendWebSocketsToKubelet=false,InPlacePodVerticalScalingInitContainers=false,"
         "RestartAllContainersOnContainerExits=false");
    CU_ASSERT(!runs("NodeDeclaredFeatures") && runs("DynamicResources") && runs("NodePorts"));
    CU_ASSERT(!bh_sched_config_gate(c, "NodeDeclaredFeatures"));
    CU_ASSERT(bh_sched_config_gate(c, "SchedulerPopFromBackoffQ"));
    done();
    LOAD("--emulated-version=1.33");
    CU_ASSERT(!runs("NodeDeclaredFeatures") && !runs("DynamicResources"));
    done();
    CU_ASSERT(bh_sched_config_gate(NULL, "NodeDeclaredFeatures"));
}

#define HEAD  "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
#define GANGS "--feature-gates=GenericWorkload=true,GangScheduling=true"

static const char *last_at(enum bh_point pt)
{
    const struct bh_profile_config *p = &c->profiles[0];

    return p->points[pt][p->n_points[pt] - 1].name;
}

static void test_gang_scheduling(void)
{
    struct bh_buf b = {0};

    LOAD();
    CU_ASSERT(!runs("GangScheduling"));
    done();
    LOAD("--feature-gates=GenericWorkload=true");
    CU_ASSERT(!runs("GangScheduling"));
    done();
    LOAD(GANGS);
    CU_ASSERT_STRING_EQUAL(last_at(BH_POINT_PRE_ENQUEUE), "GangScheduling");
    CU_ASSERT_STRING_EQUAL(last_at(BH_POINT_PERMIT), "GangScheduling");
    bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, true, &b);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.p, "- name: GangScheduling"));
    bh_buf_fini(&b);
    done();
    CU_ASSERT_PTR_NULL(bh_sched_gate_instead("GangScheduling"));
    CU_ASSERT_PTR_NOT_NULL(bh_sched_gate_instead("DRAWorkloadResourceClaims"));
    CU_ASSERT_PTR_NULL(bh_sched_gate_instead("WorkloadAwarePreemption"));
}

static void test_placements(void)
{
    LOAD(GANGS);
    CU_ASSERT(!runs("TopologyPlacementGenerator") && !runs("PodGroupPodsCount"));
    CU_ASSERT_STRING_EQUAL(last_at(BH_POINT_PLACEMENT_SCORE), "NodeResourcesFit");
    done();
    LOAD(GANGS ",TopologyAwareWorkloadScheduling=true");
    const struct bh_profile_config *p = &c->profiles[0];
    CU_ASSERT_STRING_EQUAL(last_at(BH_POINT_PLACEMENT_GENERATE), "TopologyPlacementGenerator");
    CU_ASSERT_STRING_EQUAL(last_at(BH_POINT_PLACEMENT_SCORE), "PodGroupPodsCount");
    CU_ASSERT_EQUAL(p->n_points[BH_POINT_PLACEMENT_SCORE], 2);
    CU_ASSERT(p->points[BH_POINT_PLACEMENT_SCORE][0].weight == 1 &&
              p->points[BH_POINT_PLACEMENT_SCORE][1].weight == 1);
    done();
    CU_ASSERT_PTR_NULL(bh_sched_gate_instead("TopologyAwareWorkloadScheduling"));
}

static void test_gang_scheduling_by_file(void)
{
    tree = HEAD "profiles: [{plugins: {multiPoint: {disabled: [{name: GangScheduling}]}}}]";
    LOAD(GANGS);
    CU_ASSERT(!runs("GangScheduling"));
    done();
    tree = HEAD "profiles: [{plugins: {multiPoint: {enabled: [{name: GangScheduling}]}}}]";
    LOAD(GANGS);
    CU_ASSERT_EQUAL(c->profiles[0].n_points[BH_POINT_PERMIT], 1); /* only once */
    done();
    LOAD();
    CU_ASSERT(!runs("GangScheduling")); /* the gate is off */
    done();
    tree = HEAD "profiles: [{plugins: {permit: {disabled: [{name: '*'}]}}}]";
    LOAD(GANGS);
    CU_ASSERT(runs("GangScheduling") && !c->profiles[0].n_points[BH_POINT_PERMIT]);
    done();
    tree = NULL;
}

/* Old files disable v1's defaults when they are translated: gates still add their plugins. */
static void test_gates_add_plugins_to_profiles_of_older_files(void)
{
    static const char beta3[] = "apiVersion: kubescheduler.config.k8s.io/v1beta3\n"
                                "kind: KubeSchedulerConfiguration\n";
    static const char *const files[] = {
        beta3,
        "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: v1\nkind: Policy\n",
        "apiVersion: v1\nkind: Policy\npredicates: [{name: PodFitsResources}]\npriorities: []\n"};

    for (size_t i = 0; i < BH_ARRAY_LEN(files); i++) {
        tree = files[i];
        LOAD(GANGS ",TopologyAwareWorkloadScheduling=true");
        CU_ASSERT_STRING_EQUAL(last_at(BH_POINT_PRE_ENQUEUE), "GangScheduling");
        CU_ASSERT(c->profiles[0].n_points[BH_POINT_PERMIT] == 1);
        CU_ASSERT(runs("TopologyPlacementGenerator") && runs("PodGroupPodsCount"));
        done();
    }
    BH_CLEANUP(bh_freep)
    char *off =
        bh_asprintf("%sprofiles: [{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: "
                    "[{name: PrioritySort}, {name: DefaultBinder}]}}}]",
                    beta3);
    tree = off;
    LOAD(GANGS);
    CU_ASSERT(!runs("GangScheduling")); /* the file itself disables all */
    done();
    tree = NULL;
}

BH_TESTS("scheduler/config/flags",
         {"without flags everything stays as it was", test_nothing_given_changes_nothing},
         {"flags stand in the configuration that is shown and written", test_flags_are_shown},
         {"plugins whose gate is off leave the profiles", test_gates},
         {"GangScheduling comes with its gate", test_gang_scheduling},
         {"placements come with their gate", test_placements},
         {"a file may keep GangScheduling out", test_gang_scheduling_by_file},
         {"gates add plugins to profiles of older files",
          test_gates_add_plugins_to_profiles_of_older_files})
