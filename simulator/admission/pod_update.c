/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_update.c - what an update may change in a pod
 *
 * Upstream: pkg/apis/core/validation/validation.go ValidatePodUpdate (v1.36); differences: the
 * message carries no diff; the kubelets of controllers/ resize without resources in their statuses.
 */
#include "simulator/admission/admission.h"

static const char frozen_text[] =
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)";

static void copy_member(struct bh_arena *a, struct bh_json *to, const struct bh_json *from,
                        const char *key)
{
    const struct bh_json *v = bh_json_get(from, key);

    if (v)
        bh_json_set(a, to, key, bh_json_clone(a, v));
    else
        bh_json_unset(to, key);
}

/* Images may change; everything else of a container is compared. */
static void copy_images(struct bh_arena *a, struct bh_json *to, const struct bh_json *from,
                        const char *list)
{
    struct bh_json *t = bh_tree_arr(to, list);
    const struct bh_json *f = bh_tree_arr(from, list);
    struct bh_json *c = t ? t->c.first : NULL;

    bh_json_each(o, f) {
        if (!c)
            return;
        copy_member(a, c, o, "image");
        c = c->next;
    }
}

/* Existing tolerations stay (their tolerationSeconds may change), new ones may be added. */
static void tolerations(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;

    bh_json_each(o, bh_tree_arr(w->old, "spec.tolerations")) {
        struct bh_json *want = bh_json_clone(a, o);
        bool found = false;
        if (!want)
            return;
        bh_json_unset(want, "tolerationSeconds");
        bh_json_each(n, bh_tree_arr(w->obj, "spec.tolerations")) {
            struct bh_json *have = bh_json_clone(a, n);
            if (have)
                bh_json_unset(have, "tolerationSeconds");
            found = found || (have && bh_json_equal(have, want));
        }
        if (!found) {
            bh_adm_forbidden(w, "spec", "tolerations",
                             "existing toleration can not be modified except its "
                             "tolerationSeconds");
            return;
        }
    }
}

/* A gated pod's node selector may grow. */
static void gated_selector(struct bh_sim_write *w)
{
    const struct bh_json *now = bh_tree_obj(w->obj, "spec.nodeSelector");

    bh_json_each(o, bh_tree_obj(w->old, "spec.nodeSelector")) {
        const struct bh_json *n = bh_json_get(now, o->key.p);
        if (!n || !bh_json_equal(n, o)) {
            bh_adm_invalid_value(w, "spec.nodeSelector", now, "only additions are allowed");
            return;
        }
    }
}

static void deadline(struct bh_sim_write *w)
{
    int64_t now = bh_tree_i64(w->obj, "spec.activeDeadlineSeconds", -1);
    int64_t old = bh_tree_i64(w->old, "spec.activeDeadlineSeconds", -1);

    if (old >= 0 && (now < 0 || now > old))
        bh_adm_invalid(w, "", w->obj, "spec.activeDeadlineSeconds",
                       now < 0 ? "must not update from a positive integer to nil value"
                               : "must be less than or equal to previous value");
}

/* The new spec with everything that may change put back must be the old one. */
static void frozen(struct bh_sim_write *w)
{
    static const char *const may_change[] = {"activeDeadlineSeconds", "tolerations",
                                             "schedulingGates"};
    const struct bh_json *old = bh_tree_obj(w->old, "spec");
    struct bh_json *spec = bh_json_clone(w->arena, bh_tree_obj(w->obj, "spec"));

    if (!spec || !old)
        return;
    copy_images(w->arena, spec, old, "containers");
    copy_images(w->arena, spec, old, "initContainers");
    for (size_t i = 0; i < BH_ARRAY_LEN(may_change); i++)
        copy_member(w->arena, spec, old, may_change[i]);
    if (bh_tree_i64(old, "terminationGracePeriodSeconds", 0) < 0 &&
        bh_tree_i64(spec, "terminationGracePeriodSeconds", 0) == 1)
        copy_member(w->arena, spec, old, "terminationGracePeriodSeconds");
    if (bh_tree_len(bh_tree_arr(old, "schedulingGates"))) {
        copy_member(w->arena, spec, old, "nodeSelector");
        if (bh_tree_has(old, "affinity") || bh_tree_has(spec, "affinity")) {
            struct bh_json *affinity = bh_json_obj_at(w->arena, spec, "affinity");
            copy_member(w->arena, affinity, bh_tree_obj(old, "affinity"), "nodeAffinity");
            if (!affinity->c.n && !bh_tree_has(old, "affinity"))
                bh_json_unset(spec, "affinity");
        }
        gated_selector(w);
    }
    if (!bh_json_equal(spec, old))
        bh_adm_forbidden(w, "", "spec", frozen_text);
}

