/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_limit.c - requests a second, alone and together; time is an argument
 */
#include "common/api/api_int.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
    bh_api_limit_fini(&b);
    unlink(path);
    free(path);
}

static void write_word(const char *path, uint64_t word)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CU_ASSERT(fd >= 0 && pwrite(fd, &word, sizeof(word), 0) == (ssize_t)sizeof(word));
    close(fd);
}

/* Another boot's clock, rubbish, or a user of the group that has been taken over. */
static void test_what_others_write_is_bounded(void)
{
    char *path = bh_asprintf("%s/wild.limit", bh_test_tmpdir());
    const uint64_t wild[] = {UINT64_MAX, UINT64_MAX - 5, 1000 * S};
    struct bh_api_limit a, b;
    uint64_t now = 100 * S;

    CU_ASSERT_EQUAL_FATAL(bh_api_limit_init(&a, 10, 8, path, &err), 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(wild); i++) { /* none holds requests back */
        write_word(path, wild[i]);
        CU_ASSERT_EQUAL(take_all(&a, now), 8);
        CU_ASSERT(bh_api_limit_next(&a, now) <= now + S / 10);
        now += 10 * S;
    }
    write_word(path, now + S / 2); /* a value that can be right is believed: five tokens are gone */
    CU_ASSERT_EQUAL(take_all(&a, now), 3);
    write_word(path, 1); /* none lets more through */
    CU_ASSERT_EQUAL(take_all(&a, now), 0);
    CU_ASSERT_EQUAL(truncate(path, 0), 0);
    CU_ASSERT_EQUAL(take_all(&a, now), 0);
    CU_ASSERT_EQUAL(take_all(&a, now + S / 10), 1);
    CU_ASSERT_EQUAL(truncate(path, 3), 0);
    CU_ASSERT_EQUAL(take_all(&a, now + S / 5), 1);
    CU_ASSERT_EQUAL_FATAL(bh_api_limit_init(&b, 10, 8, path, &err), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC); /* the lock is held for ever */
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CU_ASSERT_EQUAL(fcntl(fd, F_OFD_SETLK, &lock), 0);
    now += 10 * S;
    CU_ASSERT_EQUAL(take_all(&a, now) + take_all(&b, now), 8);
    close(fd);
    CU_ASSERT_EQUAL(unlink(path), 0); /* each goes on with what it has open */
    CU_ASSERT_EQUAL(take_all(&b, now + S / 10), 1);
    CU_ASSERT_EQUAL(take_all(&a, now + S / 10), 0);
    bh_api_limit_fini(&a);
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
    CU_ASSERT_EQUAL_FATAL(mkfifo(link, 0600), 0); /* nor does it wait for another end */
    CU_ASSERT_EQUAL(bh_api_limit_init(&l, 10, 8, link, &err), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "not a regular file"));
    unlink(link);
    free(link);
}

static bool each_for_itself(const char *path)
{
    struct bh_api_limit a, b;
    bool ok = bh_api_limit_init(&a, 10, 8, path, &err) == 0 &&
              bh_api_limit_init(&b, 10, 8, path, &err) == 0;
    ok = ok && take_all(&a, 100 * S) == 8 && take_all(&b, 100 * S) == 8;
    bh_api_limit_fini(&a);
    bh_api_limit_fini(&b);
    return ok;
}

/* No byte can be had, whatever the file system. */
static bool no_room_by_limit(const char *dir)
{
    char *path = bh_asprintf("%s/full.limit", dir);
    const struct rlimit none = {0};
    signal(SIGXFSZ, SIG_IGN);
    bool ok = setrlimit(RLIMIT_FSIZE, &none) == 0 && each_for_itself(path);
    free(path);
    return ok;
}

/* A small file system that is full: there a file has any length, and no memory behind it. */
static bool no_room_on_disk(const char *dir)
{
    char *path = bh_asprintf("%s/full.limit", dir), *filler = bh_asprintf("%s/filler", dir);
    char page[4096] = {0};
    bool ok = false;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", dir, "tmpfs", 0, "size=8k") < 0) {
        printf("# SKIP: no mount namespace: %s\n", strerror(errno));
        ok = true;
    } else {
        int fd = open(filler, O_WRONLY | O_CREAT, 0600);
        while (write(fd, page, sizeof(page)) > 0)
            ;
        ok = errno == ENOSPC && each_for_itself(path);
        close(fd);
    }
    fflush(stdout);
    free(path);
    free(filler);
    return ok;
}

/* In processes of their own: what is done to them stays. */
static void test_full_disk(void)
{
    bool (*const kinds[])(const char *dir) = {no_room_by_limit, no_room_on_disk};
    char *dir = bh_asprintf("%s/full", bh_test_tmpdir());
    int st = 0;

    CU_ASSERT_EQUAL_FATAL(mkdir(dir, 0700), 0);
    for (unsigned i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            _exit(kinds[i](dir) ? 0 : 1);
        CU_ASSERT_EQUAL(waitpid(pid, &st, 0), pid);
        CU_ASSERT_EQUAL(st, 0);
    }
    free(dir);
}

BH_TESTS("common/api/limit", {"a burst, then so many a second", test_alone},
         {"clients of one file share one limit", test_together},
         {"what others write is bounded", test_what_others_write_is_bounded},
         {"without room for the file each has a limit of its own", test_full_disk},
         {"a file that is none is refused and named", test_bad_files})
