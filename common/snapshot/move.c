/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/move.c - a new data segment: the first one, a larger one, a compact one
 *
 * Steps of a move, each a crash point: new object reserved; filled and complete; MOVED logged in
 * the old one; control segment points to the new one; old name unlinked. A crash before the control
 * store leaves the old segment current and complete (MOVED at its end only makes readers wait for
 * the successor); a crash after it leaves an old name behind, which the successor sweeps.
 * A move into hiding differs in one thing: the control segment then points to none. The readers let
 * go of the old one, which gives its room back, and it is no half of a cluster that they see.
 * Symbols keep their ids, directory slots their numbers, shapes their keys, the log its sequence.
 */
#include "common/snapshot/writer_int.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_BYTES    (256u << 20)  /* from here growth is by half, not double: memory is dear */
#define MAX_TEXT_BYTES (32ull << 30) /* struct bh_snap_sym, off8 */
#define MAX_BYTES      (1ull << 40)

/* c, grown until at most two thirds are in use. */
static uint64_t grown(uint64_t c, uint64_t used, uint64_t item_bytes)
{
    while (used > c / 3 * 2)
        c = c * item_bytes < LARGE_BYTES ? c * 2 : c + c / 2;
    return (c + 15) & ~(uint64_t)15;
}

/* Memory of the right size, shared when that can be. 0, -ENOSPC, -errno. */
static int new_map(struct bh_snap_writer *w, const struct bh_snap_sizes *z, bool may_hide,
                   struct bh_snap_object *ret_object, struct bh_snap_map **ret)
{
    uint64_t bytes = bh_snap_sizes_total(z);
    struct bh_snap_object o = {.fd = -1};
    if (bytes > MAX_BYTES || z->text_bytes > MAX_TEXT_BYTES)
        return -ENOSPC;
    int rc = bh_snap_object_create(w->hold.instance, 0640, w->hold.group, bytes, &o);
    if (rc < 0 && (may_hide || w->hidden))
        bh_snap_refused(w, rc, "data segment", bytes);
    if (rc < 0 && !may_hide)
        return rc;
    if (rc == 0)
        BH_SNAP_CRASH_POINT(BH_SNAP_STEP_MOVE_RESERVED);
    struct bh_snap_map *m = bh_snap_map_new(o.fd, bytes, true);
    if (!m)
        bh_snap_object_remove(w->hold.instance, &o);
    *ret_object = o;
    *ret = m;
    return m ? 0 : -ENOSPC;
}

static void fill_header(const struct bh_snap_writer *w, struct bh_snap_seg *s, uint64_t segment,
                        uint64_t base)
{
    struct bh_snap_header *h = s->h;
    h->incarnation = w->control->incarnation;
    h->segment = segment;
    h->base = h->head = h->horizon = base;
    h->created_boot_ns = h->heartbeat_boot_ns = bh_boot_ns();
    h->writer_pid = (uint32_t)getpid();
    h->dir_used = w->dir_used;
    h->nodes = w->nodes;
    h->pods = w->pods;
    h->shapes = w->shapes_live;
    h->synced = w->synced;
    h->moves = w->moves;
    h->readers = w->readers;
}

static uint64_t copy_block(struct bh_snap_writer *w, const struct bh_snap_seg *to,
                           uint64_t from_off, uint64_t n)
{
    uint64_t off = bh_snap_space_take(&w->space, n);
    bh_assert(off); /* the new area was sized for everything live */
    memcpy((char *)to->map->base + off, bh_snap_rec(w, from_off), n);
    return off;
}

static void copy_live(struct bh_snap_writer *w, const struct bh_snap_seg *to)
{
    bh_snap_space_reset(&w->space, to->rec_begin, to->rec_end);
    for (uint32_t i = 0; i < w->shapes_n; i++) {
        struct bh_snap_shape *s = &w->shapes[i];
        if (s->refs)
            s->off = copy_block(w, to, s->off - BH_SNAP_KEY_BYTES, s->bytes + BH_SNAP_KEY_BYTES) +
                     BH_SNAP_KEY_BYTES;
    }
    for (uint64_t i = 0; i < w->dir_used; i++) {
        if (!w->seg.dir[i])
            continue;
        const struct bh_rec_head *h = bh_snap_rec(w, w->seg.dir[i]);
        to->dir[i] = copy_block(w, to, w->seg.dir[i], h->size);
        if (h->type == BH_REC_POD)
            ((struct bh_pod_rec *)((char *)to->map->base + to->dir[i]))->shape =
                w->shapes[w->pod_shape[i]].off;
    }
    bh_snap_symbols_move(&w->symbols, to);
}

