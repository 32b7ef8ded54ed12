/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/job.c - jobs: pods until enough have succeeded
 *
 * A job's pods carry a finalizer until the job has counted them. Those that are to be counted stand in
 * status.uncountedTerminatedPods first; one without the finalizer goes from there into the counters. So
 * a pod that somebody deletes is not lost, and none is counted twice.
 * Upstream: pkg/controller/job/job_controller.go (v1.36); differences: failed pods that are gone do not
 * make the back-off longer; pods of indexed jobs with the same index are taken away in no order.
 */
#include "simulator/controllers/controllers.h"
#include "simulator/controllers/job.h"

#include <inttypes.h>

#define COMPONENT      "job-controller"
#define BACKOFF_NS     ((int64_t)10 * 1000000000)
#define BACKOFF_MAX_NS ((int64_t)360 * 1000000000)
#define INDEX_LABEL    "batch.kubernetes.io/job-completion-index"
#define FAILURES       "batch.kubernetes.io/job-index-failure-count"
#define IGNORED        "batch.kubernetes.io/job-index-ignored-failure-count"
#define TRACKING       "batch.kubernetes.io/job-tracking"

struct job_pod {
    struct bh_sim_obj *obj; /* as it was when the sync began */
    int64_t index;          /* -1: none, or not one of the job's */
    bool tracked;           /* has the finalizer: is not counted yet */
    bool listed;            /* as uncounted, by an earlier sync */
    bool active, surplus, succeeded, failed;
    enum bh_job_action action; /* of a failed one that is tracked */
    bool kept;                 /* the next one of its index will carry on its number of failures */
    int64_t failures, ignored, finished_ns; /* of one that is kept */
};

struct job {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *obj;
    const struct bh_json *tree;
    struct job_pod *pod;
    size_t n_pods;
    uint8_t *index; /* of an indexed job: BH_JOB_DONE, ... of each */
    int32_t *last;  /* with back-off per index: its pod that is kept, or -1 */
    int64_t active, ready, terminating;
    int64_t succeeded, failed;                    /* with those that are not counted yet */
    int64_t counted_succeeded, counted_failed;    /* status.succeeded, failed */
    struct bh_json *list_succeeded, *list_failed; /* status.uncountedTerminatedPods */
    int64_t completions, parallelism, backoff;    /* completions -1 = any success ends it */
    int64_t index_backoff;                        /* -1 = none */
    bool indexed, suspended, replace_failed_only;
    const char *group;                  /* PodGroup of its pods; NULL = none */
    const char *end, *reason, *message; /* condition that it ends with: Complete or Failed */
    bool finished;                      /* and nothing is left to count or to wait for */
    int64_t deadline_ns;                /* wall clock; 0 = none */
    int64_t next_ns;                    /* when failed pods may be replaced; wall clock, 0 = now */
    size_t budget;                      /* pods that may still be let go in this sync */
};

static bool is_tracked(const struct bh_sim_obj *pod)
{
    return pod->has_finalizers && strstr(pod->json, "\"" TRACKING "\"");
}

static bool drop_tracking(void *arg BH_UNUSED, struct bh_arena *a, struct bh_json *pod)
{
    return bh_ctl_drop_finalizer((void *)(uintptr_t)TRACKING, a, pod);
}

static bool add_tracking(void *arg BH_UNUSED, struct bh_arena *a, struct bh_json *pod)
{
    struct bh_json *list = bh_tree_dflt_arr(a, bh_tree_obj(pod, "metadata"), "finalizers");

    if (!list || bh_tree_lists(list, TRACKING))
        return false;
    bh_json_push(list, bh_json_new_str(a, TRACKING, sizeof(TRACKING) - 1));
    return true;
}

static void look_again_at(struct job *j, int64_t wall_ns)
{
    bh_ctl_enqueue_after(j->c, BH_CTL_JOB, j->obj->ns, j->obj->name,
                         wall_ns - bh_sim_now_ns(j->c->sim));
}

static void end_as(struct job *j, const char *end, const char *reason, const char *message)
{
    if (j->end)
        return;
    j->end = end;
    j->reason = reason;
    j->message = message;
}

/* ---- its pods -------------------------------------------------------------------------------- */

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

