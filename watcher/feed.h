/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/feed.h - what the schedulers are told over the bus
 *
 * A scheduler says FeedHello; it gets FeedBegin, then FeedBatch 1, 2, 3 ... with the whole state
 * and from then on every change. At most `credit` batches are under way unacknowledged. One that is
 * not heard of for BH_FEED_SILENT_NS is dropped; a sender that is not known gets a batch with
 * sequence number 0, which is a gap: it has to say hello again.
 * Kinds that plugins read are the watcher's own table here (kinds): each peer has numbers of its own for
 * them. One is watched while some peer wants it; a feed is synced only when each kind that it wants is
 * listed, or known not to be to be had.
 *
 * An observer (FeedHello.observer) gets the same feed and counts for nothing else: not as a
 * scheduler that is there, and no more than BH_FEED_OBSERVERS at a time, so that schedulers always
 * find a place. One too many is told so (FeedBegin.refused). Observers come and go, often killed:
 * each tick sends them a heartbeat, and one that is not there any more is dropped at once. Whether
 * schedulers are still there is looked at in the same way when all places are taken.
 */
#ifndef BH_WATCHER_FEED_H
#define BH_WATCHER_FEED_H

#include "common/base/arena.h"
#include "common/bus/bus.h"
#include "watcher/objects.h"

#include <uv.h>

/* Who speaks and does not acknowledge what was sent last has not got it: the connection broke with it.
 * The next batch would be a gap, but in a quiet cluster none comes. */
#define BH_FEED_LOST_NS     (UINT64_C(10) * 1000000000)
#define BH_FEED_SILENT_NS   (UINT64_C(30) * 1000000000)
#define BH_FEED_BATCH_BYTES ((size_t)1 << 20)
/* What a scheduler sees in the snapshot already - that a pod has its node - waits this long for
 * something that it waits for to go with. */
#define BH_FEED_BOUND_NS  (UINT64_C(50) * 1000000)
#define BH_FEED_OBSERVERS 8u /* of BH_OBJECTS_READERS */

struct bh_feed_peer {
    struct bh_peer id;
    bool used, begun, synced;
    bool observer;
    int reader;
    uint32_t raw;   /* bits 1 << Berth__RawKind: what it wants of `raw` below; 0 = nothing */
    int raw_reader; /* -1 without */
    uint32_t watch[BH_CUSTOM_KINDS]; /* by index in kinds: its number for it; 0 = not wanted */
    uint64_t states_told;            /* kinds_version, as of the last states that it was sent */
    uint64_t stale;                  /* of feed.stale when it came: what was not read anew since */
    uint32_t credit;
    uint64_t epoch, seq, acked;  /* batches sent, batches acknowledged */
    uint64_t heard_ns, moved_ns; /* moved: a batch was sent, or acknowledged */
    uint64_t binder_progress;    /* as it said last */
};
struct bh_feed_kind {         /* one that plugins read */
    struct bh_kind_info info; /* group NULL: the place is free */
    bool wanted;
    bool usable;       /* as WatchState */
    char trouble[256]; /* "" = none, or nothing is known yet */
};
struct bh_feed_stats {
    uint64_t batches, changes, hellos, dropped, refused;
};
struct bh_feed {
    struct bh_bus *bus;
    struct bh_objects *objects;
    struct bh_arena arena;
    struct bh_feed_peer peers[BH_OBJECTS_READERS];
    uint64_t incarnation;
    bool synced;
    /* Bits 1 << enum bh_kind of what schedulers allot to pods: its watch is interrupted, so a scheduler
     * before may have allotted more. One that comes now is synced only when each was read anew. */
    uint64_t stale;
    /* What schedulers say with their acknowledgements. turns: rises while one advances that would
     * decide if it led; binder_turns: ... while a binder does too. quiet_term: nothing decided
     * under this term or an older one is written any more; 0 again when a scheduler says hello.
     * leads (the owner's): the host may write. Until it may no more only a scheduler that leaves is
     * quiet: any other word of it was said before the lease was seen. */
    uint64_t turns, binder_turns, quiet_term;
    bool leads;
    /* Nodes and assigned pods as whole objects, for the schedulers that want them; each of them
     * gets all that any of them wants. wanted: what is to be kept; missing: what of it has not been
     * listed yet, without that no feed is synced that wants it. on_raw: wanted has changed. */
    struct bh_objects raw;
    uint32_t raw_wanted, raw_missing;
    void (*on_raw)(void *arg, uint32_t wanted);
    /* A place once taken stays that kind's. on_watch: it is wanted now, or no longer. The last one is
     * Coscheduling's PodGroup, which the owner watches by its configuration (wanted). */
    struct bh_feed_kind kinds[BH_PLUGIN_KINDS];
    uint64_t kinds_version; /* of their states */
    void (*on_watch)(void *arg, unsigned i, bool wanted);
    struct bh_feed_stats stats;
    /* As of the last flush, of objects and raw together; since when pods that got their node
     * wait. */
    uint64_t flushed_changes, flushed_bound, bound_since_ns;
    bool unfinished; /* a peer has not begun, or could not take all */
    /* A line worth logging: a scheduler came, went or was dropped. */
    void (*on_note)(void *arg, const char *what, const struct bh_feed_peer *p);
    void *arg;
};
/* Owns bus from now on. */
void bh_feed_init(struct bh_feed *f, struct bh_bus *bus, struct bh_objects *objects);
void bh_feed_fini(struct bh_feed *f);
bool bh_feed_receive(void *feed);      /* on_readable of bh_bus_poll */
void bh_feed_flush(struct bh_feed *f); /* sends what may be sent; cheap when there is nothing */
/* When to flush: 0 = now, UINT64_MAX = when something changes, else in so many ns. */
uint64_t bh_feed_wait(struct bh_feed *f);
void bh_feed_tick(struct bh_feed *f, uint64_t now_ns); /* drops the silent ones */
/* What became of a kind: usable, or why not. */
void bh_feed_kind_state(struct bh_feed *f, unsigned i, bool usable, const char *trouble);
/* Its watch is interrupted, or it was read anew: see stale. */
void bh_feed_kind_stale(struct bh_feed *f, enum bh_kind k, bool stale);
unsigned bh_feed_peers(const struct bh_feed *f); /* schedulers */
unsigned bh_feed_observers(const struct bh_feed *f);
/* Batches under way, the largest of all schedulers. */
uint64_t bh_feed_unacked(const struct bh_feed *f);
#endif
