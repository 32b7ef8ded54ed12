/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/resize.c - the stand-in kubelet's answer to pods/resize
 *
 * A running pod whose containers ask for something else gets it when its node has room: the new
 * resources become the actual ones in status.containerStatuses. Otherwise the condition
 * PodResizePending says Infeasible (more than the node has) or Deferred (not now: asked again every
 * ten seconds), and the old resources stay in status, which is where schedulers look for them.
 * Upstream: pkg/kubelet/allocation/allocation_manager.go; differences: no restarts by resizePolicy,
 * no PodResizeInProgress (it takes no time).
 */
#include "simulator/admission/admission.h"
#include "simulator/controllers/controllers.h"

#include "common/k8s/quantity.h"

#define AGAIN_NS 10000000000

static struct bh_json *status_of(const struct bh_json *pod, const char *name)
{
    bh_json_each(s, bh_tree_arr(pod, "status.containerStatuses"))
        if (bh_tree_is(s, "name", name))
            return s;
    return NULL;
}

static void note(struct bh_arena *a, struct bh_json *status, const struct bh_json *resources)
{
    const struct bh_json *requests = bh_tree_obj(resources, "requests");

    if (requests)
        bh_json_set(a, status, "allocatedResources", bh_json_clone(a, requests));
    if (resources)
        bh_json_set(a, status, "resources", bh_json_clone(a, resources));
}

/* ---- what there was -------------------------------------------------------------------------- */

/* Writes the old resources down where they are not yet. arg: the old pod's tree. */
static bool keep_old(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    const struct bh_json *old = arg;
    bool any = false;

    bh_json_each(c, bh_tree_arr(old, "spec.containers")) {
        const char *name = bh_tree_str(c, "name");
        struct bh_json *s = name ? status_of(pod, name) : NULL;
        if (!s || bh_tree_obj(s, "resources"))
            continue;
        note(a, s, bh_tree_obj(c, "resources"));
        any = true;
    }
    return any;
}

void bh_ctl_resize_commit(struct bh_sim_controllers *c, const struct bh_sim_obj *old,
                          const struct bh_sim_obj *obj)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (!c->opt.kubelet || !old || old->generation == obj->generation || obj->deleting ||
        !*obj->node_name || !bh_streq(obj->phase, "Running"))
        return;
    const struct bh_json *was = bh_sim_obj_tree(&a, old);
    const struct bh_json *is = bh_sim_obj_tree(&a, obj);
    if (bh_json_equal(bh_tree_arr(was, "spec.containers"), bh_tree_arr(is, "spec.containers")))
        return;
    bh_ctl_edit(c, obj, BH_SIM_STATUS, keep_old, was);
    bh_ctl_again(c, BH_CTL_RESIZE, obj, 0);
}

/* ---- what there is room for ------------------------------------------------------------------ */

struct verdict {
    const char *reason, *message, *now; /* reason NULL: granted */
};

static bh_nano others_on(struct bh_sim_controllers *c, const struct bh_sim_obj *pod,
                         const char *resource)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_on_node(c->sim, pod->node_name);
    bh_nano sum = 0;

    for (size_t i = 0; i < l.n; i++) {
        struct bh_arena_mark m = bh_arena_mark(&c->arena);
        if (!bh_streq(l.v[i]->uid, pod->uid) && !bh_ctl_pod_finished(l.v[i]))
            sum += bh_adm_containers_sum(bh_tree_obj(bh_sim_obj_tree(&c->arena, l.v[i]), "spec"),
                                         "requests", resource);
        bh_arena_rewind(&c->arena, m);
    }
    return sum;
}

static void judge(struct bh_sim_controllers *c, const struct bh_sim_obj *pod,
                  const struct bh_json *tree, struct verdict *v)
{
    static const char *const names[] = {"cpu", "memory"};
    const struct bh_sim_obj *node = bh_sim_get(c->sim, c->t.nodes, "", pod->node_name);
    const struct bh_json *room =
        node ? bh_tree_obj(bh_sim_obj_tree(&c->arena, node), "status.allocatable") : NULL;

    for (size_t i = 0; i < BH_ARRAY_LEN(names) && !v->reason; i++) {
        bh_nano want = bh_adm_containers_sum(bh_tree_obj(tree, "spec"), "requests", names[i]);
        bh_nano have;
        if (!bh_adm_parse_quantity(bh_json_get(room, names[i]), &have))
            continue;
        bh_nano used = others_on(c, pod, names[i]);
        if (want > have)
            v->reason = "Infeasible";
        else if (want + used > have)
            v->reason = "Deferred";
        else
            continue;
        v->message = bh_arena_printf(
            &c->arena,
            "Node didn't have enough %s: %s, requested: %lld, used: %lld, capacity: %lld",
            want > have ? "capacity" : "resource", names[i],
            (long long)(i ? bh_quantity_value(want) : bh_quantity_milli_value(want)),
            (long long)(i ? bh_quantity_value(used) : bh_quantity_milli_value(used)),
            (long long)(i ? bh_quantity_value(have) : bh_quantity_milli_value(have)));
    }
}

static bool write_verdict(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    const struct verdict *v = arg;
    struct bh_json *status = bh_json_obj_at(a, pod, "status");

    bh_json_set_i64(a, status, "observedGeneration", bh_tree_i64(pod, "metadata.generation", 1));
    if (v->reason) {
        bh_tree_set_condition(a, pod, "PodResizePending", "True", v->reason, v->message, v->now);
        return true;
    }
    bh_json_each(c, bh_tree_arr(pod, "spec.containers")) {
        const char *name = bh_tree_str(c, "name");
        struct bh_json *s = name ? status_of(pod, name) : NULL;
        if (s)
            note(a, s, bh_tree_obj(c, "resources"));
    }
    bh_json_remove(bh_tree_arr(pod, "status.conditions"),
                   bh_tree_condition(pod, "PodResizePending"));
    return true;
}

void bh_ctl_sync_resize(struct bh_sim_controllers *c, struct bh_sim_obj *pod)
{
    struct verdict v = {.now = bh_ctl_now(c, &c->arena)};

    if (!*pod->node_name || !bh_streq(pod->phase, "Running") || bh_ctl_node_deaf(c, pod->node_name))
        return;
    judge(c, pod, bh_sim_obj_tree(&c->arena, pod), &v);
    bh_ctl_edit(c, pod, BH_SIM_STATUS, write_verdict, &v);
    if (v.reason && bh_streq(v.reason, "Deferred"))
        bh_ctl_again(c, BH_CTL_RESIZE, pod, AGAIN_NS);
}
