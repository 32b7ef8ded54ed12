/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/simulate.c - `berth simulate`: decisions for files, no server
 */
#include <errno.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/k8s/quantity.h"
#include "scheduler/explain/grid.h"
#include "scheduler/native/native.h"
#include "simulator/server/sim.h"
#include "simulator/trial/trial.h"

#define WHO            "berth simulate"
#define EXIT_NOT_ALL   3
#define WARNINGS_SHOWN 20u

struct options {
    struct bh_opt_list files, gates;
    struct bh_feature_gates in_force;
    const char *output, *tie, *now, *only, *config;
    int64_t seed, max;
    bool count, explain, verify, strict, no_preemption;
    struct bh_native_options plugins;
};

static int read_options(struct options *o, int argc, char **argv, struct bh_err *err)
{
    const struct bh_opt table[] = {
        {"filename", 'f', BH_OPT_STRLIST, &o->files, "FILE",
         "file, folder or - (standard input) with objects as YAML or JSON (may be repeated)"},
        {"output", 'o', BH_OPT_STR, &o->output, BH_FORMS, "form of the output"},
        {"explain", 0, BH_OPT_BOOL, &o->explain, NULL,
         "show for every pod why it went where it went, node by node"},
        {"count", 0, BH_OPT_BOOL, &o->count, NULL,
         "how many more of the one pending pod (see --pod) fit, per node, and why no more"},
        {"max", 0, BH_OPT_INT, &o->max, "N", "with --count: stop at N (no limit)"},
        {"pod", 0, BH_OPT_STR, &o->only, "NAMESPACE/NAME",
         "schedule only this pod; other pending pods take no part"},
        {"config", 0, BH_OPT_STR, &o->config, "FILE", "KubeSchedulerConfiguration (defaults)"},
        {"tie-break", 0, BH_OPT_CHOICE, &o->tie, "first|random",
         "among equally good nodes: the smallest name, or a seeded draw"},
        {"seed", 0, BH_OPT_INT, &o->seed, "N", "of the draws"},
        {"no-preemption", 0, BH_OPT_BOOL, &o->no_preemption, NULL, "never evict a pod for another"},
        {"now", 0, BH_OPT_STR, &o->now, "TIME",
         "the time it is, as RFC 3339, for pods without a start time (the clock's)"},
        {"strict", 0, BH_OPT_BOOL, &o->strict, NULL,
         "objects of unknown kinds are errors, not warnings"},
        {"verify", 0, BH_OPT_BOOL, &o->verify, NULL,
         "decide every pod by both paths of the engine and abort on a difference"},
        {"feature-gates", 0, BH_OPT_STRLIST, &o->gates, "NAME=BOOL,...",
         "the scheduler's; PodGroups need GenericWorkload=true,GangScheduling=true"},
        BH_NATIVE_OPTIONS(o->plugins),
        {0},
    };

    return bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, err);
}

static int check(struct options *o, struct bh_trial_options *to, struct bh_err *err)
{
    const struct bh_opt_list none = {0};
    const char *slash = o->only ? strchr(o->only, '/') : NULL;
    enum bh_form form = BH_FORM_TABLE;
    int rc = bh_form_parse(o->output, &form, err);

    if (rc == 0 && !o->files.n)
        rc = bh_err_set(err, -EINVAL, "no file given: -f FILE");
    if (rc == 0 && o->only && (!slash || slash == o->only || !slash[1] || strchr(slash + 1, '/')))
        rc = bh_err_set(err, -EINVAL, "invalid value \"%s\" for --pod: NAMESPACE/NAME", o->only);
    if (rc == 0 && o->max < 0)
        rc = bh_err_set(err, -EINVAL, "invalid value %lld for --max: a number from 0 on",
                        (long long)o->max);
    if (rc == 0 && o->count && o->explain)
        rc = bh_err_set(err, -EINVAL, "--count says itself why no more fit: not with --explain");
    *to = (struct bh_trial_options){.config = o->config,
                                    .tie_break =
                                        bh_streq(o->tie, "first") ? BH_TIE_FIRST : BH_TIE_RANDOM,
                                    .seed = (uint64_t)o->seed,
                                    .verify = o->verify,
                                    .explain = o->explain,
                                    .no_preemption = o->no_preemption,
                                    .strict = o->strict,
                                    .form = form,
                                    .colour = bh_colour_wanted(STDOUT_FILENO),
                                    .only = o->only,
                                    .gates = &o->in_force};
    bh_feature_gates_init(&o->in_force);
    if (rc == 0)
        rc = bh_feature_gates_set(&o->in_force, &o->gates, &none, &none, err);
    to->now_ns = bh_wall_ns();
    if (rc == 0 && o->now && (bh_time_parse_ns(o->now, &to->now_ns) != 0 || to->now_ns < 0))
        rc = bh_err_set(err, -EINVAL,
                        "invalid value \"%s\" for --now: a time like 2026-01-02T03:04:05Z", o->now);
    return rc;
}

