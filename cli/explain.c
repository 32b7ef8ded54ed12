/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/explain.c - `berth explain pod/NAME` and podgroup/NAME: why here, why not there, on a running
 * system
 *
 * Everything is computed in this process, in an engine of its own (observer.h), with the
 * configuration that the running scheduler says is in force (ask.h).
 */
#include "cli/explain.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/targets.h"
#include "simulator/offline/fixes.h"

#define WHO       "berth explain"
#define NOTES_MAX 8u

struct arguments {
    const char *runtime, *ns, *output, *config, *node;
    struct bh_opt_list what_if;
    bool no_preemption;
    enum bh_form form;
    struct bh_opt_list rest;
};
struct session {
    const struct arguments *a;
    char dir[108];
    struct bh_arena arena; /* documents and texts */
    struct bh_ask ask;
    bool asking; /* a scheduler answers */
    bool draws;  /* ... and decides by lot among the best */
    struct bh_sched_config *config;
    struct bh_feature_gates gates; /* the scheduler's */
    enum bh_target target;         /* what was named */
    const char *front;             /* NAMESPACE of NAMESPACE/NAME, else NULL */
    bool group;                    /* pod.name is a PodGroup's */
    struct bh_observer observer;
    struct bh_whatif *what_if;
    struct bh_explain_pod pod;
    struct bh_explain_facts facts;
    const char *notes[NOTES_MAX];
};

static void note(struct session *s, const char *text)
{
    bh_assert(s->facts.n_notes < NOTES_MAX);
    s->notes[s->facts.n_notes++] = text;
}

/* ---- the scheduler --------------------------------------------------------------------------- */

static int ask_status(struct session *s, struct bh_err *err)
{
    const Berth__ControlReply *r = NULL;
    int rc = bh_ask_open(&s->ask, s->dir, err);

    if (rc == 0)
        rc = bh_ask_for(&s->ask, BERTH__CONTROL_WHAT__CONTROL_STATUS, &r, err);
    if (rc == -ENOENT || (rc < 0 && s->a->config)) {
        s->facts.configuration = "defaults";
        note(s, rc == -ENOENT ? "no scheduler runs here" : "the scheduler does not answer");
        note(s, "pods whose binding is on its way are not known");
        return 0;
    }
    if (rc < 0)
        return rc != -ETIMEDOUT ? rc
                                : bh_err_prefix(err, rc, "--config FILE would do without, but");
    s->asking = s->facts.running = true;
    if (r && r->status) {
        s->facts.deciding = r->status->deciding;
        s->facts.trouble = bh_arena_strdup(&s->arena, r->status->trouble ? r->status->trouble : "");
    }
    return 0;
}

/* Pods whose bind is on its way count on their node, as in the scheduler. */
static void on_binding(void *arg, const Berth__QueuePod *p)
{
    struct session *s = arg;
    const struct bh_observed_pod *seen = bh_map_get(&s->observer.pending, p->uid, strlen(p->uid));

    if (!seen || !p->node || seen == s->pod.seen)
        return;
    struct bh_pending pending = {.pod = seen->pod, .shape = seen->shape};
    (void)bh_engine_assume(s->observer.w.engine, &pending,
                           bh_sym_internc(bh_engine_symtab(s->observer.w.engine), p->node));
}

/* The queue's view of our pod. */
static int ask_about_pod(struct session *s, struct bh_err *err)
{
    Berth__ControlRequest q = BERTH__CONTROL_REQUEST__INIT;
    const Berth__ControlReply *r;

    if (!s->asking)
        return 0;
    q.what = BERTH__CONTROL_WHAT__CONTROL_POD;
    q.uid = bh_arena_strdup(&s->arena, bh_rec_text(s->pod.rec, s->pod.rec->uid).p);
    int rc = bh_ask(&s->ask, &q, &r, err);
    if (rc < 0 || !r->n_pod || bh_streq(s->pod.state, "Bound")) /* its binding is confirmed here */
        return rc;
    s->facts.queue = bh_queue_pod_json(&s->arena, r->pod[0]);
    if (r->pod[0]->node && bh_streq(s->pod.state, "Pending")) {
        s->pod.state = "Binding";
        s->pod.node = bh_arena_strdup(&s->arena, r->pod[0]->node);
    }
    return 0;
}

