/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/coscheduling.c - how far the PodGroups of scheduling.x-k8s.io are
 *
 * The kind is there once its CustomResourceDefinition is (config/coscheduling-crd.yaml).
 *
 * Upstream: scheduler-plugins, pkg/controllers/podgroup_controller.go; differences: pods of other
 *           namespaces that have the same label do not count; of several owners' pods the first by name
 *           tells who occupies the group (upstream: any).
 */
#include "simulator/controllers/controllers.h"

#include <stdlib.h>

#include "common/k8s/coscheduling.h"

#define GROUP       "scheduling.x-k8s.io"
#define PLURAL      "podgroups"
#define TOO_LATE_NS (INT64_C(48) * 3600 * 1000000000)

struct progress {
    const char *phase;
    int64_t running, succeeded, failed;
    const char *occupied_by; /* NULL: as it is */
};

static const char *group_of(const struct bh_sim_obj *pod)
{
    for (uint32_t i = 0; i < pod->n_labels; i++)
        if (bh_streq(pod->labels[i].key, BH_COSCHEDULING_LABEL))
            return *pod->labels[i].value ? pod->labels[i].value : NULL;
    return NULL;
}

void bh_ctl_coscheduling_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                                const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    if (obj->type == c->t.pods) {
        const char *was = old ? group_of(old) : NULL, *is = group_of(obj);
        if (change == BH_SIM_MODIFIED && was && is && bh_streq(was, is) &&
            bh_streq(old->phase, obj->phase))
            return;
        if (was)
            bh_ctl_enqueue(c, BH_CTL_COSCHEDULING, obj->ns, was);
        if (is)
            bh_ctl_enqueue(c, BH_CTL_COSCHEDULING, obj->ns, is);
    } else if (change != BH_SIM_DELETED && bh_streq(obj->type->plural, PLURAL) &&
               bh_streq(obj->type->group, GROUP)) {
        bh_ctl_enqueue(c, BH_CTL_COSCHEDULING, obj->ns, obj->name);
    }
}

/* ---- one group ------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "ns/owner,ns/owner", sorted; NULL: nobody owns the pod. */
static const char *owners_of(struct bh_arena *a, const struct bh_sim_obj *pod)
{
    const struct bh_json *refs = bh_tree_arr(bh_sim_obj_tree(a, pod), "metadata.ownerReferences");
    const char **v = bh_arena_new_array(a, const char *, bh_tree_len(refs) + 1), *text = NULL;
    size_t n = 0;

    bh_json_each(ref, refs)
        v[n++] = bh_arena_printf(a, "%s/%s", pod->ns, bh_json_get_text(ref, "name"));
    qsort(v, n, sizeof *v, by_text);
    for (size_t i = 0; i < n; i++)
        text = text ? bh_arena_printf(a, "%s,%s", text, v[i]) : v[i];
    return text;
}

static struct bh_sim_objs members(struct bh_sim_controllers *c, const struct bh_sim_objs *all,
                                  const char *name)
{
    struct bh_sim_objs ret = {
        .v = bh_arena_alloc(&c->arena, (all->n + 1) * sizeof(struct bh_sim_obj *))};

    for (size_t i = 0; i < all->n; i++) {
        const char *group = group_of(all->v[i]);
        if (group && bh_streq(group, name))
            ret.v[ret.n++] = all->v[i];
    }
    return ret;
}

static void count(struct progress *p, const struct bh_sim_objs *pods)
{
    p->running = p->succeeded = p->failed = 0;
    for (size_t i = 0; i < pods->n; i++) {
        p->running += bh_streq(pods->v[i]->phase, "Running");
        p->succeeded += bh_streq(pods->v[i]->phase, "Succeeded");
        p->failed += bh_streq(pods->v[i]->phase, "Failed");
    }
}

/* The next phase. One that has begun is counted, and what is said last counts. */
static void advance(struct bh_arena *a, struct progress *p, int64_t min,
                    const struct bh_sim_objs *pods)
{
    const int64_t n = (int64_t)pods->n;

    if (!*p->phase) {
        p->phase = "Pending";
        return;
    }
    if (bh_streq(p->phase, "Pending")) {
        if (n < min)
            return;
        p->phase = "Scheduling";
        p->occupied_by = n ? owners_of(a, pods->v[0]) : NULL;
        return;
    }
    count(p, pods);
    if (n < min) {
        p->phase = "Pending";
        return;
    }
    p->phase = p->succeeded + p->running < min ? "Scheduling" : "Running";
    if (p->failed && p->failed + p->running + p->succeeded >= min)
        p->phase = "Failed";
    if (p->succeeded >= min)
        p->phase = "Finished";
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct progress *p = arg;
    struct bh_json *s = bh_tree_dflt_obj(a, o, "status");
    const int64_t n[] = {p->running, p->succeeded, p->failed};
    static const char *const names[] = {"running", "succeeded", "failed"};

    if (!s)
        return false;
    bh_json_set_str(a, s, "phase", p->phase);
    if (p->occupied_by)
        bh_json_set_str(a, s, "occupiedBy", p->occupied_by);
    for (unsigned i = 0; i < BH_ARRAY_LEN(n); i++)
        if (n[i]) /* as Go leaves out a zero */
            bh_json_set_i64(a, s, names[i], n[i]);
        else
            bh_json_unset(s, names[i]);
    return true;
}

/* It waited for so long that its pods may have been collected meanwhile. */
static bool is_too_late(struct bh_sim_controllers *c, const struct bh_sim_obj *group,
                        const struct bh_json *tree, const struct progress *p)
{
    int64_t began_ns = 0, made_ns = 0;

    if ((!bh_streq(p->phase, "Scheduling") && !bh_streq(p->phase, "Pending")) || p->running ||
        bh_time_parse_ns(bh_tree_str(tree, "status.scheduleStartTime"), &began_ns) < 0 ||
        bh_time_parse_ns(bh_tree_str(tree, "metadata.creationTimestamp"), &made_ns) < 0 ||
        began_ns - made_ns <= TOO_LATE_NS)
        return false;
    bh_sim_event(c->sim, group, "Warning", "Timeout", "PodGroupController",
                 "schedule time longer than 48 hours");
    return true;
}

static void sync_group(struct bh_sim_controllers *c, const struct bh_sim_obj *group)
{
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs all = bh_sim_listed(c->sim, c->t.pods, group->ns);
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, group);
    const struct bh_sim_objs pods = members(c, &all, group->name);
    const char *phase = bh_tree_str(tree, "status.phase");
    struct progress p = {.phase = phase ? phase : "",
                         .running = bh_tree_i64(tree, "status.running", 0),
                         .succeeded = bh_tree_i64(tree, "status.succeeded", 0),
                         .failed = bh_tree_i64(tree, "status.failed", 0)};

    if (bh_streq(p.phase, "Finished") || bh_streq(p.phase, "Failed") ||
        is_too_late(c, group, tree, &p))
        return;
    advance(&c->arena, &p, bh_tree_i64(tree, "spec.minMember", 0), &pods);
    bh_ctl_edit(c, group, BH_SIM_STATUS, write_status, &p);
}

void bh_ctl_sync_coscheduling(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    const struct bh_sim_type *t = bh_sim_find_type(c->sim, GROUP, "v1alpha1", PLURAL);
    struct bh_sim_obj *group = t ? bh_sim_get(c->sim, t, ns, name) : NULL;

    if (!group || group->deleting)
        return;
    bh_sim_obj_ref(group);
    sync_group(c, group);
    bh_sim_obj_unref(group);
}
