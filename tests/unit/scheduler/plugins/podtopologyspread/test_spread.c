/* SPDX-License-Identifier: Apache-2.0
 *
 * PodTopologySpread: the worked examples of upstream's arithmetic, selection of constraints, dry
 * runs, hints.
 */
#include <math.h>

#include "scheduler/plugins/podtopologyspread/spread.h"
#include "tests/unit/scheduler/plugins/podtopologyspread/world.h"

#define PTS        "PodTopologySpread"
#define ZONE       "'topologyKey':'topology.kubernetes.io/zone'"
#define HOST       "'topologyKey':'kubernetes.io/hostname'"
#define WEB        "'labelSelector':{'matchLabels':{'app':'web'}}"
#define SOFT(more) "{'whenUnsatisfiable':'ScheduleAnyway'," more "}"
#define HARD(more) "{'whenUnsatisfiable':'DoNotSchedule'," more "}"
#define LIST(list) "'topologySpreadConstraints':[" list "]"

/* Nodes a, b in z1, c in z2, d in z3, e without zone; web pods: two on a, one on b, one on c. */
static void begin(struct fx *f, const char *profile)
{
    fx_init(f, profile);
    w_node(f, "a", "z1");
    w_node(f, "b", "z1");
    w_node(f, "c", "z2");
    w_node(f, "d", "z3");
    w_node(f, "e", "");
    fx_place(f, w_pod(f, "ns", "a1", "'app':'web'", "", ""), "a");
    fx_place(f, w_pod(f, "ns", "a2", "'app':'web'", "", ""), "a");
    fx_place(f, w_pod(f, "ns", "b1", "'app':'web'", "", ""), "b");
    fx_place(f, w_pod(f, "ns", "c1", "'app':'web'", "", ""), "c");
    /* neither of these counts */
    fx_place(f, w_pod(f, "other", "d1", "'app':'web'", "", ""), "d");
    fx_place(f, w_pod(f, "ns", "d2", "'app':'db'", "", ""), "d");
    fx_place(f,
             w_pod(f, "ns", "d3", "'app':'web'", "'deletionTimestamp':'2026-01-01T00:00:00Z'", ""),
             "d");
}

static const struct bh_decision *schedule(struct fx *f, const char *labels, const char *spec)
{
    return fx_schedule(f, w_pod(f, "ns", "p", labels, "", spec));
}

static void service(struct fx *f, const char *ns, const char *name, const char *selector)
{
    w_object(f, BH_KIND_SERVICE, ns, name, "",
             bh_arena_printf(&f->arena, ",'spec':{'selector':{%s}}", selector));
}

/* ---- scores ---------------------------------------------------------------------------------- */

static void test_logarithm(void)
{
    static const struct {
        double x, ln;
    } rows[] = {{3, 1.0986122886681096}, /* the C library: ...098 */
                {4, 1.3862943611198906}, {5, 1.6094379124341003},  {6, 1.791759469228055},
                {7, 1.9459101490553132}, {102, 4.624972813284271}, {5002, 8.517593111437565}};
    unsigned differ = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++)
        CU_ASSERT(bh_go_log(rows[i].x) == rows[i].ln);
    for (int i = 2; i <= 300000; i++) {
        double go = bh_go_log(i), c = log(i);
        differ += go != c;
        CU_ASSERT(go == c || nextafter(go, c) == c);
    }
    CU_ASSERT(differ < 10000); /* with glibc 2.36: 2,481 */
}

