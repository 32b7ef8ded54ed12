/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/explain_group.c - `berth explain podgroup/NAME`: a group of the running system, and its document
 * (simulator/offline/explain_group.c) as text
 */
#include "cli/explain.h"

#include "scheduler/explain/grid.h"
#include "simulator/offline/fixes.h"

struct group {
    struct bh_observer *o;
    struct bh_arena *a;
    const char *ns, *name;
    const struct bh_observed_pod **seen; /* members without a node, in the order of their turn */
    struct bh_pending *v;
    const char **objects;
    uint32_t n;
};

static const struct bh_shape_rec *shape_of(const struct group *g, const struct bh_observed_pod *p)
{
    return bh_engine_shape_rec(g->o->w.engine, p->shape);
}

static int by_turn(const void *pa, const void *pb, void *arg)
{
    const struct bh_observed_pod *a = *(const struct bh_observed_pod *const *)pa,
                                 *b = *(const struct bh_observed_pod *const *)pb;
    const int32_t x = shape_of(arg, a)->priority, y = shape_of(arg, b)->priority;

    if (x != y)
        return x > y ? -1 : 1;
    if (a->pod->creation_ns != b->pod->creation_ns)
        return a->pod->creation_ns < b->pod->creation_ns ? -1 : 1;
    return strcmp(bh_rec_text(a->pod, a->pod->name).p, bh_rec_text(b->pod, b->pod->name).p);
}

static void find_members(struct group *g)
{
    struct bh_engine *e = g->o->w.engine;
    struct bh_map_entry *m;

    g->seen = bh_arena_new_array(g->a, const struct bh_observed_pod *, g->o->pending.len + 1);
    for (size_t it = 0; (m = bh_map_next(&g->o->pending, &it));) {
        const struct bh_observed_pod *p = m->value;
        const struct bh_pending pending = {.pod = p->pod, .shape = p->shape};
        if (bh_offline_of_group(&g->o->w, g->ns, g->name, &pending) &&
            !bh_engine_is_assumed(e, bh_rec_text(p->pod, p->pod->uid)))
            g->seen[g->n++] = p;
    }
    if (g->n > 1)
        qsort_r(g->seen, g->n, sizeof(*g->seen), by_turn, g);
    g->v = bh_arena_new_array(g->a, struct bh_pending, g->n + 1);
    g->objects = bh_arena_new_array(g->a, const char *, g->n + 1);
    for (uint32_t i = 0; i < g->n; i++) {
        g->v[i] = (struct bh_pending){.pod = g->seen[i]->pod, .shape = g->seen[i]->shape};
        g->objects[i] = g->seen[i]->object;
    }
}

int bh_explain_group(struct bh_arena *a, struct bh_observer *o, const char *ns, const char *name,
                     bool fixes, struct bh_json **ret_doc, struct bh_err *err)
{
    struct group g = {.o = o, .a = a, .ns = ns, .name = name};

    find_members(&g);
    o->w.now_ns = bh_wall_ns();
    const struct bh_offline_members m = {
        .ns = ns, .name = name, .v = g.v, .objects = g.objects, .n = g.n};
    return bh_offline_explain_group(&o->w, a, &m, fixes, ret_doc, err);
}

struct bh_json *bh_explain_waiting_group(struct bh_arena *a, struct bh_observer *o, const char *ns,
                                         const char *name)
{
    struct bh_json *doc = NULL;
    long long has = 0, waiting = 0;
    struct bh_err err;

    if (bh_explain_group(a, o, ns, name, false, &doc, &err) < 0 ||
        !bh_streq(bh_json_get_text(doc, "result"), "Unschedulable"))
        return NULL;
    waiting = (long long)bh_json_get_i64(bh_json_get(doc, "members"), "waiting", 0);
    bh_json_each(p, bh_json_get_list(doc, "pods"))
        has += bh_streq(bh_json_get_text(p, "state"), "has room");
    return bh_json_make(a, "namespace: %s, name: %s, haveRoom: %ld, waiting: %ld", ns, name,
                        (long)has, (long)waiting);
}

