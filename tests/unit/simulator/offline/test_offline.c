/* SPDX-License-Identifier: Apache-2.0
 *
 * The offline world: objects in and out, attempts, what a binder would do.
 */
#include "simulator/offline/fixes.h"
#include "simulator/offline/offline.h"
#include "simulator/offline/rebalance.h"

#include "common/data/yaml.h"
#include "scheduler/engine/state.h"
#include "tests/unit/harness.h"

#define NODE(name)                                                                                 \
    "{apiVersion: v1, kind: Node, metadata: {name: " name                                          \
    "}, status: {allocatable: {cpu: \"4\", memory: 8Gi, pods: \"10\"}}}"
#define POD(name, cpu, spec, status)                                                               \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: default, uid: " name        \
    "}, spec: {schedulerName: default-scheduler, containers: [{name: c, resources: {requests: "    \
    "{cpu: \"" cpu "\"}}}]" spec "}, status: {" status "}}"

static const struct bh_offline_options plain = {.tie_break = BH_TIE_FIRST,
                                                .verify = true,
                                                .events_only = true,
                                                .now_ns = INT64_C(1893456000000000000)};

struct fixture {
    struct bh_feature_gates gates;
    struct bh_sched_config *config;
    struct bh_offline w;
    struct bh_arena a;
    struct bh_err err;
    unsigned bound, evicted, tried; /* what the hooks heard */
    char said[200];
};

/* config: YAML, NULL = defaults */
static void fixture_init_as(struct fixture *f, const struct bh_offline_options *o,
                            const char *gates, const char *config)
{
    struct bh_offline_options with = *o;
    struct bh_json *v = NULL;

    *f = (struct fixture){.bound = 0};
    bh_arena_init(&f->a, 0);
    if (config)
        CU_ASSERT_FATAL(bh_yaml_parse(&f->a, config, strlen(config), 0, &v, &f->err) == 0);
    CU_ASSERT_FATAL((v ? bh_sched_config_new(v, &f->config, &f->err)
                       : bh_sched_config_load(NULL, &f->config, &f->err)) == 0);
    CU_ASSERT_FATAL(bh_feature_gates_parse(&f->gates, gates, &f->err) == 0);
    bh_sched_config_apply_gates(f->config, &f->gates);
    with.config = f->config;
    if (with.hooks.tried || with.hooks.grouped)
        with.hooks.arg = f;
    CU_ASSERT_FATAL(bh_offline_init(&f->w, &with, &f->err) == 0);
}

static void fixture_init_with(struct fixture *f, const struct bh_offline_options *o,
                              const char *gates)
{
    fixture_init_as(f, o, gates, NULL);
}

static void fixture_init(struct fixture *f, const struct bh_offline_options *o)
{
    fixture_init_with(f, o, "");
}

static void fixture_fini(struct fixture *f)
{
    bh_offline_fini(&f->w);
    bh_sched_config_free(f->config);
    bh_arena_fini(&f->a);
}

static int put(struct fixture *f, const char *text)
{
    struct bh_json *v = NULL;

    CU_ASSERT_FATAL(bh_yaml_parse(&f->a, text, strlen(text), 0, &v, &f->err) == 0);
    const struct bh_kind_info *k =
        bh_kind_find(bh_json_get_str(v, "apiVersion"), bh_json_get_str(v, "kind"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    return bh_offline_put_tree(&f->w, &f->a, k, v, &f->err);
}

/* Where the pod is, "" = nowhere. */
static const char *node_of(const struct fixture *f, const char *uid)
{
    const struct bh_pod_rec *p = bh_engine_find_pod(f->w.engine, bh_str_c(uid), NULL);

    return p ? bh_sym_text(bh_engine_symtab(f->w.engine), p->node) : "";
}

static enum bh_queue_place place_of(const struct fixture *f, const char *uid)
{
    const struct bh_pod_state *s = bh_queue_pod(f->w.queue, bh_str_c(uid));

    return s ? s->place : BH_Q_NONE;
}

static bool promised(const struct fixture *f, const char *uid)
{
    return bh_engine_nominated_node(f->w.engine, bh_str_c(uid)) != BH_SYM_NONE;
}

/* ---- objects --------------------------------------------------------------------------------- */

static void test_objects(void)
{
    struct fixture f;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, NODE("n1")) == 0);
    CU_ASSERT(put(&f, POD("here", "1", ", nodeName: n1", "")) == 0);
    CU_ASSERT(put(&f, POD("waits", "1", "", "")) == 0);
    CU_ASSERT(put(&f, POD("over", "1", ", nodeName: n1", "phase: Succeeded")) == 0);
    CU_ASSERT(put(&f, "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: default, uid: "
                      "x}, spec: {schedulerName: another}}") == 0);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "here"), "n1");
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 1);
    CU_ASSERT_EQUAL(place_of(&f, "waits"), BH_Q_ACTIVE);
    CU_ASSERT_EQUAL(place_of(&f, "x"), BH_Q_NONE); /* another scheduler's */
    CU_ASSERT(put(&f, POD("here", "1", ", nodeName: n1", "phase: Failed")) == 0);
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 0);
    CU_ASSERT(put(&f, POD("waits", "1", ", nodeName: n1", "")) == 0); /* bound by somebody */
    CU_ASSERT_EQUAL(place_of(&f, "waits"), BH_Q_NONE);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "waits"), "n1");
    bh_offline_del(&f.w, BH_KIND_POD, "default", "waits");
    bh_offline_del(&f.w, BH_KIND_POD, "default", "never-seen");
    bh_offline_del(&f.w, BH_KIND_NODE, "", "n1");
    bh_offline_del(&f.w, BH_KIND_NODE, "", "never-seen");
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 0);
    CU_ASSERT_EQUAL(bh_engine_node_count(f.w.engine), 0);
    CU_ASSERT(put(&f, "{apiVersion: v1, kind: Service, metadata: {name: s, namespace: default}}") ==
              0);
    CU_ASSERT_PTR_NOT_NULL(bh_engine_get_object(f.w.engine, BH_KIND_SERVICE, "default", "s"));
    bh_offline_del(&f.w, BH_KIND_SERVICE, "default", "s");
    CU_ASSERT_PTR_NULL(bh_engine_get_object(f.w.engine, BH_KIND_SERVICE, "default", "s"));
    fixture_fini(&f);
}

