/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/rebalance.c - which pods to move
 */
#include "simulator/offline/rebalance.h"

#include <errno.h>

#include "common/base/map.h"
#include "common/k8s/codec.h"
#include "common/k8s/selector.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "scheduler/cache/node_info.h"

struct budget {
    const char *ns, *name;
    struct bh_selector *selector;
    int64_t allowed, left; /* left: of this wave */
};
struct cover { /* the budgets of a shape's pods */
    uint32_t n;
    struct budget *one;
};
struct mover { /* a pod that can be moved */
    const struct bh_pod_rec *was;
    struct bh_pod_rec *rec; /* the same without its node */
    bh_shape_id shape;      /* one reference */
    const struct cover *cover;
    bh_sym to;
};
struct site { /* a node that might be freed */
    bh_sym name;
    uint32_t row;
    struct bh_node_rec *was; /* while it is closed */
    struct mover *v;
    uint32_t n;
    const char *held;                         /* why it keeps its pods, NULL = it may be freed */
    double share;                             /* of its scarcest resource that the movers ask for */
    bh_sum cpu_milli, memory_bytes;           /* of the movers */
    bh_sum room_cpu_milli, room_memory_bytes; /* free */
};
struct plan {
    struct bh_offline *w;
    struct bh_arena *a;
    const struct bh_rebalance_options *o;
    bh_sym control_plane; /* the label */
    struct budget *budgets;
    size_t n_budgets;
    struct bh_umap covers; /* shape -> struct cover * */
    struct site *sites;    /* all nodes; those that may be freed first */
    size_t n_sites, n_free, cap_sites;
    bh_sum room_cpu_milli, room_memory_bytes; /* on the nodes that stay */
    uint32_t wave, n_moves;
    struct bh_json *moves, *freed, *empty, *kept, *place;
};

static struct bh_symtab *tab(const struct plan *p)
{
    return bh_engine_symtab(p->w->engine);
}

static const char *node_text(const struct plan *p, bh_sym node)
{
    return bh_sym_text(tab(p), node);
}

/* ---- budgets --------------------------------------------------------------------------------- */

static void count_budget(void *arg, const ProtobufCMessage *m BH_UNUSED)
{
    ++*(size_t *)arg;
}

static void add_budget(void *arg, const ProtobufCMessage *m)
{
    struct plan *p = arg;
    const K8s__PodDisruptionBudget *b = (const void *)m;
    struct budget *x = &p->budgets[p->n_budgets];
    const struct bh_json *tree = bh_pb_to_json(p->a, m);

    /* One whose selector cannot be read covers nothing, as in the controller. */
    if (bh_selector_from_json(bh_json_path(tree, "spec.selector"), &x->selector, NULL) < 0)
        return;
    x->ns = bh_json_get_text(bh_json_get(tree, "metadata"), "namespace");
    x->name = bh_json_get_text(bh_json_get(tree, "metadata"), "name");
    x->allowed = x->left = b->status ? b->status->disruptionsallowed : 0;
    p->n_budgets++;
}

static const struct cover *cover_of(struct plan *p, bh_shape_id id, const struct bh_shape_rec *s)
{
    const struct bh_kv *labels = bh_rec_at(s, s->labels, struct bh_kv);
    uint64_t known;

    if (bh_umap_get(&p->covers, id, &known))
        return (const struct cover *)(uintptr_t)known;
    struct cover *c = bh_arena_new_array(p->a, struct cover, 1);
    for (size_t i = 0; i < p->n_budgets; i++) {
        struct budget *b = &p->budgets[i];
        if (!bh_streq(b->ns, bh_sym_text(tab(p), s->namespace_)) ||
            !bh_selector_match_labels(b->selector, labels, s->labels.n, tab(p)))
            continue;
        c->n++;
        c->one = b;
    }
    bh_umap_put(&p->covers, id, (uintptr_t)c);
    return c;
}

/* ---- what there is --------------------------------------------------------------------------- */

