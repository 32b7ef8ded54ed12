/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/offline/fixes_group.c - what would make all of a group fit
 *
 * The changes are those of its first member without room, and each is made to every member. Nodes are
 * not one more, but as many as the group needs.
 */
#include "simulator/offline/fixes_int.h"

#include "proto/kubernetes/kubernetes.pb-c.h"

#define LIKES_MAX   3u /* nodes that new ones are made like */
#define PLACES_MAX  3u /* topology domains that new ones are put into */
#define VICTIMS_MAX 4u /* that are named */

struct shape { /* members of one shape, and the shape with the change in force */
    bh_shape_id was, is;
};
struct group {
    const struct bh_offline_members *m;
    struct bh_group_try *try;
    struct shape *shapes; /* as many as members at most */
    uint32_t n_shapes;
};

/* ---- the members with a change ---------------------------------------------------------------- */

/* The shape of the member with the patch; its own when it cannot be read. */
static bh_shape_id changed(struct bh_fixes *f, uint32_t i, const struct bh_json *patch)
{
    const struct group *g = f->arg;
    const char *text = g->m->objects[i];
    struct bh_engine *e = f->w->engine;
    struct bh_offline_object x;
    struct bh_json *pod = NULL;
    struct bh_err err;

    if (text && bh_json_parse(f->a, text, strlen(text), BH_JSON_NUL, &pod, &err) == 0)
        pod = bh_fixes_patched(f, "Pod", pod, patch);
    if (pod && bh_offline_read(e, f->a, &bh_kinds[BH_KIND_POD], pod, &x, &err) >= 0)
        return bh_engine_shape(e, x.shape);
    return bh_engine_shape(e, bh_engine_shape_rec(e, g->m->v[i].shape));
}

/* Members of one shape are alike: each shape is read once. */
static void take_members(struct bh_fixes *f, const struct bh_json *patch)
{
    struct group *g = f->arg;

    g->n_shapes = 0;
    for (uint32_t i = 0; i < g->m->n; i++) {
        uint32_t k = 0;
        g->try[i] = (struct bh_group_try){.pod = g->m->v[i]};
        if (!patch)
            continue;
        while (k < g->n_shapes && g->shapes[k].was != g->m->v[i].shape)
            k++;
        if (k == g->n_shapes)
            g->shapes[g->n_shapes++] =
                (struct shape){.was = g->m->v[i].shape, .is = changed(f, i, patch)};
        g->try[i].pod.shape = g->shapes[k].is;
    }
}

static void give_members_back(struct bh_fixes *f)
{
    struct group *g = f->arg;

    for (uint32_t i = g->m->n; i-- > 0;)
        if (g->try[i].assumed)
            bh_offline_give_back(f->w, &g->try[i].pod, g->try[i].node);
    while (g->n_shapes)
        bh_engine_shape_unref(f->w->engine, g->shapes[--g->n_shapes].is);
}

/* ---- the group's own priority ----------------------------------------------------------------- */

static struct bh_json *group_object(struct bh_fixes *f)
{
    const struct group *g = f->arg;

    return bh_fixes_object(f, BH_KIND_PODGROUP, g->m->ns, g->m->name);
}

/* With WorkloadAwarePreemption it is the group's priority that counts. */
static void put_priority(struct bh_fixes *f, const struct bh_fix *x, struct bh_json *object)
{
    const struct bh_json *priority = bh_json_path(x->pod, "spec.priority");
    struct bh_err err;

    if (object && x->alone && priority)
        bh_json_set(f->a, bh_json_get(object, "spec"), "priority", bh_json_clone(f->a, priority));
    if (object && x->alone)
        (void)bh_offline_put_tree(f->w, f->a, &bh_kinds[BH_KIND_PODGROUP], object, &err);
}

/* ---- how the group comes out ------------------------------------------------------------------- */

static void add_victims(struct bh_arena *a, struct bh_json *list, const struct bh_victim *v,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        bh_json_append(a, list, "namespace: %s, name: %s", v[i].namespace_.p, v[i].name.p);
}

