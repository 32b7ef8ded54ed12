/* SPDX-License-Identifier: Apache-2.0
 *
 * cli/bench_world.c - the cluster of `berth bench perf --mode engine`
 *
 * The store's commits become records for the engine the way a scheduler's intake makes them; the
 * two clocks (made-up time for the queue, real time around the library's calls) meet only here.
 */
#include <errno.h>
#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "cli/bench.h"
#include "common/k8s/codec.h"
#include "common/k8s/compile.h"
#include "proto/kubernetes/kubernetes.pb-c.h"

#define SECOND_NS          INT64_C(1000000000)
#define CONTROLLERS_QUIET  (10 * SECOND_NS) /* what they do later belongs to the time after */
#define RSS_EVERY          4096u
#define BACKGROUND_AT_ONCE 1000000u

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * (uint64_t)SECOND_NS + (uint64_t)t.tv_nsec;
}

struct bh_bench_namespace *bh_bench_namespace(struct bh_bench_world *w, const char *name)
{
    struct bh_bench_namespace *ns = bh_map_get(&w->namespaces, name, strlen(name));

    if (!ns) {
        ns = bh_calloc(1, sizeof *ns);
        ns->name = bh_strdup(name);
        bh_map_put(&w->namespaces, name, strlen(name), ns);
    }
    return ns;
}

/* ---- the window --------------------------------------------------------------------------------
 */

