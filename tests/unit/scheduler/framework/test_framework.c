/* SPDX-License-Identifier: Apache-2.0
 *
 * The framework's rules with plugins made for the purpose.
 */
#include "scheduler/framework/framework.h"
#include "tests/unit/scheduler/engine/fixture.h"

/* ---- fake plugins: what they answer stands in `answers` -------------------------------------- */

enum { PLUGINS = 3 };
static struct answers {
    const struct bh_status *pre_filter[PLUGINS], *filter[PLUGINS], *post_filter[PLUGINS],
        *pre_score[PLUGINS], *score[PLUGINS], *reserve[PLUGINS], *permit[PLUGINS], *bind[PLUGINS];
    struct bh_node_set nodes[PLUGINS];
    int64_t raw[PLUGINS], timeout_ns[PLUGINS];
    struct bh_post_filter_result result[PLUGINS];
    char log[256]; /* calls in order */
} answers;

static unsigned self(const struct bh_call *c)
{
    return (unsigned)(c - c->cycle->calls);
}
static void note(const struct bh_call *c, char what)
{
    size_t n = strlen(answers.log);
    if (n + 3 < sizeof answers.log) {
        answers.log[n] = what;
        answers.log[n + 1] = (char)('0' + (int)self(c));
    }
}
static const struct bh_status *pre_filter(struct bh_call *c, struct bh_node_set *ret)
{
    note(c, 'p');
    if (answers.nodes[self(c)].names)
        *ret = answers.nodes[self(c)];
    return answers.pre_filter[self(c)];
}
static const struct bh_status *filter(struct bh_call *c, const struct bh_node_info *n)
{
    (void)n;
    note(c, 'f');
    return answers.filter[self(c)];
}
static const struct bh_status *post_filter(struct bh_call *c, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret)
{
    (void)d;
    note(c, 'o');
    *ret = answers.result[self(c)];
    return answers.post_filter[self(c)];
}
static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n)
{
    (void)rows;
    (void)n;
    return answers.pre_score[self(c)];
}
static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *n, int64_t *ret)
{
    (void)n;
    note(c, 's');
    *ret = answers.raw[self(c)];
    return answers.score[self(c)];
}
static const struct bh_status *reserve(struct bh_call *c, bh_sym node)
{
    (void)node;
    note(c, 'r');
    return answers.reserve[self(c)];
}
static void unreserve(struct bh_call *c, bh_sym node)
{
    (void)node;
    note(c, 'u');
}
static const struct bh_status *permit(struct bh_call *c, bh_sym node, int64_t *ret)
{
    (void)node;
    *ret = answers.timeout_ns[self(c)];
    return answers.permit[self(c)];
}
/* Bind and PostBind have no cycle: which plugin it is stands in its args. */
static unsigned self_by_args(const struct bh_call *c, char what)
{
    const unsigned i = *(const unsigned *)c->args;

    snprintf(answers.log + strlen(answers.log), 3, "%c%u", what, i);
    return i;
}
static const struct bh_status *bind_it(struct bh_call *c, bh_sym node, struct bh_bind_order *ret)
{
    (void)node, (void)ret;
    return answers.bind[self_by_args(c, 'b')];
}
static void post_bind(struct bh_call *c, bh_sym node)
{
    (void)node;
    (void)self_by_args(c, 'B');
}
static const struct bh_status *add_pod(struct bh_call *c, const struct bh_pod_info *p,
                                       const struct bh_node_info *n, int by)
{
    (void)p;
    (void)n;
    (void)by;
    note(c, '+');
    return NULL;
}

#define FAKE(n)                                                                                    \
    {                                                                                              \
        .abi = BH_PLUGIN_ABI, .size = sizeof(struct bh_plugin), .name = n,                         \
        .pre_filter = pre_filter, .filter = filter, .post_filter = post_filter,                    \
        .pre_score = pre_score, .score = score, .reserve = reserve, .unreserve = unreserve,        \
        .permit = permit, .bind = bind_it, .post_bind = post_bind, .change_pod = add_pod,          \
    }
