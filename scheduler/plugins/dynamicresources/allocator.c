/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/allocator.c - the search for devices
 *
 * Upstream:   k8s.io/dynamic-resource-allocation/structured/internal/incubating
 *             (allocator_incubating.go); differences: none, these defects included: counters are
 *             not given back when a device passes them and is then refused, nor when a shared
 *             device is undone; a shared device counts as used after it was undone if it has no
 *             capacities; a device of "all" that lacks capacity stays counted in constraints.
 */
#include <errno.h>
#include <stdio.h>

#include "scheduler/plugins/dynamicresources/search.h"

#define NS_PER_STEP 100 /* allocator.h, Limits */

enum outcome { NO, FOUND, TOO_MANY, FAILED };
struct at { /* where the search stands */
    uint32_t claim, request;
    int32_t sub; /* -1: not chosen, or there are no alternatives */
    uint32_t k, start;
};

static struct bh_dra_request *request_at(const struct bh_dra_search *s, const struct at *at)
{
    return &s->claims[at->claim].slots[at->request].alt[BH_MAX(at->sub, 0)];
}

/* ---- taking one device ---- */

static bool is_taken(const struct bh_dra_search *s, uint32_t claim, uint32_t id)
{
    for (uint32_t i = 0; i < s->out[claim].n; i++)
        if (bh_dra_device(s, s->out[claim].v[i].device)->id == id)
            return true;
    return false;
}

static bool in_use(const struct bh_dra_search *s, const struct at *at, uint32_t device)
{
    const struct bh_dra_device *dev = bh_dra_device(s, device);
    const struct bh_dra_request *r = request_at(s, at);

    if (r->admin)
        return !(dev->flags & BH_DRA_SHARED) && is_taken(s, at->claim, dev->id);
    if (s->d->allocated[dev->id]) {
        bh_dra_close(r, device);
        return true;
    }
    if (dev->flags & BH_DRA_SHARED)
        return false;
    for (uint32_t c = 0; c < s->n_claims; c++)
        if (is_taken(s, c, dev->id))
            return true;
    return false;
}

static void remove_constraints(struct bh_dra_search *s, const struct at *at, uint32_t n)
{
    struct bh_dra_wanted *c = &s->claims[at->claim];

    for (uint32_t i = 0; i < n; i++)
        if (c->constraints[i].column)
            bh_dra_number_remove(&c->constraints[i], at->request, at->sub);
        else
            bh_dra_constraint_remove(&c->constraints[i], c->slots, at->request, at->sub);
}

static bool add_constraint(struct bh_dra_search *s, struct bh_dra_constraint *k,
                           const struct at *at, uint32_t device)
{
    const struct bh_dra_device *dev = bh_dra_device(s, device);

    return k->column ? bh_dra_number_add(k, at->request, at->sub, device)
                     : bh_dra_constraint_add(k, s->claims[at->claim].slots, at->request, at->sub,
                                             dev->msg, s->d->slices[dev->slice].driver);
}

/* Of the device's pool. */
static const struct bh_dra_view *view_of(const struct bh_dra_search *s, uint32_t device)
{
    const struct bh_dra_pool *pool =
        &s->d->pools[s->d->slices[bh_dra_device(s, device)->slice].pool];
    uint32_t i = 0;

    while (s->views->v[i].pool != pool)
        i++;
    return &s->views->v[i];
}

static bool take_counters(struct bh_dra_search *s, const struct bh_dra_request *r, uint32_t device)
{
    const struct bh_dra_device *dev = bh_dra_device(s, device);

    /* When some of a shared device is taken already, its counters are counted. */
    if (!(dev->flags & BH_DRA_COUNTED) ||
        (dev->flags & BH_DRA_SHARED &&
         (s->d->consumed_any[dev->id] || s->d->sharing[dev->id] == s->d->attempt)))
        return true;
    if (s->plain)
        return bh_dra_counters_take(s->p, view_of(s, device), device);
    if (bh_dra_tallies_take(s->d, device))
        return true;
    if (!(dev->flags & BH_DRA_SHARED) && !bh_dra_tallies_suffice(s->d, device))
        bh_dra_close(r, device);
    return false;
}

