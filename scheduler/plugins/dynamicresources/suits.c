/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/suits.c - may a device be used for a request
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating
 *           (allocator_incubating.go, consumable_capacity.go).
 */
#include <errno.h>

#include "scheduler/plugins/dynamicresources/search.h"

static int all_match(struct bh_dra_search *s, K8s__DeviceSelector *const *sel, size_t n,
                     uint32_t device, bool *ret, size_t *ret_at)
{
    *ret = true;
    for (size_t i = 0; i < n && *ret; i++) {
        *ret_at = i;
        if (!sel[i]->cel)
            return bh_err_set(s->err, -EINVAL, "CEL expression empty (unsupported selector type?)");
        int rc = bh_dra_selector_match(s->d, sel[i]->cel->expression, device, ret, s->err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Whatever the node. */
static int is_chosen(struct bh_dra_search *s, const struct bh_dra_wanted *c,
                     const struct bh_dra_request *r, uint32_t device, bool *ret)
{
    const K8s__DeviceClassSpec *class = r->class->spec;
    size_t at = 0;
    int rc = all_match(s, class ? class->selectors : NULL, class ? class->n_selectors : 0, device,
                       ret, &at);

    if (rc < 0)
        return bh_err_prefix(s->err, rc, "class %s: selector #%zu", r->class_name, at);
    if (!*ret)
        return 0;
    rc = all_match(s, r->selectors, r->n_selectors, device, ret, &at);
    if (rc < 0)
        return bh_err_prefix(s->err, rc, "claim %s/%s: selector #%zu", c->in->ns, c->in->name, at);
    return 0;
}

int bh_dra_selectable(struct bh_dra_search *s, const struct bh_dra_wanted *c,
                      const struct bh_dra_request *r, uint32_t device, bool *ret)
{
    const struct bh_dra_device *dev = bh_dra_device(s, device);

    *ret = bh_dra_is_chosen(r, device);
    if (!*ret) {
        int rc = is_chosen(s, c, r, device, ret);
        if (rc < 0)
            return rc;
        if (!*ret)
            bh_dra_close(r, device);
        else if (r->wish)
            r->wish->chosen[device / 64] |= (uint64_t)1 << device % 64;
    }
    if (*ret && s->d->slices[dev->slice].per_device) {
        if (dev->where.error)
            return bh_err_set(s->err, -EINVAL, "%s",
                              bh_dra_where_error(s->a, &dev->where, dev->msg->nodeselector));
        *ret = bh_dra_matches_node(s->d, &dev->where, s->node);
    }
    return 0;
}

/* What results of this attempt already take of a shared device's capacity. */
static bh_nano being_taken(const struct bh_dra_search *s, uint32_t id,
                           const K8s__DeviceCapacityEntry *cap)
{
    bh_nano sum = 0, v;

    for (uint32_t c = 0; c < s->n_claims; c++)
        for (uint32_t i = 0; i < s->out[c].n; i++) {
            const struct bh_dra_result *r = &s->out[c].v[i];
            const struct bh_dra_request *by =
                &s->claims[c].slots[r->request].alt[BH_MAX(r->sub, 0)];
            if (bh_dra_device(s, r->device)->id != id)
                continue;
            (void)bh_dra_capacity_taken(cap->value, bh_dra_requested(by->capacity, cap->key), &v,
                                        NULL);
            sum += v;
        }
    return sum;
}

bool bh_dra_has_capacity(const struct bh_dra_search *s, const struct bh_dra_request *r,
                         uint32_t device, bool alone)
{
    const struct bh_dra_device *dev = bh_dra_device(s, device);
    const K8s__Device *m = dev->msg;
    bh_nano v;

    if (!r->capacity && dev->flags & BH_DRA_PLAIN_CAPACITY && !s->d->consumed_any[dev->id])
        return true;
    if (!bh_dra_capacity_known(r->capacity, m))
        return false;
    for (size_t i = 0; i < m->n_capacity; i++) {
        const K8s__DeviceCapacityEntry *cap = m->capacity[i];
        if (!cap->value)
            continue;
        if (!bh_dra_capacity_taken(cap->value, bh_dra_requested(r->capacity, cap->key), &v, NULL))
            return false;
        v += bh_dra_amount_taken(s->d, dev->id, cap->key);
        if (dev->flags & BH_DRA_SHARED && !alone)
            v += being_taken(s, dev->id, cap);
        if (v > bh_dra_quantity(cap->value->value))
            return false;
    }
    return true;
}

bool bh_dra_nothing_taken(const struct bh_dra_search *s, const struct bh_dra_device *dev)
{
    for (size_t i = 0; i < dev->msg->n_capacity; i++)
        if (dev->msg->capacity[i]->value && being_taken(s, dev->id, dev->msg->capacity[i]))
            return false;
    return true;
}

static bool tolerates(const K8s__DeviceToleration *t, const K8s__DeviceTaint *taint)
{
    if ((*t->effect && !bh_streq(t->effect, taint->effect)) ||
        (*t->key && !bh_streq(t->key, taint->key)))
        return false;
    if (bh_streq(t->operator_, "Exists"))
        return true;
    return (!*t->operator_ || bh_streq(t->operator_, "Equal")) && bh_streq(t->value, taint->value);
}

bool bh_dra_tolerates(const struct bh_dra_request *r, const K8s__Device *dev)
{
    for (size_t i = 0; i < dev->n_taints; i++) {
        const K8s__DeviceTaint *taint = dev->taints[i];
        size_t k = 0;
        if (!bh_streq(taint->effect, "NoSchedule") && !bh_streq(taint->effect, "NoExecute"))
            continue;
        while (k < r->n_tolerations && !tolerates(r->tolerations[k], taint))
            k++;
        if (k == r->n_tolerations)
            return false;
    }
    return true;
}
