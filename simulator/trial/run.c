/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/run.c - decide until nothing more can change
 *
 * The scheduler's own queue says who is next and whom an event helps; its clock stands still except
 * for a tick per attempt. A decided pod is bound at once and its claims are taken; victims are gone
 * at once, and the preemptor, nominated, is tried again as any woken pod: behind those that wait.
 */
#include "simulator/trial/trial.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

/* An attempt follows from an event, and those are finite; this is for mistakes. */
#define ATTEMPTS_MAX        1000u
#define EXPLAINED_MAX       10u /* attempts of one pod */
#define EXPLAINED_BYTES_MAX ((size_t)1 << 30)

struct run {
    struct bh_trial *t;
    int64_t now_ns;
    size_t placed;
};

static void set_text(char **at, const char *s)
{
    free(*at);
    *at = bh_strdup(s ? s : "");
}

static void tell(struct run *r, const struct bh_cluster_event *ev)
{
    bh_queue_event(r->t->queue, ev, r->now_ns);
}

/* Volumes and claims changed, nobody knows which: whoever waits for any is asked. */
static void tell_claims(struct run *r, const struct bh_shape_rec *shape)
{
    static const enum bh_kind kinds[] = {BH_KIND_PERSISTENTVOLUMECLAIM, BH_KIND_PERSISTENTVOLUME,
                                         BH_KIND_RESOURCECLAIM};

    if (!shape->volumes.n && !shape->claims.n && !shape->extended.n)
        return;
    for (size_t i = 0; i < BH_ARRAY_LEN(kinds); i++) {
        const struct bh_cluster_event ev = {
            .resource = BH_EV_OBJECT, .kind = kinds[i], .action = BH_EV_UPDATE};
        tell(r, &ev);
    }
}

/* ---- placed -----------------------------------------------------------------------------------
 */

static void place(struct run *r, struct bh_trial_pod *p, bh_sym node)
{
    struct bh_trial *t = r->t;
    const struct bh_shape_rec *shape = bh_engine_shape_rec(t->engine, p->shape);

    bh_engine_prebind_commit(t->engine, bh_trial_uid(p));
    p->result = BH_TRIAL_SCHEDULED;
    p->node = p->rec->node = node;
    p->nominated = BH_SYM_NONE;
    p->rec->start_ns = r->now_ns;
    bh_engine_put_pod(t->engine, p->rec, p->shape);
    bh_queue_done(t->queue, bh_trial_uid(p));
    const struct bh_cluster_event ev = {
        .resource = BH_EV_POD_ASSIGNED, .action = BH_EV_ADD, .new_pod = p->rec, .new_shape = shape};
    tell(r, &ev);
    tell_claims(r, shape);
    bh_trial_budgets_follow(t, shape, 1);
    r->placed++;
}

/* ---- evicted ----------------------------------------------------------------------------------
 */

/* The victim's entry; pods that the files had placed have none yet. */
static struct bh_trial_pod *victim_entry(struct bh_trial *t, struct bh_str uid)
{
    struct bh_trial_pod *p = bh_trial_pod_of(t, uid);
    bh_shape_id id;

    if (p)
        return p;
    const struct bh_pod_rec *rec = bh_engine_find_pod(t->engine, uid, &id);
    if (!rec)
        return NULL;
    p = bh_trial_add_pod(t, rec, bh_engine_shape_rec(t->engine, id));
    p->placed_before = true;
    p->node = rec->node;
    return p;
}

static void evict(struct run *r, struct bh_trial_pod *preemptor, struct bh_str uid)
{
    struct bh_trial *t = r->t;
    struct bh_trial_pod *p = victim_entry(t, uid);

    if (!p)
        return;
    const struct bh_shape_rec *shape = bh_engine_shape_rec(t->engine, p->shape);
    const struct bh_cluster_event ev = {.resource = BH_EV_POD_ASSIGNED,
                                        .action = BH_EV_DELETE,
                                        .old_pod = p->rec,
                                        .old_shape = shape};
    p->result = BH_TRIAL_PREEMPTED;
    p->preemptor = preemptor;
    bh_engine_del_pod(t->engine, bh_trial_uid(p));
    bh_trial_release_claims(t, p->rec, shape);
    bh_trial_budgets_follow(t, shape, -1);
    tell(r, &ev);
    tell_claims(r, shape);
}

