/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/up_children.c - the processes of `berth up` and `berth run`: started, watched, started again,
 * stopped
 *
 * Invariants: a child that ends while everything is being started ends the start. Later it is
 * started again after a pause (100 ms, doubling to 10 s, reset after a minute of life). Children
 * die with us (PR_SET_PDEATHSIG).
 * Runs in:    the loop that bh_up_open made.
 */
#include "cli/up.h"
#include "common/base/log.h"
#include "common/k8s/quantity.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_WAIT_NS UINT64_C(5000000000)
#define PAUSE_MIN_MS 100u
#define PAUSE_MAX_MS 10000u
#define STEADY_NS    UINT64_C(60000000000)
#define SETTLE_NS    UINT64_C(200000000)
#define LAST_WORDS   2048u /* bytes of a log's end that are shown */

int bh_up_spawn(struct bh_up_child *c)
{
    pid_t parent = getpid(), pid;
    int log = STDERR_FILENO;

    if (*c->log)
        log = open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (log < 0)
        return -errno;
    pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        setpgid(0, 0); /* Ctrl-C reaches us alone: we stop the children in order */
        if (getppid() != parent)
            _exit(1);
        unsetenv("NOTIFY_SOCKET"); /* is about us */
        unsetenv("WATCHDOG_PID");
        unsetenv("WATCHDOG_USEC");
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execv(c->argv[0], c->argv);
        dprintf(STDERR_FILENO, "could not run %s: %s\n", c->argv[0], strerror(errno));
        _exit(127);
    }
    if (log != STDERR_FILENO)
        close(log);
    if (pid < 0)
        return -errno;
    c->pid = pid;
    c->started_ns = bh_mono_ns();
    return 0;
}

static void on_again(uv_timer_t *t)
{
    struct bh_up_child *c = t->data;

    if (c->up->stopping)
        return;
    if (bh_up_spawn(c) < 0) {
        uv_timer_start(t, on_again, PAUSE_MAX_MS, 0);
    } else if (c->loss) {
        c->up->lost = true;
        uv_stop(&c->up->loop);
    }
}

static void describe_end(const struct bh_up_child *c, char out[static 64])
{
    if (WIFSIGNALED(c->status))
        snprintf(out, 64, "was killed by signal %d", WTERMSIG(c->status));
    else
        snprintf(out, 64, "ended with status %d", WEXITSTATUS(c->status));
}

/* One sentence, for the terminal and for the page. */
static void tell_loss(struct bh_up_child *c, const char *how)
{
    char time[32];

    bh_time_format_ns(time, bh_wall_ns());
    free(*c->loss);
    *c->loss = bh_asprintf("the built-in API server %s at %s: its objects were in memory only and "
                           "are gone (--data FILE keeps them)",
                           how, time);
    fprintf(stderr, "%s: %s\n", c->up->who, *c->loss);
}

static void child_ended(struct bh_up_child *c, int status)
{
    char how[64];

    c->pid = 0;
    c->ended = true;
    c->status = status;
    if (c->up->stopping || !c->up->started)
        return; /* while starting: bh_up_all_alive() sees it */
    if (bh_mono_ns() - c->started_ns > STEADY_NS)
        c->pause_ms = PAUSE_MIN_MS;
    describe_end(c, how);
    if (c->up->speaks_klog)
        bh_log_warn("A process ended, starting it again", bh_kv_s("process", c->name),
                    bh_kv_s("how", how), bh_kv_u("afterMilliseconds", c->pause_ms));
    else
        fprintf(stderr, "%s: %s %s, starting it again (its log: %s)\n", c->up->who, c->name, how,
                c->log);
    if (c->loss)
        tell_loss(c, how);
    uv_timer_start(&c->again, on_again, c->pause_ms, 0);
    c->pause_ms = BH_MIN(c->pause_ms * 2, PAUSE_MAX_MS);
}

void bh_up_last_words(const struct bh_up_child *c)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n = 0;
    char *line, *rest = NULL;

    if (!*c->log)
        return; /* seen already */
    if (bh_read_file(c->log, 64u << 20, &text, &n) < 0 || !n)
        return;
    line = n > LAST_WORDS ? strchr(text + n - LAST_WORDS, '\n') : text;
    for (line = strtok_r(line ? line : text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        fprintf(stderr, "  %s\n", line);
}

/* s->data: struct bh_up */
static void on_sigchld(uv_signal_t *s, int signum)
{
    struct bh_up *u = s->data;
    int status;
    pid_t pid;

    (void)signum;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < u->n; i++)
            if (u->child[i].pid == pid)
                child_ended(&u->child[i], status);
}

void bh_up_add_child(struct bh_up *u, const char *program, const char *name,
                     const char *const *args, char *const *more)
{
    struct bh_up_child *c = &u->child[u->n++];
    size_t n = 1, n_more = 0;

    bh_assert(u->n <= BH_UP_CHILDREN);
    c->up = u;
    c->pause_ms = PAUSE_MIN_MS;
    snprintf(c->name, sizeof(c->name), "%s", name);
    if (!u->speaks_klog)
        snprintf(c->log, sizeof(c->log), "%s/%s.log", u->dir, name);
    while (args[n - 1])
        n++;
    while (more && more[n_more])
        n_more++;
    c->argv = bh_calloc(n + n_more + 1, sizeof(char *));
    c->argv[0] = bh_asprintf("%s/%s", u->bindir, program);
    for (size_t i = 1; i < n; i++)
        c->argv[i] = bh_strdup(args[i - 1]);
    for (size_t i = 0; i < n_more; i++)
        c->argv[n + i] = bh_strdup(more[i]);
    uv_timer_init(&u->loop, &c->again);
    c->again.data = c;
}

