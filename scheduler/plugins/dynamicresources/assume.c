/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/dynamicresources/assume.c - Reserve, Unreserve, PreBind's checks and the claims
 * as they shall be written
 *
 * Reserve searches anew: what Filter found on the node is what it finds again, because nothing
 * changed since. Allocations are in flight from then on: their devices count as allocated, and no
 * other pod may use the claims, until the writes are done.
 *
 * Upstream: pkg/scheduler/framework/plugins/dynamicresources (Reserve, Unreserve, PreBind,
 *           bindClaim); differences: a claim that the pod lists twice is allocated once (upstream
 *           fails to bind such a pod); no empty claim for extended resources that the node's device
 *           plugins serve (upstream fails to bind that pod).
 */
#include "common/k8s/codec.h"
#include "scheduler/framework/framework.h"
#include "scheduler/plugins/dynamicresources/cycle.h"
#include "scheduler/plugins/volumebinding/storage.h"

#define NAME "DynamicResources"

BH_STATUS_CONST(waits, BH_WAIT, NAME, "devices are not ready yet");

static struct bh_str uid_of(const struct bh_call *c)
{
    return bh_rec_uid(c->pod->rec);
}

static const struct bh_status *failed(struct bh_call *c, const char *text)
{
    return bh_status_new(c->arena, BH_ERROR, NAME, "%s", text);
}

/* ---- claims as they shall be ---- */

static K8s__ResourceClaim *copy_of(struct bh_arena *a, const K8s__ResourceClaim *claim)
{
    K8s__ResourceClaim *c = (void *)bh_pb_copy(a, &claim->base);

    if (!c->status)
        c->status = bh_pb_new(a, &k8s__resource_claim_status__descriptor);
    return c;
}

static void add_finalizer(struct bh_arena *a, K8s__ObjectMeta *m)
{
    char **v = bh_arena_new_array(a, char *, m->n_finalizers + 1);

    for (size_t i = 0; i < m->n_finalizers; i++) {
        v[i] = m->finalizers[i];
        if (bh_streq(v[i], BH_DRA_FINALIZER))
            return;
    }
    v[m->n_finalizers++] = bh_arena_strdup(a, BH_DRA_FINALIZER);
    m->finalizers = v;
}

static void reserve_for(const struct bh_call *c, struct bh_arena *a, K8s__ResourceClaimStatus *s)
{
    K8s__ResourceClaimConsumerReference **v =
        bh_arena_new_array(a, K8s__ResourceClaimConsumerReference *, s->n_reservedfor + 1);
    K8s__ResourceClaimConsumerReference *r =
        bh_pb_new(a, &k8s__resource_claim_consumer_reference__descriptor);

    r->resource = bh_arena_strdup(a, "pods");
    r->name = bh_arena_strdup(a, bh_rec_text(c->pod->rec, c->pod->rec->name).p);
    r->uid = bh_arena_strdup(a, uid_of(c).p);
    if (s->n_reservedfor)
        memcpy(v, s->reservedfor, s->n_reservedfor * sizeof *v);
    v[s->n_reservedfor++] = r;
    s->reservedfor = v;
}

/* The claim that stands for extended resources; the server makes its name and uid. */
static K8s__ResourceClaim *new_claim(const struct bh_call *c, struct bh_arena *a,
                                     const K8s__DeviceClaim *devices)
{
    K8s__ResourceClaim claim = K8S__RESOURCE_CLAIM__INIT;
    K8s__ResourceClaimSpec spec = K8S__RESOURCE_CLAIM_SPEC__INIT;
    K8s__ObjectMeta m = K8S__OBJECT_META__INIT;
    K8s__OwnerReference owner = K8S__OWNER_REFERENCE__INIT, *owners = &owner;
    K8s__StringEntry note = K8S__STRING_ENTRY__INIT, *notes = &note;
    const char *pod = bh_rec_text(c->pod->rec, c->pod->rec->name).p;

    note.key = bh_arena_strdup(a, BH_DRA_SPECIAL_ANNOTATION);
    note.value = bh_arena_strdup(a, "true");
    owner.apiversion = bh_arena_strdup(a, "v1");
    owner.kind = bh_arena_strdup(a, "Pod");
    owner.name = bh_arena_strdup(a, pod);
    owner.uid = bh_arena_strdup(a, uid_of(c).p);
    owner.has_controller = owner.controller = true;
    m.namespace_ = bh_arena_strdup(a, bh_rec_namespace(c->pod->rec));
    m.generatename = bh_arena_printf(a, "%s-extended-resources-", pod);
    m.n_ownerreferences = m.n_annotations = 1;
    m.ownerreferences = &owners;
    m.annotations = &notes;
    spec.devices = (K8s__DeviceClaim *)(uintptr_t)devices; /* only read */
    claim.metadata = &m;
    claim.spec = &spec;
    return copy_of(a, &claim); /* of everything above */
}

static struct bh_write write_of(enum bh_write_what what, const K8s__ResourceClaim *claim)
{
    return bh_write_of(what, BH_KIND_RESOURCECLAIM, &claim->base);
}

