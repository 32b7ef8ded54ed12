/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench_objects.c - operations about nodes, namespaces, claims and objects of any kind
 *
 * Upstream: test/integration/scheduler_perf/{operations,dra,node_util,update}.go,
 * test/utils/runners.go; differences: a node gets its labels of a strategy before it is created,
 * not by a patch after it, and in order of creation, not of names.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>

#include "cli/bench_ops.h"
#include "simulator/trial/admit.h"
#include "common/data/yaml.h"
#include "simulator/admission/tree.h"

#define TEMPLATE_MAX_BYTES ((size_t)4 << 20)
#define NAME_TRIES         5

/* ---- templates ---------------------------------------------------------------------------------
 */

int bh_bench_template_read(struct bh_bench_world *w, const char *path, char **ret,
                           struct bh_err *err)
{
    const char *dir = w->target->file->dir;
    BH_CLEANUP(bh_freep)
    char *full = *path == '/' ? bh_strdup(path) : bh_asprintf("%s/%s", dir, path);
    size_t n;
    int rc = bh_read_file(full, TEMPLATE_MAX_BYTES, ret, &n);

    return rc < 0 ? bh_err_set(err, rc, "%s: %s", full, strerror(-rc)) : 0;
}

int bh_bench_object(struct bh_bench_world *w, const char *text, bool plain, int64_t index,
                    int64_t count, struct bh_json **ret, const struct bh_sim_type **ret_type,
                    struct bh_err *err)
{
    struct bh_buf b = {0};
    int rc = 0;

    bh_arena_reset(&w->arena);
    if (!plain)
        rc = bh_bench_render(&b, text, index, count, err);
    if (rc >= 0)
        rc = bh_yaml_parse(&w->arena, plain ? text : bh_buf_str(&b), plain ? strlen(text) : b.n,
                           BH_JSON_STRICT, ret, err);
    bh_buf_fini(&b);
    if (rc < 0)
        return rc;
    const char *kind = bh_json_get_str(*ret, "kind");
    if (bh_streq(bh_json_get_text(*ret, "apiVersion"), "resource.k8s.io/v1beta2"))
        bh_json_set_str(&w->arena, *ret, "apiVersion", "resource.k8s.io/v1"); /* the same schema */
    *ret_type = kind ? bh_sim_type_of_kind(bh_json_get_str(*ret, "apiVersion"), kind) : NULL;
    if (!*ret_type)
        return bh_err_set(err, -EINVAL, "kind %s of %s is not served here", kind ? kind : "(none)",
                          bh_json_get_text(*ret, "apiVersion"));
    if ((*ret_type)->pb)
        bh_bench_spell(*ret, (*ret_type)->pb);
    return 0;
}

struct bh_json *bh_bench_literal(struct bh_bench_world *w, const char *json)
{
    struct bh_json *v = NULL;

    int rc = bh_json_parse(&w->arena, json, strlen(json), 0, &v, NULL);
    bh_assert(rc == 0); /* it is ours */
    return v;
}

/* What is not served because nothing here reads it. */
static bool left_out(struct bh_bench_world *w, const char *text)
{
    if (!strstr(text, "kind: DeviceTaintRule"))
        return false;
    bh_bench_note(w->report, w->target->name, "objects of kind DeviceTaintRule are left out: %s",
                  bh_sched_gate_instead("DRADeviceTaintRules"));
    return true;
}

/* Error texts say which file the object came from. */
static int blame(struct bh_err *err, int rc, const char *path)
{
    return rc < 0 ? bh_err_prefix(err, rc, "%s", path) : rc;
}

int bh_bench_give_class(struct bh_bench_world *w, struct bh_json *pod, struct bh_err *err)
{
    struct bh_json *spec = bh_tree_obj(pod, "spec");
    struct bh_json *v = bh_json_get(spec, "priority");

    if (!v || v->type != BH_JSON_NUMBER || bh_tree_has(spec, "priorityClassName"))
        return 0;
    const struct bh_sim_type *t = bh_sim_type_find("scheduling.k8s.io", "v1", "priorityclasses");
    const char *name = bh_arena_printf(&w->arena, "perf-%s", v->s.p);
    int rc = 0;
    bh_json_set_str(&w->arena, spec, "priorityClassName", name);
    if (!bh_sim_get(w->cluster.sim, t, "", name)) {
        struct bh_json *c = bh_bench_literal(w, "{\"metadata\":{}}");
        bh_json_set_str(&w->arena, bh_json_get(c, "metadata"), "name", name);
        bh_json_set(&w->arena, c, "value", bh_json_clone(&w->arena, v));
        rc = bh_bench_create(w, t, "", c, NULL, err);
    }
    return rc;
}

