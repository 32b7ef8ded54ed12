/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_opt.c - the command line, pflag's rules and texts
 */
#include "common/base/arena.h"
#include "common/base/opt.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <unistd.h>

static bool flag, other;
static const char *file;
static int64_t number, wait_ns;
static struct bh_opt_list list;
static const char *list_default[] = {"d1", "d2"};
static const struct bh_opt table[] = {
    {"leader-elect", 'l', BH_OPT_BOOL, &flag, NULL, "take part in leader election"},
    {"other", 'o', BH_OPT_BOOL, &other, NULL, "something else"},
    {"config", 0, BH_OPT_STR, &file, "FILE", "configuration file"},
    {"verbosity", 'v', BH_OPT_INT, &number, "N", "log level"},
    {"wait", 0, BH_OPT_DURATION_NS, &wait_ns, NULL,
     "how long to wait for something that takes a while to happen, with a help text that is long "
     "enough to be broken into several lines"},
    {"names", 'n', BH_OPT_STRLIST, &list, NULL, "names"},
    {0}};
static const struct bh_opt_usage usage = {
    .program = "prog", .synopsis = "[flags]", .about = "Does things.", .examples = "  prog -v 2"};

static struct bh_opt_list args;
static struct bh_err err;
static bool list_owned;

/* What was parsed points into argv, so argv outlives the case. */
static struct bh_arena words;

static int parse_v(bool with_args, const char *const *given)
{
    char *argv[16];
    int argc = 0;
    bh_arena_reset(&words);
    for (; given[argc]; argc++)
        argv[argc] = bh_arena_strdup(&words, given[argc]);
    free(args.v);
    args = (struct bh_opt_list){0};
    if (list_owned)
        free(list.v);
    flag = false, other = true, file = "default", number = 7, wait_ns = 0;
    list = (struct bh_opt_list){list_default, 2};
    err.msg[0] = '\0';
    int rc = bh_opt_parse(table, &usage, argc, argv, with_args ? &args : NULL, &err);
    list_owned = list.v != list_default;
    return rc;
}
#define PARSE(...) parse_v(true, (const char *const[]){"prog", __VA_ARGS__ __VA_OPT__(, ) NULL})

static void test_defaults_stay(void)
{
    CU_ASSERT_EQUAL(PARSE(), 0);
    CU_ASSERT(!flag && other && number == 7 && wait_ns == 0);
    CU_ASSERT_STRING_EQUAL(file, "default");
    CU_ASSERT_EQUAL(list.n, 2);
    CU_ASSERT_EQUAL(args.n, 0);
}

static void test_long_options_with_and_without_equals(void)
{
    CU_ASSERT_EQUAL(PARSE("--config=a=b", "--verbosity", "-3", "--wait=1m30s"), 0);
    CU_ASSERT_STRING_EQUAL(file, "a=b");
    CU_ASSERT_EQUAL(number, -3);
    CU_ASSERT_EQUAL(wait_ns, 90000000000);
    CU_ASSERT_EQUAL(PARSE("--config="), 0);
    CU_ASSERT_STRING_EQUAL(file, "");
    CU_ASSERT_EQUAL(PARSE("--config", "--verbosity"), 0); /* whatever follows is the value */
    CU_ASSERT_STRING_EQUAL(file, "--verbosity");
}

