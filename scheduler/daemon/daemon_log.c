/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/daemon/daemon_log.c - what the log says about each pod and node, in kube-scheduler's
 * words
 *
 * Nothing is built unless --v or --vmodule asks for it.
 * Upstream: pkg/scheduler/schedule_one.go, pkg/scheduler/eventhandlers.go.
 */
#include "common/base/log.h"
#include "scheduler/daemon/daemon.h"

struct ref { /* "namespace/name" */
    char text[320];
};
#define REF(pod) ref_of(&(struct ref){""}, (pod))

static const char *ref_of(struct ref *r, const struct bh_pod_rec *pod)
{
    struct bh_str ns = bh_rec_text(pod, pod->namespace_), name = bh_rec_text(pod, pod->name);

    snprintf(r->text, sizeof(r->text), "%.*s/%.*s", (int)BH_MIN(ns.n, 64), ns.p,
             (int)BH_MIN(name.n, 254), name.p);
    return r->text;
}

void bh_sched_log_attempt(const struct bh_queued_pod *p)
{
    if (!bh_log_v_on(3, __FILE__))
        return;
    bh_log_v(4, "About to try and schedule pod", bh_kv_s("pod", REF(p->pending.pod)));
    bh_log_v(3, "Attempting to schedule pod", bh_kv_s("pod", REF(p->pending.pod)));
}

void bh_sched_log_no_fit(const struct bh_sched_daemon *d, const struct bh_queued_pod *p,
                         const struct bh_decision *dec)
{
    if (!bh_log_v_on(2, __FILE__))
        return;
    if (!bh_engine_node_count(d->engine))
        bh_log_v(2, "Unable to schedule pod; no nodes are registered to the cluster; waiting",
                 bh_kv_s("pod", REF(p->pending.pod)));
    else if (dec->kind == BH_NO_FIT)
        bh_log_v(2, "Unable to schedule pod; no fit; waiting", bh_kv_s("pod", REF(p->pending.pod)),
                 bh_kv_s("err", dec->message));
    if (dec->nominated_node != BH_SYM_NONE)
        bh_log_v(2, "Preempting pods for a pod", bh_kv_s("pod", REF(p->pending.pod)),
                 bh_kv_s("node", bh_sym_text(d->symtab, dec->nominated_node)),
                 bh_kv_u("victims", dec->n_victims));
}

void bh_sched_log_group(const struct bh_group_names *g, const struct bh_group_result *r,
                        uint32_t scheduled, uint32_t unschedulable)
{
    BH_CLEANUP(bh_freep) char *name = NULL;

    if (!bh_log_v_on(2, __FILE__) && r->code != BH_ERROR)
        return;
    name = bh_asprintf("%s/%s", g->namespace_, g->name);
    if (r->code == BH_ERROR)
        bh_log_error("Error scheduling pod group", bh_kv_s("podGroup", name),
                     bh_kv_s("err", r->message), bh_kv_u("errorPods", unschedulable));
    else if (r->code == BH_SUCCESS)
        bh_log_v(2, "Successfully scheduled a pod group", bh_kv_s("podGroup", name),
                 bh_kv_u("scheduledPods", scheduled), bh_kv_u("unschedulablePods", unschedulable));
    else
        bh_log_v(2,
                 r->waiting ? "Pod group is waiting for preemption"
                            : "Unable to schedule a pod group",
                 bh_kv_s("podGroup", name), bh_kv_u("unschedulablePods", unschedulable));
}

void bh_sched_log_bound(const struct bh_queued_pod *p, const char *node)
{
    if (bh_log_v_on(2, __FILE__))
        bh_log_v(2, "Successfully bound pod to node", bh_kv_s("pod", REF(p->pending.pod)),
                 bh_kv_s("node", node), bh_kv_u("evaluatedNodes", p->evaluated),
                 bh_kv_u("feasibleNodes", p->feasible), bh_kv_u("attempts", p->attempts));
}

void bh_sched_log_condition(const struct bh_queued_pod *p, const char *reason)
{
    if (bh_log_v_on(3, __FILE__))
        bh_log_v(3, "Updating pod condition and nominated node name",
                 bh_kv_s("pod", REF(p->pending.pod)), bh_kv_s("conditionType", "PodScheduled"),
                 bh_kv_s("conditionStatus", "False"), bh_kv_s("conditionReason", reason));
}

enum about { UNSCHEDULED_POD, SCHEDULED_POD, NODE };

static void log_change(enum about what, const char *name, bool added, bool gone)
{
    static const char *const words[][3] = {
        [UNSCHEDULED_POD] = {"Add event for unscheduled pod", "Delete event for unscheduled pod",
                             "Update event for unscheduled pod"},
        [SCHEDULED_POD] = {"Add event for scheduled pod", "Delete event for scheduled pod",
                           "Update event for scheduled pod"},
        [NODE] = {"Add event for node", "Delete event for node", "Update event for node"}};

    bh_log_v(added || gone ? 3 : 4,
             words[what][added  ? 0
                         : gone ? 1
                                : 2],
             bh_kv_s(what == NODE ? "node" : "pod", name));
}

void bh_sched_log_pending(const struct bh_pod_rec *pod, enum bh_event_action action)
{
    if (bh_log_v_on(3, __FILE__))
        log_change(UNSCHEDULED_POD, REF(pod), action == BH_EV_ADD, action == BH_EV_DELETE);
}

void bh_sched_log_event(const struct bh_sched_daemon *d, const struct bh_cluster_event *ev)
{
    const struct bh_node_rec *node = ev->new_node ? ev->new_node : ev->old_node;
    const struct bh_pod_rec *pod = ev->new_pod ? ev->new_pod : ev->old_pod;
    if (!bh_log_v_on(3, __FILE__))
        return;
    if (node)
        log_change(NODE, bh_sym_text(d->symtab, node->name), !ev->old_node, !ev->new_node);
    else if (pod)
        log_change(SCHEDULED_POD, REF(pod), !ev->old_pod, !ev->new_pod);
}
