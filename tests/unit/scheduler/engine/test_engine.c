/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "tests/unit/scheduler/engine/fixture.h"

#define BIG "'cpu':'4','memory':'8Gi','pods':'110'"

static struct bh_str uid(struct fx_pod p)
{
    return bh_rec_text(p.rec, p.rec->uid);
}

static int assume(struct fx *f, struct fx_pod p, const char *node)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    return bh_engine_assume(f->e, &pending, bh_sym_internc(bh_engine_symtab(f->e), node));
}

static void test_no_nodes(void)
{
    struct fx f;

    fx_init(&f, NULL);
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "", ""));
    CU_ASSERT(d->kind == BH_DECISION_ERROR);
    FX_STR(d->message, "no nodes available to schedule pods");
    FX_STR(d->reason, "Unschedulable");
    CU_ASSERT(d->clear_nomination);
    fx_fini(&f);
}

/* The example that combines all default scores. */
static void test_worked_example(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    fx_node(&f, "b", BIG ",'example.com/gpu':'8'", "", "", "");
    fx_place(&f, fx_pod(&f, "ea", "'cpu':'1','memory':'2Gi'", ""), "a");
    fx_place(&f, fx_pod(&f, "eb", "'cpu':'500m','memory':'1Gi','example.com/gpu':'2'", ""), "b");
    const struct bh_decision *d =
        fx_schedule(&f, fx_pod(&f, "p", "'cpu':'500m','memory':'1Gi'", ""));
    CU_ASSERT_FATAL(d->kind == BH_DECIDED && d->n_scores == 2);
    FX_INT(d->scores[0].total, 437);
    FX_INT(d->scores[1].total, 450);
    FX_STR(fx_text(&f, d->node), "b");
    fx_fini(&f);
}

static void test_single_feasible_is_not_scored(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    fx_node(&f, "b", "'cpu':'1','memory':'8Gi','pods':'110'", "", "", "");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", ""));
    FX_STR(fx_text(&f, d->node), "a");
    CU_ASSERT(!d->scored);
    FX_INT(d->feasible, 1);
    FX_INT(d->evaluated, 2);
    fx_fini(&f);
}

static void test_fit_error_text(void)
{
    struct fx f;
    char name[8];

    fx_init(&f, NULL);
    for (unsigned i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "n%u", i);
        fx_node(&f, name, "'cpu':'1','memory':'8Gi','pods':'110'", "",
                i < 2 ? "'unschedulable':true" : "", "");
    }
    const struct bh_decision *d =
        fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", "'preemptionPolicy':'Never'"));
    CU_ASSERT(d->kind == BH_NO_FIT);
    FX_STR(d->message, "0/12 nodes are available: 10 Insufficient cpu, 2 node(s) were "
                       "unschedulable. no new claims "
                       "to deallocate, preemption: not eligible due to preemptionPolicy=Never.");
    FX_INT(d->n_unschedulable_plugins, 2);
    FX_STR(d->unschedulable_plugins[0], "NodeUnschedulable");
    FX_STR(d->unschedulable_plugins[1], "NodeResourcesFit");
    CU_ASSERT(!d->clear_nomination); /* not eligible: the nomination stays */
    fx_fini(&f);
}

static void test_narrowed_nodes(void)
{
    struct fx f;
    char name[8];
    const char *to_n1 =
        "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
        "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':['n1'"
        "]}]}"
        "]}}}";

    fx_init(&f, NULL);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "n%u", i);
        fx_node(&f, name, BIG, "", "", "");
    }
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'memory':'9Gi'", to_n1));
    FX_STR(d->fit_message,
           "0/4 nodes are available: 1 Insufficient memory, 3 node(s) didn't satisfy "
           "plugin(s) [NodeAffinity].");
    FX_INT(d->n_rejected, 1);
    FX_INT(d->n_unschedulable_plugins, 2);
    d = fx_schedule(&f, fx_pod(&f, "q", "'memory':'1Gi'", to_n1));
    FX_STR(fx_text(&f, d->node), "n1");
    FX_INT(d->evaluated, 1);
    fx_fini(&f);
}

