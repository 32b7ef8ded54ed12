/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/run.c - the clock of a run: steps, decisions, and jumps to what is due next
 *
 * At each moment: the steps that are due, then what the store's controllers make of them, then
 * decisions until no pod can be tried; a decision takes a fixed virtual time. When there is nothing
 * to do the clock jumps to whatever is due first: a step, the queue (back-off, flush), the store
 * (kubelet, grace periods, tolerationSeconds ...).
 */
#include <errno.h>

#include "simulator/replay/engine.h"
#include "simulator/scenario/scenario_int.h"

#define SECOND_NS  INT64_C(1000000000)
#define QUIET_NS   (330 * SECOND_NS) /* what changes nothing for so long does not count */
#define TICK_EVERY 256u

struct later {
    int64_t at_ns;
    uint64_t seq;
    bh_later_fn *fn;
    void *arg;
    uint32_t heap_at;
};

/* ---- what is put off ------------------------------------------------------------------------- */

static bool sooner(const void *a, const void *b)
{
    const struct later *x = a, *y = b;
    return x->at_ns != y->at_ns ? x->at_ns < y->at_ns : x->seq < y->seq;
}

void bh_run_later(struct bh_run *r, int64_t at_ns, bh_later_fn *fn, void *arg)
{
    struct later *l = bh_malloc(sizeof *l);

    *l = (struct later){at_ns, r->later_seq++, fn, arg, BH_HEAP_NONE};
    bh_heap_push(&r->later, l);
}

static bool due(struct bh_run *r)
{
    const struct later *l = bh_heap_peek(&r->later);
    return l && l->at_ns <= bh_run_at(r);
}

static struct later take_later(struct bh_run *r)
{
    struct later *l = bh_heap_peek(&r->later), first = *l;

    bh_heap_remove(&r->later, l);
    free(l);
    return first;
}

void bh_run_trouble(struct bh_run *r, int rc, const struct bh_err *err)
{
    if (r->trouble_rc < 0)
        return;
    r->trouble_rc = rc;
    r->trouble = *err;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void do_step(struct bh_run *r, void *arg)
{
    const struct bh_json *step = arg, *what = NULL;
    const struct bh_action *x = bh_action_of(step, &what);
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};
    struct bh_err err = {0};

    if (!x)
        return;
    static const char *const parts[] = {"kind", "name", "selector", "of"};
    bh_buf_adds(&text, x->name);
    for (size_t i = 0; i < BH_ARRAY_LEN(parts); i++)
        if (bh_json_get_str(what, parts[i]))
            bh_buf_addf(&text, " %s", bh_json_get_str(what, parts[i]));
    if (bh_streq(x->name, "create") && bh_json_get_str(bh_json_get(what, "metadata"), "name"))
        bh_buf_addf(&text, " %s", bh_json_get_str(bh_json_get(what, "metadata"), "name"));
    if (bh_json_get(what, "replicas"))
        bh_buf_addf(&text, " to %lld", (long long)bh_json_get_i64(what, "replicas", 0));
    if (bh_json_get(what, "count") && bh_json_get(what, "count")->type == BH_JSON_NUMBER)
        bh_buf_addf(&text, " x %s", bh_json_get(what, "count")->s.p);
    bh_run_note(r, "step", NULL, NULL, NULL, NULL, bh_buf_str(&text));
    bh_arena_reset(&r->a);
    int rc = x->fn(r, what, &err);
    if (rc < 0)
        bh_run_trouble(r, bh_err_prefix(&err, rc, "%s (line %u)", bh_buf_str(&text), step->line),
                       &err);
}

/* ---- the clock ------------------------------------------------------------------------------- */

static void move_clock(struct bh_run *r, int64_t to_ns)
{
    struct bh_scenario_progress *p = r->o->progress;

    /* Between two events nothing changes: what is now holds until then. */
    int64_t at_ns = to_ns - r->s->begin_ns;
    while (r->sample_next_ns < at_ns) {
        bh_run_sample(r, r->sample_next_ns);
        r->sample_next_ns += r->sample_every_ns;
    }
    r->w.offline.now_ns = to_ns;
    if (p)
        atomic_store_explicit(&p->at_ns, bh_run_at(r), memory_order_relaxed);
}

void bh_run_settle(struct bh_run *r)
{
    struct bh_err err = {0};
    int rc = bh_world_settle(&r->w, &err);

    if (rc < 0)
        bh_run_trouble(r, rc, &err);
    if (++r->ticks % TICK_EVERY == 0 && r->o->tick)
        r->o->tick(r->o->arg);
    if (r->o->progress && atomic_load_explicit(&r->o->progress->cancel, memory_order_relaxed)) {
        rc = bh_err_set(&err, -ECANCELED, "it was stopped");
        bh_run_trouble(r, rc, &err);
    }
}

