/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/base64.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <openssl/evp.h>

static void test_accepted(void)
{
    static const struct {
        const char *text, *bytes;
    } cases[] = {
        {"", ""},
        {"aGk=", "hi"},
        {"aA==", "h"},
        {"aGlo", "hih"},
        {"aGlo\naGk=\n", "hihhi"},
        {"a\r\nGk\n=", "hi"},
        {"\n\n", ""},
        {"aB==", "h"}, /* bits behind the byte: StdEncoding is not strict */
        {"+/+/", "\xfb\xff\xbf"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char out[32];
        size_t n = 99;
        CU_ASSERT_EQUAL(bh_base64_decode(cases[i].text, strlen(cases[i].text), out, &n), 0);
        CU_ASSERT_EQUAL_FATAL(n, strlen(cases[i].bytes));
        CU_ASSERT_EQUAL(memcmp(out, cases[i].bytes, n), 0);
    }
}

/* The places are those of Go's CorruptInputError. */
static void test_refused(void)
{
    static const struct {
        const char *text;
        size_t at;
    } cases[] = {
        {"AA==AAAA", 4}, {"====", 0}, {"A===", 1}, {"AAA", 0},     {"AA", 0},   {"AAAAA", 4},
        {"AA=", 3},      {"AA=A", 2}, {"A A=", 1}, {"AAA=\n=", 5}, {"AA-_", 2}, {"aGk= ", 4},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        char out[32];
        size_t n = 99;
        CU_ASSERT_EQUAL(bh_base64_decode(cases[i].text, strlen(cases[i].text), out, &n), -EINVAL);
        CU_ASSERT_EQUAL(n, cases[i].at);
    }
    char out[8];
    size_t n;
    CU_ASSERT_EQUAL(bh_base64_decode("AA\0A", 4, out, &n), -EINVAL);
}

static void test_what_openssl_writes_reads_back(void)
{
    struct bh_rand r;
    uint8_t bytes[64], back[BH_BASE64_ROOM(96)];
    unsigned char text[96];

    bh_rand_seed(&r, 7);
    for (int i = 0; i < 5000; i++) {
        size_t n = bh_rand_below(&r, sizeof(bytes)), got;
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)bh_rand_u64(&r);
        int len = EVP_EncodeBlock(text, bytes, (int)n);
        CU_ASSERT_EQUAL_FATAL(bh_base64_decode((char *)text, (size_t)len, back, &got), 0);
        CU_ASSERT_EQUAL_FATAL(got, n);
        CU_ASSERT_EQUAL_FATAL(memcmp(back, bytes, n), 0);
    }
}

BH_TESTS("common/base/base64", {"what Go accepts", test_accepted},
         {"what Go refuses, and where", test_refused},
         {"what OpenSSL writes reads back", test_what_openssl_writes_reads_back})
