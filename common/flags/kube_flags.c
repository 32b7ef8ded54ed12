/* SPDX-License-Identifier: Apache-2.0
 *
 * common/flags/kube_flags.c - kube-scheduler's command line, accepted by every Berth process
 *
 * One table of rows; a process's own rows stand before them. The merged table lives as long as the
 * flags do, because its order tells what was given.
 * Upstream: see kube_flags.h; differences: --bind-address is 127.0.0.1 by default; wrong usage
 * ends with status 2; klog's --logtostderr and the like are gone there, too.
 */
#include "common/flags/kube_flags.h"

#include <errno.h>
#include <math.h>

#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/base/loop.h"

#define NS_PER_S ((int64_t)1000000000)

struct row {
    const char *name;
    char letter;
    enum bh_opt_kind kind;
    size_t at;
    const char *arg, *help;
};
struct bh_kube_flags_impl {
    struct bh_opt *table; /* the process's rows, then ours */
    bool *given;
    size_t n, n_own;
    struct bh_err gates_error;
};

#define SECTION(title)                                                                             \
    {                                                                                              \
        "", 0, BH_OPT_SECTION, 0, NULL, (title)                                                    \
    }
#define ROW(n, k, f, arg, h)                                                                       \
    {                                                                                              \
        (n), 0, BH_OPT_##k, offsetof(struct bh_kube_flags, f), (arg), (h)                          \
    }
