/* SPDX-License-Identifier: Apache-2.0
 *
 * common/snapshot/layout.h - the bytes of the snapshot's segments
 *
 * Internal to common/snapshot. docs/snapshot-layout.md shows the same as tables; the assertions at
 * the end keep the two equal. Every number is little endian as the machine has it (amd64, arm64);
 * the snapshot never leaves the machine. "W" = the writer alone stores it. Fields marked (atomic)
 * are accessed with the helpers below only; all others never change once `version` is set.
 *
 * A change of anything here bumps BH_SNAP_LAYOUT; a change of a record bumps BH_REC_LAYOUT. Both
 * are in the version word, whose place (offset 8, after the magic) never changes.
 */
#ifndef BH_SNAPSHOT_LAYOUT_H
#define BH_SNAPSHOT_LAYOUT_H

#include "common/k8s/record.h"

#define BH_SNAP_MAGIC_CONTROL 0x314c525443485442ull /* "BTHCTRL1" */
#define BH_SNAP_MAGIC_DATA    0x3141544144485442ull /* "BTHDATA1" */
#define BH_SNAP_LAYOUT        4u
#define BH_SNAP_VERSION_WORD  ((BH_SNAP_LAYOUT << 16) | BH_REC_LAYOUT)
#define BH_SNAP_SLOTS         64u
#define BH_SNAP_PAGE          4096u
#define BH_SNAP_RECORD_ALIGN  16u /* offsets of records */
#define BH_SNAP_KEY_BYTES     16u /* a shape's key stands this far before its record */

/* Control segment, one page; another one takes its place when its name was removed. */
struct bh_snap_control {
    uint64_t magic;           /* BH_SNAP_MAGIC_CONTROL */
    uint32_t version;         /* W (atomic): stored last with release; 0 = under construction */
    uint32_t bytes;           /* of this segment */
    uint64_t incarnation;     /* of the writer: grows from start to start */
    uint64_t created_boot_ns; /* CLOCK_BOOTTIME */
    uint32_t writer_pid;      /* for people; liveness is the lock on byte 64 */
    uint32_t reserved;
    uint64_t slots_key; /* name of the reader slots */
    uint64_t reserved1[2];
    uint64_t segment; /* W (atomic, release): number of the current data segment, 0 = none now */
    uint32_t gone; /* W or its successor (atomic, release): 1 = look for another control segment */
    uint32_t hidden; /* W (atomic, before segment): 1 = none for want of room in /dev/shm */
    /* The leader lease. lease_until is 0 whenever lease_term changes, and is stored after it
     * (release); a reader loads lease_until first (acquire), so that it never sees a deadline with
     * an older term. */
    uint64_t lease_term;          /* W (atomic) */
    uint64_t lease_until_boot_ns; /* W (atomic, release): see bh_snap_set_lease */
    /* Name of data segment n, in data_key[n % 2]. Stored (release) before segment = n, so a reader
     * that loads segment, key, and the same segment again has the right one (bh_snap_current). */
    uint64_t data_key[2]; /* W (atomic) */
    uint64_t reserved3[2];
};

struct bh_snap_section {
    uint64_t off, bytes; /* off: multiple of 64, from the start of the segment */
};
enum bh_snap_section_id {
    BH_SNAP_SEC_LOG,     /* struct bh_snap_entry, a power of two of them */
    BH_SNAP_SEC_SYMS,    /* struct bh_snap_sym, index = symbol */
    BH_SNAP_SEC_TEXT,    /* text of the symbols */
    BH_SNAP_SEC_DIR,     /* uint64_t: offset of a live node or pod record, 0 = free slot */
    BH_SNAP_SEC_RECORDS, /* records */
    BH_SNAP_SECTIONS
};

/* Data segment. */
struct bh_snap_header {
    uint64_t magic;       /* BH_SNAP_MAGIC_DATA */
    uint32_t version;     /* W (atomic): stored last with release; 0 = under construction */
    uint32_t bytes;       /* of this header */
    uint64_t total_bytes; /* of the segment */
    uint64_t incarnation, segment;
    uint64_t base;            /* log position at which this segment starts */
    uint64_t created_boot_ns; /* CLOCK_BOOTTIME */
    uint32_t writer_pid;
    uint32_t reserved;
    struct bh_snap_section section[BH_SNAP_SECTIONS];
    uint64_t reserved2[6];
    /* Publication line. head: release, pairs with the reader's acquire in bh_snap_follow; the rest
     * is stored before head, so a reader that has loaded head sees at least the counts of then. */
    uint64_t head;                /* W (atomic): log position after the last change */
    uint64_t dir_used;            /* W (atomic): directory slots ever used; the walk ends here */
    uint64_t symbols;             /* W (atomic): symbols complete */
    uint64_t nodes, pods, shapes; /* W (atomic): live objects */
    uint64_t reserved3[2];
    /* Recycling line. Nothing retired after this position has been reused. Stored (seq_cst) BEFORE
     * the reader slots are looked at; a reader loads it AFTER its slot is stored (registration) and
     * AFTER each copy of a record. */
    uint64_t horizon; /* W (atomic) */
    uint64_t reserved4[7];
    /* Housekeeping lines, stored by bh_snap_writer_tick and the setters. */
    uint64_t heartbeat_boot_ns; /* W (atomic) */
    uint64_t reserved5;
    uint64_t synced;          /* W (atomic): 1 = the watcher has all lists */
    uint64_t bytes_used;      /* W (atomic): record bytes live or waiting to be recycled */
    uint64_t moves;           /* W (atomic) */
    uint64_t retired_waiting; /* W (atomic): records */
    uint64_t readers;         /* W (atomic): registered */
    uint64_t reserved6;
};

