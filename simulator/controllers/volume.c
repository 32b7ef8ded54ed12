/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/volume.c - claims find volumes, or get new ones from a stand-in provisioner
 *
 * Owns:       pv_of_claim: which volume names which claim in spec.claimRef, as far as the listener
 *             is. Volumes are few fields of a JSON text; nothing else is remembered.
 * Invariants: a volume is given to a claim by its claimRef first, then the claim names the volume,
 *             so that a stop in between is repaired by looking again.
 * Upstream:   pkg/controller/volume/persistentvolume (v1.36); differences: every class with a
 *             provisioner other than kubernetes.io/no-provisioner is served by the stand-in, at
 *             once; volumes are never recycled; protection finalizers are not set.
 */
#include "simulator/controllers/controllers.h"

#include "common/k8s/quantity.h"
#include "common/k8s/selector.h"

#define ANN_COMPLETED   "pv.kubernetes.io/bind-completed"
#define ANN_CONTROLLER  "pv.kubernetes.io/bound-by-controller"
#define ANN_PROVISIONED "pv.kubernetes.io/provisioned-by"
#define ANN_NODE        "volume.kubernetes.io/selected-node"
#define COMPONENT       "persistentvolume-controller"
#define SWEEP_NS        50000000 /* new volumes come in crowds */

/* ---- look-ups -------------------------------------------------------------------------------- */

static const char *class_name(const struct bh_json *o)
{
    const char *beta = bh_tree_annotation(o, "volume.beta.kubernetes.io/storage-class");
    const char *name = bh_tree_str(o, "spec.storageClassName");

    return beta ? beta : name ? name : "";
}

static bh_nano storage(const struct bh_json *holder)
{
    const char *s = bh_json_get_str(holder, "storage");
    bh_nano q = 0;

    return s && bh_quantity_parse(s, strlen(s), &q) == 0 ? q : 0;
}

static const char *volume_mode(const struct bh_json *o)
{
    const char *mode = bh_tree_str(o, "spec.volumeMode");

    return mode ? mode : "Filesystem";
}

/* Everything but the size. */
static bool suits(const struct bh_json *claim, const struct bh_json *pv)
{
    if (!bh_streq(class_name(claim), class_name(pv)) ||
        !bh_streq(volume_mode(claim), volume_mode(pv)))
        return false;
    bh_json_each(m, bh_tree_arr(claim, "spec.accessModes")) {
        const char *mode = bh_json_cstr(m);
        if (mode && !bh_tree_lists(bh_tree_arr(pv, "spec.accessModes"), mode))
            return false;
    }
    const struct bh_json *spec = bh_json_path(claim, "spec.selector");
    struct bh_selector *sel = NULL;
    if (!spec)
        return true;
    if (bh_selector_from_json(spec, &sel, NULL) < 0)
        return false;
    bool is = bh_selector_match_json(sel, bh_tree_obj(pv, "metadata.labels"));
    bh_selector_free(sel);
    return is;
}

/* ---- the two writes of a binding ------------------------------------------------------------- */

struct binding {
    struct bh_sim_controllers *c;
    const struct bh_sim_obj *claim;
    const struct bh_json *claim_tree, *pv_tree;
    const char *pv;
};

static bool write_volume(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct binding *b = arg;
    bool ours = !bh_tree_str(o, "spec.claimRef.name");

    bh_json_add(a, o,
                "spec: {claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: %s, "
                "name: %s, uid: %s}}",
                b->claim->ns, b->claim->name, b->claim->uid);
    if (ours)
        bh_json_add(a, o, "metadata: {annotations: {" ANN_CONTROLLER ": yes}}");
    bh_json_add(a, o, "status: {phase: Bound}");
    return true;
}

