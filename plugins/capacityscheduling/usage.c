/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/capacityscheduling/usage.c - what the pods of each namespace use
 *
 * Of all namespaces, quota or not: an ElasticQuota may come later. Each row's part is remembered, so that
 * only rows that changed are looked at. Pods on their way to a node are on it already, as the host has
 * them, so that Reserve and Unreserve have nothing to do.
 */
#include <stdlib.h>
#include <string.h>

#include "quota.h"

struct cs_part { /* of one row, about one resource of one namespace */
    uint32_t ns, resource;
    int64_t value;
};
struct cs_row {
    struct cs_part *part;
    uint32_t n, cap;
};

/* ---- namespaces ------------------------------------------------------------------------------ */

static uint32_t *slot_of(const struct cs_instance *in, berth_sym name)
{
    uint32_t i = name * UINT32_C(2654435761);

    for (i &= in->n_slots - 1; in->slot[i] && in->ns[in->slot[i]].name != name;)
        i = (i + 1) & (in->n_slots - 1);
    return &in->slot[i];
}

static void index_all(struct cs_instance *in)
{
    memset(in->slot, 0, in->n_slots * sizeof *in->slot);
    for (uint32_t i = 1; i < in->n_ns; i++)
        *slot_of(in, in->ns[i].name) = i;
}

static int grow(struct cs_instance *in)
{
    const uint32_t cap = in->cap_ns ? 2 * in->cap_ns : 64;
    struct cs_namespace *ns = realloc(in->ns, cap * sizeof *ns);

    if (!ns)
        return 0;
    in->ns = ns;
    uint32_t *slot = calloc((size_t)2 * cap, sizeof *slot);
    if (!slot)
        return 0;
    free(in->slot);
    in->cap_ns = cap;
    in->slot = slot;
    in->n_slots = 2 * cap;
    if (!in->n_ns)
        memset(&in->ns[in->n_ns++], 0, sizeof *ns);
    index_all(in);
    return 1;
}

/* Namespaces without pods and quota, once there is little room for others. The others get new numbers, so
 * nobody may have one: before a decision. */
static void forget(struct cs_instance *in)
{
    uint32_t n = 1, *now = in->n_ns ? calloc(in->n_ns, sizeof *now) : NULL;

    if (!now)
        return;
    for (uint32_t i = 0; i < in->n_rows; i++)
        for (uint32_t k = 0; k < in->row[i].n; k++)
            now[in->row[i].part[k].ns] = 1;
    for (uint32_t i = 1; i < in->n_ns; i++) {
        if (!now[i] && !in->ns[i].has_quota)
            continue;
        if (n != i)
            in->ns[n] = in->ns[i];
        now[i] = n++;
    }
    for (uint32_t i = 0; i < in->n_rows; i++)
        for (uint32_t k = 0; k < in->row[i].n; k++)
            in->row[i].part[k].ns = now[in->row[i].part[k].ns];
    in->n_ns = n;
    in->last_ns = 0;
    index_all(in);
    free(now);
}

uint32_t cs_namespace_named(struct cs_instance *in, struct berth_str name)
{
    berth_sym sym = cs_host->base->intern(in->home, name);

    if (in->n_ns == in->cap_ns && !grow(in))
        return 0;
    uint32_t *slot = slot_of(in, sym);
    if (!*slot) {
        memset(&in->ns[in->n_ns], 0, sizeof *in->ns);
        in->ns[in->n_ns].name = sym;
        *slot = in->n_ns++;
    }
    return *slot;
}

uint32_t cs_namespace_of(struct cs_instance *in, struct berth_call *c, const struct berth_pod *pod)
{
    struct berth_str name = cs_host->pods->namespace_(c, pod);

    /* Pods of a namespace come together. */
    if (!in->last_ns || name.n != in->last_name.n || memcmp(name.p, in->last_name.p, name.n) != 0) {
        in->last_ns = cs_namespace_named(in, name);
        in->last_name = cs_host->base->text(in->home, in->ns[in->last_ns].name);
    }
    return in->last_ns;
}

/* ---- requests -------------------------------------------------------------------------------- */

uint32_t cs_resource(struct cs_instance *in, berth_sym resource)
{
    for (uint32_t i = 0; i < in->n_resources; i++)
        if (in->resource[i] == resource)
            return i;
    if (in->n_resources < CS_RESOURCES) {
        in->resource[in->n_resources] = resource;
        return in->n_resources++;
    }
    if (!in->told_resources)
        cs_host->base->log(in->home, BERTH_LOG_WARNING,
                           BERTH_STR("more than 64 resources: quotas of the others do not count"));
    in->told_resources = 1;
    return CS_RESOURCES;
}

/* Of one resource; -1: the pod does not name it. Sidecars count as init containers do. */
static int64_t request_of(struct berth_call *c, const struct berth_pod *pod, berth_sym resource)
{
    const struct berth_host_pods *h = cs_host->pods;
    int64_t sum = -1, init = -1;

    for (uint32_t i = h->n_containers(c, pod); i-- > 0;) {
        int64_t v = h->container_request(c, pod, i, resource);
        if (v < 0)
            continue;
        if (h->container_kind(c, pod, i) == BERTH_CONTAINER)
            sum = cs_sum(sum < 0 ? 0 : sum, v);
        else
            init = v > init ? v : init;
    }
    int64_t overhead = h->overhead(c, pod, resource), v = init > sum ? init : sum;
    return overhead > 0 ? cs_sum(v < 0 ? 0 : v, overhead) : v;
}

