/* SPDX-License-Identifier: Apache-2.0
 *
 * Coscheduling: what each point says of a group, in upstream's words, and what it remembers.
 */
#include "scheduler/plugins/registry.h"
#include "scheduler/queue/queue.h"
#include "tests/unit/scheduler/engine/fixture.h"

#define S    INT64_C(1000000000)
#define NOON (INT64_C(1893456000) * S)
#define MADE "2029-12-31T23:00:00Z" /* an hour before */

struct co {
    struct fx f;
    int64_t now_ns;
};

static void setup(struct co *c, const char *args)
{
    memset(c, 0, sizeof *c);
    const char *profile =
        "{'schedulerName':'default-scheduler','plugins':{'multiPoint':{'enabled':[{'name':"
        "'Coscheduling'}]},'queueSort':{'enabled':[{'name':'Coscheduling'}],'disabled':[{'name':"
        "'*'}]}},'pluginConfig':[{'name':'Coscheduling','args':{";
    struct bh_buf b = {0};
    bh_buf_addf(&b, "%s%s}}]}", profile, args);
    fx_init(&c->f, bh_buf_str(&b));
    bh_buf_fini(&b);
    c->now_ns = NOON;
}

static void teardown(struct co *c)
{
    fx_fini(&c->f);
}

static void node(struct co *c, const char *name, const char *cpu)
{
    fx_node(&c->f, name, bh_arena_printf(&c->f.arena, "'cpu':'%s','memory':'8Gi','pods':'10'", cpu),
            "", "", "");
}

static void group_at(struct co *c, const char *name, const char *made, const char *spec)
{
    const char *text = bh_arena_printf(&c->f.arena,
                                       "{'metadata':{'name':'%s','namespace':'default','uid':'u',"
                                       "'creationTimestamp':'%s'},'spec':{%s}}",
                                       name, made, spec);
    struct bh_buf b = {0};
    struct bh_err err;

    bh_pb_pack(&b,
               fx_message(&c->f, &k8s__coscheduling_pod_group__descriptor, fx_json(&c->f, text)));
    CU_ASSERT(bh_engine_put_object(c->f.e, BH_KIND_COSCHEDULING_PODGROUP, "default", name,
                                   bh_buf_str(&b), b.n, &err) == 0);
    bh_buf_fini(&b);
}

static void group(struct co *c, const char *spec)
{
    group_at(c, "g", MADE, spec);
}

static void no_group(struct co *c)
{
    CU_ASSERT(bh_engine_put_object(c->f.e, BH_KIND_COSCHEDULING_PODGROUP, "default", "g", NULL, 0,
                                   NULL) == 0);
}