/* Why the pod stays where it is; NULL: it can be moved; "": it is no obstacle. */
static const char *stays(struct plan *p, const struct bh_pod_info *x, const struct cover *c)
{
    const char *scheduler = bh_sym_text(tab(p), x->shape->scheduler_name);

    if (x->shape->owner_kind == BH_OWNER_DAEMONSET || x->shape->owner_kind == BH_OWNER_NODE ||
        (x->rec->flags & BH_POD_TERMINATING))
        return "";
    if (x->shape->owner_kind == BH_OWNER_NONE)
        return "no controller would make it anew";
    if (!bh_engine_responsible(p->w->engine, scheduler))
        return bh_arena_printf(p->a, "scheduler %.253s places it", scheduler);
    if (x->rec->group != BH_SYM_NONE)
        return "it belongs to a pod group";
    if (x->shape->claims.n || x->rec->extended_claim_hash)
        return "it has resource claims";
    if (c->n > 1)
        return "more than one disruption budget covers it, so the eviction API refuses";
    if (c->n && c->one->allowed <= 0)
        return bh_arena_printf(p->a, "the disruption budget %.253s allows none", c->one->name);
    return NULL;
}

static double part(bh_sum used, int64_t of)
{
    return of > 0 ? (double)used / (double)of : used > 0 ? 2 : 0;
}

/* Of the scarcest resource. */
static double share_of(const struct bh_node_rec *n, bh_sum cpu_milli, bh_sum memory_bytes)
{
    return BH_MAX(part(cpu_milli, n->alloc_cpu_milli), part(memory_bytes, n->alloc_memory_bytes));
}

static void take_pod(struct plan *p, struct site *s, const struct bh_pod_info *x)
{
    const struct cover *c = cover_of(p, x->shape_id, x->shape);
    const char *why = stays(p, x, c);

    if (why && *why && !s->held)
        s->held = bh_arena_printf(p->a, "pod %s/%s: %s", bh_rec_text(x->rec, x->rec->namespace_).p,
                                  bh_rec_text(x->rec, x->rec->name).p, why);
    if (why)
        return;
    struct mover *m = &s->v[s->n++];
    *m = (struct mover){.was = memcpy(bh_arena_alloc(p->a, x->rec->h.size), x->rec, x->rec->h.size),
                        .rec = memcpy(bh_arena_alloc(p->a, x->rec->h.size), x->rec, x->rec->h.size),
                        .shape = bh_engine_shape(p->w->engine, x->shape),
                        .cover = c};
    m->rec->node = m->rec->nominated_node = BH_SYM_NONE;
    s->cpu_milli += x->shape->used.cpu_milli;
    s->memory_bytes += x->shape->used.memory_bytes;
}

static const struct bh_shape_rec *shape_of(const struct plan *p, const struct mover *m)
{
    return bh_engine_shape_rec(p->w->engine, m->shape);
}

struct by_size {
    const struct plan *p;
    const struct bh_node_rec *node;
};

/* The biggest first: it is the hardest to place. */
static int by_size(const void *a, const void *b, void *arg)
{
    const struct by_size *o = arg;
    const struct mover *x = a, *y = b;
    const struct bh_shape_rec *sx = shape_of(o->p, x), *sy = shape_of(o->p, y);
    double dx = share_of(o->node, sx->used.cpu_milli, sx->used.memory_bytes),
           dy = share_of(o->node, sy->used.cpu_milli, sy->used.memory_bytes);
    int c = BH_CMP(dy, dx);

    return c ? c : strcmp(bh_rec_text(x->was, x->was->uid).p, bh_rec_text(y->was, y->was->uid).p);
}

static void take_node(void *arg, bh_sym name)
{
    struct plan *p = arg;
    const struct bh_node_info *ni = bh_engine_node_info(p->w->engine, name);
    const struct bh_node_rec *n = ni->rec;
    bh_sym ignored;

    BH_GROW(p->sites, p->n_sites, p->cap_sites);
    struct site *s = &p->sites[p->n_sites++];
    *s = (struct site){.name = name,
                       .v = bh_arena_new_array(p->a, struct mover, ni->n_pods),
                       .room_cpu_milli = BH_MAX(n->alloc_cpu_milli - ni->used_cpu_milli, 0),
                       .room_memory_bytes =
                           BH_MAX(n->alloc_memory_bytes - ni->used_memory_bytes, 0)};
    for (uint32_t i = 0; i < ni->n_pods; i++)
        take_pod(p, s, ni->pods[i]);
    s->share = share_of(n, s->cpu_milli, s->memory_bytes);
    qsort_r(s->v, s->n, sizeof(*s->v), by_size, &(struct by_size){p, n});
    if (bh_labels_get(bh_rec_at(n, n->labels, struct bh_kv), n->labels.n, p->control_plane,
                      &ignored))
        s->held = ""; /* what it has besides pods is not known */
    if (n->flags & BH_NODE_UNSCHEDULABLE)
        s->room_cpu_milli = s->room_memory_bytes = 0;
}