/* ---- namespaces --------------------------------------------------------------------------------
 */

static const struct bh_sim_type *namespaces_type(void)
{
    return bh_sim_type_find("", "v1", "namespaces");
}

int bh_bench_know_namespace(struct bh_bench_world *w, const char *ns, bool may_exist,
                            struct bh_err *err)
{
    struct bh_bench_namespace *known = bh_bench_namespace(w, ns);
    int rc;

    if (known->known)
        return 0;
    bh_arena_reset(&w->arena);
    struct bh_json *o = bh_bench_literal(w, "{\"metadata\":{}}");
    bh_json_set_str(&w->arena, bh_json_get(o, "metadata"), "name", ns);
    rc = bh_bench_create(w, namespaces_type(), "", o, NULL, err);
    if (rc == -EEXIST && (may_exist || bh_streq(ns, "default")))
        rc = 0;
    known->known = rc >= 0;
    return rc < 0 ? bh_err_prefix(err, rc, "namespace %s", ns) : 0;
}

int bh_bench_create_namespaces(struct bh_bench_world *w, const struct bh_bench_step *s,
                               struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    const struct bh_sim_type *t = namespaces_type();
    int rc = 0;

    if (s->namespace_template)
        rc = bh_bench_template_read(w, s->namespace_template, &text, err);
    for (int64_t i = 0; i < s->count && rc >= 0; i++) {
        BH_CLEANUP(bh_freep) char *name = bh_asprintf("%s-%" PRId64, s->prefix ? s->prefix : "", i);
        struct bh_json *o;
        if (text) {
            rc = blame(err, bh_bench_object(w, text, true, 0, 0, &o, &t, err),
                       s->namespace_template);
        } else {
            bh_arena_reset(&w->arena);
            o = bh_bench_literal(w, "{\"metadata\":{}}");
        }
        if (rc < 0)
            break;
        bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, o, "metadata"), "name", name);
        rc = bh_bench_create(w, t, "", o, NULL, err);
        if (rc == -EEXIST)
            rc = 0;
        bh_bench_namespace(w, name)->known = true;
    }
    return rc < 0 ? rc : bh_bench_settle(w, err);
}

/* ---- nodes -------------------------------------------------------------------------------------
 */

static const char base_node[] =
    "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{},\"status\":{\"capacity\":"
    "{\"pods\":\"110\",\"cpu\":\"4\",\"memory\":\"32Gi\"},\"phase\":\"Running\",\"conditions\":"
    "[{\"type\":\"Ready\",\"status\":\"True\"}]}}";

static void label_node(struct bh_bench_world *w, const struct bh_bench_step *s,
                       struct bh_json *labels, int64_t i)
{
    const struct bh_json *values = bh_json_get_list(s->label_strategy, "labelValues");
    const char *key = bh_json_get_str(s->label_strategy, "labelKey");
    const char *unique = bh_json_get_str(s->unique_label_strategy, "labelKey");

    if (key && values && values->c.n)
        bh_json_set(&w->arena, labels, key,
                    bh_json_clone(&w->arena, bh_json_at(values, (size_t)i % values->c.n)));
    if (unique) {
        char uuid[37];
        bh_uuid4(uuid);
        bh_json_set_str(&w->arena, labels, unique, uuid);
    }
}

