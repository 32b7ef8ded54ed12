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
    if (w->op != BH_SIM_OP_CREATE)
        return 0;
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");
    struct bh_json *list = bh_tree_dflt_arr(w->arena, spec, "finalizers");
    if (list && !list->c.n)
        bh_json_push(list, bh_json_new_cstr(w->arena, "kubernetes"));
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

void bh_adm_validate_pdb(struct bh_sim_write *w)
{
    const struct bh_json *spec = bh_tree_obj(w->obj, "spec");

    if (bh_tree_has(spec, "minAvailable") && bh_tree_has(spec, "maxUnavailable"))
        bh_adm_invalid(w, "", w->obj, "spec", "minAvailable and maxUnavailable cannot be both set");
    bh_adm_int_or_percent(w, "spec", spec, "minAvailable");
    bh_adm_int_or_percent(w, "spec", spec, "maxUnavailable");
    bh_adm_label_selector(w, "spec", spec, "selector");
    bh_adm_one_of(w, "spec", spec, "unhealthyPodEvictionPolicy", "AlwaysAllow IfHealthyBudget",
                  false);
}

/* ---- PriorityClass --------------------------------------------------------------------------- */

#define HIGHEST_USER_PRIORITY 1000000000

int bh_adm_default_priorityclass(struct bh_sim_write *w)
{
    bh_tree_dflt(w->arena, w->obj, "preemptionPolicy: PreemptLowerPriority");
    return 0;
}

static bool known_system_class(const struct bh_json *o, int64_t value)
{
    const char *name = bh_tree_str(o, "metadata.name");

    return name && !bh_tree_bool(o, "globalDefault", false) &&
           ((bh_streq(name, "system-node-critical") && value == 2000001000) ||
            (bh_streq(name, "system-cluster-critical") && value == 2000000000));
}

void bh_adm_validate_priorityclass(struct bh_sim_write *w)
{
    int64_t value = bh_tree_i64(w->obj, "value", 0);
    const char *name = bh_tree_str(w->obj, "metadata.name");

    if (name && strncmp(name, "system-", 7) == 0) {
        if (!known_system_class(w->obj, value))
            bh_adm_forbidden(w, "", "metadata.name",
                             "priority class names with 'system-' prefix are reserved for system "
                             "use only. error: no system priority class with this name and value");
    } else if (value > HIGHEST_USER_PRIORITY) {
        bh_adm_forbidden(w, "", "value",
                         bh_adm_path(w, "maximum allowed value of a user defined priority is %d",
                                     HIGHEST_USER_PRIORITY));
    }
    bh_adm_one_of(w, "", w->obj, "preemptionPolicy", "Never PreemptLowerPriority", true);
    if (w->old && bh_tree_i64(w->old, "value", 0) != value)
        bh_adm_forbidden(w, "", "value", "may not be changed in an update.");
    bh_adm_immutable(w, "preemptionPolicy");
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

static bool config_key(const char *s, size_t n)
{
    if (!n || n > 253 || (n == 1 && *s == '.') || (n >= 2 && s[0] == '.' && s[1] == '.'))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= 'A' && s[i] <= 'Z') &&
            !(s[i] >= '0' && s[i] <= '9') && !strchr("-_.", s[i]))
            return false;
    }
    return true;
}

#define DATA_BYTES_MAX 1048576

/* What m's value takes in the store: base64 is counted as what it stands for. */
static size_t data_bytes(const struct bh_json *m, bool base64)
{
    size_t n = m->type == BH_JSON_STRING ? m->s.n : 0, pad = 0;

    if (!base64)
        return n;
    while (pad < n && m->s.p[n - 1 - pad] == '=')
        pad++;
    return (n - pad) * 3 / 4;
}

void bh_adm_validate_data(struct bh_sim_write *w)
{
    static const char *const maps[] = {"data", "binaryData"};
    bool frozen = bh_tree_bool(w->old, "immutable", false),
         secret = bh_streq(w->type->kind, "Secret");
    size_t n = 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(maps); i++) {
        bh_json_each(m, bh_tree_obj(w->obj, maps[i])) {
            n += data_bytes(m, secret || i == 1);
            if (!config_key(m->key.p, m->key.n))
                bh_adm_invalid_text(w, bh_adm_path(w, "%s[%.100s]", maps[i], m->key.p), m->key.p,
                                    "a valid config key must consist of alphanumeric characters, "
                                    "'-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
                                    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')");
        }
        if (frozen && !bh_adm_same(w->obj, w->old, maps[i]))
            bh_adm_forbidden(w, "", maps[i], "field is immutable when `immutable` is set");
    }
    if (n > DATA_BYTES_MAX) /* "[]" is how upstream writes the whole object's path */
        bh_sim_field_error(w->error, secret ? "data" : "[]", "Too long", NULL,
                           "may not be more than %d bytes", DATA_BYTES_MAX);
    if (frozen && !bh_tree_bool(w->obj, "immutable", false))
        bh_adm_forbidden(w, "", "immutable", "field is immutable when `immutable` is set");
}

/* ---- LimitRange ------------------------------------------------------------------------------ */

int bh_adm_default_limitrange(struct bh_sim_write *w)
{
    static const char *const maps[] = {"default", "defaultRequest", "max", "min",
                                       "maxLimitRequestRatio"};

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

static void device_request(struct bh_arena *a, struct bh_json *r)
{
    bh_tree_dflt(a, r, "allocationMode: ExactCount");
    if (bh_tree_is(r, "allocationMode", "ExactCount"))
        bh_tree_dflt(a, r, "count: 1");
}

static void claim_spec(struct bh_arena *a, struct bh_json *spec)
{
    bh_json_each(r, bh_tree_arr(spec, "devices.requests")) {
        device_request(a, bh_tree_obj(r, "exactly"));
        bh_json_each(alt, bh_tree_arr(r, "firstAvailable"))
            device_request(a, alt);
    }
}

int bh_adm_default_claim(struct bh_sim_write *w)
{
    claim_spec(w->arena, bh_tree_obj(w->obj, "spec"));
    if (w->op == BH_SIM_OP_CREATE)
        bh_json_set(w->arena, w->obj, "status", bh_json_new(w->arena, BH_JSON_OBJECT));
    return 0;
}

int bh_adm_default_claimtemplate(struct bh_sim_write *w)
{
    claim_spec(w->arena, bh_tree_obj(w->obj, "spec.spec"));
    return 0;
}

/* ---- HorizontalPodAutoscaler ----------------------------------------------------------------- */

int bh_adm_default_hpa(struct bh_sim_write *w)
{
    bh_tree_dflt(w->arena, bh_json_obj_at(w->arena, w->obj, "spec"), "minReplicas: 1");
    return 0;
}

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
