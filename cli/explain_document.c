/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/explain_document.c - what is known about the pod around its decision
 */
#include "cli/explain.h"

#include <errno.h>

#include "scheduler/explain/grid.h"

#define FIXES_SHOWN 5u

/* ---- the document ---------------------------------------------------------------------------- */

static struct bh_json *find_node(const struct bh_json *explanation, const char *list,
                                 const char *node)
{
    bh_json_each(v, bh_json_get_list(explanation, list)) {
        if (bh_streq(bh_json_get_text(v, "node"), node))
            return v;
    }
    return NULL;
}

static struct bh_json *copy(struct bh_arena *a, const struct bh_json *from, const char *key)
{
    const struct bh_json *v = bh_json_get(from, key);

    return v ? bh_json_clone(a, v) : NULL;
}

struct bh_json *bh_explain_document(struct bh_arena *a, const struct bh_explain_pod *pod,
                                    const struct bh_explain_facts *f, struct bh_json *explanation)
{
    struct bh_json *doc = bh_json_make(a,
                                       "kind: PodExplanation, apiVersion: " BH_EXPLAIN_API
                                       ", pod: {namespace: %s, name: %s, uid: %s}, state: %s, "
                                       "nodeName?: %s",
                                       pod->ns, pod->name, bh_rec_text(pod->rec, pod->rec->uid).p,
                                       pod->state, pod->node);
    /* How the node that the pod is on does in the decision of now. */
    const struct bh_json *ranked = pod->node ? find_node(explanation, "ranking", pod->node) : NULL;
    const struct bh_json *rejected =
        pod->node ? find_node(explanation, "rejected", pod->node) : NULL;

    if (ranked)
        bh_json_add(a, doc, "nodeNow: {rank?: %p, of: %zu, total?: %p}", copy(a, ranked, "rank"),
                    bh_json_get(explanation, "ranking")->c.n, copy(a, ranked, "total"));
    else if (rejected)
        bh_json_add(a, doc, "nodeNow: {plugin?: %p, code?: %p, reasons?: %p}",
                    copy(a, rejected, "plugin"), copy(a, rejected, "code"),
                    copy(a, rejected, "reasons"));
    bh_json_add(a, doc, "scheduler: {running: %i}", f->running);
    if (f->running)
        bh_json_add(a, doc, "scheduler: {deciding: %i}", f->deciding);
    bh_json_add(a, doc, "scheduler: {trouble?: %s, configuration?: %s}, queue?: %p, group?: %p",
                f->trouble, f->configuration, f->queue ? bh_json_clone(a, f->queue) : NULL,
                f->group ? bh_json_clone(a, f->group) : NULL);
    if (f->fixes)
        bh_json_set(a, doc, "fixes", f->fixes);
    if (pod->seen->reason)
        bh_json_add(a, doc, "condition: {reason?: %s, message?: %s}", pod->seen->reason,
                    pod->seen->message);
    for (unsigned i = 0; i < f->n_notes; i++)
        bh_json_push(bh_json_list_at(a, doc, "notes"), bh_json_new_cstr(a, f->notes[i]));
    bh_json_set(a, doc, "explanation", explanation);
    return doc;
}

/* ---- one node -------------------------------------------------------------------------------- */

/* Keeps what is about the node; how many that were. */
static size_t keep_node(struct bh_json *explanation, const char *list, const char *node)
{
    struct bh_json *l = bh_json_get_list(explanation, list), *next;

    for (struct bh_json *v = l ? l->c.first : NULL; v; v = next) {
        next = v->next;
        if (!bh_streq(bh_json_get_text(v, "node"), node))
            (void)bh_json_remove(l, v);
    }
    if (l && !l->c.n)
        (void)bh_json_unset(explanation, list);
    return l ? l->c.n : 0;
}

int bh_explain_only_node(struct bh_json *explanation, const char *node, struct bh_err *err)
{
    int64_t total = bh_json_get_i64(bh_json_get(explanation, "nodes"), "total", 0);

    if (!node)
        return 0;
    size_t kept = keep_node(explanation, "ranking", node);
    kept += keep_node(explanation, "rejected", node);
    (void)bh_json_unset(explanation, "rejectedGroups");
    if (kept)
        return 0;
    return bh_err_set(err, -ENOENT,
                      "the decision never came to a node \"%s\": the cluster has %lld nodes, see "
                      "'berth get nodes'; -o wide shows those that were looked at",
                      node, (long long)total);
}

