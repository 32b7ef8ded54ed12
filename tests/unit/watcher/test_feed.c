/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/watcher/test_feed.c - schedulers and the watcher's feed: credit, gaps, drops
 */
#include "watcher/feed.h"
#include "tests/unit/harness.h"

#include <poll.h>

#define DEADLINE_NS (UINT64_C(120) * 1000000000)

struct env {
    struct bh_objects objects;
    struct bh_feed feed;
    struct bh_bus *dealer;
    struct bh_arena arena;
    char *endpoint;
    unsigned notes;
    uint32_t raw; /* as told last */
};

static void on_note(void *arg, const char *what, const struct bh_feed_peer *p)
{
    (void)what, (void)p;
    ++*(unsigned *)arg;
}

static void setup(struct env *e)
{
    static unsigned n;
    struct bh_bus *router = NULL;
    struct bh_err err = {""};
    *e = (struct env){.endpoint = bh_asprintf("ipc://%s/f%u.sock", bh_test_tmpdir(), n++)};
    bh_objects_init(&e->objects);
    bh_arena_init(&e->arena, 0);
    CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, e->endpoint, NULL, &router, &err), 0);
    CU_ASSERT_EQUAL_FATAL(
        bh_bus_open(BH_BUS_DEALER_CONNECT, e->endpoint, "sched-1", &e->dealer, &err), 0);
    bh_feed_init(&e->feed, router, &e->objects);
    e->feed.incarnation = 77;
    e->feed.on_note = on_note;
    e->feed.arg = &e->notes;
}

static void teardown(struct env *e)
{
    bh_bus_close(e->dealer);
    bh_feed_fini(&e->feed);
    bh_objects_fini(&e->objects);
    bh_arena_fini(&e->arena);
    free(e->endpoint);
}

static void put(struct env *e, int i, size_t bytes)
{
    static char block[3 << 20];
    char name[16];
    snprintf(name, sizeof(name), "p%d", i);
    const struct bh_object_key k = {BH_KIND_POD, "ns", name, name, "1"};
    bh_objects_put(&e->objects, &k, block, bytes, (uint64_t)i);
}

static void say_hello_for(struct env *e, uint32_t credit, bool observer, uint32_t raw)
{
    Berth__FeedHello h = BERTH__FEED_HELLO__INIT;
    Berth__Envelope m = BERTH__ENVELOPE__INIT;
    h.has_epoch = h.has_credit = 1;
    h.epoch = 5;
    h.credit = credit;
    h.has_observer = h.observer = observer;
    h.has_raw = raw != 0;
    h.raw = raw;
    m.feed_hello = &h;
    CU_ASSERT_EQUAL(bh_bus_send(e->dealer, NULL, &m), BH_BUS_OK);
}

static void say_hello_as(struct env *e, uint32_t credit, bool observer)
{
    say_hello_for(e, credit, observer, 0);
}

static void say_hello(struct env *e, uint32_t credit)
{
    say_hello_as(e, credit, false);
}

static void say_quiet(struct env *e, uint64_t seq, uint64_t term, bool leaving)
{
    Berth__FeedAck a = BERTH__FEED_ACK__INIT;
    Berth__Envelope m = BERTH__ENVELOPE__INIT;
    a.has_seq = a.has_quiet_term = a.has_leaving = 1;
    a.seq = seq;
    a.quiet_term = term;
    a.leaving = leaving;
    m.feed_ack = &a;
    CU_ASSERT_EQUAL(bh_bus_send(e->dealer, NULL, &m), BH_BUS_OK);
}

static void say_ack(struct env *e, uint64_t seq)
{
    say_quiet(e, seq, 0, false);
}

/* The next message for the scheduler while the watcher's side turns; NULL after `quiet_ns`. */
static Berth__Envelope *next(struct env *e, uint64_t quiet_ns)
{
    Berth__Envelope *m = NULL;
    for (uint64_t until = bh_mono_ns() + quiet_ns; bh_mono_ns() < until; poll(NULL, 0, 1)) {
        bh_feed_receive(&e->feed);
        bh_feed_flush(&e->feed);
        bh_arena_reset(&e->arena);
        if (bh_bus_recv(e->dealer, &e->arena, NULL, &m) == BH_BUS_OK)
            return m;
    }
    return NULL;
}

