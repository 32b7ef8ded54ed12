/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests in an engine: every hook, what its answers do, and every way in which it can go wrong. The
 * guest is tests/guests/wish.c, which does what its configuration says.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/wasm/store.h"
#include "scheduler/wasm/guest_int.h"
#include "tests/unit/scheduler/wasm/wish.h"

/* ---- what it may do -------------------------------------------------------------------------- */

static void test_decides(void)
{
    struct fx f;

    if (absent())
        return;
    begin(&f, "filter=node");
    for (unsigned k = 0; k < 2; k++) {
        const struct bh_decision *d = decide(&f, "p");
        FX_STR(fx_text(&f, d->node), "c"); /* a scores 0, b 1, c 2 */
        FX_INT(fx_score(&f, d, "b", "Wish", true), 1);
        FX_INT(fx_score(&f, d, "c", "Wish", false), 20);
    }
    CU_ASSERT(bh_engine_raw_needs(f.e) ==
              (BH_EXT_NEED_PENDING | BH_EXT_NEED_ASSIGNED | BH_EXT_NEED_NODES));
    bh_engine_put_raw(f.e, BH_KIND_NODE, "c", NULL, 0);
    const struct bh_decision *d = decide(&f, "q");
    FX_STR(fx_text(&f, d->node), "b");
    FX_STR(fx_verdict(&f, d, "c"), "Unschedulable: no such node");
    fx_fini(&f);
}

static void test_answers(void)
{
    static const struct {
        const char *wish, *node, *message;
    } rows[] = {
        {"only=b", "b", ""},
        {"only=million", "a", ""},
        {"only=million:", "", "wasm: prefilter names more than a million nodes"},
        {"prefilter=2", "", "0/3 nodes are available: prefilter"},
        {"prefilter=5", "c", ""},
        {"prefilter=1", "", "running PreFilter plugin \"Wish\": prefilter"},
        {"prefilter=-2147483648", "",
         "running PreFilter plugin \"Wish\": prefilter: status code -2147483648, which there is "
         "not"},
        {"filter=2", "", "0/3 nodes are available: 3 filter"},
        {"filter=3", "", "0/3 nodes are available: 3 filter"},
        {"filter=2147483647", "", "filter: status code 2147483647, which there is not"},
        {"filter=reason", "", "BUG: out of memory reading message"},
        {"prescore=1", "", "running PreScore plugin \"Wish\": [\"a\",\"b\",\"c\"]"},
        {"prescore=5", "a", ""},
        {"score=1", "", "plugin \"Wish\" failed with: score"},
        {"points=101", "", "returns an invalid score 101, it should in the range of [0, 100]"},
        {"points=-2147483648", "", "returns an invalid score -2147483648,"},
        {"points=100", "a", ""},
        {"normalizescore=1", "", "returns an invalid score -1,"},
        {"normalizescore=short", "", "returns an invalid score -1,"},
        {"normalizescore=bad", "", "returns an invalid score -1,"},
    };

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].wish);
        const struct bh_decision *d = decide(&f, "p");
        FX_STR(fx_text(&f, d->node), rows[i].node);
        HAS(d->fit_message ? d->fit_message : d->message ? d->message : "", rows[i].message);
        fx_fini(&f);
    }
}

static void test_post_filter(void)
{
    struct fx f;

    if (absent())
        return;
    begin(&f, "filter=2 postfilter=2 nominate=b");
    const struct bh_decision *d = decide(&f, "p");
    HAS(d->post_filter_message ? d->post_filter_message : "", "{\"a\":2,\"b\":2,\"c\":2}");
    fx_fini(&f);
    begin(&f, "filter=2 nominate=b");
    d = decide(&f, "p");
    FX_STR(fx_text(&f, d->nominated_node), "b");
    fx_fini(&f);
    begin(&f, "filter=2 nominate=x");
    d = decide(&f, "p");
    FX_STR(fx_text(&f, d->nominated_node), "");
    fx_fini(&f);
}

/* ---- after a node was chosen ----------------------------------------------------------------- */

