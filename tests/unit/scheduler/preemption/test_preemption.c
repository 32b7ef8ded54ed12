/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/preemption/preemption.h"
#include "tests/unit/scheduler/engine/fixture.h"

#define NODE "'cpu':'2','memory':'8Gi','pods':'10'"

static struct fx_pod victim(struct fx *f, const char *name, int priority, const char *cpu,
                            const char *label, const char *start)
{
    const char *meta = *label ? bh_arena_printf(&f->arena, "'labels':{'app':'%s'}", label) : "";
    const char *spec = bh_arena_printf(
        &f->arena,
        "'priority':%d,'containers':[{'name':'c','resources':{'requests':{'cpu':'%s'}}}]", priority,
        cpu);
    const char *status = *start ? bh_arena_printf(&f->arena, "'startTime':'%s'", start) : "";

    return fx_pod_full(f, name, meta, spec, status);
}

static void budget(struct fx *f, const char *name, const char *selector, int allowed,
                   const char *disrupted)
{
    const char *text =
        bh_arena_printf(&f->arena,
                        "{'metadata':{'name':'%s','namespace':'default'},'spec':{'selector':{%s}},"
                        "'status':{'disruptionsAllowed':%d,'disruptedPods':{%s}}}",
                        name, selector, allowed, disrupted);
    struct bh_buf b = {0};

    bh_pb_pack(&b, fx_message(f, &k8s__pod_disruption_budget__descriptor, fx_json(f, text)));
    CU_ASSERT(bh_engine_put_object(f->e, BH_KIND_PODDISRUPTIONBUDGET, "default", name,
                                   bh_buf_str(&b), b.n, NULL) == 0);
    bh_buf_fini(&b);
}

/* "n1: a b" in order of importance, or the message. */
static const char *outcome(struct fx *f, const struct bh_decision *d)
{
    if (d->kind != BH_NO_FIT || !d->n_victims)
        return d->post_filter_message ? d->post_filter_message : "(decided)";
    const char *text = bh_arena_printf(&f->arena, "%s:", fx_text(f, d->nominated_node));
    for (uint32_t i = 0; i < d->n_victims; i++)
        text = bh_arena_printf(&f->arena, "%s %s", text, d->victims[i].name.p);
    return text;
}

static void test_lowest_top_priority(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "x", NODE, "", "", "");
    fx_node(&f, "y", NODE, "", "", "");
    fx_node(&f, "z", NODE, "", "", "");
    fx_place(&f, victim(&f, "x1", 10, "1", "", ""), "x");
    fx_place(&f, victim(&f, "x2", 10, "1", "", ""), "x");
    fx_place(&f, victim(&f, "y1", 10, "2", "", ""), "y");
    fx_place(&f, victim(&f, "z1", 20, "2", "", ""), "z");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':100"));
    FX_STR(outcome(&f, d), "y: y1"); /* z has a higher victim, x more of them */
    FX_STR(d->message, "0/3 nodes are available: 3 Insufficient cpu.");
    fx_fini(&f);
}

static void test_reprieve_keeps_the_important(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "n", NODE, "", "", "");
    fx_place(&f, victim(&f, "low", 1, "500m", "", "2026-01-01T00:00:00Z"), "n");
    fx_place(&f, victim(&f, "young", 5, "500m", "", "2026-01-01T02:00:00Z"), "n");
    fx_place(&f, victim(&f, "old", 5, "500m", "", "2026-01-01T01:00:00Z"), "n");
    fx_place(&f, victim(&f, "equal", 100, "500m", "", ""), "n");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'1'", "'priority':100"));
    FX_STR(outcome(&f, d), "n: young low");
    FX_INT(d->victims[0].priority, 5);
    fx_fini(&f);
}

/* The clock quirk: among pods that have not started, the one placed last is the most important. */
static void test_waiting_pods_are_spared_last_first(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "n", NODE, "", "", "");
    fx_place(&f, victim(&f, "first", 5, "1", "", ""), "n");
    fx_place(&f, victim(&f, "second", 5, "1", "", ""), "n");
    FX_STR(outcome(&f, fx_schedule(&f, fx_pod(&f, "p", "'cpu':'1'", "'priority':100"))),
           "n: first");
    fx_fini(&f);
}

