/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/workloads.c - pods of workloads, made by the simulator's controllers
 *
 * Each workload goes into the bare API server and the controllers run until nothing changes. What
 * they made is taken over, less what the files hold already: an exported deployment usually comes
 * with its replica sets and pods.
 *
 * Differences from a cluster: a stateful set's pods are all made at once; nothing is ever deleted.
 */
#include <errno.h>

#include "simulator/trial/admit.h"
#include "simulator/server/tree.h"

#define PODS_MAX   100000 /* bounds a typed number; the controllers take half a minute */
#define AT_REST_NS INT64_C(1000000000)
#define EVENT_MAX  300

struct workload {
    size_t at;              /* of items */
    const char *uid;        /* of the item, in kept */
    struct bh_sim_obj *obj; /* in the store */
    int64_t have;           /* active pods that the files hold */
    bool split;             /* into other workloads of the files */
};
struct work {
    struct bh_admission *ad;
    struct workload *v;
    size_t n;
    struct bh_map by_uid;  /* of the item -> struct workload * */
    struct bh_map on_node; /* "uid/node": a daemon set's pod that the files hold */
    struct bh_arena kept;
};

/* Its controller, where that is among the workloads. */
static struct workload *owner_of(const struct work *w, const struct bh_json *obj)
{
    bh_json_each(r, bh_tree_arr(obj, "metadata.ownerReferences")) {
        const char *uid = bh_tree_str(r, "uid");
        if (bh_tree_bool(r, "controller", false))
            return uid ? bh_map_get(&w->by_uid, uid, strlen(uid)) : NULL;
    }
    return NULL;
}

/* ---- what there is --------------------------------------------------------------------------- */

/* The node a daemon set's pod is for. */
static const char *node_of(const struct bh_json *pod)
{
    const char *node = bh_tree_str(pod, "spec.nodeName");

    return node && *node ? node : bh_tree_pinned_to(pod);
}

static void find_workloads(struct work *w)
{
    static const char kinds[] =
        "Deployment ReplicaSet ReplicationController DaemonSet StatefulSet Job";
    const struct bh_trial *t = w->ad->t;

    w->v = bh_calloc(t->n_items + 1, sizeof *w->v);
    for (size_t i = 0; i < t->n_items; i++) {
        const struct bh_trial_item *it = &t->items[i];
        if (it->replaced || bh_word_at(kinds, it->kind_name) < 0 ||
            !bh_sim_type_of_kind(it->api_version, it->kind_name))
            continue;
        struct workload *v = &w->v[w->n++];
        const char *uid = bh_tree_str(bh_admit_parse(&w->ad->a, it), "metadata.uid");
        *v = (struct workload){.at = i, .uid = bh_arena_strdup(&w->kept, uid ? uid : "")};
        bh_map_put(&w->by_uid, v->uid, strlen(v->uid), v);
        bh_arena_reset(&w->ad->a);
    }
}

/* ---- into the store -------------------------------------------------------------------------- */

static int64_t wanted(const struct bh_json *obj)
{
    int64_t parallel = bh_tree_i64(obj, "spec.parallelism", 1);

    if (bh_tree_is(obj, "kind", "DaemonSet"))
        return 0;
    if (!bh_tree_is(obj, "kind", "Job"))
        return bh_tree_i64(obj, "spec.replicas", 1);
    return BH_MIN(parallel, bh_tree_i64(obj, "spec.completions", parallel));
}

