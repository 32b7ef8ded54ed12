/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/dynamic_resources.c - claims find devices, devices find nodes
 *
 * Pods without claims and without resources that devices provide are idle here. For all others the
 * fast path asks for the nodes that have what the pod asks for (asked.h); where a search fails,
 * alternatives make nodes differ by score, or devices share counters, the reference path decides.
 *
 * Upstream:   pkg/scheduler/framework/plugins/dynamicresources; differences: PreBind's and
 *             PostFilter's writes are lists for a binder (assume.c); of several claims that
 *             PostFilter may free it takes the first (upstream: any).
 */
#include "common/base/opt.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/dynamicresources/asked.h"
#include "scheduler/plugins/dynamicresources/device_class.h"
#include "scheduler/plugins/dynamicresources/hints.h"
#include "scheduler/plugins/registry.h"

#define NAME    "DynamicResources"
#define UU      BH_UNSCHEDULABLE_AND_UNRESOLVABLE
#define ALT_MAX 8 /* alternatives of a request */

BH_STATUS_CONST(nothing_to_free, BH_UNSCHEDULABLE, NAME, "no new claims to deallocate");
BH_STATUS_CONST(still_not, BH_UNSCHEDULABLE, NAME, "still not schedulable");
BH_STATUS_CONST(freed, BH_UNSCHEDULABLE, NAME, "deallocation of ResourceClaim completed");
BH_STATUS_CONST(deleted, BH_UNSCHEDULABLE, NAME, "deletion of ResourceClaim completed");
BH_STATUS_CONST(no_state, BH_ERROR, NAME, "not found");
BH_STATUS_CONST(no_solution, UU, NAME, "cannot allocate all claims");
BH_STATUS_CONST(bad_pools, UU, NAME, "invalid resource pools were encountered");
BH_STATUS_CONST(elsewhere, UU, NAME, "resourceclaim not available on the node");
BH_STATUS_CONST(left_over, UU, NAME, "cannot schedule extended resource claim");
BH_STATUS_CONST(no_provider, UU, NAME, "cannot fit resource");

static const struct bh_status *refuse(struct bh_call *c, enum bh_code code, const char *text)
{
    return bh_status_new(c->arena, code, NAME, "%s", text);
}

static const struct bh_status *pre_enqueue(struct bh_call *c)
{
    struct bh_dra_lookup l = bh_dra_lookup_of(c);
    struct bh_err err = {{0}};

    return bh_dra_claims(&l, NULL, NULL, &err) < 0 ? refuse(c, UU, err.msg) : NULL;
}

/* ---- PreFilter ---- */

