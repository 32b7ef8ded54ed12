/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/console/compare.c - what another scheduler chose, and what Berth would have chosen
 */
#include "simulator/console/compare.h"

#include "common/base/log.h"
#include "scheduler/explain/explain.h"
#include "simulator/offline/offline.h"

#define BURST_MAX      1000
#define BURST_QUIET_NS 100000000 /* no binding for this long ends it */
#define DECODED_MAX(n) (((size_t)4 << 20) + 64 * (size_t)(n))

enum how { SAME, TIE, LOWER_SCORE, INFEASIBLE, NO_NODE, HOW_COUNT };
static const char *const how_names[] = {"same", "tie", "lowerScore", "infeasible", "noNode"};

struct difference {
    struct bh_arena a;
    struct bh_json *doc;
};
struct bound { /* a binding that is not compared yet, and does not count yet */
    struct bh_sim_obj *old, *now;
    int32_t priority;
    uintptr_t age;
};
struct bh_comparison {
    struct bh_sim *sim;
    struct bh_offline w;
    struct bh_arena decoded;
    uint64_t count[HOW_COUNT],
        others; /* others: pods of schedulers that Berth does not stand for */
    struct difference last[BH_COMPARISON_LISTED]; /* a ring */
    uint64_t n_told;
    struct bound burst[BURST_MAX];
    size_t n_burst;
    struct bh_sim_timer *quiet;
    struct bh_map age; /* uid of a pending pod -> when it came, as a number that rises */
    uintptr_t newest;
};

/* ---- one binding ----------------------------------------------------------------------------- */

static const struct bh_json *about_node(const struct bh_json *list, const char *node)
{
    bh_json_each(v, list)
        if (bh_streq(bh_json_get_text(v, "node"), node))
            return v;
    return NULL;
}

/* The plugins that made the difference, as text and as a list; largest weights are not first: the
 * order is the profile's. */
static struct bh_json *scores(struct bh_arena *a, const struct bh_json *berth,
                              const struct bh_json *theirs, struct bh_buf *text)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY);
    const struct bh_json *t = bh_json_first(bh_json_get_list(theirs, "plugins"));

    bh_json_each(b, bh_json_get_list(berth, "plugins")) {
        int64_t mine = bh_json_get_i64(b, "weighted", 0);
        int64_t other = bh_json_get_i64(t, "weighted", 0);
        const char *plugin = bh_json_get_text(b, "plugin");
        bh_json_append(a, list, "plugin: %s, berth: %ld, actual: %ld", plugin, mine, other);
        if (mine != other)
            bh_buf_addf(text, "%s%s %lld against %lld", text->n ? ", " : "", plugin,
                        (long long)mine, (long long)other);
        t = t ? t->next : NULL;
    }
    return list;
}

static const char *reasons(struct bh_arena *a, const struct bh_json *verdict)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};

    bh_json_each(r, bh_json_get_list(verdict, "reasons"))
        bh_buf_addf(&b, "%s%s", b.n ? ", " : "", bh_json_cstr(r) ? bh_json_cstr(r) : "");
    return bh_arena_strdup(a, bh_buf_str(&b));
}

/* What differs, from the explanation x of Berth's decision; node: where the pod is. */
static enum how explain(struct bh_arena *a, const struct bh_json *x, const char *node,
                        struct bh_json *doc)
{
    const char *own = bh_json_get_text(x, "nodeName");
    const struct bh_json *theirs = about_node(bh_json_get_list(x, "ranking"), node);
    const struct bh_json *no = about_node(bh_json_get_list(x, "rejected"), node);
    BH_CLEANUP(bh_buf_fini) struct bh_buf text = {0};

