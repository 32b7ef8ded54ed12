/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/configs.c - is this configuration right, and what would it change?
 */
#include "simulator/console/parts.h"

#include "common/data/yaml.h"
#include "simulator/console/moment.h"

/* ---- check ----------------------------------------------------------------------------------- */

/* {message, field, line} of each. */
static void add_findings(struct bh_arena *a, struct bh_json *list,
                         const struct bh_config_findings *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const char *text = f->v[i].text;
        bh_json_append(a, list, "message: %s, field?: %s, line?: %u", text,
                       bh_arena_strndup(a, text, bh_console_field_of(text)), f->v[i].line);
    }
}

/* Which plugins score in each profile, and with which weight. */
static void add_scores(struct bh_arena *a, struct bh_json *list, const struct bh_sched_config *c)
{
    for (uint32_t i = 0; c && i < c->n_profiles; i++) {
        const struct bh_profile_config *p = &c->profiles[i];
        struct bh_json *plugins = bh_json_new(a, BH_JSON_ARRAY);
        for (uint32_t k = 0; k < p->n_points[BH_POINT_SCORE]; k++)
            bh_json_append(a, plugins, "name: %s, weight: %d", p->points[BH_POINT_SCORE][k].name,
                           p->points[BH_POINT_SCORE][k].weight);
        bh_json_append(a, list, "profile: %s, plugins: %p", p->scheduler_name, plugins);
    }
}

static void run_check(struct bh_console_job *j, void *arg)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report report;
    struct bh_console_question q;
    BH_CLEANUP(bh_buf_fini) struct bh_buf yaml = {0};

    bh_config_report_init(&report);
    if (bh_console_question_open(&q, j, arg, "config:text") == 0) {
        const char *text = bh_json_get_text(q.body, "config");
        int rc = bh_sched_config_read(text, strlen(text), &c, &report);
        if (rc == 0 && c->tree)
            bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, false, &yaml);
        struct bh_json *v =
            bh_json_make(&q.a, "valid: %i, errors: [], warnings: [], effective: %s, scores: []",
                         rc == 0, bh_buf_str(&yaml));
        add_findings(&q.a, bh_json_get(v, "errors"), &report.errors);
        add_findings(&q.a, bh_json_get(v, "warnings"), &report.warnings);
        add_scores(&q.a, bh_json_get(v, "scores"), c);
        bh_console_job_reply(j, 200, v);
    }
    bh_sched_config_free(c);
    bh_config_report_fini(&report);
    bh_arena_fini(&q.a);
}

/* ---- difference ------------------------------------------------------------------------------ */

struct diff {
    struct bh_console_question q;
    bool all; /* placed pods are decided anew, too */
};

/* Every pod without its node, in the order of their creation. */
static int unbind_all(struct diff *d, struct bh_trial *t)
{
    for (size_t i = 0; i < d->q.moment->objs.n; i++) {
        const struct bh_sim_obj *o = d->q.moment->objs.v[i];
        if (bh_streq(o->type->kind, "Pod") && *o->node_name && *o->phase != 'S' &&
            *o->phase != 'F' && !bh_streq(o->owner_kind, "DaemonSet") &&
            bh_console_question_unbind(&d->q, t, o) < 0)
            return -1;
        if (bh_console_job_dropped(d->q.job))
            return bh_console_job_fail(d->q.job, 503, NULL, 0, "cancelled");
    }
    return 0;
}

static int decide(struct diff *d, const char *field, const char *text, struct bh_trial **ret)
{
    const struct bh_json *config;

    if (bh_console_question_config(&d->q, field, text, &config) < 0 ||
        bh_console_question_trial(&d->q, config, NULL, ret) < 0 ||
        (d->all && unbind_all(d, *ret) < 0) || bh_console_question_prepare(&d->q, *ret, field) < 0)
        return -1;
    bh_trial_run(*ret);
    if (bh_trial_stopped(*ret))
        return bh_console_job_fail(d->q.job, 503, NULL, 0, "cancelled");
    return 0;
}

static const char *node_of(const struct bh_trial *t, const struct bh_trial_pod *p)
{
    return p && p->result == BH_TRIAL_SCHEDULED
               ? bh_sym_text(bh_engine_symtab(t->w.engine), p->node)
               : "";
}

