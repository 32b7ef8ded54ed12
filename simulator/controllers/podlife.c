/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/podlife.c - what has become of a pod's containers by now, as a kubelet writes it
 *
 * The status holds all the state there is: from it, the spec and the time follow the next status and
 * the time at which to look again. How long a container runs says its command (podscript.c); one whose
 * command is not understood runs for ever.
 * Upstream:   pkg/kubelet (kubelet_pods.go, status/generate.go; v1.36); differences: a container is
 *             ready while it runs, but for what its readiness probe says at once; its times are to the
 *             second, no memory is watched.
 */
#include "simulator/controllers/controllers.h"
#include "simulator/controllers/podscript.h"

#include "common/base/opt.h"
#include <stdio.h>

#define FOR_EVER INT64_MAX
#define SECOND   ((int64_t)1000000000)

/* ---- how long a container runs --------------------------------------------------------------- */

/* What the pod's annotations say of all its containers; true when they say anything. */
static bool told(const struct bh_json *pod, struct bh_ctl_program *p)
{
    const char *text = bh_tree_annotation(pod, BH_SIM_RUN_TIME);
    const char *code = bh_tree_annotation(pod, BH_SIM_EXIT_CODE);
    int64_t ns;

    text = text ? text : bh_tree_annotation(pod, BH_SIM_KWOK_TIME);
    if (text && bh_parse_duration_ns(text, &ns) >= 0 && ns >= 0)
        *p = (struct bh_ctl_program){.run_ns = ns};
    else
        text = NULL;
    if (code)
        p->exit_code = strtoll(code, NULL, 10) & 255;
    return text || code;
}

int64_t bh_ctl_pre_stop_ns(struct bh_arena *a, const struct bh_json *pod)
{
    int64_t most = 0;

    bh_json_each(c, bh_tree_arr(pod, "spec.containers")) {
        const struct bh_ctl_run run = {a, pod, c, NULL, ""};
        const struct bh_json *exec = bh_tree_obj(c, "lifecycle.preStop.exec");
        int64_t s = bh_tree_i64(c, "lifecycle.preStop.sleep.seconds", 0), ns = 0;
        if (exec) {
            struct bh_ctl_program hook = bh_ctl_program_of(&run, exec);
            ns = hook.unknown ? 0 : hook.run_ns;
        }
        if (s > 0 && s < INT32_MAX)
            ns = BH_MAX(ns, s * SECOND);
        int64_t end = bh_ctl_program_of(&run, c).term_ns;
        most = BH_MAX(most, ns > FOR_EVER - end ? FOR_EVER : ns + end);
    }
    return most;
}

/* ---- one container --------------------------------------------------------------------------- */

enum state { WAITING, RUNNING, RESTARTING, DONE, BROKEN }; /* DONE, BROKEN: for good */

struct pod {
    struct bh_ctl_life *l;
    struct bh_arena *a;
    struct bh_json *tree, *status;
    const char *policy;   /* when containers start again */
    size_t n[BROKEN + 1]; /* of its main containers, by state */
    bool initialized, init_failed;
    struct bh_buf not_ready, not_complete; /* names, a space between them */
};

/* What a container, or one of its handlers, does in its present run. */
static struct bh_ctl_program program_of(struct pod *p, const struct bh_json *c,
                                        const struct bh_json *s, const struct bh_json *handler)
{
    const char *id = bh_arena_printf(
        p->a, "%s %s %lld%s", bh_tree_str(p->tree, "metadata.uid"), bh_tree_str(c, "name"),
        (long long)bh_tree_i64(s, "restartCount", 0), handler == c ? "" : " handler");
    const struct bh_ctl_run run = {p->a, p->tree, c, p->l->files, id};

    return bh_ctl_program_of(&run, handler);
}

static void look_again(struct pod *p, int64_t at_ns)
{
    p->l->next_ns = BH_MIN(p->l->next_ns, at_ns);
}

