/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/view.c - an attempt as documents: docs/simulator-api.md section 3
 */
#include <errno.h>

#include "common/k8s/quantity.h"
#include "scheduler/decisions/store.h"
#include "scheduler/explain/explain.h"

#define TOP            10u
#define NODES_PAGE     200u
#define NODES_PAGE_MAX 5000u

/* ---- summary --------------------------------------------------------------------------------- */

struct bh_json *bh_decisions_summary(struct bh_arena *a, const struct bh_decision_row *row)
{
    char time[40];

    bh_time_format_micro(time, row->time_ns / 1000000000, (int32_t)(row->time_ns % 1000000000));
    return bh_json_make(
        a,
        "id: %ld, time: %s, pod: {namespace: %s, name: %s, uid: %s}, profile: %s, priority: %d, "
        "attempt: %u, result: %s, nodeName: %s, nominatedNodeName: %s, victims: %u, reason: %s, "
        "message: %s, duration_ns: %lu, nodes: {total: %u, evaluated: %u, feasible: %u}, "
        "outcome: %s, outcomeMessage: %s, trigger: %s, mode: %s",
        row->id, time, row->namespace_, row->name, row->uid, row->h.profile, row->h.priority,
        row->h.attempt, bh_record_results[row->result], row->result == BH_DECIDED ? row->node : "",
        row->h.nominated, row->h.n_victims, row->h.reason, row->h.message, row->h.duration_ns,
        row->h.n_nodes, row->h.evaluated, row->h.feasible, bh_record_outcomes[row->outcome],
        row->outcome_message, row->h.trigger, bh_record_modes[row->h.mode]);
}

/* ---- parts of the whole ---------------------------------------------------------------------- */

static struct bh_json *texts(struct bh_arena *a, const char *const *v, uint32_t n)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < n; i++)
        bh_json_push(list, bh_json_new_cstr(a, v[i]));
    return list;
}

static struct bh_json *notes(struct bh_arena *a, const struct bh_symtab *tab,
                             const struct bh_plugin_note *v, uint32_t n)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < n; i++) {
        enum bh_code code = bh_status_code(v[i].status);
        struct bh_json *o = bh_json_append(a, list, "plugin: %s, status: %s", v[i].plugin,
                                           code == BH_SUCCESS ? "success"
                                           : code == BH_SKIP  ? "skip"
                                                              : bh_status_message(a, v[i].status));
        struct bh_json *nodes = v[i].narrowed ? bh_json_list_at(a, o, "nodes") : NULL;
        for (uint32_t k = 0; nodes && k < v[i].n_nodes; k++)
            bh_json_push(nodes, bh_json_new_cstr(a, bh_sym_text(tab, v[i].nodes[k])));
    }
    return list;
}

static struct bh_json *steps(struct bh_arena *a, const struct bh_record_step *v, uint32_t n)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < n; i++)
        bh_json_append(a, list, "plugin: %s, status: %s", v[i].plugin, v[i].message);
    return list;
}

static struct bh_json *score_plugins(struct bh_arena *a, const struct bh_decision *d)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t k = 0; d->n_scores && d->scores[0].plugins && k < d->n_score_plugins; k++) {
        const struct bh_plugin_score *s = &d->scores[0].plugins[k];
        bh_json_append(a, list, "name: %s, weight: %d", s->plugin, s->weight);
    }
    return list;
}

static void add_scores(struct bh_arena *a, struct bh_json *o, const struct bh_decision *d,
                       const struct bh_node_score *s)
{
    bh_json_add(a, o, "total: %ld, raw: [], normalized: [], weighted: []", s->total);
    struct bh_json *raw = bh_json_get(o, "raw"), *normalized = bh_json_get(o, "normalized"),
                   *weighted = bh_json_get(o, "weighted");
    for (uint32_t k = 0; s->plugins && k < d->n_score_plugins; k++) {
        bh_json_push(raw, bh_json_new_i64(a, s->plugins[k].raw));
        bh_json_push(normalized, bh_json_new_i64(a, s->plugins[k].normalized));
        bh_json_push(weighted, bh_json_new_i64(a, s->plugins[k].weighted));
    }
}

