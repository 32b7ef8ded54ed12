/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/admit.c - manifests become what an API server would have stored
 *
 * A bare API server of the simulator's (no HTTP) takes every object that has no uid: defaults,
 * priority of its class, limit ranges, default storage class, validation with the API server's
 * texts. workloads.c then lets its controllers make the pods of workloads. Objects with a
 * uid are left alone: all this happened to them when they were admitted.
 *
 * Differences from `kubectl apply`: a status in the file is kept; spec.priority may be given
 * without a class; a node without conditions is ready; names and uids that a server would draw are
 * made from the object's place, so that runs repeat.
 */
#include <errno.h>
#include <stdio.h>

#include "simulator/trial/admit.h"
#include "common/base/loop.h"
#include "simulator/server/tree.h"
#include "simulator/server/server.h"

struct bh_json *bh_admit_parse(struct bh_arena *a, const struct bh_trial_item *it)
{
    struct bh_json *v = NULL;

    int rc = bh_json_parse(a, it->json, it->n, BH_JSON_NUL, &v, NULL);
    bh_assert(rc == 0); /* we wrote it */
    return v;
}

/* ---- what a server would draw ---------------------------------------------------------------- */

static void uid_of(char out[static 40], const char *kind, const char *ns, const char *name)
{
    BH_CLEANUP(bh_freep) char *key = bh_asprintf("%s/%s/%s", kind, ns, name);
    uint64_t h = bh_hash(key, strlen(key), 1), l = bh_hash(key, strlen(key), 2);

    snprintf(out, 40, "%08x-%04x-4%03x-8%03x-%012llx", (unsigned)(h >> 32),
             (unsigned)(h >> 16 & 0xFFFF), (unsigned)(h & 0xFFF), (unsigned)(l >> 48 & 0xFFF),
             (unsigned long long)(l & 0xFFFFFFFFFFFF));
}

static const char *name_from(struct bh_admission *ad, const char *ns, const char *prefix)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    const char *name;

    do {
        uint64_t h = bh_hash(prefix, strlen(prefix), ad->n_drawn++);
        char suffix[6] = {0};
        for (unsigned k = 0; k < 5; k++, h /= sizeof alphabet - 1)
            suffix[k] = alphabet[h % (sizeof alphabet - 1)];
        name = bh_arena_printf(&ad->a, "%.58s%s", prefix, suffix);
    } while (bh_trial_find_item(ad->t, "Pod", ns, name));
    return name;
}

void bh_admit_settle(struct bh_admission *ad, struct bh_json *obj, bool drawn_name)
{
    struct bh_json *meta = bh_json_obj_at(&ad->a, obj, "metadata");
    const char *ns = bh_json_get_text(meta, "namespace"), *kind = bh_json_get_str(obj, "kind");
    const char *prefix = bh_json_get_str(meta, "generateName");
    char uid[40], now[32];

    if (drawn_name && prefix)
        bh_json_set_str(&ad->a, meta, "name", name_from(ad, ns, prefix));
    uid_of(uid, kind, ns, bh_json_get_str(meta, "name"));
    bh_time_format_ns(now, ad->t->o.now_ns);
    bh_json_add(&ad->a, meta, "uid: %s, creationTimestamp: %s", uid, now);
    bh_json_unset(meta, "resourceVersion");
}

int bh_admit_add(struct bh_admission *ad, const struct bh_trial_source *at,
                 const struct bh_json *obj, struct bh_err *err)
{
    size_t n = ad->t->n_items;
    int rc = bh_trial_add_item(ad->t, at, obj, err);

    if (rc >= 0 && ad->t->n_items > n)
        ad->t->items[n].admitted = false;
    return rc;
}

int bh_admit_runtime_class(struct bh_admission *ad, const struct bh_json *pod, struct bh_err *err)
{
    const char *name = bh_tree_str(pod, "spec.runtimeClassName");

    if (!name || !*name || bh_trial_find_item(ad->t, "RuntimeClass", "", name))
        return 0;
    return bh_err_set(err, -EINVAL, "pod rejected: RuntimeClass \"%s\" not found", name);
}

/* ---- into the store -------------------------------------------------------------------------- */

