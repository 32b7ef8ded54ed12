/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/simulation/main.c - berth-simulation: runs seeds, has them judged, says how to repeat one
 *
 * Each seed is a child of this process. It leaves a history (berth-simulator --history-file), which
 * tests/simulation/judge.py gives to the checker of tests/faults.
 */
#include "tests/simulation/simulation.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/opt.h"
#include "common/snapshot/snapshot.h"

#define SETTLE_MIN (75 * SECOND) /* the longest wait of a watch that nobody answers, and more */
#define SETTLE_MAX (300 * SECOND)
#define QUIET_NS   (12 * SECOND) /* no binder wrote for so long: it is decided */
#define WATCH_NS   (20 * SECOND)
#define END_NS     (15 * SECOND)
#define MAX_JOBS   16

static const char *const reached_names[] = {
#define X(name)       #name,
#define L(name, text) #name,
    REACHED_LIST LOGGED_LIST JUDGED_LIST
#undef X
#undef L
};
struct options {
    int64_t first, seeds, hosts, jobs, without, seconds, pods;
    bool verbose, keep, stop;
    const char *checker;
};
struct result { /* of one child, at the end of its pipe */
    uint64_t seed, trace, quiet_ns, reached[R_COUNT], events, steps;
    char failure[512], dir[64];
};

/* ---- one seed -------------------------------------------------------------------------------- */

static void on_publication_step(int step_)
{
    if (!world.running)
        return;
    if (step_ == BH_SNAP_STEP_MOVE_UNLINKED)
        reach(segment_moved);
    world.running->in_publication = true;
    step();
    world.running->in_publication = false;
}

static bool settled(void)
{
    return world.now_ns - world.binder_wrote_ns > QUIET_NS && !load_undecided();
}

static bool all_ended(void)
{
    for (unsigned i = 1; i < n_processes; i++)
        if (processes[i].alive)
            return false;
    return true;
}

static void end_all(void)
{
    world.down = true;
    for (unsigned i = 1; i < n_processes; i++) {
        processes[i].wanted = false;
        process_term(&processes[i]);
    }
    run_until(world.now_ns + END_NS, all_ended);
    for (unsigned i = 1; i < n_processes; i++)
        if (processes[i].alive)
            fail("%s does not end", processes[i].name);
}

static void run_seed(const struct options *o, struct result *r)
{
    for (int i = 0; i < DRAW_COUNT; i++)
        bh_rand_seed(&world.draw[i], r->seed * 16 + (uint64_t)i);
    world.seed = r->seed;
    world.verbose = o->verbose;
    world.n_hosts = o->hosts                ? (unsigned)o->hosts
                    : chance(DRAW_PLAN, 50) ? 1
                                            : (unsigned)draw_between(DRAW_PLAN, 2, 3);
    world.n_binders = (unsigned)draw_between(DRAW_PLAN, 1, MAX_BINDERS);
    memcpy(world.dir, r->dir, sizeof(world.dir));
    bh_snap_crash_hook = on_publication_step;
    plan_draw();
    hosts_init();
    process_start(&processes[0], 0);
    run_until(world.now_ns + 10 * MS, NULL);
    if (!world.failure[0]) {
        in_server(load_build);
        run_until(world.now_ns + 10 * MS, NULL);
        hosts_start();
        plan_run();
        in_server(plan_peace);
        run_until(world.now_ns + SETTLE_MIN, NULL);
        run_until(world.now_ns + SETTLE_MAX, settled);
        if (!settled())
            fail("not settled %d s after peace: %s", (int)((SETTLE_MIN + SETTLE_MAX) / SECOND),
                 load_undecided() ? load_undecided() : "binders write and write");
        r->quiet_ns = world.now_ns;
        run_until(world.now_ns + WATCH_NS, NULL);
        end_all();
    }
    r->trace = world.trace;
    r->events = world.n_events;
    r->steps = world.n_steps;
    memcpy(r->reached, world.reached, sizeof(r->reached));
    memcpy(r->failure, world.failure, sizeof(r->failure));
}