/* The decision's memory goes with the next cycle, so the uids are copied first. */
static void evict_all(struct run *r, struct bh_trial_pod *p, const struct bh_decision *d)
{
    uint32_t n = d->n_victims;
    char **uids = bh_calloc(n + 1, sizeof *uids);

    for (uint32_t i = 0; i < n; i++)
        uids[i] = bh_strndup(d->victims[i].uid.p, d->victims[i].uid.n);
    for (uint32_t i = 0; i < n; i++) {
        evict(r, p, bh_str_c(uids[i]));
        free(uids[i]);
    }
    free(uids);
}

/* ---- not placed -------------------------------------------------------------------------------
 */

/* PostFilter's writes: claims that are to be allocated anew. */
static void apply_writes(struct run *r, const struct bh_decision *d)
{
    for (uint32_t i = 0; i < d->n_writes; i++) {
        const struct bh_write *w = &d->writes[i];
        const struct bh_cluster_event ev = {
            .resource = BH_EV_OBJECT,
            .kind = w->kind,
            .action = w->what == BH_WRITE_DELETE_CLAIM ? BH_EV_DELETE : BH_EV_UPDATE};
        struct bh_buf b = {0};
        if (w->what != BH_WRITE_DELETE_CLAIM)
            bh_pb_pack(&b, w->object);
        (void)bh_engine_put_object(r->t->engine, w->kind, w->namespace_, w->name,
                                   w->what == BH_WRITE_DELETE_CLAIM ? NULL : bh_buf_str(&b), b.n,
                                   NULL);
        bh_buf_fini(&b);
        tell(r, &ev);
    }
}

static void fail(struct run *r, struct bh_trial_pod *p, const struct bh_decision *d)
{
    struct bh_trial *t = r->t;
    struct bh_str uid = bh_trial_uid(p);
    const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
    bh_sym nominated = d->nominated_node;
    bool clear = d->clear_nomination;

    p->result = d->kind == BH_NO_FIT || bh_streq(d->reason, "Unschedulable")
                    ? BH_TRIAL_UNSCHEDULABLE
                    : BH_TRIAL_ERROR;
    set_text(&p->reason, d->reason);
    set_text(&p->message, d->message);
    apply_writes(r, d);
    evict_all(r, p, d);
    if (d->kind == BH_DECISION_ERROR && !d->n_unschedulable_plugins) {
        bh_queue_delete(t->queue, uid); /* the same again would be the same again */
    } else {
        bh_queue_return(t->queue, uid, d->unschedulable_plugins, d->n_unschedulable_plugins,
                        d->pending_plugins, d->n_pending_plugins, r->now_ns);
    }
    if (nominated != BH_SYM_NONE) {
        p->nominated = nominated;
        bh_engine_nominate(t->engine, &pending, nominated);
    } else if (clear) {
        p->nominated = BH_SYM_NONE;
        bh_engine_unnominate(t->engine, uid);
    }
}

/* Reserve or Permit said no. */
static void refuse(struct run *r, struct bh_trial_pod *p, bh_sym node, const struct bh_status *s)
{
    const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
    const char *plugin = s->plugin;
    struct bh_arena a;

    bh_arena_init(&a, 0);
    struct bh_decision d = {.kind = BH_DECISION_ERROR,
                            .reason = "SchedulerError",
                            .message = bh_status_message(&a, s),
                            .clear_nomination = true};
    if (bh_status_rejected(s)) {
        d.reason = "Unschedulable";
        d.message = bh_arena_printf(&a, "0/1 nodes are available: 1 %s.", d.message);
        d.unschedulable_plugins = &plugin;
        d.n_unschedulable_plugins = plugin != NULL;
    }
    bh_engine_unreserve(r->t->engine, &pending, node);
    (void)bh_engine_forget(r->t->engine, bh_trial_uid(p));
    fail(r, p, &d);
    bh_arena_fini(&a);
}

/* ---- attempts ---------------------------------------------------------------------------------
 */

