/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/regex/test_regex.c - RE2 patterns
 */
#include "common/base/buf.h"
#include "common/regex/regex.h"
#include "tests/unit/harness.h"

/* "found" text, or NULL for no match; the error's text behind "!" when it does not compile. */
static char *find(const char *pattern, const char *text)
{
    const char *why = NULL;
    size_t from, to;
    uint64_t steps = 0;
    struct bh_arena a;
    char *r = NULL;

    bh_arena_init(&a, 0);
    struct bh_regex *re = bh_regex_compile(&a, bh_str_c(pattern), &why);
    if (!re)
        r = bh_asprintf("!%s", why);
    else if (bh_regex_find(re, &a, bh_str_c(text), 0, &from, &to, &steps, UINT64_MAX))
        r = bh_strndup(text + from, to - from);
    bh_arena_fini(&a);
    return r;
}

struct expect {
    const char *pattern, *text, *found; /* found: NULL = no match, "!" = does not compile */
};

static void check_all(const struct expect *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        BH_CLEANUP(bh_freep) char *got = find(t[i].pattern, t[i].text);
        bool ok = !t[i].found
                      ? !got
                      : got && (t[i].found[0] == '!' ? got[0] == '!' : bh_streq(got, t[i].found));
        if (!ok)
            printf("# /%s/ on \"%s\": %s\n", t[i].pattern, t[i].text, got ? got : "(none)");
        CU_ASSERT(ok);
    }
}
#define CHECK_ALL(t) check_all((t), BH_ARRAY_LEN(t))

static void test_the_leftmost_and_preferred_match_wins(void)
{
    static const struct expect t[] = {
        {"", "abc", ""},
        {"b", "abc", "b"},
        {"a|ab", "xab", "a"},
        {"ab|a", "xab", "ab"},
        {"a+", "baaab", "aaa"},
        {"a+?", "baaab", "a"},
        {"a*", "baaab", ""},
        {"(?U)a+", "aaa", "a"},
        {"(?U)a+?", "aaa", "aaa"},
        {"a?b", "aab", "ab"},
        {"(a|b)*c", "xababc", "ababc"},
        {"a.*c", "abcabc", "abcabc"},
        {"a.*?c", "abcabc", "abc"},
        {"(|a)+b", "aab", "aab"},
        {"(a*)*b", "aaab", "aaab"},
        {"(a*)+$", "aaaac", ""},
        {"x*", "", ""},
        {"(){3}", "abc", ""},
        {"(?:)*b", "abc", "b"},
        {"a(){2,}c", "abac", "ac"},
        {"foo|bar|baz", "a baz bar", "baz"},
        {"(?:a(?:b|c)|d)e", "adabe", "abe"},
        {"z", "abc", NULL},
    };
    CHECK_ALL(t);
}

static void test_classes_and_escapes(void)
{
    static const struct expect t[] = {
        {"[a-c]+", "xxabcd", "abc"},
        {"[^a-c]+", "abxyzc", "xyz"},
        {"[]a]+", "x]a]", "]a]"},
        {"[^]]", "]x", "x"},
        {"[a-]+", "b-a-", "-a-"},
        {"[-a]+", "b-a", "-a"},
        {"\\d+", "ab123", "123"},
        {"\\D+", "12ab3", "ab"},
        {"\\w+", " a_1-", "a_1"},
        {"\\W+", "a -b", " -"},
        {"\\s+", "a \t\nb", " \t\n"},
        {"\\S+", " ab ", "ab"},
        {"[\\d.]+", "v1.2", "1.2"},
        {"[^\\d]+", "12ab", "ab"},
        {"[[:alpha:]]+", "12ab", "ab"},
        {"[[:^digit:]]+", "12ab", "ab"},
        {"[[:upper:][:digit:]]+", "aB2c", "B2"},
        {"a\\.b", "axb a.b", "a.b"},
        {"\\x41\\x{42}\\103", "ABC", "!"}, /* RE2 has no \1, not even as an octal */
        {"\\x41\\x{42}", "ABC", "AB"},
        {"\\Qa.b*\\E+", "a.b**", "a.b**"},
        {".", "\n", NULL},
        {"(?s).", "\n", "\n"},
        {"(?i)H1[a-c]", "h1B", "h1B"},
        {"(?i)[^a]", "Ab", "b"},
        {"a(?i)b|c", "aB", "aB"},
        {"(?i:a)b", "Ab", "Ab"},
        {"(?i:a)b", "AB", NULL},
        {"(?i-i:a)", "A", NULL},
        {"(?P<name>a)(?<other>b)", "ab", "ab"},
        {"[\303\240-\303\277]+", "e\303\251\303\252", "\303\251\303\252"},
        {"^.$", "\303\251", "\303\251"},
        {"^.$", "\360\237\230\200", "\360\237\230\200"},
        {"a{,2}", "a{,2}", "a{,2}"},
        {"x{a", "x{a", "x{a"},
    };
    CHECK_ALL(t);
}

static void test_anchors(void)
{
    static const struct expect t[] = {
        {"^b", "ab", NULL},
        {"b$", "ba", NULL},
        {"^ab$", "ab", "ab"},
        {"a$", "a\n", NULL},
        {"(?m)^b$", "a\nb\nc", "b"},
        {"^b", "a\nb", NULL},
        {"\\Aa\\z", "a", "a"},
        {"(?m)\\Ab", "a\nb", NULL},
        {"\\bfoo\\b", "a foo b", "foo"},
        {"\\bfoo\\b", "afoo", NULL},
        {"\\Boo\\b", "foo", "oo"},
        {"\\b", "", NULL},
        {"\\B", "", ""},
        {"^*", "a", ""},
        {"$^", "", ""},
    };
    CHECK_ALL(t);
}