static struct bh_pending pod_of(struct co *c, const char *group, const char *name, const char *cpu,
                                const char *more)
{
    const char *meta =
        bh_arena_printf(&c->f.arena, "'labels':{'scheduling.x-k8s.io/pod-group':'%s'}", group);
    const char *spec = bh_arena_printf(
        &c->f.arena, "'containers':[{'name':'c','resources':{'requests':{'cpu':'%s'}}}]%s%s", cpu,
        *more ? "," : "", more);
    const struct fx_pod p = fx_pod_full(&c->f, name, meta, spec, "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};

    bh_engine_waits(c->f.e, &pending, true);
    return pending;
}

static struct bh_pending member(struct co *c, const char *name, const char *cpu)
{
    return pod_of(c, "g", name, cpu, "");
}

static struct bh_str uid_of(const struct bh_pending *p)
{
    return bh_rec_text(p->pod, p->pod->uid);
}

/* A cycle up to Permit. "" = permitted, "waits 60" with the seconds, "PostFilter: ..." where there is no
 * node, else why not. */
static const char *attempt(struct co *c, const struct bh_pending *p)
{
    const struct bh_decision *d = bh_engine_schedule(c->f.e, p, 0, c->now_ns);
    int64_t timeout_ns;

    if (d->kind != BH_DECIDED)
        return bh_arena_strdup(&c->f.arena, d->message);
    const bh_sym at = d->node;
    CU_ASSERT(bh_engine_assume(c->f.e, p, at) == 0);
    CU_ASSERT(bh_engine_reserve(c->f.e, p, at) == NULL);
    const struct bh_status *s = bh_engine_permit(c->f.e, p, at, &timeout_ns);
    if (bh_status_code(s) == BH_SUCCESS)
        return "";
    if (bh_status_code(s) == BH_WAIT)
        return bh_arena_printf(&c->f.arena, "waits %lld", (long long)(timeout_ns / S));
    const char *text = bh_arena_strdup(&c->f.arena, bh_status_message(&c->f.arena, s));
    bh_engine_unreserve(c->f.e, p, at);
    CU_ASSERT(bh_engine_forget(c->f.e, uid_of(p)) == 0);
    return text;
}

/* What became of one that waits: "waits", "goes", or by whom it was rejected and why; then it is off its
 * node again. */
static const char *verdict(struct co *c, const struct bh_pending *p)
{
    const char *plugin, *why;

    switch (bh_engine_permit_verdict(c->f.e, bh_engine_waiting(c->f.e, uid_of(p)), c->now_ns,
                                     &plugin, &why)) {
    case BH_PERMIT_WAITS:
        return "waits";
    case BH_PERMIT_ALLOWED:
        return "goes";
    case BH_PERMIT_REJECTED:
    case BH_PERMIT_FAILED:
        break;
    }
    const char *text = bh_arena_printf(&c->f.arena, "%s: %s", plugin, why);
    bh_engine_unreserve(c->f.e, p, bh_engine_find_pod(c->f.e, uid_of(p), NULL)->node);
    CU_ASSERT(bh_engine_forget(c->f.e, uid_of(p)) == 0);
    bh_engine_permit_over(c->f.e, bh_engine_waiting(c->f.e, uid_of(p)));
    return text;
}

static void count(void *arg, struct bh_str uid BH_UNUSED)
{
    ++*(unsigned *)arg;
}

static unsigned activated(struct co *c)
{
    unsigned n = 0;

    (void)bh_engine_activations(c->f.e, count, &n);
    return n;
}

/* ---- who may go ------------------------------------------------------------------------------ */

static void test_three_of_three_go_together(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "4");
    group(&c, "'minMember':3");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "1"),
                            d = member(&c, "d", "1"), other = pod_of(&c, "", "other", "1", "");
    FX_STR(attempt(&c, &a), "waits 60");
    FX_INT(activated(&c), 2); /* the first fetches the others */
    FX_STR(attempt(&c, &b), "waits 60");
    FX_INT(activated(&c), 0);
    FX_STR(attempt(&c, &other), ""); /* an empty label names no group */
    FX_STR(verdict(&c, &a), "waits");
    FX_STR(attempt(&c, &d), "");
    FX_STR(verdict(&c, &a), "goes");
    FX_STR(verdict(&c, &b), "goes");
    teardown(&c);
}

static void test_one_more_goes_alone_once_the_group_runs(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "4");
    group(&c, "'minMember':2");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "1"),
                            d = member(&c, "d", "1");
    FX_STR(attempt(&c, &a), "waits 60");
    FX_STR(attempt(&c, &b), "");
    FX_STR(attempt(&c, &d), "");
    bh_engine_del_pod(c.f.e, uid_of(&a)); /* a bound member that goes counts no longer */
    bh_engine_del_pod(c.f.e, uid_of(&b));
    bh_engine_waits(c.f.e, &a, false);
    bh_engine_waits(c.f.e, &b, false);
    const struct bh_pending e = member(&c, "e", "1");
    FX_STR(attempt(&c, &e), "");
    teardown(&c);
}

