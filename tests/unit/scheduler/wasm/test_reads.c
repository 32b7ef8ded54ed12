/* SPDX-License-Identifier: Apache-2.0
 *
 * What guests read of the cluster: lists of nodes, images, pods that wait or come and go; and whose instance runs a
 * hook when the pod's own is gone.
 */
#include "tests/unit/scheduler/wasm/wish.h"

/* What the guest said of the first node, or of the pod. */
static const char *told(struct fx *f, const struct bh_decision *d)
{
    const char *of_a = fx_verdict(f, d, "a");

    return *of_a ? of_a : d->message ? d->message : d->fit_message ? d->fit_message : "";
}

static void test_nodes(void)
{
    static const struct {
        const char *wish, *says;
    } rows[] = {
        {"prefilter=tell:nodes", "0/3 nodes are available: a b c "},
        {"filter=tell:nodes", "Unschedulable: a b c "},
        {"filter=tell:node:b", "Unschedulable: b"},
        {"filter=tell:images:a",
         "Unschedulable: {\"x:1\":{\"Size\":500,\"NumNodes\":2,\"Nodes\":null},"
         "\"y\":{\"Size\":7,\"NumNodes\":1,\"Nodes\":null}}"},
        {"filter=tell:images:c", "Unschedulable: {}"},
        {"filter=tell:images:none", "Unschedulable: null"},
        {"filter=tell:short", "Unschedulable: -"},
    };

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].wish);
        fx_node(&f, "a", "'cpu':'4','memory':'8Gi','pods':'110'", "", "",
                "'images':[{'names':['y'],'sizeBytes':7},{'names':['x:1'],'sizeBytes':500}]");
        fx_node(&f, "b", "'cpu':'4','memory':'8Gi','pods':'110'", "", "",
                "'images':[{'names':['x:1'],'sizeBytes':500}]");
        HAS(told(&f, decide(&f, "p")), rows[i].says);
        fx_fini(&f);
    }
    struct fx f;
    begin(&f, "filter=tell:node:none"); /* there is none: nothing to tell */
    CU_ASSERT(decide(&f, "p")->node != BH_SYM_NONE);
    bh_engine_put_raw(f.e, BH_KIND_POD, "uid-q", NULL, 0);
    HAS(fx_schedule(&f, fx_pod(&f, "q", "'cpu':'10m'", ""))->message,
        "wasm: prefilter error: the object of pod default/q is not known");
    fx_fini(&f);
}

/* p waits; what the guest asks about it in q's hooks. */
static void test_waiting(void)
{
    static const struct {
        const char *wish, *says;
        bool goes_on;
    } rows[] = {
        {"permit=4 filter=tell:waiting:uid-p", "Unschedulable: default/p", true},
        {"permit=4 filter=tell:reject:uid-p", "Unschedulable: 1", false},
    };

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        int64_t timeout = 0;
        begin(&f, rows[i].wish);
        const struct bh_pending p = pending(&f, "p");
        const bh_sym node = choose(&f, &p); /* it does not wait yet */
        CU_ASSERT(!bh_engine_reserve(f.e, &p, node));
        CU_ASSERT(bh_status_code(bh_engine_permit(f.e, &p, node, &timeout)) == BH_WAIT);
        struct bh_waiting_pod *w = bh_engine_waiting(f.e, bh_str_c("uid-p"));
        CU_ASSERT_FATAL(w != NULL);
        HAS(told(&f, decide(&f, "q")), rows[i].says);
        const char *who[1];
        int64_t until;
        CU_ASSERT((bh_waiting_for(w, who, 1, &until) > 0) == rows[i].goes_on);
        bh_engine_unreserve(f.e, &p, node);
        fx_fini(&f);
    }
}

/* Room is made for p: the guest is told of who goes, and comes back, and what it says counts. */
static void test_changes(void)
{
    static const struct {
        const char *wish, *says, *nominated;
    } rows[] = {
        {"", "", "a"},
        {"removepod=2", "running RemovePod on PreFilter plugin \"Wish\": removepod", ""},
        {"removepod=tell:target", "plugin \"Wish\": default/u", ""},
        {"removepod=panic", "wasm: removepod error: panic!", ""},
        {"addpod=panic", "wasm: addpod error: panic!", ""},
    };

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].wish);
        for (unsigned n = 0; n < 3; n++) {
            const char *name = (const char *[]){"u", "v", "w"}[n],
                       *node = (const char *[]){"a", "b", "c"}[n];
            put_pod_object(&f, name, node);
            fx_place(&f, fx_pod(&f, name, "'cpu':'4'", "'priority':0"), node);
        }
        put_pod_object(&f, "p", "");
        const struct bh_decision *d =
            fx_schedule(&f, fx_pod(&f, "p", "'cpu':'1'", "'priority':1000"));
        HAS(d->post_filter_message ? d->post_filter_message : "", rows[i].says);
        FX_STR(fx_text(&f, d->nominated_node), rows[i].nominated);
        fx_fini(&f);
    }
}

static void test_normalized(void)
{
    struct fx f;

    if (absent())
        return;
    begin(&f, "normalizescore=none"); /* as they are */
    const struct bh_decision *d = decide(&f, "p");
    FX_STR(fx_text(&f, d->node), "c");
    FX_INT(fx_score(&f, d, "c", "Wish", false), 20);
    fx_fini(&f);
    begin(&f, "normalizescore=other");
    HAS(decide(&f, "p")->message, "returns an invalid score -1,");
    fx_fini(&f);
}

