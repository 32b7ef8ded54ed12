/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_names.c - names: whose they are, who is in their way, what
 * happens when they go, and when there is no room for what they name
 */
#include <grp.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "common/snapshot/layout.h"
#include "tests/unit/common/snapshot/fixture.h"

/* ---- randomness that a test knows: the C library's stands behind it -------------------------- */
static uint64_t draws[2]; /* the next ones, from the end */
static unsigned draws_n;

ssize_t getrandom(void *p, size_t n, unsigned flags)
{
    if (n != sizeof(draws[0]) || !draws_n)
        return syscall(SYS_getrandom, p, n, flags);
    memcpy(p, &draws[--draws_n], n);
    return (ssize_t)n;
}

/* ---- helpers --------------------------------------------------------------------------------- */
static char *new_dir(char out[static FX_NAME])
{
    snprintf(out, FX_NAME, "%s", fx_name());
    return out;
}

static void path_of(uint64_t instance, uint64_t key, char out[static 128])
{
    char name[BH_SNAP_NAME_MAX];
    bh_snap_object_name(instance, key, name);
    snprintf(out, 128, "%s%s", BH_SNAP_FOLDER, name);
}

static const struct bh_snap_control *map_control(const char *dir, struct bh_snap_map **ret)
{
    struct bh_snap_announced at;
    uint64_t bytes;
    CU_ASSERT_EQUAL_FATAL(bh_snap_announced(dir, &at, NULL), 0);
    int fd = bh_snap_object_open(at.name, at.uid, false, &bytes);
    CU_ASSERT_FATAL(fd >= 0);
    *ret = bh_snap_map_new(fd, sizeof(struct bh_snap_control), false);
    close(fd);
    return (*ret)->base;
}

/* Paths of what a reader needs: link, control, slots, data. */
static void four_paths(const char *dir, char out[static 4][512])
{
    struct bh_snap_announced at;
    struct bh_snap_map *m;
    const struct bh_snap_control *c = map_control(dir, &m);
    CU_ASSERT_EQUAL(bh_snap_announced(dir, &at, NULL), 0);
    snprintf(out[0], 512, "%s/watcher/snapshot", dir);
    snprintf(out[1], 512, "%s%s", BH_SNAP_FOLDER, at.name);
    path_of(at.instance, c->slots_key, out[2]);
    path_of(at.instance, c->data_key[c->segment % 2], out[3]);
    bh_snap_map_free(m);
}

static uint64_t lost(const struct bh_snap_writer *w)
{
    struct bh_snap_stats st;
    bh_snap_writer_stats(w, &st);
    return st.lost;
}

static bool is_hidden(const struct bh_snap_writer *w)
{
    struct bh_snap_stats st;
    bh_snap_writer_stats(w, &st);
    return st.hidden;
}

/* Names are looked at once a second. */
static bool tick_until_lost(struct bh_snap_writer *w, uint64_t n)
{
    for (uint64_t end = fx_in(30); lost(w) < n && fx_before(end); usleep(1000))
        bh_snap_writer_tick(w);
    return lost(w) == n;
}

static bool tick_until_shown(struct bh_snap_writer *w)
{
    for (uint64_t end = fx_in(30); is_hidden(w) && fx_before(end); usleep(1000))
        bh_snap_writer_tick(w);
    return !is_hidden(w);
}

/* What fn writes to stderr. */
static char *said(void (*fn)(void *arg), void *arg)
{
    char *path = bh_asprintf("%s/stderr", bh_test_tmpdir()), *text = NULL;
    int old = dup(STDERR_FILENO), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    fn(arg);
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    close(fd);
    CU_ASSERT_EQUAL(bh_read_file(path, 1 << 20, &text, NULL), 0);
    free(path);
    return text;
}

/* ---- whose they are -------------------------------------------------------------------------- */
static void test_modes_and_group(void)
{
    const char *dir = fx_name();
    struct group *g = getgrgid(getegid());
    struct bh_snap_options o = {.group = g ? g->gr_name : NULL};
    struct bh_snap_writer *w = NULL;
    char path[4][512];
    struct stat st;
    mode_t old = umask(0777);
    CU_ASSERT_EQUAL_FATAL(bh_snap_writer_new(dir, &o, &w, NULL), 0);
    umask(old);
    bh_snap_open(w);
    four_paths(dir, path);
    const mode_t want[] = {0777, 0640, 0660, 0640};
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT(lstat(path[i], &st) == 0 && (st.st_mode & 0777) == want[i]);
    bh_snap_writer_free(w);
}

