/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/explain_group.c - `berth explain podgroup/NAME`: why a group goes or waits, placement by placement
 * and member by member, and what would make it fit
 *
 * The whole group is tried in the observer's engine as the scheduler would try it.
 */
#include "cli/explain.h"

#include <errno.h>

#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/explain/grid.h"
#include "simulator/offline/fixes.h"

struct group {
    struct bh_observer *o;
    struct bh_arena *a;
    const char *ns, *name;
    struct bh_pod_group spec;
    const struct bh_observed_pod **seen; /* members without a node, in the order of their turn */
    struct bh_group_try *try;
    uint32_t n;
    uint32_t known, scheduled; /* members; those on nodes or on their way */
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
    struct bh_symtab *tab = bh_engine_symtab(e);
    const struct bh_group *known = NULL;
    struct bh_map_entry *m;

    g->seen = bh_arena_new_array(g->a, const struct bh_observed_pod *, g->o->pending.len + 1);
    for (size_t it = 0; (m = bh_map_next(&g->o->pending, &it));) {
        const struct bh_observed_pod *p = m->value;
        const struct bh_pending pending = {.pod = p->pod, .shape = p->shape};
        if (p->pod->group == BH_SYM_NONE || !bh_streq(bh_sym_text(tab, p->pod->group), g->name) ||
            !bh_str_eqc(bh_rec_text(p->pod, p->pod->namespace_), g->ns))
            continue;
        known = bh_engine_group_of(e, &pending);
        if (!bh_engine_is_assumed(e, bh_rec_text(p->pod, p->pod->uid)))
            g->seen[g->n++] = p;
    }
    if (g->n > 1)
        qsort_r(g->seen, g->n, sizeof(*g->seen), by_turn, g);
    g->try = bh_arena_new_array(g->a, struct bh_group_try, g->n + 1);
    for (uint32_t i = 0; i < g->n; i++)
        g->try[i].pod = (struct bh_pending){.pod = g->seen[i]->pod, .shape = g->seen[i]->shape};
    g->known = known ? bh_group_all(known) : 0;
    g->scheduled = known ? bh_group_scheduled(known) : 0;
}

static int find_group(struct group *g, struct bh_err *err)
{
    const K8s__PodGroup *m =
        (const void *)bh_engine_get_object(g->o->w.engine, BH_KIND_PODGROUP, g->ns, g->name);

    if (!m)
        return bh_err_set(err, -ENOENT, "there is no PodGroup \"%s\" in namespace \"%s\"", g->name,
                          g->ns);
    return bh_pod_group_read(m, &g->spec, err);
}

/* ---- the document ---------------------------------------------------------------------------- */

static struct bh_json *placements(const struct group *g, const struct bh_group_result *r)
{
    struct bh_json *list = bh_json_new(g->a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < r->n_placements; i++) {
        const struct bh_placement_try *t = &r->placements[i];
        bh_json_push(list, bh_json_make(g->a,
                                        "name: %s, nodes: %u, placed: %u, fits: %i, chosen?: %i, "
                                        "score?: %ld, lack?: %s",
                                        t->name, t->nodes, t->placed, t->fits, t->chosen,
                                        (long)t->score, t->lack));
    }
    return list;
}

static const char *state_of(const struct bh_group_try *t, bool goes)
{
    if (!t->decided)
        return "not tried";
    if (t->node == BH_SYM_NONE)
        return "no room";
    return t->preempts ? "would preempt" : goes ? "goes" : "has room";
}

static struct bh_json *members(const struct group *g, bool goes)
{
    struct bh_json *list = bh_json_new(g->a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_group_try *t = &g->try[i];
        const bool room = t->node != BH_SYM_NONE;
        bh_json_push(
            list, bh_json_make(g->a, "name: %s, state: %s, node?: %s, message?: %s",
                               bh_rec_text(t->pod.pod, t->pod.pod->name).p, state_of(t, goes),
                               room ? bh_sym_text(bh_engine_symtab(g->o->w.engine), t->node) : NULL,
                               room ? NULL : t->decision.message));
    }
    return list;
}

