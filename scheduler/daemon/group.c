/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/group.c - the cycle of a group: its members are taken out of the queue together,
 * tried on top of each other, and go or come back together
 *
 * Upstream: pkg/scheduler/schedule_one_podgroup.go; differences: README.md.
 */
#include "common/base/log.h"
#include "common/base/probe.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/daemon/daemon.h"

struct member {
    struct bh_sched_daemon *d;
    struct bh_queued_pod *p;
    int32_t priority;
    double took_s;
    bool waits; /* Permit's word */
    int64_t timeout_ns;
};
struct cycle {
    struct bh_sched_daemon *d;
    struct bh_group_names names;
    const char *profile;
    struct member *v;
    struct bh_group_try *try;
    uint32_t n, cap;
    uint32_t placed; /* sent on their way */
    struct bh_group_result r;
    struct bh_arena arena;
};

/* ---- who takes part -------------------------------------------------------------------------- */

static void add(struct cycle *c, struct bh_queued_pod *p)
{
    BH_GROW(c->v, c->n, c->cap);
    p->decision = 0;
    c->v[c->n++] =
        (struct member){.d = c->d,
                        .p = p,
                        .priority = bh_engine_shape_rec(c->d->engine, p->pending.shape)->priority};
}

static struct bh_str name_of(const struct bh_queued_pod *p)
{
    return bh_rec_text(p->pending.pod, p->pending.pod->name);
}

static void collect(struct cycle *c, struct bh_queued_pod *first, const struct bh_group *g)
{
    struct bh_sched_daemon *d = c->d;
    const struct bh_member *m;

    add(c, first);
    TAILQ_FOREACH(m, &g->at[BH_MEMBER_UNSCHEDULED], link) {
        struct bh_pod_state *s = bh_pods_find(d->pods, bh_member_uid(m));
        if (!s || !s->queued || bh_str_eq(name_of(s->queued), name_of(first)))
            continue;
        struct bh_queued_pod *p = bh_queue_take_member(d->queue, s, bh_sched_now(d));
        if (p)
            add(c, p);
    }
}

/* Equals in an order that does not depend on who was popped. */
static int by_turn(const void *pa, const void *pb)
{
    const struct member *a = pa, *b = pb;
    const struct bh_queued_pod *p = a->p, *q = b->p;

    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (p->initial_attempt_ns != q->initial_attempt_ns)
        return p->initial_attempt_ns < q->initial_attempt_ns ? -1 : 1;
    if (p->pending.pod->creation_ns != q->pending.pod->creation_ns)
        return p->pending.pod->creation_ns < q->pending.pod->creation_ns ? -1 : 1;
    return strcmp(name_of(p).p, name_of(q).p);
}

static const char *profile_of(const struct cycle *c, uint32_t i)
{
    const struct bh_sched_daemon *d = c->d;

    return bh_sym_text(d->symtab,
                       bh_engine_shape_rec(d->engine, c->v[i].p->pending.shape)->scheduler_name);
}

/* All of them have to be one profile's. */
static bool one_profile(struct cycle *c)
{
    uint32_t other = 1;

    c->profile = profile_of(c, 0);
    while (other < c->n && bh_streq(profile_of(c, other), c->profile))
        other++;
    if (other >= c->n)
        return true;
    c->r = (struct bh_group_result){
        .code = BH_ERROR,
        .message = bh_arena_printf(&c->arena,
                                   "all pods in a single pod group should have the same "
                                   ".spec.schedulerName set, got: \"%s\" and \"%s\"",
                                   profile_of(c, other), c->profile)};
    return false;
}

static void drop_those_that_need_none(struct cycle *c)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < c->n; i++)
        if (!bh_sched_skips(c->d, c->v[i].p))
            c->v[kept++] = c->v[i];
    c->n = kept;
}

/* ---- how it went ----------------------------------------------------------------------------- */

static void fail(struct cycle *c, uint32_t i, const struct bh_decision *dec, const char *result)
{
    bh_sched_failed(c->d, c->v[i].p, dec);
    bh_sched_count_attempt(c->d, result, profile_of(c, i), c->v[i].took_s);
}

