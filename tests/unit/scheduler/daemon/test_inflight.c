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
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/harness.h"

#define SECOND UINT64_C(1000000000)
/* Of the file, as inflight.c writes it. */
#define MAGIC      UINT64_C(0x32746c666e694842)
#define HEAD_BYTES 8192
#define HOST_BOOT  16 /* in a head */
#define N_SLOTS    32
#define N_BINDERS  36
#define CHECK      4144
#define SLOTS_AT   (2 * HEAD_BYTES)
#define SLOT_BYTES 560
#define UID        48 /* in a slot */

static char dir[108], home[140], path[180];

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
    snprintf(home, sizeof(home), "%s/scheduler", dir);
    snprintf(path, sizeof(path), "%s/" BH_INFLIGHT_FILE, home);
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
    small.rlim_cur = 20000; /* heads, and less than the first slots */
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

static void change(off_t at, size_t n, void (*fn)(uint8_t *p))
{
    uint8_t bytes[HEAD_BYTES];
    int fd = open(path, O_RDWR | O_CLOEXEC);

    CU_ASSERT_FATAL(fd >= 0 && pread(fd, bytes, n, at) == (ssize_t)n);
    fn(bytes);
    CU_ASSERT_FATAL(pwrite(fd, bytes, n, at) == (ssize_t)n);
    close(fd);
}

/* A valid checksum for a head. */
static void seal(uint8_t *head)
{
    const uint64_t check = bh_hash(head, CHECK, MAGIC) | 1;

    memcpy(head + CHECK, &check, sizeof(check));
}

/* Two binds and a binder, of a scheduler that was killed. */
static void leave_record(void)
{
    struct bh_inflight *f;

    new_dir();
    f = open_record();
    CU_ASSERT_FATAL(put(f, 1, "u1", "n1") == 1 && put(f, 2, "u2", "n2") == 2);
    bh_inflight_add_binder(f, "host/1");
    bh_inflight_close(f);
}

/* Binds of which nothing is known may take effect for BH_INFLIGHT_NS, for this scheduler and for
 * the one after it. */
static void expect_damage(uint32_t n_whole)
{
    const uint64_t least = bh_boot_ns() + BH_INFLIGHT_NS;
    struct bh_inflight *f = open_record();
    const uint64_t until = bh_inflight_unrecorded_until(f);

    CU_ASSERT(bh_inflight_unknown(f));
    CU_ASSERT(until >= least && until <= bh_boot_ns() + BH_INFLIGHT_NS);
    CU_ASSERT(bh_inflight_count(f) == n_whole);
    bh_inflight_close(f);
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_unrecorded_until(f) == until);
    bh_inflight_close(f);
}

static void test_what_cannot_be_understood_is_damage(void)
{
    static const char rubbish[HEAD_BYTES] = "not a record at all";
    char ones[SLOT_BYTES];

    leave_record();
    forge(0, rubbish, sizeof(rubbish));
    forge(HEAD_BYTES, rubbish, sizeof(rubbish));
    expect_damage(0);
    memset(ones, 0xff, sizeof(ones));
    leave_record();
    forge(SLOTS_AT, ones, sizeof(ones));
    expect_damage(1);
    leave_record();
    forge(SLOTS_AT, rubbish, sizeof(ones)); /* neither free nor taken */
    expect_damage(1);
    memset(ones, 0, sizeof(ones));
    leave_record();
    forge(SLOTS_AT + SLOT_BYTES, ones, sizeof(ones)); /* a page that was never written back */
    expect_damage(1);
}

static void test_a_truncated_record_is_damage(void)
{
    static const struct {
        off_t size;
        uint32_t whole;
    } cases[] = {{0, 0},
                 {100, 0},
                 {HEAD_BYTES, 0},
                 {SLOTS_AT - 1, 0},
                 {SLOTS_AT, 0},
                 {SLOTS_AT + SLOT_BYTES, 1},
                 {SLOTS_AT + 2 * SLOT_BYTES - 1, 1},
                 {SLOTS_AT + 255 * SLOT_BYTES, 2}};

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        leave_record();
        CU_ASSERT_FATAL(truncate(path, cases[i].size) == 0);
        expect_damage(cases[i].whole);
    }
}

static size_t flip_at;
static void flip_bit(uint8_t *p)
{
    *p ^= (uint8_t)(1u << flip_at % 8);
}

