/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/decisions/test_annotations.c - kube-scheduler-simulator's keys and texts
 */
#include "tests/unit/scheduler/decisions/world.h"

static struct bh_json *annotations(struct world *w, uint64_t id,
                                   const struct bh_annotations_query *q)
{
    struct bh_json *v = NULL;
    struct bh_err err = {{0}};

    FX_INT(bh_decisions_annotations(w->d, &w->a, (int64_t)id, q, &v, &err), 0);
    CU_ASSERT_FATAL(v != NULL);
    return v;
}

static const char *value(const struct bh_json *v, const char *key)
{
    char whole[128];

    snprintf(whole, sizeof(whole), BH_ANNOTATION_PREFIX "%s", key);
    return bh_json_get_text(v, whole);
}

static size_t size_of(const struct bh_json *v)
{
    size_t n = 0;

    bh_json_each(i, v)
        n += i->key.n + i->s.n;
    return n;
}

static void three_nodes(struct world *w)
{
    fx_node(&w->f, "n1", "'cpu':'100m','memory':'8Gi','pods':'10'", "", "", "");
    fx_node(&w->f, "n2", "'cpu':'4','memory':'8Gi','pods':'10'", "", "", "");
    fx_node(&w->f, "n3", "'cpu':'8','memory':'8Gi','pods':'10'", "", "", "");
}

static void test_bound(void)
{
    struct bh_json *v;
    struct world w;
    uint64_t n;

    world_init(&w, 0, BH_RECORD_FULL, 0);
    three_nodes(&w);
    n = world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 1, NULL);
    bh_recorder_outcome(w.r, n, BH_OUTCOME_BOUND, "");
    world_settle(&w, n);
    v = annotations(&w, n, NULL);
    FX_INT((long)v->c.n, 14);
    FX_STR(value(v, "filter-result"),
           "{\"n1\":{\"NodeName\":\"passed\",\"NodeResourcesFit\":\"Insufficient cpu\","
           "\"NodeUnschedulable\":\"passed\",\"TaintToleration\":\"passed\"},"
           "\"n2\":{\"NodeName\":\"passed\",\"NodeResourcesFit\":\"passed\","
           "\"NodeUnschedulable\":\"passed\",\"TaintToleration\":\"passed\"},"
           "\"n3\":{\"NodeName\":\"passed\",\"NodeResourcesFit\":\"passed\","
           "\"NodeUnschedulable\":\"passed\",\"TaintToleration\":\"passed\"}}");
    FX_STR(value(v, "selected-node"), "n3");
    FX_STR(value(v, "prefilter-result"), "{}");
    FX_STR(value(v, "postfilter-result"), "{}");
    FX_STR(value(v, "permit-result"), "{}");
    FX_STR(value(v, "reserve-result"), "{\"VolumeBinding\":\"success\"}");
    FX_STR(value(v, "prebind-result"), "{\"VolumeBinding\":\"success\"}");
    FX_STR(value(v, "bind-result"), "{\"DefaultBinder\":\"success\"}");
    CU_ASSERT(strstr(value(v, "prefilter-result-status"), "\"NodePorts\":\"\"") != NULL);
    CU_ASSERT(strstr(value(v, "prefilter-result-status"), "\"NodeResourcesFit\":\"success\"") !=
              NULL);
    CU_ASSERT(strstr(value(v, "finalscore-result"), "\"TaintToleration\":\"300\"") != NULL);
    CU_ASSERT(strstr(value(v, "score-result"), "\"TaintToleration\":\"0\"") != NULL);
    CU_ASSERT(strncmp(value(v, "result-history"),
                      "[{\"kube-scheduler-simulator.sigs.k8s.io/bind-result\":"
                      "\"{\\\"DefaultBinder\\\":\\\"success\\\"}\",",
                      60) == 0);
    world_fini(&w);
}

/* One feasible node: nothing is scored. A bind that failed has its words. */
static void test_failed_bind(void)
{
    struct bh_json *v;
    struct world w;
    uint64_t n;

    world_init(&w, 0, BH_RECORD_FULL, 0);
    fx_node(&w.f, "only", "'cpu':'4','memory':'8Gi','pods':'10'", "", "", "");
    n = world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 1, NULL);
    bh_recorder_outcome(w.r, n, BH_OUTCOME_FAILED,
                        "running Bind plugin \"DefaultBinder\": <no> & never");
    world_settle(&w, n);
    v = annotations(&w, n, NULL);
    FX_STR(value(v, "score-result"), "{}");
    FX_STR(value(v, "finalscore-result"), "{}");
    FX_STR(value(v, "prescore-result"), "{}");
    FX_STR(value(v, "bind-result"), "{\"DefaultBinder\":\"\\u003cno\\u003e \\u0026 never\"}");
    FX_STR(value(v, "selected-node"), "only");
    world_fini(&w);
}