int bh_admit_store(struct bh_admission *ad, const struct bh_sim_type *type, const char *ns,
                   struct bh_json *obj, struct bh_sim_obj **ret, struct bh_err *err)
{
    struct bh_arena_mark mark = bh_arena_mark(&ad->a);
    struct bh_sim_error e = {0};
    ProtobufCMessage *m;

    bh_json_drop(bh_tree_obj(obj, "metadata"),
                 "uid resourceVersion managedFields deletionTimestamp finalizers");
    int rc = type->pb ? bh_json_to_pb(&ad->a, type->pb, obj, &m, NULL, err) : 0;
    bh_arena_rewind(&ad->a, mark);
    if (rc < 0)
        return rc;
    if (bh_sim_create(ad->sim, type, ns, &ad->a, obj, ret, &e))
        return bh_err_set(err, e.code == 409 ? -EEXIST : -EINVAL, "%s", e.message);
    return 0;
}

void bh_admit_vouch_for(struct bh_arena *a, struct bh_json *node)
{
    struct bh_json *conditions =
        bh_tree_dflt_arr(a, bh_json_obj_at(a, node, "status"), "conditions");

    if (conditions && !bh_tree_condition(node, "Ready"))
        bh_json_append(a, conditions, "type: Ready, status: True");
}

/* What admission would refuse or drop although a file may well say it. */
static void prepare(struct bh_arena *a, struct bh_json *obj)
{
    struct bh_json *spec = bh_tree_obj(obj, "spec");

    if (bh_tree_is(obj, "kind", "Node"))
        bh_admit_vouch_for(a, obj);
    if (!bh_tree_is(obj, "kind", "Pod") || bh_tree_has(spec, "priorityClassName"))
        return;
    bh_json_drop(spec, "priority preemptionPolicy");
}

static void keep(struct bh_arena *a, struct bh_json *obj, const struct bh_json *given,
                 const char *key)
{
    const struct bh_json *v = bh_json_get(given, key);

    if (obj && v && v->type != BH_JSON_NULL)
        bh_json_set(a, obj, key, bh_json_clone(a, v));
}

/* Puts back what the store dropped; obj: as stored. */
static void restore(struct bh_arena *a, struct bh_json *obj, const struct bh_json *given)
{
    struct bh_json *spec = bh_tree_obj(obj, "spec");
    const struct bh_json *given_spec = bh_tree_obj(given, "spec");

    if (bh_tree_is(obj, "kind", "Node")) {
        bh_json_unset(spec, "taints");
        keep(a, spec, given_spec, "taints");
        return;
    }
    if (bh_tree_is(obj, "kind", "Pod") && !bh_tree_has(given_spec, "priorityClassName") &&
        bh_tree_has(given_spec, "priority")) {
        bh_json_unset(spec, "priorityClassName");
        keep(a, spec, given_spec, "priority");
        keep(a, spec, given_spec, "preemptionPolicy");
    }
    if (bh_tree_is(obj, "kind", "PersistentVolume"))
        bh_json_add(a, obj, "status: {phase: Available}");
    if (bh_tree_is(obj, "kind", "PodDisruptionBudget"))
        bh_json_unset(obj, "status"); /* worked out from the pods */
    keep(a, obj, given, "status");
}

static int admit_manifest(struct bh_admission *ad, size_t at, const struct bh_sim_type *type,
                          struct bh_err *err)
{
    const struct bh_sim_delete_options at_once = {.grace_s = 0};
    const struct bh_trial_item *it = &ad->t->items[at];
    struct bh_json *given = bh_admit_parse(&ad->a, it);
    struct bh_json *obj = bh_json_clone(&ad->a, given);
    bool drawn = !bh_json_get_str(bh_json_get(given, "metadata"), "name");
    struct bh_sim_obj *stored = NULL;

    prepare(&ad->a, obj);
    int rc = bh_admit_store(ad, type, it->ns, obj, &stored, err);
    if (rc < 0 && rc != -EEXIST)
        return rc;
    /* The store has its own namespaces and system classes: the file's is as good. */
    obj = rc < 0 ? bh_json_clone(&ad->a, given) : bh_sim_obj_tree(&ad->a, stored);
    if (stored && bh_tree_has(obj, "spec.template") &&
        !bh_tree_is(obj, "kind", "PodTemplate")) /* the workloads' turn comes later */
        (void)bh_sim_delete(ad->sim, type, stored->ns, stored->name, &at_once, NULL);
    bh_sim_obj_unref(stored);
    restore(&ad->a, obj, given);
    bh_admit_settle(ad, obj, drawn);
    rc = bh_tree_is(obj, "kind", "Pod") ? bh_admit_runtime_class(ad, obj, err) : 0;
    if (rc >= 0)
        bh_trial_set_item(ad->t, at, obj);
    return rc;
}