static const Berth__FeedBatch *next_batch(struct env *e)
{
    Berth__Envelope *m = next(e, DEADLINE_NS);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m->feed_batch);
    return m->feed_batch;
}

static void expect_begin(struct env *e)
{
    Berth__Envelope *m = next(e, DEADLINE_NS);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m->feed_begin);
    CU_ASSERT_EQUAL(m->feed_begin->incarnation, 77);
}

/* FeedBegin, with or without a reason why there is no feed. */
static void expect_answer(struct env *e, bool refused)
{
    Berth__Envelope *m = next(e, DEADLINE_NS);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m->feed_begin);
    CU_ASSERT_EQUAL(m->feed_begin->refused != NULL, refused);
}

static void expect_quiet(struct env *e)
{
    CU_ASSERT_PTR_NULL(next(e, 30 * 1000000));
}

static void test_state_and_changes(void)
{
    struct env e;
    setup(&e);
    put(&e, 1, 10);
    say_hello(&e, 8);
    expect_begin(&e);
    const Berth__FeedBatch *b = next_batch(&e);
    CU_ASSERT_EQUAL(b->seq, 1);
    CU_ASSERT_EQUAL(b->n_change, 1);
    CU_ASSERT_EQUAL(b->change[0]->op, BERTH__CHANGE_OP__CHANGE_ADDED);
    CU_ASSERT(b->change[0]->in_list);
    CU_ASSERT_EQUAL(b->change[0]->object.len, 10);
    CU_ASSERT_EQUAL(b->change[0]->log_pos, 1);
    CU_ASSERT(!b->synced);
    expect_quiet(&e);

    e.feed.synced = true; /* everything is listed now */
    b = next_batch(&e);
    CU_ASSERT_EQUAL(b->seq, 2);
    CU_ASSERT_EQUAL(b->n_change, 0);
    CU_ASSERT(b->synced);
    expect_quiet(&e);

    put(&e, 1, 20);
    put(&e, 2, 5);
    b = next_batch(&e);
    CU_ASSERT_EQUAL(b->n_change, 2);
    CU_ASSERT_EQUAL(b->change[0]->op, BERTH__CHANGE_OP__CHANGE_MODIFIED);
    CU_ASSERT_EQUAL(b->change[1]->op, BERTH__CHANGE_OP__CHANGE_ADDED);
    CU_ASSERT(!b->change[1]->in_list);
    CU_ASSERT(!b->synced); /* said once */

    const struct bh_object_key k = {BH_KIND_POD, "ns", "p1", "p1", "9"};
    bh_objects_end(&e.objects, &k, BH_OBJ_BOUND, 99);
    b = next_batch(&e);
    CU_ASSERT_EQUAL(b->change[0]->op, BERTH__CHANGE_OP__CHANGE_BOUND);
    CU_ASSERT_EQUAL(b->change[0]->log_pos, 99);
    CU_ASSERT(!b->change[0]->has_object);
    teardown(&e);
}

static void test_credit(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    for (int i = 0; i < 2000; i++)
        put(&e, i, 10);
    say_hello(&e, 2);
    expect_begin(&e);
    CU_ASSERT_EQUAL(next_batch(&e)->n_change, BH_BUS_BATCH_ITEMS);
    CU_ASSERT_EQUAL(next_batch(&e)->seq, 2);
    expect_quiet(&e); /* two are under way */
    CU_ASSERT_EQUAL(bh_feed_unacked(&e.feed), 2);
    say_ack(&e, 1);
    CU_ASSERT_EQUAL(next_batch(&e)->seq, 3);
    expect_quiet(&e);
    for (int i = 0; i < 2000; i++)
        put(&e, i, 20); /* what was not sent yet comes in its newest version only */
    say_ack(&e, 3);
    size_t n = 0;
    for (uint64_t seq = 4; n < 2000; seq++) {
        const Berth__FeedBatch *b = next_batch(&e);
        CU_ASSERT_EQUAL(b->seq, seq);
        n += b->n_change;
        for (size_t i = 0; i < b->n_change; i++)
            CU_ASSERT_EQUAL(b->change[i]->object.len, 20);
        say_ack(&e, seq);
    }
    CU_ASSERT_EQUAL(n, 2000);
    say_ack(&e, 1);          /* old, ignored */
    say_ack(&e, UINT64_MAX); /* of the future, ignored */
    expect_quiet(&e);
    CU_ASSERT(bh_feed_unacked(&e.feed) < 10);
    teardown(&e);
}