static int64_t index_of(const struct job *j, const struct bh_sim_obj *pod)
{
    const char *v = j->indexed ? bh_sim_obj_label(pod, INDEX_LABEL) : NULL;
    char *end;
    int64_t i = v ? strtoll(v, &end, 10) : -1;

    return v && end != v && !*end && i >= 0 && i < j->completions ? i : -1;
}

static int64_t number_in(const struct bh_json *pod, const char *annotation)
{
    const char *v = bh_tree_annotation(pod, annotation);
    int64_t n = v ? strtoll(v, NULL, 10) : 0;

    return n < 0 || n > INT32_MAX ? 0 : n;
}

/* What the policies say about a failed pod that is not counted yet. */
static void judge(struct job *j, struct job_pod *p)
{
    struct bh_arena *a = &j->c->arena;
    const char *message = NULL;

    if (!bh_tree_has(j->tree, "spec.podFailurePolicy") && j->index_backoff < 0)
        return;
    const struct bh_json *tree = bh_sim_obj_tree(a, p->obj);
    p->action = bh_job_failure_action(a, j->tree, tree, &message);
    p->failures = number_in(tree, FAILURES);
    p->ignored = number_in(tree, IGNORED);
    if (p->action == BH_JOB_FAIL_JOB)
        end_as(j, "Failed", "PodFailurePolicy", message);
    if (j->index_backoff >= 0 && p->index >= 0 &&
        (p->action == BH_JOB_FAIL_INDEX ||
         (p->action != BH_JOB_IGNORE && p->failures >= j->index_backoff)))
        j->index[p->index] |= BH_JOB_LOST;
}

/* One pod into the sums. An active pod that nobody tracks (it was adopted, or comes from elsewhere) is
 * tracked from now on. */
static void read_pod(struct job *j, struct job_pod *p)
{
    struct bh_sim_obj *o = p->obj;
    bool stuck = o->deleting && !*o->node_name; /* no kubelet will ever end it */

    p->index = index_of(j, o);
    p->tracked = is_tracked(o);
    p->succeeded = bh_streq(o->phase, "Succeeded");
    p->failed = bh_streq(o->phase, "Failed") || stuck ||
                (o->deleting && !p->succeeded && !j->replace_failed_only);
    p->active = bh_ctl_pod_active(o);
    if (p->active && !p->tracked && !j->obj->deleting)
        p->tracked = !bh_ctl_edit(j->c, o, BH_SIM_MAIN, add_tracking, NULL);
    p->listed = p->tracked &&
                (bh_tree_lists(j->list_succeeded, o->uid) || bh_tree_lists(j->list_failed, o->uid));
    if (p->active) {
        j->active++;
        j->ready += bh_ctl_pod_ready(o);
    }
    bool ends = o->deleting && !bh_ctl_pod_finished(o);
    j->terminating += ends;
    if (j->indexed && p->active)
        p->surplus = p->index < 0 || j->index[p->index] & BH_JOB_BUSY;
    if (j->index && p->index >= 0 && (p->active || (ends && j->replace_failed_only)))
        j->index[p->index] |= BH_JOB_BUSY;
    if (!p->tracked || p->listed || (j->indexed && p->index < 0))
        return;
    if (p->succeeded && j->indexed)
        j->index[p->index] |= BH_JOB_DONE;
    j->succeeded += p->succeeded;
    if (p->failed)
        judge(j, p);
    j->failed += p->failed && p->action != BH_JOB_IGNORE;
}

/* Each index that is neither done nor lost nor worked at keeps its last failed pod. */
static void keep_last(struct job *j)
{
    if (j->index_backoff < 0)
        return;
    j->last = bh_arena_array(&j->c->arena, (size_t)j->completions + 1, sizeof(*j->last));
    for (int64_t i = 0; i < j->completions; i++)
        j->last[i] = -1;
    for (size_t i = 0; i < j->n_pods; i++) {
        struct job_pod *p = &j->pod[i], *was;
        if (!p->tracked || !p->failed || p->index < 0 || j->index[p->index])
            continue;
        p->finished_ns = finished_ns(j, p->obj);
        was = j->last[p->index] < 0 ? NULL : &j->pod[j->last[p->index]];
        if (was && (p->failures + p->ignored < was->failures + was->ignored ||
                    p->finished_ns < was->finished_ns))
            continue;
        if (was)
            was->kept = false;
        p->kept = true;
        j->last[p->index] = (int32_t)i;
    }
}

