/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/plugin.c - `berth plugin`: a plugin of one's own, begun and checked
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/data/yaml.h"
#include "scheduler/explain/grid.h"
#include "scheduler/native/native.h"
#include "simulator/trial/trial.h"

#define CHECK       "berth plugin check"
#define ALL         "berth plugins"
#define NEW         "berth plugin new"
#define ARGS_MAX    ((size_t)1 << 20)
#define REPORT_MAX  ((size_t)1 << 20)
#define ROUNDS      200u  /* of deciding about the made-up cluster, at most */
#define SAMPLES_MAX 2000u /* of calls, an extension point */

/* ---- check ----------------------------------------------------------------------------------- */

/* Nodes that differ, and pods of four templates, the last of which fit nowhere. */
static void add_cluster(struct bh_buf *b)
{
    for (unsigned i = 0; i < 16; i++)
        bh_buf_addf(b,
                    "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-%02u, labels: {zone: "
                    "zone-%u, rank: \"%u\"}}\nspec: {%s}\nstatus: {allocatable: {cpu: \"%u\", "
                    "memory: %uGi, pods: \"110\"}}\n",
                    i, i % 3, i * 7 % 16,
                    i % 5 ? "" : "taints: [{key: kept, value: apart, effect: PreferNoSchedule}]",
                    4 + i % 4 * 4, 8 + i % 5 * 8);
    for (unsigned i = 0; i < 64; i++)
        bh_buf_addf(b,
                    "---\napiVersion: v1\nkind: Pod\nmetadata: {name: pod-%02u, labels: {app: "
                    "app-%u}}\nspec: {containers: [{name: c, image: i, resources: {requests: "
                    "{cpu: %um, memory: %uMi}}}]}\n",
                    i, i % 4, i >= 60 ? 99000 : 100 + i % 4 * 300, 64 + i % 4 * 512);
}

/* A profile with the plugin at every point that it has. args NULL: without any. */
static struct bh_json *config_with(struct bh_arena *a, const char *plugin,
                                   const struct bh_json *args)
{
    struct bh_json *c =
        bh_json_make(a,
                     "apiVersion: kubescheduler.config.k8s.io/v1, kind: "
                     "KubeSchedulerConfiguration, profiles: [{plugins: {multiPoint: "
                     "{enabled: [{name: %s}]}}}]",
                     plugin);
    const struct bh_plugin *p = bh_plugin_find(plugin);
    if (p && p->less) /* there is one QueueSort: not PrioritySort then */
        bh_json_add(a, bh_json_get(bh_json_at(bh_json_get(c, "profiles"), 0), "plugins"),
                    "queueSort: {enabled: [{name: %s}], disabled: [{name: '*'}]}", plugin);
    if (args)
        bh_json_add(a, bh_json_at(bh_json_get(c, "profiles"), 0),
                    "pluginConfig: [{name: %s, args: %p}]", plugin, bh_json_clone(a, args));
    return c;
}

/* What the plugin's calls took, by extension point. */
struct timing {
    const char *plugin;
    struct {
        uint64_t ns[SAMPLES_MAX];
        uint32_t n;
    } at[BH_SEEN_COUNT];
};

static void on_plugin(void *arg, const char *plugin, enum bh_seen_point at,
                      enum bh_code code BH_UNUSED, uint64_t ns)
{
    struct timing *t = arg;

    if (bh_streq(plugin, t->plugin) && t->at[at].n < SAMPLES_MAX)
        t->at[at].ns[t->at[at].n++] = ns;
}
static void on_point(void *arg BH_UNUSED, uint32_t profile BH_UNUSED,
                     enum bh_seen_point at BH_UNUSED, enum bh_code code BH_UNUSED,
                     uint64_t ns BH_UNUSED)
{
}
static void on_fast(void *arg BH_UNUSED, uint32_t profile BH_UNUSED,
                    const uint64_t ns[static 3] BH_UNUSED)
{
}

static int by_value(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

    return (a > b) - (a < b);
}

static void print_timing(struct timing *t)
{
    bool any = false;

    for (unsigned at = 0; at < BH_SEEN_COUNT; at++) {
        const uint32_t n = t->at[at].n;
        if (!n)
            continue;
        qsort(t->at[at].ns, n, sizeof t->at[at].ns[0], by_value);
        printf("%s %s %" PRIu64 " ns (%" PRIu64 " at most)", any ? "," : "a call    ",
               bh_seen_point_name((enum bh_seen_point)at), t->at[at].ns[n / 2],
               t->at[at].ns[n - 1]);
        any = true;
    }
    printf(any ? "\n" : "");
}