static void test_large_objects(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    for (int i = 0; i < 6; i++)
        put(&e, i, 600 << 10);
    put(&e, 6, 3 << 20); /* above a batch's usual size, still one frame */
    say_hello(&e, 64);
    expect_begin(&e);
    size_t n = 0;
    while (n < 7) {
        const Berth__FeedBatch *b = next_batch(&e);
        CU_ASSERT(b->n_change >= 1 && b->n_change <= 2);
        n += b->n_change;
    }
    teardown(&e);
}

/* The scheduler before may have given devices away that are not seen as taken. */
static void test_who_comes_while_claims_are_stale(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    bh_feed_kind_stale(&e.feed, BH_KIND_RESOURCECLAIM, true);
    bh_feed_kind_stale(&e.feed, BH_KIND_PERSISTENTVOLUME, true);
    put(&e, 1, 10);
    say_hello(&e, 8);
    expect_begin(&e);
    CU_ASSERT(!next_batch(&e)->synced);
    expect_quiet(&e);
    bh_feed_kind_stale(&e.feed, BH_KIND_RESOURCECLAIM, false);
    expect_quiet(&e);
    bh_feed_kind_stale(&e.feed, BH_KIND_RESOURCECLAIM, true); /* read anew meanwhile */
    bh_feed_kind_stale(&e.feed, BH_KIND_PERSISTENTVOLUME, false);
    CU_ASSERT(next_batch(&e)->synced);
    say_hello(&e, 8); /* the same scheduler: it knows what it gave */
    expect_begin(&e);
    CU_ASSERT(next_batch(&e)->synced);
    teardown(&e);
}

static void test_hello_again(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    put(&e, 1, 10);
    say_hello(&e, 8);
    expect_begin(&e);
    CU_ASSERT_EQUAL(next_batch(&e)->n_change, 1);
    say_hello(&e, 8);
    expect_begin(&e);
    const Berth__FeedBatch *b = next_batch(&e);
    CU_ASSERT_EQUAL(b->seq, 1); /* from the start */
    CU_ASSERT_EQUAL(b->n_change, 1);
    CU_ASSERT_EQUAL(b->change[0]->op, BERTH__CHANGE_OP__CHANGE_ADDED);
    CU_ASSERT(b->synced);
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), 1);
    teardown(&e);
}

static void test_stranger(void)
{
    struct env e;
    setup(&e);
    put(&e, 1, 10);
    say_ack(&e, 17); /* we restarted, it did not notice */
    const Berth__FeedBatch *b = next_batch(&e);
    CU_ASSERT_EQUAL(b->seq, 0); /* never the successor of anything: a gap */
    CU_ASSERT_EQUAL(b->n_change, 0);
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), 0);
    teardown(&e);
}

/* The last batch was lost with a connection, and nothing comes after it that would show the gap. */
static void test_lost_and_quiet(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    put(&e, 1, 10);
    say_hello(&e, 8);
    expect_begin(&e);
    next_batch(&e);
    struct bh_feed_peer *p = &e.feed.peers[0];
    CU_ASSERT_FATAL(p->used && p->seq == 1);
    p->moved_ns = bh_mono_ns() - BH_FEED_LOST_NS - 1;
    bh_feed_tick(&e.feed, bh_mono_ns()); /* it has not said anything since: it may be busy */
    CU_ASSERT_PTR_NULL(next(&e, 20000000));
    p->moved_ns -= 1000000000;
    say_ack(&e, 0);
    for (uint64_t heard = p->heard_ns; p->heard_ns == heard; poll(NULL, 0, 1))
        bh_feed_receive(&e.feed);
    bh_feed_tick(&e.feed, bh_mono_ns());
    const Berth__FeedBatch *b = next_batch(&e);
    CU_ASSERT(b->seq == 0 && b->n_change == 0);
    bh_feed_tick(&e.feed, bh_mono_ns()); /* once */
    CU_ASSERT_PTR_NULL(next(&e, 20000000));
    say_hello(&e, 8);
    expect_begin(&e);
    CU_ASSERT_EQUAL(next_batch(&e)->n_change, 1);
    p->moved_ns = bh_mono_ns() - BH_FEED_LOST_NS - 1000000000;
    say_ack(&e, 1);
    for (uint64_t acked = 0; p->acked == acked; poll(NULL, 0, 1))
        bh_feed_receive(&e.feed);
    bh_feed_tick(&e.feed, bh_mono_ns()); /* it has all that there is */
    CU_ASSERT_PTR_NULL(next(&e, 20000000));
    teardown(&e);
}

