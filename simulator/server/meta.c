/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/meta.c - the rules of metadata, the same for every kind
 *
 * Upstream: apimachinery/pkg/api/validation/objectmeta.go, pkg/util/validation/validation.go,
 *           apiserver/pkg/registry/rest/meta.go
 */
#include "simulator/server/meta.h"

#include "common/k8s/selector.h"
#include <stdio.h>

#define ANNOTATION_BYTES_MAX ((size_t)256 * 1024)
#define REORDER_MEMBERS_MAX  256 /* look-up by name is linear: beyond it order is left alone */
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
    static const char *const strings[] = {"name", "generateName", "namespace", "uid",
                                          "resourceVersion"};
    static const char *const maps[] = {"labels", "annotations"};
    static const char *const lists[] = {"ownerReferences", "finalizers", "managedFields"};
    for (struct bh_json *m = meta->c.first, *next; m; m = next) {
        next = m->next;
        if (m->type == BH_JSON_NULL)
            bh_json_remove(meta, m);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(strings); i++) {
        const struct bh_json *v = bh_json_get(meta, strings[i]);
        if (v && v->type != BH_JSON_STRING)
            return bad_type(e, strings[i], "a string");
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(maps); i++) {
        struct bh_json *v = bh_json_get(meta, maps[i]);
        if (v && !is_string_map(v))
            return bad_type(e, maps[i], "a map of strings");
        if (v && !v->c.n)
            bh_json_remove(meta, v);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        struct bh_json *v = bh_json_get(meta, lists[i]);
        if (v && v->type != BH_JSON_ARRAY)
            return bad_type(e, lists[i], "a list");
        if (v && !v->c.n)
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

/* ---- validation ------------------------------------------------------------------------------ */

static const char *quoted(struct bh_buf *b, const char *s, size_t n)
{
    bh_buf_reset(b);
    bh_buf_add_json_str(b, s, BH_MIN(n, (size_t)120));
    return bh_buf_str(b);
}

static bool valid_segment(const char *s)
{
    return !bh_streq(s, ".") && !bh_streq(s, "..") && !strpbrk(s, "/%");
}

static void check_name(const struct bh_sim_type *t, const char *name, struct bh_buf *b,
                       struct bh_sim_error *e)
{
    size_t n = strlen(name);
    if (!n) {
        bh_sim_field_error(e, "metadata.name", "Required value", NULL,
                           "name or generateName is required");
    } else if (n > 253) {
        bh_sim_field_error(e, "metadata.name", "Invalid value", quoted(b, name, n),
                           "must be no more than 253 characters");
    } else if (t->flags & BH_SIM_NAME_FREE) {
        if (!valid_segment(name))
            bh_sim_field_error(e, "metadata.name", "Invalid value", quoted(b, name, n),
                               "may not contain '/' or '%%'");
    } else if (t->flags & BH_SIM_NAME_LABEL) {
        if (n > 63)
            bh_sim_field_error(e, "metadata.name", "Invalid value", quoted(b, name, n),
                               "must be no more than 63 characters");
        else if (!bh_valid_dns1123_label(name, n))
            bh_sim_field_error(e, "metadata.name", "Invalid value", quoted(b, name, n),
                               BH_SIM_LABEL_TEXT);
    } else if (!bh_valid_dns1123_subdomain(name, n)) {
        bh_sim_field_error(e, "metadata.name", "Invalid value", quoted(b, name, n),
                           BH_SIM_SUBDOMAIN_TEXT);
    }
}

static void check_labels(const struct bh_json *labels, struct bh_buf *b, struct bh_sim_error *e)
{
    bh_json_each(l, labels) {
        if (!bh_valid_label_key(l->key.p, l->key.n))
            bh_sim_field_error(e, "metadata.labels", "Invalid value", quoted(b, l->key.p, l->key.n),
                               BH_SIM_KEY_TEXT);
        if (l->s.n > 63)
            bh_sim_field_error(e, "metadata.labels", "Invalid value", quoted(b, l->s.p, l->s.n),
                               "must be no more than 63 bytes");
        else if (!bh_valid_label_value(l->s.p, l->s.n))
            bh_sim_field_error(e, "metadata.labels", "Invalid value", quoted(b, l->s.p, l->s.n),
                               BH_SIM_VALUE_TEXT);
    }
}

static bool valid_annotation_key(const char *s, size_t n)
{
    char lower[320];
    if (n >= sizeof(lower))
        return false;
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]);
    return bh_valid_label_key(lower, n);
}

static void check_annotations(const struct bh_json *annotations, struct bh_buf *b,
                              struct bh_sim_error *e)
{
    size_t total = 0;
    bh_json_each(m, annotations) {
        total += m->key.n + m->s.n;
        if (!valid_annotation_key(m->key.p, m->key.n))
            bh_sim_field_error(e, "metadata.annotations", "Invalid value",
                               quoted(b, m->key.p, m->key.n), BH_SIM_KEY_TEXT);
    }
    if (total > ANNOTATION_BYTES_MAX)
        bh_sim_field_error(e, "metadata.annotations", "Too long", NULL,
                           "must have at most %zu bytes", ANNOTATION_BYTES_MAX);
}

static void check_owners(const struct bh_json *refs, struct bh_sim_error *e)
{
    size_t i = 0;
    unsigned controllers = 0;
    bh_json_each(r, refs) {
        static const char *const needed[] = {"apiVersion", "kind", "name", "uid"};
        for (size_t k = 0; k < BH_ARRAY_LEN(needed); k++) {
            const char *v = bh_json_get_str(r, needed[k]);
            if (v && *v)
                continue;
            char field[96];
            snprintf(field, sizeof(field), "metadata.ownerReferences[%zu].%s", i, needed[k]);
            bh_sim_field_error(e, field, "Invalid value", "\"\"", "must not be empty");
        }
        controllers += bh_json_get_bool(r, "controller", false);
        i++;
    }
    if (controllers > 1)
        bh_sim_field_error(e, "metadata.ownerReferences", "Invalid value", NULL,
                           "Only one reference can have Controller set to true");
}

void bh_sim_meta_validate(const struct bh_sim_type *t, const char *name, const struct bh_json *meta,
                          struct bh_sim_error *e)
{
    struct bh_buf b = {0};
    check_name(t, name, &b, e);
    check_labels(bh_json_get(meta, "labels"), &b, e);
    check_annotations(bh_json_get(meta, "annotations"), &b, e);
    check_owners(bh_json_get(meta, "ownerReferences"), e);
    bh_json_each(f, bh_json_get(meta, "finalizers")) {
        const char *s = bh_json_cstr(f);
        if (!s || !bh_valid_label_key(s, strlen(s)))
            bh_sim_field_error(e, "metadata.finalizers", "Invalid value",
                               quoted(&b, s ? s : "", s ? strlen(s) : 0), BH_SIM_KEY_TEXT);
    }
    bh_buf_fini(&b);
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