static void add_decision(const struct bh_trial *t, const struct bh_trial_pod *p, struct bh_buf *b)
{
    bh_buf_addf(b, "%s on %s%s%s\n", bh_trial_pod_name(p),
                p->node ? bh_sym_text(bh_engine_symtab(t->w.engine), p->node) : "no node",
                p->message ? ": " : "", p->message ? p->message : "");
}

/* All pods of the made-up cluster on both paths of the engine, in this process; *of: what became
 * of them; report: of each, NULL: not asked for. */
static int decide(const struct bh_trial_options *o, const char *file, struct bh_trial_summary *of,
                  struct bh_buf *report, struct bh_err *err)
{
    struct bh_trial *t = NULL;
    int rc = bh_trial_new(o, &t, err);

    if (rc >= 0 && t)
        rc = bh_trial_load(t, &file, 1, err);
    if (rc >= 0 && t) {
        bh_trial_run(t);
        *of = bh_trial_summarize(t);
        for (size_t i = 0; i < t->n_list && of->failed; i++)
            if (t->list[i]->result == BH_TRIAL_ERROR && rc >= 0)
                rc = bh_err_set(err, -EINVAL, "%s", t->list[i]->message);
        for (size_t i = 0; report && i < t->n_list; i++)
            add_decision(t, t->list[i], report);
    }
    bh_trial_free(t);
    return rc < 0 ? rc : 0;
}

/* The same again and again, until a round leaves nothing behind: who keeps memory of every one, leaks.
 * Some of our own grow at first: glibc's regular expressions remember what they saw. */
static int look_for_leaks(const struct bh_trial_options *o, const char *file, struct bh_err *err)
{
    struct bh_trial_summary s;
    size_t least = SIZE_MAX, before = mallinfo2().uordblks;

    for (unsigned i = 0; i < ROUNDS && least; i++) {
        int rc = decide(o, file, &s, NULL, err);
        if (rc < 0)
            return rc;
        const size_t now = mallinfo2().uordblks;
        least = BH_MIN(least, now > before ? now - before : 0);
        before = now;
    }
    if (least)
        return bh_err_set(err, -ENOMEM,
                          "it does not free what it allocates: %zu bytes more after each 64 pods, "
                          "from create() to destroy()",
                          least);
    printf("memory     is freed\n");
    return 0;
}

static void print_plugin(const struct bh_plugin *p)
{
    static const struct {
        uint32_t flag;
        const char *text;
    } kept[] = {{BH_PLUGIN_READS_NODE, "until the node's object changes"},
                {BH_PLUGIN_NODE_LOCAL, "until the node or its pods change"},
                {BH_PLUGIN_OVERLAY, "by nobody, but asked for all nodes at once (normalize)"},
                {0, "by nobody: every node is asked for every pod (reads)"}};
    unsigned k = 0;

    printf("plugin     %s:", p->name);
    for (enum bh_point at = 0; at < BH_POINT_COUNT; at++)
        if (bh_plugin_points(p) & BH_POINT_BIT(at))
            printf(" %s", bh_sched_point_name(at));
    printf("%s%s\n", p->filter_rows ? " (filter_rows)" : "",
           p->score_rows && !p->scores_alone ? " (score_rows)" : "");
    while (kept[k].flag && !(p->flags & kept[k].flag))
        k++;
    if (p->filter || p->score || p->pre_filter || p->pre_score)
        printf("answers    are kept %s%s\n", kept[k].text,
               kept[k].flag ? p->kinds ? ", or an object that it reads" : ""
               : p->idle    ? ", but for pods about which it has no say (idle)"
                            : "");
    for (uint64_t kinds = p->kinds; kinds; kinds &= kinds - 1)
        printf("reads      %s\n", bh_kind_of((unsigned)__builtin_ctzll(kinds))->event_resource);
}

/* A plugin of a file: here, or in a process of its own. */
struct attempt {
    const char *name, *file;
    const struct bh_json *args;
    bool apart;
    int decided; /* a file: what was decided here, for the other one to compare with */
};

