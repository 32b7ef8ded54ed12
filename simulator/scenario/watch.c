/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/scenario/watch.c - what a run sees: pods, nodes, the timeline, samples over time
 *
 * Owns: the run's own accounts of pods and nodes, kept from commits alone, so that they can be
 * compared with the engine's.
 */
#include <math.h>

#include "simulator/scenario/scenario_int.h"

#define SAMPLES_MOST  600   /* then every second one goes, and the distance doubles */
#define SAMPLES_ASKED 20000 /* the same, where the scenario says how often */
#define EVENTS_MOST   50000

const char *const bh_run_state_names[BH_RUN_STATES] = {
    "Waiting", "Unschedulable", "Error", "Bound", "Completed", "Preempted", "Deleted",
};

/* ---- timeline -------------------------------------------------------------------------------- */

static const char *text_of(struct bh_run *r, const char *s)
{
    return s ? bh_sym_text(r->texts, bh_sym_internc(r->texts, s)) : NULL;
}

void bh_run_note(struct bh_run *r, const char *what, const char *kind, const char *ns,
                 const char *name, const char *node, const char *detail)
{
    size_t most = r->o->max_events ? r->o->max_events : EVENTS_MOST;

    if (r->n_events == most) {
        r->events_left_out++;
        return;
    }
    BH_GROW(r->event, r->n_events, r->cap_events);
    r->event[r->n_events++] = (struct bh_run_event){.at_ns = bh_run_at(r),
                                                    .what = what,
                                                    .kind = text_of(r, kind),
                                                    .ns = text_of(r, ns),
                                                    .name = text_of(r, name),
                                                    .node = text_of(r, node),
                                                    .detail = text_of(r, detail)};
}

/* A controller that makes pods is stopped by it, too. */
static void count_object(struct bh_run *r)
{
    struct bh_err err;
    size_t most = r->o->max_objects;

    if (!most || r->n_pods + r->n_nodes <= most)
        return;
    int rc = bh_err_set(&err, -E2BIG,
                        "more than %zu nodes and pods: run it with berth scenario run", most);
    bh_run_trouble(r, rc, &err);
}

/* ---- resources ------------------------------------------------------------------------------- */

static uint32_t resource_at(struct bh_run *r, bh_sym name)
{
    for (uint32_t i = 2; i < r->n_resources; i++)
        if (r->resource[i] == name)
            return i;
    if (r->n_resources == BH_RUN_RESOURCES)
        return BH_RUN_RESOURCES;
    r->resource[r->n_resources] = name;
    r->resource_name[r->n_resources] =
        text_of(r, bh_sym_text(bh_engine_symtab(r->w.offline.engine), name));
    return r->n_resources++;
}

