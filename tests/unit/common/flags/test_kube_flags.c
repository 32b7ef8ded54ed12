/* SPDX-License-Identifier: Apache-2.0
 *
 * tests/unit/common/flags/test_kube_flags.c - kube-scheduler's command line: values, order of
 * precedence, upstream's texts
 */
#include "common/flags/kube_flags.h"
#include "common/base/buf.h"
#include "tests/unit/harness.h"

#include <errno.h>
#include <unistd.h>

static struct bh_kube_flags f;
static struct bh_err err;
static const char *dir;
static const struct bh_opt own[] = {{"runtime-dir", 0, BH_OPT_STR, &dir, "DIR", "sockets"}, {0}};
static const struct bh_opt_usage usage = {.program = "prog", .about = "Does things."};

static int parse_v(const char *const *words)
{
    static char *argv[40];
    int argc = 0;

    for (; words[argc]; argc++)
        argv[argc] = (char *)words[argc];
    bh_kube_flags_free(&f);
    err.msg[0] = 0;
    dir = NULL;
    return bh_kube_flags_parse(&f, own, &usage, argc, argv, &err);
}
#define PARSE(...) parse_v((const char *const[]){"prog", __VA_ARGS__ __VA_OPT__(, ) NULL})
#define REFUSED(text, ...)                                                                         \
    do {                                                                                           \
        CU_ASSERT_EQUAL_FATAL(PARSE(__VA_ARGS__), 0);                                              \
        CU_ASSERT_EQUAL(bh_kube_flags_validate(&f, &err), -EINVAL);                                \
        CU_ASSERT_STRING_EQUAL(err.msg, text);                                                     \
    } while (0)
#define WRONG(text, ...)                                                                           \
    do {                                                                                           \
        CU_ASSERT_EQUAL(PARSE(__VA_ARGS__), -EINVAL);                                              \
        CU_ASSERT_STRING_EQUAL(err.msg, text);                                                     \
    } while (0)

static void test_kubeadm(void)
{
    CU_ASSERT_EQUAL_FATAL(PARSE("--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
                                "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
                                "--bind-address=127.0.0.1", "--runtime-dir", "/run/x",
                                "--kubeconfig=/etc/kubernetes/scheduler.conf",
                                "--leader-elect=true"),
                          0);
    CU_ASSERT_EQUAL(bh_kube_flags_validate(&f, &err), 0);
    CU_ASSERT_STRING_EQUAL(f.authn.kubeconfig, "/etc/kubernetes/scheduler.conf");
    CU_ASSERT_STRING_EQUAL(f.authz.kubeconfig, "/etc/kubernetes/scheduler.conf");
    CU_ASSERT_STRING_EQUAL(f.kubeconfig, "/etc/kubernetes/scheduler.conf");
    CU_ASSERT_STRING_EQUAL(dir, "/run/x");
    CU_ASSERT(f.serving.secure_port == 10259 && f.leader.leader_elect && f.verbosity == 0);
    CU_ASSERT(f.authz.always_allow_paths.n == 3 && f.authn.tolerate_lookup_failure);
    CU_ASSERT(f.pod_max_in_unschedulable_ns == 300 * INT64_C(1000000000) && f.profiling);
    CU_ASSERT_STRING_EQUAL(f.serving.bind_address, "127.0.0.1");
    CU_ASSERT(bh_kube_flags_given(&f, "bind-address") && !bh_kube_flags_given(&f, "secure-port"));
}

static void test_kinds(void)
{
    CU_ASSERT_EQUAL_FATAL(
        PARSE("--kube-api-qps=12.5", "--kube_api_burst=7", "-v4", "--bind-address", "::1",
              "--tls-sni-cert-key=a.crt,a.key:*.a.com,b.com", "--tls-sni-cert-key=b.crt,b.key",
              "--feature-gates=NodeSwap=true,GenericWorkload=true",
              "--feature-gates=GangScheduling=true", "--profiling=false"),
        0);
    CU_ASSERT(f.kube_api_qps == 12.5 && f.kube_api_burst == 7 && f.verbosity == 4);
    CU_ASSERT_EQUAL_FATAL(f.serving.tls_sni_cert_key.n, 2);
    CU_ASSERT_STRING_EQUAL(f.serving.tls_sni_cert_key.v[0], "a.crt,a.key:*.a.com,b.com");
    CU_ASSERT_EQUAL(f.feature_gates.n, 3);
    CU_ASSERT(bh_kube_flags_gate(&f, "GangScheduling") && !f.profiling);
    CU_ASSERT_EQUAL(bh_kube_flags_validate(&f, &err), 0);
}

