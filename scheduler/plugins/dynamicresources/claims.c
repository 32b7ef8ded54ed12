/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/claims.c - which ResourceClaims a pod means
 */
#include <errno.h>

#include "scheduler/plugins/dynamicresources/claims.h"
#include "scheduler/plugins/volumebinding/storage.h"

#define OWNERS_SPARE 1024u /* so many may be gone before they are read anew */

static const char *namespace_of(const struct bh_dra_lookup *l)
{
    return bh_rec_text(l->pod, l->pod->namespace_).p;
}

static const char *pod_name(const struct bh_dra_lookup *l)
{
    return bh_rec_text(l->pod, l->pod->name).p;
}

/* The claim's name, BH_SYM_NONE: none is needed. */
static int name_of(const struct bh_dra_lookup *l, const struct bh_pod_claim *c, bh_sym *ret,
                   bool *ret_owned, struct bh_err *err)
{
    const struct bh_claim_status *st =
        bh_rec_at(l->pod, l->pod->claim_statuses, struct bh_claim_status);

    *ret_owned = false;
    if (c->claim != BH_SYM_NONE) {
        *ret = c->claim;
        return 0;
    }
    if (c->template_ == BH_SYM_NONE)
        return bh_err_set(err, -ENOENT,
                          "pod \"%s/%s\", spec.resourceClaim \"%s\": none of the supported fields "
                          "are set",
                          namespace_of(l), pod_name(l), bh_sym_text(l->tab, c->name));
    for (uint32_t i = 0; i < l->pod->claim_statuses.n; i++) {
        if (st[i].name != c->name)
            continue;
        *ret = st[i].claim;
        *ret_owned = true;
        return 0;
    }
    return bh_err_set(err, -ENOENT, "pod \"%s/%s\": ResourceClaim not created yet", namespace_of(l),
                      pod_name(l));
}

static int find_claim(const struct bh_dra_lookup *l, bh_sym name, bool owned,
                      const K8s__ResourceClaim **ret, struct bh_err *err)
{
    const char *ns = namespace_of(l), *text = bh_sym_text(l->tab, name);
    const K8s__ResourceClaim *c =
        (const void *)bh_objects_get(l->objects, BH_KIND_RESOURCECLAIM, ns, text);

    if (!c)
        return bh_err_set(err, -ENOENT, "could not find ResourceClaim \"%s/%s\"", ns, text);
    if (c->metadata && c->metadata->deletiontimestamp)
        return bh_err_set(err, -ENOENT, "resourceclaim \"%s\" is being deleted", text);
    if (owned && !bh_is_controlled_by(c->metadata, l->pod))
        return bh_err_set(err, -ENOENT,
                          "ResourceClaim %s/%s was not created for Pod %s/%s (Pod is not owner)",
                          ns, text, ns, pod_name(l));
    *ret = c;
    return 0;
}

int bh_dra_claims(const struct bh_dra_lookup *l, struct bh_arena *a, struct bh_dra_found *ret,
                  struct bh_err *err)
{
    const struct bh_pod_claim *c = bh_rec_at(l->shape, l->shape->claims, struct bh_pod_claim);
    const K8s__ResourceClaim *found = NULL;

    if (a) /* one more for the claim of extended resources */
        *ret = (struct bh_dra_found){
            .v = bh_arena_new_array(a, const K8s__ResourceClaim *, l->shape->claims.n + 1)};
    for (uint32_t i = 0; i < l->shape->claims.n; i++) {
        bool owned = false;
        bh_sym name = BH_SYM_NONE;
        int rc = name_of(l, &c[i], &name, &owned, err);
        if (rc == 0 && name != BH_SYM_NONE)
            rc = find_claim(l, name, owned, &found, err);
        if (rc < 0)
            return rc;
        if (a && name != BH_SYM_NONE)
            ret->v[ret->n++] = found;
    }
    return 0;
}

bool bh_dra_reserved_for(const K8s__ResourceClaim *c, struct bh_str uid)
{
    for (size_t i = 0; c->status && i < c->status->n_reservedfor; i++)
        if (bh_str_eq(bh_str_c(c->status->reservedfor[i]->uid), uid))
            return true;
    return false;
}

/* ---- the claim that stands for extended resources ---- */

static bool is_marked(const K8s__ObjectMeta *m)
{
    bool marked = false;

    for (size_t i = 0; m && i < m->n_annotations; i++)
        if (bh_streq(m->annotations[i]->key, BH_DRA_SPECIAL_ANNOTATION))
            marked = bh_streq(m->annotations[i]->value, "true");
    return marked;
}

/* The pod owns it, by name and uid, as controller; a claim that is being deleted counts too. */
static bool is_special(const struct bh_dra_lookup *l, const K8s__ResourceClaim *c)
{
    const K8s__ObjectMeta *m = c->metadata;
    bool marked = is_marked(m);

    for (size_t i = 0; marked && i < m->n_ownerreferences; i++) {
        const K8s__OwnerReference *o = m->ownerreferences[i];
        if (o->has_controller && o->controller && bh_streq(o->name, pod_name(l)) &&
            bh_str_eq(bh_str_c(o->uid), bh_rec_text(l->pod, l->pod->uid)))
            return true;
    }
    return false;
}

const char *bh_dra_special_key(struct bh_arena *a, struct bh_str uid)
{
    return bh_arena_printf(a, "extended/%s", uid.p);
}

const K8s__ResourceClaim *bh_dra_special_claim(const struct bh_dra_lookup *l)
{
    bh_objects_each(ob, l->objects, BH_KIND_RESOURCECLAIM) {
        const K8s__ResourceClaim *c = (const void *)ob->msg;
        if (bh_streq(ob->ns, namespace_of(l)) && is_special(l, c))
            return c;
    }
    return NULL;
}

bool bh_dra_may_own(struct bh_dra_owners *w, const struct bh_objects *o, struct bh_str uid)
{
    const size_t claims = o->by_name[BH_KIND_RESOURCECLAIM].len;

    if (w->uids.len > 2 * claims + OWNERS_SPARE) {
        bh_umap_clear(&w->uids);
        w->pos = 0;
    }
    for (const struct bh_object *ob = o->first[BH_KIND_RESOURCECLAIM]; ob && ob->pos >= w->pos;
         ob = ob->next) { /* the last changed first */
        const K8s__ObjectMeta *m = ((const K8s__ResourceClaim *)(const void *)ob->msg)->metadata;
        bool marked = is_marked(m);
        for (size_t i = 0; marked && i < m->n_ownerreferences; i++) {
            const char *owner = m->ownerreferences[i]->uid;
            bh_umap_put(&w->uids, bh_hash(owner, strlen(owner), 0), 1);
        }
    }
    w->pos = o->log_end;
    return bh_umap_get(&w->uids, bh_hash(uid.p, uid.n, 0), NULL);
}
