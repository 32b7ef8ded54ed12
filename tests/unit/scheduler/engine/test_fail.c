/* SPDX-License-Identifier: Apache-2.0
 *
 * Pods that fit nowhere and pods that were promised a node: what is kept from one to the next gives
 * the decisions of the reference path, and the fast path takes them.
 */
#include "tests/unit/scheduler/engine/fixture.h"

enum { REFERENCE, FAST, VERIFY, ENGINES };

struct trio {
    struct fx f[ENGINES];
};

static void trio_init_with(struct trio *t, const char *profile, enum bh_tie_break tie,
                           uint64_t seed)
{
    for (unsigned e = 0; e < ENGINES; e++)
        fx_init_with(&t->f[e], profile,
                     (struct bh_engine_options){.tie_break = tie,
                                                .seed = seed,
                                                .reference = e == REFERENCE,
                                                .verify = e == VERIFY});
}

static void trio_init(struct trio *t, enum bh_tie_break tie, uint64_t seed)
{
    trio_init_with(t, NULL, tie, seed);
}

static void trio_fini(struct trio *t)
{
    for (unsigned e = 0; e < ENGINES; e++)
        fx_fini(&t->f[e]);
}

static void node(struct trio *t, const char *name, const char *alloc, const char *labels,
                 const char *spec)
{
    for (unsigned e = 0; e < ENGINES; e++)
        fx_node(&t->f[e], name, alloc, labels, spec, "");
}

static const char *text(const char *s)
{
    return s ? s : "";
}

static const char *victims(struct fx *f, const struct bh_decision *d)
{
    const char *s = "";

    for (uint32_t i = 0; i < d->n_victims; i++)
        s = bh_arena_printf(&f->arena, "%s %s", s, d->victims[i].name.p);
    return s;
}

static const char *plugins(struct fx *f, const struct bh_decision *d)
{
    const char *s = "";

    for (uint32_t i = 0; i < d->n_unschedulable_plugins; i++)
        s = bh_arena_printf(&f->arena, "%s %s", s, d->unschedulable_plugins[i]);
    return s;
}

/* All that a decision says, but for lists that only explanations have. */
static const char *all_of(struct fx *f, const struct bh_decision *d)
{
    return bh_arena_printf(&f->arena,
                           "%d on %s, %u of %u, \"%s\" \"%s\" \"%s\", by%s, promised %s %d, goes:%s"
                           " %u",
                           d->kind, fx_text(f, d->node), d->feasible, d->evaluated,
                           text(d->message), text(d->fit_message), text(d->post_filter_message),
                           plugins(f, d), fx_text(f, d->nominated_node), d->clear_nomination,
                           victims(f, d), d->victims_violating);
}

/* Schedules the pod in all three; the reference's decision. */
static const struct bh_decision *schedule(struct trio *t, const struct fx_pod p[ENGINES],
                                          unsigned flags)
{
    const struct bh_decision *d[ENGINES];
    const char *want = NULL;

    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p[e].rec, .shape = p[e].shape};
        d[e] = bh_engine_schedule(t->f[e].e, &pending, flags, 1000);
        const char *have = all_of(&t->f[e], d[e]);
        if (e == REFERENCE)
            want = have;
        else
            FX_STR(have, want);
    }
    return d[REFERENCE];
}

static void pod(struct trio *t, struct fx_pod p[ENGINES], const char *name, const char *requests,
                const char *more)
{
    for (unsigned e = 0; e < ENGINES; e++)
        p[e] = fx_pod(&t->f[e], name, requests, more);
}

static uint64_t slow_cycles(const struct trio *t)
{
    struct bh_engine_stats st;

    bh_engine_stats(t->f[FAST].e, &st);
    return st.reference_cycles;
}

/* ---- why nothing fits ------------------------------------------------------------------------ */

