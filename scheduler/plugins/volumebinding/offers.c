/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/offers.c - finding a node's volumes without asking every volume
 *
 * A volume whose affinity is one term with a "key In values" belongs to the nodes with one of the
 * values, so it is filed under each. All others are asked for every node. The rest of a filed
 * volume's term is still checked when it is found.
 */
#include "scheduler/plugins/volumebinding/binder.h"

/* The requirement an offer is filed under; NULL: it is not. */
static const struct bh_requirement *place_of(const struct bh_offer *o)
{
    const struct bh_shape_rec *r = o->affinity.rec;

    if (o->affinity.kind != BH_TERMS_SOME || r->required_terms.n != 1)
        return NULL;
    const struct bh_node_term *t = bh_rec_at(r, r->required_terms, struct bh_node_term);
    const struct bh_requirement *q = bh_rec_at(r, t->expressions, struct bh_requirement);
    for (uint32_t i = 0; i < t->expressions.n; i++)
        if (q[i].op == BH_REQ_IN)
            return &q[i];
    return NULL;
}

static int by_place(const void *pa, const void *pb)
{
    const struct bh_offer_place *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

struct bh_offer_index bh_offers_index(struct bh_arena *a, const struct bh_offer *offers, uint32_t n)
{
    struct bh_offer_index x = {0};
    uint32_t *anywhere = bh_arena_new_array(a, uint32_t, (size_t)n + 1);
    size_t room = 1;

    for (uint32_t i = 0; i < n; i++) {
        const struct bh_requirement *q = place_of(&offers[i]);
        room += q ? q->values.n : 0;
    }
    struct bh_offer_place *places = bh_arena_new_array(a, struct bh_offer_place, room);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_requirement *q = place_of(&offers[i]);
        if (!q) {
            anywhere[x.n_anywhere++] = i;
            continue;
        }
        const bh_sym *values = bh_rec_at(offers[i].affinity.rec, q->values, bh_sym);
        for (uint32_t k = 0; k < q->values.n; k++)
            places[x.n_places++] = (struct bh_offer_place){q->key, values[k], i};
    }
    if (x.n_places > 1)
        qsort(places, x.n_places, sizeof *places, by_place);
    bh_sym *keys = bh_arena_new_array(a, bh_sym, (size_t)x.n_places + 1);
    for (uint32_t i = 0; i < x.n_places; i++)
        if (i == 0 || places[i].key != places[i - 1].key)
            keys[x.n_keys++] = places[i].key;
    x.places = places;
    x.keys = keys;
    x.anywhere = anywhere;
    return x;
}