static void test_wrong_words(void)
{
    WRONG("unknown flag: --port", "--port=10251");
    WRONG("unknown flag: --address", "--address", "0.0.0.0");
    WRONG("unexpected argument: x", "x");
    WRONG("flag needs an argument: --config", "--config");
    WRONG("invalid argument \"x\" for \"--bind-address\" flag: failed to parse IP: \"x\"",
          "--bind-address=x");
    WRONG("invalid argument \"fast\" for \"--kube-api-qps\" flag: strconv.ParseFloat: parsing "
          "\"fast\": invalid syntax",
          "--kube-api-qps=fast");
    WRONG("invalid argument \"1e99\" for \"--kube-api-qps\" flag: strconv.ParseFloat: parsing "
          "\"1e99\": value out of range",
          "--kube-api-qps=1e99");
    WRONG("invalid argument \"2147483648\" for \"--kube-api-burst\" flag: strconv.ParseInt: "
          "parsing \"2147483648\": value out of range",
          "--kube-api-burst=2147483648");
    WRONG("invalid argument \"-1\" for \"-v, --v\" flag: strconv.ParseUint: parsing \"-1\": "
          "invalid syntax",
          "--v=-1");
    WRONG("invalid argument \"5\" for \"--leader-elect-lease-duration\" flag: time: invalid "
          "duration \"5\"",
          "--leader-elect-lease-duration=5");
    WRONG("invalid argument \"x\" for \"--version\" flag: strconv.ParseBool: parsing \"x\": "
          "invalid syntax",
          "--version=x");
}

static void test_refusals(void)
{
    REFUSED("--secure-port 70000 must be between 1 and 65535, inclusive. It cannot be turned off "
            "with 0",
            "--secure-port=70000");
    REFUSED("--secure-port -1 must be between 0 and 65535, inclusive. 0 for turning off secure "
            "port",
            "--secure-port=-1");
    REFUSED("unrecognized feature gate: Foo", "--feature-gates=Foo=true", "--secure-port=-1");
    REFUSED("format: Invalid value: \"xml\": Unsupported log format", "--logging-format=xml",
            "--secure-port=-1");
    REFUSED("[vmodule: Forbidden: Only supported for text log format, options.json.splitStream: "
            "Forbidden: Feature LoggingAlphaOptions is disabled]",
            "--logging-format=json", "--vmodule=queue=4", "--log-json-split-stream");
    REFUSED("flushFrequency: Invalid value: \"0s\": Must be greater than zero",
            "--log-flush-frequency=0");
    REFUSED("invalid argument \"queue\" for \"--vmodule\" flag: \"queue\" does not have the "
            "pattern=N format",
            "--vmodule=queue");
    REFUSED("[emulation version 1.37 is not between [1.33, 1.36.0], --secure-port 70000 must be "
            "between 1 and 65535, inclusive. It cannot be turned off with 0, unknown tls version "
            "\"SSL3\", empty value in \"requestheader-allowed-names\"]",
            "--emulated-version=1.37", "--secure-port=70000", "--tls-min-version=SSL3",
            "--requestheader-allowed-names=a, ,b");
    REFUSED("metrics.showHiddenMetricsForVersion: Invalid value: \"1.20\": must be omitted or have "
            "the value '1.35'; only the previous minor version is allowed",
            "--show-hidden-metrics-for-version=1.20");
    REFUSED("metrics.allowListMapping: Invalid value: \"m=v\": must have keys with format "
            "`metricName,labelName` where metricName matches \"[a-zA-Z_:][a-zA-Z0-9_:]*\" and "
            "labelName matches \"[a-zA-Z_][a-zA-Z0-9_]*\"",
            "--allow-metric-labels=m=v");
    CU_ASSERT_EQUAL(PARSE("--allow-metric-labels=m,l=v,w", "--allow-metric-labels",
                          "\"m,l=v,w\",\"n:x,k=v\"", "--show-hidden-metrics-for-version=1.35",
                          "--log-text-split-stream", "--feature-gates=LoggingAlphaOptions=true",
                          "--requestheader-uid-headers=x-remote-uid"),
                    0);
    CU_ASSERT_EQUAL(bh_kube_flags_validate(&f, &err), 0);
}

static struct bh_component_config file_of(const char *kubeconfig)
{
    struct bh_component_config c;

    CU_ASSERT_EQUAL_FATAL(bh_component_config_of(NULL, &c, NULL), 0);
    c.client.kubeconfig = kubeconfig;
    return c;
}

static void test_precedence(void)
{
    struct bh_component_config c = file_of("");

    CU_ASSERT_EQUAL_FATAL(PARSE("--kubeconfig=k", "--kube-api-qps=3", "--kube-api-burst=4",
                                "--kube-api-content-type=application/json", "--leader-elect=false",
                                "--leader-elect-resource-name=mine"),
                          0);
    bh_kube_flags_apply(&f, &c);
    CU_ASSERT_STRING_EQUAL(c.client.kubeconfig, "k");
    CU_ASSERT_STRING_EQUAL(c.client.content_type, "application/json");
    CU_ASSERT(c.client.qps == 3 && c.client.burst == 4);
    CU_ASSERT(!c.leader.leader_elect);
    CU_ASSERT_STRING_EQUAL(c.leader.resource_name, "mine");

    /* a file: the deprecated group is not looked at, leader election is */
    c = file_of("of-file");
    CU_ASSERT_EQUAL_FATAL(PARSE("--config=f.yaml", "--kubeconfig=k", "--kube-api-qps=3",
                                "--kube-api-content-type=application/json",
                                "--leader-elect-retry-period=1s"),
                          0);
    bh_kube_flags_apply(&f, &c);
    CU_ASSERT_STRING_EQUAL(c.client.kubeconfig, "of-file");
    CU_ASSERT(c.client.qps < 0 && c.leader.leader_elect);
    CU_ASSERT_STRING_EQUAL(c.client.content_type, "application/vnd.kubernetes.protobuf");
    CU_ASSERT_EQUAL(c.leader.retry_period_ns, INT64_C(1000000000));

    c = file_of(""); /* it names none: the flag serves */
    bh_kube_flags_apply(&f, &c);
    CU_ASSERT_STRING_EQUAL(c.client.kubeconfig, "k");

    c = file_of(""); /* defaults that nobody asked for are no limit */
    CU_ASSERT_EQUAL_FATAL(PARSE("--kube-api-burst=4"), 0);
    bh_kube_flags_apply(&f, &c);
    CU_ASSERT(c.client.burst == 4 && c.client.qps < 0);
}

