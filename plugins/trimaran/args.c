/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/trimaran/args.c - TargetLoadPacking, LoadVariationRiskBalancing, LowRiskOverCommitment and
 * Peaks: arguments, instances, the file
 *
 * Upstream:   sigs.k8s.io/scheduler-plugins, pkg/trimaran and apis/config/v1.
 * Difference: metricProvider and watcherAddress are berth-metrics's business: the scheduler has no
 *             network and no credentials. metricsFile and maxAgeSeconds are ours.
 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trimaran.h"

#define METRICS_FILE "/run/berth/node-metrics"
#define COMMON       "metricProvider watcherAddress metricsFile maxAgeSeconds "

const struct berth_host *trimaran_host;

enum { TARGET_LOAD, VARIATION, LOW_RISK, PEAKS };
static const char *const known[] = {
    [TARGET_LOAD] = COMMON "defaultRequests defaultRequestsMultiplier targetUtilization",
    [VARIATION] = COMMON "safeVarianceMargin safeVarianceSensitivity",
    [LOW_RISK] = COMMON "smoothingWindowSize riskLimitWeights",
    [PEAKS] = "WatcherAddress NodePowerModel metricsFile maxAgeSeconds",
};

/* ---- looking at values ----------------------------------------------------------------------- */

static const struct berth_value *get(const struct berth_value *v, const char *name)
{
    return v ? trimaran_host->values->get(v, (struct berth_str){name, strlen(name)}) : NULL;
}

static int is(const struct berth_value *v, uint32_t type)
{
    return trimaran_host->values->type(v) == type;
}

/* errors NULL: create(), for which check_args() has found nothing. */
static void complain(struct berth_errors *errors, const char *path, const char *text)
{
    if (errors)
        trimaran_host->values->error(errors, (struct berth_str){path, strlen(path)},
                                     (struct berth_str){text, strlen(text)});
}

static void check_known(const struct berth_value *v, const char *names, const char *path,
                        struct berth_errors *errors)
{
    const struct berth_host_values *h = trimaran_host->values;

    for (const struct berth_value *m = h->first(v); m; m = h->next(m)) {
        struct berth_str key = h->key(m);
        char text[160];
        int found = 0;
        for (const char *s = names; *s && !found; s += strspn(s, " ")) {
            size_t n = strcspn(s, " ");
            found = n == key.n && memcmp(s, key.p, n) == 0;
            s += n;
        }
        snprintf(text, sizeof text, "unknown field \"%.*s\"", (int)(key.n < 100 ? key.n : 100),
                 key.p);
        if (!found)
            complain(errors, path, text);
    }
}

/* A number that may be left out; below is not to be had: the default then. */
static void number(const struct berth_value *args, const char *name, double least, double most,
                   double *ret, struct berth_errors *errors)
{
    const struct berth_value *v = get(args, name);
    double d;

    if (!v || is(v, BERTH_NULL))
        return;
    if (!trimaran_host->values->number(v, &d))
        complain(errors, name, "a number is needed");
    else if (d >= least && d <= most)
        *ret = d;
}

static void whole(const struct berth_value *args, const char *name, double *ret,
                  struct berth_errors *errors)
{
    const struct berth_value *v = get(args, name);
    int64_t i;

    if (!v || is(v, BERTH_NULL))
        return;
    if (!trimaran_host->values->integer(v, &i))
        complain(errors, name, "an integer is needed");
    else if (i > 0)
        *ret = (double)i;
}

