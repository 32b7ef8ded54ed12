/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/explain/render.c - the document as text
 *
 * The tree may be foreign: every look-up tolerates what is missing or of another type.
 */
#include <errno.h>
#include <unistd.h>

#include "common/data/yaml.h"
#include "scheduler/explain/explain.h"
#include "scheduler/explain/grid.h"

#define COLUMNS_MAX 5u  /* nodes side by side in the table form */
#define GROUPS_MAX  20u /* groups in the table form */

struct page {
    struct bh_buf *out;
    struct bh_grid grid;
    bool wide, colour;
};

int bh_form_parse(const char *text, enum bh_form *ret, struct bh_err *err)
{
    int form = bh_word_at("table wide json yaml", text); /* by enum bh_form */

    if (form >= 0) {
        *ret = (enum bh_form)form;
        return 0;
    }
    return bh_err_set(err, -EINVAL, "invalid value \"%s\" for --output: table, wide, json or yaml",
                      text);
}

bool bh_colour_wanted(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(fd) == 1 && !(no && *no) && !(term && bh_streq(term, "dumb"));
}

void bh_form_write(struct bh_buf *out, const struct bh_json *doc, enum bh_form form)
{
    if (form == BH_FORM_YAML)
        bh_yaml_write(out, doc);
    else
        bh_json_write_pretty(out, doc);
    if (!out->n || out->p[out->n - 1] != '\n')
        bh_buf_addc(out, '\n');
}

/* ---- texts and lists --------------------------------------------------------------------------- */

static size_t length(const struct bh_json *v)
{
    return v ? v->c.n : 0;
}

/* ---- head ------------------------------------------------------------------------------------ */

/* "NodeAffinity: Unschedulable: reason, reason" */
static void verdict_line(struct page *p, const char *name, const struct bh_json *v)
{
    struct bh_buf why BH_CLEANUP(bh_buf_fini) = {0};

    if (!v || v->type != BH_JSON_OBJECT)
        return;
    bh_text_join(&why, bh_json_get_list(v, "reasons"), ", ");
    bh_grid_line(&p->grid, name, 0, "%s%s%s%s%s", bh_json_get_text(v, "plugin"),
                 *bh_json_get_text(v, "plugin") ? ": " : "", bh_json_get_text(v, "code"),
                 length(bh_json_get_list(v, "reasons")) ? ": " : "", bh_buf_str(&why));
}

/* ---- feasible nodes -------------------------------------------------------------------------- */

static const struct bh_json *score_of(const struct bh_json *node, const char *plugin)
{
    bh_json_each(s, bh_json_get_list(node, "plugins"))
        if (bh_streq(bh_json_get_text(s, "plugin"), plugin))
            return s;
    return NULL;
}

static unsigned node_look(const struct bh_json *node)
{
    return bh_json_get_bool(node, "chosen", false) ? BH_CELL_GOOD : BH_CELL_PLAIN;
}

/* Plugins down, nodes across. */
static void scores_side_by_side(struct page *p, const struct bh_json *ranking)
{
    const struct bh_json *v[COLUMNS_MAX] = {0};
    /* The nodes worth a column: the best ones, the chosen one among them. */
    size_t n = 0;
    bh_json_each(node, ranking) {
        if (n < COLUMNS_MAX)
            v[n++] = node;
        else if (bh_json_get_bool(node, "chosen", false))
            v[COLUMNS_MAX - 1] = node;
    }

    bh_buf_addf(p->out, "\nWeighted scores of the best %zu of %zu feasible nodes\n", n,
                length(ranking));
    bh_grid_cell(&p->grid, BH_CELL_BOLD, "PLUGIN");
    bh_grid_cell(&p->grid, BH_CELL_BOLD | BH_CELL_RIGHT, "WEIGHT");
    for (size_t i = 0; i < n; i++)
        bh_grid_cell(&p->grid, BH_CELL_BOLD | BH_CELL_RIGHT | node_look(v[i]), "%s",
                     bh_json_get_text(v[i], "node"));
    bh_grid_row(&p->grid);
    bh_json_each(s, bh_json_get_list(v[0], "plugins")) {
        bh_grid_members(&p->grid, 0, s, "plugin >weight");
        for (size_t i = 0; i < n; i++)
            bh_grid_members(&p->grid, 0, score_of(v[i], bh_json_get_text(s, "plugin")),
                            ">weighted");
        bh_grid_row(&p->grid);
    }

    bh_grid_cell(&p->grid, BH_CELL_BOLD, "TOTAL");
    bh_grid_cell(&p->grid, 0, "%s", "");
    for (size_t i = 0; i < n; i++)
        bh_grid_members(&p->grid, BH_CELL_BOLD, v[i], ">total");
    bh_grid_row(&p->grid);
    bh_grid_print(&p->grid, p->out, 0, p->colour);
}

