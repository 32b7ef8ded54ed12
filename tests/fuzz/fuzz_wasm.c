/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_wasm.c - modules from anywhere
 *
 * What is accepted runs: every exported function ends, with results or a trap that has a text, and
 * does the same in a second instance. What is not accepted says why.
 */
#include <stdlib.h>

#include "common/wasm/wasm.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static bool host(struct bh_wasm *w, void *user, uint64_t *v)
{
    unsigned *calls = user;
    uint8_t *byte = bh_wasm_memory(w, (uint32_t)v[0], 1);

    if (++*calls % 8 == 0)
        return bh_wasm_fail(w, "call %u", *calls);
    if (byte)
        *byte ^= 1;
    v[0] = *calls;
    return true;
}

static const struct bh_wasm_host hosts[] = {{"m", "f", "i:i", host}, {"m", "g", "I:", host}};

/* Everything that one instance does, as a number. */
static uint64_t run(const struct bh_wasm_module *m)
{
    struct bh_wasm_limits limits = {
        .pages = 3, .elements = 100, .depth = 100, .slots = 5000, .steps = 200000};
    struct bh_wasm *w = NULL;
    struct bh_err err = {""};
    struct bh_buf log = {0};
    unsigned calls = 0;
    size_t n;
    const struct bh_wasm_item *items = bh_wasm_exports(m, &n);

    if (bh_wasm_new(m, hosts, 2, &calls, &limits, &w, &err) < 0) {
        bh_assert(err.msg[0]);
        return 0;
    }
    bh_buf_addf(&log, "%d", bh_wasm_start(w));
    for (size_t i = 0; i < n && i < 8; i++) {
        uint64_t v[256] = {7, 1, (uint64_t)-2, 0x7ff0000000000001, 0x7fa00000};
        const char *type = NULL;
        char *name = bh_strndup(items[i].name.p, items[i].name.n);
        uint32_t func;
        if (bh_wasm_find(m, name, NULL, &func, &type) == 0 &&
            strcspn(type, "rx:") == (size_t)(strchr(type, ':') - type)) {
            enum bh_wasm_trap trap = bh_wasm_call(w, func, v);
            bh_buf_add(&log, v, sizeof v);
            if (trap != BH_WASM_DONE) {
                size_t before = log.n;
                bh_wasm_add_trap(w, &log);
                bh_assert(log.n > before);
            }
        }
        free(name);
        bh_wasm_add_type(m, &items[i], &log);
    }
    if (bh_wasm_pages(w))
        bh_buf_add(&log, bh_wasm_memory(w, 0, 65536), 65536);
    bh_wasm_free(w);
    uint64_t sum = bh_hash(log.p, log.n, 0);
    bh_buf_fini(&log);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bh_wasm_module *m = NULL;
    struct bh_err err = {""};

    if (bh_wasm_load(p, n, &m, &err) < 0)
        bh_assert(!m && err.msg[0]);
    else
        bh_assert(run(m) == run(m));
    bh_wasm_unload(m);
    return 0;
}
