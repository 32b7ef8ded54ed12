/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/data/test_json.c - reader, tree and writer; jansson is the second opinion
 */
#include "common/data/json.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <jansson.h>

/* ---- helpers --------------------------------------------------------------------------------- */

static struct bh_arena arena;
static struct bh_err err;

static struct bh_json *parse_flags(const char *text, unsigned flags)
{
    struct bh_json *v = NULL;
    bh_arena_reset(&arena);
    err.msg[0] = 0;
    return bh_json_parse(&arena, text, strlen(text), flags, &v, &err) == 0 ? v : NULL;
}

static struct bh_json *parse(const char *text)
{
    return parse_flags(text, 0);
}

static int parse_rc(const char *text, size_t n, unsigned flags)
{
    struct bh_json *v = NULL;
    bh_arena_reset(&arena);
    err.msg[0] = 0;
    int rc = bh_json_parse(&arena, text, n, flags, &v, &err);
    CU_ASSERT(rc == 0 || v == NULL);
    return rc;
}

/* The tree as compact text; valid until the next call. */
static const char *text_of(const struct bh_json *v)
{
    static struct bh_buf b;
    bh_buf_reset(&b);
    if (v)
        bh_json_write(&b, v);
    return bh_buf_str(&b);
}

/* ---- reader ---------------------------------------------------------------------------------- */

static void test_round_trip(void)
{
    static const char *const same[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1.0",
        "1E5",
        "-12.5e-7",
        "9007199254740993",
        "18446744073709551616",
        "\"\"",
        "\"a b\"",
        "[]",
        "{}",
        "[1,2,[3,[]]]",
        "{\"a\":1,\"b\":{\"c\":[true,false,null]},\"\":\"\"}",
        "[\"0123456789abcdef0123456789abcdef\",\"x\"]",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"",
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(same); i++) {
        struct bh_json *v = parse(same[i]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(v);
        CU_ASSERT_STRING_EQUAL(text_of(v), same[i]);
    }
    CU_ASSERT_STRING_EQUAL(text_of(parse(" \t\r\n[ 1 , 2 ]\n")), "[1,2]");
    CU_ASSERT_STRING_EQUAL(text_of(parse("{ \"a\" : 1 , \"b\" : -2.50 }")),
                           "{\"a\":1,\"b\":-2.50}");
}

static void test_escapes(void)
{
    struct bh_json *v = parse_flags(
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00\\u0000z\"", BH_JSON_NUL);
    static const char want[] = "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0z";
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(v->s.n, sizeof(want) - 1);
    CU_ASSERT(memcmp(v->s.p, want, sizeof(want)) == 0);
    v = parse("{\"a\\u0062\":1}");
    CU_ASSERT_EQUAL(bh_json_get_i64(v, "ab", 0), 1);
}

static void test_string_with_nul_is_refused_or_equal_to_no_name(void)
{
    static const char *const texts[] = {"\"\\u0000\"", "{\"a\":[\"system:masters\\u0000x\"]}",
                                        "{\"a\":\"b\\u0000\"}"};

    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        CU_ASSERT_EQUAL(parse_rc(texts[i], strlen(texts[i]), BH_JSON_STRICT), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "NUL in string"));
    }
    const struct bh_json *v = parse_flags(texts[2], BH_JSON_NUL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "a"), BH_NUL_TEXT);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(v, "a"), BH_NUL_TEXT);
    CU_ASSERT_EQUAL(bh_json_get(v, "a")->s.n, 2);
    CU_ASSERT_PTR_NULL(parse_flags("{\"a\\u0000\":1}", BH_JSON_NUL));
}

