/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/data/test_patch.c - JSON patch, merge patch, strategic merge patch
 *
 * JSON patch and merge patch: the examples of RFC 6902 and RFC 7386. Strategic merge: the expected
 * values are what kubectl 1.32 answers (patch --local).
 */
#include "common/data/patch.h"
#include "tests/unit/harness.h"

#include <errno.h>

static struct bh_arena arena;
static struct bh_err err;

static struct bh_json *json(const char *text)
{
    struct bh_json *v = NULL;
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(&arena, text, strlen(text), 0, &v, &err), 0);
    return v;
}

static const char *text_of(const struct bh_json *v)
{
    static struct bh_buf b;
    bh_buf_reset(&b);
    bh_json_write(&b, v);
    return bh_buf_str(&b);
}

/* Runs one patch; the inputs must stay as they are. */
enum lang { JSON, MERGE, STRATEGIC };
static int apply(enum lang lang, const char *kind, const char *doc, const char *patch,
                 struct bh_json **ret)
{
    struct bh_json *d = json(doc), *p = json(patch);
    int rc = lang == JSON    ? bh_patch_json(&arena, d, p, ret, &err)
             : lang == MERGE ? bh_patch_merge(&arena, d, p, ret, &err)
                             : bh_patch_strategic(&arena, kind, d, p, ret, &err);
    CU_ASSERT_TRUE(bh_json_equal(d, json(doc)));
    CU_ASSERT_TRUE(bh_json_equal(p, json(patch)));
    return rc;
}

static void expect(enum lang lang, const char *kind, const char *doc, const char *patch,
                   const char *want)
{
    struct bh_json *got = NULL;
    bh_arena_reset(&arena);
    int rc = apply(lang, kind, doc, patch, &got);
    CU_ASSERT_EQUAL(rc, 0);
    if (rc != 0) {
        printf("%s: %d %s\n", patch, rc, err.msg);
        return;
    }
    bool same = bh_json_equal(got, json(want));
    CU_ASSERT_TRUE(same);
    if (!same)
        printf("%s\n  gives %s\n  not   %s\n", patch, text_of(got), want);
}

static void refuse(enum lang lang, const char *kind, const char *doc, const char *patch, int want,
                   const char *message)
{
    struct bh_json *got = NULL;
    bh_arena_reset(&arena);
    err.msg[0] = 0;
    int rc = apply(lang, kind, doc, patch, &got);
    CU_ASSERT_EQUAL(rc, want);
    CU_ASSERT_PTR_NULL(got);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, message));
    if (rc != want || !strstr(err.msg, message))
        printf("%s: %d %s\n", patch, rc, err.msg);
}

/* ---- RFC 6902 -------------------------------------------------------------------------------- */

#define OK(doc, patch, want)        expect(JSON, NULL, doc, patch, want)
#define NO(doc, patch, rc, message) refuse(JSON, NULL, doc, patch, rc, message)

static void test_json_patch_examples(void)
{
    OK("{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
       "{\"baz\":\"qux\",\"foo\":\"bar\"}");
    OK("{\"foo\":[\"bar\",\"baz\"]}", "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
       "{\"foo\":[\"bar\",\"qux\",\"baz\"]}");
    OK("{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
       "{\"foo\":\"bar\"}");
    OK("{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
       "{\"foo\":[\"bar\",\"baz\"]}");
    OK("{\"baz\":\"qux\",\"foo\":\"bar\"}",
       "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]",
       "{\"baz\":\"boo\",\"foo\":\"bar\"}");
    OK("{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
       "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
       "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}");
    OK("{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
       "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
       "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}");
    OK("{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
       "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},{\"op\":\"test\",\"path\":\"/foo/"
       "1\","
       "\"value\":2.0}]",
       "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}");
    OK("{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
       "{\"foo\":\"bar\",\"child\":{\"grandchild\":{}}}");
    OK("{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\",\"xyz\":123}]",
       "{\"foo\":\"bar\",\"baz\":\"qux\"}");
    OK("{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
       "{\"/\":9,\"~1\":10}");
    OK("{\"foo\":[\"bar\"]}", "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]",
       "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}");
}

