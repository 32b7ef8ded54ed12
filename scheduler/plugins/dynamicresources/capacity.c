/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/capacity.c - what a request takes of a device's capacity
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating
 *           (consumable_capacity.go).
 */
#include "scheduler/plugins/dynamicresources/devices.h"

#define NANO ((bh_nano)1000000000)

bh_nano bh_dra_quantity(const K8s__Quantity *q)
{
    bh_nano v = 0;

    if (q && q->string && bh_quantity_parse(q->string, strlen(q->string), &v) < 0)
        v = 0;
    return v;
}

const K8s__Quantity *bh_dra_requested(const K8s__CapacityRequirements *r, const char *name)
{
    for (size_t i = 0; r && i < r->n_requests; i++)
        if (bh_streq(r->requests[i]->key, name))
            return r->requests[i]->value;
    return NULL;
}

bool bh_dra_capacity_known(const K8s__CapacityRequirements *r, const K8s__Device *dev)
{
    for (size_t i = 0; r && i < r->n_requests; i++) {
        size_t k = 0;
        while (k < dev->n_capacity && !bh_streq(dev->capacity[k]->key, r->requests[i]->key))
            k++;
        if (k == dev->n_capacity)
            return false;
    }
    return true;
}

/* In whole units, as upstream. */
static bh_nano round_up(const K8s__CapacityRequestPolicyRange *range, bh_nano v)
{
    bh_nano min = bh_dra_quantity(range->min);

    if (v < min)
        return min;
    if (!range->step)
        return v;
    int64_t from = bh_quantity_value(min), step = bh_quantity_value(bh_dra_quantity(range->step));
    __int128 added = (__int128)bh_quantity_value(v) - from;
    if (step <= 0)
        return v;
    return (from + step * ((added + step - 1) / step)) * NANO;
}

/* *text: the quantity that the value stands in; it becomes NULL when the value is worked out. */
static bh_nano rounded(const K8s__CapacityRequestPolicy *p, const K8s__Quantity **text)
{
    bh_nano v = bh_dra_quantity(*text), up;

    if (p->validrange && p->validrange->min) {
        up = round_up(p->validrange, v);
        if (v < bh_dra_quantity(p->validrange->min))
            *text = p->validrange->min;
        else if (p->validrange->step)
            *text = NULL;
        return up;
    }
    for (size_t i = 0; i < p->n_validvalues; i++) {
        if (v > bh_dra_quantity(p->validvalues[i]))
            continue;
        *text = p->validvalues[i];
        return bh_dra_quantity(*text);
    }
    return v;
}

/* The default is allowed whatever the policy says, if it is written the same: upstream compares
 * quantities as they were read. */
static bool allowed(const K8s__CapacityRequestPolicy *p, bh_nano v, const K8s__Quantity *text)
{
    if (p->default_ && text &&
        bh_streq(p->default_->string ? p->default_->string : "0",
                 text->string ? text->string : "0"))
        return true;
    if (p->validrange) {
        if (p->validrange->max && v > bh_dra_quantity(p->validrange->max))
            return false;
        if (!p->validrange->step)
            return true;
        int64_t step = bh_quantity_value(bh_dra_quantity(p->validrange->step));
        __int128 added =
            (__int128)bh_quantity_value(v) - bh_quantity_value(bh_dra_quantity(p->validrange->min));
        return step > 0 && added % step == 0;
    }
    for (size_t i = 0; i < p->n_validvalues; i++)
        if (v == bh_dra_quantity(p->validvalues[i]))
            return true;
    return p->n_validvalues == 0;
}

bool bh_dra_capacity_taken(const K8s__DeviceCapacity *cap, const K8s__Quantity *request,
                           bh_nano *ret, const K8s__Quantity **ret_text)
{
    const K8s__CapacityRequestPolicy *p = cap->requestpolicy;
    const K8s__Quantity *text = request;

    if (!request)
        text = p && p->default_ ? p->default_ : cap->value;
    *ret = request && p ? rounded(p, &text) : bh_dra_quantity(text);
    if (ret_text)
        *ret_text = text;
    return !p || allowed(p, *ret, text);
}
