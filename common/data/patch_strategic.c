/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/patch_strategic.c - strategic merge patch
 *
 * Invariants: document and patch are private copies and are taken apart while merging; an element
 *             ends up in one list only. m->path is the dotted path of the object being merged.
 * Fails with: -EINVAL (malformed patch), -E2BIG (arena limit), -ENOTSUP (kind without a schema).
 * Upstream:   apimachinery/pkg/util/strategicpatch/patch.go, mergeMap with MergeParallelList and
 *             IgnoreUnmatchedNulls. The order of merged lists is normalizeElementOrder's: elements
 * of the patch first come in the patch's order, those of the server are woven in by the server's
 * order; without a common neighbour the patch's element stands first. differences: nulls and
 * directives inside new list elements are removed here (there the decoding into typed objects does
 * it); unknown fields are merged as maps or replaced as lists instead of refused.
 */
#include "common/data/patch_schema.h"

#include <errno.h>

static const char directive[] = "$patch";
static const char retain_keys[] = "$retainKeys";
static const char set_order[] = "$setElementOrder/";
static const char delete_from[] = "$deleteFromPrimitiveList/";

struct merger {
    struct bh_arena *a;
    const char *kind;
    struct bh_buf path;
    struct bh_err *err;
};
struct vec {
    struct bh_json **v;
    size_t n;
};

static int merge_map(struct merger *m, struct bh_json *orig, struct bh_json *patch);

static int too_big(struct merger *m)
{
    return bh_err_set(m->err, -E2BIG, "object is too large");
}

static int invalid(struct merger *m, const char *what)
{
    return bh_err_set(m->err, -EINVAL, "strategic merge patch: %s%s%s",
                      m->path.n ? bh_buf_str(&m->path) : "", m->path.n ? ": " : "", what);
}

static bool is_directive(const char *name)
{
    return name[0] == '$' &&
           (bh_streq(name, directive) || bh_streq(name, retain_keys) ||
            bh_patch_behind(name, set_order) || bh_patch_behind(name, delete_from));
}

/* ---- lists as arrays ------------------------------------------------------------------------- */

static int to_vec(struct merger *m, const struct bh_json *list, size_t spare, struct vec *ret)
{
    size_t n = list ? list->c.n : 0;
    ret->n = 0;
    ret->v = bh_arena_new_array(m->a, struct bh_json *, n + spare + 1);
    if (!ret->v)
        return too_big(m);
    bh_json_each(e, list)
        ret->v[ret->n++] = e;
    return 0;
}

/* What tells an element from the others of its list: its merge key, or itself. */
static const struct bh_json *identity(const struct bh_json *e, const char *key)
{
    return e->type == BH_JSON_OBJECT && *key && *key != '-' ? bh_json_get(e, key) : e;
}

