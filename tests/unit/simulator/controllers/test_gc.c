/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_gc.c - what goes when its owner or its namespace goes
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define DEPLOYMENT "metadata: {name: d}\nspec:\n  replicas: 3\n" TEMPLATE

static void start(struct world *w)
{
    world_init(w, NULL);
    make(&w->f, "Node", "", NODE("n1"));
    make(&w->f, "Deployment", "default", DEPLOYMENT);
    UNTIL(w, num(w, "deployments", "d", "status.availableReplicas") == 3);
}

static int delete_with(struct world *w, const char *policy)
{
    struct bh_sim_delete_options o = {.grace_s = -1, .propagation = policy};

    return bh_sim_delete(w->f.s, type_of("deployments"), "default", "d", &o, &w->f.e);
}

static void test_background(void)
{
    struct world w;

    start(&w);
    CU_ASSERT_EQUAL(delete_with(&w, NULL), 0);
    CU_ASSERT_PTR_NULL(get(&w.f, "deployments", "default", "d"));
    UNTIL(&w, bh_sim_count(w.f.s, type_of("replicasets")) == 0 && count_pods(&w, NULL) == 0);
    world_fini(&w);
}

static void test_foreground(void)
{
    struct world w;
    uint64_t end;
    bool early = false;

    start(&w);
    CU_ASSERT_EQUAL(delete_with(&w, "Foreground"), 0);
    end = bh_mono_ns() + DEADLINE_NS;
    while (get(&w.f, "deployments", "default", "d") && bh_mono_ns() < end) {
        turn_world(&w);
        early = early || (!get(&w.f, "deployments", "default", "d") && count_pods(&w, NULL));
    }
    CU_ASSERT_PTR_NULL(get(&w.f, "deployments", "default", "d"));
    CU_ASSERT_FALSE(early); /* the owner goes last */
    CU_ASSERT_EQUAL(bh_sim_count(w.f.s, type_of("replicasets")), 0);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 0);
    world_fini(&w);
}

static void test_orphan(void)
{
    struct world w;
    struct bh_sim_objs l;

    start(&w);
    CU_ASSERT_EQUAL(delete_with(&w, "Orphan"), 0);
    UNTIL(&w, !get(&w.f, "deployments", "default", "d"));
    settle(&w);
    bh_sim_list(w.f.s, type_of("replicasets"), NULL, &l);
    CU_ASSERT_EQUAL_FATAL(l.n, 1);
    EQ(l.v[0]->owner_uid, "");
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 3);
    bh_sim_objs_fini(&l);
    world_fini(&w);
}

static void test_two_owners(void)
{
    struct world w;
    struct bh_sim_obj *a, *b;
    char text[500];

    world_init(&w, NULL);
    a = make(&w.f, "ConfigMap", "default", "metadata: {name: a}");
    b = make(&w.f, "ConfigMap", "default", "metadata: {name: b}");
    snprintf(
        text, sizeof(text),
        "metadata: {name: c, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: "
        "'%s'}, {apiVersion: v1, kind: ConfigMap, name: b, uid: '%s'}]}",
        a->uid, b->uid);
    make(&w.f, "ConfigMap", "default", text);
    bh_sim_delete(w.f.s, type_of("configmaps"), "default", "a", NULL, NULL);
    UNTIL(&w, !strstr(get(&w.f, "configmaps", "default", "c")->json, "\"name\":\"a\""));
    settle(&w);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "configmaps", "default", "c"));
    bh_sim_delete(w.f.s, type_of("configmaps"), "default", "b", NULL, NULL);
    UNTIL(&w, !get(&w.f, "configmaps", "default", "c"));
    world_fini(&w);
}

/* An import brings dependents without their owners: they stay. */
static void test_unknown_owner(void)
{
    struct world w;

    world_init(&w, NULL);
    make(
        &w.f, "ConfigMap", "default",
        "metadata: {name: c, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: gone, "
        "uid: '7'}]}");
    settle(&w);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "configmaps", "default", "c"));
    world_fini(&w);
}

static void test_many(void)
{
    struct world w;

    start(&w);
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "700");
    UNTIL(&w, num(&w, "deployments", "d", "status.availableReplicas") == 700);
    delete_with(&w, NULL);
    UNTIL(&w, count_pods(&w, NULL) == 0);
    world_fini(&w);
}

