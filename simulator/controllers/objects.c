/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/objects.c - pieces of objects that several controllers make
 *
 * Upstream: pkg/controller/controller_utils.go (v1.36); differences: the template hash is our own,
 * so names of replica sets differ from what upstream would choose.
 */
#include "simulator/controllers/controllers.h"

#include <stdio.h>

#include "common/k8s/quantity.h"

const char *bh_ctl_now(struct bh_sim_controllers *c, struct bh_arena *a)
{
    char now[32];

    bh_time_format_ns(now, bh_sim_now_ns(c->sim));
    return bh_arena_strdup(a, now);
}

int64_t bh_ctl_time_after(const char *time, int64_t ns)
{
    int64_t at = 0, sum;

    (void)bh_time_parse_ns(time, &at);
    at = BH_MAX(at, 0);
    return __builtin_add_overflow(at, ns, &sum) ? INT64_MAX : sum;
}

struct bh_ctl_known *bh_ctl_known_new(const struct bh_sim_obj *obj, enum bh_ctl ctl)
{
    size_t name_n = strlen(obj->name) + 1, ns_n = strlen(obj->ns) + 1;
    struct bh_ctl_known *k = bh_malloc(sizeof(*k) + name_n + ns_n);

    *k = (struct bh_ctl_known){.type = obj->type, .ctl = ctl, .ns = k->name + name_n};
    memcpy(k->name, obj->name, name_n);
    memcpy(k->name + name_n, obj->ns, ns_n);
    return k;
}

int bh_ctl_edit(struct bh_sim_controllers *c, const struct bh_sim_obj *obj, enum bh_sim_sub sub,
                bh_sim_edit_fn *edit, const void *arg)
{
    return bh_sim_edit(c->sim, obj->type, obj->ns, obj->name, obj->uid, sub, edit,
                       (void *)(uintptr_t)arg, NULL, NULL);
}

int bh_ctl_delete(struct bh_sim_controllers *c, const struct bh_sim_obj *obj)
{
    const struct bh_sim_delete_options o = {.grace_s = -1, .uid = obj->uid};

    return bh_sim_delete(c->sim, obj->type, obj->ns, obj->name, &o, NULL);
}

void bh_ctl_own(struct bh_arena *a, struct bh_json *meta, const struct bh_sim_obj *owner)
{
    struct bh_json *refs = bh_tree_dflt_arr(a, meta, "ownerReferences");
    char api_version[80];

    if (!refs)
        return;
    bh_sim_type_api_version(owner->type, api_version);
    bh_json_append(a, refs,
                   "apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true, "
                   "blockOwnerDeletion: true",
                   api_version, owner->type->kind, owner->name, owner->uid);
}

struct bh_json *bh_ctl_made_of(struct bh_arena *a, const struct bh_sim_obj *owner,
                               const struct bh_json *template, const char *api_version,
                               const char *kind)
{
    static const char *const copied[] = {"labels", "annotations"};
    struct bh_json *o =
        bh_json_make(a, "apiVersion: %s, kind: %s, metadata: {}", api_version, kind);
    struct bh_json *meta = bh_json_get(o, "metadata");
    const struct bh_json *spec = bh_tree_obj(template, "spec");

    for (size_t i = 0; i < BH_ARRAY_LEN(copied); i++) {
        const struct bh_json *v = bh_json_get(bh_tree_obj(template, "metadata"), copied[i]);
        if (v)
            bh_json_set(a, meta, copied[i], bh_json_clone(a, v));
    }
    bh_ctl_own(a, meta, owner);
    if (spec)
        bh_json_set(a, o, "spec", bh_json_clone(a, spec));
    return o;
}

const char *bh_ctl_hash(struct bh_arena *a, const struct bh_json *v, int64_t salt)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    char out[11];

    bh_json_write(&b, v);
    uint64_t h = bh_hash(b.p, b.n, (uint64_t)salt);
    for (size_t i = 0; i < sizeof(out) - 1; i++) {
        out[i] = alphabet[h % (sizeof(alphabet) - 1)];
        h /= sizeof(alphabet) - 1;
    }
    out[sizeof(out) - 1] = 0;
    return bh_arena_strdup(a, out);
}

static bool same(const struct bh_json *a, const struct bh_json *b, const char *key)
{
    const char *x = bh_tree_str(a, key), *y = bh_tree_str(b, key);

    return bh_streq(x ? x : "", y ? y : "");
}

bool bh_ctl_tolerates(const struct bh_json *toleration, const struct bh_json *taint)
{
    const char *effect = bh_tree_str(toleration, "effect"), *key = bh_tree_str(toleration, "key");
    bool exists = bh_tree_is(toleration, "operator", "Exists");

    if (effect && *effect && !same(toleration, taint, "effect"))
        return false;
    if (key && *key ? !same(toleration, taint, "key") : !exists)
        return false;
    return exists || same(toleration, taint, "value");
}

struct bh_json *bh_ctl_template_with(struct bh_arena *a, const struct bh_json *template,
                                     const char *key, const char *value)
{
    struct bh_json *t = bh_json_clone(a, template);

    return t ? bh_json_add(a, t, "metadata: {labels: {%s: %s}}", key, value) : NULL;
}

/* ---- pods ------------------------------------------------------------------------------------ */

static const char *const components[BH_CTL_N] = {[BH_CTL_REPLICASET] = "replicaset-controller",
                                                 [BH_CTL_REPLICATIONCONTROLLER] =
                                                     "replication-controller",
                                                 [BH_CTL_STATEFULSET] = "statefulset-controller",
                                                 [BH_CTL_DAEMONSET] = "daemonset-controller",
                                                 [BH_CTL_JOB] = "job-controller"};