/* ---- whose instance ---------------------------------------------------------------------------- */

/* Two pods on their way have an instance each; what one leaves the next pod has. */
static void test_instances(void)
{
    struct fx f;

    if (absent())
        return;
    begin(&f, "");
    const int64_t before = bh_json_get_i64(of_wish(&f), "instances", 0);
    const struct bh_pending p = pending(&f, "p"), q = pending(&f, "q"), r = pending(&f, "r");
    const bh_sym at = choose(&f, &p);
    CU_ASSERT(!bh_engine_reserve(f.e, &p, at));
    const bh_sym other = choose(&f, &q);
    CU_ASSERT(!bh_engine_reserve(f.e, &q, other));
    FX_INT(bh_json_get_i64(of_wish(&f), "instances", 0) - before, 2);
    bh_engine_unreserve(f.e, &p, at);
    CU_ASSERT(!bh_engine_reserve(f.e, &r, choose(&f, &r)));
    FX_INT(bh_json_get_i64(of_wish(&f), "instances", 0) - before, 2);
    fx_fini(&f); /* q and r are on their way */
}

/* The instance has another pod by now, or trapped: a new one is told of the pod first, if it can be. */
static void test_told_again(void)
{
    struct fx f;

    if (absent())
        return;
    begin(&f, "");
    const struct bh_pending p = pending(&f, "p"), q = pending(&f, "q");
    const bh_sym at = choose(&f, &p);
    (void)choose(&f, &q);
    CU_ASSERT(!bh_engine_reserve(f.e, &p, at));
    bh_engine_unreserve(f.e, &p, at);
    fx_fini(&f);
    begin(&f, "");
    const struct bh_pending r = pending(&f, "r"), s = pending(&f, "s");
    const bh_sym there = choose(&f, &r);
    (void)choose(&f, &s);
    bh_engine_put_raw(f.e, BH_KIND_POD, "uid-r", NULL, 0);
    const struct bh_status *why = bh_engine_reserve(f.e, &r, there);
    HAS(why ? bh_status_message(&f.arena, why) : "",
        "wasm: prefilter error: the object of pod default/r is not known");
    bh_engine_unreserve(f.e, &r, there);
    fx_fini(&f);
    /* One that is known by its name may still have args with which none begins. */
    begin(&f, "start=panic");
    HAS(decide(&f, "p")->message, "failed to create a guest pool: wasm: instantiate error: panic!");
    fx_fini(&f);
    begin(&f, "start=exit");
    HAS(decide(&f, "p")->message, "module closed with exit_code(3)");
    fx_fini(&f);
}

static void test_pre_bind(void)
{
    static const struct {
        const char *wish, *says;
        enum bh_prebind_state state;
    } rows[] = {{"", "", BH_PREBIND_READY},
                {"prebind=2", "prebind", BH_PREBIND_REFUSED},
                {"prebind=panic", "wasm: prebind error: panic!", BH_PREBIND_FAILED}};

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        const char *text = "";
        struct fx f;
        begin(&f, rows[i].wish);
        const struct bh_pending p = pending(&f, "p");
        const bh_sym at = choose(&f, &p);
        CU_ASSERT(!bh_engine_reserve(f.e, &p, at));
        CU_ASSERT(bh_engine_prebind_due(f.e, &p));
        CU_ASSERT(bh_engine_prebind_check(f.e, &p, at, 1, TIME, &text) == rows[i].state);
        HAS(rows[i].state == BH_PREBIND_READY ? "" : text, rows[i].says);
        bh_engine_unreserve(f.e, &p, at);
        fx_fini(&f);
    }
}

/* ---- what wakes pods -------------------------------------------------------------------------- */

static void test_events(void)
{
    static const struct {
        const char *wish;
        unsigned n; /* events that it registers for; 0: everything */
    } rows[] = {
        {"", 6}, {"events=node", 1}, {"events=strange", 1}, {"events=any", 0}, {"events=twice", 2}};

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_arena a = {0};
        struct fx f;
        unsigned n = 0;
        bh_arena_init(&a, 0);
        bh_guest_start();
        const char *name = bh_arena_printf(&a, "Woken%u", i);
        fx_init(&f, profile(&a, name,
                            bh_arena_printf(&a, "{'guestURL':'%s','guestConfig':'%s'}", wish_file(),
                                            rows[i].wish)));
        const struct bh_plugin *d = bh_plugin_find(name);
        CU_ASSERT_FATAL(d != NULL);
        for (const struct bh_event_reg *e = d->events; e && e->actions; e++)
            n++;
        FX_INT(n, rows[i].n);
        CU_ASSERT((d->events == NULL) == (rows[i].n == 0));
        if (i == 2) {
            CU_ASSERT(d->events->on == BH_ON_POD && d->events->actions == BH_EV_UPDATE);
        }
        if (i == 4) { /* a resource that is named three times */
            CU_ASSERT(d->events[0].on == BH_ON_POD && d->events[0].actions == 2);
            CU_ASSERT(d->events[1].on == BH_ON_NODE && d->events[1].actions == 3);
        }
        fx_fini(&f);
        bh_arena_fini(&a);
    }
}

BH_TESTS("scheduler/wasm/reads", {"nodes and images", test_nodes}, {"pods that wait", test_waiting},
         {"pods that come and go", test_changes}, {"normalised scores", test_normalized},
         {"instances", test_instances}, {"told again", test_told_again}, {"PreBind", test_pre_bind},
         {"what wakes pods", test_events})