static const char *evicting(struct bh_fixes *f, const struct bh_json *victims)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    uint32_t n = 0;

    bh_json_each(v, victims)
        if (n++ < VICTIMS_MAX)
            bh_buf_addf(&b, "%s%s/%s", b.n ? ", " : "", bh_json_get_text(v, "namespace"),
                        bh_json_get_text(v, "name"));
    return bh_arena_printf(f->a, "fits after evicting %u %s: %s%s", n, n == 1 ? "pod" : "pods",
                           bh_buf_str(&b), n > VICTIMS_MAX ? ", ..." : "");
}

/* It would go if others went. */
static struct bh_json *preempts(struct bh_fixes *f, const struct bh_group_result *r)
{
    const struct group *g = f->arg;
    struct bh_json *victims = bh_json_new(f->a, BH_JSON_ARRAY);

    add_victims(f->a, victims, r->victims, r->n_victims);
    for (uint32_t i = 0; i < g->m->n; i++)
        if (g->try[i].preempts)
            add_victims(f->a, victims, g->try[i].decision.victims, g->try[i].decision.n_victims);
    return bh_json_make(f->a,
                        "result: Unschedulable, outcome: %s, preemption: {nominatedNode: cluster, "
                        "victims: %p}",
                        evicting(f, victims), victims);
}

/* What the first member without room says, with the others where they have room. */
static struct bh_json *lacking(struct bh_fixes *f, const struct bh_group_result *r)
{
    const struct group *g = f->arg;
    const unsigned flags = f->w->o.flags;
    uint32_t first = 0, room = 0;

    while (first < g->m->n && g->try[first].node != BH_SYM_NONE)
        first++;
    for (uint32_t i = 0; i < g->m->n; i++) {
        const struct bh_group_try *t = &g->try[i];
        const bool has = t->node != BH_SYM_NONE && !t->preempts;
        room += has && bh_engine_assume(f->w->engine, &t->pod, t->node) == 0;
    }
    f->w->o.flags = BH_NO_PREEMPTION; /* the victims could be the other members */
    struct bh_json *e = first < g->m->n ? bh_offline_explain(f->w, &g->try[first].pod, f->a)
                                        : bh_json_new(f->a, BH_JSON_OBJECT);
    f->w->o.flags = flags;
    for (uint32_t i = g->m->n; i-- > 0;)
        if (g->try[i].node != BH_SYM_NONE && !g->try[i].preempts)
            (void)bh_engine_forget(f->w->engine,
                                   bh_rec_text(g->try[i].pod.pod, g->try[i].pod.pod->uid));
    const char *why = first < g->m->n && g->try[first].decided && !r->n_placements
                          ? bh_json_get_text(e, "fitMessage")
                          : r->message;
    bh_json_unset(e, "preemption");
    bh_json_add(f->a, e, "result: Unschedulable, outcome: %s",
                bh_arena_printf(f->a, "still room for %u of %u: %s", room, g->m->n, why));
    return e;
}

static struct bh_json *decide_group(struct bh_fixes *f, const struct bh_fix *x)
{
    const struct group *g = f->arg;
    struct bh_json *object = x->alone ? group_object(f) : NULL,
                   *was = object ? bh_json_clone(f->a, object) : NULL;
    struct bh_group_result r;
    struct bh_json *e;

    put_priority(f, x, object);
    take_members(f, x->pod);
    bh_engine_schedule_group(f->w->engine, g->try, g->m->n, 0, f->w->now_ns, &r);
    r.message = bh_arena_strdup(f->a, r.message);
    if (r.code == BH_SUCCESS)
        e = bh_json_make(f->a, "result: Scheduled, outcome: 'fits: all members have room'");
    else
        e = r.waiting ? preempts(f, &r) : lacking(f, &r);
    give_members_back(f);
    if (was)
        (void)bh_offline_put_tree(f->w, f->a, &bh_kinds[BH_KIND_PODGROUP], was, NULL);
    return e;
}

/* ---- more nodes -------------------------------------------------------------------------------- */

static bool fits_with(struct bh_fixes *f, const struct bh_json *nodes, uint32_t n)
{
    const struct group *g = f->arg;
    struct bh_group_result r;
    struct bh_err err;
    uint32_t i = 0;

    bh_json_each(o, nodes)
        if (i++ < n)
            (void)bh_offline_put_tree(f->w, f->a, &bh_kinds[BH_KIND_NODE], o, &err);
    take_members(f, NULL);
    bh_engine_schedule_group(f->w->engine, g->try, g->m->n, BH_NO_PREEMPTION, f->w->now_ns, &r);
    give_members_back(f);
    i = 0;
    bh_json_each(o, nodes)
        if (i++ < n)
            bh_offline_del(f->w, BH_KIND_NODE, "",
                           bh_json_get_text(bh_json_get(o, "metadata"), "name"));
    return r.code == BH_SUCCESS;
}