static int try_here(const struct attempt *y, const struct bh_trial_options *o, const char *cluster,
                    struct bh_err *err)
{
    struct bh_buf report BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_trial_summary s = {0};
    const struct bh_plugin *p = bh_plugin_find(y->name);

    if (!p)
        return -EINVAL; /* told already */
    print_plugin(p);
    int rc = decide(o, cluster, &s, &report, err);
    if (rc >= 0 || s.failed)
        printf("decided    64 pods on 16 nodes, both paths agree: %u placed, %u unschedulable, %u "
               "gated, %u failed\n",
               s.scheduled, s.unschedulable, s.gated, s.failed);
    if (rc >= 0 && write(y->decided, report.p, report.n) != (ssize_t)report.n)
        rc = bh_err_set(err, -EIO, "what was decided could not be kept: %s", strerror(errno));
    return rc < 0 ? rc : look_for_leaks(o, cluster, err);
}

/* The first line that is another one. */
static int compare(const char *here, const char *there, struct bh_err *err)
{
    size_t n = 0, m = 0;

    for (; *here && *there; here += n + (here[n] == '\n'), there += m + (there[m] == '\n')) {
        n = strcspn(here, "\n");
        m = strcspn(there, "\n");
        if (n != m || memcmp(here, there, n) != 0)
            break;
    }
    n = strcspn(here, "\n");
    m = strcspn(there, "\n");
    return *here || *there ? bh_err_set(err, -EINVAL,
                                        "in a process of its own it decides otherwise: \"%.*s\" "
                                        "here is \"%.*s\" there",
                                        (int)BH_MIN(n, 200), here, (int)BH_MIN(m, 200), there)
                           : 0;
}

static int try_apart(const struct attempt *y, const struct bh_trial_options *o, const char *cluster,
                     struct bh_err *err)
{
    struct bh_buf report BH_CLEANUP(bh_buf_fini) = {0};
    char path[32];
    BH_CLEANUP(bh_freep) char *here = NULL;
    size_t n = 0;
    struct bh_native_file f;
    struct bh_trial_summary s;
    int rc = bh_native_use(y->file, true, &f, err);

    if (rc >= 0 && !bh_plugin_find(y->name))
        return -EINVAL; /* told already */
    rc = rc < 0 ? rc : decide(o, cluster, &s, &report, err);
    if (rc < 0)
        return bh_err_prefix(err, rc, "in a process of its own");
    snprintf(path, sizeof path, "/proc/self/fd/%d", y->decided);
    rc = bh_read_file(path, REPORT_MAX, &here, &n);
    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    rc = compare(here, bh_buf_str(&report), err);
    if (rc >= 0)
        printf("apart      decides the same in a process of its own\n");
    return rc;
}

static int try_plugin(const struct attempt *y, struct bh_err *err)
{
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_buf cluster BH_CLEANUP(bh_buf_fini) = {0};
    BH_CLEANUP(bh_freep) struct timing *timing = bh_calloc(1, sizeof *timing);
    char path[] = "/tmp/berth-plugin-XXXXXX";
    const struct bh_engine_observer observer = {.now_ns = bh_mono_ns,
                                                .point = on_point,
                                                .fast = on_fast,
                                                .plugin = on_plugin,
                                                .arg = timing};
    const struct bh_trial_options o = {.config_object = config_with(&a, y->name, y->args),
                                       .tie_break = BH_TIE_FIRST,
                                       .verify = true,
                                       .now_ns = bh_wall_ns(),
                                       .observer = &observer};
    int fd = mkstemp(path);

    if (fd < 0)
        return bh_err_set(err, -errno, "%s: %s", path, strerror(errno));
    add_cluster(&cluster);
    timing->plugin = y->name;
    int rc = bh_write_file(path, cluster.p, cluster.n, 0600);
    rc = rc < 0     ? bh_err_set(err, rc, "%s: %s", path, strerror(-rc))
         : y->apart ? try_apart(y, &o, path, err)
                    : try_here(y, &o, path, err);
    if (rc >= 0)
        print_timing(timing);
    unlink(path);
    close(fd);
    return rc < 0 ? rc : 0;
}

/* What the plugin does wrong may end the process: that of a child. This one has looked none up, because
 * what a look-up has answered stays. */
