/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_selector.c - label and field selectors, names, kinds
 */
#include <errno.h>

#include "common/k8s/kinds.h"
#include "common/k8s/selector.h"
#include "common/k8s/syntax.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

static struct bh_json *parse_json(struct bh_arena *a, const char *text)
{
    struct bh_json *v = NULL;
    CU_ASSERT_EQUAL_FATAL(bh_json_parse(a, text, strlen(text), 0, &v, NULL), 0);
    return v;
}

static bool matches(const char *selector, const char *labels)
{
    struct bh_arena a;
    struct bh_selector *s = NULL;
    struct bh_err err = {""};
    bh_arena_init(&a, 0);
    if (bh_selector_parse(selector, &s, &err) != 0)
        printf("  %s: %s\n", selector, err.msg);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    bool ok = bh_selector_match_json(s, parse_json(&a, labels));
    bh_selector_free(s);
    bh_arena_fini(&a);
    return ok;
}

static void test_label_selectors(void)
{
    static const char l[] =
        "{\"a\":\"b\",\"n\":\"7\",\"e\":\"\",\"x.io/y\":\"z\",\"in\":\"notin\"}";
    CU_ASSERT(matches("", l));
    CU_ASSERT(matches("  ", l));
    CU_ASSERT(matches("a=b", l));
    CU_ASSERT(matches("a==b", l));
    CU_ASSERT(!matches("a=c", l));
    CU_ASSERT(matches("a!=c", l));
    CU_ASSERT(matches("zz!=c", l));
    CU_ASSERT(!matches("a!=b", l));
    CU_ASSERT(matches("a in (b,c)", l));
    CU_ASSERT(matches("a in ( c , b )", l));
    CU_ASSERT(!matches("zz in (b)", l));
    CU_ASSERT(matches("zz notin (b)", l));
    CU_ASSERT(matches("a notin (c)", l));
    CU_ASSERT(matches("a", l));
    CU_ASSERT(!matches("!a", l));
    CU_ASSERT(matches("!zz", l));
    CU_ASSERT(matches("a=b,n>6,n<8", l));
    CU_ASSERT(!matches("n>7", l));
    CU_ASSERT(!matches("a>1", l));
    CU_ASSERT(matches("x.io/y=z, a = b", l));
    CU_ASSERT(matches("e=", l));
    CU_ASSERT(matches("e=,a=b", l));
    CU_ASSERT(matches("e in ()", l));
    CU_ASSERT(matches("e in (,)", l));
    CU_ASSERT(matches("e in (q,)", l));
    CU_ASSERT(matches("a in (b,,c)", l));
    CU_ASSERT(matches("in=notin", l)); /* keywords are words where no operator can stand */
    CU_ASSERT(matches("in in (in,notin)", l));
    CU_ASSERT(matches("a=b,c notin (d),!k", l));
    CU_ASSERT(!matches("a", "{}"));
}

static void fails(const char *selector, const char *msg)
{
    struct bh_selector *s = NULL;
    struct bh_err err = {""};
    CU_ASSERT_EQUAL(bh_selector_parse(selector, &s, &err), -EINVAL);
    CU_ASSERT_PTR_NULL(s);
    if (strncmp(err.msg, msg, strlen(msg)) != 0)
        printf("  %s\n  got:  %s\n  want: %s\n", selector, err.msg, msg);
    CU_ASSERT_EQUAL(strncmp(err.msg, msg, strlen(msg)), 0);
}