static void test_own_soft_constraints(void)
{
    static const struct {
        const char *list, *raw, *normal;
    } rows[] = {
        {SOFT("'maxSkew':1," ZONE "," WEB), "5 5 2 0 0", "0 0 60 100 0"},
        {SOFT("'maxSkew':1," ZONE "," WEB) "," SOFT("'maxSkew':1," HOST "," WEB), "8 7 3 0 0",
         "0 12 62 100 0"},
        {SOFT("'maxSkew':5," ZONE "," WEB), "9 9 6 4 0", "44 44 77 100 0"},
        {SOFT("'maxSkew':1," ZONE ",'labelSelector':{}"), "0 0 0 0 0", "100 100 100 100 0"},
        {SOFT("'maxSkew':1," ZONE), "0 0 0 0 0", "100 100 100 100 0"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, NULL);
        const struct bh_decision *d =
            schedule(&f, "'app':'web'", bh_arena_printf(&f.arena, LIST("%s"), rows[i].list));
        FX_STR(w_scores(&f, d, PTS, "abcde", true), rows[i].raw);
        FX_STR(w_scores(&f, d, PTS, "abcde", false), rows[i].normal);
        fx_fini(&f);
    }
}

static void test_system_defaults(void)
{
    struct fx f;

    begin(&f, NULL);
    const struct bh_decision *d = schedule(&f, "'app':'web'", "");
    FX_INT(fx_score(&f, d, "a", PTS, true), -1); /* nothing selects the pod */
    service(&f, "other", "s", "'app':'web'");
    service(&f, "ns", "all", "");
    service(&f, "ns", "db", "'app':'web','tier':'x'");
    d = schedule(&f, "'app':'web'", "");
    FX_INT(fx_score(&f, d, "a", PTS, true), -1); /* not by these either */
    service(&f, "ns", "s", "'app':'web'");
    d = schedule(&f, "'app':'web'", "");
    FX_STR(w_scores(&f, d, PTS, "abcde", true), "15 13 10 6 2");
    FX_STR(w_scores(&f, d, PTS, "abcde", false), "13 26 46 73 100");
    d = schedule(&f, "'app':'other'", "");
    FX_INT(fx_score(&f, d, "a", PTS, true), -1);
    CU_ASSERT(bh_engine_put_object(f.e, BH_KIND_SERVICE, "ns", "s", NULL, 0, NULL) == 0);
    d = schedule(&f, "'app':'web'", "");
    FX_INT(fx_score(&f, d, "a", PTS, true), -1); /* and gone it is */
    fx_fini(&f);
}

/* Constraints of its own, of whatever kind, keep the defaults away. */
static void test_own_constraints_replace_defaults(void)
{
    struct fx f;

    begin(&f, NULL);
    service(&f, "ns", "s", "'app':'web'");
    const struct bh_decision *d =
        schedule(&f, "'app':'web'", LIST(HARD("'maxSkew':9," ZONE "," WEB)));
    FX_INT(fx_score(&f, d, "a", PTS, true), -1);
    FX_STR(w_verdicts(&f, d, "abcde"), "....X");
    fx_fini(&f);
}

static const char *owned_by(struct fx *f, const char *version, const char *kind, const char *name)
{
    return bh_arena_printf(
        &f->arena,
        "'ownerReferences':[{'apiVersion':'%s','kind':'%s','name':'%s','controller':true}]",
        version, kind, name);
}

/* Raw scores by number of nodes, so that the counted pods show: a, b and c have 2, 1 and 1 web
 * pods. */