static void test_reasons_follow_the_nodes(void)
{
    struct trio t;
    struct fx_pod p[ENGINES];
    char name[16];

    trio_init(&t, BH_TIE_FIRST, 1);
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "n%02u", i);
        node(&t, name, "'cpu':'2','memory':'4Gi','pods':'10'", "'disk':'ssd'",
             i % 4 == 0   ? "'unschedulable':true"
             : i % 4 == 1 ? "'taints':[{'key':'a','effect':'NoSchedule'}]"
                          : "");
    }
    for (unsigned i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "p%u", i);
        pod(&t, p, name, "'cpu':'3','memory':'1Gi'", "'nodeSelector':{'disk':'ssd'}");
        const struct bh_decision *d = schedule(&t, p, i % 3 ? 0 : BH_NO_PREEMPTION);
        CU_ASSERT(d->kind == BH_NO_FIT);
        if (i == 0)
            CU_ASSERT_STRING_EQUAL(d->fit_message,
                                   "0/40 nodes are available: 10 node(s) had untolerated taint(s), "
                                   "10 node(s) were unschedulable, 20 Insufficient cpu.");
        snprintf(name, sizeof name, "n%02u", i);
        if (i % 5 == 4)
            for (unsigned e = 0; e < ENGINES; e++)
                bh_engine_del_node(t.f[e].e, bh_sym_internc(bh_engine_symtab(t.f[e].e), name));
        else
            node(&t, name, i % 2 ? "'cpu':'1','pods':'10'" : "'cpu':'1','memory':'4Gi','pods':'0'",
                 i % 3 ? "'disk':'hdd'" : "'disk':'ssd'", "");
        if (i == 20) { /* fits for once */
            node(&t, "big", "'cpu':'64','memory':'64Gi','pods':'10'", "'disk':'ssd'", "");
            CU_ASSERT(schedule(&t, p, 0)->kind == BH_DECIDED);
            node(&t, "big", "'cpu':'64','memory':'64Gi','pods':'10'", "'disk':'hdd'", "");
        }
    }
    FX_INT(slow_cycles(&t), 1); /* the first pod of the shape */
    trio_fini(&t);
}

/* Every node lacks other resources: more sets of reasons than are kept. */
static void test_too_many_reasons(void)
{
    struct trio t;
    struct fx_pod p[ENGINES];
    char name[16];

    trio_init(&t, BH_TIE_FIRST, 1);
    for (unsigned i = 0; i < 128; i++) {
        const char *alloc = "'cpu':'1','pods':'10'";
        for (unsigned bit = 0; bit < 7; bit++)
            if (i >> bit & 1)
                alloc = bh_arena_printf(&t.f[0].arena, "%s,'example.com/r%u':'1'", alloc, bit);
        snprintf(name, sizeof name, "n%03u", i);
        node(&t, name, alloc, "", "");
    }
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "p%u", i);
        pod(&t, p, name,
            "'cpu':'2','example.com/r0':'1','example.com/r1':'1','example.com/r2':'1',"
            "'example.com/r3':'1','example.com/r4':'1','example.com/r5':'1','example.com/r6':'1'",
            "");
        CU_ASSERT(schedule(&t, p, 0)->kind == BH_NO_FIT);
    }
    FX_INT(slow_cycles(&t), 4);
    trio_fini(&t);
}

/* ---- a promised node ------------------------------------------------------------------------- */

static void nominate(struct trio *t, const struct fx_pod p[ENGINES], const char *name)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        const struct bh_pending pending = {.pod = p[e].rec, .shape = p[e].shape};
        bh_engine_nominate(t->f[e].e, &pending, bh_sym_internc(bh_engine_symtab(t->f[e].e), name));
    }
}

