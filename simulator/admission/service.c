/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/admission/service.c - services: defaults, addresses, node ports
 *
 * Addresses are given out in order from 10.96.0.10 (10.96.0.1 belongs to the service "kubernetes"),
 * node ports from 30000; a free one is found by looking at the services that exist, so that nothing
 * has to be remembered or given back.
 * Upstream: pkg/apis/core/v1/defaults.go SetDefaults_Service, pkg/registry/core/service (v1.36);
 * differences: IPv4 only; the order of addresses.
 */
#include "simulator/admission/admission.h"

#include <stdio.h>

#define CLUSTER_IPS      65536u /* 10.96.0.0/16 */
#define FIRST_CLUSTER_IP 10u
#define FIRST_NODE_PORT  30000
#define LAST_NODE_PORT   32767

static const struct bh_sim_type *services_type(void)
{
    return BH_SIM_TYPE("", "v1", "services");
}

/* ---- allocation ------------------------------------------------------------------------------ */

static const char *next_ip(struct bh_sim_write *w)
{
    uint8_t *used = bh_calloc(CLUSTER_IPS, 1);
    struct bh_sim_objs l = {0};
    const char *ip = NULL;

    bh_sim_list(w->sim, services_type(), NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        const char *at = strstr(l.v[i]->json, "\"clusterIP\":\"10.96.");
        unsigned x, y;
        if (at && sscanf(at, "\"clusterIP\":\"10.96.%3u.%3u\"", &x, &y) == 2 && x < 256 && y < 256)
            used[x * 256 + y] = 1;
    }
    bh_sim_objs_fini(&l);
    for (unsigned i = FIRST_CLUSTER_IP; i < CLUSTER_IPS - 1 && !ip; i++) {
        if (!used[i])
            ip = bh_arena_printf(w->arena, "10.96.%u.%u", i / 256, i % 256);
    }
    free(used);
    return ip;
}

static void mark_ports(uint8_t *used, const struct bh_json *svc)
{
    bh_json_each(p, bh_tree_arr(svc, "spec.ports")) {
        int64_t n = bh_tree_i64(p, "nodePort", 0);
        if (n >= FIRST_NODE_PORT && n <= LAST_NODE_PORT)
            used[n - FIRST_NODE_PORT] = 1;
    }
}

static void allocate_node_ports(struct bh_sim_write *w, struct bh_json *spec)
{
    uint8_t used[LAST_NODE_PORT - FIRST_NODE_PORT + 1] = {0};
    struct bh_sim_objs l = {0};
    size_t next = 0;

    bh_sim_list(w->sim, services_type(), NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_arena a;
        if (!strstr(l.v[i]->json, "\"nodePort\":"))
            continue;
        bh_arena_init(&a, 0);
        mark_ports(used, bh_sim_obj_tree(&a, l.v[i]));
        bh_arena_fini(&a);
    }
    bh_sim_objs_fini(&l);
    mark_ports(used, w->obj);
    bh_json_each(p, bh_tree_arr(spec, "ports")) {
        if (bh_tree_i64(p, "nodePort", 0))
            continue;
        while (next < sizeof(used) && used[next])
            next++;
        if (next == sizeof(used))
            return;
        bh_json_set_i64(w->arena, p, "nodePort", FIRST_NODE_PORT + (int64_t)next++);
    }
}

/* On update an empty address means "keep it". */
static void cluster_ip(struct bh_sim_write *w, struct bh_json *spec)
{
    const char *ip = bh_tree_str(spec, "clusterIP"), *old = bh_tree_str(w->old, "spec.clusterIP");

    if (!ip || !*ip)
        ip = old && *old ? old : next_ip(w);
    if (!ip)
        return;
    bh_json_add(w->arena, spec, "clusterIP: %s, clusterIPs: [%s]", ip, ip);
    if (bh_streq(ip, "None") && !bh_tree_len(bh_tree_obj(spec, "selector")))
        return;
    bh_tree_dflt(w->arena, spec, "ipFamilies: [IPv4], ipFamilyPolicy: SingleStack");
}

/* ---- defaults -------------------------------------------------------------------------------- */

