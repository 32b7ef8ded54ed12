/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/config/schema.c - the fields of KubeSchedulerConfiguration, in each of its versions
 *
 * The members that only later versions have stand first in a table, so that an earlier version's
 * table is the rest of it.
 *
 * Upstream: kube-scheduler/config/{v1,v1beta3,v1beta2}/types.go, component-base/config/v1alpha1.
 */
#include "scheduler/config/config_int.h"

static const struct bh_field leader_schema[] = {
    {"leaderElect", BH_FIELD_BOOL, NULL, NULL},
    {"leaseDuration", BH_FIELD_DURATION, NULL, NULL},
    {"renewDeadline", BH_FIELD_DURATION, NULL, NULL},
    {"retryPeriod", BH_FIELD_DURATION, NULL, NULL},
    {"resourceLock", BH_FIELD_STRING, NULL, NULL},
    {"resourceName", BH_FIELD_STRING, NULL, NULL},
    {"resourceNamespace", BH_FIELD_STRING, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field client_schema[] = {
    {"kubeconfig", BH_FIELD_STRING, NULL, NULL},
    {"acceptContentTypes", BH_FIELD_STRING, NULL, NULL},
    {"contentType", BH_FIELD_STRING, NULL, NULL},
    {"qps", BH_FIELD_FLOAT, NULL, NULL},
    {"burst", BH_FIELD_INT32, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field plugin_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"weight", BH_FIELD_INT32, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field set_schema[] = {
    {"enabled", BH_FIELD_OBJECTS, plugin_schema, "Plugin"},
    {"disabled", BH_FIELD_OBJECTS, plugin_schema, "Plugin"},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
#define PLUGIN_SET(name)                                                                           \
    {                                                                                              \
        name, BH_FIELD_OBJECT, set_schema, "PluginSet"                                             \
    }
static const struct bh_field plugins_schema[] = {
    PLUGIN_SET("placementGenerate"), /* v1 */
    PLUGIN_SET("placementScore"),
    PLUGIN_SET("multiPoint"), /* v1beta3 */
    PLUGIN_SET("preEnqueue"),
    PLUGIN_SET("queueSort"),
    PLUGIN_SET("preFilter"),
    PLUGIN_SET("filter"),
    PLUGIN_SET("postFilter"),
    PLUGIN_SET("preScore"),
    PLUGIN_SET("score"),
    PLUGIN_SET("reserve"),
    PLUGIN_SET("permit"),
    PLUGIN_SET("preBind"),
    PLUGIN_SET("bind"),
    PLUGIN_SET("postBind"),
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
static const struct bh_field args_schema[] = {
    {"name", BH_FIELD_STRING, NULL, NULL},
    {"args", BH_FIELD_RAW, NULL, NULL},
    {NULL, BH_FIELD_RAW, NULL, NULL},
};
#define PROFILE_FIELDS(plugins)                                                                    \
    {"schedulerName", BH_FIELD_STRING, NULL, NULL},                                                \
        {"plugins", BH_FIELD_OBJECT, plugins, "Plugins"},                                          \
        {"pluginConfig", BH_FIELD_OBJECTS, args_schema, "PluginConfig"},                           \
    {                                                                                              \
        NULL, BH_FIELD_RAW, NULL, NULL                                                             \
    }
static const struct bh_field profile_v1[] = {
    {"percentageOfNodesToScore", BH_FIELD_INT32, NULL, NULL},
    PROFILE_FIELDS(plugins_schema),
};
static const struct bh_field profile_v1beta3[] = {PROFILE_FIELDS(plugins_schema + 2)};
static const struct bh_field profile_v1beta2[] = {PROFILE_FIELDS(plugins_schema + 3)};

#define ROOT_FIELDS(profile)                                                                       \
    {"apiVersion", BH_FIELD_STRING, NULL, NULL}, {"kind", BH_FIELD_STRING, NULL, NULL},            \
        {"parallelism", BH_FIELD_INT32, NULL, NULL},                                               \
        {"leaderElection", BH_FIELD_OBJECT, leader_schema,                                         \
         "v1alpha1.LeaderElectionConfiguration"},                                                  \
        {"clientConnection", BH_FIELD_OBJECT, client_schema,                                       \
         "v1alpha1.ClientConnectionConfiguration"},                                                \
        {"enableProfiling", BH_FIELD_BOOL, NULL, NULL},                                            \
        {"enableContentionProfiling", BH_FIELD_BOOL, NULL, NULL},                                  \
        {"percentageOfNodesToScore", BH_FIELD_INT32, NULL, NULL},                                  \
        {"podInitialBackoffSeconds", BH_FIELD_INT64, NULL, NULL},                                  \
        {"podMaxBackoffSeconds", BH_FIELD_INT64, NULL, NULL},                                      \
        {"profiles", BH_FIELD_OBJECTS, profile, "KubeSchedulerProfile"},                           \
        {"extenders", BH_FIELD_OBJECTS, bh_extender_schema, "Extender"},                           \
    {                                                                                              \
        NULL, BH_FIELD_RAW, NULL, NULL                                                             \
    }
static const struct bh_field root_v1[] = {
    {"delayCacheUntilActive", BH_FIELD_BOOL, NULL, NULL},
    ROOT_FIELDS(profile_v1),
};
static const struct bh_field root_v1beta3[] = {ROOT_FIELDS(profile_v1beta3)};
static const struct bh_field root_v1beta2[] = {
    {"healthzBindAddress", BH_FIELD_STRING, NULL, NULL},
    {"metricsBindAddress", BH_FIELD_STRING, NULL, NULL},
    ROOT_FIELDS(profile_v1beta2),
};

const struct bh_field *bh_config_schema(enum bh_config_version v)
{
    switch (v) {
    case BH_CONFIG_V1BETA3:
        return root_v1beta3;
    case BH_CONFIG_V1BETA2:
        return root_v1beta2;
    default:
        return root_v1;
    }
}
