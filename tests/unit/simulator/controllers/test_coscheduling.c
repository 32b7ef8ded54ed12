/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_coscheduling.c - phases of PodGroups of scheduling.x-k8s.io,
 * under a manual clock
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define CRD                                                                                        \
    "metadata: {name: podgroups.scheduling.x-k8s.io}\nspec:\n  group: scheduling.x-k8s.io\n"       \
    "  scope: Namespaced\n  names: {plural: podgroups, kind: PodGroup}\n  versions:\n"             \
    "  - {name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: "       \
    "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
#define ENDS(how) "sim.berth.dev/run-time: 30s, sim.berth.dev/exit-code: \"" how "\""

static void start(struct world *w)
{
    world_manual(w, (struct bh_sim_options){0});
    make(&w->f, "Node", "", NODE("n1"));
    make(&w->f, "Namespace", "", "metadata: {name: other}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(make(&w->f, "CustomResourceDefinition", "", CRD));
    w->bind = false;
    pass(w, 0);
}

static const struct bh_sim_type *groups(struct world *w)
{
    return bh_sim_find_type(w->f.s, "scheduling.x-k8s.io", "v1alpha1", "podgroups");
}

static void group_with(struct world *w, const char *spec, const char *status)
{
    const char *text = bh_arena_printf(&w->f.a,
                                       "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, "
                                       "metadata: {name: g}, spec: %s, status: %s}",
                                       spec, status);
    CU_ASSERT_EQUAL(
        bh_sim_create(w->f.s, groups(w), "default", &w->f.a, yaml(&w->f, text), NULL, &w->f.e), 0);
}

static void pod(struct world *w, const char *ns, const char *name, const char *annotations,
                const char *owners)
{
    CU_ASSERT_PTR_NOT_NULL(
        make(&w->f, "Pod", ns,
             bh_arena_printf(&w->f.a,
                             "metadata: {name: %s, labels: {scheduling.x-k8s.io/pod-group: g}, "
                             "annotations: {%s}, ownerReferences: [%s]}\n"
                             "spec: {restartPolicy: Never, containers: [{name: c, image: i}]}",
                             name, annotations, owners)));
}

/* "Phase running succeeded failed occupiedBy" */
static const char *status(struct world *w)
{
    struct bh_sim_obj *o = bh_sim_get(w->f.s, groups(w), "default", "g");
    const struct bh_json *t = bh_sim_obj_tree(&w->f.a, o);
    const char *by = bh_tree_str(t, "status.occupiedBy"), *phase = bh_tree_str(t, "status.phase");

    return bh_arena_printf(&w->f.a, "%s %d %d %d %s", phase ? phase : "-",
                           (int)bh_tree_i64(t, "status.running", 0),
                           (int)bh_tree_i64(t, "status.succeeded", 0),
                           (int)bh_tree_i64(t, "status.failed", 0), by ? by : "-");
}

static void test_a_group_begins_runs_and_ends(void)
{
    struct world w;

    start(&w);
    group_with(&w, "{minMember: 2}", "{}");
    pass(&w, 1);
    EQ(status(&w), "Pending 0 0 0 -");
    pod(&w, "default", "a", ENDS("0"), "");
    pod(&w, "other", "b", ENDS("0"), ""); /* another namespace's group */
    pass(&w, 1);
    EQ(status(&w), "Pending 0 0 0 -");
    pod(&w, "default", "b", ENDS("0"), "");
    pass(&w, 1);
    EQ(status(&w), "Scheduling 0 0 0 -");
    w.bind = true;
    pass(&w, 1);
    EQ(status(&w), "Running 2 0 0 -");
    pass(&w, 40);
    EQ(status(&w), "Finished 0 2 0 -");
    pod(&w, "default", "late", ENDS("1"), ""); /* what is finished stays so */
    pass(&w, 40);
    EQ(status(&w), "Finished 0 2 0 -");
    world_fini(&w);
}

static void test_a_group_fails(void)
{
    struct world w;

    start(&w);
    w.bind = true;
    group_with(&w, "{minMember: 2}", "{}");
    pod(&w, "default", "a", ENDS("0"), "");
    pod(&w, "default", "b", ENDS("1"), "");
    pass(&w, 1);
    EQ(status(&w), "Running 2 0 0 -");
    pass(&w, 40);
    EQ(status(&w), "Failed 0 1 1 -");
    world_fini(&w);
}

static void test_a_group_loses_a_pod(void)
{
    struct world w;

    start(&w);
    group_with(&w, "{minMember: 2}", "{}");
    pod(&w, "default", "a", "", "");
    pod(&w, "default", "b", "", "");
    pass(&w, 1);
    EQ(status(&w), "Scheduling 0 0 0 -");
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("pods"), "default", "b",
                                  &(struct bh_sim_delete_options){.grace_s = 0}, NULL),
                    0);
    pass(&w, 1);
    EQ(status(&w), "Pending 0 0 0 -");
    world_fini(&w);
}

static void test_who_occupies_a_group(void)
{
    struct world w;

    start(&w);
    group_with(&w, "{minMember: 1}", "{}");
    pod(&w, "default", "a", "",
        "{apiVersion: v1, kind: X, name: zoo, uid: u1}, {apiVersion: v1, kind: X, name: ape, uid: "
        "u2}");
    pass(&w, 1);
    EQ(status(&w), "Scheduling 0 0 0 default/ape,default/zoo");
    world_fini(&w);
}

static void test_a_group_that_began_too_late(void)
{
    struct world w;
    struct bh_sim_objs l = {0};

    start(&w);
    group_with(&w, "{minMember: 1}",
               "{phase: Pending, scheduleStartTime: \"2999-01-01T00:00:00Z\"}");
    pod(&w, "default", "a", "", "");
    /* The status of a new object is dropped, so it is written behind it. */
    struct bh_json *t = bh_sim_obj_tree(&w.f.a, bh_sim_get(w.f.s, groups(&w), "default", "g"));
    bh_json_set(&w.f.a, t, "status",
                yaml(&w.f, "{phase: Pending, scheduleStartTime: \"2200-01-01T00:00:00Z\"}"));
    CU_ASSERT_EQUAL(
        bh_sim_update(w.f.s, groups(&w), "default", "g", BH_SIM_STATUS, &w.f.a, t, NULL, &w.f.e),
        0);
    pass(&w, 1);
    EQ(status(&w), "Pending 0 0 0 -");
    bh_sim_list(w.f.s, type_of("events"), "default", &l);
    bool told = false;
    for (size_t i = 0; i < l.n; i++)
        told |= strstr(l.v[i]->json, "schedule time longer than 48 hours") != NULL;
    CU_ASSERT(told);
    bh_sim_objs_fini(&l);
    world_fini(&w);
}

BH_TESTS("simulator/controllers/coscheduling",
         {"a group begins, runs and ends", test_a_group_begins_runs_and_ends},
         {"a group fails", test_a_group_fails},
         {"a group loses a pod before it runs", test_a_group_loses_a_pod},
         {"who occupies a group", test_who_occupies_a_group},
         {"a group that began too late is left", test_a_group_that_began_too_late})