static void join(void *arg, const char *word)
{
    struct bh_buf *b = arg;
    bh_buf_addf(b, "%s\n", word);
}

static void test_forward(void)
{
    struct bh_buf b = {0};

    CU_ASSERT_EQUAL_FATAL(PARSE("--runtime-dir=/run/x", "-v", "2", "--leader-elect",
                                "--tls-sni-cert-key=a,b:c,d", "--tls-sni-cert-key", "e,f",
                                "--authorization-always-allow-paths=/a", "--kube-api-qps=0.5",
                                "--authorization-always-allow-paths=/b,/c",
                                "--leader-elect-lease-duration=90s"),
                          0);
    bh_kube_flags_forward(&f, join, &b);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b), "--tls-sni-cert-key=a,b:c,d\n--tls-sni-cert-key=e,f\n"
                                           "--authorization-always-allow-paths=/a,/b,/c\n"
                                           "--kube-api-qps=0.5\n--leader-elect=true\n"
                                           "--leader-elect-lease-duration=1m30s\n--v=2\n");
    bh_buf_fini(&b);
}

static void each(void *arg, const char *name, const char *value, bool given)
{
    struct bh_buf *b = arg;

    if (given || bh_streq(name, "authorization-always-allow-paths") ||
        bh_streq(name, "pod-max-in-unschedulable-pods-duration"))
        bh_buf_addf(b, "%s:%s\n", name, value);
}

static void test_each(void)
{
    struct bh_buf b = {0};

    CU_ASSERT_EQUAL_FATAL(PARSE("--v=2", "--disabled-metrics=a,b", "--runtime-dir=/x"), 0);
    bh_kube_flags_each(&f, each, &b);
    CU_ASSERT_STRING_EQUAL(bh_buf_str(&b),
                           "authorization-always-allow-paths:[/healthz,/readyz,/livez]\n"
                           "disabled-metrics:[a,b]\n"
                           "pod-max-in-unschedulable-pods-duration:5m0s\nv:2\n");
    bh_buf_fini(&b);
}

/* Runs in a child with stdout in a file, because what is printed is the matter. */
static char *printed(const char *word, int *rc)
{
    char *path = bh_asprintf("%s/out", bh_test_tmpdir()), *text = NULL;
    size_t n;
    int old = dup(STDOUT_FILENO);

    fflush(stdout);
    CU_ASSERT_FATAL(freopen(path, "w", stdout) != NULL);
    *rc = PARSE(word);
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    close(old);
    CU_ASSERT_EQUAL_FATAL(bh_read_file(path, 1 << 20, &text, &n), 0);
    free(path);
    return text;
}

static void test_version_and_help(void)
{
    int rc;
    char *text = printed("--version", &rc);

    CU_ASSERT_EQUAL(rc, 1);
    CU_ASSERT_STRING_EQUAL(text, "prog " BH_VERSION " (Kubernetes v1.36)\n");
    free(text);
    text = printed("--version=raw", &rc);
    CU_ASSERT(rc == 1 &&
              strstr(text, "version.Info{Major:\"1\", Minor:\"36\", GitVersion:\"v1.36"));
    free(text);
    text = printed("--version=false", &rc);
    CU_ASSERT(rc == 0 && !*text);
    free(text);
    text = printed("--help", &rc);
    CU_ASSERT_EQUAL(rc, 1);
    char *mine = strstr(text, "--runtime-dir DIR"), *theirs = strstr(text, "\nLeader election (");
    CU_ASSERT(mine && theirs && mine < theirs && strstr(theirs, "--leader-elect "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "--secure-port N"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "(default 127.0.0.1)"));
    free(text);
    bh_kube_flags_free(&f);
}

BH_TESTS("common/data/kube_flags", {"what kubeadm passes", test_kubeadm},
         {"floats, levels, addresses, repeated lists", test_kinds},
         {"words that cannot be read: pflag's texts", test_wrong_words},
         {"values that make no sense: upstream's texts", test_refusals},
         {"the file wins over the deprecated group, flags over leaderElection", test_precedence},
         {"the flags that were given can be passed on", test_forward},
         {"all flags by name, as /flagz has them", test_each},
         {"--version and --help", test_version_and_help})
