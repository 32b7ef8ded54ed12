/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/topology.c - what objects NodeResourceTopology say
 *
 * Upstream: pkg/noderesourcetopology/nodeconfig/topologymanager.go, pluginhelpers.go. Where upstream asks
 * the API server for each node of each pod, this looks at what the watcher has: what an object says is kept
 * by its resourceVersion.
 */
#include <stdlib.h>
#include <string.h>

#include "nrt.h"

#define TOPOLOGIES      0u /* index in kinds */
#define AMOUNTS_MAX     256u
#define SEEN_MAX        65536u
#define MAX_ZONES_LIMIT 1024

static const struct berth_value *get(const struct berth_value *v, const char *name)
{
    return nrt_host->values->get(v, (struct berth_str){name, strlen(name)});
}

/* ---- the kubelet's configuration ------------------------------------------------------------- */

/* topologyPolicies, which the attributes replace. */
static void read_policies(struct nrt_topology *t, const struct berth_value *list)
{
    static const char *const single[] = {"SingleNUMANodeContainerLevel", "SingleNUMANodePodLevel"};
    static const char *const other[] = {"BestEffortContainerLevel", "BestEffortPodLevel",
                                        "RestrictedContainerLevel", "RestrictedPodLevel"};
    struct berth_str name = nrt_host->values->text(nrt_host->values->first(list));

    for (int i = 0; i < 2; i++)
        if (nrt_is(name, single[i]))
            t->single = 1, t->pod_scope = i;
    for (int i = 0; i < 4; i++)
        if (nrt_is(name, other[i]))
            t->pod_scope = i % 2;
}

/* As Go's Atoi; 0: it is none, or not above 1. */
static int64_t zones_of(struct berth_str s)
{
    int64_t n = 0;
    uint64_t i = s.n && s.p[0] == '+';

    if (i == s.n)
        return 0;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || n > INT64_MAX / 10 - 1)
            return 0;
        n = n * 10 + (s.p[i] - '0');
    }
    return n < 2 ? 0 : n > MAX_ZONES_LIMIT ? MAX_ZONES_LIMIT : n;
}

struct berth_str nrt_attribute(const struct berth_value *list, const char *name)
{
    const struct berth_host_values *h = nrt_host->values;

    for (const struct berth_value *a = h->first(list); a; a = h->next(a))
        if (nrt_is(h->text(get(a, "name")), name))
            return h->text(get(a, "value"));
    return (struct berth_str){NULL, 0};
}

static void read_attributes(struct nrt_topology *t, const struct berth_value *list)
{
    const struct berth_host_values *h = nrt_host->values;

    for (const struct berth_value *a = h->first(list); a; a = h->next(a)) {
        struct berth_str name = h->text(get(a, "name")), value = h->text(get(a, "value"));
        if (nrt_is(name, "topologyManagerScope")) {
            if (nrt_is(value, "pod") || nrt_is(value, "container"))
                t->pod_scope = nrt_is(value, "pod");
        } else if (nrt_is(name, "topologyManagerPolicy")) {
            if (nrt_is(value, "none") || nrt_is(value, "best-effort") ||
                nrt_is(value, "restricted") || nrt_is(value, "single-numa-node"))
                t->single = nrt_is(value, "single-numa-node");
        } else if (nrt_is(name, "topologyManagerMaxNUMANodes") && zones_of(value)) {
            t->max_zones = zones_of(value);
        }
    }
}

static void read_configuration(struct nrt_topology *t, const struct berth_value *object)
{
    t->max_zones = 8;
    read_policies(t, get(object, "topologyPolicies"));
    read_attributes(t, get(object, "attributes"));
}

int nrt_is_reconfigured(const struct nrt_topology *t, const struct berth_value *object)
{
    struct nrt_topology now = {0};

    read_configuration(&now, object);
    return now.single != t->single || now.pod_scope != t->pod_scope ||
           now.max_zones != t->max_zones;
}

/* ---- zones ----------------------------------------------------------------------------------- */

