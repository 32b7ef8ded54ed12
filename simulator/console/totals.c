/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/totals.c - sums over all pods and nodes
 *
 * Invariants: an entry holds what its object of revision rv added to the sums, so that it can be
 *             taken away again; entries are found by uid (pods) and name (nodes).
 *             The list of nodes is in the order of changed_rv, newest last.
 * Cost:       a pod is parsed when its spec changes by more than its node, and while it waits for
 *             one when its status does; all other commits of it cost a look-up.
 */
#include "simulator/console/parts.h"
#include "simulator/console/totals.h"

#define PORTION 400 /* objects read at a time while the store is read for the first time */

struct why { /* a message that some waiting pods share */
    int64_t pods;
    size_t n;
    char text[];
};
struct node_totals {
    struct node_totals *prev, *next;
    uint64_t changed_rv, rv;
    bool exists, ready, unschedulable;
    struct bh_console_amounts allocatable, requested;
    char name[];
};
struct pod_totals {
    uint64_t rv;
    struct node_totals *node; /* where it counts, NULL = nowhere */
    struct why *why;          /* NULL = it does not wait, or has no condition that says why */
    bool waits, gated, deleting;
    char phase; /* first letter */
    int64_t cpu_milli, memory_bytes;
    unsigned n_more;
    struct bh_console_amount *more; /* names of the table of names */
};
struct bh_console_totals {
    struct bh_console *c;
    const struct bh_sim_type *pod_type, *node_type;
    bool on, complete;
    uint64_t rv;
    struct bh_console_counts counts;
    struct bh_map pods, nodes, names, whys;
    struct node_totals *first, *last;
    struct bh_arena arena; /* of the object at hand */
    struct bh_sim_objs backlog;
    size_t backlog_at;
    struct bh_sim_timer *timer;
};

/* ---- names, messages, nodes ------------------------------------------------------------------ */

static void keep_names(struct bh_console_totals *t, struct bh_console_amounts *x)
{
    for (unsigned i = 0; i < x->n; i++) {
        const char *name = x->more[i].name;
        char *kept = bh_map_get(&t->names, name, strlen(name));
        if (!kept) {
            kept = bh_strdup(name);
            bh_map_put(&t->names, name, strlen(name), kept);
        }
        x->more[i].name = kept;
    }
}

static struct why *why_of(struct bh_console_totals *t, const char *text)
{
    size_t n = strlen(text);
    struct why *w = bh_map_get(&t->whys, text, n);

    if (!w) {
        w = bh_malloc(sizeof(*w) + n + 1);
        w->pods = 0;
        w->n = n;
        memcpy(w->text, text, n + 1);
        bh_map_put(&t->whys, text, n, w);
    }
    w->pods++;
    return w;
}

static void why_gone(struct bh_console_totals *t, struct why *w)
{
    if (!w || --w->pods)
        return;
    bh_map_del(&t->whys, w->text, w->n);
    free(w);
}

static void put_last(struct bh_console_totals *t, struct node_totals *v)
{
    v->prev = t->last;
    v->next = NULL;
    *(t->last ? &t->last->next : &t->first) = v;
    t->last = v;
}

static struct node_totals *node_of(struct bh_console_totals *t, const char *name)
{
    size_t n = strlen(name);
    struct node_totals *v = bh_map_get(&t->nodes, name, n);

    if (v)
        return v;
    v = bh_calloc(1, sizeof(*v) + n + 1);
    memcpy(v->name, name, n + 1);
    bh_map_put(&t->nodes, name, n, v);
    put_last(t, v);
    return v;
}

static void take_out(struct bh_console_totals *t, struct node_totals *v)
{
    *(v->prev ? &v->prev->next : &t->first) = v->next;
    *(v->next ? &v->next->prev : &t->last) = v->prev;
}

/* ---- pods ------------------------------------------------------------------------------------ */

static bool finished(char phase)
{
    return phase == 'S' || phase == 'F';
}

static void count_pod(struct bh_console_totals *t, const struct pod_totals *p, int sign)
{
    struct bh_console_counts *c = &t->counts;

    c->pods.total += sign;
    c->pods.pending += p->waits ? sign : 0;
    c->pods.scheduled += p->node ? sign : 0;
    c->pods.running += p->phase == 'R' ? sign : 0;
    c->pods.succeeded += p->phase == 'S' ? sign : 0;
    c->pods.failed += p->phase == 'F' ? sign : 0;
    c->pods.gated += p->gated ? sign : 0;
    c->pods.terminating += p->deleting ? sign : 0;
}

static void add_amounts(struct bh_console_totals *t, const struct pod_totals *p, uint64_t rv,
                        int sign)
{
    struct bh_console_amounts x = {
        .cpu_milli = p->cpu_milli, .memory_bytes = p->memory_bytes, .pods = 1, .n = p->n_more};

    if (!p->node)
        return;
    if (p->n_more)
        memcpy(x.more, p->more, p->n_more * sizeof *x.more);
    bh_console_amounts_add(&p->node->requested, &x, sign);
    bh_console_amounts_add(&t->counts.requested, &x, sign);
    /* While the store is read for the first time, all changes are of that moment. */
    struct node_totals *v = p->node;
    v->changed_rv = BH_MAX(rv, t->rv);
    if (t->last == v)
        return;
    take_out(t, v);
    put_last(t, v);
}

