/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_inflight.c - the record of what may be on the wire: what the
 * next scheduler reads of it, also where it was torn, forged or could not be written
 */
#include "scheduler/daemon/inflight.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"

#define SECOND UINT64_C(1000000000)

static char dir[108], path[160];

static struct bh_inflight *open_record(void)
{
    struct bh_inflight *f = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_inflight_open(dir, &f, &err) == 0);
    return f;
}

static void new_dir(void)
{
    static unsigned n;

    snprintf(dir, sizeof(dir), "%s/i%u", bh_test_tmpdir(), n++);
    snprintf(path, sizeof(path), "%s/" BH_INFLIGHT_FILE, dir);
    CU_ASSERT_FATAL(mkdir(dir, 0750) == 0);
}

static uint32_t put(struct bh_inflight *f, uint64_t id, const char *uid, const char *node)
{
    const struct bh_inflight_item it = {.kind = 6,
                                        .id = id,
                                        .term = 3,
                                        .until_boot_ns = bh_boot_ns() + 20 * SECOND,
                                        .uid = uid,
                                        .node = node};

    return bh_inflight_put(f, &it);
}

static void test_what_is_taken_is_there_for_the_next(void)
{
    struct bh_inflight_item it;
    struct bh_inflight *f;
    uint32_t a, b, pos = 0;

    new_dir();
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_count(f) == 0);
    a = put(f, 1, "u1", "n1");
    b = put(f, 2, "u2", "n2");
    CU_ASSERT(a && b && a != b);
    bh_inflight_drop(f, a);
    bh_inflight_drop(f, 0);
    bh_inflight_add_binder(f, "host/1");
    bh_inflight_add_binder(f, "host/1");
    bh_inflight_close(f);
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_count(f) == 1);
    CU_ASSERT(bh_inflight_next(f, &pos, &it) == b);
    CU_ASSERT(it.kind == 6 && it.id == 2 && it.term == 3 && it.until_boot_ns > bh_boot_ns());
    CU_ASSERT_STRING_EQUAL(it.uid, "u2");
    CU_ASSERT_STRING_EQUAL(it.node, "n2");
    CU_ASSERT(bh_inflight_next(f, &pos, &it) == 0);
    CU_ASSERT_STRING_EQUAL(bh_inflight_binder(f, 0), "host/1");
    CU_ASSERT(bh_inflight_binder(f, 1) == NULL);
    bh_inflight_drop(f, b);
    bh_inflight_forget_binders(f);
    bh_inflight_close(f);
    CU_ASSERT(access(path, F_OK) < 0); /* at peace nothing stays */
}

static void test_it_grows_and_slots_are_used_again(void)
{
    enum { N = 700 };
    struct bh_inflight *f;
    struct bh_inflight_item it;
    uint32_t slot[N], pos = 0, n = 0;

    new_dir();
    f = open_record();
    for (unsigned i = 0; i < N; i++)
        CU_ASSERT_FATAL((slot[i] = put(f, i, "u", "n")) != 0);
    for (unsigned i = 0; i < N; i += 2)
        bh_inflight_drop(f, slot[i]);
    CU_ASSERT(bh_inflight_count(f) == N / 2);
    for (unsigned i = 0; i < N; i += 2)
        CU_ASSERT((slot[i] = put(f, i, "u", "n")) <= 768); /* three times 256 */
    bh_inflight_close(f);
    f = open_record();
    while (bh_inflight_next(f, &pos, &it))
        n++;
    CU_ASSERT(n == N);
    bh_inflight_close(f);
}