static void test_waiting_times(void)
{
    static const struct {
        const char *args, *spec, *want;
    } rows[] = {
        {"", "'minMember':2", "waits 60"},
        {"'permitWaitingTimeSeconds':10", "'minMember':2", "waits 10"},
        {"'permitWaitingTimeSeconds':0", "'minMember':2", "waits 60"},
        {"'permitWaitingTimeSeconds':10", "'minMember':2,'scheduleTimeoutSeconds':30", "waits 30"},
        {"'permitWaitingTimeSeconds':10", "'minMember':2,'scheduleTimeoutSeconds':0", "waits 10"},
        {"'permitWaitingTimeSeconds':0", "'minMember':2,'scheduleTimeoutSeconds':0", "waits 0"},
        {"", "'scheduleTimeoutSeconds':30", ""}, /* minMember is not given */
        {"", "", ""},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct co c;
        setup(&c, rows[i].args);
        node(&c, "n", "4");
        group(&c, rows[i].spec);
        const struct bh_pending a = member(&c, "a", "1");
        (void)member(&c, "b", "1");
        FX_STR(attempt(&c, &a), rows[i].want);
        teardown(&c);
    }
}

static void test_without_a_podgroup_permit_refuses(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "4");
    const struct bh_pending a = member(&c, "a", "1");
    FX_STR(attempt(&c, &a), "PodGroup not found");
    group(&c, "'minMember':1");
    FX_STR(attempt(&c, &a), "");
    teardown(&c);
}

/* ---- PreFilter ------------------------------------------------------------------------------- */

#define NONE "0/1 nodes are available: "

static void test_too_few_siblings(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "4");
    group(&c, "'minMember':3");
    const struct bh_pending a = member(&c, "a", "1");
    FX_STR(attempt(&c, &a),
           NONE "pre-filter pod a cannot find enough sibling pods, current pods number: 1, "
                "minMember of group: 3. no new claims to deallocate, preemption: 0/1 nodes are "
                "available: 1 Preemption is not helpful for scheduling., PodGroup default/g gets "
                "rejected due to Pod a is unschedulable even after PostFilter");
    teardown(&c);
}

static void test_gated_siblings(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "9");
    group(&c, "'minMember':2");
    const struct bh_pending a = member(&c, "a", "1");
    const struct bh_pending gated = pod_of(&c, "g", "b", "1", "'schedulingGates':[{'name':'x'}]");
    CU_ASSERT_PTR_NOT_NULL(
        strstr(attempt(&c, &a),
               "pre-filter pod a cannot proceed due to gated pods in the same PodGroup."));
    (void)member(&c, "d", "1"); /* one more than needed makes up for it */
    FX_STR(attempt(&c, &a), "waits 60");
    bh_engine_waits(c.f.e, &gated, false);
    teardown(&c);
}

static void test_minimum_resources(void)
{
    static const struct {
        const char *resources, *gap; /* NULL: they are there */
    } rows[] = {
        {"'cpu':'4','memory':'10Gi'", NULL},
        {"'cpu':'5500m'", "map[cpu:{{500 -3} {<nil>}  DecimalSI}]"},
        {"'cpu':'6'", "map[cpu:{{1000 -3} {<nil>}  DecimalSI}]"},
        {"'cpu':'5'", NULL},
        {"'cpu':'5','memory':'17Gi'", "map[memory:{{1073741824 0} {<nil>}  BinarySI}]"},
        {"'cpu':'9','memory':'17Gi'",
         "map[cpu:{{4000 -3} {<nil>}  DecimalSI} memory:{{1073741824 0} {<nil>}  BinarySI}]"},
        {"'nvidia.com/gpu':'2'", "map[nvidia.com/gpu:{{2 0} {<nil>}  DecimalSI}]"},
        {"'example.com/dongle':'3'", "map[example.com/dongle:{{1 0} {<nil>}  DecimalSI}]"},
        {"'example.com/dongle':'2'", NULL},
        {"'cpu':'1e1'", "map[cpu:{{5000 -3} {<nil>}  DecimalExponent}]"},
        {"'ephemeral-storage':'1k'", "map[ephemeral-storage:{{1 3} {<nil>}  DecimalSI}]"},
        {"'pods':'1000'", NULL}, /* minMember is what counts */
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct co c;
        setup(&c, "");
        fx_node(&c.f, "n0", "'cpu':'3','memory':'8Gi','pods':'10','example.com/dongle':'2'", "", "",
                "");
        node(&c, "n1", "3");
        fx_place(&c.f, fx_pod(&c.f, "taken", "'cpu':'1'", ""), "n0");
        group(&c,
              bh_arena_printf(&c.f.arena, "'minMember':2,'minResources':{%s}", rows[i].resources));
        const struct bh_pending a = member(&c, "a", "1");
        (void)member(&c, "b", "1");
        const char *have = attempt(&c, &a);
        if (rows[i].gap)
            CU_ASSERT_PTR_NOT_NULL(
                strstr(have, bh_arena_printf(&c.f.arena,
                                             "0/2 nodes are available: resource gap: "
                                             "%s.",
                                             rows[i].gap)));
        if (rows[i].gap && !strstr(have, rows[i].gap))
            fprintf(stderr, "  row %zu: %s\n", i, have);
        if (!rows[i].gap)
            FX_STR(have, "waits 60");
        teardown(&c);
    }
}

