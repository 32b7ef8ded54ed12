/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cel/device.c - the variable `device` of one evaluation
 *
 * Attributes and capacities grouped by domain. All of them are converted before the expression
 * runs, so a version that cannot be parsed fails every selector, as upstream.
 * Upstream: k8s.io/dynamic-resource-allocation/cel/compile.go (DeviceMatches).
 */
#include "scheduler/cel/cel_int.h"

/* Domains while they are being filled; capacity is the number of names, the most there can be. */
struct domains {
    struct cel_eval *e;
    struct cel_entry *domain;
    struct cel_map *inner; /* by domain */
    uint32_t n, cap;
};

static void domains_init(struct domains *d, struct cel_eval *e, size_t n_names)
{
    *d = (struct domains){.e = e, .cap = (uint32_t)n_names};
    if (n_names == 0)
        return;
    d->domain = bh_arena_new_array(e->arena, struct cel_entry, n_names);
    d->inner = bh_arena_new_array(e->arena, struct cel_map, n_names);
}

static struct cel_entry *domain_of(struct domains *d, struct bh_str name)
{
    for (uint32_t i = 0; i < d->n; i++) {
        if (d->domain[i].key.n == name.n && memcmp(d->domain[i].key.s, name.p, name.n) == 0)
            return &d->domain[i];
    }
    d->inner[d->n].entry = bh_arena_new_array(d->e->arena, struct cel_entry, d->cap);
    d->domain[d->n].key = cel_str(name.p, name.n);
    d->domain[d->n].value = (struct cel_value){.kind = CEL_MAP, .map = &d->inner[d->n]};
    return &d->domain[d->n++];
}

/* "domain/id", or "id" in the driver's domain. A later entry of a name replaces the first. */
static void domains_put(struct domains *d, const char *driver, const char *key, struct cel_value v)
{
    const char *slash = strchr(key, '/');
    struct bh_str domain = slash ? (struct bh_str){key, (size_t)(slash - key)} : bh_str_c(driver);
    struct bh_str id = bh_str_c(slash ? slash + 1 : key);
    struct cel_map *inner = &d->inner[domain_of(d, domain) - d->domain];
    struct cel_entry *entry = (struct cel_entry *)inner->entry;
    uint32_t i = 0;

    while (i < inner->n && !(entry[i].key.n == id.n && memcmp(entry[i].key.s, id.p, id.n) == 0))
        i++;
    entry[i] = (struct cel_entry){cel_str(id.p, id.n), v};
    inner->n += i == inner->n;
}

static struct cel_value domains_value(struct domains *d)
{
    struct cel_map *m = bh_arena_new(d->e->arena, struct cel_map);
    *m = (struct cel_map){.entry = d->domain, .n = d->n, .absent_is_empty = true};
    return (struct cel_value){.kind = CEL_MAP, .map = m};
}

static int version(struct bh_arena *a, const char *text, struct cel_value *ret, struct bh_err *err)
{
    struct cel_semver *v = bh_arena_new(a, struct cel_semver);
    const char *why = bh_cel_semver_parse(a, bh_str_c(text), false, v);

    if (why)
        return bh_err_set(err, -EINVAL, "parse semantic version: %s", why);
    *ret = (struct cel_value){.kind = CEL_SEMVER, .v = v};
    return 0;
}

/* Exactly one of the scalars is set in what the API server accepts; the first counts otherwise.
 * Lists belong to a gate that is off, and off means that no selector can be evaluated on the
 * device. */
static int attribute(struct bh_arena *a, const K8s__DeviceAttribute *attr, struct cel_value *ret,
                     struct bh_err *err)
{
    if (attr && attr->has_int_)
        *ret = cel_int(attr->int_);
    else if (attr && attr->has_bool_)
        *ret = cel_bool(attr->bool_);
    else if (attr && attr->string)
        *ret = cel_str(attr->string, strlen(attr->string));
    else if (attr && attr->version)
        return version(a, attr->version, ret, err);
    else
        return bh_err_set(err, -EINVAL, "unsupported attribute value");
    return 0;
}

static int capacity(struct bh_arena *a, const K8s__DeviceCapacity *c, struct cel_value *ret,
                    struct bh_err *err)
{
    const char *text = c && c->value && c->value->string ? c->value->string : "0";
    bh_nano *q = bh_arena_new(a, bh_nano);

    if (bh_quantity_parse(text, strlen(text), q) != 0)
        return bh_err_set(err, -EINVAL, "unable to parse quantity");
    *ret = (struct cel_value){.kind = CEL_QUANTITY, .q = q};
    return 0;
}

int bh_cel_bind_device(struct cel_eval *e, const struct bh_cel_device *d, struct bh_err *err)
{
    const char *driver = d->driver ? d->driver : "";
    const K8s__Device *dev = d->device;
    struct domains attributes, capacities;
    struct cel_value v;
    int rc;

    domains_init(&attributes, e, dev->n_attributes);
    for (size_t i = 0; i < dev->n_attributes; i++) {
        const K8s__DeviceAttributeEntry *a = dev->attributes[i];
        if ((rc = attribute(e->arena, a->value, &v, err)) != 0)
            return bh_err_prefix(err, rc, "attribute %s", a->key);
        domains_put(&attributes, driver, a->key, v);
    }
    domains_init(&capacities, e, dev->n_capacity);
    for (size_t i = 0; i < dev->n_capacity; i++) {
        const K8s__DeviceCapacityEntry *c = dev->capacity[i];
        if ((rc = capacity(e->arena, c->value, &v, err)) != 0)
            return bh_err_prefix(err, rc, "capacity %s", c->key);
        domains_put(&capacities, driver, c->key, v);
    }
    e->device[0] = cel_str(driver, strlen(driver));
    e->device[1] = domains_value(&attributes);
    e->device[2] = domains_value(&capacities);
    e->device[3] = cel_bool(dev->has_allowmultipleallocations && dev->allowmultipleallocations);
    return 0;
}
