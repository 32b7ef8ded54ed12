/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_loop.c - signals, the service manager, closing a loop
 */
#include "common/base/loop.h"
#include "common/base/notify.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int stops, hups;
static uv_loop_t loop;
static struct bh_signals *signals;

static void on_stop(void *arg)
{
    stops++;
    if (arg) {
        bh_signals_close(signals);
        uv_stop(&loop);
    }
}
static void on_hup(void *arg)
{
    (void)arg;
    hups++;
    uv_stop(&loop);
}

/* Signal handles do not keep a loop alive; this does, with a deadline. */
static void on_deadline(uv_timer_t *t)
{
    (void)t;
    CU_FAIL("deadline");
    uv_stop(&loop);
}
static uv_timer_t deadline;

static void begin_loop(void)
{
    uv_loop_init(&loop);
    uv_timer_init(&loop, &deadline);
    uv_timer_start(&deadline, on_deadline, 20000, 0);
}

static void test_a_loop_needs_descriptors(void)
{
    struct bh_err err = {""};
    struct rlimit was, few;
    char want[64];
    int fd = open("/", O_PATH);
    int next = open("/", O_PATH); /* more may be open: whoever ran the tests gave it theirs */

    close(next);
    CU_ASSERT_EQUAL(bh_loop_check(&err), 0);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)next + 3, .rlim_max = was.rlim_max};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &few), 0);
    CU_ASSERT_EQUAL(bh_loop_check(&err), -EMFILE);
    int again = open("/", O_PATH); /* it kept none */
    CU_ASSERT_EQUAL(again, next);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &was), 0);
    snprintf(want, sizeof(want), "this process may have %d; raise its limit", next + 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, want));
    close(again);
    close(fd);
}

static void test_lack_is_told_from_other_errors(void)
{
    struct bh_err err = {"as it was"};

    CU_ASSERT_EQUAL(bh_err_lack(&err, ECONNREFUSED), 0);
    CU_ASSERT_STRING_EQUAL(err.msg, "as it was");
    CU_ASSERT_EQUAL(bh_err_lack(&err, ENFILE), -ENFILE);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "fs.file-max"));
    CU_ASSERT_EQUAL(bh_err_lack(&err, ENOBUFS), -ENOBUFS);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "memory"));
}

static void test_signals_arrive_in_the_loop(void)
{
    stops = hups = 0;
    begin_loop();
    signals = bh_signals_new(&loop, on_stop, on_hup, &loop);
    kill(getpid(), SIGPIPE); /* ignored */
    kill(getpid(), SIGHUP);
    uv_run(&loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(hups, 1);
    CU_ASSERT_EQUAL(stops, 0);
    kill(getpid(), SIGINT);
    uv_run(&loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(stops, 1);
    bh_loop_drain_close(&loop);
}

static void test_signals_alone_do_not_keep_a_loop_alive(void)
{
    uv_loop_init(&loop);
    signals = bh_signals_new(&loop, on_stop, NULL, NULL);
    struct bh_keepalive *k = bh_keepalive_new(&loop, NULL, NULL);
    CU_ASSERT_EQUAL(uv_run(&loop, UV_RUN_DEFAULT), 0);
    bh_keepalive_close(k, true);
    bh_keepalive_close(NULL, true);
    bh_signals_close(signals);
    bh_signals_close(NULL);
    bh_loop_drain_close(&loop);
}

static void on_stop_slowly(void *arg)
{
    (void)arg; /* and the stop never ends */
    kill(getpid(), SIGTERM);
}

static void test_a_second_signal_exits_at_once(void)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        begin_loop();
        bh_signals_new(&loop, on_stop_slowly, NULL, NULL);
        kill(getpid(), SIGTERM);
        uv_run(&loop, UV_RUN_DEFAULT);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    CU_ASSERT(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 128 + SIGTERM);
}

static int manager_socket(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    struct timeval wait = {.tv_sec = 20};
    memcpy(a.sun_path, name, n);
    if (name[0] == '@')
        a.sun_path[0] = '\0';
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) <
        0) {
        close(fd);
        return -1;
    }
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static const char *received(int fd)
{
    static char text[256];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static void test_notify_by_path_and_by_abstract_name(void)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/n", bh_test_tmpdir());
    int fd = manager_socket(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(bh_notify("READY=1\nSTATUS=x"), 0);
    CU_ASSERT_STRING_EQUAL(received(fd), "READY=1\nSTATUS=x");
    close(fd);
    CU_ASSERT_EQUAL(bh_notify("X=1"), -ECONNREFUSED);
    snprintf(path, sizeof(path), "@berth-test-%d", (int)getpid());
    fd = manager_socket(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(bh_notify("STOPPING=1"), 0);
    CU_ASSERT_STRING_EQUAL(received(fd), "STOPPING=1");
    close(fd);
    setenv("NOTIFY_SOCKET", "relative", 1);
    CU_ASSERT_EQUAL(bh_notify("X=1"), -EINVAL);
    unsetenv("NOTIFY_SOCKET");
    CU_ASSERT_EQUAL(bh_notify("X=1"), 0);
}

static void test_watchdog_interval(void)
{
    char pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "30000000", 1);
    CU_ASSERT_EQUAL(bh_watchdog_interval_ns(), 15000000000u);
    setenv("WATCHDOG_PID", pid, 1);
    CU_ASSERT_EQUAL(bh_watchdog_interval_ns(), 15000000000u);
    setenv("WATCHDOG_PID", "1", 1);
    CU_ASSERT_EQUAL(bh_watchdog_interval_ns(), 0);
    unsetenv("WATCHDOG_PID");
    static const char *const bad[] = {"", "0", "x", "5x", "-5", "99999999999999999999"};
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        setenv("WATCHDOG_USEC", bad[i], 1);
        CU_ASSERT_EQUAL(bh_watchdog_interval_ns(), 0);
    }
    unsetenv("WATCHDOG_USEC");
    CU_ASSERT_EQUAL(bh_watchdog_interval_ns(), 0);
}

