/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/cli/test_load_sources.c - the trace's CSV into objects, and clear errors for broken
 * files
 */
#include "cli/load.h"
#include "tests/unit/harness.h"

static const char *file(const char *name, const char *text)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s", bh_test_tmpdir(), name);
    CU_ASSERT_FATAL(bh_write_file(path, text, strlen(text), 0600) == 0);
    return path;
}

static struct bh_json *parse(struct bh_arena *a, const struct bh_load_item *it)
{
    struct bh_json *v = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_json_parse(a, it->json, it->json_n, BH_JSON_STRICT, &v, &err) == 0);
    return v;
}

static const char *request(const struct bh_json *pod, const char *resource)
{
    const struct bh_json *c = bh_json_at(bh_json_path(pod, "spec.containers"), 0);

    return bh_json_get_str(bh_json_path(c, "resources.requests"), resource);
}

static void test_openb_pods_ask_for_whole_or_shared_gpus(void)
{
    struct bh_load_set s = {0};
    struct bh_err err = {0};
    struct bh_arena a;
    const char *path =
        file("pods.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\r\n"
                         "whole,12000,16384,2,1000,,LS\r\n"
                         "shared,6000,12288,1,460,,BE\n"
                         "\n"
                         "none,100,200,0,0,,LS\n");

    bh_arena_init(&a, 0);
    CU_ASSERT_FATAL(bh_load_openb(&s, NULL, path, &err) == 0);
    CU_ASSERT_FATAL(s.n_pods == 3);
    CU_ASSERT_STRING_EQUAL(request(parse(&a, &s.pods[0]), "nvidia.com/gpu"), "2");
    CU_ASSERT_STRING_EQUAL(request(parse(&a, &s.pods[0]), "example.com/gpu-milli"), "2000");
    CU_ASSERT(request(parse(&a, &s.pods[1]), "nvidia.com/gpu") == NULL);
    CU_ASSERT_STRING_EQUAL(request(parse(&a, &s.pods[1]), "example.com/gpu-milli"), "460");
    CU_ASSERT(request(parse(&a, &s.pods[2]), "example.com/gpu-milli") == NULL);
    CU_ASSERT_STRING_EQUAL(request(parse(&a, &s.pods[2]), "cpu"), "100m");
    bh_load_set_fini(&s);
    bh_arena_fini(&a);
}

static void test_errors_name_file_line_and_column(void)
{
    struct bh_load_set s = {0};
    struct bh_err err = {0};

    CU_ASSERT(bh_load_openb(&s,
                            file("bad.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,many,1,0,\n"),
                            NULL, &err) < 0);
    CU_ASSERT(strstr(err.msg, "bad.csv:2: column \"cpu_milli\": \"many\"") != NULL);
    CU_ASSERT(bh_load_openb(&s, file("cols.csv", "sn,cpu\nn1,1\n"), NULL, &err) < 0);
    CU_ASSERT(strstr(err.msg, "no column \"cpu_milli\"") != NULL);
    CU_ASSERT(bh_load_openb(&s, file("empty.csv", ""), NULL, &err) < 0);
    CU_ASSERT(bh_load_openb(&s, "/nowhere/x.csv", NULL, &err) < 0);
    CU_ASSERT(strstr(err.msg, "/nowhere/x.csv") != NULL);
    bh_load_set_fini(&s);
}

static void test_synthetic_objects_are_valid_json(void)
{
    struct bh_load_set s = {0};
    struct bh_arena a;

    bh_arena_init(&a, 0);
    bh_load_synth(&s, 3, 2, "team", "load");
    CU_ASSERT_FATAL(s.n_nodes == 3 && s.n_pods == 2);
    CU_ASSERT_STRING_EQUAL(
        bh_json_cstr(bh_json_path(parse(&a, &s.nodes[2]), "status.allocatable.cpu")), "32");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(parse(&a, &s.pods[1]), "metadata.namespace")),
                           "team");
    bh_load_set_fini(&s);
    bh_arena_fini(&a);
}

BH_TESTS("cli/load_sources",
         {"openb pods ask for whole or shared gpus", test_openb_pods_ask_for_whole_or_shared_gpus},
         {"errors name file, line and column", test_errors_name_file_line_and_column},
         {"synthetic objects are valid json", test_synthetic_objects_are_valid_json})
