/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/tables/pods.c - cells of the Pod row
 *
 * The Status cell folds phase, reason, gates, init containers and containers into one word; the
 * order of the rules is upstream's and later ones override earlier ones.
 * Upstream: pkg/printers/internalversion/printers.go printPod (v1.36); differences: none known.
 */
#include "simulator/tables/table.h"

#include "common/k8s/quantity.h"

#include <inttypes.h>
#include <stdio.h>

struct pod_state {
    char reason[128]; /* what the Status cell says */
    int64_t restarts, ready, total;
    int64_t last_restart_s; /* 0 = never */
};

static void set_reason(struct pod_state *s, const char *prefix, const char *text)
{
    snprintf(s->reason, sizeof(s->reason), "%s%s", prefix, text);
}

static bool restartable_init(const struct bh_json *pod, const char *name)
{
    bh_json_each(c, bh_tree_arr(pod, "spec.initContainers")) {
        const char *n = bh_tree_str(c, "name"), *policy = bh_tree_str(c, "restartPolicy");
        if (n && name && bh_streq(n, name))
            return policy && bh_streq(policy, "Always");
    }
    return false;
}

static int64_t last_finished(const struct bh_json *container_status)
{
    const char *t = bh_tree_str(container_status, "lastState.terminated.finishedAt");
    int64_t s;
    int32_t ns;

    return t && bh_time_parse(t, strlen(t), &s, &ns) == 0 ? s : 0;
}

static void terminated_reason(struct pod_state *s, const char *prefix, const struct bh_json *t)
{
    const char *reason = bh_tree_str(t, "reason");
    int64_t sig = bh_tree_i64(t, "signal", 0);

    if (reason && *reason)
        set_reason(s, prefix, reason);
    else if (sig)
        snprintf(s->reason, sizeof(s->reason), "%sSignal:%" PRId64, prefix, sig);
    else
        snprintf(s->reason, sizeof(s->reason), "%sExitCode:%" PRId64, prefix,
                 bh_tree_i64(t, "exitCode", 0));
}

/* Restarts of side cars count for good, those of ordinary init containers only while they run. */
struct init_result {
    bool initializing;
    int64_t sidecar_restarts, sidecar_last_s;
};

/* One init container; true when the look at init containers ends here. */
static bool init_container(struct pod_state *s, struct init_result *r, const struct bh_json *pod,
                           const struct bh_json *c, size_t idx)
{
    const struct bh_json *term = bh_tree_obj(c, "state.terminated");
    const char *waiting = bh_tree_str(c, "state.waiting.reason");
    const struct bh_json *all = bh_tree_arr(pod, "spec.initContainers");
    bool sidecar = restartable_init(pod, bh_tree_str(c, "name"));

    s->restarts += bh_tree_i64(c, "restartCount", 0);
    s->last_restart_s = BH_MAX(s->last_restart_s, last_finished(c));
    if (sidecar) {
        r->sidecar_restarts += bh_tree_i64(c, "restartCount", 0);
        r->sidecar_last_s = BH_MAX(r->sidecar_last_s, last_finished(c));
    }
    if (term && bh_tree_i64(term, "exitCode", 0) == 0)
        return false;
    if (sidecar && bh_tree_bool(c, "started", false)) {
        s->ready += bh_tree_bool(c, "ready", false);
        return false;
    }
    if (term)
        terminated_reason(s, "Init:", term);
    else if (waiting && *waiting && !bh_streq(waiting, "PodInitializing"))
        set_reason(s, "Init:", waiting);
    else
        snprintf(s->reason, sizeof(s->reason), "Init:%zu/%zu", idx, all ? all->c.n : 0);
    r->initializing = true;
    return true;
}

static void one_container(struct pod_state *s, const struct bh_json *c, bool *has_running)
{
    const char *waiting = bh_tree_str(c, "state.waiting.reason");
    const struct bh_json *term = bh_tree_obj(c, "state.terminated");

    s->restarts += bh_tree_i64(c, "restartCount", 0);
    s->last_restart_s = BH_MAX(s->last_restart_s, last_finished(c));
    if (waiting && *waiting) {
        set_reason(s, "", waiting);
    } else if (term) {
        terminated_reason(s, "", term);
    } else if (bh_tree_bool(c, "ready", false) && bh_tree_obj(c, "state.running")) {
        *has_running = true;
        s->ready++;
    }
}