static int try_in_child(const struct attempt *y)
{
    struct bh_err err = {0};
    int status = 0;

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int rc = try_plugin(y, &err);
        fflush(stdout);
        if (rc < 0 && *err.msg)
            fprintf(stderr, CHECK ": %s\n", err.msg);
        _exit(rc < 0);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0)
        fprintf(stderr, CHECK ": %s\n", strerror(errno));
    else if (WIFSIGNALED(status))
        fprintf(stderr, CHECK ": plugin \"%s\" ended the process: %s\n", y->name,
                strsignal(WTERMSIG(status)));
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? BH_EXIT_OK : BH_EXIT_FAIL;
}

/* Here, then, if apart, the same in a process of its own. */
static int try_all(const char *name, const char *file, const struct bh_json *args, bool apart)
{
    struct attempt y = {
        .name = name, .file = file, .args = args, .decided = memfd_create("decided", 0)};
    int code = BH_EXIT_FAIL;

    if (y.decided < 0) {
        fprintf(stderr, CHECK ": %s\n", strerror(errno));
        return code;
    }
    code = try_in_child(&y);
    y.apart = true;
    if (code == BH_EXIT_OK && apart)
        code = try_in_child(&y);
    close(y.decided);
    return code;
}

static int read_args(const char *path, struct bh_arena *a, struct bh_json **ret, struct bh_err *err)
{
    struct bh_buf text BH_CLEANUP(bh_buf_fini) = {0};

    if (bh_cli_read(path, ARGS_MAX, &text) < 0)
        return bh_err_set(err, -EINVAL, "%s: %s", path, strerror(errno));
    int rc = bh_yaml_parse(a, text.p, text.n, BH_JSON_STRICT, ret, err);
    return rc < 0 ? bh_err_prefix(err, rc, "%s", path) : 0;
}

static int examine(int argc, char **argv)
{
    const char *args_file = NULL, *mode = "inProcess";
    const struct bh_opt table[] = {
        {"args", 0, BH_OPT_STR, &args_file, "FILE",
         "the plugin's arguments, as pluginConfig has them"},
        {"mode", 0, BH_OPT_CHOICE, &mode, "inProcess|process",
         "process: decide about the same pods with the plugin in a process of its own, too"},
        {0},
    };
    struct bh_opt_list paths BH_CLEANUP(bh_opt_list_fini) = {0};
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_json *args = NULL;
    struct bh_native_file f;
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(CHECK), argc, argv, &paths, &err);

    if (rc == 0 && paths.n != 1)
        rc = bh_err_set(&err, -EINVAL, "one FILE is needed");
    if (rc != 0)
        return bh_cli_usage(CHECK, rc, &err);
    if ((args_file && read_args(args_file, &a, &args, &err) < 0) ||
        bh_native_use(paths.v[0], false, &f, &err) < 0)
        return bh_cli_fail(CHECK, &err);
    printf("file       %s\nsha256     %s\nversion    %s\nlicense    %s\nABI        %u.%u\n", f.file,
           f.sha256, f.version, f.license, f.major, f.minor);
    int code = BH_EXIT_OK;
    for (const char *s = f.names; *s && code == BH_EXIT_OK;) {
        size_t n = strcspn(s, " ");
        const char *name = bh_arena_strndup(&a, s, n);
        s += n + (s[n] == ' ');
        code = try_all(name, paths.v[0], args, bh_streq(mode, "process"));
    }
    return code;
}

/* ---- what the running scheduler has ---------------------------------------------------------- */

/* Adds to p what the plugin said of its measurements: when, and of how many nodes. */
static bool add_measured(struct bh_arena *a, const char *dir, struct bh_json *p)
{
    BH_CLEANUP(bh_freep)
    char *path = bh_asprintf("%s/" BH_NATIVE_MEASURED ".%s", dir, bh_json_get_str(p, "name"));
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n = 0;
    int64_t at_ns;
    uint32_t nodes;

    if (bh_read_file(path, 64, &text, &n) < 0 ||
        sscanf(text, "%" SCNd64 " %" SCNu32, &at_ns, &nodes) != 2)
        return false;
    bh_json_add(a, p, "measuredSecondsAgo: %d, measuredNodes: %u",
                (int)((bh_wall_ns() - at_ns) / 1000000000), nodes);
    return true;
}

