/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/daemonset.c - daemon sets: one pod on each node that fits
 *
 * The pod is not bound here: it carries a node affinity that only its node satisfies, and the
 * scheduler binds it.
 * Upstream: pkg/controller/daemon/daemon_controller.go, update.go, util/daemonset_util.go (v1.36);
 * differences: maxSurge is not honoured.
 */
#include "simulator/controllers/controllers.h"

struct slot { /* one node */
    struct bh_sim_obj *node;
    bool fits, stays;       /* a new pod would go there; one that is there may stay */
    struct bh_sim_obj *pod; /* the oldest active one */
};
struct daemons {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *obj;
    struct bh_json *tree, *template; /* template as it is made into pods */
    const char *hash;
    struct slot *slots; /* in name order of the nodes */
    size_t n;
    int64_t desired, current, ready, updated, misplaced;
    size_t budget;
};

/* ---- which nodes fit ------------------------------------------------------------------------- */

static bool compare(const struct bh_json *e, const char *v, bool greater)
{
    const struct bh_json *values = bh_tree_arr(e, "values");
    const char *want = values ? bh_json_cstr(values->c.first) : NULL;
    char *end_a, *end_b;
    long long a, b;

    if (!v || !want || !*v || !*want)
        return false;
    a = strtoll(v, &end_a, 10);
    b = strtoll(want, &end_b, 10);
    return !*end_a && !*end_b && (greater ? a > b : a < b);
}

/* v: the label's value, NULL when absent. */
static bool requirement(const struct bh_json *e, const char *v)
{
    if (bh_tree_is(e, "operator", "In"))
        return v && bh_tree_lists(bh_tree_arr(e, "values"), v);
    if (bh_tree_is(e, "operator", "NotIn"))
        return !v || !bh_tree_lists(bh_tree_arr(e, "values"), v);
    if (bh_tree_is(e, "operator", "Exists"))
        return v != NULL;
    if (bh_tree_is(e, "operator", "DoesNotExist"))
        return !v;
    if (bh_tree_is(e, "operator", "Gt"))
        return compare(e, v, true);
    return bh_tree_is(e, "operator", "Lt") && compare(e, v, false);
}

static bool term_matches(const struct bh_json *term, const struct bh_sim_obj *node)
{
    const struct bh_json *exprs = bh_tree_arr(term, "matchExpressions");
    const struct bh_json *fields = bh_tree_arr(term, "matchFields");

    if (!bh_tree_len(exprs) && !bh_tree_len(fields))
        return false;
    bh_json_each(e, exprs) {
        const char *key = bh_tree_str(e, "key");
        if (!requirement(e, key ? bh_sim_obj_label(node, key) : NULL))
            return false;
    }
    bh_json_each(e, fields)
        if (!bh_tree_is(e, "key", "metadata.name") || !requirement(e, node->name))
            return false;
    return true;
}

