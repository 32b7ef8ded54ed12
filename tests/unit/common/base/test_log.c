/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_log.c - one line an event, whatever stderr is
 *
 * Each case runs in a child process whose stderr is a pipe, a socket or closed.
 */
#include "common/base/log.h"
#include "tests/unit/harness.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char said[1 << 20];

static void read_said(int fd)
{
    size_t n = 0;
    ssize_t got;
    while (n < sizeof(said) - 1 && (got = read(fd, said + n, sizeof(said) - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
}

/* Runs fn with fd[1] as stderr; what it wrote is in `said`; returns its exit status. */
static int run_with(int fd[2], void (*fn)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd[1], STDERR_FILENO);
        close(fd[0]), close(fd[1]);
        alarm(20);
        fn();
        _exit((int)BH_MIN(bh_log_dropped(), (uint64_t)100));
    }
    close(fd[1]);
    read_said(fd[0]);
    close(fd[0]);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run_piped(void (*fn)(void))
{
    int fd[2];
    if (pipe(fd) < 0)
        return -1;
    return run_with(fd, fn);
}

static void say_text(void)
{
    bh_log_init("t", 0, BH_LOG_TEXT);
    bh_log_info("Bound pod", bh_kv_s("pod", "default/web-0"), bh_kv_i("attempts", -2),
                bh_kv_u("u", UINT64_MAX), bh_kv_f("f", 0.5));
    bh_log_error("Quotes \" and\nlines", bh_kv_s("none", NULL), bh_kv_s("bad", "\xff\x01"));
    bh_log_warn("Plain");
    bh_log_debug("Not at this verbosity");
}

static void test_text_lines(void)
{
    CU_ASSERT_EQUAL(run_piped(say_text), 0);
    char *second = strchr(said, '\n');
    CU_ASSERT_FATAL(second != NULL);
    *second++ = '\0';
    int month, day, h, m, s, us, pid, line;
    CU_ASSERT_EQUAL(sscanf(said, "I%2d%2d %d:%d:%d.%6d %d test_log.c:%d]", &month, &day, &h, &m, &s,
                           &us, &pid, &line),
                    8);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        said, "] \"Bound pod\" pod=\"default/web-0\" attempts=-2 u=18446744073709551615 f=0.5"));
    CU_ASSERT_EQUAL(second[0], 'E');
    CU_ASSERT_PTR_NOT_NULL(
        strstr(second, "] \"Quotes \\\" and\\nlines\" none=<nil> bad=\"\xef\xbf\xbd\\u0001\"\nW"));
    CU_ASSERT_PTR_NULL(strstr(second, "verbosity"));
}

static void say_json(void)
{
    bh_log_init("t", 2, BH_LOG_JSON);
    bh_log_info("Bound pod", bh_kv_s("pod", "a\"b"), bh_kv_f("nan", 0.0 / 0.0),
                bh_kv_s("no", NULL));
    bh_log_error("Broken", bh_kv_s("err", "x"));
    bh_log_debug("Detail", bh_kv_i("n", 1));
}

static void test_json_lines_parse(void)
{
    CU_ASSERT_EQUAL(run_piped(say_json), 0);
    json_t *line[3];
    const char *at = said;
    for (int i = 0; i < 3; i++) {
        line[i] = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(line[i]);
        CU_ASSERT(json_real_value(json_object_get(line[i], "ts")) > 1.6e12);
        CU_ASSERT_EQUAL(
            strncmp(json_string_value(json_object_get(line[i], "caller")), "test_log.c:", 11), 0);
        at = strchr(at, '\n') + 1;
    }
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(line[0], "msg")), "Bound pod");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(line[0], "pod")), "a\"b");
    CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(line[0], "nan")), "NaN");
    CU_ASSERT(json_is_null(json_object_get(line[0], "no")));
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(line[0], "v")), 0);
    CU_ASSERT_PTR_NULL(json_object_get(line[1], "v"));
    CU_ASSERT_EQUAL(json_integer_value(json_object_get(line[2], "v")), 2);
    for (int i = 0; i < 3; i++)
        json_decref(line[i]);
}

