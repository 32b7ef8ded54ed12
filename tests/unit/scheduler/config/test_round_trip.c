/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/scheduler/config/test_round_trip.c - a configuration that is written and read again
 * acts the same: random files, versions, flags and gates; each field that the daemons use is compared
 */
#include "common/api/api_int.h"
#include "common/api/from_flags.h"
#include "tests/unit/scheduler/config/fixture.h"

#define FILES    2000u
#define REQUESTS 1000u

static const struct bh_opt_usage usage = {.program = "prog"};
static struct bh_rand rnd;

static unsigned pick(unsigned n)
{
    return (unsigned)bh_rand_below(&rnd, n);
}

/* ---- random files ---------------------------------------------------------------------------- */

/* "name: value, ": one of the values; nothing in one of two cases. */
static void add_field(struct bh_buf *b, const char *name, const char *const *values)
{
    unsigned n = 0;

    while (values[n])
        n++;
    if (pick(2))
        bh_buf_addf(b, "%s: %s, ", name, values[pick(n)]);
}
#define FIELD(b, name, ...) add_field((b), (name), (const char *const[]){__VA_ARGS__, NULL})

static void add_client(struct bh_buf *b)
{
    bh_buf_adds(b, "clientConnection: {");
    FIELD(b, "qps", "0", "50", "5000", "-1", "-0.5", "7.25", "null");
    FIELD(b, "burst", "0", "1", "100", "200");
    FIELD(b, "kubeconfig", "''", "/k");
    FIELD(b, "acceptContentTypes", "''", "application/json");
    FIELD(b, "contentType", "''", "application/json", "application/vnd.kubernetes.protobuf");
    bh_buf_adds(b, "}\nleaderElection: {");
    FIELD(b, "leaderElect", "true", "false", "null");
    FIELD(b, "leaseDuration", "15s", "1m30s", "0s", "20000ms");
    FIELD(b, "retryPeriod", "2s", "1500ms", "'0'");
    FIELD(b, "resourceName", "''", "mine", "'7'");
    FIELD(b, "resourceNamespace", "''", "here");
    bh_buf_adds(b, "}\n");
}

static void add_scalar(struct bh_buf *b, const char *name, const char *a, const char *c)
{
    if (pick(2))
        bh_buf_addf(b, "%s: %s\n", name, pick(2) ? a : c);
}

static void add_extenders(struct bh_buf *b)
{
    const unsigned n = pick(3);

    bh_buf_adds(b, n ? "extenders:\n" : "");
    for (unsigned i = 0; i < n; i++) {
        bh_buf_addf(b, "- {urlPrefix: 'https://e%u', weight: %u, ", i, 1 + pick(3));
        FIELD(b, "filterVerb", "''", "f");
        FIELD(b, "prioritizeVerb", "p");
        FIELD(b, "preemptVerb", "v");
        FIELD(b, "httpTimeout", "0s", "3m", "500ms", "-1s");
        FIELD(b, "enableHTTPS", "true", "false");
        FIELD(b, "nodeCacheCapable", "true", "false");
        FIELD(b, "ignorable", "true", "false");
        if (pick(2))
            bh_buf_addf(b, "managedResources: [{name: example.com/r%u, ignoredByScheduler: %s}], ",
                        i, pick(2) ? "true" : "false");
        FIELD(b, "tlsConfig", "{}", "{serverName: s}", "{keyData: QUJD, certData: QUJD}");
        bh_buf_adds(b, "}\n");
    }
}

static void add_set(struct bh_buf *b, const char *point, const char *const *plugins)
{
    unsigned n = 0;

    while (plugins[n])
        n++;
    const char *on = plugins[pick(n)], *off = plugins[pick(n)], *more = plugins[pick(n)];
    bh_buf_addf(b, "%s: {", point);
    if (pick(2) && !bh_streq(on, more))
        bh_buf_addf(b, "enabled: [{name: %s, weight: %u}, {name: %s}], ", on, pick(9), more);
    else if (pick(2))
        bh_buf_addf(b, "enabled: [{name: %s, weight: %u}], ", on, pick(9));
    if (pick(2))
        bh_buf_addf(b, "disabled: [{name: %s}], ", pick(8) ? off : "'*'");
    bh_buf_adds(b, "}, ");
}
#define SET(b, point, ...) add_set((b), (point), (const char *const[]){__VA_ARGS__, NULL})