static void test_promised_node(void)
{
    struct trio t;
    struct fx_pod p[ENGINES], other[ENGINES];

    trio_init(&t, BH_TIE_FIRST, 1);
    node(&t, "a", "'cpu':'8','pods':'10'", "", "");
    node(&t, "b", "'cpu':'2','pods':'10'", "", "");
    pod(&t, p, "p", "'cpu':'2'", "");
    pod(&t, other, "other", "'cpu':'2'", "");
    nominate(&t, p, "b");
    const struct bh_decision *d = schedule(&t, p, 0);
    FX_STR(fx_text(&t.f[REFERENCE], d->node), "b"); /* though a is better */
    FX_INT(d->evaluated, 1);
    FX_INT(slow_cycles(&t), 0);
    for (unsigned i = 0; i < 3; i++) /* kept results count the promise, for everybody else */
        FX_STR(fx_text(&t.f[REFERENCE], schedule(&t, other, 0)->node), "a");
    FX_STR(fx_text(&t.f[REFERENCE], schedule(&t, p, 0)->node), "b");
    node(&t, "b", "'cpu':'1','pods':'10'", "", "");
    FX_STR(fx_text(&t.f[REFERENCE], schedule(&t, p, 0)->node), "a"); /* the promise is worthless */
    node(&t, "a", "'cpu':'1','pods':'10'", "", "");
    d = schedule(&t, p, 0);
    FX_STR(d->fit_message, "0/2 nodes are available: 2 Insufficient cpu.");
    FX_INT(slow_cycles(&t), 0);
    /* Its own promise is what stands in everybody else's way on b. */
    node(&t, "b", "'cpu':'3','pods':'1'", "", "'unschedulable':true");
    d = schedule(&t, p, 0);
    FX_STR(d->fit_message,
           "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.");
    node(&t, "b", "'cpu':'1','pods':'1'", "", "");
    FX_STR(schedule(&t, p, 0)->fit_message, "0/2 nodes are available: 2 Insufficient cpu.");
    FX_STR(schedule(&t, other, 0)->fit_message,
           "0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu.");
    FX_STR(schedule(&t, p, 0)->fit_message, "0/2 nodes are available: 2 Insufficient cpu.");
    FX_INT(slow_cycles(&t), 0);
    trio_fini(&t);
}

/* ---- a crowd: most pods evict others --------------------------------------------------------- */

#define NODES 70
#define PODS  700

struct crowd {
    struct trio t;
    struct bh_rand r;
    struct member {
        struct fx_pod p[ENGINES];
        bool bound, nominated;
    } m[PODS];
    unsigned n, decided, preempted;
    int64_t clock_s;
};

static unsigned below(struct crowd *c, unsigned n)
{
    return (unsigned)bh_rand_below(&c->r, n);
}

static struct bh_str uid_of(const struct fx_pod *p)
{
    return bh_rec_text(p->rec, p->rec->uid);
}

static struct member *add_member(struct crowd *c, int priority, const char *cpu, const char *label)
{
    struct member *m = &c->m[c->n];
    char name[16];

    snprintf(name, sizeof name, "p%u", c->n++);
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fx *f = &c->t.f[e];
        m->p[e] = fx_pod_full(
            f, name, bh_arena_printf(&f->arena, "'labels':{'app':'%s'}", label),
            bh_arena_printf(&f->arena,
                            "'priority':%d,'containers':[{'name':'c','resources':{'requests':{'cpu'"
                            ":'%s'}}}]",
                            priority, cpu),
            "");
    }
    return m;
}

static void place(struct crowd *c, struct member *m, const char *where, int64_t start_ns)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        m->p[e].rec->start_ns = start_ns;
        fx_place(&c->t.f[e], m->p[e], where);
        m->p[e].rec->node = BH_SYM_NONE;
    }
    m->bound = true;
}

static void remove_uid(struct crowd *c, struct bh_str uid)
{
    for (unsigned i = 0; i < c->n; i++) {
        struct member *m = &c->m[i];
        if (!bh_str_eq(uid_of(&m->p[0]), uid))
            continue;
        for (unsigned e = 0; e < ENGINES; e++)
            bh_engine_del_pod(c->t.f[e].e, uid_of(&m->p[e]));
        m->bound = false;
    }
}

static void evict(struct crowd *c, const struct bh_decision *d)
{
    struct bh_str uid[16];
    char copy[16][24];
    uint32_t n = BH_MIN(d->n_victims, 16u);

    for (uint32_t i = 0; i < n; i++) {
        snprintf(copy[i], sizeof copy[i], "%s", d->victims[i].uid.p);
        uid[i] = bh_str_c(copy[i]);
    }
    for (uint32_t i = 0; i < n; i++)
        remove_uid(c, uid[i]);
}

