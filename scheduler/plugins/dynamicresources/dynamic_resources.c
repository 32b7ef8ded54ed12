/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/dynamic_resources.c - claims find devices, devices find nodes
 *
 * Pods without claims and without resources that devices provide are idle here and stay on the fast
 * path; all others take the reference path, because the verdict on one node depends on the pod
 * itself (claims made from templates) and an error on any node ends the cycle.
 *
 * Runs in:  the engine's thread.
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources; differences: no writes in this
 * release, so Reserve refuses a pod whose claims are not all allocated and reserved for it already,
 * and PostFilter deallocates nothing. Nothing is ever in flight for the same reason.
 */
#include "common/base/opt.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/dynamicresources/claims.h"
#include "scheduler/plugins/dynamicresources/device_class.h"
#include "scheduler/plugins/dynamicresources/hints.h"
#include "scheduler/plugins/registry.h"

#define NAME    "DynamicResources"
#define UU      BH_UNSCHEDULABLE_AND_UNRESOLVABLE
#define ALT_MAX 8 /* alternatives of a request */

BH_STATUS_CONST(nothing_to_free, BH_UNSCHEDULABLE, NAME, "no new claims to deallocate");
BH_STATUS_CONST(still_not, BH_UNSCHEDULABLE, NAME, "still not schedulable");
BH_STATUS_CONST(cannot_free, BH_UNSCHEDULABLE, NAME,
                "berth: deallocating a ResourceClaim is not supported in this release");
BH_STATUS_CONST(no_state, BH_ERROR, NAME, "not found");
BH_STATUS_CONST(no_solution, UU, NAME, "cannot allocate all claims");
BH_STATUS_CONST(bad_pools, UU, NAME, "invalid resource pools were encountered");
BH_STATUS_CONST(elsewhere, UU, NAME, "resourceclaim not available on the node");
BH_STATUS_CONST(left_over, UU, NAME, "cannot schedule extended resource claim");
BH_STATUS_CONST(no_provider, UU, NAME, "cannot fit resource");
BH_STATUS_CONST(cannot_allocate, BH_UNSCHEDULABLE, NAME,
                "berth: allocating devices is not supported in this release");

struct claim_state {
    const K8s__ResourceClaim *msg; /* NULL: the claim for extended resources, not made yet */
    const K8s__AllocationResult *allocation;
    struct bh_dra_where where; /* allocated: NOWHERE = everywhere */
    bool special;
    bool unavailable; /* on some node */
    int64_t score;    /* allocated: alternatives that were taken */
};
struct state {
    struct claim_state *claims;
    uint32_t n_claims, n_to_allocate;
    struct claim_state *special;
    struct bh_dra_pod pod;
    int64_t *score; /* by row: alternatives taken there */
    uint32_t n_rows;
};

static struct bh_dra *dra(const void *args)
{
    return (struct bh_dra *)(uintptr_t)args; /* the caches in it are the plugin's own */
}

static struct bh_dra_lookup lookup(const struct bh_call *c)
{
    return (struct bh_dra_lookup){
        .objects = c->objects, .tab = c->tab, .pod = c->pod->rec, .shape = c->pod->shape};
}

static const struct bh_status *refuse(struct bh_call *c, enum bh_code code, const char *text)
{
    return bh_status_new(c->arena, code, NAME, "%s", text);
}

static const struct bh_status *pre_enqueue(struct bh_call *c)
{
    struct bh_dra_lookup l = lookup(c);
    struct bh_err err = {{0}};

    return bh_dra_claims(&l, NULL, NULL, &err) < 0 ? refuse(c, UU, err.msg) : NULL;
}

/* ---- PreFilter
 * ------------------------------------------------------------------------------------ */

static const char *ns_of(const struct bh_call *c)
{
    return bh_rec_text(c->pod->rec, c->pod->rec->namespace_).p;
}

static const char *name_of(const struct claim_state *cs)
{
    return cs->msg && cs->msg->metadata ? cs->msg->metadata->name : BH_DRA_SPECIAL_NAME;
}

static const K8s__DeviceClaim *devices_of(const struct claim_state *cs)
{
    return cs->msg && cs->msg->spec ? cs->msg->spec->devices : NULL;
}

