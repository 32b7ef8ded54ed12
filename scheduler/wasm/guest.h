/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/guest.h - plugins that are WebAssembly guests
 *
 * The guests of kube-scheduler-wasm-extension, unmodified: a name in pluginConfig whose args have a
 * guestURL. The guest is read, checked and asked for its events when the configuration is read; its
 * instances come and go with the engine.
 *
 * Owns:    guests and their descriptors, for the life of the process.
 * Errors:  the original's texts ("wasm: guestURL is required").
 * Runs in: the look-up in any thread, under a lock; hooks in the engine's.
 */
#ifndef BH_GUEST_H
#define BH_GUEST_H

#include <stdatomic.h>

#include "common/wasm/wasm.h"
#include "scheduler/framework/plugin.h"

enum bh_guest_hook {
    BH_GUEST_ENQUEUE,
    BH_GUEST_PREFILTER,
    BH_GUEST_ADDPOD,
    BH_GUEST_REMOVEPOD,
    BH_GUEST_FILTER,
    BH_GUEST_POSTFILTER,
    BH_GUEST_PRESCORE,
    BH_GUEST_SCORE,
    BH_GUEST_NORMALIZESCORE,
    BH_GUEST_RESERVE,
    BH_GUEST_UNRESERVE,
    BH_GUEST_PERMIT,
    BH_GUEST_PREBIND,
    BH_GUEST_BIND,
    BH_GUEST_POSTBIND,
    BH_GUEST_HOOKS
};
/* What a scheduler calls: the export's name and its type, as in wasm.h. */
struct bh_guest_export {
    const char *name, *type;
};
extern const struct bh_guest_export bh_guest_exports[BH_GUEST_HOOKS];
/* "() -> (i32)" */
const char *bh_guest_signature(const char *type);

/* From now on configurations may name guests. Before there are threads. */
void bh_guest_start(void);
/* Where those with a URL of http or https come from. Without any of it they are refused. Texts and
 * buffers are the caller's, for ever. */
struct bh_buf;
struct bh_guest_sources {
    const char *store; /* folder that berth-watcher fills (common/wasm/store.h), NULL = none */
    /* How long a configuration waits for it: a scheduler that starts may be there first. */
    uint64_t wait_ns;
    /* For programs that have a network themselves, where the store has none: bh_download(). */
    int (*download)(const char *url, size_t max, const atomic_bool *stop, struct bh_buf *ret,
                    struct bh_err *err);
    /* For programs that start anew when their configuration changes: another guest under a name that
     * is known is looked at, not refused, and bh_guest_changed() says so. */
    bool may_change;
};
/* Of what was read since it was asked last: ask before and after. */
bool bh_guest_changed(void);
void bh_guest_set_sources(const struct bh_guest_sources *s);
/* berth_wasm_*, of the engine's thread that answers scrapes. */
struct bh_metrics;
void bh_guest_set_metrics(struct bh_metrics *m);

/* ---- for people ---- */
/* The guests of this process and what they did: an array of {name, url, sha256, bytes, hooks: [{name,
 * calls, traps, microseconds}], calls, traps, microseconds, memoryBytes, instances, events, eventsDropped,
 * nodeLocal, compiled, lastTrap}. In the engine's thread. */
struct bh_json *bh_guests_json(struct bh_arena *a);

/* What a guest tells about a pod or a node, through the original's event recorder. Texts are the
 * callee's for the call. */
struct bh_guest_event {
    const char *plugin, *profile; /* profile: the pod's scheduler name */
    bool of_node;
    const char *namespace_, *name, *uid, *resource_version; /* the last two: NULL = not said */
    const char *type, *reason, *action, *note;              /* checked: an API server takes them */
};
/* Who writes them; fn NULL: nobody, they are lines in the log. In the engine's thread. */
void bh_guest_set_events(void (*fn)(void *arg, const struct bh_guest_event *e), void *arg);
#endif