static void test_silent_and_gone(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    put(&e, 1, 10);
    say_hello(&e, 8);
    expect_begin(&e);
    next_batch(&e);
    bh_feed_tick(&e.feed, bh_mono_ns());
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), 1);
    const struct bh_object_key k = {BH_KIND_POD, "ns", "p1", "p1", "9"};
    bh_objects_end(&e.objects, &k, BH_OBJ_DELETED, 1);
    CU_ASSERT_EQUAL(e.objects.tombs, 1);
    bh_feed_tick(&e.feed, bh_mono_ns() + BH_FEED_SILENT_NS + 1000000000);
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), 0);
    CU_ASSERT_EQUAL(e.objects.tombs, 0); /* nothing is kept for it */
    say_ack(&e, 1);                      /* it wakes up: a gap tells it */
    CU_ASSERT_EQUAL(next_batch(&e)->seq, 0);

    say_hello(&e, 1 << 20); /* batches may go out until the bus has noticed */
    expect_begin(&e);
    next_batch(&e);
    bh_bus_close(e.dealer); /* killed */
    e.dealer = NULL;
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS;
         bh_feed_peers(&e.feed) && bh_mono_ns() < until; poll(NULL, 0, 1)) {
        put(&e, 2, 5);
        bh_feed_flush(&e.feed);
    }
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), 0);
    teardown(&e);
}

/* ---- kinds that plugins read ---- */

static void say_hello_watching(struct env *e, const char *resource, uint32_t number)
{
    Berth__FeedHello h = BERTH__FEED_HELLO__INIT;
    Berth__WatchKind w = BERTH__WATCH_KIND__INIT, *list[] = {&w};
    Berth__Envelope m = BERTH__ENVELOPE__INIT;
    char group[] = "x.io", version[] = "v1";
    h.has_epoch = h.has_credit = 1;
    h.epoch = 5;
    h.credit = 8;
    if (resource) {
        w.has_kind = 1;
        w.kind = number;
        w.group = group;
        w.version = version;
        w.resource = (char *)(uintptr_t)resource;
        h.n_watch = 1;
        h.watch = list;
    }
    m.feed_hello = &h;
    CU_ASSERT_EQUAL(bh_bus_send(e->dealer, NULL, &m), BH_BUS_OK);
}

static struct {
    unsigned begun, ended;
    char name[32];
} watched;

static void on_watch(void *arg, unsigned i, bool wanted)
{
    const struct bh_feed *f = arg;

    *(wanted ? &watched.begun : &watched.ended) += 1;
    snprintf(watched.name, sizeof(watched.name), "%s", f->kinds[i].info.kind_name);
}

static void put_custom(struct env *e, unsigned kind, const char *name)
{
    const struct bh_object_key k = {(enum bh_kind)kind, "", name, name, "1"};
    bh_objects_put(&e->objects, &k, "x", 1, 1);
}