static const char *name_of(const struct bh_dra_claim_state *cs)
{
    return cs->msg && cs->msg->metadata ? cs->msg->metadata->name : BH_DRA_SPECIAL_NAME;
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

static const struct bh_status *check_requests(struct bh_call *c,
                                              const struct bh_dra_claim_state *cs)
{
    const K8s__DeviceClaim *d = bh_dra_devices_of(cs->msg);
    const struct bh_status *s = NULL;

    for (size_t i = 0; d && !s && i < d->n_requests; i++) {
        const K8s__DeviceRequest *r = d->requests[i];
        if (r->exactly)
            s = check_class(c, r->name, r->exactly->deviceclassname);
        else if (!r->n_firstavailable)
            s = bh_status_new(c->arena, UU, NAME,
                              "resource claim %s/%s, request %s: unknown request type",
                              bh_rec_namespace(c->pod->rec), name_of(cs), r->name);
        for (size_t k = 0; !r->exactly && !s && k < r->n_firstavailable; k++)
            s = check_class(c,
                            bh_arena_printf(c->arena, "%s/%s", r->name, r->firstavailable[k]->name),
                            r->firstavailable[k]->deviceclassname);
    }
    return s;
}

static int64_t worth(const K8s__DeviceRequest *r, size_t alternative)
{
    return r->exactly ? 0 : ALT_MAX - (int64_t)alternative;
}

/* The alternative is named behind the request's name in the results. */
static bool is_of(const char *result, const K8s__DeviceRequest *r, const K8s__DeviceSubRequest *sub)
{
    size_t n = strlen(r->name);

    return strncmp(result, r->name, n) == 0 && result[n] == '/' &&
           bh_streq(result + n + 1, sub->name);
}

/* Of a claim that is not allocated. A member that is tried again where it is has the special one. */
static const struct bh_in_flight *find_flight(struct bh_call *c,
                                              const struct bh_dra_claim_state *cs)
{
    const struct bh_reservations *r = bh_dra_of(c)->reserved;

    if (!r->in_flight.len || (cs->msg && bh_dra_allocation_of(cs->msg)))
        return NULL;
    if (cs->msg)
        return cs->msg->metadata ? bh_in_flight_of(r, cs->msg->metadata->uid) : NULL;
    return bh_in_flight_of(r, bh_dra_special_key(c->arena, bh_rec_uid(c->pod->rec)));
}

static const struct bh_status *read_claim(struct bh_call *c, struct bh_dra_cycle *st,
                                          struct bh_dra_claim_state *cs)
{
    const K8s__DeviceClaim *d = bh_dra_devices_of(cs->msg);

    const struct bh_in_flight *f = find_flight(c, cs);
    cs->pending = f && bh_in_flight_is_shared(bh_dra_of(c)->reserved, f);
    cs->allocation = cs->pending ? bh_dra_allocation_of(f->claim)
                     : cs->msg   ? bh_dra_allocation_of(cs->msg)
                                 : NULL;
    const K8s__DeviceAllocationResult *got = cs->allocation ? cs->allocation->devices : NULL;
    for (size_t i = 0; d && i < d->n_requests; i++) {
        const K8s__DeviceRequest *r = d->requests[i];
        st->alternatives |= r->n_firstavailable > 0;
        for (size_t j = 0; got && j < r->n_firstavailable; j++) {
            size_t k = 0;
            while (k < got->n_results && !is_of(got->results[k]->request, r, r->firstavailable[j]))
                k++;
            cs->score += k < got->n_results ? worth(r, j) : 0;
        }
    }
    if (cs->allocation) {
        cs->where = bh_dra_where_of(c->arena, c->tab, NULL, false, cs->allocation->nodeselector);
        return cs->where.error ? refuse(c, BH_ERROR, cs->where.error) : NULL;
    }
    st->n_to_allocate++;
    if (f && cs->msg)
        return bh_status_new(c->arena, UU, NAME,
                             "resource claim %s/%s is in the process of being allocated",
                             bh_rec_namespace(c->pod->rec), name_of(cs));
    return cs->special ? NULL : check_requests(c, cs);
}

static const struct bh_status *read_claims(struct bh_call *c, struct bh_dra_cycle *st)
{
    struct bh_dra_lookup l = bh_dra_lookup_of(c);
    struct bh_dra_found found;
    struct bh_err err = {{0}};

    if (bh_dra_claims(&l, c->arena, &found, &err) < 0)
        return refuse(c, UU, err.msg);
    uint32_t n = found.n;
    bool extended = bh_dra_wants_extended(&l);
    if (n + extended == 0)
        return &bh_status_skip;
    st->claims = bh_arena_new_array(c->arena, struct bh_dra_claim_state, n + extended);
    for (uint32_t i = 0; i < n; i++)
        st->claims[i].msg = found.v[i];
    if (extended) {
        st->classes = bh_dra_classes_for(&l, c->arena);
        st->special = &st->claims[n];
        st->special->special = true;
        if (bh_dra_may_own(&bh_dra_of(c)->owners, c->objects, bh_rec_uid(c->pod->rec)))
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

const struct bh_status *bh_dra_read(struct bh_call *c, struct bh_dra_cycle *st)
{
    const struct bh_status *s = read_claims(c, st);

    if (s)
        return s;
    st->pod = (struct bh_dra_pod){.d = bh_dra_of(c), .objects = c->objects, .arena = c->arena};
    if (st->n_to_allocate)
        bh_dra_sync(st->pod.d, c->objects);
    return NULL;
}

static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret BH_UNUSED)
{
    struct bh_dra_cycle *st = bh_arena_new(c->arena, struct bh_dra_cycle);

    /* Upstream leaves a state even when it skips, and PostFilter fails without one. */
    c->pre_filter_state = st;
    const struct bh_status *s = bh_dra_read(c, st);
    if (s)
        return s;
    st->n_rows = c->cache->cols.n_rows;
    st->score = bh_arena_new_array(c->arena, int64_t, st->n_rows + 1);
    return NULL;
}

/* ---- Filter ---- */

/* On a node that is good otherwise: only these are remembered for PostFilter. */
static const struct bh_status *check_available(const struct bh_call *c, struct bh_dra_cycle *st,
                                               const struct bh_node_rec *node)
{
    bool any = false;

    for (uint32_t i = 0; i < st->n_claims; i++) {
        struct bh_dra_claim_state *cs = &st->claims[i];
        if (!cs->allocation)
            continue;
        /* Not for this node, or its devices could not be bound, or not in time. */
        bool here =
            cs->where.kind == BH_DRA_NOWHERE || bh_dra_matches_node(bh_dra_of(c), &cs->where, node);
        enum bh_dra_binding b = !here         ? BH_DRA_BINDING_FAILED
                                : cs->pending ? BH_DRA_READY
                                              : bh_dra_binding_of(cs->msg, NULL);
        if (b == BH_DRA_BINDING_FAILED ||
            (b == BH_DRA_NOT_READY && bh_dra_binding_late(bh_dra_of(c), cs->msg, c->now_ns)))
            any = cs->unavailable = true;
    }
    return any ? &elsewhere : NULL;
}

static const struct bh_status *refused(struct bh_call *c, enum bh_dra_outcome o,
                                       const struct bh_node_rec *node, const struct bh_err *err)
{
    switch (o) {
    case BH_DRA_NONE:
        return &no_solution;
    case BH_DRA_BAD_POOLS:
        return &bad_pools;
    case BH_DRA_TIMED_OUT:
        return bh_status_new(c->arena, BH_ERROR, NAME,
                             "node %s: timed out trying to allocate devices",
                             bh_sym_text(c->tab, node->name));
    case BH_DRA_ERROR:
        return refuse(c, BH_ERROR, err->msg);
    case BH_DRA_DONE:
        break;
    }
    return NULL;
}

const struct bh_status *bh_dra_search(struct bh_call *c, struct bh_dra_cycle *st,
                                      const struct bh_node_info *node,
                                      const K8s__DeviceClaim *extended,
                                      const struct bh_dra_claim **ret_in,
                                      const struct bh_dra_allocation **ret_out)
{
    struct bh_dra *d = st->pod.d;
    struct bh_err err = {{0}};
    uint32_t n = st->n_to_allocate;

    if (!st->in || st->special) { /* with extended, as the node at hand sees them */
        /* Not c->arena: in a dry run that is gone before the state is. */
        struct bh_arena *a = st->special ? &d->scratch : st->pod.arena;
        struct bh_dra_claim *to = bh_arena_new_array(a, struct bh_dra_claim, n);
        st->in = to;
        for (uint32_t i = 0; i < st->n_claims; i++) {
            const struct bh_dra_claim_state *cs = &st->claims[i];
            const K8s__DeviceClaim *devices = cs->special ? extended : bh_dra_devices_of(cs->msg);
            if (!cs->allocation)
                *to++ = (struct bh_dra_claim){
                    .ns = bh_rec_namespace(c->pod->rec), .name = name_of(cs), .devices = devices};
        }
    }
    const struct bh_dra_claim *in = *ret_in = st->in;
    st->pod.same_claims = !st->special;
    st->pod.group = 0;
    const struct bh_dra_sight *sight = bh_dra_sight_of(d, c->cache, node, &st->pod.group);
    enum bh_dra_outcome o = bh_dra_allocate(&st->pod, node->rec, sight, in, n, ret_out, &err);
    const struct bh_status *s = refused(c, o, node->rec, &err);
    for (uint32_t i = 0; !s && i < n; i++)
        if (bh_dra_check_reach(&st->pod, &in[i], &(*ret_out)[i], &err) < 0)
            s = refuse(c, BH_ERROR, err.msg);
    return s;
}

static const struct bh_status *allocate(struct bh_call *c, struct bh_dra_cycle *st,
                                        const struct bh_node_info *node,
                                        const K8s__DeviceClaim *extended)
{
    const struct bh_dra_allocation *out;
    const struct bh_dra_claim *in;
    const struct bh_status *s = bh_dra_search(c, st, node, extended, &in, &out);
    int64_t sum = 0;

    if (s)
        return s;
    for (uint32_t i = 0; i < st->n_to_allocate; i++)
        for (uint32_t k = 0; in[i].devices && k < out[i].n; k++) {
            const struct bh_dra_result *r = &out[i].v[k];
            if (r->sub >= 0 && (k == 0 || r[-1].request != r->request))
                sum += worth(in[i].devices->requests[r->request], (size_t)r->sub);
        }
    for (uint32_t i = 0; i < st->n_claims; i++)
        sum += st->claims[i].score;
    if (node->row < st->n_rows)
        st->score[node->row] = sum;
    return NULL;
}

bool bh_dra_extended_on(struct bh_call *c, const struct bh_dra_cycle *st,
                        const struct bh_node_rec *node, K8s__DeviceClaim *ret,
                        const struct bh_status **ret_status)
{
    const struct bh_dra_claim_state *special = st->special;
    struct bh_dra_lookup l = bh_dra_lookup_of(c);

    l.classes = st->classes;
    k8s__device_claim__init(ret);
    *ret_status = NULL;
    if (!special)
        return false;
    if (bh_dra_devices_of(special->msg) && bh_dra_devices_of(special->msg)->n_requests) {
        *ret_status = &left_over;
        return true;
    }
    enum bh_dra_extended by = bh_dra_extended_requests(&l, &st->pod.d->scratch, node, ret);
    if (by == BH_DRA_BY_NOBODY) {
        *ret_status = &no_provider;
        return true;
    }
    return (by == BH_DRA_BY_PLUGIN || special->allocation) && st->n_claims == 1;
}

static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *node)
{
    struct bh_dra_cycle *st = c->pre_filter_state;
    const struct bh_status *s;
    K8s__DeviceClaim extended;

    bh_arena_reset(&st->pod.d->scratch);
    if (bh_dra_extended_on(c, st, node->rec, &extended, &s))
        return s;
    s = st->n_to_allocate ? allocate(c, st, node, &extended) : NULL;
    return s ? s : check_available(c, st, node->rec);
}

/* ---- PostFilter ---- */

static const struct bh_status *post_filter(struct bh_call *c,
                                           const struct bh_diagnosis *d BH_UNUSED,
                                           struct bh_post_filter_result *ret)
{
    struct bh_str uid = bh_rec_uid(c->pod->rec);
    struct bh_write *w = bh_arena_new(c->arena, struct bh_write);
    const struct bh_dra_cycle *st = c->pre_filter_state;

    if (!st)
        return &no_state;
    if (!st->n_claims)
        return &nothing_to_free;
    ret->writes = w;
    for (uint32_t i = 0; i < st->n_claims; i++) {
        const struct bh_dra_claim_state *cs = &st->claims[i];
        if (!cs->unavailable || cs->special || cs->pending ||
            !(cs->msg->status->n_reservedfor == 0 ||
              (cs->msg->status->n_reservedfor == 1 && bh_dra_reserved_for(cs->msg, uid))))
            continue;
        *w = bh_dra_deallocation(c->arena, cs->msg);
        ret->n_writes = 1;
        return &freed;
    }
    if (!st->special || !st->special->msg)
        return &still_not;
    *w = bh_dra_deletion(c->arena, st->special->msg);
    ret->n_writes = 1;
    return &deleted;
}

/* ---- Score ---- */

/* 0 as well when nothing had to be allocated: upstream has no results to look at then. */
static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *ni, int64_t *ret)
{
    const struct bh_dra_cycle *st = c->pre_filter_state;

    *ret = st && st->n_claims && ni->row < st->n_rows ? st->score[ni->row] : 0;
    return st ? NULL : &no_state;
}