void bh_up_tell_to_stop(struct bh_up_child *c)
{
    uv_timer_stop(&c->again);
    if (c->pid && !c->told_to_stop)
        kill(c->pid, SIGTERM);
    c->told_to_stop = true;
}

void bh_up_stop_child(struct bh_up *u, struct bh_up_child *c)
{
    uint64_t deadline = bh_mono_ns() + STOP_WAIT_NS;

    bh_up_tell_to_stop(c);
    while (c->pid && bh_mono_ns() < deadline) {
        struct timespec ts = {.tv_nsec = 5000000};
        on_sigchld(&u->sigchld, SIGCHLD);
        if (c->pid)
            nanosleep(&ts, NULL);
    }
    if (c->pid) {
        if (u->speaks_klog)
            bh_log_warn("A process did not stop in time, killing it", bh_kv_s("process", c->name));
        else
            fprintf(stderr, "%s: %s did not stop in time, killing it\n", u->who, c->name);
        kill(c->pid, SIGKILL);
        (void)waitpid(c->pid, NULL, 0);
        c->pid = 0;
    }
}

int bh_up_all_alive(struct bh_up *u, struct bh_err *err)
{
    char how[64];

    for (unsigned i = 0; i < u->n; i++) {
        struct bh_up_child *c = &u->child[i];
        if (!c->ended)
            continue;
        describe_end(c, how);
        if (!*c->log)
            return bh_err_set(err, -ECHILD, "%s %s", c->name, how);
        fprintf(stderr, "%s: %s %s:\n", u->who, c->name, how);
        bh_up_last_words(c);
        return bh_err_set(err, -ECHILD, "%s could not be started", c->name);
    }
    return 0;
}

bool bh_up_pump(struct bh_up *u)
{
    struct timespec ts = {.tv_nsec = 10000000};

    uv_run(&u->loop, UV_RUN_NOWAIT);
    nanosleep(&ts, NULL);
    return !u->stopping;
}

int bh_up_settle(struct bh_up *u, struct bh_err *err)
{
    int rc = 0;

    for (uint64_t end = bh_mono_ns() + SETTLE_NS; rc == 0 && bh_mono_ns() < end && bh_up_pump(u);)
        rc = bh_up_all_alive(u, err);
    return rc;
}

/* ---- what both need around it ---------------------------------------------------------------- */

static void on_stop(void *arg)
{
    struct bh_up *u = arg;

    u->stopping = u->signalled = true;
    uv_stop(&u->loop);
}

struct bh_up *bh_up_open(const char *who, void (*on_hup)(void *up))
{
    struct bh_up *u = bh_calloc(1, sizeof(*u));

    u->who = who;
    uv_loop_init(&u->loop);
    u->signals = bh_signals_new(&u->loop, on_stop, on_hup ? on_hup : on_stop, u);
    uv_signal_init(&u->loop, &u->sigchld);
    u->sigchld.data = u;
    uv_signal_start(&u->sigchld, on_sigchld, SIGCHLD);
    return u;
}

void bh_up_close(struct bh_up *u)
{
    for (unsigned i = 0; i < u->n; i++) {
        for (char **word = u->child[i].argv; *word; word++)
            free(*word);
        free(u->child[i].argv);
    }
    bh_signals_close(u->signals);
    bh_loop_drain_close(&u->loop);
    free(u);
}

bool bh_up_has_program(const struct bh_up *u, const char *program)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof(path), "%s/%s", u->bindir, program);
    return access(path, X_OK) == 0;
}

int bh_up_find_programs(struct bh_up *u, const char *const *programs, struct bh_err *err)
{
    const size_t room = sizeof(u->bindir) - sizeof("/../sbin");
    ssize_t n = readlink("/proc/self/exe", u->bindir, room);
    int rc = 0;

    if (n < 0)
        return bh_err_set(err, -errno, "could not find our own program: %s", strerror(errno));
    /* Where the daemons are: next to us, or, as installed, in sbin next to our bin. */
    u->bindir[n] = '\0';
    char *slash = strrchr(u->bindir, '/');
    if (slash)
        *slash = '\0';
    if (!bh_up_has_program(u, "berth-watcher")) {
        slash = u->bindir + strlen(u->bindir);
        memcpy(slash, "/../sbin", sizeof("/../sbin"));
        if (!bh_up_has_program(u, "berth-watcher"))
            *slash = '\0';
    }
    for (; rc == 0 && *programs; programs++)
        if (!bh_up_has_program(u, *programs))
            rc = bh_err_set(err, -errno, "%s/%s is not next to this program: %s", u->bindir,
                            *programs, strerror(errno));
    return rc;
}