static bool write_claim(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct binding *b = arg;
    const struct bh_json *modes = bh_json_path(b->pv_tree, "spec.accessModes");
    const struct bh_json *capacity = bh_json_path(b->pv_tree, "spec.capacity");

    if (!bh_tree_str(o, "spec.volumeName"))
        bh_json_add(a, o, "metadata: {annotations: {" ANN_CONTROLLER ": yes}}");
    bh_json_add(a, o,
                "spec: {volumeName: %s}, metadata: {annotations: {" ANN_COMPLETED ": yes}}, "
                "status: {phase: Bound}",
                b->pv);
    if (modes)
        bh_json_add(a, o, "status: {accessModes: %p}", bh_json_clone(a, modes));
    if (capacity)
        bh_json_add(a, o, "status: {capacity: %p}", bh_json_clone(a, capacity));
    return true;
}

static void tie(struct binding *b)
{
    struct bh_sim_controllers *c = b->c;

    if (!bh_sim_edit(c->sim, c->t.volumes, "", b->pv, NULL, BH_SIM_WHOLE, write_volume, b, NULL,
                     NULL)) /* else it is gone meanwhile: its own commit brings us back */
        bh_ctl_edit(c, b->claim, BH_SIM_WHOLE, write_claim, b);
}

static bool write_phase(void *phase, struct bh_arena *a, struct bh_json *o)
{
    if (bh_tree_is(o, "status.phase", phase))
        return false;
    bh_json_add(a, o, "status: {phase: %s}", (const char *)phase);
    return true;
}

static void set_phase(struct bh_sim_controllers *c, const struct bh_sim_obj *o, const char *phase)
{
    bh_ctl_edit(c, o, BH_SIM_WHOLE, write_phase, phase);
}

/* ---- provisioning ---------------------------------------------------------------------------- */

/* The topology that the class allows, as the selected node has it. */
static void add_topology(struct bh_sim_controllers *c, struct bh_arena *a, struct bh_json *spec,
                         const struct bh_json *class, const char *node)
{
    const struct bh_sim_obj *n = node ? bh_sim_get(c->sim, c->t.nodes, "", node) : NULL;
    const struct bh_json *terms = bh_tree_arr(class, "allowedTopologies");
    struct bh_json *out = NULL;

    bh_json_each(e, bh_tree_arr(terms ? terms->c.first : NULL, "matchLabelExpressions")) {
        const char *key = bh_json_get_str(e, "key");
        const char *value = n && key ? bh_sim_obj_label(n, key) : NULL;
        const struct bh_json *values = bh_tree_arr(e, "values");
        if (!value && values && values->c.first)
            value = bh_json_cstr(values->c.first);
        if (!key || !value)
            continue;
        if (!out) {
            struct bh_json *required =
                bh_json_obj_at(a, bh_json_obj_at(a, spec, "nodeAffinity"), "required");
            struct bh_json *list = bh_tree_dflt_arr(a, required, "nodeSelectorTerms");
            out = bh_tree_dflt_arr(a, bh_tree_push_obj(a, list), "matchExpressions");
        }
        bh_json_append(a, out, "key: %s, operator: In, values: [%s]", key, value);
    }
}

