/* SPDX-License-Identifier: Apache-2.0
 *
 * Topology spread and inter-pod affinity over cells: enough nodes for keys with many domains, which
 * are told apart by their counts; racks of two nodes, so that rows change kind with their
 * neighbour; nominated pods. One engine verifies every decision, the other has to take the fast
 * path and to decide alike. The seed of a run is printed; BERTH_TEST_SEED repeats it.
 */
#include "tests/unit/scheduler/engine/fixture.h"

#define NODES    150
#define PODS_MAX 600

enum { FAST, VERIFY, ENGINES };

struct world {
    struct bh_rand r;
    struct fx f[ENGINES];
    struct placed {
        bool bound, nominated;
        struct fx_pod p[ENGINES];
    } pod[PODS_MAX];
    unsigned n_pods, decided;
};

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)bh_rand_below(&w->r, n);
}
#define ANY(w, ...)                                                                                \
    (((const char *const[]){__VA_ARGS__})[below((w), sizeof((const char *const[]){__VA_ARGS__}) /  \
                                                         sizeof(const char *))])

static void put_node(struct world *w, unsigned i)
{
    char name[16], labels[160], alloc[80];
    const char *spec = ANY(w, "", "", "", "'taints':[{'key':'a','effect':'PreferNoSchedule'}]");

    snprintf(name, sizeof name, "n%03u", i);
    snprintf(labels, sizeof labels, "'kubernetes.io/hostname':'%s'%s", name,
             below(w, 20) ? "" : ",'disk':'ssd'");
    if (below(w, 30))
        snprintf(labels + strlen(labels), sizeof labels - strlen(labels), ",'zone':'z%u'", i % 3);
    if (below(w, 30))
        snprintf(labels + strlen(labels), sizeof labels - strlen(labels), ",'rack':'r%u'",
                 below(w, 10) ? i / 2 : below(w, NODES / 2));
    snprintf(alloc, sizeof alloc, "'cpu':'%u','memory':'8Gi','pods':'%u'", 2 + below(w, 3),
             3 + below(w, 3));
    for (unsigned e = 0; e < ENGINES; e++)
        fx_node(&w->f[e], name, alloc, labels, spec, "");
}

#define APP(name) "'labelSelector':{'matchLabels':{'app':'" name "'}}"
#define SPREAD(key, how, more)                                                                     \
    "{'maxSkew':1,'topologyKey':'" key "','whenUnsatisfiable':'" how "'," more APP("a") "}"
#define TERM(key, app)         "{'topologyKey':'" key "'," APP(app) "}"
#define REQUIRED(terms)        "{'requiredDuringSchedulingIgnoredDuringExecution':[" terms "]}"
#define LIKE(weight, key, app) "{'weight':" weight ",'podAffinityTerm':" TERM(key, app) "}"
#define PREFERRED(terms)       "{'preferredDuringSchedulingIgnoredDuringExecution':[" terms "]}"

static const char *wishes(struct world *w)
{
    return ANY(
        w, "", ",'topologySpreadConstraints':[" SPREAD("zone", "DoNotSchedule", "") "]",
        ",'topologySpreadConstraints':[" SPREAD("rack", "DoNotSchedule", "'minDomains':80,") "]",
        ",'topologySpreadConstraints':[" SPREAD("rack", "DoNotSchedule", "") "," SPREAD(
            "kubernetes.io/hostname", "DoNotSchedule", "") "]",
        ",'topologySpreadConstraints':[" SPREAD("zone", "ScheduleAnyway", "") "," SPREAD(
            "kubernetes.io/hostname", "ScheduleAnyway", "") "]",
        ",'topologySpreadConstraints':[" SPREAD("rack", "ScheduleAnyway",
                                                "") "," SPREAD("zone", "DoNotSchedule", "") "]",
        ",'affinity':{'podAntiAffinity':" REQUIRED(TERM("kubernetes.io/hostname", "b")) "}",
        ",'affinity':{'podAntiAffinity':" REQUIRED(TERM("rack", "a")) "}",
        ",'affinity':{'podAffinity':" REQUIRED(TERM("zone", "b")) "}",
        ",'affinity':{'podAffinity':" REQUIRED(TERM("rack", "c") "," TERM("zone", "c")) "}",
        ",'affinity':{'podAffinity':" PREFERRED(
            LIKE("3", "rack",
                 "a")) ",'podAntiAffinity':" PREFERRED(LIKE("5", "kubernetes.io/hostname",
                                                            "b") "," LIKE("2", "zone", "c")) "}");
}

