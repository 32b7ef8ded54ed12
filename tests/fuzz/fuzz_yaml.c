/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_yaml.c - YAML loader and writer on any bytes
 *
 * What is accepted must be written as YAML that is accepted again, and from there on nothing may
 * change any more (the first round trip may turn a huge number into a float or a string).
 */
#include "common/data/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bh_json *round_trip(struct bh_arena *a, const struct bh_json *v)
{
    struct bh_json *back;
    struct bh_err err;
    struct bh_buf b = {0};
    bh_yaml_write(&b, v);
    bh_assert(bh_yaml_parse(a, b.p, b.n, BH_JSON_STRICT, &back, &err) == 0);
    bh_buf_fini(&b);
    return back;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bh_json *v;
    struct bh_err err;
    struct bh_arena a;
    if (size > 65536)
        return 0;
    bh_arena_init(&a, 256 << 20);
    if (bh_yaml_parse_all(&a, (const char *)data, size, size & 1 ? BH_JSON_STRICT : 0, &v, &err) ==
        0) {
        bh_json_each(doc, v) {
            struct bh_json *once = round_trip(&a, doc), *twice = round_trip(&a, once);
            bh_assert(bh_json_equal(once, twice));
        }
    }
    bh_arena_fini(&a);
    return 0;
}
