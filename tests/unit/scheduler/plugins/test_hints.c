/* SPDX-License-Identifier: Apache-2.0
 *
 * Queueing hints: which event is worth another try for which rejecting plugin.
 */
#include "tests/unit/scheduler/engine/fixture.h"

#define BIG "'cpu':'4','memory':'8Gi','pods':'110'"

static bool node_event(struct fx *f, const char *plugin, struct fx_pod p, uint32_t action,
                       const struct bh_node_rec *old, const struct bh_node_rec *neu)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const struct bh_cluster_event ev = {
        .resource = BH_EV_NODE, .action = action, .old_node = old, .new_node = neu};
    return bh_engine_hint(f->e, plugin, &pending, &ev, &(bool){false}) == BH_QUEUE;
}

static bool pod_event(struct fx *f, const char *plugin, struct fx_pod p, uint32_t action,
                      const struct fx_pod *old, const struct fx_pod *neu)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const struct bh_pod_rec *now = neu ? neu->rec : old->rec;
    const struct bh_cluster_event ev = {
        .resource = now->node ? BH_EV_POD_ASSIGNED : BH_EV_POD_UNSCHEDULED,
        .action = action,
        .old_pod = old ? old->rec : NULL,
        .new_pod = neu ? neu->rec : NULL,
        .old_shape = old ? bh_engine_shape_rec(f->e, old->shape) : NULL,
        .new_shape = neu ? bh_engine_shape_rec(f->e, neu->shape) : NULL};
    return bh_engine_hint(f->e, plugin, &pending, &ev, &(bool){false}) == BH_QUEUE;
}

static struct fx_pod on_node(struct fx *f, struct fx_pod p)
{
    p.rec->node = bh_sym_internc(bh_engine_symtab(f->e), "somewhere");
    return p;
}

static void test_unschedulable_and_taints(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct bh_node_rec *open = fx_node_rec(&f, "n", BIG, "", "", "");
    struct bh_node_rec *shut = fx_node_rec(&f, "n", BIG, "", "'unschedulable':true", "");
    struct bh_node_rec *tainted =
        fx_node_rec(&f, "n", BIG, "", "'taints':[{'key':'a','effect':'NoSchedule'}]", "");
    struct fx_pod p = fx_pod(&f, "p", "", "");
    struct fx_pod brave = fx_pod(&f, "p", "", "'tolerations':[{'operator':'Exists'}]");

    CU_ASSERT(node_event(&f, "NodeUnschedulable", p, BH_EV_NODE_TAINT, shut, open));
    CU_ASSERT(!node_event(&f, "NodeUnschedulable", p, BH_EV_NODE_TAINT, open, open));
    CU_ASSERT(node_event(&f, "NodeUnschedulable", p, BH_EV_ADD, NULL, open));
    CU_ASSERT(!node_event(&f, "NodeUnschedulable", p, BH_EV_ADD, NULL, shut));
    CU_ASSERT(!node_event(&f, "NodeUnschedulable", p, BH_EV_NODE_LABEL, NULL, open));
    CU_ASSERT(pod_event(&f, "NodeUnschedulable", p, BH_EV_POD_TOLERATION, &p, &brave));
    CU_ASSERT(!pod_event(&f, "NodeUnschedulable", fx_pod(&f, "q", "", ""), BH_EV_POD_TOLERATION, &p,
                         &brave));
    CU_ASSERT(node_event(&f, "TaintToleration", p, BH_EV_NODE_TAINT, tainted, open));
    CU_ASSERT(!node_event(&f, "TaintToleration", p, BH_EV_NODE_TAINT, open, open));
    CU_ASSERT(!node_event(&f, "TaintToleration", p, BH_EV_ADD, NULL, tainted));
    CU_ASSERT(pod_event(&f, "TaintToleration", p, BH_EV_POD_TOLERATION, &p, &brave));
    CU_ASSERT(!pod_event(&f, "TaintToleration", fx_pod(&f, "q", "", ""), BH_EV_POD_TOLERATION, &p,
                         &brave));
    /* For a cordon the tolerations have to be the right ones; TaintToleration tries any. */
    struct fx_pod other = fx_pod(&f, "p", "", "'tolerations':[{'key':'a','operator':'Exists'}]");
    CU_ASSERT(!pod_event(&f, "NodeUnschedulable", p, BH_EV_POD_TOLERATION, &p, &other));
    CU_ASSERT(pod_event(&f, "TaintToleration", p, BH_EV_POD_TOLERATION, &p, &other));
    fx_fini(&f);
}