static struct placed *new_pod(struct world *w)
{
    struct placed *p = &w->pod[w->n_pods];
    const char *wish = wishes(w), *app = ANY(w, "a", "a", "b", "c");
    const char *spec = ANY(w, "", ",'nodeSelector':{'disk':'ssd'}", "", "", "", "", "");
    unsigned priority = below(w, 4) ? 0 : 10, cpu = 200 + 400 * below(w, 2);
    char name[16];

    snprintf(name, sizeof name, "p%u", w->n_pods++);
    for (unsigned e = 0; e < ENGINES; e++)
        p->p[e] = fx_pod_full(
            &w->f[e], name, bh_arena_printf(&w->f[e].arena, "'labels':{'app':'%s'}", app),
            bh_arena_printf(&w->f[e].arena,
                            "'priority':%u,'preemptionPolicy':'Never','containers':[{'name':'c',"
                            "'resources':{'requests':{'cpu':'%um'}}}]%s%s",
                            priority, cpu, wish, spec),
            "");
    return p;
}

static void schedule(struct world *w, struct placed *p)
{
    bh_sym node[ENGINES];
    const struct bh_decision *d[ENGINES];

    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p->p[e].rec, .shape = p->p[e].shape};
        d[e] = bh_engine_schedule(w->f[e].e, &pending, 0, 0);
        node[e] = d[e]->node;
    }
    CU_ASSERT_FATAL(d[FAST]->kind == d[VERIFY]->kind);
    if (d[FAST]->kind != BH_DECIDED)
        return;
    CU_ASSERT_FATAL(
        bh_streq(fx_text(&w->f[FAST], node[FAST]), fx_text(&w->f[VERIFY], node[VERIFY])));
    CU_ASSERT_FATAL(d[FAST]->feasible == d[VERIFY]->feasible);
    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p->p[e].rec, .shape = p->p[e].shape};
        CU_ASSERT(bh_engine_assume(w->f[e].e, &pending, node[e]) == 0);
    }
    w->decided++;
    p->bound = true;
    p->nominated = false;
}

/* Somewhere, whether it fits there or not. */
static void nominate(struct world *w, struct placed *p)
{
    char name[16];

    snprintf(name, sizeof name, "n%03u", below(w, NODES));
    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p->p[e].rec, .shape = p->p[e].shape};
        bh_engine_nominate(w->f[e].e, &pending, bh_sym_internc(bh_engine_symtab(w->f[e].e), name));
    }
    p->nominated = true;
}

static void leave(struct world *w, struct placed *p)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        struct bh_str uid = bh_rec_text(p->p[e].rec, p->p[e].rec->uid);
        if (p->nominated)
            bh_engine_unnominate(w->f[e].e, uid);
        else if (p->bound)
            CU_ASSERT(bh_engine_forget(w->f[e].e, uid) == 0);
    }
    p->bound = p->nominated = false;
}

static void step(struct world *w)
{
    unsigned what = below(w, 32);
    struct placed *p = w->n_pods ? &w->pod[below(w, w->n_pods)] : NULL;

    if (what == 0) {
        put_node(w, below(w, NODES));
    } else if (what == 1) {
        char name[16];
        snprintf(name, sizeof name, "n%03u", below(w, NODES));
        for (unsigned e = 0; e < ENGINES; e++)
            bh_engine_del_node(w->f[e].e, bh_sym_internc(bh_engine_symtab(w->f[e].e), name));
    } else if (what <= 7 && p) {
        leave(w, p);
    } else if (what <= 9) {
        if (w->n_pods < PODS_MAX)
            nominate(w, new_pod(w));
    } else if (w->n_pods < PODS_MAX) {
        schedule(w, new_pod(w));
    }
}