static void prepare(struct bh_arena *a, struct bh_json *obj)
{
    struct bh_json *spec = bh_json_obj_at(a, obj, "spec");

    bh_json_unset(bh_tree_obj(obj, "metadata"), "ownerReferences"); /* the owner is not there */
    if (bh_tree_is(obj, "kind", "StatefulSet"))
        bh_json_set_str(a, spec, "podManagementPolicy", "Parallel");
    if (bh_tree_is(obj, "kind", "Job")) {
        /* The server makes these of a job's uid and refuses them in a create. */
        int64_t done = bh_tree_i64(obj, "status.succeeded", 0);
        if (!bh_tree_bool(spec, "manualSelector", false))
            bh_json_unset(spec, "selector");
        bh_json_drop(bh_tree_obj(spec, "template.metadata.labels"),
                     "controller-uid batch.kubernetes.io/controller-uid job-name "
                     "batch.kubernetes.io/job-name");
        if (done && bh_tree_has(spec, "completions"))
            bh_json_set_i64(a, spec, "completions",
                            BH_MAX(bh_tree_i64(spec, "completions", 0) - done, 0));
    }
}

static int store_one(struct work *w, struct workload *v, int64_t *total, struct bh_err *err)
{
    struct bh_admission *ad = w->ad;
    const struct bh_trial_item *it = &ad->t->items[v->at];
    const struct bh_sim_type *type = bh_sim_type_of_kind(it->api_version, it->kind_name);
    struct bh_json *obj = bh_admit_parse(&ad->a, it);
    int64_t n = wanted(obj);

    if (v->split || bh_tree_condition_true(obj, "Complete") ||
        bh_tree_condition_true(obj, "Failed"))
        return 0;
    if (n > PODS_MAX || (*total += n) > PODS_MAX)
        return bh_err_set(err, -E2BIG, "more than %d pods are asked for", PODS_MAX);
    prepare(&ad->a, obj);
    return bh_admit_store(ad, type, it->ns, obj, &v->obj, err);
}

/* What daemon sets look at of the nodes that were not manifests. */
static int store_nodes(struct bh_admission *ad, struct bh_err *err)
{
    struct bh_trial *t = ad->t;
    const struct bh_sim_type *type = bh_sim_type_find("", "v1", "nodes");
    int rc = 0;

    for (size_t i = 0; i < t->n_items && rc >= 0; i++) {
        if (t->items[i].replaced || !bh_streq(t->items[i].kind_name, "Node") ||
            bh_sim_get(ad->sim, type, "", t->items[i].name))
            continue;
        struct bh_json *node = bh_admit_parse(&ad->a, &t->items[i]);
        bh_admit_vouch_for(&ad->a, node);
        rc = bh_admit_store(ad, type, "", node, NULL, err);
        if (rc < 0)
            bh_trial_blame(err, rc, &t->items[i]);
        bh_arena_reset(&ad->a);
    }
    return rc;
}

static int store_all(struct work *w, int64_t *ret_total, struct bh_err *err)
{
    struct bh_trial *t = w->ad->t;
    bool daemons = false;
    int rc = 0;

    for (size_t i = 0; i < w->n && rc >= 0; i++) {
        rc = store_one(w, &w->v[i], ret_total, err);
        if (rc < 0)
            bh_trial_blame(err, rc, &t->items[w->v[i].at]);
        daemons |= bh_streq(t->items[w->v[i].at].kind_name, "DaemonSet");
        bh_arena_reset(&w->ad->a);
    }
    return rc >= 0 && daemons ? store_nodes(w->ad, err) : rc;
}

static void on_pod(void *arg, enum bh_sim_change change, struct bh_sim_obj *old BH_UNUSED,
                   struct bh_sim_obj *obj BH_UNUSED)
{
    struct bh_admission *ad = arg;

    ad->n_made += change == BH_SIM_ADDED;
    bh_trial_progress(ad->t, "making pods", ad->n_made, ad->n_wanted);
}

/* In the store's own time: controllers act within milliseconds of what makes them act. */
static int run_controllers(struct bh_admission *ad, int64_t total, struct bh_err *err)
{
    const struct bh_sim_controller_options o = {.kubelet = false};
    struct bh_sim_controllers *c = bh_sim_controllers_start(ad->sim, &o);

    ad->n_wanted = (size_t)total;
    bh_sim_listen(ad->sim, bh_sim_type_find("", "v1", "pods"), on_pod, ad);
    int rc = bh_sim_advance(ad->sim, ad->t->o.now_ns + AT_REST_NS);
    bh_sim_controllers_stop(c);
    return rc < 0 ? bh_err_set(err, rc, "the workloads' controllers do not come to rest") : 0;
}

