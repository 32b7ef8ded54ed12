/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/native/file.c - digests of open files
 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <unistd.h>

#include "scheduler/native/native_int.h"

int bh_native_digest(int fd, const char *algorithm, uint8_t out[static 64])
{
    unsigned char block[65536];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    ssize_t n = 0;
    bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_get_digestbyname(algorithm), NULL) == 1;

    for (off_t at = 0; ok && (n = pread(fd, block, sizeof block, at)) > 0; at += n)
        ok = EVP_DigestUpdate(ctx, block, (size_t)n) == 1;
    int rc = n < 0 ? -errno : ok && EVP_DigestFinal_ex(ctx, out, NULL) == 1 ? 0 : -EIO;
    EVP_MD_CTX_free(ctx);
    return rc;
}

int bh_native_sha256(int fd, char out[static 65])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    int rc = bh_native_digest(fd, "SHA256", digest);

    for (unsigned i = 0; rc == 0 && i < 32; i++)
        snprintf(out + (size_t)2 * i, 3, "%02x", digest[i]);
    return rc;
}
