/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/deployment.c - deployments: one replica set per template, rolled over
 *
 * A sync lists the deployment's replica sets, finds or makes the one with the present template,
 * moves replicas from old to new within maxSurge and maxUnavailable, forgets history beyond the
 * limit, and writes the status. Each step changes what the next sync sees, and every change of a
 * replica set queues its deployment, so that a roll-out runs by itself.
 * Upstream: pkg/controller/deployment (sync.go, rolling.go, recreate.go, util/deployment_util.go)
 * (v1.36).
 */
#include "simulator/controllers/controllers.h"

#include <inttypes.h>
#include <math.h>

#define COMPONENT    "deployment-controller"
#define HASH_LABEL   "pod-template-hash"
#define REVISION     "deployment.kubernetes.io/revision"
#define REVISIONS    "deployment.kubernetes.io/revision-history"
#define DESIRED      "deployment.kubernetes.io/desired-replicas"
#define MAX_REPLICAS "deployment.kubernetes.io/max-replicas"
#define FAILURE      "ReplicaFailure"
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* One replica set as this sync knows it; replicas follow the writes made here. */
struct set {
    struct bh_sim_obj *obj;
    struct bh_json *tree;
    int64_t replicas, have, ready, available, revision;
};
struct dep {
    struct bh_sim_controllers *c;
    struct bh_sim_obj *obj;
    struct bh_json *tree;
    const struct bh_json *template;
    struct bh_sim_objs objs;
    struct set *sets; /* oldest first */
    size_t n;
    struct set *present; /* of the template, NULL = none yet */
    int64_t want, surge, unavailable;
    const char *reason, *message; /* of a condition Progressing that this sync decided, or NULL */
};

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t revision_of(const struct bh_json *tree)
{
    const char *v = bh_tree_annotation(tree, REVISION);

    return v ? strtoll(v, NULL, 10) : 0;
}

static void read_set(struct set *s, struct bh_sim_obj *o, struct bh_arena *a)
{
    s->obj = o;
    s->tree = bh_sim_obj_tree(a, o);
    s->replicas = bh_tree_i64(s->tree, "spec.replicas", 1);
    s->have = bh_tree_i64(s->tree, "status.replicas", 0);
    s->ready = bh_tree_i64(s->tree, "status.readyReplicas", 0);
    s->available = bh_tree_i64(s->tree, "status.availableReplicas", 0);
    s->revision = revision_of(s->tree);
}

static int by_age(const void *pa, const void *pb)
{
    const struct set *a = pa, *b = pb;
    const char *x = bh_tree_str(a->tree, "metadata.creationTimestamp");
    const char *y = bh_tree_str(b->tree, "metadata.creationTimestamp");
    int cmp = strcmp(x ? x : "", y ? y : "");

    cmp = cmp ? cmp : BH_CMP(a->revision, b->revision);
    return cmp ? cmp : strcmp(a->obj->name, b->obj->name);
}

static bool same_template(struct bh_arena *a, const struct bh_json *template,
                          const struct bh_json *of_set)
{
    struct bh_json *x = bh_json_clone(a, template), *y = bh_json_clone(a, of_set);

    bh_json_unset(bh_tree_obj(x, "metadata.labels"), HASH_LABEL);
    bh_json_unset(bh_tree_obj(y, "metadata.labels"), HASH_LABEL);
    return x && y && bh_json_equal(x, y);
}

/* A percentage of nothing could keep a roll-out from moving: one pod may be missing then. */
static void limits(struct dep *d)
{
    const struct bh_json *r = bh_tree_obj(d->tree, "spec.strategy.rollingUpdate");

    d->want = bh_tree_i64(d->tree, "spec.replicas", 1);
    if (!bh_tree_is(d->tree, "spec.strategy.type", "RollingUpdate"))
        return;
    d->surge = bh_tree_scaled(bh_json_get(r, "maxSurge"), d->want, true);
    d->unavailable = bh_tree_scaled(bh_json_get(r, "maxUnavailable"), d->want, false);
    if (!d->surge && !d->unavailable)
        d->unavailable = 1;
    d->unavailable = BH_MIN(d->unavailable, d->want);
}

