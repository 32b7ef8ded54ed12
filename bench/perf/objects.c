/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/objects.c - operations about nodes, namespaces, claims and objects of any kind
 *
 * Upstream: test/integration/scheduler_perf/{operations,dra,node_util,update}.go,
 * test/utils/runners.go; differences: a node gets its labels of a strategy before it is created,
 * not by a patch after it, and in order of creation, not of names; nothing waits until the
 * scheduler knows the slices of a driver.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>

#include "bench/perf/perf.h"
#include "simulator/server/tree.h"
#include "simulator/trial/admit.h"

#define TEMPLATE_MAX_BYTES ((size_t)4 << 20)

/* Error texts say which file the object came from. */
static int blame(struct bh_err *err, int rc, const char *path)
{
    return rc < 0 ? bh_err_prefix(err, rc, "%s", path) : rc;
}

/* A tree, through the driver. */
static int create_tree(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                       const struct bh_json *o, bool may_exist, struct bh_err *err)
{
    bh_buf_reset(&w->text);
    bh_json_write(&w->text, o);
    const struct bh_bench_new n = {
        .type = t, .ns = ns, .json = {w->text.p, w->text.n}, .may_exist = may_exist};
    return w->driver->create(w, &n, err);
}

/* ---- templates ------------------------------------------------------------------------------- */

/* Priority admission is off at upstream: a priority that is given as a number gets a class. */
static int give_class(struct bh_bench_world *w, struct bh_arena *a, struct bh_json *pod,
                      struct bh_err *err)
{
    struct bh_json *spec = bh_tree_obj(pod, "spec");
    struct bh_json *v = bh_json_get(spec, "priority");

    if (!v || v->type != BH_JSON_NUMBER || bh_tree_has(spec, "priorityClassName"))
        return 0;
    const char *name = bh_arena_printf(a, "perf-%s", v->s.p);
    bh_json_set_str(a, spec, "priorityClassName", name);
    return create_tree(w, bh_sim_type_find("scheduling.k8s.io", "v1", "priorityclasses"), "",
                       bh_json_make(a,
                                    "apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, "
                                    "metadata: {name: %s}, value: %p",
                                    name, bh_json_clone(a, v)),
                       true, err);
}

/* Of a definition the first version. */
static void learn_custom(struct bh_bench_world *w, const struct bh_json *definition)
{
    const struct bh_json *spec = bh_json_get(definition, "spec"),
                         *names = bh_json_get(spec, "names");
    struct bh_bench_custom *k = bh_calloc(1, sizeof *k);

    k->texts[0] = bh_strdup(bh_json_get_text(spec, "group"));
    k->texts[1] =
        bh_strdup(bh_json_get_text(bh_json_first(bh_json_get_list(spec, "versions")), "name"));
    k->texts[2] = bh_strdup(bh_json_get_text(names, "kind"));
    k->texts[3] = bh_strdup(bh_json_get_text(names, "plural"));
    k->type = (struct bh_sim_type){
        .group = k->texts[0],
        .version = k->texts[1],
        .kind = k->texts[2],
        .plural = k->texts[3],
        .flags = BH_SIM_CUSTOM |
                 (bh_streq(bh_json_get_text(spec, "scope"), "Namespaced") ? BH_SIM_NAMESPACED : 0)};
    k->next = w->customs;
    w->customs = k;
}

static const struct bh_sim_type *find_custom(const struct bh_bench_world *w,
                                             const struct bh_json *obj)
{
    char version[160];

    for (const struct bh_bench_custom *k = w->customs; k; k = k->next) {
        snprintf(version, sizeof version, "%s/%s", k->type.group, k->type.version);
        if (bh_streq(bh_json_get_text(obj, "apiVersion"), version) &&
            bh_streq(bh_json_get_text(obj, "kind"), k->type.kind))
            return &k->type;
    }
    return NULL;
}

struct edits { /* what is done to each template, and what its reader wants */
    struct bh_bench_world *w;
    bh_bench_edit *more;
    void *arg;
    const struct bh_sim_type *custom; /* found: the template's kind */
};

static int edit_any(void *arg, struct bh_arena *a, struct bh_json *obj, struct bh_err *err)
{
    struct edits *e = arg;
    const char *kind = bh_json_get_text(obj, "kind");
    int rc = e->more ? e->more(e->arg, a, obj, err) : 0;

    if (rc >= 0 && bh_streq(kind, "Pod"))
        rc = give_class(e->w, a, obj, err);
    if (bh_streq(kind, "Node"))
        bh_admit_vouch_for(a, obj);
    if (bh_streq(kind, "CustomResourceDefinition"))
        learn_custom(e->w, obj);
    e->custom = find_custom(e->w, obj);
    if (!bh_tree_has(obj, "metadata"))
        (void)bh_json_obj_at(a, obj, "metadata");
    return rc;
}

