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
            bh_adm_invalid(w, bh_adm_path(w, "%s[%.100s]", field, m->key.p), m,
                           "must be greater than or equal to 0");
    }
}

static bool overcommit(const char *resource)
{
    return !strchr(resource, '/') && strncmp(resource, "hugepages-", 10) != 0;
}

static void validate_resources(struct bh_sim_write *w, const char *field, const struct bh_json *res)
{
    const struct bh_json *requests = bh_tree_obj(res, "requests");
    const struct bh_json *limits = bh_tree_obj(res, "limits");

    bh_adm_resource_map(w, bh_adm_path(w, "%s.limits", field), limits);
    bh_adm_resource_map(w, bh_adm_path(w, "%s.requests", field), requests);
    bh_json_each(r, requests) {
        const struct bh_json *l = bh_json_get(limits, r->key.p);
        bh_nano have, max;
        bool fits = overcommit(r->key.p);
        if (!bh_adm_parse_quantity(r, &have) || !bh_adm_parse_quantity(l, &max)) {
            if (!fits)
                bh_adm_required(w, bh_adm_path(w, "%s.limits", field),
                                "Limit must be set for non overcommitable resources");
        } else if (fits ? have > max : have != max) {
            bh_adm_invalid(w, bh_adm_path(w, "%s.requests", field), r,
                           bh_adm_path(w, "must be %s %.100s limit of %.40s",
                                       fits ? "less than or equal to" : "equal to", r->key.p,
                                       l->s.p));
        }
    }
}

/* ---- containers ------------------------------------------------------------------------------ */

static void port_number(struct bh_sim_write *w, const char *field, const struct bh_json *v,
                        bool required)
{
    int64_t n = 0;

    if (v)
        bh_json_i64(v, &n);
    if (required && (!v || n == 0))
        bh_adm_required(w, field, "");
    else if (n && (n < 1 || n > 65535))
        bh_adm_invalid(w, field, v, "must be between 1 and 65535, inclusive");
}

static void container_ports(struct bh_sim_write *w, const char *field, const struct bh_json *c)
{
    static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
    const struct bh_json *ports = bh_tree_arr(c, "ports");
    size_t i = 0;

    bh_json_each(p, ports) {
        const char *f = bh_adm_path(w, "%s.ports[%zu]", field, i++), *name = bh_tree_str(p, "name");
        port_number(w, bh_adm_path(w, "%s.containerPort", f), bh_json_get(p, "containerPort"),
                    true);
        port_number(w, bh_adm_path(w, "%s.hostPort", f), bh_json_get(p, "hostPort"), false);
        bh_adm_one_of(w, bh_adm_path(w, "%s.protocol", f), bh_json_get(p, "protocol"), protocols,
                      true);
        if (name && *name)
            bh_adm_dns_label(w, bh_adm_path(w, "%s.name", f), name);
        for (const struct bh_json *q = ports->c.first; name && *name && q != p; q = q->next) {
            if (bh_tree_is(q, "name", name)) {
                bh_adm_duplicate(w, bh_adm_path(w, "%s.name", f), name);
                break;
            }
        }
    }
}

static bool has_volume(const struct bh_json *spec, const char *name)
{
    bh_json_each(v, bh_tree_arr(spec, "volumes")) {
        if (bh_tree_is(v, "name", name))
            return true;
    }
    return false;
}

static void volume_mounts(struct bh_sim_write *w, const char *field, const struct bh_json *spec,
                          const struct bh_json *c)
{
    size_t i = 0;

    bh_json_each(m, bh_tree_arr(c, "volumeMounts")) {
        const char *f = bh_adm_path(w, "%s.volumeMounts[%zu]", field, i++);
        const char *name = bh_tree_str(m, "name"), *path = bh_tree_str(m, "mountPath");
        if (!name || !*name) {
            bh_adm_required(w, bh_adm_path(w, "%s.name", f), "");
        } else if (!has_volume(spec, name)) {
            struct bh_buf b = {0};
            bh_buf_add_json_str(&b, name, BH_MIN(strlen(name), (size_t)100));
            bh_sim_field_error(w->error, bh_adm_path(w, "%s.name", f), "Not found", bh_buf_str(&b),
                               "%s", "");
            bh_buf_fini(&b);
        }
        if (!path || !*path)
            bh_adm_required(w, bh_adm_path(w, "%s.mountPath", f), "");
    }
}