static void decide(struct crowd *c, struct member *m)
{
    const struct bh_decision *d = schedule(&c->t, m->p, 0);
    const char *where = bh_arena_strdup(
        &c->t.f[0].arena, fx_text(&c->t.f[0], d->kind == BH_DECIDED ? d->node : d->nominated_node));

    if (d->kind == BH_DECIDED) {
        for (unsigned e = 0; e < ENGINES; e++)
            bh_engine_unnominate(c->t.f[e].e, uid_of(&m->p[e]));
        place(c, m, where, below(c, 2) ? 0 : (int64_t)below(c, 900));
        m->nominated = false;
        c->decided++;
    } else if (d->n_victims) {
        if (below(c, 4)) /* else they take their time */
            evict(c, d);
        nominate(&c->t, m->p, where);
        m->nominated = true;
        c->preempted++;
    }
}

static void budget(struct crowd *c, unsigned allowed)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fx *f = &c->t.f[e];
        struct bh_buf b = {0};
        const char *json = bh_arena_printf(
            &f->arena,
            "{'metadata':{'name':'b','namespace':'default'},'spec':{'selector':{'matchLabels':{"
            "'app':'web'}}},'status':{'disruptionsAllowed':%u}}",
            allowed);
        bh_pb_pack(&b, fx_message(f, &k8s__pod_disruption_budget__descriptor, fx_json(f, json)));
        CU_ASSERT(bh_engine_put_object(f->e, BH_KIND_PODDISRUPTIONBUDGET, "default", "b",
                                       allowed > 3 ? NULL : bh_buf_str(&b), b.n, NULL) == 0);
        bh_buf_fini(&b);
    }
}

static void change(struct crowd *c)
{
    struct member *m = c->n ? &c->m[below(c, c->n)] : NULL;
    static const char *const cpus[] = {"2500m", "1", "3", "100m"};
    char name[16];

    snprintf(name, sizeof name, "n%02u", below(c, NODES));
    switch (below(c, 12)) {
    case 0:
        node(&c->t, name, "'cpu':'4','pods':'6'", "", below(c, 3) ? "" : "'unschedulable':true");
        break;
    case 1:
        budget(c, below(c, 6));
        break;
    case 2: /* it has started, or is another version of itself */
        if (m && m->bound)
            place(c, m, name, (int64_t)below(c, 900));
        break;
    case 3:
        if (m && m->bound)
            remove_uid(c, uid_of(&m->p[0]));
        break;
    case 4:
    case 5:
    case 6:
        if (m && m->nominated && !m->bound)
            decide(c, m);
        break;
    default:
        if (c->n < PODS)
            decide(c, add_member(c, 10 + 10 * (int)below(c, 2), cpus[below(c, 4)], "web"));
    }
}

static void crowd(enum bh_tie_break tie, uint64_t seed)
{
    struct crowd *c = bh_calloc(1, sizeof *c);
    char name[16];

    printf("# seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    bh_rand_seed(&c->r, seed);
    trio_init(&c->t, tie, seed);
    for (unsigned i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "n%02u", i);
        node(&c->t, name, "'cpu':'4','pods':'6'", "", "");
        for (unsigned k = 0; k < 4; k++)
            place(c, add_member(c, -(int)below(c, 3), "900m", below(c, 3) ? "web" : "db"), name,
                  below(c, 2) ? 0 : (int64_t)below(c, 900));
    }
    for (unsigned i = 0; i < 300; i++)
        change(c);
    CU_ASSERT(c->decided > 0 && c->preempted > 0);
    CU_ASSERT(slow_cycles(&c->t) < 12); /* shapes that were seen for the first time */
    trio_fini(&c->t);
    free(c);
}

/* ---- pods of topology spread and inter-pod affinity ------------------------------------------ */

