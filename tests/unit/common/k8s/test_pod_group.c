/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_pod_group.c - a PodGroup of each version comes out the same
 */
#include <errno.h>

#include "common/k8s/codec.h"
#include "common/k8s/pod_group.h"
#include "proto/kubernetes/kubernetes.pb-c.h"
#include "tests/unit/harness.h"

#define META "\"metadata\":{\"name\":\"g\",\"namespace\":\"ns\",\"uid\":\"u\",\"generation\":3}"
#define GANG                                                                                       \
    "\"schedulingPolicy\":{\"gang\":{\"minCount\":4}},\"priority\":7,\"schedulingConstraints\":{"  \
    "\"topology\":[{\"key\":\"rack\"}]}"

static struct bh_arena arena;

static int read_group(const struct bh_kind_info *k, const char *json, struct bh_pod_group *ret,
                      struct bh_err *err)
{
    ProtobufCMessage *m = NULL;
    K8s__PodGroup *g;

    bh_arena_fini(&arena);
    bh_arena_init(&arena, 0);
    CU_ASSERT_FATAL(bh_decode_object(&arena, k->desc, json, strlen(json), &m, err) == 0);
    g = bh_pod_group_of(&arena, k, m);
    CU_ASSERT_PTR_NOT_NULL_FATAL(g);
    return bh_pod_group_read(g, ret, err);
}

static const struct bh_kind_info *version(const char *v)
{
    const struct bh_kind_info *k = &bh_kinds[BH_KIND_PODGROUP];

    while (k && !bh_streq(k->version, v))
        k = k->other;
    CU_ASSERT_PTR_NOT_NULL_FATAL(k);
    return k;
}

static void test_every_version_says_the_same(void)
{
    static const struct {
        const char *version, *json;
    } groups[] = {
        {"v1alpha2", "{" META ",\"spec\":{" GANG ",\"disruptionMode\":\"PodGroup\"},\"status\":{"
                     "\"conditions\":[{\"type\":\"PodGroupScheduled\",\"status\":\"True\"}]}}"},
        {"v1beta1",
         "{" META ",\"spec\":{" GANG ",\"disruptionMode\":{\"all\":{}}},\"status\":{"
         "\"conditions\":[{\"type\":\"PodGroupInitiallyScheduled\",\"status\":\"True\"}]}}"},
        {"v1alpha3",
         "{" META ",\"spec\":{" GANG ",\"disruptionMode\":{\"all\":{}}},\"status\":{"
         "\"conditions\":[{\"type\":\"PodGroupInitiallyScheduled\",\"status\":\"True\"}]}}"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(groups); i++) {
        struct bh_pod_group g;
        struct bh_err err = {""};

        CU_ASSERT(read_group(version(groups[i].version), groups[i].json, &g, &err) == 0);
        CU_ASSERT_STRING_EQUAL(g.version, groups[i].version);
        CU_ASSERT_STRING_EQUAL(g.ns, "ns");
        CU_ASSERT_STRING_EQUAL(g.name, "g");
        CU_ASSERT_STRING_EQUAL(g.uid, "u");
        CU_ASSERT_STRING_EQUAL(g.topology_key, "rack");
        CU_ASSERT(g.generation == 3 && g.min_count == 4 && g.priority == 7);
        CU_ASSERT(g.whole && g.scheduled);
    }
    bh_arena_fini(&arena);
}

static void test_a_plain_group(void)
{
    struct bh_pod_group g;
    struct bh_err err = {""};

    CU_ASSERT(read_group(version("v1beta1"),
                         "{" META ",\"spec\":{\"schedulingPolicy\":{\"basic\":{}}}}", &g,
                         &err) == 0);
    CU_ASSERT(g.min_count == BH_GROUP_NOT_A_GANG && g.priority == 0 && !g.whole && !g.scheduled);
    CU_ASSERT_PTR_NULL(g.topology_key);
    CU_ASSERT_STRING_EQUAL(g.condition, "PodGroupInitiallyScheduled");
    bh_arena_fini(&arena);
}

static void test_a_group_that_says_nothing_is_refused(void)
{
    static const struct {
        const char *json, *why;
    } bad[] = {
        {"{\"metadata\":{\"name\":\"g\",\"namespace\":\"ns\"}}",
         "metadata: name, namespace or uid is missing"},
        {"{" META "}", "spec.schedulingPolicy: must be either basic or gang"},
        {"{" META ",\"spec\":{\"schedulingPolicy\":{\"basic\":{},\"gang\":{\"minCount\":1}}}}",
         "spec.schedulingPolicy: must be either basic or gang"},
        {"{" META ",\"spec\":{\"schedulingPolicy\":{\"gang\":{\"minCount\":-2}}}}",
         "spec.schedulingPolicy.gang.minCount: must be at least 1, is -2"},
    };

    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++) {
        struct bh_pod_group g;
        struct bh_err err = {""};

        CU_ASSERT(read_group(version("v1alpha2"), bad[i].json, &g, &err) == -EINVAL);
        CU_ASSERT_STRING_EQUAL(err.msg, bad[i].why);
    }
    bh_arena_fini(&arena);
}

BH_TESTS("common/k8s/pod_group", {"every version says the same", test_every_version_says_the_same},
         {"a plain group", test_a_plain_group},
         {"a group that says nothing is refused", test_a_group_that_says_nothing_is_refused})
