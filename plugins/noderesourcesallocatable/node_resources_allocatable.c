/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcesallocatable/node_resources_allocatable.c - small nodes first, or large ones
 *
 * The weighted mean of what a node can give, whatever its pods take of it. mode Least: the less the
 * better.
 * Upstream:   sigs.k8s.io/scheduler-plugins, pkg/noderesources (NodeResourcesAllocatable).
 * Difference: weights whose sum is beyond 64 bits are refused; there they end with a division by zero, or
 *             a negative sum.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

static const struct berth_host *host;

struct instance {
    int64_t total; /* of the weights, positive */
    uint64_t n;
    struct {
        berth_sym resource;
        int64_t weight; /* negative: the less the better */
    } of[];
};

/* ---- arguments ------------------------------------------------------------------------------- */

static void complain(struct berth_errors *errors, const char *path, const char *text)
{
    host->values->error(errors, (struct berth_str){path, strlen(path)},
                        (struct berth_str){text, strlen(text)});
}

static int is(const struct berth_value *v, uint32_t type)
{
    return host->values->type(v) == type;
}

/* Of a resource that is listed twice the last weight counts. */
static int counts(const struct berth_value *spec)
{
    const struct berth_host_values *v = host->values;
    struct berth_str name = v->text(v->get(spec, BERTH_STR("name")));

    for (const struct berth_value *r = v->next(spec); r; r = v->next(r))
        if (berth_str_equal(v->text(v->get(r, BERTH_STR("name"))), name))
            return 0;
    return 1;
}

/* One of `resources`. Returns its weight. */
static int64_t check_resource(const struct berth_value *spec, unsigned i,
                              struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *name = v->get(spec, BERTH_STR("name")),
                             *w = v->get(spec, BERTH_STR("weight"));
    struct berth_str n = v->text(name);
    char path[64], text[384];
    int64_t weight = 0;

    snprintf(path, sizeof path, "resources[%u]", i);
    if (!is(spec, BERTH_OBJECT))
        complain(errors, path, "an object with name and weight is needed");
    snprintf(path, sizeof path, "resources[%u].", i);
    berth_check_fields(v, spec, path, "name weight", errors);
    snprintf(path, sizeof path, "resources[%u].name", i);
    if (name && !is(name, BERTH_STRING))
        complain(errors, path, "a string is needed");
    snprintf(path, sizeof path, "resources[%u].weight", i);
    snprintf(text, sizeof text, "an integer of 64 bits is needed");
    int good = !w || is(w, BERTH_NULL) || v->integer(w, &weight);
    if (good)
        snprintf(text, sizeof text,
                 "Invalid value: %lld: resource weight of %.*s should be a positive value, got "
                 ":%lld",
                 (long long)weight, (int)(n.n < 128 ? n.n : 128), n.p, (long long)weight);
    if (!good || weight <= 0)
        complain(errors, path, text);
    return weight;
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *mode = v->get(args, BERTH_STR("mode"));
    const struct berth_value *list = v->get(args, BERTH_STR("resources"));
    struct berth_str m = v->text(mode);
    char text[256];
    int64_t sum = 0;
    unsigned n = 0;
    int too_much = 0;

    berth_check_fields(v, args, "", "mode resources", errors);
    if (list && !is(list, BERTH_ARRAY) && !is(list, BERTH_NULL))
        complain(errors, "resources", "a list is needed");
    for (const struct berth_value *r = v->first(list); r && is(list, BERTH_ARRAY); r = v->next(r)) {
        int64_t weight = check_resource(r, n++, errors);
        too_much |= counts(r) && __builtin_add_overflow(sum, weight, &sum);
    }
    if (too_much)
        complain(errors, "resources", "the sum of the weights has to be below 2^63");
    snprintf(text, sizeof text, "Invalid value: \"%.*s\": invalid support ModeType",
             (int)(m.n < 128 ? m.n : 128), m.p);
    if (mode && !is(mode, BERTH_STRING) && !is(mode, BERTH_NULL))
        complain(errors, "mode", "a string is needed");
    else if (m.n && !berth_str_is(m, "Least") && !berth_str_is(m, "Most"))
        complain(errors, "mode", text);
}

