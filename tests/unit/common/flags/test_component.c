/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/api/test_component.c - what a configuration file says about connection and
 * lease
 */
#include "common/flags/component.h"
#include "tests/unit/harness.h"

#include <errno.h>

#define S INT64_C(1000000000)

static int load(const char *text, struct bh_arena *a, struct bh_component_config *c,
                struct bh_err *err)
{
    char *path = bh_asprintf("%s/config.yaml", bh_test_tmpdir());
    CU_ASSERT_EQUAL_FATAL(bh_write_file(path, text, strlen(text), 0600), 0);
    bh_arena_fini(a);
    bh_arena_init(a, 64u << 20);
    int rc = bh_component_config_load(path, a, c, err);
    if (rc < 0)
        CU_ASSERT(strncmp(err->msg, path, strlen(path)) == 0);
    free(path);
    return rc;
}

static void expect_defaults(const struct bh_component_config *c)
{
    CU_ASSERT(c->leader.leader_elect);
    CU_ASSERT_EQUAL(c->leader.lease_duration_ns, 15 * S);
    CU_ASSERT_EQUAL(c->leader.renew_deadline_ns, 10 * S);
    CU_ASSERT_EQUAL(c->leader.retry_period_ns, 2 * S);
    CU_ASSERT_STRING_EQUAL(c->leader.resource_lock, "leases");
    CU_ASSERT_STRING_EQUAL(c->leader.resource_name, "kube-scheduler");
    CU_ASSERT_STRING_EQUAL(c->leader.resource_namespace, "kube-system");
    CU_ASSERT_STRING_EQUAL(c->client.kubeconfig, "");
    CU_ASSERT_STRING_EQUAL(c->client.content_type, "application/vnd.kubernetes.protobuf");
    CU_ASSERT(c->client.qps == -1 && c->client.burst == 100);
    CU_ASSERT_STRING_EQUAL(c->first_profile, "default-scheduler");
}

static void test_defaults(void)
{
    struct bh_component_config c;
    struct bh_arena a = {0};
    struct bh_err err = {""};
    CU_ASSERT_EQUAL(bh_component_config_of(NULL, &c, &err), 0);
    expect_defaults(&c);
    CU_ASSERT_EQUAL(bh_component_config_load("", &a, &c, &err), 0);
    expect_defaults(&c);
    CU_ASSERT_EQUAL(load("apiVersion: kubescheduler.config.k8s.io/v1\n"
                         "kind: KubeSchedulerConfiguration\nleaderElection: null\n"
                         "clientConnection: {qps: 0, burst: 0}\nprofiles: []\n",
                         &a, &c, &err),
                    0);
    expect_defaults(&c);
    CU_ASSERT_EQUAL(bh_leader_config_check(&c.leader, &err), 0);
    bh_arena_fini(&a);
}

static void test_values(void)
{
    struct bh_component_config c;
    struct bh_arena a = {0};
    struct bh_err err = {""};
    CU_ASSERT_EQUAL(load("leaderElection:\n  leaderElect: false\n  leaseDuration: 1m\n"
                         "  renewDeadline: 40s\n  retryPeriod: 5s\n  resourceName: mine\n"
                         "  resourceNamespace: here\nclientConnection:\n  kubeconfig: /a/b\n"
                         "  qps: -1.5\n  burst: 7\n  contentType: application/json\n"
                         "profiles: [{schedulerName: first}, {schedulerName: second}]\n",
                         &a, &c, &err),
                    0);
    CU_ASSERT(!c.leader.leader_elect);
    CU_ASSERT_EQUAL(c.leader.lease_duration_ns, 60 * S);
    CU_ASSERT_EQUAL(c.leader.renew_deadline_ns, 40 * S);
    CU_ASSERT_EQUAL(c.leader.retry_period_ns, 5 * S);
    CU_ASSERT_STRING_EQUAL(c.leader.resource_name, "mine");
    CU_ASSERT_STRING_EQUAL(c.leader.resource_namespace, "here");
    CU_ASSERT_STRING_EQUAL(c.client.kubeconfig, "/a/b");
    CU_ASSERT(c.client.qps == -1.5 && c.client.burst == 7);
    CU_ASSERT_STRING_EQUAL(c.client.content_type, "application/json");
    CU_ASSERT_STRING_EQUAL(c.first_profile, "first");
    bh_arena_fini(&a);
}

