/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/harness.c - one CUnit executable per module, with our own reporter
 *
 * CUnit's JUnit writer aborts on the first failed assertion, so it only collects; this prints.
 * State is file-local: CUnit's handlers take no argument, and one process runs one suite.
 */
#include "tests/unit/harness.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <unistd.h>

#include <CUnit/TestDB.h>
#include <CUnit/TestRun.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(UNDER_TSAN)
/* libzmq's lock-free queues are not instrumented: what they hand over looks like a race to TSan. In
 * libstdc++ only libzmq calls anything here. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libzmq.so\nrace:libstdc++.so\n";
}
#endif

static struct {
    const char *test;
    const char *skip_reason;
    unsigned number, passed, failed, skipped;
    unsigned failures_before;
    unsigned timeout_s;
} run;
static struct {
    char path[4096];
    pid_t owner;
} tmp;

static void on_alarm(int sig)
{
    (void)sig;
    static const char said[] = "not ok - timeout in: ";
    ssize_t ignored BH_UNUSED = write(STDOUT_FILENO, said, sizeof(said) - 1);
    ignored = write(STDOUT_FILENO, run.test, strlen(run.test));
    ignored = write(STDOUT_FILENO, "\n", 1);
    _exit(1);
}

static void on_start(const CU_pTest test, const CU_pSuite suite)
{
    (void)suite;
    run.test = test->pName;
    run.skip_reason = NULL;
    run.failures_before = CU_get_number_of_failures();
    alarm(run.timeout_s);
}

static void on_complete(const CU_pTest test, const CU_pSuite suite,
                        const CU_pFailureRecord failures)
{
    (void)suite;
    alarm(0);
    run.number++;
    if (CU_get_number_of_failures() != run.failures_before) {
        run.failed++;
        printf("not ok %u - %s\n", run.number, test->pName);
        for (const CU_FailureRecord *f = failures; f; f = f->pNext)
            if (f->pTest == test)
                printf("#   %s:%u: %s\n", f->strFileName ? f->strFileName : "?", f->uiLineNumber,
                       f->strCondition ? f->strCondition : "?");
    } else if (run.skip_reason) {
        run.skipped++;
        printf("ok %u - %s # SKIP %s\n", run.number, test->pName, run.skip_reason);
    } else {
        run.passed++;
        printf("ok %u - %s\n", run.number, test->pName);
    }
    fflush(stdout);
}

void bh_test_skip(const char *why)
{
    run.skip_reason = why;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    remove(path);
    return 0;
}

static void remove_tmpdir(void)
{
    if (tmp.owner == getpid()) /* not in a forked child */
        nftw(tmp.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *bh_test_tmpdir(void)
{
    if (tmp.owner == getpid())
        return tmp.path;
    const char *base = getenv("TMPDIR");
    snprintf(tmp.path, sizeof(tmp.path), "%s/berth-test.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(tmp.path)) {
        fprintf(stderr, "could not create %s: %s\n", tmp.path, strerror(errno));
        exit(1);
    }
    tmp.owner = getpid();
    atexit(remove_tmpdir);
    return tmp.path;
}

int bh_test_main(const char *suite, const struct bh_test *tests, size_t n, int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    const char *timeout = getenv("BH_TEST_TIMEOUT");
    run.timeout_s = timeout ? (unsigned)strtoul(timeout, NULL, 10) : 600;
    signal(SIGALRM, on_alarm);

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite s = CU_add_suite(suite, NULL, NULL);
    for (size_t i = 0; s && i < n; i++)
        if (strstr(tests[i].name, only) && !CU_add_test(s, tests[i].name, tests[i].fn))
            return 1;
    printf("# %s\n", suite);
    CU_set_test_start_handler(on_start);
    CU_set_test_complete_handler(on_complete);
    CU_ErrorCode rc = CU_run_all_tests();
    printf("%u passed, %u failed, %u skipped\n", run.passed, run.failed, run.skipped);
    CU_cleanup_registry();
    if (run.number == 0)
        fprintf(stderr, "no test matches \"%s\"\n", only);
    return rc != CUE_SUCCESS || run.failed || run.number == 0;
}
