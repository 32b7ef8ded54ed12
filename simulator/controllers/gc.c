/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/gc.c - garbage collection along ownerReferences
 *
 * Background: when an owner is gone, dependents without another living owner are deleted.
 * Foreground: an owner with the finalizer foregroundDeletion waits until those of its dependents
 * that block it are gone. Orphan: the references are taken out of the dependents, then the owner
 * goes.
 * Invariants: waiting holds the objects that have one of the two finalizers, by uid.
 * Upstream: pkg/controller/garbagecollector (v1.36); differences: an object that is created with an
 * owner that never existed is kept, because imports from other clusters come like that.
 */
#include "simulator/controllers/controllers.h"

/* ---- references ------------------------------------------------------------------------------ */

static const struct bh_sim_obj *owner_of(struct bh_sim_controllers *c, const char *ns,
                                         const struct bh_json *ref)
{
    const char *av = bh_tree_str(ref, "apiVersion"), *kind = bh_tree_str(ref, "kind");
    const char *name = bh_tree_str(ref, "name"), *uid = bh_tree_str(ref, "uid");
    const struct bh_sim_type *t = kind ? bh_sim_find_kind(c->sim, av, kind) : NULL;
    const struct bh_sim_obj *o = NULL;

    if (t && name)
        o = bh_sim_get(c->sim, bh_sim_type_stored(t), t->flags & BH_SIM_NAMESPACED ? ns : "", name);
    return o && uid && bh_streq(o->uid, uid) ? o : NULL;
}

bool bh_ctl_drop_reference(void *uid, struct bh_arena *a BH_UNUSED, struct bh_json *o)
{
    struct bh_json *refs = bh_tree_arr(o, "metadata.ownerReferences");

    bh_json_each(r, refs) {
        if (bh_tree_is(r, "uid", uid)) {
            bh_json_remove(refs, r);
            if (!refs->c.n)
                bh_json_unset(bh_tree_obj(o, "metadata"), "ownerReferences");
            return true;
        }
    }
    return false;
}

/* ---- background ------------------------------------------------------------------------------ */

static bool other_owner_lives(struct bh_sim_controllers *c, const struct bh_sim_obj *o,
                              const char *gone)
{
    bh_json_each(r, bh_tree_arr(bh_sim_obj_tree(&c->arena, o), "metadata.ownerReferences"))
        if (!bh_tree_is(r, "uid", gone) && owner_of(c, o->ns, r))
            return true;
    return false;
}

void bh_ctl_sync_orphaned(struct bh_sim_controllers *c, const char *ns BH_UNUSED, const char *uid)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_owned(c->sim, uid, NULL);
    size_t budget = BH_CTL_BATCH;

    for (size_t i = 0; i < l.n && budget; i++) {
        if (l.v[i]->deleting)
            continue;
        budget--;
        if (other_owner_lives(c, l.v[i], uid))
            bh_ctl_edit(c, l.v[i], BH_SIM_MAIN, bh_ctl_drop_reference, uid);
        else
            bh_ctl_delete(c, l.v[i]);
    }
    if (!budget)
        bh_ctl_enqueue(c, BH_CTL_GC_ORPHANED, "", uid);
}

/* ---- foreground, orphan ---------------------------------------------------------------------- */

static struct bh_json *find_finalizer(const struct bh_json *o, const char *which)
{
    bh_json_each(f, bh_tree_arr(o, "metadata.finalizers"))
        if (bh_json_cstr(f) && bh_streq(bh_json_cstr(f), which))
            return f;
    return NULL;
}

bool bh_ctl_drop_finalizer(void *which, struct bh_arena *a BH_UNUSED, struct bh_json *o)
{
    return bh_json_remove(bh_tree_arr(o, "metadata.finalizers"), find_finalizer(o, which));
}

static bool blocks(struct bh_sim_controllers *c, const struct bh_sim_obj *o, const char *uid)
{
    bh_json_each(r, bh_tree_arr(bh_sim_obj_tree(&c->arena, o), "metadata.ownerReferences"))
        if (bh_tree_is(r, "uid", uid))
            return bh_tree_bool(r, "blockOwnerDeletion", false);
    return false;
}

/* An edit: the object stands in no owner's way. */
static bool unblock(void *arg BH_UNUSED, struct bh_arena *a, struct bh_json *o)
{
    bh_json_each(r, bh_tree_arr(o, "metadata.ownerReferences"))
        if (bh_tree_has(r, "blockOwnerDeletion"))
            bh_json_set_bool(a, r, "blockOwnerDeletion", false);
    return true;
}

