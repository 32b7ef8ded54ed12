/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/explain/explain.c - a decision as a document
 */
#include "scheduler/explain/explain.h"

#include "common/base/map.h"

#define NAMED_PER_GROUP 5u /* nodes that a group names */

static void set_texts(struct bh_arena *a, struct bh_json *o, const char *key, const char *const *v,
                      uint32_t n)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < n; i++)
        bh_json_push(list, bh_json_new_cstr(a, v[i]));
    if (n)
        bh_json_set(a, o, key, list);
}

static struct bh_json *names_of(struct bh_arena *a, const struct bh_symtab *tab, const bh_sym *v,
                                uint32_t n)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < n; i++)
        bh_json_push(list, bh_json_new_cstr(a, bh_sym_text(tab, v[i])));
    return list;
}

/* {plugin, code, reasons[]} into o. */
static struct bh_json *explain_verdict(struct bh_arena *a, struct bh_json *o,
                                       const struct bh_status *s)
{
    bh_json_add(a, o, "plugin?: %s, code: %s", s->plugin, bh_code_name(s->code));
    set_texts(a, o, "reasons", s->reasons, s->n_reasons);
    return o;
}

static struct bh_json *verdict(struct bh_arena *a, const struct bh_status *s)
{
    return explain_verdict(a, bh_json_new(a, BH_JSON_OBJECT), s);
}

struct bh_explain_subject bh_explain_subject_of(struct bh_engine *e, const struct bh_pending *p)
{
    const struct bh_shape_rec *s = bh_engine_shape_rec(e, p->shape);

    return (struct bh_explain_subject){.namespace_ = bh_rec_text(p->pod, p->pod->namespace_).p,
                                       .name = bh_rec_text(p->pod, p->pod->name).p,
                                       .uid = bh_rec_text(p->pod, p->pod->uid).p,
                                       .scheduler_name =
                                           bh_sym_text(bh_engine_symtab(e), s->scheduler_name),
                                       .priority = s->priority};
}

static struct bh_json *begin(struct bh_arena *a, const struct bh_explain_subject *s,
                             const char *result)
{
    return bh_json_make(a,
                        "kind: Explanation, apiVersion: " BH_EXPLAIN_API ", pod: {namespace?: %s, "
                        "name?: %s, uid?: %s, schedulerName?: %s, priority: %d}, result: %s",
                        s->namespace_, s->name, s->uid, s->scheduler_name, s->priority, result);
}

struct bh_json *bh_explain_gated(struct bh_arena *a, const struct bh_explain_subject *pod,
                                 const struct bh_status *gate)
{
    return bh_json_add(a, begin(a, pod, "Gated"),
                       "reason: SchedulingGated, message?: %s, preFilter: %p",
                       bh_status_message(a, gate), verdict(a, gate));
}

/* ---- rejected nodes -------------------------------------------------------------------------- */

struct group {
    const struct bh_status *status;
    uint32_t count, n_named;
    bh_sym named[NAMED_PER_GROUP];
};

static int largest_first(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int c = (y->count > x->count) - (y->count < x->count);

    if (!c)
        c = strcmp(x->status->plugin ? x->status->plugin : "",
                   y->status->plugin ? y->status->plugin : "");
    if (!c)
        c = (int)x->status->code - (int)y->status->code;
    const uint32_t nx = x->status->n_reasons, ny = y->status->n_reasons;
    for (uint32_t i = 0; !c && i < nx && i < ny; i++)
        c = strcmp(x->status->reasons[i], y->status->reasons[i]);
    return c ? c : (nx > ny) - (nx < ny);
}

struct bh_json *bh_explain_groups(struct bh_arena *a, const struct bh_symtab *tab,
                                  const struct bh_decision *d)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    struct group *v = bh_calloc(d->n_rejected + 1, sizeof *v);
    struct bh_map index = {0};
    struct bh_buf key = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < d->n_rejected; i++) {
        const struct bh_status *s = d->rejected[i].status;
        /* What makes two verdicts one group; NUL cannot be in a reason. */
        bh_buf_reset(&key);
        bh_buf_addf(&key, "%s%c%d", s->plugin ? s->plugin : "", '\0', (int)s->code);
        for (uint32_t k = 0; k < s->n_reasons; k++) {
            bh_buf_addc(&key, '\0');
            bh_buf_adds(&key, s->reasons[k]);
        }
        struct group *g = bh_map_get(&index, bh_buf_str(&key), key.n);
        if (!g) {
            g = &v[n++];
            g->status = s;
            bh_map_put(&index, bh_buf_str(&key), key.n, g);
        }
        g->count++;
        if (g->n_named < NAMED_PER_GROUP)
            g->named[g->n_named++] = d->rejected[i].node;
    }
    bh_map_fini(&index);
    bh_buf_fini(&key);
    if (n > 1)
        qsort(v, n, sizeof *v, largest_first);
    for (uint32_t i = 0; i < n; i++) {
        struct bh_json *o = verdict(a, v[i].status);
        bh_json_push(list, bh_json_add(a, o, "count: %u, nodes: %p", v[i].count,
                                       names_of(a, tab, v[i].named, v[i].n_named)));
    }
    free(v);
    return list;
}

/* ---- feasible nodes -------------------------------------------------------------------------- */

/* d->scores is sorted by name already; equal totals keep that order. */
static int best_first(const void *a, const void *b)
{
    const struct bh_node_score *x = *(const struct bh_node_score *const *)a,
                               *y = *(const struct bh_node_score *const *)b;

    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return (x > y) - (x < y);
}

