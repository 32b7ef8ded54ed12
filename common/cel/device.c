/* SPDX-License-Identifier: Apache-2.0
 *
 * common/cel/device.c - the variable `device` of one evaluation
 *
 * Attributes and capacities grouped by domain. All of them are converted before the expression
 * runs, so a version that cannot be parsed fails every selector, as upstream.
 * Upstream: k8s.io/dynamic-resource-allocation/cel/compile.go (DeviceMatches).
 */
#include "common/cel/cel_int.h"

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

/* "domain/id", or "id" in the driver's domain. A later entry of a name replaces the first. */
static void domains_put(struct domains *d, const char *driver, const char *key, struct cel_value v)
{
    const char *slash = strchr(key, '/');
    struct bh_str domain = slash ? (struct bh_str){key, (size_t)(slash - key)} : bh_str_c(driver);
    struct bh_str id = bh_str_c(slash ? slash + 1 : key);
    uint32_t at = 0, i = 0;

    while (at < d->n && (d->domain[at].key.n != domain.n ||
                         memcmp(d->domain[at].key.s, domain.p, domain.n) != 0))
        at++;
    struct cel_map *inner = &d->inner[at];
    if (at == d->n) {
        inner->entry = bh_arena_new_array(d->e->arena, struct cel_entry, d->cap);
        d->domain[d->n++] =
            (struct cel_entry){cel_str(domain.p, domain.n), {.kind = CEL_MAP, .map = inner}};
    }
    struct cel_entry *entry = (struct cel_entry *)inner->entry;
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
    else if (!attr || !attr->version)
        return bh_err_set(err, -EINVAL, "unsupported attribute value");
    else {
        struct cel_semver *v = bh_arena_new(a, struct cel_semver);
        const char *why = bh_cel_semver_parse(a, bh_str_c(attr->version), false, v);
        if (why)
            return bh_err_set(err, -EINVAL, "parse semantic version: %s", why);
        *ret = (struct cel_value){.kind = CEL_SEMVER, .v = v};
    }
    return 0;
}

int bh_cel_bind_device(struct cel_eval *e, const struct bh_cel_device *d, struct bh_err *err)
{
    const char *driver = d->driver ? d->driver : "";
    const K8s__Device *dev = d->device;
    struct domains attributes, capacities;
    struct cel_value v;

    domains_init(&attributes, e, dev->n_attributes);
    for (size_t i = 0; i < dev->n_attributes; i++) {
        const K8s__DeviceAttributeEntry *a = dev->attributes[i];
        int rc = attribute(e->arena, a->value, &v, err);
        if (rc != 0)
            return bh_err_prefix(err, rc, "attribute %s", a->key);
        domains_put(&attributes, driver, a->key, v);
    }
    domains_init(&capacities, e, dev->n_capacity);
    for (size_t i = 0; i < dev->n_capacity; i++) {
        const K8s__DeviceCapacityEntry *c = dev->capacity[i];
        const char *text =
            c->value && c->value->value && c->value->value->string ? c->value->value->string : "0";
        bh_nano *q = bh_arena_new(e->arena, bh_nano);
        if (bh_quantity_parse(text, strlen(text), q) != 0)
            return bh_err_set(err, -EINVAL, "capacity %s: unable to parse quantity", c->key);
        v = (struct cel_value){.kind = CEL_QUANTITY, .q = q};
        domains_put(&capacities, driver, c->key, v);
    }
    e->device[0] = cel_str(driver, strlen(driver));
    e->device[1] = domains_value(&attributes);
    e->device[2] = domains_value(&capacities);
    e->device[3] = cel_bool(dev->has_allowmultipleallocations && dev->allowmultipleallocations);
    return 0;
}
