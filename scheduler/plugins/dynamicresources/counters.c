/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/counters.c - counters that the devices of a pool share
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating
 *           (allocator_incubating.go, checkAvailableCounters); differences: none, these defects
 *           included: what is available is remembered by pool name without the driver, and all
 *           counters of the pool are compared, not only the ones the device consumes.
 */
#include "scheduler/plugins/dynamicresources/allocator.h"

static struct bh_dra_counter *find_counter(struct bh_dra_counters *c, const char *set,
                                           const char *name)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (bh_streq(c->v[i].set, set) && bh_streq(c->v[i].name, name))
            return &c->v[i];
    return NULL;
}

static bh_nano value_of(const K8s__CounterEntry *e)
{
    return bh_dra_quantity(e->value ? e->value->value : NULL);
}

/* Adds sign times what the device consumes. Counters the pool lacks are never compared. */
static void consume(struct bh_dra_counters *c, const K8s__Device *dev, int sign, bool available)
{
    for (size_t i = 0; i < dev->n_consumescounters; i++) {
        const K8s__DeviceCounterConsumption *from = dev->consumescounters[i];
        for (size_t k = 0; k < from->n_counters; k++) {
            struct bh_dra_counter *to = find_counter(c, from->counterset, from->counters[k]->key);
            if (to)
                *(available ? &to->available : &to->consumed) += sign * value_of(from->counters[k]);
        }
    }
}

/* What the slice's allocated devices consume is not available. */
static void subtract(struct bh_dra_counters *c, const struct bh_dra *d,
                     const struct bh_dra_slice *s)
{
    for (uint32_t k = 0; bh_dra_has_devices(s) && k < s->n; k++) {
        const struct bh_dra_device *dev = &d->devices[s->first + k];
        if (d->allocated[dev->id] || d->shared[dev->id])
            consume(c, dev->msg, -1, true);
    }
}

static bool is_in_view(const struct bh_dra_view *v, uint32_t slice)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (v->slices[i] == slice)
            return true;
    return false;
}

static struct bh_dra_counters *new_counters(struct bh_dra_pod *p, const struct bh_dra_view *v)
{
    const struct bh_dra *d = p->d;
    const struct bh_dra_pool *pool = v->pool;
    struct bh_dra_counters *c = bh_arena_new(p->arena, struct bh_dra_counters);
    size_t n = 0;

    for (uint32_t i = 0; i < v->n; i++)
        for (size_t k = 0; k < d->slices[v->slices[i]].spec->n_sharedcounters; k++)
            n += d->slices[v->slices[i]].spec->sharedcounters[k]->n_counters;
    *c = (struct bh_dra_counters){.v = bh_arena_new_array(p->arena, struct bh_dra_counter, n + 1)};
    for (uint32_t i = 0; i < v->n; i++) {
        const K8s__ResourceSliceSpec *s = d->slices[v->slices[i]].spec;
        for (size_t j = 0; j < s->n_sharedcounters; j++) {
            const K8s__CounterSet *set = s->sharedcounters[j];
            for (size_t k = 0; k < set->n_counters; k++)
                c->v[c->n++] = (struct bh_dra_counter){.set = set->name,
                                                       .name = set->counters[k]->key,
                                                       .available = value_of(set->counters[k])};
        }
    }
    for (uint32_t i = 0; i < v->n; i++)
        subtract(c, d, &d->slices[v->slices[i]]);
    for (uint32_t i = pool->first; v->others && i < pool->first + pool->n; i++)
        if (d->slices[i].generation == v->generation && !is_in_view(v, i))
            subtract(c, d, &d->slices[i]);
    return c;
}

/* v: of the device's pool; only asked the first time. */
static struct bh_dra_counters *counters_of(struct bh_dra_pod *p, const struct bh_dra_view *v)
{
    if (!p->counters)
        p->counters = bh_arena_new_array(p->arena, struct bh_dra_counters *, p->d->n_pools);
    struct bh_dra_counters **known = &p->counters[v->pool->namesake];
    if (!*known)
        *known = new_counters(p, v);
    struct bh_dra_counters *c = *known;
    for (uint32_t i = 0; c->attempt != p->d->attempt && i < c->n; i++)
        c->v[i].consumed = 0;
    c->attempt = p->d->attempt;
    return c;
}

bool bh_dra_counters_take(struct bh_dra_pod *p, const struct bh_dra_view *v, uint32_t device)
{
    const K8s__Device *m = p->d->devices[device].msg;

    if (!m->n_consumescounters)
        return true;
    struct bh_dra_counters *c = counters_of(p, v);
    consume(c, m, 1, false);
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->v[i].available < c->v[i].consumed) {
            consume(c, m, -1, false);
            return false;
        }
    }
    return true;
}

void bh_dra_counters_return(struct bh_dra_pod *p, const struct bh_dra_view *v, uint32_t device)
{
    const K8s__Device *m = p->d->devices[device].msg;

    if (m->n_consumescounters)
        consume(counters_of(p, v), m, -1, false);
}

/* ---- tallies ---- */

/* NULL: the pool has no such counter. */
static struct bh_dra_tally *tally_of(const struct bh_dra *d, const struct bh_dra_pool *p,
                                     const char *set, const char *name)
{
    for (uint32_t i = p->tally; i < p->tally + p->n_tallies; i++)
        if (bh_streq(d->tallies[i].set, set) && bh_streq(d->tallies[i].name, name))
            return &d->tallies[i];
    return NULL;
}

