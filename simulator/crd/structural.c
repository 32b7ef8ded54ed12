/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/crd/structural.c - pruning and defaulting along a schema
 *
 * Upstream: apiextensions-apiserver/pkg/apiserver/schema/{pruning,defaulting}
 */
#include "simulator/crd/crd.h"

static bool is_meta(const char *name)
{
    return bh_streq(name, "apiVersion") || bh_streq(name, "kind") || bh_streq(name, "metadata");
}

/* The schema of member name of an object of schema s; NULL: it has none. */
static const struct bh_json *member_schema(const struct bh_json *s, const char *name)
{
    const struct bh_json *p = bh_json_get(bh_json_get(s, "properties"), name);
    const struct bh_json *more = p ? p : bh_json_get(s, "additionalProperties");
    return more && (more->type == BH_JSON_OBJECT || (more->type == BH_JSON_BOOL && more->b)) ? more
                                                                                             : NULL;
}

static void prune(const struct bh_json *s, struct bh_json *v, bool root, const char *path,
                  struct bh_oas_report *rep)
{
    char below[512];
    size_t i = 0;
    bool embedded = root || bh_json_get_bool(s, "x-kubernetes-embedded-resource", false);
    if (s->type != BH_JSON_OBJECT)
        return;
    if (v->type == BH_JSON_ARRAY) {
        const struct bh_json *items = bh_json_get(s, "items");
        bh_json_each(m, v) {
            snprintf(below, sizeof(below), "%.400s[%zu]", path, i++);
            if (items)
                prune(items, m, false, below, rep);
        }
        return;
    }
    for (struct bh_json *m = bh_json_first(v), *next; m && v->type == BH_JSON_OBJECT; m = next) {
        const struct bh_json *ms = member_schema(s, m->key.p);
        next = m->next;
        if (embedded && is_meta(m->key.p))
            continue;
        if (ms) {
            snprintf(below, sizeof(below), "%.400s%s%.100s", path, *path ? "." : "", m->key.p);
            prune(ms, m, false, below, rep);
        } else if (!bh_json_get_bool(s, "x-kubernetes-preserve-unknown-fields", false)) {
            if (rep)
                bh_oas_unknown(rep, "unknown", path, m->key.p);
            bh_json_remove(v, m);
        }
    }
}

void bh_crd_prune(const struct bh_json *schema, struct bh_json *obj, struct bh_oas_report *rep)
{
    if (schema)
        prune(schema, obj, true, "", rep);
}

static void fill(struct bh_arena *a, const struct bh_json *s, struct bh_json *v, bool root)
{
    if (s->type != BH_JSON_OBJECT)
        return;
    if (v->type == BH_JSON_ARRAY) {
        const struct bh_json *items = bh_json_get(s, "items");
        for (struct bh_json *m = v->c.first; items && m; m = m->next)
            fill(a, items, m, false);
        return;
    }
    if (v->type != BH_JSON_OBJECT)
        return;
    bh_json_each(p, bh_json_get(s, "properties")) {
        const struct bh_json *dflt = bh_json_get(p, "default");
        struct bh_json *m = bh_json_get(v, p->key.p);
        if (root && is_meta(p->key.p))
            continue;
        if (m && m->type == BH_JSON_NULL && dflt && !bh_json_get_bool(p, "nullable", false)) {
            bh_json_remove(v, m);
            m = NULL;
        }
        if (!m && dflt)
            bh_json_set(a, v, p->key.p, bh_json_clone(a, dflt));
    }
    bh_json_each(m, v) {
        const struct bh_json *ms = member_schema(s, m->key.p);
        if (ms && !(root && is_meta(m->key.p)))
            fill(a, ms, m, false);
    }
}

void bh_crd_default(struct bh_arena *a, const struct bh_json *schema, struct bh_json *obj)
{
    if (schema)
        fill(a, schema, obj, true);
}
