/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/property/decide.c - decisions as text, and engines against each other
 *
 * Text is compared, because it carries no symbols, rows or pointers: two engines that agree write
 * the same, whatever they went through. What has no order upstream (reasons of one node, victims,
 * ways to make room) is sorted.
 */
#include <inttypes.h>

#include "common/base/buf.h"
#include "tests/property/property.h"

#define SEEN_MAX 24 /* pending pods that are decided for a comparison of states */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sorted_list(struct bh_buf *b, const char *what, const char **v, uint32_t n)
{
    if (n > 1)
        qsort(v, n, sizeof *v, by_text);
    bh_buf_adds(b, what);
    for (uint32_t i = 0; i < n; i++)
        bh_buf_addf(b, "%s%s", i ? ", " : " ", v[i]);
    bh_buf_addc(b, '\n');
}

static void add_status(struct bh_buf *b, struct bh_arena *a, const char *what,
                       const struct bh_status *s)
{
    const char **reasons = bh_arena_new_array(a, const char *, s->n_reasons + 1);

    bh_buf_addf(b, "%s: %s by %s", what, bh_code_name(s->code), s->plugin ? s->plugin : "nobody");
    for (uint32_t i = 0; i < s->n_reasons; i++)
        reasons[i] = s->reasons[i];
    sorted_list(b, ":", reasons, s->n_reasons);
}

