/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_group.c - PodGroup and Workload
 *
 * Objects arrive in the form of v1alpha2; fields are named in errors as the client's version has them.
 * Upstream: pkg/registry/scheduling/{podgroup,workload}/strategy.go, pkg/apis/scheduling/validation,
 * plugin/pkg/admission/{scheduling,priority} (v1.36); differences: of a list of resource claims an
 * element that was there before is checked again.
 */
#include "simulator/admission/admission.h"

#include <ctype.h>

#define PROTECTION   "scheduling.k8s.io/podgroup-protection"
#define PRIORITY_MAX 1000000000

/* The client's version is one of those after v1alpha2. */
static bool is_later(const struct bh_sim_write *w)
{
    return w->as && w->as->stored_as;
}

/* ---- gates ----------------------------------------------------------------------------------- */

static const struct {
    const char *gate, *fields;
} gated[] = {
    {"TopologyAwareWorkloadScheduling", "schedulingConstraints"},
    {"DRAWorkloadResourceClaims", "resourceClaims"},
    {"WorkloadAwarePreemption", "disruptionMode priorityClassName priority"},
};

static bool uses(const struct bh_json *old, const char *fields)
{
    bh_json_each(m, old)
        if (bh_word_at(fields, m->key.p) >= 0)
            return true;
    return false;
}

/* Fields whose gate is off are as if they had not been sent, unless the object has them already. */
static void drop_gated(struct bh_sim_write *w, struct bh_json *spec, const struct bh_json *old)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(gated); i++)
        if (!bh_sim_feature(w->sim, gated[i].gate) && !uses(old, gated[i].fields))
            bh_json_drop(spec, gated[i].fields);
}

/* ---- admission plugins of a new group -------------------------------------------------------- */

/* PodGroupWorkloadExists. */
static int workload_exists(struct bh_sim_write *w, const struct bh_json *spec)
{
    const struct bh_json *ref = bh_tree_obj(spec, "podGroupTemplateRef.workload");
    const char *name = bh_tree_str(ref, "workloadName");
    const char *template = bh_tree_str(ref, "podGroupTemplateName");
    const struct bh_sim_obj *o;

    if (!name || !template) /* validation says more */
        return 0;
    o = bh_sim_get(w->sim, BH_SIM_TYPE("scheduling.k8s.io", "v1alpha2", "workloads"),
                   bh_json_get_text(bh_json_get(w->obj, "metadata"), "namespace"), name);
    if (!o)
        return bh_adm_forbid(w, "PodGroup rejected: Workload \"%.253s\" not found", name);
    if (o->deleting)
        return bh_adm_forbid(w, "PodGroup rejected: Workload \"%.253s\" is being deleted", name);
    bh_json_each(t, bh_tree_arr(bh_sim_obj_tree(w->arena, o), "spec.podGroupTemplates"))
        if (bh_tree_is(t, "name", template))
            return 0;
    return bh_adm_forbid(
        w, "PodGroup rejected: PodGroupTemplate \"%.63s\" not found in Workload \"%.253s\"",
        template, name);
}

/* PodGroupProtection: a group stays while it has pods. */
static void protect(struct bh_sim_write *w)
{
    struct bh_json *list =
        bh_tree_dflt_arr(w->arena, bh_json_obj_at(w->arena, w->obj, "metadata"), "finalizers");

    if (list && !bh_tree_lists(list, PROTECTION))
        bh_json_push(list, bh_json_new_cstr(w->arena, PROTECTION));
}