#define SPREAD_OVER(key)                                                                           \
    "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'" key "','whenUnsatisfiable':"       \
    "'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}}]"
#define SPREAD SPREAD_OVER("zone")
#define TERMS(kind, app, key)                                                                      \
    "'" kind "':{'requiredDuringSchedulingIgnoredDuringExecution':[{'labelSelector':{"             \
    "'matchLabels':{'app':'" app "'}},'topologyKey':'" key "'}]}"
#define APART "'affinity':{" TERMS("podAntiAffinity", "db", "host") "}"
#define NEAR  "'affinity':{" TERMS("podAffinity", "db", "zone") "}"

static void pod_of(struct trio *t, struct fx_pod p[ENGINES], const char *name, const char *app,
                   int priority, const char *more)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fx *f = &t->f[e];
        p[e] = fx_pod_full(
            f, name, bh_arena_printf(&f->arena, "'labels':{'app':'%s'}", app),
            bh_arena_printf(&f->arena,
                            "'priority':%d,'containers':[{'name':'c','resources':{'requests':{'cpu'"
                            ":'1'}}}]%s%s",
                            priority, *more ? "," : "", more),
            "");
    }
}

static void put(struct trio *t, struct fx_pod p[ENGINES], const char *where)
{
    for (unsigned e = 0; e < ENGINES; e++) {
        fx_place(&t->f[e], p[e], where);
        p[e].rec->node = BH_SYM_NONE;
    }
}

static void take(struct trio *t, const struct fx_pod p[ENGINES])
{
    for (unsigned e = 0; e < ENGINES; e++)
        bh_engine_del_pod(t->f[e].e, bh_rec_text(p[e].rec, p[e].rec->uid));
}

static const char *why(struct trio *t, const struct fx_pod p[ENGINES])
{
    return text(schedule(t, p, 0)->fit_message);
}

static void test_tracked_reasons(void)
{
    struct trio t;
    struct fx_pod spread[ENGINES], near[ENGINES], apart[ENGINES], db[ENGINES], web[ENGINES];

    trio_init(&t, BH_TIE_FIRST, 1);
    node(&t, "a", "'cpu':'2','pods':'10'", "'zone':'1','host':'a'", "");
    node(&t, "b", "'cpu':'2','pods':'10'", "'zone':'2','host':'b'", "'unschedulable':true");
    node(&t, "c", "'cpu':'2','pods':'10'", "'host':'c'", "");
    pod_of(&t, spread, "spread", "web", 0, SPREAD);
    pod_of(&t, near, "near", "web", 0, NEAR);
    pod_of(&t, apart, "apart", "web", 0, APART);
    pod_of(&t, db, "db", "db", 0, "");
    pod_of(&t, web, "web", "web", 0, "");
    FX_STR(why(&t, near), "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't "
                          "match pod affinity rules.");
    put(&t, web, "a");
    for (unsigned i = 0; i < 3; i++)
        FX_STR(why(&t, spread),
               "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 "
               "node(s) didn't match pod topology spread constraints (missing required label), 1 "
               "node(s) were unschedulable.");
    node(&t, "c", "'cpu':'2','pods':'10'", "'zone':'1','host':'c'", "");
    FX_STR(why(&t, spread), "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) "
                            "didn't match pod topology spread constraints.");
    node(&t, "b", "'cpu':'2','pods':'10'", "'zone':'2','host':'b'", "");
    FX_STR(fx_text(&t.f[REFERENCE], schedule(&t, spread, 0)->node), "b");
    node(&t, "b", "'cpu':'0','pods':'10'", "'zone':'2','host':'b'", "");
    FX_STR(why(&t, spread), "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match "
                            "pod topology spread constraints.");
    put(&t, db, "c"); /* somebody to be near to, and to stay away from */
    FX_STR(fx_text(&t.f[REFERENCE], schedule(&t, apart, 0)->node), "a");
    put(&t, db, "a");
    FX_STR(fx_text(&t.f[REFERENCE], schedule(&t, near, 0)->node), "c");
    take(&t, web);
    FX_STR(fx_text(&t.f[REFERENCE], schedule(&t, spread, 0)->node), "c");
    put(&t, web, "c");
    FX_STR(why(&t, spread), "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match "
                            "pod topology spread constraints.");
    FX_INT(slow_cycles(&t), 0);
    trio_fini(&t);
}

