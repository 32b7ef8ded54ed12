/* SPDX-License-Identifier: Apache-2.0
 *
 * One file alone, as `berth plugin check` takes it: what it says of itself, and what becomes of one whose
 * code misbehaves while it is loaded.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/native/native.h"
#include "tests/unit/harness.h"

static struct bh_buf told;

static void tell(const char *line)
{
    bh_buf_addf(&told, "%s\n", line);
}

static void expect(const char *why)
{
    bool there = strstr(bh_buf_str(&told), why) != NULL;

    CU_ASSERT(there);
    if (!there)
        fprintf(stderr, "  not told: %s\n  but: %s\n", why, bh_buf_str(&told));
}

/* tests/plugins/strange.c as `make` built it, where only its owner can change it. */
static void copy_strange(char *at, size_t size)
{
    char exe[PATH_MAX], path[PATH_MAX + 64], *p;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    size_t bytes;

    CU_ASSERT_FATAL(n > 0);
    exe[n] = '\0';
    snprintf(path, sizeof path, "%s/../../plugins/strange.so", dirname(exe));
    CU_ASSERT_FATAL(bh_read_file(path, 64u << 20, &p, &bytes) == 0);
    snprintf(at, size, "%s/strange.so", bh_test_tmpdir());
    CU_ASSERT_FATAL(bh_write_file(at, p, bytes, 0600) == 0);
    free(p);
}

static void expect_used(const char *path, const char *why)
{
    struct bh_native_file f;
    struct bh_err err = {0};

    CU_ASSERT_EQUAL(bh_native_use(path, false, &f, &err), *why ? -EINVAL : 0);
    CU_ASSERT(strstr(err.msg, why) != NULL);
}

/* What code of the file does while it is loaded, in a child process first. */
static void test_use(void)
{
    static const struct {
        const char *does, *why;
    } rows[] = {
        {"crash", "strange.so crashed while it was loaded: Aborted"},
        {"exit", "strange.so ended its process while it was loaded"},
        {"refuse", "strange.so refuses to work here: its berth_plugin_entry_v1 returned 3"},
        {"past", "strange.so: its struct berth_plugin has 24 bytes, at least "},
        {"nameless", "strange.so has a plugin \"Other\", its note names \"Strange\" only"},
        {"none", "strange.so: its berth_plugin_entry_v1 tells 0 plugins, 1 to 16 are needed"},
    };
    struct bh_native_file f;
    struct bh_err err = {0};
    char at[PATH_MAX];

    bh_native_start(&(struct bh_native_options){.policy = "owned"}, tell);
    copy_strange(at, sizeof at);
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        setenv("BERTH_STRANGE", rows[i].does, 1);
        expect_used(at, "");
        bh_buf_reset(&told);
        CU_ASSERT_PTR_NULL(bh_plugin_find("Strange"));
        expect(rows[i].why);
        bh_buf_reset(&told);
        CU_ASSERT(bh_plugin_find("Strange") == NULL && told.n == 0); /* not tried again */
    }
    unsetenv("BERTH_STRANGE");
    CU_ASSERT_EQUAL(bh_native_use(at, false, &f, &err), 0);
    CU_ASSERT_STRING_EQUAL(f.names, "Strange");
    CU_ASSERT_STRING_EQUAL(f.version, "0");
    CU_ASSERT_STRING_EQUAL(f.license, "Apache-2.0");
    CU_ASSERT_EQUAL(strlen(f.sha256), 64);
    CU_ASSERT_PTR_NOT_NULL(bh_plugin_find("Strange"));
    CU_ASSERT_PTR_NULL(bh_plugin_find("NodeMetadata")); /* it is alone */
    snprintf(at, sizeof at, "%s/missing.so", bh_test_tmpdir());
    expect_used(at, "missing.so: No such file or directory");
    snprintf(at, sizeof at, "%s/tiny.so", bh_test_tmpdir());
    CU_ASSERT_FATAL(bh_write_file(at, "12345", 5, 0600) == 0);
    expect_used(at, "tiny.so is not a shared object (5 bytes)");
    bh_buf_fini(&told);
}

BH_TESTS("scheduler/native/use", {"one file alone", test_use})
