/* SPDX-License-Identifier: Apache-2.0
 *
 * InterPodAffinity: the worked examples of upstream's arithmetic, namespaces, dry runs, hints.
 */
#include "scheduler/plugins/interpodaffinity/affinity.h"
#include "scheduler/plugins/registry.h"
#include "tests/unit/scheduler/plugins/podtopologyspread/world.h"

#define IPA        "InterPodAffinity"
#define ZONE       "'topologyKey':'topology.kubernetes.io/zone'"
#define HOST       "'topologyKey':'kubernetes.io/hostname'"
#define APP(a)     "'labelSelector':{'matchLabels':{'app':'" a "'}}"
#define NEAR(list) "'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" list "]}"
#define AWAY(list) "'podAntiAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[" list "]}"
#define LIKE(list) "'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[" list "]}"
#define DISLIKE(list)                                                                              \
    "'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[" list "]}"
#define WEIGHT(w, term) "{'weight':" w ",'podAffinityTerm':{" term "}}"
#define AFFINITY(x)     "'affinity':{" x "}"

/* a, b in z1, c in z2, d in z3. a: web; c: two db; d: db of another namespace, and a pod that
 * requires app=inc in its zone. */
static void begin(struct fx *f, const char *profile)
{
    fx_init(f, profile);
    w_node(f, "a", "z1");
    w_node(f, "b", "z1");
    w_node(f, "c", "z2");
    w_node(f, "d", "z3");
    w_namespace(f, "ns", "'team':'a'");
    w_namespace(f, "other", "'team':'b'");
    fx_place(f, w_pod(f, "ns", "web", "'app':'web'", "", ""), "a");
    fx_place(f, w_pod(f, "ns", "db1", "'app':'db'", "", ""), "c");
    fx_place(f, w_pod(f, "ns", "db2", "'app':'db'", "", ""), "c");
    fx_place(f, w_pod(f, "other", "db3", "'app':'db'", "", ""), "d");
    fx_place(f,
             w_pod(f, "ns", "fan", "'app':'fan'", "", AFFINITY(NEAR("{" ZONE "," APP("inc") "}"))),
             "d");
}

static const struct bh_decision *schedule(struct fx *f, const char *affinity)
{
    return fx_schedule(f, w_pod(f, "ns", "p", "'app':'inc'", "", affinity));
}

/* ---- scores ---------------------------------------------------------------------------------- */

#define ARGS(a)                                                                                    \
    "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'InterPodAffinity','args':{" a   \
    "}}]}"

static void test_scores(void)
{
    static const struct {
        const char *profile, *affinity, *raw, *normal;
    } rows[] = {
        {NULL, "", "0 0 0 1", "0 0 0 100"},
        {ARGS("'hardPodAffinityWeight':0"), "", "-1 -1 -1 -1", NULL},
        {ARGS("'hardPodAffinityWeight':7"), "", "0 0 0 7", "0 0 0 100"},
        {ARGS("'ignorePreferredTermsOfExistingPods':true"), "", "-1 -1 -1 -1", NULL},
        {NULL,
         AFFINITY(
             LIKE(WEIGHT("5", ZONE "," APP("web"))) "," DISLIKE(WEIGHT("3", ZONE "," APP("db")))),
         "5 5 -6 1", "100 100 0 63"},
        {ARGS("'ignorePreferredTermsOfExistingPods':true"),
         AFFINITY(LIKE(WEIGHT("5", ZONE "," APP("web")))), "5 5 0 1", "100 100 0 20"},
        {NULL, AFFINITY(DISLIKE(WEIGHT("100", HOST "," APP("db")))), "0 0 -200 1", "99 99 0 100"},
        /* the terms of required affinity do not widen the search */
        {ARGS("'hardPodAffinityWeight':0"), AFFINITY(AWAY("{" HOST "," APP("web") "}")),
         "- -1 -1 -1", NULL},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].profile);
        const struct bh_decision *d = schedule(&f, rows[i].affinity);
        FX_STR(w_scores(&f, d, IPA, "abcd", true), rows[i].raw);
        if (rows[i].normal)
            FX_STR(w_scores(&f, d, IPA, "abcd", false), rows[i].normal);
        fx_fini(&f);
    }
}