static void test_own_pods_do_not_take_the_minimum_away(void)
{
    struct co c;

    setup(&c, "'permitWaitingTimeSeconds':5");
    node(&c, "n", "2");
    group(&c, "'minMember':2,'minResources':{'cpu':'2'}");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "1");
    FX_STR(attempt(&c, &a), "waits 5");
    c.now_ns += 6 * S; /* what was found out is forgotten, and looked at anew */
    FX_STR(attempt(&c, &b), "");
    teardown(&c);
}

static void test_what_was_there_is_believed_for_a_while(void)
{
    struct co c;

    setup(&c, "'permitWaitingTimeSeconds':0"); /* three seconds, then */
    node(&c, "n", "2");
    group(&c, "'minMember':2,'minResources':{'cpu':'2'}");
    const struct bh_pending a = member(&c, "a", "100m"), b = member(&c, "b", "100m");
    FX_STR(attempt(&c, &a), "waits 60");
    fx_place(&c.f, fx_pod(&c.f, "taken", "'cpu':'1'", ""), "n");
    c.now_ns += 4 * S;
    CU_ASSERT_PTR_NOT_NULL(strstr(attempt(&c, &b), "resource gap: map[cpu:{{1000 -3}"));
    FX_STR(verdict(&c, &a), "Coscheduling: optimistic rejection in PostFilter");
    bh_engine_del_pod(c.f.e, bh_str_c("uid-taken"));
    FX_STR(attempt(&c, &b), "waits 60");
    fx_place(&c.f, fx_pod(&c.f, "again", "'cpu':'1'", ""), "n");
    c.now_ns += 2 * S;
    FX_STR(attempt(&c, &a), ""); /* as it was two seconds ago */
    teardown(&c);
}

/* ---- PostFilter and Unreserve ---------------------------------------------------------------- */

static void test_who_has_no_room_takes_the_others_off(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "2");
    group(&c, "'minMember':3");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "1"),
                            d = member(&c, "d", "1");
    FX_STR(attempt(&c, &a), "waits 60");
    FX_STR(attempt(&c, &b), "waits 60");
    CU_ASSERT_PTR_NOT_NULL(strstr(attempt(&c, &d),
                                  "PodGroup default/g gets rejected due to Pod d is unschedulable "
                                  "even after PostFilter"));
    FX_STR(verdict(&c, &a), "Coscheduling: optimistic rejection in PostFilter");
    FX_STR(verdict(&c, &b), "Coscheduling: optimistic rejection in PostFilter");
    teardown(&c);
}

static void test_a_small_gap_is_waited_for(void)
{
    struct co c;

    setup(&c, "'podGroupRejectPercentage':50");
    node(&c, "n", "1");
    group(&c, "'minMember':2");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "1");
    FX_STR(attempt(&c, &a), "waits 60");
    CU_ASSERT_PTR_NULL(strstr(attempt(&c, &b), "PodGroup"));
    FX_STR(verdict(&c, &a), "waits");
    teardown(&c);
}

