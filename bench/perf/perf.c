/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/perf.c - `berth bench perf`: runs workloads, prints what they came to
 */
#include "bench/perf/perf.h"

#include <errno.h>
#include <regex.h>
#include <sys/stat.h>
#include <time.h>

#include "scheduler/native/native.h"
#include "scheduler/wasm/guest.h"

#define WHO              "berth bench perf"
#define MAX_ROUNDS       99
#define NAME_IN_TEMPLATE "BenchmarkPerfScheduling_benchmark"

struct run {
    struct bh_bench_options o;
    const char *name, *labels, *mode, *output, *items_dir, *tie_break, *clock;
    const char *record; /* beside which mode of recording, in rounds */
    bool list, stopped;
    int64_t seed, rounds;
    struct bh_buf sides; /* a line for each workload */
    regex_t regex;
    struct bh_bench_file **files;
    size_t n_files;
    struct bh_bench_report report;
    struct bh_progress progress;
    uint32_t n_chosen;
};

/* ---- one workload ---------------------------------------------------------------------------- */

static void run_one(struct run *r, const struct bh_bench_target *t)
{
    struct bh_bench_step *steps;
    struct bh_bench_world w;
    struct bh_err err = {0};
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    uint32_t n;

    int rc = bh_bench_plan(&a, t->file, t->test_case, t->workload, &steps, &n, &err);
    if (rc >= 0) {
        rc = bh_bench_world_init(&w, &r->o, t, &r->report, &r->progress, &err);
        if (rc >= 0)
            rc = bh_bench_run(&w, steps, n, &err);
        bh_progress_end(&r->progress);
        if (rc < 0)
            bh_bench_failed(&r->report, t, err.msg, &w);
        bh_bench_world_fini(&w); /* takes a while: the signal may come during it */
        r->stopped |= w.stopped;
    } else {
        bh_bench_failed(&r->report, t, err.msg, NULL);
    }
}