/* Hook of the folder nodedeclaredfeatures: Feature1 to FeatureN, sorted as strings. */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void declare_features(struct bh_bench_world *w, struct bh_json *node)
{
    int64_t n = bh_bench_param(w->target->workload, "numNodeDeclaredFeatures", 0);
    struct bh_json *list = NULL;

    if (!bh_streq(w->target->file->topic, "nodedeclaredfeatures") || n <= 0 || n > 1000)
        return;
    const char **names = bh_arena_new_array(&w->arena, const char *, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        names[i] = bh_arena_printf(&w->arena, "Feature%" PRId64, i + 1);
    qsort(names, (size_t)n, sizeof *names, by_text);
    list =
        bh_tree_dflt_arr(&w->arena, bh_json_obj_at(&w->arena, node, "status"), "declaredFeatures");
    for (int64_t i = 0; list && i < n; i++)
        bh_json_push(list, bh_json_new_cstr(&w->arena, names[i]));
    bh_bench_note(w->report, w->target->name,
                  "nodes declare the made-up features, but pods need none of them: which features "
                  "a pod needs is built in");
}

static int one_node(struct bh_bench_world *w, const struct bh_bench_step *s, const char *text,
                    int64_t i, struct bh_sim_obj **ret, struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("", "v1", "nodes");
    struct bh_json *o;
    int rc = 0;

    for (int tries = 0; tries < NAME_TRIES; tries++) {
        if (text) {
            rc = blame(err, bh_bench_object(w, text, false, i, s->count, &o, &t, err),
                       s->node_template);
            if (rc < 0)
                return rc;
        } else {
            bh_arena_reset(&w->arena);
            o = bh_bench_literal(w, base_node);
        }
        struct bh_json *meta = bh_json_obj_at(&w->arena, o, "metadata");
        const char *name = bh_json_get_text(meta, "name");
        const char *prefix = bh_json_get_str(meta, "generateName");
        if (!*name) {
            char suffix[6];
            bh_sim_suffix(w->cluster.sim, suffix);
            name = prefix ? bh_arena_printf(&w->arena, "%s%s", prefix, suffix)
                          : bh_arena_printf(&w->arena, "node-%u-%s", s->index, suffix);
            bh_json_set_str(&w->arena, meta, "name", name);
        }
        struct bh_json *labels = bh_json_obj_at(&w->arena, meta, "labels");
        bh_json_set_str(&w->arena, labels, "kubernetes.io/hostname", name);
        label_node(w, s, labels, i);
        bh_admit_vouch_for(&w->arena, o);
        declare_features(w, o);
        rc = bh_bench_create(w, t, "", o, ret, err);
        if (rc != -EEXIST)
            return rc;
    }
    return rc;
}

/* nodeAllocatableStrategy: its part about nodes has no effect at a real API server either. */
static int create_csi_node(struct bh_bench_world *w, const struct bh_bench_step *s,
                           const char *node, struct bh_err *err)
{
    const struct bh_json *plugins = bh_json_get_list(s->allocatable_strategy, "migratedPlugins");
    const struct bh_json *csi = bh_json_get(s->allocatable_strategy, "csiNodeAllocatable");
    struct bh_json *o = bh_bench_literal(
        w, "{\"apiVersion\":\"storage.k8s.io/v1\",\"kind\":\"CSINode\",\"metadata\":{"
           "\"annotations\":{}},\"spec\":{\"drivers\":[]}}");
    struct bh_json *meta = bh_json_get(o, "metadata");
    struct bh_json *drivers = bh_json_path(o, "spec.drivers");
    struct bh_buf b = {0};

    bh_json_set_str(&w->arena, meta, "name", node);
    bh_json_each (p, plugins) {
        bh_buf_addf(&b, "%s%s", b.n ? "," : "", bh_json_cstr(p) ? p->s.p : "");
    }
    bh_json_set_str(&w->arena, bh_json_get(meta, "annotations"),
                    "storage.alpha.kubernetes.io/migrated-plugins", bh_buf_str(&b));
    bh_buf_fini(&b);
    bh_json_each (d, csi && csi->type == BH_JSON_OBJECT ? csi : NULL) {
        struct bh_json *e = bh_tree_push_obj(&w->arena, drivers);
        bh_json_set_str(&w->arena, e, "name", d->key.p);
        bh_json_set_str(&w->arena, e, "nodeID", node);
        bh_json_set_i64(&w->arena, bh_json_obj_at(&w->arena, e, "allocatable"), "count",
                        bh_json_get_i64(d, "count", 0));
    }
    return bh_bench_create(w, bh_sim_type_find("storage.k8s.io", "v1", "csinodes"), "", o, NULL,
                           err);
}

int bh_bench_create_nodes(struct bh_bench_world *w, const struct bh_bench_step *s,
                          struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    int rc = 0;

    if (s->node_template)
        rc = bh_bench_template_read(w, s->node_template, &text, err);
    w->total = (size_t)s->count;
    for (int64_t i = 0; i < s->count && rc >= 0; i++) {
        struct bh_sim_obj *node = NULL;
        rc = one_node(w, s, text, i, &node, err);
        if (rc >= 0 && s->allocatable_strategy)
            rc = create_csi_node(w, s, node->name, err);
        bh_sim_obj_unref(node);
        if (rc >= 0)
            rc = bh_bench_settle(w, err);
        w->done = (size_t)i;
    }
    return rc;
}

/* ---- any kind ----------------------------------------------------------------------------------
 */

static int check_scope(const struct bh_sim_type *t, const char *ns, struct bh_err *err)
{
    bool namespaced = t->flags & BH_SIM_NAMESPACED;

    if (namespaced == (ns != NULL))
        return 0;
    return bh_err_set(err, -EINVAL, "namespace: %s is %s", t->kind,
                      namespaced ? "namespaced, it needs one" : "not namespaced, it can have none");
}

static int create_many(struct bh_bench_world *w, const struct bh_bench_step *s, bool plain,
                       struct bh_err *err)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    const struct bh_sim_type *t;
    struct bh_json *o;
    int rc = bh_bench_template_read(w, s->template_, &text, err);

    if (rc >= 0 && left_out(w, text))
        return 0;
    if (rc >= 0 && s->namespace_)
        rc = bh_bench_know_namespace(w, s->namespace_, false, err);
    w->total = (size_t)s->count;
    for (int64_t i = 0; i < s->count && rc >= 0; i++) {
        rc = bh_bench_object(w, text, plain, i, s->count, &o, &t, err);
        if (rc >= 0)
            rc = check_scope(t, s->namespace_, err);
        if (rc >= 0 && bh_streq(t->kind, "Pod"))
            rc = bh_bench_give_class(w, o, err);
        if (rc >= 0)
            rc = bh_bench_create(w, t, s->namespace_ ? s->namespace_ : "", o, NULL, err);
        rc = blame(err, rc, s->template_);
        if (rc >= 0)
            rc = bh_bench_settle(w, err);
        w->done = (size_t)i;
    }
    return rc;
}

