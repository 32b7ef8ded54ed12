/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/ledger.c - what binders were asked to do and have not answered yet
 */
#include "scheduler/daemon/ledger.h"

#define LANES           6u
#define LANE_EVENTS     3u
#define LANE_OUTSIDE    4u /* not for binders */
#define LANE_LAST       5u /* victims that wait for the others */
#define BATCH_ITEMS     256u
#define COMPANY         8u /* less than this part of its window is a little work */
#define HOMELESS_EVENTS 512u
#define ANSWERS_EVERY_NS                                                                           \
    UINT64_C(1000000000) /* how often items without an answer are looked for                       \
                          */

struct bh_ledger {
    uint64_t epoch, next_id;
    uint64_t silence_ns, answer_ns, answers_looked_ns;
    struct bh_map by_id;        /* 8 bytes of id -> work, parked ones excepted */
    struct bh_map bind_by_uid;  /* uid -> BIND work, wherever it is */
    struct bh_map first_by_uid; /* uid -> BIND or PATCH_STATUS that is queued or out */
    struct bh_map evictions;    /* uid of a preemptor -> number of its DELETE items */
    struct bh_map last;         /* uid of a preemptor -> its item in LANE_LAST */
    struct bh_work *head[LANES], *tail[LANES];
    uint64_t n_lane[LANES], n_parked;
    uint64_t term;
    bool mixed; /* something came into a lane that may be of another term */
    struct bh_binder binders[BH_LEDGER_MAX_BINDERS];
    struct bh_binder outside; /* stands for extenders: holds what they write */
    struct bh_ledger_stats stats;
    uint64_t flushes;
};

/* Binds, and what has to be written before them, before deletes before status patches before
 * events. */
static uint8_t lane_of(Berth__WorkKind k)
{
    if (bh_work_is_write(k))
        return 0;
    switch (k) {
    case BERTH__WORK_KIND__WORK_BIND:
        return 0;
    case BERTH__WORK_KIND__WORK_DELETE:
        return 1;
    case BERTH__WORK_KIND__WORK_PATCH_STATUS:
        return 2;
    default:
        return LANE_EVENTS;
    }
}

/* Writes that change the pod's own state. */
static bool in_turn(const struct bh_work *w)
{
    return w->kind == BERTH__WORK_KIND__WORK_BIND || w->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS;
}

struct bh_ledger *bh_ledger_new(uint64_t epoch)
{
    struct bh_ledger *l = bh_calloc(1, sizeof(*l));

    l->epoch = epoch;
    l->next_id = 1;
    snprintf(l->outside.name, sizeof(l->outside.name), "extender");
    bh_ledger_patience(l, BH_BINDER_SILENCE_NS, BH_BINDER_ANSWER_NS);
    return l;
}

void bh_ledger_patience(struct bh_ledger *l, uint64_t silence_ns, uint64_t answer_ns)
{
    l->silence_ns = silence_ns;
    l->answer_ns = answer_ns;
}

void bh_ledger_free(struct bh_ledger *l)
{
    struct bh_map_entry *m;

    if (!l)
        return;
    for (size_t it = 0; (m = bh_map_next(&l->by_id, &it));) {
        struct bh_work *w = m->value;
        if (w->successor)
            bh_work_free(w->successor);
        bh_work_free(w);
    }
    bh_map_fini(&l->by_id);
    bh_map_fini(&l->bind_by_uid);
    bh_map_fini(&l->first_by_uid);
    bh_map_fini(&l->evictions);
    bh_map_fini(&l->last);
    free(l);
}

/* ---- lanes -------------------------------------------------------------------------------------
 */

static void lane_push(struct bh_ledger *l, struct bh_work *w, bool front)
{
    struct bh_work **head = &l->head[w->lane], **tail = &l->tail[w->lane];

    w->binder = NULL;
    w->prev = w->next = NULL;
    if (!*head) {
        *head = *tail = w;
    } else if (front) {
        w->next = *head;
        (*head)->prev = w;
        *head = w;
    } else {
        w->prev = *tail;
        (*tail)->next = w;
        *tail = w;
    }
    l->n_lane[w->lane]++;
}

static void lane_remove(struct bh_ledger *l, struct bh_work *w)
{
    bh_assert(!w->binder);
    if (w->prev)
        w->prev->next = w->next;
    else
        l->head[w->lane] = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        l->tail[w->lane] = w->prev;
    l->n_lane[w->lane]--;
}

static void binder_push(struct bh_binder *b, struct bh_work *w)
{
    w->binder = b;
    w->prev = NULL;
    w->next = b->list;
    if (b->list)
        b->list->prev = w;
    b->list = w;
    b->out++;
}

