/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/wasm/test_wasm.c - the interface: limits, host functions, traps, what is refused
 *
 * Modules are put together from their sections here; the specification's cases are in *.wast
 * beside this file (test_wast.c).
 */
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wasm/wasm_int.h"
#include "tests/unit/harness.h"

/* ---- modules from text: hexadecimal bytes, "(" ... ")" is a counted block --------------------- */
static size_t put_block(struct bh_buf *b, const char *s, size_t i)
{
    for (; s[i] && s[i] != ')'; i++) {
        if (s[i] == '(') {
            struct bh_buf inner = {0};
            i = put_block(&inner, s, i + 1);
            bh_assert(inner.n < 0x4000);
            if (inner.n >= 0x80)
                bh_buf_addc(b, (char)(0x80 | (inner.n & 0x7f)));
            bh_buf_addc(b, (char)(inner.n >= 0x80 ? inner.n >> 7 : inner.n));
            bh_buf_add(b, inner.p, inner.n);
            bh_buf_fini(&inner);
        } else if (s[i] == '\'') { /* text, counted */
            size_t n = strcspn(s + i + 1, "'");
            bh_buf_addc(b, (char)n);
            bh_buf_add(b, s + i + 1, n);
            i += n + 1;
        } else if (s[i] != ' ') {
            bh_buf_addc(b, (char)(bh_hex_value(s[i]) << 4 | bh_hex_value(s[i + 1])));
            i++;
        }
    }
    return i;
}

static int load(const char *sections, struct bh_wasm_module **ret, struct bh_err *err)
{
    struct bh_buf b = {0};
    int rc;

    bh_buf_add(&b, "\0asm\1\0\0\0", 8);
    put_block(&b, sections, 0);
    rc = bh_wasm_load(b.p, b.n, ret, err);
    bh_buf_fini(&b);
    return rc;
}

/* One that has to load, and an instance of it. */
static struct bh_wasm_module *module_of(const char *sections)
{
    struct bh_wasm_module *m = NULL;
    struct bh_err err = {""};

    if (load(sections, &m, &err) < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_FATAL(m != NULL);
    return m;
}

static struct bh_wasm *instance_of(const struct bh_wasm_module *m, const struct bh_wasm_host *hosts,
                                   size_t n, void *user, const struct bh_wasm_limits *limits)
{
    struct bh_wasm *w = NULL;
    struct bh_err err = {""};

    if (bh_wasm_new(m, hosts, n, user, limits, &w, &err) < 0)
        printf("# %s\n", err.msg);
    CU_ASSERT_FATAL(w != NULL);
    return w;
}

static bool trap_is(const struct bh_wasm *w, const char *expected)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_wasm_add_trap(w, &b);
    if (bh_streq(bh_buf_str(&b), expected))
        return true;
    printf("# %s\n", bh_buf_str(&b));
    return false;
}

static const struct bh_wasm_limits usual = BH_WASM_LIMITS;

/* type () -> (), function, export "f", and a body */
#define ONE(type, body) "01(01 60 " type ") 03(01 00) 07(01 'f' 00 00) 0a(01(" body "))"

/* ---- tests ------------------------------------------------------------------------------------- */
static void test_a_function_is_found_and_called(void)
{
    struct bh_wasm_module *m = module_of(ONE("02 7f7f 01 7f", "00 2000 2001 6a 0b"));
    struct bh_wasm *w = instance_of(m, NULL, 0, NULL, &usual), *other;
    uint64_t v[2] = {40, (uint64_t)-1 << 32 | 2}; /* what is above 32 bits does not count */
    const char *type = NULL;
    uint32_t func = 9;

    CU_ASSERT(bh_wasm_find(m, "f", "ii:i", &func, &type) == 0 && func == 0);
    CU_ASSERT_STRING_EQUAL(type, "ii:i");
    CU_ASSERT(bh_wasm_find(m, "f", "ii:I", &func, NULL) == -EPROTOTYPE);
    CU_ASSERT(bh_wasm_find(m, "g", NULL, &func, NULL) == -ENOENT);
    CU_ASSERT(bh_wasm_find(m, "", NULL, &func, NULL) == -ENOENT);
    CU_ASSERT(bh_wasm_start(w) == BH_WASM_DONE);
    CU_ASSERT(bh_wasm_call(w, func, v) == BH_WASM_DONE && v[0] == 42);
    other = instance_of(m, NULL, 0, NULL, &usual);
    v[0] = UINT32_MAX, v[1] = 1;
    CU_ASSERT(bh_wasm_call(other, func, v) == BH_WASM_DONE && v[0] == 0);
    bh_wasm_free(other);
    bh_wasm_free(w);
    bh_wasm_unload(m);
    bh_wasm_free(NULL);
    bh_wasm_unload(NULL);
}

/* What has nothing in it need not be called. */
static void test_a_stub_is_known(void)
{
    static const struct {
        const char *sections;
        bool is;
    } t[] = {{ONE("00 00", "00 0b"), true},           {ONE("00 01 7f", "00 4100 0b"), true},
             {ONE("00 01 7e", "00 4200 0b"), true},   {ONE("00 01 7f", "00 4101 0b"), false},
             {ONE("00 01 7f", "00 0041000b"), false}, /* it traps */
             {ONE("00 00", "00 01 0b"), false},       {ONE("00 01 7f", "01 01 7f 4100 0b"), false}};

    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        struct bh_wasm_module *m = module_of(t[i].sections);
        CU_ASSERT(bh_wasm_is_stub(m, 0) == t[i].is);
        bh_wasm_unload(m);
    }
}

