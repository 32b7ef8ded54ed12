/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/objects.c - writes to other objects than pods: volumes, their claims, ResourceClaims
 */
#include <errno.h>

#include "binder/patches.h"
#include "common/data/json.h"
#include "common/k8s/codec.h"
#include "common/k8s/quantity.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define BOUND_BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"
#define SELECTED_NODE       "volume.kubernetes.io/selected-node"
#define FINALIZER           "resource.kubernetes.io/delete-protection"
#define CONFLICTS_MAX       5u
#define NAMES_MAX           5u
#define NAME_BASE_MAX       58 /* as the API server cuts generateName */
#define SEEN_MAX            ((size_t)64 << 20)

enum todo { READ, CREATE, FINALIZERS, WRITE, POD_STATUS, REMOVE };
struct bh_object_job {
    const Berth__WorkItem *it;
    struct bh_patch_job *patch; /* a plugin's: it has nothing of what follows */
    const struct bh_kind_info *kind;
    struct bh_arena arena;      /* the job's */
    struct bh_arena seen_arena; /* of what was told last */
    struct bh_arena body_arena; /* of one request */
    ProtobufCMessage *wanted, *seen;
    enum todo todo;
    const char *name;
    unsigned conflicts, names;
    const char *conflict; /* what the API server said to the last one */
};

static bool is(const struct bh_object_job *o, Berth__WorkKind k)
{
    return o->it->kind == k;
}

static bool allocates(const struct bh_object_job *o)
{
    return is(o, BERTH__WORK_KIND__WORK_ALLOCATION) || is(o, BERTH__WORK_KIND__WORK_NEW_CLAIM);
}

static enum bh_kind kind_of(Berth__WorkKind k)
{
    if (k == BERTH__WORK_KIND__WORK_VOLUME_CLAIM)
        return BH_KIND_PERSISTENTVOLUME;
    return k == BERTH__WORK_KIND__WORK_SELECTED_NODE ? BH_KIND_PERSISTENTVOLUMECLAIM
                                                     : BH_KIND_RESOURCECLAIM;
}

/* ---- what is in objects ---------------------------------------------------------------------- */

static const K8s__ResourceClaim *claim_of(const ProtobufCMessage *m)
{
    return (const void *)m;
}

static const char *annotation(const ProtobufCMessage *m, const char *key)
{
    const K8s__ObjectMeta *meta = m ? bh_object_meta(m) : NULL;

    for (size_t i = 0; meta && i < meta->n_annotations; i++)
        if (bh_streq(meta->annotations[i]->key, key))
            return meta->annotations[i]->value;
    return NULL;
}

static bool has_finalizer(const K8s__ObjectMeta *m)
{
    for (size_t i = 0; i < m->n_finalizers; i++)
        if (bh_streq(m->finalizers[i], FINALIZER))
            return true;
    return false;
}

static const K8s__AllocationResult *allocation_of(const ProtobufCMessage *m)
{
    const K8s__ResourceClaim *c = claim_of(m);

    return c->status ? c->status->allocation : NULL;
}

static bool reserved_for(const ProtobufCMessage *m, const char *uid)
{
    const K8s__ResourceClaimStatus *s = claim_of(m)->status;

    for (size_t i = 0; s && i < s->n_reservedfor; i++)
        if (bh_streq(s->reservedfor[i]->uid, uid))
            return true;
    return false;
}

/* The same devices for the same requests; the rest follows from them. */
static bool same_devices(const K8s__AllocationResult *a, const K8s__AllocationResult *b)
{
    size_t n = a->devices ? a->devices->n_results : 0;

    if (n != (b->devices ? b->devices->n_results : 0))
        return false;
    for (size_t i = 0; i < n; i++) {
        const K8s__DeviceRequestAllocationResult *x = a->devices->results[i];
        const K8s__DeviceRequestAllocationResult *y = b->devices->results[i];
        if (!bh_streq(x->request, y->request) || !bh_streq(x->driver, y->driver) ||
            !bh_streq(x->pool, y->pool) || !bh_streq(x->device, y->device))
            return false;
    }
    return true;
}

