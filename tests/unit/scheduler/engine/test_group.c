/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/engine/test_group.c - groups of pods: who is a member, GangScheduling's answers,
 * and the trial of a group, row by row
 */
#include "common/k8s/pod_group.h"
#include "scheduler/cache/node_info.h"
#include "scheduler/engine/state.h"
#include "tests/unit/scheduler/engine/fixture.h"

#define MEMBERS 16u
#define ASKED   "one or more plugins asked to wait and no plugin rejected pod"
#define TIME    (INT64_C(1893456000) * 1000000000)

struct gang {
    struct fx f;
    struct bh_kube_flags flags;
    struct bh_group_try try[MEMBERS];
    uint32_t n;
    struct bh_group_result r;
    unsigned waited; /* calls of options.waiting */
    bool give_up;
};

static bool on_waiting(void *arg)
{
    struct gang *g = arg;

    g->waited++;
    return !g->give_up;
}

static void setup_with(struct gang *g, const char *gates, bool stays)
{
    static const struct bh_opt_usage usage = {.program = "prog"};
    char *argv[] = {(char[]){"prog"}, (char *)(uintptr_t)gates, NULL};
    struct bh_engine_options o = {.tie_break = BH_TIE_FIRST,
                                  .verify = true,
                                  .group_stays = stays,
                                  .waiting = on_waiting,
                                  .waiting_arg = g};
    struct bh_err err = {0};

    memset(g, 0, sizeof *g);
    bh_arena_init(&g->f.arena, 0);
    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_parse(&g->flags, NULL, &usage, 2, argv, &err), 0);
    CU_ASSERT_FATAL(bh_sched_config_new(NULL, &g->f.config, &err) == 0);
    bh_sched_config_apply_flags(g->f.config, &g->flags);
    o.config = g->f.config;
    CU_ASSERT_FATAL(bh_engine_new(&o, &g->f.e, &err) == 0);
}
#define GANGS "--feature-gates=GenericWorkload=true,GangScheduling=true"

static void setup(struct gang *g, const char *gates)
{
    setup_with(g, gates, false);
}

static void teardown(struct gang *g)
{
    fx_fini(&g->f);
    bh_kube_flags_free(&g->flags);
}

static void put_object(struct gang *g, enum bh_kind kind, const ProtobufCMessageDescriptor *of,
                       const char *name, const char *spec, const char *status)
{
    const char *text = bh_arena_printf(&g->f.arena,
                                       "{'metadata':{'name':'%s','namespace':'default','uid':"
                                       "'u'},'spec':{%s},'status':{%s}}",
                                       name, spec, status);
    struct bh_buf b = {0};
    struct bh_err err;

    bh_pb_pack(&b, fx_message(&g->f, of, fx_json(&g->f, text)));
    CU_ASSERT(bh_engine_put_object(g->f.e, kind, "default", name, bh_buf_str(&b), b.n, &err) == 0);
    bh_buf_fini(&b);
}

static void put_group_spec(struct gang *g, const char *name, const char *spec)
{
    put_object(g, BH_KIND_PODGROUP, &k8s__pod_group__descriptor, name, spec, "");
}

/* policy: of spec.schedulingPolicy; NULL: the object goes. */
static void put_group(struct gang *g, const char *policy)
{
    struct bh_err err;

    if (policy)
        put_group_spec(g, "g", bh_arena_printf(&g->f.arena, "'schedulingPolicy':{%s}", policy));
    else
        CU_ASSERT(bh_engine_put_object(g->f.e, BH_KIND_PODGROUP, "default", "g", NULL, 0, &err) ==
                  0);
}

static void gang_of(struct gang *g, unsigned min)
{
    put_group(g, bh_arena_printf(&g->f.arena, "'gang':{'minCount':%u}", min));
}

static void node(struct gang *g, const char *name, const char *cpu)
{
    fx_node(&g->f, name, bh_arena_printf(&g->f.arena, "'cpu':'%s','memory':'8Gi','pods':'10'", cpu),
            "", "", "");
}

/* A pod of the group that waits and is to be tried. */
static struct bh_pending member(struct gang *g, const char *name, const char *cpu, const char *more)
{
    const char *spec = bh_arena_printf(&g->f.arena, "'schedulingGroup':{'podGroupName':'g'}%s%s",
                                       *more ? "," : "", more);
    struct fx_pod p = fx_pod(&g->f, name, bh_arena_printf(&g->f.arena, "'cpu':'%s'", cpu), spec);
    struct bh_pending pending = {.pod = p.rec, .shape = p.shape};

    bh_engine_waits(g->f.e, &pending, true);
    CU_ASSERT_FATAL(g->n < MEMBERS);
    g->try[g->n++] = (struct bh_group_try){.pod = pending};
    return pending;
}

static void members(struct gang *g, unsigned n, const char *cpu)
{
    for (unsigned i = 0; i < n; i++)
        (void)member(g, bh_arena_printf(&g->f.arena, "m%u", i), cpu, "");
}

static void occupy(struct gang *g, const char *name, const char *on, const char *cpu,
                   const char *more)
{
    fx_place(&g->f, fx_pod(&g->f, name, bh_arena_printf(&g->f.arena, "'cpu':'%s'", cpu), more), on);
}

static uint32_t run(struct gang *g)
{
    uint32_t left = 0;

    bh_engine_schedule_group(g->f.e, g->try, g->n, 0, TIME, &g->r);
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_pod_rec *p = g->try[i].pod.pod;
        CU_ASSERT(bh_engine_is_assumed(g->f.e, bh_rec_text(p, p->uid)) == g->try[i].assumed);
        left += g->try[i].assumed;
    }
    FX_INT(bh_engine_assumed_count(g->f.e), left);
    return left;
}

static const struct bh_group *group(struct gang *g)
{
    return bh_engine_group_of(g->f.e, &g->try[0].pod);
}

#define GROUP_IS(g_, unscheduled, assumed, assigned)                                               \
    do {                                                                                           \
        const struct bh_group *in_ = group(g_);                                                    \
        FX_INT(in_ ? in_->n[BH_MEMBER_UNSCHEDULED] : 0, unscheduled);                              \
        FX_INT(in_ ? in_->n[BH_MEMBER_ASSUMED] : 0, assumed);                                      \
        FX_INT(in_ ? in_->n[BH_MEMBER_ASSIGNED] : 0, assigned);                                    \
    } while (0)