    bh_json_add(a, doc, "berth?: %s", own);
    if (theirs) {
        const struct bh_json *mine = about_node(bh_json_get_list(x, "ranking"), own);
        struct bh_json *list = scores(a, mine, theirs, &text);
        bh_json_add(a, doc, "why: %s, total: {berth: %ld, actual: %ld}, scores: %p",
                    bh_buf_str(&text), (long)bh_json_get_i64(mine, "total", 0),
                    (long)bh_json_get_i64(theirs, "total", 0), list);
        return LOWER_SCORE;
    }
    if (!no) /* PreFilter: of the pod as a whole, or of all nodes but some */
        no = bh_json_get(x, "preFilter") ? bh_json_get(x, "preFilter")
                                         : bh_json_path(x, "preFilterSubset.others");
    const char *plugin = bh_json_get_text(no, "plugin");
    if (no)
        bh_json_add(a, doc, "why: %s, plugin: %s",
                    bh_arena_printf(a, "%s: %s", plugin, reasons(a, no)), plugin);
    else
        bh_json_add(a, doc, "why: %s",
                    about_node(bh_json_get_list(x, "ranking"), own)
                        ? "the node is not known here"
                        : bh_json_get_text(x, "message"));
    if (*own)
        return INFEASIBLE;
    bh_json_add(a, doc, "message: %s", bh_json_get_text(x, "message"));
    return NO_NODE;
}

static void keep(struct bh_comparison *c, const struct bh_sim_obj *pod, const struct bh_json *x,
                 int64_t now_ns)
{
    struct difference *d = &c->last[c->n_told++ % BH_COMPARISON_LISTED];
    char when[32];

    bh_arena_reset(&d->a);
    bh_time_format_ns(when, now_ns);
    d->doc = bh_json_make(&d->a, "time: %s, namespace: %s, name: %s, uid: %s, node: %s", when,
                          pod->ns, pod->name, pod->uid, pod->node_name);
    enum how how = explain(&d->a, x, pod->node_name, d->doc);
    bh_json_add(&d->a, d->doc, "how: %s", how_names[how]);
    c->count[how]++;
}

static enum how decide(struct bh_comparison *c, const struct bh_pending *p, bh_sym node,
                       const struct bh_decision **ret)
{
    const struct bh_decision *d = bh_engine_schedule(c->w.engine, p, BH_NO_PREEMPTION, c->w.now_ns);

    *ret = d;
    if (d->kind == BH_DECIDED && d->node == node)
        return SAME;
    *ret = d = bh_engine_schedule(c->w.engine, p, BH_EXPLAIN | BH_NO_PREEMPTION, c->w.now_ns);
    for (uint32_t i = 0; i < d->n_best; i++)
        if (d->best[i] == node)
            return TIE;
    return HOW_COUNT;
}

/* pod: as it waited; now: with its node. */
static void compare(struct bh_comparison *c, const struct bh_offline_object *pod,
                    const struct bh_sim_obj *now)
{
    struct bh_engine *e = c->w.engine;
    struct bh_symtab *tab = bh_engine_symtab(e);
    const struct bh_decision *d;
    struct bh_arena a BH_CLEANUP(bh_arena_fini) = {0};

    if (!bh_engine_responsible(e, bh_sym_text(tab, pod->shape->scheduler_name))) {
        c->others++;
        return;
    }
    const struct bh_pending p = {.pod = pod->pod, .shape = bh_engine_shape(e, pod->shape)};
    bh_sym node = bh_sym_find(tab, now->node_name, strlen(now->node_name));
    enum how how = decide(c, &p, node, &d);
    if (how == HOW_COUNT) {
        struct bh_explain_subject subject = bh_explain_subject_of(e, &p);
        keep(c, now, bh_explain_decision(&a, &subject, tab, d), c->w.now_ns);
    } else {
        c->count[how]++;
    }
    bh_engine_shape_unref(e, p.shape);
}

/* ---- commits --------------------------------------------------------------------------------- */

static int read_object(struct bh_comparison *c, const struct bh_sim_obj *o,
                       const struct bh_kind_info *k, struct bh_offline_object *ret,
                       struct bh_err *err)
{
    struct bh_json *tree;

    c->decoded.limit_bytes = DECODED_MAX(o->json_n);
    int rc = bh_json_parse(&c->decoded, o->json, o->json_n, BH_JSON_NUL, &tree, err);
    return rc < 0 ? rc : bh_offline_read(c->w.engine, &c->decoded, k, tree, ret, err);
}

