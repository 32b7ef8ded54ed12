/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/kinds.c - cells that take more than a look-up, for all kinds but Pod
 *
 * Upstream: pkg/printers/internalversion/printers.go (v1.36); differences: targets of a
 * HorizontalPodAutoscaler show the wanted values only, the simulator measures none.
 */
#include "simulator/tables/table.h"

#include "common/k8s/quantity.h"

#include <inttypes.h>

/* ---- PodGroup -------------------------------------------------------------------------------- */

static void group_policy_cell(struct bh_table_row *r, const struct bh_json *group)
{
    bh_cell_str(r, bh_tree_has(group, "spec.schedulingPolicy.gang") ? "Gang" : "Basic");
}

/* The condition has another name in versions after v1alpha2. */
static void group_status_cell(struct bh_table_row *r, const struct bh_json *group)
{
    const struct bh_json *scheduled = bh_tree_condition(group, "PodGroupScheduled");

    if (!scheduled)
        scheduled = bh_tree_condition(group, "PodGroupInitiallyScheduled");
    if (bh_tree_condition_true(group, "DisruptionTarget"))
        bh_cell_or(r, bh_tree_str(bh_tree_condition(group, "DisruptionTarget"), "reason"),
                   "DisruptionTarget");
    else
        bh_cell_str(r, !scheduled                                ? "Pending"
                       : bh_tree_is(scheduled, "status", "True") ? "Scheduled"
                                                                 : "Unschedulable");
}

/* ---- Node ------------------------------------------------------------------------------------ */

/* r->path: which of the node's addresses. */
static void node_address_cell(struct bh_table_row *r, const struct bh_json *node)
{
    bh_json_each(a, bh_tree_arr(node, "status.addresses")) {
        if (bh_tree_is(a, "type", r->path)) {
            bh_cell_or(r, bh_tree_str(a, "address"), "<none>");
            return;
        }
    }
    bh_cell_str(r, "<none>");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void node_roles_cell(struct bh_table_row *r, const struct bh_json *node)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    const struct bh_json *labels = bh_tree_obj(node, "metadata.labels");
    const char **role = bh_calloc((labels ? labels->c.n : 0) + 1, sizeof(*role));
    struct bh_buf b = {0};
    size_t n = 0;

    bh_json_each(l, labels) {
        const char *v = bh_json_cstr(l);
        if (strncmp(l->key.p, prefix, sizeof(prefix) - 1) == 0 && l->key.p[sizeof(prefix) - 1])
            role[n++] = l->key.p + sizeof(prefix) - 1;
        else if (bh_streq(l->key.p, "kubernetes.io/role") && v && *v)
            role[n++] = v;
    }
    qsort(role, n, sizeof(*role), by_text);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !bh_streq(role[i], role[i - 1]))
            bh_cell_join(&b, ",", role[i]);
    }
    free(role);
    bh_cell_buf(r, &b, "<none>");
}

static void node_status_cell(struct bh_table_row *r, const struct bh_json *node)
{
    const struct bh_json *ready = bh_tree_condition(node, "Ready");
    const char *word = !ready                                  ? "Unknown"
                       : bh_tree_condition_true(node, "Ready") ? "Ready"
                                                               : "NotReady";

    bh_cell_fmt(r, "%s%s", word,
                bh_tree_bool(node, "spec.unschedulable", false) ? ",SchedulingDisabled" : "");
}

/* ---- ResourceQuota --------------------------------------------------------------------------- */

/* r->path: "limits", or "requests" for all others. */
static void quota_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *used = bh_tree_obj(o, "status.used");
    bool limits = bh_streq(r->path, "limits");
    struct bh_buf b = {0};

    bh_json_each(h, bh_tree_obj(o, "status.hard")) {
        if ((strncmp(h->key.p, "limits.", 7) == 0) != limits)
            continue;
        bh_buf_addf(&b, "%s%s: ", b.n ? ", " : "", h->key.p);
        if (!bh_tree_scalar(&b, bh_json_get(used, h->key.p)))
            bh_buf_addc(&b, '0');
        bh_buf_addc(&b, '/');
        bh_tree_scalar(&b, h);
    }
    bh_cell_buf(r, &b, "");
}

/* ---- Event ----------------------------------------------------------------------------------- */

