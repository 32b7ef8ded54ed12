/* SPDX-License-Identifier: Apache-2.0
 *
 * common/bus/endpoint.c - names of sockets, and who may stand behind them
 *
 * Fails with: see bus_int.h. libzmq silently replaces whatever lies at the path of an ipc endpoint,
 * so what it would replace is looked at first.
 */
#include "common/bus/bus_int.h"

#include <errno.h>
#include <libgen.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATH_MAX_BYTES (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

int bh_bus_endpoint(const char *runtime_dir, const char *name, char out[static 128],
                    struct bh_err *err)
{
    char path[PATH_MAX_BYTES + 1];
    int n = snprintf(path, sizeof(path), "%s/%s.sock", runtime_dir, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return bh_err_set(err, -ENAMETOOLONG,
                          "socket path \"%s/%s.sock\" is longer than %zu bytes: choose a shorter "
                          "runtime directory",
                          runtime_dir, name, PATH_MAX_BYTES);
    snprintf(out, 128, "ipc://%s", path);
    return 0;
}

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

static const char scheme[] = "ipc://";

/* A socket on which nobody listens is left over from a killed process; one that answers is not. */
int bh_bus_probe(const char *endpoint)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strncmp(endpoint, scheme, sizeof(scheme) - 1) != 0 ||
        strlen(endpoint + sizeof(scheme) - 1) > PATH_MAX_BYTES)
        return -EINVAL;
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", endpoint + sizeof(scheme) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
    close(fd);
    return rc == -EAGAIN ? 0 : rc; /* EAGAIN: its backlog is full */
}

static int check_obstacle(const char *endpoint, struct bh_err *err)
{
    const char *path = endpoint + sizeof(scheme) - 1;
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
    if (bh_bus_probe(endpoint) == 0)
        return bh_err_set(err, -EADDRINUSE, "socket \"%s\" is in use by a running process", path);
    return 0;
}

int bh_bus_check_path(const char *endpoint, bool for_bind, const char **ret_path,
                      struct bh_err *err)
{
    if (strncmp(endpoint, scheme, sizeof(scheme) - 1) != 0 || endpoint[sizeof(scheme) - 1] != '/')
        return bh_err_set(err, -EINVAL, "endpoint \"%s\" is not ipc:// and an absolute path",
                          endpoint);
    const char *path = endpoint + sizeof(scheme) - 1;
    if (strlen(path) > PATH_MAX_BYTES)
        return bh_err_set(err, -ENAMETOOLONG, "socket path \"%s\" is longer than %zu bytes", path,
                          PATH_MAX_BYTES);
    int rc = check_directory(path, err);
    if (rc == 0 && for_bind)
        rc = check_obstacle(endpoint, err);
    if (rc < 0)
        return rc;
    *ret_path = path;
    return 0;
}
