/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/plugins/selectorspread/selector_spread.c - pods of one service or controller apart
 *
 * Fewer pods of the same services and controller on a node are better, fewer in its zone twice as
 * much so. Off by default: PodTopologySpread's system defaults took its place.
 *
 * Upstream: pkg/scheduler/framework/plugins/selectorspread of v1.27, the last one; differences: a
 *           pod with constraints of its own skips Score instead of scoring 0 everywhere.
 */
#include "scheduler/plugins/podtopologyspread/spread.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/plugins/pair_counts.h"

#define ZONE_WEIGHT (2.0 / 3.0)

BH_STATUS_CONST(no_state, BH_ERROR, "SelectorSpread",
                "Error reading \"PreScoreSelectorSpread\" from cycleState: not found");

struct state {
    struct bh_constraint of_pod; /* its selector is the pod's; nothing else of it is used */
    struct bh_pod_counter counter;
    const uint32_t *rows; /* to be scored */
};

static int args_new(const struct bh_plugin_env *env BH_UNUSED, const struct bh_json *args BH_UNUSED,
                    void **ret, struct bh_err *err BH_UNUSED)
{
    *ret = bh_selector_memo_new();
    return 0;
}

static void args_free(void *args)
{
    bh_selector_memo_free(args);
}

static const struct bh_status *pre_score(struct bh_call *c, const uint32_t *rows, uint32_t n)
{
    size_t size;

    if (c->pod->shape->spread.n)
        return &bh_status_skip;
    struct state *st = bh_arena_new(c->arena, struct state);
    const struct bh_label_selector *sel =
        bh_selector_memo_get((struct bh_selector_memo *)(uintptr_t)c->args, c, &size);
    st->of_pod.rec = st->of_pod.sel = bh_arena_memdup(c->arena, sel, size);
    bh_pod_counter_init(&st->counter, c);
    bh_pod_counter_begin(&st->counter, &st->of_pod);
    st->rows = n ? bh_arena_memdup(c->arena, rows, n * sizeof *rows) : NULL;
    c->pre_score_state = st;
    return NULL;
}

static const struct bh_status *score(struct bh_call *c, const struct bh_node_info *ni, int64_t *ret)
{
    struct state *st = c->pre_score_state;

    *ret = 0;
    if (c->pod->shape->spread.n)
        return NULL;
    if (!st)
        return &no_state;
    *ret = bh_count_pods(&st->counter, ni);
    return NULL;
}

/* 100 for none, 0 for as many as anywhere. Divide first, then multiply, as upstream. */
static double fewer(int64_t n, int64_t max)
{
    return max > 0 ? 100.0 * ((double)(max - n) / (double)max) : 100.0;
}

static void normalize(struct bh_call *c, int64_t *scores, uint32_t n)
{
    const struct state *st = c->pre_score_state;
    struct bh_pair_counts zones = bh_pair_counts(c->arena);
    int64_t max = 0, zone_max = 0;
    bh_sym region, zone;

    if (c->pod->shape->spread.n || !st)
        return;
    for (uint32_t i = 0; i < n; i++) {
        max = BH_MAX(max, scores[i]);
        bh_cache_zone(c->cache, c->cache->rows[st->rows[i]]->rec, &region, &zone);
        if (region != BH_SYM_NONE || zone != BH_SYM_NONE)
            bh_pair_counts_add(&zones, region, zone, scores[i]);
    }
    for (uint32_t i = 0; i < zones.cap; i++)
        if (zones.slot[i].taken)
            zone_max = BH_MAX(zone_max, zones.slot[i].n);
    for (uint32_t i = 0; i < n; i++) {
        double s = fewer(scores[i], max);
        bh_cache_zone(c->cache, c->cache->rows[st->rows[i]]->rec, &region, &zone);
        const int64_t *in_zone = bh_pair_counts_find(&zones, region, zone);
        if (in_zone)
            s = s * (1.0 - ZONE_WEIGHT) + ZONE_WEIGHT * fewer(*in_zone, zone_max);
        scores[i] = (int64_t)s;
    }
}

static bool idle(struct bh_call *c)
{
    return c->pod->shape->spread.n > 0;
}

const struct bh_plugin bh_plugin_selector_spread = {
    BH_PLUGIN_HEAD("SelectorSpread"), .args_new = args_new,   .args_free = args_free,
    .events = bh_no_events,           .pre_score = pre_score, .score = score,
    .normalize = normalize,           .idle = idle,
};
