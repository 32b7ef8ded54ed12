/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/sign.c - minisign's signatures: FILE.minisig beside a file, public keys *.pub
 *
 * Both are texts of a few lines, comments and base64. What is signed is the file's BLAKE2b digest,
 * and then signature and trusted comment once more. Signatures of the file itself ("Ed", before
 * minisign 0.11) are not taken: whoever checks them needs all of the file in memory.
 *
 * Upstream: minisign's and signify's formats, https://jedisct1.github.io/minisign/.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "common/base/base64.h"
#include "scheduler/native/native_int.h"

#define TEXT_MAX    4096u
#define SIGNATURE   64u
#define COMMENT     "untrusted comment: "
#define TRUSTED     "trusted comment: "
#define KEY_BYTES   42u /* "Ed", key id, public key */
#define SIG_BYTES   74u /* "ED", key id, signature */
#define LEGACY      "Ed"
#define ID_AT       2u
#define AFTER_ID_AT 10u

static int read_text(const char *path, char text[static TEXT_MAX], struct bh_err *err)
{
    int fd = bh_owned_open(path, err);
    if (fd < 0)
        return fd;
    ssize_t n = pread(fd, text, TEXT_MAX, 0);
    int rc = n < 0 ? -errno : 0;
    close(fd);
    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    if (n == TEXT_MAX || memchr(text, 0, (size_t)n))
        return bh_err_set(err, -EINVAL, "%s is no text of less than %u bytes", path, TEXT_MAX);
    text[n] = '\0';
    return 0;
}

/* The next line, whose beginning must be this; NULL: it is not. */
static const char *line_with(char **rest, const char *begin)
{
    char *line = strsep(rest, "\n");
    size_t n = strlen(begin);

    if (!line || strncmp(line, begin, n) != 0)
        return NULL;
    line[strcspn(line, "\r")] = '\0';
    return line + n;
}

/* A line of base64 that stands for exactly n bytes. */
static bool bytes_of(const char *line, uint8_t *ret, size_t n)
{
    uint8_t room[128];
    size_t got = 0, len = line ? strlen(line) : 0;

    if (!len || len > sizeof room || bh_base64_decode(line, len, room, &got) < 0 || got != n)
        return false;
    memcpy(ret, room, n);
    return true;
}

static uint64_t id_of(const uint8_t *at)
{
    uint64_t id;

    memcpy(&id, at, sizeof id);
    return le64toh(id);
}

int bh_native_read_key(const char *path, struct bh_native_key *ret, struct bh_err *err)
{
    char text[TEXT_MAX], *rest = text;
    uint8_t b[KEY_BYTES];
    int rc = read_text(path, text, err);

    if (rc < 0)
        return rc;
    if (!line_with(&rest, COMMENT) || !bytes_of(line_with(&rest, ""), b, sizeof b) ||
        memcmp(b, "Ed", ID_AT) != 0)
        return bh_err_set(err, -EINVAL, "%s is not a public key of minisign", path);
    ret->id = id_of(b + ID_AT);
    memcpy(ret->key, b + AFTER_ID_AT, sizeof ret->key);
    return 0;
}

static bool fits(const struct bh_native_key *k, const uint8_t *signature, const uint8_t *what,
                 size_t n)
{
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, k->key, sizeof k->key);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = key && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key) == 1 &&
              EVP_DigestVerify(ctx, signature, SIGNATURE, what, n) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return ok;
}

/* What a .minisig says. */
struct signature {
    uint8_t b[SIG_BYTES], global[SIGNATURE];
    uint8_t whole[SIGNATURE + TEXT_MAX]; /* what global signs: the signature, the trusted comment */
    size_t n;
};

static int read_signature(const char *path, struct signature *s, struct bh_err *err)
{
    char text[TEXT_MAX], *rest = text;
    const char *trusted = NULL;
    int rc = read_text(path, text, err);

    if (rc < 0)
        return rc;
    if (!line_with(&rest, COMMENT) || !bytes_of(line_with(&rest, ""), s->b, sizeof s->b) ||
        !(trusted = line_with(&rest, TRUSTED)) ||
        !bytes_of(line_with(&rest, ""), s->global, sizeof s->global))
        return bh_err_set(err, -EINVAL, "%s is not a signature of minisign", path);
    if (memcmp(s->b, LEGACY, ID_AT) == 0)
        return bh_err_set(err, -EINVAL,
                          "%s signs the file itself: its digest has to be signed (minisign -S -H)",
                          path);
    if (memcmp(s->b, "ED", ID_AT) != 0)
        return bh_err_set(err, -EINVAL, "%s has another algorithm than Ed25519", path);
    s->n = SIGNATURE + strlen(trusted);
    memcpy(s->whole, s->b + AFTER_ID_AT, SIGNATURE);
    memcpy(s->whole + SIGNATURE, trusted, strlen(trusted));
    return 0;
}

int bh_native_check_signature(int fd, const char *path, const struct bh_native_key *keys,
                              uint32_t n_keys, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *file = bh_asprintf("%s.minisig", path);
    uint8_t digest[EVP_MAX_MD_SIZE];
    struct signature s;
    uint32_t k = 0;
    int rc = read_signature(file, &s, err);

    if (rc < 0)
        return bh_err_prefix(err, rc, "%s: the policy \"signed\" demands a signature", path);
    const uint64_t id = id_of(s.b + ID_AT);
    while (k < n_keys && keys[k].id != id)
        k++;
    if (k == n_keys)
        return bh_err_set(err, -EPERM,
                          "%s is signed with the key %016" PRIX64
                          ": that of one of the %u files *.pub of the plugin configuration is "
                          "needed",
                          path, id, n_keys);
    rc = bh_native_digest(fd, "BLAKE2B-512", digest);
    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", path, strerror(-rc));
    if (!fits(&keys[k], s.b + AFTER_ID_AT, digest, 64))
        return bh_err_set(err, -EPERM,
                          "%s is not what was signed with the key %016" PRIX64 " in %s", path, id,
                          file);
    if (!fits(&keys[k], s.global, s.whole, s.n))
        return bh_err_set(err, -EPERM,
                          "%s: its trusted comment is not what was signed with the key %016" PRIX64,
                          file, id);
    return 0;
}