static bool owned_by(const K8s__ObjectMeta *m, const char *uid)
{
    for (size_t i = 0; i < m->n_ownerreferences; i++)
        if (bh_streq(m->ownerreferences[i]->uid, uid))
            return true;
    return false;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The same for every binder and every try, so that a claim is not created twice. */
static const char *name_of_new(struct bh_object_job *o)
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    const char *base = bh_object_meta(o->wanted)->generatename;
    uint64_t h = UINT64_C(14695981039346656037) + o->names;
    char tail[6] = "";

    for (const char *p = o->it->uid; *p; p++)
        h = (h ^ (uint8_t)*p) * UINT64_C(1099511628211);
    for (unsigned i = 0; i < 5; i++, h /= sizeof(letters) - 1)
        tail[i] = letters[h % (sizeof(letters) - 1)];
    return bh_arena_printf(&o->arena, "%.*s%s", NAME_BASE_MAX, base, tail);
}

static enum todo first_step(const struct bh_object_job *o)
{
    bool versioned = o->it->write->resource_version && *o->it->write->resource_version;

    switch (o->it->kind) {
    case BERTH__WORK_KIND__WORK_NEW_CLAIM:
        return CREATE;
    case BERTH__WORK_KIND__WORK_UNRESERVATION:
        return WRITE;
    case BERTH__WORK_KIND__WORK_ALLOCATION:
    case BERTH__WORK_KIND__WORK_DELETE_CLAIM:
        return versioned ? FINALIZERS : READ;
    default:
        return versioned ? WRITE : READ;
    }
}

/* What the steps read without asking. */
static bool is_complete(const struct bh_object_job *o)
{
    const K8s__ObjectMeta *m = bh_object_meta(o->wanted);

    if (!m)
        return false;
    switch (o->it->kind) {
    case BERTH__WORK_KIND__WORK_VOLUME_CLAIM: {
        const K8s__PersistentVolume *v = (const void *)o->wanted;
        return v->spec && v->spec->claimref;
    }
    case BERTH__WORK_KIND__WORK_SELECTED_NODE:
        return annotation(o->wanted, SELECTED_NODE) != NULL;
    case BERTH__WORK_KIND__WORK_NEW_CLAIM:
        return *m->generatename && allocation_of(o->wanted);
    case BERTH__WORK_KIND__WORK_ALLOCATION:
        return allocation_of(o->wanted) != NULL;
    default:
        return true;
    }
}

struct bh_object_job *bh_object_job_new(const Berth__WorkItem *it, const char *plugin_writes,
                                        struct bh_err *err)
{
    const Berth__ObjectWrite *w = it->write;
    struct bh_object_job *o = bh_calloc(1, sizeof(*o));

    o->it = it;
    if (w->patch) {
        o->patch = bh_patch_job_new(w, plugin_writes, err);
        if (o->patch)
            return o;
        free(o);
        return NULL;
    }
    o->kind = &bh_kinds[kind_of(it->kind)];
    bh_arena_init(&o->arena, SEEN_MAX);
    bh_arena_init(&o->seen_arena, SEEN_MAX);
    bh_arena_init(&o->body_arena, SEEN_MAX);
    int rc = bh_pb_unpack(&o->arena, o->kind->desc, w->object.data, w->object.len, &o->wanted, err);
    if (rc == 0 && !is_complete(o))
        rc = bh_err_set(err, -EINVAL, "the %s to be written lacks what is to be written",
                        o->kind->kind_name);
    if (rc < 0) {
        bh_object_job_free(o);
        return NULL;
    }
    o->todo = first_step(o);
    o->name = o->todo == CREATE ? name_of_new(o) : w->name;
    o->conflict = "";
    return o;
}

void bh_object_job_free(struct bh_object_job *o)
{
    if (!o)
        return;
    bh_patch_job_free(o->patch);
    bh_arena_fini(&o->arena);
    bh_arena_fini(&o->seen_arena);
    bh_arena_fini(&o->body_arena);
    free(o);
}

