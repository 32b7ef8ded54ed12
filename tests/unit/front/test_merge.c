/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/front/test_merge.c - the metrics of several processes as if they were one's
 */
#include "front/merge.h"

#include <unistd.h>

#include "tests/unit/harness.h"

static struct bh_merge *m;
static struct bh_buf out;

static size_t add(const char *process, const char *text)
{
    BH_CLEANUP(bh_freep) char *bare = bh_memdup(text, strlen(text)); /* nothing behind the end */

    return bh_merge_add(m, process, bare, strlen(text));
}

static const char *written(const struct bh_opt_list *disabled)
{
    bh_buf_reset(&out);
    bh_merge_write(m, disabled, &out);
    return bh_buf_str(&out);
}

static void begin(void)
{
    m = bh_merge_new(NULL);
}

static void end(void)
{
    bh_merge_free(m);
    bh_buf_fini(&out);
}

static void test_sums(void)
{
    begin();
    CU_ASSERT_EQUAL(add("a", "# HELP x_total Things.\n# TYPE x_total counter\n"
                             "x_total{k=\"1\"} 2\nx_total{k=\"2\"} 3\n"),
                    0);
    CU_ASSERT_EQUAL(add("b", "# HELP x_total Other words.\n# TYPE x_total counter\n"
                             "x_total{k=\"2\"} 4\nx_total{k=\"}\\\"{\"} 1"),
                    0);
    CU_ASSERT_STRING_EQUAL(written(NULL), "# HELP x_total Things.\n# TYPE x_total counter\n"
                                          "x_total{k=\"1\"} 2\nx_total{k=\"2\"} 7\n"
                                          "x_total{k=\"}\\\"{\"} 1\n");
    end();
}

static void test_histograms(void)
{
    static const char text[] = "# TYPE h_seconds histogram\n"
                               "h_seconds_bucket{le=\"0.1\"} 1\nh_seconds_bucket{le=\"+Inf\"} 2\n"
                               "h_seconds_sum 0.5\nh_seconds_count 2\n";
    begin();
    add("a", text);
    add("b", text);
    add("b", "# TYPE h_seconds_count gauge\n"); /* a family of its own from here on */
    CU_ASSERT_STRING_EQUAL(written(NULL),
                           "# TYPE h_seconds histogram\n"
                           "h_seconds_bucket{le=\"0.1\"} 2\nh_seconds_bucket{le=\"+Inf\"} 4\n"
                           "h_seconds_sum 1\nh_seconds_count 4\n");
    end();
}

static void test_smallest_and_largest(void)
{
    double v;

    begin();
    add("a", "process_start_time_seconds 100\nleader_election_master_status{name=\"k\"} 0\n");
    add("b", "process_start_time_seconds 90\nleader_election_master_status{name=\"k\"} 1\n");
    add("c", "process_start_time_seconds 95\n");
    CU_ASSERT(bh_merge_value(m, "process_start_time_seconds", &v));
    CU_ASSERT_EQUAL(v, 90);
    CU_ASSERT_PTR_NOT_NULL(strstr(written(NULL), "leader_election_master_status{name=\"k\"} 1\n"));
    CU_ASSERT(!bh_merge_value(m, "nothing", &v));
    end();
    begin(); /* limits of each process are not the whole's limit times their number */
    add("a", "process_max_fds 1024\nprocess_virtual_memory_max_bytes 1.8446744073709552e+19\n");
    add("b", "process_max_fds 65536\nprocess_virtual_memory_max_bytes 1.8446744073709552e+19\n");
    add("c", "process_max_fds 1024\nprocess_virtual_memory_max_bytes 4096\n");
    CU_ASSERT(bh_merge_value(m, "process_max_fds", &v) && v == 65536);
    CU_ASSERT(bh_merge_value(m, "process_virtual_memory_max_bytes", &v) && v == 0x1p64);
    end();
}

static void test_each_process_alone(void)
{
    begin();
    add("watcher", "# HELP process_open_fds Number.\n# TYPE process_open_fds gauge\n"
                   "process_open_fds 7\n");
    add("binder-1", "process_open_fds 5\n");
    CU_ASSERT_STRING_EQUAL(written(NULL),
                           "# HELP berth_process_open_fds Number.\n"
                           "# TYPE berth_process_open_fds gauge\n"
                           "berth_process_open_fds{process=\"watcher\"} 7\n"
                           "berth_process_open_fds{process=\"binder-1\"} 5\n"
                           "# HELP process_open_fds Number.\n# TYPE process_open_fds gauge\n"
                           "process_open_fds 12\n");
    end();
}

static void test_nonsense_is_left_out(void)
{
    static const char *const bad[] = {
        "1abc 2\n",        "x\n",    "x \n",         "x{a=\"b\" 1\n",    "x{a=\"b\\",
        "x 1.5zz\n",       "{} 1\n", "x{a=\"b\"}\n", "# TYPE 9 gauge\n", "# HELP \n",
        "x{a=\"\n\"} 1\n", "x ",
    };

    begin();
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++)
        CU_ASSERT(add("a", bad[i]) > 0);
    CU_ASSERT_EQUAL(bh_merge_add(m, "a", "x\0y 1\n", 6), 1);
    CU_ASSERT_EQUAL(add("a", "# a comment\n\n   \n"), 1);
    /* any other comment says nothing about a family, wherever its words stand */
    CU_ASSERT_EQUAL(add("a", "# This y is no type\n# y\n"), 0);
    CU_ASSERT_EQUAL(add("a", "y{} 1 1700000000\ny 2\nz +Inf\nw NaN\n"), 0);
    CU_ASSERT_STRING_EQUAL(written(NULL), "w NaN\ny 3\nz +Inf\n");
    end();
}