/* For the record of decisions alone: the pod's condition has kube-scheduler's text. */
static const char *describe_waiting(struct cycle *c, uint32_t i)
{
    uint32_t has_node = 0;

    for (uint32_t k = 0; k < c->n; k++)
        has_node += c->try[k].node != BH_SYM_NONE && !c->try[k].preempts;
    return bh_arena_printf(&c->arena,
                           "the pod has room on %s, and its group %s/%s waits: %u of %u have room",
                           bh_sym_text(c->d->symtab, c->try[i].node), c->names.namespace_,
                           c->names.name, has_node, c->n);
}

/* Held back by its group. No plugin rejected it: it waits as after an error. */
static void fail_with_group(struct cycle *c, uint32_t i, const char *reason, const char *message,
                            bh_sym nominated)
{
    const struct bh_decision dec = {.kind = BH_DECISION_ERROR,
                                    .reason = reason,
                                    .message = message,
                                    .nominated_node = nominated,
                                    .clear_nomination = nominated == BH_SYM_NONE};

    if (c->r.code != BH_ERROR && c->try[i].node != BH_SYM_NONE && !c->try[i].preempts)
        bh_sched_record_outcome(c->d, c->v[i].p->decision, BH_OUTCOME_GROUP_WAITS,
                                describe_waiting(c, i));
    else
        bh_sched_record_outcome(c->d, c->v[i].p->decision, BH_OUTCOME_FAILED, message);
    fail(c, i, &dec, bh_streq(reason, "Unschedulable") ? "unschedulable" : "error");
}

static bool is_error(const struct bh_decision *d)
{
    return d->kind == BH_DECISION_ERROR && !bh_streq(d->reason, "Unschedulable");
}

/* A member that does not go now. */
static void submit_failed(struct cycle *c, uint32_t i)
{
    const struct bh_group_try *t = &c->try[i];
    const bool has_room = t->node != BH_SYM_NONE && !t->preempts;

    if (c->r.code == BH_ERROR) {
        if (t->decided && is_error(&t->decision))
            fail(c, i, &t->decision, "error");
        else
            fail_with_group(c, i, "SchedulerError", c->r.message, BH_SYM_NONE);
    } else if (has_room && c->r.waiting) {
        fail_with_group(c, i, "Unschedulable", c->r.message, t->node);
    } else if (has_room || (t->preempts && !c->r.waiting)) {
        /* Its victims are spared: the group could not go even without them. */
        fail_with_group(
            c, i, "Unschedulable",
            bh_arena_printf(&c->arena, "pod group is unschedulable, %s", t->permit_message),
            BH_SYM_NONE);
    } else {
        bh_sched_log_no_fit(c->d, c->v[i].p, &t->decision);
        fail(c, i, &t->decision, is_error(&t->decision) ? "error" : "unschedulable");
    }
}

/* Permit, now for real, before anything is on its way. false: some plugin changed its mind about a
 * member, and all who are left have to be asked again. */
static bool permit_all(struct cycle *c)
{
    struct bh_sched_daemon *d = c->d;
    bool same = true;

    for (uint32_t i = 0; i < c->n; i++) {
        struct member *m = &c->v[i];
        if (!c->try[i].assumed)
            continue;
        const struct bh_status *s =
            bh_engine_permit(d->engine, &m->p->pending, c->try[i].node, &m->timeout_ns);
        m->waits = bh_status_code(s) == BH_WAIT;
        if (!s || m->waits)
            continue;
        c->try[i].assumed = same = false;
        bh_sched_count_attempt(d, bh_sched_go_on(d, m->p, c->try[i].node, s, m->timeout_ns),
                               c->profile, m->took_s);
    }
    return same;
}

