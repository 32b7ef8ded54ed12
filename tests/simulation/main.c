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
#include <malloc.h>
#include <stdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/opt.h"
#include "common/snapshot/snapshot.h"

#define SETTLE_MIN     (5 * SECOND)
#define PASSED_ON_NS   (70 * SECOND) /* lease, what may be on the wire, binders that are awaited */
#define SETTLE_MAX     (300 * SECOND)
#define QUIET_NS       (12 * SECOND) /* no binder wrote for so long: it is decided */
#define WATCH_NS       (12 * SECOND)
#define COSCHEDULED_NS (40 * SECOND)
#define END_NS         (15 * SECOND)
#define MAX_JOBS       16
#define HEAP_BYTES     (4 << 20) /* more than most seeds take */
#define ALL_FAULTS     (1 << 21) /* one bit more than the last */

static const char *const reached_names[] = {
#define X(name)       #name,
#define L(name, text) #name,
    REACHED_LIST LOGGED_LIST JUDGED_LIST
#undef X
#undef L
};
struct options {
    int64_t first, seeds, hosts, jobs, without, seconds, pods, first_fault, last_fault;
    bool verbose, keep, stop, reach_all, traces, no_shrink;
    const char *checker;
};
struct result { /* of one child, at the end of its pipe */
    uint64_t seed, trace, quiet_ns, reached[R_COUNT], events, steps, hosts, faults;
    char failure[512], dir[64];
};

/* ---- one seed -------------------------------------------------------------------------------- */

static void on_publication_step(int step_)
{
    if (!world.running)
        return;
    if (step_ == BH_SNAP_STEP_MOVE_UNLINKED) {
        reach(segment_moved);
        if (find_process(P_SCHEDULER, world.running->host, 0)->copying)
            reach(segment_moved_in_mid_copy);
    }
    world.running->in_publication = true;
    step();
    world.running->in_publication = false;
}

static bool is_tended(void)
{
    return !world.marks || plugin_is_tended(find_process(P_SCHEDULER, world.leader, 0));
}

/* NULL: nothing is to come any more. What is dear to find out comes last. */
static const char *unsettled(void)
{
    /* Of a group that has no room now this member has none, now that one: each time it is said. */
    const bool quiet = world.gangs == OF_COSCHEDULING
                           ? world.now_ns - world.peace_ns > COSCHEDULED_NS
                           : world.now_ns - world.binder_wrote_ns > QUIET_NS;
    const char *what = !quiet                                  ? "binders write and write"
                       : world.now_ns <= world.doubt_until_ns  ? "something is still waited for"
                       : !world.leader || !world.leader->leads ? "nobody leads"
                       : !api_watches_stand()                  ? "a watch is not open"
                       : !is_tended() ? "the writes of a plugin are not complete"
                                      : load_undecided();

    if (!what && (what = load_leaving())) /* and then somebody takes its room */
        world.doubt_until_ns = world.now_ns + QUIET_NS;
    return what;
}

