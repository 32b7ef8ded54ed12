/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/store.c - guests that were downloaded, by their digest
 */
#include "common/wasm/store.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wasm/wasm.h"

#define PREFIX    "sha256:"
#define DIGITS    64u
#define ERROR_MAX 4096u

/* ---- digests --------------------------------------------------------------------------------- */

void bh_wasm_digest(const void *p, size_t n, char out[static 65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    bool ok = EVP_Digest(p, n, digest, NULL, EVP_sha256(), NULL) == 1;

    bh_assert(ok);
    for (unsigned i = 0; i < DIGITS / 2; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
}

static bool is_digest(const char *s)
{
    return strlen(s) == DIGITS && strspn(s, "0123456789abcdef") == DIGITS;
}

int bh_wasm_digest_read(const char *text, char out[static 65])
{
    const size_t skip = sizeof PREFIX - 1;

    if (strncmp(text, PREFIX, skip) != 0 || strlen(text) != skip + DIGITS)
        return -EINVAL;
    for (size_t i = 0; i <= DIGITS; i++) {
        char c = text[skip + i];
        out[i] = c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c;
    }
    return is_digest(out) ? 0 : -EINVAL;
}

int bh_wasm_digest_check(const void *p, size_t n, const char *sha256, struct bh_err *err)
{
    char have[65];

    bh_wasm_digest(p, n, have);
    return bh_streq(have, sha256)
               ? 0
               : bh_err_set(err, -EBADMSG, "its digest is " PREFIX "%s, wanted is " PREFIX "%s",
                            have, sha256);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *path_of(const char *dir, const char *sha256, const char *end)
{
    bh_assert(is_digest(sha256));
    return bh_asprintf("%s/%s%s", dir, sha256, end);
}

static int write_one(const char *dir, const char *sha256, const char *end, const void *p, size_t n,
                     struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = path_of(dir, sha256, end);
    int rc = mkdir(dir, 0755) < 0 && errno != EEXIST ? -errno : bh_write_file(path, p, n, 0640);

    return rc < 0 ? bh_err_set(err, rc, "%s: %s", path, strerror(-rc)) : 0;
}

int bh_wasm_store_put(const char *dir, const char *sha256, const void *p, size_t n,
                      struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *error = path_of(dir, sha256, ".error");
    int rc = bh_wasm_digest_check(p, n, sha256, err);

    if (rc == 0)
        rc = write_one(dir, sha256, ".wasm", p, n, err);
    if (rc == 0)
        (void)unlink(error);
    return rc;
}

void bh_wasm_store_fail(const char *dir, const char *sha256, const char *why)
{
    struct bh_err ignored;

    (void)write_one(dir, sha256, ".error", why, BH_MIN(strlen(why), (size_t)ERROR_MAX), &ignored);
}

int bh_wasm_store_get(const char *dir, const char *sha256, char **ret, size_t *ret_n,
                      struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *path = path_of(dir, sha256, ".wasm");
    int rc = bh_read_file(path, BH_WASM_BYTES_MAX, ret, ret_n);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    rc = bh_wasm_digest_check(*ret, *ret_n, sha256, err);
    if (rc < 0) {
        free(bh_take_ptr(*ret));
        bh_err_prefix(err, rc, "%s", path);
    }
    return rc;
}

char *bh_wasm_store_failure(const char *dir, const char *sha256, int64_t since_s)
{
    BH_CLEANUP(bh_freep) char *path = path_of(dir, sha256, ".error");
    struct stat st;
    char *text = NULL;
    size_t n;

    if (stat(path, &st) < 0 || st.st_mtime < since_s)
        return NULL;
    return bh_read_file(path, ERROR_MAX, &text, &n) == 0 ? text : NULL;
}

void bh_wasm_store_keep(const char *dir, bool (*wanted)(void *arg, const char *sha256), void *arg)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    while (d && (e = readdir(d))) {
        char sha256[65];
        size_t n = strcspn(e->d_name, ".");
        if (n != DIGITS)
            continue;
        memcpy(sha256, e->d_name, n);
        sha256[n] = '\0';
        if (is_digest(sha256) && !wanted(arg, sha256))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    }
    if (d)
        closedir(d);
}
