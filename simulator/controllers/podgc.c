/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/podgc.c - pods of nodes that were deleted
 *
 * A node that is gone for 40 s takes its pods with it, without grace: no kubelet could stop them.
 * Pods bound to a node that never was are left alone: they wait for it, as in an import.
 * Upstream: pkg/controller/podgc/gc_controller.go (v1.36), orphaned pods; differences: the above;
 * finished pods are kept in any number, and so are terminating ones that were not bound.
 */
#include "simulator/controllers/controllers.h"

void bh_ctl_sync_podgc(struct bh_sim_controllers *c, const char *ns, const char *node)
{
    const struct bh_ctl_disruption why = {c, "DeletionByPodGC", "PodGC: node no longer exists",
                                          true};
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
    size_t budget = BH_CTL_BATCH;

    (void)ns;
    if (bh_sim_get(c->sim, c->t.nodes, "", node))
        return;
    bh_sim_pods_on_node(c->sim, node, &l);
    for (size_t i = 0; i < l.n && budget; i++) {
        const struct bh_sim_obj *p = l.v[i];
        const struct bh_sim_delete_options o = {.grace_s = 0, .uid = p->uid};
        if (p->deleting && p->has_finalizers)
            continue; /* left to the owner of a finalizer */
        budget--;
        bh_ctl_edit(c, p, BH_SIM_STATUS, bh_ctl_set_disrupted, &why);
        bh_sim_delete(c->sim, p->type, p->ns, p->name, &o, NULL);
    }
    if (!budget)
        bh_ctl_enqueue(c, BH_CTL_PODGC, "", node);
}
