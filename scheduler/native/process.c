/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/process.c - the process of a plugin that is not trusted: started, asked, ended
 *
 * Runs in: whoever calls, under the connection's lock; reader() in a thread of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "scheduler/native/process_int.h"

#define PROGRAM  "berth-plugin-host"
#define HIGH_FD  64 /* above those that the process gets */
#define HELLO_NS UINT64_C(10000000000)

/* ---- areas ----------------------------------------------------------------------------------- */

/* The host can neither cut them short under us nor, where it is ours, write. */
static int area_new(const char *name, bool ours, int *ret_fd, struct bh_px_area **ret)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, (off_t)BH_PX_AREA_BYTES) < 0)
        return -errno;
    void *p =
        mmap(NULL, BH_PX_AREA_BYTES, ours ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED ||
        fcntl(fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (ours ? F_SEAL_FUTURE_WRITE : 0)) < 0)
        return -errno;
    *ret_fd = fd;
    *ret = p;
    return 0;
}

/* Beside us, or where an installation has it. */
static void find_program(char path[static PATH_MAX])
{
    static const char *const at[] = {"", "../sbin/", "../bin/", "../libexec/berth/"};
    const char *given = getenv("BERTH_PLUGIN_HOST");
    char exe[PATH_MAX] = "";

    if (given && *given) {
        snprintf(path, PATH_MAX, "%s", given);
        return;
    }
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0)
        exe[0] = '\0';
    const char *dir = dirname(exe);
    for (unsigned i = 0; i < BH_ARRAY_LEN(at); i++) {
        if (snprintf(path, PATH_MAX, "%s/%s" PROGRAM, dir, at[i]) < PATH_MAX &&
            access(path, X_OK) == 0)
            return;
    }
    snprintf(path, PATH_MAX, "%s/" PROGRAM, dir);
}

/* ---- what it says at any time ---------------------------------------------------------------- */

/* What `berth plugins` shows, once a second and when it has changed. */
static void write_down(struct bh_px *x, uint64_t (*written)[BH_PX_PLUGINS])
{
    const uint64_t now = bh_mono_ns() / 1000000000;

    if (now == x->written_s)
        return;
    x->written_s = now;
    for (uint32_t i = 0; i < x->n_told; i++) {
        const uint64_t state = x->plugin[i]->calls * 31 + x->plugin[i]->starts;
        if ((*written)[i] != state)
            bh_native_process_seen(x->plugin[i]);
        (*written)[i] = state;
    }
}

static void *reader(void *arg)
{
    struct bh_px *x = arg;
    const int sock = x->sock;
    struct {
        struct bh_px_frame f;
        char text[BH_PX_TEXT_MAX + 8];
    } m;
    uint64_t written[BH_PX_PLUGINS] = {0};
    ssize_t n;

    while ((n = recv(sock, &m, sizeof m - 1, 0)) > 0 ||
           (n < 0 && (errno == EINTR || errno == EAGAIN))) {
        write_down(x, &written);
        if (n < (ssize_t)sizeof m.f || m.f.n > (size_t)n - sizeof m.f)
            continue;
        m.text[m.f.n] = '\0';
        bh_px_told(x, &m.f, m.text);
    }
    atomic_store(&x->closed, true);
    return NULL;
}

bool bh_px_is_gone(void *arg)
{
    const struct bh_px *x = arg;
    siginfo_t info = {0};

    if (x->parent == getpid())
        return waitid(P_PID, (id_t)x->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid;
    return kill(x->pid, 0) < 0; /* after a fork it is another one's child */
}

/* ---- start and end --------------------------------------------------------------------------- */

static int spawn(struct bh_px *x, const char *path, int sock)
{
    const int from[] = {x->fd, x->down_fd, x->up_fd, sock};
    int high[BH_ARRAY_LEN(from)];
    posix_spawn_file_actions_t a;
    posix_spawnattr_t attr;
    sigset_t none, all;
    char *argv[] = {(char *)(uintptr_t)PROGRAM, (char *)(uintptr_t)x->f->file, NULL};
    char *env[] = {NULL}; /* ours may hold what is nobody else's business */

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&a);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawn_file_actions_addopen(&a, 0, "/dev/null", O_RDONLY, 0);
    for (int i = 1; i < 3; i++)
        posix_spawn_file_actions_addopen(&a, i, "/dev/null", O_WRONLY, 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(from); i++) {
        high[i] = fcntl(from[i], F_DUPFD_CLOEXEC, HIGH_FD);
        posix_spawn_file_actions_adddup2(&a, high[i], BH_PX_FD_PLUGIN + (int)i);
    }
    int rc = -posix_spawn(&x->pid, path, &a, &attr, argv, env);
    for (unsigned i = 0; i < BH_ARRAY_LEN(from); i++)
        if (high[i] >= 0)
            close(high[i]);
    posix_spawn_file_actions_destroy(&a);
    posix_spawnattr_destroy(&attr);
    if (rc < 0)
        x->pid = 0;
    return rc;
}