static void keep_explanation(struct bh_trial *t, struct bh_trial_pod *p, const struct bh_json *e)
{
    enum bh_form form = t->o.form;
    size_t before = p->explanations.n;

    if (p->attempts > EXPLAINED_MAX || t->explained_bytes > EXPLAINED_BYTES_MAX)
        return;
    if (form == BH_FORM_TABLE || form == BH_FORM_WIDE) {
        bh_buf_addc(&p->explanations, '\n');
        bh_explain_render(&p->explanations, e, form, t->o.colour);
    } else {
        bh_json_write(&p->explanations, e);
        bh_buf_addc(&p->explanations, '\n');
    }
    t->explained_bytes += p->explanations.n - before;
    if (t->explained_bytes > EXPLAINED_BYTES_MAX)
        bh_trial_warn(t,
                      "the explanations take more than 1 GiB, the rest is left out: choose a pod "
                      "with --pod");
}

static void explain(struct bh_trial *t, struct bh_trial_pod *p, const struct bh_pending *pending,
                    const struct bh_decision *d)
{
    struct bh_explain_subject s = bh_explain_subject_of(t->engine, pending);
    struct bh_arena a;

    bh_arena_init(&a, 0);
    keep_explanation(t, p, bh_explain_decision(&a, &s, bh_engine_symtab(t->engine), d));
    bh_arena_fini(&a);
}

static void attempt(struct run *r, struct bh_trial_pod *p)
{
    struct bh_trial *t = r->t;
    const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
    unsigned flags = (t->o.explain ? BH_EXPLAIN : 0) | (t->o.no_preemption ? BH_NO_PREEMPTION : 0);
    const struct bh_decision *d = bh_engine_schedule(t->engine, &pending, flags, r->now_ns);
    const struct bh_status *s;
    int64_t timeout_ns;

    p->attempts++;
    if (t->o.explain)
        explain(t, p, &pending, d);
    if (d->kind != BH_DECIDED) {
        fail(r, p, d);
        return;
    }
    bh_sym node = d->node;
    int rc = bh_engine_assume(t->engine, &pending, node);
    bh_assert(rc == 0); /* a pending pod is on no node */
    s = bh_engine_reserve(t->engine, &pending, node);
    if (!s)
        s = bh_engine_permit(t->engine, &pending, node, &timeout_ns);
    if (s && s->code != BH_WAIT) /* whoever it waits for says yes */
        refuse(r, p, node, s);
    else
        place(r, p, node);
}

/* Those the queue never let go: gated, or woken by nothing. */
static void close_books(struct bh_trial *t)
{
    for (size_t i = 0; i < t->n_list; i++) {
        struct bh_trial_pod *p = t->list[i];
        const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
        struct bh_arena a;
        if (p->result != BH_TRIAL_WAITING)
            continue;
        bh_arena_init(&a, 0);
        const struct bh_status *gate = bh_engine_pre_enqueue(t->engine, &pending);
        p->result = gate ? BH_TRIAL_GATED : BH_TRIAL_UNSCHEDULABLE;
        set_text(&p->reason, gate ? "SchedulingGated" : "Unschedulable");
        set_text(&p->message, gate ? bh_status_message(&a, gate) : "");
        if (gate && t->o.explain) {
            struct bh_explain_subject s = bh_explain_subject_of(t->engine, &pending);
            keep_explanation(t, p, bh_explain_gated(&a, &s, gate));
        }
        bh_arena_fini(&a);
    }
}

void bh_trial_run(struct bh_trial *t)
{
    struct run r = {.t = t, .now_ns = t->o.now_ns + (int64_t)t->n_list};
    size_t n = t->n_list;

    for (struct bh_queued_pod *q; !bh_trial_stopped(t) && (q = bh_queue_pop(t->queue, r.now_ns));
         r.now_ns++) {
        struct bh_trial_pod *p =
            bh_trial_pod_of(t, bh_rec_text(q->pending.pod, q->pending.pod->uid));
        bh_trial_progress(t, "scheduling", r.placed, n);
        if (p->attempts >= ATTEMPTS_MAX) {
            bh_trial_warn(t, "pod %s/%s was tried %u times and is given up", bh_trial_pod_ns(p),
                          bh_trial_pod_name(p), ATTEMPTS_MAX);
            bh_queue_delete(t->queue, bh_trial_uid(p));
            continue;
        }
        attempt(&r, p);
    }
    close_books(t);
    bh_trial_progress(t, NULL, 0, 0);
}