static void test_rejects_what_is_not_json(void)
{
    static const char *const bad[] = {
        "",
        " ",
        "nul",
        "tru",
        "True",
        "NaN",
        "Infinity",
        "-",
        "+1",
        "01",
        "-01",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "1 2",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[",
        "]",
        "[1",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{1:2}",
        "{\"a\":1 \"b\":2}",
        "\"",
        "\"a",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800x\"",
        "\"a\nb\"",
        "\"a\tb\"",
        "// x\n1",
        "1 // x",
        "[1]]",
        "\xef\xbb\xbf{}",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xe2\x82\"",
        "\"\xc3\"",
        "{\"a\\u0000\":1}",
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        int rc = parse_rc(bad[i], strlen(bad[i]), 0);
        CU_ASSERT_EQUAL(rc, -EINVAL);
        CU_ASSERT(strncmp(err.msg, "line ", 5) == 0);
        if (rc != -EINVAL)
            printf("accepted: %s\n", bad[i]);
    }
    CU_ASSERT_EQUAL(parse_rc("1\0", 2, 0), -EINVAL);
    CU_ASSERT_EQUAL(parse_rc("[1,\0 2]", 7, 0), -EINVAL);
    CU_ASSERT_EQUAL(parse_rc("\"a\0b\"", 5, 0), -EINVAL);
}

static void test_errors_name_line_and_column(void)
{
    CU_ASSERT_EQUAL(parse_rc("{\n  \"a\": tru\n}", 14, 0), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "line 2, column 8: unexpected character");
    CU_ASSERT_EQUAL(parse_rc("{\"a\":[1,2", 9, 0), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "line 1, column 10: unexpected end of input");
    /* Texts before the error were unescaped in place: the column still counts source bytes. */
    CU_ASSERT_EQUAL(parse_rc("[\"\\u0041\\n\", 12, x]", 19, 0), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "line 1, column 18: unexpected character");
}

static void test_nodes_carry_their_line(void)
{
    struct bh_json *v = parse("{\n\"a\":1,\n\n\"b\":\n[2,\n{}]}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(v->line, 1);
    CU_ASSERT_EQUAL(bh_json_get(v, "a")->line, 2);
    CU_ASSERT_EQUAL(bh_json_get(v, "b")->line, 5);
    CU_ASSERT_EQUAL(bh_json_at(bh_json_get(v, "b"), 1)->line, 6);
}

static void test_strict_names_the_repeated_field(void)
{
    CU_ASSERT_PTR_NULL(parse_flags("{\"a\":1,\n \"b\":{\"x\":1,\"x\":2}}", BH_JSON_STRICT));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "duplicate field \"x\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "line 2, "));
    CU_ASSERT_PTR_NULL(parse_flags("{\"\":1,\"\":2}", BH_JSON_STRICT));
    CU_ASSERT_PTR_NOT_NULL(parse_flags("{\"a\":1,\"b\":{\"a\":2}}", BH_JSON_STRICT));
}

static void test_last_of_repeated_fields_wins(void)
{
    struct bh_json *v = parse("{\"a\":1,\"b\":2,\"a\":{\"c\":3},\"b\":4,\"b\":5}");
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"a\":{\"c\":3},\"b\":5}");
    CU_ASSERT_EQUAL(v->c.n, 2);
    CU_ASSERT_STRING_EQUAL(v->c.last->key.p, "b");
    CU_ASSERT_STRING_EQUAL(text_of(parse("{\"a\":1,\"a\":2}")), "{\"a\":2}");
    CU_ASSERT_STRING_EQUAL(text_of(parse("{\"a\":1,\"a\":2,\"c\":3}")), "{\"a\":2,\"c\":3}");
}

static void test_many_repeated_fields(void)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    bh_buf_addc(&b, '{');
    for (int i = 0; i < 5000; i++)
        bh_buf_addf(&b, "%s\"k%d\":%d", i ? "," : "", i % 1000, i);
    bh_buf_addc(&b, '}');
    struct bh_json *v = parse(bh_buf_str(&b));
    CU_ASSERT_PTR_NOT_NULL_FATAL(v);
    CU_ASSERT_EQUAL(v->c.n, 1000);
    CU_ASSERT_STRING_EQUAL(v->c.last->key.p, "k999");
    CU_ASSERT_EQUAL(bh_json_get_i64(v, "k0", 0), 4000);
    CU_ASSERT_EQUAL(bh_json_get_i64(v, "k999", 0), 4999);
    CU_ASSERT_PTR_NULL(parse_flags(bh_buf_str(&b), BH_JSON_STRICT));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "duplicate field \"k0\""));
}