static void stop(struct pod *p, struct bh_json *s, int64_t code)
{
    const char *started = bh_tree_str(s, "state.running.startedAt");

    bh_json_unset(s, "state");
    bh_json_add(p->a, s,
                "state: {terminated: {exitCode: %ld, reason: %s, startedAt: %s, finishedAt: %s, "
                "containerID: %s}}, ready: false, started: false",
                code, code ? "Error" : "Completed", started ? started : p->l->now, p->l->now,
                bh_tree_str(s, "containerID"));
}

static void start(struct pod *p, const struct bh_json *c, struct bh_json *s)
{
    const char *uid = bh_tree_str(p->tree, "metadata.uid"), *name = bh_tree_str(c, "name");

    bh_json_unset(s, "state");
    bh_json_add(p->a, s,
                "state: {running: {startedAt: %s}}, ready: true, started: true, containerID: %s",
                p->l->now, bh_arena_printf(p->a, "berth://%.40s/%.63s", uid, name ? name : ""));
}

/* A container that ended starts again: the first time at once, then 10 s, 20 s ... 300 s after it
 * ended. True when it did. */
static bool start_again(struct pod *p, const struct bh_json *c, struct bh_json *s)
{
    const struct bh_json *ended = bh_tree_obj(s, "state.terminated");
    int64_t n = bh_tree_i64(s, "restartCount", 0), delay = n > 0 ? 10 : 0;

    delay = n > 5 ? 300 : n > 1 ? delay << (n - 1) : delay;
    if (ended) {
        struct bh_json *last = bh_json_make(p->a, "terminated: %p", bh_json_clone(p->a, ended));
        bh_json_drop(s, "state lastState");
        bh_json_add(p->a, s,
                    "lastState: %p, state: {waiting: {reason: CrashLoopBackOff, message: %s}}",
                    last,
                    bh_arena_printf(p->a, "back-off %llds restarting failed container=%s pod=%s",
                                    (long long)delay, bh_tree_str(c, "name"),
                                    bh_tree_str(p->tree, "metadata.name")));
    }
    int64_t at =
        bh_ctl_time_after(bh_tree_str(s, "lastState.terminated.finishedAt"), delay * SECOND);
    if (delay && at > p->l->now_ns) {
        look_again(p, at);
        return false;
    }
    start(p, c, s);
    bh_json_set_i64(p->a, s, "restartCount", n + 1);
    return true;
}

/* Brings one container to now. at_once: what takes no time is not seen running. */
static enum state step(struct pod *p, const struct bh_json *c, struct bh_json *s,
                       struct bh_ctl_program prog, const char *policy, bool at_once)
{
    const struct bh_json *ended = bh_tree_obj(s, "state.terminated");
    const char *since = bh_tree_str(s, "state.running.startedAt");
    int64_t from = since ? bh_ctl_time_after(since, 0) : p->l->now_ns, code, end;

    if (!since && !ended) {
        if (!bh_tree_obj(s, "lastState.terminated"))
            start(p, c, s);
        else if (!start_again(p, c, s))
            return RESTARTING;
    }
    if (!ended) {
        end = __builtin_add_overflow(from, prog.run_ns, &end) ? FOR_EVER : end;
        if (end > p->l->now_ns || (!since && !at_once)) {
            look_again(p, end);
            return RUNNING;
        }
        stop(p, s, prog.exit_code);
    }
    code = bh_tree_i64(s, "state.terminated.exitCode", 0);
    if (!bh_streq(policy, "Always") && !(code && bh_streq(policy, "OnFailure")))
        return code ? BROKEN : DONE;
    if (!start_again(p, c, s))
        return RESTARTING;
    look_again(p, prog.run_ns == FOR_EVER ? FOR_EVER : p->l->now_ns + prog.run_ns);
    return RUNNING;
}

/* ---- its containers -------------------------------------------------------------------------- */

/* The container's status in a new list: as it was, or one that waits. */
static struct bh_json *status_of(struct pod *p, struct bh_json *list, const struct bh_json *old,
                                 const struct bh_json *c, const char *waits)
{
    const char *name = bh_tree_str(c, "name");

    bh_json_each(s, old) {
        if (name && bh_tree_is(s, "name", name)) {
            struct bh_json *copy = bh_json_clone(p->a, s);
            bh_json_push(list, copy);
            return bh_json_add(p->a, copy, "image: %s", bh_tree_str(c, "image"));
        }
    }
    return bh_json_append(p->a, list,
                          "name: %s, state: {waiting: {reason: %s}}, lastState: {}, ready: false, "
                          "restartCount: 0, image: %s, imageID: '', started: false",
                          name, waits, bh_tree_str(c, "image"));
}

