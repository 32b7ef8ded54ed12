/* SPDX-License-Identifier: Apache-2.0
 *
 * common/feed/feed.h - the asking side of the watcher's feed of objects
 *
 * Hello -> Begin -> batches 1, 2, 3 ... Any other number is a gap: hello again. An acknowledgement
 * goes out at least every 500 ms, also without news: a watcher that restarted does not know us and
 * answers it with number 0.
 *
 * Threads: one owner. Fails with: negative errno at open. Later trouble is a state (begun, synced,
 * refused): the next calls try again.
 */
#ifndef BH_FEED_H
#define BH_FEED_H

#include "common/bus/bus.h"
#include "common/k8s/kinds.h"

struct bh_feed_options {
    const char *runtime_dir;
    const struct bh_bus_users *users; /* whose feed is believed; NULL = any user's, for observers */
    uint64_t epoch;                   /* start of this process: rises with every start */
    bool observer;                    /* counts for nothing at the watcher */
    char name;                        /* first letter of our name on the bus */
    uint32_t raw;                     /* kinds wanted whole: bits 1 << enum Berth__RawKind */
    /* Kinds that plugins read (kinds.h), by our numbers; as long as the feed. */
    const struct bh_kind_info *const *watch;
    size_t n_watch; /* BH_CUSTOM_KINDS at most */
    /* What the owner wants to hear; none of them may call back into the feed. */
    void (*begin)(void *arg); /* a new feed: its initial state follows */
    void (*change)(void *arg, const Berth__ObjectChange *c);
    /* Of a kind of watch: whether it may be decided by. Before complete. NULL: without watch. */
    void (*state)(void *arg, const Berth__WatchState *s);
    void (*complete)(void *arg); /* the initial state is complete: what was not named is gone */
    void *arg;
};
/* What the watcher hears with each acknowledgement (proto FeedAck); set by the owner. */
struct bh_feed_life {
    bool ready, leaving;
    uint64_t binder_progress, quiet_term;
};
struct bh_feed {
    struct bh_feed_options o;
    struct bh_feed_life life; /* not of observers */
    struct bh_bus *bus;
    struct bh_arena arena;
    bool begun, synced;
    uint64_t incarnation; /* of the watcher that began it */
    uint64_t seq, acked, hello_sent_ns, ack_sent_ns;
    char refused[128]; /* what the watcher answered instead of a feed, "" = nothing */
};
/* The watcher need not be there yet. close also after a failed open. */
int bh_feed_open(struct bh_feed *f, const struct bh_feed_options *o, struct bh_err *err);
void bh_feed_close(struct bh_feed *f);
/* Takes at most max messages; returns how many there were. */
unsigned bh_feed_drain(struct bh_feed *f, unsigned max);
/* Hello and acknowledgements; call it every turn. */
void bh_feed_tick(struct bh_feed *f);
/* An acknowledgement now: something in life changed that the watcher waits for. */
void bh_feed_tell(struct bh_feed *f);
/* Everything is to be told again: something of it was lost here. */
void bh_feed_ask_again(struct bh_feed *f);
#endif