static int start_reader(struct bh_px *x)
{
    sigset_t all, before;

    const struct timeval second = {1, 0};

    atomic_store(&x->closed, false);
    (void)setsockopt(x->sock, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = -pthread_create(&x->reader, NULL, reader, x);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void note_process(struct bh_px *x)
{
    for (uint32_t i = 0; i < x->n_plugins; i++) {
        atomic_store(&x->plugin[i]->pid, (int)x->pid);
        atomic_store(&x->plugin[i]->starts, x->generation);
    }
}

int bh_px_start(struct bh_px *x, struct bh_px_in *ret, struct bh_err *err)
{
    char path[PATH_MAX], how[128];
    int pair[2] = {-1, -1}, rc = 0;
    struct bh_px_reply r;

    find_program(path);
    if (!x->down && (rc = area_new("berth-plugin-down", true, &x->down_fd, &x->down)) == 0)
        rc = area_new("berth-plugin-up", false, &x->up_fd, &x->up);
    if (rc == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        rc = -errno;
    if (rc < 0)
        return bh_err_set(err, rc, "%s: no memory to share with its process: %s", x->f->file,
                          strerror(-rc));
    atomic_store(&x->down->seq, 0);
    x->seen = atomic_load(&x->up->seq);
    x->parent = getpid();
    rc = spawn(x, path, pair[1]);
    close(pair[1]);
    x->sock = pair[0];
    if (rc == 0 && (rc = start_reader(x)) < 0)
        kill(x->pid, SIGKILL);
    if (rc < 0) {
        close(x->sock);
        return bh_err_set(err, rc, "%s: its process could not be started: %s: %s", x->f->file, path,
                          strerror(-rc));
    }
    x->generation++;
    struct bh_px_out o = bh_px_main(x->down);
    const struct bh_px_request q = {.op = BH_PX_HELLO};
    bh_px_put(&o, &q, sizeof q);
    rc = bh_px_transact(x, NULL, &o, bh_mono_ns() + HELLO_NS, &r, ret);
    if (rc < 0) {
        (void)bh_px_end(x, rc, how, sizeof how);
        return bh_err_set(err, rc, "%s: its process %s while it was loaded", x->f->file, how);
    }
    if (r.code == 0) {
        note_process(x);
        return 0;
    }
    const char *text = ret->p + r.payload;
    bh_err_set(err, -EINVAL, "%s: %.*s", x->f->file, (int)r.n_reason, text);
    (void)bh_px_end(x, 0, how, sizeof how);
    return -EINVAL;
}

/* Did another process (an administrator's, a supervisor's) or the kernel end it? */
static bool is_external(int rc, int status)
{
    for (unsigned i = 0; i < BH_ARRAY_LEN(bh_px_external); i++)
        if (rc == -EPIPE && WIFSIGNALED(status) && WTERMSIG(status) == bh_px_external[i])
            return true;
    return false;
}

static void describe_end(int rc, int status, char *text, size_t n)
{
    if (rc == -ETIMEDOUT)
        snprintf(text, n, "did not answer in time and was ended");
    else if (rc == -EBADMSG)
        snprintf(text, n, "answered what makes no sense");
    else if (rc == -EDQUOT)
        snprintf(text, n, "interned texts of more than %zu MiB and was ended",
                 BH_PX_INTERN_BYTES >> 20);
    else if (is_external(rc, status))
        snprintf(text, n, "was ended by another process or the kernel: %s",
                 strsignal(WTERMSIG(status)));
    else if (WIFSIGNALED(status))
        snprintf(text, n, "crashed: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(text, n, "ended with status %d", WEXITSTATUS(status));
}

/* What the plugins kept in memory is gone, as it is when the scheduler starts again: they cannot allow the pods that
 * wait for them, so these are decided again. */
static void fail_waiting_pods(struct bh_px *x, const char *how)
{
    pthread_mutex_lock(&x->list);
    for (const struct bh_px_instance *i = x->first; i; i = i->next) {
        const char *const name = i->in->of->d.name;
        BH_CLEANUP(bh_freep)
        char *text = bh_asprintf(
            "running Permit plugin \"%s\": its process %s while the pod waited", name, how);
        if (i->in->waiting)
            bh_waiting_fail(i->in->waiting, name, text);
    }
    pthread_mutex_unlock(&x->list);
}

bool bh_px_end(struct bh_px *x, int rc, char *text, size_t n)
{
    int status = 0;

    if (!x->pid)
        return true;
    if (rc != -EPIPE)
        kill(x->pid, SIGKILL);
    if (x->parent == getpid()) {
        while (waitpid(x->pid, &status, 0) < 0 && errno == EINTR)
            ;
        shutdown(x->sock, SHUT_RDWR);
        pthread_join(x->reader, NULL);
    }
    close(x->sock);
    x->pid = 0;
    x->asked = NULL;
    note_process(x);
    describe_end(rc, status, text, n);
    fail_waiting_pods(x, text);
    return !is_external(rc, status);
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* Copied before it is looked at: the other side may write what it likes at any time. */
int bh_px_hear(struct bh_px *x, bool aside, struct bh_px_in *ret)
{
    struct bh_px_in m = bh_px_heard(x->up, aside);

    if (m.bad)
        return -EBADMSG;
    bh_buf_reset(&x->heard);
    if (x->heard.cap > BH_PX_HEARD_KEPT)
        bh_buf_fini(&x->heard);
    bh_buf_add(&x->heard, m.p, (size_t)(m.end - m.p));
    *ret = (struct bh_px_in){.p = bh_buf_str(&x->heard), .end = bh_buf_str(&x->heard) + x->heard.n};
    return 0;
}

static int take_reply(struct bh_px *x, struct bh_px_reply *r, struct bh_px_in *ret)
{
    int rc = bh_px_hear(x, false, ret);
    const void *p = rc == 0 ? bh_px_get(ret, sizeof *r) : NULL;

    if (!p)
        return -EBADMSG;
    memcpy(r, p, sizeof *r);
    const uint64_t left = (uint64_t)(ret->end - ret->p);
    const uint64_t texts =
        ((r->n_reason + UINT64_C(7)) & ~UINT64_C(7)) + ((r->n_broke + UINT64_C(7)) & ~UINT64_C(7));
    return r->payload % 8 == 0 && r->payload <= left && texts <= left - r->payload ? 0 : -EBADMSG;
}

int bh_px_transact(struct bh_px *x, struct bh_px_instance *i, const struct bh_px_out *o,
                   uint64_t deadline_ns, struct bh_px_reply *r, struct bh_px_in *ret)
{
    bh_px_say(x->down, x->up, o->n, false);
    return bh_px_await(x, i, deadline_ns, r, ret);
}

int bh_px_await(struct bh_px *x, struct bh_px_instance *i, uint64_t deadline_ns,
                struct bh_px_reply *r, struct bh_px_in *ret)
{
    struct bh_px_in m;

    x->until_ns = deadline_ns;
    x->failed_rc = 0;
    for (;;) {
        int rc = bh_px_listen(x->down, x->up, x->seen, deadline_ns, bh_px_is_gone, x);
        if (rc < 0)
            return rc;
        if (bh_mono_ns() > deadline_ns)
            return -ETIMEDOUT;
        x->seen = atomic_load(&x->up->seq);
        if (!*(const volatile uint32_t *)&x->up->aside)
            return take_reply(x, r, ret);
        struct bh_px_out a = bh_px_side(x->down);
        if (!i || bh_px_hear(x, true, &m) < 0 || !bh_px_serve(i, &m, &a))
            return x->failed_rc < 0 ? x->failed_rc : -EBADMSG;
        bh_px_say(x->down, x->up, a.full ? 0 : a.n, true);
    }
}

void bh_px_rest(struct bh_px *x)
{
    char how[128];

    pthread_mutex_lock(&x->lock);
    (void)bh_px_end(x, 0, how, sizeof how);
    pthread_mutex_unlock(&x->lock);
}

/* ---- a file ---------------------------------------------------------------------------------- */

int bh_px_open(const struct bh_native_file *f, int fd, struct bh_native_plugin **ret,
               uint32_t *ret_n, struct bh_err *err)
{
    struct bh_px *x = bh_calloc(1, sizeof *x);
    struct bh_px_in m;

    x->f = f;
    x->fd = fd;
    pthread_mutex_init(&x->lock, NULL);
    pthread_mutex_init(&x->list, NULL);
    int rc = bh_px_start(x, &m, err);
    if (rc < 0)
        return rc; /* a file that is refused stays so: what little there is of it stays as well */
    const uint64_t n = bh_px_get_u64(&m);
    for (uint64_t i = 0; i < n && i < BH_PX_PLUGINS && rc >= 0; i++) {
        rc = bh_px_adopt(x, &m, &ret[i], err);
        if (rc >= 0)
            x->plugin[x->n_plugins++] = ret[i];
    }
    *ret_n = x->n_plugins;
    note_process(x);
    atomic_store(&x->n_told, x->n_plugins);
    if (rc < 0) {
        char how[128];
        bh_err_prefix(err, rc, "%s", f->file);
        (void)bh_px_end(x, 0, how, sizeof how);
    }
    return rc;
}