static void add_name(struct bh_buf *b, const struct bh_json *c)
{
    bh_buf_addf(b, "%s%s", b->n ? " " : "", bh_tree_str(c, "name"));
}

static enum state run_init(struct pod *p, const struct bh_json *c, struct bh_json *s, bool sidecar)
{
    const char *policy = sidecar ? "Always" : bh_streq(p->policy, "Never") ? "Never" : "OnFailure";
    struct bh_ctl_program prog = program_of(p, c, s, c);

    if (prog.unknown && !sidecar)
        prog.run_ns = 0;
    return step(p, c, s, prog, policy, !sidecar);
}

/* One after the other; a sidecar (restartPolicy: Always) goes on while the next ones come. */
static void run_inits(struct pod *p)
{
    const struct bh_json *inits = bh_tree_arr(p->tree, "spec.initContainers");
    const struct bh_json *old = bh_tree_arr(p->status, "initContainerStatuses");
    struct bh_json *list;

    p->initialized = true;
    if (!bh_tree_len(inits))
        return;
    list = bh_json_new(p->a, BH_JSON_ARRAY);
    bh_json_each(c, inits) {
        struct bh_json *s = status_of(p, list, old, c, "PodInitializing");
        bool sidecar = bh_tree_is(c, "restartPolicy", "Always");
        enum state st = p->initialized ? run_init(p, c, s, sidecar) : WAITING;
        bool ok = st == (sidecar ? RUNNING : DONE);
        bh_json_set_bool(p->a, s, "ready", ok);
        if (!ok)
            add_name(&p->not_complete, c);
        p->initialized = p->initialized && ok;
        p->init_failed = p->init_failed || st == BROKEN;
    }
    bh_json_set(p->a, p->status, "initContainerStatuses", list);
}

/* What a readiness probe says of a running container: not ready before its initial delay, nor while a
 * command fails that is understood. */
static bool probed(struct pod *p, const struct bh_json *c, const struct bh_json *s)
{
    const struct bh_json *probe = bh_tree_obj(c, "readinessProbe");
    const struct bh_json *exec = bh_tree_obj(probe, "exec");
    int64_t delay = bh_tree_i64(probe, "initialDelaySeconds", 0), at;

    if (delay > 0 && delay < INT32_MAX) {
        at = bh_ctl_time_after(bh_tree_str(s, "state.running.startedAt"), delay * SECOND);
        if (at > p->l->now_ns) {
            look_again(p, at);
            return false;
        }
    }
    struct bh_ctl_program prog = {0};
    if (exec)
        prog = program_of(p, c, s, exec);
    return prog.unknown || !prog.exit_code;
}

static enum state run_main(struct pod *p, const struct bh_json *c, struct bh_json *s)
{
    struct bh_ctl_program prog = program_of(p, c, s, c);

    if (prog.unknown && p->l->job_ns >= 0)
        prog.run_ns = p->l->job_ns;
    bool once = told(p->tree, &prog);
    return step(p, c, s, prog, once ? "Never" : p->policy, false);
}

/* Probes ask when all have begun, whose files they may look for. */
static void run_mains(struct pod *p)
{
    const struct bh_json *old = bh_tree_arr(p->status, "containerStatuses");
    struct bh_json *list = bh_json_new(p->a, BH_JSON_ARRAY);
    const char *waits = bh_tree_len(bh_tree_arr(p->tree, "spec.initContainers"))
                            ? "PodInitializing"
                            : "ContainerCreating";

    bh_json_each(c, bh_tree_arr(p->tree, "spec.containers")) {
        struct bh_json *s = status_of(p, list, old, c, waits);
        p->n[p->initialized ? run_main(p, c, s) : WAITING]++;
    }
    struct bh_json *s = bh_json_first(list);
    bh_json_each(c, bh_tree_arr(p->tree, "spec.containers")) {
        bool runs = p->initialized && bh_tree_obj(s, "state.running");
        bool ready = runs && probed(p, c, s);
        if (runs)
            bh_json_set_bool(p->a, s, "ready", ready);
        if (!ready)
            add_name(&p->not_ready, c);
        s = s->next;
    }
    bh_json_set(p->a, p->status, "containerStatuses", list);
}

