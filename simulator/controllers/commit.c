/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/commit.c - start, stop, and who is told of which commit
 *
 * Owns:       owners, the table from a workload's uid to its key: pods and replica sets name their
 *             owner by uid only in their hot fields.
 * Invariants: owners holds exactly the workload objects of the store, as far as the listener is.
 */
#include "simulator/controllers/controllers.h"

#define PDB_DELAY_NS  100000000   /* counting is linear in the pods of a namespace */
#define QUARANTINE_NS 40000000000 /* how long the pods of a node that is gone are left */

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

static void pod_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                       const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    if (change == BH_SIM_MODIFIED && same_pod(old, obj))
        return;
    enqueue_owner(c, obj);
    if (old && !bh_streq(old->owner_uid, obj->owner_uid))
        enqueue_owner(c, old);
    size_t n = strlen(obj->ns);
    if (!bh_sim_count(c->sim, c->t.pdbs) || bh_map_get(&c->pdb_due, obj->ns, n))
        return;
    bh_map_put(&c->pdb_due, obj->ns, n, c);
    bh_ctl_enqueue_after(c, BH_CTL_PDB, obj->ns, "", bh_ctl_delay(c, PDB_DELAY_NS));
}

/* All objects of one type and namespace (NULL = all) look again. */
static void enqueue_all(struct bh_sim_controllers *c, enum bh_ctl ctl, const char *ns)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_listed(c->sim, bh_ctl_type(c, ctl), ns);

    for (size_t i = 0; i < l.n; i++)
        bh_ctl_again(c, ctl, l.v[i], 0);
}

bool bh_ctl_same_labels(const struct bh_sim_obj *a, const struct bh_sim_obj *b)
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

static void workload_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                            struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    if (obj->type == c->t.pods) {
        pod_commit(c, change, old, obj);
        return;
    }
    if (obj->type == c->t.nodes) {
        /* Labels and taints decide where daemons run; a node's status alone does not. */
        if (change != BH_SIM_MODIFIED || !bh_ctl_same_spec(old, obj) ||
            !bh_ctl_same_labels(old, obj))
            enqueue_all(c, BH_CTL_DAEMONSET, NULL);
        return;
    }
    enum bh_ctl ctl = bh_ctl_workload_of(c, obj->type);
    if (ctl == BH_CTL_N)
        return;
    if (change == BH_SIM_ADDED)
        free(bh_map_put(&c->owners, obj->uid, strlen(obj->uid), bh_ctl_known_new(obj, ctl)));
    else if (change == BH_SIM_DELETED)
        free(bh_map_del(&c->owners, obj->uid, strlen(obj->uid)));
    /* A status of our own making is no reason to look again, and who else would write one? Upstream's
     * suite does, of a replication controller. */
    if (change != BH_SIM_DELETED &&
        (!old || old->generation != obj->generation || old->deleting != obj->deleting ||
         ctl == BH_CTL_DEPLOYMENT || ctl == BH_CTL_REPLICATIONCONTROLLER))
        bh_ctl_again(c, ctl, obj, 0);
    if (obj->type->flags & BH_SIM_HAS_SCALE)
        enqueue_all(c, BH_CTL_HPA, obj->ns);
    enqueue_owner(c, obj); /* a replica set's deployment, a job's cron job */
    if (old && !bh_streq(old->owner_uid, obj->owner_uid))
        enqueue_owner(c, old);
}

/* ---- start, stop ----------------------------------------------------------------------------- */

/* Every commit comes through here; most are pods, leases and events, which leave early. */
static void on_commit(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                      struct bh_sim_obj *obj)
{
    struct bh_sim_controllers *c = arg;

    if (obj->type == c->t.pods) {
        bh_ctl_count_commit(c, change, old, obj);
        bh_ctl_kubelet_commit(c, change, old, obj);
        bh_ctl_resize_commit(c, old, obj);
        bh_ctl_taint_commit(c, change, old, obj);
        /* Bound to a node that is gone: the scheduler may hear of its deletion later than of the
         * pod, after a restart of this server for one. */
        if (change != BH_SIM_DELETED && *obj->node_name && !(old && *old->node_name) &&
            !bh_sim_get(c->sim, c->t.nodes, "", obj->node_name))
            bh_ctl_enqueue_after(c, BH_CTL_PODGC, "", obj->node_name, QUARANTINE_NS);
    } else if (obj->type == c->t.nodes) {
        bh_ctl_node_commit(c, change, old, obj);
        bh_ctl_nodelife_commit(c, change, old, obj);
        if (change == BH_SIM_DELETED)
            bh_ctl_enqueue_after(c, BH_CTL_PODGC, "", obj->name, QUARANTINE_NS);
    }
    bh_ctl_adopt_commit(c, change, old, obj); /* first: what is adopted is not made */
    workload_commit(c, change, old, obj);
    bh_ctl_namespace_commit(c, change, old, obj);
    bh_ctl_gc_commit(c, change, old, obj);
    bh_ctl_volume_commit(c, change, old, obj);
    bh_ctl_podclaim_commit(c, change, old, obj);
    bh_ctl_quota_commit(c, change, old, obj);
    bh_ctl_service_commit(c, change, obj);
    bh_ctl_podgroup_commit(c, change, old, obj);
    bh_ctl_coscheduling_commit(c, change, old, obj);
    bh_ctl_job_commit(c, change, obj);
}

