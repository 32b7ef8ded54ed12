/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/statefulset.c - stateful sets: numbered pods, one after the other
 *
 * Upstream: pkg/controller/statefulset/stateful_set_control.go, stateful_set_utils.go (v1.36);
 * differences: minReadySeconds and maxUnavailable are not looked at; claims are never deleted,
 * which is upstream's default.
 */
#include "simulator/controllers/controllers.h"

#include <inttypes.h>

struct stateful {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *obj;
    const struct bh_json *tree;
    const char *hash;
    int64_t replicas, start;
    struct bh_sim_obj **pod; /* by ordinal - start, NULL = missing; n_pod >= replicas */
    size_t n_pod;
    bool ordered, again;
    int64_t have, ready, updated;
    size_t budget;
};

int64_t bh_ctl_ordinal_of(const struct bh_sim_obj *set, const struct bh_sim_obj *pod)
{
    size_t n = strlen(set->name);
    char *end;
    long long v;

    if (strncmp(pod->name, set->name, n) != 0 || pod->name[n] != '-' || !pod->name[n + 1])
        return -1;
    v = strtoll(pod->name + n + 1, &end, 10);
    return *end || v < 0 || v > INT32_MAX ? -1 : v;
}

/* ---- making a pod ---------------------------------------------------------------------------- */

static void claim(struct stateful *s, const struct bh_json *template, const char *name)
{
    struct bh_arena *a = &s->c->arena;

    if (bh_sim_get(s->c->sim, s->c->t.claims, s->obj->ns, name))
        return;
    struct bh_json *o = bh_json_add(a, bh_json_clone(a, template), "metadata: {name: %s}", name);
    bh_json_unset(o, "status");
    bh_json_unset(bh_json_get(o, "metadata"), "creationTimestamp");
    bh_json_each(m, bh_tree_obj(s->tree, "spec.selector.matchLabels"))
        bh_json_add(a, o, "metadata: {labels: {%s: %p}}", m->key.p, bh_json_clone(a, m));
    bh_sim_create(s->c->sim, s->c->t.claims, s->obj->ns, a, o, NULL, NULL);
}

/* Each claim template gives the pod a claim of its own and the volume of that name. */
static void volumes(struct stateful *s, struct bh_arena *a, struct bh_json *spec, const char *pod)
{
    struct bh_json *list = bh_tree_arr(spec, "volumes");

    bh_json_each(t, bh_tree_arr(s->tree, "spec.volumeClaimTemplates")) {
        const char *name = bh_tree_str(t, "metadata.name"), *claim_name;
        if (!name)
            continue;
        claim_name = bh_arena_printf(a, "%s-%s", name, pod);
        claim(s, t, claim_name);
        list = bh_tree_dflt_arr(a, spec, "volumes");
        bh_json_each(old, list) {
            if (bh_tree_is(old, "name", name)) {
                bh_json_remove(list, old);
                break;
            }
        }
        bh_json_append(a, list, "name: %s, persistentVolumeClaim: {claimName: %s}", name,
                       claim_name);
    }
}

