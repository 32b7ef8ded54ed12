/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_deployment.c - deployments, replica sets and their
 * roll-outs
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define DEPLOYMENT(n, extra) "metadata: {name: d}\nspec:\n  replicas: " n "\n" TEMPLATE extra

static void start(struct world *w, const char *deployment)
{
    world_init(w, NULL);
    make(&w->f, "Node", "", NODE("n1"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(make(&w->f, "Deployment", "default", deployment));
}

static int64_t dep(struct world *w, const char *path)
{
    return num(w, "deployments", "d", path);
}

/* As `kubectl rollout status` decides it. */
static bool rolled_out(struct world *w, int64_t n)
{
    return dep(w, "status.observedGeneration") == dep(w, "metadata.generation") &&
           dep(w, "status.updatedReplicas") == n && dep(w, "status.replicas") == n &&
           dep(w, "status.availableReplicas") == n;
}

static bool condition_is(struct world *w, const char *type, const char *status, const char *reason)
{
    struct bh_arena a;
    const struct bh_json *c;
    bool yes;

    bh_arena_init(&a, 0);
    c = bh_tree_condition(bh_sim_obj_tree(&a, get(&w->f, "deployments", "default", "d")), type);
    yes = bh_tree_is(c, "status", status) && bh_tree_is(c, "reason", reason);
    bh_arena_fini(&a);
    return yes;
}

static size_t sets(struct world *w)
{
    return bh_sim_count(w->f.s, type_of("replicasets"));
}

/* Revisions of all replica sets with replicas (or of all), sorted, as text: "1,3". */
static const char *revisions(struct world *w, bool active)
{
    struct bh_sim_objs l = {0};
    struct bh_buf b = {0};
    const char *s;

    bh_sim_list(w->f.s, type_of("replicasets"), NULL, &l);
    for (int rev = 1; rev < 30; rev++) {
        for (size_t i = 0; i < l.n; i++) {
            const struct bh_json *t = bh_sim_obj_tree(&w->f.a, l.v[i]);
            const char *r = bh_tree_annotation(t, "deployment.kubernetes.io/revision");
            if (r && strtol(r, NULL, 10) == rev &&
                (!active || bh_tree_i64(t, "spec.replicas", 0) > 0))
                bh_buf_addf(&b, "%s%d", b.n ? "," : "", rev);
        }
    }
    s = bh_arena_strdup(&w->f.a, bh_buf_str(&b));
    bh_buf_fini(&b);
    bh_sim_objs_fini(&l);
    return s;
}

static int set_image(struct world *w, const char *image)
{
    char list[100];

    snprintf(list, sizeof(list), "[{name: c, image: '%s'}]", image);
    return change(&w->f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.template.spec.containers",
                  list);
}

static void test_comes_up(void)
{
    struct world w;
    struct bh_sim_objs l;
    struct bh_sim_obj *set, *pod;

    start(&w, DEPLOYMENT("3", ""));
    w.bind = false;
    UNTIL(&w, dep(&w, "status.replicas") == 3);
    CU_ASSERT(condition_is(&w, "Available", "False", "MinimumReplicasUnavailable"));
    CU_ASSERT_EQUAL(dep(&w, "status.unavailableReplicas"), 3);
    w.bind = true;
    UNTIL(&w, rolled_out(&w, 3));
    UNTIL(&w, condition_is(&w, "Progressing", "True", "NewReplicaSetAvailable"));
    CU_ASSERT(condition_is(&w, "Available", "True", "MinimumReplicasAvailable"));
    EQ(bh_tree_annotation(bh_sim_obj_tree(&w.f.a, get(&w.f, "deployments", "default", "d")),
                          "deployment.kubernetes.io/revision"),
       "1");
    bh_sim_list(w.f.s, type_of("replicasets"), NULL, &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 1);
    set = l.v[0];
    EQ(set->owner_kind, "Deployment");
    CU_ASSERT_PTR_NOT_NULL_FATAL(bh_sim_obj_label(set, "pod-template-hash"));
    CU_ASSERT_EQUAL(num(&w, "replicasets", set->name, "status.readyReplicas"), 3);
    bh_sim_objs_fini(&l);
    bh_sim_list(w.f.s, type_of("pods"), NULL, &l);
    pod = l.v[0];
    EQ(pod->owner_kind, "ReplicaSet");
    CU_ASSERT_PTR_NOT_NULL(bh_sim_obj_label(pod, "pod-template-hash"));
    bh_sim_objs_fini(&l);
    world_fini(&w);
}

static void test_quiet(void)
{
    struct world w;
    uint64_t rv;

    start(&w, DEPLOYMENT("3", ""));
    UNTIL(&w,
          rolled_out(&w, 3) && condition_is(&w, "Progressing", "True", "NewReplicaSetAvailable"));
    settle(&w);
    rv = bh_sim_revision(w.f.s);
    settle(&w);
    CU_ASSERT_EQUAL(bh_sim_revision(w.f.s), rv); /* what is done stays done */
    world_fini(&w);
}

static void test_scale(void)
{
    struct world w;

    start(&w, DEPLOYMENT("2", ""));
    UNTIL(&w, rolled_out(&w, 2));
    CU_ASSERT_EQUAL(change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "5"),
                    0);
    UNTIL(&w, rolled_out(&w, 5));
    CU_ASSERT_EQUAL(change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "0"),
                    0);
    UNTIL(&w, rolled_out(&w, 0) && count_pods(&w, NULL) == 0);
    CU_ASSERT_EQUAL(sets(&w), 1);
    world_fini(&w);
}