static void container(struct bh_sim_write *w, const char *field, const struct bh_json *spec,
                      const struct bh_json *c)
{
    static const char *const pull[] = {"Always", "IfNotPresent", "Never", NULL};
    static const char *const message[] = {"FallbackToLogsOnError", "File", NULL};
    const char *image = bh_tree_str(c, "image");

    bh_adm_dns_label(w, bh_adm_path(w, "%s.name", field), bh_tree_str(c, "name"));
    if (!image || !*image)
        bh_adm_required(w, bh_adm_path(w, "%s.image", field), "");
    else if (image[0] == ' ' || image[strlen(image) - 1] == ' ')
        bh_adm_invalid_text(w, bh_adm_path(w, "%s.image", field), image,
                            "must not have leading or trailing whitespace");
    bh_adm_one_of(w, bh_adm_path(w, "%s.terminationMessagePolicy", field),
                  bh_json_get(c, "terminationMessagePolicy"), message, true);
    container_ports(w, field, c);
    volume_mounts(w, field, spec, c);
    bh_adm_one_of(w, bh_adm_path(w, "%s.imagePullPolicy", field), bh_json_get(c, "imagePullPolicy"),
                  pull, true);
    validate_resources(w, bh_adm_path(w, "%s.resources", field), bh_tree_obj(c, "resources"));
}