/* ---- the funnel ------------------------------------------------------------------------------ */

static void add_step(struct bh_arena *a, struct bh_json *list, const char *step, const char *plugin,
                     uint32_t removed, uint32_t left)
{
    struct bh_json *o = bh_json_append(a, list, "step: %s", step);

    if (plugin)
        bh_json_add(a, o, "plugin: %s, removed: %u", plugin, removed);
    bh_json_set_i64(a, o, "count", left);
}

/* How many nodes of the cluster are in every set up to this one: the sets are names, which need not
 * be nodes. */
static uint32_t count_common(const struct bh_recorded *r, uint32_t through)
{
    const struct bh_decision *d = &r->d;
    struct bh_umap seen = {0};
    uint64_t sets = 0, n = 0;
    uint32_t common = 0;

    for (uint32_t i = 0; i <= through; i++) {
        if (!d->pre_filters[i].narrowed)
            continue;
        for (uint32_t k = 0; k < d->pre_filters[i].n_nodes; k++) {
            uint64_t had = 0;
            (void)bh_umap_get(&seen, d->pre_filters[i].nodes[k], &had);
            if (had == sets)
                bh_umap_put(&seen, d->pre_filters[i].nodes[k], had + 1);
        }
        sets++;
    }
    for (uint32_t i = 0; i < d->n_rejected; i++)
        common += bh_umap_get(&seen, d->rejected[i].node, &n) && n == sets;
    for (uint32_t i = 0; i < d->n_scores; i++)
        common += bh_umap_get(&seen, d->scores[i].node, &n) && n == sets;
    for (uint32_t i = 0; i < r->n_others; i++)
        common += bh_umap_get(&seen, r->others[i], &n) && n == sets;
    bh_umap_fini(&seen);
    return common;
}

static uint32_t pre_filter_steps(struct bh_arena *a, struct bh_json *list,
                                 const struct bh_recorded *r)
{
    uint32_t left = r->d.n_nodes;

    for (uint32_t i = 0; i < r->d.n_pre_filters; i++) {
        const struct bh_plugin_note *p = &r->d.pre_filters[i];
        uint32_t now = left;
        if (p->narrowed)
            now = count_common(r, i);
        else if (bh_status_rejected(p->status) || bh_status_code(p->status) == BH_ERROR)
            now = 0;
        if (p->narrowed || now != left)
            add_step(a, list, "PreFilter", p->plugin, left - BH_MIN(left, now), now);
        left = BH_MIN(left, now);
    }
    return left;
}

static struct bh_json *funnel(struct bh_arena *a, const struct bh_recorded *r)
{
    const struct bh_decision *d = &r->d;
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    uint32_t by_filters = 0;

    add_step(a, list, "all nodes", NULL, 0, d->n_nodes);
    uint32_t left = pre_filter_steps(a, list, r);
    for (uint32_t i = 0; left && i < d->n_filter_plugins; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < d->n_rejected; k++) {
            const char *by = d->rejected[k].status->plugin;
            n += by && bh_streq(by, d->filter_plugins[i]);
        }
        by_filters += n;
        left -= BH_MIN(left, n);
        add_step(a, list, "Filter", d->filter_plugins[i], n, left);
    }
    if (left && by_filters < d->n_rejected) { /* extenders, nominated pods that cannot be added */
        uint32_t n = d->n_rejected - by_filters;
        left -= BH_MIN(left, n);
        add_step(a, list, "Filter", "Extender", n, left);
    }
    uint32_t unseen = left - BH_MIN(left, d->n_scores);
    if (unseen)
        add_step(a, list, "not evaluated", "", unseen, d->n_scores);
    add_step(a, list, "feasible", NULL, 0, d->n_scores);
    return list;
}

/* ---- one attempt ----------------------------------------------------------------------------- */