/* A dependent of the object waits for its own dependents: there may be a circle. */
static bool in_circle(struct bh_sim_controllers *c, const struct bh_sim_obj *o)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_owned(c->sim, o->uid, NULL);

    for (size_t i = 0; i < l.n; i++)
        if (bh_map_get(&c->waiting, l.v[i]->uid, strlen(l.v[i]->uid)))
            return true;
    return false;
}

/* True when no dependent stands in the way any more. */
static bool foreground_done(struct bh_sim_controllers *c, const char *uid)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs before = bh_sim_owned(c->sim, uid, NULL);
    size_t budget = BH_CTL_BATCH;

    for (size_t i = 0; i < before.n && budget; i++) {
        const struct bh_sim_obj *o = before.v[i];
        const struct bh_sim_delete_options d = {
            .grace_s = -1, .uid = o->uid, .propagation = "Foreground"};
        if (o->deleting)
            continue;
        budget--;
        if (in_circle(c, o))
            bh_ctl_edit(c, o, BH_SIM_MAIN, unblock, NULL);
        bh_sim_delete(c->sim, o->type, o->ns, o->name, &d, NULL);
    }
    if (!budget) {
        bh_ctl_enqueue(c, BH_CTL_GC_DEPENDENTS, "", uid);
        return false;
    }
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs after = bh_sim_owned(c->sim, uid, NULL);
    for (size_t i = 0; i < after.n; i++)
        if (blocks(c, after.v[i], uid))
            return false;
    return true;
}

static bool orphan_done(struct bh_sim_controllers *c, const char *uid)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_owned(c->sim, uid, NULL);
    size_t n = BH_MIN(l.n, (size_t)BH_CTL_BATCH);

    for (size_t i = 0; i < n; i++)
        bh_ctl_edit(c, l.v[i], BH_SIM_MAIN, bh_ctl_drop_reference, uid);
    if (n == BH_CTL_BATCH)
        bh_ctl_enqueue(c, BH_CTL_GC_DEPENDENTS, "", uid);
    return n < BH_CTL_BATCH;
}

void bh_ctl_sync_waiting(struct bh_sim_controllers *c, const char *ns BH_UNUSED, const char *uid)
{
    static const char foreground[] = "foregroundDeletion", orphan[] = "orphan";
    const struct bh_ctl_known *w = bh_map_get(&c->waiting, uid, strlen(uid));
    const struct bh_sim_obj *o = w ? bh_sim_get(c->sim, w->type, w->ns, w->name) : NULL;
    const char *done = NULL;

    if (!o || !bh_streq(o->uid, uid)) {
        free(bh_map_del(&c->waiting, uid, strlen(uid)));
        return;
    }
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, o);
    if (find_finalizer(tree, orphan))
        done = orphan_done(c, uid) ? orphan : NULL;
    else if (find_finalizer(tree, foreground))
        done = foreground_done(c, uid) ? foreground : NULL;
    if (done)
        bh_sim_edit(c->sim, w->type, w->ns, w->name, uid, BH_SIM_MAIN, bh_ctl_drop_finalizer,
                    (void *)(uintptr_t)done, NULL, NULL);
}

/* ---- commits --------------------------------------------------------------------------------- */

void bh_ctl_gc_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                      struct bh_sim_obj *old BH_UNUSED, struct bh_sim_obj *obj)
{
    if (change != BH_SIM_DELETED) {
        if (!obj->deleting || !obj->has_finalizers ||
            (!strstr(obj->json, "\"foregroundDeletion\"") && !strstr(obj->json, "\"orphan\"")))
            return;
        if (!bh_map_get(&c->waiting, obj->uid, strlen(obj->uid)))
            bh_map_put(&c->waiting, obj->uid, strlen(obj->uid), bh_ctl_known_new(obj, BH_CTL_N));
        bh_ctl_enqueue(c, BH_CTL_GC_DEPENDENTS, "", obj->uid);
        return;
    }
    if (c->waiting.len) {
        free(bh_map_del(&c->waiting, obj->uid, strlen(obj->uid)));
        /* Owners that wait for this dependent look again. */
        for (uint32_t i = 0; i < obj->n_owners; i++) {
            const char *uid = obj->owner_uids[i];
            if (bh_map_get(&c->waiting, uid, strlen(uid)))
                bh_ctl_enqueue(c, BH_CTL_GC_DEPENDENTS, "", uid);
        }
    }
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_owned(c->sim, obj->uid, NULL);
    if (l.n)
        bh_ctl_enqueue(c, BH_CTL_GC_ORPHANED, "", obj->uid);
}
