/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/ledger.c - what binders were asked to do and have not answered yet
 */
#include "common/base/probe.h"
#include "scheduler/daemon/ledger.h"

#define LANES           6u
#define LANE_EVENTS     3u
#define LANE_OUTSIDE    4u /* not for binders */
#define LANE_LAST       5u /* victims that wait for the others */
#define BATCH_ITEMS     256u
#define COMPANY         8u /* less than this part of its window is a little work */
#define HOMELESS_EVENTS 512u
/* how often items without an answer are looked for */
#define ANSWERS_EVERY_NS UINT64_C(1000000000)

struct bh_ledger {
    uint64_t epoch, next_id;
    uint64_t silence_ns, answer_ns, answers_looked_ns;
    struct bh_map by_id;  /* 8 bytes of id -> work, parked ones excepted */
    struct bh_map groups; /* uid of a PodGroup -> its write that is queued or out */
    uint64_t n_binds;     /* kept ones included */
    struct bh_works lane[LANES], kept;
    uint64_t n_lane[LANES], n_parked;
    struct bh_inflight *record; /* NULL: nothing is written down */
    uint64_t term;
    bool mixed; /* something came into a lane that may be of another term */
    struct bh_binder binders[BH_LEDGER_MAX_BINDERS];
    struct bh_binder outside; /* stands for extenders: holds what they write */
    struct bh_binder cut_off; /* ... for binders whose connection is gone: what they may write */
    struct bh_ledger_stats stats;
    uint64_t flushes;
};

/* Binds, and what has to be written before them, before deletes before status patches before
 * events. */
static uint8_t lane_of(Berth__WorkKind k)
{
    return bh_work_is_write(k) || k == BERTH__WORK_KIND__WORK_BIND ? 0
           : k == BERTH__WORK_KIND__WORK_DELETE                    ? 1
           : k == BERTH__WORK_KIND__WORK_EVENT                     ? LANE_EVENTS
                                                                   : 2;
}

static bool of_group(const struct bh_work *w)
{
    return w->item.kind == BERTH__WORK_KIND__WORK_GROUP_STATUS;
}

static bool is_patch(const struct bh_work *w)
{
    return bh_work_is_status(w->item.kind);
}

/* Writes that change the own state of the pod, or of the PodGroup. */
static bool in_turn(const struct bh_work *w)
{
    return w->item.kind == BERTH__WORK_KIND__WORK_BIND || is_patch(w);
}

/* What is queued or out for the pod or group whose turn w changes. */
static struct bh_work *first_of(const struct bh_ledger *l, const struct bh_work *w)
{
    return !of_group(w) ? w->pod->first : bh_map_get(&l->groups, w->item.uid, strlen(w->item.uid));
}

static void set_first(struct bh_ledger *l, const struct bh_work *w, struct bh_work *first)
{
    if (!of_group(w))
        w->pod->first = first;
    else if (first)
        (void)bh_map_put(&l->groups, w->item.uid, strlen(w->item.uid), first);
    else
        (void)bh_map_del(&l->groups, w->item.uid, strlen(w->item.uid));
}

struct bh_ledger *bh_ledger_new(uint64_t epoch)
{
    struct bh_ledger *l = bh_calloc(1, sizeof(*l));

    l->epoch = epoch;
    l->next_id = 1;
    for (unsigned i = 0; i < LANES; i++)
        TAILQ_INIT(&l->lane[i]);
    TAILQ_INIT(&l->kept);
    TAILQ_INIT(&l->outside.list);
    TAILQ_INIT(&l->cut_off.list);
    snprintf(l->outside.name, sizeof(l->outside.name), "extender");
    bh_ledger_patience(l, BH_BINDER_SILENCE_NS, BH_BINDER_ANSWER_NS);
    return l;
}

void bh_ledger_record(struct bh_ledger *l, struct bh_inflight *f)
{
    l->record = f;
}