static void test_replaces_lost_pod(void)
{
    struct world w;
    struct bh_sim_objs l;

    start(&w, DEPLOYMENT("2", ""));
    UNTIL(&w, rolled_out(&w, 2));
    bh_sim_list(w.f.s, type_of("pods"), NULL, &l);
    bh_sim_delete(w.f.s, type_of("pods"), "default", l.v[0]->name, NULL, NULL);
    UNTIL(&w, !get(&w.f, "pods", "default", l.v[0]->name) && count_pods(&w, "Running") == 2 &&
                  rolled_out(&w, 2));
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 2);
    bh_sim_objs_fini(&l);
    world_fini(&w);
}

static void test_roll_out(void)
{
    struct world w;
    int64_t least = 4, most = 4;
    uint64_t end;

    start(&w, DEPLOYMENT("4", "  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}\n"));
    UNTIL(&w, rolled_out(&w, 4));
    CU_ASSERT_EQUAL(set_image(&w, "i2"), 0);
    end = bh_mono_ns() + DEADLINE_NS;
    while (!rolled_out(&w, 4) && bh_mono_ns() < end) {
        struct bh_sim_objs l = {0};
        int64_t ready = 0, all = 0;
        turn_world(&w);
        bh_sim_list(w.f.s, type_of("pods"), NULL, &l);
        for (size_t i = 0; i < l.n; i++) {
            all += bh_ctl_pod_active(l.v[i]);
            ready += bh_ctl_pod_active(l.v[i]) && bh_ctl_pod_ready(l.v[i]);
        }
        bh_sim_objs_fini(&l);
        least = BH_MIN(least, ready);
        most = BH_MAX(most, all);
    }
    CU_ASSERT(rolled_out(&w, 4));
    CU_ASSERT(least >= 3);
    CU_ASSERT(most <= 5);
    CU_ASSERT_EQUAL(sets(&w), 2);
    EQ(revisions(&w, true), "2");
    world_fini(&w);
}

/* A template whose pods never run must not take the old ones away. */
static void test_stuck_roll_out(void)
{
    struct world w;

    start(&w, DEPLOYMENT("4", "  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}\n"));
    UNTIL(&w, rolled_out(&w, 4));
    w.bind = false;
    set_image(&w, "i2");
    UNTIL(&w, dep(&w, "status.updatedReplicas") == 2);
    settle(&w);
    CU_ASSERT_EQUAL(dep(&w, "status.availableReplicas"), 3);
    CU_ASSERT_EQUAL(dep(&w, "status.replicas"), 5);
    CU_ASSERT(condition_is(&w, "Available", "True", "MinimumReplicasAvailable"));
    world_fini(&w);
}

static void test_deadline(void)
{
    struct world w;

    start(&w, DEPLOYMENT("2", "  progressDeadlineSeconds: 1\n"));
    w.bind = false;
    UNTIL(&w, condition_is(&w, "Progressing", "False", "ProgressDeadlineExceeded"));
    w.bind = true;
    UNTIL(&w, condition_is(&w, "Progressing", "True", "NewReplicaSetAvailable"));
    /* Once rolled out, a pod that is lost starts no clock. */
    w.bind = false;
    CU_ASSERT_EQUAL(change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "3"),
                    0);
    UNTIL(&w, dep(&w, "status.replicas") == 3);
    CU_ASSERT(condition_is(&w, "Progressing", "True", "NewReplicaSetAvailable"));
    world_fini(&w);
}

static void test_undo(void)
{
    struct world w;

    start(&w, DEPLOYMENT("2", ""));
    UNTIL(&w, rolled_out(&w, 2));
    set_image(&w, "i2");
    UNTIL(&w, rolled_out(&w, 2));
    EQ(revisions(&w, false), "1,2");
    set_image(&w, "i");
    UNTIL(&w, rolled_out(&w, 2) && bh_streq(revisions(&w, false), "2,3"));
    EQ(revisions(&w, true), "3");
    EQ(bh_tree_annotation(bh_sim_obj_tree(&w.f.a, get(&w.f, "deployments", "default", "d")),
                          "deployment.kubernetes.io/revision"),
       "3");
    world_fini(&w);
}