static bool tolerates(const struct bh_dra_search *s, const struct bh_dra_request *r,
                      uint32_t device)
{
    const struct bh_dra_device *dev = bh_dra_device(s, device);

    if (!(dev->flags & BH_DRA_TAINTED) || s->d->no_taints || bh_dra_tolerates(r, dev->msg))
        return true;
    if (!(dev->flags & BH_DRA_COUNTED)) /* else looking at it leaves a trace */
        bh_dra_close(r, device);
    return false;
}

static enum outcome take_device(struct bh_dra_search *s, const struct at *at, uint32_t device)
{
    const struct bh_dra_wanted *c = &s->claims[at->claim];
    const struct bh_dra_request *r = request_at(s, at);
    const struct bh_dra_device *dev = bh_dra_device(s, device);
    const struct bh_dra_slice *sl = &s->d->slices[dev->slice];
    struct bh_dra_allocation *out = &s->out[at->claim];

    if (in_use(s, at, device) || !take_counters(s, r, device) || !tolerates(s, r, device))
        return NO;
    uint32_t refused = 0; /* the constraint that refuses, n_constraints when none does */
    while (refused < c->n_constraints && add_constraint(s, &c->constraints[refused], at, device))
        refused++;
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
    if (!bh_dra_has_capacity(s, r, device, false)) /* only of "all"; upstream undoes nothing */
        return NO;
    if (dev->flags & BH_DRA_SHARED)
        s->d->sharing[dev->id] = s->d->attempt;
    out->v[out->n++] = (struct bh_dra_result){
        .device = device, .request = at->request, .sub = at->sub, .admin = r->admin};
    return FOUND;
}

/* ---- the search ---- */

static enum outcome solve(struct bh_dra_search *s, struct at at);

static enum outcome with_device(struct bh_dra_search *s, const struct at *at, uint32_t device,
                                uint32_t start)
{
    enum outcome o = take_device(s, at, device);

    if (o != FOUND)
        return o;
    o = solve(s, (struct at){at->claim, at->request, at->sub, at->k + 1, start});
    if (o != FOUND) {
        const struct bh_dra_device *dev = bh_dra_device(s, device);
        remove_constraints(s, at, s->claims[at->claim].n_constraints);
        s->out[at->claim].n--;
        if (dev->flags & BH_DRA_SHARED) {
            if (dev->msg->n_capacity && bh_dra_nothing_taken(s, dev))
                s->d->sharing[dev->id] = 0;
        } else if (dev->flags & BH_DRA_COUNTED && s->plain)
            bh_dra_counters_return(s->p, view_of(s, device), device);
        else if (dev->flags & BH_DRA_COUNTED)
            bh_dra_tallies_return(s->d, device);
    }
    return o;
}

/* The run with the device at position i, which is below n_devices. */
static const struct bh_dra_run *run_of(struct bh_dra_search *s, uint32_t i)
{
    const struct bh_dra_run *runs = s->sight->runs;

    if (i < runs[s->run].at)
        s->run = 0;
    while (i - runs[s->run].at >= runs[s->run].n)
        s->run++;
    return &runs[s->run];
}

/* The next position from i on with an open device, n_devices when there is none. */
static uint32_t next_open(struct bh_dra_search *s, const struct bh_dra_wish *w, uint32_t i)
{
    while (w && i < s->sight->n_devices) {
        const struct bh_dra_run *r = run_of(s, i);
        uint32_t end = r->first + r->n;
        uint32_t device = bh_dra_next_open(w, r->first + (i - r->at), end);
        i = r->at + (device - r->first);
        if (device < end)
            break;
    }
    return i;
}

static bool out_of_steps(struct bh_dra_search *s, int64_t n)
{
    s->timed_out = s->steps_left < n;
    s->steps_left -= n;
    return s->timed_out;
}

static enum outcome try_devices(struct bh_dra_search *s, const struct at *at)
{
    const struct bh_dra_wanted *c = &s->claims[at->claim];
    const struct bh_dra_request *r = request_at(s, at);
    uint32_t n = s->sight->n_devices;

