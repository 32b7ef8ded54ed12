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

struct ports {
    uint8_t used[LAST_NODE_PORT - FIRST_NODE_PORT + 1];
    size_t next;
};

static void mark_port(struct ports *p, int64_t n)
{
    if (n >= FIRST_NODE_PORT && n <= LAST_NODE_PORT)
        p->used[n - FIRST_NODE_PORT] = 1;
}

static void mark_ports(struct ports *p, const struct bh_json *svc)
{
    bh_json_each(port, bh_tree_arr(svc, "spec.ports"))
        mark_port(p, bh_tree_i64(port, "nodePort", 0));
    mark_port(p, bh_tree_i64(svc, "spec.healthCheckNodePort", 0));
}

/* member of obj, when it has none yet. */
static void allocate_port(struct bh_sim_write *w, struct ports *p, struct bh_json *obj,
                          const char *member)
{
    if (bh_tree_i64(obj, member, 0))
        return;
    while (p->next < sizeof(p->used) && p->used[p->next])
        p->next++;
    if (p->next < sizeof(p->used))
        bh_json_set_i64(w->arena, obj, member, FIRST_NODE_PORT + (int64_t)p->next++);
}

/* What the service had of the same port and protocol is kept. */
static void keep_ports(struct bh_sim_write *w, struct bh_json *spec)
{
    bh_json_each(o, bh_tree_arr(w->old, "spec.ports")) {
        int64_t n = bh_tree_i64(o, "nodePort", 0);
        bh_json_each(p, bh_tree_arr(spec, "ports"))
            if (n && !bh_tree_i64(p, "nodePort", 0) && bh_adm_same(p, o, "port") &&
                bh_adm_same(p, o, "protocol"))
                bh_json_set_i64(w->arena, p, "nodePort", n);
    }
}

static void allocate_ports(struct bh_sim_write *w, struct bh_json *spec, bool node_ports,
                           bool health)
{
    struct ports used = {0};
    struct bh_sim_objs l = {0};

    if (node_ports)
        keep_ports(w, spec);
    bh_sim_list(w->sim, services_type(), NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_arena a;
        if (!strstr(l.v[i]->json, "NodePort\":") && !strstr(l.v[i]->json, "\"nodePort\":"))
            continue;
        bh_arena_init(&a, 0);
        mark_ports(&used, bh_sim_obj_tree(&a, l.v[i]));
        bh_arena_fini(&a);
    }
    bh_sim_objs_fini(&l);
    mark_ports(&used, w->obj);
    if (node_ports)
        bh_json_each(p, bh_tree_arr(spec, "ports"))
            allocate_port(w, &used, p, "nodePort");
    int64_t old = bh_tree_i64(w->old, "spec.healthCheckNodePort", 0);
    if (health && old && !bh_tree_i64(spec, "healthCheckNodePort", 0))
        bh_json_set_i64(w->arena, spec, "healthCheckNodePort", old);
    if (health)
        allocate_port(w, &used, spec, "healthCheckNodePort");
}

/* On update an empty address means "keep it". */
static void cluster_ip(struct bh_sim_write *w, struct bh_json *spec)
{
    const char *ip = bh_tree_str(spec, "clusterIP"), *old = bh_tree_str(w->old, "spec.clusterIP");

    if (!ip || !*ip)
        ip = old && *old ? old : next_ip(w);
    if (!ip)
        return;
    bool given = bh_tree_len(bh_tree_arr(spec, "clusterIPs")) && bh_tree_str(spec, "clusterIP");
    if (old && *old && !bh_streq(old, ip) && bh_adm_same(w->obj, w->old, "spec.clusterIPs"))
        given = false; /* an update of the one is meant for both */
    bh_json_set_str(w->arena, spec, "clusterIP", ip);
    if (!given)
        bh_json_add(w->arena, spec, "clusterIPs: [%s]", ip);
    if (bh_streq(ip, "None") && !bh_tree_len(bh_tree_obj(spec, "selector")))
        return;
    bh_tree_dflt(w->arena, spec, "ipFamilies: [IPv4], ipFamilyPolicy: SingleStack");
}

/* What belongs to a type goes with it, unless the client has changed it. */
static void drop_of_type(struct bh_sim_write *w, struct bh_json *spec, const char *members)
{
    const struct bh_json *old = bh_tree_obj(w->old, "spec");

    for (struct bh_json *m = spec->c.first, *next; m; m = next) {
        const struct bh_json *o = bh_json_get(old, m->key.p);
        next = m->next;
        if (bh_word_at(members, m->key.p) >= 0 && o && bh_json_equal(o, m))
            bh_json_remove(spec, m);
    }
}

/* ---- defaults -------------------------------------------------------------------------------- */

