/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/waiting.h - pods that wait at Permit, and what plugins say about them
 *
 * Each plugin that said Wait has a timer of its own; the first to run out rejects the pod. The pod
 * goes on when every one of them has allowed it. The first decision counts, later ones change
 * nothing. One table for all profiles.
 *
 * Owns:     the entries; texts are copied.
 * Runs in:  the engine's thread; plugins call it from their callbacks.
 * Upstream: pkg/scheduler/framework/runtime/waiting_pods_map.go; differences: the timers run when
 *           the verdict is asked for.
 */
#ifndef BH_WAITING_H
#define BH_WAITING_H

#include "common/base/map.h"

enum bh_permit_verdict { BH_PERMIT_WAITS, BH_PERMIT_ALLOWED, BH_PERMIT_REJECTED, BH_PERMIT_FAILED };
struct bh_waiting_pod;
struct bh_waiting_pods {
    struct bh_map by_uid;   /* struct bh_waiting_pod * */
    struct bh_map activate; /* uids */
};
void bh_waiting_fini(struct bh_waiting_pods *w);
/* The pod waits for one plugin more; the first makes it a waiting pod. plugin: static. */
void bh_waiting_add(struct bh_waiting_pods *w, struct bh_str uid, const char *plugin,
                    int64_t timeout_ns);
struct bh_waiting_pod *bh_waiting_find(const struct bh_waiting_pods *w,
                                       struct bh_str uid); /* or NULL */
/* It waits no longer; NULL does nothing. */
void bh_waiting_drop(struct bh_waiting_pods *w, struct bh_waiting_pod *p);

/* ---- for plugins ----------------------------------------------------------------------------- */
/* The plugin's part is settled; the last one lets the pod go. false: no such pod waits. */
bool bh_waiting_allow(struct bh_waiting_pods *w, struct bh_str uid, const char *plugin);
/* Back to the queue, as unschedulable because of the plugin. false: decided already. */
bool bh_waiting_reject(struct bh_waiting_pods *w, struct bh_str uid, const char *plugin,
                       const char *message);
/* The pod, which waits in the queue, is tried next, whatever backoff it has left (upstream: Activate); one
 * that is being decided, or waits at Permit, when it is rejected. One that the queue does not have is
 * passed over. false: too many at once, or that is longer than a uid. */
#define BH_ACTIVATE_MAX 65536u /* that were not taken yet */
#define BH_ACTIVATE_UID 128u   /* bytes */
bool bh_waiting_activate(struct bh_waiting_pods *w, struct bh_str uid);
/* fn may allow and reject. */
void bh_waiting_each(const struct bh_waiting_pods *w, void (*fn)(void *arg, struct bh_str uid),
                     void *arg);

/* The plugin has lost what it knew of the pods that wait for it: they fail, which is an Error and not a
 * rejection. Pods that it has allowed are not affected. message: copied. */
void bh_waiting_fail(struct bh_waiting_pods *w, const char *plugin, const char *message);

/* ---- for the binder -------------------------------------------------------------------------- */
/* How it stands; the timers begin with the first call. REJECTED, FAILED: by which plugin and why, valid
 * until the pod is dropped. NULL: a pod that does not wait is allowed. */
enum bh_permit_verdict bh_waiting_verdict(struct bh_waiting_pod *p, int64_t now_ns,
                                          const char **ret_plugin, const char **ret_message);
/* Who has not allowed it yet, up to max; *ret_until_ns: when the first of them gives up, 0 = the pod
 * does not wait. */
uint32_t bh_waiting_for(const struct bh_waiting_pod *p, const char **ret, uint32_t max,
                        int64_t *ret_until_ns);
#endif
