/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/custom.c - the types of this server: the table's, and those of
 * CustomResourceDefinitions
 *
 * Owns:       for each definition one store (bucket) and a type for each version. Types and buckets
 *             stay where they are until the server ends, for objects, watches and controllers point
 *             to them; what a type says (names, schema, columns) lives in the definition's arena
 *             and is replaced as a whole when the definition changes.
 * Invariants: all versions of a definition share the store of the version that was the storage
 *             version at first (status.storedVersions[0], which survives a restart): without
 *             conversion they differ in apiVersion alone. A type that
 *             custom->served is false of is not to be reached by clients.
 * Deletion:   as upstream: the finalizer holds the definition until its objects are gone; then the
 *             types are withdrawn and watches end.
 * Upstream:   apiextensions-apiserver/pkg/apiserver/customresource_handler.go,
 *             pkg/controller/{establish,finalizer}
 */
#include "simulator/server/custom.h"

#include "simulator/crd/crd.h"
#include "simulator/server/docs.h"
#include "simulator/server/tree.h"
#include "simulator/server/watch.h"
#include <stdio.h>

#define CLEAN_BATCH    2000
#define CLEAN_AGAIN_NS ((int64_t)1000000000)

struct version {
    struct bh_sim_type type;
    struct bh_sim_custom custom;
};
struct definition {
    struct bh_sim *sim;
    char *name; /* of the definition: PLURAL.GROUP */
    struct bh_arena arena;
    struct bh_sim_bucket bucket;
    struct version **v;
    size_t n;
    bool gone, cleaning;
};
struct bh_sim_customs {
    struct definition **d;
    size_t n;
    struct version **v; /* of all definitions, in the order they came */
    size_t n_v;
};

/* ---- looking up ------------------------------------------------------------------------------ */

size_t bh_sim_type_count(const struct bh_sim *s)
{
    return bh_sim_n_types + (s->customs ? s->customs->n_v : 0);
}

const struct bh_sim_type *bh_sim_type_at(const struct bh_sim *s, size_t i)
{
    if (i < bh_sim_n_types)
        return &bh_sim_types[i];
    const struct version *v = s->customs->v[i - bh_sim_n_types];
    return v->custom.live ? &v->type : NULL;
}

const struct bh_sim_type *bh_sim_find_type(const struct bh_sim *s, const char *group,
                                           const char *version, const char *plural)
{
    const struct bh_sim_type *t = bh_sim_type_find(group, version, plural);
    if (t && !bh_sim_type_served(s, t))
        t = NULL;
    for (size_t i = bh_sim_n_types; !t && i < bh_sim_type_count(s); i++) {
        const struct bh_sim_type *c = bh_sim_type_at(s, i);
        if (c && c->custom->served && bh_streq(c->plural, plural) && bh_streq(c->group, group) &&
            bh_streq(c->version, version))
            t = c;
    }
    return t;
}

const struct bh_sim_type *bh_sim_find_kind(const struct bh_sim *s, const char *api_version,
                                           const char *kind)
{
    const struct bh_sim_type *t = bh_sim_type_of_kind(api_version, kind);
    for (size_t i = bh_sim_n_types; !t && i < bh_sim_type_count(s); i++) {
        const struct bh_sim_type *c = bh_sim_type_at(s, i);
        char av[80];
        if (!c || !bh_streq(c->kind, kind))
            continue;
        bh_sim_type_api_version(c, av);
        if (!api_version || bh_streq(av, api_version))
            t = c;
    }
    return t;
}

size_t bh_sim_bucket_count(const struct bh_sim *s)
{
    return bh_sim_n_types + (s->customs ? s->customs->n : 0);
}

struct bh_sim_bucket *bh_sim_bucket_at(const struct bh_sim *s, size_t i)
{
    return i < bh_sim_n_types ? &s->buckets[i] : &s->customs->d[i - bh_sim_n_types]->bucket;
}

const struct bh_json *bh_sim_custom_adopt(struct bh_sim *s, const struct bh_json *obj,
                                          const struct bh_sim_type **ret_t)
{
    const char *av = bh_json_get_text(obj, "apiVersion"), *kind = bh_json_get_text(obj, "kind");
    size_t group = strcspn(av, "/");
    for (size_t i = bh_sim_n_types; i < bh_sim_type_count(s); i++) {
        const struct bh_sim_type *t = bh_sim_type_at(s, i);
        char now[80];
        if (!t || !bh_streq(t->kind, kind) || strlen(t->group) != group ||
            memcmp(t->group, av, group) != 0)
            continue;
        *ret_t = t->custom->stored;
        bh_sim_type_api_version(*ret_t, now);
        struct bh_json *copy = bh_json_clone(&s->arena, obj);
        bh_json_set_str(&s->arena, copy, "apiVersion", now);
        return copy;
    }
    return obj;
}

/* ---- what a definition says ------------------------------------------------------------------ */

static struct definition *find_definition(struct bh_sim *s, const char *name)
{
    for (size_t i = 0; s->customs && i < s->customs->n; i++) {
        if (!s->customs->d[i]->gone && bh_streq(s->customs->d[i]->name, name))
            return s->customs->d[i];
    }
    return NULL;
}

