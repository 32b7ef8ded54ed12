/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/data/test_apply.c - field ownership: server-side apply and ordinary writes
 */
#include "common/data/apply.h"
#include "tests/unit/harness.h"

#include <errno.h>

static struct bh_arena arena;
static struct bh_err err;

static struct bh_json *json(const char *text)
{
    struct bh_json *v = NULL;
    int rc = bh_json_parse(&arena, text, strlen(text), 0, &v, &err);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    return v;
}

static const char *text_of(const struct bh_json *v)
{
    static struct bh_buf b;
    bh_buf_reset(&b);
    if (v)
        bh_json_write(&b, v);
    return bh_buf_str(&b);
}

static struct bh_apply_op op_of(const char *manager, const char *time)
{
    return (struct bh_apply_op){
        .kind = "Deployment", .api_version = "apps/v1", .manager = manager, .time = time};
}

/* ---- one object with a history --------------------------------------------------------------- */

static struct bh_json *live, *conflicts;

static void begin(void)
{
    bh_arena_reset(&arena);
    live = conflicts = NULL;
}

static int apply_op(struct bh_apply_op op, const char *config)
{
    struct bh_json *obj = NULL, *c = json(config), *before = bh_json_clone(&arena, live);
    conflicts = NULL;
    err.msg[0] = 0;
    int rc = bh_apply_ssa(&arena, &op, live, c, &obj, &conflicts, &err);
    CU_ASSERT_TRUE(bh_json_equal(c, json(config)));
    CU_ASSERT_TRUE(bh_json_equal(live, before));
    CU_ASSERT((rc == 0) == (obj != NULL));
    CU_ASSERT((rc == -EBUSY) == (conflicts != NULL));
    if (rc == 0)
        live = obj;
    return rc;
}

static int apply(const char *manager, const char *config)
{
    return apply_op(op_of(manager, "2026-01-01T00:00:01Z"), config);
}

static int force(const char *manager, const char *config)
{
    struct bh_apply_op op = op_of(manager, "2026-01-01T00:00:02Z");
    op.force = true;
    return apply_op(op, config);
}

static int update_op(struct bh_apply_op op, const char *object)
{
    struct bh_json *obj = json(object);
    int rc = bh_apply_track_update(&arena, &op, live, obj, &err);
    if (rc == 0)
        live = obj;
    return rc;
}

static int update(const char *manager, const char *object)
{
    return update_op(op_of(manager, "2026-01-01T00:00:03Z"), object);
}

/* The object without its record. */
static bool is(const char *want)
{
    struct bh_json *v = bh_json_clone(&arena, live);
    bh_json_unset(bh_json_get(v, "metadata"), "managedFields");
    bool same = strcmp(text_of(v), text_of(json(want))) == 0 || bh_json_equal(v, json(want));
    if (!same)
        printf("got  %s\n", text_of(v));
    return same;
}

/* Fields of a manager's entry as JSON text; "" when it has none. */
static const char *fields_of(const char *manager, const char *operation)
{
    struct bh_json *list = bh_json_path(live, "metadata.managedFields");
    bh_json_each(e, list) {
        if (bh_streq(bh_json_get_str(e, "manager"), manager) &&
            bh_streq(bh_json_get_str(e, "operation"), operation))
            return text_of(bh_json_get(e, "fieldsV1"));
    }
    return "";
}

static size_t entries(void)
{
    struct bh_json *list = bh_json_path(live, "metadata.managedFields");
    return list ? list->c.n : 0;
}

#define META        "\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"x\"}"
#define REPLICAS(n) "{" META ",\"spec\":{\"replicas\":" #n "}}"
#define PODSPEC(s)  "{" META ",\"spec\":{\"template\":{\"spec\":" s "}}}"

/* ---- apply ----------------------------------------------------------------------------------- */

