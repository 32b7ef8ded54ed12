/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/namespace.c - what every namespace has, and a dying one's end
 *
 * A namespace that is being deleted is emptied, BH_CTL_BATCH objects at a time; each object that
 * goes queues it again, and when nothing is left its finalizer is taken away, which ends it.
 * Upstream: pkg/controller/namespace/deletion, pkg/controller/serviceaccount,
 * pkg/controller/certificates/rootcacertpublisher (v1.36); difference: no conditions about what
 * remains.
 */
#include "simulator/controllers/controllers.h"

#define ROOT_CA "kube-root-ca.crt"

static void make(struct bh_sim_controllers *c, const struct bh_sim_type *t, const char *ns,
                 const char *name)
{
    if (!bh_sim_get(c->sim, t, ns, name))
        bh_sim_create(c->sim, t, ns, &c->arena,
                      bh_json_make(&c->arena, "metadata: {name: %s}", name), NULL, NULL);
}

/* Empty without TLS: that it is there is what pods wait for. */
static bool set_root_ca(void *arg, struct bh_arena *a, struct bh_json *map)
{
    const char *ca = bh_sim_ca_pem(arg);
    const struct bh_json *data = bh_tree_obj(map, "data"), *is = bh_json_get(data, "ca.crt");

    if (bh_tree_len(data) == 1 && is && bh_streq(bh_json_cstr(is), ca))
        return false;
    struct bh_json *wanted = bh_json_new(a, BH_JSON_OBJECT);
    bh_json_set_str(a, wanted, "ca.crt", ca);
    bh_json_set(a, map, "data", wanted);
    return true;
}

static bool finalize(void *arg BH_UNUSED, struct bh_arena *a BH_UNUSED, struct bh_json *ns)
{
    struct bh_json *list = bh_tree_arr(ns, "spec.finalizers");

    bh_json_each(f, list)
        if (bh_streq(bh_json_cstr(f) ? bh_json_cstr(f) : "", "kubernetes"))
            return bh_json_remove(list, f);
    return false;
}

/* Deletes up to *budget objects; true when objects of the type are left. */
static bool empty_type(struct bh_sim_controllers *c, const struct bh_sim_type *t, const char *ns,
                       size_t *budget)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs before = bh_sim_listed(c->sim, t, ns);

    for (size_t i = 0; i < before.n && *budget; i++) {
        if (before.v[i]->deleting)
            continue;
        bh_ctl_delete(c, before.v[i]);
        (*budget)--;
    }
    if (!before.n)
        return false;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs after = bh_sim_listed(c->sim, t, ns);
    return after.n > 0;
}

void bh_ctl_sync_namespace(struct bh_sim_controllers *c, struct bh_sim_obj *o)
{
    size_t budget = BH_CTL_BATCH;
    bool left = false;

    if (!o->deleting) {
        make(c, c->t.serviceaccounts, o->name, "default");
        make(c, c->t.configmaps, o->name, ROOT_CA);
        const struct bh_sim_obj *ca = bh_sim_get(c->sim, c->t.configmaps, o->name, ROOT_CA);
        if (ca)
            bh_ctl_edit(c, ca, BH_SIM_WHOLE, set_root_ca, c->sim);
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
                             struct bh_sim_obj *old BH_UNUSED, struct bh_sim_obj *obj)
{
    struct bh_map *dying = &c->terminating;
    size_t n = strlen(obj->name);

    if (obj->type != c->t.namespaces) {
        bool standard = obj->type == c->t.serviceaccounts
                            ? bh_streq(obj->name, "default")
                            : obj->type == c->t.configmaps && bh_streq(obj->name, ROOT_CA);
        if (standard && change != BH_SIM_ADDED)
            bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->ns);
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