static void test_refused(void)
{
    struct fixture f;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, "{apiVersion: v1, kind: Node}") < 0);
    CU_ASSERT_STRING_EQUAL(f.err.msg, "no metadata");
    CU_ASSERT(put(&f, "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}}") < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.err.msg, "uid"));
    CU_ASSERT(put(&f, "{apiVersion: v1, kind: Node, metadata: {name: 3}}") < 0);
    CU_ASSERT_EQUAL(bh_engine_node_count(f.w.engine), 0);
    CU_ASSERT_FALSE(bh_offline_attempt(&f.w));
    fixture_fini(&f);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void test_attempts(void)
{
    struct fixture f;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, NODE("n1")) == 0);
    CU_ASSERT(put(&f, POD("a", "3", "", "")) == 0);
    CU_ASSERT(put(&f, POD("b", "3", "", "")) == 0); /* as late as a, and yet behind it */
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(node_of(&f, "a"), "n1");
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 0);
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_EQUAL(place_of(&f, "b"), BH_Q_UNSCHEDULABLE);
    CU_ASSERT_FALSE(bh_offline_attempt(&f.w));
    bh_offline_del(&f.w, BH_KIND_POD, "default", "a");
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(node_of(&f, "b"), "n1");
    CU_ASSERT_EQUAL(f.w.decisions, 3);
    fixture_fini(&f);
}

static void test_preemption(void)
{
    struct fixture f;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, NODE("n1")) == 0);
    CU_ASSERT(put(&f, POD("low", "3", ", nodeName: n1", "")) == 0);
    CU_ASSERT(put(&f, POD("high", "3", ", priority: 10", "")) == 0);
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(node_of(&f, "low"), "");
    CU_ASSERT_TRUE(promised(&f, "high"));
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(node_of(&f, "high"), "n1");
    CU_ASSERT_FALSE(promised(&f, "high"));
    fixture_fini(&f);
}

#define USES_CLAIM ", volumes: [{name: v, persistentVolumeClaim: {claimName: solo}}]"

/* No nomination keeps a ReadWriteOncePod claim: the preemptor is tried before pods that wait for it. */
static void test_preemptor_is_tried_before_pods_that_wait_for_the_same_claim(void)
{
    struct fixture f;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, NODE("n1")) == 0 && put(&f, NODE("n2")) == 0);
    CU_ASSERT(put(&f,
                  "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv, uid: pv}, spec: "
                  "{accessModes: [ReadWriteOncePod], claimRef: {namespace: default, name: solo, "
                  "uid: solo}, csi: {driver: d, volumeHandle: h}}}") == 0);
    CU_ASSERT(put(&f, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: solo, "
                      "namespace: default, uid: solo, annotations: "
                      "{pv.kubernetes.io/bind-completed: 'yes'}}, spec: {accessModes: "
                      "[ReadWriteOncePod], volumeName: pv}, status: {phase: Bound}}") == 0);
    CU_ASSERT(put(&f, POD("holder", "1", ", nodeName: n1, priority: 1" USES_CLAIM, "")) == 0);
    CU_ASSERT(put(&f, POD("same", "1", ", priority: 1" USES_CLAIM, "")) == 0);
    CU_ASSERT(put(&f, POD("vip", "1", ", priority: 10" USES_CLAIM, "")) == 0);
    while (bh_offline_attempt(&f.w))
        ;
    CU_ASSERT_STRING_EQUAL(node_of(&f, "holder"), "");
    CU_ASSERT_STRING_EQUAL(node_of(&f, "vip"), "n1");
    CU_ASSERT_EQUAL(place_of(&f, "same"), BH_Q_UNSCHEDULABLE); /* it was not placed and evicted */
    fixture_fini(&f);
}

/* Room that was promised to a pod that goes is others', and they hear of it. */
static void test_promise(void)
{
    struct fixture f;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, NODE("n1")) == 0);
    CU_ASSERT(put(&f, POD("gated", "3", ", priority: 10, schedulingGates: [{name: g}]",
                          "nominatedNodeName: n1")) == 0);
    CU_ASSERT(put(&f, POD("waits", "3", "", "")) == 0);
    CU_ASSERT_TRUE(promised(&f, "gated"));
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_EQUAL(place_of(&f, "waits"), BH_Q_UNSCHEDULABLE);
    bh_offline_del(&f.w, BH_KIND_POD, "default", "gated");
    CU_ASSERT_FALSE(promised(&f, "gated"));
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(node_of(&f, "waits"), "n1");
    fixture_fini(&f);
}

static void test_withdrawn(void)
{
    struct fixture f;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, NODE("n1")) == 0);
    CU_ASSERT(put(&f, POD("low", "3", ", nodeName: n1", "")) == 0);
    CU_ASSERT(put(&f, POD("middle", "1", ", priority: 5, schedulingGates: [{name: g}]",
                          "nominatedNodeName: n1")) == 0);
    CU_ASSERT(put(&f, POD("high", "4", ", priority: 10", "")) == 0);
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_TRUE(promised(&f, "high"));
    CU_ASSERT_FALSE(promised(&f, "middle"));
    CU_ASSERT_EQUAL(place_of(&f, "middle"), BH_Q_GATED);
    fixture_fini(&f);
}

/* A pod that goes between assume and bind gives back its room. */
static void test_assumed(void)
{
    const struct bh_status *refused = NULL;
    struct fixture f;
    bh_sym node;

    fixture_init(&f, &plain);
    CU_ASSERT(put(&f, NODE("n1")) == 0);
    CU_ASSERT(put(&f, POD("a", "3", "", "")) == 0);
    const struct bh_queued_pod *q = bh_queue_pop(f.w.queue, f.w.now_ns);
    CU_ASSERT_PTR_NOT_NULL_FATAL(q);
    CU_ASSERT_EQUAL(bh_offline_decide(&f.w, &q->pending, &node, &refused)->kind, BH_DECIDED);
    CU_ASSERT_PTR_NULL(refused);
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 1);
    bh_offline_del(&f.w, BH_KIND_POD, "default", "a");
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 0);
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_NONE);
    fixture_fini(&f);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static void on_tried(void *arg, const struct bh_offline_try *t)
{
    struct fixture *f = arg;

    f->tried++;
    snprintf(f->said, sizeof f->said, "%s: %s", bh_rec_text(t->pod, t->pod->name).p,
             t->failed ? t->failed->message : bh_sym_text(bh_engine_symtab(f->w.engine), t->node));
}

static void on_bind(void *arg, const struct bh_pending *p, bh_sym node)
{
    struct fixture *f = arg;

    (void)p;
    (void)node;
    f->bound++;
}

static void on_evict(void *arg, const char *ns, const char *name)
{
    struct fixture *f = arg;

    f->evicted++;
    CU_ASSERT_STRING_EQUAL(ns, "default");
    CU_ASSERT_STRING_EQUAL(name, "low");
}

