/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/pod.c - binding and eviction of pods
 *
 * Upstream: pkg/registry/core/pod/storage/{storage,eviction}.go (v1.36); differences: an eviction
 *           that races with another one is not retried, because nothing runs beside it.
 */
#include "simulator/server/pod.h"
#include "simulator/server/data.h"
#include "simulator/server/tree.h"

#include <stdio.h>

static const struct bh_sim_type *pods_type(void)
{
    return BH_SIM_TYPE("", "v1", "pods");
}

/* ---- binding --------------------------------------------------------------------------------- */

static void merge_map(struct bh_arena *a, struct bh_json *meta, const char *key,
                      const struct bh_json *from)
{
    if (!from || from->type != BH_JSON_OBJECT || !from->c.n)
        return;
    struct bh_json *to = bh_json_obj_at(a, meta, key);
    bh_json_each(m, from) {
        if (m->type == BH_JSON_STRING)
            bh_json_set(a, to, m->key.p, bh_json_clone(a, m));
    }
}

/* Sets the condition; lastTransitionTime moves only when the status changes. */
static void set_scheduled(struct bh_sim *s, struct bh_arena *a, struct bh_json *pod)
{
    struct bh_json *status = bh_json_obj_at(a, pod, "status");
    struct bh_json *c = bh_tree_condition(pod, "PodScheduled");
    if (!c)
        c = bh_json_append(a, bh_json_list_at(a, status, "conditions"), "type: PodScheduled");
    if (!bh_tree_is(c, "status", "True")) {
        char now[32];
        bh_time_format_ns(now, bh_sim_now_ns(s));
        bh_json_add(a, c, "status: 'True', lastProbeTime: null, lastTransitionTime: %s", now);
    }
    bh_json_drop(c, "reason message");
}

static int check_bind(const struct bh_sim_obj *o, const struct bh_json *tree, const char *uid,
                      struct bh_sim_error *e)
{
    char why[512];
    if (uid && *uid && !bh_streq(uid, o->uid))
        return bh_sim_other_uid(e, o, uid);
    if (o->deleting)
        snprintf(why, sizeof(why), "pod %s is being deleted, cannot be assigned to a host",
                 o->name);
    else if (*o->node_name)
        snprintf(why, sizeof(why), "pod %s is already assigned to node \"%s\"", o->name,
                 o->node_name);
    else if (bh_tree_len(bh_tree_arr(tree, "spec.schedulingGates")))
        snprintf(why, sizeof(why), "pod %s has non-empty .spec.schedulingGates", o->name);
    else
        return 0;
    snprintf(e->details_kind, sizeof(e->details_kind), "pods/binding");
    snprintf(e->details_name, sizeof(e->details_name), "%s", o->name);
    return bh_sim_fail(e, 409, "Conflict",
                       "Operation cannot be fulfilled on pods/binding \"%s\": %s", o->name, why);
}

struct bind {
    const char *uid, *rv, *node;
    const struct bh_json *labels, *annotations;
    bool dry_run;
};

static int bind_pod(struct bh_sim *s, const char *ns, const char *name, const struct bind *b,
                    struct bh_sim_error *e)
{
    struct bh_sim_slot *slot = bh_sim_slot_get(s, pods_type(), ns, name);
    if (!slot)
        return bh_sim_not_found(e, pods_type(), name);
    if (bh_sim_data_refuses(s, e))
        return e->code;
    if (bh_sim_other_rv(e, slot->cur, b->rv))
        return e->code;
    struct bh_arena *a = bh_sim_edit_begin(s);
    struct bh_json *tree = bh_sim_obj_tree(a, slot->cur);
    int rc = check_bind(slot->cur, tree, b->uid, e);
    if (!rc) {
        struct bh_json *meta = bh_json_get(tree, "metadata");
        bh_json_set_str(a, bh_json_obj_at(a, tree, "spec"), "nodeName", b->node);
        merge_map(a, meta, "labels", b->labels);
        merge_map(a, meta, "annotations", b->annotations);
        set_scheduled(s, a, tree);
        bh_json_unset(bh_json_get(tree, "status"), "nominatedNodeName");
        bh_sim_default_binding(s, a, tree, b->node);
        rc = bh_sim_store_update(s, slot, a, tree,
                                 BH_SIM_STORE_CHANGED | BH_SIM_STORE_KEEP_GENERATION |
                                     (b->dry_run ? BH_SIM_STORE_DRY_RUN : 0),
                                 NULL);
    }
    bh_sim_edit_end(s);
    return rc;
}