/* The watcher may not read PodGroups: only pods that name one wait. */
static void test_members_wait_while_their_kind_cannot_be_read(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "4");
    const struct fx_pod plain = fx_pod(&c.f, "plain", "'cpu':'1'", "");
    const struct bh_pending p = {.pod = plain.rec, .shape = plain.shape};
    const struct bh_pending a = member(&c, "a", "1");
    bh_engine_kind_state(c.f.e, BH_KIND_COSCHEDULING_PODGROUP, false,
                         "the watcher may not list it");
    CU_ASSERT_PTR_NOT_NULL(strstr(attempt(&c, &a), "the watcher may not list it"));
    FX_STR(attempt(&c, &p), "");
    bh_engine_kind_state(c.f.e, BH_KIND_COSCHEDULING_PODGROUP, true, "");
    group(&c, "'minMember':1");
    FX_STR(attempt(&c, &a), "");
    teardown(&c);
}

static void test_plain_pods_are_nobodys_group(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "1");
    const struct fx_pod big = fx_pod(&c.f, "big", "'cpu':'2'", "");
    const struct bh_pending p = {.pod = big.rec, .shape = big.shape};
    CU_ASSERT_PTR_NOT_NULL(strstr(attempt(&c, &p), ", can not find pod group"));
    teardown(&c);
}

static void test_one_that_times_out_takes_the_others_with_it(void)
{
    struct co c;

    setup(&c, "'permitWaitingTimeSeconds':5");
    node(&c, "n", "2");
    group(&c, "'minMember':3");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "1");
    (void)member(&c, "d", "1");
    FX_STR(attempt(&c, &a), "waits 5");
    FX_STR(verdict(&c, &a), "waits"); /* its clock starts */
    c.now_ns += 3 * S;
    FX_STR(attempt(&c, &b), "waits 5");
    FX_STR(verdict(&c, &b), "waits");
    c.now_ns += 2 * S;
    FX_STR(verdict(&c, &a),
           "Coscheduling: rejected due to timeout after waiting 5s at plugin Coscheduling");
    FX_STR(verdict(&c, &b), "Coscheduling: rejection in Unreserve");
    teardown(&c);
}

static void test_a_group_backs_off(void)
{
    struct co c;

    setup(&c, "'podGroupBackoffSeconds':10");
    node(&c, "n", "1");
    group(&c, "'minMember':2");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "1");
    FX_STR(attempt(&c, &a), "waits 60");
    (void)attempt(&c, &b);
    FX_STR(verdict(&c, &a), "Coscheduling: optimistic rejection in PostFilter");
    c.now_ns += 9 * S;
    CU_ASSERT_PTR_NOT_NULL(strstr(attempt(&c, &a), "podGroup default/g failed recently."));
    c.now_ns += 2 * S; /* which did not make it longer */
    FX_STR(attempt(&c, &a), "waits 60");
    teardown(&c);
}

static void test_a_group_without_its_object_is_let_be(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "2");
    group(&c, "'minMember':2");
    const struct bh_pending a = member(&c, "a", "1"), b = member(&c, "b", "5");
    FX_STR(attempt(&c, &a), "waits 60");
    no_group(&c);
    CU_ASSERT_PTR_NOT_NULL(strstr(attempt(&c, &b), "can not find pod group"));
    FX_STR(verdict(&c, &a), "waits");
    teardown(&c);
}

/* ---- members --------------------------------------------------------------------------------- */

static void test_a_changed_label_is_another_group(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "4");
    group(&c, "'minMember':2");
    group_at(&c, "h", MADE, "'minMember':2");
    const struct bh_pending a = member(&c, "a", "1");
    (void)member(&c, "b", "1");
    FX_STR(attempt(&c, &a), "waits 60");
    (void)pod_of(&c, "h", "b", "1", ""); /* the same uid: it went over */
    const struct bh_pending d = pod_of(&c, "h", "d", "1", "");
    FX_STR(attempt(&c, &d), "waits 60");
    const struct bh_pending e = member(&c, "e", "1");
    FX_STR(attempt(&c, &e), "");
    teardown(&c);
}

/* ---- QueueSort ------------------------------------------------------------------------------- */

