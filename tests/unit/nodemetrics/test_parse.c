/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/nodemetrics/test_parse.c - what of a source's reply becomes the text, and what does not
 */
#include "nodemetrics/nodemetrics.h"
#include "tests/unit/harness.h"

#include <errno.h>

struct world {
    struct bh_arena a;
    struct bh_nm m;
    struct bh_err err;
};

static void begin(struct world *w)
{
    *w = (struct world){0};
    bh_arena_init(&w->a, 0);
}

static void end(struct world *w)
{
    bh_nm_fini(&w->m);
    bh_arena_fini(&w->a);
}

static struct bh_json *parsed(struct world *w, const char *text)
{
    struct bh_json *v = NULL;

    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&w->a, text, strlen(text), BH_JSON_NUL, &v, &w->err), 0);
    return v;
}

static void expect_text(const struct world *w, const char *want)
{
    struct bh_buf b = {0};

    bh_nm_text(&w->m, &b);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), want);
    bh_buf_fini(&b);
}

/* A load watcher's reply with one metric of node a. */
static void add_metric(struct world *w, const char *metric)
{
    char text[1024];

    snprintf(text, sizeof text, "{\"data\": {\"NodeMetricsMap\": {\"a\": {\"metrics\": [%s]}}}}",
             metric);
    CU_ASSERT_EQUAL(bh_nm_add_watcher(&w->m, parsed(w, text), &w->err), 0);
}

/* ---- load watcher ---------------------------------------------------------------------------- */

static void test_watcher_in_its_order(void)
{
    struct world w;

    begin(&w);
    CU_ASSERT_EQUAL(
        bh_nm_add_watcher(
            &w.m,
            parsed(&w, "{\"timestamp\": 7, \"window\": {\"start\": 100, \"end\": 1000}, \"data\": "
                       "{\"NodeMetricsMap\": {"
                       "\"b\": {\"metrics\": [{\"type\": \"CPU\", \"operator\": \"STD\", "
                       "\"value\": 0.25},"
                       "{\"type\": \"CPU\", \"operator\": \"AVG\", \"value\": \"31.5\"}]},"
                       "\"a\": {\"metrics\": [{\"type\": \"Memory\", \"value\": 7}]}}}}"),
            &w.err),
        0);
    expect_text(&w, "berth-node-metrics 1\nwindow 100 1000\na Memory/=7\nb CPU/STD=0.25 "
                    "CPU/AVG=31.5\n");
    CU_ASSERT_EQUAL(w.m.n_left_out, 0);
    end(&w);
}

static void test_watcher_without_a_window(void)
{
    struct world w;

    begin(&w);
    CU_ASSERT_EQUAL(
        bh_nm_add_watcher(
            &w.m, parsed(&w, "{\"timestamp\": 77, \"data\": {\"NodeMetricsMap\": {}}}"), &w.err),
        0);
    expect_text(&w, "berth-node-metrics 1\nwindow 0 77\n");
    end(&w);
}

static void test_watcher_of_another_form(void)
{
    static const char *const none[] = {"null",
                                       "[]",
                                       "{}",
                                       "{\"data\": {}}",
                                       "{\"data\": {\"NodeMetricsMap\": []}}",
                                       "{\"data\": {\"NodeMetricsMap\": \"a\"}}"};
    struct world w;

    begin(&w);
    for (size_t i = 0; i < BH_ARRAY_LEN(none); i++) {
        w.err.msg[0] = '\0';
        CU_ASSERT_EQUAL(bh_nm_add_watcher(&w.m, parsed(&w, none[i]), &w.err), -EBADMSG);
        CU_ASSERT_STRING_EQUAL(w.err.msg, "data.NodeMetricsMap: an object is needed");
    }
    CU_ASSERT_EQUAL(w.m.nodes.len, 0);
    end(&w);
}

/* ---- what may stand in the text -------------------------------------------------------------- */

