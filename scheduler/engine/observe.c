/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/engine/observe.c - what the engine tells about its work: durations for an observer,
 * counts at all
 *
 * Upstream: pkg/scheduler/schedule_one.go, framework/runtime/framework.go (where it observes).
 */
#include "scheduler/engine/state.h"

void bh_watch_begin(struct bh_engine *e, unsigned flags)
{
    const struct bh_engine_observer *o = e->opt.observer;
    struct bh_watch *w = &e->watch;

    w->on = o && bh_counts(flags);
    w->samples = 0;
    w->at[BH_WATCH_END] = 0;
    w->split = w->on && e->stats.cycles % BH_SAMPLE_EVERY == 0;
    bh_watch_mark(e, BH_WATCH_START);
    if (w->split)
        w->samples = o->samples ? BH_MIN(o->samples(o->arg, w->at[BH_WATCH_START]), BH_SAMPLES_MAX)
                                : BH_SAMPLES_MAX;
}

void bh_watch_end(struct bh_engine *e)
{
    if (!e->watch.at[BH_WATCH_END])
        bh_watch_mark(e, BH_WATCH_END);
}

uint64_t bh_engine_took_ns(const struct bh_engine *e)
{
    return e->watch.on ? e->watch.at[BH_WATCH_END] - e->watch.at[BH_WATCH_START] : 0;
}

void bh_watch_fast(struct bh_engine *e, const struct bh_framework *fw)
{
    const struct bh_engine_observer *o = e->opt.observer;
    struct bh_watch *w = &e->watch;
    const uint64_t *at = w->at;

    if (!w->on)
        return;
    bh_watch_mark(e, BH_WATCH_END);
    uint64_t all = at[BH_WATCH_END] - at[BH_WATCH_START], ns[3];
    if (w->split) {
        ns[0] = at[BH_WATCH_FILTER] - at[BH_WATCH_START];
        ns[1] = at[BH_WATCH_SCORE] - at[BH_WATCH_FILTER];
        w->pre_filter = all ? (uint32_t)(ns[0] * 1024 / all) : 0;
        w->filter = all ? (uint32_t)(ns[1] * 1024 / all) : 0;
    } else {
        ns[0] = all * w->pre_filter / 1024;
        ns[1] = all * w->filter / 1024;
    }
    ns[2] = all - ns[0] - ns[1];
    if (w->split || all >= BH_QUIET_NS) {
        o->fast(o->arg, fw->profile, ns);
        return;
    }
    struct bh_profile *p = &e->profile[fw->profile];
    p->quiet_fast++;
    for (unsigned i = 0; i < 3; i++)
        p->quiet_fast_ns[i] += ns[i];
}

uint64_t bh_watch_now(const struct bh_engine *e)
{
    return e->watch.on ? e->opt.observer->now_ns() : 0;
}

void bh_watch_point(struct bh_engine *e, const struct bh_framework *fw, enum bh_seen_point at,
                    enum bh_code code, uint64_t *since)
{
    const struct bh_engine_observer *o = e->opt.observer;

    if (!e->watch.on)
        return;
    uint64_t now = o->now_ns();
    o->point(o->arg, fw->profile, at, code, now - *since);
    *since = now;
}

uint64_t bh_aside_watch(const struct bh_engine *e, const struct bh_framework *fw, enum bh_point pt)
{
    return e->opt.observer && fw->n_point[pt] ? e->opt.observer->now_ns() : 0;
}

void bh_aside_point(struct bh_engine *e, const struct bh_framework *fw, enum bh_seen_point at,
                    enum bh_code code, uint64_t since)
{
    const struct bh_engine_observer *o = e->opt.observer;

    if (o)
        o->point(o->arg, fw->profile, at, code, since ? o->now_ns() - since : 0);
}

bool bh_engine_profile_stats(const struct bh_engine *e, uint32_t i, struct bh_profile_stats *ret)
{
    if (i >= e->n_profiles)
        return false;
    *ret = (struct bh_profile_stats){.name = bh_sym_text(e->tab, e->profile[i].name),
                                     .cycles = e->profile[i].cycles,
                                     .hinted = e->profile[i].hinted,
                                     .quiet_reserve = e->profile[i].quiet_reserve,
                                     .quiet_permit = e->profile[i].quiet_permit,
                                     .quiet_fast = e->profile[i].quiet_fast};
    memcpy(ret->quiet_fast_ns, e->profile[i].quiet_fast_ns, sizeof ret->quiet_fast_ns);
    return true;
}

void bh_engine_each_plugin(const struct bh_engine *e,
                           void (*fn)(void *arg, const struct bh_plugin_stats *s), void *arg)
{
    for (uint32_t i = 0; i < e->n_profiles; i++) {
        const struct bh_framework *fw = e->profile[i].fw;
        for (uint32_t k = 0; k < fw->n_plugins; k++) {
            const struct bh_plugin *p = fw->plugins[k].plugin;
            struct bh_plugin_stats s = {
                .plugin = p->name,
                .profile = bh_sym_text(e->tab, e->profile[i].name),
                .n = fw->evaluations[k],
                .at_pre_filter = bh_framework_runs(fw, BH_POINT_PRE_FILTER, k),
                .at_filter = bh_framework_runs(fw, BH_POINT_FILTER, k),
                .at_pre_score = bh_framework_runs(fw, BH_POINT_PRE_SCORE, k),
                .at_score = bh_framework_runs(fw, BH_POINT_SCORE, k),
            };
            s.filters_alone = s.at_filter && !p->filter_rows;
            s.scores_alone = s.at_score && (!p->score_rows || p->scores_alone);
            fn(arg, &s);
        }
    }
}
