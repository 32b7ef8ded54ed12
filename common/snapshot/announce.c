/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/announce.c - the link in the writer's directory
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

#include "common/base/trusted_file.h"

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

static int check_runtime_dir(const char *runtime_dir, struct bh_err *err)
{
    struct stat st;

    if (stat(runtime_dir, &st) < 0)
        return bh_err_set(err, -errno, "snapshot of %s: %s", runtime_dir, strerror(errno));
    if (st.st_mode & S_IWOTH)
        return bh_err_set(err, -EPERM,
                          "snapshot of %s: the directory is writable for everybody: any user could "
                          "announce a snapshot there",
                          runtime_dir);
    return 0;
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

int bh_snap_announced(const char *runtime_dir, struct bh_snap_announced *ret, struct bh_err *err)
{
    uid_t owner;
    int rc = check_runtime_dir(runtime_dir, err);
    int dir = rc == 0 ? bh_trusted_dir_find(runtime_dir, BH_WATCHER_DIR, &owner, err) : rc;
    if (dir < 0)
        return dir;
    rc = read_link(dir, ret);
    close(dir);
    if (rc < 0)
        return bh_err_set(err, rc, "%s",
                          rc == -EBADMSG ? "what announces it is not a link to one"
                                         : strerror(-rc));
    if (ret->uid != owner)
        return bh_err_set(err, -EPERM,
                          "user %u announced it, in a directory that belongs to user %u",
                          (unsigned)ret->uid, (unsigned)owner);
    return 0;
}

/* Versions before kept the link in the runtime directory itself. Another user's stays. */
static void remove_old_link(const char *runtime_dir)
{
    BH_CLEANUP(bh_freep) char *old = bh_asprintf("%s/" LINK, runtime_dir);
    struct stat st;

    if (lstat(old, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid == geteuid())
        (void)unlink(old);
}

int bh_snap_directory_take(const char *runtime_dir, struct bh_err *err)
{
    struct bh_trusted_dir d;
    int rc = check_runtime_dir(runtime_dir, err);
    if (rc == 0)
        rc = bh_trusted_dir_open(&d, runtime_dir, BH_WATCHER_DIR, err);
    if (rc < 0)
        return rc;
    int fd = d.fd;
    free(d.path);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        remove_old_link(runtime_dir);
        return fd;
    }
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