static struct bh_json *new_volume(struct bh_sim_controllers *c, const struct binding *b,
                                  const struct bh_json *class, const char *class_named)
{
    struct bh_arena *a = &c->arena;
    const char *provisioner = bh_tree_str(class, "provisioner");
    const char *policy = bh_tree_str(class, "reclaimPolicy");
    const struct bh_json *modes = bh_json_path(b->claim_tree, "spec.accessModes");
    const char *size = bh_tree_str(b->claim_tree, "spec.resources.requests.storage");
    struct bh_json *pv = bh_json_make(
        a,
        "apiVersion: v1, kind: PersistentVolume, "
        "metadata: {name: %s, annotations: {" ANN_PROVISIONED ": %s}}, "
        "spec: {capacity: {storage: %s}, accessModes?: %p, persistentVolumeReclaimPolicy: %s, "
        "storageClassName: %s, volumeMode: %s}",
        b->pv, provisioner, size ? size : "1Gi", bh_json_clone(a, modes),
        policy ? policy : "Delete", class_named, volume_mode(b->claim_tree));

    /* "rancher.io/local-path" is no CSI driver's name: such provisioners make other volumes. */
    if (strchr(provisioner, '/'))
        bh_json_add(a, pv, "spec: {hostPath: {path: %s}}",
                    bh_arena_printf(a, "/var/lib/provisioned/%s", b->pv));
    else
        bh_json_add(a, pv, "spec: {csi: {driver: %s, volumeHandle: %s}}", provisioner,
                    b->claim->uid);
    add_topology(c, a, bh_json_get(pv, "spec"), class, bh_tree_annotation(b->claim_tree, ANN_NODE));
    (void)write_volume((void *)(uintptr_t)b, a, pv);
    return pv;
}

static void provision(struct binding *b, const struct bh_json *class, const char *class_named)
{
    struct bh_sim_controllers *c = b->c;
    struct bh_sim_error e = {0};

    b->pv = bh_arena_printf(&c->arena, "pvc-%s", b->claim->uid);
    if (!bh_sim_get(c->sim, c->t.volumes, "", b->pv) &&
        bh_sim_create(c->sim, c->t.volumes, "", &c->arena, new_volume(c, b, class, class_named),
                      NULL, &e)) {
        bh_sim_event(c->sim, b->claim, "Warning", "ProvisioningFailed", COMPONENT, "%s", e.message);
        return;
    }
    b->pv_tree = bh_sim_obj_tree(&c->arena, bh_sim_get(c->sim, c->t.volumes, "", b->pv));
    tie(b);
    bh_sim_event(c->sim, b->claim, "Normal", "ProvisioningSucceeded", COMPONENT,
                 "Successfully provisioned volume %s", b->pv);
}

/* ---- one claim ------------------------------------------------------------------------------- */

/* The smallest free volume that suits. */
static const char *find_volume(struct bh_sim_controllers *c, const struct bh_json *claim,
                               const struct bh_json **ret_tree)
{
    bh_nano want = storage(bh_json_path(claim, "spec.resources.requests")), best = 0;
    const char *found = NULL;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, c->t.volumes, NULL);

    for (size_t i = 0; i < l.n; i++) {
        if (l.v[i]->deleting || !bh_streq(l.v[i]->phase, "Available"))
            continue;
        const struct bh_json *pv = bh_sim_obj_tree(&c->arena, l.v[i]);
        bh_nano size = storage(bh_json_path(pv, "spec.capacity"));
        if (size < want || (found && size >= best) || bh_json_path(pv, "spec.claimRef") ||
            !suits(claim, pv))
            continue;
        found = bh_arena_strdup(&c->arena, l.v[i]->name);
        best = size;
        *ret_tree = pv;
    }
    return found;
}

static void find_or_provision(struct binding *b)
{
    struct bh_sim_controllers *c = b->c;
    const char *named = class_name(b->claim_tree), *provisioner = NULL;
    const struct bh_sim_obj *sc = *named ? bh_sim_get(c->sim, c->t.classes, "", named) : NULL;
    const struct bh_json *class = sc ? bh_sim_obj_tree(&c->arena, sc) : NULL;
    bool chosen = bh_tree_annotation(b->claim_tree, ANN_NODE);

    if (class && bh_tree_is(class, "volumeBindingMode", "WaitForFirstConsumer") && !chosen) {
        bh_sim_event(c->sim, b->claim, "Normal", "WaitForFirstConsumer", COMPONENT,
                     "waiting for first consumer to be created before binding");
        return;
    }
    b->pv = find_volume(c, b->claim_tree, &b->pv_tree);
    if (b->pv) {
        tie(b);
        return;
    }
    provisioner = class ? bh_tree_str(class, "provisioner") : NULL;
    if (provisioner && !bh_streq(provisioner, "kubernetes.io/no-provisioner"))
        provision(b, class, named);
    else if (*named && !class)
        bh_sim_event(c->sim, b->claim, "Warning", "ProvisioningFailed", COMPONENT,
                     "storageclass.storage.k8s.io \"%s\" not found", named);
    else
        bh_sim_event(c->sim, b->claim, "Normal", "FailedBinding", COMPONENT,
                     "no persistent volumes available for this claim and no storage class is set");
}

