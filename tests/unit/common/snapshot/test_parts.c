/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/snapshot/test_parts.c - index, space and symbols, each alone
 */
#include "common/snapshot/index.h"
#include "common/snapshot/space.h"
#include "common/snapshot/symbols.h"
#include "tests/unit/harness.h"

/* ---- index ----------------------------------------------------------------------------------- */
static bool is_key(const void *owner, uint32_t id, const void *key)
{
    return ((const uint64_t *)owner)[id] == *(const uint64_t *)key;
}

static void index_run(uint64_t hash_mask)
{
    enum { KEYS = 3000 };
    uint64_t *keys = bh_calloc(KEYS, sizeof(*keys));
    bool *in = bh_calloc(KEYS, sizeof(*in));
    struct bh_snap_index ix = {0};
    struct bh_rand rnd;
    unsigned wrong = 0;
    bh_rand_seed(&rnd, 1);
    for (uint32_t i = 0; i < KEYS; i++)
        keys[i] = i * 31;
    CU_ASSERT_EQUAL(bh_snap_index_find(&ix, 7, is_key, keys, &keys[0]), BH_SNAP_NO_ID);
    for (unsigned round = 0; round < 60000; round++) {
        uint32_t i = (uint32_t)bh_rand_below(&rnd, KEYS);
        uint64_t hash = bh_hash(&keys[i], 8, 3) & hash_mask;
        uint32_t found = bh_snap_index_find(&ix, hash, is_key, keys, &keys[i]);
        wrong += found != (in[i] ? i : BH_SNAP_NO_ID);
        if (in[i])
            bh_snap_index_del(&ix, hash, i);
        else
            bh_snap_index_add(&ix, hash, i);
        in[i] = !in[i];
    }
    CU_ASSERT_EQUAL(wrong, 0);
    size_t expected = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        expected += in[i];
        uint64_t hash = bh_hash(&keys[i], 8, 3) & hash_mask;
        uint32_t found = bh_snap_index_find(&ix, hash, is_key, keys, &keys[i]);
        CU_ASSERT_EQUAL(found, in[i] ? i : BH_SNAP_NO_ID);
    }
    CU_ASSERT_EQUAL(ix.len, expected);
    bh_snap_index_fini(&ix);
    CU_ASSERT_EQUAL(bh_snap_index_find(&ix, 7, is_key, keys, &keys[0]), BH_SNAP_NO_ID);
    free(keys);
    free(in);
}

static void test_index_against_a_set(void)
{
    index_run(UINT64_MAX);
}

static void test_index_with_colliding_hashes(void)
{
    index_run(0xff); /* long chains, and hash 0, which marks empty slots inside */
}

static void test_index_keeps_its_size_under_churn(void)
{
    struct bh_snap_index ix = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        bh_snap_index_add(&ix, i * 0x9e3779b97f4a7c15ull, 1);
        if (i >= 500)
            bh_snap_index_del(&ix, (i - 500) * 0x9e3779b97f4a7c15ull, 1);
    }
    CU_ASSERT_EQUAL(ix.cap, 1024);
    bh_snap_index_fini(&ix);
}

/* ---- space ----------------------------------------------------------------------------------- */
static void test_classes_hold_what_they_are_asked_for(void)
{
    uint64_t last = 0;
    for (uint64_t n = 1; n <= (16u << 20); n += n < 5000 ? 1 : n / 300) {
        uint64_t r = bh_snap_space_round(n);
        if (r < n || r % 16 || r < last || (n > 16 && r > n + 15 && r > n + n / 4))
            CU_FAIL("class");
        if (bh_snap_space_round(r) != r) /* a block goes back to the list it came from */
            CU_FAIL("class of a class");
        last = r;
    }
    CU_ASSERT_EQUAL(bh_snap_space_round(1), 16);
    CU_ASSERT_EQUAL(bh_snap_space_round(1024), 1024);
    CU_ASSERT_EQUAL(bh_snap_space_round(1025), 1280);
    CU_ASSERT_EQUAL(bh_snap_space_round(2048), 2048);
}

