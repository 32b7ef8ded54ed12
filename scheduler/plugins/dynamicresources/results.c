/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/results.c - allocations as the API has them
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating (Allocate after the
 *           search, createNodeSelector); differences: share ids are made of what is allocated to
 *           which claim, not drawn.
 */
#include <errno.h>
#include <inttypes.h>

#include "common/k8s/codec.h"
#include "scheduler/plugins/dynamicresources/cycle.h"

struct build {
    const struct bh_dra_pod *p;
    struct bh_arena *a;
    const struct bh_dra_claim *claim;
    const struct bh_dra_allocation *al;
    uint64_t salt;
};

static const struct bh_dra_device *device_of(const struct bh_dra_pod *p,
                                             const struct bh_dra_result *r)
{
    return &p->d->devices[r->device];
}

/* Which alternative was taken; the first when nothing tells. */
static const K8s__DeviceSubRequest *chosen(const struct build *b, uint32_t request)
{
    const K8s__DeviceRequest *r = b->claim->devices->requests[request];

    for (uint32_t i = 0; i < b->al->n; i++)
        if (b->al->v[i].request == request && b->al->v[i].sub >= 0)
            return r->firstavailable[b->al->v[i].sub];
    return r->n_firstavailable ? r->firstavailable[0] : NULL;
}

static char *name_of(const struct build *b, uint32_t request, const K8s__DeviceSubRequest *sub)
{
    char *name = b->claim->devices->requests[request]->name;

    return sub ? bh_arena_printf(b->a, "%s/%s", name, sub->name) : name;
}

/* ---- one device ---- */

static void add_consumed(const struct build *b, const K8s__Device *dev,
                         const K8s__CapacityRequirements *req,
                         K8s__DeviceRequestAllocationResult *out)
{
    out->consumedcapacity = bh_arena_new_array(b->a, K8s__QuantityEntry *, dev->n_capacity + 1);
    for (size_t i = 0; i < dev->n_capacity; i++) {
        const K8s__DeviceCapacityEntry *cap = dev->capacity[i];
        const K8s__Quantity *text;
        bh_nano v;
        if (!cap->value)
            continue;
        struct bh_buf buf BH_CLEANUP(bh_buf_fini) = {0};
        K8s__QuantityEntry *e = bh_pb_new(b->a, &k8s__quantity_entry__descriptor);
        (void)bh_dra_capacity_taken(cap->value, bh_dra_requested(req, cap->key), &v, &text);
        e->key = cap->key;
        e->value = bh_pb_new(b->a, &k8s__quantity__descriptor);
        if (!text)
            bh_quantity_format(&buf, v, true);
        e->value->string = text ? text->string : bh_arena_strdup(b->a, bh_buf_str(&buf));
        out->consumedcapacity[out->n_consumedcapacity++] = e;
    }
}

static K8s__DeviceRequestAllocationResult *result_of(const struct build *b, uint32_t at)
{
    const struct bh_dra_result *r = &b->al->v[at];
    const K8s__DeviceRequest *req = b->claim->devices->requests[r->request];
    const K8s__DeviceSubRequest *sub = r->sub >= 0 ? req->firstavailable[r->sub] : NULL;
    const struct bh_dra_device *dev = device_of(b->p, r);
    const struct bh_dra_slice *s = &b->p->d->slices[dev->slice];
    K8s__DeviceRequestAllocationResult *out =
        bh_pb_new(b->a, &k8s__device_request_allocation_result__descriptor);

    out->request = name_of(b, r->request, sub);
    out->driver = bh_arena_strdup(b->a, s->driver);
    out->pool = bh_arena_strdup(b->a, s->pool_name);
    out->device = dev->msg->name;
    out->has_adminaccess = out->adminaccess = r->admin;
    out->tolerations = sub ? sub->tolerations : req->exactly->tolerations;
    out->n_tolerations = sub ? sub->n_tolerations : req->exactly->n_tolerations;
    out->bindingconditions = dev->msg->bindingconditions;
    out->n_bindingconditions = dev->msg->n_bindingconditions;
    out->bindingfailureconditions = dev->msg->bindingfailureconditions;
    out->n_bindingfailureconditions = dev->msg->n_bindingfailureconditions;
    if (dev->flags & BH_DRA_SHARED) {
        /* In the form of a random UUID: made of the claim, the device, its index and the
         * caller's salt. */
        const char *claim = bh_arena_printf(b->a, "%s/%s/%" PRIu32 "/%" PRIu32, b->claim->ns,
                                            b->claim->name, device_of(b->p, r)->id, at);
        uint64_t hi = bh_hash(claim, strlen(claim), b->salt);
        uint64_t lo = bh_hash(claim, strlen(claim), ~b->salt);
        out->shareid = bh_arena_printf(
            b->a, "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64, hi >> 32,
            hi >> 16 & 0xffff, hi & 0xfff, 0x8000 | (lo >> 48 & 0x3fff), lo & 0xffffffffffff);
        add_consumed(b, dev->msg, sub ? sub->capacity : req->exactly->capacity, out);
    }
    return out;
}

