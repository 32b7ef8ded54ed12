/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/replicaset.c - ReplicaSet and ReplicationController: as many pods as wanted
 *
 * Upstream: pkg/controller/replicaset/replica_set.go, replica_set_utils.go (v1.36); differences:
 * pods are found by their controller reference only, so orphans are not adopted and pods whose
 * labels change are not let go; creations are not slow-started.
 */
#include "simulator/controllers/controllers.h"

struct set_kind {
    enum bh_ctl ctl;
    const struct bh_sim_type *type;
    const char *component;
};

struct set_state {
    struct bh_sim_controllers *c;
    int64_t replicas, ready, available;
    const char *failure; /* text of a refused creation or NULL */
};

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    struct set_state *s = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status"), *cond;

    bh_json_set_i64(a, st, "replicas", s->replicas);
    bh_ctl_count_set(a, st, "fullyLabeledReplicas", s->replicas);
    bh_ctl_count_set(a, st, "readyReplicas", s->ready);
    bh_ctl_count_set(a, st, "availableReplicas", s->available);
    bh_json_set_i64(a, st, "observedGeneration", bh_tree_i64(o, "metadata.generation", 0));
    cond = bh_tree_condition(o, "ReplicaFailure");
    if (s->failure)
        bh_tree_set_condition(a, o, "ReplicaFailure", "True", "FailedCreate", s->failure,
                              bh_ctl_now(s->c, a));
    else if (cond)
        bh_json_remove(bh_tree_arr(st, "conditions"), cond);
    if (!bh_tree_len(bh_tree_arr(st, "conditions")))
        bh_json_unset(st, "conditions");
    return true;
}

static void drop_inactive(struct bh_sim_objs *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (bh_ctl_pod_active(l->v[i]))
            l->v[n++] = l->v[i];
        else
            bh_sim_obj_unref(l->v[i]);
    }
    l->n = n;
}

/* 0 or the refusal's code. */
static int create_pods(struct bh_sim_controllers *c, const struct set_kind *k,
                       struct bh_sim_obj *set, const struct bh_json *tree, int64_t n,
                       struct bh_sim_error *e)
{
    const struct bh_json *template = bh_tree_obj(tree, "spec.template");
    int rc = 0;

    for (int64_t i = 0; i < n && !rc; i++) {
        struct bh_json *pod = bh_ctl_pod_of(&c->pod_arena, set, template);
        char *prefix = bh_arena_printf(&c->pod_arena, "%s-", set->name);
        bh_json_set_str(&c->pod_arena, bh_json_get(pod, "metadata"), "generateName", prefix);
        rc = bh_ctl_pod_create(c, set, k->component, pod, e);
    }
    return rc;
}

/* Brings the number of pods closer to the wanted one. The counts may lag behind the store, so the
 * pods themselves are counted before anything is made or deleted. */
static void reconcile(struct bh_sim_controllers *c, const struct set_kind *k,
                      struct bh_sim_obj *set, const struct bh_json *tree, int64_t want,
                      struct set_state *s)
{
    struct bh_sim_objs pods;
    struct bh_sim_error e = {0};
    int64_t diff, n;

    bh_sim_owned_by(c->sim, set->uid, c->t.pods, &pods);
    drop_inactive(&pods);
    diff = want - (int64_t)pods.n;
    n = BH_MIN(diff < 0 ? -diff : diff, BH_CTL_BATCH);
    if (diff > 0) {
        if (create_pods(c, k, set, tree, n, &e)) {
            s->failure = bh_arena_strdup(&c->arena, e.message);
            bh_ctl_enqueue_after(c, k->ctl, set->ns, set->name, BH_CTL_RETRY_NS);
        } else if (n < diff) {
            bh_ctl_enqueue(c, k->ctl, set->ns, set->name);
        }
    } else if (diff < 0) {
        if (want)
            bh_ctl_pods_rank(&pods);
        for (int64_t i = 0; i < n; i++)
            bh_ctl_pod_delete(c, set, k->component, pods.v[i]);
        if (n < -diff)
            bh_ctl_enqueue(c, k->ctl, set->ns, set->name);
    }
    bh_sim_objs_fini(&pods);
}

/* Pods that have been ready long enough; looks again when the next one will be. */
static int64_t available(struct bh_sim_controllers *c, const struct set_kind *k,
                         const struct bh_sim_obj *set, int64_t min_ready_s)
{
    struct bh_sim_objs pods;
    int64_t n = 0, now = bh_sim_now_ns(c->sim), next = INT64_MAX;

    bh_sim_owned_by(c->sim, set->uid, c->t.pods, &pods);
    for (size_t i = 0; i < pods.n; i++) {
        const struct bh_json *cond;
        struct bh_arena a;
        int64_t at;
        if (!bh_ctl_pod_active(pods.v[i]) || !bh_ctl_pod_ready(pods.v[i]))
            continue;
        bh_arena_init(&a, 0);
        cond = bh_tree_condition(bh_sim_obj_tree(&a, pods.v[i]), "Ready");
        at = bh_ctl_time_after(bh_tree_str(cond, "lastTransitionTime"), min_ready_s * 1000000000);
        bh_arena_fini(&a);
        if (at <= now)
            n++;
        else
            next = BH_MIN(next, at - now);
    }
    bh_sim_objs_fini(&pods);
    if (next != INT64_MAX)
        bh_ctl_enqueue_after(c, k->ctl, set->ns, set->name,
                             next + bh_ctl_delay(c, BH_CTL_DELAY_NS));
    return n;
}

static void sync_set(struct bh_sim_controllers *c, const struct set_kind *k, const char *ns,
                     const char *name)
{
    struct bh_sim_obj *set = bh_sim_get(c->sim, k->type, ns, name);
    struct set_state s = {.c = c};
    const struct bh_json *tree;
    struct bh_ctl_count n;
    int64_t want, min_ready;

    if (!set)
        return;
    set = bh_sim_obj_ref(set);
    tree = bh_sim_obj_tree(&c->arena, set);
    want = bh_tree_i64(tree, "spec.replicas", 1);
    min_ready = bh_tree_i64(tree, "spec.minReadySeconds", 0);
    n = bh_ctl_counted(c, set->uid);
    if (!set->deleting && n.active != want)
        reconcile(c, k, set, tree, want, &s);
    s.replicas = n.active;
    s.ready = n.ready;
    s.available = min_ready > 0 ? available(c, k, set, min_ready) : n.ready;
    bh_sim_edit(c->sim, k->type, ns, name, set->uid, BH_SIM_STATUS, write_status, &s, NULL, NULL);
    bh_sim_obj_unref(set);
}

void bh_ctl_sync_replicaset(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    const struct set_kind k = {BH_CTL_REPLICASET, c->t.replicasets, "replicaset-controller"};

    sync_set(c, &k, ns, name);
}

void bh_ctl_sync_replicationcontroller(struct bh_sim_controllers *c, const char *ns,
                                       const char *name)
{
    const struct set_kind k = {BH_CTL_REPLICATIONCONTROLLER, c->t.replicationcontrollers,
                               "replication-controller"};

    sync_set(c, &k, ns, name);
}
