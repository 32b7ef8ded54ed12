/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/claims.c - claims as controllers leave them before a scheduler sees the pod
 *
 * The store's controllers have made claims of ephemeral volumes and of ResourceClaimTemplates, and
 * bound claims that need no pod to be bound. All this is taken over for manifests, and for pods
 * that were made of workloads. What has a uid stays as it is: its cluster's controllers have
 * not acted on it.
 */
#include "simulator/trial/admit.h"
#include "simulator/server/tree.h"

#define PVCS "persistentvolumeclaims"

/* ---- one claim ------------------------------------------------------------------------------- */

static int add_or_set(struct bh_admission *ad, const struct bh_trial_source *at,
                      const struct bh_json *obj, struct bh_err *err)
{
    const char *ns = bh_tree_str(obj, "metadata.namespace");
    const struct bh_trial_item *it = bh_trial_find_item(
        ad->t, bh_json_get_str(obj, "kind"), ns ? ns : "", bh_tree_str(obj, "metadata.name"));

    if (!it)
        return bh_admit_add(ad, at, obj, err);
    bh_trial_set_item(ad->t, (size_t)(it - ad->t->items), obj);
    return 0;
}

/* The volume that the claim was bound to; if made for it, it is named after the claim's uid. */
static int take_volume(struct bh_admission *ad, const struct bh_sim_obj *stored,
                       struct bh_json *claim, const struct bh_trial_source *at, struct bh_err *err)
{
    const char *name = bh_tree_str(claim, "spec.volumeName");
    const char *uid = bh_tree_str(claim, "metadata.uid");
    const struct bh_sim_obj *v =
        name ? bh_sim_get(ad->sim, bh_sim_type_find("", "v1", "persistentvolumes"), "", name)
             : NULL;

    if (!v)
        return 0;
    struct bh_json *volume = bh_sim_obj_tree(&ad->a, v);
    if (bh_streq(name, bh_arena_printf(&ad->a, "pvc-%s", stored->uid))) {
        name = bh_arena_printf(&ad->a, "pvc-%s", uid);
        bh_json_add(&ad->a, volume, "metadata: {name: %s}", name);
        bh_json_add(&ad->a, claim, "spec: {volumeName: %s}", name);
    }
    if (bh_tree_obj(volume, "spec.claimRef"))
        bh_json_add(&ad->a, volume, "spec: {claimRef: {name: %s, uid: %s}}",
                    bh_tree_str(claim, "metadata.name"), uid);
    bh_admit_settle(ad, volume, false);
    return add_or_set(ad, at, volume, err);
}

/* owner: the pod it was made for, NULL = none. */
static int take_claim(struct bh_admission *ad, const struct bh_sim_obj *stored, const char *name,
                      const struct bh_json *owner, const struct bh_trial_source *at,
                      struct bh_err *err)
{
    struct bh_json *claim = bh_sim_obj_tree(&ad->a, stored);
    struct bh_json *meta = bh_json_get(claim, "metadata");

    bh_json_set_str(&ad->a, meta, "name", name);
    bh_json_each(r, owner ? bh_tree_arr(meta, "ownerReferences") : NULL)
        bh_json_add(&ad->a, r, "name: %s, uid: %s", bh_tree_str(owner, "metadata.name"),
                    bh_tree_str(owner, "metadata.uid"));
    bh_admit_settle(ad, claim, false);
    int rc = take_volume(ad, stored, claim, at, err);
    return rc < 0 ? rc : add_or_set(ad, at, claim, err);
}

/* ---- a pod's claims -------------------------------------------------------------------------- */

/* The claims' drawn names give way to names that repeat. */
static int take_devices(struct bh_admission *ad, const struct bh_sim_obj *stored,
                        struct bh_json *pod, const struct bh_trial_source *at, struct bh_err *err)
{
    const struct bh_sim_type *type = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    int rc = 0;