/* Those listed as uncounted whose finalizer is off go into the counters. */
static struct bh_json *read_uncounted(struct job *j, const struct bh_sim_objs *pods,
                                      const char *which, int64_t *counted)
{
    struct bh_arena *a = &j->c->arena;
    struct bh_json *left = bh_json_new(a, BH_JSON_ARRAY);

    bh_json_each(u, bh_tree_arr(bh_tree_obj(j->tree, "status.uncountedTerminatedPods"), which)) {
        const char *uid = bh_json_cstr(u);
        bool tracked = false;
        for (size_t i = 0; uid && i < pods->n; i++)
            tracked = tracked || (bh_streq(pods->v[i]->uid, uid) && is_tracked(pods->v[i]));
        if (tracked)
            bh_json_push(left, bh_json_clone(a, u));
        else
            *counted += uid != NULL;
    }
    return left;
}

static void read_pods(struct job *j, const struct bh_sim_objs *pods)
{
    struct bh_arena *a = &j->c->arena;

    j->counted_succeeded = bh_tree_i64(j->tree, "status.succeeded", 0);
    j->counted_failed = bh_tree_i64(j->tree, "status.failed", 0);
    j->list_succeeded = read_uncounted(j, pods, "succeeded", &j->counted_succeeded);
    j->list_failed = read_uncounted(j, pods, "failed", &j->counted_failed);
    j->succeeded = j->counted_succeeded + (int64_t)bh_tree_len(j->list_succeeded);
    j->failed = j->counted_failed + (int64_t)bh_tree_len(j->list_failed);
    if (j->indexed) {
        j->index = bh_arena_array(a, (size_t)j->completions + 1, 1);
        bh_job_indexes_read(bh_tree_str(j->tree, "status.completedIndexes"), j->index,
                            j->completions, BH_JOB_DONE);
        bh_job_indexes_read(bh_tree_str(j->tree, "status.failedIndexes"), j->index, j->completions,
                            BH_JOB_LOST);
    }
    j->n_pods = pods->n;
    j->pod = bh_arena_array(a, pods->n + 1, sizeof(*j->pod));
    for (size_t i = 0; i < pods->n; i++) {
        j->pod[i].obj = pods->v[i];
        read_pod(j, &j->pod[i]);
    }
    if (j->indexed)
        j->succeeded = bh_job_indexes_count(j->index, j->completions, BH_JOB_DONE);
    keep_last(j);
}

/* ---- deadline, back-off ---------------------------------------------------------------------- */

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

static int64_t delay_after(int64_t failures)
{
    int64_t delay = BACKOFF_NS;

    while (--failures > 0 && delay < BACKOFF_MAX_NS)
        delay *= 2;
    return BH_MIN(delay, BACKOFF_MAX_NS);
}

/* Pods that failed since the last success are replaced 10 s, 20 s, 40 s ... after the last one. */
static void read_backoff(struct job *j)
{
    int64_t success = 0, last = 0, n = 0, t;

    for (size_t i = 0; i < j->n_pods; i++)
        n += bh_streq(j->pod[i].obj->phase, "Failed"); /* those that are ignored, too */
    if (!n || j->index_backoff >= 0)
        return;
    n = 0;
    for (size_t i = 0; i < j->n_pods; i++)
        if (j->pod[i].succeeded)
            success = BH_MAX(success, finished_ns(j, j->pod[i].obj));
    for (size_t i = 0; i < j->n_pods; i++) {
        if (!bh_streq(j->pod[i].obj->phase, "Failed") ||
            (t = finished_ns(j, j->pod[i].obj)) < success)
            continue;
        last = BH_MAX(last, t);
        n++;
    }
    if (n && last && last > bh_sim_now_ns(j->c->sim) - delay_after(n))
        j->next_ns = last + delay_after(n);
}

/* The same for one index; 0: its next pod may come now. */
static int64_t index_waits_until(const struct job *j, int64_t index)
{
    const struct job_pod *p = j->last && j->last[index] >= 0 ? &j->pod[j->last[index]] : NULL;
    int64_t delay = p ? delay_after(p->failures + p->ignored + 1) : 0;

    return p && p->finished_ns > bh_sim_now_ns(j->c->sim) - delay ? p->finished_ns + delay : 0;
}