static bool goes_first(struct co *c, const struct bh_pending *a, int64_t a_ns,
                       const struct bh_pending *b, int64_t b_ns)
{
    const struct bh_queue_key x = {.waiting = a,
                                   .shape = bh_engine_shape_rec(c->f.e, a->shape),
                                   .initial_attempt_ns = a_ns},
                              y = {.waiting = b,
                                   .shape = bh_engine_shape_rec(c->f.e, b->shape),
                                   .initial_attempt_ns = b_ns};
    const bool before = bh_engine_less(c->f.e, &x, &y);

    CU_ASSERT(before != bh_engine_less(c->f.e, &y, &x));
    return before;
}

static void test_whose_turn_it_is(void)
{
    struct co c;

    setup(&c, "");
    node(&c, "n", "1");
    group(&c, "'minMember':2"); /* made at eleven */
    group_at(&c, "late", "2029-12-31T23:30:00Z", "'minMember':2");
    const int64_t eleven = NOON - 3600 * S;
    const struct bh_pending urgent = pod_of(&c, "", "urgent", "1", "'priority':1"),
                            plain = pod_of(&c, "", "plain", "1", ""),
                            other = pod_of(&c, "", "other", "1", ""), a = member(&c, "a", "1"),
                            b = member(&c, "b", "1"), late = pod_of(&c, "late", "x", "1", ""),
                            lost = pod_of(&c, "lost", "y", "1", "");
    CU_ASSERT(goes_first(&c, &urgent, NOON, &a, NOON));
    CU_ASSERT(goes_first(&c, &plain, NOON, &other, NOON + 1));
    CU_ASSERT(goes_first(&c, &other, NOON, &plain, NOON)); /* by name */
    CU_ASSERT(goes_first(&c, &plain, eleven - 1, &a, NOON));
    CU_ASSERT(goes_first(&c, &a, NOON, &plain, eleven + 1)); /* whenever it was tried itself */
    CU_ASSERT(goes_first(&c, &a, NOON, &b, eleven));         /* one group: by name */
    CU_ASSERT(goes_first(&c, &b, NOON, &late, eleven));
    CU_ASSERT(goes_first(&c, &lost, eleven, &late, NOON)); /* no such group: by its attempt */
    CU_ASSERT(goes_first(&c, &plain, eleven + 1, &late, NOON));
    /* A group that was given up stands behind those that came since. */
    FX_STR(attempt(&c, &a), "waits 60");
    (void)attempt(&c, &b);
    FX_STR(verdict(&c, &a), "Coscheduling: optimistic rejection in PostFilter");
    CU_ASSERT(goes_first(&c, &late, NOON, &a, eleven));
    CU_ASSERT(goes_first(&c, &plain, NOON - 1, &a, eleven));
    CU_ASSERT(goes_first(&c, &a, NOON, &plain, NOON + 1));
    /* Until it goes. */
    node(&c, "m", "1");
    FX_STR(attempt(&c, &a), "waits 60");
    FX_STR(attempt(&c, &b), "");
    CU_ASSERT(goes_first(&c, &a, NOON, &late, eleven));
    teardown(&c);
}

/* The first that has a node fetches the others, whatever backoff they have left: were it popped before
 * its own ends, because nothing else is active, the group would never rest. */
static void test_a_member_waits_for_the_end_of_its_backoff(void)
{
    static const char *const by[] = {"NodeResourcesFit"};
    const struct bh_queue_options o = {
        .initial_backoff_ns = 4 * S, .max_backoff_ns = 10 * S, .max_in_unschedulable_ns = 300 * S};
    struct co c;

    setup(&c, "");
    node(&c, "n", "1");
    group(&c, "'minMember':2");
    const struct bh_pending m = member(&c, "m", "1"), plain = pod_of(&c, "", "plain", "1", "");
    struct bh_queue *q = bh_queue_new(c.f.e, &o);
    bh_queue_update(q, NULL, m.pod, m.shape, "1", NOON);
    bh_queue_update(q, NULL, plain.pod, plain.shape, "1", NOON);
    for (unsigned i = 0; i < 2; i++) {
        struct bh_queued_pod *p = bh_queue_pop(q, NOON);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        bh_queue_return(q, p->pod, by, 1, NULL, 0, NOON);
    }
    bh_queue_wake_all(q, NOON);
    const struct bh_queued_pod *first = bh_queue_pop(q, NOON + S);
    CU_ASSERT_PTR_NOT_NULL_FATAL(first); /* the other one may go early */
    FX_STR(bh_rec_text(first->pending.pod, first->pending.pod->name).p, "plain");
    CU_ASSERT_PTR_NULL(bh_queue_pop(q, NOON + S));
    (void)bh_queue_tick(q, NOON + 5 * S);
    first = bh_queue_pop(q, NOON + 5 * S);
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    FX_STR(bh_rec_text(first->pending.pod, first->pending.pod->name).p, "m");
    bh_queue_free(q);
    teardown(&c);
}

