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

#define COMPONENT "statefulset-controller"

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

/* Ordinal of "<set>-<n>", or -1. */
static int64_t ordinal_of(const struct bh_sim_obj *set, const struct bh_sim_obj *pod)
{
    size_t n = strlen(set->name);
    char *end;
    long long v;

    if (strncmp(pod->name, set->name, n) != 0 || pod->name[n] != '-' || !pod->name[n + 1])
        return -1;
    v = strtoll(pod->name + n + 1, &end, 10);
    return *end || v < 0 || v > INT32_MAX ? -1 : v;
}

static void place(struct stateful *s, const struct bh_sim_objs *pods)
{
    int64_t highest = s->replicas - 1;

    for (size_t i = 0; i < pods->n; i++)
        highest = BH_MAX(highest, ordinal_of(s->obj, pods->v[i]) - s->start);
    s->n_pod = (size_t)(highest + 1);
    s->pod = bh_calloc(s->n_pod + 1, sizeof(*s->pod));
    for (size_t i = 0; i < pods->n; i++) {
        int64_t o = ordinal_of(s->obj, pods->v[i]) - s->start;
        if (o >= 0 && (size_t)o < s->n_pod)
            s->pod[o] = pods->v[i];
    }
}

/* ---- making a pod ---------------------------------------------------------------------------- */

static void claim(struct stateful *s, const struct bh_json *template, const char *name)
{
    struct bh_arena *a = &s->c->arena;
    struct bh_json *o, *meta;

    if (bh_sim_get(s->c->sim, s->c->t.claims, s->obj->ns, name))
        return;
    o = bh_json_clone(a, template);
    bh_json_unset(o, "status");
    meta = bh_json_obj_at(a, o, "metadata");
    bh_json_unset(meta, "creationTimestamp");
    bh_json_set_str(a, meta, "name", name);
    bh_json_each(m, bh_tree_obj(s->tree, "spec.selector.matchLabels"))
        bh_json_set(a, bh_json_obj_at(a, meta, "labels"), m->key.p, bh_json_clone(a, m));
    bh_sim_create(s->c->sim, s->c->t.claims, s->obj->ns, a, o, NULL, NULL);
}

/* Each claim template gives the pod a claim of its own and the volume of that name. */
static void volumes(struct stateful *s, struct bh_arena *a, struct bh_json *spec, const char *pod)
{
    struct bh_json *list = bh_tree_arr(spec, "volumes"), *v;

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
        v = bh_tree_push_obj(a, list);
        bh_json_set_str(a, v, "name", name);
        bh_json_set_str(a, bh_json_obj_at(a, v, "persistentVolumeClaim"), "claimName", claim_name);
    }
}

