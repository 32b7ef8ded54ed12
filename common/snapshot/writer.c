/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/writer.c - publication: the six steps of snapshot.h, in this order, here
 *
 * Owns:       the data segment's contents, the indexes over it, and the decision what may be
 *             reused, and the names readers need.
 * Invariants: every live object has one directory slot, which stays its number across moves;
 *             nothing is reused before bh_snap_space_recycle says so; a failed put changes nothing
 *             that a reader can see.
 * Runs in:    the watcher's main loop only. No locks, no waiting for readers. Fails with: -ENOSPC,
 *             -E2BIG, -ENOENT.
 */
#include "common/snapshot/writer_int.h"

#include <errno.h>
#include <grp.h>
#include <unistd.h>

#include "common/base/log.h"

#define SETTLE_NS      UINT64_C(1000000000)
#define TROUBLE_LOG_NS (UINT64_C(60) * 1000000000)

void (*bh_snap_crash_hook)(int step);

/* ---- recycling ------------------------------------------------------------------------------- */
/* The smallest position that is worth waiting for, at most head. Readers more than half a ring
 * behind are not; *ret_stalled tells whether one of them reads this very segment. A position beyond
 * head is a lie and counts as head. */
static uint64_t slowest_reader(struct bh_snap_writer *w, bool *ret_stalled)
{
    struct bh_snap_slot_view v[BH_SNAP_SLOTS];
    uint64_t min = w->head;
    *ret_stalled = false;
    w->readers = 0;
    if (!w->current || w->hidden)
        return min;
    bh_snap_slots_scan(w->slots_fd, v);
    for (unsigned i = 0; i < BH_SNAP_SLOTS; i++) {
        if (!v[i].active)
            continue;
        w->readers++;
        uint64_t lag = w->head > v[i].pos ? w->head - v[i].pos : 0;
        if (lag > bh_snap_half_ring(&w->seg))
            *ret_stalled |= v[i].segment == w->segment;
        else
            min = BH_MIN(min, v[i].pos);
    }
    return min;
}

/* Moves when a reader has stalled here. True when it did, so that there is nothing to recycle. */
static bool check_lag(struct bh_snap_writer *w, uint64_t *ret_min)
{
    bool stalled;
    *ret_min = slowest_reader(w, &stalled);
    w->safe_until = *ret_min + bh_snap_half_ring(&w->seg);
    if (!stalled || w->move_failed)
        return false;
    w->move_failed = bh_snap_move(w, 0, false) < 0;
    return !w->move_failed;
}

/* Two looks at the readers. The first finds how far it is worth going; then the horizon says that
 * we go there; the second look finds readers that registered before they could see that. */
static void recycle(struct bh_snap_writer *w)
{
    uint64_t goal;
    bool stalled;
    if (check_lag(w, &goal) || !w->space.retired_n)
        return;
    if (goal > w->seg.h->horizon)
        __atomic_store_n(&w->seg.h->horizon, goal, __ATOMIC_SEQ_CST);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_HORIZON);
    uint64_t min = slowest_reader(w, &stalled);
    bh_snap_space_recycle(&w->space, BH_MIN(goal, min));
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_RECYCLED);
    /* With a slow reader the garbage stays; look again only when there is notably more. */
    w->recycle_at =
        w->space.retired_bytes + BH_MAX(w->space.live_bytes / 8, w->sizes.record_bytes / 16);
}

/* ---- taking room ----------------------------------------------------------------------------- */
/* Room for up to two blocks (0 bytes = none) and a directory slot, with all symbols published. */
struct room {
    uint64_t bytes[2];
    bool dir_slot;
    uint64_t off[2]; /* result */
};