static void test_budget_decides_the_node(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "x", NODE, "", "", "");
    fx_node(&f, "y", NODE, "", "", "");
    fx_place(&f, victim(&f, "guarded", 1, "2", "web", ""), "x");
    fx_place(&f, victim(&f, "free", 50, "2", "db", ""), "y");
    budget(&f, "pdb", "'matchLabels':{'app':'web'}", 0, "");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':100"));
    FX_STR(outcome(&f, d), "y: free"); /* although its priority is higher */
    FX_INT(d->victims_violating, 0);
    budget(&f, "pdb", "'matchLabels':{'app':'web'}", 0, "'guarded':'2026-01-01T00:00:00Z'");
    FX_STR(outcome(&f, fx_schedule(&f, fx_pod(&f, "q", "'cpu':'2'", "'priority':100"))),
           "x: guarded");
    fx_fini(&f);
}

/* A budget of 1 over three pods: the most important one uses it up, and the other two are spared
 * first. */
static void test_budget_split_order(void)
{
    struct fx f;
    struct bh_objects objects = {0};
    struct bh_budgets b;
    struct bh_pod_info info[3], *pods[3];
    bool violating[3];

    fx_init(&f, NULL);
    for (unsigned i = 0; i < 3; i++) {
        char name[4] = {'p', (char)('1' + (int)i), 0};
        struct fx_pod p = victim(&f, name, 5 - 2 * (int)i, "1", "web", "");
        info[i] = (struct bh_pod_info){.rec = p.rec, .shape = bh_engine_shape_rec(f.e, p.shape)};
        pods[i] = &info[i];
    }
    struct bh_buf packed = {0};
    const char *text = "{'metadata':{'name':'a','namespace':'default'},'spec':{'selector':{"
                       "'matchExpressions':[{'key':'app','operator':'In','values':['web']}]}},"
                       "'status':{'disruptionsAllowed':1}}";
    bh_pb_pack(&packed, fx_message(&f, &k8s__pod_disruption_budget__descriptor, fx_json(&f, text)));
    CU_ASSERT(bh_objects_put(&objects, BH_KIND_PODDISRUPTIONBUDGET, "default", "a",
                             bh_buf_str(&packed), packed.n, NULL) == 0);
    bh_budgets_list(&b, &objects, &f.arena);
    FX_INT(b.n, 1);
    bh_budgets_split(&b, &f.arena, bh_engine_symtab(f.e), pods, 3, violating);
    CU_ASSERT(!violating[0] && violating[1] && violating[2]);
    bh_buf_fini(&packed);
    bh_objects_fini(&objects);
    fx_fini(&f);
}

static void test_empty_and_invalid_budgets_cover_nobody(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "x", NODE, "", "", "");
    fx_place(&f, victim(&f, "v", 1, "2", "web", ""), "x");
    budget(&f, "empty", "", 0, "");
    budget(&f, "invalid", "'matchExpressions':[{'key':'app','operator':'Near','values':['web']}]",
           0, "");
    budget(&f, "no-values", "'matchExpressions':[{'key':'app','operator':'In'}]", 0, "");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':100"));
    FX_STR(outcome(&f, d), "x: v");
    FX_INT(d->victims_violating, 0);
    fx_fini(&f);
}

static void test_messages(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "full", NODE, "", "", "");
    fx_node(&f, "small", "'cpu':'1','memory':'8Gi','pods':'10'", "", "", "");
    fx_place(&f, victim(&f, "same", 100, "2", "", ""), "full");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':100"));
    FX_STR(
        d->post_filter_message,
        "no new claims to deallocate, preemption: 0/2 nodes are available: 1 No preemption victims "
        "found for incoming pod, 1 Preemption is not helpful for scheduling.");
    CU_ASSERT(d->clear_nomination);
    fx_place(&f, victim(&f, "less", 1, "0", "", ""), "full");
    d = fx_schedule(&f, fx_pod(&f, "q", "'cpu':'2'", "'priority':100"));
    FX_STR(
        d->post_filter_message,
        "no new claims to deallocate, preemption: 0/2 nodes are available: 1 Insufficient cpu, 1 "
        "Preemption is not helpful for scheduling.");
    fx_fini(&f);
}

