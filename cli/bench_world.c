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

#define SECOND_NS INT64_C(1000000000)
#define CONTROLLERS_QUIET                                                                          \
    UINT64_C(12000000) /* they act within milliseconds of the loop's clock                         \
                        */
#define CONTROLLERS_MOST   UINT64_C(300000000000)
#define RSS_EVERY          4096u
#define DECODED_MAX(n)     (((size_t)4 << 20) + 64 * (size_t)(n))
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
    bh_engine_stats(w->engine, &w->window.began);
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

static void saw_bound(struct bh_bench_world *w, struct bh_sim_obj *pod)
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
    if (!counts || (x->selector && !bh_selector_match(x->selector, label, pod)))
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

/* ---- commits into the engine -------------------------------------------------------------------
 */

static void on_event(void *arg, const struct bh_cluster_event *ev)
{
    struct bh_bench_world *w = arg;

    bh_queue_event(w->queue, ev, w->now_ns);
}

static int take_node(struct bh_bench_world *w, enum bh_sim_change c, const ProtobufCMessage *m,
                     struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->engine));
    struct bh_node_rec *rec;
    int rc =
        bh_compile_node(&w->decoded, (const struct K8s__Node *)(const void *)m, &in, &rec, err);

    if (rc < 0)
        return rc;
    if (c == BH_SIM_DELETED)
        bh_intake_del_node(&w->intake, rec);
    else
        bh_intake_put_node(&w->intake, rec);
    bh_engine_put_raw_message(w->engine, BH_KIND_NODE, m);
    return 0;
}

static void pending_gone(struct bh_bench_world *w, struct bh_str uid)
{
    bh_queue_delete(w->queue, uid);
    bh_engine_unnominate(w->engine, uid);
}

static int take_pod(struct bh_bench_world *w, enum bh_sim_change c, const struct bh_sim_obj *old,
                    const ProtobufCMessage *m, struct bh_err *err)
{
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->engine));
    const struct K8s__Pod *msg = (const struct K8s__Pod *)(const void *)m;
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    int rc = bh_compile_shape(&w->decoded, msg, &in, &shape, err);

    if (rc >= 0)
        rc = bh_compile_pod(&w->decoded, msg, &in, &rec, err);
    if (rc < 0)
        return rc;
    struct bh_str uid = bh_rec_text(rec, rec->uid);
    const char *profile = bh_sym_text(bh_engine_symtab(w->engine), shape->scheduler_name);
    bh_engine_put_raw_message(w->engine, BH_KIND_POD, m);
    if (c == BH_SIM_DELETED && rec->node != BH_SYM_NONE)
        bh_intake_del_pod(&w->intake, rec, shape);
    else if (c == BH_SIM_DELETED)
        pending_gone(w, uid);
    else if (rec->node != BH_SYM_NONE) {
        bh_intake_put_pod(&w->intake, rec, shape);
        if (old && !*old->node_name)
            pending_gone(w, uid);
    } else if (bh_engine_responsible(w->engine, profile)) {
        bh_queue_update(w->queue, rec, bh_engine_shape(w->engine, shape), "", w->now_ns);
    }
    return 0;
}

static int take_object(struct bh_bench_world *w, enum bh_sim_change c, const struct bh_kind_info *k,
                       const ProtobufCMessage *m, struct bh_err *err)
{
    const K8s__ObjectMeta *meta = bh_object_meta(m);
    struct bh_cluster_event ev = {.resource = BH_EV_OBJECT,
                                  .kind = k->kind,
                                  .action = c == BH_SIM_ADDED     ? BH_EV_ADD
                                            : c == BH_SIM_DELETED ? BH_EV_DELETE
                                                                  : BH_EV_UPDATE};
    struct bh_buf b = {0};

    bh_pb_pack(&b, m);
    int rc = bh_engine_put_object_event(w->engine, &ev, k->namespaced ? meta->namespace_ : "",
                                        meta->name, c == BH_SIM_DELETED ? NULL : bh_buf_str(&b),
                                        b.n, err);
    bh_buf_fini(&b);
    if (rc >= 0)
        bh_queue_event(w->queue, &ev, w->now_ns);
    return rc;
}