#define DEPRECATED "deprecated, without effect next to --config: "
static const struct row rows[] = {
    SECTION("Flags of kube-scheduler, as an operator's units have them. Misc"),
    ROW("config", STR, config, "FILE", "KubeSchedulerConfiguration; without it the defaults"),
    ROW("master", STR, master, "URL", "the API server; wins over the kubeconfig's"),
    ROW("write-config-to", STR, write_config_to, "FILE",
        "write the configuration with all defaults to this file and exit"),
    ROW("version", WORD, version, NULL, "print the version; --version=raw with all its parts"),

    SECTION("Secure serving (berth-front)"),
    ROW("bind-address", IP, serving.bind_address, NULL, "address of --secure-port"),
    ROW("secure-port", INT, serving.secure_port, NULL, "port of HTTPS; 0 does not serve"),
    ROW("disable-http2-serving", BOOL, serving.disable_http2_serving, NULL, "HTTP/1.1 only"),
    ROW("cert-dir", STR, serving.cert_dir, "DIR", "where a generated certificate is kept"),
    ROW("tls-cert-file", STR, serving.tls_cert_file, "FILE",
        "serving certificate, its chain behind it; without it one is generated"),
    ROW("tls-private-key-file", STR, serving.tls_private_key_file, "FILE", "its key"),
    ROW("tls-cipher-suites", STRLIST, serving.tls_cipher_suites, "NAME,...", "cipher suites"),
    ROW("tls-curve-preferences", STRLIST, serving.tls_curve_preferences, "N,...",
        "key exchange, by number of Go's crypto/tls"),
    ROW("tls-min-version", STR, serving.tls_min_version, "VERSION",
        "VersionTLS10, VersionTLS11, VersionTLS12, VersionTLS13"),
    ROW("tls-sni-cert-key", ARRAY, serving.tls_sni_cert_key, "CERT,KEY[:NAME,...]",
        "a pair for these host names; can be repeated"),
    ROW("http2-max-streams-per-connection", INT, serving.http2_max_streams, NULL,
        "0 takes the library's"),
    ROW("permit-port-sharing", BOOL, serving.permit_port_sharing, NULL, "SO_REUSEPORT"),
    ROW("permit-address-sharing", BOOL, serving.permit_address_sharing, NULL, "SO_REUSEADDR"),

    SECTION("Authentication of callers (berth-front)"),
    ROW("authentication-kubeconfig", STR, authn.kubeconfig, "FILE",
        "for TokenReview and the cluster's client CA; without it every token is anonymous"),
    ROW("authentication-token-webhook-cache-ttl", DURATION_NS, authn.token_cache_ttl_ns, NULL,
        "how long the answer about a token is kept"),
    ROW("client-ca-file", STR, authn.client_ca_file, "FILE", "CA of client certificates"),
    ROW("requestheader-username-headers", STRLIST, authn.requestheader_username_headers, "NAME,...",
        "headers of a front proxy: user"),
    ROW("requestheader-uid-headers", STRLIST, authn.requestheader_uid_headers, "NAME,...",
        "headers of a front proxy: uid"),
    ROW("requestheader-group-headers", STRLIST, authn.requestheader_group_headers, "NAME,...",
        "headers of a front proxy: groups"),
    ROW("requestheader-extra-headers-prefix", STRLIST, authn.requestheader_extra_prefixes,
        "PREFIX,...", "headers of a front proxy: extra"),
    ROW("requestheader-client-ca-file", STR, authn.requestheader_client_ca_file, "FILE",
        "CA of the front proxy's client certificate"),
    ROW("requestheader-allowed-names", STRLIST, authn.requestheader_allowed_names, "NAME,...",
        "common names the front proxy may have; none: any"),
    ROW("authentication-skip-lookup", BOOL, authn.skip_lookup, NULL,
        "do not look up the client CA in the cluster"),
    ROW("authentication-tolerate-lookup-failure", BOOL, authn.tolerate_lookup_failure, NULL,
        "go on when that fails"),

    SECTION("Authorization of callers (berth-front)"),
    ROW("authorization-kubeconfig", STR, authz.kubeconfig, "FILE",
        "for SubjectAccessReview; without it what is not always allowed is forbidden"),
    ROW("authorization-webhook-cache-authorized-ttl", DURATION_NS, authz.authorized_ttl_ns, NULL,
        "how long a yes is kept"),
    ROW("authorization-webhook-cache-unauthorized-ttl", DURATION_NS, authz.unauthorized_ttl_ns,
        NULL, "how long a no is kept"),
    ROW("authorization-always-allow-paths", STRLIST, authz.always_allow_paths, "PATH,...",
        "paths that need no permission"),

    SECTION("Deprecated"),
    ROW("profiling", BOOL, profiling, NULL, DEPRECATED "enableProfiling"),
    ROW("contention-profiling", BOOL, contention_profiling, NULL,
        DEPRECATED "enableContentionProfiling"),
    ROW("kubeconfig", STR, kubeconfig, "FILE", DEPRECATED "how to reach the API server"),
    ROW("kube-api-content-type", STR, kube_api_content_type, "TYPE",
        DEPRECATED "format of requests"),
    ROW("kube-api-qps", FLOAT, kube_api_qps, NULL,
        DEPRECATED "requests a second of each process; no limit unless given here or in the file"),
    ROW("kube-api-burst", INT32, kube_api_burst, NULL, DEPRECATED "burst above that limit"),
    ROW("pod-max-in-unschedulable-pods-duration", DURATION_NS, pod_max_in_unschedulable_ns, NULL,
        "after this time a pod that did not fit is tried again (also next to --config)"),

    SECTION("Leader election (flags that are given win over the file)"),
    ROW("leader-elect", BOOL, leader.leader_elect, NULL,
        "take decisions on this host only while it holds the lease"),
    ROW("leader-elect-lease-duration", DURATION_NS, leader.lease_duration_ns, NULL,
        "how long others wait after a renewal before they take the lease"),
    ROW("leader-elect-renew-deadline", DURATION_NS, leader.renew_deadline_ns, NULL,
        "how long after its last renewal this host decides and writes"),
    ROW("leader-elect-resource-lock", STR, leader.resource_lock, "KIND", "only leases"),
    ROW("leader-elect-resource-name", STR, leader.resource_name, "NAME", "of the lease"),
    ROW("leader-elect-resource-namespace", STR, leader.resource_namespace, "NAME", "of the lease"),
    ROW("leader-elect-retry-period", DURATION_NS, leader.retry_period_ns, NULL,
        "pause between two tries to acquire or renew the lease"),

    SECTION("Features"),
    ROW("emulated-version", STRLIST, emulated_version, "[kube=]1.N",
        "gates as in this version, 1.33 to 1.36"),
    ROW("min-compatibility-version", STRLIST, min_compatibility_version, "[kube=]1.N",
        "oldest version of the other components, up to --emulated-version"),
    ROW("feature-gates", STRLIST, feature_gates, "[kube:]NAME=BOOL,...",
        "features on or off; AllAlpha and AllBeta are classes"),

    SECTION("Metrics"),
    ROW("show-hidden-metrics-for-version", STR, show_hidden_metrics_for_version, "1.N",
        "only the previous minor version"),
    ROW("disabled-metrics", STRLIST, disabled_metrics, "NAME,...", "not exported"),
    ROW("allow-metric-labels", ARRAY, allow_metric_labels, "METRIC,LABEL=VALUE,...",
        "other values of the label become \"unexpected\""),
    ROW("allow-metric-labels-manifest", STR, allow_metric_labels_manifest, "FILE", "the same"),

    SECTION("Logs"),
    ROW("logging-format", STR, logging_format, "FORMAT", "text or json"),
    ROW("log-flush-frequency", DURATION_NS, log_flush_frequency_ns, NULL,
        "accepted; lines are written at once"),
    {"v", 'v', BH_OPT_LEVEL, offsetof(struct bh_kube_flags, verbosity), NULL,
     "verbosity: 2 what happens to each pod, 3 and 4 how"},
    ROW("vmodule", STR, vmodule, "PATTERN=N,...",
        "verbosity by source file (text format), e.g. daemon_log=4"),
    ROW("log-text-split-stream", BOOL, log_text_split_stream, NULL,
        "accepted with LoggingAlphaOptions; everything goes to stderr"),
    ROW("log-text-info-buffer-size", STR, log_text_info_buffer_size, "SIZE",
        "accepted with LoggingAlphaOptions; nothing is buffered"),
    ROW("log-json-split-stream", BOOL, log_json_split_stream, NULL, "as for text"),
    ROW("log-json-info-buffer-size", STR, log_json_info_buffer_size, "SIZE", "as for text"),
};

