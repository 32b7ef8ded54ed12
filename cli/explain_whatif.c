/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/explain_whatif.c - objects from files put into the observer's engine, and the difference that
 * they make
 *
 * Objects that came out of an API server (kubectl get -o yaml) are taken as they are; in others the
 * fields that decisions depend on get the API server's defaults.
 */
#include "cli/explain.h"

#include <errno.h>

#include "simulator/trial/trial.h"
#include "simulator/admission/admission.h"
#include "scheduler/explain/grid.h"

#define NODES_SHOWN 20u

struct object {
    struct bh_trial_source at;
    const struct bh_kind_info *kind;
    struct bh_json *json;
    const char *ns, *name; /* ns "" for kinds without */
};
struct bh_whatif {
    struct bh_arena arena;
    struct object *v;
    size_t n;
};

/* ---- reading --------------------------------------------------------------------------------- */

static int blame(const struct object *o, int rc, struct bh_err *err)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    bh_trial_where(&b, &o->at);
    return bh_err_prefix(err, rc, "%.200s: %s \"%.253s\"", bh_buf_str(&b), o->kind->kind_name,
                         o->name);
}

static int on_object(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                     struct bh_json *obj, struct bh_err *err)
{
    struct bh_whatif *w = arg;
    struct object o = {.at = *at};
    struct bh_buf where BH_CLEANUP(bh_buf_fini) = {0};

    (void)a;
    o.kind = bh_kind_find(bh_json_get_str(obj, "apiVersion"), bh_json_get_str(obj, "kind"));
    if (!o.kind) {
        bh_trial_where(&where, at);
        return bh_err_set(err, -EINVAL, "%.200s: %s %s: not a kind that decisions depend on",
                          bh_buf_str(&where), bh_json_get_str(obj, "apiVersion"),
                          bh_json_get_str(obj, "kind"));
    }
    int rc = bh_trial_known(at, obj, err);
    if (rc < 0)
        return rc;
    o.json = bh_json_clone(&w->arena, obj);
    o.name = bh_json_cstr(bh_json_path(o.json, "metadata.name"));
    if (!o.name || !*o.name) {
        o.name = "";
        return blame(&o, bh_err_set(err, -EINVAL, "metadata.name: expected text"), err);
    }
    if (!bh_json_path(o.json, "metadata.uid"))
        bh_api_defaults(&w->arena, o.json);
    const char *ns = bh_json_cstr(bh_json_path(o.json, "metadata.namespace"));
    o.ns = !o.kind->namespaced ? "" : ns && *ns ? ns : "default";
    if (o.kind->namespaced)
        bh_json_set_str(&w->arena, bh_json_obj_at(&w->arena, o.json, "metadata"), "namespace",
                        o.ns);
    w->v = bh_reallocarray(w->v, w->n + 1, sizeof(*w->v));
    w->v[w->n++] = o;
    return 0;
}

int bh_whatif_read(struct bh_whatif **ret, const char *const *files, size_t n, struct bh_err *err)
{
    struct bh_whatif *w = bh_calloc(1, sizeof(*w));
    int rc = 0;

    for (size_t i = 0; i < n && rc >= 0; i++)
        rc = bh_trial_read(files[i], &w->arena, on_object, w, err);
    if (rc >= 0 && !w->n)
        rc = bh_err_set(err, -EINVAL, "--what-if: the files hold no object");
    if (rc < 0) {
        bh_whatif_free(w);
        return rc;
    }
    *ret = w;
    return 0;
}

void bh_whatif_free(struct bh_whatif *w)
{
    if (!w)
        return;
    bh_arena_fini(&w->arena);
    free(w->v);
    free(w);
}

void bh_whatif_want(const struct bh_whatif *w, struct bh_observer *o)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->v[i].kind->kind == BH_KIND_POD)
            bh_observer_want(o, w->v[i].ns, w->v[i].name);
}

/* ---- applying -------------------------------------------------------------------------------- */

struct apply { /* one object on its way into the engine */
    struct bh_arena *a;
    struct bh_observer *o;
    struct bh_explain_pod *pod;
    const struct object *obj;
    const char *action; /* what it turned out to be */
};

/* A manifest has neither uid nor what admission would add to it; its priority is the one thing of
 * that which decisions depend on most, so the explained pod keeps its own. */
static void complete(struct apply *p, bool ours)
{
    const struct bh_shape_rec *now = bh_engine_shape_rec(p->o->w.engine, p->pod->pending.shape);
    struct bh_json *meta = bh_json_get(p->obj->json, "metadata");
    struct bh_json *spec = bh_tree_obj(p->obj->json, "spec");
    const char *uid = bh_json_get_str(meta, "uid");

    if (uid && *uid)
        return;
    bh_json_set_str(p->a, meta, "uid",
                    ours ? bh_rec_text(p->pod->rec, p->pod->rec->uid).p
                         : bh_arena_printf(p->a, "what-if %s/%s", p->obj->ns, p->obj->name));
    if (ours && spec && !bh_tree_has(spec, "priority"))
        bh_json_set_i64(p->a, spec, "priority", now->priority);
}

static int replace_pod(struct apply *p, const struct bh_offline_object *x, bool ours,
                       struct bh_err *err)
{
    struct bh_engine *e = p->o->w.engine;
    const char *scheduler = bh_sym_text(bh_engine_symtab(e), x->shape->scheduler_name);

