/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/steps.c - what steps do to the store
 *
 * A step names objects by name, by selector, or by how many of a kind. Draws come from the run's
 * own generator, over lists in name order, so that runs repeat.
 */
#include <errno.h>

#include "common/data/patch.h"
#include "common/data/yaml.h"
#include "common/k8s/kinds.h"
#include "simulator/schema/schema.h"
#include "simulator/server/tree.h"
#include "simulator/server/pod.h"
#include "simulator/scenario/scenario_int.h"

#define SECOND_NS      INT64_C(1000000000)
#define EVICT_AGAIN_NS (5 * SECOND_NS)
#define LISTEN_EVERY   10000

static int refused(struct bh_err *err, const struct bh_sim_error *e, const char *kind,
                   const char *ns, const char *name)
{
    return bh_err_set(err, e->code == 409 ? -EEXIST : -EINVAL, "%s %s%s%s: %s", kind, ns,
                      *ns ? "/" : "", name, e->message);
}

static const struct bh_sim_type *nodes_type(void)
{
    return bh_sim_type_find("", "v1", "nodes");
}

/* ---- what a step is about -------------------------------------------------------------------- */

void bh_run_select(struct bh_sim_objs *l, const char *text)
{
    struct bh_selector *sel = NULL;
    size_t n = 0;

    if (!text || bh_selector_parse(text, &sel, NULL) < 0)
        return;
    for (size_t i = 0; i < l->n; i++) {
        if (bh_selector_match(sel, bh_sim_get_label, l->v[i]))
            l->v[n++] = l->v[i];
        else
            bh_sim_obj_unref(l->v[i]);
    }
    l->n = n;
    bh_selector_free(sel);
}

/* Keeps n of them, drawn. */
static void draw(struct bh_run *r, struct bh_sim_objs *l, int64_t n)
{
    for (size_t i = 0; (int64_t)i < n && i + 1 < l->n; i++) {
        size_t k = i + (size_t)bh_rand_below(&r->rand, l->n - i);
        struct bh_sim_obj *o = l->v[i];
        l->v[i] = l->v[k];
        l->v[k] = o;
    }
    while ((int64_t)l->n > n)
        bh_sim_obj_unref(l->v[--l->n]);
}

static const char *namespace_of(const struct bh_sim_type *t, const struct bh_json *what)
{
    const char *ns = bh_json_get_str(what, "namespace");

    return !(t->flags & BH_SIM_NAMESPACED) ? "" : ns ? ns : "default";
}

static int targets(struct bh_run *r, const struct bh_sim_type *t, const struct bh_json *what,
                   struct bh_sim_objs *ret, struct bh_err *err)
{
    const char *name = bh_json_get_str(what, "name"), *ns = namespace_of(t, what);
    struct bh_sim_obj *one = name ? bh_sim_get(r->w.sim, t, ns, name) : NULL;

    *ret = (struct bh_sim_objs){0};
    if (name && !one)
        return bh_err_set(err, -EINVAL, "%s %s%s%s not found", t->kind, ns, *ns ? "/" : "", name);
    if (name) {
        ret->v = bh_calloc(1, sizeof(struct bh_sim_obj *));
        ret->v[ret->n++] = bh_sim_obj_ref(one);
        return 0;
    }
    bh_sim_list(r->w.sim, t, ns, ret);
    bh_run_select(ret, bh_json_get_str(what, "selector"));
    if (bh_json_get(what, "count"))
        draw(r, ret, bh_field_amount(bh_json_get(what, "count"), (int64_t)ret->n));
    return 0;
}

/* A kind that a plugin reads, and for which the scenario has no definition. As everywhere where there is
 * no server its plural is known from the plugin, and only an object tells whether it has a namespace. */