static void nest(struct bh_buf *b, int depth, const char *open, const char *close)
{
    for (int i = 0; i < depth; i++)
        bh_buf_adds(b, open);
    bh_buf_addc(b, '1');
    for (int i = 0; i < depth; i++)
        bh_buf_adds(b, close);
}

static void test_depth_is_limited(void)
{
    static const struct {
        const char *open, *close;
    } kinds[] = {{"[", "]"}, {"{\"a\":", "}"}};
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
        nest(&b, BH_JSON_MAX_DEPTH, kinds[i].open, kinds[i].close);
        CU_ASSERT_PTR_NOT_NULL(parse(bh_buf_str(&b)));
        bh_buf_reset(&b);
        nest(&b, BH_JSON_MAX_DEPTH + 1, kinds[i].open, kinds[i].close);
        CU_ASSERT_EQUAL(parse_rc(b.p, b.n, 0), -E2BIG);
    }
}

static void test_arena_limit_is_an_error(void)
{
    static const char text[] = "[{\"a\":[1,2,3]},\"0123456789\",{\"a\":1,\"b\":2},null,true]";
    struct bh_json *v;
    size_t limit = 16;
    int rc = -E2BIG;
    for (; rc != 0 && limit < 100000; limit += 16) {
        struct bh_arena a;
        bh_arena_init(&a, limit);
        rc = bh_json_parse(&a, text, sizeof(text) - 1, 0, &v, &err);
        CU_ASSERT(rc == 0 || rc == -E2BIG);
        if (rc == 0)
            CU_ASSERT_STRING_EQUAL(text_of(v), text);
        bh_arena_fini(&a);
    }
    CU_ASSERT_EQUAL(rc, 0);
    CU_ASSERT(limit > sizeof(text));
}

/* ---- tree ------------------------------------------------------------------------------------ */

static void test_lookup_tolerates_null(void)
{
    struct bh_json *v =
        parse("{\"s\":\"x\",\"n\":7,\"b\":true,\"o\":{\"p\":{\"q\":1}},\"a\":[1,2]}");
    CU_ASSERT_PTR_NULL(bh_json_get(NULL, "x"));
    CU_ASSERT_PTR_NULL(bh_json_get(bh_json_get(v, "s"), "x"));
    CU_ASSERT_PTR_NULL(bh_json_path(NULL, "a.b"));
    CU_ASSERT_PTR_NULL(bh_json_at(v, 0));
    CU_ASSERT_PTR_NULL(bh_json_at(bh_json_get(v, "a"), 2));
    CU_ASSERT_PTR_NULL(bh_json_cstr(NULL));
    CU_ASSERT_PTR_NULL(bh_json_get_str(v, "n"));
    CU_ASSERT_EQUAL(bh_json_get_i64(v, "s", -3), -3);
    CU_ASSERT_FALSE(bh_json_get_bool(v, "n", false));
    CU_ASSERT_TRUE(bh_json_get_bool(v, "b", false));
    CU_ASSERT_PTR_NOT_NULL(bh_json_path(v, "o.p.q"));
    CU_ASSERT_PTR_NULL(bh_json_path(v, "o.p.q.r"));
    CU_ASSERT_PTR_NULL(bh_json_path(v, "o."));
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(v, "s"), "x");
    size_t n = 0;
    bh_json_each(e, (struct bh_json *)NULL)
        n++;
    CU_ASSERT_EQUAL(n, 0);
}