static void test_label_selector_errors(void)
{
    fails("a,", "found '', expected: identifier after ','");
    fails(",a", "found ',', expected: !, identifier, or 'end of string'");
    fails("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    fails("a in b", "unable to parse requirement: found 'b' expected: '('");
    fails("a in (b", "unable to parse requirement: found '', expected: ',', ')' or identifier");
    fails("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'");
    fails("a=b c", "found 'c', expected: ',' or 'end of string'");
    fails("!a=b", "found '=', expected: ',' or 'end of string'");
    fails("!", "unable to parse requirement: found '', expected: identifier");
    fails("!!a", "unable to parse requirement: found '!', expected: identifier");
    fails("a=(", "unable to parse requirement: found '(', expected: identifier");
    fails("a//b=c",
          "unable to parse requirement: <nil>: Invalid value: \"a//b\": a valid label key must");
    fails("a/b/c=d",
          "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key must");
    fails("a=b?c",
          "unable to parse requirement: values[0][a]: Invalid value: \"b?c\": a valid label must");
    fails("a>x",
          "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, "
          "the value must be an integer");
    fails("a>", "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt'");
    fails("-a=b",
          "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of");
}

static bool object_matches(const char *selector, const char *labels, bool *ret_empty)
{
    struct bh_arena a;
    struct bh_selector *s = NULL;
    struct bh_err err = {""};
    bh_arena_init(&a, 0);
    int rc = bh_selector_from_json(selector ? parse_json(&a, selector) : NULL, &s, &err);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    bool ok = bh_selector_match_json(s, parse_json(&a, labels));
    *ret_empty = bh_selector_match_json(s, NULL); /* not even a label is asked for */
    bh_selector_free(s);
    bh_arena_fini(&a);
    return ok;
}

static void test_label_selector_objects(void)
{
    static const char l[] = "{\"a\":\"b\",\"c\":\"d\"}";
    bool empty;
    CU_ASSERT(!object_matches(NULL, l, &empty));
    CU_ASSERT(!empty);
    CU_ASSERT(!object_matches("null", l, &empty));
    CU_ASSERT(object_matches("{}", l, &empty));
    CU_ASSERT(empty);
    CU_ASSERT(object_matches("{\"matchLabels\":{},\"matchExpressions\":[]}", l, &empty));
    CU_ASSERT(empty);
    CU_ASSERT(object_matches("{\"matchLabels\":{\"a\":\"b\"}}", l, &empty));
    CU_ASSERT(!empty);
    CU_ASSERT(!object_matches("{\"matchLabels\":{\"a\":\"b\",\"c\":\"x\"}}", l, &empty));
    CU_ASSERT(object_matches(
        "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\","
        "\"b\"]},{\"key\":\"zz\",\"operator\":\"DoesNotExist\"},{\"key\":\"c\","
        "\"operator\":\"NotIn\",\"values\":[\"x\"]},{\"key\":\"c\",\"operator\":"
        "\"Exists\"}]}",
        l, &empty));
    static const struct {
        const char *text, *msg;
    } bad[] = {
        {"[]", "label selector: must be an object"},
        {"{\"matchLabels\":[]}", "matchLabels: must be an object"},
        {"{\"matchLabels\":{\"a\":1}}", "matchLabels.a: must be a string"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"1\"]}]}",
         "\"Gt\" is not a valid label selector operator"},
        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}",
         "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"},
        {"{\"matchLabels\":{\"-a\":\"b\"}}",
         "key: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', '_' "
         "or "
         "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
         "'my.name', "
         " or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
        {"{\"matchExpressions\":{}}", "matchExpressions: must be a list"},
        {"{\"matchExpressions\":[3]}", "\"\" is not a valid label selector operator"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_arena a;
        struct bh_selector *s = NULL;
        struct bh_err err = {""};
        bh_arena_init(&a, 0);
        CU_ASSERT_EQUAL(bh_selector_from_json(parse_json(&a, bad[i].text), &s, &err), -EINVAL);
        CU_ASSERT_STRING_EQUAL(err.msg, bad[i].msg);
        bh_arena_fini(&a);
    }
}

struct fields {
    const char *text;
    struct bh_buf seen;
};

static void visit(void *arg, const char *key, enum bh_req_op op, size_t n_values,
                  const char *const *values)
{
    CU_ASSERT_EQUAL(n_values, 1);
    bh_buf_addf(arg, "%s%s%s;", key, op == BH_REQ_IN ? "=" : "!=", values[0]);
}

static void field_is(const char *text, const char *want)
{
    struct bh_selector *s = NULL;
    struct bh_buf seen = {0};
    CU_ASSERT_EQUAL_FATAL(bh_field_selector_parse(text, &s, NULL), 0);
    bh_selector_each(s, visit, &seen);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&seen), want);
    bh_buf_fini(&seen);
    bh_selector_free(s);
}

