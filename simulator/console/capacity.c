/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/capacity.c - how many more fit, and where the pods of a node would go
 */
#include "simulator/console/parts.h"

#include <errno.h>
#include <stdio.h>

#include "common/k8s/selector.h"
#include "simulator/console/moment.h"

#define PODS_MAX  50
#define NODES_MAX 10000

static void reply(struct bh_console_question *q, struct bh_json *v)
{
    bh_json_add(&q->a, v, "took_ns: %lu", bh_mono_ns() - q->started_ns);
    bh_console_job_reply(q->job, 200, v);
}

/* ---- capacity -------------------------------------------------------------------------------- */

struct capacity {
    struct bh_console_question q;
    struct bh_trial *t;
    size_t n;
    struct {
        const char *ns, *name, *as; /* the name it has in the trial */
    } pod[PODS_MAX];
};

/* A template is no pod of the cluster, whatever it was copied from. */
static int on_template(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                       struct bh_json *obj, struct bh_err *err)
{
    struct capacity *c = arg;
    struct bh_json *meta = bh_json_get(obj, "metadata");
    const char *name = bh_json_get_text(meta, "name"), *ns = bh_json_get_text(meta, "namespace");

    if (!bh_streq(bh_json_get_text(obj, "kind"), "Pod"))
        return bh_err_set(err, -EINVAL, "%s: document %u (line %u): expected a Pod", at->file,
                          at->document, at->line);
    if (c->n == PODS_MAX)
        return bh_err_set(err, -EINVAL, "more than %d pods", PODS_MAX);
    c->pod[c->n].name = bh_arena_strdup(&c->q.a, *name ? name : "pod");
    c->pod[c->n].ns = bh_arena_strdup(&c->q.a, *ns ? ns : "default");
    c->pod[c->n].as = bh_arena_printf(&c->q.a, "capacity-of-%zu-%.200s", c->n, c->pod[c->n].name);
    bh_json_set_str(a, meta, "name", c->pod[c->n].as);
    bh_json_drop(meta, "uid resourceVersion");
    bh_json_unset(obj, "status");
    bh_json_unset(bh_json_get(obj, "spec"), "nodeName");
    c->n++;
    return 0;
}

static int add_templates(struct capacity *c)
{
    unsigned i = 0;

    bh_json_each(m, bh_json_get_list(c->q.body, "pods")) {
        const char *field = bh_arena_printf(&c->q.a, "pods[%u]", i++);
        if (bh_console_question_add(&c->q, c->t, field, m, on_template, c) < 0)
            return -1;
    }
    return c->n ? 0
                : bh_console_job_fail(c->q.job, 400, "pods", 0,
                                      "say which pods: a list of manifests");
}

struct copy {
    unsigned i;
    bool rename;
};

static int on_node(void *arg, const struct bh_trial_source *at, struct bh_arena *a,
                   struct bh_json *obj, struct bh_err *err)
{
    const struct copy *k = arg;
    struct bh_json *meta = bh_json_get(obj, "metadata");
    const char *name = bh_json_get_text(meta, "name");

    if (!bh_streq(bh_json_get_text(obj, "kind"), "Node"))
        return bh_err_set(err, -EINVAL, "%s: document %u (line %u): expected a Node", at->file,
                          at->document, at->line);
    bh_json_unset(meta, "uid");
    if (k->rename || !*name) {
        char *as = bh_arena_printf(a, "%.200s-%u", *name ? name : "new-node", k->i + 1);
        bh_json_set_str(a, meta, "name", as);
        if (bh_json_path(meta, "labels"))
            bh_json_set_str(a, bh_json_get(meta, "labels"), "kubernetes.io/hostname", as);
    }
    return 0;
}

static int add_nodes(struct capacity *c)
{
    unsigned i = 0;

    bh_json_each(m, bh_json_get_list(c->q.body, "addNodes")) {
        const char *field = bh_arena_printf(&c->q.a, "addNodes[%u]", i++);
        int64_t n = bh_json_get_i64(m, "count", 1);
        if (bh_console_question_members(&c->q, m, field, "manifest count:number") < 0)
            return -1;
        if (n < 1 || n > NODES_MAX)
            return bh_console_job_fail(c->q.job, 400, bh_arena_printf(&c->q.a, "%s.count", field),
                                       m->line, "a number from 1 to %d", NODES_MAX);
        field = bh_arena_printf(&c->q.a, "%s.manifest", field);
        for (struct copy k = {.rename = n > 1}; k.i < n; k.i++)
            if (bh_console_question_add(&c->q, c->t, field, bh_json_get(m, "manifest"), on_node,
                                        &k) < 0)
                return -1;
    }
    return 0;
}