static void test_binding(void)
{
    static const struct {
        const char *wish, *reserve, *permit, *bind;
    } rows[] = {
        {"", "", "", ""},
        {"reserve=2", "reserve", "", ""},
        {"reserve=panic", "wasm: reserve error: panic!\nwasm error: unreachable", "", ""},
        {"permit=2", "", "permit", ""},
        {"permit=4", "", "permit", ""},
        {"permit=panic", "", "wasm: permit error: panic!\nwasm error: unreachable", ""},
        {"bind=2", "", "", "bind"},
        {"bind=panic", "", "", "wasm: bind error: panic!\nwasm error: unreachable"},
        {"unreserve=panic postbind=panic", "", "", ""},
    };

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_bind_order order = {0};
        struct fx f;
        int64_t timeout = 0;
        begin(&f, rows[i].wish);
        const struct bh_pending p = pending(&f, "p"), q = pending(&f, "q");
        bh_sym node = choose(&f, &p);
        const struct bh_status *s = bh_engine_reserve(f.e, &p, node);
        HAS(s ? bh_status_message(&f.arena, s) : "", rows[i].reserve);
        CU_ASSERT((s != NULL) == (*rows[i].reserve != '\0'));
        if (!s) {
            s = bh_engine_permit(f.e, &p, node, &timeout);
            HAS(s ? bh_status_message(&f.arena, s) : "", rows[i].permit);
            CU_ASSERT((s != NULL) == (*rows[i].permit != '\0'));
            CU_ASSERT(bh_status_code(s) != BH_WAIT || timeout == INT64_C(2000000000));
        }
        CU_ASSERT(bh_engine_schedule(f.e, &q, 0, TIME)->node != BH_SYM_NONE); /* another instance */
        if (!s) {
            s = bh_engine_bind(f.e, &p, node, &order);
            HAS(s ? bh_status_message(&f.arena, s) : "", rows[i].bind);
            CU_ASSERT((s != NULL) == (*rows[i].bind != '\0'));
        }
        if (!s)
            (void)bh_engine_post_bind(f.e, &p, fx_text(&f, node));
        bh_engine_unreserve(f.e, &p, node);
        fx_fini(&f);
    }
}

/* The watch may tell of the binding before a binder does: the pod's object is gone by then. */
static void test_bound_already(void)
{
    struct bh_bind_order order = {0};
    struct fx f;

    if (absent())
        return;
    begin(&f, "postbind=event");
    int64_t before = bh_json_get_i64(of_wish(&f), "traps", 0),
            events = bh_json_get_i64(of_wish(&f), "events", 0);
    const struct bh_pending p = pending(&f, "p");
    bh_sym node = choose(&f, &p);
    CU_ASSERT(bh_engine_reserve(f.e, &p, node) == NULL);
    bh_engine_put_raw(f.e, BH_KIND_POD, "uid-p", NULL, 0);
    CU_ASSERT(bh_engine_bind(f.e, &p, node, &order) == NULL);
    (void)bh_engine_post_bind(f.e, &p, fx_text(&f, node));
    CU_ASSERT(bh_json_get_i64(of_wish(&f), "traps", 0) == before);
    CU_ASSERT(bh_json_get_i64(of_wish(&f), "events", 0) == events + 1);
    fx_fini(&f);
}

/* ---- answers that are kept -------------------------------------------------------------------- */