/* A line for each node and plugin. */
static void scores_one_by_one(struct page *p, const struct bh_json *ranking)
{
    bh_buf_adds(p->out, "\nFeasible nodes, best first\n");
    bh_grid_heading(&p->grid, 0, ">RANK", "NODE", ">TOTAL", "PLUGIN", ">RAW", ">NORMALIZED",
                    ">WEIGHT", ">WEIGHTED", NULL);
    bh_json_each(node, ranking) {
        bool first = true;
        bh_json_each(s, bh_json_get_list(node, "plugins")) {
            bh_grid_members(&p->grid, first ? 0 : BH_CELL_DIM, node, ">rank");
            bh_grid_members(&p->grid, first ? node_look(node) : BH_CELL_DIM, node, "node");
            bh_grid_members(&p->grid, first ? 0 : BH_CELL_DIM, node, ">total");
            bh_grid_members(&p->grid, 0, s, "plugin >raw >normalized >weight >weighted");
            bh_grid_row(&p->grid);
            first = false;
        }
    }

    bh_grid_print(&p->grid, p->out, 0, p->colour);
}

static void feasible(struct page *p, const struct bh_json *o)
{
    const struct bh_json *ranking = bh_json_get_list(o, "ranking");

    if (!length(ranking))
        return;
    if (!bh_json_get_bool(o, "scored", false)) {
        if (length(ranking) == 1)
            bh_buf_adds(p->out, "\nOne node is feasible: taken without scoring\n");
        return;
    }
    if (p->wide)
        scores_one_by_one(p, ranking);
    else
        scores_side_by_side(p, ranking);
}

/* ---- rejected nodes -------------------------------------------------------------------------- */

static void groups_table(struct page *p, const struct bh_json *groups)
{
    size_t shown = 0;

    bh_grid_heading(&p->grid, 0, ">NODES", "PLUGIN", "CODE", "REASONS", "NAMES", NULL);
    bh_json_each(g, groups) {
        if (shown++ == GROUPS_MAX)
            break;
        const struct bh_json *named = bh_json_get_list(g, "nodes");
        int64_t more = bh_json_get_i64(g, "count", 0) - (int64_t)length(named);
        struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
        bh_grid_members(&p->grid, 0, g, ">count plugin code reasons");
        bh_text_join(&b, named, ", ");
        if (more > 0)
            bh_buf_addf(&b, " and %lld more", (long long)more);
        bh_grid_cell(&p->grid, BH_CELL_DIM, "%s", bh_buf_str(&b));
        bh_grid_row(&p->grid);
    }

    bh_grid_print(&p->grid, p->out, 0, p->colour);
    if (length(groups) > GROUPS_MAX)
        bh_buf_addf(p->out, "... and %zu more reasons; -o wide lists every node\n",
                    length(groups) - GROUPS_MAX);
}

static void rejected(struct page *p, const struct bh_json *o)
{
    const struct bh_json *all = bh_json_get_list(o, "rejected"),
                         *groups = bh_json_get_list(o, "rejectedGroups");

    if (p->wide && length(all)) {
        bh_buf_adds(p->out, "\nRejected nodes\n");
        bh_grid_heading(&p->grid, 0, "NODE", "PLUGIN", "CODE", "REASONS", NULL);
        bh_json_each(v, all) {
            bh_grid_members(&p->grid, 0, v, "node plugin code reasons");
            bh_grid_row(&p->grid);
        }
        bh_grid_print(&p->grid, p->out, 0, p->colour);
    } else if (length(groups)) {
        bh_buf_adds(p->out, "\nRejected nodes\n");
        groups_table(p, groups);
    }
}

