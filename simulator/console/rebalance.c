/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/rebalance.c - which pods to move so that nodes become free, or a pod fits
 */
#include "simulator/console/parts.h"

#include "common/k8s/selector.h"
#include "simulator/console/moment.h"
#include "simulator/offline/rebalance.h"

#define PODS_MAX 1000

struct asked {
    struct bh_console_question q;
    struct bh_trial *t;
    struct bh_rebalance_options o;
    struct bh_selector *nodes;
    struct bh_pending pods[PODS_MAX];
    size_t n;
};

static int read_limits(struct asked *x)
{
    int64_t nodes = bh_json_get_i64(x->q.body, "maxNodes", 0),
            moves = bh_json_get_i64(x->q.body, "maxMoves", 0);
    const char *selector = bh_json_get_text(x->q.body, "selector");
    struct bh_err err = {0};

    if (nodes < 0 || nodes > UINT32_MAX || moves < 0 || moves > UINT32_MAX)
        return bh_console_job_fail(x->q.job, 400,
                                   nodes < 0 || nodes > UINT32_MAX ? "maxNodes" : "maxMoves", 0,
                                   "a number from 0 (no limit) on");
    if (*selector && bh_selector_parse(selector, &x->nodes, &err) < 0)
        return bh_console_question_fail(&x->q, 400, "selector", &err);
    x->o = (struct bh_rebalance_options){
        .nodes = x->nodes, .max_nodes = (uint32_t)nodes, .max_moves = (uint32_t)moves};
    return 0;
}

static int find_pods(struct asked *x)
{
    bh_json_each(m, bh_json_get_list(x->q.body, "for")) {
        const char *name = bh_json_get_text(m, "name"), *ns = bh_json_get_text(m, "namespace");
        if (bh_console_question_members(&x->q, m, "for", "namespace:text name:text") < 0)
            return -1;
        const struct bh_trial_pod *p = bh_trial_find_pod(x->t, *ns ? ns : "default", name);
        if (!p)
            return bh_console_job_fail(x->q.job, 404, "for", 0,
                                       "no pod %.253s waits in namespace %.253s", name,
                                       *ns ? ns : "default");
        if (x->n == PODS_MAX)
            return bh_console_job_fail(x->q.job, 400, "for", 0, "more than %d pods", PODS_MAX);
        x->pods[x->n++] = (struct bh_pending){.pod = p->rec, .shape = p->shape};
    }
    return 0;
}

static void run_rebalance(struct bh_console_job *j, void *arg)
{
    struct asked *x = bh_calloc(1, sizeof(*x));
    struct bh_err err = {0};

    if (bh_console_question_open(&x->q, j, arg,
                                 "maxNodes:number maxMoves:number selector:text for:list") == 0 &&
        bh_console_question_running(&x->q) == 0 && read_limits(x) == 0 &&
        bh_console_question_trial(&x->q, x->q.running, NULL, &x->t) == 0 &&
        bh_console_question_prepare(&x->q, x->t, "for") == 0 && find_pods(x) == 0) {
        struct bh_json *plan =
            x->n ? bh_offline_make_room(&x->t->w, &x->q.a, &x->o, x->pods, x->n, &err)
                 : bh_offline_free_nodes(&x->t->w, &x->q.a, &x->o);
        if (plan)
            bh_console_job_reply(
                j, 200, bh_json_add(&x->q.a, plan, "took_ns: %lu", bh_mono_ns() - x->q.started_ns));
        else
            (void)bh_console_question_fail(&x->q, 409, "for", &err);
    }
    bh_trial_free(x->t);
    bh_selector_free(x->nodes);
    bh_arena_fini(&x->q.a);
    free(x);
}

void bh_console_rebalance(struct bh_console_req *c)
{
    bh_console_work(c, run_rebalance, bh_console_moment_drop, bh_console_moment_take(c->r, true));
}