struct bh_write bh_dra_deallocation(struct bh_arena *a, const K8s__ResourceClaim *claim)
{
    K8s__ResourceClaim *c = copy_of(a, claim);

    c->status->allocation = NULL;
    c->status->n_reservedfor = 0;
    c->status->n_devices = 0;
    return write_of(BH_WRITE_DEALLOCATION, c);
}

struct bh_write bh_dra_deletion(struct bh_arena *a, const K8s__ResourceClaim *claim)
{
    K8s__ResourceClaim *c = copy_of(a, claim);
    size_t n = 0;

    for (size_t i = 0; i < c->metadata->n_finalizers; i++)
        if (!bh_streq(c->metadata->finalizers[i], BH_DRA_FINALIZER))
            c->metadata->finalizers[n++] = c->metadata->finalizers[i];
    c->metadata->n_finalizers = n;
    return write_of(BH_WRITE_DELETE_CLAIM, c);
}

/* ---- Reserve ---- */

struct reserving {
    struct bh_call *c;
    struct bh_dra_cycle *st;
    struct bh_reservation *r;
    const struct bh_node_rec *node;
};

/* The claim with its allocation and the pod goes into the list, and in flight. */
static void list_allocation(struct reserving *k, const struct bh_dra_claim_state *cs,
                            const K8s__DeviceClaim *devices, const K8s__AllocationResult *result)
{
    struct bh_arena *a = &k->r->arena;
    bool create = !cs->msg;
    K8s__ResourceClaim *claim = create ? new_claim(k->c, a, devices) : copy_of(a, cs->msg);
    const char *key = create ? bh_dra_special_key(a, uid_of(k->c)) : claim->metadata->uid;

    add_finalizer(a, claim->metadata);
    claim->status->allocation = (void *)bh_pb_copy(a, &result->base);
    reserve_for(k->c, a, claim->status);
    struct bh_write w = write_of(create ? BH_WRITE_NEW_CLAIM : BH_WRITE_ALLOCATION, claim);
    if (create) {
        struct bh_dra_lookup l = bh_dra_lookup_of(k->c);
        w.pod_status = bh_dra_extended_mappings(&l, a, k->node);
    }
    bh_reservation_add(k->r, &w);
    bh_reservation_fly(bh_dra_of(k->c)->reserved, k->r, key, claim);
}

/* The pod lists the claim twice. */
static bool is_listed(const struct bh_dra_cycle *st, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (st->claims[k].msg && st->claims[k].msg == st->claims[i].msg)
            return true;
    return false;
}

static const struct bh_status *list_all(struct reserving *k, const struct bh_dra_claim *in,
                                        const struct bh_dra_allocation *out)
{
    const struct bh_dra_cycle *st = k->st;
    struct bh_dra *d = st->pod.d;
    struct bh_err err = {{0}};
    uint32_t at = 0;

    for (uint32_t i = 0; i < st->n_claims; i++) {
        const struct bh_dra_claim_state *cs = &st->claims[i];
        if (cs->pending) { /* whichever of the members writes first writes the allocation */
            if (!is_listed(st, i))
                list_allocation(k, cs, NULL, cs->allocation);
            continue;
        }
        if (cs->allocation) {
            if (!is_listed(st, i) && !bh_dra_reserved_for(cs->msg, uid_of(k->c))) {
                K8s__ResourceClaim *claim = copy_of(&k->r->arena, cs->msg);
                reserve_for(k->c, &k->r->arena, claim->status);
                const struct bh_write w = write_of(BH_WRITE_RESERVATION, claim);
                bh_reservation_add(k->r, &w);
            }
            continue;
        }
        const struct bh_dra_claim *claim = &in[at];
        const struct bh_dra_allocation *al = &out[at++];
        if (is_listed(st, i) || (!cs->msg && !claim->devices->n_requests))
            continue;
        uint64_t salt = bh_hash(uid_of(k->c).p, uid_of(k->c).n, d->shares++);
        K8s__AllocationResult *result = bh_dra_result(
            &st->pod, &d->scratch, claim, al, bh_sym_text(k->c->tab, k->node->name), salt, &err);
        if (!result)
            return failed(k->c, err.msg);
        list_allocation(k, cs, claim->devices, result);
    }
    return NULL;
}

const struct bh_status *bh_dra_reserve(struct bh_call *c, bh_sym node)
{
    struct bh_dra_cycle *st = bh_arena_new(c->arena, struct bh_dra_cycle);
    const struct bh_node_info *ni = bh_cache_node(c->cache, node);
    const struct bh_dra_allocation *out = NULL;
    const struct bh_dra_claim *in = NULL;
    const struct bh_status *s = bh_dra_read(c, st);
    K8s__DeviceClaim extended;

    if (bh_status_code(s) == BH_SKIP)
        return NULL;
    if (s)
        return s;
    if (!ni)
        return failed(c, "claim allocation not found for node");
    bh_arena_reset(&st->pod.d->scratch);
    if (bh_dra_extended_on(c, st, ni->rec, &extended, &s))
        return s;
    if (st->n_to_allocate)
        s = bh_dra_search(c, st, ni, &extended, &in, &out);
    if (s)
        return s;
    struct reserving k = {.c = c,
                          .st = st,
                          .node = ni->rec,
                          .r = bh_reservation_for(bh_dra_of(c)->reserved, uid_of(c), node)};
    return list_all(&k, in, out);
}

