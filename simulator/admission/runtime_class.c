/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/runtime_class.c - what a RuntimeClass adds to the pods that name it
 *
 * Upstream: plugin/pkg/admission/runtimeclass, component-helpers/node/util/runtimeclass (v1.36);
 * differences: a pod that no client has sent is taken without its class, because imported clusters
 * rarely bring their classes along.
 */
#include "simulator/admission/admission.h"

static int place(struct bh_sim_write *w, struct bh_json *spec, const struct bh_json *class)
{
    bh_json_each(m, bh_tree_obj(class, "scheduling.nodeSelector")) {
        struct bh_json *to = bh_json_obj_at(w->arena, spec, "nodeSelector");
        const struct bh_json *have = bh_json_get(to, m->key.p);
        if (have && !bh_json_equal(have, m))
            return bh_adm_forbid(w,
                                 "conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; "
                                 "pod.spec.nodeSelector[%s] = %s",
                                 m->key.p, bh_json_cstr(m), m->key.p,
                                 bh_json_cstr(have) ? bh_json_cstr(have) : "");
        if (!have)
            bh_json_set(w->arena, to, m->key.p, bh_json_clone(w->arena, m));
    }
    bh_json_each(t, bh_tree_arr(class, "scheduling.tolerations")) {
        struct bh_json *l = bh_tree_dflt_arr(w->arena, spec, "tolerations");
        bool there = false;
        bh_json_each(o, l)
            there = there || bh_json_equal(o, t);
        if (!there)
            bh_json_push(l, bh_json_clone(w->arena, t));
    }
    return 0;
}

int bh_adm_pod_runtime_class(struct bh_sim_write *w, struct bh_json *spec)
{
    const char *name = bh_tree_str(spec, "runtimeClassName");

    if (!name)
        return 0;
    const struct bh_sim_obj *o =
        bh_sim_get(w->sim, BH_SIM_TYPE("node.k8s.io", "v1", "runtimeclasses"), "", name);
    if (!o)
        return w->warnings ? bh_adm_forbid(w, "pod rejected: RuntimeClass \"%s\" not found", name)
                           : 0;
    struct bh_json *class = bh_sim_obj_tree(w->arena, o);
    const struct bh_json *fixed = bh_tree_obj(class, "overhead.podFixed");
    const struct bh_json *given = bh_tree_obj(spec, "overhead");
    if (bh_adm_quantities_at(w, class, "overhead.podFixed") ||
        bh_adm_quantities_at(w, spec, "overhead"))
        return w->error->code;
    if (fixed && bh_tree_len(given) && !bh_json_equal(given, fixed))
        return bh_adm_forbid(
            w, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
    if (fixed)
        bh_json_set(w->arena, spec, "overhead", bh_json_clone(w->arena, fixed));
    return place(w, spec, class);
}

void bh_adm_pod_overhead(struct bh_sim_write *w)
{
    const char *name = bh_tree_str(w->obj, "spec.runtimeClassName");
    const struct bh_sim_obj *o =
        name ? bh_sim_get(w->sim, BH_SIM_TYPE("node.k8s.io", "v1", "runtimeclasses"), "", name)
             : NULL;

    if (w->warnings && bh_tree_obj(w->obj, "spec.overhead") &&
        !(o && bh_tree_obj(bh_sim_obj_tree(w->arena, o), "overhead.podFixed")))
        bh_adm_forbid(w,
                      "pod rejected: Pod Overhead set without corresponding RuntimeClass defined "
                      "Overhead");
}
