/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/queue/test_queue.c - places, backoff, events and gates with the real
 * engine's hints
 *
 * Times are arguments, so the tests run on a clock of their own; T0 is a whole second.
 */
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/queue/queue.h"
#include "tests/unit/harness.h"

#define S  INT64_C(1000000000)
#define T0 (1800000000 * S)

struct fixture {
    struct bh_engine *e;
    struct bh_queue *q;
    struct bh_arena a;
    struct bh_interner in;
};

static void setup_with(struct fixture *f, const struct bh_sched_config *config)
{
    struct bh_engine_options eo = {.tie_break = BH_TIE_FIRST, .config = config};
    struct bh_queue_options qo = {
        .initial_backoff_ns = S, .max_backoff_ns = 10 * S, .max_in_unschedulable_ns = 300 * S};
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_engine_new(&eo, &f->e, &err) == 0);
    f->q = bh_queue_new(f->e, &qo);
    bh_arena_init(&f->a, 0);
    f->in = bh_symtab_interner(bh_engine_symtab(f->e));
}

static void setup(struct fixture *f)
{
    setup_with(f, NULL);
}

static void teardown(struct fixture *f)
{
    bh_queue_free(f->q);
    bh_engine_free(f->e);
    bh_arena_fini(&f->a);
}

static K8s__Pod *decode(struct fixture *f, const char *name, int priority, const char *extra)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};
    char *json = bh_arena_printf(
        &f->a,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"uid-%s\"},\"spec\":{"
        "\"schedulerName\":\"default-scheduler\",\"priority\":%d,%s\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}}",
        name, name, priority, extra);

    CU_ASSERT_FATAL(bh_decode_object(&f->a, &k8s__pod__descriptor, json, strlen(json), &m, &err) ==
                    0);
    return (K8s__Pod *)m;
}

static void put(struct fixture *f, const char *name, int priority, const char *extra, uint64_t rv,
                int64_t now)
{
    K8s__Pod *p = decode(f, name, priority, extra);
    struct bh_shape_rec *shape;
    struct bh_pod_rec *pod;
    struct bh_err err = {0};
    bh_shape_id id;

    CU_ASSERT_FATAL(bh_compile_shape(&f->a, p, &f->in, &shape, &err) == 0);
    CU_ASSERT_FATAL(bh_compile_pod(&f->a, p, &f->in, &pod, &err) == 0);
    pod->resource_version = rv;
    id = bh_engine_shape(f->e, shape);
    bh_queue_update(f->q, NULL, pod, id, "", now);
}

static void add(struct fixture *f, const char *name, int priority, int64_t now)
{
    put(f, name, priority, "", 1, now);
}

static const char *pop(struct fixture *f, int64_t now)
{
    struct bh_queued_pod *p = bh_queue_pop(f->q, now);

    return p ? bh_rec_text(p->pending.pod, p->pending.pod->name).p : "";
}

static struct bh_str uid(struct fixture *f, const char *name)
{
    return bh_str_c(bh_arena_printf(&f->a, "uid-%s", name));
}

static enum bh_queue_place place(struct fixture *f, const char *name)
{
    const struct bh_pod_state *s = bh_queue_pod(f->q, uid(f, name));

    return s ? s->place : BH_Q_NONE;
}

static void reject(struct fixture *f, const char *name, const char *plugin, int64_t now)
{
    bh_queue_return(f->q, bh_queue_pod(f->q, uid(f, name)), &plugin, 1, NULL, 0, now);
}

static void node_added(struct fixture *f, const char *cpu, int64_t now)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};
    struct bh_node_rec *n;
    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .action = BH_EV_ADD};
    char *json = bh_arena_printf(
        &f->a,
        "{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"cpu\":\"%s\","
        "\"memory\":\"8Gi\",\"pods\":\"10\"}}}",
        cpu);

    CU_ASSERT_FATAL(bh_decode_object(&f->a, &k8s__node__descriptor, json, strlen(json), &m, &err) ==
                    0);
    CU_ASSERT_FATAL(bh_compile_node(&f->a, (K8s__Node *)m, &f->in, &n, &err) == 0);
    bh_engine_put_node(f->e, n);
    ev.new_node = n;
    bh_queue_event(f->q, &ev, now);
}

static void see_nominated(void *arg, const struct bh_nominated *n)
{
    *(struct bh_pod_state **)arg = n->at ? bh_pod_of(n->at) : NULL;
}

static void test_a_nomination_hangs_on_the_handle(void)
{
    struct fixture f;
    struct bh_pod_state *seen = NULL;

    setup(&f);
    add(&f, "a", 0, T0);
    const bh_sym n1 = bh_sym_internc(bh_engine_symtab(f.e), "n1");
    struct bh_pod_state *s = bh_pod_hold(bh_queue_pod(f.q, uid(&f, "a")));
    CU_ASSERT_PTR_NULL(s->nomination);
    bh_engine_nominate(f.e, &s->queued->pending, n1);
    CU_ASSERT_PTR_NOT_NULL(s->nomination);
    bh_engine_each_nominated(f.e, n1, see_nominated, &seen);
    CU_ASSERT_PTR_EQUAL(seen, s);
    bh_engine_nominate(f.e, &s->queued->pending, BH_SYM_NONE);
    CU_ASSERT_PTR_NULL(s->nomination);
    bh_engine_nominate(f.e, &s->queued->pending, n1);
    CU_ASSERT(bh_engine_assume(f.e, &s->queued->pending, n1) ==
              0); /* it has what it was promised */
    CU_ASSERT_PTR_NULL(s->nomination);
    CU_ASSERT(bh_engine_nominated_node(f.e, uid(&f, "a")) == BH_SYM_NONE);
    CU_ASSERT(bh_engine_forget(f.e, uid(&f, "a")) == 0);
    bh_engine_nominate(f.e, &s->queued->pending, n1);
    bh_queue_delete(f.q, s);
    CU_ASSERT_PTR_NULL(s->nomination);
    CU_ASSERT(bh_engine_nominated_node(f.e, uid(&f, "a")) == BH_SYM_NONE);
    bh_pod_drop(s);
    teardown(&f);
}

