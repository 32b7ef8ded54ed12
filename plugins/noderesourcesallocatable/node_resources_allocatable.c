/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcesallocatable/node_resources_allocatable.c - small nodes first, or large ones
 *
 * The weighted mean of what a node can give, whatever its pods take of it. mode Least: the less the
 * better.
 * Upstream: sigs.k8s.io/scheduler-plugins, pkg/noderesources (NodeResourcesAllocatable); differences:
 *           none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "berth/plugin.h"

#define RESOURCES_MAX 16

static const struct berth_host *host;

struct instance {
    uint32_t n;
    berth_sym resource[RESOURCES_MAX];
    int64_t weight[RESOURCES_MAX]; /* negative: the less the better */
    int64_t total;                 /* of the weights, positive */
};

/* ---- arguments ------------------------------------------------------------------------------- */

static void complain(struct berth_errors *errors, const char *path, const char *text)
{
    struct berth_str p = {path, 0}, t = {text, 0};

    while (path[p.n])
        p.n++;
    while (text[t.n])
        t.n++;
    host->values->error(errors, p, t);
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *mode = v->get(args, BERTH_STR("mode"));
    const struct berth_value *list = v->get(args, BERTH_STR("resources"));
    char path[64], text[256];
    int64_t sum = 0;
    unsigned n = 0;
    int too_much = 0;

    for (const struct berth_value *m = v->first(args); m; m = v->next(m)) {
        snprintf(text, sizeof text, "unknown field \"%.*s\"", (int)v->key(m).n, v->key(m).p);
        if (!berth_str_is(v->key(m), "mode") && !berth_str_is(v->key(m), "resources"))
            complain(errors, "", text);
    }
    if (mode && !berth_str_is(v->text(mode), "") && !berth_str_is(v->text(mode), "Least") &&
        !berth_str_is(v->text(mode), "Most"))
        complain(errors, "mode", "invalid support ModeType");
    for (const struct berth_value *r = v->first(list); r; r = v->next(r), n++) {
        struct berth_str name = v->text(v->get(r, BERTH_STR("name")));
        int64_t weight = 0;
        v->integer(v->get(r, BERTH_STR("weight")), &weight);
        snprintf(path, sizeof path, "resources[%u].weight", n);
        snprintf(text, sizeof text, "resource weight of %.*s should be a positive value, got :%lld",
                 (int)(name.n < 128 ? name.n : 128), name.p, (long long)weight);
        if (weight <= 0)
            complain(errors, path, text);
        too_much |= __builtin_add_overflow(sum, weight, &sum);
    }
    if (too_much)
        complain(errors, "resources", "the sum of the weights has to be below 2^63");
    if (n > RESOURCES_MAX)
        complain(errors, "resources", "at most 16 are allowed");
}

static void add(struct instance *in, berth_sym resource, int64_t weight, int least)
{
    in->resource[in->n] = resource;
    in->weight[in->n++] = least ? -weight : weight;
    in->total += weight;
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    const struct berth_host_values *v = host->values;
    int least = !berth_str_is(v->text(v->get(args, BERTH_STR("mode"))), "Most");
    struct instance *in = calloc(1, sizeof *in);

    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    for (const struct berth_value *r = v->first(v->get(args, BERTH_STR("resources"))); r;
         r = v->next(r)) {
        int64_t weight = 1;
        v->integer(v->get(r, BERTH_STR("weight")), &weight);
        add(in, host->base->intern(home, v->text(v->get(r, BERTH_STR("name")))), weight, least);
    }
    if (!in->n) { /* a milli-CPU weighs as much as a MiB */
        add(in, host->base->intern(home, BERTH_STR("cpu")), 1 << 20, least);
        add(in, host->base->intern(home, BERTH_STR("memory")), 1, least);
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
    for (uint32_t i = 0; i < in->n; i++)
        sum = weighed(sum, in->weight[i], host->nodes->allocatable(c, node, in->resource[i]));
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
    for (uint32_t i = 0; i < in->n; i++) {
        const int64_t *column = host->columns->allocatable(c, in->resource[i]);
        for (uint64_t k = 0; column && k < n; k++)
            ret[k] = weighed(ret[k], in->weight[i], column[rows[k]]);
        for (uint64_t k = 0; !column && k < n; k++)
            ret[k] = weighed(
                ret[k], in->weight[i],
                host->nodes->allocatable(c, host->columns->node(c, rows[k]), in->resource[i]));
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