static void test_values(void)
{
    static const char *const none[] = {
        "null",     "true",      "[1]",     "{}",    "\"\"",     "\"1x\"",       "\"NaN\"",
        "\"+Inf\"", "\"1e400\"", "\"1 2\"", "\"x\"", "\"1\\n\"", "\"1\\u0000\"", "\"1\\u0000 b\""};
    struct world w;
    char metric[256];

    for (size_t i = 0; i < BH_ARRAY_LEN(none); i++) {
        begin(&w);
        snprintf(metric, sizeof metric, "{\"type\": \"CPU\", \"operator\": \"AVG\", \"value\": %s}",
                 none[i]);
        add_metric(&w, metric);
        CU_ASSERT_EQUAL(w.m.n_left_out, 1);
        CU_ASSERT_EQUAL(w.m.nodes.len, 0);
        end(&w);
    }
    begin(&w);
    add_metric(&w, "{\"type\": \"CPU\", \"operator\": \"AVG\"}");
    CU_ASSERT_EQUAL(w.m.n_left_out, 1);
    end(&w);
}

static void test_words(void)
{
    static const char *const none[] = {
        "\"type\": \"\"",
        "\"type\": \"C P\"",
        "\"type\": \"CPU/AVG\"",
        "\"type\": \"CPU\\n\"",
        "\"type\": \"C=1\"",
        "\"type\": \"C0\"",
        "\"type\": 1",
        "\"operator\": \"AVG\"",
        "\"type\": \"CPU\", \"operator\": \"A V\"",
        "\"type\": \"CPU\", \"operator\": \"=\"",
        "\"type\": \"abcdefghijklmnopqrstuvwxyzabcdef\"",
        "\"type\": \"CPU\", \"operator\": \"abcdefghijklmnopqrstuvwxyzabcdef\""};
    struct world w;
    char metric[256];

    for (size_t i = 0; i < BH_ARRAY_LEN(none); i++) {
        begin(&w);
        snprintf(metric, sizeof metric, "{%s, \"value\": 1}", none[i]);
        add_metric(&w, metric);
        CU_ASSERT_EQUAL(w.m.n_left_out, 1);
        CU_ASSERT_EQUAL(w.m.nodes.len, 0);
        end(&w);
    }
    begin(&w); /* as long as the reader's own words */
    add_metric(&w, "{\"type\": \"abcdefghijklmnopqrstuvwxyzabcde\", \"value\": 1}");
    expect_text(&w, "berth-node-metrics 1\nwindow 0 0\na abcdefghijklmnopqrstuvwxyzabcde/=1\n");
    end(&w);
}

static void test_names_of_nodes(void)
{
    static const char *const none[] = {"", "a b", "a\\n", "a/b", "a=b", "\\u00e9", "window 1 2"};
    struct world w;
    char text[1024], name[260];

    for (size_t i = 0; i < BH_ARRAY_LEN(none) + 2; i++) {
        const bool fits = i == BH_ARRAY_LEN(none) + 1;
        begin(&w);
        memset(name, 'n', sizeof name);
        name[fits ? 253 : 254] = '\0';
        snprintf(text, sizeof text,
                 "{\"data\": {\"NodeMetricsMap\": {\"%s\": {\"metrics\": [{\"type\": \"CPU\", "
                 "\"operator\": \"AVG\", \"value\": 1}]}}}}",
                 i < BH_ARRAY_LEN(none) ? none[i] : name);
        CU_ASSERT_EQUAL(bh_nm_add_watcher(&w.m, parsed(&w, text), &w.err), 0);
        CU_ASSERT_EQUAL(w.m.n_left_out, !fits);
        CU_ASSERT_EQUAL(w.m.nodes.len, fits);
        end(&w);
    }
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

static int add_vector(struct world *w, const char *result, const char *word)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"status\": \"success\", \"data\": {\"resultType\": \"vector\", \"result\": [%s]}}",
             result);
    return bh_nm_add_vector(&w->m, parsed(w, text), "instance", word, &w->err);
}

static void test_vector_loses_ports(void)
{
    struct world w;

    begin(&w);
    CU_ASSERT_EQUAL(add_vector(&w,
                               "{\"metric\": {\"instance\": \"a:9100\"}, \"value\": [50.5, "
                               "\"0.25\"]},"
                               "{\"metric\": {\"instance\": \"b\"}, \"value\": [49, \"0.5\"]},"
                               "{\"metric\": {\"instance\": \"c:\"}, \"value\": [49, \"1\"]},"
                               "{\"metric\": {\"instance\": \"d:http\"}, \"value\": [49, \"1\"]}",
                               "CPU/AVG"),
                    0);
    CU_ASSERT_EQUAL(add_vector(&w,
                               "{\"metric\": {\"instance\": \"a:9100\"}, \"value\": [40, "
                               "\"0.04\"]}",
                               "CPU/STD"),
                    0);
    CU_ASSERT_EQUAL(w.m.n_left_out, 0);
    expect_text(&w, "berth-node-metrics 1\nwindow 0 50\na CPU/AVG=25 CPU/STD=4\nb CPU/AVG=50\nc: "
                    "CPU/AVG=100\nd:http CPU/AVG=100\n");
    end(&w);
}

