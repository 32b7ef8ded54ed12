/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/net.c - rows of services and what belongs to them
 *
 * Upstream: pkg/printers/internalversion/printers.go (v1.36); differences: none known.
 */
#include "simulator/tables/table.h"

#include <inttypes.h>

/* ---- Service -----------------------------------------------------------------------------------
 */

static void join_strings(struct bh_buf *b, const struct bh_json *arr)
{
    bh_json_each(e, arr)
        bh_cell_join(b, ",", bh_json_cstr(e));
}

static void external_ip_cell(struct bh_table_row *r, const struct bh_json *svc)
{
    const char *type = bh_tree_str(svc, "spec.type"), *if_empty = "<none>";
    struct bh_buf b = {0};

    if (type && bh_streq(type, "ExternalName")) {
        bh_cell_str(r, bh_tree_str(svc, "spec.externalName"));
        return;
    }
    if (type && bh_streq(type, "LoadBalancer")) {
        if_empty = "<pending>";
        bh_json_each(i, bh_tree_arr(svc, "status.loadBalancer.ingress")) {
            const char *ip = bh_tree_str(i, "ip");
            bh_cell_join(&b, ",", ip && *ip ? ip : bh_tree_str(i, "hostname"));
        }
    }
    join_strings(&b, bh_tree_arr(svc, "spec.externalIPs"));
    bh_cell_buf(r, &b, if_empty);
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

static const struct bh_table_col service_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Type", "how the service is reached"),
    BH_COL_S("Cluster-IP", "address inside the cluster"),
    BH_COL_S("External-IP", "address outside the cluster"),
    BH_COL_S("Port(s)", "ports"),
    BH_COL_AGE,
    BH_COL_WIDE("Selector", "selector of the pods"),
};
static void service_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "spec.type"));
    bh_cell_or(r, bh_tree_str(o, "spec.clusterIP"), "<none>");
    external_ip_cell(r, o);
    service_ports_cell(r, o);
    bh_cell_age(r, o);
    bh_cell_label_map(r, bh_tree_obj(o, "spec.selector"));
}

/* ---- Endpoints, EndpointSlice ------------------------------------------------------------------
 */

/* At most three addresses are printed, the rest is counted. */
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

static void endpoints_subset(struct bh_buf *b, size_t *count, const struct bh_json *subset)
{
    const struct bh_json *ports = bh_tree_arr(subset, "ports");
    const struct bh_json *addresses = bh_tree_arr(subset, "addresses");

    if (!ports || !ports->c.n) {
        bh_json_each(a, addresses)
            endpoints_add(b, count, bh_tree_str(a, "ip"), 0);
    }
    bh_json_each(p, ports) {
        bh_json_each(a, addresses)
            endpoints_add(b, count, bh_tree_str(a, "ip"), bh_tree_i64(p, "port", 0));
    }
}

static const struct bh_table_col endpoints_cols[] = {
    BH_COL_NAME, BH_COL_S("Endpoints", "addresses and ports"), BH_COL_AGE};
static void endpoints_cells(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf b = {0};
    size_t count = 0;

    bh_json_each(s, bh_tree_arr(o, "subsets"))
        endpoints_subset(&b, &count, s);
    if (count > 3)
        bh_buf_addf(&b, " + %zu more...", count - 3);
    bh_cell_name(r, o);
    bh_cell_buf(r, &b, "<none>");
    bh_cell_age(r, o);
}

/* As Endpoints, but ports stand apart from addresses. */
static void slice_cells(struct bh_table_row *r, const struct bh_json *o)
{
    struct bh_buf ports = {0}, addrs = {0};
    size_t count = 0;

    bh_json_each(p, bh_tree_arr(o, "ports")) {
        if (ports.n)
            bh_buf_addc(&ports, ',');
        bh_buf_addi64(&ports, bh_tree_i64(p, "port", 0));
    }
    bh_json_each(e, bh_tree_arr(o, "endpoints")) {
        bh_json_each(a, bh_tree_arr(e, "addresses"))
            endpoints_add(&addrs, &count, bh_json_cstr(a), 0);
    }
    if (count > 3)
        bh_buf_addf(&addrs, " + %zu more...", count - 3);
    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "addressType"));
    bh_cell_buf(r, &ports, "<unset>");
    bh_cell_buf(r, &addrs, "<unset>");
    bh_cell_age(r, o);
}
static const struct bh_table_col slice_cols[] = {
    BH_COL_NAME, BH_COL_S("AddressType", "kind of addresses"), BH_COL_S("Ports", "ports"),
    BH_COL_S("Endpoints", "addresses"), BH_COL_AGE};