static void test_create_by_apply(void)
{
    begin();
    CU_ASSERT_EQUAL(
        apply("me",
              "{" META ",\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
              "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{"
              "\"name\":\"c\",\"image\":\"i\",\"args\":[\"x\"],\"ports\":[{\"containerPort\":80}],"
              "\"resources\":{}}]}}}}"),
        0);
    CU_ASSERT_EQUAL(entries(), 1);
    CU_ASSERT_STRING_EQUAL(
        text_of(bh_json_path(live, "metadata.managedFields")),
        "[{\"manager\":\"me\",\"operation\":\"Apply\",\"apiVersion\":\"apps/"
        "v1\",\"time\":\"2026-01-"
        "01T00:00:01Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{},"
        "\"f:selector\":{},\"f:template\":{\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},\"f:spec\":{"
        "\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:args\":{},\"f:image\":{},"
        "\"f:name\":{},\"f:ports\":{\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{"
        "\".\":{},\"f:containerPort\":{}}},\"f:resources\":{}}}}}}}}]");
}

static void test_apply_again_changes_nothing(void)
{
    begin();
    CU_ASSERT_EQUAL(apply_op(op_of("me", "2026-01-01T00:00:01Z"), REPLICAS(3)), 0);
    struct bh_json *first = live;
    CU_ASSERT_EQUAL(apply_op(op_of("me", "2026-01-01T00:00:09Z"), REPLICAS(3)), 0);
    CU_ASSERT_TRUE(bh_json_equal(first, live));
    CU_ASSERT_EQUAL(apply_op(op_of("me", "2026-01-01T00:00:09Z"), REPLICAS(4)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text_of(live), "00:00:09Z"));
    CU_ASSERT_EQUAL(entries(), 1);
}

static void test_one_conflict(void)
{
    begin();
    CU_ASSERT_EQUAL(update("kubectl-edit", REPLICAS(3)), 0);
    CU_ASSERT_EQUAL(apply("me", REPLICAS(5)), -EBUSY);
    static const char want[] = "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using "
                               "apps/v1: .spec.replicas";
    CU_ASSERT_STRING_EQUAL(err.msg, want);
    CU_ASSERT_STRING_EQUAL(bh_json_get_str(conflicts, "message"), want);
    CU_ASSERT_STRING_EQUAL(text_of(bh_json_get(conflicts, "causes")),
                           "[{\"type\":\"FieldManagerConflict\",\"message\":\"conflict with "
                           "\\\"kubectl-edit\\\" using apps/v1\",\"field\":\".spec.replicas\"}]");
    CU_ASSERT_EQUAL(force("me", REPLICAS(5)), 0);
    CU_ASSERT_TRUE(is(REPLICAS(5)));
    CU_ASSERT_STRING_EQUAL(fields_of("kubectl-edit", "Update"), "");
    CU_ASSERT_STRING_EQUAL(fields_of("me", "Apply"), "{\"f:spec\":{\"f:replicas\":{}}}");
}

static void test_many_conflicts(void)
{
    begin();
    CU_ASSERT_EQUAL(
        apply("a", PODSPEC("{\"containers\":[{\"name\":\"c\",\"image\":\"1\",\"ports\":[{"
                           "\"containerPort\":80,\"name\":\"w\"}]}]}")),
        0);
    CU_ASSERT_EQUAL(apply("b", PODSPEC("{\"nodeSelector\":{\"x\":\"1\"}}")), 0);
    CU_ASSERT_EQUAL(
        apply("me", PODSPEC("{\"nodeSelector\":{\"x\":\"2\"},\"containers\":[{\"name\":\"c\","
                            "\"image\":\"2\",\"ports\":[{\"containerPort\":80,\"name\":\"v\"}]"
                            "}]}")),
        -EBUSY);
    CU_ASSERT_STRING_EQUAL(
        bh_json_get_str(conflicts, "message"),
        "Apply failed with 3 conflicts: conflicts with \"a\":\n"
        "- .spec.template.spec.containers[name=\"c\"].image\n"
        "- "
        ".spec.template.spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"].name\n"
        "conflicts with \"b\":\n"
        "- .spec.template.spec.nodeSelector");
}

static void test_same_value_is_shared(void)
{
    begin();
    CU_ASSERT_EQUAL(apply("a", REPLICAS(3)), 0);
    CU_ASSERT_EQUAL(apply("b", REPLICAS(3)), 0);
    CU_ASSERT_EQUAL(entries(), 2);
    /* One of two owners lets go: the field stays with the other. */
    CU_ASSERT_EQUAL(apply("a", "{" META "}"), 0);
    CU_ASSERT_TRUE(is(REPLICAS(3)));
    CU_ASSERT_EQUAL(entries(), 1);
    CU_ASSERT_EQUAL(apply("b", REPLICAS(4)), 0);
    CU_ASSERT_EQUAL(apply("b", "{" META "}"), 0);
    CU_ASSERT_TRUE(is("{" META "}"));
    CU_ASSERT_EQUAL(entries(), 0);
}