int bh_adm_default_podgroup(struct bh_sim_write *w)
{
    struct bh_json *spec = bh_json_obj_at(w->arena, w->obj, "spec");

    if (w->op == BH_SIM_OP_UPDATE_STATUS) {
        const struct bh_json *old = bh_tree_obj(w->old, "status");
        if (!bh_sim_feature(w->sim, "DRAWorkloadResourceClaims") &&
            !uses(old, "resourceClaimStatuses"))
            bh_json_drop(bh_tree_obj(w->obj, "status"), "resourceClaimStatuses");
        return 0;
    }
    drop_gated(w, spec, bh_tree_obj(w->old, "spec"));
    /* A default of v1alpha2, which stays when what was sent is dropped. */
    if (bh_sim_feature(w->sim, "WorkloadAwarePreemption") || (w->warnings && !is_later(w)))
        bh_tree_dflt(w->arena, spec, "disruptionMode: Pod");
    if (w->op != BH_SIM_OP_CREATE)
        return 0;
    protect(w);
    return bh_sim_feature(w->sim, "WorkloadAwarePreemption") ? bh_adm_group_priority(w, spec) : 0;
}

static bool is_gang(const struct bh_sim_obj *o)
{
    return o && strstr(o->json, "\"gang\":{"); /* stored text is compact, and valid */
}

int bh_adm_job_gang(struct bh_sim_write *w)
{
    const struct bh_sim_type *t = BH_SIM_TYPE("scheduling.k8s.io", "v1alpha2", "podgroups");
    const char *name = bh_tree_str(w->obj, "spec.template.spec.schedulingGroup.podGroupName");
    const char *ns = bh_json_get_text(bh_json_get(w->obj, "metadata"), "namespace");
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
    const struct bh_sim_obj *group = NULL;

    if (!w->old || !bh_sim_count(w->sim, t) || !bh_sim_feature(w->sim, "WorkloadWithJob") ||
        bh_tree_i64(w->obj, "spec.parallelism", 1) == bh_tree_i64(w->old, "spec.parallelism", 1))
        return 0;
    if (name)
        group = bh_sim_get(w->sim, t, ns, name);
    else
        bh_sim_owned_by(w->sim, bh_json_get_text(bh_json_get(w->obj, "metadata"), "uid"), t, &l);
    if (l.n)
        group = l.v[0];
    return is_gang(group)
               ? bh_adm_forbid(w,
                               "cannot change parallelism for a Job referencing gang-scheduled "
                               "PodGroup \"%s\"",
                               group->name)
               : 0;
}

int bh_adm_default_workload(struct bh_sim_write *w)
{
    const struct bh_json *old = bh_json_first(bh_tree_arr(w->old, "spec.podGroupTemplates"));

    bh_json_each(t, bh_tree_arr(w->obj, "spec.podGroupTemplates")) {
        drop_gated(w, t, old);
        if (bh_sim_feature(w->sim, "WorkloadAwarePreemption"))
            bh_tree_dflt(w->arena, t, "disruptionMode: Pod");
        if (w->warnings && !is_later(w) &&
            !bh_json_get(t, "schedulingConstraints")) /* no omitempty in v1alpha2 */
            bh_json_set(w->arena, t, "schedulingConstraints", bh_json_new(w->arena, BH_JSON_NULL));
        old = old ? old->next : NULL;
    }
    return 0;
}

/* ---- validation ------------------------------------------------------------------------------ */

/* Exactly one of the words is a member. */
static bool check_union(struct bh_sim_write *w, const char *field, const struct bh_json *v,
                        const char *words)
{
    struct bh_buf all = {0}, set = {0};
    unsigned n = 0;

    for (const char *p = words; *p;) {
        const size_t len = strcspn(p, " ");
        const char *name = bh_arena_strndup(w->arena, p, len);
        bh_buf_addf(&all, "%s`%s`", all.n ? ", " : "", name);
        if (bh_tree_has(v, name)) {
            bh_buf_addf(&set, "%s`%s`", n ? ", " : "", name);
            n++;
        }
        p += len + (p[len] == ' ');
    }
    if (n == 0)
        bh_adm_invalid_text(w, field, "",
                            bh_adm_path(w, "must specify one of: %s", bh_buf_str(&all)));
    else if (n > 1)
        bh_adm_invalid_text(w, field, bh_adm_path(w, "{%s}", bh_buf_str(&set)),
                            bh_adm_path(w,
                                        "exactly one of %s is required, but multiple fields are "
                                        "set",
                                        bh_buf_str(&all)));
    bh_buf_fini(&all);
    bh_buf_fini(&set);
    return n == 1;
}