/* The same stored event is shown in core/v1 or in events.k8s.io/v1 names. */
static const char *either(const struct bh_json *o, const char *core, const char *events)
{
    const char *s = bh_tree_str(o, core);

    return s && *s ? s : bh_tree_str(o, events);
}

static const char *first_seen(const struct bh_json *o)
{
    const char *first = either(o, "firstTimestamp", "deprecatedFirstTimestamp");

    return first && *first ? first : bh_tree_str(o, "eventTime");
}

static void event_first_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_since(r, first_seen(o));
}

static void event_last_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *last = either(o, "lastTimestamp", "deprecatedLastTimestamp");

    if (bh_tree_obj(o, "series"))
        last = bh_tree_str(o, "series.lastObservedTime");
    else if (!last || !*last)
        last = first_seen(o);
    bh_cell_since(r, last);
}

static void event_count_cell(struct bh_table_row *r, const struct bh_json *o)
{
    int64_t count = bh_tree_i64(o, "count", bh_tree_i64(o, "deprecatedCount", 0));

    if (bh_tree_obj(o, "series"))
        count = bh_tree_i64(o, "series.count", 0);
    bh_cell_i64(r, count ? count : 1);
}

static void event_object_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *name = either(o, "involvedObject.name", "regarding.name");
    struct bh_buf b = {0};

    bh_cell_lower(&b, either(o, "involvedObject.kind", "regarding.kind"));
    if (name && *name)
        bh_buf_addf(&b, "/%s", name);
    bh_cell_buf(r, &b, "");
}

static void event_field_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_str(r, either(o, "involvedObject.fieldPath", "regarding.fieldPath"));
}

static void event_source_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *component = either(o, "source.component", "deprecatedSource.component");
    const char *host = either(o, "source.host", "deprecatedSource.host");
    struct bh_buf b = {0};

    if (!component || !*component)
        component = either(o, "reportingComponent", "reportingController");
    if (!host || !*host)
        host = bh_tree_str(o, "reportingInstance");
    bh_cell_join(&b, ", ", component);
    bh_cell_join(&b, ", ", host);
    bh_cell_buf(r, &b, "");
}

static void event_message_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *m = either(o, "message", "note");
    size_t n = m ? strlen(m) : 0;
    struct bh_buf b = {0};

    while (n && strchr(" \t\r\n", m[n - 1]))
        n--;
    while (n && strchr(" \t\r\n", *m)) {
        m++;
        n--;
    }
    bh_buf_add(&b, m ? m : "", n);
    bh_cell_buf(r, &b, "");
}

/* ---- apps, batch ------------------------------------------------------------------------------ */

static void replicas_ready_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_fmt(r, "%" PRId64 "/%" PRId64, bh_tree_i64(o, "status.readyReplicas", 0),
                bh_tree_i64(o, "spec.replicas", 1));
}

static void job_status_cell(struct bh_table_row *r, const struct bh_json *o)
{
    /* In this order; an object that is being deleted comes behind the first two. */
    static const char *const conditions[] = {"Complete", "Failed", "Suspended", "FailureTarget",
                                             "SuccessCriteriaMet"};
    const char *word = NULL;

    for (size_t i = 0; i < BH_ARRAY_LEN(conditions) && !word; i++) {
        if (i == 2 && bh_tree_deleting(o))
            word = "Terminating";
        else if (bh_tree_condition_true(o, conditions[i]))
            word = conditions[i];
    }
    bh_cell_str(r, word ? word : "Running");
}

static void job_completions_cell(struct bh_table_row *r, const struct bh_json *o)
{
    int64_t done = bh_tree_i64(o, "status.succeeded", 0);
    int64_t want = bh_tree_i64(o, "spec.completions", -1);
    int64_t parallel = bh_tree_i64(o, "spec.parallelism", 0);

    if (want >= 0)
        bh_cell_fmt(r, "%" PRId64 "/%" PRId64, done, want);
    else if (parallel > 1)
        bh_cell_fmt(r, "%" PRId64 "/1 of %" PRId64, done, parallel);
    else
        bh_cell_fmt(r, "%" PRId64 "/1", done);
}

static void job_duration_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *start = bh_tree_str(o, "status.startTime");
    const char *end = bh_tree_str(o, "status.completionTime");
    int64_t s, e = r->now_s;
    int32_t ns;
    struct bh_buf b = {0};

    if (start && bh_time_parse(start, strlen(start), &s, &ns) == 0) {
        if (end && bh_time_parse(end, strlen(end), &e, &ns) < 0)
            e = r->now_s;
        bh_human_duration(&b, e - s);
    }
    bh_cell_buf(r, &b, "");
}

