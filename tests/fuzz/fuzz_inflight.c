/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_inflight.c - a record of bindings in flight with any bytes
 *
 * Input: {u8 flags}, then patches {u16 at/4, u8 n, n bytes} of a record with two binds and a
 * binder. Flags: 1: heads get valid checksums, 2: the first two slots do, 4: the file ends at the
 * first patch. Whatever the bytes are: what is believed is within bounds, and the record works
 * afterwards.
 */
#include "scheduler/daemon/inflight.h"
#include "common/base/trusted_file.h"

#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* As inflight.c writes it. */
#define MAGIC      UINT64_C(0x32746c666e694842)
#define HEAD_BYTES 8192u
#define CHECK      4144u
#define SLOTS_AT   (2 * HEAD_BYTES)
#define SLOT_BYTES 560u

static char dir[] = "/tmp/berth-fuzz-inflight-XXXXXX", home[64], path[96];
static char *pristine;
static size_t size;

static void leave(void)
{
    bh_remove_tree(dir);
    free(pristine);
}

static struct bh_inflight *open_record(void)
{
    struct bh_inflight *f = NULL;
    struct bh_err err;

    bh_assert(bh_inflight_open(dir, &f, &err) == 0);
    return f;
}

static uint32_t put(struct bh_inflight *f, uint64_t id)
{
    const struct bh_inflight_item it = {.kind = 1,
                                        .id = id,
                                        .term = 1,
                                        .until_boot_ns = bh_boot_ns() + BH_INFLIGHT_NS,
                                        .uid = "uid",
                                        .node = "node"};

    return bh_inflight_put(f, &it);
}

static void make_record(void)
{
    bh_assert(mkdtemp(dir));
    snprintf(home, sizeof(home), "%s/scheduler", dir);
    snprintf(path, sizeof(path), "%s/" BH_INFLIGHT_FILE, home);
    atexit(leave);
    struct bh_inflight *f = open_record();
    bh_assert(put(f, 1) && put(f, 2));
    bh_inflight_add_binder(f, "host/1");
    bh_inflight_close(f);
    bh_assert(bh_read_file(path, (size_t)1 << 24, &pristine, &size) == 0);
}

static uint64_t word(const char *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static void seal_head(char *head)
{
    const uint64_t check = bh_hash(head, CHECK, MAGIC) | 1;

    memcpy(head + CHECK, &check, sizeof(check));
}

static void seal_slot(char *s)
{
    uint16_t n[2];
    uint32_t kind;
    memcpy(n, s + 44, sizeof(n));
    memcpy(&kind, s + 40, sizeof(kind));
    if (n[0] >= BH_INFLIGHT_TEXT || n[1] >= BH_INFLIGHT_TEXT)
        return;
    const uint64_t time = word(s) & 1, fixed[] = {word(s + 24), word(s + 32), kind, n[0], n[1]};
    uint64_t h = bh_hash(s + 48, n[0], bh_hash(fixed, sizeof(fixed), MAGIC));
    h = bh_hash(s + 48 + BH_INFLIGHT_TEXT, n[1], h);
    const uint64_t marked[] = {h, word(s + 8 + 8 * time), time};
    const uint64_t mark = (bh_hash(marked, sizeof(marked), MAGIC) & ~UINT64_C(1)) | 2 | time;
    memcpy(s, &mark, sizeof(mark));
}

static void check_record(void)
{
    struct bh_inflight *f = open_record();
    const uint64_t latest = bh_boot_ns() + BH_INFLIGHT_NS;
    struct bh_inflight_item it;
    uint32_t pos = 0, slot, n = 0;

    bh_assert(bh_inflight_unrecorded_until(f) <= latest);
    while ((slot = bh_inflight_next(f, &pos, &it))) {
        bh_assert(slot <= BH_INFLIGHT_SLOTS && *it.uid && strlen(it.uid) < BH_INFLIGHT_TEXT);
        bh_assert(strlen(it.node) < BH_INFLIGHT_TEXT &&
                  it.until_boot_ns <= bh_boot_ns() + BH_INFLIGHT_NS);
        bh_inflight_extend(f, slot, latest);
        bh_inflight_drop(f, slot);
        n++;
    }
    for (uint32_t i = 0; bh_inflight_binder(f, i); i++)
        bh_assert(i < BH_INFLIGHT_BINDERS && strlen(bh_inflight_binder(f, i)) < 64);
    bh_assert(bh_inflight_count(f) == 0 && n <= BH_INFLIGHT_SLOTS);
    bh_inflight_drop(f, put(f, 3));
    bh_inflight_forget_binders(f);
    bh_inflight_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!pristine)
        make_record();
    if (n == 0)
        return 0;
    const uint8_t flags = *data++;
    BH_CLEANUP(bh_freep) char *bytes = bh_memdup(pristine, size);
    size_t end = size;
    n--;
    while (n > 3) {
        const size_t at = (data[0] | (size_t)data[1] << 8) * 4, len = BH_MIN(data[2], n - 3);
        if (at + len <= size)
            memcpy(bytes + at, data + 3, len);
        if (flags & 4)
            end = BH_MIN(end, at);
        data += 3 + len, n -= 3 + len;
    }
    for (unsigned i = 0; i < 2; i++) {
        if (flags & 1)
            seal_head(bytes + i * HEAD_BYTES);
        if (flags & 2)
            seal_slot(bytes + SLOTS_AT + i * SLOT_BYTES);
    }
    bh_assert(mkdir(home, 0700) == 0 || access(home, F_OK) == 0);
    bh_assert(bh_write_file(path, bytes, end, 0600) == 0);
    check_record();
    return 0;
}