static int asked;
static bool healthy_twice(void *arg)
{
    (void)arg;
    if (++asked == 3)
        uv_stop(&loop);
    return asked <= 2;
}

static void test_keepalive_asks_before_each_watchdog(void)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/k", bh_test_tmpdir());
    int fd = manager_socket(path);
    CU_ASSERT_FATAL(fd >= 0);
    setenv("WATCHDOG_USEC", "4000", 1);
    begin_loop();
    asked = 0;
    struct bh_keepalive *k = bh_keepalive_new(&loop, healthy_twice, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    bh_keepalive_close(k, true);
    bh_loop_drain_close(&loop);
    CU_ASSERT_EQUAL(asked, 3);
    CU_ASSERT_STRING_EQUAL(received(fd), "READY=1");
    CU_ASSERT_STRING_EQUAL(received(fd), "WATCHDOG=1");
    CU_ASSERT_STRING_EQUAL(received(fd), "WATCHDOG=1");
    CU_ASSERT_STRING_EQUAL(received(fd), "STOPPING=1"); /* the unhealthy turn sent nothing */
    close(fd);
    unsetenv("WATCHDOG_USEC");
    unsetenv("NOTIFY_SOCKET");
}

static void do_nothing(uv_idle_t *h)
{
    (void)h;
}

static void test_drain_closes_what_is_open(void)
{
    static uv_idle_t idle;
    uv_loop_init(&loop);
    uv_idle_init(&loop, &idle);
    uv_idle_start(&idle, do_nothing);
    uv_stop(&loop); /* a pending stop must not end the drain early */
    bh_loop_drain_close(&loop);
    CU_ASSERT(uv_is_closing((uv_handle_t *)&idle));
}

BH_TESTS("common/base/loop", {"a loop needs descriptors", test_a_loop_needs_descriptors},
         {"lack is told from other errors", test_lack_is_told_from_other_errors},
         {"signals arrive in the loop", test_signals_arrive_in_the_loop},
         {"signals alone do not keep a loop alive", test_signals_alone_do_not_keep_a_loop_alive},
         {"a second signal exits at once", test_a_second_signal_exits_at_once},
         {"notify by path and by abstract name", test_notify_by_path_and_by_abstract_name},
         {"watchdog interval", test_watchdog_interval},
         {"keepalive asks before each watchdog", test_keepalive_asks_before_each_watchdog},
         {"drain closes what is open", test_drain_closes_what_is_open})
