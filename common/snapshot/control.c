/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/control.c - taking a name over, giving it up, and the anonymous stand-in
 */
#include "common/snapshot/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tells readers that still have the old control segment mapped to look for the new one, and returns
 * the incarnation it had. What is not ours or too old to understand is only unlinked. */
static uint64_t bury(int fd)
{
    struct stat st;
    uint64_t incarnation = 0;
    if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct bh_snap_control))
        return 0;
    struct bh_snap_map *m = bh_snap_map_new(fd, sizeof(struct bh_snap_control), true);
    if (!m)
        return 0;
    struct bh_snap_control *c = m->base;
    if (c->magic == BH_SNAP_MAGIC_CONTROL &&
        __atomic_load_n(&c->version, __ATOMIC_ACQUIRE) == BH_SNAP_VERSION_WORD) {
        incarnation = c->incarnation;
        __atomic_store_n(&c->gone, 1, __ATOMIC_RELEASE);
    }
    bh_snap_map_unref(m);
    return incarnation;
}

/* The name exists. 0: it was a dead writer's and is out of the way now (or vanished by itself). */
static int clear_way(const char *name, uint64_t *ret_incarnation, struct bh_err *err)
{
    struct stat st;
    int rc = 0;
    int fd = shm_open(name, O_RDWR, 0);
    if (fd < 0)
        return errno == ENOENT
                   ? 0
                   : bh_err_set(err, -errno, "snapshot %s: cannot open what has its name", name);
    if (fstat(fd, &st) < 0)
        rc = -errno;
    else if (st.st_uid != geteuid() && geteuid() != 0)
        rc = bh_err_set(err, -EPERM, "snapshot %s: belongs to user %u", name, (unsigned)st.st_uid);
    else if (bh_snap_object_lock(fd, 0) < 0)
        rc = bh_err_set(err, -EBUSY, "snapshot %s: another writer is alive", name);
    else if (fstat(fd, &st) == 0 && st.st_nlink > 0) { /* else: replaced while we waited */
        uint64_t incarnation = bury(fd);
        *ret_incarnation = BH_MAX(*ret_incarnation, incarnation);
        if (shm_unlink(name) < 0 && errno != ENOENT)
            rc = bh_err_set(err, -errno, "snapshot %s: cannot be replaced", name);
    }
    close(fd);
    return rc;
}

/* Creates and locks the control segment. Between the two another writer may see it as a dead one's
 * and unlink it; whoever holds a lock on a name that is still there has won. */
static int create_locked(const char *name, gid_t group, uint64_t *ret_old, struct bh_err *err)
{
    for (int round = 0; round < 16; round++) {
        struct stat st;
        int fd = bh_snap_object_create(name, 0640, group, BH_SNAP_PAGE);
        if (fd == -EEXIST) {
            int rc = clear_way(name, ret_old, err);
            if (rc < 0)
                return rc;
            continue;
        }
        if (fd < 0)
            return bh_err_set(err, fd, "snapshot %s: control segment: %s", name, strerror(-fd));
        if (bh_snap_object_lock(fd, 0) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0)
            return fd;
        close(fd);
    }
    return bh_err_set(err, -EBUSY, "snapshot %s: other writers keep starting", name);
}

/* Data segments and slots of dead writers with this name. Best effort: what stays costs memory. */
static void sweep(const char *name)
{
    size_t n = strlen(name) - 1;
    DIR *d = opendir("/dev/shm");
    if (!d)
        return;
    for (struct dirent *e; (e = readdir(d));) {
        char file[NAME_MAX + 2];
        if (strncmp(e->d_name, name + 1, n) != 0 || e->d_name[n] != '.')
            continue;
        snprintf(file, sizeof(file), "/%s", e->d_name);
        shm_unlink(file);
    }
    closedir(d);
}