static void test_integers_are_exact(void)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t v;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"9007199254740993", true, 9007199254740993},
        {"99999999999999999999999", false, 0},
        {"\"5\"", false, 0},
        {"null", false, 0},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        int64_t got = 0;
        CU_ASSERT_EQUAL(bh_json_i64(parse(cases[i].text), &got), cases[i].ok);
        CU_ASSERT_EQUAL(got, cases[i].v);
    }
}

static bool equal(const char *x, const char *y)
{
    struct bh_json *a = NULL, *b = NULL;
    bh_arena_reset(&arena);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&arena, x, strlen(x), BH_JSON_NUL, &a, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&arena, y, strlen(y), BH_JSON_NUL, &b, NULL), 0);
    CU_ASSERT_EQUAL(bh_json_equal(a, b), bh_json_equal(b, a));
    return bh_json_equal(a, b);
}

static void test_equality(void)
{
    CU_ASSERT_TRUE(equal("{\"a\":1,\"b\":[2]}", "{\"b\":[2],\"a\":1}"));
    CU_ASSERT_TRUE(equal("[1,1.0,10]", "[1.0,1,1e1]"));
    CU_ASSERT_TRUE(equal("-0", "0"));
    CU_ASSERT_FALSE(equal("[1,2]", "[2,1]"));
    CU_ASSERT_FALSE(equal("[1,2]", "[1]"));
    CU_ASSERT_FALSE(equal("{\"a\":1}", "{\"b\":1}"));
    CU_ASSERT_FALSE(equal("{\"a\":1}", "{\"a\":1,\"b\":1}"));
    CU_ASSERT_FALSE(equal("1", "\"1\""));
    CU_ASSERT_FALSE(equal("null", "false"));
    CU_ASSERT_FALSE(equal("18446744073709551616", "18446744073709551617"));
    CU_ASSERT_FALSE(equal("9007199254740993", "9007199254740992"));
    CU_ASSERT_FALSE(equal("\"a\\u0000b\"", "\"a\\u0000c\""));
    CU_ASSERT_TRUE(bh_json_equal(NULL, NULL));
}

static void test_set_keeps_the_place(void)
{
    struct bh_json *v = parse("{\"a\":1,\"b\":2,\"c\":3}");
    bh_json_set_str(&arena, v, "b", "x");
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"a\":1,\"b\":\"x\",\"c\":3}");
    bh_json_set_i64(&arena, v, "c", INT64_MIN);
    bh_json_set_bool(&arena, v, "a", false);
    bh_json_set(&arena, v, "d", bh_json_new(&arena, BH_JSON_NULL));
    CU_ASSERT_STRING_EQUAL(text_of(v),
                           "{\"a\":false,\"b\":\"x\",\"c\":-9223372036854775808,\"d\":null}");
    CU_ASSERT_STRING_EQUAL(v->c.last->key.p, "d");
    struct bh_json *d = bh_json_get(v, "d");
    CU_ASSERT_PTR_EQUAL(bh_json_set(&arena, v, "d", d), d);
    CU_ASSERT_EQUAL(v->c.n, 4);
}

static void test_obj_at_creates_and_replaces(void)
{
    struct bh_json *v = parse("{\"a\":1,\"o\":{\"x\":1}}");
    bh_json_set_i64(&arena, bh_json_obj_at(&arena, v, "a"), "n", 1);
    bh_json_set_i64(&arena, bh_json_obj_at(&arena, v, "o"), "y", 2);
    bh_json_obj_at(&arena, v, "new");
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"a\":{\"n\":1},\"o\":{\"x\":1,\"y\":2},\"new\":{}}");
}