static const char *username[] = {"x-remote-user"}, *group[] = {"x-remote-group"};
static const char *extra[] = {"x-remote-extra-"};
static const char *allowed[] = {"/healthz", "/readyz", "/livez"};

static void set_defaults(struct bh_kube_flags *f)
{
    struct bh_component_config c;

    int rc = bh_component_config_of(NULL, &c, NULL);

    bh_assert(rc == 0);
    *f = (struct bh_kube_flags){
        .serving = {.bind_address = "127.0.0.1", .secure_port = 10259},
        .authn = {.tolerate_lookup_failure = true,
                  .token_cache_ttl_ns = 10 * NS_PER_S,
                  .requestheader_username_headers = {username, BH_ARRAY_LEN(username)},
                  .requestheader_group_headers = {group, BH_ARRAY_LEN(group)},
                  .requestheader_extra_prefixes = {extra, BH_ARRAY_LEN(extra)}},
        .authz = {.always_allow_paths = {allowed, BH_ARRAY_LEN(allowed)},
                  .authorized_ttl_ns = 10 * NS_PER_S,
                  .unauthorized_ttl_ns = 10 * NS_PER_S},
        .kube_api_content_type = c.client.content_type,
        .kube_api_burst = c.client.burst,
        .profiling = true,
        .contention_profiling = true,
        .pod_max_in_unschedulable_ns = 300 * NS_PER_S,
        .leader = c.leader,
        .logging_format = "text",
        .log_flush_frequency_ns = 5 * NS_PER_S,
        .log_text_info_buffer_size = "0",
        .log_json_info_buffer_size = "0",
        .version = "false",
    };
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        const char **text = (const char **)((char *)f + rows[i].at);
        if (rows[i].kind == BH_OPT_STR && !*text)
            *text = "";
    }
}

/* Where it stands in the first n rows; n: nowhere. */
static size_t find_row(const struct bh_opt *table, size_t n, const char *name)
{
    size_t i = 0;

    while (i < n && !bh_streq(table[i].name, name))
        i++;
    return i;
}

void bh_kube_flags_free(struct bh_kube_flags *f)
{
    struct bh_kube_flags_impl *m = f->impl;

    if (!m)
        return;
    for (size_t i = m->n_own; i < m->n; i++) {
        bool list = m->table[i].kind == BH_OPT_STRLIST || m->table[i].kind == BH_OPT_ARRAY;
        if (list && m->given[i])
            free(((struct bh_opt_list *)m->table[i].target)->v);
    }
    free(m->table);
    free(m->given);
    free(m);
    f->impl = NULL;
}