void bh_ledger_patience(struct bh_ledger *l, uint64_t silence_ns, uint64_t answer_ns)
{
    l->silence_ns = silence_ns;
    l->answer_ns = answer_ns;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static void lane_push(struct bh_ledger *l, struct bh_work *w, bool front)
{
    w->binder = NULL;
    if (front)
        TAILQ_INSERT_HEAD(&l->lane[w->lane], w, link);
    else
        TAILQ_INSERT_TAIL(&l->lane[w->lane], w, link);
    l->n_lane[w->lane]++;
}

static void lane_remove(struct bh_ledger *l, struct bh_work *w)
{
    bh_assert(!w->binder);
    TAILQ_REMOVE(&l->lane[w->lane], w, link);
    l->n_lane[w->lane]--;
}

static void binder_push(struct bh_binder *b, struct bh_work *w)
{
    w->binder = b;
    TAILQ_INSERT_HEAD(&b->list, w, link);
    b->out++;
}

static void binder_remove(struct bh_work *w)
{
    TAILQ_REMOVE(&w->binder->list, w, link);
    w->binder->out--;
    w->binder = NULL;
}

/* Wherever it is, it is out or queued. */
static void leave_list(struct bh_ledger *l, struct bh_work *w)
{
    if (w->binder)
        binder_remove(w);
    else
        lane_remove(l, w);
}

/* ---- the record ------------------------------------------------------------------------------ */

/* Before it goes out, every time. */
static void record(struct bh_ledger *l, struct bh_work *w, uint64_t until_boot_ns)
{
    const struct bh_inflight_item it = {.kind = w->item.kind,
                                        .id = w->item.id,
                                        .term = w->term,
                                        .until_boot_ns = until_boot_ns,
                                        .uid = w->item.uid,
                                        .node = w->item.node ? w->item.node : ""};

    if (!l->record || !bh_work_takes_effect(w))
        return;
    if (w->slot)
        bh_inflight_extend(l->record, w->slot, until_boot_ns);
    else
        w->slot = bh_inflight_put(l->record, &it);
}

/* ---- items ----------------------------------------------------------------------------------- */

static void queue(struct bh_ledger *l, struct bh_work *w)
{
    (void)bh_map_put(&l->by_id, (const char *)&w->item.id, sizeof(w->item.id), w);
    if (w->on_behalf) {
        w->on_behalf->evictions++;
        if (w->lane == LANE_LAST)
            w->on_behalf->last_victim = w;
    }
    if (in_turn(w))
        set_first(l, w, w);
    lane_push(l, w, false);
}

static void leave_lists(struct bh_ledger *l, struct bh_work *w)
{
    if (w->kept) {
        TAILQ_REMOVE(&l->kept, w, link);
        w->kept = false;
        l->stats.kept--;
        return;
    }
    leave_list(l, w);
    (void)bh_map_del(&l->by_id, (const char *)&w->item.id, sizeof(w->item.id));
    if (in_turn(w))
        set_first(l, w, NULL);
}

static void discard(struct bh_ledger *l, struct bh_work *w)
{
    /* Off the handles. */
    if (in_turn(w) && first_of(l, w) == w)
        set_first(l, w, NULL);
    if (w->item.kind == BERTH__WORK_KIND__WORK_BIND)
        w->pod->bind = NULL;
    if (w->on_behalf) {
        w->on_behalf->evictions--;
        if (w->lane == LANE_LAST)
            w->on_behalf->last_victim = NULL;
    }
    bh_work_free(w);
}

/* Gone, in no list any more. */
static void forget(struct bh_ledger *l, struct bh_work *w)
{
    if (l->record && w->slot)
        bh_inflight_drop(l->record, w->slot);
    w->slot = 0;
    l->stats.seen -= w->bound_seen;
    l->n_binds -= w->item.kind == BERTH__WORK_KIND__WORK_BIND;
    discard(l, w);
}

static void remove_item(struct bh_ledger *l, struct bh_work *w)
{
    leave_lists(l, w);
    forget(l, w);
}

void bh_ledger_free(struct bh_ledger *l)
{
    struct bh_map_entry *m;

    if (!l)
        return;
    for (size_t it = 0; (m = bh_map_next(&l->by_id, &it));) {
        struct bh_work *w = m->value;
        if (w->successor)
            discard(l, w->successor);
        discard(l, w);
    }
    for (struct bh_work *w = TAILQ_FIRST(&l->kept), *next; w; w = next) {
        next = TAILQ_NEXT(w, link);
        discard(l, w);
    }
    bh_map_fini(&l->by_id);
    bh_map_fini(&l->groups);
    free(l);
}

/* What the older patch wanted to write and the newer one leaves alone; a bind keeps in mind that nothing
 * was written of it. */
static void inherit(struct bh_work *w, struct bh_work *old)
{
    w->transition |= old->transition;
    if (w->item.condition)
        w->item.condition->transition = w->transition;
    if (is_patch(w) && !w->item.set_nominated_node && old->item.set_nominated_node) {
        w->item.has_set_nominated_node = w->item.set_nominated_node = true;
        w->item.nominated_node = bh_take_ptr(old->item.nominated_node);
    }
}

/* The pod has a write that is out: w has to wait for its end. */
static bool park(struct bh_ledger *l, struct bh_work *first, struct bh_work *w)
{
    struct bh_work *old = first->successor;

    if (old && is_patch(w) && old->item.kind == BERTH__WORK_KIND__WORK_BIND) {
        old->transition |= w->transition;
        bh_work_free(w); /* binding sets the condition anew */
        return false;
    }
    if (old) {
        inherit(w, old);
        bh_work_free(old);
    } else {
        l->n_parked++;
    }
    first->successor = w;
    return true;
}

/* Queued, or parked behind the write for the same pod that is out. False: it was freed. */
static bool enter(struct bh_ledger *l, struct bh_work *w)
{
    struct bh_work *first = in_turn(w) ? first_of(l, w) : NULL;

    if (first && (first->binder || first->item.kind == BERTH__WORK_KIND__WORK_BIND))
        return park(l, first, w);
    if (first) { /* a patch that no binder has seen: superseded */
        inherit(w, first);
        remove_item(l, first);
    }
    queue(l, w);
    return true;
}

bool bh_ledger_add(struct bh_ledger *l, struct bh_work *w)
{
    w->lane = w->outside ? LANE_OUTSIDE : lane_of(w->item.kind);
    if (w->last && w->on_behalf && w->on_behalf->evictions && !w->on_behalf->last_victim)
        w->lane = LANE_LAST;
    if (w->lane == LANE_EVENTS && l->n_lane[LANE_EVENTS] >= BH_LEDGER_MAX_EVENTS) {
        l->stats.dropped_events++;
        bh_work_free(w);
        return false;
    }
    w->item.id = l->next_id++;
    w->term = l->term;
    w->queued_ns = bh_mono_ns();
    if (w->item.kind == BERTH__WORK_KIND__WORK_BIND) {
        bh_assert(!w->pod->bind);
        w->pod->bind = w;
        l->n_binds++;
    }
    return enter(l, w);
}

struct bh_work *bh_ledger_next_outside(struct bh_ledger *l)
{
    struct bh_work *w = TAILQ_FIRST(&l->lane[LANE_OUTSIDE]);

    if (!w)
        return NULL;
    record(l, w, bh_boot_ns() + BH_INFLIGHT_NS);
    lane_remove(l, w);
    w->sent_ns = bh_mono_ns();
    binder_push(&l->outside, w);
    return w;
}

void bh_ledger_inside(struct bh_ledger *l, struct bh_work *w)
{
    bh_assert(w->binder == &l->outside);
    binder_remove(w);
    w->outside = false;
    w->lane = lane_of(w->item.kind);
    l->mixed = true;
    lane_push(l, w, false);
}

struct bh_work *bh_ledger_find(struct bh_ledger *l, uint64_t id)
{
    return bh_map_get(&l->by_id, (const char *)&id, sizeof(id));
}

void bh_ledger_spare(struct bh_ledger *l, struct bh_pod_state *preemptor)
{
    if (preemptor->last_victim)
        remove_item(l, preemptor->last_victim);
}

static void unpark(struct bh_ledger *l, struct bh_work *successor)
{
    if (!successor)
        return;
    l->mixed = true;
    l->n_parked--;
    queue(l, successor);
}

void bh_ledger_finish(struct bh_ledger *l, struct bh_work *w)
{
    struct bh_work *successor = w->successor;
    BH_CLEANUP(bh_pod_dropp)
    struct bh_pod_state *preemptor = w->on_behalf ? bh_pod_hold(w->on_behalf) : NULL;

    remove_item(l, w);
    struct bh_work *last = preemptor ? preemptor->last_victim : NULL;
    if (last && preemptor->evictions <= 1) { /* no other victim is left: its turn has come */
        preemptor->last_victim = NULL;
        lane_remove(l, last);
        last->lane = lane_of(last->item.kind);
        l->mixed = true;
        lane_push(l, last, false);
    }
    unpark(l, successor);
}

/* ---- binds that the watch has not shown ------------------------------------------------------ */

void bh_ledger_bound_seen(struct bh_ledger *l, struct bh_work *w)
{
    l->stats.seen += !w->bound_seen;
    w->bound_seen = true;
}

void bh_ledger_keep(struct bh_ledger *l, struct bh_work *w, uint64_t due_ns)
{
    struct bh_work *successor = bh_take_ptr(w->successor);

    bh_assert(w->item.kind == BERTH__WORK_KIND__WORK_BIND && !w->kept);
    leave_lists(l, w);
    w->kept = true;
    w->due_ns = due_ns;
    TAILQ_INSERT_HEAD(&l->kept, w, link);
    l->stats.kept++;
    unpark(l, successor);
}

unsigned bh_ledger_overdue(struct bh_ledger *l, uint64_t now_ns)
{
    unsigned n = 0;

    for (struct bh_work *w = TAILQ_FIRST(&l->kept), *next; w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (now_ns < w->due_ns)
            continue;
        leave_lists(l, w);
        w->item.id = l->next_id++; /* a late answer to what it was is none to this */
        w->term = l->term;
        w->item.has_look = w->item.look = true;
        w->outside = false;
        w->lane = lane_of(w->item.kind);
        (void)enter(l, w);
        n++;
    }
    return n;
}

void bh_ledger_end_kept(struct bh_ledger *l, bool (*fn)(void *arg, const struct bh_work *w),
                        void *arg)
{
    for (struct bh_work *w = TAILQ_FIRST(&l->kept), *next; w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (fn(arg, w))
            bh_ledger_finish(l, w);
    }
}

void bh_ledger_retry(struct bh_ledger *l, struct bh_work *w)
{
    if (is_patch(w) && (w->successor || w->former_id)) {
        if (w->successor)
            inherit(w->successor, w);
        bh_ledger_finish(l, w);
        return;
    }
    leave_list(l, w);
    w->item.attempt++;
    l->mixed = true;
    l->stats.reissued++;
    lane_push(l, w, true);
}

/* ---- binders --------------------------------------------------------------------------------- */

struct bh_binder *bh_ledger_binder(struct bh_ledger *l, const struct bh_peer *peer,
                                   const char *name, uint64_t now_ns)
{
    struct bh_binder *spare = NULL;

    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++) {
        struct bh_binder *b = &l->binders[i];
        if (b->used && (b->peer.n == peer->n && memcmp(b->peer.id, peer->id, b->peer.n) == 0)) {
            b->last_seen_ns = now_ns;
            return b;
        }
        if (!b->used && !spare)
            spare = b;
    }
    if (!spare)
        return NULL;
    *spare = (struct bh_binder){.peer = *peer, .used = true, .last_seen_ns = now_ns};
    TAILQ_INIT(&spare->list);
    snprintf(spare->name, sizeof(spare->name), "%s", name ? name : "");
    return spare;
}

