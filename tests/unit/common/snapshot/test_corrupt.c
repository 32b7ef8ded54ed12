/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_corrupt.c - damaged segments are refused, never a crash
 *
 * Each case copies the objects of a real writer under another name, damages the copy, and lets a
 * reader at it.
 */
#include "common/snapshot/layout.h"
#include "common/snapshot/segment.h"
#include "tests/unit/common/snapshot/fixture.h"

struct bytes {
    char *p;
    size_t n;
};
static struct {
    char name[FX_NAME]; /* runtime directory of the copies */
    char control_file[BH_SNAP_NAME_MAX], data_file[BH_SNAP_NAME_MAX];
    struct bytes control, data;
} pattern;

static struct bytes load(const char *file)
{
    char path[256];
    struct bytes b = {0};
    snprintf(path, sizeof(path), "/dev/shm%s", file);
    CU_ASSERT_EQUAL_FATAL(bh_read_file(path, 1 << 26, &b.p, &b.n), 0);
    return b;
}

static void make_pattern(void)
{
    struct bh_snap_announced at;
    char file[BH_SNAP_NAME_MAX], name[FX_NAME];
    snprintf(name, sizeof(name), "%s", fx_name());
    struct bh_snap_writer *w = fx_writer(name, 8192, 32);
    for (uint64_t op = 1; op < 60; op++)
        CU_ASSERT_EQUAL(fx_write(w, 60, op, 20), 0);
    bh_snap_set_synced(w, true);
    CU_ASSERT_EQUAL(bh_snap_announced(name, &at, NULL), 0);
    pattern.control = load(at.name);
    const struct bh_snap_control *c = (void *)pattern.control.p;
    bh_snap_object_name(at.instance, c->data_key[c->segment % 2], file);
    pattern.data = load(file);
    snprintf(pattern.name, sizeof(pattern.name), "%s", fx_name());
    at.instance = bh_snap_instance(pattern.name);
    bh_snap_object_name(at.instance, 1, pattern.control_file);
    bh_snap_object_name(at.instance, c->data_key[c->segment % 2], pattern.data_file);
    char watcher[FX_NAME + 16];
    snprintf(watcher, sizeof(watcher), "%s/watcher", pattern.name);
    CU_ASSERT_EQUAL(mkdir(watcher, 0700), 0);
    int dir = open(watcher, O_RDONLY | O_DIRECTORY);
    CU_ASSERT_EQUAL(bh_snap_announced_set(dir, pattern.control_file), 0);
    close(dir);
    bh_snap_writer_free(w);
}

static void drop_pattern(void)
{
    free(pattern.control.p);
    free(pattern.data.p);
    memset(&pattern, 0, sizeof(pattern));
}

static void put_object(const char *file, struct bytes b)
{
    int fd = shm_open(file, O_RDWR | O_CREAT, 0640);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(ftruncate(fd, 0), 0);
    CU_ASSERT_EQUAL(pwrite(fd, b.p, b.n, 0), (ssize_t)b.n);
    close(fd);
}

/* What a fresh reader says about the (damaged) pattern. */
static enum bh_snap_outcome outcome(void)
{
    enum bh_snap_outcome o;
    struct bh_snap_stats st;
    struct fx_reader x;
    put_object(pattern.control_file, pattern.control);
    put_object(pattern.data_file, pattern.data);
    fx_reader_init(&x, pattern.name, NULL);
    /* Contradictions in what is delivered are allowed here: contents may be damaged unnoticed. */
    struct fx_reader *volatile keep = &x;
    unsigned rounds = 0;
    do
        o = bh_snap_follow(keep->r, 0, fx_on_event, keep);
    while (o == BH_SNAP_OVERRUN && ++rounds < 3);
    (void)bh_snap_reader_info(x.r, &st);
    if (o == BH_SNAP_CORRUPT || o == BH_SNAP_VERSION)
        CU_ASSERT(strlen(bh_snap_reader_error(x.r)) > 10);
    fx_reader_fini(&x);
    shm_unlink(pattern.data_file);
    shm_unlink(pattern.control_file);
    return o;
}