static int take(struct bh_bench_world *w, enum bh_sim_change c, const struct bh_sim_obj *old,
                const struct bh_sim_obj *obj, const struct bh_kind_info *k, struct bh_err *err)
{
    struct bh_json *tree;
    ProtobufCMessage *m;
    int rc = bh_json_parse(&w->decoded, obj->json, obj->json_n, 0, &tree, err);

    if (rc >= 0)
        rc = bh_json_to_pb(&w->decoded, k->desc, tree, &m, NULL, err);
    if (rc < 0)
        return rc;
    uint64_t began = bh_mono_ns();
    if (k->kind == BH_KIND_NODE)
        rc = take_node(w, c, m, err);
    else if (k->kind == BH_KIND_POD)
        rc = take_pod(w, c, old, m, err);
    else
        rc = take_object(w, c, k, m, err);
    w->intake_ns += bh_mono_ns() - began;
    return rc;
}

static void on_commit(void *arg, enum bh_sim_change c, struct bh_sim_obj *old,
                      struct bh_sim_obj *obj)
{
    struct bh_bench_world *w = arg;
    char version[80];
    struct bh_err err = {0};

    bh_sim_type_api_version(obj->type, version);
    const struct bh_kind_info *k = bh_kind_find(version, obj->type->kind);
    if (!k)
        return;
    w->decoded.limit_bytes = DECODED_MAX(obj->json_n);
    int rc = take(w, c, old, obj, k, &err);
    bh_arena_reset(&w->decoded);
    if (rc < 0 && w->trouble_rc >= 0) {
        w->trouble_rc = bh_err_prefix(&err, rc, "%s %s%s%s", obj->type->kind, obj->ns,
                                      *obj->ns ? "/" : "", obj->name);
        w->trouble = err;
    }
    if (k->kind != BH_KIND_POD || !*obj->node_name)
        return;
    if (c == BH_SIM_DELETED)
        bh_bench_namespace(w, obj->ns)->scheduled--;
    else if (c == BH_SIM_ADDED || !*old->node_name)
        saw_bound(w, obj);
}

int bh_bench_settle(struct bh_bench_world *w, struct bh_err *err)
{
    bh_sim_drain(w->sim);
    if (w->total)
        bh_progress_draw(w->progress, w->done, w->total, "%s: %s %zu of %zu", w->target->name,
                         w->step ? w->step->op->name : "", w->done, w->total);
    if (w->trouble_rc >= 0 && bh_mono_ns() - w->began_ns > (uint64_t)w->o->limit_ns)
        w->trouble_rc = bh_err_set(&w->trouble, -ETIMEDOUT, "it took longer than --time-limit");
    if (w->trouble_rc < 0)
        return bh_err_set(err, w->trouble_rc, "%s", w->trouble.msg);
    return 0;
}

int bh_bench_create(struct bh_bench_world *w, const struct bh_sim_type *t, const char *ns,
                    struct bh_json *obj, struct bh_sim_obj **ret, struct bh_err *err)
{
    struct bh_sim_error e = {0};

    if (bh_sim_create(w->sim, t, ns, &w->arena, obj, ret, &e))
        return bh_err_set(err, e.code == 409 ? -EEXIST : -EINVAL, "%s", e.message);
    if (bh_streq(t->kind, "ResourceClaimTemplate") && !w->controllers) {
        const struct bh_sim_controller_options o = {.kubelet = false};
        w->controllers = bh_sim_controllers_start(w->sim, &o);
    }
    return 0;
}

bool bh_bench_controllers(struct bh_bench_world *w)
{
    uint64_t before = bh_sim_revision(w->sim), seen = before, begin = bh_mono_ns(), last = begin;

    if (!w->controllers)
        return false;
    for (uint64_t now = begin; now - last < CONTROLLERS_QUIET && now - begin < CONTROLLERS_MOST;
         now = bh_mono_ns()) {
        uv_run(&w->loop, UV_RUN_NOWAIT);
        bh_sim_drain(w->sim);
        if (bh_sim_revision(w->sim) != seen) {
            seen = bh_sim_revision(w->sim);
            last = bh_mono_ns();
        } else {
            usleep(300);
        }
    }
    return seen != before;
}

/* ---- attempts ----------------------------------------------------------------------------------
 */

struct evicted { /* copies: what the engine gave lives until its next call */
    char *ns, *name;
};