static struct version *version_at(struct definition *d, const char *name)
{
    struct bh_sim_customs *all = d->sim->customs;
    for (size_t i = 0; i < d->n; i++) {
        if (bh_streq(d->v[i]->type.version, name))
            return d->v[i];
    }
    struct version *v = bh_calloc(1, sizeof(*v));
    v->type.custom = &v->custom;
    d->v = bh_reallocarray(d->v, d->n + 1, sizeof(struct version *));
    d->v[d->n++] = v;
    all->v = bh_reallocarray(all->v, all->n_v + 1, sizeof(struct version *));
    all->v[all->n_v++] = v;
    return v;
}

static const char *csv(struct bh_arena *a, const struct bh_json *list, const char *member,
                       const char *more)
{
    struct bh_buf b = {0};
    bh_buf_adds(&b, more);
    bh_json_each(m, list) {
        const char *s = member ? bh_json_get_str(m, member) : bh_json_cstr(m);
        s = s && member && *s == '.' ? s + 1 : s;
        if (s && *s)
            bh_buf_addf(&b, "%s%s", b.n ? "," : "", s);
    }
    const char *text = bh_arena_strdup(a, bh_buf_str(&b));
    bh_buf_fini(&b);
    return text;
}

static void fill_names(struct definition *d, struct bh_sim_type *t, const struct bh_json *spec)
{
    struct bh_arena *a = &d->arena;
    const struct bh_json *names = bh_json_get(spec, "names");
    t->group = bh_json_get_text(spec, "group");
    t->kind = bh_json_get_text(names, "kind");
    t->plural = bh_json_get_text(names, "plural");
    t->singular = bh_json_get_text(names, "singular");
    t->short_names = csv(a, bh_json_get(names, "shortNames"), NULL, "");
    t->categories = csv(a, bh_json_get(names, "categories"), NULL, "");
    t->verbs = BH_SIM_ALL_VERBS;
    t->flags = BH_SIM_CUSTOM | BH_SIM_GENERATION;
    if (bh_streq(bh_json_get_text(spec, "scope"), "Namespaced"))
        t->flags |= BH_SIM_NAMESPACED;
}

/* The store belongs to the first storage version for good; all others are seen through it. */
static void settle_storage(struct definition *d, const struct bh_sim_type *stored)
{
    char av[80];
    bh_sim_type_api_version(stored, av);
    for (size_t i = 0; i < d->n; i++) {
        struct version *v = d->v[i];
        v->custom.stored = stored;
        v->custom.bucket = &d->bucket;
        v->custom.live = true;
        v->type.stored_as = &v->type == stored ? NULL : bh_arena_strdup(&d->arena, av);
    }
    d->bucket.type = stored;
}

static void read_definition(struct definition *d, const struct bh_sim_obj *obj)
{
    struct bh_arena old = d->arena;
    const struct bh_sim_type *stored = d->n ? d->v[0]->custom.stored : NULL;
    bh_arena_init(&d->arena, 0);
    const struct bh_json *tree = bh_sim_obj_tree(&d->arena, obj), *spec = bh_json_get(tree, "spec");
    const struct bh_json *versions = bh_json_get(spec, "versions");
    const char *first = bh_json_cstr(bh_json_at(bh_json_path(tree, "status.storedVersions"), 0));
    bool good = bh_tree_condition_true(tree, "Established");
    for (size_t i = 0; i < d->n; i++) { /* one that the definition names no longer keeps its name */
        fill_names(d, &d->v[i]->type, spec);
        d->v[i]->type.version = bh_arena_strdup(&d->arena, d->v[i]->type.version);
        d->v[i]->type.fields = "";
        bh_crd_rules_free(d->v[i]->custom.rules);
        d->v[i]->custom = (struct bh_sim_custom){0};
    }
    bh_json_each(ver, versions) {
        struct version *v = version_at(d, bh_json_get_text(ver, "name"));
        const struct bh_json *subs = bh_json_get(ver, "subresources");
        fill_names(d, &v->type, spec);
        v->type.version = bh_json_get_text(ver, "name");
        v->type.fields = csv(&d->arena, bh_json_get(ver, "selectableFields"), "jsonPath", "");
        if (bh_json_get(subs, "status"))
            v->type.flags |= BH_SIM_HAS_STATUS;
        if (bh_json_get(subs, "scale"))
            v->type.flags |= BH_SIM_HAS_SCALE;
        v->custom.schema = bh_json_path(ver, "schema.openAPIV3Schema");
        v->custom.rules = bh_crd_rules_new(v->custom.schema, NULL, "", NULL);
        v->custom.columns = bh_json_get_list(ver, "additionalPrinterColumns");
        v->custom.scale = bh_json_get(subs, "scale");
        v->custom.served = bh_json_get_bool(ver, "served", false);
        v->custom.served = v->custom.served && good;
        v->custom.terminating = obj->deleting;
        if (!stored &&
            (first ? bh_streq(first, v->type.version) : bh_json_get_bool(ver, "storage", false)))
            stored = &v->type;
    }
    if (d->n)
        settle_storage(d, stored ? stored : &d->v[0]->type);
    bh_arena_fini(&old);
}