/* The fewest nodes like that one, if there are any that help; 0: so many do not. */
static uint32_t fewest(struct bh_fixes *f, const struct bh_json *nodes, uint32_t most)
{
    uint32_t low = 0, high = 1;

    while (high < most && !fits_with(f, nodes, high)) {
        low = high;
        high = BH_MIN(high * 2, most);
    }
    if (!fits_with(f, nodes, high))
        return 0;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (fits_with(f, nodes, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* One more node like that is among the changes of a single pod. */
static bool has_one_more(const struct bh_fixes *f, const char *like)
{
    const char *text = bh_arena_printf(f->a, "one more node like %s, without taints", like);

    for (unsigned i = 0; i < f->n; i++)
        if (bh_streq(f->v[i].text, text))
            return true;
    return false;
}

static void more_nodes(struct bh_fixes *f, const char *like, const char *key, const char *domain)
{
    const struct group *g = f->arg;
    const uint32_t most = BH_MIN(g->m->n, BH_FIX_OBJECTS - 8);
    struct bh_json *nodes = bh_json_new(f->a, BH_JSON_ARRAY);

    for (uint32_t i = 0; i < most; i++)
        bh_json_push(nodes,
                     bh_fixes_new_node(f, like, bh_arena_printf(f->a, "one-more-node-%u", i + 1)));
    const uint32_t n = fewest(f, nodes, most);
    if (!n || (n == 1 && has_one_more(f, like)))
        return;
    struct bh_fix *x =
        bh_fixes_add(f, "node",
                     bh_arena_printf(f->a, "%u more %s like %s, without taints%s%s%s%s", n,
                                     n == 1 ? "node" : "nodes", like, key ? ", with " : "",
                                     key ? key : "", key ? "=" : "", key ? domain : ""));
    x->create = bh_json_new(f->a, BH_JSON_ARRAY);
    uint32_t i = 0;
    bh_json_each(o, nodes)
        if (i++ < n)
            bh_json_push(x->create, bh_json_clone(f->a, o));
}

struct likes { /* nodes of different sizes, the largest first */
    struct bh_fixes *f;
    bh_sym key, value; /* of a label; NONE: any */
    struct like {
        const struct bh_node_rec *rec;
        bh_sym name;
    } v[LIKES_MAX];
    uint32_t n;
};

static bool same_size(const struct bh_node_rec *a, const struct bh_node_rec *b)
{
    return a->alloc_cpu_milli == b->alloc_cpu_milli &&
           a->alloc_memory_bytes == b->alloc_memory_bytes && a->scalars.n == b->scalars.n;
}

static bool is_larger(const struct bh_node_rec *a, const struct bh_node_rec *b)
{
    return a->alloc_cpu_milli != b->alloc_cpu_milli ? a->alloc_cpu_milli > b->alloc_cpu_milli
                                                    : a->alloc_memory_bytes > b->alloc_memory_bytes;
}

static bool has_label(const struct bh_node_rec *n, bh_sym key, bh_sym value)
{
    const struct bh_kv *l = bh_rec_at(n, n->labels, struct bh_kv);

    for (uint32_t i = 0; i < n->labels.n; i++)
        if (l[i].key == key && l[i].value == value)
            return true;
    return key == BH_SYM_NONE;
}

static void look_at(void *arg, bh_sym node)
{
    struct likes *l = arg;
    const struct bh_node_rec *n = bh_engine_find_node(l->f->w->engine, node);
    uint32_t i = 0, at = 0;

    if (!n || !has_label(n, l->key, l->value))
        return;
    for (; i < l->n; i++)
        if (same_size(l->v[i].rec, n))
            return;
    while (at < l->n && !is_larger(n, l->v[at].rec))
        at++;
    if (at == LIKES_MAX)
        return;
    l->n = BH_MIN(l->n + 1, LIKES_MAX);
    memmove(&l->v[at + 1], &l->v[at], (l->n - at - 1) * sizeof(*l->v));
    l->v[at] = (struct like){n, node};
}

static void nodes_like(struct bh_fixes *f, const char *key, const char *domain, uint32_t most)
{
    struct bh_symtab *tab = bh_engine_symtab(f->w->engine);
    struct likes l = {.f = f};

    if (key) {
        l.key = bh_sym_internc(tab, key);
        l.value = bh_sym_internc(tab, domain);
    }
    bh_engine_each_node(f->w->engine, look_at, &l);
    for (uint32_t i = 0; i < BH_MIN(l.n, most); i++)
        more_nodes(f, bh_sym_text(tab, l.v[i].name), key, domain);
}

/* Domains in which most have room come first. */
static int by_room(const void *pa, const void *pb)
{
    const struct bh_placement_try *a = pa, *b = pb;
    int cmp = BH_CMP(b->placed, a->placed);

    return cmp ? cmp : strcmp(a->name, b->name);
}

/* A copy: what the engine told goes with its next decision. */
static struct bh_placement_try *places_of(struct bh_arena *a, const struct bh_group_result *r)
{
    struct bh_placement_try *v =
        bh_arena_new_array(a, struct bh_placement_try, r->n_placements + 1);

    for (uint32_t i = 0; i < r->n_placements; i++)
        v[i] = (struct bh_placement_try){.name = bh_arena_strdup(a, r->placements[i].name),
                                         .placed = r->placements[i].placed};
    if (r->n_placements > 1)
        qsort(v, r->n_placements, sizeof *v, by_room);
    return v;
}

static const char *topology_key(struct bh_fixes *f)
{
    const struct group *g = f->arg;
    const K8s__PodGroup *m =
        (const void *)bh_engine_get_object(f->w->engine, BH_KIND_PODGROUP, g->m->ns, g->m->name);
    const K8s__PodGroupSchedulingConstraints *c =
        m && m->spec ? m->spec->schedulingconstraints : NULL;

    return c && c->n_topology ? bh_arena_strdup(f->a, c->topology[0]->key) : NULL;
}

static const char *member_names(struct bh_arena *a, const struct bh_offline_members *m)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    for (uint32_t i = 0; i < m->n; i++)
        bh_buf_addf(&b, "%s%s", i ? " " : "", bh_rec_text(m->v[i].pod, m->v[i].pod->name).p);
    return bh_arena_strdup(a, bh_buf_str(&b));
}

/* ---- all of it --------------------------------------------------------------------------------- */

struct bh_json *bh_offline_group_fixes(struct bh_offline *w, struct bh_arena *a,
                                       const struct bh_offline_members *m,
                                       const struct bh_group_try *try,
                                       const struct bh_group_result *r)
{
    struct group g = {.m = m,
                      .try = bh_arena_new_array(a, struct bh_group_try, m->n + 1),
                      .shapes = bh_arena_new_array(a, struct shape, m->n + 1)};
    struct bh_fixes f = {.w = w, .a = a, .decide = decide_group, .arg = &g};
    struct bh_json *pod = NULL;
    struct bh_err err;
    uint32_t lacks = 0;

    while (lacks < m->n && try[lacks].node != BH_SYM_NONE)
        lacks++;
    const char *object = lacks < m->n && try[lacks].decided ? m->objects[lacks] : NULL;
    if (!object || bh_json_parse(a, object, strlen(object), BH_JSON_NUL, &pod, &err) < 0)
        return NULL;
    const struct bh_group_result now = {.message = bh_arena_strdup(a, r->message),
                                        .n_placements = r->n_placements};
    const struct bh_placement_try *places = places_of(a, r);
    f.pod = pod;
    f.names = member_names(a, m);
    memcpy(g.try, try, m->n * sizeof *try);
    f.why = lacking(&f, &now);
    bh_fixes_think(&f);
    const char *key = topology_key(&f);
    for (uint32_t i = 0; key && i < BH_MIN(now.n_placements, PLACES_MAX); i++)
        nodes_like(&f, key, places[i].name, 1);
    if (!key)
        nodes_like(&f, NULL, NULL, LIKES_MAX);
    return bh_fixes_try(&f);
}