static void test_watched_kinds(void)
{
    struct env e;
    const unsigned number = BH_KIND_CUSTOM + 7; /* the scheduler's own */
    setup(&e);
    e.feed.on_watch = on_watch;
    e.feed.arg = &e.feed;
    e.feed.on_note = NULL;
    e.feed.synced = true;
    watched.begun = watched.ended = 0;
    say_hello_watching(&e, "others", number);
    expect_begin(&e);
    expect_quiet(&e); /* not synced: nothing is known of the kind */
    CU_ASSERT(watched.begun == 1 && watched.ended == 0);
    CU_ASSERT_STRING_EQUAL(watched.name, "others.x.io");
    put_custom(&e, BH_KIND_CUSTOM, "a");
    put_custom(&e, BH_KIND_CUSTOM + 1, "b"); /* another one's */
    const Berth__FeedBatch *b = next_batch(&e);
    CU_ASSERT_FATAL(b->n_change == 1 && b->n_watch == 0 && !b->synced);
    CU_ASSERT_EQUAL(b->change[0]->kind, number);
    bh_feed_kind_state(&e.feed, 0, true, "");
    b = next_batch(&e);
    CU_ASSERT_FATAL(b->n_change == 0 && b->n_watch == 1 && b->synced);
    CU_ASSERT(b->watch[0]->kind == number && b->watch[0]->usable && !b->watch[0]->trouble);
    bh_feed_kind_state(&e.feed, 0, false, "no rights");
    put_custom(&e, BH_KIND_CUSTOM, "c");
    b = next_batch(&e); /* behind all objects */
    CU_ASSERT_FATAL(b->n_change == 1 && b->n_watch == 1);
    CU_ASSERT(!b->watch[0]->usable);
    CU_ASSERT_STRING_EQUAL(b->watch[0]->trouble, "no rights");
    bh_feed_kind_state(&e.feed, 0, false, "no rights");
    expect_quiet(&e);

    /* Again, as a new scheduler: the kind stays watched, and its trouble holds nothing up. */
    say_hello_watching(&e, "others", number);
    expect_begin(&e);
    b = next_batch(&e);
    CU_ASSERT(b->n_change == 2 && b->n_watch == 1 && b->synced);
    CU_ASSERT(watched.begun == 1 && watched.ended == 0);
    /* Without it. */
    say_hello_watching(&e, NULL, 0);
    expect_begin(&e);
    b = next_batch(&e);
    CU_ASSERT(b->n_change == 0 && b->n_watch == 0 && b->synced);
    CU_ASSERT(watched.ended == 1 && e.objects.live[BH_KIND_CUSTOM] == 0);
    CU_ASSERT(e.objects.live[BH_KIND_CUSTOM + 1] == 1);
    teardown(&e);
}

static void test_too_many(void)
{
    struct env e;
    struct bh_bus *more[BH_OBJECTS_READERS + 1];
    setup(&e);
    bh_bus_close(e.dealer);
    for (size_t i = 0; i < BH_ARRAY_LEN(more); i++) {
        char id[16];
        struct bh_err err;
        snprintf(id, sizeof(id), "s%zu", i);
        CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_DEALER_CONNECT, e.endpoint, id, &more[i], &err),
                              0);
        e.dealer = more[i];
        say_hello(&e, 4);
    }
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS;
         e.feed.stats.hellos < BH_ARRAY_LEN(more) && bh_mono_ns() < until; poll(NULL, 0, 1)) {
        bh_feed_receive(&e.feed);
        bh_feed_flush(&e.feed);
    }
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), BH_OBJECTS_READERS);
    CU_ASSERT_EQUAL(e.feed.stats.refused, 1);
    for (size_t i = 0; i + 1 < BH_ARRAY_LEN(more); i++)
        bh_bus_close(more[i]);
    teardown(&e);
}

/* One that is killed as often as it starts, in a cluster where nothing happens, takes no places. */
static void test_killed_schedulers_leave_their_places(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    for (size_t i = 0; i <= BH_OBJECTS_READERS; i++) {
        char id[16];
        struct bh_err err;
        bh_bus_close(e.dealer);
        snprintf(id, sizeof(id), "k%zu", i);
        CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_DEALER_CONNECT, e.endpoint, id, &e.dealer, &err),
                              0);
        Berth__Envelope *m = NULL; /* it repeats its hello, as a scheduler does */
        for (uint64_t until = bh_mono_ns() + DEADLINE_NS; !m && bh_mono_ns() < until;) {
            say_hello(&e, 8);
            m = next(&e, DEADLINE_NS / 100);
        }
        CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    }
    teardown(&e);
}