static void say_levels(void)
{
    bh_log_init("t", 2, BH_LOG_TEXT);
    bh_log_v(3, "Too detailed");
    bh_log_v(2, "Second", bh_kv_i("n", 1));
    bh_log_set_vmodule("other=9,test_*=4,test_log=1");
    bh_log_v(4, "By file");
    bh_log_v(5, "Not even by file");
    bh_log_plain(1, "a/flags.c", 3, "FLAG: --x=\"y\"\nE1121 not a line");
    bh_log_block(2, "a/b.c", 7, "Using component config", "config", "a: 1\nb:\n- c\n");
    bh_log_init("t", 3, BH_LOG_JSON);
    bh_log_v(3, "Third");
    bh_log_block(2, "a/b.c", 7, "Block", "config", "a: 1\n");
}

static void test_levels(void)
{
    static const char *const wanted[] = {
        "] \"Second\" n=1\n",
        "] \"By file\"\n",
        " flags.c:3] FLAG: --x=\"y\" E1121 not a line\n",
        " b.c:7] \"Using component config\" config=<\n\ta: 1\n\tb:\n\t- c\n >\n",
        ",\"msg\":\"Third\",\"v\":3}\n",
        ",\"msg\":\"Block\",\"v\":2,\"config\":\"a: 1\\n\"}\n"};
    const char *at = said;

    CU_ASSERT_EQUAL(run_piped(say_levels), 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(wanted); i++) {
        const char *found = strstr(at, wanted[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(found);
        at = found;
    }
    CU_ASSERT(!strstr(said, "Too detailed") && !strstr(said, "Not even"));
}

static void test_vmodule_refusals(void)
{
    static const struct {
        const char *list, *text;
    } cases[] = {
        {"a=1,,b=2147483647,", NULL},
        {"", NULL},
        {"a", "\"a\" does not have the pattern=N format"},
        {"a=1,=2", "\"=2\" does not have the pattern=N format"},
        {"a=1=2", "\"a=1=2\" does not have the pattern=N format"},
        {"a=x", "parsing verbosity in \"a=x\": strconv.ParseUint: parsing \"x\": invalid syntax"},
        {"a=2147483648", "parsing verbosity in \"a=2147483648\": strconv.ParseUint: parsing "
                         "\"2147483648\": value out of range"}};
    struct bh_err err;

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        int rc = bh_log_check_vmodule(cases[i].list, &err);
        CU_ASSERT_EQUAL(rc < 0, cases[i].text != NULL);
        if (rc < 0 && cases[i].text)
            CU_ASSERT_STRING_EQUAL(err.msg, cases[i].text);
    }
}

static void say_long(void)
{
    static char text[300000];
    memset(text, 'y', sizeof(text) - 1);
    text[500] = '\n'; /* an escape must not be cut in half */
    bh_log_init("t", 0, BH_LOG_JSON);
    bh_log_info("Long", bh_kv_s("a", text), bh_kv_s("b", text), bh_kv_s("last", "kept"));
    memset(text, '\x01', sizeof(text) - 1);
    bh_log_info("Worse", bh_kv_s("a", text), bh_kv_s("last", "kept"));
}

static void test_long_values_are_shortened_not_the_structure(void)
{
    CU_ASSERT_EQUAL(run_piped(say_long), 0);
    const char *at = said;
    for (int i = 0; i < 2; i++) {
        CU_ASSERT(strcspn(at, "\n") < PIPE_BUF);
        json_t *line = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(line);
        CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(line, "last")), "kept");
        const char *a = json_string_value(json_object_get(line, "a"));
        CU_ASSERT(strlen(a) > 100);
        CU_ASSERT_STRING_EQUAL(a + strlen(a) - 3, "...");
        json_decref(line);
        at = strchr(at, '\n') + 1;
    }
    CU_ASSERT_EQUAL(*at, '\0');
}