/* A rack's nodes are told apart from others by its count: one that nobody touched is rejected for
 * another reason. */
static void test_neighbour_is_told(void)
{
    struct trio t;
    struct fx_pod p[ENGINES], web[ENGINES];
    char name[16], labels[64];

    trio_init(&t, BH_TIE_FIRST, 1);
    for (unsigned i = 0; i < 140; i++) {
        snprintf(name, sizeof name, "n%u", i);
        snprintf(labels, sizeof labels, "'rack':'%u','zone':'1'", i / 2);
        node(&t, name, "'cpu':'2','pods':'10'", labels, "");
    }
    pod_of(&t, p, "p", "web", 0, SPREAD_OVER("rack") "," NEAR);
    pod_of(&t, web, "web", "web", 0, "");
    FX_STR(why(&t, p), "0/140 nodes are available: 140 node(s) didn't match pod affinity rules.");
    put(&t, web, "n7");
    FX_STR(why(&t, p), "0/140 nodes are available: 138 node(s) didn't match pod affinity rules, 2 "
                       "node(s) didn't match pod topology spread constraints.");
    put(&t, web, "n8");
    FX_STR(why(&t, p), "0/140 nodes are available: 138 node(s) didn't match pod affinity rules, 2 "
                       "node(s) didn't match pod topology spread constraints.");
    FX_INT(slow_cycles(&t), 0);
    trio_fini(&t);
}

/* zone: of the first node, the others, and the last. */
static void forty(struct trio *t, const char zone[static 3], unsigned n)
{
    char name[16], label[16];

    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "n%u", i);
        snprintf(label, sizeof label, "'zone':'%c'", zone[i == 0 ? 0 : i == 39 ? 2 : 1]);
        node(t, name, "'cpu':'2','pods':'10'", label, "");
    }
}

/* So much changes at once that rows are told apart anew; the last one is as it was. */
static void test_cells_anew(void)
{
    struct trio t;
    struct fx_pod p[ENGINES], web[ENGINES];

    trio_init(&t, BH_TIE_FIRST, 1);
    forty(&t, "123", 40);
    pod_of(&t, p, "p", "web", 0, SPREAD "," NEAR);
    pod_of(&t, web, "web", "web", 0, "");
    put(&t, web, "n0");
    FX_STR(why(&t, p), "0/40 nodes are available: 1 node(s) didn't match pod topology spread "
                       "constraints, 39 node(s) didn't match pod affinity rules.");
    forty(&t, "313", 39);
    FX_STR(why(&t, p), "0/40 nodes are available: 2 node(s) didn't match pod topology spread "
                       "constraints, 38 node(s) didn't match pod affinity rules.");
    FX_INT(slow_cycles(&t), 0);
    trio_fini(&t);
}

/* What a plugin says that comes after one that keeps track is not known where both reject. */
static void test_other_order(void)
{
    struct trio t;
    struct fx_pod p[ENGINES], web[ENGINES];

    trio_init_with(&t,
                   "{'plugins':{'filter':{'disabled':[{'name':'*'}],'enabled':[{'name':"
                   "'PodTopologySpread'},{'name':'NodeResourcesFit'}]}}}",
                   BH_TIE_FIRST, 1);
    node(&t, "a", "'cpu':'0','pods':'10'", "'zone':'1'", "");
    node(&t, "b", "'cpu':'0','pods':'10'", "'zone':'2'", "");
    pod_of(&t, p, "p", "web", 0, SPREAD);
    pod_of(&t, web, "web", "web", 0, "");
    put(&t, web, "a");
    for (unsigned i = 0; i < 3; i++)
        FX_STR(why(&t, p), "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match "
                           "pod topology spread constraints.");
    FX_INT(slow_cycles(&t), 3);
    trio_fini(&t);
}