static void test_json_patch_corners(void)
{
    OK("{\"a\":1}", "[]", "{\"a\":1}");
    OK("{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[1]}]", "[1]");
    OK("{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{}}]", "{}");
    OK("{\"\":{\"\":1}}", "[{\"op\":\"replace\",\"path\":\"//\",\"value\":2}]", "{\"\":{\"\":2}}");
    OK("[1,2,3]", "[{\"op\":\"add\",\"path\":\"/0\",\"value\":0}]", "[0,1,2,3]");
    OK("[1,2,3]", "[{\"op\":\"add\",\"path\":\"/3\",\"value\":4}]", "[1,2,3,4]");
    OK("[1,2,3]", "[{\"op\":\"replace\",\"path\":\"/2\",\"value\":4}]", "[1,2,4]");
    OK("[1,2,3]", "[{\"op\":\"replace\",\"path\":\"/0\",\"value\":4}]", "[4,2,3]");
    OK("{\"a\":1,\"b\":2}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]",
       "{\"a\":null,\"b\":2}");
    OK("{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/c\"}]",
       "{\"a\":{\"b\":1,\"c\":{\"b\":1}}}");
    OK("{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c\"}]",
       "{\"a\":{\"b\":1},\"c\":{\"a\":{\"b\":1}}}");
    OK("{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1}");
    OK("{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/a\"}]", "{\"a\":1}");
}

static void test_json_patch_refusals(void)
{
    NO("{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]", -EBADMSG,
       "test failed");
    NO("{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b/c\",\"value\":1}]", -EBADMSG, "test failed");
    NO("{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]", -ENOENT,
       "doc is missing path: \"/baz/bat\"");
    NO("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", -ENOENT, "remove operation");
    NO("{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", -ENOENT,
       "replace operation");
    NO("{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", -ENOENT, "add operation");
    NO("[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":1}]", -ENOENT, "add operation");
    NO("[1]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", -ENOENT, "remove operation");
    NO("[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", -ENOENT, "remove operation");
    NO("[1]", "[{\"op\":\"remove\",\"path\":\"/99999999999999999999999\"}]", -ENOENT, "remove");
    NO("[1]", "[{\"op\":\"remove\",\"path\":\"/00\"}]", -EINVAL, "not an array index");
    NO("[1]", "[{\"op\":\"remove\",\"path\":\"/1x\"}]", -EINVAL, "not an array index");
    NO("[1]", "[{\"op\":\"remove\",\"path\":\"/\"}]", -EINVAL, "not an array index");
    NO("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"a\"}]", -EINVAL, "must begin with /");
    NO("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a~2\"}]", -EINVAL, "followed by 0 or 1");
    NO("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a~\"}]", -EINVAL, "followed by 0 or 1");
    NO("{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]", -EINVAL, "whole document");
    NO("{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", -EINVAL,
       "into itself");
    NO("{}", "[{\"op\":\"spam\",\"path\":\"/a\"}]", -EINVAL, "unexpected kind: spam");
    NO("{}", "[{\"path\":\"/a\"}]", -EINVAL, "without op");
    NO("{}", "[{\"op\":\"add\",\"value\":1}]", -EINVAL, "without path");
    NO("{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", -EINVAL, "without value");
    NO("{}", "[{\"op\":\"copy\",\"path\":\"/a\"}]", -EINVAL, "without from");
    NO("{}", "[1]", -EINVAL, "without op");
    NO("{}", "{\"op\":\"add\"}", -EINVAL, "must be an array");
}

static void test_json_patch_bombs(void)
{
    BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
    struct bh_json *got;
    bh_buf_addc(&b, '[');
    for (int i = 0; i < 40; i++)
        bh_buf_addf(&b, "%s{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/%d\"}", i ? "," : "", i);
    bh_buf_addc(&b, ']');
    struct bh_arena a;
    bh_arena_init(&a, 4 << 20);
    int rc = bh_patch_json(&a, json("{\"a\":{\"x\":\"y\"}}"), json(bh_buf_str(&b)), &got, &err);
    CU_ASSERT_EQUAL(rc, -E2BIG);
    bh_arena_fini(&a);
    /* Depth: each copy puts the document into its own deepest place. */
    bh_arena_init(&a, 0);
    struct bh_json *doc = json("{\"a\":{}}");
    const char *path = "/a";
    for (int i = 0; i < 10; i++) {
        const char *patch =
            bh_arena_printf(&arena, "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"%s/a\"}]", path);
        path = bh_arena_printf(&arena, "%s%s", path, path);
        rc = bh_patch_json(&a, doc, json(patch), &doc, &err);
        if (rc != 0)
            break;
    }
    CU_ASSERT_EQUAL(rc, -E2BIG);
    bh_arena_fini(&a);
    bh_buf_reset(&b);
    bh_buf_addc(&b, '[');
    for (int i = 0; i < 10001; i++)
        bh_buf_addf(&b, "%s{\"op\":\"test\",\"path\":\"/a\",\"value\":1}", i ? "," : "");
    bh_buf_addc(&b, ']');
    refuse(JSON, NULL, "{\"a\":1}", bh_buf_str(&b), -E2BIG, "maximum operations");
}