/* ---- the pod --------------------------------------------------------------------------------- */

/* TYPE/NAME, TYPE NAME, NAME or NAMESPACE/NAME. A namespace that is called like a type needs -n. */
static int split_name(struct session *s, struct bh_err *err)
{
    const struct arguments *a = s->a;
    struct bh_explain_pod *pod = &s->pod;
    char *slash, *front = NULL, *copy, near[64];

    if (a->rest.n == 2 && !strchr(a->rest.v[0], '/') && !strchr(a->rest.v[1], '/'))
        copy = bh_arena_printf(&s->arena, "%s/%s", a->rest.v[0], a->rest.v[1]);
    else if (a->rest.n == 1)
        copy = bh_arena_strdup(&s->arena, a->rest.v[0]);
    else
        return bh_err_set(err, -EINVAL,
                          "say what to explain: berth explain pod/NAME [-n NAMESPACE], or another "
                          "TYPE/NAME of " BH_TARGETS);
    const char *given = bh_arena_strdup(&s->arena, copy);
    pod->name = copy;
    slash = strchr(copy, '/');
    if (slash) {
        *slash = '\0';
        front = copy;
        pod->name = slash + 1;
        s->target = bh_target_parse(front, strlen(front));
    }
    if (s->target == BH_TARGET_NONE) {
        s->target = BH_TARGET_POD;
        s->front = front;
    } else {
        front = NULL;
    }
    if (a->rest.n == 2 && front) {
        bh_near_word(near, BH_TARGET_WORDS, front);
        return bh_err_set(err, -EINVAL, "unknown type \"%s\"%s: " BH_TARGETS, front, near);
    }
    if (front && a->ns && !bh_streq(front, a->ns))
        return bh_err_set(err, -EINVAL, "\"%s\" is in namespace \"%s\", --namespace says \"%s\"",
                          given, front, a->ns);
    pod->ns = front ? front : a->ns ? a->ns : "default";
    if (!*pod->name || strchr(pod->name, '/') || !*pod->ns)
        return bh_err_set(err, -EINVAL, "\"%s\" names no pod: pod/NAME, NAME or NAMESPACE/NAME",
                          given);
    s->group = s->target == BH_TARGET_GROUP;
    if (s->target != BH_TARGET_POD && s->target < BH_TARGET_DEPLOYMENT &&
        (a->node || a->what_if.n || a->no_preemption))
        return bh_err_set(err, -EINVAL,
                          "--node, --what-if and --no-preemption are about a pod, not about a %s",
                          s->group ? "group" : "node");
    return 0;
}

static int find_pod(struct session *s, struct bh_err *err)
{
    struct bh_engine *e = s->observer.w.engine;
    struct bh_explain_pod *p = &s->pod;

    p->state = "Pending";
    p->seen = bh_observer_pending(&s->observer, p->ns, p->name);
    if (!p->seen) {
        p->state = "Bound";
        p->seen = bh_observer_bound(&s->observer, p->ns, p->name);
    }
    if (!p->seen) {
        struct bh_buf hint BH_CLEANUP(bh_buf_fini) = {0};
        bh_observer_hint(&s->observer, &hint);
        if (s->front && !s->observer.pods_in_namespace)
            bh_buf_addf(&hint, "; \"%s\" was taken for a namespace, types are " BH_TARGETS,
                        s->front);
        return bh_err_set(err, -ENOENT, "there is no pod \"%s\" in namespace \"%s\" (%s)",
                          s->pod.name, s->pod.ns, bh_buf_str(&hint));
    }
    const struct bh_shape_rec *shape = bh_engine_shape_rec(e, p->seen->shape);
    if (!bh_engine_responsible(e, bh_sym_text(bh_engine_symtab(e), shape->scheduler_name)))
        return bh_err_set(err, -EINVAL,
                          "pod \"%s/%s\" is for scheduler \"%s\", of which the configuration (%s) "
                          "has no profile",
                          p->ns, p->name, bh_sym_text(bh_engine_symtab(e), shape->scheduler_name),
                          s->facts.configuration);
    p->rec = bh_memdup(p->seen->pod, p->seen->pod->h.size);
    p->pending = (struct bh_pending){.pod = p->rec, .shape = bh_engine_shape(e, shape)};
    return 0;
}

