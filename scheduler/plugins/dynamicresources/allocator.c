/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/allocator.c - the search for devices
 *
 * Runs in:  the engine's thread.
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating
 *           (allocator_incubating.go); differences: none, these defects included: counters are not
 * given back when a device passes them and is then refused, nor when a shared device is undone; a
 * shared device counts as used after it was undone if it has no capacities; a device of "all" that
 * lacks capacity stays counted in constraints.
 */
#include <errno.h>
#include <inttypes.h>

#include "scheduler/plugins/dynamicresources/allocator.h"

#define NS_PER_STEP 100 /* allocator.h, Limits */

enum outcome { NO, FOUND, TOO_MANY, FAILED };
struct claim {
    const struct bh_dra_claim *in;
    struct bh_dra_slot *slots;
    uint32_t n_slots;
    struct bh_dra_constraint *constraints;
    uint32_t n_constraints;
};
struct search {
    struct bh_dra_pod *p;
    struct bh_dra *d;
    struct bh_arena *a;
    const struct bh_node_rec *node;
    struct bh_dra_views views;
    uint32_t n_visible;           /* devices of all views */
    uint32_t *devices, n_devices; /* of usable pools, in order of preference */
    struct claim *claims;
    uint32_t n_claims;
    struct bh_dra_allocation *out; /* by claim */
    int64_t steps_left;            /* INT64_MAX: no limit */
    bool timed_out;
    struct bh_err *err;
};
struct at { /* where the search stands */
    uint32_t claim, request;
    int32_t sub; /* -1: not chosen, or there are no alternatives */
    uint32_t k, start;
};

static const struct bh_dra_device *device_of(const struct search *s, uint32_t i)
{
    return &s->d->devices[i];
}

/* Of the device's pool. */
static const struct bh_dra_view *view_of(const struct search *s, uint32_t device)
{
    const struct bh_dra_pool *pool = &s->d->pools[s->d->slices[device_of(s, device)->slice].pool];
    uint32_t i = 0;

    while (s->views.v[i].pool != pool)
        i++;
    return &s->views.v[i];
}

static struct bh_dra_request *request_at(const struct search *s, const struct at *at)
{
    return &s->claims[at->claim].slots[at->request].alt[BH_MAX(at->sub, 0)];
}

/* ---- may the device be used for the request
 * ------------------------------------------------------ */

static int all_match(struct search *s, K8s__DeviceSelector *const *sel, size_t n, uint32_t device,
                     bool *ret, size_t *ret_at)
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

static int is_selectable(struct search *s, const struct claim *c, const struct bh_dra_request *r,
                         uint32_t device, bool *ret)
{
    const struct bh_dra_device *dev = device_of(s, device);
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
    if (*ret && s->d->slices[dev->slice].per_device) {
        if (dev->where.error)
            return bh_err_set(s->err, -EINVAL, "%s",
                              bh_dra_where_error(s->a, &dev->where, dev->msg->nodeselector));
        *ret = bh_dra_matches_node(s->d, &dev->where, s->node);
    }
    return 0;
}

/* What results of this attempt already take of a shared device's capacity. */
static bh_nano being_taken(const struct search *s, uint32_t id, const K8s__DeviceCapacityEntry *cap)
{
    bh_nano sum = 0, v;

    for (uint32_t c = 0; c < s->n_claims; c++)
        for (uint32_t i = 0; i < s->out[c].n; i++) {
            const struct bh_dra_result *r = &s->out[c].v[i];
            const struct bh_dra_request *by =
                &s->claims[c].slots[r->request].alt[BH_MAX(r->sub, 0)];
            if (device_of(s, r->device)->id != id)
                continue;
            (void)bh_dra_capacity_taken(cap->value, bh_dra_requested(by->capacity, cap->key), &v,
                                        NULL);
            sum += v;
        }
    return sum;
}

static bool has_capacity(const struct search *s, const struct bh_dra_request *r, uint32_t device)
{
    const struct bh_dra_device *dev = device_of(s, device);
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
        if (dev->flags & BH_DRA_SHARED)
            v += being_taken(s, dev->id, cap);
        if (v > bh_dra_quantity(cap->value->value))
            return false;
    }
    return true;
}

/* ---- preparing requests
 * --------------------------------------------------------------------------- */

