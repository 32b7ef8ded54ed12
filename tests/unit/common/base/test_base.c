/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_base.c - allocation, errors, clocks, random numbers, hash
 */
#include "tests/unit/harness.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_zero_bytes_are_not_null(void)
{
    void *p = bh_malloc(0), *q = bh_calloc(0, 8), *r = bh_realloc(NULL, 0), *s = bh_memdup(NULL, 0);
    CU_ASSERT(p && q && r && s);
    free(p), free(q), free(r), free(s);
}

static void test_calloc_zeroes(void)
{
    unsigned char *p = bh_calloc(100, 7);
    int sum = 0;
    for (int i = 0; i < 700; i++)
        sum += p[i];
    CU_ASSERT_EQUAL(sum, 0);
    free(p);
}

static void test_strndup_stops_at_nul_and_at_n(void)
{
    char *a = bh_strndup("abc\0def", 7), *b = bh_strndup("abcdef", 2), *c = bh_strndup("", 3);
    CU_ASSERT_STRING_EQUAL(a, "abc");
    CU_ASSERT_STRING_EQUAL(b, "ab");
    CU_ASSERT_STRING_EQUAL(c, "");
    free(a), free(b), free(c);
}

static void test_cleanup_frees_and_nulls(void)
{
    char *p = bh_strdup("x");
    bh_freep(&p);
    CU_ASSERT_PTR_NULL(p);
    BH_CLEANUP(bh_freep) char *q = bh_asprintf("%d-%s", 7, "seven");
    CU_ASSERT_STRING_EQUAL(q, "7-seven");
    char *moved = bh_take_ptr(q);
    CU_ASSERT_PTR_NULL(q);
    CU_ASSERT_STRING_EQUAL(moved, "7-seven");
    free(moved);
}

/* Runs fn in a child whose stderr comes back in out; returns the signal that ended it. */
static int died_by(void (*fn)(void), char *out, size_t cap)
{
    int fd[2], status;
    if (pipe(fd) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fd[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    close(fd[1]);
    size_t n = 0;
    ssize_t got;
    while (n < cap - 1 && (got = read(fd[0], out + n, cap - 1 - n)) > 0)
        n += (size_t)got;
    out[n] = '\0';
    close(fd[0]);
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static volatile size_t huge = SIZE_MAX / 2;
static void overflow(void)
{
    free(bh_reallocarray(NULL, huge, 8));
}
static void broken(void)
{
    bh_assert(huge == 0);
}
static void assert_truth(void)
{
    bh_assert(huge != 0);
}

static void test_overflow_and_broken_facts_abort_with_one_line(void)
{
    char said[1024];
    CU_ASSERT_EQUAL(died_by(overflow, said, sizeof(said)), SIGABRT);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "out of memory"));
    CU_ASSERT_EQUAL(died_by(broken, said, sizeof(said)), SIGABRT);
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "assertion failed: huge == 0"));
    CU_ASSERT_PTR_NOT_NULL(strstr(said, "test_base.c"));
    CU_ASSERT_EQUAL(died_by(assert_truth, said, sizeof(said)), 0);
    CU_ASSERT_STRING_EQUAL(said, "");
}

static void test_str_compares_bytes(void)
{
    CU_ASSERT(bh_str_eq(BH_STR("a\0b"), (struct bh_str){"a\0b", 3}));
    CU_ASSERT(!bh_str_eq(BH_STR("a\0b"), BH_STR("a\0c")));
    CU_ASSERT(bh_str_eqc(BH_STR("abc"), "abc"));
    CU_ASSERT(!bh_str_eqc(BH_STR("abc"), "ab"));
    CU_ASSERT(bh_str_eq(bh_str_c(NULL), BH_STR("")));
}