static void test_removing(void)
{
    struct bh_json *v = parse("{\"a\":1,\"b\":2,\"c\":3}");
    CU_ASSERT_TRUE(bh_json_unset(v, "c"));
    CU_ASSERT_FALSE(bh_json_unset(v, "c"));
    bh_json_set_i64(&arena, v, "d", 4); /* the last link must have moved back */
    CU_ASSERT_TRUE(bh_json_unset(v, "a"));
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"b\":2,\"d\":4}");
    CU_ASSERT_TRUE(bh_json_unset(v, "b"));
    CU_ASSERT_TRUE(bh_json_unset(v, "d"));
    CU_ASSERT_STRING_EQUAL(text_of(v), "{}");
    bh_json_set_i64(&arena, v, "e", 5);
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"e\":5}");
    struct bh_json *stranger = bh_json_new(&arena, BH_JSON_NULL);
    CU_ASSERT_FALSE(bh_json_remove(v, stranger));
}

static void test_builders_report_the_limit_once(void)
{
    struct bh_arena a;
    bh_arena_init(&a, 4096);
    struct bh_json *arr = bh_json_new(&a, BH_JSON_ARRAY), *obj = bh_json_new(&a, BH_JSON_OBJECT);
    for (int i = 0; i < 1000; i++) {
        bh_json_push(arr, bh_json_new_cstr(&a, "text"));
        bh_json_set_str(&a, bh_json_obj_at(&a, obj, "o"), "k", "text");
    }
    CU_ASSERT_TRUE(a.failed);
    CU_ASSERT_PTR_NULL(bh_json_clone(&a, arr));
    bh_arena_fini(&a);
}

static void test_clone_shares_nothing(void)
{
    struct bh_arena a;
    struct bh_json *v = parse("{\"a\":[1,{\"b\":\"x\"}],\"n\":null,\"t\":true}");
    bh_arena_init(&a, 0);
    struct bh_json *c = bh_json_clone(&a, v);
    bh_arena_reset(&arena); /* poisons the original under ASan */
    CU_ASSERT_STRING_EQUAL(text_of(c), "{\"a\":[1,{\"b\":\"x\"}],\"n\":null,\"t\":true}");
    bh_arena_fini(&a);
}

/* ---- writer ---------------------------------------------------------------------------------- */

static void test_pretty(void)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    bh_json_write_pretty(&b, parse("{\"a\":[1,{\"b\":[]}],\"c\":{}}"));
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b),
                           "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  "
                           "],\n  \"c\": {}\n}");
}

static void test_written_strings_read_back(void)
{
    bh_arena_reset(&arena);
    for (unsigned c = 0; c < 0x180; c++) {
        char s[8] = "ab";
        size_t n = 2;
        if (c < 0x80) {
            s[n++] = (char)c;
        } else {
            s[n++] = (char)(0xc0 | c >> 6);
            s[n++] = (char)(0x80 | (c & 0x3f));
        }
        struct bh_json *v = bh_json_new_str(&arena, s, n), *back = NULL;
        BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
        bh_json_write(&b, v);
        CU_ASSERT_EQUAL(bh_json_parse(&arena, b.p, b.n, BH_JSON_NUL, &back, &err), 0);
        CU_ASSERT_TRUE(bh_json_equal(v, back));
    }
}

/* ---- differential: jansson ------------------------------------------------------------------- */

static bool same_as_jansson(const struct bh_json *v, json_t *j)
{
    switch (v->type) {
    case BH_JSON_NULL:
        return json_is_null(j);
    case BH_JSON_BOOL:
        return json_is_boolean(j) && json_is_true(j) == v->b;
    case BH_JSON_NUMBER: {
        int64_t i;
        if (json_is_integer(j))
            return bh_json_i64(v, &i) && i == json_integer_value(j);
        return json_is_real(j) && strtod(v->s.p, NULL) == json_real_value(j);
    }
    case BH_JSON_STRING:
        return json_is_string(j) && json_string_length(j) == v->s.n &&
               memcmp(json_string_value(j), v->s.p, v->s.n) == 0;
    case BH_JSON_ARRAY: {
        size_t i = 0;
        if (!json_is_array(j) || json_array_size(j) != v->c.n)
            return false;
        bh_json_each(e, v) {
            if (!same_as_jansson(e, json_array_get(j, i++)))
                return false;
        }
        return true;
    }
    case BH_JSON_OBJECT:
        if (!json_is_object(j) || json_object_size(j) != v->c.n)
            return false;
        bh_json_each(m, v) {
            json_t *o = json_object_get(j, m->key.p);
            if (!o || !same_as_jansson(m, o))
                return false;
        }
        return true;
    }
    return false;
}

