/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/trial/report.c - what a trial came to
 *
 * The document, for -o json and yaml; members keep their names and types, new ones may be added:
 *
 *   kind, apiVersion   "SimulationReport", "berth/v1"
 *   summary            {nodes, placedBefore: int,
 *                       scheduled, unschedulable, gated, errors, preempted, waiting: int,
 *                       ignored: {finished, terminating, otherScheduler: int},
 *                       leftOut: {KIND: int}}
 *   pods[]             every pod that was pending, oldest first:
 *                      {namespace, name,
 *                       result: Scheduled, Unschedulable, Gated, Error, Preempted or AtPermit,
 *                       nodeName (Scheduled; AtPermit: where it has room), nominatedNodeName, attempts: int,
 *                       reason, message (not placed; upstream's text),
 *                       explanations[] (with --explain, one for each of the first ten attempts:
 *                       scheduler/explain/explain.h)}
 *   preempted[]        {namespace, name, nodeName, placedBefore: bool, by: {namespace, name}}
 *   groups[]           PodGroups with pods that were pending, by name (gate GenericWorkload):
 *                      {namespace, name, policy: Gang, Basic or None (there is no such PodGroup),
 *                       minCount: int, topologyKey,
 *                       result: Scheduled, Unschedulable, Error, or Gated (never tried),
 *                       pods, members, scheduled: int (pending at first; all; on nodes now),
 *                       attempts: int, placements, fitting: int (of the last attempt), message}
 *   warnings[]         text
 */
#include "simulator/trial/trial.h"
#include "scheduler/explain/grid.h"

#define NAMED_PER_MESSAGE 2u
#define MESSAGES_SHOWN    20u

static const char *const results[] = {[BH_TRIAL_WAITING] = "Waiting",
                                      [BH_TRIAL_SCHEDULED] = "Scheduled",
                                      [BH_TRIAL_UNSCHEDULABLE] = "Unschedulable",
                                      [BH_TRIAL_GATED] = "Gated",
                                      [BH_TRIAL_ERROR] = "Error",
                                      [BH_TRIAL_PREEMPTED] = "Preempted",
                                      [BH_TRIAL_AT_PERMIT] = "AtPermit"};

struct bh_trial_summary bh_trial_summarize(const struct bh_trial *t)
{
    struct bh_trial_summary s = {0};

    for (size_t i = 0; i < t->n_list; i++) {
        enum bh_trial_result r = t->list[i]->result;
        s.scheduled += r == BH_TRIAL_SCHEDULED;
        s.unschedulable += r == BH_TRIAL_UNSCHEDULABLE;
        s.gated += r == BH_TRIAL_GATED;
        s.failed += r == BH_TRIAL_ERROR || r == BH_TRIAL_WAITING;
        s.preempted += r == BH_TRIAL_PREEMPTED;
        s.waiting += r == BH_TRIAL_AT_PERMIT;
    }
    return s;
}

static const char *node_text(const struct bh_trial *t, bh_sym node)
{
    return node == BH_SYM_NONE ? "" : bh_sym_text(bh_engine_symtab(t->w.engine), node);
}

static bool has_room(const struct bh_trial_pod *p)
{
    return p->result == BH_TRIAL_SCHEDULED || p->result == BH_TRIAL_AT_PERMIT;
}

static const char *text(const char *s)
{
    return s ? s : "";
}

/* ---- document -------------------------------------------------------------------------------- */

struct bh_json *bh_trial_document(const struct bh_trial *t, struct bh_arena *a, const char *kind)
{
    struct bh_json *o = bh_json_make(a, "kind: %s, apiVersion: %s", kind, BH_EXPLAIN_API);

    for (size_t i = 0; i < t->n_warnings; i++)
        bh_json_push(bh_json_list_at(a, o, "warnings"), bh_json_new_cstr(a, t->warnings[i]));
    return o;
}

static int by_key(const void *pa, const void *pb)
{
    return strcmp((*(struct bh_map_entry *const *)pa)->key,
                  (*(struct bh_map_entry *const *)pb)->key);
}

static void add_summary(const struct bh_trial *t, struct bh_arena *a, struct bh_json *doc)
{
    struct bh_trial_summary s = bh_trial_summarize(t);

    bh_json_add(a, doc,
                "summary: {nodes: %u, placedBefore: %u, scheduled: %u, unschedulable: %u, "
                "gated: %u, errors: %u, preempted: %u, waiting: %u, "
                "ignored: {finished: %u, terminating: %u, otherScheduler: %u}}",
                t->n_nodes, t->n_placed_before, s.scheduled, s.unschedulable, s.gated, s.failed,
                s.preempted, s.waiting, t->n_finished, t->n_terminating, t->n_foreign);
    /* Maps have no order of their own. */
    struct bh_json *o = bh_json_get(doc, "summary");
    struct bh_map_entry **v = bh_calloc(t->left_out.len + 1, sizeof *v), *e;
    size_t n = 0;
    for (size_t it = 0; (e = bh_map_next(&t->left_out, &it));)
        v[n++] = e;
    if (n > 1)
        qsort(v, n, sizeof(struct bh_map_entry *), by_key);
    for (size_t i = 0; i < n; i++)
        bh_json_set_i64(a, bh_json_obj_at(a, o, "leftOut"), v[i]->key, (intptr_t)v[i]->value);
    free(v);
}

static struct bh_json *explanations_of(struct bh_arena *a, const struct bh_trial_pod *p)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY), *one;
    const char *at = bh_buf_str(&p->explanations), *end;

    for (; (end = strchr(at, '\n')); at = end + 1)
        if (bh_json_parse(a, at, (size_t)(end - at), 0, &one, NULL) == 0)
            bh_json_push(list, one);
    return list;
}