struct bh_json *bh_ctl_pod_of(struct bh_arena *a, const struct bh_sim_obj *owner,
                              const struct bh_json *template, const char *prefix)
{
    struct bh_json *pod = bh_ctl_made_of(a, owner, template, "v1", "Pod");
    const struct bh_json *v = bh_json_path(template, "metadata.finalizers");

    if (v)
        bh_json_set(a, bh_json_get(pod, "metadata"), "finalizers", bh_json_clone(a, v));
    if (prefix)
        bh_json_add(a, pod, "metadata: {generateName: %s}", bh_arena_printf(a, "%s-", prefix));
    return pod;
}

const char *bh_ctl_pod_create(struct bh_sim_controllers *c, enum bh_ctl ctl,
                              struct bh_sim_obj *owner, struct bh_json *pod)
{
    struct bh_sim_obj *made = NULL;
    struct bh_sim_error e = {0};
    const char *why = NULL;

    if (bh_sim_create(c->sim, c->t.pods, owner->ns, &c->pod_arena, pod, &made, &e)) {
        why = bh_arena_strdup(&c->arena, e.message);
        bh_sim_event(c->sim, owner, "Warning", "FailedCreate", components[ctl],
                     "Error creating: %s", why);
        bh_ctl_again(c, ctl, owner, BH_CTL_RETRY_NS);
    } else {
        bh_sim_event(c->sim, owner, "Normal", "SuccessfulCreate", components[ctl],
                     "Created pod: %s", made->name);
    }
    bh_sim_obj_unref(made);
    bh_arena_reset(&c->pod_arena);
    return why;
}

void bh_ctl_pod_delete(struct bh_sim_controllers *c, enum bh_ctl ctl, struct bh_sim_obj *owner,
                       const struct bh_sim_obj *pod)
{
    if (!bh_ctl_delete(c, pod))
        bh_sim_event(c->sim, owner, "Normal", "SuccessfulDelete", components[ctl],
                     "Deleted pod: %s", pod->name);
}

/* ---- which pods go first --------------------------------------------------------------------- */

struct rank {
    struct bh_sim_obj *pod;
    int64_t cost;      /* annotation; less goes first */
    int phase;         /* 0 pending, 1 unknown, 2 running */
    size_t neighbours; /* active pods of the same owner on the node; more goes first */
    bool ready;
    int64_t restarts;
    char created[32];
};

/* Those without a node go first. */
static int by_rank(const void *pa, const void *pb)
{
    const struct rank *a = pa, *b = pb;
    int cmp = BH_CMP(*a->pod->node_name != 0, *b->pod->node_name != 0);

    cmp = cmp ? cmp : BH_CMP(a->phase, b->phase);
    cmp = cmp ? cmp : BH_CMP(a->ready, b->ready);
    cmp = cmp ? cmp : BH_CMP(a->cost, b->cost);
    cmp = cmp ? cmp : BH_CMP(b->neighbours, a->neighbours);
    cmp = cmp ? cmp : BH_CMP(b->restarts, a->restarts);
    cmp = cmp ? cmp : strcmp(b->created, a->created); /* newer first */
    return cmp ? cmp : strcmp(b->pod->name, a->pod->name);
}

/* Some container has restarted: a count that does not begin with 0. */
static bool restarted(const char *json)
{
    static const char key[] = "\"restartCount\":";

    for (const char *at = json; (at = strstr(at, key)); at += sizeof(key) - 1)
        if (at[sizeof(key) - 1] != '0')
            return true;
    return false;
}

/* Stored text is compact, and the pod's own time is the first of its key. */
static void copy_created(char out[static 32], const char *json)
{
    static const char key[] = "\"creationTimestamp\":\"";
    const char *at = strstr(json, key);

    at = at ? at + sizeof(key) - 1 : "";
    snprintf(out, 32, "%.*s", (int)strcspn(at, "\""), at);
}

/* Thousands of pods may stand for deletion: those with nothing special are not parsed. */
static void fill_rank(struct rank *r, struct bh_sim_obj *pod)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    *r = (struct rank){.pod = pod, .ready = bh_ctl_pod_ready(pod)};
    r->phase = bh_streq(pod->phase, "Pending") ? 0 : bh_streq(pod->phase, "Running") ? 2 : 1;
    copy_created(r->created, pod->json);
    if (!strstr(pod->json, "pod-deletion-cost") && !restarted(pod->json))
        return;
    const struct bh_json *t = bh_sim_obj_tree(&a, pod);
    const char *cost = bh_tree_annotation(t, "controller.kubernetes.io/pod-deletion-cost");
    r->cost = cost ? strtoll(cost, NULL, 10) : 0;
    bh_json_each(s, bh_tree_arr(t, "status.containerStatuses"))
        r->restarts = BH_MAX(r->restarts, bh_tree_i64(s, "restartCount", 0));
}

static int by_node(const void *pa, const void *pb)
{
    const struct rank *a = pa, *b = pb;

    return strcmp(a->pod->node_name, b->pod->node_name);
}

void bh_ctl_pods_rank(struct bh_sim_objs *pods)
{
    struct rank *r = bh_calloc(pods->n + 1, sizeof(*r));

    for (size_t i = 0; i < pods->n; i++)
        fill_rank(&r[i], pods->v[i]);
    size_t n = pods->n;
    qsort(r, n, sizeof(*r), by_node);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && bh_streq(r[end].pod->node_name, r[i].pod->node_name); end++)
            ;
        for (size_t k = i; k < end; k++)
            r[k].neighbours = end - i;
    }
    qsort(r, pods->n, sizeof(*r), by_rank);
    for (size_t i = 0; i < pods->n; i++)
        pods->v[i] = r[i].pod;
    free(r);
}