static void add_plugins(struct bh_buf *b, bool beta2)
{
    bh_buf_adds(b, "  plugins: {");
    if (pick(2) && !beta2)
        SET(b, "multiPoint", "NodeResourcesFit", "TaintToleration", "ImageLocality",
            "VolumeBinding", "GangScheduling", "DynamicResources", "NodeDeclaredFeatures",
            "PodGroupPodsCount");
    if (pick(2))
        SET(b, "filter", "NodePorts", "NodeName", "NodeResourcesFit", "CinderLimits",
            "TaintToleration");
    if (pick(2))
        SET(b, "score", "NodeResourcesFit", "ImageLocality", "TaintToleration", "SelectorSpread",
            "PodTopologySpread");
    if (pick(4) == 0)
        SET(b, "permit", "GangScheduling");
    if (pick(4) == 0)
        SET(b, "postFilter", "DefaultPreemption", "DynamicResources");
    bh_buf_adds(b, "}\n");
}

static void add_args(struct bh_buf *b)
{
    bh_buf_adds(b, "  pluginConfig: [{name: DynamicResources, args: {");
    FIELD(b, "filterTimeout", "'0'", "5s");
    FIELD(b, "bindingTimeout", "90s", "10m");
    bh_buf_adds(b, "}}, {name: NodeResourcesFit, args: {");
    FIELD(b, "ignoredResources", "[]", "[example.com/x]");
    FIELD(b, "scoringStrategy", "{type: MostAllocated}", "{resources: [{name: cpu, weight: 0}]}",
          "{type: LeastAllocated, resources: [{name: example.com/g, weight: 3}]}");
    bh_buf_adds(b, "}}, {name: InterPodAffinity, args: {");
    FIELD(b, "hardPodAffinityWeight", "0", "1", "100");
    FIELD(b, "ignorePreferredTermsOfExistingPods", "true", "false");
    bh_buf_adds(b, "}}, {name: VolumeBinding, args: {");
    FIELD(b, "bindTimeoutSeconds", "0", "600", "7");
    bh_buf_adds(b, "}}, {name: DefaultPreemption, args: {");
    FIELD(b, "minCandidateNodesPercentage", "0", "10", "33");
    FIELD(b, "minCandidateNodesAbsolute", "1", "100");
    bh_buf_adds(b, "}}]\n");
}

static void add_profiles(struct bh_buf *b, bool v1, bool beta2)
{
    const unsigned n = pick(3);

    bh_buf_adds(b, n ? "profiles:\n" : "");
    for (unsigned i = 0; i < n; i++) {
        bh_buf_addf(b, "- schedulerName: s%u\n", i);
        if (v1 && pick(2))
            bh_buf_addf(b, "  percentageOfNodesToScore: %u\n", pick(2) * 40);
        if (pick(2))
            add_plugins(b, beta2);
        if (pick(2))
            add_args(b);
    }
}

static void add_file(struct bh_buf *b)
{
    static const char *const heads[] = {HEAD, BETA3, BETA2};
    const unsigned version = pick(BH_ARRAY_LEN(heads));

    bh_buf_adds(b, heads[version]);
    add_client(b);
    add_scalar(b, "enableProfiling", "true", "false");
    add_scalar(b, "enableContentionProfiling", "true", "false");
    add_scalar(b, "parallelism", "16", "3");
    add_scalar(b, "percentageOfNodesToScore", "0", "55");
    add_scalar(b, "podInitialBackoffSeconds", "1", "3");
    add_scalar(b, "podMaxBackoffSeconds", "20", "33");
    if (version == 0)
        add_scalar(b, "delayCacheUntilActive", "true", "false");
    add_profiles(b, version == 0, version == 2);
    add_extenders(b);
}

/* ---- with flags ------------------------------------------------------------------------------ */

static const char *const gates[] = {
    "--feature-gates=NodeDeclaredFeatures=true",
    "--feature-gates=NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false,"
    "InPlacePodVerticalScalingInitContainers=false,RestartAllContainersOnContainerExits=false,"
    "ExtendWebSocketsToKubelet=false",
    "--feature-gates=GenericWorkload=true,GangScheduling=true",
    "--feature-gates=GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true",
};
static const char *const others[] = {
    "--kube-api-qps=0",
    "--kube-api-qps=3.5",
    "--kube-api-qps=50",
    "--kube-api-qps=inf",
    "--kube-api-burst=7",
    "--leader-elect=false",
    "--leader-elect-resource-name=l",
    "--kubeconfig=/f",
    "--profiling=false",
    "--leader-elect-lease-duration=77s",
};