static void test_affinity(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct bh_node_rec *ssd = fx_node_rec(&f, "n", BIG, "'d':'ssd'", "", "");
    struct bh_node_rec *hdd = fx_node_rec(&f, "n", BIG, "'d':'hdd'", "", "");
    struct fx_pod p = fx_pod(&f, "p", "", "'nodeSelector':{'d':'ssd'}");

    CU_ASSERT(node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, hdd, ssd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, ssd, ssd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, ssd, hdd));
    CU_ASSERT(node_event(&f, "NodeAffinity", p, BH_EV_ADD, NULL, ssd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", p, BH_EV_ADD, NULL, hdd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", p, BH_EV_NODE_ALLOCATABLE, hdd, ssd));
    fx_fini(&f);
}

#define TERMS(list)                                                                                \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"               \
    "'nodeSelectorTerms':[" list "]}}}"
#define SSD    "{'matchExpressions':[{'key':'d','operator':'In','values':['ssd']}]}"
#define BROKEN "{'matchExpressions':[{'key':'d','operator':'Like','values':['ssd']}]}"

/* A term that does not parse is an error, unless another one matches; an error is worth a try. */
static void test_broken_affinity(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct bh_node_rec *ssd = fx_node_rec(&f, "n", BIG, "'d':'ssd'", "", "");
    struct bh_node_rec *hdd = fx_node_rec(&f, "n", BIG, "'d':'hdd'", "", "");
    struct fx_pod p = fx_pod(&f, "p", "", TERMS(SSD "," BROKEN));

    CU_ASSERT(node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, ssd, hdd));
    CU_ASSERT(node_event(&f, "NodeAffinity", p, BH_EV_ADD, NULL, hdd));
    CU_ASSERT(node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, hdd, ssd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, ssd, ssd));
    CU_ASSERT(
        !node_event(&f, "NodeAffinity", fx_pod(&f, "q", "", TERMS("{}")), BH_EV_ADD, NULL, ssd));
    fx_fini(&f);
}

static void test_added_affinity(void)
{
    struct fx f;

    fx_init(&f, "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'NodeAffinity',"
                "'args':{'addedAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
                "'nodeSelectorTerms':[" SSD "]}}}}]}");
    struct bh_node_rec *ssd = fx_node_rec(&f, "n", BIG, "'d':'ssd'", "", "");
    struct bh_node_rec *hdd = fx_node_rec(&f, "n", BIG, "'d':'hdd'", "", "");
    struct fx_pod p = fx_pod(&f, "p", "", ""), q = fx_pod(&f, "q", "", TERMS(BROKEN));

    CU_ASSERT(node_event(&f, "NodeAffinity", p, BH_EV_ADD, NULL, ssd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", p, BH_EV_ADD, NULL, hdd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", q, BH_EV_ADD, NULL, hdd));
    CU_ASSERT(node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, hdd, ssd));
    CU_ASSERT(!node_event(&f, "NodeAffinity", p, BH_EV_NODE_LABEL, ssd, ssd));
    fx_fini(&f);
}