/* A writer that was killed before it gave them a size. */
static void test_objects_without_a_size_are_removed(void)
{
    char dir[FX_NAME], path[512];
    struct stat st;

    path_of(bh_snap_instance(new_dir(dir)), 77, path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    struct bh_snap_writer *w = fx_writer(dir, 4096, 0);
    CU_ASSERT(stat(path, &st) < 0);
    bh_snap_writer_free(w);
}

static void test_names_are_never_the_same(void)
{
    char dir[FX_NAME], first[4][512], second[4][512];
    struct bh_snap_writer *w = fx_writer(new_dir(dir), 4096, 0);
    bh_snap_open(w);
    four_paths(dir, first);
    bh_snap_writer_free(w);
    CU_ASSERT_EQUAL(access(first[0], F_OK), -1); /* a clean stop takes the link along */
    w = fx_writer(dir, 4096, 0);
    bh_snap_open(w);
    four_paths(dir, second);
    for (unsigned i = 1; i < 4; i++)
        CU_ASSERT_STRING_NOT_EQUAL(first[i], second[i]);
    bh_snap_writer_free(w);
}

static void test_instance_follows_the_folder(void)
{
    char dir[300], link[300];
    snprintf(dir, sizeof(dir), "%.200s/run", bh_test_tmpdir());
    snprintf(link, sizeof(link), "%.200s/link", bh_test_tmpdir());
    CU_ASSERT_EQUAL(mkdir(dir, 0700), 0);
    CU_ASSERT_EQUAL(symlink(dir, link), 0);
    CU_ASSERT_EQUAL(bh_snap_instance(dir), bh_snap_instance(link));
    CU_ASSERT_EQUAL(bh_snap_instance("/no/such"), bh_snap_instance("/no/such///"));
    CU_ASSERT_NOT_EQUAL(bh_snap_instance("/no/such"), bh_snap_instance("/no/such2"));
}

static void test_parse_takes_only_what_it_writes(void)
{
    static const char *const bad[] = {"",
                                      "/berth-",
                                      "berth-0123456789abcdef-0123456789abcdef",
                                      "/berth-0123456789abcdef",
                                      "/berth-0123456789abcdef-0123456789abcde",
                                      "/berth-0123456789abcdef-0123456789abcdef0",
                                      "/berth-0123456789ABCDEF-0123456789abcdef",
                                      "/berth-+123456789abcdef-0123456789abcdef",
                                      "/berth-0123456789abcdef-0123456789abcdef/x",
                                      "/../berth-0123456789abcdef-0123456789abcde"};
    uint64_t instance, key;
    CU_ASSERT(bh_snap_object_parse("/berth-0123456789abcdef-fedcba9876543210", &instance, &key));
    CU_ASSERT(instance == 0x0123456789abcdef && key == 0xfedcba9876543210);
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++)
        CU_ASSERT_FALSE(bh_snap_object_parse(bad[i], &instance, &key));
}

static bool is_expected(const void *arg, uid_t uid)
{
    return *(const uid_t *)arg == uid;
}