/* Containers that start again in their pods count as well. */
static bool too_many_restarts(const struct job *j)
{
    static const char key[] = "\"restartCount\":";
    int64_t n = 0;

    if (!bh_tree_is(j->tree, "spec.template.spec.restartPolicy", "OnFailure"))
        return false;
    for (size_t i = 0; i < j->n_pods; i++) {
        const char *at = bh_ctl_pod_finished(j->pod[i].obj) ? "" : j->pod[i].obj->json;
        while ((at = strstr(at, key)))
            n += strtoll(at += sizeof(key) - 1, NULL, 10);
    }
    return j->backoff ? n >= j->backoff : n > 0;
}

/* ---- how it ends ----------------------------------------------------------------------------- */

/* What an earlier sync has found stays true. */
static void read_end(struct job *j)
{
    static const char *const ends[][2] = {{"SuccessCriteriaMet", "Complete"},
                                          {"FailureTarget", "Failed"}};

    for (size_t i = 0; i < BH_ARRAY_LEN(ends); i++) {
        const struct bh_json *c = bh_tree_condition(j->tree, ends[i][0]);
        if (c && bh_tree_is(c, "status", "True"))
            end_as(j, ends[i][1], bh_tree_str(c, "reason"), bh_tree_str(c, "message"));
    }
}

static void find_index_end(struct job *j)
{
    int64_t lost =
        j->index_backoff < 0 ? 0 : bh_job_indexes_count(j->index, j->completions, BH_JOB_LOST);
    int64_t most = bh_tree_i64(j->tree, "spec.maxFailedIndexes", -1);

    if (most >= 0 && lost > most)
        end_as(j, "Failed", "MaxFailedIndexesExceeded",
               "Job has exceeded the specified maximal number of failed indexes");
    else if (lost && lost + j->succeeded >= j->completions)
        end_as(j, "Failed", "FailedIndexes", "Job has failed indexes");
    if (j->end)
        return;
    int64_t rule = bh_job_success_rule(&j->c->arena, j->tree, j->index, j->completions);
    if (rule >= 0)
        end_as(j, "Complete", "SuccessPolicy",
               bh_arena_printf(&j->c->arena, "Matched rules at index %" PRId64, rule));
}

static void find_end(struct job *j)
{
    if (j->failed > j->backoff || too_many_restarts(j))
        end_as(j, "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    else if (j->deadline_ns && bh_sim_now_ns(j->c->sim) >= j->deadline_ns)
        end_as(j, "Failed", "DeadlineExceeded", "Job was active longer than specified deadline");
    if (j->indexed)
        find_index_end(j);
}

/* ---- pods come and go ------------------------------------------------------------------------ */

static struct bh_json *pod_for(struct job *j, int64_t idx)
{
    struct bh_arena *a = &j->c->pod_arena;
    const struct bh_json *template = bh_tree_obj(j->tree, "spec.template");
    const char *n = bh_arena_printf(a, "%" PRId64, idx);
    const char *name = idx < 0 ? j->obj->name : bh_arena_printf(a, "%s-%s", j->obj->name, n);
    struct bh_json *pod = bh_ctl_pod_of(a, j->obj, template, name);

    add_tracking(NULL, a, pod);
    if (idx < 0)
        return pod; /* has no group: is not indexed */
    bh_json_add(a, pod,
                "metadata: {labels: {" INDEX_LABEL ": %s}, annotations: {" INDEX_LABEL ": %s}}, "
                "spec: {hostname: %s}",
                n, n, name);
    if (j->group)
        bh_json_add(a, pod, "spec: {schedulingGroup: {podGroupName: %s}}", j->group);
    return pod;
}

/* Every container knows its index, unless its template says something else. */
static void add_index_variable(struct bh_arena *a, struct bh_json *pod)
{
    static const char *const lists[] = {"spec.initContainers", "spec.containers"};
    static const char name[] = "JOB_COMPLETION_INDEX";

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(c, bh_tree_arr(pod, lists[i])) {
            struct bh_json *env = bh_tree_dflt_arr(a, c, "env");
            bool there = !env;
            bh_json_each(e, env)
                there = there || bh_tree_is(e, "name", name);
            if (!there)
                bh_json_append(a, env, "name: %s, valueFrom: {fieldRef: {fieldPath: %s}}", name,
                               "metadata.labels['" INDEX_LABEL "']");
        }
    }
}