static void binder_remove(struct bh_work *w)
{
    struct bh_binder *b = w->binder;

    if (w->prev)
        w->prev->next = w->next;
    else
        b->list = w->next;
    if (w->next)
        w->next->prev = w->prev;
    b->out--;
    w->binder = NULL;
}

/* ---- items -------------------------------------------------------------------------------------
 */

static void count_eviction(struct bh_ledger *l, const char *uid, int by)
{
    uintptr_t n;

    if (!uid)
        return;
    n = (uintptr_t)bh_map_get(&l->evictions, uid, strlen(uid)) + (uintptr_t)by;
    if (n)
        (void)bh_map_put(&l->evictions, uid, strlen(uid), (void *)n);
    else
        (void)bh_map_del(&l->evictions, uid, strlen(uid));
}

static void queue(struct bh_ledger *l, struct bh_work *w)
{
    (void)bh_map_put(&l->by_id, (const char *)&w->id, sizeof(w->id), w);
    count_eviction(l, w->on_behalf, 1);
    if (w->lane == LANE_LAST)
        (void)bh_map_put(&l->last, w->on_behalf, strlen(w->on_behalf), w);
    if (in_turn(w))
        (void)bh_map_put(&l->first_by_uid, w->uid, strlen(w->uid), w);
    lane_push(l, w, false);
}

/* Leaves every list; the caller frees it. */
static void forget(struct bh_ledger *l, struct bh_work *w)
{
    if (w->binder)
        binder_remove(w);
    else
        lane_remove(l, w);
    (void)bh_map_del(&l->by_id, (const char *)&w->id, sizeof(w->id));
    count_eviction(l, w->on_behalf, -1);
    if (w->lane == LANE_LAST)
        (void)bh_map_del(&l->last, w->on_behalf, strlen(w->on_behalf));
    if (w->kind == BERTH__WORK_KIND__WORK_BIND)
        (void)bh_map_del(&l->bind_by_uid, w->uid, strlen(w->uid));
    if (in_turn(w))
        (void)bh_map_del(&l->first_by_uid, w->uid, strlen(w->uid));
}

/* What the older patch wanted to write and the newer one leaves alone. */
static void inherit(struct bh_work *w, struct bh_work *old)
{
    w->cond_transition |= old->cond_transition;
    if (!w->set_nominated && old->set_nominated) {
        w->set_nominated = true;
        w->nominated = bh_take_ptr(old->nominated);
    }
}

/* The pod has a write that is out: w has to wait for its end. */
static bool park(struct bh_ledger *l, struct bh_work *first, struct bh_work *w)
{
    struct bh_work *old = first->successor;

    if (old && w->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS) {
        if (old->kind == BERTH__WORK_KIND__WORK_BIND) { /* binding sets the condition anew */
            bh_work_free(w);
            return false;
        }
        inherit(w, old);
    }
    if (old)
        bh_work_free(old);
    else
        l->n_parked++;
    first->successor = w;
    return true;
}

static bool waits_for_others(const struct bh_ledger *l, const struct bh_work *w)
{
    return w->last && w->on_behalf && bh_ledger_evicts_for(l, bh_str_c(w->on_behalf)) &&
           !bh_map_get(&l->last, w->on_behalf, strlen(w->on_behalf));
}

bool bh_ledger_add(struct bh_ledger *l, struct bh_work *w)
{
    struct bh_work *first = NULL;

    w->lane = w->outside ? LANE_OUTSIDE : waits_for_others(l, w) ? LANE_LAST : lane_of(w->kind);
    if (w->lane == LANE_EVENTS && l->n_lane[LANE_EVENTS] >= BH_LEDGER_MAX_EVENTS) {
        l->stats.dropped_events++;
        bh_work_free(w);
        return false;
    }
    w->id = l->next_id++;
    w->term = l->term;
    w->queued_ns = bh_mono_ns();
    if (w->kind == BERTH__WORK_KIND__WORK_BIND) {
        struct bh_work *former = bh_map_put(&l->bind_by_uid, w->uid, strlen(w->uid), w);
        bh_assert(!former);
    }
    if (in_turn(w))
        first = bh_map_get(&l->first_by_uid, w->uid, strlen(w->uid));
    if (first && (first->binder || first->kind == BERTH__WORK_KIND__WORK_BIND))
        return park(l, first, w);
    if (first) { /* a patch nobody has seen: superseded */
        if (w->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS)
            inherit(w, first);
        forget(l, first);
        bh_work_free(first);
    }
    queue(l, w);
    return true;
}