/* As upstream: its room is kept for a pod that is being deleted, until it is gone, and then no longer. */
static void test_a_promise_outlives_the_entry(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "a", 0, T0);
    const bh_sym n1 = bh_sym_internc(bh_engine_symtab(f.e), "n1");
    const struct bh_pending *p = &bh_queue_pod(f.q, uid(&f, "a"))->queued->pending;
    bh_engine_nominate(f.e, p, n1);
    ((struct bh_pod_rec *)(uintptr_t)p->pod)->flags |= BH_POD_TERMINATING;
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "a");
    bh_queue_done(f.q, bh_queue_pod(f.q, uid(&f, "a"))); /* it needs no decision */
    CU_ASSERT_PTR_NULL(bh_queue_pod(f.q, uid(&f, "a")));
    CU_ASSERT(bh_engine_nominated_node(f.e, uid(&f, "a")) == n1);
    BH_CLEANUP(bh_pod_dropp)
    struct bh_pod_state *s = bh_pods_hold(bh_queue_pods(f.q), uid(&f, "a"));
    bh_queue_delete(f.q, s);
    CU_ASSERT(bh_engine_nominated_node(f.e, uid(&f, "a")) == BH_SYM_NONE);
    bh_pod_drop(bh_take_ptr(s));
    teardown(&f);
}

static void test_priority_first_then_age(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "old-low", 0, T0);
    add(&f, "new-low", 0, T0 + S);
    add(&f, "high", 100, T0 + 2 * S);
    add(&f, "negative", -5, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "high");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "old-low");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "new-low");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "negative");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "");
    teardown(&f);
}

/* As by a clock that moves while they come. */
static void test_pods_that_come_together_go_in_turn(void)
{
    static const char *const names[] = {"red-1", "blue-1", "red-2", "blue-2", "red-3", "blue-3"};
    struct fixture f;

    setup(&f);
    for (unsigned i = 0; i < BH_ARRAY_LEN(names); i++)
        add(&f, names[i], 0, T0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(names); i++)
        CU_ASSERT_STRING_EQUAL(pop(&f, T0), names[i]);
    teardown(&f);
}

static void test_a_rejected_pod_waits_for_an_event_that_helps(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "p", 0, T0);
    (void)pop(&f, T0);
    reject(&f, "p", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "p") == BH_Q_UNSCHEDULABLE);
    node_added(&f, "500m", T0 + S); /* too small: the hint says skip */
    CU_ASSERT(place(&f, "p") == BH_Q_UNSCHEDULABLE);
    node_added(&f, "4", T0 + S); /* expiry T0+1s, equality still counts as backing off */
    CU_ASSERT(place(&f, "p") == BH_Q_BACKOFF);
    (void)bh_queue_tick(f.q, T0 + S + S / 2);
    CU_ASSERT(place(&f, "p") == BH_Q_BACKOFF);
    (void)bh_queue_tick(f.q, T0 + 2 * S);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    teardown(&f);
}

static void test_backoff_doubles_and_is_truncated_to_seconds(void)
{
    static const int want_s[] = {2, 3, 5, 9, 11, 11}; /* first second at which it leaves */
    struct fixture f;

    setup(&f);
    add(&f, "p", 0, T0);
    for (size_t i = 0; i < BH_ARRAY_LEN(want_s); i++) {
        int64_t base = T0 + (int64_t)i * 1000 * S + 300000000; /* .300 of a second */
        CU_ASSERT_STRING_EQUAL(pop(&f, base), "p");
        bh_queue_return(f.q, bh_queue_pod(f.q, uid(&f, "p")), NULL, 0, NULL, 0, base);
        CU_ASSERT(place(&f, "p") == BH_Q_ERROR_BACKOFF);
        (void)bh_queue_tick(f.q, base - 300000000 + (want_s[i] - 1) * S + S - 1);
        CU_ASSERT(place(&f, "p") == BH_Q_ERROR_BACKOFF);
        (void)bh_queue_tick(f.q, base - 300000000 + want_s[i] * S);
        CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    }
    teardown(&f);
}

static void test_rejected_pods_are_popped_early_failed_ones_are_not(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "rejected", 0, T0);
    (void)pop(&f, T0);
    reject(&f, "rejected", "NodeResourcesFit", T0);
    node_added(&f, "4", T0);
    CU_ASSERT(place(&f, "rejected") == BH_Q_BACKOFF);
    add(&f, "failed", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "failed");
    bh_queue_return(f.q, bh_queue_pod(f.q, uid(&f, "failed")), NULL, 0, NULL, 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "rejected");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "");
    teardown(&f);
}

/* Whatever volume changes: who was rejected for volumes tries again, at once when nothing else is
 * to be done, and once per change. kube-scheduler does the same (36 pods, 15 changes: 540
 * attempts). */
static void test_each_change_of_a_volume_is_one_more_try(void)
{
    struct bh_cluster_event ev = {
        .resource = BH_EV_OBJECT, .kind = BH_KIND_PERSISTENTVOLUME, .action = BH_EV_UPDATE};
    struct fixture f;

    setup(&f);
    add(&f, "volumes", 0, T0);
    (void)pop(&f, T0);
    add(&f, "cpu", 0, T0);
    (void)pop(&f, T0);
    reject(&f, "volumes", "VolumeBinding", T0);
    reject(&f, "cpu", "NodeResourcesFit", T0);
    for (int i = 1; i <= 15; i++) {
        bh_queue_event(f.q, &ev, T0);
        bh_queue_event(f.q, &ev, T0); /* nobody is in the pool any more */
        CU_ASSERT(place(&f, "volumes") == BH_Q_BACKOFF);
        CU_ASSERT(place(&f, "cpu") == BH_Q_UNSCHEDULABLE);
        CU_ASSERT_STRING_EQUAL(pop(&f, T0), "volumes");
        CU_ASSERT_STRING_EQUAL(pop(&f, T0), "");
        reject(&f, "volumes", "VolumeBinding", T0);
        CU_ASSERT(place(&f, "volumes") == BH_Q_UNSCHEDULABLE);
    }
    teardown(&f);
}