static size_t index_of(const struct vec *list, const struct bh_json *e, const char *key)
{
    const struct bh_json *id = identity(e, key);
    for (size_t i = 0; i < list->n; i++) {
        const struct bh_json *other = identity(list->v[i], key);
        if (id && other && bh_json_equal(id, other))
            return i;
    }
    return SIZE_MAX;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct ranked {
    struct bh_json *e;
    size_t rank, server; /* place in the order it follows, place in the server's list */
    size_t seq;          /* makes the sort stable */
};

static int by_rank(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Elements of `order` follow it, the others follow `server`; then both are woven together, into ret. */
static int normalize_order(struct merger *m, const struct vec *list, const struct vec *order,
                           const struct vec *server, const char *key, struct bh_json *ret)
{
    size_t nl = 0, nr = 0, i = 0, j = 0;
    struct ranked *left = bh_arena_new_array(m->a, struct ranked, list->n + 1);
    struct ranked *right = bh_arena_new_array(m->a, struct ranked, list->n + 1);
    if (!left || !right)
        return too_big(m);
    for (size_t x = 0; x < list->n; x++) {
        struct ranked r = {.e = list->v[x], .seq = x};
        r.server = index_of(server, r.e, key);
        r.rank = index_of(order, r.e, key);
        if (r.rank != SIZE_MAX) {
            right[nr++] = r;
        } else {
            r.rank = r.server;
            left[nl++] = r;
        }
    }
    qsort(left, nl, sizeof(*left), by_rank);
    qsort(right, nr, sizeof(*right), by_rank);
    bh_json_clear(ret);
    while (i < nl || j < nr) {
        bool both = i < nl && j < nr;
        bool known = both && left[i].server != SIZE_MAX && right[j].server != SIZE_MAX;
        bool from_left = j >= nr || (known && left[i].server < right[j].server);
        bh_json_push(ret, from_left ? left[i++].e : right[j++].e);
    }
    return 0;
}

/* ---- what a patch brings that the server does not have --------------------------------------- */

/* Removes nulls of maps and all directives below v; a map with $patch goes as a whole. */
static void strip(struct bh_json *v)
{
    if (v->type != BH_JSON_OBJECT && v->type != BH_JSON_ARRAY)
        return;
    for (struct bh_json *e = v->c.first, *next; e; e = next) {
        next = e->next;
        bool gone =
            v->type == BH_JSON_OBJECT && (e->type == BH_JSON_NULL || is_directive(e->key.p));
        if (gone || (e->type == BH_JSON_OBJECT && bh_json_get(e, directive)))
            bh_json_remove(v, e);
        else
            strip(e);
    }
}

/* Puts a value of the patch into orig in place of what stands there. */
static int put_value(struct merger *m, struct bh_json *orig, const char *name, struct bh_json *v)
{
    if (v->type == BH_JSON_OBJECT && bh_json_get(v, directive)) {
        bh_json_unset(orig, name);
        return 0;
    }
    strip(v);
    v->next = NULL;
    return bh_json_set(m->a, orig, name, v) ? 0 : too_big(m);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int no_merge_key(struct merger *m, const struct bh_json *e, const char *key)
{
    struct bh_buf b = {0};
    bh_json_write(&b, e);
    int rc = bh_err_set(m->err, -EINVAL, "map: %.300s does not contain declared merge key: %s",
                        bh_buf_str(&b), key);
    bh_buf_fini(&b);
    return rc;
}

/* $patch elements act and go: delete removes from orig, replace makes the patch the whole list. */
static int special_elements(struct merger *m, struct vec *orig, struct vec *patch, const char *key)
{
    bool replace = false;
    size_t n = 0;
    for (size_t i = 0; i < patch->n; i++) {
        struct bh_json *e = patch->v[i];
        if (e->type != BH_JSON_OBJECT)
            return invalid(m, "list element is not a map");
        const struct bh_json *d = bh_json_get(e, directive);
        const char *what = bh_json_cstr(d);
        if (!d) {
            patch->v[n++] = e;
        } else if (what && bh_streq(what, "delete")) {
            if (!bh_json_get(e, key))
                return no_merge_key(m, e, key);
            for (size_t k; (k = index_of(orig, e, key)) != SIZE_MAX; orig->n--)
                memmove(&orig->v[k], &orig->v[k + 1], (orig->n - k - 1) * sizeof(*orig->v));
        } else if (what && bh_streq(what, "replace")) {
            replace = true;
        } else if (what && bh_streq(what, "merge")) {
            return invalid(m, "merging lists cannot yet be specified in the patch");
        } else {
            return invalid(m, "unknown patch type in $patch");
        }
    }
    patch->n = n;
    if (!replace)
        return 0;
    for (size_t i = 0; i < n; i++)
        strip(patch->v[i]);
    *orig = *patch;
    patch->n = 0;
    return 0;
}

static int merge_elements(struct merger *m, struct vec *orig, const struct vec *patch,
                          const char *key)
{
    for (size_t i = 0; i < patch->n; i++) {
        struct bh_json *e = patch->v[i];
        if (!bh_json_get(e, key))
            return no_merge_key(m, e, key);
        size_t at = index_of(orig, e, key);
        if (at == SIZE_MAX) {
            strip(e);
            orig->v[orig->n++] = e;
            continue;
        }
        int rc = merge_map(m, orig->v[at], e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* orig and patch are lists; m->path is the list's. *ret_server is the server's list as an outer
 * $setElementOrder sees it: upstream edits the array in place, so a deleted element's slot may hold
 * one that the patch appended, and the order that users get depends on it. */
static int merge_list(struct merger *m, struct bh_json *orig, struct bh_json *patch,
                      const char *key, struct vec *ret_server)
{
    struct vec o, p;
    int rc = to_vec(m, orig, patch->c.n, &o);
    if (rc == 0)
        rc = to_vec(m, patch, 0, &p);
    if (rc < 0)
        return rc;
    *ret_server = o;
    if (!*key) {
        strip(patch);
        orig->c = patch->c;
        return 0;
    }
    if (*key != '-')
        rc = special_elements(m, &o, &p, key);
    if (rc < 0)
        return rc;
    struct vec server = (struct vec){bh_arena_memdup(m->a, o.v, (o.n + 1) * sizeof(*o.v)), o.n};
    if (!server.v)
        return too_big(m);
    if (*key == '-') {
        struct vec all = {.v = o.v};
        for (size_t i = 0; i < o.n + p.n; i++) {
            struct bh_json *e = i < o.n ? o.v[i] : p.v[i - o.n];
            if (index_of(&all, e, "-") == SIZE_MAX)
                all.v[all.n++] = e;
        }
        o.n = all.n;
    } else
        rc = merge_elements(m, &o, &p, key);
    return rc < 0 ? rc : normalize_order(m, &o, &p, &server, key, orig);
}

static int delete_primitives(struct merger *m, struct bh_json *orig, struct bh_json *patch)
{
    if (patch->type != BH_JSON_ARRAY)
        return invalid(m, "$deleteFromPrimitiveList must be a list");
    bh_json_each(gone, patch) {
        for (struct bh_json *e = orig->c.first, *next; e; e = next) {
            next = e->next;
            if (bh_json_equal(e, gone))
                bh_json_remove(orig, e);
        }
    }
    return 0;
}

/* ---- directives of a map --------------------------------------------------------------------- */

static bool list_has(const struct bh_json *list, struct bh_str s)
{
    bh_json_each(e, list)
        if (e->type == BH_JSON_STRING && bh_str_eq(e->s, s))
            return true;
    return false;
}

static int apply_retain_keys(struct merger *m, struct bh_json *orig, struct bh_json *patch)
{
    struct bh_json *keep = bh_json_get(patch, retain_keys);
    if (!keep)
        return 0;
    bh_json_remove(patch, keep);
    bool valid = keep->type == BH_JSON_ARRAY;
    bh_json_each(p, patch) {
        if (p->type != BH_JSON_NULL && !is_directive(p->key.p) &&
            !(valid && list_has(keep, p->key)))
            valid = false;
    }
    if (!valid)
        return invalid(m, "invalid patch format of retainKeys");
    for (struct bh_json *o = orig->c.first, *next; o; o = next) {
        next = o->next;
        if (!list_has(keep, o->key))
            bh_json_remove(orig, o);
    }
    return 0;
}

/* The patch's elements (without those that are directives) must be in the order list, in its
 * order. */
static bool order_fits(const struct bh_json *patch, const struct bh_json *order, const char *key)
{
    const struct bh_json *o = order->c.first;
    if (!patch || !o)
        return true;
    bh_json_each(p, patch) {
        if (p->type == BH_JSON_OBJECT && bh_json_get(p, directive))
            continue;
        const struct bh_json *id = identity(p, key);
        while (o && !(id && identity(o, key) && bh_json_equal(identity(o, key), id)))
            o = o->next;
        if (!o)
            return false;
    }
    return true;
}

/* One $setElementOrder/name with the list it orders. m->path is the list's. */
static int apply_order(struct merger *m, struct bh_json *orig, struct bh_json *patch,
                       const char *name, struct bh_json *order)
{
    struct bh_json *ol = bh_json_get(orig, name), *pl = bh_json_get(patch, name);
    const char *key = bh_patch_merge_key(m->kind, bh_buf_str(&m->path));
    struct vec server, list, wanted;
    if (order->type != BH_JSON_ARRAY || (ol && ol->type != BH_JSON_ARRAY) ||
        (pl && pl->type != BH_JSON_ARRAY))
        return invalid(m, "$setElementOrder and the field it orders must be lists");
    if (!order_fits(pl, order, key))
        return invalid(m, "the order in the patch list does not match its $setElementOrder list");
    if (!ol && !pl)
        return 0;
    int rc = to_vec(m, ol, 0, &server);
    if (rc == 0 && pl) {
        bh_json_remove(patch, pl);
        rc = ol ? merge_list(m, ol, pl, key, &server) : put_value(m, orig, name, pl);
    }
    struct bh_json *merged = ol ? ol : pl;
    if (rc == 0)
        rc = to_vec(m, merged, 0, &list);
    if (rc == 0)
        rc = to_vec(m, order, 0, &wanted);
    return rc < 0 ? rc : normalize_order(m, &list, &wanted, &server, key, merged);
}

static int apply_orders(struct merger *m, struct bh_json *orig, struct bh_json *patch)
{
    for (struct bh_json *p = patch->c.first, *next; p; p = next) {
        const char *name = bh_patch_behind(p->key.p, set_order);
        next = p->next;
        if (!name)
            continue;
        size_t keep = bh_patch_enter(&m->path, name);
        int rc = apply_order(m, orig, patch, name, p);
        bh_patch_leave(&m->path, keep);
        if (rc < 0)
            return rc;
        next = p->next; /* the ordered list is out of the patch now and may have been next */
        bh_json_remove(patch, p);
    }
    return 0;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static int merge_map(struct merger *m, struct bh_json *orig, struct bh_json *patch)
{
    if (bh_json_get(patch, directive)) {
        const char *what = bh_json_get_str(patch, directive);
        if (what && bh_streq(what, "delete")) {
            bh_json_clear(orig);
            return 0;
        }
        if (!what || !bh_streq(what, "replace"))
            return invalid(m, "unknown patch type in $patch");
        bh_json_unset(patch, directive);
        strip(patch);
        orig->c = patch->c;
        return 0;
    }
    int rc = apply_retain_keys(m, orig, patch);
    if (rc == 0)
        rc = apply_orders(m, orig, patch);
    for (struct bh_json *p = patch->c.first, *next; rc == 0 && p; p = next) {
        const char *gone = bh_patch_behind(p->key.p, delete_from), *name = gone ? gone : p->key.p;
        struct bh_json *o = bh_json_get(orig, name);
        struct vec server;
        next = p->next;
        size_t keep = bh_patch_enter(&m->path, name);
        if (gone)
            rc = o && o->type == BH_JSON_ARRAY ? delete_primitives(m, o, p) : 0;
        else if (p->type == BH_JSON_NULL)
            bh_json_unset(orig, name);
        else if (o && o->type == BH_JSON_OBJECT && p->type == BH_JSON_OBJECT)
            rc = merge_map(m, o, p);
        else if (o && o->type == BH_JSON_ARRAY && p->type == BH_JSON_ARRAY)
            rc = merge_list(m, o, p, bh_patch_merge_key(m->kind, bh_buf_str(&m->path)), &server);
        else
            rc = put_value(m, orig, name, p);
        bh_patch_leave(&m->path, keep);
    }
    return rc;
}

int bh_patch_strategic(struct bh_arena *a, const char *kind, const struct bh_json *doc,
                       const struct bh_json *patch, struct bh_json **ret, struct bh_err *err)
{
    if (!bh_patch_kind_known(kind))
        return bh_err_set(err, -ENOTSUP, "strategic merge patch is not supported for %.64s",
                          kind ? kind : "an object without kind");
    if (patch->type != BH_JSON_OBJECT || doc->type != BH_JSON_OBJECT)
        return bh_err_set(err, -EINVAL, "strategic merge patch: must be an object");
    struct merger m = {.a = a, .kind = kind, .err = err};
    struct bh_json *d = bh_json_clone(a, doc), *p = bh_json_clone(a, patch);
    int rc = d && p ? merge_map(&m, d, p) : too_big(&m);
    bh_buf_fini(&m.path);
    if (rc == 0)
        *ret = d;
    return rc;
}