static const struct bh_plugin fakes[PLUGINS] = {FAKE("C"), FAKE("A"), FAKE("B")};

#define STATUS(id, code_, text_) BH_STATUS_CONST(id, code_, "A", text_)
STATUS(unschedulable, BH_UNSCHEDULABLE, "no room");
STATUS(hopeless, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, "never");
STATUS(pending, BH_PENDING, "later");
STATUS(failed, BH_ERROR, "boom");
STATUS(wait_status, BH_WAIT, "waiting");

struct world {
    struct bh_symtab *tab;
    struct bh_cache cache;
    struct bh_objects objects;
    struct bh_arena arena;
    struct bh_framework fw;
    struct bh_evaluations counts[PLUGINS];
    struct bh_plugin_instance in[PLUGINS];
    struct bh_shape_rec shape;
    struct bh_pod_rec rec;
    struct bh_pod_info pod;
    struct bh_cycle cy;
};

static void setup(struct world *w)
{
    static uint8_t order[PLUGINS] = {0, 1, 2};

    memset(w, 0, sizeof *w);
    memset(&answers, 0, sizeof answers);
    w->tab = bh_symtab_new();
    bh_cache_init(&w->cache, w->tab, false);
    bh_arena_init(&w->arena, 0);
    w->fw.plugins = w->in;
    w->fw.n_plugins = PLUGINS;
    for (unsigned i = 0; i < PLUGINS; i++)
        w->in[i] = (struct bh_plugin_instance){.plugin = &fakes[i], .weight = (int32_t)i + 1};
    for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++) {
        w->fw.point[pt] = order;
        w->fw.n_point[pt] = PLUGINS;
    }
    w->fw.evaluations = w->counts;
    w->pod = (struct bh_pod_info){.rec = &w->rec, .shape = &w->shape};
    bh_cycle_init(&w->cy, &w->fw, &w->cache, &w->objects, &w->pod, &w->arena, 0);
}

static void teardown(struct world *w)
{
    bh_cache_fini(&w->cache);
    bh_symtab_free(w->tab);
    bh_arena_fini(&w->arena);
}

static void test_pre_filter_codes(void)
{
    struct world w;
    struct bh_pre_filter_result r;

    setup(&w);
    answers.pre_filter[0] = &unschedulable; /* the others still run */
    answers.pre_filter[1] = &bh_status_skip;
    bh_run_pre_filter(&w.cy, &r);
    FX_STR(answers.log, "p0p1p2");
    CU_ASSERT(r.status == &unschedulable && r.rejected_by == 0);
    FX_INT(w.cy.skip_filter, 2);
    CU_ASSERT(w.counts[0].pre_filter == 1 && w.counts[1].pre_filter == 0); /* Skip counts not */
    teardown(&w);

    setup(&w);
    answers.pre_filter[1] = &hopeless;
    answers.nodes[0] = (struct bh_node_set){.n = 1, .names = (const bh_sym[]){3}};
    bh_run_pre_filter(&w.cy, &r);
    FX_STR(answers.log, "p0p1");
    FX_INT(r.rejected_by, 1);
    FX_INT(r.narrowed_by, 0); /* A alone is to blame */
    teardown(&w);

    const struct bh_status *bad[] = {&failed, &wait_status, &pending};
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++) {
        setup(&w);
        answers.pre_filter[2] = bad[i];
        bh_run_pre_filter(&w.cy, &r);
        FX_INT(r.status->code, BH_ERROR);
        CU_ASSERT(strncmp(r.status->reasons[0], "running PreFilter plugin \"B\": ", 30) == 0);
        teardown(&w);
    }
}