/* 1 when --version asks for text: then it is printed. */
static int answer_version(const struct bh_kube_flags *f, const struct bh_opt_usage *usage,
                          struct bh_err *err)
{
    int yes = bh_parse_bool(f->version);

    if (yes > 0)
        printf("%s %s (Kubernetes %s)\n", usage->program, BH_VERSION, BH_KUBERNETES_VERSION);
    if (yes >= 0)
        return yes;
    if (bh_streq(f->version, "raw"))
        return printf("version.Info{Major:\"1\", Minor:\"%d\", GitVersion:\"%s.0+berth.%s\", "
                      "Compiler:\"%s\", Platform:\"linux\"}\n",
                      BH_FEATURE_MINOR, BH_KUBERNETES_VERSION, BH_VERSION, __VERSION__),
               1;
    if (*f->version == 'v')
        return 0; /* what is reported as the version of a build of one's own: nothing here */
    return bh_err_set(err, -EINVAL,
                      "invalid argument \"%s\" for \"--version\" flag: strconv.ParseBool: parsing "
                      "\"%.64s\": invalid syntax",
                      f->version, f->version);
}

int bh_kube_flags_parse(struct bh_kube_flags *f, const struct bh_opt *own,
                        const struct bh_opt_usage *usage, int argc, char **argv, struct bh_err *err)
{
    set_defaults(f);
    bh_feature_gates_init(&f->gates);
    struct bh_kube_flags_impl *m = bh_calloc(1, sizeof(*m));
    while (own && own[m->n_own].name)
        m->n_own++;
    m->table = bh_calloc(m->n_own + BH_ARRAY_LEN(rows) + 1, sizeof(*m->table));
    m->given = bh_calloc(m->n_own + BH_ARRAY_LEN(rows), sizeof(bool));
    if (m->n_own)
        memcpy(m->table, own, m->n_own * sizeof(*own));
    m->n = m->n_own;
    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        if (r->kind != BH_OPT_SECTION && find_row(m->table, m->n_own, r->name) < m->n_own)
            continue;
        m->table[m->n++] =
            (struct bh_opt){r->name, r->letter, r->kind, (char *)f + r->at, r->arg, r->help};
    }
    f->impl = m;
    struct bh_opt_usage with_texts = *usage; /* its own flags, then kube-scheduler's */
    with_texts.go_texts = m->table + m->n_own;
    int rc = bh_opt_parse_given(f->impl->table, &with_texts, argc, argv, NULL, f->impl->given, err);

    if (rc == 0)
        rc = answer_version(f, usage, err);
    if (rc != 0) {
        bh_kube_flags_free(f);
        return rc;
    }
    if (bh_feature_gates_set(&f->gates, &f->feature_gates, &f->emulated_version,
                             &f->min_compatibility_version, &f->impl->gates_error) == 0)
        f->impl->gates_error.msg[0] = '\0';
    else
        bh_feature_gates_init(&f->gates);
    return 0;
}

const char *bh_kube_flags_gates_error(const struct bh_kube_flags *f)
{
    return *f->impl->gates_error.msg ? f->impl->gates_error.msg : NULL;
}

bool bh_kube_flags_given(const struct bh_kube_flags *f, const char *name)
{
    size_t row = find_row(f->impl->table, f->impl->n, name);

    return row < f->impl->n && f->impl->given[row];
}

void bh_kube_flags_apply(const struct bh_kube_flags *f, struct bh_component_config *c)
{
    const bool file = *f->config;

    for (size_t i = 0; i < BH_ARRAY_LEN(rows); i++) { /* f->leader, member by member */
        const size_t at = rows[i].at - offsetof(struct bh_kube_flags, leader);
        const size_t size = rows[i].kind == BH_OPT_BOOL ? sizeof(bool) : sizeof(int64_t);
        _Static_assert(sizeof(int64_t) == sizeof(char *), "durations and texts are copied alike");
        if (at < sizeof(f->leader) && bh_kube_flags_given(f, rows[i].name))
            memcpy((char *)&c->leader + at, (const char *)&f->leader + at, size);
    }
    if ((!file || !*c->client.kubeconfig) && bh_kube_flags_given(f, "kubeconfig"))
        c->client.kubeconfig = f->kubeconfig;
    if (!file && bh_kube_flags_given(f, "kube-api-content-type"))
        c->client.content_type = f->kube_api_content_type;
    if (!file && f->kube_api_qps != 0 && isfinite(f->kube_api_qps))
        c->client.qps = f->kube_api_qps;
    if (!file && bh_kube_flags_given(f, "kube-api-burst"))
        c->client.burst = (int32_t)f->kube_api_burst;
}

