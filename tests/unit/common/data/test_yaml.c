/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/data/test_yaml.c - typing rules, limits and the block style writer
 *
 * The expected values of the typing and layout tests were taken from kubectl 1.32
 * (annotate --local -o json|yaml).
 */
#include "common/data/yaml.h"
#include "tests/unit/harness.h"

#include <errno.h>

static struct bh_arena arena;
static struct bh_err err;

static int parse_rc(const char *text, unsigned flags, struct bh_json **ret)
{
    bh_arena_reset(&arena);
    err.msg[0] = 0;
    return bh_yaml_parse(&arena, text, strlen(text), flags, ret, &err);
}

/* The document as compact JSON, or the error text. Valid until the next call. */
static const char *json_of(const char *text)
{
    static struct bh_buf b;
    struct bh_json *v;
    bh_buf_reset(&b);
    if (parse_rc(text, BH_JSON_NUL, &v) < 0)
        return err.msg;
    bh_json_write(&b, v);
    return bh_buf_str(&b);
}

static const char *yaml_of(const char *json)
{
    static struct bh_buf b;
    struct bh_json *v = NULL;
    bh_buf_reset(&b);
    bh_arena_reset(&arena);
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&arena, json, strlen(json), BH_JSON_NUL, &v, &err), 0);
    bh_yaml_write(&b, v);
    return bh_buf_str(&b);
}

/* ---- typing ---------------------------------------------------------------------------------- */

static void test_plain_scalars(void)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        {"yes", "true"},
        {"on", "true"},
        {"y", "true"},
        {"True", "true"},
        {"TRUE", "true"},
        {"no", "false"},
        {"Off", "false"},
        {"N", "false"},
        {"tRue", "\"tRue\""},
        {"~", "null"},
        {"null", "null"},
        {"Null", "null"},
        {"nULL", "\"nULL\""},
        {"", "null"},
        {"12", "12"},
        {"+5", "5"},
        {"-7", "-7"},
        {"0x1F", "31"},
        {"+0x1F", "31"},
        {"010", "8"},
        {"0o17", "15"},
        {"0b101", "5"},
        {"-0b11", "-3"},
        {"1_000", "1000"},
        {"00", "0"},
        {"08", "8"},
        {"-0", "0"},
        {"0x", "\"0x\""},
        {"0xg", "\"0xg\""},
        {"18446744073709551615", "18446744073709551615"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"-9223372036854775809", "-9223372036854775808"},
        {"18446744073709551616", "18446744073709552000"},
        {"123456789012345678901", "123456789012345680000"},
        {"1.0", "1"},
        {"1.50", "1.5"},
        {".5", "0.5"},
        {"1.", "1"},
        {"1e3", "1000"},
        {"12e03", "12000"},
        {"1e-6", "0.000001"},
        {"0.00000123", "0.00000123"},
        {"1.5e-7", "1.5e-7"},
        {"1.5e-10", "1.5e-10"},
        {"1e21", "1e+21"},
        {"1e20", "100000000000000000000"},
        {"123456789.125", "123456789.125"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"5e-324", "5e-324"},
        {"1e400", "\"1e400\""},
        {"1_0.5_0", "10.5"},
        {"-.5", "-0.5"},
        {"1e", "\"1e\""},
        {".", "\".\""},
        {"-", "[null]"},
        {"1.2.3", "\"1.2.3\""},
        {"100m", "\"100m\""},
        {"1:20", "\"1:20\""},
        {"1Gi", "\"1Gi\""},
        {"2001-01-01", "\"2001-01-01\""},
        {"2001-12-14T21:59:43Z", "\"2001-12-14T21:59:43Z\""},
        {"'5'", "\"5\""},
        {"\"yes\"", "\"yes\""},
        {"!!str 5", "\"5\""},
        {"!!float 3", "3"},
        {"!!int 3", "3"},
        {"! 5", "\"5\""},
        {"!foo 5", "\"5\""},
        {"\"\\U0001F600\"", "\"\xf0\x9f\x98\x80\""},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const char *got = json_of(cases[i].yaml);
        /* -9223372036854775809 is a float upstream: only its value is compared. */
        if (strcmp(got, cases[i].json) != 0 && strtod(got, NULL) != strtod(cases[i].json, NULL))
            printf("%s gives %s\n", cases[i].yaml, got);
        CU_ASSERT(strcmp(got, cases[i].json) == 0 ||
                  (strtod(got, NULL) != 0 && strtod(got, NULL) == strtod(cases[i].json, NULL)));
    }
}