static void test_gated_pods_wait_for_their_own_update(void)
{
    struct fixture f;

    setup(&f);
    put(&f, "p", 0, "\"schedulingGates\":[{\"name\":\"a\"}],", 1, T0);
    CU_ASSERT(place(&f, "p") == BH_Q_GATED);
    node_added(&f, "4", T0);
    (void)bh_queue_tick(f.q, T0 + 1000 * S);
    CU_ASSERT(place(&f, "p") == BH_Q_GATED); /* not flushed either */
    put(&f, "p", 0, "", 2, T0 + S);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    teardown(&f);
}

/* A feed tells of a pod before it tells of the pod's claim, and single events of a feed are not
 * raised. */
static void test_a_gate_that_opened_unseen_is_asked_again(void)
{
    static const char json[] = "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"u\"},"
                               "\"spec\":{}}";
    const ProtobufCMessageDescriptor *desc = &k8s__resource_claim__descriptor;
    struct fixture f;
    struct bh_buf b = {0};
    struct bh_err err = {0};
    ProtobufCMessage *m = NULL;

    setup(&f);
    put(&f, "p", 0, "\"resourceClaims\":[{\"name\":\"r\",\"resourceClaimName\":\"c\"}],", 1, T0);
    put(&f, "q", 0, "\"schedulingGates\":[{\"name\":\"a\"}],", 1, T0);
    CU_ASSERT(place(&f, "p") == BH_Q_GATED);
    CU_ASSERT_FATAL(bh_decode_object(&f.a, desc, json, strlen(json), &m, &err) == 0);
    bh_pb_pack(&b, m);
    CU_ASSERT(bh_engine_put_object(f.e, BH_KIND_RESOURCECLAIM, "ns", "c", b.p, b.n, &err) == 0);
    CU_ASSERT(place(&f, "p") == BH_Q_GATED);
    bh_queue_wake_all(f.q, T0 + S);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    CU_ASSERT(place(&f, "q") == BH_Q_GATED);
    bh_buf_fini(&b);
    teardown(&f);
}

static void test_events_during_the_cycle_are_replayed(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "p", 0, T0);
    (void)pop(&f, T0);
    node_added(&f, "4", T0);
    reject(&f, "p", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "p") == BH_Q_BACKOFF); /* the node came while it was in flight */
    (void)pop(&f, T0);
    reject(&f, "p", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "p") == BH_Q_UNSCHEDULABLE); /* and counts once */
    teardown(&f);
}

/* PodsToActivate of a pod whose attempt is not over: it is tried again, whoever rejects it. */
static void test_a_pod_at_permit_is_activated(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "a", 0, T0);
    add(&f, "b", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "a");
    bh_queue_waiting(f.q, bh_queue_pod(f.q, uid(&f, "a")));
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "b");
    bh_queue_waiting(f.q, bh_queue_pod(f.q, uid(&f, "b")));
    bh_queue_activate(f.q, bh_queue_pod(f.q, uid(&f, "a")), T0);
    reject(&f, "a", "NodeResourcesFit", T0 + S);
    reject(&f, "b", "NodeResourcesFit", T0 + S);
    CU_ASSERT(place(&f, "a") == BH_Q_BACKOFF);
    CU_ASSERT(place(&f, "b") == BH_Q_UNSCHEDULABLE);
    teardown(&f);
}

/* What came while the cluster's state was rebuilt may be what it needs, and nobody saw it. */
static void test_a_pod_at_permit_is_woken_with_all(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "a", 0, T0);
    add(&f, "b", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "a");
    bh_queue_waiting(f.q, bh_queue_pod(f.q, uid(&f, "a")));
    bh_queue_wake_all(f.q, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "b");
    bh_queue_waiting(f.q, bh_queue_pod(f.q, uid(&f, "b")));
    reject(&f, "a", "NodeResourcesFit", T0 + S);
    reject(&f, "b", "NodeResourcesFit", T0 + S);
    CU_ASSERT(place(&f, "a") == BH_Q_BACKOFF);
    CU_ASSERT(place(&f, "b") == BH_Q_UNSCHEDULABLE);
    teardown(&f);
}

static void count_label(void *arg, const char *label)
{
    (void)label;
    ++*(unsigned *)arg;
}

static void labels_changed(struct fixture *f, unsigned times)
{
    ProtobufCMessage *m = NULL;
    struct bh_err err = {0};
    struct bh_node_rec *n;
    struct bh_cluster_event ev = {.resource = BH_EV_NODE, .action = BH_EV_NODE_LABEL};
    static const char json[] = "{\"metadata\":{\"name\":\"n\"}}";

    CU_ASSERT_FATAL(bh_decode_object(&f->a, &k8s__node__descriptor, json, strlen(json), &m, &err) ==
                    0);
    CU_ASSERT_FATAL(bh_compile_node(&f->a, (K8s__Node *)m, &f->in, &n, &err) == 0);
    ev.old_node = ev.new_node = n;
    while (times--)
        bh_queue_event(f->q, &ev, T0);
}

/* A pod may wait at Permit for minutes: the events of that time do not fill the memory. What cannot be
 * said any more for certain is one more try. */
static void test_events_in_flight_have_a_bound(void)
{
    struct fixture f;
    unsigned n = 0;

    setup(&f);
    add(&f, "a", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "a");
    bh_queue_waiting(f.q, bh_queue_pod(f.q, uid(&f, "a")));
    labels_changed(&f, 10000);
    bh_queue_each_in_flight(f.q, count_label, &n);
    CU_ASSERT(n > 1 && n < 9000);
    add(&f, "b", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "b");
    labels_changed(&f, 10);
    reject(&f, "b", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "b") == BH_Q_UNSCHEDULABLE); /* it knows all that happened since */
    reject(&f, "a", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "a") == BH_Q_BACKOFF);
    n = 0;
    bh_queue_each_in_flight(f.q, count_label, &n);
    CU_ASSERT(n == 0);
    teardown(&f);
}

/* Names beyond those that the queue tells apart have no hints of their own any more: whatever happens
 * is worth another try. */