static void test_conflicting_terms(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    const struct bh_decision *d = fx_schedule(
        &f,
        fx_pod(
            &f, "p", "",
            "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
            "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':"
            "['a']},{'key':'metadata.name','operator':'In','values':['b']}]}]}}}"));
    /* DynamicResources' PreFilter did not run, so its PostFilter fails, as upstream's does. */
    FX_STR(d->message, "0/1 nodes are available: pod affinity terms conflict. not found");
    FX_STR(d->pre_filter->plugin, "NodeAffinity");
    FX_INT(d->n_unschedulable_plugins, 1);
    fx_fini(&f);
}

static void test_assume_and_forget(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'3'", ""), q = fx_pod(&f, "q", "'cpu':'3'", "");
    CU_ASSERT(assume(&f, p, "a") == 0);
    CU_ASSERT(assume(&f, p, "a") == -EEXIST);
    CU_ASSERT(bh_engine_is_assumed(f.e, uid(p)));
    FX_INT(bh_engine_assumed_count(f.e), 1);
    CU_ASSERT(fx_schedule(&f, q)->kind == BH_NO_FIT);
    CU_ASSERT(bh_engine_forget(f.e, uid(p)) == 0);
    CU_ASSERT(bh_engine_forget(f.e, uid(p)) == -ENOENT);
    CU_ASSERT(fx_schedule(&f, q)->kind == BH_DECIDED);
    CU_ASSERT(assume(&f, p, "a") == 0);
    fx_place(&f, p, "a"); /* the API server confirms */
    CU_ASSERT(!bh_engine_is_assumed(f.e, uid(p)));
    CU_ASSERT(bh_engine_forget(f.e, uid(p)) == -ENOENT);
    FX_INT(bh_engine_pod_count(f.e), 1);
    fx_fini(&f);
}

static void test_pod_confirmed_elsewhere(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    fx_node(&f, "b", BIG, "", "", "");
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'4'", ""), q = fx_pod(&f, "q", "'cpu':'4'", "");
    CU_ASSERT(assume(&f, p, "a") == 0);
    fx_place(&f, p, "b");
    FX_STR(fx_text(&f, fx_schedule(&f, q)->node), "a");
    fx_fini(&f);
}

static void test_pods_before_their_node(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", "'cpu':'1','memory':'8Gi','pods':'110'", "", "", "");
    fx_place(&f, fx_pod(&f, "early", "'cpu':'3'", ""), "late");
    FX_INT(bh_engine_node_count(f.e), 1);
    fx_node(&f, "late", BIG, "", "", "");
    FX_INT(bh_engine_node_count(f.e), 2);
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'2'", ""));
    FX_STR(fx_verdict(&f, d, "late"), "Unschedulable: Insufficient cpu");
    bh_engine_del_node(f.e, bh_sym_internc(bh_engine_symtab(f.e), "late"));
    FX_INT(bh_engine_pod_count(f.e), 1); /* still there, its node is gone */
    fx_node(&f, "late", BIG, "", "", "");
    d = fx_schedule(&f, fx_pod(&f, "q", "'cpu':'2'", ""));
    FX_STR(fx_verdict(&f, d, "late"), "Unschedulable: Insufficient cpu");
    fx_fini(&f);
}

static void test_rebuild(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    fx_node(&f, "b", BIG, "", "", "");
    struct fx_pod gone = fx_pod(&f, "gone", "", ""), stays = fx_pod(&f, "stays", "", "");
    struct fx_pod inflight = fx_pod(&f, "inflight", "", "");
    fx_place(&f, gone, "a");
    fx_place(&f, stays, "a");
    CU_ASSERT(assume(&f, inflight, "a") == 0);
    bh_engine_rebuild_begin(f.e);
    fx_node(&f, "a", BIG, "", "", "");
    fx_place(&f, stays, "a");
    bh_engine_rebuild_end(f.e);
    FX_INT(bh_engine_node_count(f.e), 1);
    FX_INT(bh_engine_pod_count(f.e), 2);
    CU_ASSERT(bh_engine_is_assumed(f.e, uid(inflight)));
    fx_fini(&f);
}

