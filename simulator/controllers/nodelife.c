/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/nodelife.c - what becomes of a node whose kubelet is silent, and of its
 * pods
 *
 * The stand-in kubelet of a node with the annotation sim.berth.dev/kubelet: stopped does nothing:
 * it starts no pods, ends none, and posts no status. After the grace period the node's conditions
 * are Unknown; a node whose Ready condition is not True, by us or by a writer of its status,
 * carries the NoExecute taint that belongs to it (the NoSchedule ones are worked out inside every
 * write, by admission/node.c), and its pods are not ready. Evictions follow from the taint
 * (tainteviction.c).
 * Owns:       c->nodes, an entry for each node that is not as it should be.
 * Upstream:   pkg/controller/nodelifecycle/node_lifecycle_controller.go (v1.36); differences: no
 *             zones, so taints come at once for any number of nodes; heartbeats are not simulated,
 *             a silent kubelet is one that has been told to be.
 */
#include "simulator/controllers/controllers.h"

#define COMPONENT     "node-controller"
#define NOT_READY     "node.kubernetes.io/not-ready"
#define UNREACHABLE   "node.kubernetes.io/unreachable"
#define NEVER_UPDATED "NodeStatusNeverUpdated"
#define STATUS_OLD    "NodeStatusUnknown"

static const char *const conditions[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};

struct bh_ctl_node {
    uint64_t silent_ns; /* since when, on bh_sim_mono_ns(); 0 = not silent */
    bool bad;           /* Ready is not True */
    bool deaf;          /* its kubelet does not do what the API server wants */
};

static void forget(struct bh_sim_controllers *c, const char *name)
{
    free(bh_map_del(&c->nodes, name, strlen(name)));
}

bool bh_ctl_node_deaf(const struct bh_sim_controllers *c, const char *node)
{
    const struct bh_ctl_node *n = c->nodes.len ? bh_map_get(&c->nodes, node, strlen(node)) : NULL;

    return n && n->deaf;
}

bool bh_ctl_kubelet_stopped(const struct bh_json *node)
{
    const char *v = bh_tree_annotation(node, BH_SIM_KUBELET);

    return v && bh_streq(v, "stopped");
}

/* ---- the node -------------------------------------------------------------------------------- */

struct change {
    struct bh_sim_controllers *c;
    bool lost, back; /* the grace period is over; the kubelet speaks again */
};

static bool lose(struct change *ch, struct bh_arena *a, struct bh_json *node)
{
    const char *now = bh_ctl_now(ch->c, a);
    bool changed = false;

    for (size_t i = 0; i < BH_ARRAY_LEN(conditions); i++) {
        bool known = bh_tree_condition(node, conditions[i]) != NULL;
        if (known && bh_tree_is(bh_tree_condition(node, conditions[i]), "status", "Unknown"))
            continue;
        bh_tree_set_condition(a, node, conditions[i], "Unknown", known ? STATUS_OLD : NEVER_UPDATED,
                              known ? "Kubelet stopped posting node status."
                                    : "Kubelet never posted node status.",
                              now);
        changed = true;
    }
    return changed;
}

/* Takes off what lose() has put there; node_init.c says how a node is then. */
static bool find_again(struct bh_json *node)
{
    bool changed = false;

    for (size_t i = 0; i < BH_ARRAY_LEN(conditions); i++) {
        struct bh_json *cond = bh_tree_condition(node, conditions[i]);
        if (!cond || !bh_tree_is(cond, "status", "Unknown") ||
            !(bh_tree_is(cond, "reason", STATUS_OLD) || bh_tree_is(cond, "reason", NEVER_UPDATED)))
            continue;
        bh_json_remove(bh_tree_arr(node, "status.conditions"), cond);
        changed = true;
    }
    return changed;
}

/* The NoExecute taint that follows from Ready, and not the other one. */
static bool taint(struct change *ch, struct bh_arena *a, struct bh_json *node)
{
    static const char *const keys[][2] = {{NOT_READY, "False"}, {UNREACHABLE, "Unknown"}};
    const struct bh_json *ready = bh_tree_condition(node, "Ready");
    struct bh_json *spec = bh_json_obj_at(a, node, "spec");
    bool changed = false;

    for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++) {
        bool want = ready && bh_tree_is(ready, "status", keys[i][1]);
        const struct bh_json *taints = bh_tree_arr(spec, "taints");
        const char *key = keys[i][0];
        struct bh_json *have = NULL;
        bh_json_each(t, taints)
            if (bh_tree_is(t, "key", key) && bh_tree_is(t, "effect", "NoExecute"))
                have = t;
        if (want == (have != NULL))
            continue;
        changed = true;
        if (have) {
            bh_json_remove(bh_tree_arr(spec, "taints"), have);
            continue;
        }
        bh_json_append(a, bh_tree_dflt_arr(a, spec, "taints"),
                       "key: %s, effect: NoExecute, timeAdded: %s", keys[i][0],
                       bh_ctl_now(ch->c, a));
    }
    return changed;
}

static bool edit_node(void *arg, struct bh_arena *a, struct bh_json *node)
{
    struct change *ch = arg;
    bool changed = ch->lost && lose(ch, a, node);

    if (ch->back && find_again(node)) {
        bh_ctl_node_healthy(ch->c, a, node);
        changed = true;
    }
    return taint(ch, a, node) || changed;
}

