/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_limit.c - requests a second, alone and together; time is an argument
 */
#include "common/api/api_int.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <unistd.h>

#define S UINT64_C(1000000000)
static struct bh_err err;

static unsigned take_all(struct bh_api_limit *l, uint64_t now)
{
    unsigned n = 0;
    while (n < 1000 && bh_api_limit_take(l, now))
        n++;
    return n;
}

static void test_alone(void)
{
    struct bh_api_limit l;
    uint64_t now = 100 * S;

    CU_ASSERT_EQUAL(bh_api_limit_init(&l, 0, 5, NULL, &err), 0);
    CU_ASSERT(take_all(&l, now) == 1000 && bh_api_limit_next(&l, now) == now);
    CU_ASSERT_EQUAL(bh_api_limit_init(&l, 10, 5, NULL, &err), 0);
    CU_ASSERT_EQUAL(take_all(&l, now), 5);
    CU_ASSERT_EQUAL(bh_api_limit_next(&l, now), now + S / 10);
    CU_ASSERT_EQUAL(take_all(&l, now + S / 10), 1);
    CU_ASSERT_EQUAL(take_all(&l, now + S / 10 + S / 20), 0);
    CU_ASSERT_EQUAL(take_all(&l, now + 60 * S), 5); /* what is not used is lost above the burst */
    bh_api_limit_fini(&l);
}

static void test_together(void)
{
    char *path = bh_asprintf("%s/api.limit", bh_test_tmpdir());
    struct bh_api_limit a, b;
    uint64_t now = 100 * S;

    CU_ASSERT_EQUAL_FATAL(bh_api_limit_init(&a, 10, 8, path, &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_api_limit_init(&b, 10, 8, path, &err), 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT(bh_api_limit_take(&a, now));
    CU_ASSERT_EQUAL(take_all(&b, now), 5);
    CU_ASSERT_EQUAL(take_all(&a, now), 0);
    CU_ASSERT_EQUAL(bh_api_limit_next(&a, now), bh_api_limit_next(&b, now));
    bh_api_limit_fini(&a);
    CU_ASSERT_EQUAL(take_all(&b, now + S / 5), 2); /* who leaves takes nothing along */
    /* another boot's clock, or garbage: no more than a full burst has to be waited for */
    atomic_store(b.full_ns, UINT64_MAX - 5);
    CU_ASSERT_EQUAL(take_all(&b, now), 0);
    CU_ASSERT(bh_api_limit_next(&b, now) <= now + S / 10);
    atomic_store(b.full_ns, 1);
    CU_ASSERT_EQUAL(take_all(&b, now), 8);
    bh_api_limit_fini(&b);
    unlink(path);
    free(path);
}

static void test_bad_files(void)
{
    struct bh_api_limit l;
    char *link = bh_asprintf("%s/link", bh_test_tmpdir());

    CU_ASSERT(bh_api_limit_init(&l, 10, 8, "/no/such/folder/x", &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "\"/no/such/folder/x\""));
    CU_ASSERT_EQUAL_FATAL(symlink("/etc/passwd", link), 0);
    CU_ASSERT_EQUAL(bh_api_limit_init(&l, 10, 8, link, &err), -ELOOP);
    CU_ASSERT(bh_api_limit_init(&l, 10, 8, "/dev/null", &err) < 0);
    unlink(link);
    free(link);
}

BH_TESTS("common/api/limit", {"a burst, then so many a second", test_alone},
         {"clients of one file share one limit", test_together},
         {"a file that is none is refused and named", test_bad_files})
