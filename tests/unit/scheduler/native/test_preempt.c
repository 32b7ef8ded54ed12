/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin that makes room by rules of its own: whom it is asked about, what its answers do, and what it may
 * not. And what it hears of changes and nominations.
 */
#include "scheduler/native/native_int.h"
#include "tests/unit/scheduler/engine/fixture.h"

static const struct berth_host *host = &bh_native_host;

/* ---- a plugin that evicts as the test says --------------------------------------------------- */

static struct {
    struct berth_preemption how; /* but for its callbacks */
    const char *evicts;          /* names; a letter each */
    uint32_t refuse; /* check() refuses then; 0: never (NONE is asked with no victims only) */
    int32_t with;    /* ... with this code */
    const char *text;
    bool twice, nested, peeks, without_evicts, gives_up, in_filter;
    bool by_name;
    struct berth_home *home;
    int32_t said; /* run()'s answer */
    char seen[256];
    uint64_t at;
    uint32_t n_changed, n_nominated;
} t;

static void note(const char *what, struct berth_call *c, const struct berth_pod *pod)
{
    size_t n = strlen(t.seen);

    snprintf(t.seen + n, sizeof t.seen - n, "%s%s ", what, pod ? host->pods->name(c, pod).p : "");
}

static int32_t waits_for(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    CU_ASSERT(arg == &t && host->pods->terminating(c, pod));
    note("wait:", c, pod);
    return 1;
}

static int32_t run(struct berth_call *c, struct berth_why *why);

static int32_t evicts(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    struct berth_why why = {.size = sizeof why};

    CU_ASSERT(arg == &t);
    note("", c, pod);
    if (t.nested)
        CU_ASSERT_EQUAL(run(c, &why), BERTH_ERROR);
    return strchr(t.evicts, *host->pods->name(c, pod).p) != NULL;
}

static void begin_node(void *arg, struct berth_call *c, const struct berth_node *node)
{
    CU_ASSERT(arg == &t && host->nodes->name(c, node) != 0);
    note("node", c, NULL);
}

static void moved(void *arg, struct berth_call *c, const struct berth_pod *pod, int32_t by)
{
    CU_ASSERT(arg == &t);
    note(by < 0 ? "-" : "+", c, pod);
}

static int32_t check(void *arg, struct berth_call *c, const struct berth_node *node, uint32_t when,
                     struct berth_why *why)
{
    static const char *const whens[] = {"none", "off", "fits", "gone"};

    CU_ASSERT(arg == &t);
    note(whens[when], c, NULL);
    if (t.by_name && when == BERTH_EVICT_NONE) {
        why->reason = host->base->text(t.home, host->nodes->name(c, node));
        return BERTH_UNRESOLVABLE;
    }
    if (t.with == BERTH_SUCCESS || when != t.refuse)
        return BERTH_SUCCESS;
    why->reason = (struct berth_str){t.text, strlen(t.text)};
    return t.with;
}

static int32_t run(struct berth_call *c, struct berth_why *why)
{
    struct berth_preemption how = t.how;

    how.size = sizeof how;
    how.arg = &t;
    how.waits_for = waits_for;
    how.evicts = t.without_evicts ? NULL : evicts;
    how.begin = begin_node;
    how.moved = moved;
    how.check = check;
    return host->preemption->run(c, &how, why);
}

static int32_t post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why)
{
    (void)self, (void)ret;
    if (t.peeks)
        (void)host->pods->scheduled(c, host->pods->current(c));
    t.said = run(c, why);
    if (t.twice)
        t.said = run(c, why);
    if (!t.gives_up)
        return t.said;
    why->reason = BERTH_STR("rather not");
    return BERTH_UNSCHEDULABLE;
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    (void)args, (void)why;
    *ret = NULL;
    t.home = home;
    return BERTH_SUCCESS;
}

static int32_t filter(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why)
{
    (void)self, (void)node;
    return t.in_filter ? run(c, why) : BERTH_SUCCESS;
}

/* What it is told of changes, in PreFilter. */
static int32_t pre_filter(void *self, struct berth_call *c, const berth_sym **names, uint64_t *n,
                          struct berth_why *why)
{
    uint64_t at = 0;
    uint32_t rows[1], k;
    berth_sym node;

    (void)self, (void)names, (void)n, (void)why;
    for (t.n_changed = 0; (k = host->columns->changed(c, &t.at, rows, 1)) == 1;)
        t.n_changed++;
    if (k == UINT32_MAX)
        t.n_changed = k;
    for (t.n_nominated = 0; host->pods->nominated(c, &at, &node);)
        t.n_nominated += node != 0;
    return BERTH_SUCCESS;
}

