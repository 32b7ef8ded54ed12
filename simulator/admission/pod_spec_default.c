/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_spec_default.c - defaults of a pod's spec, in pods and in templates
 *
 * Upstream: pkg/apis/core/v1/defaults.go SetDefaults_PodSpec, _Container, _Probe, _Volume ...
 * (v1.36). rules/defaults.data has what needs no function.
 */
#include "simulator/admission/rules.h"

/* Without a tag, or with "latest", the image may change under its name. */
static const char *pull_policy(const char *image)
{
    const char *slash = strrchr(image, '/'), *colon = strrchr(slash ? slash : image, ':');

    return !strchr(image, '@') && (!colon || bh_streq(colon, ":latest")) ? "Always"
                                                                         : "IfNotPresent";
}

static int default_container(struct bh_sim_write *w, struct bh_json *c)
{
    const char *image = bh_tree_str(c, "image");
    struct bh_json *res = bh_tree_obj(c, "resources");

    if (c->type != BH_JSON_OBJECT)
        return 0;
    bh_tree_dflt_str(w->arena, c, "imagePullPolicy", pull_policy(image ? image : ""));
    if (bh_adm_quantities_at(w, res, "requests"))
        return w->error->code;
    return bh_adm_quantities_at(w, res, "limits");
}

static void default_volume(struct bh_arena *a, struct bh_json *v)
{
    struct bh_json *image = bh_tree_obj(v, "image");
    const char *reference = bh_tree_str(image, "reference");

    if (v->type == BH_JSON_OBJECT && v->c.n == 1 && bh_json_get(v, "name")) /* no source at all */
        bh_json_obj_at(a, v, "emptyDir");
    bh_tree_dflt_str(a, image, "pullPolicy", pull_policy(reference ? reference : ""));
}

int bh_adm_default_pod_spec(struct bh_sim_write *w, struct bh_json *spec)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    struct bh_arena *a = w->arena;

    if (!spec)
        return 0;
    bh_rules_default(w, "PodSpec", spec);
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(c, bh_tree_arr(spec, lists[i])) {
            if (default_container(w, c))
                return w->error->code;
        }
    }
    bh_json_each(v, bh_tree_arr(spec, "volumes"))
        default_volume(a, v);
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
