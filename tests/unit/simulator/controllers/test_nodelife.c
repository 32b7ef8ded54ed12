/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/controllers/test_nodelife.c - silent kubelets, taints, evictions, lost nodes
 *
 * Under a manual clock: minutes pass in no time.
 */
#include "tests/unit/simulator/controllers/controllers_test.h"

#define BOUND(name, more)                                                                          \
    "metadata: {name: " name "}\nspec: {nodeName: n1, containers: [{name: c, image: i}]" more "}"
#define STOPPED "metadata: {name: n1, annotations: {sim.berth.dev/kubelet: stopped}}"

static const char *node_field(struct world *w, const char *path)
{
    return field(&w->f, get(&w->f, "nodes", "", "n1"), path);
}

static const char *condition(struct world *w, const char *plural, const char *ns, const char *name,
                             const char *type, const char *key)
{
    const struct bh_sim_obj *o = get(&w->f, plural, ns, name);
    const struct bh_json *c = o ? bh_tree_condition(bh_sim_obj_tree(&w->f.a, o), type) : NULL;
    const char *v = bh_tree_str(c, key);

    return v ? v : "";
}
#define NODE_IS(w, status)                                                                         \
    CU_ASSERT_STRING_EQUAL(condition(w, "nodes", "", "n1", "Ready", "status"), status)
#define POD_IS(w, name, status)                                                                    \
    CU_ASSERT_STRING_EQUAL(condition(w, "pods", "default", name, "Ready", "status"), status)

static void stop_kubelet(struct world *w, bool stop)
{
    CU_ASSERT_EQUAL(change(&w->f, "Node", "", "n1", BH_SIM_MAIN, "metadata.annotations",
                           stop ? "{sim.berth.dev/kubelet: stopped}" : "{}"),
                    0);
    pass(w, 0);
}

static bool has_taint(struct world *w, const char *key, const char *effect)
{
    const struct bh_json *l =
        bh_tree_arr(bh_sim_obj_tree(&w->f.a, get(&w->f, "nodes", "", "n1")), "spec.taints");

    bh_json_each(t, l) {
        if (bh_tree_is(t, "key", key) && bh_tree_is(t, "effect", effect))
            return true;
    }
    return false;
}

static bool event(struct world *w, const char *reason, const char *part)
{
    struct bh_sim_objs l;
    bool found = false;

    bh_sim_list(w->f.s, type_of("events"), NULL, &l);
    for (size_t i = 0; i < l.n; i++)
        found = found || (strstr(l.v[i]->json, reason) && strstr(l.v[i]->json, part));
    bh_sim_objs_fini(&l);
    return found;
}

static void start(struct world *w)
{
    world_manual(w, (struct bh_sim_options){.node_grace_ns = 0});
    w->bind = false;
    make(&w->f, "Node", "", NODE("n1"));
    pass(w, 0);
    NODE_IS(w, "True");
}

/* ---- the node -------------------------------------------------------------------------------- */

static void test_silent_kubelet(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("p", ""));
    pass(&w, 0);
    POD_IS(&w, "p", "True");
    stop_kubelet(&w, true);
    pass(&w, 39);
    NODE_IS(&w, "True");
    make(&w.f, "Pod", "default", BOUND("late", "")); /* nobody starts it */
    pass(&w, 1);
    NODE_IS(&w, "Unknown");
    CU_ASSERT_STRING_EQUAL(condition(&w, "nodes", "", "n1", "Ready", "reason"),
                           "NodeStatusUnknown");
    CU_ASSERT_STRING_EQUAL(condition(&w, "nodes", "", "n1", "DiskPressure", "status"), "Unknown");
    CU_ASSERT(has_taint(&w, "node.kubernetes.io/unreachable", "NoSchedule"));
    CU_ASSERT(has_taint(&w, "node.kubernetes.io/unreachable", "NoExecute"));
    POD_IS(&w, "p", "False");
    CU_ASSERT(event(&w, "NodeNotReady", "Node n1 status is now: NodeNotReady"));
    CU_ASSERT(event(&w, "NodeNotReady", "Node is not ready"));
    CU_ASSERT_STRING_EQUAL(get(&w.f, "pods", "default", "late")->phase, "Pending");

    stop_kubelet(&w, false);
    NODE_IS(&w, "True");
    CU_ASSERT_STRING_EQUAL(node_field(&w, "spec.taints"), "");
    CU_ASSERT_STRING_EQUAL(condition(&w, "nodes", "", "n1", "DiskPressure", "status"), "False");
    POD_IS(&w, "p", "True");
    CU_ASSERT_STRING_EQUAL(get(&w.f, "pods", "default", "late")->phase, "Running");
    pass(&w, 1000);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 2);
    world_fini(&w);
}

