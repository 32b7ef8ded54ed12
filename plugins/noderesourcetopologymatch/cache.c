/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcetopologymatch/cache.c - what pods on their way take, until their node's object knows
 *
 * A node's object is taken once and stays what it is. From Reserve on what a pod wants is held back in every
 * zone, because nobody knows which one the kubelet will take. A node that rejected a pod is dirty: once the
 * fingerprint in its object is that of the pods which run there, the object is taken anew and nothing is held
 * for them. A node to which others brought pods, or took them from it, is stale until then.
 *
 * Runs in:    epoch(), before any answer; nothing here looks at a clock of its own.
 * Upstream:   pkg/noderesourcetopology/cache/overreserve.go, foreign_pods.go, attr_watch.go. Differences:
 *             README.md.
 */
#include <stdlib.h>
#include <string.h>

#include "nrt.h"

#define TOPOLOGIES 0u /* index in kinds */

struct look {
    struct nrt_instance *in;
    struct berth_call *c;
};

/* ---- what is held ---------------------------------------------------------------------------- */

void nrt_free_held(struct nrt_seen *s)
{
    for (uint32_t i = 0; i < s->n_held; i++)
        free(s->held[i]);
    free(s->held);
    free(s->sum);
}

static void add(struct nrt_seen *s, const struct nrt_held *h, int by)
{
    for (uint32_t k = 0; k < h->n; k++) {
        uint32_t i = 0;
        while (i < s->n_sum && s->sum[i].name != h->amount[k].name)
            i++;
        if (i == s->n_sum)
            s->sum[s->n_sum++] = (struct nrt_amount){h->amount[k].name, 0};
        s->sum[i].value += by * h->amount[k].value;
    }
}

static void drop(struct nrt_seen *s, uint32_t i)
{
    add(s, s->held[i], -1);
    free(s->held[i]);
    s->held[i] = s->held[--s->n_held];
    if (!s->n_held)
        s->n_sum = 0;
}

void nrt_let_go(struct nrt_seen *s, uint64_t pod)
{
    for (uint32_t i = 0; i < s->n_held; i++)
        if (s->held[i]->pod == pod) {
            drop(s, i);
            return;
        }
}

/* For one more, with n resources. 0: no memory. */
static int make_room(struct nrt_seen *s, uint32_t n)
{
    if (s->n_held == s->cap_held) {
        uint32_t cap = s->cap_held ? 2 * s->cap_held : 4;
        struct nrt_held **more = realloc(s->held, cap * sizeof *more);
        if (!more)
            return 0;
        s->held = more;
        s->cap_held = cap;
    }
    if (s->n_sum + n > s->cap_sum) {
        struct nrt_amount *more = realloc(s->sum, (s->n_sum + n) * sizeof *more);
        if (!more)
            return 0;
        s->sum = more;
        s->cap_sum = s->n_sum + n;
    }
    return 1;
}

int nrt_hold(struct nrt_instance *in, struct berth_call *c, struct nrt_seen *s,
             const struct berth_pod *pod)
{
    const uint32_t max = 3 + nrt_host->pods->n_extended(c, pod);
    struct nrt_held *h = malloc(sizeof *h + max * sizeof h->amount[0]);
    berth_sym name;

    if (!h || !make_room(s, max)) {
        free(h);
        return 0;
    }
    *h = (struct nrt_held){.pod = nrt_pod_hash(c, pod)};
    for (uint32_t i = 0; i < max; i++) {
        int64_t value = nrt_effective(in, c, pod, i, &name);
        if (value > 0)
            h->amount[h->n++] =
                (struct nrt_amount){name, value < NRT_HELD_MAX ? value : NRT_HELD_MAX};
    }
    nrt_let_go(s, h->pod);
    if (!h->n) {
        free(h);
        return 1;
    }
    s->held[s->n_held++] = h;
    add(s, h, 1);
    return 1;
}

/* ---- who is there ---------------------------------------------------------------------------- */