static void add_body(struct bh_arena *a, struct bh_json *o, const struct bh_recorded *r,
                     const struct bh_symtab *tab)
{
    const struct bh_decision *d = &r->d;
    const struct bh_node_score **ranked = bh_explain_ranked(a, d);
    struct bh_json *top = bh_json_new(a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < d->n_scores && i < TOP; i++)
        add_scores(a, bh_json_append(a, top, "node: %s", bh_sym_text(tab, ranked[i]->node)), d,
                   ranked[i]);
    bh_json_add(a, o, "preFilter: %p, filterPlugins: %p, funnel: %p, rejectedGroups: %p",
                notes(a, tab, d->pre_filters, d->n_pre_filters),
                texts(a, d->filter_plugins, d->n_filter_plugins), funnel(a, r),
                bh_explain_groups(a, tab, d));
    bh_json_add(a, o, "preScore: %p, scorePlugins: %p, scored: %i, top: %p, postFilter: %p",
                notes(a, tab, d->pre_scores, d->n_pre_scores), score_plugins(a, d), d->scored, top,
                notes(a, tab, d->post_filters, d->n_post_filters));
    bh_json_add(a, o,
                "preemption: %p, fitMessage?: %s, postFilterMessage: %s, tie: {equals: %u}, "
                "reserve: %p, permit: %p",
                bh_explain_preemption(a, tab, d), d->fit_message,
                d->post_filter_message ? d->post_filter_message : "", d->n_best,
                steps(a, r->after.reserve, r->after.n_reserve),
                steps(a, r->after.permit, r->after.n_permit));
    bh_json_set(a, o, "unschedulablePlugins",
                texts(a, d->unschedulable_plugins, d->n_unschedulable_plugins));
}

int bh_decisions_get(struct bh_decisions *d, struct bh_arena *a, int64_t id, struct bh_json **ret,
                     struct bh_err *err)
{
    int rc = bh_decisions_load(d, id, err);

    *ret = NULL;
    if (rc < 0)
        return rc;
    *ret = bh_decisions_summary(a, &d->row);
    if (d->has_body)
        add_body(a, *ret, &d->got, d->names.tab);
    struct bh_json *timings = bh_json_obj_at(a, *ret, "timings_ns");
    for (uint32_t i = 0; i < d->row.h.n_points; i++)
        bh_json_set_i64(a, timings, d->row.h.points[i].point, (int64_t)d->row.h.points[i].ns);
    return 0;
}

int bh_decisions_explanation(struct bh_decisions *d, struct bh_arena *a, int64_t id,
                             struct bh_json **ret, struct bh_err *err)
{
    int rc = bh_decisions_load(d, id, err);
    const struct bh_decision_row *row = &d->row;

    *ret = NULL;
    if (rc < 0)
        return rc;
    const struct bh_explain_subject s = {row->namespace_, row->name, row->uid, row->h.profile,
                                         row->h.priority};
    if (d->has_body) {
        *ret = bh_explain_decision(a, &s, d->names.tab, &d->got.d);
        if (d->got.after.overruled) { /* the decision stood until Reserve or Permit */
            bh_json_add(a, *ret, "result: %s, reason: %s, message: %s",
                        bh_record_results[row->result], row->h.reason, row->h.message);
        }
        return 0;
    }
    struct bh_symtab *tab = bh_symtab_new();
    const struct bh_decision dec = {
        .kind = row->result,
        .node = bh_sym_internc(tab, row->result == BH_DECIDED ? row->node : ""),
        .n_nodes = row->h.n_nodes,
        .evaluated = row->h.evaluated,
        .feasible = row->h.feasible,
        .reason = row->h.reason,
        .message = row->h.message,
    };
    *ret = bh_explain_decision(a, &s, tab, &dec);
    bh_json_unset(*ret, "scored");
    bh_symtab_free(tab);
    return 0;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

enum status { FEASIBLE, REJECTED, EXCLUDED, NOT_EVALUATED, STATUSES };
static const char *const status_names[] = {"feasible", "rejected", "excluded", "not-evaluated"};

struct item {
    const char *name;
    enum status status;
    const struct bh_node_score *score; /* FEASIBLE */
    const struct bh_status *verdict;   /* REJECTED, EXCLUDED */
};
struct items {
    struct item *v;
    uint32_t n;
    int plugin; /* sorted by this one's score; -1 = by total, -2 = by name */
};

/* PreFilter left the node out: with which words. */
static const struct bh_status *excluded_by(struct bh_arena *a, const struct bh_decision *d,
                                           bh_sym node)
{
    if (d->pre_filter || !d->absent)
        return d->pre_filter;
    for (uint32_t i = 0; i < d->n_pre_filter_nodes; i++)
        if (d->pre_filter_nodes[i] == node)
            return NULL;
    struct bh_status *s = bh_arena_memdup(a, d->absent, sizeof(*s));
    if (!s->plugin && d->n_pre_filter_plugins)
        s->plugin = d->pre_filter_plugins[0];
    return s;
}

static void gather(struct bh_arena *a, const struct bh_symtab *tab, const struct bh_recorded *r,
                   struct items *ret)
{
    const struct bh_decision *d = &r->d;