static void test_fit(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct bh_node_rec *small =
        fx_node_rec(&f, "n", "'cpu':'1','memory':'8Gi','pods':'5'", "", "", "");
    struct bh_node_rec *mid =
        fx_node_rec(&f, "n", "'cpu':'2','memory':'8Gi','pods':'5'", "", "", "");
    struct bh_node_rec *big =
        fx_node_rec(&f, "n", "'cpu':'3','memory':'8Gi','pods':'5'", "", "", "");
    struct bh_node_rec *roomy =
        fx_node_rec(&f, "n", "'cpu':'3','memory':'9Gi','pods':'5'", "", "", "");
    struct bh_node_rec *slots =
        fx_node_rec(&f, "n", "'cpu':'3','memory':'8Gi','pods':'6'", "", "", "");
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'2'", ""), none = fx_pod(&f, "none", "", "");
    struct fx_pod other = on_node(&f, fx_pod(&f, "other", "'cpu':'1','memory':'2Gi'", ""));
    struct fx_pod less = on_node(&f, fx_pod(&f, "other", "'cpu':'500m','memory':'2Gi'", ""));
    struct fx_pod leaner = on_node(&f, fx_pod(&f, "other", "'cpu':'1','memory':'1Gi'", ""));
    struct fx_pod pending = fx_pod(&f, "pending", "'cpu':'1'", "");
    struct fx_pod nominated =
        fx_pod_full(&f, "nom", "", "'containers':[{'name':'c'}]", "'nominatedNodeName':'x'");
    const char *fit = "NodeResourcesFit";

    CU_ASSERT(!node_event(&f, fit, p, BH_EV_ADD, NULL, small));
    CU_ASSERT(node_event(&f, fit, p, BH_EV_ADD, NULL, mid));
    CU_ASSERT(node_event(&f, fit, p, BH_EV_NODE_ALLOCATABLE, mid, big));
    CU_ASSERT(!node_event(&f, fit, p, BH_EV_NODE_ALLOCATABLE, big, mid));
    CU_ASSERT(
        !node_event(&f, fit, p, BH_EV_NODE_ALLOCATABLE, big, roomy)); /* memory is not asked for */
    CU_ASSERT(node_event(&f, fit, p, BH_EV_NODE_ALLOCATABLE, big, slots));
    CU_ASSERT(!node_event(&f, fit, none, BH_EV_NODE_ALLOCATABLE, mid, big));
    CU_ASSERT(pod_event(&f, fit, p, BH_EV_DELETE, &other, NULL));
    CU_ASSERT(!pod_event(&f, fit, p, BH_EV_DELETE, &pending, NULL));
    CU_ASSERT(pod_event(&f, fit, p, BH_EV_DELETE, &nominated, NULL));
    CU_ASSERT(pod_event(&f, fit, p, BH_EV_POD_SCALE_DOWN, &other, &less));
    CU_ASSERT(!pod_event(&f, fit, p, BH_EV_POD_SCALE_DOWN, &other, &leaner));
    CU_ASSERT(pod_event(&f, fit, p, BH_EV_POD_SCALE_DOWN, &p, &p)); /* the waiting pod itself */
    CU_ASSERT(!pod_event(&f, fit, p, BH_EV_ADD, NULL, &other));
    /* A smaller pod that has no node gives nothing back. */
    struct fx_pod light = fx_pod(&f, "pending", "'cpu':'500m'", "");
    CU_ASSERT(!pod_event(&f, fit, p, BH_EV_POD_SCALE_DOWN, &pending, &light));
    /* Registered for new nodes but not for taints: taint updates wake it nevertheless. */
    CU_ASSERT(node_event(&f, fit, p, BH_EV_NODE_TAINT, small, small));
    fx_fini(&f);
}

static void put_class(struct fx *f, const char *name, const char *resource)
{
    struct bh_buf b = {0};
    const char *json = bh_arena_printf(
        &f->arena, "{'metadata':{'name':'%s'},'spec':{'extendedResourceName':'%s'}}", name,
        resource);

    bh_pb_pack(&b, fx_message(f, &k8s__device_class__descriptor, fx_json(f, json)));
    CU_ASSERT(bh_engine_put_object(f->e, BH_KIND_DEVICECLASS, "", name,
                                   resource ? bh_buf_str(&b) : NULL, b.n, NULL) == 0);
    bh_buf_fini(&b);
}

