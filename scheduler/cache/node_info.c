/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/cache/node_info.c - sums over the pods of one node
 *
 * Upstream: pkg/scheduler/framework/types.go (NodeInfo.AddPodInfo, RemovePod, SnapshotNode).
 */
#include "scheduler/cache/node_info.h"

/* Room for one more element: of the pool for the cache's infos, of the arena for forks. */
static void *grow(struct bh_node_info *ni, void *p, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return p;
    uint32_t c = *cap ? *cap * 2 : 4;
    void *q = ni->arena ? bh_arena_alloc(ni->arena, (size_t)c * size)
                        : bh_pool_alloc(ni->pool, (size_t)c * size);
    if (n)
        memcpy(q, p, (size_t)n * size);
    if (!ni->arena)
        bh_pool_free(ni->pool, p, (size_t)*cap * size);
    *cap = c;
    return q;
}

void bh_node_info_forget_images(struct bh_node_info *ni)
{
    bh_pool_free(ni->pool, ni->images, ni->cap_images * sizeof *ni->images);
    ni->images = NULL;
    ni->n_images = ni->cap_images = 0;
    ni->images_seen = 0;
}

void bh_node_info_fini(struct bh_node_info *ni)
{
    bh_assert(!ni->arena);
    bh_pool_free(ni->pool, ni->pods, ni->cap_pods * sizeof *ni->pods);
    bh_pool_free(ni->pool, ni->scalars, ni->cap_scalars * sizeof *ni->scalars);
    bh_pool_free(ni->pool, ni->ports, ni->cap_ports * sizeof *ni->ports);
    bh_node_info_forget_images(ni);
    memset(ni, 0, sizeof *ni);
}