    *ret = (struct items){
        .v = bh_arena_new_array(a, struct item, d->n_scores + d->n_rejected + r->n_others + 1)};
    for (uint32_t i = 0; i < d->n_scores; i++)
        ret->v[ret->n++] = (struct item){.name = bh_sym_text(tab, d->scores[i].node),
                                         .status = FEASIBLE,
                                         .score = &d->scores[i]};
    for (uint32_t i = 0; i < d->n_rejected; i++)
        ret->v[ret->n++] = (struct item){.name = bh_sym_text(tab, d->rejected[i].node),
                                         .status = REJECTED,
                                         .verdict = d->rejected[i].status};
    for (uint32_t i = 0; i < r->n_others; i++) {
        const struct bh_status *by = excluded_by(a, d, r->others[i]);
        ret->v[ret->n++] = (struct item){.name = bh_sym_text(tab, r->others[i]),
                                         .status = by ? EXCLUDED : NOT_EVALUATED,
                                         .verdict = by};
    }
}

static int64_t sort_value(const struct items *list, const struct item *i)
{
    if (!i->score)
        return INT64_MIN;
    return list->plugin < 0 ? i->score->total : i->score->plugins[list->plugin].weighted;
}

static int in_order(const void *a, const void *b, void *arg)
{
    const struct item *x = a, *y = b;
    const struct items *list = arg;
    int64_t vx = sort_value(list, x), vy = sort_value(list, y);

    if (list->plugin != -2) {
        if (x->status != y->status)
            return x->status < y->status ? -1 : 1;
        if (vx != vy)
            return vx < vy ? 1 : -1;
    }
    return strcmp(x->name, y->name);
}

static int sort_items(struct items *list, const struct bh_decision *d, const char *sort,
                      struct bh_err *err)
{
    list->plugin = -1;
    if (sort && bh_streq(sort, "name")) {
        list->plugin = -2;
    } else if (sort && !bh_streq(sort, "total")) {
        for (uint32_t k = 0; d->n_scores && d->scores[0].plugins && k < d->n_score_plugins; k++)
            if (bh_streq(d->scores[0].plugins[k].plugin, sort))
                list->plugin = (int)k;
        if (list->plugin < 0)
            return bh_err_set(err, -EINVAL, "sort \"%s\": total, name, or a score plugin", sort);
    }
    if (list->n > 1)
        qsort_r(list->v, list->n, sizeof(*list->v), in_order, list);
    return 0;
}

static bool matches_text(const struct item *i, const char *q)
{
    if (strcasestr(i->name, q))
        return true;
    for (uint32_t k = 0; i->verdict && k < i->verdict->n_reasons; k++)
        if (strcasestr(i->verdict->reasons[k], q))
            return true;
    return i->verdict && i->verdict->plugin && strcasestr(i->verdict->plugin, q);
}

static int select_items(struct items *list, const struct bh_decision_nodes_query *q,
                        struct bh_err *err)
{
    const char *want = q->status && !bh_streq(q->status, "all") ? q->status : NULL;
    uint32_t n = 0;
    bool known = !want;

