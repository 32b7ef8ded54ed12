/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/inflight.c - what may be on the wire, written down for the scheduler after this
 * one
 */
#include "scheduler/daemon/inflight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"

#define MAGIC      UINT64_C(0x31746c666e694842) /* "BHinflt1": the last digit is the layout */
#define BOOT_ID    "/proc/sys/kernel/random/boot_id"
#define HEAD_BYTES 8192u
#define GROW_SLOTS 256u
#define NAME_BYTES 64u /* as struct bh_binder's */

struct head {
    uint64_t magic;
    char boot_id[40];
    uint64_t unrecorded_until_ns;
    uint32_t n_binders;
    bool too_many;
    char binder[BH_INFLIGHT_BINDERS][NAME_BYTES];
};
_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head has a fixed place");
struct slot {
    _Atomic uint32_t taken; /* 1: the rest is whole */
    uint32_t kind;
    uint64_t id, term, until_boot_ns;
    char uid[BH_INFLIGHT_TEXT], node[BH_INFLIGHT_TEXT];
};
struct bh_inflight {
    char *path;
    int fd;
    struct head *head;
    struct slot *slot;
    uint32_t n_slots; /* with space behind them */
    uint32_t *spare;  /* stack of free ones, the lowest on top: few pages are ever touched */
    uint32_t n_spare;
    uint64_t former_until_ns; /* of the head, as the process before left it */
    bool unknown, full_told;
};

#define MAP_BYTES (HEAD_BYTES + (size_t)BH_INFLIGHT_SLOTS * sizeof(struct slot))

/* ---- open ------------------------------------------------------------------------------------ */

/* A file of another user, a link: of no use, and in the way. */
static int open_file(struct bh_inflight *f, struct bh_err *err)
{
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
    struct stat st;

    f->fd = open(f->path, flags, 0600);
    if (f->fd < 0 && (errno == EACCES || errno == EPERM || errno == ELOOP)) {
        f->unknown = true;
        if (unlink(f->path) == 0)
            f->fd = open(f->path, flags | O_EXCL, 0600);
    }
    if (f->fd < 0)
        return bh_err_set(err, -errno, "could not open \"%s\": %s", f->path, strerror(errno));
    if (fstat(f->fd, &st) < 0 || !S_ISREG(st.st_mode))
        return bh_err_set(err, -EINVAL, "\"%s\" is not a regular file", f->path);
    f->n_slots = st.st_size > (off_t)HEAD_BYTES
                     ? (uint32_t)BH_MIN(((uint64_t)st.st_size - HEAD_BYTES) / sizeof(struct slot),
                                        BH_INFLIGHT_SLOTS)
                     : 0;
    f->unknown |= st.st_size != 0 && st.st_size < (off_t)HEAD_BYTES;
    return 0;
}

static bool ends(const char *s, size_t max)
{
    return strnlen(s, max) < max;
}

static bool head_ok(const struct head *h)
{
    for (uint32_t i = 0; i < BH_MIN(h->n_binders, BH_INFLIGHT_BINDERS); i++)
        if (!ends(h->binder[i], NAME_BYTES))
            return false;
    return h->magic == MAGIC && h->n_binders <= BH_INFLIGHT_BINDERS;
}

static void inherit(struct bh_inflight *f)
{
    struct head fresh = {.magic = MAGIC};
    BH_CLEANUP(bh_freep) char *boot_id = NULL;
    struct head *h = f->head;
    size_t n = 0;

    if (bh_read_file(BOOT_ID, 4096, &boot_id, &n) == 0)
        memcpy(fresh.boot_id, boot_id, BH_MIN(n, sizeof(fresh.boot_id) - 1));
    if (!head_ok(h) || memcmp(h->boot_id, fresh.boot_id, sizeof(fresh.boot_id)) != 0) {
        f->unknown |= h->magic != 0 && !head_ok(h); /* else new, or of another boot */
        *h = fresh;
        for (uint32_t i = 0; i < f->n_slots; i++)
            f->slot[i].taken = 0;
    }
    f->unknown |= h->too_many;
    h->unrecorded_until_ns = BH_MIN(h->unrecorded_until_ns, bh_boot_ns() + BH_INFLIGHT_NS);
    f->former_until_ns = h->unrecorded_until_ns;
    f->spare = bh_calloc(BH_INFLIGHT_SLOTS, sizeof(*f->spare));
    for (uint32_t i = f->n_slots; i-- > 0;) {
        struct slot *s = &f->slot[i];
        if (s->taken && (s->taken != 1 || !*s->uid || !ends(s->uid, sizeof(s->uid)) ||
                         !ends(s->node, sizeof(s->node)))) {
            f->unknown = true;
            s->taken = 0;
        }
        if (!s->taken)
            f->spare[f->n_spare++] = i;
    }
}