static int define(struct bh_run *r, const struct bh_kind_info *k, const char *kind, const char *ns,
                  struct bh_err *err)
{
    const struct bh_sim_type *crd = bh_sim_type_find(BH_SIM_CRD_GROUP, "v1", BH_SIM_CRD_PLURAL);
    const char *name = bh_arena_printf(&r->a, "%s.%s", k->plural, k->group);
    struct bh_json *o = bh_json_make(
        &r->a,
        "apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s, "
        "annotations: {api-approved.kubernetes.io: %s}}, spec: {group: %s, scope: %s, names: "
        "{plural: %s, kind: %s}, versions: [{name: %s, served: true, storage: true, schema: "
        "{openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}",
        name, "unapproved, in a scenario", k->group, ns && *ns ? "Namespaced" : "Cluster",
        k->plural, kind, k->version);
    struct bh_sim_error e = {0};

    return bh_sim_create(r->w.sim, crd, "", &r->a, o, NULL, &e)
               ? refused(err, &e, crd->kind, "", name)
               : 0;
}

/* The type of what (a step's, or an object), which is in the namespace. */
static int served_type(struct bh_run *r, const struct bh_json *what, const char *ns,
                       const struct bh_sim_type **ret, struct bh_err *err)
{
    const char *api = bh_json_get_str(what, "apiVersion"), *kind = bh_json_get_str(what, "kind");
    int rc = 0;

    *ret = kind ? bh_sim_find_kind(r->w.sim, api, kind) : NULL;
    const struct bh_kind_info *k = !*ret && api && kind ? bh_kind_find_any(api, kind) : NULL;
    if (k && (rc = define(r, k, kind, ns, err)) >= 0)
        *ret = bh_sim_find_kind(r->w.sim, api, kind);
    if (*ret || rc < 0)
        return rc;
    bh_err_set(err, -EINVAL,
               "%.80s of %.80s is not served by the simulator, and no plugin reads it",
               kind ? kind : "an object without a kind", api ? api : "\"\"");
    return -EINVAL;
}

/* The type whose store has it. */
static int type_of(struct bh_run *r, const struct bh_json *what, const struct bh_sim_type **ret,
                   struct bh_err *err)
{
    int rc = served_type(r, what, bh_json_get_str(what, "namespace"), ret, err);

    if (rc >= 0)
        *ret = bh_sim_type_stored(*ret);
    return rc;
}

/* ---- create ---------------------------------------------------------------------------------- */

static int need_namespace(struct bh_run *r, const char *ns, struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("", "v1", "namespaces");
    struct bh_sim_error e = {0};

    if (!*ns || bh_sim_get(r->w.sim, t, "", ns))
        return 0;
    struct bh_json *o =
        bh_json_make(&r->a, "apiVersion: v1, kind: Namespace, metadata: {name: %s}", ns);
    return bh_sim_create(r->w.sim, t, "", &r->a, o, NULL, &e) ? refused(err, &e, t->kind, "", ns)
                                                              : 0;
}

/* What came of files, templates and patches; the scenario's own manifests were checked before. */
static int known(struct bh_json *obj, struct bh_err *err)
{
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    int rc = bh_oas_refuse_unknown(obj, 0, err);

    return rc < 0 ? bh_err_prefix(err, rc, "%.80s %.200s", bh_json_get_text(obj, "kind"),
                                  bh_json_get_text(meta, "name"))
                  : 0;
}

int bh_run_create(struct bh_run *r, const struct bh_json *given, struct bh_err *err)
{
    struct bh_json *obj = bh_json_clone(&r->a, given), *meta = bh_json_get(obj, "metadata");
    const char *name = bh_json_get_str(meta, "name");
    const struct bh_sim_type *t;
    struct bh_sim_error e = {0};

    if (!meta)
        return bh_err_set(err, -EINVAL, "an object without metadata");
    int rc = served_type(r, obj, bh_json_get_str(meta, "namespace"), &t, err);
    if (rc < 0)
        return rc;
    t = bh_sim_type_stored(t);
    const char *ns = namespace_of(t, meta);
    bh_json_drop(meta, "uid resourceVersion managedFields deletionTimestamp creationTimestamp "
                       "generation");
    rc = known(obj, err);
    rc = rc < 0 ? rc : need_namespace(r, ns, err);
    /* Before validation, which refuses the addresses of a service that is there. */
    if (rc >= 0 && name && bh_sim_get(r->w.sim, t, ns, name))
        rc = bh_err_set(err, -EEXIST, "%s %s%s%s: already exists", t->kind, ns, *ns ? "/" : "",
                        name);
    else if (rc >= 0 && bh_sim_create(r->w.sim, t, ns, &r->a, obj, NULL, &e))
        rc = refused(err, &e, t->kind, ns, name ? name : bh_json_get_text(meta, "generateName"));
    return rc;
}

