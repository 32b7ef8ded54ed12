/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/framework/observe.h - the engine's work, timed for an observer
 *
 * The engine does not look at a clock and knows no metrics. For durations it is given an
 * observer (bh_engine_options.observer): a clock, and what to do with what it measured. Without one
 * nothing is timed; a cycle then pays for a few comparisons with NULL.
 *
 * Points: how long all plugins of an extension point took for one pod, as upstream's
 * framework_extension_point_duration_seconds.
 *
 *   - Reference path: PreFilter, Filter (the search over all nodes: once per pod, and Success even
 *     when no node fits), PostFilter, PreScore, Score, as upstream.
 *   - Fast path, from results kept of an earlier pod of the same shape: PreFilter is the look at
 *     what has changed since, Filter the filters of the nodes that changed, Score their scores, the
 *     totals and the choice. PreScore has no work there and is not reported. Both paths report
 *     PreFilter and Filter exactly once for a pod that got a node. Where no more than BH_SPLIT_ROWS
 *     nodes changed, only every BH_SAMPLE_EVERYth cycle looks at the clock between the three; the
 *     others are timed as a whole, and the whole is shared out as the last one measured.
 *     Of these, the ones below BH_QUIET_NS, upstream's smallest bucket, are not reported one by one
 *     but summed up (bh_profile_stats.quiet_fast): buckets, counts and sums come out the same.
 *   - Reserve, Unreserve, Permit, PreEnqueue: both paths, as upstream. A point without plugins
 *     takes no look at the clock and is reported with 0. Permit without plugins is only counted
 *     (bh_profile_stats.quiet_permit), and so is, sampled cycles apart, Reserve of a pod for which
 *     no plugin has anything to reserve (plugin.h, BH_PLUGIN_RESERVES_CLAIMS).
 *
 * Plugins: every BH_SAMPLE_EVERYth cycle the calls of single plugins are timed as well, as many as
 * the observer wants at that time (samples; upstream: a random tenth of the cycles, and no more
 * than fit into a buffer of 1,000 a second). One sample is one call of a plugin's code. On the
 * reference path that is one node, as upstream; on the fast path a batch form answers for all nodes
 * at hand in one call, so the number says what the plugin costs for the pod, not for a node.
 *
 * Evaluations (struct bh_evaluations) are counted always: calls that were really made, PreFilter
 * and PreScore without those that said Skip; a batch form counts one per node it was asked about.
 * Results that were kept are not evaluated again and do not count.
 *
 * Runs in:  the engine's thread, in the middle of a cycle: the callbacks may not call the engine.
 * Upstream: pkg/scheduler/framework/runtime/framework.go, instrumented_plugins.go, metrics.go.
 */
#ifndef BH_OBSERVE_H
#define BH_OBSERVE_H

#include "scheduler/framework/status.h"

#define BH_SAMPLE_EVERY 10u
#define BH_SPLIT_ROWS   16u
#define BH_QUIET_NS     100000u
#define BH_SAMPLES_MAX  1000u /* a second, and a cycle */

enum bh_seen_point { /* upstream's values of the label extension_point, see bh_seen_point_name */
                     BH_SEEN_PRE_ENQUEUE,
                     BH_SEEN_PRE_FILTER,
                     BH_SEEN_FILTER,
                     BH_SEEN_ADD_POD,
                     BH_SEEN_REMOVE_POD,
                     BH_SEEN_POST_FILTER,
                     BH_SEEN_PRE_SCORE,
                     BH_SEEN_SCORE,
                     BH_SEEN_NORMALIZE,
                     BH_SEEN_RESERVE,
                     BH_SEEN_UNRESERVE,
                     BH_SEEN_PERMIT,
                     BH_SEEN_PRE_BIND,
                     BH_SEEN_PRE_FLIGHT,
                     BH_SEEN_BIND,
                     BH_SEEN_POST_BIND,
                     BH_SEEN_PLACEMENT_GENERATE,
                     BH_SEEN_PLACEMENT_SCORE,
                     BH_SEEN_PLACEMENT_NORMALIZE,
                     BH_SEEN_COUNT
};
struct bh_engine_observer {
    uint64_t (*now_ns)(void); /* monotonic */
    /* profile: index as in the configuration. */
    void (*point)(void *arg, uint32_t profile, enum bh_seen_point at, enum bh_code code,
                  uint64_t ns);
    /* A decision of the fast path: PreFilter, Filter and Score, all Success. */
    void (*fast)(void *arg, uint32_t profile, const uint64_t ns[static 3]);
    /* How many calls of plugins it wants of the cycle that begins now; NULL: BH_SAMPLES_MAX. */
    uint32_t (*samples)(void *arg, uint64_t now_ns);
    void (*plugin)(void *arg, const char *plugin, enum bh_seen_point at, enum bh_code code,
                   uint64_t ns);
    void *arg;
};
struct bh_evaluations { /* of one plugin in one profile */
    uint64_t pre_filter, filter, pre_score, score;
};
const char *bh_seen_point_name(enum bh_seen_point at);
#endif