static void see_memory(struct bh_bench_window *x)
{
    BH_CLEANUP(bh_freep) char *text = NULL;
    unsigned long pages = 0;
    size_t n;

    if (bh_read_file("/proc/self/statm", 4096, &text, &n) < 0 ||
        sscanf(text, "%*u %lu", &pages) != 1)
        return;
    double mb = (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
    if (!x->rss_n++)
        x->rss_mb[0] = mb;
    x->rss_mb[1] = mb;
    x->rss_mb[2] = BH_MAX(x->rss_mb[2], mb);
    x->rss_sum += mb;
}

int bh_bench_window_begin(struct bh_bench_world *w, const char *name,
                          const struct bh_json *namespaces, struct bh_selector *selector,
                          struct bh_err *err)
{
    if (w->window.on) {
        bh_selector_free(selector);
        return bh_err_set(err, -EBUSY, "metrics are being collected already");
    }
    w->window = (struct bh_bench_window){.on = true,
                                         .name = name,
                                         .namespaces = namespaces,
                                         .selector = selector,
                                         .began_wall_ns = bh_mono_ns(),
                                         .began_engine_ns = bh_bench_engine_ns(w),
                                         .began_cpu_ns = cpu_ns()};
    bh_engine_stats(w->cluster.engine, &w->window.began);
    see_memory(&w->window);
    return 0;
}

static void window_fini(struct bh_bench_window *x)
{
    bh_selector_free(x->selector);
    free(x->bound_ns);
    free(x->attempts);
    *x = (struct bh_bench_window){0};
}

void bh_bench_window_end(struct bh_bench_world *w)
{
    see_memory(&w->window);
    bh_bench_collect(w->report, w->target, w);
    window_fini(&w->window);
}

static const char *label(void *arg, const char *key)
{
    return bh_sim_obj_label(arg, key);
}

static void saw_bound(struct bh_bench_world *w, const struct bh_sim_obj *pod)
{
    struct bh_bench_namespace *ns = bh_bench_namespace(w, pod->ns);
    struct bh_bench_window *x = &w->window;
    bool counts = false;

    ns->scheduled++;
    ns->bound++;
    w->bound++;
    bh_json_each (n, x->on ? x->namespaces : NULL) {
        counts |= n->type == BH_JSON_STRING && bh_streq(n->s.p, pod->ns);
    }
    if (!counts || (x->selector && !bh_selector_match(x->selector, label, (void *)(uintptr_t)pod)))
        return;
    if (x->n_bound == x->cap_bound) {
        x->cap_bound = BH_MAX(2 * x->cap_bound, (size_t)1024);
        x->bound_ns = bh_reallocarray(x->bound_ns, x->cap_bound, sizeof *x->bound_ns);
    }
    x->bound_ns[x->n_bound++] = bh_bench_engine_ns(w) - x->began_engine_ns;
}

static void saw_attempt(struct bh_bench_world *w, uint64_t ns, enum bh_bench_result result)
{
    struct bh_bench_window *x = &w->window;

    if (++w->attempts % RSS_EVERY == 0 && x->on)
        see_memory(x);
    if (!x->on)
        return;
    if (x->n_attempts == x->cap_attempts) {
        x->cap_attempts = BH_MAX(2 * x->cap_attempts, (size_t)1024);
        x->attempts = bh_reallocarray(x->attempts, x->cap_attempts, sizeof *x->attempts);
    }
    x->attempts[x->n_attempts++] = (struct bh_bench_sample){ns, result};
}

/* ---- what the cluster tells --------------------------------------------------------------------
 */

static void on_commit(void *arg, const struct bh_world_commit *c)
{
    struct bh_bench_world *w = arg;

    if (!bh_streq(c->obj->type->kind, "Pod") || !*c->obj->node_name)
        return;
    if (c->change == BH_SIM_DELETED)
        bh_bench_namespace(w, c->obj->ns)->scheduled--;
    else if (c->change == BH_SIM_ADDED || !*c->old->node_name)
        saw_bound(w, c->obj);
}

static void on_tried(void *arg, const struct bh_world_try *t)
{
    struct bh_bench_world *w = arg;
    struct bh_str uid = bh_rec_text(t->pod, t->pod->uid);

    if (t->failed)
        bh_map_put(&w->attempted, uid.p, uid.n, w);
    saw_attempt(w, t->took_ns,
                !t->failed                     ? BH_BENCH_SCHEDULED
                : t->failed->kind == BH_NO_FIT ? BH_BENCH_UNSCHEDULABLE
                                               : BH_BENCH_ERROR);
}

int bh_bench_settle(struct bh_bench_world *w, struct bh_err *err)
{
    struct bh_world *in = &w->cluster;

    if (w->total)
        bh_progress_draw(w->progress, w->done, w->total, "%s: %s %zu of %zu", w->target->name,
                         w->step ? w->step->op->name : "", w->done, w->total);
    if (in->trouble_rc >= 0 && bh_mono_ns() - w->began_ns > (uint64_t)w->o->limit_ns)
        in->trouble_rc = bh_err_set(&in->trouble, -ETIMEDOUT, "it took longer than --time-limit");
    return bh_world_settle(in, err);
}

int bh_bench_create(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                    struct bh_json *obj, struct bh_sim_obj **ret, struct bh_err *err)
{
    struct bh_sim_error e = {0};

    if (bh_sim_create(w->cluster.sim, t, ns, &w->arena, obj, ret, &e))
        return bh_err_set(err, e.code == 409 ? -EEXIST : -EINVAL, "%s", e.message);
    if (bh_streq(t->kind, "ResourceClaimTemplate") && !w->controllers) {
        const struct bh_sim_controller_options o = {.kubelet = false};
        w->controllers = bh_sim_controllers_start(w->cluster.sim, &o);
    }
    return 0;
}

bool bh_bench_controllers(struct bh_bench_world *w)
{
    struct bh_world *in = &w->cluster;
    uint64_t before = bh_sim_revision(in->sim);

    for (int64_t due; w->controllers && in->trouble_rc >= 0;) {
        due = bh_world_store_due(in);
        if (due - in->now_ns > CONTROLLERS_QUIET)
            break;
        in->now_ns = BH_MAX(due, in->now_ns);
        (void)bh_world_settle(in, NULL);
    }
    return bh_sim_revision(in->sim) != before;
}

/* ---- attempts ----------------------------------------------------------------------------------
 */

/* Steps whose time has come. */
static bool run_background(struct bh_bench_world *w)
{
    struct bh_bench_background **at = &w->background, *b;
    bool ran = false;

    while ((b = *at)) {
        bool on = true;
        for (unsigned i = 0; on && b->due_ns <= w->cluster.now_ns && i < BACKGROUND_AT_ONCE; i++) {
            b->due_ns += b->interval_ns;
            on = b->tick(w, b);
            ran = true;
        }
        if (!on)
            b->due_ns = INT64_MAX; /* freed with the world: its step may still look at it */
        at = &b->next;
    }
    return ran;
}

bool bh_bench_attempt(struct bh_bench_world *w)
{
    bool ran = run_background(w);

    if (ran)
        (void)bh_bench_settle(w, NULL);
    if (!bh_world_attempt(&w->cluster))
        return ran;
    w->cluster.now_ns += (int64_t)(1e9 / w->o->pace);
    (void)bh_bench_settle(w, NULL);
    return true;
}

bool bh_bench_jump(struct bh_bench_world *w, int64_t until_ns)
{
    int64_t next = bh_world_queue_due(&w->cluster);

    for (const struct bh_bench_background *b = w->background; b; b = b->next)
        next = BH_MIN(next, b->due_ns);
    if (next >= until_ns)
        return false;
    w->cluster.now_ns = BH_MAX(next, w->cluster.now_ns);
    return true;
}

void bh_bench_pass(struct bh_bench_world *w, int64_t until_ns)
{
    while (w->cluster.now_ns < until_ns && w->cluster.trouble_rc >= 0)
        if (!bh_bench_attempt(w) && !bh_bench_jump(w, until_ns))
            break;
    w->cluster.now_ns = BH_MAX(w->cluster.now_ns, until_ns);
    (void)run_background(w);
}

/* ---- claims without pods -----------------------------------------------------------------------
 */

static bool set_allocation(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_set(a, bh_json_obj_at(a, obj, "status"), "allocation", bh_json_clone(a, arg));
    return true;
}

/* A pod that exists nowhere asks for the claim; what it gets stays when it is gone. */
static int stand_in(struct bh_bench_world *w, const struct bh_sim_obj *claim,
                    struct bh_pending *ret, struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->cluster.engine));
    const char *text = bh_arena_printf(
        &w->arena,
        "{\"metadata\":{\"name\":\"allocate\",\"namespace\":\"%s\",\"uid\":\"allocate\"},"
        "\"spec\":{\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"claims\":[{\"name\":\"c\"}]}}],\"tolerations\":[{\"operator\":"
        "\"Exists\"}],\"resourceClaims\":[{\"name\":\"c\",\"resourceClaimName\":\"%s\"}]}}",
        claim->ns, claim->name);
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    struct bh_json *tree;
    ProtobufCMessage *m = NULL;
    int rc = bh_json_parse(&w->arena, text, strlen(text), 0, &tree, err);

    if (rc >= 0)
        rc = bh_json_to_pb(&w->arena, &k8s__pod__descriptor, tree, &m, NULL, err);
    const struct K8s__Pod *pod = (const struct K8s__Pod *)(const void *)m;
    if (rc >= 0)
        rc = bh_compile_shape(&w->arena, pod, &in, &shape, err);
    if (rc >= 0)
        rc = bh_compile_pod(&w->arena, pod, &in, &rec, err);
    if (rc < 0)
        return rc;
    *ret = (struct bh_pending){.pod = rec, .shape = bh_engine_shape(w->cluster.engine, shape)};
    rec->shape = ret->shape;
    return 0;
}

