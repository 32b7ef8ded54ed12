/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_workloads.c - jobs, daemon sets, stateful sets, budgets
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

static void start(struct world *w, size_t n_nodes)
{
    char text[64];

    world_init(w, NULL);
    for (size_t i = 1; i <= n_nodes; i++) {
        snprintf(text, sizeof(text), "metadata: {name: n%zu, labels: {rack: v%zu}}", i, i);
        make(&w->f, "Node", "", text);
    }
}

static bool says(struct world *w, const char *plural, const char *name, const char *text)
{
    struct bh_sim_obj *o = get(&w->f, plural, "default", name);

    return o && strstr(o->json, text);
}

/* ---- Job ------------------------------------------------------------------------------------- */

#define JOB(spec)                                                                                  \
    "metadata: {name: j}\nspec:\n  template: {spec: {restartPolicy: Never, containers: [{name: "   \
    "c, image: i}]}}\n" spec

static void test_job(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "Job", "default", JOB("  completions: 5\n  parallelism: 2\n"));
    UNTIL(&w, num(&w, "jobs", "j", "status.succeeded") == 5);
    UNTIL(&w, says(&w, "jobs", "j", "\"type\":\"Complete\",\"status\":\"True\""));
    settle(&w);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 5);
    CU_ASSERT(says(&w, "jobs", "j", "completionTime"));
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.active"), 0);
    world_fini(&w);
}

static void test_job_indexed(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "Job", "default",
         JOB("  completions: 3\n  parallelism: 3\n  completionMode: Indexed\n"));
    UNTIL(&w, says(&w, "jobs", "j", "\"type\":\"Complete\",\"status\":\"True\""));
    CU_ASSERT(says(&w, "jobs", "j", "\"completedIndexes\":\"0-2\""));
    world_fini(&w);
}

static void test_job_suspended(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "Job", "default", JOB("  suspend: true\n"));
    UNTIL(&w, says(&w, "jobs", "j", "\"type\":\"Suspended\",\"status\":\"True\""));
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    change(&w.f, "Job", "default", "j", BH_SIM_MAIN, "spec.suspend", "false");
    UNTIL(&w, says(&w, "jobs", "j", "\"type\":\"Complete\",\"status\":\"True\""));
    world_fini(&w);
}

static void test_job_fails(void)
{
    struct world w;

    start(&w, 1);
    w.bind = false; /* the test is the kubelet: pods fail before they are bound */
    make(&w.f, "Job", "default", JOB("  backoffLimit: 1\n"));
    for (uint64_t end = bh_mono_ns() + DEADLINE_NS; bh_mono_ns() < end;) {
        struct bh_sim_objs l = {0};
        if (says(&w, "jobs", "j", "\"type\":\"Failed\",\"status\":\"True\""))
            break;
        bh_sim_list(w.f.s, type_of("pods"), NULL, &l);
        for (size_t i = 0; i < l.n; i++) {
            if (bh_ctl_pod_active(l.v[i]))
                change(&w.f, "Pod", "default", l.v[i]->name, BH_SIM_STATUS, "status.phase",
                       "Failed");
        }
        bh_sim_objs_fini(&l);
        turn_world(&w);
    }
    CU_ASSERT(says(&w, "jobs", "j", "BackoffLimitExceeded"));
    CU_ASSERT_EQUAL(num(&w, "jobs", "j", "status.failed"), 2);
    world_fini(&w);
}

static void test_job_expires(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "Job", "default", JOB("  ttlSecondsAfterFinished: 0\n"));
    UNTIL(&w, !get(&w.f, "jobs", "default", "j") && count_pods(&w, NULL) == 0);
    world_fini(&w);
}

/* ---- DaemonSet ------------------------------------------------------------------------------- */

#define DAEMONS(extra)                                                                             \
    "metadata: {name: a}\nspec:\n  selector: {matchLabels: {app: x}}\n  template: {metadata: "     \
    "{labels: {app: x}}, spec: {containers: [{name: c, image: i}]" extra "}}\n"

static bool one_on(struct world *w, const char *node, size_t n)
{
    struct bh_sim_objs l = {0};
    bool yes;

    bh_sim_pods_on_node(w->f.s, node, &l);
    yes = l.n == n;
    bh_sim_objs_fini(&l);
    return yes;
}

