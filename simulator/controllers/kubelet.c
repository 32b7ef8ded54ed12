/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/kubelet.c - the stand-in for every node's kubelet
 *
 * A pod that is bound to a node that exists becomes Running and ready after the configured delay,
 * in one status write; a pod with a run time (BH_SIM_RUN_TIME) finishes after it, a pod of a Job
 * without one after the delay again; a pod that is being deleted is gone after the delay. Waiting
 * pods stand in one line in order of time and are worked off in batches: thousands of pods a second
 * pass here.
 * Invariants: ring[first..first+n) is ordered by at_ns; the timer is armed exactly while n > 0.
 *             What is due is looked up again before it is touched: pods may have changed meanwhile.
 * Upstream:   pkg/kubelet (status manager), kwok's fast stages; differences: no events, no
 *             restarts, no probes; readiness gates are taken as met.
 */
#include "simulator/controllers/controllers.h"

#include "common/base/opt.h"
#include <stdio.h>

#define TURN_PODS 256 /* status writes of one turn of the loop */

/* ---- the line -------------------------------------------------------------------------------- */

static void work(void *arg);

static void arm(struct bh_sim_controllers *c)
{
    struct bh_ctl_kubelet *k = &c->kubelet;
    uint64_t now = bh_sim_mono_ns(c->sim), at;

    if (!k->n || k->timer)
        return;
    at = k->ring[k->first].at_ns;
    k->timer = bh_sim_after(c->sim, at > now ? (int64_t)(at - now) : 0, work, c);
}

static void push(struct bh_sim_controllers *c, struct bh_sim_obj *pod)
{
    struct bh_ctl_kubelet *k = &c->kubelet;

    if (k->n == k->cap) {
        size_t cap = k->cap ? k->cap * 2 : 256;
        struct bh_ctl_due *ring = bh_calloc(cap, sizeof(*ring));
        for (size_t i = 0; i < k->n; i++)
            ring[i] = k->ring[(k->first + i) & (k->cap - 1)];
        free(k->ring);
        k->ring = ring;
        k->cap = cap;
        k->first = 0;
    }
    k->ring[(k->first + k->n++) & (k->cap - 1)] = (struct bh_ctl_due){
        bh_sim_obj_ref(pod), bh_sim_mono_ns(c->sim) + (uint64_t)c->opt.kubelet_delay_ns};
    arm(c);
}

/* ---- status ---------------------------------------------------------------------------------- */

struct start {
    struct bh_sim_controllers *c;
    const char *now, *host_ip, *pod_ip;
};

/* Conditions stand in the order in which a kubelet writes them; others stay behind. */
static void conditions(struct bh_arena *a, struct bh_json *pod, const char *now)
{
    static const char *const types[] = {"PodReadyToStartContainers", "Initialized", "Ready",
                                        "ContainersReady"};
    struct bh_json *status = bh_tree_obj(pod, "status");
    const struct bh_json *old = bh_tree_arr(status, "conditions");
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (size_t i = 0; i < BH_ARRAY_LEN(types); i++) {
        bh_json_append(a, list,
                       "type: %s, status: True, lastProbeTime: null, lastTransitionTime: %s",
                       types[i], now);
    }
    bh_json_each(o, old) {
        const char *t = bh_tree_str(o, "type");
        bool ours = !t;
        for (size_t i = 0; i < BH_ARRAY_LEN(types); i++)
            ours = ours || bh_streq(t, types[i]);
        if (!ours)
            bh_json_push(list, bh_json_clone(a, o));
    }
    bh_json_set(a, status, "conditions", list);
    bh_json_each(g, bh_tree_arr(pod, "spec.readinessGates")) {
        const char *t = bh_tree_str(g, "conditionType");
        if (t)
            bh_tree_set_condition(a, pod, t, "True", "", "", now);
    }
}

enum run { RUNNING, COMPLETED, FAILED };

static void container_status(struct bh_arena *a, struct bh_json *list, const struct bh_json *c,
                             const char *uid, enum run run, int64_t exit_code, const char *started,
                             const char *now)
{
    const char *name = bh_tree_str(c, "name");
    struct bh_json *s = bh_json_append(a, list, "name: %s, state: {}", name);
    char id[128];

    snprintf(id, sizeof(id), "berth://%.40s/%.63s", uid, name ? name : "");
    if (run == RUNNING)
        bh_json_add(a, s, "state: {running: {startedAt: %s}}", started);
    else
        bh_json_add(a, s,
                    "state: {terminated: {exitCode: %ld, reason: %s, startedAt: %s, "
                    "finishedAt: %s, containerID: %s}}",
                    run == FAILED ? exit_code : 0, run == FAILED ? "Error" : "Completed", started,
                    now, id);
    bh_json_add(a, s,
                "lastState: {}, ready: true, restartCount: 0, image: %s, imageID: '', "
                "containerID: %s, started: %i",
                bh_tree_str(c, "image"), id, run == RUNNING);
}