static void read_totals(struct bh_dra *d, struct bh_dra_pool *p)
{
    p->tally = d->n_tallies;
    for (uint32_t i = p->first; i < p->first + p->n; i++) {
        const K8s__ResourceSliceSpec *s = d->slices[i].spec;
        for (size_t k = 0; k < s->n_sharedcounters; k++)
            for (size_t j = 0; j < s->sharedcounters[k]->n_counters; j++) {
                const K8s__CounterEntry *e = s->sharedcounters[k]->counters[j];
                d->tallies[d->n_tallies++] = (struct bh_dra_tally){
                    .set = s->sharedcounters[k]->name, .name = e->key, .total = value_of(e)};
                d->odd_counters |= value_of(e) < 0;
            }
    }
    p->n_tallies = d->n_tallies - p->tally;
}

static void read_uses(struct bh_dra *d, const struct bh_dra_pool *p, struct bh_dra_device *dev)
{
    dev->use = d->n_uses;
    for (size_t i = 0; i < dev->msg->n_consumescounters; i++) {
        const K8s__DeviceCounterConsumption *from = dev->msg->consumescounters[i];
        for (size_t k = 0; k < from->n_counters; k++) {
            struct bh_dra_tally *t = tally_of(d, p, from->counterset, from->counters[k]->key);
            bh_nano v = value_of(from->counters[k]);
            d->odd_counters |= v < 0;
            if (t)
                d->uses[d->n_uses++] = (struct bh_dra_use){(uint32_t)(t - d->tallies), v};
        }
    }
    dev->n_uses = d->n_uses - dev->use;
}

void bh_dra_read_tallies(struct bh_dra *d)
{
    size_t n_tallies = 0, n_uses = 0;
    for (uint32_t i = 0; i < d->n_slices; i++)
        for (size_t k = 0; k < d->slices[i].spec->n_sharedcounters; k++)
            n_tallies += d->slices[i].spec->sharedcounters[k]->n_counters;
    for (uint32_t i = 0; i < d->n_devices; i++)
        for (size_t k = 0; k < d->devices[i].msg->n_consumescounters; k++)
            n_uses += d->devices[i].msg->consumescounters[k]->n_counters;
    d->tallies = bh_arena_new_array(&d->index_arena, struct bh_dra_tally, n_tallies + 1);
    d->uses = bh_arena_new_array(&d->index_arena, struct bh_dra_use, n_uses + 1);
    d->n_tallies = d->n_uses = 0;
    for (uint32_t i = 0; i < d->n_pools; i++)
        if (d->pools[i].has_counters)
            read_totals(d, &d->pools[i]);
    for (uint32_t i = 0; i < d->n_slices; i++)
        for (uint32_t k = 0; bh_dra_has_devices(&d->slices[i]) && k < d->slices[i].n; k++)
            read_uses(d, &d->pools[d->slices[i].pool], &d->devices[d->slices[i].first + k]);
}

void bh_dra_reset_tallies(struct bh_dra *d)
{
    for (uint32_t i = 0; i < d->n_tallies; i++)
        d->tallies[i].available = d->tallies[i].total;
}

void bh_dra_tally_device(struct bh_dra *d, uint32_t id, int sign)
{
    for (uint32_t i = d->first_of_id[id]; i; i = d->devices[i - 1].same_id) {
        const struct bh_dra_device *dev = &d->devices[i - 1];
        for (uint32_t k = dev->use; k < dev->use + dev->n_uses; k++)
            d->tallies[d->uses[k].tally].available += sign * d->uses[k].v;
    }
}

static struct bh_dra_pool *pool_of(const struct bh_dra *d, uint32_t device)
{
    return &d->pools[d->slices[d->devices[device].slice].pool];
}

static void consume_tallies(struct bh_dra *d, uint32_t device, int sign)
{
    const struct bh_dra_device *dev = &d->devices[device];

    for (uint32_t k = dev->use; k < dev->use + dev->n_uses; k++)
        d->tallies[d->uses[k].tally].consumed += sign * d->uses[k].v;
}

bool bh_dra_tallies_take(struct bh_dra *d, uint32_t device)
{
    struct bh_dra_pool *p = pool_of(d, device);
    struct bh_dra_tally *t = &d->tallies[p->tally];
    bool enough = true;

    for (uint32_t i = 0; p->attempt != d->attempt && i < p->n_tallies; i++)
        t[i].consumed = 0;
    p->attempt = d->attempt;
    consume_tallies(d, device, 1);
    for (uint32_t i = 0; i < p->n_tallies && enough; i++)
        enough = t[i].available >= t[i].consumed;
    if (!enough)
        consume_tallies(d, device, -1);
    return enough;
}

void bh_dra_tallies_return(struct bh_dra *d, uint32_t device)
{
    consume_tallies(d, device, -1);
}

bool bh_dra_tallies_suffice(const struct bh_dra *d, uint32_t device)
{
    const struct bh_dra_device *dev = &d->devices[device];
    const struct bh_dra_pool *p = pool_of(d, device);
    bool enough = true;

    for (uint32_t i = p->tally; i < p->tally + p->n_tallies && enough; i++) {
        bh_nano sum = 0;
        for (uint32_t k = dev->use; k < dev->use + dev->n_uses; k++)
            sum += d->uses[k].tally == i ? d->uses[k].v : 0;
        enough = d->tallies[i].available >= sum;
    }
    return enough;
}