static void set_recycle_at(struct bh_snap_writer *w)
{
    w->recycle_at = BH_MAX(w->space.live_bytes / 8, w->sizes.record_bytes / 16);
}

int bh_snap_first_segment(struct bh_snap_writer *w)
{
    struct bh_snap_map *m = NULL;
    int rc = new_map(w, &w->sizes, true, &w->data, &m);
    if (rc < 0)
        return rc;
    w->hidden = w->data.fd < 0;
    bh_snap_seg_format(&w->seg, m, &w->sizes);
    fill_header(w, &w->seg, 1, 0);
    w->segment = 1;
    bh_snap_space_reset(&w->space, w->seg.rec_begin, w->seg.rec_end);
    bh_snap_symbols_init(&w->symbols, &w->seg);
    bh_assert(bh_snap_symbols_flush(&w->symbols)); /* symbol 0 */
    w->safe_until = bh_snap_half_ring(&w->seg);
    set_recycle_at(w);
    __atomic_store_n(&w->seg.h->version, BH_SNAP_VERSION_WORD, __ATOMIC_RELEASE);
    return 0;
}

void bh_snap_announce(struct bh_snap_writer *w)
{
    struct bh_snap_control *c = w->control;
    /* Before the first announcement space was reused without asking any reader. */
    if (!w->current)
        __atomic_store_n(&w->seg.h->horizon, w->head, __ATOMIC_SEQ_CST);
    w->current = true;
    __atomic_store_n(&c->hidden, w->hidden, __ATOMIC_RELEASE);
    if (!w->hidden)
        bh_snap_store_release(&c->data_key[w->segment % 2], w->data.key);
    bh_snap_store_release(&c->segment, w->hidden ? 0 : w->segment);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_ANNOUNCED);
}

int bh_snap_move(struct bh_snap_writer *w, uint64_t need_bytes, bool may_hide)
{
    /* Log: so long that falling behind half of it is rarer than rebuilding is dear. Records:
     * what waits for slow readers counts as used when room has run out because of it; otherwise
     * a compact segment just above the limit would move again after every burst. */
    struct bh_snap_sizes z = w->sizes;
    z.syms = grown(z.syms, w->symbols.count, sizeof(struct bh_snap_sym));
    z.text_bytes = grown(z.text_bytes, w->symbols.text_used + w->symbols.pending_used, 1);
    z.dir_slots = grown(z.dir_slots, w->dir_used - w->free_dir_n + 1, sizeof(uint64_t));
    z.dir_slots = BH_MAX(z.dir_slots, w->dir_used);
    uint64_t waiting = need_bytes ? w->space.retired_bytes : 0;
    z.record_bytes = grown(z.record_bytes, w->space.live_bytes + waiting + need_bytes, 1);
    while (!w->fixed_log && z.log_entries < w->nodes + w->pods)
        z.log_entries *= 2;
    struct bh_snap_object data, old = w->data;
    struct bh_snap_map *m = NULL;
    struct bh_snap_seg to, from = w->seg;
    int rc = new_map(w, &z, may_hide, &data, &m);
    if (rc < 0)
        return rc;
    bh_snap_seg_format(&to, m, &z);
    w->moves++;
    copy_live(w, &to);
    fill_header(w, &to, w->segment + 1, w->head + 1);
    __atomic_store_n(&to.h->version, BH_SNAP_VERSION_WORD, __ATOMIC_RELEASE);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_MOVE_FILLED);
    bh_snap_log_append(w, BH_SNAP_LOG_MOVED, w->segment + 1, 0);
    w->seg = to;
    w->data = data;
    w->hidden = data.fd < 0;
    w->symbols.seg = &w->seg;
    w->sizes = z;
    w->segment++;
    w->safe_until = w->head; /* look at the readers before the next change */
    set_recycle_at(w);
    if (w->current)
        bh_snap_announce(w);
    bh_snap_object_remove(w->hold.instance, &old);
    BH_SNAP_CRASH_POINT(BH_SNAP_STEP_MOVE_UNLINKED);
    bh_snap_seg_close(&from);
    return 0;
}
