/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/base/test_metrics.c - counters, gauges, histograms and their text
 */
#include "common/base/metrics.h"
#include "tests/unit/harness.h"

#include <math.h>
#include <unistd.h>

static char *render(struct bh_metrics *m)
{
    struct bh_buf b = {0};
    bh_metrics_render(m, &b);
    return bh_buf_take(&b);
}

static void test_text_of_all_kinds(void)
{
    static const double bounds[] = {0.001, 0.5, 2};
    struct bh_metrics *m = bh_metrics_new();
    struct bh_metric *h = bh_metric_new(m, BH_HISTOGRAM, "z_seconds", "Time.", "result", bounds, 3);
    struct bh_metric *c = bh_metric_new(m, BH_COUNTER, "b_total", "Count.", "x,y", NULL, 0);
    struct bh_metric *g = bh_metric_new(m, BH_GAUGE, "a_bytes", "Line\nand \\.", "", NULL, 0);
    bh_cell_add(bh_metric_cell(c, "2", "q\"\\\n"), 1);
    bh_cell_add(bh_metric_cell(c, "1", ""), 2.5);
    bh_cell_add(bh_metric_cell(c, "1", ""), 1);
    bh_cell_set(bh_metric_cell(g), 3);
    bh_cell_add(bh_metric_cell(g), -4);
    struct bh_cell *t = bh_metric_cell(h, "ok");
    bh_cell_observe(t, 0.001); /* upper bounds are inclusive */
    bh_cell_observe(t, 0.4);
    bh_cell_observe_n(t, 1, 3);
    bh_cell_observe(t, 100);
    CU_ASSERT_EQUAL(bh_cell_value(t), 6);
    CU_ASSERT_EQUAL(bh_cell_value(bh_metric_cell(g)), -1);
    char *text = render(m);
    CU_ASSERT_STRING_EQUAL(text, "# HELP a_bytes Line\\nand \\\\.\n"
                                 "# TYPE a_bytes gauge\n"
                                 "a_bytes -1\n"
                                 "# HELP b_total Count.\n"
                                 "# TYPE b_total counter\n"
                                 "b_total{x=\"1\",y=\"\"} 3.5\n"
                                 "b_total{x=\"2\",y=\"q\\\"\\\\\\n\"} 1\n"
                                 "# HELP z_seconds Time.\n"
                                 "# TYPE z_seconds histogram\n"
                                 "z_seconds_bucket{result=\"ok\",le=\"0.001\"} 1\n"
                                 "z_seconds_bucket{result=\"ok\",le=\"0.5\"} 2\n"
                                 "z_seconds_bucket{result=\"ok\",le=\"2\"} 5\n"
                                 "z_seconds_bucket{result=\"ok\",le=\"+Inf\"} 6\n"
                                 "z_seconds_sum{result=\"ok\"} 103.401\n"
                                 "z_seconds_count{result=\"ok\"} 6\n");
    free(text);
    bh_metrics_free(m);
}

static void test_cells_are_kept_and_distinct(void)
{
    struct bh_metrics *m = bh_metrics_new();
    struct bh_metric *f = bh_metric_new(m, BH_GAUGE, "g", "G.", "a,b", NULL, 0);
    struct bh_cell *x = bh_metric_cell(f, "1\",b=\"2", "3");
    CU_ASSERT_PTR_NOT_EQUAL(x, bh_metric_cell(f, "1", "2\",b=\"3"));
    CU_ASSERT_PTR_NOT_EQUAL(x, bh_metric_cell(f, "1", "23"));
    for (int i = 0; i < 100; i++) {
        char v[16];
        snprintf(v, sizeof(v), "%d", i);
        bh_metric_cell(f, v, v);
    }
    CU_ASSERT_PTR_EQUAL(x, bh_metric_cell(f, "1\",b=\"2", "3"));
    bh_metrics_free(m);
    bh_metrics_free(NULL);
}

static void test_families_without_cells_are_left_out(void)
{
    struct bh_metrics *m = bh_metrics_new();
    bh_metric_new(m, BH_COUNTER, "x_total", "X.", "l", NULL, 0);
    char *text = render(m);
    CU_ASSERT_STRING_EQUAL(text, "");
    free(text);
    bh_metrics_free(m);
}

