/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_http_uri.c - a request target with any bytes
 *
 * Beyond not crashing: decoded text is never longer than the target, and parsing twice agrees.
 */
#include "common/http/uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *target = bh_strndup((const char *)data, size);
    struct bh_http_uri a, b;
    int rc = bh_http_uri_parse(target, &a);

    bh_assert(bh_http_uri_parse(target, &b) == rc);
    if (rc == 0) {
        size_t n = strlen(a.path);
        bh_assert(bh_streq(a.path, b.path) && a.n_params == b.n_params);
        for (size_t i = 0; i < a.n_params; i++)
            n += strlen(a.params[i].name) + strlen(a.params[i].value) + 1;
        bh_assert(n <= strlen(target) + a.n_params);
        bh_http_uri_fini(&a);
        bh_http_uri_fini(&b);
    }
    free(target);
    return 0;
}
