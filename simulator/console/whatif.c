/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/whatif.c - POST /berth/v1/whatif: what would come out, before anything changes
 *
 * Two trials of the same moment: one of the cluster as it is, one with the changes. Before is the
 * pod of the cluster under the running configuration; for a pod that the cluster does not have it
 * is the given one in the cluster as it is, and nothing at all when there is no other change.
 */
#include "simulator/console/parts.h"

#include <errno.h>

#include "simulator/console/moment.h"
#include "simulator/offline/fixes.h"

struct whatif {
    struct bh_console_question q;
    const struct bh_json *manifest; /* of the pod, NULL = the cluster's */
    const char *ns, *name;
    char *key; /* "ns/name" */
    const struct bh_json *config;
    bool changed, everybody;
    struct bh_json *changes; /* of the answer */
};

/* ---- the pod --------------------------------------------------------------------------------- */

static int on_subject(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                      struct bh_json *obj, struct bh_err *err)
{
    struct whatif *w = arg;
    struct bh_json *meta = bh_json_get(obj, "metadata");

    if (!bh_streq(bh_json_get_text(obj, "kind"), "Pod"))
        return bh_err_set(err, -EINVAL,
                          "%s: document %u (line %u): expected a Pod, this is a %.80s", at->file,
                          at->document, at->line, bh_json_get_text(obj, "kind"));
    if (w->name)
        return bh_err_set(err, -EINVAL, "%s: document %u (line %u): one pod is asked about",
                          at->file, at->document, at->line);
    if (!*bh_json_get_text(meta, "name"))
        bh_json_set_str(a, meta, "name", "what-if");
    w->name = bh_arena_strdup(&w->q.a, bh_json_get_text(meta, "name"));
    w->ns = bh_json_get_text(meta, "namespace");
    w->ns = bh_arena_strdup(&w->q.a, *w->ns ? w->ns : "default");
    return 0;
}

static int read_pod(struct whatif *w)
{
    const struct bh_json *pod = bh_json_get(w->q.body, "pod");

    if (bh_console_question_members(&w->q, pod, "pod", "namespace:text name:text manifest") < 0)
        return -1;
    w->manifest = bh_json_get(pod, "manifest");
    if (w->manifest) {
        /* The name of a given pod, read once before the trials. */
        const struct bh_trial_options o = {.now_ns = 1};
        struct bh_trial *t = NULL;
        struct bh_err err = {0};
        int rc = bh_trial_new(&o, &t, &err);
        if (rc < 0)
            return bh_console_question_fail(&w->q, 500, NULL, &err);
        rc = bh_console_question_add(&w->q, t, "pod.manifest", w->manifest, on_subject, w);
        bh_trial_free(t);
        return rc;
    }
    w->ns = bh_json_get_str(pod, "namespace");
    w->ns = w->ns && *w->ns ? w->ns : "default";
    w->name = bh_json_get_str(pod, "name");
    if (!w->name || !*w->name)
        return bh_console_job_fail(w->q.job, 400, "pod.name", 0,
                                   "say which pod, or give its manifest");
    return 0;
}

/* ---- changes --------------------------------------------------------------------------------- */

static void note_change(struct whatif *w, const char *kind, const char *ns, const char *name,
                        const char *action)
{
    bh_json_append(&w->q.a, w->changes, "kind: %s, namespace?: %s, name: %s, action: %s", kind, ns,
                   name, action);
}

/* Of a custom resource as the cluster has it; of one that it has none of what it says. */
static const char *namespace_of(const struct whatif *w, const struct bh_json *obj, const char *kind,
                                const char *version)
{
    const struct bh_sim_type *t = bh_sim_type_of_kind(version, kind);
    const struct bh_console_customs *c = t ? NULL : bh_console_moment_custom(w->q.moment, kind);
    const char *ns = bh_json_get_text(obj, "namespace");

    if (t ? !(t->flags & BH_SIM_NAMESPACED) : c && !c->namespaced)
        return "";
    return *ns || !(t || c) ? ns : "default";
}

static int on_change(void *arg, const struct bh_trial_source *at BH_UNUSED,
                     struct bh_arena *a BH_UNUSED, struct bh_json *obj,
                     struct bh_err *err BH_UNUSED)
{
    struct whatif *w = arg;
    const struct bh_json *meta = bh_json_get(obj, "metadata");
    const char *kind = bh_json_get_text(obj, "kind"), *name = bh_json_get_text(meta, "name");
    const char *ns = namespace_of(w, meta, kind, bh_json_get_text(obj, "apiVersion"));

    note_change(w, kind, ns, *name ? name : bh_json_get_text(meta, "generateName"),
                bh_console_moment_find(w->q.moment, kind, ns, name) ? "replaced" : "added");
    return 0;
}