static void test_hooks(void)
{
    struct bh_offline_options o = plain;
    struct fixture f;

    o.hooks = (struct bh_offline_hooks){.tried = on_tried, .bind = on_bind, .evict = on_evict};
    fixture_init(&f, &o);
    CU_ASSERT(put(&f, NODE("n1")) == 0);
    CU_ASSERT(put(&f, POD("low", "3", ", nodeName: n1", "")) == 0);
    CU_ASSERT(put(&f, POD("high", "3", ", priority: 10", "")) == 0);
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_EQUAL(f.evicted, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(f.said, "high: 0/1 nodes are available: 1 Insufficient cpu."));
    CU_ASSERT_STRING_EQUAL(node_of(&f, "low"), "n1"); /* until its deletion is put */
    bh_offline_del(&f.w, BH_KIND_POD, "default", "low");
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(f.said, "high: n1");
    CU_ASSERT_EQUAL(f.bound, 1);
    CU_ASSERT_EQUAL(place_of(&f, "high"), BH_Q_BINDING);
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 1);
    CU_ASSERT(put(&f, POD("high", "3", ", priority: 10, nodeName: n1", "")) == 0);
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 0);
    CU_ASSERT_EQUAL(place_of(&f, "high"), BH_Q_NONE);
    CU_ASSERT_EQUAL(f.tried, 2);
    fixture_fini(&f);
}

/* Each change is tried in the world itself: it is as before afterwards. */
static void test_fixes_leave_no_trace(void)
{
    static const char text[] = POD("p", "6", ", nodeSelector: {disk: ssd}", "phase: Pending");
    struct bh_offline_options o = plain;
    struct fixture f;
    struct bh_json *pod;
    struct bh_offline_object x;

    o.no_queue = true;
    fixture_init(&f, &o);
    f.w.engine->cache.annotations.wanted = BH_ANNOTATIONS_NODES; /* as some plugin asks for them */
    CU_ASSERT_EQUAL(put(&f, NODE("n1")), 0);
    CU_ASSERT_EQUAL(put(&f,
                        "{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {disk: ssd}, "
                        "annotations: {x/ok: 'yes'}}, "
                        "spec: {unschedulable: true, taints: [{key: a, effect: NoSchedule}]}, "
                        "status: {allocatable: {cpu: 5, memory: 8Gi, pods: 10}}}"),
                    0);
    CU_ASSERT_FATAL(bh_yaml_parse(&f.a, text, strlen(text), 0, &pod, &f.err) == 0);
    CU_ASSERT_FATAL(bh_offline_read(f.w.engine, &f.a, &bh_kinds[BH_KIND_POD], pod, &x, &f.err) ==
                    0);
    const struct bh_pending p = {.pod = x.pod, .shape = bh_engine_shape(f.w.engine, x.shape)};
    struct bh_json *before = bh_offline_explain(&f.w, &p, &f.a);
    struct bh_json *fixes = bh_offline_fixes(&f.w, &f.a, pod, before);
    CU_ASSERT_TRUE(bh_json_equal(before, bh_offline_explain(&f.w, &p, &f.a)));
    CU_ASSERT_EQUAL(bh_engine_node_count(f.w.engine), 2);
    CU_ASSERT_TRUE(
        bh_str_eqc(bh_annotations_get(&f.w.engine->cache.annotations, BH_ANNOTATIONS_NODES,
                                      bh_str_c("n2"), bh_str_c("x/ok")),
                   "yes"));
    CU_ASSERT_TRUE(bh_json_get_bool(fixes, "pairs", false)); /* selector and size, say */
    const struct bh_json *best = bh_json_at(bh_json_get_list(fixes, "fixes"), 0);
    CU_ASSERT_TRUE(bh_json_get_bool(best, "fits", false));
    CU_ASSERT_PTR_NOT_NULL(strstr(bh_json_get_text(best, "text"), ", and "));
    CU_ASSERT_PTR_NOT_NULL(bh_json_get_list(best, "commands"));
    bh_engine_shape_unref(f.w.engine, p.shape);
    fixture_fini(&f);
}

/* Who took the advice and asks again gets another node, and keeps the one there is. */
static void test_fixes_name_new_nodes(void)
{
    static const char text[] = POD("p", "3", "", "phase: Pending");
    struct bh_offline_options o = plain;
    struct bh_offline_object x;
    struct bh_json *pod;
    struct fixture f;
    unsigned n = 0;

    o.no_queue = true;
    fixture_init(&f, &o);
    CU_ASSERT_EQUAL(put(&f, NODE("one-more-node")), 0);
    CU_ASSERT_EQUAL(put(&f, POD("there", "2", ", nodeName: one-more-node", "")), 0);
    CU_ASSERT_FATAL(bh_yaml_parse(&f.a, text, strlen(text), 0, &pod, &f.err) == 0);
    CU_ASSERT_FATAL(bh_offline_read(f.w.engine, &f.a, &bh_kinds[BH_KIND_POD], pod, &x, &f.err) ==
                    0);
    const struct bh_pending p = {.pod = x.pod, .shape = bh_engine_shape(f.w.engine, x.shape)};
    struct bh_json *before = bh_offline_explain(&f.w, &p, &f.a);
    struct bh_json *fixes = bh_offline_fixes(&f.w, &f.a, pod, before);
    bh_json_each(fix, bh_json_get_list(fixes, "fixes")) {
        bh_json_each(node, bh_json_get_list(fix, "create")) {
            const char *name = bh_json_get_text(bh_json_get(node, "metadata"), "name");
            n += bh_streq(name, "one-more-node-2");
            CU_ASSERT_STRING_NOT_EQUAL(name, "one-more-node");
            CU_ASSERT_TRUE(bh_json_get_bool(fix, "fits", false));
        }
    }
    CU_ASSERT_EQUAL(n, 1);
    CU_ASSERT_EQUAL(bh_engine_node_count(f.w.engine), 1);
    CU_ASSERT_TRUE(bh_json_equal(before, bh_offline_explain(&f.w, &p, &f.a)));
    bh_engine_shape_unref(f.w.engine, p.shape);
    fixture_fini(&f);
}

/* The fix whose text starts so; NULL: there is none. */
static const struct bh_json *find_fix(struct fixture *f, const char *text, const char *fix)
{
    struct bh_offline_object x;
    const struct bh_json *ret = NULL;
    struct bh_json *pod;

    CU_ASSERT_FATAL(bh_yaml_parse(&f->a, text, strlen(text), 0, &pod, &f->err) == 0);
    CU_ASSERT_FATAL(bh_offline_read(f->w.engine, &f->a, &bh_kinds[BH_KIND_POD], pod, &x, &f->err) ==
                    0);
    const struct bh_pending p = {.pod = x.pod, .shape = bh_engine_shape(f->w.engine, x.shape)};
    struct bh_json *before = bh_offline_explain(&f->w, &p, &f->a);
    struct bh_json *fixes = bh_offline_fixes(&f->w, &f->a, pod, before);
    bh_json_each(x_fix, bh_json_get_list(fixes, "fixes"))
        if (!ret && strncmp(bh_json_get_text(x_fix, "text"), fix, strlen(fix)) == 0)
            ret = x_fix;
    bh_engine_shape_unref(f->w.engine, p.shape);
    return ret;
}