/* Each is found, and nothing that was changed is believed. */
static void test_flipped_bits_are_damage(void)
{
    const struct {
        off_t from, to;
        uint32_t whole;
    } parts[] = {{0, 64, 2},
                 {HEAD_BYTES, HEAD_BYTES + 64, 2},
                 {CHECK, CHECK + 8, 2},
                 {HEAD_BYTES + CHECK, HEAD_BYTES + CHECK + 8, 2},
                 {HEAD_BYTES + 1000, HEAD_BYTES + 1100, 2},
                 {SLOTS_AT, SLOTS_AT + 16, 1},           /* mark, time */
                 {SLOTS_AT + 24, SLOTS_AT + UID + 3, 1}, /* id, term, kind, lengths, uid */
                 {SLOTS_AT + UID + 256, SLOTS_AT + UID + 259, 1}};

    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++)
        for (off_t at = parts[i].from; at < parts[i].to; at++) {
            leave_record();
            flip_at = (size_t)at * 5;
            change(at, 1, flip_bit);
            expect_damage(parts[i].whole);
        }
}

static void name_many_slots(uint8_t *head)
{
    const uint32_t n = BH_INFLIGHT_SLOTS;

    memcpy(head + N_SLOTS, &n, sizeof(n));
    seal(head);
}

static void name_too_many(uint8_t *head)
{
    const uint32_t n = UINT32_MAX;

    memcpy(head + N_SLOTS, &n, sizeof(n));
    memcpy(head + N_BINDERS, &n, sizeof(n));
    seal(head);
}

static void test_numbers_of_a_head_are_bounded_by_the_file(void)
{
    leave_record();
    change(0, HEAD_BYTES, name_many_slots);
    change(HEAD_BYTES, HEAD_BYTES, name_many_slots);
    expect_damage(2);
    leave_record();
    change(0, HEAD_BYTES, name_too_many);
    change(HEAD_BYTES, HEAD_BYTES, name_too_many);
    expect_damage(0);
}

/* The process before may have been killed while it wrote the head that did not hold yet. */
static void tear(uint8_t *head)
{
    memset(head + CHECK, 0, 8);
    memset(head + 24, 0x5a, 400);
}

static void test_a_head_that_was_being_written_is_not_damage(void)
{
    unsigned holds = 0;

    for (unsigned i = 0; i < 2; i++) {
        leave_record();
        change((off_t)i * HEAD_BYTES, HEAD_BYTES, tear);
        struct bh_inflight *f = open_record();
        CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_unrecorded_until(f) == 0);
        CU_ASSERT(bh_inflight_count(f) == 2);
        holds += bh_inflight_binder(f, 0) != NULL;
        bh_inflight_close(f);
    }
    CU_ASSERT(holds == 1); /* the other head is the one before the binder came */
}

/* Writes until it is killed; a byte for each round. */
BH_NORETURN static void write_without_end(int to)
{
    struct bh_inflight *f = open_record();
    uint32_t slot[40];
    char name[32];

    for (unsigned i = 0;; i++) {
        for (unsigned k = 0; k < BH_ARRAY_LEN(slot); k++)
            slot[k] = put(f, k + 1, "0123456789abcdef0123456789abcdef", "node");
        for (unsigned k = 0; k < BH_ARRAY_LEN(slot); k++)
            bh_inflight_extend(f, slot[k], bh_boot_ns() + 20 * SECOND + k);
        for (unsigned k = 0; k < BH_ARRAY_LEN(slot); k++)
            bh_inflight_drop(f, slot[k]);
        snprintf(name, sizeof(name), "host/%u", i % BH_INFLIGHT_BINDERS);
        bh_inflight_add_binder(f, name);
        if (i % 50 == 49)
            bh_inflight_forget_binders(f);
        if (write(to, "x", 1) != 1)
            _exit(1);
    }
}

static void test_a_record_is_whole_whenever_its_process_is_killed(void)
{
    char byte;

    for (unsigned round = 0; round < 40; round++) {
        int p[2];
        new_dir();
        CU_ASSERT_FATAL(pipe(p) == 0);
        pid_t pid = fork();
        if (pid == 0)
            write_without_end(p[1]);
        close(p[1]);
        for (unsigned i = 0; i <= round; i++)
            CU_ASSERT_FATAL(read(p[0], &byte, 1) == 1);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(p[0]);
        struct bh_inflight *f = open_record();
        struct bh_inflight_item it;
        uint32_t pos = 0;
        CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_unrecorded_until(f) == 0);
        while (bh_inflight_next(f, &pos, &it))
            CU_ASSERT(it.id >= 1 && it.id <= 40 && bh_streq(it.node, "node"));
        bh_inflight_close(f);
    }
}

