/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/up_children.c - the processes of `berth up`: started, watched, started again, stopped
 *
 * Invariants: a child that ends while everything is being started ends the start. Later it is
 * started again after a pause (100 ms, doubling to 10 s, reset after a minute of life). Children
 * die with us (PR_SET_PDEATHSIG). Runs in:    the loop of `berth up`.
 */
#include "cli/up.h"
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
#define LAST_WORDS   2048u /* bytes of a log's end that are shown */

int bh_up_spawn(struct bh_up_child *c)
{
    pid_t parent = getpid(), pid;
    int log = open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

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
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execv(c->argv[0], c->argv);
        dprintf(STDERR_FILENO, "could not run %s: %s\n", c->argv[0], strerror(errno));
        _exit(127);
    }
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

    if (!c->up->stopping && bh_up_spawn(c) < 0)
        uv_timer_start(t, on_again, PAUSE_MAX_MS, 0);
}

static void describe_end(const struct bh_up_child *c, char out[static 64])
{
    if (WIFSIGNALED(c->status))
        snprintf(out, 64, "was killed by signal %d", WTERMSIG(c->status));
    else
        snprintf(out, 64, "ended with status %d", WEXITSTATUS(c->status));
}

static void child_ended(struct bh_up_child *c, int status)
{
    char how[64];

    c->pid = 0;
    c->ended = true;
    c->status = status;
    if (c->up->stopping || !c->up->started)
        return; /* while starting: whoever waits for it looks */
    if (bh_mono_ns() - c->started_ns > STEADY_NS)
        c->pause_ms = PAUSE_MIN_MS;
    describe_end(c, how);
    fprintf(stderr, "berth up: %s %s, starting it again (its log: %s)\n", c->name, how, c->log);
    uv_timer_start(&c->again, on_again, c->pause_ms, 0);
    c->pause_ms = BH_MIN(c->pause_ms * 2, PAUSE_MAX_MS);
}

void bh_up_last_words(const struct bh_up_child *c)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n = 0;
    char *line, *rest = NULL;

    if (bh_read_file(c->log, 64u << 20, &text, &n) < 0 || !n)
        return;
    line = n > LAST_WORDS ? strchr(text + n - LAST_WORDS, '\n') : text;
    for (line = strtok_r(line ? line : text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        fprintf(stderr, "  %s\n", line);
}

static void reap(struct bh_up *u)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < u->n; i++)
            if (u->child[i].pid == pid)
                child_ended(&u->child[i], status);
}

void bh_up_on_sigchld(uv_signal_t *s, int signum)
{
    (void)signum;
    reap(s->data);
}

struct bh_up_child *bh_up_add_child(struct bh_up *u, const char *program, const char *name,
                                    const char *const *args)
{
    struct bh_up_child *c = &u->child[u->n++];
    unsigned n = 0;

    bh_assert(u->n <= BH_UP_CHILDREN);
    c->up = u;
    c->pause_ms = PAUSE_MIN_MS;
    snprintf(c->name, sizeof(c->name), "%s", name);
    snprintf(c->log, sizeof(c->log), "%s/%s.log", u->dir, name);
    c->argv[n++] = bh_asprintf("%s/%s", u->bindir, program);
    for (; *args && n < BH_UP_ARGS - 1; args++)
        c->argv[n++] = bh_strdup(*args);
    uv_timer_init(&u->loop, &c->again);
    c->again.data = c;
    return c;
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
        reap(u);
        if (c->pid)
            nanosleep(&ts, NULL);
    }
    if (c->pid) {
        fprintf(stderr, "berth up: %s did not stop in time, killing it\n", c->name);
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
        fprintf(stderr, "berth up: %s %s:\n", c->name, how);
        bh_up_last_words(c);
        return bh_err_set(err, -ECHILD, "%s could not be started", c->name);
    }
    return 0;
}