/* The outcome with n bytes at `at` replaced by v. */
static enum bh_snap_outcome with(struct bytes b, size_t at, const void *v, size_t n)
{
    char saved[64];
    memcpy(saved, b.p + at, n);
    memcpy(b.p + at, v, n);
    enum bh_snap_outcome o = outcome();
    memcpy(b.p + at, saved, n);
    return o;
}

static enum bh_snap_outcome with64(struct bytes b, size_t at, uint64_t v)
{
    return with(b, at, &v, 8);
}

static enum bh_snap_outcome with32(struct bytes b, size_t at, uint32_t v)
{
    return with(b, at, &v, 4);
}

static void test_intact_copy_is_read(void)
{
    make_pattern();
    CU_ASSERT_EQUAL(outcome(), BH_SNAP_OK);
    drop_pattern();
}

static void test_control_segment(void)
{
    make_pattern();
    struct bytes c = pattern.control;
    CU_ASSERT_EQUAL(with64(c, offsetof(struct bh_snap_control, magic), 1), BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with32(c, offsetof(struct bh_snap_control, version), 0), BH_SNAP_NOT_READY);
    CU_ASSERT_EQUAL(with32(c, offsetof(struct bh_snap_control, version), 0x20001), BH_SNAP_VERSION);
    CU_ASSERT_EQUAL(with32(c, offsetof(struct bh_snap_control, version), BH_SNAP_VERSION_WORD + 1),
                    BH_SNAP_VERSION);
    CU_ASSERT_EQUAL(with32(c, offsetof(struct bh_snap_control, gone), 1), BH_SNAP_NOT_READY);
    pattern.control.n = 64;
    CU_ASSERT_EQUAL(outcome(), BH_SNAP_CORRUPT);
    pattern.control.n = c.n;
    struct bh_snap_control *words = (void *)c.p;
    const size_t keys = offsetof(struct bh_snap_control, data_key);
    CU_ASSERT_EQUAL(
        with64(c, offsetof(struct bh_snap_control, incarnation), words->incarnation + 1),
        BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(c, offsetof(struct bh_snap_control, segment), 0), BH_SNAP_NOT_READY);
    CU_ASSERT_EQUAL(with64(c, keys + words->segment % 2 * 8, 5), BH_SNAP_NOT_READY); /* no such */
    CU_ASSERT_EQUAL(with64(c, offsetof(struct bh_snap_control, slots_key), 5), BH_SNAP_OK);
    drop_pattern();
}

static void test_data_header(void)
{
    make_pattern();
    struct bytes d = pattern.data;
    size_t n = d.n;
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, magic), 0), BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with32(d, offsetof(struct bh_snap_header, version), 0x10009), BH_SNAP_VERSION);
    CU_ASSERT_EQUAL(with32(d, offsetof(struct bh_snap_header, bytes), 8), BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, total_bytes), n + 1),
                    BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, incarnation), 3), BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, segment), 99), BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, horizon), UINT64_MAX),
                    BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, dir_used), UINT64_MAX),
                    BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, symbols), 1), BH_SNAP_CORRUPT);
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, symbols), UINT64_MAX),
                    BH_SNAP_CORRUPT);
    for (unsigned i = 0; i < BH_SNAP_SECTIONS; i++) {
        size_t at = offsetof(struct bh_snap_header, section) + i * sizeof(struct bh_snap_section);
        CU_ASSERT_EQUAL(with64(d, at, UINT64_MAX & ~63ull), BH_SNAP_CORRUPT);
        CU_ASSERT_EQUAL(with64(d, at, 0), BH_SNAP_CORRUPT);
        CU_ASSERT_EQUAL(with64(d, at, 4097), BH_SNAP_CORRUPT);
        CU_ASSERT_EQUAL(with64(d, at + 8, UINT64_MAX), BH_SNAP_CORRUPT);
        CU_ASSERT_EQUAL(with64(d, at + 8, n), BH_SNAP_CORRUPT);
    }
    for (size_t cut = 0; cut < n; cut += 1000) { /* shorter than it says, down to nothing */
        pattern.data.n = cut;
        CU_ASSERT_EQUAL(outcome(), BH_SNAP_CORRUPT);
    }
    pattern.data.n = n;
    drop_pattern();
}