static void name_another_boot(uint8_t *head)
{
    head[HOST_BOOT] ^= 1;
    seal(head);
}

static void test_of_another_boot_nothing_can_be_in_flight(void)
{
    struct bh_inflight *f;

    leave_record();
    change(0, HEAD_BYTES, name_another_boot);
    change(HEAD_BYTES, HEAD_BYTES, name_another_boot);
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_count(f) == 0);
    CU_ASSERT(bh_inflight_unrecorded_until(f) == 0);
    CU_ASSERT(bh_inflight_binder(f, 0) == NULL);
    bh_inflight_close(f);
}

static void set_file_limit(rlim_t bytes)
{
    struct rlimit limit;

    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_FATAL(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = BH_MIN(bytes, limit.rlim_max);
    CU_ASSERT_FATAL(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void test_without_space_for_the_file_it_is_kept_in_memory(void)
{
    struct bh_inflight *f;
    uint32_t slot;

    new_dir();
    set_file_limit(0);
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f)); /* there was none before */
    slot = put(f, 1, "u1", "n1");
    CU_ASSERT(slot != 0 && bh_inflight_count(f) == 1);
    bh_inflight_extend(f, slot, bh_boot_ns() + SECOND);
    bh_inflight_add_binder(f, "host/1");
    bh_inflight_close(f); /* as if it were killed */
    set_file_limit(RLIM_INFINITY);
    expect_damage(0);

    leave_record();
    CU_ASSERT_FATAL(chmod(path, 0660) == 0); /* not believed, and none can be made in its place */
    set_file_limit(0);
    for (unsigned i = 0; i < 2; i++) {
        f = open_record();
        CU_ASSERT(bh_inflight_unknown(f) && bh_inflight_unrecorded_until(f) != 0);
        CU_ASSERT(bh_inflight_count(f) == 0);
        bh_inflight_close(f);
    }
    set_file_limit(RLIM_INFINITY);
    expect_damage(0);
}

static void test_it_is_recorded_as_soon_as_there_is_space(void)
{
    struct bh_inflight_item it;
    struct bh_inflight *f;
    uint32_t pos = 0;

    new_dir();
    set_file_limit(0);
    f = open_record();
    bh_inflight_add_binder(f, "host/1");
    set_file_limit(RLIM_INFINITY);
    CU_ASSERT(put(f, 1, "u1", "n1") != 0);
    bh_inflight_close(f);
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_count(f) == 1);
    CU_ASSERT(bh_inflight_next(f, &pos, &it) && bh_streq(it.uid, "u1"));
    CU_ASSERT_STRING_EQUAL(bh_inflight_binder(f, 0), "host/1");
    bh_inflight_close(f);
}

static void test_at_peace_a_record_in_memory_leaves_nothing(void)
{
    struct bh_inflight *f;

    new_dir();
    set_file_limit(0);
    f = open_record();
    bh_inflight_close(f);
    set_file_limit(RLIM_INFINITY);
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && bh_inflight_unrecorded_until(f) == 0);
    bh_inflight_close(f);
}