/* The volume that the claim names, or that names the claim. */
static void join(struct binding *b)
{
    struct bh_sim_controllers *c = b->c;
    const struct bh_sim_obj *pv = bh_sim_get(c->sim, c->t.volumes, "", b->pv);
    bool completed = bh_tree_annotation(b->claim_tree, ANN_COMPLETED);

    if (!pv) {
        set_phase(c, b->claim, completed ? "Lost" : "Pending");
        return;
    }
    b->pv_tree = bh_sim_obj_tree(&c->arena, pv);
    const struct bh_json *ref = bh_json_path(b->pv_tree, "spec.claimRef");
    const char *uid = bh_json_get_str(ref, "uid");
    const char *name = bh_json_get_str(ref, "name");
    if (name && (!bh_streq(name, b->claim->name) || !bh_tree_is(ref, "namespace", b->claim->ns) ||
                 (uid && *uid && !bh_streq(uid, b->claim->uid)))) {
        set_phase(c, b->claim, completed ? "Lost" : "Pending");
        return;
    }
    if (completed && uid && *uid && bh_streq(pv->phase, "Bound") &&
        bh_streq(b->claim->phase, "Bound"))
        return;
    tie(b);
}

static size_t claim_key(char out[static 520], const char *ns, const char *name)
{
    int n = snprintf(out, 520, "%s/%s", ns, name);

    return BH_MIN((size_t)n, (size_t)519);
}

void bh_ctl_sync_claim(struct bh_sim_controllers *c, struct bh_sim_obj *claim)
{
    struct binding b = {.c = c, .claim = claim, .claim_tree = bh_sim_obj_tree(&c->arena, claim)};
    const char *volume = bh_tree_str(b.claim_tree, "spec.volumeName"), *named;
    char key[520];

    named = bh_map_get(&c->pv_of_claim, key, claim_key(key, claim->ns, claim->name));
    b.pv = bh_arena_strdup(&c->arena, volume && *volume ? volume : named ? named : "");
    if (*b.pv)
        join(&b);
    else
        find_or_provision(&b);
}

/* ---- one volume ------------------------------------------------------------------------------ */

/* What was not given to the claim by a person, or by its maker, is free again. */
static bool untie(void *arg BH_UNUSED, struct bh_arena *a, struct bh_json *o)
{
    if (bh_tree_annotation(o, ANN_CONTROLLER)) {
        bh_json_unset(bh_tree_dflt_obj(a, o, "spec"), "claimRef");
        bh_json_unset(bh_tree_dflt_obj(a, bh_tree_dflt_obj(a, o, "metadata"), "annotations"),
                      ANN_CONTROLLER);
    } else {
        bh_json_unset(bh_tree_dflt_obj(a, bh_tree_dflt_obj(a, o, "spec"), "claimRef"), "uid");
    }
    bh_json_add(a, o, "status: {phase: Available}");
    return true;
}