static void test_what_is_refused_says_what_and_where(void)
{
    static const struct {
        const char *sections, *text;
        int rc;
    } t[] = {
        {ONE("00 00", "00 fd0c 0b"), "function 0 at 0x1e: SIMD: opcode 0xfd is not supported",
         -EINVAL},
        {ONE("00 00", "00 fe00 0b"), "threads (atomic operations): opcode 0xfe", -EINVAL},
        {ONE("00 00", "00 1200 0b"), "tail calls", -EINVAL},
        {ONE("00 00", "00 0640 0b"), "exception handling", -EINVAL},
        {ONE("00 00", "00 fb00 0b"), "garbage collection", -EINVAL},
        {ONE("00 00", "00 1400 0b"), "typed function references", -EINVAL},
        {ONE("00 00", "00 ff 0b"), "opcode 0xff is not known", -EINVAL},
        {ONE("00 00", "00 fc40 0b"), "opcode 0xfc 0x40 is not known", -EINVAL},
        {ONE("00 00", "00 0b 00"), "bytes behind the function's end", -EINVAL},
        {ONE("00 00", "00 01"), "unexpected end", -EINVAL},
        {ONE("00 00", "00 41 01 6a 1a 0b"), "opcode 0x6a expects i32, the stack is empty", -EINVAL},
        {ONE("00 00", "00 4101 4201 6a 1a 0b"), "opcode 0x6a expects i32, found i64", -EINVAL},
        {ONE("00 00", "01 ffffffff0f 7f 0b"), "more than 65535 locals and operands", -EFBIG},
        {ONE("01 7b 00", "00 0b"), "SIMD (v128) is not supported", -EINVAL},
        {"05(01 0401)", "at 0xb: memory64 is not supported", -EINVAL},
        {"05(01 030101)", "threads (shared memory) are not supported", -EINVAL},
        {"05(02 0001 0001)", "multiple memories are not supported", -EINVAL},
        {"05(01 00 818004)", "a memory has more than 65536", -EINVAL},
        {"04(01 6f 00 01)", "tables of externref are not supported", -EINVAL},
        {"0d(01 00 00)", "exception handling (a tag section) is not supported", -EINVAL},
        {"01(01 5f 00)", "garbage collection", -EINVAL},
        {"06(01 7f 00 4101 4101 6a 0b)", "extended constant expressions are not supported",
         -EINVAL},
        {"01(01 60 8002 00)", "256 parameters: at most 255 are supported", -EFBIG},
        {"01(ffffffff0f)", "4294967295 types: at most", -EFBIG},
        {"01(05)", "5 types do not fit into what is left", -EINVAL},
        {"00('')05", "unexpected end", -EINVAL},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        struct bh_wasm_module *m = NULL;
        struct bh_err err = {""};
        int rc = load(t[i].sections, &m, &err);
        if (rc != t[i].rc || !strstr(err.msg, t[i].text))
            printf("# %s: %d %s\n", t[i].sections, rc, err.msg);
        CU_ASSERT(rc == t[i].rc && !m && strstr(err.msg, t[i].text));
    }
}

static void test_what_is_no_module(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *text;
    } t[] = {
        {"", 0, "does not begin with \\0asm"},
        {"<!DOCTYPE html>", 15, "does not begin with \\0asm"},
        {"\0asm\1\0", 6, "unknown binary version"},
        {"\0asm\x0d\0\1\0", 8, "components are not supported, modules are"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        struct bh_wasm_module *m = NULL;
        struct bh_err err = {""};
        CU_ASSERT(bh_wasm_load(t[i].bytes, t[i].n, &m, &err) == -EINVAL && !m);
        if (!strstr(err.msg, t[i].text))
            printf("# %zu: %s\n", i, err.msg);
        CU_ASSERT(strstr(err.msg, t[i].text) != NULL);
    }
    struct bh_wasm_module *m = NULL;
    CU_ASSERT(bh_wasm_load("\0asm\1\0\0\0", 8, &m, NULL) == 0);
    bh_wasm_unload(m);
}

/* What an instance may take is a limit, not an abort. */
static void test_limits_of_an_instance(void)
{
    struct bh_wasm_limits small = BH_WASM_LIMITS;
    struct bh_wasm *w = NULL;
    struct bh_err err = {""};
    uint64_t v[1] = {0};
    struct bh_wasm_module *m = module_of("05(01 00 03)");

    small.pages = 2;
    CU_ASSERT(bh_wasm_new(m, NULL, 0, NULL, &small, &w, &err) == -E2BIG);
    CU_ASSERT(strstr(err.msg, "needs 3 pages of memory (64 KiB each): the limit is 2") != NULL);
    bh_wasm_unload(m);
    m = module_of("04(01 70 00 ffffffff0f)");
    CU_ASSERT(bh_wasm_new(m, NULL, 0, NULL, &small, &w, &err) == -E2BIG);
    CU_ASSERT(strstr(err.msg, "table 0 needs 4294967295 elements") != NULL);
    bh_wasm_unload(m);
    /* memory.grow beyond the limit is the guest's -1 */
    m = module_of("01(01 60 01 7f 01 7f) 03(01 00) 05(01 00 01) 07(01 'f' 00 00) "
                  "0a(01(00 2000 4000 0b))");
    w = instance_of(m, NULL, 0, NULL, &small);
    v[0] = 2;
    CU_ASSERT(bh_wasm_call(w, 0, v) == BH_WASM_DONE && v[0] == UINT32_MAX);
    v[0] = 1;
    CU_ASSERT(bh_wasm_call(w, 0, v) == BH_WASM_DONE && v[0] == 1 && bh_wasm_pages(w) == 2);
    CU_ASSERT(bh_wasm_memory(w, 131072, 0) != NULL && !bh_wasm_memory(w, 131072, 1));
    CU_ASSERT(!bh_wasm_memory(w, UINT32_MAX, UINT32_MAX) && bh_wasm_memory(w, 0, 131072));
    bh_wasm_free(w);
    bh_wasm_unload(m);
}

