/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/daemon/test_ledger.c - work items, binders that come, go and fall silent
 *
 * The wire is real: a ROUTER of ours and DEALERs as binders over ipc.
 */
#include "scheduler/cache/write.h"
#include "scheduler/daemon/ledger.h"
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/harness.h"

static struct bh_pods pods; /* empty when no ledger is left */

static struct bh_pod_state *vip(void) /* held */
{
    return bh_pods_hold(&pods, BH_STR("vip"));
}

static bool evicts(const char *uid)
{
    const struct bh_pod_state *s = bh_pods_find(&pods, bh_str_c(uid));

    return s && bh_pod_evicts(s);
}

static struct bh_work *bind_of(const char *uid)
{
    const struct bh_pod_state *s = bh_pods_find(&pods, bh_str_c(uid));

    return s ? s->bind : NULL;
}

static void ledger_free(struct bh_ledger *l)
{
    bh_ledger_free(l);
    bh_pods_fini(&pods); /* nothing of it is held */
}

static struct bh_work *work(Berth__WorkKind kind, const char *uid)
{
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *s = bh_pods_hold(&pods, bh_str_c(uid));
    struct bh_work *w = bh_work_for(kind, BH_STR("ns"), BH_STR("pod"), s);

    if (kind == BERTH__WORK_KIND__WORK_BIND)
        w->item.node = bh_strdup("node-1");
    if (kind == BERTH__WORK_KIND__WORK_EVENT)
        bh_work_event(w, "Normal", "Scheduled", "", NULL, "", NULL);
    if (kind == BERTH__WORK_KIND__WORK_PATCH_STATUS)
        bh_work_condition(w, "PodScheduled", "False", "", bh_strdup("first"), 0, false);
    return w;
}

static void test_patches_of_one_pod_are_coalesced(void)
{
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_ledger_stats s;
    struct bh_work *a = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1"), *b;

    bh_work_nominate(a, "node-7");
    CU_ASSERT(bh_ledger_add(l, a));
    b = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1");
    CU_ASSERT(bh_ledger_add(l, b));
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.queued == 1);
    CU_ASSERT(b->item.set_nominated_node); /* what the older one wanted to write is not lost */
    CU_ASSERT_STRING_EQUAL(b->item.nominated_node, "node-7");
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u2")));
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.queued == 2);
    ledger_free(l);
}

static void test_evictions_are_known_by_their_preemptor(void)
{
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_work *w[2];

    for (int i = 0; i < 2; i++) {
        w[i] = work(BERTH__WORK_KIND__WORK_DELETE, i ? "v2" : "v1");
        w[i]->on_behalf = vip();
        CU_ASSERT(bh_ledger_add(l, w[i]));
    }
    CU_ASSERT(evicts("vip"));
    CU_ASSERT(!evicts("v1"));
    bh_ledger_retry(l, w[0]);
    bh_ledger_finish(l, w[0]);
    CU_ASSERT(evicts("vip"));
    bh_ledger_finish(l, w[1]);
    CU_ASSERT(!evicts("vip"));
    ledger_free(l);
}

static bool queued_id(struct bh_ledger *l, uint64_t id)
{
    return bh_ledger_find(l, id) != NULL;
}

static void count(void *arg, struct bh_work *w)
{
    (void)w;
    ++*(int *)arg;
}

/* v0 and v1 go at once, v2 when both are gone; it is spared when one could not be deleted. */
static void test_the_last_victim_waits_for_the_others(void)
{
    for (int refused = 0; refused < 3; refused++) {
        struct bh_ledger *l = bh_ledger_new(1);
        struct bh_work *w[3];
        uint64_t id;
        int n = 0;

        for (int i = 0; i < 3; i++) {
            w[i] = work(BERTH__WORK_KIND__WORK_DELETE, "v");
            w[i]->on_behalf = vip();
            w[i]->last = i == 2;
            CU_ASSERT(bh_ledger_add(l, w[i]));
        }
        id = w[2]->item.id;
        CU_ASSERT(w[2]->lane != w[1]->lane);
        if (refused == 2) { /* the term ends */
            CU_ASSERT(bh_ledger_recall(l, true, count, &n) == 3 && n == 3);
        } else {
            bh_ledger_finish(l, w[1]);
            CU_ASSERT(w[2]->lane != w[0]->lane);
            if (refused)
                bh_ledger_spare(l, w[0]->on_behalf);
            else
                bh_ledger_retry(l, w[0]);
            CU_ASSERT(queued_id(l, id) == !refused);
            bh_ledger_finish(l, w[0]);
            CU_ASSERT(evicts("vip") == !refused);
            if (!refused) {
                CU_ASSERT(w[2]->lane == 1);
                bh_ledger_finish(l, w[2]);
            }
        }
        CU_ASSERT(!queued_id(l, id));
        CU_ASSERT(!evicts("vip"));
        ledger_free(l);
    }
}