static int exclude_nodes(struct capacity *c)
{
    bh_json_each(m, bh_json_get_list(c->q.body, "excludeNodes")) {
        const char *name = bh_json_cstr(m);
        if (!name || !bh_trial_remove_item(c->t, "Node", "", name))
            return bh_console_job_fail(c->q.job, 400, "excludeNodes", m->line,
                                       "there is no node %.253s", name ? name : "");
    }
    return 0;
}

static void count(struct capacity *c)
{
    struct bh_trial_pod *pods[PODS_MAX];
    struct bh_json *v = NULL;
    struct bh_err err = {0};
    size_t i = 0;

    for (; i < c->n; i++) {
        pods[i] = bh_trial_find_pod(c->t, c->pod[i].ns, c->pod[i].as);
        if (pods[i])
            continue;
        bh_console_job_fail(c->q.job, 400, "pods", 0,
                            "pod %.253s is for a scheduler of which the configuration has no "
                            "profile",
                            c->pod[i].name);
        return;
    }
    if (bh_trial_count_all(c->t, pods, c->n, bh_json_get_i64(c->q.body, "max", 0), &c->q.a, &v,
                           &err) < 0) {
        (void)bh_console_question_fail(&c->q, 400, "pods", &err);
        return;
    }
    i = 0;
    bh_json_each(p, bh_json_get_list(v, "pods"))
        bh_json_set_str(&c->q.a, p, "name", c->pod[i++].name);
    reply(&c->q, v);
}

static void run_capacity(struct bh_console_job *j, void *arg)
{
    static const char members[] = "pods:list max:number addNodes:list excludeNodes:list";
    struct capacity *c = bh_calloc(1, sizeof(*c));

    if (bh_console_question_open(&c->q, j, arg, members) == 0 &&
        bh_console_question_running(&c->q) == 0 &&
        bh_console_question_trial(&c->q, c->q.running, NULL, &c->t) == 0 && add_nodes(c) == 0 &&
        exclude_nodes(c) == 0 && add_templates(c) == 0 &&
        bh_console_question_prepare(&c->q, c->t, "pods") == 0)
        count(c);
    bh_trial_free(c->t);
    bh_arena_fini(&c->q.a);
    free(c);
}

void bh_console_capacity(struct bh_console_req *c)
{
    bh_console_work(c, run_capacity, bh_console_moment_drop, bh_console_moment_take(c->r, true));
}

/* ---- drain ----------------------------------------------------------------------------------- */

struct budget {
    const struct bh_sim_obj *obj;
    struct bh_selector *selector;
    int64_t allowed;
};
struct drain {
    struct bh_console_question q;
    struct bh_trial *t;
    struct budget *budgets;
    size_t n_budgets;
    struct bh_json *moved, *blocked;
};

/* Why kubectl drain would leave the pod where it is, or NULL; counts down the budgets. */
static const char *held_by(struct drain *d, const struct bh_sim_obj *o)
{
    if (!*o->owner_kind)
        return "no controller would make it anew (kubectl drain wants --force)";
    for (size_t i = 0; i < d->n_budgets; i++) {
        struct budget *b = &d->budgets[i];
        if (!bh_streq(b->obj->ns, o->ns) ||
            !bh_selector_match(b->selector, bh_sim_get_label, (void *)(uintptr_t)o))
            continue;
        if (b->allowed <= 0)
            return bh_arena_printf(&d->q.a, "the disruption budget %.253s allows none",
                                   b->obj->name);
        b->allowed--;
    }
    return NULL;
}

static bool goes_from(const struct bh_sim_obj *o, const char *node)
{
    return bh_streq(o->type->kind, "Pod") && bh_streq(o->node_name, node) && !o->deleting &&
           *o->phase != 'S' && *o->phase != 'F' && !bh_streq(o->owner_kind, "DaemonSet") &&
           !bh_streq(o->owner_kind, "Node");
}