/* All that can be done now is done afterwards; attempts move the clock. */
static void work(struct bh_run *r)
{
    do {
        bh_run_settle(r); /* the store's clock follows before the next write */
        while (r->trouble_rc >= 0 && due(r)) {
            struct later l = take_later(r);
            l.fn(r, l.arg);
            bh_run_settle(r);
        }
        if (r->trouble_rc < 0 || !bh_offline_attempt(&r->w.offline))
            return;
        /* what was bound is bound now; the next one is tried when this one is done */
        bh_run_settle(r);
        move_clock(r, r->w.offline.now_ns + r->s->decision_ns);
    } while (bh_run_at(r) <= r->s->most_ns);
}

/* Nothing will change any more by itself. */
static bool quiet(struct bh_run *r, int64_t next_ns)
{
    struct bh_queue_stats q;

    bh_queue_stats(r->w.offline.queue, &q);
    if (r->later.n || (r->player && bh_player_active(r->player)))
        return false;
    if (next_ns == INT64_MAX || next_ns - r->s->begin_ns - r->changed_ns > QUIET_NS)
        return true; /* pods that errors keep in back-off are tried for ever */
    return !q.active && !q.backoff && !q.in_flight && bh_sim_next_ns(r->w.sim) == INT64_MAX &&
           bh_engine_wakes_next(r->w.offline.engine) == INT64_MAX;
}