/* How often pods of this index failed before it. */
static void add_failures(struct job *j, struct bh_arena *a, struct bh_json *pod, int64_t idx)
{
    const struct job_pod *p = j->last[idx] < 0 ? NULL : &j->pod[j->last[idx]];
    bool ignored = p && p->action == BH_JOB_IGNORE;
    int64_t failures = p ? p->failures + !ignored : 0, all_ignored = p ? p->ignored + ignored : 0;

    bh_json_add(a, pod, "metadata: {annotations: {" FAILURES ": %s}}",
                bh_arena_printf(a, "%" PRId64, failures));
    if (all_ignored)
        bh_json_add(a, pod, "metadata: {annotations: {" IGNORED ": %s}}",
                    bh_arena_printf(a, "%" PRId64, all_ignored));
}

/* The next index from *at on that wants a pod and may have one now; false: there is none. */
static bool next_index(struct job *j, int64_t *at)
{
    for (; ++*at < j->completions;) {
        int64_t until = j->index[*at] ? 0 : index_waits_until(j, *at);
        if (until)
            look_again_at(j, until);
        else if (!j->index[*at])
            return true;
    }
    return false;
}

static void create(struct job *j, int64_t n)
{
    int64_t idx = -1, todo = BH_MIN(n, BH_CTL_BATCH);

    for (int64_t i = 0; i < todo; i++) {
        if (j->indexed && !next_index(j, &idx))
            return;
        struct bh_json *pod = pod_for(j, idx);
        if (j->indexed)
            add_index_variable(&j->c->pod_arena, pod);
        if (j->index_backoff >= 0)
            add_failures(j, &j->c->pod_arena, pod, idx);
        if (bh_ctl_pod_create(j->c, BH_CTL_JOB, j->obj, pod))
            return;
        j->active++;
    }
    if (todo < n)
        bh_ctl_again(j->c, BH_CTL_JOB, j->obj, 0);
}

static void delete_pod(struct job *j, const struct bh_sim_obj *pod)
{
    j->active--;
    j->ready -= bh_ctl_pod_ready(pod);
    j->terminating++;
    bh_ctl_pod_delete(j->c, BH_CTL_JOB, j->obj, pod);
}

/* Pods that are too many: those that have no index of their own first. They do not count as failed. */
static void delete_some(struct job *j, int64_t n)
{
    struct bh_sim_objs rest = {
        .v = bh_arena_array(&j->c->arena, j->n_pods + 1, sizeof(struct bh_sim_obj *))};

    for (size_t i = 0; i < j->n_pods; i++) {
        struct bh_sim_obj *o = j->pod[i].obj;
        if (!j->pod[i].active)
            continue;
        if (!j->pod[i].surplus) {
            rest.v[rest.n++] = o;
            continue;
        }
        bh_ctl_edit(j->c, o, BH_SIM_MAIN, drop_tracking, NULL);
        delete_pod(j, o);
        n--;
    }
    bh_ctl_pods_rank(&rest);
    for (size_t i = 0; i < rest.n && n > 0; i++, n--) {
        bh_ctl_edit(j->c, rest.v[i], BH_SIM_MAIN, drop_tracking, NULL);
        delete_pod(j, rest.v[i]);
    }
}

static int64_t wanted_active(const struct job *j)
{
    if (j->suspended)
        return 0;
    if (j->completions < 0)
        return j->succeeded ? j->active : j->parallelism;
    return BH_MAX(BH_MIN(j->parallelism, j->completions - j->succeeded), 0);
}

