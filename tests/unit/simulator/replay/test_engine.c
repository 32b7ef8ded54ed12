/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/replay/test_engine.c - a record played under a clock of its own
 */
#include "simulator/replay/engine.h"

#include <errno.h>

#include "tests/unit/simulator/sim_test.h"

#define S INT64_C(1000000000)

#define REC(sec, event, kind, meta, rest)                                                          \
    "{\"time\":\"2026-01-02T03:04:" sec "Z\",\"event\":\"" event                                   \
    "\",\"resource\":{\"apiVersion\":\"v1\",\"kind\":\"" kind "\",\"metadata\":{" meta "}" rest    \
    "}}\n"
#define NODE(sec, name)                                                                            \
    REC(sec, "Add", "Node", "\"name\":\"" name "\"",                                               \
        ",\"status\":{\"allocatable\":{\"cpu\":\"4\",\"pods\":\"10\"}}")
#define POD(sec, event, name, spec)                                                                \
    REC(sec, event, "Pod", "\"namespace\":\"default\",\"name\":\"" name "\"",                      \
        ",\"spec\":{" spec "\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}")
#define GONE(sec, name)                                                                            \
    REC(sec, "Delete", "Pod", "\"namespace\":\"default\",\"name\":\"" name "\"", "")

struct play {
    struct fixture f;
    struct bh_player *p;
    struct bh_arena a;
};

static const struct bh_json *state(struct play *t)
{
    return bh_player_state(t->p, &t->a);
}

static const char *phase(struct play *t)
{
    return bh_json_get_text(state(t), "phase");
}

static int64_t number(struct play *t, const char *path)
{
    int64_t v = -1;

    (void)bh_json_i64(bh_json_path(state(t), path), &v);
    return v;
}

static void advance(struct play *t, int64_t ns)
{
    CU_ASSERT_EQUAL(bh_sim_advance(t->f.s, bh_sim_now_ns(t->f.s) + ns), 0);
}

static void load(struct play *t, const char *text, const struct bh_player_options *o)
{
    struct bh_err err;

    CU_ASSERT_EQUAL_FATAL(bh_player_start(t->p, text, strlen(text), o, &err), 0);
    while (bh_streq(phase(t), "Loading"))
        uv_run(&t->f.loop, UV_RUN_ONCE);
    advance(t, 0);
}

static void play_init(struct play *t)
{
    const struct bh_sim_options o = {.no_controllers = true, .manual_clock = true, .seed = 1};

    fixture_init(&t->f, &o, false);
    bh_arena_init(&t->a, 0);
    t->p = bh_player_new(t->f.s);
}

static void play_fini(struct play *t)
{
    bh_player_free(t->p);
    bh_arena_fini(&t->a);
    fixture_fini(&t->f);
}

static struct bh_sim_obj *pod(struct play *t, const char *name)
{
    return bh_sim_get(t->f.s, type_of("pods"), "default", name);
}

static const char plain[] = NODE("00", "n1") NODE("00", "n2") POD("10", "Add", "a", "")
    POD("20", "Add", "b", "") POD("25", "Update", "a", "\"nodeName\":\"n1\",")
        POD("26", "Update", "b", "\"nodeName\":\"n1\",") GONE("40", "a");

static void test_times(void)
{
    struct play t;

    play_init(&t);
    load(&t, plain, &(struct bh_player_options){.name = "f", .speed = 10});
    CU_ASSERT_STRING_EQUAL(phase(&t), "Running");
    CU_ASSERT_PTR_NOT_NULL(bh_sim_get(t.f.s, type_of("nodes"), "", "n2"));
    CU_ASSERT_PTR_NULL(pod(&t, "a"));
    advance(&t, S - 1000000);
    CU_ASSERT_PTR_NULL(pod(&t, "a"));
    advance(&t, 1000000); /* ten seconds of the file in one */
    CU_ASSERT_PTR_NOT_NULL_FATAL(pod(&t, "a"));
    CU_ASSERT_STRING_EQUAL(pod(&t, "a")->node_name, "");
    CU_ASSERT_EQUAL(number(&t, "waiting"), 1);
    bh_player_set_speed(t.p, 100);
    advance(&t, S / 10);
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "b"));
    advance(&t, S);
    CU_ASSERT_PTR_NULL(pod(&t, "a"));
    CU_ASSERT_STRING_EQUAL(phase(&t), "Done");
    CU_ASSERT_EQUAL(number(&t, "applied"), 7);
    CU_ASSERT_EQUAL(number(&t, "waiting"), 1);
    CU_ASSERT_EQUAL(number(&t, "lateness.max_ns") / 1000000, 0);
    play_fini(&t);
}

