/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/store.h - the inside of a reader: rows and unpacked attempts
 *
 * Only files of this folder include it (and its tests).
 * Threads: one owner for each reader.
 */
#ifndef BH_DECISIONS_STORE_H
#define BH_DECISIONS_STORE_H

#include <sqlite3.h>

#include "scheduler/decisions/decisions.h"
#include "common/base/map.h"
#include "scheduler/decisions/recorder.h"

struct bh_decision_row { /* texts live in the arena it was read into */
    int64_t id, time_ns, list;
    enum bh_decision_kind result;
    uint32_t outcome;
    const char *namespace_, *name, *uid, *node, *outcome_message;
    struct bh_record_head h;
};
struct bh_decision_names { /* a list of node names; kept for the next question */
    int64_t list;
    struct bh_symtab *tab;
    bh_sym *name;
    uint32_t *by_name, n, cap;
};
struct bh_decisions {
    char *path, *lock_path;
    sqlite3 *db;
    uint64_t device, inode;
    int64_t file;    /* a number drawn when the file was made */
    int64_t version; /* the file has changed when this has */
    struct bh_decision_names names;
    /* The attempt that was looked at last. */
    struct bh_arena arena;
    struct bh_decision_row row;
    struct bh_recorded got;
    bool has_body;
};
/* 0, or -ENOENT (no file), -EINVAL, -EAGAIN, -EIO. */
sqlite3_stmt *bh_decisions_ask(struct bh_decisions *d, const char *sql);
/* The row under s, which selects BH_DECISION_COLUMNS. */
#define BH_DECISION_COLUMNS                                                                        \
    "id, time, list, result, outcome, namespace, name, uid, node, outcome_message, head"
/* The attempt with its body, if it has one, into d->row and d->got, valid until the next call. */
int bh_decisions_load(struct bh_decisions *d, int64_t id, struct bh_err *err);
struct bh_json *bh_decisions_summary(struct bh_arena *a, const struct bh_decision_row *row);
#endif