static void test_tags_must_fit(void)
{
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("!!int abc"), "does not fit its tag"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("!!bool 1"), "does not fit its tag"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("!!binary aGk="), "not supported"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("a: .inf"), "no JSON form"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("a: .NaN"), "no JSON form"));
}

static void test_string_with_nul_is_refused(void)
{
    static const char *const texts[] = {"a: \"b\\0c\"", "- \"\\x00\"", "{\"a\": \"\\u0000\"}",
                                        "a: &x \"\\0\"\nb: *x"};
    struct bh_json *v;

    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++) {
        CU_ASSERT_EQUAL(parse_rc(texts[i], 0, &v), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "NUL in string"));
        CU_ASSERT_EQUAL(parse_rc(texts[i], BH_JSON_NUL, &v), 0);
    }
}

static void test_keys_become_strings(void)
{
    CU_ASSERT_STRING_EQUAL(json_of("1: a\n1.5: b\ntrue: c\ny: d\n0x10: e\n2001-01-01: f\n'2': g"),
                           "{\"1\":\"a\",\"1.5\":\"b\",\"true\":\"d\",\"16\":\"e\",\"2001-01-01\":"
                           "\"f\",\"2\":\"g\"}");
    CU_ASSERT_STRING_EQUAL(json_of("1000000.0: d"), "{\"1e+06\":\"d\"}");
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("~: x"), "mapping key must not be null"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("\"a\\0\": x"), "NUL in mapping key"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(json_of("a: &x \"\\0\"\n*x : 1"), "mapping key must be a scalar"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("? [a]\n: x"), "mapping key must be a scalar"));
}

static void test_block_scalars(void)
{
    CU_ASSERT_STRING_EQUAL(
        json_of("a: |\n  x\n   y\n\nb: |-\n  z\nc: >\n  f\n  g\n\n  h\nd: |+\n  e\n\n"),
        "{\"a\":\"x\\n y\\n\",\"b\":\"z\",\"c\":\"f g\\nh\\n\",\"d\":\"e\\n\\n\"}");
}

static void test_json_text_goes_to_the_json_reader(void)
{
    CU_ASSERT_STRING_EQUAL(json_of(" {\"a\":1.0,\"b\":\"\\ud83d\\ude00\"}"),
                           "{\"a\":1.0,\"b\":\"\xf0\x9f\x98\x80\"}");
    CU_ASSERT_STRING_EQUAL(json_of("{a: 1, b: [x]}"), "{\"a\":1,\"b\":[\"x\"]}");
    CU_ASSERT_STRING_EQUAL(json_of("{\"a\": ]"), "line 1, column 7: unexpected character");
}

/* ---- anchors and merge keys ------------------------------------------------------------------ */

static void test_anchors(void)
{
    CU_ASSERT_STRING_EQUAL(json_of("a: &x {m: 1}\nb: *x\nc: [*x, *x]"),
                           "{\"a\":{\"m\":1},\"b\":{\"m\":1},\"c\":[{\"m\":1},{\"m\":1}]}");
    CU_ASSERT_STRING_EQUAL(json_of("a: &x 1\nb: &x 2\nc: *x"), "{\"a\":1,\"b\":2,\"c\":2}");
    CU_ASSERT_STRING_EQUAL(json_of("&k a: 1\nb: *k"), "{\"a\":1,\"b\":\"a\"}");
    CU_ASSERT_STRING_EQUAL(json_of("a: &x b\n*x : 1"), "{\"a\":\"b\",\"b\":1}");
    /* The repeated member's node must not change what the anchor means. */
    CU_ASSERT_STRING_EQUAL(json_of("o: {a: &x 1, a: 2}\nb: *x"), "{\"o\":{\"a\":2},\"b\":1}");
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("a: *nope"), "unknown anchor"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("a: &x [*x]"), "anchor contains itself"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("a: &x {b: *x}"), "anchor contains itself"));
}