struct bh_work *bh_ledger_bind_of(struct bh_ledger *l, const char *uid)
{
    return bh_map_get(&l->bind_by_uid, uid, strlen(uid));
}

bool bh_ledger_evicts_for(const struct bh_ledger *l, struct bh_str uid)
{
    return bh_map_get(&l->evictions, uid.p, uid.n);
}

struct bh_work *bh_ledger_next_outside(struct bh_ledger *l)
{
    struct bh_work *w = l->head[LANE_OUTSIDE];

    if (!w)
        return NULL;
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
    w->lane = lane_of(w->kind);
    l->mixed = true;
    lane_push(l, w, false);
}

struct bh_work *bh_ledger_find(struct bh_ledger *l, uint64_t id)
{
    return bh_map_get(&l->by_id, (const char *)&id, sizeof(id));
}

/* Nobody else is left: the last victim's turn has come. */
static void end_wait(struct bh_ledger *l, const char *preemptor)
{
    size_t n = strlen(preemptor);
    struct bh_work *w = bh_map_get(&l->last, preemptor, n);

    if (!w || (uintptr_t)bh_map_get(&l->evictions, preemptor, n) > 1)
        return;
    (void)bh_map_del(&l->last, preemptor, n);
    lane_remove(l, w);
    w->lane = lane_of(w->kind);
    l->mixed = true;
    lane_push(l, w, false);
}

void bh_ledger_spare(struct bh_ledger *l, const char *preemptor)
{
    struct bh_work *w = bh_map_get(&l->last, preemptor, strlen(preemptor));

    if (!w)
        return;
    forget(l, w);
    bh_work_free(w);
}

void bh_ledger_finish(struct bh_ledger *l, struct bh_work *w)
{
    struct bh_work *successor = w->successor;

    forget(l, w);
    if (w->on_behalf)
        end_wait(l, w->on_behalf);
    bh_work_free(w);
    if (successor) {
        l->mixed = true;
        l->n_parked--;
        queue(l, successor);
    }
}

void bh_ledger_retry(struct bh_ledger *l, struct bh_work *w)
{
    if (w->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS && w->successor) {
        if (w->successor->kind == BERTH__WORK_KIND__WORK_PATCH_STATUS)
            inherit(w->successor, w);
        bh_ledger_finish(l, w);
        return;
    }
    if (w->binder)
        binder_remove(w);
    else
        lane_remove(l, w);
    w->attempt++;
    l->mixed = true;
    l->stats.reissued++;
    lane_push(l, w, true);
}

/* ---- binders -----------------------------------------------------------------------------------
 */

static bool same_peer(const struct bh_peer *a, const struct bh_peer *b)
{
    return a->n == b->n && memcmp(a->id, b->id, a->n) == 0;
}

struct bh_binder *bh_ledger_binder(struct bh_ledger *l, const struct bh_peer *peer,
                                   const char *name, uint64_t now_ns)
{
    struct bh_binder *spare = NULL;

    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++) {
        struct bh_binder *b = &l->binders[i];
        if (b->used && same_peer(&b->peer, peer)) {
            b->last_seen_ns = now_ns;
            return b;
        }
        if (!b->used && !spare)
            spare = b;
    }
    if (!spare)
        return NULL;
    *spare = (struct bh_binder){.peer = *peer, .used = true, .last_seen_ns = now_ns};
    snprintf(spare->name, sizeof(spare->name), "%s", name ? name : "");
    return spare;
}

void bh_ledger_drop_binder(struct bh_ledger *l, struct bh_binder *b)
{
    while (b->list)
        bh_ledger_retry(l, b->list);
    l->stats.strays += !b->idle;
    b->used = false;
}

/* An answer can get lost only with the binder's connection; then nobody else would ever ask again.
 */
static void take_back_unanswered(struct bh_ledger *l, struct bh_binder *b, uint64_t now_ns)
{
    for (struct bh_work *w = b->list, *next; w; w = next) {
        next = w->next;
        if (now_ns - w->sent_ns > l->answer_ns)
            bh_ledger_retry(l, w);
    }
}

unsigned bh_ledger_expire(struct bh_ledger *l, uint64_t now_ns)
{
    bool answers = now_ns - l->answers_looked_ns > BH_MIN(ANSWERS_EVERY_NS, l->answer_ns);
    unsigned n = 0;

    if (answers)
        l->answers_looked_ns = now_ns;
    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++) {
        struct bh_binder *b = &l->binders[i];
        if (!b->used)
            continue;
        if (now_ns - b->last_seen_ns > l->silence_ns) {
            bh_ledger_drop_binder(l, b);
            n++;
        } else if (answers) {
            take_back_unanswered(l, b, now_ns);
        }
    }
    return n;
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