/* ---- membership: each call of the page's table ------------------------------------------------ */

static void test_membership(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "8");
    const struct bh_pending a = member(&g, "a", "1", "");
    (void)member(&g, "b", "1", "");
    GROUP_IS(&g, 2, 0, 0);
    bh_engine_waits(g.f.e, &a, true); /* an update */
    GROUP_IS(&g, 2, 0, 0);
    bh_sym n1 = bh_sym_internc(bh_engine_symtab(g.f.e), "n1");
    CU_ASSERT(bh_engine_assume(g.f.e, &a, n1) == 0);
    GROUP_IS(&g, 1, 1, 0);
    CU_ASSERT(bh_engine_forget(g.f.e, bh_rec_text(a.pod, a.pod->uid)) == 0);
    GROUP_IS(&g, 2, 0, 0);
    CU_ASSERT(bh_engine_assume(g.f.e, &a, n1) == 0);
    fx_place(&g.f, (struct fx_pod){(struct bh_pod_rec *)(uintptr_t)a.pod, a.shape}, "n1");
    GROUP_IS(&g, 1, 0, 1); /* confirmed */
    bh_engine_waits(g.f.e, &a, false);
    GROUP_IS(&g, 1, 0, 1);
    fx_place(&g.f, (struct fx_pod){(struct bh_pod_rec *)(uintptr_t)a.pod, a.shape}, "n1");
    GROUP_IS(&g, 1, 0, 1); /* an update */
    bh_engine_del_pod(g.f.e, bh_rec_text(a.pod, a.pod->uid));
    CU_ASSERT(bh_group_all(bh_engine_group_of(g.f.e, &g.try[1].pod)) == 1);
    bh_engine_waits(g.f.e, &g.try[1].pod, false);
    CU_ASSERT_PTR_NULL(group(&g)); /* the last one has left */
    teardown(&g);
}

static void test_gate_off(void)
{
    struct gang g;

    setup(&g, "--feature-gates=GenericWorkload=false");
    node(&g, "n1", "8");
    (void)member(&g, "a", "1", "");
    CU_ASSERT_PTR_NULL(group(&g));
    CU_ASSERT_PTR_NULL(bh_engine_pre_enqueue(g.f.e, &g.try[0].pod));
    teardown(&g);
}

/* ---- GangScheduling ---------------------------------------------------------------------------- */

static const char *gate_says(struct gang *g)
{
    const struct bh_status *s = bh_engine_pre_enqueue(g->f.e, &g->try[0].pod);

    if (!s)
        return "";
    FX_STR(s->plugin, "GangScheduling");
    FX_STR(bh_code_name(s->code), "UnschedulableAndUnresolvable");
    return bh_status_message(&g->f.arena, s);
}

static void test_pre_enqueue(void)
{
    struct gang g;

    setup(&g, GANGS);
    (void)member(&g, "a", "1", "");
    FX_STR(gate_says(&g), "waiting for pods's pod group \"g\" to appear in scheduling queue");
    gang_of(&g, 2);
    FX_STR(gate_says(&g), "waiting for minCount pods from a gang to appear in scheduling queue");
    /* One with scheduling gates counts. */
    (void)member(&g, "b", "1", "'schedulingGates':[{'name':'x'}]");
    FX_STR(gate_says(&g), "");
    put_group(&g, "'basic':{}");
    FX_STR(gate_says(&g), "");
    struct fx_pod single = fx_pod(&g.f, "single", "'cpu':'1'", "");
    const struct bh_pending p = {.pod = single.rec, .shape = single.shape};
    CU_ASSERT_PTR_NULL(bh_engine_pre_enqueue(g.f.e, &p));
    teardown(&g);
}

static void test_permit(void)
{
    struct gang g;
    int64_t timeout_ns = 0;
    const char *plugin, *text;

    setup(&g, GANGS);
    node(&g, "n1", "8");
    gang_of(&g, 2);
    members(&g, 2, "1");
    bh_sym n1 = bh_sym_internc(bh_engine_symtab(g.f.e), "n1");
    CU_ASSERT(bh_engine_assume(g.f.e, &g.try[0].pod, n1) == 0);
    const struct bh_status *s = bh_engine_permit(g.f.e, &g.try[0].pod, n1, &timeout_ns);
    FX_INT(bh_status_code(s), BH_WAIT);
    FX_INT(timeout_ns, INT64_C(300) * 1000000000);
    FX_STR(bh_status_message(&g.f.arena, s),
           "waiting for minCount pods from a gang to be scheduled, " ASKED);
    const struct bh_str first = bh_rec_text(g.try[0].pod.pod, g.try[0].pod.pod->uid);
    struct bh_waiting_pod *waits = bh_engine_waiting(g.f.e, first);
    FX_INT(bh_engine_permit_verdict(g.f.e, waits, TIME, &plugin, &text), BH_PERMIT_WAITS);
    CU_ASSERT(bh_engine_assume(g.f.e, &g.try[1].pod, n1) == 0);
    CU_ASSERT_PTR_NULL(bh_engine_permit(g.f.e, &g.try[1].pod, n1, &timeout_ns));
    FX_INT(bh_engine_permit_verdict(g.f.e, waits, TIME, &plugin, &text), BH_PERMIT_ALLOWED);
    bh_engine_permit_over(g.f.e, waits);
    CU_ASSERT_PTR_NULL(bh_engine_waiting(g.f.e, first));
    put_group(&g, NULL);
    s = bh_engine_permit(g.f.e, &g.try[1].pod, n1, &timeout_ns);
    FX_STR(bh_status_message(&g.f.arena, s),
           "running Permit plugin \"GangScheduling\": failed to get podGroup default/g: "
           "podgroup.scheduling.k8s.io \"g\" not found");
    teardown(&g);
}

static enum bh_hint hint(struct gang *g, const struct bh_cluster_event *ev)
{
    bool by_pod;

    return bh_engine_hint(g->f.e, "GangScheduling", &g->try[0].pod, ev, &by_pod);
}