/* ---- out of the store ------------------------------------------------------------------------ */

/* The item; of a deployment's replica set, the deployment. */
static const struct bh_trial_item *culprit(struct work *w, const char *kind, const char *ns,
                                           const char *name)
{
    const struct bh_trial_item *it = bh_trial_find_item(w->ad->t, kind, ns, name);
    const char *dash = strrchr(name, '-');

    if (it || !dash || !bh_streq(kind, "ReplicaSet"))
        return it;
    return bh_trial_find_item(w->ad->t, "Deployment", ns,
                              bh_arena_strndup(&w->ad->a, name, (size_t)(dash - name)));
}

/* The first refusal of a pod, as its workload's controller was told. */
static int check_refusals(struct work *w, struct bh_err *err)
{
    const struct bh_sim_type *type = bh_sim_type_find("", "v1", "events");
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs events = bh_sim_listed(w->ad->sim, type, NULL);
    int rc = 0;

    for (size_t i = 0; i < events.n && rc == 0; i++) {
        const struct bh_json *e = bh_sim_obj_tree(&w->ad->a, events.v[i]);
        const char *message = bh_tree_str(e, "message"), *ns = events.v[i]->ns;
        const char *kind = bh_tree_str(e, "involvedObject.kind");
        const char *name = bh_tree_str(e, "involvedObject.name");
        if (!bh_tree_is(e, "reason", "FailedCreate") || !message || !kind || !name)
            continue;
        rc = bh_err_set(err, -EINVAL, "%.40s %.100s/%.100s: %.*s", kind, ns, name, EVENT_MAX,
                        message);
        const struct bh_trial_item *it = culprit(w, kind, ns, name);
        if (it)
            bh_trial_blame(err, rc, it);
    }
    bh_arena_reset(&w->ad->a);
    return rc;
}

static int by_revision(const void *pa, const void *pb)
{
    const struct bh_sim_obj *a = *(struct bh_sim_obj *const *)pa,
                            *b = *(struct bh_sim_obj *const *)pb;

    return BH_CMP(a->rv, b->rv);
}

static int take(struct work *w, const struct workload *v, const struct bh_sim_obj *stored,
                struct bh_err *err)
{
    struct bh_admission *ad = w->ad;
    const struct bh_trial_source at = ad->t->items[v->at].at;
    struct bh_json *obj = bh_sim_obj_tree(&ad->a, stored);
    int rc = 0;

    bh_admit_settle(ad, obj, bh_tree_has(obj, "metadata.generateName"));
    if (bh_tree_is(obj, "kind", "Pod"))
        rc = bh_admit_runtime_class(ad, obj, err);
    if (rc >= 0 && bh_tree_is(obj, "kind", "Pod"))
        rc = bh_admit_pod_claims(ad, stored, obj, &at, err);
    return rc < 0 ? bh_trial_blame(err, rc, &ad->t->items[v->at]) : bh_admit_add(ad, &at, obj, err);
}

/* Does the trial have this pod already? */
static bool is_there(struct work *w, struct workload *v, const struct bh_json *pod)
{
    const struct bh_trial_item *it = &w->ad->t->items[v->at];

    if (bh_streq(it->kind_name, "StatefulSet"))
        return bh_trial_find_item(w->ad->t, "Pod", it->ns, bh_tree_str(pod, "metadata.name"));
    if (bh_streq(it->kind_name, "DaemonSet")) {
        BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s", v->uid, node_of(pod));
        return bh_map_get(&w->on_node, key, strlen(key)) != NULL;
    }
    return v->have-- > 0;
}