static void test_no_longer_applied_is_removed(void)
{
    begin();
    CU_ASSERT_EQUAL(apply("me",
                          "{" META ",\"spec\":{\"replicas\":1,\"strategy\":{\"type\":\"Recreate\"},"
                          "\"template\":{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}},"
                          "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"1\"},{\"name\":"
                          "\"d\",\"image\":\"2\",\"env\":[{\"name\":\"E\",\"value\":\"1\"}]}]}}}}"),
                    0);
    /* The server fills in defaults that nobody owns. */
    struct bh_json *spec = bh_json_path(live, "spec.template.spec");
    bh_json_set_str(&arena, spec, "dnsPolicy", "ClusterFirst");
    bh_json_each(c, bh_json_get(spec, "containers"))
        bh_json_set_str(&arena, c, "terminationMessagePath", "/dev/termination-log");
    bh_json_set_i64(&arena, bh_json_path(live, "spec.strategy"), "x", 1);
    CU_ASSERT_EQUAL(apply("me", "{" META
                                ",\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"b\":\"2\"}},"
                                "\"spec\":{\"containers\":[{\"name\":\"c\"}]}}}}"),
                    0);
    /* The element goes with its defaults, so does the struct; other defaults stay. */
    CU_ASSERT_TRUE(
        is("{" META ",\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"b\":\"2\"}},\"spec\":{"
           "\"containers\":[{\"name\":\"c\",\"terminationMessagePath\":\"/dev/termination-log\""
           "}],\"dnsPolicy\":\"ClusterFirst\"}}}}"));
}

static void test_others_fields_survive_removal(void)
{
    begin();
    CU_ASSERT_EQUAL(
        apply("a", PODSPEC("{\"containers\":[{\"name\":\"c\",\"image\":\"1\"}],\"volumes\":[{"
                           "\"name\":\"v\",\"emptyDir\":{}}]}")),
        0);
    CU_ASSERT_EQUAL(apply("b", PODSPEC("{\"containers\":[{\"name\":\"c\",\"tty\":true}]}")), 0);
    CU_ASSERT_EQUAL(apply("a", PODSPEC("{\"hostNetwork\":true}")), 0);
    CU_ASSERT_TRUE(
        is(PODSPEC("{\"containers\":[{\"name\":\"c\",\"tty\":true}],\"hostNetwork\":true}")));
}

static void test_order_of_keyed_lists(void)
{
    begin();
    CU_ASSERT_EQUAL(
        apply("a", PODSPEC("{\"containers\":[{\"name\":\"a\"},{\"name\":\"x\"},{\"name\":\"b\"},"
                           "{\"name\":\"y\"}]}")),
        0);
    CU_ASSERT_EQUAL(apply("b", PODSPEC("{\"containers\":[{\"name\":\"b\"},{\"name\":\"a\"}]}")), 0);
    CU_ASSERT_TRUE(
        is(PODSPEC("{\"containers\":[{\"name\":\"x\"},{\"name\":\"b\"},{\"name\":\"y\"},{"
                   "\"name\":\"a\"}]}")));
    CU_ASSERT_EQUAL(
        apply("c", PODSPEC("{\"containers\":[{\"name\":\"n\"},{\"name\":\"b\"},{\"name\":\"m\"}]"
                           "}")),
        0);
    CU_ASSERT_TRUE(
        is(PODSPEC("{\"containers\":[{\"name\":\"x\"},{\"name\":\"n\"},{\"name\":\"b\"},{"
                   "\"name\":\"y\"},{\"name\":\"a\"},{\"name\":\"m\"}]}")));
}

