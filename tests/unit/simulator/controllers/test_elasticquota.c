/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_elasticquota.c - what the running pods use of an ElasticQuota, under
 * a manual clock
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define CRD                                                                                        \
    "metadata: {name: elasticquotas.scheduling.x-k8s.io}\nspec:\n  group: scheduling.x-k8s.io\n"   \
    "  scope: Namespaced\n  names: {plural: elasticquotas, kind: ElasticQuota}\n  versions:\n"     \
    "  - {name: v1alpha1, served: true, storage: true, subresources: {status: {}}, schema: "       \
    "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"

static void start(struct world *w)
{
    world_manual(w, (struct bh_sim_options){0});
    make(&w->f, "Node", "", NODE("n1"));
    make(&w->f, "Namespace", "", "metadata: {name: other}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(make(&w->f, "CustomResourceDefinition", "", CRD));
    pass(w, 0);
}

static const struct bh_sim_type *quotas(struct world *w)
{
    return bh_sim_find_type(w->f.s, "scheduling.x-k8s.io", "v1alpha1", "elasticquotas");
}

static void quota(struct world *w, const char *name, const char *spec)
{
    const char *text = bh_arena_printf(&w->f.a,
                                       "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: "
                                       "ElasticQuota, metadata: {name: %s}, spec: %s}",
                                       name, spec);
    CU_ASSERT_EQUAL(
        bh_sim_create(w->f.s, quotas(w), "default", &w->f.a, yaml(&w->f, text), NULL, &w->f.e), 0);
}

static void pod(struct world *w, const char *ns, const char *name, const char *init,
                const char *requests)
{
    CU_ASSERT_PTR_NOT_NULL(
        make(&w->f, "Pod", ns,
             bh_arena_printf(&w->f.a,
                             "metadata: {name: %s, annotations: {sim.berth.dev/run-time: 30s}}\n"
                             "spec: {restartPolicy: Never, initContainers: [%s], containers: "
                             "[{name: c, image: i, resources: {requests: {%s}, limits: {%s}}}]}",
                             name, init, requests, requests)));
}

static const char *used(struct world *w)
{
    struct bh_sim_obj *o = bh_sim_get(w->f.s, quotas(w), "default", "q");
    const struct bh_json *u = bh_tree_obj(bh_sim_obj_tree(&w->f.a, o), "status.used");
    const char *text = "";

    bh_json_each(r, u) {
        text = bh_arena_printf(&w->f.a, "%s%s=%s ", text, r->key.p, r->s.p);
    }
    return text;
}

static unsigned synced(struct world *w)
{
    struct bh_sim_objs l = {0};
    unsigned n = 0;

    bh_sim_list(w->f.s, type_of("events"), "default", &l);
    for (size_t i = 0; i < l.n; i++)
        n += strstr(l.v[i]->json, "Elastic Quota default/q synced successfully") != NULL;
    bh_sim_objs_fini(&l);
    return n;
}

static void test_running_pods_count(void)
{
    struct world w;

    start(&w);
    quota(&w, "q", "{min: {cpu: 2}, max: {cpu: 4, memory: 4Gi}}");
    pass(&w, 1);
    EQ(used(&w), "cpu=0 memory=0 ");
    CU_ASSERT_EQUAL(synced(&w), 1);
    w.bind = false;
    pod(&w, "default", "a", "", "cpu: 500m, memory: 1Gi");
    pass(&w, 1);
    EQ(used(&w), "cpu=0 memory=0 "); /* it waits for a node */
    w.bind = true;
    pass(&w, 1);
    EQ(used(&w), "cpu=500m memory=1Gi ");
    pod(&w, "other", "b", "", "cpu: 1");
    pod(&w, "default", "c", "", "cpu: 1500m, vendor.dev/disk: 2");
    pass(&w, 1);
    EQ(used(&w), "cpu=2 memory=1Gi vendor.dev/disk=2 ");
    pass(&w, 40);
    EQ(used(&w), "cpu=0 memory=0 "); /* they have ended */
    world_fini(&w);
}

static void test_the_largest_init_container_counts(void)
{
    struct world w;

    start(&w);
    quota(&w, "q", "{max: {cpu: 4}}");
    pod(&w, "default", "a",
        "{name: i, image: i, command: [\"true\"], resources: {requests: {cpu: 3}}}, "
        "{name: j, image: i, command: [\"true\"], resources: {requests: {cpu: 2}}}",
        "cpu: 1");
    pass(&w, 5);
    EQ(used(&w), "cpu=3 ");
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("pods"), "default", "a",
                                  &(struct bh_sim_delete_options){.grace_s = 0}, NULL),
                    0);
    pass(&w, 1);
    EQ(used(&w), "cpu=0 ");
    world_fini(&w);
}

static void test_of_several_the_first_is_kept(void)
{
    struct world w;

    start(&w);
    quota(&w, "a", "{max: {cpu: 1}}");
    quota(&w, "q", "{max: {cpu: 4}}");
    pass(&w, 1);
    EQ(used(&w), "");
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, quotas(&w), "default", "a", NULL, NULL), 0);
    pass(&w, 1);
    EQ(used(&w), "cpu=0 "); /* it is the first now */
    world_fini(&w);
}

BH_TESTS("simulator/controllers/elasticquota", {"running pods count", test_running_pods_count},
         {"the largest init container counts", test_the_largest_init_container_counts},
         {"of several the first is kept", test_of_several_the_first_is_kept})
