/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/record_layout.h - building records; private to the folder
 *
 * Canonical layout, which makes equal content equal bytes and validation one linear pass: after the
 * head come the arrays of the slices in the order of their members, each 8-byte aligned with zero
 * padding, nothing between them and nothing behind. An empty slice is {0, 0}. An array of terms is
 * followed by, for each term, its expressions (each array of requirements followed by its values,
 * one after the other), then its fields likewise; an array of volumes by the monitors of each. Text has
 * its NUL, also when empty.
 */
#ifndef BH_RECORD_LAYOUT_H
#define BH_RECORD_LAYOUT_H

#include "common/base/arena.h"
#include "common/k8s/record.h"

#define BH_REC_ALIGN(n) (((n) + 7) & ~(size_t)7)

/* Appends arrays; addresses change when it grows, so content is reached through offsets. After a
 * failure (arena limit, BH_REC_MAX_BYTES) every call is harmless and `failed` stays set. */
struct bh_rec_builder {
    struct bh_arena *a;
    char *p;
    size_t n, cap;
    bool failed;
};
void bh_rec_begin(struct bh_rec_builder *b, struct bh_arena *a, enum bh_rec_type t, size_t head);
/* Room for n zeroed elements; NULL when failed or n = 0. The pointer holds until the next call. */
void *bh_rec_room(struct bh_rec_builder *b, size_t n, size_t size, struct bh_slice *ret);
struct bh_slice bh_rec_put(struct bh_rec_builder *b, const void *items, size_t n, size_t size);
struct bh_slice bh_rec_put_text(struct bh_rec_builder *b, const char *s);
void *bh_rec_finish(struct bh_rec_builder *b); /* NULL when failed */
/* qsort() for what mostly is in order already: symbols are numbered as they are met first. */
void bh_rec_sort(void *v, size_t n, size_t size, int (*order)(const void *, const void *));
int bh_rec_by_name(const void *a, const void *b); /* of struct bh_res */
#endif
