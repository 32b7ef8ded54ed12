/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/owned.c - files of code that may be loaded: nobody but their owner could have changed
 * them
 *
 * Every component is opened below the one before, so what was looked at is what is used.
 */
#include "common/base/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((off_t)1 << 30)

/* part: the length of the path up to here, for the message. */
static int check_owner(int fd, const char *path, size_t part, bool last, struct bh_err *err)
{
    const int n = (int)BH_MAX(part, (size_t)1);
    struct stat st;

    if (fstat(fd, &st) < 0)
        return bh_err_set(err, -errno, "%.*s: %s", n, path, strerror(errno));
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return bh_err_set(
            err, -EPERM,
            "%.*s belongs to user %u: a plugin and its folders must belong to root or "
            "to user %u, who runs this",
            n, path, st.st_uid, geteuid());
    /* With the sticky bit others can put files beside ours, but not in their place. */
    if (st.st_mode & (S_IWGRP | S_IWOTH) && (last || !(st.st_mode & S_ISVTX)))
        return bh_err_set(err, -EPERM,
                          "%.*s has mode %04o: a plugin and its folders must not be writable for "
                          "group or others",
                          n, path, st.st_mode & 07777u);
    if (last && !S_ISREG(st.st_mode))
        return bh_err_set(err, -EINVAL, "%s is not a regular file", path);
    if (last && st.st_size > FILE_MAX_BYTES)
        return bh_err_set(err, -EFBIG, "%s has %lld bytes, at most %lld are allowed", path,
                          (long long)st.st_size, (long long)FILE_MAX_BYTES);
    return 0;
}

static int open_component(int dir, const char *path, size_t from, size_t to, struct bh_err *err)
{
    char name[NAME_MAX + 1];
    bool last = !path[to];

    if (to - from > NAME_MAX)
        return bh_err_set(err, -ENAMETOOLONG, "%s: %s", path, strerror(ENAMETOOLONG));
    memcpy(name, path + from, to - from);
    name[to - from] = '\0';
    int fd = openat(dir, name, O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY | O_NONBLOCK : O_PATH));
    struct stat st;
    if (fd < 0 && errno != ELOOP)
        return bh_err_set(err, -errno, "%.*s: %s", (int)to, path, strerror(errno));
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode))) {
        if (fd >= 0)
            close(fd);
        return bh_err_set(err, -ELOOP,
                          "%.*s is a symbolic link: give the path of a plugin without any", (int)to,
                          path);
    }
    int rc = check_owner(fd, path, to, last, err);
    if (rc < 0)
        close(fd);
    return rc < 0 ? rc : fd;
}

int bh_owned_open(const char *path, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *whole = NULL;
    char here[PATH_MAX] = "";

    if (*path != '/' && !getcwd(here, sizeof here))
        return bh_err_set(err, -errno, "the current folder: %s", strerror(errno));
    whole = *path == '/' ? bh_strdup(path) : bh_asprintf("%s/%s", here, path);
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return bh_err_set(err, -errno, "/: %s", strerror(errno));
    for (size_t n = strlen(whole); n > 1 && whole[n - 1] == '/'; n--)
        whole[n - 1] = '\0';
    for (size_t at = 0, to; whole[at];) {
        at += strspn(whole + at, "/");
        to = at + strcspn(whole + at, "/");
        int next = open_component(fd, whole, at, to, err);
        close(fd);
        if (next < 0)
            return next;
        fd = next;
        at = to;
    }
    return fd;
}