static void test_waits_for_terminating_victims(void)
{
    struct fx f;
    const char *by_scheduler = "'conditions':[{'type':'DisruptionTarget','status':'True','reason':'"
                               "PreemptionByScheduler'}]";
    const char *spec =
        "'priority':1,'containers':[{'name':'c','resources':{'requests':{'cpu':'2'}}}]";

    fx_init(&f, NULL);
    fx_node(&f, "n", NODE, "", "", "");
    struct fx_pod dying =
        fx_pod_full(&f, "dying", "'deletionTimestamp':'2026-01-01T00:00:00Z'", spec, by_scheduler);
    fx_place(&f, dying, "n");
    struct fx_pod p = fx_pod_full(
        &f, "p", "",
        "'priority':100,'containers':[{'name':'c','resources':{'requests':{'cpu':'2'}}}]",
        "'nominatedNodeName':'n'");
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_STR(d->post_filter_message, "no new claims to deallocate, preemption: not eligible due to a "
                                   "terminating pod on the nominated node.");
    CU_ASSERT(!d->clear_nomination);
    fx_place(&f, fx_pod_full(&f, "dying", "'deletionTimestamp':'2026-01-01T00:00:00Z'", spec, ""),
             "n");
    FX_STR(outcome(&f, fx_schedule(&f, p)),
           "n: dying"); /* an ordinary termination does not block */
    fx_fini(&f);
}

static void test_too_many_pods(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "n", "'cpu':'2','memory':'8Gi','pods':'2'", "", "", "");
    fx_place(&f, victim(&f, "a", 1, "0", "", "2026-01-01T01:00:00Z"), "n");
    fx_place(&f, victim(&f, "b", 1, "0", "", "2026-01-01T02:00:00Z"), "n");
    FX_STR(outcome(&f, fx_schedule(&f, fx_pod(&f, "p", "", "'priority':5"))), "n: b");
    fx_fini(&f);
}

static void test_host_port_of_a_victim(void)
{
    struct fx f;
    const char *port = "'containers':[{'name':'c','ports':[{'containerPort':1,'hostPort':80}]}]";

    fx_init(&f, NULL);
    fx_node(&f, "n", NODE, "", "", "");
    fx_place(&f, fx_pod_full(&f, "v", "", port, ""), "n");
    FX_STR(
        outcome(&f, fx_schedule(&f, fx_pod_full(&f, "p", "",
                                                bh_arena_printf(&f.arena, "'priority':9,%s", port),
                                                ""))),
        "n: v");
    fx_fini(&f);
}

static void test_enough_candidates(void)
{
    struct fx f;
    char name[24];

    fx_init(
        &f,
        "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'DefaultPreemption','args'"
        ":{'minCandidateNodesPercentage':0,'minCandidateNodesAbsolute':1}}]}");
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "n%u", i);
        fx_node(&f, name, NODE, "", "", "");
        snprintf(name, sizeof name, "v%u", i);
        /* The later ones would be better victims, but one candidate is enough. */
        fx_place(&f, victim(&f, name, 10 - (int)i, "2", "", ""),
                 bh_arena_printf(&f.arena, "n%u", i));
    }
    FX_STR(outcome(&f, fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':100"))), "n0: v0");
    fx_fini(&f);
}

#define ARGS(percent, absolute)                                                                    \
    "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'DefaultPreemption','args':{"    \
    "'minCandidateNodesPercentage':" percent ",'minCandidateNodesAbsolute':" absolute "}}]}"

/* Nodes n0, n1, … with one victim each: v0, v1, … of these priorities. */
static void full_nodes(struct fx *f, const int *priorities, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const char *node = bh_arena_printf(&f->arena, "n%u", i);
        fx_node(f, node, NODE, "", "", "");
        fx_place(f,
                 victim(f, bh_arena_printf(&f->arena, "v%u", i), priorities[i], "2",
                        priorities[i] % 2 ? "guarded" : "", ""),
                 node);
    }
}

/* Candidates beyond the wanted number are dropped, those that violate a budget in a list of their
 * own, which does not end the search. */