static bool try_room(struct bh_snap_writer *w, struct room *r)
{
    if (r->dir_slot && !w->free_dir_n && w->dir_used == w->seg.dir_cap)
        return false;
    if (!bh_snap_symbols_flush(&w->symbols))
        return false;
    for (unsigned i = 0; i < 2; i++) {
        if (!r->bytes[i])
            continue;
        r->off[i] = bh_snap_space_take(&w->space, r->bytes[i]);
        if (!r->off[i]) {
            if (i == 1 && r->bytes[0])
                bh_snap_space_give_back(&w->space, r->off[0], r->bytes[0]);
            return false;
        }
    }
    return true;
}

/* 0 or -ENOSPC. May move: offsets known before are void, directory slots and shape numbers are
 * not. */
static int make_room(struct bh_snap_writer *w, struct room *r)
{
    uint64_t min, need = 0;
    if (w->head + 4 > w->safe_until)
        check_lag(w, &min);
    if (w->space.retired_bytes > w->recycle_at)
        recycle(w);
    if (try_room(w, r))
        return 0;
    recycle(w);
    if (try_room(w, r))
        return 0;
    if (w->move_failed)
        return -ENOSPC;
    for (unsigned i = 0; i < 2; i++)
        need += r->bytes[i] ? bh_snap_space_round(r->bytes[i]) : 0;
    w->move_failed = bh_snap_move(w, need, true) < 0;
    return !w->move_failed && try_room(w, r) ? 0 : -ENOSPC;
}

/* ---- log and directory ----------------------------------------------------------------------- */
uint64_t bh_snap_log_append(struct bh_snap_writer *w, enum bh_snap_log_op op, uint64_t off,
                            uint64_t key)
{
    uint64_t seq = w->head + 1;
    struct bh_snap_entry *e = &w->seg.log[(seq - 1) & (w->seg.log_entries - 1)];
    /* seq = 0 is visible before any of the new fields: each of them is stored with release. So a
     * reader that loads a new field (acquire) finds seq changed when it looks again. */
    bh_snap_store(&e->seq, 0);
    bh_snap_store_release(&e->off, off);
    bh_snap_store_release(&e->key, key);
    bh_snap_store_release(&e->op, (uint64_t)op);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_ENTRY);
    bh_snap_store_release(&e->seq, seq);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_LOGGED);
    bh_snap_store_release(&w->seg.h->head, seq); /* pairs with follow's acquire in reader.c */
    w->head = seq;
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_HEAD);
    return seq;
}

static uint32_t take_dir_slot(struct bh_snap_writer *w)
{
    if (w->free_dir_n)
        return w->free_dir[--w->free_dir_n];
    bh_assert(w->dir_used < w->seg.dir_cap && w->dir_used < BH_SNAP_NO_ID);
    uint32_t slot = (uint32_t)w->dir_used++;
    bh_snap_store(&w->seg.h->dir_used, w->dir_used);
    return slot;
}

static void publish_counts(struct bh_snap_writer *w)
{
    bh_snap_store(&w->seg.h->nodes, w->nodes);
    bh_snap_store(&w->seg.h->pods, w->pods);
    bh_snap_store(&w->seg.h->shapes, w->shapes_live);
}

static void write_record(struct bh_snap_writer *w, uint64_t off, const void *rec, size_t n)
{
    memcpy((char *)w->seg.map->base + off, rec, n);
}

/* The place of what is being put, a new one when *slot is none; the record that it has now, or 0. */
static uint64_t take_place(struct bh_snap_writer *w, struct bh_snap_index *index, uint64_t hash,
                           uint64_t *count, uint32_t *slot)
{
    uint64_t old = 0;
    if (*slot == BH_SNAP_NO_ID) {
        *slot = take_dir_slot(w);
        bh_snap_index_add(index, hash, *slot);
        ++*count;
    } else {
        old = w->seg.dir[*slot];
    }
    publish_counts(w);
    return old;
}

static void publish(struct bh_snap_writer *w, uint32_t slot, uint64_t off, enum bh_snap_log_op op,
                    uint64_t old)
{
    bh_snap_store_release(&w->seg.dir[slot], off);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_DIRECTORY);
    bh_snap_log_append(w, op, off ? off : old, 0);
    if (old) {
        const struct bh_rec_head *h = bh_snap_rec(w, old);
        bh_snap_space_retire(&w->space, old, h->size, w->head);
        BH_SNAP_CRASH_POINT(BH_SNAP_STEP_RETIRED);
    }
}

