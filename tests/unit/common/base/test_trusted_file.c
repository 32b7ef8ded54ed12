/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_trusted_file.c - files of the runtime directory that are believed,
 * and those that are not
 */
#include "common/base/trusted_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/harness.h"

#define OTHER 61299u /* a user without a name */

static char dir[150], path[220];
static struct bh_err err;

static const char *at(const char *name)
{
    snprintf(path, sizeof(path), "%s/svc/%s", dir, name);
    return path;
}

static void new_dir(void)
{
    static unsigned n;

    snprintf(dir, sizeof(dir), "%s/t%u", bh_test_tmpdir(), n++);
    CU_ASSERT_FATAL(mkdir(dir, 0755) == 0);
}

static struct bh_trusted_dir opened(void)
{
    struct bh_trusted_dir d;

    CU_ASSERT_FATAL(bh_trusted_dir_open(&d, dir, "svc", &err) == 0);
    return d;
}

static void expect_text(const char *what, const char *text)
{
    if (!strstr(err.msg, what) || !strstr(err.msg, text))
        CU_FAIL(err.msg);
}

static void test_a_file_is_made_and_found(void)
{
    bool made, refused;
    char *text = NULL;
    struct stat st;
    size_t n;

    new_dir();
    struct bh_trusted_dir d = opened();
    CU_ASSERT(fstat(d.fd, &st) == 0 && (st.st_mode & 0622) == 0600);
    CU_ASSERT(bh_trusted_open(&d, "a", O_RDWR, geteuid(), &err) == -ENOENT);
    int fd = bh_trusted_open_own(&d, "a", 0600, &made, &refused, &err);
    CU_ASSERT_FATAL(fd >= 0 && made && !refused);
    CU_ASSERT(write(fd, "text", 4) == 4 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    close(fd);
    CU_ASSERT(bh_trusted_create(&d, "a", 0600, &err) == -EEXIST);
    fd = bh_trusted_open_own(&d, "a", 0600, &made, &refused, &err);
    CU_ASSERT(fd >= 0 && !made && !refused);
    close(fd);
    CU_ASSERT(bh_trusted_read(&d, "a", 100, geteuid(), &text, &n, &err) == 0);
    CU_ASSERT(n == 4 && bh_streq(text, "text"));
    free(text);
    CU_ASSERT(bh_trusted_read(&d, "a", 3, geteuid(), &text, &n, &err) == -EFBIG);
    bh_trusted_dir_close(&d);
    bh_trusted_dir_close(&d);
}

/* Refused with that text; then made again by its owner. */
static void expect_refused(const char *text)
{
    struct bh_trusted_dir d = opened();
    bool made, refused;

    CU_ASSERT(bh_trusted_open(&d, "a", O_RDONLY, geteuid(), &err) == -EPERM);
    expect_text("svc/a\"", text);
    CU_ASSERT(bh_trusted_open(&d, "a", O_RDWR, geteuid(), &err) == -EPERM);
    int fd = bh_trusted_open_own(&d, "a", 0600, &made, &refused, &err);
    CU_ASSERT(fd >= 0 && made && refused);
    close(fd);
    bh_trusted_dir_close(&d);
}

static void make(const char *name, mode_t mode)
{
    CU_ASSERT_FATAL(bh_write_file(at(name), "x", 1, mode) == 0);
}

static void test_what_others_may_write_is_refused(void)
{
    char other[220];

    new_dir();
    struct bh_trusted_dir d = opened();
    make("a", 0620);
    expect_refused("has mode 0620, and only its owner may be able to write it: remove it");
    make("a", 0602);
    expect_refused("has mode 0602");
    make("b", 0600);
    snprintf(other, sizeof(other), "%s", at("b"));
    CU_ASSERT_FATAL(unlink(at("a")) == 0 && symlink(other, at("a")) == 0);
    expect_refused("is not a regular file");
    CU_ASSERT_FATAL(unlink(at("a")) == 0 && mkfifo(at("a"), 0600) == 0);
    expect_refused("is not a regular file"); /* and does not wait for a writer */
    CU_ASSERT_FATAL(unlink(at("a")) == 0 && mkdir(at("a"), 0700) == 0);
    CU_ASSERT(bh_trusted_open(&d, "a", O_RDWR, geteuid(), &err) == -EPERM);
    expect_text("svc/a\"", "is not a regular file");
    bh_trusted_dir_close(&d);
}

/* In a process of its own, which is another user from then on. */
static bool as_other(bool (*fn)(void))
{
    int status = 0;

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(setgid(OTHER) == 0 && setuid(OTHER) == 0 && fn() ? 0 : 1);
    waitpid(pid, &status, 0);
    return status == 0;
}

static bool refuses_roots_dir(void)
{
    struct bh_trusted_dir d;
    char text[64];

    snprintf(text, sizeof(text), "belongs to user 0, and it must belong to user %u", OTHER);
    return bh_trusted_dir_open(&d, dir, "svc", &err) == -EPERM && d.fd < 0 && strstr(err.msg, text);
}

/* The snapshot's readers open names in it, and cannot lock it. */
static bool finds_and_cannot_lock(void)
{
    uid_t owner = 1;
    char svc[200];
    int fd = bh_trusted_dir_find(dir, "svc", &owner, &err);

    snprintf(svc, sizeof(svc), "%s/svc", dir);
    return fd >= 0 && owner == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EBADF &&
           open(svc, O_RDONLY | O_DIRECTORY) < 0 && faccessat(fd, "readable", R_OK, 0) == 0;
}

static void test_another_users_is_refused(void)
{
    new_dir();
    struct bh_trusted_dir d = opened();
    make("a", 0600);
    CU_ASSERT(bh_trusted_open(&d, "a", O_RDONLY, OTHER, &err) == -EPERM);
    expect_text("svc/a", "and it must belong to user 61299");
    if (geteuid() != 0) {
        bh_trusted_dir_close(&d);
        return;
    }
    CU_ASSERT_FATAL(chmod(bh_test_tmpdir(), 0755) == 0);
    CU_ASSERT_FATAL(chown(at("a"), OTHER, OTHER) == 0);
    expect_refused("belongs to user 61299, and it must belong to user 0: remove it");
    make("readable", 0644);
    CU_ASSERT(as_other(refuses_roots_dir));
    CU_ASSERT(as_other(finds_and_cannot_lock));
    bh_trusted_dir_close(&d);
}

static void expect_dir_refused(const char *text)
{
    struct bh_trusted_dir d;
    uid_t owner;

    CU_ASSERT(bh_trusted_dir_open(&d, dir, "svc", &err) == -EPERM && d.fd < 0);
    expect_text("svc\"", text);
    CU_ASSERT(bh_trusted_dir_find(dir, "svc", &owner, &err) == -EPERM);
    expect_text("svc\"", text);
}

static void test_a_directory_that_others_may_write_is_refused(void)
{
    char svc[200];
    uid_t owner;
    struct bh_trusted_dir d;

    new_dir();
    snprintf(svc, sizeof(svc), "%s/svc", dir);
    CU_ASSERT(bh_trusted_dir_find(dir, "svc", &owner, &err) == -ENOENT);
    CU_ASSERT_FATAL(mkdir(svc, 0700) == 0 && chmod(svc, 01770) == 0);
    expect_dir_refused("has mode 1770, and only its owner may be able to write it");
    CU_ASSERT_FATAL(rmdir(svc) == 0 && symlink("/tmp", svc) == 0);
    expect_dir_refused("is not a directory: remove it");
    CU_ASSERT_FATAL(unlink(svc) == 0 && bh_write_file(svc, "", 0, 0600) == 0);
    expect_dir_refused("is not a directory: remove it");
    snprintf(dir, sizeof(dir), "/no/such/folder");
    CU_ASSERT(bh_trusted_dir_open(&d, dir, "svc", &err) == -ENOENT);
    expect_text("/no/such/folder/svc", "No such file or directory");
}

static void test_a_tree_is_removed_without_following_links(void)
{
    char outside[200], folder[260], link[260];

    new_dir();
    snprintf(outside, sizeof(outside), "%s/outside", bh_test_tmpdir());
    CU_ASSERT_FATAL(bh_write_file(outside, "x", 1, 0600) == 0);
    struct bh_trusted_dir d = opened();
    make("a", 0600);
    snprintf(folder, sizeof(folder), "%s/svc/folder", dir);
    snprintf(link, sizeof(link), "%s/svc/folder/link", dir);
    CU_ASSERT_FATAL(mkdir(folder, 0700) == 0 && symlink(outside, link) == 0);
    bh_trusted_dir_close(&d);
    bh_remove_tree(dir);
    CU_ASSERT(access(dir, F_OK) < 0 && access(outside, F_OK) == 0);
    bh_remove_tree(dir);
}

static void test_a_boot_of_a_host_has_one_number(void)
{
    uint64_t a = 0, b = 0;

    CU_ASSERT(bh_host_boot(&a) == 0 && bh_host_boot(&b) == 0);
    CU_ASSERT(a == b && a != 0);
}

BH_TESTS("common/base/trusted_file", {"a file is made and found", test_a_file_is_made_and_found},
         {"what others may write is refused", test_what_others_may_write_is_refused},
         {"another user's is refused", test_another_users_is_refused},
         {"a directory that others may write is refused",
          test_a_directory_that_others_may_write_is_refused},
         {"a tree is removed without following links",
          test_a_tree_is_removed_without_following_links},
         {"a boot of a host has one number", test_a_boot_of_a_host_has_one_number})
