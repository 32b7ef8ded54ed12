/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/watcher_int.h - the owner object, between the files of watcher/
 *
 *   watcher.c   life: what is opened, the loop's hooks, readiness
 *   apply.c     one event of a reflector -> snapshot or objects
 *   stats.c     metrics
 *   objects.c   objects that are not in the snapshot
 *   feed.c      the bus
 */
#ifndef BH_WATCHER_INT_H
#define BH_WATCHER_INT_H

#include "common/api/reflector.h"
#include "common/base/loop.h"
#include "common/http/probes.h"
#include "common/snapshot/snapshot.h"
#include "watcher/feed.h"
#include "watcher/leader.h"
#include "watcher/watcher.h"

struct bh_watch_kind { /* one watched kind */
    struct bh_reflector *reflector;
    bool synced, troubled;
    uint64_t trouble_logged_ns, bad_logged_ns;
    uint64_t bad_unlogged;            /* since the last line about one */
    struct bh_reflector_stats before; /* of the kind's earlier reflectors */
};
struct bh_watcher {
    uv_loop_t *loop;
    struct bh_watcher_callbacks cb;
    struct bh_api_client *client;
    struct bh_snap_writer *snapshot;
    struct bh_interner interner;
    struct bh_arena arena; /* one object's records */
    struct bh_buf bytes;   /* one object's message */
    struct bh_objects objects;
    struct bh_feed feed;
    struct bh_leader *leader;               /* NULL = no election */
    uint64_t turns_used, binder_turns_used; /* of feed, at the last look of the leader's */
    struct bh_bus_poll *bus_poll;
    struct bh_metrics *metrics;
    struct bh_probes *probes;
    uv_prepare_t flush;
    uv_timer_t tick, later;
    struct bh_watch_kind kinds[BH_KIND_ALL]; /* those that plugins read: see feed.kinds */
    unsigned watched, kinds_synced;
    bool pod_groups; /* are watched */
    bool coscheduling;
    bool synced, failed, closing;
    unsigned open_handles;
    uint64_t last_tick_ns, events_since_tick;
    uint64_t events, bad_objects[BH_KIND_ALL], bound;
    struct bh_watcher_stats *stats;
};
static inline bool bh_watcher_watches(const struct bh_watcher *w, enum bh_kind k)
{
    return bh_kinds[k].watched || (k == BH_KIND_PODGROUP && w->pod_groups) ||
           (k == BH_KIND_COSCHEDULING_PODGROUP && w->coscheduling);
}
/* Reflector callbacks; arg is the watcher. */
void bh_watcher_on_event(void *arg, const struct bh_kind_info *k,
                         const struct bh_reflector_event *ev);
void bh_watcher_on_bad(void *arg, const struct bh_kind_info *k, const char *name, const char *why);
/* The whole objects of a kind of the snapshot are wanted by some scheduler. */
static inline bool bh_watcher_wants_raw(const struct bh_watcher *w, enum bh_kind k)
{
    return w->feed.raw_wanted >> (k == BH_KIND_NODE ? BERTH__RAW_KIND__RAW_NODES
                                                    : BERTH__RAW_KIND__RAW_ASSIGNED_PODS) &
           1;
}
void bh_watcher_heartbeat(struct bh_watcher *w); /* snapshot upkeep; at least four times a second */
void bh_watcher_fail(struct bh_watcher *w, const char *what, const char *why);
void bh_watcher_stats_init(struct bh_watcher *w);
/* A kind that plugins read: its reflector is about to be another one, or none. */
void bh_watcher_stats_kind(struct bh_watcher *w, const struct bh_kind_info *k);
void bh_watcher_stats_fini(struct bh_watcher *w);
#endif
