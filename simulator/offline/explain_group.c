/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/explain_group.c - why a group goes or waits, placement by placement and member by
 * member, and what would make it fit
 *
 * The whole group is tried in the world's engine as the scheduler would try it, and taken back. One of
 * plugin Coscheduling is tried pod by pod, and those that have room keep it: what Permit would do.
 */
#include <errno.h>

#include "common/k8s/coscheduling.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cache/node_info.h"
#include "scheduler/explain/explain.h"
#include "simulator/offline/fixes.h"

struct group {
    struct bh_offline *w;
    struct bh_arena *a;
    const struct bh_offline_members *m;
    struct bh_pod_group spec; /* labelled: min_count only */
    bool labelled;            /* of plugin Coscheduling */
    struct bh_group_try *try;
    uint32_t n;
};

static int find_group(struct group *g, struct bh_err *err)
{
    const struct bh_engine *e = g->w->engine;
    const K8s__PodGroup *m =
        (const void *)bh_engine_get_object(e, BH_KIND_PODGROUP, g->m->ns, g->m->name);
    const K8s__CoschedulingPodGroup *other =
        (const void *)bh_engine_get_object(e, BH_KIND_COSCHEDULING_PODGROUP, g->m->ns, g->m->name);
    struct bh_coscheduling_group spec;

    if (m)
        return bh_pod_group_read(m, &g->spec, err);
    if (!other)
        return bh_err_set(err, -ENOENT, "there is no PodGroup \"%s\" in namespace \"%s\"",
                          g->m->name, g->m->ns);
    bh_coscheduling_read(other, &spec);
    g->labelled = true;
    g->spec.min_count = (int32_t)BH_MAX(spec.min_member, 1); /* without one each pod is enough */
    return 0;
}

bool bh_offline_of_group(const struct bh_offline *w, const char *ns, const char *name,
                         const struct bh_pending *p)
{
    const struct bh_symtab *tab = bh_engine_symtab(w->engine);
    const struct bh_group *in = bh_engine_labelled_group_of(w->engine, p);
    const bool field =
        p->pod->group != BH_SYM_NONE && bh_streq(bh_sym_text(tab, p->pod->group), name);
    const bool label = in && bh_streq(bh_sym_text(tab, in->name), name);

    if (!(field || label) || !bh_str_eqc(bh_rec_text(p->pod, p->pod->namespace_), ns))
        return false;
    return bh_engine_get_object(w->engine, BH_KIND_PODGROUP, ns, name) ? field : label;
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
                               room ? bh_sym_text(bh_engine_symtab(g->w->engine), t->node) : NULL,
                               room ? NULL : t->decision.message));
    }
    return list;
}

static void add_fixes(struct group *g, const struct bh_group_result *r, struct bh_json *doc)
{
    uint32_t lacks = 0;

    while (lacks < g->n && g->try[lacks].node != BH_SYM_NONE)
        lacks++;
    struct bh_json *fixes =
        lacks < g->n ? bh_offline_group_fixes(g->w, g->a, g->m, g->try, r) : NULL;
    if (fixes)
        bh_json_add(g->a, doc, "fixesFor: %s, fixes: %p",
                    bh_rec_text(g->try[lacks].pod.pod, g->try[lacks].pod.pod->name).p, fixes);
}

static bool is_gated(struct group *g, struct bh_json *doc)
{
    for (uint32_t i = 0; i < g->n; i++) {
        const struct bh_status *s = bh_engine_pre_enqueue(g->w->engine, &g->try[i].pod);
        if (!s)
            continue;
        bh_json_add(g->a, doc, "result: Gated, message: %s", bh_status_message(g->a, s));
        return true;
    }
    return false;
}

/* For the first member without room, with the others where they have it: where they are now. */
static void add_fixes_for_one(struct group *g, struct bh_json *doc)
{
    struct bh_offline *w = g->w;
    const unsigned flags = w->o.flags;
    struct bh_json *pod = NULL;
    struct bh_err err;
    uint32_t lacks = 0;

    while (lacks < g->n && (!g->try[lacks].decided || g->try[lacks].node != BH_SYM_NONE))
        lacks++;
    const char *object = lacks < g->n ? g->m->objects[lacks] : NULL;
    if (!object || bh_json_parse(g->a, object, strlen(object), BH_JSON_NUL, &pod, &err) < 0)
        return;
    const struct bh_pending *p = &g->try[lacks].pod;
    w->o.flags = BH_NO_PREEMPTION; /* the victims could be the other members */
    const struct bh_json *now = bh_offline_explain(w, p, g->a);
    bh_json_add(g->a, doc, "fixesFor: %s, fixes: %p", bh_rec_text(p->pod, p->pod->name).p,
                bh_offline_fixes(w, g->a, pod, now));
    w->o.flags = flags;
}

/* Whether it has room, which it keeps until all were tried. Without PostFilter, which would give the
 * group up when the first has none. */
static bool take_room(struct group *g, struct bh_group_try *t)
{
    struct bh_engine *e = g->w->engine;
    const struct bh_status *gated = bh_engine_pre_enqueue(e, &t->pod);

    if (gated) {
        t->decision.message = bh_arena_strdup(g->a, bh_status_message(g->a, gated));
        return false;
    }
    const struct bh_decision *d = bh_engine_schedule(e, &t->pod, BH_NO_PREEMPTION, g->w->now_ns);
    const bh_sym node = d->kind == BH_DECIDED ? d->node : BH_SYM_NONE;
    t->decided = true;
    t->decision.message = bh_arena_strdup(g->a, d->message ? d->message : "");
    t->assumed = node != BH_SYM_NONE && bh_engine_assume(e, &t->pod, node) == 0;
    t->node = t->assumed ? node : BH_SYM_NONE;
    return t->assumed;
}