static void test_nominated_pods_count(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    struct fx_pod high = fx_pod(&f, "high", "'cpu':'3'", "'priority':100");
    struct fx_pod equal = fx_pod(&f, "equal", "'cpu':'2'", "'priority':100");
    struct fx_pod higher = fx_pod(&f, "higher", "'cpu':'2'", "'priority':101");
    const struct bh_pending pending = {.pod = high.rec, .shape = high.shape};
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    CU_ASSERT(fx_schedule(&f, equal)->kind == BH_NO_FIT);
    CU_ASSERT(fx_schedule(&f, higher)->kind == BH_DECIDED);
    CU_ASSERT(fx_schedule(&f, high)->kind == BH_DECIDED); /* not against itself */
    bh_engine_unnominate(f.e, uid(high));
    CU_ASSERT(fx_schedule(&f, equal)->kind == BH_DECIDED);
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    CU_ASSERT(assume(&f, high, "a") == 0); /* takes the place of the nomination */
    CU_ASSERT(bh_engine_forget(f.e, uid(high)) == 0);
    CU_ASSERT(fx_schedule(&f, equal)->kind == BH_DECIDED);
    fx_fini(&f);
}

static void test_nominated_node_is_taken_unscored(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    fx_node(&f, "b", "'cpu':'2','memory':'8Gi','pods':'110'", "", "", "");
    struct fx_pod p =
        fx_pod_full(&f, "p", "", "'containers':[{'name':'c'}]", "'nominatedNodeName':'b'");
    const struct bh_decision *d = fx_schedule(&f, p);
    FX_STR(fx_text(&f, d->node), "b");
    FX_INT(d->feasible, 1);
    FX_INT(d->evaluated, 1);
    fx_place(&f, fx_pod(&f, "filler", "'cpu':'1950m'", ""), "b");
    p = fx_pod_full(&f, "q", "",
                    "'containers':[{'name':'c','resources':{'requests':{'cpu':'100m'}}}]",
                    "'nominatedNodeName':'b'");
    FX_STR(fx_text(&f, fx_schedule(&f, p)->node), "a"); /* not guaranteed */
    p = fx_pod_full(&f, "r", "", "'containers':[{'name':'c'}]", "'nominatedNodeName':'unknown'");
    FX_STR(fx_text(&f, fx_schedule(&f, p)->node), "a");
    fx_fini(&f);
}

static void test_missing_claims_are_named(void)
{
    struct fx f;

    fx_init(&f, NULL);
    fx_node(&f, "a", BIG, "", "", "");
    const struct bh_decision *d = fx_schedule(
        &f, fx_pod(&f, "r", "", "'resourceClaims':[{'name':'x','resourceClaimName':'y'}]"));
    FX_STR(d->pre_filter->plugin, "DynamicResources");
    FX_INT(d->pre_filter->code, BH_UNSCHEDULABLE_AND_UNRESOLVABLE);
    FX_STR(d->fit_message, "0/1 nodes are available: could not find ResourceClaim \"default/y\".");
    fx_fini(&f);
}

static void test_gates(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct fx_pod p = fx_pod(&f, "p", "", "'schedulingGates':[{'name':'x/b'},{'name':'x/a'}]");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    const struct bh_status *s = bh_engine_pre_enqueue(f.e, &pending);
    CU_ASSERT_FATAL(s != NULL);
    FX_STR(s->plugin, "SchedulingGates");
    FX_STR(s->reasons[0], "waiting for scheduling gates: [x/b x/a]");
    struct fx_pod q = fx_pod(&f, "q", "", "");
    const struct bh_pending free_pod = {.pod = q.rec, .shape = q.shape};
    CU_ASSERT(bh_engine_pre_enqueue(f.e, &free_pod) == NULL);
    fx_fini(&f);
}

