/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/framework.c - a profile's plugin instances and a pod's cycle
 *
 * Upstream: pkg/scheduler/framework/runtime/framework.go (NewFramework); differences: MultiPoint is
 *           already expanded by scheduler/config, plugins are made in configuration order.
 */
#include <errno.h>

#include "scheduler/framework/framework.h"

static int add_instance(struct bh_framework *fw, const char *name, const struct bh_plugin_env *env,
                        struct bh_err *err)
{
    const struct bh_plugin *p = bh_plugin_find(name);
    for (uint32_t i = 0; i < fw->n_plugins; i++)
        if (bh_streq(fw->plugins[i].plugin->name, name))
            return (int)i;
    if (!p)
        return bh_err_set(err, -EINVAL, "plugin \"%s\" does not exist%s", name,
                          bh_plugin_places ? bh_plugin_places() : "");
    bh_assert(p->abi == BH_PLUGIN_ABI && p->size == sizeof *p);
    if (fw->n_plugins == BH_FRAMEWORK_PLUGINS_MAX)
        return bh_err_set(err, -EINVAL, "more than %u plugins in one profile",
                          BH_FRAMEWORK_PLUGINS_MAX);
    struct bh_plugin_instance *in = &fw->plugins[fw->n_plugins];
    *in = (struct bh_plugin_instance){.plugin = p, .points = bh_plugin_points(p)};
    if (p->args_new) {
        struct bh_plugin_env own = *env;
        own.plugin = p;
        int rc = p->args_new(&own, bh_profile_args(fw->config, name), &in->args, err);
        if (rc < 0)
            return bh_err_prefix(err, rc, "initializing plugin \"%s\"", name);
    }
    return (int)fw->n_plugins++;
}

static int add_points(struct bh_framework *fw, const struct bh_plugin_env *env, struct bh_err *err)
{
    /* Filter first: instance order, in which rejecting plugins are named, is then the order in
     * which they reject, and those at Filter are the first (run_filter.c). */
    for (unsigned k = 0; k < BH_POINT_COUNT; k++) {
        unsigned pt = (k + BH_POINT_FILTER) % BH_POINT_COUNT;
        uint32_t n = fw->config->n_points[pt];
        fw->point[pt] = bh_arena_new_array(&fw->arena, uint8_t, n ? n : 1);
        fw->n_point[pt] = n;
        for (uint32_t i = 0; i < n; i++) {
            const struct bh_plugin_ref *ref = &fw->config->points[pt][i];
            int at = add_instance(fw, ref->name, env, err);
            if (at < 0)
                return at;
            bh_assert(pt != BH_POINT_FILTER || (uint32_t)at == i);
            fw->point[pt][i] = (uint8_t)at;
            if (pt == BH_POINT_SCORE)
                fw->plugins[at].weight = ref->weight;
        }
    }
    return 0;
}

bool bh_framework_runs(const struct bh_framework *fw, enum bh_point pt, uint32_t plugin)
{
    for (uint32_t i = 0; i < fw->n_point[pt]; i++)
        if (fw->point[pt][i] == plugin)
            return true;
    return false;
}

/* What about plugin i does not change from cycle to cycle. */
static void note_plugin(struct bh_framework *fw, unsigned i)
{
    struct bh_plugin_instance *in = &fw->plugins[i];
    const struct bh_plugin *p = in->plugin;
    const uint64_t bit = (uint64_t)1 << i;
    const bool filters = bh_framework_runs(fw, BH_POINT_FILTER, i),
               scores = bh_framework_runs(fw, BH_POINT_SCORE, i),
               pre_filters = bh_framework_runs(fw, BH_POINT_PRE_FILTER, i),
               leans = !(p->flags & BH_PLUGIN_STANDS_ALONE),
               without_pre_filter = !pre_filters && (filters || scores);

    in->no_pre_filter = leans && without_pre_filter && p->pre_filter;
    in->no_pre_score =
        leans && p->pre_score && scores && !bh_framework_runs(fw, BH_POINT_PRE_SCORE, i);
    fw->kinds |= p->kinds;
    fw->idlers |= p->idle ? bit : 0;
    fw->dated |= p->epoch ? bit : 0;
    fw->epochs |= p->epoch && without_pre_filter && !in->no_pre_filter ? bit : 0;
    fw->extending |= pre_filters && p->change_pod ? bit : 0;
    fw->looking |= filters && !(p->flags & BH_PLUGIN_READS_SUMS) ? bit : 0;
    fw->soon |= scores && p->score_soon ? bit : 0;
}

