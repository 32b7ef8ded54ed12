/* SPDX-License-Identifier: Apache-2.0
 *
 * common/feed/feed.c - the asking side of the watcher's feed
 */
#include "common/feed/feed.h"

#include "common/base/log.h"

#define HELLO_AGAIN_NS UINT64_C(1000000000)
#define ACK_EVERY_NS   UINT64_C(500000000)
#define ACK_DUE_NS     UINT64_C(250000000)
#define FEED_CREDIT    64u
#define ACK_BATCHES    16u /* the watcher has credit for more */

void bh_feed_ask_again(struct bh_feed *f)
{
    Berth__WatchKind watch[BH_CUSTOM_KINDS], *list[BH_CUSTOM_KINDS];
    Berth__FeedHello h = BERTH__FEED_HELLO__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    h.has_epoch = h.has_credit = true;
    h.epoch = f->o.epoch;
    h.credit = FEED_CREDIT;
    h.has_observer = h.observer = f->o.observer;
    h.has_raw = true;
    h.raw = f->o.raw;
    for (size_t i = 0; i < f->o.n_watch; i++) {
        const struct bh_kind_info *k = f->o.watch[i];
        berth__watch_kind__init(&watch[i]);
        watch[i].has_kind = true;
        watch[i].kind = (uint32_t)k->kind;
        watch[i].group = (char *)(uintptr_t)k->group;
        watch[i].version = (char *)(uintptr_t)k->version;
        watch[i].resource = (char *)(uintptr_t)k->plural;
        list[i] = &watch[i];
    }
    h.n_watch = f->o.n_watch;
    h.watch = list;
    e.feed_hello = &h;
    f->begun = f->synced = false;
    f->hello_sent_ns = bh_mono_ns();
    (void)bh_bus_send(f->bus, NULL, &e);
}

static void send_ack(struct bh_feed *f)
{
    Berth__FeedAck a = BERTH__FEED_ACK__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    a.has_seq = a.has_credit = true;
    a.seq = f->seq;
    a.credit = FEED_CREDIT;
    a.has_ready = a.has_leaving = a.has_binder_progress = a.has_quiet_term = !f->o.observer;
    a.ready = f->life.ready;
    a.leaving = f->life.leaving;
    a.binder_progress = f->life.binder_progress;
    a.quiet_term = f->life.quiet_term;
    e.feed_ack = &a;
    f->ack_sent_ns = bh_mono_ns();
    f->acked = f->seq;
    (void)bh_bus_send(f->bus, NULL, &e);
}

void bh_feed_tell(struct bh_feed *f)
{
    if (f->begun)
        send_ack(f);
}

static void on_begin(struct bh_feed *f, const Berth__FeedBegin *b)
{
    if (b->refused) { /* hello again later: a place may become free */
        snprintf(f->refused, sizeof(f->refused), "%s", b->refused);
        return;
    }
    f->refused[0] = '\0';
    f->begun = true;
    f->synced = false;
    f->seq = f->acked = 0;
    f->incarnation = b->incarnation;
    f->o.begin(f->o.arg);
}

static void on_batch(struct bh_feed *f, const Berth__FeedBatch *b)
{
    if (!f->begun)
        return;
    if (b->seq != f->seq + 1) {
        bh_log_warn("Gap in the watcher's feed, asking for everything again",
                    bh_kv_u("expected", f->seq + 1), bh_kv_u("got", b->seq));
        bh_feed_ask_again(f);
        return;
    }
    for (size_t i = 0; i < b->n_change; i++)
        f->o.change(f->o.arg, b->change[i]);
    for (size_t i = 0; i < b->n_watch && f->o.state; i++)
        f->o.state(f->o.arg, b->watch[i]);
    f->seq = b->seq;
    bool completes = b->synced && !f->synced;
    if (completes) {
        f->synced = true;
        f->o.complete(f->o.arg);
    }
    if (!f->synced || completes || f->seq - f->acked >= ACK_BATCHES)
        send_ack(f); /* else bh_feed_tick() does, in time */
}

unsigned bh_feed_drain(struct bh_feed *f, unsigned max)
{
    unsigned n = 0;
    Berth__Envelope *e;

    for (; n < max; n++) {
        bh_arena_reset(&f->arena);
        enum bh_bus_outcome o = bh_bus_recv(f->bus, &f->arena, NULL, &e);
        if (o == BH_BUS_EMPTY)
            break;
        if (o != BH_BUS_OK)
            continue;
        if (e->feed_begin)
            on_begin(f, e->feed_begin);
        else if (e->feed_batch)
            on_batch(f, e->feed_batch);
    }
    return n;
}

void bh_feed_tick(struct bh_feed *f)
{
    uint64_t now = bh_mono_ns();

    if (!f->begun && now - f->hello_sent_ns > HELLO_AGAIN_NS)
        bh_feed_ask_again(f);
    else if (f->begun && now - f->ack_sent_ns > (f->seq == f->acked ? ACK_EVERY_NS : ACK_DUE_NS))
        send_ack(f);
}

int bh_feed_open(struct bh_feed *f, const struct bh_feed_options *o, struct bh_err *err)
{
    char endpoint[128], identity[32];
    int rc = bh_bus_endpoint(o->runtime_dir, "watcher", endpoint, err);

    *f = (struct bh_feed){.o = *o};
    bh_arena_init(&f->arena, 4u * BH_BUS_MAX_BYTES);
    snprintf(identity, sizeof(identity), "%c-%016llx", o->name,
             (unsigned long long)bh_rand_entropy());
    return rc < 0 ? rc
                  : bh_bus_open_among(BH_BUS_DEALER_CONNECT, endpoint, identity, o->users,
                                      o->users ? BH_BUS_WATCHER : 0, &f->bus, err);
}

void bh_feed_close(struct bh_feed *f)
{
    bh_bus_close(bh_take_ptr(f->bus));
    bh_arena_fini(&f->arena);
    f->begun = f->synced = false;
}
