/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes.c - what would make a pod fit: trying, pairs, the document
 */
#include "simulator/offline/fixes_int.h"

#include "common/data/patch.h"
#include "common/data/yaml.h"

/* ---- trying ---------------------------------------------------------------------------------- */

struct bh_json *bh_fixes_patched(struct bh_fixes *f, const char *kind, const struct bh_json *doc,
                                 const struct bh_json *patch)
{
    struct bh_json *ret = NULL;
    struct bh_err err;

    if (!patch)
        return bh_json_clone(f->a, doc);
    /* Of a node kubectl is told to merge: its lists are replaced. */
    int rc = bh_streq(kind, "Pod") ? bh_patch_strategic(f->a, kind, doc, patch, &ret, &err)
                                   : bh_patch_merge(f->a, doc, patch, &ret, &err);
    return rc < 0 ? NULL : ret;
}

struct undo {
    const struct bh_kind_info *k;
    const char *ns, *name;
    struct bh_json *old; /* NULL: there was none */
};

/* Into the engine; what was there goes into u. false: it cannot be read. A node that is there was
 * made from its record: what that leaves out (annotations; what extenders are shown) stays as it is,
 * during the trial and behind it. */
static bool put(struct bh_fixes *f, const struct bh_json *obj, struct undo *u)
{
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    struct bh_offline_object x;
    struct bh_err err;

    *u = (struct undo){
        .k = bh_kind_find(bh_json_get_str(obj, "apiVersion"), bh_json_get_str(obj, "kind")),
        .ns = bh_json_get_text(meta, "namespace"),
        .name = bh_json_get_text(meta, "name")};
    if (!u->k)
        return false;
    u->old = u->k->kind == BH_KIND_NODE ? bh_fixes_node(f, u->name)
                                        : bh_fixes_object(f, u->k->kind, u->ns, u->name);
    if (bh_offline_read(f->w->engine, f->a, u->k, obj, &x, &err) < 0)
        return false;
    if (u->k->kind == BH_KIND_NODE && u->old)
        x.message = NULL;
    return bh_offline_put(f->w, &x, &err) >= 0;
}

static void take_back(struct bh_fixes *f, const struct undo *u)
{
    struct bh_err err;

    if (!u->k)
        return;
    if (u->k->kind == BH_KIND_NODE && f->node_was) {
        const struct bh_offline_object x = {.kind = u->k, .name = u->name, .node = f->node_was};
        (void)bh_offline_put(f->w, &x, &err);
        f->node_was = NULL;
    } else if (u->old && u->k->kind != BH_KIND_NODE) {
        (void)bh_offline_put_tree(f->w, f->a, u->k, u->old, &err);
    } else {
        bh_offline_del(f->w, u->k->kind, u->ns, u->name);
    }
}

struct bh_json *bh_fixes_decide(struct bh_fixes *f, const struct bh_json *pod)
{
    struct bh_offline_object x;
    struct bh_err err;

    if (!pod || bh_offline_read(f->w->engine, f->a, &bh_kinds[BH_KIND_POD], pod, &x, &err) < 0)
        return NULL;
    x.pod->node = BH_SYM_NONE;
    const struct bh_pending p = {.pod = x.pod, .shape = bh_engine_shape(f->w->engine, x.shape)};
    struct bh_json *e = bh_offline_explain(f->w, &p, f->a);
    bh_engine_shape_unref(f->w->engine, p.shape);
    return e;
}

/* How the pod comes out with x, NULL: it cannot be asked. and: generates from that, before all is
 * taken back. */
static struct bh_json *attempt(struct bh_fixes *f, struct bh_fix *x,
                               void (*and)(struct bh_fixes *f, const struct bh_fix *x))
{
    struct undo undo[BH_FIX_OBJECTS] = {{0}};
    unsigned n = 0;
    BH_CLEANUP(bh_freep) struct bh_node_rec *before = NULL; /* until all is as it was */

    x->tree = bh_fixes_patched(f, "Pod", f->pod, x->pod);
    if (x->node && bh_fixes_rec(f, x->node_name)) {
        struct bh_json *was = bh_fixes_node(f, x->node_name);
        before = bh_memdup(bh_fixes_rec(f, x->node_name), bh_fixes_rec(f, x->node_name)->h.size);
        f->node_was = before;
        (void)put(f, bh_fixes_patched(f, "Node", was, x->node), &undo[n++]);
    }
    for (unsigned l = 0; l < 2; l++)
        bh_json_each(obj, l ? x->assumed : x->create)
            if (n < BH_FIX_OBJECTS)
                (void)put(f, obj, &undo[n++]);
    struct bh_fix_siblings *siblings = bh_fixes_change_siblings(f, x);
    struct bh_json *e = f->decide ? f->decide(f, x) : bh_fixes_decide(f, x->tree);
    x->after = e;
    if (e && and)
        and(f, x);
    bh_fixes_restore_siblings(siblings);
    while (n)
        take_back(f, &undo[--n]);
    f->node_was = NULL;
    return e;
}