static void test_never_posted(void)
{
    struct world w;

    world_manual(&w, (struct bh_sim_options){.node_grace_ns = 5 * (int64_t)SECOND});
    make(&w.f, "Node", "", STOPPED);
    pass(&w, 4);
    NODE_IS(&w, "");
    pass(&w, 1);
    NODE_IS(&w, "Unknown");
    CU_ASSERT_STRING_EQUAL(condition(&w, "nodes", "", "n1", "Ready", "reason"),
                           "NodeStatusNeverUpdated");
    stop_kubelet(&w, false);
    NODE_IS(&w, "True");
    CU_ASSERT_STRING_EQUAL(node_field(&w, "status.capacity.pods"), "110");
    world_fini(&w);
}

/* Somebody else writes the node's status. */
static void test_scripted_condition(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("p", ""));
    pass(&w, 0);
    CU_ASSERT_EQUAL(change(&w.f, "Node", "", "n1", BH_SIM_STATUS, "status.conditions",
                           "[{type: Ready, status: \"False\"}]"),
                    0);
    pass(&w, 0);
    CU_ASSERT(has_taint(&w, "node.kubernetes.io/not-ready", "NoExecute"));
    CU_ASSERT(has_taint(&w, "node.kubernetes.io/not-ready", "NoSchedule"));
    POD_IS(&w, "p", "False");
    CU_ASSERT_EQUAL(change(&w.f, "Node", "", "n1", BH_SIM_STATUS, "status.conditions",
                           "[{type: Ready, status: \"True\"}]"),
                    0);
    pass(&w, 0);
    CU_ASSERT_STRING_EQUAL(node_field(&w, "spec.taints"), "");
    POD_IS(&w, "p", "True");
    pass(&w, 1000);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 1);
    world_fini(&w);
}

static void test_silent_nodes_end_nothing(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("p", ""));
    pass(&w, 0);
    stop_kubelet(&w, true);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, &w.f.e), 0);
    pass(&w, 100);
    CU_ASSERT(get(&w.f, "pods", "default", "p")->deleting);
    stop_kubelet(&w, false);
    CU_ASSERT_PTR_NULL(get(&w.f, "pods", "default", "p"));
    world_fini(&w);
}

/* ---- eviction -------------------------------------------------------------------------------- */

static void test_toleration_seconds(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("usual", "")); /* 300 s by admission */
    make(&w.f, "Pod", "default",
         BOUND("short", ", tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, "
                        "effect: NoExecute, tolerationSeconds: 10}]"));
    make(&w.f, "Pod", "default",
         BOUND("ever", ", tolerations: [{operator: Exists, effect: NoExecute}]"));
    pass(&w, 0);
    stop_kubelet(&w, true);
    pass(&w, 40 + 9.9);
    CU_ASSERT(!get(&w.f, "pods", "default", "short")->deleting);
    pass(&w, 0.2);
    CU_ASSERT(get(&w.f, "pods", "default", "short")->deleting); /* nobody there to end it */
    CU_ASSERT_STRING_EQUAL(condition(&w, "pods", "default", "short", "DisruptionTarget", "reason"),
                           "DeletionByTaintManager");
    CU_ASSERT_STRING_EQUAL(condition(&w, "pods", "default", "short", "DisruptionTarget", "message"),
                           "Taint manager: deleting due to NoExecute taint");
    CU_ASSERT(event(&w, "TaintManagerEviction", "Marking for deletion Pod default/short"));
    pass(&w, 289);
    CU_ASSERT(!get(&w.f, "pods", "default", "usual")->deleting);
    pass(&w, 1);
    CU_ASSERT(get(&w.f, "pods", "default", "usual")->deleting);
    pass(&w, 100000);
    CU_ASSERT(!get(&w.f, "pods", "default", "ever")->deleting);
    world_fini(&w);
}

static void test_taint_goes_in_time(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("p", ""));
    pass(&w, 0);
    stop_kubelet(&w, true);
    pass(&w, 200);
    stop_kubelet(&w, false);
    CU_ASSERT(event(&w, "TaintManagerEviction", "Cancelling deletion of Pod default/p"));
    pass(&w, 1000);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 1);
    stop_kubelet(&w, true); /* the time starts anew */
    pass(&w, 40 + 299);
    CU_ASSERT(!get(&w.f, "pods", "default", "p")->deleting);
    pass(&w, 1);
    CU_ASSERT(get(&w.f, "pods", "default", "p")->deleting);
    world_fini(&w);
}

