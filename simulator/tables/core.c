/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/core.c - rows of the core kinds: Node, Namespace, Event, Secret, ...
 *
 * Upstream: pkg/printers/internalversion/printers.go (v1.36); differences: none known.
 */
#include "simulator/tables/table.h"

#include <inttypes.h>

/* ---- Node -------------------------------------------------------------------------------------
 */

static const char *node_address(const struct bh_json *node, const char *type)
{
    bh_json_each(a, bh_tree_arr(node, "status.addresses")) {
        const char *t = bh_tree_str(a, "type");
        if (t && bh_streq(t, type))
            return bh_tree_str(a, "address");
    }
    return NULL;
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

static const struct bh_table_col node_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Status", "what the Ready condition says"),
    BH_COL_S("Roles", "roles named by labels"),
    BH_COL_AGE,
    BH_COL_S("Version", "version of the kubelet"),
    BH_COL_WIDE("Internal-IP", "address inside the cluster"),
    BH_COL_WIDE("External-IP", "address outside the cluster"),
    BH_COL_WIDE("OS-Image", "operating system"),
    BH_COL_WIDE("Kernel-Version", "version of the kernel"),
    BH_COL_WIDE("Container-Runtime", "container runtime and its version"),
};
static void node_cells(struct bh_table_row *r, const struct bh_json *node)
{
    const struct bh_json *ready = bh_tree_condition(node, "Ready");
    const char *word = !ready                                  ? "Unknown"
                       : bh_tree_condition_true(node, "Ready") ? "Ready"
                                                               : "NotReady";

    bh_cell_name(r, node);
    bh_cell_fmt(r, "%s%s", word,
                bh_tree_bool(node, "spec.unschedulable", false) ? ",SchedulingDisabled" : "");
    node_roles_cell(r, node);
    bh_cell_age(r, node);
    bh_cell_str(r, bh_tree_str(node, "status.nodeInfo.kubeletVersion"));
    bh_cell_or(r, node_address(node, "InternalIP"), "<none>");
    bh_cell_or(r, node_address(node, "ExternalIP"), "<none>");
    bh_cell_or(r, bh_tree_str(node, "status.nodeInfo.osImage"), "<unknown>");
    bh_cell_or(r, bh_tree_str(node, "status.nodeInfo.kernelVersion"), "<unknown>");
    bh_cell_or(r, bh_tree_str(node, "status.nodeInfo.containerRuntimeVersion"), "<unknown>");
}

/* ---- Namespace, ConfigMap, Secret, ServiceAccount ---------------------------------------------
 */

static const struct bh_table_col namespace_cols[] = {
    BH_COL_NAME, BH_COL_S("Status", "phase of the namespace"), BH_COL_AGE};
static void namespace_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "status.phase"));
    bh_cell_age(r, o);
}

static int64_t members(const struct bh_json *o, const char *dotted)
{
    const struct bh_json *m = bh_tree_obj(o, dotted);

    return m ? (int64_t)m->c.n : 0;
}

static int64_t elements(const struct bh_json *o, const char *dotted)
{
    const struct bh_json *m = bh_tree_arr(o, dotted);

    return m ? (int64_t)m->c.n : 0;
}

static const struct bh_table_col configmap_cols[] = {
    BH_COL_NAME, BH_COL_S("Data", "number of entries"), BH_COL_AGE};
static void configmap_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_i64(r, members(o, "data") + members(o, "binaryData"));
    bh_cell_age(r, o);
}

static const struct bh_table_col secret_cols[] = {
    BH_COL_NAME, BH_COL_S("Type", "type of the secret"), BH_COL_S("Data", "number of entries"),
    BH_COL_AGE};
static void secret_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "type"));
    bh_cell_i64(r, members(o, "data"));
    bh_cell_age(r, o);
}

static const struct bh_table_col serviceaccount_cols[] = {
    BH_COL_NAME, BH_COL_S("Secrets", "number of secrets"), BH_COL_AGE};
static void serviceaccount_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_i64(r, elements(o, "secrets"));
    bh_cell_age(r, o);
}

/* ---- ResourceQuota, LimitRange ----------------------------------------------------------------
 */

static bool is_limit(const char *resource)
{
    return strncmp(resource, "limits.", 7) == 0;
}