/* Pods that came past this profile. s->foreign is another number when one came or went. 1: it is. */
static int look_for_foreign(struct nrt_instance *in, struct berth_call *c, struct nrt_seen *s,
                            const struct berth_node *node)
{
    const uint64_t was = s->foreign;

    s->foreign = 0;
    s->awaits = 0;
    for (uint32_t i = 0; in->detect != NRT_DETECT_NONE && i < nrt_host->nodes->n_pods(c, node);
         i++) {
        const struct berth_pod *pod = nrt_host->nodes->pod_at(c, node, i);
        if (!pod || nrt_host->pods->scheduler_name(c, pod) == in->own ||
            (in->detect == NRT_DETECT_EXCLUSIVE && !nrt_is_exclusive(in, c, pod, s->topology)))
            continue;
        s->foreign += nrt_pod_hash(c, pod) | 1;
        s->awaits |= !nrt_host->pods->started(c, pod);
    }
    return s->foreign != was;
}

/* An own pod that the kubelet has not taken up yet: no object knows of it. */
static int is_awaited(const struct nrt_instance *in, struct berth_call *c,
                      const struct berth_pod *pod)
{
    return pod && nrt_host->pods->scheduler_name(c, pod) == in->own &&
           !nrt_host->pods->started(c, pod);
}

static void mark(struct nrt_instance *in, struct nrt_seen *s)
{
    s->again = in->again = 1;
    if (s->dirty)
        return;
    if (in->n_dirty == in->cap_dirty) {
        uint32_t cap = in->cap_dirty ? 2 * in->cap_dirty : 64;
        berth_sym *more = realloc(in->dirty, cap * sizeof *more);
        if (!more)
            return;
        in->dirty = more;
        in->cap_dirty = cap;
    }
    in->dirty[in->n_dirty++] = s->node;
    s->dirty = 1;
}

void nrt_mark(struct nrt_instance *in, const struct nrt_seen *s)
{
    in->turned_away = 1;
    mark(in, nrt_known(in, s->node));
}

/* What is on the node when its object is seen for the first time: after a start of the scheduler, too. */
static void first_look(const struct look *l, struct nrt_seen *s, const struct berth_node *node)
{
    struct nrt_instance *in = l->in;
    const struct berth_value *object = nrt_object(in, l->c, s->node);

    if (!object || !nrt_take(in, s, object))
        return;
    int knows = nrt_knows_pods(in, l->c, node, s->topology, object);
    nrt_place(in, l->c, s, node, object);
    (void)look_for_foreign(in, l->c, s, node);
    s->stale = knows == 0 || s->awaits || (knows < 0 && s->foreign);
    for (uint32_t i = 0; i < nrt_host->nodes->n_pods(l->c, node); i++) {
        const struct berth_pod *pod = nrt_host->nodes->pod_at(l->c, node, i);
        if (is_awaited(in, l->c, pod) && !nrt_hold(in, l->c, s, pod))
            s->stale = 1;
    }
    if (s->stale)
        mark(in, s);
}

static void on_node(void *arg, const struct berth_node *node)
{
    const struct look *l = arg;
    struct nrt_instance *in = l->in;
    struct nrt_seen *s = nrt_entry(in, nrt_host->nodes->name(l->c, node));

    if (!s)
        return;
    if (!s->topology) {
        first_look(l, s, node);
        return;
    }
    if (look_for_foreign(in, l->c, s, node))
        s->stale = 1;
    if (s->stale || s->dirty)
        mark(in, s);
}

/* Objects that came later than their nodes. */
static void look_for_new(const struct look *l)
{
    for (uint64_t i = 0; i < l->in->cap_seen; i++) {
        struct nrt_seen *s = &l->in->seen[i];
        const struct berth_node *node =
            s->node && !s->topology ? nrt_host->nodes->find(l->c, s->node) : NULL;
        if (node)
            first_look(l, s, node);
    }
}

/* ---- catching up ----------------------------------------------------------------------------- */

/* The pods that the object knows are not held any more. 1: some were. */
static int drop_known(const struct look *l, struct nrt_seen *s, const struct berth_node *node)
{
    uint32_t kept = 0, was = s->n_held;

    for (uint32_t i = 0; i < nrt_host->nodes->n_pods(l->c, node) && kept < s->n_held; i++) {
        const struct berth_pod *pod = nrt_host->nodes->pod_at(l->c, node, i);
        if (!is_awaited(l->in, l->c, pod))
            continue;
        const uint64_t hash = nrt_pod_hash(l->c, pod);
        for (uint32_t k = kept; k < s->n_held; k++)
            if (s->held[k]->pod == hash) {
                struct nrt_held *h = s->held[k];
                s->held[k] = s->held[kept];
                s->held[kept++] = h;
                break;
            }
    }
    while (s->n_held > kept)
        drop(s, s->n_held - 1);
    return was != kept;
}

