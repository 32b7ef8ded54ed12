/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/podgroup.c - POST /berth/v1/podgroup: why a group goes or waits, and what would help
 *
 * The answer is that of `berth explain podgroup/NAME` (simulator/offline/fixes.h), out of the store.
 */
#include "simulator/console/parts.h"

#include <errno.h>

#include "simulator/console/moment.h"
#include "simulator/offline/fixes.h"

struct asked {
    struct bh_console_question q;
    struct bh_trial *t;
    const char *ns, *name;
    const struct bh_trial_pod **seen; /* in the order of their turn */
    struct bh_offline_members m;
};

static int by_turn(const void *pa, const void *pb, void *arg)
{
    const struct bh_trial_pod *a = *(const struct bh_trial_pod *const *)pa,
                              *b = *(const struct bh_trial_pod *const *)pb;
    struct bh_engine *e = ((const struct asked *)arg)->t->w.engine;
    int cmp = BH_CMP(bh_engine_shape_rec(e, b->shape)->priority,
                     bh_engine_shape_rec(e, a->shape)->priority);

    cmp = cmp ? cmp : BH_CMP(a->rec->creation_ns, b->rec->creation_ns);
    return cmp ? cmp : strcmp(bh_trial_pod_name(a), bh_trial_pod_name(b));
}

static void find_members(struct asked *x)
{
    struct bh_arena *a = &x->q.a;
    struct bh_pending *v = bh_arena_new_array(a, struct bh_pending, x->t->n_list + 1);
    const char **objects = bh_arena_new_array(a, const char *, x->t->n_list + 1);
    uint32_t n = 0;

    x->seen = bh_arena_new_array(a, const struct bh_trial_pod *, x->t->n_list + 1);
    for (size_t i = 0; i < x->t->n_list; i++) {
        const struct bh_trial_pod *p = x->t->list[i];
        const struct bh_pending pending = {.pod = p->rec, .shape = p->shape};
        if (bh_offline_of_group(&x->t->w, x->ns, x->name, &pending))
            x->seen[n++] = p;
    }
    if (n > 1)
        qsort_r(x->seen, n, sizeof(*x->seen), by_turn, x);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_trial_item *it =
            bh_trial_find_item(x->t, "Pod", x->ns, bh_trial_pod_name(x->seen[i]));
        v[i] = (struct bh_pending){.pod = x->seen[i]->rec, .shape = x->seen[i]->shape};
        objects[i] = it ? bh_arena_strndup(a, it->json, it->n) : NULL;
    }
    x->m = (struct bh_offline_members){
        .ns = x->ns, .name = x->name, .v = v, .objects = objects, .n = n};
}

static int read_question(struct asked *x)
{
    x->ns = bh_json_get_text(x->q.body, "namespace");
    x->ns = *x->ns ? x->ns : "default";
    x->name = bh_json_get_text(x->q.body, "name");
    if (!*x->name)
        return bh_console_job_fail(x->q.job, 400, "name", 0, "expected the name of a PodGroup");
    if (!bh_feature_enabled(&x->q.moment->gates, "GenericWorkload"))
        return bh_console_job_fail(x->q.job, 409, NULL, 0,
                                   "the scheduler looks at no groups: its feature gate "
                                   "GenericWorkload is off");
    return 0;
}

static void answer(struct asked *x)
{
    struct bh_json *doc = NULL;
    struct bh_err err = {0};

    find_members(x);
    const int rc = bh_offline_explain_group(
        &x->t->w, &x->q.a, &x->m, bh_json_get_bool(x->q.body, "fixes", false), &doc, &err);
    if (rc < 0)
        (void)bh_console_question_fail(&x->q, rc == -ENOENT ? 404 : 400, "name", &err);
    else
        bh_console_job_reply(
            x->q.job, 200,
            bh_json_add(&x->q.a, doc, "took_ns: %lu", bh_mono_ns() - x->q.started_ns));
}

static void run(struct bh_console_job *j, void *arg)
{
    struct asked x = {0};

    if (bh_console_question_open(&x.q, j, arg, "namespace:text name:text fixes:bool") == 0 &&
        read_question(&x) == 0 && bh_console_question_running(&x.q) == 0 &&
        bh_console_question_trial(&x.q, x.q.running, NULL, &x.t) == 0 &&
        bh_console_question_prepare(&x.q, x.t, "name") == 0)
        answer(&x);
    bh_trial_free(x.t);
    bh_arena_fini(&x.q.a);
}

void bh_console_podgroup(struct bh_console_req *c)
{
    bh_console_work(c, run, bh_console_moment_drop, bh_console_moment_take(c->r, true));
}