static void test_controllers_select(void)
{
    static const struct {
        const char *version, *kind, *name;
        bool scores;
    } rows[] = {
        {"apps/v1", "ReplicaSet", "rs", true},       {"apps/v1", "StatefulSet", "ss", true},
        {"v1", "ReplicationController", "rc", true}, {"apps/v1", "ReplicaSet", "missing", false},
        {"apps/v1", "ReplicaSet", "nil", false},     {"apps/v1", "ReplicaSet", "broken", false},
        {"apps/v1", "Deployment", "rs", false}};

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, NULL);
        w_object(&f, BH_KIND_REPLICASET, "ns", "rs", "",
                 ",'spec':{'selector':{'matchExpressions':[{'key':'app','operator':'In','values':["
                 "'web','never-seen']}]}}");
        w_object(&f, BH_KIND_REPLICASET, "ns", "nil", "", ",'spec':{}");
        w_object(&f, BH_KIND_REPLICASET, "ns", "broken", "",
                 ",'spec':{'selector':{'matchExpressions':[{'key':'app','operator':'In'}]}}");
        w_object(&f, BH_KIND_STATEFULSET, "ns", "ss", "",
                 ",'spec':{'selector':{'matchLabels':{'app':'web'}}}");
        w_object(&f, BH_KIND_REPLICATIONCONTROLLER, "ns", "rc", "",
                 ",'spec':{'selector':{'app':'web'}}");
        struct fx_pod p = w_pod(&f, "ns", "p", "'app':'db'",
                                owned_by(&f, rows[i].version, rows[i].kind, rows[i].name), "");
        const struct bh_decision *d = fx_schedule(&f, p);
        FX_STR(w_scores(&f, d, PTS, "abcde", true),
               rows[i].scores ? "15 13 10 6 2" : "-1 -1 -1 -1 -1");
        fx_fini(&f);
    }
}

/* A service and a controller together: pods that both select. */
static void test_selectors_add_up(void)
{
    struct fx f;

    begin(&f, NULL);
    service(&f, "ns", "s", "'app':'web'");
    w_object(&f, BH_KIND_REPLICASET, "ns", "rs", "",
             ",'spec':{'selector':{'matchLabels':{'track':'canary'}}}");
    fx_place(&f, w_pod(&f, "ns", "e1", "'app':'web','track':'canary'", "", ""), "e");
    const struct bh_decision *d = fx_schedule(
        &f, w_pod(&f, "ns", "p", "'app':'web'", owned_by(&f, "apps/v1", "ReplicaSet", "rs"), ""));
    FX_STR(w_scores(&f, d, PTS, "abcde", true), "6 6 6 6 4"); /* e has no zone */
    fx_fini(&f);
}

#define DEFAULTS(list)                                                                             \
    "{'schedulerName':'default-scheduler','pluginConfig':[{'name':'PodTopologySpread','args':{"    \
    "'defaultingType':'List','defaultConstraints':[" list "]}}]}"

static void test_list_defaults(void)
{
    struct fx f;

    /* With a list every key is required of a node, as with constraints of its own. */
    begin(&f, DEFAULTS(SOFT("'maxSkew':1," ZONE)));
    service(&f, "ns", "s", "'app':'web'");
    const struct bh_decision *d = schedule(&f, "'app':'web'", "");
    FX_STR(w_scores(&f, d, PTS, "abcde", true), "5 5 2 0 0");
    FX_STR(w_scores(&f, d, PTS, "abcde", false), "0 0 60 100 0");
    fx_fini(&f);

    begin(&f, DEFAULTS(HARD("'maxSkew':1," ZONE)));
    FX_STR(w_verdicts(&f, schedule(&f, "'app':'web'", ""), "abcde"), ".....");
    service(&f, "ns", "s", "'app':'web'");
    FX_STR(w_verdicts(&f, schedule(&f, "'app':'web'", ""), "abcde"), "UUU.X");
    fx_fini(&f);

    begin(&f, DEFAULTS(""));
    service(&f, "ns", "s", "'app':'web'");
    FX_INT(fx_score(&f, schedule(&f, "'app':'web'", ""), "a", PTS, true), -1);
    fx_fini(&f);
}

/* ---- filter ---------------------------------------------------------------------------------- */