static void test_more_plugins_than_bits(void)
{
    struct fixture f;
    const char *names[62];

    setup(&f);
    add(&f, "many", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "many");
    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++)
        names[i] = bh_arena_printf(&f.a, "x%zu", i);
    bh_queue_return(f.q, bh_queue_pod(f.q, uid(&f, "many")), names, BH_ARRAY_LEN(names), NULL, 0,
                    T0);
    add(&f, "a", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "a");
    reject(&f, "a", "SchedulingGates", T0);
    add(&f, "b", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "b");
    reject(&f, "b", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "b") == BH_Q_UNSCHEDULABLE);
    node_added(&f, "4", T0);
    CU_ASSERT(place(&f, "b") == BH_Q_BACKOFF);
    struct bh_queue_view v;
    bh_queue_view(f.q, bh_queue_pod(f.q, uid(&f, "b"))->queued, &v);
    CU_ASSERT(v.n_plugins == 1);
    CU_ASSERT_STRING_EQUAL(v.plugins[0], "(others)");
    teardown(&f);
}

static void test_the_flush_frees_what_waited_five_minutes(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "p", 0, T0);
    (void)pop(&f, T0);
    reject(&f, "p", "NodeResourcesFit", T0);
    (void)bh_queue_tick(f.q, T0 + 300 * S);
    CU_ASSERT(place(&f, "p") == BH_Q_UNSCHEDULABLE);
    (void)bh_queue_tick(f.q, T0 + 331 * S);
    CU_ASSERT(place(&f, "p") == BH_Q_ACTIVE);
    teardown(&f);
}

static void test_binding_keeps_the_entry_for_a_failed_write(void)
{
    struct fixture f;
    struct bh_queue_stats s;

    setup(&f);
    add(&f, "p", 0, T0);
    (void)pop(&f, T0);
    bh_queue_binding(f.q, bh_queue_pod(f.q, uid(&f, "p")));
    bh_queue_stats(f.q, &s);
    CU_ASSERT(s.in_flight == 0);
    CU_ASSERT(place(&f, "p") == BH_Q_BINDING);
    bh_queue_return(f.q, bh_queue_pod(f.q, uid(&f, "p")), NULL, 0, NULL, 0, T0);
    CU_ASSERT(place(&f, "p") == BH_Q_ERROR_BACKOFF);
    (void)bh_queue_tick(f.q, T0 + 5 * S);
    (void)pop(&f, T0);
    bh_queue_binding(f.q, bh_queue_pod(f.q, uid(&f, "p")));
    bh_queue_done(f.q, bh_queue_pod(f.q, uid(&f, "p")));
    CU_ASSERT(place(&f, "p") == BH_Q_NONE);
    teardown(&f);
}

/* For a pod whose node was chosen by the scheduler before. */
static void test_one_pod_is_taken_from_wherever_it_waits(void)
{
    struct bh_queue_stats s;
    struct fixture f;

    setup(&f);
    add(&f, "waits", 0, 1 * S);
    add(&f, "rejected", 5, 1 * S);
    CU_ASSERT_STRING_EQUAL(pop(&f, 1 * S), "rejected");
    reject(&f, "rejected", "NodeResourcesFit", 1 * S);
    CU_ASSERT(bh_queue_take(f.q, bh_queue_pod(f.q, uid(&f, "nobody")), 2 * S) == NULL);
    CU_ASSERT_FATAL(bh_queue_take(f.q, bh_queue_pod(f.q, uid(&f, "rejected")), 2 * S) != NULL);
    CU_ASSERT(place(&f, "rejected") == BH_Q_IN_FLIGHT);
    CU_ASSERT(bh_queue_take(f.q, bh_queue_pod(f.q, uid(&f, "rejected")), 2 * S) ==
              NULL); /* it does not wait */
    bh_queue_stats(f.q, &s);
    CU_ASSERT(s.pods == 2 && s.popped == 1 && s.binding == 0 && s.unschedulable == 0);
    bh_queue_binding(f.q, bh_queue_pod(f.q, uid(&f, "rejected")));
    bh_queue_stats(f.q, &s);
    CU_ASSERT(s.pods == 2 && s.popped == 0 && s.binding == 1 && s.active == 1);
    bh_queue_done(f.q, bh_queue_pod(f.q, uid(&f, "rejected")));
    bh_queue_stats(f.q, &s);
    CU_ASSERT(s.pods == 1 && s.binding == 0);
    teardown(&f);
}

static void test_a_new_feed_sweeps_what_it_does_not_name(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "stays", 0, T0);
    add(&f, "goes", 0, T0);
    bh_queue_sync_begin(f.q);
    add(&f, "stays", 0, T0);
    bh_queue_sync_end(f.q);
    CU_ASSERT(place(&f, "stays") == BH_Q_ACTIVE);
    CU_ASSERT(place(&f, "goes") == BH_Q_NONE);
    teardown(&f);
}

static void test_a_pod_whose_bind_is_under_way_only_gets_its_new_object(void)
{
    struct fixture f;
    const struct bh_queued_pod *p;
    struct bh_queue_stats st;

    setup(&f);
    add(&f, "a", 0, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "a");
    bh_queue_binding(f.q, bh_queue_pod(f.q, uid(&f, "a")));
    put(&f, "a", 7, "", 2, T0 + S);
    CU_ASSERT(place(&f, "a") == BH_Q_BINDING);
    bh_queue_stats(f.q, &st);
    CU_ASSERT(st.active == 0 && st.in_flight == 0);
    p = bh_queue_pod(f.q, uid(&f, "a"))->queued;
    CU_ASSERT(p->pending.pod->resource_version == 2);
    CU_ASSERT(bh_engine_shape_rec(f.e, p->pending.shape)->priority == 7);
    /* named by a new feed, by its object or by the same object again: it stays */
    bh_queue_sync_begin(f.q);
    put(&f, "a", 7, "", 2, T0 + S);
    bh_queue_sync_end(f.q);
    CU_ASSERT(place(&f, "a") == BH_Q_BINDING);
    bh_queue_return(f.q, bh_queue_pod(f.q, uid(&f, "a")), NULL, 0, NULL, 0,
                    T0 + S); /* the write failed */
    CU_ASSERT(place(&f, "a") == BH_Q_ERROR_BACKOFF);
    teardown(&f);
}