/* In KiB; 0: it cannot be known. */
static uint64_t resident_of(int pid)
{
    char path[64];
    BH_CLEANUP(bh_freep) char *text = NULL;
    unsigned long pages = 0;
    size_t n = 0;

    snprintf(path, sizeof path, "/proc/%d/statm", pid);
    if (pid <= 0 || bh_read_file(path, 256, &text, &n) < 0 || sscanf(text, "%*u %lu", &pages) != 1)
        return 0;
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* Adds to p what there is to know of the plugin's own process. */
static bool add_process(struct bh_arena *a, const char *dir, struct bh_json *p)
{
    BH_CLEANUP(bh_freep)
    char *path = bh_asprintf("%s/" BH_NATIVE_PROCESS ".%s", dir, bh_json_get_str(p, "name"));
    BH_CLEANUP(bh_freep) char *text = NULL;
    uint64_t starts, calls;
    size_t n = 0;
    int pid;

    if (!bh_streq(bh_json_get_text(p, "mode"), "process"))
        return false;
    if (bh_read_file(path, 96, &text, &n) < 0 ||
        sscanf(text, "%d %" SCNu64 " %" SCNu64, &pid, &starts, &calls) != 3)
        return true;
    bh_json_add(a, p, "process: {pid: %d, starts: %llu, calls: %llu, residentKiB: %llu}", pid,
                (unsigned long long)starts, (unsigned long long)calls,
                (unsigned long long)resident_of(pid));
    return true;
}

static void process_cell(struct bh_grid *g, const struct bh_json *p)
{
    const struct bh_json *x = bh_json_get(p, "process");

    if (!x)
        bh_grid_cell(g, 0, "%s", bh_json_get_text(p, "mode"));
    else if (bh_json_get_i64(x, "pid", 0) <= 0)
        bh_grid_cell(g, BH_CELL_BAD, "not running, %" PRId64 " starts",
                     bh_json_get_i64(x, "starts", 0));
    else
        bh_grid_cell(g, 0, "pid %" PRId64 ", %" PRId64 " KiB, %" PRId64 " calls",
                     bh_json_get_i64(x, "pid", 0), bh_json_get_i64(x, "residentKiB", 0),
                     bh_json_get_i64(x, "calls", 0));
}

/* measured, apart: with a column for it. */
static void plugin_row(struct bh_grid *g, const struct bh_json *p, bool measured, bool apart)
{
    struct bh_buf points BH_CLEANUP(bh_buf_fini) = {0};
    const char *aside = bh_json_get_str(p, "aside");

    bh_text_join(&points, bh_json_get_list(p, "points"), ",");
    bh_grid_members(g, 0, p, "name version");
    bh_grid_cell(g, aside ? BH_CELL_BAD : BH_CELL_GOOD, "%s", aside ? "PutAside" : "Active");
    bh_grid_members(g, 0, p, ">crashes");
    bh_grid_cell(g, 0, "%s", bh_json_get_bool(p, "fast", false) ? "yes" : "no");
    bh_grid_cell(g, 0, "%s", bh_buf_str(&points));
    if (measured && bh_json_get(p, "measuredNodes"))
        bh_grid_cell(g, 0, "%" PRId64 " nodes, %" PRId64 "s ago",
                     bh_json_get_i64(p, "measuredNodes", 0),
                     bh_json_get_i64(p, "measuredSecondsAgo", 0));
    else if (measured)
        bh_grid_cell(g, 0, "-");
    if (apart)
        process_cell(g, p);
    bh_grid_members(g, 0, p, "file");
    bh_grid_row(g);
}

int bh_cmd_plugins(int argc, char **argv)
{
    const char *runtime = NULL, *output = "table";
    const struct bh_opt table[] = {
        {"output", 'o', BH_OPT_CHOICE, &output, "table|json", "form of the output"},
        {"runtime-dir", 0, BH_OPT_STR, &runtime, "DIR", "instance to ask " BH_INSTANCE_DEFAULT},
        {0},
    };
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    struct bh_buf out = {0};
    struct bh_json *v = NULL, *guests = NULL;
    struct bh_err err = {0};
    BH_CLEANUP(bh_freep) char *text = NULL;
    BH_CLEANUP(bh_freep) char *path = NULL;
    char dir[108];
    size_t n = 0;
    int rc = bh_opt_parse(table, bh_cli_help(ALL), argc, argv, NULL, &err);

    if (rc != 0)
        return bh_cli_usage(ALL, rc, &err);
    rc = bh_cli_find_dir(ALL, runtime, dir, &err);
    if (rc >= 0)
        rc = bh_cli_guests(dir, &a, &guests, &err);
    if (rc < 0)
        return bh_cli_fail(ALL, &err);
    path = bh_asprintf("%s/" BH_NATIVE_INVENTORY, dir);
    rc = bh_read_file(path, ARGS_MAX, &text, &n);
    if (rc == -ENOENT && !guests->c.n) {
        fprintf(stderr, "No plugins are loaded: the configuration names built-in ones only.\n");
        return BH_EXIT_OK;
    }
    if (rc == -ENOENT) { /* guests only */
        text = bh_asprintf("{\"pid\":%d,\"plugins\":[]}", (int)getpid());
        n = strlen(text);
        rc = 0;
    }
    rc = rc < 0 ? bh_err_set(&err, rc, "%s: %s", path, strerror(-rc))
                : bh_json_parse(&a, text, n, BH_JSON_STRICT, &v, &err);
    if (rc < 0)
        return bh_cli_fail(ALL, &err);
    if (kill((pid_t)bh_json_get_i64(v, "pid", 0), 0) < 0 && errno == ESRCH)
        fprintf(stderr, ALL ": the scheduler that loaded these is not running\n");
    bool measured = false, apart = false;
    for (struct bh_json *p = bh_json_first(bh_json_get(v, "plugins")); p; p = p->next) {
        measured |= add_measured(&a, dir, p);
        apart |= add_process(&a, dir, p);
    }
    if (bh_streq(output, "json")) {
        bh_json_set(&a, v, "guests", guests);
        bh_json_write_pretty(&out, v);
        bh_buf_addc(&out, '\n');
    } else if (bh_json_get(v, "plugins")->c.n) {
        const char *more[3] = {NULL};
        unsigned k = 0;
        if (measured)
            more[k++] = "MEASURED";
        if (apart)
            more[k++] = "PROCESS";
        more[k] = "FILE";
        bh_grid_heading(&g, 0, "NAME", "VERSION", "STATE", ">CRASHES", "FAST", "POINTS", more[0],
                        more[1], more[2], NULL);
        bh_json_each(p, bh_json_get(v, "plugins"))
            plugin_row(&g, p, measured, apart);
        bh_grid_print(&g, &out, 0, bh_colour_wanted(STDOUT_FILENO));
    }
    if (!bh_streq(output, "json"))
        bh_cli_add_guests(&out, guests);
    return bh_cli_print(ALL, &out);
}

/* ---- new ------------------------------------------------------------------------------------- */

#define TEMPLATES "share/berth/plugin" /* beside bin/ */
#define DEV       "the package berth-dev has it"

/* What a plugin begins with: templates, and what they become. The first one is the source. */
static const struct language {
    const char *name, *suffix;
    const char *files[6][2];
    const char *next;
} languages[] = {
    {"c",
     ".c",
     {{"plugin.c.in", NULL},
      {"Makefile.in", "Makefile"},
      {"config.yaml.in", "config.yaml"},
      {"args.yaml", "args.yaml"},
      {"cluster.yaml", "cluster.yaml"}},
     "Makefile, args.yaml, config.yaml and cluster.yaml"},
    {"rust",
     ".rs",
     {{"plugin.rs.in", NULL},
      {"berth.rs", "berth.rs"},
      {"Makefile.in", "Makefile"},
      {"config.yaml.in", "config.yaml"},
      {"args.yaml", "args.yaml"},
      {"cluster.yaml", "cluster.yaml"}},
     "Makefile, args.yaml, config.yaml and cluster.yaml"},
    {"wasm-c",
     ".c",
     {{"guest.c.in", NULL},
      {"guest.Makefile.in", "Makefile"},
      {"guest.config.yaml.in", "config.yaml"},
      {"guest.cluster.yaml", "cluster.yaml"}},
     "Makefile, config.yaml and cluster.yaml"},
    {"wasm-rust",
     ".rs",
     {{"guest.rs.in", NULL},
      {"guest.rs.Makefile.in", "Makefile"},
      {"guest.config.yaml.in", "config.yaml"},
      {"guest.cluster.yaml", "cluster.yaml"}},
     "Makefile, config.yaml and cluster.yaml"},
};

struct target {
    const char *dir, *name;
    char root[PATH_MAX - 64], berth[PATH_MAX]; /* of our installation; this program */
};

/* The template's text with its @WORDS@ replaced. */
static int put_file(const struct target *t, const char *template, const char *file,
                    struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *include = bh_asprintf("%s/include", t->root);
    const struct {
        const char *word, *value;
    } words[] = {{"@NAME@", t->name}, {"@BERTH@", t->berth}, {"@INCLUDE@", include}};
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    BH_CLEANUP(bh_freep) char *from = bh_asprintf("%s/" TEMPLATES "/%s", t->root, template);
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", t->dir, file);
    BH_CLEANUP(bh_freep) char *all = NULL;
    size_t n = 0;
    int rc = bh_read_file(from, ARGS_MAX, &all, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s (" DEV ")", from, strerror(-rc));
    for (const char *text = all; *text;) {
        unsigned i = 0;
        while (i < BH_ARRAY_LEN(words) && strncmp(text, words[i].word, strlen(words[i].word)) != 0)
            i++;
        if (i < BH_ARRAY_LEN(words))
            bh_buf_adds(&b, words[i].value);
        else
            bh_buf_addc(&b, *text);
        text += i < BH_ARRAY_LEN(words) ? strlen(words[i].word) : 1;
    }
    rc = bh_write_file(path, b.p, b.n, 0644);
    return rc < 0 ? bh_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

static bool is_identifier(const char *s)
{
    size_t n = strlen(s);

    return n > 0 && n < 64 &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == n;
}

static int find_ours(struct target *t, struct bh_err *err)
{
    ssize_t n = readlink("/proc/self/exe", t->berth, sizeof t->berth - 1);
    char bin[PATH_MAX] = "";

    if (n < 0)
        return bh_err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
    memcpy(bin, t->berth, (size_t)n);
    snprintf(t->root, sizeof t->root, "%.*s", (int)sizeof t->root - 1, dirname(dirname(bin)));
    BH_CLEANUP(bh_freep) char *header = bh_asprintf("%s/include/berth/plugin.h", t->root);
    if (access(header, R_OK) < 0)
        return bh_err_set(err, -errno, "%s: %s (" DEV ")", header, strerror(errno));
    return 0;
}

static int begin(int argc, char **argv)
{
    const char *lang = languages[0].name;
    const struct bh_opt table[] = {
        {"lang", 0, BH_OPT_CHOICE, &lang, "c|rust|wasm-c|wasm-rust",
         "what it is written in; wasm-c, wasm-rust: a WebAssembly guest (docs/wasm.md)"},
        {0}};
    const struct language *l = languages;
    struct bh_opt_list rest BH_CLEANUP(bh_opt_list_fini) = {0};
    struct target t = {0};
    struct bh_err err = {0};
    int rc = bh_opt_parse(table, bh_cli_help(NEW), argc, argv, &rest, &err);

    if (rc == 0 && rest.n != 1)
        rc = bh_err_set(&err, -EINVAL, "one NAME is needed");
    else if (rc == 0 && !is_identifier(rest.v[0]))
        rc =
            bh_err_set(&err, -EINVAL, "invalid NAME \"%s\": 1 to 63 letters and digits", rest.v[0]);
    if (rc != 0)
        return bh_cli_usage(NEW, rc, &err);
    while (!bh_streq(l->name, lang))
        l++;
    t.dir = t.name = rest.v[0];
    BH_CLEANUP(bh_freep) char *source = bh_asprintf("%s%s", t.name, l->suffix);
    rc = find_ours(&t, &err);
    if (rc == 0 && mkdir(t.dir, 0755) < 0)
        rc = bh_err_set(&err, -errno, "folder %s: %s", t.dir, strerror(errno));
    for (size_t i = 0; i < BH_ARRAY_LEN(l->files) && *l->files[i] && rc == 0; i++)
        rc = put_file(&t, l->files[i][0], i ? l->files[i][1] : source, &err);
    if (rc < 0)
        return bh_cli_fail(NEW, &err);
    printf("%s/%s, %s are there. Next:\n  cd %s && make check\n", t.dir, source, l->next, t.dir);
    return BH_EXIT_OK;
}

int bh_cmd_plugin(int argc, char **argv)
{
    static const struct bh_cli_command commands[] = {
        {"new", begin, "begin a plugin: a folder with source, Makefile and configuration"},
        {"check", examine, "look at a plugin's file, load it, try it on a made-up cluster"},
    };

    return bh_cli_dispatch("berth plugin", "scheduling plugins of your own (docs/plugins.md)",
                           commands, BH_ARRAY_LEN(commands), argc, argv);
}
