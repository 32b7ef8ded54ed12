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

static void use_selectors(const struct bh_shape_rec *s)
{
    static struct bh_symtab *tab;
    const struct bh_slice lists[] = {s->affinity, s->anti_affinity, s->preferred_affinity,
                                     s->preferred_anti_affinity};
    const struct bh_kv *labels = bh_rec_at(s, s->labels, struct bh_kv);
    const struct bh_spread *spread = bh_rec_at(s, s->spread, struct bh_spread);
    if (!tab)
        tab = bh_symtab_new();
    for (size_t k = 0; k < BH_ARRAY_LEN(lists); k++) {
        const struct bh_pod_term *t = bh_rec_at(s, lists[k], struct bh_pod_term);
        for (uint32_t i = 0; i < lists[k].n; i++) {
            (void)bh_selector_matches(s, &t[i].selector, labels, s->labels.n, tab);
            (void)bh_selector_matches(s, &t[i].namespace_selector, labels, s->labels.n, tab);
        }
    }
    for (uint32_t i = 0; i < s->spread.n; i++)
        (void)bh_selector_matches(s, &spread[i].selector, labels, s->labels.n, tab);
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
            use_selectors((struct bh_shape_rec *)h);
        }
        (void)bh_rec_hash(h);
    }
    if (calls > n / 4)
        abort();
    free(h);
    return 0;
}