static void test_hints(void)
{
    struct gang g;

    setup(&g, GANGS);
    (void)member(&g, "a", "1", "");
    const struct bh_pending b = member(&g, "b", "1", "");
    struct fx_pod single = fx_pod(&g.f, "single", "'cpu':'1'", "");
    struct fx_pod other =
        fx_pod(&g.f, "other", "'cpu':'1'", "'schedulingGroup':{'podGroupName':'h'}");
    struct bh_cluster_event ev = {.resource = BH_EV_POD_UNSCHEDULED,
                                  .action = BH_EV_ADD,
                                  .new_pod = b.pod,
                                  .new_shape = bh_engine_shape_rec(g.f.e, b.shape)};
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE);
    ev.resource = BH_EV_POD_ASSIGNED;
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE);
    ev.new_pod = single.rec;
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE_SKIP);
    ev.new_pod = other.rec;
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE_SKIP);
    /* One of a group whose members all have nodes: nobody waits for it, said for all at once. */
    ev.new_pod = b.pod;
    bh_engine_waits(g.f.e, &g.try[0].pod, false);
    fx_place(&g.f, (struct fx_pod){(struct bh_pod_rec *)(uintptr_t)b.pod, b.shape}, "n1");
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE_SKIP);
    bh_engine_waits(g.f.e, &g.try[0].pod, true);
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE);
    struct bh_symtab *t = bh_engine_symtab(g.f.e);
    ev = (struct bh_cluster_event){.resource = BH_EV_OBJECT,
                                   .kind = BH_KIND_PODGROUP,
                                   .action = BH_EV_ADD,
                                   .object_namespace = bh_sym_internc(t, "default"),
                                   .object_name = bh_sym_internc(t, "g")};
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE);
    ev.object_name = bh_sym_internc(t, "h");
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE_SKIP);
    ev.object_name = bh_sym_internc(t, "g");
    ev.object_namespace = bh_sym_internc(t, "elsewhere");
    CU_ASSERT(hint(&g, &ev) == BH_QUEUE_SKIP);
    teardown(&g);
}

/* ---- the algorithm, row by row ----------------------------------------------------------------- */

static void test_all_fit(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "2");
    node(&g, "n2", "1");
    gang_of(&g, 3);
    members(&g, 3, "1");
    FX_INT(run(&g), 3);
    FX_INT(g.r.code, BH_SUCCESS);
    FX_STR(g.r.message, "");
    CU_ASSERT(!g.try[0].permitted && !g.try[1].permitted && g.try[2].permitted);
    GROUP_IS(&g, 0, 3, 0);
    teardown(&g);
}

static void test_too_few_fit(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "2");
    gang_of(&g, 3);
    members(&g, 3, "1");
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_UNSCHEDULABLE);
    CU_ASSERT(!g.r.waiting);
    FX_STR(g.r.message, "pod group is unschedulable");
    FX_STR(fx_text(&g.f, g.try[1].node), "n1");
    FX_STR(g.try[1].permit_message,
           "waiting for minCount pods from a gang to be scheduled, " ASKED);
    CU_ASSERT(g.try[2].node == BH_SYM_NONE);
    CU_ASSERT(strstr(g.try[2].decision.message, "0/1 nodes are available: 1 Insufficient cpu.") ==
              g.try[2].decision.message);
    FX_STR(g.try[2].decision.unschedulable_plugins[0], "NodeResourcesFit");
    GROUP_IS(&g, 3, 0, 0);
    /* Nothing of the trial stays: there is room for the two as before, and for three a node later. */
    node(&g, "n2", "1");
    FX_INT(run(&g), 3);
    teardown(&g);
}

static void test_enough_fit(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "3");
    gang_of(&g, 3);
    members(&g, 2, "1");
    (void)member(&g, "large", "2", "");
    (void)member(&g, "small", "1", "");
    FX_INT(run(&g), 3);
    FX_INT(g.r.code, BH_SUCCESS);
    CU_ASSERT(g.try[2].node == BH_SYM_NONE && g.try[2].decision.kind == BH_NO_FIT);
    GROUP_IS(&g, 1, 3, 0);
    teardown(&g);
}

static void test_members_before_count(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "3");
    gang_of(&g, 3);
    occupy(&g, "bound", "n1", "1", "'schedulingGroup':{'podGroupName':'g'}");
    members(&g, 2, "1");
    FX_INT(run(&g), 2);
    FX_INT(g.r.code, BH_SUCCESS);
    GROUP_IS(&g, 0, 2, 1);
    teardown(&g);
}

static void test_basic_group(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "1");
    put_group(&g, "'basic':{}");
    members(&g, 3, "1");
    FX_INT(run(&g), 1);
    FX_INT(g.r.code, BH_SUCCESS);
    teardown(&g);
}

static void test_without_the_plugin(void)
{
    struct gang g;

    /* GangScheduling off: a group without an object is tried together, and any one may go. */
    setup(&g, "--feature-gates=GenericWorkload=true");
    node(&g, "n1", "1");
    members(&g, 2, "1");
    FX_INT(run(&g), 1);
    FX_INT(g.r.code, BH_SUCCESS);
    teardown(&g);
}

#define LOW   "'priority':1"
#define HIGH  "'priority':10"
#define WAITS "pod group is unschedulable, pod group is waiting for preemption to complete"

static void test_preemption(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "1");
    node(&g, "n2", "1");
    gang_of(&g, 2);
    occupy(&g, "low", "n2", "1", LOW);
    (void)member(&g, "a", "1", HIGH);
    (void)member(&g, "b", "1", HIGH);
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_UNSCHEDULABLE);
    CU_ASSERT(g.r.waiting);
    FX_STR(g.r.message, WAITS);
    FX_STR(fx_text(&g.f, g.try[0].node), "n1");
    CU_ASSERT(!g.try[0].preempts && g.try[1].preempts);
    FX_STR(fx_text(&g.f, g.try[1].node), "n2");
    FX_INT(g.try[1].decision.n_victims, 1);
    teardown(&g);
}

/* Consequence (b): an already successful group waits for a preempting member. */
static void test_preemption_after_quorum(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "1");
    node(&g, "n2", "1");
    put_group(&g, "'basic':{}");
    occupy(&g, "low", "n2", "1", LOW);
    (void)member(&g, "a", "1", HIGH);
    (void)member(&g, "b", "1", HIGH);
    FX_INT(run(&g), 0);
    CU_ASSERT(g.r.waiting && g.try[0].permitted);
    FX_STR(g.r.message, WAITS);
    teardown(&g);
}

