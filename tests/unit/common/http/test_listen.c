/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/http/test_listen.c - addresses to listen on, and what they cannot be
 */
#include "common/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/harness.h"

/* The address that it listens on, and the family; negative errno: it does not. */
static int listens_on(const char *address, char text[static INET6_ADDRSTRLEN], uint16_t *ret_port,
                      struct bh_err *err)
{
    struct sockaddr_storage ss = {0};
    const struct sockaddr_in *in = (const void *)&ss;
    const struct sockaddr_in6 *in6 = (const void *)&ss;
    socklen_t len = sizeof(ss);
    int fd = -1;
    const int rc = bh_http_listen(address, 0, false, &fd, ret_port, err);

    if (rc < 0)
        return rc;
    CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
    const bool six = ss.ss_family == AF_INET6;
    inet_ntop(ss.ss_family, six ? (const void *)&in6->sin6_addr : &in->sin_addr, text,
              INET6_ADDRSTRLEN);
    CU_ASSERT_EQUAL(ntohs(six ? in6->sin6_port : in->sin_port), *ret_port);
    close(fd);
    return ss.ss_family;
}

static void test_addresses(void)
{
    static const struct {
        const char *given, *is;
        int family;
    } cases[] = {{"127.0.0.1", "127.0.0.1", AF_INET},
                 {"[127.0.0.1]", "127.0.0.1", AF_INET},
                 {"0.0.0.0", "0.0.0.0", AF_INET},
                 {"::1", "::1", AF_INET6},
                 {"[::1]", "::1", AF_INET6},
                 {"0000:0000:0000:0000:0000:0000:0000:0001", "::1", AF_INET6}};

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char text[INET6_ADDRSTRLEN] = "";
        struct bh_err err = {""};
        uint16_t port = 0;
        const int family = listens_on(cases[i].given, text, &port, &err);
        if (family == -EADDRNOTAVAIL || family == -EAFNOSUPPORT) {
            CU_ASSERT_EQUAL(cases[i].family, AF_INET6); /* a kernel without IPv6 */
            continue;
        }
        CU_ASSERT_EQUAL(family, cases[i].family);
        CU_ASSERT_STRING_EQUAL(text, cases[i].is);
        CU_ASSERT(port != 0);
    }
}

static void test_what_is_no_address(void)
{
    static const char *const bad[] = {
        "localhost", "127.0.0.1:80", "[::1", "::1]", "[]", "[", "256.0.0.1", "::1%lo",
        /* as long as the longest address, longer, and one that would be good if it was cut */
        "0000:0000:0000:0000:0000:0000:255.255.255.2555", "::0000000000000000000000000000000000001",
        "0000:0000:0000:0000:0000:0000:255.255.255.255 and what else"};

    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        char text[INET6_ADDRSTRLEN] = "", said[128];
        struct bh_err err = {""};
        uint16_t port = 0;
        CU_ASSERT_EQUAL(listens_on(bad[i], text, &port, &err), -EINVAL);
        snprintf(said, sizeof(said), "listen address %s: not an IPv4 or IPv6 address", bad[i]);
        CU_ASSERT_STRING_EQUAL(err.msg, said);
    }
}

static void test_every_address(void)
{
    static const char *const every[] = {NULL, ""};

    for (size_t i = 0; i < BH_ARRAY_LEN(every); i++) {
        char text[INET6_ADDRSTRLEN] = "";
        struct bh_err err = {""};
        uint16_t port = 0;
        const int family = listens_on(every[i], text, &port, &err);
        CU_ASSERT_STRING_EQUAL(text, family == AF_INET6 ? "::" : "0.0.0.0");
        CU_ASSERT(port != 0);
    }
}

static void test_a_port_that_is_taken(void)
{
    struct bh_err err = {""};
    char said[128];
    int fd = -1, second = -1;
    uint16_t port = 0, again = 0;

    CU_ASSERT_EQUAL_FATAL(bh_http_listen("127.0.0.1", 0, false, &fd, &port, &err), 0);
    CU_ASSERT_EQUAL(bh_http_listen("127.0.0.1", port, false, &second, &again, &err), -EADDRINUSE);
    snprintf(said, sizeof(said), "could not listen on 127.0.0.1 port %u: Address already in use",
             port);
    CU_ASSERT_STRING_EQUAL(err.msg, said);
    CU_ASSERT_EQUAL(second, -1);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(bh_http_listen("127.0.0.1", 0, true, &fd, &port, &err), 0);
    CU_ASSERT_EQUAL(bh_http_listen("127.0.0.1", port, true, &second, &again, &err), 0); /* shared */
    CU_ASSERT_EQUAL(again, port);
    close(second);
    close(fd);
}

BH_TESTS("common/http/listen", {"addresses", test_addresses},
         {"what is no address", test_what_is_no_address}, {"every address", test_every_address},
         {"a port that is taken", test_a_port_that_is_taken})
