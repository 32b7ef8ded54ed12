/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/segment.c - shared memory objects
 *
 * Fails with: -ENOSPC (also for EFBIG: a file size limit is the same situation), -EPERM, -errno.
 */
#include "common/snapshot/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool bh_snap_name_valid(const char *name)
{
    size_t n = name ? strlen(name) : 0;
    return n >= 2 && n < BH_SNAP_NAME_MAX && name[0] == '/' && !strchr(name + 1, '/');
}

void bh_snap_data_name(const char *name, uint64_t incarnation, uint64_t segment,
                       char out[static BH_SNAP_FILE_MAX])
{
    snprintf(out, BH_SNAP_FILE_MAX, "%s.%" PRIu64 ".%" PRIu64, name, incarnation, segment);
}

void bh_snap_slots_name(const char *name, uint64_t incarnation, char out[static BH_SNAP_FILE_MAX])
{
    snprintf(out, BH_SNAP_FILE_MAX, "%s.%" PRIu64 ".readers", name, incarnation);
}

int bh_snap_object_reserve(int fd, uint64_t bytes)
{
    int rc;
    do
        rc = posix_fallocate(fd, 0, (off_t)bytes);
    while (rc == EINTR);
    return rc == EFBIG || rc == ENOSPC ? -ENOSPC : -rc;
}

int bh_snap_object_create(const char *file, unsigned mode, gid_t group, uint64_t bytes)
{
    int rc;
    int fd = shm_open(file, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return -errno;
    /* Group before mode: at no instant may a wrong group have access. fchmod, because the mode of
     * shm_open goes through the umask. */
    if ((group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) < 0) || fchmod(fd, mode) < 0) {
        rc = -errno;
        goto fail;
    }
    rc = bh_snap_object_reserve(fd, bytes);
    if (rc == 0)
        return fd;
fail:
    shm_unlink(file);
    close(fd);
    return rc;
}

static bool own_group(gid_t gid)
{
    gid_t list[64];
    if (gid == getegid())
        return true;
    int n = getgroups((int)BH_ARRAY_LEN(list), list);
    for (int i = 0; i < n; i++)
        if (list[i] == gid)
            return true;
    return false;
}

int bh_snap_object_check(int fd, bool allow_group_write, uint64_t *ret_bytes)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    mode_t forbidden = allow_group_write ? S_IWOTH : S_IWGRP | S_IWOTH;
    bool owner_ok = st.st_uid == geteuid() || st.st_uid == 0 || own_group(st.st_gid);
    if (!S_ISREG(st.st_mode) || (st.st_mode & forbidden) || !owner_ok)
        return -EPERM;
    *ret_bytes = (uint64_t)st.st_size;
    return 0;
}

int bh_snap_object_lock(int fd, uint64_t at)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
    return fcntl(fd, F_OFD_SETLK, &l) == 0 ? 0 : -EAGAIN;
}

void bh_snap_object_unlock(int fd, uint64_t at)
{
    struct flock l = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
    fcntl(fd, F_OFD_SETLK, &l);
}

struct bh_snap_map *bh_snap_map_new(int fd, size_t bytes, bool writable)
{
    int prot = PROT_READ | (writable ? PROT_WRITE : 0);
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *base = mmap(NULL, bytes, prot, flags, fd, 0);
    if (base == MAP_FAILED)
        return NULL;
    struct bh_snap_map *m = bh_calloc(1, sizeof(*m));
    *m = (struct bh_snap_map){.base = base, .bytes = bytes, .refs = 1};
    return m;
}

struct bh_snap_map *bh_snap_map_ref(struct bh_snap_map *m)
{
    __atomic_fetch_add(&m->refs, 1, __ATOMIC_RELAXED);
    return m;
}

