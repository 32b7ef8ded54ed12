/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/data/test_json_split.c - elements of long inputs, whatever the chunk borders
 */
#include "common/data/json.h"
#include "tests/unit/harness.h"

#include <errno.h>

struct sink {
    struct bh_buf got; /* elements, each followed by '|' */
    size_t n, stop_at;
};

static int on_item(void *arg, const char *p, size_t n)
{
    struct sink *s = arg;
    bh_buf_add(&s->got, p, n);
    bh_buf_addc(&s->got, '|');
    return ++s->n == s->stop_at ? 7 : 0;
}

/* Feeds text in chunks of the given size; the result of feed or finish. */
static int split(enum bh_json_split_mode mode, size_t max, const char *text, size_t chunk,
                 struct sink *s, struct bh_buf *rest)
{
    size_t n = strlen(text);
    int rc = 0;
    bh_buf_reset(&s->got);
    bh_buf_reset(rest);
    s->n = 0;
    struct bh_json_split *sp = bh_json_split_new(mode, max, on_item, s);
    for (size_t at = 0; rc == 0 && at < n; at += chunk) {
        /* A copy of exact size: a read beyond the chunk is an ASan report. */
        size_t len = BH_MIN(chunk, n - at);
        BH_CLEANUP(bh_freep) char *part = bh_memdup(text + at, len);
        rc = bh_json_split_feed(sp, part, len);
    }
    int end = bh_json_split_finish(sp, rest);
    CU_ASSERT(rc == 0 || end == rc);
    rc = end;
    bh_json_split_free(sp);
    return rc;
}

static void expect(enum bh_json_split_mode mode, const char *text, int rc, const char *items,
                   const char *rest)
{
    struct sink s = {0};
    struct bh_buf r = {0};
    for (size_t chunk = 1; chunk <= strlen(text) + 1; chunk++) {
        int got = split(mode, 1 << 20, text, chunk, &s, &r);
        CU_ASSERT_EQUAL(got, rc);
        if (got != rc)
            printf("chunk %zu of %s: %d\n", chunk, text, got);
        if (items)
            CU_ASSERT_STRING_EQUAL(bh_buf_str(&s.got), items);
        if (rest)
            CU_ASSERT_STRING_EQUAL(bh_buf_str(&r), rest);
    }
    bh_buf_fini(&s.got);
    bh_buf_fini(&r);
}

static void test_documents(void)
{
    expect(BH_JSON_SPLIT_DOCS, "{\"a\":1}{\"b\":[{}]}\n\n {}[1]", 0,
           "{\"a\":1}|{\"b\":[{}]}|{}|[1]|", "");
    expect(BH_JSON_SPLIT_DOCS, "{\"a\":\"}\\\"{\\\\\"}{\"b\":\"]\"}", 0,
           "{\"a\":\"}\\\"{\\\\\"}|{\"b\":\"]\"}|", "");
    expect(BH_JSON_SPLIT_DOCS, "", 0, "", "");
    expect(BH_JSON_SPLIT_DOCS, " \n", 0, "", "");
}

static void test_documents_bad(void)
{
    expect(BH_JSON_SPLIT_DOCS, "{\"a\":1}{\"b\":", -EINVAL, "{\"a\":1}|", NULL);
    expect(BH_JSON_SPLIT_DOCS, "{} x {}", -EINVAL, "{}|", NULL);
    expect(BH_JSON_SPLIT_DOCS, "1", -EINVAL, "", NULL);
    expect(BH_JSON_SPLIT_DOCS, "{}}", -EINVAL, "{}|", NULL);
}

static void test_items(void)
{
    expect(BH_JSON_SPLIT_ITEMS,
           "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"a\":1}, "
           "{\"b\":{\"items\":[1]}}],\"x\":[1,{\"items\":[2]}]}",
           0, "{\"a\":1}|{\"b\":{\"items\":[1]}}|",
           "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[],\"x\":[1,{"
           "\"items\":[2]}]}");
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\" : [ 1 , \"a,]\\\"\" , null,[ ] , true ] }", 0,
           "1|\"a,]\\\"\"|null|[ ]|true|", "{\"items\" : [] }");
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":[]}", 0, "", "{\"items\":[]}");
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":null}", 0, "", "{\"items\":null}");
}

static void test_items_only_at_the_top(void)
{
    static const char text[] = "{\"a\":\"items\",\"b\":{\"items\":[1]},\"itemsx\":[2],\"item\":[3],"
                               "\"c\":[\"items\",[4]]}";
    expect(BH_JSON_SPLIT_ITEMS, text, 0, "", text);
}

static void test_items_bad(void)
{
    expect(BH_JSON_SPLIT_ITEMS, "[1]", -EINVAL, "", NULL);
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":[{} {}]}", -EINVAL, "{}|", NULL);
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":[{},]}", -EINVAL, "{}|", NULL);
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":[,{}]}", -EINVAL, "", NULL);
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":[{}", -EINVAL, "{}|", NULL);
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":[{}]", -EINVAL, "{}|", NULL);
    expect(BH_JSON_SPLIT_ITEMS, "{\"items\":[{}]}{}", -EINVAL, "{}|", NULL);
    expect(BH_JSON_SPLIT_ITEMS, "", -EINVAL, "", NULL);
}

static void test_largest_element_is_bounded(void)
{
    struct sink s = {0};
    struct bh_buf r = {0};
    for (size_t chunk = 1; chunk < 40; chunk++) {
        CU_ASSERT_EQUAL(split(BH_JSON_SPLIT_DOCS, 10, "{\"a\":1234}", chunk, &s, &r), 0);
        CU_ASSERT_EQUAL(split(BH_JSON_SPLIT_DOCS, 10, "{}{\"a\":12345}", chunk, &s, &r), -EFBIG);
        CU_ASSERT_STRING_EQUAL(bh_buf_str(&s.got), "{}|");
        /* What surrounds the items is held until the end, so it is bounded as well. */
        CU_ASSERT_EQUAL(
            split(BH_JSON_SPLIT_ITEMS, 20, "{\"kind\":\"aaaaaaaaaaaaaaa\"}", chunk, &s, &r),
            -EFBIG);
    }
    bh_buf_fini(&s.got);
    bh_buf_fini(&r);
}

static void test_callback_stops(void)
{
    struct sink s = {.stop_at = 2};
    struct bh_buf r = {0};
    for (size_t chunk = 1; chunk < 12; chunk++) {
        CU_ASSERT_EQUAL(split(BH_JSON_SPLIT_DOCS, 100, "{}{}{}{}", chunk, &s, &r), 7);
        CU_ASSERT_EQUAL(s.n, 2);
    }
    bh_buf_fini(&s.got);
    bh_buf_fini(&r);
}

BH_TESTS("common/data/json_split", {"documents are cut apart at every chunk size", test_documents},
         {"a cut or foreign document is an error", test_documents_bad},
         {"elements of items come out, the rest stays", test_items},
         {"only the member items of the list itself is split", test_items_only_at_the_top},
         {"a malformed list is an error", test_items_bad},
         {"an element beyond the limit is EFBIG", test_largest_element_is_bounded},
         {"the callback can stop the feed", test_callback_stops})