    if (ours && !bh_engine_responsible(e, scheduler))
        return bh_err_set(err, -EINVAL,
                          "spec.schedulerName: the configuration has no profile \"%.100s\"",
                          scheduler);
    if (ours) {
        /* The pod that is explained: it has no node, whatever the file says. */
        struct bh_pod_rec *rec = x->pod;
        bh_shape_id shape = bh_engine_shape(e, x->shape);
        bh_engine_shape_unref(p->o->w.engine, p->pod->pending.shape);
        free(p->pod->rec);
        p->pod->rec = bh_memdup(rec, rec->h.size);
        p->pod->rec->node = BH_SYM_NONE;
        p->pod->pending = (struct bh_pending){.pod = p->pod->rec, .shape = shape};
        p->action = "explained";
    } else {
        const struct bh_observed_pod *old = bh_observer_bound(p->o, p->obj->ns, p->obj->name);
        if (old)
            bh_offline_del(&p->o->w, BH_KIND_POD, "", bh_rec_text(old->pod, old->pod->uid).p);
        if (x->pod->node != BH_SYM_NONE && !x->finished) {
            (void)bh_offline_put(&p->o->w, x, NULL);
            p->action = old ? "replaced" : "added";
        } else {
            p->action = old ? "taken off its node" : "pending, without effect";
        }
    }
    return 0;
}

static bool is_pod(const struct object *o, const struct bh_explain_pod *pod)
{
    return o->kind->kind == BH_KIND_POD && bh_streq(o->ns, pod->ns) && bh_streq(o->name, pod->name);
}

static int apply(struct apply *p, struct bh_err *err)
{
    const struct bh_kind_info *k = p->obj->kind;
    bool ours = is_pod(p->obj, p->pod);
    struct bh_offline_object x;

    if (k->kind == BH_KIND_POD)
        complete(p, ours);
    int rc = bh_offline_read(p->o->w.engine, p->a, k, p->obj->json, &x, err);
    if (rc < 0)
        return rc;
    if (x.pod)
        return replace_pod(p, &x, ours, err);
    p->action = !x.node                                             ? "put"
                : bh_engine_find_node(p->o->w.engine, x.node->name) ? "replaced"
                                                                    : "added";
    return bh_offline_put(&p->o->w, &x, err);
}

int bh_whatif_apply(const struct bh_whatif *w, struct bh_arena *a, struct bh_observer *o,
                    struct bh_explain_pod *pod, struct bh_json **ret_changes, struct bh_err *err)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (size_t i = 0; i < w->n; i++) {
        struct apply p = {.a = a, .o = o, .pod = pod, .obj = &w->v[i]};
        int rc = apply(&p, err);
        if (rc < 0)
            return blame(&w->v[i], rc, err);
        bh_json_append(a, list, "kind: %s, namespace?: %s, name: %s, action: %s",
                       w->v[i].kind->kind_name, w->v[i].ns, w->v[i].name, p.action);
    }
    *ret_changes = list;
    return 0;
}

const struct bh_json *bh_whatif_pod(const struct bh_whatif *w, const struct bh_explain_pod *pod)
{
    const struct bh_json *last = NULL;

    for (size_t i = 0; i < w->n; i++)
        last = is_pod(&w->v[i], pod) ? w->v[i].json : last;
    return last;
}

/* ---- as text --------------------------------------------------------------------------------- */

static void print_nodes(struct bh_buf *out, const struct bh_json *d, bool all, bool colour)
{
    const struct bh_json *nodes = bh_json_get_list(d, "nodes");
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    size_t n = 0, changed = nodes ? nodes->c.n : 0;

    bh_buf_addf(out, "\n%zu %s differently, %lld as before\n", changed,
                changed == 1 ? "node comes out" : "nodes come out",
                (long long)bh_json_get_i64(d, "unchanged", 0));
    if (!changed)
        return;
    bh_grid_heading(&g, 0, "NODE", "BEFORE", "AFTER", NULL);
    bh_json_each(v, nodes) {
        if (!all && n++ == NODES_SHOWN)
            break;
        bh_grid_members(&g, 0, v, "node before after");
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, colour);
    if (!all && changed > NODES_SHOWN)
        bh_buf_addf(out, "... and %zu more; -o wide lists all\n", changed - NODES_SHOWN);
}

void bh_explain_print_difference(struct bh_buf *out, const struct bh_json *whatif,
                                 enum bh_form form, bool colour)
{
    const struct bh_json *d = bh_json_get(whatif, "difference"), *r = bh_json_get(d, "result");
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    bh_buf_adds(out, "\nWhat if\n");
    bh_grid_heading(&g, 0, "KIND", "NAMESPACE", "NAME", "ACTION", NULL);
    bh_json_each(c, bh_json_get_list(whatif, "changes")) {
        bh_grid_members(&g, 0, c, "kind namespace name action");
        bh_grid_row(&g);
    }
    bh_grid_print(&g, out, 0, colour);
    print_nodes(out, d, form == BH_FORM_WIDE, colour);
    bh_buf_addc(out, '\n');
    if (bh_streq(bh_json_get_text(r, "before"), bh_json_get_text(r, "after"))) {
        bh_buf_adds(out, "The result stays the same.\n\n");
    } else {
        bh_grid_line(&g, "Before:", 0, "%s", bh_json_get_text(r, "before"));
        bh_grid_line(&g, "After:", 0, "%s", bh_json_get_text(r, "after"));
        bh_grid_print(&g, out, 0, colour);
        bh_buf_addc(out, '\n');
    }
    bh_explain_render(out, bh_json_get(whatif, "explanation"), form, colour);
    bh_explain_print_fixes(out, bh_json_get(whatif, "fixes"), form == BH_FORM_WIDE);
}