static void update(struct bh_sim_write *w)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const struct bh_json *spec = bh_tree_obj(w->obj, "spec"), *old = bh_tree_obj(w->old, "spec");
    const struct bh_json *whole = bh_json_get(w->obj, "spec"), *was = bh_json_get(w->old, "spec");

    if (whole && was && bh_json_equal(whole, was))
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        if (bh_tree_len(bh_tree_arr(spec, lists[i])) != bh_tree_len(bh_tree_arr(old, lists[i]))) {
            bh_adm_forbidden(w, "spec", lists[i], "pod updates may not add or remove containers");
            return;
        }
    }
    deadline(w);
    tolerations(w);
    size_t i = 0;
    bh_json_each(n, bh_tree_arr(w->obj, "spec.schedulingGates")) {
        const char *name = bh_tree_str(n, "name"),
                   *at = bh_adm_path(w, "spec.schedulingGates[%zu]", i++);
        bool known = false;
        bh_json_each(o, bh_tree_arr(w->old, "spec.schedulingGates"))
            known = known || (name && bh_tree_is(o, "name", name));
        if (!known)
            bh_adm_forbidden(w, at, "name",
                             bh_adm_path(w,
                                         "only deletion is allowed, but found new scheduling "
                                         "gate '%.63s'",
                                         name ? name : ""));
    }
    frozen(w);
}

/* ---- resize ---------------------------------------------------------------------------------- */

static bool has_lost(const struct bh_json *now, const struct bh_json *old)
{
    bh_json_each(o, old)
        if (!bh_json_get(now, o->key.p))
            return true;
    return false;
}

/* c gets o's cpu and memory back. */
static void put_back(struct bh_arena *a, struct bh_json *c, const struct bh_json *o,
                     const char *which)
{
    struct bh_json *now = bh_json_obj_at(a, bh_json_obj_at(a, c, "resources"), which);
    const struct bh_json *old = bh_tree_obj(bh_tree_obj(o, "resources"), which);

    copy_member(a, now, old, "cpu");
    copy_member(a, now, old, "memory");
    if (!now->c.n)
        bh_json_unset(bh_tree_obj(c, "resources"), which);
}

/* spec: a copy of the new one, which gets the old cpu and memory back. */
static void resize_list(struct bh_sim_write *w, struct bh_json *spec, const struct bh_json *old,
                        const char *list)
{
    static const char *const maps[] = {"requests", "limits"};
    struct bh_json *c = bh_json_first(bh_tree_arr(spec, list));
    size_t i = 0;

    for (const struct bh_json *o = bh_json_first(bh_tree_arr(old, list)); o && c;
         o = o->next, c = c->next, i++) {
        if (bh_streq(list, "initContainers") && !bh_tree_is(o, "restartPolicy", "Always"))
            continue;
        for (size_t k = 0; k < BH_ARRAY_LEN(maps); k++) {
            if (has_lost(bh_tree_obj(bh_tree_obj(c, "resources"), maps[k]),
                         bh_tree_obj(bh_tree_obj(o, "resources"), maps[k])))
                bh_adm_forbidden(w, bh_adm_path(w, "spec.%s[%zu].resources", list, i), maps[k],
                                 bh_adm_path(w, "resource %s cannot be removed", maps[k]));
            put_back(w->arena, c, o, maps[k]);
        }
        if (!bh_tree_len(bh_tree_obj(c, "resources")) && !bh_tree_has(o, "resources"))
            bh_json_unset(c, "resources");
    }
}