/* An event of class "gpu": its resource before and after, NULL = there was or is none. */
static bool class_event(struct fx *f, struct fx_pod p, const char *before, const char *after)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT,
                                  .kind = BH_KIND_DEVICECLASS,
                                  .action = before ? BH_EV_UPDATE : BH_EV_ADD};
    struct bh_buf b = {0};
    const char *format = "{'metadata':{'name':'gpu'},'spec':{'extendedResourceName':'%s'}}";

    (void)bh_engine_put_object(f->e, BH_KIND_DEVICECLASS, "", "gpu", NULL, 0, NULL);
    if (before)
        put_class(f, "gpu", before);
    bh_pb_pack(&b, fx_message(f, &k8s__device_class__descriptor,
                              fx_json(f, bh_arena_printf(&f->arena, format, after))));
    CU_ASSERT(bh_engine_put_object_event(f->e, &ev, "", "gpu", bh_buf_str(&b), b.n, NULL) == 0);
    bh_buf_fini(&b);
    return bh_engine_hint(f->e, "NodeResourcesFit", &pending, &ev, &(bool){false}) == BH_QUEUE;
}

static void test_device_class(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct fx_pod by_name = fx_pod(&f, "p", "'x.io/gpu':'1'", ""),
                  by_class = fx_pod(&f, "q", "'deviceclass.resource.kubernetes.io/gpu':'1'", ""),
                  none = fx_pod(&f, "r", "'cpu':'1'", "");

    CU_ASSERT(class_event(&f, by_name, NULL, "x.io/gpu"));
    CU_ASSERT(!class_event(&f, by_name, NULL, "x.io/other"));
    CU_ASSERT(!class_event(&f, by_name, NULL, ""));
    CU_ASSERT(class_event(&f, by_name, "x.io/other", "x.io/gpu"));
    CU_ASSERT(!class_event(&f, by_name, "x.io/gpu", "x.io/gpu"));
    CU_ASSERT(!class_event(&f, by_name, "x.io/gpu", "x.io/other"));
    CU_ASSERT(class_event(&f, by_class, NULL, "x.io/other"));
    CU_ASSERT(class_event(&f, by_class, NULL, ""));
    CU_ASSERT(!class_event(&f, by_class, "x.io/other", "x.io/gpu"));
    CU_ASSERT(!class_event(&f, none, NULL, "x.io/gpu"));
    fx_fini(&f);
}

/* An empty node has to offer what is asked for; what is ignored or from a class it need not. */
static void test_fit_empty_node(void)
{
    struct fx f;

    fx_init(&f, "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'NodeResourcesFit',"
                "'args':{'ignoredResources':['x.io/nic']}}]}");
    struct bh_node_rec *small = fx_node_rec(&f, "n", "'cpu':'1','pods':'5'", "", "", "");
    struct bh_node_rec *big = fx_node_rec(&f, "n", "'cpu':'4','pods':'5'", "", "", "");
    struct bh_node_rec *full =
        fx_node_rec(&f, "n", "'cpu':'4','pods':'5','x.io/gpu':'1'", "", "", "");
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'2','x.io/gpu':'1'", "");
    struct fx_pod ignored = fx_pod(&f, "q", "'cpu':'2','x.io/nic':'1'", "");

    CU_ASSERT(!node_event(&f, "NodeResourcesFit", p, BH_EV_ADD, NULL, big));
    CU_ASSERT(!node_event(&f, "NodeResourcesFit", p, BH_EV_NODE_ALLOCATABLE, small, big));
    CU_ASSERT(node_event(&f, "NodeResourcesFit", p, BH_EV_NODE_ALLOCATABLE, big, full));
    CU_ASSERT(node_event(&f, "NodeResourcesFit", ignored, BH_EV_NODE_ALLOCATABLE, small, big));
    put_class(&f, "gpu", "x.io/gpu");
    CU_ASSERT(node_event(&f, "NodeResourcesFit", p, BH_EV_ADD, NULL, big));
    CU_ASSERT(node_event(&f, "NodeResourcesFit", p, BH_EV_NODE_ALLOCATABLE, small, big));
    CU_ASSERT(node_event(&f, "NodeResourcesFit", p, BH_EV_NODE_ALLOCATABLE, big, big));
    CU_ASSERT(!node_event(&f, "NodeResourcesFit", p, BH_EV_NODE_ALLOCATABLE, big, small));
    fx_fini(&f);
}