static void submit(struct cycle *c)
{
    static const struct bh_status waits = {.code = BH_WAIT};
    struct bh_sched_daemon *d = c->d;

    for (uint32_t i = 0; i < c->n; i++)
        if (!c->try[i].assumed)
            submit_failed(c, i);
    while (!permit_all(c))
        ;
    for (uint32_t i = 0; i < c->n; i++) {
        const struct member *m = &c->v[i];
        if (!c->try[i].assumed)
            continue;
        bh_sched_count_attempt(
            d, bh_sched_go_on(d, m->p, c->try[i].node, m->waits ? &waits : NULL, m->timeout_ns),
            c->profile, m->took_s);
        c->placed++;
    }
}

/* Victims of the group as a whole: its members wait for them together, and before any of them is back
 * in the queue. */
static void make_room(struct cycle *c)
{
    const K8s__PodGroup *m = (const void *)bh_engine_get_object(c->d->engine, BH_KIND_PODGROUP,
                                                                c->names.namespace_, c->names.name);

    struct bh_pod_group g;
    struct bh_err err;

    if (!c->r.n_victims || !m || bh_pod_group_read(m, &g, &err) < 0)
        return;
    BH_CLEANUP(bh_freep) char *version = bh_asprintf("scheduling.k8s.io/%s", g.version);
    const struct bh_object_ref group = {.kind = "PodGroup",
                                        .api_version = version,
                                        .resource_version = m->metadata->resourceversion,
                                        .namespace_ = bh_str_c(g.ns),
                                        .name = bh_str_c(g.name),
                                        .uid = bh_str_c(g.uid)};
    bh_sched_evict_for_group(c->d, c->v[0].p, &group, c->r.victims, c->r.n_victims);
    bh_pod_follow(c->v[0].p->pod, NULL); /* two that followed each other would never end */
    for (uint32_t i = 1; i < c->n; i++)
        bh_pod_follow(c->v[i].p->pod, c->v[0].p->pod);
}

/* What the group's victims free is kept for its members, and what was kept until now and is needed no
 * more is others'. */
static void keep_nodes(struct cycle *c)
{
    struct bh_sched_daemon *d = c->d;

    for (uint32_t i = 0; i < c->n; i++) {
        const struct bh_group_try *t = &c->try[i];
        const struct bh_queued_pod *p = c->v[i].p;
        const bh_sym nominated = bh_engine_nominated_node(d->engine, bh_pod_uid(p->pod));
        if (!t->assumed && nominated == BH_SYM_NONE && t->kept != BH_SYM_NONE)
            bh_engine_keep_node(d->engine, &p->pending, t->kept);
        const bh_sym now = t->assumed ? t->node : nominated != BH_SYM_NONE ? nominated : t->kept;
        if (t->was_kept != BH_SYM_NONE && t->was_kept != now)
            bh_sched_tell_nominated_room(d, p, t->was_kept);
    }
}

/* ---- the PodGroup's condition ---------------------------------------------------------------- */

static const K8s__Condition *condition_of(const K8s__PodGroup *m, const char *type)
{
    for (size_t i = 0; m->status && i < m->status->n_conditions; i++)
        if (bh_streq(m->status->conditions[i]->type, type))
            return m->status->conditions[i];
    return NULL;
}

static bool says(const K8s__Condition *c, const char *status, const char *reason,
                 const char *message, int64_t generation)
{
    return c && bh_streq(c->status, status) && bh_streq(c->reason, reason) &&
           bh_streq(c->message, message) && c->observedgeneration == generation;
}

/* Not again what was written and only not seen yet; under another lease, or to another version of the
 * object, it may have been lost, and since some group's condition was refused it may be this one. */
static bool told_before(struct bh_group *g, const struct bh_sched_daemon *d,
                        const char *object_version, const char *reason, const char *message)
{
    uint64_t now = bh_hash(message, strlen(message), bh_hash(reason, strlen(reason), 0));

    now = bh_hash(object_version, strlen(object_version),
                  now ^ d->lease.serial ^ d->group_refusals << 32) |
          1;
    if (g->told == now)
        return true;
    g->told = now;
    return false;
}