static void test_node_sets_intersect(void)
{
    struct world w;
    struct bh_pre_filter_result r;
    const bh_sym some[] = {3, 5, 9}, others[] = {5, 7}, none[] = {8};

    setup(&w);
    answers.nodes[0] = (struct bh_node_set){.n = 3, .names = some};
    answers.nodes[1] = (struct bh_node_set){.n = 2, .names = others};
    bh_run_pre_filter(&w.cy, &r);
    CU_ASSERT(!r.status && r.nodes.n == 1 && r.nodes.names[0] == 5);
    FX_INT(r.narrowed_by, 3);
    answers.nodes[2] = (struct bh_node_set){.n = 1, .names = none};
    bh_run_pre_filter(&w.cy, &r);
    FX_INT(r.status->code, BH_UNSCHEDULABLE_AND_UNRESOLVABLE);
    FX_STR(r.status->reasons[0], "node(s) didn't satisfy plugin(s) [A B C] simultaneously");
    FX_INT(r.narrowed_by, 7);
    FX_INT(r.rejected_by, -1); /* no single one */
    teardown(&w);

    setup(&w);
    answers.nodes[2] = (struct bh_node_set){.n = 0, .names = none};
    bh_run_pre_filter(&w.cy, &r);
    FX_STR(r.status->reasons[0], "node(s) didn't satisfy plugin B");
    teardown(&w);
}

static void test_filter_codes(void)
{
    struct world w;
    struct bh_node_info ni = {0};
    int by = -1;

    setup(&w);
    w.cy.skip_filter = 1;
    CU_ASSERT(bh_run_filter(&w.cy, &ni, &by) == NULL);
    FX_STR(answers.log, "f1f2");
    const struct bh_status *ok[] = {&unschedulable, &hopeless, &pending};
    for (unsigned i = 0; i < BH_ARRAY_LEN(ok); i++) {
        answers.filter[1] = ok[i];
        CU_ASSERT(bh_run_filter(&w.cy, &ni, &by) == ok[i] && by == 1);
    }
    const struct bh_status *bad[] = {&failed, &wait_status, &bh_status_skip};
    for (unsigned i = 0; i < BH_ARRAY_LEN(bad); i++) {
        answers.filter[1] = bad[i];
        const struct bh_status *s = bh_run_filter(&w.cy, &ni, &by);
        FX_INT(s->code, BH_ERROR);
        CU_ASSERT(strncmp(s->reasons[0], "running \"A\" filter plugin: ", 27) == 0);
    }
    teardown(&w);
}

static void test_skipped_plugins_get_no_pods(void)
{
    struct world w;

    setup(&w);
    w.cy.skip_filter = 2;
    CU_ASSERT(bh_run_change_pod(&w.cy, &w.pod, NULL, 1) == NULL);
    FX_STR(answers.log, "+0+2");
    teardown(&w);
}

static void test_post_filter(void)
{
    struct world w;
    struct bh_post_filter_result r;
    struct bh_diagnosis d = {0};

    setup(&w);
    answers.post_filter[0] = &unschedulable;
    answers.post_filter[1] = &pending;
    answers.result[1] = (struct bh_post_filter_result){.override_nomination = true};
    answers.post_filter[2] = &unschedulable;
    const struct bh_status *s = bh_run_post_filter(&w.cy, &d, &r);
    FX_INT(s->code, BH_UNSCHEDULABLE);
    FX_STR(bh_status_message(&w.arena, s), "no room, later, no room");
    FX_STR(s->plugin, "C");           /* the first */
    CU_ASSERT(r.override_nomination); /* carried even on failure */
    answers.post_filter[1] = NULL;
    answers.result[1].node = 7;
    CU_ASSERT(bh_run_post_filter(&w.cy, &d, &r) == NULL && r.node == 7);
    answers.post_filter[0] = &hopeless;
    CU_ASSERT(bh_run_post_filter(&w.cy, &d, &r) == &hopeless);
    answers.post_filter[0] = &failed;
    s = bh_run_post_filter(&w.cy, &d, &r);
    FX_INT(s->code, BH_ERROR);
    FX_STR(s->reasons[0], "boom");
    answers.post_filter[0] = &unschedulable;
    answers.result[0] = (struct bh_post_filter_result){.node = 5, .override_nomination = true};
    answers.post_filter[1] = &failed;
    CU_ASSERT(bh_run_post_filter(&w.cy, &d, &r)->code == BH_ERROR);
    CU_ASSERT(!r.override_nomination && !r.node); /* an error takes it all back */
    teardown(&w);
}