/* Those that may be freed first, the emptiest before. */
static int by_share(const void *a, const void *b, void *arg)
{
    const struct site *x = a, *y = b;
    int c = BH_CMP(x->held != NULL, y->held != NULL);

    c = c ? c : BH_CMP(x->share, y->share);
    c = c ? c : BH_CMP(x->n, y->n);
    return c ? c : strcmp(node_text(arg, x->name), node_text(arg, y->name));
}

static void open_plan(struct plan *p, struct bh_offline *w, struct bh_arena *a,
                      const struct bh_rebalance_options *o)
{
    size_t n = 0;

    *p = (struct plan){.w = w, .a = a, .o = o, .wave = 1};
    p->control_plane = bh_sym_internc(tab(p), "node-role.kubernetes.io/control-plane");
    p->moves = bh_json_new(a, BH_JSON_ARRAY);
    p->freed = bh_json_new(a, BH_JSON_ARRAY);
    p->empty = bh_json_new(a, BH_JSON_ARRAY);
    p->kept = bh_json_new(a, BH_JSON_ARRAY);
    p->place = bh_json_new(a, BH_JSON_ARRAY);
    bh_engine_each_object(w->engine, BH_KIND_PODDISRUPTIONBUDGET, count_budget, &n);
    p->budgets = bh_arena_new_array(a, struct budget, n);
    bh_engine_each_object(w->engine, BH_KIND_PODDISRUPTIONBUDGET, add_budget, p);
    bh_engine_each_node(w->engine, take_node, p);
    for (size_t i = 0; i < p->n_sites && o->nodes; i++) {
        const struct bh_node_rec *node = bh_engine_find_node(w->engine, p->sites[i].name);
        if (!bh_selector_match_labels(o->nodes, bh_rec_at(node, node->labels, struct bh_kv),
                                      node->labels.n, tab(p)))
            p->sites[i].held = ""; /* not asked about */
    }
    qsort_r(p->sites, p->n_sites, sizeof(*p->sites), by_share, p);
    while (p->n_free < p->n_sites && !p->sites[p->n_free].held)
        p->n_free++;
}

static struct bh_json *close_plan(struct plan *p)
{
    for (size_t i = 0; i < p->n_sites; i++)
        for (uint32_t k = 0; k < p->sites[i].n; k++)
            bh_engine_shape_unref(p->w->engine, p->sites[i].v[k].shape);
    for (size_t i = 0; i < p->n_sites; i++)
        free(p->sites[i].was);
    for (size_t i = 0; i < p->n_budgets; i++)
        bh_selector_free(p->budgets[i].selector);
    bh_umap_fini(&p->covers);
    struct bh_json *doc = bh_json_make(
        p->a,
        "apiVersion: 'berth/v1', kind: RebalancePlan, nodes: %zu, waves: %u, empty: %p, free: %p, "
        "place: %p, moves: %p, kept: %p",
        p->n_sites, p->n_moves ? p->wave : 0, p->empty, p->freed, p->place, p->moves, p->kept);
    free(p->sites);
    return doc;
}

/* ---- nodes open and close -------------------------------------------------------------------- */

static void shut(struct plan *p, struct site *s)
{
    const struct bh_node_rec *n = bh_engine_find_node(p->w->engine, s->name);
    BH_CLEANUP(bh_freep) struct bh_node_rec *closed = bh_memdup(n, n->h.size);

    s->was = bh_memdup(n, n->h.size);
    closed->flags |= BH_NODE_UNSCHEDULABLE;
    bh_engine_put_node(p->w->engine, closed);
}

