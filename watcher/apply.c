/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/apply.c - one event of a reflector -> snapshot or objects
 *
 * Invariants: an object is in the snapshot (nodes, assigned pods) or among the objects (all else),
 *             never in both; a pod that gets bound is in the snapshot before BOUND is told.
 * Runs in:    the watcher's loop, for each event once; costs no allocation but the records' arena.
 * Upstream:   pkg/scheduler/eventhandlers.go (which pods count as assigned; terminated ones do not)
 */
#include "watcher/watcher_int.h"

#include <errno.h>

#include "common/base/log.h"
#include "common/k8s/coscheduling.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define RECORD_ARENA_BYTES ((size_t)64 << 20)
#define TICK_EVENTS        1024
#define TICK_NS            (UINT64_C(200) * 1000000)
#define BAD_LOG_NS         (UINT64_C(60) * 1000000000)

void bh_watcher_on_bad(void *arg, const struct bh_kind_info *k, const char *name, const char *why)
{
    struct bh_watcher *w = arg;
    struct bh_watch_kind *wk = &w->kinds[k->kind];
    const uint64_t now = bh_mono_ns();

    w->bad_objects[k->kind]++;
    /* One line a minute and kind: a broken controller can write the same thing all day. */
    if (wk->bad_logged_ns && now - wk->bad_logged_ns < BAD_LOG_NS) {
        wk->bad_unlogged++;
        return;
    }
    bh_log_warn("Skipping a malformed object", bh_kv_s("kind", k->kind_name), bh_kv_s("name", name),
                bh_kv_s("err", why), bh_kv_u("more", wk->bad_unlogged));
    wk->bad_logged_ns = now;
    wk->bad_unlogged = 0;
}

static bool accepted(struct bh_watcher *w, const struct bh_kind_info *k, const char *name, int rc,
                     const struct bh_err *err)
{
    if (rc >= 0)
        return true;
    if (rc == -ENOSPC)
        bh_watcher_fail(w, "Could not write the snapshot", "no memory for it");
    else
        bh_watcher_on_bad(w, k, name, *err->msg ? err->msg : strerror(-rc));
    return false;
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Fields that the schema does not know would be packed with a message; no reader uses them. */
static void drop_unknown(ProtobufCMessage *m)
{
    m->n_unknown_fields = 0;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        char *member = (char *)m + f->offset;
        if (f->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            size_t n = *(size_t *)((char *)m + f->quantifier_offset);
            ProtobufCMessage **list = *(ProtobufCMessage ***)member;
            for (size_t j = 0; j < n; j++)
                drop_unknown(list[j]);
        } else if (*(ProtobufCMessage **)member) {
            drop_unknown(*(ProtobufCMessage **)member);
        }
    }
}

static void put_into(struct bh_watcher *w, struct bh_objects *o, const struct bh_object_key *key,
                     const struct bh_reflector_event *ev)
{
    ProtobufCMessage *m = (ProtobufCMessage *)(uintptr_t)ev->object; /* lives in the arena: ours */
    const struct bh_object *old = bh_objects_find(o, key->kind, key->ns, key->name);

    if (old && bh_streq(old->uid, key->uid) && bh_streq(old->rv, key->rv))
        return; /* a list that repeats everything */
    bh_buf_reset(&w->bytes);
    if (!ev->raw.p || !bh_pb_without_managed(&w->bytes, ev->raw.p, ev->raw.n)) {
        drop_unknown(m);
        bh_buf_reset(&w->bytes);
        bh_pb_pack(&w->bytes, m);
    }
    bh_objects_put(o, key, w->bytes.p, w->bytes.n, bh_snap_head(w->snapshot));
}

/* The same object as a whole, behind its record in the snapshot. */
static void put_raw(struct bh_watcher *w, const struct bh_object_key *key,
                    const struct bh_reflector_event *ev)
{
    if (bh_watcher_wants_raw(w, key->kind))
        put_into(w, &w->feed.raw, key, ev);
}