static bool settled(void)
{
    return !unsettled();
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

static void note_history(void)
{
    char path[96], *text = NULL;
    size_t n = 0;

    snprintf(path, sizeof(path), "%s/" HISTORY, world.dir);
    if (bh_read_file(path, (size_t)1 << 28, &text, &n) < 0)
        fail("there is no history");
    note(text, n);
    free(text);
}

/* Of a leader whose scheduler is stopped the lease has to pass on: what is pending is decided. */
static void stop_leader(void)
{
    if (world.failure[0] || world.n_hosts == 1 || !plan_binds() || !chance(DRAW_BINDING, 50))
        return;
    in_server(plan_stop_leader);
    run_until(world.now_ns + PASSED_ON_NS, NULL);
    const char *undecided = load_undecided();
    if (undecided)
        fail("not passed on %d s after a leader was stopped: %s", (int)(PASSED_ON_NS / SECOND),
             undecided);
}

static void run_seed(const struct options *o, struct result *r)
{
    world.seed = r->seed;
    for (int i = 0; i < DRAW_COUNT; i++)
        draw_for(i, 0);
    world.verbose = o->verbose;
    const unsigned hosts = (unsigned)draw(DRAW_PLAN, 12); /* most often one, seldom three */
    world.n_hosts = o->hosts ? (unsigned)o->hosts : hosts < 6 ? 1 : hosts < 10 ? 2 : 3;
    plan_skip = (unsigned)o->without;
    plan_seconds = (uint64_t)o->seconds;
    plan_pods = (int)o->pods;
    plan_first = (uint64_t)o->first_fault;
    plan_last = (uint64_t)o->last_fault;
    world.n_binders = (unsigned)draw_between(DRAW_PLAN, 1, MAX_BINDERS);
    memcpy(world.dir, r->dir, sizeof(world.dir));
    bh_snap_crash_hook = on_publication_step;
    plan_draw();
    hosts_init();
    if (!world.failure[0]) {
        in_server(load_build);
        run_until(world.now_ns + 10 * MS, NULL);
        hosts_start();
        plan_run();
        in_server(plan_peace);
        run_until(world.now_ns + SETTLE_MIN, NULL);
        stop_leader();
        sequences_run();
        run_until(world.now_ns + SETTLE_MAX, settled);
        const char *why = unsettled();
        if (why)
            fail("not settled %d s after peace: %s", (int)((SETTLE_MIN + SETTLE_MAX) / SECOND),
                 load_undecided() ? load_undecided() : why);
        load_count_gangs();
        if (load_wrong_mark())
            fail("mark: %s", load_wrong_mark());
        r->quiet_ns = world.gangs == OF_COSCHEDULING ? UINT64_MAX : world.now_ns;
        run_until(world.now_ns + WATCH_NS, NULL);
        end_all();
    }
    note_history();
    r->trace = world.trace;
    r->hosts = world.n_hosts;
    r->faults = plan_faults();
    r->events = world.n_events;
    r->steps = world.n_steps;
    memcpy(r->reached, world.reached, sizeof(r->reached));
    memcpy(r->failure, world.failure, sizeof(r->failure));
}

/* ---- children -------------------------------------------------------------------------------- */

static char *heap;

/* Page faults are dear: the heap stays as it is, and what a child adds comes in large pages. */
static char *heap_start(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 16 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    (void)mallopt(M_TOP_PAD, HEAP_BYTES);
    return sbrk(0);
}

static void touch_heap(void)
{
    const uintptr_t page = 4096, from = ((uintptr_t)heap & -page), to = (uintptr_t)sbrk(0) & -page;

    (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
    (void)madvise((void *)from, to - from, MADV_POPULATE_WRITE); /* an old kernel has none */
}

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
    shared_memory_gone(r->dir, NULL);
    (void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void start_child(const struct options *o, struct child *c, uint64_t seed)
{
    int fds[2];

    c->r = (struct result){.seed = seed};
    snprintf(c->r.dir, sizeof(c->r.dir), FOLDER "XXXXXX");
    if (!mkdtemp(c->r.dir) || pipe(fds) < 0) {
        perror("berth-simulation");
        exit(2);
    }
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fds[0]);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (!o->verbose)
            dup2(null, 2);
        touch_heap();
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

/* What all seeds begin with, of which each child has a copy. */
static void prepare(void)
{
    snprintf(world.prepared, sizeof(world.prepared), FOLDER "XXXXXX");
    if (!mkdtemp(world.prepared)) {
        perror("berth-simulation");
        exit(2);
    }
    memcpy(world.dir, world.prepared, sizeof(world.dir));
    for (int i = 0; i < DRAW_COUNT; i++)
        draw_for(i, 0);
    hosts_prepare();
    if (world.failure[0]) {
        fprintf(stderr, "berth-simulation: %s\n", world.failure);
        exit(2);
    }
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

static void judge_end(struct judge *j)
{
    fclose(j->to);
    waitpid(j->pid, NULL, 0);
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
    struct judge judge;
    uint64_t reached[R_COUNT];
    int64_t done, green;
    struct result first_bad;
};

/* What repeats it. */
static void print_flags(const struct options *o, uint64_t seed)
{
    const struct {
        const char *name;
        int64_t value, usual;
    } flags[] = {{"hosts", o->hosts, 0},
                 {"without", o->without, 0},
                 {"seconds", o->seconds, 0},
                 {"pods", o->pods, -1},
                 {"first-fault", o->first_fault, 0},
                 {"last-fault", o->last_fault, INT64_MAX}};

    printf("--first %llu --seeds 1", (unsigned long long)seed);
    for (size_t i = 0; i < BH_ARRAY_LEN(flags); i++)
        if (flags[i].value != flags[i].usual)
            printf(" --%s %lld", flags[i].name, (long long)flags[i].value);
    printf("\n");
}

static void finish(struct run *run, const struct options *o, struct child *c)
{
    end_child(c);
    judge(&run->judge, &c->r);
    run->done++;
    for (int i = 0; i < R_COUNT; i++)
        run->reached[i] += c->r.reached[i];
    if (c->r.failure[0]) {
        printf("seed %llu: %s\n  again: build/bin/berth-simulation ", (unsigned long long)c->r.seed,
               c->r.failure);
        print_flags(o, c->r.seed);
        if (run->done - run->green == 1)
            run->first_bad = c->r;
    } else {
        run->green++;
    }
    if (o->traces)
        printf("trace %llu %016llx\n", (unsigned long long)c->r.seed,
               (unsigned long long)c->r.trace);
    if (o->seeds == 1)
        printf("seed %llu: trace %016llx, %llu events, %llu steps, history in %s\n",
               (unsigned long long)c->r.seed, (unsigned long long)c->r.trace,
               (unsigned long long)c->r.events, (unsigned long long)c->r.steps,
               o->keep ? c->r.dir : "(--keep)");
    if (!o->keep)
        clear_up(&c->r);
    fflush(stdout);
}

static void run_seeds(struct run *run, const struct options *o)
{
    static struct child children[MAX_JOBS];
    int64_t next = 0, oldest = 0;

    while (oldest < o->seeds && !(o->stop && run->green < run->done)) {
        while (next < o->seeds && next - oldest < o->jobs) {
            start_child(o, &children[next % o->jobs], (uint64_t)(o->first + next));
            next++;
        }
        finish(run, o, &children[oldest % o->jobs]);
        oldest++;
    }
    for (; oldest < next; oldest++) {
        end_child(&children[oldest % o->jobs]);
        clear_up(&children[oldest % o->jobs].r);
    }
}

/* ---- making a failure small ------------------------------------------------------------------ */

/* Does it fail in the same way? Texts differ in names and numbers: the first word counts. */
static bool fails_alike(struct run *run, const struct options *o, const struct result *bad)
{
    const size_t word = strcspn(bad->failure, " 0123456789");
    struct child c;

    start_child(o, &c, bad->seed);
    end_child(&c);
    judge(&run->judge, &c.r);
    clear_up(&c.r);
    return strncmp(c.r.failure, bad->failure, word + 1) == 0;
}

/* *what takes the first of from, from + by ... with which it still fails, if one does before end. */
static void shrink_one(struct run *run, struct options *o, const struct result *bad, int64_t *what,
                       int64_t from, int64_t end, int64_t by)
{
    const int64_t was = *what;

    for (*what = from; by > 0 ? *what < end : *what > end; *what += by)
        if (fails_alike(run, o, bad))
            return;
    *what = was;
}

/* Fewer hosts, kinds of faults, seconds, faults, pods: in this order, each as few as can be. */
static void shrink(struct run *run, const struct options *given)
{
    const struct result *bad = &run->first_bad;
    const int64_t faults = (int64_t)bad->faults;
    struct options o = *given;

    o.verbose = o.keep = false;
    if (!fails_alike(run, &o, bad)) {
        printf("  again, seed %llu does not fail in this way\n", (unsigned long long)bad->seed);
        return;
    }
    shrink_one(run, &o, bad, &o.hosts, 1, (int64_t)bad->hosts, 1);
    for (int64_t bit = 1; bit < ALL_FAULTS; bit *= 2) {
        const int64_t was = o.without;
        shrink_one(run, &o, bad, &o.without, was | bit, (was | bit) + 1, 1);
    }
    shrink_one(run, &o, bad, &o.seconds, 2, 22, 2);
    shrink_one(run, &o, bad, &o.last_fault, 0, faults, 1);
    shrink_one(run, &o, bad, &o.first_fault, BH_MIN(o.last_fault, faults), 1, -1);
    shrink_one(run, &o, bad, &o.pods, 1, 16, 3);
    printf("  small: build/bin/berth-simulation ");
    print_flags(&o, bad->seed);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int64_t tell_unreached(const struct run *run)
{
    int64_t n = 0;

    for (int i = 0; i < R_COUNT; i++) {
        if (run->reached[i])
            continue;
        printf("not ok - no seed reached %s\n", reached_names[i]);
        n++;
    }
    return n;
}

static int tell(const struct run *run, const struct options *o)
{
    const int64_t bad = run->done - run->green;

    for (int i = 0; i < R_COUNT; i++)
        printf("reached %-34s %llu\n", reached_names[i], (unsigned long long)run->reached[i]);
    const int64_t unreached = o->reach_all ? tell_unreached(run) : 0;
    printf("seeds: %lld run, %lld green\n%lld passed, %lld failed, 0 skipped\n",
           (long long)run->done, (long long)run->green, (long long)run->green,
           (long long)(bad + unreached));
    return bad + unreached == 0 ? 0 : 1;
}

#define NO_OPTIONS                                                                                 \
    (struct options)                                                                               \
    {                                                                                              \
        .first = 1, .seeds = 100, .jobs = 2, .pods = -1, .last_fault = INT64_MAX,                  \
        .checker = "tests/simulation/judge.py"                                                     \
    }

/* rest: files with the flags of a seed that failed once; # begins a comment */
static int parse(struct options *o, int argc, char **argv, struct bh_opt_list *rest)
{
    const struct bh_opt table[] = {
        {"first", 0, BH_OPT_INT, &o->first, "N", "the first seed (1)"},
        {"seeds", 0, BH_OPT_INT, &o->seeds, "M", "how many (100)"},
        {"hosts", 0, BH_OPT_INT, &o->hosts, "H", "so many hosts in each run (0: drawn, 1 to 3)"},
        {"jobs", 0, BH_OPT_INT, &o->jobs, "N", "seeds at a time (2)"},
        {"without", 0, BH_OPT_INT, &o->without, "BITS",
         "faults left out: 1 kill, 2 stop, 4 network, 8 server, 16 bus, 32 host cut off, 64 "
         "clock, 128 term, 256 binders, 512 no room, 1024 reload, 2048 restart of the server, 4096 "
         "lease taken, 8192 behind a binding, 16384 gangs, 32768 binders over tcp, 65536 host told "
         "to end, 131072 sequences in peace, 262144 clocks and restarts of machines, 524288 a "
         "plugin that writes, 1048576 groups that preempt"},
        {"seconds", 0, BH_OPT_INT, &o->seconds, "N", "of unrest (0: drawn, 3 to 22)"},
        {"pods", 0, BH_OPT_INT, &o->pods, "N", "at most so many at a time (-1: drawn, 6 to 26)"},
        {"first-fault", 0, BH_OPT_INT, &o->first_fault, "N", "those before are left out (0)"},
        {"last-fault", 0, BH_OPT_INT, &o->last_fault, "N", "those behind are left out (all)"},
        {"verbose", 0, BH_OPT_BOOL, &o->verbose, NULL, "say what happens, with made-up times"},
        {"stop", 0, BH_OPT_BOOL, &o->stop, NULL, "end with the first seed that is not green"},
        {"no-shrink", 0, BH_OPT_BOOL, &o->no_shrink, NULL,
         "do not make the first that is red small"},
        {"keep", 0, BH_OPT_BOOL, &o->keep, NULL, "keep the histories"},
        {"reach-all", 0, BH_OPT_BOOL, &o->reach_all, NULL,
         "each of the places listed has to be reached by some seed"},
        {"traces", 0, BH_OPT_BOOL, &o->traces, NULL,
         "print a hash of all that each seed did, its history among it"},
        {"judge", 0, BH_OPT_STR, &o->checker, "FILE", "tests/simulation/judge.py"},
        {0},
    };
    static const struct bh_opt_usage usage = {
        .program = "berth-simulation",
        .synopsis = "[flags] [CASE...]",
        .about = "Runs watcher, scheduler, binders and the built-in API server in one thread and "
                 "made-up time, with faults drawn from a seed. A CASE is a file with the flags of "
                 "a seed that was not green once.",
        .examples = "  berth-simulation --first 1 --seeds 2000\n"
                    "  berth-simulation tests/simulation/cases/*\n",
        .exits = "  0  all seeds are green\n  1  some are not\n  2  wrong usage\n"};
    struct bh_err err = {""};

    int rc = bh_opt_parse(table, &usage, argc, argv, rest, &err);
    if (rc > 0)
        return rc;
    if (rc < 0 || o->jobs < 1 || o->jobs > MAX_JOBS || o->hosts < 0 || o->hosts > MAX_HOSTS ||
        o->seeds < 1) {
        fprintf(stderr, "berth-simulation: %s\n", rc < 0 ? err.msg : "see --help");
        return -1;
    }
    return 0;
}

static int run_case(struct run *run, const char *path)
{
    static char name[] = "case";
    char *text = NULL, *argv[32] = {name}, *save = NULL;
    struct bh_opt_list rest = {0};
    struct options o = NO_OPTIONS;
    int argc = 1;
    size_t n;

    if (bh_read_file(path, 4096, &text, &n) < 0) {
        fprintf(stderr, "berth-simulation: cannot read %s\n", path);
        return -1;
    }
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *word_save = NULL;
        if (*line == '#')
            continue;
        for (char *w = strtok_r(line, " ", &word_save); w && argc < 31;
             w = strtok_r(NULL, " ", &word_save))
            argv[argc++] = w;
    }
    int rc = parse(&o, argc, argv, &rest);
    if (rc == 0)
        run_seeds(run, &o);
    return rc;
}

int main(int argc, char **argv)
{
    struct options o = NO_OPTIONS;
    struct bh_opt_list rest = {0};
    struct run run = {.done = 0};

    heap = heap_start();
    int rc = parse(&o, argc, argv, &rest);
    if (rc)
        return rc > 0 ? 0 : 2;
    bh_log_init("simulation", o.verbose ? 3 : 0, BH_LOG_TEXT);
    judge_start(&run.judge, o.checker);
    prepare();
    for (size_t i = 0; i < rest.n && rc == 0; i++)
        rc = run_case(&run, rest.v[i]);
    if (!rest.n)
        run_seeds(&run, &o);
    if (run.green < run.done && !rest.n && !o.no_shrink)
        shrink(&run, &o);
    judge_end(&run.judge);
    (void)nftw(world.prepared, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc < 0 ? 2 : tell(&run, &o);
}
