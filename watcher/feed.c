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
    *f = (struct bh_feed){.bus = bus, .objects = objects, .kinds_version = 1};
    bh_objects_init(&f->raw);
}

void bh_feed_fini(struct bh_feed *f)
{
    bh_bus_close(f->bus);
    bh_objects_fini(&f->raw);
    bh_arena_fini(&f->arena);
    for (unsigned i = 0; i < BH_CUSTOM_KINDS; i++)
        bh_kind_custom_fini(&f->kinds[i].info);
    f->bus = NULL;
}

static void note(struct bh_feed *f, const char *what, const struct bh_feed_peer *p)
{
    if (f->on_note)
        f->on_note(f->arg, what, p);
}

/* ---- peers ----------------------------------------------------------------------------------- */

static struct bh_feed_peer *find_peer(struct bh_feed *f, const struct bh_peer *id)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        if (p->used && p->id.n == id->n && memcmp(p->id.id, id->id, id->n) == 0)
            return p;
    }
    return NULL;
}

static void want_raw(struct bh_feed *f, struct bh_feed_peer *p, uint32_t raw)
{
    if (p->raw_reader >= 0 && !raw) {
        bh_objects_reader_close(&f->raw, (unsigned)p->raw_reader);
        p->raw_reader = -1;
    } else if (p->raw_reader >= 0) {
        bh_objects_reader_restart(&f->raw, (unsigned)p->raw_reader);
    } else if (raw) {
        p->raw_reader = bh_objects_reader_open(&f->raw);
        bh_assert(p->raw_reader >= 0); /* as many readers as peers */
    }
    p->raw = raw;
    /* What some peer wants as whole objects; the last such peer to go takes the objects along. */
    uint32_t wanted = 0;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++)
        wanted |= f->peers[i].used ? f->peers[i].raw : 0;
    if (wanted)
        wanted |= f->raw_wanted; /* what is there stays as long as a peer reads it */
    if (wanted == f->raw_wanted)
        return;
    f->raw_missing = wanted & (f->raw_missing | ~f->raw_wanted);
    f->raw_wanted = wanted;
    f->unfinished = true;
    if (!wanted) {
        bh_objects_fini(&f->raw);
        bh_objects_init(&f->raw);
    }
    if (f->on_raw)
        f->on_raw(f->arg, wanted);
}

/* ---- kinds that plugins read ----------------------------------------------------------------- */

/* Its index; -1: there are BH_CUSTOM_KINDS others. */
static int place_of(struct bh_feed *f, const Berth__WatchKind *w)
{
    const char *group = w->group ? w->group : "";

    for (unsigned i = 0; i < BH_CUSTOM_KINDS; i++) {
        struct bh_kind_info *k = &f->kinds[i].info;
        if (!k->group)
            bh_kind_custom(k, i, group, w->version, w->resource);
        if (bh_streq(k->group, group) && bh_streq(k->version, w->version) &&
            bh_streq(k->plural, w->resource))
            return (int)i;
    }
    return -1;
}

/* What some peer wants is watched, and nothing else. */
static void review_kinds(struct bh_feed *f)
{
    for (unsigned i = 0; i < BH_CUSTOM_KINDS; i++) {
        bool wanted = false;
        for (size_t p = 0; p < BH_ARRAY_LEN(f->peers); p++)
            wanted |= f->peers[p].used && f->peers[p].watch[i];
        if (wanted == f->kinds[i].wanted)
            continue;
        f->kinds[i].wanted = wanted;
        f->kinds[i].usable = false;
        f->kinds[i].trouble[0] = '\0';
        if (f->on_watch)
            f->on_watch(f->arg, i, wanted);
        if (!wanted)
            bh_objects_drop(f->objects, BH_KIND_CUSTOM + i);
    }
}