/* What became of it is not known. */
static void retry_lost(struct bh_ledger *l, struct bh_work *w)
{
    bh_work_doubt(w, BH_INFLIGHT_NS);
    bh_ledger_retry(l, w);
}

void bh_ledger_drop_binder(struct bh_ledger *l, struct bh_binder *b)
{
    while (!TAILQ_EMPTY(&b->list))
        retry_lost(l, TAILQ_FIRST(&b->list));
    l->stats.strays += !b->idle;
    b->used = false;
}

/* Its connection is gone; it itself may only have been stopped, and has until its silence is too long
 * to write statuses that it got, and what else would undo later writes (binder/binder.h). These, and
 * what is behind them, wait for that. All else is safe to repeat. */
static void lose_connection(struct bh_ledger *l, struct bh_binder *b)
{
    for (struct bh_work *w = TAILQ_FIRST(&b->list), *next; w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (!bh_work_undoes(w->item.kind) || !w->term)
            continue;
        binder_remove(w);
        w->due_ns = b->last_seen_ns + l->silence_ns;
        binder_push(&l->cut_off, w);
    }
    bh_ledger_drop_binder(l, b);
}

void bh_ledger_adopt(struct bh_ledger *l, struct bh_work *w, uint64_t due_ns)
{
    if (first_of(l, w)) {
        bh_work_free(w);
        return;
    }
    w->lane = lane_of(w->item.kind);
    w->item.id = l->next_id++;
    w->due_ns = due_ns;
    queue(l, w);
    lane_remove(l, w);
    binder_push(&l->cut_off, w);
}