static void end_raw(struct bh_watcher *w, const struct bh_object_key *key)
{
    (void)bh_objects_end(&w->feed.raw, key, BH_OBJ_DELETED, bh_snap_head(w->snapshot));
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void apply_node(struct bh_watcher *w, const struct bh_kind_info *k,
                       const struct bh_object_key *key, const struct bh_reflector_event *ev)
{
    struct bh_node_rec *rec = NULL;
    struct bh_err err = {""};
    if (ev->type == BH_WATCH_DELETED) {
        bh_snap_del_node(w->snapshot, ev->name, strlen(ev->name));
        end_raw(w, key);
        return;
    }
    int rc = bh_compile_node(&w->arena, (const K8s__Node *)ev->object, &w->interner, &rec, &err);
    if (rc == 0)
        rc = bh_snap_put_node(w->snapshot, rec);
    if (accepted(w, k, ev->name, rc, &err))
        put_raw(w, key, ev);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static void apply_pod(struct bh_watcher *w, const struct bh_kind_info *k,
                      const struct bh_object_key *key, const struct bh_reflector_event *ev)
{
    const K8s__Pod *p = (const K8s__Pod *)ev->object;
    /* One that is deleted has no object. */
    const char *phase = p && p->status ? p->status->phase : "";
    if (ev->type == BH_WATCH_DELETED || bh_streq(phase, "Succeeded") || bh_streq(phase, "Failed")) {
        bh_snap_del_pod(w->snapshot, ev->uid, strlen(ev->uid));
        bh_objects_end(&w->objects, key, BH_OBJ_DELETED, bh_snap_head(w->snapshot));
        end_raw(w, key);
    } else if (p->spec && *p->spec->nodename) {
        struct bh_err err = {""};
        struct bh_shape_rec *shape = NULL;
        struct bh_pod_rec *rec = NULL;
        int rc = bh_compile_shape(&w->arena, p, &w->interner, &shape, &err);
        if (rc == 0)
            rc = bh_compile_pod(&w->arena, p, &w->interner, &rec, &err);
        if (rc == 0)
            rc = bh_snap_put_pod(w->snapshot, rec, shape);
        /* Schedulers wait for a BOUND pod in the snapshot; one that could not go there is just gone. */
        enum bh_object_state how =
            accepted(w, k, ev->name, rc, &err) ? BH_OBJ_BOUND : BH_OBJ_DELETED;
        w->bound += bh_objects_end(&w->objects, key, how, bh_snap_head(w->snapshot));
        if (how == BH_OBJ_BOUND)
            put_raw(w, key, ev);
    } else {
        put_into(w, &w->objects, key, ev);
    }
}

/* ---- PodGroups ------------------------------------------------------------------------------- */

/* In the one form that schedulers read; one that says nothing they could act on is left out. */
static void apply_group(struct bh_watcher *w, const struct bh_kind_info *k,
                        const struct bh_object_key *key, const struct bh_reflector_event *ev)
{
    struct bh_reflector_event mine = *ev;
    struct bh_pod_group group;
    struct bh_err err = {""};
    K8s__PodGroup *m = bh_pod_group_of(&w->arena, k, ev->object);
    int rc = m ? bh_pod_group_read(m, &group, &err) : -E2BIG;

    if (!accepted(w, k, ev->name, rc, &err)) {
        bh_objects_end(&w->objects, key, BH_OBJ_DELETED, bh_snap_head(w->snapshot));
        return;
    }
    mine.object = &m->base;
    mine.raw = (struct bh_str){NULL, 0};
    put_into(w, &w->objects, key, &mine);
}

static void apply_coscheduling(struct bh_watcher *w, const struct bh_kind_info *k,
                               const struct bh_object_key *key, const struct bh_reflector_event *ev)
{
    struct bh_err err = {""};
    int rc = bh_coscheduling_check((const K8s__CoschedulingPodGroup *)ev->object, &err);

    if (accepted(w, k, ev->name, rc, &err))
        put_into(w, &w->objects, key, ev);
    else
        bh_objects_end(&w->objects, key, BH_OBJ_DELETED, bh_snap_head(w->snapshot));
}

/* ---------------------------------------------------------------------------------------------- */

void bh_watcher_on_event(void *arg, const struct bh_kind_info *k,
                         const struct bh_reflector_event *ev)
{
    struct bh_watcher *w = arg;
    const struct bh_object_key key = {k->kind, ev->ns, ev->name, ev->uid, ev->resource_version};

    if (w->failed || w->closing)
        return;
    if (k->kind >= BH_KIND_CUSTOM && !w->feed.kinds[k->kind - BH_KIND_CUSTOM].wanted)
        return; /* the last of a reflector that is being freed */
    w->events++;
    bh_arena_reset(&w->arena);
    w->arena.limit_bytes = RECORD_ARENA_BYTES;
    if (k->kind == BH_KIND_NODE)
        apply_node(w, k, &key, ev);
    else if (k->kind == BH_KIND_POD)
        apply_pod(w, k, &key, ev);
    else if (ev->type == BH_WATCH_DELETED)
        bh_objects_end(&w->objects, &key, BH_OBJ_DELETED, bh_snap_head(w->snapshot));
    else if (k->kind == BH_KIND_PODGROUP)
        apply_group(w, k, &key, ev);
    else if (k->kind == BH_KIND_COSCHEDULING_PODGROUP)
        apply_coscheduling(w, k, &key, ev);
    else
        put_into(w, &w->objects, &key, ev);
    /* A list of a million objects is one long callback; the heart has to beat in it. */
    if (++w->events_since_tick >= TICK_EVENTS && bh_mono_ns() - w->last_tick_ns > TICK_NS)
        bh_watcher_heartbeat(w);
}