#define FIX_NODE(name, labels, cpu, spec)                                                          \
    "{apiVersion: v1, kind: Node, metadata: {name: " name ", labels: {" labels "}}, spec: {" spec  \
    "}, status: {allocatable: {cpu: \"" cpu "\", memory: 8Gi, pods: \"10\"}}}"

/* The largest node is tainted, the smallest is full: the one that rejects the pod for its labels alone
 * gets them. */
static void test_label_fix_takes_node_that_rejects_for_labels_alone(void)
{
    struct bh_offline_options o = plain;
    const struct bh_json *fix;
    struct fixture f;

    o.no_queue = true;
    fixture_init(&f, &o);
    CU_ASSERT_EQUAL(
        put(&f, FIX_NODE("large", "zone: a", "64", "taints: [{key: gpu, effect: NoSchedule}]")), 0);
    CU_ASSERT_EQUAL(put(&f, FIX_NODE("small", "zone: b", "1", "")), 0);
    CU_ASSERT_EQUAL(put(&f, FIX_NODE("good", "disktype: hdd", "4", "")), 0);
    fix = find_fix(&f, POD("p", "3", ", nodeSelector: {disktype: nvme0}", "phase: Pending"),
                   "label ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(fix, "text"),
                           "label good disktype=nvme0, as the pod requires");
    CU_ASSERT_TRUE(bh_json_get_bool(fix, "fits", false));
    fix =
        find_fix(&f,
                 POD("p", "3",
                     ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                     "{nodeSelectorTerms: [{matchExpressions: [{key: tier, operator: In, values: "
                     "[gold, silver]}, {key: disktype, operator: DoesNotExist}]}]}}}",
                     "phase: Pending"),
                 "label ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(fix, "text"),
                           "label good tier=gold disktype-, as the pod requires");
    CU_ASSERT_TRUE(bh_json_get_bool(fix, "fits", false));
    fix = find_fix(&f, POD("p", "3", ", nodeSelector: {disktype: nvme0}", "phase: Pending"),
                   "one more node");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix); /* the smallest that is large enough */
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(fix, "text"),
                           "one more node like good, without taints");
    /* A label that states where a machine is does not become another by advice. */
    fix =
        find_fix(&f, POD("p", "3", ", nodeSelector: {kubernetes.io/arch: arm64}", "phase: Pending"),
                 "label ");
    CU_ASSERT_PTR_NULL(fix);
    fixture_fini(&f);
}

static void test_near_label_of_nodes_is_offered_in_place_of_the_required_one(void)
{
    struct bh_offline_options o = plain;
    const struct bh_json *fix;
    struct fixture f;

    o.no_queue = true;
    fixture_init(&f, &o);
    CU_ASSERT_EQUAL(put(&f, FIX_NODE("n1", "disktype: ssd", "4", "")), 0);
    CU_ASSERT_EQUAL(put(&f, FIX_NODE("n2", "disktype: ssd", "4", "")), 0);
    CU_ASSERT_EQUAL(put(&f, FIX_NODE("n3", "disktype: tape", "4", "")), 0);
    fix = find_fix(&f, POD("p", "3", ", nodeSelector: {disktype: sdd}", "phase: Pending"),
                   "node selector ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(fix, "text"),
                           "node selector disktype=ssd instead of disktype=sdd (2 nodes have it)");
    CU_ASSERT_TRUE(bh_json_get_bool(fix, "fits", false));
    fix = find_fix(&f, POD("p", "3", ", nodeSelector: {diskType: ssd}", "phase: Pending"),
                   "node selector ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(fix, "text"),
                           "node selector disktype=ssd instead of diskType=ssd (2 nodes have it)");
    CU_ASSERT_TRUE(bh_json_get_bool(fix, "fits", false));
    fix = find_fix(&f,
                   POD("p", "3",
                       ", affinity: {nodeAffinity: "
                       "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                       "[{matchExpressions: [{key: disktype, operator: In, values: [sdd]}]}]}}}",
                       "phase: Pending"),
                   "node affinity ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_TRUE(bh_json_get_bool(fix, "fits", false));
    fix = find_fix(&f, POD("p", "3", ", nodeSelector: {disktype: floppy}", "phase: Pending"),
                   "node selector ");
    CU_ASSERT_PTR_NULL(fix);
    fixture_fini(&f);
}

#define SIBLING(name, more)                                                                        \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: default, uid: " name        \
    ", labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, "  \
    "uid: w, controller: true}]}, spec: {schedulerName: default-scheduler, affinity: "             \
    "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: "         \
    "{matchLabels: {app: web}}, topologyKey: kubernetes.io/hostname}]}}, containers: [{name: c, "  \
    "resources: {requests: {cpu: \"1\"}}}]" more "}}"

/* The sibling that is in the way gets the higher priority as well. */
static void test_priority_fix_does_not_evict_siblings_of_the_same_template(void)
{
    struct bh_offline_options o = plain;
    const struct bh_json *fix;
    bh_shape_id shape;
    struct fixture f;

    o.no_queue = true;
    fixture_init(&f, &o);
    CU_ASSERT_EQUAL(put(&f, FIX_NODE("n1", "kubernetes.io/hostname: n1", "4", "")), 0);
    CU_ASSERT_EQUAL(put(&f, SIBLING("a", ", nodeName: n1")), 0);
    fix = find_fix(&f, SIBLING("b", ""), "a higher priority");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_FALSE(bh_json_get_bool(fix, "fits", true));
    fix = find_fix(&f, SIBLING("b", ""), "no required pod anti-affinity");
    CU_ASSERT_PTR_NOT_NULL_FATAL(fix);
    CU_ASSERT_TRUE(bh_json_get_bool(fix, "fits", false));
    /* The sibling is as it was. */
    CU_ASSERT_PTR_NOT_NULL_FATAL(bh_engine_find_pod(f.w.engine, bh_str_c("a"), &shape));
    CU_ASSERT_EQUAL(bh_engine_shape_rec(f.w.engine, shape)->priority, 0);
    CU_ASSERT_EQUAL(bh_engine_shape_rec(f.w.engine, shape)->anti_affinity.n, 1);
    fixture_fini(&f);
}

/* A pod of app on n; made by a controller of that kind, "" = by none. */
static void put_app(struct fixture *f, const char *name, const char *app, const char *owner,
                    const char *spec)
{
    BH_CLEANUP(bh_freep)
    char *text = bh_asprintf(
        "{apiVersion: v1, kind: Pod, metadata: {name: %s, namespace: default, uid: %s, labels: "
        "{app: "
        "%s}, ownerReferences: [%s]}, spec: {schedulerName: default-scheduler, containers: [{name: "
        "c, resources: {requests: {cpu: 1}}}], %s}}",
        name, name, app, owner, spec);

    CU_ASSERT_EQUAL(put(f, text), 0);
}

