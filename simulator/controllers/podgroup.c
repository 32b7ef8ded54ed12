/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/podgroup.c - groups of pods: how long they stay, and those that jobs make
 *
 * Upstream: pkg/controller/podgroupprotection, pkg/controller/job (gate WorkloadWithJob) (v1.36);
 * differences: the hash in a group's name is our own.
 */
#include "simulator/controllers/controllers.h"

#include <errno.h>
#include <inttypes.h>

#define PROTECTION "scheduling.k8s.io/podgroup-protection"
#define LABEL_MAX  63

/* ---- protection ------------------------------------------------------------------------------ */

static const char *group_of(struct bh_arena *a, const struct bh_sim_obj *pod)
{
    /* Stored text is compact: a pod without a group is not parsed. */
    return strstr(pod->json, "\"schedulingGroup\":")
               ? bh_tree_str(bh_sim_obj_tree(a, pod), "spec.schedulingGroup.podGroupName")
               : NULL;
}

void bh_ctl_sync_podgroup(struct bh_sim_controllers *c, struct bh_sim_obj *group)
{
    static char protection[] = PROTECTION;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};

    if (!group->deleting)
        return;
    bh_sim_list(c->sim, c->t.pods, group->ns, &l);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_arena_mark mark = bh_arena_mark(&c->arena);
        const char *name = bh_ctl_pod_finished(l.v[i]) ? NULL : group_of(&c->arena, l.v[i]);
        const bool member = name && bh_streq(name, group->name);
        bh_arena_rewind(&c->arena, mark);
        if (member)
            return;
    }
    bh_ctl_edit(c, group, BH_SIM_WHOLE, bh_ctl_drop_finalizer, protection);
}

void bh_ctl_podgroup_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                            const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const char *name;

    if (obj->type == c->t.podgroups && change != BH_SIM_DELETED && obj->deleting)
        bh_ctl_again(c, BH_CTL_PODGROUP, obj, 0);
    if (obj->type != c->t.pods || !bh_sim_count(c->sim, c->t.podgroups))
        return;
    if (change != BH_SIM_DELETED && !(bh_ctl_pod_finished(obj) && old && !bh_ctl_pod_finished(old)))
        return;
    name = group_of(&a, obj);
    if (name)
        bh_ctl_enqueue(c, BH_CTL_PODGROUP, obj->ns, name);
}

/* ---- groups of jobs -------------------------------------------------------------------------- */

static uint32_t fnv32a(const char *s)
{
    uint32_t h = 2166136261u;

    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 16777619u;
    return h;
}

static struct bh_json *gang(struct bh_arena *a, int64_t n)
{
    return bh_json_make(a, "gang: {minCount: %ld}", n);
}

static struct bh_json *named(struct bh_arena *a, const struct bh_sim_obj *job, const char *kind,
                             const char *name)
{
    struct bh_json *o = bh_ctl_made_of(a, job, NULL, "scheduling.k8s.io/v1alpha2", kind);

    return bh_json_add(a, o, "metadata: {name: %s}", name);
}

static struct bh_sim_obj *owned(struct bh_sim_controllers *c, const struct bh_sim_obj *job,
                                const struct bh_sim_type *t)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_owned(c->sim, job->uid, t);

    for (size_t i = 0; i < l.n; i++)
        if (!l.v[i]->deleting)
            return bh_sim_obj_ref(l.v[i]);
    return NULL;
}

static struct bh_sim_obj *make_workload(struct bh_sim_controllers *c, struct bh_sim_obj *job,
                                        const char *template, int64_t parallelism)
{
    struct bh_arena *a = &c->arena;
    struct bh_sim_obj *made = NULL;
    struct bh_sim_error e = {0};
    const char *name = bh_arena_printf(a, "%s-%" PRIu32, job->name, fnv32a(job->uid));
    struct bh_json *o = bh_json_add(
        a, named(a, job, "Workload", name),
        "spec: {controllerRef: {apiGroup: batch, kind: Job, name: %s}, podGroupTemplates: []}",
        job->name);

    bh_json_append(a, bh_tree_arr(o, "spec.podGroupTemplates"), "name: %s, schedulingPolicy: %p",
                   template, gang(a, parallelism));
    if (bh_sim_create(c->sim, c->t.workloads, job->ns, a, o, &made, &e))
        bh_sim_event(c->sim, job, "Warning", "FailedCreate", "job-controller",
                     "Error creating Workload: %s", e.message);
    else
        bh_sim_event(c->sim, job, "Normal", "WorkloadCreated", "job-controller",
                     "Created Workload %s for Job %s", made->name, job->name);
    return made;
}

static struct bh_sim_obj *make_group(struct bh_sim_controllers *c, struct bh_sim_obj *job,
                                     const struct bh_sim_obj *workload, const char *template,
                                     int64_t parallelism)
{
    struct bh_arena *a = &c->arena;
    struct bh_sim_obj *made = NULL;
    struct bh_sim_error e = {0};
    const char *name =
        bh_arena_printf(a, "%s-%s-%" PRIx32, workload->name, template, fnv32a(workload->uid));
    struct bh_json *o = bh_json_add(
        a, named(a, job, "PodGroup", name),
        "spec: {podGroupTemplateRef: {workload: {workloadName: %s, podGroupTemplateName: %s}}, "
        "schedulingPolicy: %p}",
        workload->name, template, gang(a, parallelism));

    bh_json_append(a, bh_tree_arr(o, "metadata.ownerReferences"),
                   "apiVersion: scheduling.k8s.io/v1alpha2, kind: Workload, name: %s, uid: %s",
                   workload->name, workload->uid);
    if (bh_sim_create(c->sim, c->t.podgroups, job->ns, a, o, &made, &e))
        bh_sim_event(c->sim, job, "Warning", "FailedCreate", "job-controller",
                     "Error creating PodGroup: %s", e.message);
    return made;
}

/* All pods at once, each with an index of its own, in no group that somebody else made. */
static bool is_gang(const struct bh_json *job, int64_t parallelism)
{
    return parallelism > 1 && bh_tree_is(job, "spec.completionMode", "Indexed") &&
           bh_tree_i64(job, "spec.completions", -1) == parallelism &&
           !bh_tree_has(job, "spec.template.spec.schedulingGroup");
}

int bh_ctl_job_group(struct bh_sim_controllers *c, struct bh_sim_obj *job,
                     const struct bh_json *tree, const char **ret_name)
{
    const int64_t parallelism = bh_tree_i64(tree, "spec.parallelism", 1);
    struct bh_sim_obj *group, *workload;
    const char *template;

    *ret_name = NULL;
    if (!bh_sim_feature(c->sim, "WorkloadWithJob") || !is_gang(tree, parallelism))
        return 0;
    group = owned(c, job, c->t.podgroups);
    if (!group && bh_tree_has(tree, "status.startTime"))
        return 0; /* it began without one */
    if (!group) {
        template = bh_arena_printf(&c->arena, "%.*s-pgt-0", LABEL_MAX - 6, job->name);
        workload = owned(c, job, c->t.workloads);
        if (!workload)
            workload = make_workload(c, job, template, parallelism);
        if (workload)
            group = make_group(c, job, workload, template, parallelism);
        bh_sim_obj_unref(workload);
    }
    if (!group)
        return -EAGAIN;
    *ret_name = bh_arena_strdup(&c->arena, group->name);
    bh_sim_obj_unref(group);
    return 0;
}
