/* SPDX-License-Identifier: Apache-2.0
 *
 * Random clusters, pods and changes through three engines: reference path only, fast path, and
 * verify (which compares inside). Same inputs and seed must give the same decisions. The seed of a
 * run is printed; BERTH_TEST_SEED repeats it, BERTH_TEST_RUNS makes it longer.
 */
#include "tests/unit/scheduler/engine/fixture.h"

#define NODES_MAX 40
#define PODS_MAX  400

enum { REFERENCE, FAST, VERIFY, ENGINES };

struct world {
    struct bh_rand r;
    struct fx f[ENGINES];
    struct bh_buf b;
    bool node[NODES_MAX];
    struct placed { /* pods the engines know */
        char name[16];
        bool bound, nominated;
        struct fx_pod p[ENGINES];
    } pod[PODS_MAX];
    unsigned n_pods;
    unsigned decided, refused;
};

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)bh_rand_below(&w->r, n);
}

static const char *any(struct world *w, const char *const *v, unsigned n)
{
    return v[below(w, n)];
}
#define ANY(w, ...)                                                                                \
    any((w), (const char *const[]){__VA_ARGS__},                                                   \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static const char *taints(struct world *w)
{
    return ANY(w, "", "", "", "'unschedulable':true",
               "'taints':[{'key':'a','effect':'NoSchedule'}]",
               "'taints':[{'key':'a','effect':'PreferNoSchedule'}]",
               "'taints':[{'key':'a','effect':'PreferNoSchedule'},{'key':'b','value':'1','effect':"
               "'PreferNoSchedule'}]",
               "'taints':[{'key':'b','value':'2','effect':'NoExecute'}]");
}

static void put_node(struct world *w, unsigned i)
{
    char name[16], alloc[256], labels[256];
    const char *spec = taints(w);
    const char *images =
        ANY(w, "", "'images':[{'names':['img/a:1'],'sizeBytes':700000000}]",
            "'images':[{'names':['img/a:1','img/b:1'],'sizeBytes':300000000},{'names':['img/c:1'],"
            "'sizeBytes':2000000000}]");

    snprintf(name, sizeof name, "n%02u", i);
    snprintf(
        alloc, sizeof alloc, "'cpu':'%um','memory':'%uMi','pods':'%u','ephemeral-storage':'%uGi'%s",
        500 * (1 + below(w, 12)), 512 * (1 + below(w, 16)), 2 + below(w, 12), below(w, 4) * 10,
        ANY(w, "", "", ",'example.com/gpu':'4'", ",'example.com/gpu':'0','hugepages-2Mi':'64Mi'"));
    snprintf(labels, sizeof labels, "'zone':'z%u','disk':'%s','n':'%u'", below(w, 3),
             ANY(w, "ssd", "hdd"), below(w, 20));
    for (unsigned e = 0; e < ENGINES; e++)
        fx_node(&w->f[e], name, alloc, labels, spec, images);
    w->node[i] = true;
}

static void drop_node(struct world *w, unsigned i)
{
    char name[16];

    snprintf(name, sizeof name, "n%02u", i);
    for (unsigned e = 0; e < ENGINES; e++)
        bh_engine_del_node(w->f[e].e, bh_sym_internc(bh_engine_symtab(w->f[e].e), name));
    w->node[i] = false;
}

static const char *affinity(struct world *w)
{
    return ANY(w, "", "", "", ",'nodeSelector':{'disk':'ssd'}",
               ",'nodeSelector':{'zone':'z1','disk':'hdd'}",
               ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
               "'nodeSelectorTerms':[{'matchExpressions':[{'key':'zone','operator':'In','values':['"
               "z0','z2']}"
               "]}]}}}",
               ",'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
               "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','"
               "values':['n03']}"
               "]},{'matchFields':[{'key':'metadata.name','operator':'In','values':['n07']}]}]}}}",
               ",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':["
               "{'weight':5,'preference':{'matchExpressions':[{'key':'zone','operator':'NotIn','"
               "values':['z1']"
               "}]}},{'weight':30,'preference':{'matchExpressions':[{'key':'n','operator':'Gt','"
               "values':['9']}"
               "]}}]}}");
}

static const char *requests(struct world *w)
{
    static const char *const shapes[] = {
        "'cpu':'100m','memory':'128Mi'",
        "'cpu':'250m'",
        "",
        "'cpu':'1','memory':'1Gi'",
        "'cpu':'0','memory':'512Mi'",
        "'cpu':'500m','example.com/gpu':'1'",
        "'memory':'64Mi','hugepages-2Mi':'2Mi'",
        "'cpu':'2500m','memory':'2Gi','ephemeral-storage':'1Gi'",
        "'cpu':'900','memory':'1Ti'",
    };
    return shapes[below(w, BH_ARRAY_LEN(shapes))];
}

static void make_pod(struct world *w, struct placed *p)
{
    const char *req = requests(w), *aff = affinity(w);
    const char *tol = ANY(w, "", "", ",'tolerations':[{'key':'a','operator':'Exists'}]",
                          ",'tolerations':[{'operator':'Exists'}]",
                          ",'tolerations':[{'key':'b','value':'1','effect':'PreferNoSchedule'}]");
    const char *ports = ANY(w, "", "", "", ",'ports':[{'hostPort':80}]",
                            ",'ports':[{'hostPort':80,'hostIP':'10.0.0.1'}]");
    const char *image = ANY(w, "none", "img/a:1", "img/b:1", "img/c:1");
    int priority = (int)below(w, 3) * 10;

    snprintf(p->name, sizeof p->name, "p%u", w->n_pods);
    for (unsigned e = 0; e < ENGINES; e++) {
        const char *spec = bh_arena_printf(
            &w->f[e].arena,
            "'priority':%d,'containers':[{'name':'c','image':'%s','resources':{'requests':{%s}}%s}]"
            "%s%s",
            priority, image, req, ports, tol, aff);
        p->p[e] = fx_pod_full(&w->f[e], p->name, "", spec, "");
    }
}

static struct bh_str uid_of(const struct fx_pod *p)
{
    return bh_rec_text(p->rec, p->rec->uid);
}

static void remove_pod(struct world *w, struct bh_str uid)
{
    for (unsigned i = 0; i < w->n_pods; i++) {
        struct placed *p = &w->pod[i];
        if (!bh_str_eq(uid_of(&p->p[0]), uid))
            continue;
        for (unsigned e = 0; e < ENGINES; e++) {
            bh_engine_unnominate(w->f[e].e, uid_of(&p->p[e]));
            bh_engine_del_pod(w->f[e].e, uid_of(&p->p[e]));
        }
        p->bound = p->nominated = false;
    }
}

static void bind_pod(struct world *w, struct placed *p, bh_sym const *node)
{
    bool confirm = below(w, 2);

    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p->p[e].rec, .shape = p->p[e].shape};
        CU_ASSERT(bh_engine_assume(w->f[e].e, &pending, node[e]) == 0);
        p->p[e].rec->node = BH_SYM_NONE;
        if (!confirm)
            continue;
        p->p[e].rec->node = node[e];
        bh_engine_put_pod(w->f[e].e, p->p[e].rec, p->p[e].shape);
        p->p[e].rec->node = BH_SYM_NONE;
    }
    p->bound = true;
    p->nominated = false;
}