static size_t section(unsigned i)
{
    return ((struct bh_snap_header *)pattern.data.p)->section[i].off;
}

static void test_offsets_and_lengths(void)
{
    make_pattern();
    struct bytes d = pattern.data;
    const uint64_t *dir = (const uint64_t *)(d.p + section(BH_SNAP_SEC_DIR));
    const uint64_t bad[] = {1,
                            16,
                            section(BH_SNAP_SEC_RECORDS) - 16,
                            section(BH_SNAP_SEC_TEXT),
                            d.n,
                            d.n - 8,
                            d.n + 16,
                            UINT64_MAX,
                            UINT64_MAX - 15,
                            1ull << 40};
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++)
        CU_ASSERT_EQUAL(with64(d, section(BH_SNAP_SEC_DIR), bad[i]), BH_SNAP_CORRUPT);
    CU_ASSERT_FATAL(dir[0] != 0);
    const uint32_t size[] = {0, 4, 8, 16, 1 << 20, BH_REC_MAX_BYTES + 8, UINT32_MAX};
    for (unsigned i = 0; i < BH_ARRAY_LEN(size); i++)
        CU_ASSERT_EQUAL(with32(d, dir[0], size[i]), BH_SNAP_CORRUPT);
    for (uint32_t type = 0; type < 6; type++) /* type and layout of the head */
        CU_ASSERT(with32(d, dir[0] + 4, type) == BH_SNAP_CORRUPT);
    /* A pod whose shape leads astray. */
    for (uint64_t i = 0; dir[i]; i++) {
        if (((struct bh_rec_head *)(d.p + dir[i]))->type != BH_REC_POD)
            continue;
        size_t at = dir[i] + offsetof(struct bh_pod_rec, shape);
        for (unsigned j = 0; j < BH_ARRAY_LEN(bad); j++)
            CU_ASSERT_EQUAL(with64(d, at, bad[j]), BH_SNAP_CORRUPT);
        CU_ASSERT_EQUAL(with64(d, at, dir[i]), BH_SNAP_CORRUPT); /* a pod is no shape */
        break;
    }
    /* Texts. */
    for (size_t s = 1; s < 8; s++) {
        size_t at = section(BH_SNAP_SEC_SYMS) + s * sizeof(struct bh_snap_sym);
        CU_ASSERT(with32(d, at, UINT32_MAX) != BH_SNAP_OVERRUN);
        CU_ASSERT(with32(d, at + 4, UINT32_MAX) != BH_SNAP_OVERRUN);
        CU_ASSERT(with32(d, at + 4, 0) != BH_SNAP_OVERRUN);
    }
    drop_pattern();
}