static void write_document(const struct bh_trial *t, enum bh_form form, struct bh_buf *out)
{
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};

    struct bh_json *doc = bh_trial_document(t, &a, "SimulationReport");
    add_summary(t, &a, doc);
    struct bh_json *pods = bh_json_list_at(&a, doc, "pods");
    struct bh_json *victims = bh_json_list_at(&a, doc, "preempted");
    for (size_t i = 0; i < t->n_list; i++) {
        const struct bh_trial_pod *p = t->list[i];
        if (!p->placed_before) {
            bool placed = p->result == BH_TRIAL_SCHEDULED;
            bool failed = !placed && p->result != BH_TRIAL_PREEMPTED;
            bh_json_append(
                &a, pods,
                "namespace: %s, name: %s, result: %s, nodeName?: %s, nominatedNodeName?: %s, "
                "attempts: %u, reason?: %s, message?: %s, explanations?: %p",
                bh_trial_pod_ns(p), bh_trial_pod_name(p), results[p->result],
                has_room(p) ? node_text(t, p->node) : "", node_text(t, p->nominated), p->attempts,
                failed ? p->reason : NULL, failed ? p->message : NULL,
                p->explanations.n ? explanations_of(&a, p) : NULL);
        }
        if (p->result == BH_TRIAL_PREEMPTED) {
            bh_json_append(&a, victims,
                           "namespace: %s, name: %s, nodeName?: %s, placedBefore: %i, "
                           "by: {namespace: %s, name: %s}",
                           bh_trial_pod_ns(p), bh_trial_pod_name(p), node_text(t, p->node),
                           p->placed_before, bh_trial_pod_ns(p->preemptor),
                           bh_trial_pod_name(p->preemptor));
        }
    }
    struct bh_json *groups = bh_trial_groups(t, &a);
    if (groups->c.n)
        bh_json_set(&a, doc, "groups", groups);
    bh_form_write(out, doc, form);
}

/* ---- table ----------------------------------------------------------------------------------- */

static void pods_table(const struct bh_trial *t, struct bh_grid *g, bool wide, bool colour,
                       struct bh_buf *out)
{
    size_t n = 0;

    if (wide)
        bh_grid_heading(g, 0, "NAMESPACE", "NAME", "RESULT", "NODE", "NOMINATED", ">ATTEMPTS",
                        "MESSAGE", NULL);
    else
        bh_grid_heading(g, 0, "NAMESPACE", "NAME", "RESULT", "NODE", NULL);
    for (size_t i = 0; i < t->n_list; i++) {
        const struct bh_trial_pod *p = t->list[i];
        bool bad = p->result != BH_TRIAL_SCHEDULED && p->result != BH_TRIAL_PREEMPTED;
        if (p->placed_before)
            continue;
        n++;
        bh_grid_cell(g, 0, "%s", bh_trial_pod_ns(p));
        bh_grid_cell(g, 0, "%s", bh_trial_pod_name(p));
        bh_grid_cell(g, p->result == BH_TRIAL_SCHEDULED ? BH_CELL_GOOD : BH_CELL_BAD, "%s",
                     results[p->result]);
        bh_grid_cell(g, 0, "%s", has_room(p) ? node_text(t, p->node) : "<none>");
        if (wide) {
            bh_grid_cell(g, 0, "%s", p->nominated ? node_text(t, p->nominated) : "<none>");
            bh_grid_cell(g, BH_CELL_RIGHT, "%u", p->attempts);
            bh_grid_cell(g, 0, "%s", bad ? text(p->message) : "");
        }
        bh_grid_row(g);
    }
    if (n)
        bh_grid_print(g, out, 0, colour);
}

struct message { /* pods that got the same text */
    const struct bh_trial_pod *pod[NAMED_PER_MESSAGE];
    size_t n;
};

static int most_first(const void *pa, const void *pb)
{
    const struct message *a = pa, *b = pb;

    return a->n != b->n ? BH_CMP(b->n, a->n)
                        : strcmp(text(a->pod[0]->message), text(b->pod[0]->message));
}