static void test_defaulted_list_keys(void)
{
    begin();
    CU_ASSERT_EQUAL(
        apply("a", PODSPEC("{\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":80,"
                           "\"protocol\":\"TCP\"},{\"containerPort\":80,\"protocol\":\"UDP\"}]}]"
                           "}")),
        0);
    CU_ASSERT_EQUAL(
        apply("b", PODSPEC("{\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":80,"
                           "\"name\":\"w\"}]}]}")),
        0);
    CU_ASSERT_TRUE(
        is(PODSPEC("{\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":80,"
                   "\"protocol\":\"TCP\",\"name\":\"w\"},{\"containerPort\":80,\"protocol\":"
                   "\"UDP\"}]}]}")));
}

static void test_malformed_configurations(void)
{
    begin();
    CU_ASSERT_EQUAL(apply("a", PODSPEC("{\"containers\":[{\"name\":\"c\"},{\"name\":\"c\"}]}")),
                    -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, ".spec.template.spec.containers: duplicate entries"));
    CU_ASSERT_EQUAL(apply("a", PODSPEC("{\"containers\":[{\"image\":\"c\"}]}")), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, "omits key field \"name\""));
    CU_ASSERT_EQUAL(apply("a", "{\"metadata\":{\"managedFields\":[]}}"), -EINVAL);
    CU_ASSERT_STRING_EQUAL(err.msg, "metadata.managedFields must be nil");
    CU_ASSERT_EQUAL(apply("a", "[]"), -EINVAL);
}

static void test_sets_and_atomics(void)
{
    begin();
#define WITH(fin, tol)                                                                             \
    "{\"metadata\":{\"finalizers\":" fin "},\"spec\":{\"template\":{\"spec\":{" tol "}}}}"
    CU_ASSERT_EQUAL(apply("a", WITH("[\"f1\",\"f2\"]", "\"tolerations\":[{\"key\":\"k\"}]")), 0);
    CU_ASSERT_EQUAL(apply("b", WITH("[\"f3\"]", "\"hostPID\":true")), 0);
    CU_ASSERT_TRUE(
        is(WITH("[\"f1\",\"f2\",\"f3\"]", "\"tolerations\":[{\"key\":\"k\"}],\"hostPID\":true")));
    CU_ASSERT_STRING_EQUAL(
        fields_of("a", "Apply"),
        "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"f1\\\"\":{},\"v:\\\"f2\\\"\":{}}},"
        "\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:tolerations\":{}}}}}");
    CU_ASSERT_EQUAL(apply("b", WITH("[]", "\"tolerations\":[]")), -EBUSY);
    CU_ASSERT_EQUAL(apply("a", WITH("[\"f2\"]", "\"tolerations\":[{\"key\":\"z\"}]")), 0);
    CU_ASSERT_TRUE(
        is(WITH("[\"f2\",\"f3\"]", "\"tolerations\":[{\"key\":\"z\"}],\"hostPID\":true")));
    CU_ASSERT_EQUAL(apply("a", "{\"metadata\":{}}"), 0);
    CU_ASSERT_TRUE(is(WITH("[\"f3\"]", "\"hostPID\":true")));
#undef WITH
}

static void test_before_first_apply(void)
{
    begin();
    live = json(REPLICAS(3));
    CU_ASSERT_EQUAL(apply("me", REPLICAS(4)), -EBUSY);
    CU_ASSERT_STRING_EQUAL(err.msg, "Apply failed with 1 conflict: conflict with "
                                    "\"before-first-apply\" using apps/v1: .spec.replicas");
    CU_ASSERT_EQUAL(apply("me", REPLICAS(3)), 0);
    CU_ASSERT_STRING_EQUAL(fields_of("before-first-apply", "Update"),
                           "{\"f:spec\":{\"f:replicas\":{}}}");
    CU_ASSERT_STRING_EQUAL(fields_of("me", "Apply"), "{\"f:spec\":{\"f:replicas\":{}}}");
}

static void test_custom_resources_have_atomic_lists(void)
{
    begin();
    struct bh_apply_op op = op_of("a", "t");
    op.kind = "Widget";
    CU_ASSERT_EQUAL(
        apply_op(op, "{\"spec\":{\"containers\":[{\"name\":\"c\"}],\"nodeSelector\":{\"a\":1}}}"),
        0);
    CU_ASSERT_STRING_EQUAL(fields_of("a", "Apply"),
                           "{\"f:spec\":{\"f:containers\":{},\"f:nodeSelector\":{\"f:a\":{}}}}");
    op.manager = "b";
    CU_ASSERT_EQUAL(apply_op(op, "{\"spec\":{\"containers\":[{\"name\":\"d\"}]}}"), -EBUSY);
}

