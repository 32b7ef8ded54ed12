/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_quantity.c - quantities, times and selectors: text from anywhere
 *
 * What a quantity's or time's text gives, its canonical text gives again.
 */
#include <stdlib.h>

#include "common/k8s/quantity.h"
#include "common/k8s/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void quantity(const char *s, size_t n)
{
    const bh_nano cap = (bh_nano)INT64_MAX * 1000000000;
    bh_nano q, again;
    struct bh_buf b = {0};
    if (bh_quantity_parse(s, n, &q) != 0)
        return;
    if (q > BH_NANO_MAX || q < -BH_NANO_MAX)
        abort();
    (void)bh_quantity_value(q);
    (void)bh_quantity_milli_value(q);
    for (int binary = 0; binary < 2; binary++) {
        bh_buf_reset(&b);
        bh_quantity_format(&b, q, binary);
        if (bh_quantity_parse(b.p, b.n, &again) != 0)
            abort();
        if (again != q && !(binary && (again == cap || again == -cap)))
            abort(); /* a binary suffix caps at int64, a decimal one does not */
    }
    bh_buf_fini(&b);
}

static void timestamp(const char *s, size_t n)
{
    int64_t t, again;
    int32_t ns, ns_again;
    char out[40];
    if (bh_time_parse(s, n, &t, &ns) != 0 || t < -62135596800 || t > 253402300799)
        return;
    bh_time_format_micro(out, t, ns);
    if (bh_time_parse(out, strlen(out), &again, &ns_again) != 0 || again != t ||
        ns_again != ns / 1000 * 1000)
        abort();
}

static const char *get(void *arg, const char *key)
{
    return *key ? arg : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct bh_selector *s;
    char *text = bh_strndup((const char *)p, n);
    quantity((const char *)p, n);
    timestamp((const char *)p, n);
    if (bh_selector_parse(text, &s, NULL) == 0) {
        (void)bh_selector_match(s, get, text);
        bh_selector_free(s);
    }
    if (bh_field_selector_parse(text, &s, NULL) == 0) {
        (void)bh_selector_match(s, get, text);
        bh_selector_free(s);
    }
    free(text);
    return 0;
}
