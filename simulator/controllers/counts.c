/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/counts.c - active and ready pods of each controller, kept by difference
 *
 * A replica set of 10,000 pods changes 10,000 times while it starts; counting its pods at each look
 * would be quadratic.
 * Invariants: counts[uid] is the sum over the pods the listener has seen last; entries with two
 *             zeros are removed.
 */
#include "simulator/controllers/controllers.h"

bool bh_ctl_pod_finished(const struct bh_sim_obj *pod)
{
    return bh_streq(pod->phase, "Succeeded") || bh_streq(pod->phase, "Failed");
}

bool bh_ctl_pod_active(const struct bh_sim_obj *pod)
{
    return !pod->deleting && !bh_ctl_pod_finished(pod);
}

/* Stored text is compact and quotes inside strings are escaped, so what is found is the condition.
 * Ours has its members in this order; a condition that a client wrote is parsed. */
bool bh_ctl_pod_ready(const struct bh_sim_obj *pod)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (!bh_streq(pod->phase, "Running"))
        return false;
    if (strstr(pod->json, "\"type\":\"Ready\",\"status\":\"True\""))
        return true;
    if (!strstr(pod->json, "\"Ready\""))
        return false;
    return bh_tree_condition_true(bh_sim_obj_tree(&a, pod), "Ready");
}

static void add(struct bh_sim_controllers *c, const struct bh_sim_obj *pod, int64_t sign)
{
    size_t n = strlen(pod->owner_uid);

    if (!n || !bh_ctl_pod_active(pod))
        return;
    struct bh_ctl_count *k = bh_map_get(&c->counts, pod->owner_uid, n);
    if (!k) {
        k = bh_calloc(1, sizeof(*k));
        bh_map_put(&c->counts, pod->owner_uid, n, k);
    }
    k->active += sign;
    k->ready += bh_ctl_pod_ready(pod) ? sign : 0;
    if (!k->active && !k->ready)
        free(bh_map_del(&c->counts, pod->owner_uid, n));
}

void bh_ctl_count_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                         struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    /* A deletion's object is the last state, which was counted as such before. */
    if (change == BH_SIM_DELETED)
        add(c, obj, -1);
    else if (old)
        add(c, old, -1);
    if (change != BH_SIM_DELETED)
        add(c, obj, 1);
}

struct bh_ctl_count bh_ctl_counted(struct bh_sim_controllers *c, const char *owner_uid)
{
    const struct bh_ctl_count *k = bh_map_get(&c->counts, owner_uid, strlen(owner_uid));

    return k ? *k : (struct bh_ctl_count){0};
}
