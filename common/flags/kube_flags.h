/* SPDX-License-Identifier: Apache-2.0
 *
 * common/flags/kube_flags.h - kube-scheduler's command line, accepted by every Berth process
 *
 * An operator has one list of flags ($KUBE_SCHEDULER_ARGS, a static pod's command). Each process of
 * Berth takes the whole list, checks all of it with upstream's texts, and uses what is its own
 * business; so the same line in every unit means what it meant to kube-scheduler. Flags of the
 * process itself come in front of these in its --help.
 * Precedence as upstream: --config beats the deprecated group (but for
 * pod-max-in-unschedulable-pods-duration, and for --kubeconfig when the file names none, where
 * upstream tries the service account), leader-elect flags that were given beat the file,
 * --master beats the kubeconfig's server.
 * Upstream: cmd/kube-scheduler/app/options, apiserver/pkg/server/options, component-base/logs.
 * Ownership: strings point into argv; lists are freed by bh_kube_flags_free. The struct stays where
 * it was when it was parsed.
 * Threads: main's, at the start.
 */
#ifndef BH_KUBE_FLAGS_H
#define BH_KUBE_FLAGS_H

#include "common/base/opt.h"
#include "common/flags/component.h"
#include "common/flags/feature_gates.h"

struct bh_serving_flags { /* used by berth-front */
    const char *bind_address;
    int64_t secure_port; /* 0 = do not serve */
    const char *cert_dir, *tls_cert_file, *tls_private_key_file, *tls_min_version;
    struct bh_opt_list tls_cipher_suites, tls_curve_preferences;
    struct bh_opt_list tls_sni_cert_key; /* "cert,key[:domain,...]" each */
    bool disable_http2_serving;
    int64_t http2_max_streams;
    bool permit_address_sharing, permit_port_sharing;
};
struct bh_authn_flags {     /* used by berth-front */
    const char *kubeconfig; /* "" = every token is anonymous */
    bool skip_lookup, tolerate_lookup_failure;
    int64_t token_cache_ttl_ns;
    const char *client_ca_file, *requestheader_client_ca_file;
    struct bh_opt_list requestheader_allowed_names, requestheader_username_headers,
        requestheader_group_headers, requestheader_uid_headers, requestheader_extra_prefixes;
};
struct bh_authz_flags {     /* used by berth-front */
    const char *kubeconfig; /* "" = what is not on the list of paths is forbidden */
    struct bh_opt_list always_allow_paths;
    int64_t authorized_ttl_ns, unauthorized_ttl_ns;
};
struct bh_kube_flags {
    const char *config, *master, *write_config_to;
    struct bh_serving_flags serving;
    struct bh_authn_flags authn;
    struct bh_authz_flags authz;
    /* deprecated: only without --config, see bh_kube_flags_apply */
    const char *kubeconfig, *kube_api_content_type;
    double kube_api_qps;
    int64_t kube_api_burst;
    bool profiling, contention_profiling;
    int64_t pod_max_in_unschedulable_ns; /* honoured always */
    struct bh_leader_config leader;      /* defaults, or what was given */
    struct bh_opt_list feature_gates;    /* "Name=bool", in order; what they come to: gates */
    struct bh_opt_list emulated_version, min_compatibility_version;
    const char *show_hidden_metrics_for_version, *allow_metric_labels_manifest;
    struct bh_opt_list allow_metric_labels; /* "metric,label=value,value", quoted when several */
    struct bh_opt_list disabled_metrics;
    const char *logging_format, *vmodule; /* "text", "json" */
    int64_t verbosity, log_flush_frequency_ns;
    bool log_text_split_stream, log_json_split_stream;
    const char *log_text_info_buffer_size, *log_json_info_buffer_size;
    const char *version;           /* "false" unless given */
    struct bh_feature_gates gates; /* defaults where _validate would say no */
    struct bh_kube_flags_impl *impl;
};

/* The whole start of a process: parse, validate, log_init. -1: go on (bh_kube_flags_free at the
 * end); else the exit status, everything is said and freed. own may be NULL. */
int bh_kube_flags_start(struct bh_kube_flags *f, const struct bh_opt *own,
                        const struct bh_opt_usage *usage, int argc, char **argv);
/* Parses argv by own (the process's table, ends with name NULL) and kube-scheduler's flags. As
 * bh_opt_parse: 0; 1 = --help or --version was printed; -EINVAL. On anything but 0 nothing has to
 * be freed. Rows of own take the place of kube-scheduler's flags of the same name. What is only
 * wrong in value (ports, gates, durations) is left to _validate. */
int bh_kube_flags_parse(struct bh_kube_flags *f, const struct bh_opt *own,
                        const struct bh_opt_usage *usage, int argc, char **argv,
                        struct bh_err *err);
void bh_kube_flags_free(struct bh_kube_flags *f);
/* All that upstream's Validate says, one line each, joined as upstream joins ("[a, b]"). 0,
 * -EINVAL.
 */
int bh_kube_flags_validate(const struct bh_kube_flags *f, struct bh_err *err);
/* What bh_feature_gates_set said, NULL = nothing. */
const char *bh_kube_flags_gates_error(const struct bh_kube_flags *f);
/* Was --name given on the command line? */
bool bh_kube_flags_given(const struct bh_kube_flags *f, const char *name);
/* Does f (--feature-gates and --emulated-version) turn the gate on? */
static inline bool bh_kube_flags_gate(const struct bh_kube_flags *f, const char *name)
{
    return bh_feature_enabled(&f->gates, name);
}
/* What the file says and what flags add: c is the file's (or the defaults); without --config the
 * deprecated group goes into it, and leader-elect flags that were given always do. */
void bh_kube_flags_apply(const struct bh_kube_flags *f, struct bh_component_config *c);
/* The usage of --help, exit statuses included, for processes that use _start. */
#define BH_KUBE_FLAGS_EXITS                                                                        \
    "  0  stopped by a signal\n  1  could not start, see the message\n  2  wrong usage\n"
/* The flags of kube-scheduler that were given, each as one "--name=value" for another process's
 * command line. */
void bh_kube_flags_forward(const struct bh_kube_flags *f, void (*fn)(void *arg, const char *word),
                           void *arg);
/* Every flag of kube-scheduler and its value, sorted by name, as pflag prints it ("[a,b]" for
 * lists; secrets have no flag). */
void bh_kube_flags_each(const struct bh_kube_flags *f,
                        void (*fn)(void *arg, const char *name, const char *value, bool given),
                        void *arg);
#endif
