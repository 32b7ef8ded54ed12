/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/run_filter.c - PreEnqueue, PreFilter, Filter (with nominated pods),
 * PostFilter
 *
 * Upstream: pkg/scheduler/framework/runtime/framework.go (RunPreFilterPlugins,
 *           RunFilterPluginsWithNominatedPods, RunPostFilterPlugins).
 */
#include <stdio.h>

#include "scheduler/framework/framework.h"

static bool skipped(uint64_t set, unsigned i)
{
    return set >> i & 1;
}

const struct bh_status *bh_run_pre_enqueue(const struct bh_framework *fw, const struct bh_call *c)
{
    bh_each_plugin(i, fw, BH_POINT_PRE_ENQUEUE) {
        struct bh_call own = *c;
        own.args = fw->plugins[i].args;
        const struct bh_status *s = fw->plugins[i].plugin->pre_enqueue(&own);
        if (bh_status_code(s) != BH_SUCCESS)
            return s;
    }
    return NULL;
}

int bh_by_sym(const void *a, const void *b)
{
    bh_sym x = *(const bh_sym *)a, y = *(const bh_sym *)b;
    return x < y ? -1 : x > y;
}

static void intersect(struct bh_arena *a, struct bh_node_set *into, const struct bh_node_set *with)
{
    if (into->all) {
        *into = *with;
        return;
    }
    bh_sym *both = bh_arena_new_array(a, bh_sym, into->n ? into->n : 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < into->n; i++)
        if (bsearch(&into->names[i], with->names, with->n, sizeof *with->names, bh_by_sym))
            both[n++] = into->names[i];
    *into = (struct bh_node_set){.n = n, .names = both};
}

const char *bh_plugin_names(const struct bh_framework *fw, struct bh_arena *a, uint64_t set)
{
    const char *names[BH_FRAMEWORK_PLUGINS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < fw->n_plugins; i++) {
        if (!skipped(set, i))
            continue;
        uint32_t k = n++;
        for (; k > 0 && strcmp(names[k - 1], fw->plugins[i].plugin->name) > 0; k--)
            names[k] = names[k - 1];
        names[k] = fw->plugins[i].plugin->name;
    }
    const char *text = "";
    for (uint32_t k = 0; k < n; k++)
        text = k ? bh_arena_printf(a, "%s %s", text, names[k]) : names[0];
    return text;
}

static const struct bh_status *narrowed_to_nothing(struct bh_cycle *cy, uint64_t by)
{
    const char *names = bh_plugin_names(cy->fw, cy->arena, by);

    if (__builtin_popcountll(by) == 1)
        return bh_status_new(cy->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, NULL,
                             "node(s) didn't satisfy plugin %s", names);
    return bh_status_new(cy->arena, BH_UNSCHEDULABLE_AND_UNRESOLVABLE, NULL,
                         "node(s) didn't satisfy plugin(s) [%s] simultaneously", names);
}

void bh_run_pre_filter(struct bh_cycle *cy, struct bh_pre_filter_result *ret)
{
    const struct bh_framework *fw = cy->fw;

    *ret = (struct bh_pre_filter_result){.nodes.all = true, .rejected_by = -1};
    /* What they know is that of this moment; those at PreFilter are asked there. */
    for (uint64_t left = fw->epochs; left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);
        (void)fw->plugins[i].plugin->epoch(&cy->calls[i]);
    }
    bh_each_plugin(i, fw, BH_POINT_PRE_FILTER) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        struct bh_node_set nodes = {.all = true};
        if (skipped(cy->left_out, i))
            continue;
        uint64_t t = bh_sample_begin(cy);
        const struct bh_status *s = p->pre_filter(&cy->calls[i], &nodes);
        bh_sample_end(cy, i, BH_SEEN_PRE_FILTER, bh_status_code(s), t);
        fw->evaluations[i].pre_filter += bh_status_code(s) != BH_SKIP;
        if (bh_unlikely(cy->notes))
            cy->notes->pre_filter[cy->notes->n_pre_filter++] =
                (struct bh_plugin_note){p->name, s, !nodes.all, nodes.names, nodes.n};

        switch (bh_status_code(s)) {
        case BH_SKIP:
            cy->skip_filter |= (uint64_t)1 << i;
            break;
        case BH_UNSCHEDULABLE_AND_UNRESOLVABLE: /* earlier narrowing does not matter any more */
            ret->status = s;
            ret->rejected_by = (int)i;
            ret->narrowed_by = 0;
            return;
        case BH_UNSCHEDULABLE: /* preemption wants the other plugins' states */
            ret->status = s;
            ret->rejected_by = (int)i;
            break;
        case BH_SUCCESS:
            if (nodes.all)
                break;
            ret->narrowed_by |= (uint64_t)1 << i;
            intersect(cy->arena, &ret->nodes, &nodes);
            if (ret->nodes.n == 0) { /* no single plugin's: those that narrowed did it together */
                ret->status = narrowed_to_nothing(cy, ret->narrowed_by);
                ret->rejected_by = -1;
                return;
            }
            break;
        default:
            ret->status = bh_run_failed(cy, "PreFilter", p, s);
            return;
        }
    }
}

