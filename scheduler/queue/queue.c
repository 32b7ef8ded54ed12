/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/queue.c - pods that wait, and the moves between the places
 *
 * Owns:       every entry, its record copy and its shape reference.
 * Invariants: see queue_int.h.
 * Runs in:    the scheduler's duty cycle. No locks.
 * Upstream:   pkg/scheduler/backend/queue/scheduling_queue.go, backoff_queue.go; differences: pods
 *             are keyed by uid everywhere (the watcher splits a re-created name into delete and
 *             add).
 */
#include "scheduler/queue/queue_int.h"

static bool less_active(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->priority != y->priority)
        return x->priority > y->priority;
    return x->pub.timestamp_ns < y->pub.timestamp_ns;
}

static bool less_backoff(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->backoff_expiry_ns != y->backoff_expiry_ns)
        return x->backoff_expiry_ns < y->backoff_expiry_ns;
    return less_active(a, b);
}

static bool less_error(const void *a, const void *b)
{
    return ((const struct entry *)a)->backoff_expiry_ns <
           ((const struct entry *)b)->backoff_expiry_ns;
}

/* ---- a plugin's order ------------------------------------------------------------------------ */

#define SETTLES 64u /* steps to the first pod by a plugin's order */

static struct bh_queue_key key_of(const struct bh_queue *q, const struct entry *e)
{
    const struct bh_queued_pod *p = &e->pub;

    return (struct bh_queue_key){.waiting = &p->pending,
                                 .shape = bh_engine_shape_rec(q->engine, p->pending.shape),
                                 .attempts = p->attempts,
                                 .timestamp_ns = p->timestamp_ns,
                                 .initial_attempt_ns = p->initial_attempt_ns};
}

static bool less_active_by_plugin(const void *x, const void *y)
{
    const struct bh_queue *q =
        bh_container_of(((const struct entry *)x)->pub.pod->table, struct bh_queue, pods);
    const struct bh_queue_key a = key_of(q, x), b = key_of(q, y);

    return bh_engine_less(q->engine, &a, &b);
}

static bool less_backoff_by_plugin(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->backoff_expiry_ns != y->backoff_expiry_ns)
        return x->backoff_expiry_ns < y->backoff_expiry_ns;
    return less_active_by_plugin(a, b);
}

struct bh_queue *bh_queue_new(struct bh_engine *e, const struct bh_queue_options *o)
{
    struct bh_queue *q = bh_calloc(1, sizeof(*q));

    q->engine = e;
    q->sorts = bh_engine_sorts(e);
    q->pods.room = sizeof(struct entry);
    q->o = *o;
    bh_heap_init(&q->active, offsetof(struct entry, heap_index),
                 q->sorts ? less_active_by_plugin : less_active);
    bh_heap_init(&q->backoff, offsetof(struct entry, heap_index),
                 q->sorts ? less_backoff_by_plugin : less_backoff);
    bh_heap_init(&q->error_backoff, offsetof(struct entry, heap_index), less_error);
    for (size_t i = 0; i < BH_ARRAY_LEN(q->pool); i++)
        TAILQ_INIT(&q->pool[i]);
    TAILQ_INIT(&q->flight);
    return q;
}

static uint32_t plugin_index(struct bh_queue *q, const char *name)
{
    for (uint32_t i = 0; i < q->n_plugins; i++)
        if (bh_streq(q->plugins[i], name))
            return i;
    /* Plugins come from the configuration, so the set is small and fixed; past the bound names share
     * the last index, under one that no plugin has: every event is worth another try then. */
    if (q->n_plugins >= BH_QUEUE_OTHERS) {
        if (q->n_plugins == BH_QUEUE_OTHERS)
            q->plugins[q->n_plugins++] = bh_strdup("(others)");
        return BH_QUEUE_OTHERS;
    }
    q->plugins[q->n_plugins] = bh_strdup(name);
    if (bh_engine_hints_by_essence(name))
        q->by_essence |= UINT64_C(1) << q->n_plugins;
    return q->n_plugins++;
}

/* ---- backoff --------------------------------------------------------------------------------- */

static int64_t floor_s(int64_t ns)
{
    return ns - ns % NS_PER_S;
}