static bool is_u1(void *arg, const struct bh_work *w)
{
    (void)arg;
    return bh_streq(w->item.uid, "u1");
}

/* The record as a scheduler that starts now would read it: of a copy. */
static struct bh_inflight *copy_record(void)
{
    char from[300], dir[200], to[300];
    BH_CLEANUP(bh_freep) char *bytes = NULL;
    struct bh_inflight *f = NULL;
    struct bh_err err = {0};
    static unsigned n;
    size_t size = 0;

    snprintf(from, sizeof(from), "%s/scheduler/" BH_INFLIGHT_FILE, bh_test_tmpdir());
    snprintf(dir, sizeof(dir), "%s/copy%u", bh_test_tmpdir(), n++);
    CU_ASSERT_FATAL(mkdir(dir, 0700) == 0);
    snprintf(to, sizeof(to), "%s/scheduler", dir);
    CU_ASSERT_FATAL(mkdir(to, 0700) == 0);
    snprintf(to, sizeof(to), "%s/scheduler/" BH_INFLIGHT_FILE, dir);
    CU_ASSERT_FATAL(bh_read_file(from, 1 << 24, &bytes, &size) == 0);
    CU_ASSERT_FATAL(bh_write_file(to, bytes, size, 0600) == 0);
    CU_ASSERT_FATAL(bh_inflight_open(dir, &f, &err) == 0);
    CU_ASSERT(!bh_inflight_unknown(f));
    return f;
}

/* The slot-th entry of the record, from 0 on; 0: there are fewer. */
static uint32_t recorded(uint32_t at, uint64_t *ret_id, uint64_t *ret_until_ns)
{
    struct bh_inflight *f = copy_record();
    struct bh_inflight_item it = {.id = 0};
    uint32_t pos = 0, slot = 0;

    for (uint32_t i = 0; i <= at; i++)
        slot = bh_inflight_next(f, &pos, &it);
    *ret_id = it.id;
    *ret_until_ns = it.until_boot_ns;
    bh_inflight_close(f);
    return slot;
}

/* A bind that was answered, and that the watch has not shown. */
static void test_a_kept_bind_stays_until_it_is_ended_or_looked_at(void)
{
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_inflight *f = NULL;
    struct bh_err err = {0};
    struct bh_work *w[2];
    struct bh_ledger_stats s;
    uint64_t id, until_ns;

    CU_ASSERT_FATAL(bh_inflight_open(bh_test_tmpdir(), &f, &err) == 0);
    bh_ledger_record(l, f);
    for (int i = 0; i < 2; i++) {
        w[i] = work(BERTH__WORK_KIND__WORK_BIND, i ? "u2" : "u1");
        w[i]->outside = true;
        CU_ASSERT(bh_ledger_add(l, w[i]));
        CU_ASSERT(bh_ledger_next_outside(l) == w[i]); /* out: it stands in the record */
        CU_ASSERT(recorded((uint32_t)i, &id, &until_ns) == w[i]->slot && w[i]->slot);
    }
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1"))); /* parked */
    id = w[0]->item.id;
    bh_ledger_keep(l, w[0], 100);
    bh_ledger_keep(l, w[1], 200);
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.kept == 2 && s.binds == 0 && s.out == 0 && s.queued == 1); /* the patch goes on */
    CU_ASSERT(bind_of("u1") == w[0] && !queued_id(l, id));
    CU_ASSERT(bh_inflight_count(f) == 2);
    CU_ASSERT(bh_ledger_overdue(l, 99) == 0);
    CU_ASSERT(bh_ledger_overdue(l, 100) == 1);
    CU_ASSERT(w[0]->item.look && !w[0]->outside && w[0]->item.id != id && !w[1]->item.look);
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.kept == 1 && s.binds == 1);
    bh_ledger_keep(l, w[0], 300); /* it is there, still unseen */
    bh_ledger_bound_seen(l, w[0]);
    bh_ledger_stats(l, &s);
    CU_ASSERT_EQUAL(s.seen, 1);
    bh_ledger_end_kept(l, is_u1, NULL);
    bh_ledger_stats(l, &s);
    CU_ASSERT_EQUAL(s.seen, 0);
    CU_ASSERT(bind_of("u1") == NULL && bind_of("u2") == w[1]);
    CU_ASSERT(bh_inflight_count(f) == 1);
    bh_ledger_finish(l, w[1]);
    CU_ASSERT(bh_inflight_count(f) == 0);
    ledger_free(l);
    bh_inflight_close(f);
}