static void test_what_was_told_stays_with_the_entry(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "a", 0, T0);
    bh_queue_told(bh_queue_pod(f.q, uid(&f, "a")), 99, 5);
    CU_ASSERT(bh_queue_pod(f.q, uid(&f, "a"))->queued->told_condition == 99);
    CU_ASSERT(bh_queue_pod(f.q, uid(&f, "a"))->queued->told_nomination == 5);
    put(&f, "a", 0, "", 2, T0); /* the object says there is no nomination */
    CU_ASSERT(bh_queue_pod(f.q, uid(&f, "a"))->queued->told_condition == 99);
    CU_ASSERT(bh_queue_pod(f.q, uid(&f, "a"))->queued->told_nomination == BH_SYM_NONE);
    bh_queue_told(bh_queue_pod(f.q, uid(&f, "nobody")), 1, 1);
    teardown(&f);
}

/* Popped when it was on its node already: the snapshot was ahead of the feed. */
static void test_what_is_done_is_nominated_nowhere(void)
{
    struct fixture f;

    setup(&f);
    add(&f, "a", 0, T0);
    const struct bh_queued_pod *p = bh_queue_pop(f.q, T0);
    bh_engine_nominate(f.e, &p->pending, bh_sym_internc(bh_engine_symtab(f.e), "n1"));
    CU_ASSERT(bh_engine_nominated_node(f.e, uid(&f, "a")) != BH_SYM_NONE);
    bh_queue_done(f.q, bh_queue_pod(f.q, uid(&f, "a")));
    CU_ASSERT(bh_engine_nominated_node(f.e, uid(&f, "a")) == BH_SYM_NONE);
    teardown(&f);
}

/* ---- looking from outside -------------------------------------------------------------------- */

static void test_the_view_tells_place_backoff_and_rejectors(void)
{
    struct fixture f;
    struct bh_queue_view v;
    const struct bh_queued_pod *p;

    setup(&f);
    add(&f, "a", 0, T0);
    p = bh_queue_pod(f.q, uid(&f, "a"))->queued;
    bh_queue_view(f.q, p, &v);
    CU_ASSERT(v.place == BH_Q_ACTIVE && v.n_plugins == 0 && v.backoff_until_ns == 0);
    (void)pop(&f, T0);
    reject(&f, "a", "NodeResourcesFit", T0);
    bh_queue_say(bh_queue_pod(f.q, uid(&f, "a")), "Unschedulable", "no room");
    bh_queue_view(f.q, p, &v);
    CU_ASSERT(v.place == BH_Q_UNSCHEDULABLE);
    CU_ASSERT_FATAL(v.n_plugins == 1);
    CU_ASSERT_STRING_EQUAL(v.plugins[0], "NodeResourcesFit");
    CU_ASSERT_STRING_EQUAL(p->last_reason, "Unschedulable");
    CU_ASSERT_STRING_EQUAL(p->last_message, "no room");
    node_added(&f, "4", T0);
    bh_queue_view(f.q, p, &v);
    CU_ASSERT(v.place == BH_Q_BACKOFF);
    CU_ASSERT_EQUAL(v.backoff_until_ns, T0 + S);
    bh_queue_say(bh_queue_pod(f.q, uid(&f, "a")), "Unschedulable", "still no room");
    CU_ASSERT_STRING_EQUAL(p->last_message, "still no room");
    bh_queue_say(bh_queue_pod(f.q, uid(&f, "nobody")), "x", "y");

    put(&f, "g", 0, "\"schedulingGates\":[{\"name\":\"hold\"}],", 1, T0);
    bh_queue_view(f.q, bh_queue_pod(f.q, uid(&f, "g"))->queued, &v);
    CU_ASSERT(v.place == BH_Q_GATED);
    CU_ASSERT_FATAL(v.n_plugins == 1);
    CU_ASSERT_STRING_EQUAL(v.plugins[0], "SchedulingGates");
    teardown(&f);
}

struct walk {
    unsigned n, max; /* seen in this page, room in a page */
    char seen[64];   /* by the pod's number */
};

static bool on_pod(void *arg, const struct bh_queued_pod *p, enum bh_queue_place place_)
{
    struct walk *w = arg;

    (void)place_;
    if (w->n == w->max)
        return false;
    w->n++;
    w->seen[strtol(bh_rec_text(p->pending.pod, p->pending.pod->name).p, NULL, 10)]++;
    return true;
}

/* All pages; returns how many there were. */
static unsigned walk_all(struct fixture *f, struct walk *w, unsigned budget)
{
    uint64_t cursor = 0;
    unsigned pages = 0;
    enum bh_queue_walk how;

    do {
        w->n = 0;
        how = bh_queue_walk(f->q, &cursor, budget, on_pod, w);
        CU_ASSERT(how != BH_QUEUE_WALK_MOVED);
        CU_ASSERT((how == BH_QUEUE_WALK_END) == (cursor == 0));
        CU_ASSERT(w->n <= w->max && w->n <= budget);
        pages++;
    } while (how == BH_QUEUE_WALK_MORE);
    return pages;
}

static void test_a_walk_sees_every_pod_once(void)
{
    static const struct {
        unsigned budget, max;
    } pages[] = {{1, 1}, {3, 64}, {1000, 1}, {1000, 7}, {1000, 64}};
    struct fixture f;
    uint64_t cursor = 0;
    struct walk none = {.max = 1};
    char name[16];

    setup(&f);
    CU_ASSERT(bh_queue_walk(f.q, &cursor, 10, on_pod, &none) == BH_QUEUE_WALK_END);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "%u", i);
        add(&f, name, 0, T0);
    }
    for (size_t k = 0; k < BH_ARRAY_LEN(pages); k++) {
        struct walk w = {.max = pages[k].max};
        CU_ASSERT(walk_all(&f, &w, pages[k].budget) >= 40 / w.max / 64);
        for (unsigned i = 0; i < 40; i++)
            CU_ASSERT_EQUAL(w.seen[i], 1);
    }
    teardown(&f);
}

