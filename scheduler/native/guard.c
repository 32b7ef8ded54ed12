/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/guard.c - the next process detects and quarantines plugins that end one
 *
 * <runtime_dir>/scheduler/plugin.mark is mapped: in which plugin's code the process is (struct
 * bh_native_mark). A process that finds one there at its start adds a line to plugin.crashes beside
 * it. Only the scheduler can write that directory (common/base/trusted_file.h). A mark counts if it
 * is of this boot of this host and its plugin's entry is whole; it is read once, from a copy.
 * Without space for the file the mark is in memory: the watchdog works, and the next process learns
 * nothing.
 *
 * Runs in: the thread that loads plugins, under its lock; the watchdog in a thread of its own, which
 *          only reads the mark.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/trusted_file.h"
#include "scheduler/native/process.h"

#define MAGIC      UINT64_C(0x326b72616d687462) /* "bthmark2": the last digit is the layout */
#define MARK       "plugin.mark"                /* in BH_SCHEDULER_DIR, as */
#define CRASH_LOG  "plugin.crashes"
#define CRASHES    3u
#define WITHIN_S   600
#define LINES_MAX  256u
#define FILE_BYTES ((size_t)64 << 10)
#define LOOKS      10u /* of the watchdog within the limit */

struct bh_native_mark *bh_native_mark;

struct crash {
    int64_t at_s;
    char sha256[65], name[65], hook[32];
};
static struct {
    char *dir; /* NULL: not guarded */
    struct crash crash[LINES_MAX];
    uint32_t n;
    int64_t limit_ns;
    bool watched;
    struct bh_native_plugin *of[BH_NATIVE_MARKED];
    uint32_t n_of;
    struct bh_arena arena;
    struct bh_json *inventory;
} guard;

const char *bh_native_hook_name(uint32_t hook)
{
    static const char *const names[BH_HOOKS] = {
        "",         "create",     "PreEnqueue", "hint",  "PreFilter",      "AddPod or RemovePod",
        "Filter",   "PostFilter", "PreScore",   "Score", "NormalizeScore", "epoch",
        "Reserve",  "Permit",     "QueueSort",  "idle",  "PreBind",        "Bind",
        "PostBind", "Unreserve",  "tend",
    };
    return hook < BH_HOOKS ? names[hook] : "?";
}

/* ---- what earlier processes left ------------------------------------------------------------- */

static void add_crash(const struct crash *c)
{
    if (guard.n == LINES_MAX)
        memmove(guard.crash, guard.crash + 1, --guard.n * sizeof *guard.crash);
    guard.crash[guard.n++] = *c;
}

static void read_crashes(const struct bh_trusted_dir *d)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    struct bh_err err = {0};
    size_t n = 0;
    char *rest = NULL;

    int rc = bh_trusted_read(d, CRASH_LOG, FILE_BYTES, geteuid(), &text, &n, &err);
    if (rc < 0 && rc != -ENOENT)
        bh_log_warn("Earlier crashes of plugins are not counted", bh_kv_s("err", err.msg));
    if (rc < 0)
        return;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct crash c = {0};
        if (sscanf(line, "%" SCNd64 " %64[0-9a-f] %64[A-Za-z0-9._-] %31[A-Za-z ]", &c.at_s,
                   c.sha256, c.name, c.hook) == 4)
            add_crash(&c);
    }
}

static void write_crashes(void)
{
    BH_CLEANUP(bh_freep)
    char *path = bh_asprintf("%s/" BH_SCHEDULER_DIR "/" CRASH_LOG, guard.dir);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    for (uint32_t i = 0; i < guard.n; i++)
        bh_buf_addf(&b, "%" PRId64 " %s %s %s\n", guard.crash[i].at_s, guard.crash[i].sha256,
                    guard.crash[i].name, guard.crash[i].hook);
    int rc = bh_write_file(path, b.p, b.n, 0600);
    if (rc < 0)
        bh_log_warn("The crashes of plugins could not be written", bh_kv_s("file", path),
                    bh_kv_s("err", strerror(-rc)));
}

static uint64_t marked_check(const struct bh_native_marked *m)
{
    return bh_hash(m, offsetof(struct bh_native_marked, check), MAGIC);
}

