/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_symtab.c - strings interned to 32-bit symbols
 */
#include "common/base/symtab.h"
#include "tests/unit/harness.h"

static void test_empty_text_is_symbol_zero(void)
{
    struct bh_symtab *t = bh_symtab_new();
    CU_ASSERT_EQUAL(bh_sym_intern(t, "", 0), BH_SYM_NONE);
    CU_ASSERT_EQUAL(bh_sym_internc(t, ""), BH_SYM_NONE);
    CU_ASSERT_EQUAL(bh_sym_internc(t, NULL), BH_SYM_NONE);
    CU_ASSERT_EQUAL(bh_sym_find(t, "", 0), BH_SYM_NONE);
    CU_ASSERT_STRING_EQUAL(bh_sym_text(t, BH_SYM_NONE), "");
    CU_ASSERT_EQUAL(bh_symtab_count(t), 1);
    bh_symtab_free(t);
    bh_symtab_free(NULL);
}

static void test_equal_text_equal_symbol(void)
{
    struct bh_symtab *t = bh_symtab_new();
    bh_sym a = bh_sym_internc(t, "alpha"), b = bh_sym_internc(t, "beta");
    CU_ASSERT(a != b && a && b);
    CU_ASSERT_EQUAL(bh_sym_intern(t, "alphabet", 5), a);
    CU_ASSERT_EQUAL(bh_sym_find(t, "beta", 4), b);
    CU_ASSERT_EQUAL(bh_sym_find(t, "gamma", 5), BH_SYM_NONE);
    CU_ASSERT_EQUAL(bh_symtab_count(t), 3); /* finding interns nothing */
    bh_sym nul = bh_sym_intern(t, "al\0pha", 6);
    CU_ASSERT_NOT_EQUAL(nul, bh_sym_intern(t, "al", 2));
    CU_ASSERT(bh_str_eq(bh_sym_str(t, nul), (struct bh_str){"al\0pha", 6}));
    bh_symtab_free(t);
}

static void test_a_million_symbols_and_text_never_moves(void)
{
    enum { N = 1000000 };
    struct bh_symtab *t = bh_symtab_new();
    const char *early = bh_sym_text(t, bh_sym_internc(t, "early"));
    char text[64];
    for (int i = 0; i < N; i++) {
        int n = snprintf(text, sizeof(text), "example.com/some-label-%d", i);
        CU_ASSERT_EQUAL_FATAL(bh_sym_intern(t, text, (size_t)n), (bh_sym)i + 2);
    }
    CU_ASSERT_EQUAL(bh_symtab_count(t), N + 2);
    CU_ASSERT_PTR_EQUAL(early, bh_sym_text(t, 1));
    CU_ASSERT_STRING_EQUAL(early, "early");
    for (int i = 0; i < N; i += 37) {
        int n = snprintf(text, sizeof(text), "example.com/some-label-%d", i);
        bh_sym s = bh_sym_find(t, text, (size_t)n);
        CU_ASSERT_EQUAL_FATAL(s, (bh_sym)i + 2);
        CU_ASSERT(bh_str_eqc(bh_sym_str(t, s), text));
    }
    CU_ASSERT_EQUAL(bh_symtab_count(t), N + 2);
    bh_symtab_free(t);
}

static void test_long_texts(void)
{
    struct bh_symtab *t = bh_symtab_new();
    enum { LONG = 1 << 20 };
    char *text = bh_malloc(LONG);
    memset(text, 'x', LONG);
    bh_sym prev = 0;
    for (size_t n = 1; n <= LONG; n *= 2) {
        bh_sym s = bh_sym_intern(t, text, n);
        CU_ASSERT(s > prev);
        CU_ASSERT_EQUAL(strlen(bh_sym_text(t, s)), n);
        prev = s;
        bh_sym_internc(t, "between");
    }
    free(text);
    bh_symtab_free(t);
}

BH_TESTS("common/base/symtab", {"the empty text is symbol 0", test_empty_text_is_symbol_zero},
         {"equal text, equal symbol", test_equal_text_equal_symbol},
         {"a million symbols, and text never moves", test_a_million_symbols_and_text_never_moves},
         {"long texts", test_long_texts})
