/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/pod_validate.c - field errors of a pod's spec, in pods and in templates
 *
 * Upstream: pkg/apis/core/validation/validation.go ValidatePodSpec and below (v1.36); differences:
 * probes, life cycle hooks, environment, security contexts, DNS and volume sources are not checked.
 */
#include "simulator/admission/admission.h"

#include "common/k8s/quantity.h"

/* ---- resources ------------------------------------------------------------------------------- */

void bh_adm_resource_map(struct bh_sim_write *w, const char *field, const struct bh_json *map)
{
    bh_json_each(m, map) {
        bh_nano q;
        if (bh_adm_parse_quantity(m, &q) && q < 0)
            bh_adm_invalid_value(w, bh_adm_path(w, "%s[%.100s]", field, m->key.p), m,
                                 "must be greater than or equal to 0");
    }
}

static void validate_resources(struct bh_sim_write *w, const char *at, const struct bh_json *holder)
{
    const struct bh_json *requests = bh_tree_obj(holder, "resources.requests");
    const struct bh_json *limits = bh_tree_obj(holder, "resources.limits");

    bh_adm_resource_map(w, bh_adm_member(w, at, "resources.limits"), limits);
    bh_adm_resource_map(w, bh_adm_member(w, at, "resources.requests"), requests);
    bh_json_each(r, requests) {
        const struct bh_json *l = bh_json_get(limits, r->key.p);
        bh_nano have, max;
        bool fits = !strchr(r->key.p, '/') && strncmp(r->key.p, "hugepages-", 10) != 0;
        if (!bh_adm_parse_quantity(r, &have) || !bh_adm_parse_quantity(l, &max)) {
            if (!fits)
                bh_adm_required(w, at, "resources.limits",
                                "Limit must be set for non overcommitable resources");
        } else if (fits ? have > max : have != max) {
            bh_adm_invalid_value(w, bh_adm_member(w, at, "resources.requests"), r,
                                 bh_adm_path(w, "must be %s %.100s limit of %.40s",
                                             fits ? "less than or equal to" : "equal to", r->key.p,
                                             l->s.p));
        }
    }
}

/* ---- containers and volumes ------------------------------------------------------------------ */

static void port_number(struct bh_sim_write *w, const char *at, const struct bh_json *port,
                        const char *member, bool required)
{
    const struct bh_json *v = bh_json_get(port, member);
    int64_t n = 0;

    if (v)
        bh_json_i64(v, &n);
    if (required && (!v || n == 0))
        bh_adm_required(w, at, member, "");
    else if (n && (n < 1 || n > 65535))
        bh_adm_invalid(w, at, port, member, "must be between 1 and 65535, inclusive");
}

/* One of the pod's, or of those that a stateful set gives to each of its pods. */
static bool has_volume(const struct bh_sim_write *w, const struct bh_json *spec, const char *name)
{
    bh_json_each(v, bh_tree_arr(spec, "volumes"))
        if (bh_tree_is(v, "name", name))
            return true;
    bh_json_each(t, bh_tree_arr(w->obj, "spec.volumeClaimTemplates"))
        if (bh_tree_is(t, "metadata.name", name))
            return true;
    return false;
}

static void container(struct bh_sim_write *w, const char *at, const struct bh_json *spec,
                      const struct bh_json *c)
{
    bh_adm_dns_label(w, bh_adm_member(w, at, "name"), bh_tree_str(c, "name"));
    const char *image = bh_adm_text(w, at, c, "image", "");
    if (image && (image[0] == ' ' || image[strlen(image) - 1] == ' '))
        bh_adm_invalid(w, at, c, "image", "must not have leading or trailing whitespace");
    bh_adm_one_of(w, at, c, "terminationMessagePolicy", "FallbackToLogsOnError File", true);
    const struct bh_json *ports = bh_tree_arr(c, "ports");
    size_t i = 0;
    bh_json_each(p, ports) {
        const char *f = bh_adm_path(w, "%s.ports[%zu]", at, i++);
        const char *name = bh_json_get_text(p, "name");
        port_number(w, f, p, "containerPort", true);
        port_number(w, f, p, "hostPort", false);
        bh_adm_one_of(w, f, p, "protocol", "SCTP TCP UDP", true);
        if (*name)
            bh_adm_dns_label(w, bh_adm_member(w, f, "name"), name);
        bh_adm_unique(w, bh_adm_member(w, f, "name"), ports, p);
    }
    i = 0;
    bh_json_each(m, bh_tree_arr(c, "volumeMounts")) {
        const char *f = bh_adm_path(w, "%s.volumeMounts[%zu]", at, i++);
        const char *name = bh_adm_text(w, f, m, "name", "");
        if (name && !has_volume(w, spec, name)) {
            struct bh_buf b = {0};
            bh_buf_add_json_str(&b, name, BH_MIN(strlen(name), (size_t)100));
            bh_sim_field_error(w->error, bh_adm_member(w, f, "name"), "Not found", bh_buf_str(&b),
                               "%s", "");
            bh_buf_fini(&b);
        }
        bh_adm_text(w, f, m, "mountPath", "");
    }
    bh_adm_one_of(w, at, c, "imagePullPolicy", "Always IfNotPresent Never", true);
    validate_resources(w, at, c);
}