static void pod_state(struct pod_state *s, const struct bh_json *pod)
{
    const struct bh_json *cs = bh_tree_arr(pod, "spec.containers");
    const char *reason = bh_tree_str(pod, "status.reason");
    const char *phase = bh_tree_str(pod, "status.phase");
    struct init_result init = {0};
    size_t idx = 0;

    *s = (struct pod_state){.total = cs ? (int64_t)cs->c.n : 0};
    set_reason(s, "", reason && *reason ? reason : phase ? phase : "");
    if (bh_tree_is(bh_tree_condition(pod, "PodScheduled"), "reason", "SchedulingGated"))
        set_reason(s, "", "SchedulingGated");
    bh_json_each(c, bh_tree_arr(pod, "spec.initContainers"))
        s->total += restartable_init(pod, bh_tree_str(c, "name"));
    bh_json_each(c, bh_tree_arr(pod, "status.initContainerStatuses")) {
        if (init_container(s, &init, pod, c, idx++))
            break;
    }
    if (!init.initializing || bh_tree_condition_true(pod, "Initialized")) {
        s->restarts = init.sidecar_restarts;
        s->last_restart_s = init.sidecar_last_s;
        /* Last to first, so that the first container's reason wins. */
        const struct bh_json *list = bh_tree_arr(pod, "status.containerStatuses");
        size_t n = list ? list->c.n : 0, i = n;
        const struct bh_json **c = bh_calloc(n + 1, sizeof(*c));
        bool has_running = false;
        bh_json_each(e, list)
            c[--i] = e;
        for (i = 0; i < n; i++)
            one_container(s, c[i], &has_running);
        free(c);
        if (has_running && bh_streq(s->reason, "Completed"))
            set_reason(s, "", bh_tree_condition_true(pod, "Ready") ? "Running" : "NotReady");
    }
    if (bh_tree_deleting(pod) && reason && bh_streq(reason, "NodeLost"))
        set_reason(s, "", "Unknown");
    else if (bh_tree_deleting(pod) && !bh_tree_is(pod, "status.phase", "Succeeded") &&
             !bh_tree_is(pod, "status.phase", "Failed"))
        set_reason(s, "", "Terminating");
}

static void readiness_gates_cell(struct bh_table_row *r, const struct bh_json *pod)
{
    const struct bh_json *gates = bh_tree_arr(pod, "spec.readinessGates");
    size_t ok = 0;

    if (!gates || !gates->c.n) {
        bh_cell_str(r, "<none>");
        return;
    }
    bh_json_each(g, gates) {
        const char *t = bh_tree_str(g, "conditionType");
        ok += t && bh_tree_condition_true(pod, t);
    }
    bh_cell_fmt(r, "%zu/%zu", ok, gates->c.n);
}

/* Ready, Status, Restarts */
static void pod_cells(struct bh_table_row *r, const struct bh_json *pod)
{
    struct pod_state s;

    pod_state(&s, pod);
    bh_cell_fmt(r, "%" PRId64 "/%" PRId64, s.ready, s.total);
    bh_cell_str(r, s.reason);
    struct bh_buf b = {0};
    bh_buf_addi64(&b, s.restarts);
    if (s.restarts && s.last_restart_s) {
        bh_buf_adds(&b, " (");
        bh_human_duration(&b, r->now_s - s.last_restart_s);
        bh_buf_adds(&b, " ago)");
    }
    bh_cell_buf(r, &b, "");
}

static void pod_ip_cell(struct bh_table_row *r, const struct bh_json *pod)
{
    bh_cell_or(r, bh_tree_str(bh_json_first(bh_tree_arr(pod, "status.podIPs")), "ip"), "<none>");
}

const struct bh_table_cell bh_table_cells_pod[] = {
    {"pod", pod_cells},
    {"pod_ip", pod_ip_cell},
    {"readiness_gates", readiness_gates_cell},
    {NULL, NULL},
};