static void test_scores(void)
{
    struct world w;
    uint32_t rows[] = {0, 1};
    int64_t total[2];

    setup(&w);
    bh_columns_reserve(&w.cache.cols, 2);
    w.cache.rows = bh_calloc(2, sizeof *w.cache.rows);
    answers.pre_score[1] = &bh_status_skip;
    answers.raw[0] = 10;
    answers.raw[1] = 1000; /* skipped: would be out of range */
    answers.raw[2] = 100;
    CU_ASSERT(bh_run_pre_score(&w.cy, rows, 2) == NULL);
    CU_ASSERT(bh_run_score(&w.cy, rows, 2, total, NULL, NULL) == NULL);
    FX_INT(total[0], 10 * 1 + 100 * 3);
    answers.raw[0] = -1;
    FX_STR(bh_run_score(&w.cy, rows, 2, total, NULL, NULL)->reasons[0],
           "applying score defaultWeights on Score plugins: plugin \"C\" returns an invalid score "
           "-1, it "
           "should in the range of [0, 100] after normalizing");
    answers.score[0] = &failed;
    FX_STR(bh_run_score(&w.cy, rows, 2, total, NULL, NULL)->reasons[0],
           "running Score plugins: plugin \"C\" failed with: boom");
    answers.pre_score[2] = &unschedulable;
    FX_STR(bh_run_pre_score(&w.cy, rows, 2)->reasons[0], "running PreScore plugin \"B\": no room");
    teardown(&w);
}

static void test_reserve_and_permit(void)
{
    struct world w;
    int64_t timeout;

    setup(&w);
    answers.reserve[1] = &unschedulable;
    CU_ASSERT(bh_run_reserve(&w.cy, 1) == &unschedulable);
    bh_run_unreserve(&w.cy, 1);
    FX_STR(answers.log, "r0r1u2u1u0"); /* all of them, in reverse */
    answers.reserve[0] = &wait_status;
    FX_STR(bh_run_reserve(&w.cy, 1)->reasons[0], "running Reserve plugin \"C\": waiting");

    CU_ASSERT(bh_run_permit(&w.cy, 1, &timeout) == NULL);
    answers.permit[0] = &wait_status;
    answers.timeout_ns[0] = (int64_t)3600 * 1000000000;
    const struct bh_status *s = bh_run_permit(&w.cy, 1, &timeout);
    FX_INT(bh_status_code(s), BH_WAIT);
    FX_STR(bh_status_message(&w.arena, s),
           "waiting, one or more plugins asked to wait and no plugin rejected pod");
    FX_INT(timeout, (int64_t)900 * 1000000000);
    answers.permit[2] = &unschedulable; /* a later rejection wins */
    CU_ASSERT(bh_run_permit(&w.cy, 1, &timeout) == &unschedulable);
    teardown(&w);
}

static void test_bind(void)
{
    struct world w;
    struct bh_bind_order order = {0};

    setup(&w);
    static unsigned ids[PLUGINS] = {0, 1, 2};
    struct bh_call c = {.arena = &w.arena};
    for (unsigned i = 0; i < PLUGINS; i++)
        w.in[i].args = &ids[i];
    answers.bind[0] = &bh_status_skip;
    CU_ASSERT(bh_run_bind(&w.fw, &c, 4, &order) == NULL);
    FX_STR(answers.log, "b0b1"); /* the third has nothing left to do */
    FX_STR(order.plugin, "A");
    CU_ASSERT(!order.write);
    answers.bind[1] = &failed;
    FX_STR(bh_run_bind(&w.fw, &c, 4, &order)->reasons[0], "running Bind plugin \"A\": boom");
    answers.bind[1] = &unschedulable; /* a rejection is no failure */
    CU_ASSERT(bh_run_bind(&w.fw, &c, 4, &order) == &unschedulable);
    answers.bind[1] = answers.bind[2] = &bh_status_skip;
    FX_INT(bh_run_bind(&w.fw, &c, 4, &order)->code, BH_SKIP);
    answers.log[0] = '\0';
    bh_run_post_bind(&w.fw, &c, 4);
    FX_STR(answers.log, "B0B1B2");
    teardown(&w);
}