/* The room that a waiting pod was promised counts for others, as at the other scheduler. */
static void promise(struct bh_comparison *c, const struct bh_offline_object *x)
{
    struct bh_pending p = {.pod = x->pod, .shape = bh_engine_shape(c->w.engine, x->shape)};

    if (x->pod->nominated_node != BH_SYM_NONE)
        bh_engine_nominate(c->w.engine, &p, x->pod->nominated_node);
    else
        bh_engine_unnominate(c->w.engine, bh_rec_text(x->pod, x->pod->uid));
    bh_engine_shape_unref(c->w.engine, p.shape);
}

static void put(struct bh_comparison *c, const struct bh_kind_info *k, const struct bh_sim_obj *o)
{
    struct bh_offline_object x;
    struct bh_err err = {0};
    int rc = read_object(c, o, k, &x, &err);

    if (rc == 0)
        rc = bh_offline_put(&c->w, &x, &err);
    if (rc == 0 && x.pod && !*o->node_name)
        promise(c, &x);
    if (rc < 0)
        bh_log_error("Skipping an object that cannot be read", bh_kv_s("kind", k->kind_name),
                     bh_kv_s("name", o->name), bh_kv_s("err", err.msg));
}

/* ---- bindings of one moment ------------------------------------------------------------------ */

/* As the queue pops: priority, then age. */
static int by_turn(const void *a, const void *b)
{
    const struct bound *x = a, *y = b;

    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return (x->age > y->age) - (x->age < y->age);
}

static void end_burst(void *arg)
{
    struct bh_comparison *c = arg;
    const struct bh_kind_info *k = &bh_kinds[BH_KIND_POD];
    struct bh_offline_object x;
    struct bh_err err = {0};

    c->quiet = NULL;
    if (c->n_burst)
        qsort(c->burst, c->n_burst, sizeof(*c->burst), by_turn);
    for (size_t i = 0; i < c->n_burst; i++) {
        struct bound *b = &c->burst[i];
        const struct bh_sim_obj *cur = bh_sim_get(c->sim, b->now->type, b->now->ns, b->now->name);
        if (read_object(c, b->old, k, &x, &err) == 0)
            compare(c, &x, b->now);
        put(c, k, cur && bh_streq(cur->uid, b->now->uid) ? cur : b->now);
        bh_arena_reset(&c->decoded);
        bh_sim_obj_unref(b->old);
        bh_sim_obj_unref(b->now);
    }
    c->n_burst = 0;
}

static void end_burst_now(struct bh_comparison *c)
{
    bh_sim_cancel(c->quiet);
    end_burst(c);
}

static bool in_burst(const struct bh_comparison *c, const char *uid)
{
    for (size_t i = 0; i < c->n_burst; i++)
        if (bh_streq(c->burst[i].now->uid, uid))
            return true;
    return false;
}

static void add_to_burst(struct bh_comparison *c, struct bh_sim_obj *old, struct bh_sim_obj *now,
                         uintptr_t age)
{
    struct bh_offline_object x;
    struct bh_err err = {0};

    if (read_object(c, old, &bh_kinds[BH_KIND_POD], &x, &err) < 0)
        return;
    if (c->n_burst == BURST_MAX)
        end_burst_now(c);
    c->burst[c->n_burst++] = (struct bound){.old = bh_sim_obj_ref(old),
                                            .now = bh_sim_obj_ref(now),
                                            .priority = x.shape->priority,
                                            .age = age};
    bh_sim_cancel(c->quiet);
    c->quiet = bh_sim_after(c->sim, BURST_QUIET_NS, end_burst, c);
}

/* A pod's age ends with its waiting. */
static uintptr_t age_of(struct bh_comparison *c, enum bh_sim_change change,
                        const struct bh_sim_obj *obj)
{
    size_t n = strlen(obj->uid);
    uintptr_t age = (uintptr_t)bh_map_get(&c->age, obj->uid, n);

    if (change == BH_SIM_DELETED || *obj->node_name)
        (void)bh_map_del(&c->age, obj->uid, n);
    else if (!age)
        (void)bh_map_put(&c->age, obj->uid, n, (void *)++c->newest);
    return age;
}

