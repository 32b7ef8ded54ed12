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

static void trio_init(struct trio *t, enum bh_tie_break tie, uint64_t seed)
{
    for (unsigned e = 0; e < ENGINES; e++)
        fx_init_with(&t->f[e], NULL,
                     (struct bh_engine_options){.tie_break = tie,
                                                .seed = seed,
                                                .reference = e == REFERENCE,
                                                .verify = e == VERIFY});
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

/* ---- why nothing fits --------------------------------------------------------------------------
 */

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

/* ---- a promised node ---------------------------------------------------------------------------
 */

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

/* ---- a crowd: most pods evict others -----------------------------------------------------------
 */

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

static void test_crowds(void)
{
    const char *seed_text = getenv("BERTH_TEST_SEED"), *runs_text = getenv("BERTH_TEST_RUNS");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : bh_rand_entropy();
    unsigned n = runs_text ? (unsigned)strtoul(runs_text, NULL, 0) : 4;

    for (unsigned i = 0; i < n; i++)
        crowd(i % 2 ? BH_TIE_FIRST : BH_TIE_RANDOM, seed + i);
}

BH_TESTS("scheduler/engine/fail",
         {"why nothing fits follows every change of a node", test_reasons_follow_the_nodes},
         {"more reasons than are kept", test_too_many_reasons},
         {"a promised node is taken, or does not stand in its own way", test_promised_node},
         {"crowds: kept preemption and the reference path agree", test_crowds})
