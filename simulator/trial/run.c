/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/run.c - decide until nothing more can change
 *
 * The offline world's clock stands still except for a tick per attempt. A preemptor, nominated, is
 * tried again as any woken pod: behind those that wait.
 */
#include "simulator/trial/trial.h"

/* An attempt follows from an event, and those are finite; this is for mistakes. */
#define ATTEMPTS_MAX        1000u
#define EXPLAINED_MAX       10u /* attempts of one pod */
#define EXPLAINED_BYTES_MAX ((size_t)1 << 30)

static void set_why(struct bh_trial_pod *p, const char *reason, const char *message)
{
    free(p->reason);
    free(p->message);
    p->reason = bh_strdup(reason ? reason : "");
    p->message = bh_strdup(message ? message : "");
}

/* ---- what came of an attempt ----------------------------------------------------------------- */

/* The decision's memory goes with the next change of the engine, so budgets come last. */
static void evict(struct bh_trial *t, const struct bh_trial_pod *preemptor,
                  const struct bh_decision *d)
{
    struct bh_trial_pod **v = bh_calloc(d->n_victims + 1, sizeof *v);
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_victims; i++) {
        bh_shape_id id;
        const struct bh_pod_rec *rec = bh_engine_find_pod(t->w.engine, d->victims[i].uid, &id);
        struct bh_trial_pod *p = bh_trial_pod_of(t, d->victims[i].uid);
        if (!p && rec) { /* the files had placed it */
            p = bh_trial_add_pod(t, rec, bh_engine_shape_rec(t->w.engine, id));
            p->placed_before = true;
            p->node = rec->node;
        }
        if (!p || p->result == BH_TRIAL_AT_PERMIT) /* it was not there yet, and tries again */
            continue;
        p->result = BH_TRIAL_PREEMPTED;
        p->preemptor = preemptor;
        v[n++] = p;
    }
    for (uint32_t i = 0; i < n; i++)
        bh_trial_budgets_follow(t, bh_engine_shape_rec(t->w.engine, v[i]->shape), -1);
    free(v);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void keep_explanation(struct bh_trial *t, struct bh_trial_pod *p, const struct bh_json *e)
{
    enum bh_form form = t->o.form;
    size_t before = p->explanations.n;

    if (p->attempts >= EXPLAINED_MAX || t->explained_bytes > EXPLAINED_BYTES_MAX)
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

static void on_decided(void *arg, const struct bh_pending *pending, const struct bh_decision *d)
{
    struct bh_trial *t = arg;
    struct bh_trial_pod *p = bh_trial_pod_of(t, bh_rec_text(pending->pod, pending->pod->uid));

    if (!t->o.explain)
        return;
    struct bh_explain_subject s = bh_explain_subject_of(t->w.engine, pending);
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    keep_explanation(t, p, bh_explain_decision(&a, &s, bh_engine_symtab(t->w.engine), d));
}

static void on_tried(void *arg, const struct bh_offline_try *x)
{
    struct bh_trial *t = arg;
    struct bh_trial_pod *p = bh_trial_pod_of(t, bh_rec_text(x->pod, x->pod->uid));

    p->attempts++;
    if (!x->failed) {
        p->result = BH_TRIAL_SCHEDULED;
        p->node = p->rec->node = x->node;
        p->nominated = BH_SYM_NONE;
        p->rec->start_ns = t->w.now_ns;
        bh_trial_budgets_follow(t, bh_engine_shape_rec(t->w.engine, p->shape), 1);
        t->n_placed++;
        return;
    }
    const struct bh_decision *d = x->failed;
    p->node = BH_SYM_NONE;
    p->result = d->kind == BH_NO_FIT || bh_streq(d->reason, "Unschedulable")
                    ? BH_TRIAL_UNSCHEDULABLE
                    : BH_TRIAL_ERROR;
    set_why(p, d->reason, d->message);
    if (d->nominated_node != BH_SYM_NONE)
        p->nominated = d->nominated_node;
    else if (d->clear_nomination)
        p->nominated = BH_SYM_NONE;
    evict(t, p, d);
    if (p->attempts < ATTEMPTS_MAX)
        return;
    bh_trial_warn(t, "pod %s/%s was tried %u times and is given up", bh_trial_pod_ns(p),
                  bh_trial_pod_name(p), ATTEMPTS_MAX);
    bh_queue_delete(t->w.queue, bh_queue_pod(t->w.queue, bh_trial_uid(p)));
}

static void on_waits(void *arg, const struct bh_pending *pending, bh_sym node, const char *plugins)
{
    struct bh_trial *t = arg;
    struct bh_trial_pod *p = bh_trial_pod_of(t, bh_rec_text(pending->pod, pending->pod->uid));
    BH_CLEANUP(bh_freep) char *message = bh_asprintf("waits at Permit (%s)", plugins);

    p->result = BH_TRIAL_AT_PERMIT;
    p->node = node;
    p->nominated = BH_SYM_NONE;
    set_why(p, "Waiting", message);
}

void bh_trial_run(struct bh_trial *t)
{
    size_t n = t->n_list;

    t->w.o.hooks = (struct bh_offline_hooks){.decided = on_decided,
                                             .tried = on_tried,
                                             .arg = t,
                                             .grouped = bh_trial_on_grouped,
                                             .waits = on_waits};
    t->w.now_ns = t->o.now_ns + (int64_t)n;
    while (!bh_trial_stopped(t) && bh_offline_attempt(&t->w)) {
        t->w.now_ns++;
        bh_trial_progress(t, "scheduling", t->n_placed, n);
    }
    /* Those the queue never let go: gated, or woken by nothing. */
    for (size_t i = 0; i < t->n_list; i++) {
        struct bh_trial_pod *p = t->list[i];
        const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
        BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
        if (p->nominated != BH_SYM_NONE) /* a higher pod may have taken the promise */
            p->nominated = bh_engine_nominated_node(t->w.engine, bh_trial_uid(p));
        if (p->result != BH_TRIAL_WAITING)
            continue;
        const struct bh_status *gate = bh_engine_pre_enqueue(t->w.engine, &pending);
        p->result = gate ? BH_TRIAL_GATED : BH_TRIAL_UNSCHEDULABLE;
        set_why(p, gate ? "SchedulingGated" : "Unschedulable",
                gate ? bh_status_message(&a, gate) : "");
        if (gate && t->o.explain) {
            struct bh_explain_subject s = bh_explain_subject_of(t->w.engine, &pending);
            keep_explanation(t, p, bh_explain_gated(&a, &s, gate));
        }
    }
    bh_trial_progress(t, NULL, 0, 0);
}
