/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/node_init.c - what a kubelet says about its node when it registers
 *
 * A node without a Ready condition gets healthy conditions, addresses, node info and, where absent,
 * capacity. A node that came with a Ready condition is left alone: it was scripted. Later, extended
 * resources that come into capacity, change or go there do so in allocatable.
 * Upstream: pkg/kubelet/nodestatus/setters.go, kwok's node-initialize stage; differences: defaults
 * of capacity are our own; no heartbeats.
 */
#include "common/k8s/compile.h"
#include "simulator/controllers/controllers.h"

#include <stdio.h>

#define KUBELET_VERSION "v1.36.0+berth." BH_VERSION

static void capacity(struct bh_arena *a, struct bh_json *status)
{
    struct bh_json *cap = bh_tree_dflt_obj(a, status, "capacity");
    struct bh_json *alloc = bh_tree_obj(status, "allocatable");

    if (!cap)
        return;
    bh_tree_dflt_str(a, cap, "cpu", "1k");
    bh_tree_dflt_str(a, cap, "memory", "1Ti");
    bh_tree_dflt_str(a, cap, "pods", "110");
    if (!alloc)
        bh_json_set(a, status, "allocatable", bh_json_clone(a, cap));
    else
        bh_tree_dflt_str(a, alloc, "pods", "110");
}