static void test_time_depth_and_steps_end_a_call(void)
{
    struct bh_wasm_limits limits = BH_WASM_LIMITS;
    struct bh_wasm_module *endless = module_of(ONE("00 00", "00 0340 0c00 0b 0b"));
    struct bh_wasm_module *deep = module_of(ONE("00 00", "00 1000 0b"));
    struct bh_wasm *w;

    limits.call_ns = 1000000;
    w = instance_of(endless, NULL, 0, NULL, &limits);
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_TIME);
    CU_ASSERT(trap_is(w, "wasm error: time limit exceeded\nwasm stack trace:\n\t.$0()"));
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_TIME); /* each call has its own time */
    bh_wasm_free(w);
    limits.call_ns = 0;
    w = instance_of(endless, NULL, 0, NULL, &limits);
    bh_wasm_set_due(w, 1); /* long ago */
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_TIME);
    bh_wasm_set_due(w, bh_mono_ns() + 1000000);
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_TIME);
    bh_wasm_free(w);
    limits.steps = 1000000;
    w = instance_of(endless, NULL, 0, NULL, &limits);
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_TIME);
    bh_wasm_free(w);
    limits.steps = 0;
    limits.depth = 3;
    w = instance_of(deep, NULL, 0, NULL, &limits);
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_DEPTH);
    CU_ASSERT(
        trap_is(w, "wasm error: stack overflow\nwasm stack trace:\n\t.$0()\n\t.$0()\n\t.$0()"));
    bh_wasm_free(w);
    limits.depth = 10000;
    w = instance_of(deep, NULL, 0, NULL, &limits);
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_DEPTH);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    bh_wasm_add_trap(w, &b);
    CU_ASSERT(strstr(bh_buf_str(&b), "\n\t... maybe followed by omitted frames") != NULL &&
              b.n < 400);
    bh_wasm_free(w);
    bh_wasm_unload(endless);
    bh_wasm_unload(deep);
    /* a frame of 60000 slots fits into no small stack */
    struct bh_wasm_module *wide = module_of(ONE("00 00", "01 e0d403 7e 0b"));
    limits.slots = 100;
    w = instance_of(wide, NULL, 0, NULL, &limits);
    CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_DEPTH);
    bh_wasm_free(w);
    bh_wasm_unload(wide);
}

/* Each loop and each jump has to be counted, whatever it jumps with; a filling of memory too. */
static void test_every_kind_of_loop_ends(void)
{
    static const char *const bodies[] = {
        "00 0340 41010d00 0b 0b",                                /* br_if */
        "00 0340 4100450d00 0b 0b",                              /* br_if of eqz */
        "00 0340 41014100 4a0d00 0b 0b",                         /* br_if of a comparison */
        "01 01 7f 0340 200041054a450d00 0b 0b",                  /* its opposite, with a local */
        "00 0340 4100 0e00 00 0b 0b",                            /* br_table */
        "00 0340 0240 41010d0101 0b 0b 0b",                      /* out of an inner block */
        "00 0340 0240 0240 41000e0200 0102 0b0c01 0b0c00 0b 0b", /* forth and back */
        "00 0340 4100 4100 41808004 fc0b00 0c00 0b 0b",          /* memory.fill */
        "00 0340 4100 4000 1a 0c00 0b 0b",                       /* memory.grow */
        "00 0340 4100 1100 00 0c00 0b 0b",                       /* a call by the table */
        "00 1000 0c00 0b",
    };
    struct bh_wasm_limits limits = BH_WASM_LIMITS;

    limits.call_ns = 0;
    limits.steps = 2000000;
    for (size_t i = 0; i < BH_ARRAY_LEN(bodies); i++) {
        BH_CLEANUP(bh_freep)
        char *sections = bh_asprintf(
            "01(01 60 00 00) 03(02 00 00) 04(01 70 00 01) 05(01 00 01) 07(01 'f' 00 00) "
            "09(01 00 4100 0b 01 01) 0a(02(%s)(00 0b))",
            bodies[i]);
        struct bh_wasm_module *m = module_of(sections);
        struct bh_wasm *w = instance_of(m, NULL, 0, NULL, &limits);
        enum bh_wasm_trap trap = bh_wasm_call(w, 0, NULL);
        if (trap != BH_WASM_TIME && trap != BH_WASM_DEPTH)
            printf("# %s: %d\n", bodies[i], trap);
        CU_ASSERT(trap == BH_WASM_TIME || trap == BH_WASM_DEPTH);
        bh_wasm_free(w);
        bh_wasm_unload(m);
    }
}

static bool host_add(struct bh_wasm *w, void *user, uint64_t *v)
{
    uint32_t *memory = bh_wasm_memory(w, (uint32_t)v[0], 4);

    *(int *)user += 1;
    if (!memory)
        return bh_wasm_fail(w, "out of memory reading at %u\n", (uint32_t)v[0]);
    v[0] = *memory + v[1];
    return true;
}

static void test_host_functions(void)
{
    static const struct bh_wasm_host hosts[] = {{"other", "add", "iI:I", host_add},
                                                {"env", "add", "iI:I", host_add}};
    static const struct bh_wasm_host wrong[] = {{"env", "add", "ii:i", host_add}};
    int calls = 0;
    struct bh_wasm_module *m =
        module_of("01(02 60 02 7f7e 01 7e 60 01 7f 01 7e) 02(01 'env' 'add' 00 00) 03(01 01)"
                  "05(01 00 01) 07(02 'f' 00 01 'add' 00 00) 0a(01(00 2000 4205 1000 0b))"
                  "0b(01 00 4108 0b 04 01000000) 00('name' 00('guest') 01(01 01 'do.it'))");
    struct bh_wasm *w = instance_of(m, hosts, 2, &calls, &usual);
    struct bh_err err = {""};
    uint64_t v[2] = {8, 0};

    CU_ASSERT(bh_wasm_call(w, 1, v) == BH_WASM_DONE && v[0] == 6 && calls == 1);
    v[0] = 65533;
    CU_ASSERT(bh_wasm_call(w, 1, v) == BH_WASM_HOST && v[0] == 65533);
    CU_ASSERT(trap_is(w, "out of memory reading at 65533?\nwasm stack trace:\n"
                         "\tenv.add(i32,i64) i64\n\tguest.do.it(i32) i64"));
    v[0] = 8, v[1] = 9; /* one that is exported as it was imported */
    CU_ASSERT(bh_wasm_call(w, 0, v) == BH_WASM_DONE && v[0] == 10);
    v[0] = UINT32_MAX;
    CU_ASSERT(bh_wasm_call(w, 0, v) == BH_WASM_HOST);
    CU_ASSERT(trap_is(w, "out of memory reading at 4294967295?\nwasm stack trace:\n"
                         "\tenv.add(i32,i64) i64"));
    bh_wasm_free(w);
    w = NULL;
    CU_ASSERT(bh_wasm_new(m, hosts, 1, NULL, &usual, &w, &err) == -ENOENT && !w);
    CU_ASSERT_STRING_EQUAL(err.msg, "import env.add: there is no such function");
    CU_ASSERT(bh_wasm_new(m, wrong, 1, NULL, &usual, &w, &err) == -EPROTOTYPE);
    CU_ASSERT_STRING_EQUAL(err.msg, "import env.add: it is imported as (i32,i64) -> (i64), and is "
                                    "(i32,i32) -> (i32)");
    bh_wasm_unload(m);
    m = module_of("02(01 'e\nv' 'm' 02 00 01)"); /* a name that is no line */
    CU_ASSERT(bh_wasm_new(m, NULL, 0, NULL, &usual, &w, &err) == -EOPNOTSUPP);
    CU_ASSERT_STRING_EQUAL(err.msg, "import e?v.m: only functions can be imported");
    bh_wasm_unload(m);
}

