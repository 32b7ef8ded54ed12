/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/decisions/decisions.h - reading the decisions that a scheduler has recorded
 *
 * A scheduler with --record-decisions writes every attempt into a file (recorder.h). This is the
 * other side, for any process on the host: the simulator, `berth decisions`, tests. Answers are
 * JSON trees as docs/simulator-api.md section 3 has them; SUMMARY and the other shapes are there.
 *
 *   struct bh_decisions *d = bh_decisions_new("/var/lib/berth/decisions.db");
 *   const struct bh_decision_filter f = {.namespace_ = "default", .pod = "web-1"};
 *   rc = bh_decisions_list(d, arena, &f, &list, &err);
 *
 * The file may be absent, appear later, be deleted and made anew: every call looks. No call waits
 * for the writer; an answer shows one moment of the file. A call costs some 10 us to a few
 * milliseconds (a page of nodes of 5,000: about 2 ms).
 *
 * An id is given once: ids rise with time and do not begin again while the file lives. 0: none.
 *
 * Errors of every call: -ENOENT no such attempt (any more), or no file; -EINVAL a wrong argument
 * (err.msg names it), or a file that is not one of ours; -EAGAIN the file is being changed, ask
 * again; -EIO what the file says cannot be read. *ret is NULL then.
 * Memory:     answers live in the arena given.
 * Threads:    one owner at a time for each bh_decisions.
 */
#ifndef BH_DECISIONS_H
#define BH_DECISIONS_H

#include "common/data/json.h"

struct bh_decisions;
/* Remembers the path; opens nothing yet. */
struct bh_decisions *bh_decisions_new(const char *path);
void bh_decisions_free(struct bh_decisions *d); /* NULL is allowed */

/* {"mode":"off|summary|full|auto","keeps":"full|sample|summary","records":N,"bytes":N,"dropped":N,
 * "oldest":ID,"newest":ID}; without a file, or when no process writes to it, mode is "off". keeps: what
 * the newest 200 attempts are, "sample" some with every node; not there without any. d may be NULL. Never
 * fails. */
struct bh_json *bh_decisions_recording(struct bh_decisions *d, struct bh_arena *a);

#define BH_DECISIONS_PAGE     100u
#define BH_DECISIONS_PAGE_MAX 1000u
struct bh_decision_filter { /* NULL, 0: any */
    const char *namespace_, *pod, *uid;
    const char *node;   /* chosen, or nominated */
    const char *result; /* Scheduled, Unschedulable, Error */
    int64_t before;     /* ids below this one */
    unsigned limit;     /* 0: BH_DECISIONS_PAGE; at most BH_DECISIONS_PAGE_MAX */
};
/* {"items":[SUMMARY],"more":bool,"oldest":ID,"recording":{...}}, newest first. Without a file the
 * list is empty (no error). */
int bh_decisions_list(struct bh_decisions *d, struct bh_arena *a,
                      const struct bh_decision_filter *f, struct bh_json **ret, struct bh_err *err);

/* What has come since the last call, for streams and pollers: *ret is a list of
 * {"type":"ADDED|MODIFIED","row":SUMMARY} in order of their coming, at most limit of them (0: 500;
 * call again when it was full). MODIFIED: the attempt's outcome is known now. The cursor starts
 * zeroed (everything that is there), or with bh_decisions_now() (only what comes), and is
 * carried along; when the file was made anew it starts over by itself. A cheap query when there is
 * nothing new (some 20 us). Without a file: an empty list. */
struct bh_decisions_cursor {
    int64_t id, change, file;
};
void bh_decisions_now(struct bh_decisions *d, struct bh_decisions_cursor *c);
int bh_decisions_changes(struct bh_decisions *d, struct bh_arena *a, struct bh_decisions_cursor *c,
                         unsigned limit, struct bh_json **ret, struct bh_err *err);

/* One attempt: SUMMARY with preFilter, filterPlugins, funnel, rejectedGroups, scorePlugins, top ...
 * Of an attempt recorded in mode summary only what is known. */
int bh_decisions_get(struct bh_decisions *d, struct bh_arena *a, int64_t id, struct bh_json **ret,
                     struct bh_err *err);

struct bh_decision_nodes_query {
    unsigned offset, limit; /* limit 0: 200; at most 5,000 */
    const char *sort;   /* NULL, "total" (feasible first, best first), "name", or a score plugin */
    const char *status; /* NULL, "all", "feasible", "rejected", "excluded", "not-evaluated" */
    const char *q;      /* part of a name or of a reason, any case */
};
int bh_decisions_nodes(struct bh_decisions *d, struct bh_arena *a, int64_t id,
                       const struct bh_decision_nodes_query *q, struct bh_json **ret,
                       struct bh_err *err);
/* One node: the item, passed, winner, difference. -ENOENT: no such node in that attempt. */
int bh_decisions_node(struct bh_decisions *d, struct bh_arena *a, int64_t id, const char *node,
                      struct bh_json **ret, struct bh_err *err);

/* The model of scheduler/explain/explain.h, equal to what `berth explain` would have said at the
 * moment of the decision. Mode summary: the head alone. */
int bh_decisions_explanation(struct bh_decisions *d, struct bh_arena *a, int64_t id,
                             struct bh_json **ret, struct bh_err *err);

/* What kube-scheduler-simulator writes onto the pod: an object of annotations, keys with prefix,
 * values texts. Together with the result-history (this pod's attempts up to this one, oldest
 * first) no more than max_bytes (0: BH_ANNOTATIONS_BYTES): the oldest history goes first, then
 * nodes, and BH_ANNOTATION_TRUNCATED tells how many. max_nodes (0: no limit): the same for more
 * nodes than that. */
#define BH_ANNOTATION_PREFIX    "kube-scheduler-simulator.sigs.k8s.io/"
#define BH_ANNOTATION_TRUNCATED "berth.dev/truncated"
#define BH_ANNOTATIONS_BYTES    ((size_t)192 << 10)
struct bh_annotations_query {
    size_t max_bytes;
    unsigned max_nodes;
    bool no_history;
};
int bh_decisions_annotations(struct bh_decisions *d, struct bh_arena *a, int64_t id,
                             const struct bh_annotations_query *q, struct bh_json **ret,
                             struct bh_err *err);
#endif
