/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/listen.c - telling controllers about commits
 *
 * Commits queue here and are told from the loop's idle phase (clock.c), a burst at a time, so that
 * a listener's own writes never recurse and a flood of commits cannot starve the clients.
 */
#include "simulator/server/sim_int.h"

void bh_sim_listen_burst(struct bh_sim *s, size_t burst)
{
    if (s->draining)
        return;
    s->draining = true;
    while (s->pending.n && burst--) {
        struct bh_sim_event e = bh_sim_ring_take(&s->pending);
        for (size_t i = 0; i < s->n_listen; i++) {
            if (!s->listen[i].type || s->listen[i].type == e.obj->type)
                s->listen[i].fn(s->listen[i].arg, e.change, e.old, e.obj);
        }
        bh_sim_event_fini(&e);
    }
    s->draining = false;
}

void bh_sim_drain(struct bh_sim *s)
{
    bh_sim_listen_burst(s, SIZE_MAX);
}

void bh_sim_listen(struct bh_sim *s, const struct bh_sim_type *t, bh_sim_listener *fn, void *arg)
{
    s->listen = bh_reallocarray(s->listen, s->n_listen + 1, sizeof(*s->listen));
    s->listen[s->n_listen++] = (struct bh_sim_listen_entry){t, fn, arg};
}

void bh_sim_listen_queue(struct bh_sim *s, enum bh_sim_change c, struct bh_sim_obj *old,
                         struct bh_sim_obj *obj)
{
    if (!s->n_listen || s->stopping)
        return;
    bh_sim_ring_push(&s->pending, c, old, obj);
    if (s->pending.n == 1)
        bh_sim_clock_wake(s);
}

void bh_sim_listen_fini(struct bh_sim *s)
{
    while (s->pending.n) {
        struct bh_sim_event e = bh_sim_ring_take(&s->pending);
        bh_sim_event_fini(&e);
    }
    free(s->pending.v);
    free(s->listen);
}

void bh_sim_suffix(struct bh_sim *s, char out[static 6])
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    for (int i = 0; i < 5; i++)
        out[i] = alphabet[bh_rand_below(&s->rand, sizeof(alphabet) - 1)];
    out[5] = 0;
}
