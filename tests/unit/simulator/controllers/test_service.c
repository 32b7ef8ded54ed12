/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_service.c - endpoint slices and endpoints of services
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define BACKEND(name, rest)                                                                        \
    "metadata: {name: " name                                                                       \
    ", labels: {app: x}}\nspec: {terminationGracePeriodSeconds: 60, containers: [{name: c, "       \
    "image: i, lifecycle: {preStop: {sleep: {seconds: 50}}}, ports: [{name: http, containerPort: " \
    "8080}]}]" rest "}"
#define SERVICE(rest) "metadata: {name: s, labels: {a: b}}\nspec: {selector: {app: x}" rest "}"

static void start(struct world *w, const char *service)
{
    world_init(w, NULL);
    make(&w->f, "Node", "", NODE("n1"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(make(&w->f, "Service", "default", service));
}

static size_t slices(struct world *w)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_listed(w->f.s, type_of("endpointslices"), "default");

    return l.n;
}

/* The text of the slice that comes first by name; "" without one. */
static const char *slice(struct world *w)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_listed(w->f.s, type_of("endpointslices"), "default");

    return l.n ? bh_arena_strdup(&w->f.a, l.v[0]->json) : "";
}

static const char *object(struct world *w)
{
    const struct bh_sim_obj *o = get(&w->f, "endpoints", "default", "s");

    return o ? bh_arena_strdup(&w->f.a, o->json) : "";
}

/* All endpoints of all slices; *most: of the fullest. */
static size_t endpoints(struct world *w, size_t *most)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_listed(w->f.s, type_of("endpointslices"), "default");
    size_t sum = 0;

    *most = 0;
    for (size_t i = 0; i < l.n; i++) {
        size_t n = bh_tree_len(bh_tree_arr(bh_sim_obj_tree(&w->f.a, l.v[i]), "endpoints"));
        sum += n;
        *most = BH_MAX(*most, n);
    }
    return sum;
}

static void test_life(void)
{
    struct world w;

    start(&w, SERVICE(", ports: [{port: 80, targetPort: http}]"));
    UNTIL(&w, slices(&w) == 1 && strstr(slice(&w), "\"endpoints\":[]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(slice(&w), "\"kubernetes.io/service-name\":\"s\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(slice(&w), "\"kind\":\"Service\",\"name\":\"s\""));
    make(&w.f, "Pod", "default", BACKEND("p", ""));
    UNTIL(&w, strstr(slice(&w), "{\"ready\":true,\"serving\":true,\"terminating\":false}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(slice(&w), "\"nodeName\":\"n1\""));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(slice(&w), "[{\"name\":\"\",\"protocol\":\"TCP\",\"port\":8080}]"));
    UNTIL(&w, strstr(object(&w), "\"addresses\":[{\"ip\":\"10.128.0.1\",\"nodeName\":\"n1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(object(&w), "\"a\":\"b\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(object(&w), "\"ports\":[{\"protocol\":\"TCP\",\"port\":8080}]"));

    /* It is being deleted: still there in the slice, no longer in Endpoints. */
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, NULL);
    UNTIL(&w, strstr(slice(&w), "{\"ready\":false,\"serving\":true,\"terminating\":true}"));
    UNTIL(&w, !strstr(object(&w), "subsets"));
    bh_sim_delete(w.f.s, type_of("pods"), "default", "p",
                  &(struct bh_sim_delete_options){.grace_s = 0}, NULL);
    UNTIL(&w, strstr(slice(&w), "\"endpoints\":[]"));

    /* What is deleted comes back, and goes with the service. */
    bh_sim_delete(w.f.s, type_of("endpoints"), "default", "s", NULL, NULL);
    UNTIL(&w, *object(&w));
    bh_sim_delete(w.f.s, type_of("services"), "default", "s", NULL, NULL);
    UNTIL(&w, !*object(&w) && !slices(&w));
    world_fini(&w);
}

static void test_headless(void)
{
    struct world w;

    start(&w, SERVICE(", clusterIP: None, publishNotReadyAddresses: true"));
    make(&w.f, "Pod", "default",
         BACKEND("p", ", hostname: h, subdomain: s, readinessGates: [{conditionType: a.b/c}]"));
    UNTIL(&w, strstr(slice(&w), "{\"ready\":true,\"serving\":false,\"terminating\":false}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(slice(&w), "\"hostname\":\"h\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(slice(&w), "\"service.kubernetes.io/headless\":\"\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(slice(&w), "\"ports\":[]"));
    UNTIL(&w, strstr(object(&w), "\"subsets\":[{\"addresses\":"));

    /* Not published any more: it waits among those that are not ready. */
    change(&w.f, "Service", "default", "s", BH_SIM_MAIN, "spec.publishNotReadyAddresses", "false");
    UNTIL(&w, strstr(slice(&w), "{\"ready\":false,\"serving\":false"));
    UNTIL(&w, strstr(object(&w), "\"subsets\":[{\"notReadyAddresses\":"));
    world_fini(&w);
}

/* A hundred fit into a slice; pods that stay keep theirs, and one whose ports differ has another. */
static void test_many(void)
{
    struct world w;
    size_t most;

    start(&w, SERVICE(", ports: [{port: 80, targetPort: http}]"));
    for (unsigned i = 0; i < 205; i++)
        make(&w.f, "Pod", "default", bh_arena_printf(&w.f.a, BACKEND("p%u", ""), i));
    UNTIL(&w, endpoints(&w, &most) == 205);
    CU_ASSERT_EQUAL(most, 100);
    UNTIL(&w, slices(&w) == 3);
    make(&w.f, "Pod", "default",
         "metadata: {name: q, labels: {app: x}}\nspec: {containers: [{name: c, image: i, ports: "
         "[{name: http, containerPort: 9090}]}]}");
    UNTIL(&w, endpoints(&w, &most) == 206);
    CU_ASSERT_EQUAL(slices(&w), 4);
    UNTIL(&w, strstr(object(&w), "\"port\":9090"));
    for (unsigned i = 0; i < 205; i++)
        bh_sim_delete(w.f.s, type_of("pods"), "default", bh_arena_printf(&w.f.a, "p%u", i),
                      &(struct bh_sim_delete_options){.grace_s = 0}, NULL);
    UNTIL(&w, endpoints(&w, &most) == 1 && slices(&w) == 1);
    world_fini(&w);
}

/* Without a selector, or with a name elsewhere, nothing is made. */
static void test_none(void)
{
    struct world w;

    start(&w, "metadata: {name: s}\nspec: {ports: [{port: 80}]}");
    make(&w.f, "Service", "default",
         "metadata: {name: t}\nspec: {type: ExternalName, externalName: a.b, selector: {app: x}}");
    make(&w.f, "Pod", "default", BACKEND("p", ""));
    settle(&w);
    CU_ASSERT_EQUAL(slices(&w), 0);
    EQ(object(&w), "");
    world_fini(&w);
}

BH_TESTS("simulator/controllers/service",
         {"a pod comes, ends and goes, the service goes", test_life},
         {"headless, not ready and published", test_headless},
         {"several slices, several ports", test_many}, {"no selector, external names", test_none})
