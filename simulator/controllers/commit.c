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

static int workload_of(const struct bh_sim_controllers *c, const struct bh_sim_type *t)
{
    const struct {
        const struct bh_sim_type *type;
        enum bh_ctl ctl;
    } table[] = {
        {c->t.replicasets, BH_CTL_REPLICASET},
        {c->t.deployments, BH_CTL_DEPLOYMENT},
        {c->t.jobs, BH_CTL_JOB},
        {c->t.statefulsets, BH_CTL_STATEFULSET},
        {c->t.daemonsets, BH_CTL_DAEMONSET},
        {c->t.replicationcontrollers, BH_CTL_REPLICATIONCONTROLLER},
        {c->t.pdbs, BH_CTL_PDB},
        {c->t.cronjobs, BH_CTL_CRONJOB},
        {c->t.hpas, BH_CTL_HPA},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(table); i++) {
        if (table[i].type == t)
            return (int)table[i].ctl;
    }
    return -1;
}

static void owner_free(struct bh_ctl_owner *o)
{
    if (!o)
        return;
    free(o->ns);
    free(o->name);
    free(o);
}

static void remember(struct bh_sim_controllers *c, enum bh_ctl ctl, const struct bh_sim_obj *obj)
{
    struct bh_ctl_owner *o = bh_malloc(sizeof(*o));

    *o = (struct bh_ctl_owner){ctl, bh_strdup(obj->ns), bh_strdup(obj->name)};
    owner_free(bh_map_put(&c->owners, obj->uid, strlen(obj->uid), o));
}

static void enqueue_owner(struct bh_sim_controllers *c, const struct bh_sim_obj *obj)
{
    const struct bh_ctl_owner *o;

    if (!*obj->owner_uid)
        return;
    o = bh_map_get(&c->owners, obj->owner_uid, strlen(obj->owner_uid));
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
static void enqueue_all(struct bh_sim_controllers *c, const struct bh_sim_type *t, enum bh_ctl ctl,
                        const char *ns)
{
    struct bh_sim_objs l;

    if (!bh_sim_count(c->sim, t))
        return;
    bh_sim_list(c->sim, t, ns, &l);
    for (size_t i = 0; i < l.n; i++)
        bh_ctl_enqueue(c, ctl, l.v[i]->ns, l.v[i]->name);
    bh_sim_objs_fini(&l);
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
    enqueue_all(c, c->t.daemonsets, BH_CTL_DAEMONSET, NULL);
}

static bool is_scaled(const struct bh_sim_obj *obj)
{
    return (obj->type->flags & BH_SIM_HAS_SCALE) != 0;
}

void bh_ctl_workload_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                            struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    int ctl;

    if (obj->type == c->t.pods) {
        pod_commit(c, change, old, obj);
        return;
    }
    if (obj->type == c->t.nodes) {
        node_commit(c, change, old, obj);
        return;
    }
    ctl = workload_of(c, obj->type);
    if (ctl < 0)
        return;
    if (change == BH_SIM_ADDED)
        remember(c, (enum bh_ctl)ctl, obj);
    else if (change == BH_SIM_DELETED)
        owner_free(bh_map_del(&c->owners, obj->uid, strlen(obj->uid)));
    /* A status of our own making is no reason to look again. */
    if (change != BH_SIM_DELETED && (!old || old->generation != obj->generation ||
                                     old->deleting != obj->deleting || ctl == BH_CTL_DEPLOYMENT))
        bh_ctl_enqueue(c, (enum bh_ctl)ctl, obj->ns, obj->name);
    if (is_scaled(obj))
        enqueue_all(c, c->t.hpas, BH_CTL_HPA, obj->ns);
    enqueue_owner(c, obj); /* a replica set's deployment, a job's cron job */
}

void bh_ctl_commit_fini(struct bh_sim_controllers *c)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(&c->owners, &it));)
        owner_free(e->value);
    bh_map_fini(&c->owners);
    bh_map_fini(&c->pdb_due);
}