static void test_a_module_is_described(void)
{
    struct bh_wasm_module *m =
        module_of("01(01 60 01 7f 02 7c7d) 02(01 'a' 'b' 00 00) 03(01 00) 04(01 70 01 01 05)"
                  "05(01 00 02) 06(01 7e 01 4200 0b)"
                  "07(04 'z' 00 01 't' 01 00 'm' 02 00 'g' 03 00)"
                  "0a(01(00 2000 c0 1a 4400000000 00000000 43 00000000 0b))");
    static const char *const exports[] = {"z func (i32) -> (f64,f32)",
                                          "t table 1 funcref, at most 5", "m memory 2 pages",
                                          "g global mut i64"};
    struct bh_buf b = {0};
    size_t n;
    const struct bh_wasm_item *v = bh_wasm_imports(m, &n);

    CU_ASSERT(n == 1 && bh_str_eqc(v[0].module, "a") && bh_str_eqc(v[0].name, "b"));
    v = bh_wasm_exports(m, &n);
    CU_ASSERT_FATAL(n == 4);
    for (size_t i = 0; i < n; i++) {
        bh_buf_reset(&b);
        bh_buf_add(&b, v[i].name.p, v[i].name.n);
        bh_buf_addc(&b, ' ');
        bh_wasm_add_type(m, &v[i], &b);
        CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), exports[i]);
    }
    bh_buf_reset(&b);
    bh_wasm_add_features(m, &b);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), "sign extension, multi-value, mutable globals");
    CU_ASSERT(!bh_wasm_has_start(m) && bh_wasm_code_bytes(m) > 0);
    uint32_t func;
    CU_ASSERT(bh_wasm_find(m, "m", NULL, &func, NULL) == -EPROTOTYPE);
    bh_buf_fini(&b);
    bh_wasm_unload(m);
}

/* A section of names that is broken is no reason to refuse a module, nor to read beyond it. */
static void test_broken_names(void)
{
    static const char *const names[] = {"00('name' 01(ff))", "00('name' 01(01 00 ff))",
                                        "00('name' 01)", "00('name' 00(05 41))",
                                        "00('name' 01(01 09 'x') 00('m'))"};

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        BH_CLEANUP(bh_freep) char *all = bh_asprintf("%s %s", ONE("00 00", "00 00 0b"), names[i]);
        struct bh_wasm_module *m = module_of(all);
        struct bh_wasm *w = instance_of(m, NULL, 0, NULL, &usual);
        CU_ASSERT(bh_wasm_call(w, 0, NULL) == BH_WASM_UNREACHABLE);
        CU_ASSERT(trap_is(w, i == 4 ? "wasm error: unreachable\nwasm stack trace:\n\tm.$0()"
                                    : "wasm error: unreachable\nwasm stack trace:\n\t.$0()"));
        bh_wasm_free(w);
        bh_wasm_unload(m);
    }
}

/* Cut off anywhere and with any byte changed, a module is refused or runs to an end. */
static void test_damaged_modules(void)
{
    struct bh_wasm_limits limits = BH_WASM_LIMITS;
    struct bh_buf b = {0};

    limits.call_ns = 0;
    limits.steps = 10000;
    limits.pages = 4;
    bh_buf_add(&b, "\0asm\1\0\0\0", 8);
    put_block(
        &b,
        "01(02 60 01 7f 01 7f 60 00 00) 03(02 00 01) 04(01 70 00 02) 05(01 00 01)"
        "06(01 7f 01 4105 0b) 07(02 'f' 00 00 'm' 02 00) 08(01) 09(01 00 4100 0b 01 00) 0c(01)"
        "0a(02(01 01 7e 0340 2000 41016b 2200 0d00 0b 4100 28 0200 2300 6a 0b)"
        "(00 4101 4100 1100 00 24 00 0240 4100 0e01 0000 0b 0b)) 0b(01 00 4100 0b 03 414243)",
        0);
    char *bytes = bh_memdup(b.p, b.n);
    for (size_t i = 0; i < b.n; i++)
        for (unsigned change = 0; change < 257; change++) {
            struct bh_wasm_module *m = NULL;
            struct bh_wasm *w = NULL;
            struct bh_err err = {""};
            uint64_t v[256] = {3};
            size_t n = change == 256 ? i : b.n;
            bytes[i] = (char)change;
            if (bh_wasm_load(bytes, n, &m, &err) < 0) {
                CU_ASSERT(!m && err.msg[0]);
            } else if (bh_wasm_new(m, NULL, 0, NULL, &limits, &w, &err) == 0) {
                uint32_t func;
                (void)bh_wasm_start(w);
                if (bh_wasm_find(m, "f", NULL, &func, NULL) == 0)
                    (void)bh_wasm_call(w, func, v);
            }
            bh_wasm_free(w);
            bh_wasm_unload(m);
            bytes[i] = b.p[i];
        }
    free(bytes);
    bh_buf_fini(&b);
}