void bh_kube_flags_forward(const struct bh_kube_flags *f, void (*fn)(void *arg, const char *word),
                           void *arg)
{
    const struct bh_kube_flags_impl *m = f->impl;
    struct bh_buf word = {0};

    for (size_t i = m->n_own; i < m->n; i++) {
        const struct bh_opt *o = &m->table[i];
        const struct bh_opt_list *list = o->target;
        bool array = o->kind == BH_OPT_ARRAY, items = array || o->kind == BH_OPT_STRLIST;
        for (size_t k = 0; m->given[i] && k < (array ? list->n : 1); k++) {
            bh_buf_reset(&word);
            bh_buf_addf(&word, "--%s=", o->name);
            if (!items)
                bh_opt_value(o, &word);
            else if (array)
                bh_buf_adds(&word, list->v[k]);
            for (size_t j = 0; items && !array && j < list->n; j++)
                bh_buf_addf(&word, "%s%s", j ? "," : "", list->v[j]);
            fn(arg, bh_buf_str(&word));
        }
    }
    bh_buf_fini(&word);
}

static int by_name(const void *a, const void *b)
{
    const struct bh_opt *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

void bh_kube_flags_each(const struct bh_kube_flags *f,
                        void (*fn)(void *arg, const char *name, const char *value, bool given),
                        void *arg)
{
    const struct bh_kube_flags_impl *m = f->impl;
    const struct bh_opt **sorted = bh_calloc(m->n + 1, sizeof(struct bh_opt *));
    struct bh_buf value = {0};
    size_t n = 0;

    for (size_t i = m->n_own; i < m->n; i++)
        if (m->table[i].kind != BH_OPT_SECTION)
            sorted[n++] = &m->table[i];
    qsort(sorted, n, sizeof(struct bh_opt *), by_name);
    for (size_t i = 0; i < n; i++) {
        bh_buf_reset(&value);
        bh_opt_value(sorted[i], &value);
        fn(arg, sorted[i]->name, bh_buf_str(&value), m->given[sorted[i] - m->table]);
    }
    bh_buf_fini(&value);
    free(sorted);
}

static void log_flag(void *arg, const char *name, const char *value, bool given)
{
    struct bh_buf *b = arg;

    (void)given;
    bh_buf_reset(b);
    bh_buf_addf(b, "FLAG: --%s=", name);
    bh_buf_add_json_str(b, value, strlen(value));
    bh_log_plain(1, __FILE__, __LINE__, bh_buf_str(b));
}

int bh_kube_flags_start(struct bh_kube_flags *f, const struct bh_opt *own,
                        const struct bh_opt_usage *usage, int argc, char **argv)
{
    struct bh_err err = {""};
    struct bh_buf b = {0};

    bh_signals_early();
    int rc = bh_kube_flags_parse(f, own, usage, argc, argv, &err);
    if (rc > 0)
        return BH_EXIT_OK;
    if (rc < 0) {
        fprintf(stderr, "%s: %s\nSee '%s --help'.\n", usage->program, err.msg, usage->program);
        return BH_EXIT_USAGE;
    }
    rc = bh_kube_flags_validate(f, &err);
    if (rc == 0)
        rc = bh_loop_check(&err);
    bh_log_init(usage->program, rc == 0 ? (int)f->verbosity : 0,
                bh_streq(f->logging_format, "json") ? BH_LOG_JSON : BH_LOG_TEXT);
    if (rc < 0) {
        bh_log_error("command failed", bh_kv_s("err", err.msg));
        bh_kube_flags_free(f);
        return BH_EXIT_FAIL;
    }
    bh_log_set_vmodule(f->vmodule);
    if (bh_log_v_on(1, __FILE__)) /* every flag has a line */
        bh_kube_flags_each(f, log_flag, &b);
    bh_buf_fini(&b);
    return -1;
}