static void test_field_selectors(void)
{
    field_is("", "");
    field_is("status.phase!=Succeeded,status.phase!=Failed",
             "status.phase!=Succeeded;status.phase!=Failed;");
    field_is("spec.nodeName=", "spec.nodeName=;");
    field_is("b==2,a=1,,", "a=1;b=2;");
    field_is("a=x\\,y\\=z\\\\", "a=x,y=z\\;");
    struct bh_selector *s = NULL;
    struct bh_err err;
    CU_ASSERT_EQUAL(bh_field_selector_parse("a", &s, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "invalid selector: 'a'; can't understand 'a'");
    CU_ASSERT_EQUAL(bh_field_selector_parse("a=b=c", &s, &err), -EINVAL);
    CU_ASSERT_EQUAL(bh_field_selector_parse("a=\\x", &s, &err), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "invalid field selector: invalid escape sequence: \\x");
    CU_ASSERT_EQUAL(bh_field_selector_parse("a=b\\", &s, &err), -EINVAL);
    CU_ASSERT_PTR_NULL(s);
}

static const char *get_phase(void *arg, const char *key)
{
    return strcmp(key, "status.phase") == 0 ? arg : "";
}

static void test_field_matching(void)
{
    struct bh_selector *s = NULL;
    CU_ASSERT_EQUAL_FATAL(
        bh_field_selector_parse("status.phase!=Succeeded,status.phase!=Failed,spec.nodeName=", &s,
                                NULL),
        0);
    CU_ASSERT(bh_selector_match(s, get_phase, (void *)"Pending"));
    CU_ASSERT(!bh_selector_match(s, get_phase, (void *)"Failed"));
    bh_selector_free(s);
}

static void test_names(void)
{
    char long_name[300];
    memset(long_name, 'a', sizeof(long_name));
    CU_ASSERT(bh_valid_label_key("a", 1) && bh_valid_label_key("a.b/C_d-e.f", 11));
    CU_ASSERT(bh_valid_label_key("kubernetes.io/hostname", 22));
    CU_ASSERT(!bh_valid_label_key("", 0) && !bh_valid_label_key("/a", 2) &&
              !bh_valid_label_key("a/", 2));
    CU_ASSERT(!bh_valid_label_key("A.b/c", 5) && !bh_valid_label_key("a/b/c", 5));
    CU_ASSERT(!bh_valid_label_key("a b", 3) && !bh_valid_label_key("-a", 2) &&
              !bh_valid_label_key("a-", 2));
    CU_ASSERT(bh_valid_label_key(long_name, 63) && !bh_valid_label_key(long_name, 64));
    CU_ASSERT(bh_valid_label_value("", 0) && bh_valid_label_value("A.b_c-9", 7));
    CU_ASSERT(bh_valid_label_value(long_name, 63) && !bh_valid_label_value(long_name, 64));
    CU_ASSERT(!bh_valid_label_value("a/b", 3) && !bh_valid_label_value("-", 1));
    CU_ASSERT(!bh_valid_label_value("\xc3\xa4", 2) && !bh_valid_label_value("a\0b", 3));
    CU_ASSERT(bh_valid_dns1123_label("a-b", 3) && !bh_valid_dns1123_label("a.b", 3));
    CU_ASSERT(!bh_valid_dns1123_label("", 0) && !bh_valid_dns1123_label("A", 1));
    CU_ASSERT(!bh_valid_dns1123_label("-a", 2) && !bh_valid_dns1123_label("a-", 2));
    CU_ASSERT(bh_valid_dns1123_label(long_name, 63) && !bh_valid_dns1123_label(long_name, 64));
    CU_ASSERT(bh_valid_dns1123_subdomain("a.b-c.d", 7) &&
              bh_valid_dns1123_subdomain(long_name, 253));
    CU_ASSERT(!bh_valid_dns1123_subdomain(long_name, 254) &&
              !bh_valid_dns1123_subdomain("a..b", 4));
    CU_ASSERT(!bh_valid_dns1123_subdomain(".a", 2) && !bh_valid_dns1123_subdomain("a.", 2));
    CU_ASSERT(!bh_valid_dns1123_subdomain("a-.b", 4) && !bh_valid_dns1123_subdomain("a.-b", 4));
}

static void test_integers(void)
{
    int64_t v = 0;
    CU_ASSERT(bh_parse_int64("-9223372036854775808", 20, &v) && v == INT64_MIN);
    CU_ASSERT(bh_parse_int64("9223372036854775807", 19, &v) && v == INT64_MAX);
    CU_ASSERT(bh_parse_int64("+0012", 5, &v) && v == 12);
    CU_ASSERT(!bh_parse_int64("9223372036854775808", 19, &v));
    CU_ASSERT(!bh_parse_int64("-9223372036854775809", 20, &v));
    CU_ASSERT(!bh_parse_int64("", 0, &v) && !bh_parse_int64("-", 1, &v) &&
              !bh_parse_int64("1_0", 3, &v));
    CU_ASSERT(!bh_parse_int64(" 1", 2, &v) && !bh_parse_int64("1 ", 2, &v) &&
              !bh_parse_int64("--1", 3, &v));
}

static void test_kinds(void)
{
    char path[256];
    for (size_t i = 0; i < BH_KIND_COUNT; i++) {
        const struct bh_kind_info *k = &bh_kinds[i];
        char version[64];
        CU_ASSERT_EQUAL(k->kind, (enum bh_kind)i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(k->desc);
        /* Two APIs have a PodGroup: one message each. */
        CU_ASSERT_STRING_EQUAL(k->desc->short_name, i == BH_KIND_COSCHEDULING_PODGROUP
                                                        ? "CoschedulingPodGroup"
                                                        : k->kind_name);
        CU_ASSERT_STRING_EQUAL(k->desc->fields[0].name, "metadata");
        snprintf(version, sizeof(version), "%s%s%s", k->group, *k->group ? "/" : "", k->version);
        CU_ASSERT_PTR_EQUAL(bh_kind_find(version, k->kind_name), k);
        ProtobufCMessage *m = bh_calloc(1, k->desc->sizeof_message);
        protobuf_c_message_init(k->desc, m);
        CU_ASSERT_PTR_NULL(bh_object_meta(m));
        free(m);
    }
    CU_ASSERT_PTR_NULL(bh_kind_find("v1", "ReplicaSet"));
    CU_ASSERT_PTR_NULL(bh_kind_find("apps/v1", "Pod"));
    CU_ASSERT_PTR_NULL(bh_kind_find("v2", "Pod"));
    bh_kind_path(&bh_kinds[BH_KIND_POD], NULL, path, sizeof(path));
    CU_ASSERT_STRING_EQUAL(path, "/api/v1/pods");
    bh_kind_path(&bh_kinds[BH_KIND_POD], "ns", path, sizeof(path));
    CU_ASSERT_STRING_EQUAL(path, "/api/v1/namespaces/ns/pods");
    bh_kind_path(&bh_kinds[BH_KIND_REPLICASET], NULL, path, sizeof(path));
    CU_ASSERT_STRING_EQUAL(path, "/apis/apps/v1/replicasets");
    bh_kind_path(&bh_kinds[BH_KIND_CSINODE], NULL, path, sizeof(path));
    CU_ASSERT_STRING_EQUAL(path, "/apis/storage.k8s.io/v1/csinodes");
    K8s__ObjectMeta meta = K8S__OBJECT_META__INIT;
    K8s__Pod pod = K8S__POD__INIT;
    pod.metadata = &meta;
    CU_ASSERT_PTR_EQUAL(bh_object_meta(&pod.base), &meta);
    CU_ASSERT_PTR_NULL(bh_object_meta(&meta.base));
}

BH_TESTS("common/k8s/selector", {"label selectors match", test_label_selectors},
         {"label selector errors read as upstream's", test_label_selector_errors},
         {"LabelSelector objects", test_label_selector_objects},
         {"field selectors parse", test_field_selectors},
         {"field selectors match", test_field_matching}, {"names, keys and values", test_names},
         {"integers of Gt and Lt", test_integers}, {"the table of kinds", test_kinds}, )