static const struct berth_plugin plugins[] = {
    {.size = sizeof(struct berth_plugin),
     .name = {"Evicts", 6},
     .create = create,
     .post_filter = post_filter,
     .filter = filter},
    {.size = sizeof(struct berth_plugin), .name = {"Counts", 6}, .pre_filter = pre_filter},
    {.size = sizeof(struct berth_plugin),
     .name = {"Peeks", 5},
     .reads = BERTH_READS_NODE,
     .pre_filter = pre_filter},
};

static const struct bh_plugin *find(const char *name)
{
    static struct bh_native_plugin *made[BH_ARRAY_LEN(plugins)];
    struct bh_err err;

    for (size_t i = 0; i < BH_ARRAY_LEN(plugins); i++) {
        if (!bh_streq(plugins[i].name.p, name))
            continue;
        if (!made[i])
            CU_ASSERT_FATAL(bh_native_adopt(&plugins[i], &made[i], &err) == 0);
        return &made[i]->d;
    }
    return NULL;
}

/* ---- a node of four cores, which x, y and z use ---------------------------------------------- */

static void begin(struct fx *f, const char *plugin)
{
    bh_plugin_find_more = find;
    memset(&t, 0, sizeof t);
    t.how.min_candidates_percentage = 100;
    t.evicts = "xyz";
    t.text = "not so";
    char profile[256];
    snprintf(profile, sizeof profile,
             "{'schedulerName':'default-scheduler','plugins':{'multiPoint':{'enabled':[{'name':"
             "'%s'}]},'postFilter':{'disabled':[{'name':'DefaultPreemption'}]}}}",
             plugin);
    fx_init(f, profile);
    fx_node(f, "a", "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
}

static void full(struct fx *f)
{
    fx_place(f, fx_pod(f, "y", "'cpu':'1'", "'priority':20"), "a");
    fx_place(f, fx_pod(f, "x", "'cpu':'1'", "'priority':30"), "a");
    fx_place(f, fx_pod(f, "z", "'cpu':'2'", "'priority':10"), "a");
}

static const struct bh_decision *come(struct fx *f)
{
    return fx_schedule(f, fx_pod(f, "p", "'cpu':'2'", "'priority':5"));
}

/* "node: victim victim" */
static const char *victims(struct fx *f, const struct bh_decision *d)
{
    const char *text = bh_arena_printf(&f->arena, "%s:", fx_text(f, d->nominated_node));

    for (uint32_t i = 0; i < d->n_victims; i++)
        text = bh_arena_printf(&f->arena, "%s %s", text, d->victims[i].name.p);
    return text;
}

/* Priorities do not matter; what is put back first is the most important. */
static void test_its_word_counts(void)
{
    struct fx f;

    begin(&f, "Evicts");
    full(&f);
    FX_STR(victims(&f, come(&f)), "a: z");
    FX_STR(t.seen, "node y -y x -x z -z off +x fits +y fits +z -z gone ");
    fx_fini(&f);
    begin(&f, "Evicts");
    full(&f);
    t.how.flags = BERTH_PREEMPT_ASCENDING;
    t.evicts = "xy";
    FX_STR(victims(&f, come(&f)), "a: x y");
    FX_STR(t.seen, "node z y -y x -x off +x -x gone +y -y gone ");
    fx_fini(&f);
}

static void test_check(void)
{
    static const struct {
        const char *evicts;
        uint32_t when;
        int32_t code;
        const char *victims, *message; /* part of it */
    } rows[] = {
        {"", BERTH_EVICT_NONE, BERTH_UNRESOLVABLE, ":", "1 not so."},
        {"", BERTH_EVICT_OFF, BERTH_UNRESOLVABLE, ":", "1 No preemption victims found"},
        {"xyz", BERTH_EVICT_OFF, BERTH_UNSCHEDULABLE, ":", "1 not so."},
        {"xyz", BERTH_EVICT_FITS, BERTH_UNSCHEDULABLE, "a: x y z", ""},
        {"xyz", BERTH_EVICT_GONE, BERTH_UNSCHEDULABLE, "a: z", ""},
        {"xyz", BERTH_EVICT_GONE, BERTH_ERROR, ":", "not so"},
        {"xyz", BERTH_EVICT_OFF, BERTH_WAIT, ":", "it may not return 4 there"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, "Evicts");
        full(&f);
        t.evicts = rows[i].evicts;
        t.refuse = rows[i].when;
        t.with = rows[i].code;
        const struct bh_decision *d = come(&f);
        FX_STR(victims(&f, d), rows[i].victims);
        CU_ASSERT(strstr(d->message, rows[i].message) != NULL);
        fx_fini(&f);
    }
}

/* A pod that is going is waited for, if the plugin says so. */
static void test_waits(void)
{
    struct fx f;

    begin(&f, "Evicts");
    full(&f);
    fx_place(&f,
             fx_pod_full(&f, "w", "'deletionTimestamp':'2026-01-01T00:00:00Z'",
                         "'containers':[{'name':'c'}]", ""),
             "a");
    struct fx_pod p = fx_pod(&f, "p", "'cpu':'2'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    const struct bh_decision *d = fx_schedule(&f, p);
    CU_ASSERT_EQUAL(d->n_victims, 0);
    CU_ASSERT(strstr(d->message, "not eligible due to a terminating pod") != NULL);
    FX_STR(t.seen, "wait:w ");
    fx_fini(&f);
}

/* What it found is for nothing if it says so. */
static void test_gives_up(void)
{
    struct fx f;

    begin(&f, "Evicts");
    full(&f);
    t.gives_up = true;
    const struct bh_decision *d = come(&f);
    CU_ASSERT_EQUAL(t.said, BERTH_SUCCESS);
    FX_STR(victims(&f, d), ":");
    CU_ASSERT(strstr(d->message, "rather not") != NULL);
    fx_fini(&f);
}

/* A reason for each of many nodes: the plugin's own may have 1024 bytes, run()'s as many as it needs. */
static void test_many_nodes(void)
{
    struct fx f;
    char name[64];

    begin(&f, "Evicts");
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "a-node-whose-name-is-not-as-short-as-others-%02u", i);
        fx_node(&f, name, "'cpu':'1','memory':'8Gi','pods':'110'", "", "", "");
        fx_place(&f, fx_pod(&f, bh_arena_printf(&f.arena, "t%u", i), "'cpu':'1'", ""), name);
    }
    full(&f);
    t.evicts = "";
    t.by_name = true;
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "r", "'cpu':'1'", ""));
    CU_ASSERT_EQUAL(d->kind, BH_NO_FIT);
    CU_ASSERT(strlen(d->message) > 1400 && strstr(d->message, "1 a-node-whose-name") != NULL);
    CU_ASSERT_PTR_NULL(strstr(d->message, "it gave a reason"));
    fx_fini(&f);
}