static void test_preemption_of_too_few(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "1");
    gang_of(&g, 2);
    occupy(&g, "low", "n1", "1", LOW);
    (void)member(&g, "a", "1", HIGH);
    (void)member(&g, "b", "1", HIGH);
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_UNSCHEDULABLE);
    CU_ASSERT(!g.r.waiting && g.try[0].preempts);
    FX_STR(g.r.message, "pod group is unschedulable");
    FX_STR(g.try[0].permit_message,
           "waiting for minCount pods from a gang to be scheduled, " ASKED);
    teardown(&g);
}

/* A preempting member sits on its victim's port for a while: the port stays the victim's. */
static void test_ports_of_victims(void)
{
    static const char port[] = "'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}},"
                               "'ports':[{'containerPort':80,'hostPort':80}]}]";
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "4");
    gang_of(&g, 2);
    fx_place(&g.f, fx_pod_full(&g.f, "low", "", bh_arena_printf(&g.f.arena, LOW ",%s", port), ""),
             "n1");
    struct fx_pod p = fx_pod_full(
        &g.f, "a", "",
        bh_arena_printf(&g.f.arena, HIGH ",'schedulingGroup':{'podGroupName':'g'},%s", port), "");
    g.try[g.n++] = (struct bh_group_try){.pod = {.pod = p.rec, .shape = p.shape}};
    bh_engine_waits(g.f.e, &g.try[0].pod, true);
    FX_INT(run(&g), 0);
    CU_ASSERT(g.try[0].preempts);
    struct fx_pod other = fx_pod_full(&g.f, "other", "", port, "");
    CU_ASSERT(fx_schedule(&g.f, other)->kind == BH_NO_FIT);
    teardown(&g);
}

static void test_nomination_returns(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "2");
    node(&g, "n2", "2");
    gang_of(&g, 3);
    members(&g, 2, "1");
    bh_sym n2 = bh_sym_internc(bh_engine_symtab(g.f.e), "n2");
    bh_engine_nominate(g.f.e, &g.try[1].pod, n2);
    FX_INT(run(&g), 0);
    FX_STR(fx_text(&g.f, g.try[1].node), "n2"); /* the promised one before all others */
    const struct bh_pod_rec *p = g.try[1].pod.pod;
    CU_ASSERT(bh_engine_nominated_node(g.f.e, bh_rec_text(p, p->uid)) == n2);
    teardown(&g);
}

static void test_error_ends_it(void)
{
    struct gang g;

    setup(&g, GANGS);
    node(&g, "n1", "8");
    members(&g, 3, "1"); /* no PodGroup: Permit cannot tell */
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_ERROR);
    FX_STR(g.r.message,
           "failed to schedule other pod from a pod group: running Permit plugin "
           "\"GangScheduling\": failed to get podGroup default/g: podgroup.scheduling.k8s.io "
           "\"g\" not found");
    CU_ASSERT(g.try[0].decided && !g.try[1].decided);
    FX_STR(g.try[0].decision.reason, "SchedulerError");
    teardown(&g);
}

static void test_no_nodes(void)
{
    struct gang g;

    setup(&g, GANGS);
    gang_of(&g, 2);
    members(&g, 2, "1");
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_UNSCHEDULABLE);
    FX_STR(g.try[1].decision.message, "no nodes available to schedule pods");
    teardown(&g);
}

/* One scan for the first, and the row that the one before changed for each other. */
static void test_a_group_costs_one_scan(void)
{
    struct bh_engine_stats before, after;
    struct gang g;

    setup(&g, GANGS);
    bh_engine_free(g.f.e);
    struct bh_engine_options o = {.tie_break = BH_TIE_FIRST, .config = g.f.config};
    struct bh_err err;
    CU_ASSERT_FATAL(bh_engine_new(&o, &g.f.e, &err) == 0);
    for (unsigned i = 0; i < 100; i++)
        node(&g, bh_arena_printf(&g.f.arena, "n%u", i), "4");
    gang_of(&g, 12);
    members(&g, 12, "1");
    bh_engine_stats(g.f.e, &before);
    FX_INT(run(&g), 12);
    bh_engine_stats(g.f.e, &after);
    CU_ASSERT(after.nodes_rescored - before.nodes_rescored <= 100 + 11);
    FX_INT(after.reference_cycles, 0);
    teardown(&g);
}

/* ---- preemption by group, row by row ------------------------------------------------------------ */

#define BY_GROUP GANGS ",WorkloadAwarePreemption=true"
#define UNFIT    "pod group is unschedulable"
#define UNPLACED "0/1 placements are available, first placement status: " UNFIT

/* Two nodes of two, and a gang of this many members of one each, whose group has priority 10. */
static void setup_crowded(struct gang *g, unsigned n, const char *more, bool stays)
{
    setup_with(g, BY_GROUP, stays);
    node(g, "n1", "2");
    node(g, "n2", "2");
    put_group_spec(g, "g",
                   bh_arena_printf(&g->f.arena,
                                   "'schedulingPolicy':{'gang':{'minCount':%u}},'priority':10%s", n,
                                   more));
    members(g, n, "1");
}

static void started(struct gang *g, const char *name, const char *on, const char *spec,
                    const char *second)
{
    fx_place(
        &g->f,
        fx_pod_full(&g->f, name, "'labels':{'app':'a'}",
                    bh_arena_printf(&g->f.arena,
                                    "'containers':[{'name':'c','resources':{'requests':"
                                    "{'cpu':'1'}}}],%s",
                                    spec),
                    bh_arena_printf(&g->f.arena, "'startTime':'2029-01-01T00:00:%sZ'", second)),
        on);
}

/* "a b", most important first, or the group's message. */
static const char *victims(struct gang *g)
{
    const char *text = "";

    FX_INT(run(g), 0);
    if (g->r.code == BH_UNSCHEDULABLE && !g->r.waiting)
        return g->r.message;
    FX_STR(g->r.message, UNFIT);
    for (uint32_t i = 0; i < g->r.n_victims; i++)
        text = bh_arena_printf(&g->f.arena, "%s%s%s", text, i ? " " : "", g->r.victims[i].name.p);
    return text;
}