/* What is parked behind it goes with it: nobody has seen that either. */
static void recall(struct bh_ledger *l, struct bh_work *w, void (*fn)(void *arg, struct bh_work *w),
                   void *arg)
{
    struct bh_work *parked = bh_take_ptr(w->successor);

    fn(arg, w);
    forget(l, w);
    bh_work_free(w);
    if (!parked)
        return;
    fn(arg, parked);
    if (parked->kind == BERTH__WORK_KIND__WORK_BIND)
        (void)bh_map_del(&l->bind_by_uid, parked->uid, strlen(parked->uid));
    bh_work_free(parked);
    l->n_parked--;
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
        for (struct bh_work *w = l->head[lane], *next; w; w = next) {
            next = w->next;
            if (!all && w->term == l->term)
                continue;
            recall(l, w, fn, arg);
            n++;
        }
    return n;
}

static uint32_t room(const struct bh_binder *b)
{
    return b->greeted && b->out < b->window ? b->window - b->out : 0;
}

/* Who has the most room, without those that have nothing to do in this flush. But a little work all
 * goes to one: a binder wakes up for ten items as for one. */
static struct bh_binder *richest(struct bh_ledger *l)
{
    struct bh_binder *best = NULL;

    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++) {
        struct bh_binder *b = &l->binders[i];
        if (!b->used || b->passed == l->flushes || !room(b))
            continue;
        if (b->out < b->window / COMPANY)
            return b;
        if (!best || room(b) > room(best))
            best = b;
    }
    return best;
}

/* The binder that writes all events about a pod, as long as the same binders are there: what
 * repeats becomes a series, and the binder keeps the series. */
static const struct bh_binder *home_of(const struct bh_ledger *l, const char *uid)
{
    unsigned n = 0, k;

    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++)
        n += l->binders[i].used && l->binders[i].greeted;
    if (n < 2)
        return NULL;
    k = (unsigned)(bh_hash(uid, strlen(uid), 0) % n);
    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++)
        if (l->binders[i].used && l->binders[i].greeted && k-- == 0)
            return &l->binders[i];
    return NULL;
}

/* An event may go elsewhere when its home has no room, and when so many wait that looking for each
 * one's home would cost more than a repeated event. */
static bool takes(const struct bh_ledger *l, const struct bh_binder *b, const struct bh_work *w)
{
    const struct bh_binder *home;

    if (w->kind != BERTH__WORK_KIND__WORK_EVENT || l->n_lane[LANE_EVENTS] > HOMELESS_EVENTS)
        return true;
    home = home_of(l, w->uid);
    return !home || home == b || !room(home);
}

/* ---- the wire ----------------------------------------------------------------------------------
 */

struct wire_item {
    Berth__WorkItem item;
    Berth__EventText event;
    Berth__Condition cond;
    Berth__ObjectWrite write;
};

static ProtobufCBinaryData bytes_of(const struct bh_buf *b)
{
    return (ProtobufCBinaryData){b->n, (uint8_t *)b->p};
}

static void write_to_wire(const struct bh_object_write *w, Berth__ObjectWrite *o)
{
    berth__object_write__init(o);
    o->namespace_ = w->namespace_;
    o->name = w->name;
    o->uid = w->uid;
    o->resource_version = w->resource_version;
    o->has_object = true;
    o->object = bytes_of(&w->object);
    o->has_pod_status = w->pod_status.n > 0;
    o->pod_status = bytes_of(&w->pod_status);
}

static void to_wire(const struct bh_work *w, struct wire_item *o)
{
    berth__work_item__init(&o->item);
    o->item.has_id = o->item.has_kind = o->item.has_attempt = true;
    o->item.id = w->id;
    o->item.kind = w->kind;
    o->item.attempt = w->attempt;
    o->item.namespace_ = w->namespace_;
    o->item.name = w->name;
    o->item.uid = w->uid;
    o->item.node = w->node;
    if (w->event_reason) {
        berth__event_text__init(&o->event);
        o->event.type = w->event_type;
        o->event.reason = w->event_reason;
        o->event.action = w->event_action;
        o->event.note = w->event_note;
        o->event.reporting_controller = w->event_controller;
        o->event.regarding_resource_version = w->event_rv;
        o->item.event = &o->event;
    }
    if (w->cond_type) {
        berth__condition__init(&o->cond);
        o->cond.type = w->cond_type;
        o->cond.status = w->cond_status;
        o->cond.reason = w->cond_reason;
        o->cond.message = w->cond_message;
        o->cond.has_observed_generation = true;
        o->cond.observed_generation = w->cond_generation;
        o->cond.has_transition = true;
        o->cond.transition = w->cond_transition;
        o->item.condition = &o->cond;
    }
    if (w->write) {
        write_to_wire(w->write, &o->write);
        o->item.write = &o->write;
    }
    if (w->set_nominated) {
        o->item.has_set_nominated_node = o->item.set_nominated_node = true;
        o->item.nominated_node = w->nominated ? w->nominated : (char *)(uintptr_t) "";
    }
}

