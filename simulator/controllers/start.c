/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/start.c - start, stop, and which controllers are told about a commit
 */
#include "simulator/controllers/controllers.h"

#define QUARANTINE_NS 40000000000 /* how long the pods of a node that is gone are left */

static void find_types(struct bh_ctl_types *t)
{
    t->pods = bh_sim_type_find("", "v1", "pods");
    t->nodes = bh_sim_type_find("", "v1", "nodes");
    t->namespaces = bh_sim_type_find("", "v1", "namespaces");
    t->serviceaccounts = bh_sim_type_find("", "v1", "serviceaccounts");
    t->claims = bh_sim_type_find("", "v1", "persistentvolumeclaims");
    t->replicationcontrollers = bh_sim_type_find("", "v1", "replicationcontrollers");
    t->deployments = bh_sim_type_find("apps", "v1", "deployments");
    t->replicasets = bh_sim_type_find("apps", "v1", "replicasets");
    t->statefulsets = bh_sim_type_find("apps", "v1", "statefulsets");
    t->daemonsets = bh_sim_type_find("apps", "v1", "daemonsets");
    t->revisions = bh_sim_type_find("apps", "v1", "controllerrevisions");
    t->jobs = bh_sim_type_find("batch", "v1", "jobs");
    t->cronjobs = bh_sim_type_find("batch", "v1", "cronjobs");
    t->hpas = bh_sim_type_find("autoscaling", "v2", "horizontalpodautoscalers");
    t->volumes = bh_sim_type_find("", "v1", "persistentvolumes");
    t->classes = bh_sim_type_find("storage.k8s.io", "v1", "storageclasses");
    t->resource_claims = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    t->quotas = bh_sim_type_find("", "v1", "resourcequotas");
    t->claim_templates = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaimtemplates");
    t->pdbs = bh_sim_type_find("policy", "v1", "poddisruptionbudgets");
}

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
    } else if (obj->type == c->t.nodes) {
        bh_ctl_node_commit(c, change, obj);
        bh_ctl_nodelife_commit(c, change, old, obj);
        if (change == BH_SIM_DELETED)
            bh_ctl_enqueue_after(c, BH_CTL_PODGC, "", obj->name, QUARANTINE_NS);
    }
    bh_ctl_workload_commit(c, change, old, obj);
    bh_ctl_namespace_commit(c, change, old, obj);
    bh_ctl_gc_commit(c, change, old, obj);
    bh_ctl_volume_commit(c, change, old, obj);
    bh_ctl_podclaim_commit(c, change, old, obj);
    bh_ctl_quota_commit(c, change, old, obj);
}

/* What was there before the start is told as if it had just been added. */
static void tell_present(struct bh_sim_controllers *c)
{
    for (size_t i = 0; i < bh_sim_type_count(c->sim); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(c->sim, i);
        if (!t || !bh_sim_type_stores(t))
            continue;
        BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_ctl_listed(c, t, NULL);
        for (size_t k = 0; k < l.n; k++)
            on_commit(c, BH_SIM_ADDED, NULL, l.v[k]);
    }
}

struct bh_sim_controllers *bh_sim_controllers_start(struct bh_sim *s,
                                                    const struct bh_sim_controller_options *o)
{
    struct bh_sim_controllers *c = bh_calloc(1, sizeof(*c));

    c->sim = s;
    c->opt = *o;
    if (c->opt.node_grace_ns <= 0)
        c->opt.node_grace_ns = 40000000000;
    find_types(&c->t);
    c->kubelet.next_pod_ip = c->kubelet.next_node_ip = 1;
    bh_sim_drain(s); /* commits made before are told by tell_present, once */
    bh_sim_listen(s, NULL, on_commit, c);
    tell_present(c);
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
    bh_map_fini(&c->terminating);
    bh_arena_fini(&c->arena);
    bh_arena_fini(&c->pod_arena);
    free(c);
}
