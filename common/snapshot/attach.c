/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/attach.c - finding, checking and leaving segments
 *
 * Everything is optional at any time: no control segment, one under construction, one of another
 * version, a data segment whose name has just been replaced. Each is an outcome, none is an error
 * that ends the reader.
 */
#include "common/snapshot/reader_int.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#define STALE_NS      2000000000ull /* heartbeat older than this: is another one announced? */
#define NAME_CHECK_NS 1000000000ull /* at most this often */

BH_PRINTF(3, 4)
static enum bh_snap_outcome refuse(struct bh_snap_reader *r, enum bh_snap_outcome o,
                                   const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->error, sizeof(r->error), fmt, ap);
    va_end(ap);
    return o;
}

void bh_snap_drop_shapes(struct bh_snap_reader *r)
{
    uint64_t key, shape;
    for (size_t it = 0; bh_umap_next(&r->shapes, &it, &key, &shape);)
        free((void *)(uintptr_t)shape);
    bh_umap_clear(&r->shapes);
}

void bh_snap_drop_data(struct bh_snap_reader *r)
{
    bh_snap_seg_close(&r->seg);
    bh_snap_drop_shapes(r);
    if (r->sym_cap)
        memset(r->sym_map, 0, r->sym_cap * sizeof(*r->sym_map));
    r->phase = BH_SNAP_PHASE_NEW;
    r->moved = r->delivered = false;
}

void bh_snap_lose_control(struct bh_snap_reader *r)
{
    if (!r->control)
        return;
    bh_snap_slots_release(r->slots_fd, r->slot);
    if (r->slots_fd >= 0)
        close(r->slots_fd);
    bh_snap_map_free(r->control_map);
    r->control_map = NULL;
    r->control = NULL;
    r->slot = r->slots_fd = -1;
}

enum bh_snap_outcome bh_snap_corrupt(struct bh_snap_reader *r, const char *what, uint64_t where)
{
    refuse(r, BH_SNAP_CORRUPT,
           "snapshot %s: segment %" PRIu64 " of %" PRIu64 ": %s is damaged (at %" PRIu64 ")",
           r->name, r->segment, r->incarnation, what, where);
    bh_snap_lose_control(r);
    bh_snap_drop_data(r);
    return BH_SNAP_CORRUPT;
}

bool bh_snap_register(struct bh_snap_reader *r, uint64_t pos)
{
    bh_snap_slots_publish(r->slots_fd, r->slot, r->segment, pos);
    r->published_pos = pos;
    return __atomic_load_n(&r->seg.h->horizon, __ATOMIC_SEQ_CST) <= pos;
}

/* ---- control segment ------------------------------------------------------------------------- */
static enum bh_snap_outcome check_control(struct bh_snap_reader *r, const struct bh_snap_control *c)
{
    uint32_t version = __atomic_load_n(&c->version, __ATOMIC_ACQUIRE);
    if (version == 0)
        return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: under construction", r->name);
    if (c->magic != BH_SNAP_MAGIC_CONTROL)
        return refuse(r, BH_SNAP_CORRUPT, "snapshot %s: not a snapshot of berth", r->name);
    if (version != BH_SNAP_VERSION_WORD)
        return refuse(r, BH_SNAP_VERSION, "snapshot %s: layout %u.%u, this program reads %u.%u",
                      r->name, version >> 16, version & 0xffff, BH_SNAP_LAYOUT, BH_REC_LAYOUT);
    if (__atomic_load_n(&c->gone, __ATOMIC_ACQUIRE))
        return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: its writer has stopped", r->name);
    return BH_SNAP_OK;
}

/* Without slots (no right to write them, all taken) reading works too, only unprotected. */
static void find_slot(struct bh_snap_reader *r)
{
    char name[BH_SNAP_NAME_MAX];
    uint64_t bytes;
    bh_snap_object_name(r->at.instance, r->control->slots_key, name);
    r->slots_fd = bh_snap_object_open(name, r->at.uid, true, &bytes);
    if (r->slots_fd < 0)
        return;
    r->slot = bh_snap_slots_claim(r->slots_fd);
    /* Another control segment of the same writer: what is mapped goes on being followed. */
    if (r->seg.map && r->seg_incarnation == r->incarnation && r->phase != BH_SNAP_PHASE_NEW)
        (void)bh_snap_register(r, r->published_pos);
}