static void read_all(struct dep *d, struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    *d = (struct dep){.c = c,
                      .obj = obj,
                      .tree = bh_sim_obj_tree(&c->arena, obj),
                      .objs = bh_sim_owned(c->sim, obj->uid, c->t.replicasets)};
    d->template = bh_tree_obj(d->tree, "spec.template");
    limits(d);
    d->sets = bh_arena_new_array(&c->arena, struct set, d->objs.n + 1);
    for (size_t i = 0; i < d->objs.n; i++)
        read_set(&d->sets[d->n++], d->objs.v[i], &c->arena);
    qsort(d->sets, d->n, sizeof(*d->sets), by_age);
    for (size_t i = 0; i < d->n && !d->present; i++) {
        if (!d->sets[i].obj->deleting &&
            same_template(&c->arena, d->template, bh_tree_obj(d->sets[i].tree, "spec.template")))
            d->present = &d->sets[i];
    }
}

struct numbers { /* of all sets together */
    int64_t replicas, total, updated, ready, available;
};

static struct numbers numbers_of(const struct dep *d)
{
    struct numbers n = {.updated = d->present ? d->present->have : 0};

    for (size_t i = 0; i < d->n; i++) {
        n.replicas += d->sets[i].replicas;
        n.total += d->sets[i].have;
        n.ready += d->sets[i].ready;
        n.available += d->sets[i].available;
    }
    return n;
}

/* ---- writing replica sets -------------------------------------------------------------------- */

struct scale {
    const struct dep *d;
    int64_t replicas;
};

static void set_numbers(const struct dep *d, struct bh_arena *a, struct bh_json *set)
{
    bh_json_add(a, set, "metadata: {annotations: {" DESIRED ": %s, " MAX_REPLICAS ": %s}}",
                bh_arena_printf(a, "%" PRId64, d->want),
                bh_arena_printf(a, "%" PRId64, d->want + d->surge));
}

static void set_revision(struct bh_arena *a, struct bh_json *o, int64_t revision)
{
    bh_json_add(a, o, "metadata: {annotations: {" REVISION ": %s}}",
                bh_arena_printf(a, "%" PRId64, revision));
}

static bool write_scale(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct scale *s = arg;

    bh_json_add(a, o, "spec: {replicas: %ld}", s->replicas);
    set_numbers(s->d, a, o);
    return true;
}

static void scale(struct dep *d, struct set *s, int64_t replicas)
{
    struct scale arg = {d, replicas};
    int64_t was = s->replicas;

    if (was == replicas)
        return;
    if (bh_ctl_edit(d->c, s->obj, BH_SIM_MAIN, write_scale, &arg))
        return;
    s->replicas = replicas;
    bh_sim_event(d->c->sim, d->obj, "Normal", "ScalingReplicaSet", COMPONENT,
                 "Scaled %s replica set %s from %" PRId64 " to %" PRId64,
                 replicas > was ? "up" : "down", s->obj->name, was, replicas);
}

static void copy_annotations(const struct dep *d, struct bh_arena *a, struct bh_json *meta)
{
    static const char own[] = LAST_APPLIED " " REVISION " " REVISIONS " " DESIRED " " MAX_REPLICAS
                                           " deprecated.deployment.rollback.to";
    struct bh_json *to = bh_json_obj_at(a, meta, "annotations");

    bh_json_each(m, bh_tree_obj(d->tree, "metadata.annotations"))
        if (bh_word_at(own, m->key.p) < 0) /* these say something about the deployment only */
            bh_json_set(a, to, m->key.p, bh_json_clone(a, m));
}

static struct bh_json *new_set_tree(struct dep *d, const char *hash, int64_t revision)
{
    struct bh_arena *a = &d->c->arena;
    struct bh_json *template = bh_ctl_template_with(a, d->template, HASH_LABEL, hash), *o;
    int64_t room = BH_MAX(d->want + d->surge - numbers_of(d).replicas, 0);

    o = bh_json_make(a,
                     "metadata: {name: %s, labels: %p}, spec: {replicas: %ld, minReadySeconds?: "
                     "%ld, selector: %p, template: %p}",
                     bh_arena_printf(a, "%s-%s", d->obj->name, hash),
                     bh_json_clone(a, bh_tree_obj(template, "metadata.labels")),
                     BH_MIN(room, d->want), bh_tree_i64(d->tree, "spec.minReadySeconds", 0),
                     bh_json_clone(a, bh_tree_obj(d->tree, "spec.selector")), template);
    bh_json_add(a, o, "spec: {selector: {matchLabels: {" HASH_LABEL ": %s}}}", hash);
    copy_annotations(d, a, bh_json_get(o, "metadata"));
    set_revision(a, o, revision);
    set_numbers(d, a, o);
    bh_ctl_own(a, bh_json_get(o, "metadata"), d->obj);
    return o;
}

