/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/binding.c - are an allocated claim's devices ready
 *
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources (isClaimReadyForBinding,
 *           isClaimTimeout).
 */
#include "scheduler/plugins/dynamicresources/cycle.h"

static const K8s__Condition *condition(const K8s__AllocatedDeviceStatus *d, const char *type)
{
    for (size_t i = 0; i < d->n_conditions; i++)
        if (bh_streq(d->conditions[i]->type, type))
            return d->conditions[i];
    return NULL;
}

static bool is_true(const K8s__AllocatedDeviceStatus *d, const char *type)
{
    const K8s__Condition *k = condition(d, type);
    return k && bh_streq(k->status, "True");
}

static enum bh_dra_binding device_binding(const K8s__ResourceClaim *claim,
                                          const K8s__DeviceRequestAllocationResult *r,
                                          const K8s__Condition **ret_failure)
{
    const K8s__AllocatedDeviceStatus *d = NULL;

    /* The share is not compared: upstream takes the device's first status for all of its shares. */
    for (size_t i = 0; i < claim->status->n_devices && !d; i++) {
        const K8s__AllocatedDeviceStatus *s = claim->status->devices[i];
        if (bh_streq(s->driver, r->driver) && bh_streq(s->pool, r->pool) &&
            bh_streq(s->device, r->device))
            d = s;
    }
    if (!d)
        return BH_DRA_NOT_READY;
    for (size_t i = 0; i < r->n_bindingfailureconditions; i++) {
        if (!is_true(d, r->bindingfailureconditions[i]))
            continue;
        if (ret_failure)
            *ret_failure = condition(d, r->bindingfailureconditions[i]);
        return BH_DRA_BINDING_FAILED;
    }
    for (size_t i = 0; i < r->n_bindingconditions; i++)
        if (!is_true(d, r->bindingconditions[i]))
            return BH_DRA_NOT_READY;
    return BH_DRA_READY;
}

enum bh_dra_binding bh_dra_binding_of(const K8s__ResourceClaim *claim,
                                      const K8s__Condition **ret_failure)
{
    const K8s__DeviceAllocationResult *got = claim->status->allocation->devices;
    enum bh_dra_binding b = BH_DRA_READY;

    for (size_t i = 0; got && b == BH_DRA_READY && i < got->n_results; i++)
        if (got->results[i]->n_bindingconditions)
            b = device_binding(claim, got->results[i], ret_failure);
    return b;
}

bool bh_dra_binding_late(const struct bh_dra *d, const K8s__ResourceClaim *claim, int64_t now_ns)
{
    const K8s__Time *since = claim->status->allocation->allocationtimestamp;

    return since && (__int128)since->seconds * 1000000000 + since->nanos + d->binding_timeout_ns <
                        (__int128)now_ns;
}
