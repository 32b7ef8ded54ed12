/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_json.c - JSON reader, writer and splitter on any bytes
 *
 * What is accepted must be written, read back and be equal; the splitter must hand out the same
 * documents whatever the chunk size.
 */
#include "common/data/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
    uint64_t hash;
    size_t n;
};

static int on_item(void *arg, const char *p, size_t n)
{
    struct sum *s = arg;
    s->hash = bh_hash(p, n, s->hash);
    s->n++;
    return 0;
}

static void split(const char *p, size_t n, enum bh_json_split_mode mode)
{
    struct sum whole = {0, 0}, bytes = {0, 0};
    struct bh_buf rest_whole = {0}, rest_bytes = {0};
    struct bh_json_split *a = bh_json_split_new(mode, 4096, on_item, &whole);
    struct bh_json_split *b = bh_json_split_new(mode, 4096, on_item, &bytes);
    int rc = bh_json_split_feed(a, p, n);
    for (size_t i = 0; i < n; i++)
        bh_json_split_feed(b, p + i, 1);
    bh_assert(bh_json_split_feed(b, p, 0) == rc);
    bh_assert(bh_json_split_finish(a, &rest_whole) == bh_json_split_finish(b, &rest_bytes));
    bh_assert(whole.hash == bytes.hash && whole.n == bytes.n);
    bh_assert(bh_streq(bh_buf_str(&rest_whole), bh_buf_str(&rest_bytes)));
    bh_json_split_free(a);
    bh_json_split_free(b);
    bh_buf_fini(&rest_whole);
    bh_buf_fini(&rest_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    struct bh_json *v, *back;
    struct bh_err err;
    struct bh_arena a;
    bh_arena_init(&a, 64 << 20);
    if (bh_json_parse(&a, p, size, (size & 1 ? BH_JSON_STRICT : 0) | (size & 2 ? BH_JSON_NUL : 0),
                      &v, &err) == 0) {
        struct bh_buf b = {0};
        bh_json_write(&b, v);
        bh_assert(bh_json_parse(&a, b.p, b.n, BH_JSON_STRICT | BH_JSON_NUL, &back, &err) == 0);
        bh_assert(bh_json_equal(v, back));
        bh_buf_reset(&b);
        bh_json_write_pretty(&b, bh_json_clone(&a, v));
        bh_assert(bh_json_parse(&a, b.p, b.n, BH_JSON_STRICT | BH_JSON_NUL, &back, &err) == 0);
        bh_assert(bh_json_equal(v, back));
        bh_buf_fini(&b);
    }
    bh_arena_fini(&a);
    if (size <= 16384) {
        split(p, size, BH_JSON_SPLIT_DOCS);
        split(p, size, BH_JSON_SPLIT_ITEMS);
    }
    return 0;
}
