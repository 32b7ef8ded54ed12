/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/apply_walk.c - walking objects with the schema in hand: fields, compare, merge, prune
 *
 * Invariants: w->path is the dotted path of the value at hand, without list keys. A keyed list
 * whose elements lack a key or repeat one counts as atomic, except in a configuration that is
 *             applied, where it is an error.
 * Upstream:   sigs.k8s.io/structured-merge-diff typed/{tofieldset,compare,merge,remove}.go and the
 *             +structType, +mapType markers of k8s.io/api. differences: null means absent.
 */
#include "common/data/apply_set.h"
#include "common/data/patch_schema.h"

#include <errno.h>

enum shape { LEAF, MAP, LIST };
struct items {
    struct bh_json **v;
    const char **name; /* k:{...} or v:... */
    size_t n;
};

/* ---- schema ---------------------------------------------------------------------------------- */

/* Maps and structs that are owned as a whole, by the name of their field. */
static const char atomic_maps[] =
    "claimSelector configMapKeyRef dataSource dataSourceRef fieldRef involvedObject labelSelector "
    "namespaceSelector nodeSelector objectSelector podSelector preference related resourceFieldRef "
    "roleRef scaleTargetRef scopeSelector secretKeyRef secretRef selector";
/* Fields that exist in an empty object of their Go type: setting something below them does not make
 * a manager own the field itself. */
static const char always_there[] =
    "containers jobTemplate metadata spec status strategy template updateStrategy";

/* Is the last name of path one of the words? */
static bool is_one_of(const char *path, const char *words)
{
    const char *dot = strrchr(path, '.');
    return bh_word_at(words, dot ? dot + 1 : path) >= 0;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && bh_streq(s + n - m, end);
}

static bool is_atomic_map(const struct bh_fwalk *w)
{
    const char *path = bh_buf_str(&w->path);
    return bh_patch_kind_known(w->kind) &&
           (is_one_of(path, atomic_maps) || ends_with(path, "imagePullSecrets") ||
            bh_streq(path, "secrets") ||
            ends_with(path, "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution") ||
            ends_with(path, "nodeAffinity.required"));
}

void bh_fwalk_fini(struct bh_fwalk *w)
{
    bh_buf_fini(&w->path);
    bh_buf_fini(&w->name);
}

/* ---- names of elements ----------------------------------------------------------------------- */

/* keys: comma separated, in alphabetical order, or "-" for the value itself. NULL when e lacks one
 * that has no default. */
static const char *item_name(struct bh_fwalk *w, const char *keys, const struct bh_json *e)
{
    struct bh_buf *b = &w->name;
    bh_buf_reset(b);
    if (*keys == '-') {
        bh_buf_adds(b, "v:");
        bh_json_write(b, e);
        return bh_arena_strdup(w->a, bh_buf_str(b));
    }
    bh_buf_adds(b, "k:{");
    while (*keys) {
        size_t n = strcspn(keys, ",");
        char key[32] = "";
        bh_assert(n < sizeof(key));
        memcpy(key, keys, n);
        const struct bh_json *v = bh_json_get(e, key);
        if (v ? v->type == BH_JSON_OBJECT || v->type == BH_JSON_ARRAY : !bh_streq(key, "protocol"))
            return NULL;
        bh_buf_addf(b, "%s\"%s\":", b->n > 3 ? "," : "", key);
        if (v)
            bh_json_write(b, v);
        else
            bh_buf_adds(b, "\"TCP\""); /* the only default among list keys */
        keys += n + (keys[n] == ',');
    }
    bh_buf_addc(b, '}');
    return bh_arena_strdup(w->a, bh_buf_str(b));
}

static size_t find_item(const struct items *it, const char *name)
{
    for (size_t i = 0; i < it->n; i++)
        if (bh_streq(it->name[i], name))
            return i;
    return SIZE_MAX;
}