static void add_names(struct bh_buf *b, struct bh_arena *a, const char *what,
                      const char *const *names, uint32_t n)
{
    const char **v = bh_arena_new_array(a, const char *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        v[i] = names[i];
    sorted_list(b, what, v, n);
}

static void add_nodes(struct bh_buf *b, struct bh_arena *a, const struct bh_symtab *tab,
                      const char *what, const bh_sym *names, uint32_t n)
{
    const char **v = bh_arena_new_array(a, const char *, n + 1);

    for (uint32_t i = 0; i < n; i++)
        v[i] = bh_sym_text(tab, names[i]);
    sorted_list(b, what, v, n);
}

static const char *room_text(struct bh_arena *a, const struct bh_symtab *tab,
                             const struct bh_preemption *p)
{
    const char **v = bh_arena_new_array(a, const char *, p->n_victims + 1);
    struct bh_buf b = {0};

    for (uint32_t i = 0; i < p->n_victims; i++)
        v[i] = bh_arena_printf(a, "%.*s/%.*s", (int)p->victims[i].namespace_.n,
                               p->victims[i].namespace_.p, (int)p->victims[i].name.n,
                               p->victims[i].name.p);
    sorted_list(&b, bh_sym_text(tab, p->node), v, p->n_victims);
    const char *text = bh_arena_printf(a, "(%.*s)", (int)(b.n - 1), b.p);
    bh_buf_fini(&b);
    return text;
}

static void add_preemption(struct bh_buf *b, struct bh_arena *a, const struct bh_symtab *tab,
                           const struct bh_decision *d)
{
    const char **v = bh_arena_new_array(a, const char *, d->n_preemptions + 1);

    for (uint32_t i = 0; i < d->n_preemptions; i++)
        v[i] = room_text(a, tab, &d->preemptions[i]);
    sorted_list(b, "makes room by", v, d->n_preemptions);
    bh_buf_addf(b, "nominates %d, clears %d, %u victims, %u violating\n",
                d->nominated_node != BH_SYM_NONE, d->clear_nomination, d->n_victims,
                d->victims_violating);
}

static void add_scores(struct bh_buf *b, const struct bh_symtab *tab, const struct bh_decision *d)
{
    for (uint32_t i = 0; i < d->n_scores; i++) {
        const struct bh_node_score *s = &d->scores[i];
        bh_buf_addf(b, "feasible %s %" PRId64, bh_sym_text(tab, s->node), s->total);
        for (uint32_t k = 0; s->plugins && k < d->n_score_plugins; k++)
            bh_buf_addf(b, " %s %" PRId64 "/%" PRId64, s->plugins[k].plugin, s->plugins[k].raw,
                        s->plugins[k].weighted);
        bh_buf_addc(b, '\n');
    }
}

const char *decision_text(struct bh_arena *a, struct bh_engine *e, const struct bh_decision *d,
                          bool rooms)
{
    const struct bh_symtab *tab = bh_engine_symtab(e);
    struct bh_buf b = {0};
    char what[300];

    if (d->kind == BH_DECISION_ERROR) /* of several errors the first one met is told */
        return bh_arena_printf(a, "error: %s\n", d->reason);
    bh_buf_addf(&b, "%s: %u feasible of %u, %s: %s\n", d->kind == BH_DECIDED ? "decided" : "no fit",
                d->feasible, d->evaluated, d->reason ? d->reason : "",
                d->message ? d->message : "");
    add_names(&b, a, "rejected by", d->unschedulable_plugins, d->n_unschedulable_plugins);
    add_names(&b, a, "pending for", d->pending_plugins, d->n_pending_plugins);
    if (d->pre_filter)
        add_status(&b, a, "PreFilter", d->pre_filter);
    add_nodes(&b, a, tab, "only", d->pre_filter_nodes, d->n_pre_filter_nodes);
    for (uint32_t i = 0; i < d->n_rejected; i++) {
        snprintf(what, sizeof what, "not %s", bh_sym_text(tab, d->rejected[i].node));
        add_status(&b, a, what, d->rejected[i].status);
    }
    add_scores(&b, tab, d);
    add_nodes(&b, a, tab, "best", d->best, d->n_best);
    if (rooms)
        add_preemption(&b, a, tab, d);
    const char *text = bh_arena_strndup(a, bh_buf_str(&b), b.n);
    bh_buf_fini(&b);
    return text;
}

void first_difference(const char *a, const char *b, char *out, size_t n)
{
    size_t line = 0;

    for (size_t i = 0;; i++) {
        if (a[i] != b[i]) {
            snprintf(out, n, "\"%.*s\" and \"%.*s\"", (int)strcspn(a + line, "\n"), a + line,
                     (int)strcspn(b + line, "\n"), b + line);
            return;
        }
        if (!a[i])
            break;
        if (a[i] == '\n')
            line = i + 1;
    }
    snprintf(out, n, "nothing");
}

const char *decide_text(struct world *w, struct bh_arena *a, const struct thing *pod)
{
    const struct bh_pending p = pending_of(w, pod, MAIN);

    return decision_text(a, w->w[MAIN].engine,
                         bh_engine_schedule(w->w[MAIN].engine, &p, BH_EXPLAIN, w->w[MAIN].now_ns),
                         !has_assumed(w));
}

/* ---- one pod, all engines -------------------------------------------------------------------- */

static bool among_best(struct world *w, const struct bh_decision *main, const char *node)
{
    for (uint32_t i = 0; i < main->n_best; i++)
        if (bh_streq(bh_sym_text(bh_engine_symtab(w->w[MAIN].engine), main->best[i]), node))
            return true;
    return false;
}

static bool among_rooms(struct world *w, const struct bh_decision *main, const char *node)
{
    for (uint32_t i = 0; i < main->n_preemptions; i++)
        if (bh_streq(bh_sym_text(bh_engine_symtab(w->w[MAIN].engine), main->preemptions[i].node),
                     node))
            return true;
    return main->n_preemptions == 0 && !*node;
}

/* Names by text: the engines have symbol tables of their own. */
static const char *name_in(struct world *w, unsigned e, bh_sym s)
{
    return s == BH_SYM_NONE ? "" : bh_sym_text(bh_engine_symtab(w->w[e].engine), s);
}

static void compare_fast(struct world *w, const struct thing *pod, const struct bh_decision *d,
                         const struct bh_decision *f)
{
    const char *node = name_in(w, FAST, f->node), *room = name_in(w, FAST, f->nominated_node);
    const char *m = d->message ? d->message : "", *fm = f->message ? f->message : "";

    /* Of several errors the first one met is told, and without explanation nobody looks further. */
    if (d->kind == BH_DECISION_ERROR && f->kind == d->kind)
        return;
    if (d->kind != f->kind || d->feasible != f->feasible || d->evaluated != f->evaluated)
        fail(w, "fast path", "%s: kind %d, %u of %u; without explanation kind %d, %u of %u",
             pod->id, d->kind, d->feasible, d->evaluated, f->kind, f->feasible, f->evaluated);
    else if (!bh_streq(m, fm) || d->n_victims != f->n_victims)
        fail(w, "fast path message", "%s: \"%s\", %u victims; without explanation \"%s\", %u",
             pod->id, m, d->n_victims, fm, f->n_victims);
    else if (w->first ? !bh_streq(node, name_in(w, MAIN, d->node))
                      : d->kind == BH_DECIDED && !among_best(w, d, node))
        fail(w, "fast path node", "%s: %s, without explanation %s", pod->id,
             name_in(w, MAIN, d->node), node);
    else if (w->first ? !bh_streq(room, name_in(w, MAIN, d->nominated_node))
                      : !among_rooms(w, d, room))
        fail(w, "fast path preemption", "%s: %s, without explanation %s", pod->id,
             name_in(w, MAIN, d->nominated_node), room);
}

const struct bh_decision *decide(struct world *w, const struct thing *pod, unsigned flags)
{
    const struct bh_pending p = pending_of(w, pod, MAIN), f = pending_of(w, pod, FAST);
    const struct bh_decision *d =
        bh_engine_schedule(w->w[MAIN].engine, &p, flags | BH_EXPLAIN, w->w[MAIN].now_ns);

    w->n->decisions++;
    w->n->decided += d->kind == BH_DECIDED;
    w->n->refused += d->kind == BH_NO_FIT;
    w->n->errors += d->kind == BH_DECISION_ERROR;
    compare_fast(w, pod, d, bh_engine_schedule(w->w[FAST].engine, &f, flags, w->w[MAIN].now_ns));
    if (!flags)
        check_suits(w, pod, d);
    return d;
}

/* ---- states against each other --------------------------------------------------------------- */

static struct thing **some_pending(struct world *w, struct bh_arena *a)
{
    struct thing **v = all_things(w, a, BH_KIND_POD);
    size_t n = 0;

    for (size_t i = 0; v[i]; i++)
        if (v[i]->place == POD_PENDING && n < SEEN_MAX)
            v[n++] = v[i];
    v[n] = NULL;
    return v;
}

static const char **texts_of(struct world *w, struct bh_arena *a, struct thing **pods)
{
    const char **v;
    size_t n = 0;

    while (pods[n])
        n++;
    v = bh_arena_new_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = decide_text(w, a, pods[i]);
    return v;
}

static void compare_states(struct world *w, const char *kind, const char *how, struct thing **pods,
                           const char **a, const char **b)
{
    char difference[4000];

    for (size_t i = 0; pods[i] && !failed(w); i++) {
        if (bh_streq(a[i], b[i]))
            continue;
        first_difference(a[i], b[i], difference, sizeof difference);
        fail(w, kind, "%s %s: %s", pods[i]->id, how, difference);
    }
}

static uint32_t features(const struct world *w)
{
    return (uint32_t)bh_json_get_i64(w->scenario, "features", F_ALL);
}

/* Outside of rebuilt_snapshot node state remembers what upstream's cache would: image counts as of
 * the node's last refresh, ports as a set. */
static bool remembers(const struct world *w)
{
    return !w->rebuilt && features(w) & (F_IMAGES | F_PORTS);
}

/* What Reserve took for an assumed pod is in no object yet. */
static bool something_reserved(const struct world *w, struct thing **all)
{
    uint32_t n = 0;

    for (; *all && !n; all++)
        if ((*all)->kind == BH_KIND_POD && (*all)->place == POD_ASSUMED)
            (void)bh_engine_prebind_work(w->w[MAIN].engine, uid_of(*all), &n);
    return n > 0;
}

void check_forget(struct world *w, const struct thing *pod, const char *node)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    /* Pods that share an unbound claim share its assumption, as upstream: the first one that gives
     * it back ends it for both. */
    if (remembers(w) || something_reserved(w, all_things(w, &a, BH_KIND_COUNT))) {
        bh_arena_fini(&a);
        return;
    }
    struct thing **others = some_pending(w, &a);
    const char **before = texts_of(w, &a, others);
    uint32_t nodes = bh_engine_node_count(w->w[MAIN].engine),
             pods = bh_engine_pod_count(w->w[MAIN].engine);
    w->n->forgets++;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct bh_pending p = pending_of(w, pod, e);
        if (bh_engine_assume(w->w[e].engine, &p, sym_in(w->w[e].engine, node)) < 0)
            fail(w, "assume", "engine %u: %s cannot be assumed", e, pod->id);
        (void)bh_engine_reserve(w->w[e].engine, &p, sym_in(w->w[e].engine, node));
    }
    for (size_t i = 0; others[i]; i++) /* kept results follow there and back */
        if (others[i] != pod)
            (void)decide_text(w, &a, others[i]);
    for (unsigned e = 0; e < ENGINES; e++) {
        struct bh_pending p = pending_of(w, pod, e);
        bh_offline_give_back(&w->w[e], &p, sym_in(w->w[e].engine, node));
        if (pod->nominated)
            bh_engine_nominate(w->w[e].engine, &p, sym_in(w->w[e].engine, pod->nominated));
    }
    if (nodes != bh_engine_node_count(w->w[MAIN].engine) ||
        pods != bh_engine_pod_count(w->w[MAIN].engine))
        fail(w, "forget counts", "%u nodes, %u pods before", nodes, pods);
    compare_states(w, "forget", "before and after assume and forget of another", others, before,
                   texts_of(w, &a, others));
    bh_arena_fini(&a);
}