static void try_one_by_one(struct group *g, uint32_t have, bool fixes, struct bh_json *doc)
{
    const uint32_t min = (uint32_t)g->spec.min_count;

    for (uint32_t i = 0; i < g->n; i++)
        have += take_room(g, &g->try[i]);
    const bool goes = have >= min;
    bh_json_add(g->a, doc, "result: %s, message: %s, pods: %p", goes ? "Fits" : "Unschedulable",
                bh_arena_printf(g->a, "%u of the %u that it takes have a node", have, min),
                members(g, goes));
    if (fixes && !goes)
        add_fixes_for_one(g, doc);
    for (uint32_t i = g->n; i-- > 0;)
        if (g->try[i].assumed)
            (void)bh_engine_forget(g->w->engine,
                                   bh_rec_text(g->try[i].pod.pod, g->try[i].pod.pod->uid));
}

static void try_it(struct group *g, bool fixes, struct bh_json *doc)
{
    struct bh_group_result r;

    bh_engine_schedule_group(g->w->engine, g->try, g->n, 0, g->w->now_ns, &r);
    const bool goes = r.code == BH_SUCCESS;
    bh_json_add(g->a, doc, "result: %s, message?: %s, placements?: %p, pods: %p",
                goes                 ? "Fits"
                : r.waiting          ? "Preempts"
                : r.code == BH_ERROR ? "Error"
                                     : "Unschedulable",
                r.message, g->spec.topology_key ? placements(g, &r) : NULL, members(g, goes));
    for (uint32_t i = g->n; i-- > 0;)
        if (g->try[i].assumed)
            bh_offline_give_back(g->w, &g->try[i].pod, g->try[i].node);
    if (fixes && !goes && !r.waiting)
        add_fixes(g, &r, doc);
}

/* ---- members on nodes ------------------------------------------------------------------------ */

struct seek { /* one of the group's pods on a node */
    const struct group *g;
    struct bh_pending found; /* pod NULL: none */
};

static void look_at(void *arg, bh_sym node)
{
    struct seek *s = arg;
    const struct bh_node_info *ni = bh_engine_node_info(s->g->w->engine, node);

    for (uint32_t i = 0; !s->found.pod && i < ni->n_pods; i++) {
        const struct bh_pending p = {.pod = ni->pods[i]->rec, .shape = ni->pods[i]->shape_id};
        if (bh_offline_of_group(s->g->w, s->g->m->ns, s->g->m->name, &p))
            s->found = p;
    }
}

/* The engine's account of the group; NULL: it has no pods. */
static const struct bh_group *account_of(const struct group *g)
{
    const struct bh_engine *e = g->w->engine;
    struct seek s = {.g = g};

    if (g->n)
        s.found = g->m->v[0];
    else
        bh_engine_each_node(e, look_at, &s);
    if (!s.found.pod)
        return NULL;
    return g->labelled ? bh_engine_labelled_group_of(e, &s.found) : bh_engine_group_of(e, &s.found);
}

static void add_placed(const struct group *g, const struct bh_group *known, struct bh_json *doc)
{
    struct bh_engine *e = g->w->engine;
    const struct bh_member *m;

    for (unsigned at = BH_MEMBER_ASSUMED; at <= BH_MEMBER_ASSIGNED; at++)
        TAILQ_FOREACH(m, &known->at[at], link) {
            const struct bh_pod_rec *p = bh_engine_find_pod(e, bh_member_uid(m), NULL);
            if (p)
                bh_json_append(g->a, bh_json_list_at(g->a, doc, "pods"),
                               "name: %s, state: %s, node: %s", bh_rec_text(p, p->name).p,
                               at == BH_MEMBER_ASSUMED ? "on its way" : "on its node",
                               bh_sym_text(bh_engine_symtab(e), p->node));
        }
}

int bh_offline_explain_group(struct bh_offline *w, struct bh_arena *a,
                             const struct bh_offline_members *m, bool fixes,
                             struct bh_json **ret_doc, struct bh_err *err)
{
    struct group g = {.w = w, .a = a, .m = m, .n = m->n};
    int rc = find_group(&g, err);

    if (rc < 0)
        return rc;
    g.try = bh_arena_new_array(a, struct bh_group_try, g.n + 1);
    for (uint32_t i = 0; i < g.n; i++)
        g.try[i].pod = m->v[i];
    const struct bh_group *known = account_of(&g);
    const uint32_t have = known ? bh_group_scheduled(known) : 0;
    if (g.labelled)
        g.spec.scheduled = have >= (uint32_t)g.spec.min_count;
    struct bh_json *doc = bh_json_make(
        a,
        "kind: PodGroupExplanation, apiVersion: " BH_EXPLAIN_API
        ", group: {namespace: %s, name: %s, policy: %s, minCount?: %d, topologyKey?: %s}, "
        "members: {known: %u, onNodes: %u, waiting: %u}",
        m->ns, m->name,
        g.labelled                                ? "Coscheduling"
        : g.spec.min_count == BH_GROUP_NOT_A_GANG ? "Basic"
                                                  : "Gang",
        g.spec.min_count, g.spec.topology_key, known ? bh_group_all(known) : 0, have, g.n);
    if (!g.n)
        bh_json_add(a, doc, "result: %s, message: 'no pod of it waits for a node'",
                    g.spec.scheduled ? "Scheduled" : "Empty");
    else if (g.labelled)
        try_one_by_one(&g, have, fixes, doc);
    else if (!is_gated(&g, doc))
        try_it(&g, fixes, doc);
    known = account_of(&g);
    if (known)
        add_placed(&g, known, doc);
    *ret_doc = doc;
    return 0;
}