static const struct bh_status *check_class(struct bh_call *c, const char *request,
                                           const char *class)
{
    if (!*class)
        return bh_status_new(c->arena, BH_ERROR, NAME, "request %s: unsupported request type",
                             request);
    if (!bh_objects_get(c->objects, BH_KIND_DEVICECLASS, "", class))
        return bh_status_new(c->arena, UU, NAME, "request %s: device class %s does not exist",
                             request, class);
    return NULL;
}

static const struct bh_status *check_requests(struct bh_call *c, const struct claim_state *cs)
{
    const K8s__DeviceClaim *d = devices_of(cs);
    const struct bh_status *s = NULL;

    for (size_t i = 0; d && !s && i < d->n_requests; i++) {
        const K8s__DeviceRequest *r = d->requests[i];
        if (r->exactly)
            s = check_class(c, r->name, r->exactly->deviceclassname);
        else if (!r->n_firstavailable)
            s = bh_status_new(c->arena, UU, NAME,
                              "resource claim %s/%s, request %s: unknown request type", ns_of(c),
                              name_of(cs), r->name);
        for (size_t k = 0; !r->exactly && !s && k < r->n_firstavailable; k++)
            s = check_class(c,
                            bh_arena_printf(c->arena, "%s/%s", r->name, r->firstavailable[k]->name),
                            r->firstavailable[k]->deviceclassname);
    }
    return s;
}

static int64_t worth(const K8s__DeviceRequest *r, const char *sub)
{
    for (size_t i = 0; i < r->n_firstavailable && i < ALT_MAX; i++)
        if (bh_streq(r->firstavailable[i]->name, sub))
            return ALT_MAX - (int64_t)i;
    return 0;
}

/* The alternative is named behind the request's name in the results. */
static int64_t allocated_score(const struct claim_state *cs)
{
    const K8s__DeviceClaim *d = devices_of(cs);
    const K8s__DeviceAllocationResult *got = cs->allocation->devices;
    int64_t sum = 0;

    for (size_t i = 0; d && got && i < d->n_requests; i++) {
        const K8s__DeviceRequest *r = d->requests[i];
        size_t n = strlen(r->name);
        for (size_t k = 0; r->n_firstavailable && k < got->n_results; k++) {
            const char *name = got->results[k]->request;
            if (strncmp(name, r->name, n) != 0 || name[n] != '/')
                continue;
            sum += worth(r, name + n + 1);
            break;
        }
    }
    return sum;
}

static const struct bh_status *read_claim(struct bh_call *c, struct state *st,
                                          struct claim_state *cs)
{
    cs->allocation = cs->msg ? bh_dra_allocation_of(cs->msg) : NULL;
    if (cs->allocation) {
        cs->score = allocated_score(cs);
        cs->where = bh_dra_where_of(c->arena, c->tab, NULL, false, cs->allocation->nodeselector);
        return cs->where.error ? refuse(c, BH_ERROR, cs->where.error) : NULL;
    }
    st->n_to_allocate++;
    return cs->special ? NULL : check_requests(c, cs);
}

static const struct bh_status *read_claims(struct bh_call *c, struct state *st)
{
    struct bh_dra_lookup l = lookup(c);
    struct bh_dra_found found;
    struct bh_err err = {{0}};

    if (bh_dra_claims(&l, c->arena, &found, &err) < 0)
        return refuse(c, UU, err.msg);
    uint32_t n = found.n;
    bool extended = bh_dra_wants_extended(&l);
    if (n + extended == 0)
        return &bh_status_skip;
    st->claims = bh_arena_new_array(c->arena, struct claim_state, n + extended);
    for (uint32_t i = 0; i < n; i++)
        st->claims[i].msg = found.v[i];
    if (extended) {
        st->special = &st->claims[n];
        st->special->special = true;
        st->special->msg = bh_dra_special_claim(&l);
    }
    for (uint32_t i = 0; i < n + extended; i++) {
        const struct bh_status *s = read_claim(c, st, &st->claims[i]);
        if (s)
            return s;
    }
    st->n_claims = n + extended; /* only now: PostFilter looks at it */
    return NULL;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret_nodes)
{
    struct state *st = bh_arena_new(c->arena, struct state);

    (void)ret_nodes;
    /* Upstream leaves a state even when it skips, and PostFilter fails without one. */
    c->pre_filter_state = st;
    const struct bh_status *s = read_claims(c, st);
    if (s)
        return s;
    st->n_rows = c->cache->cols.n_rows;
    st->score = bh_arena_new_array(c->arena, int64_t, st->n_rows + 1);
    st->pod = (struct bh_dra_pod){.d = dra(c->args), .objects = c->objects, .arena = c->arena};
    if (st->n_to_allocate)
        bh_dra_sync(st->pod.d, c->objects);
    return NULL;
}