static bool same_part(const struct bh_sim_obj *a, uint32_t at, uint32_t n,
                      const struct bh_sim_obj *b, uint32_t bat, uint32_t bn)
{
    return n == bn && memcmp(a->json + at, b->json + bat, n) == 0;
}

/* Whether what we keep of it may have changed. */
static bool worth_reading(const struct bh_sim_obj *old, const struct bh_sim_obj *o)
{
    if (!old || !same_part(old, old->spec_at, old->spec_n, o, o->spec_at, o->spec_n))
        return true;
    return !*o->node_name &&
           !same_part(old, old->status_at, old->status_n, o, o->status_at, o->status_n);
}

/* Whether a node was added to its spec, and nothing else: as a binding does it. */
static bool only_bound(const struct bh_sim_obj *old, const struct bh_sim_obj *o)
{
    static const char before[] = ",\"nodeName\":\"", after[] = "\"}";
    const size_t n_before = sizeof before - 1, n_name = strlen(o->node_name), n = old->spec_n;
    const char *was = old->json + old->spec_at, *is = o->json + o->spec_at;

    return !*old->node_name && n && o->spec_n == n - 1 + n_before + n_name + 2 &&
           memcmp(is, was, n - 1) == 0 && memcmp(is + n - 1, before, n_before) == 0 &&
           memcmp(is + n - 1 + n_before, o->node_name, n_name) == 0 &&
           memcmp(is + o->spec_n - 2, after, 2) == 0;
}

static void read_pod(struct bh_console_totals *t, struct pod_totals *p, const struct bh_sim_obj *o)
{
    const struct bh_json *obj = bh_sim_obj_tree(&t->arena, o);
    const char *message = "";
    struct bh_console_amounts x;

    bh_console_requests(obj, &x);
    p->cpu_milli = x.cpu_milli;
    p->memory_bytes = x.memory_bytes;
    free(p->more);
    keep_names(t, &x);
    p->n_more = x.n;
    p->more = x.n ? bh_memdup(x.more, x.n * sizeof *x.more) : NULL;
    p->gated = !*o->node_name && bh_console_gated(obj);
    if (!*o->node_name)
        message = bh_json_get_text(bh_console_condition(obj, "PodScheduled"), "message");
    why_gone(t, p->why);
    p->why = *message && !finished(*o->phase) ? why_of(t, message) : NULL;
    bh_arena_reset(&t->arena);
}

static void put_pod(struct bh_console_totals *t, const struct bh_sim_obj *old,
                    const struct bh_sim_obj *o)
{
    size_t n = strlen(o->uid);
    struct pod_totals *p = bh_map_get(&t->pods, o->uid, n);

    if (p && p->rv >= o->rv)
        return;
    bool again = !p || !old || worth_reading(old, o) || finished(*o->phase) != finished(p->phase);
    if (!p) {
        p = bh_calloc(1, sizeof(*p));
        bh_map_put(&t->pods, o->uid, n, p);
    } else {
        count_pod(t, p, -1);
    }
    if (again)
        add_amounts(t, p, o->rv, -1);
    if (again && old && p->rv == old->rv && only_bound(old, o)) {
        p->gated = false;
        why_gone(t, bh_take_ptr(p->why));
    } else if (again) {
        read_pod(t, p, o);
    }
    p->rv = o->rv;
    p->phase = *o->phase;
    p->deleting = o->deleting;
    p->waits = !*o->node_name && !finished(p->phase);
    if (again) {
        p->node = *o->node_name && !finished(p->phase) ? node_of(t, o->node_name) : NULL;
        add_amounts(t, p, o->rv, 1);
    }
    count_pod(t, p, 1);
}

