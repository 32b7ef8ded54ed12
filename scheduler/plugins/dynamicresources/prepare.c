/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/prepare.c - claims as they are searched for
 *
 * Most requests are the same for every node: they are prepared once for a pod. Requests for all
 * devices and those that stand for extended resources are prepared for each node.
 *
 * Upstream: k8s.io/dynamic-resource-allocation/structured/internal/incubating
 *           (allocator_incubating.go, validateDeviceRequest).
 */
#include <errno.h>
#include <inttypes.h>

#include "scheduler/plugins/dynamicresources/search.h"

/* What a pod's claims look like on every node. */
struct bh_dra_prepared {
    struct bh_dra_wanted *claims;
    int rc;
    struct bh_err err;
};

/* The pools up to the one that is broken are looked at: an error there is told first. */
static int fail_for_pool(struct bh_dra_search *s, const struct bh_dra_wanted *c,
                         const struct bh_dra_request *r)
{
    struct bh_dra_views views;
    bool ok;
    int rc = bh_dra_views(s->d, s->a, s->node, &views, s->err);

    for (uint32_t i = 0; rc == 0 && i < views.n; i++) {
        const struct bh_dra_view *v = &views.v[i];
        if (v->incomplete || v->invalid)
            return bh_err_set(s->err, -EINVAL,
                              "claim %s/%s, request %s: asks for all devices, but resource pool "
                              "%s/%s is currently %s",
                              c->in->ns, c->in->name, r->name, v->pool->driver, v->pool->name,
                              v->incomplete ? "being updated" : "invalid");
        for (uint32_t k = 0; k < v->n; k++) {
            const struct bh_dra_slice *sl = &s->d->slices[v->slices[k]];
            for (uint32_t j = 0; rc == 0 && bh_dra_has_devices(sl) && j < sl->n; j++)
                rc = bh_dra_selectable(s, c, r, sl->first + j, &ok);
        }
    }
    return rc;
}

static int prepare(struct bh_dra_search *s, const struct bh_dra_wanted *c, struct bh_dra_request *r)
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
        /* Devices of the node that the request may have, in use or not. */
        const struct bh_dra_sight *v = s->sight;
        uint32_t n = 0;
        if (v->incomplete || v->invalid)
            return fail_for_pool(s, c, r);
        r->list = bh_arena_new_array(s->a, uint32_t, v->n_devices + 1);
        for (uint32_t i = 0; i < v->n_runs; i++)
            for (uint32_t j = v->runs[i].first; j < v->runs[i].first + v->runs[i].n; j++) {
                bool ok;
                int rc = bh_dra_selectable(s, c, r, j, &ok);
                if (rc < 0)
                    return rc;
                if (ok && bh_dra_has_capacity(s, r, j, false))
                    r->list[n++] = j;
            }
        r->count = n;
        return 0;
    }
    if (!bh_streq(mode, "ExactCount"))
        return bh_err_set(s->err, -EINVAL, "claim %s/%s, request %s: unsupported count mode %s", ns,
                          claim, r->name, mode);
    r->count = r->count ? r->count : 1; /* the API server's default */
    r->wish = s->plain ? NULL : bh_dra_wish_for(s->p, r);
    return 0;
}

static void read_slot(struct bh_dra_search *s, const K8s__DeviceRequest *q,
                      struct bh_dra_slot *slot)
{
    static const K8s__ExactDeviceRequest unknown = K8S__EXACT_DEVICE_REQUEST__INIT;