/* The name's hash may collide with a set of another template: another salt is tried then. */
static void make_present(struct dep *d, int64_t revision)
{
    struct bh_sim_obj *o = NULL;
    struct bh_sim_error e = {0};
    int64_t salt = bh_tree_i64(d->tree, "status.collisionCount", 0);

    for (int tries = 0; tries < 8; tries++, salt++) {
        const char *hash = bh_ctl_hash(&d->c->arena, d->template, salt);
        e = (struct bh_sim_error){0};
        if (!bh_sim_create(d->c->sim, d->c->t.replicasets, d->obj->ns, &d->c->arena,
                           new_set_tree(d, hash, revision), &o, &e))
            break;
        if (!bh_streq(e.reason, "AlreadyExists"))
            break;
    }
    if (o) {
        struct set *s = &d->sets[d->n++];
        read_set(s, o, &d->c->arena);
        d->present = s;
        d->reason = "NewReplicaSetCreated";
        d->message = bh_arena_printf(&d->c->arena, "Created new replica set \"%s\"", o->name);
        if (s->replicas)
            bh_sim_event(d->c->sim, d->obj, "Normal", "ScalingReplicaSet", COMPONENT,
                         "Scaled up replica set %s from 0 to %" PRId64, o->name, s->replicas);
        bh_sim_obj_unref(o);
    } else {
        d->reason = "ReplicaSetCreateError";
        d->message = bh_arena_strdup(&d->c->arena, e.message);
        bh_ctl_again(d->c, BH_CTL_DEPLOYMENT, d->obj, BH_CTL_RETRY_NS);
    }
}

/* ---- revisions ------------------------------------------------------------------------------- */

struct revise {
    const struct dep *d;
    int64_t revision; /* 0 = keep */
};

static bool write_revision(void *arg, struct bh_arena *a, struct bh_json *o)
{
    const struct revise *r = arg;
    int64_t old = revision_of(o), min_ready = bh_tree_i64(r->d->tree, "spec.minReadySeconds", 0);
    const char *history = bh_tree_annotation(o, REVISIONS);

    copy_annotations(r->d, a, bh_json_obj_at(a, o, "metadata"));
    if (min_ready != bh_tree_i64(o, "spec.minReadySeconds", 0))
        bh_json_add(a, o, "spec: {minReadySeconds: %ld}", min_ready);
    if (!r->revision || r->revision == old)
        return true;
    if (old)
        bh_json_add(a, o, "metadata: {annotations: {" REVISIONS ": %s}}",
                    history && *history ? bh_arena_printf(a, "%s,%" PRId64, history, old)
                                        : bh_arena_printf(a, "%" PRId64, old));
    set_revision(a, o, r->revision);
    return true;
}

static bool write_dep_revision(void *arg, struct bh_arena *a, struct bh_json *o)
{
    set_revision(a, o, ((const struct revise *)arg)->revision);
    return true;
}

/* The present set always has the highest revision: an undo moves an old set to the top. */
static void find_present(struct dep *d, bool may_make)
{
    struct revise r = {.d = d};
    int64_t highest_old = 0;

    for (size_t i = 0; i < d->n; i++)
        if (&d->sets[i] != d->present)
            highest_old = BH_MAX(highest_old, d->sets[i].revision);
    if (!d->present && !may_make)
        return;
    if (d->present) {
        r.revision = BH_MAX(d->present->revision, highest_old + 1);
        bh_ctl_edit(d->c, d->present->obj, BH_SIM_MAIN, write_revision, &r);
    } else {
        r.revision = highest_old + 1;
        make_present(d, r.revision);
    }
    if (d->present && revision_of(d->tree) != r.revision)
        bh_ctl_edit(d->c, d->obj, BH_SIM_MAIN, write_dep_revision, &r);
}

/* ---- moving replicas ------------------------------------------------------------------------- */