static void container_statuses(struct bh_arena *a, struct bh_json *pod, enum run run,
                               int64_t exit_code, const char *started, const char *now)
{
    struct bh_json *status = bh_tree_obj(pod, "status"), *list;
    const struct bh_json *inits = bh_tree_arr(pod, "spec.initContainers");
    const char *uid = bh_tree_str(pod, "metadata.uid");

    if (bh_tree_len(inits)) {
        list = bh_json_set(a, status, "initContainerStatuses", bh_json_new(a, BH_JSON_ARRAY));
        bh_json_each(c, inits)
            container_status(a, list, c, uid,
                             bh_tree_is(c, "restartPolicy", "Always") && run == RUNNING ? run
                                                                                        : COMPLETED,
                             0, started, now);
    }
    list = bh_json_set(a, status, "containerStatuses", bh_json_new(a, BH_JSON_ARRAY));
    bh_json_each(c, bh_tree_arr(pod, "spec.containers"))
        container_status(a, list, c, uid, run, exit_code, started, now);
}

static bool start_pod(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    const struct start *s = arg;
    struct bh_json *status = bh_json_obj_at(a, pod, "status");
    int64_t generation = bh_tree_i64(pod, "metadata.generation", 0);

    if (generation)
        bh_json_set_i64(a, status, "observedGeneration", generation);
    bh_json_set_str(a, status, "phase", "Running");
    conditions(a, pod, s->now);
    const char *ip = bh_tree_bool(pod, "spec.hostNetwork", false) ? s->host_ip : s->pod_ip;
    bh_json_add(a, status,
                "hostIP: %s, hostIPs: [{ip: %s}], podIP: %s, podIPs: [{ip: %s}], startTime: %s",
                s->host_ip, s->host_ip, ip, ip, s->now);
    container_statuses(a, pod, RUNNING, 0, s->now, s->now);
    return true;
}

static bool complete_pod(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    static const char *const done[] = {"Initialized", "Ready", "ContainersReady"};
    struct start *s = arg;
    struct bh_json *status = bh_json_obj_at(a, pod, "status");
    const char *started = bh_tree_str(status, "startTime");
    const char *code = bh_tree_annotation(pod, BH_SIM_EXIT_CODE);
    int64_t exit_code = code ? strtoll(code, NULL, 10) & 255 : 0;
    const char *phase = exit_code ? "Failed" : "Succeeded";
    const char *reason = exit_code ? "PodFailed" : "PodCompleted";

    bh_json_set_str(a, status, "phase", phase);
    for (size_t i = 0; i < BH_ARRAY_LEN(done); i++)
        bh_tree_set_condition(a, pod, done[i], i ? "False" : "True", i || !exit_code ? reason : "",
                              "", s->now);
    bh_tree_set_condition(a, pod, "PodReadyToStartContainers", "False", "", "", s->now);
    container_statuses(a, pod, exit_code ? FAILED : COMPLETED, exit_code,
                       started ? started : s->now, s->now);
    bh_json_each(c, bh_tree_arr(status, "containerStatuses"))
        bh_json_set_bool(a, c, "ready", false);
    return true;
}

/* 10.128.0.0/9, in order; used again after eight million pods. */
static void next_pod_ip(struct bh_ctl_kubelet *k, char out[static 16])
{
    uint32_t n = k->next_pod_ip++ & 0x7fffff;

    if ((n & 255) == 0 || (n & 255) == 255)
        n = k->next_pod_ip++ & 0x7fffff;
    if ((n & 255) == 0)
        n = k->next_pod_ip++ & 0x7fffff;
    snprintf(out, 16, "10.%u.%u.%u", (unsigned)(128 + (n >> 16)), (unsigned)(n >> 8 & 255),
             (unsigned)(n & 255));
}

static void act(struct bh_sim_controllers *c, const struct bh_sim_obj *was)
{
    struct bh_sim_obj *pod = bh_sim_get(c->sim, c->t.pods, was->ns, was->name);
    struct bh_sim_delete_options now = {.grace_s = 0, .uid = was->uid};
    struct start s = {.c = c};
    char ip[16] = "";

    if (!pod || !bh_streq(pod->uid, was->uid) || !*pod->node_name ||
        bh_ctl_node_deaf(c, pod->node_name))
        return;
    if (pod->deleting) {
        bh_sim_delete(c->sim, c->t.pods, was->ns, was->name, &now, NULL);
        return;
    }
    s.now = bh_ctl_now(c, &c->kubelet.arena);
    if (bh_streq(pod->phase, "Pending")) {
        s.host_ip = bh_ctl_node_ip(c, pod->node_name);
        if (!*s.host_ip)
            return; /* no such node: the pod does not run until the node comes */
        next_pod_ip(&c->kubelet, ip);
        s.pod_ip = ip;
        bh_ctl_edit(c, was, BH_SIM_STATUS, start_pod, &s);
    } else if (bh_streq(pod->phase, "Running") && bh_streq(pod->owner_kind, "Job")) {
        bh_ctl_edit(c, was, BH_SIM_STATUS, complete_pod, &s);
    }
}