/* Both ways of sparing give the same where members have one place to go. */
static void test_all_victims_at_once(void)
{
    for (int stays = 0; stays < 2; stays++) {
        struct gang g;
        setup_crowded(&g, 4, "", stays);
        started(&g, "a", "n1", LOW, "01");
        started(&g, "b", "n1", LOW, "02");
        started(&g, "c", "n2", LOW, "03");
        FX_STR(victims(&g), "a b c");
        CU_ASSERT(g.try[0].node != BH_SYM_NONE && g.try[1].node == BH_SYM_NONE);
        CU_ASSERT_PTR_NOT_NULL(strstr(g.try[1].decision.message,
                                      "preemption: not eligible due to workload aware preemption "
                                      "enabled"));
        /* Nothing was moved: neither is there room, nor did the pods change places. */
        bh_sym n1 = bh_sym_internc(bh_engine_symtab(g.f.e), "n1");
        const struct bh_node_info *ni = bh_engine_node_info(g.f.e, n1);
        FX_INT(ni->n_pods, 2);
        FX_STR(bh_rec_text(ni->pods[0]->rec, ni->pods[0]->rec->name).p, "a");
        FX_STR(bh_rec_text(ni->pods[1]->rec, ni->pods[1]->rec->name).p, "b");
        FX_STR(victims(&g), "a b c");
        teardown(&g);
    }
}

static void test_no_more_than_needed(void)
{
    for (int stays = 0; stays < 2; stays++) {
        struct gang g;
        setup_crowded(&g, 2, "", stays);
        started(&g, "low1", "n1", "'priority':5", "01");
        started(&g, "lowest1", "n1", LOW, "02");
        started(&g, "low2", "n2", "'priority':5", "03");
        started(&g, "lowest2", "n2", LOW, "04");
        FX_STR(victims(&g), "lowest1 lowest2");
        teardown(&g);
    }
}

static void test_priority_is_the_groups(void)
{
    struct gang g;

    setup(&g, BY_GROUP);
    node(&g, "n1", "1");
    gang_of(&g, 1); /* says none: 0 */
    occupy(&g, "low", "n1", "1", LOW);
    (void)member(&g, "a", "1", HIGH);
    FX_STR(victims(&g), UNFIT ", No preemption victims found for incoming preemptor");
    teardown(&g);
}

#define OF_H "'priority':1,'schedulingGroup':{'podGroupName':'h'}"

/* disruptionMode PodGroup: all or none, with the group's priority. */
static void test_whole_group(void)
{
    struct gang g;

    setup_crowded(&g, 1, "", false);
    put_group_spec(&g, "h",
                   "'schedulingPolicy':{'basic':{}},'disruptionMode':'PodGroup','priority':2");
    started(&g, "h1", "n1", OF_H, "01");
    started(&g, "h2", "n2", OF_H, "02");
    started(&g, "a", "n1", "'priority':3", "03");
    started(&g, "b", "n2", "'priority':3", "04");
    FX_STR(victims(&g), "h1 h2");
    put_group_spec(&g, "h",
                   "'schedulingPolicy':{'basic':{}},'disruptionMode':'PodGroup','priority':10");
    FX_STR(victims(&g), "b"); /* it is as important as the group, whatever its pods are */
    put_group_spec(&g, "h", "'schedulingPolicy':{'basic':{}},'disruptionMode':'Pod','priority':10");
    FX_STR(victims(&g), "h2");
    teardown(&g);
}

/* Of equal priority: groups before pods, larger before smaller, earlier before later. */
static void test_importance(void)
{
    struct gang g;

    setup_crowded(&g, 4, "", false);
    started(&g, "early", "n1", LOW, "01");
    started(&g, "late", "n1", LOW, "05");
    started(&g, "single", "n2", OF_H, "09"); /* of no object: a group of one */
    started(&g, "other", "n2", "'priority':1,'schedulingGroup':{'podGroupName':'k'}", "08");
    FX_STR(victims(&g), "other single early late");
    put_group_spec(&g, "h",
                   "'schedulingPolicy':{'basic':{}},'disruptionMode':'PodGroup','priority':1");
    put_group_spec(&g, "k",
                   "'schedulingPolicy':{'basic':{}},'disruptionMode':'PodGroup','priority':1");
    started(&g, "late", "n1", OF_H, "05");
    FX_STR(victims(&g), "late single other early");
    teardown(&g);
}

/* Pods that have not started do now, one after the other as they are met. */
static void test_not_started(void)
{
    struct gang g;

    setup_crowded(&g, 2, "", false);
    occupy(&g, "d", "n1", "1", LOW);
    occupy(&g, "b", "n1", "1", LOW);
    occupy(&g, "c", "n2", "1", LOW);
    started(&g, "a", "n2", LOW, "01"); /* long ago */
    FX_STR(victims(&g), "b c");
    teardown(&g);
    /* Upstream's order of nodes takes one of each zone in turn: n1, n3, n2. */
    setup(&g, BY_GROUP);
    put_group_spec(&g, "g", "'schedulingPolicy':{'gang':{'minCount':1}},'priority':10");
    for (unsigned i = 1; i <= 3; i++) {
        const char *name = bh_arena_printf(&g.f.arena, "n%u", i);
        fx_node(&g.f, name, "'cpu':'1','memory':'8Gi','pods':'10'",
                bh_arena_printf(&g.f.arena, "'topology.kubernetes.io/zone':'z%u'", i / 3), "", "");
        occupy(&g, bh_arena_printf(&g.f.arena, "on-%s", name), name, "1", LOW);
    }
    members(&g, 1, "1");
    FX_STR(victims(&g), "on-n2");
    teardown(&g);
}

/* A unit that would break a budget is spared before all others. */
static void test_budgets(void)
{
    for (int stays = 0; stays < 2; stays++) {
        struct gang g;
        setup_crowded(&g, 1, "", stays);
        put_object(&g, BH_KIND_PODDISRUPTIONBUDGET, &k8s__pod_disruption_budget__descriptor, "p",
                   "'selector':{'matchLabels':{'app':'a'}}", "'disruptionsAllowed':1");
        started(&g, "a", "n1", "'priority':5", "01"); /* within the budget */
        started(&g, "b", "n1", LOW, "02");
        started(&g, "c", "n2", LOW, "03");
        started(&g, "d", "n2", LOW, "04");
        FX_STR(victims(&g), "a");
        teardown(&g);
    }
}

static void test_own_members(void)
{
    struct gang g;

    setup_crowded(&g, 1, "", false);
    for (unsigned i = 0; i < 4; i++)
        started(&g, bh_arena_printf(&g.f.arena, "own%u", i), i < 2 ? "n1" : "n2",
                "'priority':1,'schedulingGroup':{'podGroupName':'g'}", "01");
    FX_STR(victims(&g), "own3"); /* not excluded */
    teardown(&g);
}