const struct bh_node_score **bh_explain_ranked(struct bh_arena *a, const struct bh_decision *d)
{
    const struct bh_node_score **v =
        bh_arena_new_array(a, const struct bh_node_score *, d->n_scores + 1);

    for (uint32_t i = 0; i < d->n_scores; i++)
        v[i] = &d->scores[i];
    if (d->n_scores > 1)
        qsort(v, d->n_scores, sizeof *v, best_first);
    return v;
}

static void add_ranking(struct bh_arena *a, const struct bh_symtab *tab,
                        const struct bh_decision *d, struct bh_json *o)
{
    const struct bh_node_score **v = bh_explain_ranked(a, d);
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    uint32_t rank = 1;

    for (uint32_t i = 0; i < d->n_scores; i++) {
        if (i && v[i]->total != v[i - 1]->total)
            rank = i + 1;
        struct bh_json *one = bh_json_append(a, list, "rank: %u, node: %s, chosen?: %i", rank,
                                             bh_sym_text(tab, v[i]->node),
                                             d->kind == BH_DECIDED && d->node == v[i]->node);
        if (!d->scored)
            continue;
        struct bh_json *plugins = bh_json_new(a, BH_JSON_ARRAY);
        for (uint32_t k = 0; v[i]->plugins && k < d->n_score_plugins; k++) {
            const struct bh_plugin_score *p = &v[i]->plugins[k];
            bh_json_append(a, plugins,
                           "plugin: %s, raw: %ld, normalized: %ld, weight: %d, weighted: %ld",
                           p->plugin, p->raw, p->normalized, p->weight, p->weighted);
        }
        bh_json_add(a, one, "total: %ld, plugins: %p", v[i]->total, plugins);
    }
    bh_json_set_bool(a, o, "scored", d->scored);
    if (d->n_scores)
        bh_json_set(a, o, "ranking", list);
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct bh_json *bh_explain_preemption(struct bh_arena *a, const struct bh_symtab *tab,
                                      const struct bh_decision *d)
{
    struct bh_json *victims = bh_json_new(a, BH_JSON_ARRAY);

    if (d->nominated_node == BH_SYM_NONE)
        return NULL;
    for (uint32_t i = 0; i < d->n_victims; i++) {
        const struct bh_victim *v = &d->victims[i];
        bh_json_append(a, victims, "namespace: %p, name: %p, uid: %p, priority: %d",
                       bh_json_new_str(a, v->namespace_.p, v->namespace_.n),
                       bh_json_new_str(a, v->name.p, v->name.n),
                       bh_json_new_str(a, v->uid.p, v->uid.n), v->priority);
    }
    return bh_json_make(a, "nominatedNode: %s, victims: %p, pdbViolations: %u, alternatives: %u",
                        bh_sym_text(tab, d->nominated_node), victims, d->victims_violating,
                        d->n_preemptions ? d->n_preemptions - 1 : 0);
}

struct bh_json *bh_explain_decision(struct bh_arena *a, const struct bh_explain_subject *pod,
                                    const struct bh_symtab *tab, const struct bh_decision *d)
{
    static const char *const results[] = {
        [BH_DECIDED] = "Scheduled", [BH_NO_FIT] = "Unschedulable", [BH_DECISION_ERROR] = "Error"};
    struct bh_json *o = begin(a, pod, results[d->kind]), *list;

    if (d->kind == BH_DECIDED)
        bh_json_set_str(a, o, "nodeName", bh_sym_text(tab, d->node));
    bh_json_add(a, o, "reason?: %s, message?: %s, fitMessage?: %s, postFilterMessage?: %s",
                d->reason, d->message, d->fit_message, d->post_filter_message);
    uint32_t seen = d->n_scores + d->n_rejected;
    bh_json_add(a, o,
                "nodes: {total: %u, evaluated: %u, feasible: %u, rejected: %u, notEvaluated: %u}",
                d->n_nodes, d->evaluated, d->feasible, d->n_rejected,
                d->n_nodes > seen ? d->n_nodes - seen : 0);
    if (d->pre_filter)
        bh_json_set(a, o, "preFilter", verdict(a, d->pre_filter));
    if (d->absent) {
        struct bh_json *subset = bh_json_obj_at(a, o, "preFilterSubset");
        set_texts(a, subset, "plugins", d->pre_filter_plugins, d->n_pre_filter_plugins);
        bh_json_add(a, subset, "nodes: %p, others: %p",
                    names_of(a, tab, d->pre_filter_nodes, d->n_pre_filter_nodes),
                    verdict(a, d->absent));
    }
    set_texts(a, o, "unschedulablePlugins", d->unschedulable_plugins, d->n_unschedulable_plugins);
    set_texts(a, o, "pendingPlugins", d->pending_plugins, d->n_pending_plugins);
    add_ranking(a, tab, d, o);
    list = d->n_rejected ? bh_json_list_at(a, o, "rejected") : NULL;
    for (uint32_t i = 0; i < d->n_rejected; i++)
        explain_verdict(a,
                        bh_json_append(a, list, "node: %s", bh_sym_text(tab, d->rejected[i].node)),
                        d->rejected[i].status);
    return bh_json_add(a, o, "rejectedGroups?: %p, preemption?: %p",
                       d->n_rejected ? bh_explain_groups(a, tab, d) : NULL,
                       bh_explain_preemption(a, tab, d));
}
