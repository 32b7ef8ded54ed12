/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_default.c - what a pod is given when it is created
 *
 * Upstream: pkg/apis/core/v1/defaults.go SetDefaults_Pod, pkg/registry/core/pod/strategy.go
 * PrepareForCreate, plugin/pkg/admission/{priority,defaulttolerationseconds} (v1.36); differences:
 * the service account is named but neither looked up nor mounted.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/quantity.h"

/* ---- quality of service ---------------------------------------------------------------------- */

struct qos_sum {
    bh_nano request[2], limit[2];
    bool any, every_limit;
};

static void qos_add(struct qos_sum *q, const struct bh_json *res)
{
    static const char *const names[] = {"cpu", "memory"};
    const struct bh_json *req = bh_tree_obj(res, "requests"), *lim = bh_tree_obj(res, "limits");

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        bh_nano v;
        if (bh_adm_parse_quantity(bh_json_get(req, names[i]), &v) && v > 0) {
            q->request[i] += v;
            q->any = true;
        }
        if (bh_adm_parse_quantity(bh_json_get(lim, names[i]), &v) && v > 0) {
            q->limit[i] += v;
            q->any = true;
        } else {
            q->every_limit = false;
        }
    }
}

const char *bh_adm_pod_qos(const struct bh_json *spec)
{
    struct qos_sum q = {.every_limit = true};
    const struct bh_json *pod_res = bh_tree_obj(spec, "resources");

    if (bh_tree_len(bh_tree_obj(pod_res, "requests")) ||
        bh_tree_len(bh_tree_obj(pod_res, "limits"))) {
        qos_add(&q, pod_res);
    } else {
        bh_json_each(c, bh_tree_arr(spec, "containers"))
            qos_add(&q, bh_tree_obj(c, "resources"));
        bh_json_each(c, bh_tree_arr(spec, "initContainers"))
            qos_add(&q, bh_tree_obj(c, "resources"));
    }
    if (!q.any)
        return "BestEffort";
    if (q.every_limit && q.request[0] == q.limit[0] && q.request[1] == q.limit[1])
        return "Guaranteed";
    return "Burstable";
}

/* ---- status ---------------------------------------------------------------------------------- */

/* Whatever the client sent as status is dropped: a pod is born pending. */
static void fresh_status(struct bh_sim_write *w, const struct bh_json *spec)
{
    struct bh_json *st =
        bh_json_make(w->arena, "phase: Pending, qosClass: %s", bh_adm_pod_qos(spec));

    if (bh_tree_len(bh_tree_arr(spec, "schedulingGates")))
        bh_json_add(w->arena, st,
                    "conditions: [{type: PodScheduled, status: 'False', lastProbeTime: null, "
                    "lastTransitionTime: %s, reason: SchedulingGated, message: 'Scheduling is "
                    "blocked due to non-empty scheduling gates'}]",
                    bh_adm_now(w));
    bh_json_set(w->arena, w->obj, "status", st);
}

int bh_adm_default_pod(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = bh_tree_obj(w->obj, "spec");

    /* A status write leaves the spec as it is, and the spec had its defaults. */
    if (w->op == BH_SIM_OP_UPDATE_STATUS)
        return 0;
    if (!spec)
        spec = bh_json_obj_at(a, w->obj, "spec");
    if (bh_adm_default_pod_spec(w, spec))
        return w->error->code;
    if (bh_adm_quantities_at(w, spec, "resources.requests") ||
        bh_adm_quantities_at(w, spec, "resources.limits"))
        return w->error->code;
    bh_adm_default_requests(a, spec);
    if (bh_tree_has(spec, "schedulingGroup") && !bh_tree_has(w->old, "spec.schedulingGroup") &&
        !bh_sim_feature(w->sim, "GenericWorkload"))
        bh_json_unset(spec, "schedulingGroup");
    if (w->op == BH_SIM_OP_CREATE) {
        if (bh_tree_dflt_str(a, spec, "serviceAccountName", "default"))
            bh_json_set_str(a, spec, "serviceAccount", "default");
        if (bh_adm_pod_limits(w, spec) || bh_adm_pod_priority(w, spec))
            return w->error->code;
        bh_adm_pod_tolerations(w, spec);
        if (bh_adm_pod_runtime_class(w, spec))
            return w->error->code;
        bh_adm_pod_label_keys(w, spec);
        fresh_status(w, spec);
    }
    if (w->op == BH_SIM_OP_UPDATE || w->op == BH_SIM_OP_RESIZE) {
        /* A replacement without them means "as before". */
        static const char *const keys[] = {"priority", "preemptionPolicy"};
        const struct bh_json *old = bh_tree_obj(w->old, "spec");
        for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++) {
            const struct bh_json *v = bh_json_get(old, keys[i]);
            if (v && !bh_tree_has(spec, keys[i]))
                bh_json_set(w->arena, spec, keys[i], bh_json_clone(w->arena, v));
        }
    }
    bh_adm_pod_tolerations(w, spec);
    return 0;
}