static void want_kinds(struct bh_feed *f, struct bh_feed_peer *p, Berth__WatchKind *const *w,
                       size_t n)
{
    uint64_t mask = 0;

    memset(p->watch, 0, sizeof(p->watch));
    p->states_told = 0;
    for (size_t i = 0; i < n; i++) {
        int at = place_of(f, w[i]);
        if (at < 0) {
            note(f, "Not watching a kind: there are too many", p);
            continue;
        }
        p->watch[at] = w[i]->kind;
        mask |= UINT64_C(1) << (BH_KIND_CUSTOM + at);
    }
    bh_objects_reader_wants(f->objects, (unsigned)p->reader, mask);
    review_kinds(f);
}

/* The peer's number of the kind; 0: the peer does not read it. */
static uint32_t number_of(const struct bh_feed *f, const struct bh_feed_peer *p, unsigned i)
{
    if (i < BH_CUSTOM_KINDS)
        return p->watch[i];
    return f->kinds[i].wanted ? BH_KIND_COSCHEDULING_PODGROUP : 0;
}

/* Each kind that it wants is listed, or known to be unavailable. */
static bool kinds_settled(const struct bh_feed *f, const struct bh_feed_peer *p)
{
    for (unsigned i = 0; i < BH_PLUGIN_KINDS; i++)
        if (number_of(f, p, i) && !f->kinds[i].usable && !*f->kinds[i].trouble)
            return false;
    return true;
}

void bh_feed_kind_stale(struct bh_feed *f, enum bh_kind k, bool stale)
{
    const uint64_t bit = UINT64_C(1) << k;

    if (stale) {
        f->stale |= bit;
        return;
    }
    f->stale &= ~bit;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++)
        f->peers[i].stale &= ~bit;
}

void bh_feed_kind_state(struct bh_feed *f, unsigned i, bool usable, const char *trouble)
{
    struct bh_feed_kind *k = &f->kinds[i];

    if (k->usable == usable && bh_streq(k->trouble, trouble))
        return;
    k->usable = usable;
    snprintf(k->trouble, sizeof(k->trouble), "%s", trouble);
    f->kinds_version++;
    f->unfinished = true;
}

static void drop(struct bh_feed *f, struct bh_feed_peer *p, const char *why)
{
    note(f, why, p);
    bh_objects_reader_close(f->objects, (unsigned)p->reader);
    want_raw(f, p, 0);
    p->used = false;
    review_kinds(f);
    f->stats.dropped += !p->observer;
}

static struct bh_feed_peer *add(struct bh_feed *f, const struct bh_peer *id)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        if (p->used)
            continue;
        int reader = bh_objects_reader_open(f->objects);
        bh_assert(reader >= 0); /* as many readers as peers */
        *p = (struct bh_feed_peer){.id = *id, .used = true, .reader = reader, .raw_reader = -1};
        return p;
    }
    return NULL;
}

/* False: the peer is gone or cannot take more now. */
static bool tell(struct bh_feed *f, struct bh_feed_peer *p, const Berth__Envelope *e)
{
    switch (bh_bus_send(f->bus, &p->id, e)) {
    case BH_BUS_OK:
        return true;
    case BH_BUS_FULL:
        return false; /* the next flush tries again */
    default:
        drop(f, p, p->observer ? "Observer went away" : "Scheduler went away");
        return false;
    }
}

/* Sends observers, or all, something, only to find out which are not there any more. */
static void look_for(struct bh_feed *f, bool all)
{
    Berth__Heartbeat h = BERTH__HEARTBEAT__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    h.has_progress = 1;
    h.progress = f->stats.batches;
    e.heartbeat = &h;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++)
        if (f->peers[i].used && (all || f->peers[i].observer))
            (void)tell(f, &f->peers[i], &e);
}

static unsigned count(const struct bh_feed *f, bool observers)
{
    unsigned n = 0;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++)
        n += f->peers[i].used && f->peers[i].observer == observers;
    return n;
}

unsigned bh_feed_peers(const struct bh_feed *f)
{
    return count(f, false);
}