static void give_up_place(struct bh_snap_writer *w, struct bh_snap_index *index, uint64_t hash,
                          uint64_t *count, uint32_t slot, enum bh_snap_log_op op)
{
    uint64_t min;
    if (w->head + 4 > w->safe_until)
        check_lag(w, &min);
    bh_snap_index_del(index, hash, slot);
    BH_GROW(w->free_dir, w->free_dir_n, w->free_dir_cap);
    w->free_dir[w->free_dir_n++] = slot;
    --*count;
    publish_counts(w);
    publish(w, slot, 0, op, w->seg.dir[slot]);
}

/* Are two records equal but for the 8 bytes at `except`? */
static bool same_but(const void *a, const void *b, size_t n, size_t except)
{
    return memcmp(a, b, except) == 0 &&
           memcmp((const char *)a + except + 8, (const char *)b + except + 8, n - except - 8) == 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */
static uint64_t sym_hash(bh_sym s)
{
    uint64_t x = (uint64_t)s * 0x9e3779b97f4a7c15ull; /* our own numbers: no flooding to fear */
    return x ^ (x >> 29);
}

static bool node_is(const void *owner, uint32_t id, const void *key)
{
    const struct bh_snap_writer *w = owner;
    const struct bh_node_rec *rec = bh_snap_rec(w, w->seg.dir[id]);
    return rec->name == *(const bh_sym *)key;
}

int bh_snap_put_node(struct bh_snap_writer *w, const struct bh_node_rec *rec)
{
    struct room room = {.bytes = {rec->h.size}};
    uint64_t hash = sym_hash(rec->name);
    bh_assert(rec->h.type == BH_REC_NODE && rec->h.size >= sizeof(*rec) && rec->h.size % 8 == 0);
    if (rec->h.size > BH_REC_MAX_BYTES)
        return -E2BIG;
    uint32_t slot = bh_snap_index_find(&w->node_index, hash, node_is, w, &rec->name);
    if (slot != BH_SNAP_NO_ID) {
        const struct bh_node_rec *now = bh_snap_rec(w, w->seg.dir[slot]);
        if (now->h.size == rec->h.size &&
            same_but(now, rec, rec->h.size, offsetof(struct bh_node_rec, resource_version)))
            return 1;
    }
    room.dir_slot = slot == BH_SNAP_NO_ID;
    if (make_room(w, &room) < 0)
        return -ENOSPC;

    write_record(w, room.off[0], rec, rec->h.size);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_RECORD);
    uint64_t old = take_place(w, &w->node_index, hash, &w->nodes, &slot);
    publish(w, slot, room.off[0], BH_SNAP_LOG_NODE_PUT, old);
    return 0;
}

int bh_snap_del_node(struct bh_snap_writer *w, const char *name, size_t n)
{
    bh_sym sym = bh_snap_symbols_find(&w->symbols, name, n);
    uint32_t slot = BH_SNAP_NO_ID;
    if (sym != BH_SYM_NONE)
        slot = bh_snap_index_find(&w->node_index, sym_hash(sym), node_is, w, &sym);
    if (slot == BH_SNAP_NO_ID)
        return -ENOENT;
    give_up_place(w, &w->node_index, sym_hash(sym), &w->nodes, slot, BH_SNAP_LOG_NODE_DEL);
    return 0;
}

/* ---- shapes ---------------------------------------------------------------------------------- */
static bool shape_is(const void *owner, uint32_t id, const void *key)
{
    const struct bh_snap_writer *w = owner;
    const struct bh_shape_rec *shape = key;
    return w->shapes[id].bytes == shape->h.size &&
           memcmp(bh_snap_rec(w, w->shapes[id].off), shape, shape->h.size) == 0;
}

