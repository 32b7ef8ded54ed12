/* SPDX-License-Identifier: Apache-2.0
 *
 * watcher/feed.c - what the schedulers are told over the bus
 *
 * Owns:       the socket, one slot and one reader of the objects a scheduler.
 * Invariants: seq - acked <= credit; batches of one peer leave in the order of the object list.
 * Runs in:    the watcher's loop.
 */
#include "watcher/feed.h"

#include "common/base/loop.h"

void bh_feed_init(struct bh_feed *f, struct bh_bus *bus, struct bh_objects *objects)
{
    *f = (struct bh_feed){.bus = bus, .objects = objects};
    bh_arena_init(&f->arena, 0);
}

void bh_feed_fini(struct bh_feed *f)
{
    bh_bus_close(f->bus);
    bh_arena_fini(&f->arena);
    f->bus = NULL;
}

static void note(struct bh_feed *f, const char *what, const struct bh_feed_peer *p)
{
    if (f->on_note)
        f->on_note(f->arg, what, p);
}

/* ---- peers -------------------------------------------------------------------------------------
 */

static struct bh_feed_peer *find(struct bh_feed *f, const struct bh_peer *id)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        if (p->used && p->id.n == id->n && memcmp(p->id.id, id->id, id->n) == 0)
            return p;
    }
    return NULL;
}

static void drop(struct bh_feed *f, struct bh_feed_peer *p, const char *why)
{
    note(f, why, p);
    bh_objects_reader_close(f->objects, (unsigned)p->reader);
    p->used = false;
    f->stats.dropped++;
}

static struct bh_feed_peer *add(struct bh_feed *f, const struct bh_peer *id)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        if (p->used)
            continue;
        int reader = bh_objects_reader_open(f->objects);
        bh_assert(reader >= 0); /* as many readers as peers */
        *p = (struct bh_feed_peer){.id = *id, .used = true, .reader = reader};
        return p;
    }
    return NULL;
}

/* ---- receiving ---------------------------------------------------------------------------------
 */

static void on_hello(struct bh_feed *f, const struct bh_peer *id, const Berth__FeedHello *h)
{
    struct bh_feed_peer *p = find(f, id);
    f->stats.hellos++;
    if (p) {
        bh_objects_reader_restart(f->objects, (unsigned)p->reader);
    } else if (!(p = add(f, id))) {
        f->stats.refused++;
        return;
    }
    p->begun = p->synced = false;
    p->epoch = h->epoch;
    p->credit = h->credit;
    p->seq = p->acked = 0;
    p->heard_ns = bh_mono_ns();
    note(f, "Scheduler asked for the whole state", p);
}

static void on_ack(struct bh_feed *f, const struct bh_peer *id, const Berth__FeedAck *a)
{
    struct bh_feed_peer *p = find(f, id);
    if (!p) { /* from before our start, or dropped: number 0 is a gap for it */
        Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
        Berth__Envelope e = BERTH__ENVELOPE__INIT;
        b.has_seq = 1;
        e.feed_batch = &b;
        (void)bh_bus_send(f->bus, id, &e);
        return;
    }
    p->heard_ns = bh_mono_ns();
    if (a->seq > p->seq) /* of an earlier feed, sent before our FeedBegin arrived */
        return;
    p->acked = BH_MAX(p->acked, a->seq);
    if (a->has_credit && a->credit)
        p->credit = a->credit;
}

bool bh_feed_receive(void *feed)
{
    struct bh_feed *f = feed;
    struct bh_peer id;
    Berth__Envelope *e = NULL;

    for (unsigned i = 0; i < BH_ZPOLL_BURST; i++) {
        bh_arena_reset(&f->arena);
        enum bh_bus_outcome o = bh_bus_recv(f->bus, &f->arena, &id, &e);
        if (o == BH_BUS_EMPTY)
            return false;
        if (o != BH_BUS_OK)
            continue;
        if (e->feed_hello)
            on_hello(f, &id, e->feed_hello);
        else if (e->feed_ack)
            on_ack(f, &id, e->feed_ack);
        /* anything else is not for us */
    }
    return true;
}

/* ---- sending -----------------------------------------------------------------------------------
 */

/* False: the peer is gone or cannot take more now. */
static bool tell(struct bh_feed *f, struct bh_feed_peer *p, const Berth__Envelope *e)
{
    switch (bh_bus_send(f->bus, &p->id, e)) {
    case BH_BUS_OK:
        return true;
    case BH_BUS_FULL:
        return false; /* the next flush tries again */
    default:
        drop(f, p, "Scheduler went away");
        return false;
    }
}