static void take_scalars(struct bh_run *r, const void *rec, struct bh_slice s,
                         int64_t out[static BH_RUN_RESOURCES])
{
    const struct bh_res *v = bh_rec_at(rec, s, struct bh_res);

    for (uint32_t i = 0; i < s.n; i++) {
        uint32_t at = v[i].value ? resource_at(r, v[i].name) : BH_RUN_RESOURCES;
        if (at < BH_RUN_RESOURCES)
            out[at] = v[i].value;
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static struct bh_run_node *node_of(struct bh_run *r, const char *name)
{
    struct bh_run_node *n = bh_map_get(&r->nodes, name, strlen(name));

    if (n)
        return n;
    n = bh_arena_new(&r->keep, struct bh_run_node);
    n->name = text_of(r, name);
    bh_map_put(&r->nodes, name, strlen(name), n);
    BH_GROW(r->node, r->n_nodes, r->cap_nodes);
    r->node[r->n_nodes++] = n;
    count_object(r);
    return n;
}

static void see_node(struct bh_run *r, const struct bh_world_commit *c)
{
    struct bh_run_node *n = node_of(r, c->obj->name);
    bool was = n->unschedulable;

    if (c->change != BH_SIM_MODIFIED)
        bh_run_note(r, c->change == BH_SIM_ADDED ? "added" : "deleted", "Node", NULL, n->name, NULL,
                    NULL);
    n->alive = c->change != BH_SIM_DELETED;
    if (!c->read)
        return;
    memset(n->alloc, 0, sizeof n->alloc);
    n->alloc[0] = c->read->node->alloc_cpu_milli;
    n->alloc[1] = c->read->node->alloc_memory_bytes;
    n->alloc_pods = c->read->node->alloc_pods;
    take_scalars(r, c->read->node, c->read->node->scalars, n->alloc);
    n->unschedulable = c->read->node->flags & BH_NODE_UNSCHEDULABLE;
    if (c->change == BH_SIM_MODIFIED && was != n->unschedulable)
        bh_run_note(r, n->unschedulable ? "cordoned" : "uncordoned", "Node", NULL, n->name, NULL,
                    NULL);
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* The same in every run: the name, or, where that was drawn, its prefix and a running number. */
static const char *key_of(struct bh_run *r, const struct bh_sim_obj *obj)
{
    bool drawn = *obj->owner_kind && !bh_streq(obj->owner_kind, "StatefulSet");
    const char *dash = drawn ? strrchr(obj->name, '-') : NULL;
    int n = dash ? (int)(dash - obj->name) : (int)strlen(obj->name);
    const char *base = bh_arena_printf(&r->keep, "%s/%.*s", obj->ns, n, obj->name);
    uintptr_t seen = (uintptr_t)bh_map_get(&r->keys, base, strlen(base));

    bh_map_put(&r->keys, base, strlen(base), (void *)(seen + 1));
    return dash || seen ? bh_arena_printf(&r->keep, "%s#%zu", base, (size_t)seen + 1) : base;
}

struct bh_run_pod *bh_run_pod_of(struct bh_run *r, const char *uid)
{
    return bh_map_get(&r->pods, uid, strlen(uid));
}

static struct bh_run_pod *pod_new(struct bh_run *r, const struct bh_sim_obj *obj)
{
    struct bh_run_pod *p = bh_arena_new(&r->keep, struct bh_run_pod);

    *p = (struct bh_run_pod){.ns = text_of(r, obj->ns),
                             .name = text_of(r, obj->name),
                             .uid = text_of(r, obj->uid),
                             .key = key_of(r, obj),
                             .created_ns = bh_run_at(r),
                             .bound_ns = -1,
                             .gone_ns = -1};
    bh_map_put(&r->pods, p->uid, strlen(p->uid), p);
    BH_GROW(r->pod, r->n_pods, r->cap_pods);
    r->pod[r->n_pods++] = p;
    count_object(r);
    return p;
}

static void leave_node(struct bh_run_pod *p)
{
    if (!p->on_node)
        return;
    p->on_node = false;
    p->node->pods--;
    for (unsigned i = 0; i < BH_RUN_RESOURCES; i++)
        p->node->used[i] -= p->req[i];
}

static void requests_of(struct bh_run *r, const struct bh_shape_rec *s,
                        int64_t out[static BH_RUN_RESOURCES])
{
    memset(out, 0, BH_RUN_RESOURCES * sizeof *out);
    out[0] = s->used.cpu_milli;
    out[1] = s->used.memory_bytes;
    take_scalars(r, s, s->used.scalars, out);
}

/* Requests may change (resize): what counted before goes first. */
static void count_on_node(struct bh_run *r, struct bh_run_pod *p, const struct bh_world_commit *c)
{
    if (!c->read)
        return;
    leave_node(p);
    requests_of(r, c->read->shape, p->req);
    if (!p->node)
        return;
    p->on_node = true;
    p->node->pods++;
    for (unsigned i = 0; i < BH_RUN_RESOURCES; i++)
        p->node->used[i] += p->req[i];
}

/* What a typical pod asks for: among those that ask for the resource at all. */
static void count_request(struct bh_run *r, const struct bh_world_commit *c)
{
    int64_t req[BH_RUN_RESOURCES] = {0};

    if (!c->read)
        return;
    requests_of(r, c->read->shape, req);
    for (unsigned i = 0; i < BH_RUN_RESOURCES; i++) {
        r->asked[i] += (double)req[i];
        r->n_asked[i] += req[i] > 0;
    }
}

static void see_pod(struct bh_run *r, const struct bh_world_commit *c)
{
    struct bh_run_pod *p = bh_run_pod_of(r, c->obj->uid);
    bool finished = bh_world_finished(c->obj);

    if (!p) {
        p = pod_new(r, c->obj);
        count_request(r, c);
        r->pending++;
        bh_run_note(r, "created", "Pod", p->ns, p->name, NULL, NULL);
    }
    if (c->change == BH_SIM_DELETED) {
        bool bound = p->node != NULL;
        if (!bound && p->gone_ns < 0)
            r->pending--;
        if (p->gone_ns < 0)
            p->gone_ns = bh_run_at(r);
        leave_node(p);
        bh_run_note(r, p->preemptor ? "preempted" : "deleted", "Pod", p->ns, p->name,
                    bound ? p->node->name : NULL, p->preemptor);
        if (p->state != BH_RUN_COMPLETED)
            p->state = p->preemptor ? BH_RUN_PREEMPTED : BH_RUN_DELETED;
        return;
    }
    if (*c->obj->node_name && !p->node) {
        p->bound_ns = bh_run_at(r);
        p->node = node_of(r, c->obj->node_name);
        p->state = BH_RUN_BOUND;
        r->bound++;
        r->pending--;
        bh_run_note(r, "bound", "Pod", p->ns, p->name, p->node->name, NULL);
    }
    if (!finished) {
        count_on_node(r, p, c);
    } else if (p->state != BH_RUN_COMPLETED) {
        leave_node(p);
        r->pending -= !p->node && p->gone_ns < 0;
        p->gone_ns = bh_run_at(r);
        p->state = BH_RUN_COMPLETED;
        bh_run_note(r, "completed", "Pod", p->ns, p->name, p->node ? p->node->name : NULL,
                    c->obj->phase);
    }
}

void bh_run_on_commit(void *arg, const struct bh_world_commit *c)
{
    struct bh_run *r = arg;
    const char *kind = c->obj->type->kind;

    r->changed_ns = bh_run_at(r);
    if (bh_streq(kind, "Node"))
        see_node(r, c);
    else if (bh_streq(kind, "Pod"))
        see_pod(r, c);
}

/* ---- attempts -------------------------------------------------------------------------------- */

void bh_run_on_tried(void *arg, const struct bh_offline_try *t)
{
    struct bh_run *r = arg;
    struct bh_str uid = bh_rec_text(t->pod, t->pod->uid);
    struct bh_run_pod *p = bh_map_get(&r->pods, uid.p, uid.n);

    if (r->o->times) {
        BH_GROW(r->took_ns, r->attempts, r->cap_took);
        r->took_ns[r->attempts] = t->took_ns;
    }
    r->attempts++;
    bh_assert(p); /* every pod of the queue was a commit first */
    p->attempts++;
    if (t->failed) {
        const struct bh_decision *d = t->failed;
        const char *message = text_of(r, d->message ? d->message : ""), *before = p->message;
        r->failed_attempts++;
        p->state = d->kind == BH_NO_FIT || bh_streq(d->reason, "Unschedulable")
                       ? BH_RUN_UNSCHEDULABLE
                       : BH_RUN_ERROR;
        p->reason = text_of(r, d->reason);
        p->message = message;
        if (message != before) /* equal texts are one text */
            bh_run_note(r, "unschedulable", "Pod", p->ns, p->name, NULL, message);
        for (uint32_t i = 0; i < d->n_victims; i++) {
            struct bh_run_pod *v = bh_map_get(&r->pods, d->victims[i].uid.p, d->victims[i].uid.n);
            if (!v || v->preemptor)
                continue;
            v->preemptor = bh_arena_printf(&r->keep, "%s/%s", p->ns, p->name);
            r->preemptions++;
        }
    }
}

void bh_run_on_grouped(void *arg, const struct bh_offline_group *g)
{
    struct bh_run *r = arg;
    const bool fits = g->result->code == BH_SUCCESS;
    const char *key = bh_arena_printf(&r->a, "%s/%s", g->ns, g->name);
    const char *now = text_of(r, fits ? "Scheduled" : g->result->message);

    if (bh_map_get(&r->groups, key, strlen(key)) == now) /* equal texts are one text */
        return;
    bh_map_put(&r->groups, key, strlen(key), (void *)(uintptr_t)now);
    bh_run_note(r, fits ? "scheduled" : "unschedulable", "PodGroup", g->ns, g->name, NULL,
                fits ? NULL : now);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* share: of all; stranded: of what is free, on nodes with less free than the mean request of the
 * pods so far; skew: standard deviation of the nodes' shares. */
static void sample_resource(const struct bh_run *r, uint32_t i, struct bh_run_sample *s)
{
    double alloc = 0, used = 0, stranded = 0, sum = 0, squares = 0;
    double typical = r->n_asked[i] ? r->asked[i] / (double)r->n_asked[i] : 0;
    uint32_t n = 0;

    for (size_t k = 0; k < r->n_nodes; k++) {
        const struct bh_run_node *node = r->node[k];
        if (!node->alive || node->alloc[i] <= 0)
            continue;
        double share = (double)node->used[i] / (double)node->alloc[i];
        int64_t left = node->alloc[i] - node->used[i];
        alloc += (double)node->alloc[i];
        used += (double)node->used[i];
        sum += share;
        squares += share * share;
        n++;
        if (left > 0 && (double)left < typical)
            stranded += (double)left;
    }
    double mean = n ? sum / n : 0;
    s->share[i] = (float)(alloc > 0 ? used / alloc : 0);
    s->stranded[i] = (float)(alloc > used ? stranded / (alloc - used) : 0);
    s->skew[i] = (float)(n ? sqrt(BH_MAX(squares / n - mean * mean, 0)) : 0);
}

void bh_run_sample(struct bh_run *r, int64_t at_ns)
{
    struct bh_run_sample s = {
        .at_ns = at_ns, .pending = r->pending, .bound = r->bound, .attempts = r->attempts};

    for (size_t k = 0; k < r->n_nodes; k++) {
        s.nodes += r->node[k]->alive;
        s.pods += r->node[k]->pods;
    }
    for (uint32_t i = 0; i < r->n_resources; i++)
        sample_resource(r, i, &s);
    if (r->n_samples && r->sample[r->n_samples - 1].at_ns == s.at_ns) {
        r->sample[r->n_samples - 1] = s;
        return;
    }
    if (r->n_samples == (r->s->sample_ns ? SAMPLES_ASKED : SAMPLES_MOST)) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_samples; i += 2)
            r->sample[n++] = r->sample[i];
        r->n_samples = n;
        r->sample_every_ns *= 2;
    }
    BH_GROW(r->sample, r->n_samples, r->cap_samples);
    r->sample[r->n_samples++] = s;
}