/* ---- as text --------------------------------------------------------------------------------- */

/* "bound to node-a1 (now rank 2 of 3)" */
static void state_line(struct bh_grid *g, const struct bh_json *doc)
{
    const struct bh_json *now = bh_json_get(doc, "nodeNow");
    const char *state = bh_json_get_text(doc, "state"), *node = bh_json_get_text(doc, "nodeName");
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    if (bh_json_get(now, "rank")) {
        bh_buf_addf(&b, " (now rank %lld of %lld)", (long long)bh_json_get_i64(now, "rank", 0),
                    (long long)bh_json_get_i64(now, "of", 0));
    } else if (now) {
        bh_buf_addf(&b, " (now rejected by %s: ", bh_json_get_text(now, "plugin"));
        bh_text_join(&b, bh_json_get_list(now, "reasons"), ", ");
        bh_buf_addc(&b, ')');
    }
    bh_grid_line(g, "State:", 0, "%s%s%s",
                 bh_streq(state, "Bound")     ? "bound to "
                 : bh_streq(state, "Binding") ? "decided, being bound to "
                                              : "pending",
                 node, bh_buf_str(&b));
}

static void queue_line(struct bh_grid *g, const struct bh_json *doc)
{
    const struct bh_json *q = bh_json_get(doc, "queue");
    const char *until = bh_json_get_text(q, "backoffUntil"), *place = bh_json_get_text(q, "queue"),
               *permit = bh_json_get_text(q, "permitUntil"),
               *nominated = bh_json_get_text(q, "nominatedNode");
    int64_t attempts = bh_json_get_i64(q, "attempts", 0);
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    if (!q)
        return;
    bh_buf_addf(&b, "%s, %lld attempt%s", place, (long long)attempts, attempts == 1 ? "" : "s");
    if (bh_json_get_list(q, "plugins") && bh_json_get_list(q, "plugins")->c.n) {
        bh_buf_adds(&b, bh_streq(place, "gated")     ? ", gated by "
                        : bh_streq(place, "waiting") ? ", at Permit, not allowed yet by "
                                                     : ", rejected by ");
        bh_text_join(&b, bh_json_get_list(q, "plugins"), ", ");
    }
    if (*until)
        bh_buf_addf(&b, ", backing off until %s", until);
    if (*permit)
        bh_buf_addf(&b, ", rejected at %s", permit);
    if (*nominated)
        bh_buf_addf(&b, ", nominated to %s", nominated);
    bh_grid_line(g, "Queue:", 0, "%s", bh_buf_str(&b));
    const struct bh_json *group = bh_json_get(q, "group");
    if (group)
        bh_grid_line(g, "Group:", 0, "%s, %s", bh_json_get_text(group, "name"),
                     bh_json_get_text(group, "state"));
    const struct bh_json *waits = bh_json_get(doc, "group");
    const char *on = bh_json_get_text(bh_json_get(doc, "explanation"), "nodeName");
    if (waits)
        bh_grid_line(g, "Waits:", BH_CELL_BAD,
                     "the pod has room on %s, and the group %s/%s waits: %lld of %lld have room "
                     "(berth explain podgroup/%s -n %s)",
                     on, bh_json_get_text(waits, "namespace"), bh_json_get_text(waits, "name"),
                     (long long)bh_json_get_i64(waits, "haveRoom", 0),
                     (long long)bh_json_get_i64(waits, "waiting", 0),
                     bh_json_get_text(waits, "name"), bh_json_get_text(waits, "namespace"));
}

