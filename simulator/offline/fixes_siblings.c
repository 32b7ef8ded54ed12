/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes_siblings.c - a change of an owner's template changes all of its pods
 *
 * The commands of such a change patch a Deployment or the like, whose controller then replaces the
 * pods that are on nodes. So they count with the changed template while the change is tried: a
 * sibling is no victim of a higher priority that it gets, too, and half of each one's size is free.
 * Simplification: the replaced pods stay on their nodes.
 */
#include "simulator/offline/fixes_int.h"

#include "scheduler/cache/node_info.h"

struct sibling { /* a pod on a node, as it is without the change */
    struct bh_pod_rec *pod;
    bh_shape_id shape; /* one reference */
};
struct bh_fix_siblings {
    struct bh_fixes *f;
    const struct bh_shape_rec *of; /* the pod that waits */
    struct sibling *v;
    size_t n, cap;
};

static bool is_sibling(const struct bh_shape_rec *a, const struct bh_shape_rec *b)
{
    return a->owner != BH_SYM_NONE && a->owner == b->owner && a->owner_kind == b->owner_kind &&
           a->namespace_ == b->namespace_;
}

static void collect_siblings(void *arg, bh_sym node)
{
    struct bh_fix_siblings *s = arg;
    struct bh_engine *e = s->f->w->engine;
    const struct bh_node_info *ni = bh_engine_node_info(e, node);

    for (uint32_t i = 0; ni && i < ni->n_pods; i++) {
        const struct bh_pod_info *p = ni->pods[i];
        if (!is_sibling(p->shape, s->of) ||
            bh_engine_is_assumed(e, bh_rec_text(p->rec, p->rec->uid)))
            continue;
        BH_GROW(s->v, s->n, s->cap);
        s->v[s->n++] = (struct sibling){.pod = bh_memdup(p->rec, p->rec->h.size),
                                        .shape = bh_engine_shape(e, p->shape)};
    }
}

static bool read_pod(struct bh_fixes *f, const struct bh_json *tree, struct bh_offline_object *x)
{
    struct bh_err err;

    return tree && bh_offline_read(f->w->engine, f->a, &bh_kinds[BH_KIND_POD], tree, x, &err) == 0;
}

struct bh_fix_siblings *bh_fixes_change_siblings(struct bh_fixes *f, const struct bh_fix *x)
{
    struct bh_engine *e = f->w->engine;
    struct bh_offline_object now, then;
    struct bh_fix_siblings *s;

    if (!x->pod || !bh_fixes_patches_owner(f) || !read_pod(f, f->pod, &now) ||
        !read_pod(f, x->tree, &then))
        return NULL;
    s = bh_calloc(1, sizeof(*s));
    s->f = f;
    s->of = now.shape;
    bh_engine_each_node(e, collect_siblings, s);
    const bh_shape_id changed = bh_engine_shape(e, then.shape);
    for (size_t i = 0; i < s->n; i++)
        bh_engine_put_pod(e, s->v[i].pod, changed);
    bh_engine_shape_unref(e, changed);
    return s;
}

void bh_fixes_restore_siblings(struct bh_fix_siblings *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        bh_engine_put_pod(s->f->w->engine, s->v[i].pod, s->v[i].shape);
        bh_engine_shape_unref(s->f->w->engine, s->v[i].shape);
        free(s->v[i].pod);
    }
    free(s->v);
    free(s);
}
