/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of ABI major 1: what plugins that exist were built with. The compiler proves it.
 *
 * Members are added at the ends of tables, with a row here; a row that does not hold any more would
 * break every plugin.
 */
#include "plugins/include/berth/plugin.h"
#include "tests/unit/harness.h"

#define AT(type, member, offset)                                                                   \
    _Static_assert(offsetof(struct berth_##type, member) == (offset), #type "." #member " moved")
/* Tables that say their size may grow; what stands in arrays may not. */
#define GROWS(type, bytes)                                                                         \
    _Static_assert(sizeof(struct berth_##type) >= (bytes), #type " has become smaller")
#define IS(name, value) _Static_assert((BERTH_##name) == (value), #name " has another value")
#define FIXED(type, bytes)                                                                         \
    _Static_assert(sizeof(struct berth_##type) == (bytes), #type " has another size")

FIXED(str, 16);
AT(str, p, 0);
AT(str, n, 8);

GROWS(why, 24);
AT(why, size, 0);
AT(why, reserved, 4);
AT(why, reason, 8);

GROWS(host_base, 64);
AT(host_base, size, 0);
AT(host_base, reserved, 4);
AT(host_base, alloc, 8);
AT(host_base, log, 16);
AT(host_base, intern, 24);
AT(host_base, text, 32);
AT(host_base, now, 40);
AT(host_base, filter_state, 48);
AT(host_base, score_state, 56);
AT(host_base, wake, 64); /* since 1.1 */
AT(host_base, wake_at, 72);

GROWS(host_values, 88);
AT(host_values, size, 0);
AT(host_values, reserved, 4);
AT(host_values, type, 8);
AT(host_values, get, 16);
AT(host_values, first, 24);
AT(host_values, next, 32);
AT(host_values, key, 40);
AT(host_values, text, 48);
AT(host_values, integer, 56);
AT(host_values, number, 64);
AT(host_values, boolean, 72);
AT(host_values, error, 80);

AT(host_values, path, 88);
AT(host_values, count, 96);
AT(host_values, quantity, 104);
AT(host_values, time, 112);

GROWS(host_pods, 104);
AT(host_pods, size, 0);
AT(host_pods, reserved, 4);
AT(host_pods, current, 8);
AT(host_pods, namespace_, 16);
AT(host_pods, priority, 24);
AT(host_pods, label, 32);
AT(host_pods, n_labels, 40);
AT(host_pods, label_at, 48);
AT(host_pods, request, 56);
AT(host_pods, name, 64);
AT(host_pods, uid, 72);
AT(host_pods, created, 80);
AT(host_pods, terminating, 88);
AT(host_pods, nominated_node, 96);
AT(host_pods, n_containers, 104);
AT(host_pods, container_kind, 112);
AT(host_pods, container_request, 120);
AT(host_pods, container_limit, 128);
AT(host_pods, overhead, 136);
AT(host_pods, n_extended, 144);
AT(host_pods, extended_at, 152);
AT(host_pods, started, 160);
AT(host_pods, annotation, 168);
AT(host_pods, scheduler_name, 176);
AT(host_pods, nominated, 184);
AT(host_pods, annotation_at, 192);
AT(host_pods, priority_class, 200);
AT(host_pods, scheduled, 208);
AT(host_pods, seccomp_profile, 216);
AT(host_pods, container_name, 224);

GROWS(host_nodes, 120);
AT(host_nodes, size, 0);
AT(host_nodes, reserved, 4);
AT(host_nodes, row, 8);
AT(host_nodes, name, 16);
AT(host_nodes, label, 24);
AT(host_nodes, n_labels, 32);
AT(host_nodes, label_at, 40);
AT(host_nodes, unschedulable, 48);
AT(host_nodes, n_taints, 56);
AT(host_nodes, taint_at, 64);
AT(host_nodes, allocatable, 72);
AT(host_nodes, requested, 80);
AT(host_nodes, n_pods, 88);
AT(host_nodes, pod_at, 96);
AT(host_nodes, count, 104);
AT(host_nodes, find, 112);
AT(host_nodes, capacity, 120);
AT(host_nodes, n_extended, 128);
AT(host_nodes, extended_at, 136);
AT(host_nodes, annotation, 144);
AT(host_nodes, changed, 152);
AT(host_nodes, n_terminating, 160);
AT(host_nodes, n_nominated, 168);

GROWS(host_columns, 56);
AT(host_columns, size, 0);
AT(host_columns, reserved, 4);
AT(host_columns, allocatable, 8);
AT(host_columns, requested, 16);
AT(host_columns, label, 24);
AT(host_columns, fact, 32);
AT(host_columns, node, 40);
AT(host_columns, n_rows, 48);
AT(host_columns, changed, 56); /* since 1.1 */

GROWS(host_waiting, 24);
AT(host_waiting, size, 0);
AT(host_waiting, reserved, 4);
AT(host_waiting, allow, 8);
AT(host_waiting, reject, 16);
AT(host_waiting, activate, 24);
AT(host_waiting, each, 32); /* since 1.1 */
AT(host_waiting, get, 40);

GROWS(host_user, 32);
AT(host_user, size, 0);
AT(host_user, reserved, 4);
AT(host_user, publish, 8);
AT(host_user, column, 16);
AT(host_user, measured, 24);

GROWS(host_objects, 80);
AT(host_objects, size, 0);
AT(host_objects, reserved, 4);
AT(host_objects, find, 8);
AT(host_objects, first, 16);
AT(host_objects, next, 24);
AT(host_objects, namespace_, 32);
AT(host_objects, name, 40);
AT(host_objects, uid, 48);
AT(host_objects, label, 56);
AT(host_objects, value, 64);
AT(host_objects, version, 72);

FIXED(kind, 56);
AT(kind, group, 0);
AT(kind, version, 16);
AT(kind, resource, 32);
AT(kind, namespaced, 48);
AT(kind, reserved, 52);

GROWS(host, 72);
AT(host, size, 0);
AT(host, abi_minor, 4);
AT(host, version, 8);
AT(host, base, 24);
AT(host, values, 32);
AT(host, pods, 40);
AT(host, nodes, 48);
AT(host, columns, 56);
AT(host, waiting, 64);
AT(host, user, 72);
AT(host, events, 80); /* since 1.1 */
AT(host, writes, 88);
AT(host, metrics, 96);

GROWS(host_metrics, 40); /* since 1.1 */
AT(host_metrics, size, 0);
AT(host_metrics, reserved, 4);
AT(host_metrics, define, 8);
AT(host_metrics, add, 16);
AT(host_metrics, set, 24);
AT(host_metrics, observe, 32);

GROWS(host_writes, 16); /* since 1.1 */
AT(host_writes, size, 0);
AT(host_writes, reserved, 4);
AT(host_writes, patch, 8);

GROWS(patch, 136); /* since 1.1 */
AT(patch, size, 0);
AT(patch, type, 4);
AT(patch, api_version, 8);
AT(patch, resource, 24);
AT(patch, subresource, 40);
AT(patch, namespace_, 56);
AT(patch, name, 72);
AT(patch, uid, 88);
AT(patch, resource_version, 104);
AT(patch, body, 120);

GROWS(host_events, 16); /* since 1.1 */
AT(host_events, size, 0);
AT(host_events, reserved, 4);
AT(host_events, emit, 8);
AT(host, objects, 104);
AT(host, preemption, 112);

GROWS(preemption, 64); /* since 1.1 */
AT(preemption, size, 0);
AT(preemption, flags, 4);
AT(preemption, arg, 8);
AT(preemption, min_candidates_percentage, 16);
AT(preemption, min_candidates_absolute, 20);
AT(preemption, waits_for, 24);
AT(preemption, evicts, 32);
AT(preemption, begin, 40);
AT(preemption, moved, 48);
AT(preemption, check, 56);

GROWS(host_preemption, 16); /* since 1.1 */
AT(host_preemption, size, 0);
AT(host_preemption, reserved, 4);
AT(host_preemption, run, 8);

FIXED(event, 8);
AT(event, on, 0);
AT(event, actions, 4);

GROWS(change, 48);
AT(change, size, 0);
AT(change, on, 4);
AT(change, action, 8);
AT(change, reserved, 12);
AT(change, old_node, 16);
AT(change, new_node, 24);
AT(change, old_pod, 32);
AT(change, new_pod, 40);
AT(change, object_namespace, 48);
AT(change, object_name, 64);
AT(change, object, 80);

GROWS(queued, 32);
AT(queued, size, 0);
AT(queued, attempts, 4);
AT(queued, pod, 8);
AT(queued, timestamp, 16);
AT(queued, initial_attempt, 24);

GROWS(post_filter, 8);
AT(post_filter, size, 0);
AT(post_filter, nominate, 4);

GROWS(plugin, 200);
AT(plugin, size, 0);
AT(plugin, flags, 4);
AT(plugin, name, 8);
AT(plugin, reads, 24);
AT(plugin, normal, 28);
AT(plugin, events, 32);
AT(plugin, n_events, 40);
AT(plugin, check_args, 48);
AT(plugin, create, 56);
AT(plugin, destroy, 64);
AT(plugin, epoch, 72);
AT(plugin, pre_enqueue, 80);
AT(plugin, hint, 88);
AT(plugin, pre_filter, 96);
AT(plugin, change_pod, 104);
AT(plugin, clone_state, 112);
AT(plugin, filter, 120);
AT(plugin, filter_rows, 128);
AT(plugin, post_filter, 136);
AT(plugin, pre_score, 144);
AT(plugin, score, 152);
AT(plugin, score_rows, 160);
AT(plugin, normalize, 168);
AT(plugin, reserve, 176);
AT(plugin, unreserve, 184);
AT(plugin, permit, 192);
AT(plugin, less, 200); /* since 1.1 */
AT(plugin, idle, 208);
AT(plugin, pre_bind, 216);
AT(plugin, bind, 224);
AT(plugin, post_bind, 232);
AT(plugin, kinds, 240);
AT(plugin, n_kinds, 248);
AT(plugin, tend, 256);

GROWS(entry, 24);
AT(entry, size, 0);
AT(entry, reserved, 4);
AT(entry, plugins, 8);
AT(entry, n, 16);

IS(SYM_ABSENT, 4294967295u);
IS(SUCCESS, 0);
IS(ERROR, 1);
IS(UNSCHEDULABLE, 2);
IS(UNRESOLVABLE, 3);
IS(WAIT, 4);
IS(SKIP, 5);
IS(PENDING, 6);
IS(LOG_ERROR, 0);
IS(LOG_WARNING, 1);
IS(LOG_INFO, 2);
IS(LOG_DEBUG, 3);
IS(COUNTER, 0);
IS(GAUGE, 1);
IS(HISTOGRAM, 2);
IS(PATCH_MERGE, 0);
IS(PATCH_JSON, 1);
IS(EVENT_NORMAL, 0);
IS(EVENT_WARNING, 1);
IS(NULL, 0);
IS(BOOL, 1);
IS(NUMBER, 2);
IS(STRING, 3);
IS(ARRAY, 4);
IS(OBJECT, 5);
IS(NO_SCHEDULE, 1);
IS(PREFER_NO_SCHEDULE, 2);
IS(NO_EXECUTE, 3);
IS(CONTAINER, 0);
IS(CONTAINER_INIT, 1);
IS(CONTAINER_SIDECAR, 2);
IS(FACT_UNSCHEDULABLE, 1);
IS(FACT_HARD_TAINT, 2);
IS(FACT_SOFT_TAINT, 3);
IS(READS_NODE, 1);
IS(READS_SUMS, 2);
IS(READS_PODS, 4);
IS(READS_IDENTITY, 8);
IS(READS_OTHERS, 16);
IS(READS_TIME, 32);
IS(READS_OBJECTS, 64);
IS(READS_ANNOTATIONS, 128);
IS(NORMAL_NONE, 0);
IS(NORMAL_MAX, 1);
IS(NORMAL_MAX_REVERSE, 2);
IS(ON_POD, 1);
IS(ON_NODE, 2);
_Static_assert(BERTH_ON_KIND(0) == 16, "a macro: not for Rust");
IS(ADD, 1);
IS(DELETE, 2);
IS(NODE_ALLOCATABLE, 4);
IS(NODE_LABEL, 8);
IS(NODE_TAINT, 16);
IS(NODE_CONDITION, 32);
IS(NODE_ANNOTATION, 64);
IS(POD_LABEL, 256);
IS(POD_SCALE_DOWN, 512);
IS(POD_TOLERATION, 1024);
IS(POD_GATES, 2048);

static void test_layout(void)
{
    CU_ASSERT(BERTH_ABI_MAJOR == 1); /* another major: another file like this one */
}

BH_TESTS("scheduler/native/layout", {"what is built for major 1 fits", test_layout})
