/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/simulator/console/test_compare.c - another scheduler's bindings beside Berth's choices:
 * each way in which they agree or differ
 */
#include "scheduler/config/config.h"
#include "simulator/console/compare.h"
#include "simulator/server/pod.h"
#include "tests/unit/simulator/sim_test.h"

struct world {
    struct fixture f;
    struct bh_sched_config *config;
    struct bh_comparison *c;
    bool counts;
};

static void on_commit(void *arg, enum bh_sim_change change, struct bh_sim_obj *old,
                      struct bh_sim_obj *obj)
{
    struct world *w = arg;

    bh_comparison_commit(w->c, change, old, obj, w->counts);
}

static void make_node(struct world *w, const char *name, const char *spec)
{
    char text[600];

    snprintf(
        text, sizeof(text),
        "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"only\":\"%s\"}},\"spec\":{%s},\"status\":{"
        "\"allocatable\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":\"110\"},\"conditions\":[{"
        "\"type\":\"Ready\",\"status\":\"True\"}]}}",
        name, name, spec);
    CU_ASSERT_EQUAL(create(&w->f, "nodes", "", text, NULL), 0);
}

/* A pod comes, waits, and is bound to the node by somebody. */
static void place(struct world *w, const char *name, const char *cpu, const char *spec,
                  const char *node)
{
    char text[600], target[120];

    snprintf(
        text, sizeof(text),
        "{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s\"containers\":[{\"name\":\"c\",\"image\":"
        "\"i\",\"resources\":{\"requests\":{\"cpu\":\"%s\"}}}]}}",
        name, spec, cpu);
    CU_ASSERT_EQUAL(create(&w->f, "pods", "default", text, NULL), 0);
    bh_sim_drain(w->f.s);
    snprintf(target, sizeof(target), "{\"target\":{\"kind\":\"Node\",\"name\":\"%s\"}}", node);
    CU_ASSERT_EQUAL(bh_sim_pod_bind(w->f.s, "default", name, parse(&w->f, target), false, &w->f.e),
                    0);
    bh_sim_drain(w->f.s);
}

static struct bh_json *told(struct world *w)
{
    struct bh_json *doc = bh_json_new(&w->f.a, BH_JSON_OBJECT);

    bh_comparison_tell(w->c, &w->f.a, doc);
    return doc;
}

static int64_t number(const struct bh_json *doc, const char *path)
{
    int64_t v = -1;

    (void)bh_json_i64(bh_json_path(doc, path), &v);
    return v;
}

static int64_t all(const struct bh_json *doc)
{
    return number(doc, "compared") + number(doc, "otherSchedulers");
}

/* The same with what it came to: a burst of bindings ends when none came for a moment. */
static const struct bh_json *judged(struct world *w, const char *name, const char *cpu,
                                    const char *spec, const char *node, const char *how)
{
    int64_t before = number(told(w), how), seen = all(told(w));
    const struct bh_json *doc;

    place(w, name, cpu, spec, node);
    while (all(doc = told(w)) == seen)
        uv_run(&w->f.loop, UV_RUN_ONCE);
    if (number(doc, how) != before + 1) {
        BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
        bh_json_write(&b, doc);
        fprintf(stderr, "%s is not %s: %s\n", name, how, b.p);
    }
    CU_ASSERT_EQUAL(number(doc, how), before + 1);
    return bh_json_at(bh_json_get_list(doc, "differences"), 0);
}

static void says(const struct bh_json *difference, const char *member, const char *want)
{
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(difference, member), want);
}

static void test_each_way(void)
{
    struct world w = {0};
    struct bh_err err;
    const struct bh_json *d;

    fixture_init(&w.f, NULL, false);
    CU_ASSERT_EQUAL_FATAL(bh_sched_config_load(NULL, &w.config, &err), 0);
    make_node(&w, "a", "");
    make_node(&w, "b", "");
    make_node(&w, "c", "\"taints\":[{\"key\":\"x\",\"effect\":\"NoSchedule\"}]");
    bh_sim_drain(w.f.s);
    CU_ASSERT_EQUAL_FATAL(bh_comparison_new(w.f.s, w.config, &w.c, &err), 0);
    bh_sim_listen(w.f.s, NULL, on_commit, &w);
    place(&w, "early", "1", "", "c"); /* while the copy is not complete */
    w.counts = true;
    (void)judged(&w, "p1", "1", "", "b", "tie");
    (void)judged(&w, "p2", "1", "", "a", "same");
    (void)judged(&w, "p3", "1", "", "a", "same");
    d = judged(&w, "p4", "1", "", "a", "different.lowerScore");
    says(d, "node", "a");
    says(d, "berth", "b");
    CU_ASSERT(number(d, "total.berth") > number(d, "total.actual"));
    /* The other scheduler's node is one that Berth rejects, and there is one that it would take. */
    d = judged(&w, "p5", "1", "\"nodeSelector\":{\"only\":\"b\"},", "a", "different.infeasible");
    says(d, "how", "infeasible");
    says(d, "name", "p5");
    says(d, "node", "a");
    says(d, "berth", "b");
    says(d, "plugin", "NodeAffinity");
    says(d, "why", "NodeAffinity: node(s) didn't match Pod's node affinity/selector");
    d = judged(&w, "p6", "1", "\"nodeSelector\":{\"only\":\"c\"},", "c", "different.noNode");
    says(d, "berth", "");
    says(d, "plugin", "TaintToleration");
    (void)judged(&w, "p7", "1", "\"schedulerName\":\"other\",", "a", "otherSchedulers");
    CU_ASSERT_EQUAL(number(told(&w), "compared"), 6);
    CU_ASSERT_EQUAL(number(told(&w), "agreed"), 3);
    place(&w, "p8", "1", "", "b"); /* not compared yet when it ends */
    bh_comparison_free(w.c);
    bh_sched_config_free(w.config);
    w.c = NULL;
    fixture_fini(&w.f);
}

BH_TESTS("simulator/console/compare", {"each way to agree and to differ", test_each_way})