static bool too_many(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                     const char *member, size_t max)
{
    const size_t n = bh_tree_len(bh_tree_arr(holder, member));

    if (n > max)
        bh_sim_field_error(w->error, bh_adm_member(w, at, member), "Too many",
                           bh_adm_path(w, "%zu", n), "must have at most %zu item%s", max,
                           max == 1 ? "" : "s");
    return n > max;
}

static void required_subdomain(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                               const char *member)
{
    if (bh_adm_text(w, at, holder, member, ""))
        bh_adm_dns_subdomain(w, at, holder, member);
}

static void check_policy(struct bh_sim_write *w, const char *at, const struct bh_json *holder)
{
    const char *field = bh_adm_member(w, at, "schedulingPolicy");
    const struct bh_json *policy = bh_tree_obj(holder, "schedulingPolicy");
    const struct bh_json *gang = bh_tree_obj(policy, "gang");
    const int64_t min = bh_tree_i64(gang, "minCount", 0);

    if (!check_union(w, field, policy, "basic gang") || !gang)
        return;
    if (min == 0)
        bh_adm_required(w, field, "gang.minCount", "");
    else if (min < 1)
        bh_adm_invalid(w, field, policy, "gang.minCount", "must be greater than or equal to 1");
}

static void check_topology(struct bh_sim_write *w, const char *at, const struct bh_json *t)
{
    const char *key = bh_adm_text(w, at, t, "key", "");

    if (key)
        bh_adm_label_key(w, bh_adm_member(w, at, "key"), key);
}

static void check_constraints(struct bh_sim_write *w, const char *at, const struct bh_json *holder)
{
    const struct bh_json *c = bh_tree_obj(holder, "schedulingConstraints");
    const char *field = bh_adm_member(w, at, "schedulingConstraints");

    if (!c)
        return;
    if (!bh_sim_feature(w->sim, "TopologyAwareWorkloadScheduling"))
        bh_adm_forbidden(w, at, "schedulingConstraints", "");
    else if (!too_many(w, field, c, "topology", 1))
        bh_adm_each(w, field, c, "topology", check_topology);
}

static void check_claim(struct bh_sim_write *w, const char *at, const struct bh_json *claim)
{
    check_union(w, at, claim, "resourceClaimName resourceClaimTemplateName");
    bh_adm_dns_label(w, bh_adm_member(w, at, "name"), bh_tree_str(claim, "name"));
    bh_adm_dns_subdomain(w, at, claim, "resourceClaimName");
    bh_adm_dns_subdomain(w, at, claim, "resourceClaimTemplateName");
}

static void check_claims(struct bh_sim_write *w, const char *at, const struct bh_json *holder)
{
    const struct bh_json *list = bh_tree_arr(holder, "resourceClaims");
    size_t i = 0;

    if (too_many(w, at, holder, "resourceClaims", 4))
        return;
    bh_json_each(c, list)
        bh_adm_unique(w, bh_adm_path(w, "%s.resourceClaims[%zu]", at, i++), list, c);
    bh_adm_each(w, at, holder, "resourceClaims", check_claim);
}

static void check_priority(struct bh_sim_write *w, const char *at, const struct bh_json *holder)
{
    const struct bh_json *mode = bh_json_get(holder, "disruptionMode");

    if (mode && is_later(w) && !bh_json_cstr(mode)) /* what conversion could not make a word of */
        check_union(w, bh_adm_member(w, at, "disruptionMode"), mode, "single all");
    else
        bh_adm_one_of(w, at, holder, "disruptionMode", "Pod PodGroup", false);
    bh_adm_dns_subdomain(w, at, holder, "priorityClassName");
    if (bh_tree_i64(holder, "priority", 0) > PRIORITY_MAX)
        bh_adm_invalid(w, at, holder, "priority",
                       bh_adm_path(w, "must be less than or equal to %d", PRIORITY_MAX));
}

