/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/explain.h - `berth explain`: what its files share
 *
 * explain.c            the command: where everything comes from, the order of things
 * explain_document.c   what is known about the pod around its decision, as document and as text
 * explain_group.c      podgroup/NAME: the trial of a whole group
 * explain_whatif.c     changes from files, and the difference that they make
 *
 * The document (-o json, -o yaml), around the explanation of scheduler/explain/explain.h:
 *   kind "PodExplanation", apiVersion "berth/v1"
 *   pod           {namespace, name, uid}
 *   state         "Pending"; "Binding": decided, the write is on its way; "Bound"
 *   nodeName      Binding, Bound: where it is; the explanation is as if it were not there
 *   nodeNow       ... and how that node does now: {rank, of, total} or {plugin, code, reasons[]}
 *   scheduler     {running, deciding: bool, configuration: where it came from, trouble}
 *   queue         the scheduler's view of a pending pod, as an item of `berth queue -o json`
 *   group         of a pending member that has a node while its group does not go: {namespace, name,
 *                 haveRoom, waiting: int}; the whole group is explained by podgroup/NAME
 *   condition     {reason, message}: PodScheduled as the API server has it (pending pods)
 *   notes[]       what to know when reading on
 *   fixes         what would make it fit (simulator/offline/fixes.h); pending pods that fit nowhere;
 *                 with whatIf there, of what the files say
 *   explanation   the decision as it would be taken now
 *   whatIf        {changes[]: {kind, namespace, name, action}, explanation, difference, fixes?}
 *   difference    {result: {before, after}, nodes[]: {node, before, after}, unchanged: int}
 */
#ifndef BH_CLI_EXPLAIN_H
#define BH_CLI_EXPLAIN_H

#include "common/control/ask.h"
#include "cli/observer.h"
#include "scheduler/explain/explain.h"

struct bh_explain_pod { /* the pod that is explained */
    const char *ns, *name;
    struct bh_pending pending; /* with one shape reference */
    struct bh_pod_rec *rec;    /* pending.pod, owned */
    const char *node;          /* where it is or goes, NULL = nowhere */
    const char *state;
    const struct bh_observed_pod *seen;
};

/* ---- explain_document.c ---------------------------------------------------------------------- */
struct bh_explain_facts { /* what is known besides; strings borrowed, "" or NULL = not known */
    bool running, deciding;
    const char *configuration, *trouble;
    struct bh_json *fixes;       /* of bh_offline_fixes, or NULL */
    const struct bh_json *queue; /* of bh_queue_pod_json, or NULL */
    const struct bh_json *group; /* of the document, or NULL */
    const char *const *notes;
    unsigned n_notes;
};
struct bh_json *bh_explain_document(struct bh_arena *a, const struct bh_explain_pod *pod,
                                    const struct bh_explain_facts *f, struct bh_json *explanation);
/* Leaves only what is about one node (NULL: all); -ENOENT when the explanation has never heard of it. */
int bh_explain_only_node(struct bh_json *explanation, const char *node, struct bh_err *err);
/* What helps, and what is missing; of the rest how many there were. fixes NULL: nothing has to. */
void bh_explain_print_fixes(struct bh_buf *out, const struct bh_json *fixes, bool all);
/* The document as text. */
void bh_explain_print(struct bh_buf *out, const struct bh_json *doc, enum bh_form form,
                      bool one_node, bool colour);

/* ---- explain_group.c -------------------------------------------------------------------------
 * The document stands in simulator/offline/fixes.h. */
int bh_explain_group(struct bh_arena *a, struct bh_observer *o, const char *ns, const char *name,
                     bool fixes, struct bh_json **ret_doc, struct bh_err *err);
/* `group` of the document; NULL: the group goes, or it cannot be tried. */
struct bh_json *bh_explain_waiting_group(struct bh_arena *a, struct bh_observer *o, const char *ns,
                                         const char *name);
void bh_explain_print_group(struct bh_buf *out, const struct bh_json *doc, enum bh_form form,
                            bool colour);

/* ---- explain_whatif.c ------------------------------------------------------------------------ */
struct bh_whatif; /* objects read from files, in order */
int bh_whatif_read(struct bh_whatif **ret, const char *const *files, size_t n, struct bh_err *err);
void bh_whatif_free(struct bh_whatif *w);
/* Before the observer reads: the pods that the files name. */
void bh_whatif_want(const struct bh_whatif *w, struct bh_observer *o);
/* Puts every object into the observer's engine; pod becomes what the files say about it.
 * *ret_changes: whatIf.changes. */
int bh_whatif_apply(const struct bh_whatif *w, struct bh_arena *a, struct bh_observer *o,
                    struct bh_explain_pod *pod, struct bh_json **ret_changes, struct bh_err *err);
/* The pod that is explained as the files have it, after bh_whatif_apply; NULL: they do not. */
const struct bh_json *bh_whatif_pod(const struct bh_whatif *w, const struct bh_explain_pod *pod);
void bh_explain_print_difference(struct bh_buf *out, const struct bh_json *whatif,
                                 enum bh_form form, bool colour);
#endif
