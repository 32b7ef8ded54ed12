/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/scarceresourceavoidance/scarce_resource_avoidance.c - pods that need no GPU stay away from
 * nodes that have some
 *
 * Of the resources that a node offers and the pod does not request, the more are scarce ones (they
 * stand in the arguments), the worse is the node.
 * Upstream:   Koordinator, pkg/scheduler/plugins/scarceresourceavoidance.
 * Difference: none known; written from its documentation, not compared with its source.
 */
#include <stdlib.h>

#include "berth/plugin.h"

#define SCARCE_MAX 32

static const struct berth_host *host;

struct instance {
    berth_sym cpu, memory, ephemeral;
    uint32_t n;
    berth_sym scarce[SCARCE_MAX];
};

static void check_args(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *v = host->values;
    const struct berth_value *list = v->get(args, BERTH_STR("resources"));
    unsigned n = 0;

    for (const struct berth_value *m = v->first(args); m; m = v->next(m))
        if (!berth_str_is(v->key(m), "resources"))
            v->error(errors, v->key(m), BERTH_STR("unknown field: resources is known"));
    if (!v->first(list) || v->type(list) != BERTH_ARRAY)
        v->error(errors, BERTH_STR("resources"),
                 BERTH_STR("a list of at least one resource is needed"));
    for (const struct berth_value *r = v->first(list); r; r = v->next(r), n++)
        if (v->type(r) != BERTH_STRING || !v->text(r).n)
            v->error(errors, BERTH_STR("resources"), BERTH_STR("names of resources are needed"));
    if (n > SCARCE_MAX)
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
    in->cpu = host->base->intern(home, BERTH_STR("cpu"));
    in->memory = host->base->intern(home, BERTH_STR("memory"));
    in->ephemeral = host->base->intern(home, BERTH_STR("ephemeral-storage"));
    for (const struct berth_value *r = v->first(v->get(args, BERTH_STR("resources")));
         r && in->n < SCARCE_MAX; r = v->next(r))
        in->scarce[in->n++] = host->base->intern(home, v->text(r));
    *ret = in;
    return BERTH_SUCCESS;
}

/* Resources that the node offers and the pod does not want. */
struct idle {
    int64_t all, scarce;
};
static void count(const struct instance *in, struct berth_call *c, const struct berth_node *node,
                  berth_sym resource, struct idle *idle)
{
    if (host->nodes->allocatable(c, node, resource) <= 0 ||
        host->pods->request(c, host->pods->current(c), resource) > 0)
        return;
    idle->all++;
    for (uint32_t i = 0; i < in->n; i++)
        idle->scarce += in->scarce[i] == resource;
}

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    const struct instance *in = self;
    struct idle idle = {0, 0};

    (void)why;
    count(in, c, node, in->cpu, &idle);
    count(in, c, node, in->memory, &idle);
    count(in, c, node, in->ephemeral, &idle);
    for (uint32_t i = 0, n = host->nodes->n_extended(c, node); i < n; i++)
        count(in, c, node, host->nodes->extended_at(c, node, i), &idle);
    *ret = idle.scarce ? (idle.all - idle.scarce) * 100 / idle.all : 100;
    return BERTH_SUCCESS;
}

static const struct berth_event none[1];
static const struct berth_plugin plugin = {
    .size = sizeof plugin,
    .name = {"ScarceResourceAvoidance", 23},
    .reads = BERTH_READS_NODE,
    .events = none,
    .check_args = check_args,
    .create = create,
    .destroy = free,
    .score = score,
};

BERTH_NOTE("ScarceResourceAvoidance", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&plugin};

    host = h;
    ret->plugins = all;
    ret->n = 1;
    return 0;
}