int bh_adm_default_service(struct bh_sim_write *w)
{
    struct bh_arena *a = w->arena;
    struct bh_json *spec = bh_json_obj_at(a, w->obj, "spec");

    if (w->op == BH_SIM_OP_UPDATE_STATUS)
        return 0;
    bh_json_each(p, bh_tree_arr(spec, "ports")) {
        const struct bh_json *target = bh_json_get(p, "targetPort"), *port = bh_json_get(p, "port");
        int64_t n;
        if (p->type != BH_JSON_OBJECT)
            continue;
        if (port &&
            (!target || target->type == BH_JSON_NULL || (bh_json_i64(target, &n) && n == 0)))
            bh_json_set(a, p, "targetPort", bh_json_clone(a, port));
    }
    bool lb = bh_tree_is(spec, "type", "LoadBalancer");
    bool node_ports = bh_tree_is(spec, "type", "NodePort");
    if (!bh_tree_is(spec, "type", "ExternalName")) {
        cluster_ip(w, spec);
        bh_tree_dflt(a, spec, "internalTrafficPolicy: Cluster");
    } else {
        drop_of_type(w, spec,
                     "clusterIP clusterIPs ipFamilies ipFamilyPolicy internalTrafficPolicy");
    }
    if (lb) {
        bh_tree_dflt(a, spec, "allocateLoadBalancerNodePorts: true");
        node_ports = bh_tree_bool(spec, "allocateLoadBalancerNodePorts", true);
    } else {
        drop_of_type(w, spec, "allocateLoadBalancerNodePorts loadBalancerClass");
    }
    if (lb || node_ports || bh_tree_len(bh_tree_arr(spec, "externalIPs")))
        bh_tree_dflt(a, spec, "externalTrafficPolicy: Cluster");
    else
        drop_of_type(w, spec, "externalTrafficPolicy");
    bool health = lb && bh_tree_is(spec, "externalTrafficPolicy", "Local");
    if (!health)
        drop_of_type(w, spec, "healthCheckNodePort");
    if (node_ports || health)
        allocate_ports(w, spec, node_ports, health);
    if (w->op == BH_SIM_OP_CREATE && !bh_tree_has(w->obj, "status"))
        bh_json_obj_at(a, bh_json_obj_at(a, w->obj, "status"), "loadBalancer");
    return 0;
}

/* ---- allocation ------------------------------------------------------------------------------ */

static bool is_taken(struct bh_sim_write *w, const char *needle)
{
    struct bh_sim_objs l = {0};
    bool taken = false;

    bh_sim_list(w->sim, services_type(), NULL, &l);
    for (size_t i = 0; i < l.n && !taken; i++)
        taken = l.v[i] != w->old_obj && strstr(l.v[i]->json, needle) != NULL;
    bh_sim_objs_fini(&l);
    return taken;
}

static void allocate_ip(struct bh_sim_write *w, const struct bh_json *spec)
{
    const struct bh_json *ips = bh_tree_arr(spec, "clusterIPs");
    const char *ip = bh_json_cstr(bh_json_at(ips, 0)), *why = NULL;
    unsigned a = 0, b = 0;

    if (!ip || bh_streq(ip, "None"))
        return;
    if (strchr(ip, ':'))
        bh_adm_invalid_value(w, "spec.clusterIPs[0]", ips,
                             "IPv6 is not configured on this cluster");
    else if (sscanf(ip, "%3u.%3u.", &a, &b) != 2 || a != 10 || b < 96 || b > 111)
        why =
            bh_adm_path(w,
                        "failed to allocate IP %s: the provided IP (%s) is not in the valid range. "
                        "The range of valid IPs is 10.96.0.0/12",
                        ip, ip);
    else if (is_taken(w, bh_adm_path(w, "\"clusterIP\":\"%s\"", ip)))
        why = bh_adm_path(w, "failed to allocate IP %s: provided IP is already allocated", ip);
    if (why)
        bh_adm_invalid_value(w, "spec.clusterIPs", ips, why);
}

static void allocate_families(struct bh_sim_write *w, const struct bh_json *spec)
{
    size_t i = 0;

    bh_json_each(f, bh_tree_arr(spec, "ipFamilies")) {
        const char *at = bh_adm_path(w, "spec.ipFamilies[%zu]", i++);
        if (bh_json_cstr(f) && bh_streq(f->s.p, "IPv6"))
            bh_adm_invalid_value(w, at, f, "not configured on this cluster");
    }
    if (bh_tree_is(spec, "ipFamilyPolicy", "RequireDualStack"))
        bh_adm_invalid(w, "", w->obj, "spec.ipFamilyPolicy",
                       "this cluster is not configured for dual-stack services");
}

/* What is in order may still be taken already, or not be this cluster's. */
void bh_adm_validate_service(struct bh_sim_write *w)
{
    const struct bh_json *spec = bh_tree_obj(w->obj, "spec");
    size_t i = 0;

    if (w->error->n_causes || w->op == BH_SIM_OP_UPDATE_STATUS)
        return;
    if (!bh_tree_is(spec, "type", "ExternalName")) {
        allocate_families(w, spec);
        if (!w->error->n_causes && !bh_adm_same(w->obj, w->old, "spec.clusterIP"))
            allocate_ip(w, spec);
    }
    bh_json_each(p, bh_tree_arr(spec, "ports")) {
        const char *at = bh_adm_path(w, "spec.ports[%zu].nodePort", i++);
        int64_t n = bh_tree_i64(p, "nodePort", 0);
        const struct bh_json *v = bh_json_get(p, "nodePort");
        if (n && (n < FIRST_NODE_PORT || n > LAST_NODE_PORT))
            bh_adm_invalid_value(w, at, v,
                                 "provided port is not in the valid range. The range of valid "
                                 "ports is 30000-32767");
        else if (n && is_taken(w, bh_adm_path(w, "\"nodePort\":%zu,", (size_t)n)))
            bh_adm_invalid_value(w, at, v, "provided port is already allocated");
        else if (n && is_taken(w, bh_adm_path(w, "\"nodePort\":%zu}", (size_t)n)))
            bh_adm_invalid_value(w, at, v, "provided port is already allocated");
    }
}
