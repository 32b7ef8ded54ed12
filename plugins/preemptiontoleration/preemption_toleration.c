/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/preemptiontoleration/preemption_toleration.c - preemption that spares pods whose priority
 * class tolerates it
 *
 * DefaultPreemption's work with one question more for each pod of lower priority: annotations of its
 * PriorityClass say which priorities may preempt it at once, and for how long it is spared by others.
 * Upstream:    sigs.k8s.io/scheduler-plugins, pkg/preemptiontoleration.
 * Differences: README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

#define PREFIX      "preemption-toleration.scheduling.x-k8s.io/"
#define MINIMUM     PREFIX "minimum-preemptable-priority"
#define SECONDS     PREFIX "toleration-seconds"
#define NS_PER_S    INT64_C(1000000000)
#define CLASSES_MAX 256u

static const struct berth_host *host;

struct policy {
    int64_t minimum; /* who is as important as that may preempt at once */
    int64_t seconds; /* others after so many; below 0: never */
    int known, parsed;
};
struct seen { /* a class in this attempt */
    struct berth_str name;
    struct policy policy;
};
struct instance {
    struct berth_home *home;
    int64_t percentage, absolute;
    /* ---- of the attempt that is running ---- */
    int32_t priority; /* of the pod that wants room */
    struct seen *classes;
    uint32_t n_classes;
    struct berth_str
        unknown; /* a class that the node at hand has a pod of, and nobody knows; n 0: none */
};

/* ---- arguments ------------------------------------------------------------------------------- */

#define PERCENTAGE "minCandidateNodesPercentage"
#define ABSOLUTE   "minCandidateNodesAbsolute"

/* 0: it is no integer of 32 bits. Null stands for the default. */
static int read_count(const struct berth_value *args, struct berth_str name, int64_t *ret)
{
    const struct berth_value *v = host->values->get(args, name);

    return host->values->type(v) == BERTH_NULL ||
           (host->values->integer(v, ret) && *ret >= INT32_MIN && *ret <= INT32_MAX);
}

static void invalid(struct berth_errors *errors, struct berth_str path, int64_t value,
                    const char *range)
{
    char text[96];
    int n = snprintf(text, sizeof text, "Invalid value: %lld: not in valid range %s",
                     (long long)value, range);

    host->values->error(errors, path, (struct berth_str){text, (uint64_t)n});
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    int64_t percentage = 10, absolute = 100;

    berth_check_fields(v, args, "", PERCENTAGE " " ABSOLUTE, errors);
    if (!read_count(args, BERTH_STR(PERCENTAGE), &percentage))
        v->error(errors, BERTH_STR(PERCENTAGE), BERTH_STR("an integer of 32 bits is needed"));
    else if (percentage < 0 || percentage > 100)
        invalid(errors, BERTH_STR(PERCENTAGE), percentage, "[0, 100]");
    if (!read_count(args, BERTH_STR(ABSOLUTE), &absolute))
        v->error(errors, BERTH_STR(ABSOLUTE), BERTH_STR("an integer of 32 bits is needed"));
    else if (absolute < 0)
        invalid(errors, BERTH_STR(ABSOLUTE), absolute, "[0, inf)");
    if (!percentage && !absolute) {
        v->error(errors, BERTH_STR(PERCENTAGE),
                 BERTH_STR("Invalid value: 0: cannot be zero at the same time as " ABSOLUTE));
        v->error(errors, BERTH_STR(ABSOLUTE),
                 BERTH_STR("Invalid value: 0: cannot be zero at the same time as " PERCENTAGE));
    }
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    struct instance *in = calloc(1, sizeof *in);

    if (!in || !BERTH_HAS(host, preemption) || !BERTH_HAS(host->pods, scheduled)) {
        why->reason = in ? BERTH_STR("it needs host->preemption, which this Berth does not have")
                         : BERTH_STR("out of memory");
        free(in);
        return BERTH_ERROR;
    }
    in->home = home;
    in->percentage = 10;
    in->absolute = 100;
    read_count(args, BERTH_STR(PERCENTAGE), &in->percentage);
    read_count(args, BERTH_STR(ABSOLUTE), &in->absolute);
    *ret = in;
    return BERTH_SUCCESS;
}

/* ---- priority classes ------------------------------------------------------------------------ */

/* As Go's ParseInt with base 10. */
static int parse(struct berth_str s, int64_t low, int64_t high, int64_t *ret)
{
    uint64_t i = s.n && (s.p[0] == '-' || s.p[0] == '+'), v = 0;
    const int minus = i && s.p[0] == '-';
    const uint64_t most = minus ? (uint64_t)0 - (uint64_t)low : (uint64_t)high;

    if (i == s.n)
        return 0;
    for (; i < s.n; i++) {
        unsigned digit = (unsigned char)s.p[i] - (unsigned)'0';
        if (digit > 9 || v > (most - digit) / 10)
            return 0;
        v = v * 10 + digit;
    }
    *ret = minus ? (int64_t)((uint64_t)0 - v) : (int64_t)v;
    return 1;
}

static struct policy read_policy(const struct instance *in, struct berth_call *c,
                                 struct berth_str name)
{
    const struct berth_host_values *v = host->values;
    struct policy p = {0, 0, 0, 0};
    const struct berth_object *class = host->objects->find(c, 0, BERTH_STR(""), name);