/* Plugins at Filter that the cycle asks; bit i: plugin i. They are the framework's first ones, in
 * the order of the point. */
static uint64_t asked_to_filter(const struct bh_cycle *cy)
{
    const uint32_t n = cy->fw->n_point[BH_POINT_FILTER];

    return n ? UINT64_MAX >> (BH_FRAMEWORK_PLUGINS_MAX - n) & ~cy->skip_filter : 0;
}

const struct bh_status *bh_run_filter(struct bh_cycle *cy, const struct bh_node_info *ni,
                                      int *ret_plugin)
{
    const struct bh_framework *fw = cy->fw;
    struct bh_evaluations *n = fw->evaluations;
    const bool timed = cy->samples; /* this is the inner loop of the reference path */

    for (uint64_t left = asked_to_filter(cy); left; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);
        const struct bh_plugin *p = fw->plugins[i].plugin;
        uint64_t t = timed ? bh_sample_begin(cy) : 0;
        const struct bh_status *s = fw->plugins[i].no_pre_filter && p->without_pre_filter
                                        ? p->without_pre_filter
                                        : p->filter(&cy->calls[i], ni);
        if (bh_unlikely(timed))
            bh_sample_end(cy, i, BH_SEEN_FILTER, bh_status_code(s), t);
        n[i].filter++;
        if (bh_likely(!s))
            continue;
        *ret_plugin = (int)i;
        if (bh_status_rejected(s))
            return s;
        return bh_status_new(cy->arena, BH_ERROR, p->name, "running \"%s\" filter plugin: %s",
                             p->name, bh_status_message(cy->arena, s));
    }
    return NULL;
}

const struct bh_status *bh_run_change_pod(struct bh_cycle *cy, const struct bh_pod_info *pod,
                                          const struct bh_node_info *ni, int by)
{
    const struct bh_framework *fw = cy->fw;

    bh_each_plugin(i, fw, BH_POINT_PRE_FILTER) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        if (skipped(cy->skip_filter, i) || !p->change_pod)
            continue;
        uint64_t t = bh_sample_begin(cy);
        const struct bh_status *s = p->change_pod(&cy->calls[i], pod, ni, by);
        bh_sample_end(cy, i, by > 0 ? BH_SEEN_ADD_POD : BH_SEEN_REMOVE_POD, bh_status_code(s), t);
        if (bh_status_code(s) != BH_SUCCESS)
            return bh_status_new(
                cy->arena, BH_ERROR, p->name, "running %s on PreFilter plugin \"%s\": %s",
                by > 0 ? "AddPod" : "RemovePod", p->name, bh_status_message(cy->arena, s));
    }
    return NULL;
}

bool bh_nominated_counts(const struct bh_cycle *cy, const struct bh_pod_info *pod,
                         const struct bh_pod_info *nominated)
{
    return nominated->shape->priority >= pod->shape->priority &&
           (cy->for_shape || !bh_str_eq(bh_rec_text(nominated->rec, nominated->rec->uid),
                                        bh_rec_text(pod->rec, pod->rec->uid)));
}