void bh_ledger_end_adopted(struct bh_ledger *l, struct bh_str uid, uint64_t former_id)
{
    struct bh_work *w;

    TAILQ_FOREACH(w, &l->cut_off.list, link) {
        if (w->former_id == former_id && bh_str_eqc(uid, w->item.uid)) {
            bh_ledger_finish(l, w);
            return;
        }
    }
}

struct bh_binder *bh_ledger_next_binder(struct bh_ledger *l, size_t *it)
{
    while (*it < BH_LEDGER_MAX_BINDERS) {
        struct bh_binder *b = &l->binders[(*it)++];
        if (b->used)
            return b;
    }
    return NULL;
}

unsigned bh_ledger_expire(struct bh_ledger *l, uint64_t now_ns)
{
    bool answers = now_ns - l->answers_looked_ns > BH_MIN(ANSWERS_EVERY_NS, l->answer_ns);
    struct bh_binder *b;
    unsigned n = 0;

    if (answers)
        l->answers_looked_ns = now_ns;
    for (size_t it = 0; (b = bh_ledger_next_binder(l, &it));) {
        if (now_ns - b->last_seen_ns > l->silence_ns) {
            bh_ledger_drop_binder(l, b);
            n++;
        } else if (answers) {
            /* An answer can get lost only with the binder's connection; then nothing else would
             * make us ask again. */
            for (struct bh_work *w = TAILQ_FIRST(&b->list), *next; w; w = next) {
                next = TAILQ_NEXT(w, link);
                if (now_ns - w->sent_ns > l->answer_ns)
                    retry_lost(l, w);
            }
        }
    }
    for (struct bh_work *w = TAILQ_FIRST(&l->cut_off.list), *next; w; w = next) {
        next = TAILQ_NEXT(w, link);
        if (now_ns > w->due_ns)
            retry_lost(l, w);
    }
    return n;
}

