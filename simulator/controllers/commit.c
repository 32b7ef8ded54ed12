/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/commit.c - which commits concern which workload
 *
 * Owns:       owners, the table from a workload's uid to its key: pods and replica sets name their
 *             owner by uid only in their hot fields.
 * Invariants: owners holds exactly the workload objects of the store, as far as the listener is.
 */
#include "simulator/controllers/controllers.h"

#define PDB_DELAY_NS 100000000 /* counting is linear in the pods of a namespace */

static void remember(struct bh_sim_controllers *c, enum bh_ctl ctl, const struct bh_sim_obj *obj)
{
    free(bh_map_put(&c->owners, obj->uid, strlen(obj->uid), bh_ctl_known_new(obj, ctl)));
}

static void enqueue_owner(struct bh_sim_controllers *c, const struct bh_sim_obj *obj)
{
    const struct bh_ctl_known *o = bh_map_get(&c->owners, obj->owner_uid, strlen(obj->owner_uid));

    if (o)
        bh_ctl_enqueue(c, o->ctl, o->ns, o->name);
}

/* Nothing that a controller counts is different. */
static bool same_pod(const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    return old && old->deleting == obj->deleting && bh_streq(old->phase, obj->phase) &&
           bh_streq(old->owner_uid, obj->owner_uid) &&
           bh_ctl_pod_ready(old) == bh_ctl_pod_ready(obj);
}

static void budgets(struct bh_sim_controllers *c, const struct bh_sim_obj *obj)
{
    size_t n = strlen(obj->ns);

    if (!bh_sim_count(c->sim, c->t.pdbs) || bh_map_get(&c->pdb_due, obj->ns, n))
        return;
    bh_map_put(&c->pdb_due, obj->ns, n, c);
    bh_ctl_enqueue_after(c, BH_CTL_PDB, obj->ns, "", bh_ctl_delay(c, PDB_DELAY_NS));
}

static void pod_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                       const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    if (change == BH_SIM_MODIFIED && same_pod(old, obj))
        return;
    enqueue_owner(c, obj);
    if (old && !bh_streq(old->owner_uid, obj->owner_uid))
        enqueue_owner(c, old);
    budgets(c, obj);
}

/* All objects of one type and namespace (NULL = all) look again. */
static void enqueue_all(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_ctl_listed(c, bh_ctl_type(c, ctl), ns);

    for (size_t i = 0; i < l.n; i++)
        bh_ctl_again(c, ctl, l.v[i], 0);
}

static bool same_labels(const struct bh_sim_obj *a, const struct bh_sim_obj *b)
{
    if (a->n_labels != b->n_labels)
        return false;
    for (uint32_t i = 0; i < a->n_labels; i++) {
        if (!bh_streq(a->labels[i].key, b->labels[i].key) ||
            !bh_streq(a->labels[i].value, b->labels[i].value))
            return false;
    }
    return true;
}

/* Labels and taints decide where daemons run; a node's status alone does not. */
static void node_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                        const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    if (change == BH_SIM_MODIFIED && bh_ctl_same_spec(old, obj) && same_labels(old, obj))
        return;
    enqueue_all(c, BH_CTL_DAEMONSET, NULL);
}

void bh_ctl_workload_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                            struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    enum bh_ctl ctl;

    if (obj->type == c->t.pods) {
        pod_commit(c, change, old, obj);
        return;
    }
    if (obj->type == c->t.nodes) {
        node_commit(c, change, old, obj);
        return;
    }
    ctl = bh_ctl_workload_of(c, obj->type);
    if (ctl == BH_CTL_N)
        return;
    if (change == BH_SIM_ADDED)
        remember(c, ctl, obj);
    else if (change == BH_SIM_DELETED)
        free(bh_map_del(&c->owners, obj->uid, strlen(obj->uid)));
    /* A status of our own making is no reason to look again. */
    if (change != BH_SIM_DELETED && (!old || old->generation != obj->generation ||
                                     old->deleting != obj->deleting || ctl == BH_CTL_DEPLOYMENT))
        bh_ctl_again(c, ctl, obj, 0);
    if (obj->type->flags & BH_SIM_HAS_SCALE)
        enqueue_all(c, BH_CTL_HPA, obj->ns);
    enqueue_owner(c, obj); /* a replica set's deployment, a job's cron job */
}
