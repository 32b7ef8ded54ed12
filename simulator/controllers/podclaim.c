/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/podclaim.c - what a pod asks others to make for it: claims for ephemeral
 * volumes, resource claims from templates; and giving devices back when no pod uses them any more
 *
 * Owns:       nothing; names that were given are in the pod's status.resourceClaimStatuses.
 * Upstream:   pkg/controller/volume/ephemeral, pkg/controller/resourceclaim (v1.36); differences:
 *             claims for extended resources are the scheduler's own and only released here.
 */
#include "simulator/controllers/controllers.h"

#define ANN_POD_CLAIM "resource.kubernetes.io/pod-claim-name"
#define COMPONENT     "resource-claim-controller"

/* ---- ephemeral volumes ----------------------------------------------------------------------- */

static void ephemeral(struct bh_sim_controllers *c, struct bh_sim_obj *pod,
                      const struct bh_json *volume)
{
    const struct bh_json *template = bh_tree_obj(volume, "ephemeral.volumeClaimTemplate");
    const char *name = bh_json_get_str(volume, "name"), *full;
    struct bh_sim_error e = {0};

    if (!template || !name)
        return;
    full = bh_arena_printf(&c->arena, "%s-%s", pod->name, name);
    if (bh_sim_get(c->sim, c->t.claims, pod->ns, full))
        return;
    struct bh_json *claim = bh_ctl_made_of(&c->arena, pod, template, "v1", "PersistentVolumeClaim");
    bh_json_add(&c->arena, claim, "metadata: {name: %s}", full);
    if (bh_sim_create(c->sim, c->t.claims, pod->ns, &c->arena, claim, NULL, &e))
        bh_sim_event(c->sim, pod, "Warning", "FailedBinding", "ephemeral_volume",
                     "ephemeral volume %s: %s", name, e.message);
}

/* ---- resource claims ------------------------------------------------------------------------- */

struct naming {
    const char *entry, *claim;
};

static bool has_name(const struct bh_json *pod, const char *entry)
{
    bh_json_each(s, bh_tree_arr(pod, "status.resourceClaimStatuses"))
        if (bh_tree_is(s, "name", entry))
            return true;
    return false;
}

static bool write_name(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct naming *n = arg;
    struct bh_json *list =
        bh_tree_dflt_arr(a, bh_json_obj_at(a, o, "status"), "resourceClaimStatuses");

    if (!list || has_name(o, n->entry))
        return false;
    bh_json_append(a, list, "name: %s, resourceClaimName: %s", n->entry, n->claim);
    return true;
}

/* The claim made before a stop, whose name the pod does not know yet. */
static struct bh_sim_obj *made_before(struct bh_sim_controllers *c, const struct bh_sim_obj *pod,
                                      const char *entry)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_owned(c->sim, pod->uid, c->t.resource_claims);

    for (size_t i = 0; i < l.n; i++) {
        const char *of = bh_tree_annotation(bh_sim_obj_tree(&c->arena, l.v[i]), ANN_POD_CLAIM);
        if (of && bh_streq(of, entry) && !l.v[i]->deleting)
            return bh_sim_obj_ref(l.v[i]);
    }
    return NULL;
}

static struct bh_sim_obj *make_claim(struct bh_sim_controllers *c, struct bh_sim_obj *pod,
                                     const char *entry, const char *template)
{
    struct bh_arena *a = &c->arena;
    const struct bh_sim_obj *t = bh_sim_get(c->sim, c->t.claim_templates, pod->ns, template);
    struct bh_json *claim;
    struct bh_sim_obj *made = NULL;
    struct bh_sim_error e = {0};

    if (!t) {
        bh_sim_event(c->sim, pod, "Warning", "FailedResourceClaimCreation", COMPONENT,
                     "PodResourceClaim %s: resource claim template \"%s\": not found", entry,
                     template);
        return NULL;
    }
    claim = bh_ctl_made_of(a, pod, bh_tree_obj(bh_sim_obj_tree(a, t), "spec"), "resource.k8s.io/v1",
                           "ResourceClaim");
    bh_json_add(a, claim, "metadata: {generateName: %s, annotations: {" ANN_POD_CLAIM ": %s}}",
                bh_arena_printf(a, "%s-%s-", pod->name, entry), entry);
    if (bh_sim_create(c->sim, c->t.resource_claims, pod->ns, a, claim, &made, &e))
        bh_sim_event(c->sim, pod, "Warning", "FailedResourceClaimCreation", COMPONENT,
                     "PodResourceClaim %s: %s", entry, e.message);
    return made;
}

static void resource_claim(struct bh_sim_controllers *c, struct bh_sim_obj *pod,
                           const struct bh_json *pod_tree, const struct bh_json *entry)
{
    const char *name = bh_json_get_str(entry, "name");
    const char *template = bh_json_get_str(entry, "resourceClaimTemplateName");

    if (!name || !template || has_name(pod_tree, name))
        return;
    struct bh_sim_obj *claim = made_before(c, pod, name);
    if (!claim)
        claim = make_claim(c, pod, name, template);
    if (!claim)
        return;
    struct naming n = (struct naming){name, claim->name};
    bh_ctl_edit(c, pod, BH_SIM_STATUS, write_name, &n);
    bh_sim_obj_unref(claim);
}

