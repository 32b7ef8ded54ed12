/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/decisions.c - `berth decisions`: attempts that a scheduler has recorded
 *
 * The file is read where it lies (scheduler/decisions/decisions.h); the scheduler need not run, and
 * is not asked.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/targets.h"
#include "scheduler/decisions/decisions.h"
#include "scheduler/decisions/recorder.h"
#include "scheduler/explain/explain.h"
#include "scheduler/explain/grid.h"

#define WHO           "berth decisions"
#define STATE_FILE    "/var/lib/berth/" BH_DECISIONS_FILE
#define MESSAGE_SHOWN 80 /* bytes, on a terminal */

struct arguments {
    const char *runtime, *file, *pod, *ns, *uid, *node, *result, *output;
    int64_t limit, before;
    bool no_headers;
    enum bh_form form;
    struct bh_opt_list words;
};

/* ---- which file ------------------------------------------------------------------------------ */

/* Named, or that of the runtime directory, or that of the packages' unit. */
static char *find_file(const struct arguments *a)
{
    char dir[108];
    char *path;

    if (a->file)
        return bh_strdup(a->file);
    if (bh_cli_find_dir(WHO, a->runtime, dir, NULL) == 0) {
        path = bh_asprintf("%s/" BH_DECISIONS_RUNTIME, dir);
        if (access(path, F_OK) == 0 || a->runtime)
            return path;
        free(path);
    }
    return bh_strdup(STATE_FILE);
}

static int fail(const char *path, int rc, const struct bh_err *err)
{
    fprintf(stderr, WHO ": %s\n", err->msg);
    if (rc == -ENOENT && access(path, F_OK) < 0)
        fprintf(stderr, "Is a scheduler recording (berth-scheduler --record-decisions)? "
                        "--decisions-file names another file.\n");
    return BH_EXIT_FAIL;
}

/* ---- list ------------------------------------------------------------------------------------ */

static void duration_cell(struct bh_grid *g, unsigned look, int64_t ns)
{
    bh_grid_cell(g, look, ns < 1000000 ? "%.1fus" : "%.1fms",
                 (double)ns / (ns < 1000000 ? 1e3 : 1e6));
}

static void add_row(struct bh_grid *g, const struct bh_json *row, bool wide)
{
    const struct bh_json *pod = bh_json_get(row, "pod"), *nodes = bh_json_get(row, "nodes");
    const char *time = bh_json_get_text(row, "time");
    const char *told = *bh_json_get_text(row, "outcomeMessage") ? "outcomeMessage" : "message";

    bh_grid_members(g, 0, row, ">id");
    bh_grid_cell(g, 0, "%.*s", wide ? (int)strlen(time) : 19, time);
    bh_grid_cell(g, BH_CELL_BOLD, "%s/%s", bh_json_get_text(pod, "namespace"),
                 bh_json_get_text(pod, "name"));
    bh_grid_members(g, 0, row, ">attempt");
    /* What happened in the end, in one word; the node, also a promised one. */
    const char *result = bh_json_get_text(row, "result"),
               *outcome = bh_json_get_text(row, "outcome"),
               *promised = bh_json_get_text(row, "nominatedNodeName");
    if (bh_streq(outcome, "GroupWaits")) /* of a group that does not go, it is not scheduled */
        bh_grid_cell(g, 0, "HasRoom");
    else
        bh_grid_members(g, bh_streq(result, "Scheduled") ? BH_CELL_GOOD : BH_CELL_BAD, row,
                        "result");
    bh_grid_members(g, bh_streq(outcome, "Failed") ? BH_CELL_BAD : 0, row, "outcome");
    if (!*bh_json_get_text(row, "nodeName") && *promised)
        bh_grid_cell(g, BH_CELL_DIM, "(%s)", promised);
    else
        bh_grid_members(g, 0, row, "nodeName");
    bh_grid_cell(g, BH_CELL_RIGHT, "%lld/%lld", (long long)bh_json_get_i64(nodes, "feasible", 0),
                 (long long)bh_json_get_i64(nodes, "total", 0));
    if (wide) {
        duration_cell(g, BH_CELL_RIGHT, bh_json_get_i64(row, "duration_ns", 0));
        bh_grid_members(g, 0, row, "trigger profile");
    }
    if (!wide && isatty(STDOUT_FILENO) && strlen(bh_json_get_text(row, told)) > MESSAGE_SHOWN)
        bh_grid_cell(g, 0, "%.*s...", MESSAGE_SHOWN, bh_json_get_text(row, told));
    else
        bh_grid_members(g, 0, row, told);
    bh_grid_row(g);
}