static uint32_t new_shape(struct bh_snap_writer *w, const struct bh_shape_rec *shape, uint64_t hash,
                          uint64_t block)
{
    uint32_t id = w->shapes_free;
    if (id != BH_SNAP_NO_ID) {
        w->shapes_free = w->shapes[id].bytes;
    } else {
        BH_GROW(w->shapes, w->shapes_n, w->shapes_cap);
        id = w->shapes_n++;
    }
    struct bh_snap_shape *s = &w->shapes[id];
    *s = (struct bh_snap_shape){.off = block + BH_SNAP_KEY_BYTES,
                                .key = ++w->next_shape_key,
                                .hash = hash,
                                .bytes = shape->h.size};
    uint64_t key[BH_SNAP_KEY_BYTES / 8] = {s->key};
    write_record(w, block, key, sizeof(key));
    write_record(w, s->off, shape, shape->h.size);
    bh_snap_index_add(&w->shape_index, hash, id);
    w->shapes_live++;
    return id;
}

/* One pod fewer uses it. The last one: readers may forget the key, and the record goes. */
static void shape_unref(struct bh_snap_writer *w, uint32_t id)
{
    struct bh_snap_shape *s = &w->shapes[id];
    bh_assert(s->refs > 0);
    if (--s->refs)
        return;
    w->shapes_live--;
    publish_counts(w);
    bh_snap_index_del(&w->shape_index, s->hash, id);
    bh_snap_log_append(w, BH_SNAP_LOG_SHAPE_DEL, 0, s->key);
    bh_snap_space_retire(&w->space, s->off - BH_SNAP_KEY_BYTES, s->bytes + BH_SNAP_KEY_BYTES,
                         w->head);
    s->bytes = w->shapes_free;
    w->shapes_free = id;
}

/* ---- pods ------------------------------------------------------------------------------------ */
static bool pod_is(const void *owner, uint32_t id, const void *key)
{
    const struct bh_snap_writer *w = owner;
    const struct bh_pod_rec *rec = bh_snap_rec(w, w->seg.dir[id]);
    return bh_str_eq(bh_rec_text(rec, rec->uid), *(const struct bh_str *)key);
}

static uint64_t uid_hash(const struct bh_snap_writer *w, struct bh_str uid)
{
    return bh_hash(uid.p, uid.n, w->seed);
}

static bool same_pod(const struct bh_snap_writer *w, uint32_t slot, const struct bh_pod_rec *pod,
                     uint32_t shape)
{
    const struct bh_pod_rec *now = bh_snap_rec(w, w->seg.dir[slot]);
    const size_t rv = offsetof(struct bh_pod_rec, resource_version);
    const size_t sh = offsetof(struct bh_pod_rec, shape);
    _Static_assert(offsetof(struct bh_pod_rec, resource_version) + 8 <
                       offsetof(struct bh_pod_rec, shape),
                   "order of the two fields that do not count");
    return w->pod_shape[slot] == shape && now->h.size == pod->h.size &&
           same_but(now, pod, sh, rv) &&
           memcmp((const char *)now + sh + 8, (const char *)pod + sh + 8, pod->h.size - sh - 8) ==
               0;
}