static void run(uint64_t seed, enum bh_tie_break tie)
{
    struct world *w = bh_calloc(1, sizeof *w);
    struct bh_engine_stats st;

    printf("# seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    bh_rand_seed(&w->r, seed);
    for (unsigned e = 0; e < ENGINES; e++)
        fx_init_with(
            &w->f[e], NULL,
            (struct bh_engine_options){.tie_break = tie, .seed = seed, .verify = e == VERIFY});
    for (unsigned i = 0; i < NODES; i++)
        put_node(w, i);
    for (unsigned i = 0; i < 700; i++)
        step(w);
    bh_engine_stats(w->f[FAST].e, &st);
    CU_ASSERT(w->decided > 200);
    CU_ASSERT(st.fast_cycles > w->decided / 2); /* the first pod of a shape takes the other path */
    for (unsigned e = 0; e < ENGINES; e++)
        fx_fini(&w->f[e]);
    free(w);
}

/* ---- where cells do not help ----------------------------------------------------------------- */

#define MANY 1100

static void many_nodes(struct fx *f)
{
    char name[16], labels[64];

    fx_init_with(f, NULL, (struct bh_engine_options){.tie_break = BH_TIE_RANDOM, .verify = true});
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%04u", i);
        snprintf(labels, sizeof labels, "'rack':'r%u','zone':'z%u'", i / 2, i % 3);
        fx_node(f, name, "'cpu':'4','memory':'8Gi','pods':'10'", labels, "", "");
    }
}

static void schedule_some(struct fx *f, char name, const char *spread, unsigned n)
{
    char text[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%c%u", name, i);
        struct fx_pod p = fx_pod_full(
            f, text, "'labels':{'app':'a'}",
            bh_arena_printf(&f->arena,
                            "'containers':[{'name':'c'}],'topologySpreadConstraints':[%s]", spread),
            "");
        const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
        const struct bh_decision *d = bh_engine_schedule(f->e, &pending, 0, 0);
        CU_ASSERT_FATAL(d->kind == BH_DECIDED);
        CU_ASSERT(bh_engine_assume(f->e, &pending, d->node) == 0);
    }
}

/* Scores need every rack by its name. */
static void test_many_domains(void)
{
    struct fx f;

    many_nodes(&f);
    schedule_some(&f, 'a', SPREAD("rack", "ScheduleAnyway", ""), 6);
    fx_fini(&f);
}

/* Each node with a nominated pod is a kind of its own. */
static void test_many_kinds(void)
{
    struct fx f;
    char name[16];

    many_nodes(&f);
    schedule_some(&f, 'a', SPREAD("zone", "DoNotSchedule", ""), 4);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "n%04u", i);
        struct fx_pod p = fx_pod_full(&f, bh_arena_printf(&f.arena, "for-%u", i),
                                      i % 4 ? "" : "'labels':{'app':'a'}",
                                      "'priority':5,'containers':[{'name':'c'}]", "");
        const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
        bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), name));
    }
    schedule_some(&f, 'b', SPREAD("zone", "DoNotSchedule", ""), 4);
    fx_fini(&f);
}

static uint64_t first_seed(void)
{
    const char *text = getenv("BERTH_TEST_SEED");
    return text ? strtoull(text, NULL, 0) : bh_rand_entropy();
}

static void test_random_choice(void)
{
    run(first_seed(), BH_TIE_RANDOM);
}

static void test_first_choice(void)
{
    run(first_seed(), BH_TIE_FIRST);
}

BH_TESTS("scheduler/engine/cells",
         {"spread, affinity and nominated pods, ties by seeded choice", test_random_choice},
         {"spread, affinity and nominated pods, ties by the first name", test_first_choice},
         {"more domains than are told apart", test_many_domains},
         {"more kinds of nodes than cells", test_many_kinds})
