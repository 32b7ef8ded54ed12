/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/job.c - jobs: pods until enough have succeeded
 *
 * Upstream: pkg/controller/job/job_controller.go (v1.36); differences: pods carry no tracking
 * finalizer, so that a finished pod that is deleted counts as never run; pod failure and
 * success policies, and per-index back-off, are not looked at.
 */
#include "simulator/controllers/controllers.h"

#include <inttypes.h>

#define COMPONENT      "job-controller"
#define BACKOFF_NS     ((int64_t)10 * 1000000000)
#define BACKOFF_MAX_NS ((int64_t)360 * 1000000000)
#define INDEX_LABEL    "batch.kubernetes.io/job-completion-index"

struct job {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *obj;
    const struct bh_json *tree;
    int64_t active, ready, succeeded, failed;
    int64_t completions, parallelism, backoff; /* completions -1 = any success ends it */
    bool indexed, suspended;
    const char *group;                  /* PodGroup of its pods; NULL = none */
    const char *end, *reason, *message; /* condition that ends it now: Complete or Failed */
    int64_t deadline_ns;                /* wall clock; 0 = none */
    int64_t next_ns;                    /* when failed pods may be replaced; wall clock, 0 = now */
};

static int64_t index_of(const struct bh_sim_obj *pod)
{
    const char *v = bh_sim_obj_label(pod, INDEX_LABEL);

    return v ? strtoll(v, NULL, 10) : -1;
}

static int64_t wanted_active(const struct job *j)
{
    if (j->suspended || j->end)
        return 0;
    if (j->completions < 0)
        return j->succeeded ? j->active : j->parallelism;
    return BH_MAX(BH_MIN(j->parallelism, j->completions - j->succeeded), 0);
}

/* ---- deadline, back-off ---------------------------------------------------------------------- */

static void look_again_at(struct job *j, int64_t wall_ns)
{
    bh_ctl_enqueue_after(j->c, BH_CTL_JOB, j->obj->ns, j->obj->name,
                         wall_ns - bh_sim_now_ns(j->c->sim));
}

/* A job that is not suspended has its time; the first sync of a new job starts it. */
static void read_deadline(struct job *j)
{
    int64_t seconds = bh_tree_i64(j->tree, "spec.activeDeadlineSeconds", -1);
    const char *started = bh_tree_str(j->tree, "status.startTime");

    if (seconds < 0 || seconds > INT32_MAX || j->suspended)
        return;
    seconds *= 1000000000;
    j->deadline_ns =
        started ? bh_ctl_time_after(started, seconds) : bh_sim_now_ns(j->c->sim) + seconds;
    look_again_at(j, j->deadline_ns);
}

static int64_t finished_ns(struct job *j, const struct bh_sim_obj *pod)
{
    struct bh_arena_mark mark = bh_arena_mark(&j->c->arena);
    const struct bh_json *tree = bh_sim_obj_tree(&j->c->arena, pod);
    int64_t last = 0;

    bh_json_each(s, bh_tree_arr(tree, "status.containerStatuses"))
        last = BH_MAX(last, bh_ctl_time_after(bh_tree_str(s, "state.terminated.finishedAt"), 0));
    bh_arena_rewind(&j->c->arena, mark);
    return last;
}

/* Pods that failed since the last success are replaced 10 s, 20 s, 40 s ... after the last one. */
static void read_backoff(struct job *j, const struct bh_sim_objs *pods)
{
    int64_t success = 0, last = 0, delay = BACKOFF_NS / 2, t;

    if (!j->failed)
        return;
    for (size_t i = 0; i < pods->n; i++)
        if (bh_streq(pods->v[i]->phase, "Succeeded"))
            success = BH_MAX(success, finished_ns(j, pods->v[i]));
    for (size_t i = 0; i < pods->n; i++) {
        if (!bh_streq(pods->v[i]->phase, "Failed") || (t = finished_ns(j, pods->v[i])) < success)
            continue;
        last = BH_MAX(last, t);
        delay = BH_MIN(delay * 2, BACKOFF_MAX_NS);
    }
    if (last && last > bh_sim_now_ns(j->c->sim) - delay)
        j->next_ns = last + delay;
}

static struct bh_json *pod_for(struct job *j, int64_t idx)
{
    struct bh_arena *a = &j->c->pod_arena;
    const struct bh_json *template = bh_tree_obj(j->tree, "spec.template");

