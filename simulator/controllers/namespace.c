/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/namespace.c - a new namespace's service account, a dying one's end
 *
 * A namespace that is being deleted is emptied, BH_CTL_BATCH objects at a time; each object that
 * goes queues it again, and when nothing is left its finalizer is taken away, which ends it.
 * Upstream: pkg/controller/namespace/deletion, pkg/controller/serviceaccount (v1.36); differences:
 * no conditions about what remains; no config map with the cluster's certificate.
 */
#include "simulator/controllers/controllers.h"

static void add_service_account(struct bh_sim_controllers *c, const char *ns)
{
    if (bh_sim_get(c->sim, c->t.serviceaccounts, ns, "default"))
        return;
    bh_sim_create(c->sim, c->t.serviceaccounts, ns, &c->pod_arena,
                  bh_json_make(&c->pod_arena, "metadata: {name: default}"), NULL, NULL);
    bh_arena_reset(&c->pod_arena);
}

static bool finalize(void *arg, struct bh_arena *a, struct bh_json *ns)
{
    struct bh_json *list = bh_tree_arr(ns, "spec.finalizers");

    (void)arg;
    (void)a;
    bh_json_each(f, list) {
        if (bh_streq(bh_json_cstr(f) ? bh_json_cstr(f) : "", "kubernetes"))
            return bh_json_remove(list, f);
    }
    return false;
}

/* Deletes up to *budget objects; true when objects of the type are left. */
static bool empty_type(struct bh_sim_controllers *c, const struct bh_sim_type *t, const char *ns,
                       size_t *budget)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs before = bh_ctl_listed(c, t, ns);
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs after = {0};

    for (size_t i = 0; i < before.n && *budget; i++) {
        if (before.v[i]->deleting)
            continue;
        bh_ctl_delete(c, before.v[i]);
        (*budget)--;
    }
    if (before.n)
        after = bh_ctl_listed(c, t, ns);
    return after.n > 0;
}

void bh_ctl_sync_namespace(struct bh_sim_controllers *c, struct bh_sim_obj *o)
{
    size_t budget = BH_CTL_BATCH;
    bool left = false;

    if (!o->deleting) {
        add_service_account(c, o->name);
        return;
    }
    for (size_t i = 0; i < bh_sim_type_count(c->sim) && budget; i++) {
        const struct bh_sim_type *t = bh_sim_type_at(c->sim, i);
        if (t && (t->flags & BH_SIM_NAMESPACED) && bh_sim_type_stores(t) && bh_sim_count(c->sim, t))
            left = empty_type(c, t, o->name, &budget) || left;
    }
    if (!budget)
        bh_ctl_again(c, BH_CTL_NAMESPACE, o, 0);
    else if (!left)
        bh_ctl_edit(c, o, BH_SIM_WHOLE, finalize, NULL);
}

void bh_ctl_namespace_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                             struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    struct bh_map *dying = &c->terminating;
    size_t n = strlen(obj->name);

    (void)old;
    if (obj->type != c->t.namespaces) {
        if (dying->len && change == BH_SIM_DELETED && *obj->ns &&
            bh_map_get(dying, obj->ns, strlen(obj->ns)))
            bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->ns);
        return;
    }
    if (change == BH_SIM_DELETED) {
        bh_map_del(dying, obj->name, n);
    } else if (obj->deleting) {
        bh_map_put(dying, obj->name, n, c);
        bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->name);
    } else if (change == BH_SIM_ADDED) {
        bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->name);
    }
}