/* What an owner in the store made, oldest first: pods, or replica sets with their pods. */
static int take_made(struct work *w, struct workload *v, const char *owner, bool sets,
                     struct bh_err *err)
{
    const struct bh_sim_type *type =
        sets ? bh_sim_type_find("apps", "v1", "replicasets") : bh_sim_type_find("", "v1", "pods");
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_owned(w->ad->sim, owner, type);
    int rc = 0;

    if (l.n > 1)
        qsort(l.v, l.n, sizeof *l.v, by_revision);
    for (size_t i = 0; i < l.n && rc >= 0; i++) {
        if (sets || !is_there(w, v, bh_sim_obj_tree(&w->ad->a, l.v[i])))
            rc = take(w, v, l.v[i], err);
        bh_arena_reset(&w->ad->a);
        if (rc >= 0 && sets)
            rc = take_made(w, v, l.v[i]->uid, false, err);
    }
    return rc;
}

/* Claims that a stateful set made, and the trial does not have. */
static int take_claims(struct work *w, struct workload *v, struct bh_err *err)
{
    const struct bh_sim_type *type = bh_sim_type_find("", "v1", "persistentvolumeclaims");
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs claims = bh_sim_listed(w->ad->sim, type, v->obj->ns);
    int rc = 0;

    for (size_t i = 0; i < claims.n && rc >= 0; i++) {
        if (!claims.v[i]->n_owners && !bh_trial_find_item(w->ad->t, "PersistentVolumeClaim",
                                                          claims.v[i]->ns, claims.v[i]->name))
            rc = take(w, v, claims.v[i], err);
        bh_arena_reset(&w->ad->a);
    }
    return rc;
}

static int take_all(struct work *w, struct bh_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < w->n && rc >= 0; i++) {
        struct workload *v = &w->v[i];
        const char *kind = w->ad->t->items[v->at].kind_name;
        if (!v->obj)
            continue;
        rc = take_made(w, v, v->obj->uid, bh_streq(kind, "Deployment"), err);
        if (rc >= 0 && bh_streq(kind, "StatefulSet"))
            rc = take_claims(w, v, err);
    }
    return rc;
}

int bh_admit_workloads(struct bh_admission *ad, struct bh_err *err)
{
    struct work w = {.ad = ad};
    int64_t total = 0;
    int rc = 0;

    bh_arena_init(&w.kept, 0);
    find_workloads(&w);
    if (w.n || bh_admit_has_claims(ad->t)) {
        const struct bh_trial *t = ad->t;
        for (size_t i = 0; i < t->n_items; i++) {
            if (t->items[i].replaced || !bh_streq(t->items[i].kind_name, "Pod"))
                continue;
            struct bh_json *pod = bh_admit_parse(&ad->a, &t->items[i]);
            struct workload *o = owner_of(&w, pod);
            if (o && !bh_tree_deleting(pod) && !bh_tree_is(pod, "status.phase", "Succeeded") &&
                !bh_tree_is(pod, "status.phase", "Failed")) {
                BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s", o->uid, node_of(pod));
                o->have++;
                bh_map_put(&w.on_node, key, strlen(key), o);
            }
            bh_arena_reset(&ad->a);
        }
        /* A deployment whose replica sets the files hold has done its work: they make the pods. */
        for (size_t i = 0; i < w.n; i++) {
            struct workload *o = owner_of(&w, bh_admit_parse(&ad->a, &t->items[w.v[i].at]));
            if (o)
                o->split = true;
            bh_arena_reset(&ad->a);
        }
        rc = store_all(&w, &total, err);
        rc = rc < 0 ? rc : run_controllers(ad, total, err);
        rc = rc < 0 ? rc : check_refusals(&w, err);
        rc = rc < 0 ? rc : take_all(&w, err);
    }
    for (size_t i = 0; i < w.n; i++)
        bh_sim_obj_unref(w.v[i].obj);
    bh_map_fini(&w.by_uid);
    bh_map_fini(&w.on_node);
    bh_arena_fini(&w.kept);
    free(w.v);
    return rc;
}