static void add(struct instance *in, berth_sym resource, int64_t weight, int least)
{
    in->of[in->n].resource = resource;
    in->of[in->n++].weight = least ? -weight : weight;
    in->total += weight;
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    const struct berth_host_values *v = host->values;
    const struct berth_host_base *b = host->base;
    const struct berth_value *list = v->get(args, BERTH_STR("resources"));
    const berth_sym pods = b->intern(home, BERTH_STR("pods"));
    int least = !berth_str_is(v->text(v->get(args, BERTH_STR("mode"))), "Most");
    struct instance *in = calloc(1, sizeof *in + (v->count(list) + 2) * sizeof in->of[0]);

    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    for (const struct berth_value *r = v->first(list); r; r = v->next(r)) {
        berth_sym resource = b->intern(home, v->text(v->get(r, BERTH_STR("name"))));
        int64_t weight = 1;
        v->integer(v->get(r, BERTH_STR("weight")), &weight);
        if (counts(r) && resource != pods)
            add(in, resource, weight, least);
        else if (counts(r)) /* no resource to the original: all nodes have 0 of it */
            in->total += weight;
    }
    if (!in->total) { /* a milli-CPU weighs as much as a MiB */
        add(in, b->intern(home, BERTH_STR("cpu")), 1 << 20, least);
        add(in, b->intern(home, BERTH_STR("memory")), 1, least);
    }
    *ret = in;
    return BERTH_SUCCESS;
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Wraps as Go's int64 does. */
static int64_t weighed(int64_t sum, int64_t weight, int64_t amount)
{
    return (int64_t)((uint64_t)sum + (uint64_t)weight * (uint64_t)amount);
}

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    const struct instance *in = self;
    int64_t sum = 0;

    (void)why;
    for (uint64_t i = 0; i < in->n; i++)
        sum = weighed(sum, in->of[i].weight, host->nodes->allocatable(c, node, in->of[i].resource));
    *ret = sum / in->total;
    return BERTH_SUCCESS;
}

static int32_t score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;

    (void)why;
    for (uint64_t k = 0; k < n; k++)
        ret[k] = 0;
    for (uint64_t i = 0; i < in->n; i++) {
        const int64_t *column = host->columns->allocatable(c, in->of[i].resource);
        for (uint64_t k = 0; column && k < n; k++)
            ret[k] = weighed(ret[k], in->of[i].weight, column[rows[k]]);
        for (uint64_t k = 0; !column && k < n; k++)
            ret[k] = weighed(
                ret[k], in->of[i].weight,
                host->nodes->allocatable(c, host->columns->node(c, rows[k]), in->of[i].resource));
    }
    for (uint64_t k = 0; k < n; k++)
        ret[k] /= in->total;
    return BERTH_SUCCESS;
}

static int32_t normalize(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why)
{
    int64_t low = n ? scores[0] : 0, high = low;

    (void)self, (void)c, (void)why;
    for (uint64_t i = 0; i < n; i++) {
        low = scores[i] < low ? scores[i] : low;
        high = scores[i] > high ? scores[i] : high;
    }
    for (uint64_t i = 0; i < n; i++)
        scores[i] = high == low ? 0
                                : (int64_t)(((uint64_t)scores[i] - (uint64_t)low) * 100) /
                                      (int64_t)((uint64_t)high - (uint64_t)low);
    return BERTH_SUCCESS;
}

/* ---- the file -------------------------------------------------------------------------------- */

static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"NodeResourcesAllocatable", 24},
    .reads = BERTH_READS_NODE,
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = free,
    .score = score,
    .score_rows = score_rows,
    .normalize = normalize,
};

BERTH_NOTE("NodeResourcesAllocatable", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