static void test_a_walk_says_when_pods_moved(void)
{
    struct fixture f;
    struct walk w = {.max = 1};
    uint64_t cursor = 0, forged = UINT64_MAX, beyond;
    char name[16];

    setup(&f);
    add(&f, "0", 0, T0);
    add(&f, "1", 0, T0);
    CU_ASSERT(bh_queue_walk(f.q, &cursor, 1000, on_pod, &w) == BH_QUEUE_WALK_MORE);
    beyond = cursor | UINT32_MAX;       /* of this table, but outside */
    for (unsigned i = 2; i < 60; i++) { /* the table grows */
        snprintf(name, sizeof(name), "%u", i);
        add(&f, name, 0, T0);
    }
    w.n = 0;
    CU_ASSERT(bh_queue_walk(f.q, &cursor, 1000, on_pod, &w) == BH_QUEUE_WALK_MOVED);
    CU_ASSERT(w.n == 0 && cursor == 0);
    CU_ASSERT(bh_queue_walk(f.q, &forged, 1000, on_pod, &w) == BH_QUEUE_WALK_MOVED);
    CU_ASSERT(bh_queue_walk(f.q, &beyond, 1000, on_pod, &w) == BH_QUEUE_WALK_MOVED);
    w.max = 1;
    CU_ASSERT(bh_queue_walk(f.q, &cursor, 1000, on_pod, &w) == BH_QUEUE_WALK_MORE);
    cursor |= UINT32_MAX;
    CU_ASSERT(bh_queue_walk(f.q, &cursor, 1000, on_pod, &w) == BH_QUEUE_WALK_END);
    teardown(&f);
}

static uint64_t hints(struct fixture *f)
{
    struct bh_queue_stats s;

    bh_queue_stats(f->q, &s);
    return s.hints;
}

/* n pods of a few kinds, all rejected by NodeResourcesFit. */
static void fill_pool(struct fixture *f, unsigned n, unsigned kinds)
{
    char name[32], extra[64];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "p%u", i);
        snprintf(extra, sizeof(extra), "\"nodeSelector\":{\"kind\":\"k%u\"},", i % kinds);
        put(f, name, 0, extra, 1, T0);
    }
    for (unsigned i = 0; i < n; i++) {
        struct bh_queued_pod *p = bh_queue_pop(f->q, T0);
        CU_ASSERT_FATAL(p != NULL);
        bh_queue_return(f->q, p->pod, (const char *const[]){"NodeResourcesFit"}, 1, NULL, 0, T0);
    }
}

static void test_an_event_asks_once_for_a_kind_of_pod(void)
{
    struct bh_queue_stats s;
    struct fixture f;
    uint64_t before;

    setup(&f);
    fill_pool(&f, 2000, 4);
    before = hints(&f);
    node_added(&f, "500m", T0 + S); /* helps nobody */
    CU_ASSERT_EQUAL(hints(&f) - before, 4);
    bh_queue_stats(f.q, &s);
    CU_ASSERT_EQUAL(s.unschedulable, 2000);
    before = hints(&f);
    node_added(&f, "2", T0 + 20 * S); /* helps all, asked once a kind */
    CU_ASSERT_EQUAL(hints(&f) - before, 4);
    bh_queue_stats(f.q, &s);
    CU_ASSERT_EQUAL(s.unschedulable, 0);
    CU_ASSERT_EQUAL(s.active, 2000);
    teardown(&f);
}

/* An update that gives a waiting pod another shape moves it to another group. */
static void test_an_update_changes_the_group(void)
{
    struct fixture f;
    uint64_t before;

    setup(&f);
    fill_pool(&f, 10, 1);
    put(&f, "p3", 0, "\"nodeSelector\":{\"kind\":\"other\"},", 2, T0 + S);
    CU_ASSERT_EQUAL(place(&f, "p3"), BH_Q_UNSCHEDULABLE);
    before = hints(&f);
    node_added(&f, "500m", T0 + S);
    CU_ASSERT_EQUAL(hints(&f) - before, 2);
    bh_queue_delete(f.q, bh_queue_pod(f.q, uid(&f, "p3")));
    before = hints(&f);
    node_added(&f, "500m", T0 + S);
    CU_ASSERT_EQUAL(hints(&f) - before, 1);
    teardown(&f);
}

/* ---- pods that go together --------------------------------------------------------------------- */

struct gangs {
    struct bh_kube_flags flags;
    struct bh_sched_config *config;
};
#define IN_G  "\"schedulingGroup\":{\"podGroupName\":\"g\"},"
#define GATED "\"schedulingGates\":[{\"name\":\"x\"}],"

static void setup_gangs(struct fixture *f, struct gangs *g)
{
    static const struct bh_opt_usage usage = {.program = "prog"};
    char *argv[] = {(char[]){"prog"},
                    (char[]){"--feature-gates=GenericWorkload=true,GangScheduling=true"}, NULL};
    struct bh_err err = {0};

    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_parse(&g->flags, NULL, &usage, 2, argv, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_new(NULL, &g->config, &err), 0);
    bh_sched_config_apply_flags(g->config, &g->flags);
    setup_with(f, g->config);
}

static void teardown_gangs(struct fixture *f, struct gangs *g)
{
    teardown(f);
    bh_sched_config_free(g->config);
    bh_kube_flags_free(&g->flags);
}

static void put_gang(struct fixture *f, const char *min)
{
    ProtobufCMessage *m = NULL;
    struct bh_buf b = {0};
    struct bh_err err = {0};
    struct bh_cluster_event ev = {
        .resource = BH_EV_OBJECT, .kind = BH_KIND_PODGROUP, .action = BH_EV_ADD};
    char *json = bh_arena_printf(
        &f->a,
        "{\"metadata\":{\"name\":\"g\",\"namespace\":\"ns\",\"uid\":\"u\"},\"spec\":"
        "{\"schedulingPolicy\":{\"gang\":{\"minCount\":%s}}}}",
        min);

    CU_ASSERT_FATAL(
        bh_decode_object(&f->a, &k8s__pod_group__descriptor, json, strlen(json), &m, &err) == 0);
    bh_pb_pack(&b, m);
    CU_ASSERT_FATAL(bh_engine_put_object_event(f->e, &ev, "ns", "g", bh_buf_str(&b), b.n, &err) ==
                    0);
    bh_queue_event(f->q, &ev, T0);
    bh_buf_fini(&b);
}