static void test_counted_repetition(void)
{
    static const struct expect t[] = {
        {"a{3}", "aaaa", "aaa"},
        {"a{2,3}", "aaaa", "aaa"},
        {"a{2,3}?", "aaaa", "aa"},
        {"a{2,}", "aaaa", "aaaa"},
        {"a{2,}?", "aaaa", "aa"},
        {"a{0,}b", "aab", "aab"},
        {"a{0}b", "ab", "b"},
        {"a{0,1}b", "ab", "ab"},
        {"(ab|c){2}", "abcab", "abc"},
        {"^(a|b|cd){1,4}$", "abcda", "abcda"},
        {"^(a|b|cd){1,4}$", "abcdab", NULL},
        {"(a{2}){3}", "aaaaaaa", "aaaaaa"},
        {"a{1000}", "a", NULL},
        {"a{1001}", "a", "!"},
        {"a{3,2}", "a", "!"},
        {"(a{100}){11}", "a", "!"},
        {"((a{10}){10}){10}", "a", NULL},
        {"([ab]{10}[cd]{10}){600}", "a", "!"}, /* too large */
    };
    CHECK_ALL(t);
}

static void test_what_re2_refuses(void)
{
    static const struct expect t[] = {
        {"(", "", "!"},           {")", "", "!"},     {"[", "", "!"},     {"[a", "", "!"},
        {"*", "", "!"},           {"a**", "", "!"},   {"a*+", "", "!"},   {"a{2}{3}", "", "!"},
        {"\\", "", "!"},          {"\\1", "", "!"},   {"(?=a)", "", "!"}, {"(?!a)", "", "!"},
        {"(?<=a)", "", "!"},      {"(?>a)", "", "!"}, {"[z-a]", "", "!"}, {"\\y", "", "!"},
        {"\\Z", "", "!"},         {"\\pL", "", "!"},  {"\\C", "", "!"},   {"[[:nope:]]", "", "!"},
        {"\\x{110000}", "", "!"}, {"\\xg", "", "!"},  {"\377", "", "!"},  {"(?i)\303\251", "", "!"},
        {"(?P<>a)", "", "!"},     {"(?z)a", "", "!"}, {"a|*", "", "!"},   {"(?i", "", "!"},
    };
    CHECK_ALL(t);
}

static void test_time_is_linear(void)
{
    static const char *const evil[] = {"(a*)*b", "(a|a)*b", "(a|aa)+b", "(.*)(.*)(.*)(.*)(.*)b",
                                       "(a?){50}a{50}b"};
    size_t from, to, n = 20000;
    BH_CLEANUP(bh_freep) char *text = bh_malloc(n);
    const char *why;
    struct bh_arena a;

    memset(text, 'a', n);
    bh_arena_init(&a, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(evil); i++) {
        uint64_t steps = 0;
        struct bh_regex *re = bh_regex_compile(&a, bh_str_c(evil[i]), &why);
        CU_ASSERT_PTR_NOT_NULL_FATAL(re);
        CU_ASSERT_FALSE(
            bh_regex_find(re, &a, (struct bh_str){text, n}, 0, &from, &to, &steps, UINT64_MAX));
        CU_ASSERT(steps < 800 * n);
    }
    bh_arena_fini(&a);
}

static void test_a_search_gives_up_at_its_limit(void)
{
    size_t from, to;
    const char *why;
    uint64_t steps = 0;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    struct bh_regex *re = bh_regex_compile(&a, BH_STR("a*b"), &why);
    CU_ASSERT_FALSE(
        bh_regex_find(re, &a, BH_STR("aaaaaaaaaaaaaaaaaaaaab"), 0, &from, &to, &steps, 20));
    CU_ASSERT(steps > 20 && steps < 60);
    bh_arena_fini(&a);
}

/* A pattern is as long as a client likes; what it repeats on the way to nothing is not kept. */
static void test_memory_follows_the_pattern(void)
{
    enum { TIMES = 200 };
    static const char piece[] = "((a{1000}){1}){0}";
    struct bh_buf pattern BH_CLEANUP(bh_buf_fini) = {0};
    const char *why;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    for (int i = 0; i < TIMES; i++)
        bh_buf_adds(&pattern, piece);
    struct bh_regex *re =
        bh_regex_compile(&a, (struct bh_str){bh_buf_str(&pattern), pattern.n}, &why);
    CU_ASSERT_PTR_NOT_NULL_FATAL(re);
    CU_ASSERT_EQUAL(bh_regex_size(re), 1);
    CU_ASSERT(a.used_bytes < (size_t)200 << 10);
    bh_arena_fini(&a);
}

BH_TESTS("common/regex",
         {"the leftmost and preferred match wins", test_the_leftmost_and_preferred_match_wins},
         {"classes and escapes", test_classes_and_escapes}, {"anchors", test_anchors},
         {"counted repetition", test_counted_repetition},
         {"what RE2 refuses", test_what_re2_refuses}, {"time is linear", test_time_is_linear},
         {"memory follows the pattern", test_memory_follows_the_pattern},
         {"a search gives up at its limit", test_a_search_gives_up_at_its_limit})