static int list(struct bh_decisions *d, const char *path, const struct arguments *a,
                struct bh_arena *arena, struct bh_buf *out)
{
    /* --pod NS/NAME, or NAME with -n. */
    const char *slash = a->pod ? strchr(a->pod, '/') : NULL;
    const struct bh_decision_filter f = {
        .namespace_ = slash              ? bh_arena_strndup(arena, a->pod, (size_t)(slash - a->pod))
                      : a->pod && !a->ns ? "default"
                                         : a->ns,
        .pod = slash ? slash + 1 : a->pod,
        .uid = a->uid,
        .node = a->node,
        .result = a->result,
        .before = a->before,
        .limit = (unsigned)a->limit};
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};
    int rc = access(path, F_OK) < 0 ? bh_err_set(&err, -errno, "%s: %s", path, strerror(errno))
                                    : bh_decisions_list(d, arena, &f, &v, &err);

    if (rc < 0)
        return fail(path, rc, &err);
    if (a->form == BH_FORM_TABLE || a->form == BH_FORM_WIDE) {
        bool wide = a->form == BH_FORM_WIDE;
        struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
        if (!a->no_headers && wide)
            bh_grid_heading(&g, BH_CELL_BOLD, ">ID", "TIME", "POD", ">ATTEMPT", "RESULT", "OUTCOME",
                            "NODE", ">FEASIBLE", ">TOOK", "TRIGGER", "PROFILE", "MESSAGE", NULL);
        else if (!a->no_headers)
            bh_grid_heading(&g, BH_CELL_BOLD, ">ID", "TIME", "POD", ">ATTEMPT", "RESULT", "OUTCOME",
                            "NODE", ">FEASIBLE", "MESSAGE", NULL);
        bh_json_each(row, bh_json_get_list(v, "items"))
            add_row(&g, row, wide);
        bh_grid_print(&g, out, 0, bh_colour_wanted(STDOUT_FILENO));
    } else
        bh_form_write(out, v, a->form);
    if (bh_cli_print(WHO, out) != BH_EXIT_OK)
        return BH_EXIT_FAIL;
    if (bh_json_get_bool(v, "more", false) && isatty(STDERR_FILENO))
        fprintf(
            stderr, "There are more: --limit, or --before=%lld for the next page.\n",
            (long long)bh_json_get_i64(
                bh_json_at(bh_json_get(v, "items"), bh_json_get(v, "items")->c.n - 1), "id", 0));
    return BH_EXIT_OK;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static void render_scores(struct bh_buf *out, const struct bh_json *plugins,
                          const struct bh_json *v, bool colour)
{
    static const char *const steps[] = {"raw", "normalized", "weighted"};
    const struct bh_json *difference = bh_json_get(v, "difference");
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    size_t k = 0;

    bh_grid_heading(&g, BH_CELL_BOLD, "SCORE", ">WEIGHT", ">RAW", ">NORMALIZED", ">WEIGHTED",
                    ">AGAINST WINNER", NULL);
    bh_json_each(p, plugins) {
        bh_grid_members(&g, 0, p, "name >weight");
        for (size_t i = 0; i < BH_ARRAY_LEN(steps); i++) {
            int64_t score = 0;
            (void)bh_json_i64(bh_json_at(bh_json_get(v, steps[i]), k), &score);
            bh_grid_cell(&g, BH_CELL_RIGHT, "%lld", (long long)score);
        }
        bh_grid_cell(&g, BH_CELL_RIGHT, "%+lld",
                     (long long)bh_json_get_i64(bh_json_at(difference, k), "weighted", 0));
        bh_grid_row(&g);
        k++;
    }
    bh_buf_addc(out, '\n');
    bh_grid_print(&g, out, 0, colour);
}