static void test_what_a_plugin_needs(void)
{
    static const struct {
        const char *profiles;
        bool coscheduling;
    } rows[] = {
        {"[{plugins: {multiPoint: {enabled: [{name: A}, {name: Coscheduling}]}}}]", true},
        {"[{}, {plugins: {permit: {enabled: [{name: Coscheduling}]}}}]", true},
        {"[{plugins: {permit: {disabled: [{name: Coscheduling}]}}}]", false},
        {"[{pluginConfig: [{name: Coscheduling}]}]", false},
        {"[{plugins: {permit: {enabled: [1, {}, {name: 1}]}, filter: 1}}, 1]", false},
        {"{}", false},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        struct bh_component_config c;
        struct bh_arena a = {0};
        struct bh_err err = {""};
        char text[256];
        snprintf(text, sizeof text, "profiles: %s\n", rows[i].profiles);
        CU_ASSERT_EQUAL(load(text, &a, &c, &err), 0);
        CU_ASSERT_EQUAL(c.coscheduling, rows[i].coscheduling);
        bh_arena_fini(&a);
    }
}

static void test_wrong_types(void)
{
    static const char *const cases[][2] = {
        {"leaderElection: [1]", "leaderElection: an object is expected"},
        {"leaderElection: {leaderElect: \"yes\"}", "leaderElection.leaderElect: true or false"},
        {"leaderElection: {leaseDuration: 15}", "leaderElection.leaseDuration: a duration such as"},
        {"leaderElection: {renewDeadline: 10 s}", "leaderElection.renewDeadline: a duration"},
        {"leaderElection: {resourceName: {}}", "leaderElection.resourceName: a string"},
        {"clientConnection: x", "clientConnection: an object is expected"},
        {"clientConnection: {qps: fast}", "clientConnection.qps: a number is expected"},
        {"clientConnection: {burst: 1.5}", "clientConnection.burst: an integer of 32 bits"},
        {"clientConnection: {kubeconfig: 1}", "clientConnection.kubeconfig: a string"},
        {"- a", "an object is expected"},
        {"leaderElection: {", "line 2, column 1"},
        {"", "an object is expected"},
    };
    struct bh_arena a = {0};
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_component_config c = {.first_profile = "untouched"};
        struct bh_err err = {""};
        CU_ASSERT_EQUAL(load(cases[i][0], &a, &c, &err), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.msg, cases[i][1]));
        CU_ASSERT_STRING_EQUAL(c.first_profile, "untouched");
    }
    struct bh_component_config c;
    struct bh_err err = {""};
    CU_ASSERT_EQUAL(bh_component_config_load("/nonexistent", &a, &c, &err), -ENOENT);
    CU_ASSERT_STRING_EQUAL(err.msg, "open /nonexistent: No such file or directory");
    bh_arena_fini(&a);
}

static void test_checks(void)
{
    static const struct {
        struct bh_leader_config c;
        const char *text;
    } cases[] = {
        {{true, 15 * S, 15 * S, 2 * S, "leases", "n", "s"},
         "couldn't create leader elector: leaseDuration must be greater than renewDeadline"},
        {{true, 15 * S, 12 * S, 10 * S, "leases", "n", "s"},
         "couldn't create leader elector: renewDeadline must be greater than "
         "retryPeriod*JitterFactor"},
        {{true, 15 * S, 10 * S, 0, "leases", "n", "s"},
         "couldn't create leader elector: retryPeriod must be greater than zero"},
        {{true, 15 * S, 0, -5 * S, "leases", "n", "s"},
         "couldn't create leader elector: renewDeadline must be greater than zero"},
        {{true, S / 2, S / 4, S / 8, "leases", "n", "s"},
         "couldn't create leader elector: leaseDuration must be at least one second"},
        {{true, INT64_MAX, 10 * S, 2 * S, "leases", "n", "s"},
         "couldn't create leader elector: leaseDuration is too long"},
        {{true, 15 * S, 10 * S, 2 * S, "configmaps", "n", "s"},
         "couldn't create resource lock: configmaps lock is removed, migrate to leases"},
        {{true, 15 * S, 10 * S, 2 * S, "x", "n", "s"},
         "couldn't create resource lock: Invalid lock-type x"},
        {{true, 15 * S, 10 * S, 2 * S, "leases", "", "s"},
         "leaderElection.resourceName: Required value: resourceName is required"},
        {{true, 15 * S, 10 * S, 2 * S, "leases", "n", ""},
         "leaderElection.resourceNamespace: Required value: resourceNamespace is required"},
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct bh_leader_config off = cases[i].c;
        struct bh_err err = {""};
        CU_ASSERT_EQUAL(bh_leader_config_check(&cases[i].c, &err), -EINVAL);
        CU_ASSERT_STRING_EQUAL(err.msg, cases[i].text);
        off.leader_elect = false; /* then nothing of it matters */
        CU_ASSERT_EQUAL(bh_leader_config_check(&off, &err), 0);
    }
}

BH_TESTS("common/data/component", {"defaults", test_defaults}, {"values", test_values},
         {"what a plugin needs", test_what_a_plugin_needs},
         {"wrong types are named", test_wrong_types}, {"the elector's checks", test_checks})
