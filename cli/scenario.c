/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/scenario.c - `berth scenario`: a file of steps at virtual times, run without any server
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "scheduler/explain/explain.h"
#include "simulator/scenario/scenario.h"

#define WHO_RUN        "berth scenario run"
#define WHO_CHECK      "berth scenario check"
#define WHO_REPORT     "berth scenario report"
#define FILE_MAX_BYTES ((size_t)1 << 30)
#define EXIT_EXPECTED  3

struct options {
    const char *output, *html, *out;
    struct bh_opt_list configs;
    bool verify, times;
    int64_t seed;
};

static int read_text(const char *path, struct bh_buf *b, struct bh_err *err)
{
    int rc = bh_cli_read(path, FILE_MAX_BYTES, b);

    return rc < 0 ? bh_err_set(err, rc, "could not read \"%s\": %s", path, strerror(-rc)) : 0;
}

static int write_text(const char *path, const struct bh_buf *b, struct bh_err *err)
{
    int rc = bh_streq(path, "-")
                 ? (fwrite(b->p, 1, b->n, stdout) == b->n && fflush(stdout) == 0 ? 0 : -errno)
                 : bh_write_file(path, b->p, b->n, 0644);

    return rc < 0 ? bh_err_set(err, rc, "could not write \"%s\": %s", path, strerror(-rc)) : 0;
}

static int read_scenario(const char *path, const struct bh_opt_list *configs,
                         struct bh_scenario **ret, struct bh_err *err)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0}, list BH_CLEANUP(bh_buf_fini) = {0};
    int rc = read_text(path, &text, err);

    for (size_t i = 0; configs && i < configs->n; i++)
        bh_buf_addf(&list, "%s%s", i ? "," : "", configs->v[i]);
    const struct bh_scenario_source src = {.file = path,
                                           .text = bh_buf_str(&text),
                                           .n = text.n,
                                           .files_allowed = true,
                                           .configs = list.n ? bh_buf_str(&list) : NULL};
    if (rc >= 0)
        rc = bh_scenario_read(&src, ret, NULL, err);
    return rc;
}

/* ---- run ------------------------------------------------------------------------------------- */

struct screen {
    struct bh_progress progress;
    struct bh_scenario_progress at;
};

static void on_tick(void *arg)
{
    struct screen *s = arg;
    int64_t at = atomic_load(&s->at.at_ns), end = atomic_load(&s->at.end_ns);

    bh_progress_draw(&s->progress, (uint64_t)at, end > 0 ? (uint64_t)end : UINT64_MAX,
                     "%.1f s of virtual time", (double)at / 1e9);
}

/* What --out says goes there; the rest to the standard output. */
static int put_results(const struct options *o, const struct bh_buf *json, struct bh_err *err)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};
    int rc = 0;

    if (o->html) {
        rc = bh_scenario_html(json->p, json->n, &text, err);
        rc = rc < 0 ? rc : write_text(o->html, &text, err);
        bh_buf_reset(&text);
    }
    if (rc >= 0 && o->out)
        rc = write_text(o->out, json, err);
    if (rc >= 0 && bh_streq(o->output, "json") && !o->out) {
        rc = write_text("-", json, err);
    } else if (rc >= 0 && bh_streq(o->output, "table")) {
        rc = bh_scenario_text(json->p, json->n, bh_colour_wanted(STDOUT_FILENO), &text, err);
        rc = rc < 0 ? rc : write_text("-", &text, err);
    }
    return rc;
}