static void preempt(struct world *w, struct placed *p, const struct bh_decision *const *d)
{
    struct bh_str uid[PODS_MAX];
    char text[PODS_MAX][24];
    uint32_t n = BH_MIN(d[0]->n_victims, PODS_MAX);
    bh_sym node[ENGINES];

    for (uint32_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%s", d[0]->victims[i].uid.p);
        uid[i] = bh_str_c(text[i]);
        CU_ASSERT(bh_str_eq(d[1]->victims[i].uid, uid[i]));
    }
    for (unsigned e = 0; e < ENGINES; e++)
        node[e] = d[e]->nominated_node;
    for (uint32_t i = 0; i < n; i++)
        remove_pod(w, uid[i]);
    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p->p[e].rec, .shape = p->p[e].shape};
        bh_engine_nominate(w->f[e].e, &pending, node[e]);
    }
    p->nominated = true;
}

static bool same(const struct bh_decision *a, const struct fx *fa, const struct bh_decision *b,
                 const struct fx *fb)
{
    const char *na = bh_sym_text(bh_engine_symtab(fa->e), a->node);
    const char *nb = bh_sym_text(bh_engine_symtab(fb->e), b->node);

    return a->kind == b->kind && bh_streq(na, nb) && a->feasible == b->feasible &&
           a->evaluated == b->evaluated && a->n_victims == b->n_victims &&
           bh_streq(a->message ? a->message : "", b->message ? b->message : "");
}