static void reopen(struct plan *p, struct site *s)
{
    bh_engine_put_node(p->w->engine, s->was);
    free(s->was);
    s->was = NULL;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static struct bh_pending pending(const struct mover *m)
{
    return (struct bh_pending){.pod = m->rec, .shape = m->shape};
}

/* NULL: it is on m->to now. Else why it fits nowhere; *ret_room: for want of resources. */
static const char *place(struct plan *p, struct mover *m, bool *ret_room)
{
    const struct bh_pending q = pending(m);
    const struct bh_status *refused = NULL;
    const struct bh_decision *d = bh_offline_decide(p->w, &q, &m->to, &refused);

    *ret_room = false;
    if (d->kind == BH_DECIDED && (!refused || refused->code == BH_WAIT))
        return NULL;
    const char *why = bh_arena_strdup(p->a, d->kind == BH_DECIDED ? bh_status_message(p->a, refused)
                                                                  : d->message);
    if (d->kind == BH_DECIDED)
        bh_offline_give_back(p->w, &q, m->to);
    for (uint32_t i = 0; d->kind == BH_NO_FIT && i < d->n_unschedulable_plugins; i++)
        *ret_room |= bh_streq(d->unschedulable_plugins[i], "NodeResourcesFit");
    m->to = BH_SYM_NONE;
    return why;
}

static void put_back(struct plan *p, struct mover *m)
{
    const struct bh_pending q = pending(m);

    if (m->to != BH_SYM_NONE)
        bh_offline_give_back(p->w, &q, m->to);
    m->to = BH_SYM_NONE;
    bh_engine_put_pod(p->w->engine, m->was, m->shape);
}

static void write_down(struct plan *p, const struct mover *m)
{
    struct budget *b = m->cover->n ? m->cover->one : NULL;

    if (b && !b->left) {
        p->wave++;
        for (size_t i = 0; i < p->n_budgets; i++)
            p->budgets[i].left = p->budgets[i].allowed;
    }
    if (b)
        b->left--;
    p->n_moves++;
    bh_json_append(p->a, p->moves,
                   "wave: %u, namespace: %s, name: %s, uid: %s, from: %s, to: %s, budget?: %s",
                   p->wave, bh_rec_text(m->was, m->was->namespace_).p,
                   bh_rec_text(m->was, m->was->name).p, bh_rec_text(m->was, m->was->uid).p,
                   node_text(p, m->was->node), node_text(p, m->to), b ? b->name : NULL);
}

static void keep(struct plan *p, const struct site *s, const char *why)
{
    bh_json_append(p->a, p->kept, "node: %s, reason: %s", node_text(p, s->name), why);
}

/* ---- nodes to be freed ----------------------------------------------------------------------- */

/* The largest number of nodes, the emptiest first, whose pods could fit on the others if nothing but
 * cpu and memory counted: closing more of them would only be taken back. */
static size_t at_most(const struct plan *p, size_t first)
{
    bh_sum cpu = 0, memory = 0, need_cpu = 0, need_memory = 0;
    size_t n = first;

    for (size_t i = first; i < p->n_sites; i++) {
        cpu += p->sites[i].room_cpu_milli;
        memory += p->sites[i].room_memory_bytes;
    }
    for (; n < p->n_free && (!p->o->max_nodes || n - first < p->o->max_nodes); n++) {
        const struct site *s = &p->sites[n];
        need_cpu += s->cpu_milli;
        need_memory += s->memory_bytes;
        cpu -= s->room_cpu_milli;
        memory -= s->room_memory_bytes;
        if (need_cpu > cpu || need_memory > memory)
            break;
    }
    return n;
}

/* All pods of the node elsewhere, or none. *last: nodes from there on are open; one more opens when
 * there is no room. NULL, or why not. */
static const char *clear(struct plan *p, size_t at, size_t *last)
{
    struct site *s = &p->sites[at];
    const char *why = NULL;
    bool room;

    if (p->o->max_moves && p->n_moves + s->n > p->o->max_moves)
        return bh_arena_printf(p->a, "its %u pods would be more than %u moves", s->n,
                               p->o->max_moves);
    for (uint32_t i = 0; i < s->n && !why; i++) {
        bh_engine_del_pod(p->w->engine, bh_rec_text(s->v[i].was, s->v[i].was->uid));
        for (why = place(p, &s->v[i], &room); why && room && *last > at + 1;
             why = place(p, &s->v[i], &room))
            reopen(p, &p->sites[--*last]);
        if (!why)
            continue;
        why = bh_arena_printf(p->a, "pod %s/%s: %s",
                              bh_rec_text(s->v[i].was, s->v[i].was->namespace_).p,
                              bh_rec_text(s->v[i].was, s->v[i].was->name).p, why);
        for (uint32_t k = 0; k <= i; k++)
            put_back(p, &s->v[k]);
    }
    return why;
}

struct bh_json *bh_offline_free_nodes(struct bh_offline *w, struct bh_arena *a,
                                      const struct bh_rebalance_options *o)
{
    size_t first = 0, last;
    struct plan p;

    w->o.flags = BH_NO_PREEMPTION;
    open_plan(&p, w, a, o);
    for (; first < p.n_free && !p.sites[first].n; first++) {
        bh_json_push(p.empty, bh_json_new_cstr(a, node_text(&p, p.sites[first].name)));
        shut(&p, &p.sites[first]);
    }
    last = at_most(&p, first);
    const size_t wanted = last;
    for (size_t i = first; i < last; i++)
        shut(&p, &p.sites[i]);
    for (size_t i = first; i < last; i++) {
        struct site *s = &p.sites[i];
        const char *why = clear(&p, i, &last);
        if (o->progress)
            o->progress(o->arg, i + 1, last);
        if (why) {
            reopen(&p, s);
            keep(&p, s, why);
            continue;
        }
        bh_json_push(p.freed, bh_json_new_cstr(a, node_text(&p, s->name)));
        for (uint32_t k = 0; k < s->n; k++)
            write_down(&p, &s->v[k]);
    }
    for (size_t i = last; i < p.n_sites; i++)
        if (!p.sites[i].held || *p.sites[i].held)
            keep(&p, &p.sites[i],
                 p.sites[i].held ? p.sites[i].held
                 : o->max_nodes && i >= wanted && wanted - first == o->max_nodes
                     ? "more nodes than asked for"
                     : "no room for its pods elsewhere");
    return close_plan(&p);
}

/* ---- room for pods that wait ----------------------------------------------------------------- */

/* As the most important pod of all preemption may choose any other one. One reference. */
static bh_shape_id raised(struct plan *p, const struct bh_shape_rec *s)
{
    BH_CLEANUP(bh_freep) struct bh_shape_rec *copy = bh_memdup(s, s->h.size);

    copy->priority = INT32_MAX;
    copy->flags &= ~(uint32_t)BH_SHAPE_NEVER_PREEMPT;
    return bh_engine_shape(p->w->engine, copy);
}

static struct mover *mover_at(struct site *s, struct bh_str uid)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (bh_str_eq(bh_rec_text(s->v[i].was, s->v[i].was->uid), uid))
            return &s->v[i];
    return NULL;
}