/* ---- Filter
 * --------------------------------------------------------------------------------------- */

static const K8s__Condition *condition(const K8s__AllocatedDeviceStatus *d, const char *type)
{
    for (size_t i = 0; i < d->n_conditions; i++)
        if (bh_streq(d->conditions[i]->type, type))
            return d->conditions[i];
    return NULL;
}

static bool is_true(const K8s__AllocatedDeviceStatus *d, const char *type)
{
    const K8s__Condition *k = condition(d, type);
    return k && bh_streq(k->status, "True");
}

static bool same_device(const K8s__AllocatedDeviceStatus *d,
                        const K8s__DeviceRequestAllocationResult *r)
{
    return bh_streq(d->driver, r->driver) && bh_streq(d->pool, r->pool) &&
           bh_streq(d->device, r->device) &&
           bh_streq(d->shareid ? d->shareid : "", r->shareid ? r->shareid : "");
}

enum binding { READY, WAITS, FAILED };

static enum binding device_binding(const K8s__ResourceClaim *claim,
                                   const K8s__DeviceRequestAllocationResult *r)
{
    const K8s__AllocatedDeviceStatus *d = NULL;

    for (size_t i = 0; i < claim->status->n_devices && !d; i++)
        d = same_device(claim->status->devices[i], r) ? claim->status->devices[i] : NULL;
    if (!d)
        return WAITS;
    for (size_t i = 0; i < r->n_bindingfailureconditions; i++)
        if (is_true(d, r->bindingfailureconditions[i]))
            return FAILED;
    for (size_t i = 0; i < r->n_bindingconditions; i++)
        if (!is_true(d, r->bindingconditions[i]))
            return WAITS;
    return READY;
}

/* Its devices could not be bound, or not in time. */
static bool binding_failed(const struct bh_call *c, const struct claim_state *cs)
{
    const K8s__DeviceAllocationResult *got = cs->allocation->devices;
    const K8s__Time *since = cs->allocation->allocationtimestamp;
    enum binding b = READY;

    for (size_t i = 0; got && b == READY && i < got->n_results; i++)
        if (got->results[i]->n_bindingconditions)
            b = device_binding(cs->msg, got->results[i]);
    if (b != WAITS || !since)
        return b == FAILED;
    return (__int128)c->now_ns >
           (__int128)since->seconds * 1000000000 + since->nanos + dra(c->args)->binding_timeout_ns;
}

/* Claims that are allocated, but not for this node. */
static bool mark_unavailable(const struct bh_call *c, struct state *st,
                             const struct bh_node_rec *node)
{
    bool any = false;

    for (uint32_t i = 0; i < st->n_claims; i++) {
        struct claim_state *cs = &st->claims[i];
        if (!cs->allocation)
            continue;
        if ((cs->where.kind == BH_DRA_NOWHERE ||
             bh_dra_matches_node(dra(c->args), &cs->where, node)) &&
            !binding_failed(c, cs))
            continue;
        cs->unavailable = true;
        any = true;
    }
    return any;
}

static int64_t result_score(const K8s__DeviceClaim *d, const struct bh_dra_allocation *al)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < al->n; i++) {
        const struct bh_dra_result *r = &al->v[i];
        bool first = i == 0 || al->v[i - 1].request != r->request;
        if (r->sub >= 0 && first)
            sum += worth(d->requests[r->request],
                         d->requests[r->request]->firstavailable[r->sub]->name);
    }
    return sum;
}

