/* SPDX-License-Identifier: Apache-2.0
 *
 * binder/series.h - events that repeat become one Event with a series, as client-go does it
 *
 * Two events are the same when type, action, reason, reporting controller and the objects they are
 * about (resource version included) are equal; the note is not looked at, the first one stays. The
 * first occurrence is created; the second turns it into a series (PATCH, count 2); later ones are
 * only counted, and written when the series ends (not seen for the finish time) or every refresh
 * time while it lives, so that the API server's event TTL does not drop it.
 *
 * Bounded: BH_SERIES_MAX remembered events, the longest unseen are ended first. What can happen
 * only once to a pod (Scheduled) is not remembered. Each binder keeps series of its own: with
 * several of them an event can have as many series as binders.
 * Threads:    the owner's.
 * Upstream:   client-go/tools/events/event_broadcaster.go.
 */
#ifndef BH_BINDER_SERIES_H
#define BH_BINDER_SERIES_H

#include <sys/queue.h>

#include "common/base/buf.h"
#include "common/base/map.h"
#include "proto/berth.pb-c.h"

#define BH_SERIES_MAX        10000u
#define BH_SERIES_FINISH_NS  (INT64_C(6) * 60 * 1000000000)
#define BH_SERIES_REFRESH_NS (INT64_C(30) * 60 * 1000000000)

struct bh_series;
TAILQ_HEAD(bh_series_list, bh_series);
struct bh_series_set {
    struct bh_map by_key;
    struct bh_series_list list; /* the longest unseen first */
    struct bh_buf key;          /* scratch */
};
/* The write that a series wants: a PATCH, and the POST that takes its place when the Event is not
 * there any more. Buffers are the caller's, reset first. */
struct bh_series_write {
    struct bh_buf patch_path, patch_body, post_path, post_body;
};
enum bh_series_verdict {
    BH_SERIES_ONCE,   /* not remembered: create the event, do not call bh_series_start */
    BH_SERIES_FIRST,  /* create the event and call bh_series_start */
    BH_SERIES_SECOND, /* w is filled: write it */
    BH_SERIES_COUNTED
};
void bh_series_fini(struct bh_series_set *s);
enum bh_series_verdict bh_series_observe(struct bh_series_set *s, const Berth__WorkItem *it,
                                         int64_t wall_ns, struct bh_series_write *w);
/* After FIRST, same item: the request that creates it. event_name is its metadata.name. True: another
 * one was ended for it, w is filled with what was not written of that: write it. */
bool bh_series_start(struct bh_series_set *s, const Berth__WorkItem *it, int64_t wall_ns,
                     const char *event_name, const struct bh_buf *post_path,
                     const struct bh_buf *post_body, struct bh_series_write *w);
/* One write that is due at wall_ns, if any (ended series are forgotten here): call until false.
 * Time only moves forward between calls. */
bool bh_series_due(struct bh_series_set *s, int64_t wall_ns, struct bh_series_write *w);
size_t bh_series_count(const struct bh_series_set *s);
void bh_series_write_fini(struct bh_series_write *w);
#endif