static bool name_before(const struct bh_json *spec, const struct bh_json *c, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(o, bh_tree_arr(spec, lists[i])) {
            if (o == c)
                return false;
            if (bh_tree_is(o, "name", name))
                return true;
        }
    }
    return false;
}

static void containers(struct bh_sim_write *w, const char *at, const struct bh_json *spec,
                       const char *list)
{
    size_t i = 0;

    bh_json_each(c, bh_tree_arr(spec, list)) {
        const char *f = bh_adm_path(w, "%s.%s[%zu]", at, list, i++);
        const char *name = bh_json_get_text(c, "name");
        if (*name && name_before(spec, c, name))
            bh_adm_duplicate(w, bh_adm_member(w, f, "name"), name);
        container(w, f, spec, c);
    }
}

/* Containers for debugging serve nobody: what others would rely on is refused. */
static void ephemeral(struct bh_sim_write *w, const char *at, const struct bh_json *spec)
{
    static const char *const serves[] = {"lifecycle",      "livenessProbe", "ports",
                                         "readinessProbe", "resizePolicy",  "resources",
                                         "restartPolicy",  "startupProbe"};
    size_t n = 0;

    containers(w, at, spec, "ephemeralContainers");
    bh_json_each(c, bh_tree_arr(spec, "ephemeralContainers")) {
        const char *f = bh_adm_path(w, "%s.ephemeralContainers[%zu]", at, n++);
        const char *target = bh_json_get_text(c, "targetContainerName");
        for (size_t i = 0; i < BH_ARRAY_LEN(serves); i++) {
            const struct bh_json *m = bh_json_get(c, serves[i]);
            if (m && (m->type == BH_JSON_STRING || bh_tree_len(m)))
                bh_adm_forbidden(w, f, serves[i], "cannot be set for an Ephemeral Container");
        }
        if (*target &&
            !name_before(spec, bh_json_at(bh_tree_arr(spec, "ephemeralContainers"), 0), target))
            bh_sim_field_error(w->error, bh_adm_member(w, f, "targetContainerName"), "Not found",
                               bh_adm_path(w, "\"%.63s\"", target), "%s", "");
    }
}

/* ---- scheduling ------------------------------------------------------------------------------ */