/* A node that can resize reports what its containers have. */
static bool can_resize(const struct bh_json *pod)
{
    bh_json_each(c, bh_tree_arr(pod, "status.containerStatuses"))
        if (bh_tree_obj(c, "state.running"))
            return bh_tree_has(c, "resources");
    return true;
}

static void resize(struct bh_sim_write *w)
{
    const struct bh_json *old = bh_tree_obj(w->old, "spec");
    struct bh_json *spec = bh_json_clone(w->arena, bh_tree_obj(w->obj, "spec"));

    if (!spec || !old)
        return;
    if (!bh_streq(bh_adm_pod_qos(bh_tree_obj(w->obj, "spec")), bh_adm_pod_qos(old)))
        bh_adm_invalid_text(w, "spec", bh_json_get_text(bh_tree_obj(w->obj, "status"), "qosClass"),
                            "Pod QOS Class may not change as a result of resizing");
    if (!bh_sim_has_kubelet(w->sim) && !can_resize(w->old))
        bh_adm_forbidden(w, "", "spec", "Pod running on node without support for resize");
    resize_list(w, spec, old, "initContainers");
    resize_list(w, spec, old, "containers");
    if (!bh_json_equal(spec, old))
        bh_adm_forbidden(w, "", "spec", "only cpu and memory resources are mutable");
}

/* Containers for debugging: some may be added, none be changed or taken away. Upstream writes the
 * line break. */
static void debugging(struct bh_sim_write *w)
{
    const struct bh_json *all = bh_tree_arr(w->obj, "spec.ephemeralContainers");

    bh_json_each(o, bh_tree_arr(w->old, "spec.ephemeralContainers")) {
        const char *name = bh_json_get_text(o, "name");
        const struct bh_json *now = NULL;
        bh_json_each(n, all)
            now = bh_tree_is(n, "name", name) ? n : now;
        if (!now || !bh_json_equal(now, o))
            bh_adm_forbidden(w, "spec", "ephemeralContainers",
                             bh_adm_path(w, "existing ephemeral containers \"%s\" may not be %s\n",
                                         name, now ? "changed" : "removed"));
    }
}

static void claim_statuses(struct bh_sim_write *w)
{
    size_t i = 0;

    bh_json_each(s, bh_tree_arr(w->obj, "status.resourceClaimStatuses")) {
        const char *name = bh_json_get_text(s, "name");
        const char *at = bh_adm_path(w, "status.resourceClaimStatuses[%zu].name", i++);
        bool known = false;
        bh_json_each(c, bh_tree_arr(w->obj, "spec.resourceClaims"))
            known = known || bh_tree_is(c, "name", name);
        if (!known)
            bh_adm_invalid_text(w, at, name,
                                "must match the name of an entry in `spec.resourceClaims`");
    }
}

/* A nomination that comes after the binding is late: nobody would take it away again. */
static void status(struct bh_sim_write *w)
{
    const char *key = "status.nominatedNodeName", *nominated = bh_tree_str(w->obj, key);

    bh_adm_dns_subdomain(w, "", w->obj, key);
    if (nominated && *nominated && bh_tree_has(w->old, "spec.nodeName") &&
        !bh_tree_is(w->old, key, nominated))
        bh_adm_forbidden(w, "status", "nominatedNodeName",
                         "may not be set on pods that are already bound to a node");
    claim_statuses(w);
}

void bh_adm_validate_pod(struct bh_sim_write *w)
{
    if (w->op == BH_SIM_OP_EPHEMERAL)
        debugging(w);
    else if (w->op == BH_SIM_OP_RESIZE)
        resize(w);
    else if (w->op == BH_SIM_OP_UPDATE)
        update(w);
    else if (w->op == BH_SIM_OP_UPDATE_STATUS)
        status(w);
    else if (!w->error->n_causes)
        bh_adm_pod_overhead(w);
}
