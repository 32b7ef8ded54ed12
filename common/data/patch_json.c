/* SPDX-License-Identifier: Apache-2.0
 *
 * common/data/patch_json.c - RFC 6902 JSON patch
 *
 * Invariants: operations change one private copy of the document, in order; the first that fails
 *             fails the patch. No step makes the tree deeper than BH_JSON_MAX_DEPTH.
 * Fails with: -EINVAL, -ENOENT, -EBADMSG, -E2BIG (arena limit, depth, number of operations).
 * Upstream:   apiserver's use of evanphx/json-patch. differences: no negative indices; `add` does
 * not create missing parents (nor does upstream as configured).
 */
#include "common/data/json_priv.h"
#include "common/data/patch.h"

#include <errno.h>

#define OPERATIONS_MAX 10000 /* upstream's maxJSONPatchOperations */

struct op {
    const char *name;
    struct bh_str path, from;
    const struct bh_json *value;
};
/* Where a pointer leads: child is NULL when the last step does not exist (yet). The root has no
 * parent. */
struct target {
    struct bh_json *parent, *child;
    const char *step; /* unescaped last token */
    size_t index;     /* of an array element, or n for the place behind the last */
    bool at_end;      /* `-` */
    unsigned depth;   /* number of tokens */
};
struct run {
    struct bh_arena *a;
    struct bh_json *doc;
    struct op op;
    struct bh_err *err;
};

static int bad_pointer(struct run *r, struct bh_str p, const char *why)
{
    return bh_err_set(r->err, -EINVAL, "%s operation: invalid path \"%.200s\": %s", r->op.name, p.p,
                      why);
}

static int missing(struct run *r, struct bh_str p)
{
    return bh_err_set(r->err, -ENOENT,
                      "%s operation does not apply: doc is missing path: \"%.200s\": missing value",
                      r->op.name, p.p);
}

static int too_big(struct run *r)
{
    return bh_err_set(r->err, -E2BIG, "%s operation: object is too large", r->op.name);
}

/* ---- pointers -------------------------------------------------------------------------------- */

/* The token at p (behind its slash) with ~0 and ~1 undone; moves *p to the next slash or end. */
static int token(struct run *r, struct bh_str all, const char **p, char **ret)
{
    const char *start = *p, *end = all.p + all.n;
    const char *stop = memchr(start, '/', (size_t)(end - start));
    if (!stop)
        stop = end;
    char *t = bh_arena_alloc(r->a, (size_t)(stop - start) + 1), *o = t;
    if (!t)
        return too_big(r);
    for (const char *s = start; s < stop; s++) {
        if (*s != '~') {
            *o++ = *s;
            continue;
        }
        if (++s == stop || (*s != '0' && *s != '1'))
            return bad_pointer(r, all, "~ must be followed by 0 or 1");
        *o++ = *s == '0' ? '~' : '/';
    }
    *o = 0;
    *p = stop;
    *ret = t;
    return 0;
}

static int array_step(struct run *r, struct bh_str all, struct target *t)
{
    size_t i = 0, n = t->parent->c.n;
    if (bh_streq(t->step, "-")) {
        t->at_end = true;
        t->index = n;
        return 0;
    }
    const char *s = t->step;
    if (!*s || (*s == '0' && s[1]))
        return bad_pointer(r, all, "not an array index");
    for (; *s; s++) {
        if (!bh_is_digit(*s))
            return bad_pointer(r, all, "not an array index");
        i = i > n ? i : i * 10 + (size_t)(*s - '0'); /* beyond n it only has to stay there */
    }
    t->index = i;
    t->child = bh_json_at(t->parent, i);
    return 0;
}