/* The allocation that the engine made for the stand-in, into the store. */
static int keep_allocation(struct bh_bench_world *w, const struct bh_sim_obj *claim,
                           struct bh_err *err)
{
    const ProtobufCMessage *m =
        bh_engine_get_object(w->cluster.engine, BH_KIND_RESOURCECLAIM, claim->ns, claim->name);
    const struct bh_json *allocation =
        m ? bh_json_path(bh_pb_to_json(&w->arena, m), "status.allocation") : NULL;
    struct bh_sim_error e = {0};

    if (!allocation)
        return bh_err_set(err, -ENOSPC, "it got no allocation");
    if (bh_sim_edit(w->cluster.sim, claim->type, claim->ns, claim->name, NULL, BH_SIM_STATUS,
                    set_allocation, (void *)(uintptr_t)allocation, NULL, &e))
        return bh_err_set(err, -EINVAL, "%s", e.message);
    return 0;
}

int bh_bench_allocate(struct bh_bench_world *w, const struct bh_sim_obj *claim, struct bh_err *err)
{
    struct bh_pending p;

    bh_arena_reset(&w->arena);
    int rc = stand_in(w, claim, &p, err);
    if (rc < 0)
        return rc;
    const struct bh_decision *d =
        bh_engine_schedule(w->cluster.engine, &p, BH_NO_PREEMPTION, w->cluster.now_ns);
    if (d->kind != BH_DECIDED) {
        rc = bh_err_set(err, -ENOSPC, "%s", d->message ? d->message : "no node has its devices");
    } else {
        bh_sym node = d->node;
        (void)bh_engine_assume(w->cluster.engine, &p, node);
        const struct bh_status *s = bh_engine_reserve(w->cluster.engine, &p, node);
        if (s)
            rc = bh_err_set(err, -ENOSPC, "%s", bh_status_message(&w->arena, s));
        else
            bh_engine_prebind_commit(w->cluster.engine, BH_STR("allocate"));
        if (s)
            bh_engine_unreserve(w->cluster.engine, &p, node);
        (void)bh_engine_forget(w->cluster.engine, BH_STR("allocate"));
    }
    bh_engine_shape_unref(w->cluster.engine, p.shape);
    return rc < 0 ? rc : keep_allocation(w, claim, err);
}

/* ---- life --------------------------------------------------------------------------------------
 */