uint32_t nrt_zone_id(struct berth_str name)
{
    uint32_t id = 0;

    if (name.n < 6 || name.n > 7 || memcmp(name.p, "node-", 5) != 0)
        return NRT_ZONES;
    for (uint64_t i = 5; i < name.n; i++) {
        if (name.p[i] < '0' || name.p[i] > '9')
            return NRT_ZONES;
        id = id * 10 + (uint32_t)(name.p[i] - '0');
    }
    return id < NRT_ZONES ? id : NRT_ZONES;
}

static int is_numa(const struct berth_value *zone)
{
    return nrt_is(nrt_host->values->text(get(zone, "type")), "Node") &&
           nrt_zone_id(nrt_host->values->text(get(zone, "name"))) < NRT_ZONES;
}

/* Of a resource that comes twice the last amount counts. */
static void read_amounts(struct nrt_instance *in, struct nrt_zone *z,
                         const struct berth_value *list)
{
    const struct berth_host_values *h = nrt_host->values;

    for (const struct berth_value *r = h->first(list); r && z->n < AMOUNTS_MAX; r = h->next(r)) {
        berth_sym name = nrt_host->base->intern(in->home, h->text(get(r, "name")));
        int64_t value = 0;
        uint32_t i = 0;
        (void)h->quantity(get(r, "available"), name == in->cpu, &value);
        while (i < z->n && z->amount[i].name != name)
            i++;
        z->amount[i] = (struct nrt_amount){name, value};
        z->allocatable[i] = 0;
        (void)h->quantity(get(r, "allocatable"), name == in->cpu, &z->allocatable[i]);
        z->n += i == z->n;
    }
}

static void read_costs(struct nrt_zone *z, const struct berth_value *list)
{
    const struct berth_host_values *h = nrt_host->values;

    for (const struct berth_value *c = h->first(list); c; c = h->next(c)) {
        uint32_t id = nrt_zone_id(h->text(get(c, "name")));
        if (id < NRT_ZONES && h->integer(get(c, "value"), &z->cost[id]))
            z->known[id] = 1;
    }
}

/* NULL: no memory. One block. */
static struct nrt_topology *read_topology(struct nrt_instance *in, const struct berth_value *object)
{
    const struct berth_host_values *h = nrt_host->values;
    const struct berth_value *zones = get(object, "zones");
    uint64_t n = 0, amounts = 0;

    for (const struct berth_value *z = h->first(zones); z && n < NRT_ZONES; z = h->next(z))
        if (is_numa(z)) {
            uint64_t k = h->count(get(z, "resources"));
            amounts += k < AMOUNTS_MAX ? k : AMOUNTS_MAX;
            n++;
        }
    struct nrt_topology *t = calloc(1, sizeof *t + n * sizeof t->zone[0] +
                                           amounts * (sizeof(struct nrt_amount) + sizeof(int64_t)));
    if (!t)
        return NULL;
    read_configuration(t, object);
    struct nrt_amount *free_amount = (struct nrt_amount *)(void *)&t->zone[n];
    int64_t *allocatable = (int64_t *)(void *)(free_amount + amounts);
    for (const struct berth_value *z = h->first(zones); z && t->n < n; z = h->next(z)) {
        if (!is_numa(z))
            continue;
        struct nrt_zone *to = &t->zone[t->n++];
        to->id = nrt_zone_id(h->text(get(z, "name")));
        to->amount = free_amount;
        to->allocatable = allocatable;
        read_amounts(in, to, get(z, "resources"));
        free_amount += to->n;
        allocatable += to->n;
        read_costs(to, get(z, "costs"));
    }
    return t;
}

int64_t nrt_allocatable(const struct nrt_topology *t, uint32_t i, berth_sym resource)
{
    for (uint32_t k = 0; k < t->zone[i].n; k++)
        if (t->zone[i].amount[k].name == resource)
            return t->zone[i].allocatable[k];
    return 0;
}

/* ---- kept ------------------------------------------------------------------------------------ */