static struct evicted *victims_of(const struct bh_decision *d, uint32_t *ret_n)
{
    struct evicted *v = bh_calloc(d->n_victims + 1, sizeof *v);

    *ret_n = 0;
    for (uint32_t i = 0; i < d->n_victims; i++)
        if (!d->victims[i].terminating)
            v[(*ret_n)++] =
                (struct evicted){bh_strndup(d->victims[i].namespace_.p, d->victims[i].namespace_.n),
                                 bh_strndup(d->victims[i].name.p, d->victims[i].name.n)};
    return v;
}

static void evict(struct bh_bench_world *w, struct evicted *v, uint32_t n)
{
    const struct bh_sim_delete_options own_grace = {.grace_s = -1};
    const struct bh_sim_type *t = bh_sim_type_find("", "v1", "pods");

    for (uint32_t i = 0; i < n; i++) {
        (void)bh_sim_delete(w->sim, t, v[i].ns, v[i].name, &own_grace, NULL);
        free(v[i].ns);
        free(v[i].name);
    }
    free(v);
}

/* PostFilter's writes: nobody else has these claims, so the engine's own copy is enough. */
static void apply_writes(struct bh_bench_world *w, const struct bh_decision *d)
{
    for (uint32_t i = 0; i < d->n_writes; i++) {
        const struct bh_write *x = &d->writes[i];
        bool gone = x->what == BH_WRITE_DELETE_CLAIM;
        struct bh_cluster_event ev = {.resource = BH_EV_OBJECT,
                                      .kind = x->kind,
                                      .action = gone ? BH_EV_DELETE : BH_EV_UPDATE};
        struct bh_buf b = {0};
        if (!gone)
            bh_pb_pack(&b, x->object);
        if (bh_engine_put_object_event(w->engine, &ev, x->namespace_, x->name,
                                       gone ? NULL : bh_buf_str(&b), b.n, NULL) >= 0)
            bh_queue_event(w->queue, &ev, w->now_ns);
        bh_buf_fini(&b);
    }
}

/* Back to the queue. began: of the attempt; what the store does is not counted. */
static void rejected(struct bh_bench_world *w, const struct bh_pending *p,
                     const struct bh_decision *d, uint64_t began)
{
    BH_CLEANUP(bh_freep) struct bh_pod_rec *pod = bh_memdup(p->pod, p->pod->h.size);
    struct bh_str uid = bh_rec_text(pod, pod->uid);
    uint32_t n_victims;
    struct evicted *v = victims_of(d, &n_victims);

    bh_map_put(&w->attempted, uid.p, uid.n, w);
    apply_writes(w, d);
    bh_queue_return(w->queue, uid, d->unschedulable_plugins, d->n_unschedulable_plugins,
                    d->pending_plugins, d->n_pending_plugins, w->now_ns);
    if (d->nominated_node != BH_SYM_NONE)
        bh_engine_nominate(w->engine, p, d->nominated_node);
    else if (d->clear_nomination)
        bh_engine_unnominate(w->engine, uid);
    uint64_t ns = bh_mono_ns() - began;
    w->decide_ns += ns;
    saw_attempt(w, ns, d->kind == BH_NO_FIT ? BH_BENCH_UNSCHEDULABLE : BH_BENCH_ERROR);
    evict(w, v, n_victims);
}

/* Reserve or Permit said no: undone, and rejected by that plugin. */
static void refused(struct bh_bench_world *w, const struct bh_pending *p, bh_sym node,
                    const struct bh_status *s, uint64_t began)
{
    BH_CLEANUP(bh_freep) char *plugin = s->plugin ? bh_strdup(s->plugin) : NULL;
    const char *by = plugin;
    const struct bh_decision d = {
        .kind = bh_status_rejected(s) ? BH_NO_FIT : BH_DECISION_ERROR,
        .clear_nomination = true,
        .unschedulable_plugins = &by,
        .n_unschedulable_plugins = bh_status_rejected(s) && by,
    };

    bh_engine_unreserve(w->engine, p, node);
    (void)bh_engine_forget(w->engine, bh_rec_text(p->pod, p->pod->uid));
    rejected(w, p, &d, began);
}