/* Names are unique over containers and init containers together. */
static bool name_before(const struct bh_json *spec, const struct bh_json *c, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers"};

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

static void containers(struct bh_sim_write *w, const char *field, const struct bh_json *spec,
                       const char *list)
{
    size_t i = 0;

    bh_json_each(c, bh_tree_arr(spec, list)) {
        const char *f = bh_adm_path(w, "%s.%s[%zu]", field, list, i++);
        const char *name = bh_tree_str(c, "name");
        if (name && *name && name_before(spec, c, name))
            bh_adm_duplicate(w, bh_adm_path(w, "%s.name", f), name);
        container(w, f, spec, c);
    }
}

static void volumes(struct bh_sim_write *w, const char *field, const struct bh_json *spec)
{
    const struct bh_json *list = bh_tree_arr(spec, "volumes");
    size_t i = 0;

    bh_json_each(v, list) {
        const char *f = bh_adm_path(w, "%s.volumes[%zu].name", field, i++);
        const char *name = bh_tree_str(v, "name");
        bh_adm_dns_label(w, f, name);
        for (const struct bh_json *p = list->c.first; name && *name && p != v; p = p->next) {
            if (bh_tree_is(p, "name", name)) {
                bh_adm_duplicate(w, f, name);
                break;
            }
        }
    }
}

/* ---- scheduling ------------------------------------------------------------------------------ */

static void toleration(struct bh_sim_write *w, const char *field, const struct bh_json *t)
{
    static const char *const effects[] = {"NoExecute", "NoSchedule", "PreferNoSchedule", NULL};
    static const char *const ops[] = {"Equal", "Exists", "Gt", "Lt", NULL};
    const char *key = bh_tree_str(t, "key"), *value = bh_tree_str(t, "value");
    const char *op = bh_tree_str(t, "operator");

    if (key && *key)
        bh_adm_label_key(w, bh_adm_path(w, "%s.key", field), key);
    else if (!op || !bh_streq(op, "Exists"))
        bh_adm_invalid_text(w, bh_adm_path(w, "%s.operator", field), op,
                            "operator must be Exists when `key` is empty, which means \"match all "
                            "values and all keys\"");
    if (bh_tree_has(t, "tolerationSeconds") && !bh_tree_is(t, "effect", "NoExecute"))
        bh_adm_invalid(w, bh_adm_path(w, "%s.effect", field), bh_json_get(t, "effect"),
                       "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (op && bh_streq(op, "Exists") && value && *value)
        bh_adm_invalid_text(w, bh_adm_path(w, "%s.operator", field), value,
                            "value must be empty when `operator` is 'Exists'");
    bh_adm_one_of(w, bh_adm_path(w, "%s.operator", field), bh_json_get(t, "operator"), ops, false);
    bh_adm_one_of(w, bh_adm_path(w, "%s.effect", field), bh_json_get(t, "effect"), effects, false);
}

static void validate_tolerations(struct bh_sim_write *w, const char *field,
                                 const struct bh_json *list)
{
    size_t i = 0;

    bh_json_each(t, list)
        toleration(w, bh_adm_path(w, "%s[%zu]", field, i++), t);
}

static void spread_constraint(struct bh_sim_write *w, const char *f, const struct bh_json *c)
{
    static const char *const when[] = {"DoNotSchedule", "ScheduleAnyway", NULL};
    static const char *const policies[] = {"Honor", "Ignore", NULL};
    const char *key = bh_tree_str(c, "topologyKey");
    const struct bh_json *min = bh_json_get(c, "minDomains");

    if (bh_tree_i64(c, "maxSkew", 0) <= 0)
        bh_sim_field_error(w->error, bh_adm_path(w, "%s.maxSkew", f), "Invalid value",
                           bh_adm_path(w, "%lld", (long long)bh_tree_i64(c, "maxSkew", 0)),
                           "must be greater than zero");
    if (!key || !*key)
        bh_adm_required(w, bh_adm_path(w, "%s.topologyKey", f), "can not be empty");
    else
        bh_adm_label_key(w, bh_adm_path(w, "%s.topologyKey", f), key);
    bh_adm_one_of(w, bh_adm_path(w, "%s.whenUnsatisfiable", f), bh_json_get(c, "whenUnsatisfiable"),
                  when, true);
    if (min && min->type == BH_JSON_NUMBER) {
        if (bh_tree_i64(c, "minDomains", 0) <= 0)
            bh_adm_invalid(w, bh_adm_path(w, "%s.minDomains", f), min, "must be greater than zero");
        if (!bh_tree_is(c, "whenUnsatisfiable", "DoNotSchedule"))
            bh_adm_invalid(w, bh_adm_path(w, "%s.minDomains", f), min,
                           "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "
                           "ScheduleAnyway");
    }
    bh_adm_one_of(w, bh_adm_path(w, "%s.nodeAffinityPolicy", f),
                  bh_json_get(c, "nodeAffinityPolicy"), policies, false);
    bh_adm_one_of(w, bh_adm_path(w, "%s.nodeTaintsPolicy", f), bh_json_get(c, "nodeTaintsPolicy"),
                  policies, false);
    if (bh_tree_len(bh_tree_arr(c, "matchLabelKeys")) && !bh_tree_has(c, "labelSelector"))
        bh_adm_forbidden(w, bh_adm_path(w, "%s.matchLabelKeys", f),
                         "must not be specified when labelSelector is not set");
    bh_adm_label_selector(w, bh_adm_path(w, "%s.labelSelector", f),
                          bh_tree_obj(c, "labelSelector"));
}

static void validate_spread(struct bh_sim_write *w, const char *field, const struct bh_json *list)
{
    size_t i = 0;

    bh_json_each(c, list) {
        const char *f = bh_adm_path(w, "%s[%zu]", field, i++);
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

static void scheduling_gates(struct bh_sim_write *w, const char *field, const struct bh_json *spec)
{
    const struct bh_json *gates = bh_tree_arr(spec, "schedulingGates");
    const char *node = bh_tree_str(spec, "nodeName");
    size_t i = 0;

    bh_json_each(g, gates) {
        const char *f = bh_adm_path(w, "%s.schedulingGates[%zu]", field, i++);
        const char *name = bh_tree_str(g, "name");
        bh_adm_label_key(w, f, name);
        for (const struct bh_json *p = gates->c.first; name && p != g; p = p->next) {
            if (bh_tree_is(p, "name", name)) {
                bh_adm_duplicate(w, f, name);
                break;
            }
        }
    }
    if (bh_tree_len(gates) && node && *node)
        bh_adm_forbidden(w, bh_adm_path(w, "%s.nodeName", field),
                         "cannot be set until all schedulingGates have been cleared");
}

/* ---- the spec -------------------------------------------------------------------------------- */

void bh_adm_pod_spec(struct bh_sim_write *w, const char *field, const struct bh_json *spec)
{
    static const char *const restart[] = {"Always", "Never", "OnFailure", NULL};
    static const char *const dns[] = {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None",
                                      NULL};
    static const char *const preempt[] = {"Never", "PreemptLowerPriority", NULL};
    const char *node = bh_tree_str(spec, "nodeName");
    const char *scheduler = bh_tree_str(spec, "schedulerName");

    volumes(w, field, spec);
    if (!bh_tree_len(bh_tree_arr(spec, "containers")))
        bh_adm_required(w, bh_adm_path(w, "%s.containers", field), "");
    containers(w, field, spec, "containers");
    containers(w, field, spec, "initContainers");
    validate_resources(w, bh_adm_path(w, "%s.resources", field), bh_tree_obj(spec, "resources"));
    bh_adm_one_of(w, bh_adm_path(w, "%s.restartPolicy", field), bh_json_get(spec, "restartPolicy"),
                  restart, true);
    bh_adm_one_of(w, bh_adm_path(w, "%s.dnsPolicy", field), bh_json_get(spec, "dnsPolicy"), dns,
                  true);
    bh_adm_label_map(w, bh_adm_path(w, "%s.nodeSelector", field),
                     bh_tree_obj(spec, "nodeSelector"));
    bh_adm_affinity(w, bh_adm_path(w, "%s.affinity", field), bh_tree_obj(spec, "affinity"));
    validate_tolerations(w, bh_adm_path(w, "%s.tolerations", field),
                         bh_tree_arr(spec, "tolerations"));
    validate_spread(w, bh_adm_path(w, "%s.topologySpreadConstraints", field),
                    bh_tree_arr(spec, "topologySpreadConstraints"));
    scheduling_gates(w, field, spec);
    bh_adm_not_negative(w, bh_adm_path(w, "%s.terminationGracePeriodSeconds", field),
                        bh_json_get(spec, "terminationGracePeriodSeconds"));
    bh_adm_one_of(w, bh_adm_path(w, "%s.preemptionPolicy", field),
                  bh_json_get(spec, "preemptionPolicy"), preempt, false);
    if (node && *node)
        bh_adm_dns_subdomain(w, bh_adm_path(w, "%s.nodeName", field), node);
    if (scheduler && *scheduler)
        bh_adm_dns_subdomain(w, bh_adm_path(w, "%s.schedulerName", field), scheduler);
}