static void random_json(struct bh_rand *r, struct bh_buf *b, int depth)
{
    static const char *const leaves[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "12345678901234567",
        "1.5",
        "-2e-3",
        "1E+2",
        "\"\"",
        "\"abc\"",
        "\"\\u00e9\\n\"",
        "\"\\ud83d\\ude00\"",
        "\"\xc3\xa9\"",
        "\"0123456789abcdefg\"",
        "\"\\\\\\\"\"",
        "\"x\\u0000y\"",
    };
    static const char *const names[] = {"a", "b", "name", "\\u0061", "", "metadata"};
    uint64_t kind = depth > 4 ? 2 : bh_rand_below(r, 3);
    if (kind == 2) {
        bh_buf_adds(b, leaves[bh_rand_below(r, BH_ARRAY_LEN(leaves))]);
        return;
    }
    bh_buf_addc(b, kind ? '{' : '[');
    for (uint64_t i = 0, n = bh_rand_below(r, 5); i < n; i++) {
        bh_buf_adds(b, i ? ", " : "");
        if (kind)
            bh_buf_addf(b, "\"%s\":", names[bh_rand_below(r, BH_ARRAY_LEN(names))]);
        random_json(r, b, depth + 1);
    }
    bh_buf_addc(b, kind ? '}' : ']');
}

static void mutate(struct bh_rand *r, struct bh_buf *b)
{
    static const char bytes[] = "{}[]\",:\\/eE+-.0189truefalsn \n\t\x01\x7f\x80\xc3\xe2\xf0\xff";
    for (uint64_t n = bh_rand_below(r, 4); n > 0 && b->n > 0; n--) {
        size_t at = bh_rand_below(r, b->n);
        if (bh_rand_below(r, 3) == 0) {
            memmove(b->p + at, b->p + at + 1, b->n - at);
            b->n--;
        } else {
            b->p[at] = bytes[bh_rand_below(r, sizeof(bytes) - 1)];
        }
    }
}

static void test_agrees_with_jansson(void)
{
    struct bh_rand r;
    size_t accepted = 0, rejected = 0;
    bh_rand_seed(&r, 20240601);
    for (int i = 0; i < 30000; i++) {
        BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
        struct bh_json *v = NULL;
        json_error_t je;
        random_json(&r, &b, 0);
        mutate(&r, &b);
        if (b.n == 0)
            continue;
        unsigned strict = i & 1;
        json_t *j = json_loadb(
            b.p, b.n, JSON_DECODE_ANY | JSON_ALLOW_NUL | (strict ? JSON_REJECT_DUPLICATES : 0),
            &je);
        bh_arena_reset(&arena);
        int rc =
            bh_json_parse(&arena, b.p, b.n, BH_JSON_NUL | (strict ? BH_JSON_STRICT : 0), &v, &err);
        /* Known: jansson has no integers beyond int64, no reals beyond double, no NUL in names. */
        bool limits = !j && (strstr(je.text, "too big") || strstr(je.text, "overflow") ||
                             strstr(je.text, "NUL byte"));
        bool same = j ? rc == 0 && same_as_jansson(v, j) : rc != 0 || limits;
        CU_ASSERT_TRUE(same);
        if (!same)
            printf("%s\n  here: %d %s\n  jansson: %s\n", b.p, rc, err.msg, j ? "ok" : je.text);
        accepted += rc == 0;
        rejected += rc != 0;
        json_decref(j);
    }
    CU_ASSERT(accepted > 3000);
    CU_ASSERT(rejected > 3000);
}