/* It never goes back from True. */
static void tell_condition(struct cycle *c)
{
    const bool success = c->r.code == BH_SUCCESS;
    const char *status = success ? "True" : "False";
    const char *reason = success                 ? "Scheduled"
                         : c->r.code == BH_ERROR ? "SchedulerError"
                                                 : "Unschedulable";
    const K8s__PodGroup *m = (const void *)bh_engine_get_object(c->d->engine, BH_KIND_PODGROUP,
                                                                c->names.namespace_, c->names.name);
    struct bh_pod_group g;
    struct bh_err err;

    if (!m || bh_pod_group_read(m, &g, &err) < 0 || (g.scheduled && !success))
        return;
    const K8s__Condition *old = condition_of(m, g.condition);
    BH_CLEANUP(bh_freep) char *message = bh_sched_cut_condition(c->r.message);
    if (says(old, status, reason, message, g.generation) ||
        told_before(bh_engine_group_of(c->d->engine, &c->v[0].p->pending), c->d,
                    m->metadata->resourceversion, reason, message))
        return;
    struct bh_work *w = bh_work_group(bh_str_c(g.ns), bh_str_c(g.name), bh_str_c(g.uid), g.version);
    bh_work_condition(w, g.condition, status, reason, bh_take_ptr(message), g.generation,
                      !old || !bh_streq(old->status, status));
    (void)bh_ledger_add(c->d->ledger, w);
}

/* ---- the cycle ------------------------------------------------------------------------------- */

static void on_tried(void *arg, struct bh_group_try *t BH_UNUSED, const struct bh_decision *dec)
{
    struct member *m = arg;
    const struct bh_queued_pod *p = m->p;

    m->took_s = (double)bh_engine_took_ns(m->d->engine) / 1e9;
    m->p->evaluated = dec->evaluated;
    m->p->feasible = dec->feasible;
    bh_probe_pod(decide, bh_rec_text(p->pending.pod, p->pending.pod->uid), dec->feasible);
    bh_sched_record_whole(m->d, m->p, dec);
}

static void try_all(struct cycle *c)
{
    struct bh_sched_daemon *d = c->d;
    const unsigned flags = bh_sched_record_next(d, c->v[0].p);

    for (uint32_t i = 0; i < c->n; i++) {
        bh_sched_log_attempt(c->v[i].p);
        c->try[i] =
            (struct bh_group_try){.pod = c->v[i].p->pending, .tried = on_tried, .arg = &c->v[i]};
    }
    const uint64_t began = bh_mono_ns();
    bh_engine_schedule_group(d->engine, c->try, c->n, flags, bh_sched_now(d), &c->r);
    bh_sched_count_group_algorithm(d, (double)(bh_mono_ns() - began) / 1e9);
}

static void run(struct cycle *c)
{
    const uint64_t began = bh_mono_ns();

    if (c->n > 1)
        qsort(c->v, c->n, sizeof *c->v, by_turn);
    c->try = bh_calloc(c->n, sizeof *c->try);
    drop_those_that_need_none(c);
    if (!c->n)
        return;
    if (one_profile(c)) {
        try_all(c);
        if (c->d->stopping) /* it was cut short: nothing it says is true */
            return;
    }
    tell_condition(c); /* while there is a group: its last member may go at once */
    make_room(c);
    submit(c);
    keep_nodes(c);
    bh_sched_count_group(c->d, &c->r, c->profile, (double)(bh_mono_ns() - began) / 1e9);
    bh_sched_log_group(&c->names, &c->r, c->placed, c->n - c->placed);
}

bool bh_sched_group_cycle(struct bh_sched_daemon *d, struct bh_queued_pod *first)
{
    const struct bh_group *g = bh_engine_group_of(d->engine, &first->pending);
    struct cycle c = {.d = d};

    if (bh_likely(!g))
        return false;
    c.names = (struct bh_group_names){bh_sym_text(d->symtab, g->namespace_),
                                      bh_sym_text(d->symtab, g->name)};
    collect(&c, first, g);
    run(&c);
    free(c.try);
    free(c.v);
    bh_arena_fini(&c.arena);
    return true;
}
