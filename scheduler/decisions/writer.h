/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/writer.h - the file's inside: tables, and their writer
 *
 *   state     one row: the mode it is written in, how much was dropped
 *   attempts  one row an attempt, small: what a list shows; pod is a hash of namespace/name
 *   bodies    what single nodes and plugins said, compressed (n = its size before)
 *   names     node names by list and position (record.h); of this list's number in the file
 *   changes   attempts whose outcome came after them, for pollers; the last BH_CHANGES_KEPT
 *
 * The row of an attempt is written again when its outcome is known; its body never is.
 */
#ifndef BH_DECISIONS_WRITER_H
#define BH_DECISIONS_WRITER_H

#include <sqlite3.h>

#include "common/base/map.h"
#include "scheduler/decisions/recorder.h"

#define BH_DECISIONS_APPLICATION 0x42684463 /* "BhDc" */
#define BH_DECISIONS_SCHEMA      1
#define BH_CHANGES_KEPT          20000

/* What the scheduler's thread hands over: messages, one behind the other. Texts follow the fixed
 * part in the order of their sizes. */
enum bh_message_kind { BH_MESSAGE_ATTEMPT = 1, BH_MESSAGE_OUTCOME };
struct bh_message {
    uint32_t size; /* all of it */
    uint32_t kind;
    uint64_t number;
    int64_t time_ns;
    uint32_t result, outcome;
    uint32_t list, first_name, n_names;
    uint32_t n_namespace, n_name, n_uid, n_node, n_outcome, n_head, n_body;
    uint32_t n_names_text; /* the new names, each ended by NUL */
};

struct bh_writer_names { /* of the list in use, to write them into a new file */
    uint32_t list, n, written;
    struct bh_buf text; /* each ended by NUL */
    size_t written_at;  /* in text */
};
struct bh_writer {
    struct bh_recorder_options o;
    char *path, *lock_path;
    int lock;
    sqlite3 *db;
    sqlite3_stmt *attempt, *body, *name, *outcome, *change, *state;
    uint64_t device, inode; /* of the file that is open */
    uint64_t base;          /* id in the file = base + number */
    uint32_t list_base;
    uint64_t last_number, batch_first, batch_last, batch_n;
    const char *batch;   /* the messages being written */
    struct bh_umap late; /* of them: number of an attempt -> where its last outcome is */
    struct bh_writer_names names;
    uint64_t rows, recorded, dropped, told_dropped, bytes;
    uint64_t tried_ns, looked_ns, aged_ns, failed_ns, complained_ns;
    bool complained, told_mode;
    void *z; /* z_stream */
    struct bh_buf packed;
};
/* The column pod. */
static inline int64_t bh_decisions_pod_hash(struct bh_str namespace_, struct bh_str name)
{
    return (int64_t)bh_hash(name.p, name.n, bh_hash(namespace_.p, namespace_.n, 0));
}
void bh_writer_init(struct bh_writer *w, const struct bh_recorder_options *o);
void bh_writer_fini(struct bh_writer *w);
/* Writes a buffer of messages. dropped: attempts that were lost before they came here, in all. */
void bh_writer_write(struct bh_writer *w, const struct bh_buf *messages, uint64_t dropped);
void bh_writer_tick(struct bh_writer *w, uint64_t dropped); /* now and then */
#endif
