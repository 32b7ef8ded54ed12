/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/patch_merge.c - RFC 7386 JSON merge patch, and its inverse
 *
 * Fails with: -E2BIG (arena limit).
 */
#include "common/data/patch.h"

#include <errno.h>

/* target is private to the call (or NULL) and may be changed. NULL at the arena's limit. */
static struct bh_json *merge(struct bh_arena *a, struct bh_json *target,
                             const struct bh_json *patch)
{
    if (patch->type != BH_JSON_OBJECT)
        return bh_json_clone(a, patch);
    if (!target || target->type != BH_JSON_OBJECT)
        target = bh_json_new(a, BH_JSON_OBJECT);
    if (!target)
        return NULL;
    bh_json_each(p, patch) {
        struct bh_json *old = bh_json_get(target, p->key.p);
        if (p->type == BH_JSON_NULL) {
            if (old)
                bh_json_remove(target, old);
            continue;
        }
        struct bh_json *v = merge(a, old, p);
        if (!v || (v != old && !bh_json_set(a, target, p->key.p, v)))
            return NULL;
    }
    return target;
}

int bh_patch_merge(struct bh_arena *a, const struct bh_json *doc, const struct bh_json *patch,
                   struct bh_json **ret, struct bh_err *err)
{
    struct bh_json *copy = bh_json_clone(a, doc);
    struct bh_json *v = copy || !doc ? merge(a, copy, patch) : NULL;
    if (!v)
        return bh_err_set(err, -E2BIG, "object is too large");
    *ret = v;
    return 0;
}

struct bh_json *bh_patch_diff(struct bh_arena *a, const struct bh_json *from,
                              const struct bh_json *to)
{
    if (!from || from->type != BH_JSON_OBJECT || to->type != BH_JSON_OBJECT)
        return bh_json_clone(a, to);
    struct bh_json *d = bh_json_new(a, BH_JSON_OBJECT);
    bh_json_each(f, from)
        if (!bh_json_get(to, f->key.p))
            bh_json_set(a, d, f->key.p, bh_json_new(a, BH_JSON_NULL));
    bh_json_each(t, to) {
        const struct bh_json *f = bh_json_get(from, t->key.p);
        if (f && bh_json_equal(f, t))
            continue;
        bool both = f && f->type == BH_JSON_OBJECT && t->type == BH_JSON_OBJECT;
        bh_json_set(a, d, t->key.p, both ? bh_patch_diff(a, f, t) : bh_json_clone(a, t));
    }
    return d;
}