static void test_pause_and_step(void)
{
    struct play t;
    struct bh_err err;

    play_init(&t);
    load(&t, plain, &(struct bh_player_options){.speed = 1, .paused = true});
    advance(&t, 100 * S);
    CU_ASSERT_STRING_EQUAL(phase(&t), "Paused");
    CU_ASSERT_EQUAL(number(&t, "applied"), 0);
    CU_ASSERT_EQUAL(bh_player_step(t.p, 3, &err), 0);
    advance(&t, 0);
    CU_ASSERT_EQUAL(number(&t, "applied"), 3);
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "a"));
    bh_player_pause(t.p, false);
    CU_ASSERT_EQUAL(bh_player_step(t.p, 1, &err), -EINVAL);
    advance(&t, 9 * S);
    CU_ASSERT_PTR_NULL(pod(&t, "b"));
    advance(&t, S);
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "b"));
    bh_player_pause(t.p, true);
    advance(&t, 100 * S);
    CU_ASSERT_EQUAL(number(&t, "applied"), 4);
    CU_ASSERT_EQUAL(bh_player_step(t.p, 1000, &err), 0);
    advance(&t, 0);
    CU_ASSERT_STRING_EQUAL(phase(&t), "Done");
    play_fini(&t);
}

static void bind_pod(struct play *t, const char *name, const char *node)
{
    CU_ASSERT_EQUAL(bh_sim_bind(t->f.s, "default", name, NULL, node, NULL, NULL, NULL), 0);
    advance(t, 0);
}

static void test_compare(void)
{
    struct play t;

    play_init(&t);
    load(&t, plain, &(struct bh_player_options){.speed = 1});
    advance(&t, 20 * S);
    bind_pod(&t, "b", "n2"); /* before the source's choice is read */
    advance(&t, 10 * S);
    CU_ASSERT_EQUAL(number(&t, "compared.different"), 1);
    CU_ASSERT_EQUAL(number(&t, "waiting"), 1);
    bind_pod(&t, "a", "n1"); /* after it */
    CU_ASSERT_EQUAL(number(&t, "compared.same"), 1);
    CU_ASSERT_EQUAL(number(&t, "waiting"), 0);
    CU_ASSERT_STRING_EQUAL(
        bh_json_get_text(bh_json_at(bh_json_path(state(&t), "compared.differences"), 0),
                         "recorded"),
        "n1");
    CU_ASSERT_STRING_EQUAL(pod(&t, "b")->node_name, "n2");
    play_fini(&t);
}

static void test_follow(void)
{
    struct play t;

    play_init(&t);
    load(&t, plain, &(struct bh_player_options){.speed = 1, .follow = true});
    advance(&t, 20 * S);
    CU_ASSERT_PTR_NOT_NULL_FATAL(pod(&t, "a"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pod(&t, "a")->json, "\"schedulerName\":\"recorded\""));
    advance(&t, 10 * S);
    CU_ASSERT_STRING_EQUAL(pod(&t, "a")->node_name, "n1");
    CU_ASSERT_STRING_EQUAL(pod(&t, "b")->node_name, "n1");
    CU_ASSERT_EQUAL(number(&t, "errorCount"), 0);
    play_fini(&t);
}

static void test_as_fast_as_decided(void)
{
    struct play t;

    play_init(&t);
    load(&t, plain, &(struct bh_player_options){.speed = 0});
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "b"));
    bind_pod(&t, "b", "n1");
    advance(&t, S);
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "a")); /* it does not go before it was decided */
    CU_ASSERT_STRING_EQUAL(phase(&t), "Running");
    advance(&t, 20 * S); /* nobody decides: it does not hold the rest up for ever */
    CU_ASSERT_STRING_EQUAL(phase(&t), "Done");
    play_fini(&t);
}

static void test_odd_order(void)
{
    struct play t;

    play_init(&t);
    load(&t,
         POD("00", "Update", "late", "") POD("01", "Add", "late", "")
             POD("01", "Update", "old", "\"nodeName\":\"n9\",") GONE("02", "never") POD(
                 "03", "Add", "x", "") "{broken\n" REC("04", "Add", "Secret", "\"name\":\"s\"", "")
                 REC("04", "Add", "Pod", "\"namespace\":\"far\",\"name\":\"y\"",
                     ",\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}")
                     REC("05", "Add", "Pod", "\"name\":\"bad\"", ",\"spec\":{}")
                         POD("01", "Add", "backwards", ""),
         &(struct bh_player_options){.speed = 1});
    advance(&t, 3 * S);
    CU_ASSERT_EQUAL(bh_sim_delete(t.f.s, type_of("pods"), "default", "x", NULL, NULL), 0);
    advance(&t, 10 * S);
    CU_ASSERT_STRING_EQUAL(phase(&t), "Done");
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "late"));
    CU_ASSERT_STRING_EQUAL(pod(&t, "old")->node_name, "n9");
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "backwards"));
    CU_ASSERT_PTR_NOT_NULL(bh_sim_get(t.f.s, type_of("pods"), "far", "y")); /* namespace made */
    CU_ASSERT_EQUAL(number(&t, "skipped"), 1);
    CU_ASSERT_EQUAL(number(&t, "errorCount"), 2);
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_at(bh_json_get(state(&t), "errors"), 0), "line", 0), 6);
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_at(bh_json_get(state(&t), "errors"), 1), "line", 0), 9);
    play_fini(&t);
}