    if (idx < 0)
        return bh_ctl_pod_of(a, j->obj, template, j->obj->name); /* has no group: is not indexed */
    const char *n = bh_arena_printf(a, "%" PRId64, idx);
    const char *name = bh_arena_printf(a, "%s-%s", j->obj->name, n);
    struct bh_json *pod = bh_json_add(a, bh_ctl_pod_of(a, j->obj, template, name),
                                      "metadata: {labels: {" INDEX_LABEL ": %s}, "
                                      "annotations: {" INDEX_LABEL ": %s}}, spec: {hostname: %s}",
                                      n, n, name);
    return j->group ? bh_json_add(a, pod, "spec: {schedulingGroup: {podGroupName: %s}}", j->group)
                    : pod;
}

static void create(struct job *j, int64_t n, uint8_t *taken)
{
    int64_t idx = -1, todo = BH_MIN(n, BH_CTL_BATCH);

    for (int64_t i = 0; i < todo; i++) {
        if (j->indexed) {
            while (++idx < j->completions && taken[idx])
                ;
            if (idx >= j->completions)
                return;
        }
        if (bh_ctl_pod_create(j->c, BH_CTL_JOB, j->obj, pod_for(j, idx)))
            return;
        j->active++;
    }
    if (todo < n)
        bh_ctl_again(j->c, BH_CTL_JOB, j->obj, 0);
}

static void delete_some(struct job *j, struct bh_sim_objs *pods, int64_t n)
{
    bh_ctl_pods_rank(pods);
    for (size_t i = 0; i < pods->n && n > 0; i++) {
        if (!bh_ctl_pod_active(pods->v[i]))
            continue;
        bh_ctl_pod_delete(j->c, BH_CTL_JOB, j->obj, pods->v[i]);
        j->active--;
        n--;
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

static void condition(struct job *j, struct bh_arena *a, struct bh_json *o, const char *type,
                      const char *status, const char *reason, const char *message)
{
    const char *now = bh_ctl_now(j->c, a);

    if (bh_tree_set_condition(a, o, type, status, reason, message, now))
        bh_json_set_str(a, bh_tree_condition(o, type), "lastProbeTime", now);
}

/* Indexes that are done, as text: "0,2-4". */
static void completed_indexes(struct job *j, struct bh_arena *a, struct bh_json *st)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(j->c->sim, j->obj->uid, j->c->t.pods);
    BH_CLEANUP(bh_freep) uint8_t *done = bh_calloc((size_t)j->completions + 1, 1);
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    for (size_t i = 0; i < pods.n; i++) {
        int64_t idx = index_of(pods.v[i]);
        if (idx >= 0 && idx < j->completions && bh_streq(pods.v[i]->phase, "Succeeded"))
            done[idx] = 1;
    }
    for (int64_t i = 0, end; i < j->completions; i = end + 1) {
        end = i;
        if (!done[i])
            continue;
        while (end + 1 < j->completions && done[end + 1])
            end++;
        bh_buf_addf(&b, "%s%" PRId64, b.n ? "," : "", i);
        if (end > i)
            bh_buf_addf(&b, "%c%" PRId64, end == i + 1 ? ',' : '-', end);
    }
    if (b.n)
        bh_json_set_str(a, st, "completedIndexes", bh_buf_str(&b));
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    struct job *j = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status");

    if (!j->suspended)
        bh_tree_dflt_str(a, st, "startTime", bh_ctl_now(j->c, a));
    else if (!j->end)
        bh_json_unset(st, "startTime");
    bh_json_add(a, st,
                "active?: %ld, succeeded?: %ld, failed?: %ld, ready: %ld, terminating: 0, "
                "uncountedTerminatedPods: {}",
                j->active, j->succeeded, j->failed, j->ready);
    if (j->indexed)
        completed_indexes(j, a, st);
    if (j->suspended && !j->end)
        condition(j, a, o, "Suspended", "True", "JobSuspended", "Job suspended");
    else if (bh_tree_condition_true(o, "Suspended"))
        condition(j, a, o, "Suspended", "False", "JobResumed", "Job resumed");
    if (j->end) {
        bool ok = bh_streq(j->end, "Complete");
        condition(j, a, o, ok ? "SuccessCriteriaMet" : "FailureTarget", "True", j->reason,
                  j->message);
        condition(j, a, o, j->end, "True", j->reason, j->message);
        if (ok)
            bh_tree_dflt_str(a, st, "completionTime", bh_ctl_now(j->c, a));
    }
    return true;
}

/* ---- sync ------------------------------------------------------------------------------------ */

/* ttlSecondsAfterFinished: a finished job goes by itself. */
static void expire(struct job *j)
{
    int64_t ttl = bh_tree_i64(j->tree, "spec.ttlSecondsAfterFinished", -1), at;
    const struct bh_json *c = bh_tree_condition(j->tree, "Complete");

    c = c ? c : bh_tree_condition(j->tree, "Failed");
    if (ttl < 0 || ttl > INT32_MAX || j->obj->deleting)
        return;
    at = bh_ctl_time_after(bh_tree_str(c, "lastTransitionTime"), ttl * 1000000000) -
         bh_sim_now_ns(j->c->sim);
    if (at > 0)
        bh_ctl_again(j->c, BH_CTL_JOB, j->obj, at + bh_ctl_delay(j->c, BH_CTL_DELAY_NS));
    else
        bh_ctl_delete(j->c, j->obj);
}

static void move(struct job *j)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(j->c->sim, j->obj->uid, j->c->t.pods);
    BH_CLEANUP(bh_freep)
    uint8_t *taken = j->indexed ? bh_calloc((size_t)j->completions + 1, 1) : NULL;

    for (size_t i = 0; i < pods.n; i++) {
        const struct bh_sim_obj *p = pods.v[i];
        bool ok = bh_streq(p->phase, "Succeeded");
        int64_t idx = j->indexed ? index_of(p) : -1;
        j->succeeded += ok;
        j->failed += bh_streq(p->phase, "Failed");
        if (bh_ctl_pod_active(p)) {
            j->active++;
            j->ready += bh_ctl_pod_ready(p);
        }
        if (taken && idx >= 0 && idx < j->completions && (ok || bh_ctl_pod_active(p)))
            taken[idx] = 1;
    }
    read_backoff(j, &pods);
    if (j->deadline_ns && bh_sim_now_ns(j->c->sim) >= j->deadline_ns) {
        j->end = "Failed";
        j->reason = "DeadlineExceeded";
        j->message = "Job was active longer than specified deadline";
    } else if (j->failed > j->backoff) {
        j->end = "Failed";
        j->reason = "BackoffLimitExceeded";
        j->message = "Job has reached the specified backoff limit";
    } else if (j->completions >= 0 ? j->succeeded >= j->completions
                                   : j->succeeded > 0 && j->active == 0) {
        j->end = "Complete";
        j->reason = "CompletionsReached";
        j->message = "Reached expected number of succeeded pods";
    }
    int64_t want = wanted_active(j);
    if (j->active < want && j->next_ns)
        look_again_at(j, j->next_ns);
    else if (j->active < want)
        create(j, want - j->active, taken);
    else if (j->active > want)
        delete_some(j, &pods, j->active - want);
}