static void test_not_tried(void)
{
    struct gang g;

    setup_crowded(&g, 5, "", false);
    started(&g, "a", "n1", LOW, "01");
    FX_STR(victims(&g), UNFIT ", " UNFIT); /* not even without everybody */
    teardown(&g);
    setup_with(&g, BY_GROUP ",TopologyAwareWorkloadScheduling=true", false);
    node(&g, "n1", "1");
    put_group_spec(&g, "g", "'schedulingPolicy':{'gang':{'minCount':2}},'priority':10");
    members(&g, 2, "1");
    started(&g, "a", "n1", LOW, "01");
    FX_STR(victims(&g), UNPLACED ", " UNPLACED);
    teardown(&g);
    setup_crowded(&g, 4, ",'schedulingConstraints':{'topology':[{'key':'zone'}]}", false);
    started(&g, "a", "n1", LOW, "01");
    FX_STR(victims(&g), UNFIT ", workload aware preemption is not supported for pod groups with "
                              "scheduling constraints");
    teardown(&g);
    setup_crowded(&g, 3, "", false);
    started(&g, "a", "n1", LOW, "01");
    started(&g, "b", "n1", LOW, "01");
    started(&g, "c", "n1", LOW, "01");
    started(&g, "d", "n2", LOW, "01");
    (void)member(&g, "polite", "1", "'preemptionPolicy':'Never'");
    FX_STR(victims(&g), UNFIT ", not eligible due to preemptionPolicy=Never.");
    put_group(&g, NULL);
    node(&g, "n2", "0"); /* nobody reaches Permit, which would say so first */
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_ERROR);
    FX_STR(g.r.message,
           "failed to get pod group object: podgroup.scheduling.k8s.io \"g\" not found");
    teardown(&g);
}

/* A member that keeps away from the victims' like is in nobody's way on another node, but these are in
 * its: 1.37's way has to look at it as well. */
static void test_members_that_look_around(void)
{
    for (int stays = 0; stays < 2; stays++) {
        struct gang g;
        setup_with(&g, BY_GROUP, stays);
        for (unsigned i = 0; i < 2; i++)
            fx_node(&g.f, i ? "n2" : "n1", "'cpu':'2','memory':'8Gi','pods':'10'", "'zone':'z'", "",
                    "");
        put_group_spec(&g, "g", "'schedulingPolicy':{'gang':{'minCount':1}},'priority':10");
        started(&g, "a", "n1", LOW, "01");
        started(&g, "b", "n2", LOW, "02");
        (void)member(&g, "m", "1",
                     "'affinity':{'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuring"
                     "Execution':[{'labelSelector':{'matchLabels':{'app':'a'}},'topologyKey':"
                     "'zone'}]}}");
        FX_STR(victims(&g), "a b");
        teardown(&g);
    }
}

/* One node, full with a pod of lower priority, and the plugins of a configuration. */
static void setup_plugins(struct gang *g, const char *plugins)
{
    struct bh_engine_options o = {.tie_break = BH_TIE_FIRST, .verify = true};
    struct bh_config_report report;
    struct bh_err err = {0};

    setup(g, BY_GROUP);
    const char *text =
        bh_arena_printf(&g->f.arena,
                        "apiVersion: kubescheduler.config.k8s.io/v1\n"
                        "kind: KubeSchedulerConfiguration\n"
                        "profiles: [{schedulerName: default-scheduler, plugins: {%s}}]",
                        plugins);
    bh_engine_free(g->f.e);
    bh_sched_config_free(g->f.config);
    bh_config_report_init(&report);
    CU_ASSERT_FATAL(bh_sched_config_read(text, strlen(text), &g->f.config, &report) == 0);
    bh_config_report_fini(&report);
    bh_sched_config_apply_flags(g->f.config, &g->flags);
    o.config = g->f.config;
    CU_ASSERT_FATAL(bh_engine_new(&o, &g->f.e, &err) == 0);
    node(g, "n1", "1");
    put_group_spec(g, "g", "'schedulingPolicy':{'gang':{'minCount':1}},'priority':10");
    started(g, "low", "n1", LOW, "01");
    members(g, 1, "1");
}

/* The plugin has to be there, not at PostFilter. */
static void test_which_plugin(void)
{
    struct gang g;

    setup_plugins(&g, "postFilter: {disabled: [{name: DefaultPreemption}]}");
    FX_STR(victims(&g), "low");
    teardown(&g);
    setup_plugins(&g, "multiPoint: {disabled: [{name: DefaultPreemption}]}");
    FX_STR(victims(&g), UNFIT ", default preemption plugin is not registered, workload aware "
                              "preemption is disabled");
    teardown(&g);
}

/* A search takes as long as there are candidates: whoever runs the engine lives on, or ends it. */
static void test_long_search(void)
{
    for (int stays = 0; stays < 2; stays++) {
        struct gang g;
        setup_with(&g, BY_GROUP, stays);
        put_group_spec(&g, "g", "'schedulingPolicy':{'gang':{'minCount':16}},'priority':10");
        for (unsigned i = 0; i < 300; i++) {
            if (i % 10 == 0)
                node(&g, bh_arena_printf(&g.f.arena, "n%u", i / 10), "10");
            started(&g, bh_arena_printf(&g.f.arena, "low%03u", i),
                    bh_arena_printf(&g.f.arena, "n%u", i / 10), LOW, "01");
        }
        members(&g, 16, "1");
        FX_INT(run(&g), 0);
        FX_INT(g.r.n_victims, 16);
        CU_ASSERT(g.waited > 0);
        g.give_up = true;
        g.waited = 0;
        FX_STR(victims(&g), UNFIT);
        FX_INT(g.r.n_victims, 0);
        FX_INT(g.waited, 1);
        g.give_up = false;
        FX_INT(run(&g), 0);
        FX_INT(g.r.n_victims, 16); /* nothing was moved */
        teardown(&g);
    }
}

/* ---- placements: gate TopologyAwareWorkloadScheduling ------------------------------------------- */

#define PLACED                                                                                     \
    "--feature-gates=GenericWorkload=true,GangScheduling=true,"                                    \
    "TopologyAwareWorkloadScheduling=true"