static void test_strangers_objects_are_refused(void)
{
    const char *dir = fx_name();
    char path[4][512], link[512], watcher[512];
    uid_t expected = 4242;
    struct fx_reader x;
    fx_reader_init(&x, dir, NULL);
    struct bh_snap_writer *w = fx_writer(dir, 4096, 0);
    bh_snap_set_synced(w, true);
    four_paths(dir, path);
    CU_ASSERT_EQUAL(chmod(path[1], 0666), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(strstr(bh_snap_reader_error(x.r), "trusted") != NULL);
    CU_ASSERT_EQUAL(chmod(path[1], 0640), 0);
    CU_ASSERT_EQUAL(chmod(dir, 0777), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(strstr(bh_snap_reader_error(x.r), "writable for everybody") != NULL);
    CU_ASSERT_EQUAL(chmod(dir, 0750), 0);
    snprintf(watcher, sizeof(watcher), "%s/watcher", dir);
    CU_ASSERT_EQUAL(chmod(watcher, 0770), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(strstr(bh_snap_reader_error(x.r), "/watcher\" has mode 0770") != NULL);
    CU_ASSERT_EQUAL(chmod(watcher, 0711), 0);
    if (geteuid() == 0) {
        CU_ASSERT_EQUAL(lchown(path[0], 65534, (gid_t)-1), 0); /* a link in another's directory */
        CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
        CU_ASSERT(strstr(bh_snap_reader_error(x.r), "user 65534 announced it, in a directory that "
                                                    "belongs to user 0") != NULL);
        /* whose link it is, is whose the object must be */
        CU_ASSERT_EQUAL(lchown(watcher, 65534, (gid_t)-1), 0);
        CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
        CU_ASSERT(strstr(bh_snap_reader_error(x.r), "user 65534 announced it") != NULL);
        CU_ASSERT_EQUAL(lchown(watcher, 0, (gid_t)-1), 0);
        CU_ASSERT_EQUAL(lchown(path[0], 0, (gid_t)-1), 0);
    }
    bh_snap_reader_believe(x.r, is_expected, &expected); /* another user is expected */
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
    CU_ASSERT(strstr(bh_snap_reader_error(x.r), "is not berth-watcher's user") != NULL);
    expected = geteuid();
    snprintf(link, sizeof(link), "%s/watcher/kept", dir);
    CU_ASSERT_EQUAL(rename(path[0], link), 0);
    static const char *const elsewhere[] = {"/etc/passwd", "/dev/shm/../../etc/passwd",
                                            "/dev/shm/berth-1-2"};
    for (unsigned i = 0; i < BH_ARRAY_LEN(elsewhere); i++) {
        CU_ASSERT_EQUAL(symlink(elsewhere[i], path[0]), 0);
        CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_NOT_READY);
        CU_ASSERT(strstr(bh_snap_reader_error(x.r), "not a link to one") != NULL);
        CU_ASSERT(bh_snap_reader_absent(x.r));
        CU_ASSERT_EQUAL(unlink(path[0]), 0);
    }
    CU_ASSERT_EQUAL(rename(link, path[0]), 0);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

static void test_directory_of_everybody_is_refused(void)
{
    const char *dir = fx_name();
    struct bh_snap_writer *w = NULL;
    struct bh_err err = {{0}};
    CU_ASSERT_EQUAL(chmod(dir, 01777), 0);
    CU_ASSERT_EQUAL(bh_snap_writer_new(dir, NULL, &w, &err), -EPERM);
    CU_ASSERT(strstr(err.msg, dir) && strstr(err.msg, "writable for everybody"));
}

/* ---- who is in their way --------------------------------------------------------------------- */
static void grow(void *arg)
{
    struct bh_snap_stats st;
    do {
        static uint64_t op;
        op++;
        CU_ASSERT_EQUAL_FATAL(fx_write_node(arg, op, op), 0);
        bh_snap_writer_stats(arg, &st);
    } while (!st.moves);
}

static void test_a_name_that_is_taken_is_stepped_around(void)
{
    const char *dir = fx_name();
    char squat[128];
    struct stat st;
    struct bh_snap_writer *w = fx_writer(dir, 4096, 0);
    path_of(bh_snap_instance(dir), 0xbad, squat);
    CU_ASSERT_EQUAL(mkdir(squat, 0700), 0);
    draws[1] = draws[0] = 0xbad;
    draws_n = 2; /* by a miracle, twice */
    char *text = said(grow, w);
    CU_ASSERT_EQUAL(draws_n, 0);
    CU_ASSERT(strstr(text, "Something else has a name") && strstr(text, strrchr(squat, '/')));
    free(text);
    CU_ASSERT_FALSE(is_hidden(w));
    CU_ASSERT(stat(squat, &st) == 0 && S_ISDIR(st.st_mode));
    bh_snap_writer_free(w);
    CU_ASSERT_EQUAL(rmdir(squat), 0);
}

static void open_writer(void *arg)
{
    struct bh_snap_writer *w = fx_writer(arg, 4096, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    bh_snap_writer_free(w);
}

static void test_only_what_is_dead_and_ours_is_swept(void)
{
    char dir[FX_NAME], path[3][128];
    const uint64_t instance = bh_snap_instance(new_dir(dir));
    struct bh_snap_object alive;
    CU_ASSERT_EQUAL(bh_snap_object_create(instance, 0640, (gid_t)-1, 4096, &alive), 0);
    for (unsigned i = 0; i < 3; i++) /* of a dead writer; no file at all; somebody else's */
        path_of(instance, i + 1, path[i]);
    CU_ASSERT_EQUAL(bh_write_file(path[0], "x", 1, 0640), 0);
    CU_ASSERT_EQUAL(mkfifo(path[1], 0640), 0);
    CU_ASSERT_EQUAL(bh_write_file(path[2], "x", 1, 0666), 0);
    if (geteuid() == 0)
        CU_ASSERT_EQUAL(chown(path[2], 65534, (gid_t)-1), 0);
    char *text = said(open_writer, dir);
    CU_ASSERT(
        bh_snap_object_there(instance, &alive)); /* the same path in another mount namespace */
    CU_ASSERT_EQUAL(access(path[0], F_OK), -1);
    CU_ASSERT_EQUAL(unlink(path[1]), 0);
    CU_ASSERT_EQUAL(unlink(path[2]), geteuid() == 0 ? 0 : -1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Objects of somebody else"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, geteuid() == 0 ? "objects=2" : "objects=1"));
    free(text);
    bh_snap_object_remove(instance, &alive);
}

/* ---- when they go ---------------------------------------------------------------------------- */
static void test_each_name_is_made_again(void)
{
    char dir[FX_NAME], path[4][512], after[4][512];
    struct bh_snap_writer *w = fx_writer(new_dir(dir), 4096, 0), *second = NULL;
    struct fx_state model = {0};
    struct fx_reader x;
    uint64_t op = 0, term, until;
    fx_reader_init(&x, dir, NULL);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    for (unsigned i = 0; i < 4; i++) {
        four_paths(dir, path);
        CU_ASSERT_EQUAL(unlink(path[i]), 0);
        CU_ASSERT_EQUAL(bh_snap_writer_new(dir, NULL, &second, NULL), -EBUSY); /* all the same */
        CU_ASSERT_EQUAL(fx_write_node(w, i, ++op), 0);
        fx_set(&model, FX_NODES, i, op);
        CU_ASSERT_TRUE(tick_until_lost(w, i + 1));
        bh_snap_set_lease(w, i + 5, 99);
        CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
        CU_ASSERT(fx_equal(&x.state, &model) && x.wrong == 0);
        CU_ASSERT(bh_snap_reader_lease(x.r, &term, &until) && term == i + 5 && until == 99);
        four_paths(dir, after);
        for (unsigned k = 0; k < 4; k++)
            CU_ASSERT_EQUAL(access(after[k], F_OK), 0);
        CU_ASSERT_EQUAL(fx_left_over(false) % 3, 0); /* those of tests before are gone */
    }
    CU_ASSERT(x.begins == 1 && x.overruns == 0 && x.incarnations == 0); /* followed, not rebuilt */
    bh_snap_writer_tick(w);
    struct bh_snap_stats st;
    CU_ASSERT(bh_snap_reader_info(x.r, &st) && st.readers == 1); /* registered in the new slots */
    /* Another one under the same name is no better than none. */
    four_paths(dir, path);
    CU_ASSERT_EQUAL(unlink(path[1]), 0);
    CU_ASSERT_EQUAL(mkdir(path[1], 0700), 0);
    CU_ASSERT_TRUE(tick_until_lost(w, 5));
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT_EQUAL(rmdir(path[1]), 0);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
}

struct nameless {
    char dir[FX_NAME];
    uint64_t ready; /* shared */
};

static int nameless_writer(void *arg)
{
    struct nameless *n = arg;
    struct bh_snap_writer *w = fx_writer(n->dir, 4096, 0);
    fx_write_node(w, 1, 1);
    bh_snap_set_synced(w, true);
    __atomic_store_n(&n->ready, 1, __ATOMIC_RELEASE);
    pause();
    return bh_snap_head(w) == 0;
}

/* Its successor finds nothing to mark as gone, so nobody tells the reader. */
static void test_reader_of_removed_names_finds_the_successor(void)
{
    struct nameless *n = fx_shared(sizeof(*n));
    char path[4][512];
    struct fx_reader x;
    fx_reader_init(&x, new_dir(n->dir), NULL);
    pid_t pid = fx_spawn(nameless_writer, n);
    for (uint64_t end = fx_in(30); !__atomic_load_n(&n->ready, __ATOMIC_ACQUIRE) && fx_before(end);)
        usleep(1000);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    four_paths(n->dir, path);
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(unlink(path[i]), 0);
    kill(pid, SIGKILL);
    CU_ASSERT_EQUAL(fx_wait(pid), 128 + SIGKILL);
    struct bh_snap_writer *next = fx_writer(n->dir, 4096, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(next);
    CU_ASSERT_EQUAL(fx_write_node(next, 2, 2), 0);
    bh_snap_set_synced(next, true);
    /* The old writer's heartbeat gets old; then the link is looked at again. */
    enum bh_snap_outcome o = BH_SNAP_OK;
    for (uint64_t end = fx_in(30); o == BH_SNAP_OK && x.begins < 2 && fx_before(end); usleep(1000))
        o = fx_once(&x);
    CU_ASSERT_EQUAL(o, BH_SNAP_NEW_INCARNATION);
    CU_ASSERT_EQUAL(fx_once(&x), BH_SNAP_OK);
    CU_ASSERT(x.state.op[FX_NODES][2] == 2 && x.state.count[FX_NODES] == 1);
    fx_reader_fini(&x);
    bh_snap_writer_free(next);
    munmap(n, sizeof(*n));
}

/* ---- when there is no room ------------------------------------------------------------------- */
static void set_largest(rlim_t bytes)
{
    struct rlimit r;
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &r);
    r.rlim_cur = BH_MIN(bytes, r.rlim_max);
    setrlimit(RLIMIT_FSIZE, &r);
}

static int no_room_to_grow(void *arg)
{
    struct bh_snap_writer *w = fx_writer(arg, 1 << 16, 0);
    struct bh_snap_stats st;
    struct fx_state model = {0};
    struct fx_reader x, late;
    uint64_t op = 0;
    fx_reader_init(&x, arg, NULL);
    fx_reader_init(&late, arg, NULL);
    bh_snap_set_synced(w, true);
    bh_snap_writer_stats(w, &st);
    set_largest(st.bytes_size);
    for (; op < 3000; op++) { /* no change is refused */
        if (fx_write_pod(w, op, op + 1) != 0)
            return 1;
        fx_set(&model, FX_PODS, op, op + 1);
        if (!is_hidden(w) && fx_follow(&x, 0) != BH_SNAP_OK)
            return 2;
    }
    if (!is_hidden(w) || fx_left_over(false) != 2) /* the old segment has given its room back */
        return 3;
    /* Readers have nothing, neither the old state nor half of the new one, and know why. */
    if (fx_follow(&x, 0) != BH_SNAP_NOT_READY || fx_follow(&late, 0) != BH_SNAP_NOT_READY ||
        !strstr(bh_snap_reader_error(late.r), "no room") || bh_snap_reader_info(x.r, &st) ||
        !bh_snap_reader_absent(x.r) || !bh_snap_reader_absent(late.r))
        return 4;
    for (uint64_t i = 0; i < op / 2; i++) {
        if (fx_delete(w, FX_PODS, i) != 0)
            return 5;
        fx_set(&model, FX_PODS, i, 0);
    }
    bh_snap_set_lease(w, 7, 8); /* what is said in the control segment is heard nevertheless */
    uint64_t term, until;
    if (!bh_snap_reader_lease(x.r, &term, &until) || term != 7 || until != 8)
        return 6;
    set_largest(RLIM_INFINITY);
    if (!tick_until_shown(w))
        return 7;
    if (fx_follow(&x, 0) != BH_SNAP_OK || !fx_equal(&x.state, &model) || x.wrong)
        return 8;
    for (uint64_t i = 0; i < 3000; i++) {
        if (fx_write_pod(w, i, 6000 + i) != 0)
            return 9;
        fx_set(&model, FX_PODS, i, 6000 + i);
        fx_follow(&x, 0);
    }
    if (fx_follow(&x, 0) != BH_SNAP_OK || !fx_equal(&x.state, &model) || x.wrong || x.begins != 2)
        return 10;
    bh_snap_writer_stats(w, &st);
    if (!st.refused || st.lost || fx_left_over(false) != 3)
        return 11;
    fx_reader_fini(&late);
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
    return 0;
}

static int no_room_at_all(void *arg)
{
    struct fx_reader x;
    set_largest(0);
    struct bh_snap_writer *w = fx_writer(arg, 1 << 16, 0);
    if (!w || !is_hidden(w) || fx_left_over(false))
        return 1;
    bh_snap_open(w);
    fx_reader_init(&x, arg, NULL);
    if (fx_write_node(w, 1, 1) != 0 || fx_follow(&x, 0) != BH_SNAP_NOT_READY)
        return 2;
    bh_snap_set_lease(w, 3, 4);
    bh_snap_set_synced(w, true);
    set_largest(BH_SNAP_PAGE); /* control and slots, no data */
    for (uint64_t end = fx_in(30); fx_left_over(false) < 2 && fx_before(end); usleep(1000))
        bh_snap_writer_tick(w);
    if (!is_hidden(w) || fx_follow(&x, 0) != BH_SNAP_NOT_READY ||
        !strstr(bh_snap_reader_error(x.r), "no room"))
        return 3;
    set_largest(RLIM_INFINITY);
    uint64_t term, until;
    if (!tick_until_shown(w) || fx_follow(&x, 0) != BH_SNAP_OK || x.state.count[FX_NODES] != 1 ||
        !bh_snap_reader_lease(x.r, &term, &until) || term != 3 || until != 4)
        return 4;
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
    return 0;
}

static int no_room_for_what_was_lost(void *arg)
{
    struct bh_snap_writer *w = fx_writer(arg, 1 << 16, 0);
    struct fx_reader x;
    fx_reader_init(&x, arg, NULL);
    bh_snap_set_synced(w, true);
    if (fx_write_node(w, 1, 1) != 0 || fx_follow(&x, 0) != BH_SNAP_OK || fx_left_over(true) != 3)
        return 1;
    set_largest(0);
    if (!tick_until_lost(w, 2) || !is_hidden(w) || fx_left_over(false))
        return 2;
    set_largest(RLIM_INFINITY);
    for (uint64_t end = fx_in(30); fx_left_over(false) < 3 && fx_before(end); usleep(1000))
        bh_snap_writer_tick(w);
    if (is_hidden(w) || fx_follow(&x, 0) != BH_SNAP_OK || x.state.count[FX_NODES] != 1 || x.wrong)
        return 3;
    fx_reader_fini(&x);
    bh_snap_writer_free(w);
    return 0;
}

/* In a child: a limit of sizes holds for the whole process. */
static void in_a_child(int (*fn)(void *arg))
{
    char dir[FX_NAME];
    CU_ASSERT_EQUAL(fx_wait(fx_spawn(fn, new_dir(dir))), 0);
    CU_ASSERT_EQUAL(fx_left_over(false), 0);
}

static void test_no_room_to_grow(void)
{
    in_a_child(no_room_to_grow);
}

static void test_no_room_at_all(void)
{
    in_a_child(no_room_at_all);
}

static void test_no_room_for_what_was_lost(void)
{
    in_a_child(no_room_for_what_was_lost);
}

BH_TESTS("common/snapshot/names",
         {"modes and group do not depend on the umask", test_modes_and_group},
         {"names are never the same", test_names_are_never_the_same},
         {"the instance follows the folder, not its spelling", test_instance_follows_the_folder},
         {"only names of our own are taken for such", test_parse_takes_only_what_it_writes},
         {"objects of strangers are refused", test_strangers_objects_are_refused},
         {"a directory of everybody is refused", test_directory_of_everybody_is_refused},
         {"a name that is taken is stepped around", test_a_name_that_is_taken_is_stepped_around},
         {"only what is dead and ours is swept", test_only_what_is_dead_and_ours_is_swept},
         {"each name that goes is made again", test_each_name_is_made_again},
         {"a reader whose names were removed finds the successor",
          test_reader_of_removed_names_finds_the_successor},
         {"no room to grow: hidden, and back", test_no_room_to_grow},
         {"no room at all: hidden, and there", test_no_room_at_all},
         {"no room for what was removed", test_no_room_for_what_was_lost},
         {"objects without a size are removed", test_objects_without_a_size_are_removed},
         {"nothing is left in /dev/shm", test_nothing_is_left_in_dev_shm})