static enum bh_snap_outcome find_announced(struct bh_snap_reader *r)
{
    struct bh_err err = {0};
    int rc = bh_snap_announced(r->runtime_dir, &r->at, &err);
    if (rc == 0 && r->may_announce && !r->may_announce(r->may_announce_arg, r->at.uid))
        rc = bh_err_set(
            &err, -EPERM,
            "user %u announced it, and is not berth-watcher's user (--users watcher=USER)",
            (unsigned)r->at.uid);
    if (rc == 0) {
        snprintf(r->name, sizeof(r->name), "%s", r->at.name);
        return BH_SNAP_OK;
    }
    snprintf(r->name, sizeof(r->name), "of %s", r->runtime_dir);
    if (rc == -EPERM)
        return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: not believed: %s", r->name, err.msg);
    return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: %s: is berth-watcher running?", r->name,
                  rc == -ENOENT ? "none is announced" : err.msg);
}

static enum bh_snap_outcome open_control(struct bh_snap_reader *r)
{
    enum bh_snap_outcome o = find_announced(r);
    struct bh_snap_map *m = NULL;
    uint64_t bytes = 0;
    if (o != BH_SNAP_OK)
        return o;
    o = BH_SNAP_NOT_READY;
    int fd = bh_snap_object_open(r->at.name, r->at.uid, false, &bytes);
    if (fd == -EPERM)
        return refuse(r, o, "snapshot %s: owner or mode is not to be trusted: user %u announced it",
                      r->name, (unsigned)r->at.uid);
    if (fd < 0)
        return refuse(r, o, "snapshot %s: %s: is berth-watcher running?", r->name, strerror(-fd));
    if (bytes < sizeof(struct bh_snap_control))
        o = refuse(r, BH_SNAP_CORRUPT, "snapshot %s: %" PRIu64 " bytes are too few", r->name,
                   bytes);
    else if (!(m = bh_snap_map_new(fd, sizeof(struct bh_snap_control), false)))
        refuse(r, o, "snapshot %s: cannot be mapped", r->name);
    else
        o = check_control(r, m->base);
    close(fd);
    if (o != BH_SNAP_OK) {
        bh_snap_map_free(m);
        return o;
    }
    r->control_map = m;
    r->control = m->base;
    r->incarnation = r->control->incarnation;
    find_slot(r);
    return BH_SNAP_OK;
}

/* ---- data segment ---------------------------------------------------------------------------- */
/* The current data segment's number and key, of one instant; 0 = there is none. */
static uint64_t current(const struct bh_snap_reader *r, uint64_t *ret_key)
{
    const struct bh_snap_control *c = r->control;
    uint64_t segment, again = bh_snap_load_acquire(&c->segment);
    unsigned rounds = 0; /* a writer that never stops moving is none; the header tells anyway */
    do {
        segment = again;
        *ret_key = bh_snap_load_acquire(&c->data_key[segment % 2]);
        again = bh_snap_load(&c->segment);
    } while (again != segment && ++rounds < 16);
    return segment;
}

static struct bh_snap_map *map_named(struct bh_snap_reader *r, uint64_t key, int *ret_rc)
{
    char name[BH_SNAP_NAME_MAX];
    struct bh_snap_map *m = NULL;
    uint64_t bytes = 0;
    bh_snap_object_name(r->at.instance, key, name);
    int fd = bh_snap_object_open(name, r->at.uid, false, &bytes);
    *ret_rc = BH_MIN(fd, 0);
    if (fd < 0)
        return NULL;
    if (bytes < BH_SNAP_PAGE || bytes > SIZE_MAX / 2)
        *ret_rc = -EBADMSG;
    else if (!(m = bh_snap_map_new(fd, bytes, false)))
        *ret_rc = -ENOMEM;
    close(fd);
    return m;
}

