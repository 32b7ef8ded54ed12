/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/inflight.c - bindings in flight, recorded for the scheduler that starts next
 *
 * What an earlier process left is read once, from a copy, and checked. From then on this process's
 * own state decides: the mapping is only written.
 *
 * Two places for the head, two times in a slot: the one in use stays whole while the other is
 * written, and one store of eight bytes (a checksum) makes the change. So a process that is killed
 * at any instant leaves a record that is whole, and one that is not whole has been damaged.
 */
#include "scheduler/daemon/inflight.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/trusted_file.h"

#define MAGIC      UINT64_C(0x32746c666e694842) /* "BHinflt2": the last digit is the layout */
#define NEW_FILE   BH_INFLIGHT_FILE ".new"      /* becomes BH_INFLIGHT_FILE when it is whole */
#define HEAD_BYTES 8192u                        /* of one of the two */
#define GROW_SLOTS 256u
#define NAME_BYTES 64u                  /* as struct bh_binder's */
#define RETRY_NS   UINT64_C(1000000000) /* between two tries to make the file */
#define UNREADABLE "it is not a record of this version"

struct head {
    uint64_t magic;
    uint64_t generation; /* rises with each change: the higher one of the two holds */
    uint64_t host_boot;
    uint64_t unrecorded_until_ns;
    uint32_t n_slots; /* that have been prepared */
    uint32_t n_binders;
    uint32_t too_many, reserved;
    char binder[BH_INFLIGHT_BINDERS][NAME_BYTES];
    _Atomic uint64_t check; /* of all that is before it; 0: it is being written */
};
_Static_assert(sizeof(struct head) <= HEAD_BYTES, "the head has a fixed place");

#define MARK_FREE  UINT64_C(0x65657266746f6c70) /* bit 1 clear */
#define MARK_TAKEN UINT64_C(2)                  /* always set in the checksum of a taken slot */
#define MARK_TIME  UINT64_C(1)                  /* which of the two times holds */
struct slot {
    _Atomic uint64_t mark; /* MARK_FREE, or the checksum of a slot that is taken */
    uint64_t until_boot_ns[2];
    uint64_t id, term;
    uint32_t kind;
    uint16_t n_uid, n_node;
    char uid[BH_INFLIGHT_TEXT], node[BH_INFLIGHT_TEXT];
};
struct own {        /* of a slot, in this process */
    uint64_t fixed; /* hash of all but the time */
    bool taken;
    uint8_t time; /* which of the two holds */
};
struct inherited {
    struct bh_inflight_item item;
    uint32_t slot; /* from 1 on */
    char *uid, *node;
};
struct bh_inflight {
    struct bh_trusted_dir dir;
    char *path;
    int fd;          /* -1: no file could be made, the mapping is memory of this process */
    char *map;       /* two heads, then slots */
    struct head now; /* of the head, as it is or is about to be */
    struct own *own;
    uint32_t *spare; /* stack of free ones, the lowest on top: few pages are ever touched */
    uint32_t n_spare;
    struct inherited *inherited;
    uint32_t n_inherited;
    uint64_t former_until_ns; /* of the head, as the process before left it */
    uint64_t retry_ns;
    bool unknown, damaged, full_told;
};

#define SLOTS_AT  ((size_t)2 * HEAD_BYTES)
#define MAP_BYTES (SLOTS_AT + (size_t)BH_INFLIGHT_SLOTS * sizeof(struct slot))

static struct slot *slot_at(const struct bh_inflight *f, uint32_t i)
{
    return (struct slot *)(void *)(f->map + SLOTS_AT) + i;
}

static size_t file_bytes(uint32_t n_slots)
{
    return SLOTS_AT + n_slots * sizeof(struct slot);
}

/* ---- checksums ------------------------------------------------------------------------------- */

static uint64_t head_check(const struct head *h)
{
    return bh_hash(h, offsetof(struct head, check), MAGIC) | 1;
}