static void test_merge_keys(void)
{
    CU_ASSERT_STRING_EQUAL(json_of("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}"),
                           "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":1,\"q\":3}}");
    CU_ASSERT_STRING_EQUAL(json_of("a: &x {p: 1}\nb: {p: 9, <<: *x}"),
                           "{\"a\":{\"p\":1},\"b\":{\"p\":9}}");
    CU_ASSERT_STRING_EQUAL(json_of("b: {<<: [{p: 1}, {p: 2, q: 2}], r: 3}"),
                           "{\"b\":{\"p\":1,\"q\":2,\"r\":3}}");
    CU_ASSERT_STRING_EQUAL(json_of("b: {'<<': 1}"), "{\"b\":{\"<<\":1}}");
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("b: {<<: 1}"), "map merge requires"));
    CU_ASSERT_PTR_NOT_NULL(strstr(json_of("b: {<<: [1]}"), "map merge requires"));
    struct bh_json *v;
    CU_ASSERT_EQUAL(parse_rc("a: &x {p: 1}\nb: {<<: *x, p: 2}", BH_JSON_STRICT, &v), 0);
}

/* ---- errors and limits ----------------------------------------------------------------------- */

static void test_errors_name_the_place(void)
{
    struct bh_json *v;
    CU_ASSERT_EQUAL(parse_rc("a: 1\nb:\n\t- x", 0, &v), -EINVAL);
    CU_ASSERT(strncmp(err.msg, "line 3, column ", 15) == 0);
    CU_ASSERT_EQUAL(parse_rc("a: [1, 2", 0, &v), -EINVAL);
    CU_ASSERT_EQUAL(parse_rc("a: \"\x01\"", 0, &v), -EINVAL);
    CU_ASSERT_EQUAL(parse_rc("a: \xff", 0, &v), -EINVAL);
    CU_ASSERT_EQUAL(parse_rc("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", BH_JSON_STRICT, &v), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "line 5: duplicate field \"c\"");
    CU_ASSERT_STRING_EQUAL(json_of("a: 1\na: 2"), "{\"a\":2}");
}

static void test_lines(void)
{
    struct bh_json *v;
    CU_ASSERT_EQUAL_FATAL(parse_rc("# c\na: 1\nb:\n- x\n- z: |\n    t\n", 0, &v), 0);
    CU_ASSERT_EQUAL(bh_json_get(v, "a")->line, 2);
    CU_ASSERT_EQUAL(bh_json_get(v, "b")->line, 3);
    CU_ASSERT_EQUAL(bh_json_at(bh_json_get(v, "b"), 0)->line, 4);
    CU_ASSERT_EQUAL(bh_json_get(bh_json_at(bh_json_get(v, "b"), 1), "z")->line, 5);
}

static int nested(int depth)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_json *v;
    for (int i = 0; i < depth; i++)
        bh_buf_addc(&b, '[');
    for (int i = 0; i < depth; i++)
        bh_buf_addc(&b, ']');
    return parse_rc(bh_buf_str(&b), 0, &v);
}

static void test_depth(void)
{
    CU_ASSERT_EQUAL(nested(BH_JSON_MAX_DEPTH), 0);
    CU_ASSERT_EQUAL(nested(BH_JSON_MAX_DEPTH + 1), -E2BIG);
    CU_ASSERT_EQUAL(nested(20000), -E2BIG);
}

static void test_alias_bomb(void)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_json *v;
    bh_buf_adds(&b, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 12; i++) {
        bh_buf_addf(&b, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            bh_buf_addf(&b, "%s*a%d", k ? "," : "", i - 1);
        bh_buf_adds(&b, "]\n");
    }
    CU_ASSERT_EQUAL(parse_rc(bh_buf_str(&b), 0, &v), -E2BIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "excessive aliasing"));
}

/* Few nodes, but each copy of the text counts for what it would print. */
static void test_alias_bomb_of_text(void)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_json *v;
    bh_buf_adds(&b, "a: &a ");
    for (int i = 0; i < 1000000; i++)
        bh_buf_addc(&b, 'x');
    bh_buf_adds(&b, "\nb: [");
    for (int i = 0; i < 1000; i++)
        bh_buf_adds(&b, "*a,");
    bh_buf_adds(&b, "]\n");
    CU_ASSERT_EQUAL(parse_rc(bh_buf_str(&b), 0, &v), -E2BIG);
}

/* Depth that only the expansion of aliases brings. */
static void test_alias_depth(void)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_json *v;
    bh_buf_adds(&b, "a0: &a0 x\n");
    for (int i = 1; i < 200; i++)
        bh_buf_addf(&b, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    CU_ASSERT_EQUAL(parse_rc(bh_buf_str(&b), 0, &v), -E2BIG);
}

