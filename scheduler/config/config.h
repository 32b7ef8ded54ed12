/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/config.h - KubeSchedulerConfiguration: read, defaulted, validated, expanded
 *
 * The text (JSON or YAML) becomes plain structs; everything lives in the configuration's own arena
 * and is immutable afterwards. Messages are upstream's; v1beta3, v1beta2 and the Policy files of
 * old are read, too, with warnings.
 * Upstream: pkg/scheduler/apis/config/{v1,validation}, cmd/kube-scheduler/app/options,
 * framework/runtime/framework.go.
 */
#ifndef BH_SCHED_CONFIG_H
#define BH_SCHED_CONFIG_H

#include "common/flags/component.h"
#include "common/flags/kube_flags.h"
#include "common/data/json.h"

enum bh_point {
    BH_POINT_PRE_ENQUEUE,
    BH_POINT_QUEUE_SORT,
    BH_POINT_PRE_FILTER,
    BH_POINT_FILTER,
    BH_POINT_POST_FILTER,
    BH_POINT_PRE_SCORE,
    BH_POINT_SCORE,
    BH_POINT_RESERVE,
    BH_POINT_PERMIT,
    BH_POINT_PRE_BIND,
    BH_POINT_BIND,
    BH_POINT_POST_BIND,
    BH_POINT_PLACEMENT_GENERATE, /* of groups of pods, not of one */
    BH_POINT_PLACEMENT_SCORE,
    BH_POINT_COUNT
};
const char *bh_sched_point_name(enum bh_point p); /* as in the file: "preFilter" */
struct bh_plugin_ref { /* one enabled plugin at one point, after MultiPoint expansion */
    const char *name;
    int32_t weight; /* score, placementScore: resolved, never 0 */
};
struct bh_profile_config {
    const char *scheduler_name;
    bool has_percentage;
    int32_t percentage_of_nodes_to_score;
    struct bh_plugin_ref *points[BH_POINT_COUNT];
    uint32_t n_points[BH_POINT_COUNT];
    /* args by plugin name as JSON objects, defaults filled in by the plugin's own parser */
    struct bh_plugin_args {
        const char *name;
        const struct bh_json *args;
    } * args;
    uint32_t n_args;
};
const struct bh_json *bh_profile_args(const struct bh_profile_config *p, const char *plugin);
/* extenders[i], validated; ignorable ones already moved to the end, order otherwise kept. */
struct bh_extender_config {
    const char *url_prefix;                                               /* "" when absent */
    const char *filter_verb, *prioritize_verb, *preempt_verb, *bind_verb; /* "" = not asked */
    int64_t weight;
    int64_t http_timeout_ns; /* defaulted, > 0 */
    bool enable_https;       /* without a CA: do not verify */
    bool node_cache_capable;
    bool ignorable;
    struct bh_managed_resource {
        const char *name;
        bool ignored_by_scheduler;
    } * managed;
    uint32_t n_managed;
    struct bh_extender_tls {
        bool present, insecure;
        const char *server_name;                    /* "" = from the URL */
        const char *cert_file, *key_file, *ca_file; /* "" = absent */
        struct bh_str cert_data, key_data, ca_data; /* PEM, base64 undone; n 0 = absent */
    } tls;
};
struct bh_sched_config {
    struct bh_arena arena;
    int32_t parallelism; /* read for compatibility */
    int32_t percentage_of_nodes_to_score;
    int64_t pod_initial_backoff_ns, pod_max_backoff_ns;
    bool enable_profiling, enable_contention_profiling, delay_cache_until_active;
    struct bh_leader_config leader_election;
    struct bh_client_config client_connection;
    struct bh_profile_config *profiles;
    uint32_t n_profiles;
    struct bh_extender_config *extenders;
    uint32_t n_extenders;
    unsigned whole_objects; /* that plugins want to see, enum bh_ext_need */
    uint32_t n_warnings;
    const char **warnings;      /* "line 3: ..." */
    const struct bh_json *tree; /* what is in force, as a v1 tree with sorted members */
    const struct bh_feature_gates
        *gates; /* NULL = defaults; borrowed, bh_sched_config_apply_gates */
};
/* NULL tree = all defaults. 0 or -EINVAL with upstream's text in err, cut to its size. */
int bh_sched_config_new(const struct bh_json *tree, struct bh_sched_config **ret,
                        struct bh_err *err);