/* ---- RFC 7386 -------------------------------------------------------------------------------- */

static void test_merge_patch(void)
{
    static const char *const cases[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++)
        expect(MERGE, NULL, cases[i][0], cases[i][1], cases[i][2]);
    struct bh_arena a;
    struct bh_json *got;
    bh_arena_init(&a, 256);
    int rc = bh_patch_merge(&a, json("{\"a\":[1,2,3,4,5,6,7,8]}"), json("{}"), &got, &err);
    CU_ASSERT_EQUAL(rc, -E2BIG);
    bh_arena_fini(&a);
}

static void test_diff(void)
{
    static const char *const cases[][3] = {
        {"{\"a\":1,\"b\":{\"c\":1,\"d\":2},\"e\":[1]}",
         "{\"a\":1,\"b\":{\"c\":2},\"e\":[1,2],\"f\":{}}",
         "{\"b\":{\"d\":null,\"c\":2},\"e\":[1,2],\"f\":{}}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1.0}}", "{}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{}}", "{\"a\":{\"b\":null}}"},
        {"{\"a\":1}", "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}"},
        {"[1]", "[2]", "[2]"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        bh_arena_reset(&arena);
        struct bh_json *from = json(cases[i][0]), *to = json(cases[i][1]), *back = NULL;
        struct bh_json *d = bh_patch_diff(&arena, from, to);
        CU_ASSERT_TRUE(bh_json_equal(d, json(cases[i][2])));
        CU_ASSERT_EQUAL(bh_patch_merge(&arena, from, d, &back, &err), 0);
        CU_ASSERT_TRUE(bh_json_equal(back, to));
    }
}

/* ---- strategic merge ------------------------------------------------------------------------- */

#define DEPLOY(spec) "{\"spec\":{\"template\":{\"spec\":" spec "}}}"
#define SM(doc, patch, want)                                                                       \
    expect(STRATEGIC, "Deployment", DEPLOY(doc), DEPLOY(patch), DEPLOY(want))
#define SM_NO(doc, patch, message)                                                                 \
    refuse(STRATEGIC, "Deployment", DEPLOY(doc), DEPLOY(patch), -EINVAL, message)
#define ABC "[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"2\"},{\"name\":\"c\"}]"

static void test_lists_merge_by_key(void)
{
    SM("{\"containers\":" ABC "}", "{\"containers\":[{\"name\":\"b\",\"image\":\"9\"}]}",
       "{\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"9\"},{"
       "\"name\":"
       "\"c\"}]}");
    /* Without a common neighbour the new element stands first, as upstream has it. */
    SM("{\"containers\":" ABC "}", "{\"containers\":[{\"name\":\"new\"}]}",
       "{\"containers\":[{\"name\":\"new\"},{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\","
       "\"image\":"
       "\"2\"},{\"name\":\"c\"}]}");
    SM("{\"containers\":" ABC "}", "{\"containers\":[{\"name\":\"c\"},{\"name\":\"a\"}]}",
       "{\"containers\":[{\"name\":\"b\",\"image\":\"2\"},{\"name\":\"c\"},{\"name\":\"a\","
       "\"image\":"
       "\"1\"}]}");
    SM("{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"X\",\"value\":\"1\"}],\"ports\":[{"
       "\"containerPort\":80,\"name\":\"w\"}],\"volumeMounts\":[{\"mountPath\":\"/"
       "x\",\"name\":\"v\"}]}]}",
       "{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"Y\",\"value\":\"2\"}],\"ports\":[{"
       "\"containerPort\":80,\"protocol\":\"UDP\"}],\"volumeMounts\":[{\"mountPath\":\"/"
       "x\",\"readOnly\":"
       "true}]}]}",
       "{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":\"Y\",\"value\":\"2\"},{\"name\":\"X\","
       "\"value\":\"1\"}],\"ports\":[{\"containerPort\":80,\"name\":\"w\",\"protocol\":\"UDP\"}],"
       "\"volumeMounts\":[{\"mountPath\":\"/x\",\"name\":\"v\",\"readOnly\":true}]}]}");
    SM_NO("{\"containers\":" ABC "}", "{\"containers\":[{\"image\":\"9\"}]}",
          "does not contain declared merge key: name");
}

static void test_atomic_lists_are_replaced(void)
{
    SM("{\"tolerations\":[{\"key\":\"a\"}],\"containers\":[{\"name\":\"a\",\"args\":[\"1\",\"2\"]}]"
       "}",
       "{\"tolerations\":[{\"key\":\"b\"}],\"containers\":[{\"name\":\"a\",\"args\":[\"3\"]}]}",
       "{\"tolerations\":[{\"key\":\"b\"}],\"containers\":[{\"name\":\"a\",\"args\":[\"3\"]}]}");
    expect(STRATEGIC, "Node", "{\"spec\":{\"taints\":[{\"key\":\"a\"}]}}",
           "{\"spec\":{\"taints\":[{\"key\":\"b\"}],\"unschedulable\":true}}",
           "{\"spec\":{\"taints\":[{\"key\":\"b\"}],\"unschedulable\":true}}");
    expect(STRATEGIC, "Node", "{\"spec\":{\"taints\":[{\"key\":\"a\"}]}}",
           "{\"spec\":{\"taints\":null}}", "{\"spec\":{}}");
}

static void test_null_deletes(void)
{
    SM("{\"nodeSelector\":{\"a\":\"1\",\"b\":\"2\"},\"containers\":[{\"name\":\"a\",\"image\":"
       "\"1\"}]}",
       "{\"nodeSelector\":{\"a\":null,\"z\":null},\"containers\":[{\"name\":\"a\",\"image\":null}],"
       "\"affinity\":{\"nodeAffinity\":null},\"hostNetwork\":null}",
       "{\"nodeSelector\":{\"b\":\"2\"},\"containers\":[{\"name\":\"a\"}],\"affinity\":{}}");
}

static void test_patch_directives(void)
{
    SM("{\"containers\":" ABC "}",
       "{\"containers\":[{\"$patch\":\"delete\",\"name\":\"b\"},{\"$patch\":\"delete\",\"name\":"
       "\"z\"}]}",
       "{\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"c\"}]}");
    SM("{\"containers\":" ABC "}", "{\"containers\":[{\"$patch\":\"replace\"},{\"name\":\"z\"}]}",
       "{\"containers\":[{\"name\":\"z\"}]}");
    SM("{\"containers\":" ABC "}", "{\"containers\":[{\"$patch\":\"replace\"}]}",
       "{\"containers\":[]}");
    SM("{\"nodeSelector\":{\"a\":\"1\"}}",
       "{\"nodeSelector\":{\"$patch\":\"replace\",\"b\":\"2\"}}",
       "{\"nodeSelector\":{\"b\":\"2\"}}");
    SM("{\"nodeSelector\":{\"a\":\"1\"}}", "{\"nodeSelector\":{\"$patch\":\"delete\"}}",
       "{\"nodeSelector\":{}}");
    /* On the server's side there is nothing to replace or delete: the map does not appear. */
    SM("{}", "{\"nodeSelector\":{\"$patch\":\"replace\",\"b\":\"2\"}}", "{}");
    SM("{}", "{\"initContainers\":[{\"$patch\":\"delete\",\"name\":\"x\"},{\"name\":\"y\"}]}",
       "{\"initContainers\":[{\"name\":\"y\"}]}");
    SM_NO("{\"containers\":" ABC "}", "{\"containers\":[{\"$patch\":\"merge\",\"name\":\"a\"}]}",
          "merging lists cannot yet be specified");
    SM_NO("{\"containers\":" ABC "}", "{\"containers\":[{\"$patch\":\"spam\",\"name\":\"a\"}]}",
          "unknown patch type");
    SM_NO("{\"containers\":" ABC "}", "{\"containers\":[{\"$patch\":\"delete\"}]}",
          "does not contain declared merge key");
    SM_NO("{\"nodeSelector\":{\"a\":\"1\"}}", "{\"nodeSelector\":{\"$patch\":\"merge\"}}",
          "unknown patch type");
}

static void test_element_order(void)
{
    SM("{\"containers\":" ABC "}",
       "{\"$setElementOrder/containers\":[{\"name\":\"c\"},{\"name\":\"a\"}]}",
       "{\"containers\":[{\"name\":\"b\",\"image\":\"2\"},{\"name\":\"c\"},{\"name\":\"a\","
       "\"image\":"
       "\"1\"}]}");
    SM("{\"containers\":" ABC "}",
       "{\"$setElementOrder/containers\":[{\"name\":\"a\"},{\"name\":\"n\"},{\"name\":\"c\"}],"
       "\"containers\":[{\"name\":\"n\",\"image\":\"7\"}]}",
       "{\"containers\":[{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"n\",\"image\":\"7\"},{"
       "\"name\":\"b\","
       "\"image\":\"2\"},{\"name\":\"c\"}]}");
    /* A deleted element's slot may pass its place on to a new one (upstream edits in place). */
    SM("{\"containers\":[{\"name\":\"c\"},{\"name\":\"a\"},{\"name\":\"b\"}]}",
       "{\"$setElementOrder/containers\":[{\"name\":\"e\"},{\"name\":\"a\"},{\"name\":\"f\"}],"
       "\"containers\":[{\"name\":\"e\"},{\"name\":\"b\",\"$patch\":\"delete\"},{\"name\":\"f\"}]}",
       "{\"containers\":[{\"name\":\"c\"},{\"name\":\"e\"},{\"name\":\"a\"},{\"name\":\"f\"}]}");
    SM("{}",
       "{\"$setElementOrder/containers\":[{\"name\":\"b\"},{\"name\":\"a\"}],\"containers\":[{"
       "\"name\":\"b\"},{\"name\":\"a\",\"$setElementOrder/env\":[]}]}",
       "{\"containers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}");
    SM("{}", "{\"$setElementOrder/containers\":[{\"name\":\"b\"}]}", "{}");
    SM_NO("{\"containers\":" ABC "}",
          "{\"$setElementOrder/containers\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"containers\":[{"
          "\"name\":\"b\"},{\"name\":\"a\"}]}",
          "does not match its $setElementOrder list");
    SM_NO("{\"containers\":" ABC "}", "{\"$setElementOrder/containers\":1}", "must be lists");
}

static void test_primitive_lists(void)
{
    static const char doc[] = "{\"metadata\":{\"finalizers\":[\"a\",\"b\",\"c\"]}}";
    expect(STRATEGIC, "Pod", doc, "{\"metadata\":{\"finalizers\":[\"c\",\"d\"]}}",
           "{\"metadata\":{\"finalizers\":[\"a\",\"b\",\"c\",\"d\"]}}");
    expect(STRATEGIC, "Pod", doc,
           "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"b\",\"z\"]}}",
           "{\"metadata\":{\"finalizers\":[\"a\",\"c\"]}}");
    expect(STRATEGIC, "Pod", doc,
           "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"],\"$setElementOrder/"
           "finalizers\":[\"d\",\"b\"],\"finalizers\":[\"d\"]}}",
           "{\"metadata\":{\"finalizers\":[\"d\",\"b\",\"c\"]}}");
    expect(STRATEGIC, "Pod", "{\"metadata\":{}}",
           "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"]}}", "{\"metadata\":{}}");
    refuse(STRATEGIC, "Pod", doc, "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":1}}",
           -EINVAL, "must be a list");
}