    slot->name = q->name;
    slot->has_alternatives = q->n_firstavailable > 0;
    slot->n_alt = (uint32_t)BH_MAX(q->n_firstavailable, (size_t)1);
    slot->alt = bh_arena_new_array(s->a, struct bh_dra_request, slot->n_alt);
    for (size_t i = 0; i < q->n_firstavailable; i++) {
        const K8s__DeviceSubRequest *x = q->firstavailable[i];
        slot->alt[i] = (struct bh_dra_request){.name = x->name,
                                               .class_name = x->deviceclassname,
                                               .mode = x->allocationmode,
                                               .selectors = x->selectors,
                                               .n_selectors = x->n_selectors,
                                               .tolerations = x->tolerations,
                                               .n_tolerations = x->n_tolerations,
                                               .capacity = x->capacity,
                                               .count = x->count};
    }
    const K8s__ExactDeviceRequest *x = q->exactly ? q->exactly : &unknown;
    if (!slot->has_alternatives)
        slot->alt[0] = (struct bh_dra_request){.name = q->name,
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

/* By request and alternative: does the constraint look at its devices? */
static void number(struct bh_dra_search *s, const struct bh_dra_wanted *c,
                   struct bh_dra_constraint *k)
{
    k->column = bh_dra_column_of(s->d, k->attribute);
    if (!k->column)
        return;
    for (uint32_t i = 0; i < c->n_slots; i++)
        k->stride = BH_MAX(k->stride, c->slots[i].n_alt + 1);
    k->concerned = bh_arena_new_array(s->a, bool, (size_t)c->n_slots * k->stride + 1);
    k->numbers = bh_arena_new_array(s->a, uint32_t, c->n_slots + 1);
    for (uint32_t i = 0; i < c->n_slots; i++)
        for (uint32_t sub = 0; sub <= c->slots[i].n_alt; sub++)
            if (sub == 0 || c->slots[i].has_alternatives)
                k->concerned[i * k->stride + sub] =
                    bh_dra_concerns(k, &c->slots[i], (int32_t)sub - 1);
}

static int prepare_constraints(struct bh_dra_search *s, struct bh_dra_wanted *c)
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
        if (!s->plain)
            number(s, c, &c->constraints[i]);
    }
    return 0;
}

static int prepare_claim(struct bh_dra_search *s, struct bh_dra_wanted *c)
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

static int prepare_claims(struct bh_dra_search *s, const struct bh_dra_claim *in)
{
    s->p->n_wishes = 0;
    s->claims = bh_arena_new_array(s->a, struct bh_dra_wanted, s->n_claims + 1);
    for (uint32_t i = 0; i < s->n_claims; i++) {
        s->claims[i].in = &in[i];
        int rc = prepare_claim(s, &s->claims[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- once for all nodes ---- */

int bh_dra_prepare(struct bh_dra_search *s, const struct bh_dra_claim *in)
{
    bool each_node = s->plain || !s->p->same_claims;

    for (uint32_t i = 0; i < s->n_claims && !each_node; i++)
        for (size_t q = 0; in[i].devices && q < in[i].devices->n_requests; q++) {
            const K8s__DeviceRequest *r = in[i].devices->requests[q];
            each_node |= r->exactly && bh_streq(r->exactly->allocationmode, "All");
            for (size_t k = 0; k < r->n_firstavailable; k++)
                each_node |= bh_streq(r->firstavailable[k]->allocationmode, "All");
        }
    if (each_node)
        return prepare_claims(s, in);
    if (!s->p->prepared) {
        struct bh_dra_prepared *k = bh_arena_new(s->p->arena, struct bh_dra_prepared);
        struct bh_arena *a = s->a;
        struct bh_err *err = s->err;
        s->a = s->p->arena;
        s->err = &k->err;
        k->rc = prepare_claims(s, in);
        k->claims = s->claims;
        s->a = a;
        s->err = err;
        s->p->prepared = k;
    }
    s->claims = s->p->prepared->claims;
    for (uint32_t i = 0; i < s->n_claims && s->p->prepared->rc == 0; i++)
        for (uint32_t n = 0; n < s->claims[i].n_constraints; n++) {
            struct bh_dra_constraint *k = &s->claims[i].constraints[n];
            k->n = 0;
            memset(k->values, 0, k->n_values * sizeof *k->values);
            if (k->column)
                memset(k->numbers, 0, k->n_values * sizeof *k->numbers);
        }
    return s->p->prepared->rc < 0 && s->err
               ? bh_err_set(s->err, s->p->prepared->rc, "%s", s->p->prepared->err.msg)
               : s->p->prepared->rc;
}