static void test_daemons(void)
{
    struct world w;

    start(&w, 3);
    change(&w.f, "Node", "", "n2", BH_SIM_MAIN, "spec.unschedulable", "true");
    change(&w.f, "Node", "", "n3", BH_SIM_MAIN, "spec.taints", "[{key: k, effect: NoSchedule}]");
    make(&w.f, "DaemonSet", "default", DAEMONS(""));
    UNTIL(&w, num(&w, "daemonsets", "a", "status.numberReady") == 2);
    CU_ASSERT_EQUAL(num(&w, "daemonsets", "a", "status.desiredNumberScheduled"), 2);
    CU_ASSERT(one_on(&w, "n1", 1));
    CU_ASSERT(one_on(&w, "n2", 1)); /* cordoned nodes keep their daemons */
    CU_ASSERT(one_on(&w, "n3", 0)); /* tainted ones do not */
    /* The taint goes, a node comes. */
    change(&w.f, "Node", "", "n3", BH_SIM_MAIN, "spec.taints", NULL);
    make(&w.f, "Node", "", NODE("n4"));
    UNTIL(&w, num(&w, "daemonsets", "a", "status.numberReady") == 4);
    CU_ASSERT(one_on(&w, "n3", 1));
    CU_ASSERT(one_on(&w, "n4", 1));
    world_fini(&w);
}

static void test_daemons_selected(void)
{
    struct world w;

    start(&w, 3);
    make(&w.f, "DaemonSet", "default",
         DAEMONS(", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                 "{nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [v1, "
                 "v3]}]}]}}}"));
    UNTIL(&w, num(&w, "daemonsets", "a", "status.numberReady") == 2);
    CU_ASSERT(one_on(&w, "n2", 0));
    change(&w.f, "Node", "", "n3", BH_SIM_MAIN, "metadata.labels.rack", "other");
    UNTIL(&w, one_on(&w, "n3", 0));
    UNTIL(&w, num(&w, "daemonsets", "a", "status.desiredNumberScheduled") == 1);
    world_fini(&w);
}

static void test_daemons_roll(void)
{
    struct world w;

    start(&w, 2);
    make(&w.f, "DaemonSet", "default", DAEMONS(""));
    UNTIL(&w, num(&w, "daemonsets", "a", "status.numberReady") == 2);
    change(&w.f, "DaemonSet", "default", "a", BH_SIM_MAIN, "spec.template.spec.containers",
           "[{name: c, image: i2}]");
    UNTIL(&w, num(&w, "daemonsets", "a", "status.observedGeneration") == 2 &&
                  num(&w, "daemonsets", "a", "status.updatedNumberScheduled") == 2 &&
                  num(&w, "daemonsets", "a", "status.numberAvailable") == 2);
    CU_ASSERT_EQUAL(bh_sim_count(w.f.s, type_of("controllerrevisions")), 2);
    world_fini(&w);
}

/* ---- StatefulSet ----------------------------------------------------------------------------- */

#define STATEFUL(n, extra)                                                                         \
    "metadata: {name: s}\nspec:\n  serviceName: s\n  replicas: " n "\n" TEMPLATE extra
#define CLAIM                                                                                      \
    "  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], "      \
    "resources: {requests: {storage: 1Gi}}}}]\n"

static void test_stateful(void)
{
    struct world w;

    start(&w, 1);
    w.bind = false;
    make(&w.f, "StatefulSet", "default", STATEFUL("3", CLAIM));
    UNTIL(&w, NULL != get(&w.f, "pods", "default", "s-0"));
    settle(&w);
    CU_ASSERT_PTR_NULL(get(&w.f, "pods", "default", "s-1")); /* s-0 is not ready yet */
    w.bind = true;
    UNTIL(&w, num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "persistentvolumeclaims", "default", "data-s-2"));
    CU_ASSERT(says(&w, "pods", "s-1", "\"persistentVolumeClaim\":{\"claimName\":\"data-s-1\"}"));
    EQ(bh_sim_obj_label(get(&w.f, "pods", "default", "s-2"), "apps.kubernetes.io/pod-index"), "2");
    /* From above, one at a time; the claims stay. */
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN, "spec.replicas", "1");
    UNTIL(&w, count_pods(&w, NULL) == 1);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "pods", "default", "s-0"));
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "persistentvolumeclaims", "default", "data-s-2"));
    world_fini(&w);
}

/* As many as a number can say: what is looked at is what there is and what can be made at once. */
static void test_stateful_without_end(void)
{
    struct world w;

    start(&w, 1);
    w.bind = false;
    make(&w.f, "StatefulSet", "default",
         STATEFUL("2147483647", "  podManagementPolicy: Parallel\n"));
    UNTIL(&w, count_pods(&w, NULL) > 600); /* of three syncs */
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "pods", "default", "s-0"));
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "pods", "default", "s-600"));
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN, "spec.replicas", "1");
    UNTIL(&w, count_pods(&w, NULL) == 1);
    world_fini(&w);
}