const struct bh_status *bh_run_filter_with(struct bh_cycle *cy, const struct bh_node_info *ni,
                                           int *ret_plugin, bool *ret_any)
{
    const struct bh_pod_info *pod = cy->fw->n_plugins ? cy->calls[0].pod : NULL;
    const struct bh_nomination *nom =
        pod ? bh_cache_nominations(cy->calls[0].cache, ni->name) : NULL;
    struct bh_node_info *with = NULL;
    struct bh_cycle clone;

    bool sketch = nom && bh_cycle_sketches(cy); /* all plugins read sums only */

    *ret_any = false;
    for (; nom; nom = nom->next_on_node) {
        if (!bh_nominated_counts(cy, pod, &nom->info))
            continue;
        if (!with) {
            with = sketch ? bh_node_info_sketch(ni, cy->arena) : bh_node_info_fork(ni, cy->arena);
            if (!sketch)
                bh_cycle_clone(&clone, cy, cy->arena);
        }
        if (sketch) {
            bh_node_info_sketch_pod(with, nom->info.shape, true);
            continue;
        }
        bh_node_info_add_pod(with, (struct bh_pod_info *)(uintptr_t)&nom->info);
        const struct bh_status *s = bh_run_change_pod(&clone, &nom->info, with, 1);
        if (s)
            return s;
    }
    *ret_any = with != NULL;
    return with ? bh_run_filter(sketch ? cy : &clone, with, ret_plugin) : NULL;
}

const struct bh_status *bh_run_filter_nominated(struct bh_cycle *cy, const struct bh_node_info *ni,
                                                int *ret_plugin)
{
    const struct bh_cache *cache = cy->calls[0].cache; /* NULL: no plugins */
    const struct bh_status *s = NULL;
    bool any;

    if (cache && cache->nominations.len) /* mostly there are none */
        s = bh_run_filter_with(cy, ni, ret_plugin, &any);
    return s ? s : bh_run_filter(cy, ni, ret_plugin);
}

/* A later result replaces an earlier one, but not what that wants written. */
static void take_result(struct bh_post_filter_result *to, const struct bh_post_filter_result *r,
                        bool whole)
{
    const struct bh_post_filter_result before = *to, *with = r->n_writes ? r : &before;

    if (whole || r->override_nomination)
        *to = *r;
    to->writes = with->writes;
    to->n_writes = with->n_writes;
}

/* A rejection goes on to the next plugin and the reasons gather; Success and U&U end it. */
const struct bh_status *bh_run_post_filter(struct bh_cycle *cy, const struct bh_diagnosis *d,
                                           struct bh_post_filter_result *ret)
{
    const struct bh_framework *fw = cy->fw;
    const char **reasons = NULL;
    uint32_t n = 0;
    const char *first = NULL;

    *ret = (struct bh_post_filter_result){0};
    bh_each_plugin(i, fw, BH_POINT_POST_FILTER) {
        const struct bh_plugin *p = fw->plugins[i].plugin;
        struct bh_post_filter_result r = {0};
        uint64_t t = bh_sample_begin(cy);
        const struct bh_status *s = p->post_filter(&cy->calls[i], d, &r);
        bh_sample_end(cy, i, BH_SEEN_POST_FILTER, bh_status_code(s), t);
        if (bh_unlikely(cy->notes))
            cy->notes->post_filter[cy->notes->n_post_filter++] =
                (struct bh_plugin_note){.plugin = p->name, .status = s};

        if (bh_status_code(s) == BH_SUCCESS ||
            bh_status_code(s) == BH_UNSCHEDULABLE_AND_UNRESOLVABLE) {
            take_result(ret, &r, true);
            return s;
        }
        if (!bh_status_rejected(s)) {
            take_result(ret, &(struct bh_post_filter_result){0}, true);
            return bh_status_new(cy->arena, BH_ERROR, p->name, "%s",
                                 bh_status_message(cy->arena, s));
        }
        take_result(ret, &r, false);
        const char **more = bh_arena_new_array(cy->arena, const char *, n + s->n_reasons);
        if (n)
            memcpy(more, reasons, n * sizeof *reasons);
        memcpy(more + n, s->reasons, s->n_reasons * sizeof *reasons);
        reasons = more;
        n += s->n_reasons;
        first = first ? first : p->name;
    }
    struct bh_status *all = bh_arena_new(cy->arena, struct bh_status);
    *all = (struct bh_status){
        .code = BH_UNSCHEDULABLE, .n_reasons = n, .reasons = reasons, .plugin = first};
    return all;
}
