/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/statefulset.c - stateful sets: numbered pods, one after the other
 *
 * Upstream: pkg/controller/statefulset/stateful_set_control.go, stateful_set_utils.go (v1.36);
 * differences: maxUnavailable is not looked at.
 */
#include "simulator/controllers/controllers.h"

#include <inttypes.h>

struct stateful {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *obj;
    const struct bh_json *tree;
    const char *update, *current; /* names of revisions; the same when nothing is rolled out */
    const struct bh_json *old;    /* template of current, NULL: there is none to be had */
    int64_t replicas, start, partition;
    int64_t reach;              /* how many of them this sync can come to */
    struct bh_sim_obj **pod;    /* of those, by ordinal - start, NULL = missing */
    struct bh_sim_obj **excess; /* those that are not wanted, the highest first */
    size_t n_excess;
    bool ordered, again;
    int64_t have, ready, available, updated, current_pods;
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
    struct bh_json *list;

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
    bool old = s->old && bh_tree_is(s->tree, "spec.updateStrategy.type", "RollingUpdate") &&
               ordinal < s->start + s->partition;
    struct bh_json *pod =
        bh_ctl_pod_of(a, s->obj, old ? s->old : bh_tree_obj(s->tree, "spec.template"), NULL);
    const char *name = bh_arena_printf(a, "%s-%" PRId64, s->obj->name, ordinal);
    const char *service = bh_tree_str(s->tree, "spec.serviceName");

    bh_json_add(a, pod,
                "metadata: {name: %s, labels: {statefulset.kubernetes.io/pod-name: %s, "
                "apps.kubernetes.io/pod-index: %s, controller-revision-hash: %s}}, "
                "spec: {hostname: %s}",
                name, name, bh_arena_printf(a, "%" PRId64, ordinal), old ? s->current : s->update,
                name);
    if (service && *service)
        bh_json_add(a, pod, "spec: {subdomain: %s}", service);
    volumes(s, a, bh_json_get(pod, "spec"), name);
    (void)bh_ctl_pod_create(s->c, BH_CTL_STATEFULSET, s->obj, pod);
}

/* ---- whose end ends a claim ------------------------------------------------------------------ */

static bool policy_deletes(const struct stateful *s, const char *when)
{
    return bh_tree_is(bh_tree_obj(s->tree, "spec.persistentVolumeClaimRetentionPolicy"), when,
                      "Delete");
}

struct retention {
    const struct bh_sim_obj *set, *pod, *owner; /* owner: one of the two, or NULL */
};

static bool is_of(const struct bh_json *ref, const struct bh_sim_obj *o)
{
    return bh_tree_is(ref, "kind", o->type->kind) && bh_tree_is(ref, "name", o->name);
}

/* An edit of a claim: of our references only the one to the owner. A claim that somebody else controls
 * gets none. */
static bool write_owner(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct retention *r = arg;
    struct bh_json *meta = bh_json_get(o, "metadata"), *refs, *kept;
    bool foreign = false;

    refs = bh_tree_arr(meta, "ownerReferences");
    kept = bh_json_new(a, BH_JSON_ARRAY);
    bh_json_each(ref, refs) {
        if (is_of(ref, r->set) || is_of(ref, r->pod))
            continue;
        foreign = foreign || bh_tree_bool(ref, "controller", false);
        bh_json_push(kept, bh_json_clone(a, ref));
    }
    bh_json_unset(meta, "ownerReferences");
    if (bh_tree_len(kept))
        bh_json_set(a, meta, "ownerReferences", kept);
    if (!foreign && r->owner)
        bh_ctl_own(a, meta, r->owner);
    return true;
}

/* The claim that the template t gives the pod of this name; NULL: it is not there. */
static const struct bh_sim_obj *claim_of(const struct stateful *s, const struct bh_json *t,
                                         const char *pod)
{
    const char *name = bh_tree_str(t, "metadata.name");

    return name ? bh_sim_get(s->c->sim, s->c->t.claims, s->obj->ns,
                             bh_arena_printf(&s->c->arena, "%s-%s", name, pod))
                : NULL;
}