static void test_log(void)
{
    make_pattern();
    struct bytes d = pattern.data;
    struct bh_snap_header *h = (void *)d.p;
    uint64_t head = h->head;
    /* A head beyond the entries: a rebuild starts there, so nothing is missed at first. */
    CU_ASSERT_EQUAL(with64(d, offsetof(struct bh_snap_header, head), head + 5), BH_SNAP_OK);
    /* A live reader, though, must not believe what the log does not have: same mapping, later
     * head. */
    struct fx_reader x;
    put_object(pattern.control_file, pattern.control);
    put_object(pattern.data_file, d);
    int fd = shm_open(pattern.data_file, O_RDWR, 0);
    struct bh_snap_header *live = mmap(NULL, d.n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct bh_snap_entry *log = (void *)((char *)live + section(BH_SNAP_SEC_LOG));
    struct bh_snap_entry *next = &log[head & 31];
    close(fd);
    const struct bh_snap_entry bad[] = {
        {.seq = 1, .op = BH_SNAP_LOG_NODE_PUT},
        {.seq = head + 1, .op = 99},
        {.seq = head + 1, .op = 0},
        {.seq = head + 1, .op = BH_SNAP_LOG_NODE_PUT, .off = 17},
        {.seq = head + 1, .op = BH_SNAP_LOG_NODE_DEL, .off = UINT64_MAX},
        {.seq = head + 1, .op = BH_SNAP_LOG_POD_DEL, .off = 4096},
    };
    fx_reader_init(&x, pattern.name, NULL);
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++) {
        live->head = head;
        CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_OK); /* attaches anew */
        *next = bad[i];
        live->head = head + 1;
        CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_CORRUPT);
    }
    live->head = head;
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_OK);
    live->head = head - 1; /* backwards */
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_CORRUPT);
    live->head = head;
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_OK);
    *next = (struct bh_snap_entry){.seq = head + 1, .op = BH_SNAP_LOG_SHAPE_DEL, .key = 1 << 30};
    live->head = head + 1; /* a shape never met is ignored */
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_OK);
    log[(head + 1) & 31] = (struct bh_snap_entry){.seq = head + 2, .op = BH_SNAP_LOG_MOVED};
    live->head = head + 2; /* moved, but the control segment still points here */
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_OK);
    live->head = head + 1000;                                             /* a whole ring further */
    CU_ASSERT_EQUAL(bh_snap_follow(x.r, 0, fx_on_event, &x), BH_SNAP_OK); /* MOVED was the end */
    fx_reader_fini(&x);
    munmap(live, d.n);
    shm_unlink(pattern.data_file);
    shm_unlink(pattern.control_file);
    drop_pattern();
}

static void test_random_damage(void)
{
    unsigned seen[BH_SNAP_CORRUPT + 1] = {0};
    struct bh_rand rnd;
    make_pattern();
    bh_rand_seed(&rnd, 61);
    /* What the fixture thinks of damaged contents is of no interest here. */
    int err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fflush(stderr);
    dup2(null, STDERR_FILENO);
    for (int round = 0; round < 3000; round++) {
        struct bytes whole = {bh_memdup(pattern.data.p, pattern.data.n), pattern.data.n};
        struct bytes saved = pattern.data;
        for (uint64_t i = 0, n = 1 + bh_rand_below(&rnd, 8); i < n; i++) {
            /* Half of the damage where most meaning is: header, and live parts of the sections. */
            unsigned s = (unsigned)bh_rand_below(&rnd, BH_SNAP_SECTIONS + 1);
            size_t at = s == BH_SNAP_SECTIONS ? 16 + bh_rand_below(&rnd, 368)
                                              : section(s) + bh_rand_below(&rnd, 1500);
            if (at >= whole.n - 8)
                continue;
            uint64_t v = bh_rand_below(&rnd, 2) ? bh_rand_u64(&rnd) : bh_rand_below(&rnd, 70000);
            memcpy(whole.p + at, &v, 1 + bh_rand_below(&rnd, 8));
        }
        pattern.data = whole;
        seen[outcome()]++;
        pattern.data = saved;
        free(whole.p);
    }
    fflush(stderr);
    dup2(err, STDERR_FILENO);
    close(err);
    close(null);
    printf("# outcomes: %u read, %u corrupt, %u version\n", seen[BH_SNAP_OK], seen[BH_SNAP_CORRUPT],
           seen[BH_SNAP_VERSION]);
    CU_ASSERT(seen[BH_SNAP_CORRUPT] > 500 && seen[BH_SNAP_OK] > 100);
    drop_pattern();
}

BH_TESTS("common/snapshot/corrupt", {"an intact copy is read", test_intact_copy_is_read},
         {"control segment: magic, version, length", test_control_segment},
         {"data segment: header and section table", test_data_header},
         {"offsets, lengths and types of records and symbols", test_offsets_and_lengths},
         {"change log: sequence, operation, offset", test_log},
         {"random damage is never a crash", test_random_damage},
         {"nothing is left in /dev/shm", test_nothing_is_left_in_dev_shm})
