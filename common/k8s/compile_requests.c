/* SPDX-License-Identifier: Apache-2.0
 *
 * common/k8s/compile_requests.c - what a pod asks for: four vectors from one object
 *
 * Every container's lists are read once; the vectors differ in which of spec and status they look
 * at, whether pod-level requests count, and what a container without a request is taken for. Sums
 * and maxima are exact, each vector is rounded once at the end.
 * Upstream: component-helpers/resource/helpers.go (PodRequests), pkg/scheduler/framework/types.go
 * (PodInfo.CalculateResource), plugins/noderesources/resource_allocation.go.
 */
#include <errno.h>

#include "common/k8s/compile_priv.h"

#define MAX_SCALARS    256 /* distinct names in one list: look-up is linear */
#define DEFAULT_CPU    ((bh_nano)100 * 1000000)
#define DEFAULT_MEMORY ((bh_nano)(200 << 20) * 1000000000)

struct bh_container_status {
    const K8s__ContainerStatus *st;
    size_t order;
};
struct how {
    bool status, pod_level, default_cpu, default_memory;
};

static bh_nano add_sat(bh_nano a, bh_nano b)
{
    bh_nano v = a + b; /* both within +-2^126 */
    return v > BH_NANO_MAX ? BH_NANO_MAX : v < -BH_NANO_MAX ? -BH_NANO_MAX : v;
}

static struct bh_amount *find_scalar(const struct bh_amounts *x, bh_sym name)
{
    for (uint32_t i = 0; i < x->n; i++)
        if (x->scalars[i].name == name)
            return &x->scalars[i];
    return NULL;
}

static void add_scalar(struct bh_compiler *c, struct bh_amounts *x, struct bh_amount v)
{
    if (x->n == x->cap) {
        uint32_t cap = x->cap ? x->cap * 2 : 4;
        size_t size = sizeof(v);
        struct bh_amount *more =
            cap <= MAX_SCALARS ? bh_arena_more(c->a, x->scalars, x->n * size, cap * size) : NULL;
        if (!more) {
            c->rc = bh_err_set(c->err, -E2BIG, "more than %d resource names", MAX_SCALARS);
            return;
        }
        x->scalars = more;
        x->cap = cap;
    }
    x->scalars[x->n++] = v;
}

static const char *const std_names[BH_STD_RESOURCES] = {
    [BH_CPU] = "cpu", [BH_MEMORY] = "memory", [BH_EPHEMERAL] = "ephemeral-storage"};

/* BH_STD_RESOURCES: none of them. */
static unsigned std_of(const char *name)
{
    unsigned i = 0;

    while (i < BH_STD_RESOURCES && (*name != *std_names[i] || !bh_streq(name, std_names[i])))
        i++;
    return i;
}

void bh_amounts_read(struct bh_compiler *c, struct bh_amounts *out, K8s__QuantityEntry *const *list,
                     size_t n, const char *path)
{
    for (size_t i = 0; i < n && !c->rc; i++) {
        const char *name = list[i]->key;
        const char *text = list[i]->value && list[i]->value->string ? list[i]->value->string : "0";
        const unsigned std = std_of(name);
        bh_nano v;

        if (std == BH_STD_RESOURCES && !bh_resource_is_scalar(name))
            continue;
        if (bh_quantity_parse(text, strlen(text), &v) != 0) {
            c->rc = bh_err_set(c->err, -EINVAL, "%s[%s]: quantity \"%.32s\" does not parse", path,
                               name, text);
        } else if (v < 0) { /* no API server lets it through: such a pod would spoil every score */
            c->rc = bh_err_set(c->err, -EINVAL, "%s[%s]: %.32s: must be greater than or equal to 0",
                               path, name, text);
        } else if (std < BH_STD_RESOURCES) {
            out->std[std] = v;
            out->has[std] = true;
        } else {
            bh_sym sym = bh_compile_sym(c, name);
            struct bh_amount *same = find_scalar(out, sym);
            bool huge = strncmp(name, "hugepages-", 10) == 0;
            if (same)
                same->v = v;
            else
                add_scalar(c, out, (struct bh_amount){sym, huge, v});
            if (c->rc)
                bh_err_prefix(c->err, c->rc, "%s", path);
        }
    }
}