unsigned bh_feed_observers(const struct bh_feed *f)
{
    return count(f, true);
}

/* Room for one more? Those that just ended made some. */
static bool room_for_observer(struct bh_feed *f)
{
    if (bh_feed_observers(f) == BH_FEED_OBSERVERS)
        look_for(f, false);
    return bh_feed_observers(f) < BH_FEED_OBSERVERS;
}

/* When all places are taken: one that is killed again and again, or reloads, leaves its behind. */
static struct bh_feed_peer *add_or_make_room(struct bh_feed *f, const struct bh_peer *id)
{
    struct bh_feed_peer *p = add(f, id);

    if (p)
        return p;
    look_for(f, true);
    return add(f, id);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void on_hello(struct bh_feed *f, const struct bh_peer *id, const Berth__FeedHello *h)
{
    struct bh_feed_peer *p = find_peer(f, id);
    f->stats.hellos++;
    f->unfinished = true;
    if (p) {
        bh_objects_reader_restart(f->objects, (unsigned)p->reader);
    } else if ((h->observer && !room_for_observer(f)) || !(p = add_or_make_room(f, id))) {
        f->stats.refused++;
        if (h->observer) {
            Berth__FeedBegin b = BERTH__FEED_BEGIN__INIT;
            Berth__Envelope e = BERTH__ENVELOPE__INIT;
            char why[] = "too many observers are being fed, try again later";
            b.has_incarnation = 1;
            b.refused = why;
            e.feed_begin = &b;
            (void)bh_bus_send(f->bus, id, &e);
        }
        return;
    }
    p->observer = h->observer;
    if (!p->observer)
        f->quiet_term = 0;
    want_raw(f, p, h->raw);
    want_kinds(f, p, h->watch, h->n_watch);
    p->begun = p->synced = false;
    if (!p->observer && p->epoch != h->epoch) /* else it knows what it allotted */
        p->stale = f->stale;
    p->epoch = h->epoch;
    p->credit = h->credit;
    p->seq = p->acked = 0;
    p->heard_ns = bh_mono_ns();
    note(f,
         h->observer ? "Observer asked for the whole state" : "Scheduler asked for the whole state",
         p);
}

/* Number 0 is a gap for everybody: who hears of it asks for everything. */
static void tell_gap(struct bh_feed *f, const struct bh_peer *id)
{
    Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;

    b.has_seq = 1;
    e.feed_batch = &b;
    (void)bh_bus_send(f->bus, id, &e);
}

static void on_ack(struct bh_feed *f, const struct bh_peer *id, const Berth__FeedAck *a)
{
    struct bh_feed_peer *p = find_peer(f, id);
    if (!p) { /* from before our start, or dropped */
        tell_gap(f, id);
        return;
    }
    p->heard_ns = bh_mono_ns();
    if (a->seq > p->seq) /* of an earlier feed, sent before our FeedBegin arrived */
        return;
    if (a->seq > p->acked)
        p->moved_ns = p->heard_ns;
    p->acked = BH_MAX(p->acked, a->seq);
    if (a->has_credit && a->credit)
        p->credit = a->credit;
    if (!p->observer) {
        f->turns += a->ready;
        if (a->ready && a->binder_progress != p->binder_progress) {
            f->binder_turns++;
            p->binder_progress = a->binder_progress;
        }
        if (!f->leads || a->leaving)
            f->quiet_term = a->quiet_term;
        if (a->leaving)
            drop(f, p, "Scheduler left");
    }
}

bool bh_feed_receive(void *feed)
{
    struct bh_feed *f = feed;
    struct bh_peer id;
    Berth__Envelope *e = NULL;

    for (unsigned i = 0; i < BH_BUS_BURST; i++) {
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

/* ---- sending --------------------------------------------------------------------------------- */

static bool begin(struct bh_feed *f, struct bh_feed_peer *p)
{
    Berth__FeedBegin b = BERTH__FEED_BEGIN__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    b.has_incarnation = 1;
    b.incarnation = f->incarnation;
    e.feed_begin = &b;
    return p->begun = tell(f, p, &e);
}

static char *text(const char *s)
{
    return *s ? (char *)(uintptr_t)s : NULL;
}

/* One of the two lists a peer may read; a batch comes from one of them. */
struct source {
    struct bh_objects *objects;
    unsigned reader;
    bool raw;
};

/* What it acts on first, what it only looks at after that: BOUND before the pod's object. */
static struct source source_of(struct bh_feed *f, const struct bh_feed_peer *p)
{
    bool known;
    if (p->raw_reader < 0 || bh_objects_peek(f->objects, (unsigned)p->reader, &known))
        return (struct source){f->objects, (unsigned)p->reader, false};
    return (struct source){&f->raw, (unsigned)p->raw_reader, true};
}

/* The message borrows the objects' bytes, so the reader moves on only after it is sent. Peeking
 * ahead needs no cursor of its own: the list is walked by hand. */
static size_t collect(const struct source *s, const struct bh_feed_peer *p,
                      Berth__ObjectChange *changes, Berth__ObjectChange **list, bool *ret_end)
{
    const unsigned reader = s->reader;
    size_t n = 0, bytes = 0;
    bool known = false;
    const struct bh_object *o = bh_objects_peek(s->objects, reader, &known);
    for (; o && n < BH_BUS_BATCH_ITEMS; o = TAILQ_NEXT(o, link)) {
        known = o->told >> reader & 1;
        if (bh_objects_passes(s->objects, reader, o))
            continue;
        if (n && bytes + o->bytes_n > BH_FEED_BATCH_BYTES)
            break;
        bytes += o->bytes_n;
        Berth__ObjectChange *c = &changes[n];
        berth__object_change__init(c);
        c->has_op = c->has_kind = c->has_log_pos = 1;
        c->op = o->state == BH_OBJ_BOUND     ? BERTH__CHANGE_OP__CHANGE_BOUND
                : o->state == BH_OBJ_DELETED ? BERTH__CHANGE_OP__CHANGE_DELETED
                : known                      ? BERTH__CHANGE_OP__CHANGE_MODIFIED
                                             : BERTH__CHANGE_OP__CHANGE_ADDED;
        c->kind = o->kind < BH_KIND_CUSTOM ? (uint32_t)o->kind : p->watch[o->kind - BH_KIND_CUSTOM];
        c->namespace_ = text(o->ns);
        c->name = text(o->name);
        c->uid = text(o->uid);
        c->resource_version = text(o->rv);
        c->log_pos = o->log_pos;
        c->has_in_list = c->in_list = !p->synced;
        if (o->state == BH_OBJ_LIVE) {
            c->has_object = 1;
            c->object = (ProtobufCBinaryData){o->bytes_n, (uint8_t *)(uintptr_t)o->bytes};
        }
        changes[n].has_raw = changes[n].raw = s->raw;
        list[n] = &changes[n];
        n++;
    }
    *ret_end = o == NULL;
    return n;
}

/* Fills states and list with what the peer has not been told of its kinds; returns how many. They go
 * behind every object of theirs. */
static size_t collect_states(const struct bh_feed *f, const struct bh_feed_peer *p,
                             Berth__WatchState *states, Berth__WatchState **list)
{
    size_t n = 0;

    for (unsigned i = 0; i < BH_PLUGIN_KINDS && p->states_told != f->kinds_version; i++) {
        if (!number_of(f, p, i) ||
            (!f->kinds[i].usable && !*f->kinds[i].trouble)) /* nothing is known */
            continue;
        berth__watch_state__init(&states[n]);
        states[n].has_kind = states[n].has_usable = 1;
        states[n].kind = number_of(f, p, i);
        states[n].usable = f->kinds[i].usable;
        states[n].trouble = text(f->kinds[i].trouble);
        list[n] = &states[n];
        n++;
    }
    return n;
}

static bool send_batch(struct bh_feed *f, struct bh_feed_peer *p)
{
    Berth__WatchState states[BH_PLUGIN_KINDS], *state_list[BH_PLUGIN_KINDS];
    static Berth__ObjectChange changes[BH_BUS_BATCH_ITEMS]; /* too large for the stack */
    static Berth__ObjectChange *list[BH_BUS_BATCH_ITEMS];
    Berth__FeedBatch b = BERTH__FEED_BATCH__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT;
    const struct source s = source_of(f, p);
    bool at_end = false;

    b.n_change = collect(&s, p, changes, list, &at_end);
    bool complete =
        f->synced && !p->stale && !(p->raw & f->raw_missing) && (s.raw || p->raw_reader < 0);
    bool completes = at_end && complete && kinds_settled(f, p) && !p->synced;
    b.n_watch = at_end ? collect_states(f, p, states, state_list) : 0;
    b.watch = state_list;
    if (b.n_change == 0 && !completes && !b.n_watch)
        return false;
    b.change = list;
    b.has_seq = 1;
    b.seq = p->seq + 1;
    b.has_synced = completes;
    b.synced = completes;
    e.feed_batch = &b;
    if (!tell(f, p, &e))
        return false;
    p->seq++;
    p->moved_ns = bh_mono_ns();
    if (at_end)
        p->states_told = f->kinds_version;
    p->synced = p->synced || completes;
    f->stats.batches++;
    f->stats.changes += b.n_change;
    for (size_t i = 0; i < b.n_change; i++) {
        bool known;
        bh_objects_peek(s.objects, s.reader, &known);
        bh_objects_advance(s.objects, s.reader);
    }
    return true;
}

void bh_feed_flush(struct bh_feed *f)
{
    f->flushed_changes = f->objects->changes + f->raw.changes;
    f->flushed_bound = f->objects->bound + f->raw.bound;
    f->bound_since_ns = 0;
    f->unfinished = false;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        bool known;
        if (p->used && !p->begun)
            begin(f, p);
        while (p->used && p->begun && p->seq - p->acked < p->credit && send_batch(f, p))
            ;
        f->unfinished |=
            p->used &&
            (!p->begun || !p->synced || bh_objects_peek(f->objects, (unsigned)p->reader, &known) ||
             (p->raw_reader >= 0 && bh_objects_peek(&f->raw, (unsigned)p->raw_reader, &known)));
    }
}

uint64_t bh_feed_wait(struct bh_feed *f)
{
    const uint64_t changes = f->objects->changes + f->raw.changes;
    const uint64_t bound = f->objects->bound + f->raw.bound;

    if (f->unfinished || changes != f->flushed_changes)
        return 0;
    if (bound == f->flushed_bound)
        return UINT64_MAX;
    if (!f->bound_since_ns)
        f->bound_since_ns = bh_mono_ns();
    uint64_t waited = bh_mono_ns() - f->bound_since_ns;
    return waited < BH_FEED_BOUND_NS ? BH_FEED_BOUND_NS - waited : 0;
}

void bh_feed_tick(struct bh_feed *f, uint64_t now_ns)
{
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++) {
        struct bh_feed_peer *p = &f->peers[i];
        if (p->used && now_ns - p->heard_ns > BH_FEED_SILENT_NS)
            drop(f, p,
                 p->observer ? "Observer is silent, dropping it"
                             : "Scheduler is silent, dropping it");
        if (p->used && p->acked < p->seq && p->heard_ns > p->moved_ns + BH_FEED_LOST_NS) {
            p->moved_ns = p->heard_ns;
            tell_gap(f, &p->id);
        }
    }
    look_for(f, false);
}

uint64_t bh_feed_unacked(const struct bh_feed *f)
{
    uint64_t most = 0;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->peers); i++)
        if (f->peers[i].used && !f->peers[i].observer)
            most = BH_MAX(most, f->peers[i].seq - f->peers[i].acked);
    return most;
}
