/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_spec_default.c - defaults of a pod's spec, in pods and in templates
 *
 * Upstream: pkg/apis/core/v1/defaults.go SetDefaults_PodSpec, _Container, _Probe, _Volume ...
 * (v1.36); differences: volume sources that are no longer in use (iscsi, rbd ...) get no defaults.
 */
#include "simulator/admission/admission.h"

static void default_probe(struct bh_arena *a, struct bh_json *p)
{
    struct bh_json *grpc = bh_tree_obj(p, "grpc");

    bh_tree_dflt(a, p,
                 "timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3");
    bh_tree_dflt(a, bh_tree_obj(p, "httpGet"), "path: /, scheme: HTTP");
    if (grpc && !bh_json_get(grpc, "service"))
        bh_json_set_str(a, grpc, "service", "");
}

/* Without a tag, or with "latest", the image may change under its name. */
static const char *pull_policy(const char *image)
{
    const char *slash = strrchr(image, '/'), *colon = strrchr(slash ? slash : image, ':');

    return !strchr(image, '@') && (!colon || bh_streq(colon, ":latest")) ? "Always"
                                                                         : "IfNotPresent";
}

static void default_field_ref(struct bh_arena *a, struct bh_json *holder)
{
    bh_tree_dflt_str(a, bh_tree_obj(holder, "fieldRef"), "apiVersion", "v1");
}

static int default_container(struct bh_sim_write *w, struct bh_json *c)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    struct bh_arena *a = w->arena;
    const char *image = bh_tree_str(c, "image");

    if (c->type != BH_JSON_OBJECT)
        return 0;
    bh_tree_dflt_str(a, c, "imagePullPolicy", pull_policy(image ? image : ""));
    bh_tree_dflt_str(a, c, "terminationMessagePath", "/dev/termination-log");
    bh_tree_dflt_str(a, c, "terminationMessagePolicy", "File");
    bh_json_each(p, bh_tree_arr(c, "ports"))
        bh_tree_dflt_str(a, p, "protocol", "TCP");
    bh_json_each(e, bh_tree_arr(c, "env"))
        default_field_ref(a, bh_tree_obj(e, "valueFrom"));
    for (size_t i = 0; i < BH_ARRAY_LEN(probes); i++)
        default_probe(a, bh_tree_obj(c, probes[i]));
    struct bh_json *res = bh_tree_dflt_obj(a, c, "resources");
    if (bh_adm_quantities_at(w, res, "requests"))
        return w->error->code;
    return bh_adm_quantities_at(w, res, "limits");
}

static void default_volume(struct bh_arena *a, struct bh_json *v)
{
    static const char *const with_mode[] = {"secret", "configMap", "downwardAPI"};
    struct bh_json *host = bh_tree_obj(v, "hostPath");

    if (v->type != BH_JSON_OBJECT)
        return;
    if (v->c.n == 1 && bh_json_get(v, "name")) /* no source at all */
        bh_json_obj_at(a, v, "emptyDir");
    for (size_t i = 0; i < BH_ARRAY_LEN(with_mode); i++)
        bh_tree_dflt_i64(a, bh_tree_obj(v, with_mode[i]), "defaultMode", 420);
    bh_json_each(i, bh_tree_arr(v, "downwardAPI.items"))
        default_field_ref(a, i);
    if (host && !bh_json_get(host, "type"))
        bh_json_set_str(a, host, "type", "");
    struct bh_json *projected = bh_tree_obj(v, "projected");
    bh_tree_dflt_i64(a, projected, "defaultMode", 420);
    bh_json_each(s, bh_tree_arr(projected, "sources")) {
        bh_tree_dflt_i64(a, bh_tree_obj(s, "serviceAccountToken"), "expirationSeconds", 3600);
        bh_json_each(i, bh_tree_arr(s, "downwardAPI.items"))
            default_field_ref(a, i);
    }
    bh_tree_dflt_str(a, bh_tree_obj(v, "ephemeral.volumeClaimTemplate.spec"), "volumeMode",
                     "Filesystem");
}

int bh_adm_default_pod_spec(struct bh_sim_write *w, struct bh_json *spec)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    struct bh_arena *a = w->arena;

    if (!spec)
        return 0;
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(c, bh_tree_arr(spec, lists[i])) {
            if (default_container(w, c))
                return w->error->code;
        }
    }
    bh_json_each(v, bh_tree_arr(spec, "volumes"))
        default_volume(a, v);
    bh_tree_dflt_str(a, spec, "restartPolicy", "Always");
    bh_tree_dflt_i64(a, spec, "terminationGracePeriodSeconds", 30);
    bh_tree_dflt_str(a, spec, "dnsPolicy", "ClusterFirst");
    bh_tree_dflt_obj(a, spec, "securityContext");
    bh_tree_dflt_str(a, spec, "schedulerName", "default-scheduler");
    /* serviceAccount is the old name of serviceAccountName; both are stored. */
    const char *name = bh_tree_str(spec, "serviceAccountName");
    const char *old = bh_tree_str(spec, "serviceAccount");
    if (name && *name)
        bh_json_set_str(a, spec, "serviceAccount", name);
    else if (old && *old)
        bh_json_set_str(a, spec, "serviceAccountName", old);
    return bh_adm_quantities_at(w, spec, "overhead");
}

int bh_adm_default_template(struct bh_sim_write *w, struct bh_json *holder)
{
    struct bh_json *t = bh_tree_obj(holder, "template"), *meta = bh_tree_obj(t, "metadata");

    if (meta && !bh_tree_has(meta, "creationTimestamp")) /* tools send null here */
        bh_json_unset(meta, "creationTimestamp");
    return bh_adm_default_pod_spec(w, bh_tree_obj(t, "spec"));
}
