/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_file.c - whole small files, the runtime directory
 */
#include "tests/unit/harness.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *in_tmp(const char *name)
{
    static char path[4][4200];
    static int at;
    at = (at + 1) % 4;
    snprintf(path[at], sizeof(path[at]), "%s/%s", bh_test_tmpdir(), name);
    return path[at];
}

static void test_written_text_comes_back(void)
{
    char *p = NULL;
    size_t n = 0;
    CU_ASSERT_EQUAL(bh_write_file(in_tmp("a"), "one\0two", 7, 0640), 0);
    CU_ASSERT_EQUAL(bh_read_file(in_tmp("a"), 100, &p, &n), 0);
    CU_ASSERT_EQUAL(n, 7);
    CU_ASSERT(p && memcmp(p, "one\0two", 8) == 0);
    free(p);
    struct stat st;
    CU_ASSERT_EQUAL(stat(in_tmp("a"), &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 07777, 0640);
}

static void test_the_limit_is_inclusive(void)
{
    char *p = NULL;
    bh_write_file(in_tmp("b"), "12345", 5, 0600);
    CU_ASSERT_EQUAL(bh_read_file(in_tmp("b"), 4, &p, NULL), -EFBIG);
    CU_ASSERT_PTR_NULL(p);
    CU_ASSERT_EQUAL(bh_read_file(in_tmp("b"), 5, &p, NULL), 0);
    CU_ASSERT_STRING_EQUAL(p, "12345");
    free(p);
}

static void test_failures_are_errno(void)
{
    char *p = NULL;
    CU_ASSERT_EQUAL(bh_read_file(in_tmp("missing"), 10, &p, NULL), -ENOENT);
    CU_ASSERT_EQUAL(bh_read_file(bh_test_tmpdir(), 10, &p, NULL), -EISDIR);
    CU_ASSERT_EQUAL(bh_write_file(in_tmp("no/such/dir"), "", 0, 0600), -ENOENT);
    CU_ASSERT_PTR_NULL(p);
}

static void test_files_without_a_size_are_read_whole(void)
{
    char *p = NULL;
    size_t n = 0;
    CU_ASSERT_EQUAL(bh_read_file("/proc/self/status", 1 << 20, &p, &n), 0);
    CU_ASSERT(n > 100 && p[n] == '\0');
    CU_ASSERT_PTR_NOT_NULL(strstr(p, "Name:"));
    free(p);
    CU_ASSERT_EQUAL(bh_read_file("/dev/zero", 9999, &p, &n), -EFBIG);
}

static void test_empty_file(void)
{
    char *p = NULL;
    size_t n = 9;
    bh_write_file(in_tmp("empty"), NULL, 0, 0600);
    CU_ASSERT_EQUAL(bh_read_file(in_tmp("empty"), 0, &p, &n), 0);
    CU_ASSERT(p && n == 0 && *p == '\0');
    free(p);
}

static void test_a_failed_write_leaves_the_old_file_and_no_litter(void)
{
    const char *dir = in_tmp("d");
    mkdir(dir, 0700);
    mkdir(in_tmp("d/target"), 0700);
    mkdir(in_tmp("d/target/full"), 0700);
    CU_ASSERT(bh_write_file(in_tmp("d/target"), "x", 1, 0600) < 0); /* a folder in the way */
    DIR *d = opendir(in_tmp("d"));
    int n = 0;
    while (d && readdir(d))
        n++;
    closedir(d);
    CU_ASSERT_EQUAL(n, 3); /* ".", "..", "target" */
}

static void test_runtime_dir_order(void)
{
    char out[108];
    struct bh_err err;
    setenv("BERTH_RUNTIME_DIR", in_tmp("from-env"), 1);
    CU_ASSERT_EQUAL(bh_runtime_dir(in_tmp("from-option//"), out, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, in_tmp("from-option"));
    struct stat st;
    CU_ASSERT_EQUAL(stat(out, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0027, 0);
    CU_ASSERT_EQUAL(bh_runtime_dir(NULL, out, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, in_tmp("from-env"));
    CU_ASSERT_EQUAL(bh_runtime_dir("", out, &err), 0); /* exists already */
    CU_ASSERT_STRING_EQUAL(out, in_tmp("from-env"));
}

static void test_relative_runtime_dir_becomes_absolute(void)
{
    char out[108], *before = getcwd(NULL, 0);
    struct bh_err err;

    mkdir(in_tmp("cwd"), 0700);
    CU_ASSERT_EQUAL_FATAL(chdir(in_tmp("cwd")), 0);
    CU_ASSERT_EQUAL(bh_runtime_dir("brt/", out, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, in_tmp("cwd/brt"));
    CU_ASSERT_EQUAL(bh_runtime_dir_find(".//brt", out, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, in_tmp("cwd/brt"));
    CU_ASSERT_EQUAL(bh_runtime_dir_find(".", out, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, in_tmp("cwd"));
    setenv("BERTH_RUNTIME_DIR", "from-env", 1);
    CU_ASSERT_EQUAL(bh_runtime_dir(NULL, out, &err), 0);
    CU_ASSERT_STRING_EQUAL(out, in_tmp("cwd/from-env"));
    CU_ASSERT_EQUAL(bh_runtime_dir_find("missing", out, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, in_tmp("cwd/missing")));
    CU_ASSERT_EQUAL(chdir(before), 0);
    free(before);
}

static void test_runtime_dir_failures_name_the_path(void)
{
    char out[108] = "untouched", longer[200];
    struct bh_err err;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[0] = '/';
    longer[sizeof(longer) - 1] = '\0';
    CU_ASSERT_EQUAL(bh_runtime_dir(longer, out, &err), -ENAMETOOLONG);
    CU_ASSERT_EQUAL(bh_runtime_dir(in_tmp("no/parent"), out, &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "no/parent"));
    bh_write_file(in_tmp("file"), "", 0, 0600);
    CU_ASSERT_EQUAL(bh_runtime_dir(in_tmp("file"), out, &err), -ENOTDIR);
    CU_ASSERT_STRING_EQUAL(out, "untouched");
}

BH_TESTS("common/base/file", {"written text comes back", test_written_text_comes_back},
         {"the limit is inclusive", test_the_limit_is_inclusive},
         {"failures are errno", test_failures_are_errno},
         {"files without a size are read whole", test_files_without_a_size_are_read_whole},
         {"an empty file is an empty string", test_empty_file},
         {"a failed write leaves the old file and no litter",
          test_a_failed_write_leaves_the_old_file_and_no_litter},
         {"runtime directory: option, environment, default", test_runtime_dir_order},
         {"a relative runtime directory becomes absolute",
          test_relative_runtime_dir_becomes_absolute},
         {"runtime directory failures name the path", test_runtime_dir_failures_name_the_path})
