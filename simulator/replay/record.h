/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/replay/record.h - record files: what happened in a cluster, and when
 *
 * JSON lines, plain or gzip, as kube-scheduler-simulator writes them:
 *     {"time":RFC 3339 with fraction,"event":"Add|Update|Delete","resource":{...}}
 * Add and Update carry the whole object, Delete at least apiVersion, kind and metadata.{name,
 * namespace}. Berth may put a header in front (an object with the member "berthRecord": version);
 * readers skip it. A last line that was cut short (a killed writer, a cut gzip stream) ends the
 * file without being an error.
 * Threads: one owner for each reader.
 * Upstream: simulator/recorder/recorder.go of kube-scheduler-simulator.
 */
#ifndef BH_SIM_REPLAY_RECORD_H
#define BH_SIM_REPLAY_RECORD_H

#include "common/data/json.h"

#define BH_RECORD_LINE_MAX  ((size_t)4 << 20)
#define BH_RECORD_TOTAL_MAX ((uint64_t)4 << 30) /* text of one file, unpacked */

enum bh_record_event { BH_RECORD_ADD, BH_RECORD_UPDATE, BH_RECORD_DELETE };
struct bh_record {
    unsigned line; /* 1-based; also set when the line is bad */
    int64_t time_ns;
    enum bh_record_event event;
    const char *api_version, *kind, *ns, *name; /* never NULL */
    struct bh_json *resource;                   /* in the arena given */
};
struct bh_record_reader;
/* p stays the caller's and must outlive the reader. */
struct bh_record_reader *bh_record_reader_new(const void *p, size_t n);
void bh_record_reader_free(struct bh_record_reader *r);
/* 1 and a record; 0 at the end; -EINVAL: this line is no record, the next call goes on behind it
 * (err without the line's number, which is in ret); -E2BIG, -EBADMSG: the file unpacks to too much,
 * or is no gzip from here on: the end. The arena is not reset. */
int bh_record_next(struct bh_record_reader *r, struct bh_arena *a, struct bh_record *ret,
                   struct bh_err *err);
bool bh_record_torn(const struct bh_record_reader *r); /* at the end: the last line was cut short */
/* One line. */
void bh_record_write(struct bh_buf *out, int64_t time_ns, enum bh_record_event e,
                     const struct bh_json *resource);
#endif