#define OWNER(version, kind)                                                                       \
    "{apiVersion: " version ", kind: " kind ", name: x, uid: x, controller: true}"
#define OF_JOB OWNER("batch/v1", "Job")

static void put_budget(struct fixture *f, const char *name, const char *app, int allowed)
{
    BH_CLEANUP(bh_freep)
    char *text =
        bh_asprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s, "
                    "namespace: default}, "
                    "spec: {selector: {matchLabels: {app: %s}}}, status: {disruptionsAllowed: %d}}",
                    name, app, allowed);

    CU_ASSERT_EQUAL(put(f, text), 0);
}

static const char *why_kept(const struct bh_json *plan, const char *node)
{
    bh_json_each(v, bh_json_get_list(plan, "kept"))
        if (bh_streq(bh_json_get_text(v, "node"), node))
            return bh_json_get_text(v, "reason");
    return "";
}

/* One node for each reason to stay, and one that may go. */
static void test_rebalance_keeps(void)
{
    static const struct {
        const char *node, *why;
    } rows[] = {
        {"bare", "pod default/bare: no controller would make it anew"},
        {"none", "pod default/none: the disruption budget none allows none"},
        {"two", "pod default/two: more than one disruption budget covers it, so the eviction API "
                "refuses"},
        {"gang", "pod default/gang: it belongs to a pod group"},
        {"other", "pod default/other: scheduler other places it"},
        {"claims", "pod default/claims: it has resource claims"},
        {"room", "no room for its pods elsewhere"},
    };
    const struct bh_rebalance_options ro = {.nodes = NULL};
    struct bh_offline_options o = plain;
    struct fixture f;

    o.no_queue = true;
    fixture_init(&f, &o);
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        BH_CLEANUP(bh_freep)
        char *node = bh_asprintf("{apiVersion: v1, kind: Node, metadata: {name: %s}, status: "
                                 "{allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}",
                                 rows[i].node);
        CU_ASSERT_EQUAL(put(&f, node), 0);
    }
    CU_ASSERT_EQUAL(put(&f, NODE("goes")), 0);
    CU_ASSERT_EQUAL(put(&f, NODE("empty")), 0);
    put_budget(&f, "none", "none", 0);
    put_budget(&f, "first", "two", 9);
    put_budget(&f, "second", "two", 9);
    put_budget(&f, "one", "one", 1);
    put_app(&f, "bare", "x", "", "nodeName: bare");
    put_app(&f, "none", "none", OF_JOB, "nodeName: none");
    put_app(&f, "two", "two", OF_JOB, "nodeName: two");
    put_app(&f, "gang", "x", OF_JOB, "nodeName: gang, schedulingGroup: {podGroupName: g}");
    put_app(&f, "claims", "x", OF_JOB,
            "nodeName: claims, resourceClaims: [{name: a, resourceClaimName: a}]");
    CU_ASSERT_EQUAL(put(&f,
                        "{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: default, "
                        "uid: other, ownerReferences: [" OF_JOB
                        "]}, spec: {nodeName: other, schedulerName: other, containers: [{name: "
                        "c}]}}"),
                    0);
    put_app(&f, "daemon", "x", OWNER("apps/v1", "DaemonSet"), "nodeName: empty");
    put_app(&f, "mirror", "x", OWNER("v1", "Node"), "nodeName: empty");
    put_app(&f, "goes-1", "one", OF_JOB, "nodeName: goes");
    put_app(&f, "goes-2", "one", OF_JOB, "nodeName: goes");
    for (int i = 0; i < 4; i++) {
        char name[] = {'r', (char)('0' + i), '\0'};
        put_app(&f, name, "x", OF_JOB, "nodeName: room, nodeSelector: {there: is-none}");
    }
    const struct bh_json *plan = bh_offline_free_nodes(&f.w, &f.a, &ro);
    for (size_t i = 0; i + 1 < BH_ARRAY_LEN(rows); i++)
        CU_ASSERT_STRING_EQUAL(why_kept(plan, rows[i].node), rows[i].why);
    CU_ASSERT_PTR_NOT_NULL(strstr(why_kept(plan, "room"), "didn't match Pod's node affinity"));
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_at(bh_json_get_list(plan, "free"), 0)), "goes");
    CU_ASSERT_PTR_NULL(bh_json_at(bh_json_get_list(plan, "free"), 1));
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_at(bh_json_get_list(plan, "empty"), 0)), "empty");
    CU_ASSERT_EQUAL(bh_json_get_i64(plan, "waves", 0), 2); /* of one budget that allows one */
    fixture_fini(&f);
}

/* Room is made by moving, never by pods that cannot be moved, and by as few as preemption takes. */
static void test_make_room(void)
{
    static const char text[] = POD("big", "4", ", preemptionPolicy: Never", "phase: Pending");
    const struct bh_rebalance_options ro = {.nodes = NULL};
    struct bh_offline_options o = plain;
    struct bh_offline_object x;
    struct fixture f;
    struct bh_json *pod;

    o.no_queue = true;
    fixture_init(&f, &o);
    CU_ASSERT_EQUAL(put(&f, NODE("held")), 0);
    CU_ASSERT_EQUAL(put(&f, NODE("n1")), 0);
    CU_ASSERT_EQUAL(put(&f, NODE("n2")), 0);
    put_app(&f, "bare", "x", "", "nodeName: held");
    put_app(&f, "a", "x", OF_JOB, "nodeName: n1");
    put_app(&f, "b", "x", OF_JOB, "nodeName: n2");
    put_app(&f, "c", "x", OF_JOB, "nodeName: n2");
    CU_ASSERT_FATAL(bh_yaml_parse(&f.a, text, strlen(text), 0, &pod, &f.err) == 0);
    CU_ASSERT_FATAL(bh_offline_read(f.w.engine, &f.a, &bh_kinds[BH_KIND_POD], pod, &x, &f.err) ==
                    0);
    const struct bh_pending p = {.pod = x.pod, .shape = bh_engine_shape(f.w.engine, x.shape)};
    const struct bh_json *plan = bh_offline_make_room(&f.w, &f.a, &ro, &p, 1, &f.err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(plan);
    const struct bh_json *m = bh_json_at(bh_json_get_list(plan, "moves"), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(m, "name"), "a");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(bh_json_at(bh_json_get_list(plan, "place"), 0), "node"),
                           "n1");
    CU_ASSERT_PTR_NULL(bh_json_at(bh_json_get_list(plan, "moves"), 1));
    bh_engine_shape_unref(f.w.engine, p.shape);
    fixture_fini(&f);
}