static void say_much(void)
{
    bh_log_init("t", 0, BH_LOG_TEXT);
    for (int i = 0; i < 3000; i++)
        bh_log_info("Nobody reads this line of some length", bh_kv_i("i", i));
}

/* The child ends although nobody reads until it has: only then is the pipe emptied. */
static int run_unread(int fd[2])
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd[1], STDERR_FILENO);
        alarm(20); /* a logger that blocks dies here */
        say_much();
        _exit((int)BH_MIN(bh_log_dropped(), (uint64_t)100));
    }
    waitpid(pid, &status, 0);
    close(fd[1]);
    read_said(fd[0]);
    close(fd[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_a_full_pipe_drops_and_counts(void)
{
    int fd[2];
    CU_ASSERT_EQUAL_FATAL(pipe(fd), 0);
    CU_ASSERT_EQUAL(run_unread(fd), 100);
    CU_ASSERT(strlen(said) > 10000);
    CU_ASSERT_EQUAL(said[strlen(said) - 1], '\n'); /* whole lines only */
}

static void test_a_full_socket_drops_and_counts(void)
{
    int fd[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    CU_ASSERT_EQUAL(run_unread(fd), 100);
}

static void say_to_closed(void)
{
    signal(SIGPIPE, SIG_IGN);
    close(STDERR_FILENO);
    bh_log_init("t", 0, BH_LOG_TEXT);
    bh_log_info("Into nothing");
}

static void say_to_reader_gone(void)
{
    int fd[2];
    signal(SIGPIPE, SIG_IGN);
    if (pipe(fd) < 0)
        _exit(99);
    close(fd[0]);
    dup2(fd[1], STDERR_FILENO);
    bh_log_init("t", 0, BH_LOG_TEXT);
    bh_log_info("Into nothing");
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0)
        _exit(99);
    signal(SIGPIPE, SIG_DFL);
    close(fd[0]);
    dup2(fd[1], STDERR_FILENO);
    bh_log_init("t", 0, BH_LOG_TEXT);
    bh_log_info("Into nothing");
}

static void test_a_closed_stderr_does_no_harm(void)
{
    CU_ASSERT_EQUAL(run_piped(say_to_closed), 1);
    CU_ASSERT_EQUAL(run_piped(say_to_reader_gone), 2);
}

static void say_to_journal(void)
{
    struct stat st;
    char stream[64];
    fstat(STDERR_FILENO, &st);
    snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    bh_log_init("t", 0, BH_LOG_TEXT);
    bh_log_warn("Journalled", bh_kv_i("n", 1));
    setenv("JOURNAL_STREAM", "1:2", 1); /* somebody else's stderr */
    bh_log_init("t", 0, BH_LOG_TEXT);
    bh_log_error("Plain");
}

static void test_the_journal_gets_a_priority_and_no_time(void)
{
    int fd[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    CU_ASSERT_EQUAL(run_with(fd, say_to_journal), 0);
    CU_ASSERT_EQUAL(strncmp(said, "<4>test_log.c:", 14), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "] \"Journalled\" n=1\nE"));
}

BH_TESTS("common/base/log", {"text lines are klog's", test_text_lines},
         {"JSON lines parse", test_json_lines_parse},
         {"long values are shortened, not the structure",
          test_long_values_are_shortened_not_the_structure},
         {"a full pipe drops and counts", test_a_full_pipe_drops_and_counts},
         {"a full socket drops and counts", test_a_full_socket_drops_and_counts},
         {"a closed stderr does no harm", test_a_closed_stderr_does_no_harm},
         {"the journal gets a priority and no time", test_the_journal_gets_a_priority_and_no_time},
         {"levels, --vmodule, plain lines and blocks", test_levels},
         {"--vmodule that cannot be read: klog's texts", test_vmodule_refusals})
