/* SPDX-License-Identifier: Apache-2.0
 *
 * NodeNumber, as in Kubernetes' examples: ten points for each unit of the last digit of a node's
 * name. For `berth bench plugins`: asked node by node, and for many at once by the label with the host
 * name, because labels are columns (NodeNumberRows); the latter under a second name (NodeNumberApart), for a
 * process of its own.
 */
#include <stdlib.h>

#include "berth/plugin.h"

static const struct berth_host *host;

struct instance {
    const struct berth_home *home;
    berth_sym key;
};

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret_self,
                      struct berth_why *why)
{
    struct instance *in = calloc(1, sizeof *in);

    (void)args;
    if (!in) {
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    in->home = home;
    in->key = host->base->intern(home, BERTH_STR("kubernetes.io/hostname"));
    *ret_self = in;
    return BERTH_SUCCESS;
}

static inline int64_t number(const struct instance *in, berth_sym name)
{
    struct berth_str s = {"", 0};

    if (name != BERTH_SYM_ABSENT)
        s = host->base->text(in->home, name);
    return s.n && s.p[s.n - 1] >= '0' && s.p[s.n - 1] <= '9' ? 10 * (s.p[s.n - 1] - '0') : 0;
}

static int32_t score(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why)
{
    const struct instance *in = self;

    (void)why;
    *ret = number(in, host->nodes->name(c, node));
    return BERTH_SUCCESS;
}

static int32_t score_by_label(void *self, struct berth_call *c, const struct berth_node *node,
                              int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;

    (void)why;
    *ret = number(in, host->nodes->label(c, node, in->key));
    return BERTH_SUCCESS;
}

static int32_t score_rows(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why)
{
    const struct instance *in = self;
    const berth_sym *name = host->columns->label(c, in->key);

    (void)why;
    for (uint64_t i = 0; i < n; i++)
        ret[i] = number(in, name ? name[rows[i]] : BERTH_SYM_ABSENT);
    return BERTH_SUCCESS;
}

static const struct berth_event none[1];
static const struct berth_plugin one_by_one = {
    .size = sizeof one_by_one,
    .name = {"NodeNumber", 10},
    .reads = BERTH_READS_NODE,
    .events = none,
    .create = create,
    .destroy = free,
    .score = score,
};
static const struct berth_plugin many = {
    .size = sizeof many,
    .name = {"NodeNumberRows", 14},
    .reads = BERTH_READS_NODE,
    .events = none,
    .create = create,
    .destroy = free,
    .score = score_by_label,
    .score_rows = score_rows,
};

static const struct berth_plugin apart = {
    .size = sizeof apart,
    .name = {"NodeNumberApart", 15},
    .reads = BERTH_READS_NODE,
    .events = none,
    .create = create,
    .destroy = free,
    .score = score_by_label,
    .score_rows = score_rows,
};

BERTH_NOTE("NodeNumber NodeNumberRows NodeNumberApart", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&one_by_one, &many, &apart};

    host = h;
    ret->plugins = all;
    ret->n = 3;
    return 0;
}