/* Did the process before this one end in a plugin's code? m: a copy. */
static bool take_crash(const struct bh_native_mark *m, uint64_t host_boot)
{
    struct crash c = {.at_s = bh_wall_ns() / 1000000000};

    if (m->magic != MAGIC || m->host_boot != host_boot || m->hook == BH_HOOK_NONE)
        return false;
    if (m->hook >= BH_HOOKS || m->plugin >= BH_NATIVE_MARKED ||
        m->of[m->plugin].check != marked_check(&m->of[m->plugin])) {
        bh_log_warn(
            "The mark of the scheduler before this one is damaged: it counts for no plugin");
        return false;
    }
    snprintf(c.sha256, sizeof c.sha256, "%.64s", m->of[m->plugin].sha256);
    snprintf(c.name, sizeof c.name, "%.63s", m->of[m->plugin].name);
    snprintf(c.hook, sizeof c.hook, "%s", bh_native_hook_name(m->hook));
    add_crash(&c);
    bh_log_error("The scheduler before this one ended in a plugin's code",
                 bh_kv_s("plugin", c.name), bh_kv_s("at", c.hook));
    return true;
}

/* Of a clock that was put back nobody knows how long it was. */
static bool within(int64_t from_s, int64_t to_s)
{
    int64_t s;

    return !__builtin_sub_overflow(to_s, from_s, &s) && s >= 0 && s <= WITHIN_S;
}

/* How many crashes of the file's plugin there were; *ret_aside: three of them within ten minutes. */
static uint32_t crashes_of(const char *name, const char *sha256, bool *ret_aside)
{
    int64_t at[LINES_MAX];
    uint32_t n = 0;

    *ret_aside = false;
    for (uint32_t i = 0; i < guard.n; i++) {
        if (!bh_streq(guard.crash[i].name, name) || !bh_streq(guard.crash[i].sha256, sha256))
            continue;
        at[n++] = guard.crash[i].at_s;
        if (n >= CRASHES && within(at[n - CRASHES], at[n - 1]))
            *ret_aside = true;
    }
    return n;
}

/* The mark of the process before into *former, and the file mapped. Without space (-ENOSPC) the
 * caller uses memory. */
static int map_mark(const struct bh_trusted_dir *d, struct bh_native_mark *former,
                    struct bh_err *err)
{
    bool made, refused;
    int fd = bh_trusted_open_own(d, MARK, 0600, &made, &refused, err);