static void test_own_taints(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("stays", ", tolerations: [{key: a, value: b}]"));
    make(&w.f, "Pod", "default", BOUND("goes", ", tolerations: [{key: a, value: x}]"));
    make(&w.f, "Pod", "default",
         BOUND("later",
               ", tolerations: [{key: a, value: b, effect: NoExecute, tolerationSeconds: 7}]"));
    pass(&w, 0);
    CU_ASSERT_EQUAL(change(&w.f, "Node", "", "n1", BH_SIM_MAIN, "spec.taints",
                           "[{key: a, value: b, effect: NoSchedule}]"),
                    0);
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 3);
    CU_ASSERT_EQUAL(change(&w.f, "Node", "", "n1", BH_SIM_MAIN, "spec.taints",
                           "[{key: a, value: b, effect: NoExecute}]"),
                    0);
    pass(&w, 6);
    CU_ASSERT_PTR_NULL(get(&w.f, "pods", "default", "goes"));
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 2);
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 1);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "pods", "default", "stays"));
    make(&w.f, "Pod", "default", BOUND("new", "")); /* comes to a tainted node */
    pass(&w, 0);
    CU_ASSERT_PTR_NULL(get(&w.f, "pods", "default", "new"));
    world_fini(&w);
}

/* A new pod of the name does not inherit the time of the old one. */
static void test_names_are_used_again(void)
{
    struct world w;
    const char *tolerant = BOUND(
        "p", ", tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 100}]");

    start(&w);
    make(&w.f, "Pod", "default", tolerant);
    CU_ASSERT_EQUAL(
        change(&w.f, "Node", "", "n1", BH_SIM_MAIN, "spec.taints", "[{key: a, effect: NoExecute}]"),
        0);
    pass(&w, 60);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("pods"), "default", "p", NULL, &w.f.e), 0);
    pass(&w, 0);
    make(&w.f, "Pod", "default", tolerant);
    pass(&w, 60);
    CU_ASSERT_PTR_NOT_NULL(get(&w.f, "pods", "default", "p"));
    pass(&w, 40);
    CU_ASSERT_PTR_NULL(get(&w.f, "pods", "default", "p"));
    world_fini(&w);
}

/* ---- nodes that are gone --------------------------------------------------------------------- */

static void test_lost_node(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("p", ""));
    make(&w.f, "Pod", "default",
         "metadata: {name: waits}\nspec: {nodeName: n2, containers: [{name: c, image: i}]}");
    make(&w.f, "Pod", "default",
         "metadata: {name: lost}\nspec: {nodeName: never, containers: [{name: c, image: i}]}");
    pass(&w, 0);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("nodes"), "", "n1", NULL, &w.f.e), 0);
    pass(&w, 39);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 3);
    make(&w.f, "Node", "", NODE("n2"));
    pass(&w, 1);
    CU_ASSERT_PTR_NULL(get(&w.f, "pods", "default", "p"));
    CU_ASSERT_PTR_NULL(get(&w.f, "pods", "default", "lost")); /* its node never was */
    pass(&w, 1000);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 1);
    world_fini(&w);
}

static void test_node_comes_back(void)
{
    struct world w;

    start(&w);
    make(&w.f, "Pod", "default", BOUND("p", ""));
    pass(&w, 0);
    CU_ASSERT_EQUAL(bh_sim_delete(w.f.s, type_of("nodes"), "", "n1", NULL, &w.f.e), 0);
    pass(&w, 30);
    make(&w.f, "Node", "", NODE("n1"));
    pass(&w, 100);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 1);
    world_fini(&w);
}

/* A deployment moves away from a silent node: the story as a user sees it. */
static void test_deployment_moves(void)
{
    struct world w;

    start(&w);
    w.bind = true;
    make(&w.f, "Deployment", "default", "metadata: {name: d}\nspec:\n  replicas: 3\n" TEMPLATE);
    pass(&w, 1);
    CU_ASSERT_EQUAL(count_pods(&w, "Running"), 3);
    stop_kubelet(&w, true);
    w.bind = false;
    pass(&w, 41);
    CU_ASSERT_EQUAL(num(&w, "deployments", "d", "status.availableReplicas"), 0);
    pass(&w, 300);
    CU_ASSERT_EQUAL(count_pods(&w, NULL), 6); /* three that cannot end, three in their place */
    world_fini(&w);
}

BH_TESTS("simulator/controllers/nodelife",
         {"a silent kubelet makes its node unknown", test_silent_kubelet},
         {"a kubelet that never spoke", test_never_posted},
         {"a Ready condition that somebody writes", test_scripted_condition},
         {"nobody ends pods of a silent node", test_silent_nodes_end_nothing},
         {"tolerationSeconds are kept", test_toleration_seconds},
         {"a taint that goes in time", test_taint_goes_in_time},
         {"taints of one's own", test_own_taints},
         {"a name that is used again", test_names_are_used_again},
         {"pods of a lost node go", test_lost_node},
         {"a node that comes back keeps them", test_node_comes_back},
         {"a deployment moves away", test_deployment_moves})