int bh_sim_pod_bind(struct bh_sim *s, const char *ns, const char *name,
                    const struct bh_json *binding, bool dry_run, struct bh_sim_error *e)
{
    const struct bh_json *meta = bh_json_get(binding, "metadata");
    const struct bh_json *target = bh_json_get(binding, "target");
    const struct bh_sim_type *t = bh_sim_type_find("", "v1", "bindings");
    const char *kind = bh_json_get_str(target, "kind");
    const char *given = bh_json_get_str(meta, "name");
    struct bind b = {.uid = bh_json_get_str(meta, "uid"),
                     .rv = bh_json_get_str(meta, "resourceVersion"),
                     .node = bh_json_get_str(target, "name"),
                     .labels = bh_json_get(meta, "labels"),
                     .annotations = bh_json_get(meta, "annotations"),
                     .dry_run = dry_run};
    if (given && *given && !bh_streq(given, name))
        return bh_sim_fail(e, 400, "BadRequest",
                           "name in URL does not match name in Binding object");
    if (kind && *kind && !bh_streq(kind, "Node") && !bh_streq(kind, "Minion")) {
        struct bh_buf v = {0};
        bh_buf_add_json_str(&v, kind, BH_MIN(strlen(kind), (size_t)100));
        bh_sim_field_error(e, "target.kind", "Unsupported value", bh_buf_str(&v),
                           "supported values: \"Node\", \"<empty>\"");
        bh_buf_fini(&v);
    }
    if (!b.node || !*b.node)
        bh_sim_field_error(e, "target.name", "Required value", NULL, "%s", "");
    if (bh_sim_error_close(e, t, name)) { /* upstream hands on a list of errors that is no Status */
        char text[256];
        snprintf(text, sizeof(text), "%s", strstr(e->message, " is invalid: ") + 13);
        *e = (struct bh_sim_error){0};
        return bh_sim_fail(e, 500, "", "%s", text);
    }
    return bind_pod(s, ns, name, &b, e);
}

int bh_sim_bind(struct bh_sim *s, const char *ns, const char *pod, const char *uid,
                const char *node, const struct bh_json *labels, const struct bh_json *annotations,
                struct bh_sim_error *e)
{
    struct bh_sim_error own;
    bh_sim_error_init(&own);
    const struct bind b = {.uid = uid, .node = node, .labels = labels, .annotations = annotations};
    return bind_pod(s, ns, pod, &b, e ? e : &own);
}

/* ---- eviction -------------------------------------------------------------------------------- */

/* The budgets of the pod's namespace that select it: how many, and the first one. */
static size_t budgets_of(struct bh_sim *s, const struct bh_sim_obj *pod, const struct bh_json *tree,
                         struct bh_sim_obj **ret_first)
{
    struct bh_sim_objs l;
    struct bh_arena a;
    size_t n = 0;
    bh_arena_init(&a, 0);
    bh_sim_list(s, bh_sim_type_find("policy", "v1", "poddisruptionbudgets"), pod->ns, &l);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_selector *sel;
        const struct bh_json *spec = bh_json_get(bh_sim_obj_tree(&a, l.v[i]), "spec");
        if (bh_selector_from_json(bh_json_get(spec, "selector"), &sel, NULL) < 0)
            continue;
        if (bh_selector_match_json(sel, bh_json_path(tree, "metadata.labels")) && n++ == 0)
            *ret_first = bh_sim_obj_ref(l.v[i]);
        bh_selector_free(sel);
    }
    bh_arena_fini(&a);
    bh_sim_objs_fini(&l);
    return n;
}