static void test_events_are_bounded_and_binds_are_not_dropped(void)
{
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_ledger_stats s;
    char uid[32];

    for (unsigned i = 0; i < BH_LEDGER_MAX_EVENTS + 10; i++)
        (void)bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_EVENT, "u"));
    for (unsigned i = 0; i < 100; i++) {
        snprintf(uid, sizeof(uid), "b%u", i);
        CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, uid)));
    }
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.dropped_events == 10);
    CU_ASSERT(s.queued == BH_LEDGER_MAX_EVENTS + 100);
    CU_ASSERT(s.binds == 100);
    CU_ASSERT(bind_of("b42") != NULL);
    CU_ASSERT(bind_of("nobody") == NULL);
    ledger_free(l);
}

struct wire {
    struct bh_bus *router, *dealer[2];
    struct bh_arena arena;
    struct bh_peer peer[2];
};

static bool receive(struct bh_bus *b, struct bh_arena *a, struct bh_peer *peer, Berth__Envelope **e)
{
    for (int i = 0; i < 2000; i++) {
        struct timespec ts = {.tv_nsec = 1000000};
        bh_arena_reset(a);
        if (bh_bus_recv(b, a, peer, e) == BH_BUS_OK)
            return true;
        nanosleep(&ts, NULL);
    }
    return false;
}

static void wire_open(struct wire *w)
{
    char endpoint[128];
    struct bh_err err = {0};
    Berth__BinderHello h = BERTH__BINDER_HELLO__INIT;
    Berth__Envelope e = BERTH__ENVELOPE__INIT, *got;
    char name[] = "host/1";

    bh_arena_init(&w->arena, 64u << 20);
    CU_ASSERT_FATAL(bh_bus_endpoint(bh_test_tmpdir(), "ledger", endpoint, &err) == 0);
    CU_ASSERT_FATAL(bh_bus_open(BH_BUS_ROUTER_BIND, endpoint, NULL, &w->router, &err) == 0);
    h.binder = name;
    h.has_window = h.has_epoch_seen = true;
    h.window = 8;
    e.binder_hello = &h;
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_FATAL(bh_bus_open(BH_BUS_DEALER_CONNECT, endpoint, i ? "b1" : "b0", &w->dealer[i],
                                    &err) == 0);
        CU_ASSERT_FATAL(bh_bus_send(w->dealer[i], NULL, &e) == BH_BUS_OK);
        CU_ASSERT_FATAL(receive(w->router, &w->arena, &w->peer[i], &got));
        CU_ASSERT_FATAL(got->binder_hello != NULL);
    }
}

static void wire_close(struct wire *w)
{
    bh_bus_close(w->dealer[0]);
    bh_bus_close(w->dealer[1]);
    bh_bus_close(w->router);
    bh_arena_fini(&w->arena);
}

static void test_a_silent_binders_work_goes_to_another_under_the_same_id(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(5);
    struct bh_binder *a, *b;
    struct bh_ledger_stats s;
    Berth__Envelope *e;
    uint64_t now = bh_mono_ns(), id, until_ns, recorded_id, later_ns;
    struct bh_inflight *f = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_inflight_open(bh_test_tmpdir(), &f, &err) == 0);
    bh_ledger_record(l, f);
    wire_open(&w);
    a = bh_ledger_binder(l, &w.peer[0], "a", now);
    CU_ASSERT_FATAL(a != NULL);
    a->greeted = true;
    a->window = 8;
    bh_ledger_begin_term(l, 3);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_EVENT, "u0")));
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, "u1")));
    CU_ASSERT(bh_ledger_flush(l, w.router, now) == 2);
    CU_ASSERT_FATAL(receive(w.dealer[0], &w.arena, NULL, &e));
    CU_ASSERT_FATAL(e->work && e->work->n_item == 2);
    CU_ASSERT(e->work->epoch == 5 && e->work->lease_term == 3);
    CU_ASSERT(e->work->item[0]->kind == BERTH__WORK_KIND__WORK_BIND); /* binds first */
    CU_ASSERT_STRING_EQUAL(e->work->item[0]->node, "node-1");
    id = e->work->item[0]->id;
    CU_ASSERT(recorded(0, &recorded_id, &until_ns) && recorded_id == id);

    b = bh_ledger_binder(l, &w.peer[1], "b", now + BH_BINDER_SILENCE_NS + 1);
    CU_ASSERT_FATAL(b != NULL && b != a);
    b->greeted = true;
    b->window = 1;
    CU_ASSERT(bh_ledger_expire(l, now + BH_BINDER_SILENCE_NS + 1) == 1);
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.queued == 2 && s.out == 0 && s.binders == 1 && s.reissued == 2);
    CU_ASSERT(bh_ledger_flush(l, w.router, now) == 1); /* its window is 1 */
    CU_ASSERT_FATAL(receive(w.dealer[1], &w.arena, NULL, &e));
    CU_ASSERT(e->work->item[0]->id == id);
    CU_ASSERT(e->work->item[0]->attempt == 1);
    CU_ASSERT(recorded(0, &recorded_id, &later_ns) && recorded_id == id);
    CU_ASSERT(later_ns > until_ns && bh_inflight_count(f) == 1); /* the second may, too */
    CU_ASSERT_FATAL(bh_ledger_find(l, id) != NULL);
    bh_ledger_finish(l, bh_ledger_find(l, id));
    CU_ASSERT(bh_ledger_find(l, id) == NULL);
    CU_ASSERT(bind_of("u1") == NULL);
    CU_ASSERT(b->out == 0);
    ledger_free(l);
    bh_inflight_close(f);
    wire_close(&w);
}

