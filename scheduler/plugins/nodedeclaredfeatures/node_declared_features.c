/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/nodedeclaredfeatures/node_declared_features.c - pods that need a node feature
 * go where it is declared
 *
 * Upstream:   pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go;
 *             differences: none.
 */
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/registry.h"

BH_STATUS_CONST(missing, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "NodeDeclaredFeatures",
                "node(s) didn't match Pod's required features");
BH_STATUS_CONST(no_state, BH_ERROR, "NodeDeclaredFeatures",
                "error reading \"PreFilterNodeDeclaredFeatures\" from cycle-state: not found");

/* Upstream's registry, sorted; flags 0: no pod needs it to be scheduled. */
static const struct feature {
    const char *name;
    uint32_t flags; /* all of enum bh_shape_flags */
} features[] = {
    {"ExtendWebSocketsToKubelet", 0},
    {"InPlacePodLevelResourcesVerticalScaling", 0},
    {"InPlacePodVerticalScalingInitContainers", 0},
    {"RestartAllContainersOnContainerExits", BH_SHAPE_RESTART_ALL_CONTAINERS},
    {"UserNamespacesHostNetworkSupport", BH_SHAPE_HOST_NETWORK | BH_SHAPE_HOST_USERS_FALSE},
};

static unsigned required(const struct bh_shape_rec *s)
{
    unsigned set = 0;

    for (unsigned i = 0; i < BH_ARRAY_LEN(features); i++)
        if (features[i].flags && (s->flags & features[i].flags) == features[i].flags)
            set |= 1u << i;
    return set;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    return required(c->pod->shape) ? NULL : &bh_status_skip;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    const bh_sym *f = bh_rec_at(node->rec, node->rec->features, bh_sym);
    unsigned set = 0, k = 0;

    /* Upstream walks the node's list and the registry side by side, because kubelets sort the
     * list: in one that is not sorted it overlooks names. Mirrored, because it decides
     * placement. */
    for (uint32_t i = 0; i < node->rec->features.n && k < BH_ARRAY_LEN(features);) {
        int cmp = strcmp(bh_sym_text(c->tab, f[i]), features[k].name);
        if (cmp == 0)
            set |= 1u << k;
        i += cmp <= 0;
        k += cmp >= 0;
    }
    return required(c->pod->shape) & ~set ? &missing : NULL;
}

static enum bh_hint on_node(const struct bh_hint_call *c)
{
    const struct bh_node_rec *old = c->ev->old_node, *neu = c->ev->new_node;

    return bh_hint_if(!old ||
                      bh_slice_differs(old, old->features, neu, neu->features, sizeof(bh_sym)));
}

static enum bh_hint on_pod(const struct bh_hint_call *c)
{
    return bh_hint_if(bh_hint_is_self(c, c->ev->new_pod) && c->ev->old_shape &&
                      required(c->ev->old_shape) != required(c->ev->new_shape));
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_FEATURE, .hint = on_node},
    {.on = BH_ON_POD, .actions = BH_EV_UPDATE, .hint = on_pod},
    {.actions = 0},
};

const struct bh_plugin bh_plugin_node_declared_features = {
    BH_PLUGIN_HEAD("NodeDeclaredFeatures"),
    .flags = BH_PLUGIN_NODE_LOCAL | BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_READS_SUMS |
             BH_PLUGIN_READS_NODE,
    .events = events,
    .pre_filter = pre_filter,
    .filter = filter,
    .without_pre_filter = &no_state,
};