int bh_snap_put_pod(struct bh_snap_writer *w, const struct bh_pod_rec *pod,
                    const struct bh_shape_rec *shape)
{
    struct bh_str uid = bh_rec_text(pod, pod->uid);
    bh_assert(pod->h.type == BH_REC_POD && pod->h.size >= sizeof(*pod) && pod->h.size % 8 == 0);
    bh_assert(shape->h.type == BH_REC_SHAPE && shape->h.size >= sizeof(*shape));
    if (pod->h.size > BH_REC_MAX_BYTES || shape->h.size > BH_REC_MAX_BYTES)
        return -E2BIG;
    uint64_t hash = uid_hash(w, uid), shape_hash = bh_hash(shape, shape->h.size, w->seed);
    uint32_t slot = bh_snap_index_find(&w->pod_index, hash, pod_is, w, &uid);
    uint32_t shape_id = bh_snap_index_find(&w->shape_index, shape_hash, shape_is, w, shape);
    if (slot != BH_SNAP_NO_ID && shape_id != BH_SNAP_NO_ID && same_pod(w, slot, pod, shape_id))
        return 1;
    struct room room = {.bytes = {pod->h.size}, .dir_slot = slot == BH_SNAP_NO_ID};
    if (shape_id == BH_SNAP_NO_ID)
        room.bytes[1] = shape->h.size + BH_SNAP_KEY_BYTES;
    if (make_room(w, &room) < 0)
        return -ENOSPC;

    /* The record and, when new, the shape; they are not reachable yet. */
    if (shape_id == BH_SNAP_NO_ID)
        shape_id = new_shape(w, shape, shape_hash, room.off[1]);
    write_record(w, room.off[0], pod, pod->h.size);
    struct bh_pod_rec *mine = (void *)((char *)w->seg.map->base + room.off[0]);
    mine->shape = w->shapes[shape_id].off;
    w->shapes[shape_id].refs++;
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_RECORD);
    uint32_t old_shape = slot == BH_SNAP_NO_ID ? BH_SNAP_NO_ID : w->pod_shape[slot];
    uint64_t old = take_place(w, &w->pod_index, hash, &w->pods, &slot);
    if (slot >= w->pod_shape_cap) {
        w->pod_shape_cap = BH_MAX(w->pod_shape_cap * 2, w->seg.dir_cap);
        w->pod_shape = bh_reallocarray(w->pod_shape, w->pod_shape_cap, sizeof(*w->pod_shape));
    }
    w->pod_shape[slot] = shape_id;
    publish(w, slot, room.off[0], BH_SNAP_LOG_POD_PUT, old);
    if (old)
        shape_unref(w, old_shape);
    return 0;
}

