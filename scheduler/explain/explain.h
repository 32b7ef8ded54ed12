/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/explain/explain.h - a decision as a document, and the document as text
 *
 * Two steps, so that they may happen in two processes: bh_explain_decision() turns a decision that
 * was taken with BH_EXPLAIN into a JSON tree, the model below; bh_explain_render() prints such a
 * tree as table, wide table, JSON or YAML. The tree may have come over a wire: the renderer takes
 * any tree, leaves out what is missing or of another type, and makes control characters harmless.
 *
 * The model. Members keep their names and types; new ones may be added. Lists and their order are
 * the same for the same decision. Absent = does not apply.
 *
 *   kind                  "Explanation"
 *   apiVersion            "berth/v1"
 *   pod                   {namespace, name, uid, schedulerName: string, priority: int}
 *   result                "Scheduled", "Unschedulable", "Gated" or "Error"
 *   nodeName              Scheduled: the chosen node
 *   recomputed            for the renderer: the pod is on a node already, this decision only would be
 *   reason, message       otherwise: of the PodScheduled condition, upstream's text
 *   fitMessage            Unschedulable: message without PostFilter's part
 *   postFilterMessage     what PostFilter said, when it said something
 *   nodes                 {total, evaluated, feasible, rejected, notEvaluated: int}
 *   preFilter             verdict {plugin, code, reasons[]}: PreFilter rejected the pod as a whole;
 *                         for Gated, PreEnqueue's
 *   preFilterSubset       {plugins[], nodes[], others: verdict}: PreFilter left only these nodes;
 *                         the verdict is that of all the others
 *   unschedulablePlugins[], pendingPlugins[]   that rejected some node; absent when none did
 *   scored                bool: false when at most one node was feasible (then no totals)
 *   ranking[]             feasible nodes, best first, equals by name:
 *                         {rank: int (equals share one), node, chosen: true (only the chosen one),
 *                          total: int, plugins[]: {plugin, raw, normalized, weight, weighted}}
 *                         plugins in the order of the profile; those that skipped are left out
 *   rejected[]            by node name: {node, plugin, code, reasons[]}: the first plugin that
 *                         rejected the node
 *   rejectedGroups[]      the same by verdict, largest first:
 *                         {plugin, code, reasons[], count: int, nodes[]: the first few names}
 *   preemption            {nominatedNode, victims[]: {namespace, name, uid, priority: int},
 *                          pdbViolations: int, alternatives: int (other equally good choices)}
 *
 * code is upstream's name ("Unschedulable", "UnschedulableAndUnresolvable", ...).
 *
 * Memory:     the tree lives in the arena given and borrows nothing.
 * Threads:    none.
 * Upstream:   no counterpart; the parts are pkg/scheduler/framework/types.go (Diagnosis) and
 *             framework/runtime (NodePluginScores).
 */
#ifndef BH_EXPLAIN_H
#define BH_EXPLAIN_H

#include "common/data/json.h"
#include "scheduler/engine/engine.h"

#define BH_EXPLAIN_API "berth/v1"

struct bh_explain_subject { /* the pod; NULL strings are left out */
    const char *namespace_, *name, *uid, *scheduler_name;
    int32_t priority;
};
/* of an engine's pod */
struct bh_explain_subject bh_explain_subject_of(struct bh_engine *e, const struct bh_pending *p);

/* d: with BH_EXPLAIN; without it the lists are empty, the rest is right. */
struct bh_json *bh_explain_decision(struct bh_arena *a, const struct bh_explain_subject *pod,
                                    const struct bh_symtab *tab, const struct bh_decision *d);
/* A pod that PreEnqueue keeps out of the queue. */
struct bh_json *bh_explain_gated(struct bh_arena *a, const struct bh_explain_subject *pod,
                                 const struct bh_status *gate);
/* rejectedGroups of a decision, for other documents. */
struct bh_json *bh_explain_groups(struct bh_arena *a, const struct bh_symtab *tab,
                                  const struct bh_decision *d);
/* preemption of a decision; NULL: no node was nominated. */
struct bh_json *bh_explain_preemption(struct bh_arena *a, const struct bh_symtab *tab,
                                      const struct bh_decision *d);
/* Feasible nodes, best first, equals by name; n_scores of them. */
const struct bh_node_score **bh_explain_ranked(struct bh_arena *a, const struct bh_decision *d);

/* ---- printing -------------------------------------------------------------------------------- */

enum bh_form { BH_FORM_TABLE, BH_FORM_WIDE, BH_FORM_JSON, BH_FORM_YAML };
#define BH_FORMS "table|wide|json|yaml"
/* The value of -o. -EINVAL: `invalid value "x" for --output: table, wide, json or yaml`. */
int bh_form_parse(const char *text, enum bh_form *ret, struct bh_err *err);
/* Colour on this descriptor: a terminal that can, and no NO_COLOR in the environment. */
bool bh_colour_wanted(int fd);

/* Any document as JSON (indented) or YAML; form must be one of these two. */
void bh_form_write(struct bh_buf *out, const struct bh_json *doc, enum bh_form form);

/* An explanation in any form. Table: the head, scores of the best nodes side by side, rejected
 * nodes by verdict, preemption. Wide: every feasible node with every score's raw, normalised and
 * weighted value, every rejected node on a line of its own. */
void bh_explain_render(struct bh_buf *out, const struct bh_json *explanation, enum bh_form form,
                       bool colour);
/* The table of rejectedGroups alone; prints nothing when there are none. */
void bh_explain_render_groups(struct bh_buf *out, const struct bh_json *groups, bool colour);
#endif
