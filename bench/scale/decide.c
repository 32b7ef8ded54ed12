/* SPDX-License-Identifier: Apache-2.0
 *
 * bench/scale/decide.c - the scheduler's part of `berth bench scale`
 *
 * What berth-scheduler does between the snapshot and the binders: follow, decide, reserve, assume.
 * Everything it decides comes back through the snapshot as a binding, and as many pods as were
 * bound are deleted, the oldest first: the cluster stays as full as it was, and every decision has
 * to take three changed nodes into account. Runs in a process of its own, one thread.
 */
#include "bench/scale/scale.h"

#include <errno.h>
#include <time.h>

#include "simulator/offline/offline.h"

#define BATCH         256u /* decisions between two looks at the change log */
#define FOLLOW_EVENTS 4096u

struct part {
    const struct bh_scale_options *o;
    struct bh_scale_objects *objects;
    struct bh_offline w; /* without a queue, the engine alone */
    struct bh_intake in;
    struct bh_interner interner;
    struct bh_arena a; /* the pods of one batch */
    struct bh_rand rand;
    int peer;
    uint32_t nodes, next_pod, oldest_pod; /* the living ones: oldest_pod to next_pod */
    double follow_s;
    uint32_t n; /* measured decisions */
    float *us;  /* of each */
    uint8_t *kind;
    uint64_t nowhere;
    struct bh_scale_item *orders;
    uint32_t n_orders;
    struct bh_scale_scheduler r;
};

static double now_s(const struct bh_scale_options *o)
{
    return o->cpu ? bh_scale_cpu_s() : (double)bh_mono_ns() / 1e9;
}

/* ---- following ------------------------------------------------------------------------------- */

static void on_event(void *arg, const struct bh_cluster_event *ev)
{
    (void)arg;
    (void)ev; /* the queue's part */
}