static void test_retain_keys(void)
{
    expect(
        STRATEGIC, "Deployment",
        "{\"spec\":{\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxSurge\":1}}}}",
        "{\"spec\":{\"strategy\":{\"$retainKeys\":[\"type\"],\"type\":\"Recreate\"}}}",
        "{\"spec\":{\"strategy\":{\"type\":\"Recreate\"}}}");
    SM("{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}},{\"name\":\"w\"}]}",
       "{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":[\"name\",\"hostPath\"],\"hostPath\":{"
       "\"path\":"
       "\"/x\"}}]}",
       "{\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/x\"}},{\"name\":\"w\"}]}");
    SM("{}", "{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":[\"name\"]}]}",
       "{\"volumes\":[{\"name\":\"v\"}]}");
    SM_NO("{\"volumes\":[{\"name\":\"v\"}]}",
          "{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":[\"name\"],\"emptyDir\":{}}]}",
          "retainKeys");
    SM_NO("{\"volumes\":[{\"name\":\"v\"}]}", "{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":1}]}",
          "retainKeys");
}

static void test_strategic_limits(void)
{
    struct bh_json *got;
    refuse(STRATEGIC, "Widget", "{}", "{}", -ENOTSUP, "not supported for Widget");
    refuse(STRATEGIC, NULL, "{}", "{}", -ENOTSUP, "not supported");
    refuse(STRATEGIC, "Pod", "{}", "[]", -EINVAL, "must be an object");
    int rc = -E2BIG;
    for (size_t limit = 64; rc != 0 && limit < 100000; limit += 64) {
        struct bh_arena a;
        bh_arena_init(&a, limit);
        bh_arena_reset(&arena);
        rc = bh_patch_strategic(&a, "Pod", json("{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}"),
                                json("{\"metadata\":{\"$setElementOrder/finalizers\":[\"c\",\"b\"],"
                                     "\"finalizers\":[\"c\"]}}"),
                                &got, &err);
        CU_ASSERT(rc == 0 || rc == -E2BIG);
        bh_arena_fini(&a);
    }
    CU_ASSERT_EQUAL(rc, 0);
}

