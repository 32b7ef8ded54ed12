/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/cli/test_explain.c - what `berth explain` does with explanations and files; the
 * running system is played in tests/integration/explain.sh
 */
#include "cli/explain.h"
#include "simulator/trial/trial.h"

#include <errno.h>

#include "tests/unit/harness.h"

static struct bh_json *parse(struct bh_arena *a, const char *text)
{
    struct bh_json *v = NULL;
    struct bh_err err = {0};

    CU_ASSERT_FATAL(bh_json_parse(a, text, strlen(text), 0, &v, &err) == 0);
    return v;
}

static const char BEFORE[] =
    "{\"result\":\"Unschedulable\",\"message\":\"0/3 nodes\",\"nodes\":{\"total\":3},"
    "\"rejected\":[{\"node\":\"a\",\"plugin\":\"P\",\"reasons\":[\"x\",\"y\"]},"
    "{\"node\":\"b\",\"plugin\":\"P\",\"reasons\":[\"x\"]},"
    "{\"node\":\"c\",\"plugin\":\"Q\",\"reasons\":[]}],\"rejectedGroups\":[{\"count\":3}]}";
static const char AFTER[] =
    "{\"result\":\"Scheduled\",\"nodeName\":\"a\",\"scored\":true,\"nodes\":{\"total\":3},"
    "\"ranking\":[{\"node\":\"a\",\"rank\":1,\"total\":90},{\"node\":\"d\",\"rank\":2,\"total\":8}]"
    ","
    "\"rejected\":[{\"node\":\"b\",\"plugin\":\"P\",\"reasons\":[\"x\"]}]}";

static const struct bh_json *node_at(const struct bh_json *d, size_t i)
{
    return bh_json_at(bh_json_get(d, "nodes"), i);
}

static void test_the_difference_names_each_node_that_changed(void)
{
    struct bh_arena a;
    const struct bh_json *d;

    bh_arena_init(&a, 0);
    d = bh_explain_difference(&a, parse(&a, BEFORE), parse(&a, AFTER));
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(d, "result.before")),
                           "Unschedulable: 0/3 nodes");
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(d, "result.after")), "Scheduled on a");
    CU_ASSERT_EQUAL(bh_json_get_i64(d, "unchanged", -1), 1); /* b */
    CU_ASSERT_EQUAL_FATAL(bh_json_get(d, "nodes")->c.n, 3);
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(node_at(d, 0), "node"), "a");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(node_at(d, 0), "before"), "P: x, y");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(node_at(d, 0), "after"), "feasible, rank 1, score 90");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(node_at(d, 1), "node"), "c");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(node_at(d, 1), "after"), "-");
    CU_ASSERT_STRING_EQUAL(bh_json_get_text(node_at(d, 2), "before"), "-");
    d = bh_explain_difference(&a, parse(&a, AFTER), parse(&a, AFTER));
    CU_ASSERT_EQUAL(bh_json_get_i64(d, "unchanged", -1), 3);
    CU_ASSERT_EQUAL(bh_json_get(d, "nodes")->c.n, 0);
    d = bh_explain_difference(
        &a,
        parse(&a, "{\"result\":\"Unschedulable\",\"message\":\"no\",\"preemption\":{"
                  "\"nominatedNode\":\"a\",\"victims\":[{\"name\":\"v\"}]}}"),
        parse(&a, AFTER));
    CU_ASSERT_STRING_EQUAL(bh_json_cstr(bh_json_path(d, "result.before")),
                           "Unschedulable, evicts 1 for node a: no");
    /* nothing was looked at: a gated pod */
    d = bh_explain_difference(&a, parse(&a, "{\"result\":\"Gated\"}"), parse(&a, AFTER));
    CU_ASSERT_EQUAL(bh_json_get(d, "nodes")->c.n, 3);
    bh_arena_fini(&a);
}