void bh_ctl_sync_job(struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    struct job j = {.c = c, .obj = obj, .tree = bh_sim_obj_tree(&c->arena, obj)};

    if (bh_tree_condition_true(j.tree, "Complete") || bh_tree_condition_true(j.tree, "Failed")) {
        expire(&j);
        return;
    }
    if (obj->deleting)
        return;
    j.completions = bh_tree_i64(j.tree, "spec.completions", -1);
    j.parallelism = bh_tree_i64(j.tree, "spec.parallelism", 1);
    j.backoff = bh_tree_i64(j.tree, "spec.backoffLimit", 6);
    j.indexed = bh_tree_is(j.tree, "spec.completionMode", "Indexed") && j.completions >= 0;
    j.suspended = bh_tree_bool(j.tree, "spec.suspend", false);
    if (!j.suspended && bh_ctl_job_group(c, obj, j.tree, &j.group)) {
        bh_ctl_again(c, BH_CTL_JOB, obj, BH_CTL_RETRY_NS);
        return;
    }
    read_deadline(&j);
    move(&j);
    bh_ctl_edit(c, obj, BH_SIM_STATUS, write_status, &j);
    if (!j.end)
        return;
    bool ok = bh_streq(j.end, "Complete");
    bh_sim_event(c->sim, obj, ok ? "Normal" : "Warning", ok ? "Completed" : j.reason, COMPONENT,
                 "%s", ok ? "Job completed" : j.message);
    bh_ctl_again(c, BH_CTL_JOB, obj, 0);
}