static void cronjob_suspend_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *suspend = bh_json_path(o, "spec.suspend");

    bh_cell_str(r, !suspend || suspend->type != BH_JSON_BOOL ? "<unset>"
                   : suspend->b                              ? "True"
                                                             : "False");
}

static void revision_owner_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};

    bh_json_each(ref, bh_tree_arr(o, "metadata.ownerReferences")) {
        const char *api = bh_tree_str(ref, "apiVersion"), *kind = bh_tree_str(ref, "kind");
        const char *name = bh_tree_str(ref, "name"), *slash = api ? strchr(api, '/') : NULL;
        if (!bh_tree_bool(ref, "controller", false) || !kind || !name)
            continue;
        bh_cell_lower(&b, kind);
        if (slash)
            bh_buf_addf(&b, ".%.*s", (int)(slash - api), api);
        bh_buf_addf(&b, "/%s", name);
        break;
    }
    bh_cell_buf(r, &b, "<none>");
}

/* ---- Service, Endpoints, EndpointSlice, Ingress, IngressClass -------------------------------- */

static void join_addresses(struct bh_buf *b, const struct bh_json *o)
{
    bh_json_each(i, bh_tree_arr(o, "status.loadBalancer.ingress")) {
        const char *ip = bh_tree_str(i, "ip");
        bh_cell_join(b, ",", ip && *ip ? ip : bh_tree_str(i, "hostname"));
    }
}

static void service_external_ip_cell(struct bh_table_row *r, const struct bh_json *svc)
{
    bool balanced = bh_tree_is(svc, "spec.type", "LoadBalancer");
    struct bh_buf b = {0};

    if (bh_tree_is(svc, "spec.type", "ExternalName")) {
        bh_cell_str(r, bh_tree_str(svc, "spec.externalName"));
        return;
    }
    if (balanced)
        join_addresses(&b, svc);
    bh_json_each(e, bh_tree_arr(svc, "spec.externalIPs"))
        bh_cell_join(&b, ",", bh_json_cstr(e));
    bh_cell_buf(r, &b, balanced ? "<pending>" : "<none>");
}

static void service_ports_cell(struct bh_table_row *r, const struct bh_json *svc)
{
    struct bh_buf b = {0};

    bh_json_each(p, bh_tree_arr(svc, "spec.ports")) {
        int64_t node_port = bh_tree_i64(p, "nodePort", 0);
        const char *proto = bh_tree_str(p, "protocol");
        if (b.n)
            bh_buf_addc(&b, ',');
        bh_buf_addi64(&b, bh_tree_i64(p, "port", 0));
        if (node_port)
            bh_buf_addf(&b, ":%" PRId64, node_port);
        bh_buf_addf(&b, "/%s", proto ? proto : "TCP");
    }
    bh_cell_buf(r, &b, "<none>");
}

/* At most three are printed, the rest is counted. */
static void more(struct bh_buf *b, size_t count)
{
    if (count > 3)
        bh_buf_addf(b, " + %zu more...", count - 3);
}

static void endpoints_add(struct bh_buf *b, size_t *count, const char *ip, int64_t port)
{
    if (++*count > 3 || !ip)
        return;
    if (b->n)
        bh_buf_addc(b, ',');
    bh_buf_adds(b, ip);
    if (port)
        bh_buf_addf(b, ":%" PRId64, port);
}

static void endpoints_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};
    size_t count = 0;

    bh_json_each(s, bh_tree_arr(o, "subsets")) {
        const struct bh_json *ports = bh_tree_arr(s, "ports");
        const struct bh_json *addresses = bh_tree_arr(s, "addresses");
        if (!ports || !ports->c.n) {
            bh_json_each(a, addresses)
                endpoints_add(&b, &count, bh_tree_str(a, "ip"), 0);
        }
        bh_json_each(p, ports) {
            if (count > 3) { /* each port with each address: only counted, and not one by one */
                count += bh_tree_len(addresses);
                continue;
            }
            bh_json_each(a, addresses)
                endpoints_add(&b, &count, bh_tree_str(a, "ip"), bh_tree_i64(p, "port", 0));
        }
    }
    more(&b, count);
    bh_cell_buf(r, &b, "<none>");
}

