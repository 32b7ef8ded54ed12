/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config.h"
#include "tests/unit/harness.h"

#define HEAD "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

static char *table(const char *text, bool colour)
{
    struct bh_sched_config *c = NULL;
    struct bh_config_report r;
    struct bh_buf b = {0};

    bh_config_report_init(&r);
    int rc = bh_sched_config_read(text, strlen(text), &c, &r);
    if (rc < 0)
        fprintf(stderr, "  %s\n", r.summary);
    bh_config_report_fini(&r);
    CU_ASSERT_FATAL(rc == 0);
    bh_config_table(&b, c, colour);
    bh_sched_config_free(c);
    return bh_buf_take(&b);
}

static void expect(const char *have, const char *part)
{
    if (!strstr(have, part))
        fprintf(stderr, "  no \"%s\" in\n%s\n", part, have);
    CU_ASSERT(strstr(have, part) != NULL);
}

static void test_profiles(void)
{
    BH_CLEANUP(bh_freep)
    char *t = table(
        HEAD "profiles:\n- schedulerName: a\n  percentageOfNodesToScore: 7\n  plugins: {score: "
             "{disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 12}]}}\n"
             "- schedulerName: b\n",
        false);

    expect(t, "\nProfile \"a\", percentageOfNodesToScore 7\n  POINT              PLUGIN ");
    expect(t, "\n  score              ImageLocality                        12\n  reserve           "
              " Volume");
    expect(t, "\n  permit             -\n");
    expect(t, "\nProfile \"b\"\n");
    expect(t, "  PodTopologySpread                defaultingType                      System\n");
    CU_ASSERT(strchr(t, '\x1b') == NULL);
}

static void test_extenders(void)
{
    BH_CLEANUP(bh_freep)
    char *t = table(
        HEAD "extenders:\n- {urlPrefix: 'https://x', prioritizeVerb: p, weight: 3, bindVerb: "
             "b, enableHTTPS: true, managedResources: [{name: x.com/a}, {name: x.com/b, "
             "ignoredByScheduler: true}]}\n- {urlPrefix: 'https://y', ignorable: true, "
             "nodeCacheCapable: true, httpTimeout: 90s, tlsConfig: {caData: QUJD, serverName: "
             "nn, certData: QQ==}}\n",
        false);

    expect(t, "\nExtenders\n  https://x             required\n    prioritize          p, weight "
              "3\n    bind                b\n    timeout             5s\n    TLS                 "
              "server not verified\n    managed resources   x.com/a\n                        "
              "x.com/b (NodeResourcesFit ignores it)\n  https://y             ignorable, knows the "
              "nodes by name\n    timeout             1m30s\n    TLS                 CA from this "
              "configuration, "
              "server name nn\n    client certificate  from this configuration\n");
}

static void test_rest(void)
{
    BH_CLEANUP(bh_freep)
    char *t =
        table(HEAD "leaderElection: {leaderElect: false}\nclientConnection: {qps: -1, burst: 3, "
                   "acceptContentTypes: x, kubeconfig: /k}\npercentageOfNodesToScore: "
                   "40\nenableContentionProfiling: false\ndelayCacheUntilActive: true\n",
              true);

    expect(t, "  leaderElect  false\n");
    expect(t, "no limit, 3\n");
    expect(t, "  percentageOfNodesToScore  40\n");
    expect(t, "on, contention off\n");
    expect(t, "  delayCacheUntilActive     true\n");
    expect(t, "\x1b[1mLeader election\x1b[0m\n");
}

BH_TESTS("cli/config_table", {"profiles", test_profiles}, {"extenders", test_extenders},
         {"the rest, in colour", test_rest})