static void run_ephemeral(struct pod *p)
{
    const struct bh_json *old = bh_tree_arr(p->status, "ephemeralContainerStatuses");
    const struct bh_json *all = bh_tree_arr(p->tree, "spec.ephemeralContainers");
    struct bh_json *list = bh_json_new(p->a, BH_JSON_ARRAY);

    bh_json_each(c, all) {
        struct bh_json *s = status_of(p, list, old, c, "ContainerCreating");
        step(p, c, s, program_of(p, c, s, c), "Never", false);
    }
    if (bh_tree_len(all))
        bh_json_set(p->a, p->status, "ephemeralContainerStatuses", list);
}

/* What still runs has been killed, or, when its pod is finished, ended well. */
static void stop_all(struct pod *p, int64_t code)
{
    static const char *const lists[] = {"initContainerStatuses", "containerStatuses",
                                        "ephemeralContainerStatuses"};

    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        bh_json_each(s, bh_tree_arr(p->status, lists[i])) {
            if (bh_tree_obj(s, "state.running"))
                stop(p, s, code);
            bh_json_set_bool(p->a, s, "ready",
                             i == 0 && bh_tree_obj(s, "state.terminated") && !code);
        }
    }
    p->l->next_ns = FOR_EVER;
}

/* ---- conditions ------------------------------------------------------------------------------ */

struct condition {
    const char *type, *reason, *message;
    bool is;
};

/* Why readiness gates hold the pod back, or NULL. */
static const char *gate(struct pod *p)
{
    bh_json_each(g, bh_tree_arr(p->tree, "spec.readinessGates")) {
        const char *t = bh_tree_str(g, "conditionType");
        const struct bh_json *c = t ? bh_tree_condition(p->tree, t) : NULL;
        if (t && !c)
            return bh_arena_printf(
                p->a, "corresponding condition of pod readiness gate \"%s\" does not exist.", t);
        if (t && !bh_tree_is(c, "status", "True"))
            return bh_arena_printf(
                p->a, "the status of pod readiness gate \"%s\" is not \"True\", but %s", t,
                bh_tree_str(c, "status"));
    }
    return NULL;
}

/* Ours stand first, in the order in which a kubelet writes them; others stay behind. */
static void set_conditions(struct pod *p, const struct condition *v, size_t n)
{
    const struct bh_json *old = bh_tree_arr(p->status, "conditions");
    struct bh_json *list = bh_json_new(p->a, BH_JSON_ARRAY);

    for (size_t i = 0; i < n; i++) {
        const struct bh_json *was = bh_tree_condition(p->tree, v[i].type);
        const char *status = v[i].is ? "True" : "False";
        const char *since = was && bh_tree_is(was, "status", status)
                                ? bh_tree_str(was, "lastTransitionTime")
                                : NULL;
        bh_json_append(p->a, list,
                       "type: %s, status: %s, lastProbeTime: null, lastTransitionTime: %s, "
                       "reason?: %s, message?: %s",
                       v[i].type, status, since ? since : p->l->now, v[i].reason, v[i].message);
    }
    bh_json_each(o, old) {
        const char *t = bh_tree_str(o, "type");
        bool ours = !t;
        for (size_t i = 0; i < n; i++)
            ours = ours || bh_streq(t, v[i].type);
        if (!ours)
            bh_json_push(list, bh_json_clone(p->a, o));
    }
    bh_json_set(p->a, p->status, "conditions", list);
}