static int64_t backoff_expiry(struct bh_queue *q, struct entry *e)
{
    uint32_t count =
        e->pub.consecutive_errors ? e->pub.consecutive_errors : e->pub.unschedulable_count;

    if (e->backoff_cached)
        return e->backoff_expiry_ns;
    if (q->o.max_backoff_ns == 0 || count == 0) {
        e->backoff_expiry_ns = 0;
    } else {
        uint32_t shift = BH_MIN(count - 1, 62u);
        int64_t d = q->o.initial_backoff_ns > (q->o.max_backoff_ns >> shift)
                        ? q->o.max_backoff_ns
                        : q->o.initial_backoff_ns << shift;
        e->backoff_expiry_ns = floor_s(e->pub.timestamp_ns + d);
    }
    e->backoff_cached = true;
    return e->backoff_expiry_ns;
}

static bool backing_off(struct bh_queue *q, struct entry *e, int64_t now_ns)
{
    int64_t expiry = backoff_expiry(q, e);

    return expiry != 0 && expiry >= floor_s(now_ns);
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool waits(enum bh_queue_place p)
{
    return p != BH_Q_NONE && p != BH_Q_IN_FLIGHT && p != BH_Q_BINDING && p != BH_Q_WAITING;
}

static void set_place(struct bh_queue *q, struct entry *e, enum bh_queue_place p)
{
    static const size_t off[] = {
        [BH_Q_ACTIVE] = offsetof(struct bh_queue_stats, active),
        [BH_Q_BACKOFF] = offsetof(struct bh_queue_stats, backoff),
        [BH_Q_ERROR_BACKOFF] = offsetof(struct bh_queue_stats, backoff),
        [BH_Q_UNSCHEDULABLE] = offsetof(struct bh_queue_stats, unschedulable),
        [BH_Q_GATED] = offsetof(struct bh_queue_stats, gated),
        [BH_Q_IN_FLIGHT] = offsetof(struct bh_queue_stats, popped),
        [BH_Q_BINDING] = offsetof(struct bh_queue_stats, binding),
        [BH_Q_WAITING] = offsetof(struct bh_queue_stats, binding),
    };

    enum bh_queue_place *at = &e->pub.pod->place;

    /* in_flight is counted with the markers (flight.c) */
    if (*at != BH_Q_NONE)
        --*(uint64_t *)((char *)&q->count + off[*at]);
    *at = p;
    if (p != BH_Q_NONE)
        ++*(uint64_t *)((char *)&q->count + off[p]);
}

static void unlink_entry(struct bh_queue *q, struct entry *e)
{
    struct bh_heap *const heaps[] = {[BH_Q_ACTIVE] = &q->active,
                                     [BH_Q_BACKOFF] = &q->backoff,
                                     [BH_Q_ERROR_BACKOFF] = &q->error_backoff};
    const enum bh_queue_place at = e->pub.pod->place;

    if (at < BH_ARRAY_LEN(heaps) && heaps[at])
        bh_heap_remove(heaps[at], e);
    else
        bh_queue_pool_unlink(q, e);
    set_place(q, e, BH_Q_NONE);
}

static void count_incoming(struct bh_queue *q, const char *queue, const char *label)
{
    if (q->incoming)
        q->incoming(q->incoming_arg, queue, label);
}

/* Labels are few, and mostly that of the pod before. */
static void set_trigger(struct bh_queue *q, struct entry *e, const char *label)
{
    uint16_t i = q->last_label;

    if (!i || !bh_streq(q->labels[i], label)) {
        for (i = 1; i < q->n_labels && !bh_streq(q->labels[i], label); i++)
            ;
        if (i >= BH_QUEUE_MAX_LABELS)
            return;
        if (i >= q->n_labels) {
            q->labels[i] = bh_strdup(label);
            q->n_labels = i + 1;
        }
        q->last_label = i;
    }
    e->pub.trigger = i;
}

const char *bh_queue_trigger(const struct bh_queue *q, const struct bh_queued_pod *p)
{
    return p->trigger && p->trigger < q->n_labels ? q->labels[p->trigger] : "";
}

/* PreEnqueue: true when the pod may pass; else it is marked as gated. */
static bool passes_gates(struct bh_queue *q, struct entry *e)
{
    const struct bh_status *s = bh_engine_pre_enqueue(q->engine, &e->pub.pending);

    if (!s && !bh_pod_evicts(e->pub.pod)) {
        e->gating_plugin = BH_QUEUE_NO_PLUGIN;
        return true;
    }
    e->gating_plugin = plugin_index(q, !s ? "DefaultPreemption" : s->plugin ? s->plugin : "");
    e->rejectors |= UINT64_C(1) << e->gating_plugin;
    bh_queue_count_rejected(q, e, e->counted | UINT64_C(1) << e->gating_plugin);
    return false;
}

/* Of a group that is scheduled as one. */
static bool is_member(const struct bh_queue *q, const struct entry *e)
{
    return e->pub.pending.pod->group != BH_SYM_NONE &&
           bh_engine_group_of(q->engine, &e->pub.pending);
}

static void to_pool(struct bh_queue *q, struct entry *e, const char *label)
{
    unlink_entry(q, e);
    bh_queue_pool_link(q, e);
    set_place(q, e, e->gating_plugin == BH_QUEUE_NO_PLUGIN ? BH_Q_UNSCHEDULABLE : BH_Q_GATED);
    count_incoming(q, "unschedulable", label);
}

static void move_to_active(struct bh_queue *q, struct entry *e, const char *label,
                           bool from_backoff, int64_t now_ns)
{
    if (!from_backoff && !passes_gates(q, e)) {
        to_pool(q, e, label);
        return;
    }
    unlink_entry(q, e);
    if (!from_backoff)
        set_trigger(q, e, label);
    if (!e->pub.initial_attempt_ns)
        e->pub.initial_attempt_ns = now_ns;
    bh_heap_push(&q->active, e);
    set_place(q, e, BH_Q_ACTIVE);
    count_incoming(q, "active", label);
}

static void move_to_backoff(struct bh_queue *q, struct entry *e, const char *label)
{
    /* A member would drag its whole group out with it: one that is popped before its time, because
     * nothing else is active, would be tried again and again without a pause. So would one of
     * Coscheduling's, whose first pod with a node activates the others. */
    bool error = !(e->rejectors | e->pendings) || is_member(q, e) ||
                 bh_engine_labelled_group_of(q->engine, &e->pub.pending);

    if (!passes_gates(q, e)) {
        to_pool(q, e, label);
        return;
    }
    unlink_entry(q, e);
    set_trigger(q, e, label);
    (void)backoff_expiry(q, e);
    bh_heap_push(error ? &q->error_backoff : &q->backoff, e);
    set_place(q, e, error ? BH_Q_ERROR_BACKOFF : BH_Q_BACKOFF);
    count_incoming(q, "backoff", label);
}

void bh_queue_requeue(struct bh_queue *q, struct entry *e, enum worth w, const char *label,
                      int64_t now_ns)
{
    if (w == WORTH_SKIP) {
        to_pool(q, e, label);
    } else if (w == WORTH_AFTER_BACKOFF && backing_off(q, e, now_ns)) {
        move_to_backoff(q, e, label);
    } else {
        move_to_active(q, e, label, false, now_ns);
    }
}

/* ---- objects --------------------------------------------------------------------------------- */

static void set_object(struct bh_queue *q, struct entry *e, const struct bh_pod_rec *pod,
                       bh_shape_id shape, const char *resource_version)
{
    free((void *)(uintptr_t)e->pub.pending.pod);
    free(e->pub.resource_version);
    e->pub.pending.pod = bh_memdup(pod, pod->h.size);
    e->pub.pending.shape = shape;
    e->pub.resource_version = bh_strdup(resource_version ? resource_version : "");
    e->pub.told_nomination = pod->nominated_node;
    e->priority = bh_engine_shape_rec(q->engine, shape)->priority;
    e->sync_generation = q->sync_generation;
    bh_engine_waits(q->engine, &e->pub.pending, true);
}

struct bh_pods *bh_queue_pods(struct bh_queue *q)
{
    return &q->pods;
}

struct bh_pod_state *bh_queue_pod(const struct bh_queue *q, struct bh_str uid)
{
    return bh_pods_find(&q->pods, uid);
}

/* The pod may be the one that others of its group waited for. When it is held back for its group itself,
 * so are they. */
static void tell_group(struct bh_queue *q, const struct entry *e, int64_t now_ns)
{
    const struct bh_cluster_event ev = {.resource = BH_EV_POD_UNSCHEDULED,
                                        .action = BH_EV_ADD,
                                        .new_pod = e->pub.pending.pod,
                                        .new_shape =
                                            bh_engine_shape_rec(q->engine, e->pub.pending.shape)};

    if (is_member(q, e) && (e->gating_plugin == BH_QUEUE_NO_PLUGIN ||
                            !bh_streq(q->plugins[e->gating_plugin], "GangScheduling")))
        bh_queue_event(q, &ev, now_ns);
}

/* Pods that come together are one after the other, as by a clock that moves in between: equals would be
 * popped in any order, and of two gangs with room for one the later one would go. */
static int64_t time_of_add(struct bh_queue *q, int64_t now_ns)
{
    if (now_ns != q->last_add_ns)
        q->n_adds = 0;
    q->last_add_ns = now_ns;
    return now_ns + q->n_adds++;
}

static void add(struct bh_queue *q, struct bh_pod_state *s, const struct bh_pod_rec *pod,
                bh_shape_id shape, const char *resource_version, int64_t now_ns)
{
    s = s ? bh_pod_hold(s) : bh_pods_hold(&q->pods, bh_rec_text(pod, pod->uid));
    struct entry *e = (struct entry *)s->room;
    *e = (struct entry){.pub = {.pod = s, .timestamp_ns = time_of_add(q, now_ns)},
                        .heap_index = BH_HEAP_NONE,
                        .gating_plugin = BH_QUEUE_NO_PLUGIN};
    e->pub.pending.nomination = &s->nomination;
    s->queued = &e->pub;
    q->count.pods++;
    set_object(q, e, pod, shape, resource_version);
    move_to_active(q, e, "UnschedulablePodAdd", false, now_ns);
    bh_engine_nominate(q->engine, &e->pub.pending, pod->nominated_node);
    tell_group(q, e, now_ns);
}

/* A nomination that only lives in memory survives an unrelated update; an explicit change of
 * status.nominatedNodeName wins. */
static void renominate(struct bh_queue *q, struct entry *e, bh_sym old_node)
{
    bh_sym new_node = e->pub.pending.pod->nominated_node;

    if (old_node != BH_SYM_NONE || new_node != BH_SYM_NONE)
        bh_engine_nominate(q->engine, &e->pub.pending, new_node);
}

void bh_queue_update(struct bh_queue *q, struct bh_pod_state *s, const struct bh_pod_rec *pod,
                     bh_shape_id shape, const char *resource_version, int64_t now_ns)
{
    struct entry *e = bh_queue_entry(s ? s : bh_pods_find(&q->pods, bh_rec_text(pod, pod->uid)));
    struct bh_cluster_event ev = {.resource = BH_EV_POD_UNSCHEDULED};
    BH_CLEANUP(bh_freep) struct bh_pod_rec *old = NULL;
    uint32_t bits[8];

    if (!e) {
        add(q, s, pod, shape, resource_version, now_ns);
        return;
    }
    if (e->pub.pending.pod->resource_version == pod->resource_version &&
        pod->resource_version != 0) {
        e->sync_generation = q->sync_generation;
        bh_engine_shape_unref(q->engine, shape);
        return;
    }
    s = e->pub.pod;
    old = (struct bh_pod_rec *)(uintptr_t)e->pub.pending.pod;
    bh_shape_id old_shape = e->pub.pending.shape;
    e->pub.pending.pod = NULL;
    bool pooled = e->group;
    bh_queue_pool_unlink(q, e);
    set_object(q, e, pod, shape, resource_version);
    if (pooled) /* perhaps of another group now */
        bh_queue_pool_link(q, e);
    ev.old_pod = old;
    ev.new_pod = e->pub.pending.pod;
    ev.old_shape = bh_engine_shape_rec(q->engine, old_shape);
    ev.new_shape = bh_engine_shape_rec(q->engine, shape);
    unsigned n = bh_pod_diff(old, ev.old_shape, ev.new_pod, ev.new_shape, bits);
    if (s->place == BH_Q_IN_FLIGHT || s->place == BH_Q_WAITING) {
        for (unsigned i = 0; i < n; i++) {
            ev.action = bits[i];
            bh_queue_flight_record(q, &ev);
        }
    } else if (s->place != BH_Q_BINDING) {
        /* One whose node is chosen needs the object only if the bind fails. */
        renominate(q, e, old->nominated_node);
        if (s->place == BH_Q_ACTIVE)
            bh_heap_fix(&q->active, e);
        else if (s->place == BH_Q_BACKOFF)
            bh_heap_fix(&q->backoff, e);
        for (unsigned i = 0; i < n && (s->place == BH_Q_UNSCHEDULABLE || s->place == BH_Q_GATED);
             i++) {
            char label[96];
            bool by_pod;
            ev.action = bits[i];
            enum worth w = bh_queue_worth(q, e, &ev, &by_pod);
            if (w != WORTH_SKIP)
                bh_queue_requeue(q, e, w, bh_queue_event_label(&ev, label), now_ns);
        }
    }
    bh_engine_shape_unref(q->engine, old_shape);
}

void bh_queue_told(struct bh_pod_state *s, uint64_t condition, bh_sym nomination)
{
    if (!s || !s->queued)
        return;
    s->queued->told_condition = condition;
    s->queued->told_nomination = nomination;
}

static void drop_entry(struct bh_queue *q, struct entry *e)
{
    bh_engine_waits(q->engine, &e->pub.pending, false);
    unlink_entry(q, e);
    e->pub.pod->queued = NULL;
    bh_engine_nomination_stays(&e->pub.pod->nomination);
    q->count.pods--;
    bh_queue_flight_end(q, e);
    bh_queue_pool_unlink(q, e);
    bh_queue_count_rejected(q, e, 0);
    bh_engine_shape_unref(q->engine, e->pub.pending.shape);
    free((void *)(uintptr_t)e->pub.pending.pod);
    free(e->pub.resource_version);
    free(e->pub.last_reason);
    free(e->pub.last_message);
    bh_pod_drop(e->pub.pod);
}

void bh_queue_delete(struct bh_queue *q, struct bh_pod_state *s)
{
    struct entry *e = bh_queue_entry(s);

    if (e) {
        bh_engine_nominate(q->engine, &e->pub.pending, BH_SYM_NONE);
        drop_entry(q, e);
    } else if (s) { /* one that needed no decision any more keeps its promise until now */
        bh_engine_unnominate(q->engine, bh_pod_uid(s));
    }
}

void bh_queue_free(struct bh_queue *q)
{
    struct bh_map_entry *m;

    if (!q)
        return;
    for (size_t it = 0; (m = bh_map_next(&q->pods.by_uid, &it));)
        if (bh_queue_entry_at(m))
            drop_entry(q, bh_queue_entry_at(m));
    bh_pods_fini(&q->pods);
    bh_map_fini(&q->groups);
    bh_buf_fini(&q->key);
    bh_heap_fini(&q->active);
    bh_heap_fini(&q->backoff);
    bh_heap_fini(&q->error_backoff);
    for (uint32_t i = 0; i < q->n_plugins; i++)
        free(q->plugins[i]);
    for (uint32_t i = 0; i < q->n_labels; i++)
        free(q->labels[i]);
    free(q->rejected);
    free(q);
}

/* ---- the cycle's side ------------------------------------------------------------------------ */

static struct bh_queued_pod *begin_attempt(struct bh_queue *q, struct entry *e, int64_t now_ns)
{
    unlink_entry(q, e);
    set_place(q, e, BH_Q_IN_FLIGHT);
    e->pub.attempts++;
    e->pub.popped_ns = now_ns;
    bh_queue_count_rejected(q, e, 0);
    bh_queue_flight_begin(q, e);
    return &e->pub;
}

/* What a plugin says of two pods may have changed since they were compared: whoever is in front is
 * compared again, until one stays there. */
static struct entry *first_of(const struct bh_queue *q, struct bh_heap *h)
{
    struct entry *e = bh_heap_peek(h);

    for (unsigned i = 0; q->sorts && e && i < SETTLES; i++) {
        bh_heap_fix(h, e);
        if (bh_heap_peek(h) == e)
            break;
        e = bh_heap_peek(h);
    }
    return e;
}

struct bh_queued_pod *bh_queue_pop(struct bh_queue *q, int64_t now_ns)
{
    struct entry *e = first_of(q, &q->active);

    if (!e) {
        e = q->o.keep_backoff ? NULL : first_of(q, &q->backoff);
        if (!e)
            return NULL;
        count_incoming(q, "active", "PopFromBackoffQ");
    }
    return begin_attempt(q, e, now_ns);
}

struct bh_queued_pod *bh_queue_take(struct bh_queue *q, struct bh_pod_state *s, int64_t now_ns)
{
    struct entry *e = bh_queue_entry(s);

    return e && waits(s->place) ? begin_attempt(q, e, now_ns) : NULL;
}

struct bh_queued_pod *bh_queue_take_member(struct bh_queue *q, struct bh_pod_state *s,
                                           int64_t now_ns)
{
    struct entry *e = bh_queue_entry(s);

    if (!e || !waits(s->place))
        return NULL;
    bh_queue_activate(q, s, now_ns);
    return s->place == BH_Q_ACTIVE ? begin_attempt(q, e, now_ns) : NULL;
}

void bh_queue_binding(struct bh_queue *q, struct bh_pod_state *s)
{
    struct entry *e = bh_queue_entry(s);

    if (!e || (s->place != BH_Q_IN_FLIGHT && s->place != BH_Q_WAITING))
        return;
    bh_queue_flight_end(q, e);
    set_place(q, e, BH_Q_BINDING);
}

void bh_queue_waiting(struct bh_queue *q, struct bh_pod_state *s)
{
    struct entry *e = bh_queue_entry(s);

    if (e && s->place == BH_Q_IN_FLIGHT)
        set_place(q, e, BH_Q_WAITING);
}

void bh_queue_done(struct bh_queue *q, struct bh_pod_state *s)
{
    struct entry *e = bh_queue_entry(s);

    if (!e || waits(s->place))
        return;
    /* One that is on its node has its room there. One that is being deleted keeps what it was promised
     * until it is gone, as upstream. */
    if (!(e->pub.pending.pod->flags & BH_POD_TERMINATING))
        bh_engine_nominate(q->engine, &e->pub.pending, BH_SYM_NONE);
    drop_entry(q, e);
}

static uint64_t plugin_set(struct bh_queue *q, const char *const *names, uint32_t n)
{
    uint64_t set = 0;

    for (uint32_t i = 0; i < n; i++)
        set |= UINT64_C(1) << plugin_index(q, names[i]);
    return set;
}

void bh_queue_return(struct bh_queue *q, struct bh_pod_state *s, const char *const *plugins,
                     uint32_t n_plugins, const char *const *pending_plugins, uint32_t n_pending,
                     int64_t now_ns)
{
    struct entry *e = bh_queue_entry(s);

    if (!e || waits(s->place))
        return;
    e->pendings = plugin_set(q, pending_plugins, n_pending);
    e->rejectors = plugin_set(q, plugins, n_plugins) | e->pendings;
    e->gating_plugin = BH_QUEUE_NO_PLUGIN;
    bh_queue_count_rejected(q, e, e->rejectors);
    e->pub.flushed = false;
    e->pub.timestamp_ns = now_ns;
    e->backoff_cached = false;
    if (e->rejectors) {
        e->pub.unschedulable_count++;
        e->pub.consecutive_errors = 0;
    } else {
        e->pub.consecutive_errors++;
    }
    /* without a rejector, or without a marker (after binding), nothing can be matched: backoff; what
     * happened to one member says nothing of the group */
    enum worth w = e->rejectors && e->marker.pod && !is_member(q, e) ? bh_queue_flight_replay(q, e)
                                                                     : WORTH_AFTER_BACKOFF;
    bh_queue_flight_end(q, e);
    bh_queue_requeue(q, e, w, "ScheduleAttemptFailure", now_ns);
}

void bh_queue_activate(struct bh_queue *q, struct bh_pod_state *s, int64_t now_ns)
{
    struct entry *e = bh_queue_entry(s);

    if (!e)
        return;
    if (s->place == BH_Q_UNSCHEDULABLE || s->place == BH_Q_GATED)
        move_to_active(q, e, "ForceActivate", false, now_ns);
    else if (s->place == BH_Q_BACKOFF || s->place == BH_Q_ERROR_BACKOFF)
        move_to_active(q, e, "ForceActivate", true, now_ns);
    else if (e->marker.pod) /* at Permit, too */
        bh_queue_flight_activate(q, s);
}

bool bh_queue_is_held(const struct bh_queue *q, uint32_t gating_plugin)
{
    return gating_plugin != BH_QUEUE_NO_PLUGIN &&
           strcmp(q->plugins[gating_plugin], "DefaultPreemption") == 0;
}

void bh_queue_release(struct bh_queue *q, struct bh_pod_state *s, int64_t now_ns)
{
    struct entry *e = bh_queue_entry(s);

    if (e && s->place == BH_Q_GATED &&
        (bh_queue_is_held(q, e->gating_plugin) || e->gating_plugin == BH_QUEUE_OTHERS))
        bh_queue_requeue(q, e, WORTH_AFTER_BACKOFF, "AssignedPodDelete", now_ns);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void flush_heap(struct bh_queue *q, struct bh_heap *h, int64_t now_ns)
{
    struct entry *e;

    while ((e = bh_heap_peek(h)) && !backing_off(q, e, now_ns))
        move_to_active(q, e, "BackoffComplete", true, now_ns);
}

void bh_queue_wake_all(struct bh_queue *q, int64_t now_ns)
{
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&q->pods.by_uid, &it));) {
        struct bh_pod_state *s = m->value;
        struct entry *e = bh_queue_entry(s);
        if (s->place == BH_Q_UNSCHEDULABLE || s->place == BH_Q_GATED)
            bh_queue_requeue(q, e, WORTH_AFTER_BACKOFF, "UnschedulableTimeout", now_ns);
    }
    bh_queue_flight_unseen(q);
}

