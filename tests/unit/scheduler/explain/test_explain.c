/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/explain/test_explain.c - decisions as documents, documents as text, grids
 */
#include "common/data/yaml.h"
#include "scheduler/explain/explain.h"
#include "scheduler/explain/grid.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <stdio.h>

struct world {
    struct bh_symtab *tab;
    struct bh_arena a;
};

static void world_init(struct world *w)
{
    w->tab = bh_symtab_new();
    bh_arena_init(&w->a, 0);
}

static void world_fini(struct world *w)
{
    bh_symtab_free(w->tab);
    bh_arena_fini(&w->a);
}

static bh_sym sym(struct world *w, const char *s)
{
    return bh_sym_internc(w->tab, s);
}

static const struct bh_explain_subject web = {.namespace_ = "default",
                                              .name = "web",
                                              .uid = "u1",
                                              .scheduler_name = "default-scheduler",
                                              .priority = 7};

static const struct bh_status cpu = {.code = BH_UNSCHEDULABLE,
                                     .n_reasons = 1,
                                     .reasons = (const char *const[]){"Insufficient cpu"},
                                     .plugin = "NodeResourcesFit"};
static const struct bh_status both = {
    .code = BH_UNSCHEDULABLE,
    .n_reasons = 2,
    .reasons = (const char *const[]){"Insufficient cpu", "Insufficient memory"},
    .plugin = "NodeResourcesFit"};
static const struct bh_status taint = {
    .code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE,
    .n_reasons = 1,
    .reasons = (const char *const[]){"node(s) had untolerated taint(s)"},
    .plugin = "TaintToleration"};

static const char *rendered(struct bh_buf *b, const struct bh_json *e, enum bh_form form)
{
    bh_buf_reset(b);
    bh_explain_render(b, e, form, false);
    return bh_buf_str(b);
}

static bool has(const char *text, const char *part)
{
    if (strstr(text, part))
        return true;
    printf("# no \"%s\" in:\n%s\n", part, text);
    return false;
}

static const char *at(const struct bh_json *v, const char *dotted)
{
    const char *s = bh_json_cstr(bh_json_path(v, dotted));
    return s ? s : "(none)";
}

static int64_t num(const struct bh_json *v, const char *dotted)
{
    int64_t n;
    return bh_json_i64(bh_json_path(v, dotted), &n) ? n : -999;
}

/* ---- decisions ------------------------------------------------------------------------------- */

static const struct bh_decision *decided(struct world *w)
{
    static struct bh_plugin_score sa[2], sb[2], sc[2];
    static struct bh_node_score scores[3];
    static struct bh_node_verdict rejected[1];
    static struct bh_decision d;

    sa[0] = (struct bh_plugin_score){"Fit", 41, 82, 82, 1};
    sa[1] = (struct bh_plugin_score){"Taint", 0, 100, 300, 3};
    sb[0] = (struct bh_plugin_score){"Fit", 50, 100, 100, 1};
    sb[1] = (struct bh_plugin_score){"Taint", 0, 100, 300, 3};
    memcpy(sc, sb, sizeof sc);
    scores[0] = (struct bh_node_score){sym(w, "a"), 382, sa};
    scores[1] = (struct bh_node_score){sym(w, "b"), 400, sb};
    scores[2] = (struct bh_node_score){sym(w, "c"), 400, sc};
    rejected[0] = (struct bh_node_verdict){sym(w, "d"), &cpu};
    d = (struct bh_decision){.kind = BH_DECIDED,
                             .node = sym(w, "c"),
                             .feasible = 3,
                             .evaluated = 4,
                             .n_nodes = 5,
                             .rejected = rejected,
                             .n_rejected = 1,
                             .scores = scores,
                             .n_scores = 3,
                             .scored = true,
                             .n_score_plugins = 2};
    return &d;
}