/* ---- groups ---------------------------------------------------------------------------------- */

#define GANG_GATES "GenericWorkload=true,GangScheduling=true"
#define GANG_NODE(n)                                                                               \
    "{apiVersion: v1, kind: Node, metadata: {name: " n ", labels: {rack: of-" n                    \
    "}}, status: {allocatable: {cpu: \"2\", memory: 8Gi, pods: \"10\"}}}"
#define GANG_POD(name) POD(name, "1", ", schedulingGroup: {podGroupName: g}", "")

static int put_gang(struct fixture *f, const char *min, const char *more)
{
    return put(f, bh_arena_printf(&f->a,
                                  "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, "
                                  "metadata: {name: g, namespace: default, uid: g}, spec: "
                                  "{schedulingPolicy: {gang: {minCount: %s}}%s}}",
                                  min, more));
}

static void on_grouped(void *arg, const struct bh_offline_group *g)
{
    struct fixture *f = arg;

    f->tried++;
    snprintf(f->said, sizeof f->said, "%s/%s %u: %s", g->ns, g->name, g->members,
             g->result->message);
}

static void run_all(struct fixture *f)
{
    while (bh_offline_attempt(&f->w))
        ;
}

/* Two of three have room: nobody goes, however often the queue is asked; a node more, and all do. */
static void test_gang(void)
{
    struct bh_offline_options o = plain;
    struct fixture f;

    o.hooks.grouped = on_grouped;
    fixture_init_with(&f, &o, GANG_GATES);
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n1")), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("a")), 0);
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_GATED); /* there is no such group */
    CU_ASSERT_EQUAL(put_gang(&f, "3", ""), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("b")), 0);
    run_all(&f);
    CU_ASSERT_EQUAL(place_of(&f, "b"), BH_Q_GATED); /* it is not complete */
    CU_ASSERT_EQUAL(f.tried, 0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("c")), 0);
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(f.said, "default/g 3: pod group is unschedulable");
    CU_ASSERT_EQUAL(f.tried, 1); /* nothing has changed since */
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n2")), 0);
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(f.said, "default/g 3: ");
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 3);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "b"), "n2");
    CU_ASSERT_EQUAL(place_of(&f, "c"), BH_Q_NONE);
    fixture_fini(&f);
}

/* All of them on one node of a rack, or nowhere; whichever version of the API the group is of. */
static void test_gang_placement(void)
{
    struct bh_offline_options o = plain;
    struct fixture f;

    o.hooks.grouped = on_grouped;
    fixture_init_with(&f, &o, GANG_GATES ",TopologyAwareWorkloadScheduling=true");
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n1")), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n2")), 0);
    CU_ASSERT_EQUAL(put(&f, POD("x", "1", ", nodeName: n1", "")), 0);
    CU_ASSERT_EQUAL(put(&f, POD("z", "1", ", nodeName: n2", "")), 0);
    CU_ASSERT_EQUAL(put(&f, "{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: "
                            "{name: g, namespace: default, uid: g}, spec: {schedulingPolicy: "
                            "{gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: "
                            "rack}]}}}"),
                    0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("a")), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("b")), 0);
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(f.said, "default/g 2: 0/2 placements are available, first placement "
                                   "status: pod group is unschedulable");
    bh_offline_del(&f.w, BH_KIND_POD, "default", "z");
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "a"), "n2");
    CU_ASSERT_STRING_EQUAL(node_of(&f, "b"), "n2");
    fixture_fini(&f);
}

/* The group's victims leave, and it has their place, in the same run. */
static void test_gang_preemption(void)
{
    struct bh_offline_options o = plain;
    struct fixture f;

    o.hooks.grouped = on_grouped;
    fixture_init_with(&f, &o, GANG_GATES ",WorkloadAwarePreemption=true");
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n1")), 0);
    CU_ASSERT_EQUAL(put(&f, POD("x", "1", ", nodeName: n1, priority: 1", "")), 0);
    CU_ASSERT_EQUAL(put_gang(&f, "2", ", priority: 100"), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("a")), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("b")), 0);
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "x"), "");
    CU_ASSERT_STRING_EQUAL(node_of(&f, "a"), "n1");
    CU_ASSERT_STRING_EQUAL(node_of(&f, "b"), "n1");
    CU_ASSERT_EQUAL(f.tried, 2);
    fixture_fini(&f);
}

/* The fix with that text; "fits: ..." or what is still missing. */
static const char *outcome_of(const struct bh_json *doc, const char *text)
{
    bh_json_each(x, bh_json_get_list(bh_json_get(doc, "fixes"), "fixes"))
        if (bh_streq(bh_json_get_text(x, "text"), text))
            return bh_json_get_text(x, "outcome");
    return "not tried";
}

struct gang { /* its members, as an observer of a running system has them */
    const char *objects[5];
    struct bh_pending v[5];
    struct bh_offline_members m;
};

static void gang_init(struct gang *g, struct fixture *f, unsigned n)
{
    struct bh_offline_object x;
    struct bh_json *pod;

    for (unsigned i = 0; i < n; i++) {
        g->objects[i] = bh_arena_printf(
            &f->a,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"m%u\","
            "\"namespace\":\"default\",\"uid\":\"m%u\"},\"spec\":{\"schedulerName\":"
            "\"default-scheduler\",\"schedulingGroup\":{\"podGroupName\":\"g\"},"
            "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
            i, i);
        CU_ASSERT_FATAL(
            bh_json_parse(&f->a, g->objects[i], strlen(g->objects[i]), 0, &pod, &f->err) == 0);
        CU_ASSERT_FATAL(
            bh_offline_read(f->w.engine, &f->a, &bh_kinds[BH_KIND_POD], pod, &x, &f->err) == 0);
        g->v[i] = (struct bh_pending){.pod = x.pod, .shape = bh_engine_shape(f->w.engine, x.shape)};
        bh_engine_waits(f->w.engine, &g->v[i], true);
    }
    g->m = (struct bh_offline_members){
        .ns = "default", .name = "g", .v = g->v, .objects = g->objects, .n = n};
}

static void gang_fini(struct gang *g, struct fixture *f)
{
    for (unsigned i = 0; i < g->m.n; i++) {
        bh_engine_waits(f->w.engine, &g->v[i], false);
        bh_engine_shape_unref(f->w.engine, g->v[i].shape);
    }
}

