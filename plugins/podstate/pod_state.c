/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/podstate/pod_state.c - nodes that are about to have room before nodes that promised theirs
 *
 * The more of a node's pods are being deleted, the better is the node; the more pods are nominated to
 * it, the worse.
 * Upstream:   sigs.k8s.io/scheduler-plugins, pkg/podstate.
 * Difference: none known.
 */
#include "berth/plugin.h"

static const struct berth_host *host;

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    (void)self, (void)why;
    *ret = (int64_t)host->nodes->n_terminating(c, node) - host->nodes->n_nominated(c, node);
    return BERTH_SUCCESS;
}

/* The worst 0, the best 100; 0 where all are alike. */
static int32_t normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    int64_t low = INT64_MAX, high = INT64_MIN;

    (void)self, (void)c, (void)why;
    for (uint64_t i = 0; i < n; i++) {
        low = scores[i] < low ? scores[i] : low;
        high = scores[i] > high ? scores[i] : high;
    }
    for (uint64_t i = 0; i < n; i++)
        scores[i] = low == high ? 0 : (scores[i] - low) * 100 / (high - low);
    return BERTH_SUCCESS;
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    for (const struct berth_value *m = host->values->first(args); m; m = host->values->next(m))
        host->values->error(errors, host->values->key(m),
                            BERTH_STR("unknown field: it has no arguments"));
}

static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"PodState", 8},
    .reads = BERTH_READS_PODS,
    .events = none,
    .check_args = check_args,
    .score = score,
    .normalize = normalize,
};

BERTH_NOTE("PodState", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h->nodes, n_nominated)) /* of ABI 1.1 */
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
