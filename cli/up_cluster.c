/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/up_cluster.c - a whole Berth on this machine, for `berth up` and `berth bench`
 *
 * Owns:       the runtime directory when it made it, and the built-in server's kubeconfig.
 * Invariants: stopping goes in reverse order of starting; what we made in the file system goes with
 *             us.
 * Runs in:    the loop that bh_up_open made.
 */
#include "cli/up.h"
#include "common/base/trusted_file.h"
#include "scheduler/decisions/recorder.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_WAIT_NS UINT64_C(60000000000) /* of a busy machine: one that ends is seen at once */
#define TEMPORARY     "berth-up-"
#define FRONT_PORT    10259 /* kube-scheduler's */
#define QUOTAS        "elasticquotas.scheduling.x-k8s.io/status"

/* ---- runtime directory ----------------------------------------------------------------------- */

/* What was made in the file system. */
static void remove_traces(const struct bh_up *u)
{
    if (u->own_server && *u->kubeconfig) { /* of a server that is gone */
        (void)unlink(u->kubeconfig);
        (void)unlink(u->config);
    }
    if (u->made_dir)
        bh_remove_tree(u->dir);
}

/* Locks up.lock of a directory whose owner ended without removing it. The owner writes its pid after it
 * has locked the file: an empty one belongs to a start that is under way. -1: it is in use. */
static int lock_left_dir(const char *dir)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/up.lock", dir);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
        st.st_uid == geteuid())
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Directories of our own that a kill or a power cut left in base. */
static void sweep_left_dirs(const char *base)
{
    DIR *d = opendir(base);
    struct dirent *e;

    while (d && (e = readdir(d))) {
        struct bh_up left = {.made_dir = true};
        struct stat st;
        int fd;
        if (strncmp(e->d_name, TEMPORARY, sizeof(TEMPORARY) - 1) != 0 ||
            fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
            st.st_uid != geteuid() ||
            snprintf(left.dir, sizeof(left.dir), "%s/%s", base, e->d_name) >= (int)sizeof(left.dir))
            continue;
        if ((fd = lock_left_dir(left.dir)) < 0)
            continue;
        remove_traces(&left);
        close(fd);
    }
    if (d)
        closedir(d);
}

/* A process that waits until we and all children have ended, in whatever way, and then removes what we
 * had no time to remove. It holds none of our descriptors. */
static int start_guard(struct bh_up *u, struct bh_err *err)
{
    int end[2];
    char c;

    if (pipe2(end, O_CLOEXEC) < 0 || fcntl(end[1], F_SETFD, 0) < 0)
        return bh_err_set(err, -errno, "could not make a pipe: %s", strerror(errno));
    u->guarded = end[1];
    u->guard = fork();
    if (u->guard == 0) {
        const int quiet[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
        for (size_t i = 0; i < BH_ARRAY_LEN(quiet); i++)
            signal(quiet[i], SIG_IGN);
        setsid();
        int null = open("/dev/null", O_RDWR);
        dup2(end[0], STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        close_range(STDERR_FILENO + 1, ~0u, 0);
        while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR)
            ;
        if (lock_left_dir(u->dir) >= 0) /* else another 'berth up' is in it already */
            remove_traces(u);
        _exit(0);
    }
    close(end[0]);
    return u->guard < 0 ? bh_err_set(err, -errno, "could not fork: %s", strerror(errno)) : 0;
}

static int make_dir(struct bh_up *u, const char *wanted, struct bh_err *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR");

    if (wanted)
        return bh_runtime_dir(wanted, u->dir, err);
    if (!base || !*base || access(base, W_OK) != 0)
        base = getenv("TMPDIR");
    if (!base || !*base)
        base = "/tmp";
    sweep_left_dirs(base);
    int n = snprintf(u->dir, sizeof(u->dir), "%s/" TEMPORARY "XXXXXX", base);
    if (n < 0 || (size_t)n >= sizeof(u->dir) - 24)
        return bh_err_set(err, -ENAMETOOLONG, "runtime directory below \"%s\": path too long",
                          base);
    if (!mkdtemp(u->dir))
        return bh_err_set(err, -errno, "could not make a runtime directory below \"%s\": %s", base,
                          strerror(errno));
    u->made_dir = true;
    return 0;
}

/* Two of us in one directory would take each other's files. The lock is the kernel's, it ends with
 * the process however that ends; the file tells the next one whose it is, and since when. */
static int lock_dir(struct bh_up *u, struct bh_err *err)
{
    char path[sizeof(u->dir) + 16], text[16] = "", since[32] = "";
    struct stat st;
    struct tm tm;

    snprintf(path, sizeof(path), "%s/up.lock", u->dir);
    u->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);
    if (u->lock < 0)
        return bh_err_set(err, -errno, "\"%s\": %s", path, strerror(errno));
    if (flock(u->lock, LOCK_EX | LOCK_NB) == 0) {
        int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
        return pwrite(u->lock, text, (size_t)n, 0) == n && ftruncate(u->lock, n) == 0
                   ? 0
                   : bh_err_set(err, -EIO, "\"%s\": could not write to it", path);
    }
    if (errno != EWOULDBLOCK)
        return bh_err_set(err, -errno, "\"%s\": could not lock it: %s", path, strerror(errno));
    ssize_t n = pread(u->lock, text, sizeof(text) - 1, 0);
    text[BH_MAX(BH_MAX(n, 0) - 1, 0)] = '\0';
    if (fstat(u->lock, &st) == 0 && gmtime_r(&st.st_mtime, &tm))
        strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &tm);
    return bh_err_set(err, -EBUSY,
                      "runtime directory %s: another 'berth up' runs in it (process %s, since %s): "
                      "stop it, or choose another --runtime-dir",
                      u->dir, text, since);
}