static void toleration(struct bh_sim_write *w, const char *at, const struct bh_json *t)
{
    const char *key = bh_json_get_text(t, "key"), *value = bh_json_get_text(t, "value");
    const char *op = bh_json_get_text(t, "operator");

    if (*key)
        bh_adm_label_key(w, bh_adm_member(w, at, "key"), key);
    else if (!bh_streq(op, "Exists"))
        bh_adm_invalid_text(w, bh_adm_member(w, at, "operator"), op,
                            "operator must be Exists when `key` is empty, which means \"match all "
                            "values and all keys\"");
    if (bh_tree_has(t, "tolerationSeconds") && !bh_tree_is(t, "effect", "NoExecute"))
        bh_adm_invalid(w, at, t, "effect",
                       "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (bh_streq(op, "Exists") && *value)
        bh_adm_invalid_text(w, bh_adm_member(w, at, "operator"), value,
                            "value must be empty when `operator` is 'Exists'");
    bh_adm_one_of(w, at, t, "operator", "Equal Exists Gt Lt", false);
    bh_adm_one_of(w, at, t, "effect", BH_ADM_EFFECTS, false);
}

void bh_adm_topology_key(struct bh_sim_write *w, const char *at, const struct bh_json *holder)
{
    const char *key = bh_adm_text(w, at, holder, "topologyKey", "can not be empty");

    if (key)
        bh_adm_label_key(w, bh_adm_member(w, at, "topologyKey"), key);
}

static void spread_constraint(struct bh_sim_write *w, const char *at, const struct bh_json *c)
{
    const struct bh_json *min = bh_json_get(c, "minDomains");

    if (bh_tree_i64(c, "maxSkew", 0) <= 0)
        bh_sim_field_error(w->error, bh_adm_member(w, at, "maxSkew"), "Invalid value",
                           bh_adm_path(w, "%lld", (long long)bh_tree_i64(c, "maxSkew", 0)),
                           "must be greater than zero");
    bh_adm_topology_key(w, at, c);
    bh_adm_one_of(w, at, c, "whenUnsatisfiable", "DoNotSchedule ScheduleAnyway", true);
    if (min && min->type == BH_JSON_NUMBER) {
        if (bh_tree_i64(c, "minDomains", 0) <= 0)
            bh_adm_invalid(w, at, c, "minDomains", "must be greater than zero");
        if (!bh_tree_is(c, "whenUnsatisfiable", "DoNotSchedule"))
            bh_adm_invalid(w, at, c, "minDomains",
                           "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "
                           "ScheduleAnyway");
    }
    bh_adm_one_of(w, at, c, "nodeAffinityPolicy", "Honor Ignore", false);
    bh_adm_one_of(w, at, c, "nodeTaintsPolicy", "Honor Ignore", false);
    if (bh_tree_len(bh_tree_arr(c, "matchLabelKeys")) && !bh_tree_has(c, "labelSelector"))
        bh_adm_forbidden(w, at, "matchLabelKeys",
                         "must not be specified when labelSelector is not set");
    bh_adm_label_selector(w, at, c, "labelSelector");
}

static void validate_spread(struct bh_sim_write *w, const char *at, const struct bh_json *list)
{
    size_t i = 0;

    bh_json_each(c, list) {
        const char *f = bh_adm_path(w, "%s[%zu]", at, i++);
        const char *key = bh_tree_str(c, "topologyKey"),
                   *when = bh_tree_str(c, "whenUnsatisfiable");
        spread_constraint(w, f, c);
        for (const struct bh_json *p = list->c.first; key && when && p != c; p = p->next) {
            if (bh_tree_is(p, "topologyKey", key) && bh_tree_is(p, "whenUnsatisfiable", when)) {
                bh_adm_duplicate(w, bh_adm_path(w, "%s.{topologyKey, whenUnsatisfiable}", f),
                                 bh_adm_path(w, "{%s, %s}", key, when));
                break;
            }
        }
    }
}

static void scheduling_gates(struct bh_sim_write *w, const char *at, const struct bh_json *spec)
{
    const struct bh_json *gates = bh_tree_arr(spec, "schedulingGates");
    size_t i = 0;

    bh_json_each(g, gates) {
        const char *f = bh_adm_path(w, "%s.schedulingGates[%zu]", at, i++);
        bh_adm_label_key(w, f, bh_tree_str(g, "name"));
        bh_adm_unique(w, f, gates, g);
    }
    if (bh_tree_len(gates) && *bh_json_get_text(spec, "nodeName"))
        bh_adm_forbidden(w, at, "nodeName",
                         "cannot be set until all schedulingGates have been cleared");
}

/* ---- the spec -------------------------------------------------------------------------------- */

static void scheduling_group(struct bh_sim_write *w, const char *at, const struct bh_json *spec)
{
    const struct bh_json *group = bh_tree_obj(spec, "schedulingGroup");
    const char *name = bh_tree_str(group, "podGroupName"), *field;

    if (!group)
        return;
    field = bh_adm_member(w, at, "schedulingGroup");
    if (!name)
        bh_adm_invalid_text(w, field, "", "must specify one of: `podGroupName`");
    else if (!*name)
        bh_adm_invalid(w, field, group, "podGroupName", BH_SIM_SUBDOMAIN_TEXT);
    else
        bh_adm_dns_subdomain(w, field, group, "podGroupName");
}

void bh_adm_pod_spec(struct bh_sim_write *w, const char *at, const struct bh_json *spec)
{
    const struct bh_json *list = bh_tree_arr(spec, "volumes");
    size_t i = 0;
    bh_json_each(v, list) {
        const char *f = bh_adm_path(w, "%s.volumes[%zu].name", at, i++);
        bh_adm_dns_label(w, f, bh_tree_str(v, "name"));
        bh_adm_unique(w, f, list, v);
    }
    if (!bh_tree_len(bh_tree_arr(spec, "containers")))
        bh_adm_required(w, at, "containers", "");
    containers(w, at, spec, "containers");
    containers(w, at, spec, "initContainers");
    ephemeral(w, at, spec);
    validate_resources(w, at, spec);
    bh_adm_one_of(w, at, spec, "restartPolicy", "Always Never OnFailure", true);
    bh_adm_one_of(w, at, spec, "dnsPolicy", "ClusterFirst ClusterFirstWithHostNet Default None",
                  true);
    bh_adm_label_map(w, bh_adm_member(w, at, "nodeSelector"), bh_tree_obj(spec, "nodeSelector"));
    bh_adm_affinity(w, bh_adm_member(w, at, "affinity"), bh_tree_obj(spec, "affinity"));
    bh_adm_each(w, at, spec, "tolerations", toleration);
    validate_spread(w, bh_adm_member(w, at, "topologySpreadConstraints"),
                    bh_tree_arr(spec, "topologySpreadConstraints"));
    scheduling_gates(w, at, spec);
    bh_adm_not_negative(w, at, spec, "terminationGracePeriodSeconds");
    bh_adm_one_of(w, at, spec, "preemptionPolicy", "Never PreemptLowerPriority", false);
    bh_adm_dns_subdomain(w, at, spec, "nodeName");
    bh_adm_dns_subdomain(w, at, spec, "schedulerName");
    scheduling_group(w, at, spec);
}
