/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scheduler/config/fixture.h"

static char *written(const struct bh_sched_config *c, enum bh_sched_config_form form, bool secrets)
{
    struct bh_buf b = {0};

    bh_sched_config_write(c, form, secrets, &b);
    return bh_buf_take(&b);
}

static void same_points(const struct bh_sched_config *a, const struct bh_sched_config *b)
{
    struct bh_arena arena;

    bh_arena_init(&arena, 0);
    CU_ASSERT_FATAL(a->n_profiles == b->n_profiles);
    for (uint32_t i = 0; i < a->n_profiles; i++) {
        for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++) {
            const char *x = fx_plugins(&arena, &a->profiles[i], pt);
            const char *y = fx_plugins(&arena, &b->profiles[i], pt);
            if (!bh_streq(x, y))
                fprintf(stderr, "  %s: %s\n  then %s\n", bh_sched_point_name(pt), x, y);
            CU_ASSERT(bh_streq(x, y));
        }
    }
    bh_arena_fini(&arena);
}

static void same_extenders(const struct bh_sched_config *a, const struct bh_sched_config *b)
{
    CU_ASSERT_FATAL(a->n_extenders == b->n_extenders);
    for (uint32_t i = 0; i < a->n_extenders; i++) {
        const struct bh_extender_config *x = &a->extenders[i], *y = &b->extenders[i];
        CU_ASSERT_STRING_EQUAL(x->url_prefix, y->url_prefix);
        CU_ASSERT(x->http_timeout_ns == y->http_timeout_ns && x->weight == y->weight);
        CU_ASSERT(x->ignorable == y->ignorable && x->n_managed == y->n_managed);
        CU_ASSERT(x->enable_https == y->enable_https && x->tls.present == y->tls.present);
        CU_ASSERT(bh_str_eq(x->tls.ca_data, y->tls.ca_data));
        CU_ASSERT(bh_str_eq(x->tls.key_data, y->tls.key_data));
    }
}

/* What is written loads to the same, without a warning, and is written the same again. */
static void round_trip(const char *text)
{
    struct fx_read f = fx_good(text);

    for (unsigned form = BH_SCHED_CONFIG_YAML; form <= BH_SCHED_CONFIG_JSON_PRETTY; form++) {
        BH_CLEANUP(bh_freep) char *once = written(f.c, form, true);
        struct fx_read g = fx_good(once);
        BH_CLEANUP(bh_freep) char *twice = written(g.c, form, true);
        CU_ASSERT(bh_streq(once, twice));
        CU_ASSERT(bh_json_equal(f.c->tree, g.c->tree));
        same_points(f.c, g.c);
        same_extenders(f.c, g.c);
        CU_ASSERT(g.c->leader_election.lease_duration_ns == f.c->leader_election.lease_duration_ns);
        CU_ASSERT(g.c->client_connection.qps == f.c->client_connection.qps);
        fx_done(&g);
    }
    fx_done(&f);
}

static void test_round_trips(void)
{
    round_trip(HEAD);
    round_trip(BETA3);
    round_trip(BETA2);
    round_trip("{\"kind\": \"Policy\", \"apiVersion\": \"v1\", \"hardPodAffinitySymmetricWeight\": "
               "3}");
    round_trip("kind: Policy\napiVersion: v1\npredicates:\n- name: A\n  argument: {labelsPresence: "
               "{labels: [x], presence: true}}\npriorities:\n- {name: MostRequestedPriority, "
               "weight: 2}\n");
    round_trip(HEAD "profiles:\n- schedulerName: a\n  percentageOfNodesToScore: 0\n  plugins:\n"
                    "    multiPoint:\n      disabled: [{name: TaintToleration}, {name: X}]\n"
                    "      enabled: [{name: TaintToleration, weight: 5}, {name: NodeAffinity}]\n"
                    "    filter:\n      enabled: [{name: NodePorts}, {name: NodeName}]\n"
                    "      disabled: [{name: VolumeZone}]\n    score: {disabled: [{name: '*'}], "
                    "enabled: [{name: ImageLocality, weight: 4}]}\n- schedulerName: b\n");
    round_trip(BETA3 "profiles:\n- plugins:\n    filter:\n      enabled: [{name: CinderLimits}]\n"
                     "    score: {disabled: [{name: ImageLocality}]}\n");
    round_trip(BETA2 "profiles:\n- plugins:\n    filter:\n      enabled: [{name: CinderLimits}]\n"
                     "    score: {enabled: [{name: SelectorSpread, weight: 2}]}\n");
    round_trip(HEAD "leaderElection: {leaderElect: false, retryPeriod: 1500ms}\n"
                    "clientConnection: {qps: -0.5, burst: 0, kubeconfig: /k}\nenableProfiling: "
                    "false\ndelayCacheUntilActive: true\nextenders:\n- {urlPrefix: 'https://b', "
                    "ignorable: true, prioritizeVerb: p, weight: 2}\n- {urlPrefix: 'https://a', "
                    "enableHTTPS: true, httpTimeout: 1m, tlsConfig: {keyData: QUJD, caData: "
                    "QUJD}, managedResources: [{name: x.com/a, ignoredByScheduler: true}]}\n");
    round_trip(HEAD "profiles:\n- pluginConfig:\n  - name: NodeAffinity\n    args: {addedAffinity: "
                    "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
                    "[{matchExpressions: [{key: a, operator: In, values: ['1', 'yes']}]}]}}}\n"
                    "  - name: DynamicResources\n    args: {bindingTimeout: 90s, filterTimeout: "
                    "'0'}\n  - name: NodeResourcesFit\n    args: {ignoredResources: [], "
                    "scoringStrategy: {type: MostAllocated, resources: [{name: x.com/g}]}}\n"
                    "  - name: Unknown\n    args: {a: 1}\n");
}