static char other[16]; /* its plugin's name */
/* Another guest of tests/guests; a name of its own each time, as a name has one guest and nodeLocal. */
static void begin_other(struct fx *f, const char *of, const char *wish, bool local, bool verify)
{
    static const char *const nodes[] = {"a", "b", "c"};
    static unsigned n;
    struct bh_arena a = {0};

    bh_arena_init(&a, 0);
    bh_guest_start();
    snprintf(other, sizeof other, "Local%u", n++);
    const char *file = bh_arena_printf(&a, "%.*s%s",
                                       (int)(strlen(wish_file()) - strlen("wish.wasm")), url, of),
               *args = bh_arena_printf(&a,
                                       "{'guestURL':'%s','guestConfig':'%s','hookTimeout':'1m',"
                                       "'nodeLocal':%s}",
                                       file, wish, local ? "true" : "false");
    const char *text = bh_arena_printf(
        &a,
        "{'schedulerName':'default-scheduler','plugins':{'multiPoint':{'enabled':[{'name':'%s',"
        "'weight':10}]}},'pluginConfig':[{'name':'%s','args':%s}]}",
        other, other, args);
    fx_init_with(f, text, (struct bh_engine_options){.tie_break = BH_TIE_FIRST, .verify = verify});
    bh_arena_fini(&a);
    for (unsigned i = 0; i < 3; i++)
        fx_node(f, nodes[i], "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
}

static void begin_local(struct fx *f, const char *wish, bool local, bool verify)
{
    begin_other(f, "local.wasm", wish, local, verify);
}

/* Pods of one template: decided from what is kept, and as it is when a node's object changes. */
static void test_kept(void)
{
    struct bh_engine_stats before, after;
    struct fx f;

    if (absent())
        return;
    for (unsigned i = 0; i < 3; i++) {
        bool local = i > 0, verify = i > 1;
        begin_local(&f, "size", local, verify);
        put_node_object(&f, "a", "");
        put_node_object(&f, "b", ",'uid':'x'");
        put_node_object(&f, "c", "");
        for (unsigned k = 0; k < 3; k++)
            FX_STR(fx_text(&f, decide(&f, k ? "q" : "p")->node), "b");
        put_node_object(&f, "c", ",'uid':'xyz'"); /* an object that differs, its record does not */
        bh_engine_stats(f.e, &before);
        for (unsigned k = 0; k < 2; k++) {
            const struct bh_pending p = pending(&f, k ? "s" : "r");
            FX_STR(fx_text(&f, bh_engine_schedule(f.e, &p, 0, TIME)->node), "c");
        }
        bh_engine_stats(f.e, &after);
        FX_INT((int64_t)(after.fast_cycles - before.fast_cycles), local && !verify ? 2 : 0);
        fx_fini(&f);
    }
    begin_local(&f, "tenth", true, true);
    put_node_object(&f, "b", "");
    for (unsigned k = 0; k < 3; k++)
        FX_STR(fx_text(&f, decide(&f, "p")->node), "b");
    bh_engine_put_raw(f.e, BH_KIND_NODE, "b", NULL, 0);
    CU_ASSERT(decide(&f, "p")->node == BH_SYM_NONE);
    fx_fini(&f);
    begin_local(&f, "trap", true, true);
    for (unsigned k = 0; k < 3; k++)
        HAS(decide(&f, "p")->message, "wasm: score error: wasm error: unreachable");
    fx_fini(&f);
}

/* Of all guests of the process. */
static int64_t score_calls(struct fx *f)
{
    int64_t sum = 0, calls;

    bh_json_each(guest, bh_guests_json(&f->arena))
        bh_json_each(hook, bh_json_get(guest, "hooks"))
            if (bh_streq(bh_json_get_str(hook, "name"), "score") &&
                bh_json_i64(bh_json_get(hook, "calls"), &calls))
                sum += calls;
    return sum;
}

/* Nothing is kept: all nodes are asked about in one go, each once, and so is the one that fails. */
static void test_asked_once(void)
{
    struct fx f;

    if (absent())
        return;
    begin_local(&f, "size", false, false);
    put_node_object(&f, "b", ",'uid':'x'");
    int64_t before = score_calls(&f);
    for (unsigned k = 1; k <= 3; k++) {
        FX_STR(fx_text(&f, decide(&f, "p")->node), "b");
        FX_INT(score_calls(&f) - before, 3 * k);
    }
    fx_fini(&f);
    begin_local(&f, "trap", false, false);
    before = score_calls(&f);
    for (unsigned k = 1; k <= 3; k++) {
        HAS(decide(&f, "p")->message, "wasm: score error: wasm error: unreachable");
        FX_INT(score_calls(&f) - before, k);
    }
    fx_fini(&f);
}

static void put_many_nodes(struct fx *f)
{
    for (unsigned n = 0; n < 600; n++) {
        char name[16];
        snprintf(name, sizeof name, "n%03u", n);
        fx_node(f, name, "'cpu':'4','memory':'8Gi','pods':'110'", "", "", "");
    }
}

/* One that keeps what it is asked about is told of the pod anew, if what it says is of the node alone. */
static void test_many_nodes(void)
{
    struct fx f;

    if (absent())
        return;
    for (unsigned i = 0; i < 3; i++) {
        begin_local(&f, "few", i > 0, i > 1);
        put_many_nodes(&f);
        const struct bh_decision *d = decide(&f, "p");
        CU_ASSERT((d->node != BH_SYM_NONE) == (i > 0));
        HAS(i ? "" : d->message, i ? "" : "wasm: filter error: wasm error: unreachable");
        fx_fini(&f);
    }
}

/* What a guest says when it is told of the pod anew is looked at, in filter and in score. */
static void test_told_anew(void)
{
    static const struct {
        const char *wish, *says;
    } rows[] = {
        {"doubts", "wasm: prefilter: it has status code 2 when it is asked again: the guest is not "
                   "nodeLocal"},
        {"balks", "wasm: prefilter error: wasm error: unreachable"},
        {"late", "wasm: prescore error: wasm error: unreachable"},
    };

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin_local(&f, rows[i].wish, true, false);
        put_many_nodes(&f);
        const struct bh_decision *d = decide(&f, "p");
        CU_ASSERT(d->node == BH_SYM_NONE);
        HAS(d->message ? d->message : "", rows[i].says);
        fx_fini(&f);
    }
}