static void render_node(struct bh_buf *out, const struct bh_json *plugins, const struct bh_json *v,
                        bool colour)
{
    const struct bh_json *winner = bh_json_get(v, "winner");
    bool feasible = bh_streq(bh_json_get_text(v, "status"), "feasible");
    struct bh_buf reasons BH_CLEANUP(bh_buf_fini) = {0}, passed BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    bh_text_join(&reasons, bh_json_get(v, "reasons"), ", ");
    bh_text_join(&passed, bh_json_get(v, "passed"), ", ");
    bh_grid_line(&g, "Node:", 0, "%s", bh_json_get_text(v, "node"));
    bh_grid_line(&g, "Status:", 0, "%s", bh_json_get_text(v, "status"));
    bh_grid_line(&g, "Plugin:", 0, "%s", bh_json_get_text(v, "plugin"));
    bh_grid_line(&g, "Code:", 0, "%s", bh_json_get_text(v, "code"));
    bh_grid_line(&g, "Reasons:", 0, "%s", bh_buf_str(&reasons));
    bh_grid_line(&g, "Passed:", 0, "%s", bh_buf_str(&passed));
    if (feasible)
        bh_grid_line(&g, "Total:", 0, "%lld", (long long)bh_json_get_i64(v, "total", 0));
    bh_grid_line(&g, "Winner:", 0, "%s", bh_json_get_text(winner, "node"));
    if (winner && feasible)
        bh_grid_line(&g, "Its total:", 0, "%lld", (long long)bh_json_get_i64(winner, "total", 0));
    bh_grid_print(&g, out, 0, colour);
    if (feasible && bh_json_first(plugins))
        render_scores(out, plugins, v, colour);
}

static int show(struct bh_decisions *d, const struct arguments *a, int64_t id,
                struct bh_arena *arena, struct bh_buf *out, struct bh_err *err)
{
    bool colour = bh_colour_wanted(STDOUT_FILENO);
    bool text = a->form == BH_FORM_TABLE || a->form == BH_FORM_WIDE;
    struct bh_json *v = NULL, *whole = NULL;
    int rc = a->node ? bh_decisions_node(d, arena, id, a->node, &v, err)
                     : bh_decisions_explanation(d, arena, id, &v, err);

    if (rc == 0)
        rc = bh_decisions_get(d, arena, id, &whole, err);
    if (rc < 0)
        return rc;
    if (text && !a->node) {
        /* What the explanation does not say: when, which attempt, what came of it. */
        struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
        bh_grid_line(&g, "Attempt:", 0, "%lld", (long long)bh_json_get_i64(whole, "attempt", 0));
        bh_grid_line(&g, "Time:", 0, "%s", bh_json_get_text(whole, "time"));
        bh_grid_line(&g, "Trigger:", 0, "%s", bh_json_get_text(whole, "trigger"));
        bh_grid_cell(&g, BH_CELL_BOLD, "Took:");
        duration_cell(&g, 0, bh_json_get_i64(whole, "duration_ns", 0));
        bh_grid_row(&g);
        bh_grid_line(&g, "Outcome:", 0, "%s", bh_json_get_text(whole, "outcome"));
        bh_grid_line(&g, "Because:", 0, "%s", bh_json_get_text(whole, "outcomeMessage"));
        bh_grid_print(&g, out, 0, colour);
        bh_buf_addc(out, '\n');
    }
    if (text && a->node)
        render_node(out, bh_json_get(whole, "scorePlugins"), v, colour);
    else
        bh_explain_render(out, v, a->form, colour);
    return 0;
}

static int annotations(struct bh_decisions *d, const struct arguments *a, int64_t id,
                       struct bh_arena *arena, struct bh_buf *out, struct bh_err *err)
{
    struct bh_json *v = NULL;
    int rc = bh_decisions_annotations(d, arena, id, NULL, &v, err);

    if (rc < 0)
        return rc;
    if (a->form == BH_FORM_JSON || a->form == BH_FORM_YAML) {
        bh_form_write(out, v, a->form);
        return 0;
    }
    bh_json_each(i, v) {
        bh_text_add(out, BH_CELL_BOLD, bh_colour_wanted(STDOUT_FILENO), i->key.p);
        bh_buf_adds(out, ": ");
        bh_text_add(out, 0, false, bh_json_cstr(i));
        bh_buf_addc(out, '\n');
    }
    return 0;
}

static int one(struct bh_decisions *d, const char *path, const struct arguments *a,
               struct bh_arena *arena, struct bh_buf *out)
{
    struct bh_err err = {{0}};
    char *end = NULL;
    long long id = a->words.n > 1 ? strtoll(a->words.v[1], &end, 10) : 0;
    int rc;