int64_t bh_queue_tick(struct bh_queue *q, int64_t now_ns)
{
    if (now_ns >= q->hint_second_ns) {
        q->hint_samples = BH_HINT_SAMPLES;
        q->hint_second_ns = now_ns + NS_PER_S;
    }
    flush_heap(q, &q->backoff, now_ns);
    flush_heap(q, &q->error_backoff, now_ns);
    if (now_ns >= q->next_flush_ns) {
        /* Pods that waited longer than the bound are moved as by an event that helps every pod;
         * gated pods stay (they are not in UNSCHEDULABLE). Walks the pool: once in 30 s. */
        struct bh_map_entry *m;
        for (size_t it = 0; (m = bh_map_next(&q->pods.by_uid, &it));) {
            struct bh_pod_state *s = m->value;
            struct entry *e = bh_queue_entry(s);
            if (s->place == BH_Q_UNSCHEDULABLE &&
                now_ns - e->pub.timestamp_ns > q->o.max_in_unschedulable_ns) {
                e->pub.flushed = true;
                bh_queue_requeue(q, e, WORTH_AFTER_BACKOFF, "UnschedulableTimeout", now_ns);
            }
        }
        q->next_flush_ns = now_ns + 30 * NS_PER_S;
    }
    if (q->backoff.n || q->error_backoff.n)
        return NS_PER_S - now_ns % NS_PER_S;
    return q->count.unschedulable ? q->next_flush_ns - now_ns : INT64_MAX;
}

/* ---- walks and resync ------------------------------------------------------------------------ */

void bh_queue_stats(const struct bh_queue *q, struct bh_queue_stats *ret)
{
    *ret = q->count;
}

void bh_queue_on_incoming(struct bh_queue *q,
                          void (*fn)(void *arg, const char *queue, const char *event), void *arg)
{
    q->incoming = fn;
    q->incoming_arg = arg;
}

void bh_queue_sync_begin(struct bh_queue *q)
{
    q->sync_generation++;
    q->syncing = true;
}

void bh_queue_sync_end(struct bh_queue *q)
{
    struct bh_map_entry *m;

    if (!q->syncing)
        return;
    q->syncing = false;
    for (size_t it = 0; (m = bh_map_next(&q->pods.by_uid, &it));) {
        const struct entry *e = bh_queue_entry_at(m);
        if (e && e->sync_generation != q->sync_generation)
            bh_queue_delete(q, m->value);
    }
}
