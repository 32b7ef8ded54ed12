/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/trusted_file.c - files of the runtime directory that a process maps or believes
 */
#include "common/base/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"

#define BOOT_ID    "/proc/sys/kernel/random/boot_id"
#define MACHINE_ID "/etc/machine-id"

/* ---- judging --------------------------------------------------------------------------------- */

static int refuse_mode(const char *path, mode_t mode, struct bh_err *err)
{
    return bh_err_set(err, -EPERM,
                      "\"%s\" has mode %04o, and only its owner may be able to write it: remove it",
                      path, (unsigned)mode & 07777u);
}

static int check_file(int fd, const char *path, uid_t owner, struct bh_err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return bh_err_set(err, -errno, "\"%s\": %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return bh_err_set(err, -EPERM, "\"%s\" is not a regular file: remove it", path);
    if (st.st_uid != owner)
        return bh_err_set(err, -EPERM,
                          "\"%s\" belongs to user %u, and it must belong to user %u: remove it",
                          path, (unsigned)st.st_uid, (unsigned)owner);
    return st.st_mode & (S_IWGRP | S_IWOTH) ? refuse_mode(path, st.st_mode, err) : 0;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* flags: O_RDONLY or O_PATH. A descriptor, *ret_owner. */
static int open_dir(const char *path, int flags, uid_t *ret_owner, struct bh_err *err)
{
    struct stat st;
    int fd = open(path, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;

    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
        return bh_err_set(err, -EPERM, "\"%s\" is not a directory: remove it", path);
    /* Another user's, closed to this one: what is wrong with it is its owner. */
    if (fd < 0 && errno == EACCES && !(flags & O_PATH))
        fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return bh_err_set(err, -errno, "\"%s\": %s", path, strerror(errno));
    if (fstat(fd, &st) < 0)
        rc = bh_err_set(err, -errno, "\"%s\": %s", path, strerror(errno));
    else if (st.st_mode & (S_IWGRP | S_IWOTH))
        rc = refuse_mode(path, st.st_mode, err);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    *ret_owner = st.st_uid;
    return fd;
}

int bh_trusted_dir_open(struct bh_trusted_dir *d, const char *runtime_dir, const char *service,
                        struct bh_err *err)
{
    uid_t owner = 0;
    char *path = bh_asprintf("%s/%s", runtime_dir, service);
    int rc = 0;

    *d = (struct bh_trusted_dir){.fd = -1};
    /* chmod, because the mode of mkdir goes through the umask */
    if (mkdir(path, 0700) == 0 ? chmod(path, 0711) < 0 : errno != EEXIST)
        rc = bh_err_set(err, errno == EDQUOT ? -ENOSPC : -errno, "could not make \"%s\": %s", path,
                        strerror(errno));
    int fd = rc == 0 ? open_dir(path, O_RDONLY, &owner, err) : rc;
    if (fd >= 0 && owner != geteuid()) {
        close(fd);
        fd = bh_err_set(err, -EPERM,
                        "\"%s\" belongs to user %u, and it must belong to user %u: remove it, or "
                        "name another --runtime-dir",
                        path, (unsigned)owner, (unsigned)geteuid());
    }
    if (fd < 0) {
        free(path);
        return fd;
    }
    *d = (struct bh_trusted_dir){.fd = fd, .path = path};
    return 0;
}

void bh_trusted_dir_close(struct bh_trusted_dir *d)
{
    if (d->path)
        close(d->fd);
    free(d->path);
    *d = (struct bh_trusted_dir){.fd = -1};
}

int bh_trusted_dir_find(const char *runtime_dir, const char *service, uid_t *ret_owner,
                        struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", runtime_dir, service);

    return open_dir(path, O_PATH, ret_owner, err);
}

static int remove_one(const char *path, const struct stat *st BH_UNUSED, int type BH_UNUSED,
                      struct FTW *at BH_UNUSED)
{
    (void)remove(path);
    return 0;
}

void bh_remove_tree(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- files ----------------------------------------------------------------------------------- */

int bh_trusted_open(const struct bh_trusted_dir *d, const char *name, int access, uid_t owner,
                    struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = bh_asprintf("%s/%s", d->path, name);
    int fd = openat(d->fd, name, access | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO || errno == EACCES)) {
        int e = errno; /* a link, a directory, a socket; another user's: say which */
        fd = openat(d->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int rc = fd < 0 ? -errno : check_file(fd, path, owner, err);
        if (fd >= 0)
            close(fd);
        if (fd >= 0 && rc < 0)
            return rc;
        errno = e;
        fd = -1;
    }
    if (fd < 0)
        return bh_err_set(err, -errno, "could not open \"%s\": %s", path, strerror(errno));
    int rc = check_file(fd, path, owner, err);
    if (rc < 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

int bh_trusted_create(const struct bh_trusted_dir *d, const char *name, mode_t mode,
                      struct bh_err *err)
{
    int fd = openat(d->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);

    if (fd >= 0)
        return fd;
    return bh_err_set(err, errno == EDQUOT ? -ENOSPC : -errno, "could not make \"%s/%s\": %s",
                      d->path, name, strerror(errno));
}

int bh_trusted_open_own(const struct bh_trusted_dir *d, const char *name, mode_t mode,
                        bool *ret_made, bool *ret_refused, struct bh_err *err)
{
    int fd = bh_trusted_open(d, name, O_RDWR, geteuid(), err);

    *ret_refused = fd == -EPERM;
    *ret_made = false;
    if (fd == -EPERM) {
        bh_log_error("A file is not believed, and made again", bh_kv_s("err", err->msg));
        if (unlinkat(d->fd, name, 0) < 0 && errno != ENOENT)
            return fd;
    }
    if (fd == -EPERM || fd == -ENOENT) {
        fd = bh_trusted_create(d, name, mode, err);
        *ret_made = fd >= 0;
    }
    return fd;
}

int bh_trusted_read(const struct bh_trusted_dir *d, const char *name, size_t max, uid_t owner,
                    char **ret, size_t *ret_n, struct bh_err *err)
{
    int fd = bh_trusted_open(d, name, O_RDONLY, owner, err);

    if (fd < 0)
        return fd;
    int rc = bh_read_fd(fd, max, ret, ret_n);
    close(fd);
    return rc < 0 ? bh_err_set(err, rc, "\"%s/%s\": %s", d->path, name, strerror(-rc)) : 0;
}

/* ---- this boot of this host ------------------------------------------------------------------ */

int bh_host_boot(uint64_t *ret)
{
    BH_CLEANUP(bh_freep) char *boot = NULL, *machine = NULL;
    char name[256] = "";
    size_t n_boot = 0, n_machine = 0;
    int rc = bh_read_file(BOOT_ID, 4096, &boot, &n_boot);

    if (rc < 0 || !n_boot)
        return rc < 0 ? rc : -ENODATA;
    if (bh_read_file(MACHINE_ID, 4096, &machine, &n_machine) < 0 || !n_machine) {
        if (gethostname(name, sizeof(name) - 1) < 0)
            return -errno;
        free(machine);
        machine = bh_strdup(name);
        n_machine = strlen(machine);
    }
    uint64_t h = bh_hash(machine, n_machine, bh_hash(boot, n_boot, 0));
    *ret = h ? h : 1;
    return 0;
}