static const char *message_of(const struct bh_trial_pod *p)
{
    if (!p)
        return "takes no part: the configuration has no profile for its scheduler";
    if (p->result == BH_TRIAL_PREEMPTED)
        return "evicted for a pod of higher priority";
    return p->result != BH_TRIAL_SCHEDULED && p->message ? p->message : "";
}

static struct bh_json *compare(struct diff *d, struct bh_trial *x, struct bh_trial *y)
{
    struct bh_arena *a = &d->q.a;
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    int64_t n = 0, same = 0;

    for (unsigned turn = 0; turn < 2; turn++) {
        struct bh_trial *t = turn ? y : x;
        for (size_t i = 0; i < t->n_list; i++) {
            const struct bh_trial_pod *p = t->list[i], *pa, *pb;
            pa = bh_trial_pod_of(x, bh_trial_uid(p));
            pb = bh_trial_pod_of(y, bh_trial_uid(p));
            if (turn && pa)
                continue;
            n++;
            if (bh_streq(node_of(x, pa), node_of(y, pb)))
                same++;
            else
                bh_json_append(a, list,
                               "namespace: %s, name: %s, a: %s, b: %s, messageA: %s, messageB: %s",
                               bh_trial_pod_ns(p), bh_trial_pod_name(p), node_of(x, pa),
                               node_of(y, pb), message_of(pa), message_of(pb));
        }
    }
    return bh_json_make(a, "compared: %ld, same: %ld, different: %p", n, same, list);
}

static struct bh_json *summary(struct bh_arena *a, const struct bh_trial *t)
{
    struct bh_trial_summary s = bh_trial_summarize(t);
    BH_CLEANUP(bh_map_fini) struct bh_map nodes = {0};

    for (size_t i = 0; i < t->n_list; i++) {
        const char *node = node_of(t, t->list[i]);
        if (*node)
            bh_map_put(&nodes, node, strlen(node), (void *)1);
    }
    return bh_json_make(
        a, "scheduled: %u, unschedulable: %u, gated: %u, preempted: %u, nodesUsed: %zu",
        s.scheduled, s.unschedulable, s.gated, s.preempted, nodes.len);
}

static void answer(struct diff *d)
{
    struct bh_trial *x = NULL, *y = NULL;
    const char *pods = bh_json_get_text(d->q.body, "pods");

    d->all = bh_streq(pods, "all");
    if (*pods && !d->all && !bh_streq(pods, "pending")) {
        bh_console_job_fail(d->q.job, 400, "pods", 0, "pending or all");
        return;
    }
    if (!bh_json_get_str(d->q.body, "b")) {
        bh_console_job_fail(d->q.job, 400, "b", 0, "the configuration to compare with, as text");
        return;
    }
    if (decide(d, "a", bh_json_get_str(d->q.body, "a"), &x) == 0 &&
        decide(d, "b", bh_json_get_str(d->q.body, "b"), &y) == 0) {
        struct bh_json *v = compare(d, x, y);
        bh_json_add(&d->q.a, v, "utilisation: {a: %p, b: %p}, took_ns: %lu", summary(&d->q.a, x),
                    summary(&d->q.a, y), bh_mono_ns() - d->q.started_ns);
        bh_console_job_reply(d->q.job, 200, v);
    }
    bh_trial_free(x);
    bh_trial_free(y);
}

static void run_diff(struct bh_console_job *j, void *arg)
{
    struct diff d = {0};

    if (bh_console_question_open(&d.q, j, arg, "a:text b:text pods:text") == 0 &&
        bh_console_question_running(&d.q) == 0)
        answer(&d);
    bh_arena_fini(&d.q.a);
}

void bh_console_configs(struct bh_console_req *c)
{
    if (bh_streq(c->seg[1], "check"))
        bh_console_work(c, run_check, bh_console_moment_drop, bh_console_moment_take(c->r, false));
    else if (bh_streq(c->seg[1], "diff"))
        bh_console_work(c, run_diff, bh_console_moment_drop, bh_console_moment_take(c->r, true));
    else
        bh_console_fail(c->r, 404, NULL, 0, "nothing is served at %s", c->r->path);
}
