/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/reader.c - following the log, and rebuilding from the directory
 *
 * Owns:       private copies of shapes, the symbol map, one copy buffer.
 * Invariants: pos is the position up to which everything was delivered (from END on); the slot's
 *             position is never ahead of it; phase WALK never consumes the log.
 * Runs in:    the owner's thread. Never waits, never retries without a bound.
 */
#include "common/snapshot/reader_int.h"

#define PUBLISH_EVERY 4096u /* log entries; lets the writer recycle during one long follow */

/* One call of bh_snap_follow. */
struct turn {
    struct bh_snap_reader *r;
    void (*fn)(void *arg, const struct bh_snap_event *ev);
    void *arg;
    uint64_t left; /* events that may still be delivered */
};

static void deliver(const struct turn *t, struct bh_snap_event ev)
{
    t->fn(t->arg, &ev);
}

/* ---- one object ------------------------------------------------------------------------------ */
static enum bh_snap_outcome deliver_pod(const struct turn *t, enum bh_snap_op op, uint64_t pos,
                                        struct bh_pod_rec *pod)
{
    struct bh_snap_event ev = {.op = op, .pos = pos, .pod = pod};
    bool fresh;
    enum bh_snap_outcome o = bh_snap_copy_shape(t->r, pod->shape, &ev.shape_key, &ev.shape, &fresh);
    if (o != BH_SNAP_OK)
        return o;
    pod->shape = ev.shape_key;
    if (fresh)
        deliver(t, (struct bh_snap_event){.op = BH_SNAP_SHAPE_PUT,
                                          .pos = pos,
                                          .shape = ev.shape,
                                          .shape_key = ev.shape_key});
    deliver(t, ev);
    return BH_SNAP_OK;
}

static void deliver_shape_del(const struct turn *t, uint64_t pos, uint64_t key)
{
    uint64_t shape;
    if (!bh_umap_get(&t->r->shapes, key, &shape))
        return; /* never met: its pods came and went before this reader did */
    deliver(t, (struct bh_snap_event){.op = BH_SNAP_SHAPE_DEL,
                                      .pos = pos,
                                      .shape = (const void *)(uintptr_t)shape,
                                      .shape_key = key});
    bh_umap_del(&t->r->shapes, key);
    free((void *)(uintptr_t)shape);
}

/* A record of the given type (0 = node or pod) as put or delete. */
static enum bh_snap_outcome deliver_record(const struct turn *t, uint64_t pos, uint64_t off,
                                           uint16_t type, bool del)
{
    struct bh_rec_head *h;
    enum bh_snap_outcome o = bh_snap_copy(t->r, off, type, &h);
    if (o != BH_SNAP_OK)
        return o;
    if (h->type == BH_REC_POD)
        return deliver_pod(t, del ? BH_SNAP_POD_DEL : BH_SNAP_POD_PUT, pos, (void *)h);
    deliver(t, (struct bh_snap_event){
                   .op = del ? BH_SNAP_NODE_DEL : BH_SNAP_NODE_PUT, .pos = pos, .node = (void *)h});
    return BH_SNAP_OK;
}

/* ---- rebuild --------------------------------------------------------------------------------- */
static enum bh_snap_outcome begin(const struct turn *t)
{
    struct bh_snap_reader *r = t->r;
    bool registered = false;
    /* The horizon passes a position just loaded only if the writer recycles in this instant. */
    for (int round = 0; round < 64 && !registered; round++) {
        r->pos = bh_snap_load_acquire(&r->seg.h->head);
        registered = bh_snap_register(r, r->pos);
    }
    if (!registered)
        return bh_snap_corrupt(r, "horizon", r->pos);
    /* Beginning behind MOVED, no change would tell us to leave. */
    if (r->pos > r->seg.h->base) {
        const struct bh_snap_entry *last = &r->seg.log[(r->pos - 1) & (r->seg.log_entries - 1)];
        r->moved = bh_snap_load_acquire(&last->seq) == r->pos &&
                   bh_snap_load(&last->op) == BH_SNAP_LOG_MOVED;
    }
    r->walk_at = 0;
    r->walk_end = bh_snap_load_acquire(&r->seg.h->dir_used);
    if (r->walk_end > r->seg.dir_cap)
        return bh_snap_corrupt(r, "length of the directory", r->walk_end);
    r->phase = BH_SNAP_PHASE_WALK;
    r->delivered = true;
    deliver(t, (struct bh_snap_event){.op = BH_SNAP_BEGIN, .pos = r->pos});
    return BH_SNAP_OK;
}

static enum bh_snap_outcome walk(struct turn *t)
{
    struct bh_snap_reader *r = t->r;
    for (; r->walk_at < r->walk_end; r->walk_at++) {
        uint64_t off = bh_snap_load_acquire(&r->seg.dir[r->walk_at]);
        if (off == 0)
            continue;
        if (t->left == 0)
            return BH_SNAP_MORE;
        enum bh_snap_outcome o = deliver_record(t, r->pos, off, 0, false);
        if (o != BH_SNAP_OK)
            return o;
        t->left--;
    }
    r->catch_up_to = UINT64_MAX;
    r->phase = BH_SNAP_PHASE_CATCH_UP;
    return BH_SNAP_OK;
}