int bh_inflight_open(const char *runtime_dir, struct bh_inflight **ret, struct bh_err *err)
{
    struct bh_inflight *f = bh_calloc(1, sizeof(*f));

    f->path = bh_asprintf("%s/" BH_INFLIGHT_FILE, runtime_dir);
    int rc = open_file(f, err);
    if (rc == 0) {
        rc = bh_reserve_file(f->fd, HEAD_BYTES);
        if (rc < 0)
            bh_err_set(err, rc, "could not make room for \"%s\": %s", f->path, strerror(-rc));
    }
    if (rc == 0) {
        void *p = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
        if (p != MAP_FAILED)
            f->head = p;
        else
            rc = bh_err_set(err, -errno, "could not map \"%s\": %s", f->path, strerror(errno));
    }
    if (rc < 0) {
        bh_inflight_close(f);
        return rc;
    }
    f->slot = (struct slot *)((char *)f->head + HEAD_BYTES);
    inherit(f);
    *ret = f;
    return 0;
}

void bh_inflight_close(struct bh_inflight *f)
{
    if (!f)
        return;
    if (f->head && !bh_inflight_count(f) && !f->head->n_binders &&
        f->head->unrecorded_until_ns <= bh_boot_ns())
        (void)unlink(f->path);
    if (f->head)
        munmap(f->head, MAP_BYTES);
    if (f->fd >= 0)
        close(f->fd);
    free(f->spare);
    free(f->path);
    free(f);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static bool grow(struct bh_inflight *f)
{
    uint32_t n = BH_MIN(f->n_slots + GROW_SLOTS, BH_INFLIGHT_SLOTS);
    int rc =
        n > f->n_slots ? bh_reserve_file(f->fd, HEAD_BYTES + n * sizeof(struct slot)) : -ENOSPC;

    if (rc < 0) {
        if (!f->full_told)
            bh_log_warn("A bind cannot be recorded: a scheduler that starts after this one has to "
                        "wait until it is over",
                        bh_kv_s("file", f->path), bh_kv_s("err", strerror(-rc)));
        f->full_told = true;
        return false;
    }
    for (uint32_t i = n; i-- > f->n_slots;)
        f->spare[f->n_spare++] = i;
    f->n_slots = n;
    f->full_told = false;
    return true;
}

uint32_t bh_inflight_put(struct bh_inflight *f, const struct bh_inflight_item *it)
{
    size_t n_uid = strlen(it->uid), n_node = strlen(it->node);
    struct slot *s;

    if (n_uid >= sizeof(s->uid) || n_node >= sizeof(s->node) || (!f->n_spare && !grow(f))) {
        f->head->unrecorded_until_ns = BH_MAX(f->head->unrecorded_until_ns, it->until_boot_ns);
        return 0;
    }
    s = &f->slot[f->spare[--f->n_spare]];
    s->kind = it->kind;
    s->id = it->id;
    s->term = it->term;
    s->until_boot_ns = it->until_boot_ns;
    memcpy(s->uid, it->uid, n_uid + 1);
    memcpy(s->node, it->node, n_node + 1);
    atomic_store_explicit(&s->taken, 1, memory_order_release);
    return (uint32_t)(s - f->slot) + 1;
}

void bh_inflight_extend(struct bh_inflight *f, uint32_t slot, uint64_t until_boot_ns)
{
    if (slot)
        f->slot[slot - 1].until_boot_ns = until_boot_ns;
    else
        f->head->unrecorded_until_ns = BH_MAX(f->head->unrecorded_until_ns, until_boot_ns);
}

void bh_inflight_drop(struct bh_inflight *f, uint32_t slot)
{
    if (!slot)
        return;
    bh_assert(slot <= f->n_slots && f->slot[slot - 1].taken);
    atomic_store_explicit(&f->slot[slot - 1].taken, 0, memory_order_release);
    f->spare[f->n_spare++] = slot - 1;
}

uint32_t bh_inflight_next(const struct bh_inflight *f, uint32_t *it, struct bh_inflight_item *ret)
{
    const uint64_t latest = bh_boot_ns() + BH_INFLIGHT_NS;

    while (*it < f->n_slots) {
        const struct slot *s = &f->slot[(*it)++];
        if (!s->taken)
            continue;
        *ret = (struct bh_inflight_item){.kind = s->kind,
                                         .id = s->id,
                                         .term = s->term,
                                         .until_boot_ns = BH_MIN(s->until_boot_ns, latest),
                                         .uid = s->uid,
                                         .node = s->node};
        return *it;
    }
    return 0;
}

uint32_t bh_inflight_count(const struct bh_inflight *f)
{
    return f->n_slots - f->n_spare;
}

/* ---- head ------------------------------------------------------------------------------------ */

void bh_inflight_add_binder(struct bh_inflight *f, const char *name)
{
    struct head *h = f->head;

    for (uint32_t i = 0; i < h->n_binders; i++)
        if (bh_streq(h->binder[i], name))
            return;
    if (h->n_binders == BH_INFLIGHT_BINDERS) {
        h->too_many = true;
        return;
    }
    snprintf(h->binder[h->n_binders], NAME_BYTES, "%s", name);
    h->n_binders++;
}

const char *bh_inflight_binder(const struct bh_inflight *f, uint32_t i)
{
    return i < f->head->n_binders ? f->head->binder[i] : NULL;
}

void bh_inflight_forget_binders(struct bh_inflight *f)
{
    f->head->n_binders = 0;
    f->head->too_many = false;
}

uint64_t bh_inflight_unrecorded_until(const struct bh_inflight *f)
{
    return f->former_until_ns > bh_boot_ns() ? f->former_until_ns : 0;
}

bool bh_inflight_unknown(const struct bh_inflight *f)
{
    return f->unknown;
}
