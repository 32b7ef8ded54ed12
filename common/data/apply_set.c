/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/apply_set.c - sets of fields (FieldsV1)
 *
 * Upstream: sigs.k8s.io/structured-merge-diff fieldpath/{set,element,path,serialize}.go.
 *           differences: none in meaning.
 */
#include "common/data/apply_set.h"

static bool is_self(const struct bh_json *node)
{
    return node->key.n == 1 && node->key.p[0] == '.';
}

bool bh_fset_member(const struct bh_json *node)
{
    return node && (node->c.n == 0 || bh_json_get(node, "."));
}

static void add(struct bh_arena *a, struct bh_json **set, const char *name, struct bh_json *child)
{
    if (child && !*set)
        *set = bh_json_new(a, BH_JSON_OBJECT);
    if (child)
        bh_json_set(a, *set, name, child);
}

static struct bh_json *combine(struct bh_arena *a, enum bh_fset_op op, const struct bh_json *x,
                               const struct bh_json *y, bool root)
{
    bool mx = !root && bh_fset_member(x), my = !root && bh_fset_member(y);
    bool member = op == BH_FSET_UNION ? mx || my : op == BH_FSET_MINUS ? mx && !my : mx && my;
    struct bh_json *out = NULL;
    bh_json_each(cx, x) {
        const struct bh_json *cy = bh_json_get(y, cx->key.p);
        if (!is_self(cx) && (cy || op != BH_FSET_COMMON))
            add(a, &out, cx->key.p, cy ? combine(a, op, cx, cy, false) : bh_json_clone(a, cx));
    }
    if (op == BH_FSET_UNION) {
        bh_json_each(cy, y)
            if (!is_self(cy) && !bh_json_get(x, cy->key.p))
                add(a, &out, cy->key.p, bh_json_clone(a, cy));
    }
    if (!member)
        return out;
    if (!out)
        return bh_json_new(a, BH_JSON_OBJECT);
    add(a, &out, ".", bh_json_new(a, BH_JSON_OBJECT));
    return out;
}

struct bh_json *bh_fset_combine(struct bh_arena *a, enum bh_fset_op op, const struct bh_json *x,
                                const struct bh_json *y)
{
    return combine(a, op, x, y, true);
}

bool bh_fset_valid(const struct bh_json *set)
{
    if (set->type != BH_JSON_OBJECT)
        return false;
    bh_json_each(c, set)
        if (!bh_fset_valid(c))
            return false;
    return true;
}

bool bh_fset_equal(const struct bh_json *x, const struct bh_json *y)
{
    bool ex = !x || x->c.n == 0, ey = !y || y->c.n == 0;
    return ex || ey ? ex == ey : bh_json_equal(x, y);
}

static int by_name(const void *x, const void *y)
{
    const struct bh_json *const *a = x, *const *b = y;
    return strcmp((*a)->key.p, (*b)->key.p);
}

void bh_fset_sort(struct bh_arena *a, struct bh_json *set)
{
    if (!set || set->c.n == 0)
        return;
    size_t n = 0;
    struct bh_json **v = bh_arena_new_array(a, struct bh_json *, set->c.n);
    if (!v)
        return;
    bh_json_each(c, set) {
        bh_fset_sort(a, c);
        v[n++] = c;
    }
    qsort(v, n, sizeof(struct bh_json *), by_name);
    bh_json_clear(set);
    for (size_t i = 0; i < n; i++)
        bh_json_push(set, v[i]);
}

/* ---- paths for people ------------------------------------------------------------------------ */

/* f:name is .name, k:{"a":1,"b":"x"} is [a=1,b="x"], v:"x" is [="x"] */
static void add_step(struct bh_buf *b, const char *name)
{
    struct bh_arena a;
    struct bh_json *keys;
    if (name[0] == 'f' && name[1] == ':') {
        bh_buf_addf(b, ".%s", name + 2);
        return;
    }
    if (name[0] == 'v' && name[1] == ':') {
        bh_buf_addf(b, "[=%s]", name + 2);
        return;
    }
    bh_arena_init(&a, 1 << 16);
    if (name[0] == 'k' && name[1] == ':' &&
        bh_json_parse(&a, name + 2, strlen(name + 2), 0, &keys, NULL) == 0 &&
        keys->type == BH_JSON_OBJECT) {
        bh_buf_addc(b, '[');
        bh_json_each(k, keys) {
            bh_buf_addf(b, "%s%s=", k == keys->c.first ? "" : ",", k->key.p);
            bh_json_write(b, k);
        }
        bh_buf_addc(b, ']');
    } else {
        bh_buf_adds(b, name);
    }
    bh_arena_fini(&a);
}

static void each(const struct bh_json *node, struct bh_buf *path,
                 void (*fn)(void *arg, const char *path), void *arg)
{
    bh_json_each(c, node) {
        size_t keep = path->n;
        if (is_self(c))
            continue;
        add_step(path, c->key.p);
        if (bh_fset_member(c))
            fn(arg, bh_buf_str(path));
        each(c, path, fn, arg);
        path->n = keep;
        if (path->p)
            path->p[keep] = 0;
    }
}

void bh_fset_each(const struct bh_json *set, void (*fn)(void *arg, const char *path), void *arg)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf path = {0};
    each(set, &path, fn, arg);
}