/* a -> c -> b -> a: who is asked to go in the foreground would wait for itself. */
static void test_circle(void)
{
    static const char *const names[] = {"a", "b", "c"};
    struct bh_sim_delete_options o = {.grace_s = -1, .propagation = "Foreground"};
    struct world w;
    char text[300];

    start(&w);
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text),
                 "metadata: {name: %s}\nspec: {containers: [{name: c, image: i}]}", names[i]);
        make(&w.f, "Pod", "default", text);
    }
    for (size_t i = 0; i < 3; i++) {
        const char *of = names[(i + 2) % 3];
        snprintf(text, sizeof(text),
                 "[{apiVersion: v1, kind: Pod, name: %s, uid: %s, controller: true, "
                 "blockOwnerDeletion: true}]",
                 of, get(&w.f, "pods", "default", of)->uid);
        CU_ASSERT_EQUAL(
            change(&w.f, "Pod", "default", names[i], BH_SIM_MAIN, "metadata.ownerReferences", text),
            0);
    }
    bh_sim_delete(w.f.s, type_of("pods"), "default", "a", &o, NULL);
    UNTIL(&w, !get(&w.f, "pods", "default", "a") && !get(&w.f, "pods", "default", "b") &&
                  !get(&w.f, "pods", "default", "c"));
    world_fini(&w);
}

/* Pods go before what they use. */
static void test_namespace_in_order(void)
{
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Node", "", NODE("n1"));
    make(&w.f, "Namespace", "", "metadata: {name: t2}");
    make(&w.f, "ConfigMap", "t2", "metadata: {name: m}");
    make(
        &w.f, "Pod", "t2",
        "metadata: {name: p, finalizers: [x.com/hold]}\nspec: {containers: [{name: c, image: i}]}");
    UNTIL(&w, bh_streq(get(&w.f, "pods", "t2", "p")->phase, "Running"));
    bh_sim_delete(w.f.s, type_of("namespaces"), "", "t2", NULL, NULL);
    UNTIL(&w,
          NULL != strstr(get(&w.f, "namespaces", "", "t2")->json,
                         "Some content in the namespace has finalizers remaining: x.com/hold in 1 "
                         "resource instances"));
    CU_ASSERT_PTR_NOT_NULL(strstr(get(&w.f, "namespaces", "", "t2")->json,
                                  "Some resources are remaining: pods. has 1 resource instances"));
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "configmaps", "t2", "m"));
    CU_ASSERT(get(&w.f, "pods", "t2", "p")->deleting);
    CU_ASSERT_EQUAL(change(&w.f, "Pod", "t2", "p", BH_SIM_MAIN, "metadata.finalizers", "[]"), 0);
    UNTIL(&w, !get(&w.f, "namespaces", "", "t2"));
    CU_ASSERT_PTR_NULL(get(&w.f, "configmaps", "t2", "m"));
    world_fini(&w);
}

static void test_namespace(void)
{
    struct world w;
    struct bh_sim_obj *o;

    world_init(&w, NULL);
    make(&w.f, "Node", "", NODE("n1"));
    make(&w.f, "Namespace", "", "metadata: {name: t1}");
    UNTIL(&w, NULL != get(&w.f, "serviceaccounts", "t1", "default"));
    make(&w.f, "Deployment", "t1", DEPLOYMENT);
    make(&w.f, "ConfigMap", "t1", "metadata: {name: c, finalizers: [a.b/c]}");
    UNTIL(&w, count_pods(&w, "Running") == 3);
    bh_sim_delete(w.f.s, type_of("namespaces"), "", "t1", NULL, NULL);
    UNTIL(&w, count_pods(&w, NULL) == 0);
    settle(&w);
    /* One thing is left, and so is the namespace. */
    o = get(&w.f, "namespaces", "", "t1");
    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    EQ(o->phase, "Terminating");
    CU_ASSERT_PTR_NULL(make(&w.f, "ConfigMap", "t1", "metadata: {name: late}"));
    CU_ASSERT_EQUAL(w.f.e.code, 403);
    CU_ASSERT_EQUAL(change(&w.f, "ConfigMap", "t1", "c", BH_SIM_MAIN, "metadata.finalizers", NULL),
                    0);
    UNTIL(&w, !get(&w.f, "namespaces", "", "t1"));
    world_fini(&w);
}

/* Stopping with work under way frees everything (the sanitizers look). */
static void test_stop_in_the_middle(void)
{
    struct world w;

    start(&w);
    change(&w.f, "Deployment", "default", "d", BH_SIM_MAIN, "spec.replicas", "500");
    make(&w.f, "PodDisruptionBudget", "default",
         "metadata: {name: p}\nspec: {minAvailable: 1, selector: {}}");
    bh_sim_drain(w.f.s);
    delete_with(&w, "Foreground");
    bh_sim_drain(w.f.s);
    turn_world(&w);
    turn_world(&w);
    world_fini(&w);
}

BH_TESTS("simulator/controllers/gc", {"background: dependents go after the owner", test_background},
         {"foreground: the owner goes last", test_foreground},
         {"orphan: dependents stay, without owner", test_orphan},
         {"a dependent stays while one owner lives", test_two_owners},
         {"an owner that never was is no reason to go", test_unknown_owner},
         {"hundreds of dependents go", test_many},
         {"a namespace goes when it is empty", test_namespace},
         {"a stop in the middle leaks nothing", test_stop_in_the_middle},
         {"a circle of owners goes", test_circle},
         {"a namespace's pods go first", test_namespace_in_order})