static void test_stateful_roll(void)
{
    struct world w;
    char *old_0;

    start(&w, 1);
    make(&w.f, "StatefulSet", "default",
         STATEFUL("3", "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}\n"));
    UNTIL(&w, num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    old_0 = bh_strdup(get(&w.f, "pods", "default", "s-0")->uid);
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN, "spec.template.spec.containers",
           "[{name: c, image: i2}]");
    UNTIL(&w, num(&w, "statefulsets", "s", "status.updatedReplicas") == 2 &&
                  num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    settle(&w);
    EQ(get(&w.f, "pods", "default", "s-0")->uid, old_0); /* below the partition */
    CU_ASSERT(says(&w, "pods", "s-2", "i2"));
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN,
           "spec.updateStrategy.rollingUpdate.partition", "0");
    UNTIL(&w, num(&w, "statefulsets", "s", "status.updatedReplicas") == 3 &&
                  num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    EQ(field(&w.f, get(&w.f, "statefulsets", "default", "s"), "status.currentRevision"),
       field(&w.f, get(&w.f, "statefulsets", "default", "s"), "status.updateRevision"));
    free(old_0);
    world_fini(&w);
}

/* Below the partition a pod that is made anew is the old one again. */
static void test_stateful_canary(void)
{
    struct world w;
    char *old_0;

    start(&w, 1);
    make(&w.f, "StatefulSet", "default",
         STATEFUL("3", "  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}\n"));
    UNTIL(&w, num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN, "spec.template.spec.containers",
           "[{name: c, image: i2}]");
    UNTIL(&w, num(&w, "statefulsets", "s", "status.updatedReplicas") == 1 &&
                  num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    CU_ASSERT_EQUAL(num(&w, "statefulsets", "s", "status.currentReplicas"), 2);
    old_0 = bh_strdup(get(&w.f, "pods", "default", "s-0")->uid);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "s-0", NULL, NULL);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "s-2", NULL, NULL);
    UNTIL(&w, get(&w.f, "pods", "default", "s-0") &&
                  !bh_streq(get(&w.f, "pods", "default", "s-0")->uid, old_0) &&
                  num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    CU_ASSERT(!says(&w, "pods", "s-0", "i2"));
    CU_ASSERT(says(&w, "pods", "s-2", "i2"));
    EQ(bh_sim_obj_label(get(&w.f, "pods", "default", "s-0"), "controller-revision-hash"),
       field(&w.f, get(&w.f, "statefulsets", "default", "s"), "status.currentRevision"));
    free(old_0);
    world_fini(&w);
}

static void test_stateful_start(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "StatefulSet", "default", STATEFUL("2", ""));
    UNTIL(&w, num(&w, "statefulsets", "s", "status.readyReplicas") == 2);
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN, "spec.ordinals", "{start: 3}");
    UNTIL(&w, get(&w.f, "pods", "default", "s-4") && !get(&w.f, "pods", "default", "s-0") &&
                  num(&w, "statefulsets", "s", "status.readyReplicas") == 2);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "pods", "default", "s-3"));
    world_fini(&w);
}

static bool claim_there(struct world *w, const char *name)
{
    return get(&w->f, "persistentvolumeclaims", "default", name) != NULL;
}

#define KEEPS(deleted, scaled)                                                                     \
    "  persistentVolumeClaimRetentionPolicy: {whenDeleted: " deleted ", whenScaled: " scaled "}\n"

static void test_stateful_claims(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "StatefulSet", "default", STATEFUL("3", CLAIM KEEPS("Retain", "Delete")));
    UNTIL(&w, num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    CU_ASSERT_EQUAL(get(&w.f, "persistentvolumeclaims", "default", "data-s-2")->n_owners, 0);
    CU_ASSERT_EQUAL(
        change(&w.f, "PersistentVolumeClaim", "default", "data-s-1", BH_SIM_MAIN,
               "metadata.ownerReferences",
               "[{apiVersion: v1, kind: ConfigMap, name: mine, uid: u1, controller: true}]"),
        0);
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN, "spec.replicas", "1");
    UNTIL(&w, count_pods(&w, NULL) == 1 && !claim_there(&w, "data-s-2"));
    CU_ASSERT(claim_there(&w, "data-s-0"));
    CU_ASSERT(claim_there(&w, "data-s-1")); /* somebody else's */
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN, "spec.replicas", "3");
    UNTIL(&w, num(&w, "statefulsets", "s", "status.readyReplicas") == 3);
    CU_ASSERT(claim_there(&w, "data-s-2"));
    change(&w.f, "StatefulSet", "default", "s", BH_SIM_MAIN,
           "spec.persistentVolumeClaimRetentionPolicy",
           "{whenDeleted: Delete, whenScaled: Retain}");
    UNTIL(&w, get(&w.f, "persistentvolumeclaims", "default", "data-s-0")->n_owners == 1);
    bh_sim_delete(w.f.s, type_of("statefulsets"), "default", "s", NULL, NULL);
    UNTIL(&w, count_pods(&w, NULL) == 0 && !claim_there(&w, "data-s-0") &&
                  !claim_there(&w, "data-s-2"));
    CU_ASSERT(claim_there(&w, "data-s-1"));
    world_fini(&w);
}