/* The engine drops the reservation, and with it what is in flight. */
void bh_dra_unreserve(struct bh_call *c BH_UNUSED, bh_sym node BH_UNUSED)
{
}

/* ---- what is at the API server already ---- */

static const K8s__ResourceClaim *written_claim(const struct bh_reservation *r)
{
    for (uint32_t i = 0; r && i < r->n; i++)
        if (r->v[i].what == BH_WRITE_NEW_CLAIM)
            return (const void *)r->state[i].written;
    return NULL;
}

uint32_t bh_dra_undo_work(struct bh_call *c, const struct bh_write **ret)
{
    const struct bh_reservation *r = bh_reservation_of(bh_dra_of(c)->reserved, uid_of(c));
    const K8s__ResourceClaim *special = written_claim(r);
    struct bh_dra_lookup l = bh_dra_lookup_of(c);
    struct bh_dra_found found = {0};
    struct bh_err err = {{0}};
    uint32_t n = 0;

    if (bh_dra_claims(&l, c->arena, &found, &err) < 0)
        found.n = 0; /* gone, or another's: nothing of ours is in it */
    struct bh_write *v = bh_arena_new_array(c->arena, struct bh_write, found.n + 1);
    for (uint32_t i = 0; i < found.n; i++) {
        if (!bh_dra_allocation_of(found.v[i]) || !bh_dra_reserved_for(found.v[i], uid_of(c)))
            continue;
        K8s__ResourceClaim *claim = copy_of(c->arena, found.v[i]);
        K8s__ResourceClaimStatus *s = claim->status;
        size_t kept = 0;
        for (size_t k = 0; k < s->n_reservedfor; k++)
            if (!bh_str_eq(bh_str_c(s->reservedfor[k]->uid), uid_of(c)))
                s->reservedfor[kept++] = s->reservedfor[k];
        s->n_reservedfor = kept;
        v[n++] = write_of(BH_WRITE_UNRESERVATION, claim);
    }
    if (special)
        v[n++] = bh_dra_deletion(c->arena, special);
    *ret = v;
    return n;
}

/* ---- PreBind: are the devices ready ---- */

/* NULL: ready. */
static const struct bh_status *check_claim(struct bh_call *c, const K8s__ResourceClaim *claim)
{
    const K8s__Condition *why = NULL;
    const char *name = claim->metadata->name;

    if (!bh_dra_allocation_of(claim))
        return &waits;
    switch (bh_dra_binding_of(claim, &why)) {
    case BH_DRA_BINDING_FAILED:
        return bh_status_new(c->arena, BH_ERROR, NAME,
                             "device binding failed: claim=%s, reason=%s, message=%s", name,
                             why->reason, bh_quoted(c->arena, why->message));
    case BH_DRA_NOT_READY:
        if (!bh_dra_binding_late(bh_dra_of(c), claim, c->now_ns))
            return &waits;
        return bh_status_new(c->arena, BH_ERROR, NAME, "device binding timeout: claim=%s", name);
    case BH_DRA_READY:
        break;
    }
    return NULL;
}

const struct bh_status *bh_dra_pre_bind(struct bh_call *c, bh_sym node BH_UNUSED, int64_t since_ns)
{
    const struct bh_dra *d = bh_dra_of(c);
    const K8s__ResourceClaim *special = written_claim(bh_reservation_of(d->reserved, uid_of(c)));
    struct bh_dra_lookup l = bh_dra_lookup_of(c);
    const struct bh_status *s = NULL;
    struct bh_err err = {{0}};
    struct bh_dra_found found;
    bool conditions = false;

    if (!c->pod->shape->claims.n && !special)
        return NULL;
    if (bh_dra_claims(&l, c->arena, &found, &err) < 0)
        return failed(c, err.msg);
    if (special)
        special =
            (const void *)bh_objects_get(c->objects, BH_KIND_RESOURCECLAIM,
                                         special->metadata->namespace_, special->metadata->name);
    if (special)
        found.v[found.n++] = special;
    for (uint32_t i = 0; i < found.n; i++) {
        const K8s__DeviceAllocationResult *got = bh_dra_results_of(&found.v[i]->base);
        for (size_t k = 0; got && k < got->n_results; k++)
            conditions |= got->results[k]->n_bindingconditions > 0;
    }
    for (uint32_t i = 0; conditions && !s && i < found.n; i++)
        s = check_claim(c, found.v[i]);
    if (s == &waits && c->now_ns - since_ns >= d->binding_timeout_ns)
        return failed(c, "device binding timeout: context deadline exceeded");
    return s;
}