/* Scores that add up to nothing are scores. */
static void test_zero_sum_does_not_skip(void)
{
    struct fx f;

    begin(&f, ARGS("'hardPodAffinityWeight':0"));
    const struct bh_decision *d =
        schedule(&f, AFFINITY(LIKE(WEIGHT("5", ZONE "," APP("web"))) "," DISLIKE(
                         WEIGHT("5", ZONE "," APP("web")))));
    FX_STR(w_scores(&f, d, IPA, "abcd", true), "0 0 0 0");
    FX_STR(w_scores(&f, d, IPA, "abcd", false), "0 0 0 0");
    fx_fini(&f);
}

static void test_existing_pods_have_preferences(void)
{
    struct fx f;

    begin(&f, NULL);
    fx_place(&f,
             w_pod(&f, "ns", "x", "", "",
                   AFFINITY(LIKE(WEIGHT("10", HOST "," APP("inc"))) "," DISLIKE(
                       WEIGHT("4", ZONE "," APP("inc"))))),
             "a");
    FX_STR(w_scores(&f, schedule(&f, ""), IPA, "abcd", true), "6 -4 0 1");
    fx_fini(&f);
}

static void test_normalisation_divides_first(void)
{
    int64_t s[] = {0, 29, 57, 58, 100}, t[] = {0, 29, 50}, same[] = {7, 7};

    bh_ipa_normalize(NULL, s, 5);
    CU_ASSERT(s[0] == 0 && s[1] == 28 && s[2] == 56 && s[3] == 57 && s[4] == 100);
    bh_ipa_normalize(NULL, t, 3);
    CU_ASSERT(t[1] == 57);
    bh_ipa_normalize(NULL, same, 2);
    CU_ASSERT(same[0] == 0 && same[1] == 0);
}

/* ---- filter ---------------------------------------------------------------------------------- */

static void test_required_affinity(void)
{
    static const struct {
        const char *terms, *verdicts;
    } rows[] = {
        {"{" ZONE "," APP("web") "}", "..XX"},
        {"{" HOST "," APP("web") "}", ".XXX"},
        {"{" ZONE "," APP("inc") "}", "...."},                          /* the first of its group */
        {"{" ZONE "," APP("web") "},{" ZONE "," APP("db") "}", "XXXX"}, /* no pod is both */
        {"{" ZONE "," APP("inc") "},{" ZONE "," APP("web") "}", "XXXX"},
        {"{" ZONE "," APP("nobody") "}", "XXXX"},
        {"{'topologyKey':'rack'," APP("inc") "}", "XXXX"}, /* all keys have to be there */
        {"{" ZONE "}", "XXXX"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, NULL);
        const struct bh_decision *d =
            schedule(&f, bh_arena_printf(&f.arena, AFFINITY(NEAR("%s")), rows[i].terms));
        FX_STR(w_verdicts(&f, d, "abcd"), rows[i].verdicts);
        fx_fini(&f);
    }
}

/* One pod matches both terms, another one only the first: only pods that match all are counted, and
 * then each term in its own topology. */
static void test_terms_are_tied_by_one_pod(void)
{
    struct fx f;

    begin(&f, NULL);
    fx_place(&f, w_pod(&f, "ns", "both", "'app':'web','tier':'x'", "", ""), "b");
    const struct bh_decision *d =
        schedule(&f, AFFINITY(NEAR("{" HOST "," APP(
                         "web") "},{" ZONE ",'labelSelector':{'matchLabels':{'tier':'x'}}}")));
    FX_STR(w_verdicts(&f, d, "abcd"), "X.XX");
    fx_fini(&f);
}

