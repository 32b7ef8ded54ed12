/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/volumebinding/volumes.c - which volumes a waiting claim has to look at
 */
#include "scheduler/plugins/volumebinding/volumes.h"
#include "scheduler/plugins/heads.h"

#define END BH_HEADS_END

void bh_volumes_fini(struct bh_volumes *x)
{
    free(x->v);
    bh_umap_fini(&x->by_key);
    bh_umap_fini(&x->by_list);
    *x = (struct bh_volumes){.free = END};
}

static uint64_t class_list(const char *class)
{
    return bh_object_key("class", class);
}

static uint64_t claim_list(const char *ns, const char *name)
{
    return bh_object_key(bh_streq(ns, "class") ? "class " : ns, name);
}

static void file(struct bh_volumes *x, const struct bh_object *o)
{
    const K8s__PersistentVolume *pv = (const void *)o->msg;
    const K8s__ObjectReference *r = pv->spec ? pv->spec->claimref : NULL;
    uint64_t list = r ? claim_list(r->namespace_, r->name) : class_list(bh_volume_class(pv));
    uint32_t i = x->free;

    if (i != END) {
        x->free = x->v[i].next_key;
    } else {
        BH_GROW(x->v, x->n, x->cap);
        i = x->n++;
    }
    struct bh_filed_volume *v = &x->v[i];
    *v = (struct bh_filed_volume){
        .object = o, .key = bh_object_key(o->ns, o->name), .list = list, .prev = END};
    v->next_key = bh_heads_get(&x->by_key, v->key);
    v->next = bh_heads_get(&x->by_list, v->list);
    if (v->next != END)
        x->v[v->next].prev = i;
    bh_heads_set(&x->by_key, v->key, i);
    bh_heads_set(&x->by_list, v->list, i);
}

/* Everything of that key; what there is of it now is filed anew. */
static void take_out(struct bh_volumes *x, uint64_t key)
{
    for (uint32_t i = bh_heads_get(&x->by_key, key), next; i != END; i = next) {
        struct bh_filed_volume *v = &x->v[i];
        next = v->next_key;
        if (v->next != END)
            x->v[v->next].prev = v->prev;
        if (v->prev != END)
            x->v[v->prev].next = v->next;
        else
            bh_heads_set(&x->by_list, v->list, v->next);
        *v = (struct bh_filed_volume){.next_key = x->free};
        x->free = i;
    }
    bh_heads_set(&x->by_key, key, END);
}

void bh_volumes_sync(struct bh_volumes *x, const struct bh_objects *o)
{
    uint64_t since = x->pos;

    if (!x->started || since < o->log_begin) {
        bh_volumes_fini(x);
        x->started = true;
        since = 0;
    }
    for (uint64_t pos = BH_MAX(since, o->log_begin); pos < o->log_end; pos++)
        if (bh_objects_change(o, pos)->kind == BH_KIND_PERSISTENTVOLUME)
            take_out(x, bh_objects_change(o, pos)->key);
    x->pos = o->log_end;
    bh_objects_each(ob, o, BH_KIND_PERSISTENTVOLUME) {
        if (ob->pos < since)
            break; /* the last changed come first */
        file(x, ob);
    }
}

uint32_t bh_volumes_of_class(const struct bh_volumes *x, const char *class)
{
    return bh_heads_get(&x->by_list, class_list(class));
}

uint32_t bh_volumes_of_claim(const struct bh_volumes *x, const K8s__PersistentVolumeClaim *claim)
{
    const K8s__ObjectMeta *m = claim->metadata;

    return m ? bh_heads_get(&x->by_list, claim_list(m->namespace_, m->name)) : END;
}