static void test_one_node_is_left(void)
{
    struct bh_arena a;
    struct bh_err err = {0};
    struct bh_json *e;

    bh_arena_init(&a, 0);
    e = parse(&a, AFTER);
    CU_ASSERT_EQUAL(bh_explain_only_node(e, "d", &err), 0);
    CU_ASSERT_EQUAL_FATAL(bh_json_get(e, "ranking")->c.n, 1);
    CU_ASSERT_EQUAL(bh_json_get_i64(bh_json_at(bh_json_get(e, "ranking"), 0), "rank", 0), 2);
    CU_ASSERT_PTR_NULL(bh_json_get(e, "rejected"));
    e = parse(&a, BEFORE);
    CU_ASSERT_EQUAL(bh_explain_only_node(e, "b", &err), 0);
    CU_ASSERT_EQUAL(bh_json_get(e, "rejected")->c.n, 1);
    CU_ASSERT_PTR_NULL(bh_json_get(e, "rejectedGroups"));
    e = parse(&a, BEFORE);
    CU_ASSERT_EQUAL(bh_explain_only_node(e, "z", &err), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "\"z\": the cluster has 3 nodes"));
    bh_arena_fini(&a);
}

static void test_documents_that_lack_everything_are_printed(void)
{
    static const char *const texts[] = {
        "{}", "{\"state\":7,\"queue\":[],\"notes\":{},\"scheduler\":\"x\"}",
        "{\"whatIf\":{},\"nodeNow\":{\"reasons\":7},\"condition\":{\"message\":\"m\"}}",
        "{\"notes\":[1,null],\"queue\":{\"plugins\":[3]},\"whatIf\":{\"changes\":[1]}}"};
    struct bh_arena a;
    struct bh_buf out = {0};

    bh_arena_init(&a, 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(texts); i++)
        for (int form = BH_FORM_TABLE; form <= BH_FORM_YAML; form++) {
            bh_buf_reset(&out);
            bh_explain_print(&out, parse(&a, texts[i]), (enum bh_form)form, i & 1, form & 1);
            CU_ASSERT(out.n > 0);
        }
    bh_buf_fini(&out);
    bh_arena_fini(&a);
}

/* Writes text to a file and reads it; the error's text, "" when it went well. */
static const char *read_text(const char *text)
{
    static struct bh_err err;
    char *path = bh_asprintf("%s/whatif.yaml", bh_test_tmpdir());
    const char *const files[] = {path};
    struct bh_whatif *w = NULL;

    err.msg[0] = '\0';
    CU_ASSERT_FATAL(bh_write_file(path, text, strlen(text), 0600) == 0);
    if (bh_whatif_read(&w, files, 1, &err) == 0)
        CU_ASSERT_PTR_NOT_NULL(w);
    bh_whatif_free(w);
    free(path);
    return err.msg;
}

#define OBJECT(kind, metadata) "apiVersion: v1\nkind: " kind "\nmetadata: " metadata "\n"

static bool says(const char *text, const char *what)
{
    const char *said = read_text(text);

    if (strstr(said, what))
        return true;
    printf("# said: %s\n", said);
    return false;
}

static void test_files_are_read_or_refused_with_place_and_field(void)
{
    CU_ASSERT_STRING_EQUAL(read_text(OBJECT("Node", "{name: node1}")), "");
    CU_ASSERT_STRING_EQUAL(
        read_text("{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"kind\":"
                  "\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\"}}]}"),
        "");
    CU_ASSERT(says("", "hold no object"));
    CU_ASSERT(says("apiVersion: v1\n", "kind: expected text"));
    CU_ASSERT(says(OBJECT("Secret", "{name: node1}"), "v1 Secret: not a kind"));
    CU_ASSERT(says(OBJECT("Pod", "{}"), "Pod \"\": metadata.name: expected text"));
    CU_ASSERT(
        says(OBJECT("Node", "{name: node1}") "---\n" OBJECT("Pod", "{name: [1]}"), "document 2"));
    CU_ASSERT(says("a: [\n", "line"));
    CU_ASSERT(says(OBJECT("Pod", "{name: p, name: q}"), "name"));
}

BH_TESTS("cli/explain",
         {"the difference names each node that changed",
          test_the_difference_names_each_node_that_changed},
         {"one node is left", test_one_node_is_left},
         {"documents that lack everything are printed",
          test_documents_that_lack_everything_are_printed},
         {"files are read or refused with place and field",
          test_files_are_read_or_refused_with_place_and_field})