static void preemption(struct page *p, const struct bh_json *o)
{
    const struct bh_json *pre = bh_json_get(o, "preemption");

    if (!pre || pre->type != BH_JSON_OBJECT)
        return;
    bh_buf_adds(p->out, "\nPreemption on node ");
    bh_text_add(p->out, BH_CELL_GOOD, p->colour, bh_json_get_text(pre, "nominatedNode"));
    bh_buf_addf(p->out, ": %zu victims, %lld of them against a disruption budget\n",
                length(bh_json_get_list(pre, "victims")),
                (long long)bh_json_get_i64(pre, "pdbViolations", 0));
    bh_grid_heading(&p->grid, 0, "NAMESPACE", "VICTIM", ">PRIORITY", NULL);
    bh_json_each(v, bh_json_get_list(pre, "victims")) {
        bh_grid_members(&p->grid, 0, v, "namespace name >priority");
        bh_grid_row(&p->grid);
    }
    bh_grid_print(&p->grid, p->out, 0, p->colour);
}

void bh_explain_render(struct bh_buf *out, const struct bh_json *explanation, enum bh_form form,
                       bool colour)
{
    struct page p = {.out = out, .wide = form == BH_FORM_WIDE, .colour = colour};

    if (form == BH_FORM_JSON || form == BH_FORM_YAML) {
        bh_form_write(out, explanation, form);
        return;
    }
    const struct bh_json *pod = bh_json_get(explanation, "pod");
    const char *result = bh_json_get_text(explanation, "result"),
               *node = bh_json_get_text(explanation, "nodeName");
    bh_grid_line(&p.grid, "Pod:", 0, "%s/%s", bh_json_get_text(pod, "namespace"),
                 bh_json_get_text(pod, "name"));
    const char *would = bh_json_get_bool(explanation, "recomputed", false) ? "would now be " : "";
    bh_grid_line(&p.grid, "Result:", *node ? BH_CELL_GOOD : BH_CELL_BAD, "%s%s%s%s", would, result,
                 *node ? " on " : "", node);
    bh_grid_line(&p.grid, "Message:", 0, "%s", bh_json_get_text(explanation, "message"));
    const struct bh_json *n = bh_json_get(explanation, "nodes");
    int64_t missed = bh_json_get_i64(n, "notEvaluated", 0);
    char more[64] = "";
    if (missed)
        snprintf(more, sizeof more, ", %lld not looked at", (long long)missed);
    if (n && n->type == BH_JSON_OBJECT)
        bh_grid_line(&p.grid, "Nodes:", 0, "%lld: %lld feasible, %lld rejected%s",
                     (long long)bh_json_get_i64(n, "total", 0),
                     (long long)bh_json_get_i64(n, "feasible", 0),
                     (long long)bh_json_get_i64(n, "rejected", 0), more);
    verdict_line(&p, "Rejected by:", bh_json_get(explanation, "preFilter"));
    const struct bh_json *subset = bh_json_get(explanation, "preFilterSubset");
    if (subset && subset->type == BH_JSON_OBJECT) {
        struct bh_buf by BH_CLEANUP(bh_buf_fini) = {0};
        bh_text_join(&by, bh_json_get_list(subset, "plugins"), ", ");
        bh_grid_line(&p.grid, "Narrowed to:", 0, "%zu nodes by %s",
                     length(bh_json_get_list(subset, "nodes")), bh_buf_str(&by));
        verdict_line(&p, "Other nodes:", bh_json_get(subset, "others"));
    }
    bh_grid_print(&p.grid, p.out, 0, p.colour);
    feasible(&p, explanation);
    rejected(&p, explanation);
    preemption(&p, explanation);
    bh_grid_fini(&p.grid);
}

void bh_explain_render_groups(struct bh_buf *out, const struct bh_json *groups, bool colour)
{
    struct page p = {.out = out, .colour = colour};

    if (groups && groups->type == BH_JSON_ARRAY && groups->c.n)
        groups_table(&p, groups);
    bh_grid_fini(&p.grid);
}