static void test_hard_constraints(void)
{
    static const struct {
        const char *labels, *constraint, *spec, *verdicts;
    } rows[] = {
        {"'app':'web'", "'maxSkew':1," WEB, "", "UUU.X"},
        {"'app':'web'", "'maxSkew':3," WEB, "", "UU..X"},
        {"'app':'web'", "'maxSkew':2,'minDomains':4," WEB, "", "UU..X"},
        {"'app':'web'", "'maxSkew':1,'minDomains':4," WEB, "", "UUU.X"},
        {"'app':'x'", "'maxSkew':1," WEB, "", "UU..X"},
        {"'app':'web'", "'maxSkew':1,'labelSelector':{}", "", "....X"},
        {"'app':'web'", "'maxSkew':1", "", "....X"}, /* nil: nothing is counted, not even the pod */
        {"'app':'web','v':'2'", "'maxSkew':1,'matchLabelKeys':['v']," WEB, "", "....X"},
        /* only z1 is eligible: its minimum is its own count */
        {"'app':'web'", "'maxSkew':1," WEB, "'nodeSelector':{'topology.kubernetes.io/zone':'z1'}",
         "..XXX"},
        {"'app':'web'", "'maxSkew':1,'minDomains':2," WEB,
         "'nodeSelector':{'topology.kubernetes.io/zone':'z1'}", "UUXXX"},
        {"'app':'web'", "'maxSkew':1,'nodeAffinityPolicy':'Ignore'," WEB,
         "'nodeSelector':{'topology.kubernetes.io/zone':'z1'}", "UUXXX"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, NULL);
        const struct bh_decision *d =
            schedule(&f, rows[i].labels,
                     bh_arena_printf(&f.arena, LIST(HARD("%s," ZONE)) "%s%s", rows[i].constraint,
                                     *rows[i].spec ? "," : "", rows[i].spec));
        FX_STR(w_verdicts(&f, d, "abcde"), rows[i].verdicts);
        fx_fini(&f);
    }
}

static void test_reasons(void)
{
    struct fx f;

    begin(&f, NULL);
    const struct bh_decision *d =
        schedule(&f, "'app':'web'", LIST(HARD("'maxSkew':1," ZONE "," WEB)));
    FX_STR(fx_verdict(&f, d, "a"),
           "Unschedulable: node(s) didn't match pod topology spread constraints");
    FX_STR(fx_verdict(&f, d, "e"),
           "UnschedulableAndUnresolvable: node(s) didn't match pod topology spread constraints "
           "(missing required label)");
    d = schedule(&f, "",
                 LIST(HARD("'maxSkew':1," ZONE ",'labelSelector':{'matchExpressions':[{'key':"
                           "'a','operator':'Like'}]}")));
    CU_ASSERT_EQUAL(d->kind, BH_DECISION_ERROR);
    FX_STR(d->message,
           "running PreFilter plugin \"PodTopologySpread\": get constraints from pod: obtaining "
           "pod's hard topology spread constraints: \"Like\" is not a valid label selector "
           "operator");
    d = schedule(&f, "",
                 LIST(SOFT("'maxSkew':1," ZONE ",'labelSelector':{'matchExpressions':[{'key':"
                           "'a','operator':'Like'}]}")));
    FX_STR(d->message, "running PreScore plugin \"PodTopologySpread\": calculating preScoreState: "
                       "obtaining pod's soft topology spread constraints: \"Like\" is not a valid "
                       "label selector operator");
    fx_fini(&f);
}

#define WITHOUT(point, plugin)                                                                     \
    "{'schedulerName':'default-scheduler','plugins':{'" point "':{'disabled':[{'name':'" plugin    \
    "'}]}}}"

static void test_points_disabled(void)
{
    static const struct {
        const char *profile, *message;
    } rows[] = {
        {WITHOUT("preFilter", "PodTopologySpread"),
         "running \"PodTopologySpread\" filter plugin: reading \"PreFilterPodTopologySpread\" from "
         "cycleState: not found"},
        {WITHOUT("preScore", "PodTopologySpread"),
         "running Score plugins: plugin \"PodTopologySpread\" failed with: error reading "
         "\"PreScorePodTopologySpread\" from cycleState: not found"},
        {WITHOUT("preFilter", "InterPodAffinity"),
         "running \"InterPodAffinity\" filter plugin: error reading \"PreFilterInterPodAffinity\" "
         "from "
         "cycleState: not found"},
        {WITHOUT("preScore", "InterPodAffinity"),
         "running Score plugins: plugin \"InterPodAffinity\" failed with: failed to read "
         "\"PreScoreInterPodAffinity\" from cycleState: not found"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].profile);
        FX_STR(schedule(&f, "", "")->message, rows[i].message);
        fx_fini(&f);
    }
}

