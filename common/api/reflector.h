/* SPDX-License-Identifier: Apache-2.0
 *
 * common/api/reflector.h - LIST and WATCH of one kind, without losing or doubling anything
 *
 * LIST in pages (limit=500, first with resourceVersion=0; gzip where the server likes to), then
 * WATCH with bookmarks from the list's version; 410 / Expired (as HTTP status, inside the stream,
 * or on page >= 2) -> relist; a relist delivers the difference: on_object for what is there,
 * on_gone for what vanished meanwhile. Half-open connections: no byte (bookmarks come about once a
 * minute) for 3 minutes ends the watch, which is re-opened from the last version. Versions below
 * the last one seen on a bookmark (restored etcd) -> full relist. Accept: protobuf first, JSON
 * else; the reply's Content-Type decides. One undecodable object is reported (on_bad) and skipped,
 * never fatal. A kind with several versions
 * (bh_kind_info.other) is asked for in each of them until the server has one; the callbacks' kind is
 * that version. Kinds that plugins read (BH_KIND_CUSTOM) are asked for as JSON; one that the server does
 * not have (any more) is empty, and asked for every 5 s. Deduplication: an object whose (uid, resourceVersion) was already delivered is not
 * delivered again. A change of uid under one name is delivered as gone + object.
 * Upstream: client-go/tools/cache/reflector.go; differences: classic list+watch only (no
 * WatchList); the back-off starts over once a watch brought something, and waits for a server that
 * refuses connections are at most 4 s: after an outage the cluster is followed again within
 * seconds.
 */
#ifndef BH_REFLECTOR_H
#define BH_REFLECTOR_H

#include "common/api/client.h"
#include "common/k8s/codec.h"

struct bh_reflector;
struct bh_reflector_event {
    enum bh_watch_type type; /* ADDED, MODIFIED, DELETED */
    bool in_list;            /* part of a list */
    const char *ns, *name, *uid, *resource_version;
    const ProtobufCMessage *object; /* valid during the callback; DELETED: last state, NULL when
                                       the deletion was inferred from a relist */
    struct bh_str raw;              /* its bare protobuf, when it came as that; p = NULL else */
};
struct bh_reflector_callbacks {
    void (*on_event)(void *arg, const struct bh_kind_info *k, const struct bh_reflector_event *ev);
    /* The list is complete (every on_gone of a relist was delivered). relist: not the first. */
    void (*on_synced)(void *arg, const struct bh_kind_info *k, bool relist);
    void (*on_bad)(void *arg, const struct bh_kind_info *k, const char *name, const char *why);
    /* State changes for readiness and logs: NULL text = healthy again. A kind that the server does
     * not have is told so, then as a complete list; again when there was another trouble since. */
    void (*on_trouble)(void *arg, const struct bh_kind_info *k, const char *text);
    void *arg;
    uint64_t idle_ns; /* silence that ends a watch; 0 = 3 minutes */
    unsigned hurry;   /* all waits are divided by it; 0 = 1 */
};
struct bh_reflector *bh_reflector_new(uv_loop_t *loop, struct bh_api_client *c,
                                      const struct bh_kind_info *kind,
                                      const struct bh_reflector_callbacks *cb);
/* Asynchronous; not from inside a callback of the same reflector. No callback comes after it. */
void bh_reflector_free(struct bh_reflector *r);
/* Synced, and a watch is open: what happens now will be told at once. False between two watches and
 * while the server cannot be reached: what is known may be old by then. */
bool bh_reflector_follows(const struct bh_reflector *r);
/* The verb that the server refuses for want of rights ("list", "watch"), until that is over; NULL. */
const char *bh_reflector_forbidden(const struct bh_reflector *r);
/* Lists once more and delivers every object, also those that did not change (as MODIFIED): for a
 * consumer that wants more of them than before. Until then bh_reflector_repeats() is true;
 * on_synced of the list finds it false. */
void bh_reflector_again(struct bh_reflector *r);
bool bh_reflector_repeats(const struct bh_reflector *r);
struct bh_reflector_stats {
    uint64_t lists, watches, events, bookmarks, relists, bad_objects, duplicates, bytes;
    size_t objects;
};
void bh_reflector_stats(const struct bh_reflector *r, struct bh_reflector_stats *ret);
#endif
