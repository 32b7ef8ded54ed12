/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/record.h - writing record files (simulator/replay/record.h has their form)
 *
 * Threads: one owner.
 */
#ifndef BH_CLI_RECORD_H
#define BH_CLI_RECORD_H

#include <zlib.h>

#include "common/base/buf.h"
#include "simulator/replay/record.h"

/* ---- record_file.c -----------------------------------------------------------------------------
 * Zeroed is a valid closed file. The first failure to write is kept and told by close(). */
struct bh_record_file {
    gzFile z; /* of a plain file, too */
    const char *path;
    struct bh_buf line;
    bool unflushed;
    int error; /* errno */
    uint64_t records, bytes;
};
/* path "-": standard output; packed when it ends in ".gz". */
int bh_record_file_open(struct bh_record_file *f, const char *path, bool force, struct bh_err *err);
void bh_record_file_header(struct bh_record_file *f, int64_t start_ns, bool anonymised);
void bh_record_file_add(struct bh_record_file *f, int64_t time_ns, enum bh_record_event e,
                        const struct bh_json *obj);
/* What was added is in the file, and can be unpacked. */
void bh_record_file_flush(struct bh_record_file *f);
int bh_record_file_close(struct bh_record_file *f, struct bh_err *err);
/* An object of which nothing is known but its name, as Delete has it. */
struct bh_json *bh_record_tombstone(struct bh_arena *a, const char *api_version, const char *kind,
                                    const char *ns, const char *name);

/* Traces count from 0; their records from here: 2023-01-01T00:00:00Z. */
#define BH_RECORD_EPOCH_NS (INT64_C(1672531200) * INT64_C(1000000000))

/* ---- record_kwok.c --------------------------------------------------------------------------- */
int bh_record_kwok(struct bh_record_file *f, const char *path, bool header, struct bh_err *err);

/* ---- record_openb.c -------------------------------------------------------------------------- */
struct bh_record_openb {
    const char *nodes, *pods; /* CSV files */
    int64_t start_s, end_s;   /* of the trace; end -1 = all of it */
    bool header;
};
int bh_record_openb(struct bh_record_file *f, const struct bh_record_openb *o, struct bh_err *err);
#endif