static void normalize(struct bh_call *c BH_UNUSED, int64_t *scores, uint32_t n)
{
    bh_default_normalize(scores, n, false);
}

/* For the fast path, which knows nothing of this plugin's normalisation: an impossible score sends
 * pods that have any to the reference path. */
static void score_rows(struct bh_call *c, const uint32_t *rows BH_UNUSED, uint32_t n, int64_t *ret)
{
    const struct bh_dra_cycle *st = c->pre_filter_state;
    int64_t all = st && st->alternatives ? -1 : 0;

    for (uint32_t i = 0; i < n; i++)
        ret[i] = all;
}

static uint32_t filter_rows(struct bh_call *c, uint32_t *rows, uint32_t n)
{
    const struct bh_dra_cycle *st = c->pre_filter_state;
    uint32_t m = 0;

    if (!st->asked)
        return bh_filter_one_by_one(c, &bh_plugin_dynamic_resources, rows, n);
    for (uint32_t i = 0; i < n; i++)
        if (bh_dra_answer(st->asked, rows[i]))
            rows[m++] = rows[i];
    return m;
}

static enum bh_overlay_answer ask(struct bh_call *c, uint32_t *rows, uint32_t *n)
{
    struct bh_dra_cycle *st = c->pre_filter_state;

    if (st->alternatives)
        return BH_OVERLAY_FAILS;
    if (!st->n_to_allocate)
        return BH_OVERLAY_SOME; /* no search, no failure */
    st->asked = bh_dra_ask(c, st, filter);
    if (!st->asked)
        return BH_OVERLAY_FAILS;
    if (bh_dra_n_yes(st->asked) == c->cache->n_nodes)
        return BH_OVERLAY_ALL;
    *n = bh_dra_yes_rows(st->asked, rows);
    return BH_OVERLAY_ONLY;
}