static void manage(struct job *j)
{
    int64_t want = wanted_active(j), surplus = 0;
    int64_t have = j->active + (j->replace_failed_only ? j->terminating : 0);

    for (size_t i = 0; i < j->n_pods; i++)
        surplus += j->pod[i].surplus;
    if (j->active > want || surplus)
        delete_some(j, BH_MAX(j->active - want, surplus));
    else if (have < want && !j->suspended && j->next_ns)
        look_again_at(j, j->next_ns);
    else if (have < want && !j->suspended)
        create(j, want - have);
    if (j->completions >= 0 ? j->succeeded >= j->completions && !j->active
                            : j->succeeded > 0 && !j->active)
        end_as(j, "Complete", "CompletionsReached", "Reached expected number of succeeded pods");
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Whether the job is done with the pod; it is listed as uncounted then, if it counts. */
static bool let_go(struct job *j, struct job_pod *p)
{
    bool lost = j->end && bh_streq(j->end, "Failed");
    struct bh_json *uid;

    if (!p->tracked || !(j->obj->deleting || j->end || p->succeeded || (p->failed && !p->kept)))
        return false;
    if (p->listed || (j->indexed && p->index < 0))
        return true;
    uid = bh_json_new_str(&j->c->arena, p->obj->uid, strlen(p->obj->uid));
    if (p->succeeded && !j->indexed)
        bh_json_push(j->list_succeeded, uid);
    else if (!p->succeeded && (p->failed || lost) && p->action != BH_JOB_IGNORE)
        bh_json_push(j->list_failed, uid);
    return true;
}

/* Marks the pods that lose their finalizer once the status has been written; true when there are any. */
static bool track(struct job *j)
{
    bool some = false;

    for (size_t i = 0; i < j->n_pods; i++) {
        struct job_pod *p = &j->pod[i];
        p->tracked = j->budget && let_go(j, p); /* from here on: to be let go */
        j->budget -= p->tracked;
        some = some || p->tracked;
    }
    return some;
}

static void release(struct job *j)
{
    for (size_t i = 0; i < j->n_pods; i++)
        if (j->pod[i].tracked)
            bh_ctl_edit(j->c, j->pod[i].obj, BH_SIM_MAIN, drop_tracking, NULL);
    bh_ctl_again(j->c, BH_CTL_JOB, j->obj, 0);
}

/* ---- status ---------------------------------------------------------------------------------- */

static void condition(struct job *j, struct bh_arena *a, struct bh_json *o, const char *type,
                      const char *status, const char *reason, const char *message)
{
    const char *now = bh_ctl_now(j->c, a);

    if (bh_tree_set_condition(a, o, type, status, reason, message, now))
        bh_json_set_str(a, bh_tree_condition(o, type), "lastProbeTime", now);
}

static void write_indexes(const struct job *j, struct bh_arena *a, struct bh_json *st,
                          const char *key, uint8_t mark)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_job_indexes_write(&b, j->index, j->completions, mark);
    if (b.n || mark == BH_JOB_LOST)
        bh_json_set_str(a, st, key, b.n ? bh_buf_str(&b) : "");
}