static int open_file(struct bh_bench_world *w, const char *path, bool plain, struct edits *e,
                     struct bh_bench_template *ret, struct bh_err *err)
{
    BH_CLEANUP(bh_freep)
    char *full = *path == '/' ? bh_strdup(path) : bh_asprintf("%s/%s", w->target->file->dir, path);
    BH_CLEANUP(bh_freep) char *text = NULL;
    size_t n;
    int rc = bh_read_file(full, TEMPLATE_MAX_BYTES, &text, &n);

    if (rc < 0)
        return bh_err_set(err, rc, "%s: %s", full, strerror(-rc));
    rc = bh_bench_template_init(ret, path, text, plain, edit_any, e, err);
    if (rc >= 0 && !ret->type)
        ret->type = e->custom;
    return rc;
}

int bh_bench_open_template(struct bh_bench_world *w, const char *path, const char *base, bool plain,
                           bh_bench_edit *edit, void *arg, struct bh_bench_template *ret,
                           struct bh_err *err)
{
    struct edits e = {w, edit, arg, NULL};

    *ret = (struct bh_bench_template){0};
    int rc = path ? open_file(w, path, plain, &e, ret, err)
                  : bh_bench_template_init(ret, "template", base, true, edit, arg, err);
    if (rc < 0 || ret->type)
        return rc;
    (void)bh_err_set(err, -EINVAL,
                     "%s: its kind is not served here, and no CustomResourceDefinition before it "
                     "makes it",
                     path ? path : "template");
    return -EINVAL;
}

/* Object number index of a template, as text in w->text. */
static int object_text(struct bh_bench_world *w, const struct bh_bench_template *t, int64_t index,
                       int64_t count, struct bh_err *err)
{
    bh_buf_reset(&w->text);
    return blame(err, bh_bench_render(&w->text, t->json, index, count, err), t->path);
}

int bh_bench_create(struct bh_bench_world *w, const struct bh_bench_template *t, int64_t index,
                    int64_t count, const char *ns, bool may_exist, struct bh_err *err)
{
    int rc = object_text(w, t, index, count, err);
    const struct bh_bench_new n = {
        .type = t->type, .ns = ns, .json = {w->text.p, w->text.n}, .may_exist = may_exist};

    return rc < 0 ? rc : blame(err, w->driver->create(w, &n, err), t->path);
}

/* The same as a tree. */
static int object_tree(struct bh_bench_world *w, const struct bh_bench_template *t, int64_t index,
                       int64_t count, struct bh_json **ret, struct bh_err *err)
{
    int rc = object_text(w, t, index, count, err);

    bh_arena_reset(&w->arena);
    if (rc >= 0)
        rc = blame(err, bh_json_parse(&w->arena, w->text.p, w->text.n, 0, ret, err), t->path);
    return rc;
}

/* ---- namespaces ------------------------------------------------------------------------------ */

static const char base_namespace[] = "{apiVersion: v1, kind: Namespace, metadata: {}}";

int bh_bench_know_namespace(struct bh_bench_world *w, const char *ns, bool may_exist,
                            struct bh_err *err)
{
    struct bh_bench_namespace *known = bh_bench_namespace(w, ns);

    if (known->known)
        return 0;
    bh_arena_reset(&w->arena);
    int rc = create_tree(
        w, bh_sim_type_find("", "v1", "namespaces"), "",
        bh_json_make(&w->arena, "apiVersion: v1, kind: Namespace, metadata: {name: %s}", ns),
        may_exist || bh_streq(ns, "default"), err);
    known->known = rc >= 0;
    return rc < 0 ? bh_err_prefix(err, rc, "namespace %s", ns) : 0;
}

static int edit_namespace(void *arg, struct bh_arena *a, struct bh_json *o, struct bh_err *err)
{
    const struct bh_bench_step *s = arg;

    (void)err;
    bh_json_set_str(a, bh_json_obj_at(a, o, "metadata"), "name",
                    bh_arena_printf(a, "%s-{{.Index}}", s->prefix ? s->prefix : ""));
    return 0;
}