/* until_ns 0: until all is quiet. */
static void pass(struct bh_run *r, int64_t until_ns)
{
    struct bh_err err = {0};

    while (true) {
        work(r);
        if (r->trouble_rc < 0 || (until_ns && bh_run_at(r) >= until_ns))
            return; /* the clock stays where the trouble was */
        int64_t queued = bh_offline_due(&r->w.offline), end = r->s->begin_ns + until_ns;
        const struct later *l = bh_heap_peek(&r->later);
        int64_t next = BH_MIN(queued, bh_sim_next_ns(r->w.sim));
        if (l)
            next = BH_MIN(next, l->at_ns + r->s->begin_ns);
        if (!until_ns && quiet(r, next))
            return;
        if (until_ns && next >= end) {
            move_clock(r, end);
            work(r);
            return;
        }
        if (next - r->s->begin_ns > r->s->most_ns) {
            int rc = bh_err_set(&err, -ETIMEDOUT, "it does not come to rest before atMost");
            bh_run_trouble(r, rc, &err);
            return;
        }
        move_clock(r, BH_MAX(next, r->w.offline.now_ns));
    }
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Step N begins when everything before it has come to rest. */
static void pass_steps(struct bh_run *r)
{
    int64_t now = INT64_MIN;

    while (!r->done && r->trouble_rc >= 0) {
        int64_t next = INT64_MAX;
        bh_json_each(step, r->s->timeline) {
            int64_t n = bh_json_get_i64(step, "step", 0);
            next = n > now ? BH_MIN(next, n) : next;
        }
        if (next == INT64_MAX)
            return;
        now = next;
        bh_json_each(step, r->s->timeline)
            if (bh_json_get_i64(step, "step", 0) == now)
                bh_run_later(r, bh_run_at(r), do_step, step);
        pass(r, 0);
    }
}

static int put_cluster(struct bh_run *r, struct bh_err *err)
{
    struct bh_json *list;
    const char *text = r->o->cluster;

    if (!text)
        return bh_err_set(err, -ENOTSUP, "start: cluster: there is no cluster here to start from");
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    int rc = bh_manifests_parse(&a, text, strlen(text), &list, err);
    bh_json_each(o, rc < 0 ? NULL : list) {
        /* Pods come as they are; the workloads stay behind, or would make new ones. */
        static const char not_these[] = "Deployment ReplicaSet StatefulSet DaemonSet Job CronJob "
                                        "Event ReplicationController Lease "
                                        "ControllerRevision EndpointSlice Endpoints Scenario";
        if (!(bh_word_at(not_these, bh_json_get_text(o, "kind")) < 0))
            continue;
        bh_arena_reset(&r->a);
        bh_json_unset(bh_json_get(o, "metadata"), "ownerReferences");
        rc = bh_run_create(r, o, err);
        if (rc == -EEXIST)
            rc = 0; /* what every cluster has from the start */
        if (rc < 0)
            break;
    }
    return rc;
}

/* ---- one run --------------------------------------------------------------------------------- */

static int run_init(struct bh_run *r, const struct bh_scenario *s,
                    const struct bh_scenario_options *o, const struct bh_scenario_scheduler *x,
                    struct bh_err *err)
{
    const struct bh_world_options wo = {.config = x->config,
                                        .tie_break = s->ties_random ? BH_TIE_RANDOM : BH_TIE_FIRST,
                                        .seed = s->seed,
                                        .verify = o->verify,
                                        .controllers = true,
                                        .kubelet_delay_ns = s->kubelet_ns,
                                        .start_ns = s->begin_ns,
                                        .commit = bh_run_on_commit,
                                        .tried = bh_run_on_tried,
                                        .arg = r,
                                        .grouped = bh_run_on_grouped};

    *r = (struct bh_run){.s = s, .o = o, .scheduler = x, .n_resources = 2};
    bh_heap_init(&r->later, offsetof(struct later, heap_at), sooner);
    bh_rand_seed(&r->rand, s->seed);
    r->texts = bh_symtab_new();
    r->resource_name[0] = "cpu";
    r->resource_name[1] = "memory";
    r->sample_every_ns = s->sample_ns ? s->sample_ns : SECOND_NS;
    r->has_world = true;
    return bh_world_init(&r->w, &wo, err);
}

static int run_one(struct bh_run *r, struct bh_err *err)
{
    const struct bh_scenario *s = r->s;
    bool steps = bh_json_get(bh_json_first(s->timeline), "step");
    int rc = r->s->start_cluster ? put_cluster(r, err) : 0;
    bh_json_each(o, rc < 0 ? NULL : r->s->objects) {
        bh_arena_reset(&r->a);
        rc = rc < 0 ? rc : bh_run_create(r, o, err);
    }
    bh_json_each(step, rc < 0 ? NULL : r->s->setup)
        do_step(r, step);

    if (rc < 0)
        return rc;
    if (r->o->progress)
        atomic_store_explicit(&r->o->progress->end_ns, s->until_ns, memory_order_relaxed);
    bh_run_settle(r);
    if (steps) {
        work(r);
        pass_steps(r);
    } else {
        /* A step without a time follows the one before it. */
        int64_t at = 0;
        bh_json_each(step, r->s->timeline) {
            at = bh_field_duration(step, "at", at);
            bh_run_later(r, at, do_step, step);
        }
        bh_json_each(e, r->s->expect)
            if (bh_json_get(e, "at"))
                bh_run_later(r, bh_field_duration(e, "at", 0), bh_run_expect, e);
    }
    pass(r, s->until_ns);
    if (r->trouble_rc < 0)
        return bh_err_set(err, r->trouble_rc, "scheduler %s, after %.3f s: %s", r->scheduler->name,
                          (double)bh_run_at(r) / 1e9, r->trouble.msg);
    r->end_ns = r->s->until_ns ? bh_run_at(r) : BH_MAX(r->changed_ns, 1);
    while (r->n_samples && r->sample[r->n_samples - 1].at_ns >= r->end_ns)
        r->n_samples--;
    bh_run_sample(r, r->end_ns);
    bh_json_each(e, r->s->expect)
        if (!bh_json_get(e, "at"))
            bh_run_expect(r, e);
    return 0;
}

static void run_fini(struct bh_run *r)
{
    void *const owned[] = {r->pod, r->node, r->event, r->verdict, r->sample, r->took_ns};

    if (r->has_world)
        bh_world_fini(&r->w);
    for (size_t i = 0; i < BH_ARRAY_LEN(owned); i++)
        free(owned[i]);
    while (r->later.n)
        (void)take_later(r);
    bh_heap_fini(&r->later);
    bh_map_fini(&r->pods);
    bh_map_fini(&r->nodes);
    bh_map_fini(&r->keys);
    bh_map_fini(&r->groups);
    bh_arena_fini(&r->a);
    bh_arena_fini(&r->keep);
    bh_symtab_free(r->texts);
}

int bh_scenario_run(const struct bh_scenario *s, const struct bh_scenario_options *o,
                    struct bh_buf *ret_json, bool *ret_passed, struct bh_err *err)
{
    struct bh_run *runs = bh_calloc(s->n_schedulers, sizeof *runs);
    uint32_t n = 0;
    int rc = 0;

    while (n < s->n_schedulers && rc >= 0) {
        rc = run_init(&runs[n], s, o, &s->schedulers[n], err);
        rc = rc < 0 ? rc : run_one(&runs[n], err);
        /* the accounts are what the result needs */
        bh_player_free(runs[n].player);
        runs[n].player = NULL;
        bh_world_fini(&runs[n].w);
        runs[n++].has_world = false;
    }
    if (rc >= 0)
        bh_result(s, runs, n, ret_json, ret_passed);
    for (uint32_t i = 0; i < n; i++)
        run_fini(&runs[i]);
    free(runs);
    return rc < 0 ? rc : 0;
}