static int create_all(struct bh_run *r, const struct bh_json *list, struct bh_err *err)
{
    bh_json_each(o, list) {
        int rc = bh_run_create(r, o, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int create_text(struct bh_run *r, const char *text, size_t n, struct bh_err *err)
{
    struct bh_json *list;
    int rc = bh_manifests_parse(&r->a, text, n, &list, err);

    return rc < 0 ? rc : create_all(r, list, err);
}

static int action_create(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    if (what->type == BH_JSON_OBJECT)
        return bh_run_create(r, what, err);
    if (what->type == BH_JSON_STRING)
        return create_text(r, what->s.p, what->s.n, err);
    return create_all(r, what, err);
}

static int action_files(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    const struct bh_json *one = what->type == BH_JSON_ARRAY ? bh_json_first(what) : what;
    int rc = 0;

    for (; one && rc >= 0; one = what->type == BH_JSON_ARRAY ? one->next : NULL) {
        const char *text;
        size_t n;
        rc = bh_scenario_file(r->s, &r->a, one->s.p, &text, &n, err);
        rc = rc < 0 ? rc : create_text(r, text, n, err);
    }
    return rc;
}

/* ---- generate -------------------------------------------------------------------------------- */

#define POD_SPEC                                                                                   \
    "{\"containers\":[{\"name\":\"c\",\"image\":\"registry.k8s.io/pause:3.9\","                    \
    "\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"200Mi\"}}}]}"

static const struct {
    const char *kind, *json;
} defaults[] = {
    {"Node", "{\"status\":{\"capacity\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"},"
             "\"allocatable\":{\"cpu\":\"16\",\"memory\":\"64Gi\",\"pods\":\"110\"}}}"},
    {"Pod", "{\"spec\":" POD_SPEC "}"},
    {"Job", "{\"spec\":{\"template\":{\"spec\":" POD_SPEC "}}}"},
    {NULL, "{\"spec\":{\"template\":{\"spec\":" POD_SPEC "}}}"}, /* the other workloads */
};
static bool is_workload(const char *kind)
{
    return bh_word_at("Deployment ReplicaSet StatefulSet DaemonSet Job", kind) >= 0;
}

static struct bh_json *parsed(struct bh_arena *a, const char *text)
{
    struct bh_json *v = NULL;

    (void)bh_yaml_parse(a, text, strlen(text), BH_JSON_STRICT, &v, NULL); /* was checked */
    return v;
}

static struct bh_json *template_of(struct bh_run *r, const struct bh_json *what, const char *kind)
{
    const struct bh_json *given = bh_json_get(what, "template");
    size_t i = 0;

    if (given)
        return given->type == BH_JSON_STRING ? parsed(&r->a, given->s.p)
                                             : bh_json_clone(&r->a, given);
    if (!is_workload(kind) && !bh_streq(kind, "Node") && !bh_streq(kind, "Pod"))
        return bh_json_new(&r->a, BH_JSON_OBJECT);
    while (defaults[i].kind && !bh_streq(defaults[i].kind, kind))
        i++;
    return parsed(&r->a, defaults[i].json);
}

/* The pod (or its template) inside of obj; NULL for kinds without one. */
static struct bh_json *pod_part(struct bh_arena *a, struct bh_json *obj, const char *kind)
{
    if (bh_streq(kind, "Pod"))
        return obj;
    return is_workload(kind) ? bh_json_obj_at(a, bh_json_obj_at(a, obj, "spec"), "template") : NULL;
}

static void merge_members(struct bh_arena *a, struct bh_json *into, const struct bh_json *from)
{
    bh_json_each(m, from)
        bh_json_set(a, into, m->key.p, bh_json_clone(a, m));
}

static void set_resources(struct bh_run *r, struct bh_json *obj, struct bh_json *pod,
                          const struct bh_json *amounts)
{
    if (!pod) {
        struct bh_json *status = bh_json_obj_at(&r->a, obj, "status");
        merge_members(&r->a, bh_json_obj_at(&r->a, status, "capacity"), amounts);
        merge_members(&r->a, bh_json_obj_at(&r->a, status, "allocatable"), amounts);
        return;
    }
    struct bh_json *c = bh_json_first(bh_tree_arr(pod, "spec.containers"));
    if (!c || c->type != BH_JSON_OBJECT)
        return; /* admission says what is wrong with it */
    c = bh_json_obj_at(&r->a, c, "resources");
    merge_members(&r->a, bh_json_obj_at(&r->a, c, "requests"), amounts);
    bh_json_each(m, amounts) { /* extended resources have limits too, or admission refuses them */
        if (strchr(m->key.p, '/'))
            bh_json_set(&r->a, bh_json_obj_at(&r->a, c, "limits"), m->key.p,
                        bh_json_clone(&r->a, m));
    }
}

/* A text, or {cycle: [...]}: the i-th. */
static const struct bh_json *label_value(const struct bh_json *v, int64_t i)
{
    const struct bh_json *cycle = bh_json_get_list(v, "cycle");

    return cycle && cycle->c.n ? bh_json_at(cycle, (size_t)i % cycle->c.n) : v;
}

/* Selector and labels of a workload that says nothing about them: app=NAME. */
static void default_selector(struct bh_run *r, struct bh_json *obj, struct bh_json *pod,
                             const char *kind, const char *name)
{
    const struct bh_json *app = bh_json_get(bh_json_path(pod, "metadata.labels"), "app");

    if (bh_json_path(obj, "spec.selector"))
        return;
    if (!app) {
        bh_json_add(&r->a, pod, "metadata: {labels: {app: %s}}", name);
        app = bh_json_path(pod, "metadata.labels.app");
    }
    if (!bh_streq(kind, "Job"))
        bh_json_add(&r->a, obj, "spec: {selector: {matchLabels: {app: %p}}}",
                    bh_json_clone(&r->a, app));
    else if (!bh_tree_has(pod, "spec.restartPolicy"))
        bh_json_add(&r->a, pod, "spec: {restartPolicy: Never}");
}

static struct bh_json *generated(struct bh_run *r, const struct bh_json *what,
                                 const struct bh_sim_type *t, int64_t i)
{
    struct bh_json *obj = template_of(r, what, t->kind), *pod = pod_part(&r->a, obj, t->kind);
    struct bh_json *meta = bh_json_obj_at(&r->a, obj, "metadata");
    const char *prefix = bh_json_get_str(what, "name"), *ns = bh_json_get_str(what, "namespace");
    bool one = !bh_json_get(what, "count");
    char version[80];

    bh_sim_type_api_version(t, version);
    prefix = prefix ? prefix : bh_json_get_str(meta, "name");
    prefix = prefix ? prefix : t->singular;
    const char *name = one ? prefix : bh_arena_printf(&r->a, "%s-%lld", prefix, (long long)i);
    bh_json_add(&r->a, obj, "apiVersion: %s, kind: %s, metadata: {name: %s}", version, t->kind,
                name);
    if (ns)
        bh_json_set_str(&r->a, meta, "namespace", ns);
    const struct bh_json *labels = bh_json_get(what, "labels");
    struct bh_json *at[2] = {obj, pod == obj ? NULL : pod};
    for (size_t k = 0; k < BH_ARRAY_LEN(at) && at[k]; k++) {
        struct bh_json *l =
            bh_json_obj_at(&r->a, bh_json_obj_at(&r->a, at[k], "metadata"), "labels");
        bh_json_each(m, labels)
            bh_json_set(&r->a, l, m->key.p, bh_json_clone(&r->a, label_value(m, i)));
    }
    if (bh_streq(t->kind, "Node") && !bh_tree_label(obj, "kubernetes.io/hostname"))
        bh_json_add(&r->a, meta, "labels: {kubernetes.io/hostname: %s}", name);
    if (pod && pod != obj)
        default_selector(r, obj, pod, t->kind, name);
    if (bh_json_get(what, "resources"))
        set_resources(r, obj, pod, bh_json_get(what, "resources"));
    if (bh_json_get(what, "replicas"))
        bh_json_add(&r->a, obj, "spec: {replicas: %p}",
                    bh_json_clone(&r->a, bh_json_get(what, "replicas")));
    if (pod && bh_json_get(what, "runTime"))
        bh_json_add(&r->a, pod, "metadata: {annotations: {" BH_SIM_RUN_TIME ": %s}}",
                    bh_json_get_text(what, "runTime"));
    return obj;
}

struct generating {
    const struct bh_json *what;
    const struct bh_sim_type *t;
    int64_t i, n, every_ns;
};

static void generate_one(struct bh_run *r, void *arg)
{
    struct generating *g = arg;
    struct bh_err err = {0};

    bh_arena_reset(&r->a);
    int rc = bh_run_create(r, generated(r, g->what, g->t, g->i), &err);
    if (rc < 0)
        bh_run_trouble(r, bh_err_prefix(&err, rc, "generate"), &err);
    else if (++g->i < g->n)
        bh_run_later(r, bh_run_at(r) + g->every_ns, generate_one, g);
}

static int action_generate(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    int64_t n = bh_json_get_i64(what, "count", 1), every = bh_field_duration(what, "every", 0);
    const struct bh_sim_type *t;
    int rc = served_type(r, what, bh_json_get_str(what, "namespace"), &t, err);

    if (rc < 0)
        return rc;
    if (every) {
        struct generating *g = bh_arena_new(&r->keep, struct generating);
        *g = (struct generating){what, t, 0, n, every};
        generate_one(r, g);
        return 0;
    }
    for (int64_t i = 0; i < n && r->trouble_rc >= 0; i++) {
        bh_arena_reset(&r->a);
        rc = bh_run_create(r, generated(r, what, t, i), err);
        if (rc < 0)
            return rc;
        if (i % LISTEN_EVERY == LISTEN_EVERY - 1) /* limits show while there is memory */
            bh_run_settle(r);
    }
    return 0;
}

/* ---- edits ----------------------------------------------------------------------------------- */

static bool set_replicas(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_add(a, obj, "spec: {replicas: %ld}", *(int64_t *)arg);
    return true;
}

static int action_scale(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    const char *name = bh_json_get_text(what, "name");
    int64_t n = bh_json_get_i64(what, "replicas", 0);
    const struct bh_sim_type *t;
    struct bh_sim_error e = {0};
    int rc = type_of(r, what, &t, err);

    if (rc < 0)
        return rc;
    const char *ns = namespace_of(t, what);
    return bh_sim_edit(r->w.sim, t, ns, name, NULL, BH_SIM_MAIN, set_replicas, &n, NULL, &e)
               ? refused(err, &e, t->kind, ns, name)
               : 0;
}

static int action_patch(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    const struct bh_sim_type *t;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
    int rc = type_of(r, what, &t, err);

    rc = rc < 0 ? rc : targets(r, t, what, &l, err);

    for (size_t i = 0; i < l.n && rc >= 0; i++) {
        const struct bh_sim_obj *o = l.v[i];
        struct bh_sim_error e = {0};
        struct bh_json *obj;
        bh_arena_reset(&r->a);
        const struct bh_json *merge = bh_json_get(what, "merge"), *json = bh_json_get(what, "json");
        const struct bh_json *p = merge ? merge : json ? json : bh_json_get(what, "strategic");
        const struct bh_json *doc = bh_sim_obj_tree(&r->a, o);
        p = p->type == BH_JSON_STRING ? parsed(&r->a, p->s.p) : p;
        rc = merge  ? bh_patch_merge(&r->a, doc, p, &obj, err)
             : json ? bh_patch_json(&r->a, doc, p, &obj, err)
                    : bh_patch_strategic(&r->a, o->type->kind, doc, p, &obj, err);
        rc = rc < 0 ? rc : known(obj, err);
        if (rc >= 0)
            bh_json_unset(bh_json_get(obj, "metadata"), "resourceVersion");
        if (rc >= 0 &&
            bh_sim_update(r->w.sim, t, o->ns, o->name, BH_SIM_WHOLE, &r->a, obj, NULL, &e))
            rc = refused(err, &e, t->kind, o->ns, o->name);
    }
    return rc;
}

static int delete_all(struct bh_run *r, const struct bh_sim_objs *l, int64_t grace_s,
                      struct bh_err *err)
{
    const struct bh_sim_delete_options o = {.grace_s = grace_s};

    for (size_t i = 0; i < l->n; i++) {
        struct bh_sim_error e = {0};
        if (bh_sim_delete(r->w.sim, l->v[i]->type, l->v[i]->ns, l->v[i]->name, &o, &e))
            return refused(err, &e, l->v[i]->type->kind, l->v[i]->ns, l->v[i]->name);
    }
    return 0;
}

static int action_delete(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
    int64_t grace = bh_field_duration(what, "grace", -1);
    const struct bh_sim_type *t;
    int rc = type_of(r, what, &t, err);

    rc = rc < 0 ? rc : targets(r, t, what, &l, err);
    return rc < 0 ? rc : delete_all(r, &l, grace < 0 ? -1 : grace / SECOND_NS, err);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool set_unschedulable(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    if (*(bool *)arg)
        bh_json_add(a, obj, "spec: {unschedulable: true}");
    else
        bh_json_unset(bh_json_get(obj, "spec"), "unschedulable");
    return true;
}

/* As kubectl drain --ignore-daemonsets: what a budget protects is asked again. */
static void evict_node(struct bh_run *r, void *arg)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = bh_sim_on_node(r->w.sim, arg);
    bool again = false;

    for (size_t i = 0; i < l.n; i++) {
        struct bh_sim_error e = {0};
        if (l.v[i]->deleting || bh_world_finished(l.v[i]) ||
            bh_streq(l.v[i]->owner_kind, "DaemonSet"))
            continue;
        again |= bh_sim_pod_evict(r->w.sim, l.v[i]->ns, l.v[i]->name, NULL, false, &e) == 429;
    }
    if (again)
        bh_run_later(r, bh_run_at(r) + EVICT_AGAIN_NS, evict_node, arg);
}

/* The nodes that the step names: first all of them are edited, then emptied, when they shall be. */
static int cordon(struct bh_run *r, const struct bh_json *what, bool on, bool evict,
                  struct bh_err *err)
{
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
    int rc = targets(r, nodes_type(), what, &l, err);

    for (size_t i = 0; i < l.n && rc >= 0; i++) {
        struct bh_sim_error e = {0};
        if (bh_sim_edit(r->w.sim, nodes_type(), "", l.v[i]->name, NULL, BH_SIM_MAIN,
                        set_unschedulable, &on, NULL, &e))
            rc = refused(err, &e, "Node", "", l.v[i]->name);
    }
    for (size_t i = 0; i < l.n && rc >= 0 && evict; i++)
        evict_node(r, bh_arena_strdup(&r->keep, l.v[i]->name));
    return rc;
}

static int action_cordon(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    return cordon(r, what, true, false, err);
}

static int action_uncordon(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    return cordon(r, what, false, false, err);
}

static int action_drain(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    return cordon(r, what, true, true, err);
}

struct failing {
    const char *node;
    bool back;
};

static bool set_kubelet(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_add(a, obj, "metadata: {annotations: {" BH_SIM_KUBELET "?: %s}}",
                ((const struct failing *)arg)->back ? "" : "stopped");
    return true;
}

/* The kubelet falls silent, or speaks again; conditions, taints and evictions follow. */
static void set_node_failing(struct bh_run *r, void *arg)
{
    struct failing *f = arg;

    (void)bh_sim_edit(r->w.sim, nodes_type(), "", f->node, NULL, BH_SIM_MAIN, set_kubelet, f, NULL,
                      NULL); /* a node that is gone cannot come back */
    bh_run_note(r, f->back ? "recovered" : "failed", "Node", NULL, f->node, NULL, NULL);
}

static int action_node_failure(struct bh_run *r, const struct bh_json *what, struct bh_err *err)
{
    int64_t back = bh_field_duration(what, "for", 0);
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs l = {0};
    int rc = targets(r, nodes_type(), what, &l, err);

    for (size_t i = 0; i < l.n && rc >= 0; i++) {
        struct failing *f = bh_arena_new_array(&r->keep, struct failing, 2);
        f[0].node = f[1].node = bh_arena_strdup(&r->keep, l.v[i]->name);
        f[1].back = true;
        set_node_failing(r, &f[0]);
        if (back)
            bh_run_later(r, bh_run_at(r) + back, set_node_failing, &f[1]);
    }
    return rc;
}

/* ---- churn ----------------------------------------------------------------------------------- */

struct churning {
    const struct bh_json *what;
    int64_t until_ns;
};

static void churn_once(struct bh_run *r, void *arg)
{
    struct churning *c = arg;
    const struct bh_json *n = bh_json_get(c->what, "delete");
    int64_t every = bh_field_duration(c->what, "every", 1);
    const struct bh_sim_type *pods = bh_sim_type_find("", "v1", "pods");
    BH_CLEANUP(bh_sim_objs_fini)
    struct bh_sim_objs l = bh_sim_listed(r->w.sim, pods, bh_json_get_str(c->what, "namespace"));
    struct bh_err err = {0};

    bh_run_select(&l, bh_json_get_str(c->what, "of"));
    draw(r, &l, bh_field_amount(n, (int64_t)l.n));
    int rc = delete_all(r, &l, -1, &err);
    if (rc < 0)
        bh_run_trouble(r, bh_err_prefix(&err, rc, "churn"), &err);
    if (bh_run_at(r) + every <= c->until_ns)
        bh_run_later(r, bh_run_at(r) + every, churn_once, c);
}

static int action_churn(struct bh_run *r, const struct bh_json *what, struct bh_err *err BH_UNUSED)
{
    struct churning *c = bh_arena_new(&r->keep, struct churning);

    *c = (struct churning){what, bh_run_at(r) + bh_field_duration(what, "for", 0)};
    churn_once(r, c);
    return 0;
}

static int action_done(struct bh_run *r, const struct bh_json *what BH_UNUSED,
                       struct bh_err *err BH_UNUSED)
{
    r->done = true;
    return 0;
}

const struct bh_action bh_scenario_actions[] = {
    {"create", action_create, false},     {"files", action_files, false},
    {"generate", action_generate, false}, {"scale", action_scale, false},
    {"patch", action_patch, true},        {"delete", action_delete, true},
    {"cordon", action_cordon, true},      {"uncordon", action_uncordon, true},
    {"drain", action_drain, true},        {"nodeFailure", action_node_failure, true},
    {"churn", action_churn, false},       {"load", bh_action_load, false},
    {"done", action_done, false},         {0}};
