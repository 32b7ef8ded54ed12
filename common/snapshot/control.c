/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/control.c - a runtime directory's control segment
 */
#include "common/snapshot/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"

/* ---- what dead writers left ------------------------------------------------------------------ */

/* Tells readers that still have a dead writer's control segment mapped to look for the new one, and
 * returns the incarnation it had. Of any other object: 0. */
static uint64_t bury(int fd)
{
    struct stat st;
    uint64_t incarnation = 0;
    if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct bh_snap_control))
        return 0;
    struct bh_snap_map *m = bh_snap_map_new(fd, sizeof(struct bh_snap_control), true);
    struct bh_snap_control *c = m ? m->base : NULL;
    if (c && c->magic == BH_SNAP_MAGIC_CONTROL &&
        __atomic_load_n(&c->version, __ATOMIC_ACQUIRE) == BH_SNAP_VERSION_WORD) {
        incarnation = c->incarnation;
        __atomic_store_n(&c->gone, true, __ATOMIC_RELEASE);
    }
    bh_snap_map_free(m);
    return incarnation;
}

/* One object with a name of this instance's. False: it is none of ours. A live writer's is not
 * touched: the same path in two mount namespaces gives the same instance. */
static bool sweep_one(int folder, const char *name, uint64_t *incarnation)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true; /* gone meanwhile */
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
        return false;
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT;
    if (bh_snap_object_lock(fd, BH_SNAP_LOCK_AT) == 0) {
        *incarnation = BH_MAX(*incarnation, bury(fd));
        (void)unlinkat(folder, name, 0);
    }
    close(fd);
    return true;
}

/* Best effort: what stays costs memory. Any user can create such names, so one log line tells of
 * all of them. */
static void sweep(uint64_t instance, uint64_t *incarnation)
{
    char prefix[BH_SNAP_NAME_MAX], first[NAME_MAX + 1];
    uint64_t foreign = 0;
    DIR *d = opendir(BH_SNAP_FOLDER);
    snprintf(prefix, sizeof(prefix), "berth-%016" PRIx64 "-", instance);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0 &&
            !sweep_one(dirfd(d), e->d_name, incarnation) && foreign++ == 0)
            snprintf(first, sizeof(first), "%s", e->d_name);
    if (foreign)
        bh_log_warn("Objects of somebody else are named like this instance's shared memory: they "
                    "are left alone",
                    bh_kv_s("first", first), bh_kv_u("objects", foreign));
    if (d)
        closedir(d);
}

/* ---- the hold -------------------------------------------------------------------------------- */

int bh_snap_hold_take(struct bh_snap_hold *h, const char *runtime_dir, gid_t group,
                      struct bh_err *err)
{
    struct bh_snap_announced before;
    struct bh_err ignored;
    uint64_t old = 0;
    *h = (struct bh_snap_hold){.group = group, .control = {.fd = -1}, .slots = {.fd = -1}};
    h->dir = bh_snap_directory_take(runtime_dir, err);
    if (h->dir < 0)
        return h->dir;
    h->instance = bh_snap_instance(runtime_dir);
    sweep(h->instance, &old);
    /* The directory may have had another path. */
    if (bh_snap_announced(runtime_dir, &before, &ignored) == 0 && before.instance != h->instance)
        sweep(before.instance, &old);
    h->stand_in.created_boot_ns = bh_boot_ns();
    h->stand_in.incarnation = BH_MAX(h->stand_in.created_boot_ns, old + 1);
    return 0;
}

struct bh_snap_control *bh_snap_hold_words(struct bh_snap_hold *h)
{
    return h->map ? h->map->base : &h->stand_in;
}

bool bh_snap_hold_there(const struct bh_snap_hold *h, bool *ret_only_link,
                        char ret_gone[static BH_SNAP_NAME_MAX])
{
    const struct bh_snap_object *o[] = {&h->control, &h->slots};
    char control[BH_SNAP_NAME_MAX];
    *ret_only_link = false;
    for (unsigned i = 0; i < BH_ARRAY_LEN(o); i++)
        if (!bh_snap_object_there(h->instance, o[i])) {
            bh_snap_object_name(h->instance, o[i]->key, ret_gone);
            return false;
        }
    bh_snap_object_name(h->instance, h->control.key, control);
    *ret_only_link = !bh_snap_announced_is(h->dir, control);
    if (*ret_only_link)
        snprintf(ret_gone, BH_SNAP_NAME_MAX, "the link in the runtime directory");
    return !*ret_only_link;
}

int bh_snap_hold_announce(struct bh_snap_hold *h)
{
    char name[BH_SNAP_NAME_MAX];
    bh_snap_object_name(h->instance, h->control.key, name);
    return bh_snap_announced_set(h->dir, name);
}

static void drop_objects(struct bh_snap_hold *h)
{
    if (h->map)
        __atomic_store_n(&bh_snap_hold_words(h)->gone, true, __ATOMIC_RELEASE);
    bh_snap_object_remove(h->instance, &h->slots);
    bh_snap_object_remove(h->instance, &h->control);
    bh_snap_map_free(h->map);
    h->map = NULL;
}

int bh_snap_hold_renew(struct bh_snap_hold *h)
{
    struct bh_snap_hold next = *h;
    next.control.fd = next.slots.fd = -1;
    next.map = NULL;
    int rc = bh_snap_object_create(h->instance, 0660, h->group, BH_SNAP_PAGE, &next.slots);
    if (rc == 0)
        rc = bh_snap_object_create(h->instance, 0640, h->group, BH_SNAP_PAGE, &next.control);
    if (rc == 0 && !(next.map = bh_snap_map_new(next.control.fd, BH_SNAP_PAGE, true)))
        rc = -ENOMEM;
    if (rc == 0) {
        /* The same words in a new control segment; version last, as readers expect. */
        struct bh_snap_control *to = next.map->base;
        const struct bh_snap_control *from = bh_snap_hold_words(h);
        *to = (struct bh_snap_control){
            .magic = BH_SNAP_MAGIC_CONTROL,
            .bytes = BH_SNAP_PAGE,
            .incarnation = from->incarnation,
            .created_boot_ns = from->created_boot_ns,
            .writer_pid = (uint32_t)getpid(),
            .segment = from->segment,
            .hidden = from->hidden,
            .lease_term = from->lease_term,
            .lease_until_boot_ns = from->lease_until_boot_ns,
            .data_key = {from->data_key[0], from->data_key[1]},
            .slots_key = next.slots.key,
        };
        __atomic_store_n(&to->version, BH_SNAP_VERSION_WORD, __ATOMIC_RELEASE);
        rc = bh_snap_hold_announce(&next);
    }
    if (rc < 0) {
        drop_objects(&next);
        return rc;
    }
    drop_objects(h);
    *h = next;
    return 0;
}

void bh_snap_hold_release(struct bh_snap_hold *h)
{
    char name[BH_SNAP_NAME_MAX];
    if (h->dir < 0)
        return;
    if (h->control.fd >= 0) {
        bh_snap_object_name(h->instance, h->control.key, name);
        bh_snap_announced_drop(h->dir, name);
    }
    drop_objects(h);
    close(h->dir);
    h->dir = -1;
}