static void test_subresources_are_other_managers(void)
{
    begin();
    struct bh_apply_op op = op_of("me", "t");
    CU_ASSERT_EQUAL(apply("me", REPLICAS(3)), 0);
    op.subresource = "status";
    CU_ASSERT_EQUAL(apply_op(op, "{" META ",\"status\":{\"replicas\":1}}"), 0);
    CU_ASSERT_EQUAL(entries(), 2);
    CU_ASSERT_TRUE(is("{" META ",\"spec\":{\"replicas\":3},\"status\":{\"replicas\":1}}"));
    CU_ASSERT_EQUAL(apply("me", "{" META ",\"spec\":{\"replicas\":3},\"status\":{\"replicas\":2}}"),
                    -EBUSY);
    CU_ASSERT_STRING_EQUAL(err.msg, "Apply failed with 1 conflict: conflict with \"me\" with "
                                    "subresource \"status\": .status.replicas");
}

static void test_apply_ignores_nulls_and_identity(void)
{
    begin();
    CU_ASSERT_EQUAL(apply("a", "{" META ",\"spec\":{\"replicas\":null,\"paused\":true}}"), 0);
    CU_ASSERT_TRUE(is("{" META ",\"spec\":{\"paused\":true}}"));
    CU_ASSERT_STRING_EQUAL(fields_of("a", "Apply"), "{\"f:spec\":{\"f:paused\":{}}}");
}

/* ---- updates --------------------------------------------------------------------------------- */

static void test_create_is_recorded(void)
{
    begin();
    CU_ASSERT_EQUAL(update("kubectl-create",
                           "{" META
                           ",\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
                           "\"strategy\":{\"rollingUpdate\":{\"maxSurge\":1},\"type\":"
                           "\"RollingUpdate\"},\"template\":{"
                           "\"metadata\":{\"creationTimestamp\":null,\"labels\":{\"a\":\"b\"}},"
                           "\"spec\":{\"containers\":[{"
                           "\"name\":\"c\",\"image\":\"i\",\"resources\":{}}],\"securityContext\":{"
                           "}}}},\"status\":{}}"),
                    0);
    CU_ASSERT_STRING_EQUAL(fields_of("kubectl-create", "Update"),
                           "{\"f:spec\":{\"f:replicas\":{},\"f:selector\":{},\"f:strategy\":{\"f:"
                           "rollingUpdate\":{\".\":{},"
                           "\"f:maxSurge\":{}},\"f:type\":{}},\"f:template\":{\"f:metadata\":{\"f:"
                           "labels\":{\".\":{},\"f:a\":{}"
                           "}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":"
                           "{},\"f:image\":{},\"f:name\":"
                           "{},\"f:resources\":{}}},\"f:securityContext\":{}}}},\"f:status\":{}}");
}

static void test_update_takes_and_loses_fields(void)
{
    begin();
    CU_ASSERT_EQUAL(apply("me", "{" META ",\"spec\":{\"replicas\":3,\"paused\":true}}"), 0);
    CU_ASSERT_EQUAL(update("hpa", "{" META ",\"spec\":{\"replicas\":7,\"paused\":true}}"), 0);
    CU_ASSERT_STRING_EQUAL(fields_of("me", "Apply"), "{\"f:spec\":{\"f:paused\":{}}}");
    CU_ASSERT_STRING_EQUAL(fields_of("hpa", "Update"), "{\"f:spec\":{\"f:replicas\":{}}}");
    /* Nothing changed: no entry, no new time. */
    struct bh_json *before = live;
    CU_ASSERT_EQUAL(update_op(op_of("idle", "2026-01-01T00:00:08Z"),
                              "{" META ",\"spec\":{\"replicas\":7,\"paused\":true}}"),
                    0);
    CU_ASSERT_TRUE(bh_json_equal(before, live));
    /* A removed field is nobody's. */
    CU_ASSERT_EQUAL(update("editor", "{" META ",\"spec\":{\"replicas\":7}}"), 0);
    CU_ASSERT_STRING_EQUAL(fields_of("me", "Apply"), "");
    CU_ASSERT_STRING_EQUAL(fields_of("editor", "Update"), "");
    CU_ASSERT_EQUAL(update("hpa", "{" META ",\"spec\":{\"replicas\":8,\"minReadySeconds\":1}}"), 0);
    CU_ASSERT_STRING_EQUAL(fields_of("hpa", "Update"),
                           "{\"f:spec\":{\"f:minReadySeconds\":{},\"f:replicas\":{}}}");
}