/* A gang of five on room for two: what would make all of it fit, and the world is as it was. */
static void test_gang_fixes(void)
{
    struct bh_offline_options o = plain;
    struct bh_json *doc = NULL;
    struct fixture f;
    struct gang g;

    o.no_queue = true;
    fixture_init_with(&f, &o, GANG_GATES);
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n1")), 0);
    CU_ASSERT_EQUAL(put_gang(&f, "5", ""), 0);
    gang_init(&g, &f, 5);
    CU_ASSERT_EQUAL_FATAL(bh_offline_explain_group(&f.w, &f.a, &g.m, true, &doc, &f.err), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(doc, "result"), "Unschedulable");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(doc, "fixesFor"), "m2");
    CU_ASSERT_STRING_EQUAL(outcome_of(doc, "2 more nodes like n1, without taints"),
                           "fits: all members have room");
    CU_ASSERT_STRING_EQUAL(outcome_of(doc, "one more node like n1, without taints"),
                           "still room for 4 of 5: 0/2 nodes are available: 2 Insufficient cpu.");
    CU_ASSERT_STRING_EQUAL(outcome_of(doc, "500m cpu (half) instead of 1"),
                           "still room for 4 of 5: 0/1 nodes are available: 1 Insufficient cpu.");
    CU_ASSERT_EQUAL(put(&f, POD("low", "1", ", nodeName: n1, priority: -1", "")), 0);
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 1); /* nobody was left behind */
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n2")), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n3")), 0);
    CU_ASSERT_EQUAL_FATAL(bh_offline_explain_group(&f.w, &f.a, &g.m, true, &doc, &f.err), 0);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(doc, "result"), "Fits");
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 1); /* and its members are taken back */
    gang_fini(&g, &f);
    fixture_fini(&f);
}

/* Victims are the members' own, or with WorkloadAwarePreemption the group's, whose priority counts. */
static void test_gang_fix_by_priority(void)
{
    static const char *const gates[] = {GANG_GATES, GANG_GATES ",WorkloadAwarePreemption=true"};
    struct bh_offline_options o = plain;
    struct bh_json *doc = NULL;
    struct fixture f;
    struct gang g;

    o.no_queue = true;
    for (size_t i = 0; i < BH_ARRAY_LEN(gates); i++) {
        fixture_init_with(&f, &o, gates[i]);
        CU_ASSERT_EQUAL(put(&f, GANG_NODE("n1")), 0);
        CU_ASSERT_EQUAL(put(&f, POD("low", "1", ", nodeName: n1", "")), 0);
        CU_ASSERT_EQUAL(put_gang(&f, "2", ""), 0);
        gang_init(&g, &f, 2);
        CU_ASSERT_EQUAL_FATAL(bh_offline_explain_group(&f.w, &f.a, &g.m, true, &doc, &f.err), 0);
        CU_ASSERT_STRING_EQUAL(bh_json_get_text(doc, "result"), "Unschedulable");
        CU_ASSERT_STRING_EQUAL(outcome_of(doc, "a higher priority: evicts others"),
                               "fits after evicting 1 pod: default/low");
        CU_ASSERT_STRING_EQUAL(node_of(&f, "low"), "n1"); /* nothing happened */
        CU_ASSERT_EQUAL_FATAL(bh_offline_explain_group(&f.w, &f.a, &g.m, false, &doc, &f.err), 0);
        CU_ASSERT_STRING_EQUAL(bh_json_get_text(doc, "result"), "Unschedulable");
        gang_fini(&g, &f);
        fixture_fini(&f);
    }
}

/* An error that is the group's ends its members' wait: the same again would be the same again. */
static void test_gang_of_two_profiles(void)
{
    static const char other[] =
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: "
        "[{schedulerName: default-scheduler}, {schedulerName: other}]}";
    struct bh_offline_options o = plain;
    struct bh_json *tree = NULL;
    struct fixture f;

    fixture_init(&f, &plain);
    bh_offline_fini(&f.w);
    bh_sched_config_free(f.config);
    CU_ASSERT_FATAL(bh_yaml_parse(&f.a, other, strlen(other), 0, &tree, &f.err) == 0);
    CU_ASSERT_FATAL(bh_sched_config_new(tree, &f.config, &f.err) == 0);
    CU_ASSERT_FATAL(bh_feature_gates_parse(&f.gates, GANG_GATES, &f.err) == 0);
    bh_sched_config_apply_gates(f.config, &f.gates);
    o.config = f.config;
    o.hooks = (struct bh_offline_hooks){.grouped = on_grouped, .arg = &f};
    CU_ASSERT_FATAL(bh_offline_init(&f.w, &o, &f.err) == 0);
    CU_ASSERT_EQUAL(put(&f, GANG_NODE("n1")), 0);
    CU_ASSERT_EQUAL(put_gang(&f, "2", ""), 0);
    CU_ASSERT_EQUAL(put(&f, GANG_POD("a")), 0);
    CU_ASSERT_EQUAL(put(&f, "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: default, "
                            "uid: b}, spec: {schedulerName: other, schedulingGroup: "
                            "{podGroupName: g}, containers: [{name: c}]}}"),
                    0);
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(f.said,
                           "default/g 2: all pods in a single pod group should have the same "
                           ".spec.schedulerName set, got: \"other\" and \"default-scheduler\"");
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_NONE);
    CU_ASSERT_EQUAL(bh_engine_pod_count(f.w.engine), 0);
    fixture_fini(&f);
}

/* ---- waiting at Permit ----------------------------------------------------------------------- */

/* reject: how many percent of the group may lack a node, before it is given up. */
#define COSCHEDULING(reject)                                                                       \
    "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: ["   \
    "{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Coscheduling}]}, " \
    "queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: \"*\"}]}}, pluginConfig: ["    \
    "{name: Coscheduling, args: {podGroupRejectPercentage: " reject "}}]}]}"
#define LABELLED(name, more)                                                                       \
    "{apiVersion: v1, kind: Pod, metadata: {name: " name ", namespace: default, uid: " name        \
    ", labels: {scheduling.x-k8s.io/pod-group: g}}, spec: {schedulerName: default-scheduler, "     \
    "containers: [{name: c, resources: {requests: {cpu: \"3\"}}}]" more "}}"

static void on_waits(void *arg, const struct bh_pending *p, bh_sym node, const char *plugins)
{
    struct fixture *f = arg;

    snprintf(f->said, sizeof f->said, "%s on %s: %s", bh_rec_text(p->pod, p->pod->name).p,
             bh_sym_text(bh_engine_symtab(f->w.engine), node), plugins);
}