    if (a->words.n != 2 || !end || *end || id <= 0) {
        rc = bh_err_set(&err, -EINVAL,
                        "%s wants the number of an attempt, see 'berth decisions list'",
                        a->words.v[0]);
        return bh_cli_usage(WHO, rc, &err);
    }
    rc = bh_streq(a->words.v[0], "show") ? show(d, a, id, arena, out, &err)
                                         : annotations(d, a, id, arena, out, &err);
    if (rc < 0)
        return fail(path, rc, &err);
    return bh_cli_print(WHO, out);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int read_arguments(struct arguments *a, int argc, char **argv, struct bh_err *err)
{
    const struct bh_opt table[] = {
        {"decisions-file", 0, BH_OPT_STR, &a->file, "FILE",
         "the scheduler's file (default " BH_DECISIONS_RUNTIME
         " in the runtime directory, or " STATE_FILE ")"},
        {"runtime-dir", 0, BH_OPT_STR, &a->runtime, "DIR", "instance to read " BH_INSTANCE_DEFAULT},
        {"pod", 0, BH_OPT_STR, &a->pod, "NAMESPACE/NAME", "attempts of this pod"},
        {"namespace", 'n', BH_OPT_STR, &a->ns, "NAME", "attempts of pods of this namespace"},
        {"uid", 0, BH_OPT_STR, &a->uid, "UID", "attempts of the pod with this uid"},
        {"node", 0, BH_OPT_STR, &a->node, "NAME",
         "list: attempts that chose or nominated this node; show: why (not) this node"},
        {"result", 0, BH_OPT_STR, &a->result, "RESULT", "Scheduled, Unschedulable or Error"},
        {"limit", 0, BH_OPT_INT, &a->limit, "N", "at most so many, up to 1000"},
        {"before", 0, BH_OPT_INT, &a->before, "ID", "older than this one"},
        {"output", 'o', BH_OPT_STR, &a->output, BH_FORMS, "output form"},
        {"no-headers", 0, BH_OPT_BOOL, &a->no_headers, NULL, "no line of headings"},
        {0},
    };
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &a->words, err);

    if (rc == BH_OPT_WORDS && argc == 2) {
        puts("list\nshow\nannotations");
        bh_cli_print_names(WHO, "pod/", NULL);
    }
    if (rc == 0 && a->words.n == 1 && strchr(a->words.v[0], '/') && !a->pod)
        a->pod = a->words.v[--a->words.n]; /* as berth explain takes it */
    const char *slash = a->pod ? strchr(a->pod, '/') : NULL;
    if (slash && bh_target_parse(a->pod, (size_t)(slash - a->pod)) == BH_TARGET_POD)
        a->pod = slash + 1;
    const char *verb = rc == 0 && a->words.n ? a->words.v[0] : "list";

    if (rc == 0)
        rc = bh_form_parse(a->output, &a->form, err);
    if (rc == 0 && (a->limit < 1 || a->limit > (int64_t)BH_DECISIONS_PAGE_MAX))
        rc = bh_err_set(err, -EINVAL, "limit %lld: want 1 to %u", (long long)a->limit,
                        BH_DECISIONS_PAGE_MAX);
    if (rc == 0 && !bh_streq(verb, "list") && !bh_streq(verb, "show") &&
        !bh_streq(verb, "annotations")) {
        char near[64];
        bh_near_word(near, "list show annotations", verb);
        rc =
            bh_err_set(err, -EINVAL,
                       "unknown verb \"%s\"%s: list, show or annotations, or pod/NAME", verb, near);
    }
    if (rc == 0 && bh_streq(verb, "list") && a->words.n > 1)
        rc = bh_err_set(err, -EINVAL, "unexpected argument \"%s\"", a->words.v[1]);
    return rc;
}

int bh_cmd_decisions(int argc, char **argv)
{
    struct arguments a = {.limit = BH_DECISIONS_PAGE, .output = "table"};
    struct bh_err err = {{0}};
    BH_CLEANUP(bh_freep) char *path = NULL;
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_arena arena BH_CLEANUP(bh_arena_fini) = {0};
    int rc = read_arguments(&a, argc, argv, &err), code;

    if (rc != 0) {
        free(a.words.v);
        return bh_cli_usage(WHO, rc, &err);
    }
    path = find_file(&a);
    struct bh_decisions *d = bh_decisions_new(path);
    if (!a.words.n || bh_streq(a.words.v[0], "list"))
        code = list(d, path, &a, &arena, &out);
    else
        code = one(d, path, &a, &arena, &out);
    bh_decisions_free(d);
    free(a.words.v);
    return code;
}