static void test_observers_count_for_nothing(void)
{
    struct env e;
    setup(&e);
    e.feed.synced = true;
    put(&e, 1, 10);
    say_hello_as(&e, 8, true);
    expect_begin(&e);
    const Berth__FeedBatch *b = next_batch(&e); /* fed like a scheduler */
    CU_ASSERT_EQUAL(b->n_change, 1);
    CU_ASSERT(b->synced);
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), 0);
    CU_ASSERT_EQUAL(bh_feed_observers(&e.feed), 1);
    CU_ASSERT_EQUAL(bh_feed_unacked(&e.feed), 0);

    bh_feed_tick(&e.feed, bh_mono_ns()); /* is it there? */
    Berth__Envelope *m = next(&e, DEADLINE_NS);
    CU_ASSERT_PTR_NOT_NULL_FATAL(m);
    CU_ASSERT_PTR_NOT_NULL(m->heartbeat);
    CU_ASSERT_EQUAL(bh_feed_observers(&e.feed), 1);
    bh_bus_close(e.dealer); /* killed: the next look finds out, although there is no news for it */
    e.dealer = NULL;
    for (uint64_t until = bh_mono_ns() + DEADLINE_NS;
         bh_feed_observers(&e.feed) && bh_mono_ns() < until; poll(NULL, 0, 1))
        bh_feed_tick(&e.feed, bh_mono_ns());
    CU_ASSERT_EQUAL(bh_feed_observers(&e.feed), 0);
    CU_ASSERT_EQUAL(e.feed.stats.dropped, 0); /* no scheduler went away */
    teardown(&e);
}

static void test_observers_leave_places_for_schedulers(void)
{
    struct env e;
    struct bh_bus *more[BH_FEED_OBSERVERS + 2]; /* one too many, and a scheduler */
    setup(&e);
    bh_bus_close(e.dealer);
    for (size_t i = 0; i < BH_ARRAY_LEN(more); i++) {
        char id[16];
        struct bh_err err;
        snprintf(id, sizeof(id), "o%zu", i);
        CU_ASSERT_EQUAL_FATAL(bh_bus_open(BH_BUS_DEALER_CONNECT, e.endpoint, id, &more[i], &err),
                              0);
        e.dealer = more[i];
        say_hello_as(&e, 4, i <= BH_FEED_OBSERVERS);
        expect_answer(&e, i == BH_FEED_OBSERVERS);
    }
    CU_ASSERT_EQUAL(bh_feed_observers(&e.feed), BH_FEED_OBSERVERS);
    CU_ASSERT_EQUAL(bh_feed_peers(&e.feed), 1);
    CU_ASSERT_EQUAL(e.feed.stats.refused, 1);
    for (size_t i = 0; i + 1 < BH_ARRAY_LEN(more); i++)
        bh_bus_close(more[i]);
    teardown(&e);
}

static void on_raw(void *arg, uint32_t wanted)
{
    ((struct env *)((char *)arg - offsetof(struct env, notes)))->raw = wanted;
}

static void put_raw(struct env *e, enum bh_kind kind, const char *name, uint64_t pos)
{
    const struct bh_object_key k = {kind, "", name, name, "1"};
    bh_objects_put(&e->feed.raw, &k, "x", 1, pos);
}

static void test_whole_objects(void)
{
    struct env e;
    const Berth__FeedBatch *b;
    setup(&e);
    e.feed.on_raw = on_raw;
    e.feed.synced = true;
    put(&e, 1, 10);
    say_hello_for(&e, 8, false, 1);
    expect_begin(&e);
    CU_ASSERT_EQUAL(e.raw, 1);
    b = next_batch(&e); /* what there is; not all, because nodes have to be listed once more */
    CU_ASSERT_EQUAL(b->n_change, 1);
    CU_ASSERT(!b->change[0]->raw && !b->synced);
    expect_quiet(&e);
    put_raw(&e, BH_KIND_NODE, "n1", 5);
    put(&e, 2, 10);
    b = next_batch(&e); /* first what is acted on */
    CU_ASSERT_EQUAL(b->n_change, 1);
    CU_ASSERT(!b->change[0]->raw && !b->synced);
    b = next_batch(&e);
    CU_ASSERT_EQUAL(b->n_change, 1);
    CU_ASSERT(b->change[0]->raw && b->change[0]->in_list && !b->synced);
    CU_ASSERT_EQUAL(b->change[0]->kind, BH_KIND_NODE);
    CU_ASSERT_EQUAL(b->change[0]->log_pos, 5);
    e.feed.raw_missing = 0;
    CU_ASSERT(next_batch(&e)->synced);

    const struct bh_object_key n1 = {BH_KIND_NODE, "", "n1", "n1", "2"};
    bh_objects_end(&e.feed.raw, &n1, BH_OBJ_DELETED, 6);
    b = next_batch(&e);
    CU_ASSERT(b->change[0]->raw && b->change[0]->op == BERTH__CHANGE_OP__CHANGE_DELETED);

    /* it says hello again and wants more; then it wants nothing any more */
    say_hello_for(&e, 8, false, 3);
    expect_begin(&e);
    CU_ASSERT_EQUAL(e.raw, 3);
    CU_ASSERT_EQUAL(e.feed.raw_missing, 2);
    put_raw(&e, BH_KIND_POD, "p", 7);
    CU_ASSERT_EQUAL(next_batch(&e)->n_change, 2);
    CU_ASSERT(next_batch(&e)->change[0]->raw);
    say_hello(&e, 8);
    expect_begin(&e);
    CU_ASSERT_EQUAL(e.raw, 0);
    CU_ASSERT_EQUAL(e.feed.raw.live[BH_KIND_POD], 0);
    b = next_batch(&e);
    CU_ASSERT(b->n_change == 2 && b->synced);
    expect_quiet(&e);
    teardown(&e);
}