/* As if it were not there yet: its room is free, and it has no node. */
static void take_off(struct session *s)
{
    struct bh_engine *e = s->observer.w.engine;
    struct bh_pod_rec *rec = s->pod.rec;

    if (rec->node == BH_SYM_NONE)
        return;
    s->pod.node = bh_arena_strdup(&s->arena, bh_sym_text(bh_engine_symtab(e), rec->node));
    bh_engine_del_pod(e, bh_rec_text(rec, rec->uid));
    rec->node = BH_SYM_NONE;
    note(s, "the pod is on its node already: this is recomputed as if it were not there yet; "
            "claims and "
            "volumes that it was given stay given");
}

/* ---- deciding -------------------------------------------------------------------------------- */

static struct bh_json *decide(struct session *s)
{
    struct bh_offline *w = &s->observer.w;

    w->o.flags = s->a->no_preemption ? BH_NO_PREEMPTION : 0;
    w->now_ns = bh_wall_ns();
    return bh_offline_explain(w, &s->pod.pending, &s->arena);
}

/* What would make a waiting pod fit, after the files were put in; NULL: nothing has to. */
static struct bh_json *fixes(struct session *s, const struct bh_json *explanation)
{
    const char *object = s->pod.seen->object;
    const struct bh_json *changed = s->what_if ? bh_whatif_pod(s->what_if, &s->pod) : NULL;
    struct bh_json *pod = NULL;
    struct bh_err err;

    if (!object || s->a->node || bh_streq(bh_json_get_text(explanation, "result"), "Scheduled") ||
        (!changed && bh_json_parse(&s->arena, object, strlen(object), BH_JSON_NUL, &pod, &err) < 0))
        return NULL;
    return bh_offline_fixes(&s->observer.w, &s->arena, changed ? changed : pod, explanation);
}

/* Changes the engine, so it comes last. */
static int what_if(struct session *s, struct bh_json *doc, const struct bh_json *before,
                   struct bh_err *err)
{
    struct bh_json *changes = NULL;
    int rc = bh_whatif_apply(s->what_if, &s->arena, &s->observer, &s->pod, &changes, err);

    if (rc < 0)
        return rc;
    struct bh_json *after = decide(s);
    bh_json_add(&s->arena, doc,
                "whatIf: {changes: %p, difference: %p, explanation: %p, fixes?: %p}", changes,
                bh_explain_difference(&s->arena, before, after), after, fixes(s, after));
    return bh_explain_only_node(after, s->a->node, err);
}

/* Members of groups that wait, bindings on their way, and room that preemption promised to others. */
static int take_in_queue(struct session *s, struct bh_err *err)
{
    struct bh_engine *e = s->observer.w.engine;
    struct bh_map_entry *m;

    for (size_t it = 0; (m = bh_map_next(&s->observer.pending, &it));) {
        const struct bh_observed_pod *p = m->value;
        const struct bh_pending pending = {.pod = p->pod, .shape = p->shape};
        bh_engine_waits(e, &pending, true);
        if (p->pod->nominated_node != BH_SYM_NONE)
            bh_engine_nominate(e, &pending, p->pod->nominated_node);
    }
    return !s->asking ? 0
                      : bh_ask_queue(&s->ask, NULL,
                                     1u << BERTH__QUEUE_PLACE__QUEUE_BINDING |
                                         1u << BERTH__QUEUE_PLACE__QUEUE_IN_FLIGHT,
                                     on_binding, s, err);
}