static void test_anti_affinity(void)
{
    struct fx f;

    begin(&f, NULL);
    FX_STR(w_verdicts(&f, schedule(&f, AFFINITY(AWAY("{" ZONE "," APP("web") "}"))), "abcd"),
           "UU..");
    FX_STR(w_verdicts(
               &f,
               schedule(&f, AFFINITY(AWAY("{" ZONE "," APP("web") "},{" HOST "," APP("db") "}"))),
               "abcd"),
           "UUU.");
    FX_STR(w_verdicts(&f, schedule(&f, AFFINITY(AWAY("{'topologyKey':'rack'," APP("web") "}"))),
                      "abcd"),
           "....");
    fx_place(&f, w_pod(&f, "ns", "x", "", "", AFFINITY(AWAY("{" ZONE "," APP("inc") "}"))), "c");
    FX_STR(w_verdicts(&f, schedule(&f, ""), "abcd"), "..U.");
    fx_fini(&f);
}

static void test_reasons(void)
{
    struct fx f;

    begin(&f, NULL);
    fx_place(&f, w_pod(&f, "ns", "x", "", "", AFFINITY(AWAY("{" ZONE "," APP("inc") "}"))), "c");
    const struct bh_decision *d = schedule(
        &f, AFFINITY(NEAR("{" ZONE "," APP("web") "}") "," AWAY("{" HOST "," APP("web") "}")));
    FX_STR(fx_verdict(&f, d, "a"), "Unschedulable: node(s) didn't match pod anti-affinity rules");
    FX_STR(fx_verdict(&f, d, "b"), "");
    FX_STR(fx_verdict(&f, d, "c"),
           "UnschedulableAndUnresolvable: node(s) didn't match pod affinity rules");
    FX_STR(fx_verdict(&f, schedule(&f, ""), "c"),
           "Unschedulable: node(s) didn't satisfy existing pods anti-affinity rules");
    d = schedule(&f, AFFINITY(NEAR("{" ZONE ",'labelSelector':{'matchExpressions':[{'key':'a',"
                                   "'operator':'Like'}]}}")));
    FX_STR(d->fit_message,
           "0/4 nodes are available: parsing pod: requiredAffinityTerms: \"Like\" is "
           "not a valid label selector operator.");
    d = schedule(&f,
                 AFFINITY(NEAR(
                     "{" ZONE ",'labelSelector':{'matchExpressions':[{'key':'a',"
                     "'operator':'Like'}]}}") "," DISLIKE(WEIGHT("1", ZONE
                                                                 ",'namespaceSelector':{'"
                                                                 "matchExpressions':[{"
                                                                 "'key':'b','operator':'Gt'}]}"))));
    FX_STR(d->fit_message,
           "0/4 nodes are available: parsing pod: [requiredAffinityTerms: \"Like\" is "
           "not a valid label selector operator, preferredAntiAffinityTerms: \"Gt\" is "
           "not a valid label selector operator].");
    fx_fini(&f);
}

/* ---- namespaces ------------------------------------------------------------------------------ */

static void test_own_namespace_selectors(void)
{
    static const struct {
        const char *term, *verdicts;
    } rows[] = {
        {"", "..U."},
        {",'namespaces':['other']", "...U"},
        {",'namespaces':['other','ns']", "..UU"},
        {",'namespaceSelector':{'matchExpressions':[{'key':'team','operator':'In','values':['a']}]"
         "}",
         "..U."},
        {",'namespaces':['other'],'namespaceSelector':{'matchLabels':{'team':'a'}}", "..UU"},
        {",'namespaceSelector':{}", "..UU"},
        /* documented is "..U.", but upstream's selector still stands after its namespaces were
           added */
        {",'namespaceSelector':{'matchExpressions':[{'key':'team','operator':'NotIn','values':['b']"
         "}]}",
         "..UU"},
        {",'namespaceSelector':{'matchLabels':{'team':'never-seen'}}", "...."},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, NULL);
        const struct bh_decision *d =
            schedule(&f, bh_arena_printf(&f.arena, AFFINITY(AWAY("{" ZONE "," APP("db") "%s}")),
                                         rows[i].term));
        FX_STR(w_verdicts(&f, d, "abcd"), rows[i].verdicts);
        fx_fini(&f);
    }
}