bool bh_work_fits(const struct bh_work *w)
{
    Berth__WorkBatch batch = BERTH__WORK_BATCH__INIT;
    Berth__Envelope env = BERTH__ENVELOPE__INIT;
    struct wire_item wire;
    Berth__WorkItem *item = &wire.item;

    to_wire(w, &wire);
    batch.has_epoch = true;
    batch.n_item = 1;
    batch.item = &item;
    env.work = &batch;
    return berth__envelope__get_packed_size(&env) < BH_BUS_MAX_BYTES / 2 && !bh_bus_validate(&env);
}

/* The next items in priority order; they stay queued until the bus took them. */
static unsigned collect(struct bh_ledger *l, const struct bh_binder *b, struct bh_work **work,
                        struct wire_item *wire, Berth__WorkItem **items, unsigned max)
{
    unsigned n = 0;

    for (unsigned lane = 0; lane <= LANE_EVENTS; lane++)
        for (struct bh_work *w = l->head[lane]; w && n < max; w = w->next) {
            if (!takes(l, b, w))
                continue;
            to_wire(w, &wire[n]);
            items[n] = &wire[n].item;
            work[n++] = w;
        }
    return n;
}

/* A single item that the bus will not carry: too long a text. Nobody can write it, so it ends here.
 */
static void refuse(struct bh_ledger *l, struct bh_work *w)
{
    /* names are checked where pods come in, objects before they are added */
    bh_assert(w->kind != BERTH__WORK_KIND__WORK_BIND && !w->write);
    l->stats.refused++;
    bh_ledger_finish(l, w);
}

static unsigned send_batch(struct bh_ledger *l, struct bh_bus *bus, struct bh_binder *b,
                           Berth__WorkBatch *batch, uint64_t now_ns)
{
    static struct wire_item wire[BATCH_ITEMS]; /* one thread; too large for the stack */
    Berth__WorkItem *items[BATCH_ITEMS];
    struct bh_work *work[BATCH_ITEMS];
    Berth__Envelope env = BERTH__ENVELOPE__INIT;
    unsigned n = collect(l, b, work, wire, items, BH_MIN(room(b), BATCH_ITEMS));
    enum bh_bus_outcome o;

    if (!n) {
        b->passed = l->flushes;
        return 0;
    }

    batch->item = items;
    env.work = batch;
    do { /* a batch that breaks a rule is tried in halves, down to the item that does */
        batch->n_item = n;
        o = bh_bus_send(bus, &b->peer, &env);
    } while (o == BH_BUS_BAD && n > 1 && (n /= 2));
    if (o == BH_BUS_BAD) {
        refuse(l, work[0]);
        return 0;
    }
    if (o == BH_BUS_NO_PEER) {
        bh_ledger_drop_binder(l, b);
        return 0;
    }
    if (o != BH_BUS_OK) { /* its queue is full: no more room until it speaks again */
        b->window = 0;
        return 0;
    }
    for (unsigned i = 0; i < n; i++) {
        lane_remove(l, work[i]);
        work[i]->sent_ns = now_ns;
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
    while ((l->head[0] || l->head[1] || l->head[2] || l->head[3]) && (b = richest(l)))
        total += send_batch(l, bus, b, &batch, now_ns);
    return total;
}

uint64_t bh_ledger_binds(const struct bh_ledger *l)
{
    return l->bind_by_uid.len;
}

void bh_ledger_stats(const struct bh_ledger *l, struct bh_ledger_stats *ret)
{
    *ret = l->stats;
    ret->queued = l->n_parked;
    ret->out = l->outside.out;
    ret->binders = 0;
    for (unsigned i = 0; i < LANES; i++)
        ret->queued += l->n_lane[i];
    for (size_t i = 0; i < BH_LEDGER_MAX_BINDERS; i++)
        if (l->binders[i].used) {
            ret->binders++;
            ret->out += l->binders[i].out;
        }
    ret->binds = l->bind_by_uid.len;
}