static void test_ports(void)
{
    const char *port = "'containers':[{'name':'c','ports':[{'containerPort':1,'hostPort':%d}]}]";
    struct fx f;

    fx_init(&f, NULL);
    struct fx_pod p = fx_pod_full(&f, "p", "", bh_arena_printf(&f.arena, port, 80), "");
    struct fx_pod same =
        on_node(&f, fx_pod_full(&f, "s", "", bh_arena_printf(&f.arena, port, 80), ""));
    struct fx_pod other =
        on_node(&f, fx_pod_full(&f, "o", "", bh_arena_printf(&f.arena, port, 81), ""));
    struct fx_pod plain = on_node(&f, fx_pod(&f, "x", "", ""));

    CU_ASSERT(pod_event(&f, "NodePorts", p, BH_EV_DELETE, &same, NULL));
    CU_ASSERT(!pod_event(&f, "NodePorts", p, BH_EV_DELETE, &other, NULL));
    CU_ASSERT(!pod_event(&f, "NodePorts", p, BH_EV_DELETE, &plain, NULL));
    same.rec->node = BH_SYM_NONE;
    CU_ASSERT(!pod_event(&f, "NodePorts", p, BH_EV_DELETE, &same, NULL));
    struct fx_pod nominated =
        fx_pod_full(&f, "s", "", bh_arena_printf(&f.arena, port, 80), "'nominatedNodeName':'x'");
    CU_ASSERT(pod_event(&f, "NodePorts", p, BH_EV_DELETE, &nominated, NULL));
    CU_ASSERT(
        node_event(&f, "NodePorts", p, BH_EV_ADD, NULL, fx_node_rec(&f, "n", BIG, "", "", "")));
    fx_fini(&f);
}

static void test_the_rest(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct bh_node_rec *n = fx_node_rec(&f, "n", BIG, "", "", "");
    struct bh_node_rec *featured = fx_node_rec(&f, "n", BIG, "", "", "'declaredFeatures':['A']");
    struct fx_pod p = fx_pod(&f, "p", "", ""), q = fx_pod(&f, "q", "", "");
    struct fx_pod host = fx_pod(&f, "p", "", "'hostNetwork':true,'hostUsers':false");

    CU_ASSERT(node_event(&f, "NodeName", p, BH_EV_ADD, NULL, n));
    CU_ASSERT(pod_event(&f, "SchedulingGates", p, BH_EV_POD_GATES_ELIMINATED, &p, &p));
    CU_ASSERT(!pod_event(&f, "SchedulingGates", p, BH_EV_POD_GATES_ELIMINATED, &q, &q));
    CU_ASSERT(node_event(&f, "NodeDeclaredFeatures", p, BH_EV_NODE_FEATURE, n, featured));
    CU_ASSERT(!node_event(&f, "NodeDeclaredFeatures", p, BH_EV_NODE_FEATURE, featured, featured));
    CU_ASSERT(pod_event(&f, "NodeDeclaredFeatures", p, BH_EV_UPDATE, &p, &host));
    CU_ASSERT(!pod_event(&f, "NodeDeclaredFeatures", p, BH_EV_UPDATE, &p, &p));
    CU_ASSERT(!pod_event(&f, "NodeDeclaredFeatures", p, BH_EV_UPDATE, &q, &q));
    CU_ASSERT(!pod_event(&f, "DefaultPreemption", p, BH_EV_DELETE, &q, NULL));
    CU_ASSERT(pod_event(&f, "SomebodyElse", p, BH_EV_DELETE, &q,
                        NULL)); /* unknown: be on the safe side */
    fx_fini(&f);
}

static bool interested(struct fx *f, enum bh_event_resource r, enum bh_kind kind, uint32_t action)
{
    const struct bh_cluster_event ev = {.resource = r, .kind = kind, .action = action};
    return bh_engine_interested(f->e, &ev);
}