enum bh_snap_log_op {
    BH_SNAP_LOG_NODE_PUT = 1,
    BH_SNAP_LOG_NODE_DEL = 2, /* off: the last record */
    BH_SNAP_LOG_POD_PUT = 3,
    BH_SNAP_LOG_POD_DEL = 4,   /* off: the last record */
    BH_SNAP_LOG_SHAPE_DEL = 5, /* key: the shape no pod uses any more */
    BH_SNAP_LOG_MOVED = 6 /* the last entry of a segment: the next change is in the next segment */
};
struct bh_snap_entry {
    uint64_t seq; /* W (atomic, release): position of this change, 0 = being overwritten */
    uint64_t off; /* W (atomic): record, from the start of the segment */
    uint64_t key; /* W (atomic): shape key, or 0 */
    uint64_t op;  /* W (atomic): enum bh_snap_log_op */
};

struct bh_snap_sym {
    uint32_t off8; /* text section offset / 8; the text ends with a NUL */
    uint32_t len;  /* bytes without the NUL */
};

/* Reader slots: one object beside each control segment, accessed by pread and pwrite only
 * (slots.h).
 */
struct bh_snap_slot {
    uint32_t active;  /* reader claims, reader or writer clears */
    uint32_t pid;     /* reader; for people */
    uint64_t segment; /* reader: the data segment it reads */
    uint64_t pos;     /* reader (atomic): it will not look at anything retired up to here */
    uint64_t reserved[5];
};

static inline uint64_t bh_snap_load(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_RELAXED);
}
static inline uint64_t bh_snap_load_acquire(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline void bh_snap_store(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
}
static inline void bh_snap_store_release(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Fences. ThreadSanitizer does not model them (gcc refuses to compile them under it); where it
 * runs, the accesses around them are atomics or ordered by the reader slots. */
#if defined(__SANITIZE_THREAD__)
#define BH_SNAP_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BH_SNAP_TSAN 1
#endif
#endif
static inline void bh_snap_fence_load(void) /* earlier loads before later loads */
{
#ifndef BH_SNAP_TSAN
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}
static inline void bh_snap_fence_full(void) /* earlier stores before later loads */
{
#ifndef BH_SNAP_TSAN
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

#define BH_SNAP_AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #field)
BH_SNAP_AT(struct bh_snap_control, version, 8);
BH_SNAP_AT(struct bh_snap_control, bytes, 12);
BH_SNAP_AT(struct bh_snap_control, incarnation, 16);
BH_SNAP_AT(struct bh_snap_control, created_boot_ns, 24);
BH_SNAP_AT(struct bh_snap_control, writer_pid, 32);
BH_SNAP_AT(struct bh_snap_control, slots_key, 40);
BH_SNAP_AT(struct bh_snap_control, segment, 64);
BH_SNAP_AT(struct bh_snap_control, gone, 72);
BH_SNAP_AT(struct bh_snap_control, hidden, 76);
BH_SNAP_AT(struct bh_snap_control, lease_term, 80);
BH_SNAP_AT(struct bh_snap_control, lease_until_boot_ns, 88);
BH_SNAP_AT(struct bh_snap_control, data_key, 96);
_Static_assert(sizeof(struct bh_snap_control) == 128, "control");
BH_SNAP_AT(struct bh_snap_header, version, 8);
BH_SNAP_AT(struct bh_snap_header, bytes, 12);
BH_SNAP_AT(struct bh_snap_header, total_bytes, 16);
BH_SNAP_AT(struct bh_snap_header, incarnation, 24);
BH_SNAP_AT(struct bh_snap_header, segment, 32);
BH_SNAP_AT(struct bh_snap_header, base, 40);
BH_SNAP_AT(struct bh_snap_header, created_boot_ns, 48);
BH_SNAP_AT(struct bh_snap_header, writer_pid, 56);
BH_SNAP_AT(struct bh_snap_header, section, 64);
BH_SNAP_AT(struct bh_snap_header, head, 192);
BH_SNAP_AT(struct bh_snap_header, dir_used, 200);
BH_SNAP_AT(struct bh_snap_header, symbols, 208);
BH_SNAP_AT(struct bh_snap_header, nodes, 216);
BH_SNAP_AT(struct bh_snap_header, pods, 224);
BH_SNAP_AT(struct bh_snap_header, shapes, 232);
BH_SNAP_AT(struct bh_snap_header, horizon, 256);
BH_SNAP_AT(struct bh_snap_header, heartbeat_boot_ns, 320);
BH_SNAP_AT(struct bh_snap_header, synced, 336);
BH_SNAP_AT(struct bh_snap_header, bytes_used, 344);
BH_SNAP_AT(struct bh_snap_header, moves, 352);
BH_SNAP_AT(struct bh_snap_header, retired_waiting, 360);
BH_SNAP_AT(struct bh_snap_header, readers, 368);
_Static_assert(sizeof(struct bh_snap_header) == 384, "header");
_Static_assert(sizeof(struct bh_snap_entry) == 32, "entry");
_Static_assert(sizeof(struct bh_snap_sym) == 8, "symbol");
BH_SNAP_AT(struct bh_snap_slot, segment, 8);
BH_SNAP_AT(struct bh_snap_slot, pos, 16);
_Static_assert(sizeof(struct bh_snap_slot) == 64, "slot");
_Static_assert(sizeof(struct bh_snap_slot) * BH_SNAP_SLOTS == BH_SNAP_PAGE, "slots");
_Static_assert(__atomic_always_lock_free(8, 0) && __atomic_always_lock_free(4, 0), "lock-free");
#undef BH_SNAP_AT
#endif