static void test_scores_and_ranks(void)
{
    struct world w;
    struct bh_buf b = {0};

    world_init(&w);
    struct bh_json *e = bh_explain_decision(&w.a, &web, w.tab, decided(&w));
    CU_ASSERT_STRING_EQUAL(at(e, "kind"), "Explanation");
    CU_ASSERT_STRING_EQUAL(at(e, "result"), "Scheduled");
    CU_ASSERT_STRING_EQUAL(at(e, "nodeName"), "c");
    CU_ASSERT_EQUAL(num(e, "pod.priority"), 7);
    CU_ASSERT_EQUAL(num(e, "nodes.notEvaluated"), 1);
    const struct bh_json *r = bh_json_get(e, "ranking");
    CU_ASSERT_EQUAL_FATAL(r->c.n, 3);
    const char *order[] = {"b", "c", "a"};
    const int64_t ranks[] = {1, 1, 3};
    for (unsigned i = 0; i < 3; i++) {
        CU_ASSERT_STRING_EQUAL(at(bh_json_at(r, i), "node"), order[i]);
        CU_ASSERT_EQUAL(num(bh_json_at(r, i), "rank"), ranks[i]);
        CU_ASSERT_EQUAL(bh_json_get_bool(bh_json_at(r, i), "chosen", false), i == 1);
    }
    const struct bh_json *fit = bh_json_at(bh_json_get(bh_json_at(r, 2), "plugins"), 0);
    CU_ASSERT_EQUAL(num(fit, "raw"), 41);
    CU_ASSERT_EQUAL(num(fit, "normalized"), 82);
    CU_ASSERT_EQUAL(num(fit, "weight"), 1);
    CU_ASSERT_EQUAL(num(fit, "weighted"), 82);
    CU_ASSERT_TRUE(has(rendered(&b, e, BH_FORM_TABLE), "PLUGIN  WEIGHT    b    c    a\n"
                                                       "Fit          1  100  100   82\n"
                                                       "Taint        3  300  300  300\n"
                                                       "TOTAL           400  400  382\n"));
    CU_ASSERT_TRUE(has(bh_buf_str(&b), "Nodes:   5: 3 feasible, 1 rejected, 1 not looked at\n"));
    CU_ASSERT_TRUE(has(rendered(&b, e, BH_FORM_WIDE),
                       "   3  a       382  Fit      41          82       1        82\n"));
    CU_ASSERT_TRUE(
        has(bh_buf_str(&b), "d     NodeResourcesFit  Unschedulable  Insufficient cpu\n"));
    bh_buf_fini(&b);
    world_fini(&w);
}

static void test_rejected_nodes_by_verdict(void)
{
    struct bh_node_verdict v[9];
    struct bh_decision d = {.kind = BH_NO_FIT,
                            .reason = "Unschedulable",
                            .message = "0/9 nodes are available: text. more",
                            .fit_message = "0/9 nodes are available: text.",
                            .post_filter_message = "more",
                            .n_nodes = 9,
                            .rejected = v,
                            .n_rejected = 9};
    struct world w;
    struct bh_buf b = {0};

    world_init(&w);
    for (int i = 0; i < 9; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        v[i] = (struct bh_node_verdict){sym(&w, name), i == 3 ? &taint : i == 4 ? &both : &cpu};
    }
    struct bh_json *e = bh_explain_decision(&w.a, &web, w.tab, &d);
    const struct bh_json *g = bh_json_get(e, "rejectedGroups");
    CU_ASSERT_EQUAL_FATAL(g->c.n, 3);
    CU_ASSERT_EQUAL(num(bh_json_at(g, 0), "count"), 7);
    CU_ASSERT_EQUAL(bh_json_get(bh_json_at(g, 0), "nodes")->c.n, 5);
    CU_ASSERT_EQUAL(bh_json_get(bh_json_at(g, 1), "reasons")->c.n, 2);
    CU_ASSERT_STRING_EQUAL(at(bh_json_at(g, 2), "code"), "UnschedulableAndUnresolvable");
    CU_ASSERT_EQUAL(bh_json_get(e, "rejected")->c.n, 9);
    CU_ASSERT_TRUE(has(rendered(&b, e, BH_FORM_TABLE), "n0, n1, n2, n5, n6 and 2 more\n"));
    CU_ASSERT_TRUE(has(bh_buf_str(&b), "Message:  0/9 nodes are available: text. more\n"));
    CU_ASSERT_TRUE(has(rendered(&b, e, BH_FORM_WIDE), "n8    NodeResourcesFit"));
    bh_buf_fini(&b);
    world_fini(&w);
}