    for (unsigned i = 0; want && i < STATUSES; i++)
        known |= bh_streq(want, status_names[i]);
    if (!known)
        return bh_err_set(err, -EINVAL,
                          "status \"%s\": feasible, rejected, excluded, not-evaluated or all",
                          q->status);
    for (uint32_t i = 0; i < list->n; i++)
        if ((!want || bh_streq(want, status_names[list->v[i].status])) &&
            (!q->q || !*q->q || matches_text(&list->v[i], q->q)))
            list->v[n++] = list->v[i];
    list->n = n;
    return 0;
}

static struct bh_json *item_json(struct bh_arena *a, const struct bh_decision *d,
                                 const struct item *i)
{
    static const struct bh_node_score none = {0};
    const struct bh_status *s = i->verdict;
    struct bh_json *o = bh_json_make(
        a, "node: %s, status: %s, plugin: %s, code: %s, reasons: %p", i->name,
        status_names[i->status], s && s->plugin ? s->plugin : "", s ? bh_code_name(s->code) : "",
        texts(a, s ? s->reasons : NULL, s ? s->n_reasons : 0));

    add_scores(a, o, d, i->score ? i->score : &none);
    return o;
}

static int load_with_body(struct bh_decisions *d, int64_t id, struct bh_err *err)
{
    int rc = bh_decisions_load(d, id, err);

    if (rc == 0 && !d->has_body)
        rc = bh_err_set(err, -ENOENT,
                        "attempt %lld was recorded in mode summary: nothing is known of its nodes",
                        (long long)id);
    return rc;
}

int bh_decisions_nodes(struct bh_decisions *d, struct bh_arena *a, int64_t id,
                       const struct bh_decision_nodes_query *q, struct bh_json **ret,
                       struct bh_err *err)
{
    unsigned limit = BH_MIN(q->limit ? q->limit : NODES_PAGE, NODES_PAGE_MAX);
    struct items list;
    int rc = load_with_body(d, id, err);

    *ret = NULL;
    if (rc < 0)
        return rc;
    gather(a, d->names.tab, &d->got, &list);
    rc = select_items(&list, q, err);
    if (rc == 0)
        rc = sort_items(&list, &d->got.d, q->sort, err);
    if (rc < 0)
        return rc;
    *ret =
        bh_json_make(a, "plugins: %p, total: %u, items: []", score_plugins(a, &d->got.d), list.n);
    for (uint32_t i = q->offset; i < list.n && i - q->offset < limit; i++)
        bh_json_push(bh_json_get(*ret, "items"), item_json(a, &d->got.d, &list.v[i]));
    return 0;
}

int bh_decisions_node(struct bh_decisions *d, struct bh_arena *a, int64_t id, const char *node,
                      struct bh_json **ret, struct bh_err *err)
{
    const struct item *found = NULL;
    struct items list;
    int rc = load_with_body(d, id, err);

    *ret = NULL;
    if (rc < 0)
        return rc;
    gather(a, d->names.tab, &d->got, &list);
    for (uint32_t i = 0; i < list.n && !found; i++)
        if (bh_streq(list.v[i].name, node))
            found = &list.v[i];
    if (!found)
        return bh_err_set(err, -ENOENT, "attempt %lld knew no node %s", (long long)id, node);
    *ret = item_json(a, &d->got.d, found);
    const struct bh_decision *dec = &d->got.d;
    const char *by = found->verdict ? found->verdict->plugin : NULL;
    struct bh_json *passed = bh_json_list_at(a, *ret, "passed");
    for (uint32_t k = 0; found->status <= REJECTED && k < dec->n_filter_plugins; k++) {
        if (by && bh_streq(by, dec->filter_plugins[k]))
            break;
        bh_json_push(passed, bh_json_new_cstr(a, dec->filter_plugins[k]));
    }
    const struct bh_node_score *winner = NULL, *score = found->score;
    for (uint32_t i = 0; dec->kind == BH_DECIDED && !winner && i < dec->n_scores; i++)
        if (dec->scores[i].node == dec->node)
            winner = &dec->scores[i];
    if (winner) {
        bh_json_add(a, *ret, "winner: {node: %s, total: %ld}",
                    bh_sym_text(d->names.tab, winner->node), winner->total);
        struct bh_json *difference = bh_json_list_at(a, *ret, "difference");
        for (uint32_t k = 0; score && score->plugins && k < dec->n_score_plugins; k++)
            bh_json_append(a, difference, "plugin: %s, weighted: %ld", score->plugins[k].plugin,
                           score->plugins[k].weighted - winner->plugins[k].weighted);
    }
    return 0;
}
