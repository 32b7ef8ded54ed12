/* SPDX-License-Identifier: Apache-2.0
 *
 * A guest as of v0.1.0 of kube-scheduler-wasm-extension, whose imports had other names: it passes
 * nodes by the names in their objects, and scores by how many of them PreScore is given.
 */
#include "plugins/wasm/guest.h"

GUEST_READER(old_pod, "k8s.io/api", "pod");
GUEST_READER(old_node, "k8s.io/api", "node");
GUEST_READER(old_node_name, "k8s.io/api", "nodeName");
GUEST_READER(old_nodes, "k8s.io/api", "nodeList");

static uint8_t object[1 << 16];
static char name[254];
static int32_t n_nodes;

GUEST_HOOK(prefilter, int32_t)
{
    uint32_t n = old_pod(object, sizeof object);
    struct guest_field f;

    if (!n || n > sizeof object ||
        !guest_path(guest_open(object, n), &f, GUEST_METADATA, GUEST_META_UID))
        return guest_status(GUEST_ERROR, "no pod");
    return GUEST_SUCCESS;
}

GUEST_HOOK(filter, int32_t)
{
    uint32_t n = old_node(object, sizeof object);
    struct guest_field f;

    if (!n || n > sizeof object)
        return guest_status(GUEST_ERROR, "no node");
    if (!guest_path(guest_open(object, n), &f, GUEST_METADATA, GUEST_META_NAME) ||
        guest_is(f.bytes, f.n, "a"))
        return guest_status(GUEST_UNSCHEDULABLE, "not a");
    return GUEST_SUCCESS;
}

GUEST_HOOK(prescore, int32_t)
{
    uint32_t n = old_nodes(object, sizeof object);
    struct guest_message m = guest_open(object, n <= sizeof object ? n : 0);
    struct guest_field f;

    for (n_nodes = 0; guest_next(&m, &f);)
        n_nodes += f.number == 2;
    return GUEST_SUCCESS;
}

GUEST_HOOK(score, int64_t)
{
    uint32_t n = old_node_name(name, sizeof name);

    return guest_scored(n == 1 && name[0] == 'c' ? 10 * n_nodes : 0, GUEST_SUCCESS);
}
