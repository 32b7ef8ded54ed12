/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/k8s/test_kinds.c - kinds that plugins read, by name
 */
#include "common/k8s/kinds.h"
#include "tests/unit/harness.h"

static const struct bh_kind_info *declare(const char *group, const char *version,
                                          const char *resource)
{
    enum bh_kind kind;
    struct bh_err err;

    CU_ASSERT_EQUAL_FATAL(bh_kind_declare(group, version, resource, &kind, &err), 0);
    return bh_kind_of(kind);
}

static void test_declared(void)
{
    const struct bh_kind_info *window = declare("berth.dev", "v1alpha1", "maintenancewindows"),
                              *map = declare("", "v1", "configmaps");

    CU_ASSERT_PTR_EQUAL(bh_kind_declared("berth.dev/v1alpha1", "maintenancewindows"), window);
    CU_ASSERT_PTR_EQUAL(bh_kind_declared("v1", "configmaps"), map);
    CU_ASSERT_PTR_NULL(bh_kind_declared("berth.dev/v1", "maintenancewindows"));
    CU_ASSERT_PTR_NULL(bh_kind_declared("v1alpha1", "maintenancewindows"));
    CU_ASSERT_PTR_NULL(bh_kind_declared("v1", "pods")); /* of the table, not declared */
}

/* The plurals that meta.UnsafeGuessKindToResource gives. */
static void test_by_guess(void)
{
    const struct bh_kind_info *topology = declare("topology.node.k8s.io", "v1alpha2",
                                                  "noderesourcetopologies"),
                              *gateway = declare("x.io", "v1", "gatewaies"),
                              *access = declare("x.io", "v1", "accesses");
    char longest[300];

    CU_ASSERT_PTR_EQUAL(bh_kind_find_any("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"),
                        topology);
    CU_ASSERT_PTR_EQUAL(bh_kind_find_any("x.io/v1", "Gateway"), gateway);
    CU_ASSERT_PTR_EQUAL(bh_kind_find_any("x.io/v1", "Access"), access);
    CU_ASSERT_PTR_EQUAL(bh_kind_find_any("v1", "Pod"), &bh_kinds[BH_KIND_POD]);
    CU_ASSERT_PTR_NULL(bh_kind_find_any("x.io/v1", "Pod"));
    CU_ASSERT_PTR_NULL(bh_kind_find_any("x.io/v1", ""));
    memset(longest, 'y', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    CU_ASSERT_PTR_NULL(bh_kind_find_any("x.io/v1", longest));
    CU_ASSERT_PTR_NULL(bh_kind_find_any("x.io/v1", longest + sizeof longest - 1 - 253));
}

/* What has no namespace in Kubernetes. */
static void test_of_the_cluster(void)
{
    static const enum bh_kind of_the_cluster[] = {
        BH_KIND_NODE,          BH_KIND_NAMESPACE,  BH_KIND_PERSISTENTVOLUME, BH_KIND_STORAGECLASS,
        BH_KIND_CSINODE,       BH_KIND_CSIDRIVER,  BH_KIND_VOLUMEATTACHMENT, BH_KIND_PRIORITYCLASS,
        BH_KIND_RESOURCESLICE, BH_KIND_DEVICECLASS};

    for (size_t i = 0; i < BH_KIND_COUNT; i++) {
        bool found = false;
        for (size_t k = 0; k < BH_ARRAY_LEN(of_the_cluster); k++)
            found |= of_the_cluster[k] == i;
        if (!bh_kinds[i].plural)
            continue;
        if (bh_kinds[i].namespaced == found)
            printf("# %s\n", bh_kinds[i].plural);
        CU_ASSERT_EQUAL(bh_kinds[i].namespaced, !found);
    }
}

static void test_names_that_are_none(void)
{
    static const char *const bad[] = {"",   "a..b", ".a",   "a.", "-a",
                                      "a-", "a-.b", "a.-b", "A",  "a_b"};
    enum bh_kind kind;
    struct bh_err err;

    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++)
        if (*bad[i])
            CU_ASSERT(bh_kind_declare(bad[i], "v1", "things", &kind, &err) < 0);
    for (size_t i = 0; i < BH_ARRAY_LEN(bad); i++)
        CU_ASSERT(bh_kind_declare("x.io", "v1", bad[i], &kind, &err) < 0);
}

BH_TESTS("common/k8s/kinds", {"kinds of the cluster", test_of_the_cluster},
         {"names that are none", test_names_that_are_none},
         {"declared kinds by apiVersion and plural", test_declared},
         {"a manifest's kind by upstream's guess of its plural", test_by_guess}, )