    bh_json_each(s, bh_tree_arr(pod, "status.resourceClaimStatuses")) {
        const char *entry = bh_tree_str(s, "name"), *name = bh_tree_str(s, "resourceClaimName");
        const struct bh_sim_obj *claim = name ? bh_sim_get(ad->sim, type, stored->ns, name) : NULL;
        if (rc < 0 || !entry || !claim)
            continue;
        const char *neu =
            bh_arena_printf(&ad->a, "%.200s-%.40s", bh_tree_str(pod, "metadata.name"), entry);
        rc = take_claim(ad, claim, neu, pod, at, err);
        bh_json_set_str(&ad->a, s, "resourceClaimName", neu);
    }
    return rc;
}

int bh_admit_pod_claims(struct bh_admission *ad, const struct bh_sim_obj *stored,
                        struct bh_json *pod, const struct bh_trial_source *at, struct bh_err *err)
{
    const struct bh_sim_type *type = bh_sim_type_find("", "v1", PVCS);
    const char *name = bh_tree_str(pod, "metadata.name");
    int rc = 0;
    bh_json_each(v, bh_tree_arr(pod, "spec.volumes")) {
        const char *volume = bh_tree_str(v, "name");
        if (rc < 0 || !volume || !bh_tree_obj(v, "ephemeral"))
            continue;
        const struct bh_sim_obj *claim = bh_sim_get(
            ad->sim, type, stored->ns, bh_arena_printf(&ad->a, "%s-%s", stored->name, volume));
        if (claim)
            rc =
                take_claim(ad, claim, bh_arena_printf(&ad->a, "%s-%s", name, volume), pod, at, err);
    }

    return rc < 0 ? rc : take_devices(ad, stored, pod, at, err);
}

/* ---- manifests ------------------------------------------------------------------------------- */

static bool is_or_uses_claim(const struct bh_trial_item *it)
{
    if (it->replaced || it->admitted)
        return false;
    return bh_streq(it->kind_name, "PersistentVolumeClaim") ||
           (bh_streq(it->kind_name, "Pod") &&
            (strstr(it->json, "\"ephemeral\"") || strstr(it->json, "\"resourceClaims\"")));
}

bool bh_admit_has_claims(const struct bh_trial *t)
{
    for (size_t i = 0; i < t->n_items; i++)
        if (is_or_uses_claim(&t->items[i]))
            return true;
    return false;
}

/* A pod of the files: its statuses are in the store now. */
static int take_pod(struct bh_admission *ad, size_t i, const struct bh_sim_obj *stored,
                    struct bh_err *err)
{
    const struct bh_trial_source at = ad->t->items[i].at;
    struct bh_json *pod = bh_admit_parse(&ad->a, &ad->t->items[i]);
    const struct bh_json *made =
        bh_tree_arr(bh_sim_obj_tree(&ad->a, stored), "status.resourceClaimStatuses");

    if (made && !bh_tree_arr(pod, "status.resourceClaimStatuses"))
        bh_json_add(&ad->a, pod, "status: {resourceClaimStatuses: %p}",
                    bh_json_clone(&ad->a, made));
    int rc = bh_admit_pod_claims(ad, stored, pod, &at, err);
    bh_trial_set_item(ad->t, i, pod);
    return rc;
}

int bh_admit_claims(struct bh_admission *ad, struct bh_err *err)
{
    const struct bh_sim_type *pods = bh_sim_type_find("", "v1", "pods");
    const struct bh_sim_type *claims = bh_sim_type_find("", "v1", PVCS);
    struct bh_trial *t = ad->t;
    size_t n = t->n_items;
    int rc = 0;

    for (size_t i = 0; i < n && rc >= 0; i++) {
        const struct bh_trial_item *it = &t->items[i];
        const struct bh_trial_source at = it->at;
        bool claim = bh_streq(it->kind_name, "PersistentVolumeClaim");
        if (!is_or_uses_claim(it))
            continue;
        const struct bh_sim_obj *o = bh_sim_get(ad->sim, claim ? claims : pods, it->ns, it->name);
        if (o && claim)
            rc = take_claim(ad, o, it->name, NULL, &at, err);
        else if (o)
            rc = take_pod(ad, i, o, err);
        if (rc < 0)
            bh_trial_blame(err, rc, &t->items[i]);
        bh_arena_reset(&ad->a);
    }
    return rc;
}