static int milli(struct berth_str s, int64_t *ret)
{
    char text[32], *end = text;
    double d;

    if (!s.n || s.n >= sizeof text || !strchr("0123456789.", s.p[0]))
        return 0;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    d = strtod(text, &end);
    if (strspn(text, "0123456789.") != (size_t)(end - text) || (*end && strcmp(end, "m") != 0) ||
        d > 1e12)
        return 0;
    *ret = (int64_t)ceil(*end ? d : d * 1000);
    return 1;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void read_source(const struct berth_value *args, int which, struct berth_errors *errors)
{
    const struct berth_host_values *h = trimaran_host->values;
    const struct berth_value *provider = get(args, "metricProvider");
    const char *address = which == PEAKS ? "WatcherAddress" : "watcherAddress";
    struct berth_str type = h->text(get(provider, "type"));
    char text[160];

    if (provider && !is(provider, BERTH_OBJECT))
        complain(errors, "metricProvider", "an object is needed");
    check_known(provider, "type address token insecureSkipVerify", "metricProvider", errors);
    if (get(args, address) && !is(get(args, address), BERTH_STRING))
        complain(errors, address, "a string is needed");
    if (which == PEAKS && !h->text(get(args, address)).n)
        complain(errors, address, "invalid MetricProvider.Type, got ");
    snprintf(text, sizeof text, "invalid MetricProvider.Type, got %.*s",
             (int)(type.n < 100 ? type.n : 100), type.p);
    if (type.n && !berth_str_is(type, "KubernetesMetricsServer") &&
        !berth_str_is(type, "Prometheus") && !berth_str_is(type, "SignalFx"))
        complain(errors, "metricProvider.type", text);
}

static void read_file_args(const struct berth_value *args, struct instance *in,
                           struct berth_errors *errors)
{
    const struct berth_value *file = get(args, "metricsFile"), *age = get(args, "maxAgeSeconds");

    if (file && (!is(file, BERTH_STRING) || !trimaran_host->values->text(file).n))
        complain(errors, "metricsFile", "the path of a file is needed");
    if (age && (!trimaran_host->values->integer(age, &in->max_age) || in->max_age < 1 ||
                in->max_age > 86400))
        complain(errors, "maxAgeSeconds", "1 to 86400 is needed");
}

static void read_target_load(const struct berth_value *args, struct instance *in,
                             struct berth_errors *errors)
{
    const struct berth_host_values *h = trimaran_host->values;
    const struct berth_value *requests = get(args, "defaultRequests"),
                             *multiplier = get(args, "defaultRequestsMultiplier");
    struct berth_str cpu = h->text(get(requests, "cpu")), s = h->text(multiplier);
    char text[64] = "", *end = text;

    whole(args, "targetUtilization", &in->target, errors);
    if (requests && !is(requests, BERTH_NULL))
        in->default_cpu = 0; /* what is given stands for all */
    if (cpu.n && !milli(cpu, &in->default_cpu))
        complain(errors, "defaultRequests.cpu", "a quantity of CPU is needed, such as 500m");
    if (multiplier && !is(multiplier, BERTH_STRING))
        complain(errors, "defaultRequestsMultiplier", "a string is needed, such as \"1.5\"");
    if (!multiplier || !is(multiplier, BERTH_STRING))
        return;
    snprintf(text, sizeof text, "%.*s", (int)(s.n < sizeof text ? s.n : 0), s.p);
    in->multiplier = strtod(text, &end);
    if (!*text || *end || !isfinite(in->multiplier))
        complain(errors, "defaultRequestsMultiplier",
                 "unable to parse DefaultRequestsMultiplier: a number is needed");
}

static void read_low_risk(const struct berth_value *args, struct instance *in,
                          struct berth_errors *errors)
{
    const struct berth_value *weights = get(args, "riskLimitWeights");

    whole(args, "smoothingWindowSize", &in->window, errors);
    if (weights && !is(weights, BERTH_OBJECT) && !is(weights, BERTH_NULL))
        complain(errors, "riskLimitWeights", "an object is needed");
    number(weights, "cpu", 0, 1, &in->cpu_w, errors);
    number(weights, "memory", 0, 1, &in->mem_w, errors);
}

static int by_node(const void *a, const void *b)
{
    berth_sym x = ((const struct power *)a)->node, y = ((const struct power *)b)->node;

    return x < y ? -1 : x > y;
}

static void read_peaks(const struct berth_value *args, struct instance *in,
                       struct berth_errors *errors)
{
    const struct berth_host_values *h = trimaran_host->values;
    const struct berth_value *model = get(args, "NodePowerModel");
    double k0;
    uint64_t n = 0;

    if (!h->first(model))
        complain(errors, "NodePowerModel",
                 "the models of some nodes are needed (the file of NODE_POWER_MODEL is not read)");
    for (const struct berth_value *m = h->first(model); m; m = h->next(m), n++) {
        char path[160];
        snprintf(path, sizeof path, "NodePowerModel.%.*s", (int)(h->key(m).n & 127), h->key(m).p);
        if (!is(m, BERTH_OBJECT))
            complain(errors, path, "an object with k0, k1 and k2 is needed");
        check_known(m, "k0 k1 k2", path, errors);
    }
    in->power = in->home ? calloc(n + 1, sizeof *in->power) : NULL;
    for (const struct berth_value *m = h->first(model); m; m = h->next(m)) {
        struct power p = {0, 0, 0};
        number(m, "k0", -INFINITY, INFINITY, &k0, errors);
        number(m, "k1", -INFINITY, INFINITY, &p.k1, errors);
        number(m, "k2", -INFINITY, INFINITY, &p.k2, errors);
        p.node = in->power ? trimaran_host->base->intern(in->home, h->key(m)) : 0;
        if (in->power)
            in->power[in->n_power++] = p;
    }
    if (in->power)
        qsort(in->power, in->n_power, sizeof *in->power, by_node);
}

static void read_args(int which, const struct berth_value *args, struct instance *in,
                      struct berth_errors *errors)
{
    in->target = 40;
    in->multiplier = 1.5;
    in->default_cpu = 1000;
    in->margin = in->sensitivity = 1;
    in->window = 5;
    in->cpu_w = in->mem_w = 0.5;
    in->max_age = 300;
    if (errors)
        check_known(args, known[which], "", errors);
    read_source(args, which, errors);
    read_file_args(args, in, errors);
    if (which == TARGET_LOAD)
        read_target_load(args, in, errors);
    if (which == VARIATION) {
        number(args, "safeVarianceMargin", 0, INFINITY, &in->margin, errors);
        number(args, "safeVarianceSensitivity", 0, INFINITY, &in->sensitivity, errors);
    }
    if (which == LOW_RISK)
        read_low_risk(args, in, errors);
    if (which == PEAKS)
        read_peaks(args, in, errors);
}

static void check(int which, const struct berth_value *args, struct berth_errors *errors)
{
    struct instance in = {.home = NULL};

    read_args(which, args, &in, errors);
}

/* ---- instances ------------------------------------------------------------------------------- */

static void let_go(struct instance *in)
{
    free(in->power);
    free(in->file);
    free(in);
}

static int32_t make(int which, struct berth_home *home, const struct berth_value *args, void **ret,
                    struct berth_why *why)
{
    struct berth_str file = trimaran_host->values->text(get(args, "metricsFile"));
    const char *elsewhere = getenv("BERTH_NODE_METRICS");
    struct instance *in = calloc(1, sizeof *in);

    why->reason = BERTH_STR("out of memory");
    if (!in)
        return BERTH_ERROR;
    in->home = home;
    in->cpu = trimaran_host->base->intern(home, BERTH_STR("cpu"));
    in->memory = trimaran_host->base->intern(home, BERTH_STR("memory"));
    read_args(which, args, in, NULL);
    in->file = file.n ? strndup(file.p, file.n)
                      : strdup(elsewhere && *elsewhere ? elsewhere : METRICS_FILE);
    if (!in->file || (which == PEAKS && !in->power)) {
        let_go(in);
        return BERTH_ERROR;
    }
    if (trimaran_host->values->text(get(get(args, "metricProvider"), "token")).n)
        trimaran_host->base->log(
            home, BERTH_LOG_WARNING,
            BERTH_STR("metricProvider.token is not used here and should not stand in the "
                      "scheduler's configuration: berth-metrics --token-file takes it"));
    if (trimaran_follow(in) < 0) {
        trimaran_leave(in);
        let_go(in);
        why->reason = BERTH_STR("no thread could be made");
        return BERTH_ERROR;
    }
    *ret = in;
    return BERTH_SUCCESS;
}

static void destroy(void *self)
{
    trimaran_leave(self);
    let_go(self);
}

/* ---- the plugins ----------------------------------------------------------------------------- */

#define OF(which, name)                                                                            \
    static void check_##name(const struct berth_value *args, struct berth_errors *errors)          \
    {                                                                                              \
        check(which, args, errors);                                                                \
    }                                                                                              \
    static int32_t make_##name(struct berth_home *home, const struct berth_value *args,            \
                               void **ret, struct berth_why *why)                                  \
    {                                                                                              \
        return make(which, home, args, ret, why);                                                  \
    }