static void test_what_has_no_room_is_a_time_to_wait_for(void)
{
    struct rlimit limit, small;
    struct bh_inflight *f;
    uint64_t until;

    new_dir();
    f = open_record();
    CU_ASSERT(bh_inflight_unrecorded_until(f) == 0);
    CU_ASSERT_FATAL(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    small = limit;
    small.rlim_cur = 16384;
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CU_ASSERT(put(f, 1, "u1", "n1") == 0);
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CU_ASSERT(bh_inflight_unrecorded_until(f) == 0); /* who asked for it knows of it */
    bh_inflight_close(f);
    f = open_record();
    until = bh_inflight_unrecorded_until(f);
    CU_ASSERT(until > bh_boot_ns() && until <= bh_boot_ns() + 20 * SECOND);
    bh_inflight_extend(f, 0, until + SECOND);
    CU_ASSERT(put(f, 1, "u1", "n1") != 0); /* there is room again */
    CU_ASSERT(bh_inflight_unrecorded_until(f) == until);
    bh_inflight_close(f);
    f = open_record();
    CU_ASSERT(bh_inflight_unrecorded_until(f) == until + SECOND);
    bh_inflight_extend(f, 0, UINT64_MAX); /* as somebody else would write it */
    bh_inflight_close(f);
    f = open_record();
    until = bh_inflight_unrecorded_until(f);
    CU_ASSERT(until <= bh_boot_ns() + BH_INFLIGHT_NS);
    CU_ASSERT(bh_inflight_unrecorded_until(f) == until); /* it does come */
    bh_inflight_close(f);
}

/* Writes at an offset of the file, as a process that went wrong, or somebody else, would. */
static void forge(off_t at, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    CU_ASSERT_FATAL(fd >= 0 && pwrite(fd, p, n, at) == (ssize_t)n);
    close(fd);
}

static void test_what_cannot_be_understood_counts_as_unknown(void)
{
    static const char rubbish[8192] = "not a record at all";
    char ones[16384];
    struct bh_inflight *f;

    new_dir();
    memset(ones, 0xff, sizeof(ones));
    f = open_record();
    CU_ASSERT(put(f, 1, "u1", "n1") != 0);
    bh_inflight_close(f);
    forge(0, rubbish, sizeof(rubbish));
    f = open_record();
    CU_ASSERT(bh_inflight_unknown(f) && bh_inflight_count(f) == 0);
    CU_ASSERT(put(f, 1, "u1", "n1") != 0);
    bh_inflight_close(f);
    forge(8192, ones, sizeof(ones)); /* slots that have no end */
    f = open_record();
    CU_ASSERT(bh_inflight_unknown(f) && bh_inflight_count(f) == 0);
    CU_ASSERT(put(f, 1, "u1", "n1") != 0);
    bh_inflight_close(f);
    CU_ASSERT_FATAL(truncate(path, 100) == 0);
    f = open_record();
    CU_ASSERT(bh_inflight_unknown(f) && bh_inflight_count(f) == 0);
    bh_inflight_close(f);
}

/* The boot id stands behind the magic number. */
static void test_of_another_boot_nothing_can_be_on_the_wire(void)
{
    struct bh_inflight *f;

    new_dir();
    f = open_record();
    CU_ASSERT(put(f, 1, "u1", "n1") != 0);
    bh_inflight_add_binder(f, "host/1");
    bh_inflight_close(f);
    forge(8, "another-boot", 12);
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_count(f) == 0);
    CU_ASSERT(bh_inflight_binder(f, 0) == NULL);
    bh_inflight_close(f);
}

static void test_too_many_binders_are_not_known(void)
{
    struct bh_inflight *f;
    char name[32];

    new_dir();
    f = open_record();
    for (unsigned i = 0; i <= BH_INFLIGHT_BINDERS; i++) {
        snprintf(name, sizeof(name), "host/%u", i);
        bh_inflight_add_binder(f, name);
    }
    bh_inflight_close(f);
    f = open_record();
    CU_ASSERT(bh_inflight_unknown(f));
    bh_inflight_close(f);
}

static void test_something_else_in_its_place(void)
{
    char other[160], text[3] = "";
    struct bh_inflight *f = NULL;
    struct bh_err err = {0};
    int fd;

    new_dir();
    snprintf(other, sizeof(other), "%s/other", dir);
    CU_ASSERT_FATAL(bh_write_file(other, "ab", 2, 0600) == 0);
    CU_ASSERT_FATAL(symlink(other, path) == 0);
    f = open_record(); /* never written through */
    CU_ASSERT(bh_inflight_unknown(f));
    bh_inflight_close(f);
    fd = open(other, O_RDONLY | O_CLOEXEC);
    CU_ASSERT(fd >= 0 && read(fd, text, 3) == 2 && memcmp(text, "ab", 2) == 0);
    close(fd);
    (void)unlink(path);
    CU_ASSERT_FATAL(mkdir(path, 0700) == 0);
    f = NULL;
    CU_ASSERT(bh_inflight_open(dir, &f, &err) < 0 && !f);
    CU_ASSERT(strstr(err.msg, BH_INFLIGHT_FILE) != NULL);
}

BH_TESTS("scheduler/daemon/inflight",
         {"what is taken is there for the next", test_what_is_taken_is_there_for_the_next},
         {"it grows, and slots are used again", test_it_grows_and_slots_are_used_again},
         {"what has no room is a time to wait for", test_what_has_no_room_is_a_time_to_wait_for},
         {"what cannot be understood counts as unknown",
          test_what_cannot_be_understood_counts_as_unknown},
         {"of another boot nothing can be on the wire",
          test_of_another_boot_nothing_can_be_on_the_wire},
         {"too many binders are not known", test_too_many_binders_are_not_known},
         {"something else in its place", test_something_else_in_its_place})
