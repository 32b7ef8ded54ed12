/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/run_bind.c - Reserve to PostBind
 *
 * Upstream:   pkg/scheduler/framework/runtime/framework.go; differences: the Bind point yields an
 *             order for a binder process instead of writing to the API server.
 */
#include "scheduler/framework/framework.h"

#define PERMIT_TIMEOUT_MAX_NS ((int64_t)15 * 60 * 1000000000)

static const struct bh_status *failed(struct bh_arena *a, const char *point,
                                      const struct bh_plugin *p, const struct bh_status *s)
{
    return bh_status_new(a, BH_ERROR, p->name, "running %s plugin \"%s\": %s", point, p->name,
                         bh_status_message(a, s));
}

const struct bh_status *bh_run_failed(struct bh_cycle *cy, const char *point,
                                      const struct bh_plugin *p, const struct bh_status *s)
{
    return failed(cy->arena, point, p, s);
}

const struct bh_status *bh_run_reserve(struct bh_cycle *cy, bh_sym node)
{
    const struct bh_framework *fw = cy->fw;

    bh_each_plugin(i, fw, BH_POINT_RESERVE) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        uint64_t t = bh_sample_begin(cy);
        const struct bh_status *s = p->reserve(&cy->calls[i], node);
        bh_sample_end(cy, i, BH_SEEN_RESERVE, bh_status_code(s), t);
        if (bh_status_code(s) != BH_SUCCESS)
            return bh_status_rejected(s) ? s : bh_run_failed(cy, "Reserve", p, s);
    }
    return NULL;
}

void bh_run_unreserve(struct bh_cycle *cy, bh_sym node)
{
    const struct bh_framework *fw = cy->fw;

    for (uint32_t k = fw->n_point[BH_POINT_RESERVE]; k-- > 0;) {
        unsigned i = fw->point[BH_POINT_RESERVE][k];
        fw->plugins[i].plugin->unreserve(&cy->calls[i], node);
    }
}

/* The last plugin's reasons, and upstream's own. */
static const struct bh_status *conclude_wait(struct bh_cycle *cy, const struct bh_status *wait)
{
    struct bh_arena *a = cy->calls[0].arena;
    const char **reasons = bh_arena_new_array(a, const char *, wait->n_reasons + 1);
    struct bh_status *s = bh_arena_new(a, struct bh_status);

    memcpy(reasons, wait->reasons, wait->n_reasons * sizeof *reasons);
    reasons[wait->n_reasons] = "one or more plugins asked to wait and no plugin rejected pod";
    *s = *wait;
    s->reasons = reasons;
    s->n_reasons++;
    return s;
}

const struct bh_status *bh_run_permit(struct bh_cycle *cy, bh_sym node, int64_t *ret_timeout_ns)
{
    const struct bh_framework *fw = cy->fw;
    const struct bh_status *wait = NULL;

    bh_each_plugin(i, fw, BH_POINT_PERMIT) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        int64_t timeout_ns = 0;
        uint64_t t = bh_sample_begin(cy);
        const struct bh_status *s = p->permit(&cy->calls[i], node, &timeout_ns);
        bh_sample_end(cy, i, BH_SEEN_PERMIT, bh_status_code(s), t);
        if (bh_status_code(s) == BH_WAIT) {
            timeout_ns = BH_MIN(timeout_ns, PERMIT_TIMEOUT_MAX_NS);
            if (!wait || timeout_ns < *ret_timeout_ns)
                *ret_timeout_ns = timeout_ns;
            const struct bh_pod_rec *pod = cy->calls[0].pod->rec;
            if (cy->fw->waiting)
                bh_waiting_add(cy->fw->waiting, bh_rec_text(pod, pod->uid), p->name, timeout_ns);
            wait = s;
        } else if (bh_status_code(s) != BH_SUCCESS) {
            return bh_status_rejected(s) ? s : bh_run_failed(cy, "Permit", p, s);
        }
    }
    return wait ? conclude_wait(cy, wait) : NULL;
}

const struct bh_status *bh_run_pre_bind(struct bh_cycle *cy, bh_sym node, int64_t since_ns)
{
    const struct bh_framework *fw = cy->fw;
    const struct bh_status *wait = NULL;

    bh_each_plugin(i, fw, BH_POINT_PRE_BIND) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        const struct bh_status *s = p->pre_bind(&cy->calls[i], node, since_ns);
        if (bh_status_code(s) == BH_WAIT)
            wait = s;
        else if (bh_status_code(s) != BH_SUCCESS)
            return bh_status_rejected(s) ? s : bh_run_failed(cy, "PreBind", p, s);
    }
    return wait;
}

const struct bh_status *bh_run_bind(const struct bh_framework *fw, struct bh_call *c, bh_sym node,
                                    struct bh_bind_order *ret)
{
    bh_each_plugin(i, fw, BH_POINT_BIND) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        c->args = fw->plugins[i].args;
        *ret = (struct bh_bind_order){.plugin = p->name};
        const struct bh_status *s = p->bind(c, node, ret);
        if (bh_status_code(s) == BH_SKIP)
            continue;
        if (bh_status_code(s) != BH_SUCCESS && !bh_status_rejected(s))
            return failed(c->arena, "Bind", p, s);
        return s;
    }
    return &bh_status_skip;
}

void bh_run_post_bind(const struct bh_framework *fw, struct bh_call *c, bh_sym node)
{
    bh_each_plugin(i, fw, BH_POINT_POST_BIND) {
        c->args = fw->plugins[i].args;
        fw->plugins[i].plugin->post_bind(c, node);
    }
}