static void conditions(struct pod *p, bool finished)
{
    bool failed = bh_tree_is(p->status, "phase", "Failed");
    const char *end = !finished ? NULL : failed ? "PodFailed" : "PodCompleted";
    const char *closed = p->not_ready.n ? NULL : gate(p);
    const char *unready = bh_arena_printf(p->a, "containers with unready status: [%s]",
                                          p->not_ready.n ? bh_buf_str(&p->not_ready) : "");
    const char *incomplete = bh_arena_printf(p->a, "containers with incomplete status: [%s]",
                                             p->not_complete.n ? bh_buf_str(&p->not_complete) : "");
    struct condition v[] = {{"PodReadyToStartContainers", NULL, NULL, !finished},
                            {"Initialized", NULL, NULL, p->initialized},
                            {"Ready", NULL, NULL, !finished && !p->not_ready.n && !closed},
                            {"ContainersReady", NULL, NULL, !finished && !p->not_ready.n}};

    if (!p->initialized)
        v[1].reason = "ContainersNotInitialized", v[1].message = incomplete;
    else if (finished && !failed)
        v[1].reason = end;
    for (size_t i = 2; i < BH_ARRAY_LEN(v); i++) {
        v[i].reason = end ? end : p->not_ready.n ? "ContainersNotReady" : NULL;
        v[i].message = p->not_ready.n && !end ? unready : NULL;
    }
    if (!end && closed)
        v[2].reason = "ReadinessGatesNotReady", v[2].message = closed;
    set_conditions(p, v, BH_ARRAY_LEN(v));
}

/* ---- the pod --------------------------------------------------------------------------------- */

static const char *phase_of(const struct pod *p)
{
    if (p->init_failed)
        return "Failed";
    if (!p->initialized || p->n[WAITING])
        return "Pending";
    if (p->n[RUNNING] || p->n[RESTARTING])
        return "Running";
    return p->n[BROKEN] ? "Failed" : "Succeeded";
}

static bool too_old(struct pod *p)
{
    int64_t most = bh_tree_i64(p->tree, "spec.activeDeadlineSeconds", -1);
    int64_t at = most < 0 || most > INT32_MAX
                     ? FOR_EVER
                     : bh_ctl_time_after(bh_tree_str(p->status, "startTime"), most * SECOND);

    if (at > p->l->now_ns)
        look_again(p, at);
    return at <= p->l->now_ns;
}

static void first_sight(struct pod *p)
{
    bool host = bh_tree_bool(p->tree, "spec.hostNetwork", false);
    const char *ip = host ? p->l->host_ip : p->l->pod_ip;

    if (!bh_tree_str(p->status, "startTime"))
        bh_json_set_str(p->a, p->status, "startTime", p->l->now);
    if (*p->l->pod_ip)
        bh_json_add(p->a, p->status,
                    "hostIP: %s, hostIPs: [{ip: %s}], podIP: %s, podIPs: [{ip: %s}]", p->l->host_ip,
                    p->l->host_ip, ip, ip);
}

bool bh_ctl_live(void *life, struct bh_arena *a, struct bh_json *tree)
{
    struct pod p = {.l = life, .a = a, .tree = tree, .status = bh_json_obj_at(a, tree, "status")};
    int64_t generation = bh_tree_i64(tree, "metadata.generation", 0);

    p.policy = bh_tree_str(tree, "spec.restartPolicy");
    p.l->next_ns = FOR_EVER;
    if (generation)
        bh_json_set_i64(a, p.status, "observedGeneration", generation);
    first_sight(&p);
    bool old = too_old(&p), end = old || p.l->kill;
    if (end) {
        stop_all(&p, 137);
        bh_json_set_str(a, p.status, "phase", "Failed");
        if (old)
            bh_json_add(a, p.status, "reason: DeadlineExceeded, message: %s",
                        "Pod was active on the node longer than the specified deadline");
        p.initialized = bh_tree_condition_true(tree, "Initialized");
    } else {
        run_inits(&p);
        run_mains(&p);
        run_ephemeral(&p);
        bh_json_set_str(a, p.status, "phase", phase_of(&p));
        end = bh_tree_is(p.status, "phase", "Failed") || bh_tree_is(p.status, "phase", "Succeeded");
        if (end)
            stop_all(&p, 0);
    }
    conditions(&p, end);
    bh_buf_fini(&p.not_ready);
    bh_buf_fini(&p.not_complete);
    return true;
}
