/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/file.c - whole small files, the runtime directory
 *
 * Fails with: negative errno; nothing is left behind on failure.
 */
#include "common/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads until the end; files of /proc and pipes report no size, so the size is only a hint. */
static int read_all(int fd, size_t max, size_t hint, char **ret_p, size_t *ret_n)
{
    size_t cap = BH_MIN(hint, max) + 1, n = 0;
    char *p = bh_malloc(cap + 1);

    for (;;) {
        if (n == cap) {
            cap = BH_MIN(cap * 2, max + 1);
            p = bh_realloc(p, cap + 1);
        }
        ssize_t got = read(fd, p + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int rc = -errno;
            free(p);
            return rc;
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n > max) {
            free(p);
            return -EFBIG;
        }
    }
    p[n] = '\0';
    *ret_p = p;
    if (ret_n)
        *ret_n = n;
    return 0;
}

int bh_read_fd(int fd, size_t max, char **ret_p, size_t *ret_n)
{
    struct stat st;

    bh_assert(max < SIZE_MAX / 4);
    if (fstat(fd, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return read_all(fd, max, st.st_size > 0 ? (size_t)st.st_size : 4096, ret_p, ret_n);
}

int bh_read_file(const char *path, size_t max, char **ret_p, size_t *ret_n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = bh_read_fd(fd, max, ret_p, ret_n);
    close(fd);
    return rc;
}

int bh_sync_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    return rc;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -errno;
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

int bh_write_file(const char *path, const void *p, size_t n, unsigned mode)
{
    char *tmp = bh_asprintf("%s.XXXXXX", path);
    int rc = 0;
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        rc = -errno;
        free(tmp);
        return rc;
    }
    rc = write_all(fd, p, n);
    if (rc == 0 && fchmod(fd, (mode_t)mode) < 0)
        rc = -errno;
    /* Without this a power cut may leave the new name with no content. */
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(tmp, path) < 0)
        rc = -errno;
    if (rc < 0)
        unlink(tmp);
    free(tmp);
    return rc;
}

int bh_reserve_file(int fd, uint64_t bytes)
{
    int rc;
    do
        rc = posix_fallocate(fd, 0, (off_t)bytes);
    while (rc == EINTR);
    return rc == EFBIG || rc == ENOSPC || rc == EDQUOT ? -ENOSPC : -rc;
}

static int name_runtime_dir(const char *from_option, char out[static 108], struct bh_err *err)
{
    const char *dir = from_option && *from_option ? from_option : getenv("BERTH_RUNTIME_DIR");
    BH_CLEANUP(bh_freep) char *full = NULL;

    if (!dir || !*dir)
        dir = "/run/berth";
    if (*dir != '/') { /* sockets and other processes need it from the root */
        BH_CLEANUP(bh_freep) char *cwd = getcwd(NULL, 0);
        if (!cwd)
            return bh_err_set(err, -errno, "runtime directory %s: no working directory: %s", dir,
                              strerror(errno));
        while (strncmp(dir, "./", 2) == 0)
            dir += 1 + strspn(dir + 1, "/");
        dir = full =
            bh_asprintf("%s/%s", bh_streq(cwd, "/") ? "" : cwd, bh_streq(dir, ".") ? "" : dir);
    }
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    if (n >= 108)
        return bh_err_set(err, -ENAMETOOLONG, "runtime directory %s: longer than 107 bytes", dir);
    memcpy(out, dir, n);
    out[n] = '\0';
    return 0;
}

int bh_runtime_dir_find(const char *from_option, char out[static 108], struct bh_err *err)
{
    char path[108];
    struct stat st;
    int rc = name_runtime_dir(from_option, path, err);
    if (rc < 0)
        return rc;
    if (stat(path, &st) < 0)
        return bh_err_set(err, -errno, "runtime directory %s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return bh_err_set(err, -ENOTDIR, "runtime directory %s: not a directory", path);
    memcpy(out, path, strlen(path) + 1);
    return 0;
}

int bh_runtime_dir(const char *from_option, char out[static 108], struct bh_err *err)
{
    char path[108];
    int rc = name_runtime_dir(from_option, path, err);
    if (rc < 0)
        return rc;
    if (mkdir(path, 0750) < 0 && errno != EEXIST)
        return bh_err_set(err, -errno, "runtime directory %s: could not create it: %s", path,
                          strerror(errno));
    return bh_runtime_dir_find(path, out, err);
}