static void test_pre_filter_and_gates(void)
{
    const struct bh_status gone = {.code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE,
                                   .n_reasons = 1,
                                   .reasons = (const char *const[]){"claim not found"},
                                   .plugin = "VolumeBinding"};
    const struct bh_status others = {
        .code = BH_UNSCHEDULABLE_AND_UNRESOLVABLE,
        .n_reasons = 1,
        .reasons = (const char *const[]){"node(s) didn't satisfy plugin(s) [NodeAffinity]"}};
    struct world w;
    struct bh_buf b = {0};

    world_init(&w);
    struct bh_decision d = {
        .kind = BH_NO_FIT, .reason = "Unschedulable", .message = "m", .pre_filter = &gone};
    struct bh_json *e = bh_explain_decision(&w.a, &web, w.tab, &d);
    CU_ASSERT_STRING_EQUAL(at(e, "preFilter.plugin"), "VolumeBinding");
    CU_ASSERT_PTR_NULL(bh_json_get(e, "rejectedGroups"));
    CU_ASSERT_TRUE(has(rendered(&b, e, BH_FORM_TABLE),
                       "VolumeBinding: UnschedulableAndUnresolvable: claim not found\n"));

    const bh_sym nodes[] = {sym(&w, "x")};
    const char *const plugins[] = {"NodeAffinity"};
    d = (struct bh_decision){.kind = BH_DECIDED,
                             .node = nodes[0],
                             .absent = &others,
                             .pre_filter_nodes = nodes,
                             .n_pre_filter_nodes = 1,
                             .pre_filter_plugins = plugins,
                             .n_pre_filter_plugins = 1};
    e = bh_explain_decision(&w.a, &web, w.tab, &d);
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_at(bh_json_path(e, "preFilterSubset.nodes"), 0)),
                           "x");
    CU_ASSERT_TRUE(has(rendered(&b, e, BH_FORM_TABLE), "1 nodes by NodeAffinity\n"));

    e = bh_explain_gated(&w.a, &web, &gone);
    CU_ASSERT_STRING_EQUAL(at(e, "result"), "Gated");
    CU_ASSERT_STRING_EQUAL(at(e, "message"), "claim not found");
    bh_buf_fini(&b);
    world_fini(&w);
}

static void test_preemption(void)
{
    const struct bh_victim v[] = {{.namespace_ = BH_STR("default"),
                                   .name = BH_STR("low"),
                                   .uid = BH_STR("u2"),
                                   .priority = -5}};
    struct world w;
    struct bh_buf b = {0};

    world_init(&w);
    const struct bh_preemption ties[] = {{sym(&w, "n1"), v, 1}, {sym(&w, "n2"), v, 1}};
    const struct bh_decision d = {.kind = BH_NO_FIT,
                                  .reason = "Unschedulable",
                                  .message = "m",
                                  .nominated_node = ties[0].node,
                                  .victims = v,
                                  .n_victims = 1,
                                  .victims_violating = 1,
                                  .preemptions = ties,
                                  .n_preemptions = 2};
    const struct bh_json *e = bh_explain_decision(&w.a, &web, w.tab, &d);
    CU_ASSERT_STRING_EQUAL(at(e, "preemption.nominatedNode"), "n1");
    CU_ASSERT_EQUAL(num(e, "preemption.pdbViolations"), 1);
    CU_ASSERT_EQUAL(num(e, "preemption.alternatives"), 1);
    CU_ASSERT_EQUAL(num(bh_json_at(bh_json_path(e, "preemption.victims"), 0), "priority"), -5);
    CU_ASSERT_TRUE(has(rendered(&b, e, BH_FORM_TABLE), "default    low           -5\n"));
    bh_buf_fini(&b);
    world_fini(&w);
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void test_forms(void)
{
    struct bh_err err = {{0}};
    struct bh_buf b = {0};
    struct bh_json *back;
    enum bh_form f;
    struct world w;

    CU_ASSERT_EQUAL(bh_form_parse("wide", &f, &err), 0);
    CU_ASSERT_EQUAL(f, BH_FORM_WIDE);
    CU_ASSERT_EQUAL(bh_form_parse("xml", &f, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg,
                           "invalid value \"xml\" for --output: table, wide, json or yaml");
    world_init(&w);
    const struct bh_json *e = bh_explain_decision(&w.a, &web, w.tab, decided(&w));
    const char *text = rendered(&b, e, BH_FORM_JSON);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&w.a, text, strlen(text), BH_JSON_STRICT, &back, &err), 0);
    CU_ASSERT_TRUE(bh_json_equal(e, back));
    CU_ASSERT_EQUAL(b.p[b.n - 1], '\n');
    text = rendered(&b, e, BH_FORM_YAML);
    CU_ASSERT_EQUAL_FATAL(bh_yaml_parse(&w.a, text, strlen(text), BH_JSON_STRICT, &back, &err), 0);
    CU_ASSERT_TRUE(bh_json_equal(e, back));
    CU_ASSERT_EQUAL(b.p[b.n - 1], '\n');
    bh_buf_fini(&b);
    world_fini(&w);
}