static void test_work_waits_without_room_and_unknown_peers_lose_theirs(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_peer stranger = {.id = "nobody", .n = 6};
    struct bh_binder *b;
    struct bh_ledger_stats s;
    uint64_t now = bh_mono_ns();

    wire_open(&w);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, "u1")));
    CU_ASSERT(bh_ledger_flush(l, w.router, now) == 0); /* nobody there */
    b = bh_ledger_binder(l, &stranger, "x", now);
    CU_ASSERT_FATAL(b != NULL);
    b->greeted = true;
    b->window = 4;
    CU_ASSERT(bh_ledger_flush(l, w.router, now) == 0); /* the router does not know it */
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.binders == 0 && s.queued == 1);
    ledger_free(l);
    wire_close(&w);
}

/* A greeted binder on dealer[i] with room for `window` items. */
static struct bh_binder *binder(struct wire *w, struct bh_ledger *l, int i, uint32_t window)
{
    struct bh_binder *b = bh_ledger_binder(l, &w->peer[i], "b", bh_mono_ns());

    CU_ASSERT_FATAL(b != NULL);
    b->greeted = true;
    b->window = window;
    return b;
}

static unsigned flush(struct wire *w, struct bh_ledger *l)
{
    return bh_ledger_flush(l, w->router, bh_mono_ns());
}

static struct bh_work *group_work(const char *uid, const char *status, bool transition)
{
    struct bh_work *w = bh_work_group(BH_STR("ns"), BH_STR("gang"), bh_str_c(uid), "v1alpha2");

    bh_work_condition(w, "PodGroupScheduled", status, "", bh_strdup(""), 1, transition);
    return w;
}

/* One condition of a group is on the way at a time, and of those that wait only the newest stays. */
static void test_conditions_of_one_group_keep_their_order(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_ledger_stats s;
    struct bh_work *a = group_work("g1", "False", true), *b, *c;

    wire_open(&w);
    CU_ASSERT(!bh_work_unfit(a));
    CU_ASSERT(bh_ledger_add(l, a));
    b = group_work("g1", "False", false);
    CU_ASSERT(bh_ledger_add(l, b)); /* in place of a */
    CU_ASSERT(b->item.condition->transition);
    CU_ASSERT(bh_ledger_add(l, group_work("g2", "True", true)));
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.queued == 2);
    (void)binder(&w, l, 0, 8);
    CU_ASSERT(flush(&w, l) == 2);
    c = group_work("g1", "True", true);
    CU_ASSERT(bh_ledger_add(l, c));
    CU_ASSERT_PTR_EQUAL(b->successor, c); /* waits for the answer to b */
    bh_ledger_finish(l, b);
    CU_ASSERT(queued_id(l, c->item.id));
    ledger_free(l);
    wire_close(&w);
}

