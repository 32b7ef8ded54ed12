/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/defaultbinder/default_binder.c - every pod is bound by a Binding of its own
 *
 * Upstream: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go; differences: asks for
 *           the Binding, a binder process posts it.
 */
#include "scheduler/framework/plugin.h"
#include "scheduler/plugins/registry.h"

static const struct bh_status *bind_pod(struct bh_call *c, bh_sym node, struct bh_bind_order *ret)
{
    (void)c, (void)node, (void)ret; /* an order is one for a Binding, unless it says otherwise */
    return NULL;
}

const struct bh_plugin bh_plugin_default_binder = {
    BH_PLUGIN_HEAD("DefaultBinder"),
    .flags = BH_PLUGIN_NODE_LOCAL,
    .bind = bind_pod,
};