OF(TARGET_LOAD, target_load)
OF(VARIATION, variation)
OF(LOW_RISK, low_risk)
OF(PEAKS, peaks)

static const struct berth_event none[1];
#define PLUGIN(text, fn, what)                                                                     \
    static const struct berth_plugin fn = {.size = sizeof fn,                                      \
                                           .flags = BERTH_USER_COLUMNS,                            \
                                           .name = {text, sizeof text - 1},                        \
                                           .reads = (what),                                        \
                                           .events = none,                                         \
                                           .check_args = check_##fn,                               \
                                           .create = make_##fn,                                    \
                                           .destroy = destroy,                                     \
                                           .score = trimaran_##fn
PLUGIN("TargetLoadPacking", target_load, BERTH_READS_NODE | BERTH_READS_PODS)
}
;
PLUGIN("LoadVariationRiskBalancing", variation, BERTH_READS_NODE)
}
;
PLUGIN("LowRiskOverCommitment", low_risk, BERTH_READS_NODE | BERTH_READS_PODS)
}
;
PLUGIN("Peaks", peaks, BERTH_READS_NODE), .normalize = trimaran_peaks_normalize
}
;

BERTH_NOTE("TargetLoadPacking LoadVariationRiskBalancing LowRiskOverCommitment Peaks", "1.0.0",
           "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&target_load, &variation, &low_risk, &peaks};

    trimaran_host = h;
    ret->plugins = all;
    ret->n = 4;
    return 0;
}