/* Foreign trees have strings and numbers where lists are expected. */
static void test_only_containers_have_children(void)
{
    const char *const texts[] = {"5", "\"text\"", "true", "null", "[]", "{}"};
    unsigned n = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        bh_json_each(c, parse(texts[i])) {
            n += c != NULL;
        }
    }
    bh_json_each(c, (const struct bh_json *)NULL) {
        n += c != NULL;
    }
    CU_ASSERT_EQUAL(n, 0);
    bh_json_each(c, parse("[1,[2,3],{}]")) {
        n += c != NULL;
    }
    CU_ASSERT_EQUAL(n, 3);
}

static void test_templates(void)
{
    struct bh_json *v, *list;

    bh_arena_reset(&arena);
    v = bh_json_make(&arena, "kind: Pod, metadata: {name: %s, labels: {%s: %s}}, n: %ld, u: %u",
                     "a", "x.io/y", "1", 7L, 3u);
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{"
                                       "\"x.io/y\":\"1\"}},\"n\":7,\"u\":3}");
    bh_json_add(&arena, v, "metadata: {uid: %s}, n?: %zu, u?: %d, gone?: %p, ok: %i", "b",
                (size_t)0, 4, NULL, true);
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"labels\":{"
                                       "\"x.io/y\":\"1\"},\"uid\":\"b\"},\"u\":4,\"ok\":true}");
    v = bh_json_make(&arena, "a: [], b: [{c: true}, %s, 1, null], d: 'x, y: z', e?: %s, f?: {}",
                     "s", "");
    CU_ASSERT_STRING_EQUAL(text_of(v),
                           "{\"a\":[],\"b\":[{\"c\":true},\"s\",1,null],\"d\":\"x, y: z\"}");
    list = bh_json_list_at(&arena, v, "a");
    bh_json_append(&arena, list, "i: %i, p: %p", false, NULL);
    CU_ASSERT_PTR_EQUAL(bh_json_list_at(&arena, v, "a"), list);
    CU_ASSERT_STRING_EQUAL(text_of(list), "[{\"i\":false,\"p\":null}]");
    bh_json_drop(v, "a d e");
    CU_ASSERT_STRING_EQUAL(text_of(v), "{\"b\":[{\"c\":true},\"s\",1,null]}");
}

BH_TESTS("common/data/json", {"what is read is written the same way", test_round_trip},
         {"only lists and objects have children", test_only_containers_have_children},
         {"escapes become UTF-8, NUL included", test_escapes},
         {"a string with NUL is refused, or equal to no name",
          test_string_with_nul_is_refused_or_equal_to_no_name},
         {"everything outside RFC 8259 is rejected", test_rejects_what_is_not_json},
         {"errors name line and column of the source", test_errors_name_line_and_column},
         {"nodes carry their line", test_nodes_carry_their_line},
         {"strict reading names the repeated field", test_strict_names_the_repeated_field},
         {"the last of repeated fields wins, in the first one's place",
          test_last_of_repeated_fields_wins},
         {"a thousand repeated fields are found", test_many_repeated_fields},
         {"nesting beyond the limit is E2BIG", test_depth_is_limited},
         {"every arena limit ends in E2BIG or the whole tree", test_arena_limit_is_an_error},
         {"look-up tolerates NULL and wrong types", test_lookup_tolerates_null},
         {"integers are exact or refused", test_integers_are_exact},
         {"equality ignores member order and number notation only", test_equality},
         {"set replaces in place and appends new members", test_set_keeps_the_place},
         {"obj_at creates objects and replaces other types", test_obj_at_creates_and_replaces},
         {"removing keeps the links right", test_removing},
         {"builders pass the arena's limit on as NULL", test_builders_report_the_limit_once},
         {"templates look like what they make", test_templates},
         {"a clone shares nothing with its source", test_clone_shares_nothing},
         {"indented output has two spaces a level", test_pretty},
         {"every character survives writing and reading", test_written_strings_read_back},
         {"acceptance and values agree with jansson", test_agrees_with_jansson})