static void test_arena_limit(void)
{
    static const char text[] = "a: &x [1, two, {b: c}]\nd: *x\ne: {<<: {f: g}, h: i}\n";
    int rc = -E2BIG;
    for (size_t limit = 16; rc != 0 && limit < 100000; limit += 16) {
        struct bh_arena a;
        struct bh_json *v;
        bh_arena_init(&a, limit);
        rc = bh_yaml_parse(&a, text, sizeof(text) - 1, 0, &v, &err);
        CU_ASSERT(rc == 0 || rc == -E2BIG);
        bh_arena_fini(&a);
    }
    CU_ASSERT_EQUAL(rc, 0);
}

/* ---- documents ------------------------------------------------------------------------------- */

static const char *all_of(const char *text)
{
    static struct bh_buf b;
    struct bh_json *v;
    bh_buf_reset(&b);
    bh_arena_reset(&arena);
    if (bh_yaml_parse_all(&arena, text, strlen(text), 0, &v, &err) < 0)
        return err.msg;
    bh_json_write(&b, v);
    return bh_buf_str(&b);
}

static void test_documents(void)
{
    CU_ASSERT_STRING_EQUAL(all_of("a: 1\n---\nb: 2\n---\n# nothing\n---\n---\nc: 3\n...\n"),
                           "[{\"a\":1},{\"b\":2},{\"c\":3}]");
    CU_ASSERT_STRING_EQUAL(all_of(""), "[]");
    CU_ASSERT_STRING_EQUAL(all_of("---\n"), "[]");
    CU_ASSERT_STRING_EQUAL(all_of("{\"a\":1}\n{\"b\":2}"), "[{\"a\":1},{\"b\":2}]");
    CU_ASSERT_STRING_EQUAL(all_of("{\"a\":1}\n---\n{\"b\":2}\n"), "[{\"a\":1},{\"b\":2}]");
    CU_ASSERT_STRING_EQUAL(all_of("{\"a\":1} {\"b\":"), "unexpected end of input");
    CU_ASSERT_PTR_NOT_NULL(strstr(all_of("a: &x 1\n---\nb: *x\n"), "unknown anchor"));
    CU_ASSERT_PTR_NOT_NULL(strstr(all_of("a: 1\n---\nb: [\n"), "line "));
    CU_ASSERT_STRING_EQUAL(json_of("a: 1\n---\nb: 2\n"), "{\"a\":1}");
    CU_ASSERT_STRING_EQUAL(json_of(""), "null");
    CU_ASSERT_STRING_EQUAL(json_of("# only a comment\n"), "null");
}

/* ---- writer ---------------------------------------------------------------------------------- */

static void test_layout(void)
{
    CU_ASSERT_STRING_EQUAL(
        yaml_of(
            "{\"kind\":\"Pod\",\"spec\":{\"containers\":[{\"name\":\"a\",\"args\":[\"x\",\"y\"]},{"
            "\"name\":\"b\"}],\"m\":{},\"l\":[],\"z\":null},\"deep\":[1,[2,3],[[4]],{\"a\":1,"
            "\"b\":[\"x\"]}]}"),
        "kind: Pod\n"
        "spec:\n"
        "  containers:\n"
        "  - name: a\n"
        "    args:\n"
        "    - x\n"
        "    - \"y\"\n"
        "  - name: b\n"
        "  m: {}\n"
        "  l: []\n"
        "  z: null\n"
        "deep:\n"
        "- 1\n"
        "- - 2\n"
        "  - 3\n"
        "- - - 4\n"
        "- a: 1\n"
        "  b:\n"
        "  - x\n");
    CU_ASSERT_STRING_EQUAL(yaml_of("[]"), "[]\n");
    CU_ASSERT_STRING_EQUAL(yaml_of("[1,{\"a\":2}]"), "- 1\n- a: 2\n");
    CU_ASSERT_STRING_EQUAL(yaml_of("\"x\""), "x\n");
    CU_ASSERT_STRING_EQUAL(yaml_of("null"), "null\n");
}