int bh_bench_create_any(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    return create_many(w, s, false, err);
}

int bh_bench_create_claims(struct bh_bench_world *w, const struct bh_bench_step *s,
                           struct bh_err *err)
{
    return create_many(w, s, true, err);
}

/* What admission plugins wrote into the pod, which upstream runs without. */
static void keep_admitted(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                          const char *name, struct bh_json *o)
{
    static const char *const keys[] = {"priority", "priorityClassName", "preemptionPolicy",
                                       "serviceAccount", "serviceAccountName"};
    const struct bh_sim_obj *stored = bh_sim_get(w->cluster.sim, t, ns, name);
    struct bh_json *spec = bh_tree_obj(o, "spec");

    if (!stored || !spec || !bh_streq(t->kind, "Pod"))
        return;
    const struct bh_json *old = bh_tree_obj(bh_sim_obj_tree(&w->arena, stored), "spec");
    for (size_t i = 0; i < BH_ARRAY_LEN(keys); i++)
        if (bh_tree_has(old, keys[i]) && !bh_tree_has(spec, keys[i]))
            bh_json_set(&w->arena, spec, keys[i],
                        bh_json_clone(&w->arena, bh_json_get(old, keys[i])));
}

static int put_object(struct bh_bench_world *w, const struct bh_bench_step *s,
                      const struct bh_sim_type *t, struct bh_json *o, struct bh_err *err)
{
    const char *name = bh_tree_str(o, "metadata.name");
    const char *ns = s->namespace_ ? s->namespace_ : "";
    struct bh_sim_error e = {0};
    int rc = 0;

    if (!name)
        return bh_err_set(err, -EINVAL, "metadata.name: Required value");
    keep_admitted(w, t, ns, name, o);
    struct bh_json *status = bh_json_clone(&w->arena, o);
    if (s->subresources && s->subresources->c.n)
        return bh_err_set(err, -ENOTSUP, "subresources: %s: not served by the built-in API server",
                          bh_json_first(s->subresources)->s.p);
    if (bh_sim_update(w->cluster.sim, t, ns, name, BH_SIM_MAIN, &w->arena, o, NULL, &e))
        rc = bh_err_set(err, -EINVAL, "%s", e.message);
    if (rc < 0 || !(t->flags & BH_SIM_HAS_STATUS))
        return rc;
    if (bh_sim_update(w->cluster.sim, t, ns, name, BH_SIM_STATUS, &w->arena, status, NULL, &e))
        return bh_err_set(err, -EINVAL, "status: %s", e.message);
    return 0;
}