/* ---- compiled ---------------------------------------------------------------------------------- */
/* Makes the module a shared object in a cache of its own, after `what` in its C was replaced (by a text of that length) and
 * `more` put behind it. Its path; the digest that it has. */
static char *compile_c(const struct bh_wasm_module *m, const char *what, const char *by,
                       const char *more, char sha256[static 65])
{
    static unsigned number;
    BH_CLEANUP(bh_freep) char *dir = bh_asprintf("%s/c%u", bh_test_tmpdir(), number++);
    BH_CLEANUP(bh_freep) char *c = bh_asprintf("%s.c", dir);
    char *so = NULL;
    BH_CLEANUP(bh_freep) char *command = NULL;
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};
    struct bh_err err = {""};

    snprintf(sha256, 65, "%064u", number);
    CU_ASSERT_FATAL(bh_wasm_add_c(m, sha256, &b, &err) == 0);
    char *at = what ? strstr(b.p, what) : NULL;
    if (what) {
        CU_ASSERT_FATAL(at != NULL);
        memcpy(at, by, strlen(by));
    }
    bh_buf_adds(&b, more);
    CU_ASSERT_FATAL(bh_write_file(c, b.p, b.n, 0600) == 0);
    so = bh_asprintf("%s/%s.so", dir, sha256);
    command =
        bh_asprintf("mkdir -p '%s' && cc -O1 -w -fPIC -shared -o '%s' '%s' -lm && chmod 644 '%s'",
                    dir, so, c, so);
    CU_ASSERT_FATAL(system(command) == 0);
    CU_ASSERT_FATAL(bh_wasm_seal(so, sha256, &err) == 0);
    setenv("BERTH_WASM_CACHE", dir, 1);
    return so;
}

/* An instance of the module, compiled after `what` in its C was replaced, that is compared with an
 * interpreted one. The type of the replacement has the same length. */
static struct bh_wasm *compiled_of(struct bh_wasm_module *m, const char *what, const char *by,
                                   const struct bh_wasm_host *hosts, size_t n)
{
    struct bh_err err = {""};
    char sha256[65];

    free(compile_c(m, what, by, "", sha256)); /* its path */
    CU_ASSERT_FATAL(bh_wasm_use_compiled(m, sha256, &err) == 1);
    struct bh_wasm *w = instance_of(m, hosts, n, NULL, &usual);
    CU_ASSERT_FATAL(bh_wasm_verify(w, &err) == 0);
    return w;
}

static bool no_compiler(void)
{
    bool none = system("command -v cc >/dev/null") != 0;

    if (none)
        bh_test_skip("there is no C compiler cc");
    return none;
}

/* Says another number each time, and writes it where it is told. */
static bool count(struct bh_wasm *w, void *user, uint64_t *v)
{
    static uint32_t n;
    void *to = bh_wasm_memory(w, (uint32_t)v[0], 4);

    (void)user;
    n++;
    if (!to)
        return bh_wasm_fail(w, "no memory at %u", (uint32_t)v[0]);
    memcpy(to, &n, 4);
    v[0] = n;
    return true;
}

static void test_compiled_does_what_interpreted_does(void)
{
    static const struct bh_wasm_host host = {"h", "count", "i:i", count};
    /* (func (param i32) (result i32) (i32.add (call $count (local.get 0)) (i32.load (local.get 0)))) */
    struct bh_wasm_module *m;
    uint64_t v[1] = {8};

    if (no_compiler())
        return;
    m = module_of("01(01 60 01 7f 01 7f) 02(01 'h' 'count' 00 00) 03(01 00) 05(01 0001)"
                  "07(01 'f' 00 01) 0a(01(00 2000 1000 2000 280200 6a 0b))");
    struct bh_wasm *w = compiled_of(m, NULL, NULL, &host, 1);
    CU_ASSERT(bh_wasm_call(w, 1, v) == BH_WASM_DONE && v[0] == 2);
    v[0] = 8;
    CU_ASSERT(bh_wasm_call(w, 1, v) == BH_WASM_DONE && v[0] == 4);
    v[0] = 65533;
    CU_ASSERT(bh_wasm_call(w, 1, v) == BH_WASM_HOST && v[0] == 65533);
    CU_ASSERT(
        trap_is(w, "no memory at 65533\nwasm stack trace:\n\th.count(i32) i32\n\t.$1(i32) i32"));
    CU_ASSERT(!bh_wasm_differs(w));
    bh_wasm_free(w);
    bh_wasm_unload(m);
}

/* (func (result i32) (i32.const 7)), exported as f */
#define SEVEN "01(01 60 00 01 7f) 03(01 00) 07(01 'f' 00 00) 0a(01(00 4107 0b))"

static void is_not_used(struct bh_wasm_module *m, const char *sha256, const char *why)
{
    struct bh_err err = {""};

    CU_ASSERT(bh_wasm_use_compiled(m, sha256, &err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, why));
    if (!strstr(err.msg, why))
        fprintf(stderr, "have: %s, want: %s\n", err.msg, why);
    CU_ASSERT(!bh_wasm_is_compiled(m));
}