/* extended: the special claim's requests on this node. */
static const struct bh_status *allocate(struct bh_call *c, struct state *st,
                                        const struct bh_node_info *node,
                                        const K8s__DeviceClaim *extended)
{
    struct bh_dra_claim *in =
        bh_arena_new_array(&st->pod.d->scratch, struct bh_dra_claim, st->n_to_allocate);
    const struct bh_dra_allocation *out;
    struct bh_err err = {{0}};
    uint32_t n = 0;

    for (uint32_t i = 0; i < st->n_claims; i++) {
        struct claim_state *cs = &st->claims[i];
        if (!cs->allocation)
            in[n++] = (struct bh_dra_claim){.ns = ns_of(c),
                                            .name = name_of(cs),
                                            .devices = cs->special ? extended : devices_of(cs)};
    }
    switch (bh_dra_allocate(&st->pod, node->rec, in, n, &out, &err)) {
    case BH_DRA_NONE:
        return &no_solution;
    case BH_DRA_BAD_POOLS:
        return &bad_pools;
    case BH_DRA_TIMED_OUT:
        return bh_status_new(c->arena, BH_ERROR, NAME,
                             "node %s: timed out trying to allocate devices",
                             bh_sym_text(c->tab, node->name));
    case BH_DRA_ERROR:
        return refuse(c, BH_ERROR, err.msg);
    case BH_DRA_DONE:
        break;
    }
    int64_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += in[i].devices ? result_score(in[i].devices, &out[i]) : 0;
    if (node->row < st->n_rows)
        st->score[node->row] = sum;
    return NULL;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    struct state *st = c->pre_filter_state;
    struct bh_dra_lookup l = lookup(c);
    K8s__DeviceClaim extended = K8S__DEVICE_CLAIM__INIT;
    const struct bh_status *s = NULL;

    bh_arena_reset(&st->pod.d->scratch);
    if (st->special) {
        if (devices_of(st->special) && devices_of(st->special)->n_requests)
            return &left_over;
        enum bh_dra_extended by =
            bh_dra_extended_requests(&l, &st->pod.d->scratch, node->rec, &extended);
        if (by == BH_DRA_BY_NOBODY)
            return &no_provider;
        if (by == BH_DRA_BY_PLUGIN && st->n_claims == 1)
            return NULL;
    }
    bool unavailable = mark_unavailable(c, st, node->rec);
    if (st->n_to_allocate)
        s = allocate(c, st, node, &extended);
    return s ? s : unavailable ? &elsewhere : NULL;
}

/* ---- PostFilter
 * ----------------------------------------------------------------------------------- */

static const struct bh_status *post_filter(struct bh_call *c, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret)
{
    const struct state *st = c->pre_filter_state;
    struct bh_str uid = bh_rec_text(c->pod->rec, c->pod->rec->uid);

    (void)d;
    (void)ret;
    if (!st)
        return &no_state;
    if (!st->n_claims)
        return &nothing_to_free;
    for (uint32_t i = 0; i < st->n_claims; i++) {
        const struct claim_state *cs = &st->claims[i];
        if (cs->unavailable &&
            (cs->msg->status->n_reservedfor == 0 ||
             (cs->msg->status->n_reservedfor == 1 && bh_dra_reserved_for(cs->msg, uid))))
            return &cannot_free;
    }
    return &still_not;
}

/* ---- Score
 * ---------------------------------------------------------------------------------------- */

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *node,
                                     int64_t *ret)
{
    const struct state *st = c->pre_filter_state;

    *ret = 0;
    for (uint32_t i = 0; st && i < st->n_claims; i++)
        *ret += st->claims[i].score;
    if (st && st->n_claims && node->row < st->n_rows)
        *ret += st->score[node->row];
    return NULL;
}

static void normalize(struct bh_call *c, int64_t *scores, uint32_t n)
{
    (void)c;
    bh_default_normalize(scores, n, false);
}

/* Only asked for pods that are idle here. */
static void score_rows(struct bh_call *c, const uint32_t *rows, uint32_t n, int64_t *ret)
{
    (void)c;
    (void)rows;
    memset(ret, 0, n * sizeof *ret);
}

static bool idle(struct bh_call *c)
{
    struct bh_dra_lookup l = lookup(c);

    return !c->pod->shape->claims.n && !bh_dra_wants_extended(&l);
}

/* NodeResourcesFit leaves resources that classes map to this plugin. */
static uint64_t epoch(struct bh_call *c)
{
    return c->objects->version[BH_KIND_DEVICECLASS];
}

/* ---- after a node was chosen
 * ------------------------------------------------------------------------ */

static bool all_set(struct bh_call *c, bh_sym node)
{
    struct bh_dra_lookup l = lookup(c);
    struct bh_str uid = bh_rec_text(c->pod->rec, c->pod->rec->uid);
    const struct bh_node_info *ni = bh_cache_node(c->cache, node);
    struct bh_dra_found found;
    K8s__DeviceClaim extended;
    struct bh_err err;

    if (bh_dra_claims(&l, c->arena, &found, &err) < 0)
        return false;
    for (uint32_t i = 0; i < found.n; i++)
        if (!bh_dra_allocation_of(found.v[i]) || !bh_dra_reserved_for(found.v[i], uid))
            return false;
    return !bh_dra_wants_extended(&l) ||
           (ni && bh_dra_extended_requests(&l, c->arena, ni->rec, &extended) == BH_DRA_BY_PLUGIN);
}