/* ---- an engine made anew --------------------------------------------------------------------- */

static void shuffle(struct thing **v, uint64_t seed)
{
    struct bh_rand r;
    size_t n = 0;

    while (v[n])
        n++;
    bh_rand_seed(&r, seed);
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)bh_rand_below(&r, i);
        struct thing *t = v[i - 1];
        v[i - 1] = v[k];
        v[k] = t;
    }
}

/* Assumed pods and nominations come after all objects: they refer to nodes. */
static bool stand_in(struct world *w, struct bh_engine *e, struct bh_arena *a, struct thing *t)
{
    struct bh_pod_rec *rec;
    struct bh_err err = {{0}};
    bh_shape_id shape;

    if (t->kind != BH_KIND_POD || t->place == POD_BOUND ||
        (t->place == POD_PENDING && !t->nominated))
        return true;
    if (compile_pod(e, a, t->object, &rec, &shape, &err) < 0) {
        fail(w, "input", "%s: %s", t->id, err.msg);
        return false;
    }
    const struct bh_pending p = {.pod = rec, .shape = shape};
    if (t->place == POD_ASSUMED)
        (void)bh_engine_assume(e, &p, sym_in(e, t->node));
    else
        bh_engine_nominate(e, &p, sym_in(e, t->nominated));
    bh_engine_shape_unref(e, shape);
    return true;
}