/* Versions before kept it in the runtime directory itself. */
static void test_a_record_of_an_earlier_version_is_waited_for(void)
{
    char old[160];
    struct bh_inflight *f;

    new_dir();
    snprintf(old, sizeof(old), "%s/" BH_INFLIGHT_FILE, dir);
    CU_ASSERT_FATAL(bh_write_file(old, "", 0, 0600) == 0); /* as systemd-tmpfiles made it */
    f = open_record();
    CU_ASSERT(!bh_inflight_unknown(f) && access(old, F_OK) < 0);
    bh_inflight_close(f);
    CU_ASSERT_FATAL(bh_write_file(old, "BHinflt1", 8, 0600) == 0);
    expect_damage(0);
    CU_ASSERT(access(old, F_OK) < 0);
    if (geteuid() != 0)
        return;
    new_dir();
    snprintf(old, sizeof(old), "%s/" BH_INFLIGHT_FILE, dir);
    CU_ASSERT_FATAL(bh_write_file(old, "BHinflt1", 8, 0600) == 0 && chown(old, 1, 1) == 0);
    f = open_record(); /* another user could make every start wait */
    CU_ASSERT(!bh_inflight_unknown(f));
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

/* Puts something else where the record of a killed scheduler was. */
static void expect_not_believed(void)
{
    struct stat st;

    expect_damage(0);
    CU_ASSERT(lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
              (st.st_mode & 077) == 0);
}

static void test_what_is_not_the_schedulers_own_is_not_believed(void)
{
    char other[200];

    leave_record();
    CU_ASSERT_FATAL(chmod(path, 0660) == 0);
    expect_not_believed();
    leave_record();
    CU_ASSERT_FATAL(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    expect_not_believed();
    leave_record();
    snprintf(other, sizeof(other), "%s/other", dir);
    CU_ASSERT_FATAL(rename(path, other) == 0 && symlink(other, path) == 0);
    expect_not_believed();
    if (geteuid() != 0)
        return;
    leave_record();
    CU_ASSERT_FATAL(chown(path, 1, 1) == 0);
    expect_not_believed();
}

static void expect_refused(const char *text)
{
    struct bh_inflight *f = NULL;
    struct bh_err err = {0};

    CU_ASSERT(bh_inflight_open(dir, &f, &err) == -EPERM && !f);
    if (!strstr(err.msg, home) || !strstr(err.msg, text))
        CU_FAIL(err.msg);
}

static void test_a_directory_that_is_not_the_schedulers_own_is_refused(void)
{
    new_dir();
    CU_ASSERT_FATAL(symlink("/tmp", home) == 0);
    expect_refused("is not a directory: remove it");
    new_dir();
    CU_ASSERT_FATAL(mkdir(home, 0700) == 0 && chmod(home, 0770) == 0);
    expect_refused("has mode 0770, and only its owner may be able to write it");
    if (geteuid() != 0)
        return;
    new_dir();
    CU_ASSERT_FATAL(mkdir(home, 0700) == 0 && chown(home, 1, 1) == 0);
    expect_refused("belongs to user 1, and it must belong to user 0: remove it");
}

static void test_something_else_in_its_place(void)
{
    char other[160], text[3] = "";
    struct bh_inflight *f = NULL;
    struct bh_err err = {0};
    int fd;

    leave_record();
    snprintf(other, sizeof(other), "%s/other", dir);
    CU_ASSERT_FATAL(unlink(path) == 0);
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

BH_TESTS(
    "scheduler/daemon/inflight",
    {"what is taken is there for the next", test_what_is_taken_is_there_for_the_next},
    {"it grows, and slots are used again", test_it_grows_and_slots_are_used_again},
    {"what has no room is a time to wait for", test_what_has_no_room_is_a_time_to_wait_for},
    {"what cannot be understood is damage", test_what_cannot_be_understood_is_damage},
    {"a truncated record is damage", test_a_truncated_record_is_damage},
    {"flipped bits are damage", test_flipped_bits_are_damage},
    {"numbers of a head are bounded by the file", test_numbers_of_a_head_are_bounded_by_the_file},
    {"a head that was being written is not damage",
     test_a_head_that_was_being_written_is_not_damage},
    {"a record is whole whenever its process is killed",
     test_a_record_is_whole_whenever_its_process_is_killed},
    {"of another boot nothing can be in flight", test_of_another_boot_nothing_can_be_in_flight},
    {"without space for the file it is kept in memory",
     test_without_space_for_the_file_it_is_kept_in_memory},
    {"it is recorded as soon as there is space", test_it_is_recorded_as_soon_as_there_is_space},
    {"at peace a record in memory leaves nothing", test_at_peace_a_record_in_memory_leaves_nothing},
    {"a record of an earlier version is waited for",
     test_a_record_of_an_earlier_version_is_waited_for},
    {"too many binders are not known", test_too_many_binders_are_not_known},
    {"what is not the scheduler's own is not believed",
     test_what_is_not_the_schedulers_own_is_not_believed},
    {"a directory that is not the scheduler's own is refused",
     test_a_directory_that_is_not_the_schedulers_own_is_refused},
    {"something else in its place", test_something_else_in_its_place})
