/* SPDX-License-Identifier: Apache-2.0
 *
 * common/flags/kube_flags_check.c - what kube-scheduler says to flags that make no sense
 *
 * In upstream's order: feature gates and versions end the start alone, then the log's flags do, and
 * the rest is said together.
 * Upstream: cmd/kube-scheduler/app/options/options.go (Validate), component-base/logs/api/v1,
 *           component-base/metrics/api/v1; differences: what Go's crypto/tls does not know is
 *           refused here as well.
 */
#include <ctype.h>
#include <errno.h>

#include "common/base/log.h"
#include "common/flags/kube_flags.h"

#define LABEL_EXPR  "[a-zA-Z_][a-zA-Z0-9_]*"
#define METRIC_EXPR "[a-zA-Z_:][a-zA-Z0-9_:]*"

static void add(void *arg, const char *text)
{
    bh_flag_err(arg, "%s", text);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void check_alpha_logs(const struct bh_kube_flags *f, struct bh_flag_errors *t)
{
    const struct {
        const char *format;
        bool split;
        const char *size;
    } options[] = {{"text", f->log_text_split_stream, f->log_text_info_buffer_size},
                   {"json", f->log_json_split_stream, f->log_json_info_buffer_size}};

    if (bh_kube_flags_gate(f, "LoggingAlphaOptions"))
        return;
    static const char off[] = "options.%s.%s: Forbidden: Feature LoggingAlphaOptions is disabled";
    for (size_t i = 0; i < BH_ARRAY_LEN(options); i++) {
        if (options[i].split)
            bh_flag_err(t, off, options[i].format, "splitStream");
        if (strspn(options[i].size, "0") != strlen(options[i].size))
            bh_flag_err(t, off, options[i].format, "infoBufferSize");
    }
}

/* ---- serving, callers ------------------------------------------------------------------------ */

static bool has_blank(const struct bh_opt_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        if (strspn(list->v[i], " \t\r\n\v\f") == strlen(list->v[i]))
            return true;
    return false;
}

static void check_callers(const struct bh_kube_flags *f, struct bh_flag_errors *t)
{
    const struct bh_authn_flags *a = &f->authn;
    const struct {
        const char *name;
        const struct bh_opt_list *list;
    } headers[] = {
        {"requestheader-username-headers", &a->requestheader_username_headers},
        {"requestheader-group-headers", &a->requestheader_group_headers},
        {"requestheader-extra-headers-prefix", &a->requestheader_extra_prefixes},
        {"requestheader-allowed-names", &a->requestheader_allowed_names},
    };
    const struct bh_opt_list *uid = &a->requestheader_uid_headers;
    bool usual = uid->n == 0;

    for (size_t i = 0; i < BH_ARRAY_LEN(headers); i++)
        if (has_blank(headers[i].list))
            bh_flag_err(t, "empty value in \"%s\"", headers[i].name);
    if (!bh_kube_flags_gate(f, "RemoteRequestHeaderUID")) {
        if (uid->n)
            add(t, "--requestheader-uid-headers requires the \"RemoteRequestHeaderUID\" feature to "
                   "be enabled");
        return;
    }
    if (has_blank(uid))
        add(t, "empty value in \"requestheader-uid-headers\"");
    for (size_t i = 0; i < uid->n && !usual; i++)
        usual = strcasecmp(uid->v[i], "X-Remote-Uid") == 0;
    if (!usual)
        add(t, "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid "
               "header - API aggregation will not work");
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* Length of a metric's or (no colons) a label's name at p. */
static size_t name_length(const char *p, bool colons)
{
    size_t n = 0;

    while (isalpha((unsigned char)p[n]) || p[n] == '_' || (colons && p[n] == ':') ||
           (n && isdigit((unsigned char)p[n])))
        n++;
    return n;
}

/* "metric,label=values", or several of them, each in double quotes. */
static bool labels_ok(const char *p)
{
    for (;;) {
        bool quoted = *p == '"';
        size_t n = name_length(p += quoted, true);
        if (!n || p[n] != ',')
            return false;
        p += n + 1;
        n = name_length(p, false);
        if (!n || p[n] != '=')
            return false;
        p += quoted ? strcspn(p, "\"") : strlen(p);
        if (quoted && *p++ != '"')
            return false;
        if (!*p)
            return true;
        if (*p++ != ',')
            return false;
    }
}

static void check_metrics(const struct bh_kube_flags *f, struct bh_flag_errors *t)
{
    const char *hidden = f->show_hidden_metrics_for_version;
    char previous[16];

    snprintf(previous, sizeof(previous), "1.%d", BH_FEATURE_MINOR - 1);
    if (*hidden && !bh_streq(hidden, previous))
        bh_flag_err(
            t,
            "metrics.showHiddenMetricsForVersion: Invalid value: \"%s\": must be omitted or have "
            "the value '%s'; only the previous minor version is allowed",
            hidden, previous);
    for (size_t i = 0; i < f->disabled_metrics.n; i++) {
        const char *name = f->disabled_metrics.v[i];
        if (!*name || name_length(name, true) != strlen(name)) {
            bh_flag_err(
                t,
                "metrics.disabledMetrics: Invalid value: \"%s\": must be fully qualified metric "
                "names matching \"^" METRIC_EXPR "$\", got \"%s\"",
                name, name);
            break;
        }
    }
    for (size_t i = 0; i < f->allow_metric_labels.n; i++) {
        if (!labels_ok(f->allow_metric_labels.v[i])) {
            bh_flag_err(
                t,
                "metrics.allowListMapping: Invalid value: \"%s\": must have keys with format "
                "`metricName,labelName` where metricName matches \"" METRIC_EXPR
                "\" and labelName matches \"" LABEL_EXPR "\"",
                f->allow_metric_labels.v[i]);
            break;
        }
    }
    if (f->allow_metric_labels.n && *f->allow_metric_labels_manifest)
        add(t, "metrics: Invalid value: cannot specify both allowListMapping and "
               "allowListMappingManifest");
}

int bh_kube_flags_validate(const struct bh_kube_flags *f, struct bh_err *err)
{
    const char *gates = bh_kube_flags_gates_error(f);
    struct bh_flag_errors t = {.n = 0};

    if (gates)
        return bh_err_set(err, -EINVAL, "%s", gates);
    if (bh_log_check_vmodule(f->vmodule, err) < 0) {
        struct bh_err why = *err;
        return bh_err_set(err, -EINVAL, "invalid argument \"%.128s\" for \"--vmodule\" flag: %s",
                          f->vmodule, why.msg);
    }
    char flush[32];
    bh_format_duration_ns(f->log_flush_frequency_ns, flush);
    if (f->log_flush_frequency_ns <= 0)
        bh_flag_err(&t, "flushFrequency: Invalid value: \"%s\": Must be greater than zero", flush);
    if (!bh_streq(f->logging_format, "text") && !bh_streq(f->logging_format, "json"))
        bh_flag_err(&t, "format: Invalid value: \"%s\": Unsupported log format", f->logging_format);
    if (*f->vmodule && *f->logging_format && !bh_streq(f->logging_format, "text"))
        add(&t, "vmodule: Forbidden: Only supported for text log format");
    check_alpha_logs(f, &t);
    int rc = bh_flag_errors_close(&t, err);
    if (rc < 0)
        return rc;
    bh_feature_gates_check_versions(&f->gates, add, &t);
    const struct bh_serving_flags *s = &f->serving;
    static const char versions[] = "VersionTLS10 VersionTLS11 VersionTLS12 VersionTLS13";
    if (s->secure_port > 65535 || s->secure_port < 0)
        bh_flag_err(&t, "--secure-port %lld must be between %d and 65535, inclusive. %s",
                    (long long)s->secure_port, s->secure_port > 0,
                    s->secure_port > 0 ? "It cannot be turned off with 0"
                                       : "0 for turning off secure port");
    if (*s->tls_min_version && bh_word_at(versions, s->tls_min_version) < 0)
        bh_flag_err(&t, "unknown tls version \"%s\"", s->tls_min_version);
    check_callers(f, &t);
    check_metrics(f, &t);
    return bh_flag_errors_close(&t, err);
}
