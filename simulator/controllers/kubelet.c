/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/kubelet.c - the stand-in for every node's kubelet
 *
 * A pod that is bound to a node that exists runs after the configured delay; what happens to its
 * containers from then on, and when, says podlife.c. A pod that is being deleted is gone after the
 * delay and its hooks. Waiting pods stand in one line in order of time and are worked off in batches:
 * thousands of pods a second pass here; later times are keys of the work queue.
 * Invariants: ring[first..first+n) is ordered by at_ns; the timer is armed exactly while n > 0.
 *             What is due is looked up again before it is touched: pods may have changed meanwhile.
 * Upstream:   pkg/kubelet (pod workers); differences: no events, no liveness probes.
 */
#include "simulator/controllers/controllers.h"
#include "simulator/controllers/podscript.h"

#include <stdio.h>

#define DEFAULT_GRACE_S 30
#define TURN_PODS       256 /* status writes of one turn of the loop */

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

/* ---- one pod ---------------------------------------------------------------------------------- */

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

/* The pod's status as of now; it is looked at again when more is to happen. */
static void live(struct bh_sim_controllers *c, const struct bh_sim_obj *pod, bool kill)
{
    struct bh_ctl_kubelet *k = &c->kubelet;
    bool job = bh_streq(pod->owner_kind, "Job");
    char ip[16] = "";
    struct bh_ctl_life l = {.now_ns = bh_sim_now_ns(c->sim),
                            .now = bh_ctl_now(c, &k->arena),
                            .host_ip = bh_ctl_node_ip(c, pod->node_name),
                            .pod_ip = ip,
                            .job_ns = job ? c->opt.kubelet_delay_ns : -1,
                            .files = &k->files,
                            .kill = kill};

    if (!*l.host_ip)
        return; /* no such node: the pod does not run until the node comes */
    if (!strstr(pod->json, "\"podIP\":\""))
        next_pod_ip(k, ip);
    if (!bh_ctl_edit(c, pod, BH_SIM_STATUS, bh_ctl_live, &l) && l.next_ns < INT64_MAX)
        bh_ctl_again(c, BH_CTL_POD_LIFE, pod, BH_MAX(l.next_ns - l.now_ns, 0));
}

/* The hooks have run and the containers are ended: the API server may let the pod go. */
static void finish(struct bh_sim_controllers *c, const struct bh_sim_obj *pod)
{
    struct bh_sim_delete_options now = {.grace_s = 0, .uid = pod->uid};

    if (pod->has_finalizers && bh_streq(pod->phase, "Running"))
        live(c, pod, true);
    bh_sim_delete(c->sim, c->t.pods, pod->ns, pod->name, &now, NULL);
}

static void act(struct bh_sim_controllers *c, const struct bh_sim_obj *was)
{
    struct bh_sim_obj *pod = bh_sim_get(c->sim, c->t.pods, was->ns, was->name);

    if (!pod || !bh_streq(pod->uid, was->uid) || !*pod->node_name ||
        bh_ctl_node_deaf(c, pod->node_name))
        return;
    if (pod->deleting)
        finish(c, was);
    else if (!bh_ctl_pod_finished(pod))
        live(c, was, false);
}