static void test_err_set_prefix_and_null(void)
{
    struct bh_err e;
    CU_ASSERT_EQUAL(bh_err_set(&e, -EINVAL, "field %s: bad", "x"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(e.msg, "field x: bad");
    CU_ASSERT_EQUAL(bh_err_prefix(&e, -EIO, "file %d", 3), -EIO);
    CU_ASSERT_STRING_EQUAL(e.msg, "file 3: field x: bad");
    bh_err_set(&e, 0, "again (%s)", e.msg); /* an argument that is the present message */
    CU_ASSERT_STRING_EQUAL(e.msg, "again (file 3: field x: bad)");
    CU_ASSERT_EQUAL(bh_err_set(NULL, -EIO, "x"), -EIO);
    CU_ASSERT_EQUAL(bh_err_prefix(NULL, -EIO, "x"), -EIO);
}

static void test_err_is_cut_and_terminated(void)
{
    struct bh_err e;
    char text[2000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    bh_err_set(&e, 0, "%s", text);
    CU_ASSERT_EQUAL(strlen(e.msg), sizeof(e.msg) - 1);
    bh_err_prefix(&e, 0, "pre");
    CU_ASSERT_EQUAL(strlen(e.msg), sizeof(e.msg) - 1);
    CU_ASSERT_EQUAL(strncmp(e.msg, "pre: aaa", 8), 0);
    bh_err_prefix(&e, 0, "%s", text);
    CU_ASSERT_EQUAL(strlen(e.msg), sizeof(e.msg) - 1);
}

static void test_clocks_advance(void)
{
    uint64_t a = bh_mono_ns(), b = bh_boot_ns();
    CU_ASSERT(bh_mono_ns() >= a);
    CU_ASSERT(bh_boot_ns() >= b);
    CU_ASSERT(b >= a - 1000000000u);
    CU_ASSERT(bh_wall_ns() > 1600000000LL * 1000000000LL);
}

static void test_same_seed_same_stream(void)
{
    struct bh_rand a, b, c;
    bool same = true, differs = false;
    bh_rand_seed(&a, 42), bh_rand_seed(&b, 42), bh_rand_seed(&c, 43);
    for (int i = 0; i < 100; i++) {
        uint64_t v = bh_rand_u64(&a);
        same = same && v == bh_rand_u64(&b);
        differs = differs || v != bh_rand_u64(&c);
    }
    CU_ASSERT(same);
    CU_ASSERT(differs);
}

static void test_known_values_of_the_generator(void)
{
    /* First outputs of xoshiro256** for the state {1, 2, 3, 4}: recorded replays depend on them. */
    struct bh_rand r = {{1, 2, 3, 4}};
    CU_ASSERT_EQUAL(bh_rand_u64(&r), 11520u);
    CU_ASSERT_EQUAL(bh_rand_u64(&r), 0u);
    CU_ASSERT_EQUAL(bh_rand_u64(&r), 1509978240u);
    CU_ASSERT_EQUAL(bh_rand_u64(&r), 1215971899390074240u);
}

static void test_below_is_uniform_and_in_range(void)
{
    struct bh_rand r;
    int hits[7] = {0};
    bh_rand_seed(&r, 1);
    for (int i = 0; i < 70000; i++)
        hits[bh_rand_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        CU_ASSERT(hits[i] > 9500 && hits[i] < 10500);
    for (int i = 0; i < 100; i++)
        CU_ASSERT_EQUAL(bh_rand_below(&r, 1), 0);
    uint64_t bound = (UINT64_C(1) << 63) + 1;
    for (int i = 0; i < 100; i++)
        CU_ASSERT(bh_rand_below(&r, bound) < bound);
}

static void test_unit_is_in_range(void)
{
    struct bh_rand r;
    double sum = 0;
    bh_rand_seed(&r, 9);
    for (int i = 0; i < 10000; i++) {
        double v = bh_rand_unit(&r);
        CU_ASSERT_FATAL(v >= 0 && v < 1);
        sum += v;
    }
    CU_ASSERT(sum > 4800 && sum < 5200);
}

static void test_uuid_has_version_and_variant(void)
{
    char a[37], b[37];
    for (int i = 0; i < 50; i++) {
        bh_uuid4(a), bh_uuid4(b);
        CU_ASSERT_EQUAL(strlen(a), 36);
        CU_ASSERT(a[8] == '-' && a[13] == '-' && a[18] == '-' && a[23] == '-');
        CU_ASSERT_EQUAL(a[14], '4');
        CU_ASSERT_PTR_NOT_NULL(strchr("89ab", a[19]));
        CU_ASSERT_EQUAL(strspn(a, "0123456789abcdef-"), 36);
        CU_ASSERT_STRING_NOT_EQUAL(a, b);
    }
    CU_ASSERT_NOT_EQUAL(bh_rand_entropy(), bh_rand_entropy());
}

static void test_hash_depends_on_bytes_and_seed(void)
{
    CU_ASSERT_EQUAL(bh_hash("", 0, 0), 0x2d06800538d394c2u); /* XXH3's published empty value */
    CU_ASSERT_EQUAL(bh_hash("abc", 3, 5), bh_hash("abcd", 3, 5));
    CU_ASSERT_NOT_EQUAL(bh_hash("abc", 3, 5), bh_hash("abc", 3, 6));
    CU_ASSERT_NOT_EQUAL(bh_hash("abc", 3, 5), bh_hash("abd", 3, 5));
}

BH_TESTS("common/base/base", {"zero bytes are not NULL", test_zero_bytes_are_not_null},
         {"calloc zeroes", test_calloc_zeroes},
         {"strndup stops at NUL and at n", test_strndup_stops_at_nul_and_at_n},
         {"cleanup frees and nulls", test_cleanup_frees_and_nulls},
         {"overflow and broken facts abort with one line",
          test_overflow_and_broken_facts_abort_with_one_line},
         {"bh_str compares bytes", test_str_compares_bytes},
         {"errors are set, prefixed and may be NULL", test_err_set_prefix_and_null},
         {"long errors are cut and terminated", test_err_is_cut_and_terminated},
         {"clocks advance", test_clocks_advance},
         {"the same seed gives the same stream", test_same_seed_same_stream},
         {"the generator gives its known values", test_known_values_of_the_generator},
         {"below() is uniform and in range", test_below_is_uniform_and_in_range},
         {"unit() is in range", test_unit_is_in_range},
         {"a UUID has version and variant", test_uuid_has_version_and_variant},
         {"the hash depends on bytes and seed", test_hash_depends_on_bytes_and_seed})