void bh_comparison_commit(struct bh_comparison *c, enum bh_sim_change change,
                          struct bh_sim_obj *old, struct bh_sim_obj *obj, bool count)
{
    char version[80];

    bh_sim_type_api_version(obj->type, version);
    const struct bh_kind_info *k = bh_kind_find(version, obj->type->kind);
    if (!k)
        return;
    bool pod = k->kind == BH_KIND_POD, gone = change == BH_SIM_DELETED;
    uintptr_t age = pod ? age_of(c, change, obj) : 0;
    c->w.now_ns = bh_sim_now_ns(c->sim);
    if (pod && !gone && in_burst(c, obj->uid))
        return; /* its newest state is taken in the end */
    if (pod && !gone && count && old && !*old->node_name && *obj->node_name) {
        add_to_burst(c, old, obj, age);
    } else {
        /* What came after a binding had no part in it. */
        if (k->kind == BH_KIND_NODE || (pod && gone && *obj->node_name))
            end_burst_now(c);
        if (gone)
            bh_offline_del(&c->w, k->kind, obj->ns, pod ? obj->uid : obj->name);
        else
            put(c, k, obj);
    }
    bh_arena_reset(&c->decoded);
}

/* ---- telling --------------------------------------------------------------------------------- */

void bh_comparison_tell(const struct bh_comparison *c, struct bh_arena *a, struct bh_json *doc)
{
    struct bh_json *list = bh_json_new(a, BH_JSON_ARRAY),
                   *different = bh_json_new(a, BH_JSON_OBJECT);
    uint64_t agreed = c->count[SAME] + c->count[TIE], all = agreed;

    for (unsigned i = LOWER_SCORE; i < HOW_COUNT; i++) {
        bh_json_set_i64(a, different, how_names[i], (int64_t)c->count[i]);
        all += c->count[i];
    }
    for (uint64_t i = c->n_told; i-- > 0 && c->n_told - i <= BH_COMPARISON_LISTED;)
        bh_json_push(list, bh_json_clone(a, c->last[i % BH_COMPARISON_LISTED].doc));
    bh_json_add(a, doc,
                "compared: %lu, agreed: %lu, same: %lu, tie: %lu, different: %p, "
                "otherSchedulers: %lu, differences: %p",
                all, agreed, c->count[SAME], c->count[TIE], different, c->others, list);
}

/* ---- life ------------------------------------------------------------------------------------ */

int bh_comparison_new(struct bh_sim *s, const struct bh_sched_config *config,
                      struct bh_comparison **ret, struct bh_err *err)
{
    struct bh_comparison *c = bh_calloc(1, sizeof(*c));
    const struct bh_offline_options o = {
        .config = config, .tie_break = BH_TIE_FIRST, .no_queue = true, .now_ns = bh_sim_now_ns(s)};
    int rc = bh_offline_init(&c->w, &o, err);

    *ret = c;
    c->sim = s;
    for (size_t i = 0; rc == 0 && i < bh_sim_n_types; i++) {
        if (!bh_sim_type_stores(&bh_sim_types[i]))
            continue;
        BH_CLEANUP(bh_sim_objs_fini)
        struct bh_sim_objs l = bh_sim_listed(s, &bh_sim_types[i], NULL);
        for (size_t n = 0; n < l.n; n++)
            bh_comparison_commit(c, BH_SIM_ADDED, NULL, l.v[n], false);
    }
    return rc;
}

void bh_comparison_free(struct bh_comparison *c)
{
    if (!c)
        return;
    bh_sim_cancel(c->quiet);
    for (size_t i = 0; i < c->n_burst; i++) {
        bh_sim_obj_unref(c->burst[i].old);
        bh_sim_obj_unref(c->burst[i].now);
    }
    bh_map_fini(&c->age);
    for (size_t i = 0; i < BH_COMPARISON_LISTED; i++)
        bh_arena_fini(&c->last[i].a);
    bh_arena_fini(&c->decoded);
    bh_offline_fini(&c->w);
    free(c);
}