/* The page may change the scheduler's file: a copy, never the one that was given. */
static int copy_config(struct bh_up *u, const char *from, struct bh_err *err)
{
    static const char nothing[] = "apiVersion: kubescheduler.config.k8s.io/v1\n"
                                  "kind: KubeSchedulerConfiguration\n";
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n = sizeof(nothing) - 1;
    int rc = from ? bh_read_file(from, (size_t)4 << 20, &text, &n) : 0;

    snprintf(u->config, sizeof(u->config), "%s/scheduler.yaml", u->dir);
    if (rc == 0)
        rc = bh_write_file(u->config, text ? text : nothing, n, 0600);
    return rc < 0 ? bh_err_set(err, rc, "could not copy %s to %s: %s", from ? from : "the defaults",
                               u->config, strerror(-rc))
                  : 0;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* What watcher and front read of configuration and flags, behind the first n. */
static void add_config(const char **args, unsigned n, const struct bh_up_options *a)
{
    if (!a->leader_elect)
        args[n++] = "--leader-elect=false";
    if (a->config) {
        args[n++] = "--config";
        args[n++] = a->config;
    }
    if (a->gates)
        args[n++] = a->gates;
}

/*
 * Is the port free on the loopback? 0 = take any. Returns the port, 0 = taken. It stays ours until
 * *held is closed: a socket that is bound and does not listen is in no child's way, but keeps
 * everybody else from being given the port, before the child listens and between two of its lives.
 */
static uint16_t hold_port(uint16_t port, int *held)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
              bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
              getsockname(fd, (struct sockaddr *)&sa, &len) == 0;

    if (ok)
        *held = fd;
    else if (fd >= 0)
        close(fd);
    return ok ? ntohs(sa.sin_port) : 0;
}

static void describe_scheduler(struct bh_up *u, const struct bh_up_options *a)
{
    const char *args[16] = {"--runtime-dir", u->dir, "--metrics-address", "127.0.0.1:0"};
    char file[sizeof(u->dir) + sizeof(BH_DECISIONS_RUNTIME) + 1];
    unsigned n = 4;

    snprintf(file, sizeof(file), "%s/" BH_DECISIONS_RUNTIME, u->dir);
    if (!bh_streq(a->record, "off")) {
        args[n++] = "--record-decisions";
        args[n++] = a->record;
        args[n++] = "--decisions-file"; /* where the simulator looks */
        args[n++] = file;
    }
    if (u->own_server || a->config) {
        args[n++] = "--config";
        args[n++] = u->own_server ? u->config : a->config;
    }
    if (a->gates)
        args[n++] = a->gates;
    if (a->observe)
        args[n++] = "--observe";
    bh_up_add_child(u, "berth-scheduler", "scheduler", args, NULL);
}

static void describe_server(struct bh_up *u, const struct bh_up_options *a)
{
    char port[16];
    const char *args[20] = {"--port",        port,  "--kubeconfig-out", u->kubeconfig,
                            "--runtime-dir", u->dir};
    unsigned n = 6;

    /* The same one for each of its lives: the others go on where it was. */
    snprintf(port, sizeof(port), "%d", a->port ? (int)a->port : hold_port(0, &u->held[0]));
    args[n++] = "--annotate-decisions";
    args[n++] = a->annotate ? "full" : "off";
    if (a->data) {
        args[n++] = "--data";
        args[n++] = a->data;
    }
    if (a->gates)
        args[n++] = a->gates;
    if (a->runtime_config)
        args[n++] = a->runtime_config;
    if (a->no_kubelet)
        args[n++] = "--no-kubelet";
    if (a->observe) {
        args[n++] = "--observe";
        args[n++] = a->kubeconfig;
        args[n++] = "--observe-config";
        args[n++] = u->config;
    }
    const bool forgets = !a->data && !a->observe;
    if (forgets) {
        args[n++] = "--lost";
        args[n++] = "";
    }
    bh_up_add_child(u, "berth-simulator", "simulator", args, NULL);
    if (forgets)
        u->child[u->n - 1].loss = &u->child[u->n - 1].argv[n];
}