/* 300 equal nodes, 48 %: the search starts where the last one ended. */
static void test_sampling_rotates(void)
{
    struct fx f;
    char name[8];
    const unsigned starts[] = {0, 144, 288, 132, 276};

    fx_init(&f, "{'schedulerName':'default-scheduler','percentageOfNodesToScore':48}");
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "n%03u", i);
        fx_node(&f, name, BIG, "", "", "");
    }
    for (unsigned k = 0; k < BH_ARRAY_LEN(starts); k++) {
        const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "", ""));
        bool has_start = false, has_before = false;
        char before[8];
        snprintf(name, sizeof name, "n%03u", starts[k]);
        snprintf(before, sizeof before, "n%03u", (starts[k] + 299) % 300);
        for (uint32_t i = 0; i < d->n_scores; i++) {
            has_start |= bh_streq(fx_text(&f, d->scores[i].node), name);
            has_before |= bh_streq(fx_text(&f, d->scores[i].node), before);
        }
        FX_INT(d->feasible, 144);
        CU_ASSERT(has_start && !has_before);
    }
    struct bh_engine_stats st;
    bh_engine_stats(f.e, &st);
    FX_INT(st.fast_cycles, 0);
    fx_fini(&f);
}

static void test_seeded_choice_is_reproducible(void)
{
    char first[64] = "", again[64] = "", other[64] = "";
    struct {
        uint64_t seed;
        char *out;
    } runs[] = {{7, first}, {7, again}, {8, other}};

    for (unsigned r = 0; r < BH_ARRAY_LEN(runs); r++) {
        struct fx f;
        fx_init_with(&f, NULL, (struct bh_engine_options){.seed = runs[r].seed});
        for (unsigned i = 0; i < 9; i++) {
            char name[4] = {'n', (char)('a' + (int)i), 0};
            fx_node(&f, name, BIG, "", "", "");
        }
        struct fx_pod p = fx_pod(&f, "p", "", "");
        const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
        for (unsigned i = 0; i < 20; i++)
            strncat(runs[r].out, fx_text(&f, bh_engine_schedule(f.e, &pending, 0, 0)->node) + 1, 1);
        fx_fini(&f);
    }
    FX_STR(again, first);
    CU_ASSERT(!bh_streq(other, first));
}

static void test_responsible(void)
{
    struct fx f;

    fx_init(&f, "{'schedulerName':'mine'}");
    CU_ASSERT(bh_engine_responsible(f.e, "mine"));
    CU_ASSERT(!bh_engine_responsible(f.e, "default-scheduler"));
    fx_node(&f, "a", BIG, "", "", "");
    CU_ASSERT(fx_schedule(&f, fx_pod(&f, "p", "", ""))->kind == BH_DECISION_ERROR);
    fx_fini(&f);
}

BH_TESTS(
    "scheduler/engine", {"an empty cluster is an error that reads as unschedulable", test_no_nodes},
    {"the default scores add up", test_worked_example},
    {"a single feasible node is taken without scoring", test_single_feasible_is_not_scored},
    {"the fit error counts reasons and sorts them with their counts", test_fit_error_text},
    {"nodes outside a PreFilter result are counted with the plugin's name", test_narrowed_nodes},
    {"conflicting name terms end in PreFilter", test_conflicting_terms},
    {"an assumed pod counts until it is forgotten", test_assume_and_forget},
    {"a pod confirmed on another node moves there", test_pod_confirmed_elsewhere},
    {"pods of an unknown node wait for it", test_pods_before_their_node},
    {"a rebuild drops what was not put again, but no assumed pod", test_rebuild},
    {"nominated pods of at least the same priority count", test_nominated_pods_count},
    {"the nominated node is taken as it is, if it fits", test_nominated_node_is_taken_unscored},
    {"a claim that does not exist is named", test_missing_claims_are_named},
    {"scheduling gates are listed in spec order", test_gates},
    {"an explicit percentage samples with a rotating start", test_sampling_rotates},
    {"the seeded choice among equals is reproducible", test_seeded_choice_is_reproducible},
    {"a scheduler name without profile is refused", test_responsible})