static void parse(struct bh_kube_flags *f, const char *const *words, unsigned n)
{
    char *argv[8] = {(char *)"prog"};
    struct bh_err err;

    for (unsigned i = 0; i < n; i++)
        argv[i + 1] = (char *)words[i];
    CU_ASSERT_EQUAL_FATAL(bh_kube_flags_parse(f, NULL, &usage, (int)n + 1, argv, &err), 0);
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* The limits reject no pod at PreFilter: their place among the others there has no effect. */
static uint32_t skip_limits(const struct bh_profile_config *p, unsigned point, uint32_t i)
{
    while (point == BH_POINT_PRE_FILTER && i < p->n_points[point] &&
           bh_word_at("AzureDiskLimits CinderLimits EBSLimits GCEPDLimits",
                      p->points[point][i].name) >= 0)
        i++;
    return i;
}

static void same_point(const struct bh_profile_config *x, const struct bh_profile_config *y,
                       unsigned point)
{
    uint32_t i = 0, k = 0;

    CU_ASSERT_EQUAL_FATAL(x->n_points[point], y->n_points[point]);
    for (;; i++, k++) {
        i = skip_limits(x, point, i);
        k = skip_limits(y, point, k);
        if (i >= x->n_points[point] || k >= y->n_points[point])
            break;
        const struct bh_plugin_ref *p = &x->points[point][i], *q = &y->points[point][k];
        const struct bh_json *args = bh_profile_args(x, p->name),
                             *again = bh_profile_args(y, p->name);
        bool same = bh_streq(p->name, q->name) && p->weight == q->weight &&
                    (args && again ? bh_json_equal(args, again) : !args == !again);
        if (!same)
            fprintf(stderr, "  %s %u: %s %d, then %s %d\n", bh_sched_point_name(point), i, p->name,
                    p->weight, q->name, q->weight);
        CU_ASSERT(same);
    }
    CU_ASSERT_EQUAL(i, x->n_points[point]);
}

static void same_profiles(const struct bh_sched_config *a, const struct bh_sched_config *b)
{
    CU_ASSERT_EQUAL_FATAL(a->n_profiles, b->n_profiles);
    for (uint32_t i = 0; i < a->n_profiles; i++) {
        const struct bh_profile_config *x = &a->profiles[i], *y = &b->profiles[i];
        CU_ASSERT(bh_streq(x->scheduler_name, y->scheduler_name) &&
                  x->has_percentage == y->has_percentage &&
                  x->percentage_of_nodes_to_score == y->percentage_of_nodes_to_score);
        for (unsigned pt = 0; pt < BH_POINT_COUNT; pt++)
            same_point(x, y, pt);
    }
}

static bool same_bytes(struct bh_str a, struct bh_str b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static void same_extenders(const struct bh_sched_config *a, const struct bh_sched_config *b)
{
    CU_ASSERT_EQUAL_FATAL(a->n_extenders, b->n_extenders);
    for (uint32_t i = 0; i < a->n_extenders; i++) {
        const struct bh_extender_config *x = &a->extenders[i], *y = &b->extenders[i];
        CU_ASSERT(
            bh_streq(x->url_prefix, y->url_prefix) && bh_streq(x->filter_verb, y->filter_verb) &&
            bh_streq(x->prioritize_verb, y->prioritize_verb) &&
            bh_streq(x->preempt_verb, y->preempt_verb) && bh_streq(x->bind_verb, y->bind_verb));
        CU_ASSERT(x->weight == y->weight && x->http_timeout_ns == y->http_timeout_ns &&
                  x->enable_https == y->enable_https && x->ignorable == y->ignorable &&
                  x->node_cache_capable == y->node_cache_capable && x->n_managed == y->n_managed);
        for (uint32_t k = 0; k < x->n_managed && k < y->n_managed; k++)
            CU_ASSERT(bh_streq(x->managed[k].name, y->managed[k].name) &&
                      x->managed[k].ignored_by_scheduler == y->managed[k].ignored_by_scheduler);
        CU_ASSERT(x->tls.present == y->tls.present && x->tls.insecure == y->tls.insecure &&
                  bh_streq(x->tls.server_name, y->tls.server_name) &&
                  same_bytes(x->tls.key_data, y->tls.key_data) &&
                  same_bytes(x->tls.cert_data, y->tls.cert_data) &&
                  same_bytes(x->tls.ca_data, y->tls.ca_data));
    }
}

static void same_scalars(const struct bh_sched_config *a, const struct bh_sched_config *b)
{
    const struct bh_client_config *k = &a->client_connection, *m = &b->client_connection;
    const struct bh_leader_config *l = &a->leader_election, *n = &b->leader_election;

    CU_ASSERT(a->parallelism == b->parallelism &&
              a->percentage_of_nodes_to_score == b->percentage_of_nodes_to_score &&
              a->pod_initial_backoff_ns == b->pod_initial_backoff_ns &&
              a->pod_max_backoff_ns == b->pod_max_backoff_ns &&
              a->delay_cache_until_active == b->delay_cache_until_active &&
              a->enable_profiling == b->enable_profiling &&
              a->enable_contention_profiling == b->enable_contention_profiling &&
              a->whole_objects == b->whole_objects);
    CU_ASSERT(k->qps == m->qps && k->burst == m->burst);
    CU_ASSERT(bh_streq(k->kubeconfig, m->kubeconfig) &&
              bh_streq(k->accept_content_types, m->accept_content_types) &&
              bh_streq(k->content_type, m->content_type));
    CU_ASSERT(l->leader_elect == n->leader_elect && l->lease_duration_ns == n->lease_duration_ns &&
              l->renew_deadline_ns == n->renew_deadline_ns &&
              l->retry_period_ns == n->retry_period_ns &&
              bh_streq(l->resource_lock, n->resource_lock) &&
              bh_streq(l->resource_name, n->resource_name) &&
              bh_streq(l->resource_namespace, n->resource_namespace));
}

/* What the file allows: requests that a client of it may send at once, of REQUESTS. */
static unsigned count_requests(const char *file)
{
    char *path = bh_asprintf("%s/config.yaml", bh_test_tmpdir());
    const char *const words[] = {"--config", path, "--master=http://127.0.0.1:1"};
    const struct bh_api_own_flags own = {0};
    struct bh_kube_flags f;
    struct bh_api_limit limit;
    struct bh_api_setup s;
    struct bh_err err = {""};
    unsigned n = 0;

    CU_ASSERT_EQUAL_FATAL(bh_write_file(path, file, strlen(file), 0600), 0);
    parse(&f, words, BH_ARRAY_LEN(words));
    if (bh_api_setup_load(&s, &f, &own, NULL, &err) < 0)
        fprintf(stderr, "  %s\n", err.msg);
    const struct bh_api_options o = bh_api_setup_options(&s, false);
    CU_ASSERT_EQUAL_FATAL(bh_api_limit_init(&limit, o.qps, o.burst, NULL, &err), 0);
    while (n < REQUESTS && bh_api_limit_take(&limit, 1))
        n++;
    bh_api_limit_fini(&limit);
    bh_api_setup_fini(&s);
    bh_kube_flags_free(&f);
    unlink(path);
    free(path);
    return n;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static char *written(const struct bh_sched_config *c)
{
    struct bh_buf b = {0};

    bh_sched_config_write(c, BH_SCHED_CONFIG_YAML, true, &b);
    return bh_buf_take(&b);
}

static void test_written_configuration_limits_only_what_was_limited(void)
{
    static const struct {
        const char *file;
        unsigned requests;
    } cases[] = {{HEAD, REQUESTS},
                 {HEAD "clientConnection: {qps: 0}\n", REQUESTS},
                 {HEAD "clientConnection: {burst: 7}\n", REQUESTS},
                 {HEAD "clientConnection: {qps: -1, burst: 7}\n", REQUESTS},
                 {HEAD "clientConnection: {qps: 50}\n", 100},
                 {HEAD "clientConnection: {qps: 3, burst: 7}\n", 7}};

    for (size_t i = 0; i < BH_ARRAY_LEN(cases); i++) {
        struct fx_read f = fx_good(cases[i].file);
        BH_CLEANUP(bh_freep) char *once = written(f.c);
        CU_ASSERT_EQUAL(count_requests(cases[i].file), cases[i].requests);
        CU_ASSERT_EQUAL(count_requests(once), cases[i].requests);
        fx_done(&f);
    }
}

static void test_limit_of_kube_schedulers_default_in_file_is_warned_of(void)
{
    struct fx_read f = fx_good(HEAD "clientConnection:\n  qps: 50\n");

    CU_ASSERT(fx_warned(&f, 4, "allows at most 50 bindings a second"));
    fx_done(&f);
    f = fx_good(HEAD "clientConnection: {qps: 51}\n");
    CU_ASSERT_EQUAL(f.r.warnings.n, 0);
    fx_done(&f);
    f = fx_good(HEAD);
    CU_ASSERT_EQUAL(f.r.warnings.n, 0);
    fx_done(&f);
}

/* false: the file is not valid. */
static bool round_trip(const char *file)
{
    const char *const gate = gates[pick(BH_ARRAY_LEN(gates))];
    const char *const words[] = {gate, others[pick(BH_ARRAY_LEN(others))],
                                 others[pick(BH_ARRAY_LEN(others))], "--config=f"};
    const char *const same[] = {gate, "--config=f"};
    struct bh_kube_flags f, g;
    struct fx_read a;

    if (fx_text(&a, file) < 0) {
        fx_done(&a);
        return false;
    }
    parse(&f, words, 3 + pick(2));
    parse(&g, same, BH_ARRAY_LEN(same));
    bh_sched_config_apply_flags(a.c, &f);
    BH_CLEANUP(bh_freep) char *once = written(a.c);
    struct fx_read b;
    if (fx_text(&b, once) < 0)
        fprintf(stderr, "  %s\n%s\nis written as\n%s", b.r.summary, file, once);
    CU_ASSERT_FATAL(b.c != NULL);
    bh_sched_config_apply_flags(b.c, &g);
    BH_CLEANUP(bh_freep) char *twice = written(b.c);
    const unsigned before = CU_get_number_of_failures();
    CU_ASSERT(bh_streq(once, twice));
    same_scalars(a.c, b.c);
    same_profiles(a.c, b.c);
    same_extenders(a.c, b.c);
    if (CU_get_number_of_failures() != before)
        fprintf(stderr, "  %s %s %s\n%s", gate, words[1], words[2], file);
    fx_done(&a);
    fx_done(&b);
    bh_kube_flags_free(&f);
    bh_kube_flags_free(&g);
    return true;
}

/* As a file that `berth config show -o yaml` converted once: gates add the same plugins to it. */
static void convert(const char *file)
{
    const char *const words[] = {gates[pick(BH_ARRAY_LEN(gates))], "--config=f"};
    struct bh_kube_flags f;
    struct fx_read a, b;

    if (fx_text(&a, file) == 0) {
        parse(&f, words, BH_ARRAY_LEN(words));
        BH_CLEANUP(bh_freep) char *v1 = written(a.c);
        const unsigned before = CU_get_number_of_failures();
        b = fx_good(v1);
        bh_sched_config_apply_flags(a.c, &f);
        bh_sched_config_apply_flags(b.c, &f);
        same_profiles(a.c, b.c);
        if (CU_get_number_of_failures() != before)
            fprintf(stderr, "  %s\n%s", words[0], file);
        fx_done(&b);
        bh_kube_flags_free(&f);
    }
    fx_done(&a);
}

static void test_random_configuration_acts_the_same_when_read_again(void)
{
    unsigned valid = 0;

    bh_rand_seed(&rnd, 35);
    for (unsigned i = 0; i < FILES; i++) {
        struct bh_buf b = {0};
        add_file(&b);
        valid += round_trip(b.p);
        convert(b.p);
        bh_buf_fini(&b);
    }
    printf("# %u files of %u are valid\n", valid, FILES);
    CU_ASSERT(valid > FILES / 2);
}

BH_TESTS("scheduler/config/round_trip",
         {"a written configuration limits only what was limited",
          test_written_configuration_limits_only_what_was_limited},
         {"kube-scheduler's default limit in a file is warned of",
          test_limit_of_kube_schedulers_default_in_file_is_warned_of},
         {"a random configuration acts the same when it is read again",
          test_random_configuration_acts_the_same_when_read_again})