static void slice_ports_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};

    bh_json_each(p, bh_tree_arr(o, "ports"))
        bh_buf_addf(&b, "%s%" PRId64, b.n ? "," : "", bh_tree_i64(p, "port", 0));
    bh_cell_buf(r, &b, "<unset>");
}

static void slice_addresses_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};
    size_t count = 0;

    bh_json_each(e, bh_tree_arr(o, "endpoints")) {
        bh_json_each(a, bh_tree_arr(e, "addresses"))
            endpoints_add(&b, &count, bh_json_cstr(a), 0);
    }
    more(&b, count);
    bh_cell_buf(r, &b, "<unset>");
}

static void ingress_hosts_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};
    size_t count = 0;

    bh_json_each(rule, bh_tree_arr(o, "spec.rules")) {
        const char *host = bh_tree_str(rule, "host");
        if (host && *host && ++count <= 3)
            bh_cell_join(&b, ",", host);
    }
    more(&b, count);
    bh_cell_buf(r, &b, "*");
}

static void ingress_addresses_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};

    join_addresses(&b, o);
    bh_cell_buf(r, &b, "");
}

static void ingress_ports_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_str(r, bh_tree_len(bh_tree_arr(o, "spec.tls")) ? "80, 443" : "80");
}

static void ingress_parameters_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *group = bh_tree_str(o, "spec.parameters.apiGroup");
    const char *kind = bh_tree_str(o, "spec.parameters.kind");
    const char *name = bh_tree_str(o, "spec.parameters.name");

    if (kind)
        bh_cell_fmt(r, "%s%s%s/%s", kind, group ? "." : "", group ? group : "", name ? name : "");
    else
        bh_cell_str(r, "<none>");
}

static void api_service_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *ns = bh_tree_str(o, "spec.service.namespace");
    const char *name = bh_tree_str(o, "spec.service.name");

    if (name)
        bh_cell_fmt(r, "%s/%s", ns ? ns : "", name);
    else
        bh_cell_str(r, "Local");
}

static void api_available_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *c = bh_tree_condition(o, "Available");
    const char *status = bh_tree_str(c, "status"), *reason = bh_tree_str(c, "reason");

    if (status && reason && !bh_streq(status, "True"))
        bh_cell_fmt(r, "%s (%s)", status, reason);
    else
        bh_cell_str(r, status ? status : "Unknown");
}

/* ---- storage --------------------------------------------------------------------------------- */

/* The annotation is older than the field and wins when present. */
static void storage_class_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *a = bh_json_get(bh_tree_obj(o, "metadata.annotations"),
                                          "volume.beta.kubernetes.io/storage-class");

    bh_cell_str(r, a ? bh_json_cstr(a) : bh_tree_str(o, "spec.storageClassName"));
}

/* A fixed order whatever the object says, each mode once. */
static void access_modes_cell(struct bh_table_row *r, const struct bh_json *o)
{
    static const char *const names[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    struct bh_buf b = {0};

    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        bh_json_each(m, bh_tree_arr(o, r->path)) {
            const char *s = bh_json_cstr(m);
            if (s && bh_streq(s, names[i][0])) {
                bh_cell_join(&b, ",", names[i][1]);
                break;
            }
        }
    }
    bh_cell_buf(r, &b, "");
}

static void volume_phase_cell(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_str(r, bh_tree_deleting(o) ? "Terminating" : bh_tree_str(o, "status.phase"));
}

static void volume_claim_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *ref = bh_tree_obj(o, "spec.claimRef");

    if (ref)
        bh_cell_fmt(r, "%s/%s", bh_json_get_text(ref, "namespace"), bh_json_get_text(ref, "name"));
    else
        bh_cell_str(r, "");
}

static bool is_bound(const struct bh_json *claim)
{
    const char *volume = bh_tree_str(claim, "spec.volumeName");

    return volume && *volume;
}

static void claim_capacity_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};

    if (is_bound(o) && !bh_tree_scalar(&b, bh_json_path(o, "status.capacity.storage")))
        bh_buf_addc(&b, '0');
    bh_cell_buf(r, &b, "");
}

static void claim_modes_cell(struct bh_table_row *r, const struct bh_json *o)
{
    r->path = "status.accessModes";
    access_modes_cell(r, is_bound(o) ? o : NULL);
}