static void create(struct stateful *s, int64_t ordinal)
{
    struct bh_arena *a = &s->c->pod_arena;
    struct bh_json *pod = bh_ctl_pod_of(a, s->obj, bh_tree_obj(s->tree, "spec.template"), NULL);
    const char *name = bh_arena_printf(a, "%s-%" PRId64, s->obj->name, ordinal);
    const char *service = bh_tree_str(s->tree, "spec.serviceName");

    bh_json_add(a, pod,
                "metadata: {name: %s, labels: {statefulset.kubernetes.io/pod-name: %s, "
                "apps.kubernetes.io/pod-index: %s, controller-revision-hash: %s}}, "
                "spec: {hostname: %s}",
                name, name, bh_arena_printf(a, "%" PRId64, ordinal),
                bh_arena_printf(a, "%s-%s", s->obj->name, s->hash), name);
    if (service && *service)
        bh_json_add(a, pod, "spec: {subdomain: %s}", service);
    volumes(s, a, bh_json_get(pod, "spec"), name);
    (void)bh_ctl_pod_create(s->c, BH_CTL_STATEFULSET, s->obj, pod);
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_updated(const struct stateful *s, const struct bh_sim_obj *pod)
{
    const char *h = bh_sim_obj_label(pod, "controller-revision-hash");
    size_t n = strlen(s->obj->name);

    return h && strncmp(h, s->obj->name, n) == 0 && h[n] == '-' && bh_streq(h + n + 1, s->hash);
}

static void remove_pod(struct stateful *s, struct bh_sim_obj *pod)
{
    s->budget--;
    bh_ctl_pod_delete(s->c, BH_CTL_STATEFULSET, s->obj, pod);
}

/* Fills the numbers from below; false when it has to wait for one of them. */
static bool fill(struct stateful *s)
{
    for (int64_t i = 0; i < s->replicas; i++) {
        struct bh_sim_obj *p = s->pod[i];
        if (!s->budget) {
            s->again = true;
            return false;
        }
        if (!p) {
            s->budget--;
            create(s, s->start + i);
        } else if (!p->deleting && !bh_ctl_pod_active(p)) {
            remove_pod(s, p);
        }
        if (s->ordered && (!p || p->deleting || !bh_ctl_pod_ready(p)))
            return false;
    }
    return true;
}

/* Takes away what is too much, from above. */
static bool shrink(struct stateful *s)
{
    bool none = true;

    for (size_t i = s->n_pod; i > (size_t)s->replicas && s->budget; i--) {
        struct bh_sim_obj *p = s->pod[i - 1];
        if (!p)
            continue;
        none = false;
        if (!p->deleting)
            remove_pod(s, p);
        if (s->ordered)
            return false;
    }
    return none;
}

/* Old pods are replaced from above, one at a time, each waiting for the one before to be ready. */
static void roll(struct stateful *s)
{
    int64_t partition = bh_tree_i64(s->tree, "spec.updateStrategy.rollingUpdate.partition", 0);

    if (!bh_tree_is(s->tree, "spec.updateStrategy.type", "RollingUpdate"))
        return;
    for (int64_t i = s->replicas - 1; i >= BH_MAX(partition - s->start, 0); i--) {
        struct bh_sim_obj *p = s->pod[i];
        if (!p || p->deleting)
            return;
        if (!is_updated(s, p)) {
            remove_pod(s, p);
            return;
        }
        if (!bh_ctl_pod_ready(p))
            return;
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct stateful *s = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status");
    const char *update = bh_arena_printf(a, "%s-%s", s->obj->name, s->hash);
    bool done = s->updated == s->have && s->have == s->replicas;

    bh_json_add(a, st,
                "observedGeneration: %ld, replicas: %ld, readyReplicas?: %ld, "
                "availableReplicas: %ld, updatedReplicas?: %ld, updateRevision: %s",
                bh_tree_i64(o, "metadata.generation", 0), s->have, s->ready, s->ready, s->updated,
                update);
    if (done || !bh_tree_has(st, "currentRevision"))
        bh_json_set_str(a, st, "currentRevision", update);
    bh_json_add(a, st, "currentReplicas?: %ld, collisionCount: 0",
                bh_tree_is(st, "currentRevision", update) ? s->updated : s->have - s->updated);
    return true;
}

void bh_ctl_sync_statefulset(struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    struct stateful s = {
        .c = c, .obj = obj, .tree = bh_sim_obj_tree(&c->arena, obj), .budget = BH_CTL_BATCH};

    if (!bh_tree_obj(s.tree, "spec.template"))
        return;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(c->sim, obj->uid, c->t.pods);
    s.hash = bh_ctl_revision(c, &c->arena, obj, bh_tree_obj(s.tree, "spec.template"));
    s.replicas = bh_tree_i64(s.tree, "spec.replicas", 1);
    s.start = bh_tree_i64(s.tree, "spec.ordinals.start", 0);
    s.ordered = !bh_tree_is(s.tree, "spec.podManagementPolicy", "Parallel");
    int64_t highest = s.replicas - 1;
    for (size_t i = 0; i < pods.n; i++)
        highest = BH_MAX(highest, bh_ctl_ordinal_of(obj, pods.v[i]) - s.start);
    s.n_pod = (size_t)(highest + 1);
    s.pod = bh_calloc(s.n_pod + 1, sizeof(*s.pod));
    for (size_t i = 0; i < pods.n; i++) {
        int64_t o = bh_ctl_ordinal_of(obj, pods.v[i]) - s.start;
        if (o >= 0 && (size_t)o < s.n_pod)
            s.pod[o] = pods.v[i];
    }
    for (size_t i = 0; i < s.n_pod; i++) {
        const struct bh_sim_obj *p = s.pod[i];
        if (!p)
            continue;
        s.have++;
        s.ready += !p->deleting && bh_ctl_pod_ready(p);
        s.updated += !p->deleting && is_updated(&s, p);
    }
    if (fill(&s) && shrink(&s))
        roll(&s);
    if (s.again)
        bh_ctl_again(c, BH_CTL_STATEFULSET, obj, 0);
    free(s.pod);
    bh_ctl_edit(c, obj, BH_SIM_STATUS, write_status, &s);
}
