/* SPDX-License-Identifier: Apache-2.0
 *
 * Signatures as minisign 0.11 wrote them, and what is not taken for one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scheduler/native/native_int.h"
#include "tests/unit/harness.h"

#define HEAD "untrusted comment: signature from minisign secret key\n"
#define SIGNED                                                                                     \
    "RUQyuluKRodftwDr2Tt/"                                                                         \
    "LyStYLcNHUjR4zabS1nwagFIMlEDUwWVqEveKaqPLwokub1pyzDAb6EAtGf1ZL5HOToZsLkvX4VmUAQ=\n"
#define LEGACY                                                                                     \
    "RWQyuluKRodftxEitsNBcV10LEjRt4RDvMVYzX2X8FtVC/2mFcnLEpyRvmUSB+hmLdDmsoi9X7Nzi57DVZnQOtI/"     \
    "UcTNAFjYgAg=\n"
#define COMMENT "trusted comment: version 1\n"
#define GLOBAL                                                                                     \
    "NYkU1QsIR7E7Rh//XA7/9Xzo6jhvcecrMUtC253h/NNBF+lYgrMipgR51leCUKbtut5bdd1N4EEtCDi6fO2yCA==\n"
#define PUB   "untrusted comment: minisign public key B75F87468A5BBA32\n"
#define KEY   "RWQyuluKRodftyjETBnZj8fn7K3Su8m3BrJq71zcxEkpPxjWvRocLAzW\n"
#define OTHER "RWRPTtwtDMPN6GIn1nN5krNuTKyNEFLvcYkVWaFIpmFQP0nBdvwmKyfP\n"

static char at[PATH_MAX];

static const char *put(const char *name, const char *text)
{
    snprintf(at, sizeof at, "%s/%s", bh_test_tmpdir(), name);
    (void)unlink(at);
    CU_ASSERT_FATAL(bh_write_file(at, text, strlen(text), 0600) == 0);
    return at;
}

static void test_signatures(void)
{
    static const struct {
        const char *minisig, *file, *key, *why; /* why NULL: it is good */
    } rows[] = {
        {HEAD SIGNED COMMENT GLOBAL, "what is signed\n", KEY, NULL},
        {"untrusted comment: another\r\n" SIGNED COMMENT GLOBAL, "what is signed\n", KEY, NULL},
        {HEAD SIGNED COMMENT GLOBAL, "what is not\n", KEY,
         "f.so is not what was signed with the key B75F87468A5BBA32 in "},
        {HEAD SIGNED COMMENT GLOBAL, "what is signed\n", OTHER,
         "f.so is signed with the key B75F87468A5BBA32: that of one of the 1 files *.pub"},
        {HEAD SIGNED "trusted comment: version 2\n" GLOBAL, "what is signed\n", KEY,
         "f.so.minisig: its trusted comment is not what was signed with the key B75F87468A5BBA32"},
        {HEAD LEGACY COMMENT GLOBAL, "what is signed\n", KEY,
         "signs the file itself: its digest has to be signed (minisign -S -H)"},
        {HEAD SIGNED COMMENT, "what is signed\n", KEY, "is not a signature of minisign"},
        {HEAD KEY COMMENT GLOBAL, "what is signed\n", KEY, "is not a signature of minisign"},
        {SIGNED COMMENT GLOBAL, "what is signed\n", KEY, "is not a signature of minisign"},
        {"", "what is signed\n", KEY, "is not a signature of minisign"},
    };

    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        BH_CLEANUP(bh_freep) char *pub = bh_asprintf("%s%s", PUB, rows[i].key);
        struct bh_native_key key;
        struct bh_err err = {0};

        CU_ASSERT_FATAL(bh_native_read_key(put("k.pub", pub), &key, &err) == 0);
        put("f.so.minisig", rows[i].minisig);
        int fd = open(put("f.so", rows[i].file), O_RDONLY | O_CLOEXEC);
        int rc = bh_native_check_signature(fd, at, &key, 1, &err);
        close(fd);
        bool good = rows[i].why ? rc < 0 && strstr(err.msg, rows[i].why) : rc == 0;
        CU_ASSERT(good);
        if (!good)
            fprintf(stderr, "row %u: %d %s\n", i, rc, err.msg);
    }
}

static void test_no_signature(void)
{
    struct bh_err err = {0};
    int fd = open(put("bare.so", "x"), O_RDONLY | O_CLOEXEC);

    CU_ASSERT(bh_native_check_signature(fd, at, NULL, 0, &err) == -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "bare.so: the policy \"signed\" demands a signature: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "bare.so.minisig: No such file or directory"));
    close(fd);
}

static void test_keys(void)
{
    static const char *const bad[] = {"",
                                      "x",
                                      PUB,
                                      PUB "abc\n",
                                      KEY,
                                      PUB SIGNED,
                                      PUB "AAQyuluKRodftyjETBnZj8fn7K3Su8m3BrJq71zcxEkpPxjWvRoc"
                                          "LAzW\n"};
    struct bh_native_key key;

    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_err err = {0};
        CU_ASSERT(bh_native_read_key(put("bad.pub", bad[i]), &key, &err) == -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "bad.pub is not a public key of minisign"));
    }
    struct bh_err err = {0};
    BH_CLEANUP(bh_freep) char *long_one = bh_asprintf("%5000s", "x");
    CU_ASSERT(bh_native_read_key(put("bad.pub", long_one), &key, &err) == -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "bad.pub is no text of less than 4096 bytes"));
    CU_ASSERT_FATAL(chmod(put("open.pub", PUB KEY), 0666) == 0);
    CU_ASSERT(bh_native_read_key(at, &key, &err) == -EPERM);
}

BH_TESTS("scheduler/native/sign", {"signatures", test_signatures},
         {"no signature", test_no_signature}, {"keys", test_keys})