/* What a group has in common with the templates of a workload. */
static void check_group(struct bh_sim_write *w, const char *at, const struct bh_json *holder)
{
    check_policy(w, at, holder);
    check_constraints(w, at, holder);
    check_claims(w, at, holder);
    check_priority(w, at, holder);
}

/* With the members' names in the version of the client. */
static void check_reference(struct bh_sim_write *w, const struct bh_json *spec)
{
    const struct bh_json *ref = bh_json_get(spec, "podGroupTemplateRef");
    const struct bh_json *workload = bh_tree_obj(ref, "workload");
    const char *at = is_later(w) ? "spec.workloadRef" : "spec.podGroupTemplateRef.workload";
    const char *template = is_later(w) ? "templateName" : "podGroupTemplateName";

    if (!ref || ref->type == BH_JSON_NULL ||
        (!is_later(w) && !check_union(w, "spec.podGroupTemplateRef", ref, "workload")))
        return;
    required_subdomain(w, at, workload, "workloadName");
    bh_adm_dns_label(w, bh_adm_member(w, at, template),
                     bh_tree_str(workload, "podGroupTemplateName"));
}

static void immutable_group(struct bh_sim_write *w)
{
    static const char *const fields[] = {
        "spec.schedulingConstraints", "spec.resourceClaims", "spec.disruptionMode",
        "spec.priorityClassName",     "spec.priority",
    };
    const char *ref = "spec.podGroupTemplateRef";

    if (!bh_adm_same(w->obj, w->old, ref))
        bh_adm_invalid_value(w, is_later(w) ? "spec.workloadRef" : ref, bh_json_path(w->obj, ref),
                             "field is immutable");
    if (is_later(w) && bh_tree_has(w->old, "spec.schedulingPolicy.gang") &&
        bh_tree_has(w->obj, "spec.schedulingPolicy.gang")) {
        /* minCount may change */
        bh_adm_immutable(w, "spec.schedulingPolicy.basic");
    } else {
        bh_adm_immutable(w, "spec.schedulingPolicy");
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(fields); i++)
        bh_adm_immutable(w, fields[i]);
}

/* ---- status ---------------------------------------------------------------------------------- */

#define REASON_TEXT                                                                                \
    "a condition reason must start with alphabetic character, optionally followed by a string of " \
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "  \
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex " \
    "used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"

static bool is_reason(const char *s)
{
    const size_t n = strlen(s);
    const char last = s[n - 1];

    return isalpha((unsigned char)*s) && last != ',' && last != ':' &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_,:") == n;
}

static void condition(struct bh_sim_write *w, const char *at, const struct bh_json *c)
{
    const char *type = bh_tree_str(c, "type");
    const char *reason = bh_adm_text(w, at, c, "reason", "must be set");
    const char *message = bh_tree_str(c, "message");

    bh_adm_label_key(w, bh_adm_member(w, at, "type"), type);
    bh_adm_one_of(w, at, c, "status", "False True Unknown", true);
    if (bh_tree_i64(c, "observedGeneration", 0) < 0)
        bh_adm_invalid(w, at, c, "observedGeneration", "must be greater than or equal to zero");
    if (!bh_tree_str(c, "lastTransitionTime"))
        bh_adm_required(w, at, "lastTransitionTime", "must be set");
    if (reason && strlen(reason) > 1024)
        bh_sim_field_error(w->error, bh_adm_member(w, at, "reason"), "Too long", NULL,
                           "may not be more than 1024 bytes");
    else if (reason && !is_reason(reason))
        bh_adm_invalid(w, at, c, "reason", REASON_TEXT);
    if (message && strlen(message) > 32768)
        bh_sim_field_error(w->error, bh_adm_member(w, at, "message"), "Too long", NULL,
                           "may not be more than 32768 bytes");
}

