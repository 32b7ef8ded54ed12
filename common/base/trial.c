/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/trial.c - running code of a file in a child process before it runs in this one
 */
#include "common/base/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIAL_MS 10000
#define WORKS    "it works" /* what the child writes */

/* Waits for the child that tries: its result. */
static int trial_result(pid_t pid, int from, const char *file, struct bh_err *err)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    char text[sizeof err->msg] = "";
    size_t n = 0;
    int status = 0;
    bool late = false;

    for (ssize_t r = 1; r > 0 && n < sizeof text - 1;) {
        int ready = poll(&p, 1, TRIAL_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        late = ready == 0;
        r = ready > 0 ? read(from, text + n, sizeof text - 1 - n) : 0;
        n += r > 0 ? (size_t)r : 0;
    }
    if (late)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (late)
        return bh_err_set(err, -ETIMEDOUT, "%s did not come to an end of loading within %d seconds",
                          file, TRIAL_MS / 1000);
    if (WIFSIGNALED(status))
        return bh_err_set(err, -EFAULT, "%s crashed while it was loaded: %s", file,
                          strsignal(WTERMSIG(status)));
    if (!n)
        return bh_err_set(err, -EINVAL, "%s ended its process while it was loaded", file);
    return bh_streq(text, WORKS) ? 0 : bh_err_set(err, -EINVAL, "%s", text);
}

int bh_try_in_child(const char *file, int (*try)(void *arg, struct bh_err *err), void *arg,
                    struct bh_err *err)
{
    int pipe_fd[2];

    if (pipe2(pipe_fd, O_CLOEXEC) < 0)
        return bh_err_set(err, -errno, "%s: %s", file, strerror(errno));
    pid_t pid = fork();
    if (pid < 0) {
        int rc = -errno;
        close(pipe_fd[0]);
        close(pipe_fd[1]);
        return bh_err_set(err, rc, "%s: no process to try it in: %s", file, strerror(-rc));
    }
    if (pid == 0) {
        struct bh_err why = {0};
        for (int s = 1; s < NSIG; s++) /* the parent's handlers are not for this */
            signal(s, SIG_DFL);
        const char *text = try(arg, &why) < 0 ? why.msg : WORKS;
        _exit(write(pipe_fd[1], text, strlen(text)) < 0);
    }
    close(pipe_fd[1]);
    int rc = trial_result(pid, pipe_fd[0], file, err);
    close(pipe_fd[0]);
    return rc;
}
