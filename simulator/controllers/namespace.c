/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/controllers/namespace.c - what every namespace has, and a dying one's end
 *
 * A namespace that is being deleted is emptied, BH_CTL_BATCH objects at a time, pods before everything
 * else; each object that goes queues it again, and when nothing is left its finalizer is taken away,
 * which ends it. What remains, and which finalizers hold it, its conditions say.
 * Upstream: pkg/controller/namespace/deletion, pkg/controller/serviceaccount,
 * pkg/controller/certificates/rootcacertpublisher (v1.36).
 */
#include "simulator/controllers/controllers.h"

#define ROOT_CA "kube-root-ca.crt"

static void make(struct bh_sim_controllers *c, const struct bh_sim_type *t, const char *ns,
                 const char *name)
{
    if (!bh_sim_get(c->sim, t, ns, name))
        bh_sim_create(c->sim, t, ns, &c->arena,
                      bh_json_make(&c->arena, "metadata: {name: %s}", name), NULL, NULL);
}

/* Empty without TLS: that it is there is what pods wait for. */
static bool set_root_ca(void *arg, struct bh_arena *a, struct bh_json *map)
{
    const char *ca = bh_sim_ca_pem(arg);
    const struct bh_json *data = bh_tree_obj(map, "data"), *is = bh_json_get(data, "ca.crt");

    if (bh_tree_len(data) == 1 && bh_json_cstr(is) && bh_streq(bh_json_cstr(is), ca))
        return false;
    struct bh_json *wanted = bh_json_new(a, BH_JSON_OBJECT);
    bh_json_set_str(a, wanted, "ca.crt", ca);
    bh_json_set(a, map, "data", wanted);
    return true;
}

static bool finalize(void *arg BH_UNUSED, struct bh_arena *a BH_UNUSED, struct bh_json *ns)
{
    struct bh_json *list = bh_tree_arr(ns, "spec.finalizers");

    bh_json_each(f, list)
        if (bh_streq(bh_json_cstr(f) ? bh_json_cstr(f) : "", "kubernetes"))
            return bh_json_remove(list, f);
    return false;
}

/* ---- emptying -------------------------------------------------------------------------------- */

/* What is left in a dying namespace; texts in the arena of the sync. */
struct remains {
    struct bh_sim_controllers *c;
    const char **kinds; /* "pods. has 1 resource instances" */
    size_t n_kinds, cap_kinds;
    struct bh_json *finalizers; /* finalizer: how many objects have it */
};

static void count_finalizers(struct remains *r, const struct bh_sim_objs *l)
{
    struct bh_arena *a = &r->c->arena;

    for (size_t i = 0; i < l->n; i++) {
        if (!l->v[i]->has_finalizers)
            continue;
        bh_json_each(f, bh_tree_arr(bh_sim_obj_tree(a, l->v[i]), "metadata.finalizers")) {
            const char *name = bh_json_cstr(f);
            int64_t n = 0;
            if (!name)
                continue;
            (void)bh_json_i64(bh_json_get(r->finalizers, name), &n);
            bh_json_set_i64(a, r->finalizers, name, n + 1);
        }
    }
}

/* Deletes up to *budget objects; true when objects of the type are left. */
static bool empty_type(struct remains *r, const struct bh_sim_type *t, const char *ns,
                       size_t *budget)
{
    struct bh_sim_controllers *c = r->c;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs before = bh_sim_listed(c->sim, t, ns);

    for (size_t i = 0; i < before.n && *budget; i++) {
        if (before.v[i]->deleting)
            continue;
        bh_ctl_delete(c, before.v[i]);
        (*budget)--;
    }
    if (!before.n)
        return false;
    BH_CLEANUP(bh_sim_objs_fini) struct bh_sim_objs after = bh_sim_listed(c->sim, t, ns);
    if (!after.n)
        return false;
    if (r->n_kinds < r->cap_kinds)
        r->kinds[r->n_kinds++] = bh_arena_printf(&c->arena, "%s.%s has %zu resource instances",
                                                 t->plural, t->group, after.n);
    count_finalizers(r, &after);
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "a, b", sorted. */
static const char *joined(struct bh_arena *a, const char **v, size_t n)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    qsort(v, n, sizeof(const char *), by_text);
    for (size_t i = 0; i < n; i++)
        bh_buf_addf(&b, "%s%s", i ? ", " : "", v[i]);
    return bh_arena_strdup(a, b.n ? bh_buf_str(&b) : "");
}