static void test_preemption(void)
{
    struct bh_json *v;
    struct world w;
    uint64_t n;

    world_init(&w, 0, BH_RECORD_FULL, 0);
    three_nodes(&w);
    fx_place(&w.f, fx_pod(&w.f, "on-2", "'cpu':'4'", ""), "n2");
    fx_place(&w.f, fx_pod(&w.f, "on-3", "'cpu':'8'", "'priority':1000"), "n3");
    n = world_attempt(&w, fx_pod(&w.f, "vip", "'cpu':'3'", "'priority':500"), 1, NULL);
    world_settle(&w, n);
    v = annotations(&w, n, NULL);
    FX_STR(value(v, "postfilter-result"),
           "{\"n1\":{},\"n2\":{\"DefaultPreemption\":\"preemption victim\"},\"n3\":{}}");
    FX_STR(value(v, "selected-node"), "");
    /* of the attempt, not of preemption's dry runs */
    CU_ASSERT(strstr(value(v, "filter-result"),
                     "\"n2\":{\"NodeName\":\"passed\",\"NodeResourcesFit\":\"Insufficient cpu\"") !=
              NULL);
    world_fini(&w);
}

/* History of this pod alone, oldest first; it goes before nodes do. */
static void test_history(void)
{
    struct bh_annotations_query q = {.max_bytes = 8000};
    struct bh_json *v, *list = NULL;
    const char *text;
    struct world w;
    uint64_t n = 0;

    world_init(&w, 0, BH_RECORD_FULL, 0);
    three_nodes(&w);
    for (unsigned i = 0; i < 6; i++) {
        (void)world_attempt(&w, fx_pod(&w.f, "other", "'cpu':'1'", ""), i, NULL);
        n = world_attempt(&w, fx_pod(&w.f, "big", i == 5 ? "'cpu':'1'" : "'cpu':'100'", ""), i,
                          NULL);
    }
    world_settle(&w, n);
    text = value(annotations(&w, n, NULL), "result-history");
    FX_INT(bh_json_parse(&w.a, text, strlen(text), 0, &list, NULL), 0);
    FX_INT((long)list->c.n, 6);
    FX_STR(value(bh_json_at(list, 0), "selected-node"), "");
    FX_STR(value(bh_json_at(list, 5), "selected-node"), "n3");
    v = annotations(&w, n, &q);
    CU_ASSERT(size_of(v) <= q.max_bytes);
    text = value(v, "result-history");
    FX_INT(bh_json_parse(&w.a, text, strlen(text), 0, &list, NULL), 0);
    CU_ASSERT(list->c.n >= 1 && list->c.n < 6);
    FX_STR(value(bh_json_at(list, list->c.n - 1), "selected-node"), "n3");
    text = bh_json_get_text(v, BH_ANNOTATION_TRUNCATED);
    CU_ASSERT(strstr(text, "\"nodesLeftOut\":0,") != NULL);
    CU_ASSERT(strstr(text, "\"more\":\"berth decisions show 12;") != NULL);
    world_fini(&w);
}

static void test_large(void)
{
    struct bh_annotations_query q = {.max_nodes = 10};
    struct bh_json *v, *map = NULL;
    const struct bh_decision *d;
    const char *text, *chosen;
    struct world w;
    uint64_t n;

    world_init(&w, 3000, BH_RECORD_FULL, 0);
    n = world_attempt(&w, fx_pod(&w.f, "web", "'cpu':'1'", ""), 1, &d);
    chosen = bh_arena_strdup(&w.a, fx_text(&w.f, d->node));
    world_settle(&w, n);
    v = annotations(&w, n, NULL);
    CU_ASSERT(size_of(v) <= BH_ANNOTATIONS_BYTES);
    CU_ASSERT(size_of(v) > BH_ANNOTATIONS_BYTES / 2);
    CU_ASSERT(*bh_json_get_text(v, BH_ANNOTATION_TRUNCATED) != '\0');
    text = value(v, "score-result");
    FX_INT(bh_json_parse(&w.a, text, strlen(text), BH_JSON_STRICT, &map, NULL), 0);
    CU_ASSERT(bh_json_get(map, chosen) != NULL); /* the best ones stay */
    text = value(v, "filter-result");
    FX_INT(bh_json_parse(&w.a, text, strlen(text), BH_JSON_STRICT, &map, NULL), 0);
    CU_ASSERT(map->c.n > 100);
    v = annotations(&w, n, &q);
    text = value(v, "filter-result");
    FX_INT(bh_json_parse(&w.a, text, strlen(text), BH_JSON_STRICT, &map, NULL), 0);
    FX_INT((long)map->c.n, 10);
    q = (struct bh_annotations_query){.max_bytes = 1000};
    CU_ASSERT(bh_json_get(annotations(&w, n, &q), BH_ANNOTATION_TRUNCATED) != NULL);
    world_fini(&w);
}

BH_TESTS("scheduler/decisions/annotations", {"a pod that got a node", test_bound},
         {"a bind that failed", test_failed_bind}, {"preemption", test_preemption},
         {"history", test_history}, {"three thousand nodes", test_large})
