/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/build.c - a guest's shared object, made with the C compiler that is there
 *
 * Only people's commands do this; who schedules needs no compiler.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wasm/wasm_int.h"

#define PART_INS 20000u
#define PART_CPU 60u
#define AT_ONCE  4u /* compilers: gcc had 368 MiB for a part of a large guest */

struct job { /* a part that is being compiled */
    pid_t pid;
    uint32_t number;
};
struct builder {
    const struct bh_wasm_module *m;
    const char *sha256, *work;
    struct bh_wasm_build *how;
    struct job jobs[AT_ONCE]; /* the oldest is first */
    uint32_t n_jobs, at_once;
    sigset_t signals; /* that were held before */
};

/* Who is told to end does so when the files are taken away; compilers at once. */
static void hold_signals(sigset_t *ret_was)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, ret_was);
}

static bool is_to_end(void)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
           sigismember(&pending, SIGHUP);
}

static _Noreturn void become(const struct builder *k, const char *const *words)
{
    const uint32_t cpu_s = k->how->cpu_s;
    struct rlimit limit;

    /* What the compiler starts has the same limit; who may have less already keeps that. */
    (void)getrlimit(RLIMIT_CPU, &limit);
    limit.rlim_max = BH_MIN(limit.rlim_max, cpu_s + UINT64_C(5));
    limit.rlim_cur = BH_MIN(limit.rlim_max, cpu_s);
    pthread_sigmask(SIG_SETMASK, &k->signals, NULL);
    if (setrlimit(RLIMIT_CPU, &limit) == 0)
        (void)execvp(words[0], (char *const *)(uintptr_t)words);
    _exit(errno == ENOENT ? 127 : 126);
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static int begin(const struct builder *k, const char *const *words, pid_t *ret, struct bh_err *err)
{
    *ret = fork();
    if (*ret == 0)
        become(k, words);
    return *ret < 0 ? bh_err_set(err, -errno, "the C compiler %s: %s", words[0], strerror(errno))
                    : 0;
}

/* -ETIMEDOUT: it, or what it started, had no more time. */
static int end(pid_t pid, const char *cc, uint32_t cpu_s, struct bh_err *err)
{
    struct rusage used = {0};
    int status = 0;

    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return bh_err_set(err, -ENOENT, "the C compiler %s is not there", cc);
    if (WIFEXITED(status) && !WEXITSTATUS(status))
        return 0;
    /* A compiler's driver says of what it started only that it failed; clocks differ a little. */
    if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) ||
        seconds(used.ru_utime) + seconds(used.ru_stime) >= 0.8 * cpu_s)
        return bh_err_set(err, -ETIMEDOUT,
                          "the C compiler %s did not end within %u seconds on what was made of the "
                          "guest: it can be interpreted",
                          cc, cpu_s);
    return bh_err_set(err, -EIO, "the C compiler %s failed on what was made of the guest", cc);
}

static char *file_of(const struct builder *k, uint32_t number, const char *kind)
{
    return bh_asprintf("%s/%u.%s", k->work, number, kind);
}

static int compile(const struct builder *k, struct job *j, const char *level, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *from = file_of(k, j->number, "c");
    BH_CLEANUP(bh_freep) char *to = file_of(k, j->number, "o");
    /* As Berth itself is compiled: numbers have to come out the same. */
    const char *const words[] = {k->how->cc,
                                 "-std=gnu17",
                                 level,
                                 "-w",
                                 "-fPIC",
                                 "-fvisibility=hidden",
                                 "-ffp-contract=off",
                                 "-fno-strict-aliasing",
                                 "-fwrapv",
                                 "-c",
                                 "-o",
                                 to,
                                 from,
                                 NULL};

    return begin(k, words, &j->pid, err);
}

/* Waits for the oldest. */
static int finish_one(struct builder *k, struct bh_err *err)
{
    struct job j = k->jobs[0];
    int rc = end(j.pid, k->how->cc, k->how->cpu_s, err);

    memmove(k->jobs, k->jobs + 1, --k->n_jobs * sizeof *k->jobs);
    if (rc != -ETIMEDOUT)
        return rc;
    k->how->hasty++;
    rc = compile(k, &j, "-O1", err);
    return rc < 0 ? rc : end(j.pid, k->how->cc, k->how->cpu_s, err);
}

static void give_up(struct builder *k)
{
    while (k->n_jobs) {
        struct bh_err ignored = {0};
        (void)kill(k->jobs[--k->n_jobs].pid, SIGTERM);
        (void)end(k->jobs[k->n_jobs].pid, "", k->how->cpu_s, &ignored);
    }
}