/* Pods that cannot be moved become as important as those that wait: they are no victims then. */
static void protect(struct plan *p, struct site *s)
{
    const struct bh_node_info *ni = bh_engine_node_info(p->w->engine, s->name);
    BH_CLEANUP(bh_arena_fini) struct bh_arena a = {0};
    struct {
        struct bh_pod_rec *rec;
        bh_shape_id shape;
    } *v = bh_arena_array(&a, ni->n_pods, sizeof(*v));
    uint32_t n = 0;

    for (uint32_t i = 0; i < ni->n_pods; i++) {
        const struct bh_pod_info *x = ni->pods[i];
        if (mover_at(s, bh_rec_text(x->rec, x->rec->uid)))
            continue;
        v[n].rec = memcpy(bh_arena_alloc(&a, x->rec->h.size), x->rec, x->rec->h.size);
        v[n++].shape = raised(p, x->shape);
    }
    for (uint32_t i = 0; i < n; i++) { /* the list of pods changes here */
        bh_engine_put_pod(p->w->engine, v[i].rec, v[i].shape);
        bh_engine_shape_unref(p->w->engine, v[i].shape);
    }
}

/* The pods that preemption chose, taken off their node; NULL: one of them was moved before. */
static struct mover **take_victims(struct plan *p, struct site *s, const struct bh_decision *d,
                                   uint32_t *ret_n)
{
    struct mover **v = bh_arena_new_array(p->a, struct mover *, d->n_victims);
    bool all = true;

    *ret_n = d->n_victims;
    for (uint32_t i = 0; i < d->n_victims; i++) {
        v[i] = mover_at(s, d->victims[i].uid);
        all &= v[i] && v[i]->to == BH_SYM_NONE;
    }
    for (uint32_t i = 0; all && i < *ret_n; i++) /* d is over with the first */
        bh_engine_del_pod(p->w->engine, bh_rec_text(v[i]->was, v[i]->was->uid));
    return all ? v : NULL;
}