static void test_booleans_take_no_separate_value(void)
{
    CU_ASSERT_EQUAL(PARSE("--leader-elect", "false", "--other=F"), 0);
    CU_ASSERT(flag && !other);
    CU_ASSERT_EQUAL(args.n, 1);
    CU_ASSERT_STRING_EQUAL(args.v[0], "false");
    CU_ASSERT_EQUAL(PARSE("--leader-elect=maybe"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "invalid argument \"maybe\" for \"-l, --leader-elect\" flag: "
                                    "expected true or false");
}

static void test_underscores_count_as_dashes(void)
{
    CU_ASSERT_EQUAL(PARSE("--leader_elect=true"), 0);
    CU_ASSERT(flag);
}

static void test_letters(void)
{
    CU_ASSERT_EQUAL(PARSE("-v", "2"), 0);
    CU_ASSERT_EQUAL(number, 2);
    CU_ASSERT_EQUAL(PARSE("-v=4"), 0);
    CU_ASSERT_EQUAL(number, 4);
    CU_ASSERT_EQUAL(PARSE("-v10"), 0);
    CU_ASSERT_EQUAL(number, 10);
    CU_ASSERT_EQUAL(PARSE("-lv5"), 0);
    CU_ASSERT(flag && number == 5);
    CU_ASSERT_EQUAL(PARSE("-lo=false"), 0);
    CU_ASSERT(flag && !other);
    CU_ASSERT_EQUAL(PARSE("-lx"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "unknown shorthand flag: 'x' in -lx");
    CU_ASSERT_EQUAL(PARSE("-v"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "flag needs an argument: 'v' in -v");
}

static void test_what_is_refused(void)
{
    CU_ASSERT_EQUAL(PARSE("--foo"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "unknown flag: --foo"); /* and nothing comes near */
    CU_ASSERT_EQUAL(PARSE("--foo=bar"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "unknown flag: --foo");
    CU_ASSERT_EQUAL(PARSE("--leader"), -EINVAL); /* no abbreviations */
    CU_ASSERT_EQUAL(PARSE("--config"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "flag needs an argument: --config");
    CU_ASSERT_EQUAL(PARSE("--=x"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "bad flag syntax: --=x");
    CU_ASSERT_EQUAL(PARSE("---x"), -EINVAL);
    CU_ASSERT_EQUAL(PARSE("--verbosity=1x"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "invalid argument \"1x\" for \"-v, --verbosity\" flag: "
                                    "expected a whole number");
    CU_ASSERT_EQUAL(PARSE("--verbosity= 1"), -EINVAL);
    CU_ASSERT_EQUAL(PARSE("--verbosity="), -EINVAL);
    CU_ASSERT_EQUAL(PARSE("--verbosity=9223372036854775808"), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "out of range, expected "));
    CU_ASSERT_EQUAL(number, 7);
    CU_ASSERT_EQUAL(PARSE("--wait=5"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(
        err.msg, "invalid argument \"5\" for \"--wait\" flag: time: invalid duration \"5\"");
}

static void test_arguments_mix_and_double_dash_ends(void)
{
    CU_ASSERT_EQUAL(PARSE("a", "--verbosity=1", "-", "--", "--config", "b"), 0);
    CU_ASSERT_EQUAL_FATAL(args.n, 4);
    CU_ASSERT_STRING_EQUAL(args.v[0], "a");
    CU_ASSERT_STRING_EQUAL(args.v[1], "-");
    CU_ASSERT_STRING_EQUAL(args.v[2], "--config");
    CU_ASSERT_STRING_EQUAL(args.v[3], "b");
    CU_ASSERT_STRING_EQUAL(file, "default");
    CU_ASSERT_EQUAL(parse_v(false, (const char *const[]){"prog", "stray", NULL}), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "unexpected argument: stray");
}

static void test_lists_replace_the_default_and_append(void)
{
    CU_ASSERT_EQUAL(PARSE("--names=a,b", "-n", "c", "--names", "d,,e"), 0);
    CU_ASSERT_EQUAL_FATAL(list.n, 6);
    static const char *const want[] = {"a", "b", "c", "d", "", "e"};
    for (size_t i = 0; i < list.n; i++)
        CU_ASSERT_STRING_EQUAL(list.v[i], want[i]);
    CU_ASSERT_EQUAL(PARSE("--names="), 0);
    CU_ASSERT_EQUAL(list.n, 0);
}

/* stdout of fn */
static char *captured(int (*fn)(void), int *ret_rc)
{
    char path[4200], *text = NULL;
    snprintf(path, sizeof(path), "%s/out", bh_test_tmpdir());
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    FILE *f = freopen(path, "w", stdout);
    *ret_rc = f ? fn() : -1;
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    bh_read_file(path, 1 << 20, &text, NULL);
    return text ? text : bh_strdup("");
}
static int ask_help(void)
{
    return PARSE("--help");
}
static int ask_h(void)
{
    return PARSE("-h", "--unknown");
}
static int ask_version(void)
{
    return PARSE("--version");
}

static void test_help_and_version(void)
{
    int rc;
    char *text = captured(ask_help, &rc);
    CU_ASSERT_EQUAL(rc, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Usage:\n  prog [flags]\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "  -l, --leader-elect "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "      --config FILE "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "configuration file (default \"default\")\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "something else (default true)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "log level (default 7)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "names (default d1,d2)"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "Examples:\n  prog -v 2\n"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        CU_ASSERT(strcspn(line, "\n") <= 100);
    free(text);
    text = captured(ask_h, &rc);
    CU_ASSERT_EQUAL(rc, 1);
    free(text);
    text = captured(ask_version, &rc);
    CU_ASSERT_EQUAL(rc, 1);
    CU_ASSERT_STRING_EQUAL(text, "prog " BH_VERSION "\n");
    free(text);
    PARSE(); /* frees what the last case owned */
    free(args.v);
    args = (struct bh_opt_list){0};
    bh_arena_fini(&words);
}

BH_TESTS("common/base/opt", {"defaults stay", test_defaults_stay},
         {"long options with and without =", test_long_options_with_and_without_equals},
         {"booleans take no separate value", test_booleans_take_no_separate_value},
         {"underscores count as dashes", test_underscores_count_as_dashes},
         {"single letters", test_letters}, {"what is refused, and how", test_what_is_refused},
         {"arguments mix, -- ends options", test_arguments_mix_and_double_dash_ends},
         {"lists replace the default and append", test_lists_replace_the_default_and_append},
         {"help and version", test_help_and_version})
