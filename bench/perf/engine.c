/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/perf/engine.c - `berth bench perf --mode engine`: a cluster in this process
 *
 * A world of simulator/offline/world.h. The two clocks (made-up time for the queue, real time
 * around the library's calls) meet only here.
 */
#include "bench/perf/engine.h"

#include <errno.h>
#include <inttypes.h>

#include "simulator/server/server.h"

#define SECOND_NS         INT64_C(1000000000)
#define CONTROLLERS_QUIET (10 * SECOND_NS) /* what they do later belongs to the time after */
#define RSS_EVERY         4096u
#define LOOK_EVERY        512u /* attempts between two looks at pods */
#define NAME_TRIES        7

/* ---- what the cluster tells ------------------------------------------------------------------ */

static const char *label(void *arg, const char *key)
{
    return bh_sim_obj_label(arg, key);
}

static void on_commit(void *arg, const struct bh_world_commit *c)
{
    struct bh_bench_world *w = arg;

    if (!bh_streq(c->obj->type->kind, "Pod") || !*c->obj->node_name)
        return;
    if (c->change == BH_SIM_DELETED)
        bh_bench_saw_gone(w, c->obj->ns);
    else if (c->change == BH_SIM_ADDED || !*c->old->node_name)
        bh_bench_saw_bound(w, c->obj->ns, label, (void *)(uintptr_t)c->obj);
}

static void on_tried(void *arg, const struct bh_offline_try *t)
{
    struct bh_bench_world *w = arg;
    struct bh_bench_engine *e = w->d;
    struct bh_str uid = bh_rec_text(t->pod, t->pod->uid);

    if (t->failed)
        bh_map_put(&e->attempted, uid.p, uid.n, w);
    w->attempts++;
    if (!w->window.on)
        return;
    if (w->attempts % RSS_EVERY == 0)
        bh_bench_see_memory(&e->memory, bh_bench_rss_mb(0));
    BH_GROW(e->tries, e->n_attempts, e->cap_attempts);
    e->tries[e->n_attempts++] =
        (struct bh_bench_sample){t->took_ns, !t->failed                     ? BH_BENCH_SCHEDULED
                                             : t->failed->kind == BH_NO_FIT ? BH_BENCH_UNSCHEDULABLE
                                                                            : BH_BENCH_ERROR};
}

static uint64_t clock_ns(const struct bh_bench_world *w)
{
    const struct bh_bench_engine *e = w->d;

    return e->cluster.offline.decide_ns + e->cluster.offline.intake_ns - e->began_engine_ns;
}

static int64_t now(struct bh_bench_world *w)
{
    const struct bh_bench_engine *e = w->d;

    return e->cluster.offline.now_ns;
}

static int settle(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_world *in = &((struct bh_bench_engine *)w->d)->cluster;

    if (in->trouble_rc >= 0)
        in->trouble_rc = bh_bench_alive(w, &in->trouble);
    return bh_world_settle(in, err);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static bool attempt(struct bh_bench_world *w)
{
    struct bh_bench_engine *e = w->d;
    bool ran = bh_bench_tick(w, e->cluster.offline.now_ns);

    if (ran)
        (void)settle(w, NULL);
    if (!bh_offline_attempt(&e->cluster.offline))
        return ran;
    e->cluster.offline.now_ns += (int64_t)(1e9 / w->o->pace);
    (void)settle(w, NULL);
    return true;
}

/* The clock jumps to what is due next, at most to until. false: nothing is due before. */
static bool jump(struct bh_bench_world *w, int64_t until_ns)
{
    struct bh_bench_engine *e = w->d;
    int64_t next = BH_MIN(bh_offline_due(&e->cluster.offline), bh_bench_next_tick(w));

    if (next >= until_ns)
        return false;
    e->cluster.offline.now_ns = BH_MAX(next, e->cluster.offline.now_ns);
    return true;
}

/* Controllers of the store act on what was created. false: there are none, or nothing changed. */
static bool run_controllers(struct bh_bench_world *w)
{
    struct bh_bench_engine *e = w->d;
    struct bh_world *in = &e->cluster;
    uint64_t before = bh_sim_revision(in->sim);

    for (int64_t due; e->controllers && in->trouble_rc >= 0;) {
        due = bh_sim_next_ns(in->sim);
        if (due - in->offline.now_ns > CONTROLLERS_QUIET)
            break;
        in->offline.now_ns = BH_MAX(due, in->offline.now_ns);
        (void)bh_world_settle(in, NULL);
    }
    return bh_sim_revision(in->sim) != before;
}

static int pass(struct bh_bench_world *w, int64_t until_ns, struct bh_err *err)
{
    struct bh_world *in = &((struct bh_bench_engine *)w->d)->cluster;

    while (in->offline.now_ns < until_ns && in->trouble_rc >= 0)
        if (!attempt(w) && !jump(w, until_ns))
            break;
    in->offline.now_ns = BH_MAX(in->offline.now_ns, until_ns);
    (void)bh_bench_tick(w, in->offline.now_ns);
    return settle(w, err);
}

static int advance(struct bh_bench_world *w, struct bh_bench_wait *x, int64_t until_ns,
                   bool *ret_idle, struct bh_err *err)
{
    struct bh_bench_engine *e = w->d;

    *ret_idle = false;
    if (attempt(w) || run_controllers(w)) {
        x->looked = false;
        *ret_idle = ++e->since_look % LOOK_EVERY == 0;
    } else if (!x->looked) {
        x->looked = *ret_idle = true;
    } else {
        x->looked = false;
        if (!jump(w, until_ns))
            e->cluster.offline.now_ns = until_ns;
    }
    return e->cluster.trouble_rc < 0 ? settle(w, err) : 0;
}

/* What the scheduler can do at once it does between two operations, too. */
static int flush(struct bh_bench_world *w, struct bh_err *err)
{
    const struct bh_bench_engine *e = w->d;

    while (e->cluster.trouble_rc >= 0 && attempt(w))
        ;
    return settle(w, err);
}

/* ---- objects --------------------------------------------------------------------------------- */

static int refused(const struct bh_sim_error *e, struct bh_err *err)
{
    return bh_err_set(err, e->code == 409 ? -EEXIST : -EINVAL, "%s", e->message);
}

/* The store's own of a kind that a definition made. */
static const struct bh_sim_type *type_of(const struct bh_bench_engine *e,
                                         const struct bh_sim_type *t)
{
    const struct bh_sim_type *own =
        t->flags & BH_SIM_CUSTOM ? bh_sim_find_type(e->cluster.sim, t->group, t->version, t->plural)
                                 : NULL;

    return own ? own : t;
}

static int create(struct bh_bench_world *w, const struct bh_bench_new *o, struct bh_err *err)
{
    struct bh_bench_engine *e = w->d;
    struct bh_sim_error why = {0};
    struct bh_sim_obj *made = NULL;
    struct bh_json *tree;
    bool drawn = true;
    int code = 409;

    for (int tries = 0; code == 409 && drawn && tries < NAME_TRIES; tries++) {
        bh_arena_reset(&e->arena);
        int rc = bh_json_parse(&e->arena, o->json.p, o->json.n, 0, &tree, err);
        if (rc < 0)
            return rc;
        drawn = !bh_json_get_str(bh_json_get(tree, "metadata"), "name");
        code =
            bh_sim_create(e->cluster.sim, type_of(e, o->type), o->ns, &e->arena, tree, &made, &why);
    }
    if (code && !(code == 409 && o->may_exist))
        return refused(&why, err);
    if (o->ret_name && made)
        *o->ret_name = bh_strdup(made->name);
    bh_sim_obj_unref(made);
    if (bh_streq(o->type->kind, "ResourceClaimTemplate") && !e->controllers) {
        const struct bh_sim_controller_options none = {.kubelet = false};
        e->controllers = bh_sim_controllers_start(e->cluster.sim, &none);
    }
    return 0;
}

static int update(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                  const char *name, const char *sub, struct bh_str json, struct bh_err *err)
{
    static const struct {
        const char *name;
        enum bh_sim_sub sub;
    } subs[] = {{"", BH_SIM_MAIN}, {"status", BH_SIM_STATUS}, {"resize", BH_SIM_RESIZE}};
    struct bh_bench_engine *e = w->d;
    struct bh_sim_error why = {0};
    struct bh_json *tree;

    bh_arena_reset(&e->arena);
    int rc = bh_json_parse(&e->arena, json.p, json.n, 0, &tree, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < BH_ARRAY_LEN(subs); i++) {
        if (!bh_streq(subs[i].name, sub))
            continue;
        if (bh_sim_update(e->cluster.sim, type_of(e, t), ns, name, subs[i].sub, &e->arena, tree,
                          NULL, &why))
            return refused(&why, err);
        return 0;
    }
    return bh_err_set(err, -ENOTSUP, "subresources: %s: not served by the built-in API server",
                      sub);
}

static void remove_one(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                       const char *name)
{
    const struct bh_sim_delete_options own_grace = {.grace_s = -1};
    struct bh_bench_engine *e = w->d;

    (void)bh_sim_delete(e->cluster.sim, t, ns, name, &own_grace, NULL);
}

static bool has_labels(const struct bh_sim_obj *o, const struct bh_json *labels)
{
    bh_json_each(m, labels) {
        const char *v = bh_sim_obj_label(o, m->key.p);
        if (!v || m->type != BH_JSON_STRING || !bh_streq(v, m->s.p))
            return false;
    }
    return true;
}

static int remove_pods(struct bh_bench_world *w, const char *ns, const struct bh_json *labels,
                       bool at_once, struct bh_err *err)
{
    const struct bh_sim_delete_options o = {.grace_s = at_once ? 0 : -1};
    const struct bh_sim_type *t = bh_sim_type_find("", "v1", "pods");
    struct bh_bench_engine *e = w->d;
    struct bh_sim_objs l = {0};

    bh_sim_list(e->cluster.sim, t, ns, &l);
    for (size_t i = 0; i < l.n; i++)
        if (has_labels(l.v[i], labels))
            (void)bh_sim_delete(e->cluster.sim, t, ns, l.v[i]->name, &o, NULL);
    bh_sim_objs_fini(&l);
    int rc = settle(w, err);
    run_controllers(w);
    return rc;
}

static int get(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
               const char *name, struct bh_json **ret, struct bh_err *err)
{
    const struct bh_bench_engine *e = w->d;
    const struct bh_sim_obj *o = bh_sim_get(e->cluster.sim, t, ns, name);

    (void)err;
    *ret = o ? bh_sim_obj_tree(&w->arena, o) : NULL;
    return 0;
}

static int list(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                const struct bh_json *labels, bh_bench_list_fn *fn, void *arg, struct bh_err *err)
{
    const struct bh_bench_engine *e = w->d;
    struct bh_sim_objs l = {0};

    (void)err;
    bh_sim_list(e->cluster.sim, t, ns, &l);
    for (size_t i = 0; i < l.n; i++) {
        const struct bh_sim_obj *o = l.v[i];
        if (!has_labels(o, labels))
            continue;
        const struct bh_bench_seen seen = {.ns = o->ns,
                                           .name = o->name,
                                           .bound = *o->node_name,
                                           .attempted =
                                               bh_map_get(&e->attempted, o->uid, strlen(o->uid)) ||
                                               strstr(o->json, "\"PodScheduled\""),
                                           .allocated = strstr(o->json, "\"allocation\":") != NULL};
        fn(arg, &seen);
    }
    bh_sim_objs_fini(&l);
    return 0;
}

static bool set_allocation(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_set(a, bh_json_obj_at(a, obj, "status"), "allocation", bh_json_clone(a, arg));
    return true;
}

static int allocate(struct bh_bench_world *w, const char *ns, const char *claim, struct bh_err *err)
{
    const struct bh_sim_type *t = bh_sim_type_find("resource.k8s.io", "v1", "resourceclaims");
    struct bh_bench_engine *e = w->d;
    struct bh_json *allocation;
    struct bh_sim_error why = {0};

    bh_arena_reset(&e->arena);
    int rc = bh_bench_allocate(&e->cluster.offline, &e->arena, ns, claim, &allocation, err);
    if (rc >= 0 && bh_sim_edit(e->cluster.sim, t, ns, claim, NULL, BH_SIM_STATUS, set_allocation,
                               allocation, NULL, &why))
        rc = refused(&why, err);
    return rc;
}

/* ---- a window -------------------------------------------------------------------------------- */

static void begin(struct bh_bench_world *w)
{
    struct bh_bench_engine *e = w->d;

    e->n_attempts = 0;
    e->memory = (struct bh_bench_memory){0};
    e->began_engine_ns = e->cluster.offline.decide_ns + e->cluster.offline.intake_ns;
    e->began_cpu_ns = bh_bench_cpu_ns();
    bh_engine_stats(e->cluster.offline.engine, &e->began);
    bh_bench_see_memory(&e->memory, bh_bench_rss_mb(0));
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_engine(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_bench_engine *e = w->d = bh_calloc(1, sizeof *e);

    int rc = bh_bench_setup_init(&e->setup, w, err);
    if (rc >= 0 && e->setup.config->n_extenders)
        rc = bh_err_set(err, -ENOTSUP, "the engine alone asks no extenders");
    if (rc < 0)
        return rc;
    const struct bh_world_options wo = {.config = e->setup.config,
                                        .tie_break = w->o->tie_break,
                                        .seed = w->o->seed,
                                        .verify = w->o->verify,
                                        .start_ns = bh_wall_ns(),
                                        .timer = w->o->cpu ? bh_bench_cpu_ns : NULL,
                                        .commit = on_commit,
                                        .tried = on_tried,
                                        .arg = w};
    e->has_cluster = true;
    return bh_world_init(&e->cluster, &wo, err);
}

static void close_engine(struct bh_bench_world *w)
{
    struct bh_bench_engine *e = w->d;

    bh_sim_controllers_stop(e->controllers);
    if (e->has_cluster)
        bh_world_fini(&e->cluster);
    bh_bench_setup_fini(&e->setup);
    bh_map_fini(&e->attempted);
    bh_arena_fini(&e->arena);
    free(e->tries);
    free(e);
    w->d = NULL;
}

const struct bh_bench_driver bh_bench_engine_driver = {.name = "engine",
                                                       .open = open_engine,
                                                       .close = close_engine,
                                                       .create = create,
                                                       .update = update,
                                                       .remove = remove_one,
                                                       .remove_pods = remove_pods,
                                                       .get = get,
                                                       .list = list,
                                                       .allocate = allocate,
                                                       .settle = settle,
                                                       .flush = flush,
                                                       .now = now,
                                                       .pass = pass,
                                                       .advance = advance,
                                                       .clock_ns = clock_ns,
                                                       .begin = begin,
                                                       .collect = bh_bench_collect_engine};