/* Takes the reference of m in every case. On OK seg is the new one and the old one is gone. */
static enum bh_snap_outcome adopt(struct bh_snap_reader *r, struct bh_snap_map *m, uint64_t segment)
{
    const struct bh_snap_header *h = m->base;
    struct bh_snap_seg seg;
    uint32_t version = __atomic_load_n(&h->version, __ATOMIC_ACQUIRE);
    const char *wrong = NULL;
    if (version != BH_SNAP_VERSION_WORD) {
        bh_snap_map_free(m);
        return refuse(r, BH_SNAP_VERSION,
                      "snapshot %s: data of layout %u.%u, this program reads %u.%u", r->name,
                      version >> 16, version & 0xffff, BH_SNAP_LAYOUT, BH_REC_LAYOUT);
    }
    wrong = bh_snap_seg_open(&seg, m);
    if (!wrong && (h->incarnation != r->incarnation || h->segment != segment))
        wrong = "identity of the data segment";
    if (wrong) {
        bh_snap_map_free(m);
        r->segment = segment;
        return bh_snap_corrupt(r, wrong, 0);
    }
    bh_snap_seg_close(&r->seg);
    r->seg = seg;
    r->seg_incarnation = r->incarnation;
    r->segment = segment;
    r->moved = false;
    return BH_SNAP_OK;
}

enum bh_snap_outcome bh_snap_not_synced(struct bh_snap_reader *r)
{
    const bool hidden = r->control && __atomic_load_n(&r->control->hidden, __ATOMIC_ACQUIRE);
    return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: %s", r->name,
                  hidden ? "there is no room for it in " BH_SNAP_FOLDER : "not synced yet");
}

static enum bh_snap_outcome open_data(struct bh_snap_reader *r)
{
    int rc = 0;
    /* The name may be replaced between the two looks; the second one then finds its successor. */
    for (int round = 0; round < 16; round++) {
        uint64_t key, segment = current(r, &key);
        if (segment == 0) { /* hidden: what is kept here is room that its successor needs */
            bh_snap_drop_data(r);
            return bh_snap_not_synced(r);
        }
        struct bh_snap_map *m = map_named(r, key, &rc);
        if (m)
            return adopt(r, m, segment);
        if (rc == -EBADMSG)
            return bh_snap_corrupt(r, "length of the data segment", 0);
        if (rc != -ENOENT)
            break;
    }
    return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: data segment: %s", r->name, strerror(-rc));
}

enum bh_snap_outcome bh_snap_attach(struct bh_snap_reader *r)
{
    enum bh_snap_outcome o = r->control ? BH_SNAP_OK : open_control(r);
    if (o != BH_SNAP_OK)
        return o;
    if (r->seg.map && r->seg_incarnation == r->incarnation) {
        /* A rebuild from a segment that is not current any more would be right but wasted. */
        bool left = bh_snap_load_acquire(&r->control->segment) != r->segment;
        return left && r->phase == BH_SNAP_PHASE_NEW ? open_data(r) : BH_SNAP_OK;
    }
    if (__atomic_load_n(&r->control->gone, __ATOMIC_ACQUIRE)) {
        bh_snap_lose_control(r);
        return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: its writer has stopped", r->name);
    }
    if (bh_snap_load_acquire(&r->control->segment) == 0) {
        bh_snap_look_around(r);
        return bh_snap_not_synced(r);
    }
    bool had = r->delivered;
    bh_snap_drop_data(r);
    return had ? BH_SNAP_NEW_INCARNATION : open_data(r);
}

enum bh_snap_outcome bh_snap_switch(struct bh_snap_reader *r)
{
    enum bh_snap_outcome o = open_data(r);
    if (o != BH_SNAP_OK)
        return o;
    if (r->seg.h->base <= r->pos && bh_snap_register(r, r->pos))
        return BH_SNAP_OK;
    return BH_SNAP_OVERRUN;
}

void bh_snap_look_around(struct bh_snap_reader *r)
{
    struct bh_snap_announced now_at;
    struct bh_err ignored;
    if (__atomic_load_n(&r->control->gone, __ATOMIC_ACQUIRE)) {
        bh_snap_lose_control(r);
        /* The same writer may have another one, and the lease in it is worth knowing at once. */
        (void)open_control(r);
        return;
    }
    /* Nothing tells of a writer that was killed after its names had been removed. */
    uint64_t now = bh_boot_ns();
    uint64_t beat = r->seg.h ? bh_snap_load(&r->seg.h->heartbeat_boot_ns) : 0;
    if ((now > beat && now - beat < STALE_NS) || now - r->name_checked_ns < NAME_CHECK_NS)
        return;
    r->name_checked_ns = now;
    if (bh_snap_announced(r->runtime_dir, &now_at, &ignored) == 0 &&
        !bh_streq(now_at.name, r->at.name))
        bh_snap_lose_control(r);
}