static void test_binds_and_patches_of_one_pod_go_one_after_the_other(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_work *first = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1"), *second, *bind;

    wire_open(&w);
    (void)binder(&w, l, 0, 8);
    first->transition = true;
    CU_ASSERT(bh_ledger_add(l, first));
    CU_ASSERT(flush(&w, l) == 1);
    second = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1");
    CU_ASSERT(bh_ledger_add(l, second));
    CU_ASSERT(flush(&w, l) == 0); /* parked behind the one that is out */
    second = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1");
    bh_work_nominate(second, "");
    CU_ASSERT(bh_ledger_add(l, second)); /* and replaced there */
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u2")));
    CU_ASSERT(flush(&w, l) == 1); /* other pods do not wait */
    bh_ledger_finish(l, first);
    CU_ASSERT(flush(&w, l) == 1);
    CU_ASSERT(second->binder != NULL);
    bind = work(BERTH__WORK_KIND__WORK_BIND, "u1");
    CU_ASSERT(bh_ledger_add(l, bind));
    CU_ASSERT(flush(&w, l) == 0);
    CU_ASSERT(bind_of("u1") == bind);
    /* a patch that would come after the bind was parked is moot */
    CU_ASSERT(!bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1")));
    bh_ledger_retry(l, second); /* outcome unknown, but the bind writes the condition anew */
    CU_ASSERT(bh_ledger_find(l, bind->item.id) == bind);
    CU_ASSERT(flush(&w, l) == 1);
    CU_ASSERT(bind->binder != NULL);
    bh_ledger_finish(l, bind);
    CU_ASSERT(bh_ledger_binds(l) == 0);
    ledger_free(l);
    wire_close(&w);
}

static void test_a_bind_makes_a_waiting_patch_moot_and_parked_work_is_freed(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_ledger_stats s;

    wire_open(&w);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1")));
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, "u1")));
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.queued == 1 && s.binds == 1);
    (void)binder(&w, l, 0, 8);
    CU_ASSERT(flush(&w, l) == 1);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1"))); /* parked */
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.queued == 1 && s.out == 1);
    ledger_free(l); /* under a sanitizer: frees what is parked too */
    wire_close(&w);
}

static void test_a_patch_keeps_what_the_one_before_it_had_to_say(void)
{
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_work *a = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1");
    struct bh_work *b = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1");

    a->transition = true;
    CU_ASSERT(bh_ledger_add(l, a));
    CU_ASSERT(bh_ledger_add(l, b));
    CU_ASSERT(b->transition); /* lastTransitionTime was never written */
    CU_ASSERT(!b->item.set_nominated_node);
    ledger_free(l);
}

static void test_work_goes_only_to_greeted_binders(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_binder *b;

    wire_open(&w);
    b = binder(&w, l, 0, 8);
    b->greeted = false;
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, "u1")));
    CU_ASSERT(flush(&w, l) == 0);
    b->greeted = true;
    CU_ASSERT(flush(&w, l) == 1);
    bh_ledger_drop_binder(l, b);
    b = bh_ledger_binder(l, &w.peer[0], "b", bh_mono_ns()); /* it comes back: a stranger again */
    CU_ASSERT(!b->greeted && b->out == 0);
    CU_ASSERT(flush(&w, l) == 0);
    ledger_free(l);
    wire_close(&w);
}

static void test_what_the_bus_refuses_does_not_block_the_rest(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_ledger_stats s;
    char *huge = bh_calloc(1, (64u << 10) + 2);

    wire_open(&w);
    memset(huge, 'x', (64u << 10) + 1);
    (void)binder(&w, l, 0, 100);
    for (int i = 0; i < 7; i++) {
        struct bh_work *e = work(BERTH__WORK_KIND__WORK_EVENT, "u");
        if (i == 3)
            e->item.event->note = bh_strdup(huge);
        CU_ASSERT(bh_ledger_add(l, e));
    }
    CU_ASSERT(flush(&w, l) == 6);
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.refused == 1 && s.out == 6 && s.queued == 0);
    free(huge);
    ledger_free(l);
    wire_close(&w);
}

/* It may have been stopped, and go on where it was: a status would be written over what came after it. */
static void test_a_status_of_a_binder_that_is_cut_off_waits(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_work *patch = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1"),
                   *other = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u2"),
                   *bind = work(BERTH__WORK_KIND__WORK_BIND, "u1");
    const uint64_t heard = bh_mono_ns(), stale = heard + BH_BINDER_SILENCE_NS + 1;
    struct bh_ledger_stats s;
    struct bh_binder *b;

    wire_open(&w);
    bh_ledger_begin_term(l, 3);
    b = binder(&w, l, 0, 8);
    b->last_seen_ns = heard;
    CU_ASSERT(bh_ledger_add(l, patch) && bh_ledger_add(l, other));
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, "u3")));
    CU_ASSERT(flush(&w, l) == 3);
    CU_ASSERT(bh_ledger_add(l, bind)); /* behind the patch */
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_DELETE, "u4")));
    b->peer = (struct bh_peer){.id = "gone", .n = 4}; /* the router does not know it any more */
    CU_ASSERT(flush(&w, l) == 0);
    b = binder(&w, l, 1, 8);
    b->last_seen_ns = stale - 1;
    CU_ASSERT(flush(&w, l) == 2); /* the bind of u3, which is safe to repeat, and the deletion */
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.binders == 1 && s.out == 4 && s.queued == 1 && s.strays == 1);
    CU_ASSERT(bh_ledger_expire(l, stale - 1) == 0 && flush(&w, l) == 0);
    CU_ASSERT(bh_ledger_expire(l, stale) == 0 && flush(&w, l) == 2);
    CU_ASSERT(bind->binder == b && other->binder == b); /* the bind writes the condition anew */

    bh_ledger_begin_term(l, 0); /* nobody tells when it is stale */
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u5")));
    CU_ASSERT(flush(&w, l) == 1);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_DELETE, "u6")));
    b->peer = (struct bh_peer){.id = "gone", .n = 4};
    CU_ASSERT(flush(&w, l) == 0);
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.out == 1 && s.queued == 5); /* of the term before: u2's */
    ledger_free(l);
    wire_close(&w);
}