static int too_many(struct bh_sim_error *e, int retry_s, const char *cause)
{
    bh_sim_error_cause(e, "DisruptionBudget", "", cause);
    e->retry_after_s = retry_s;
    return bh_sim_fail(e, 429, "TooManyRequests",
                       "Cannot evict pod as it would violate the pod's disruption budget.");
}

struct take {
    const char *pod, *now;
};

static bool take_disruption(void *arg, struct bh_arena *a, struct bh_json *pdb)
{
    const struct take *t = arg;
    struct bh_json *st = bh_json_obj_at(a, pdb, "status");
    bh_json_set_i64(a, st, "disruptionsAllowed", bh_json_get_i64(st, "disruptionsAllowed", 0) - 1);
    bh_json_set_str(a, bh_json_obj_at(a, st, "disruptedPods"), t->pod, t->now);
    return true;
}

static int spend_budget(struct bh_sim *s, const struct bh_sim_obj *pod, const struct bh_json *tree,
                        const struct bh_sim_obj *pdb, bool dry_run, struct bh_sim_error *e)
{
    struct bh_arena a;
    bh_arena_init(&a, 0);
    const struct bh_json *b = bh_sim_obj_tree(&a, pdb);
    const struct bh_json *st = bh_json_get(b, "status");
    const char *policy = bh_json_get_str(bh_json_get(b, "spec"), "unhealthyPodEvictionPolicy");
    int64_t healthy = bh_json_get_i64(st, "currentHealthy", 0);
    int64_t desired = bh_json_get_i64(st, "desiredHealthy", 0);
    char text[320];
    int rc = 0;
    bool always = policy && bh_streq(policy, "AlwaysAllow");
    if (!bh_tree_condition_true(tree, "Ready") && (always || (desired > 0 && healthy >= desired))) {
        rc = 0;
    } else if (bh_json_get_i64(st, "observedGeneration", 0) < pdb->generation) {
        snprintf(text, sizeof(text),
                 "The disruption budget %s is still being processed by the server.", pdb->name);
        rc = too_many(e, 10, text);
    } else if (bh_json_get_i64(st, "disruptionsAllowed", 0) <= 0) {
        snprintf(text, sizeof(text),
                 "The disruption budget %s needs %lld healthy pods and has %lld currently",
                 pdb->name, (long long)desired, (long long)healthy);
        rc = too_many(e, 0, text);
    } else if (!dry_run) {
        char now[32];
        bh_time_format_ns(now, bh_sim_now_ns(s));
        struct take t = {pod->name, now};
        rc = bh_sim_edit(s, pdb->type, pdb->ns, pdb->name, NULL, BH_SIM_STATUS, take_disruption, &t,
                         NULL, e);
    }
    bh_arena_fini(&a);
    return rc;
}

static int check_budgets(struct bh_sim *s, const struct bh_sim_obj *pod, bool dry_run,
                         struct bh_sim_error *e)
{
    if (pod->deleting || bh_streq(pod->phase, "Succeeded") || bh_streq(pod->phase, "Failed") ||
        bh_streq(pod->phase, "Pending"))
        return 0;
    struct bh_arena a;
    bh_arena_init(&a, 0);
    struct bh_sim_obj *pdb = NULL;
    const struct bh_json *tree = bh_sim_obj_tree(&a, pod);
    size_t n = budgets_of(s, pod, tree, &pdb);
    int rc = 0;
    if (n > 1)
        rc = bh_sim_fail(e, 500, "InternalError",
                         "Internal error occurred: This pod has more than one PodDisruptionBudget, "
                         "which the eviction subresource does not support.");
    else if (n == 1)
        rc = spend_budget(s, pod, tree, pdb, dry_run, e);
    bh_sim_obj_unref(pdb);
    bh_arena_fini(&a);
    return rc;
}