static bool scores(struct bh_call *c BH_UNUSED)
{
    return false; /* see ask: no alternatives, no score */
}

static const struct bh_overlay_ops overlay = {.ask = ask, .scores = scores};

static bool idle(struct bh_call *c)
{
    struct bh_dra_lookup l = bh_dra_lookup_of(c);

    return !c->pod->shape->claims.n && !bh_dra_wants_extended(&l);
}

/* NodeResourcesFit leaves resources that classes map to this plugin. */
static uint64_t epoch(struct bh_call *c)
{
    return c->objects->version[BH_KIND_DEVICECLASS];
}

/* ---- configuration ---- */

#define SECOND_NS ((int64_t)1000000000)

static int64_t duration(const struct bh_json *args, const char *name, int64_t dflt)
{
    const char *text = args ? bh_json_get_str(args, name) : NULL;
    int64_t ns;

    return text && bh_parse_duration_ns(text, &ns) == 0 ? ns : dflt;
}

static void args_check(const struct bh_plugin *self BH_UNUSED, const struct bh_json *args,
                       const char *path, struct bh_field_errors *errs)
{
    if (duration(args, "filterTimeout", 10 * SECOND_NS) < 0)
        bh_field_error(errs, "%s.filterTimeout: Invalid value: %s: must be zero or positive", path,
                       bh_field_value(errs->a, bh_json_get(args, "filterTimeout")));
    if (duration(args, "bindingTimeout", 600 * SECOND_NS) < SECOND_NS)
        bh_field_error(errs, "%s.bindingTimeout: Invalid value: %s: must be at least 1 second",
                       path, bh_field_value(errs->a, bh_json_get(args, "bindingTimeout")));
}