static void test_space_ends_exactly(void)
{
    struct bh_snap_space s = {0};
    bh_snap_space_reset(&s, 4096, 4096 + 160);
    for (int i = 0; i < 10; i++)
        CU_ASSERT_EQUAL(bh_snap_space_take(&s, 10), 4096 + (uint64_t)i * 16);
    CU_ASSERT_EQUAL(bh_snap_space_take(&s, 1), 0);
    CU_ASSERT_EQUAL(s.live_bytes, 160);
    bh_snap_space_give_back(&s, 4112, 10);
    CU_ASSERT_EQUAL(bh_snap_space_take(&s, 17), 0); /* another class */
    CU_ASSERT_EQUAL(bh_snap_space_take(&s, 16), 4112);
    bh_snap_space_fini(&s);
}

static void test_retired_waits_for_its_position(void)
{
    struct bh_snap_space s = {0};
    bh_snap_space_reset(&s, 0x1000, 0x1000 + 64 * 5000);
    uint64_t off[5000];
    for (uint64_t i = 0; i < 5000; i++)
        off[i] = bh_snap_space_take(&s, 64);
    CU_ASSERT_EQUAL(bh_snap_space_last_retired(&s), 0);
    for (uint64_t i = 0; i < 5000; i++) {
        bh_snap_space_retire(&s, off[i], 64, i / 2 + 1);
        if (i == 1700)
            bh_snap_space_recycle(&s, 700); /* the ring's start moves before it grows again */
    }
    CU_ASSERT_EQUAL(bh_snap_space_last_retired(&s), 2500);
    CU_ASSERT_EQUAL(s.retired_n, 3600);
    CU_ASSERT_EQUAL(s.retired_bytes, 3600 * 64);
    CU_ASSERT_EQUAL(s.live_bytes, 0);
    for (int i = 0; i < 1400; i++)
        CU_ASSERT(bh_snap_space_take(&s, 64) != 0);
    CU_ASSERT_EQUAL(bh_snap_space_take(&s, 64), 0);
    bh_snap_space_recycle(&s, 701);
    CU_ASSERT_EQUAL(bh_snap_space_take(&s, 64), off[1401]);
    CU_ASSERT_EQUAL(bh_snap_space_take(&s, 64), off[1400]);
    CU_ASSERT_EQUAL(bh_snap_space_take(&s, 64), 0);
    bh_snap_space_recycle(&s, UINT64_MAX);
    CU_ASSERT(s.retired_n == 0 && s.retired_bytes == 0);
    bh_snap_space_fini(&s);
}

static void test_blocks_never_overlap(void)
{
    enum { BLOCKS = 2000, BYTES = 1 << 20 };
    struct bh_snap_space s = {0};
    struct {
        uint64_t off, n;
    } *b = bh_calloc(BLOCKS, sizeof(*b));
    uint8_t *used = bh_calloc(BYTES / 16, 1);
    struct bh_rand rnd;
    unsigned overlaps = 0;
    uint64_t pos = 0;
    bh_rand_seed(&rnd, 4);
    bh_snap_space_reset(&s, 16, BYTES);
    for (unsigned round = 0; round < 200000; round++) {
        unsigned i = (unsigned)bh_rand_below(&rnd, BLOCKS);
        if (b[i].off) {
            for (uint64_t at = b[i].off; at < b[i].off + b[i].n; at += 16)
                used[at / 16] = 0;
            bh_snap_space_retire(&s, b[i].off, b[i].n, ++pos);
            b[i].off = 0;
        } else {
            b[i].n = 1 + bh_rand_below(&rnd, round % 10 ? 300 : 5000);
            b[i].off = bh_snap_space_take(&s, b[i].n);
            for (uint64_t at = b[i].off; b[i].off && at < b[i].off + b[i].n; at += 16)
                overlaps += used[at / 16]++;
        }
        if (round % 100 == 0)
            bh_snap_space_recycle(&s, pos);
    }
    CU_ASSERT_EQUAL(overlaps, 0);
    bh_snap_space_fini(&s);
    free(used);
    free(b);
}

/* ---- symbols --------------------------------------------------------------------------------- */
static void new_segment(struct bh_snap_seg *seg, uint64_t syms, uint64_t text)
{
    struct bh_snap_sizes z = {
        .log_entries = 16, .syms = syms, .text_bytes = text, .dir_slots = 64, .record_bytes = 4096};
    struct bh_snap_map *m = bh_snap_map_new(-1, bh_snap_sizes_total(&z), true);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    bh_snap_seg_format(seg, m, &z);
}

