/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/tainteviction.c - pods leave nodes with NoExecute taints, at once or later
 *
 * A pod that does not tolerate one of its node's NoExecute taints is deleted at once; one that
 * tolerates all of them goes after the smallest tolerationSeconds among the tolerations it uses,
 * unless the taints have gone by then. A pod that already waits keeps its time.
 * Owns:       c->tainted: nodes with NoExecute taints -> their list as text.
 * Upstream:   pkg/controller/tainteviction/taint_eviction.go (v1.36); differences: no device
 *             taints.
 */
#include "simulator/controllers/controllers.h"

#define COMPONENT "taint-eviction-controller"
#define NEVER     INT64_MAX

/* ---- how long -------------------------------------------------------------------------------- */

/* Longer than a lifetime is as good as longer. */
static int64_t seconds_of(const struct bh_json *toleration)
{
    int64_t s = bh_json_get_i64(toleration, "tolerationSeconds", 0);

    return BH_MIN(BH_MAX(s, 0), INT32_MAX);
}

/* Time the pod may stay: 0 = none, NEVER = as long as it likes. */
static int64_t may_stay(const struct bh_json *pod, const struct bh_json *taints)
{
    const struct bh_json *spec = bh_tree_obj(pod, "spec");
    int64_t stay = NEVER;

    bh_json_each(t, taints) {
        const struct bh_json *used;
        bool any = false;
        if (!bh_tree_is(t, "effect", "NoExecute"))
            continue;
        bh_json_each(tol, bh_tree_arr(spec, "tolerations")) {
            if (!bh_ctl_tolerates(tol, t))
                continue;
            any = true;
            used = bh_json_get(tol, "tolerationSeconds");
            if (used && used->type != BH_JSON_NULL)
                stay = BH_MIN(stay, seconds_of(tol) * 1000000000);
        }
        if (!any)
            return 0;
    }
    return stay;
}

static void cancel(struct bh_sim_controllers *c, const struct bh_sim_obj *pod)
{
    if (bh_ctl_dequeue(c, BH_CTL_TAINT_EVICTION, pod->ns, pod->name))
        bh_sim_event(c->sim, pod, "Normal", "TaintManagerEviction", COMPONENT,
                     "Cancelling deletion of Pod %s/%s", pod->ns, pod->name);
}

static void look(struct bh_sim_controllers *c, const struct bh_sim_obj *pod,
                 const struct bh_json *taints)
{
    struct bh_arena_mark mark = bh_arena_mark(&c->arena);
    int64_t stay = pod->deleting ? NEVER : may_stay(bh_sim_obj_tree(&c->arena, pod), taints);

    if (stay == NEVER && !pod->deleting)
        cancel(c, pod);
    else if (stay != NEVER &&
             (!stay || !bh_ctl_waits(c, BH_CTL_TAINT_EVICTION, pod->ns, pod->name)))
        bh_ctl_again(c, BH_CTL_TAINT_EVICTION, pod, stay);
    bh_arena_rewind(&c->arena, mark);
}

/* ---- eviction -------------------------------------------------------------------------------- */

bool bh_ctl_set_disrupted(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    const struct bh_ctl_disruption *d = arg;
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
    const struct bh_ctl_disruption why = {c, "DeletionByTaintManager",
                                          "Taint manager: deleting due to NoExecute taint", false};

    if (!*pod->node_name || !bh_map_get(&c->tainted, pod->node_name, strlen(pod->node_name)))
        return;
    bh_sim_event(c->sim, pod, "Normal", "TaintManagerEviction", COMPONENT,
                 "Marking for deletion Pod %s/%s", pod->ns, pod->name);
    bh_ctl_edit(c, pod, BH_SIM_STATUS, bh_ctl_set_disrupted, &why);
    if (bh_ctl_delete(c, pod))
        bh_ctl_again(c, BH_CTL_TAINT_EVICTION, pod, BH_CTL_RETRY_NS);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The NoExecute ones as text; NULL when there are none. */
static char *no_execute(const struct bh_json *taints)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    char *text;

    bh_json_each(t, taints) {
        if (bh_tree_is(t, "effect", "NoExecute")) {
            bh_buf_addc(&b, b.n ? ',' : '[');
            bh_json_write(&b, t);
        }
    }
    bh_buf_adds(&b, "]");
    text = b.n > 1 ? bh_strdup(bh_buf_str(&b)) : NULL;
    return text;
}

void bh_ctl_taints_of(struct bh_sim_controllers *c, const char *node, const struct bh_json *taints)
{
    char *now = no_execute(taints), *was;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
    bool same;

    was = bh_map_get(&c->tainted, node, strlen(node));
    same = (!now && !was) || (now && was && bh_streq(now, was));
    if (same) {
        free(now);
        return;
    }
    if (now)
        bh_map_put(&c->tainted, node, strlen(node), now);
    else
        bh_map_del(&c->tainted, node, strlen(node));
    free(was);
    bh_sim_pods_on_node(c->sim, node, &l);
    for (size_t i = 0; i < l.n; i++)
        look(c, l.v[i], taints);
}

/* Pods that come to a tainted node, or get other tolerations there. */
void bh_ctl_taint_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                         struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    struct bh_arena_mark mark = bh_arena_mark(&c->arena);
    struct bh_json *taints = NULL;
    const char *text;

    if (change == BH_SIM_DELETED) {
        if (*obj->node_name)
            bh_ctl_dequeue(c, BH_CTL_TAINT_EVICTION, obj->ns, obj->name);
        return;
    }
    if (!c->tainted.len || !*obj->node_name ||
        (old && bh_streq(old->node_name, obj->node_name) && old->generation == obj->generation))
        return;
    text = bh_map_get(&c->tainted, obj->node_name, strlen(obj->node_name));
    if (text && bh_json_parse(&c->arena, text, strlen(text), 0, &taints, NULL) == 0)
        look(c, obj, taints);
    bh_arena_rewind(&c->arena, mark);
}