int bh_adm_default_service(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = bh_json_obj_at(a, w->obj, "spec");

    if (w->op == BH_SIM_OP_UPDATE_STATUS)
        return 0;
    bh_tree_dflt(a, spec, "sessionAffinity: None, type: ClusterIP");
    bh_json_each(p, bh_tree_arr(spec, "ports")) {
        const struct bh_json *target = bh_json_get(p, "targetPort"), *port = bh_json_get(p, "port");
        int64_t n;
        if (p->type != BH_JSON_OBJECT)
            continue;
        bh_tree_dflt(a, p, "protocol: TCP");
        if (port &&
            (!target || target->type == BH_JSON_NULL || (bh_json_i64(target, &n) && n == 0)))
            bh_json_set(a, p, "targetPort", bh_json_clone(a, port));
    }
    if (!bh_tree_is(spec, "type", "ExternalName")) {
        cluster_ip(w, spec);
        bh_tree_dflt(a, spec, "internalTrafficPolicy: Cluster");
    }
    bool lb = bh_tree_is(spec, "type", "LoadBalancer");
    bool node_ports = bh_tree_is(spec, "type", "NodePort");
    if (lb) {
        bh_tree_dflt(a, spec, "allocateLoadBalancerNodePorts: true");
        node_ports = bh_tree_bool(spec, "allocateLoadBalancerNodePorts", true);
    }
    if (lb || node_ports)
        bh_tree_dflt(a, spec, "externalTrafficPolicy: Cluster");
    if (node_ports)
        allocate_node_ports(w, spec);
    if (w->op == BH_SIM_OP_CREATE && !bh_tree_has(w->obj, "status"))
        bh_json_obj_at(a, bh_json_obj_at(a, w->obj, "status"), "loadBalancer");
    return 0;
}

/* ---- validation ------------------------------------------------------------------------------ */

static bool ip_taken(struct bh_sim_write *w, const char *ip)
{
    char *needle = bh_arena_printf(w->arena, "\"clusterIP\":\"%s\"", ip);
    struct bh_sim_objs l = {0};
    bool taken = false;

    bh_sim_list(w->sim, services_type(), NULL, &l);
    for (size_t i = 0; needle && i < l.n && !taken; i++)
        taken = strstr(l.v[i]->json, needle) != NULL;
    bh_sim_objs_fini(&l);
    return taken;
}

static void validate_port(struct bh_sim_write *w, const char *at, const struct bh_json *p)
{
    int64_t n = bh_tree_i64(p, "port", 0), node = bh_tree_i64(p, "nodePort", 0);

    if (bh_tree_len(bh_tree_arr(w->obj, "spec.ports")) > 1 || *bh_json_get_text(p, "name"))
        bh_adm_dns_label(w, bh_adm_member(w, at, "name"), bh_tree_str(p, "name"));
    if (n < 1 || n > 65535)
        bh_sim_field_error(w->error, bh_adm_member(w, at, "port"), "Invalid value",
                           bh_adm_path(w, "%lld", (long long)n),
                           "must be between 1 and 65535, inclusive");
    if (node && (node < FIRST_NODE_PORT || node > LAST_NODE_PORT))
        bh_adm_invalid(w, at, p, "nodePort",
                       "provided port is not in the valid range. The range of valid ports is "
                       "30000-32767");
    bh_adm_one_of(w, at, p, "protocol", "SCTP TCP UDP", true);
}

void bh_adm_validate_service(struct bh_sim_write *w)
{
    if (!bh_tree_len(bh_tree_arr(w->obj, "spec.ports")) &&
        !bh_tree_is(w->obj, "spec.clusterIP", "None") &&
        !bh_tree_is(w->obj, "spec.type", "ExternalName"))
        bh_adm_required(w, "spec", "ports", "");
    bh_adm_each(w, "", w->obj, "spec.ports", validate_port);
    bh_adm_one_of(w, "", w->obj, "spec.type", "ClusterIP ExternalName LoadBalancer NodePort", true);
    bh_adm_one_of(w, "", w->obj, "spec.sessionAffinity", "ClientIP None", true);
    bh_adm_label_map(w, "spec.selector", bh_tree_obj(w->obj, "spec.selector"));
    const char *ip = bh_tree_str(w->obj, "spec.clusterIP");
    const char *old = bh_tree_str(w->old, "spec.clusterIP");
    if (bh_tree_is(w->obj, "spec.type", "ExternalName")) {
        if (!bh_tree_has(w->obj, "spec.externalName"))
            bh_adm_required(w, "spec", "externalName", "");
    } else if (old && *old && ip && !bh_streq(ip, old) &&
               !bh_tree_is(w->old, "spec.type", "ExternalName")) {
        bh_adm_invalid_text(w, "spec.clusterIPs[0]", ip, "may not change once set");
    } else if (!w->old && ip && !bh_streq(ip, "None") && ip_taken(w, ip)) {
        bh_adm_invalid_text(w, "spec.clusterIPs", ip,
                            "failed to allocate IP: provided IP is already allocated");
    }
}
