/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/queue/flight.c - events that arrive while pods are in flight
 *
 * One FIFO mixes "pod popped here" markers and events, so that each pod replays exactly what
 * happened after its own pop. Events are copied only while at least one pod is in flight: in Berth
 * a pod is in flight from pop to Permit, within one turn of the duty cycle, so in practice only
 * waits at Permit and asynchronous preemption fill this list.
 * Upstream: pkg/scheduler/backend/queue/active_queue.go (inFlightPods, inFlightEvents); differences:
 *           the list has a bound. A pod may wait for minutes, and each status of a pod is an event.
 */
#include "scheduler/queue/queue_int.h"

static struct flight_event *append_event(struct bh_queue *q)
{
    struct flight_event *f = bh_calloc(1, sizeof(*f));

    TAILQ_INSERT_TAIL(&q->flight, &f->node, link);
    q->n_flight_events++;
    return f;
}

static void drop_event(struct bh_queue *q, struct flight_event *f)
{
    TAILQ_REMOVE(&q->flight, &f->node, link);
    q->n_flight_events--;
    for (size_t i = 0; i < BH_ARRAY_LEN(f->copies); i++)
        free(f->copies[i]);
    bh_pod_dropp(&f->activate);
    free(f);
}

/* Past the bound the events give way to one that stands for whatever happened. */
static struct flight_event *next_event(struct bh_queue *q)
{
    struct flight_node *next;

    if (q->n_flight_events < BH_QUEUE_MAX_EVENTS)
        return append_event(q);
    for (struct flight_node *f = TAILQ_FIRST(&q->flight); f; f = next) {
        next = TAILQ_NEXT(f, link);
        if (!f->pod)
            drop_event(q, bh_flight_event(f));
    }
    append_event(q)->unseen = true;
    return append_event(q);
}

static void *copy_rec(const void *rec)
{
    return rec ? bh_memdup(rec, ((const struct bh_rec_head *)rec)->size) : NULL;
}

void bh_queue_flight_record(struct bh_queue *q, const struct bh_cluster_event *ev)
{
    if (q->count.in_flight == 0)
        return;
    struct flight_event *f = next_event(q);
    f->ev = *ev;
    f->ev.old_node = f->copies[0] = copy_rec(ev->old_node);
    f->ev.new_node = f->copies[1] = copy_rec(ev->new_node);
    f->ev.old_pod = f->copies[2] = copy_rec(ev->old_pod);
    f->ev.new_pod = f->copies[3] = copy_rec(ev->new_pod);
    f->ev.old_shape = f->copies[4] = copy_rec(ev->old_shape);
    f->ev.new_shape = f->copies[5] = copy_rec(ev->new_shape);
}

void bh_queue_flight_activate(struct bh_queue *q, struct bh_pod_state *s)
{
    next_event(q)->activate = bh_pod_hold(s);
}

void bh_queue_flight_unseen(struct bh_queue *q)
{
    if (q->count.in_flight)
        next_event(q)->unseen = true;
}

void bh_queue_flight_begin(struct bh_queue *q, struct entry *e)
{
    bh_assert(!e->marker.pod);
    e->marker.pod = e;
    TAILQ_INSERT_TAIL(&q->flight, &e->marker, link);
    q->count.in_flight++;
}

/* Drops the pod's marker and every event in front of the first marker that is left. */
void bh_queue_flight_end(struct bh_queue *q, struct entry *e)
{
    struct flight_node *f;

    if (!e->marker.pod)
        return;
    TAILQ_REMOVE(&q->flight, &e->marker, link);
    e->marker.pod = NULL;
    q->count.in_flight--;
    while ((f = TAILQ_FIRST(&q->flight)) && !f->pod)
        drop_event(q, bh_flight_event(f));
}

enum worth bh_queue_flight_replay(struct bh_queue *q, struct entry *e)
{
    enum worth best = WORTH_SKIP;

    bh_assert(e->marker.pod);
    for (struct flight_node *f = &e->marker; (f = TAILQ_NEXT(f, link));) {
        enum worth w = WORTH_SKIP;
        bool by_pod;
        if (f->pod)
            continue;
        const struct flight_event *ev = bh_flight_event(f);
        if (ev->unseen)
            w = WORTH_AFTER_BACKOFF;
        else if (ev->activate)
            w = ev->activate == e->pub.pod ? WORTH_AFTER_BACKOFF : WORTH_SKIP;
        else
            w = bh_queue_worth(q, e, &ev->ev, &by_pod);
        if (w == WORTH_IMMEDIATELY)
            return w;
        if (w == WORTH_AFTER_BACKOFF) {
            best = w;
            if (!e->pendings)
                return best;
        }
    }
    return best;
}