void bh_ledger_begin_term(struct bh_ledger *l, uint64_t term)
{
    l->term = term;
    l->mixed = true;
}

unsigned bh_ledger_recall(struct bh_ledger *l, bool all, void (*fn)(void *arg, struct bh_work *w),
                          void *arg)
{
    unsigned n = 0;

    if (!all && !l->mixed)
        return 0;
    l->mixed = false;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (struct bh_work *w = TAILQ_FIRST(&l->lane[lane]), *next; w; w = next) {
            next = TAILQ_NEXT(w, link);
            if (!all && w->term == l->term)
                continue;
            struct bh_work *parked = bh_take_ptr(w->successor);
            fn(arg, w);
            remove_item(l, w);
            n++;
            if (parked) { /* goes with it: no binder has seen that either */
                fn(arg, parked);
                forget(l, parked);
                l->n_parked--;
            }
        }
    return n;
}

static uint32_t room(const struct bh_binder *b)
{
    return b->greeted && b->out < b->window ? b->window - b->out : 0;
}

/* The binder with the most room, of those that the queued work may go to in this flush. But a
 * little work all goes to one: a binder wakes up for ten items as for one. */
static struct bh_binder *richest(struct bh_ledger *l)
{
    struct bh_binder *best = NULL, *b;

    for (size_t it = 0; (b = bh_ledger_next_binder(l, &it));) {
        if (b->passed == l->flushes || !room(b))
            continue;
        if (b->out < b->window / COMPANY)
            return b;
        if (!best || room(b) > room(best))
            best = b;
    }
    return best;
}

/* The binder that writes all events about a pod is the same as long as the same binders are there:
 * what repeats becomes a series, and the binder keeps the series. An event may go elsewhere when its
 * home has no room, and when so many wait that looking for each one's home would cost more than a
 * repeated event. */
static bool takes(struct bh_ledger *l, const struct bh_binder *b, const struct bh_work *w)
{
    struct bh_binder *home;
    unsigned n = 0;

    if (w->item.kind != BERTH__WORK_KIND__WORK_EVENT || l->n_lane[LANE_EVENTS] > HOMELESS_EVENTS)
        return true;
    for (size_t it = 0; (home = bh_ledger_next_binder(l, &it));)
        n += home->greeted;
    if (n < 2)
        return true;
    uint64_t k = bh_hash(w->item.uid, strlen(w->item.uid), 0) % n;
    for (size_t it = 0; (home = bh_ledger_next_binder(l, &it));)
        if (home->greeted && k-- == 0)
            return home == b || !room(home);
    return true;
}

