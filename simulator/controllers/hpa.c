/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/hpa.c - horizontal pod autoscalers: their bounds hold; metrics there are
 * none
 *
 * A target that has fewer or more replicas than the bounds allow is scaled to the nearest one.
 * Beyond that nothing is known that could ask for a change, and the status says so.
 * Upstream: pkg/controller/podautoscaler/horizontal.go (v1.36); differences: no metrics, and so no
 * behaviour, stabilisation or tolerance; it looks when something changes, not each 15 s.
 */
#include "simulator/controllers/controllers.h"

#include <inttypes.h>

#define COMPONENT "horizontal-pod-autoscaler"

struct scale {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *target;
    int64_t replicas, current; /* wanted by the target, and there */
    int64_t want;              /* after the bounds */
    const char *why;
};

static bool set_replicas(void *arg, struct bh_arena *a, struct bh_json *o)
{
    bh_json_add(a, o, "spec: {replicas: %ld}", ((const struct scale *)arg)->want);
    return true;
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct scale *s = arg;
    const char *now = bh_ctl_now(s->c, a);

    if (!s->target) {
        bh_tree_set_condition(a, o, "AbleToScale", "False", "FailedGetScale",
                              "the HPA controller was unable to get the target's current scale",
                              now);
        return true;
    }
    bh_json_add(a, o, "status: {currentReplicas: %ld, desiredReplicas: %ld}", s->current, s->want);
    bh_tree_set_condition(a, o, "AbleToScale", "True", "SucceededGetScale",
                          "the HPA controller was able to get the target's current scale", now);
    bh_tree_set_condition(
        a, o, "ScalingActive", "False", s->replicas ? "FailedGetResourceMetric" : "ScalingDisabled",
        s->replicas ? "the HPA was unable to compute the replica count: no metrics are collected "
                      "in this cluster"
                    : "scaling is disabled since the replica count of the target is zero",
        now);
    return true;
}

static struct bh_sim_obj *target_of(struct bh_sim_controllers *c, const struct bh_json *hpa,
                                    const char *ns)
{
    const char *version = bh_tree_str(hpa, "spec.scaleTargetRef.apiVersion");
    const char *kind = bh_tree_str(hpa, "spec.scaleTargetRef.kind");
    const char *name = bh_tree_str(hpa, "spec.scaleTargetRef.name");
    const struct bh_sim_type *t =
        kind ? bh_sim_type_of_kind(version && *version ? version : NULL, kind) : NULL;

    return t && name && (t->flags & BH_SIM_HAS_SCALE) ? bh_sim_get(c->sim, t, ns, name) : NULL;
}

void bh_ctl_sync_hpa(struct bh_sim_controllers *c, struct bh_sim_obj *hpa)
{
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, hpa), *target;
    struct scale s = {.c = c, .target = target_of(c, tree, hpa->ns)};

    if (s.target) {
        bh_sim_obj_ref(s.target);
        target = bh_sim_obj_tree(&c->arena, s.target);
        s.replicas = bh_tree_i64(target, "spec.replicas", 1);
        s.current = bh_tree_i64(target, "status.replicas", 0);
        int64_t min = bh_tree_i64(tree, "spec.minReplicas", 1);
        int64_t max = bh_tree_i64(tree, "spec.maxReplicas", INT64_MAX);
        s.want = s.replicas;
        if (s.replicas && s.replicas > max) { /* scaled to nothing: autoscaling is off */
            s.want = max;
            s.why = "Current number of replicas above Spec.MaxReplicas";
        } else if (s.replicas && s.replicas < min) {
            s.want = min;
            s.why = "Current number of replicas below Spec.MinReplicas";
        }
        if (s.want != s.replicas && !bh_ctl_edit(c, s.target, BH_SIM_MAIN, set_replicas, &s))
            bh_sim_event(c->sim, hpa, "Normal", "SuccessfulRescale", COMPONENT,
                         "New size: %" PRId64 "; reason: %s", s.want, s.why);
    }
    bh_ctl_edit(c, hpa, BH_SIM_STATUS, write_status, &s);
    bh_sim_obj_unref(s.target);
}