void bh_ctl_sync_pod_life(struct bh_sim_controllers *c, struct bh_sim_obj *pod)
{
    if (!pod->deleting || !bh_ctl_waits(c, BH_CTL_POD_LIFE, pod->ns, pod->name))
        act(c, pod);
    bh_arena_reset(&c->kubelet.arena);
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

/* Stored text is compact, and no text in it holds a quote that is bare. */
static int64_t grace_s(const struct bh_sim_obj *pod)
{
    static const char key[] = "\"deletionGracePeriodSeconds\":";
    const char *at = strstr(pod->json, key);

    return at ? strtoll(at + sizeof(key) - 1, NULL, 10) : 0;
}

/* Admission gives every pod the default, and most programs end at once on SIGTERM. */
static bool asks_for_grace(struct bh_arena *a, const struct bh_sim_obj *pod)
{
    static const char key[] = "\"terminationGracePeriodSeconds\":";
    const char *at = strstr(pod->json, key);
    bool once = at && !strstr(at + 1, key); /* probes may have one, too */

    if (!at || (once && strtoll(at + sizeof(key) - 1, NULL, 10) == DEFAULT_GRACE_S))
        return false;
    return bh_tree_i64(bh_sim_obj_tree(a, pod), "spec.terminationGracePeriodSeconds",
                       DEFAULT_GRACE_S) != DEFAULT_GRACE_S;
}

/* A pod that is being deleted goes after its hooks, within its grace period; one without hooks whose
 * spec asks for a grace period of its own takes all of it. */
static void end(struct bh_sim_controllers *c, struct bh_sim_obj *pod)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    const int64_t grace_ns = BH_MIN(grace_s(pod), (int64_t)INT32_MAX) * 1000000000;
    int64_t ns = 0;

    bh_ctl_dequeue(c, BH_CTL_POD_LIFE, pod->ns, pod->name);
    if (bh_streq(pod->phase, "Running") &&
        (strstr(pod->json, "\"preStop\"") || strstr(pod->json, "trap "))) {
        ns = bh_ctl_pre_stop_ns(&a, bh_sim_obj_tree(&a, pod));
        ns = BH_MIN(ns, grace_ns);
    } else if (bh_streq(pod->phase, "Running") && asks_for_grace(&a, pod)) {
        ns = grace_ns;
    }
    if (ns)
        bh_ctl_again(c, BH_CTL_POD_LIFE, pod, ns + c->opt.kubelet_delay_ns);
    else
        push(c, pod);
}

/* What was written about a running pod lets the kubelet do something. */
static bool matters(const struct bh_sim_obj *old, const struct bh_sim_obj *obj)
{
    if (!old) /* it came running, with what a life may hang on */
        return bh_streq(obj->owner_kind, "Job") || obj->has_annotations ||
               strstr(obj->json, "\"command\":") || strstr(obj->json, "\"args\":") ||
               strstr(obj->json, "\"activeDeadlineSeconds\":");
    return strstr(obj->json, "\"readinessGates\":") ||
           (old->generation != obj->generation &&
            (strstr(obj->json, "\"ephemeralContainers\":") ||
             strstr(obj->json, "\"activeDeadlineSeconds\":") || strstr(obj->json, "\"image\":")));
}

/* Only what moves a pod on is put in line. */
void bh_ctl_kubelet_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                           struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    if (!c->opt.kubelet || !*obj->node_name)
        return;
    if (!old && !bh_streq(obj->phase, "Pending"))
        bh_ctl_keep_ip(obj, "\"podIP\":\"10.", 128, 256, &c->kubelet.next_pod_ip);
    if (change == BH_SIM_DELETED) {
        bh_ctl_dequeue(c, BH_CTL_POD_LIFE, obj->ns, obj->name);
        bh_ctl_forget_files(&c->kubelet.files, obj->uid);
    } else if (obj->deleting) {
        if (!old || !old->deleting || grace_s(obj) < grace_s(old))
            end(c, obj);
    } else if (bh_streq(obj->phase, "Pending")) {
        if (!old || !*old->node_name || !bh_streq(old->phase, "Pending"))
            push(c, obj);
    } else if (bh_streq(obj->phase, "Running") && (!old || bh_streq(old->phase, "Running")) &&
               matters(old, obj)) {
        bh_ctl_again(c, BH_CTL_POD_LIFE, obj, 0);
    }
}

void bh_ctl_kubelet_fini(struct bh_sim_controllers *c)
{
    struct bh_ctl_kubelet *k = &c->kubelet;

    bh_sim_cancel(k->timer);
    for (size_t i = 0; i < k->n; i++)
        bh_sim_obj_unref(k->ring[(k->first + i) & (k->cap - 1)].pod);
    free(k->ring);
    bh_map_fini_values(&k->files);
    bh_map_fini_values(&k->node_ip);
    bh_arena_fini(&k->arena);
}