static int prepare_all(struct search *s, const struct claim *c, struct bh_dra_request *r)
{
    uint32_t n = 0;

    r->list = bh_arena_new_array(s->a, uint32_t, s->n_visible + 1);
    for (uint32_t i = 0; i < s->views.n; i++) {
        const struct bh_dra_view *v = &s->views.v[i];
        if (v->incomplete || v->invalid)
            return bh_err_set(s->err, -EINVAL,
                              "claim %s/%s, request %s: asks for all devices, but resource pool "
                              "%s/%s is currently %s",
                              c->in->ns, c->in->name, r->name, v->pool->driver, v->pool->name,
                              v->incomplete ? "being updated" : "invalid");
        for (uint32_t k = 0; k < v->n; k++) {
            const struct bh_dra_slice *sl = &s->d->slices[v->slices[k]];
            for (uint32_t j = sl->first; bh_dra_has_devices(sl) && j < sl->first + sl->n; j++) {
                bool ok;
                int rc = is_selectable(s, c, r, j, &ok);
                if (rc < 0)
                    return rc;
                if (ok && has_capacity(s, r, j))
                    r->list[n++] = j;
            }
        }
    }
    r->count = n;
    return 0;
}

static int prepare(struct search *s, const struct claim *c, struct bh_dra_request *r)
{
    const char *mode = *r->mode ? r->mode : "ExactCount";
    const char *ns = c->in->ns, *claim = c->in->name;

    for (size_t i = 0; i < r->n_selectors; i++)
        if (!r->selectors[i]->cel)
            return bh_err_set(s->err, -EINVAL,
                              "claim %s/%s, request %s, selector #%zu: CEL expression empty "
                              "(unsupported selector type?)",
                              ns, claim, r->name, i);
    if (!*r->class_name)
        return bh_err_set(s->err, -EINVAL,
                          "claim %s/%s, request %s: missing device class name (unsupported request "
                          "type?)",
                          ns, claim, r->name);
    r->class = (const void *)bh_objects_get(s->p->objects, BH_KIND_DEVICECLASS, "", r->class_name);
    if (!r->class)
        return bh_err_set(s->err, -EINVAL,
                          "claim %s/%s, request %s: could not retrieve device class %s: "
                          "deviceclass.resource.k8s.io \"%s\" not found",
                          ns, claim, r->name, r->class_name, r->class_name);
    if (bh_streq(mode, "All")) {
        r->all = true;
        return prepare_all(s, c, r);
    }
    if (!bh_streq(mode, "ExactCount"))
        return bh_err_set(s->err, -EINVAL, "claim %s/%s, request %s: unsupported count mode %s", ns,
                          claim, r->name, mode);
    r->count = r->count ? r->count : 1; /* the API server's default */
    return 0;
}

static void read_exact(struct bh_dra_request *r, const char *name, const K8s__ExactDeviceRequest *x)
{
    *r = (struct bh_dra_request){.name = name,
                                 .class_name = x->deviceclassname,
                                 .mode = x->allocationmode,
                                 .selectors = x->selectors,
                                 .n_selectors = x->n_selectors,
                                 .tolerations = x->tolerations,
                                 .n_tolerations = x->n_tolerations,
                                 .capacity = x->capacity,
                                 .admin = x->has_adminaccess && x->adminaccess,
                                 .count = x->count};
}

static void read_sub(struct bh_dra_request *r, const K8s__DeviceSubRequest *x)
{
    *r = (struct bh_dra_request){.name = x->name,
                                 .class_name = x->deviceclassname,
                                 .mode = x->allocationmode,
                                 .selectors = x->selectors,
                                 .n_selectors = x->n_selectors,
                                 .tolerations = x->tolerations,
                                 .n_tolerations = x->n_tolerations,
                                 .capacity = x->capacity,
                                 .count = x->count};
}

static void read_slot(struct search *s, const K8s__DeviceRequest *q, struct bh_dra_slot *slot)
{
    static const K8s__ExactDeviceRequest unknown = K8S__EXACT_DEVICE_REQUEST__INIT;

    slot->name = q->name;
    slot->has_alternatives = q->n_firstavailable > 0;
    slot->n_alt = (uint32_t)BH_MAX(q->n_firstavailable, (size_t)1);
    slot->alt = bh_arena_new_array(s->a, struct bh_dra_request, slot->n_alt);
    for (size_t i = 0; i < q->n_firstavailable; i++)
        read_sub(&slot->alt[i], q->firstavailable[i]);
    if (!slot->has_alternatives)
        read_exact(&slot->alt[0], q->name, q->exactly ? q->exactly : &unknown);
}

