/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes_missing.c - claims, classes and volumes that the pod needs and that are not
 * there, or not where a node is
 */
#include "simulator/offline/fixes_int.h"

#include "common/k8s/codec.h"

#define CLASS "standard" /* of a claim that is made here */

struct bh_json *bh_fixes_object(struct bh_fixes *f, enum bh_kind kind, const char *ns,
                                const char *name)
{
    const ProtobufCMessage *m = bh_engine_get_object(f->w->engine, kind, ns, name);

    return m ? bh_pb_to_json(f->a, m) : NULL;
}

static struct bh_fix *missing(struct bh_fixes *f, const char *kind, const char *text)
{
    struct bh_fix *x = bh_fixes_add(f, kind, text);

    x->create = bh_json_new(f->a, BH_JSON_ARRAY);
    x->missing = true;
    return x;
}

static struct bh_json *modes(struct bh_fixes *f, const struct bh_json *claim)
{
    struct bh_json *list = bh_json_get_list(bh_json_get(claim, "spec"), "accessModes");

    if (bh_json_first(list))
        return bh_json_clone(f->a, list);
    list = bh_json_new(f->a, BH_JSON_ARRAY);
    bh_json_push(list, bh_json_new_cstr(f->a, "ReadWriteOnce"));
    return list;
}

/* The provisioner is the one thing that only the user knows. */
static void add_class(struct bh_fixes *f, struct bh_fix *x, const char *name)
{
    bh_json_append(f->a, x->create,
                   "apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, "
                   "provisioner: csi.example.com, reclaimPolicy: Delete, volumeBindingMode: "
                   "WaitForFirstConsumer",
                   name);
}

static void no_claim(struct bh_fixes *f, const char *ns, const char *name)
{
    struct bh_fix *x = missing(
        f, "claim", bh_arena_printf(f->a, "create the PersistentVolumeClaim %s/%s", ns, name));

    if (!bh_fixes_object(f, BH_KIND_STORAGECLASS, "", CLASS))
        add_class(f, x, CLASS);
    bh_json_append(f->a, x->create,
                   "apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s, namespace: "
                   "%s}, spec: {accessModes: %p, storageClassName: " CLASS
                   ", resources: {requests: {storage: 1Gi}}}",
                   name, ns, modes(f, NULL));
}

/* A volume that the claim can have: and then it is bound to it, as the volume controller does. */
static void no_volume(struct bh_fixes *f, const char *ns, struct bh_json *claim, const char *volume)
{
    const char *name = bh_json_get_text(bh_json_get(claim, "metadata"), "name");
    const char *storage = bh_json_cstr(bh_json_path(claim, "spec.resources.requests.storage"));
    const char *class = bh_json_get_text(bh_json_get(claim, "spec"), "storageClassName");
    bool new = !*volume;

    volume = new ? bh_arena_printf(f->a, "%s-%s", ns, name) : volume;
    struct bh_fix *x =
        missing(f, "claim",
                bh_arena_printf(f->a, "create the PersistentVolume %s for the claim %s/%s", volume,
                                ns, name));
    bh_json_append(f->a, x->create,
                   "apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: "
                   "{capacity: {storage: %s}, accessModes: %p, storageClassName?: %s, claimRef: "
                   "{namespace: %s, name: %s}, hostPath: {path: %s}}",
                   volume, storage ? storage : "1Gi", modes(f, claim), class, ns, name,
                   bh_arena_printf(f->a, "/var/lib/%s", volume));
    struct bh_json *bound = bh_json_clone(f->a, claim);
    bh_json_add(
        f->a, bound,
        "apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {%s: 'yes'}}, "
        "spec: {volumeName: %s}, status: {phase: Bound}",
        "pv.kubernetes.io/bind-completed", volume);
    x->assumed = bh_json_new(f->a, BH_JSON_ARRAY);
    bh_json_push(x->assumed, bound);
}

/* The volume is there, and may be used on some nodes only: one of these is missing. */
static void elsewhere(struct bh_fixes *f, const char *volume, const struct bh_json *pv)
{
    const char *largest = bh_fixes_largest(f);
    const struct bh_json *e =
        bh_json_first(bh_json_get(bh_json_first(bh_json_path(pv, "spec.nodeAffinity.required."
                                                                 "nodeSelectorTerms")),
                                  "matchExpressions"));
    const char *key = bh_json_get_text(e, "key"), *value = "";

    if (bh_streq(bh_json_get_text(e, "operator"), "In"))
        value = bh_json_cstr(bh_json_first(bh_json_get(e, "values")));
    bh_json_each(l, bh_json_path(pv, "metadata.labels")) /* VolumeZone's */
        if (!*key && strstr(l->key.p, "topology.kubernetes.io/") && bh_json_cstr(l)) {
            key = l->key.p;
            value = bh_json_cstr(l);
        }
    if (!*key || !value || !*value || !largest)
        return;
    struct bh_fix *x =
        missing(f, "node",
                bh_arena_printf(f->a, "a node where the PersistentVolume %s can be: %s=%s", volume,
                                key, value));
    struct bh_json *node = bh_fixes_new_node(f, largest, "one-more-node");
    bh_json_set_str(f->a, bh_json_path(node, "metadata.labels"), key, value);
    bh_json_push(x->create, node);
}