#define BY_RACK "'gang':{'minCount':2}},'schedulingConstraints':{'topology':[{'key':'rack'}]"

static void racked(struct gang *g, const char *name, const char *rack, const char *cpu)
{
    fx_node(&g->f, name, bh_arena_printf(&g->f.arena, "'cpu':'%s','memory':'8Gi','pods':'10'", cpu),
            bh_arena_printf(&g->f.arena, "'rack':'%s'", rack), "", "");
}

static void expect_placement(const struct gang *g, uint32_t i, const char *name, uint32_t nodes,
                             uint32_t placed, bool fits)
{
    CU_ASSERT_FATAL(i < g->r.n_placements);
    FX_STR(g->r.placements[i].name, name);
    FX_INT(g->r.placements[i].nodes, nodes);
    FX_INT(g->r.placements[i].placed, placed);
    CU_ASSERT(g->r.placements[i].fits == fits);
}

/* There is room for two in all, but in one rack only b has it. */
static void test_one_domain(void)
{
    struct gang g;

    setup(&g, PLACED);
    racked(&g, "n1", "a", "1");
    racked(&g, "n2", "b", "1");
    racked(&g, "n3", "b", "1");
    node(&g, "n4", "4"); /* without the label: never */
    put_group(&g, BY_RACK);
    members(&g, 2, "1");
    FX_INT(run(&g), 2);
    FX_INT(g.r.code, BH_SUCCESS);
    FX_STR(fx_text(&g.f, g.try[0].node), "n2");
    FX_STR(fx_text(&g.f, g.try[1].node), "n3");
    FX_INT(g.r.n_placements, 2);
    expect_placement(&g, 0, "a", 1, 1, false);
    expect_placement(&g, 1, "b", 2, 2, true);
    CU_ASSERT(g.r.placements[1].chosen && !g.r.placements[0].chosen);
    FX_STR(g.r.placements[0].lack,
           "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
           "preemption: not eligible due to placement-based pod group scheduling limitation");
    GROUP_IS(&g, 0, 2, 0);
    teardown(&g);
}

static void test_no_domain_has_room(void)
{
    struct gang g;

    setup(&g, PLACED);
    racked(&g, "n1", "a", "1");
    racked(&g, "n2", "b", "1");
    put_group(&g, BY_RACK);
    members(&g, 2, "1");
    FX_INT(run(&g), 0);
    FX_STR(g.r.message, "0/2 placements are available, first placement status: pod group is "
                        "unschedulable");
    FX_STR(fx_text(&g.f, g.try[0].node), "n1"); /* the first trial's */
    CU_ASSERT(g.try[1].decision.kind == BH_NO_FIT);
    GROUP_IS(&g, 2, 0, 0);
    teardown(&g);
}

static void test_no_domain(void)
{
    struct gang g;

    setup(&g, PLACED);
    node(&g, "n1", "4");
    put_group(&g, BY_RACK);
    members(&g, 2, "1");
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_UNSCHEDULABLE);
    FX_STR(g.r.message, "no feasible placements found");
    FX_STR(g.try[1].decision.message, "no feasible placements found");
    FX_STR(g.try[1].decision.reason, "Unschedulable");
    /* Nobody rejected the pod: it waits as after an error, and keeps what it was promised. */
    FX_INT(g.try[1].decision.n_unschedulable_plugins, 0);
    CU_ASSERT(!g.try[1].decision.clear_nomination);
    put_group(&g, NULL);
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_ERROR);
    FX_STR(g.r.message, "podgroup.scheduling.k8s.io \"g\" not found");
    teardown(&g);
    setup(&g, PLACED ",WorkloadAwarePreemption=true");
    node(&g, "n1", "4");
    put_group(&g, BY_RACK);
    members(&g, 1, "1");
    FX_INT(run(&g), 0);
    FX_STR(g.r.message, "no feasible placements found, workload aware preemption is not supported "
                        "for pod groups with scheduling constraints");
    FX_STR(g.try[0].decision.message, g.r.message);
    teardown(&g);
}

/* A label without a value is a domain like any other. */
static void test_domain_without_a_name(void)
{
    struct gang g;

    setup(&g, PLACED);
    racked(&g, "n1", "", "2");
    racked(&g, "n2", "b", "1");
    put_group(&g, BY_RACK);
    members(&g, 2, "1");
    FX_INT(run(&g), 2);
    FX_INT(g.r.n_placements, 2);
    expect_placement(&g, 0, "", 1, 2, true);
    FX_STR(fx_text(&g.f, g.try[1].node), "n1");
    teardown(&g);
    setup(&g, PLACED);
    racked(&g, "n1", "", "2");
    racked(&g, "n2", "b", "2");
    put_group(&g, BY_RACK);
    occupy(&g, "bound", "n1", "1", "'schedulingGroup':{'podGroupName':'g'}");
    members(&g, 1, "1");
    FX_INT(run(&g), 1);
    FX_STR(fx_text(&g.f, g.try[0].node), "n1");
    teardown(&g);
}

/* Constraints that name no key restrict nothing, but upstream's preemption asks only if there are some. */
static void test_no_constraint_in_constraints(void)
{
    struct gang g;

    setup(&g, PLACED);
    node(&g, "n1", "1");
    put_group(&g, "'basic':{}},'schedulingConstraints':{");
    occupy(&g, "low", "n1", "1", LOW);
    (void)member(&g, "a", "1", HIGH);
    FX_INT(run(&g), 0);
    CU_ASSERT(!g.r.waiting);
    CU_ASSERT_PTR_NOT_NULL(strstr(g.try[0].decision.message,
                                  "preemption: not eligible due to placement-based pod group "
                                  "scheduling limitation"));
    teardown(&g);
}

/* One on a node says where the others have to be. */
static void test_fixed_domain(void)
{
    struct gang g;

    setup(&g, PLACED);
    racked(&g, "n1", "a", "4");
    racked(&g, "n2", "b", "2");
    put_group(&g, BY_RACK);
    occupy(&g, "bound", "n2", "1", "'schedulingGroup':{'podGroupName':'g'}");
    members(&g, 1, "1");
    FX_INT(run(&g), 1);
    FX_INT(g.r.n_placements, 1);
    FX_STR(fx_text(&g.f, g.try[0].node), "n2");
    teardown(&g);
}

