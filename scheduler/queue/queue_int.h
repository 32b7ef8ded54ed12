/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/queue_int.h - the queue's inside, shared by its files
 *
 * Invariants: an entry with place ACTIVE, BACKOFF or ERROR_BACKOFF is in exactly that heap; one
 * with place UNSCHEDULABLE or GATED is in a group of the pool, linked under each plugin of its set;
 * one IN_FLIGHT is in none and has a marker in the event list.
 */
#ifndef BH_QUEUE_INT_H
#define BH_QUEUE_INT_H

#include <sys/queue.h>

#include "common/base/map.h"
#include "common/base/heap.h"
#include "scheduler/queue/queue.h"

#define BH_QUEUE_MAX_PLUGINS 63u /* distinct plugin names that ever rejected a pod */
#define BH_QUEUE_OTHERS      (BH_QUEUE_MAX_PLUGINS - 1) /* of all further ones */
#define BH_QUEUE_MAX_LABELS  512u
#define BH_QUEUE_MAX_EVENTS  8192u /* kept for pods in flight; some kilobytes each */
#define BH_QUEUE_NO_PLUGIN   UINT32_MAX
#define NS_PER_S             INT64_C(1000000000)

struct entry;
/* Pods of the pool for which an event has one answer, as long as no hint looks at the pod
 * itself. */
struct pool_key { /* head of the key, which is compared as bytes: no padding */
    uint64_t rejectors, pendings;
    uint32_t gating_plugin;
    uint32_t shape; /* UINT32_MAX: by what follows, the essence */
};
_Static_assert(sizeof(struct pool_key) == 24, "pool_key has padding");
struct pool_link { /* membership of a group in one plugin's list of the pool */
    TAILQ_ENTRY(pool_link) link;
    struct pool_group *group;
};
struct pool_group {
    struct pool_key key;
    TAILQ_HEAD(entries, entry) entries;
    uint32_t busy;  /* walks that hold it */
    uint32_t key_n; /* of whole_key, the group's key in the map */
    char *whole_key;
    uint32_t n_links;
    struct pool_link links[];
};
/* What happened while pods were in flight: markers (pod popped here) and recorded events, in
 * order. */
struct flight_node {
    TAILQ_ENTRY(flight_node) link;
    struct entry *pod; /* marker: the pod popped here; NULL = event */
};
struct flight_event {
    struct flight_node node; /* first: nodes of the list without pod are these */
    struct bh_cluster_event ev;
    struct bh_pod_state *activate; /* Activate() of this pod */
    bool unseen;                   /* what happened here is not known: bh_queue_wake_all() */
    void *copies[6];               /* the event's records, owned */
};
struct entry {
    struct bh_queued_pod pub; /* its place is in the handle */
    uint32_t heap_index;
    int32_t priority;             /* of the shape, cached for the heaps' comparison */
    uint64_t rejectors, pendings; /* bit sets over bh_queue.plugins */
    uint32_t gating_plugin;       /* BH_QUEUE_NO_PLUGIN = not gated */
    int64_t backoff_expiry_ns;
    bool backoff_cached;
    struct pool_group *group; /* with its place in the group's list */
    TAILQ_ENTRY(entry) pool_link;
    struct flight_node marker; /* in the list while its pod is set, which is this entry */
    uint64_t sync_generation;  /* last feed that named the pod */
    uint64_t counted;          /* in bh_queue.rejected of counted_profile; bit set over plugins */
    uint32_t counted_profile;
};
struct rejected { /* pods of one profile that wait, by plugin that holds them back */
    bh_sym profile;
    uint64_t n[BH_QUEUE_MAX_PLUGINS];
};
struct bh_queue {
    struct bh_engine *engine;
    struct bh_queue_options o;
    bool sorts;          /* by a plugin's order; else by priority and time */
    struct bh_pods pods; /* with and without entry */
    struct bh_heap active, backoff, error_backoff;
    TAILQ_HEAD(pool, pool_link) pool[BH_QUEUE_MAX_PLUGINS + 1]; /* last: without rejector */
    struct bh_map groups; /* pool_key and essence -> pool_group */
    struct bh_buf key;    /* being built */
    uint64_t by_essence;  /* plugins that look at no more */
    char *plugins[BH_QUEUE_MAX_PLUGINS];
    uint32_t n_plugins;
    char *labels[BH_QUEUE_MAX_LABELS]; /* of events that brought pods back; 0: none */
    uint16_t n_labels, last_label;
    TAILQ_HEAD(flight, flight_node) flight;
    uint32_t n_flight_events;
    struct bh_queue_stats count;
    uint64_t sync_generation;
    bool syncing;
    int64_t next_flush_ns;
    int64_t last_add_ns, n_adds; /* so many pods have come at that time */
    void (*incoming)(void *arg, const char *queue, const char *event);
    void *incoming_arg;
    struct rejected *rejected;
    uint32_t n_rejected;
    uint64_t (*clock_ns)(void); /* NULL: hints are not timed */
    bh_queue_hint_fn *on_hint;
    void *on_hint_arg;
    uint32_t hint_samples; /* left until hint_second_ns */
    int64_t hint_second_ns;
};

/* Of a node that is no marker. */
static inline struct flight_event *bh_flight_event(struct flight_node *f)
{
    bh_assert(!f->pod);
    return (struct flight_event *)(void *)f;
}
/* NULL: the queue does not have it. */
static inline struct entry *bh_queue_entry(const struct bh_pod_state *s)
{
    return s ? (struct entry *)(void *)s->queued : NULL;
}
/* The entry of the table's slot, NULL: there is none. */
static inline struct entry *bh_queue_entry_at(const struct bh_map_entry *m)
{
    return bh_queue_entry(m->value);
}

enum worth { WORTH_SKIP, WORTH_AFTER_BACKOFF, WORTH_IMMEDIATELY };
/* *ret_by_pod becomes true when the answer is the entry's alone, see bh_engine_hint(). */
enum worth bh_queue_worth(struct bh_queue *q, struct entry *e, const struct bh_cluster_event *ev,
                          bool *ret_by_pod);
void bh_queue_requeue(struct bh_queue *q, struct entry *e, enum worth w, const char *label,
                      int64_t now_ns);
/* view.c: the plugins that hold e back are these. */
void bh_queue_count_rejected(struct bh_queue *q, struct entry *e, uint64_t plugins);
enum bh_hint bh_queue_hint(struct bh_queue *q, const char *plugin, struct entry *e,
                           const struct bh_cluster_event *ev, bool *ret_by_pod);
/* Pods of this gate wait for their victims alone, see bh_queue_release(). */
bool bh_queue_is_held(const struct bh_queue *q, uint32_t gating_plugin);
/* pool.c: link by the entry's set, shape and gate as they are; unlink allows an entry that is not
 * linked. A group that is held stays, even empty, until it is released. */
void bh_queue_pool_link(struct bh_queue *q, struct entry *e);
void bh_queue_pool_unlink(struct bh_queue *q, struct entry *e);
void bh_queue_pool_hold(struct pool_group *g);
void bh_queue_pool_release(struct bh_queue *q, struct pool_group *g);
/* flight.c */
void bh_queue_flight_record(struct bh_queue *q, const struct bh_cluster_event *ev);
void bh_queue_flight_activate(struct bh_queue *q, struct bh_pod_state *s);
void bh_queue_flight_unseen(struct bh_queue *q);
void bh_queue_flight_begin(struct bh_queue *q, struct entry *e);
void bh_queue_flight_end(struct bh_queue *q, struct entry *e);
enum worth bh_queue_flight_replay(struct bh_queue *q, struct entry *e);
#endif