static const struct bh_json *gate_of(const struct bh_bench_target *t, const char *name)
{
    const struct bh_json *v = bh_json_get(t->workload->gates, name);

    return v ? v : bh_json_get(t->test_case->gates, name);
}

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; p && (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

/* A gate that is off takes those with it that need it, as nobody could name them all. */
static void put_gate(struct bh_buf *b, const char *name, bool on, unsigned depth)
{
    bh_buf_addf(b, "%s%s=%s", b->n ? "," : "--feature-gates=", name, on ? "true" : "false");
    for (size_t i = 0; !on && depth && i < bh_n_feature_rows; i++)
        if (has_word(bh_feature_rows[i].needs, name))
            put_gate(b, bh_feature_rows[i].name, false, depth - 1);
}

static void add_gate(struct bh_bench_world *w, struct bh_buf *b, const struct bh_json *g)
{
    const char *value = g->b ? "true" : "false", *instead = bh_sched_gate_instead(g->key.p);
    struct bh_feature_gates defaults;

    bh_feature_gates_init(&defaults);
    for (size_t i = 0; i < bh_n_feature_rows; i++) {
        if (!bh_streq(bh_feature_rows[i].name, g->key.p))
            continue;
        if (!instead)
            put_gate(b, g->key.p, g->b, 3);
        else if (bh_feature_enabled(&defaults, g->key.p) != g->b)
            bh_bench_note(w->report, w->target->name, "feature gate %s=%s has no effect: %s",
                          g->key.p, value, instead);
        return;
    }
    bh_bench_note(w->report, w->target->name,
                  "feature gate %s=%s is not known to kube-scheduler %s", g->key.p, value,
                  BH_KUBERNETES_VERSION);
}

static int load_config(struct bh_bench_world *w, struct bh_err *err)
{
    static const struct bh_opt none[] = {{0}};
    static const struct bh_opt_usage usage = {.program = "berth bench perf"};
    const struct bh_bench_target *t = w->target;
    const char *path = t->test_case->scheduler_config;
    struct bh_buf gates = {0};
    BH_CLEANUP(bh_freep)
    char *full = path && *path != '/' ? bh_asprintf("%s/%s", t->file->dir, path) : NULL;
    char name[] = "bench";

    bh_json_each (g, t->test_case->gates) {
        if (gate_of(t, g->key.p) == g)
            add_gate(w, &gates, g);
    }
    bh_json_each (g, t->workload->gates) {
        add_gate(w, &gates, g);
    }
    char *argv[] = {name, gates.p, NULL};
    int rc = bh_sched_config_load(full ? full : path ? path : w->o->config, &w->config, err);
    if (rc >= 0)
        rc = bh_kube_flags_parse(&w->flags, none, &usage, gates.n ? 2 : 1, argv, err);
    w->has_flags = rc == 0;
    if (rc >= 0 && bh_kube_flags_gates_error(&w->flags))
        rc = bh_err_set(err, -EINVAL, "featureGates: %s", bh_kube_flags_gates_error(&w->flags));
    if (rc >= 0)
        bh_sched_config_apply_flags(w->config, &w->flags);
    bh_buf_fini(&gates);
    if (rc >= 0 && w->config->n_extenders)
        rc = bh_err_set(err, -ENOTSUP, "the engine alone asks no extenders");
    return BH_MIN(rc, 0);
}

int bh_bench_world_init(struct bh_bench_world *w, const struct bh_bench_options *o,
                        const struct bh_bench_target *t, struct bh_bench_report *r,
                        struct bh_progress *p, struct bh_err *err)
{
    *w = (struct bh_bench_world){
        .o = o, .target = t, .report = r, .progress = p, .began_ns = bh_mono_ns()};
    bh_arena_init(&w->arena, 0);
    int rc = load_config(w, err);
    if (rc < 0)
        return rc;
    const struct bh_world_options wo = {.config = w->config,
                                        .tie_break = o->tie_break,
                                        .seed = o->seed,
                                        .verify = o->verify,
                                        .start_ns = bh_wall_ns(),
                                        .commit = on_commit,
                                        .tried = on_tried,
                                        .arg = w};
    w->has_cluster = true;
    return bh_world_init(&w->cluster, &wo, err);
}

static void background_free(struct bh_bench_background *b)
{
    for (size_t i = 0; i < b->n_slots; i++) {
        free(b->slots[i].ns);
        free(b->slots[i].name);
    }
    for (size_t i = 0; i < b->n_texts; i++)
        free(b->texts[i]);
    free(b->slots);
    free(b->texts);
    free(b);
}

void bh_bench_world_fini(struct bh_bench_world *w)
{
    struct bh_bench_background *next;
    struct bh_map_entry *e;

    for (struct bh_bench_background *b = w->background; b; b = next) {
        next = b->next;
        background_free(b);
    }
    bh_sim_controllers_stop(w->controllers);
    if (w->has_cluster)
        bh_world_fini(&w->cluster);
    window_fini(&w->window);
    bh_sched_config_free(w->config);
    if (w->has_flags)
        bh_kube_flags_free(&w->flags);
    for (size_t it = 0; (e = bh_map_next(&w->namespaces, &it));) {
        struct bh_bench_namespace *ns = e->value;
        free(ns->name);
        free(ns);
    }
    bh_map_fini(&w->namespaces);
    bh_map_fini(&w->attempted);
    bh_arena_fini(&w->arena);
}