/* Terms of existing pods ask for the labels of the incoming pod's namespace; without the object it
 * has none. */
static void test_selectors_of_existing_pods(void)
{
    static const struct {
        const char *selector;
        bool known, unknown; /* rejects a pod of a namespace with team=a / without object */
    } rows[] = {
        {"{'matchLabels':{'team':'a'}}", true, false},
        {"{'matchLabels':{'team':'b'}}", false, false},
        {"{'matchExpressions':[{'key':'team','operator':'NotIn','values':['b']}]}", true, true},
        {"{'matchExpressions':[{'key':'team','operator':'NotIn','values':['a']}]}", false, true},
        {"{}", true, true},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, NULL);
        fx_place(
            &f,
            w_pod(&f, "else", "x", "", "",
                  bh_arena_printf(
                      &f.arena, AFFINITY(AWAY("{" HOST "," APP("inc") ",'namespaceSelector':%s}")),
                      rows[i].selector)),
            "b");
        FX_STR(w_verdicts(&f, schedule(&f, ""), "abcd"), rows[i].known ? ".U.." : "....");
        FX_STR(
            w_verdicts(&f, fx_schedule(&f, w_pod(&f, "new", "p", "'app':'inc'", "", "")), "abcd"),
            rows[i].unknown ? ".U.." : "....");
        fx_fini(&f);
    }
}

/* ---- dry runs -------------------------------------------------------------------------------- */

static const char *victims(struct fx *f, const struct bh_decision *d)
{
    if (d->kind != BH_NO_FIT || !d->n_victims)
        return d->kind == BH_DECIDED ? "(decided)" : d->post_filter_message;
    const char *text = bh_arena_printf(&f->arena, "%s:", fx_text(f, d->nominated_node));
    for (uint32_t i = 0; i < d->n_victims; i++)
        text = bh_arena_printf(&f->arena, "%s %s", text, d->victims[i].name.p);
    return text;
}

