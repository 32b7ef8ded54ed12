/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/inflight.h - bindings in flight, recorded for the scheduler that starts next
 *
 * A binding that a binder was given takes effect whatever becomes of this process and of the
 * binder. So before an item leaves the ledger for the first time, its pod and node are put into a
 * slot of a mapped file, and the slot is free again when the outcome is known: refused for good, or
 * bound and shown by the watch. The scheduler that starts here next counts every pod of a taken
 * slot on its node before it decides anything (adopt.c). The names of the binders that got work
 * stand there too: they report first.
 *
 * The file: <runtime_dir>/scheduler/scheduler.inflight, 0600, in a directory that only the
 * scheduler writes (common/base/trusted_file.h); no other process reads it. Two heads, then slots
 * of equal size; a checksum for each head and each slot. Wherever the process is killed, head and
 * slots are whole. It belongs to one boot of the machine: of an earlier one nothing can be in
 * flight.
 *
 * Damage: a file that is truncated, is not the scheduler's own, or has a head or slot that is not
 * whole, means that binds of which nothing is known may take effect for BH_INFLIGHT_NS. That time
 * is recorded, so that it holds for further restarts too; slots that are whole count all the same.
 *
 * Bounds: BH_INFLIGHT_SLOTS. The file grows as slots are needed, and space is reserved before it is
 * touched. Where none is left (full disk) the time until which unrecorded binds may take effect is
 * kept in the head instead, and the next scheduler waits for it. Without space for the file itself
 * the record is in memory, an empty file reports that to the next scheduler, and the file is made
 * as soon as there is space. Cost: no system call, no lock: some 100 bytes are copied and hashed
 * for a bind.
 * Threads:    one owner.
 * Errors:     negative errno.
 */
#ifndef BH_SCHED_INFLIGHT_H
#define BH_SCHED_INFLIGHT_H

#include "common/base/base.h"

#define BH_INFLIGHT_SLOTS   40000u
#define BH_INFLIGHT_BINDERS 64u
#define BH_INFLIGHT_TEXT    256u /* bytes of a uid, a node or a binder's name, NUL included */
#define BH_INFLIGHT_FILE    "scheduler.inflight" /* in BH_SCHEDULER_DIR */
/* An item that a binder has may be written until so long after it was sent: a binder gives up 30 s
 * after taking it, and its last request may take another 10 s. */
#define BH_INFLIGHT_NS UINT64_C(45000000000)
/* One that its binder has given up, or did not survive, within the time of one request. */
#define BH_INFLIGHT_REQUEST_NS UINT64_C(12000000000)

struct bh_inflight;
struct bh_inflight_item {
    uint32_t kind;          /* Berth__WorkKind */
    uint64_t id, term;      /* of the item, of the lease */
    uint64_t until_boot_ns; /* it does not take effect after that */
    const char *uid, *node; /* node "" for kinds that have none */
};
/* Maps the file, which is made if need be; what an earlier process left in it stays taken. -EPERM:
 * the directory, or a directory in the file's place, is not the scheduler's own. */
int bh_inflight_open(const char *runtime_dir, struct bh_inflight **ret, struct bh_err *err);
/* NULL is allowed. At peace nothing is taken, no binder named: then the file goes. */
void bh_inflight_close(struct bh_inflight *f);

/* Returns the slot, from 1 on; 0: it could not be recorded, see above. */
uint32_t bh_inflight_put(struct bh_inflight *f, const struct bh_inflight_item *it);
void bh_inflight_drop(struct bh_inflight *f, uint32_t slot); /* 0: nothing */
/* It was sent once more. */
void bh_inflight_extend(struct bh_inflight *f, uint32_t slot, uint64_t until_boot_ns);
/* Slots that an earlier process left, from *it (0 at the start) on; 0 = there are no more. Texts
 * live as long as the record. */
uint32_t bh_inflight_next(const struct bh_inflight *f, uint32_t *it, struct bh_inflight_item *ret);
uint32_t bh_inflight_count(const struct bh_inflight *f);

/* Binders that got work and may have some. */
void bh_inflight_add_binder(struct bh_inflight *f, const char *name);
const char *bh_inflight_binder(const struct bh_inflight *f, uint32_t i); /* NULL: no more */
void bh_inflight_forget_binders(struct bh_inflight *f);
/* Boot clock: until then something of the processes before this one may take effect that stands in
 * no slot; 0 = nothing. */
uint64_t bh_inflight_unrecorded_until(const struct bh_inflight *f);
/* The file was damaged, or too many binders were named. */
bool bh_inflight_unknown(const struct bh_inflight *f);
#endif
