/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_wasm_compiled.c - the header beside a compiled WebAssembly guest, and code that it
 * does not fit
 *
 * The first BH_WASM_HEADER_BYTES bytes are a header, what follows is the code. A header is accepted in one
 * form only. With the version and guest of this program in it the code is looked for in the cache: it is
 * never run, since no input is a shared object of berth wasmc.
 */
#include <stdlib.h>
#include <unistd.h>

#include "common/wasm/wasm_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define GUEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[] = "/tmp/berth-fuzz-XXXXXX";

static void remove_files(void)
{
    BH_CLEANUP(bh_freep) char *so = bh_asprintf("%s/" GUEST ".so", dir);
    BH_CLEANUP(bh_freep) char *header = bh_asprintf("%s.header", so);

    (void)unlink(so);
    (void)unlink(header);
    (void)rmdir(dir);
}

static void make_cache(void)
{
    bh_assert(mkdtemp(dir) != NULL);
    setenv("BERTH_WASM_CACHE", dir, 1);
    (void)atexit(remove_files);
}

static void use(struct bh_wasm_header h, const uint8_t *code, size_t n)
{
    static const uint8_t module[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    BH_CLEANUP(bh_freep) char *so = bh_asprintf("%s/" GUEST ".so", dir);
    BH_CLEANUP(bh_freep) char *header = bh_asprintf("%s.header", so);
    char text[BH_WASM_HEADER_BYTES + 1];
    struct bh_wasm_module *m = NULL;
    struct bh_err err = {""};

    bh_wasm_made_with(h.made_with);
    memcpy(h.guest, GUEST, sizeof h.guest);
    bh_wasm_header_write(&h, text);
    bh_assert(bh_write_file(so, code, n, 0644) == 0);
    bh_assert(bh_write_file(header, text, BH_WASM_HEADER_BYTES, 0644) == 0);
    bh_assert(bh_wasm_load(module, sizeof module, &m, &err) == 0);
    bh_assert(bh_wasm_use_compiled(m, GUEST, &err) < 0 && *err.msg);
    bh_wasm_unload(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const size_t head = BH_MIN(n, (size_t)BH_WASM_HEADER_BYTES);
    char again[BH_WASM_HEADER_BYTES + 1], *text = bh_calloc(head + 1, 1);
    struct bh_wasm_header h;

    static bool made;

    if (!made)
        make_cache();
    made = true;
    if (head)
        memcpy(text, data, head);
    if (bh_wasm_header_read(text, head, &h) == 0) {
        bh_wasm_header_write(&h, again);
        bh_assert(memcmp(again, data, BH_WASM_HEADER_BYTES) == 0);
        use(h, data + head, n - head);
    }
    free(text);
    return 0;
}