static void bind_pod(struct bh_bench_world *w, const struct bh_pending *p, bh_sym node)
{
    const char *ns = bh_rec_text(p->pod, p->pod->namespace_).p;
    const char *name = bh_rec_text(p->pod, p->pod->name).p;
    const char *uid = bh_rec_text(p->pod, p->pod->uid).p;
    struct bh_sim_error e = {0};

    if (bh_sim_bind(w->sim, ns, name, uid, bh_sym_text(bh_engine_symtab(w->engine), node), NULL,
                    NULL, &e) &&
        w->trouble_rc >= 0)
        w->trouble_rc =
            bh_err_set(&w->trouble, -EIO, "binding of pod %s/%s: %s", ns, name, e.message);
}

static void attempt(struct bh_bench_world *w, struct bh_queued_pod *q, uint64_t began)
{
    const struct bh_pending *p = &q->pending;
    struct bh_str uid = bh_rec_text(p->pod, p->pod->uid);
    const struct bh_decision *d;
    int64_t timeout_ns;

    if (p->pod->flags & BH_POD_TERMINATING) { /* as upstream: skipped */
        bh_queue_done(w->queue, uid);
        w->decide_ns += bh_mono_ns() - began;
        return;
    }
    d = bh_engine_schedule(w->engine, p, 0, w->now_ns);
    if (d->kind != BH_DECIDED) {
        rejected(w, p, d, began);
        return;
    }
    bh_sym node = d->node;
    int rc = bh_engine_assume(w->engine, p, node);
    bh_assert(rc == 0); /* a pending pod is on no node */
    const struct bh_status *s = bh_engine_reserve(w->engine, p, node);
    if (!s)
        s = bh_engine_permit(w->engine, p, node, &timeout_ns);
    if (s && s->code != BH_WAIT) {
        refused(w, p, node, s, began);
        return;
    }
    bh_engine_unnominate(w->engine, uid);
    bh_engine_prebind_commit(w->engine, uid);
    bh_queue_binding(w->queue, uid);
    uint64_t ns = bh_mono_ns() - began;
    w->decide_ns += ns;
    saw_attempt(w, ns, BH_BENCH_SCHEDULED);
    bind_pod(w, p, node);
}