/* 0 with t->child or without; -ENOENT when a step before the last does not exist. */
static int resolve(struct run *r, struct bh_str all, struct target *t)
{
    *t = (struct target){.child = r->doc};
    const char *p = all.p, *end = all.p + all.n;
    if (all.n && *p != '/')
        return bad_pointer(r, all, "must begin with /");
    while (p < end) {
        char *step = NULL;
        p++;
        int rc = token(r, all, &p, &step);
        if (rc < 0)
            return rc;
        if (!t->child)
            return missing(r, all);
        t->parent = t->child;
        t->child = NULL;
        t->step = step;
        t->depth++;
        if (t->parent->type == BH_JSON_ARRAY)
            rc = array_step(r, all, t);
        else if (t->parent->type == BH_JSON_OBJECT)
            t->child = bh_json_get(t->parent, step);
        else
            rc = missing(r, all);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int resolve_existing(struct run *r, struct bh_str path, struct target *t)
{
    int rc = resolve(r, path, t);
    return rc == 0 && !t->child ? missing(r, path) : rc;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* v is private to the run and not linked anywhere. */
static int add(struct run *r, struct bh_json *v)
{
    struct target t;
    int rc = resolve(r, r->op.path, &t);
    if (rc < 0)
        return rc;
    if (t.depth + bh_json_depth(v) > BH_JSON_MAX_DEPTH)
        return bh_err_set(r->err, -E2BIG, "%s operation: nested too deeply", r->op.name);
    if (!t.parent)
        r->doc = v;
    else if (t.parent->type == BH_JSON_OBJECT)
        return bh_json_set(r->a, t.parent, t.step, v) ? 0 : too_big(r);
    else if (t.index > t.parent->c.n)
        return missing(r, r->op.path);
    else if (t.index == t.parent->c.n)
        bh_json_push(t.parent, v);
    else {
        struct bh_json **at = &t.parent->c.first;
        while (t.index--)
            at = &(*at)->next;
        v->next = *at;
        *at = v;
        t.parent->c.n++;
    }
    return 0;
}

static int take_out(struct run *r, struct bh_str path, struct bh_json **ret)
{
    struct target t;
    int rc = resolve_existing(r, path, &t);
    if (rc < 0)
        return rc;
    if (!t.parent)
        return bad_pointer(r, path, "the whole document cannot be removed");
    bh_json_remove(t.parent, t.child);
    *ret = t.child;
    return 0;
}

static int op_add(struct run *r)
{
    struct bh_json *v = bh_json_clone(r->a, r->op.value);
    return v ? add(r, v) : too_big(r);
}

static int op_remove(struct run *r)
{
    struct bh_json *gone;
    return take_out(r, r->op.path, &gone);
}

static int op_replace(struct run *r)
{
    struct target t;
    int rc = resolve_existing(r, r->op.path, &t);
    if (rc < 0)
        return rc;
    if (t.parent)
        bh_json_remove(t.parent, t.child); /* add puts the new one at the same index */
    return op_add(r);
}

static int op_move(struct run *r)
{
    struct bh_str from = r->op.from, to = r->op.path;
    struct bh_json *v = NULL;
    if (bh_str_eq(from, to)) {
        struct target t;
        return resolve_existing(r, from, &t);
    }
    if (to.n > from.n && memcmp(to.p, from.p, from.n) == 0 && to.p[from.n] == '/')
        return bad_pointer(r, to, "a value cannot move into itself");
    int rc = take_out(r, from, &v);
    return rc < 0 ? rc : add(r, v);
}

static int op_copy(struct run *r)
{
    struct target t;
    int rc = resolve_existing(r, r->op.from, &t);
    if (rc < 0)
        return rc;
    struct bh_json *v = bh_json_clone(r->a, t.child);
    return v ? add(r, v) : too_big(r);
}

static int op_test(struct run *r)
{
    struct target t;
    int rc = resolve(r, r->op.path, &t);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    if (rc == 0 && t.child && bh_json_equal(t.child, r->op.value))
        return 0;
    return bh_err_set(r->err, -EBADMSG, "testing value %.200s failed: test failed", r->op.path.p);
}

static const struct {
    const char *name;
    int (*run)(struct run *);
    bool value, from;
} operations[] = {
    {"add", op_add, true, false},         {"remove", op_remove, false, false},
    {"replace", op_replace, true, false}, {"move", op_move, false, true},
    {"copy", op_copy, false, true},       {"test", op_test, true, false},
};

static int run_one(struct run *r, const struct bh_json *item)
{
    const struct bh_json *path = bh_json_get(item, "path"), *from = bh_json_get(item, "from");
    const char *name = bh_json_get_str(item, "op");
    if (!name)
        return bh_err_set(r->err, -EINVAL, "json patch: operation without op");
    if (!bh_json_cstr(path))
        return bh_err_set(r->err, -EINVAL, "json patch: %.32s operation without path", name);
    r->op = (struct op){.name = name, .path = path->s, .value = bh_json_get(item, "value")};
    for (size_t i = 0; i < BH_ARRAY_LEN(operations); i++) {
        if (!bh_streq(operations[i].name, name))
            continue;
        if (operations[i].value && !r->op.value)
            return bh_err_set(r->err, -EINVAL, "json patch: %s operation without value", name);
        if (operations[i].from && !bh_json_cstr(from))
            return bh_err_set(r->err, -EINVAL, "json patch: %s operation without from", name);
        if (operations[i].from)
            r->op.from = from->s;
        return operations[i].run(r);
    }
    return bh_err_set(r->err, -EINVAL, "json patch: unexpected kind: %.64s", name);
}

int bh_patch_json(struct bh_arena *a, const struct bh_json *doc, const struct bh_json *patch,
                  struct bh_json **ret, struct bh_err *err)
{
    if (patch->type != BH_JSON_ARRAY)
        return bh_err_set(err, -EINVAL, "json patch: must be an array of operations");
    if (patch->c.n > OPERATIONS_MAX)
        return bh_err_set(err, -E2BIG,
                          "The allowed maximum operations in a JSON patch is %d, got %zu",
                          OPERATIONS_MAX, patch->c.n);
    struct run r = {.a = a, .doc = bh_json_clone(a, doc), .err = err};
    if (!r.doc)
        return bh_err_set(err, -E2BIG, "object is too large");
    bh_json_each(item, patch) {
        int rc = run_one(&r, item);
        if (rc < 0)
            return rc;
    }
    *ret = r.doc;
    return 0;
}
