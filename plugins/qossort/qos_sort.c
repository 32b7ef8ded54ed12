/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/qossort/qos_sort.c - of pods of one priority those of the better quality of service first
 *
 * Guaranteed before Burstable before BestEffort; within one by the time that they came.
 * Upstream:   sigs.k8s.io/scheduler-plugins, pkg/qos; k8s.io/kubernetes, pkg/apis/core/v1/helper/qos.
 * Difference: the class is found out from the containers, where upstream believes status.qosClass
 *             first: a pod with spec.resources of its own has the class of its containers.
 */
#include <stdlib.h>

#include "berth/plugin.h"

enum qos { BEST_EFFORT, BURSTABLE, GUARANTEED };
enum { CPU, MEMORY, RESOURCES };

static const struct berth_host *host;

struct instance {
    berth_sym resource[RESOURCES];
};

static enum qos qos_of(const struct instance *in, struct berth_call *c, const struct berth_pod *pod)
{
    const struct berth_host_pods *h = host->pods;
    uint64_t requests[RESOURCES] = {0, 0}, limits[RESOURCES] = {0, 0};
    int all_limited = 1;

    for (uint32_t i = 0, n = h->n_containers(c, pod); i < n; i++)
        for (int r = 0; r < RESOURCES; r++) {
            int64_t request = h->container_request(c, pod, i, in->resource[r]);
            int64_t limit = h->container_limit(c, pod, i, in->resource[r]);
            requests[r] += request > 0 ? (uint64_t)request : 0;
            limits[r] += limit > 0 ? (uint64_t)limit : 0;
            all_limited &= limit > 0;
        }
    if (!requests[CPU] && !requests[MEMORY] && !limits[CPU] && !limits[MEMORY])
        return BEST_EFFORT;
    return all_limited && requests[CPU] == limits[CPU] && requests[MEMORY] == limits[MEMORY]
               ? GUARANTEED
               : BURSTABLE;
}

static int32_t less(void *self, struct berth_call *c, const struct berth_queued *a,
                    const struct berth_queued *b)
{
    int32_t of_a = host->pods->priority(c, a->pod), of_b = host->pods->priority(c, b->pod);

    if (of_a != of_b)
        return of_a > of_b;
    enum qos class_a = qos_of(self, c, a->pod), class_b = qos_of(self, c, b->pod);
    if (class_a != class_b)
        return class_a > class_b;
    return a->timestamp < b->timestamp;
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    for (const struct berth_value *m = host->values->first(args); m; m = host->values->next(m))
        host->values->error(errors, host->values->key(m),
                            BERTH_STR("unknown field: it has no arguments"));
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct instance *in = calloc(1, sizeof *in);

    (void)args;
    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    in->resource[CPU] = host->base->intern(home, BERTH_STR("cpu"));
    in->resource[MEMORY] = host->base->intern(home, BERTH_STR("memory"));
    *ret = in;
    return BERTH_SUCCESS;
}

static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"QOSSort", 7},
    .reads = BERTH_READS_NODE, /* it answers about the queue alone */
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = free,
    .less = less,
};

BERTH_NOTE("QOSSort", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h->pods, container_limit)) /* of ABI 1.1, as less() is */
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