static void test_history_limit(void)
{
    struct world w;
    char image[16];

    start(&w, DEPLOYMENT("1", "  revisionHistoryLimit: 2\n"));
    UNTIL(&w, rolled_out(&w, 1));
    for (int i = 2; i < 7; i++) {
        snprintf(image, sizeof(image), "v%d", i);
        set_image(&w, image);
        UNTIL(&w, rolled_out(&w, 1));
    }
    UNTIL(&w, sets(&w) == 3);
    settle(&w);
    EQ(revisions(&w, false), "4,5,6");
    world_fini(&w);
}

static void test_recreate(void)
{
    struct world w;
    bool mixed = false;
    uint64_t end;

    start(&w, DEPLOYMENT("3", "  strategy: {type: Recreate}\n"));
    UNTIL(&w, rolled_out(&w, 3));
    set_image(&w, "i2");
    end = bh_mono_ns() + DEADLINE_NS;
    while (!rolled_out(&w, 3) && bh_mono_ns() < end) {
        struct bh_sim_objs l = {0};
        turn_world(&w);
        bh_sim_list(w.f.s, type_of("pods"), NULL, &l);
        for (size_t i = 1; i < l.n; i++)
            mixed = mixed || !bh_streq(l.v[i]->owner_uid, l.v[0]->owner_uid);
        bh_sim_objs_fini(&l);
    }
    CU_ASSERT(rolled_out(&w, 3));
    CU_ASSERT_FALSE(mixed); /* never both at once */
    world_fini(&w);
}

static void test_paused(void)
{
    struct world w;

    start(&w, DEPLOYMENT("2", ""));
    UNTIL(&w, rolled_out(&w, 2));
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.paused", "true");
    set_image(&w, "i2");
    UNTIL(&w, condition_is(&w, "Progressing", "Unknown", "DeploymentPaused"));
    CU_ASSERT_EQUAL(sets(&w), 1);
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "3");
    UNTIL(&w, dep(&w, "status.availableReplicas") == 3);
    CU_ASSERT_EQUAL(sets(&w), 1);
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.paused", NULL);
    UNTIL(&w, rolled_out(&w, 3));
    CU_ASSERT_EQUAL(sets(&w), 2);
    world_fini(&w);
}

static void test_min_ready(void)
{
    struct world w;

    start(&w, DEPLOYMENT("1", "  minReadySeconds: 1\n"));
    UNTIL(&w, dep(&w, "status.readyReplicas") == 1);
    CU_ASSERT_EQUAL(dep(&w, "status.availableReplicas"), 0);
    UNTIL(&w, rolled_out(&w, 1));
    world_fini(&w);
}

/* A refused pod is said so on the set and the deployment, and is tried again. */
static void test_refused_pods(void)
{
    struct world w;
    struct bh_sim_objs l;

    start(&w, "metadata: {name: d}\nspec:\n  selector: {matchLabels: {app: x}}\n  template: "
              "{metadata: {labels: {app: x}}, spec: {priorityClassName: later, containers: [{name: "
              "c, image: i}]}}\n");
    UNTIL(&w, sets(&w) == 1);
    bh_sim_list(w.f.s, type_of("replicasets"), NULL, &l);
    UNTIL(&w, NULL != strstr(get(&w.f, "replicasets", "default", l.v[0]->name)->json,
                             "no PriorityClass with name later was found"));
    UNTIL(&w, condition_is(&w, "ReplicaFailure", "True", "FailedCreate"));
    make(&w.f, "PriorityClass", "", "{metadata: {name: later}, value: 1}");
    UNTIL(&w, rolled_out(&w, 1));
    CU_ASSERT_PTR_NULL(
        strstr(get(&w.f, "replicasets", "default", l.v[0]->name)->json, "ReplicaFailure"));
    UNTIL(&w, !strstr(get(&w.f, "deployments", "default", "d")->json, "ReplicaFailure"));
    bh_sim_objs_fini(&l);
    world_fini(&w);
}