static void look_at_claim(struct bh_fixes *f, const char *ns, const char *name)
{
    struct bh_json *claim = bh_fixes_object(f, BH_KIND_PERSISTENTVOLUMECLAIM, ns, name);
    const struct bh_json *spec = bh_json_get(claim, "spec");
    const char *class = bh_json_get_text(spec, "storageClassName");
    const char *volume = bh_json_get_text(spec, "volumeName");

    if (!claim) {
        no_claim(f, ns, name);
        return;
    }
    if (*volume) {
        const struct bh_json *pv = bh_fixes_object(f, BH_KIND_PERSISTENTVOLUME, "", volume);
        if (pv)
            elsewhere(f, volume, pv);
        else
            no_volume(f, ns, claim, volume);
        return;
    }
    const struct bh_json *sc = bh_fixes_object(f, BH_KIND_STORAGECLASS, "", class);
    if (*class && !sc) {
        struct bh_fix *x =
            missing(f, "claim",
                    bh_arena_printf(f->a, "create the StorageClass %s, which the claim %s/%s names",
                                    class, ns, name));
        add_class(f, x, class);
        return;
    }
    no_volume(f, ns, claim, "");
}

static void look_at_devices(struct bh_fixes *f, const char *ns, const char *name)
{
    const struct bh_json *claim = bh_fixes_object(f, BH_KIND_RESOURCECLAIM, ns, name);

    bh_json_each(r, bh_json_path(claim, "spec.devices.requests")) {
        const struct bh_json *e = bh_json_get(r, "exactly");
        const char *class = bh_json_get_text(e ? e : r, "deviceClassName");
        if (!*class || bh_fixes_object(f, BH_KIND_DEVICECLASS, "", class))
            continue;
        struct bh_fix *x = missing(
            f, "device",
            bh_arena_printf(f->a, "create the DeviceClass %s, which the claim %s/%s asks for",
                            class, ns, name));
        bh_json_append(f->a, x->create,
                       "apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: %s}, "
                       "spec: {}",
                       class);
    }
    if (claim)
        return;
    struct bh_fix *x =
        missing(f, "device", bh_arena_printf(f->a, "create the ResourceClaim %s/%s", ns, name));
    struct bh_json *o = bh_json_append(
        f->a, x->create,
        "apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %s, namespace: %s}, "
        "spec: {devices: {requests: []}}",
        name, ns);
    bh_json_append(f->a, bh_json_path(o, "spec.devices.requests"),
                   "name: device, exactly: {deviceClassName: device.example.com}");
}

static bool plugin_said(const struct bh_json *why, const char *plugin)
{
    if (bh_streq(bh_json_get_text(bh_json_get(why, "preFilter"), "plugin"), plugin))
        return true;
    bh_json_each(g, bh_json_get_list(why, "rejectedGroups"))
        if (bh_streq(bh_json_get_text(g, "plugin"), plugin))
            return true;
    return false;
}

void bh_fixes_missing(struct bh_fixes *f)
{
    const char *ns = bh_json_get_text(bh_json_get(f->pod, "metadata"), "namespace");
    const char *pod = bh_json_get_text(bh_json_get(f->pod, "metadata"), "name");
    bool storage = plugin_said(f->why, "VolumeBinding") || plugin_said(f->why, "VolumeZone") ||
                   plugin_said(f->why, "VolumeRestrictions") ||
                   plugin_said(f->why, "NodeVolumeLimits");

    bh_json_each(v, bh_json_path(f->pod, "spec.volumes")) {
        const struct bh_json *claim = bh_json_get(v, "persistentVolumeClaim");
        if (storage && claim)
            look_at_claim(f, ns, bh_json_get_text(claim, "claimName"));
        else if (storage && bh_json_get(v, "ephemeral"))
            look_at_claim(f, ns, bh_arena_printf(f->a, "%s-%s", pod, bh_json_get_text(v, "name")));
    }
    bh_json_each(c, bh_json_path(f->pod, "spec.resourceClaims"))
        if (plugin_said(f->why, "DynamicResources") && *bh_json_get_text(c, "resourceClaimName"))
            look_at_devices(f, ns, bh_json_get_text(c, "resourceClaimName"));
}