static int prepare_constraints(struct search *s, struct claim *c)
{
    const K8s__DeviceClaim *spec = c->in->devices;

    c->n_constraints = (uint32_t)spec->n_constraints;
    c->constraints = bh_arena_new_array(s->a, struct bh_dra_constraint, c->n_constraints + 1);
    for (uint32_t i = 0; i < c->n_constraints; i++) {
        const K8s__DeviceConstraint *k = spec->constraints[i];
        if (!k->matchattribute && !k->distinctattribute)
            return bh_err_set(s->err, -EINVAL,
                              "claim %s/%s, constraint #%" PRIu32 ": empty constraint (unsupported "
                              "constraint type?)",
                              c->in->ns, c->in->name, i);
        c->constraints[i] = (struct bh_dra_constraint){
            .spec = k,
            .distinct = !k->matchattribute,
            .attribute = k->matchattribute ? k->matchattribute : k->distinctattribute,
            .n_values = c->n_slots,
            .values = bh_arena_new_array(s->a, const K8s__DeviceAttribute *, c->n_slots + 1)};
    }
    return 0;
}

static int prepare_claim(struct search *s, struct claim *c)
{
    const K8s__DeviceClaim *spec = c->in->devices;
    int64_t least = 0;

    if (!spec)
        return 0;
    c->n_slots = (uint32_t)spec->n_requests;
    c->slots = bh_arena_new_array(s->a, struct bh_dra_slot, c->n_slots + 1);
    for (uint32_t i = 0; i < c->n_slots; i++) {
        struct bh_dra_slot *slot = &c->slots[i];
        int64_t smallest = INT64_MAX;
        if (s->p->d->no_alternatives && spec->requests[i]->n_firstavailable)
            return bh_err_set(s->err, -EINVAL,
                              "claim %s/%s, request %s: has subrequests, but the "
                              "DRAPrioritizedList feature is disabled",
                              c->in->ns, c->in->name, spec->requests[i]->name);
        read_slot(s, spec->requests[i], slot);
        for (uint32_t k = 0; k < slot->n_alt; k++) {
            int rc = prepare(s, c, &slot->alt[k]);
            if (rc < 0)
                return rc;
            smallest = BH_MIN(smallest, slot->alt[k].count);
        }
        least = bh_add_sat(least, smallest);
    }
    if (least > BH_DRA_RESULTS_MAX)
        return bh_err_set(s->err, -EINVAL,
                          "claim %s/%s: number of requested devices %" PRId64
                          " exceeds the claim limit of 32",
                          c->in->ns, c->in->name, least);
    return prepare_constraints(s, c);
}

/* ---- taking one device
 * ----------------------------------------------------------------------------- */

static bool is_taken(const struct search *s, uint32_t claim, uint32_t id)
{
    for (uint32_t i = 0; i < s->out[claim].n; i++)
        if (device_of(s, s->out[claim].v[i].device)->id == id)
            return true;
    return false;
}