/* Pods that are not available anyway go first, then as many as availability allows. */
static void shrink_old(struct dep *d)
{
    struct set *p = d->present;
    int64_t floor = d->want - d->unavailable;
    int64_t budget = numbers_of(d).replicas - floor - BH_MAX(p->replicas - p->available, 0), spare;

    for (size_t i = 0; i < d->n && budget > 0; i++) {
        struct set *s = &d->sets[i];
        int64_t sick = BH_MIN(BH_MAX(s->replicas - s->available, 0), budget);
        if (s == p || !sick)
            continue;
        scale(d, s, s->replicas - sick);
        budget -= sick;
    }
    spare = BH_MIN(budget, numbers_of(d).available - floor);
    for (size_t i = 0; i < d->n && spare > 0; i++) {
        struct set *s = &d->sets[i];
        int64_t n = BH_MIN(s->replicas, spare);
        if (s == p || n <= 0)
            continue;
        scale(d, s, s->replicas - n);
        spare -= n;
    }
}

/* ---- another number of replicas -------------------------------------------------------------- */

static int64_t number_in(const struct set *s, const char *annotation)
{
    const char *v = bh_tree_annotation(s->tree, annotation);
    int64_t n = v ? strtoll(v, NULL, 10) : -1;

    return n > INT32_MAX ? -1 : n;
}

/* Some active set was made for another number. */
static bool is_scaling(const struct dep *d)
{
    for (size_t i = 0; i < d->n; i++) {
        int64_t desired = number_in(&d->sets[i], DESIRED);
        if (d->sets[i].replicas > 0 && desired >= 0 && desired != d->want)
            return true;
    }
    return false;
}

/* The set's annotations, too, say the new number. */
static void resize(struct dep *d, struct set *s, int64_t replicas)
{
    struct scale same = {d, replicas};

    if (s->replicas == replicas)
        bh_ctl_edit(d->c, s->obj, BH_SIM_MAIN, write_scale, &same);
    else
        scale(d, s, replicas);
}

/* What the set's part of all replicas changes by, were the part to stay the same. */
static int64_t share(const struct dep *d, const struct set *s, int64_t left)
{
    int64_t before = number_in(s, MAX_REPLICAS), change;

    if (before <= 0)
        before = bh_tree_i64(d->tree, "status.replicas", 0);
    if (!d->want)
        change = -s->replicas;
    else if (before <= 0)
        change = 0;
    else
        change =
            llround((double)(s->replicas * (d->want + d->surge)) / (double)before) - s->replicas;
    return left > 0 ? BH_MIN(change, left) : BH_MAX(change, left);
}

static int by_size(const void *pa, const void *pb, void *newer_first)
{
    const struct set *a = *(struct set *const *)pa, *b = *(struct set *const *)pb;
    int cmp = BH_CMP(b->replicas, a->replicas);

    return cmp ? cmp : *(bool *)newer_first ? BH_CMP(b, a) : BH_CMP(a, b); /* oldest stand first */
}

/* All active sets grow or shrink in proportion; what is left over goes to the largest. */
static void spread(struct dep *d, struct set **active, size_t n)
{
    int64_t left = d->want ? d->want + d->surge : 0, *size;
    bool grows;

    size = bh_arena_array(&d->c->arena, n, sizeof(*size));
    for (size_t i = 0; i < n; i++)
        left -= active[i]->replicas;
    grows = left > 0;
    qsort_r(active, n, sizeof(struct set *), by_size, &grows);
    for (size_t i = 0; i < n; i++) {
        int64_t change = left ? share(d, active[i], left) : 0;
        size[i] = active[i]->replicas + change;
        left -= change;
    }
    size[0] = BH_MAX(size[0] + left, 0);
    for (size_t i = 0; i < n; i++)
        resize(d, active[i], size[i]);
}

static bool is_saturated(const struct dep *d)
{
    const struct set *p = d->present;

    return p && p->replicas == d->want && p->available == d->want &&
           number_in(p, DESIRED) == d->want;
}