    if (!class)
        return p;
    const struct berth_value *object = host->objects->value(c, class);
    const struct berth_value *notes = v->path(object, BERTH_STR("metadata.annotations"));
    const struct berth_value *minimum = v->get(notes, BERTH_STR(MINIMUM));
    const struct berth_value *seconds = v->get(notes, BERTH_STR(SECONDS));
    int64_t value = 0;

    v->integer(v->get(object, BERTH_STR("value")), &value);
    p.known = 1;
    p.minimum = (int32_t)(uint32_t)(value + 1);
    p.parsed = (!minimum || parse(v->text(minimum), INT32_MIN, INT32_MAX, &p.minimum)) &&
               (!seconds || parse(v->text(seconds), INT64_MIN, INT64_MAX, &p.seconds));
    if (!p.parsed) {
        char text[384];
        int n = snprintf(text, sizeof text,
                         "PriorityClass %.*s: " MINIMUM " and " SECONDS
                         " are numbers: its pods are not spared",
                         (int)(name.n < 200 ? name.n : 200), name.p);
        host->base->log(in->home, BERTH_LOG_WARNING, (struct berth_str){text, (uint64_t)n});
    }
    return p;
}

/* Each class is read once an attempt. */
static struct policy policy_of(struct instance *in, struct berth_call *c, struct berth_str name)
{
    for (uint32_t i = 0; i < in->n_classes; i++)
        if (berth_str_equal(in->classes[i].name, name))
            return in->classes[i].policy;
    struct policy p = read_policy(in, c, name);
    char *copy = in->n_classes < CLASSES_MAX && in->classes ? host->base->alloc(c, name.n) : NULL;
    if (copy) {
        memcpy(copy, name.p, name.n);
        in->classes[in->n_classes++] = (struct seen){{copy, name.n}, p};
    }
    return p;
}

/* ---- whom it may hit ------------------------------------------------------------------------- */

static int is_spared(struct instance *in, struct berth_call *c, const struct berth_pod *pod)
{
    struct berth_str class = host->pods->priority_class(c, pod);

    if (!class.p)
        return 0;
    const struct policy p = policy_of(in, c, class);
    if (!p.known)
        in->unknown = class;
    if (!p.known || !p.parsed || in->priority >= p.minimum)
        return 0;
    if (p.seconds < 0)
        return 1;
    const int64_t scheduled = host->pods->scheduled(c, pod);
    if (!scheduled) /* not as far as its status says */
        return 1;
    return p.seconds >= INT64_MAX / NS_PER_S ||
           host->base->now(c) - scheduled < p.seconds * NS_PER_S;
}

static int32_t evicts(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    struct instance *in = arg;

    return host->pods->priority(c, pod) < in->priority && !is_spared(in, c, pod);
}

static int32_t waits_for(void *arg, struct berth_call *c, const struct berth_pod *pod)
{
    const struct instance *in = arg;

    return host->pods->priority(c, pod) < in->priority;
}

static void begin(void *arg, struct berth_call *c, const struct berth_node *node)
{
    struct instance *in = arg;

    (void)c, (void)node;
    in->unknown = BERTH_STR("");
}

/* A class that is not there: the node is none, as upstream. */
static int32_t check(void *arg, struct berth_call *c, const struct berth_node *node, uint32_t when,
                     struct berth_why *why)
{
    const struct instance *in = arg;
    char *text;

    (void)node;
    if (!in->unknown.n || when > BERTH_EVICT_OFF)
        return BERTH_SUCCESS;
    text = host->base->alloc(c, 320);
    if (text) {
        int n = snprintf(text, 320, "priorityclass.scheduling.k8s.io \"%.*s\" not found",
                         (int)(in->unknown.n < 253 ? in->unknown.n : 253), in->unknown.p);
        why->reason = (struct berth_str){text, (uint64_t)n};
    }
    return BERTH_ERROR;
}

static int32_t post_filter(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why)
{
    struct instance *in = self;
    const struct berth_preemption how = {.size = sizeof how,
                                         .arg = in,
                                         .min_candidates_percentage = (int32_t)in->percentage,
                                         .min_candidates_absolute = (int32_t)in->absolute,
                                         .waits_for = waits_for,
                                         .evicts = evicts,
                                         .begin = begin,
                                         .check = check};

    (void)ret;
    in->priority = host->pods->priority(c, host->pods->current(c));
    in->classes = host->base->alloc(c, CLASSES_MAX * sizeof *in->classes);
    in->n_classes = 0;
    return host->preemption->run(c, &how, why);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct berth_kind kinds[] = {
    {.group = {"scheduling.k8s.io", 17}, .version = {"v1", 2}, .resource = {"priorityclasses", 15}},
};
static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"PreemptionToleration", 20},
    .reads = BERTH_READS_IDENTITY | BERTH_READS_OBJECTS | BERTH_READS_ANNOTATIONS,
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = free,
    .post_filter = post_filter,
    .kinds = kinds,
    .n_kinds = 1,
};

BERTH_NOTE("PreemptionToleration", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    if (!BERTH_HAS(h, objects)) /* of ABI 1.1 */
        return 1;
    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
