/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/fuzz/fuzz_record.c - records copied out of shared memory: any bytes at all
 *
 * The size in the head is corrected first, so that the fuzzer need not guess it. Every symbol is
 * mapped at most once, and an accepted record can be used.
 */
#include <stdlib.h>

#include "common/k8s/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static bh_sym swap_order(void *arg, bh_sym s)
{
    (*(size_t *)arg)++;
    return ~s ? ~s : 1;
}

static void use_terms(const struct bh_shape_rec *s, struct bh_slice list)
{
    static const struct bh_node_rec node = {.name = 1};
    static struct bh_symtab *tab;
    const struct bh_node_term *t = bh_rec_at(s, list, struct bh_node_term);
    if (!tab)
        tab = bh_symtab_new();
    for (uint32_t i = 0; i < list.n; i++)
        (void)bh_node_term_match(s, &t[i], &node, tab, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    size_t calls = 0;
    n &= ~(size_t)7;
    if (n < sizeof(struct bh_rec_head))
        return 0;
    struct bh_rec_head *h = bh_memdup(p, n);
    h->size = (uint32_t)n;
    h->layout = BH_REC_LAYOUT;
    if (bh_rec_remap(h, n, swap_order, &calls) == 0) {
        if (bh_rec_remap(h, n, NULL, NULL) != 0)
            abort();
        if (h->type == BH_REC_SHAPE) {
            use_terms((struct bh_shape_rec *)h, ((struct bh_shape_rec *)h)->required_terms);
            use_terms((struct bh_shape_rec *)h, ((struct bh_shape_rec *)h)->preferred_terms);
        }
        (void)bh_rec_hash(h);
    }
    if (calls > n / 4)
        abort();
    free(h);
    return 0;
}