static void test_num_to_find(void)
{
    struct bh_framework fw = {.sampling = true};
    const struct {
        uint32_t n;
        int32_t pct;
        uint32_t want;
    } cases[] = {{1000, 5, 100}, {1000, 70, 700}, {99, 1, 99}, {300, 48, 144}, {5000, 10, 500}};

    for (unsigned i = 0; i < BH_ARRAY_LEN(cases); i++) {
        fw.n_point[BH_POINT_SCORE] = 1;
        fw.percentage = cases[i].pct;
        FX_INT(bh_num_to_find(&fw, cases[i].n), cases[i].want);
    }
    fw.n_point[BH_POINT_SCORE] = 0; /* nothing to compare: the first is as good as any */
    FX_INT(bh_num_to_find(&fw, 5000), 1);
    fw.sampling = false;
    FX_INT(bh_num_to_find(&fw, 5000), 5000);
}

static void test_fit_error(void)
{
    struct bh_arena a;
    const struct bh_status two = {.code = BH_UNSCHEDULABLE,
                                  .n_reasons = 2,
                                  .reasons = (const char *const[]){"no room", "other"}};
    const struct bh_status *by_row[12] = {NULL};

    bh_arena_init(&a, 0);
    for (unsigned i = 0; i < 10; i++)
        by_row[i] = i ? &unschedulable : &two;
    FX_STR(bh_fit_error(&a, 12, by_row, 12, &hopeless, NULL),
           "0/12 nodes are available: 1 other, 10 no room, 2 never.");
    FX_STR(bh_fit_error(&a, 12, by_row, 12, NULL, NULL),
           "0/12 nodes are available: 1 other, 10 no room.");
    FX_STR(bh_fit_error(&a, 3, by_row, 0, &hopeless, "text"), "0/3 nodes are available: text.");
    FX_STR(bh_fit_error(&a, 3, by_row, 0, NULL, NULL), "0/3 nodes are available:");
    bh_arena_fini(&a);
}

static void test_event_matching(void)
{
    const struct bh_event_reg reg = {.on = BH_ON_POD,
                                     .actions = BH_EV_POD_LABEL | BH_EV_POD_SCALE_DOWN};
    const struct bh_event_reg all = {.on = BH_ON_POD, .actions = BH_EV_UPDATE};
    struct bh_cluster_event ev = {.resource = BH_EV_POD_ASSIGNED, .action = BH_EV_POD_LABEL};

    CU_ASSERT(bh_event_matches(&reg, &ev));
    ev.resource = BH_EV_POD_UNSCHEDULED;
    CU_ASSERT(bh_event_matches(&reg, &ev));
    ev.action = BH_EV_UPDATE; /* a general update is for those that asked for all of them */
    CU_ASSERT(!bh_event_matches(&reg, &ev));
    CU_ASSERT(bh_event_matches(&all, &ev));
    ev.action = BH_EV_POD_TOLERATION;
    CU_ASSERT(!bh_event_matches(&reg, &ev) && bh_event_matches(&all, &ev));
    ev.resource = BH_EV_NODE;
    CU_ASSERT(!bh_event_matches(&all, &ev));
}

BH_TESTS("scheduler/framework", {"PreFilter: who stops, who goes on", test_pre_filter_codes},
         {"node sets of PreFilter intersect", test_node_sets_intersect},
         {"Filter: other codes become errors", test_filter_codes},
         {"a skipped plugin sees no added pods", test_skipped_plugins_get_no_pods},
         {"PostFilter gathers reasons until someone succeeds", test_post_filter},
         {"scores are weighted and checked", test_scores},
         {"Reserve is undone in reverse, Permit waits at most 15 minutes", test_reserve_and_permit},
         {"Bind goes on after a Skip", test_bind},
         {"how many nodes a sampled search wants", test_num_to_find},
         {"the fit error's histogram", test_fit_error},
         {"events match registrations by resource and bits", test_event_matching})