/* a has room, b has not. */
static void one_waits(struct fixture *f, bool events_only, const char *config)
{
    struct bh_offline_options o = plain;

    o.events_only = events_only;
    o.hooks = (struct bh_offline_hooks){.tried = on_tried, .waits = on_waits};
    fixture_init_as(f, &o, "", config);
    CU_ASSERT_EQUAL(put(f, NODE("n1")), 0);
    CU_ASSERT_EQUAL(put(f, "{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: "
                           "{name: g, namespace: default, uid: g}, spec: {minMember: 2, "
                           "scheduleTimeoutSeconds: 10}}"),
                    0);
    CU_ASSERT_EQUAL(put(f, LABELLED("a", "")), 0);
    CU_ASSERT_EQUAL(put(f, LABELLED("b", "")), 0);
    CU_ASSERT_TRUE(bh_offline_attempt(&f->w));
    CU_ASSERT_STRING_EQUAL(f->said, "a on n1: Coscheduling");
    CU_ASSERT_EQUAL(f->tried, 0);
    CU_ASSERT_EQUAL(place_of(f, "a"), BH_Q_WAITING);
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f->w.engine), 1);
    CU_ASSERT_TRUE(bh_offline_attempt(&f->w));
    CU_ASSERT_EQUAL(f->tried, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(f->said, "b: 0/1 nodes are available: 1 Insufficient cpu."));
}

static void test_permit_allowed(void)
{
    struct fixture f;

    one_waits(&f, true, COSCHEDULING("100"));
    CU_ASSERT_FALSE(bh_offline_attempt(&f.w)); /* no time-out where time stands still */
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_WAITING);
    CU_ASSERT_EQUAL(put(&f, NODE("n2")), 0);
    f.w.now_ns += INT64_C(2000000000); /* b's back-off */
    (void)bh_offline_due(&f.w);
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "a"), "n1");
    CU_ASSERT_STRING_EQUAL(node_of(&f, "b"), "n2");
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 0);
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_NONE);
    CU_ASSERT_EQUAL(f.tried, 3);
    fixture_fini(&f);
}

static void test_permit_times_out(void)
{
    struct fixture f;

    one_waits(&f, false, COSCHEDULING("100"));
    const int64_t due = bh_offline_due(&f.w), until = plain.now_ns + INT64_C(10000000000);
    CU_ASSERT_TRUE(due <= until);
    f.w.now_ns = until - 1;
    while (bh_offline_attempt(&f.w))
        ;
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_WAITING);
    f.w.now_ns = until;
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(f.said, "a: 0/1 nodes are available: 1 rejected due to timeout after "
                                   "waiting 10s at plugin Coscheduling.");
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 0);
    CU_ASSERT_NOT_EQUAL(place_of(&f, "a"), BH_Q_WAITING);
    CU_ASSERT_NOT_EQUAL(place_of(&f, "a"), BH_Q_NONE);
    fixture_fini(&f);
}

/* One that lacks too many gives the others' room back: a pod that waited for it goes, and with that
 * it ends. */
static void test_permit_rejected(void)
{
    struct fixture f;

    one_waits(&f, true, COSCHEDULING("10"));
    CU_ASSERT_EQUAL(put(&f, POD("x", "2", "", "")), 0);
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_WAITING);
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(f.said, "a: 0/1 nodes are available: 1 optimistic rejection in "
                                   "PostFilter.");
    run_all(&f);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "x"), "n1");
    CU_ASSERT_STRING_EQUAL(node_of(&f, "a"), "");
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 0);
    CU_ASSERT_TRUE(f.tried < 20);
    fixture_fini(&f);
}

/* It is deleted; it has a node by another hand; a pod of higher priority takes its room. */
static void test_permit_over(void)
{
    struct fixture f;

    one_waits(&f, true, COSCHEDULING("100"));
    bh_offline_del(&f.w, BH_KIND_POD, "default", "a");
    CU_ASSERT_EQUAL(bh_engine_assumed_count(f.w.engine), 0);
    CU_ASSERT_EQUAL(f.w.n_waiting, 0);
    fixture_fini(&f);

    one_waits(&f, true, COSCHEDULING("100"));
    CU_ASSERT_EQUAL(put(&f, LABELLED("a", ", nodeName: n1")), 0);
    CU_ASSERT_EQUAL(f.w.n_waiting, 0);
    CU_ASSERT_STRING_EQUAL(node_of(&f, "a"), "n1");
    CU_ASSERT_EQUAL(place_of(&f, "a"), BH_Q_NONE);
    fixture_fini(&f);

    one_waits(&f, true, COSCHEDULING("100"));
    CU_ASSERT_EQUAL(put(&f, POD("high", "4", ", priority: 10", "")), 0);
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(f.said, "a: waiting on permit for pod: preempted");
    CU_ASSERT_EQUAL(f.w.n_waiting, 0);
    CU_ASSERT_NOT_EQUAL(place_of(&f, "a"), BH_Q_NONE); /* not deleted */
    CU_ASSERT_TRUE(bh_offline_attempt(&f.w));
    CU_ASSERT_STRING_EQUAL(node_of(&f, "high"), "n1");
    fixture_fini(&f);

    one_waits(&f, true, COSCHEDULING("100")); /* and the world ends with it */
    fixture_fini(&f);
}

BH_TESTS("simulator/offline", {"objects become what the engine and the queue want", test_objects},
         {"what cannot be read changes nothing", test_refused},
         {"attempts go on until nothing more can change", test_attempts},
         {"victims are gone at once", test_preemption},
         {"the preemptor is tried before pods that wait for the same claim",
          test_preemptor_is_tried_before_pods_that_wait_for_the_same_claim},
         {"a promise ends with its pod, and others hear of it", test_promise},
         {"a preemptor takes the promise of pods below it", test_withdrawn},
         {"an assumed pod that goes gives back its room", test_assumed},
         {"an owner's hooks are asked instead of the engine", test_hooks},
         {"what would make a pod fit is tried, and taken back", test_fixes_leave_no_trace},
         {"a node that would make a pod fit has a name of its own", test_fixes_name_new_nodes},
         {"a node gets the labels that alone keep the pod from it",
          test_label_fix_takes_node_that_rejects_for_labels_alone},
         {"a higher priority evicts no siblings",
          test_priority_fix_does_not_evict_siblings_of_the_same_template},
         {"a similar label of nodes is offered",
          test_near_label_of_nodes_is_offered_in_place_of_the_required_one},
         {"rebalancing leaves what drain would leave, and says why", test_rebalance_keeps},
         {"room is made by moving pods that can be moved", test_make_room},
         {"a gang goes together, or stays", test_gang},
         {"a gang goes into one topology domain", test_gang_placement},
         {"a gang has the place of its victims", test_gang_preemption},
         {"what would make a whole gang fit is tried, and taken back", test_gang_fixes},
         {"a gang may fit with victims, its members' or its own", test_gang_fix_by_priority},
         {"a gang of two profiles is an error", test_gang_of_two_profiles},
         {"who waits at Permit goes when it is allowed", test_permit_allowed},
         {"who waits at Permit is given up in time", test_permit_times_out},
         {"who is rejected at Permit gives back its room", test_permit_rejected},
         {"what else ends waiting at Permit", test_permit_over})