void bh_sim_delete_options_read(const struct bh_json *v, struct bh_sim_delete_options *o)
{
    int64_t grace;
    if (bh_json_i64(bh_json_get(v, "gracePeriodSeconds"), &grace) && grace >= 0)
        o->grace_s = grace;
    const char *policy = bh_json_get_str(v, "propagationPolicy");
    if (policy)
        o->propagation = policy;
    else if (bh_json_get(v, "orphanDependents"))
        o->propagation = bh_json_get_bool(v, "orphanDependents", false) ? "Orphan" : "Background";
    o->uid = bh_json_get_str(bh_json_get(v, "preconditions"), "uid");
    o->resource_version = bh_json_get_str(bh_json_get(v, "preconditions"), "resourceVersion");
}

/* Jobs' failure policies and people see by it that the pod did not fail by itself. */
static bool tell_eviction(void *now, struct bh_arena *a, struct bh_json *pod)
{
    return bh_tree_set_condition(a, pod, "DisruptionTarget", "True", "EvictionByEvictionAPI",
                                 "Eviction API: evicting", now);
}

/* What the deletion's preconditions refuse is left as it is. */
static int mark_evicted(struct bh_sim *s, const struct bh_sim_obj *pod,
                        struct bh_sim_delete_options *o, struct bh_sim_error *e)
{
    char now[32], rv[32];

    snprintf(rv, sizeof(rv), "%llu", (unsigned long long)pod->rv);
    if ((o->uid && !bh_streq(o->uid, pod->uid)) ||
        (o->resource_version && !bh_streq(o->resource_version, rv)))
        return 0;
    o->resource_version = NULL; /* the pod changes, by us */
    bh_time_format_ns(now, bh_sim_now_ns(s));
    return bh_sim_edit(s, pods_type(), pod->ns, pod->name, pod->uid, BH_SIM_STATUS, tell_eviction,
                       now, NULL, e);
}

int bh_sim_pod_evict(struct bh_sim *s, const char *ns, const char *name,
                     const struct bh_json *eviction, bool dry_run, struct bh_sim_error *e)
{
    struct bh_sim_obj *pod = bh_sim_get(s, pods_type(), ns, name);
    if (!pod)
        return bh_sim_not_found(e, pods_type(), name);
    const char *kind = bh_json_get_text(eviction, "kind");
    if (eviction && !bh_streq(bh_json_get_text(bh_json_get(eviction, "metadata"), "name"), name))
        return bh_sim_fail(e, 400, "BadRequest",
                           "name in URL does not match name in Eviction object");
    if (*kind && !bh_streq(kind, "Eviction"))
        return bh_sim_fail(e, 400, "BadRequest",
                           "%.60s in version \"v1\" cannot be handled as a Eviction: no kind "
                           "\"%.60s\" is registered for version \"policy/v1\" in scheme "
                           "\"pkg/api/legacyscheme/scheme.go:30\"",
                           kind, kind);
    struct bh_sim_delete_options o = {.grace_s = -1};
    bh_sim_delete_options_read(bh_json_get(eviction, "deleteOptions"), &o);
    if (o.propagation && bh_word_at("Foreground Background Orphan", o.propagation) < 0) {
        static const char text[] =
            "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
        char shown[80];
        snprintf(shown, sizeof(shown), "\"%.70s\"", o.propagation);
        bh_sim_field_error(e, "propagationPolicy", "Unsupported value", shown, "%s", text);
        return bh_sim_fail(e, 422, "Invalid",
                           "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: "
                           "Unsupported value: %s: %s",
                           shown, text);
    }
    bh_sim_obj_ref(pod);
    int rc = check_budgets(s, pod, dry_run, e);
    if (!rc && !dry_run)
        rc = mark_evicted(s, pod, &o, e);
    if (!rc)
        rc = bh_sim_do_delete(s, pods_type(), ns, name, &o, dry_run, NULL, NULL, e);
    bh_sim_obj_unref(pod);
    return rc;
}
