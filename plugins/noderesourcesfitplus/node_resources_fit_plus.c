/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/noderesourcesfitplus/node_resources_fit_plus.c - each resource packed or spread in a way of
 * its own
 *
 * GPUs are packed (MostAllocated), so that whole nodes stay free for large pods, while CPU is spread
 * (LeastAllocated). Only resources that the pod requests count; a pod that requests none of them
 * finds all nodes equally good.
 * Upstream:   Koordinator, pkg/scheduler/plugins/noderesourcesfitplus.
 * Difference: containers without a request count as nothing, not as 100m and 200Mi.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berth/plugin.h"

#define RESOURCES_MAX 32

static const struct berth_host *host;

struct instance {
    uint32_t n;
    struct {
        berth_sym name;
        int64_t weight;
        int most;
    } of[RESOURCES_MAX];
};

static void complain(struct berth_errors *errors, struct berth_str resource, const char *field,
                     const char *text)
{
    char path[192];
    int n = snprintf(path, sizeof path, "resources.%.*s%s",
                     (int)(resource.n < 128 ? resource.n : 128), resource.p, field);

    host->values->error(errors, (struct berth_str){path, (uint64_t)n},
                        (struct berth_str){text, strlen(text)});
}

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *list = v->get(args, BERTH_STR("resources"));
    unsigned n = 0;

    for (const struct berth_value *m = v->first(args); m; m = v->next(m))
        if (!berth_str_is(v->key(m), "resources"))
            v->error(errors, v->key(m), BERTH_STR("unknown field: resources is known"));
    if (!v->first(list) || v->type(list) != BERTH_OBJECT)
        v->error(errors, BERTH_STR("resources"),
                 BERTH_STR("an object of at least one resource is needed"));
    for (const struct berth_value *r = v->first(list); r; r = v->next(r), n++) {
        struct berth_str type = v->text(v->get(r, BERTH_STR("type")));
        int64_t weight = 1;
        if (!berth_str_is(type, "MostAllocated") && !berth_str_is(type, "LeastAllocated"))
            complain(errors, v->key(r), ".type", "MostAllocated or LeastAllocated is needed");
        if (v->get(r, BERTH_STR("weight")) &&
            (!v->integer(v->get(r, BERTH_STR("weight")), &weight) || weight < 1 || weight > 100))
            complain(errors, v->key(r), ".weight", "1 to 100 is needed");
    }
    if (n > RESOURCES_MAX)
        v->error(errors, BERTH_STR("resources"), BERTH_STR("at most 32 are allowed"));
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    const struct berth_host_values *v = host->values;
    struct instance *in = calloc(1, sizeof *in);

    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    for (const struct berth_value *r = v->first(v->get(args, BERTH_STR("resources")));
         r && in->n < RESOURCES_MAX; r = v->next(r), in->n++) {
        in->of[in->n].name = host->base->intern(home, v->key(r));
        in->of[in->n].weight = 1;
        v->integer(v->get(r, BERTH_STR("weight")), &in->of[in->n].weight);
        in->of[in->n].most = berth_str_is(v->text(v->get(r, BERTH_STR("type"))), "MostAllocated");
    }
    *ret = in;
    return BERTH_SUCCESS;
}

/* 0 to 100 of one resource, of which `used` is in use with the pod. */
static int64_t part(int64_t used, int64_t allocatable, int most)
{
    if (allocatable <= 0 || used > allocatable)
        return 0;
    return (int64_t)((__extension__(__int128)(most ? used : allocatable - used)) * 100 /
                     allocatable);
}

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    const struct instance *in = self;
    const struct berth_pod *pod = host->pods->current(c);
    int64_t sum = 0, weights = 0;

    (void)why;
    for (uint32_t i = 0; i < in->n; i++) {
        int64_t request = host->pods->request(c, pod, in->of[i].name);
        if (request <= 0)
            continue;
        sum += in->of[i].weight * part(host->nodes->requested(c, node, in->of[i].name) + request,
                                       host->nodes->allocatable(c, node, in->of[i].name),
                                       in->of[i].most);
        weights += in->of[i].weight;
    }
    *ret = weights ? sum / weights : 100;
    return BERTH_SUCCESS;
}

static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"NodeResourcesFitPlus", 20},
    .reads = BERTH_READS_NODE | BERTH_READS_SUMS,
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = free,
    .score = score,
};

BERTH_NOTE("NodeResourcesFitPlus", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
