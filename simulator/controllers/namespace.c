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
    struct bh_json *o;

    if (bh_sim_get(c->sim, c->t.serviceaccounts, ns, "default"))
        return;
    o = bh_json_new(&c->pod_arena, BH_JSON_OBJECT);
    bh_json_set_str(&c->pod_arena, bh_json_obj_at(&c->pod_arena, o, "metadata"), "name", "default");
    bh_sim_create(c->sim, c->t.serviceaccounts, ns, &c->pod_arena, o, NULL, NULL);
    bh_arena_reset(&c->pod_arena);
}

static bool finalize(void *arg, struct bh_arena *a, struct bh_json *ns)
{
    struct bh_json *list = bh_tree_arr(ns, "spec.finalizers");

    (void)arg;
    (void)a;
    bh_json_each(f, list) {
        if (bh_streq(bh_json_cstr(f) ? bh_json_cstr(f) : "", "kubernetes")) {
            bh_json_remove(list, f);
            return true;
        }
    }
    return false;
}

/* Deletes up to *budget objects; true when objects of the type are left. */
static bool empty_type(struct bh_sim_controllers *c, const struct bh_sim_type *t, const char *ns,
                       size_t *budget)
{
    struct bh_sim_objs l = {0};
    bool left;

    bh_sim_list(c->sim, t, ns, &l);
    for (size_t i = 0; i < l.n && *budget; i++) {
        struct bh_sim_delete_options o = {.grace_s = -1, .uid = l.v[i]->uid};
        if (l.v[i]->deleting)
            continue;
        bh_sim_delete(c->sim, t, ns, l.v[i]->name, &o, NULL);
        (*budget)--;
    }
    left = l.n > 0;
    bh_sim_objs_fini(&l);
    if (!left)
        return false;
    bh_sim_list(c->sim, t, ns, &l);
    left = l.n > 0;
    bh_sim_objs_fini(&l);
    return left;
}

void bh_ctl_sync_namespace(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    struct bh_sim_obj *o = bh_sim_get(c->sim, c->t.namespaces, "", name);
    size_t budget = BH_CTL_BATCH;
    bool left = false;

    (void)ns;
    if (!o)
        return;
    if (!o->deleting) {
        add_service_account(c, name);
        return;
    }
    for (size_t i = 0; i < bh_sim_type_count(c->sim) && budget; i++) {
        const struct bh_sim_type *t = bh_sim_type_at(c->sim, i);
        if (t && (t->flags & BH_SIM_NAMESPACED) && bh_sim_type_stores(t) && bh_sim_count(c->sim, t))
            left = empty_type(c, t, name, &budget) || left;
    }
    if (!budget)
        bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", name);
    else if (!left)
        bh_sim_edit(c->sim, c->t.namespaces, "", name, NULL, BH_SIM_WHOLE, finalize, NULL, NULL,
                    NULL);
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
