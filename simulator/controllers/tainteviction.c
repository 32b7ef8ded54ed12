/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/tainteviction.c - pods leave tainted nodes, and nodes that are gone
 *
 * A pod that does not tolerate one of its node's NoExecute taints is deleted at once; one that
 * tolerates all of them goes after the smallest tolerationSeconds among the tolerations it uses,
 * unless the taints have gone by then. A pod that already waits keeps its time.
 * A node that is gone for 40 s takes its pods with it, without grace: no kubelet could stop them.
 * Pods bound to a node that never was are left alone: they wait for it, as in an import.
 * Owns:       c->tainted: nodes with NoExecute taints -> their list as text.
 * Upstream:   pkg/controller/tainteviction/taint_eviction.go, pkg/controller/podgc/gc_controller.go
 *             (orphaned pods) (v1.36); differences: no device taints; the above; finished pods are
 *             kept in any number, and so are terminating ones that were not bound.
 */
#include "simulator/controllers/controllers.h"

#define COMPONENT "taint-eviction-controller"
#define NEVER     INT64_MAX

/* ---- how long -------------------------------------------------------------------------------- */

/* Time the pod may stay: 0 = none, NEVER = as long as it likes. */
static int64_t may_stay(const struct bh_json *pod, const struct bh_json *taints)
{
    const struct bh_json *spec = bh_tree_obj(pod, "spec");
    int64_t stay = NEVER;

    bh_json_each(t, taints) {
        bool any = false;
        if (!bh_tree_is(t, "effect", "NoExecute"))
            continue;
        bh_json_each(tol, bh_tree_arr(spec, "tolerations")) {
            if (!bh_ctl_tolerates(tol, t))
                continue;
            any = true;
            int64_t s = bh_json_get_i64(tol, "tolerationSeconds", 0);
            if (bh_tree_has(tol, "tolerationSeconds")) /* beyond a lifetime all are alike */
                stay = BH_MIN(stay, BH_MIN(BH_MAX(s, 0), INT32_MAX) * 1000000000);
        }
        if (!any)
            return 0;
    }
    return stay;
}

static void look(struct bh_sim_controllers *c, const struct bh_sim_obj *pod,
                 const struct bh_json *taints)
{
    struct bh_arena_mark mark = bh_arena_mark(&c->arena);
    int64_t stay = pod->deleting ? NEVER : may_stay(bh_sim_obj_tree(&c->arena, pod), taints);

    if (stay == NEVER && !pod->deleting) {
        if (bh_ctl_dequeue(c, BH_CTL_TAINT_EVICTION, pod->ns, pod->name))
            bh_sim_event(c->sim, pod, "Normal", "TaintManagerEviction", COMPONENT,
                         "Cancelling deletion of Pod %s/%s", pod->ns, pod->name);
    } else if (stay != NEVER &&
               (!stay || !bh_ctl_waits(c, BH_CTL_TAINT_EVICTION, pod->ns, pod->name)))
        bh_ctl_again(c, BH_CTL_TAINT_EVICTION, pod, stay);
    bh_arena_rewind(&c->arena, mark);
}

/* ---- eviction -------------------------------------------------------------------------------- */

/* The condition DisruptionTarget, and with fail the phase of a pod that no kubelet runs any more. */
struct disruption {
    struct bh_sim_controllers *c;
    const char *reason, *message;
    bool fail;
};

static bool set_disrupted(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    const struct disruption *d = arg;
    int64_t generation = bh_tree_i64(pod, "metadata.generation", 0);

    bh_tree_set_condition(a, pod, "DisruptionTarget", "True", d->reason, d->message,
                          bh_ctl_now(d->c, a));
    if (generation)
        bh_json_set_i64(a, bh_tree_condition(pod, "DisruptionTarget"), "observedGeneration",
                        generation);
    if (d->fail && !bh_tree_is(pod, "status.phase", "Succeeded"))
        bh_json_set_str(a, bh_json_obj_at(a, pod, "status"), "phase", "Failed");
    return true;
}

