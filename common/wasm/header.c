/* SPDX-License-Identifier: Apache-2.0
 *
 * common/wasm/header.c - the file beside a compiled guest that describes its code
 *
 * Five lines of a fixed length, so that code which a power failure or a flipped bit has changed is
 * found before anything of it runs:
 *
 *     berth-wasm-code 1
 *     made-with DIGEST     of the texts that code and program have to agree in
 *     guest DIGEST         of the WebAssembly module
 *     code DIGEST          of the shared object
 *     bytes NUMBER         of the shared object, ten digits
 */
#include <errno.h>

#include "common/wasm/store.h"
#include "common/wasm/wasm_int.h"

#define VERSION "berth-wasm-code 1\n"
#define FORMAT  VERSION "made-with %s\nguest %s\ncode %s\nbytes %010llu\n"

void bh_wasm_header_write(const struct bh_wasm_header *h, char out[static BH_WASM_HEADER_BYTES + 1])
{
    int n = snprintf(out, BH_WASM_HEADER_BYTES + 1, FORMAT, h->made_with, h->guest, h->code,
                     (unsigned long long)h->bytes);

    bh_assert(n == BH_WASM_HEADER_BYTES);
}

/* The digest behind the word at *p, which goes on behind the line. */
static bool read_digest(const char **p, const char *word, char out[static 65])
{
    const size_t skip = strlen(word);

    if (memcmp(*p, word, skip) != 0 || strspn(*p + skip, "0123456789abcdef") != 64 ||
        (*p)[skip + 64] != '\n')
        return false;
    memcpy(out, *p + skip, 64);
    out[64] = '\0';
    *p += skip + 65;
    return true;
}

int bh_wasm_header_read(const char *p, size_t n, struct bh_wasm_header *ret)
{
    char again[BH_WASM_HEADER_BYTES + 1];
    const char *at = p + sizeof VERSION - 1;

    if (n != BH_WASM_HEADER_BYTES || memcmp(p, VERSION, sizeof VERSION - 1) != 0 ||
        !read_digest(&at, "made-with ", ret->made_with) ||
        !read_digest(&at, "guest ", ret->guest) || !read_digest(&at, "code ", ret->code) ||
        memcmp(at, "bytes ", 6) != 0)
        return -EINVAL;
    ret->bytes = 0;
    for (at += 6; bh_is_digit(*at); at++)
        ret->bytes = ret->bytes * 10 + (uint64_t)(*at - '0');
    if (ret->bytes > BH_WASM_CODE_MAX)
        return -EINVAL;
    bh_wasm_header_write(ret, again);
    return memcmp(again, p, n) == 0 ? 0 : -EINVAL; /* there is one form only */
}