/* Elements with their names; false when the list cannot be taken element by element. */
static bool collect(struct bh_fwalk *w, const struct bh_json *list, const char *keys,
                    struct items *ret)
{
    *ret = (struct items){.v = bh_arena_new_array(w->a, struct bh_json *, list->c.n + 1),
                          .name = bh_arena_new_array(w->a, const char *, list->c.n + 1)};
    if (!ret->v || !ret->name)
        return false;
    bh_json_each(e, list) {
        const char *name = item_name(w, keys, e);
        if (!name || find_item(ret, name) != SIZE_MAX)
            return false;
        ret->v[ret->n] = e;
        ret->name[ret->n++] = name;
    }
    return true;
}

static enum shape shape_of(struct bh_fwalk *w, const struct bh_json *v, struct items *ret)
{
    *ret = (struct items){0};
    if (v->type == BH_JSON_OBJECT)
        return is_atomic_map(w) ? LEAF : MAP;
    if (v->type != BH_JSON_ARRAY)
        return LEAF;
    const char *keys = bh_patch_apply_keys(w->kind, bh_buf_str(&w->path));
    return *keys && collect(w, v, keys, ret) ? LIST : LEAF;
}

/* ---- building sets --------------------------------------------------------------------------- */

static struct bh_json *leaf(struct bh_fwalk *w)
{
    return bh_json_new(w->a, BH_JSON_OBJECT);
}

static void add_child(struct bh_fwalk *w, struct bh_json **set, const char *name,
                      struct bh_json *child)
{
    if (!child || !name)
        return;
    if (!*set)
        *set = leaf(w);
    bh_json_set(w->a, *set, name, child);
}

/* A node that is a member besides having children. */
static void add_self(struct bh_fwalk *w, struct bh_json **node)
{
    if (!*node)
        *node = leaf(w);
    else if ((*node)->c.n)
        add_child(w, node, ".", leaf(w));
}

static int fields(struct bh_fwalk *w, const struct bh_json *v, struct bh_json **ret);

static int fields_of_map(struct bh_fwalk *w, const struct bh_json *v, struct bh_json **ret)
{
    struct bh_json *set = NULL;
    bh_json_each(m, v) {
        struct bh_json *child = NULL;
        size_t keep = bh_patch_enter(&w->path, m->key.p);
        int rc = fields(w, m, &child);
        bh_patch_leave(&w->path, keep);
        if (rc < 0)
            return rc;
        if (child)
            add_child(w, &set, bh_arena_printf(w->a, "f:%s", m->key.p), child);
    }
    *ret = set || v->c.n ? set : leaf(w);
    return 0;
}

static int fields(struct bh_fwalk *w, const struct bh_json *v, struct bh_json **ret)
{
    struct items it;
    struct bh_json *set = NULL;
    enum shape shape = shape_of(w, v, &it);
    if (shape == MAP)
        return fields_of_map(w, v, ret);
    if (shape == LEAF) {
        const char *path = bh_buf_str(&w->path), *keys = bh_patch_apply_keys(w->kind, path);
        if (v->type == BH_JSON_ARRAY && *keys) {
            bh_json_each(e, v) {
                if (!item_name(w, keys, e))
                    return bh_err_set(
                        w->err, -EINVAL,
                        ".%s: associative list has an element that omits key field \"%s\"", path,
                        keys);
            }
            return bh_err_set(w->err, -EINVAL, ".%s: duplicate entries for key \"%s\"", path,
                              *keys == '-' ? "value" : keys);
        }
        *ret = leaf(w);
        return 0;
    }
    for (size_t i = 0; i < it.n; i++) {
        struct bh_json *child = NULL;
        int rc = it.v[i]->type == BH_JSON_OBJECT ? fields(w, it.v[i], &child) : 0;
        if (rc < 0)
            return rc;
        add_self(w, &child);
        add_child(w, &set, it.name[i], child);
    }
    *ret = set; /* an empty list owns nothing */
    return 0;
}