static void conditions(struct bh_arena *a, struct bh_json *node, const char *now)
{
    static const struct {
        const char *type, *status, *reason, *message;
    } all[] = {
        {"MemoryPressure", "False", "KubeletHasSufficientMemory",
         "kubelet has sufficient memory available"},
        {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
        {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
        {"Ready", "True", "KubeletReady", "kubelet is posting ready status"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(all); i++) {
        if (bh_tree_condition(node, all[i].type))
            continue;
        bh_tree_set_condition(a, node, all[i].type, all[i].status, all[i].reason, all[i].message,
                              now);
        bh_json_set_str(a, bh_tree_condition(node, all[i].type), "lastHeartbeatTime", now);
    }
}

void bh_ctl_keep_ip(const struct bh_sim_obj *obj, const char *key, unsigned least, unsigned most,
                    uint32_t *next)
{
    const char *at = strstr(obj->json, key);
    unsigned a, b, c;

    if (at && sscanf(at + strlen(key), "%3u.%3u.%3u", &a, &b, &c) == 3 && a >= least && a < most &&
        b < 256 && c < 256)
        *next = BH_MAX(*next, ((a - least) << 16 | b << 8 | c) + 1);
}

/* 172.16.0.0/12, in order. */
static void addresses(struct bh_sim_controllers *c, struct bh_arena *a, struct bh_json *node)
{
    struct bh_json *list = bh_tree_dflt_arr(a, bh_tree_obj(node, "status"), "addresses");
    char ip[16];

    if (!list || list->c.n)
        return;
    uint32_t n = c->kubelet.next_node_ip++ & 0xfffff;
    snprintf(ip, sizeof(ip), "172.%u.%u.%u", (unsigned)(16 + (n >> 16)), (unsigned)(n >> 8 & 255),
             (unsigned)(n & 255));
    bh_json_append(a, list, "type: InternalIP, address: %s", ip);
    bh_json_append(a, list, "type: Hostname, address: %s", bh_tree_str(node, "metadata.name"));
}

/* What the node's labels state, a kubelet on that node would report. */
static void node_info(struct bh_arena *a, struct bh_json *node, struct bh_json *status)
{
    const struct bh_json *labels = bh_json_path(node, "metadata.labels");
    const char *arch = bh_json_get_str(labels, "kubernetes.io/arch");
    const char *os = bh_json_get_str(labels, "kubernetes.io/os");
    const char *const info[][2] = {
        {"architecture", arch ? arch : "amd64"},
        {"bootID", ""},
        {"containerRuntimeVersion", "berth://" BH_VERSION},
        {"kernelVersion", "none"},
        {"kubeProxyVersion", ""},
        {"kubeletVersion", KUBELET_VERSION},
        {"machineID", ""},
        {"operatingSystem", os ? os : "linux"},
        {"osImage", "Berth simulator"},
        {"systemUUID", ""},
    };
    struct bh_json *o = bh_tree_dflt_obj(a, status, "nodeInfo");

    for (size_t i = 0; o && i < BH_ARRAY_LEN(info); i++)
        bh_tree_dflt_str(a, o, info[i][0], info[i][1]);
}

void bh_ctl_node_healthy(struct bh_sim_controllers *c, struct bh_arena *a, struct bh_json *node)
{
    struct bh_json *status = bh_json_obj_at(a, node, "status");

    capacity(a, status);
    conditions(a, node, bh_ctl_now(c, a));
    addresses(c, a, node);
    node_info(a, node, status);
}

static bool same_value(const struct bh_json *a, const struct bh_json *b)
{
    return a == b || (a && b && bh_json_equal(a, b));
}

/* A map of amounts has no brace inside. */
static struct bh_str capacity_text(const struct bh_sim_obj *node)
{
    const char *at = strstr(node->json, "\"capacity\":{");

    return at ? (struct bh_str){at, strcspn(at, "}")} : (struct bh_str){"", 0};
}

/* Allocatable follows capacity's extended resources, unless the same write says both. */
static bool follow_capacity(void *arg, struct bh_arena *a, struct bh_json *node)
{
    const struct bh_json *was = bh_json_get(bh_sim_obj_tree(a, arg), "status");
    struct bh_json *status = bh_json_obj_at(a, node, "status");
    const struct bh_json *before = bh_json_get(was, "capacity"), *now;
    const struct bh_json *given = bh_json_get(was, "allocatable");
    struct bh_json *alloc = bh_json_obj_at(a, status, "allocatable");
    bool changed = false;

    now = bh_json_get(status, "capacity");
    bh_json_each(e, now) {
        const struct bh_json *old = bh_json_get(before, e->key.p);
        const struct bh_json *have = bh_json_get(alloc, e->key.p);
        const struct bh_json *had = bh_json_get(given, e->key.p);
        if (!bh_resource_is_extended(e->key.p) || same_value(old, e) || !same_value(have, had))
            continue;
        bh_json_set(a, alloc, e->key.p, bh_json_clone(a, e));
        changed = true;
    }
    bh_json_each(e, before)
        if (bh_resource_is_extended(e->key.p) && !bh_json_get(now, e->key.p))
            changed = bh_json_unset(alloc, e->key.p) || changed;
    return changed;
}

static bool init_node(void *arg, struct bh_arena *a, struct bh_json *node)
{
    if (bh_tree_condition(node, "Ready") || bh_ctl_kubelet_stopped(node))
        return false;
    bh_ctl_node_healthy(arg, a, node);
    return true;
}

void bh_ctl_wake_pods(struct bh_sim_controllers *c, const char *node)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_on_node(c->sim, node);

    for (size_t i = 0; i < l.n; i++)
        bh_ctl_kubelet_commit(c, BH_SIM_ADDED, NULL, l.v[i]);
}

void bh_ctl_node_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                        struct bh_sim_obj *old, struct bh_sim_obj *node)
{
    free(bh_map_del(&c->kubelet.node_ip, node->name, strlen(node->name)));
    if (!c->opt.kubelet || change == BH_SIM_DELETED)
        return;
    if (change == BH_SIM_ADDED)
        bh_ctl_keep_ip(node, "\"address\":\"172.", 16, 32, &c->kubelet.next_node_ip);
    /* The whole object, not only its status: the taints follow from the conditions. */
    if (change == BH_SIM_ADDED || !strstr(node->json, "\"Ready\""))
        bh_ctl_edit(c, node, BH_SIM_WHOLE, init_node, c);
    else if (!bh_str_eq(capacity_text(old), capacity_text(node)))
        bh_ctl_edit(c, node, BH_SIM_STATUS, follow_capacity, old);
    if (change == BH_SIM_ADDED)
        bh_ctl_wake_pods(c, node->name);
}

const char *bh_ctl_node_ip(struct bh_sim_controllers *c, const char *node)
{
    struct bh_map *m = &c->kubelet.node_ip;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    char *ip = bh_map_get(m, node, strlen(node));

    if (ip)
        return ip;
    const struct bh_sim_obj *o = bh_sim_get(c->sim, c->t.nodes, "", node);
    if (!o)
        return "";
    bh_json_each(e, bh_tree_arr(bh_sim_obj_tree(&a, o), "status.addresses")) {
        const char *s = bh_tree_str(e, "address");
        if (!ip && s && bh_tree_is(e, "type", "InternalIP"))
            ip = bh_strdup(s);
    }
    ip = ip ? ip : bh_strdup("127.0.0.1"); /* the node exists: its pods run somewhere */
    bh_map_put(m, node, strlen(node), ip);
    return ip;
}
