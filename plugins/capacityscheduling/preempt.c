/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/capacityscheduling/preempt.c - whose pods make room
 *
 * Upstream: pkg/capacityscheduling/capacity_scheduling.go (PreFilter's sums, preemptor). Its defect that
 * stays: a pod that was put back, for which the pod at hand does not fit and the quotas are exceeded as
 * well, is taken off twice there, which fails, so that the node is none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quota.h"

/* Of a larger cluster a message does not name each: with 5,000 it would have 300 KB, for each such pod. */
#define NAMED_NODES 100u

int32_t cs_no_memory(struct berth_why *why)
{
    why->reason = BERTH_STR("out of memory");
    return BERTH_ERROR;
}

/* ---- the pod at hand ------------------------------------------------------------------------- */

static void add(const struct cs_instance *in, struct cs_amounts *to, const struct cs_amounts *a)
{
    for (uint32_t i = 0; i < in->n_resources; i++)
        to->v[i] = cs_sum(to->v[i], a->v[i]);
    to->named |= a->named;
}

/* What a pod that was promised a node will use. */
static int add_nominated(struct cs_instance *in, struct berth_call *c, const struct berth_pod *pod,
                         struct cs_pod *p)
{
    const struct berth_host_pods *h = cs_host->pods;
    struct berth_str own = h->uid(c, h->current(c)), uid = h->uid(c, pod);
    uint32_t ns = cs_namespace_of(in, c, pod);
    struct cs_amounts a;

    if (!ns)
        return 0;
    if (!in->ns[ns].has_quota || (own.n == uid.n && !memcmp(own.p, uid.p, own.n)))
        return 1;
    int same = ns == p->ns && h->priority(c, pod) >= h->priority(c, h->current(c));
    if (!same && (ns == p->ns || cs_over_min(in, ns)))
        return 1;
    cs_request(in, c, pod, &a);
    if (same)
        add(in, &p->with_own, &a);
    add(in, &p->with_all, &a);
    return 1;
}

int cs_pod_at_hand(struct cs_instance *in, struct berth_call *c, struct cs_pod *p)
{
    const struct berth_pod *pod = cs_host->pods->current(c), *other;
    uint64_t at = 0;

    p->ns = cs_namespace_of(in, c, pod);
    if (!p->ns || !in->ns[p->ns].has_quota)
        return p->ns != 0;
    cs_request(in, c, pod, &p->request);
    p->with_own = p->with_all = p->request;
    while ((other = cs_host->pods->nominated(c, &at, NULL)))
        if (!add_nominated(in, c, other, p))
            return 0;
    return 1;
}

/* ---- dry runs -------------------------------------------------------------------------------- */

struct change {
    uint32_t ns;
    int by;
    struct cs_amounts a;
};
struct attempt {
    struct cs_instance *in;
    struct cs_pod pod;
    int over_min; /* the pod's namespace would use more than its min: nobody owes it anything */
    struct change *change; /* to what is used, by the dry run that goes on */
    uint32_t n, cap;
    const struct berth_pod *last; /* that was moved */
    int failed;                   /* no memory */
};

static void undo(struct attempt *a)
{
    while (a->n > 0) {
        const struct change *ch = &a->change[--a->n];
        cs_use(a->in, ch->ns, &ch->a, -ch->by);
    }
}

static void begin(void *arg, struct berth_call *c, const struct berth_node *node)
{
    (void)c, (void)node;
    undo(arg);
}

static void moved(void *arg, struct berth_call *c, const struct berth_pod *pod, int32_t by)
{
    struct attempt *a = arg;
    uint32_t ns = cs_namespace_of(a->in, c, pod);

    a->last = pod;
    if (a->n == a->cap) {
        uint32_t cap = a->cap ? 2 * a->cap : 16;
        struct change *more = realloc(a->change, cap * sizeof *more);
        if (!more) {
            a->failed = 1;
            return;
        }
        a->change = more;
        a->cap = cap;
    }
    struct change *ch = &a->change[a->n];
    ch->ns = ns;
    ch->by = by;
    cs_request(a->in, c, pod, &ch->a);
    cs_use(a->in, ns, &ch->a, by);
    a->n++;
}

static int is_lower(struct berth_call *c, const struct berth_pod *pod)
{
    return cs_host->pods->priority(c, pod) < cs_host->pods->priority(c, cs_host->pods->current(c));
}

/* With a quota: within its min the pod takes back what other namespaces use beyond theirs, from pods of any
 * priority; beyond it makes room in its own namespace. Without: those with a quota are left alone. */
static int32_t evicts(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    struct attempt *a = arg;
    const struct cs_instance *in = a->in;
    uint32_t ns = cs_namespace_of(a->in, c, pod);

    if (!ns) {
        a->failed = 1;
        return 0;
    }
    if (!in->ns[a->pod.ns].has_quota)
        return !in->ns[ns].has_quota && is_lower(c, pod);
    if (!in->ns[ns].has_quota)
        return 0;
    return a->over_min ? ns == a->pod.ns && is_lower(c, pod)
                       : ns != a->pod.ns && cs_over_min(in, ns);
}

/* As evicts(), but lower pods of its own namespace are waited for in any case. */
static int32_t waits_for(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    struct attempt *a = arg;
    uint32_t ns = cs_namespace_of(a->in, c, pod);

    return evicts(arg, c, pod) || (ns == a->pod.ns && a->in->ns[ns].has_quota && is_lower(c, pod));
}

static int32_t say(struct berth_call *c, struct berth_why *why, int32_t code, const char *before,
                   struct berth_str name, const char *between, struct berth_str last)
{
    uint64_t bytes = strlen(before) + name.n + strlen(between) + last.n + 1;
    char *text = cs_host->base->alloc(c, bytes);

    if (!text)
        return cs_no_memory(why);
    why->reason = (struct berth_str){text, bytes - 1};
    snprintf(text, bytes, "%s%.*s%s%.*s", before, (int)name.n, name.p, between, (int)last.n,
             last.p);
    return code;
}

static int32_t check(void *arg, struct berth_call *c, const struct berth_node *node, uint32_t when,
                     struct berth_why *why)
{
    const struct attempt *a = arg;
    const struct cs_pod *p = &a->pod;
    struct berth_str name = cs_host->pods->name(c, cs_host->pods->current(c));
    struct berth_str node_name = cs_host->base->text(a->in->home, cs_host->nodes->name(c, node));

    if (a->failed)
        return cs_no_memory(why);
    if (when == BERTH_EVICT_NONE && cs_host->nodes->count(c) > NAMED_NODES)
        return say(c, why, BERTH_UNRESOLVABLE, "No victims found for preemptor pod ", name, "",
                   BERTH_STR(""));
    if (when == BERTH_EVICT_NONE)
        return say(c, why, BERTH_UNRESOLVABLE, "No victims found on node ", node_name,
                   " for preemptor pod ", name);
    if (!a->in->ns[p->ns].has_quota)
        return BERTH_SUCCESS;
    const int off = when == BERTH_EVICT_OFF;
    if (!cs_over_max_with(a->in, p->ns, off ? &p->request : &p->with_own) &&
        !cs_total_over_min_with(a->in, off ? &p->request : &p->with_all))
        return BERTH_SUCCESS;
    why->reason = BERTH_STR("global quota max exceeded");
    if (when == BERTH_EVICT_GONE)
        return say(c, why, BERTH_ERROR, "no corresponding pod ", cs_host->pods->name(c, a->last),
                   " in pods of node ", node_name);
    return BERTH_UNSCHEDULABLE;
}

int32_t cs_post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                       struct berth_why *why)
{
    struct attempt a = {.in = self};
    const struct berth_preemption how = {.size = sizeof how,
                                         .flags = BERTH_PREEMPT_ASCENDING,
                                         .arg = &a,
                                         .min_candidates_percentage = 100,
                                         .waits_for = waits_for,
                                         .evicts = evicts,
                                         .begin = begin,
                                         .moved = moved,
                                         .check = check};

    (void)ret;
    if (!cs_current(self, c) || !cs_pod_at_hand(self, c, &a.pod))
        return cs_no_memory(why);
    a.over_min = a.in->ns[a.pod.ns].has_quota && cs_over_min_with(self, a.pod.ns, &a.pod.with_own);
    int32_t code = cs_host->preemption->run(c, &how, why);
    undo(&a);
    free(a.change);
    return code;
}