static void claim_status(struct bh_sim_write *w, const char *at, const struct bh_json *s)
{
    const char *name = bh_json_get_text(s, "name");
    bool known = false;

    bh_json_each(c, bh_tree_arr(w->obj, "spec.resourceClaims"))
        known = known || bh_tree_is(c, "name", name);
    if (!known)
        bh_adm_invalid_text(w, bh_adm_member(w, at, "name"), name,
                            "must match the name of an entry in `spec.resourceClaims`");
    bh_adm_dns_subdomain(w, at, s, "resourceClaimName");
}

static void check_status(struct bh_sim_write *w)
{
    const struct bh_json *status = bh_tree_obj(w->obj, "status");
    const struct bh_json *list = bh_tree_arr(status, "conditions");
    size_t i = 0;

    bh_json_each(c, list) {
        const char *type = bh_json_get_text(c, "type");
        for (const struct bh_json *p = list->c.first; *type && p != c; p = p->next)
            if (bh_tree_is(p, "type", type))
                bh_adm_duplicate(w, bh_adm_path(w, "status.conditions[%zu].type", i), type);
        i++;
    }
    bh_adm_each(w, "status", status, "conditions", condition);
    if (!too_many(w, "status", status, "resourceClaimStatuses", 4))
        bh_adm_each(w, "status", status, "resourceClaimStatuses", claim_status);
}

void bh_adm_validate_podgroup(struct bh_sim_write *w)
{
    const struct bh_json *spec = bh_tree_obj(w->obj, "spec");

    if (w->op == BH_SIM_OP_UPDATE_STATUS) {
        if (!bh_adm_same(w->obj, w->old, "status"))
            check_status(w);
        return;
    }
    if (w->old && bh_adm_same(w->obj, w->old, "spec"))
        return;
    if (w->old)
        immutable_group(w);
    check_reference(w, spec);
    check_group(w, "spec", spec);
    if (!w->old && !w->error->n_causes)
        workload_exists(w, spec);
}

/* ---- Workload -------------------------------------------------------------------------------- */

static void check_segment(struct bh_sim_write *w, const char *at, const struct bh_json *holder,
                          const char *member)
{
    const char *s = bh_adm_text(w, at, holder, member, "");

    if (s && (bh_streq(s, ".") || bh_streq(s, "..")))
        bh_adm_invalid(w, at, holder, member, bh_adm_path(w, "may not be '%s'", s));
    else if (s && strpbrk(s, "/%"))
        bh_adm_invalid(w, at, holder, member,
                       bh_adm_path(w, "may not contain '%s'", strchr(s, '/') ? "/" : "%"));
}

static void check_template(struct bh_sim_write *w, const char *at, const struct bh_json *t)
{
    bh_adm_dns_label(w, bh_adm_member(w, at, "name"), bh_tree_str(t, "name"));
    check_group(w, at, t);
}

void bh_adm_validate_workload(struct bh_sim_write *w)
{
    const struct bh_json *spec = bh_tree_obj(w->obj, "spec");
    const struct bh_json *ref = bh_tree_obj(spec, "controllerRef");
    const struct bh_json *list = bh_tree_arr(spec, "podGroupTemplates");
    size_t i = 0;

    if (w->old && bh_adm_same(w->obj, w->old, "spec"))
        return;
    bh_adm_immutable(w, "spec.controllerRef");
    bh_adm_immutable(w, "spec.podGroupTemplates");
    if (ref) {
        bh_adm_dns_subdomain(w, "spec.controllerRef", ref, "apiGroup");
        check_segment(w, "spec.controllerRef", ref, "kind");
        check_segment(w, "spec.controllerRef", ref, "name");
    }
    if (!bh_tree_len(list))
        bh_adm_required(w, "spec", "podGroupTemplates", "");
    if (too_many(w, "spec", spec, "podGroupTemplates", 8))
        return;
    bh_json_each(t, list)
        bh_adm_unique(w, bh_adm_path(w, "spec.podGroupTemplates[%zu]", i++), list, t);
    bh_adm_each(w, "spec", spec, "podGroupTemplates", check_template);
}