static void on_progress(void *arg, const char *what, size_t done, size_t total)
{
    if (!what)
        bh_progress_end(arg);
    else
        bh_progress_draw(arg, done, total, "%s: %zu of %zu", what, done, total);
}

static void on_warning(void *arg, size_t n, const char *text)
{
    struct bh_buf line BH_CLEANUP(bh_buf_fini) = {0};

    (void)arg;
    bh_text_add(&line, 0, false, text);
    if (n <= WARNINGS_SHOWN)
        fprintf(stderr, "berth simulate: warning: %s\n", bh_buf_str(&line));
    else if (n == WARNINGS_SHOWN + 1)
        fputs("berth simulate: warning: more warnings are not shown; -o json has all\n", stderr);
}

int bh_cmd_simulate(int argc, char **argv)
{
    struct options o = {.output = "table", .tie = "first", .seed = 1};
    struct bh_progress progress;
    struct bh_trial_options to;
    struct bh_err err = {{0}};
    struct bh_buf out = {0};
    int rc = read_options(&o, argc, argv, &err), code = BH_EXIT_OK;

    if (rc == 0)
        rc = check(&o, &to, &err);
    if (rc != 0) {
        free(o.files.v);
        free(o.gates.v);
        return bh_cli_usage(WHO, rc, &err);
    }
    bh_native_start(&o.plugins, NULL);
    bh_progress_patient(&progress);
    to.watcher =
        (struct bh_trial_watcher){.progress = on_progress, .warning = on_warning, .arg = &progress};
    struct bh_trial *t = NULL;
    rc = bh_trial_new(&to, &t, &err);
    if (rc >= 0)
        rc = bh_trial_load(t, o.files.v, o.files.n, &err);
    if (rc >= 0 && o.only && !t->n_list)
        rc = bh_err_set(&err, -ENOENT, "no pending pod %s in the files", o.only);
    if (rc >= 0 && o.count) {
        rc = bh_trial_count(t, o.max, &out, &err);
    } else if (rc >= 0) {
        bh_trial_run(t);
        bh_trial_report(t, &out);
        struct bh_trial_summary s = bh_trial_summarize(t);
        code = s.unschedulable + s.gated + s.failed + s.waiting || (t->n_foreign && !t->n_list)
                   ? EXIT_NOT_ALL
                   : BH_EXIT_OK;
    }
    on_progress(to.watcher.arg, NULL, 0, 0);
    bh_trial_free(t);
    if (rc < 0) { /* names in it are the files' */
        code = BH_EXIT_FAIL;
        struct bh_buf line BH_CLEANUP(bh_buf_fini) = {0};
        bh_text_add(&line, 0, false, err.msg);
        fprintf(stderr, "berth simulate: %s\n", bh_buf_str(&line));
    }
    free(o.files.v);
    free(o.gates.v);
    return bh_cli_print(WHO, &out) == BH_EXIT_OK ? code : BH_EXIT_FAIL;
}