/* ---- configuration ---- */

struct configs {
    K8s__DeviceAllocationConfiguration **v;
    size_t n, cap;
};

static K8s__DeviceAllocationConfiguration *add_config(struct bh_arena *a, struct configs *l,
                                                      const char *source,
                                                      K8s__DeviceConfiguration *what)
{
    K8s__DeviceAllocationConfiguration *c =
        bh_pb_new(a, &k8s__device_allocation_configuration__descriptor);

    BH_ARENA_GROW(a, l->v, l->n, l->cap);
    c->source = bh_arena_strdup(a, source);
    c->deviceconfiguration = what;
    l->v[l->n++] = c;
    return c;
}

static const char *class_of(const struct build *b, uint32_t request)
{
    const K8s__DeviceRequest *r = b->claim->devices->requests[request];
    const K8s__DeviceSubRequest *sub = chosen(b, request);

    return sub ? sub->deviceclassname : r->exactly ? r->exactly->deviceclassname : "";
}

/* A class's configuration once, for all requests of the class. */
static void add_class(const struct build *b, struct configs *l, uint32_t request)
{
    const K8s__DeviceClaim *d = b->claim->devices;
    const char *name = class_of(b, request);
    const K8s__DeviceClass *class =
        (const void *)bh_objects_get(b->p->objects, BH_KIND_DEVICECLASS, "", name);

    for (uint32_t i = 0; i < request; i++)
        if (bh_streq(class_of(b, i), name))
            return;
    for (size_t k = 0; class && class->spec && k < class->spec->n_config; k++) {
        K8s__DeviceAllocationConfiguration *c =
            add_config(b->a, l, "FromClass", class->spec->config[k]->deviceconfiguration);
        c->requests = bh_arena_new_array(b->a, char *, d->n_requests);
        for (uint32_t i = request; i < d->n_requests; i++)
            if (bh_streq(class_of(b, i), name))
                c->requests[c->n_requests++] = name_of(b, i, chosen(b, i));
    }
}

static bool contains(const K8s__DeviceClaimConfiguration *k, const char *name)
{
    for (size_t i = 0; i < k->n_requests; i++)
        if (bh_streq(k->requests[i], name))
            return true;
    return false;
}

/* Once for all requests, or once for each request that it names. */
static void add_own(const struct build *b, struct configs *l, K8s__DeviceClaimConfiguration *k)
{
    const K8s__DeviceClaim *d = b->claim->devices;

    if (!k->n_requests)
        (void)add_config(b->a, l, "FromClaim", k->deviceconfiguration);
    for (uint32_t i = 0; k->n_requests && i < d->n_requests; i++) {
        const K8s__DeviceSubRequest *sub = chosen(b, i);
        if (!contains(k, d->requests[i]->name) && !(sub && contains(k, name_of(b, i, sub))))
            continue;
        K8s__DeviceAllocationConfiguration *c =
            add_config(b->a, l, "FromClaim", k->deviceconfiguration);
        c->requests = k->requests;
        c->n_requests = k->n_requests;
    }
}

/* ---- where the devices can be reached ---- */

/* true: only on the node itself. *ret: the selector of the device, or NULL. */
static bool is_local(const struct bh_dra_pod *p, const struct bh_dra_result *r,
                     const K8s__NodeSelector **ret)
{
    const struct bh_dra_device *dev = device_of(p, r);
    const struct bh_dra_slice *s = &p->d->slices[dev->slice];

    *ret = s->per_device ? dev->msg->nodeselector : s->spec->nodeselector;
    return (s->per_device ? dev->msg->nodename : s->spec->nodename) ||
           (dev->msg->has_bindstonode && dev->msg->bindstonode);
}

int bh_dra_check_reach(const struct bh_dra_pod *p, const struct bh_dra_claim *claim,
                       const struct bh_dra_allocation *al, struct bh_err *err)
{
    const K8s__NodeSelector *sel;

    for (uint32_t i = 0; i < al->n && !is_local(p, &al->v[i], &sel); i++)
        if (sel && sel->n_nodeselectorterms > 1)
            return bh_err_set(err, -EINVAL,
                              "create NodeSelector for claim %s: unsupported "
                              "ResourceSlice.NodeSelector with %zu terms",
                              claim->name, sel->n_nodeselectorterms);
    return 0;
}