/* Those that cost least go first: unassigned, not ready, cheap by annotation, crowded, new. */
static void test_rank(void)
{
    struct fixture f;
    struct bh_sim_objs l;
    const struct bh_sim_options o = {.no_controllers = true, .first_revision = 100};

    fixture_init(&f, &o, false);
    create_pod(&f, "e-unassigned");
    make(&f, "Pod", "default",
         "metadata: {name: d-pending}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}");
    make(&f, "Pod", "default",
         "metadata: {name: c-cheap, annotations: {controller.kubernetes.io/pod-deletion-cost: "
         "\"-5\"}}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}");
    make(&f, "Pod", "default",
         "metadata: {name: b-crowded}\nspec: {nodeName: n1, containers: [{name: c, image: i}]}");
    make(&f, "Pod", "default",
         "metadata: {name: a-alone}\nspec: {nodeName: n2, containers: [{name: c, image: i}]}");
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"a-alone", "b-crowded", "c-cheap"};
        CU_ASSERT_EQUAL(change(&f, "Pod", "default", names[i], BH_SIM_STATUS, "status",
                               "{phase: Running, conditions: [{status: \"True\", type: Ready}]}"),
                        0);
    }
    bh_sim_list(f.s, type_of("pods"), NULL, &l);
    bh_ctl_pods_rank(&l);
    CU_ASSERT_EQUAL_FATAL(l.n, 5);
    EQ(l.v[0]->name, "e-unassigned");
    EQ(l.v[1]->name, "d-pending");
    EQ(l.v[2]->name, "c-cheap");
    EQ(l.v[3]->name, "b-crowded");
    EQ(l.v[4]->name, "a-alone");
    bh_sim_objs_fini(&l);
    fixture_fini(&f);
}

static int64_t replicas_of(struct world *w, const char *image)
{
    struct bh_sim_objs l;
    int64_t n = -1;

    bh_sim_list(w->f.s, type_of("replicasets"), "default", &l);
    for (size_t i = 0; i < l.n; i++)
        if (strstr(l.v[i]->json, image))
            n = bh_tree_i64(bh_sim_obj_tree(&w->f.a, l.v[i]), "spec.replicas", -1);
    bh_sim_objs_fini(&l);
    return n;
}

/* While a roll-out is stuck all sets grow and shrink by their parts. */
static void test_proportional_scaling(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Node", "", NODE("n1"));
    make(&w.f, "Deployment", "default",
         "metadata: {name: d}\nspec:\n  replicas: 10\n  strategy: {type: RollingUpdate, "
         "rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}\n" TEMPLATE);
    UNTIL(&w, num(&w, "deployments", "d", "status.availableReplicas") == 10);
    w.bind = false; /* new pods stay pending */
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.template.spec.containers",
           "[{name: c, image: other}]");
    UNTIL(&w, replicas_of(&w, "\"image\":\"other\"") == 5 &&
                  num(&w, "deployments", "d", "status.availableReplicas") == 8);
    settle(&w);
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "30");
    UNTIL(&w, replicas_of(&w, "\"image\":\"i\"") == 20);
    settle(&w);
    CU_ASSERT_EQUAL(replicas_of(&w, "\"image\":\"other\""), 13);
    CU_ASSERT_EQUAL(replicas_of(&w, "\"image\":\"i\""), 20);
    w.bind = true;
    UNTIL(&w, num(&w, "deployments", "d", "status.updatedReplicas") == 30 &&
                  num(&w, "deployments", "d", "status.replicas") == 30 &&
                  num(&w, "deployments", "d", "status.availableReplicas") == 30);
    world_fini(&w);
}

/* A part of more than there can be is all of it, and no number that went round. */
static void test_parts(void)
{
    static const struct {
        const char *of;
        int64_t total, up, down;
    } cases[] = {{"25%", 10, 3, 2},
                 {"0%", 10, 0, 0},
                 {"200%", 10, 20, 20},
                 {"9223372036854775807%", 2, INT32_MAX, INT32_MAX}};
    struct bh_arena a;

    bh_arena_init(&a, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const struct bh_json *v = bh_json_new_cstr(&a, cases[i].of);
        CU_ASSERT_EQUAL(bh_tree_scaled(v, cases[i].total, true), cases[i].up);
        CU_ASSERT_EQUAL(bh_tree_scaled(v, cases[i].total, false), cases[i].down);
    }
    bh_arena_fini(&a);
}

BH_TESTS("simulator/controllers/deployment", {"parts of a number", test_parts},
         {"a deployment makes a set, pods, and becomes available", test_comes_up},
         {"a finished deployment writes nothing", test_quiet},
         {"scaling follows, up and down to none", test_scale},
         {"a lost pod is replaced", test_replaces_lost_pod},
         {"a roll-out stays within surge and unavailability", test_roll_out},
         {"a stuck roll-out keeps the old pods", test_stuck_roll_out},
         {"no progress for too long is said so", test_deadline},
         {"an undo puts the old set on top", test_undo},
         {"history beyond the limit is forgotten", test_history_limit},
         {"recreate never mixes pods", test_recreate}, {"a pause holds the template", test_paused},
         {"availability waits for minReadySeconds", test_min_ready},
         {"refused pods are reported and tried again", test_refused_pods},
         {"pods to delete are ranked", test_rank},
         {"a stuck roll-out scales in proportion", test_proportional_scaling})