/* These work it out where nothing is prepared. */
static void test_points_not_needed(void)
{
    static const char *const profiles[] = {NULL, WITHOUT("preFilter", "NodeAffinity"),
                                           WITHOUT("preScore", "NodeAffinity"),
                                           WITHOUT("preScore", "NodeResourcesFit"),
                                           WITHOUT("preScore", "NodeResourcesBalancedAllocation")};
    static const char *const scorers[] = {"NodeAffinity", "NodeResourcesFit",
                                          "NodeResourcesBalancedAllocation"};
    static const char likes[] =
        "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':"
        "3,'preference':{'matchExpressions':[{'key':'topology.kubernetes.io/zone','operator':'%s',"
        "'values':['z2']}]}}]}}";
    static const char wants[] = ",'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]";
    char want[3][64];

    for (size_t i = 0; i < BH_ARRAY_LEN(profiles); i++) {
        struct fx f;
        begin(&f, profiles[i]);
        const char *spec = bh_arena_printf(&f.arena, likes, "In");
        const struct bh_decision *d = fx_schedule(
            &f, fx_pod_full(&f, "p", "", bh_arena_printf(&f.arena, "%s%s", spec, wants), ""));
        for (size_t k = 0; k < BH_ARRAY_LEN(scorers); k++) {
            const char *have = w_scores(&f, d, scorers[k], "abcde", true);
            if (i == 0)
                snprintf(want[k], sizeof want[k], "%s", have);
            FX_STR(have, want[k]);
        }
        d = schedule(&f, "", bh_arena_printf(&f.arena, likes, "Like"));
        CU_ASSERT(strstr(d->message, i == 2
                                         ? "running Score plugins: plugin \"NodeAffinity\" failed "
                                           "with: [0].matchExpressions[0].operator: "
                                         : "running PreScore plugin \"NodeAffinity\": "
                                           "[0].matchExpressions[0].operator: ") == d->message);
        /* A pod without requests: no score, or 0. */
        FX_STR(w_scores(&f, schedule(&f, "", ""), scorers[2], "a", true), i == 4 ? "0" : "-1");
        fx_fini(&f);
    }
    FX_STR(want[0], "0 0 3 0 0");
}