/* ---- its end --------------------------------------------------------------------------------- */

static bool drop_finalizer(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    struct bh_json *meta = bh_json_get(obj, "metadata"), *l = bh_json_get(meta, "finalizers");
    (void)arg;
    (void)a;
    bh_json_each(m, l) {
        if (m->type == BH_JSON_STRING && bh_str_eqc(m->s, BH_SIM_CRD_FINALIZER)) {
            bh_json_remove(l, m);
            break;
        }
    }
    if (l && !l->c.n)
        bh_json_unset(meta, "finalizers");
    return true;
}

static void clean(void *arg)
{
    struct definition *d = arg;
    struct bh_sim_objs l = {0};
    size_t left = 0;
    d->cleaning = false;
    if (d->gone)
        return;
    bh_sim_list(d->sim, d->bucket.type, NULL, &l);
    for (size_t i = 0; i < l.n && i < CLEAN_BATCH; i++) {
        if (!l.v[i]->deleting)
            bh_sim_delete(d->sim, l.v[i]->type, l.v[i]->ns, l.v[i]->name, NULL, NULL);
    }
    bool more = l.n > CLEAN_BATCH;
    bh_sim_objs_fini(&l);
    left = bh_sim_count(d->sim, d->bucket.type);
    if (!left) {
        bh_sim_edit(d->sim, bh_sim_type_find(BH_SIM_CRD_GROUP, "v1", BH_SIM_CRD_PLURAL), "",
                    d->name, NULL, BH_SIM_WHOLE, drop_finalizer, NULL, NULL, NULL);
        return;
    }
    d->cleaning = true; /* what is left has finalizers, or its turn is next */
    bh_sim_after(d->sim, more ? 0 : CLEAN_AGAIN_NS, clean, d);
}

void bh_sim_custom_empty(struct bh_sim *s, const struct bh_sim_obj *obj)
{
    const struct definition *d = find_definition(s, obj->name);
    struct bh_sim_objs l = {0};
    if (!d || !d->n)
        return;
    bh_sim_list(s, d->bucket.type, NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        struct bh_sim_slot *slot = bh_sim_slot_get(s, l.v[i]->type, l.v[i]->ns, l.v[i]->name);
        if (slot)
            bh_sim_commit_delete(s, slot);
    }
    bh_sim_objs_fini(&l);
}

/* What is left of a definition that is gone: its types' names, for those who still point to them. */
static void forget(struct definition *d)
{
    struct bh_arena old = d->arena;

    bh_arena_init(&d->arena, 0);
    for (size_t i = 0; i < d->n; i++) {
        struct bh_sim_type *t = &d->v[i]->type;
        struct bh_sim_custom *c = &d->v[i]->custom;
        const char **names[] = {&t->group,    &t->version,     &t->kind,       &t->plural,
                                &t->singular, &t->short_names, &t->categories, &t->stored_as};
        for (size_t k = 0; k < BH_ARRAY_LEN(names); k++)
            *names[k] = *names[k] ? bh_arena_strdup(&d->arena, *names[k]) : NULL;
        t->fields = "";
        bh_crd_rules_free(c->rules);
        *c = (struct bh_sim_custom){.stored = c->stored, .bucket = c->bucket};
    }
    bh_arena_fini(&old);
}

void bh_sim_custom_commit(struct bh_sim *s, const struct bh_sim_obj *obj, bool gone)
{
    struct definition *d = find_definition(s, obj->name);
    bh_sim_docs_drop(s);
    if (gone) {
        if (d) {
            d->gone = true;
            for (size_t i = 0; i < d->n; i++)
                d->v[i]->custom.served = d->v[i]->custom.live = false;
            bh_sim_watch_end_all(&d->bucket);
            bh_sim_bucket_clear(d->sim, &d->bucket);
            forget(d);
        }
        return;
    }
    if (!d) {
        if (!s->customs)
            s->customs = bh_calloc(1, sizeof(*s->customs));
        d = bh_calloc(1, sizeof(*d));
        d->sim = s;
        d->name = bh_strdup(obj->name);
        d->bucket.evicted_rv = d->bucket.last_rv = s->rv;
        s->customs->d = bh_reallocarray(s->customs->d, s->customs->n + 1, sizeof(*s->customs->d));
        s->customs->d[s->customs->n++] = d;
    }
    read_definition(d, obj);
    if (obj->deleting && !d->cleaning) {
        d->cleaning = true;
        bh_sim_after(s, 0, clean, d);
    }
}

void bh_sim_customs_fini(struct bh_sim *s)
{
    struct bh_sim_customs *all = s->customs;
    for (size_t i = 0; all && i < all->n; i++) {
        bh_arena_fini(&all->d[i]->arena);
        free(all->d[i]->v);
        free(all->d[i]->name);
        free(all->d[i]);
    }
    for (size_t i = 0; all && i < all->n_v; i++) {
        bh_crd_rules_free(all->v[i]->custom.rules);
        free(all->v[i]);
    }
    if (all) {
        free(all->d);
        free(all->v);
    }
    free(all);
    s->customs = NULL;
}