/* After a power failure, or with flipped bits: nothing of the file runs, and the guest is interpreted. */
static void test_damaged_code_is_not_used(void)
{
    static const char *const ends[] = {"", ".header"};
    struct bh_wasm_module *m;
    struct bh_err err = {""};
    char sha256[65], *good[2], *path[2];
    size_t n[2];

    if (no_compiler())
        return;
    m = module_of(SEVEN);
    BH_CLEANUP(bh_freep) char *so = compile_c(m, NULL, NULL, "", sha256);
    for (unsigned k = 0; k < 2; k++) {
        path[k] = bh_asprintf("%s%s", so, ends[k]);
        CU_ASSERT_FATAL(bh_read_file(path[k], 1u << 20, &good[k], &n[k]) == 0);
        for (unsigned i = 0; i < 64; i++) { /* each a file of its own: what is loaded stays */
            BH_CLEANUP(bh_freep) char *bad = bh_calloc(n[k] + 1, 1);
            memcpy(bad, good[k], n[k]);
            bad[n[k] * i / 64] ^= (char)(1 << i % 8);
            CU_ASSERT_FATAL(bh_write_file(path[k], bad, n[k], 0644) == 0);
            is_not_used(m, sha256, "");
        }
        for (unsigned i = 0; i < 64; i++) { /* cut short, and zeros where a page was not written */
            BH_CLEANUP(bh_freep) char *bad = bh_calloc(n[k] + 1, 1);
            memcpy(bad, good[k], n[k] * i / 64);
            CU_ASSERT_FATAL(bh_write_file(path[k], bad, i % 2 ? n[k] : n[k] * i / 64, 0644) == 0);
            is_not_used(m, sha256, " is damaged");
        }
        CU_ASSERT_FATAL(bh_write_file(path[k], good[k], n[k], 0666) == 0);
        is_not_used(m, sha256, "has mode 0666");
        CU_ASSERT_FATAL(bh_write_file(path[k], good[k], n[k], 0644) == 0);
    }
    CU_ASSERT_FATAL(unlink(path[1]) == 0);
    is_not_used(m, sha256, "has no digest beside it");
    CU_ASSERT_FATAL(bh_write_file(path[1], good[1], n[1], 0644) == 0);
    CU_ASSERT_EQUAL(bh_wasm_use_compiled(m, sha256, &err), 1); /* as it was */
    bh_wasm_unload(m);
    for (unsigned k = 0; k < 2; k++) {
        free(good[k]);
        free(path[k]);
    }
}

/* Whose digest is right: damaged before it was taken, or not berth wasmc's. A child loads it first. */
static void test_code_that_crashes_is_not_used(void)
{
    static const struct {
        const char *what, *by, *more, *why;
    } cases[] = {
        {NULL, NULL, "__attribute__((constructor)) static void end(void) { __builtin_trap(); }",
         "crashed while it was loaded: "},
        {NULL, NULL,
         "void _exit(int); __attribute__((constructor)) static void end(void) { _exit(0); }",
         "ended its process while it was loaded"},
        {NULL, NULL, "void not_there(void); void (*volatile p)(void) = not_there;",
         "could not be loaded: "},
        {"bh_wasm_compiled_guest =", "bh_wasm_compiled_other =", "",
         "is no guest that berth wasmc has compiled"},
    };

    if (no_compiler())
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_wasm_module *m = module_of(SEVEN);
        char sha256[65];
        free(compile_c(m, cases[i].what, cases[i].by, cases[i].more, sha256));
        is_not_used(m, sha256, cases[i].why);
        bh_wasm_unload(m);
    }
}

#define TEXTS 60u

/* Gives what the call is about. */
static bool read_text(struct bh_wasm *w, void *user BH_UNUSED, uint64_t *v)
{
    const struct bh_str t = bh_wasm_about(w);

    if (t.n && t.n <= (uint32_t)v[1] && bh_wasm_memory(w, (uint32_t)v[0], (uint32_t)t.n))
        memcpy(bh_wasm_memory(w, (uint32_t)v[0], (uint32_t)t.n), t.p, t.n);
    v[0] = t.n;
    return true;
}

static uint32_t in_order[TEXTS]; /* 0, 1 ... */
static unsigned asked, told;     /* another host function, and who is told of it */
static bool ask(struct bh_wasm *w BH_UNUSED, void *user BH_UNUSED, uint64_t *v)
{
    asked++;
    v[0] = 7;
    return true;
}
static void tell(void *user BH_UNUSED)
{
    told++;
}

/* Reads what it is about to 65500, where 36 bytes of memory are left, at most 40; of nothing it asks.
 * What begins with x is unreachable, with e it is an error, and else the answer is a sum of the 36 bytes
 * and of the length. */
#define READS                                                                                      \
    "01(03 60 02 7f7f 01 7f 60 00 01 7e 60 01 7f 01 7f) 02(02 'h' 'read' 00 00 'h' 'ask' 00 02)"   \
    "03(01 01) 05(01 0001) 07(01 'f' 00 02)"                                                       \
    "0a(01(01 03 7f 41dcff03 4128 1000 2100 2000 45 0440 4100 1001 1a 0b"                          \
    "41dcff03 2d0000 41f800 46 0440 00 0b"                                                         \
    "0340 2002 411f 6c 2001 2d00dcff03 6a 2102 2001 4101 6a 2201 4124 49 0d00 0b"                  \
    "2002 2000 6a ad 4220 86 41dcff03 2d0000 41e500 46 ad 84 0b))"
#define WINDOW 36u

static const struct bh_wasm_host readers[] = {{"h", "read", "ii:i", read_text},
                                              {"h", "ask", "i:i", ask}};

/* Asks about texts of every length; the memory is as the questions before left it. */
static void ask_all(struct bh_wasm *w, char *window)
{
    static const char letters[] =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    struct bh_str about[TEXTS];
    int64_t ret[TEXTS];
    uint64_t code = 1;
    uint32_t done = 0;

    for (uint32_t i = 0; i < TEXTS; i++)
        about[i] = (struct bh_str){letters + (i * 7 % 11) + (i == 13), (i * 29 + 26) % 43};
    about[20].p = "error";
    about[20].n = 5;
    const struct bh_wasm_questions q = {2, about, in_order, TEXTS, read_text, tell, ret};
    unsigned asked_before = asked, told_before = told, empty = 0;
    CU_ASSERT(bh_wasm_ask(w, &q, &done, &code) == BH_WASM_DONE);
    CU_ASSERT(done == 20 && (uint32_t)code == 1 && code >> 32);
    for (uint32_t i = 0; i <= done && i < TEXTS; i++) {
        uint32_t sum = 0;
        if (about[i].n <= WINDOW)
            memcpy(window, about[i].p, about[i].n);
        for (uint32_t k = 0; k < WINDOW; k++)
            sum = sum * 31 + (uint8_t)window[k];
        empty += !about[i].n;
        if (i < done)
            CU_ASSERT(ret[i] == (int32_t)(sum + about[i].n));
    }
    CU_ASSERT(empty && asked - asked_before == empty && told - told_before >= empty);
    CU_ASSERT(!bh_wasm_about(w).p);
}