/* ---- in which order -------------------------------------------------------------------------- */

/* Kinds that decide about other objects go first. */
static unsigned turn_of(const char *kind)
{
    static const char first[] = "PriorityClass LimitRange StorageClass PersistentVolume "
                                "RuntimeClass ResourceClaimTemplate Workload";

    return bh_streq(kind, "Namespace") ? 0 : bh_word_at(first, kind) >= 0 ? 1 : 2;
}

/* Admitted objects of the kinds that decide about manifests go into the store as well. */
static int admit_item(struct bh_admission *ad, size_t at, struct bh_err *err)
{
    const struct bh_trial_item *it = &ad->t->items[at];
    const struct bh_sim_type *type = bh_sim_type_of_kind(it->api_version, it->kind_name);

    if (!type || (it->admitted && turn_of(it->kind_name) == 2))
        return 0;
    if (!it->admitted)
        return admit_manifest(ad, at, type, err);
    struct bh_json *obj = bh_admit_parse(&ad->a, it);
    int rc = bh_admit_store(ad, type, it->ns, obj, NULL, err);
    return rc == -EEXIST ? 0 : rc;
}

/* Every namespace exists, as it does in a cluster, with the label it has there. */
static int add_namespaces(struct bh_admission *ad, struct bh_err *err)
{
    struct bh_trial *t = ad->t;
    size_t n = t->n_items;

    for (size_t i = 0; i < n; i++) {
        const char *ns = t->items[i].ns;
        if (t->items[i].replaced || !*ns || bh_trial_find_item(t, "Namespace", "", ns))
            continue;
        struct bh_json *o = bh_json_make(&ad->a,
                                         "apiVersion: v1, kind: Namespace, metadata: {name: %s, "
                                         "labels: {kubernetes.io/metadata.name: %s}}",
                                         ns, ns);
        const struct bh_trial_source at = t->items[i].at;
        int rc = bh_admit_add(ad, &at, o, err);
        if (rc < 0)
            return rc;
        bh_arena_reset(&ad->a);
    }
    return 0;
}

static int admit_all(struct bh_admission *ad, struct bh_err *err)
{
    struct bh_trial *t = ad->t;
    size_t n = t->n_items;
    int rc = 0;

    for (unsigned turn = 0; turn < 3; turn++) {
        for (size_t i = 0; i < n && rc >= 0; i++) {
            if (t->items[i].replaced || turn_of(t->items[i].kind_name) != turn)
                continue;
            rc = admit_item(ad, i, err);
            if (rc < 0)
                bh_trial_blame(err, rc, &t->items[i]);
            bh_arena_reset(&ad->a);
            bh_trial_progress(t, "admitting", i, n);
        }
    }
    return rc;
}

int bh_trial_admit(struct bh_trial *t, struct bh_err *err)
{
    const char *every[] = {"api/all=true"}; /* whose gate is on */
    const struct bh_opt_list apis = {.v = every, .n = 1};
    const struct bh_sim_options o = {.features = t->config->gates,
                                     .runtime_config = &apis,
                                     .no_controllers = true,
                                     .manual_clock = true,
                                     .clock_ns = t->o.now_ns,
                                     .seed = 1,
                                     .history_events = 1,
                                     .first_revision = 1};
    struct bh_admission ad = {.t = t};

    uv_loop_init(&ad.loop);
    int rc = bh_sim_new_bare(&ad.loop, &o, &ad.sim, err);
    rc = rc < 0 ? rc : add_namespaces(&ad, err);
    rc = rc < 0 ? rc : admit_all(&ad, err);
    rc = rc < 0 ? rc : bh_admit_workloads(&ad, err);
    rc = rc < 0 ? rc : bh_admit_claims(&ad, err);
    bh_sim_free(ad.sim);
    bh_loop_drain_close(&ad.loop);
    bh_arena_fini(&ad.a);
    return rc;
}