static void class_name_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *name = bh_tree_str(o, "metadata.name");

    bh_cell_fmt(r, "%s%s", name ? name : "", bh_tree_is_default_class(o) ? " (default)" : "");
}

/* ---- autoscaling, resource.k8s.io, rbac.authorization.k8s.io --------------------------------- */

static void hpa_targets_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};
    const struct bh_json *v1 = bh_json_path(o, "spec.targetCPUUtilizationPercentage");

    if (v1) {
        bh_buf_adds(&b, "cpu: <unknown>/");
        bh_tree_scalar(&b, v1);
        bh_buf_addc(&b, '%');
    }
    bh_json_each(m, bh_tree_arr(o, "spec.metrics")) {
        const char *name = bh_tree_str(m, "resource.name");
        int64_t pct = bh_tree_i64(m, "resource.target.averageUtilization", -1);
        if (b.n)
            bh_buf_adds(&b, ", ");
        bh_buf_addf(&b, "%s: <unknown>/", name ? name : "custom");
        if (pct >= 0)
            bh_buf_addf(&b, "%" PRId64 "%%", pct);
        else
            bh_tree_scalar(&b, bh_json_path(m, "resource.target.averageValue"));
    }
    bh_cell_buf(r, &b, "<none>");
}

static void claim_state_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *reserved = bh_tree_arr(o, "status.reservedFor");
    struct bh_buf b = {0};

    if (bh_tree_deleting(o))
        bh_cell_join(&b, ",", "deleted");
    if (bh_tree_obj(o, "status.allocation")) {
        bh_cell_join(&b, ",", "allocated");
        if (reserved && reserved->c.n)
            bh_cell_join(&b, ",", "reserved");
    } else if (!bh_tree_deleting(o)) {
        bh_cell_join(&b, ",", "pending");
    }
    bh_cell_buf(r, &b, "");
}

/* r->path: their kind. */
static void subjects_cell(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};

    bh_json_each(s, bh_tree_arr(o, "subjects")) {
        const char *k = bh_tree_str(s, "kind"), *ns = bh_tree_str(s, "namespace");
        const char *name = bh_tree_str(s, "name");
        if (!k || !name || !bh_streq(k, r->path))
            continue;
        bh_buf_addf(&b, "%s%s%s%s", b.n ? ", " : "", ns ? ns : "", ns ? "/" : "", name);
    }
    bh_cell_buf(r, &b, "");
}

const struct bh_table_cell bh_table_cells_kind[] = {
    {"node_address", node_address_cell},
    {"node_roles", node_roles_cell},
    {"node_status", node_status_cell},
    {"group_policy", group_policy_cell},
    {"group_status", group_status_cell},
    {"quota", quota_cell},
    {"event_first", event_first_cell},
    {"event_last", event_last_cell},
    {"event_count", event_count_cell},
    {"event_object", event_object_cell},
    {"event_field", event_field_cell},
    {"event_source", event_source_cell},
    {"event_message", event_message_cell},
    {"replicas_ready", replicas_ready_cell},
    {"job_status", job_status_cell},
    {"job_completions", job_completions_cell},
    {"job_duration", job_duration_cell},
    {"cronjob_suspend", cronjob_suspend_cell},
    {"revision_owner", revision_owner_cell},
    {"service_external_ip", service_external_ip_cell},
    {"service_ports", service_ports_cell},
    {"endpoints", endpoints_cell},
    {"slice_ports", slice_ports_cell},
    {"slice_addresses", slice_addresses_cell},
    {"ingress_hosts", ingress_hosts_cell},
    {"ingress_addresses", ingress_addresses_cell},
    {"ingress_ports", ingress_ports_cell},
    {"ingress_parameters", ingress_parameters_cell},
    {"api_service", api_service_cell},
    {"api_available", api_available_cell},
    {"storage_class", storage_class_cell},
    {"access_modes", access_modes_cell},
    {"volume_phase", volume_phase_cell},
    {"volume_claim", volume_claim_cell},
    {"claim_capacity", claim_capacity_cell},
    {"claim_modes", claim_modes_cell},
    {"class_name", class_name_cell},
    {"hpa_targets", hpa_targets_cell},
    {"claim_state", claim_state_cell},
    {"subjects", subjects_cell},
    {NULL, NULL},
};
