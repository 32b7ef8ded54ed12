/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/watcher.h - berth-watcher: lists and watches the API server, owns the snapshot, feeds the
 * schedulers
 *
 * One object a process, everything in its loop. Nodes and assigned pods go into the snapshot; what
 * is not in there (pending pods, every other kind) goes to the schedulers over the bus, each change
 * with the log position it belongs to. All state can be lost: a restart lists again.
 */
#ifndef BH_WATCHER_H
#define BH_WATCHER_H

#include "common/api/client.h"
#include "common/flags/component.h"
#include "common/base/metrics.h"
#include "common/bus/peers.h"

#include <uv.h>

struct bh_watcher;
struct bh_watcher_options {
    const struct bh_api_config *api;
    const char *runtime_dir;     /* existing: the socket and the snapshot's name belong to it */
    const char *metrics_address; /* "0" = none */
    const char *user_agent;
    struct bh_api_options limits; /* qps, burst, limit_file, json; the rest is not looked at */
    const struct bh_leader_config *leader; /* NULL or not leader_elect: this host always decides */
    const struct bh_bus_users *users;      /* of this host: who may be fed; NULL = our own */
    bool pod_groups;                       /* PodGroups too (gate GenericWorkload) */
    bool coscheduling;        /* those of scheduling.x-k8s.io too (plugin Coscheduling) */
    const char *event_source; /* of LeaderElection events: first profile's name */
};
struct bh_watcher_callbacks {
    void (*on_synced)(void *arg); /* once: everything has been listed */
    /* The watcher cannot go on (text is logged already); it should be freed and the process end. */
    void (*on_failed)(void *arg);
    void *arg;
};
/* 0, -EBUSY (another watcher runs in this directory), other negative errno. */
int bh_watcher_new(uv_loop_t *loop, const struct bh_watcher_options *o,
                   const struct bh_watcher_callbacks *cb, struct bh_watcher **ret,
                   struct bh_err *err);
/* Gives the lease up while everything still runs, then calls stopped; free it after that. At once
 * without election. */
void bh_watcher_stop(struct bh_watcher *w, void (*stopped)(void *arg), void *arg);
/* Clean stop: unlinks snapshot and socket. Asynchronous: drain and close the loop after it. */
void bh_watcher_free(struct bh_watcher *w);
void bh_watcher_reload(struct bh_watcher *w); /* SIGHUP: credentials */
bool bh_watcher_synced(const struct bh_watcher *w);
bool bh_watcher_healthy(void *w); /* for the service manager's watchdog */
/* Line for humans: "listing: 3 of 19 kinds" or "watching: 5000 nodes, 120 pods, 7 pending". */
void bh_watcher_status(const struct bh_watcher *w, char out[static 128]);
uint16_t bh_watcher_metrics_port(const struct bh_watcher *w); /* 0 = none */
#endif
