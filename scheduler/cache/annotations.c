/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/annotations.c - annotations of nodes and pods, for the plugins that ask for them
 */
#include "scheduler/cache/annotations.h"

#include "common/base/buf.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

struct block { /* of one object: "name NUL value NUL" after each other */
    uint64_t feed;
    size_t n;
    char text[];
};

static struct bh_map *map_of(struct bh_annotations *a, enum bh_annotations_of of)
{
    return &a->of[of == BH_ANNOTATIONS_PODS];
}

void bh_annotations_fini(struct bh_annotations *a)
{
    bh_map_fini_values(&a->of[0]);
    bh_map_fini_values(&a->of[1]);
}

/* The same annotations in another order count as others: once too often made anew. */
static void write_block(struct bh_buf *out, const K8s__ObjectMeta *meta)
{
    for (size_t i = 0; i < meta->n_annotations; i++) {
        bh_buf_add(out, meta->annotations[i]->key, strlen(meta->annotations[i]->key) + 1);
        bh_buf_add(out, meta->annotations[i]->value, strlen(meta->annotations[i]->value) + 1);
    }
}

bool bh_annotations_put(struct bh_annotations *a, enum bh_annotations_of of, struct bh_str key,
                        const K8s__ObjectMeta *meta)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};
    BH_CLEANUP(bh_freep) struct block *old = NULL;

    if (!(a->wanted & of) || !key.n)
        return false;
    if (!meta) {
        old = bh_map_del(map_of(a, of), key.p, key.n);
        return old && old->n;
    }
    write_block(&text, meta);
    struct block *b = bh_malloc(sizeof *b + text.n);
    b->feed = a->feed;
    b->n = text.n;
    if (text.n)
        memcpy(b->text, text.p, text.n);
    old = bh_map_put(map_of(a, of), key.p, key.n, b);
    return old ? old->n != b->n || memcmp(old->text, b->text, b->n) != 0 : b->n != 0;
}

bool bh_annotations_known(const struct bh_annotations *a, enum bh_annotations_of of,
                          struct bh_str key)
{
    return bh_map_get(&a->of[of == BH_ANNOTATIONS_PODS], key.p, key.n) != NULL;
}

void bh_annotations_sweep(struct bh_annotations *a)
{
    for (unsigned i = 0; i < BH_ARRAY_LEN(a->of); i++) {
        struct bh_map_entry *e;
        for (size_t it = 0; (e = bh_map_next(&a->of[i], &it));)
            if (((struct block *)e->value)->feed != a->feed)
                free(bh_map_del(&a->of[i], e->key, e->key_len));
    }
}

struct bh_str bh_annotations_get(const struct bh_annotations *a, enum bh_annotations_of of,
                                 struct bh_str key, struct bh_str name)
{
    const struct block *b = bh_map_get(&a->of[of == BH_ANNOTATIONS_PODS], key.p, key.n);

    for (const char *p = b ? b->text : NULL; p && p < b->text + b->n;) {
        struct bh_str k = bh_str_c(p), v = bh_str_c(p + k.n + 1);
        if (bh_str_eq(k, name))
            return v;
        p = v.p + v.n + 1;
    }
    return (struct bh_str){NULL, 0};
}