void bh_ctl_sync_pod_claims(struct bh_sim_controllers *c, struct bh_sim_obj *pod)
{
    if (bh_ctl_pod_finished(pod))
        return;
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, pod);
    bh_json_each(v, bh_tree_arr(tree, "spec.volumes"))
        ephemeral(c, pod, v);
    bh_json_each(e, bh_tree_arr(tree, "spec.resourceClaims"))
        resource_claim(c, pod, tree, e);
}

/* ---- devices go back ------------------------------------------------------------------------- */

static bool consumer_lives(struct bh_sim_controllers *c, const char *ns, const struct bh_json *ref)
{
    const char *name = bh_json_get_str(ref, "name"), *uid = bh_json_get_str(ref, "uid");

    if (!bh_tree_is(ref, "resource", "pods") || !name || !uid)
        return true; /* not a pod: not ours to judge */
    const struct bh_sim_obj *pod = bh_sim_get(c->sim, c->t.pods, ns, name);
    return pod && bh_streq(pod->uid, uid) && !bh_ctl_pod_finished(pod);
}

struct release {
    struct bh_sim_controllers *c;
    const char *ns;
};

static bool write_release(void *arg, struct bh_arena *a, struct bh_json *o)
{
    static char protection[] = "resource.kubernetes.io/delete-protection";
    const struct release *r = arg;
    struct bh_json *status = bh_tree_obj(o, "status");
    struct bh_json *list = bh_tree_arr(o, "status.reservedFor"), *next;
    bool changed = false;

    for (struct bh_json *ref = list ? list->c.first : NULL; ref; ref = next) {
        next = ref->next;
        if (consumer_lives(r->c, r->ns, ref))
            continue;
        bh_json_remove(list, ref);
        changed = true;
    }
    if ((list && list->c.n) || !(changed || bh_tree_str(o, "metadata.deletionTimestamp")))
        return changed;
    bh_json_drop(status, "reservedFor allocation devices"); /* free again: no consumer is left */
    return bh_ctl_drop_finalizer(protection, a, o) || changed;
}

void bh_ctl_sync_resource_claim(struct bh_sim_controllers *c, struct bh_sim_obj *claim)
{
    const struct release r = {c, claim->ns};

    bh_ctl_edit(c, claim, BH_SIM_WHOLE, write_release, &r);
}

/* ---- commits --------------------------------------------------------------------------------- */

static void enqueue_claim(struct bh_sim_controllers *c, const struct bh_sim_obj *pod,
                          const struct bh_json *entry)
{
    const char *name = bh_json_get_str(entry, "resourceClaimName");

    if (name)
        bh_ctl_enqueue(c, BH_CTL_RESOURCE_CLAIM, pod->ns, name);
}

/* Stored text is compact: a pod without these members is not parsed. */
static bool asks(const struct bh_sim_obj *pod)
{
    return strstr(pod->json, "\"resourceClaimTemplateName\":") ||
           strstr(pod->json, "\"volumeClaimTemplate\":");
}

void bh_ctl_podclaim_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                            struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    if (obj->type == c->t.pods) {
        if (change == BH_SIM_ADDED && asks(obj))
            bh_ctl_again(c, BH_CTL_POD_CLAIMS, obj, 0);
        if ((change == BH_SIM_DELETED ||
             (bh_ctl_pod_finished(obj) && !(old && bh_ctl_pod_finished(old)))) &&
            (strstr(obj->json, "\"resourceClaims\":") ||
             strstr(obj->json, "\"extendedResourceClaimStatus\":"))) {
            /* Every claim that the pod names, or that was made for it. */
            BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
            const struct bh_json *tree = bh_sim_obj_tree(&a, obj);
            bh_json_each(e, bh_tree_arr(tree, "spec.resourceClaims"))
                enqueue_claim(c, obj, e);
            bh_json_each(s, bh_tree_arr(tree, "status.resourceClaimStatuses"))
                enqueue_claim(c, obj, s);
            enqueue_claim(c, obj, bh_tree_obj(tree, "status.extendedResourceClaimStatus"));
        }
    } else if (obj->type == c->t.resource_claims && change != BH_SIM_DELETED) {
        /* deleted while a pod used it, or reserved for a pod that went meanwhile */
        if (obj->deleting || strstr(obj->json, "\"reservedFor\":["))
            bh_ctl_again(c, BH_CTL_RESOURCE_CLAIM, obj, 0);
    } else if (obj->type == c->t.claim_templates && change == BH_SIM_ADDED) {
        /* pods that were there before it */
        BH_CLEANUP(bh_sim_objs_fini)
        struct bh_sim_objs l = bh_sim_listed(c->sim, c->t.pods, obj->ns);
        for (size_t i = 0; i < l.n; i++)
            if (asks(l.v[i]))
                bh_ctl_enqueue(c, BH_CTL_POD_CLAIMS, l.v[i]->ns, l.v[i]->name);
    }
}
