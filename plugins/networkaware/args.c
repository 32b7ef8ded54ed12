/* SPDX-License-Identifier: Apache-2.0
 *
 * plugins/networkaware/args.c - NetworkOverhead and TopologicalSort: arguments, instances, the file
 *
 * Upstream: apis/config/v1 (types.go, defaults.go) of sigs.k8s.io/scheduler-plugins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "networkaware.h"

/* ---- checking -------------------------------------------------------------------------------- */

static void complain(struct berth_errors *errors, const char *path, const char *what)
{
    nw_host->values->error(errors, (struct berth_str){path, strlen(path)},
                           (struct berth_str){what, strlen(what)});
}

/* NULL: it is not there, or null. */
static const struct berth_value *given(const struct berth_value *args, const char *name)
{
    const struct berth_value *v = nw_get(args, name);

    return v && nw_host->values->type(v) != BERTH_NULL ? v : NULL;
}

static void check_namespaces(const struct berth_value *args, struct berth_errors *errors)
{
    const struct berth_host_values *h = nw_host->values;
    const struct berth_value *list = given(args, "namespaces");
    unsigned n = 0;

    if (list && h->type(list) != BERTH_ARRAY)
        complain(errors, "namespaces", "a list of names is needed");
    if (!list || h->type(list) != BERTH_ARRAY)
        return;
    for (const struct berth_value *v = h->first(list); v; v = h->next(v), n++) {
        char path[64];
        snprintf(path, sizeof path, "namespaces[%u]", n);
        if (h->type(v) != BERTH_STRING || !h->text(v).n)
            complain(errors, path, "the name of a namespace is needed");
    }
}

static void check_text(const struct berth_value *args, const char *name, int may_be_empty,
                       const char *what, struct berth_errors *errors)
{
    const struct berth_value *v = given(args, name);

    if (v && (nw_host->values->type(v) != BERTH_STRING ||
              (!may_be_empty && !nw_host->values->text(v).n)))
        complain(errors, name, what);
}

static void check_overhead(const struct berth_value *args, struct berth_errors *errors)
{
    berth_check_fields(nw_host->values, args, "", "namespaces weightsName networkTopologyName",
                       errors);
    check_namespaces(args, errors);
    check_text(args, "weightsName", 1, "a string is needed", errors);
    check_text(args, "networkTopologyName", 0, "the name of a NetworkTopology is needed", errors);
}

static void check_sort(const struct berth_value *args, struct berth_errors *errors)
{
    berth_check_fields(nw_host->values, args, "", "namespaces", errors);
    check_namespaces(args, errors);
}

/* ---- instances ------------------------------------------------------------------------------- */

/* Texts of symbols live as long as the instance. */
static struct berth_str kept(struct nw_instance *in, struct berth_str s)
{
    return nw_host->base->text(in->home, nw_host->base->intern(in->home, s));
}

/* 0: no memory. */
static int read_args(struct nw_instance *in, const struct berth_value *args)
{
    const struct berth_host_values *h = nw_host->values;
    const struct berth_value *list = given(args, "namespaces"), *v;
    uint64_t n = list ? h->count(list) : 0;

    in->namespaces = calloc(n ? n : 1, sizeof *in->namespaces);
    if (!in->namespaces)
        return 0;
    for (v = n ? h->first(list) : NULL; v && in->n_namespaces < n; v = h->next(v))
        in->namespaces[in->n_namespaces++] = kept(in, h->text(v));
    if (!n)
        in->namespaces[in->n_namespaces++] = kept(in, BERTH_STR("default"));
    v = given(args, "weightsName");
    in->weights = kept(in, v ? h->text(v) : BERTH_STR("UserDefined"));
    v = given(args, "networkTopologyName");
    in->topology_name = kept(in, v ? h->text(v) : BERTH_STR("nt-default"));
    return 1;
}

static int32_t create(struct berth_home *home, const struct berth_value *args, void **ret,
                      struct berth_why *why)
{
    const struct berth_host_base *b = nw_host->base;
    struct nw_instance *in = calloc(1, sizeof *in);

    if (in)
        in->home = home;
    if (!in || !read_args(in, args)) {
        free(in);
        why->reason = BERTH_STR("out of memory");
        return BERTH_ERROR;
    }
    in->group_label = b->intern(home, BERTH_STR("appgroup.diktyo.x-k8s.io"));
    in->workload_label = b->intern(home, BERTH_STR("appgroup.diktyo.x-k8s.io.workload"));
    in->region_label = b->intern(home, BERTH_STR("topology.kubernetes.io/region"));
    in->zone_label = b->intern(home, BERTH_STR("topology.kubernetes.io/zone"));
    *ret = in;
    return BERTH_SUCCESS;
}

static void destroy(void *self)
{
    struct nw_instance *in = self;

    nw_groups_fini(in);
    nw_topology_fini(in);
    free(in->namespaces);
    free(in);
}

/* ---- the plugins ----------------------------------------------------------------------------- */

static const struct berth_kind kinds[] = {
    [NW_GROUPS] = {{"appgroup.diktyo.x-k8s.io", 24}, {"v1alpha1", 8}, {"appgroups", 9}, 1, 0},
    [NW_TOPOLOGIES] =
        {{"networktopology.diktyo.x-k8s.io", 31}, {"v1alpha1", 8}, {"networktopologies", 17}, 1, 0},
};
static const struct berth_event events[] = {
    {BERTH_ON_POD, BERTH_ADD | BERTH_DELETE | BERTH_POD_LABEL},
    {BERTH_ON_NODE, BERTH_ADD | BERTH_NODE_LABEL | BERTH_DELETE},
    {BERTH_ON_KIND(NW_GROUPS), BERTH_ADD | BERTH_UPDATE | BERTH_DELETE},
    {BERTH_ON_KIND(NW_TOPOLOGIES), BERTH_ADD | BERTH_UPDATE | BERTH_DELETE},
};
static const struct berth_plugin overhead = {
    .size = sizeof overhead,
    .name = {"NetworkOverhead", 15},
    .reads = BERTH_READS_NODE | BERTH_READS_PODS | BERTH_READS_OTHERS | BERTH_READS_OBJECTS,
    .events = events,
    .n_events = sizeof events / sizeof *events,
    .check_args = check_overhead,
    .create = create,
    .destroy = destroy,
    .hint = nw_hint,
    .idle = nw_idle,
    .pre_filter = nw_pre_filter,
    .filter = nw_filter,
    .filter_rows = nw_filter_rows,
    .score = nw_score,
    .score_rows = nw_score_rows,
    .normalize = nw_normalize,
    .kinds = kinds,
    .n_kinds = 2,
};
static const struct berth_plugin sort = {
    .size = sizeof sort,
    .name = {"TopologicalSort", 15},
    .reads = BERTH_READS_NODE | BERTH_READS_OBJECTS,
    .events = events, /* none: it rejects nobody */
    .check_args = check_sort,
    .create = create,
    .destroy = destroy,
    .less = nw_less,
    .kinds = kinds,
    .n_kinds = 1,
};
BERTH_NOTE("NetworkOverhead TopologicalSort", "1.0.0", "Apache-2.0");

int32_t berth_plugin_entry_v1(const struct berth_host *h, struct berth_entry *ret)
{
    static const struct berth_plugin *const all[] = {&overhead, &sort};

    if (!BERTH_HAS(h, objects))
        return 1;
    nw_host = h;
    ret->plugins = all;
    ret->n = 2;
    return 0;
}