static void condition(struct remains *r, struct bh_arena *a, struct bh_json *ns, const char *type,
                      const char *reason, const char *message)
{
    bool remains = strncmp(reason, "Some", 4) == 0;

    bh_tree_set_condition(a, ns, type, remains ? "True" : "False", reason, message,
                          bh_ctl_now(r->c, a));
}

static bool tell_remains(void *arg, struct bh_arena *a, struct bh_json *ns)
{
    struct remains *r = arg;
    size_t n = bh_tree_len(r->finalizers), i = 0;
    const char **by = bh_arena_array(a, n + 1, sizeof(const char *));

    bh_json_each(f, r->finalizers) {
        int64_t count = 0;
        (void)bh_json_i64(f, &count);
        by[i++] = bh_arena_printf(a, "%s in %lld resource instances", f->key.p, (long long)count);
    }
    condition(r, a, ns, "NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered",
              "All resources successfully discovered");
    condition(r, a, ns, "NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
              "All legacy kube types successfully parsed");
    condition(r, a, ns, "NamespaceDeletionContentFailure", "ContentDeleted",
              "All content successfully deleted, may be waiting on finalization");
    condition(
        r, a, ns, "NamespaceContentRemaining", "SomeResourcesRemain",
        bh_arena_printf(a, "Some resources are remaining: %s", joined(a, r->kinds, r->n_kinds)));
    if (n)
        condition(r, a, ns, "NamespaceFinalizersRemaining", "SomeFinalizersRemain",
                  bh_arena_printf(a, "Some content in the namespace has finalizers remaining: %s",
                                  joined(a, by, n)));
    else
        condition(r, a, ns, "NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
                  "All content-preserving finalizers finished");
    return true;
}

/* True when something is left. */
static bool empty(struct remains *r, const char *ns, size_t *budget)
{
    struct bh_sim_controllers *c = r->c;
    bool left = false;

    if (empty_type(r, c->t.pods, ns, budget))
        return true;
    for (size_t i = 0; i < bh_sim_type_count(c->sim) && *budget; i++) {
        const struct bh_sim_type *t = bh_sim_type_at(c->sim, i);
        if (t && (t->flags & BH_SIM_NAMESPACED) && bh_sim_type_stores(t) && bh_sim_count(c->sim, t))
            left = empty_type(r, t, ns, budget) || left;
    }
    return left;
}

void bh_ctl_sync_namespace(struct bh_sim_controllers *c, struct bh_sim_obj *o)
{
    struct remains r = {.c = c, .finalizers = bh_json_new(&c->arena, BH_JSON_OBJECT)};
    size_t budget = BH_CTL_BATCH;

    if (!o->deleting) {
        make(c, c->t.serviceaccounts, o->name, "default");
        make(c, c->t.configmaps, o->name, ROOT_CA);
        const struct bh_sim_obj *ca = bh_sim_get(c->sim, c->t.configmaps, o->name, ROOT_CA);
        if (ca)
            bh_ctl_edit(c, ca, BH_SIM_WHOLE, set_root_ca, c->sim);
        return;
    }
    r.cap_kinds = bh_sim_type_count(c->sim);
    r.kinds = bh_arena_array(&c->arena, r.cap_kinds + 1, sizeof(const char *));
    bool left = empty(&r, o->name, &budget);
    if (!budget)
        bh_ctl_again(c, BH_CTL_NAMESPACE, o, 0);
    else if (left)
        bh_ctl_edit(c, o, BH_SIM_WHOLE, tell_remains, &r);
    else
        bh_ctl_edit(c, o, BH_SIM_WHOLE, finalize, NULL);
}

void bh_ctl_namespace_commit(struct bh_sim_controllers *c, enum bh_sim_change change,
                             struct bh_sim_obj *old BH_UNUSED, struct bh_sim_obj *obj)
{
    struct bh_map *dying = &c->terminating;
    size_t n = strlen(obj->name);

    if (obj->type != c->t.namespaces) {
        bool standard = obj->type == c->t.serviceaccounts
                            ? bh_streq(obj->name, "default")
                            : obj->type == c->t.configmaps && bh_streq(obj->name, ROOT_CA);
        if (standard && change != BH_SIM_ADDED)
            bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->ns);
        if (dying->len && change == BH_SIM_DELETED && *obj->ns &&
            bh_map_get(dying, obj->ns, strlen(obj->ns)))
            bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->ns);
        return;
    }
    if (change == BH_SIM_DELETED) {
        bh_map_del(dying, obj->name, n);
    } else if (obj->deleting) {
        bh_map_put(dying, obj->name, n, c);
        bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->name);
    } else if (change == BH_SIM_ADDED) {
        bh_ctl_enqueue(c, BH_CTL_NAMESPACE, "", obj->name);
    }
}
