/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/config.h - KubeSchedulerConfiguration: read, defaulted, validated, expanded
 *
 * The tree (JSON or YAML) becomes plain structs; everything lives in the configuration's own arena
 * and is immutable afterwards. Messages are upstream's (reference config-and-operations.md 1.2
 * - 1.9). Upstream: pkg/scheduler/apis/config/{v1,validation}, framework/runtime/framework.go.
 */
#ifndef BH_SCHED_CONFIG_H
#define BH_SCHED_CONFIG_H

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
    BH_POINT_COUNT
};
struct bh_plugin_ref { /* one enabled plugin at one point, after MultiPoint expansion */
    const char *name;
    int32_t weight; /* score: resolved, never 0 */
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
struct bh_sched_config {
    struct bh_arena arena;
    int32_t parallelism; /* read for compatibility */
    int32_t percentage_of_nodes_to_score;
    int64_t pod_initial_backoff_ns, pod_max_backoff_ns;
    struct bh_profile_config *profiles;
    uint32_t n_profiles;
    const struct bh_json *client_connection, *leader_election; /* raw members, NULL when absent */
    uint32_t n_warnings;
    const char **warnings;
};
/* NULL tree = all defaults. 0 or -EINVAL with upstream's text in err. */
int bh_sched_config_new(const struct bh_json *tree, struct bh_sched_config **ret,
                        struct bh_err *err);
/* File in YAML or JSON; path NULL = defaults. */
int bh_sched_config_load(const char *path, struct bh_sched_config **ret, struct bh_err *err);
void bh_sched_config_free(struct bh_sched_config *c);
#endif