static void create(struct stateful *s, int64_t ordinal)
{
    struct bh_arena *a = &s->c->pod_arena;
    struct bh_json *pod = bh_ctl_pod_of(a, s->obj, bh_tree_obj(s->tree, "spec.template"));
    struct bh_json *meta = bh_json_get(pod, "metadata"), *labels, *spec;
    const char *service = bh_tree_str(s->tree, "spec.serviceName");
    char *name = bh_arena_printf(a, "%s-%" PRId64, s->obj->name, ordinal);
    struct bh_sim_error e;

    bh_json_set_str(a, meta, "name", name);
    labels = bh_json_obj_at(a, meta, "labels");
    bh_json_set_str(a, labels, "statefulset.kubernetes.io/pod-name", name);
    bh_json_set_str(a, labels, "apps.kubernetes.io/pod-index",
                    bh_arena_printf(a, "%" PRId64, ordinal));
    bh_json_set_str(a, labels, "controller-revision-hash",
                    bh_arena_printf(a, "%s-%s", s->obj->name, s->hash));
    spec = bh_json_obj_at(a, pod, "spec");
    bh_json_set_str(a, spec, "hostname", name);
    if (service && *service)
        bh_json_set_str(a, spec, "subdomain", service);
    volumes(s, a, spec, name);
    if (bh_ctl_pod_create(s->c, s->obj, COMPONENT, pod, &e))
        bh_ctl_enqueue_after(s->c, BH_CTL_STATEFULSET, s->obj->ns, s->obj->name, BH_CTL_RETRY_NS);
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_updated(const struct stateful *s, const struct bh_sim_obj *pod)
{
    const char *h = bh_sim_obj_label(pod, "controller-revision-hash");
    size_t n = strlen(s->obj->name);

    return h && strncmp(h, s->obj->name, n) == 0 && h[n] == '-' && bh_streq(h + n + 1, s->hash);
}

static void count(struct stateful *s)
{
    for (size_t i = 0; i < s->n_pod; i++) {
        const struct bh_sim_obj *p = s->pod[i];
        if (!p)
            continue;
        s->have++;
        s->ready += !p->deleting && bh_ctl_pod_ready(p);
        s->updated += !p->deleting && is_updated(s, p);
    }
}

static void remove_pod(struct stateful *s, struct bh_sim_obj *pod)
{
    s->budget--;
    bh_ctl_pod_delete(s->c, s->obj, COMPONENT, pod);
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
    struct stateful *s = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status");
    const char *update = bh_arena_printf(a, "%s-%s", s->obj->name, s->hash);
    bool done = s->updated == s->have && s->have == s->replicas;
    bool first = !bh_tree_has(st, "currentRevision");

    bh_json_set_i64(a, st, "observedGeneration", bh_tree_i64(o, "metadata.generation", 0));
    bh_json_set_i64(a, st, "replicas", s->have);
    bh_ctl_count_set(a, st, "readyReplicas", s->ready);
    bh_json_set_i64(a, st, "availableReplicas", s->ready);
    bh_ctl_count_set(a, st, "updatedReplicas", s->updated);
    bh_json_set_str(a, st, "updateRevision", update);
    if (done || first)
        bh_json_set_str(a, st, "currentRevision", update);
    bh_ctl_count_set(a, st, "currentReplicas",
                     bh_tree_is(st, "currentRevision", update) ? s->updated : s->have - s->updated);
    bh_json_set_i64(a, st, "collisionCount", 0);
    return true;
}

static void move(struct stateful *s)
{
    struct bh_sim_objs pods;

    s->hash = bh_ctl_revision(s->c, &s->c->arena, s->obj, bh_tree_obj(s->tree, "spec.template"));
    s->replicas = bh_tree_i64(s->tree, "spec.replicas", 1);
    s->start = bh_tree_i64(s->tree, "spec.ordinals.start", 0);
    s->ordered = !bh_tree_is(s->tree, "spec.podManagementPolicy", "Parallel");
    bh_sim_owned_by(s->c->sim, s->obj->uid, s->c->t.pods, &pods);
    place(s, &pods);
    count(s);
    if (fill(s) && shrink(s))
        roll(s);
    if (s->again)
        bh_ctl_enqueue(s->c, BH_CTL_STATEFULSET, s->obj->ns, s->obj->name);
    free(s->pod);
    s->pod = NULL;
    bh_sim_objs_fini(&pods);
}

void bh_ctl_sync_statefulset(struct bh_sim_controllers *c, const char *ns, const char *name)
{
    struct stateful s = {
        .c = c, .obj = bh_sim_get(c->sim, c->t.statefulsets, ns, name), .budget = BH_CTL_BATCH};

    if (!s.obj || s.obj->deleting)
        return;
    s.obj = bh_sim_obj_ref(s.obj);
    s.tree = bh_sim_obj_tree(&c->arena, s.obj);
    if (bh_tree_obj(s.tree, "spec.template")) {
        move(&s);
        bh_sim_edit(c->sim, c->t.statefulsets, ns, name, s.obj->uid, BH_SIM_STATUS, write_status,
                    &s, NULL, NULL);
    }
    bh_sim_obj_unref(s.obj);
}