static void test_client_can_reset_the_record(void)
{
    begin();
    CU_ASSERT_EQUAL(update("a", REPLICAS(3)), 0);
    CU_ASSERT_EQUAL(
        update("b",
               "{\"metadata\":{\"name\":\"x\",\"managedFields\":[{}]},\"spec\":{\"replicas\":3}}"),
        0);
    CU_ASSERT_EQUAL(entries(), 0);
    CU_ASSERT_PTR_NULL(bh_json_path(live, "metadata.managedFields"));
    /* A record the client sends counts, one that cannot be read does not. */
    CU_ASSERT_EQUAL(
        update("b",
               "{\"metadata\":{\"name\":\"x\",\"managedFields\":[{\"manager\":\"z\",\"operation\":"
               "\"Update\",\"apiVersion\":\"v1\",\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{}}}}]},"
               "\"spec\":{\"replicas\":3}}"),
        0);
    CU_ASSERT_STRING_EQUAL(fields_of("z", "Update"), "{\"f:spec\":{\"f:replicas\":{}}}");
    static const char *const bad[] = {
        "[{\"manager\":\"q\",\"operation\":\"Update\",\"fieldsV1\":{\"f:spec\":1}}]",
        "[{\"manager\":\"q\",\"operation\":\"Spam\",\"fieldsV1\":{\"f:spec\":{}}}]",
        "[1]",
        "[{\"manager\":\"q\",\"operation\":\"Update\"}]",
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        const char *text = bh_arena_printf(
            &arena,
            "{\"metadata\":{\"name\":\"x\",\"managedFields\":%s},\"spec\":{\"replicas\":3}}",
            bad[i]);
        CU_ASSERT_EQUAL(update("b", text), 0);
        CU_ASSERT_STRING_EQUAL(fields_of("z", "Update"), "{\"f:spec\":{\"f:replicas\":{}}}");
        CU_ASSERT_EQUAL(entries(), 1);
    }
}

static void test_update_entries_are_capped(void)
{
    begin();
    CU_ASSERT_EQUAL(apply("applier", "{" META ",\"spec\":{\"paused\":true}}"), 0);
    for (int i = 0; i < 15; i++) {
        struct bh_json *next = bh_json_clone(&arena, live);
        struct bh_apply_op op = op_of(bh_arena_printf(&arena, "m%02d", i),
                                      bh_arena_printf(&arena, "2026-01-01T00:01:%02dZ", i));
        bh_json_unset(bh_json_get(next, "metadata"), "managedFields");
        bh_json_set_i64(&arena, bh_json_get(next, "spec"), bh_arena_printf(&arena, "f%02d", i), i);
        CU_ASSERT_EQUAL(bh_apply_track_update(&arena, &op, live, next, &err), 0);
        live = next;
    }
    CU_ASSERT_EQUAL(entries(), 11);
    CU_ASSERT_STRING_EQUAL(fields_of("applier", "Apply"), "{\"f:spec\":{\"f:paused\":{}}}");
    CU_ASSERT_STRING_EQUAL(
        fields_of("ancient-changes", "Update"),
        "{\"f:spec\":{\"f:f00\":{},\"f:f01\":{},\"f:f02\":{},\"f:f03\":{},\"f:f04\":{},"
        "\"f:f05\":{}}}");
    CU_ASSERT_STRING_EQUAL(fields_of("m14", "Update"), "{\"f:spec\":{\"f:f14\":{}}}");
}