static bool begin(struct bh_feed *f, struct bh_feed_peer *p)
{
    Berth__FeedBegin b = BERTH__FEED_BEGIN__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    b.has_incarnation = b.has_lease_term = 1;
    b.incarnation = f->incarnation;
    b.lease_term = f->lease_term;
    e.feed_begin = &b;
    return p->begun = tell(f, p, &e);
}

static char *text(const char *s)
{
    return *s ? (char *)(uintptr_t)s : NULL;
}

static void fill(Berth__ObjectChange *c, const struct bh_object *o, bool known, bool in_list)
{
    berth__object_change__init(c);
    c->has_op = c->has_kind = c->has_log_pos = 1;
    c->op = o->state == BH_OBJ_BOUND     ? BERTH__CHANGE_OP__CHANGE_BOUND
            : o->state == BH_OBJ_DELETED ? BERTH__CHANGE_OP__CHANGE_DELETED
            : known                      ? BERTH__CHANGE_OP__CHANGE_MODIFIED
                                         : BERTH__CHANGE_OP__CHANGE_ADDED;
    c->kind = (uint32_t)o->kind;
    c->namespace_ = text(o->ns);
    c->name = text(o->name);
    c->uid = text(o->uid);
    c->resource_version = text(o->rv);
    c->log_pos = o->log_pos;
    c->has_in_list = in_list;
    c->in_list = in_list;
    if (o->state == BH_OBJ_LIVE) {
        c->has_object = 1;
        c->object = (ProtobufCBinaryData){o->bytes_n, (uint8_t *)(uintptr_t)o->bytes};
    }
}

/* The message borrows the objects' bytes, so the reader moves on only after it is sent. Peeking
 * ahead needs no cursor of its own: the list is walked by hand. */
static size_t collect(struct bh_feed *f, struct bh_feed_peer *p, Berth__ObjectChange *changes,
                      Berth__ObjectChange **list, bool *ret_end)
{
    const unsigned reader = (unsigned)p->reader;
    size_t n = 0, bytes = 0;
    bool known = false;
    const struct bh_object *o = bh_objects_peek(f->objects, reader, &known);
    for (; o && n < BH_BUS_BATCH_ITEMS; o = TAILQ_NEXT(o, link)) {
        known = o->told >> reader & 1;
        if (o->state != BH_OBJ_LIVE && !known)
            continue;
        if (n && bytes + o->bytes_n > BH_FEED_BATCH_BYTES)
            break;
        bytes += o->bytes_n;
        fill(&changes[n], o, known, !p->synced);
        list[n] = &changes[n];
        n++;
    }
    *ret_end = o == NULL;
    return n;
}

static bool send_batch(struct bh_feed *f, struct bh_feed_peer *p)
{
    static Berth__ObjectChange changes[BH_BUS_BATCH_ITEMS]; /* too large for the stack */
    static Berth__ObjectChange *list[BH_BUS_BATCH_ITEMS];
    Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    bool at_end = false;

    b.n_change = collect(f, p, changes, list, &at_end);
    bool completes = at_end && f->synced && !p->synced;
    if (b.n_change == 0 && !completes && p->told_leading == f->leading)
        return false;
    b.change = list;
    b.has_seq = b.has_lease_term = b.has_leading = 1;
    b.seq = p->seq + 1;
    b.has_synced = completes;
    b.synced = completes;
    b.lease_term = f->lease_term;
    b.leading = f->leading;
    e.feed_batch = &b;
    if (!tell(f, p, &e))
        return false;
    p->seq++;
    p->synced = p->synced || completes;
    p->told_leading = f->leading;
    f->stats.batches++;
    f->stats.changes += b.n_change;
    for (size_t i = 0; i < b.n_change; i++) {
        bool known;
        bh_objects_peek(f->objects, (unsigned)p->reader, &known);
        bh_objects_advance(f->objects, (unsigned)p->reader);
    }
    return true;
}

void bh_feed_flush(struct bh_feed *f)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        if (p->used && !p->begun)
            begin(f, p);
        while (p->used && p->begun && p->seq - p->acked < p->credit && send_batch(f, p))
            ;
    }
}

void bh_feed_tick(struct bh_feed *f, uint64_t now_ns)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        if (p->used && now_ns - p->heard_ns > BH_FEED_SILENT_NS)
            drop(f, p, "Scheduler is silent, dropping it");
    }
}

unsigned bh_feed_peers(const struct bh_feed *f)
{
    unsigned n = 0;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++)
        n += f->peers[i].used;
    return n;
}

uint64_t bh_feed_unacked(const struct bh_feed *f)
{
    uint64_t most = 0;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++)
        if (f->peers[i].used)
            most = BH_MAX(most, f->peers[i].seq - f->peers[i].acked);
    return most;
}
