/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/build.c - a guest's shared object, made with the C compiler that is there
 *
 * Only people's commands do this; who schedules needs no compiler.
 */
#include <errno.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wasm/wasm_int.h"

extern char **environ;

static int compile(const char *cc, const char *from, const char *to, struct bh_err *err)
{
    /* As Berth itself is compiled: numbers have to come out the same. */
    const char *const words[] = {cc,
                                 "-std=gnu17",
                                 "-O2",
                                 "-w",
                                 "-fPIC",
                                 "-shared",
                                 "-fvisibility=hidden",
                                 "-ffp-contract=off",
                                 "-fno-strict-aliasing",
                                 "-fwrapv",
                                 "-Wl,-z,relro,-z,now,-z,noexecstack",
                                 "-o",
                                 to,
                                 from,
                                 "-lm",
                                 NULL};
    int status = 0;
    pid_t pid;
    int rc = posix_spawnp(&pid, cc, NULL, NULL, (char *const *)(uintptr_t)words, environ);

    if (rc != 0)
        return bh_err_set(err, -rc, "the C compiler %s: %s", cc, strerror(rc));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return bh_err_set(err, -ENOENT, "the C compiler %s is not there", cc);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return bh_err_set(err, -EIO, "the C compiler %s failed on what was made of the guest", cc);
    return 0;
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

static int build_in(const struct bh_wasm_module *m, const char *sha256, const char *work,
                    const char *cc, const char *path, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *c = bh_asprintf("%s/guest.c", work);
    BH_CLEANUP(bh_freep) char *so = bh_asprintf("%s/guest.so", work);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    int rc = bh_wasm_add_c(m, sha256, &b, err);

    if (rc < 0)
        return rc;
    if ((rc = bh_write_file(c, bh_buf_str(&b), b.n, 0600)) < 0)
        return bh_err_set(err, rc, "%s: %s", c, strerror(-rc));
    rc = compile(cc, c, so, err);
    if (rc == 0 && (chmod(so, 0644) < 0 || rename(so, path) < 0))
        rc = bh_err_set(err, -errno, "%s: %s", path, strerror(errno));
    (void)unlink(c);
    (void)unlink(so);
    return rc;
}

int bh_wasm_build(const struct bh_wasm_module *m, const char *sha256, const char *dir,
                  const char *cc, char **ret_path, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *work = bh_asprintf("%s/.wasmc-XXXXXX", dir);
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s.so", dir, sha256);

    if (make_folder(dir) < 0 || !mkdtemp(work))
        return bh_err_set(err, -errno, "%s: %s", dir, strerror(errno));
    int rc = build_in(m, sha256, work, cc, path, err);
    (void)rmdir(work);
    if (rc == 0)
        *ret_path = bh_take_ptr(path);
    return rc;
}
