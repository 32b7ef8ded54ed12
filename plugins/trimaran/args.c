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

#define METRICS_FILE "/run/berth/metrics/node-metrics"
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

struct at { /* an object among the arguments, or NULL */
    const struct berth_value *v;
    const char *path; /* "", or with a point behind */
    /* NULL: create(), for which check_args() has found nothing. */
    struct berth_errors *errors;
};

static const struct berth_value *get(const struct berth_value *v, const char *name)
{
    return v ? trimaran_host->values->get(v, (struct berth_str){name, strlen(name)}) : NULL;
}

static int is(const struct berth_value *v, uint32_t type)
{
    return trimaran_host->values->type(v) == type;
}

static int length(struct berth_str s)
{
    return (int)(s.n < 100 ? s.n : 100);
}

static void complain(struct at a, struct berth_str name, const char *text)
{
    char path[256];
    int n = snprintf(path, sizeof path, "%s%.*s", a.path, length(name), name.p);

    if (a.errors)
        trimaran_host->values->error(a.errors, (struct berth_str){path, (uint64_t)n},
                                     (struct berth_str){text, strlen(text)});
}

static void complain_of(struct at a, const char *name, const char *text)
{
    complain(a, (struct berth_str){name, strlen(name)}, text);
}

static void check_known(struct at a, const char *names)
{
    berth_check_fields(trimaran_host->values, a.v, a.path, names, a.errors);
}

/* A member of the type. NULL: it is not there, or null, or of another type, which is told. */
static const struct berth_value *given(struct at a, const char *name, uint32_t type)
{
    static const char *const needed[] = {
        [BERTH_BOOL] = "true or false is needed", [BERTH_NUMBER] = "a number is needed",
        [BERTH_STRING] = "a string is needed",    [BERTH_ARRAY] = "a list is needed",
        [BERTH_OBJECT] = "an object is needed",
    };
    const struct berth_value *v = get(a.v, name);

    if (!v || is(v, BERTH_NULL))
        return NULL;
    if (!is(v, type))
        complain_of(a, name, needed[type]);
    return is(v, type) ? v : NULL;
}

static struct berth_str text_of(struct at a, const char *name)
{
    const struct berth_value *v = given(a, name, BERTH_STRING);

    return v ? trimaran_host->values->text(v) : (struct berth_str){"", 0};
}

/* A number that may be left out; beyond the limits it stays the default. */
static void number(struct at a, const char *name, double least, double most, double *ret)
{
    const struct berth_value *v = given(a, name, BERTH_NUMBER);
    double d;

    if (v && !trimaran_host->values->number(v, &d))
        complain_of(a, name, "a number of 64 bits is needed");
    else if (v && d >= least && d <= most)
        *ret = d;
}

