/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/small_kinds.c - namespaces, budgets, priority classes, claims, and other small kinds
 *
 * Upstream: pkg/apis/<group>/v1/defaults.go, pkg/apis/<group>/validation/validation.go,
 * pkg/registry/core/namespace/strategy.go (v1.36); differences: none known.
 */
#include "simulator/admission/admission.h"

#include <inttypes.h>

/* ---- Namespace ------------------------------------------------------------------------------- */

int bh_adm_default_namespace(struct bh_sim_write *w)
{
    struct bh_json *meta = bh_tree_obj(w->obj, "metadata");
    const char *name = bh_tree_str(meta, "name");

    if (meta && name && *name)
        bh_json_add(w->arena, meta, "labels: {kubernetes.io/metadata.name: %s}", name);
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");
    struct bh_json *list = bh_tree_dflt_arr(w->arena, spec, "finalizers");
    if (list && !list->c.n && !bh_tree_has(meta, "deletionTimestamp"))
        bh_json_push(list, bh_json_new_cstr(w->arena, "kubernetes"));
    if (w->op != BH_SIM_OP_CREATE)
        return 0;
    bh_json_add(w->arena, w->obj, "status: {phase: Active}");
    return 0;
}

/* ---- PodDisruptionBudget --------------------------------------------------------------------- */

/* A status that says nothing until the controller has counted: no disruptions are allowed. */
int bh_adm_default_pdb(struct bh_sim_write *w)
{
    if (w->op == BH_SIM_OP_CREATE)
        bh_json_set(w->arena, w->obj, "status",
                    bh_json_make(w->arena, "currentHealthy: 0, desiredHealthy: 0, "
                                           "disruptionsAllowed: 0, expectedPods: 0"));
    return 0;
}

/* ---- ConfigMap, Secret ----------------------------------------------------------------------- */

int bh_adm_default_secret(struct bh_sim_write *w)
{
    struct bh_json *plain = bh_tree_obj(w->obj, "stringData");
    struct bh_buf b = {0};

    bh_tree_dflt(w->arena, w->obj, "type: Opaque");
    if (!plain)
        return 0;
    /* stringData is write-only: it is folded into data. */
    struct bh_json *data = bh_json_obj_at(w->arena, w->obj, "data");
    bh_json_each(m, plain) {
        struct bh_str text = m->type == BH_JSON_STRING ? m->s : BH_STR("");
        bh_buf_reset(&b);
        bh_tree_add_base64(&b, text.p, text.n);
        bh_json_set_str(w->arena, data, m->key.p, bh_buf_str(&b));
    }
    bh_buf_fini(&b);
    bh_json_unset(w->obj, "stringData");
    return 0;
}

/* ---- LimitRange ------------------------------------------------------------------------------ */

int bh_adm_default_limitrange(struct bh_sim_write *w)
{
    static const char *const maps[] = {"default", "defaultRequest", "max", "min",
                                       "maxLimitRequestRatio"};
    struct bh_json *meta = bh_tree_obj(w->obj, "metadata");

    if (w->op == BH_SIM_OP_CREATE && !*bh_json_get_text(meta, "name"))
        bh_json_set_str(w->arena, meta, "name", bh_json_get_text(meta, "uid"));
    bh_json_each(item, bh_tree_arr(w->obj, "spec.limits")) {
        for (size_t i = 0; i < BH_ARRAY_LEN(maps); i++) {
            if (bh_adm_quantities_at(w, item, maps[i]))
                return w->error->code;
        }
        if (!bh_tree_is(item, "type", "Container"))
            continue;
        bh_tree_fill(w->arena, item, "default", bh_tree_obj(item, "max"));
        bh_tree_fill(w->arena, item, "defaultRequest", bh_tree_obj(item, "default"));
        bh_tree_fill(w->arena, item, "defaultRequest", bh_tree_obj(item, "min"));
    }
    return 0;
}

/* ---- resource.k8s.io ------------------------------------------------------------------------- */

int bh_adm_default_claim(struct bh_sim_write *w)
{
    if (w->op == BH_SIM_OP_CREATE)
        bh_json_set(w->arena, w->obj, "status", bh_json_new(w->arena, BH_JSON_OBJECT));
    return 0;
}

/* ---- ClusterRole ------------------------------------------------------------------------------ */

/* ---- Event ----------------------------------------------------------------------------------- */

/* These members are not pointers upstream: its JSON has them always. kubectl sorts by them. */
int bh_adm_default_event(struct bh_sim_write *w)
{
    bh_tree_dflt(w->arena, w->obj,
                 "source: {}, firstTimestamp: null, lastTimestamp: null, eventTime: null, "
                 "reportingComponent: '', reportingInstance: ''");
    return 0;
}

/* An aggregated role shows what it is made of. */
int bh_adm_default_clusterrole(struct bh_sim_write *w)
{
    const struct bh_json *rules = bh_sim_role_rules(w->sim, w->arena, w->obj);

    if (bh_tree_has(w->obj, "aggregationRule"))
        bh_json_set(w->arena, w->obj, "rules", bh_json_clone(w->arena, rules));
    return 0;
}