static uint64_t hash_fixed(const struct slot *s)
{
    const uint64_t words[] = {s->id, s->term, s->kind, s->n_uid, s->n_node};
    uint64_t h = bh_hash(words, sizeof(words), MAGIC);

    return bh_hash(s->node, s->n_node, bh_hash(s->uid, s->n_uid, h));
}

static uint64_t slot_mark(uint64_t fixed, uint64_t until_boot_ns, uint64_t time)
{
    const uint64_t words[] = {fixed, until_boot_ns, time};

    return ((bh_hash(words, sizeof(words), MAGIC) & ~MARK_TIME) | MARK_TAKEN) | time;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_head(struct bh_inflight *f)
{
    struct head *to;

    f->now.generation++;
    to = (struct head *)(void *)(f->map + f->now.generation % 2 * HEAD_BYTES);
    atomic_store_explicit(&to->check, 0, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst); /* 0 before any of the rest */
    memcpy(to, &f->now, offsetof(struct head, check));
    atomic_store_explicit(&to->check, head_check(&f->now), memory_order_release);
}

static void prepare_slots(struct bh_inflight *f, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        atomic_store_explicit(&slot_at(f, i)->mark, MARK_FREE, memory_order_relaxed);
    f->now.n_slots = to;
    write_head(f);
    for (uint32_t i = to; i-- > from;)
        f->spare[f->n_spare++] = i;
}

static void extend_unrecorded(struct bh_inflight *f, uint64_t until_boot_ns)
{
    if (until_boot_ns <= f->now.unrecorded_until_ns)
        return;
    f->now.unrecorded_until_ns = until_boot_ns;
    write_head(f);
}

/* ---- reading what an earlier process left ---------------------------------------------------- */

static void distrust(struct bh_inflight *f, const char *why, uint64_t at)
{
    if (!f->damaged)
        bh_log_error("The record of bindings in flight is damaged: nothing is decided before the "
                     "last unrecorded one has taken effect or failed",
                     bh_kv_s("file", f->path), bh_kv_s("why", why), bh_kv_u("at", at),
                     bh_kv_u("seconds", BH_INFLIGHT_NS / UINT64_C(1000000000)));
    f->unknown = f->damaged = true;
    f->former_until_ns = bh_boot_ns() + BH_INFLIGHT_NS;
}

static bool ends(const char *s, size_t max)
{
    return strnlen(s, max) < max;
}

/* at: which of the two it is */
static bool head_ok(const struct head *h, unsigned at)
{
    if (h->magic != MAGIC || h->check != head_check(h) || h->generation % 2 != at ||
        h->n_binders > BH_INFLIGHT_BINDERS || h->n_slots > BH_INFLIGHT_SLOTS)
        return false;
    for (uint32_t i = 0; i < h->n_binders; i++)
        if (!ends(h->binder[i], NAME_BYTES))
            return false;
    return true;
}

/* The one that holds; NULL: neither can be believed. Beside it a head may be half written, and
 * anything else in its place is damage: it might have been the later one. */
static const struct head *choose_head(struct bh_inflight *f, const char *file)
{
    const struct head *h[] = {(const void *)file, (const void *)(file + HEAD_BYTES)};
    const bool ok[] = {head_ok(h[0], 0), head_ok(h[1], 1)};

    if (!ok[0] && !ok[1])
        return NULL;
    const unsigned holds = !ok[0] || (ok[1] && h[1]->generation > h[0]->generation);
    const struct head *other = h[!holds];
    if (!ok[!holds] && (other->check != 0 || other->magic != MAGIC))
        distrust(f, "one of its two heads is not whole", !holds * HEAD_BYTES);
    return h[holds];
}

static bool slot_ok(const struct slot *s)
{
    return s->n_uid > 0 && s->n_uid < sizeof(s->uid) && s->n_node < sizeof(s->node) &&
           strnlen(s->uid, sizeof(s->uid)) == s->n_uid &&
           strnlen(s->node, sizeof(s->node)) == s->n_node &&
           s->mark ==
               slot_mark(hash_fixed(s), s->until_boot_ns[s->mark & MARK_TIME], s->mark & MARK_TIME);
}

static void inherit_slot(struct bh_inflight *f, uint32_t i, const struct slot *s)
{
    const uint64_t time = s->mark & MARK_TIME;
    struct inherited *in = &f->inherited[f->n_inherited++];

    f->own[i] = (struct own){.fixed = hash_fixed(s), .taken = true, .time = (uint8_t)time};
    *in = (struct inherited){.slot = i + 1, .uid = bh_strdup(s->uid), .node = bh_strdup(s->node)};
    in->item = (struct bh_inflight_item){.kind = s->kind,
                                         .id = s->id,
                                         .term = s->term,
                                         .until_boot_ns = s->until_boot_ns[time],
                                         .uid = in->uid,
                                         .node = in->node};
}

static void inherit_slots(struct bh_inflight *f, const char *file, size_t n)
{
    const uint32_t whole = (uint32_t)((n - SLOTS_AT) / sizeof(struct slot));
    const uint32_t n_slots = BH_MIN(f->now.n_slots, whole);

    if (n_slots < f->now.n_slots)
        distrust(f, "it was truncated: fewer slots than its head names", n);
    f->now.n_slots = n_slots;
    f->inherited = bh_calloc(n_slots + 1, sizeof(*f->inherited));
    for (uint32_t i = n_slots; i-- > 0;) {
        struct slot s;
        memcpy(&s, file + file_bytes(i), sizeof(s));
        if (s.mark != MARK_FREE && slot_ok(&s)) {
            inherit_slot(f, i, &s);
            continue;
        }
        if (s.mark != MARK_FREE)
            distrust(f, "a slot is not whole", file_bytes(i));
        f->spare[f->n_spare++] = i;
    }
}

/* Takes over a record of this boot; false: there is nothing to take over. */
static bool inherit(struct bh_inflight *f, const char *file, size_t n)
{
    if (n < SLOTS_AT) {
        distrust(f, n ? "it was truncated" : "a scheduler ran without a record: no space for it",
                 n);
        return false;
    }
    const struct head *h = choose_head(f, file);
    if (!h) {
        distrust(f, UNREADABLE, 0);
        return false;
    }
    if (h->host_boot != f->now.host_boot) /* nothing of another boot can be in flight */
        return false;
    f->now = *h;
    f->unknown |= h->too_many != 0;
    f->former_until_ns =
        BH_MAX(f->former_until_ns, BH_MIN(h->unrecorded_until_ns, bh_boot_ns() + BH_INFLIGHT_NS));
    inherit_slots(f, file, n);
    return true;
}

/* A version before this one kept it in the runtime directory itself. Another user's is not ours. */
static char *find_old_record(struct bh_inflight *f, const char *runtime_dir)
{
    char *old = bh_asprintf("%s/" BH_INFLIGHT_FILE, runtime_dir);
    struct stat st;

    if (lstat(old, &st) < 0 || st.st_uid != geteuid() || !S_ISREG(st.st_mode)) {
        free(old);
        return NULL;
    }
    if (st.st_size > 0)
        distrust(f, "a scheduler of an earlier version left one", 0);
    return old;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Gives fd the size of n_slots and maps it. */
static int map_file(int fd, uint32_t n_slots, char **ret)
{
    int rc = bh_reserve_file(fd, file_bytes(n_slots));
    void *p = rc == 0 ? mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : NULL;

    if (rc == 0 && p == MAP_FAILED)
        rc = -errno;
    if (rc == 0)
        *ret = p;
    return rc;
}

/* Replaces the mapping, if there is one, by that of a new file with the slots of `from` (NULL:
 * there are none). The file gets its name when it is whole. */
static int make_file(struct bh_inflight *f, const char *from, struct bh_err *err)
{
    char *map = NULL, *before = f->map;

    (void)unlinkat(f->dir.fd, NEW_FILE, 0);
    int fd = bh_trusted_create(&f->dir, NEW_FILE, 0600, err);
    if (fd < 0)
        return fd;
    int rc = map_file(fd, f->now.n_slots, &map);
    if (rc == 0) {
        if (from)
            memcpy(map, from, file_bytes(f->now.n_slots));
        f->map = map;
        write_head(f); /* both: a head beside the one that holds is whole, or half written */
        write_head(f);
        rc = renameat(f->dir.fd, NEW_FILE, f->dir.fd, BH_INFLIGHT_FILE) < 0 ? -errno : 0;
    }
    if (rc < 0) {
        f->map = before;
        if (map)
            munmap(map, MAP_BYTES);
        close(fd);
        (void)unlinkat(f->dir.fd, NEW_FILE, 0);
        return bh_err_set(err, rc, "could not make \"%s\": %s", f->path, strerror(-rc));
    }
    if (before)
        munmap(before, MAP_BYTES);
    f->fd = fd;
    return 0;
}

/* Reports to the next scheduler that there is no record: an empty file in its place. */
static void leave_empty_file(struct bh_inflight *f)
{
    struct bh_err err = {0};
    int fd = bh_trusted_open(&f->dir, BH_INFLIGHT_FILE, O_RDWR, geteuid(), &err);
    bool left = fd >= 0 && ftruncate(fd, 0) == 0;

    if (!left) {
        (void)unlinkat(f->dir.fd, NEW_FILE, 0);
        fd = bh_trusted_create(&f->dir, NEW_FILE, 0600, &err);
        left = fd >= 0 && renameat(f->dir.fd, NEW_FILE, f->dir.fd, BH_INFLIGHT_FILE) == 0;
    }
    if (fd >= 0)
        close(fd);
    if (!left)
        bh_log_error("The next scheduler does not learn that bindings are not recorded",
                     bh_kv_s("file", f->path), bh_kv_s("err", err.msg));
}

/* The record is in memory of this process until there is space. */
static int use_memory(struct bh_inflight *f, const char *from, struct bh_err *err)
{
    void *p = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return bh_err_set(err, -errno, "memory for bindings in flight: %s", strerror(errno));
    f->map = p;
    if (from)
        memcpy(p, from, file_bytes(f->now.n_slots));
    bh_log_error(
        "Bindings in flight are not recorded until there is space: a scheduler that starts "
        "in the meantime waits until the last one has taken effect or failed",
        bh_kv_s("file", f->path), bh_kv_s("err", err->msg));
    if (f->dir.fd >= 0)
        leave_empty_file(f);
    return 0;
}

/* Space came free. What was handed out before that is in the slots of this process's memory. */
static void retry_file(struct bh_inflight *f)
{
    struct bh_err err = {0};

    if (f->fd >= 0 || f->dir.fd < 0 || bh_boot_ns() < f->retry_ns)
        return;
    f->retry_ns = bh_boot_ns() + RETRY_NS;
    if (make_file(f, f->map, &err) == 0)
        bh_log_info("Bindings in flight are recorded again", bh_kv_s("file", f->path));
}

/* The file as it is, in memory of our own; *ret NULL: there is none, or none of use. *ret_fd is
 * open for writing as long as *ret is not NULL. */
static int read_former(struct bh_inflight *f, char **ret, size_t *ret_n, int *ret_fd,
                       struct bh_err *err)
{
    int fd = bh_trusted_open(&f->dir, BH_INFLIGHT_FILE, O_RDWR, geteuid(), err);

    if (fd == -ENOENT)
        return 0;
    if (fd == -EPERM) { /* in a directory of our own: a new one takes its place */
        distrust(f, err->msg, 0);
        return 0;
    }
    if (fd < 0)
        return fd;
    int rc = bh_read_fd(fd, MAP_BYTES, ret, ret_n);
    if (rc < 0) {
        distrust(f, strerror(-rc), 0);
        close(fd);
        return 0;
    }
    *ret_fd = fd;
    return 0;
}

/* Continues the record `former` of the open file fd; NULL: a new one is made. */
static int continue_record(struct bh_inflight *f, int fd, const char *former, struct bh_err *err)
{
    if (former && map_file(fd, f->now.n_slots, &f->map) == 0) {
        f->fd = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    int rc = make_file(f, former, err);
    return rc == -ENOSPC ? use_memory(f, former, err) : rc;
}

/* Slots that were not whole are free, in the file too; but not before both heads have the time to
 * wait for. */
static void write_inherited(struct bh_inflight *f)
{
    write_head(f);
    write_head(f);
    for (uint32_t i = 0; i < f->now.n_slots; i++)
        if (!f->own[i].taken)
            atomic_store_explicit(&slot_at(f, i)->mark, MARK_FREE, memory_order_release);
}

static int open_record(struct bh_inflight *f, const char *runtime_dir, struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *former = NULL, *old = NULL;
    size_t n = 0;
    int fd = -1, rc = bh_trusted_dir_open(&f->dir, runtime_dir, BH_SCHEDULER_DIR, err);

    if (bh_host_boot(&f->now.host_boot) < 0)
        f->now.host_boot = 1; /* then records of all boots are counted */
    f->now.magic = MAGIC;
    f->own = bh_calloc(BH_INFLIGHT_SLOTS, sizeof(*f->own));
    f->spare = bh_calloc(BH_INFLIGHT_SLOTS, sizeof(*f->spare));
    if (rc == 0 || rc == -ENOSPC)
        old = find_old_record(f, runtime_dir);
    if (rc == 0)
        rc = read_former(f, &former, &n, &fd, err);
    const bool holds = rc == 0 && former && inherit(f, former, n);
    f->now.unrecorded_until_ns = f->former_until_ns; /* from the first write on */
    if (rc == 0)
        rc = continue_record(f, fd, holds ? former : NULL, err);
    else if (rc == -ENOSPC)
        rc = use_memory(f, NULL, err);
    if (rc == 0)
        write_inherited(f);
    if (rc == 0 && old)
        (void)unlink(old);
    return rc;
}

int bh_inflight_open(const char *runtime_dir, struct bh_inflight **ret, struct bh_err *err)
{
    struct bh_inflight *f = bh_calloc(1, sizeof(*f));

    f->fd = f->dir.fd = -1;
    f->path = bh_asprintf("%s/" BH_SCHEDULER_DIR "/" BH_INFLIGHT_FILE, runtime_dir);
    int rc = open_record(f, runtime_dir, err);
    if (rc < 0) {
        if (f->map)
            munmap(bh_take_ptr(f->map), MAP_BYTES);
        bh_inflight_close(f);
        return rc;
    }
    *ret = f;
    return 0;
}

void bh_inflight_close(struct bh_inflight *f)
{
    if (!f)
        return;
    if (f->map && f->dir.fd >= 0 && !bh_inflight_count(f) && !f->now.n_binders &&
        f->now.unrecorded_until_ns <= bh_boot_ns())
        (void)unlinkat(f->dir.fd, BH_INFLIGHT_FILE, 0);
    if (f->map)
        munmap(f->map, MAP_BYTES);
    if (f->fd >= 0)
        close(f->fd);
    bh_trusted_dir_close(&f->dir);
    for (uint32_t i = 0; i < f->n_inherited; i++) {
        free(f->inherited[i].uid);
        free(f->inherited[i].node);
    }
    free(f->inherited);
    free(f->own);
    free(f->spare);
    free(f->path);
    free(f);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static bool grow(struct bh_inflight *f)
{
    uint32_t n = BH_MIN(f->now.n_slots + GROW_SLOTS, BH_INFLIGHT_SLOTS);
    int rc = n == f->now.n_slots ? -ENOSPC : f->fd < 0 ? 0 : bh_reserve_file(f->fd, file_bytes(n));

    if (rc < 0) {
        if (!f->full_told)
            bh_log_warn("A bind cannot be recorded: a scheduler that starts after this one waits "
                        "until it has taken effect or failed",
                        bh_kv_s("file", f->path), bh_kv_s("err", strerror(-rc)));
        f->full_told = true;
        return false;
    }
    prepare_slots(f, f->now.n_slots, n);
    f->full_told = false;
    return true;
}

uint32_t bh_inflight_put(struct bh_inflight *f, const struct bh_inflight_item *it)
{
    size_t n_uid = strlen(it->uid), n_node = strlen(it->node);
    struct slot *s;

    retry_file(f);
    if (n_uid >= sizeof(s->uid) || n_node >= sizeof(s->node) || (!f->n_spare && !grow(f))) {
        extend_unrecorded(f, it->until_boot_ns);
        return 0;
    }
    const uint32_t i = f->spare[--f->n_spare];
    s = slot_at(f, i);
    s->kind = it->kind;
    s->id = it->id;
    s->term = it->term;
    s->n_uid = (uint16_t)n_uid;
    s->n_node = (uint16_t)n_node;
    memcpy(s->uid, it->uid, n_uid + 1);
    memcpy(s->node, it->node, n_node + 1);
    s->until_boot_ns[0] = it->until_boot_ns;
    f->own[i] = (struct own){.fixed = hash_fixed(s), .taken = true};
    atomic_store_explicit(&s->mark, slot_mark(f->own[i].fixed, it->until_boot_ns, 0),
                          memory_order_release);
    return i + 1;
}

void bh_inflight_extend(struct bh_inflight *f, uint32_t slot, uint64_t until_boot_ns)
{
    if (!slot) {
        extend_unrecorded(f, until_boot_ns);
        return;
    }
    bh_assert(slot <= f->now.n_slots && f->own[slot - 1].taken);
    struct own *o = &f->own[slot - 1];
    struct slot *s = slot_at(f, slot - 1);
    o->time ^= 1;
    s->until_boot_ns[o->time] = until_boot_ns;
    atomic_store_explicit(&s->mark, slot_mark(o->fixed, until_boot_ns, o->time),
                          memory_order_release);
}

void bh_inflight_drop(struct bh_inflight *f, uint32_t slot)
{
    if (!slot)
        return;
    bh_assert(slot <= f->now.n_slots && f->own[slot - 1].taken);
    f->own[slot - 1].taken = false;
    atomic_store_explicit(&slot_at(f, slot - 1)->mark, MARK_FREE, memory_order_release);
    f->spare[f->n_spare++] = slot - 1;
}

uint32_t bh_inflight_next(const struct bh_inflight *f, uint32_t *it, struct bh_inflight_item *ret)
{
    const uint64_t latest = bh_boot_ns() + BH_INFLIGHT_NS;

    if (*it == f->n_inherited)
        return 0;
    const struct inherited *in = &f->inherited[f->n_inherited - 1 - (*it)++];
    *ret = in->item;
    ret->until_boot_ns = BH_MIN(ret->until_boot_ns, latest);
    return in->slot;
}

uint32_t bh_inflight_count(const struct bh_inflight *f)
{
    return f->now.n_slots - f->n_spare;
}

/* ---- head ------------------------------------------------------------------------------------ */

void bh_inflight_add_binder(struct bh_inflight *f, const char *name)
{
    struct head *h = &f->now;

    for (uint32_t i = 0; i < h->n_binders; i++)
        if (bh_streq(h->binder[i], name))
            return;
    if (h->n_binders == BH_INFLIGHT_BINDERS)
        h->too_many = true;
    else
        snprintf(h->binder[h->n_binders++], NAME_BYTES, "%s", name);
    write_head(f);
}

const char *bh_inflight_binder(const struct bh_inflight *f, uint32_t i)
{
    return i < f->now.n_binders ? f->now.binder[i] : NULL;
}

void bh_inflight_forget_binders(struct bh_inflight *f)
{
    f->now.n_binders = 0;
    f->now.too_many = false;
    write_head(f);
}

uint64_t bh_inflight_unrecorded_until(const struct bh_inflight *f)
{
    return f->former_until_ns > bh_boot_ns() ? f->former_until_ns : 0;
}

bool bh_inflight_unknown(const struct bh_inflight *f)
{
    return f->unknown;
}