static void copy(struct bh_compiler *c, struct bh_amounts *out, const struct bh_amounts *x)
{
    *out = *x;
    out->cap = x->n;
    out->scalars = x->n ? bh_arena_memdup(c->a, x->scalars, x->n * sizeof(*x->scalars)) : NULL;
    if (x->n && !out->scalars) {
        out->n = 0;
        c->rc = bh_compile_no_memory(c, "requests");
    }
}

/* dst[k] += src[k], or max(dst[k], src[k]); a key that only src has is taken over. */
static void merge(struct bh_compiler *c, struct bh_amounts *dst, const struct bh_amounts *src,
                  bool sum)
{
    for (int i = 0; i < BH_STD_RESOURCES; i++) {
        if (!src->has[i])
            continue;
        bh_nano v = !dst->has[i] ? src->std[i]
                    : sum        ? add_sat(dst->std[i], src->std[i])
                                 : BH_MAX(dst->std[i], src->std[i]);
        dst->std[i] = v;
        dst->has[i] = true;
    }
    for (uint32_t i = 0; i < src->n && !c->rc; i++) {
        const struct bh_amount *s = &src->scalars[i];
        struct bh_amount *d = find_scalar(dst, s->name);
        if (d)
            d->v = sum ? add_sat(d->v, s->v) : BH_MAX(d->v, s->v);
        else
            add_scalar(c, dst, *s);
    }
}

/* ---- reading the pod ---- */
static int by_container(const void *pa, const void *pb)
{
    const struct bh_container_status *a = pa, *b = pb;
    int cmp = strcmp(a->st->name, b->st->name);
    return cmp ? cmp : a->order < b->order ? -1 : 1;
}

/* Sorted, because the number of containers is the sender's choice. Upstream puts both lists into
 * one map, init containers last. */
static void read_statuses(struct bh_compiler *c, const K8s__PodStatus *st,
                          struct bh_pod_amounts *pa)
{
    size_t n_regular = st ? st->n_containerstatuses : 0;
    size_t n = n_regular + (st ? st->n_initcontainerstatuses : 0);

    pa->statuses = bh_arena_new_array(c->a, struct bh_container_status, n + 1);
    if (!pa->statuses) {
        c->rc = bh_compile_no_memory(c, "status");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const K8s__ContainerStatus *k =
            i < n_regular ? st->containerstatuses[i] : st->initcontainerstatuses[i - n_regular];
        pa->statuses[i] = (struct bh_container_status){k, i};
    }
    if (n > 1)
        qsort(pa->statuses, n, sizeof(*pa->statuses), by_container);
    pa->n_statuses = n;
}