static bool has_values(const K8s__NodeSelectorRequirement *a, const K8s__NodeSelectorRequirement *b)
{
    for (size_t i = 0; i < a->n_values; i++) {
        size_t k = 0;
        while (k < b->n_values && !bh_streq(a->values[i], b->values[k]))
            k++;
        if (k == b->n_values)
            return false;
    }
    return true;
}

static void add_new(struct bh_arena *a, K8s__NodeSelectorRequirement *const *from, size_t n,
                    K8s__NodeSelectorRequirement ***to, size_t *n_to)
{
    K8s__NodeSelectorRequirement **v =
        bh_arena_new_array(a, K8s__NodeSelectorRequirement *, *n_to + n + 1);
    size_t m = *n_to;

    if (m)
        memcpy(v, *to, m * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < m && !(bh_streq(v[k]->key, from[i]->key) &&
                          bh_streq(v[k]->operator_, from[i]->operator_) &&
                          has_values(v[k], from[i]) && has_values(from[i], v[k])))
            k++;
        if (k == m)
            v[m++] = from[i];
    }
    *to = v;
    *n_to = m;
}

static K8s__NodeSelector *one_term(struct bh_arena *a)
{
    K8s__NodeSelector *s = bh_pb_new(a, &k8s__node_selector__descriptor);

    s->nodeselectorterms = bh_arena_new_array(a, K8s__NodeSelectorTerm *, 1);
    s->nodeselectorterms[0] = bh_pb_new(a, &k8s__node_selector_term__descriptor);
    s->n_nodeselectorterms = 1;
    return s;
}

static K8s__NodeSelector *only_node(struct bh_arena *a, const char *node)
{
    K8s__NodeSelector *s = one_term(a);
    K8s__NodeSelectorTerm *t = s->nodeselectorterms[0];
    K8s__NodeSelectorRequirement *r = bh_pb_new(a, &k8s__node_selector_requirement__descriptor);

    r->key = bh_arena_strdup(a, "metadata.name");
    r->operator_ = bh_arena_strdup(a, "In");
    r->values = bh_arena_new_array(a, char *, 1);
    r->values[r->n_values++] = bh_arena_strdup(a, node);
    t->matchfields = bh_arena_new_array(a, K8s__NodeSelectorRequirement *, 1);
    t->matchfields[t->n_matchfields++] = r;
    return s;
}

/* NULL: everywhere. */
static K8s__NodeSelector *reach(const struct build *b, const char *node)
{
    K8s__NodeSelector *s = one_term(b->a);
    K8s__NodeSelectorTerm *t = s->nodeselectorterms[0];
    const K8s__NodeSelector *sel;

    for (uint32_t i = 0; i < b->al->n; i++) {
        if (is_local(b->p, &b->al->v[i], &sel))
            return only_node(b->a, node);
        if (!sel || sel->n_nodeselectorterms != 1)
            continue;
        const K8s__NodeSelectorTerm *from = sel->nodeselectorterms[0];
        add_new(b->a, from->matchfields, from->n_matchfields, &t->matchfields, &t->n_matchfields);
        add_new(b->a, from->matchexpressions, from->n_matchexpressions, &t->matchexpressions,
                &t->n_matchexpressions);
    }
    return t->n_matchfields || t->n_matchexpressions ? s : NULL;
}

K8s__AllocationResult *bh_dra_result(const struct bh_dra_pod *p, struct bh_arena *a,
                                     const struct bh_dra_claim *claim,
                                     const struct bh_dra_allocation *al, const char *node,
                                     uint64_t salt, struct bh_err *err)
{
    const struct build b = {.p = p, .a = a, .claim = claim, .al = al, .salt = salt};
    K8s__AllocationResult *out = bh_pb_new(a, &k8s__allocation_result__descriptor);
    struct configs l = {0};

    if (bh_dra_check_reach(p, claim, al, err) < 0)
        return NULL;
    out->devices = bh_pb_new(a, &k8s__device_allocation_result__descriptor);
    if (!claim->devices)
        return out;
    out->devices->results = bh_arena_new_array(a, K8s__DeviceRequestAllocationResult *, al->n + 1);
    for (uint32_t i = 0; i < al->n; i++)
        out->devices->results[out->devices->n_results++] = result_of(&b, i);
    for (uint32_t i = 0; i < claim->devices->n_requests; i++)
        add_class(&b, &l, i);
    for (size_t i = 0; i < claim->devices->n_config; i++)
        add_own(&b, &l, claim->devices->config[i]);
    out->devices->config = l.v;
    out->devices->n_config = l.n;
    out->nodeselector = reach(&b, node);
    return out;
}