static void ask_in_vain(struct bh_wasm *w)
{
    const struct bh_str about[] = {{"ab", 2}, {"cd", 2}, {"xy", 2}, {"ef", 2}};
    int64_t ret[4];
    struct bh_wasm_questions q = {2, about, in_order, 0, read_text, NULL, ret};
    uint64_t code = 1;
    uint32_t done = 7;

    CU_ASSERT(bh_wasm_ask(w, &q, &done, &code) == BH_WASM_DONE && done == 0 && code == 0);
    q.n = 4;
    CU_ASSERT(bh_wasm_ask(w, &q, &done, &code) == BH_WASM_UNREACHABLE && done == 2 && code == 0);
    CU_ASSERT(trap_is(w, "wasm error: unreachable\nwasm stack trace:\n\t.$2() i64"));
}

/* Of each there is as much time as of one: of all there would not be enough. */
static void ask_often(const struct bh_wasm_module *m)
{
    struct bh_wasm_limits limits = usual;
    struct bh_str about[TEXTS];
    int64_t ret[TEXTS];
    const struct bh_wasm_questions q = {2, about, in_order, TEXTS, read_text, NULL, ret};
    uint64_t code;
    uint32_t done;

    limits.steps = 100000;
    struct bh_wasm *w = instance_of(m, readers, 2, NULL, &limits);
    for (uint32_t i = 0; i < TEXTS; i++)
        about[i] = (struct bh_str){"node-1", 6};
    CU_ASSERT(bh_wasm_ask(w, &q, &done, &code) == BH_WASM_DONE && done == TEXTS);
    bh_wasm_free(w);
}

static void ask_it(struct bh_wasm *w)
{
    char window[WINDOW] = {0};

    for (unsigned k = 0; k < 2; k++)
        ask_all(w, window);
    ask_in_vain(w);
    CU_ASSERT(!bh_wasm_differs(w));
    bh_wasm_free(w);
}

static void test_a_row_of_questions(void)
{
    struct bh_wasm_module *m = module_of(READS);

    for (uint32_t i = 0; i < TEXTS; i++)
        in_order[i] = i;
    ask_it(instance_of(m, readers, 2, NULL, &usual));
    ask_often(m);
    if (!no_compiler()) {
        ask_it(compiled_of(m, NULL, NULL, readers, 2));
        CU_ASSERT(bh_wasm_is_compiled(m));
        ask_it(instance_of(m, readers, 2, NULL, &usual));
        ask_often(m);
    }
    bh_wasm_unload(m);
}

/* A compiler that takes for ever, optimising or always, has an end. */
#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
static void test_a_compiler_has_an_end(void)
{
    static const struct {
        const char *slow; /* what in its arguments makes it so */
        int rc;
        const char *text;
    } t[] = {{"-O2", 0, ""},
             {"-fPIC", -ETIMEDOUT,
              "did not end within 1 seconds on what was made of the guest: it can be interpreted"},
             {"-shared", -ETIMEDOUT, "did not end within 1 seconds"}};
    BH_CLEANUP(bh_freep) char *dir = bh_asprintf("%s/slow", bh_test_tmpdir());
    BH_CLEANUP(bh_freep) char *cc = bh_asprintf("%s/slow-cc", bh_test_tmpdir());

    if (no_compiler())
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        struct bh_wasm_module *m = module_of(ONE("02 7f7f 01 7f", "00 2000 2001 6a 0b"));
        struct bh_wasm_build how = {.cc = cc, .cpu_s = 1};
        BH_CLEANUP(bh_freep) char *path = NULL;
        BH_CLEANUP(bh_freep)
        char *script =
            bh_asprintf("#!/bin/sh\ncase \" $* \" in *\" %s \"*) while :; do :; done; esac\n"
                        "exec cc \"$@\"\n",
                        t[i].slow);
        struct bh_err err = {""};
        CU_ASSERT_FATAL(bh_write_file(cc, script, strlen(script), 0700) == 0);
        CU_ASSERT(bh_wasm_build(m, DIGEST, dir, &how, &path, &err) == t[i].rc);
        if (!strstr(err.msg, t[i].text))
            printf("# %zu: %s\n", i, err.msg);
        CU_ASSERT(strstr(err.msg, t[i].text) && (path != NULL) == (t[i].rc == 0));
        CU_ASSERT(how.files == 1 && how.hasty == (i < 2));
        bh_wasm_unload(m);
    }
}

/* Whose processes may have less time anyway may compile in that. */
static void test_a_lower_limit_of_time(void)
{
    BH_CLEANUP(bh_freep) char *dir = bh_asprintf("%s/limited", bh_test_tmpdir());
    struct bh_wasm_module *m;
    int status = -1;

    if (no_compiler())
        return;
    m = module_of(ONE("02 7f7f 01 7f", "00 2000 2001 6a 0b"));
    fflush(NULL);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        struct __user_cap_header_struct who = {_LINUX_CAPABILITY_VERSION_3, 0};
        const struct __user_cap_data_struct none[2] = {{0}};
        struct bh_wasm_build how = {.cc = "cc"};
        struct bh_err err = {""};
        char *path = NULL;
        bh_assert(setrlimit(RLIMIT_CPU, &(struct rlimit){30, 30}) == 0);
        bh_assert(syscall(SYS_capset, &who, none) == 0);
        int rc = bh_wasm_build(m, DIGEST, dir, &how, &path, &err);
        if (rc < 0)
            fprintf(stderr, "# %s\n", err.msg);
        _exit(rc < 0);
    }
    CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
    bh_wasm_unload(m);
}