static void test_gang_waits_for_its_members(void)
{
    struct fixture f;
    struct gangs g;

    setup_gangs(&f, &g);
    put(&f, "a", 0, IN_G, 1, T0);
    CU_ASSERT(place(&f, "a") == BH_Q_GATED); /* no PodGroup */
    put_gang(&f, "3");
    CU_ASSERT(place(&f, "a") == BH_Q_GATED); /* too few */
    put(&f, "b", 0, IN_G, 1, T0);
    put(&f, "other", 0, "", 1, T0);
    CU_ASSERT(place(&f, "b") == BH_Q_GATED);
    put(&f, "c", 0, IN_G, 1, T0); /* the one that was missing */
    CU_ASSERT(place(&f, "a") == BH_Q_ACTIVE && place(&f, "b") == BH_Q_ACTIVE &&
              place(&f, "c") == BH_Q_ACTIVE);
    teardown_gangs(&f, &g);
}

static void test_group_created_late(void)
{
    struct fixture f;
    struct gangs g;

    setup_gangs(&f, &g);
    put(&f, "a", 0, IN_G, 1, T0);
    put(&f, "b", 0, IN_G, 1, T0);
    CU_ASSERT(place(&f, "a") == BH_Q_GATED);
    put_gang(&f, "2");
    CU_ASSERT(place(&f, "a") == BH_Q_ACTIVE && place(&f, "b") == BH_Q_ACTIVE);
    teardown_gangs(&f, &g);
}

static void test_gated_member_completes_a_gang(void)
{
    struct fixture f;
    struct gangs g;

    setup_gangs(&f, &g);
    put_gang(&f, "2");
    put(&f, "a", 0, IN_G, 1, T0);
    put(&f, "b", 0, IN_G GATED, 1, T0);
    CU_ASSERT(place(&f, "a") == BH_Q_ACTIVE && place(&f, "b") == BH_Q_GATED);
    teardown_gangs(&f, &g);
}

static void test_take_member(void)
{
    struct fixture f;
    struct gangs g;

    setup_gangs(&f, &g);
    put_gang(&f, "3");
    put(&f, "a", 0, IN_G, 1, T0);
    put(&f, "b", 0, IN_G, 1, T0);
    put(&f, "gated", 0, IN_G GATED, 1, T0);
    struct bh_pod_state *s = bh_queue_pod(f.q, uid(&f, "a"));
    CU_ASSERT_PTR_NULL(bh_queue_take_member(f.q, bh_queue_pod(f.q, uid(&f, "gated")), T0));
    CU_ASSERT_PTR_NULL(bh_queue_take_member(f.q, NULL, T0));
    struct bh_queued_pod *a = bh_queue_take_member(f.q, s, T0); /* active */
    CU_ASSERT_FATAL(a && a->attempts == 1 && s->place == BH_Q_IN_FLIGHT);
    CU_ASSERT_PTR_NULL(bh_queue_take_member(f.q, s, T0)); /* in flight */
    reject(&f, "a", "NodeResourcesFit", T0);
    CU_ASSERT(s->place == BH_Q_ERROR_BACKOFF);
    a = bh_queue_take_member(f.q, s, T0); /* out of backoff */
    CU_ASSERT(a && a->attempts == 2);
    teardown_gangs(&f, &g);
}

/* Rejected members wait for their backoff's end, whatever happens, and are not popped before it. */
static void test_members_return_with_backoff(void)
{
    struct fixture f;
    struct gangs g;

    setup_gangs(&f, &g);
    put_gang(&f, "1");
    put(&f, "a", 0, IN_G, 1, T0);
    put(&f, "plain", 0, "", 1, T0 + 1);
    struct bh_queued_pod *a = bh_queue_pop(f.q, T0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "plain");
    reject(&f, "plain", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "plain") == BH_Q_UNSCHEDULABLE);
    reject(&f, "a", "NodeResourcesFit", T0);
    CU_ASSERT(place(&f, "a") == BH_Q_ERROR_BACKOFF);
    CU_ASSERT(a->unschedulable_count == 1 && a->consecutive_errors == 0);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "");
    bh_queue_tick(f.q, T0 + 2 * S);
    CU_ASSERT(place(&f, "a") == BH_Q_ACTIVE);
    a = bh_queue_pop(f.q, T0 + 2 * S);
    bh_queue_return(f.q, a->pod, NULL, 0, NULL, 0, T0 + 2 * S); /* held back by its group */
    CU_ASSERT(place(&f, "a") == BH_Q_ERROR_BACKOFF && a->consecutive_errors == 1);
    teardown_gangs(&f, &g);
}

static void test_a_plugin_wakes_what_it_rejected(void)
{
    struct bh_cluster_event ev = {
        .resource = BH_EV_PLUGIN, .action = BH_EV_UPDATE, .plugin = "NodeAffinity"};
    struct fixture f;
    char label[96];

    setup(&f);
    add(&f, "p", 0, T0);
    add(&f, "q", 0, T0);
    add(&f, "r", 0, T0);
    (void)pop(&f, T0), (void)pop(&f, T0), (void)pop(&f, T0);
    reject(&f, "p", "NodeResourcesFit", T0);
    reject(&f, "q", "NodeAffinity", T0);
    bh_queue_event(f.q, &ev, T0);
    CU_ASSERT(place(&f, "p") == BH_Q_UNSCHEDULABLE && place(&f, "q") == BH_Q_BACKOFF);
    reject(&f, "r", "NodeAffinity", T0); /* it was in flight meanwhile */
    CU_ASSERT(place(&f, "r") == BH_Q_BACKOFF);
    CU_ASSERT_STRING_EQUAL(bh_queue_event_label(&ev, label), "PluginUpdate");
    teardown(&f);
}

/* ---- another order --------------------------------------------------------------------------- */

static bool backwards;
static bool less_by_name(struct bh_call *c, const struct bh_queue_key *a,
                         const struct bh_queue_key *b)
{
    const struct bh_pod_rec *x = a->waiting->pod, *y = b->waiting->pod;
    const int by = strcmp(bh_rec_text(x, x->name).p, bh_rec_text(y, y->name).p);

    CU_ASSERT(!c->pod && !c->arena && a->shape && b->shape);
    CU_ASSERT(a->timestamp_ns >= T0 && a->initial_attempt_ns >= T0);
    return backwards ? by > 0 : by < 0;
}
static const struct bh_plugin by_name = {BH_PLUGIN_HEAD("ByName"), .flags = BH_PLUGIN_NODE_LOCAL,
                                         .less = less_by_name};