static void quota_cell(struct bh_table_row *r, const struct bh_json *o, bool limits)
{
    const struct bh_json *used = bh_tree_obj(o, "status.used");
    struct bh_buf b = {0};

    bh_json_each(h, bh_tree_obj(o, "status.hard")) {
        if (is_limit(h->key.p) != limits)
            continue;
        bh_buf_addf(&b, "%s%s: ", b.n ? ", " : "", h->key.p);
        if (!bh_tree_scalar(&b, bh_json_get(used, h->key.p)))
            bh_buf_addc(&b, '0');
        bh_buf_addc(&b, '/');
        bh_tree_scalar(&b, h);
    }
    bh_cell_buf(r, &b, "");
}

static const struct bh_table_col quota_cols[] = {
    BH_COL_NAME, BH_COL_S("Request", "used and allowed requests"),
    BH_COL_S("Limit", "used and allowed limits"), BH_COL_AGE};
static void quota_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    quota_cell(r, o, false);
    quota_cell(r, o, true);
    bh_cell_age(r, o);
}

static const struct bh_table_col limitrange_cols[] = {BH_COL_NAME,
                                                      BH_COL_S("Created At", "creation time")};
static void limitrange_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_time(r, bh_tree_str(o, "metadata.creationTimestamp"));
}

/* ---- Event ------------------------------------------------------------------------------------
 */

/* The same stored event is shown in core/v1 or in events.k8s.io/v1 names. */
static const char *either(const struct bh_json *o, const char *core, const char *events)
{
    const char *s = bh_tree_str(o, core);

    return s && *s ? s : bh_tree_str(o, events);
}

static void event_object_cell(struct bh_table_row *r, const struct bh_json *o)
{
    const char *kind = either(o, "involvedObject.kind", "regarding.kind");
    const char *name = either(o, "involvedObject.name", "regarding.name");
    struct bh_buf b = {0};

    for (const char *c = kind; c && *c; c++)
        bh_buf_addc(&b, *c >= 'A' && *c <= 'Z' ? (char)(*c + 32) : *c);
    if (name && *name)
        bh_buf_addf(&b, "/%s", name);
    bh_cell_buf(r, &b, "");
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

static const struct bh_table_col event_cols[] = {
    BH_COL_S("Last Seen", "time since the last occurrence"),
    BH_COL_S("Type", "Normal or Warning"),
    BH_COL_S("Reason", "machine-readable reason"),
    BH_COL_S("Object", "object the event is about"),
    BH_COL_WIDE("Subobject", "part of that object"),
    BH_COL_WIDE("Source", "who reported it"),
    BH_COL_S("Message", "what happened"),
    BH_COL_WIDE("First Seen", "time since the first occurrence"),
    BH_COL_WIDE("Count", "number of occurrences"),
    {"Name", "string", "name", 1, "name of the object"},
};
static void event_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const char *first = either(o, "firstTimestamp", "deprecatedFirstTimestamp");
    const char *last = either(o, "lastTimestamp", "deprecatedLastTimestamp");
    const struct bh_json *series = bh_tree_obj(o, "series");
    int64_t count = bh_tree_i64(o, "count", bh_tree_i64(o, "deprecatedCount", 0));

    if (!first || !*first)
        first = bh_tree_str(o, "eventTime");
    if (!last || !*last)
        last = first;
    if (series) {
        last = bh_tree_str(series, "lastObservedTime");
        count = bh_tree_i64(series, "count", 0);
    }
    bh_cell_since(r, last);
    bh_cell_str(r, bh_tree_str(o, "type"));
    bh_cell_str(r, bh_tree_str(o, "reason"));
    event_object_cell(r, o);
    bh_cell_str(r, either(o, "involvedObject.fieldPath", "regarding.fieldPath"));
    event_source_cell(r, o);
    event_message_cell(r, o);
    bh_cell_since(r, first);
    bh_cell_i64(r, count ? count : 1);
    bh_cell_name(r, o);
}

#define KIND(group, kind, cols, cells)                                                             \
    {                                                                                              \
        group, kind, cols, BH_ARRAY_LEN(cols), cells                                               \
    }
static const struct bh_table_kind core_kinds[] = {
    KIND("", "Node", node_cols, node_cells),
    KIND("", "Namespace", namespace_cols, namespace_cells),
    KIND("", "Event", event_cols, event_cells),
    KIND("events.k8s.io", "Event", event_cols, event_cells),
    KIND("", "ConfigMap", configmap_cols, configmap_cells),
    KIND("", "Secret", secret_cols, secret_cells),
    KIND("", "ServiceAccount", serviceaccount_cols, serviceaccount_cells),
    KIND("", "ResourceQuota", quota_cols, quota_cells),
    KIND("", "LimitRange", limitrange_cols, limitrange_cells),
};
const struct bh_table_set bh_table_set_core = {core_kinds, BH_ARRAY_LEN(core_kinds)};