/* ---- its pods -------------------------------------------------------------------------------- */

struct readiness {
    struct bh_sim_controllers *c;
    const char *status;
};

static bool set_ready(void *arg, struct bh_arena *a, struct bh_json *pod)
{
    struct readiness *r = arg;
    struct bh_json *cond = bh_tree_condition(pod, "Ready");

    if (!cond || bh_tree_is(cond, "status", r->status))
        return false;
    bh_json_set_str(a, cond, "status", r->status);
    bh_json_set_str(a, cond, "lastTransitionTime", bh_ctl_now(r->c, a));
    return true;
}

static void mark_pods(struct bh_sim_controllers *c, const char *node, bool ready)
{
    const struct readiness r = {c, ready ? "True" : "False"};
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_on_node(c->sim, node);

    for (size_t i = 0; i < l.n; i++) {
        if (!bh_streq(l.v[i]->phase, "Running") || bh_ctl_pod_ready(l.v[i]) == ready)
            continue;
        bh_ctl_edit(c, l.v[i], BH_SIM_STATUS, set_ready, &r);
        if (!ready)
            bh_sim_event(c->sim, l.v[i], "Warning", "NodeNotReady", COMPONENT, "Node is not ready");
    }
}

/* ---- sync ------------------------------------------------------------------------------------ */

/* After the edits: what the node is now, and what follows for others. */
static void follow(struct bh_sim_controllers *c, struct bh_ctl_node *n, const char *name,
                   bool stopped)
{
    struct bh_sim_obj *o = bh_sim_get(c->sim, c->t.nodes, "", name);
    bool was_deaf = n->deaf, was_bad = n->bad;

    if (!o)
        return;
    bh_sim_obj_ref(o);
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, o);
    const struct bh_json *ready = bh_tree_condition(tree, "Ready");
    n->bad = ready && !bh_tree_is(ready, "status", "True");
    n->deaf = stopped || (ready && bh_tree_is(ready, "status", "Unknown"));
    if (n->bad != was_bad) {
        const char *reason = n->bad ? "NodeNotReady" : "NodeReady";
        bh_sim_event(c->sim, o, "Normal", reason, n->bad ? COMPONENT : "kubelet",
                     "Node %s status is now: %s", o->name, reason);
        mark_pods(c, o->name, !n->bad);
    } else if (n->bad)
        mark_pods(c, name, false); /* those that came to run since */
    if (was_deaf && !n->deaf)
        bh_ctl_wake_pods(c, name);
    bh_ctl_taints_of(c, name, bh_tree_arr(tree, "spec.taints"));
    bh_sim_obj_unref(o);
    if (!n->bad && !n->deaf)
        forget(c, name);
}

void bh_ctl_sync_node(struct bh_sim_controllers *c, const char *ns BH_UNUSED, const char *name)
{
    struct bh_sim_obj *o = bh_sim_get(c->sim, c->t.nodes, "", name);
    struct change ch = {.c = c};

    if (!o) {
        forget(c, name);
        bh_ctl_taints_of(c, name, NULL);
        return;
    }
    const struct bh_json *tree = bh_sim_obj_tree(&c->arena, o);
    bool stopped = c->opt.kubelet && bh_ctl_kubelet_stopped(tree);
    struct bh_ctl_node *n = bh_map_get(&c->nodes, name, strlen(name));
    if (!n) {
        n = bh_calloc(1, sizeof(*n));
        bh_map_put(&c->nodes, name, strlen(name), n);
    }
    if (stopped) {
        /* Is a silent kubelet's grace period over? Else looks again when it will be. */
        uint64_t now = bh_sim_mono_ns(c->sim), end;
        if (!n->silent_ns)
            n->silent_ns = now;
        end = n->silent_ns + (uint64_t)c->opt.node_grace_ns;
        if (now < end)
            bh_ctl_enqueue_after(c, BH_CTL_NODE, "", name, (int64_t)(end - now));
        ch.lost = now >= end;
    } else {
        n->silent_ns = 0;
        ch.back = c->opt.kubelet;
    }
    bh_ctl_edit(c, o, BH_SIM_WHOLE, edit_node, &ch);
    follow(c, n, name, stopped);
}

/* ---- commits --------------------------------------------------------------------------------- */

bool bh_ctl_same_spec(const struct bh_sim_obj *a, const struct bh_sim_obj *b)
{
    return a->spec_n == b->spec_n &&
           memcmp(a->json + a->spec_at, b->json + b->spec_at, a->spec_n) == 0;
}

/* Most nodes are well all their life: those are told apart without parsing anything. */
void bh_ctl_nodelife_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                            struct bh_sim_obj *old, struct bh_sim_obj *obj)
{
    bool odd = strstr(obj->json, "\"" BH_SIM_KUBELET "\"") || strstr(obj->json, "\"NoExecute\"") ||
               !strstr(obj->json, "\"KubeletReady\"");

    if (change != BH_SIM_DELETED && !odd && (!old || bh_ctl_same_spec(old, obj)) &&
        !bh_map_get(&c->nodes, obj->name, strlen(obj->name)))
        return;
    bh_ctl_enqueue(c, BH_CTL_NODE, "", obj->name);
}