static const char **texts_anew(struct world *w, struct bh_arena *a, struct thing **all,
                               struct thing **pods)
{
    const struct bh_offline_options o = {.config = w->config,
                                         .tie_break = w->first ? BH_TIE_FIRST : BH_TIE_RANDOM,
                                         .seed = 1,
                                         .verify = true,
                                         .rebuilt_snapshot = w->rebuilt,
                                         .no_queue = true,
                                         .now_ns = w->w[MAIN].now_ns};
    struct bh_err err = {{0}};
    struct bh_offline anew;
    const char **texts;
    size_t n = 0;

    while (pods[n])
        n++;
    texts = bh_arena_new_array(a, const char *, n + 1);
    if (bh_offline_init(&anew, &o, &err) < 0) {
        fail(w, "input", "engine: %s", err.msg);
        return texts;
    }
    struct bh_engine *e = anew.engine;
    for (size_t i = 0; all[i]; i++)
        if (put_thing(&anew, all[i], &err) < 0)
            fail(w, "input", "%s: %s", all[i]->id, err.msg);
    for (size_t i = 0; all[i]; i++)
        (void)stand_in(w, e, a, all[i]);
    for (size_t i = 0; i < n && !failed(w); i++) {
        struct bh_pod_rec *rec;
        struct bh_pending p = {0};
        if (compile_pod(e, a, pods[i]->object, &rec, &p.shape, &err) < 0) {
            fail(w, "input", "%s: %s", pods[i]->id, err.msg);
            break;
        }
        p.pod = rec;
        texts[i] = decision_text(a, e, bh_engine_schedule(e, &p, BH_EXPLAIN, w->w[MAIN].now_ns),
                                 !has_assumed(w));
        bh_engine_shape_unref(e, p.shape);
    }
    bh_offline_fini(&anew);
    return texts;
}

void check_fresh(struct world *w, uint64_t seed)
{
    struct bh_arena a;

    bh_arena_init(&a, 0);
    struct thing **all = all_things(w, &a, BH_KIND_COUNT);
    struct thing **pods = some_pending(w, &a);
    if (!remembers(w) && !something_reserved(w, all)) {
        const char **lived = texts_of(w, &a, pods), **anew, **other;
        w->n->fresh++;
        anew = texts_anew(w, &a, all, pods);
        compare_states(w, "fresh", "by the engine that lived through it and by a new one", pods,
                       lived, anew);
        shuffle(all, seed);
        other = failed(w) ? anew : texts_anew(w, &a, all, pods);
        compare_states(w, "order", "with the same objects in another order", pods, anew, other);
    }
    bh_arena_fini(&a);
}