/* Folders that something is compiled in. */
static unsigned n_at_work(const char *dir)
{
    DIR *d = opendir(dir);
    unsigned n = 0;

    CU_ASSERT_FATAL(d != NULL);
    for (const struct dirent *e; (e = readdir(d));)
        n += strncmp(e->d_name, ".wasmc-", 7) == 0;
    closedir(d);
    return n;
}

/* Told to end while it compiles it ends by that, and leaves nothing. */
static void test_an_end_leaves_nothing(void)
{
    BH_CLEANUP(bh_freep) char *dir = bh_asprintf("%s/ended", bh_test_tmpdir());
    BH_CLEANUP(bh_freep) char *cc = bh_asprintf("%s/ending-cc", bh_test_tmpdir());
    static const char script[] = "#!/bin/sh\nkill -INT $PPID\nexec cc \"$@\"\n";
    struct bh_wasm_module *m;
    int status = 0;

    if (no_compiler())
        return;
    m = module_of(ONE("02 7f7f 01 7f", "00 2000 2001 6a 0b"));
    CU_ASSERT_FATAL(bh_write_file(cc, script, strlen(script), 0700) == 0);
    fflush(NULL);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        struct bh_wasm_build how = {.cc = cc};
        struct bh_err err = {""};
        char *path = NULL;
        _exit(bh_wasm_build(m, DIGEST, dir, &how, &path, &err) < 0);
    }
    CU_ASSERT(waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    CU_ASSERT(n_at_work(dir) == 0);
    bh_wasm_unload(m);
}

static void test_a_difference_is_found(void)
{
    static const struct {
        const char *sections, *what, *by, *text;
    } t[] = {
        {ONE("02 7f7f 01 7f", "00 2000 2001 6a 0b"), "= o_0x6a(", "= o_0x6b(",
         "result 0 is 0x1 compiled, 0x9 interpreted"},
        {ONE("02 7f7f 01 7f", "00 2000 2001 6d 0b"), "= o_0x6d(", "= o_0x6a(",
         "compiled: wasm error: none"},
        {"01(01 60 02 7f7f 01 7f) 03(01 00) 05(01 0001) 07(01 'f' 00 00)"
         "0a(01(00 2000 2001 360200 4107 0b))",
         "\no_0x36(", "\no_0x3a(", "its memory is another one"},
    };

    if (no_compiler())
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(t); i++) {
        struct bh_wasm_module *m = module_of(t[i].sections);
        struct bh_wasm *w = compiled_of(m, t[i].what, t[i].by, NULL, 0);
        uint64_t v[2] = {5, i == 1 ? 0 : 4};
        if (i == 2)
            v[1] = 0x12345;
        (void)bh_wasm_call(w, 0, v);
        const char *found = bh_wasm_differs(w);
        CU_ASSERT(found && strstr(found, t[i].text));
        if (!found || !strstr(found, t[i].text))
            printf("# %zu: %s\n", i, found ? found : "nothing");
        bh_wasm_free(w);
        bh_wasm_unload(m);
    }
}

struct called {
    struct bh_wasm *w;
    uint64_t v[1];
    enum bh_wasm_trap trap;
};

static void *call_there(void *arg)
{
    struct called *c = arg;

    c->trap = bh_wasm_call(c->w, 0, c->v);
    return NULL;
}

/* f(n) is n ? f(n - 1) + 1 : 0. The interpreter has its frames elsewhere. */
static void test_a_small_stack_is_no_difference(void)
{
    struct bh_wasm_module *m;
    struct called c = {.v = {5000}};
    pthread_attr_t attr;
    pthread_t thread;

    if (no_compiler())
        return;
    m = module_of(ONE("01 7f 01 7f", "00 2000 45 0440 4100 0f 0b 2000 4101 6b 1000 4101 6a 0b"));
    c.w = compiled_of(m, NULL, NULL, NULL, 0);
    CU_ASSERT_FATAL(pthread_attr_init(&attr) == 0 &&
                    pthread_attr_setstacksize(&attr, (size_t)640 << 10) == 0);
    CU_ASSERT_FATAL(pthread_create(&thread, &attr, call_there, &c) == 0);
    CU_ASSERT(pthread_join(thread, NULL) == 0 && c.trap == BH_WASM_DEPTH);
    (void)pthread_attr_destroy(&attr);
    CU_ASSERT(!bh_wasm_differs(c.w));
    c.v[0] = 3;
    CU_ASSERT(bh_wasm_call(c.w, 0, c.v) == BH_WASM_DONE && c.v[0] == 3);
    CU_ASSERT(!bh_wasm_differs(c.w));
    bh_wasm_free(c.w);
    bh_wasm_unload(m);
}

BH_TESTS("common/wasm/wasm",
         {"a function is found and called", test_a_function_is_found_and_called},
         {"a stub is known", test_a_stub_is_known},
         {"what is refused says what and where", test_what_is_refused_says_what_and_where},
         {"what is no module", test_what_is_no_module},
         {"limits of an instance", test_limits_of_an_instance},
         {"time, depth and steps end a call", test_time_depth_and_steps_end_a_call},
         {"every kind of loop ends", test_every_kind_of_loop_ends},
         {"host functions", test_host_functions},
         {"a module is described", test_a_module_is_described}, {"broken names", test_broken_names},
         {"damaged modules", test_damaged_modules},
         {"compiled does what interpreted does", test_compiled_does_what_interpreted_does},
         {"damaged code is not used", test_damaged_code_is_not_used},
         {"code that crashes is not used", test_code_that_crashes_is_not_used},
         {"a row of questions", test_a_row_of_questions},
         {"a compiler has an end", test_a_compiler_has_an_end},
         {"a lower limit of time", test_a_lower_limit_of_time},
         {"an end leaves nothing", test_an_end_leaves_nothing},
         {"a difference is found", test_a_difference_is_found},
         {"a small stack is no difference", test_a_small_stack_is_no_difference})