/* q onto the node of s, the victims elsewhere, or all as before. */
static bool swap(struct plan *p, struct site *s, const struct bh_pending *q,
                 const struct bh_decision *d)
{
    uint32_t n, placed = 0;
    struct mover **v = take_victims(p, s, d, &n);
    struct mover waits = {.rec = bh_memdup(q->pod, q->pod->h.size), .shape = q->shape};
    bool room, in = v && !place(p, &waits, &room);

    for (; in && placed < n && !place(p, v[placed], &room); placed++)
        ;
    if (in && placed == n) {
        for (uint32_t i = 0; i < n; i++)
            write_down(p, v[i]);
        bh_json_append(p->a, p->place, "namespace: %s, name: %s, node: %s",
                       bh_rec_text(q->pod, q->pod->namespace_).p,
                       bh_rec_text(q->pod, q->pod->name).p, node_text(p, waits.to));
    } else {
        if (in)
            bh_offline_give_back(p->w, &(struct bh_pending){.pod = waits.rec, .shape = q->shape},
                                 waits.to);
        for (uint32_t i = 0; v && i < n; i++)
            put_back(p, v[i]);
        in = false;
    }
    free(waits.rec);
    return in;
}

static struct site *site_of(struct plan *p, bh_sym node)
{
    for (size_t i = 0; i < p->n_sites; i++)
        if (p->sites[i].name == node)
            return &p->sites[i];
    return NULL;
}

/* Where preemption would put it first, then, with that node closed, where else ... NULL: it has a
 * place. Else why not. */
static const char *let_in(struct plan *p, const struct bh_pending *q)
{
    const char *why = NULL;
    bool in = false;

    for (size_t tries = 0; !in && tries <= p->n_sites; tries++) {
        p->w->o.flags = 0;
        const struct bh_decision *d = bh_engine_schedule(p->w->engine, q, 0, p->w->now_ns);
        bh_sym node = d->kind == BH_DECIDED ? d->node : d->nominated_node;
        struct site *s = site_of(p, node);
        p->w->o.flags = BH_NO_PREEMPTION;
        if (!why && d->kind != BH_DECIDED)
            why = bh_arena_strdup(p->a, d->fit_message ? d->fit_message : d->message);
        if (!s || s->was) /* nowhere, or it does not mind that the node is closed */
            break;
        in = swap(p, s, q, d);
        if (!in)
            shut(p, s);
    }
    for (size_t i = 0; i < p->n_sites; i++)
        if (p->sites[i].was)
            reopen(p, &p->sites[i]);
    return in ? NULL : why ? why : "the node that was found refuses it";
}

struct bh_json *bh_offline_make_room(struct bh_offline *w, struct bh_arena *a,
                                     const struct bh_rebalance_options *o,
                                     const struct bh_pending *pods, size_t n, struct bh_err *err)
{
    const char *why = NULL;
    struct plan p;

    open_plan(&p, w, a, o);
    for (size_t i = 0; i < p.n_sites; i++)
        protect(&p, &p.sites[i]);
    for (size_t i = 0; i < n && !why; i++) {
        bh_shape_id id = raised(&p, bh_engine_shape_rec(w->engine, pods[i].shape));
        why = let_in(&p, &(struct bh_pending){.pod = pods[i].pod, .shape = id});
        bh_engine_shape_unref(w->engine, id);
        if (why)
            (void)bh_err_set(err, -ENOSPC, "no moves make room for pod %s/%s: %s",
                             bh_rec_text(pods[i].pod, pods[i].pod->namespace_).p,
                             bh_rec_text(pods[i].pod, pods[i].pod->name).p, why);
    }
    if (!why && o->max_moves && p.n_moves > o->max_moves) {
        why = "";
        (void)bh_err_set(err, -ENOSPC, "it takes %u moves, more than %u", p.n_moves, o->max_moves);
    }
    struct bh_json *doc = close_plan(&p);
    return why ? NULL : doc;
}
