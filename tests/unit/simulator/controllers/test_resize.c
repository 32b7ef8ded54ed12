/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_resize.c - pods grow in place, quotas shrink with them
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define SIZED(name, cpu)                                                                           \
    "metadata: {name: " name "}\nspec: {containers: [{name: c, image: i, resources: {requests: "   \
    "{cpu: " cpu "}}}]}"

/* PATCHes the cpu request of default/p by way of pods/resize. */
static int resize(struct world *w, const char *cpu)
{
    struct fixture *f = &w->f;
    struct bh_json *tree = bh_sim_obj_tree(&f->a, get(f, "pods", "default", "p"));
    struct bh_json *c = bh_json_at(bh_json_path(tree, "spec.containers"), 0);

    bh_json_set_str(&f->a, bh_json_path(c, "resources.requests"), "cpu", cpu);
    f->e = (struct bh_sim_error){0};
    return bh_sim_update(f->s, type_of("pods"), "default", "p", BH_SIM_RESIZE, &f->a, tree, NULL,
                         &f->e);
}

static bool says(struct world *w, const char *text)
{
    return strstr(get(&w->f, "pods", "default", "p")->json, text) != NULL;
}

static bool runs(struct world *w, const char *name)
{
    return bh_streq(get(&w->f, "pods", "default", name)->phase, "Running");
}

static void test_resize(void)
{
    struct bh_sim_delete_options now = {.grace_s = 0};
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Node", "", "metadata: {name: n1}\nstatus: {capacity: {cpu: 4}}");
    make(&w.f, "Pod", "default", SIZED("p", "1"));
    make(&w.f, "Pod", "default", SIZED("q", "2"));
    UNTIL(&w, runs(&w, "p") && runs(&w, "q"));
    CU_ASSERT_EQUAL(resize(&w, "1500m"), 0);
    UNTIL(&w, says(&w, "\"allocatedResources\":{\"cpu\":\"1500m\"}"));
    CU_ASSERT(says(&w, "\"resources\":{\"requests\":{\"cpu\":\"1500m\"}}"));
    CU_ASSERT_FALSE(says(&w, "PodResizePending"));
    /* Not next to the other pod: what it has stays in its status. */
    CU_ASSERT_EQUAL(resize(&w, "3"), 0);
    UNTIL(&w, says(&w, "\"reason\":\"Deferred\""));
    CU_ASSERT(says(&w, "\"allocatedResources\":{\"cpu\":\"1500m\"}"));
    CU_ASSERT_EQUAL(resize(&w, "5"), 0);
    UNTIL(&w, says(&w, "\"reason\":\"Infeasible\""));
    bh_sim_delete(w.f.s, type_of("pods"), "default", "q", &now, NULL);
    CU_ASSERT_EQUAL(resize(&w, "4"), 0);
    UNTIL(&w, says(&w, "\"allocatedResources\":{\"cpu\":\"4\"}"));
    CU_ASSERT_FALSE(says(&w, "PodResizePending"));
    world_fini(&w);
}

static const char *used(struct world *w)
{
    return field(&w->f, get(&w->f, "resourcequotas", "default", "q"), "status.used");
}

static void test_quota(void)
{
    struct bh_sim_delete_options now = {.grace_s = 0};
    struct world w;

    world_init(&w, NULL);
    make(&w.f, "Node", "", "metadata: {name: n1}\nstatus: {capacity: {cpu: 4}}");
    make(&w.f, "ResourceQuota", "default", "metadata: {name: q}\nspec: {hard: {cpu: 4, pods: 9}}");
    make(&w.f, "Pod", "default", SIZED("p", "1"));
    make(&w.f, "Pod", "default", SIZED("r", "2"));
    EQ(used(&w), "{\"cpu\":\"3\",\"pods\":\"2\"}");
    UNTIL(&w, runs(&w, "p") && runs(&w, "r"));
    CU_ASSERT_EQUAL(resize(&w, "500m"), 0);
    UNTIL(&w, bh_streq(used(&w), "{\"cpu\":\"2500m\",\"pods\":\"2\"}"));
    bh_sim_delete(w.f.s, type_of("pods"), "default", "r", &now, NULL);
    UNTIL(&w, bh_streq(used(&w), "{\"cpu\":\"500m\",\"pods\":\"1\"}"));
    world_fini(&w);
}

BH_TESTS("simulator/controllers/resize", {"a pod grows where there is room", test_resize},
         {"a quota counts what is gone or has shrunk", test_quota})
