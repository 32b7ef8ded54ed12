/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/meta.c - the rules of metadata, the same for every kind
 *
 * Upstream: apimachinery/pkg/api/validation/objectmeta.go, pkg/util/validation/validation.go,
 *           apiserver/pkg/registry/rest/meta.go
 */
#include "simulator/server/meta.h"

#define REORDER_MEMBERS_MAX 256 /* look-up by name is linear: beyond it order is left alone */
static int bad_type(struct bh_sim_error *e, const char *field, const char *wanted)
{
    return bh_sim_fail(e, 400, "BadRequest", "the object provided is invalid: %s must be %s", field,
                       wanted);
}

static bool is_string_map(const struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT)
        return false;
    bh_json_each(m, v) {
        if (m->type != BH_JSON_STRING)
            return false;
    }
    return true;
}

/* Absent and null are the same; types are checked here because everything later relies on them. */
static int check_types(struct bh_json *meta, struct bh_sim_error *e)
{
    enum { STRING, MAP, LIST };
    static const char *const wanted[] = {"a string", "a map of strings", "a list"};
    static const struct {
        const char *name;
        int type;
    } members[] = {{"name", STRING},       {"generateName", STRING},    {"namespace", STRING},
                   {"uid", STRING},        {"resourceVersion", STRING}, {"labels", MAP},
                   {"annotations", MAP},   {"ownerReferences", LIST},   {"finalizers", LIST},
                   {"managedFields", LIST}};
    for (struct bh_json *m = meta->c.first, *next; m; m = next) {
        next = m->next;
        if (m->type == BH_JSON_NULL)
            bh_json_remove(meta, m);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(members); i++) {
        struct bh_json *v = bh_json_get(meta, members[i].name);
        int type = members[i].type;
        if (!v)
            continue;
        if (type == MAP ? !is_string_map(v)
                        : v->type != (type == LIST ? BH_JSON_ARRAY : BH_JSON_STRING))
            return bad_type(e, members[i].name, wanted[type]);
        if (type != STRING && !v->c.n)
            bh_json_remove(meta, v);
    }
    return 0;
}

static void to_front(struct bh_json *obj, const char *key)
{
    struct bh_json *v = bh_json_get(obj, key);
    if (obj->c.first == v)
        return;
    struct bh_str name = v->key;
    bh_json_remove(obj, v);
    v->key = name;
    v->next = obj->c.first;
    obj->c.first = v;
    obj->c.n++;
}

struct bh_json *bh_sim_meta_begin(const struct bh_sim_type *t, const char *ns, struct bh_arena *a,
                                  struct bh_json *obj, struct bh_sim_error *e)
{
    if (!obj || obj->type != BH_JSON_OBJECT) {
        bad_type(e, "the body", "an object");
        return NULL;
    }
    struct bh_json *meta = bh_json_get(obj, "metadata");
    if (meta && meta->type != BH_JSON_OBJECT && meta->type != BH_JSON_NULL) {
        bad_type(e, "metadata", "an object");
        return NULL;
    }
    char api_version[80];
    bh_sim_type_api_version(t, api_version);
    const char *have = bh_json_get_str(obj, "apiVersion");
    if (!have || !bh_streq(have, api_version))
        bh_json_set_str(a, obj, "apiVersion", api_version);
    have = bh_json_get_str(obj, "kind");
    if (!have || !bh_streq(have, t->kind))
        bh_json_set_str(a, obj, "kind", t->kind);
    to_front(obj, "kind"); /* where people look for them */
    to_front(obj, "apiVersion");
    meta = bh_json_obj_at(a, obj, "metadata");
    if (check_types(meta, e))
        return NULL;
    const char *given = bh_json_get_str(meta, "namespace");
    if (!(t->flags & BH_SIM_NAMESPACED)) {
        bh_json_unset(meta, "namespace");
    } else if (given && *given && !bh_streq(given, ns)) {
        bh_sim_fail(e, 400, "BadRequest",
                    "the namespace of the provided object does not match the namespace sent on the "
                    "request");
        return NULL;
    } else if (!given || !*given) {
        bh_json_set_str(a, meta, "namespace", ns);
    }
    return meta;
}

/* ---- update ---------------------------------------------------------------------------------- */

void bh_sim_meta_keep(struct bh_arena *a, struct bh_json *meta, const struct bh_json *old,
                      enum bh_sim_sub sub)
{
    static const char *const kept[] = {"name",
                                       "generateName",
                                       "uid",
                                       "creationTimestamp",
                                       "generation",
                                       "deletionTimestamp",
                                       "deletionGracePeriodSeconds",
                                       "resourceVersion"};
    bh_json_unset(meta, "selfLink");
    const struct bh_json *owned = bh_json_get(old, "managedFields");
    if (owned && !bh_json_get(meta, "managedFields"))
        bh_json_set(a, meta, "managedFields", bh_json_clone(a, owned));
    for (size_t i = 0; i < BH_ARRAY_LEN(kept) + (sub == BH_SIM_STATUS); i++) {
        const char *key = i < BH_ARRAY_LEN(kept) ? kept[i] : "ownerReferences";
        const struct bh_json *v = bh_json_get(old, key);
        if (v)
            bh_json_set(a, meta, key, bh_json_clone(a, v));
        else
            bh_json_unset(meta, key);
    }
}

/* The members of obj in old's order first; equal ones become copies of old's. */
static void reorder(struct bh_arena *a, struct bh_json *obj, const struct bh_json *old, int depth)
{
    struct bh_json sorted = {.type = BH_JSON_OBJECT};
    if (obj->c.n > REORDER_MEMBERS_MAX || old->c.n > REORDER_MEMBERS_MAX)
        return;
    bh_json_each(m, old) {
        struct bh_json *v = bh_json_get(obj, m->key.p);
        if (!v)
            continue;
        struct bh_str key = v->key;
        bh_json_remove(obj, v);
        if (bh_json_equal(v, m))
            v = bh_json_clone(a, m);
        else if (depth > 0 && v->type == BH_JSON_OBJECT && m->type == BH_JSON_OBJECT)
            reorder(a, v, m, depth - 1);
        v->key = key;
        bh_json_push(&sorted, v);
    }
    for (struct bh_json *v; (v = obj->c.first);) {
        struct bh_str key = v->key;
        bh_json_remove(obj, v);
        v->key = key;
        bh_json_push(&sorted, v);
    }
    obj->c = sorted.c;
}

void bh_sim_meta_reorder(struct bh_arena *a, struct bh_json *obj, const struct bh_json *old)
{
    reorder(a, obj, old, 2);
}