const struct bh_plugin *const bh_plugins_extra[] = {&by_name, NULL};

static struct bh_sched_config *by_name_config(struct bh_arena *a)
{
    static const char text[] =
        "{\"apiVersion\":\"kubescheduler.config.k8s.io/"
        "v1\",\"kind\":\"KubeSchedulerConfiguration\","
        "\"profiles\":[{\"plugins\":{\"queueSort\":{\"enabled\":[{\"name\":\"ByName\"}],"
        "\"disabled\":[{\"name\":\"*\"}]}}}]}";
    struct bh_sched_config *config = NULL;
    struct bh_json *v = NULL;
    struct bh_err err;

    CU_ASSERT_FATAL(bh_json_parse(a, text, strlen(text), 0, &v, &err) == 0);
    CU_ASSERT_FATAL(bh_sched_config_new(v, &config, &err) == 0);
    return config;
}

static void test_a_plugin_orders(void)
{
    static const char *const names[] = {"d", "b", "e", "a", "c"};
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_sched_config *config = by_name_config(&a);
    struct fixture f;

    backwards = false;
    setup_with(&f, config);
    for (unsigned i = 0; i < BH_ARRAY_LEN(names); i++)
        add(&f, names[i], (int)i, T0 + i);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0 + S), "a");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0 + S), "b");
    put(&f, "e", 1000, "", 2, T0 + S); /* priority is nothing to it */
    CU_ASSERT_STRING_EQUAL(pop(&f, T0 + S), "c");
    reject(&f, "b", "NodeResourcesFit", T0 + S);
    reject(&f, "a", "NodeResourcesFit", T0 + S);
    node_added(&f, "4", T0 + S);
    CU_ASSERT(place(&f, "a") == BH_Q_BACKOFF && place(&f, "b") == BH_Q_BACKOFF);
    CU_ASSERT_STRING_EQUAL(pop(&f, T0 + S), "d");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0 + S), "e");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0 + S), "a"); /* of those whose backoff ends together */
    CU_ASSERT_STRING_EQUAL(pop(&f, T0 + S), "b");
    teardown(&f);
    bh_sched_config_free(config);
}

/* Its mind changes while they wait: all of them come out, and from the first pop on as it says now, as
 * far as they were looked at. */
static void test_an_order_that_changes(void)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct bh_sched_config *config = by_name_config(&a);
    struct fixture f;
    char name[8];
    unsigned out = 0;

    backwards = false;
    setup_with(&f, config);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "p%02u", i);
        add(&f, name, 0, T0);
    }
    backwards = true;
    for (const char *p; *(p = pop(&f, T0));) {
        if (out++ == 0)
            CU_ASSERT(strcmp(p, "p00") != 0); /* it was in front */
    }
    CU_ASSERT(out == 40);
    backwards = false;
    add(&f, "y", 0, T0);
    add(&f, "x", 0, T0);
    backwards = true;
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "y");
    CU_ASSERT_STRING_EQUAL(pop(&f, T0), "x");
    backwards = false;
    teardown(&f);
    bh_sched_config_free(config);
}

BH_TESTS(
    "scheduler/queue", {"priority first, then age", test_priority_first_then_age},
    {"pods that come together go in turn", test_pods_that_come_together_go_in_turn},
    {"a rejected pod waits for an event that helps",
     test_a_rejected_pod_waits_for_an_event_that_helps},
    {"backoff doubles and is truncated to seconds",
     test_backoff_doubles_and_is_truncated_to_seconds},
    {"each change of a volume is one more try", test_each_change_of_a_volume_is_one_more_try},
    {"rejected pods are popped early, failed ones are not",
     test_rejected_pods_are_popped_early_failed_ones_are_not},
    {"gated pods wait for their own update", test_gated_pods_wait_for_their_own_update},
    {"a gate that opened unseen is asked again", test_a_gate_that_opened_unseen_is_asked_again},
    {"events during the cycle are replayed", test_events_during_the_cycle_are_replayed},
    {"a pod at Permit is activated", test_a_pod_at_permit_is_activated},
    {"a pod at Permit is woken with all", test_a_pod_at_permit_is_woken_with_all},
    {"events in flight have a bound", test_events_in_flight_have_a_bound},
    {"more plugins than bits", test_more_plugins_than_bits},
    {"the flush frees what waited five minutes", test_the_flush_frees_what_waited_five_minutes},
    {"binding keeps the entry for a failed write", test_binding_keeps_the_entry_for_a_failed_write},
    {"one pod is taken from wherever it waits", test_one_pod_is_taken_from_wherever_it_waits},
    {"a new feed sweeps what it does not name", test_a_new_feed_sweeps_what_it_does_not_name},
    {"a pod whose bind is under way only gets its new object",
     test_a_pod_whose_bind_is_under_way_only_gets_its_new_object},
    {"what was told stays with the entry", test_what_was_told_stays_with_the_entry},
    {"what is done is nominated nowhere", test_what_is_done_is_nominated_nowhere},
    {"the view tells place, backoff and rejectors",
     test_the_view_tells_place_backoff_and_rejectors},
    {"a walk sees every pod once", test_a_walk_sees_every_pod_once},
    {"a walk says when pods moved", test_a_walk_says_when_pods_moved},
    {"an event asks once for a kind of pod", test_an_event_asks_once_for_a_kind_of_pod},
    {"an update changes the group", test_an_update_changes_the_group},
    {"a gang waits for its members", test_gang_waits_for_its_members},
    {"a PodGroup that comes late", test_group_created_late},
    {"a gated member completes a gang", test_gated_member_completes_a_gang},
    {"a member is taken from wherever it waits, unless gated", test_take_member},
    {"members return with backoff only", test_members_return_with_backoff},
    {"a plugin wakes what it rejected", test_a_plugin_wakes_what_it_rejected},
    {"a QueueSort plugin orders", test_a_plugin_orders},
    {"an order that changes", test_an_order_that_changes},
    {"a nomination hangs on the handle", test_a_nomination_hangs_on_the_handle},
    {"a promise outlives the entry", test_a_promise_outlives_the_entry})