static const struct bh_json *hooks_of_other(struct fx *f)
{
    bh_json_each(p, bh_guests_json(&f->arena))
        if (bh_streq(bh_json_get_text(p, "name"), other))
            return bh_json_get(p, "hooks");
    return NULL;
}

/* What is exported with nothing in it says yes without being called, and closes no path. */
static void test_stubs(void)
{
    struct bh_engine_stats before, after;
    struct fx f;

    if (absent())
        return;
    for (unsigned i = 0; i < 3; i++) {
        const bool local = i > 0, verify = i > 1;
        int64_t timeout = 0;
        unsigned n = 0;
        begin_other(&f, "stubs.wasm", "", local, verify);
        (void)decide(&f, "p");
        bh_engine_stats(f.e, &before);
        const struct bh_pending p = pending(&f, "q");
        const struct bh_decision *d = bh_engine_schedule(f.e, &p, 0, TIME);
        FX_STR(fx_text(&f, d->node), "b");
        bh_engine_stats(f.e, &after);
        FX_INT((int64_t)(after.fast_cycles - before.fast_cycles), local && !verify);
        CU_ASSERT(bh_engine_assume(f.e, &p, d->node) == 0);
        CU_ASSERT(!bh_engine_reserve(f.e, &p, d->node));
        CU_ASSERT(!bh_engine_permit(f.e, &p, d->node, &timeout) && timeout == 0);
        bh_json_each(hook, hooks_of_other(&f)) {
            const bool scores = bh_streq(bh_json_get_text(hook, "name"), "score");
            CU_ASSERT((bh_json_get_i64(hook, "calls", -1) > 0) == scores);
            n++;
        }
        CU_ASSERT(n == 13);
        fx_fini(&f);
    }
}

/* A guest with the imports of v0.1.0 is told what they told. */
static void test_first_abi(void)
{
    static const char *const nodes[] = {"a", "b", "c"};
    struct fx f;

    if (absent())
        return;
    begin_other(&f, "old.wasm", "", false, true);
    CU_ASSERT(bh_engine_raw_needs(f.e) == (BH_EXT_NEED_PENDING | BH_EXT_NEED_NODES));
    for (unsigned i = 0; i < 3; i++)
        put_node_object(&f, nodes[i], "");
    const struct bh_decision *d = decide(&f, "p");
    FX_STR(fx_text(&f, d->node), "c");
    FX_STR(fx_verdict(&f, d, "a"), "Unschedulable: not a");
    FX_INT(fx_score(&f, d, "c", other, true), 20); /* two nodes passed */
    fx_fini(&f);
}