static int explain_group(struct session *s, struct bh_json **ret_doc, struct bh_err *err)
{
    if (!bh_sched_config_gate(s->config, "GenericWorkload") &&
        !bh_engine_get_object(s->observer.w.engine, BH_KIND_COSCHEDULING_PODGROUP, s->pod.ns,
                              s->pod.name))
        return bh_err_set(err, -EINVAL,
                          "the scheduler looks at no groups: its feature gate GenericWorkload is "
                          "off, and there is no PodGroup of plugin Coscheduling of this name");
    int rc = take_in_queue(s, err);
    if (rc == 0)
        rc = bh_explain_group(&s->arena, &s->observer, s->pod.ns, s->pod.name, true, ret_doc, err);
    for (unsigned i = 0; rc == 0 && i < s->facts.n_notes; i++)
        bh_json_push(bh_json_list_at(&s->arena, *ret_doc, "notes"),
                     bh_json_new_cstr(&s->arena, s->notes[i]));
    return rc;
}

/* Of a pod that has a node: does the group that it goes with go? */
static void add_waiting_group(struct session *s, const struct bh_json *explanation)
{
    const char *name = bh_json_get_text(bh_json_get(s->facts.queue, "group"), "name");

    if (*name && bh_streq(bh_json_get_text(explanation, "result"), "Scheduled"))
        s->facts.group = bh_explain_waiting_group(&s->arena, &s->observer, s->pod.ns, name);
}

static int explain(struct session *s, struct bh_json **ret_doc, struct bh_err *err)
{
    int rc = find_pod(s, err);

    if (rc == 0)
        rc = ask_about_pod(s, err);
    if (rc == 0)
        rc = take_in_queue(s, err);
    if (rc < 0)
        return rc;
    take_off(s);
    struct bh_json *explanation = decide(s);
    /* What is shown as chosen is a bound pod's own node, or the first by name; the scheduler may draw
     * another one of the best. */
    long long best = 0;
    bool own = false;
    bh_json_each(v, bh_json_get_list(explanation, "ranking")) {
        bool first = bh_json_get_i64(v, "rank", 0) == 1;
        best += first;
        own |= first && s->pod.node && bh_streq(bh_json_get_text(v, "node"), s->pod.node);
    }
    if (s->draws && best > 1 && !own && bh_json_get_bool(explanation, "scored", false))
        note(s, bh_arena_printf(&s->arena,
                                "%lld nodes are equally good: the scheduler draws one of them, "
                                "here it is the first by name",
                                best));
    s->facts.notes = s->notes;
    add_waiting_group(s, explanation);
    s->facts.fixes = s->what_if ? NULL : fixes(s, explanation);
    struct bh_json *whole = s->what_if ? bh_json_clone(&s->arena, explanation) : NULL;
    struct bh_json *doc = bh_explain_document(&s->arena, &s->pod, &s->facts, explanation);
    rc = bh_explain_only_node(explanation, s->a->node, err);
    /* --node may name a node that only the files bring */
    if (s->what_if && (rc == 0 || rc == -ENOENT))
        rc = what_if(s, doc, whole, err);
    *ret_doc = doc;
    return rc;
}

