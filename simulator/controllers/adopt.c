/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/adopt.c - whose selector matches it owns it, and lets go what it does not
 *
 * Looked at when a workload is made, and when labels or owners of what it could own change: a
 * namespace together, so that a thousand bare pods cost one look.
 * Upstream: pkg/controller/controller_ref_manager.go (v1.36)
 */
#include "simulator/controllers/controllers.h"

#include "common/k8s/selector.h"

#define DELAY_NS 100000000 /* looking is linear in the pods of a namespace */

static const struct bh_sim_type *child_of(const struct bh_sim_controllers *c,
                                          const struct bh_sim_type *owner)
{
    if (owner == c->t.deployments)
        return c->t.replicasets;
    return owner == c->t.replicasets || owner == c->t.replicationcontrollers ||
                   owner == c->t.statefulsets || owner == c->t.daemonsets || owner == c->t.jobs
               ? c->t.pods
               : NULL;
}

static int64_t orphan(const struct bh_sim_obj *o)
{
    return !*o->owner_uid && !o->deleting;
}

void bh_ctl_adopt_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                         const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    bool pod = obj->type == c->t.pods;

    if (change == BH_SIM_ADDED && child_of(c, obj->type) && c->orphans)
        bh_ctl_enqueue(c, BH_CTL_ADOPT, obj->ns, obj->uid);
    if (!pod && obj->type != c->t.replicasets)
        return;
    c->orphans += (change == BH_SIM_DELETED ? 0 : orphan(obj)) -
                  (change == BH_SIM_ADDED ? 0 : orphan(change == BH_SIM_DELETED ? obj : old));
    if (change == BH_SIM_DELETED ||
        (old && bh_ctl_same_labels(old, obj) && bh_streq(old->owner_uid, obj->owner_uid)))
        return;
    if (old && *obj->owner_uid)
        bh_ctl_enqueue(c, BH_CTL_ADOPT, obj->ns, obj->owner_uid);
    else if (orphan(obj) && !bh_map_put(&c->adopting, obj->ns, strlen(obj->ns), c))
        bh_ctl_enqueue_after(c, BH_CTL_ADOPT, obj->ns, "", bh_ctl_delay(c, DELAY_NS));
}

static bool own(void *owner, struct bh_arena *a, struct bh_json *o)
{
    bh_ctl_own(a, bh_json_get(o, "metadata"), owner);
    return true;
}

/* A stateful set's pods have names of its own. */
static bool may_have(const struct bh_sim_controllers *c, const struct bh_sim_obj *owner,
                     const struct bh_sim_obj *o)
{
    return owner->type != c->t.statefulsets || bh_ctl_ordinal_of(owner, o) >= 0;
}

/* What a namespace has of one kind that nobody owns; a list of the caller's. */
static struct bh_sim_objs orphans_of(struct bh_sim_controllers *c, const struct bh_sim_type *t,
                                     const char *ns)
{
    struct bh_sim_objs l = bh_sim_listed(c->sim, t, ns);
    size_t n = 0;

    for (size_t i = 0; i < l.n; i++) {
        if (orphan(l.v[i]) && !bh_ctl_pod_finished(l.v[i]))
            l.v[n++] = l.v[i];
        else
            bh_sim_obj_unref(l.v[i]);
    }
    l.n = n;
    return l;
}

static void claim(struct bh_sim_controllers *c, const struct bh_sim_obj *owner,
                  const struct bh_sim_objs *orphans)
{
    struct bh_json *of = bh_json_path(bh_sim_obj_tree(&c->arena, owner), "spec.selector");
    struct bh_selector *selector = NULL;

    if (owner->type == c->t.replicationcontrollers)
        of = bh_json_make(&c->arena, "matchLabels: %p", bh_json_clone(&c->arena, of));
    if (owner->deleting || !bh_tree_len(of) || bh_selector_from_json(of, &selector, NULL) < 0)
        return;
    for (size_t i = 0; i < orphans->n; i++) {
        struct bh_sim_obj *o = orphans->v[i];
        const struct bh_sim_obj *now = bh_sim_get(c->sim, o->type, o->ns, o->name);
        if (bh_selector_match(selector, bh_sim_get_label, o) && may_have(c, owner, o) && now &&
            orphan(now)) /* still, after the owners before this one */
            bh_ctl_edit(c, o, BH_SIM_MAIN, own, owner);
    }
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs owned = bh_sim_owned(c->sim, owner->uid, child_of(c, owner->type));
    for (size_t i = 0; i < owned.n; i++)
        if (bh_streq(owned.v[i]->owner_uid, owner->uid) && !owned.v[i]->deleting &&
            !bh_selector_match(selector, bh_sim_get_label, owned.v[i]))
            bh_ctl_edit(c, owned.v[i], BH_SIM_MAIN, bh_ctl_drop_reference, owner->uid);
    bh_selector_free(selector);
}

/* Everything that somebody of type t in ns could own. uid "": whoever it is. */
static void claim_by(struct bh_sim_controllers *c, const struct bh_sim_type *t, const char *ns,
                     const char *uid)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, t, ns);

    if (!l.n)
        return;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs orphans = orphans_of(c, child_of(c, t), ns);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_arena_mark mark = bh_arena_mark(&c->arena);
        if (!*uid || bh_streq(l.v[i]->uid, uid))
            claim(c, l.v[i], &orphans);
        bh_arena_rewind(&c->arena, mark);
    }
}

void bh_ctl_sync_adopt(struct bh_sim_controllers *c, const char *ns, const char *uid)
{
    const struct bh_sim_type *const owners[] = {c->t.deployments,  c->t.replicasets,
                                                c->t.statefulsets, c->t.replicationcontrollers,
                                                c->t.daemonsets,   c->t.jobs};
    const struct bh_ctl_known *one = bh_map_get(&c->owners, uid, strlen(uid));

    if (!*uid)
        bh_map_del(&c->adopting, ns, strlen(ns));
    for (size_t t = 0; t < BH_ARRAY_LEN(owners); t++)
        if (!*uid || (one && one->type == owners[t]))
            claim_by(c, owners[t], ns, uid);
}
