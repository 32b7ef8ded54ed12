/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/quota.c - counts the namespace's quotas anew when something has gone
 *
 * Upstream: pkg/controller/resourcequota/resource_quota_controller.go; differences: none of the
 * periodic resync, for no delete is ever missed.
 */
#include "simulator/admission/admission.h"
#include "simulator/controllers/controllers.h"

/* Somebody wrote a status that is not about the spec. */
static bool is_off(const struct bh_sim_obj *quota)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const struct bh_json *q = bh_sim_obj_tree(&a, quota);
    const struct bh_json *spec = bh_tree_obj(q, "spec.hard"), *st = bh_tree_obj(q, "status.hard");

    return spec && !(st && bh_json_equal(spec, st));
}

void bh_ctl_quota_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                         const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    bool resized = old && obj->type == c->t.pods && old->generation != obj->generation;

    if (!bh_sim_count(c->sim, c->t.quotas) || !*obj->ns)
        return;
    /* A quota counts itself, too, which it could not when it was made. */
    if (obj->type == c->t.quotas ? change != BH_SIM_MODIFIED || is_off(obj)
                                 : change == BH_SIM_DELETED || resized ||
                                       (obj->type == c->t.pods && bh_ctl_pod_finished(obj) &&
                                        !(old && bh_ctl_pod_finished(old))))
        bh_ctl_enqueue(c, BH_CTL_QUOTA, obj->ns, "");
}

static bool count(void *arg, struct bh_arena *a, struct bh_json *quota)
{
    bh_adm_quota_count(arg, a, quota);
    return true;
}

void bh_ctl_sync_quota(struct bh_sim_controllers *c, const char *ns, const char *name BH_UNUSED)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_listed(c->sim, c->t.quotas, ns);

    for (size_t i = 0; i < l.n; i++)
        bh_ctl_edit(c, l.v[i], BH_SIM_STATUS, count, c->sim);
}