static bool affinity_matches(const struct bh_json *spec, const struct bh_sim_obj *node)
{
    const struct bh_json *sel =
        bh_tree_obj(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution");

    bh_json_each(m, bh_tree_obj(spec, "nodeSelector")) {
        const char *want = bh_json_cstr(m), *have = bh_sim_obj_label(node, m->key.p);
        if (!want || !have || !bh_streq(want, have))
            return false;
    }
    if (!sel)
        return true;
    bh_json_each(t, bh_tree_arr(sel, "nodeSelectorTerms"))
        if (term_matches(t, node))
            return true;
    return false;
}

static bool tolerated(const struct bh_json *spec, const struct bh_json *taint)
{
    bh_json_each(t, bh_tree_arr(spec, "tolerations"))
        if (bh_ctl_tolerates(t, taint))
            return true;
    return false;
}

/* *ret_stay: a pod that is there already need not go. */
static bool taints_tolerated(struct bh_sim_controllers *c, const struct bh_json *spec,
                             const struct bh_sim_obj *node, bool *ret_stay)
{
    bool ok = true;

    if (!strstr(node->json, "\"taints\""))
        return true;
    struct bh_arena_mark mark = bh_arena_mark(&c->arena);
    bh_json_each(t, bh_tree_arr(bh_sim_obj_tree(&c->arena, node), "spec.taints")) {
        if (bh_tree_is(t, "effect", "PreferNoSchedule") || tolerated(spec, t))
            continue;
        ok = false;
        if (bh_tree_is(t, "effect", "NoExecute"))
            *ret_stay = false;
    }
    bh_arena_rewind(&c->arena, mark);
    return ok;
}

static struct slot slot_of(struct daemons *d, struct bh_sim_obj *node)
{
    const struct bh_json *spec = bh_tree_obj(d->template, "spec");
    const char *name = bh_tree_str(spec, "nodeName");
    struct slot s = {.node = node};

    s.stays = (!name || !*name || bh_streq(name, node->name)) && affinity_matches(spec, node);
    s.fits = s.stays && taints_tolerated(d->c, spec, node, &s.stays);
    return s;
}

/* ---- the template ---------------------------------------------------------------------------- */

static void tolerate(struct bh_arena *a, struct bh_json *list, const char *key, const char *effect)
{
    bh_json_each(o, list) {
        if (bh_tree_is(o, "key", key) && bh_tree_is(o, "effect", effect) &&
            bh_tree_is(o, "operator", "Exists"))
            return;
    }
    bh_json_append(a, list, "key: %s, operator: Exists, effect: %s", key, effect);
}

/* Daemons stay on nodes that others have to leave. */
static void prepare_template(struct daemons *d)
{
    static const char *const taints[][2] = {
        {"node.kubernetes.io/not-ready", "NoExecute"},
        {"node.kubernetes.io/unreachable", "NoExecute"},
        {"node.kubernetes.io/disk-pressure", "NoSchedule"},
        {"node.kubernetes.io/memory-pressure", "NoSchedule"},
        {"node.kubernetes.io/pid-pressure", "NoSchedule"},
        {"node.kubernetes.io/unschedulable", "NoSchedule"},
        {"node.kubernetes.io/network-unavailable", "NoSchedule"},
    };
    struct bh_arena *a = &d->c->arena;
    size_t n = BH_ARRAY_LEN(taints);

    d->template = bh_ctl_template_with(a, bh_tree_obj(d->tree, "spec.template"),
                                       "controller-revision-hash", d->hash);
    struct bh_json *spec = bh_json_obj_at(a, d->template, "spec");
    struct bh_json *list = bh_tree_dflt_arr(a, spec, "tolerations");
    if (!bh_tree_bool(spec, "hostNetwork", false))
        n--;
    for (size_t i = 0; list && i < n; i++)
        tolerate(a, list, taints[i][0], taints[i][1]);
}

/* ---- pods and nodes -------------------------------------------------------------------------- */

static const char *pinned_to(struct bh_sim_controllers *c, const struct bh_sim_obj *pod)
{
    static const char pinned[] = "\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"";

    if (*pod->node_name)
        return pod->node_name;
    const char *at =
        strstr(pod->json, pinned); /* as pin() has written it: no need to parse thousands */
    if (!at)
        return bh_tree_pinned_to(bh_sim_obj_tree(&c->arena, pod));
    at += sizeof(pinned) - 1;
    return bh_arena_strndup(&c->arena, at, strcspn(at, "\""));
}

static int by_node_name(const void *key, const void *slot)
{
    return strcmp(key, ((const struct slot *)slot)->node->name);
}

static void remove_pod(struct daemons *d, struct bh_sim_obj *pod)
{
    if (!d->budget)
        return;
    d->budget--;
    bh_ctl_pod_delete(d->c, BH_CTL_DAEMONSET, d->obj, pod);
}

/* Finished pods and pods without a node to run on go; of two on a node the first in line stays. */
static void assign(struct daemons *d, struct bh_sim_objs *pods)
{
    for (size_t i = 0; i < pods->n; i++) {
        struct bh_sim_obj *p = pods->v[i];
        if (p->deleting)
            continue;
        struct slot *s =
            bsearch(pinned_to(d->c, p), d->slots, d->n, sizeof(*d->slots), by_node_name);
        if (!s || !bh_ctl_pod_active(p) || s->pod) {
            remove_pod(d, p);
        } else if (!s->stays) {
            d->misplaced++;
            remove_pod(d, p);
        } else {
            d->misplaced += !s->fits;
            s->pod = p;
        }
    }
}

static void create_missing(struct daemons *d)
{
    for (size_t i = 0; i < d->n && d->budget; i++) {
        struct bh_arena *a = &d->c->pod_arena;
        if (!d->slots[i].fits || d->slots[i].pod)
            continue;
        d->budget--;
        struct bh_json *pod = bh_ctl_pod_of(a, d->obj, d->template, d->obj->name);
        /* Required terms are alternatives: a single new one, the node's name, takes the place of
         * them all. The node is known to satisfy the other requirements. */
        bh_json_add(
            a, pod,
            "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchFields: "
            "[{key: metadata.name, operator: In, values: [%s]}]}]}}}}",
            d->slots[i].node->name);
        if (bh_ctl_pod_create(d->c, BH_CTL_DAEMONSET, d->obj, pod))
            return;
    }
}

static bool is_updated(const struct daemons *d, const struct bh_sim_obj *pod)
{
    const char *h = bh_sim_obj_label(pod, "controller-revision-hash");

    return h && bh_streq(h, d->hash);
}

/* Old pods that are not ready go at once, ready ones as far as maxUnavailable allows. */
static void roll(struct daemons *d)
{
    const struct bh_json *max =
        bh_json_path(d->tree, "spec.updateStrategy.rollingUpdate.maxUnavailable");
    int64_t allowed = BH_MAX(bh_tree_scaled(max, d->desired, true), 1) - (d->desired - d->ready);

    if (!bh_tree_is(d->tree, "spec.updateStrategy.type", "RollingUpdate"))
        return;
    for (size_t i = 0; i < d->n && d->budget; i++) {
        struct slot *s = &d->slots[i];
        if (!s->pod || !s->fits || is_updated(d, s->pod))
            continue;
        if (bh_ctl_pod_ready(s->pod) && allowed-- <= 0)
            return;
        remove_pod(d, s->pod);
    }
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct daemons *d = arg;

    bh_json_add(a, o,
                "status: {currentNumberScheduled: %ld, numberMisscheduled: %ld, "
                "desiredNumberScheduled: %ld, numberReady: %ld, observedGeneration: %ld, "
                "updatedNumberScheduled?: %ld, numberAvailable?: %ld, numberUnavailable?: %ld}",
                d->current, d->misplaced, d->desired, d->ready,
                bh_tree_i64(o, "metadata.generation", 0), d->updated, d->ready,
                d->desired - d->ready);
    return true;
}

void bh_ctl_sync_daemonset(struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    struct daemons d = {
        .c = c, .obj = obj, .tree = bh_sim_obj_tree(&c->arena, obj), .budget = BH_CTL_BATCH};

    if (!bh_tree_obj(d.tree, "spec.template"))
        return;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs nodes = bh_sim_listed(c->sim, c->t.nodes, NULL);
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(c->sim, obj->uid, c->t.pods);
    d.hash = bh_ctl_revision(c, &c->arena, obj, bh_tree_obj(d.tree, "spec.template"));
    prepare_template(&d);
    d.slots = bh_arena_new_array(&c->arena, struct slot, nodes.n + 1);
    for (d.n = 0; d.n < nodes.n; d.n++)
        d.slots[d.n] = slot_of(&d, nodes.v[d.n]);
    assign(&d, &pods);
    for (size_t i = 0; i < d.n; i++) {
        const struct slot *s = &d.slots[i];
        d.desired += s->fits;
        if (!s->fits || !s->pod)
            continue;
        d.current++;
        d.ready += bh_ctl_pod_ready(s->pod);
        d.updated += is_updated(&d, s->pod);
    }
    create_missing(&d);
    roll(&d);
    if (!d.budget)
        bh_ctl_again(c, BH_CTL_DAEMONSET, obj, 0);
    bh_ctl_edit(c, obj, BH_SIM_STATUS, write_status, &d);
}