struct bh_sim_controllers *bh_sim_controllers_start(struct bh_sim *s,
                                                    const struct bh_sim_controller_options *o)
{
    struct bh_sim_controllers *c = bh_calloc(1, sizeof(*c));

    c->sim = s;
    c->opt = *o;
    if (c->opt.node_grace_ns <= 0)
        c->opt.node_grace_ns = 40000000000;
    c->t = (struct bh_ctl_types){
        .pods = bh_sim_type_find("", "v1", "pods"),
        .nodes = bh_sim_type_find("", "v1", "nodes"),
        .namespaces = bh_sim_type_find("", "v1", "namespaces"),
        .configmaps = bh_sim_type_find("", "v1", "configmaps"),
        .serviceaccounts = bh_sim_type_find("", "v1", "serviceaccounts"),
        .claims = bh_sim_type_find("", "v1", "persistentvolumeclaims"),
        .replicationcontrollers = bh_sim_type_find("", "v1", "replicationcontrollers"),
        .deployments = bh_sim_type_find("apps", "v1", "deployments"),
        .replicasets = bh_sim_type_find("apps", "v1", "replicasets"),
        .statefulsets = bh_sim_type_find("apps", "v1", "statefulsets"),
        .daemonsets = bh_sim_type_find("apps", "v1", "daemonsets"),
        .revisions = bh_sim_type_find("apps", "v1", "controllerrevisions"),
        .jobs = bh_sim_type_find("batch", "v1", "jobs"),
        .cronjobs = bh_sim_type_find("batch", "v1", "cronjobs"),
        .hpas = bh_sim_type_find("autoscaling", "v2", "horizontalpodautoscalers"),
        .volumes = bh_sim_type_find("", "v1", "persistentvolumes"),
        .classes = bh_sim_type_find("storage.k8s.io", "v1", "storageclasses"),
        .resource_claims = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims"),
        .services = bh_sim_type_find("", "v1", "services"),
        .endpoints = bh_sim_type_find("", "v1", "endpoints"),
        .slices = bh_sim_type_find("discovery.k8s.io", "v1", "endpointslices"),
        .quotas = bh_sim_type_find("", "v1", "resourcequotas"),
        .claim_templates = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaimtemplates"),
        .podgroups = bh_sim_type_find("scheduling.k8s.io", "v1alpha2", "podgroups"),
        .workloads = bh_sim_type_find("scheduling.k8s.io", "v1alpha2", "workloads"),
        .pdbs = bh_sim_type_find("policy", "v1", "poddisruptionbudgets")};
    c->kubelet.next_pod_ip = c->kubelet.next_node_ip = 1;
    bh_sim_drain(s); /* commits made before are told by tell_present, once */
    bh_sim_listen(s, NULL, on_commit, c);
    /* What was there before the start is told as if it had just been added. */
    for (size_t i = 0; i < bh_sim_type_count(c->sim); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(c->sim, i);
        if (!t || !bh_sim_type_stores(t))
            continue;
        BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, t, NULL);
        for (size_t k = 0; k < l.n; k++)
            on_commit(c, BH_SIM_ADDED, NULL, l.v[k]);
    }
    return c;
}

void bh_sim_controllers_stop(struct bh_sim_controllers *c)
{
    if (!c)
        return;
    struct bh_map *const of_values[] = {&c->waiting, &c->nodes,       &c->tainted,
                                        &c->counts,  &c->pv_of_claim, &c->owners};
    bh_ctl_queue_fini(c);
    bh_ctl_kubelet_fini(c);
    for (size_t i = 0; i < BH_ARRAY_LEN(of_values); i++)
        bh_map_fini_values(of_values[i]);
    bh_map_fini(&c->pdb_due);
    bh_map_fini(&c->served);
    bh_map_fini(&c->adopting);
    bh_map_fini(&c->terminating);
    bh_arena_fini(&c->arena);
    bh_arena_fini(&c->pod_arena);
    free(c);
}