static void renew(const struct look *l, struct nrt_seen *s, const struct berth_node *node,
                  const struct berth_value *object)
{
    struct nrt_instance *in = l->in;
    struct berth_str version = nrt_version(object);
    int other = !version.n || !nrt_is(version, s->version);

    if (other && !nrt_take(in, s, object))
        return;
    nrt_place(in, l->c, s, node, object);
    int freed = drop_known(l, s, node);
    if (other || freed || s->stale)
        in->epoch++;
    (void)look_for_foreign(in, l->c, s, node);
    s->stale = 0;
}

static void resync(const struct look *l, struct nrt_seen *s)
{
    const struct berth_node *node = nrt_host->nodes->find(l->c, s->node);
    const struct berth_value *object = node ? nrt_object(l->in, l->c, s->node) : NULL;

    if (!object)
        return;
    if (!s->again && nrt_is(nrt_version(object), s->tried)) {
        l->in->ahead |= s->ahead;
        return;
    }
    s->again = 0;
    nrt_keep_version(s->tried, nrt_version(object));
    int knows = s->awaits ? 0 : nrt_knows_pods(l->in, l->c, node, s->topology, object);
    s->ahead = knows == 0 && !nrt_is(nrt_version(object), s->version);
    l->in->ahead |= s->ahead;
    if (knows != 1)
        return;
    renew(l, s, node, object);
    s->dirty = 0;
}

static void resync_dirty(const struct look *l)
{
    struct nrt_instance *in = l->in;
    uint32_t n = 0;

    for (uint32_t i = 0; i < in->n_dirty; i++) {
        struct nrt_seen *s = nrt_known(in, in->dirty[i]);
        if (!s)
            continue;
        resync(l, s);
        if (s->dirty)
            in->dirty[n++] = s->node;
    }
    in->n_dirty = n;
}

/* A kubelet with another configuration is not the one that the object was about. */
static void look_for_reconfigured(const struct look *l)
{
    for (uint64_t i = 0; i < l->in->cap_seen; i++) {
        struct nrt_seen *s = &l->in->seen[i];
        if (!s->node || !s->topology)
            continue;
        const struct berth_node *node = nrt_host->nodes->find(l->c, s->node);
        const struct berth_value *object = node ? nrt_object(l->in, l->c, s->node) : NULL;
        if (object && !nrt_is(nrt_version(object), s->version) &&
            nrt_is_reconfigured(s->topology, object))
            renew(l, s, node, object);
    }
}

/* Within one moment no answer changes because of another one, so objects are compared once. */
void nrt_follow(struct nrt_instance *in, struct berth_call *c)
{
    const struct look l = {in, c};
    const int64_t now = nrt_host->base->now(c);
    const uint64_t objects = nrt_host->objects->version(c, TOPOLOGIES), was = in->epoch;

    in->own = nrt_host->pods->scheduler_name(c, nrt_host->pods->current(c));
    nrt_forget_gone(in, c);
    in->followed = nrt_host->nodes->changed(c, in->followed, on_node, (void *)(uintptr_t)&l);
    if (in->objects != objects)
        look_for_new(&l);
    in->objects = objects;
    if (now == in->now)
        return;
    in->now = now;
    in->ahead = in->ahead && !in->again && in->tried == objects;
    if (in->again || in->tried != objects)
        resync_dirty(&l);
    in->again = 0;
    in->tried = objects;
    if (in->scope == NRT_SCOPE_ALL && now >= in->next_scan) {
        look_for_reconfigured(&l);
        in->next_scan = now + in->period;
    }
    if (!in->turned_away)
        return;
    if (in->epoch != was) {
        in->turned_away = 0;
        nrt_host->base->wake(in->home);
    } else if (in->ahead) {
        nrt_waker_ahead(in->waker);
    }
}