/* ---- the wire -------------------------------------------------------------------------------- */

/* The next items in priority order; they stay queued until the bus took them. Not what was lost, in
 * this flush, with a binder that had it from another term: it is recalled. */
static unsigned collect(struct bh_ledger *l, const struct bh_binder *b, struct bh_work **work,
                        Berth__WorkItem **items, unsigned max)
{
    unsigned n = 0;

    for (unsigned lane = 0; lane <= LANE_EVENTS; lane++)
        for (struct bh_work *w = TAILQ_FIRST(&l->lane[lane]); w && n < max;
             w = TAILQ_NEXT(w, link)) {
            if (w->term != l->term || !takes(l, b, w))
                continue;
            items[n] = &w->item;
            work[n++] = w;
        }
    return n;
}

static unsigned send_batch(struct bh_ledger *l, struct bh_bus *bus, struct bh_binder *b,
                           Berth__WorkBatch *batch, uint64_t now_ns)
{
    Berth__WorkItem *items[BATCH_ITEMS];
    struct bh_work *work[BATCH_ITEMS];
    Berth__Envelope env = BERTH__ENVELOPE__INIT;
    unsigned n = collect(l, b, work, items, BH_MIN(room(b), BATCH_ITEMS));
    const uint64_t until = bh_boot_ns() + BH_INFLIGHT_NS;
    enum bh_bus_outcome o;

    if (!n) {
        b->passed = l->flushes;
        return 0;
    }

    for (unsigned i = 0; i < n; i++)
        record(l, work[i], until);
    batch->item = items;
    env.work = batch;
    do { /* a batch that breaks a rule is tried in halves, down to the item that does */
        batch->n_item = n;
        o = bh_bus_send(bus, &b->peer, &env);
    } while (o == BH_BUS_BAD && n > 1 && (n /= 2));
    if (o == BH_BUS_BAD) {
        /* A single item that the bus will not carry: too long a text. No binder would get it, so
         * it ends here. */
        struct bh_work *w = work[0];
        /* names are checked where pods come in, objects before they are added */
        bh_assert(w->item.kind != BERTH__WORK_KIND__WORK_BIND && !w->item.write);
        l->stats.refused++;
        bh_ledger_finish(l, w);
        return 0;
    }
    if (o == BH_BUS_NO_PEER) {
        lose_connection(l, b);
        return 0;
    }
    if (o != BH_BUS_OK) { /* its queue is full: no more room until it speaks again */
        b->window = 0;
        return 0;
    }
    for (unsigned i = 0; i < n; i++) {
        lane_remove(l, work[i]);
        work[i]->sent_ns = now_ns;
        bh_probe_pod(send, bh_str_c(work[i]->item.uid), work[i]->item.kind);
        binder_push(b, work[i]);
    }
    l->stats.sent += n;
    return n;
}

unsigned bh_ledger_flush(struct bh_ledger *l, struct bh_bus *bus, uint64_t now_ns)
{
    Berth__WorkBatch batch = BERTH__WORK_BATCH__INIT;
    unsigned total = 0;
    struct bh_binder *b;

    l->flushes++;
    batch.has_epoch = batch.has_lease_term = true;
    batch.epoch = l->epoch;
    batch.lease_term = l->term;
    while ((l->n_lane[0] || l->n_lane[1] || l->n_lane[2] || l->n_lane[LANE_EVENTS]) &&
           (b = richest(l)))
        total += send_batch(l, bus, b, &batch, now_ns);
    return total;
}

uint64_t bh_ledger_binds(const struct bh_ledger *l)
{
    return l->n_binds - l->stats.kept;
}

void bh_ledger_stats(const struct bh_ledger *l, struct bh_ledger_stats *ret)
{
    *ret = l->stats;
    ret->queued = l->n_parked;
    ret->out = l->outside.out + l->cut_off.out;
    ret->binders = 0;
    for (unsigned i = 0; i < LANES; i++)
        ret->queued += l->n_lane[i];
    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++)
        if (l->binders[i].used) {
            ret->binders++;
            ret->out += l->binders[i].out;
        }
    ret->binds = bh_ledger_binds(l);
}
