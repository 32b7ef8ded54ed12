/* SPDX-License-Identifier: Apache-2.0
 *
 * common/http/listen.c - a listening socket
 *
 * Made here and handed to libmicrohttpd, which would hide the reason of a failure.
 */
#include "common/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/sockpath.h"

#define BACKLOG 4096

union any_addr {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

/* False when it is no literal. */
static bool parse_literal(const char *address, uint16_t port, union any_addr *a, socklen_t *ret_len)
{
    const size_t n = strlen(address);
    const bool brackets = n >= 2 && address[0] == '[' && address[n - 1] == ']';
    BH_CLEANUP(bh_freep)
    char *text = brackets ? bh_strndup(address + 1, n - 2) : bh_strdup(address);

    *a = (union any_addr){.in = {.sin_family = AF_INET, .sin_port = htons(port)}};
    *ret_len = sizeof(a->in);
    if (inet_pton(AF_INET, text, &a->in.sin_addr) == 1)
        return true;
    *a = (union any_addr){.in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
    *ret_len = sizeof(a->in6);
    return inet_pton(AF_INET6, text, &a->in6.sin6_addr) == 1;
}

static int open_socket(const union any_addr *a, socklen_t len, bool v6_only, bool reuse_port,
                       int *ret_fd)
{
    int on = 1, only = v6_only, rc = 0;
    int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0) ||
        (a->sa.sa_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)) < 0) ||
        /* inherited by accepted sockets: a small event must not wait for an acknowledgement */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
        bind(fd, &a->sa, len) < 0 || listen(fd, BACKLOG) < 0)
        rc = -errno;
    if (rc < 0)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

int bh_http_listen_unix(const char *path, int *ret_fd, struct bh_err *err)
{
    int rc = bh_sockpath_check(path, true, err);

    if (rc < 0)
        return rc;
    rc = bh_sockpath_listen(path, BACKLOG);
    if (rc < 0)
        return bh_err_set(err, rc, "could not listen on \"%s\": %s", path, strerror(-rc));
    *ret_fd = rc;
    return 0;
}

int bh_http_listen(const char *address, uint16_t port, bool reuse_port, int *ret_fd,
                   uint16_t *ret_port, struct bh_err *err)
{
    union any_addr a;
    socklen_t len;
    int fd = -1, rc;

    if (address && *address) {
        if (!parse_literal(address, port, &a, &len))
            return bh_err_set(err, -EINVAL, "listen address %s: not an IPv4 or IPv6 address",
                              address);
        rc = open_socket(&a, len, true, reuse_port, &fd);
    } else {
        bool ok = parse_literal("::", port, &a, &len);
        bh_assert(ok);
        rc = open_socket(&a, len, false, reuse_port, &fd);
        if (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL) { /* a kernel without IPv6 */
            ok = parse_literal("0.0.0.0", port, &a, &len);
            bh_assert(ok);
            rc = open_socket(&a, len, false, reuse_port, &fd);
        }
    }
    if (rc < 0)
        return bh_err_set(err, rc, "could not listen on %s port %u: %s",
                          address && *address ? address : "*", port, strerror(-rc));
    len = sizeof(a);
    rc = getsockname(fd, &a.sa, &len);
    bh_assert(rc == 0);
    *ret_port = ntohs(a.sa.sa_family == AF_INET6 ? a.in6.sin6_port : a.in.sin_port);
    *ret_fd = fd;
    return 0;
}