/* ---- configuration --------------------------------------------------------------------------- */

static void test_wrong_arguments(void)
{
    static const struct {
        const char *args, *want;
    } rows[] = {
        {"'permitWaitingTimeSeconds':-10",
         "permitWaitingTimeSeconds: Invalid value: -10: must be greater than 0"},
        {"'podGroupBackoffSeconds':-1",
         "podGroupBackoffSeconds: Invalid value: -1: must be greater than 0"},
        {"'podGroupRejectPercentage':101",
         "podGroupRejectPercentage: Invalid value: 101: must be between 0 and 100"},
        {"'permitWaitingTimeSeconds':-1,'podGroupRejectPercentage':-1",
         "[permitWaitingTimeSeconds: Invalid value: -1: must be greater than 0, "
         "podGroupRejectPercentage: Invalid value: -1: must be between 0 and 100]"},
        {"'permitWaitingTimeSecond':1", "unknown field \"permitWaitingTimeSecond\""},
        {"'permitWaitingTimeSeconds':'1m'", "permitWaitingTimeSeconds of type int64"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f = {0};
        struct bh_err err = {{0}};
        const char *text = bh_arena_printf(
            &f.arena,
            "{'apiVersion':'kubescheduler.config.k8s.io/v1','kind':'KubeSchedulerConfiguration',"
            "'profiles':[{'plugins':{'multiPoint':{'enabled':[{'name':'Coscheduling'}]},"
            "'queueSort':{'enabled':[{'name':'Coscheduling'}],'disabled':[{'name':'*'}]}},"
            "'pluginConfig':[{'name':'Coscheduling','args':{%s}}]}]}",
            rows[i].args);
        CU_ASSERT(bh_sched_config_new(fx_json(&f, text), &f.config, &err) == -EINVAL);
        if (!strstr(err.msg, rows[i].want))
            fprintf(stderr, "  row %zu: %s\n", i, err.msg);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, rows[i].want));
        bh_arena_fini(&f.arena);
    }
}

BH_TESTS("scheduler/plugins/coscheduling",
         {"three of three go together", test_three_of_three_go_together},
         {"one more goes alone once the group runs", test_one_more_goes_alone_once_the_group_runs},
         {"waiting times", test_waiting_times},
         {"without a podgroup permit refuses", test_without_a_podgroup_permit_refuses},
         {"too few siblings", test_too_few_siblings}, {"gated siblings", test_gated_siblings},
         {"minimum resources", test_minimum_resources},
         {"own pods do not take the minimum away", test_own_pods_do_not_take_the_minimum_away},
         {"what was there is believed for a while", test_what_was_there_is_believed_for_a_while},
         {"who has no room takes the others off", test_who_has_no_room_takes_the_others_off},
         {"a small gap is waited for", test_a_small_gap_is_waited_for},
         {"members wait while their kind cannot be read",
          test_members_wait_while_their_kind_cannot_be_read},
         {"plain pods are nobodys group", test_plain_pods_are_nobodys_group},
         {"one that times out takes the others with it",
          test_one_that_times_out_takes_the_others_with_it},
         {"a group backs off", test_a_group_backs_off},
         {"a group without its object is let be", test_a_group_without_its_object_is_let_be},
         {"a changed label is another group", test_a_changed_label_is_another_group},
         {"whose turn it is", test_whose_turn_it_is},
         {"a member waits for the end of its backoff",
          test_a_member_waits_for_the_end_of_its_backoff},
         {"wrong arguments", test_wrong_arguments})