/* From a new process's point of view: nothing there, then everything. Nodes come first. */
static int attach(struct part *p, struct bh_err *err)
{
    uint64_t began = bh_mono_ns();
    double cpu = bh_scale_cpu_s(), start = bh_scale_anon_bytes(), nodes = 0;
    uint32_t pods = bh_scale_initial_pods(p->o, p->nodes);

    do { /* no pods in the turn that takes the last node: they are counted apart */
        uint32_t missing = p->nodes - BH_MIN(bh_engine_node_count(p->w.engine), p->nodes);
        unsigned max = missing ? BH_MIN(missing, FOLLOW_EVENTS) : FOLLOW_EVENTS;
        if (!bh_intake_follow(&p->in, max) && !p->in.snapshot_ready)
            return bh_err_set(err, -EIO, "cannot attach: %s", p->in.snapshot_trouble);
        if (!nodes && bh_engine_node_count(p->w.engine) == p->nodes)
            nodes = bh_scale_anon_bytes();
    } while (!p->in.snapshot_current || p->in.rebuilding);
    p->r.attach_s = (double)(bh_mono_ns() - began) / 1e9;
    p->r.attach_cpu_s = bh_scale_cpu_s() - cpu;
    double end = bh_scale_anon_bytes();
    p->r.rss_mb = end / 1e6;
    p->r.node_bytes = (nodes - start) / p->nodes;
    p->r.pod_bytes = pods ? (end - nodes) / pods : 0;
    if (bh_engine_node_count(p->w.engine) != p->nodes || bh_engine_pod_count(p->w.engine) != pods)
        return bh_err_set(err, -EIO, "the engine has %u nodes and %u pods, not %u and %u",
                          bh_engine_node_count(p->w.engine), bh_engine_pod_count(p->w.engine),
                          p->nodes, pods);
    return 0;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static void order(struct part *p, uint32_t pod, uint32_t tmpl, uint32_t node)
{
    p->orders[p->n_orders++] = (struct bh_scale_item){pod, tmpl, node};
}

/* The watcher publishes what was decided; then it is in the change log. */
static int settle(struct part *p, struct bh_err *err)
{
    const struct bh_scale_order head = {.n = p->n_orders};
    uint64_t pos;

    if (!bh_scale_write(p->peer, &head, sizeof(head)) ||
        !bh_scale_write(p->peer, p->orders, p->n_orders * sizeof(*p->orders)) ||
        !bh_scale_read(p->peer, &pos, sizeof(pos)))
        return bh_err_set(err, -EPIPE, "the watcher's part is gone");
    p->n_orders = 0;
    bh_arena_reset(&p->a);
    double began = now_s(p->o);
    while (bh_snap_reader_pos(p->in.reader) < pos || !p->in.snapshot_current)
        if (!bh_intake_follow(&p->in, FOLLOW_EVENTS) && !p->in.snapshot_ready)
            return bh_err_set(err, -EIO, "the snapshot is gone: %s", p->in.snapshot_trouble);
    p->follow_s += now_s(p->o) - began;
    return 0;
}

/* One pod: us of the decision, or < 0 with err. */
static double one(struct part *p, uint32_t tmpl, struct bh_err *err)
{
    struct bh_shape_rec *shape;
    struct bh_pod_rec *rec;
    int rc = bh_scale_pod(p->objects, tmpl, p->next_pod, BH_SCALE_NO_NODE, &p->a, &p->interner,
                          &shape, &rec, err);
    if (rc < 0)
        return -1;
    struct bh_pending pending = {.pod = rec, .shape = bh_engine_shape(p->w.engine, shape)};
    const struct bh_status *refused = NULL;
    bh_sym node = BH_SYM_NONE;

    double began = now_s(p->o);
    const struct bh_decision *d = bh_offline_decide(&p->w, &pending, &node, &refused);
    double us = (now_s(p->o) - began) * 1e6;
    bh_engine_shape_unref(p->w.engine, pending.shape);
    if (d->kind == BH_DECISION_ERROR || refused) {
        bh_err_set(err, -EIO, "pod %u: %s", p->next_pod,
                   refused ? bh_status_message(&p->a, refused) : d->message);
        return -1;
    }
    p->nowhere += node == BH_SYM_NONE;
    if (node != BH_SYM_NONE) {
        order(p, p->next_pod++, tmpl,
              bh_scale_node_number(bh_sym_text(bh_engine_symtab(p->w.engine), node)));
        order(p, p->oldest_pod++, 0, BH_SCALE_NO_NODE); /* one came, one goes */
    }
    return us;
}

/* Each template twice: what is kept for it is made at the second sight. */
static int warm(struct part *p, struct bh_err *err)
{
    uint32_t n = bh_scale_templates(p->objects);

    for (uint32_t i = 0; i < 2 * n; i++) {
        double us = one(p, i % n, err);
        if (us < 0)
            return -EIO;
        if (i == 0)
            p->r.first_ms = us / 1e3;
        p->r.template_ms += i < n ? us / 1e3 / n : 0;
        if (p->n_orders >= 2 * BATCH - 1 || i + 1 == 2 * n) {
            int rc = settle(p, err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int measure(struct part *p, struct bh_err *err)
{
    uint32_t templates = bh_scale_templates(p->objects);
    struct bh_engine_stats before, after;

    bh_engine_stats(p->w.engine, &before);
    p->follow_s = 0;
    p->nowhere = 0;
    for (p->n = 0; p->n < p->o->decisions;) {
        uint32_t tmpl = (uint32_t)bh_rand_below(&p->rand, templates);
        double us = one(p, tmpl, err);
        if (us < 0)
            return -EIO;
        p->us[p->n] = (float)us;
        p->kind[p->n++] = (uint8_t)bh_scale_kind_of(p->objects, tmpl);
        p->r.decide_s += us / 1e6;
        if (p->n % BATCH == 0 || p->n == p->o->decisions) {
            int rc = settle(p, err);
            if (rc < 0)
                return rc;
        }
    }
    bh_engine_stats(p->w.engine, &after);
    p->r.nowhere = p->nowhere;
    p->r.fast = after.fast_cycles - before.fast_cycles;
    p->r.rescored = after.nodes_rescored - before.nodes_rescored;
    p->r.misses = after.shape_misses - before.shape_misses;
    p->r.follow_s = p->follow_s;
    p->r.per_s = p->n / (p->r.decide_s + p->r.follow_s);
    p->r.rss_end_mb = bh_scale_anon_bytes() / 1e6;
    return 0;
}

/* ---- percentiles ----------------------------------------------------------------------------- */

static int by_value(const void *pa, const void *pb)
{
    float a = *(const float *)pa, b = *(const float *)pb;

    return a < b ? -1 : a > b;
}

/* v is sorted on the way. */
static struct bh_scale_latency latency_of(float *v, uint32_t n)
{
    if (!n)
        return (struct bh_scale_latency){0};
    qsort(v, n, sizeof(*v), by_value);
    return (struct bh_scale_latency){.n = n,
                                     .p50 = v[(uint64_t)n * 50 / 100],
                                     .p90 = v[(uint64_t)n * 90 / 100],
                                     .p99 = v[(uint64_t)n * 99 / 100],
                                     .p999 = v[(uint64_t)n * 999 / 1000],
                                     .max = v[n - 1]};
}

/* ---- life ------------------------------------------------------------------------------------ */

static int start(struct part *p, const char *runtime_dir, struct bh_err *err)
{
    const struct bh_offline_options wo = {.tie_break = p->o->tie_break,
                                          .seed = p->o->seed,
                                          .verify = p->o->verify,
                                          .no_queue = true,
                                          .flags = BH_NO_PREEMPTION,
                                          .now_ns = 1};
    int rc = bh_offline_init(&p->w, &wo, err);

    if (rc < 0)
        return rc;
    const struct bh_intake_options io = {.runtime_dir = runtime_dir,
                                         .engine = p->w.engine,
                                         .epoch = 1,
                                         .observer = true,
                                         .cb = {.event = on_event, .arg = p}};
    rc = bh_intake_init(&p->in, &io, err);
    if (rc < 0)
        return rc;
    p->interner = bh_symtab_interner(bh_engine_symtab(p->w.engine));
    p->objects = bh_scale_objects_new(p->o, p->nodes, err);
    return p->objects ? attach(p, err) : -EINVAL;
}

int bh_scale_decide(const struct bh_scale_options *o, uint32_t nodes, const char *runtime_dir,
                    int out, int peer)
{
    struct part p = {.o = o, .nodes = nodes, .peer = peer};
    struct bh_err err = {0};

    bh_rand_seed(&p.rand, o->seed + 1);
    p.us = bh_calloc(o->decisions, sizeof(*p.us));
    p.kind = bh_calloc(o->decisions, sizeof(*p.kind));
    p.orders = bh_calloc(2 * (BATCH + 1), sizeof(*p.orders));
    p.next_pod = bh_scale_initial_pods(o, nodes);
    int rc = start(&p, runtime_dir, &err);
    if (rc >= 0)
        rc = warm(&p, &err);
    if (rc >= 0)
        rc = measure(&p, &err);
    if (rc >= 0) {
        float *v = bh_calloc(p.n, sizeof(*v));
        for (unsigned k = 0; k < BH_SCALE_KINDS; k++) {
            uint32_t n = 0;
            for (uint32_t i = 0; i < p.n; i++)
                if (p.kind[i] == k)
                    v[n++] = p.us[i];
            p.r.kind[k] = latency_of(v, n);
        }
        free(v);
        p.r.all = latency_of(p.us, p.n);
    }
    if (rc >= 0 && !bh_scale_write(out, &p.r, sizeof(p.r)))
        rc = -EPIPE;
    if (rc < 0)
        fprintf(stderr, "berth bench scale: %u nodes: %s\n", nodes, err.msg);
    free(p.us);
    free(p.kind);
    free(p.orders);
    bh_scale_objects_free(p.objects);
    if (p.w.engine)
        bh_intake_fini(&p.in);
    bh_offline_fini(&p.w);
    bh_arena_fini(&p.a);
    return rc < 0 ? BH_EXIT_FAIL : BH_EXIT_OK;
}