/* A pod that this cluster removed is not brought back by the rest of its recorded life. */
static void test_removed_here(void)
{
    struct play t;

    play_init(&t);
    load(&t, POD("00", "Add", "a", "") POD("05", "Update", "a", "\"nodeName\":\"n1\","),
         &(struct bh_player_options){.speed = 1});
    CU_ASSERT_EQUAL(bh_sim_delete(t.f.s, type_of("pods"), "default", "a", NULL, NULL), 0);
    advance(&t, 10 * S);
    CU_ASSERT_PTR_NULL(pod(&t, "a"));
    CU_ASSERT_EQUAL(number(&t, "waiting"), 0);
    play_fini(&t);
}

static void test_nodes_change(void)
{
    struct play t;
    const struct bh_sim_obj *n;

    play_init(&t);
    load(&t,
         REC("00", "Add", "Node", "\"name\":\"n\",\"labels\":{\"a\":\"1\",\"b\":\"1\"}",
             ",\"spec\":{\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]},\"status\":{"
             "\"allocatable\":{\"cpu\":\"4\"}}")
             REC("01", "Update", "Node", "\"name\":\"n\",\"labels\":{\"a\":\"2\"}",
                 ",\"spec\":{\"unschedulable\":true},\"status\":{\"allocatable\":{\"cpu\":\"8\"}}"),
         &(struct bh_player_options){.speed = 1});
    advance(&t, 2 * S);
    n = bh_sim_get(t.f.s, type_of("nodes"), "", "n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(n);
    CU_ASSERT_STRING_EQUAL(bh_sim_obj_label(n, "a"), "2");
    CU_ASSERT_PTR_NULL(bh_sim_obj_label(n, "b"));
    CU_ASSERT_PTR_NOT_NULL(strstr(n->json, "\"cpu\":\"8\""));
    CU_ASSERT_PTR_NULL(strstr(n->json, "\"key\":\"k\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(n->json, "\"unschedulable\":true"));
    CU_ASSERT_EQUAL(number(&t, "errorCount"), 0);
    play_fini(&t);
}

static void test_clear_and_stop(void)
{
    struct play t;
    struct bh_err err;

    play_init(&t);
    load(&t, plain, &(struct bh_player_options){.speed = 1});
    advance(&t, 10 * S);
    CU_ASSERT_EQUAL(
        bh_player_start(t.p, plain, strlen(plain), &(struct bh_player_options){.speed = 1}, &err),
        -EBUSY);
    bh_player_stop(t.p);
    CU_ASSERT_STRING_EQUAL(phase(&t), "None");
    advance(&t, 100 * S);
    CU_ASSERT_PTR_NOT_NULL(pod(&t, "a")); /* what it made stays */
    load(&t, NODE("00", "other"), &(struct bh_player_options){.speed = 1, .clear = true});
    advance(&t, S);
    CU_ASSERT_PTR_NULL(pod(&t, "a"));
    CU_ASSERT_PTR_NULL(bh_sim_get(t.f.s, type_of("nodes"), "", "n1"));
    CU_ASSERT_PTR_NOT_NULL(bh_sim_get(t.f.s, type_of("nodes"), "", "other"));
    play_fini(&t);
}

static void test_unreadable(void)
{
    static const char *const texts[] = {"", "\n\n", "not a record\n", "\x1f\x8b\x08garbage"};
    struct play t;
    struct bh_err err;

    play_init(&t);
    CU_ASSERT_EQUAL(bh_player_start(t.p, "", 0, &(struct bh_player_options){.speed = 1}, &err),
                    -EINVAL);
    for (size_t i = 1; i < BH_ARRAY_LEN(texts); i++) {
        load(&t, texts[i], &(struct bh_player_options){.speed = 1});
        CU_ASSERT_STRING_EQUAL(phase(&t), "Failed");
        CU_ASSERT_TRUE(*bh_json_get_text(state(&t), "message") != '\0');
    }
    play_fini(&t);
}

/* Left while the thread still reads: it frees what it holds by itself. */
static void test_stop_while_loading(void)
{
    struct play t;
    struct bh_err err;

    play_init(&t);
    for (int i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(bh_player_start(t.p, plain, strlen(plain),
                                        &(struct bh_player_options){.speed = 1}, &err),
                        0);
        bh_player_stop(t.p);
    }
    CU_ASSERT_EQUAL(
        bh_player_start(t.p, plain, strlen(plain), &(struct bh_player_options){.speed = 1}, &err),
        0);
    play_fini(&t);
}

BH_TESTS("simulator/replay/engine", {"records are applied at their times", test_times},
         {"pause, step, resume", test_pause_and_step},
         {"nodes chosen here and there are compared", test_compare},
         {"recorded bindings can be followed", test_follow},
         {"at full speed decisions are waited for", test_as_fast_as_decided},
         {"files need not be in order, or whole", test_odd_order},
         {"what was removed here stays away", test_removed_here},
         {"nodes change as recorded", test_nodes_change},
         {"an empty cluster to begin with", test_clear_and_stop},
         {"what is no record fails", test_unreadable},
         {"stopped while loading", test_stop_while_loading})