void bh_explain_print_fixes(struct bh_buf *out, const struct bh_json *fixes, bool all)
{
    unsigned shown = 0, good = 0;

    if (!fixes)
        return;
    bh_json_each(x, bh_json_get_list(fixes, "fixes"))
        good += bh_json_get_bool(x, "fits", false);
    bh_buf_addf(out, "\nWhat would make it fit? %u of %lld changes%s that were tried%s\n", good,
                (long long)bh_json_get_i64(fixes, "tried", 0),
                bh_json_get_bool(fixes, "pairs", false) ? ", single and in pairs," : "",
                good > FIXES_SHOWN && !all ? "; -o wide shows all" : "");
    bh_json_each(x, bh_json_get_list(fixes, "fixes")) {
        if (!all && (shown >= FIXES_SHOWN || (!bh_json_get_bool(x, "fits", false) &&
                                              !bh_json_get_bool(x, "missing", false))))
            continue;
        shown++;
        bh_buf_addf(out, "\n%s\n  %s\n", bh_json_get_text(x, "text"),
                    bh_json_get_text(x, "outcome"));
        if (*bh_json_get_text(x, "note"))
            bh_buf_addf(out, "  %s\n", bh_json_get_text(x, "note"));
        bh_json_each(c, bh_json_get_list(x, "commands")) /* not indented: to be copied */
            bh_buf_addf(out, "%s\n", bh_json_cstr(c));
    }
}

/* Of a pod that is on a node: its own node is the one that was chosen, when it is among the best; otherwise
 * the result is what would be. */
static struct bh_json *show_as_bound(struct bh_arena *a, const struct bh_json *doc)
{
    struct bh_json *e = bh_json_clone(a, bh_json_get(doc, "explanation"));
    const char *node = bh_json_get_text(doc, "nodeName");
    struct bh_json *own = find_node(e, "ranking", node);

    bh_json_add(a, e, "recomputed: true");
    if (!own || bh_json_get_i64(own, "rank", 0) != 1)
        return e;
    bh_json_each(v, bh_json_get_list(e, "ranking"))
        (void)bh_json_unset(v, "chosen");
    bh_json_add(a, own, "chosen: true");
    return bh_json_add(a, e, "nodeName: %s", node);
}

void bh_explain_print(struct bh_buf *out, const struct bh_json *doc, enum bh_form form,
                      bool one_node, bool colour)
{
    const struct bh_json *whatif = bh_json_get(doc, "whatIf");
    struct bh_grid g BH_CLEANUP(bh_grid_fini) = {0};

    if (form == BH_FORM_JSON || form == BH_FORM_YAML) {
        bh_form_write(out, doc, form);
        return;
    }
    form = one_node ? BH_FORM_WIDE : form;
    state_line(&g, doc);
    queue_line(&g, doc);
    /* What users read elsewhere, when it is not what is decided now. */
    const struct bh_json *c = bh_json_get(doc, "condition");
    const char *now = bh_json_get_text(bh_json_get(doc, "explanation"), "message");
    if (c && !bh_streq(bh_json_get_text(c, "message"), now))
        bh_grid_line(&g, "Condition:", 0, "%s: %s", bh_json_get_text(c, "reason"),
                     bh_json_get_text(c, "message"));
    const struct bh_json *s = bh_json_get(doc, "scheduler");
    bool running = bh_json_get_bool(s, "running", false);
    bool deciding = bh_json_get_bool(s, "deciding", false);
    const char *trouble = bh_json_get_text(s, "trouble");
    bh_grid_line(
        &g, "Scheduler:", running && deciding ? 0 : BH_CELL_BAD, "%s, configuration: %s%s%s%s",
        !running   ? "not running"
        : deciding ? "running"
                   : "running, takes no decisions now",
        bh_json_get_text(s, "configuration"), *trouble ? " (" : "", trouble, *trouble ? ")" : "");
    bh_json_each(n, bh_json_get_list(doc, "notes"))
        bh_grid_line(&g, "Note:", BH_CELL_DIM, "%s", bh_json_cstr(n));
    bh_grid_print(&g, out, 0, colour);
    bh_buf_addc(out, '\n');
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};
    struct bh_json *e = bh_json_get(doc, "explanation");
    if (bh_streq(bh_json_get_text(doc, "state"), "Bound"))
        e = show_as_bound(&a, doc);
    else if (bh_json_get(doc, "group")) /* it is not scheduled: its group waits */
        e = bh_json_add(&a, bh_json_clone(&a, e), "result: 'Has room'");
    bh_explain_render(out, e, form, colour);
    bh_explain_print_fixes(out, bh_json_get(doc, "fixes"), form == BH_FORM_WIDE);
    if (whatif)
        bh_explain_print_difference(out, whatif, form, colour);
}