static int run(struct session *s, struct bh_json **ret_doc, struct bh_err *err)
{
    int rc = 0;

    if (s->target >= BH_TARGET_DEPLOYMENT) {
        const char *found = NULL;
        rc = bh_target_find_pod(s->dir, s->target, s->pod.ns, s->pod.name, &s->arena, &s->pod.name,
                                &found, err);
        if (rc == 0)
            note(s, found);
    }
    if (rc == 0)
        rc = ask_status(s, err);
    if (rc == 0 && s->a->config)
        s->facts.configuration = s->a->config;
    if (rc == 0)
        rc = s->asking && !s->a->config
                 ? bh_observer_config(&s->ask, &s->arena, &s->gates, &s->config,
                                      &s->facts.configuration, &s->draws, err)
                 : bh_sched_config_load(s->a->config, &s->config, err);
    if (rc == 0 && s->config->n_extenders) {
        note(s, "extenders are configured; they are not asked here and may reject nodes or add to "
                "scores");
        s->config->n_extenders = 0;
    }
    if (rc == 0 && s->a->what_if.n)
        rc = bh_whatif_read(&s->what_if, s->a->what_if.v, s->a->what_if.n, err);
    if (rc == 0)
        rc = bh_observer_open(&s->observer, s->dir, s->config, err);
    if (rc < 0)
        return rc;
    if (s->group) {
        s->observer.group_ns = s->pod.ns;
        s->observer.group = s->pod.name;
    } else {
        bh_observer_want(&s->observer, s->pod.ns, s->pod.name);
    }
    if (s->what_if)
        bh_whatif_want(s->what_if, &s->observer);
    rc = bh_observer_read(&s->observer, s->dir, err);
    if (rc < 0)
        return rc;
    return s->group ? explain_group(s, ret_doc, err) : explain(s, ret_doc, err);
}

/* ---- command --------------------------------------------------------------------------------- */

int bh_cmd_explain(int argc, char **argv)
{
    struct arguments a = {.output = "table"};
    struct session s = {.a = &a};
    struct bh_json *doc = NULL;
    struct bh_err err = {0};
    struct bh_buf out = {0};
    int status = BH_EXIT_OK;

    const struct bh_opt table[] = {
        {"namespace", 'n', BH_OPT_STR, &a.ns, "NS", "the pod's namespace (default: default)"},
        {"node", 0, BH_OPT_STR, &a.node, "NAME", "only this node, in full"},
        {"what-if", 'f', BH_OPT_STRLIST, &a.what_if, "FILE",
         "objects that replace or join those of the cluster, in this computation only"},
        {"no-preemption", 0, BH_OPT_BOOL, &a.no_preemption, NULL,
         "do not look for pods that could be evicted"},
        {"config", 0, BH_OPT_STR, &a.config, "FILE",
         "KubeSchedulerConfiguration to decide with (default: the one in force)"},
        {"output", 'o', BH_OPT_STR, &a.output, BH_FORMS, "form of the output"},
        {"runtime-dir", 0, BH_OPT_STR, &a.runtime, "DIR", "instance to read " BH_INSTANCE_DEFAULT},
        {0},
    };
    int rc = bh_opt_parse(table, bh_cli_help(WHO), argc, argv, &a.rest, &err);
    if (rc == 0)
        rc = bh_form_parse(a.output, &a.form, &err);
    if (rc == BH_OPT_WORDS && argc == 2)
        bh_cli_print_names(WHO, "pod/", "node/");
    rc = rc != 0 ? rc : split_name(&s, &err);
    if (rc != 0) {
        status = bh_cli_usage(WHO, rc, &err);
    } else if (bh_cli_find_dir(WHO, a.runtime, s.dir, &err) < 0 ||
               (s.target == BH_TARGET_NODE
                    ? bh_target_print_node(s.dir, s.pod.name, a.form, &out, &err)
                    : run(&s, &doc, &err)) < 0) {
        status = bh_cli_fail(WHO, &err);
    } else {
        if (s.group)
            bh_explain_print_group(&out, doc, a.form, bh_colour_wanted(STDOUT_FILENO));
        else if (doc)
            bh_explain_print(&out, doc, a.form, a.node != NULL, bh_colour_wanted(STDOUT_FILENO));
        status = bh_cli_print(WHO, &out);
    }
    if (s.pod.rec)
        bh_engine_shape_unref(s.observer.w.engine, s.pod.pending.shape);
    free(s.pod.rec);
    bh_whatif_free(s.what_if);
    bh_observer_close(&s.observer);
    bh_ask_close(&s.ask);
    bh_sched_config_free(s.config);
    bh_arena_fini(&s.arena);
    free(a.rest.v);
    free(a.what_if.v);
    return status;
}