int bh_fwalk_fields(struct bh_fwalk *w, const struct bh_json *obj, struct bh_json **ret_set)
{
    return fields_of_map(w, obj, ret_set);
}

/* ---- compare --------------------------------------------------------------------------------- */

static struct bh_fdiff compare(struct bh_fwalk *w, const struct bh_json *from,
                               const struct bh_json *to, bool is_item);

static void add_diff(struct bh_fwalk *w, struct bh_fdiff *d, const char *name,
                     const struct bh_fdiff *child)
{
    add_child(w, &d->added, name, child->added);
    add_child(w, &d->removed, name, child->removed);
    add_child(w, &d->modified, name, child->modified);
}

static void compare_field(struct bh_fwalk *w, struct bh_fdiff *d, const char *name,
                          const struct bh_json *from, const struct bh_json *to)
{
    size_t keep = bh_patch_enter(&w->path, name);
    struct bh_fdiff child = compare(w, from, to, false);
    bh_patch_leave(&w->path, keep);
    if (child.added || child.removed || child.modified)
        add_diff(w, d, bh_arena_printf(w->a, "f:%s", name), &child);
}

static struct bh_fdiff compare_maps(struct bh_fwalk *w, const struct bh_json *from,
                                    const struct bh_json *to)
{
    struct bh_fdiff d = {0};
    bh_json_each(f, from)
        compare_field(w, &d, f->key.p, f, bh_json_get(to, f->key.p));
    bh_json_each(t, to)
        if (!bh_json_get(from, t->key.p))
            compare_field(w, &d, t->key.p, NULL, t);
    return d;
}

static struct bh_fdiff compare_lists(struct bh_fwalk *w, const struct items *from,
                                     const struct items *to)
{
    struct bh_fdiff d = {0}, child;
    for (size_t i = 0; i < from->n; i++) {
        size_t at = find_item(to, from->name[i]);
        child = compare(w, from->v[i], at == SIZE_MAX ? NULL : to->v[at], true);
        add_diff(w, &d, from->name[i], &child);
    }
    for (size_t i = 0; i < to->n; i++) {
        if (find_item(from, to->name[i]) != SIZE_MAX)
            continue;
        child = compare(w, NULL, to->v[i], true);
        add_diff(w, &d, to->name[i], &child);
    }
    return d;
}

/* Either may be NULL (absent), not both. is_item: an element of the list at w->path. */
static struct bh_fdiff compare(struct bh_fwalk *w, const struct bh_json *from,
                               const struct bh_json *to, bool is_item)
{
    struct items fi = {0}, ti = {0};
    if (from && from->type == BH_JSON_NULL)
        from = NULL;
    if (to && to->type == BH_JSON_NULL)
        to = NULL;
    if (!from && !to)
        return (struct bh_fdiff){0};
    enum shape fs = from ? shape_of(w, from, &fi) : LEAF, ts = to ? shape_of(w, to, &ti) : LEAF;
    enum shape shape = !from ? ts : !to ? fs : fs == ts ? fs : LEAF;
    bool empty = shape != LEAF && (!from || from->c.n == 0) && (!to || to->c.n == 0);
    struct bh_fdiff d = {0};
    if (shape == LEAF || empty) {
        if (!from)
            d.added = leaf(w);
        else if (!to)
            d.removed = leaf(w);
        else if (!bh_json_equal(from, to))
            d.modified = leaf(w);
        return d;
    }
    d = shape == MAP ? compare_maps(w, from, to) : compare_lists(w, &fi, &ti);
    /* A container that appears or goes is owned itself, besides its children. */
    if (!from && (is_item || !is_one_of(bh_buf_str(&w->path), always_there)))
        add_self(w, &d.added);
    if (!to)
        add_self(w, &d.removed);
    return d;
}

struct bh_fdiff bh_fwalk_compare(struct bh_fwalk *w, const struct bh_json *from,
                                 const struct bh_json *to)
{
    return compare_maps(w, from, to);
}

