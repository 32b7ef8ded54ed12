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
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STALE_NS      2000000000ull /* heartbeat older than this: is the name somebody else's? */
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
    bh_snap_slots_release(&r->slots, r->slot);
    if (r->slots.fd >= 0)
        close(r->slots.fd);
    bh_snap_map_unref(r->control_map);
    r->control_map = NULL;
    r->control = NULL;
    r->slot = -1;
    r->slots = (struct bh_snap_slots){.fd = -1};
}

enum bh_snap_outcome bh_snap_corrupt(struct bh_snap_reader *r, const char *what, uint64_t where)
{
    refuse(r, BH_SNAP_CORRUPT,
           "snapshot %s.%" PRIu64 ".%" PRIu64 ": %s is damaged (at %" PRIu64 ")",
           r->hub ? "(anonymous)" : r->name, r->incarnation, r->segment, what, where);
    bh_snap_lose_control(r);
    bh_snap_drop_data(r);
    return BH_SNAP_CORRUPT;
}

bool bh_snap_register(struct bh_snap_reader *r, uint64_t pos)
{
    bh_snap_slots_publish(&r->slots, r->slot, r->segment, pos);
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
    char file[BH_SNAP_FILE_MAX];
    uint64_t bytes;
    bh_snap_slots_name(r->name, r->incarnation, file);
    r->slots = (struct bh_snap_slots){.fd = shm_open(file, O_RDWR, 0)};
    if (r->slots.fd < 0)
        return;
    if (bh_snap_object_check(r->slots.fd, true, &bytes) < 0) {
        close(r->slots.fd);
        r->slots.fd = -1;
        return;
    }
    r->slot = bh_snap_slots_claim(&r->slots);
}

static enum bh_snap_outcome open_control(struct bh_snap_reader *r)
{
    enum bh_snap_outcome o = BH_SNAP_NOT_READY;
    struct bh_snap_map *m = NULL;
    struct stat st = {0};
    uint64_t bytes = 0;
    int fd = shm_open(r->name, O_RDONLY, 0);
    if (fd < 0)
        return refuse(r, o, "snapshot %s: %s", r->name, strerror(errno));
    if (fstat(fd, &st) < 0 || bh_snap_object_check(fd, false, &bytes) < 0)
        refuse(r, o, "snapshot %s: owner %u or mode %o is not to be trusted", r->name,
               (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
    else if (bytes == 0)
        refuse(r, o, "snapshot %s: under construction", r->name);
    else if (bytes < sizeof(struct bh_snap_control))
        o = refuse(r, BH_SNAP_CORRUPT, "snapshot %s: %" PRIu64 " bytes are too few", r->name,
                   bytes);
    else if (!(m = bh_snap_map_new(fd, sizeof(struct bh_snap_control), false)))
        refuse(r, o, "snapshot %s: cannot be mapped", r->name);
    else
        o = check_control(r, m->base);
    close(fd);
    if (o != BH_SNAP_OK) {
        bh_snap_map_unref(m);
        return o;
    }
    r->control_map = m;
    r->control = m->base;
    r->dev = st.st_dev;
    r->ino = st.st_ino;
    r->incarnation = r->control->incarnation;
    find_slot(r);
    return BH_SNAP_OK;
}

static enum bh_snap_outcome attach_control(struct bh_snap_reader *r)
{
    if (r->control)
        return BH_SNAP_OK;
    if (!r->hub)
        return open_control(r);
    if (__atomic_load_n(&r->hub->control.gone, __ATOMIC_ACQUIRE))
        return refuse(r, BH_SNAP_NOT_READY, "snapshot (anonymous): its writer has stopped");
    r->control = &r->hub->control;
    r->incarnation = r->control->incarnation;
    r->slots = (struct bh_snap_slots){.fd = -1, .mem = r->hub->slots};
    r->slot = bh_snap_slots_claim(&r->slots);
    return BH_SNAP_OK;
}

/* ---- data segment ---------------------------------------------------------------------------- */
static struct bh_snap_map *map_named(struct bh_snap_reader *r, uint64_t segment, int *ret_errno)
{
    char file[BH_SNAP_FILE_MAX];
    struct bh_snap_map *m = NULL;
    uint64_t bytes = 0;
    bh_snap_data_name(r->name, r->incarnation, segment, file);
    int fd = shm_open(file, O_RDONLY, 0);
    if (fd < 0) {
        *ret_errno = errno;
        return NULL;
    }
    *ret_errno = 0;
    if (bh_snap_object_check(fd, false, &bytes) < 0)
        *ret_errno = EPERM;
    else if (bytes < BH_SNAP_PAGE || bytes > SIZE_MAX / 2)
        *ret_errno = EBADMSG;
    else if (!(m = bh_snap_map_new(fd, bytes, false)))
        *ret_errno = ENOMEM;
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
        bh_snap_map_unref(m);
        return refuse(r, BH_SNAP_VERSION,
                      "snapshot %s: data of layout %u.%u, this program reads %u.%u", r->name,
                      version >> 16, version & 0xffff, BH_SNAP_LAYOUT, BH_REC_LAYOUT);
    }
    wrong = bh_snap_seg_open(&seg, m);
    if (!wrong && (h->incarnation != r->incarnation || h->segment != segment))
        wrong = "identity of the data segment";
    if (wrong) {
        bh_snap_map_unref(m);
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
    return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: not synced yet",
                  r->hub ? "(anonymous)" : r->name);
}

static enum bh_snap_outcome open_data(struct bh_snap_reader *r)
{
    int err = 0;
    /* The name may be replaced between the two looks; the second one then finds its successor. */
    for (int round = 0; round < 16; round++) {
        uint64_t segment = bh_snap_load_acquire(&r->control->segment);
        if (segment == 0)
            return bh_snap_not_synced(r);
        struct bh_snap_map *m = r->hub ? bh_snap_hub_current(r->hub) : map_named(r, segment, &err);
        if (m && r->hub)
            segment = ((const struct bh_snap_header *)m->base)->segment;
        if (m)
            return adopt(r, m, segment);
        if (err == EBADMSG)
            return bh_snap_corrupt(r, "length of the data segment", 0);
        if (err != ENOENT)
            break;
    }
    return refuse(r, BH_SNAP_NOT_READY, "snapshot %s: data segment: %s", r->name, strerror(err));
}

enum bh_snap_outcome bh_snap_attach(struct bh_snap_reader *r)
{
    enum bh_snap_outcome o = attach_control(r);
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
    struct stat st;
    if (__atomic_load_n(&r->control->gone, __ATOMIC_ACQUIRE)) {
        bh_snap_lose_control(r);
        return;
    }
    if (r->hub)
        return;
    /* A control segment removed by hand says nothing; its successor has another inode. */
    uint64_t now = bh_boot_ns();
    uint64_t beat = r->seg.h ? bh_snap_load(&r->seg.h->heartbeat_boot_ns) : 0;
    if ((now > beat && now - beat < STALE_NS) || now - r->name_checked_ns < NAME_CHECK_NS)
        return;
    r->name_checked_ns = now;
    int fd = shm_open(r->name, O_RDONLY, 0);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && (st.st_dev != r->dev || st.st_ino != r->ino))
        bh_snap_lose_control(r);
    close(fd);
}