static void test_disabled(void)
{
    const char *names[] = {"a_total", "nosuch", "process_threads", "go_threads", "process_"};
    const struct bh_opt_list l = {names, BH_ARRAY_LEN(names)};

    begin();
    add("a",
        "# TYPE a_total counter\na_total 1\na_total_more 2\nprocess_threads 1\ngo_threads 1\n");
    CU_ASSERT_STRING_EQUAL(written(&l), "a_total_more 2\ngo_threads 1\nprocess_threads 1\n");
    CU_ASSERT(bh_merge_can_hide(m, "a_total"));
    CU_ASSERT(!bh_merge_can_hide(m, "go_threads"));
    CU_ASSERT(!bh_merge_can_hide(m, "nosuch"));
    end();
}

/* ---- --allow-metric-labels ------------------------------------------------------------------- */

static void test_allowed_labels(void)
{
    const char *pairs[] = {"x_total,k=1", "x_total,k=a,b\"c",
                           "\"h_seconds,p=one\",\"h_seconds,le=1\""};
    struct bh_label_rules *r =
        bh_label_rules_new(&(struct bh_opt_list){pairs, BH_ARRAY_LEN(pairs)}, "");

    m = bh_merge_new(r);
    add("a", "# TYPE x_total counter\nx_total{j=\"1\",k=\"a\"} 1\nx_total{j=\"1\",k=\"1\"} 2\n"
             "x_total{j=\"1\",k=\"\"} 3\nx_total{j=\"1\",k=\"b\\\"c\"} 4\ny_total{k=\"1\"} 5\n"
             "# TYPE h_seconds histogram\n"
             "h_seconds_bucket{p=\"two\",le=\"1\"} 1\nh_seconds_bucket{p=\"two\",le=\"+Inf\"} 3\n"
             "h_seconds_sum{p=\"two\"} 9\nh_seconds_count{p=\"two\"} 3\n"
             "h_seconds_bucket{p=\"six\",le=\"1\"} 1\nh_seconds_bucket{p=\"six\",le=\"+Inf\"} 1\n"
             "h_seconds_sum{p=\"six\"} 0\nh_seconds_count{p=\"six\"} 1\n");
    CU_ASSERT_STRING_EQUAL(
        written(NULL), "# TYPE h_seconds histogram\n"
                       "h_seconds_bucket{p=\"unexpected\",le=\"1\"} 2\n"
                       "h_seconds_bucket{p=\"unexpected\",le=\"+Inf\"} 4\n"
                       "h_seconds_sum{p=\"unexpected\"} 9\nh_seconds_count{p=\"unexpected\"} 4\n"
                       "# TYPE x_total counter\n"
                       "x_total{j=\"1\",k=\"a\"} 1\nx_total{j=\"1\",k=\"unexpected\"} 5\n"
                       "x_total{j=\"1\",k=\"b\\\"c\"} 4\n"
                       "y_total{k=\"1\"} 5\n");
    CU_ASSERT_EQUAL(bh_merge_unexpected(m), 2 + 3 + 3 + 1);
    end();
    bh_label_rules_free(r);
}

static struct bh_label_rules *of_file(const char *text)
{
    char path[] = "/tmp/test-merge-XXXXXX";
    int fd = mkstemp(path);

    CU_ASSERT_FATAL(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    struct bh_label_rules *r = bh_label_rules_new(&(struct bh_opt_list){0}, path);
    unlink(path);
    return r;
}

static void test_manifest(void)
{
    static const char *const good[] = {"\"x,k\": \"a,b\"\n", "allowListMapping:\n  x,k: a,b\n",
                                       "x,k: c\nx,k: a,b\n"};
    static const char *const bad[] = {
        "", "[1]", "x: a\n", "\"x,k\": [a]\n", "{", "\"x,k\": {a: b}\n"};
    struct bh_buf key = {0};

    for (size_t i = 0; i < BH_ARRAY_LEN(good); i++) {
        struct bh_label_rules *r = of_file(good[i]);
        CU_ASSERT_EQUAL(bh_label_rules_apply(r, "x", bh_str_c("x{k=\"b\"}"), &key), 0);
        CU_ASSERT_EQUAL(bh_label_rules_apply(r, "x", bh_str_c("x{k=\"ab\",l=\"c\"}"), &key), 1);
        CU_ASSERT_STRING_EQUAL(bh_buf_str(&key), "x{k=\"unexpected\",l=\"c\"}");
        CU_ASSERT_EQUAL(bh_label_rules_apply(r, "x", bh_str_c("x{k=\"a\\\"}"), &key), 0);
        CU_ASSERT_EQUAL(bh_label_rules_apply(r, "x", bh_str_c("x{k}"), &key), 0);
        CU_ASSERT_EQUAL(bh_label_rules_apply(r, "x", bh_str_c("x"), &key), 0);
        bh_label_rules_free(r);
    }
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++)
        CU_ASSERT_PTR_NULL(of_file(bad[i]));
    CU_ASSERT_PTR_NULL(bh_label_rules_new(&(struct bh_opt_list){0}, "/nonexistent/file"));
    bh_buf_fini(&key);
}

BH_TESTS("front/merge", {"counters are added", test_sums}, {"histograms too", test_histograms},
         {"smallest and largest", test_smallest_and_largest},
         {"each process alone", test_each_process_alone},
         {"nonsense is left out", test_nonsense_is_left_out}, {"disabled metrics", test_disabled},
         {"allowed values of labels", test_allowed_labels}, {"a manifest of them", test_manifest})
