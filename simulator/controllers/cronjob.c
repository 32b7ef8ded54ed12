/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/cronjob.c - cron jobs: a job at each time of the schedule
 *
 * Upstream: pkg/controller/cronjob/cronjob_controllerv2.go, utils.go (v1.36); differences:
 * of many missed times only the last is started, as upstream, but they are not counted.
 */
#include "simulator/controllers/controllers.h"

#include "simulator/admission/cron.h"

#include <inttypes.h>

#define COMPONENT "cronjob-controller"
#define S         ((int64_t)1000000000)

struct cron {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *obj;
    const struct bh_json *tree;
    struct bh_sim_objs jobs; /* its own */
    struct bh_cron schedule;
    struct bh_zone zone;
    int64_t now, next;        /* seconds; next INT64_MAX = never */
    int64_t started;          /* the schedule time that is started now; 0 = none */
    const char *last_success; /* latest completionTime seen */
    struct bh_sim_obj *made;  /* referenced */
};

static void note(struct cron *k, const char *type, const char *reason, const char *what,
                 const char *about)
{
    bh_sim_event(k->c->sim, k->obj, type, reason, COMPONENT, "%s%s", what, about);
}

static void delete_job(struct cron *k, const struct bh_sim_obj *job)
{
    if (!bh_ctl_delete(k->c, job))
        note(k, "Normal", "SuccessfulDelete", "Deleted job ", job->name);
}

/* "Complete", "Failed" or NULL. */
static const char *finished(const struct bh_json *job)
{
    return bh_tree_condition_true(job, "Complete") ? "Complete"
           : bh_tree_condition_true(job, "Failed") ? "Failed"
                                                   : NULL;
}

static const char *finish_of(struct cron *k, const struct bh_sim_obj *job)
{
    return finished(bh_sim_obj_tree(&k->c->arena, job));
}

/* ---- what is finished ------------------------------------------------------------------------ */

static int oldest_first(const void *a, const void *b)
{
    const struct bh_sim_obj *x = *(struct bh_sim_obj *const *)a,
                            *y = *(struct bh_sim_obj *const *)b;
    int c =
        strcmp(strstr(x->json, "\"creationTimestamp\""), strstr(y->json, "\"creationTimestamp\""));

    return c ? c : strcmp(x->name, y->name);
}

/* The oldest beyond the limit go. */
static void limit(struct cron *k, const char *how, int64_t keep)
{
    int64_t n = 0;

    for (size_t i = 0; i < k->jobs.n; i++) {
        const char *f = finish_of(k, k->jobs.v[i]);
        n += f && bh_streq(f, how) && !k->jobs.v[i]->deleting;
    }
    for (size_t i = 0; i < k->jobs.n && n > keep; i++) {
        const char *f = finish_of(k, k->jobs.v[i]);
        if (!f || !bh_streq(f, how) || k->jobs.v[i]->deleting)
            continue;
        delete_job(k, k->jobs.v[i]);
        n--;
    }
}

static bool was_active(const struct cron *k, const char *uid)
{
    bh_json_each(a, bh_tree_arr(k->tree, "status.active"))
        if (bh_tree_is(a, "uid", uid))
            return true;
    return false;
}

/* Of the active ones, which somebody deleted: writing the status leaves them out. */
static void tell_missing(struct cron *k)
{
    bh_json_each(a, bh_tree_arr(k->tree, "status.active")) {
        const char *uid = bh_tree_str(a, "uid"), *name = bh_tree_str(a, "name");
        size_t i = 0;
        while (i < k->jobs.n && uid && !bh_streq(k->jobs.v[i]->uid, uid))
            i++;
        if (i == k->jobs.n && uid && name)
            note(k, "Normal", "MissingJob", "Active job went missing: ", name);
    }
}

/* ---- starting -------------------------------------------------------------------------------- */

/* -1 = none. */
static int64_t deadline_of(const struct cron *k)
{
    int64_t s = bh_tree_i64(k->tree, "spec.startingDeadlineSeconds", -1);

    return BH_MIN(s, INT32_MAX);
}

/* The last time of the schedule that is due, 0 = none; sets next. */
static int64_t due(struct cron *k)
{
    const char *last = bh_tree_str(k->tree, "status.lastScheduleTime");
    int64_t deadline = deadline_of(k), found = 0, t;
    int64_t from =
        bh_ctl_time_after(last ? last : bh_tree_str(k->tree, "metadata.creationTimestamp"), 0) / S;

    if (deadline >= 0)
        from = BH_MAX(from, k->now - deadline);
    if (k->schedule.every_s) { /* no need to walk */
        t = k->schedule.every_s;
        found = k->now >= from + t ? from + (k->now - from) / t * t : 0;
        k->next = (found ? found : from) + t;
        return found;
    }
    /* From a while ago, when much was missed: only the last time counts. */
    for (int64_t back = 60; back < k->now - from; back *= 8) {
        t = bh_cron_next(&k->schedule, &k->zone, k->now - back);
        if (t <= k->now) {
            from = BH_MAX(from, k->now - back);
            break;
        }
    }
    while ((t = bh_cron_next(&k->schedule, &k->zone, from)) <= k->now)
        from = found = t;
    k->next = t;
    return found;
}