/* ---- merge ----------------------------------------------------------------------------------- */

struct bh_json *bh_fwalk_merge(struct bh_fwalk *w, struct bh_json *live, struct bh_json *config)
{
    struct items l, r;
    enum shape ls = shape_of(w, live, &l), rs = shape_of(w, config, &r);
    if (ls != rs || ls == LEAF) {
        config->key = live->key;
        return config;
    }
    if (ls == LIST) {
        /* The configuration's order rules; what only live has keeps its place before the next
         * element both have. */
        size_t i = 0, j = 0, shared = 0;
        bh_json_clear(live);
        while (i < l.n || j < r.n) {
            while (shared < r.n && (shared < j || find_item(&l, r.name[shared]) == SIZE_MAX))
                shared++;
            size_t at = i < l.n ? find_item(&r, l.name[i]) : SIZE_MAX;
            if (i < l.n && at == SIZE_MAX) {
                bh_json_push(live, l.v[i++]);
            } else if (i < l.n && (j >= r.n || (at != j && at != shared))) {
                i++; /* comes, or came, where the configuration has it */
            } else {
                size_t in_live = find_item(&l, r.name[j]);
                bh_json_push(live, in_live == SIZE_MAX ? r.v[j]
                                                       : bh_fwalk_merge(w, l.v[in_live], r.v[j]));
                i += at == j;
                j++;
            }
        }
        return live;
    }
    for (struct bh_json *m = config->c.first, *next; m; m = next) {
        struct bh_json *old = bh_json_get(live, m->key.p);
        const char *name = m->key.p;
        next = m->next;
        size_t keep = bh_patch_enter(&w->path, name);
        struct bh_json *v = old ? bh_fwalk_merge(w, old, m) : m;
        bh_patch_leave(&w->path, keep);
        if (v != old)
            bh_json_set(w->a, live, name, v);
    }
    return live;
}

/* ---- prune ----------------------------------------------------------------------------------- */

static void prune(struct bh_fwalk *w, struct bh_json *v, const struct bh_json *last,
                  const struct bh_json *owned);

static void prune_map(struct bh_fwalk *w, struct bh_json *v, const struct bh_json *last,
                      const struct bh_json *owned)
{
    for (struct bh_json *m = v->c.first, *next; m; m = next) {
        const char *name = bh_arena_printf(w->a, "f:%s", m->key.p);
        const struct bh_json *l = name ? bh_json_get(last, name) : NULL;
        next = m->next;
        if (!l)
            continue;
        const struct bh_json *o = bh_json_get(owned, name);
        if (!o)
            bh_json_remove(v, m);
        if (!o || !bh_json_first(m))
            continue;
        size_t keep = bh_patch_enter(&w->path, m->key.p);
        prune(w, m, l, o);
        bh_patch_leave(&w->path, keep);
        if (m->c.n == 0 && !bh_fset_member(o))
            bh_json_remove(v, m);
    }
}

static void prune(struct bh_fwalk *w, struct bh_json *v, const struct bh_json *last,
                  const struct bh_json *owned)
{
    struct items it;
    enum shape shape = shape_of(w, v, &it);
    if (shape == MAP)
        prune_map(w, v, last, owned);
    if (shape != LIST)
        return;
    for (size_t i = 0; i < it.n; i++) {
        const struct bh_json *l = bh_json_get(last, it.name[i]),
                             *o = bh_json_get(owned, it.name[i]);
        if (!l)
            continue;
        if (bh_fset_member(l) && !bh_fset_member(o))
            bh_json_remove(v, it.v[i]);
        else if (it.v[i]->type == BH_JSON_OBJECT)
            prune(w, it.v[i], l, o);
    }
}

void bh_fwalk_prune(struct bh_fwalk *w, struct bh_json *obj, const struct bh_json *last,
                    const struct bh_json *owned)
{
    if (last)
        prune_map(w, obj, last, owned);
}
