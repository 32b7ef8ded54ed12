/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/wishes.c - devices that a kind of request cannot have
 */
#include "common/k8s/codec.h"
#include "scheduler/plugins/dynamicresources/search.h"

#define ALL_OPEN UINT64_MAX

/* ---- which wish ---- */

static void put_message(struct bh_buf *b, const ProtobufCMessage *m)
{
    size_t n = m ? protobuf_c_message_get_packed_size(m) : SIZE_MAX;

    bh_buf_add(b, &n, sizeof n);
    if (m)
        bh_pb_pack(b, m);
}

struct bh_dra_named *bh_dra_named_for(struct bh_dra *d, struct bh_dra_named **v, uint32_t max,
                                      const struct bh_buf *text, size_t size,
                                      void (*drop_one)(struct bh_dra_named *))
{
    uint32_t i = 0, at = 0;

    for (; i < max && v[i]; i++) {
        if (v[i]->n == text->n && memcmp(v[i]->text, text->p, text->n) == 0) {
            v[i]->used = ++d->named_clock;
            return v[i];
        }
        if (v[i]->used < v[at]->used)
            at = i;
    }
    if (i < max)
        at = i;
    drop_one(v[at]);
    v[at] = bh_calloc(1, size);
    *v[at] = (struct bh_dra_named){
        .text = bh_memdup(text->p, text->n), .n = text->n, .used = ++d->named_clock};
    return v[at];
}

static void drop(struct bh_dra_named *named)
{
    struct bh_dra_wish *w = (void *)named;

    if (!w)
        return;
    free(w->named.text);
    free(w->open);
    free(w->chosen);
    free(w);
}

void bh_dra_forget_wishes(struct bh_dra *d)
{
    for (unsigned i = 0; i < BH_DRA_WISHES; i++)
        drop(d->wish[i]);
    bh_buf_fini(&d->wishing);
}

/* ---- keeping it current ---- */

/* A device that shares counters leaves more to all devices of its pool. */
static void open_device(const struct bh_dra *d, struct bh_dra_wish *w, uint32_t device)
{
    const struct bh_dra_pool *p = &d->pools[d->slices[d->devices[device].slice].pool];
    uint32_t first = device, end = device + 1;

    if (p->has_counters) {
        const struct bh_dra_slice *last = &d->slices[p->first + p->n - 1];
        first = d->slices[p->first].first;
        end = last->first + last->n;
    }
    for (uint32_t i = first; i < end; i++)
        w->open[i / 64] |= (uint64_t)1 << i % 64;
}

struct bh_dra_wish *bh_dra_wish_for(struct bh_dra_pod *p, const struct bh_dra_request *r)
{
    struct bh_dra *d = p->d;
    uint64_t classes = p->objects->version[BH_KIND_DEVICECLASS];

    if (p->n_wishes == BH_DRA_WISHES / 2) /* none is dropped that this pod uses */
        return NULL;
    p->n_wishes++;
    /* Lengths stand before everything, so that no two requests look alike. */
    struct bh_buf *b = &d->wishing;
    bh_buf_reset(b);
    bh_buf_addc(b, r->admin ? 'a' : '-');
    bh_buf_add(b, r->class_name, strlen(r->class_name) + 1);
    bh_buf_add(b, &r->n_selectors, sizeof r->n_selectors);
    for (size_t i = 0; i < r->n_selectors; i++)
        put_message(b, &r->selectors[i]->base);
    bh_buf_add(b, &r->n_tolerations, sizeof r->n_tolerations);
    for (size_t i = 0; i < r->n_tolerations; i++)
        put_message(b, &r->tolerations[i]->base);
    put_message(b, r->capacity ? &r->capacity->base : NULL);
    struct bh_dra_wish *w = (void *)bh_dra_named_for(d, d->wish, BH_DRA_WISHES, b, sizeof *w, drop);
    if (!w->open || w->index != d->index_generation || w->classes != classes ||
        d->freed_end - w->freed_pos > BH_DRA_MOVED) {
        size_t words = ((size_t)d->n_devices + 63) / 64;
        if (!w->open || w->words != words) {
            w->words = words;
            w->open = bh_reallocarray(w->open, words + 1, sizeof *w->open);
            w->chosen = bh_reallocarray(w->chosen, words + 1, sizeof *w->chosen);
        }
        for (size_t i = 0; i <= words; i++)
            w->open[i] = ALL_OPEN;
        memset(w->chosen, 0, (words + 1) * sizeof *w->chosen);
    } else {
        for (; w->freed_pos < d->freed_end; w->freed_pos++) {
            uint32_t id = d->freed[w->freed_pos % BH_DRA_MOVED];
            for (uint32_t i = d->first_of_id[id]; i; i = d->devices[i - 1].same_id)
                open_device(d, w, i - 1);
        }
    }
    w->index = d->index_generation;
    w->classes = classes;
    w->freed_pos = d->freed_end;
    return w;
}

uint32_t bh_dra_next_open(const struct bh_dra_wish *w, uint32_t from, uint32_t end)
{
    size_t i = from / 64;
    uint64_t bits = from < end ? w->open[i] & ALL_OPEN << from % 64 : 0;

    if (from >= end)
        return end;
    while (!bits && ++i * 64 < end)
        bits = w->open[i];
    return bits ? BH_MIN((uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(bits), end) : end;
}