static struct nrt_seen *place(const struct nrt_instance *in, berth_sym node)
{
    uint64_t mask = in->cap_seen - 1, i = (node * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

    for (; in->seen[i & mask].node && in->seen[i & mask].node != node; i++)
        ;
    return &in->seen[i & mask];
}

static void free_seen(struct nrt_seen *s)
{
    free(s->topology);
    nrt_free_held(s);
    nrt_forget_placement(s);
}

void nrt_topology_fini(struct nrt_instance *in)
{
    for (uint64_t i = 0; i < in->cap_seen; i++)
        free_seen(&in->seen[i]);
    free(in->seen);
    in->seen = NULL;
    in->n_seen = in->cap_seen = 0;
}

/* Twice as many places. Where objects are read anew anyway, nodes that went are forgotten once there are
 * very many. 0: no memory. */
static int grow(struct nrt_instance *in)
{
    struct nrt_instance was = *in;

    if (!in->cached && was.n_seen >= SEEN_MAX) {
        nrt_topology_fini(in);
        was = *in;
    }
    in->cap_seen = was.cap_seen ? 2 * was.cap_seen : 256;
    in->seen = calloc(in->cap_seen, sizeof *in->seen);
    if (!in->seen) {
        *in = was;
        return 0;
    }
    for (uint64_t i = 0; i < was.cap_seen; i++)
        if (was.seen[i].node)
            *place(in, was.seen[i].node) = was.seen[i];
    free(was.seen);
    return 1;
}

void nrt_forget_gone(struct nrt_instance *in, struct berth_call *c)
{
    const uint64_t there = nrt_host->nodes->count(c);
    const struct nrt_instance was = *in;

    if (in->n_seen <= 256 + 2 * there)
        return;
    in->seen = calloc(in->cap_seen, sizeof *in->seen);
    if (!in->seen) {
        in->seen = was.seen;
        return;
    }
    in->n_seen = 0;
    for (uint64_t i = 0; i < was.cap_seen; i++) {
        struct nrt_seen *s = &was.seen[i];
        if (s->node && nrt_host->nodes->find(c, s->node)) {
            *place(in, s->node) = *s;
            in->n_seen++;
        } else {
            free_seen(s);
        }
    }
    free(was.seen);
}

struct nrt_seen *nrt_known(const struct nrt_instance *in, berth_sym node)
{
    struct nrt_seen *s = in->cap_seen ? place(in, node) : NULL;

    return s && s->node ? s : NULL;
}

struct nrt_seen *nrt_entry(struct nrt_instance *in, berth_sym node)
{
    struct nrt_seen *s = nrt_known(in, node);

    if (s || (2 * in->n_seen >= in->cap_seen && !grow(in)))
        return s;
    s = place(in, node);
    s->node = node;
    in->n_seen++;
    return s;
}

const struct berth_value *nrt_object(struct nrt_instance *in, struct berth_call *c, berth_sym node)
{
    const struct berth_object *o = nrt_host->objects->find(c, TOPOLOGIES, (struct berth_str){"", 0},
                                                           nrt_host->base->text(in->home, node));

    return o ? nrt_host->objects->value(c, o) : NULL;
}

struct berth_str nrt_version(const struct berth_value *object)
{
    const struct berth_value *v =
        nrt_host->values->path(object, BERTH_STR("metadata.resourceVersion"));

    return v ? nrt_host->values->text(v) : (struct berth_str){"", 0};
}

void nrt_keep_version(char to[NRT_VERSION], struct berth_str version)
{
    memset(to, 0, NRT_VERSION);
    if (version.n < NRT_VERSION)
        memcpy(to, version.p, version.n);
}

int nrt_take(struct nrt_instance *in, struct nrt_seen *s, const struct berth_value *object)
{
    struct nrt_topology *t = read_topology(in, object);

    if (!t)
        return 0;
    free(s->topology);
    s->topology = t;
    nrt_keep_version(s->version, nrt_version(object));
    return 1;
}

const struct nrt_seen *nrt_topology(struct nrt_instance *in, struct berth_call *c, berth_sym node)
{
    struct nrt_seen *s = in->cached ? nrt_known(in, node) : NULL;

    if (in->cached)
        return s && s->topology ? s : NULL;
    const struct berth_value *v = nrt_object(in, c, node);
    if (!v || !(s = nrt_entry(in, node)))
        return NULL;
    struct berth_str version = nrt_version(v);
    if (s->topology && version.n && nrt_is(version, s->version))
        return s;
    return nrt_take(in, s, v) ? s : NULL;
}
