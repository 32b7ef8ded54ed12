/* SPDX-License-Identifier: Apache-2.0
 *
 * common/base/notify.c - the service manager's protocol without libsystemd
 *
 * The protocol is the interface (sd_notify(3), "Notes"); linking libsystemd for it is advised
 * against there.
 */
#include "common/base/notify.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int bh_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (!path || !*path)
        return 0;
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || n >= sizeof(addr.sun_path))
        return -EINVAL;
    memcpy(addr.sun_path, path, n);
    if (path[0] == '@')
        addr.sun_path[0] = '\0'; /* abstract: the name is as long as the address says */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr, len);
    int rc = sent < 0 ? -errno : 0;
    close(fd);
    return rc;
}

uint64_t bh_watchdog_interval_ns(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    char *end;

    if (!usec || !*usec || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    errno = 0;
    unsigned long long us = strtoull(usec, &end, 10);
    if (errno || *end || *usec == '-' || us == 0 || us > UINT64_MAX / 1000)
        return 0;
    return us * 1000 / 2;
}
