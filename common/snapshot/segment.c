/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/segment.c - shared memory objects
 *
 * Fails with: -ENOSPC (also for a limit of file sizes or a quota: the same situation), -EPERM,
 *             -errno.
 */
#include "common/snapshot/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/log.h"

void bh_snap_object_name(uint64_t instance, uint64_t key, char out[static BH_SNAP_NAME_MAX])
{
    snprintf(out, BH_SNAP_NAME_MAX, "/berth-%016" PRIx64 "-%016" PRIx64, instance, key);
}

bool bh_snap_object_parse(const char *name, uint64_t *ret_instance, uint64_t *ret_key)
{
    char again[BH_SNAP_NAME_MAX];
    if (sscanf(name, "/berth-%16" SCNx64 "-%16" SCNx64, ret_instance, ret_key) != 2)
        return false;
    bh_snap_object_name(*ret_instance, *ret_key, again); /* nothing before, between or behind */
    return bh_streq(name, again);
}

/* Trying to fill a file system that has no room takes what little there is from others
 * meanwhile. */
static bool has_room(int fd, uint64_t bytes)
{
    struct statvfs v;
    return fstatvfs(fd, &v) < 0 || v.f_blocks == 0 || v.f_bavail >= bytes / v.f_frsize;
}

/* Group before mode: at no instant may a wrong group have access. fchmod, because the mode of
 * shm_open goes through the umask. Between creation and lock a starting writer may take the object
 * for a dead one's and unlink it; the one with the lock on a name that is still there has won. */
static int furnish(const struct bh_snap_object *o, uint64_t instance, unsigned mode, gid_t group,
                   uint64_t bytes)
{
    if (bh_snap_object_lock(o->fd, BH_SNAP_LOCK_AT) < 0 || !bh_snap_object_there(instance, o))
        return -EEXIST;
    if ((group != (gid_t)-1 && fchown(o->fd, (uid_t)-1, group) < 0) || fchmod(o->fd, mode) < 0)
        return -errno;
    return has_room(o->fd, bytes) ? bh_reserve_file(o->fd, bytes) : -ENOSPC;
}

int bh_snap_object_create(uint64_t instance, unsigned mode, gid_t group, uint64_t bytes,
                          struct bh_snap_object *ret)
{
    char name[BH_SNAP_NAME_MAX];
    int rc = -EEXIST;
    for (int round = 0; round < 16 && rc == -EEXIST; round++) {
        struct bh_snap_object o = {.key = bh_rand_entropy()};
        bh_snap_object_name(instance, o.key, name);
        o.fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (o.fd < 0) {
            rc = -errno;
            if (rc == -EEXIST)
                bh_log_warn("Something else has a name in shared memory: taking another one",
                            bh_kv_s("name", name));
            continue;
        }
        rc = furnish(&o, instance, mode, group, bytes);
        if (rc == 0)
            *ret = o;
        else
            bh_snap_object_remove(instance, &o);
    }
    return rc;
}

bool bh_snap_object_there(uint64_t instance, const struct bh_snap_object *o)
{
    char path[sizeof(BH_SNAP_FOLDER) + BH_SNAP_NAME_MAX] = BH_SNAP_FOLDER;
    struct stat mine, named;
    bh_snap_object_name(instance, o->key, path + strlen(BH_SNAP_FOLDER));
    return fstat(o->fd, &mine) == 0 && lstat(path, &named) == 0 && mine.st_dev == named.st_dev &&
           mine.st_ino == named.st_ino;
}

void bh_snap_object_remove(uint64_t instance, struct bh_snap_object *o)
{
    char name[BH_SNAP_NAME_MAX];
    if (o->fd < 0)
        return;
    bh_snap_object_name(instance, o->key, name);
    if (bh_snap_object_there(instance, o))
        shm_unlink(name);
    close(o->fd);
    *o = (struct bh_snap_object){.fd = -1};
}

int bh_snap_object_open(const char *name, uid_t uid, bool slots, uint64_t *ret_bytes)
{
    const mode_t forbidden = slots ? S_IWOTH : S_IWGRP | S_IWOTH;
    struct stat st;
    int fd = shm_open(name, (slots ? O_RDWR : O_RDONLY) | O_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) < 0 ? -errno : 0;
    if (rc == 0 && (!S_ISREG(st.st_mode) || (st.st_mode & forbidden) || st.st_uid != uid))
        rc = -EPERM;
    if (rc == 0) {
        *ret_bytes = (uint64_t)st.st_size;
        return fd;
    }
    close(fd);
    return rc;
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
    *m = (struct bh_snap_map){.base = base, .bytes = bytes};
    return m;
}

void bh_snap_map_free(struct bh_snap_map *m)
{
    if (m)
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
    bh_snap_map_free(s->map);
    *s = (struct bh_snap_seg){0};
}