/* File in YAML or JSON; path NULL = defaults. The lines stand behind upstream's text in err. */
int bh_sched_config_load(const char *path, struct bh_sched_config **ret, struct bh_err *err);
void bh_sched_config_free(struct bh_sched_config *c);
/* kube-scheduler's flags over a configuration just read, also in its tree; once, before it is used.
 * f outlives c. Plugins whose gate is off leave the profiles. */
void bh_sched_config_apply_flags(struct bh_sched_config *c, const struct bh_kube_flags *f);
/* Its part that is about gates alone, for whoever has no such flags. g outlives c. */
void bh_sched_config_apply_gates(struct bh_sched_config *c, const struct bh_feature_gates *g);
/* A gate of the configuration (NULL = the defaults of BH_KUBERNETES_VERSION). */
bool bh_sched_config_gate(const struct bh_sched_config *c, const char *name);
/* A line in the log for each gate that is not at its default and that Berth cannot switch. */
void bh_sched_gates_warn(const struct bh_feature_gates *g);
/* Those that were given another value than the default and have no effect here; instead: what holds. */
void bh_sched_gates_each_idle(const struct bh_feature_gates *g,
                              void (*fn)(void *arg, const char *name, bool enabled,
                                         const char *instead),
                              void *arg);
/* What Berth does whatever the gate says, NULL for gates that it can switch. */
const char *bh_sched_gate_instead(const char *name);

/* ---- everything that was found ------------------------------------------------------------------
 * Filled whether reading fails or not. Owns its texts. */
struct bh_config_finding {
    uint32_t line; /* of the file, 0 = unknown */
    bool note;     /* a warning that says only what something became */
    const char *text;
};
struct bh_config_findings {
    struct bh_config_finding *v;
    uint32_t n, cap;
};
struct bh_config_report {
    struct bh_arena arena;
    struct bh_config_findings errors; /* each alone as upstream would print it */
    struct bh_config_findings warnings;
    const char *summary; /* upstream's text: all errors at once; "" without errors */
};
void bh_config_report_init(struct bh_config_report *r);
void bh_config_report_fini(struct bh_config_report *r);
/* The summary with the lines behind it: "... (/etc/x.yaml: lines 3, 7)". Lives in the report. */
const char *bh_config_report_line(struct bh_config_report *r, const char *file);
/* 0, or -EINVAL and r has the errors; _load_report also -errno of reading the file. r is
 * initialised by the caller and used once. */
int bh_sched_config_read(const char *text, size_t n, struct bh_sched_config **ret,
                         struct bh_config_report *r);
int bh_sched_config_load_report(const char *path, struct bh_sched_config **ret,
                                struct bh_config_report *r);
/* For a daemon's start: warnings and errors go to the log, upstream's text as `command failed`.
 * When that is longer than a log line can be, each error has a line of its own before it. */
int bh_sched_config_load_logged(const char *path, struct bh_sched_config **ret);

/* The configuration in force, as upstream's --write-config-to writes it: v1, complete, names
 * sorted. With secrets it loads to the same again; without, extenders' certificates and keys given
 * in the file are left out. */
enum bh_sched_config_form {
    BH_SCHED_CONFIG_YAML,
    BH_SCHED_CONFIG_JSON,
    BH_SCHED_CONFIG_JSON_PRETTY
};
void bh_sched_config_write(const struct bh_sched_config *c, enum bh_sched_config_form form,
                           bool secrets, struct bh_buf *b);
#endif