static int link_parts(const struct builder *k, const char *to, struct bh_err *err)
{
    const char **words = bh_calloc(k->how->files + 8, sizeof *words);
    uint32_t n = 0;

    words[n++] = k->how->cc;
    words[n++] = "-shared";
    words[n++] = "-Wl,-z,relro,-z,now,-z,noexecstack";
    words[n++] = "-o";
    words[n++] = to;
    for (uint32_t i = 0; i < k->how->files; i++)
        words[n++] = file_of(k, i, "o");
    words[n] = "-lm";
    pid_t pid = 0;
    int rc = begin(k, words, &pid, err);
    if (rc == 0)
        rc = end(pid, k->how->cc, k->how->cpu_s, err);
    while (n > 5)
        free((char *)(uintptr_t)words[--n]);
    free(words);
    return rc;
}

/* With the one above it. */
static int make_folder(const char *dir)
{
    BH_CLEANUP(bh_freep) char *above = bh_strdup(dir);
    char *last = strrchr(above, '/');

    if (last && last > above) {
        *last = '\0';
        (void)mkdir(above, 0755);
    }
    return mkdir(dir, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int build_part(struct builder *k, uint32_t from, uint32_t to, struct bh_err *err)
{
    struct job *j = &k->jobs[k->n_jobs];
    BH_CLEANUP(bh_freep) char *c = file_of(k, k->how->files, "c");
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    int rc = bh_wasm_add_part(k->m, k->sha256, from, to, &b, err);

    if (rc < 0)
        return rc;
    j->number = k->how->files++;
    if ((rc = bh_write_file(c, bh_buf_str(&b), b.n, 0600)) < 0)
        return bh_err_set(err, rc, "%s: %s", c, strerror(-rc));
    rc = compile(k, j, "-O2", err);
    k->n_jobs += rc == 0;
    return rc;
}

static int build_parts(struct builder *k, struct bh_err *err)
{
    uint32_t at = k->m->n_imported_funcs, to;
    int rc = 0;

    do {
        if (k->n_jobs == k->at_once && (rc = finish_one(k, err)) < 0)
            return rc;
        if (is_to_end())
            return bh_err_set(err, -EINTR, "it was told to end");
        to = bh_wasm_part(k->m, at, k->how->part);
        rc = build_part(k, at, to, err);
        at = to;
    } while (rc == 0 && at < k->m->n_funcs);
    while (rc == 0 && k->n_jobs)
        rc = finish_one(k, err);
    return rc;
}

static int build_in(struct builder *k, const char *path, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *so = bh_asprintf("%s/guest.so", k->work);
    int rc = build_parts(k, err);

    give_up(k);
    if (rc == 0)
        rc = link_parts(k, so, err);
    if (rc == 0 && (chmod(so, 0644) < 0 || rename(so, path) < 0))
        rc = bh_err_set(err, -errno, "%s: %s", path, strerror(errno));
    if (rc == 0)
        rc = bh_wasm_seal(path, k->sha256, err);
    (void)unlink(so);
    for (uint32_t i = 0; i < k->how->files; i++) {
        BH_CLEANUP(bh_freep) char *c = file_of(k, i, "c"), *o = file_of(k, i, "o");
        (void)unlink(c);
        (void)unlink(o);
    }
    return rc;
}

int bh_wasm_build(const struct bh_wasm_module *m, const char *sha256, const char *dir,
                  struct bh_wasm_build *how, char **ret_path, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *work = bh_asprintf("%s/.wasmc-XXXXXX", dir);
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s.so", dir, sha256);
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    struct builder k = {.m = m, .sha256 = sha256, .work = work, .how = how};

    k.at_once = (uint32_t)BH_MIN(BH_MAX(cpus, 1), (long)AT_ONCE);

    how->part = how->part ? how->part : PART_INS;
    how->cpu_s = how->cpu_s ? how->cpu_s : PART_CPU;
    how->files = how->hasty = 0;
    hold_signals(&k.signals);
    int rc = make_folder(dir) < 0 || !mkdtemp(work)
                 ? bh_err_set(err, -errno, "%s: %s", dir, strerror(errno))
                 : build_in(&k, path, err);
    (void)rmdir(work);
    pthread_sigmask(SIG_SETMASK, &k.signals, NULL);
    if (rc == 0)
        *ret_path = bh_take_ptr(path);
    return rc;
}