int bh_snap_del_pod(struct bh_snap_writer *w, const char *uid, size_t n)
{
    struct bh_str key = {uid, n};
    uint64_t hash = uid_hash(w, key);
    uint32_t slot = bh_snap_index_find(&w->pod_index, hash, pod_is, w, &key);
    if (slot == BH_SNAP_NO_ID)
        return -ENOENT;
    give_up_place(w, &w->pod_index, hash, &w->pods, slot, BH_SNAP_LOG_POD_DEL);
    shape_unref(w, w->pod_shape[slot]);
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */
static bool now_and_then(uint64_t *at_ns, uint64_t every_ns)
{
    uint64_t now = bh_mono_ns();
    if (*at_ns && now - *at_ns < every_ns)
        return false;
    *at_ns = now;
    return true;
}

void bh_snap_refused(struct bh_snap_writer *w, int rc, const char *what, uint64_t bytes)
{
    w->refused++;
    w->trouble = rc;
    if (now_and_then(&w->trouble_logged_ns, TROUBLE_LOG_NS))
        bh_log_warn("Shared memory was refused: readers wait, trying again every second",
                    bh_kv_s("what", what), bh_kv_u("bytes", bytes), bh_kv_s("err", strerror(-rc)));
}

/* A name was removed, or leads to another object in its place. */
static void lost(struct bh_snap_writer *w, const char *name)
{
    w->lost++;
    bh_log_warn("A name of the snapshot is gone: making a new one", bh_kv_s("name", name),
                bh_kv_s("runtime_dir", w->runtime_dir));
}

static void use_hold(struct bh_snap_writer *w)
{
    w->control = bh_snap_hold_words(&w->hold);
    w->slots_fd = w->hold.slots.fd;
}

static void settle_data(struct bh_snap_writer *w)
{
    char name[BH_SNAP_NAME_MAX];
    if (!w->hidden && bh_snap_object_there(w->hold.instance, &w->data))
        return;
    if (!w->hidden) {
        bh_snap_object_name(w->hold.instance, w->data.key, name);
        lost(w, name);
    }
    (void)bh_snap_move(w, 0, !w->hidden); /* fails: bh_snap_refused */
}

static void settle_control(struct bh_snap_writer *w, bool again)
{
    char gone[BH_SNAP_NAME_MAX];
    bool only_link = false;
    if (w->hold.control.fd >= 0) {
        if (bh_snap_hold_there(&w->hold, &only_link, gone))
            return;
        if (!again)
            lost(w, gone);
    }
    int rc = only_link ? bh_snap_hold_announce(&w->hold) : bh_snap_hold_renew(&w->hold);
    use_hold(w);
    if (rc < 0)
        bh_snap_refused(w, rc, only_link ? "link in the runtime directory" : "control segment",
                        BH_SNAP_PAGE);
}

/* Makes what has no name yet, or has lost it. */
static void settle(struct bh_snap_writer *w)
{
    if (!now_and_then(&w->settled_ns, SETTLE_NS))
        return;
    const int before = w->trouble;
    w->trouble = 0;
    settle_data(w);
    settle_control(w, before != 0);
    if (before && !w->trouble) {
        w->trouble_logged_ns = 0;
        bh_log_info("Shared memory has room again", bh_kv_u("bytes", w->seg.map->bytes));
    }
}

/* ---- life ------------------------------------------------------------------------------------ */
static int check_options(const char *runtime_dir, const struct bh_snap_options *o, gid_t *ret_gid,
                         struct bh_err *err)
{
    char buf[4096];
    struct group g, *found = NULL;
    if (!runtime_dir || !*runtime_dir)
        return bh_err_set(err, -EINVAL, "snapshot: no runtime directory");
    if (o->log_entries && (o->log_entries < 16 || (o->log_entries & (o->log_entries - 1))))
        return bh_err_set(err, -EINVAL, "snapshot log_entries %u: not a power of two from 16",
                          o->log_entries);
    if (o->group)
        getgrnam_r(o->group, &g, buf, sizeof(buf), &found);
    if (o->group && !found)
        return bh_err_set(err, -ENOENT, "snapshot group %s: no such group", o->group);
    *ret_gid = found ? found->gr_gid : (gid_t)-1;
    return 0;
}

/* Room may come; whatever else keeps us from /dev/shm at the start is for a person to mend. */
static int first_names(struct bh_snap_writer *w, struct bh_err *err)
{
    int rc = bh_snap_first_segment(w);
    if (rc == 0) {
        settle_control(w, false);
        rc = w->trouble != -ENOSPC ? w->trouble : 0;
    }
    return rc < 0 ? bh_err_set(err, rc, "snapshot of %s: shared memory: %s", w->runtime_dir,
                               strerror(-rc))
                  : 0;
}

int bh_snap_writer_new(const char *runtime_dir, const struct bh_snap_options *o,
                       struct bh_snap_writer **ret_w, struct bh_err *err)
{
    static const struct bh_snap_options none;
    o = o ? o : &none;
    uint64_t records = o->initial_bytes ? o->initial_bytes : 16u << 20;
    gid_t group;
    int rc = check_options(runtime_dir, o, &group, err);
    if (rc < 0)
        return rc;
    struct bh_snap_writer *w = bh_calloc(1, sizeof(*w));
    w->data.fd = -1;
    w->runtime_dir = bh_strdup(runtime_dir);
    w->seed = bh_rand_entropy();
    w->shapes_free = BH_SNAP_NO_ID;
    w->fixed_log = o->log_entries != 0;
    w->sizes = (struct bh_snap_sizes){
        .log_entries = o->log_entries ? o->log_entries : 1u << 17,
        .syms = BH_MAX(records / 256, 256),
        .text_bytes = BH_MAX(records / 8, 4096),
        .dir_slots = BH_MAX(records / 256, 64),
        .record_bytes = BH_MAX((records + 15) & ~(uint64_t)15, 4096),
    };
    rc = bh_snap_hold_take(&w->hold, runtime_dir, group, err);
    use_hold(w);
    if (rc == 0)
        rc = first_names(w, err);
    if (rc < 0) {
        bh_snap_writer_free(w);
        return rc;
    }
    *ret_w = w;
    return 0;
}

void bh_snap_writer_free(struct bh_snap_writer *w)
{
    if (!w)
        return;
    bh_snap_object_remove(w->hold.instance, &w->data);
    bh_snap_hold_release(&w->hold);
    free(w->runtime_dir);
    bh_snap_symbols_fini(&w->symbols);
    bh_snap_seg_close(&w->seg);
    bh_snap_space_fini(&w->space);
    bh_snap_index_fini(&w->node_index);
    bh_snap_index_fini(&w->pod_index);
    bh_snap_index_fini(&w->shape_index);
    free(w->pod_shape);
    free(w->free_dir);
    free(w->shapes);
    free(w);
}

static bh_sym intern(void *arg, const char *s, size_t n)
{
    return bh_snap_symbols_intern(&((struct bh_snap_writer *)arg)->symbols, s, n);
}

struct bh_interner bh_snap_interner(struct bh_snap_writer *w)
{
    return (struct bh_interner){.intern = intern, .arg = w};
}

uint64_t bh_snap_head(const struct bh_snap_writer *w)
{
    return w->head;
}

void bh_snap_open(struct bh_snap_writer *w)
{
    if (!w->current)
        bh_snap_announce(w);
}

void bh_snap_set_synced(struct bh_snap_writer *w, bool synced)
{
    w->synced = synced;
    bh_snap_store_release(&w->seg.h->synced, synced); /* pairs with is_synced */
    if (synced)
        bh_snap_open(w);
}

void bh_snap_set_lease(struct bh_snap_writer *w, uint64_t term, uint64_t until_boot_ns)
{
    struct bh_snap_control *c = w->control;
    if (bh_snap_load(&c->lease_term) != term) {
        bh_snap_store_release(&c->lease_until_boot_ns, 0);
        bh_snap_store_release(&c->lease_term, term);
    }
    bh_snap_store_release(&c->lease_until_boot_ns, until_boot_ns);
}

void bh_snap_writer_tick(struct bh_snap_writer *w)
{
    uint64_t min;
    w->move_failed = false;
    settle(w);
    if (w->current)
        bh_snap_slots_drop_dead(w->slots_fd);
    check_lag(w, &min);
    if (w->space.retired_bytes > w->recycle_at)
        recycle(w);
    struct bh_snap_header *h = w->seg.h;
    bh_snap_store(&h->bytes_used, w->space.live_bytes + w->space.retired_bytes);
    bh_snap_store(&h->moves, w->moves);
    bh_snap_store(&h->retired_waiting, w->space.retired_n);
    bh_snap_store(&h->readers, w->readers);
    bh_snap_store_release(&h->heartbeat_boot_ns, bh_boot_ns());
}

void bh_snap_writer_stats(const struct bh_snap_writer *w, struct bh_snap_stats *ret)
{
    *ret = (struct bh_snap_stats){
        .incarnation = w->control->incarnation,
        .segment = w->segment,
        .head = w->head,
        .heartbeat_boot_ns = w->seg.h->heartbeat_boot_ns,
        .nodes = w->nodes,
        .pods = w->pods,
        .shapes = w->shapes_live,
        .symbols = w->symbols.published,
        .bytes_used = w->space.live_bytes + w->space.retired_bytes,
        .bytes_size = w->seg.map->bytes,
        .moves = w->moves,
        .retired_waiting = w->space.retired_n,
        .readers = w->readers,
        .refused = w->refused,
        .lost = w->lost,
        .hidden = w->hidden || !w->hold.map,
        .lease_term = bh_snap_load(&w->control->lease_term),
        .lease_until_boot_ns = bh_snap_load(&w->control->lease_until_boot_ns),
        .synced = w->synced,
    };
}