static bool in_use(const struct search *s, const struct at *at, uint32_t device)
{
    const struct bh_dra_device *dev = device_of(s, device);

    if (request_at(s, at)->admin)
        return !(dev->flags & BH_DRA_SHARED) && is_taken(s, at->claim, dev->id);
    if (s->d->allocated[dev->id])
        return true;
    if (dev->flags & BH_DRA_SHARED)
        return false;
    for (uint32_t c = 0; c < s->n_claims; c++)
        if (is_taken(s, c, dev->id))
            return true;
    return false;
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

static bool tolerates_all(const struct bh_dra_request *r, const K8s__Device *dev)
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

static void remove_constraints(struct search *s, const struct at *at, uint32_t n)
{
    struct claim *c = &s->claims[at->claim];

    for (uint32_t i = 0; i < n; i++)
        bh_dra_constraint_remove(&c->constraints[i], c->slots, at->request, at->sub);
}

/* The number of the constraint that refuses, n_constraints when none does. */
static uint32_t add_constraints(struct search *s, const struct at *at, uint32_t device)
{
    struct claim *c = &s->claims[at->claim];
    const struct bh_dra_device *dev = device_of(s, device);
    const char *driver = s->d->slices[dev->slice].driver;
    uint32_t i = 0;

    while (i < c->n_constraints && bh_dra_constraint_add(&c->constraints[i], c->slots, at->request,
                                                         at->sub, dev->msg, driver))
        i++;
    return i;
}

/* Some of the shared device is taken already: its counters are counted then. */
static bool is_shared_already(const struct search *s, const struct bh_dra_device *dev)
{
    return dev->flags & BH_DRA_SHARED &&
           (s->d->consumed_any[dev->id] || s->d->sharing[dev->id] == s->d->attempt);
}

static bool take_counters(struct search *s, uint32_t device)
{
    return is_shared_already(s, device_of(s, device)) ||
           bh_dra_counters_take(s->p, view_of(s, device), device);
}

static enum outcome take(struct search *s, const struct at *at, uint32_t device)
{
    const struct claim *c = &s->claims[at->claim];
    const struct bh_dra_request *r = request_at(s, at);
    const struct bh_dra_device *dev = device_of(s, device);
    const struct bh_dra_slice *sl = &s->d->slices[dev->slice];
    struct bh_dra_allocation *out = &s->out[at->claim];

    if (in_use(s, at, device) || !take_counters(s, device) ||
        (!s->p->d->no_taints && !tolerates_all(r, dev->msg)))
        return NO;
    uint32_t refused = add_constraints(s, at, device);
    if (refused < c->n_constraints) {
        if (r->all) {
            bh_err_set(s->err, -EINVAL,
                       "claim %s/%s, request %s: cannot add device %s/%s/%s because a claim "
                       "constraint would not be satisfied",
                       c->in->ns, c->in->name, r->name, sl->driver, sl->pool_name, dev->msg->name);
            return FAILED;
        }
        remove_constraints(s, at, refused);
        return NO;
    }
    if (!has_capacity(s, r, device)) /* only of "all"; upstream undoes nothing */
        return NO;
    if (dev->flags & BH_DRA_SHARED)
        s->d->sharing[dev->id] = s->d->attempt;
    out->v[out->n++] = (struct bh_dra_result){
        .device = device, .request = at->request, .sub = at->sub, .admin = r->admin};
    return FOUND;
}

/* No share of this attempt takes any of the device's capacity. */
static bool nothing_taken(const struct search *s, const struct bh_dra_device *dev)
{
    for (size_t i = 0; i < dev->msg->n_capacity; i++)
        if (dev->msg->capacity[i]->value && being_taken(s, dev->id, dev->msg->capacity[i]))
            return false;
    return true;
}

static void undo(struct search *s, const struct at *at, uint32_t device)
{
    const struct bh_dra_device *dev = device_of(s, device);

    remove_constraints(s, at, s->claims[at->claim].n_constraints);
    s->out[at->claim].n--;
    if (!(dev->flags & BH_DRA_SHARED))
        bh_dra_counters_return(s->p, view_of(s, device), device);
    else if (dev->msg->n_capacity && nothing_taken(s, dev))
        s->d->sharing[dev->id] = 0;
}

/* ---- the search
 * ------------------------------------------------------------------------------------ */

static enum outcome solve(struct search *s, struct at at);

static enum outcome with_device(struct search *s, const struct at *at, uint32_t device,
                                uint32_t start)
{
    enum outcome o = take(s, at, device);

    if (o != FOUND)
        return o;
    o = solve(s, (struct at){at->claim, at->request, at->sub, at->k + 1, start});
    if (o != FOUND)
        undo(s, at, device);
    return o;
}

static enum outcome try_alternatives(struct search *s, struct at at)
{
    uint32_t n = s->claims[at.claim].slots[at.request].n_alt, too_many = 0;

    for (uint32_t i = 0; i < n; i++) {
        at.sub = (int32_t)i;
        enum outcome o = solve(s, at);
        if (o == FOUND || o == FAILED)
            return o;
        too_many += o == TOO_MANY;
    }
    return too_many == n ? TOO_MANY : NO;
}

static enum outcome try_devices(struct search *s, const struct at *at)
{
    const struct claim *c = &s->claims[at->claim];
    const struct bh_dra_request *r = request_at(s, at);

    for (uint32_t i = at->start; i < s->n_devices; i++) {
        uint32_t device = s->devices[i];
        bool ok;
        if (s->steps_left-- <= 0) {
            s->timed_out = true;
            return FAILED;
        }
        if (in_use(s, at, device))
            continue;
        if (is_selectable(s, c, r, device, &ok) < 0)
            return FAILED;
        if (!ok || !has_capacity(s, r, device))
            continue;
        enum outcome o = with_device(s, at, device, i + 1);
        if (o != NO)
            return o;
    }
    return NO;
}

static enum outcome solve(struct search *s, struct at at)
{
    if (at.claim == s->n_claims)
        return FOUND;
    const struct claim *c = &s->claims[at.claim];
    if (at.request == c->n_slots) {
        enum outcome o = solve(s, (struct at){.claim = at.claim + 1, .sub = -1});
        return o == TOO_MANY ? NO : o;
    }
    if (c->slots[at.request].has_alternatives && at.sub < 0)
        return try_alternatives(s, at);
    const struct bh_dra_request *r = request_at(s, &at);
    if (r->all && r->count == 0)
        return NO;
    if (at.k >= r->count)
        return solve(s, (struct at){.claim = at.claim, .request = at.request + 1, .sub = -1});
    if ((int64_t)s->out[at.claim].n + r->count - at.k > BH_DRA_RESULTS_MAX)
        return TOO_MANY;
    if (!r->all)
        return try_devices(s, &at);
    if (s->steps_left-- <= 0) {
        s->timed_out = true;
        return FAILED;
    }
    return with_device(s, &at, r->list[at.k], 0);
}

static void list_devices(struct search *s)
{
    s->devices = bh_arena_new_array(s->a, uint32_t, s->n_visible + 1);
    for (uint32_t i = 0; i < s->views.n; i++) {
        const struct bh_dra_view *v = &s->views.v[i];
        for (uint32_t k = 0; !v->incomplete && !v->invalid && k < v->n; k++) {
            const struct bh_dra_slice *sl = &s->d->slices[v->slices[k]];
            for (uint32_t j = 0; bh_dra_has_devices(sl) && j < sl->n; j++)
                s->devices[s->n_devices++] = sl->first + j;
        }
    }
}

enum bh_dra_outcome bh_dra_allocate(struct bh_dra_pod *p, const struct bh_node_rec *node,
                                    const struct bh_dra_claim *claims, uint32_t n,
                                    const struct bh_dra_allocation **ret, struct bh_err *err)
{
    struct search s = {.p = p, .d = p->d, .a = &p->d->scratch, .node = node, .err = err};

    size_t wanted = n;
    for (uint32_t i = 0; i < n; i++)
        wanted += claims[i].devices ? claims[i].devices->n_requests : 0;
    if (wanted > BH_DRA_REQUESTS_MAX) {
        bh_err_set(err, -E2BIG, "more than %u claims and requests in one pod", BH_DRA_REQUESTS_MAX);
        return BH_DRA_ERROR;
    }
    p->d->attempt++;
    s.n_claims = n;
    s.steps_left = p->d->filter_timeout_ns ? p->d->filter_timeout_ns / NS_PER_STEP : INT64_MAX;
    if (bh_dra_views(p->d, s.a, node, &s.views, err) < 0)
        return BH_DRA_ERROR;
    for (uint32_t i = 0; i < s.views.n; i++)
        for (uint32_t k = 0; k < s.views.v[i].n; k++)
            s.n_visible += s.d->slices[s.views.v[i].slices[k]].n;
    s.claims = bh_arena_new_array(s.a, struct claim, n + 1);
    s.out = bh_arena_new_array(s.a, struct bh_dra_allocation, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        s.claims[i].in = &claims[i];
        if (prepare_claim(&s, &s.claims[i]) < 0)
            return BH_DRA_ERROR;
    }
    list_devices(&s);
    *ret = s.out;
    enum outcome o = solve(&s, (struct at){.sub = -1});
    if (o == FOUND)
        return BH_DRA_DONE;
    if (o == TOO_MANY)
        bh_err_set(err, -E2BIG, "allocation max size exceeded");
    if (o == FAILED || o == TOO_MANY)
        return s.timed_out ? BH_DRA_TIMED_OUT : BH_DRA_ERROR;
    for (uint32_t i = 0; i < s.views.n; i++)
        if (s.views.v[i].invalid)
            return BH_DRA_BAD_POOLS;
    return BH_DRA_NONE;
}