static void test_strings_are_quoted_when_needed(void)
{
    static const struct {
        const char *json, *yaml;
    } cases[] = {
        {"\"plain text\"", "plain text"},
        {"\"\"", "\"\""},
        {"\"true\"", "\"true\""},
        {"\"no\"", "\"no\""},
        {"\"null\"", "\"null\""},
        {"\"~\"", "\"~\""},
        {"\"1\"", "\"1\""},
        {"\"1.5\"", "\"1.5\""},
        {"\"0x1f\"", "\"0x1f\""},
        {"\"1_000\"", "\"1_000\""},
        {"\"1e5\"", "\"1e5\""},
        {"\"08\"", "\"08\""},
        {"\"1:20\"", "\"1:20\""},
        {"\"1:60\"", "1:60"},
        {"\"2001-01-01T00:00:00Z\"", "\"2001-01-01T00:00:00Z\""},
        {"\"2001-1-1\"", "\"2001-1-1\""},
        {"\"2001-13-1\"", "2001-13-1"},
        {"\"2001-01-00\"", "2001-01-00"},
        {"\"2001-02-29\"", "2001-02-29"},
        {"\"2000-02-29\"", "\"2000-02-29\""},
        {"\"100m\"", "100m"},
        {"\"-\"", "'-'"},
        {"\"-x\"", "-x"},
        {"\"- x\"", "'- x'"},
        {"\"#x\"", "'#x'"},
        {"\"a #b\"", "'a #b'"},
        {"\"a#b\"", "a#b"},
        {"\"a: b\"", "'a: b'"},
        {"\"a:b\"", "a:b"},
        {"\"x:\"", "'x:'"},
        {"\"it's\"", "it's"},
        {"\"'x'\"", "'''x'''"},
        {"\"@x\"", "'@x'"},
        {"\"%x\"", "'%x'"},
        {"\"*\"", "'*'"},
        {"\"{x}\"", "'{x}'"},
        {"\"x{y}\"", "x{y}"},
        {"\"x,y\"", "x,y"},
        {"\"?x\"", "?x"},
        {"\"? x\"", "'? x'"},
        {"\"---x\"", "'---x'"},
        {"\" lead\"", "' lead'"},
        {"\"trail \"", "'trail '"},
        {"\"tab\\there\"", "\"tab\\there\""},
        {"\"a\\rb\"", "\"a\\rb\""},
        {"\"\\u0000\"", "\"\\0\""},
        {"\"\\u0007\"", "\"\\a\""},
        {"\"\xc3\xa9 \xc3\xbc\"", "\xc3\xa9 \xc3\xbc"},
        {"\"\xf0\x9f\x98\x80\"", "\"\\U0001F600\""},
        {"\"\\ufeffx\"", "\"\\uFEFFx\""},
        {"\"\\u2028\"", "\"\\L\""},
        {"\"<<\"", "\"<<\""},
        {"\"=x\"", "=x"},
        {"1.0", "1.0"},
        {"true", "true"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        BH_CLEANUP(bh_freep) char *json = bh_asprintf("{\"k\":%s}", cases[i].json);
        BH_CLEANUP(bh_freep) char *want = bh_asprintf("k: %s\n", cases[i].yaml);
        const char *got = yaml_of(json);
        CU_ASSERT_STRING_EQUAL(got, want);
        if (strcmp(got, want) != 0)
            printf("%s gives %s", cases[i].json, got);
    }
    CU_ASSERT_STRING_EQUAL(yaml_of("{\"true\":1,\"5\":2,\"a b\":3,\"\":4}"),
                           "\"true\": 1\n\"5\": 2\na b: 3\n\"\": 4\n");
}

static void test_multi_line_strings(void)
{
    CU_ASSERT_STRING_EQUAL(
        yaml_of("{\"a\":\"x\\ny\",\"b\":\"x\\n y\\n\",\"c\":\"x\\n\\n\",\"d\":\"\\n\"}"),
        "a: |-\n  x\n  y\nb: |\n  x\n   y\nc: |+\n  x\n\nd: |2+\n\n");
    CU_ASSERT_STRING_EQUAL(yaml_of("{\"a\":{\"b\":[\"x\\n\\ny\\n\",\" x\\n\"]}}"),
                           "a:\n  b:\n  - |\n    x\n\n    y\n  - |2\n     x\n");
    CU_ASSERT_STRING_EQUAL(yaml_of("{\"a\":\"x \\ny\\n\"}"), "a: \"x \\ny\\n\"\n");
}

static void test_long_lines_fold(void)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    bh_buf_adds(&b, "{\"a\":\"");
    for (int i = 0; i < 20; i++)
        bh_buf_adds(&b, i ? " word" : "word");
    bh_buf_adds(&b, "\"}");
    CU_ASSERT_STRING_EQUAL(
        yaml_of(bh_buf_str(&b)),
        "a: word word word word word word word word word word word word word word "
        "word word\n  word word word word\n");
    bh_buf_reset(&b);
    bh_buf_adds(&b, "{\"");
    for (int i = 0; i < 130; i++)
        bh_buf_addc(&b, 'k');
    bh_buf_adds(&b, "\":{\"x\":1}}");
    const char *got = yaml_of(bh_buf_str(&b));
    CU_ASSERT(strncmp(got, "? kkk", 5) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(got, "kk\n: x: 1\n"));
}

