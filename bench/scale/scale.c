/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/scale.c - `berth bench scale`: the command, and the two processes of each size
 */
#include "bench/scale/scale.h"
#include "common/base/trusted_file.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHO "berth bench scale"

struct run {
    struct bh_scale_options o;
    struct bh_opt_list sizes;
    int64_t templates, decisions, pods_per_node, zones, seed;
    const char *output, *clock, *tie_break, *plot, *report;
    struct bh_scale_result *results;
    uint32_t n_results;
    struct bh_progress progress;
};

/* ---- one size -------------------------------------------------------------------------------- */

typedef int part_fn(const struct bh_scale_options *o, uint32_t nodes, const char *runtime_dir,
                    int out, int peer);
struct child {
    pid_t pid;
    int out; /* its result comes here */
};

static void on_signal(int sig)
{
    (void)sig;
    bh_scale_stopped = 1;
}

static int complain(const char *what)
{
    int rc = -errno;

    if (!bh_scale_stopped)
        fprintf(stderr, "%s: %s: %s\n", WHO, what, strerror(-rc));
    return rc;
}

/* theirs, ours: ends of the socket between the two parts. An error is told. */
static int start(struct child *c, part_fn *fn, const struct run *r, uint32_t nodes,
                 const char *runtime_dir, int theirs, int ours)
{
    int fd[2];

    if (pipe(fd) < 0)
        return complain("pipe");
    fflush(stdout);
    c->pid = fork();
    if (c->pid == 0) {
        close(fd[0]);
        if (ours >= 0)
            close(ours);
        signal(SIGPIPE, SIG_IGN);
        if (fn == bh_scale_decide) /* it has nothing to clean up */
            signal(SIGTERM, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        /* Not _exit(): a coverage build writes its counters. */
        exit(fn(&r->o, nodes, runtime_dir, fd[1], theirs));
    }
    int rc = c->pid < 0 ? complain("fork") : 0;
    close(fd[1]);
    c->out = fd[0];
    return rc;
}

/* 0, or -EIO: it has said why. */
static int finish(struct child *c)
{
    int status = 0;

    if (c->out >= 0)
        close(c->out);
    if (c->pid > 0 && bh_scale_stopped)
        kill(c->pid, SIGTERM);
    while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (c->pid > 0 && WIFSIGNALED(status) && !bh_scale_stopped)
        fprintf(stderr, "%s: a process died of signal %d (%s)\n", WHO, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    return c->pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == BH_EXIT_OK ? 0 : -EIO;
}

static void say(struct run *r, uint32_t i, unsigned step, const char *what)
{
    bh_progress_draw(&r->progress, 2 * i + step, 2 * r->o.n_sizes, "%u nodes: %s", r->o.nodes[i],
                     what);
}

static int both(struct run *r, uint32_t i, const char *runtime_dir, struct bh_scale_result *ret)
{
    struct child w = {.out = -1}, s = {.out = -1};
    int pair[2], rc;

    ret->nodes = r->o.nodes[i];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return complain("socketpair");
    say(r, i, 0, "building the snapshot");
    rc = start(&w, bh_scale_watch, r, ret->nodes, runtime_dir, pair[0], pair[1]);
    close(pair[0]);
    if (rc == 0 && !bh_scale_read(w.out, &ret->w, sizeof(ret->w)))
        rc = -EIO;
    say(r, i, 1, "deciding");
    if (rc == 0)
        rc = start(&s, bh_scale_decide, r, ret->nodes, runtime_dir, pair[1], -1);
    close(pair[1]);
    if (rc == 0 && !bh_scale_read(s.out, &ret->s, sizeof(ret->s)))
        rc = -EIO;
    int rc_s = finish(&s), rc_w = finish(&w);
    return rc < 0 ? rc : BH_MIN(rc_s, rc_w);
}

static int run_all(struct run *r)
{
    const char *base = getenv("TMPDIR");
    char dir[PATH_MAX];
    int rc = 0;

    snprintf(dir, sizeof(dir), "%s/berth-scale-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(dir)) {
        fprintf(stderr, "%s: %s: %s\n", WHO, dir, strerror(errno));
        return -errno;
    }
    r->results = bh_calloc(r->o.n_sizes, sizeof(*r->results));
    for (uint32_t i = 0; i < r->o.n_sizes && rc == 0; i++) {
        rc = both(r, i, dir, &r->results[i]);
        r->n_results += rc == 0;
    }
    bh_progress_end(&r->progress);
    if (bh_scale_stopped)
        fprintf(stderr, "%s: stopped\n", WHO);
    bh_remove_tree(dir);
    return rc;
}

/* ---- results --------------------------------------------------------------------------------- */

static int write_plots(const struct run *r, const char *path, bool html)
{
    struct bh_buf out BH_CLEANUP(bh_buf_fini) = {0};

    if (!path)
        return 0;
    bh_scale_plots(&r->o, r->results, r->n_results, html, &out);
    int rc = bh_write_file(path, out.p, out.n, 0644);
    if (rc < 0)
        fprintf(stderr, "%s: %s: %s\n", WHO, path, strerror(-rc));
    return rc;
}

static int print(const struct run *r)
{
    struct bh_buf out = {0};

    if (bh_streq(r->output, "json"))
        bh_scale_json(&r->o, r->results, r->n_results, &out);
    else
        bh_scale_table(&r->o, r->results, r->n_results, &out);
    if (bh_cli_print(WHO, &out) != BH_EXIT_OK)
        return -EIO;
    int rc = write_plots(r, r->plot, false), rc_page = write_plots(r, r->report, true);
    return BH_MIN(rc, rc_page);
}

/* ---- command line ---------------------------------------------------------------------------- */

static int check_sizes(struct run *r, struct bh_err *err)
{
    if (r->sizes.n > BH_SCALE_SIZES_MAX)
        return bh_err_set(err, -EINVAL, "invalid value for --nodes: at most %u sizes",
                          BH_SCALE_SIZES_MAX);
    for (size_t i = 0; i < r->sizes.n; i++) {
        char *end;
        errno = 0;
        long long v = strtoll(r->sizes.v[i], &end, 10);
        if (end == r->sizes.v[i] || *end || errno || v < 1 || v > 4000000)
            return bh_err_set(err, -EINVAL,
                              "invalid value \"%s\" for --nodes: numbers from 1 to 4000000",
                              r->sizes.v[i]);
        if (i && v <= r->o.nodes[i - 1])
            return bh_err_set(err, -EINVAL, "invalid value for --nodes: must rise");
        r->o.nodes[r->o.n_sizes++] = (uint32_t)v;
    }
    return r->o.n_sizes ? 0 : bh_err_set(err, -EINVAL, "invalid value for --nodes: empty");
}

static int check_flags(struct run *r, struct bh_err *err)
{
    const struct {
        const char *flag;
        long long v, min, max;
        uint32_t *ret;
    } numbers[] = {{"templates", r->templates, 1, 10000, &r->o.templates},
                   {"decisions", r->decisions, 1, 50000000, &r->o.decisions},
                   {"pods-per-node", r->pods_per_node, 0, 100, &r->o.pods_per_node},
                   {"zones", r->zones, 1, 10000, &r->o.zones}};
    int rc = check_sizes(r, err);

    for (size_t i = 0; i < BH_ARRAY_LEN(numbers) && rc == 0; i++) {
        *numbers[i].ret = (uint32_t)numbers[i].v;
        if (numbers[i].v < numbers[i].min || numbers[i].v > numbers[i].max)
            rc = bh_err_set(err, -EINVAL, "invalid value \"%lld\" for --%s: from %lld to %lld",
                            numbers[i].v, numbers[i].flag, numbers[i].min, numbers[i].max);
    }
    bool known = !r->o.only;
    for (unsigned k = 0; k < BH_SCALE_KINDS && !known; k++)
        known = bh_streq(r->o.only, bh_scale_kind_names[k]);
    if (rc == 0 && !known)
        rc = bh_err_set(err, -EINVAL,
                        "invalid value \"%s\" for --only: plain, zone selector, tolerates, "
                        "prefers, zone spread or anti-affinity",
                        r->o.only);
    if (rc < 0)
        return rc;
    if ((uint64_t)r->o.nodes[r->o.n_sizes - 1] * r->o.pods_per_node + r->o.decisions > 99000000)
        return bh_err_set(err, -EINVAL, "more than 99,000,000 pods");
    r->o.cpu = bh_streq(r->clock, "cpu");
    r->o.tie_break = bh_streq(r->tie_break, "first") ? BH_TIE_FIRST : BH_TIE_RANDOM;
    r->o.seed = (uint64_t)r->seed;
    return 0;
}

int bh_bench_scale(int argc, char **argv)
{
    static const char *const sizes[] = {"5000", "50000", "100000"};
    struct run r = {.sizes = {(const char **)(uintptr_t)sizes, BH_ARRAY_LEN(sizes)},
                    .templates = 100,
                    .decisions = 50000,
                    .pods_per_node = 2,
                    .zones = 10,
                    .seed = 1,
                    .output = "table",
                    .clock = "wall",
                    .tie_break = "random"};
    const struct bh_opt table[] = {
        {"nodes", 0, BH_OPT_STRLIST, &r.sizes, "N,...", "sizes of the cluster, rising"},
        {"pods-per-node", 0, BH_OPT_INT, &r.pods_per_node, "N", "that run already"},
        {"templates", 0, BH_OPT_INT, &r.templates, "N", "kinds of pods that differ for plugins"},
        {"only", 0, BH_OPT_STR, &r.o.only, "KIND",
         "plain, zone selector, tolerates, prefers, zone spread or anti-affinity: templates of "
         "this kind alone, instead of 72, 12, 8, 4, 2 and 2 of a hundred"},
        {"zones", 0, BH_OPT_INT, &r.zones, "N", "the nodes are in"},
        {"decisions", 0, BH_OPT_INT, &r.decisions, "N", "that are measured at each size"},
        {"clock", 0, BH_OPT_CHOICE, &r.clock, "wall|cpu",
         "what decisions are timed by; cpu (of the thread) for a machine that is busy"},
        {"tie-break", 0, BH_OPT_CHOICE, &r.tie_break, "random|first", "among nodes of equal score"},
        {"seed", 0, BH_OPT_INT, &r.seed, "N", "of templates and ties"},
        {"verify", 0, BH_OPT_BOOL, &r.o.verify, NULL,
         "decide on both paths of the engine and stop at a difference (times mean nothing then)"},
        {"output", 'o', BH_OPT_CHOICE, &r.output, "table|json", "form of the result"},
        {"plot", 0, BH_OPT_STR, &r.plot, "FILE.svg", "also draw the growth curves"},
        {"report", 0, BH_OPT_STR, &r.report, "FILE.html", "also write a page with both"},
        {0}};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, NULL, &err);

    if (rc == 0)
        rc = check_flags(&r, &err);
    if (rc != 0)
        return bh_cli_usage(WHO, rc, &err);
    bh_progress_init(&r.progress);
    /* No restarting of system calls: a read that waits shall end. */
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal};
    for (size_t i = 0; i < BH_ARRAY_LEN(signals); i++)
        sigaction(signals[i], &sa, NULL);
    rc = run_all(&r);
    if (r.n_results && print(&r) < 0)
        rc = -EIO;
    free(r.results);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
