/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/pdb.c - how many disruptions each budget allows now
 *
 * Upstream: pkg/controller/disruption/disruption.go (v1.36); differences: pods of one namespace are
 * counted together, at most every 100 ms; custom scale subresources are unknown.
 */
#include "simulator/controllers/controllers.h"

#include "common/k8s/selector.h"

#define DISRUPTED_NS 120000000000 /* an eviction that did not happen is forgotten after this */

struct budget {
    struct bh_sim_controllers *c;
    int64_t expected, healthy, desired, allowed;
    struct bh_json *disrupted; /* what stays of status.disruptedPods, or NULL */
};

/* Wanted replicas of the controller that decides: a replica set's deployment, or itself. */
static int64_t scale_of(struct bh_sim_controllers *c, const char *uid, const char **ret_uid)
{
    const struct bh_ctl_known *o = bh_map_get(&c->owners, uid, strlen(uid));
    const struct bh_sim_obj *obj = o && (o->type->flags & BH_SIM_HAS_SCALE)
                                       ? bh_sim_get(c->sim, o->type, o->ns, o->name)
                                       : NULL;

    if (!obj)
        return 0;
    if (o->ctl == BH_CTL_REPLICASET && *obj->owner_uid)
        return scale_of(c, obj->owner_uid, ret_uid);
    *ret_uid = bh_arena_strdup(&c->arena, obj->uid);
    return bh_tree_i64(bh_sim_obj_tree(&c->arena, obj), "spec.replicas", 1);
}

/* Each controller once, whatever the number of its pods. */
static int64_t expected_by_scale(struct bh_sim_controllers *c, const struct bh_sim_objs *pods)
{
    BH_CLEANUP(bh_map_fini) struct bh_map direct = {0}, top = {0};
    int64_t sum = 0;

    for (size_t i = 0; i < pods->n; i++) {
        const char *uid = pods->v[i]->owner_uid, *top_uid = NULL;
        if (!*uid || bh_map_put(&direct, uid, strlen(uid), c))
            continue;
        int64_t n = scale_of(c, uid, &top_uid);
        if (top_uid && !bh_map_put(&top, top_uid, strlen(top_uid), c))
            sum += n;
    }
    return sum;
}

static void count(struct budget *b, const struct bh_json *pdb, const struct bh_sim_objs *pods)
{
    const struct bh_json *min = bh_json_path(pdb, "spec.minAvailable");
    const struct bh_json *max = bh_json_path(pdb, "spec.maxUnavailable");

    /* Pods that were told to go and have not gone yet count as gone. */
    int64_t now = bh_sim_now_ns(b->c->sim);
    bh_json_each(m, bh_tree_obj(pdb, "status.disruptedPods")) {
        for (size_t i = 0; i < pods->n; i++) {
            if (!bh_streq(pods->v[i]->name, m->key.p) || pods->v[i]->deleting ||
                now > bh_ctl_time_after(bh_json_cstr(m), DISRUPTED_NS))
                continue;
            if (!b->disrupted)
                b->disrupted = bh_json_new(&b->c->arena, BH_JSON_OBJECT);
            bh_json_set(&b->c->arena, b->disrupted, m->key.p, bh_json_clone(&b->c->arena, m));
        }
    }
    for (size_t i = 0; i < pods->n; i++)
        b->healthy += !pods->v[i]->deleting && bh_ctl_pod_ready(pods->v[i]) &&
                      !bh_json_get(b->disrupted, pods->v[i]->name);
    if (max) {
        b->expected = expected_by_scale(b->c, pods);
        b->desired = BH_MAX(b->expected - bh_tree_scaled(max, b->expected, true), 0);
    } else if (bh_json_cstr(min)) {
        b->expected = expected_by_scale(b->c, pods);
        b->desired = bh_tree_scaled(min, b->expected, true);
    } else {
        b->expected = (int64_t)pods->n;
        b->desired = bh_tree_scaled(min, b->expected, true);
    }
    b->allowed = b->expected > 0 ? BH_MAX(b->healthy - b->desired, 0) : 0;
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct budget *b = arg;
    int64_t generation = bh_tree_i64(o, "metadata.generation", 0);

    bh_json_add(a, o,
                "status: {currentHealthy: %ld, desiredHealthy: %ld, disruptionsAllowed: %ld, "
                "expectedPods: %ld, observedGeneration: %ld, disruptedPods?: %p}",
                b->healthy, b->desired, b->allowed, b->expected, generation,
                bh_json_clone(a, b->disrupted));
    bh_tree_set_condition(a, o, "DisruptionAllowed", b->allowed > 0 ? "True" : "False",
                          b->allowed > 0 ? "SufficientPods" : "InsufficientPods", "",
                          bh_ctl_now(b->c, a));
    bh_json_set_i64(a, bh_tree_condition(o, "DisruptionAllowed"), "observedGeneration", generation);
    return true;
}

/* The pods that count: matched by the selector, not finished. Borrowed from all, in the arena. */
static struct bh_sim_objs matching(struct bh_sim_controllers *c, const struct bh_json *pdb,
                                   const struct bh_sim_objs *all)
{
    struct bh_selector *sel = NULL;
    struct bh_err err;
    struct bh_sim_objs ret = {0};

    if (bh_selector_from_json(bh_json_path(pdb, "spec.selector"), &sel, &err) < 0)
        return ret;
    ret.v = bh_arena_alloc(&c->arena, (all->n + 1) * sizeof(struct bh_sim_obj *));
    for (size_t i = 0; i < all->n; i++) {
        struct bh_sim_obj *p = all->v[i];
        if (!bh_ctl_pod_finished(p) && bh_selector_match(sel, bh_sim_get_label, p))
            ret.v[ret.n++] = p;
    }
    bh_selector_free(sel);
    return ret;
}

void bh_ctl_sync_pdb(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, c->t.pdbs, ns);

    if (!*name)
        bh_map_del(&c->pdb_due, ns, strlen(ns));
    if (!l.n)
        return;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs all = bh_sim_listed(c->sim, c->t.pods, ns);
    for (size_t i = 0; i < l.n; i++) {
        if (*name && !bh_streq(l.v[i]->name, name))
            continue;
        struct bh_arena_mark mark = bh_arena_mark(&c->arena);
        const struct bh_json *tree = bh_sim_obj_tree(&c->arena, l.v[i]);
        struct budget b = {.c = c};
        const struct bh_sim_objs pods = matching(c, tree, &all);
        count(&b, tree, &pods);
        bh_ctl_edit(c, l.v[i], BH_SIM_STATUS, write_status, &b);
        bh_arena_rewind(&c->arena, mark);
    }
}