static void own_claims(struct stateful *s, const struct bh_sim_obj *pod, bool wanted)
{
    struct retention r = {s->obj, pod, NULL};

    if (!wanted && policy_deletes(s, "whenScaled"))
        r.owner = pod;
    else if (policy_deletes(s, "whenDeleted"))
        r.owner = s->obj;
    bh_json_each(t, bh_tree_arr(s->tree, "spec.volumeClaimTemplates")) {
        const struct bh_sim_obj *claim = claim_of(s, t, pod->name);
        bool right =
            claim && (r.owner ? bh_streq(claim->owner_uid, r.owner->uid) : claim->n_owners == 0);
        if (claim && !claim->deleting && !right)
            bh_ctl_edit(s->c, claim, BH_SIM_MAIN, write_owner, &r);
    }
}

/* A claim that goes with the pod before is not given to the next one. */
static bool claims_are_stale(struct stateful *s, int64_t ordinal)
{
    const char *name = bh_arena_printf(&s->c->arena, "%s-%" PRId64, s->obj->name, ordinal);

    if (!policy_deletes(s, "whenScaled"))
        return false;
    bh_json_each(t, bh_tree_arr(s->tree, "spec.volumeClaimTemplates")) {
        const struct bh_sim_obj *claim = claim_of(s, t, name);
        if (claim && (claim->deleting || bh_streq(claim->owner_kind, "Pod"))) {
            bh_ctl_again(s->c, BH_CTL_STATEFULSET, s->obj, BH_CTL_RETRY_NS);
            return true;
        }
    }
    return false;
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_at(const struct bh_sim_obj *pod, const char *revision)
{
    const char *h = bh_sim_obj_label(pod, "controller-revision-hash");

    return h && bh_streq(h, revision);
}

/* Ready for minReadySeconds; looks again when it will have been. */
static bool is_available(struct stateful *s, const struct bh_sim_obj *pod)
{
    int64_t seconds = bh_tree_i64(s->tree, "spec.minReadySeconds", 0), left;
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    if (pod->deleting || !bh_ctl_pod_ready(pod))
        return false;
    if (seconds <= 0 || seconds > INT32_MAX)
        return true;
    const struct bh_json *c = bh_tree_condition(bh_sim_obj_tree(&a, pod), "Ready");
    left = bh_ctl_time_after(bh_tree_str(c, "lastTransitionTime"), seconds * 1000000000) -
           bh_sim_now_ns(s->c->sim);
    if (left > 0)
        bh_ctl_again(s->c, BH_CTL_STATEFULSET, s->obj, left + bh_ctl_delay(s->c, BH_CTL_DELAY_NS));
    return left <= 0;
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
        if (!s->budget || i == s->reach) {
            s->again = true;
            return false;
        }
        struct bh_sim_obj *p = s->pod[i];
        if (!p) {
            if (claims_are_stale(s, s->start + i))
                return false;
            s->budget--;
            create(s, s->start + i);
        } else if (!p->deleting && !bh_ctl_pod_active(p)) {
            remove_pod(s, p);
        }
        if (s->ordered && (!p || !is_available(s, p)))
            return false;
    }
    return true;
}

/* Takes away what is too much, from above. */
static bool shrink(struct stateful *s)
{
    for (size_t i = 0; i < s->n_excess && s->budget; i++) {
        if (!s->excess[i]->deleting)
            remove_pod(s, s->excess[i]);
        if (s->ordered)
            return false;
    }
    return !s->n_excess;
}