/* What would give the first member without room a node, with the others where they have room. In a
 * group with a topology the placements say it: each lacks something else. */
static void add_fixes(struct group *g, struct bh_json *doc)
{
    struct bh_engine *e = g->o->w.engine;
    uint32_t lacks = 0;
    struct bh_err err;
    struct bh_json *pod = NULL;

    while (lacks < g->n && g->try[lacks].node != BH_SYM_NONE)
        lacks++;
    if (lacks == g->n || !g->try[lacks].decided || g->spec.topology_key)
        return;
    const char *object = g->seen[lacks]->object;
    if (!object || bh_json_parse(g->a, object, strlen(object), 0, &pod, &err) < 0)
        return;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->try[i].node != BH_SYM_NONE && !g->try[i].preempts)
            (void)bh_engine_assume(e, &g->try[i].pod, g->try[i].node);
    g->o->w.o.flags = BH_NO_PREEMPTION; /* the victims could be the other members */
    const struct bh_pending *p = &g->try[lacks].pod;
    const struct bh_json *now = bh_offline_explain(&g->o->w, p, g->a);
    bh_json_add(g->a, doc, "fixesFor: %s, fixes: %p", bh_rec_text(p->pod, p->pod->name).p,
                bh_offline_fixes(&g->o->w, g->a, pod, now));
}

static void try_it(struct group *g, struct bh_json *doc)
{
    struct bh_group_result r;

    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_status *s = bh_engine_pre_enqueue(g->o->w.engine, &g->try[i].pod);
        if (!s)
            continue;
        bh_json_add(g->a, doc, "result: Gated, message: %s", bh_status_message(g->a, s));
        return;
    }
    bh_engine_schedule_group(g->o->w.engine, g->try, g->n, 0, bh_wall_ns(), &r);
    const bool goes = r.code == BH_SUCCESS;
    bh_json_add(g->a, doc, "result: %s, message?: %s, placements?: %p, pods: %p",
                goes                 ? "Fits"
                : r.waiting          ? "Preempts"
                : r.code == BH_ERROR ? "Error"
                                     : "Unschedulable",
                r.message, g->spec.topology_key ? placements(g, &r) : NULL, members(g, goes));
    if (!goes && !r.waiting)
        add_fixes(g, doc);
}

int bh_explain_group(struct bh_arena *a, struct bh_observer *o, const char *ns, const char *name,
                     struct bh_json **ret_doc, struct bh_err *err)
{
    struct group g = {.o = o, .a = a, .ns = ns, .name = name};
    int rc = find_group(&g, err);

    if (rc < 0)
        return rc;
    find_members(&g);
    struct bh_json *doc = bh_json_make(
        a,
        "kind: PodGroupExplanation, apiVersion: " BH_EXPLAIN_API
        ", group: {namespace: %s, name: %s, policy: %s, minCount?: %d, topologyKey?: %s}, "
        "members: {known: %u, onNodes: %u, waiting: %u}",
        ns, name, g.spec.min_count == BH_GROUP_NOT_A_GANG ? "Basic" : "Gang", g.spec.min_count,
        g.spec.topology_key, g.known, g.scheduled, g.n);
    if (g.n)
        try_it(&g, doc);
    else
        bh_json_add(a, doc, "result: %s, message: 'no pod of it waits for a node'",
                    g.spec.scheduled ? "Scheduled" : "Empty");
    *ret_doc = doc;
    return 0;
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
    const bool good = bh_streq(result, "Fits") || bh_streq(result, "Scheduled");
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};
    const long long min = (long long)bh_json_get_i64(group, "minCount", 0);

    if (form == BH_FORM_JSON || form == BH_FORM_YAML) {
        bh_form_write(out, doc, form);
        return;
    }
    if (min)
        bh_grid_line(&g, "Group:", 0, "%s/%s, a gang of at least %lld",
                     bh_json_get_text(group, "namespace"), bh_json_get_text(group, "name"), min);
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
        bh_buf_addf(out, "\nFor %s, with the others where they have room:",
                    bh_json_get_text(doc, "fixesFor"));
    bh_explain_print_fixes(out, fixes, form == BH_FORM_WIDE);
}