/* A plugin's patch, and a reservation that is taken back, as well. */
static void test_what_undoes_later_writes_waits_too(void)
{
    static const struct bh_patch patch = {.api_version = "v1", .resource = "pods", .body = "{}"};
    K8s__ObjectMeta meta = K8S__OBJECT_META__INIT;
    K8s__ResourceClaim claim = K8S__RESOURCE_CLAIM__INIT;
    const struct bh_write wanted[] = {
        {.what = BH_WRITE_PATCH, .namespace_ = "ns", .name = "p", .uid = "u", .patch = &patch},
        {.what = BH_WRITE_UNRESERVATION,
         .namespace_ = "ns",
         .name = "r",
         .uid = "u-r",
         .object = &claim.base}};
    const uint64_t heard = bh_mono_ns(), stale = heard + BH_BINDER_SILENCE_NS + 1;
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_ledger_stats s;
    struct bh_binder *b;

    claim.metadata = &meta;
    wire_open(&w);
    bh_ledger_begin_term(l, 3);
    b = binder(&w, l, 0, 32);
    b->last_seen_ns = heard;
    for (unsigned i = 0; i < 2; i++) {
        struct bh_work *x =
            work(i ? BERTH__WORK_KIND__WORK_UNRESERVATION : BERTH__WORK_KIND__WORK_PATCH, "u1");
        bh_work_write(x, &wanted[i]);
        CU_ASSERT(bh_ledger_add(l, x));
    }
    CU_ASSERT(flush(&w, l) == 2);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_DELETE, "u4")));
    b->peer = (struct bh_peer){.id = "gone", .n = 4};
    b = binder(&w, l, 1, 8);
    b->last_seen_ns = stale - 1;
    CU_ASSERT(flush(&w, l) == 1); /* the deletion */
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.out == 3 && s.queued == 0);
    CU_ASSERT(bh_ledger_expire(l, stale) == 0 && flush(&w, l) == 2);
    ledger_free(l);
    wire_close(&w);
}

/* Who led meanwhile may have decided about its pod. */
static void test_what_is_lost_with_a_binder_of_the_term_before_is_not_given_out(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_work *old = work(BERTH__WORK_KIND__WORK_BIND, "u1");
    struct bh_binder *b;
    int n = 0;

    wire_open(&w);
    bh_ledger_begin_term(l, 5);
    b = binder(&w, l, 0, 32);
    CU_ASSERT(bh_ledger_add(l, old));
    CU_ASSERT(flush(&w, l) == 1 && old->binder == b);
    bh_ledger_begin_term(l, 7);
    CU_ASSERT(bh_ledger_recall(l, false, count, &n) == 0); /* the binder has it */
    b->peer = (struct bh_peer){.id = "gone", .n = 4};
    (void)binder(&w, l, 1, 32);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, "u2")));
    CU_ASSERT(flush(&w, l) == 1); /* u2's, to the other one */
    CU_ASSERT(!old->binder);
    CU_ASSERT(bh_ledger_recall(l, false, count, &n) == 1 && n == 1);
    ledger_free(l);
    wire_close(&w);
}

static void test_an_item_nobody_answers_is_taken_back_from_a_living_binder(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_binder *b;
    struct bh_ledger_stats s;
    uint64_t later = bh_mono_ns() + BH_BINDER_ANSWER_NS + 1000000000;

    wire_open(&w);
    b = binder(&w, l, 0, 8);
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_BIND, "u1")));
    CU_ASSERT(flush(&w, l) == 1);
    b->last_seen_ns = later - 1;
    CU_ASSERT(bh_ledger_expire(l, later) == 0);
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.queued == 1 && s.out == 0 && s.reissued == 1 && s.binders == 1);
    ledger_free(l);
    wire_close(&w);
}