void bh_ctl_sync_volume(struct bh_sim_controllers *c, struct bh_sim_obj *pv)
{
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, pv);
    const struct bh_json *ref = bh_json_path(tree, "spec.claimRef");
    const char *uid = bh_json_get_text(ref, "uid"), *name = bh_json_get_str(ref, "name");
    const char *ns = bh_json_get_str(ref, "namespace");
    const struct bh_sim_obj *claim = ns && name ? bh_sim_get(c->sim, c->t.claims, ns, name) : NULL;

    if (claim && *uid && !bh_streq(uid, claim->uid))
        claim = NULL; /* another one of that name */
    const char *has =
        claim ? bh_tree_str(bh_sim_obj_tree(&c->arena, claim), "spec.volumeName") : NULL;
    const bool elsewhere = *uid && has && *has && !bh_streq(has, pv->name);
    if (!name) {
        set_phase(c, pv, "Available");
        bh_ctl_enqueue_after(c, BH_CTL_VOLUME_SWEEP, "", "", SWEEP_NS);
    } else if (claim && !elsewhere) {
        bh_ctl_again(c, BH_CTL_CLAIM, claim, 0);
    } else if (*uid) {
        if (bh_tree_annotation(tree, ANN_PROVISIONED) &&
            bh_tree_is(tree, "spec.persistentVolumeReclaimPolicy", "Delete"))
            bh_ctl_delete(c, pv);
        else if (elsewhere)
            bh_ctl_edit(c, pv, BH_SIM_WHOLE, untie, NULL);
        else
            set_phase(c, pv, "Released");
    } else {
        set_phase(c, pv, "Available"); /* kept for a claim that is not there yet */
    }
}

/* Volumes became free: every claim that has none looks again. */
void bh_ctl_sync_volume_sweep(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, c->t.claims, NULL);

    (void)ns, (void)name;
    for (size_t i = 0; i < l.n; i++)
        if (!bh_streq(l.v[i]->phase, "Bound"))
            bh_ctl_again(c, BH_CTL_CLAIM, l.v[i], 0);
}

/* ---- commits --------------------------------------------------------------------------------- */

static void index_volume(struct bh_sim_controllers *c, const struct bh_sim_obj *pv, bool gone)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const struct bh_json *ref = bh_json_path(bh_sim_obj_tree(&a, pv), "spec.claimRef");
    const char *ns = bh_json_get_str(ref, "namespace"), *name = bh_json_get_str(ref, "name");
    char key[520];

    if (ns && name) {
        size_t n = claim_key(key, ns, name);
        if (!gone) {
            free(bh_map_put(&c->pv_of_claim, key, n, bh_strdup(pv->name)));
        } else {
            const char *have = bh_map_get(&c->pv_of_claim, key, n);
            if (have && bh_streq(have, pv->name))
                free(bh_map_del(&c->pv_of_claim, key, n));
        }
        bh_ctl_enqueue(c, BH_CTL_CLAIM, ns, name);
    }
}

/* The volume that it named, and the one that named it: most often the same. */
static void claim_gone(struct bh_sim_controllers *c, const struct bh_sim_obj *claim)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const char *has = bh_tree_str(bh_sim_obj_tree(&a, claim), "spec.volumeName");
    char key[520];
    const char *pv = bh_map_get(&c->pv_of_claim, key, claim_key(key, claim->ns, claim->name));

    if (pv)
        bh_ctl_enqueue(c, BH_CTL_VOLUME, "", pv);
    if (has && *has)
        bh_ctl_enqueue(c, BH_CTL_VOLUME, "", has);
}

void bh_ctl_volume_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                          struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    if (obj->type == c->t.volumes) {
        if (old)
            index_volume(c, old, true);
        if (change != BH_SIM_DELETED) {
            index_volume(c, obj, false);
            bh_ctl_enqueue(c, BH_CTL_VOLUME, "", obj->name);
        } else if (!old) {
            index_volume(c, obj, true);
        }
    } else if (obj->type == c->t.claims) {
        if (change != BH_SIM_DELETED)
            bh_ctl_again(c, BH_CTL_CLAIM, obj, 0);
        else
            claim_gone(c, obj);
    } else if (obj->type == c->t.classes) {
        bh_ctl_enqueue_after(c, BH_CTL_VOLUME_SWEEP, "", "", SWEEP_NS);
    }
}