    if (fd < 0)
        return fd;
    if (pread(fd, former, sizeof *former, 0) != (ssize_t)sizeof *former)
        former->magic = 0;
    int rc = bh_reserve_file(fd, sizeof *former);
    if (rc == 0) {
        void *p = mmap(NULL, sizeof *former, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        rc = p == MAP_FAILED ? -errno : 0;
        bh_native_mark = rc == 0 ? p : NULL;
    }
    close(fd);
    return rc < 0 ? bh_err_set(err, rc, "\"%s/" MARK "\": %s", d->path, strerror(-rc)) : 0;
}

/* A full disk must not keep the scheduler down. */
static int keep_mark_in_memory(struct bh_err *err)
{
    void *p = mmap(NULL, sizeof *bh_native_mark, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return bh_err_set(err, -errno, "memory for the mark of plugins: %s", strerror(errno));
    bh_native_mark = p;
    bh_log_error("No space for the mark of plugins: one that ends this process is not detected by "
                 "the next",
                 bh_kv_s("err", err->msg));
    return 0;
}

int bh_native_guard(const char *runtime_dir, const char *timeout, struct bh_err *err)
{
    struct bh_native_mark former = {.magic = 0};
    struct bh_trusted_dir d;
    uint64_t host_boot = 0;

    if (bh_parse_duration_ns(timeout, &guard.limit_ns) < 0 || guard.limit_ns <= 0)
        return bh_err_set(err, -EINVAL,
                          "invalid value \"%s\" for --plugin-timeout: a duration like 10s",
                          timeout);
    (void)bh_host_boot(&host_boot); /* 0: marks of all boots count */
    guard.n = 0;
    int rc = bh_trusted_dir_open(&d, runtime_dir, BH_SCHEDULER_DIR, err);
    if (rc == 0) {
        rc = map_mark(&d, &former, err);
        read_crashes(&d);
    }
    if (rc == -ENOSPC)
        rc = keep_mark_in_memory(err);
    bh_trusted_dir_close(&d);
    if (rc < 0)
        return rc;
    free(guard.dir);
    guard.dir = bh_strdup(runtime_dir);
    if (take_crash(&former, host_boot))
        write_crashes();
    memset((void *)bh_native_mark, 0, sizeof *bh_native_mark);
    bh_native_mark->host_boot = host_boot;
    bh_native_mark->magic = MAGIC;
    BH_CLEANUP(bh_freep) char *inventory = bh_asprintf("%s/" BH_NATIVE_INVENTORY, runtime_dir);
    (void)unlink(inventory); /* of the one before */
    guard.inventory = bh_json_new(&guard.arena, BH_JSON_ARRAY);
    return 0;
}

/* ---- a callback that does not return --------------------------------------------------------- */

static void *watch(void *arg BH_UNUSED)
{
    const int64_t tick = BH_MAX(guard.limit_ns / LOOKS, INT64_C(1000000));
    const struct timespec ts = {tick / 1000000000, tick % 1000000000};
    uint64_t seen = 0;

    for (unsigned looks = 0;;) {
        nanosleep(&ts, NULL);
        uint64_t calls = bh_native_mark->calls;
        uint32_t hook = bh_native_mark->hook;
        looks = hook != BH_HOOK_NONE && calls == seen ? looks + 1 : 0;
        seen = calls;
        if (looks < LOOKS)
            continue;
        const uint32_t plugin = bh_native_mark->plugin;
        const struct bh_native_plugin *p = plugin < BH_NATIVE_MARKED ? guard.of[plugin] : NULL;
        bh_log_error("A plugin's callback does not return: the scheduler ends, and starts again",
                     bh_kv_s("plugin", p ? p->d.name : "?"),
                     bh_kv_s("at", bh_native_hook_name(hook)));
        abort();
    }
    return NULL;
}

static void start_watch(void)
{
    sigset_t all, before;
    pthread_t t;

    if (guard.watched)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&t, NULL, watch, NULL) == 0)
        pthread_detach(t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    guard.watched = true;
}

/* ---- a plugin comes -------------------------------------------------------------------------- */

/* For `berth plugins`. What cannot be written is told, and nothing else. */
static void write_inventory(const struct bh_native_file *f, struct bh_native_plugin *p,
                            uint32_t crashes)
{
    struct bh_arena *a = &guard.arena;
    struct bh_json *points = bh_json_new(a, BH_JSON_ARRAY), *all;
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/" BH_NATIVE_INVENTORY, guard.dir);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    for (enum bh_point at = 0; at < BH_POINT_COUNT; at++)
        if (bh_plugin_points(&p->d) & BH_POINT_BIT(at))
            bh_json_push(points, bh_json_new_cstr(a, bh_sched_point_name(at)));
    if (p->inventory) /* it has changed */
        bh_json_drop(p->inventory, "crashes aside");
    else
        p->inventory = bh_json_append(
            a, guard.inventory,
            "name: %s, file: %s, version: %s, license: %s, sha256: %s, abi: %s, points: %p, "
            "fast: %i, mode: %s",
            p->d.name, f->file, f->version, f->license, f->sha256,
            bh_arena_printf(a, "%u.%u", f->major, f->minor), points,
            (p->d.flags & (BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_OVERLAY)) != 0,
            p->process ? "process" : "inProcess");
    bh_json_add(a, p->inventory, "crashes: %u, aside?: %s", crashes, p->aside);
    all = bh_json_make(a, "pid: %d, plugins: %p", (int)getpid(), bh_json_clone(a, guard.inventory));
    bh_json_write(&b, all);
    int rc = bh_write_file(path, b.p, b.n, 0640);
    if (rc < 0)
        bh_log_warn("The list of plugins could not be written", bh_kv_s("file", path),
                    bh_kv_s("err", strerror(-rc)));
}

void bh_native_guarded(const struct bh_native_file *f, bool skip, struct bh_native_plugin *p)
{
    bool aside;

    if (!guard.dir || guard.n_of == BH_NATIVE_MARKED)
        return;
    p->index = guard.n_of++;
    guard.of[p->index] = p;
    struct bh_native_marked m = {.check = 0};
    snprintf(m.name, sizeof m.name, "%s", p->d.name);
    snprintf(m.sha256, sizeof m.sha256, "%s", f->sha256);
    m.check = marked_check(&m);
    bh_native_mark->of[p->index] = m;
    uint32_t crashes = crashes_of(p->d.name, f->sha256, &aside);
    if (aside) {
        bh_native_put_aside(p, skip);
        bh_log_error("A plugin is put aside: it ended the scheduler three times within ten minutes",
                     bh_kv_s("plugin", p->d.name), bh_kv_s("file", f->file),
                     bh_kv_s("itsPods", skip ? "are scheduled without it" : "get errors"));
    }
    write_inventory(f, p, crashes);
    start_watch();
}

int64_t bh_native_limit_ns(void)
{
    return guard.limit_ns ? guard.limit_ns : INT64_C(10000000000);
}

void bh_native_process_seen(const struct bh_native_plugin *p)
{
    char text[96];

    if (!guard.dir)
        return;
    BH_CLEANUP(bh_freep)
    char *path = bh_asprintf("%s/" BH_NATIVE_PROCESS ".%s", guard.dir, p->d.name);
    int n =
        snprintf(text, sizeof text, "%d %" PRIu64 " %" PRIu64 "\n", p->pid, p->starts, p->calls);
    (void)bh_write_file(path, text, (size_t)n, 0640);
}

void bh_native_each_process(void (*fn)(void *arg, const char *plugin, int pid, uint64_t starts,
                                       uint64_t calls),
                            void *arg)
{
    for (uint32_t i = 0; i < guard.n_of; i++)
        if (guard.of[i]->process)
            fn(arg, guard.of[i]->d.name, guard.of[i]->pid, guard.of[i]->starts, guard.of[i]->calls);
}

void bh_native_check_processes(void)
{
    for (uint32_t i = 0; i < guard.n_of; i++)
        if (guard.of[i]->process)
            bh_px_check(guard.of[i]->process);
}

void bh_native_each_newly_aside(void (*fn)(void *arg, const char *plugin, const char *aside,
                                           bool skips),
                                void *arg)
{
    for (uint32_t i = 0; i < guard.n_of; i++)
        if (atomic_exchange(&guard.of[i]->newly_aside, false))
            fn(arg, guard.of[i]->d.name, guard.of[i]->aside, guard.of[i]->skips);
}

void bh_native_crashed(struct bh_native_plugin *p, const struct bh_native_file *f, uint32_t hook)
{
    struct crash c = {.at_s = bh_wall_ns() / 1000000000};
    bool aside;

    snprintf(c.sha256, sizeof c.sha256, "%.64s", f->sha256);
    snprintf(c.name, sizeof c.name, "%.63s", p->d.name);
    snprintf(c.hook, sizeof c.hook, "%s",
             hook == BH_HOOK_NONE ? "between callbacks" : bh_native_hook_name(hook));
    add_crash(&c);
    if (guard.dir)
        write_crashes();
    (void)crashes_of(p->d.name, f->sha256, &aside);
    if (!aside || p->aside)
        return;
    p->skips = p->on_crash_skips;
    p->aside = "it is put aside: it ended its process three times within ten minutes";
    atomic_store(&p->newly_aside, true);
    if (p->inventory)
        write_inventory(f, p, crashes_of(p->d.name, f->sha256, &aside));
    bh_log_error("A plugin is put aside: it ended its process three times within ten minutes",
                 bh_kv_s("plugin", p->d.name), bh_kv_s("file", f->file),
                 bh_kv_s("itsPods", p->skips ? "are scheduled without it" : "get errors"));
}

void bh_native_each(void (*fn)(void *arg, const char *plugin, const char *aside, bool skips),
                    void *arg)
{
    for (uint32_t i = 0; i < guard.n_of; i++)
        fn(arg, guard.of[i]->d.name, guard.of[i]->aside, guard.of[i]->skips);
}

void bh_native_measured(struct bh_native_plugin *p, int64_t at_ns, uint64_t n_nodes)
{
    BH_CLEANUP(bh_freep) char *path = NULL;
    char line[64];

    p->measured_nodes = n_nodes;
    if (atomic_exchange(&p->measured_ns, at_ns) == at_ns || !guard.dir)
        return;
    path = bh_asprintf("%s/" BH_NATIVE_MEASURED ".%s", guard.dir, p->d.name);
    int n = snprintf(line, sizeof line, "%" PRId64 " %" PRIu64 "\n", at_ns, n_nodes);
    int rc = bh_write_file(path, line, (size_t)n, 0640);
    if (rc < 0)
        bh_log_warn("When nodes were measured could not be written", bh_kv_s("file", path),
                    bh_kv_s("err", strerror(-rc)));
}

void bh_native_each_measured(void (*fn)(void *arg, const char *plugin, int64_t at_ns,
                                        uint64_t n_nodes),
                             void *arg)
{
    for (uint32_t i = 0; i < guard.n_of; i++)
        if (guard.of[i]->measured_ns)
            fn(arg, guard.of[i]->d.name, guard.of[i]->measured_ns, guard.of[i]->measured_nodes);
}

void bh_native_each_metric(void (*fn)(void *arg, const struct bh_native_sample *s), void *arg)
{
    for (uint32_t i = 0; i < guard.n_of; i++)
        bh_native_metrics_take(guard.of[i]->metrics, fn, arg);
}

bool bh_native_metric_taken(const char *name, const struct bh_native_plugin *not_by)
{
    for (uint32_t i = 0; i < guard.n_of; i++)
        if (guard.of[i] != not_by && bh_native_metrics_have(guard.of[i]->metrics, name))
            return true;
    return false;
}