static void tracked_node(struct crowd *c, const char *name)
{
    static const char *const labels[] = {"'zone':'1','host':'%s'", "'zone':'2','host':'%s'",
                                         "'host':'%s'"};

    node(&c->t, name, below(c, 3) ? "'cpu':'3','pods':'9'" : "'cpu':'1','pods':'9'",
         bh_arena_printf(&c->t.f[0].arena, labels[below(c, 3)], name),
         below(c, 5) ? "" : "'unschedulable':true");
}

/* Which of them has a priority, and so somebody to evict, changes as well. */
static void tracked_crowd(uint64_t seed)
{
    static const char *const more[] = {SPREAD, APART, NEAR, SPREAD "," APART, ""};
    struct crowd *c = bh_calloc(1, sizeof *c);
    unsigned refused = 0;
    char name[16];

    printf("# seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    bh_rand_seed(&c->r, seed);
    trio_init(&c->t, BH_TIE_FIRST, seed);
    for (unsigned i = 0; i < 400; i++) {
        struct member *m = &c->m[c->n ? below(c, c->n) : 0];
        snprintf(name, sizeof name, "n%u", i < 6 ? i : below(c, 6));
        switch (i < 6 ? 0 : below(c, 6)) {
        case 0: /* one node, or most of them at once */
            for (unsigned k = i < 6 || below(c, 3) ? 1 : 4; k > 0; k--) {
                tracked_node(c, name);
                snprintf(name, sizeof name, "n%u", below(c, 6));
            }
            break;
        case 1:
            if (c->n && m->bound)
                take(&c->t, m->p);
            m->bound = false;
            break;
        case 2:
            if (c->n && !m->bound)
                nominate(&c->t, m->p, below(c, 2) ? name : "nowhere");
            break;
        default:
            m = &c->m[c->n++];
            snprintf(name, sizeof name, "p%u", c->n);
            pod_of(&c->t, m->p, name, below(c, 3) ? "web" : "db", (int)below(c, 3) / 2,
                   more[below(c, 5)]);
            refused += schedule(&c->t, m->p, 0)->kind == BH_NO_FIT;
            snprintf(name, sizeof name, "n%u", below(c, 6));
            if ((m->bound = below(c, 3) == 0))
                put(&c->t, m->p, name);
        }
    }
    CU_ASSERT(refused > 20);
    CU_ASSERT(slow_cycles(&c->t) < refused / 2);
    trio_fini(&c->t);
    free(c);
}

static void test_crowds(void)
{
    const char *seed_text = getenv("BERTH_TEST_SEED"), *runs_text = getenv("BERTH_TEST_RUNS");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : bh_rand_entropy();
    unsigned n = runs_text ? (unsigned)strtoul(runs_text, NULL, 0) : 4;

    for (unsigned i = 0; i < n; i++)
        crowd(i % 2 ? BH_TIE_FIRST : BH_TIE_RANDOM, seed + i);
}

static void test_tracked_crowds(void)
{
    const char *seed_text = getenv("BERTH_TEST_SEED"), *runs_text = getenv("BERTH_TEST_RUNS");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : bh_rand_entropy();
    unsigned n = runs_text ? (unsigned)strtoul(runs_text, NULL, 0) : 8;

    for (unsigned i = 0; i < n; i++)
        tracked_crowd(seed + i);
}

BH_TESTS("scheduler/engine/fail",
         {"why nothing fits follows every change of a node", test_reasons_follow_the_nodes},
         {"more reasons than are kept", test_too_many_reasons},
         {"a promised node is taken, or does not stand in its own way", test_promised_node},
         {"crowds: kept preemption and the reference path agree", test_crowds},
         {"why topology spread and inter-pod affinity reject nodes", test_tracked_reasons},
         {"a node of the domain that nobody touched", test_neighbour_is_told},
         {"nodes that are told apart anew", test_cells_anew},
         {"filters in another order", test_other_order},
         {"crowds of such pods that fit nowhere", test_tracked_crowds})