/* Steps whose time has come. */
static bool run_background(struct bh_bench_world *w)
{
    struct bh_bench_background **at = &w->background, *b;
    bool ran = false;

    while ((b = *at)) {
        bool on = true;
        for (unsigned i = 0; on && b->due_ns <= w->now_ns && i < BACKGROUND_AT_ONCE; i++) {
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
    uint64_t began;
    struct bh_queued_pod *q;

    if (ran)
        (void)bh_bench_settle(w, NULL);
    began = bh_mono_ns();
    q = bh_queue_pop(w->queue, w->now_ns);
    if (!q) {
        w->decide_ns += bh_mono_ns() - began;
        return ran;
    }
    attempt(w, q, began);
    w->now_ns += (int64_t)(1e9 / w->o->pace);
    (void)bh_bench_settle(w, NULL);
    return true;
}

bool bh_bench_jump(struct bh_bench_world *w, int64_t until_ns)
{
    uint64_t began = bh_mono_ns();
    int64_t wait = bh_queue_tick(w->queue, w->now_ns);
    int64_t next = wait < INT64_MAX - w->now_ns ? w->now_ns + BH_MAX(wait, 1) : INT64_MAX;

    w->intake_ns += bh_mono_ns() - began;
    for (const struct bh_bench_background *b = w->background; b; b = b->next)
        next = BH_MIN(next, b->due_ns);
    if (next >= until_ns)
        return false;
    w->now_ns = BH_MAX(next, w->now_ns);
    return true;
}

void bh_bench_pass(struct bh_bench_world *w, int64_t until_ns)
{
    while (w->now_ns < until_ns && w->trouble_rc >= 0)
        if (!bh_bench_attempt(w) && !bh_bench_jump(w, until_ns))
            break;
    w->now_ns = BH_MAX(w->now_ns, until_ns);
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
    struct bh_interner in = bh_symtab_interner(bh_engine_symtab(w->engine));
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
    *ret = (struct bh_pending){.pod = rec, .shape = bh_engine_shape(w->engine, shape)};
    rec->shape = ret->shape;
    return 0;
}

/* The allocation that the engine made for the stand-in, into the store. */
static int keep_allocation(struct bh_bench_world *w, const struct bh_sim_obj *claim,
                           struct bh_err *err)
{
    const ProtobufCMessage *m =
        bh_engine_get_object(w->engine, BH_KIND_RESOURCECLAIM, claim->ns, claim->name);
    const struct bh_json *allocation =
        m ? bh_json_path(bh_pb_to_json(&w->arena, m), "status.allocation") : NULL;
    struct bh_sim_error e = {0};

    if (!allocation)
        return bh_err_set(err, -ENOSPC, "it got no allocation");
    if (bh_sim_edit(w->sim, claim->type, claim->ns, claim->name, NULL, BH_SIM_STATUS,
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
    const struct bh_decision *d = bh_engine_schedule(w->engine, &p, BH_NO_PREEMPTION, w->now_ns);
    if (d->kind != BH_DECIDED) {
        rc = bh_err_set(err, -ENOSPC, "%s", d->message ? d->message : "no node has its devices");
    } else {
        bh_sym node = d->node;
        (void)bh_engine_assume(w->engine, &p, node);
        const struct bh_status *s = bh_engine_reserve(w->engine, &p, node);
        if (s)
            rc = bh_err_set(err, -ENOSPC, "%s", bh_status_message(&w->arena, s));
        else
            bh_engine_prebind_commit(w->engine, BH_STR("allocate"));
        if (s)
            bh_engine_unreserve(w->engine, &p, node);
        (void)bh_engine_forget(w->engine, BH_STR("allocate"));
    }
    bh_engine_shape_unref(w->engine, p.shape);
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

static int start(struct bh_bench_world *w, struct bh_err *err)
{
    const struct bh_sim_options so = {
        .no_controllers = true, .history_events = 1, .first_revision = 1};
    int rc = bh_sim_new_bare(&w->loop, &so, &w->sim, err);

    if (rc < 0)
        return rc;
    const struct bh_engine_options eo = {.config = w->config,
                                         .tie_break = w->o->tie_break,
                                         .seed = w->o->seed,
                                         .verify = w->o->verify};
    rc = bh_engine_new(&eo, &w->engine, err);
    if (rc < 0)
        return rc;
    const struct bh_queue_options qo = {.verify = w->o->verify,
                                        .initial_backoff_ns = w->config->pod_initial_backoff_ns,
                                        .max_backoff_ns = w->config->pod_max_backoff_ns,
                                        .max_in_unschedulable_ns = 300 * SECOND_NS};
    w->queue = bh_queue_new(w->engine, &qo);
    w->intake = (struct bh_intake){.engine = w->engine,
                                   .symtab = bh_engine_symtab(w->engine),
                                   .cb = {.event = on_event, .arg = w}};
    bh_sim_listen(w->sim, NULL, on_commit, w);
    /* what a fresh cluster has: namespaces, priority classes */
    for (size_t i = 0; i < bh_sim_n_types; i++) {
        struct bh_sim_objs l = {0};
        if ((bh_sim_types[i].flags & BH_SIM_REVIEW) || bh_sim_types[i].stored_as)
            continue;
        bh_sim_list(w->sim, &bh_sim_types[i], NULL, &l);
        for (size_t k = 0; k < l.n; k++)
            on_commit(w, BH_SIM_ADDED, NULL, l.v[k]);
        bh_sim_objs_fini(&l);
    }
    return bh_bench_settle(w, err);
}

int bh_bench_world_init(struct bh_bench_world *w, const struct bh_bench_options *o,
                        const struct bh_bench_target *t, struct bh_bench_report *r,
                        struct bh_progress *p, struct bh_err *err)
{
    *w = (struct bh_bench_world){.o = o,
                                 .target = t,
                                 .report = r,
                                 .progress = p,
                                 .began_ns = bh_mono_ns(),
                                 .now_ns = bh_wall_ns()};
    uv_loop_init(&w->loop);
    bh_arena_init(&w->arena, 0);
    bh_arena_init(&w->decoded, 0);
    int rc = load_config(w, err);
    return rc < 0 ? rc : start(w, err);
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
    bh_sim_free(w->sim);
    bh_loop_drain_close(&w->loop);
    window_fini(&w->window);
    bh_queue_free(w->queue);
    bh_engine_free(w->engine);
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
    bh_arena_fini(&w->decoded);
}
