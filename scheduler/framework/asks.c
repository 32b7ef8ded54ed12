/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/asks.c - what plugins ask of whoever runs the engine
 */
#include "scheduler/framework/asks.h"

#include "scheduler/cache/write.h"

void bh_asks_init(struct bh_plugin_asks *a)
{
    bh_arena_init(&a->arena, 0);
    SLIST_INIT(&a->wakers);
}

void bh_asks_fini(struct bh_plugin_asks *a)
{
    bh_arena_fini(&a->arena);
}

bool bh_asks_event(struct bh_plugin_asks *a, const struct bh_asked_event *ev)
{
    struct bh_arena *mem = &a->arena;

    if (a->n_events == BH_ASKS_EVENTS)
        return false;
    a->events[a->n_events++] =
        (struct bh_asked_event){.namespace_ = bh_arena_strdup(mem, ev->namespace_),
                                .name = bh_arena_strdup(mem, ev->name),
                                .uid = bh_arena_strdup(mem, ev->uid),
                                .controller = bh_arena_strdup(mem, ev->controller),
                                .warning = ev->warning,
                                .reason = bh_arena_strdup(mem, ev->reason),
                                .note = bh_arena_strdup(mem, ev->note)};
    return true;
}

static const char *copied(struct bh_arena *a, const char *s)
{
    return s ? bh_arena_strdup(a, s) : NULL;
}

bool bh_asks_write(struct bh_plugin_asks *a, const struct bh_write *w)
{
    struct bh_arena *mem = &a->arena;

    if (a->n_writes == BH_ASKS_WRITES || !a->writes_taken)
        return false;
    struct bh_patch *p = bh_arena_new(mem, struct bh_patch);
    struct bh_write *to = a->writes[a->n_writes++] = bh_arena_new(mem, struct bh_write);
    *p = (struct bh_patch){.api_version = copied(mem, w->patch->api_version),
                           .resource = copied(mem, w->patch->resource),
                           .subresource = copied(mem, w->patch->subresource),
                           .json = w->patch->json,
                           .body = copied(mem, w->patch->body)};
    *to = (struct bh_write){.what = BH_WRITE_PATCH,
                            .namespace_ = copied(mem, w->namespace_),
                            .name = copied(mem, w->name),
                            .uid = copied(mem, w->uid),
                            .resource_version = copied(mem, w->resource_version),
                            .patch = p,
                            .plugin = w->plugin};
    return true;
}

void bh_asks_add_waker(struct bh_plugin_asks *a, struct bh_waker *w)
{
    SLIST_INSERT_HEAD(&a->wakers, w, link);
}

void bh_asks_wake(struct bh_waker *w)
{
    atomic_store_explicit(&w->rings, true,
                          memory_order_release); /* pairs with the exchange below */
}

void bh_asks_wake_at(struct bh_waker *w, int64_t at_ns)
{
    w->at_ns = at_ns == INT64_MAX ? 0 : BH_MAX(at_ns, 1);
}

unsigned bh_asks_take(struct bh_plugin_asks *a, const struct bh_asked *fn, void *arg)
{
    unsigned n = a->n_events + a->n_writes;
    struct bh_waker *w;

    for (uint32_t i = 0; i < a->n_events; i++)
        fn->event(arg, &a->events[i]);
    for (uint32_t i = 0; i < a->n_writes; i++)
        fn->write(arg, a->writes[i]);
    if (n)
        bh_arena_reset(&a->arena);
    a->n_events = a->n_writes = 0;
    SLIST_FOREACH(w, &a->wakers, link) {
        if (!atomic_load_explicit(&w->rings, memory_order_relaxed) ||
            !atomic_exchange_explicit(&w->rings, false, memory_order_acquire))
            continue;
        fn->wake(arg, w->plugin);
        n++;
    }
    return n;
}

unsigned bh_asks_take_due(struct bh_plugin_asks *a, int64_t now_ns,
                          void (*wake)(void *arg, const char *plugin), void *arg)
{
    struct bh_waker *w;
    unsigned n = 0;

    SLIST_FOREACH(w, &a->wakers, link) {
        if (!w->at_ns || w->at_ns > now_ns)
            continue;
        w->at_ns = 0;
        wake(arg, w->plugin);
        n++;
    }
    return n;
}

int64_t bh_asks_next_ns(const struct bh_plugin_asks *a)
{
    int64_t next = INT64_MAX;
    const struct bh_waker *w;

    SLIST_FOREACH(w, &a->wakers, link)
        next = w->at_ns ? BH_MIN(next, w->at_ns) : next;
    return next;
}