static bool fits(const struct bh_fix *x)
{
    return x->after && (bh_streq(bh_json_get_text(x->after, "result"), "Scheduled") ||
                        *bh_json_get_text(bh_json_get(x->after, "preemption"), "nominatedNode"));
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static void merge(struct bh_arena *a, struct bh_json *into, const struct bh_json *from)
{
    bh_json_each(m, from) {
        struct bh_json *mine = bh_json_get(into, m->key.p);
        if (mine && mine->type == BH_JSON_OBJECT && m->type == BH_JSON_OBJECT)
            merge(a, mine, m);
        else
            bh_json_set(a, into, m->key.p, bh_json_clone(a, m));
    }
}

static struct bh_json *both(struct bh_arena *a, const struct bh_json *x, const struct bh_json *y)
{
    struct bh_json *ret = x ? bh_json_clone(a, x) : y ? bh_json_clone(a, y) : NULL;

    if (x && y && x->type == BH_JSON_ARRAY)
        bh_json_each(m, y)
            bh_json_push(ret, bh_json_clone(a, m));
    else if (x && y)
        merge(a, ret, y);
    return ret;
}

/* Runs while first is in force: what answers its outcome goes with it. */
static void pair_with(struct bh_fixes *f, const struct bh_fix *first)
{
    const struct bh_fix one = *first; /* the list may move */
    struct bh_fixes next = {.w = f->w, .a = f->a, .pod = one.tree, .why = one.after};

    bh_fixes_think(&next);
    for (unsigned i = 0; i < next.n && f->n < BH_FIX_MAX; i++) {
        const struct bh_fix *y = &next.v[i];
        if (one.alone || y->alone || bh_streq(one.kind, y->kind) || (one.node && y->node))
            continue;
        f->v[f->n++] =
            (struct bh_fix){.text = bh_arena_printf(f->a, "%s, and %s", one.text, y->text),
                            .kind = "pair",
                            .pod = both(f->a, one.pod, y->pod),
                            .node = one.node ? one.node : y->node,
                            .node_name = one.node ? one.node_name : y->node_name,
                            .create = both(f->a, one.create, y->create),
                            .assumed = both(f->a, one.assumed, y->assumed)};
    }
}

/* ---- the document ---------------------------------------------------------------------------- */

static const char *outcome(struct bh_fixes *f, const struct bh_fix *x)
{
    const struct bh_json *p = bh_json_get(x->after, "preemption"),
                         *v = bh_json_get_list(p, "victims");
    const char *node = bh_json_get_text(x->after, "nodeName");
    long long n = bh_json_get_i64(bh_json_get(x->after, "nodes"), "feasible", 0);

    if (!x->after)
        return "could not be asked";
    if (f->decide)
        return bh_json_get_text(x->after, "outcome");
    if (*node)
        return n > 1 ? bh_arena_printf(f->a, "fits: it would go to %s, one of %lld nodes", node, n)
                     : bh_arena_printf(f->a, "fits: it would go to %s", node);
    if (fits(x))
        return bh_arena_printf(f->a, "fits after evicting %zu %s on %s", v ? v->c.n : 0,
                               v && v->c.n == 1 ? "pod" : "pods",
                               bh_json_get_text(p, "nominatedNode"));
    const char *text = bh_json_get_text(x->after, "fitMessage");
    return bh_arena_printf(f->a, "still nowhere: %s",
                           *text ? text : bh_json_get_text(x->after, "message"));
}

static struct bh_json *describe(struct bh_fixes *f, struct bh_fix *x)
{
    struct bh_json *o = bh_json_make(f->a, "text: %s, fits: %i, outcome: %s, missing?: %i", x->text,
                                     fits(x), outcome(f, x), x->missing);

    if (x->pod)
        bh_json_set(f->a, o, "pod", bh_json_clone(f->a, x->tree));
    if (x->alone) /* the number alone can be asked about before there is a class of it */
        bh_json_unset(bh_json_path(o, "pod.spec"), "priorityClassName");
    if (x->node)
        bh_json_add(f->a, o, "node: {name: %s, patch: %p}", x->node_name,
                    bh_json_clone(f->a, x->node));
    if (x->create)
        bh_json_set(f->a, o, "create", bh_json_clone(f->a, x->create));
    bh_fixes_commands(f, x, o);
    return o;
}

static int rank(const struct bh_fix *x)
{
    return fits(x) ? (bh_streq(bh_json_get_text(x->after, "result"), "Scheduled") ? 3 : 2)
                   : x->missing;
}

struct bh_json *bh_fixes_try(struct bh_fixes *f)
{
    struct bh_json *list = bh_json_new(f->a, BH_JSON_ARRAY);
    unsigned singles = f->n;
    bool any = false;

    for (unsigned i = 0; i < singles; i++) {
        (void)attempt(f, &f->v[i], NULL);
        any |= fits(&f->v[i]);
    }
    bool pairs = !any && singles;
    for (unsigned i = 0; pairs && i < singles; i++)
        (void)attempt(f, &f->v[i], pair_with);
    for (unsigned i = singles; i < f->n; i++)
        (void)attempt(f, &f->v[i], NULL);
    for (int r = 3; r >= 0; r--)
        for (unsigned i = 0; i < f->n; i++)
            if (rank(&f->v[i]) == r && (r > 0 || i < singles))
                bh_json_push(list, describe(f, &f->v[i]));
    return bh_json_make(f->a, "tried: %u, pairs: %i, fixes: %p", f->n, pairs, list);
}

struct bh_json *bh_offline_fixes(struct bh_offline *w, struct bh_arena *a,
                                 const struct bh_json *pod, const struct bh_json *explanation)
{
    struct bh_fixes f = {.w = w, .a = a, .pod = pod, .why = explanation};

    bh_fixes_think(&f);
    return bh_fixes_try(&f);
}