static void test_two_domains(void)
{
    struct gang g;

    setup(&g, PLACED);
    racked(&g, "n1", "a", "4");
    racked(&g, "n2", "b", "2");
    put_group(&g, BY_RACK);
    occupy(&g, "one", "n2", "1", "'schedulingGroup':{'podGroupName':'g'}");
    occupy(&g, "two", "n1", "1", "'schedulingGroup':{'podGroupName':'g'}");
    members(&g, 1, "1");
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_ERROR);
    FX_STR(g.r.message, "cannot determine domain for already scheduled pods: "
                        "more than 1 domain found for pod group: a, b");
    teardown(&g);
}

/* PodGroupPodsCount: c takes three of the gang of two, b two, of three. */
static void test_more_members_are_better(void)
{
    struct gang g;

    setup(&g, PLACED);
    racked(&g, "n1", "b", "2");
    racked(&g, "n2", "c", "2");
    racked(&g, "n3", "c", "2");
    put_group(&g, BY_RACK);
    members(&g, 3, "1");
    FX_INT(run(&g), 3);
    expect_placement(&g, 0, "b", 1, 2, true);
    expect_placement(&g, 1, "c", 2, 3, true);
    CU_ASSERT(g.r.placements[1].chosen);
    /* 2 * 100 / 3, and cpu 2 of 2; all of them, and 3 of 4. Memory: 400Mi and 600Mi asked for. */
    FX_INT(g.r.placements[0].score, 66 + (100 + 4) / 2);
    FX_INT(g.r.placements[1].score, 100 + (75 + 3) / 2);
    teardown(&g);
}

static void add_racks(struct gang *g, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        racked(g, bh_arena_printf(&g->f.arena, "n%u", i), bh_arena_printf(&g->f.arena, "r%u", i),
               "1");
}

/* Many domains are many trials. */
static void test_many_domains(void)
{
    struct gang g;

    setup(&g, PLACED);
    add_racks(&g, 0, 20);
    put_group(&g, BY_RACK);
    members(&g, 16, "1");
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_UNSCHEDULABLE);
    FX_INT(g.waited, 1);
    /* Of those in vain hardly anything is kept. */
    const size_t few = g.f.e->group_arena.used_bytes;
    add_racks(&g, 20, 60);
    FX_INT(run(&g), 0);
    CU_ASSERT(g.f.e->group_arena.used_bytes - few < 40 * 4 * sizeof(struct bh_group_try));
    CU_ASSERT(strstr(g.r.placements[59].lack, "0/1 nodes are available: 1 Insufficient cpu.") ==
              g.r.placements[59].lack);
    g.waited = 1;
    g.give_up = true;
    FX_INT(run(&g), 0);
    FX_INT(g.r.code, BH_ERROR);
    FX_INT(g.waited, 2);
    GROUP_IS(&g, 16, 0, 0);
    teardown(&g);
}

/* NodeResourcesFit: of two that take all, the one that is fuller then. */
static void test_fuller_is_better(void)
{
    struct gang g;

    setup(&g, PLACED);
    racked(&g, "n1", "a", "8");
    racked(&g, "n2", "b", "4");
    put_group(&g, BY_RACK);
    members(&g, 2, "1");
    FX_INT(run(&g), 2);
    FX_STR(fx_text(&g.f, g.try[0].node), "n2");
    teardown(&g);
}

/* Without a constraint there is one placement: all nodes; its text is the placements'. */
static void test_unconstrained(void)
{
    struct gang g;

    setup(&g, PLACED);
    node(&g, "n1", "1");
    node(&g, "n2", "1");
    gang_of(&g, 3);
    members(&g, 3, "1");
    FX_INT(run(&g), 0);
    FX_INT(g.r.n_placements, 1);
    FX_STR(g.r.message, "0/1 placements are available, first placement status: pod group is "
                        "unschedulable");
    CU_ASSERT_PTR_NULL(strstr(g.try[2].decision.message, "placement-based"));
    node(&g, "n3", "1");
    FX_INT(run(&g), 3);
    teardown(&g);
}

BH_TESTS("scheduler/engine/group", {"membership, call by call", test_membership},
         {"without the gate nothing is kept", test_gate_off},
         {"PreEnqueue: first match", test_pre_enqueue}, {"Permit: first match", test_permit},
         {"hints: pods and groups added", test_hints}, {"all fit: the group goes", test_all_fit},
         {"too few fit: nobody goes, nothing stays", test_too_few_fit},
         {"enough fit: those who do not stay behind", test_enough_fit},
         {"members on nodes count", test_members_before_count},
         {"a basic group: whoever fits", test_basic_group},
         {"without GangScheduling", test_without_the_plugin},
         {"enough with preemption: the group waits", test_preemption},
         {"preemption after quorum holds back all", test_preemption_after_quorum},
         {"too few even with preemption", test_preemption_of_too_few},
         {"victims keep their ports", test_ports_of_victims},
         {"nominations return", test_nomination_returns},
         {"an error ends the trial", test_error_ends_it},
         {"a cluster without nodes", test_no_nodes},
         {"a group costs one scan", test_a_group_costs_one_scan},
         {"by group: all victims at once, nothing is moved", test_all_victims_at_once},
         {"by group: no more than needed", test_no_more_than_needed},
         {"by group: the group's priority counts", test_priority_is_the_groups},
         {"by group: a group as a whole", test_whole_group},
         {"by group: who is more important", test_importance},
         {"by group: pods that have not started", test_not_started},
         {"by group: budgets", test_budgets},
         {"by group: own members are not excluded", test_own_members},
         {"by group: when it is not tried", test_not_tried},
         {"by group: members that look around", test_members_that_look_around},
         {"by group: which plugin it needs", test_which_plugin},
         {"by group: a long search", test_long_search},
         {"placements: the domain that has room for all", test_one_domain},
         {"placements: none has", test_no_domain_has_room},
         {"placements: no node has the label", test_no_domain},
         {"placements: a domain without a name", test_domain_without_a_name},
         {"placements: constraints without a key", test_no_constraint_in_constraints},
         {"placements: members on nodes fix the domain", test_fixed_domain},
         {"placements: members on nodes of two domains", test_two_domains},
         {"placements: more members are better", test_more_members_are_better},
         {"placements: many domains", test_many_domains},
         {"placements: the fuller domain is better", test_fuller_is_better},
         {"placements: a group without a constraint", test_unconstrained})
