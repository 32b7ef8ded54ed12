/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_duration.c - duration text with any bytes
 *
 * What is accepted reads back the same after printing.
 */
#include "common/base/opt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = bh_strndup((const char *)data, size), out[32];
    int64_t ns, back;

    if (bh_parse_duration_ns(text, &ns) == 0) {
        bh_format_duration_ns(ns, out);
        bh_assert(bh_parse_duration_ns(out, &back) == 0 && back == ns);
    }
    free(text);
    return 0;
}