/* The next pod waits until the one before has been ready long enough. */
static void test_stateful_min_ready(void)
{
    struct world w;

    world_manual(&w, (struct bh_sim_options){0});
    make(&w.f, "Node", "", NODE("n1"));
    make(&w.f, "StatefulSet", "default", STATEFUL("2", "  minReadySeconds: 30\n"));
    pass(&w, 29);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 1);
    CU_ASSERT_EQUAL(num(&w, "statefulsets", "s", "status.readyReplicas"), 1);
    CU_ASSERT_EQUAL(num(&w, "statefulsets", "s", "status.availableReplicas"), 0);
    pass(&w, 2);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2);
    CU_ASSERT_EQUAL(num(&w, "statefulsets", "s", "status.availableReplicas"), 1);
    pass(&w, 31);
    CU_ASSERT_EQUAL(num(&w, "statefulsets", "s", "status.availableReplicas"), 2);
    world_fini(&w);
}

/* ---- PodDisruptionBudget --------------------------------------------------------------------- */

static void test_budget(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "Deployment", "default", "metadata: {name: d}\nspec:\n  replicas: 4\n" TEMPLATE);
    make(&w.f, "PodDisruptionBudget", "default",
         "metadata: {name: max}\nspec: {maxUnavailable: 1, selector: {matchLabels: {app: x}}}");
    make(&w.f, "PodDisruptionBudget", "default",
         "metadata: {name: pct}\nspec: {minAvailable: 60%, selector: {matchLabels: {app: x}}}");
    make(&w.f, "PodDisruptionBudget", "default",
         "metadata: {name: none}\nspec: {minAvailable: 1, selector: {matchLabels: {app: q}}}");
    UNTIL(&w, num(&w, "poddisruptionbudgets", "max", "status.currentHealthy") == 4);
    CU_ASSERT_EQUAL(num(&w, "poddisruptionbudgets", "max", "status.disruptionsAllowed"), 1);
    UNTIL(&w, num(&w, "poddisruptionbudgets", "pct", "status.currentHealthy") == 4);
    CU_ASSERT_EQUAL(num(&w, "poddisruptionbudgets", "pct", "status.desiredHealthy"), 3);
    CU_ASSERT_EQUAL(num(&w, "poddisruptionbudgets", "pct", "status.disruptionsAllowed"), 1);
    CU_ASSERT_EQUAL(num(&w, "poddisruptionbudgets", "none", "status.disruptionsAllowed"), 0);
    /* One that is on its way out is there still, and healthy no more. */
    make(&w.f, "PodDisruptionBudget", "default",
         "metadata: {name: two}\nspec: {minAvailable: 1, selector: {matchLabels: {app: z}}}");
    for (char name[] = "z0"; name[1] < '2'; name[1]++) {
        BH_CLEANUP(bh_freep)
        char *pod =
            bh_asprintf("metadata: {name: %s, labels: {app: z}}\nspec: {containers: [{name: c, "
                        "image: i, lifecycle: {preStop: {sleep: {seconds: 20}}}}]}",
                        name);
        make(&w.f, "Pod", "default", pod);
    }
    UNTIL(&w, num(&w, "poddisruptionbudgets", "two", "status.disruptionsAllowed") == 1);
    bh_sim_delete(w.f.s, type_of("pods"), "default", "z0", NULL, NULL);
    settle(&w);
    CU_ASSERT_PTR_NOT_NULL(
        field(&w.f, get(&w.f, "pods", "default", "z0"), "metadata.deletionTimestamp"));
    CU_ASSERT_EQUAL(num(&w, "poddisruptionbudgets", "two", "status.currentHealthy"), 1);
    CU_ASSERT_EQUAL(num(&w, "poddisruptionbudgets", "two", "status.disruptionsAllowed"), 0);
    w.bind = false;
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "6");
    UNTIL(&w, num(&w, "poddisruptionbudgets", "max", "status.expectedPods") == 6);
    CU_ASSERT_EQUAL(num(&w, "poddisruptionbudgets", "max", "status.disruptionsAllowed"), 0);
    world_fini(&w);
}