static void test_taints_policy(void)
{
    struct fx f;

    begin(&f, NULL);
    bh_engine_put_node(
        f.e, w_node_rec(&f, "d", "z3", "", "'taints':[{'key':'k','effect':'NoExecute'}]"));
    FX_STR(w_verdicts(&f, schedule(&f, "'app':'web'", LIST(HARD("'maxSkew':1," ZONE "," WEB))),
                      "abcd"),
           "UUUX"); /* by default z3 counts, though the pod cannot go there */
    FX_STR(w_verdicts(&f,
                      schedule(&f, "'app':'web'",
                               LIST(HARD("'maxSkew':1,'nodeTaintsPolicy':'Honor'," ZONE "," WEB))),
                      "abcd"),
           "UU.X");
    FX_STR(w_verdicts(&f,
                      schedule(&f, "'app':'web'",
                               LIST(HARD("'maxSkew':1,'nodeTaintsPolicy':'Honor'," ZONE
                                         "," WEB)) ",'tolerations':[{'operator':'Exists'}]"),
                      "abcd"),
           "UUU.");
    fx_fini(&f);
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

static void test_preemption_lowers_counts(void)
{
    struct fx f;

    fx_init(&f, NULL);
    w_node(&f, "a", "z1");
    bh_engine_put_node(f.e, w_node_rec(&f, "b", "z2", "", "'unschedulable':true"));
    for (int i = 0; i < 3; i++)
        fx_place(&f, w_pod(&f, "ns", (const char *[]){"a0", "a1", "a2"}[i], "'app':'web'", "", ""),
                 "a");
    fx_place(&f, w_pod(&f, "ns", "x", "'app':'db'", "", ""), "a");
    const struct bh_decision *d =
        schedule(&f, "'app':'web'", "'priority':10," LIST(HARD("'maxSkew':2," ZONE "," WEB)));
    /* one web pod may stay: 1 + the pod itself - 0 */
    CU_ASSERT_EQUAL(d->n_victims, 2);
    CU_ASSERT(strstr(victims(&f, d), "a: a") != NULL && !strstr(victims(&f, d), "x"));
    fx_fini(&f);
}

/* Upstream does not look at deletionTimestamp here: a terminating victim takes off what it never
 * added, so one pod seems to be enough where two count. */
static void test_terminating_victims_count_down(void)
{
    struct fx f;

    fx_init(&f, NULL);
    w_node(&f, "a", "z1");
    bh_engine_put_node(f.e, w_node_rec(&f, "b", "z2", "", "'unschedulable':true"));
    fx_place(&f, w_pod(&f, "ns", "a1", "'app':'web'", "", "'priority':20"), "a");
    fx_place(&f,
             w_pod(&f, "ns", "a2", "'app':'web'", "'deletionTimestamp':'2026-01-01T00:00:00Z'", ""),
             "a");
    const struct bh_decision *d =
        schedule(&f, "'app':'web'", "'priority':10," LIST(HARD("'maxSkew':1," ZONE "," WEB)));
    FX_STR(victims(&f, d), "a: a2");
    fx_fini(&f);
}

static void test_nominated_pods_count(void)
{
    struct fx f;

    fx_init(&f, NULL);
    w_node(&f, "a", "z1");
    w_node(&f, "b", "z2");
    struct fx_pod other = w_pod(&f, "ns", "q", "'app':'web'", "", "'priority':10");
    const struct bh_pending pending = {.pod = other.rec, .shape = other.shape};
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    const struct bh_decision *d =
        schedule(&f, "'app':'web'", LIST(HARD("'maxSkew':1," ZONE "," WEB)));
    FX_STR(w_verdicts(&f, d, "ab"), "U.");
    d = schedule(&f, "'app':'web'", "'priority':11," LIST(HARD("'maxSkew':1," ZONE "," WEB)));
    FX_STR(w_verdicts(&f, d, "ab"), "..");
    fx_fini(&f);
}

/* ---- hints ----------------------------------------------------------------------------------- */

static bool hint(struct fx *f, struct fx_pod p, struct bh_cluster_event ev)
{
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    return bh_engine_hint(f->e, PTS, &pending, &ev, &(bool){false}) == BH_QUEUE;
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

static struct fx_pod assigned(struct fx *f, const char *ns, const char *labels, const char *meta)
{
    struct fx_pod p = w_pod(f, ns, "other", labels, meta, "");
    p.rec->node = bh_sym_internc(bh_engine_symtab(f->e), "somewhere");
    return p;
}

static void test_pod_hints(void)
{
    struct fx f;

    fx_init(&f, NULL);
    struct fx_pod p =
        w_pod(&f, "ns", "p", "'app':'web'", "", LIST(HARD("'maxSkew':1," ZONE "," WEB)));
    struct fx_pod taints =
        w_pod(&f, "ns", "p", "'app':'web'", "",
              LIST(HARD("'maxSkew':1,'nodeTaintsPolicy':'Honor'," ZONE "," WEB)));
    struct fx_pod web = assigned(&f, "ns", "'app':'web'", ""),
                  db = assigned(&f, "ns", "'app':'db'", ""),
                  far = assigned(&f, "other", "'app':'web'", ""),
                  leaving = assigned(&f, "ns", "'app':'web'",
                                     "'deletionTimestamp':'2026-01-01T00:00:00Z'"),
                  waiting = w_pod(&f, "ns", "other", "'app':'web'", "", "");

    CU_ASSERT(pod_event(&f, p, BH_EV_ADD, NULL, &web));
    CU_ASSERT(!pod_event(&f, p, BH_EV_ADD, NULL, &db));
    CU_ASSERT(!pod_event(&f, p, BH_EV_ADD, NULL, &far));
    CU_ASSERT(!pod_event(&f, p, BH_EV_ADD, NULL, &waiting));
    CU_ASSERT(pod_event(&f, p, BH_EV_DELETE, &web, NULL));
    CU_ASSERT(!pod_event(&f, p, BH_EV_DELETE, &db, NULL));
    CU_ASSERT(pod_event(&f, p, BH_EV_POD_LABEL, &db, &web));
    CU_ASSERT(pod_event(&f, p, BH_EV_POD_LABEL, &web, &db));
    CU_ASSERT(!pod_event(&f, p, BH_EV_POD_LABEL, &db, &db));
    CU_ASSERT(pod_event(&f, p, BH_EV_UPDATE, &web, &leaving)); /* it counts no more */
    CU_ASSERT(!pod_event(&f, p, BH_EV_UPDATE, &leaving, &leaving));
    CU_ASSERT(!pod_event(&f, p, BH_EV_UPDATE, &web, &web));
    CU_ASSERT(pod_event(&f, taints, BH_EV_POD_TOLERATION, &taints, &taints));
    CU_ASSERT(!pod_event(&f, p, BH_EV_POD_TOLERATION, &p, &p));
    CU_ASSERT(!pod_event(&f, taints, BH_EV_POD_TOLERATION, &web, &web));
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
    struct fx_pod p =
        w_pod(&f, "ns", "p", "'app':'web'", "", LIST(HARD("'maxSkew':1," ZONE "," WEB)));
    struct fx_pod picky =
        w_pod(&f, "ns", "p", "'app':'web'", "",
              LIST(HARD("'maxSkew':1," ZONE "," WEB)) ",'nodeSelector':{'d':'1'}");
    const struct bh_node_rec *none = w_node_rec(&f, "n", "", "", ""),
                             *z1 = w_node_rec(&f, "n", "z1", "", ""),
                             *z2 = w_node_rec(&f, "n", "z2", "", ""),
                             *d1 = w_node_rec(&f, "n", "z1", "'d':'1'", ""),
                             *tainted = w_node_rec(&f, "n", "z1", "",
                                                   "'taints':[{'key':'k','effect':'NoExecute'}]");

    CU_ASSERT(node_event(&f, p, BH_EV_ADD, NULL, z1));
    CU_ASSERT(!node_event(&f, p, BH_EV_ADD, NULL, none));
    CU_ASSERT(node_event(&f, p, BH_EV_DELETE, z1, NULL));
    CU_ASSERT(!node_event(&f, p, BH_EV_DELETE, none, NULL));
    CU_ASSERT(node_event(&f, p, BH_EV_NODE_LABEL, none, z1));
    CU_ASSERT(node_event(&f, p, BH_EV_NODE_LABEL, z1, none));
    CU_ASSERT(node_event(&f, p, BH_EV_NODE_LABEL, z1, z2));
    CU_ASSERT(!node_event(&f, p, BH_EV_NODE_LABEL, z1, d1));
    CU_ASSERT(node_event(&f, picky, BH_EV_NODE_LABEL, z1, d1)); /* it counts now */
    CU_ASSERT(node_event(&f, p, BH_EV_NODE_TAINT, z1, tainted));
    CU_ASSERT(!node_event(&f, p, BH_EV_NODE_TAINT, none, none));
    fx_fini(&f);
}

static void test_default_hints(void)
{
    struct fx f;

    fx_init(&f, DEFAULTS(HARD("'maxSkew':1," ZONE)));
    service(&f, "ns", "s", "'app':'web'");
    struct fx_pod p = w_pod(&f, "ns", "p", "'app':'web'", "", "");
    struct fx_pod web = assigned(&f, "ns", "'app':'web'", ""),
                  db = assigned(&f, "ns", "'app':'db'", "");
    CU_ASSERT(pod_event(&f, p, BH_EV_ADD, NULL, &web));
    CU_ASSERT(!pod_event(&f, p, BH_EV_ADD, NULL, &db));
    fx_fini(&f);
}

/* ---- args ------------------------------------------------------------------------------------ */

static void test_args(void)
{
    static const struct {
        const char *args, *error;
    } rows[] = {
        {"{}", ""},
        {"{'defaultingType':''}", ""},
        {"{'defaultingType':'List','defaultConstraints':[" HARD(
             "'maxSkew':1,'topologyKey':'a'") "," SOFT("'maxSkew':1,'topologyKey':'a'") "]}",
         ""},
        {"{'defaultConstraints':[" SOFT("'maxSkew':1,'topologyKey':'a'") "]}",
         "args.defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty"},
        {"{'defaultingType':'X'}",
         "args.defaultingType: Unsupported value: \"X\": supported values: \"System\", \"List\""},
        {"{'defaultingType':'List','defaultConstraints':[{'maxSkew':-1,'topologyKey':'a b'}]}",
         "[args.defaultConstraints[0].maxSkew: Invalid value: -1: not in valid range (0, inf), "
         "args.defaultConstraints[0].topologyKey: Invalid value: \"a b\": name part must consist "
         "of "
         "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
         "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
         "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), "
         "args.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty]"},
        {"{'defaultingType':'List','defaultConstraints':[" SOFT(
             "'maxSkew':1,'topologyKey':'a'") "," SOFT("'maxSkew':2,'topologyKey':'a','"
                                                       "labelSelector':{}") "]}",
         "[args.defaultConstraints[1].labelSelector: Forbidden: constraint must not define a "
         "selector, "
         "as they deduced for each pod, args.defaultConstraints[1]: Duplicate value: \"{a, "
         "ScheduleAnyway}\"]"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        struct bh_err err = {{0}};
        fx_init(&f, NULL);
        struct bh_field_errors errs = {.a = &f.arena};
        bh_spread_args_check(NULL, fx_json(&f, rows[i].args), "args", &errs);
        if (errs.n)
            bh_err_set(&err, 0, "%s", bh_field_errors_text(&errs));
        FX_STR(err.msg, rows[i].error);
        fx_fini(&f);
    }
}

BH_TESTS("scheduler/plugins/podtopologyspread", {"the logarithm is Go's", test_logarithm},
         {"soft constraints of the pod's own", test_own_soft_constraints},
         {"system defaults hold for pods that a service selects", test_system_defaults},
         {"constraints of its own replace the defaults", test_own_constraints_replace_defaults},
         {"controllers select pods", test_controllers_select},
         {"selectors of services and controllers add up", test_selectors_add_up},
         {"a list of defaults", test_list_defaults},
         {"hard constraints, the documented table", test_hard_constraints},
         {"reasons and errors", test_reasons},
         {"filters and scores without their preparation fail", test_points_disabled},
         {"some do without it", test_points_not_needed},
         {"tainted nodes count or not", test_taints_policy},
         {"preemption lowers the counts", test_preemption_lowers_counts},
         {"terminating victims count down, as upstream", test_terminating_victims_count_down},
         {"nominated pods count", test_nominated_pods_count},
         {"pods that wake a rejected pod", test_pod_hints},
         {"nodes that wake a rejected pod", test_node_hints},
         {"hints know default constraints", test_default_hints},
         {"args are checked with upstream's texts", test_args}, )