static void check_symbols(struct bh_snap_symbols *t, unsigned n, unsigned *wrong)
{
    for (unsigned i = 0; i < n; i++) {
        char text[40];
        int len = snprintf(text, sizeof(text), "text %u", i * 17);
        *wrong += bh_snap_symbols_intern(t, text, (size_t)len) != i + 1;
        *wrong += bh_snap_symbols_find(t, text, (size_t)len) != i + 1;
        if (i + 1 < t->published) {
            const struct bh_snap_sym *s = &t->seg->syms[i + 1];
            *wrong += s->len != (uint32_t)len ||
                      memcmp(t->seg->text + s->off8 * 8ull, text, (size_t)len + 1) != 0;
        }
    }
}

static void test_symbols_wait_for_room(void)
{
    struct bh_snap_seg a, b;
    struct bh_snap_symbols t;
    unsigned wrong = 0;
    new_segment(&a, 100, 1 << 16);
    new_segment(&b, 20000, 1 << 20);
    bh_snap_symbols_init(&t, &a);
    CU_ASSERT_TRUE(bh_snap_symbols_flush(&t));
    check_symbols(&t, 99, &wrong);
    CU_ASSERT_TRUE(bh_snap_symbols_flush(&t));
    CU_ASSERT_EQUAL(a.h->symbols, 100);
    check_symbols(&t, 9000, &wrong); /* pending ones grow the table too */
    CU_ASSERT_FALSE(bh_snap_symbols_flush(&t));
    CU_ASSERT_EQUAL(a.h->symbols, 100); /* nothing half done */
    check_symbols(&t, 9000, &wrong);
    bh_snap_symbols_move(&t, &b);
    CU_ASSERT_EQUAL(b.h->symbols, 100);
    CU_ASSERT_TRUE(bh_snap_symbols_flush(&t));
    CU_ASSERT_EQUAL(b.h->symbols, 9001);
    check_symbols(&t, 9000, &wrong);
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(bh_snap_symbols_find(&t, "not there", 9), BH_SYM_NONE);
    CU_ASSERT_EQUAL(bh_snap_symbols_find(&t, "", 0), BH_SYM_NONE);
    bh_snap_symbols_fini(&t);
    bh_snap_seg_close(&a);
    bh_snap_seg_close(&b);
}

static void test_text_room_counts_too(void)
{
    struct bh_snap_seg seg;
    struct bh_snap_symbols t;
    new_segment(&seg, 100, 64);
    bh_snap_symbols_init(&t, &seg);
    CU_ASSERT_TRUE(bh_snap_symbols_flush(&t)); /* "" takes 8 */
    bh_snap_symbols_intern(&t, "0123456789012345678901234567890123456789012345", 46);
    CU_ASSERT_TRUE(bh_snap_symbols_flush(&t)); /* 48 with NUL and padding */
    CU_ASSERT_NOT_EQUAL(bh_snap_symbols_intern(&t, "1234567", 7), BH_SYM_NONE);
    CU_ASSERT_TRUE(bh_snap_symbols_flush(&t)); /* exactly full */
    bh_snap_symbols_intern(&t, "x", 1);
    CU_ASSERT_FALSE(bh_snap_symbols_flush(&t));
    bh_snap_symbols_fini(&t);
    bh_snap_seg_close(&seg);
}

BH_TESTS("common/snapshot/parts", {"index against a set", test_index_against_a_set},
         {"index with colliding hashes", test_index_with_colliding_hashes},
         {"index keeps its size under churn", test_index_keeps_its_size_under_churn},
         {"classes hold what they are asked for", test_classes_hold_what_they_are_asked_for},
         {"space ends exactly", test_space_ends_exactly},
         {"retired blocks wait for their position", test_retired_waits_for_its_position},
         {"blocks never overlap", test_blocks_never_overlap},
         {"symbols wait for room and keep their numbers", test_symbols_wait_for_room},
         {"text room counts too", test_text_room_counts_too})