/* ---- children -------------------------------------------------------------------------------- */

struct child {
    pid_t pid;
    int fd;
    struct result r;
};

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *f)
{
    (void)st, (void)what, (void)f;
    return remove(path);
}

static void clear_up(const struct result *r)
{
    char path[96], name[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/" SHM_NAMES, r->dir);
    f = fopen(path, "re");
    while (f && fgets(name, sizeof(name), f)) {
        name[strcspn(name, "\n")] = '\0';
        (void)shm_unlink(name);
    }
    if (f)
        fclose(f);
    (void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void start_child(const struct options *o, struct child *c, uint64_t seed)
{
    int fds[2];

    c->r = (struct result){.seed = seed};
    snprintf(c->r.dir, sizeof(c->r.dir), "/dev/shm/berth-simulation-XXXXXX");
    if (!mkdtemp(c->r.dir) || pipe(fds) < 0) {
        perror("berth-simulation");
        exit(2);
    }
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        close(fds[0]);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (!o->verbose)
            dup2(null, 2);
        bh_log_init("simulation", o->verbose ? 3 : 0, BH_LOG_TEXT);
        run_seed(o, &c->r);
        _exit(write(fds[1], &c->r, sizeof(c->r)) == sizeof(c->r) ? 0 : 3);
    }
    close(fds[1]);
    c->fd = fds[0];
}

static void end_child(struct child *c)
{
    struct result r;
    int status = 0;
    ssize_t n = read(c->fd, &r, sizeof(r));

    close(c->fd);
    waitpid(c->pid, &status, 0);
    if (n == sizeof(r))
        c->r = r;
    else
        snprintf(c->r.failure, sizeof(c->r.failure), "the process died: signal %d, status %d",
                 WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                 WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

/* ---- judging --------------------------------------------------------------------------------- */

struct judge {
    FILE *to, *from;
    pid_t pid;
};

static void judge_start(struct judge *j, const char *checker)
{
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
        perror("berth-simulation");
        exit(2);
    }
    j->pid = fork();
    if (j->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execlp("python3", "python3", checker, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    j->to = fdopen(in[1], "w");
    j->from = fdopen(out[0], "r");
}

/* What it found goes to r. */
static void judge(struct judge *j, struct result *r)
{
    char line[sizeof(r->failure)];

    if (r->failure[0])
        return;
    fprintf(j->to, "%s/history.jsonl %llu\n", r->dir, (unsigned long long)r->quiet_ns);
    fflush(j->to);
    if (!fgets(line, sizeof(line), j->from)) {
        fprintf(stderr, "berth-simulation: the judge does not answer\n");
        exit(2);
    }
    line[strcspn(line, "\n")] = '\0';
    unsigned long long n[4];
    if (sscanf(line, "ok %llu %llu %llu %llu", &n[0], &n[1], &n[2], &n[3]) != 4)
        memcpy(r->failure, line, sizeof(line));
    else
        for (int i = 0; i < 4; i++)
            r->reached[R_judged_binds + i] = n[i];
}

/* ---- all seeds ------------------------------------------------------------------------------- */

struct run {
    const struct options *o;
    struct judge judge;
    uint64_t reached[R_COUNT];
    int64_t done, green;
};

static void finish(struct run *run, struct child *c)
{
    const struct options *o = run->o;

    end_child(c);
    judge(&run->judge, &c->r);
    run->done++;
    for (int i = 0; i < R_COUNT; i++)
        run->reached[i] += c->r.reached[i];
    if (c->r.failure[0])
        printf("seed %llu: %s\n  again: build/bin/berth-simulation --first %llu --seeds 1%s%.0lld "
               "--verbose\n",
               (unsigned long long)c->r.seed, c->r.failure, (unsigned long long)c->r.seed,
               o->hosts ? " --hosts " : "", (long long)o->hosts);
    else
        run->green++;
    if (o->seeds == 1)
        printf("seed %llu: trace %016llx, %llu events, %llu steps, history in %s\n",
               (unsigned long long)c->r.seed, (unsigned long long)c->r.trace,
               (unsigned long long)c->r.events, (unsigned long long)c->r.steps,
               o->keep ? c->r.dir : "(--keep)");
    if (!o->keep)
        clear_up(&c->r);
    fflush(stdout);
}

static int run_all(const struct options *o)
{
    static struct child children[MAX_JOBS];
    struct run run = {.o = o};
    int64_t next = 0, oldest = 0;

    judge_start(&run.judge, o->checker);
    while (oldest < o->seeds && !(o->stop && run.green < run.done)) {
        while (next < o->seeds && next - oldest < o->jobs) {
            start_child(o, &children[next % o->jobs], (uint64_t)(o->first + next));
            next++;
        }
        finish(&run, &children[oldest % o->jobs]);
        oldest++;
    }
    for (; oldest < next; oldest++) {
        end_child(&children[oldest % o->jobs]);
        clear_up(&children[oldest % o->jobs].r);
    }
    fclose(run.judge.to);
    waitpid(run.judge.pid, NULL, 0);
    for (int i = 0; i < R_COUNT; i++)
        printf("reached %-34s %llu\n", reached_names[i], (unsigned long long)run.reached[i]);
    printf("seeds: %lld run, %lld green\n%lld passed, %lld failed, 0 skipped\n",
           (long long)run.done, (long long)run.green, (long long)run.green,
           (long long)(run.done - run.green));
    return run.green == run.done ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options o = {
        .first = 1, .seeds = 100, .jobs = 2, .pods = -1, .checker = "tests/simulation/judge.py"};
    const struct bh_opt table[] = {
        {"first", 0, BH_OPT_INT, &o.first, "N", "the first seed (1)"},
        {"seeds", 0, BH_OPT_INT, &o.seeds, "M", "how many (100)"},
        {"hosts", 0, BH_OPT_INT, &o.hosts, "H", "so many hosts in each run (0: drawn, 1 to 3)"},
        {"jobs", 0, BH_OPT_INT, &o.jobs, "N", "seeds at a time (2)"},
        {"without", 0, BH_OPT_INT, &o.without, "BITS",
         "faults left out: 1 kill, 2 stop, 4 network, 8 server, 16 bus, 32 host cut off, 64 "
         "clock, 128 term, 256 binders"},
        {"seconds", 0, BH_OPT_INT, &o.seconds, "N", "of unrest (0: drawn, 15 to 45)"},
        {"pods", 0, BH_OPT_INT, &o.pods, "N", "at most so many at a time (-1: drawn, 8 to 40)"},
        {"verbose", 0, BH_OPT_BOOL, &o.verbose, NULL, "say what happens, with made-up times"},
        {"stop", 0, BH_OPT_BOOL, &o.stop, NULL, "end with the first seed that is not green"},
        {"keep", 0, BH_OPT_BOOL, &o.keep, NULL, "keep the histories"},
        {"judge", 0, BH_OPT_STR, &o.checker, "FILE", "tests/simulation/judge.py"},
        {0},
    };
    static const struct bh_opt_usage usage = {
        .program = "berth-simulation",
        .synopsis = "[flags]",
        .about = "Runs watcher, scheduler, binders and the built-in API server in one thread and "
                 "made-up time, with faults drawn from a seed.",
        .examples = "  berth-simulation --first 1 --seeds 2000\n",
        .exits = "  0  all seeds are green\n  1  some are not\n  2  wrong usage\n"};
    struct bh_opt_list rest = {0};
    struct bh_err err = {""};

    int rc = bh_opt_parse(table, &usage, argc, argv, &rest, &err);
    if (rc > 0)
        return 0;
    if (rc < 0 || rest.n || o.jobs < 1 || o.jobs > MAX_JOBS || o.hosts < 0 || o.hosts > MAX_HOSTS ||
        o.seeds < 1) {
        fprintf(stderr, "berth-simulation: %s\n", rc < 0 ? err.msg : "see --help");
        return 2;
    }
    plan_skip = (unsigned)o.without;
    plan_seconds = (uint64_t)o.seconds;
    plan_pods = (int)o.pods;
    return run_all(&o);
}