static const struct bh_status *reserve(struct bh_call *c, bh_sym node)
{
    return idle(c) || all_set(c, node) ? NULL : &cannot_allocate;
}

static const struct bh_status *nothing(struct bh_call *c, bh_sym node)
{
    (void)c;
    (void)node;
    return NULL;
}

static void undo_nothing(struct bh_call *c, bh_sym node)
{
    (void)c;
    (void)node;
}

/* ---- configuration
 * ---------------------------------------------------------------------------------- */

#define SECOND_NS ((int64_t)1000000000)

static int64_t duration(const struct bh_json *args, const char *name, int64_t dflt)
{
    const char *text = args ? bh_json_get_str(args, name) : NULL;
    int64_t ns;

    return text && bh_parse_duration_ns(text, &ns) == 0 ? ns : dflt;
}

static void args_check(const struct bh_json *args, const char *path, struct bh_field_errors *errs)
{
    if (duration(args, "bindingTimeout", 600 * SECOND_NS) < SECOND_NS)
        bh_field_error(errs, "%s.bindingTimeout: Invalid value: %s: must be at least 1 second",
                       path, bh_field_value(errs->a, bh_json_get(args, "bindingTimeout")));
    if (duration(args, "filterTimeout", 10 * SECOND_NS) < 0)
        bh_field_error(errs, "%s.filterTimeout: Invalid value: %s: must be zero or positive", path,
                       bh_field_value(errs->a, bh_json_get(args, "filterTimeout")));
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err)
{
    struct bh_dra *d = bh_arena_new(env->arena, struct bh_dra);

    (void)err;
    bh_dra_init(d, env->tab);
    d->filter_timeout_ns = duration(args, "filterTimeout", 10 * SECOND_NS);
    d->binding_timeout_ns = duration(args, "bindingTimeout", 600 * SECOND_NS);
    *ret = d;
    return 0;
}

static void args_free(void *args)
{
    if (args)
        bh_dra_fini(args);
}

static const struct bh_event_reg events[] = {
    {.on = BH_ON_NODE, .actions = BH_EV_ADD | BH_EV_NODE_LABEL | BH_EV_NODE_ALLOCATABLE},
    {BH_ON_OBJECT, BH_KIND_RESOURCECLAIM, BH_EV_ADD | BH_EV_UPDATE, bh_dra_hint_claim},
    {.on = BH_ON_POD, .actions = BH_EV_POD_CLAIM, .hint = bh_dra_hint_pod},
    {.on = BH_ON_OBJECT, .kind = BH_KIND_DEVICECLASS, .actions = BH_EV_ADD | BH_EV_UPDATE},
    {.on = BH_ON_OBJECT, .kind = BH_KIND_RESOURCESLICE, .actions = BH_EV_ADD | BH_EV_UPDATE},
    {.actions = 0},
};

static const struct bh_field schema[] = {
    {"filterTimeout", BH_FIELD_DURATION, NULL, NULL},
    {"bindingTimeout", BH_FIELD_DURATION, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};

const struct bh_plugin bh_plugin_dynamic_resources = {
    .abi = BH_PLUGIN_ABI,
    .size = sizeof(struct bh_plugin),
    .name = NAME,
    .points = BH_POINT_BIT(BH_POINT_PRE_ENQUEUE) | BH_POINT_BIT(BH_POINT_PRE_FILTER) |
              BH_POINT_BIT(BH_POINT_FILTER) | BH_POINT_BIT(BH_POINT_POST_FILTER) |
              BH_POINT_BIT(BH_POINT_SCORE) | BH_POINT_BIT(BH_POINT_RESERVE) |
              BH_POINT_BIT(BH_POINT_PRE_BIND),
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .args_free = args_free,
    .events = events,
    .pre_enqueue = pre_enqueue,
    .pre_filter = pre_filter,
    .filter = filter,
    .post_filter = post_filter,
    .score = score,
    .score_rows = score_rows,
    .normalize = normalize,
    .reserve = reserve,
    .unreserve = undo_nothing,
    .pre_bind = nothing,
    .idle = idle,
    .epoch = epoch,
};