/* ---- run time -------------------------------------------------------------------------------- */

/* How long the pod still runs, from its annotations; -1 = they say nothing. fresh: it began just
 * now; else its start time tells, to the second. */
static int64_t run_time(struct bh_sim_controllers *c, const struct bh_sim_obj *pod, bool fresh)
{
    int64_t ns = -1;

    if (!pod->has_annotations || (!strstr(pod->json, "\"" BH_SIM_RUN_TIME "\"") &&
                                  !strstr(pod->json, "\"" BH_SIM_KWOK_TIME "\"")))
        return -1;
    struct bh_arena_mark mark = bh_arena_mark(&c->kubelet.arena);
    const struct bh_json *tree = bh_sim_obj_tree(&c->kubelet.arena, pod);
    const char *text = bh_tree_annotation(tree, BH_SIM_RUN_TIME);
    text = text ? text : bh_tree_annotation(tree, BH_SIM_KWOK_TIME);
    if (!text || bh_parse_duration_ns(text, &ns) < 0 || ns < 0)
        ns = -1;
    else if (!fresh && ns < INT64_MAX / 4)
        ns = BH_MAX(bh_ctl_time_after(bh_tree_str(tree, "status.startTime"), ns) -
                        bh_sim_now_ns(c->sim),
                    0);
    bh_arena_rewind(&c->kubelet.arena, mark);
    return ns;
}

void bh_ctl_sync_pod_end(struct bh_sim_controllers *c, struct bh_sim_obj *pod)
{
    const struct start s = {.c = c, .now = bh_ctl_now(c, &c->arena)};

    if (bh_streq(pod->phase, "Running") && !bh_ctl_node_deaf(c, pod->node_name))
        bh_ctl_edit(c, pod, BH_SIM_STATUS, complete_pod, &s);
}

static void work(void *arg)
{
    struct bh_sim_controllers *c = arg;
    struct bh_ctl_kubelet *k = &c->kubelet;
    uint64_t now = bh_sim_mono_ns(c->sim);

    k->timer = NULL;
    for (size_t i = 0; i < TURN_PODS && k->n && k->ring[k->first].at_ns <= now; i++) {
        struct bh_sim_obj *pod = k->ring[k->first].pod;
        k->first = (k->first + 1) & (k->cap - 1);
        k->n--;
        act(c, pod);
        bh_sim_obj_unref(pod);
        bh_arena_reset(&k->arena);
    }
    arm(c);
}

/* ---- commits --------------------------------------------------------------------------------- */

/* Only what moves a pod on is put in line: being bound, running to an end, being deleted. */
void bh_ctl_kubelet_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                           struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    int64_t ns;

    if (!c->opt.kubelet || !*obj->node_name)
        return;
    if (!old && !bh_streq(obj->phase, "Pending"))
        bh_ctl_keep_ip(obj, "\"podIP\":\"10.", 128, 256, &c->kubelet.next_pod_ip);
    if (change == BH_SIM_DELETED) {
        bh_ctl_dequeue(c, BH_CTL_POD_END, obj->ns, obj->name);
    } else if (obj->deleting) {
        if (!old || !old->deleting)
            push(c, obj);
    } else if (bh_streq(obj->phase, "Pending")) {
        if (!old || !*old->node_name || !bh_streq(old->phase, "Pending"))
            push(c, obj);
    } else if (bh_streq(obj->phase, "Running") && (!old || !bh_streq(old->phase, "Running"))) {
        ns = run_time(c, obj, old != NULL);
        if (ns >= 0)
            bh_ctl_enqueue_after(c, BH_CTL_POD_END, obj->ns, obj->name, ns); /* also after 0 */
        else if (bh_streq(obj->owner_kind, "Job"))
            push(c, obj);
    }
}

void bh_ctl_kubelet_fini(struct bh_sim_controllers *c)
{
    struct bh_ctl_kubelet *k = &c->kubelet;

    bh_sim_cancel(k->timer);
    for (size_t i = 0; i < k->n; i++)
        bh_sim_obj_unref(k->ring[(k->first + i) & (k->cap - 1)].pod);
    free(k->ring);
    bh_map_fini_values(&k->node_ip);
    bh_arena_fini(&k->arena);
}