/* A tree off the wire: anything may be missing or something else. */
static void test_foreign_trees(void)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "null",
        "\"x\"",
        ("{\"pod\":3,\"nodes\":[],\"ranking\":{},\"rejected\":\"x\",\"rejectedGroups\":[1,{}],"
         "\"preemption\":{\"victims\":[null,[],{}]}}"),
        "{\"scored\":true,\"ranking\":[3,{\"plugins\":[{\"plugin\":4},null]},{\"node\":[]}]}",
        "{\"preFilter\":{\"reasons\":[1,null,\"a\"]},\"preFilterSubset\":{\"nodes\":{}}}"};
    struct bh_buf b = {0};
    struct bh_arena a;

    bh_arena_init(&a, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        struct bh_json *v;
        CU_ASSERT_EQUAL_FATAL(bh_json_parse(&a, texts[i], strlen(texts[i]), 0, &v, NULL), 0);
        for (int f = BH_FORM_TABLE; f <= BH_FORM_YAML; f++)
            (void)rendered(&b, v, (enum bh_form)f);
    }
    CU_ASSERT_TRUE(b.n > 0);
    bh_buf_fini(&b);
    bh_arena_fini(&a);
}

static void test_control_characters_are_harmless(void)
{
    const struct bh_explain_subject evil = {.namespace_ = "a\x1b[2J",
                                            .name = "b\xC2\x9B"
                                                    "c"};
    const struct bh_decision d = {
        .kind = BH_DECISION_ERROR, .reason = "SchedulerError", .message = "\x07x\ny"};
    struct bh_buf b = {0};
    struct world w;

    world_init(&w);
    const char *text = rendered(&b, bh_explain_decision(&w.a, &evil, w.tab, &d), BH_FORM_TABLE);
    CU_ASSERT_PTR_NULL(strchr(text, '\x1b'));
    CU_ASSERT_PTR_NULL(strchr(text, '\x07'));
    CU_ASSERT_TRUE(has(text, "a?[2J/b?c\n"));
    CU_ASSERT_TRUE(has(text, "?x?y\n"));
    bh_buf_fini(&b);
    world_fini(&w);
}

/* ---- grids ----------------------------------------------------------------------------------- */

static void test_grid_columns(void)
{
    struct bh_grid g = {0};
    struct bh_buf b = {0};

    bh_grid_heading(&g, 0, "NAME", ">N", "LAST", NULL);
    bh_grid_cell(&g, 0, "%s", "caf\xC3\xA9s");
    bh_grid_cell(&g, BH_CELL_RIGHT, "%d", 12345);
    bh_grid_cell(&g, 0, "%s", "x");
    bh_grid_row(&g);
    bh_grid_cell(&g, 0, "%s", "a");
    bh_grid_cell(&g, BH_CELL_RIGHT, "%d", 1);
    bh_grid_cell(&g, 0, "%s", "");
    bh_grid_row(&g);
    bh_grid_print(&g, &b, 1, false);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), " NAME       N  LAST\n"
                                           " caf\xC3\xA9s  12345  x\n"
                                           " a          1\n");
    bh_buf_reset(&b);
    bh_grid_print(&g, &b, 0, false); /* printing emptied it */
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), "");
    bh_grid_cell(&g, BH_CELL_BAD, "%s", "no");
    bh_grid_row(&g);
    bh_grid_print(&g, &b, 0, true);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), "\x1b[31mno\x1b[0m\n");
    bh_buf_fini(&b);
    bh_grid_fini(&g);
}

BH_TESTS("scheduler/explain", {"scores, totals and shared ranks", test_scores_and_ranks},
         {"rejected nodes are grouped by verdict", test_rejected_nodes_by_verdict},
         {"PreFilter's verdicts and gates", test_pre_filter_and_gates},
         {"preemption names node and victims", test_preemption},
         {"JSON and YAML read back to the same document", test_forms},
         {"foreign trees are rendered without harm", test_foreign_trees},
         {"control characters do not reach the terminal", test_control_characters_are_harmless},
         {"columns align, lines end without blanks", test_grid_columns})