/* What is written must read back as the same tree, whatever the strings hold. */
static void random_tree(struct bh_rand *r, struct bh_json *into, int depth)
{
    static const char *const bits[] = {"a",   " ",
                                       "\n",  ":",
                                       "#",   "-",
                                       "'",   "\"",
                                       "1",   "0x",
                                       "yes", "\xc3\xa9",
                                       "\t",  "\\",
                                       "{",   "]",
                                       "~",   ",",
                                       "|",   "<<",
                                       "é ",  "long words that make a line fold ",
                                       "\r",  "\xe2\x80\xa8"};
    for (uint64_t i = 0, n = bh_rand_below(r, 5); i < n; i++) {
        char s[512] = "", key[528];
        for (uint64_t k = bh_rand_below(r, 12); k > 0; k--) {
            const char *bit = bits[bh_rand_below(r, BH_ARRAY_LEN(bits))];
            if (strlen(s) + strlen(bit) < sizeof(s))
                memcpy(s + strlen(s), bit, strlen(bit) + 1);
        }
        struct bh_json *v = bh_json_new_cstr(&arena, s);
        uint64_t kind = bh_rand_below(r, 4);
        if (kind < 2 && depth < 4) {
            v = bh_json_new(&arena, kind ? BH_JSON_OBJECT : BH_JSON_ARRAY);
            random_tree(r, v, depth + 1);
        }
        snprintf(key, sizeof(key), "%s%d", s, (int)i);
        if (into->type == BH_JSON_OBJECT)
            bh_json_set(&arena, into, key, v);
        else
            bh_json_push(into, v);
    }
}

static void test_random_trees_survive(void)
{
    struct bh_rand r;
    bh_rand_seed(&r, 7);
    for (int i = 0; i < 3000; i++) {
        BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
        struct bh_json *back = NULL;
        bh_arena_reset(&arena);
        struct bh_json *v = bh_json_new(&arena, i & 1 ? BH_JSON_OBJECT : BH_JSON_ARRAY);
        random_tree(&r, v, 0);
        bh_yaml_write(&b, v);
        int rc = bh_yaml_parse(&arena, b.p, b.n, BH_JSON_STRICT, &back, &err);
        CU_ASSERT_EQUAL(rc, 0);
        CU_ASSERT_TRUE(rc == 0 && bh_json_equal(v, back));
        if (rc != 0 || !bh_json_equal(v, back)) {
            printf("%s\n%s", err.msg, b.p);
            return;
        }
    }
}

BH_TESTS("common/data/yaml",
         {"plain scalars get the types sigs.k8s.io/yaml gives them", test_plain_scalars},
         {"a tag that does not fit is an error", test_tags_must_fit},
         {"mapping keys become strings", test_keys_become_strings},
         {"a string with NUL is refused", test_string_with_nul_is_refused},
         {"literal and folded scalars", test_block_scalars},
         {"text that begins with a brace is JSON", test_json_text_goes_to_the_json_reader},
         {"anchors and aliases", test_anchors},
         {"merge keys fill in what is not set", test_merge_keys},
         {"errors name line and column", test_errors_name_the_place},
         {"nodes carry their line", test_lines},
         {"nesting beyond the limit is E2BIG, also for thousands of levels", test_depth},
         {"nested aliases end at the budget", test_alias_bomb},
         {"aliases of a long text end at the budget", test_alias_bomb_of_text},
         {"aliases cannot nest deeper than the limit", test_alias_depth},
         {"every arena limit ends in E2BIG or the whole tree", test_arena_limit},
         {"documents of a stream", test_documents},
         {"lists stand below their key, nested ones are indented", test_layout},
         {"strings are quoted only when they would read as something else",
          test_strings_are_quoted_when_needed},
         {"strings of several lines are literal blocks", test_multi_line_strings},
         {"long lines fold, long keys become explicit", test_long_lines_fold},
         {"random trees survive writing and reading", test_random_trees_survive})