/* The defaults, as kube-scheduler --write-config-to writes them. */
static void test_defaults(void)
{
    struct fx_read f = fx_good(HEAD);
    BH_CLEANUP(bh_freep) char *yaml = written(f.c, BH_SCHED_CONFIG_YAML, true);
    static const char head[] = "apiVersion: kubescheduler.config.k8s.io/v1\n"
                               "clientConnection:\n"
                               "  acceptContentTypes: \"\"\n"
                               "  burst: 100\n"
                               "  contentType: application/vnd.kubernetes.protobuf\n"
                               "  kubeconfig: \"\"\n"
                               "  qps: -1\n"
                               "enableContentionProfiling: true\n"
                               "enableProfiling: true\n"
                               "kind: KubeSchedulerConfiguration\n"
                               "leaderElection:\n"
                               "  leaderElect: true\n"
                               "  leaseDuration: 15s\n"
                               "  renewDeadline: 10s\n"
                               "  resourceLock: leases\n"
                               "  resourceName: kube-scheduler\n"
                               "  resourceNamespace: kube-system\n"
                               "  retryPeriod: 2s\n"
                               "parallelism: 16\n"
                               "percentageOfNodesToScore: 0\n"
                               "podInitialBackoffSeconds: 1\n"
                               "podMaxBackoffSeconds: 10\n"
                               "profiles:\n"
                               "- pluginConfig:\n"
                               "  - args:\n"
                               "      apiVersion: kubescheduler.config.k8s.io/v1\n"
                               "      kind: DefaultPreemptionArgs\n"
                               "      minCandidateNodesAbsolute: 100\n"
                               "      minCandidateNodesPercentage: 10\n"
                               "    name: DefaultPreemption\n";

    CU_ASSERT(strncmp(yaml, head, sizeof head - 1) == 0);
    CU_ASSERT(strstr(yaml, "      - name: TaintToleration\n        weight: 3\n") != NULL);
    CU_ASSERT(strstr(yaml, "    permit: {}\n    placementGenerate: {}\n    placementScore: {}\n") !=
              NULL);
    CU_ASSERT(strstr(yaml, "extenders") == NULL && strstr(yaml, "delayCache") == NULL);
    fx_done(&f);
}

static void test_secrets(void)
{
    struct fx_read f = fx_good(HEAD "extenders: [{urlPrefix: a, tlsConfig: {caData: QUFB, "
                                    "certData: QkJC, keyData: Q0ND, keyFile: /k}}]\n");
    BH_CLEANUP(bh_freep) char *all = written(f.c, BH_SCHED_CONFIG_JSON, true);
    BH_CLEANUP(bh_freep) char *some = written(f.c, BH_SCHED_CONFIG_JSON, false);

    CU_ASSERT(strstr(all, "Q0ND") && strstr(all, "QkJC") && strstr(all, "QUFB"));
    CU_ASSERT(!strstr(some, "Q0ND") && !strstr(some, "QkJC"));
    CU_ASSERT(strstr(some, "QUFB") && strstr(some, "/k"));
    fx_done(&f);
}

/* Args of plugins that do not run are left out, the others are sorted. */
static void test_args_in_force(void)
{
    struct fx_read f =
        fx_good(HEAD "profiles:\n- plugins: {multiPoint: {disabled: [{name: "
                     "VolumeBinding}]}}\n  pluginConfig:\n  - name: VolumeBinding\n"
                     "    args: {bindTimeoutSeconds: 3}\n  - name: PodTopologySpread\n"
                     "  - name: InterPodAffinity\n    args: {hardPodAffinityWeight: 9}\n");
    const struct bh_json *list =
        bh_json_get(bh_json_at(bh_json_get(f.c->tree, "profiles"), 0), "pluginConfig");
    const char *last = "";

    bh_json_each(e, list) {
        CU_ASSERT(strcmp(last, bh_json_get_text(e, "name")) < 0);
        last = bh_json_get_text(e, "name");
        CU_ASSERT(!bh_streq(last, "VolumeBinding"));
    }
    CU_ASSERT(list->c.n == 7);
    fx_done(&f);
}

BH_TESTS("scheduler/config/write", {"round trips", test_round_trips},
         {"the defaults as text", test_defaults}, {"secrets can be left out", test_secrets},
         {"args in force", test_args_in_force})