static void test_odd_numbers(void)
{
    static const double bounds[] = {1};
    struct bh_metrics *m = bh_metrics_new();
    struct bh_cell *g = bh_metric_cell(bh_metric_new(m, BH_GAUGE, "g", "G.", "", NULL, 0));
    struct bh_cell *c = bh_metric_cell(bh_metric_new(m, BH_COUNTER, "c", "C.", "", NULL, 0));
    struct bh_cell *h = bh_metric_cell(bh_metric_new(m, BH_HISTOGRAM, "h", "H.", "", bounds, 1));
    bh_cell_set(g, NAN);
    bh_cell_advance(c, 5);
    bh_cell_advance(c, 3); /* never back */
    bh_cell_observe(h, INFINITY);
    char *text = render(m);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\ng NaN\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nc 5\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "h_bucket{le=\"1\"} 0\nh_bucket{le=\"+Inf\"} 1\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "h_sum +Inf\n"));
    free(text);
    bh_metrics_free(m);
}

static void set_from_live(void *arg)
{
    bh_cell_set(arg, 99);
}

static void test_scrape_hooks_run_before_each_render(void)
{
    struct bh_metrics *m = bh_metrics_new();
    struct bh_cell *g = bh_metric_cell(bh_metric_new(m, BH_GAUGE, "g", "G.", "", NULL, 0));
    bh_metrics_on_scrape(m, set_from_live, g);
    for (int i = 0; i < 2; i++) {
        bh_cell_set(g, 0);
        char *text = render(m);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "g 99\n"));
        free(text);
    }
    bh_metrics_free(m);
}

static double sample(const char *text, const char *name)
{
    char line[128];
    snprintf(line, sizeof(line), "\n%s ", name);
    const char *p = strstr(text, line);
    return p ? strtod(p + strlen(line), NULL) : NAN;
}

static void test_process_metrics_tell_the_truth(void)
{
    struct bh_metrics *m = bh_metrics_new();
    bh_metrics_add_process(m, "test");
    bh_metrics_add_network(m);
    CU_ASSERT_PTR_NULL(bh_metric_find(m, "go_gc"));
    CU_ASSERT_PTR_NOT_NULL(bh_metric_find(m, "go_threads"));
    CU_ASSERT(bh_metrics_count(m, "[BETA]") == 1);
    char *text = render(m);
    CU_ASSERT(sample(text, "go_goroutines") == 1);
    CU_ASSERT(sample(text, "process_network_receive_bytes_total") >= 0);
    CU_ASSERT(sample(text, "process_virtual_memory_max_bytes") > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(
        text, "registered_metrics_total{deprecated_version=\"\",stability_level=\"BETA\"} 1\n"));
    CU_ASSERT(sample(text, "process_resident_memory_bytes") > 100000);
    CU_ASSERT(sample(text, "process_virtual_memory_bytes") >
              sample(text, "process_resident_memory_bytes"));
    CU_ASSERT(sample(text, "process_cpu_seconds_total") >= 0);
    double start = sample(text, "process_start_time_seconds");
    double now = (double)bh_wall_ns() / 1e9;
    CU_ASSERT(start > now - 3600 && start < now + 5);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(text, "berth_build_info{program=\"test\",version=\"" BH_VERSION "\"} 1\n"));
    double fds = sample(text, "process_open_fds");
    free(text);
    int extra = dup(1);
    text = render(m);
    CU_ASSERT_EQUAL(sample(text, "process_open_fds"), fds + 1);
    close(extra);
    free(text);
    bh_metrics_free(m);
}

static void test_exponential_buckets(void)
{
    double b[4];
    bh_buckets_exponential(0.001, 2, 4, b);
    CU_ASSERT(b[0] == 0.001 && b[1] == 0.002 && b[2] == 0.004 && b[3] == 0.008);
}

BH_TESTS("common/base/metrics", {"text of all kinds", test_text_of_all_kinds},
         {"cells are kept and distinct", test_cells_are_kept_and_distinct},
         {"families without cells are left out", test_families_without_cells_are_left_out},
         {"odd numbers", test_odd_numbers},
         {"scrape hooks run before each render", test_scrape_hooks_run_before_each_render},
         {"process metrics tell the truth", test_process_metrics_tell_the_truth},
         {"exponential buckets", test_exponential_buckets})