/* How many of the items that dealer i was sent are events about uid; ends the items. */
static unsigned events_about(struct wire *w, struct bh_ledger *l, int i, const char *uid)
{
    Berth__Envelope *e;
    unsigned n = 0;

    for (int tries = 0; tries < 50; tries++) {
        struct timespec ts = {.tv_nsec = 1000000};
        bh_arena_reset(&w->arena);
        while (bh_bus_recv(w->dealer[i], &w->arena, NULL, &e) == BH_BUS_OK)
            for (size_t k = 0; k < e->work->n_item; k++) {
                n += strcmp(e->work->item[k]->uid, uid) == 0;
                bh_ledger_finish(l, bh_ledger_find(l, e->work->item[k]->id));
            }
        nanosleep(&ts, NULL);
    }
    return n;
}

static void test_events_about_one_pod_stay_with_one_binder(void)
{
    struct bh_ledger *l = bh_ledger_new(1);
    unsigned got[2][2] = {0}, sent = 0;
    struct bh_binder *b[2];
    struct wire w;

    wire_open(&w);
    for (int i = 0; i < 2; i++)
        b[i] = binder(&w, l, i, 1000);
    for (int round = 0; round < 6; round++) {
        CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_EVENT, "u1")));
        sent += flush(&w, l);
        for (int i = 0; i < 2; i++) {
            got[i][0] += events_about(&w, l, i, "u1");
            b[i]->window =
                (uint32_t)(900 + 10 * round * (i ? 1 : -1)); /* room is not what counts */
        }
    }
    CU_ASSERT_EQUAL(sent, 6);
    CU_ASSERT((got[0][0] == 6 && got[1][0] == 0) || (got[0][0] == 0 && got[1][0] == 6));
    /* one that is full does not hold them up */
    b[got[0][0] ? 0 : 1]->window = 0;
    CU_ASSERT(bh_ledger_add(l, work(BERTH__WORK_KIND__WORK_EVENT, "u1")));
    CU_ASSERT_EQUAL(flush(&w, l), 1);
    CU_ASSERT_EQUAL(events_about(&w, l, got[0][0] ? 1 : 0, "u1"), 1);
    ledger_free(l);
    wire_close(&w);
}

static void never(void *arg, struct bh_work *w)
{
    (void)w;
    ++*(unsigned *)arg;
}

/* Binds that an extender writes: not for binders, but in turn with the pod's other writes. */
static void test_binds_that_are_written_outside(void)
{
    struct wire w;
    struct bh_ledger *l = bh_ledger_new(1);
    struct bh_work *patch = work(BERTH__WORK_KIND__WORK_PATCH_STATUS, "u1"),
                   *bind = work(BERTH__WORK_KIND__WORK_BIND, "u1"),
                   *other = work(BERTH__WORK_KIND__WORK_BIND, "u2");
    struct bh_ledger_stats s;
    unsigned recalled = 0;

    wire_open(&w);
    (void)binder(&w, l, 0, 10);
    (void)bh_ledger_add(l, patch);
    CU_ASSERT(flush(&w, l) == 1);
    bind->outside = other->outside = true;
    (void)bh_ledger_add(l, bind); /* behind the patch, which is out */
    CU_ASSERT(bh_ledger_next_outside(l) == NULL);
    (void)bh_ledger_add(l, other);
    CU_ASSERT(flush(&w, l) == 0);
    CU_ASSERT(bh_ledger_next_outside(l) == other);
    CU_ASSERT(bh_ledger_next_outside(l) == NULL);
    bh_ledger_finish(l, patch);
    CU_ASSERT(flush(&w, l) == 0);
    CU_ASSERT(bh_ledger_next_outside(l) == bind);
    bh_ledger_stats(l, &s);
    CU_ASSERT(s.out == 2 && s.queued == 0 && s.binds == 2);
    CU_ASSERT_STRING_EQUAL(bind->binder->name, "extender"); /* as `berth queue` calls it */
    (void)bh_ledger_expire(l, bh_mono_ns() + UINT64_C(1000000000000)); /* no binder's silence */
    CU_ASSERT(bind->binder != NULL);

    bh_ledger_inside(l, other); /* the extender cannot: a binder shall */
    (void)binder(&w, l, 1, 10);
    CU_ASSERT(flush(&w, l) == 1);
    bh_ledger_finish(l, bind);
    CU_ASSERT(bind_of("u1") == NULL);

    bind = work(BERTH__WORK_KIND__WORK_BIND, "u3");
    bind->outside = true;
    (void)bh_ledger_add(l, bind);
    CU_ASSERT(bh_ledger_recall(l, true, never, &recalled) == 1 && recalled == 1);
    CU_ASSERT(bh_ledger_next_outside(l) == NULL);
    wire_close(&w);
    ledger_free(l);
}