static void test_vector_without_what_is_needed(void)
{
    static const char *const none[] = {
        "{\"metric\": {\"node\": \"a\"}, \"value\": [1, \"1\"]}",
        "{\"metric\": {\"instance\": \":9100\"}, \"value\": [1, \"1\"]}",
        "{\"metric\": {\"instance\": \"a\"}}",
        "{\"metric\": {\"instance\": \"a\"}, \"value\": [1]}",
        "{\"metric\": {\"instance\": \"a\"}, \"value\": [1, \"NaN\"]}",
        "{\"metric\": {\"instance\": \"a\"}, \"value\": [1, \"1.7e308\"]}", /* times 100 */
        "1"};
    struct world w;

    for (size_t i = 0; i < BH_ARRAY_LEN(none); i++) {
        begin(&w);
        CU_ASSERT_EQUAL(add_vector(&w, none[i], "CPU/AVG"), 0);
        CU_ASSERT_EQUAL(w.m.n_left_out, 1);
        CU_ASSERT_EQUAL(w.m.nodes.len, 0);
        end(&w);
    }
}

/* The age of what is known hangs on the moment: one that no clock shows is none. */
static void test_vector_with_moments_that_are_none(void)
{
    static const char *const at[] = {"-5", "0", "1e12", "1e300", "\"x\"", "null"};
    struct world w;
    char result[256];

    for (size_t i = 0; i < BH_ARRAY_LEN(at); i++) {
        begin(&w);
        snprintf(result, sizeof result,
                 "{\"metric\": {\"instance\": \"a\"}, \"value\": [%s, \"1\"]}", at[i]);
        CU_ASSERT_EQUAL(add_vector(&w, result, "Memory/AVG"), 0);
        expect_text(&w, "berth-node-metrics 1\nwindow 0 0\na Memory/AVG=100\n");
        end(&w);
    }
}

static void test_vector_of_another_form(void)
{
    static const struct {
        const char *reply, *says;
    } cases[] = {
        {"{}", "Prometheus says: no success"},
        {"{\"status\": \"error\", \"error\": \"parse error\"}", "Prometheus says: parse error"},
        {"{\"status\": \"success\"}", "data.resultType: a vector is needed"},
        {"{\"status\": \"success\", \"data\": {\"resultType\": \"matrix\", \"result\": []}}",
         "data.resultType: a vector is needed"}};
    struct world w;

    begin(&w);
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        w.err.msg[0] = '\0';
        CU_ASSERT_EQUAL(
            bh_nm_add_vector(&w.m, parsed(&w, cases[i].reply), "instance", "CPU/AVG", &w.err),
            -EBADMSG);
        CU_ASSERT_STRING_EQUAL(w.err.msg, cases[i].says);
    }
    end(&w);
}

/* ---- metrics-server -------------------------------------------------------------------------- */

#define USAGE(name, at, cpu, memory)                                                               \
    "{\"metadata\": {\"name\": \"" name "\"}, \"timestamp\": \"" at                                \
    "\", \"usage\": {\"cpu\": \"" cpu "\", \"memory\": \"" memory "\"}}"
#define HAS(name, cpu, memory)                                                                     \
    "{\"metadata\": {\"name\": \"" name "\"}, \"status\": {\"capacity\": {\"cpu\": \"" cpu         \
    "\", \"memory\": \"" memory "\"}}}"

static int add_usage(struct world *w, const char *metrics, const char *nodes)
{
    return bh_nm_add_usage(&w->m, parsed(w, metrics), parsed(w, nodes), &w->err);
}