static size_t gather_messages(const struct bh_trial *t, struct message *v)
{
    BH_CLEANUP(bh_map_fini) struct bh_map index = {0};
    size_t n = 0;

    for (size_t i = 0; i < t->n_list; i++) {
        const struct bh_trial_pod *p = t->list[i];
        const char *key = text(p->message);
        if (p->result == BH_TRIAL_SCHEDULED || p->result == BH_TRIAL_PREEMPTED)
            continue;
        struct message *m = bh_map_get(&index, key, strlen(key));
        if (!m) {
            m = &v[n++];
            bh_map_put(&index, key, strlen(key), m);
        }
        if (m->n < NAMED_PER_MESSAGE)
            m->pod[m->n] = p;
        m->n++;
    }
    if (n > 1)
        qsort(v, n, sizeof *v, most_first);
    return n;
}

static void messages_table(const struct bh_trial *t, struct bh_grid *g, bool colour,
                           struct bh_buf *out)
{
    struct message *v = bh_calloc(t->n_list + 1, sizeof *v);
    size_t n = gather_messages(t, v);
    BH_CLEANUP(bh_buf_fini) struct bh_buf names = {0};

    if (n) {
        bh_buf_adds(out, "\nNot placed\n");
        bh_grid_heading(g, 0, ">PODS", "NAMES", "MESSAGE", NULL);
    }
    for (size_t i = 0; i < n && i < MESSAGES_SHOWN; i++) {
        bh_buf_reset(&names);
        for (size_t k = 0; k < v[i].n && k < NAMED_PER_MESSAGE; k++)
            bh_buf_addf(&names, "%s%s/%s", k ? ", " : "", bh_trial_pod_ns(v[i].pod[k]),
                        bh_trial_pod_name(v[i].pod[k]));
        if (v[i].n > NAMED_PER_MESSAGE)
            bh_buf_addf(&names, " and %zu more", v[i].n - NAMED_PER_MESSAGE);
        bh_grid_cell(g, BH_CELL_RIGHT, "%zu", v[i].n);
        bh_grid_cell(g, 0, "%s", bh_buf_str(&names));
        bh_grid_cell(g, 0, "%s", text(v[i].pod[0]->message));
        bh_grid_row(g);
    }
    bh_grid_print(g, out, 0, colour);
    if (n > MESSAGES_SHOWN)
        bh_buf_addf(out, "... and %zu more messages; -o wide has every pod's\n",
                    n - MESSAGES_SHOWN);
    free(v);
}

static void victims_table(const struct bh_trial *t, struct bh_grid *g, bool colour,
                          struct bh_buf *out)
{
    for (size_t i = 0; i < t->n_list; i++) {
        const struct bh_trial_pod *p = t->list[i];
        if (p->result != BH_TRIAL_PREEMPTED)
            continue;
        if (!g->n_cells) {
            bh_buf_adds(out, "\nPreempted\n");
            bh_grid_heading(g, 0, "NAMESPACE", "NAME", "NODE", "BY", NULL);
        }
        bh_grid_cell(g, 0, "%s", bh_trial_pod_ns(p));
        bh_grid_cell(g, 0, "%s", bh_trial_pod_name(p));
        bh_grid_cell(g, 0, "%s", node_text(t, p->node));
        bh_grid_cell(g, 0, "%s/%s", bh_trial_pod_ns(p->preemptor), bh_trial_pod_name(p->preemptor));
        bh_grid_row(g);
    }
    bh_grid_print(g, out, 0, colour);
}

void bh_trial_report(const struct bh_trial *t, struct bh_buf *out)
{
    bool wide = t->o.form == BH_FORM_WIDE, colour = t->o.colour;
    struct bh_grid g = {0};

    if (t->o.form == BH_FORM_JSON || t->o.form == BH_FORM_YAML) {
        write_document(t, t->o.form, out);
        return;
    }
    pods_table(t, &g, wide, colour, out);
    if (!wide)
        messages_table(t, &g, colour, out);
    victims_table(t, &g, colour, out);
    bh_trial_groups_table(t, &g, colour, out);
    for (size_t i = 0; i < t->n_list; i++)
        bh_buf_add(out, bh_buf_str(&t->list[i]->explanations), t->list[i]->explanations.n);
    struct bh_trial_summary s = bh_trial_summarize(t);
    bh_buf_addf(out, "\n%u placed, %u unschedulable", s.scheduled, s.unschedulable);
    if (s.gated)
        bh_buf_addf(out, ", %u gated", s.gated);
    if (s.waiting)
        bh_buf_addf(out, ", %u waiting at Permit", s.waiting);
    if (s.failed)
        bh_buf_addf(out, ", %u failed", s.failed);
    bh_buf_addf(out, ", %u preempted; %u nodes, %u pods were there before\n", s.preempted,
                t->n_nodes, t->n_placed_before);
    bh_grid_fini(&g);
}