static void test_interest(void)
{
    struct fx f;

    fx_init(&f, NULL);
    CU_ASSERT(interested(&f, BH_EV_NODE, BH_KIND_NODE, BH_EV_ADD));
    CU_ASSERT(interested(&f, BH_EV_NODE, BH_KIND_NODE, BH_EV_NODE_TAINT));
    CU_ASSERT(!interested(&f, BH_EV_NODE, BH_KIND_NODE, BH_EV_NODE_CONDITION));
    CU_ASSERT(interested(&f, BH_EV_POD_ASSIGNED, BH_KIND_POD, BH_EV_DELETE));
    CU_ASSERT(interested(&f, BH_EV_POD_ASSIGNED, BH_KIND_POD, BH_EV_UPDATE));
    CU_ASSERT(interested(&f, BH_EV_OBJECT, BH_KIND_PERSISTENTVOLUMECLAIM, BH_EV_ADD));
    CU_ASSERT(!interested(&f, BH_EV_OBJECT, BH_KIND_PODDISRUPTIONBUDGET, BH_EV_ADD));
    fx_fini(&f);
}

static void test_diffs(void)
{
    struct fx f;
    uint32_t out[8];

    fx_init(&f, NULL);
    struct bh_node_rec *a = fx_node_rec(&f, "n", BIG, "'x':'1'", "'unschedulable':true", "");
    struct bh_node_rec *b =
        fx_node_rec(&f, "n", "'cpu':'5','memory':'8Gi','pods':'110'", "'x':'2'",
                    "'taints':[{'key':'a','effect':'NoSchedule'}]",
                    "'conditions':[{'type':'Ready','status':'True'}],'declaredFeatures':['F']");
    FX_INT(bh_node_diff(a, a, out), 0);
    FX_INT(bh_node_diff(a, b, out), 6);
    const uint32_t want[] = {BH_EV_NODE_TAINT, BH_EV_NODE_ALLOCATABLE, BH_EV_NODE_LABEL,
                             BH_EV_NODE_TAINT, BH_EV_NODE_CONDITION,   BH_EV_NODE_FEATURE};
    CU_ASSERT(memcmp(out, want, sizeof want) == 0);
    FX_INT(bh_node_diff(b, a, out), 5); /* cordoning is no event of its own */

    struct fx_pod p =
        fx_pod_full(&f, "p", "'labels':{'a':'b'}",
                    "'schedulingGates':[{'name':'g'}],'containers':[{'name':'c','resources':{"
                    "'requests':{'cpu':'1','example.com/x':'2'}}}]",
                    "");
    struct fx_pod q = fx_pod_full(&f, "p", "",
                                  "'tolerations':[{'operator':'Exists'}],'containers':[{'name':'c',"
                                  "'resources':{'requests':{'cpu':'1'}}}]",
                                  "");
    const struct bh_shape_rec *ps = bh_engine_shape_rec(f.e, p.shape),
                              *qs = bh_engine_shape_rec(f.e, q.shape);
    FX_INT(bh_pod_diff(p.rec, ps, q.rec, qs, out), 4);
    const uint32_t pod_want[] = {BH_EV_POD_LABEL, BH_EV_POD_SCALE_DOWN, BH_EV_POD_GATES_ELIMINATED,
                                 BH_EV_POD_TOLERATION};
    CU_ASSERT(memcmp(out, pod_want, sizeof pod_want) == 0);
    FX_INT(bh_pod_diff(q.rec, qs, q.rec, qs, out), 1);
    FX_INT(out[0], BH_EV_UPDATE);
    fx_fini(&f);
}

BH_TESTS("scheduler/plugins/hints",
         {"NodeUnschedulable and TaintToleration wait for open nodes",
          test_unschedulable_and_taints},
         {"NodeAffinity waits for nodes that begin to match", test_affinity},
         {"NodeAffinity tries where terms do not parse", test_broken_affinity},
         {"NodeAffinity knows the added affinity", test_added_affinity},
         {"NodeResourcesFit waits for room it asked for", test_fit},
         {"NodeResourcesFit waits for classes", test_device_class},
         {"NodeResourcesFit looks at the node as if it were empty", test_fit_empty_node},
         {"NodePorts waits for its port", test_ports}, {"the other plugins' hints", test_the_rest},
         {"events that concern nobody", test_interest}, {"diffs of nodes and pods", test_diffs})