/* The plugins find what it writes by our environment. */
static void add_metrics(struct bh_up *u, const char *source)
{
    const char *url = strchr(source, '=');
    char *file = bh_asprintf("%s/node-metrics", u->dir);
    char *name = bh_strndup(source, url ? (size_t)(url - source) : strlen(source));
    const char *const args[] = {"--source",
                                name,
                                "--output",
                                file,
                                url ? "--address" : "--kubeconfig",
                                url ? url + 1 : u->kubeconfig,
                                NULL};

    setenv("BERTH_NODE_METRICS", file, 1);
    bh_up_add_child(u, "berth-metrics", "metrics", args, NULL);
    free(name);
    free(file);
}

static void describe_children(struct bh_up *u, const struct bh_up_options *a)
{
    char name[32], instance[16], port[16];
    const char *front[16] = {"--runtime-dir",
                             u->dir,
                             "--secure-port",
                             port,
                             "--authentication-kubeconfig",
                             u->kubeconfig,
                             "--authorization-kubeconfig",
                             u->kubeconfig};

    if (u->own_server)
        describe_server(u, a);
    const char *args[16] = {"--api-kubeconfig",  u->kubeconfig, "--runtime-dir", u->dir,
                            "--metrics-address", "127.0.0.1:0"};
    /* Where nobody else writes it, and nothing but our own plugins is at stake. */
    const char *writes = a->plugin_writes ? a->plugin_writes : u->own_server ? QUOTAS : NULL;
    add_config(args, 6, a);
    bh_up_add_child(u, "berth-watcher", "watcher", args, NULL);
    describe_scheduler(u, a);
    for (int64_t i = 1; !a->observe && i <= a->binders; i++) {
        snprintf(name, sizeof(name), "binder-%d", (int)i);
        snprintf(instance, sizeof(instance), "%d", (int)i);
        bh_up_add_child(u, "berth-binder", name,
                        (const char *const[]){"--api-kubeconfig", u->kubeconfig, "--runtime-dir",
                                              u->dir, "--instance", instance,
                                              writes ? "--plugin-writes" : NULL, writes, NULL},
                        NULL);
    }
    snprintf(port, sizeof(port), "%u", u->front_port);
    add_config(front, 8, a);
    if (a->node_metrics)
        add_metrics(u, a->node_metrics);
    if (!a->no_front) /* started last: it tells about the others */
        bh_up_add_child(u, "berth-front", "front", front, NULL);
}

int bh_up_prepare(struct bh_up *u, const struct bh_up_options *a, struct bh_err *err)
{
    int rc = make_dir(u, a->runtime, err), n;

    if (rc == 0)
        rc = lock_dir(u, err);
    if (rc < 0)
        return rc;
    if (u->own_server) {
        n = snprintf(u->kubeconfig, sizeof(u->kubeconfig), "%s/kubeconfig", u->dir);
        bh_assert(n > 0 && (size_t)n < sizeof(u->kubeconfig));
        (void)unlink(u->kubeconfig);
        rc = copy_config(u, a->config, err);
    }
    if (rc == 0)
        rc = start_guard(u, err);
    u->elects = a->leader_elect;
    if (!a->no_front) {
        u->front_port = a->front_port > 0 ? (uint16_t)a->front_port : 0;
        if (a->front_port < 0)
            u->front_port = hold_port(FRONT_PORT, &u->held[1]);
        if (!u->front_port)
            u->front_port = hold_port(0, &u->held[1]);
    }
    describe_children(u, a);
    return rc;
}

int bh_up_start_child(struct bh_up *u, struct bh_up_child *c, struct bh_err *err)
{
    int rc = bh_up_spawn(c);

    if (rc < 0)
        return bh_err_set(err, rc, "could not start %s with log %s: %s", c->name, c->log,
                          strerror(-rc));
    if (c != u->child || !u->own_server)
        return 0;
    /* The built-in server tells where it listens by writing the kubeconfig. */
    for (uint64_t end = bh_mono_ns() + START_WAIT_NS;
         rc == 0 && bh_mono_ns() < end && bh_up_pump(u);) {
        if (access(u->kubeconfig, R_OK) == 0)
            return 0;
        rc = bh_up_all_alive(u, err);
    }
    if (rc == 0 && !u->stopping) {
        rc = bh_err_set(err, -ETIMEDOUT, "the built-in API server did not come up");
        bh_up_last_words(c);
    }
    return rc;
}

void bh_up_stop(struct bh_up *u)
{
    u->stopping = true;
    for (unsigned i = 0; i < u->n; i++)
        if (strncmp(u->child[i].name, "binder-", 7) == 0)
            bh_up_tell_to_stop(&u->child[i]); /* all at once: each may take a second */
    for (unsigned i = u->n; i-- > 0;)
        bh_up_stop_child(u, &u->child[i]);
    remove_traces(u);
    if (u->guard > 0) { /* a plugin's process may still hold the pipe: it does not wait for that */
        close(u->guarded);
        kill(u->guard, SIGKILL);
        (void)waitpid(u->guard, NULL, 0);
    }
    for (unsigned i = 0; i < BH_ARRAY_LEN(u->held); i++)
        if (u->held[i] > 0)
            close(u->held[i]);
    if (u->lock > 0)
        close(u->lock);              /* the last thing: the next one may come */
    uv_run(&u->loop, UV_RUN_NOWAIT); /* a signal that came meanwhile */
}
