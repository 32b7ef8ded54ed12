/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/harness.h - one CUnit executable per module, with our own reporter
 *
 *   static void test_reset_keeps_first_chunk(void) { ... CU_ASSERT(...) ... }
 *   BH_TESTS("common/base/arena", {"reset keeps the first chunk", test_reset_keeps_first_chunk},
 * ...)
 *
 * Prints one "ok"/"not ok" line a test, then "N passed, N failed, N skipped". Exit status 1 when
 * anything failed. bh_test_skip("why") inside a test marks it skipped. An alarm (BH_TEST_TIMEOUT
 * seconds, default 600 per test) kills a test that hangs. argv[1], when given, selects tests whose
 * name contains it.
 */
#ifndef BH_TEST_HARNESS_H
#define BH_TEST_HARNESS_H

#include <CUnit/CUnit.h>
#include "common/base/base.h"

struct bh_test {
    const char *name;
    void (*fn)(void);
};
int bh_test_main(const char *suite, const struct bh_test *tests, size_t n, int argc, char **argv);
void bh_test_skip(const char *why);
/* A fresh folder under $TMPDIR for this process, removed at exit. */
const char *bh_test_tmpdir(void);

#define BH_TESTS(suite, ...)                                                                       \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct bh_test tests_[] = {__VA_ARGS__};                                      \
        return bh_test_main(suite, tests_, BH_ARRAY_LEN(tests_), argc, argv);                      \
    }
#endif