static void on_pod(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                   struct bh_sim_obj *o)
{
    struct bh_console_totals *t = arg;

    t->rv = o->rv;
    if (change == BH_SIM_DELETED) {
        struct pod_totals *p = bh_map_del(&t->pods, o->uid, strlen(o->uid));
        if (p) {
            count_pod(t, p, -1);
            add_amounts(t, p, o->rv, -1);
            why_gone(t, p->why);
            free(p->more);
            free(p);
        }
    } else {
        put_pod(t, old, o);
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void count_node(struct bh_console_totals *t, const struct node_totals *v, int sign)
{
    if (!v->exists)
        return;
    t->counts.nodes.total += sign;
    t->counts.nodes.ready += v->ready ? sign : 0;
    t->counts.nodes.unschedulable += v->unschedulable ? sign : 0;
    bh_console_amounts_add(&t->counts.allocatable, &v->allocatable, sign);
}

static void put_node(struct bh_console_totals *t, const struct bh_sim_obj *o)
{
    struct node_totals *v = node_of(t, o->name);

    if (v->exists && v->rv >= o->rv)
        return;
    count_node(t, v, -1);
    const struct bh_json *obj = bh_sim_obj_tree(&t->arena, o);
    v->exists = true;
    v->rv = o->rv;
    v->ready = bh_streq(bh_json_get_text(bh_console_condition(obj, "Ready"), "status"), "True");
    v->unschedulable = bh_json_get_bool(bh_json_get(obj, "spec"), "unschedulable", false);
    bh_console_allocatable(obj, &v->allocatable);
    keep_names(t, &v->allocatable);
    bh_arena_reset(&t->arena);
    count_node(t, v, 1);
}

static void on_node(void *arg, enum bh_sim_change change, struct bh_sim_obj *old BH_UNUSED,
                    struct bh_sim_obj *o)
{
    struct bh_console_totals *t = arg;

    t->rv = o->rv;
    if (change != BH_SIM_DELETED) {
        put_node(t, o);
        return;
    }
    struct node_totals *v = node_of(t, o->name);
    count_node(t, v, -1);
    v->exists = false;
    v->rv = 0;
    if (v->requested.pods == 0) {
        bh_map_del(&t->nodes, v->name, strlen(v->name));
        take_out(t, v);
        free(v);
    }
}

/* ---- turning on ------------------------------------------------------------------------------ */

static void read_portion(void *arg)
{
    struct bh_console_totals *t = arg;
    struct bh_sim *s = t->c->sim;

    t->timer = NULL;
    for (int i = 0; i < PORTION && t->backlog_at < t->backlog.n; i++) {
        const struct bh_sim_obj *seen = t->backlog.v[t->backlog_at++];
        /* it may have changed, and even be gone, since the list was made */
        const struct bh_sim_obj *o = bh_sim_get(s, seen->type, seen->ns, seen->name);
        if (o && o->type == t->pod_type)
            put_pod(t, NULL, o);
        else if (o)
            put_node(t, o);
    }
    if (t->backlog_at < t->backlog.n) {
        t->timer = bh_sim_after(s, 0, read_portion, t);
        return;
    }
    bh_sim_objs_fini(&t->backlog);
    t->backlog_at = 0;
    t->complete = true;
}

/* ---- questions ------------------------------------------------------------------------------- */

const struct bh_console_counts *bh_console_totals(struct bh_console *c)
{
    if (!c->totals->on) {
        /* Pods come second, so that on the way the sums are too small and never too large. */
        struct bh_console_totals *t = c->totals;
        struct bh_sim *s = t->c->sim;
        t->on = true;
        bh_sim_listen(s, t->node_type, on_node, t);
        bh_sim_listen(s, t->pod_type, on_pod, t);
        bh_console_list_more(s, t->node_type, &t->backlog);
        bh_console_list_more(s, t->pod_type, &t->backlog);
        t->rv = s->rv;
        read_portion(t);
    }
    return c->totals->complete ? &c->totals->counts : NULL;
}

uint64_t bh_console_totals_revision(const struct bh_console *c)
{
    return c->sim->pending.n ? c->totals->rv : c->sim->rv;
}

void bh_console_totals_requested(const struct bh_console *c, const char *node,
                                 struct bh_console_amounts *out)
{
    const struct node_totals *v = bh_map_get(&c->totals->nodes, node, strlen(node));

    *out = v ? v->requested : (struct bh_console_amounts){0};
}

void bh_console_totals_changed(const struct bh_console *c, uint64_t *cursor, size_t max,
                               void (*fn)(void *arg, const char *node), void *arg)
{
    const struct node_totals *v = c->totals->last;

    if (!v || v->changed_rv <= *cursor) {
        *cursor = BH_MAX(*cursor, bh_console_totals_revision(c));
        return;
    }
    while (v->prev && v->prev->changed_rv > *cursor)
        v = v->prev;
    for (; v && max; v = v->next, max--) {
        *cursor = v->changed_rv;
        if (v->exists)
            fn(arg, v->name);
    }
}

void bh_console_totals_waiting(const struct bh_console *c,
                               void (*fn)(void *arg, const char *message, int64_t pods), void *arg)
{
    struct bh_map_entry *e;

    for (size_t it = 0; (e = bh_map_next(&c->totals->whys, &it));) {
        const struct why *w = e->value;
        fn(arg, w->text, w->pods);
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void bh_console_totals_start(struct bh_console *c)
{
    struct bh_console_totals *t = bh_calloc(1, sizeof(*t));

    t->c = c;
    t->pod_type = bh_sim_type_find("", "v1", "pods");
    t->node_type = bh_sim_type_find("", "v1", "nodes");
    c->totals = t;
}

void bh_console_totals_stop(struct bh_console *c)
{
    struct bh_console_totals *t = c->totals;
    struct bh_map_entry *e;

    bh_sim_cancel(t->timer);
    bh_sim_objs_fini(&t->backlog);
    for (size_t it = 0; (e = bh_map_next(&t->pods, &it));)
        free(((struct pod_totals *)e->value)->more);
    bh_map_fini_values(&t->pods);
    bh_map_fini_values(&t->nodes);
    bh_map_fini_values(&t->names);
    bh_map_fini_values(&t->whys);
    bh_arena_fini(&t->arena);
    free(t);
    c->totals = NULL;
}