int bh_bench_create_namespaces(struct bh_bench_world *w, const struct bh_bench_step *s,
                               struct bh_err *err)
{
    struct bh_bench_template t;
    char name[300];
    int rc = bh_bench_open_template(w, s->namespace_template, base_namespace, true, edit_namespace,
                                    (void *)(uintptr_t)s, &t, err);

    for (int64_t i = -1; bh_bench_next(w, s->count, &i, &rc, err);) {
        rc = bh_bench_create(w, &t, i, s->count, "", true, err);
        snprintf(name, sizeof name, "%s-%" PRId64, s->prefix ? s->prefix : "", i);
        bh_bench_namespace(w, name)->known = true;
    }
    bh_bench_template_fini(&t);
    return rc;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static const char base_node[] =
    "{apiVersion: v1, kind: Node, metadata: {}, status: {capacity: {pods: '110', cpu: '4', "
    "memory: 32Gi}, phase: Running, conditions: [{type: Ready, status: 'True'}]}}";

/* Hook of the folder nodedeclaredfeatures: Feature1 to FeatureN, sorted as strings. */
static void declare_features(struct bh_bench_world *w, struct bh_json *node)
{
    int64_t n = bh_bench_param(w->target->workload, "numNodeDeclaredFeatures", 0);

    if (!bh_streq(w->target->file->topic, "nodedeclaredfeatures") || n <= 0 || n > 1000)
        return;
    const char **names = bh_arena_new_array(&w->arena, const char *, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        names[i] = bh_arena_printf(&w->arena, "Feature%" PRId64, i + 1);
    qsort(names, (size_t)n, sizeof *names, bh_by_text);
    struct bh_json *list =
        bh_tree_dflt_arr(&w->arena, bh_json_obj_at(&w->arena, node, "status"), "declaredFeatures");
    for (int64_t i = 0; list && i < n; i++)
        bh_json_push(list, bh_json_new_cstr(&w->arena, names[i]));
    bh_bench_note(w->report, w->target->name,
                  "nodes declare the made-up features, but pods need none of them: which features "
                  "a pod needs is built in");
}

/* A name that no other node of ours has. */
static const char *draw_name(struct bh_bench_world *w, const struct bh_bench_step *s,
                             const char *prefix)
{
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789"; /* upstream's */
    const char *name;

    do {
        char suffix[6] = {0};
        for (unsigned i = 0; i < 5; i++)
            suffix[i] = alphabet[bh_rand_below(&w->rand, sizeof alphabet - 1)];
        name = prefix ? bh_arena_printf(&w->arena, "%s%s", prefix, suffix)
                      : bh_arena_printf(&w->arena, "node-%u-%s", s->index, suffix);
    } while (bh_map_put(&w->drawn, name, strlen(name), w));
    return name;
}

static int one_node(struct bh_bench_world *w, const struct bh_bench_step *s,
                    const struct bh_bench_template *t, int64_t i, const char **ret_name,
                    struct bh_err *err)
{
    struct bh_json *o;
    int rc = object_tree(w, t, i, s->count, &o, err);

    if (rc < 0)
        return rc;
    struct bh_json *meta = bh_json_obj_at(&w->arena, o, "metadata");
    const char *name = bh_json_get_text(meta, "name");
    if (!*name) {
        name = draw_name(w, s, bh_json_get_str(meta, "generateName"));
        bh_json_set_str(&w->arena, meta, "name", name);
    }
    struct bh_json *labels = bh_json_obj_at(&w->arena, meta, "labels");
    bh_json_add(&w->arena, labels, "kubernetes.io/hostname: %s", name);
    const struct bh_json *values = bh_json_get_list(s->label_strategy, "labelValues");
    const char *key = bh_json_get_str(s->label_strategy, "labelKey");
    const char *unique = bh_json_get_str(s->unique_label_strategy, "labelKey");
    if (key && values && values->c.n)
        bh_json_set(&w->arena, labels, key,
                    bh_json_clone(&w->arena, bh_json_at(values, (size_t)i % values->c.n)));
    if (unique) {
        char uuid[37];
        bh_uuid4_rand(&w->rand, uuid);
        bh_json_set_str(&w->arena, labels, unique, uuid);
    }
    declare_features(w, o);
    *ret_name = name;
    return blame(err, create_tree(w, t->type, "", o, false, err), t->path);
}

/* nodeAllocatableStrategy: its part about nodes has no effect at a real API server either. */
static int create_csi_node(struct bh_bench_world *w, const struct bh_bench_step *s,
                           const char *node, struct bh_err *err)
{
    const struct bh_json *plugins = bh_json_get_list(s->allocatable_strategy, "migratedPlugins");
    const struct bh_json *csi = bh_json_get(s->allocatable_strategy, "csiNodeAllocatable");
    struct bh_json *drivers = bh_json_new(&w->arena, BH_JSON_ARRAY);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_json_each(p, plugins)
        bh_buf_addf(&b, "%s%s", b.n ? "," : "", bh_json_cstr(p) ? p->s.p : "");
    bh_json_each(d, csi && csi->type == BH_JSON_OBJECT ? csi : NULL)
        bh_json_append(&w->arena, drivers, "name: %s, nodeID: %s, allocatable: {count: %ld}",
                       d->key.p, node, bh_json_get_i64(d, "count", 0));
    struct bh_json *o = bh_json_make(
        &w->arena,
        "apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {annotations: "
        "{storage.alpha.kubernetes.io/migrated-plugins: %s}, name: %s}, spec: {drivers: %p}",
        bh_buf_str(&b), node, drivers);
    return create_tree(w, bh_sim_type_find("storage.k8s.io", "v1", "csinodes"), "", o, false, err);
}

int bh_bench_create_nodes(struct bh_bench_world *w, const struct bh_bench_step *s,
                          struct bh_err *err)
{
    struct bh_bench_template t;
    const char *name;
    int rc = bh_bench_open_template(w, s->node_template, base_node, false, NULL, NULL, &t, err);

    if (rc >= 0 && !bh_streq(t.type->kind, "Node"))
        rc = bh_err_set(err, -EINVAL, "%s: kind: must be Node", t.path);
    for (int64_t i = -1; bh_bench_next(w, s->count, &i, &rc, err);) {
        rc = one_node(w, s, &t, i, &name, err);
        if (rc >= 0 && s->allocatable_strategy)
            rc = create_csi_node(w, s, name, err);
    }
    bh_bench_template_fini(&t);
    return rc;
}

/* ---- any kind -------------------------------------------------------------------------------- */

static int check_scope(const struct bh_sim_type *t, const char *ns, struct bh_err *err)
{
    bool namespaced = t->flags & BH_SIM_NAMESPACED;

    if (namespaced == (ns != NULL))
        return 0;
    return bh_err_set(err, -EINVAL, "namespace: %s is %s", t->kind,
                      namespaced ? "namespaced, it needs one" : "not namespaced, it can have none");
}

int bh_bench_create_any(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    const char *ns = s->namespace_;
    struct bh_bench_template t;
    bool plain = bh_streq(s->op->name, "createResourceClaims"); /* as upstream */
    int rc = bh_bench_open_template(w, s->template_, NULL, plain, NULL, NULL, &t, err);

    if (!t.type && t.json && strstr(t.json, "\"kind\":\"DeviceTaintRule\"")) {
        bh_bench_note(w->report, w->target->name,
                      "objects of kind DeviceTaintRule are left out: %s",
                      bh_sched_gate_instead("DRADeviceTaintRules")); /* nothing here reads it */
        bh_bench_template_fini(&t);
        return 0;
    }
    if (rc >= 0)
        rc = blame(err, check_scope(t.type, ns, err), t.path);
    if (rc >= 0 && ns)
        rc = bh_bench_know_namespace(w, ns, false, err);
    for (int64_t i = -1; bh_bench_next(w, s->count, &i, &rc, err);)
        rc = bh_bench_create(w, &t, i, s->count, ns ? ns : "", false, err);
    bh_bench_template_fini(&t);
    return rc;
}

/* What admission plugins wrote into the pod, which upstream runs without. */
static int keep_admitted(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                         const char *name, struct bh_json *o, struct bh_err *err)
{
    static const char *const keys[] = {"priority", "priorityClassName", "preemptionPolicy",
                                       "serviceAccount", "serviceAccountName"};
    struct bh_json *spec = bh_tree_obj(o, "spec"), *stored;

    if (!spec || !bh_streq(t->kind, "Pod"))
        return 0;
    int rc = w->driver->get(w, t, ns, name, &stored, err);
    const struct bh_json *old = rc >= 0 && stored ? bh_tree_obj(stored, "spec") : NULL;
    for (size_t i = 0; old && i < BH_ARRAY_LEN(keys); i++)
        if (bh_tree_has(old, keys[i]) && !bh_tree_has(spec, keys[i]))
            bh_json_set(&w->arena, spec, keys[i],
                        bh_json_clone(&w->arena, bh_json_get(old, keys[i])));
    return rc;
}

static int put_object(struct bh_bench_world *w, const struct bh_bench_step *s,
                      const struct bh_bench_template *t, struct bh_json *o, struct bh_err *err)
{
    const char *name = bh_tree_str(o, "metadata.name");
    const char *ns = s->namespace_ ? s->namespace_ : "";

    if (!name)
        return bh_err_set(err, -EINVAL, "metadata.name: Required value");
    int rc = keep_admitted(w, t->type, ns, name, o, err);
    bh_buf_reset(&w->text);
    bh_json_write(&w->text, o);
    const struct bh_str json = {w->text.p, w->text.n};
    bh_json_each(sub, s->subresources) {
        if (rc >= 0)
            rc = w->driver->update(w, t->type, ns, name, bh_json_cstr(sub) ? sub->s.p : "", json,
                                   err);
    }
    if (rc >= 0 && !(s->subresources && s->subresources->c.n))
        rc = w->driver->update(w, t->type, ns, name, "", json, err);
    if (rc >= 0 && t->type->flags & BH_SIM_HAS_STATUS)
        rc = w->driver->update(w, t->type, ns, name, "status", json, err);
    return rc;
}

int bh_bench_update_any(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    int64_t tick = s->per_second > 0 ? (int64_t)(1e9 / s->per_second) : 0;
    int64_t due = w->driver->now(w);
    struct bh_bench_template t;
    struct bh_json *o;
    int rc = bh_bench_open_template(w, s->template_, NULL, false, NULL, NULL, &t, err);

    if (rc >= 0)
        rc = blame(err, check_scope(t.type, s->namespace_, err), t.path);
    if (rc >= 0 && s->namespace_)
        rc = bh_bench_know_namespace(w, s->namespace_, false, err);
    for (int64_t i = -1; bh_bench_next(w, s->count, &i, &rc, err);) {
        if (tick)
            rc = w->driver->pass(w, due += tick, err);
        if (rc >= 0)
            rc = object_tree(w, &t, i, s->count, &o, err);
        if (rc >= 0)
            rc = blame(err, put_object(w, s, &t, o, err), t.path);
    }
    bh_bench_template_fini(&t);
    return rc;
}

/* ---- devices --------------------------------------------------------------------------------- */

int bh_bench_allocate_claims(struct bh_bench_world *w, const struct bh_bench_step *s,
                             struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    struct bh_bench_victims l BH_CLEANUP(bh_bench_victims_fini) = {.unallocated = true};
    int rc = w->driver->list(w, t, s->namespace_, NULL, bh_bench_add_victim, &l, err);

    for (int64_t i = -1; bh_bench_next(w, (int64_t)l.n, &i, &rc, err);) {
        rc = w->driver->allocate(w, l.v[i].ns, l.v[i].name, err);
        if (rc < 0)
            bh_err_prefix(err, rc, "claim %s/%s", l.v[i].ns, l.v[i].name);
    }
    return rc;
}

static struct bh_json *slice_of(struct bh_bench_world *w, const struct bh_bench_step *s,
                                const char *node)
{
    struct bh_json *devices = bh_json_new(&w->arena, BH_JSON_ARRAY);

    for (int64_t i = 0; i < s->max_claims; i++)
        bh_json_append(&w->arena, devices,
                       "attributes: {model: {string: A100}, family: {string: GPU}, driverVersion: "
                       "{version: 1.2.3}, dra.example.com/numa: {int: %ld}}, capacity: {memory: "
                       "{value: 1Gi}}, name: %s",
                       i, bh_arena_printf(&w->arena, "instance-%" PRId64, i));
    return bh_json_make(&w->arena,
                        "apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: "
                        "%s}, spec: {pool: {resourceSliceCount: 1, name: %s}, devices: %p, "
                        "driver: %s, nodeName: %s}",
                        node, node, devices, s->driver, node);
}

int bh_bench_create_driver(struct bh_bench_world *w, const struct bh_bench_step *s,
                           struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceslices");
    struct bh_bench_victims l BH_CLEANUP(bh_bench_victims_fini) = {.glob = s->nodes};
    int rc = w->driver->list(w, bh_sim_type_find("", "v1", "nodes"), NULL, NULL,
                             bh_bench_add_victim, &l, err);

    for (int64_t i = -1; bh_bench_next(w, (int64_t)l.n, &i, &rc, err);) {
        bh_arena_reset(&w->arena);
        rc = create_tree(w, t, "", slice_of(w, s, l.v[i].name), false, err);
    }
    return rc;
}