static int args_new(const struct bh_plugin_env *env, const struct bh_json *args, void **ret,
                    struct bh_err *err BH_UNUSED)
{
    struct bh_dra *d = bh_arena_new(env->arena, struct bh_dra);

    bh_dra_init(d, env->tab);
    d->reserved = env->reserved;
    d->verify = env->verify;
    d->no_taints = !bh_sched_config_gate(env->config, "DRADeviceTaints");
    d->no_alternatives = !bh_sched_config_gate(env->config, "DRAPrioritizedList");
    if (bh_sched_config_gate(env->config, "DRASchedulerFilterTimeout"))
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
    /* Upstream leaves deletions out: a claim loses its devices before it goes. If it did not, they
     * are free now. */
    {BH_ON_OBJECT, BH_KIND_RESOURCECLAIM, BH_EV_ADD | BH_EV_UPDATE | BH_EV_DELETE,
     bh_dra_hint_claim},
    {.on = BH_ON_POD, .actions = BH_EV_POD_CLAIM, .hint = bh_dra_hint_pod},
    /* Upstream leaves this out: pods that wait for a forgotten pod's devices wait for the flush. */
    {.on = BH_ON_POD, .actions = BH_EV_DELETE, .hint = bh_dra_hint_forgotten},
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
    BH_PLUGIN_HEAD(NAME),
    .flags = BH_PLUGIN_HINTS_BY_ESSENCE | BH_PLUGIN_RESERVES_CLAIMS | BH_PLUGIN_OVERLAY,
    .args_schema = schema,
    .args_check = args_check,
    .args_new = args_new,
    .args_free = args_free,
    .events = events,
    .pre_enqueue = pre_enqueue,
    .pre_filter = pre_filter,
    .filter = filter,
    .filter_rows = filter_rows,
    .overlay = &overlay,
    .without_pre_filter = &no_state,
    .post_filter = post_filter,
    .score = score,
    .score_rows = score_rows,
    .normalize = normalize,
    .reserve = bh_dra_reserve,
    .unreserve = bh_dra_unreserve,
    .pre_bind = bh_dra_pre_bind,
    .undo_work = bh_dra_undo_work,
    .idle = idle,
    .epoch = epoch,
};