/* ---- log ------------------------------------------------------------------------------------- */
static enum bh_snap_outcome read_entry(struct bh_snap_reader *r, uint64_t seq,
                                       struct bh_snap_entry *ret)
{
    const struct bh_snap_entry *e = &r->seg.log[(seq - 1) & (r->seg.log_entries - 1)];
    uint64_t first = bh_snap_load_acquire(&e->seq);
    *ret = (struct bh_snap_entry){.seq = seq};
    ret->off = bh_snap_load_acquire(&e->off);
    ret->key = bh_snap_load_acquire(&e->key);
    ret->op = bh_snap_load_acquire(&e->op);
    uint64_t second = bh_snap_load(&e->seq);
    if (first == seq && second == seq)
        return BH_SNAP_OK;
    /* 0 or larger: overwritten by a later lap. Smaller: head promised what is not there. */
    if (first != 0 && first < seq)
        return bh_snap_corrupt(r, "sequence of the change log", seq);
    return BH_SNAP_OVERRUN;
}

static enum bh_snap_outcome apply(const struct turn *t, const struct bh_snap_entry *e)
{
    switch (e->op) {
    case BH_SNAP_LOG_NODE_PUT:
    case BH_SNAP_LOG_NODE_DEL:
        return deliver_record(t, e->seq, e->off, BH_REC_NODE, e->op == BH_SNAP_LOG_NODE_DEL);
    case BH_SNAP_LOG_POD_PUT:
    case BH_SNAP_LOG_POD_DEL:
        return deliver_record(t, e->seq, e->off, BH_REC_POD, e->op == BH_SNAP_LOG_POD_DEL);
    case BH_SNAP_LOG_SHAPE_DEL:
        deliver_shape_del(t, e->seq, e->key);
        return BH_SNAP_OK;
    case BH_SNAP_LOG_MOVED:
        t->r->moved = true;
        return BH_SNAP_OK;
    default:
        return bh_snap_corrupt(t->r, "operation in the change log", e->seq);
    }
}

/* synced is stored after everything that it stands for, so it is loaded before head. */
static bool is_synced(const struct bh_snap_reader *r)
{
    return bh_snap_load_acquire(&r->seg.h->synced) != 0;
}

/* A rebuild that waits for the writer; not asked of the segment where it has been asked before: OK
 * without END must not be. */
static bool has_no_end(const struct bh_snap_reader *r)
{
    return r->phase == BH_SNAP_PHASE_WALK
               ? !is_synced(r)
               : r->phase == BH_SNAP_PHASE_CATCH_UP && r->catch_up_to == UINT64_MAX;
}

static void caught_up(const struct turn *t)
{
    struct bh_snap_reader *r = t->r;
    if (r->phase != BH_SNAP_PHASE_CATCH_UP || r->pos < r->catch_up_to)
        return;
    r->phase = BH_SNAP_PHASE_FOLLOW;
    deliver(t, (struct bh_snap_event){.op = BH_SNAP_END, .pos = r->pos});
}

/* Everything between pos and head. */
static enum bh_snap_outcome drain(struct turn *t)
{
    struct bh_snap_reader *r = t->r;
    const bool synced = is_synced(r);
    const uint64_t head = bh_snap_load_acquire(&r->seg.h->head); /* pairs with bh_snap_log_append */
    if (synced && r->phase == BH_SNAP_PHASE_CATCH_UP && r->catch_up_to == UINT64_MAX)
        r->catch_up_to = head;
    if (head < r->pos)
        return bh_snap_corrupt(r, "head of the change log", head);
    caught_up(t);
    while (r->pos < head && !r->moved) {
        struct bh_snap_entry e;
        if (t->left == 0)
            return BH_SNAP_MORE;
        if (head - r->pos > r->seg.log_entries)
            return BH_SNAP_OVERRUN;
        enum bh_snap_outcome o = read_entry(r, r->pos + 1, &e);
        if (o == BH_SNAP_OK)
            o = apply(t, &e);
        if (o != BH_SNAP_OK)
            return o;
        t->left--;
        r->pos++;
        caught_up(t);
        if (r->pos - r->published_pos >= PUBLISH_EVERY)
            bh_snap_register(r, r->pos);
    }
    return BH_SNAP_OK;
}

/* Segment by segment, as the writer moved. Bounded: the writer cannot move as fast as we map. */
static enum bh_snap_outcome follow_log(struct turn *t)
{
    struct bh_snap_reader *r = t->r;
    for (int round = 0; round < 16; round++) {
        enum bh_snap_outcome o = drain(t);
        if (o != BH_SNAP_OK)
            return o;
        if (!r->moved || bh_snap_load_acquire(&r->control->segment) == r->segment)
            return BH_SNAP_OK; /* moved, but to nowhere: the writer died in between */
        o = bh_snap_switch(r);
        if (o != BH_SNAP_OK)
            return o;
    }
    return BH_SNAP_MORE;
}