static int run(int argc, char **argv)
{
    struct options o = {.output = "table", .seed = -1};
    const struct bh_opt table[] = {
        {"config", 0, BH_OPT_STRLIST, &o.configs, "FILE,...",
         "scheduler configurations to compare, in place of the scenario's; \"default\" is one"},
        {"seed", 0, BH_OPT_INT, &o.seed, "N", "in place of the scenario's"},
        {"output", 'o', BH_OPT_CHOICE, &o.output, "table|json|none", "what is printed"},
        {"out", 0, BH_OPT_STR, &o.out, "FILE", "the result as JSON"},
        {"html", 0, BH_OPT_STR, &o.html, "FILE", "the report: one file, opens in any browser"},
        {"times", 0, BH_OPT_BOOL, &o.times, NULL,
         "real times of decisions in the result too, which then differs from run to run"},
        {"verify", 0, BH_OPT_BOOL, &o.verify, NULL,
         "decide every pod by both paths of the engine and abort on a difference"},
        {0}};
    struct bh_opt_list args BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    bool passed = false;
    int rc = bh_opt_parse(table, bh_cli_help(WHO_RUN), argc, argv, &args, &err);

    if (rc == 0 && args.n != 1)
        rc = bh_err_set(&err, -EINVAL, args.n ? "one FILE at a time" : "FILE is missing");
    if (rc != 0)
        return bh_cli_usage(WHO_RUN, rc, &err);
    struct screen screen = {.at = {0}};
    struct bh_scenario *s = NULL;
    struct bh_buf json BH_CLEANUP(bh_buf_fini) = {0};
    rc = read_scenario(args.v[0], &o.configs, &s, &err);
    bh_progress_patient(&screen.progress);
    if (rc >= 0) {
        const struct bh_scenario_options so = {.progress = &screen.at,
                                               .tick = on_tick,
                                               .arg = &screen,
                                               .verify = o.verify,
                                               .times = o.times};
        if (o.seed >= 0)
            s->seed = (uint64_t)o.seed;
        rc = bh_scenario_run(s, &so, &json, &passed, &err);
        bh_progress_end(&screen.progress);
    }
    if (rc >= 0)
        rc = put_results(&o, &json, &err);
    bh_scenario_free(s);
    free(o.configs.v);
    if (rc < 0)
        return bh_cli_fail(WHO_RUN, &err);
    return passed ? BH_EXIT_OK : EXIT_EXPECTED;
}

/* ---- check, report --------------------------------------------------------------------------- */

static int check(int argc, char **argv)
{
    const struct bh_opt table[] = {{0}};
    struct bh_opt_list args BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO_CHECK), argc, argv, &args, &err),
        status = BH_EXIT_OK;

    if (rc == 0 && !args.n)
        rc = bh_err_set(&err, -EINVAL, "FILE is missing");
    if (rc != 0)
        return bh_cli_usage(WHO_CHECK, rc, &err);
    for (size_t i = 0; i < args.n; i++) {
        struct bh_scenario *s = NULL;
        if (read_scenario(args.v[i], NULL, &s, &err) < 0)
            status = bh_cli_fail(WHO_CHECK, &err);
        else
            printf("%s: valid\n", args.v[i]);
        bh_scenario_free(s);
    }
    return status;
}

static int report(int argc, char **argv)
{
    struct options o = {.output = "table"};
    const struct bh_opt table[] = {
        {"html", 0, BH_OPT_STR, &o.html, "FILE", "where the report goes (- = standard output)"},
        {0}};
    struct bh_opt_list args BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_buf json BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO_REPORT), argc, argv, &args, &err);

    if (rc == 0 && args.n != 1)
        rc = bh_err_set(&err, -EINVAL, args.n ? "one RESULT at a time" : "RESULT is missing");
    if (rc != 0)
        return bh_cli_usage(WHO_REPORT, rc, &err);
    o.output = o.html ? "none" : "table";
    rc = read_text(args.v[0], &json, &err);
    if (rc >= 0)
        rc = put_results(&o, &json, &err);
    return rc < 0 ? bh_cli_fail(WHO_REPORT, &err) : BH_EXIT_OK;
}

int bh_cmd_scenario(int argc, char **argv)
{
    static const struct bh_cli_command commands[] = {
        {"run", run, "run a scenario, compare scheduler configurations"},
        {"check", check, "is a scenario file valid?"},
        {"report", report, "HTML report of a result"}};

    return bh_cli_dispatch("berth scenario", "steps at virtual times, run without a server",
                           commands, BH_ARRAY_LEN(commands), argc, argv);
}
