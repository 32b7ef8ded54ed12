/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/convert.c - second representations of stored objects
 *
 * Events: core/v1 is stored, events.k8s.io/v1 shows the same with other names. Autoscalers: v2 is
 * stored, v1 knows only the CPU target. PodGroups and Workloads: v1alpha2 is stored; later versions
 * call the reference to the template and the disruption mode differently. Both directions edit the
 * tree in place.
 * Upstream: pkg/apis/events/v1/conversion.go, pkg/apis/autoscaling/v1/conversion.go; differences:
 *           v1 autoscalers do not carry foreign metrics in annotations: an update through v1 keeps
 *           only the CPU target.
 */
#include "simulator/server/req.h"

struct rename {
    const char *stored, *shown;
};
static const struct rename event_names[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
};

static void rename_members(struct bh_arena *a, struct bh_json *obj, bool out)
{
    bh_json_each(m, obj) {
        for (size_t i = 0; i < BH_ARRAY_LEN(event_names); i++) {
            const char *from = out ? event_names[i].stored : event_names[i].shown;
            const char *to = out ? event_names[i].shown : event_names[i].stored;
            if (bh_str_eqc(m->key, from)) {
                m->key = bh_str_c(bh_arena_strdup(a, to));
                break;
            }
        }
    }
}

static bool is_event(const struct bh_sim_type *t)
{
    return bh_streq(t->kind, "Event");
}

static void set_version(struct bh_arena *a, const struct bh_sim_type *t, struct bh_json *obj)
{
    char api_version[80];
    bh_sim_type_api_version(t, api_version);
    bh_json_set_str(a, obj, "apiVersion", api_version);
}

/* ---- PodGroup, Workload ---------------------------------------------------------------------- */

static bool is_group_api(const struct bh_sim_type *t)
{
    return bh_streq(t->group, "scheduling.k8s.io");
}

/* "Pod" and {single: {}}, "PodGroup" and {all: {}} are the same. What is neither stays, to be refused. */
static void convert_mode(struct bh_arena *a, struct bh_json *spec, bool out)
{
    static const char *const modes[][2] = {{"Pod", "single"}, {"PodGroup", "all"}};
    const struct bh_json *m = bh_json_get(spec, "disruptionMode");

    for (size_t i = 0; m && i < BH_ARRAY_LEN(modes); i++) {
        const struct bh_json *v = bh_json_get(m, modes[i][1]);
        if (out && bh_json_cstr(m) && bh_streq(bh_json_cstr(m), modes[i][0])) {
            bh_json_set(a, spec, "disruptionMode", bh_json_make(a, "%s: {}", modes[i][1]));
            return;
        }
        if (!out && v && v->type == BH_JSON_OBJECT && m->c.n == 1) {
            bh_json_set_str(a, spec, "disruptionMode", modes[i][0]);
            return;
        }
    }
}

static void convert_group(struct bh_arena *a, struct bh_json *obj, bool out)
{
    struct bh_json *spec = bh_json_get(obj, "spec");
    const char *from = out ? "podGroupTemplateRef" : "workloadRef";
    struct bh_json *ref = bh_json_get(spec, from);

    if (!out) /* of gates that there are not before 1.37, and that are off then */
        bh_json_drop(spec, "parentCompositePodGroupName preemptionPolicy");
    convert_mode(a, spec, out);
    bh_json_each(t, bh_json_get(spec, "podGroupTemplates"))
        convert_mode(a, t, out);
    if (!ref || ref->type == BH_JSON_NULL) { /* stored even when it is empty */
        bh_json_unset(spec, from);
        return;
    }
    const struct bh_json *w = out ? bh_json_get(ref, "workload") : ref;
    const char *template = out ? "podGroupTemplateName" : "templateName";
    const char *as = out ? "templateName" : "podGroupTemplateName";
    struct bh_json *copy = bh_json_new(a, BH_JSON_OBJECT);

    bh_json_each(m, w)
        bh_json_set(a, copy,
                    bh_str_eqc(m->key, template) ? as : bh_arena_strndup(a, m->key.p, m->key.n),
                    bh_json_clone(a, m));
    bh_json_unset(spec, from);
    bh_json_set(a, spec, out ? "workloadRef" : "podGroupTemplateRef",
                out ? copy : bh_json_make(a, "workload: %p", copy));
}

void bh_sim_convert_out(struct bh_arena *a, const struct bh_sim_type *t, struct bh_json *obj)
{
    if (!t->stored_as)
        return;
    set_version(a, t, obj);
    if (t->custom)
        return;
    if (is_event(t))
        rename_members(a, obj, true);
    else if (is_group_api(t))
        convert_group(a, obj, true);
    else {
        struct bh_json *spec = bh_json_get(obj, "spec"), *status = bh_json_get(obj, "status");
        bh_json_each(m, bh_json_get(spec, "metrics")) {
            const char *name = bh_json_get_str(bh_json_get(m, "resource"), "name");
            const struct bh_json *v = bh_json_path(m, "resource.target.averageUtilization");
            if (name && bh_streq(name, "cpu") && v)
                bh_json_set(a, spec, "targetCPUUtilizationPercentage", bh_json_clone(a, v));
        }
        bh_json_drop(spec, "metrics behavior");
        bh_json_drop(status, "conditions currentMetrics");
    }
}

void bh_sim_convert_in(struct bh_arena *a, const struct bh_sim_type *t, struct bh_json *obj)
{
    if (!t->stored_as)
        return;
    set_version(a, bh_sim_type_stored(t), obj);
    if (t->custom)
        return;
    struct bh_json *spec = bh_json_get(obj, "spec");
    const struct bh_json *percent = bh_json_get(spec, "targetCPUUtilizationPercentage");
    if (is_event(t)) {
        rename_members(a, obj, false);
    } else if (is_group_api(t)) {
        convert_group(a, obj, false);
    } else if (percent && percent->type == BH_JSON_NUMBER) {
        bh_json_add(a, spec,
                    "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, "
                    "averageUtilization: %p}}}]",
                    bh_json_clone(a, percent));
        bh_json_unset(spec, "targetCPUUtilizationPercentage");
    }
}