enum bh_snap_outcome bh_snap_follow(struct bh_snap_reader *r, unsigned max_events,
                                    void (*fn)(void *arg, const struct bh_snap_event *ev),
                                    void *arg)
{
    struct turn t = {.r = r, .fn = fn, .arg = arg, .left = max_events ? max_events : UINT64_MAX};
    enum bh_snap_outcome o = bh_snap_attach(r);
    if (o == BH_SNAP_OK && r->phase == BH_SNAP_PHASE_NEW)
        o = begin(&t);
    if (o == BH_SNAP_OK && r->phase == BH_SNAP_PHASE_WALK)
        o = walk(&t);
    if (o == BH_SNAP_OK)
        o = follow_log(&t);
    if (o == BH_SNAP_OVERRUN) {
        bh_snap_drop_shapes(r);
        r->phase = BH_SNAP_PHASE_NEW;
        r->moved = false;
    } else if (r->control && r->seg.map && r->phase != BH_SNAP_PHASE_NEW) {
        if (r->pos != r->published_pos)
            bh_snap_register(r, r->pos);
        /* Not ready: the log goes on in a segment that is gone already. So may the writer be. */
        if (o == BH_SNAP_OK || o == BH_SNAP_NOT_READY)
            bh_snap_look_around(r);
    }
    return (o == BH_SNAP_OK || o == BH_SNAP_MORE) && has_no_end(r) ? bh_snap_not_synced(r) : o;
}

/* ---- life ------------------------------------------------------------------------------------ */
struct bh_snap_reader *bh_snap_reader_new(const char *runtime_dir, struct bh_symtab *symtab)
{
    struct bh_snap_reader *r = bh_calloc(1, sizeof(*r));
    r->runtime_dir = bh_strdup(runtime_dir);
    snprintf(r->name, sizeof(r->name), "of %s", runtime_dir);
    r->symtab = symtab;
    r->slot = r->slots_fd = -1;
    return r;
}

void bh_snap_reader_believe(struct bh_snap_reader *r, bool (*may_announce)(const void *arg, uid_t),
                            const void *arg)
{
    r->may_announce = may_announce;
    r->may_announce_arg = arg;
}

void bh_snap_reader_free(struct bh_snap_reader *r)
{
    if (!r)
        return;
    bh_snap_lose_control(r);
    bh_snap_drop_data(r);
    bh_umap_fini(&r->shapes);
    free(r->sym_map);
    free(r->rec.p);
    free(r->runtime_dir);
    free(r);
}

uint64_t bh_snap_reader_pos(const struct bh_snap_reader *r)
{
    return r->pos;
}

bool bh_snap_reader_info(const struct bh_snap_reader *r, struct bh_snap_stats *ret)
{
    const struct bh_snap_header *h = r->seg.h;
    if (!h)
        return false;
    *ret = (struct bh_snap_stats){
        .incarnation = r->seg_incarnation,
        .segment = r->segment,
        .head = bh_snap_load_acquire(&h->head),
        .heartbeat_boot_ns = bh_snap_load_acquire(&h->heartbeat_boot_ns),
        .nodes = bh_snap_load(&h->nodes),
        .pods = bh_snap_load(&h->pods),
        .shapes = bh_snap_load(&h->shapes),
        .symbols = bh_snap_load(&h->symbols),
        .bytes_used = bh_snap_load(&h->bytes_used),
        .bytes_size = r->seg.map->bytes,
        .moves = bh_snap_load(&h->moves),
        .retired_waiting = bh_snap_load(&h->retired_waiting),
        .readers = bh_snap_load(&h->readers),
        .synced = bh_snap_load_acquire(&h->synced) != 0,
    };
    (void)bh_snap_reader_lease(r, &ret->lease_term, &ret->lease_until_boot_ns);
    return true;
}

bool bh_snap_reader_lease(const struct bh_snap_reader *r, uint64_t *ret_term,
                          uint64_t *ret_until_boot_ns)
{
    if (!r->control)
        return false;
    uint64_t until = bh_snap_load_acquire(&r->control->lease_until_boot_ns);
    uint64_t term = bh_snap_load_acquire(&r->control->lease_term);
    *ret_term = term;
    *ret_until_boot_ns = until;
    return true;
}

bool bh_snap_reader_absent(const struct bh_snap_reader *r)
{
    const struct bh_snap_control *c = r->control;

    return !r->seg.h && (!c || __atomic_load_n(&c->hidden, __ATOMIC_ACQUIRE) ||
                         bh_snap_load_acquire(&c->segment));
}

const char *bh_snap_reader_error(const struct bh_snap_reader *r)
{
    return r->error;
}