int bh_bench_update_any(struct bh_bench_world *w, const struct bh_bench_step *s, struct bh_err *err)
{
    int64_t tick = s->per_second > 0 ? (int64_t)(1e9 / s->per_second) : 0;
    BH_CLEANUP(bh_freep) char *text = NULL;
    const struct bh_sim_type *t;
    struct bh_json *o;
    int rc = bh_bench_template_read(w, s->template_, &text, err);

    if (rc >= 0 && s->namespace_)
        rc = bh_bench_know_namespace(w, s->namespace_, false, err);
    w->total = (size_t)s->count;
    for (int64_t i = 0; i < s->count && rc >= 0; i++) {
        if (tick)
            bh_bench_pass(w, w->cluster.now_ns + tick);
        rc = bh_bench_object(w, text, false, i, s->count, &o, &t, err);
        if (rc >= 0)
            rc = check_scope(t, s->namespace_, err);
        if (rc >= 0 && bh_streq(t->kind, "Node"))
            bh_admit_vouch_for(&w->arena, o);
        if (rc >= 0)
            rc = put_object(w, s, t, o, err);
        rc = blame(err, rc, s->template_);
        if (rc >= 0)
            rc = bh_bench_settle(w, err);
        w->done = (size_t)i;
    }
    return rc;
}

/* ---- devices -----------------------------------------------------------------------------------
 */

int bh_bench_allocate_claims(struct bh_bench_world *w, const struct bh_bench_step *s,
                             struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    struct bh_sim_objs l = {0};
    int rc = 0;

    bh_sim_list(w->cluster.sim, t, s->namespace_, &l);
    w->total = l.n;
    for (size_t i = 0; i < l.n && rc >= 0; i++) {
        w->done = i;
        if (strstr(l.v[i]->json, "\"allocation\":"))
            continue;
        rc = bh_bench_allocate(w, l.v[i], err);
        if (rc < 0)
            bh_err_prefix(err, rc, "claim %s/%s", l.v[i]->ns, l.v[i]->name);
        else
            rc = bh_bench_settle(w, err);
    }
    bh_sim_objs_fini(&l);
    return rc;
}

static struct bh_json *slice_of(struct bh_bench_world *w, const struct bh_bench_step *s,
                                const char *node)
{
    struct bh_json *o = bh_bench_literal(
        w, "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":{},"
           "\"spec\":{\"pool\":{\"resourceSliceCount\":1},\"devices\":[]}}");
    struct bh_json *spec = bh_json_get(o, "spec"), *pool = bh_json_get(spec, "pool");

    bh_json_set_str(&w->arena, bh_json_get(o, "metadata"), "name", node);
    bh_json_set_str(&w->arena, spec, "driver", s->driver);
    bh_json_set_str(&w->arena, spec, "nodeName", node);
    bh_json_set_str(&w->arena, pool, "name", node);
    for (int64_t i = 0; i < s->max_claims; i++) {
        struct bh_json *d = bh_bench_literal(
            w, "{\"attributes\":{\"model\":{\"string\":\"A100\"},\"family\":{\"string\":\"GPU\"},"
               "\"driverVersion\":{\"version\":\"1.2.3\"}},\"capacity\":{\"memory\":{\"value\":"
               "\"1Gi\"}}}");
        bh_json_set_str(&w->arena, d, "name", bh_arena_printf(&w->arena, "instance-%" PRId64, i));
        struct bh_json *numa =
            bh_json_obj_at(&w->arena, bh_json_get(d, "attributes"), "dra.example.com/numa");
        bh_json_set_i64(&w->arena, numa, "int", i);
        bh_json_push(bh_json_get(spec, "devices"), d);
    }
    return o;
}

int bh_bench_create_driver(struct bh_bench_world *w, const struct bh_bench_step *s,
                           struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceslices");
    struct bh_sim_objs l = {0};
    int rc = 0;

    bh_sim_list(w->cluster.sim, bh_sim_type_find("", "v1", "nodes"), NULL, &l);
    w->total = l.n;
    for (size_t i = 0; i < l.n && rc >= 0; i++) {
        w->done = i;
        if (fnmatch(s->nodes ? s->nodes : "*", l.v[i]->name, FNM_PATHNAME) != 0)
            continue;
        bh_arena_reset(&w->arena);
        rc = bh_bench_create(w, t, "", slice_of(w, s, l.v[i]->name), NULL, err);
        if (rc >= 0)
            rc = bh_bench_settle(w, err);
    }
    bh_sim_objs_fini(&l);
    return rc;
}