static int delete_one(struct whatif *w, struct bh_trial *t, const char *field,
                      const struct bh_json *d)
{
    const char *kind = bh_json_get_text(d, "kind"), *name = bh_json_get_text(d, "name"), *ns;

    if (bh_console_question_members(&w->q, d, field,
                                    "kind:text namespace:text name:text apiVersion:text") < 0)
        return -1;
    ns = namespace_of(w, d, kind, bh_json_get_str(d, "apiVersion"));
    if (!bh_trial_remove_item(t, kind, ns, name))
        return bh_console_job_fail(w->q.job, 400, field, d->line,
                                   "there is no %.80s %.200s%s%.253s", kind, ns, *ns ? "/" : "",
                                   name);
    note_change(w, kind, ns, name, "deleted");
    return 0;
}

static int apply_changes(struct whatif *w, struct bh_trial *t)
{
    unsigned i = 0;

    bh_json_each(c, bh_json_get_list(w->q.body, "changes")) {
        const struct bh_json *d = bh_json_get(c, "delete"), *m = bh_json_get(c, "manifest");
        char field[40];
        snprintf(field, sizeof(field), "changes[%u]", i);
        if (bh_console_question_members(&w->q, c, field, "manifest delete") < 0)
            return -1;
        snprintf(field, sizeof(field), "changes[%u].%s", i++, d ? "delete" : "manifest");
        int rc = d ? delete_one(w, t, field, d)
                   : bh_console_question_add(&w->q, t, field, m, on_change, w);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* The trial has the pod, but leaves it out. */
static int refuse_left_out(struct whatif *w, const struct bh_trial *t)
{
    const struct bh_trial_item *it = bh_trial_find_item(t, "Pod", w->ns, w->name);
    const char *phase, *scheduler;
    struct bh_json *pod = NULL;
    struct bh_err err = {0};

    if (bh_json_parse(&w->q.a, it->json, it->n, 0, &pod, &err) < 0)
        return bh_console_question_fail(&w->q, 400, "pod", &err);
    phase = bh_json_get_text(bh_json_get(pod, "status"), "phase");
    scheduler = bh_json_get_text(bh_json_get(pod, "spec"), "schedulerName");
    if (bh_word_at("Succeeded Failed", phase) >= 0)
        return bh_console_job_fail(w->q.job, 400, "pod", 0, "pod %.253s/%.253s is finished: %s",
                                   w->ns, w->name, phase);
    if (bh_json_get_str(bh_json_get(pod, "metadata"), "deletionTimestamp"))
        return bh_console_job_fail(w->q.job, 400, "pod", 0, "pod %.253s/%.253s is being deleted",
                                   w->ns, w->name);
    return bh_console_job_fail(w->q.job, 400, "pod.spec.schedulerName", 0,
                               "pod %.253s/%.253s is for the scheduler \"%.253s\"; the "
                               "configuration has no profile of this name",
                               w->ns, w->name, scheduler);
}

/* given: the manifest; changes: those of the request. */
static int explain(struct whatif *w, bool given, bool changes, const struct bh_json *config,
                   struct bh_trial **ret_t, struct bh_json **ret)
{
    int rc = bh_console_question_trial(&w->q, config, w->key, ret_t);

    if (rc == 0 && changes)
        rc = apply_changes(w, *ret_t);
    if (rc == 0 && given) {
        w->name = NULL; /* is read again */
        rc = bh_console_question_add(&w->q, *ret_t, "pod.manifest", w->manifest, on_subject, w);
    }
    if (rc == 0)
        rc = bh_console_question_prepare(&w->q, *ret_t, changes ? "changes" : "pod");
    if (rc < 0)
        return -1;
    const struct bh_trial_pod *p = bh_trial_find_pod(*ret_t, w->ns, w->name);
    if (!p && !bh_trial_find_item(*ret_t, "Pod", w->ns, w->name))
        return bh_console_job_fail(w->q.job, 404, "pod", 0,
                                   "there is no pod %.253s in namespace %.253s", w->name, w->ns);
    if (!p && !changes && w->changed)
        return 0; /* the changes may make it take part */
    if (!p)
        return refuse_left_out(w, *ret_t);
    *ret = bh_trial_explain(*ret_t, p, &w->q.a);
    return 0;
}

static const char *node_of(const struct bh_trial *t, const struct bh_trial_pod *p)
{
    if (!p || p->result == BH_TRIAL_PREEMPTED || p->node == BH_SYM_NONE)
        return "";
    return bh_sym_text(bh_engine_symtab(t->w.engine), p->node);
}

static void other(struct whatif *w, struct bh_json *list, struct bh_trial *x, struct bh_trial *y,
                  const struct bh_trial_pod *p)
{
    const char *ns = bh_trial_pod_ns(p), *name = bh_trial_pod_name(p);
    const struct bh_trial_pod *b = bh_trial_pod_of(x, bh_trial_uid(p)),
                              *a = bh_trial_pod_of(y, bh_trial_uid(p));
    const char *before = b ? node_of(x, b) : p->placed_before ? node_of(y, p) : "";
    const char *after = node_of(y, a);

    if (p->placed_before) { /* it had to go in one of the two */
        const char *was =
            bh_sym_text(bh_engine_symtab(p == b ? x->w.engine : y->w.engine), p->rec->node);
        before = b ? "" : was;
        after = a ? "" : was;
    }
    if (bh_streq(before, after) || (bh_streq(ns, w->ns) && bh_streq(name, w->name)))
        return;
    bh_json_append(&w->q.a, list, "namespace: %s, name: %s, before: %s, after: %s, message?: %s",
                   ns, name, before, after, a ? a->message : NULL);
}

/* All waiting pods are decided in both; those that come out elsewhere are listed. */
static struct bh_json *others(struct whatif *w, struct bh_trial *x, struct bh_trial *y)
{
    struct bh_json *list = bh_json_new(&w->q.a, BH_JSON_ARRAY);

    if (!w->everybody)
        return list;
    bh_trial_run(x);
    bh_trial_run(y);
    for (size_t i = 0; i < y->n_list; i++)
        other(w, list, x, y, y->list[i]);
    for (size_t i = 0; i < x->n_list; i++)
        if (!bh_trial_pod_of(y, bh_trial_uid(x->list[i])))
            other(w, list, x, y, x->list[i]);
    return list;
}

/* What would make it fit, from where the changes have brought it; NULL: it does, or nobody asks. */
static struct bh_json *fixes(struct whatif *w, struct bh_trial *t, const struct bh_json *after)
{
    const struct bh_trial_item *it = bh_trial_find_item(t, "Pod", w->ns, w->name);
    struct bh_json *pod = NULL;
    struct bh_err err;

    if (!bh_json_get_bool(w->q.body, "fixes", false) || !it ||
        bh_streq(bh_json_get_text(after, "result"), "Scheduled") ||
        bh_json_parse(&w->q.a, it->json, it->n, BH_JSON_NUL, &pod, &err) < 0)
        return NULL;
    return bh_offline_fixes(&t->w, &w->q.a, pod, after);
}

static int answer(struct whatif *w)
{
    struct bh_trial *x = NULL, *y = NULL;
    struct bh_json *before = NULL, *after = NULL, *moved;
    int rc = bh_console_question_running(&w->q);

    if (rc == 0)
        rc = bh_console_question_config(&w->q, "config", bh_json_get_str(w->q.body, "config"),
                                        &w->config);
    rc = rc < 0 ? rc : read_pod(w);
    if (rc < 0)
        return -1;
    w->key = bh_arena_printf(&w->q.a, "%s/%s", w->ns, w->name);
    w->everybody = bh_json_get_bool(w->q.body, "everybody", false);
    w->changes = bh_json_new(&w->q.a, BH_JSON_ARRAY);
    bool known = bh_console_moment_find(w->q.moment, "Pod", w->ns, w->name) != NULL;
    w->changed = bh_json_first(bh_json_get(w->q.body, "changes")) || w->config != w->q.running;
    if (known || w->changed || w->everybody)
        rc = explain(w, !known && w->manifest, false, w->q.running, &x, &before);
    rc = rc < 0 ? rc : explain(w, w->manifest != NULL, true, w->config, &y, &after);
    if (rc == 0) {
        struct bh_json *help = fixes(w, y, after);
        moved = x ? others(w, x, y) : bh_json_new(&w->q.a, BH_JSON_ARRAY);
        if (bh_console_job_dropped(w->q.job))
            bh_console_job_fail(w->q.job, 503, NULL, 0, "cancelled");
        else {
            struct bh_arena *a = &w->q.a;
            bh_console_job_reply(
                w->q.job, 200,
                bh_json_make(
                    a,
                    "revision: %lu, took_ns: %lu, configuration: %s, difference: %p, before: %p, "
                    "after: %p, changes: %p, others: %p, fixes?: %p",
                    w->q.moment->revision, bh_mono_ns() - w->q.started_ns, w->q.configuration,
                    before ? bh_explain_difference(a, before, after) : NULL, before, after,
                    w->changes, moved, help));
        }
    }
    bh_trial_free(x);
    bh_trial_free(y);
    return rc;
}

static void run(struct bh_console_job *j, void *arg)
{
    struct whatif w = {0};

    if (bh_console_question_open(&w.q, j, arg,
                                 "pod changes:list config:text everybody:bool fixes:bool") == 0)
        (void)answer(&w);
    bh_arena_fini(&w.q.a);
}

void bh_console_whatif(struct bh_console_req *c)
{
    bh_console_work(c, run, bh_console_moment_drop, bh_console_moment_take(c->r, true));
}