/* ---- Ingress, IngressClass, NetworkPolicy --- */

static void ingress_hosts(struct bh_buf *b, const struct bh_json *o)
{
    size_t count = 0;

    bh_json_each(rule, bh_tree_arr(o, "spec.rules")) {
        const char *host = bh_tree_str(rule, "host");
        if (host && *host && ++count <= 3)
            bh_cell_join(b, ",", host);
    }
    if (count > 3)
        bh_buf_addf(b, " + %zu more...", count - 3);
}

static const struct bh_table_col ingress_cols[] = {
    BH_COL_NAME,
    BH_COL_S("Class", "ingress class"),
    BH_COL_S("Hosts", "hosts of the rules"),
    BH_COL_S("Address", "addresses of the load balancer"),
    BH_COL_S("Ports", "open ports"),
    BH_COL_AGE,
};
static void ingress_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const struct bh_json *tls = bh_tree_arr(o, "spec.tls");
    struct bh_buf hosts = {0}, addrs = {0};

    ingress_hosts(&hosts, o);
    bh_json_each(i, bh_tree_arr(o, "status.loadBalancer.ingress")) {
        const char *ip = bh_tree_str(i, "ip");
        bh_cell_join(&addrs, ",", ip && *ip ? ip : bh_tree_str(i, "hostname"));
    }
    bh_cell_name(r, o);
    bh_cell_or(r, bh_tree_str(o, "spec.ingressClassName"), "<none>");
    bh_cell_buf(r, &hosts, "*");
    bh_cell_buf(r, &addrs, "");
    bh_cell_str(r, tls && tls->c.n ? "80, 443" : "80");
    bh_cell_age(r, o);
}

static const struct bh_table_col ingressclass_cols[] = {
    BH_COL_NAME, BH_COL_S("Controller", "controller of the class"),
    BH_COL_S("Parameters", "parameters of the class"), BH_COL_AGE};
static void ingressclass_cells(struct bh_table_row *r, const struct bh_json *o)
{
    const char *group = bh_tree_str(o, "spec.parameters.apiGroup");
    const char *kind = bh_tree_str(o, "spec.parameters.kind");
    const char *name = bh_tree_str(o, "spec.parameters.name");

    bh_cell_name(r, o);
    bh_cell_str(r, bh_tree_str(o, "spec.controller"));
    if (kind)
        bh_cell_fmt(r, "%s%s%s/%s", kind, group ? "." : "", group ? group : "", name ? name : "");
    else
        bh_cell_str(r, "<none>");
    bh_cell_age(r, o);
}

static const struct bh_table_col networkpolicy_cols[] = {
    BH_COL_NAME, BH_COL_S("Pod-Selector", "pods it applies to"), BH_COL_AGE};
static void networkpolicy_cells(struct bh_table_row *r, const struct bh_json *o)
{
    bh_cell_name(r, o);
    bh_cell_label_selector(r, bh_tree_obj(o, "spec.podSelector"));
    bh_cell_age(r, o);
}

#define KIND(group, kind, cols, cells)                                                             \
    {                                                                                              \
        group, kind, cols, BH_ARRAY_LEN(cols), cells                                               \
    }
static const struct bh_table_kind net_kinds[] = {
    KIND("", "Service", service_cols, service_cells),
    KIND("", "Endpoints", endpoints_cols, endpoints_cells),
    KIND("discovery.k8s.io", "EndpointSlice", slice_cols, slice_cells),
    KIND("networking.k8s.io", "Ingress", ingress_cols, ingress_cells),
    KIND("networking.k8s.io", "IngressClass", ingressclass_cols, ingressclass_cells),
    KIND("networking.k8s.io", "NetworkPolicy", networkpolicy_cols, networkpolicy_cells),
};
const struct bh_table_set bh_table_set_net = {net_kinds, BH_ARRAY_LEN(net_kinds)};