static void test_preemption_removes_anti_affinity(void)
{
    struct fx f;

    fx_init(&f, NULL);
    w_node(&f, "a", "z1");
    fx_place(&f, w_pod(&f, "ns", "guard", "", "", AFFINITY(AWAY("{" ZONE "," APP("inc") "}"))),
             "a");
    fx_place(&f, w_pod(&f, "ns", "bystander", "", "", ""), "a");
    FX_STR(victims(&f, schedule(&f, "'priority':10")), "a: guard");
    bh_engine_del_pod(f.e, BH_STR("ns-guard"));
    fx_place(&f, w_pod(&f, "ns", "web", "'app':'web'", "", ""), "a");
    FX_STR(victims(&f, schedule(&f, "'priority':10," AFFINITY(AWAY("{" ZONE "," APP("web") "}")))),
           "a: web");
    /* required affinity cannot be helped by eviction */
    CU_ASSERT_PTR_NOT_NULL(strstr(
        victims(&f, schedule(&f, "'priority':10," AFFINITY(NEAR("{" ZONE "," APP("x") "}")))),
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."));
    fx_fini(&f);
}

static void test_nominated_pods_count(void)
{
    struct fx f;

    fx_init(&f, NULL);
    w_node(&f, "a", "z1");
    w_node(&f, "b", "z2");
    struct fx_pod other = w_pod(&f, "ns", "q", "'app':'inc'", "", "'priority':10");
    const struct bh_pending pending = {.pod = other.rec, .shape = other.shape};
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    const char *away = AFFINITY(AWAY("{" ZONE "," APP("inc") "}"));
    FX_STR(w_verdicts(&f, schedule(&f, away), "ab"), "U.");
    /* Nobody to be near to yet: the one promised to a counts there, and only there. Both with and
     * without it the pod has to fit. */
    FX_STR(w_verdicts(&f, schedule(&f, AFFINITY(NEAR("{" ZONE "," APP("inc") "}"))), "ab"), "..");
    fx_fini(&f);
}

/* As upstream: a plugin that skipped does not hear of nominated pods. */
static void test_nominated_anti_affinity_is_not_heard_after_skip(void)
{
    struct fx f;

    fx_init(&f, NULL);
    w_node(&f, "a", "z1");
    struct fx_pod other =
        w_pod(&f, "ns", "q", "", "", "'priority':10," AFFINITY(AWAY("{" ZONE "," APP("inc") "}")));
    const struct bh_pending pending = {.pod = other.rec, .shape = other.shape};
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    FX_STR(w_verdicts(&f, schedule(&f, ""), "a"), ".");
    FX_STR(w_verdicts(&f, schedule(&f, AFFINITY(AWAY("{" ZONE "," APP("zzz") "}"))), "a"), "U");
    fx_fini(&f);
}

/* ---- hints ----------------------------------------------------------------------------------- */

static bool hint(struct fx *f, struct fx_pod p, struct bh_cluster_event ev)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    return bh_engine_hint(f->e, IPA, &pending, &ev, &(bool){false}) == BH_QUEUE;
}

static bool pod_event(struct fx *f, struct fx_pod p, uint32_t action, const struct fx_pod *old,
                      const struct fx_pod *neu)
{
    return hint(
        f, p,
        (struct bh_cluster_event){.resource = BH_EV_POD_ASSIGNED,
                                  .action = action,
                                  .old_pod = old ? old->rec : NULL,
                                  .new_pod = neu ? neu->rec : NULL,
                                  .old_shape = old ? bh_engine_shape_rec(f->e, old->shape) : NULL,
                                  .new_shape = neu ? bh_engine_shape_rec(f->e, neu->shape) : NULL});
}

static struct fx_pod assigned(struct fx *f, const char *ns, const char *labels, const char *spec)
{
    struct fx_pod p = w_pod(f, ns, "x", labels, "", spec);
    p.rec->node = bh_sym_internc(bh_engine_symtab(f->e), "somewhere");
    return p;
}

static void test_pod_hints(void)
{
    struct fx f;

    fx_init(&f, NULL);
    w_namespace(&f, "other", "'team':'b'");
    struct fx_pod near =
        w_pod(&f, "ns", "p", "'app':'inc'", "",
              AFFINITY(NEAR("{" ZONE "," APP(
                  "web") "},{" ZONE ",'labelSelector':{'matchLabels':{'v':'1'}}}")));
    struct fx_pod away =
        w_pod(&f, "ns", "p", "'app':'inc'", "",
              AFFINITY(AWAY("{" ZONE "," APP("web") "},{" HOST "," APP("db") "}")));
    struct fx_pod team = w_pod(&f, "ns", "p", "'app':'inc'", "",
                               AFFINITY(NEAR("{" ZONE "," APP(
                                   "web") ",'namespaceSelector':{'matchLabels':{'team':'b'}}}")));
    struct fx_pod group =
        w_pod(&f, "ns", "p", "'app':'inc'", "", AFFINITY(NEAR("{" ZONE "," APP("inc") "}")));
    struct fx_pod plain = w_pod(&f, "ns", "p", "'app':'inc'", "", "");
    struct fx_pod web = assigned(&f, "ns", "'app':'web'", ""),
                  web1 = assigned(&f, "ns", "'app':'web','v':'1'", ""),
                  db = assigned(&f, "ns", "'app':'db'", ""), no = assigned(&f, "ns", "", ""),
                  inc = assigned(&f, "ns", "'app':'inc'", ""),
                  guard = assigned(&f, "ns", "", AFFINITY(AWAY("{" ZONE "," APP("inc") "}"))),
                  far = assigned(&f, "other", "'app':'web'", ""),
                  waiting = w_pod(&f, "ns", "x", "'app':'web','v':'1'", "", "");

    CU_ASSERT(pod_event(&f, near, BH_EV_ADD, NULL, &web1));
    CU_ASSERT(!pod_event(&f, near, BH_EV_ADD, NULL, &web)); /* one of the two terms only */
    CU_ASSERT(!pod_event(&f, near, BH_EV_ADD, NULL, &waiting));
    CU_ASSERT(pod_event(&f, near, BH_EV_POD_LABEL, &web, &web1));
    CU_ASSERT(!pod_event(&f, near, BH_EV_POD_LABEL, &web1, &web));
    CU_ASSERT(pod_event(&f, near, BH_EV_POD_LABEL, &near, &near)); /* its own labels */
    CU_ASSERT(!pod_event(&f, near, BH_EV_DELETE, &web1, NULL));
    CU_ASSERT(pod_event(&f, away, BH_EV_DELETE, &web, NULL)); /* one term of two is enough */
    CU_ASSERT(pod_event(&f, away, BH_EV_DELETE, &db, NULL));
    CU_ASSERT(!pod_event(&f, away, BH_EV_DELETE, &no, NULL));
    CU_ASSERT(pod_event(&f, away, BH_EV_POD_LABEL, &web, &no));
    CU_ASSERT(pod_event(&f, away, BH_EV_POD_LABEL, &web, &db));
    CU_ASSERT(!pod_event(&f, away, BH_EV_POD_LABEL, &no, &web));
    CU_ASSERT(!pod_event(&f, away, BH_EV_ADD, NULL, &web));
    CU_ASSERT(pod_event(&f, plain, BH_EV_DELETE, &guard, NULL));
    CU_ASSERT(!pod_event(&f, plain, BH_EV_DELETE, &web, NULL));
    CU_ASSERT(pod_event(&f, team, BH_EV_ADD, NULL, &far)); /* the selector is looked up */
    CU_ASSERT(!pod_event(&f, team, BH_EV_ADD, NULL, &web));
    CU_ASSERT(pod_event(&f, group, BH_EV_DELETE, &inc, NULL)); /* it may be the first now */
    CU_ASSERT(!pod_event(&f, group, BH_EV_DELETE, &web, NULL));
    fx_fini(&f);
}

static bool node_event(struct fx *f, struct fx_pod p, uint32_t action,
                       const struct bh_node_rec *old, const struct bh_node_rec *neu)
{
    return hint(f, p,
                (struct bh_cluster_event){
                    .resource = BH_EV_NODE, .action = action, .old_node = old, .new_node = neu});
}

static void test_node_hints(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct fx_pod near = w_pod(&f, "ns", "p", "", "", AFFINITY(NEAR("{" ZONE "," APP("web") "}")));
    struct fx_pod away = w_pod(&f, "ns", "p", "", "", AFFINITY(AWAY("{" ZONE "," APP("web") "}")));
    struct fx_pod plain = w_pod(&f, "ns", "p", "", "", "");
    const struct bh_node_rec *none = w_node_rec(&f, "n", "", "", ""),
                             *z1 = w_node_rec(&f, "n", "z1", "", ""),
                             *z2 = w_node_rec(&f, "n", "z2", "", ""),
                             *d1 = w_node_rec(&f, "n", "z1", "'d':'1'", "");

    CU_ASSERT(node_event(&f, near, BH_EV_ADD, NULL, z1));
    CU_ASSERT(!node_event(&f, near, BH_EV_ADD, NULL, none));
    CU_ASSERT(node_event(&f, near, BH_EV_NODE_LABEL, none, z1));
    CU_ASSERT(node_event(&f, near, BH_EV_NODE_LABEL, z1, z2));
    CU_ASSERT(!node_event(&f, near, BH_EV_NODE_LABEL, z1, none));
    CU_ASSERT(!node_event(&f, near, BH_EV_NODE_LABEL, z1, d1));
    CU_ASSERT(node_event(&f, away, BH_EV_ADD, NULL, none));
    CU_ASSERT(node_event(&f, away, BH_EV_ADD, NULL, z1));
    CU_ASSERT(node_event(&f, away, BH_EV_NODE_LABEL, z1, none));
    CU_ASSERT(node_event(&f, away, BH_EV_NODE_LABEL, z1, z2));
    CU_ASSERT(!node_event(&f, away, BH_EV_NODE_LABEL, none, z1));
    CU_ASSERT(!node_event(&f, away, BH_EV_NODE_LABEL, z1, d1));
    CU_ASSERT(node_event(&f, plain, BH_EV_ADD, NULL, none)); /* others' terms kept it out */
    CU_ASSERT(node_event(&f, away, BH_EV_DELETE, z1, NULL)); /* whoever it avoids went with it */
    CU_ASSERT(!node_event(&f, away, BH_EV_DELETE, none, NULL));
    CU_ASSERT(!node_event(&f, near, BH_EV_DELETE, z1, NULL)); /* it could not begin the group */
    fx_fini(&f);
}

/* The terms of a pod on a node keep this one out; it has none of its own. */
static void test_hints_of_others_domains(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct fx_pod guard = w_pod(&f, "ns", "g", "", "", AFFINITY(AWAY("{" ZONE "," APP("inc") "}")));
    struct fx_pod plain = w_pod(&f, "ns", "p", "'app':'inc'", "", "");
    struct fx_pod other = w_pod(&f, "ns", "o", "'app':'else'", "", "");
    struct fx_pod group =
        w_pod(&f, "ns", "p", "'app':'inc'", "", AFFINITY(NEAR("{" ZONE "," APP("inc") "}")));
    const struct bh_node_rec *none = w_node_rec(&f, "n", "", "", ""),
                             *z1 = w_node_rec(&f, "n", "z1", "", ""),
                             *d1 = w_node_rec(&f, "n", "z1", "'d':'1'", "");

    CU_ASSERT(!node_event(&f, plain, BH_EV_DELETE, z1, NULL)); /* nobody is there yet */
    fx_place(&f, guard, "n");
    CU_ASSERT(node_event(&f, plain, BH_EV_DELETE, z1, NULL));
    CU_ASSERT(node_event(&f, plain, BH_EV_NODE_LABEL, z1, none));
    CU_ASSERT(!node_event(&f, plain, BH_EV_NODE_LABEL, z1, d1));
    CU_ASSERT(!node_event(&f, other, BH_EV_DELETE, z1, NULL));
    CU_ASSERT(node_event(&f, group, BH_EV_NODE_LABEL, z1, none)); /* it may begin the group now */
    fx_fini(&f);
}

static bool namespace_event(struct fx *f, struct fx_pod p, uint32_t changes)
{
    return hint(f, p,
                (struct bh_cluster_event){.resource = BH_EV_OBJECT,
                                          .kind = BH_KIND_NAMESPACE,
                                          .action = BH_EV_UPDATE,
                                          .object_changes = changes});
}

static void test_namespace_hints(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct fx_pod plain = w_pod(&f, "ns", "p", "", "", "");
    struct fx_pod team = w_pod(&f, "ns", "p", "", "",
                               AFFINITY(NEAR("{" ZONE "," APP("web") ",'namespaceSelector':{}}")));
    struct fx_pod guard = w_pod(&f, "ns", "g", "", "",
                                AFFINITY(AWAY("{" ZONE "," APP("a") ",'namespaceSelector':{}}")));

    CU_ASSERT(namespace_event(&f, team, BH_NAMESPACE_LABELS));
    CU_ASSERT(!namespace_event(&f, team, 0)); /* no label changed */
    CU_ASSERT(!namespace_event(&f, plain, BH_NAMESPACE_LABELS));
    fx_place(&f, guard, "n");
    CU_ASSERT(namespace_event(&f, plain, BH_NAMESPACE_LABELS));
    fx_fini(&f);
}

/* Terms that do not parse are an error in a hint, and errors wake. */
static void test_broken_terms(void)
{
    const char *like =
        "{" ZONE ",'labelSelector':{'matchExpressions':[{'key':'a','operator':'Like'}]}}";
    struct fx f;

    fx_init(&f, NULL);
    const char *lists[] = {bh_arena_printf(&f.arena, AFFINITY(NEAR("%s")), like),
                           bh_arena_printf(&f.arena, AFFINITY(AWAY("%s")), like)};
    struct fx_pod other = assigned(&f, "ns", "", ""), waiting = w_pod(&f, "ns", "x", "", "", "");
    for (unsigned i = 0; i < BH_ARRAY_LEN(lists); i++) {
        struct fx_pod p = w_pod(&f, "ns", "p", "", "", lists[i]);
        CU_ASSERT(pod_event(&f, p, BH_EV_ADD, NULL, &other));
        CU_ASSERT(pod_event(&f, p, BH_EV_DELETE, &other, NULL));
        CU_ASSERT(!pod_event(&f, p, BH_EV_ADD, NULL, &waiting));
        CU_ASSERT(node_event(&f, p, BH_EV_ADD, NULL, w_node_rec(&f, "n", "", "", "")));
    }
    fx_fini(&f);
}

/* ---- args ------------------------------------------------------------------------------------ */

static void test_args(void)
{
    static const struct {
        const char *args, *error;
    } rows[] = {
        {"{}", ""},
        {"{'hardPodAffinityWeight':0}", ""},
        {"{'hardPodAffinityWeight':100}", ""},
        {"{'hardPodAffinityWeight':101}",
         "args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"},
        {"{'hardPodAffinityWeight':-1}",
         "args.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        struct bh_err err = {{0}};
        fx_init(&f, NULL);
        struct bh_field_errors errs = {.a = &f.arena};
        bh_plugin_inter_pod_affinity.args_check(NULL, fx_json(&f, rows[i].args), "args", &errs);
        if (errs.n)
            bh_err_set(&err, 0, "%s", bh_field_errors_text(&errs));
        FX_STR(err.msg, rows[i].error);
        fx_fini(&f);
    }
}

BH_TESTS("scheduler/plugins/interpodaffinity", {"scores, the documented table", test_scores},
         {"scores that add up to nothing are scores", test_zero_sum_does_not_skip},
         {"existing pods have preferences, too", test_existing_pods_have_preferences},
         {"normalisation divides first", test_normalisation_divides_first},
         {"required affinity, the documented table", test_required_affinity},
         {"terms are tied by one pod", test_terms_are_tied_by_one_pod},
         {"anti-affinity, both ways", test_anti_affinity}, {"reasons", test_reasons},
         {"namespace selectors of the pod's own terms", test_own_namespace_selectors},
         {"namespace selectors of existing pods", test_selectors_of_existing_pods},
         {"preemption removes anti-affinity", test_preemption_removes_anti_affinity},
         {"nominated pods count", test_nominated_pods_count},
         {"nominated pods are not heard after a skip",
          test_nominated_anti_affinity_is_not_heard_after_skip},
         {"pods that wake a rejected pod", test_pod_hints},
         {"nodes that wake a rejected pod", test_node_hints},
         {"nodes leave domains that others guard", test_hints_of_others_domains},
         {"namespaces that wake a rejected pod", test_namespace_hints},
         {"terms that do not parse wake", test_broken_terms},
         {"args are checked with upstream's texts", test_args}, )