static int empty_node(struct drain *d, const char *name)
{
    const struct bh_sim_obj *node = bh_console_moment_find(d->q.moment, "Node", "", name);
    const struct bh_trial_source at = {.file = "the cluster", .document = 1};
    struct bh_err err = {0};

    if (!node)
        return bh_console_job_fail(d->q.job, 404, "nodes", 0, "there is no node %.253s", name);
    struct bh_json *v =
        bh_json_add(&d->q.a, bh_sim_obj_tree(&d->q.a, node), "spec: {unschedulable: true}");
    if (bh_trial_add_item(d->t, &at, v, &err) < 0)
        return bh_console_question_fail(&d->q, 500, NULL, &err);
    for (size_t i = 0; i < d->q.moment->objs.n; i++) {
        const struct bh_sim_obj *o = d->q.moment->objs.v[i];
        const char *why = goes_from(o, name) ? held_by(d, o) : "";
        if (!why) {
            bh_json_append(&d->q.a, d->moved, "namespace: %s, name: %s, from: %s", o->ns, o->name,
                           o->node_name);
            if (bh_console_question_unbind(&d->q, d->t, o) < 0)
                return -1;
        } else if (*why)
            bh_json_append(&d->q.a, d->blocked, "namespace: %s, name: %s, reason: %s", o->ns,
                           o->name, why);
    }
    return 0;
}

static int empty_nodes(struct drain *d)
{
    const struct bh_json *nodes = bh_json_get_list(d->q.body, "nodes");

    if (!bh_json_first(nodes))
        return bh_console_job_fail(d->q.job, 400, "nodes", 0, "say which nodes: a list of names");
    d->budgets = bh_calloc(d->q.moment->objs.n + 1, sizeof(*d->budgets));
    for (size_t i = 0; i < d->q.moment->objs.n; i++) {
        const struct bh_sim_obj *o = d->q.moment->objs.v[i];
        struct bh_selector *s = NULL;
        if (!bh_streq(o->type->kind, "PodDisruptionBudget"))
            continue;
        const struct bh_json *v = bh_sim_obj_tree(&d->q.a, o);
        if (bh_selector_from_json(bh_json_path(v, "spec.selector"), &s, NULL) < 0)
            continue;
        d->budgets[d->n_budgets++] = (struct budget){
            o, s, bh_json_get_i64(bh_json_get(v, "status"), "disruptionsAllowed", 0)};
    }
    d->moved = bh_json_new(&d->q.a, BH_JSON_ARRAY);
    d->blocked = bh_json_new(&d->q.a, BH_JSON_ARRAY);
    bh_json_each(n, nodes)
        if (empty_node(d, bh_json_cstr(n) ? bh_json_cstr(n) : "") < 0)
            return -1;
    return 0;
}

static void run_drain(struct bh_console_job *j, void *arg)
{
    struct drain d = {0};

    if (bh_console_question_open(&d.q, j, arg, "nodes:list") == 0 &&
        bh_console_question_running(&d.q) == 0 &&
        bh_console_question_trial(&d.q, d.q.running, NULL, &d.t) == 0 && empty_nodes(&d) == 0 &&
        bh_console_question_prepare(&d.q, d.t, "nodes") == 0) {
        struct bh_arena *a = &d.q.a;
        bh_trial_run(d.t);
        bh_json_each(row, d.moved) {
            const struct bh_trial_pod *p = bh_trial_find_pod(
                d.t, bh_json_get_text(row, "namespace"), bh_json_get_text(row, "name"));
            bool placed = p && p->result == BH_TRIAL_SCHEDULED;
            bh_json_add(
                a, row, "to: %p, message: %s",
                placed ? bh_json_new_cstr(a, bh_sym_text(bh_engine_symtab(d.t->w.engine), p->node))
                       : NULL,
                !placed && p ? p->message : "");
        }
        reply(&d.q, bh_json_make(a, "pods: %p, blocked: %p", d.moved, d.blocked));
    }
    for (size_t i = 0; i < d.n_budgets; i++)
        bh_selector_free(d.budgets[i].selector);
    free(d.budgets);
    bh_trial_free(d.t);
    bh_arena_fini(&d.q.a);
}

void bh_console_drain(struct bh_console_req *c)
{
    bh_console_work(c, run_drain, bh_console_moment_drop, bh_console_moment_take(c->r, true));
}