/* The k-th resource that it may name: what it requests, and which of the amounts that is. */
static int64_t request_at(struct cs_instance *in, struct berth_call *c, const struct berth_pod *pod,
                          uint32_t k, uint32_t *ret)
{
    berth_sym resource =
        k < CS_ALWAYS ? in->resource[k] : cs_host->pods->extended_at(c, pod, k - CS_ALWAYS);

    *ret = k < CS_ALWAYS ? k : cs_resource(in, resource);
    return *ret < CS_RESOURCES ? request_of(c, pod, resource) : -1;
}

void cs_request(struct cs_instance *in, struct berth_call *c, const struct berth_pod *pod,
                struct cs_amounts *ret)
{
    memset(ret, 0, sizeof *ret);
    for (uint32_t n = CS_ALWAYS + cs_host->pods->n_extended(c, pod), k = 0, i; k < n; k++) {
        int64_t v = request_at(in, c, pod, k, &i);
        if (v < 0)
            continue;
        ret->v[i] = v;
        ret->named |= UINT64_C(1) << i;
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void use_one(struct cs_instance *in, uint32_t ns, uint32_t resource, int64_t v)
{
    in->ns[ns].used[resource] += (uint64_t)v;
    if (in->ns[ns].has_quota)
        in->total_used[resource] += (uint64_t)v;
}

void cs_use(struct cs_instance *in, uint32_t ns, const struct cs_amounts *a, int by)
{
    for (uint32_t i = 0; i < in->n_resources; i++)
        if (a->named >> i & 1)
            use_one(in, ns, i, by * a->v[i]);
}

/* Adds to the row's part; the last entries are the likeliest: pods of a namespace come together. */
static int add_part(struct cs_row *r, uint32_t ns, uint32_t resource, int64_t v)
{
    for (uint32_t i = r->n; i-- > 0;)
        if (r->part[i].ns == ns && r->part[i].resource == resource) {
            r->part[i].value = cs_sum(r->part[i].value, v);
            return 1;
        }
    if (r->n == r->cap) {
        uint32_t cap = r->cap ? 2 * r->cap : 8;
        struct cs_part *more = realloc(r->part, cap * sizeof *more);
        if (!more)
            return 0;
        r->part = more;
        r->cap = cap;
    }
    r->part[r->n++] = (struct cs_part){ns, resource, v};
    return 1;
}

static int add_pod(struct cs_instance *in, struct berth_call *c, const struct berth_pod *pod,
                   struct cs_row *r)
{
    uint32_t ns = cs_namespace_of(in, c, pod);

    for (uint32_t n = CS_ALWAYS + cs_host->pods->n_extended(c, pod), k = 0, i; ns && k < n; k++) {
        int64_t v = request_at(in, c, pod, k, &i);
        if (v > 0 && !add_part(r, ns, i, v))
            return 0;
    }
    return ns != 0;
}

static int look_at_row(struct cs_instance *in, struct berth_call *c, uint32_t row)
{
    const struct berth_host_nodes *h = cs_host->nodes;
    const struct berth_node *node = cs_host->columns->node(c, row);
    struct cs_row *r = &in->row[row];

    for (uint32_t i = 0; i < r->n; i++)
        use_one(in, r->part[i].ns, r->part[i].resource, -r->part[i].value);
    r->n = 0;
    for (uint32_t n = node ? h->n_pods(c, node) : 0, i = 0; i < n; i++) {
        const struct berth_pod *pod = h->pod_at(c, node, i);
        if (!add_pod(in, c, pod, r)) {
            r->n = 0; /* none of it is in the sums */
            return 0;
        }
    }
    for (uint32_t i = 0; i < r->n; i++)
        use_one(in, r->part[i].ns, r->part[i].resource, r->part[i].value);
    return 1;
}

static int room_for(struct cs_instance *in, uint32_t n_rows)
{
    if (n_rows <= in->n_rows)
        return 1;
    struct cs_row *more = realloc(in->row, n_rows * sizeof *more);
    if (!more)
        return 0;
    memset(more + in->n_rows, 0, (n_rows - in->n_rows) * sizeof *more);
    in->row = more;
    in->n_rows = n_rows;
    return 1;
}

int cs_current(struct cs_instance *in, struct berth_call *c)
{
    uint32_t rows[256], n;

    if (!room_for(in, cs_host->columns->n_rows(c)))
        return 0;
    if (4 * (uint64_t)in->n_ns > 3 * (uint64_t)in->cap_ns) {
        forget(in);
        if (2 * (uint64_t)in->n_ns > in->cap_ns) /* so that it is not soon again */
            (void)grow(in);
    }
    do {
        n = cs_host->columns->changed(c, &in->seen, rows, 256);
        int all = n == UINT32_MAX;
        for (uint32_t k = 0; k < (all ? in->n_rows : n); k++)
            if (!look_at_row(in, c, all ? k : rows[k])) {
                in->seen = 0; /* from the beginning next time */
                return 0;
            }
    } while (n == 256);
    return cs_read_quotas(in, c);
}

void cs_usage_fini(struct cs_instance *in)
{
    for (uint32_t i = 0; i < in->n_rows; i++)
        free(in->row[i].part);
    free(in->row);
    free(in->ns);
    free(in->slot);
}