static void test_liar(void)
{
    int status = 0;
    struct fx f;

    if (absent())
        return;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        begin_local(&f, "turns", true, true);
        for (unsigned k = 0; k < 8; k++)
            (void)decide(&f, "p");
        _exit(0);
    }
    CU_ASSERT(pid > 0 && waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- traps ----------------------------------------------------------------------------------- */

static void test_traps(void)
{
    static const struct {
        const char *wish, *message;
    } rows[] = {
        {"prefilter=panic", "wasm: prefilter error: panic!\nwasm error: unreachable\nwasm stack "
                            "trace:\n\t"},
        {"filter=panic", "wasm: filter error: panic!\nwasm error: unreachable\nwasm stack trace:"},
        {"prescore=panic", "wasm: prescore error: panic!\nwasm error: unreachable"},
        {"score=panic", "wasm: score error: panic!\nwasm error: unreachable"},
        {"normalizescore=panic", "returns an invalid score -1,"},
        {"filter=2 postfilter=panic", "wasm: postfilter error: panic!\nwasm error: unreachable"},
        {"filter=address", "wasm: filter error: wasm error: out of bounds memory access"},
        {"filter=memory", "wasm: filter error: out of memory\nwasm error: unreachable"},
        {"filter=depth", "wasm: filter error: wasm error: stack overflow"},
        {"filter=exit", "wasm: filter error: module closed with exit_code(3)"},
        {"filter=names", "wasm: filter error: out of memory reading nodeNames"},
        {"filter=pointer", "wasm: filter error: out of memory"},
    };

    if (absent())
        return;
    for (unsigned i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct fx f;
        begin(&f, rows[i].wish);
        for (unsigned k = 0; k < 2; k++) { /* a new instance traps as well, and nothing is lost */
            const struct bh_decision *d = decide(&f, "p");
            FX_STR(fx_text(&f, d->node), "");
            HAS(d->message               ? d->message
                : d->post_filter_message ? d->post_filter_message
                                         : "",
                rows[i].message);
        }
        fx_fini(&f);
    }
}

static void test_endless(void)
{
    struct fx f;

    if (absent())
        return;
    begin_with(&f, "filter=loop", "50ms','cycleTimeout':'1h");
    const char *message = decide(&f, "p")->message;
    HAS(message, "time limit exceeded");
    CU_ASSERT(message && !strstr(message, "cycleTimeout"));
    fx_fini(&f);
    /* A hook may take a minute, those of a cycle together may not. */
    begin_with(&f, "filter=loop", "1m','cycleTimeout':'1ms");
    for (unsigned k = 0; k < 2; k++)
        HAS(decide(&f, "p")->message,
            "wasm: filter error: the pod's scheduling cycle has taken this guest more than its "
            "cycleTimeout, 1ms\nwasm error: time limit exceeded\nwasm stack trace:");
    fx_fini(&f);
}

/* Where each node's dry run ends with a trap, no more instances are made than the cycle has time for. */
static void test_over(void)
{
    static const char *const nodes[] = {"a", "b", "c"};
    struct fx f;

    if (absent())
        return;
    begin_with(&f, "removepod=loop", "1m','cycleTimeout':'1ms");
    for (unsigned i = 0; i < BH_ARRAY_LEN(nodes); i++) {
        const char *low = bh_arena_printf(&f.arena, "low-%s", nodes[i]);
        put_pod_object(&f, low, nodes[i]);
        fx_place(&f, fx_pod(&f, low, "'cpu':'4'", "'priority':0"), nodes[i]);
    }
    const int64_t before = bh_json_get_i64(of_wish(&f), "traps", 0);
    put_pod_object(&f, "p", "");
    const struct bh_decision *d = fx_schedule(&f, fx_pod(&f, "p", "'cpu':'1'", "'priority':1000"));
    HAS(d->post_filter_message, "wasm: the pod's scheduling cycle has taken this guest more than "
                                "its cycleTimeout, 1ms");
    FX_INT(bh_json_get_i64(of_wish(&f), "traps", 0) - before, 1);
    fx_fini(&f);
}

/* ---- what people see ------------------------------------------------------------------------- */

struct heard {
    unsigned n;
    char last[256];
};
static void hear(void *arg, const struct bh_guest_event *e)
{
    struct heard *h = arg;

    h->n++;
    snprintf(h->last, sizeof h->last, "%s %s %s%s/%s %s %s %s %s: %s", e->plugin, e->profile,
             e->of_node ? "node " : "", e->namespace_, e->name, e->uid ? e->uid : "-", e->type,
             e->reason, e->action, e->note);
}

static void test_events(void)
{
    struct heard h = {0};
    struct fx f;

    if (absent())
        return;
    begin(&f, "prescore=event");
    bh_guest_set_events(hear, &h);
    CU_ASSERT(decide(&f, "p")->node != BH_SYM_NONE);
    CU_ASSERT(h.n >= 1);
    FX_STR(h.last,
           "Wish default-scheduler default/p uid-p Warning Wished Wishing: a \"note\"\t100%");
    fx_fini(&f);
    h.n = 0;
    begin(&f, "prescore=noevent");
    CU_ASSERT(decide(&f, "p")->node != BH_SYM_NONE);
    CU_ASSERT(h.n == 0);
    fx_fini(&f);
    begin(&f, "prescore=events");
    CU_ASSERT(decide(&f, "p")->node != BH_SYM_NONE);
    CU_ASSERT(h.n > 0 && h.n < 1000);
    CU_ASSERT(bh_json_get_i64(of_wish(&f), "eventsDropped", 0) > 0);
    fx_fini(&f);
    for (unsigned many = 0; many < 2; many++) { /* told anew of the pod: it was recorded */
        h.n = 0;
        begin_local(&f, "event", true, false);
        if (many)
            put_many_nodes(&f);
        CU_ASSERT(decide(&f, "p")->node != BH_SYM_NONE);
        FX_INT(h.n, 2);
        fx_fini(&f);
    }
    bh_guest_set_events(NULL, NULL);
}

static void test_told(void)
{
    struct fx f;

    if (absent())
        return;
    begin(&f, "filter=panic");
    int64_t traps = bh_json_get_i64(of_wish(&f), "traps", 0);
    (void)decide(&f, "p");
    const struct bh_json *p = of_wish(&f), *first = bh_json_at(bh_json_get(p, "hooks"), 0);
    FX_STR(bh_json_get_text(p, "url"), url);
    CU_ASSERT(strlen(bh_json_get_text(p, "sha256")) == 64);
    FX_STR(bh_json_get_text(first, "name"), "enqueue");
    CU_ASSERT(bh_json_get_i64(first, "calls", 0) >= 1);
    CU_ASSERT(bh_json_get_i64(p, "traps", 0) > traps);
    CU_ASSERT(bh_json_get_i64(p, "memoryBytes", 0) >= (int64_t)BH_WASM_PAGE);
    HAS(bh_json_get_text(p, "lastTrap"), "wasm: filter error: panic!");
    CU_ASSERT(bh_json_get_bool(p, "compiled", false) == (getenv("BERTH_WASM_CACHE") != NULL));
    fx_fini(&f);
}

/* Everything above once more, of guests that berth wasmc has compiled. */
static void test_all_compiled(void)
{
    static const char *const names[] = {"wish.wasm", "local.wasm", "old.wasm"};
    BH_CLEANUP(bh_freep) char *dir = bh_asprintf("%s/compiled", bh_test_tmpdir());

    if (absent() || getenv("BERTH_WASM_CACHE"))
        return;
    if (system("command -v cc >/dev/null") != 0) {
        bh_test_skip("there is no C compiler cc");
        return;
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(names); i++) {
        const char *wish = wish_file() + strlen("file://");
        BH_CLEANUP(bh_freep)
        char *file = bh_asprintf("%.*s%s", (int)(strlen(wish) - strlen(names[0])), wish, names[i]);
        BH_CLEANUP(bh_freep) char *bytes = NULL, *made = NULL;
        struct bh_wasm_module *m = NULL;
        struct bh_wasm_build how = {.cc = "cc", .part = i ? 0 : 500}; /* wish: in many files */
        struct bh_err err = {0};
        char sha256[65];
        size_t n = 0;
        CU_ASSERT_FATAL(bh_read_file(file, BH_WASM_BYTES_MAX, &bytes, &n) == 0);
        CU_ASSERT_FATAL(bh_wasm_load(bytes, n, &m, &err) == 0);
        bh_wasm_digest(bytes, n, sha256);
        CU_ASSERT_FATAL(bh_wasm_build(m, sha256, dir, &how, &made, &err) == 0);
        CU_ASSERT(how.hasty == 0 && (i ? how.files == 1 : how.files > 1));
        bh_wasm_unload(m);
    }
    BH_CLEANUP(bh_freep)
    char *again =
        bh_asprintf("BERTH_WASM_CACHE='%s' /proc/%d/exe >'%s/out' 2>&1", dir, getpid(), dir);
    CU_ASSERT(system(again) == 0);
}

/* ---- guests that are refused ----------------------------------------------------------------- */

#define M(text)     (text), sizeof(text) - 1
#define BEGIN       "\0asm\1\0\0\0"
#define TYPES_I32   "\1\5\1\x60\0\1\x7f"
#define TYPES_I64   "\1\5\1\x60\0\1\x7e"
#define ONE_FUNC    "\3\2\1\0"
#define ONE_PAGE    "\5\3\1\0\1"
#define RETURNS_I32 "\12\6\1\4\0\x41\0\x0b"
#define RETURNS_I64 "\12\6\1\4\0\x42\0\x0b"

static void refused(const char *args, const char *why)
{
    static unsigned n;
    struct bh_arena a = {0};
    struct bh_err err = {0};
    struct fx f = {0};
    char name[16];

    bh_arena_init(&a, 0);
    bh_arena_init(&f.arena, 0);
    bh_guest_start();
    snprintf(name, sizeof name, "Bad%u", n++);
    const char *text = bh_arena_printf(
        &a,
        "{'apiVersion':'kubescheduler.config.k8s.io/v1','kind':'KubeSchedulerConfiguration',"
        "'profiles':[%s]}",
        profile(&a, name, args));
    CU_ASSERT(bh_sched_config_new(fx_json(&f, text), &f.config, &err) == -EINVAL);
    HAS(err.msg, why);
    bh_arena_fini(&a);
    bh_arena_fini(&f.arena);
}

static void test_refused(void)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } modules[] = {
        {M("text"), "wasm: error compiling guest: "},
        {M(BEGIN), "wasm: guest doesn't export memory[memory]"},
        {M(BEGIN ONE_PAGE "\7\12\1\6memory\2\0"),
         "wasm: guest does not export any plugin functions"},
        {M(BEGIN TYPES_I64 ONE_FUNC ONE_PAGE "\7\x13\2\6memory\2\0\6filter\0\0" RETURNS_I64),
         "wasm: guest exports the wrong signature for func[filter]. should be () -> (i32)"},
        {M(BEGIN TYPES_I32 ONE_FUNC ONE_PAGE "\7\x12\2\6memory\2\0\5score\0\0" RETURNS_I32),
         "wasm: guest exports the wrong signature for func[score]. should be () -> (i64)"},
        {M(BEGIN TYPES_I32 ONE_FUNC ONE_PAGE "\7\x15\2\6memory\2\0\10prescore\0\0" RETURNS_I32),
         "wasm: filter, score, reserve, permit or bind must be exported"},
    };
    struct bh_arena a = {0};

    for (unsigned i = 0; i < BH_ARRAY_LEN(modules); i++) {
        char path[] = "/tmp/berth-guest-XXXXXX";
        int fd = mkstemp(path);
        CU_ASSERT_FATAL(fd >= 0);
        CU_ASSERT(write(fd, modules[i].bytes, modules[i].n) == (ssize_t)modules[i].n);
        close(fd);
        bh_arena_init(&a, 0);
        refused(bh_arena_printf(&a, "{'guestURL':'file://%s'}", path), modules[i].why);
        bh_arena_fini(&a);
        unlink(path);
    }
    refused("{'guestURL':''}", "wasm: guestURL is required");
    refused("{'guestURL':'x.wasm'}", "wasm: error reading guestURL x.wasm: invalid URL: x.wasm");
    refused("{'guestURL':'oci://x/y'}",
            "wasm: error reading guestURL oci://x/y: unsupported URL scheme: oci");
    refused("{'guestURL':'https://x/y'}",
            "wasm: error reading guestURL https://x/y: guestDigest is required with it");
    refused("{'guestURL':'oci://x/y'}", "images are not read, name the module's file");
    refused("{'guestURL':'https://x/y','guestDigest':'sha256:12'}",
            "PluginConfig: guestDigest \"sha256:12\" is not sha256: and 64 hexadecimal digits");
    refused("{'guestURL':'file:///no/such'}",
            "wasm: error reading guestURL file:///no/such: open /no/such: no such file or "
            "directory");
    refused("{'guestURL':'file:///tmp'}", "read /tmp: is a directory");
    refused("{'guestURL':7}", "PluginConfig: json: cannot unmarshal number into Go struct field "
                              "PluginConfig.guestURL of type string");
    refused("{'guestURL':'file:///tmp','guestConfig':{}}",
            "cannot unmarshal object into Go struct field PluginConfig.guestConfig of type string");
    refused("{'guestURL':'file:///tmp','logSeverity':'x'}",
            "PluginConfig.logSeverity of type int32");
    refused("{'guestURL':'file:///tmp','args':'x'}", "PluginConfig.Args of type []string");
    refused("{'guestURL':'file:///tmp','nodeLocal':'yes'}", "PluginConfig.nodeLocal of type bool");
    refused("{'guestURL':'file:///tmp','hookTimeout':'0s'}", "is no duration above 0");
    refused("{'guestURL':'file:///tmp','cycleTimeout':'soon'}",
            "cycleTimeout \"soon\" is no duration above 0, as \"5s\"");
    refused("{'guestURL':'file:///tmp','cycleTimeout':5}",
            "PluginConfig.cycleTimeout of type string");
    if (absent())
        return;
    bh_arena_init(&a, 0);
    refused(bh_arena_printf(&a, "{'guestURL':'%s','guestConfig':'start=panic'}", wish_file()),
            "failed to create a guest pool: wasm: instantiate error: panic!\nmodule[1] "
            "function[_start] failed: wasm error: unreachable\nwasm stack trace:\n\t");
    refused(bh_arena_printf(&a, "{'guestURL':'%s','guestConfig':'enqueue=panic'}", wish_file()),
            "wasm: enqueue error: panic!\nwasm error: unreachable");
    bh_arena_fini(&a);
}

BH_TESTS("scheduler/wasm/guest", {"decides", test_decides}, {"answers", test_answers},
         {"PostFilter", test_post_filter}, {"Reserve, Permit, Bind", test_binding},
         {"traps", test_traps}, {"an endless loop", test_endless},
         {"the cycle's time is over", test_over}, {"refused", test_refused},
         {"answers that are kept", test_kept}, {"asked once about each node", test_asked_once},
         {"many nodes", test_many_nodes}, {"told anew", test_told_anew}, {"stubs", test_stubs},
         {"imports of v0.1.0", test_first_abi}, {"a liar is found", test_liar},
         {"bound already", test_bound_already}, {"Events", test_events},
         {"told to people", test_told}, {"all of it, compiled", test_all_compiled})