bool bh_object_job_reads(const struct bh_object_job *o)
{
    return o->patch ? bh_patch_job_reads(o->patch) : o->todo == READ;
}

bool bh_object_job_seen(const struct bh_object_job *o, struct bh_buf *ret)
{
    bh_buf_reset(ret);
    if (o->seen)
        bh_pb_pack(ret, o->seen);
    return o->seen != NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void object_path(const struct bh_object_job *o, struct bh_buf *path, const char *sub)
{
    char list[512];

    bh_kind_path(o->kind, o->kind->namespaced ? o->it->write->namespace_ : NULL, list,
                 sizeof(list));
    bh_buf_adds(path, list);
    if (o->todo == CREATE)
        return;
    bh_url_addf(path, "/%s", o->name);
    bh_buf_adds(path, sub);
}

static const char *uid_of(const struct bh_object_job *o)
{
    return o->seen ? bh_object_meta(o->seen)->uid : o->it->write->uid;
}

/* {"metadata":{"uid":..,"resourceVersion":..}}: of this object, and of this version of it. */
static struct bh_json *patch_of(struct bh_object_job *o, bool versioned)
{
    const char *version =
        o->seen ? bh_object_meta(o->seen)->resourceversion : o->it->write->resource_version;

    return bh_json_make(&o->body_arena, "metadata: {uid: %s, resourceVersion?: %s}", uid_of(o),
                        versioned ? version : NULL);
}

static struct bh_json *write_body(struct bh_object_job *o)
{
    struct bh_arena *a = &o->body_arena;
    struct bh_json *body = patch_of(o, !is(o, BERTH__WORK_KIND__WORK_UNRESERVATION));

    switch (o->it->kind) {
    case BERTH__WORK_KIND__WORK_VOLUME_CLAIM: {
        const K8s__PersistentVolume *v = (const void *)o->wanted;
        const char *by_us = annotation(o->wanted, BOUND_BY_CONTROLLER);
        struct bh_json *ref = bh_pb_to_json(a, &v->spec->claimref->base);
        if (by_us)
            bh_json_add(a, body, "metadata: {annotations: {" BOUND_BY_CONTROLLER ": %s}}", by_us);
        bh_json_add(a, ref, "fieldPath: null");
        bh_json_add(a, body, "spec: {claimRef: %p}", ref);
    } break;
    case BERTH__WORK_KIND__WORK_SELECTED_NODE:
        bh_json_add(a, body, "metadata: {annotations: {" SELECTED_NODE ": %s}}",
                    annotation(o->wanted, SELECTED_NODE));
        break;
    case BERTH__WORK_KIND__WORK_DEALLOCATION:
        bh_json_add(a, body, "status: {allocation: null, reservedFor: null, devices: null}");
        break;
    case BERTH__WORK_KIND__WORK_UNRESERVATION:
        bh_json_add(a, body, "status: {reservedFor: [{$patch: delete, uid: %s}]}", o->it->uid);
        break;
    default:
        if (allocates(o) && !(o->seen && allocation_of(o->seen))) {
            struct bh_json *al = bh_pb_to_json(a, &allocation_of(o->wanted)->base);
            char now[32];
            if (!bh_json_get(al, "allocationTimestamp")) {
                bh_time_format(now, bh_wall_ns() / 1000000000);
                bh_json_set_str(a, al, "allocationTimestamp", now);
            }
            bh_json_add(a, body, "status: {allocation: %p}", al);
        }
        const ProtobufCMessage *base = o->seen ? o->seen : o->wanted;
        const K8s__ResourceClaimStatus *s = claim_of(base)->status;
        struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
        for (size_t i = 0; s && i < s->n_reservedfor; i++)
            bh_json_push(list, bh_pb_to_json(a, &s->reservedfor[i]->base));
        if (!reserved_for(base, o->it->uid))
            bh_json_append(a, list, "resource: pods, name: %s, uid: %s", o->it->name, o->it->uid);
        bh_json_add(a, body, "status: {reservedFor: %p}", list);
        break;
    }
    return body;
}

/* Which body a step has, and how it is sent; the rest of the request is the caller's. */
static struct bh_json *body_of(struct bh_object_job *o, struct bh_api_call *call)
{
    struct bh_arena *a = &o->body_arena;

    call->method = "PATCH";
    call->content_type = "application/merge-patch+json";
    switch (o->todo) {
    case READ:
        call->method = "GET";
        call->content_type = NULL;
        return NULL;
    case CREATE:
        call->method = "POST";
        call->content_type = "application/json";
        struct bh_json *body = bh_pb_to_json(a, o->wanted),
                       *meta = bh_json_obj_at(a, body, "metadata");
        (void)bh_json_unset(body, "status");
        (void)bh_json_unset(meta, "finalizers");
        return bh_json_add(
            a, body, "metadata: {name: %s}, apiVersion: resource.k8s.io/v1, kind: ResourceClaim",
            o->name);
    case FINALIZERS: {
        /* The list as it was told last, or decided about, with ours or without. */
        const K8s__ObjectMeta *m = bh_object_meta(o->seen ? o->seen : o->wanted);
        struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
        for (size_t i = 0; i < m->n_finalizers; i++)
            if (!bh_streq(m->finalizers[i], FINALIZER))
                bh_json_push(list, bh_json_new_cstr(a, m->finalizers[i]));
        if (allocates(o))
            bh_json_push(list, bh_json_new_cstr(a, FINALIZER));
        return bh_json_add(a, patch_of(o, true), "metadata: {finalizers: %p}", list);
    }
    case REMOVE:
        call->method = "DELETE";
        call->content_type = "application/json";
        return bh_json_make(a, "apiVersion: v1, kind: DeleteOptions, preconditions: {uid: %s}",
                            uid_of(o));
    case POD_STATUS:
        call->content_type = "application/strategic-merge-patch+json";
        const Berth__ObjectWrite *w = o->it->write;
        ProtobufCMessage *m = NULL;
        bool told = bh_pb_unpack(a, &k8s__pod_extended_resource_claim_status__descriptor,
                                 w->pod_status.data, w->pod_status.len, &m, NULL) == 0;
        struct bh_json *s = told ? bh_pb_to_json(a, m) : bh_json_new(a, BH_JSON_OBJECT);
        return bh_json_make(a, "metadata: {uid: %s}, status: {extendedResourceClaimStatus: %p}",
                            o->it->uid, bh_json_add(a, s, "resourceClaimName: %s", o->name));
    case WRITE:
        break;
    }
    if (is(o, BERTH__WORK_KIND__WORK_UNRESERVATION))
        call->content_type = "application/strategic-merge-patch+json";
    return write_body(o);
}

void bh_object_job_request(struct bh_object_job *o, struct bh_buf *path, struct bh_buf *body,
                           struct bh_api_call *call)
{
    if (o->patch) {
        bh_patch_job_request(o->patch, path, body, call);
        return;
    }
    bool status = o->todo == WRITE && o->kind->kind == BH_KIND_RESOURCECLAIM;
    bh_arena_reset(&o->body_arena);
    bh_buf_reset(path);
    bh_buf_reset(body);
    if (o->todo == POD_STATUS)
        bh_url_addf(path, "/api/v1/namespaces/%s/pods/%s/status", o->it->namespace_, o->it->name);
    else
        object_path(o, path, status ? "/status" : "");
    struct bh_json *json = body_of(o, call);
    if (json)
        bh_json_write(body, json);
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool end(struct bh_object_end *ret, Berth__Outcome outcome, int code, const char *reason,
                const char *message)
{
    *ret = (struct bh_object_end){outcome, code, reason, message};
    return true;
}

static bool done(struct bh_object_end *ret)
{
    return end(ret, BERTH__OUTCOME__OUTCOME_DONE, 200, "", "");
}

static bool go(struct bh_object_job *o, enum todo todo)
{
    o->todo = todo;
    return false;
}

static const char *key_of(struct bh_object_job *o)
{
    return bh_arena_printf(&o->arena, "%s/%s", o->it->write->namespace_, o->name);
}

/* It is not what was decided about any more; upstream fails with the API server's words. */
static bool overtaken(struct bh_object_job *o, struct bh_object_end *ret)
{
    const char *text = *o->conflict ? o->conflict
                                    : bh_arena_printf(&o->arena,
                                                      "Operation cannot be fulfilled on %s \"%s\": "
                                                      "the object has been modified",
                                                      o->kind->plural, o->name);
    return end(ret, BERTH__OUTCOME__OUTCOME_REJECTED, 409, "Conflict", text);
}

static bool meantime(struct bh_object_job *o, struct bh_object_end *ret, const char *what)
{
    return end(ret, BERTH__OUTCOME__OUTCOME_REJECTED, 409, "Conflict",
               bh_arena_printf(&o->arena, "claim %s got %s in the meantime", key_of(o), what));
}

static bool look_at_volume(struct bh_object_job *o, struct bh_object_end *ret)
{
    const K8s__PersistentVolume *want = (const void *)o->wanted, *v = (const void *)o->seen;
    const K8s__ObjectReference *a = want->spec->claimref, *b = v->spec ? v->spec->claimref : NULL;
    const char *by_us = annotation(o->wanted, BOUND_BY_CONTROLLER);
    bool ours = b && bh_streq(a->namespace_, b->namespace_) && bh_streq(a->name, b->name);

    if (ours && bh_streq(a->uid, b->uid) && (!by_us || annotation(o->seen, BOUND_BY_CONTROLLER)))
        return done(ret);
    if (v->metadata->deletiontimestamp || (b && (!ours || (*b->uid && !bh_streq(a->uid, b->uid)))))
        return overtaken(o, ret);
    return go(o, WRITE);
}

static bool look_at_allocation(struct bh_object_job *o, struct bh_object_end *ret)
{
    const K8s__AllocationResult *has = allocation_of(o->seen);
    const K8s__ObjectMeta *m = bh_object_meta(o->seen);

    if (m->deletiontimestamp)
        return meantime(o, ret, "deleted");
    const bool ours = has && same_devices(has, allocation_of(o->wanted));
    if (ours && reserved_for(o->seen, o->it->uid))
        return is(o, BERTH__WORK_KIND__WORK_NEW_CLAIM) ? go(o, POD_STATUS) : done(ret);
    if (has && !ours)
        return meantime(o, ret, "allocated elsewhere");
    return go(o, has_finalizer(m) ? WRITE : FINALIZERS);
}

/* What does the object that was read say? */
static bool look(struct bh_object_job *o, struct bh_object_end *ret)
{
    const K8s__ObjectMeta *m = bh_object_meta(o->seen);
    const Berth__ObjectWrite *w = o->it->write;

    if (is(o, BERTH__WORK_KIND__WORK_NEW_CLAIM)) {
        if (owned_by(m, o->it->uid))
            return look_at_allocation(o, ret);
        o->seen = NULL; /* another owner's claim has the name */
        if (++o->names >= NAMES_MAX)
            return overtaken(o, ret);
        o->name = name_of_new(o);
        return go(o, CREATE);
    }
    if (!bh_streq(m->uid, w->uid))
        return end(ret, BERTH__OUTCOME__OUTCOME_GONE, 409, "Conflict", "the object was re-created");
    switch (o->it->kind) {
    case BERTH__WORK_KIND__WORK_VOLUME_CLAIM:
        return look_at_volume(o, ret);
    case BERTH__WORK_KIND__WORK_SELECTED_NODE: {
        const K8s__PersistentVolumeClaim *c = (const void *)o->seen;
        const char *node = annotation(o->seen, SELECTED_NODE);
        if (node && bh_streq(node, annotation(o->wanted, SELECTED_NODE)))
            return done(ret);
        if (c->metadata->deletiontimestamp || node || (c->spec && *c->spec->volumename))
            return overtaken(o, ret);
        return go(o, WRITE);
    }
    case BERTH__WORK_KIND__WORK_ALLOCATION:
        return look_at_allocation(o, ret);
    case BERTH__WORK_KIND__WORK_RESERVATION:
        if (bh_object_meta(o->seen)->deletiontimestamp)
            return meantime(o, ret, "deleted");
        if (!allocation_of(o->seen))
            return meantime(o, ret, "deallocated elsewhere");
        return reserved_for(o->seen, o->it->uid) ? done(ret) : go(o, WRITE);
    case BERTH__WORK_KIND__WORK_DEALLOCATION:
        return allocation_of(o->seen) ? overtaken(o, ret) : done(ret);
    case BERTH__WORK_KIND__WORK_DELETE_CLAIM:
        if (m->deletiontimestamp && !has_finalizer(m))
            return done(ret);
        return go(o, has_finalizer(m) ? FINALIZERS : REMOVE);
    default:
        return go(o, WRITE);
    }
}

static bool success(struct bh_object_job *o, const struct bh_api_reply *r,
                    struct bh_object_end *ret)
{
    struct bh_err err;

    if (o->todo == POD_STATUS || o->todo == REMOVE)
        return done(ret);
    o->seen = NULL;
    bh_arena_reset(&o->seen_arena);
    if (bh_decode_object(&o->seen_arena, o->kind->desc, r->body.p, r->body.n, &o->seen, &err) < 0 ||
        !bh_object_meta(o->seen)) {
        o->seen = NULL;
        if (++o->conflicts <= CONFLICTS_MAX && o->todo != READ)
            return go(o, READ);
        return end(ret, BERTH__OUTCOME__OUTCOME_REJECTED, r->code, "",
                   "the API server's answer is no such object");
    }
    switch (o->todo) {
    case CREATE:
        return go(o, FINALIZERS);
    case FINALIZERS:
        return go(o, is(o, BERTH__WORK_KIND__WORK_DELETE_CLAIM) ? REMOVE : WRITE);
    case WRITE:
        return is(o, BERTH__WORK_KIND__WORK_NEW_CLAIM) ? go(o, POD_STATUS) : done(ret);
    default:
        return look(o, ret);
    }
}

/* As upstream introduces what the API server says. */
static const char *in_words(struct bh_object_job *o, const char *message)
{
    const char *what = NULL;

    if (o->todo == FINALIZERS && allocates(o))
        what = "add finalizer to claim";
    else if (o->todo == WRITE && allocates(o))
        what = "add allocation and reservation to claim";
    else if (o->todo == WRITE && is(o, BERTH__WORK_KIND__WORK_RESERVATION))
        what = "add reservation to claim";
    else if (o->todo == CREATE)
        return bh_arena_printf(&o->arena, "create claim for extended resources %s/: %s",
                               o->it->write->namespace_, message);
    else if (o->todo == READ && o->kind->kind == BH_KIND_RESOURCECLAIM)
        return bh_arena_printf(&o->arena, "get updated claim %s after conflict: %s", key_of(o),
                               message);
    return what ? bh_arena_printf(&o->arena, "%s %s: %s", what, key_of(o), message)
                : bh_arena_strdup(&o->arena, message);
}

bool bh_object_job_reply(struct bh_object_job *o, const struct bh_api_reply *r,
                         struct bh_object_end *ret)
{
    struct bh_api_status s;

    if (o->patch)
        return bh_patch_job_reply(o->patch, r, ret);
    if (r->code >= 200 && r->code < 300)
        return success(o, r, ret);
    bh_decode_status(r->body.p, r->body.n, r->code, &s);
    if (r->code == 404 && is(o, BERTH__WORK_KIND__WORK_DELETE_CLAIM))
        return done(ret);
    if (r->code == 404)
        return end(ret, BERTH__OUTCOME__OUTCOME_GONE, 404, bh_arena_strdup(&o->arena, s.reason),
                   in_words(o, s.message));
    if (r->code == 409 && o->todo != POD_STATUS && o->conflicts < CONFLICTS_MAX) {
        o->conflict = in_words(o, s.message);
        o->conflicts++;
        return go(o, READ);
    }
    return end(ret, BERTH__OUTCOME__OUTCOME_REJECTED, r->code, bh_arena_strdup(&o->arena, s.reason),
               in_words(o, s.message));
}
