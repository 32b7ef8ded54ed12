/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scheduler/config/fixture.h"

/* ---- identity -------------------------------------------------------------------------------- */

static void test_identity(void)
{
    static const struct fx_bad cases[] = {
        {"", "Object 'Kind' is missing in ''", 0},
        {"apiVersion: kubescheduler.config.k8s.io/v1\n",
         "Object 'Kind' is missing in 'apiVersion: kubescheduler.config.k8s.io/v1\n'", 1},
        {"kind: KubeSchedulerConfiguration\n",
         "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration\n'", 1},
        {"{\"kind\": \"\"}", "Object 'Kind' is missing in '{\"kind\": \"\"}'", 1},
        {"apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n",
         "no kind \"KubeSchedulerConfiguration\" is registered for version "
         "\"kubescheduler.config.k8s.io/v1beta1\" " SCHEME,
         1},
        {"apiVersion: v1\nkind: Pod\n", "no kind \"Pod\" is registered for version \"v1\" " SCHEME,
         1},
        {"apiVersion: kubescheduler.config.k8s.io/v1\nkind: Pod\n",
         "no kind \"Pod\" is registered for version \"kubescheduler.config.k8s.io/v1\" " SCHEME, 1},
        {"apiVersion: kubescheduler.config.k8s.io/v1\nkind: DefaultPreemptionArgs\n",
         "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, "
         "Kind=DefaultPreemptionArgs: ",
         1},
        {"apiVersion: a/b/c\nkind: X\n", "unexpected GroupVersion string: a/b/c", 1},
        {"- 1\n",
         "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value "
         "of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
         "\"json:\\\"kind,omitempty\\\"\" }",
         1},
        {"kind: 7\n",
         "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go "
         "struct field .kind of type string",
         1},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

static void test_long_file_in_message(void)
{
    struct bh_buf b = {0};
    struct fx_read f;

    for (unsigned i = 0; i < 2000; i++)
        bh_buf_addf(&b, "# comment number %u\n", i);
    CU_ASSERT(fx_text(&f, bh_buf_str(&b)) == -EINVAL);
    CU_ASSERT(strncmp(f.r.summary, "Object 'Kind' is missing in '# comment", 38) == 0);
    CU_ASSERT(strlen(f.r.summary) < 4200);
    CU_ASSERT(bh_streq(f.r.summary + strlen(f.r.summary) - 4, "...'"));
    fx_done(&f);
    bh_buf_fini(&b);
}

/* ---- strictness ------------------------------------------------------------------------------ */

#define STRICT "strict decoding error: "
#define FIELD  STRICT "unknown field "

static void test_unknown_fields(void)
{
    static const struct fx_bad cases[] = {
        {HEAD "foo: 1\n", FIELD "\"foo\"", 3},
        {HEAD "Parallelism: 1\n", FIELD "\"Parallelism\"", 3},
        {HEAD "debugging: {}\n", FIELD "\"debugging\"", 3},
        {HEAD "healthzBindAddress: ''\n", FIELD "\"healthzBindAddress\"", 3},
        {HEAD "b: 2\na: 1\n", FIELD "\"a\", unknown field \"b\"", 4},
        {HEAD "leaderElection:\n  foo: 1\n", FIELD "\"leaderElection.foo\"", 4},
        {HEAD "clientConnection: {QPS: 1}\n", FIELD "\"clientConnection.QPS\"", 3},
        {HEAD "profiles:\n- schedulerName: a\n  foo: 1\n", FIELD "\"profiles[0].foo\"", 5},
        {HEAD "profiles: [{plugins: {Filter: {}}}]\n", FIELD "\"profiles[0].plugins.Filter\"", 3},
        {HEAD
         "profiles:\n- plugins:\n    filter:\n      enabled:\n      - {name: NodeName, at: 1}\n",
         FIELD "\"profiles[0].plugins.filter.enabled[0].at\"", 7},
        {HEAD "profiles: [{pluginConfig: [{name: A, arg: {}}]}]\n",
         FIELD "\"profiles[0].pluginConfig[0].arg\"", 3},
        {HEAD "extenders: [{}, {bindverb: x}]\n", FIELD "\"extenders[1].bindverb\"", 3},
        {HEAD "extenders: [{tlsConfig: {ca: x}}]\n", FIELD "\"extenders[0].tlsConfig.ca\"", 3},
        {HEAD "extenders: [{managedResources: [{ignored: true}]}]\n",
         FIELD "\"extenders[0].managedResources[0].ignored\"", 3},
        {BETA3 "delayCacheUntilActive: true\n", FIELD "\"delayCacheUntilActive\"", 3},
        {BETA3 "profiles: [{percentageOfNodesToScore: 3}]\n",
         FIELD "\"profiles[0].percentageOfNodesToScore\"", 3},
        {BETA2 "profiles: [{plugins: {multiPoint: {}}}]\n",
         FIELD "\"profiles[0].plugins.multiPoint\"", 3},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

#define NESTED(plugin)                                                                             \
    "decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for "             \
    "plugin " plugin ": strict decoding error: unknown field "

static void test_unknown_args(void)
{
    static const struct fx_bad cases[] = {
        {ARGS "  - name: InterPodAffinity\n    args:\n      x: 1\n",
         STRICT NESTED("InterPodAffinity") "\"x\"", 7},
        {ARGS "  - name: NodeAffinity\n    args:\n      addedAffinity:\n        required: {}\n",
         STRICT NESTED("NodeAffinity") "\"addedAffinity.required\"", 8},
        {ARGS "  - name: NodeAffinity\n    args: {addedAffinity: "
              "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: "
              "{matchExpressions: [{key: a, operator: In, value: b}]}}]}}\n",
         STRICT NESTED("NodeAffinity") "\"addedAffinity."
                                       "preferredDuringSchedulingIgnoredDuringExecution[0]."
                                       "preference.matchExpressions[0].value\"",
         6},
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {resources: [{nam: a}]}}\n",
         STRICT NESTED("NodeResourcesFit") "\"scoringStrategy.resources[0].nam\"", 6},
        {ARGS "  - name: PodTopologySpread\n    args: {defaultConstraints: [{labels: {}}]}\n",
         STRICT NESTED("PodTopologySpread") "\"defaultConstraints[0].labels\"", 6},
        {ARGS "  - name: VolumeBinding\n    args: {shape: [{util: 1}]}\n",
         STRICT NESTED("VolumeBinding") "\"shape[0].util\"", 6},
        {HEAD "a: 1\nprofiles:\n- pluginConfig:\n  - name: DynamicResources\n    args: {x: 1}\n",
         FIELD "\"a\", " NESTED("DynamicResources") "\"x\"", 3},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

static void test_repeated_keys(void)
{
    static const struct fx_bad cases[] = {
        {HEAD "parallelism: 1\nqps: 1\nparallelism: 2\n",
         STRICT "yaml: unmarshal errors:\n  line 5: key \"parallelism\" already set in map, "
                "unknown field \"qps\"",
         5},
        {HEAD "leaderElection: {leaderElect: true, leaderElect: true}\nleaderElection:\n  "
              "leaderElect: false\n",
         STRICT "yaml: unmarshal errors:\n  line 3: key \"leaderElect\" already set in map\n  line "
                "5: key \"leaderElection\" already set in map",
         3},
        {"{\"apiVersion\": \"kubescheduler.config.k8s.io/v1\",\n\"kind\": "
         "\"KubeSchedulerConfiguration\",\n\"parallelism\": 1,\n\"parallelism\": 2}",
         STRICT "duplicate field \"parallelism\"", 4},
        {"{\"apiVersion\": \"kubescheduler.config.k8s.io/v1\", \"kind\": "
         "\"KubeSchedulerConfiguration\", \"profiles\": [{\"schedulerName\": \"a\", "
         "\"schedulerName\": \"a\"}]}",
         STRICT "duplicate field \"profiles[0].schedulerName\"", 1},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

/* What << brings is no repetition. */
static void test_merge_keys(void)
{
    struct fx_read f;

    CU_ASSERT(fx_text(&f, HEAD "clientConnection: &c {burst: 7}\nleaderElection:\n  <<: *c\n") < 0);
    CU_ASSERT_STRING_EQUAL(f.r.summary, FIELD "\"leaderElection.burst\"");
    fx_done(&f);
    f = fx_good(HEAD "profiles:\n- &p\n  schedulerName: a\n  percentageOfNodesToScore: 7\n"
                     "- <<: *p\n  schedulerName: b\n");
    CU_ASSERT(f.c->n_profiles == 2 && f.c->profiles[1].percentage_of_nodes_to_score == 7);
    CU_ASSERT_STRING_EQUAL(f.c->profiles[1].scheduler_name, "b");
    fx_done(&f);
}

/* ---- types ----------------------------------------------------------------------------------- */

#define INTO(what, field, type)                                                                    \
    "json: cannot unmarshal " what " into Go struct field " field " of type " type

static void test_wrong_types(void)
{
    static const struct fx_bad cases[] = {
        {HEAD "parallelism: many\n",
         INTO("string", "KubeSchedulerConfiguration.parallelism", "int32"), 3},
        {HEAD "parallelism: 3.5\n",
         INTO("number 3.5", "KubeSchedulerConfiguration.parallelism", "int32"), 3},
        {HEAD "parallelism: '3'\n",
         INTO("string", "KubeSchedulerConfiguration.parallelism", "int32"), 3},
        {HEAD "parallelism: 3000000000\n",
         INTO("number 3000000000", "KubeSchedulerConfiguration.parallelism", "int32"), 3},
        {HEAD "parallelism: {}\n",
         INTO("object", "KubeSchedulerConfiguration.parallelism", "int32"), 3},
        {HEAD "enableProfiling: 1\n",
         INTO("number", "KubeSchedulerConfiguration.enableProfiling", "bool"), 3},
        {HEAD "podMaxBackoffSeconds: 1e30\n",
         INTO("number 1e+30", "KubeSchedulerConfiguration.podMaxBackoffSeconds", "int64"), 3},
        {HEAD "clientConnection: {qps: 1e39}\n",
         INTO("number 1e+39", "ClientConnectionConfiguration.clientConnection.qps", "float32"), 3},
        {HEAD "clientConnection: {qps: fast}\n",
         INTO("string", "ClientConnectionConfiguration.clientConnection.qps", "float32"), 3},
        {HEAD "leaderElection: {leaseDuration: 15}\n",
         INTO("number", "LeaderElectionConfiguration.leaderElection.leaseDuration", "string"), 3},
        {HEAD "leaderElection: yes\n",
         INTO("bool", "KubeSchedulerConfiguration.leaderElection",
              "v1alpha1.LeaderElectionConfiguration"),
         3},
        {HEAD "profiles: {}\n",
         INTO("object", "KubeSchedulerConfiguration.profiles", "[]v1.KubeSchedulerProfile"), 3},
        {HEAD "profiles:\n- 1\n",
         INTO("number", "KubeSchedulerConfiguration.profiles", "v1.KubeSchedulerProfile"), 4},
        {HEAD "profiles: [{schedulerName: 7}]\n",
         INTO("number", "KubeSchedulerProfile.profiles.schedulerName", "string"), 3},
        {HEAD "profiles:\n- plugins:\n    score:\n      enabled:\n      - {name: A, weight: x}\n",
         INTO("string", "Plugin.profiles.plugins.score.enabled.weight", "int32"), 7},
        {HEAD "extenders: [{httpTimeout: 5}]\n",
         INTO("number", "Extender.extenders.httpTimeout", "string"), 3},
        {HEAD "extenders: [{weight: 1.5}]\n",
         INTO("number 1.5", "Extender.extenders.weight", "int64"), 3},
        {BETA3 "profiles: 1\n",
         INTO("number", "KubeSchedulerConfiguration.profiles", "[]v1beta3.KubeSchedulerProfile"),
         3},
        /* The first one by name, as YAML's keys are sorted upstream. */
        {HEAD "profiles: 1\nextenders: 2\n",
         INTO("number", "KubeSchedulerConfiguration.extenders", "[]v1.Extender"), 4},
        /* A wrong type hides unknown fields. */
        {HEAD "a: 1\nparallelism: x\n",
         INTO("string", "KubeSchedulerConfiguration.parallelism", "int32"), 4},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

static void test_wrong_texts(void)
{
    static const struct fx_bad cases[] = {
        {HEAD "leaderElection: {leaseDuration: 15x}\n",
         "time: unknown unit \"x\" in duration \"15x\"", 3},
        {HEAD "leaderElection: {leaseDuration: '15'}\n", "time: missing unit in duration \"15\"",
         3},
        {HEAD "leaderElection: {leaseDuration: abc}\n", "time: invalid duration \"abc\"", 3},
        {HEAD "leaderElection: {leaseDuration: ''}\n", "time: invalid duration \"\"", 3},
        {HEAD "leaderElection: {leaseDuration: 9999999999h}\n",
         "time: invalid duration \"9999999999h\"", 3},
        {HEAD "extenders: [{tlsConfig: {caData: 'ab!d'}}]\n", "illegal base64 data at input byte 2",
         3},
        {HEAD "extenders: [{tlsConfig: {caData: 'abc'}}]\n", "illegal base64 data at input byte 0",
         3},
        {HEAD "extenders: [{tlsConfig: {caData: 'YQ=x'}}]\n", "illegal base64 data at input byte 2",
         3},
        {HEAD "extenders: [{tlsConfig: {caData: 'YQ==YQ=='}}]\n",
         "illegal base64 data at input byte 4", 3},
        {HEAD "profiles: [{schedulerName: \"a\\0b\"}]\n",
         "profiles[0].schedulerName: Invalid value: must not contain a NUL byte", 3},
    };

    fx_refused(cases, BH_ARRAY_LEN(cases));
}

static void test_args_kind(void)
{
#define AT "decoding .profiles[0].pluginConfig[0]: "
    static const struct fx_bad cases[] = {
        {ARGS "  - name: InterPodAffinity\n    args: {kind: NodeAffinityArgs}\n",
         AT "args for plugin InterPodAffinity were not of type "
            "InterPodAffinityArgs.kubescheduler.config.k8s.io, got "
            "NodeAffinityArgs.kubescheduler.config.k8s.io",
         6},
        {ARGS "  - name: InterPodAffinity\n    args: {kind: Foo}\n",
         AT "decoding args for plugin InterPodAffinity: no kind \"Foo\" is registered for version "
            "\"kubescheduler.config.k8s.io/v1\" " SCHEME,
         6},
        {ARGS "  - name: InterPodAffinity\n    args: {apiVersion: "
              "kubescheduler.config.k8s.io/v1beta3}\n",
         AT "decoding args for plugin InterPodAffinity: no kind \"InterPodAffinityArgs\" is "
            "registered for version \"kubescheduler.config.k8s.io/v1beta3\" " SCHEME,
         6},
        {ARGS "  - name: InterPodAffinity\n    args: 5\n",
         AT "decoding args for plugin InterPodAffinity: couldn't get version/kind; json parse "
            "error: json: cannot unmarshal number into Go value of type struct { APIVersion string "
            "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
         6},
        {ARGS "  - name: InterPodAffinity\n    args:\n      hardPodAffinityWeight: x\n",
         AT "decoding args for plugin InterPodAffinity: json: cannot unmarshal string into Go "
            "struct field InterPodAffinityArgs.hardPodAffinityWeight of type int32",
         7},
        /* A string may have a type of its own, of the configuration's package or of another. */
        {ARGS "  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: 1}}\n",
         AT "decoding args for plugin NodeResourcesFit: json: cannot unmarshal number into Go "
            "struct field ScoringStrategy.scoringStrategy.type of type v1.ScoringStrategyType",
         6},
        {ARGS
         "  - name: PodTopologySpread\n    args: {defaultConstraints: [{whenUnsatisfiable: []}]}\n",
         AT
         "decoding args for plugin PodTopologySpread: json: cannot unmarshal array into Go struct "
         "field TopologySpreadConstraint.defaultConstraints.whenUnsatisfiable of type "
         "v1.UnsatisfiableConstraintAction",
         6},
    };
    struct fx_read f;

    fx_refused(cases, BH_ARRAY_LEN(cases));
    f = fx_good(ARGS "  - name: InterPodAffinity\n    args: {kind: InterPodAffinityArgs, "
                     "apiVersion: kubescheduler.config.k8s.io/v1}\n");
    fx_done(&f);
    f = fx_good(BETA3 "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {apiVersion: "
                      "kubescheduler.config.k8s.io/v1beta3, kind: InterPodAffinityArgs}}]}]\n");
    fx_done(&f);
    /* Args of what is no plugin stay as they are. */
    f = fx_good(ARGS "  - name: Foo\n    args: [1, {a: b}]\n");
    CU_ASSERT(fx_warned(&f, 5, "no plugin \"Foo\""));
    fx_done(&f);
}

/* null is absent, in lists an empty entry. */
static void test_nulls(void)
{
    struct fx_read f = fx_good(HEAD "parallelism: null\nprofiles: [null]\nextenders: [~]\n"
                                    "leaderElection: {leaseDuration: null}\n");

    CU_ASSERT(f.c->parallelism == 16 && f.c->n_profiles == 1 && f.c->n_extenders == 1);
    CU_ASSERT_STRING_EQUAL(f.c->profiles[0].scheduler_name, "default-scheduler");
    fx_done(&f);
    f = fx_good(ARGS "  - name: NodeResourcesFit\n    args: null\n  - null\n");
    fx_done(&f);
}

/* ---- syntax ---------------------------------------------------------------------------------- */

static void test_syntax(void)
{
    static const struct fx_bad cases[] = {
        {"a: [1,\nb: }\n", "yaml: line 1: did not find expected node content", 2},
        {"a\nb: c\n", "yaml: line 2: mapping values are not allowed in this context", 2},
        {"a: \"b\n", "yaml: line 2: found unexpected end of stream", 2},
        {"[a: b", "yaml: line 1: did not find expected ',' or ']'", 2},
        {"[a}", "yaml: did not find expected ',' or ']'", 1},
        {HEAD "x: {a: b} c\n", "yaml: line 2: did not find expected key", 3},
        {"a: \xff\n", "yaml: invalid leading UTF-8 octet", 1},
        {"a: b\x01\n", "yaml: control characters are not allowed", 1},
        {"a: *x\n", "yaml: unknown anchor", 1},
        {"a: &x [*x]\n", "yaml: anchor contains itself", 1},
        {"{\"kind\": 1,}",
         "couldn't get version/kind; json parse error: expected a string as "
         "member name",
         1},
        {"{\"kind\":\n \"a", "couldn't get version/kind; json parse error: unexpected end of input",
         2},
    };
    struct fx_read f;

    fx_refused(cases, BH_ARRAY_LEN(cases));
    f = fx_good("---\n" HEAD "---\nx: [\n");
    CU_ASSERT(f.r.warnings.n == 1);
    CU_ASSERT(fx_warned(&f, 0, "only the first document of the file is read"));
    fx_done(&f);
    f = fx_good("---\n" HEAD "...\n");
    CU_ASSERT(f.r.warnings.n == 0);
    fx_done(&f);
}

BH_TESTS("scheduler/config/decode", {"identity", test_identity},
         {"a long file is cut in the message", test_long_file_in_message},
         {"unknown fields are refused everywhere", test_unknown_fields},
         {"unknown fields of args are refused", test_unknown_args},
         {"repeated keys are refused", test_repeated_keys}, {"merge keys work", test_merge_keys},
         {"wrong types read as upstream's", test_wrong_types},
         {"texts of a form are checked", test_wrong_texts},
         {"args are of their plugin's kind", test_args_kind}, {"null is absent", test_nulls},
         {"syntax errors read as upstream's", test_syntax})