static void schedule(struct world *w, struct placed *p)
{
    const struct bh_decision *d[ENGINES];
    bh_sym node[ENGINES];

    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p->p[e].rec, .shape = p->p[e].shape};
        d[e] = bh_engine_schedule(w->f[e].e, &pending, 0, 0);
        node[e] = d[e]->node;
    }
    for (unsigned e = 1; e < ENGINES; e++) {
        if (!same(d[0], &w->f[0], d[e], &w->f[e]))
            fprintf(stderr, "  pod %s: engine %u: %s, reference %s\n", p->name, e,
                    d[e]->message ? d[e]->message : fx_text(&w->f[e], d[e]->node),
                    d[0]->message ? d[0]->message : fx_text(&w->f[0], d[0]->node));
        CU_ASSERT_FATAL(same(d[0], &w->f[0], d[e], &w->f[e]));
    }
    w->decided += d[0]->kind == BH_DECIDED;
    w->refused += d[0]->kind == BH_NO_FIT;
    if (d[0]->kind == BH_DECIDED)
        bind_pod(w, p, node);
    else if (d[0]->n_victims)
        preempt(w, p, d);
}

static void step(struct world *w)
{
    unsigned what = below(w, 20), i = below(w, NODES_MAX);
    struct placed *p = w->n_pods ? &w->pod[below(w, w->n_pods)] : NULL;

    if (what == 0)
        put_node(w, i);
    else if (what == 1 && w->node[i])
        drop_node(w, i);
    else if (what <= 3 && p && p->bound)
        remove_pod(w, uid_of(&p->p[0]));
    else if (what == 4 && p && !p->bound)
        schedule(w, p); /* once more, perhaps nominated */
    else if (w->n_pods < PODS_MAX) {
        p = &w->pod[w->n_pods];
        make_pod(w, p);
        w->n_pods++;
        schedule(w, p);
    }
}

static void run(uint64_t seed, enum bh_tie_break tie)
{
    struct world *w = bh_calloc(1, sizeof *w);

    bh_rand_seed(&w->r, seed);
    for (unsigned e = 0; e < ENGINES; e++)
        fx_init_with(&w->f[e], NULL,
                     (struct bh_engine_options){.tie_break = tie,
                                                .seed = seed,
                                                .reference = e == REFERENCE,
                                                .verify = e == VERIFY,
                                                .rebuilt_snapshot = seed & 1});
    unsigned n = 1 + below(w, NODES_MAX - 1);
    for (unsigned i = 0; i < n; i++)
        put_node(w, i);
    for (unsigned i = 0; i < 450; i++)
        step(w);
    CU_ASSERT(w->decided + w->refused > 0);
    struct bh_engine_stats st;
    bh_engine_stats(w->f[FAST].e, &st);
    CU_ASSERT(w->decided == 0 || st.fast_cycles > 0);
    for (unsigned e = 0; e < ENGINES; e++)
        fx_fini(&w->f[e]);
    free(w);
}

static void runs(enum bh_tie_break tie)
{
    const char *seed_text = getenv("BERTH_TEST_SEED"), *runs_text = getenv("BERTH_TEST_RUNS");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : bh_rand_entropy();
    unsigned n = runs_text ? (unsigned)strtoul(runs_text, NULL, 0) : 12;

    for (unsigned i = 0; i < n; i++) {
        printf("# seed %llu\n", (unsigned long long)(seed + i));
        fflush(stdout);
        run(seed + i, tie);
    }
}

static void test_random_choice(void)
{
    runs(BH_TIE_RANDOM);
}

static void test_first_choice(void)
{
    runs(BH_TIE_FIRST);
}

BH_TESTS("scheduler/engine/differential",
         {"fast path, reference path and verify agree, ties by seeded choice", test_random_choice},
         {"fast path, reference path and verify agree, ties by the first name", test_first_choice})