/* Paused or not: the number of replicas is followed, the template is not rolled out. */
static void follow_replicas(struct dep *d)
{
    struct set **active = bh_arena_array(&d->c->arena, d->n + 1, sizeof(struct set *));
    size_t n = 0;

    for (size_t i = 0; i < d->n; i++)
        if (d->sets[i].replicas > 0)
            active[n++] = &d->sets[i];
    if (n == 0 && d->n)
        active[n++] = d->present ? d->present : &d->sets[d->n - 1];
    if (n == 1) {
        resize(d, active[0], d->want);
    } else if (is_saturated(d)) {
        for (size_t i = 0; i < n; i++)
            if (active[i] != d->present)
                resize(d, active[i], 0);
    } else if (n && bh_tree_is(d->tree, "spec.strategy.type", "RollingUpdate")) {
        spread(d, active, n);
    }
}

static void recreate(struct dep *d)
{
    bool old_pods = false;

    for (size_t i = 0; i < d->n; i++) {
        struct set *s = &d->sets[i];
        if (s == d->present)
            continue;
        scale(d, s, 0);
        BH_CLEANUP(bh_sim_objs_fini)
        struct bh_sim_objs pods = bh_sim_owned(d->c->sim, s->obj->uid, d->c->t.pods);
        old_pods = old_pods || pods.n > 0;
    }
    if (old_pods) {
        d->reason = d->present ? NULL : "ReplicaSetUpdated";
        d->message = d->present ? NULL
                                : bh_arena_printf(&d->c->arena, "Deployment \"%s\" is progressing.",
                                                  d->obj->name);
        return;
    }
    find_present(d, true);
    if (d->present)
        scale(d, d->present, d->want);
}

