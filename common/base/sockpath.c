/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/sockpath.c - what may lie at the path of a Unix socket
 *
 * A process that binds replaces what lies at the path, so that is looked at first.
 */
#include "common/base/sockpath.h"

#include <errno.h>
#include <libgen.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

_Static_assert(BH_SOCKPATH_MAX == sizeof(((struct sockaddr_un *)0)->sun_path) - 1, "unix(7)");

static int check_directory(const char *path, struct bh_err *err)
{
    char copy[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct stat st;

    snprintf(copy, sizeof(copy), "%s", path);
    const char *dir = dirname(copy);
    if (stat(dir, &st) < 0)
        return bh_err_set(err, -errno, "directory \"%s\" of the socket: %s", dir, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return bh_err_set(err, -ENOTDIR, "\"%s\" is not a directory", dir);
    if (st.st_mode & S_IWOTH)
        return bh_err_set(err, -EPERM,
                          "directory \"%s\" is writable for everybody: anyone could put a socket "
                          "there",
                          dir);
    return 0;
}

/* A socket without a listener is left over from a killed process; one that answers is not. */
int bh_sockpath_probe(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strlen(path) > BH_SOCKPATH_MAX)
        return -EINVAL;
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
    close(fd);
    return rc == -EAGAIN ? 0 : rc; /* EAGAIN: its backlog is full */
}

int bh_sockpath_listen(const char *path, int backlog)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    bh_assert(strlen(path) <= BH_SOCKPATH_MAX);
    memcpy(sa.sun_path, path, strlen(path) + 1);
    (void)unlink(path); /* a dead one, if any: the caller looked */
    /* Connecting takes write permission, and there is nothing to connect to before listen(2). */
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && chmod(path, 0660) == 0 &&
        listen(fd, backlog) == 0)
        return fd;
    int rc = -errno;
    close(fd);
    return rc;
}

static int check_obstacle(const char *path, struct bh_err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT
                   ? 0
                   : bh_err_set(err, -errno, "socket \"%s\": %s", path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return bh_err_set(err, -EEXIST, "\"%s\" exists and is not a socket", path);
    if (st.st_uid != geteuid() && geteuid() != 0)
        return bh_err_set(err, -EPERM, "socket \"%s\" belongs to another user (uid %u)", path,
                          (unsigned)st.st_uid);
    if (bh_sockpath_probe(path) == 0)
        return bh_err_set(err, -EADDRINUSE, "socket \"%s\" is in use by a running process", path);
    return 0;
}

int bh_sockpath_check(const char *path, bool for_bind, struct bh_err *err)
{
    if (strlen(path) > BH_SOCKPATH_MAX)
        return bh_err_set(err, -ENAMETOOLONG, "socket path \"%s\" is longer than %u bytes", path,
                          BH_SOCKPATH_MAX);
    int rc = check_directory(path, err);
    return rc == 0 && for_bind ? check_obstacle(path, err) : rc;
}