static void start(struct cron *k, int64_t at)
{
    struct bh_arena *a = &k->c->pod_arena;
    struct bh_sim_error e = {0};
    char when[32];

    bh_time_format_ns(when, at * S);
    struct bh_json *job =
        bh_ctl_made_of(a, k->obj, bh_tree_obj(k->tree, "spec.jobTemplate"), "batch/v1", "Job");
    bh_json_add(
        a, job,
        "metadata: {name: %s, annotations: {batch.kubernetes.io/cronjob-scheduled-timestamp: %s}}",
        bh_arena_printf(a, "%s-%" PRId64, k->obj->name, at / 60), when);
    int rc = bh_sim_create(k->c->sim, k->c->t.jobs, k->obj->ns, a, job, &k->made, &e);
    bh_arena_reset(&k->c->pod_arena);
    if (rc && rc != 409) {
        note(k, "Warning", "FailedCreate", "Error creating job: ", e.message);
        bh_ctl_again(k->c, BH_CTL_CRONJOB, k->obj, BH_CTL_RETRY_NS);
        return;
    }
    k->started = at; /* 409: it was started, but not noted */
    if (!rc)
        note(k, "Normal", "SuccessfulCreate", "Created job ", k->made->name);
}

static bool readable(struct cron *k)
{
    const char *text = bh_tree_str(k->tree, "spec.schedule");
    const char *zone = bh_tree_str(k->tree, "spec.timeZone");
    struct bh_err err = {{0}};

    if (bh_zone_load(&k->zone, zone ? zone : "", &err) < 0) {
        note(k, "Warning", "UnknownTimeZone", "invalid timeZone: ", err.msg);
        return false;
    }
    if (bh_cron_parse(text ? text : "", &k->schedule, &err) == 0)
        return true;
    note(k, "Warning", "UnParseableCronJobSchedule", "unparseable schedule: ", err.msg);
    return false;
}

static void move(struct cron *k)
{
    int64_t at, deadline = deadline_of(k), active = 0;
    const char *policy = bh_tree_str(k->tree, "spec.concurrencyPolicy");

    if (bh_tree_bool(k->tree, "spec.suspend", false) || !readable(k))
        return;
    at = due(k);
    if (k->next != INT64_MAX)
        bh_ctl_enqueue_after(k->c, BH_CTL_CRONJOB, k->obj->ns, k->obj->name,
                             k->next * S - bh_sim_now_ns(k->c->sim)); /* may be due already */
    if (!at)
        return;
    for (size_t i = 0; i < k->jobs.n; i++)
        active += !finish_of(k, k->jobs.v[i]);
    if (deadline >= 0 && at + deadline < k->now) {
        note(k, "Warning", "MissSchedule", "Missed scheduled time to start a job", "");
    } else if (policy && bh_streq(policy, "Forbid") && active) {
        note(k, "Normal", "JobAlreadyActive",
             "Not starting job because prior execution is running and concurrency policy is Forbid",
             "");
    } else {
        for (size_t i = 0; policy && bh_streq(policy, "Replace") && i < k->jobs.n; i++)
            if (!finish_of(k, k->jobs.v[i]))
                delete_job(k, k->jobs.v[i]);
        start(k, at);
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

static void add_active(struct bh_arena *a, struct bh_json *list, const struct bh_sim_obj *job)
{
    bh_json_append(a, list, "kind: Job, namespace: %s, name: %s, uid: %s, apiVersion: batch/v1",
                   job->ns, job->name, job->uid);
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    struct cron *k = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status"), *list = bh_json_new(a, BH_JSON_ARRAY);
    const char *was = bh_tree_str(st, "lastSuccessfulTime");
    char when[32];

    for (size_t i = 0; i < k->jobs.n; i++) {
        const struct bh_sim_obj *now =
            bh_sim_get(k->c->sim, k->c->t.jobs, k->jobs.v[i]->ns, k->jobs.v[i]->name);
        if (now && !now->deleting && !finish_of(k, k->jobs.v[i]))
            add_active(a, list, k->jobs.v[i]);
    }
    if (k->made)
        add_active(a, list, k->made);
    bh_json_add(a, st, "active?: %p", list->c.n ? list : NULL);
    if (k->started) {
        bh_time_format_ns(when, k->started * S);
        bh_json_set_str(a, st, "lastScheduleTime", when);
    }
    if (k->last_success && (!was || strcmp(k->last_success, was) > 0))
        bh_json_set_str(a, st, "lastSuccessfulTime", k->last_success);
    return true;
}

void bh_ctl_sync_cronjob(struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    struct cron k = {.c = c,
                     .obj = obj,
                     .tree = bh_sim_obj_tree(&c->arena, obj),
                     .jobs = bh_sim_owned(c->sim, obj->uid, c->t.jobs),
                     .now = bh_sim_now_ns(c->sim) / S,
                     .next = INT64_MAX};

    /* Says which jobs have ended since the last look. */
    for (size_t i = 0; i < k.jobs.n; i++) {
        const struct bh_json *job = bh_sim_obj_tree(&k.c->arena, k.jobs.v[i]);
        const char *how = finished(job), *when = bh_tree_str(job, "status.completionTime");
        if (!how || !was_active(&k, k.jobs.v[i]->uid))
            continue;
        bh_sim_event(k.c->sim, k.obj, "Normal", "SawCompletedJob", COMPONENT,
                     "Saw completed job: %s, condition: %s", k.jobs.v[i]->name, how);
        if (when && (!k.last_success || strcmp(when, k.last_success) > 0))
            k.last_success = when;
    }
    if (k.jobs.n)
        qsort(k.jobs.v, k.jobs.n, sizeof(struct bh_sim_obj *), oldest_first);
    limit(&k, "Complete", bh_tree_i64(k.tree, "spec.successfulJobsHistoryLimit", 3));
    limit(&k, "Failed", bh_tree_i64(k.tree, "spec.failedJobsHistoryLimit", 1));
    tell_missing(&k);
    move(&k);
    bh_zone_fini(&k.zone);
    bh_ctl_edit(c, obj, BH_SIM_STATUS, write_status, &k);
    bh_sim_objs_fini(&k.jobs);
    bh_sim_obj_unref(k.made);
}
