/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/constraints.c - matchAttribute and distinctAttribute
 *
 * Upstream:   k8s.io/dynamic-resource-allocation/structured/internal/incubating (constraint.go);
 *             differences: none, distinctAttribute's defect included: it remembers one value a
 *             request, so of several devices of one request only the latest is compared.
 */
#include "scheduler/plugins/dynamicresources/allocator.h"

bool bh_dra_concerns(const struct bh_dra_constraint *c, const struct bh_dra_slot *slot, int32_t sub)
{
    size_t n = strlen(slot->name);

    for (size_t i = 0; i < c->spec->n_requests; i++) {
        const char *r = c->spec->requests[i];
        if (bh_streq(r, slot->name) || (sub >= 0 && strncmp(r, slot->name, n) == 0 && r[n] == '/' &&
                                        bh_streq(r + n + 1, slot->alt[sub].name)))
            return true;
    }
    return c->spec->n_requests == 0;
}

static const K8s__DeviceAttribute *find_attribute(const K8s__Device *dev, const char *name)
{
    for (size_t i = 0; i < dev->n_attributes; i++)
        if (bh_streq(dev->attributes[i]->key, name))
            return dev->attributes[i]->value;
    return NULL;
}

/* Fully qualified, or under the bare name if the domain is the driver's. */
const K8s__DeviceAttribute *bh_dra_attribute(const K8s__Device *dev, const char *driver,
                                             const char *name)
{
    const K8s__DeviceAttribute *v = find_attribute(dev, name);
    const char *slash = strchr(name, '/');

    if (v || !slash || strlen(driver) != (size_t)(slash - name) ||
        strncmp(driver, name, (size_t)(slash - name)) != 0)
        return v;
    return find_attribute(dev, slash + 1);
}

/* Versions are compared as text. */
static bool same(const K8s__DeviceAttribute *a, const K8s__DeviceAttribute *b)
{
    if (a->string)
        return b->string && bh_streq(a->string, b->string);
    if (a->has_int_)
        return b->has_int_ && a->int_ == b->int_;
    if (a->has_bool_)
        return b->has_bool_ && !a->bool_ == !b->bool_;
    return a->version && b->version && bh_streq(a->version, b->version);
}

bool bh_dra_constraint_add(struct bh_dra_constraint *c, const struct bh_dra_slot *slots,
                           uint32_t request, int32_t sub, const K8s__Device *dev,
                           const char *driver)
{
    if (!bh_dra_concerns(c, &slots[request], sub))
        return true;
    const K8s__DeviceAttribute *v = bh_dra_attribute(dev, driver, c->attribute);
    if (!v)
        return false;
    if (c->distinct) {
        for (uint32_t i = 0; c->n > 0 && i < c->n_values; i++)
            if (c->values[i] && (!(v->string || v->has_int_ || v->has_bool_ || v->version) ||
                                 same(v, c->values[i])))
                return false;
        c->values[request] = v;
    } else if (c->n == 0) {
        c->value = v;
    } else if (!same(v, c->value)) {
        return false;
    }
    c->n++;
    return true;
}

void bh_dra_constraint_remove(struct bh_dra_constraint *c, const struct bh_dra_slot *slots,
                              uint32_t request, int32_t sub)
{
    if (!bh_dra_concerns(c, &slots[request], sub))
        return;
    if (c->distinct)
        c->values[request] = NULL;
    c->n--;
}