static void test_a_bind_in_one_block(void)
{
    BH_CLEANUP(bh_pod_dropp) struct bh_pod_state *pod = bh_pods_hold(&pods, BH_STR("uid"));
    struct bh_bind_texts t = {pod, BH_STR("ns"), BH_STR("pod"), "node-1", "sched", "17"};
    char name[600];
    struct bh_work *w = bh_work_bind(&t, 1024);

    CU_ASSERT_STRING_EQUAL(w->item.namespace_, "ns");
    CU_ASSERT_STRING_EQUAL(w->item.name, "pod");
    CU_ASSERT_STRING_EQUAL(w->item.uid, "uid");
    CU_ASSERT_STRING_EQUAL(w->item.node, "node-1");
    CU_ASSERT_STRING_EQUAL(w->item.event->reporting_controller, "sched");
    CU_ASSERT_STRING_EQUAL(w->item.event->regarding_resource_version, "17");
    CU_ASSERT_STRING_EQUAL(w->item.event->note, "Successfully assigned ns/pod to node-1");
    CU_ASSERT(w->item.kind == BERTH__WORK_KIND__WORK_BIND && !bh_work_unfit(w));
    bh_work_free(w);
    w = bh_work_bind(&t, 38); /* as long as it is */
    CU_ASSERT_STRING_EQUAL(w->item.event->note, "Successfully assigned ns/pod to node-1");
    bh_work_free(w);
    w = bh_work_bind(&t, 37);
    CU_ASSERT_STRING_EQUAL(w->item.event->note, "Successfully assigned ns/pod to n ...");
    bh_work_free(w);
    memset(name, 'n', sizeof(name));
    t.name = t.ns = (struct bh_str){name, sizeof(name)};
    w = bh_work_bind(&t, 1024);
    CU_ASSERT_EQUAL(strlen(w->item.event->note), 1024);
    CU_ASSERT_STRING_EQUAL(w->item.event->note + 1020, " ...");
    CU_ASSERT_STRING_EQUAL(w->item.node, "node-1");
    bh_work_free(w);
}

BH_TESTS(
    "scheduler/daemon/ledger", {"a bind is one block with its event", test_a_bind_in_one_block},
    {"binds that are written outside", test_binds_that_are_written_outside},
    {"events about one pod stay with one binder", test_events_about_one_pod_stay_with_one_binder},
    {"patches of one pod are coalesced", test_patches_of_one_pod_are_coalesced},
    {"conditions of one group keep their order", test_conditions_of_one_group_keep_their_order},
    {"evictions are known by their preemptor", test_evictions_are_known_by_their_preemptor},
    {"the last victim waits for the others", test_the_last_victim_waits_for_the_others},
    {"events are bounded and binds are not dropped",
     test_events_are_bounded_and_binds_are_not_dropped},
    {"a silent binder's work goes to another under the same id",
     test_a_silent_binders_work_goes_to_another_under_the_same_id},
    {"work waits without room and unknown peers lose theirs",
     test_work_waits_without_room_and_unknown_peers_lose_theirs},
    {"binds and patches of one pod go one after the other",
     test_binds_and_patches_of_one_pod_go_one_after_the_other},
    {"a bind makes a waiting patch moot, and parked work is freed",
     test_a_bind_makes_a_waiting_patch_moot_and_parked_work_is_freed},
    {"a patch keeps what the one before it had to say",
     test_a_patch_keeps_what_the_one_before_it_had_to_say},
    {"work goes only to greeted binders", test_work_goes_only_to_greeted_binders},
    {"what the bus refuses does not block the rest",
     test_what_the_bus_refuses_does_not_block_the_rest},
    {"a kept bind stays until it is ended or looked at",
     test_a_kept_bind_stays_until_it_is_ended_or_looked_at},
    {"a status of a binder that is cut off waits", test_a_status_of_a_binder_that_is_cut_off_waits},
    {"what undoes later writes waits too", test_what_undoes_later_writes_waits_too},
    {"what is lost with a binder of the term before is not given out",
     test_what_is_lost_with_a_binder_of_the_term_before_is_not_given_out},
    {"an item nobody answers is taken back from a living binder",
     test_an_item_nobody_answers_is_taken_back_from_a_living_binder})