static void whole(struct at a, const char *name, double *ret)
{
    const struct berth_value *v = given(a, name, BERTH_NUMBER);
    int64_t i;

    if (v && !trimaran_host->values->integer(v, &i))
        complain_of(a, name, "an integer is needed");
    else if (v && i > 0)
        *ret = (double)i;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Where metrics would come from: upstream asks nobody for them only where there is no address. */
static void read_source(struct at args, int which)
{
    const struct at provider = {given(args, "metricProvider", BERTH_OBJECT), "metricProvider.",
                                args.errors};
    struct berth_str type = text_of(provider, "type");
    char text[160];

    check_known(provider, "type address token insecureSkipVerify");
    text_of(provider, "address");
    text_of(provider, "token");
    given(provider, "insecureSkipVerify", BERTH_BOOL);
    if (text_of(args, which == PEAKS ? "WatcherAddress" : "watcherAddress").n)
        return;
    if (which == PEAKS) {
        complain_of(args, "WatcherAddress", "invalid MetricProvider.Type, got ");
        return;
    }
    const struct berth_value *address = get(args.v, "watcherAddress");
    if (!type.n && (!address || !is(address, BERTH_STRING)))
        return;
    snprintf(text, sizeof text, "invalid MetricProvider.Type, got %.*s", length(type), type.p);
    if (!berth_str_is(type, "KubernetesMetricsServer") && !berth_str_is(type, "Prometheus") &&
        !berth_str_is(type, "SignalFx"))
        complain_of(provider, "type", text);
}

static void read_file_args(struct at args, struct instance *in)
{
    const struct berth_value *file = get(args.v, "metricsFile"),
                             *age = get(args.v, "maxAgeSeconds");

    if (file && (!is(file, BERTH_STRING) || !trimaran_host->values->text(file).n))
        complain_of(args, "metricsFile", "the path of a file is needed");
    if (age && (!trimaran_host->values->integer(age, &in->max_age) || in->max_age < 1 ||
                in->max_age > 86400))
        complain_of(args, "maxAgeSeconds", "1 to 86400 is needed");
}

/* What is given stands for all: of what it does not name nothing is requested. */
static void read_requests(struct at args, struct instance *in)
{
    const struct berth_host_values *h = trimaran_host->values;
    const struct at all = {given(args, "defaultRequests", BERTH_OBJECT), "defaultRequests.",
                           args.errors};

    if (all.v)
        in->default_cpu = 0;
    for (const struct berth_value *m = h->first(all.v); m; m = h->next(m)) {
        int64_t milli = 0;
        if (!h->quantity(m, 1, &milli) && !is(m, BERTH_NULL))
            complain(all, h->key(m), "a quantity is needed, such as 500m");
        if (berth_str_is(h->key(m), "cpu"))
            in->default_cpu = milli;
    }
}

static void read_multiplier(struct at args, struct instance *in)
{
    const struct berth_value *v = given(args, "defaultRequestsMultiplier", BERTH_STRING);
    struct berth_str s = trimaran_host->values->text(v);
    char text[64] = "", what[256], *end = text;

    if (!v)
        return;
    snprintf(text, sizeof text, "%.*s", (int)(s.n < sizeof text ? s.n : 0), s.p);
    in->multiplier = strtod(text, &end);
    snprintf(what, sizeof what,
             "unable to parse DefaultRequestsMultiplier: strconv.ParseFloat: parsing \"%.*s\": %s",
             length(s), s.p, isfinite(in->multiplier) ? "invalid syntax" : "value out of range");
    if (!*text || *end || !isfinite(in->multiplier) || text[strspn(text, "+-.0123456789eE")])
        complain_of(args, "defaultRequestsMultiplier", what);
}

static void read_low_risk(struct at args, struct instance *in)
{
    const struct berth_host_values *h = trimaran_host->values;
    const struct at weights = {given(args, "riskLimitWeights", BERTH_OBJECT), "riskLimitWeights.",
                               args.errors};

    whole(args, "smoothingWindowSize", &in->window);
    for (const struct berth_value *m = h->first(weights.v); m; m = h->next(m)) {
        double *w = berth_str_is(h->key(m), "cpu")      ? &in->cpu_w
                    : berth_str_is(h->key(m), "memory") ? &in->mem_w
                                                        : NULL;
        double d = 0; /* null */
        if (!is(m, BERTH_NULL) && !h->number(m, &d))
            complain(weights, h->key(m), "a number is needed");
        else if (w && d >= 0 && d <= 1)
            *w = d;
    }
}

static int by_node(const void *a, const void *b)
{
    berth_sym x = ((const struct power *)a)->node, y = ((const struct power *)b)->node;

    return x < y ? -1 : x > y;
}

static void read_peaks(struct at args, struct instance *in)
{
    const struct berth_host_values *h = trimaran_host->values;
    const struct at models = {given(args, "NodePowerModel", BERTH_OBJECT), "NodePowerModel.",
                              args.errors};
    double k0;

    if (!h->first(models.v))
        complain_of(
            args, "NodePowerModel",
            "the models of some nodes are needed (the file of NODE_POWER_MODEL is not read)");
    in->power = in->home ? calloc(h->count(models.v) + 1, sizeof *in->power) : NULL;
    for (const struct berth_value *m = h->first(models.v); m; m = h->next(m)) {
        struct power p = {0, 0, 0};
        char path[160];
        snprintf(path, sizeof path, "NodePowerModel.%.*s.", length(h->key(m)), h->key(m).p);
        const struct at model = {m, path, args.errors};
        if (!is(m, BERTH_OBJECT) && !is(m, BERTH_NULL))
            complain(models, h->key(m), "an object with k0, k1 and k2 is needed");
        check_known(model, "k0 k1 k2");
        number(model, "k0", -INFINITY, INFINITY, &k0);
        number(model, "k1", -INFINITY, INFINITY, &p.k1);
        number(model, "k2", -INFINITY, INFINITY, &p.k2);
        p.node = in->power ? trimaran_host->base->intern(in->home, h->key(m)) : 0;
        if (in->power)
            in->power[in->n_power++] = p;
    }
    if (in->power)
        qsort(in->power, in->n_power, sizeof *in->power, by_node);
}

static void read_args(int which, const struct berth_value *v, struct instance *in,
                      struct berth_errors *errors)
{
    const struct at args = {v, "", errors};

    in->target = 40;
    in->multiplier = 1.5;
    in->default_cpu = 1000;
    in->margin = in->sensitivity = 1;
    in->window = 5;
    in->cpu_w = in->mem_w = 0.5;
    in->max_age = 300;
    check_known(args, known[which]);
    read_source(args, which);
    read_file_args(args, in);
    if (which == TARGET_LOAD) {
        whole(args, "targetUtilization", &in->target);
        read_requests(args, in);
        read_multiplier(args, in);
    }
    if (which == VARIATION) {
        number(args, "safeVarianceMargin", 0, INFINITY, &in->margin);
        number(args, "safeVarianceSensitivity", 0, INFINITY, &in->sensitivity);
    }
    if (which == LOW_RISK)
        read_low_risk(args, in);
    if (which == PEAKS)
        read_peaks(args, in);
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
                                           .flags = BERTH_USER_COLUMNS | BERTH_STANDS_ALONE,       \
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
PLUGIN("LowRiskOverCommitment", low_risk, BERTH_READS_NODE | BERTH_READS_PODS),
    .pre_score = trimaran_low_risk_pre_score
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