/* That a pod has its node is in the snapshot already: it goes with the next thing, or a bit
 * later. */
static void test_bound_pods_wait_for_company(void)
{
    const struct bh_object_key k = {BH_KIND_POD, "ns", "p1", "p1", "2"};
    struct env e;
    const Berth__FeedBatch *b;

    setup(&e);
    e.feed.synced = true;
    put(&e, 1, 10);
    CU_ASSERT_EQUAL(bh_feed_wait(&e.feed), 0);
    say_hello(&e, 8);
    expect_begin(&e);
    CU_ASSERT_TRUE(next_batch(&e)->synced);
    expect_quiet(&e);
    CU_ASSERT_EQUAL(bh_feed_wait(&e.feed), UINT64_MAX);
    CU_ASSERT_TRUE(bh_objects_end(&e.objects, &k, BH_OBJ_BOUND, 2));
    uint64_t wait = bh_feed_wait(&e.feed);
    CU_ASSERT(wait > 0 && wait <= BH_FEED_BOUND_NS);
    put(&e, 2, 10);
    CU_ASSERT_EQUAL(bh_feed_wait(&e.feed), 0);
    b = next_batch(&e);
    CU_ASSERT(b->n_change == 2 && b->change[0]->op == BERTH__CHANGE_OP__CHANGE_BOUND);
    expect_quiet(&e);
    CU_ASSERT_EQUAL(bh_feed_wait(&e.feed), UINT64_MAX);
    teardown(&e);
}

/* That nothing of a term is on the wire may have been said before the host took the lease back under it. */
static void test_quiet_while_leading(void)
{
    static const struct {
        bool leads, leaving;
        uint64_t quiet_term;
    } rows[] = {{false, false, 7}, {true, false, 0}, {true, true, 7}};
    struct env e;

    setup(&e);
    e.feed.synced = true;
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        say_hello(&e, 8);
        expect_begin(&e);
        next_batch(&e);
        struct bh_feed_peer *p = &e.feed.peers[0];
        CU_ASSERT(p->used && e.feed.quiet_term == 0);
        e.feed.leads = rows[i].leads;
        say_quiet(&e, 1, 7, rows[i].leaving);
        while (p->used && !p->acked)
            bh_feed_receive(&e.feed);
        CU_ASSERT_EQUAL(e.feed.quiet_term, rows[i].quiet_term);
    }
    teardown(&e);
}

BH_TESTS("watcher/feed", {"bound pods wait for company", test_bound_pods_wait_for_company},
         {"whole objects for those who want them", test_whole_objects},
         {"the whole state, then each change", test_state_and_changes},
         {"never more batches under way than credit", test_credit},
         {"large objects travel in few or alone", test_large_objects},
         {"hello again starts from nothing", test_hello_again},
         {"who comes while claims are stale waits", test_who_comes_while_claims_are_stale},
         {"who is not known gets a gap", test_stranger},
         {"a batch that was lost in a quiet cluster", test_lost_and_quiet},
         {"a silent scheduler is dropped, a killed one noticed", test_silent_and_gone},
         {"kinds that plugins read", test_watched_kinds},
         {"more schedulers than places are refused", test_too_many},
         {"killed schedulers leave their places", test_killed_schedulers_leave_their_places},
         {"observers are fed and count for nothing", test_observers_count_for_nothing},
         {"observers leave places for schedulers", test_observers_leave_places_for_schedulers},
         {"quiet is who leaves, while the host leads", test_quiet_while_leading})