void bh_ctl_sync_taint_eviction(struct bh_sim_controllers *c, struct bh_sim_obj *pod)
{
    const struct disruption why = {c, "DeletionByTaintManager",
                                   "Taint manager: deleting due to NoExecute taint", false};

    if (!*pod->node_name || !bh_map_get(&c->tainted, pod->node_name, strlen(pod->node_name)))
        return;
    bh_sim_event(c->sim, pod, "Normal", "TaintManagerEviction", COMPONENT,
                 "Marking for deletion Pod %s/%s", pod->ns, pod->name);
    bh_ctl_edit(c, pod, BH_SIM_STATUS, set_disrupted, &why);
    if (bh_ctl_delete(c, pod))
        bh_ctl_again(c, BH_CTL_TAINT_EVICTION, pod, BH_CTL_RETRY_NS);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The NoExecute ones as text; NULL when there are none. */
static char *no_execute(const struct bh_json *taints)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_json_each(t, taints) {
        if (bh_tree_is(t, "effect", "NoExecute")) {
            bh_buf_addc(&b, b.n ? ',' : '[');
            bh_json_write(&b, t);
        }
    }
    bh_buf_adds(&b, "]");
    return b.n > 1 ? bh_buf_take(&b) : NULL;
}

void bh_ctl_taints_of(struct bh_sim_controllers *c, const char *node, const struct bh_json *taints)
{
    char *now = no_execute(taints), *was = bh_map_get(&c->tainted, node, strlen(node));

    if ((!now && !was) || (now && was && bh_streq(now, was))) {
        free(now);
        return;
    }
    if (now)
        bh_map_put(&c->tainted, node, strlen(node), now);
    else
        bh_map_del(&c->tainted, node, strlen(node));
    free(was);
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_on_node(c->sim, node);
    for (size_t i = 0; i < l.n; i++)
        look(c, l.v[i], taints);
}

/* Pods that come to a tainted node, or get other tolerations there. */
void bh_ctl_taint_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                         struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    struct bh_arena_mark mark = bh_arena_mark(&c->arena);
    struct bh_json *taints = NULL;

    if (change == BH_SIM_DELETED) {
        if (*obj->node_name)
            bh_ctl_dequeue(c, BH_CTL_TAINT_EVICTION, obj->ns, obj->name);
        return;
    }
    if (!c->tainted.len || !*obj->node_name ||
        (old && bh_streq(old->node_name, obj->node_name) && old->generation == obj->generation))
        return;
    const char *text = bh_map_get(&c->tainted, obj->node_name, strlen(obj->node_name));
    if (text && bh_json_parse(&c->arena, text, strlen(text), 0, &taints, NULL) == 0)
        look(c, obj, taints);
    bh_arena_rewind(&c->arena, mark);
}

/* ---- nodes that are gone --------------------------------------------------------------------- */

void bh_ctl_sync_podgc(struct bh_sim_controllers *c, const char *ns BH_UNUSED, const char *node)
{
    const struct disruption why = {c, "DeletionByPodGC", "PodGC: node no longer exists", true};
    size_t budget = BH_CTL_BATCH;

    if (bh_sim_get(c->sim, c->t.nodes, "", node))
        return;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_on_node(c->sim, node);
    for (size_t i = 0; i < l.n && budget; i++) {
        const struct bh_sim_obj *p = l.v[i];
        const struct bh_sim_delete_options o = {.grace_s = 0, .uid = p->uid};
        if (p->deleting && p->has_finalizers)
            continue; /* left to the owner of a finalizer */
        budget--;
        bh_ctl_edit(c, p, BH_SIM_STATUS, set_disrupted, &why);
        bh_sim_delete(c->sim, p->type, p->ns, p->name, &o, NULL);
    }
    if (!budget)
        bh_ctl_enqueue(c, BH_CTL_PODGC, "", node);
}
