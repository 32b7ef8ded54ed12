/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/announce.c - the link in the runtime directory
 *
 * A link and not a file: it is read and replaced as a whole, `ls` shows it, and it needs no room on
 * a file system that is full.
 */
#include "common/snapshot/announce.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK     "snapshot"
#define NEW_LINK "snapshot.new" /* left behind by a crash in between, replaced by the next */

/* Two spellings of one folder ("/run/berth/", "/var/run/berth") give one instance. */
uint64_t bh_snap_instance(const char *runtime_dir)
{
    BH_CLEANUP(bh_freep) char *real = realpath(runtime_dir, NULL);
    const char *path = real ? real : runtime_dir;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return bh_hash(path, n, 0);
}

/* An fd, -EPERM, -errno. */
static int open_directory(const char *runtime_dir)
{
    struct stat st;
    int fd = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && !(st.st_mode & S_IWOTH))
        return fd;
    close(fd);
    return -EPERM;
}

/* Owner and target belong to one link: both are asked of the same descriptor. */
static int read_link(int dir, struct bh_snap_announced *ret)
{
    char to[sizeof(BH_SNAP_FOLDER) + BH_SNAP_NAME_MAX];
    struct stat st;
    uint64_t key;
    int fd = openat(dir, LINK, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n =
        fstat(fd, &st) == 0 && S_ISLNK(st.st_mode) ? readlinkat(fd, "", to, sizeof(to)) : -1;
    close(fd);
    if (n < 0 || (size_t)n >= sizeof(to))
        return -EBADMSG;
    to[n] = '\0';
    const size_t folder = strlen(BH_SNAP_FOLDER);
    if (strncmp(to, BH_SNAP_FOLDER, folder) != 0 ||
        !bh_snap_object_parse(to + folder, &ret->instance, &key))
        return -EBADMSG;
    bh_snap_object_name(ret->instance, key, ret->name);
    ret->uid = st.st_uid;
    return 0;
}

int bh_snap_announced(const char *runtime_dir, struct bh_snap_announced *ret)
{
    int dir = open_directory(runtime_dir);
    if (dir < 0)
        return dir;
    int rc = read_link(dir, ret);
    close(dir);
    return rc;
}

int bh_snap_directory_take(const char *runtime_dir, struct bh_err *err)
{
    int rc, fd = open_directory(runtime_dir);
    if (fd == -EPERM)
        return bh_err_set(err, fd,
                          "snapshot of %s: the directory is writable for everybody: anyone could "
                          "announce a snapshot there",
                          runtime_dir);
    if (fd < 0)
        return bh_err_set(err, fd, "snapshot of %s: %s", runtime_dir, strerror(-fd));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    rc = errno == EWOULDBLOCK
             ? bh_err_set(err, -EBUSY, "snapshot of %s: another writer is alive", runtime_dir)
             : bh_err_set(err, -errno, "snapshot of %s: lock: %s", runtime_dir, strerror(errno));
    close(fd);
    return rc;
}

bool bh_snap_announced_is(int dir, const char *name)
{
    struct bh_snap_announced a;
    return read_link(dir, &a) == 0 && bh_streq(a.name, name);
}

int bh_snap_announced_set(int dir, const char *name)
{
    char to[sizeof(BH_SNAP_FOLDER) + BH_SNAP_NAME_MAX];
    snprintf(to, sizeof(to), BH_SNAP_FOLDER "%s", name);
    (void)unlinkat(dir, NEW_LINK, 0);
    if (symlinkat(to, dir, NEW_LINK) == 0 && renameat(dir, NEW_LINK, dir, LINK) == 0)
        return 0;
    int rc = -errno;
    (void)unlinkat(dir, NEW_LINK, 0);
    return rc;
}

void bh_snap_announced_drop(int dir, const char *name)
{
    if (bh_snap_announced_is(dir, name))
        (void)unlinkat(dir, LINK, 0);
}