static void forget_history(struct dep *d)
{
    int64_t limit = bh_tree_i64(d->tree, "spec.revisionHistoryLimit", 10), old = 0;

    for (size_t i = 0; i < d->n; i++)
        old += &d->sets[i] != d->present;
    for (; old > limit; old--) {
        struct set *lowest = NULL;
        for (size_t i = 0; i < d->n; i++) {
            struct set *s = &d->sets[i];
            if (s != d->present && s->obj && !s->obj->deleting && !s->replicas && !s->have &&
                (!lowest || s->revision < lowest->revision))
                lowest = s;
        }
        if (!lowest)
            return;
        bh_ctl_delete(d->c, lowest->obj);
        lowest->obj = NULL;
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

static void condition(struct dep *d, struct bh_arena *a, struct bh_json *o, const char *type,
                      const char *status, const char *reason, const char *message)
{
    const char *now = bh_ctl_now(d->c, a);

    if (bh_tree_set_condition(a, o, type, status, reason, message, now) ||
        !bh_tree_has(bh_tree_condition(o, type), "lastUpdateTime"))
        bh_json_set_str(a, bh_tree_condition(o, type), "lastUpdateTime", now);
}

static bool complete(const struct dep *d)
{
    struct numbers n = numbers_of(d);

    return d->present && n.updated == d->want && n.total == d->want && n.available == d->want;
}

/* More new pods, more of them useful, or fewer old ones than the stored status says. */
static bool moved(const struct bh_json *o, const struct numbers *n)
{
    int64_t updated = bh_tree_i64(o, "status.updatedReplicas", 0);

    return n->updated > updated || n->ready > bh_tree_i64(o, "status.readyReplicas", 0) ||
           n->available > bh_tree_i64(o, "status.availableReplicas", 0) ||
           n->total - n->updated < bh_tree_i64(o, "status.replicas", 0) - updated;
}

/* Looks at the clock, and again when the deadline will have passed. */
static bool timed_out(struct dep *d, const struct bh_json *cond)
{
    int64_t deadline = bh_tree_i64(d->tree, "spec.progressDeadlineSeconds", 600), left;

    if (!cond || deadline >= INT32_MAX || bh_tree_is(cond, "reason", "NewReplicaSetAvailable"))
        return false;
    left = bh_ctl_time_after(bh_tree_str(cond, "lastUpdateTime"), deadline * 1000000000) -
           bh_sim_now_ns(d->c->sim);
    if (left <= 0)
        return true;
    bh_ctl_again(d->c, BH_CTL_DEPLOYMENT, d->obj, left + bh_ctl_delay(d->c, BH_CTL_DELAY_NS));
    return false;
}

static void set_progress(struct dep *d, struct bh_arena *a, struct bh_json *o, const char *status,
                         const char *reason, const char *verb)
{
    const char *name = d->present ? d->present->obj->name : d->obj->name;

    condition(d, a, o, "Progressing", status, reason,
              bh_arena_printf(a, "ReplicaSet \"%s\" %s", name, verb));
}

static void progressing(struct dep *d, struct bh_arena *a, struct bh_json *o,
                        const struct numbers *n, bool did_move)
{
    const struct bh_json *old = bh_tree_condition(o, "Progressing");
    bool was_complete = old && bh_tree_is(old, "reason", "NewReplicaSetAvailable");

    if (bh_tree_bool(d->tree, "spec.paused", false)) {
        condition(d, a, o, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused");
    } else if (d->reason) {
        condition(d, a, o, "Progressing",
                  bh_streq(d->reason, "ReplicaSetCreateError") ? "False" : "True", d->reason,
                  d->message ? d->message : "");
    } else if (complete(d)) {
        set_progress(d, a, o, "True", "NewReplicaSetAvailable", "has successfully progressed.");
    } else if (was_complete && n->total == n->updated) {
        return; /* it was rolled out; pods that die later do not undo that */
    } else if (did_move || !old) {
        set_progress(d, a, o, "True", "ReplicaSetUpdated", "is progressing.");
        bh_json_set_str(a, bh_tree_condition(o, "Progressing"), "lastUpdateTime",
                        bh_ctl_now(d->c, a));
    } else if (timed_out(d, old)) {
        set_progress(d, a, o, "False", "ProgressDeadlineExceeded", "has timed out progressing.");
    }
    timed_out(d, bh_tree_condition(o, "Progressing"));
}

/* What a set's last creation was refused with: the present one's first, else the oldest's. */
static void replica_failure(struct dep *d, struct bh_arena *a, struct bh_json *o)
{
    const struct bh_json *f = d->present ? bh_tree_condition(d->present->tree, FAILURE) : NULL;
    struct bh_json *old = bh_tree_condition(o, FAILURE);

    for (size_t i = 0; i < d->n && !f; i++)
        f = bh_tree_condition(d->sets[i].tree, FAILURE);
    if (f)
        condition(d, a, o, FAILURE, bh_tree_str(f, "status"), bh_tree_str(f, "reason"),
                  bh_tree_str(f, "message"));
    else if (old)
        bh_json_remove(bh_tree_arr(o, "status.conditions"), old);
}

static bool write_status(void *arg, struct bh_arena *a, struct bh_json *o)
{
    struct dep *d = arg;
    struct numbers n = numbers_of(d);
    bool did_move = moved(o, &n), available = n.available >= d->want - d->unavailable;

    bh_json_add(a, o,
                "status: {observedGeneration: %ld, replicas?: %ld, updatedReplicas?: %ld, "
                "readyReplicas?: %ld, availableReplicas?: %ld, unavailableReplicas?: %ld}",
                bh_tree_i64(o, "metadata.generation", 0), n.total, n.updated, n.ready, n.available,
                BH_MAX(n.replicas - n.available, 0));
    condition(d, a, o, "Available", available ? "True" : "False",
              available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
              available ? "Deployment has minimum availability."
                        : "Deployment does not have minimum availability.");
    progressing(d, a, o, &n, did_move);
    replica_failure(d, a, o);
    return true;
}

static void roll(struct dep *d)
{
    struct set *p = d->present;

    if (!p)
        return;
    int64_t room = d->want + d->surge - numbers_of(d).replicas;
    if (p->replicas > d->want)
        scale(d, p, d->want);
    else if (p->replicas < d->want && room > 0)
        scale(d, p, p->replicas + BH_MIN(room, d->want - p->replicas));
    shrink_old(d);
}

void bh_ctl_sync_deployment(struct bh_sim_controllers *c, struct bh_sim_obj *obj)
{
    struct dep d;

    read_all(&d, c, obj);
    if (!obj->deleting && d.template) {
        bool recreates = bh_tree_is(d.tree, "spec.strategy.type", "Recreate");
        if (bh_tree_bool(d.tree, "spec.paused", false) || (!recreates && is_scaling(&d))) {
            find_present(&d, false);
            follow_replicas(&d);
        } else if (recreates) {
            recreate(&d);
        } else {
            find_present(&d, true);
            roll(&d);
        }
    }
    bh_ctl_edit(c, obj, BH_SIM_STATUS, write_status, &d);
    if (!obj->deleting && complete(&d))
        forget_history(&d);
    bh_sim_objs_fini(&d.objs);
}