/* CPU of the scheduler for a pod, in us, over the windows of a run; 0: it failed. */
static double scheduler_us(const struct bh_bench_report *r, size_t from)
{
    double us = 0, pods = 0;

    for (size_t i = from; i < r->n_rows; i++) {
        if (r->rows[i].failed)
            return 0;
        us += r->rows[i].cpu_us[BH_BENCH_SCHEDULER] * (double)r->rows[i].pods;
        pods += (double)r->rows[i].pods;
    }
    return pods > 0 ? us / pods : 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Without and with recording in turn: what else the machine does meets both. */
static void run_rounds(struct run *r, const struct bh_bench_target *t)
{
    const char *const modes[] = {"off", r->record};
    double us[2][MAX_ROUNDS];
    size_t n = 0;

    for (int64_t i = 0; i < 2 * r->rounds && !r->stopped; i++) {
        struct bh_bench_target run = *t;
        size_t from = r->report.n_rows;
        r->o.record = modes[i % 2];
        run.name = bh_arena_printf(&r->report.arena, "%s, %s", t->name, r->o.record);
        run_one(r, &run);
        us[i % 2][n] = scheduler_us(&r->report, from);
        n += i % 2 && us[0][n] > 0 && us[1][n] > 0;
    }
    qsort(us[0], n, sizeof(us[0][0]), by_value);
    qsort(us[1], n, sizeof(us[1][0]), by_value);
    if (n)
        bh_buf_addf(&r->sides,
                    "%s: median of %zu, scheduler's CPU a pod: off %.1f us, %s %.1f us (%.2f)\n",
                    t->name, n, us[0][n / 2], r->record, us[1][n / 2], us[1][n / 2] / us[0][n / 2]);
}

static void run_file(struct run *r, const struct bh_bench_file *f)
{
    for (uint32_t i = 0; i < f->n_cases; i++) {
        const struct bh_bench_case *c = &f->cases[i];
        for (uint32_t k = 0; k < c->n_workloads && !r->stopped; k++) {
            char *name BH_CLEANUP(bh_freep) = bh_asprintf("%s/%s", c->name, c->workloads[k].name);
            const struct bh_bench_target t = {f, c, &c->workloads[k], name};
            if (!bh_bench_labels_match(r->labels, c, t.workload) ||
                regexec(&r->regex, name, 0, NULL, 0) != 0)
                continue;
            r->n_chosen++;
            if (r->list)
                puts(name);
            else if (r->rounds)
                run_rounds(r, &t);
            else
                run_one(r, &t);
        }
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* Upstream's name: local time with a literal Z. */
static int write_items(const struct run *r, const char *topic, const struct bh_buf *json)
{
    time_t now = time(NULL);
    struct tm tm;
    char stamp[40];

    localtime_r(&now, &tm);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &tm);
    BH_CLEANUP(bh_freep)
    char *path = bh_asprintf("%s/" NAME_IN_TEMPLATE "_%s_%s.json", r->items_dir, topic, stamp);
    if (mkdir(r->items_dir, 0750) < 0 && errno != EEXIST) {
        fprintf(stderr, "berth bench perf: %s: %s\n", r->items_dir, strerror(errno));
        return BH_EXIT_FAIL;
    }
    int rc = bh_write_file(path, json->p, json->n, 0644);
    if (rc < 0)
        fprintf(stderr, "berth bench perf: %s: %s\n", path, strerror(-rc));
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}

/* One file of data items per file of workloads, as upstream has one per topic. */
static int run_all(struct run *r)
{
    int status = BH_EXIT_OK;

    for (size_t i = 0; i < r->n_files; i++) {
        size_t from = r->report.n_items;
        run_file(r, r->files[i]);
        if (!r->items_dir || r->report.n_items == from)
            continue;
        struct bh_bench_report part = r->report;
        struct bh_buf json BH_CLEANUP(bh_buf_fini) = {0};
        part.items += from;
        part.n_items -= from;
        bh_bench_write_json(&part, &json);
        int rc = write_items(r, r->files[i]->topic, &json);
        status = BH_MAX(status, rc);
    }
    return status;
}

static int finish(struct run *r, int status)
{
    struct bh_buf out = {0};

    if (r->list)
        return bh_cli_print(WHO, &out);
    if (!r->n_chosen) {
        fprintf(stderr, "%s: no workload matches --labels \"%s\"%s%s\n", WHO, r->labels,
                r->name ? " and --name " : "", r->name ? r->name : "");
        return BH_EXIT_FAIL;
    }
    if (bh_streq(r->output, "json"))
        bh_bench_write_json(&r->report, &out);
    else
        bh_bench_write_table(&r->report, r->o.driver == &bh_bench_pipeline_driver,
                             bh_streq(r->output, "wide"), &out);
    if (r->sides.n && !bh_streq(r->output, "json"))
        bh_buf_addf(&out, "\n%s", r->sides.p);
    if (bh_cli_print(WHO, &out) != BH_EXIT_OK)
        status = BH_EXIT_FAIL;
    for (size_t i = 0; i < r->report.n_notes; i++) {
        const struct bh_bench_note *n = &r->report.notes[i];
        fprintf(stderr, n->n > 1 ? "note: %s (%s and %u more)\n" : "note: %s (%s)\n", n->text,
                n->first, n->n - 1);
    }
    if (r->stopped)
        fprintf(stderr, "%s: stopped\n", WHO);
    return r->stopped || r->report.n_failed || r->report.n_missed ? BH_EXIT_FAIL : status;
}

/* ---- command line ---------------------------------------------------------------------------- */

/* A flag without effect is a mistake: the help of a flag of one mode begins with the mode. */
static int check_mode(struct run *r, const struct bh_opt *table, const bool *given,
                      struct bh_err *err)
{
    static const struct bh_bench_driver *const modes[] = {&bh_bench_engine_driver,
                                                          &bh_bench_pipeline_driver};

    for (size_t k = 0; k < BH_ARRAY_LEN(modes); k++)
        if (bh_streq(r->mode, modes[k]->name))
            r->o.driver = modes[k];
    for (size_t i = 0; table[i].name; i++) {
        for (size_t k = 0; given[i] && k < BH_ARRAY_LEN(modes); k++) {
            size_t n = strlen(modes[k]->name);
            if (modes[k] != r->o.driver && strncmp(table[i].help, modes[k]->name, n) == 0 &&
                table[i].help[n] == ':')
                return bh_err_set(err, -EINVAL, "--%s is of --mode %s and has no effect in %s",
                                  table[i].name, modes[k]->name, r->mode);
        }
    }
    return 0;
}

static int check_flags(struct run *r, struct bh_err *err)
{
    if (r->o.binders < 1 || r->o.binders > 32)
        return bh_err_set(err, -EINVAL, "invalid value for --binders: 1 to 32");
    if (!(r->o.pace >= 1) || r->o.pace > 1e6)
        return bh_err_set(err, -EINVAL, "invalid value for --pace: from 1 to 1000000");
    if (r->o.limit_ns <= 0)
        return bh_err_set(err, -EINVAL, "invalid value for --time-limit: must be > 0");
    if (r->rounds < 0 || r->rounds > MAX_ROUNDS)
        return bh_err_set(err, -EINVAL, "invalid value for --rounds: 1 to %d", MAX_ROUNDS);
    if (r->rounds && bh_streq(r->o.record, "off"))
        return bh_err_set(err, -EINVAL,
                          "--rounds needs --record-decisions: what to compare with off");
    r->record = r->o.record;
    r->o.tie_break = bh_streq(r->tie_break, "first") ? BH_TIE_FIRST : BH_TIE_RANDOM;
    r->o.seed = (uint64_t)r->seed;
    r->o.cpu = bh_streq(r->clock, "cpu");
    char text[128];
    int rc = regcomp(&r->regex, r->name ? r->name : ".", REG_EXTENDED | REG_NOSUB);
    if (rc == 0)
        return 0;
    regerror(rc, &r->regex, text, sizeof text);
    return bh_err_set(err, -EINVAL, "invalid value \"%s\" for --name: %s", r->name, text);
}

static int measure(struct run *r, const struct bh_opt_list *paths)
{
    struct bh_err err = {0};
    int status, rc = 0;

    bh_progress_init(&r->progress);
    r->files = bh_calloc(paths->n, sizeof(*r->files));
    for (size_t i = 0; i < paths->n && rc >= 0; i++) {
        rc = bh_bench_load(paths->v[i], &r->files[i], &err);
        r->n_files += rc >= 0;
    }
    if (rc < 0)
        status = bh_cli_fail(WHO, &err);
    else
        status = finish(r, run_all(r));
    for (size_t i = 0; i < r->n_files; i++)
        bh_bench_file_free(r->files[i]);
    free(r->files);
    bh_bench_report_fini(&r->report);
    bh_buf_fini(&r->sides);
    return status;
}

static void tell_plugin(const char *line)
{
    fprintf(stderr, "plugin %s\n", line);
}

int bh_bench_perf(int argc, char **argv)
{
    struct run r = {
        .o = {.pace = 150, .binders = 2, .record = "off", .limit_ns = INT64_C(300) * 1000000000},
        .labels = "performance",
        .mode = "engine",
        .output = "table",
        .tie_break = "random",
        .clock = "wall"};
    const struct bh_opt table[] = {
        {"name", 0, BH_OPT_STR, &r.name, "REGEX", "only workloads whose TESTCASE/WORKLOAD matches"},
        {"labels", 0, BH_OPT_STR, &r.labels, "FILTER",
         "upstream's filter: x or +x has to be there, -x must not, commas between; '' = all"},
        {"list", 0, BH_OPT_BOOL, &r.list, NULL, "print the names of the workloads, run nothing"},
        {"mode", 0, BH_OPT_CHOICE, &r.mode, "engine|pipeline", "what is measured"},
        {"binders", 0, BH_OPT_INT, &r.o.binders, "N", "pipeline: how many (1 to 32)"},
        {"record-decisions", 0, BH_OPT_CHOICE, &r.o.record, "auto|full|summary|off",
         "pipeline: what the scheduler keeps of every decision meanwhile"},
        {"rounds", 0, BH_OPT_INT, &r.rounds, "N",
         "pipeline: each workload N times without and with --record-decisions, in turn; the "
         "scheduler's CPU side by side"},
        {"config", 0, BH_OPT_STR, &r.o.config, "FILE",
         "scheduler configuration where a test case names none"},
        {"pace", 0, BH_OPT_FLOAT, &r.o.pace, "PODS",
         "engine: attempts in a second of made-up time"},
        {"time-limit", 0, BH_OPT_DURATION_NS, &r.o.limit_ns, "DURATION",
         "real time that one workload's operations may take"},
        {"tie-break", 0, BH_OPT_CHOICE, &r.tie_break, "random|first",
         "engine: among nodes of equal score"},
        {"seed", 0, BH_OPT_INT, &r.seed, "N", "engine: of random ties"},
        {"clock", 0, BH_OPT_CHOICE, &r.clock, "wall|cpu",
         "engine: what decisions are timed by; cpu (of the process) for a machine that is busy"},
        {"verify", 0, BH_OPT_BOOL, &r.o.verify, NULL,
         "engine: decide on both paths and stop at a difference (times mean nothing then)"},
        {"output", 'o', BH_OPT_CHOICE, &r.output, "table|wide|json",
         "table, with each process's memory, or upstream's data items"},
        {"data-items-dir", 0, BH_OPT_STR, &r.items_dir, "DIR",
         "also write the data items of each FILE there, named as upstream names them"},
        {0}};
    bool given[BH_ARRAY_LEN(table)] = {false};
    struct bh_opt_list paths BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse_given(table, bh_cli_help(WHO), argc, argv, &paths, given, &err), status;

    if (rc == 0 && !paths.n)
        rc = bh_err_set(&err, -EINVAL, "FILE is missing");
    if (rc == 0)
        rc = check_mode(&r, table, given, &err);
    if (rc == 0)
        rc = check_flags(&r, &err);
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    bh_native_start(&(struct bh_native_options){0}, tell_plugin);
    bh_guest_start();
    status = measure(&r, &paths);
    regfree(&r.regex);
    return status;
}
