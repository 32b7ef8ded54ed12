/* SPDX-License-Identifier: Apache-2.0
 *
 * common/flags/component.h - the parts of a component's configuration that are not its own:
 * clientConnection and leaderElection, and what has to be watched for the plugins
 *
 * Every process that talks to the API server is given the same KubeSchedulerConfiguration; this is
 * all that the watcher reads of it, in any of its versions. berth-scheduler reads the whole file,
 * and its errors are upstream's (scheduler/config).
 * Upstream: component-base/config (defaults), client-go/tools/leaderelection (the checks).
 */
#ifndef BH_COMPONENT_H
#define BH_COMPONENT_H

#include "common/data/json.h"

struct bh_leader_config {
    bool leader_elect;
    int64_t lease_duration_ns, renew_deadline_ns, retry_period_ns;
    const char *resource_lock, *resource_name, *resource_namespace;
};
struct bh_client_config {
    const char *kubeconfig, *accept_content_types, *content_type; /* "" = not set */
    double qps;    /* negative = no limit, which is Berth's default */
    int32_t burst; /* above qps, if that is a limit */
};
struct bh_component_config {
    struct bh_leader_config leader;
    struct bh_client_config client;
    const char *first_profile; /* its schedulerName: the source of LeaderElection events */
    bool coscheduling; /* some profile enables plugin Coscheduling: its PodGroups are read */
};
/* From the tree of a file, or NULL = the defaults. Strings point into the tree, or are literals.
 * -EINVAL: a member of the two has the wrong type. */
int bh_component_config_of(const struct bh_json *tree, struct bh_component_config *ret,
                           struct bh_err *err);
/* A file in YAML or JSON; strings live in a. path NULL or "" = the defaults. 0 or negative
 * errno. */
int bh_component_config_load(const char *path, struct bh_arena *a, struct bh_component_config *ret,
                             struct bh_err *err);
/* What file and flags came to, with the elector's texts. 0 or -EINVAL. */
int bh_leader_config_check(const struct bh_leader_config *c, struct bh_err *err);
#endif