    for (uint32_t i = at->start, next; i < n; i = next + 1) {
        bool ok;
        next = next_open(s, r->wish, i);
        if (out_of_steps(s, (int64_t)next - i + (next < n)))
            return FAILED;
        s->reach = BH_MAX(s->reach, BH_MIN(next + 1, n));
        if (next >= n)
            break;
        const struct bh_dra_run *run = run_of(s, next);
        uint32_t device = run->first + (next - run->at);
        if (in_use(s, at, device))
            continue;
        if (bh_dra_selectable(s, c, r, device, &ok) < 0)
            return FAILED;
        if (ok && !bh_dra_has_capacity(s, r, device, false)) {
            if (r->wish && !bh_dra_has_capacity(s, r, device, true))
                bh_dra_close(r, device);
            ok = false;
        }
        enum outcome o = ok ? with_device(s, at, device, next + 1) : NO;
        if (o != NO)
            return o;
    }
    return NO;
}

static enum outcome solve(struct bh_dra_search *s, struct at at)
{
    if (at.claim == s->n_claims)
        return FOUND;
    const struct bh_dra_wanted *c = &s->claims[at.claim];
    if (at.request == c->n_slots) {
        enum outcome o = solve(s, (struct at){.claim = at.claim + 1, .sub = -1});
        return o == TOO_MANY ? NO : o;
    }
    if (c->slots[at.request].has_alternatives && at.sub < 0) {
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
    const struct bh_dra_request *r = request_at(s, &at);
    if (r->all && r->count == 0)
        return NO;
    if (at.k >= r->count)
        return solve(s, (struct at){.claim = at.claim, .request = at.request + 1, .sub = -1});
    if ((int64_t)s->out[at.claim].n + r->count - at.k > BH_DRA_RESULTS_MAX)
        return TOO_MANY;
    if (!r->all)
        return try_devices(s, &at);
    if (out_of_steps(s, 1))
        return FAILED;
    return with_device(s, &at, r->list[at.k], 0);
}

static enum bh_dra_outcome search(struct bh_dra_search *s, const struct bh_dra_claim *claims,
                                  const struct bh_dra_allocation **ret)
{
    struct bh_dra_sight sight;
    struct bh_dra_views views;

    s->d->attempt++;
    s->steps_left = s->d->filter_timeout_ns ? s->d->filter_timeout_ns / NS_PER_STEP : INT64_MAX;
    if (s->plain || !s->sight) {
        if (bh_dra_views(s->d, s->a, s->node, &views, s->err) < 0)
            return BH_DRA_ERROR;
        sight = bh_dra_sight_from(s->d, s->a, &views);
        s->sight = &sight;
        s->views = &views;
    }
    *ret = s->out = bh_arena_new_array(s->a, struct bh_dra_allocation, s->n_claims + 1);
    if (bh_dra_prepare(s, claims) < 0)
        return BH_DRA_ERROR;
    enum outcome o = solve(s, (struct at){.sub = -1});
    if (o == FOUND)
        return BH_DRA_DONE;
    if (o == TOO_MANY)
        bh_err_set(s->err, -E2BIG, "allocation max size exceeded");
    if (o == FAILED || o == TOO_MANY)
        return s->timed_out ? BH_DRA_TIMED_OUT : BH_DRA_ERROR;
    return s->sight->invalid ? BH_DRA_BAD_POOLS : BH_DRA_NONE;
}

/* ---- both ways ---- */

static bool same(const struct bh_dra_allocation *a, const struct bh_dra_allocation *b, uint32_t n)
{
    for (uint32_t c = 0; c < n; c++) {
        for (uint32_t i = 0; i < a[c].n && a[c].n == b[c].n; i++)
            if (a[c].v[i].device != b[c].v[i].device || a[c].v[i].request != b[c].v[i].request ||
                a[c].v[i].sub != b[c].v[i].sub || a[c].v[i].admin != b[c].v[i].admin)
                return false;
        if (a[c].n != b[c].n)
            return false;
    }
    return true;
}

static void verify(const struct bh_dra_search *fast, enum bh_dra_outcome o,
                   const struct bh_dra_claim *claims)
{
    struct bh_err err = {{0}};
    struct bh_dra_search s = {.p = fast->p,
                              .d = fast->d,
                              .a = fast->a,
                              .node = fast->node,
                              .n_claims = fast->n_claims,
                              .plain = true,
                              .err = &err};
    const struct bh_dra_allocation *out;
    enum bh_dra_outcome want = search(&s, claims, &out);

    if (want == o && (o != BH_DRA_DONE || same(out, fast->out, s.n_claims)) &&
        (o != BH_DRA_ERROR || bh_streq(err.msg, fast->err->msg)))
        return;
    fprintf(stderr,
            "verify: a search for devices differs: plain %d (%s), fast %d (%s), claim %s/%s\n",
            (int)want, err.msg, (int)o, fast->err->msg, fast->n_claims ? claims[0].ns : "",
            fast->n_claims ? claims[0].name : "");
    abort();
}

/* ---- what was found last ---- */

/* What a solution on the node depends on, but for the solution. false: on more than that. */
static bool describe(const struct bh_dra_pod *p, const struct bh_dra_sight *sight,
                     const struct bh_dra_claim *claims, uint32_t n, struct bh_dra_found_last *ret)
{
    *ret = (struct bh_dra_found_last){.index = p->d->index_generation,
                                      .classes = p->objects->version[BH_KIND_DEVICECLASS],
                                      .claims = p->objects->version[BH_KIND_RESOURCECLAIM],
                                      .moved = p->d->moved_end,
                                      .sights = p->d->sights_generation,
                                      .group = p->group,
                                      .n = n};
    if (!p->same_claims || !sight || sight->per_device || n > BH_DRA_FOUND_CLAIMS)
        return false;
    for (uint32_t i = 0; i < n; i++)
        ret->devices[i] = claims[i].devices;
    return true;
}

static bool is_found(const struct bh_dra_found_last *a, const struct bh_dra_found_last *b)
{
    return a->group == b->group && a->n == b->n && a->index == b->index &&
           a->classes == b->classes && a->claims == b->claims && a->moved == b->moved &&
           a->sights == b->sights && memcmp(a->devices, b->devices, sizeof a->devices) == 0;
}

enum bh_dra_outcome bh_dra_allocate(struct bh_dra_pod *p, const struct bh_node_rec *node,
                                    const struct bh_dra_sight *sight,
                                    const struct bh_dra_claim *claims, uint32_t n,
                                    const struct bh_dra_allocation **ret, struct bh_err *err)
{
    struct bh_dra_search s = {.p = p,
                              .d = p->d,
                              .a = &p->d->scratch,
                              .node = node,
                              .sight = sight,
                              .n_claims = n,
                              .plain = p->d->odd_counters,
                              .err = err};
    struct bh_dra *d = p->d;
    size_t wanted = n;

    p->reach = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        wanted += claims[i].devices ? claims[i].devices->n_requests : 0;
    if (wanted > BH_DRA_REQUESTS_MAX) {
        bh_err_set(err, -E2BIG, "more than %u claims and requests in one pod", BH_DRA_REQUESTS_MAX);
        return BH_DRA_ERROR;
    }
    struct bh_dra_found_last what;
    enum bh_dra_outcome o = BH_DRA_DONE;
    bool can_keep = describe(p, sight, claims, n, &what);
    if (can_keep && is_found(&d->last, &what)) {
        *ret = s.out = bh_arena_memdup(s.a, d->last.out, n * sizeof **ret);
    } else {
        o = search(&s, claims, ret);
        if (o == BH_DRA_DONE && p->prepared)
            p->reach = s.reach;
        if (o == BH_DRA_DONE && can_keep) {
            what.out = d->last.out ? d->last.out : bh_malloc(BH_DRA_FOUND_CLAIMS * sizeof *s.out);
            memcpy(what.out, s.out, n * sizeof *s.out);
            d->last = what;
        }
    }
    if (d->verify)
        verify(&s, o, claims);
    return o;
}