int bh_snap_hold_take(struct bh_snap_hold *h, const char *name, gid_t group, struct bh_err *err)
{
    char slots[BH_SNAP_FILE_MAX];
    uint64_t old = 0;
    int rc;
    *h = (struct bh_snap_hold){.fd = -1, .slots = {.fd = -1}};
    h->fd = create_locked(name, group, &old, err);
    if (h->fd < 0)
        return h->fd;
    sweep(name);
    h->map = bh_snap_map_new(h->fd, BH_SNAP_PAGE, true);
    if (!h->map) {
        rc = bh_err_set(err, -ENOMEM, "snapshot %s: control segment cannot be mapped", name);
        goto fail;
    }
    struct bh_snap_control *c = h->control = h->map->base;
    *c = (struct bh_snap_control){
        .magic = BH_SNAP_MAGIC_CONTROL, .bytes = BH_SNAP_PAGE, .writer_pid = (uint32_t)getpid()};
    c->created_boot_ns = bh_boot_ns();
    c->incarnation = BH_MAX(c->created_boot_ns, old + 1);
    bh_snap_slots_name(name, c->incarnation, slots);
    h->slots.fd = bh_snap_object_create(slots, 0660, group, BH_SNAP_PAGE);
    if (h->slots.fd < 0) {
        rc = bh_err_set(err, h->slots.fd, "snapshot %s: reader slots: %s", name,
                        strerror(-h->slots.fd));
        goto fail;
    }
    __atomic_store_n(&c->version, BH_SNAP_VERSION_WORD, __ATOMIC_RELEASE);
    return 0;
fail:
    bh_snap_hold_release(h, name);
    return rc;
}

void bh_snap_hold_release(struct bh_snap_hold *h, const char *name)
{
    char slots[BH_SNAP_FILE_MAX];
    if (h->fd < 0)
        return;
    if (h->control) {
        __atomic_store_n(&h->control->gone, 1, __ATOMIC_RELEASE);
        bh_snap_slots_name(name, h->control->incarnation, slots);
        shm_unlink(slots);
    }
    /* Not when somebody removed our name by hand and another writer has taken it since. */
    struct stat st;
    if (fstat(h->fd, &st) == 0 && st.st_nlink > 0)
        shm_unlink(name);
    bh_snap_map_unref(h->map);
    if (h->slots.fd >= 0)
        close(h->slots.fd);
    close(h->fd);
    *h = (struct bh_snap_hold){.fd = -1, .slots = {.fd = -1}};
}

struct bh_snap_hub *bh_snap_hub_new(void)
{
    struct bh_snap_hub *hub = bh_calloc(1, sizeof(*hub));
    hub->refs = 1;
    pthread_mutex_init(&hub->lock, NULL);
    hub->control.created_boot_ns = bh_boot_ns();
    hub->control.incarnation = hub->control.created_boot_ns;
    return hub;
}

struct bh_snap_hub *bh_snap_hub_ref(struct bh_snap_hub *hub)
{
    __atomic_fetch_add(&hub->refs, 1, __ATOMIC_RELAXED);
    return hub;
}

void bh_snap_hub_unref(struct bh_snap_hub *hub)
{
    if (!hub || __atomic_sub_fetch(&hub->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    bh_snap_map_unref(hub->current);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

struct bh_snap_map *bh_snap_hub_current(struct bh_snap_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    struct bh_snap_map *m = hub->current ? bh_snap_map_ref(hub->current) : NULL;
    pthread_mutex_unlock(&hub->lock);
    return m;
}

void bh_snap_hub_set_current(struct bh_snap_hub *hub, struct bh_snap_map *m, uint64_t segment)
{
    pthread_mutex_lock(&hub->lock);
    struct bh_snap_map *old = hub->current;
    hub->current = m ? bh_snap_map_ref(m) : NULL;
    bh_snap_store_release(&hub->control.segment, segment);
    pthread_mutex_unlock(&hub->lock);
    bh_snap_map_unref(old);
}
