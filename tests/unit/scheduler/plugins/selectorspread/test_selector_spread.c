/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/plugins/selectorspread/test_selector_spread.c - pods of one service apart
 */
#include "tests/unit/scheduler/plugins/podtopologyspread/world.h"

#define ON                                                                                         \
    "{'schedulerName':'default-scheduler','plugins':{'multiPoint':{'enabled':[{'name':"            \
    "'SelectorSpread'}]}}}"

static void add_pods(struct fx *f, const char *node, unsigned n, const char *labels)
{
    static unsigned next;

    for (unsigned i = 0; i < n; i++)
        fx_place(f, w_pod(f, "ns", bh_arena_printf(&f->arena, "r%u", next++), labels, "", ""),
                 node);
}

/* nodes: "a z1 2, b - 1": name, zone, web pods on it. */
static void begin(struct fx *f, const char *nodes)
{
    char name[8], zone[8];
    unsigned n;
    int end;

    fx_init(f, ON);
    for (; sscanf(nodes, "%7s %7s %u%n", name, zone, &n, &end) == 3; nodes += end) {
        w_node(f, name, *zone == '-' ? "" : zone);
        add_pods(f, name, n, "'app':'web'");
    }
    w_object(f, BH_KIND_SERVICE, "ns", "s", "", ",'spec':{'selector':{'app':'web'}}");
}

static const char *scores(struct fx *f, const struct bh_decision *d, const char *nodes, bool raw)
{
    const char *text = "";

    for (const char *c = nodes; *c; c++)
        text = bh_arena_printf(
            &f->arena, "%s%s%lld", text, *text ? " " : "",
            (long long)fx_score(f, d, (const char[]){*c, '\0'}, "SelectorSpread", raw));
    return text;
}

static const struct bh_decision *schedule(struct fx *f, const char *labels, const char *meta,
                                          const char *spec)
{
    return fx_schedule(f, w_pod(f, "ns", "p", labels, meta, spec));
}

static void test_examples(void)
{
    static const struct {
        const char *nodes, *names, *raw, *normal;
    } rows[] = {
        {"a z1 2 b z1 1 c z2 1 d z3 0", "abcd", "2 1 1 0", "0 16 61 100"},
        {"a - 2 b - 1 c - 0", "abc", "2 1 0", "0 50 100"},
        {"a z1 3 b z1 0 c z2 1 e - 1", "abce", "3 0 1 1", "0 33 66 66"},
        {"a z1 0 b z2 0", "ab", "0 0", "100 100"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].nodes);
        const struct bh_decision *d = schedule(&f, "'app':'web'", "", "");
        FX_STR(scores(&f, d, rows[i].names, true), rows[i].raw);
        FX_STR(scores(&f, d, rows[i].names, false), rows[i].normal);
        fx_fini(&f);
    }
}

static void test_what_counts(void)
{
    struct fx f;

    begin(&f, "a z1 1 b z2 0");
    add_pods(&f, "b", 2, "'app':'db'");
    fx_place(&f, w_pod(&f, "other", "x", "'app':'web'", "", ""), "b");
    fx_place(
        &f,
        w_pod(&f, "ns", "going", "'app':'web'", "'deletionTimestamp':'2026-01-01T00:00:00Z'", ""),
        "b");
    FX_STR(scores(&f, schedule(&f, "'app':'web'", "", ""), "ab", true), "1 0");
    /* No service of the pod's namespace selects it: an empty selector counts nobody. */
    FX_STR(scores(&f, schedule(&f, "'app':'api'", "", ""), "ab", true), "0 0");
    FX_STR(scores(&f, schedule(&f, "'app':'api'", "", ""), "ab", false), "100 100");
    FX_STR(scores(&f, fx_schedule(&f, w_pod(&f, "other", "p", "'app':'web'", "", "")), "ab", true),
           "0 0");
    fx_fini(&f);
}

static void test_controllers(void)
{
    static const char owner[] =
        "'ownerReferences':[{'apiVersion':'%s','kind':'%s','name':'o','uid':'u',"
        "'controller':true}]";
    static const struct {
        const char *api, *kind, *want;
    } rows[] = {
        {"v1", "ReplicationController", "1 2"},
        {"apps/v1", "ReplicaSet", "1 2"},
        {"apps/v1", "StatefulSet", "1 2"},
        {"batch/v1", "Job", "0 0"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, "a z1 0 b z2 0");
        add_pods(&f, "a", 1, "'job':'x'");
        add_pods(&f, "b", 2, "'job':'x'");
        w_object(&f, BH_KIND_REPLICATIONCONTROLLER, "ns", "o", "",
                 ",'spec':{'selector':{'job':'x'}}");
        w_object(&f, BH_KIND_REPLICASET, "ns", "o", "",
                 ",'spec':{'selector':{'matchLabels':{'job':'x'}}}");
        w_object(&f, BH_KIND_STATEFULSET, "ns", "o", "",
                 ",'spec':{'selector':{'matchExpressions':[{'key':'job','operator':'Exists'}]}}");
        FX_STR(scores(&f,
                      schedule(&f, "'job':'x'",
                               bh_arena_printf(&f.arena, owner, rows[i].api, rows[i].kind), ""),
                      "ab", true),
               rows[i].want);
        fx_fini(&f);
    }
}

/* A pod with constraints of its own is left to PodTopologySpread. */
static void test_own_constraints(void)
{
    struct fx f;

    begin(&f, "a z1 1 b z2 0");
    const struct bh_decision *d =
        schedule(&f, "'app':'web'", "",
                 "'topologySpreadConstraints':[{'maxSkew':1,'whenUnsatisfiable':'ScheduleAnyway',"
                 "'topologyKey':'kubernetes.io/hostname'}]");
    FX_STR(scores(&f, d, "ab", true), "-1 -1");
    fx_fini(&f);
    fx_init(&f, NULL);
    w_node(&f, "a", "z1");
    w_node(&f, "b", "z1");
    FX_STR(scores(&f, schedule(&f, "", "", ""), "ab", true), "-1 -1"); /* off by default */
    fx_fini(&f);
}

static void test_without_pre_score(void)
{
    struct fx f;

    fx_init(&f, "{'schedulerName':'default-scheduler','plugins':{'score':{'enabled':[{'name':"
                "'SelectorSpread'}]}}}");
    w_node(&f, "a", "z1");
    w_node(&f, "b", "z1");
    FX_STR(schedule(&f, "'app':'web'", "", "")->message,
           "running Score plugins: plugin \"SelectorSpread\" failed with: Error reading "
           "\"PreScoreSelectorSpread\" from cycleState: not found");
    fx_fini(&f);
}

BH_TESTS("scheduler/plugins/selectorspread", {"worked examples", test_examples},
         {"which pods count", test_what_counts}, {"controllers' selectors", test_controllers},
         {"constraints of the pod's own", test_own_constraints},
         {"without PreScore", test_without_pre_score})