static void write_end(struct job *j, struct bh_arena *a, struct bh_json *o, struct bh_json *st)
{
    bool ok = bh_streq(j->end, "Complete");

    condition(j, a, o, ok ? "SuccessCriteriaMet" : "FailureTarget", "True", j->reason, j->message);
    if (!j->finished)
        return;
    condition(j, a, o, j->end, "True", j->reason, j->message);
    if (ok)
        bh_tree_dflt_str(a, st, "completionTime", bh_ctl_now(j->c, a));
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    struct job *j = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status");

    if (!j->suspended)
        bh_tree_dflt_str(a, st, "startTime", bh_ctl_now(j->c, a));
    else if (!j->end)
        bh_json_unset(st, "startTime");
    bh_json_unset(st, "uncountedTerminatedPods");
    bh_json_add(a, st,
                "active?: %ld, succeeded?: %ld, failed?: %ld, ready: %ld, terminating: %ld, "
                "uncountedTerminatedPods: {succeeded?: %p, failed?: %p}",
                j->active, j->indexed ? j->succeeded : j->counted_succeeded, j->counted_failed,
                j->ready, j->terminating, bh_json_clone(a, j->list_succeeded),
                bh_json_clone(a, j->list_failed));
    if (j->indexed)
        write_indexes(j, a, st, "completedIndexes", BH_JOB_DONE);
    if (j->index_backoff >= 0)
        write_indexes(j, a, st, "failedIndexes", BH_JOB_LOST);
    if (j->suspended && !j->end)
        condition(j, a, o, "Suspended", "True", "JobSuspended", "Job suspended");
    else if (!j->suspended && bh_tree_condition_true(o, "Suspended"))
        condition(j, a, o, "Suspended", "False", "JobResumed", "Job resumed");
    if (j->end)
        write_end(j, a, o, st);
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

static void read_spec(struct job *j)
{
    const struct bh_json *spec = bh_tree_obj(j->tree, "spec");

    j->completions = bh_tree_i64(spec, "completions", -1);
    j->parallelism = bh_tree_i64(spec, "parallelism", 1);
    j->backoff = bh_tree_i64(spec, "backoffLimit", 6);
    j->indexed = bh_tree_is(spec, "completionMode", "Indexed") && j->completions >= 0;
    j->index_backoff = j->indexed ? bh_tree_i64(spec, "backoffLimitPerIndex", -1) : -1;
    j->suspended = bh_tree_bool(spec, "suspend", false);
    j->replace_failed_only = bh_tree_is(spec, "podReplacementPolicy", "Failed");
}

/* From what the pods are to what the job is, and back. */
static void move(struct job *j)
{
    read_end(j);
    if (!j->end)
        read_deadline(j);
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(j->c->sim, j->obj->uid, j->c->t.pods);
    read_pods(j, &pods);
    read_backoff(j);
    if (!j->end)
        find_end(j);
    if (!j->end && !j->obj->deleting)
        manage(j);
    for (size_t i = 0; j->end && i < j->n_pods; i++)
        if (j->pod[i].active)
            delete_pod(j, j->pod[i].obj);
    bool some = track(j);
    j->finished = j->end && !some && !j->terminating && !bh_tree_len(j->list_succeeded) &&
                  !bh_tree_len(j->list_failed);
    bh_ctl_edit(j->c, j->obj, BH_SIM_STATUS, write_status, j);
    if (some)
        release(j);
}

static bool has_ended(const struct bh_json *job)
{
    return bh_tree_condition_true(job, "Complete") || bh_tree_condition_true(job, "Failed");
}

/* Another controller looks after it. */
static bool is_foreign(const struct bh_json *job)
{
    const char *by = bh_tree_str(job, "spec.managedBy");

    return by && !bh_streq(by, "kubernetes.io/job-controller");
}

void bh_ctl_sync_job(struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    struct job j = {
        .c = c, .obj = obj, .tree = bh_sim_obj_tree(&c->arena, obj), .budget = BH_CTL_BATCH};

    if (has_ended(j.tree)) {
        expire(&j);
        return;
    }
    if (is_foreign(j.tree))
        return;
    read_spec(&j);
    if (!j.suspended && !obj->deleting && bh_ctl_job_group(c, obj, j.tree, &j.group)) {
        bh_ctl_again(c, BH_CTL_JOB, obj, BH_CTL_RETRY_NS);
        return;
    }
    move(&j);
    if (!j.finished)
        return;
    bool ok = bh_streq(j.end, "Complete");
    bh_sim_event(c->sim, obj, ok ? "Normal" : "Warning", ok ? "Completed" : j.reason, COMPONENT,
                 "%s", ok ? "Job completed" : j.message);
    bh_ctl_again(c, BH_CTL_JOB, obj, 0);
}

/* ---- pods whose job is gone ------------------------------------------------------------------ */

void bh_ctl_sync_job_orphan(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    const struct bh_sim_obj *pod = bh_sim_get(c->sim, c->t.pods, ns, name);
    const struct bh_ctl_known *o =
        pod ? bh_map_get(&c->owners, pod->owner_uid, strlen(pod->owner_uid)) : NULL;
    const struct bh_sim_obj *job =
        o && o->ctl == BH_CTL_JOB ? bh_sim_get(c->sim, c->t.jobs, o->ns, o->name) : NULL;

    if (!pod || !is_tracked(pod))
        return;
    const struct bh_json *tree = job ? bh_sim_obj_tree(&c->arena, job) : NULL;
    if (!job || (has_ended(tree) && !is_foreign(tree)))
        bh_ctl_edit(c, pod, BH_SIM_MAIN, drop_tracking, NULL);
}

void bh_ctl_job_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                       const struct bh_sim_obj *obj)
{
    if (obj->type == c->t.pods && change != BH_SIM_DELETED && is_tracked(obj) &&
        (obj->deleting || !*obj->owner_uid))
        bh_ctl_enqueue(c, BH_CTL_JOB_ORPHAN, obj->ns, obj->name);
    if (obj->type != c->t.jobs || change != BH_SIM_DELETED)
        return;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_owned(c->sim, obj->uid, c->t.pods);
    for (size_t i = 0; i < l.n; i++)
        if (is_tracked(l.v[i]))
            bh_ctl_enqueue(c, BH_CTL_JOB_ORPHAN, l.v[i]->ns, l.v[i]->name);
}