void bh_snap_map_unref(struct bh_snap_map *m)
{
    if (!m || __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    munmap(m->base, m->bytes);
    free(m);
}

static void sizes_to_bytes(const struct bh_snap_sizes *z, uint64_t bytes[static BH_SNAP_SECTIONS])
{
    bytes[BH_SNAP_SEC_LOG] = z->log_entries * sizeof(struct bh_snap_entry);
    bytes[BH_SNAP_SEC_SYMS] = z->syms * sizeof(struct bh_snap_sym);
    bytes[BH_SNAP_SEC_TEXT] = z->text_bytes;
    bytes[BH_SNAP_SEC_DIR] = z->dir_slots * sizeof(uint64_t);
    bytes[BH_SNAP_SEC_RECORDS] = z->record_bytes;
}

/* Sections start at page borders, so that neighbours never share a cache line. */
static uint64_t page_up(uint64_t n)
{
    return (n + BH_SNAP_PAGE - 1) & ~(uint64_t)(BH_SNAP_PAGE - 1);
}

uint64_t bh_snap_sizes_total(const struct bh_snap_sizes *z)
{
    uint64_t bytes[BH_SNAP_SECTIONS], total = BH_SNAP_PAGE;
    sizes_to_bytes(z, bytes);
    for (unsigned i = 0; i < BH_SNAP_SECTIONS; i++)
        total += page_up(bytes[i]);
    return total;
}

static void set_view(struct bh_snap_seg *s, struct bh_snap_map *m,
                     const struct bh_snap_section sec[static BH_SNAP_SECTIONS])
{
    char *base = m->base;
    *s = (struct bh_snap_seg){
        .map = m,
        .h = m->base,
        .log = (void *)(base + sec[BH_SNAP_SEC_LOG].off),
        .log_entries = sec[BH_SNAP_SEC_LOG].bytes / sizeof(struct bh_snap_entry),
        .syms = (void *)(base + sec[BH_SNAP_SEC_SYMS].off),
        .sym_cap = sec[BH_SNAP_SEC_SYMS].bytes / sizeof(struct bh_snap_sym),
        .text = base + sec[BH_SNAP_SEC_TEXT].off,
        .text_bytes = sec[BH_SNAP_SEC_TEXT].bytes,
        .dir = (void *)(base + sec[BH_SNAP_SEC_DIR].off),
        .dir_cap = sec[BH_SNAP_SEC_DIR].bytes / sizeof(uint64_t),
        .rec_begin = sec[BH_SNAP_SEC_RECORDS].off,
        .rec_end = sec[BH_SNAP_SEC_RECORDS].off + sec[BH_SNAP_SEC_RECORDS].bytes,
    };
}

void bh_snap_seg_format(struct bh_snap_seg *s, struct bh_snap_map *m, const struct bh_snap_sizes *z)
{
    struct bh_snap_header *h = m->base;
    uint64_t bytes[BH_SNAP_SECTIONS], off = BH_SNAP_PAGE;
    bh_assert((z->log_entries & (z->log_entries - 1)) == 0 && z->log_entries >= 2);
    bh_assert(m->bytes >= bh_snap_sizes_total(z));
    sizes_to_bytes(z, bytes);
    h->magic = BH_SNAP_MAGIC_DATA;
    h->bytes = sizeof(*h);
    h->total_bytes = m->bytes;
    for (unsigned i = 0; i < BH_SNAP_SECTIONS; i++) {
        h->section[i] = (struct bh_snap_section){.off = off, .bytes = bytes[i]};
        off += page_up(bytes[i]);
    }
    set_view(s, m, h->section);
}

const char *bh_snap_seg_open(struct bh_snap_seg *s, struct bh_snap_map *m)
{
    struct bh_snap_section sec[BH_SNAP_SECTIONS];
    const struct bh_snap_header *h = m->base;
    if (m->bytes < BH_SNAP_PAGE)
        return "shorter than its header";
    if (h->magic != BH_SNAP_MAGIC_DATA)
        return "magic number of the data segment";
    if (h->bytes != sizeof(*h) || h->total_bytes != m->bytes)
        return "length of the data segment";
    memcpy(sec, h->section, sizeof(sec)); /* check the copy, use the copy */
    for (unsigned i = 0; i < BH_SNAP_SECTIONS; i++)
        if (sec[i].off % 64 || sec[i].off < BH_SNAP_PAGE || sec[i].off > m->bytes ||
            sec[i].bytes > m->bytes - sec[i].off)
            return "section table of the data segment";
    uint64_t entries = sec[BH_SNAP_SEC_LOG].bytes / sizeof(struct bh_snap_entry);
    if (entries < 2 || (entries & (entries - 1)))
        return "size of the change log";
    set_view(s, m, sec);
    return NULL;
}

void bh_snap_seg_close(struct bh_snap_seg *s)
{
    bh_snap_map_unref(s->map);
    *s = (struct bh_snap_seg){0};
}
