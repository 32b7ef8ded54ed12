/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/asks.h - what plugins ask of whoever runs the engine: events about pods, another
 * attempt for pods that they rejected, and patches that are for no pod
 *
 * Whoever runs the engine takes it after each turn (bh_engine_asked()); who does not, a simulation,
 * loses nothing but them.
 *
 * Owns:     events and patches until they are taken; texts are copied. Wakers belong to the plugins.
 * Runs in:  the engine's thread; bh_asks_wake() in any.
 */
#ifndef BH_ASKS_H
#define BH_ASKS_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "common/base/arena.h"

#define BH_ASKS_EVENTS 256u /* that wait to be taken; more are dropped */

#define BH_ASKS_WRITES 64u /* likewise */

struct bh_write;
struct bh_asked_event {
    const char *namespace_, *name, *uid; /* of the pod */
    const char *controller;              /* its profile */
    bool warning;                        /* of type Warning; else Normal */
    const char *reason, *note;
};
struct bh_waker {       /* of one instance of a plugin */
    const char *plugin; /* its name, static */
    atomic_bool rings;
    int64_t at_ns; /* when it is to ring by itself; 0: not. The engine's thread. */
    SLIST_ENTRY(bh_waker) link;
};
struct bh_plugin_asks {
    struct bh_arena arena; /* of the events */
    struct bh_asked_event events[BH_ASKS_EVENTS];
    uint32_t n_events;
    SLIST_HEAD(, bh_waker) wakers;
    struct bh_write *writes[BH_ASKS_WRITES]; /* PATCHes */
    uint32_t n_writes;
    bool writes_taken; /* somebody takes them: else they are refused */
};
void bh_asks_init(struct bh_plugin_asks *a);
void bh_asks_fini(struct bh_plugin_asks *a);
/* false: there are too many. */
bool bh_asks_event(struct bh_plugin_asks *a, const struct bh_asked_event *ev);
/* Of a PATCH (scheduler/cache/write.h). false: there are too many, or nobody takes them. */
bool bh_asks_write(struct bh_plugin_asks *a, const struct bh_write *w);
/* w lives as long as a; not while another thread rings. */
void bh_asks_add_waker(struct bh_plugin_asks *a, struct bh_waker *w);
/* Pods that the plugin rejected are worth another attempt. Any thread. */
void bh_asks_wake(struct bh_waker *w);
/* The same at that time of whoever runs the engine, in place of what was said before. INT64_MAX: never. */
void bh_asks_wake_at(struct bh_waker *w, int64_t at_ns);

/* ---- for whoever runs the engine ------------------------------------------------------------- */
struct bh_asked {
    void (*event)(void *arg, const struct bh_asked_event *ev);
    void (*wake)(void *arg, const char *plugin);
    void (*write)(void *arg, const struct bh_write *w); /* NULL: nobody tends (bh_engine_tend) */
};
/* Each is told once. Returns how many. */
unsigned bh_asks_take(struct bh_plugin_asks *a, const struct bh_asked *fn, void *arg);
/* Of them those whose time has come, alone. Returns how many. */
unsigned bh_asks_take_due(struct bh_plugin_asks *a, int64_t now_ns,
                          void (*wake)(void *arg, const char *plugin), void *arg);
int64_t bh_asks_next_ns(const struct bh_plugin_asks *a); /* INT64_MAX: none will */
#endif