int bh_framework_new(const struct bh_profile_config *config, int32_t default_percentage,
                     const struct bh_plugin_env *env, struct bh_framework **ret, struct bh_err *err)
{
    struct bh_framework *fw = bh_calloc(1, sizeof *fw);
    struct bh_plugin_env mine = *env;

    bh_arena_init(&fw->arena, 0);
    mine.arena = &fw->arena;
    fw->config = config;
    fw->waiting = env->waiting;
    fw->plugins =
        bh_arena_new_array(&fw->arena, struct bh_plugin_instance, BH_FRAMEWORK_PLUGINS_MAX);
    fw->percentage =
        config->has_percentage ? config->percentage_of_nodes_to_score : default_percentage;
    fw->sampling = fw->percentage > 0 && fw->percentage < 100;
    int rc = add_points(fw, &mine, err);
    if (rc < 0) {
        bh_framework_free(fw);
        return rc;
    }
    for (unsigned i = 0; i < fw->n_plugins; i++)
        note_plugin(fw, i);
    bh_each_plugin(k, fw, BH_POINT_PRE_BIND) {
        fw->pre_binds |= !(fw->plugins[k].plugin->flags & BH_PLUGIN_RESERVES_CLAIMS);
    }
    fw->evaluations =
        bh_arena_new_array(&fw->arena, struct bh_evaluations, fw->n_plugins ? fw->n_plugins : 1);
    if (fw->soon)
        fw->soon_ns = bh_arena_new_array(&fw->arena, uint64_t, fw->n_plugins);
    *ret = fw;
    return 0;
}

void bh_framework_free(struct bh_framework *fw)
{
    if (!fw)
        return;
    for (uint32_t i = 0; i < fw->n_plugins; i++)
        if (fw->plugins[i].plugin->args_free)
            fw->plugins[i].plugin->args_free(fw->plugins[i].args);
    bh_arena_fini(&fw->arena);
    free(fw);
}

void bh_cycle_init(struct bh_cycle *cy, const struct bh_framework *fw, struct bh_cache *cache,
                   const struct bh_objects *objects, const struct bh_pod_info *pod,
                   struct bh_arena *arena, int64_t now_ns)
{
    *cy = (struct bh_cycle){.fw = fw, .arena = arena};
    cy->calls = bh_arena_new_array(arena, struct bh_call, fw->n_plugins ? fw->n_plugins : 1);
    for (uint32_t i = 0; i < fw->n_plugins; i++)
        cy->calls[i] = (struct bh_call){.cycle = cy,
                                        .cache = cache,
                                        .tab = cache->tab,
                                        .objects = objects,
                                        .args = fw->plugins[i].args,
                                        .pod = pod,
                                        .arena = arena,
                                        .now_ns = now_ns};
}

void bh_cycle_clone(struct bh_cycle *dst, const struct bh_cycle *src, struct bh_arena *arena)
{
    uint32_t n = src->fw->n_plugins;

    *dst = *src;
    dst->arena = arena;
    dst->calls = bh_arena_memdup(arena, src->calls, (n ? n : 1) * sizeof *src->calls);
    for (uint32_t i = 0; i < n; i++) {
        const struct bh_plugin *p = src->fw->plugins[i].plugin;
        dst->calls[i].cycle = dst;
        dst->calls[i].arena = arena;
        if (p->clone_state && dst->calls[i].pre_filter_state)
            dst->calls[i].pre_filter_state = p->clone_state(&dst->calls[i]);
    }
}

uint32_t bh_num_to_find(const struct bh_framework *fw, uint32_t n_nodes)
{
    if (!fw->sampling)
        return n_nodes;
    if (fw->n_point[BH_POINT_SCORE] == 0 && !fw->extended)
        return 1;
    if (n_nodes < 100)
        return n_nodes;
    return BH_MAX(100u, (uint32_t)((uint64_t)n_nodes * (uint32_t)fw->percentage / 100));
}