/* Old pods are replaced from above, one at a time, each waiting for the one before to be ready. */
static void roll(struct stateful *s)
{
    if (!bh_tree_is(s->tree, "spec.updateStrategy.type", "RollingUpdate"))
        return;
    for (int64_t i = s->replicas - 1; i >= s->partition; i--) {
        struct bh_sim_obj *p = s->pod[i];
        if (!p || p->deleting)
            return;
        if (!is_at(p, s->update)) {
            remove_pod(s, p);
            return;
        }
        if (!is_available(s, p))
            return;
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    struct stateful *s = arg;
    struct bh_json *st = bh_json_obj_at(a, o, "status");
    bool done = bh_tree_is(s->tree, "spec.updateStrategy.type", "RollingUpdate") &&
                s->updated == s->replicas && s->ready == s->replicas && s->have == s->replicas;

    bh_json_add(a, st,
                "observedGeneration: %ld, replicas: %ld, readyReplicas?: %ld, "
                "availableReplicas: %ld, updatedReplicas?: %ld, currentReplicas?: %ld, "
                "updateRevision: %s, currentRevision: %s, collisionCount: 0",
                bh_tree_i64(o, "metadata.generation", 0), s->have, s->ready, s->available,
                s->updated, done ? s->updated : s->current_pods, s->update,
                done ? s->update : s->current);
    return true;
}

/* ---- sync ------------------------------------------------------------------------------------ */

/* The revision that pods below the partition keep, and its template. */
static void read_current(struct stateful *s)
{
    struct bh_arena *a = &s->c->arena;
    const char *name = bh_tree_str(s->tree, "status.currentRevision");
    const struct bh_sim_obj *o =
        name && *name ? bh_sim_get(s->c->sim, s->c->t.revisions, s->obj->ns, name) : NULL;
    struct bh_json *template = o ? bh_tree_obj(bh_sim_obj_tree(a, o), "data.spec.template") : NULL;

    s->current = template ? name : s->update;
    if (!template || bh_streq(name, s->update))
        return;
    bh_json_unset(template, "$patch");
    s->old = template;
}

static int from_above(const void *pa, const void *pb, void *set)
{
    const struct bh_sim_obj *a = *(struct bh_sim_obj *const *)pa;
    const struct bh_sim_obj *b = *(struct bh_sim_obj *const *)pb;

    return BH_CMP(bh_ctl_ordinal_of(set, b), bh_ctl_ordinal_of(set, a));
}

static void read_pods(struct stateful *s, const struct bh_sim_objs *pods)
{
    struct bh_arena *a = &s->c->arena;

    /* Those that are there, and as many more as the budget lets be made: replicas can be any number. */
    s->reach = BH_MIN(s->replicas, (int64_t)(pods->n + s->budget));
    s->pod = bh_calloc((size_t)s->reach + 1, sizeof(struct bh_sim_obj *));
    s->excess = bh_arena_array(a, pods->n + 1, sizeof(struct bh_sim_obj *));
    for (size_t i = 0; i < pods->n; i++) {
        struct bh_sim_obj *p = pods->v[i];
        int64_t n = bh_ctl_ordinal_of(s->obj, p);
        if (n < 0)
            continue;
        bool wanted = n >= s->start && n - s->start < s->replicas;
        if (wanted && n - s->start < s->reach)
            s->pod[n - s->start] = p;
        else if (!wanted)
            s->excess[s->n_excess++] = p;
        own_claims(s, p, wanted);
        s->have++;
        s->ready += !p->deleting && bh_ctl_pod_ready(p);
        s->available += is_available(s, p);
        s->updated += !p->deleting && is_at(p, s->update);
        s->current_pods += !p->deleting && is_at(p, s->current);
    }
    qsort_r(s->excess, s->n_excess, sizeof(struct bh_sim_obj *), from_above, s->obj);
}

void bh_ctl_sync_statefulset(struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    struct stateful s = {
        .c = c, .obj = obj, .tree = bh_sim_obj_tree(&c->arena, obj), .budget = BH_CTL_BATCH};

    if (!bh_tree_obj(s.tree, "spec.template"))
        return;
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs pods = bh_sim_owned(c->sim, obj->uid, c->t.pods);
    s.update =
        bh_arena_printf(&c->arena, "%s-%s", obj->name,
                        bh_ctl_revision(c, &c->arena, obj, bh_tree_obj(s.tree, "spec.template")));
    read_current(&s);
    s.replicas = bh_tree_i64(s.tree, "spec.replicas", 1);
    s.start = bh_tree_i64(s.tree, "spec.ordinals.start", 0);
    s.partition = bh_tree_i64(s.tree, "spec.updateStrategy.rollingUpdate.partition", 0);
    s.ordered = !bh_tree_is(s.tree, "spec.podManagementPolicy", "Parallel");
    read_pods(&s, &pods);
    if (fill(&s) && shrink(&s))
        roll(&s);
    free(s.pod);
    if (s.again)
        bh_ctl_again(c, BH_CTL_STATEFULSET, obj, 0);
    bh_ctl_edit(c, obj, BH_SIM_STATUS, write_status, &s);
}