static void test_usage_of_capacity(void)
{
    struct world w;

    begin(&w);
    CU_ASSERT_EQUAL(
        add_usage(&w,
                  "{\"items\": [" USAGE("b", "1970-01-01T00:16:40Z", "1500m", "2Gi") "," USAGE(
                      "a", "1970-01-01T00:11:40Z", "250000000n", "512Mi") "]}",
                  "{\"items\": [" HAS("a", "1", "1Gi") "," HAS("b", "4", "8Gi") "]}"),
        0);
    CU_ASSERT_EQUAL(w.m.n_left_out, 0);
    expect_text(&w, "berth-node-metrics 1\nwindow 1000 1000\na CPU/Latest=25 "
                    "Memory/Latest=50\nb CPU/Latest=37.5 Memory/Latest=25\n");
    end(&w);
}

/* A kubelet that does not answer leaves its node's last numbers in metrics-server. */
static void test_usage_that_is_old(void)
{
    struct world w;

    begin(&w);
    CU_ASSERT_EQUAL(
        add_usage(&w,
                  "{\"items\": [" USAGE("a", "1970-01-01T00:11:39Z", "1", "1Gi") "," USAGE(
                      "b", "1970-01-01T00:16:40Z", "1", "1Gi") "," USAGE("c", "yesterday", "1",
                                                                         "1Gi") "]}",
                  "{\"items\": [" HAS("a", "2", "2Gi") "," HAS("b", "2", "2Gi") "," HAS(
                      "c", "2", "2Gi") "]}"),
        0);
    CU_ASSERT_EQUAL(w.m.n_left_out, 2);
    expect_text(&w, "berth-node-metrics 1\nwindow 1000 1000\nb CPU/Latest=50 Memory/Latest=50\n");
    end(&w);
}

static void test_usage_of_an_unknown_capacity(void)
{
    struct world w;

    begin(&w);
    CU_ASSERT_EQUAL(
        add_usage(&w,
                  "{\"items\": [" USAGE("gone", "1970-01-01T00:16:40Z", "1", "1Gi") "," USAGE(
                      "none", "1970-01-01T00:16:40Z", "1",
                      "1Gi") "," USAGE("half", "1970-01-01T00:16:40Z", "1", "many") "]}",
                  "{\"items\": [" HAS("none", "0", "x") "," HAS("half", "4", "8Gi") "]}"),
        0);
    CU_ASSERT_EQUAL(w.m.n_left_out, 5);
    expect_text(&w, "berth-node-metrics 1\nwindow 1000 1000\nhalf CPU/Latest=25\n");
    end(&w);
}

static void test_usage_of_another_form(void)
{
    static const char *const lists[][2] = {{"{}", "{\"items\": []}"},
                                           {"{\"items\": {}}", "{\"items\": []}"},
                                           {"{\"items\": []}", "{}"},
                                           {"[]", "[]"}};
    struct world w;

    begin(&w);
    for (size_t i = 0; i < BH_ARRAY_LEN(lists); i++) {
        w.err.msg[0] = '\0';
        CU_ASSERT_EQUAL(add_usage(&w, lists[i][0], lists[i][1]), -EBADMSG);
        CU_ASSERT_STRING_EQUAL(w.err.msg, "items: a list is needed");
    }
    CU_ASSERT_EQUAL(add_usage(&w, "{\"items\": [1, {}]}", "{\"items\": [null, {}]}"), 0);
    CU_ASSERT_EQUAL(w.m.nodes.len, 0);
    end(&w);
}

BH_TESTS("nodemetrics/parse", {"a load watcher's metrics, in its order", test_watcher_in_its_order},
         {"a load watcher that tells no window", test_watcher_without_a_window},
         {"a load watcher's reply of another form", test_watcher_of_another_form},
         {"values that are no numbers are left out", test_values},
         {"words that could not stand in the text are left out", test_words},
         {"names that no node has are left out", test_names_of_nodes},
         {"Prometheus: ports are cut off, queries add up", test_vector_loses_ports},
         {"Prometheus: what lacks name or value is left out", test_vector_without_what_is_needed},
         {"Prometheus: moments that are none", test_vector_with_moments_that_are_none},
         {"Prometheus: an error, and other forms", test_vector_of_another_form},
         {"metrics-server: use in percent of capacity", test_usage_of_capacity},
         {"metrics-server: five minutes behind the others is old", test_usage_that_is_old},
         {"metrics-server: no capacity, no number", test_usage_of_an_unknown_capacity},
         {"metrics-server: lists of another form", test_usage_of_another_form})