static void test_candidates_are_capped(void)
{
    static const struct {
        const char *args;
        unsigned n;
        int priorities[5]; /* odd: guarded by a budget */
        const char *want;
    } rows[] = {
        {ARGS("0", "1"), 3, {9, 7, 5}, "n0: v0"}, /* all guarded: the first one only */
        {ARGS("0", "2"), 3, {9, 7, 5}, "n1: v1"},
        {ARGS("0", "1"), 4, {9, 7, 20, 4}, "n2: v2"}, /* the first that is not */
        {ARGS("100", "0"), 4, {9, 8, 6, 4}, "n3: v3"},
        {ARGS("50", "0"), 4, {8, 6, 4, 2}, "n1: v1"},
        {ARGS("0", "9"), 2, {8, 6}, "n1: v1"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        fx_init(&f, rows[i].args);
        budget(&f, "b", "'matchLabels':{'app':'guarded'}", 0, "");
        full_nodes(&f, rows[i].priorities, rows[i].n);
        FX_STR(outcome(&f, fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':100"))),
               rows[i].want);
        fx_fini(&f);
    }
    /* Of few nodes 10 % are none: nothing is found, and nothing is said about any node. */
    struct fx f;
    fx_init(&f, ARGS("10", "0"));
    full_nodes(&f, (const int[]){2, 4, 6}, 3);
    FX_STR(outcome(&f, fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':100"))),
           "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not "
           "helpful for scheduling.");
    fx_fini(&f);
}

/* More victims than an insertion sort takes, none of them started: Go's sort decides who is
 * spared. */
static void test_many_waiting_victims(void)
{
    struct fx f;
    const char *first, *second;

    fx_init(&f, NULL);
    fx_node(&f, "n", "'cpu':'40','memory':'8Gi','pods':'110'", "", "", "");
    for (unsigned i = 0; i < 40; i++)
        fx_place(&f, victim(&f, bh_arena_printf(&f.arena, "v%02u", i), 1, "1", "", ""), "n");
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'3'", "'priority':100");
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_INT(d->n_victims, 3);
    first = bh_arena_strdup(&f.arena, outcome(&f, d));
    second = outcome(&f, fx_schedule(&f, p));
    FX_STR(second, first); /* the same pods again: nothing is left to chance */
    fx_fini(&f);
}

/* Only one pod at a time may use the claim. */
static void test_claim_of_a_victim(void)
{
    static const struct {
        enum bh_kind kind;
        const char *ns, *json;
    } objects[] = {
        {BH_KIND_PERSISTENTVOLUMECLAIM, "default",
         "{'metadata':{'name':'c','namespace':'default','annotations':{'pv.kubernetes.io/"
         "bind-completed':''}},'spec':{'accessModes':['ReadWriteOncePod'],'volumeName':'c'}}"},
        {BH_KIND_PERSISTENTVOLUME, "",
         "{'metadata':{'name':'c'},'spec':{'claimRef':{'name':'c','namespace':'default'}}}"},
    };
    const char *use = "'priority':%d,'containers':[{'name':'c'}],'volumes':[{'name':'v',"
                      "'persistentVolumeClaim':{'claimName':'c'}}]";
    struct fx f;

    fx_init(&f, NULL);
    for (unsigned i = 0; i < 5; i++)
        fx_node(&f, bh_arena_printf(&f.arena, "n%u", i), NODE, "", "", "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(objects); i++) {
        struct bh_buf b = {0};
        bh_pb_pack(&b,
                   fx_message(&f, bh_kinds[objects[i].kind].desc, fx_json(&f, objects[i].json)));
        CU_ASSERT(bh_engine_put_object(f.e, objects[i].kind, objects[i].ns, "c", bh_buf_str(&b),
                                       b.n, NULL) == 0);
        bh_buf_fini(&b);
    }
    bh_engine_del_node(f.e, bh_sym_internc(bh_engine_symtab(f.e), "n0"));
    bh_engine_del_node(f.e, bh_sym_internc(bh_engine_symtab(f.e), "n3"));
    fx_place(&f, fx_pod_full(&f, "v", "", bh_arena_printf(&f.arena, use, 1), ""), "n2");
    const struct bh_decision *d =
        fx_schedule(&f, fx_pod_full(&f, "p", "", bh_arena_printf(&f.arena, use, 9), ""));
    FX_STR(outcome(&f, d), "n2: v");
    fx_fini(&f);
}

static void test_ties_are_listed(void)
{
    struct fx f;

    fx_init(&f, NULL);
    for (unsigned i = 0; i < 3; i++) {
        const char *node = (const char *[]){"c", "a", "b"}[i];
        fx_node(&f, node, NODE, "", "", "");
        fx_place(&f,
                 victim(&f, bh_arena_printf(&f.arena, "v%s", node), i == 2 ? 2 : 1, "2", "", ""),
                 node);
    }
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'priority':9"));
    FX_STR(outcome(&f, d), "a: va"); /* the smallest name */
    FX_INT(d->n_preemptions, 2);
    FX_STR(fx_text(&f, d->preemptions[1].node), "c");
    FX_STR(d->preemptions[1].victims[0].name.p, "vc");
    fx_fini(&f);
}

/* ---- selection alone ------------------------------------------------------------------------- */

struct candidates {
    struct bh_shape_rec shape[8];
    struct bh_pod_rec rec[8];
    struct bh_pod_info info[8], *ptr[8];
    struct bh_candidate v[4];
    unsigned n_pods, n;
};

static void add(struct candidates *c, uint32_t violating, unsigned n, const int32_t *priorities,
                const int64_t *starts)
{
    struct bh_candidate *cand = &c->v[c->n++];

    *cand = (struct bh_candidate){
        .violating = violating, .victims = &c->ptr[c->n_pods], .n_victims = n};
    for (unsigned i = 0; i < n; i++) {
        unsigned k = c->n_pods++;
        c->shape[k].priority = priorities[i];
        c->rec[k].start_ns = starts ? starts[i] : 1;
        c->info[k] = (struct bh_pod_info){.rec = &c->rec[k], .shape = &c->shape[k]};
        c->ptr[k] = &c->info[k];
    }
}

static void test_selection_steps(void)
{
    struct candidates c = {0};
    add(&c, 0, 2, (const int32_t[]){10, 0}, NULL);
    add(&c, 0, 2, (const int32_t[]){10, 5}, NULL);
    FX_INT(bh_pick_candidate(c.v, c.n, 9), 0); /* the smaller sum */

    memset(&c, 0, sizeof c);
    add(&c, 1, 1, (const int32_t[]){1}, NULL);
    add(&c, 0, 1, (const int32_t[]){99}, NULL);
    FX_INT(bh_pick_candidate(c.v, c.n, 9), 1); /* no violated budget */

    memset(&c, 0, sizeof c);
    add(&c, 0, 2, (const int32_t[]){5, -2147483647 - 1}, NULL);
    add(&c, 0, 1, (const int32_t[]){5}, NULL);
    FX_INT(bh_pick_candidate(c.v, c.n, 9), 1); /* equal sums, fewer victims */

    memset(&c, 0, sizeof c);
    add(&c, 0, 2, (const int32_t[]){5, 1}, (const int64_t[]){3, 1});
    add(&c, 0, 2, (const int32_t[]){5, 1}, (const int64_t[]){4, 1});
    FX_INT(bh_pick_candidate(c.v, c.n, 9), 1); /* its most important victim started later */

    memset(&c, 0, sizeof c);
    add(&c, 0, 1, (const int32_t[]){5}, NULL);
    add(&c, 0, 1, (const int32_t[]){5}, NULL);
    FX_INT(bh_pick_candidate(c.v, c.n, 9), 0); /* the first of equals */
}

BH_TESTS("scheduler/preemption",
         {"the lowest top victim wins, then the smaller sum", test_lowest_top_priority},
         {"important and older pods are spared", test_reprieve_keeps_the_important},
         {"among pods that have not started the last one is spared first",
          test_waiting_pods_are_spared_last_first},
         {"a violated budget outweighs priority", test_budget_decides_the_node},
         {"a budget is used up in order of importance", test_budget_split_order},
         {"empty and invalid budgets cover nobody", test_empty_and_invalid_budgets_cover_nobody},
         {"messages name what preemption found", test_messages},
         {"a preemptor waits for its terminating victims", test_waits_for_terminating_victims},
         {"too many pods is worth a preemption", test_too_many_pods},
         {"a victim's host port becomes free", test_host_port_of_a_victim},
         {"the search stops at enough candidates", test_enough_candidates},
         {"candidates are capped", test_candidates_are_capped},
         {"many victims that have not started", test_many_waiting_victims},
         {"a victim's claim becomes free", test_claim_of_a_victim},
         {"candidates that tie are listed, the chosen one first", test_ties_are_listed},
         {"selection goes respect by respect", test_selection_steps})