/* The last one of that name, NULL when it has none. */
static const K8s__ContainerStatus *status_of(const struct bh_pod_amounts *pa, const char *name)
{
    size_t lo = 0, hi = pa->n_statuses;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (strcmp(pa->statuses[mid].st->name, name) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo && bh_streq(pa->statuses[lo - 1].st->name, name) ? pa->statuses[lo - 1].st : NULL;
}

static bool is_infeasible(const K8s__Pod *p)
{
    for (size_t i = 0; p->status && i < p->status->n_conditions; i++)
        if (bh_streq(p->status->conditions[i]->type, "PodResizePending"))
            return bh_streq(p->status->conditions[i]->reason, "Infeasible");
    return false;
}

/* max(spec, actual, allocated); without spec while a resize is infeasible. */
static void effective(struct bh_compiler *c, const struct bh_pod_amounts *pa,
                      const struct bh_amounts *spec, const K8s__ResourceRequirements *actual,
                      K8s__QuantityEntry *const *allocated, size_t n_allocated,
                      struct bh_amounts *out)
{
    struct bh_amounts act = {0}, alloc = {0};

    bh_amounts_read(c, &act, actual->requests, actual->n_requests, "status.resources.requests");
    bh_amounts_read(c, &alloc, allocated, n_allocated, "status.allocatedResources");
    *out = (struct bh_amounts){0};
    if (!pa->infeasible)
        copy(c, out, spec);
    merge(c, out, &act, false);
    merge(c, out, &alloc, false);
}

static void read_resources(struct bh_compiler *c, const struct bh_pod_amounts *pa,
                           struct bh_amounts *out, const K8s__ResourceRequirements *r, bool of_pod)
{
    const size_t from = of_pod ? 0 : strlen("spec.");

    if (pa->limits)
        bh_amounts_read(c, out, r->limits, r->n_limits, &"spec.resources.limits"[from]);
    else
        bh_amounts_read(c, out, r->requests, r->n_requests, &"spec.resources.requests"[from]);
}

static void read_container(struct bh_compiler *c, struct bh_pod_amounts *pa, const K8s__Pod *p,
                           const K8s__Container *k, bool init, struct bh_container_amounts *out)
{
    const K8s__ContainerStatus *st = NULL;

    *out = (struct bh_container_amounts){.init = init, .restartable = init && bh_is_sidecar(k)};
    if (k->resources)
        read_resources(c, pa, &out->spec, k->resources, false);
    if (c->rc) {
        bh_err_prefix(c->err, c->rc, "pod %s: spec.%s[%.64s]", p->metadata->name,
                      init ? "initContainers" : "containers", k->name);
        return;
    }
    if (!pa->limits && (!init || out->restartable))
        st = status_of(pa, k->name);
    if (!st || !st->resources) {
        out->effective = out->spec;
        return;
    }
    pa->has_status = true;
    effective(c, pa, &out->spec, st->resources, st->allocatedresources, st->n_allocatedresources,
              &out->effective);
    if (c->rc)
        bh_err_prefix(c->err, c->rc, "pod %s: container %.64s", p->metadata->name, k->name);
}

static void read_pod(struct bh_compiler *c, const K8s__Pod *p, bool limits,
                     struct bh_pod_amounts *pa)
{
    const K8s__PodSpec *spec = p->spec;

    *pa = (struct bh_pod_amounts){.n = spec->n_containers + spec->n_initcontainers,
                                  .infeasible = is_infeasible(p),
                                  .limits = limits};
    pa->containers = bh_arena_new_array(c->a, struct bh_container_amounts, pa->n + 1);
    if (!pa->containers) {
        c->rc = bh_compile_no_memory(c, "containers");
        return;
    }
    read_statuses(c, p->status, pa);
    for (size_t i = 0; i < pa->n && !c->rc; i++) {
        bool init = i >= spec->n_containers;
        const K8s__Container *k =
            init ? spec->initcontainers[i - spec->n_containers] : spec->containers[i];
        read_container(c, pa, p, k, init, &pa->containers[i]);
    }
    if (!c->rc) {
        const K8s__ResourceRequirements *r = p->spec->resources;
        if (r)
            read_resources(c, pa, &pa->pod_level, r, true);
        /* Pod-level requests count for cpu, memory and huge pages only. */
        struct bh_amounts *x = &pa->pod_level;
        uint32_t kept = 0;
        x->has[BH_EPHEMERAL] = false;
        for (uint32_t i = 0; i < x->n; i++)
            if (x->scalars[i].hugepages)
                x->scalars[kept++] = x->scalars[i];
        x->n = kept;
        pa->has_pod_level =
            pa->pod_level.has[BH_CPU] || pa->pod_level.has[BH_MEMORY] || pa->pod_level.n;
        if (!pa->limits && pa->has_pod_level && p->status && p->status->resources) {
            pa->has_pod_status = pa->has_status = true;
            effective(c, pa, &pa->pod_level, p->status->resources, p->status->allocatedresources,
                      p->status->n_allocatedresources, &pa->pod_effective);
        }
        bh_amounts_read(c, &pa->overhead, p->spec->overhead, p->spec->n_overhead, "spec.overhead");
        if (c->rc)
            bh_err_prefix(c->err, c->rc, "pod %s", p->metadata->name);
    }
}

/* ---- the vectors ---- */
/* Sum of the containers, or what an init container needs beside the sidecars started before. x shares
 * the scalars of its container: what is merged into takes a copy. */
static void sum_containers(struct bh_compiler *c, const struct bh_pod_amounts *pa,
                           const struct how *how, struct bh_amounts *sum)
{
    struct bh_amounts sidecars = {0}, init_max = {0};

    for (size_t i = 0; i < pa->n && !c->rc; i++) {
        const struct bh_container_amounts *k = &pa->containers[i];
        struct bh_amounts x = how->status ? k->effective : k->spec;

        if (how->default_cpu && !x.has[BH_CPU]) {
            x.std[BH_CPU] = DEFAULT_CPU;
            x.has[BH_CPU] = true;
        }
        if (how->default_memory && !x.has[BH_MEMORY]) {
            x.std[BH_MEMORY] = DEFAULT_MEMORY;
            x.has[BH_MEMORY] = true;
        }
        if (!k->init || k->restartable)
            merge(c, sum, &x, true);
        if (k->restartable) {
            merge(c, &sidecars, &x, true);
            merge(c, &init_max, &sidecars, false);
        } else if (k->init) {
            const struct bh_amounts own = x;
            copy(c, &x, &own);
            merge(c, &x, &sidecars, true);
            merge(c, &init_max, &x, false);
        }
    }
    merge(c, sum, &init_max, false);
}

/* Replaces the sums of resources that are requested for the pod as a whole. */
static void apply_pod_level(struct bh_compiler *c, const struct bh_pod_amounts *pa,
                            const struct how *how, struct bh_amounts *sum)
{
    const struct bh_amounts *from =
        how->status && pa->has_pod_status ? &pa->pod_effective : &pa->pod_level;

    for (int i = 0; i < BH_STD_RESOURCES; i++) {
        if (pa->pod_level.has[i]) {
            sum->std[i] = from->has[i] ? from->std[i] : 0;
            sum->has[i] = true;
        }
    }
    for (uint32_t i = 0; i < pa->pod_level.n && !c->rc; i++) {
        struct bh_amount v = pa->pod_level.scalars[i];
        const struct bh_amount *now = find_scalar(from, v.name);
        struct bh_amount *d = find_scalar(sum, v.name);
        v.v = now ? now->v : 0;
        if (d)
            d->v = v.v;
        else
            add_scalar(c, sum, v);
    }
}

static void pod_requests(struct bh_compiler *c, const struct bh_pod_amounts *pa, struct how how,
                         struct bh_amounts *out)
{
    *out = (struct bh_amounts){0};
    sum_containers(c, pa, &how, out);
    if (how.pod_level && pa->has_pod_level)
        apply_pod_level(c, pa, &how, out);
    merge(c, out, &pa->overhead, true);
}

struct bh_slice bh_amounts_put(struct bh_compiler *c, const struct bh_amounts *x)
{
    struct bh_slice s;
    struct bh_res *out = bh_rec_room(&c->b, x->n, sizeof(*out), &s);

    for (uint32_t i = 0; out && i < x->n; i++)
        out[i] = (struct bh_res){.name = x->scalars[i].name,
                                 .value = bh_quantity_value(x->scalars[i].v)};
    if (out)
        bh_rec_sort(out, x->n, sizeof(*out), bh_rec_by_name);
    return s;
}

struct bh_slice bh_amounts_put_all(struct bh_compiler *c, const struct bh_amounts *x)
{
    struct bh_res v[BH_STD_RESOURCES + MAX_SCALARS];
    uint32_t n = 0;

    for (unsigned i = 0; i < BH_STD_RESOURCES; i++)
        if (x->has[i])
            v[n++] = (struct bh_res){.name = bh_compile_sym(c, std_names[i]),
                                     .value = i == BH_CPU ? bh_quantity_milli_value(x->std[i])
                                                          : bh_quantity_value(x->std[i])};
    for (uint32_t i = 0; i < x->n; i++)
        v[n++] = (struct bh_res){.name = x->scalars[i].name,
                                 .value = bh_quantity_value(x->scalars[i].v)};
    bh_rec_sort(v, n, sizeof(*v), bh_rec_by_name);
    return bh_rec_put(&c->b, v, n, sizeof(*v));
}

static struct bh_requests put_vector(struct bh_compiler *c, const struct bh_amounts *x)
{
    return (struct bh_requests){.cpu_milli = bh_quantity_milli_value(x->std[BH_CPU]),
                                .memory_bytes = bh_quantity_value(x->std[BH_MEMORY]),
                                .ephemeral_bytes = bh_quantity_value(x->std[BH_EPHEMERAL]),
                                .scalars = bh_amounts_put(c, x)};
}

void bh_compile_requests(struct bh_compiler *c, const K8s__Pod *p, struct bh_pod_amounts *ret)
{
    struct bh_pod_amounts *pa = ret;
    struct bh_amounts fit, used, score, nonzero;
    struct how how = {.pod_level = true};

    read_pod(c, p, false, pa);
    if (c->rc)
        return;
    pod_requests(c, pa, how, &fit);
    used = fit;
    how.status = true;
    if (pa->has_status)
        pod_requests(c, pa, how, &used);
    how.default_cpu = !pa->has_pod_level || !used.has[BH_CPU];
    how.default_memory = !pa->has_pod_level || !used.has[BH_MEMORY];
    pod_requests(c, pa, how, &nonzero);
    score = nonzero;
    how = (struct how){.default_cpu = true, .default_memory = true};
    if (pa->has_status || pa->has_pod_level) /* else nothing tells them apart */
        pod_requests(c, pa, how, &score);
    if (c->rc)
        return;
    struct bh_requests v[3] = {put_vector(c, &fit), put_vector(c, &used), put_vector(c, &score)};
    struct bh_shape_rec *s = bh_shape_of(c);
    if (c->b.failed)
        return; /* bh_compile_end reports it */
    s->fit = v[0];
    s->used = v[1];
    s->score = v[2];
    s->nonzero_cpu_milli = bh_quantity_milli_value(nonzero.std[BH_CPU]);
    s->nonzero_memory_bytes = bh_quantity_value(nonzero.std[BH_MEMORY]);
}

/* ---- for people ---- */

int bh_pod_amounts(struct bh_arena *a, const K8s__Pod *p, bool limits, struct bh_symtab *names,
                   void (*fn)(void *arg, bh_sym name, double v), void *arg, struct bh_err *err)
{
    const struct bh_interner in = bh_symtab_interner(names);
    struct bh_compiler c = {.a = a, .in = &in, .err = err};
    const struct how how = {.pod_level = true};
    struct bh_pod_amounts pa;
    struct bh_amounts x = {0};

    read_pod(&c, p, limits, &pa);
    if (c.rc)
        return c.rc;
    if (limits) {
        sum_containers(&c, &pa, &how, &x);
        if (pa.has_pod_level)
            apply_pod_level(&c, &pa, &how, &x);
        /* A limit of nothing stays one: overhead belongs to limits that are there. */
        const struct bh_amounts *overhead = &pa.overhead;
        for (int i = 0; i < BH_STD_RESOURCES; i++)
            if (x.has[i] && x.std[i] && overhead->has[i])
                x.std[i] = add_sat(x.std[i], overhead->std[i]);
        for (uint32_t i = 0; i < overhead->n; i++) {
            struct bh_amount *d = find_scalar(&x, overhead->scalars[i].name);
            if (d && d->v)
                d->v = add_sat(d->v, overhead->scalars[i].v);
        }
    } else {
        pod_requests(&c, &pa, how, &x);
    }
    if (c.rc)
        return c.rc;
    for (int i = 0; i < BH_STD_RESOURCES; i++)
        if (x.has[i])
            fn(arg, bh_compile_sym(&c, std_names[i]), (double)x.std[i] / 1e9);
    for (uint32_t i = 0; i < x.n; i++)
        fn(arg, x.scalars[i].name, (double)x.scalars[i].v / 1e9);
    return 0;
}