static void test_what_it_may_not(void)
{
    static const char *const wanted[] = {
        "it called preemption->run outside of PostFilter, or twice",
        "it called preemption->run outside of PostFilter, or twice",
        "it called preemption->run without waits_for() or evicts()",
        "it called preemption->run with a share of nodes that is not 0 to 100 percent",
        "it called preemption->run with flags that this Berth does not know",
        "it called preemption->run outside of PostFilter, or twice",
        "it used scheduled without BERTH_READS_ANNOTATIONS and IDENTITY in its reads",
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(wanted); i++) {
        struct fx f;
        begin(&f, "Evicts");
        full(&f);
        t.in_filter = i == 0;
        t.twice = i == 1;
        t.without_evicts = i == 2;
        t.how.min_candidates_percentage = i == 3 ? 101 : 100;
        t.how.flags = i == 4 ? 2 : 0;
        t.nested = i == 5;
        t.peeks = i == 6;
        const struct bh_decision *d = come(&f);
        FX_STR(victims(&f, d), ":");
        CU_ASSERT(strstr(d->message, wanted[i]) != NULL);
        fx_fini(&f);
    }
}

static void test_changes(void)
{
    struct fx f;

    begin(&f, "Counts");
    (void)come(&f);
    CU_ASSERT_EQUAL(t.n_changed, UINT32_MAX); /* the beginning */
    CU_ASSERT_EQUAL(t.n_nominated, 0);
    (void)come(&f);
    CU_ASSERT_EQUAL(t.n_changed, 0);
    fx_place(&f, fx_pod(&f, "y", "'cpu':'1'", ""), "a");
    fx_node(&f, "b", "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
    struct fx_pod p = fx_pod(&f, "n", "'cpu':'1'", "");
    const struct bh_pending pending = {.pod = p.rec, .shape = p.shape};
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "a"));
    (void)come(&f);
    CU_ASSERT_EQUAL(t.n_changed, 2);
    CU_ASSERT_EQUAL(t.n_nominated, 1);
    bh_engine_nominate(f.e, &pending, bh_sym_internc(bh_engine_symtab(f.e), "nowhere"));
    (void)come(&f);
    CU_ASSERT_EQUAL(t.n_nominated, 0);
    fx_fini(&f);
    begin(&f, "Peeks");
    const struct bh_decision *d = come(&f);
    CU_ASSERT(strstr(d->message, "without BERTH_READS_OTHERS in its reads") != NULL);
    fx_fini(&f);
}

BH_TESTS("scheduler/native/preempt", {"its word counts", test_its_word_counts},
         {"what check() says", test_check}, {"it waits for a pod that is going", test_waits},
         {"it gives up", test_gives_up}, {"a reason for each of many nodes", test_many_nodes},
         {"what it may not", test_what_it_may_not}, {"changes and nominations", test_changes})
