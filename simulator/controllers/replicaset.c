/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/replicaset.c - ReplicaSet and ReplicationController: as many pods as wanted
 *
 * Upstream: pkg/controller/replicaset/replica_set.go, replica_set_utils.go (v1.36); differences:
 * creations are not slow-started.
 */
#include "simulator/controllers/controllers.h"

struct set_state {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *set;
    const struct bh_json *tree;
    enum bh_ctl ctl;
    int64_t replicas, ready, available;
    const char *failure; /* text of a refused creation or NULL */
};

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct set_state *s = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status"), *cond;

    bh_json_add(a, st,
                "replicas: %ld, fullyLabeledReplicas?: %ld, readyReplicas?: %ld, "
                "availableReplicas?: %ld, observedGeneration: %ld",
                s->replicas, s->replicas, s->ready, s->available,
                bh_tree_i64(o, "metadata.generation", 0));
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

/* Brings the number of pods closer to the wanted one. The counts may lag behind the store, so the
 * pods themselves are counted before anything is made or deleted. */
static void reconcile(struct set_state *s, int64_t want)
{
    struct bh_sim_controllers *c = s->c;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(c->sim, s->set->uid, c->t.pods);
    const struct bh_json *template = bh_tree_obj(s->tree, "spec.template");

    size_t active = 0;
    for (size_t i = 0; i < pods.n; i++) {
        if (bh_ctl_pod_active(pods.v[i]))
            pods.v[active++] = pods.v[i];
        else
            bh_sim_obj_unref(pods.v[i]);
    }
    pods.n = active;
    int64_t diff = want - (int64_t)pods.n;
    int64_t n = BH_MIN(diff < 0 ? -diff : diff, BH_CTL_BATCH);
    for (int64_t i = 0; diff > 0 && i < n; i++) {
        struct bh_json *pod = bh_ctl_pod_of(&c->pod_arena, s->set, template, s->set->name);
        s->failure = bh_ctl_pod_create(c, s->ctl, s->set, pod);
        if (s->failure)
            return;
    }
    if (diff < 0 && want)
        bh_ctl_pods_rank(&pods);
    for (int64_t i = 0; diff < 0 && i < n; i++)
        bh_ctl_pod_delete(c, s->ctl, s->set, pods.v[i]);
    if (n < (diff < 0 ? -diff : diff))
        bh_ctl_again(c, s->ctl, s->set, 0);
}

/* Pods that have been ready long enough; looks again when the next one will be. */
static int64_t available(struct set_state *s, int64_t min_ready_s)
{
    struct bh_sim_controllers *c = s->c;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(c->sim, s->set->uid, c->t.pods);
    int64_t n = 0, now = bh_sim_now_ns(c->sim), next = INT64_MAX, at;

    for (size_t i = 0; i < pods.n; i++) {
        BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
        if (!bh_ctl_pod_active(pods.v[i]) || !bh_ctl_pod_ready(pods.v[i]))
            continue;
        const struct bh_json *cond = bh_tree_condition(bh_sim_obj_tree(&a, pods.v[i]), "Ready");
        at = bh_ctl_time_after(bh_tree_str(cond, "lastTransitionTime"), min_ready_s * 1000000000);
        if (at <= now)
            n++;
        else
            next = BH_MIN(next, at - now);
    }
    if (next != INT64_MAX)
        bh_ctl_again(c, s->ctl, s->set, next + bh_ctl_delay(c, BH_CTL_DELAY_NS));
    return n;
}

void bh_ctl_sync_replicaset(struct bh_sim_controllers *c, struct bh_sim_obj *set)
{
    bool rc = set->type == c->t.replicationcontrollers;
    struct set_state s = {
        .c = c,
        .set = set,
        .tree = bh_sim_obj_tree(&c->arena, set),
        .ctl = rc ? BH_CTL_REPLICATIONCONTROLLER : BH_CTL_REPLICASET,
    };
    int64_t want = bh_tree_i64(s.tree, "spec.replicas", 1);
    int64_t min_ready = bh_tree_i64(s.tree, "spec.minReadySeconds", 0);
    struct bh_ctl_count n = bh_ctl_counted(c, set->uid);

    if (!set->deleting && n.active != want)
        reconcile(&s, want);
    s.replicas = n.active;
    s.ready = n.ready;
    s.available = min_ready > 0 ? available(&s, min_ready) : n.ready;
    bh_ctl_edit(c, set, BH_SIM_STATUS, write_status, &s);
}