/* ---- as text --------------------------------------------------------------------------------- */

static void print_placements(struct bh_buf *out, const struct bh_json *list, bool colour)
{
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    if (!list || !list->c.n)
        return;
    bh_grid_heading(&g, 0, "PLACEMENT", ">NODES", ">HAVE ROOM", ">SCORE", "RESULT", NULL);
    bh_json_each(p, list) {
        const bool fits = bh_json_get_bool(p, "fits", false);
        const char *lack = bh_json_get_text(p, "lack");
        bh_grid_members(&g, 0, p, "name >nodes >placed >score");
        bh_grid_cell(&g, fits ? BH_CELL_GOOD : BH_CELL_BAD, "%s%s%s",
                     bh_json_get_bool(p, "chosen", false) ? "chosen"
                     : fits                               ? "fits"
                                                          : "does not fit",
                     *lack ? ": " : "", lack);
        bh_grid_row(&g);
    }
    bh_buf_addc(out, '\n');
    bh_grid_print(&g, out, 0, colour);
}

void bh_explain_print_group(struct bh_buf *out, const struct bh_json *doc, enum bh_form form,
                            bool colour)
{
    const struct bh_json *group = bh_json_get(doc, "group"), *n = bh_json_get(doc, "members"),
                         *fixes = bh_json_get(doc, "fixes");
    const char *message = bh_json_get_text(doc, "message"),
               *result = bh_json_get_text(doc, "result");
    const bool labelled = bh_streq(bh_json_get_text(group, "policy"), "Coscheduling");
    const bool good = bh_streq(result, "Fits") || bh_streq(result, "Scheduled");
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    const long long min = (long long)bh_json_get_i64(group, "minCount", 0);

    if (form == BH_FORM_JSON || form == BH_FORM_YAML) {
        bh_form_write(out, doc, form);
        return;
    }
    if (min)
        bh_grid_line(&g, "Group:", 0, "%s/%s, a gang of at least %lld%s",
                     bh_json_get_text(group, "namespace"), bh_json_get_text(group, "name"), min,
                     labelled ? ", of plugin Coscheduling" : "");
    else
        bh_grid_line(&g, "Group:", 0, "%s/%s, basic", bh_json_get_text(group, "namespace"),
                     bh_json_get_text(group, "name"));
    bh_grid_line(&g, "Topology:", 0, "%s", bh_json_get_text(group, "topologyKey"));
    bh_grid_line(&g, "Result:", good ? BH_CELL_GOOD : BH_CELL_BAD, "%s%s%s", result,
                 *message ? ": " : "", message);
    bh_grid_line(&g, "Members:", 0, "%lld known, %lld on nodes, %lld waiting",
                 (long long)bh_json_get_i64(n, "known", 0),
                 (long long)bh_json_get_i64(n, "onNodes", 0),
                 (long long)bh_json_get_i64(n, "waiting", 0));
    bh_json_each(x, bh_json_get_list(doc, "notes"))
        bh_grid_line(&g, "Note:", BH_CELL_DIM, "%s", bh_json_cstr(x));
    bh_grid_print(&g, out, 0, colour);
    print_placements(out, bh_json_get_list(doc, "placements"), colour);
    if (bh_json_get_list(doc, "pods")) {
        bh_grid_heading(&g, 0, "POD", "STATE", "NODE", "MESSAGE", NULL);
        bh_json_each(p, bh_json_get_list(doc, "pods")) {
            bh_grid_members(&g, 0, p, "name state node message");
            bh_grid_row(&g);
        }
        bh_buf_addc(out, '\n');
        bh_grid_print(&g, out, 0, colour);
    }
    if (fixes)
        bh_buf_addf(
            out,
            labelled
                ? "\nFor %s, with the others where they have room:"
                : "\nFor all of the group (%s stands for each member in what is changed of pods):",
            bh_json_get_text(doc, "fixesFor"));
    bh_explain_print_fixes(out, fixes, form == BH_FORM_WIDE);
}