static void test_every_arena_limit(void)
{
    static const char config[] = PODSPEC("{\"containers\":[{\"name\":\"c\",\"image\":\"2\"}]}");
    begin();
    CU_ASSERT_EQUAL(
        update("a",
               PODSPEC("{\"containers\":[{\"name\":\"c\",\"image\":\"1\"},{\"name\":\"d\"}]}")),
        0);
    struct bh_json *c = json(config), *stored = live;
    struct bh_apply_op op = op_of("me", "t");
    for (int forced = 0; forced < 2; forced++) {
        int rc = -E2BIG;
        op.force = forced;
        for (size_t limit = 64; rc == -E2BIG && limit < 100000; limit += 64) {
            struct bh_arena a;
            struct bh_json *obj, *why;
            bh_arena_init(&a, limit);
            rc = bh_apply_ssa(&a, &op, stored, c, &obj, &why, &err);
            bh_arena_fini(&a);
        }
        CU_ASSERT_EQUAL(rc, forced ? 0 : -EBUSY);
    }
}

/* Random appliers and updates on one object: what is in the record must exist, and a manager that
 * applies nothing must leave nothing of its own. */
static void test_random_histories(void)
{
    static const char *const managers[] = {"a", "b", "c"};
    struct bh_rand r;
    bh_rand_seed(&r, 11);
    for (int round = 0; round < 60; round++) {
        begin();
        for (int step = 0; step < 12; step++) {
            BH_CLEANUP(bh_buf_fini) struct bh_buf b = {0};
            bh_buf_adds(&b, "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"template\":{\"spec\":{"
                            "\"containers\":[");
            for (int i = 0, n = 0; i < 4; i++) {
                if (bh_rand_below(&r, 2))
                    bh_buf_addf(&b, "%s{\"name\":\"c%d\",\"image\":\"%d\"}", n++ ? "," : "", i,
                                (int)bh_rand_below(&r, 2));
            }
            bh_buf_addf(&b, "]}},\"replicas\":%d}}", (int)bh_rand_below(&r, 3));
            const char *who = managers[bh_rand_below(&r, 3)];
            int rc =
                bh_rand_below(&r, 3) ? force(who, bh_buf_str(&b)) : update(who, bh_buf_str(&b));
            CU_ASSERT_EQUAL(rc, 0);
        }
        for (size_t i = 0; i < 3; i++)
            CU_ASSERT_EQUAL(force(managers[i], "{\"metadata\":{\"name\":\"x\"}}"), 0);
        bh_json_each(e, bh_json_path(live, "metadata.managedFields"))
            CU_ASSERT_STRING_EQUAL(bh_json_get_str(e, "operation"), "Update");
        CU_ASSERT(entries() <= 3);
        if (entries() == 0)
            CU_ASSERT_TRUE(is("{\"metadata\":{\"name\":\"x\"}}"));
    }
}

BH_TESTS("common/data/apply", {"create by apply records every field", test_create_by_apply},
         {"applying the same again changes nothing, not even the time",
          test_apply_again_changes_nothing},
         {"a conflict names manager and field; force takes the field", test_one_conflict},
         {"several conflicts are listed by manager", test_many_conflicts},
         {"an equal value is owned by both", test_same_value_is_shared},
         {"what is no longer applied goes, defaults elsewhere stay",
          test_no_longer_applied_is_removed},
         {"fields of others survive", test_others_fields_survive_removal},
         {"keyed lists follow the configuration's order", test_order_of_keyed_lists},
         {"list keys with a default identify as if it were set", test_defaulted_list_keys},
         {"malformed configurations are refused", test_malformed_configurations},
         {"sets merge, atomic values are replaced", test_sets_and_atomics},
         {"an object without record belongs to before-first-apply", test_before_first_apply},
         {"custom resources have atomic lists", test_custom_resources_have_atomic_lists},
         {"a subresource is a manager of its own", test_subresources_are_other_managers},
         {"nulls and the object's identity are not owned", test_apply_ignores_nulls_and_identity},
         {"a create is recorded as upstream records it", test_create_is_recorded},
         {"an update takes fields over and forgets removed ones",
          test_update_takes_and_loses_fields},
         {"a client can send or reset the record", test_client_can_reset_the_record},
         {"old update entries become ancient-changes", test_update_entries_are_capped},
         {"every arena limit ends in E2BIG or the result", test_every_arena_limit},
         {"random histories leave no orphans", test_random_histories})