/* Index of name in a list sorted by the names that its elements begin with, or where it belongs. */
static inline uint32_t place_of(const void *v, uint32_t n, size_t size, bh_sym name)
{
    uint32_t lo = 0, hi = n;

    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (*(const bh_sym *)(const void *)((const char *)v + mid * size) < name)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static uint32_t scalar_at(const struct bh_node_info *ni, bh_sym name)
{
    _Static_assert(offsetof(struct bh_scalar_sum, name) == 0 &&
                       offsetof(struct bh_res, name) == 0 &&
                       offsetof(struct bh_image_state, name) == 0,
                   "lists are searched by what their elements begin with");
    return place_of(ni->scalars, ni->n_scalars, sizeof *ni->scalars, name);
}

static void add_scalar(struct bh_node_info *ni, bh_sym name, bh_sum v)
{
    uint32_t i = scalar_at(ni, name);
    if (i == ni->n_scalars || ni->scalars[i].name != name) {
        ni->scalars = grow(ni, ni->scalars, ni->n_scalars, &ni->cap_scalars, sizeof *ni->scalars);
        memmove(ni->scalars + i + 1, ni->scalars + i,
                (size_t)(ni->n_scalars - i) * sizeof *ni->scalars);
        ni->scalars[i] = (struct bh_scalar_sum){.name = name};
        ni->n_scalars++;
    }
    ni->scalars[i].used += v;
}

static void add_requests(struct bh_node_info *ni, const struct bh_shape_rec *s, int sign)
{
    const struct bh_res *r = bh_rec_at(s, s->used.scalars, struct bh_res);

    ni->used_cpu_milli += sign * (bh_sum)s->used.cpu_milli;
    ni->used_memory_bytes += sign * (bh_sum)s->used.memory_bytes;
    ni->used_ephemeral_bytes += sign * (bh_sum)s->used.ephemeral_bytes;
    ni->nonzero_cpu_milli += sign * (bh_sum)s->nonzero_cpu_milli;
    ni->nonzero_memory_bytes += sign * (bh_sum)s->nonzero_memory_bytes;
    for (uint32_t i = 0; i < s->used.scalars.n; i++)
        add_scalar(ni, r[i].name, sign * (bh_sum)r[i].value);
}

static void set_port(struct bh_node_info *ni, const struct bh_host_port *p, bool used)
{
    uint32_t i = 0;

    while (i < ni->n_ports && (ni->ports[i].ip != p->ip || ni->ports[i].protocol != p->protocol ||
                               ni->ports[i].port != p->port))
        i++;
    if (used && i == ni->n_ports) {
        ni->ports = grow(ni, ni->ports, ni->n_ports, &ni->cap_ports, sizeof *ni->ports);
        ni->ports[ni->n_ports++] = *p;
    } else if (!used && i < ni->n_ports) {
        ni->ports[i] = ni->ports[--ni->n_ports];
    }
}

static void apply(struct bh_node_info *ni, const struct bh_shape_rec *s, bool add)
{
    const struct bh_host_port *p = bh_rec_at(s, s->host_ports, struct bh_host_port);

    add_requests(ni, s, add ? 1 : -1);
    for (uint32_t i = 0; i < s->host_ports.n; i++)
        set_port(ni, &p[i], add);
    if (s->flags & BH_SHAPE_USES_POD_AFFINITY)
        ni->n_affinity_pods += add ? 1u : -1u;
}

static uint32_t is_terminating(const struct bh_pod_info *pod)
{
    return pod->rec->flags & BH_POD_TERMINATING ? 1 : 0;
}

void bh_node_info_add_pod(struct bh_node_info *ni, struct bh_pod_info *pod)
{
    ni->pods = grow(ni, ni->pods, ni->n_pods, &ni->cap_pods, sizeof *ni->pods);
    if (!ni->arena)
        pod->slot = ni->n_pods;
    ni->pods[ni->n_pods++] = pod;
    ni->n_terminating += is_terminating(pod);
    apply(ni, pod->shape, true);
}

void bh_node_info_remove_pod(struct bh_node_info *ni, struct bh_pod_info *pod)
{
    uint32_t i = pod->slot;

    if (ni->arena) /* a fork has its own order */
        for (i = 0; i < ni->n_pods && ni->pods[i] != pod; i++)
            ;
    bh_assert(i < ni->n_pods && ni->pods[i] == pod);
    ni->pods[i] = ni->pods[--ni->n_pods];
    if (!ni->arena)
        ni->pods[i]->slot = i;
    ni->n_terminating -= is_terminating(pod);
    apply(ni, pod->shape, false);
}

void bh_node_info_leave_out_pod(struct bh_node_info *ni, struct bh_pod_info *pod)
{
    bh_assert(!ni->arena && pod->slot < ni->n_pods && ni->pods[pod->slot] == pod);
    ni->n_pods--;
    for (uint32_t i = pod->slot; i < ni->n_pods; i++) {
        ni->pods[i] = ni->pods[i + 1];
        ni->pods[i]->slot = i;
    }
    ni->n_terminating -= is_terminating(pod);
    apply(ni, pod->shape, false);
    ni->n_ports = 0;
    for (uint32_t i = 0; i < ni->n_pods; i++) {
        const struct bh_shape_rec *s = ni->pods[i]->shape;
        const struct bh_host_port *p = bh_rec_at(s, s->host_ports, struct bh_host_port);
        for (uint32_t k = 0; k < s->host_ports.n; k++)
            set_port(ni, &p[k], true);
    }
}

void bh_node_info_reorder(struct bh_node_info *ni, struct bh_pod_info *const *pods)
{
    for (uint32_t i = 0; i < ni->n_pods; i++) {
        ni->pods[i] = pods[i];
        ni->pods[i]->slot = i;
    }
}

static void *dup(struct bh_arena *a, const void *p, size_t n)
{
    return n ? bh_arena_memdup(a, p, n) : NULL;
}

struct bh_node_info *bh_node_info_sketch(const struct bh_node_info *ni, struct bh_arena *a)
{
    struct bh_node_info *f = bh_arena_memdup(a, ni, sizeof *ni);

    f->arena = a;
    f->pods = NULL;
    f->ports = NULL;
    f->cap_pods = f->n_ports = f->cap_ports = 0;
    f->scalars = dup(a, ni->scalars, ni->n_scalars * sizeof *ni->scalars);
    f->cap_scalars = ni->n_scalars;
    return f;
}

struct bh_node_info *bh_node_info_fork(const struct bh_node_info *ni, struct bh_arena *a)
{
    struct bh_node_info *f = bh_node_info_sketch(ni, a);

    f->pods = dup(a, ni->pods, ni->n_pods * sizeof *ni->pods);
    f->cap_pods = ni->n_pods;
    f->ports = dup(a, ni->ports, ni->n_ports * sizeof *ni->ports);
    f->n_ports = f->cap_ports = ni->n_ports;
    return f;
}

void bh_node_info_sketch_pod(struct bh_node_info *sketch, const struct bh_shape_rec *s, bool add)
{
    sketch->n_pods += add ? 1u : -1u;
    add_requests(sketch, s, add ? 1 : -1);
}

bh_sum bh_node_info_used_scalar(const struct bh_node_info *ni, bh_sym name)
{
    uint32_t i = scalar_at(ni, name);
    return i < ni->n_scalars && ni->scalars[i].name == name ? ni->scalars[i].used : 0;
}

static int64_t value_of(const struct bh_res *r, uint32_t n, bh_sym name, bool *ret_present)
{
    uint32_t i = place_of(r, n, sizeof *r, name);
    bool present = i < n && r[i].name == name;

    if (ret_present)
        *ret_present = present;
    return present ? r[i].value : 0;
}

int64_t bh_node_rec_scalar(const struct bh_node_rec *n, bh_sym name, bool *ret_present)
{
    return value_of(bh_rec_at(n, n->scalars, struct bh_res), n->scalars.n, name, ret_present);
}

int64_t bh_requests_scalar(const void *rec, const struct bh_requests *q, bh_sym name,
                           bool *ret_present)
{
    return value_of(bh_rec_at(rec, q->scalars, struct bh_res), q->scalars.n, name, ret_present);
}

const struct bh_image_state *bh_node_info_image(const struct bh_node_info *ni, bh_sym name)
{
    uint32_t i = place_of(ni->images, ni->n_images, sizeof *ni->images, name);

    return i < ni->n_images && ni->images[i].name == name ? &ni->images[i] : NULL;
}

bool bh_ports_conflict(const struct bh_host_port *used, uint32_t n_used,
                       const struct bh_host_port *want, uint32_t n_want, bh_sym any_ip)
{
    for (uint32_t w = 0; w < n_want; w++) {
        for (uint32_t u = 0; u < n_used; u++) {
            if (used[u].port != want[w].port || used[u].protocol != want[w].protocol)
                continue;
            if (want[w].ip == any_ip || used[u].ip == any_ip || used[u].ip == want[w].ip)
                return true;
        }
    }
    return false;
}