static void test_merge_key_table(void)
{
    static const char *const cases[][3] = {
        {"Pod", "spec.containers", "name"},
        {"Pod", "spec.containers.ports", "containerPort"},
        {"Pod", "spec.ephemeralContainers.env", "name"},
        {"Pod", "spec.containers.args", ""},
        {"Pod", "spec.topologySpreadConstraints", "topologyKey"},
        {"Pod", "spec.tolerations", ""},
        {"Pod", "status.conditions", "type"},
        {"Pod", "status.containerStatuses", ""},
        {"Pod", "metadata.ownerReferences", "uid"},
        {"CronJob", "spec.jobTemplate.spec.template.spec.volumes", "name"},
        {"StatefulSet", "spec.template.spec.initContainers.volumeMounts", "mountPath"},
        {"StatefulSet", "spec.template.metadata.finalizers", "-"},
        {"StatefulSet", "spec.volumeClaimTemplates", ""},
        {"PodTemplate", "template.spec.hostAliases", "ip"},
        {"Deployment", "spec.containers", ""},
        {"Service", "spec.ports", "port"},
        {"ServiceAccount", "secrets", "name"},
        {"Node", "status.addresses", "type"},
        {"Node", "spec.podCIDRs", "-"},
        {"Widget", "metadata.finalizers", "-"},
        {"Widget", "spec.containers", ""},
        {"CSINode", "spec.drivers", "name"},
        {"APIService", "status.conditions", "type"},
        {"VolumeAttributesClass", "metadata.finalizers", "-"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        const char *got = bh_patch_merge_key(cases[i][0], cases[i][1]);
        CU_ASSERT_STRING_EQUAL(got, cases[i][2]);
        if (strcmp(got, cases[i][2]) != 0)
            printf("%s %s: %s\n", cases[i][0], cases[i][1], got);
    }
    CU_ASSERT_STRING_EQUAL(bh_patch_merge_key(NULL, "spec"), "");
    CU_ASSERT_STRING_EQUAL(bh_patch_merge_key("Pod", ""), "");
}

BH_TESTS("common/data/patch", {"JSON patch does the RFC's examples", test_json_patch_examples},
         {"JSON patch at roots, ends and empty names", test_json_patch_corners},
         {"JSON patch says why it refuses", test_json_patch_refusals},
         {"JSON patch bombs end with E2BIG", test_json_patch_bombs},
         {"merge patch does the RFC's examples", test_merge_patch},
         {"a diff applied gives the target", test_diff},
         {"lists with a merge key merge element by element", test_lists_merge_by_key},
         {"atomic lists are replaced", test_atomic_lists_are_replaced},
         {"null deletes and leaves no trace", test_null_deletes},
         {"$patch deletes, replaces and refuses the rest", test_patch_directives},
         {"$setElementOrder orders and weaves the server's elements in", test_element_order},
         {"primitive lists merge as sets", test_primitive_lists},
         {"$retainKeys clears what is not named", test_retain_keys},
         {"strategic merge knows its limits", test_strategic_limits},
         {"the table knows keys and atomic lists", test_merge_key_table})