/* ---- owners ---------------------------------------------------------------------------------- */

#define SELECTS "selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: "

static const char *owner_of(struct world *w, const char *plural, const char *name)
{
    const struct bh_sim_obj *o = get(&w->f, plural, "default", name);

    return o ? o->owner_kind : "gone";
}

/* What a selector matches is owned, by one; what it matches no longer is let go, and replaced. */
static void test_adoption(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "Pod", "default",
         "metadata: {name: p, labels: {app: x}}\nspec: {containers: [{name: c, image: i}]}");
    make(&w.f, "Pod", "default",
         "metadata: {name: q, labels: {app: other}}\nspec: {containers: [{name: c, image: i}]}");
    make(&w.f, "ReplicaSet", "default",
         "metadata: {name: r}\nspec: {replicas: 1, " SELECTS
         "{containers: [{name: c, image: i}]}}}");
    UNTIL(&w, bh_streq(owner_of(&w, "pods", "p"), "ReplicaSet"));
    UNTIL(&w, num(&w, "replicasets", "r", "status.replicas") == 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2); /* none was made */
    EQ(owner_of(&w, "pods", "q"), "");

    /* The set is one's whose template and selector it has. */
    make(&w.f, "Deployment", "default",
         "metadata: {name: d}\nspec: {replicas: 1, " SELECTS
         "{containers: [{name: c, image: i}]}}}");
    change(&w.f, "ReplicaSet", "default", "r", BH_SIM_MAIN, "metadata.labels", "{app: x}");
    UNTIL(&w, bh_streq(owner_of(&w, "replicasets", "r"), "Deployment"));

    change(&w.f, "Pod", "default", "p", BH_SIM_MAIN, "metadata.labels", "{app: another}");
    UNTIL(&w, bh_streq(owner_of(&w, "pods", "p"), ""));
    UNTIL(&w, count_pods(&w, NULL) == 3);
    world_fini(&w);
}

/* What somebody else writes about a replication controller or a quota does not stay. */
static void test_foreign_status(void)
{
    struct world w;

    start(&w, 1);
    make(&w.f, "ReplicationController", "default",
         "metadata: {name: r}\nspec: {replicas: 1, selector: {app: x}, template: {metadata: "
         "{labels: "
         "{app: x}}, spec: {containers: [{name: c, image: i}]}}}");
    make(&w.f, "ResourceQuota", "default", "metadata: {name: q}\nspec: {hard: {pods: 9}}");
    UNTIL(&w, num(&w, "replicationcontrollers", "r", "status.availableReplicas") == 1);
    CU_ASSERT_EQUAL(change(&w.f, "ReplicationController", "default", "r", BH_SIM_STATUS,
                           "status.availableReplicas", "0"),
                    0);
    CU_ASSERT_EQUAL(
        change(&w.f, "ResourceQuota", "default", "q", BH_SIM_STATUS, "status.hard", "{pods: '2'}"),
        0);
    CU_ASSERT(says(&w, "resourcequotas", "q", "\"pods\":\"2\""));
    UNTIL(&w, num(&w, "replicationcontrollers", "r", "status.availableReplicas") == 1 &&
                  !says(&w, "resourcequotas", "q", "\"pods\":\"2\""));
    world_fini(&w);
}

BH_TESTS("simulator/controllers/workloads", {"a job runs as many pods as it needs", test_job},
         {"an indexed job runs each index once", test_job_indexed},
         {"a suspended job waits", test_job_suspended},
         {"a job gives up after its back-off", test_job_fails},
         {"a finished job expires with its pods", test_job_expires},
         {"daemons run on every node that fits", test_daemons},
         {"daemons follow node selection", test_daemons_selected},
         {"daemons roll to a new template", test_daemons_roll},
         {"a stateful set goes in order", test_stateful},
         {"a stateful set without an end", test_stateful_without_end},
         {"a stateful roll-out respects its partition", test_stateful_roll},
         {"a budget counts what may go", test_budget}, {"owners adopt and let go", test_adoption},
         {"below the partition the old pod comes again", test_stateful_canary},
         {"a stateful set's numbers start elsewhere", test_stateful_start},
         {"claims go with their set, or with its pods", test_stateful_claims},
         {"a stateful set waits for pods to be available", test_stateful_min_ready},
         {"a status of somebody else's does not stay", test_foreign_status})
