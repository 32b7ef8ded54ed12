/* SPDX-License-Identifier: Apache-2.0
 *
 * berth/plugin.h - scheduling plugins that Berth did not compile: the whole public surface
 *
 * A plugin is a shared object with one ELF note (BERTH_NOTE) and one exported symbol,
 * berth_plugin_entry_v1. It is used by naming it in a KubeSchedulerConfiguration, as any other
 * plugin; docs/plugins.md goes from an empty folder to a running one.
 *
 * Compatibility. What is built for ABI major 1 runs on every Berth that has major 1. Tables only
 * grow at their ends: each begins with its size, and BERTH_HAS tells whether the other side has a
 * member. Structs of the host are never visible: handles are opaque and good for the accessors
 * below.
 *
 * Shapes. Numbers have fixed widths; a text is {p, n}, UTF-8, and nothing relies on a NUL behind it.
 * CPU is in milli, every other resource in whole units (bytes, counts), times in nanoseconds.
 *
 * Lifetimes. What a callback is handed lives until it returns, unless the member says otherwise. What
 * a plugin hands back is copied before the next callback. What it keeps it allocates itself.
 *
 * Threads. All callbacks of one instance come from one thread at a time; instances of one plugin
 * may be at work in several threads at once (one scheduler makes one instance a profile, the
 * simulator more), so a plugin has no unguarded globals. Functions of the host may be called inside
 * a callback only, from its thread, with the handles of that callback; elsewhere they do nothing
 * and answer 0. log(), wake(), user->publish(), user->measured() and metrics->add(), set() and observe()
 * may be called from any thread between create() and the end of destroy(); threads of the plugin's own
 * begin in create() and have ended when destroy() returns.
 *
 * Purity. PreFilter, Filter, PreScore, Score and their batch forms answer from their arguments, the
 * host's accessors and the instance: no files, no sockets, no clock, no random numbers. What a thread
 * of the plugin's own finds out gets there as a user column. What of the
 * cluster they look at stands in `reads`; an accessor that gives something else makes the call an
 * Error. `berth simulate --verify` finds answers that depend on what is not declared.
 *
 * C11, C++11. Nothing but these two headers.
 */
#ifndef BERTH_PLUGIN_H
#define BERTH_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BERTH_ABI_MAJOR 1
#define BERTH_ABI_MINOR 1

/* Does the table t (whose first member is its size) have the member, and is it not NULL? */
#define BERTH_HAS(t, member)                                                                       \
    ((t)->size >=                                                                                  \
         (size_t)((const char *)&(t)->member - (const char *)(t)) + sizeof((t)->member) &&         \
     (t)->member)

struct berth_str { /* a borrowed text */
    const char *p;
    uint64_t n; /* bytes */
};
#ifdef __cplusplus
#define BERTH_STR(literal)                                                                         \
    berth_str                                                                                      \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }
#else
#define BERTH_STR(literal) ((struct berth_str){literal, sizeof(literal) - 1})
#endif
/* 1 or 0. */
static inline int32_t berth_str_equal(struct berth_str a, struct berth_str b)
{
    uint64_t i = 0;

    while (i < a.n && i < b.n && a.p[i] == b.p[i])
        i++;
    return i == a.n && i == b.n;
}
/* The same, with a text that ends with a NUL. */
static inline int32_t berth_str_is(struct berth_str s, const char *text)
{
    uint64_t i = 0;

    while (i < s.n && text[i] && s.p[i] == text[i])
        i++;
    return i == s.n && !text[i];
}

/* A text as a number: equal texts of one instance have equal symbols. 0 is the empty text. */
typedef uint32_t berth_sym;
#define BERTH_SYM_ABSENT UINT32_MAX /* there is no such label */

struct berth_home;   /* an instance, as the host knows it: from create() to destroy() */
struct berth_call;   /* one callback's pod and moment */
struct berth_pod;    /* a pod */
struct berth_node;   /* a node as the callback is to see it: maybe with pods added or taken away */
struct berth_value;  /* a value in the plugin's arguments, or in an object */
struct berth_errors; /* what is wrong with them */
struct berth_object; /* an object of one of the plugin's kinds; since 1.1 */

/* ---- what callbacks say ---------------------------------------------------------------------- */

/* Status codes, kube-scheduler's. A code that the callback may not return counts as ERROR, with the
 * plugin's name. */
#define BERTH_SUCCESS       0
#define BERTH_ERROR         1 /* the plugin failed: the attempt ends, the pod is tried again later */
#define BERTH_UNSCHEDULABLE 2 /* not as things are; evicting pods could help */
#define BERTH_UNRESOLVABLE  3 /* UnschedulableAndUnresolvable: evicting pods would not help */
#define BERTH_WAIT          4 /* Permit: the pod waits */
#define BERTH_SKIP          5 /* PreFilter, PreScore: the plugin has no say about this pod */
#define BERTH_PENDING       6 /* rejected until something outside the cluster happens */

/* Why a callback did not return SUCCESS. Filled by the plugin, copied when the callback returns. */
struct berth_why {
    uint32_t size; /* set by the host: its sizeof(struct berth_why) */
    uint32_t reserved;
    struct berth_str reason; /* empty: the host says that the plugin gave none */
};

/* ---- functions of the host ------------------------------------------------------------------- */

#define BERTH_LOG_ERROR   0
#define BERTH_LOG_WARNING 1
#define BERTH_LOG_INFO    2
#define BERTH_LOG_DEBUG   3 /* written at -v=2 and above */

struct berth_host_base {
    uint32_t size;
    uint32_t reserved;
    /* Zeroed memory, aligned to 16, that is freed by itself: after the cycle, or with the results
     * that the host keeps where the callback was PreFilter or PreScore. NULL: more than 64 MiB at
     * once, or the cycle has used 256 MiB. */
    void *(*alloc)(struct berth_call *c, uint64_t bytes);
    /* One line in the scheduler's log, with the plugin's name. Any thread, at any time between
     * create() and destroy(). */
    void (*log)(const struct berth_home *home, uint32_t severity, struct berth_str text);
    /* Text to symbol; in create() and in every callback. Symbols are never freed: intern the keys of
     * the configuration, not whatever pods bring along. In `mode: process` an instance may add 4 MiB of
     * texts (and 64 bytes for each); then its process is ended as by a crash. */
    berth_sym (*intern)(struct berth_home *home, struct berth_str text);
    /* Symbol to text. Lives as long as the instance, and a NUL follows it. */
    struct berth_str (*text)(const struct berth_home *home, berth_sym symbol);
    /* The moment of this cycle, nanoseconds since 1970, the same in all of its callbacks. Needs
     * BERTH_READS_TIME. */
    int64_t (*now)(struct berth_call *c);
    /* Where the plugin may leave a pointer for its later callbacks of the same cycle: NULL at first.
     * What it points to comes from alloc() in the same callback. filter_state: from PreFilter on for
     * Filter, change_pod, PreScore, Score. score_state: from PreScore on for Score, Normalize. */
    void **(*filter_state)(struct berth_call *c);
    void **(*score_state)(struct berth_call *c);
    /* ---- since ABI 1.1 ---- */
    /* Something outside of the cluster has changed: pods that the plugin rejected are worth another
     * attempt, after their back-off (those that are PENDING at once). Any thread. Told within 50 ms;
     * what is said in the meantime is one. */
    void (*wake)(const struct berth_home *home);
    /* The same, but when now() will have come to at_ns; what was said last counts, INT64_MAX is never.
     * In create() and in every callback: of what they read they know until when it holds. Where time
     * is made up, as in scenarios, this follows it, and wake() does nothing. */
    void (*wake_at)(struct berth_home *home, int64_t at_ns);
};

#define BERTH_NULL   0
#define BERTH_BOOL   1
#define BERTH_NUMBER 2
#define BERTH_STRING 3
#define BERTH_ARRAY  4
#define BERTH_OBJECT 5

/* The plugin's arguments: pluginConfig's `args`, as they stand in the file; apiVersion and kind, which
 * the file may give, are taken out. NULL is a value, too: of type BERTH_NULL, without children.
 * Values live until check_args() or create() returns, those of objects until the callback does. */
struct berth_host_values {
    uint32_t size;
    uint32_t reserved;
    uint32_t (*type)(const struct berth_value *v);
    const struct berth_value *(*get)(const struct berth_value *object, struct berth_str member);
    /* Children of an array or an object, in the file's order: first(v), then next(child) until
     * NULL. */
    const struct berth_value *(*first)(const struct berth_value *v);
    const struct berth_value *(*next)(const struct berth_value *child);
    struct berth_str (*key)(const struct berth_value *member); /* its name in the object */
    struct berth_str (*text)(const struct berth_value *v); /* of a string or a number, else "" */
    /* 1 and *ret, or 0 and *ret untouched: not of this type, or out of range. */
    int32_t (*integer)(const struct berth_value *v, int64_t *ret);
    int32_t (*number)(const struct berth_value *v, double *ret);
    int32_t (*boolean)(const struct berth_value *v, int32_t *ret);
    /* check_args() only: one thing that is wrong. path: "resources[1].weight", "" = the whole. */
    void (*error)(struct berth_errors *errors, struct berth_str path, struct berth_str text);
    /* ---- since 1.1 ---- */
    /* By names with a dot between, of lists by number: "spec.windows.0.from". NULL: not there. */
    const struct berth_value *(*path)(const struct berth_value *v, struct berth_str path);
    uint64_t (*count)(const struct berth_value *v); /* children of an array or an object, else 0 */
    /* 1 and *ret, or 0 and *ret untouched. A quantity ("500m", "4Gi", 3), rounded up; milli: in
     * thousandths. A time of RFC 3339 in nanoseconds since 1970; one before 1678 or after 2262 is
     * the nearest that can be told. */
    int32_t (*quantity)(const struct berth_value *v, int32_t milli, int64_t *ret);
    int32_t (*time)(const struct berth_value *v, int64_t *ret);
};

struct berth_host_pods {
    uint32_t size;
    uint32_t reserved;
    /* The pod that the callback is about. */
    const struct berth_pod *(*current)(struct berth_call *c);
    /* What pods of one template share. */
    struct berth_str (*namespace_)(struct berth_call *c, const struct berth_pod *pod);
    int32_t (*priority)(struct berth_call *c, const struct berth_pod *pod);
    /* The value of a label; BERTH_SYM_ABSENT. */
    berth_sym (*label)(struct berth_call *c, const struct berth_pod *pod, berth_sym key);
    uint32_t (*n_labels)(struct berth_call *c, const struct berth_pod *pod);
    void (*label_at)(struct berth_call *c, const struct berth_pod *pod, uint32_t i, berth_sym *key,
                     berth_sym *value);
    /* What it requests of "cpu", "memory", "ephemeral-storage" or an extended resource: the sum that
     * NodeResourcesFit compares. 0 without a request. */
    int64_t (*request)(struct berth_call *c, const struct berth_pod *pod, berth_sym resource);
    /* What is its own: needs BERTH_READS_IDENTITY. */
    struct berth_str (*name)(struct berth_call *c, const struct berth_pod *pod);
    struct berth_str (*uid)(struct berth_call *c, const struct berth_pod *pod);
    int64_t (*created)(struct berth_call *c, const struct berth_pod *pod); /* ns since 1970 */
    int32_t (*terminating)(struct berth_call *c, const struct berth_pod *pod);
    berth_sym (*nominated_node)(struct berth_call *c, const struct berth_pod *pod); /* 0 = none */
    /* ---- since 1.1: what its spec says, container by container, init containers first ---- */
    uint32_t (*n_containers)(struct berth_call *c, const struct berth_pod *pod);
    uint32_t (*container_kind)(struct berth_call *c, const struct berth_pod *pod, uint32_t i);
    /* -1: it does not name the resource. */
    int64_t (*container_request)(struct berth_call *c, const struct berth_pod *pod, uint32_t i,
                                 berth_sym resource);
    int64_t (*container_limit)(struct berth_call *c, const struct berth_pod *pod, uint32_t i,
                               berth_sym resource);
    int64_t (*overhead)(struct berth_call *c, const struct berth_pod *pod, berth_sym resource);
    /* The resources besides "cpu", "memory" and "ephemeral-storage" that request() is about. */
    uint32_t (*n_extended)(struct berth_call *c, const struct berth_pod *pod);
    berth_sym (*extended_at)(struct berth_call *c, const struct berth_pod *pod, uint32_t i);
    /* When the kubelet of its node took it up, ns since 1970; 0: it has not yet, as far as is known.
     * Of pods on the node at hand with BERTH_READS_PODS, else BERTH_READS_IDENTITY. */
    int64_t (*started)(struct berth_call *c, const struct berth_pod *pod);
    /* Since 1.1. p NULL: it has no such annotation. Needs BERTH_READS_ANNOTATIONS and IDENTITY; not in
     * hint(). */
    struct berth_str (*annotation)(struct berth_call *c, const struct berth_pod *pod,
                                   struct berth_str key);
    /* Since 1.1. spec.schedulerName, which pods of one template share. The current pod's is the name of the
     * profile that the instance belongs to. */
    berth_sym (*scheduler_name)(struct berth_call *c, const struct berth_pod *pod);
    /* Since 1.1. The pods of the queue that have a node nominated, one by one, in no order, and that node
     * (node may be NULL); *at is 0 at first. NULL: that was all. Needs BERTH_READS_OTHERS. */
    const struct berth_pod *(*nominated)(struct berth_call *c, uint64_t *at, berth_sym *node);
    /* Since 1.1. What is kept with annotations, and needs the same. The
     * i-th annotation, p NULL: there are no more. spec.priorityClassName, p NULL: none. Since when its
     * condition PodScheduled is True, ns since 1970, 0: it is not. Files of seccomp profiles on the node
     * (type Localhost), i-th of the pod's own and its containers' but for init containers, p NULL: there
     * are no more. */
    struct berth_str (*annotation_at)(struct berth_call *c, const struct berth_pod *pod, uint32_t i,
                                      struct berth_str *ret_key);
    struct berth_str (*priority_class)(struct berth_call *c, const struct berth_pod *pod);
    int64_t (*scheduled)(struct berth_call *c, const struct berth_pod *pod);
    struct berth_str (*seccomp_profile)(struct berth_call *c, const struct berth_pod *pod,
                                        uint32_t i);
    /* Since 1.1. Which pods of one template share; 0: there is no such container. */
    berth_sym (*container_name)(struct berth_call *c, const struct berth_pod *pod, uint32_t i);
};
#define BERTH_CONTAINER         0u
#define BERTH_CONTAINER_INIT    1u /* ends before the containers begin */
#define BERTH_CONTAINER_SIDECAR 2u /* an init container that goes on */

struct berth_host_nodes {
    uint32_t size;
    uint32_t reserved;
    /* Its row in columns. Rows are reused when a node goes. UINT32_MAX: none (a node of a change). */
    uint32_t (*row)(struct berth_call *c, const struct berth_node *node);
    /* What the node's object says: needs BERTH_READS_NODE. */
    berth_sym (*name)(struct berth_call *c, const struct berth_node *node);
    berth_sym (*label)(struct berth_call *c, const struct berth_node *node, berth_sym key);
    uint32_t (*n_labels)(struct berth_call *c, const struct berth_node *node);
    void (*label_at)(struct berth_call *c, const struct berth_node *node, uint32_t i,
                     berth_sym *key, berth_sym *value);
    int32_t (*unschedulable)(struct berth_call *c, const struct berth_node *node);
    uint32_t (*n_taints)(struct berth_call *c, const struct berth_node *node);
    /* effect: BERTH_NO_SCHEDULE ... 0 = another one. */
    void (*taint_at)(struct berth_call *c, const struct berth_node *node, uint32_t i,
                     berth_sym *key, berth_sym *value, uint32_t *effect);
    /* status.allocatable of "cpu", "memory", "ephemeral-storage", "pods" or an extended resource. */
    int64_t (*allocatable)(struct berth_call *c, const struct berth_node *node, berth_sym resource);
    /* The sum of its pods' requests; of "pods" their number: needs BERTH_READS_SUMS. */
    int64_t (*requested)(struct berth_call *c, const struct berth_node *node, berth_sym resource);
    /* Its pods, one by one: needs BERTH_READS_PODS. */
    uint32_t (*n_pods)(struct berth_call *c, const struct berth_node *node);
    const struct berth_pod *(*pod_at)(struct berth_call *c, const struct berth_node *node,
                                      uint32_t i);
    /* Other nodes than the one at hand: needs BERTH_READS_OTHERS. NULL: there is no such node. */
    uint32_t (*count)(struct berth_call *c);
    const struct berth_node *(*find)(struct berth_call *c, berth_sym name);
    /* ---- since 1.1 ---- */
    /* status.capacity, of what allocatable() knows: needs BERTH_READS_NODE. */
    int64_t (*capacity)(struct berth_call *c, const struct berth_node *node, berth_sym resource);
    /* The resources that its allocatable names besides the four that every node has: extended ones,
     * huge pages. Need BERTH_READS_NODE. */
    uint32_t (*n_extended)(struct berth_call *c, const struct berth_node *node);
    berth_sym (*extended_at)(struct berth_call *c, const struct berth_node *node, uint32_t i);
    /* Since 1.1. p NULL: it has no such annotation. Needs BERTH_READS_ANNOTATIONS and NODE; not in
     * hint(). */
    struct berth_str (*annotation)(struct berth_call *c, const struct berth_node *node,
                                   struct berth_str key);
    /* Since 1.1. Calls fn with every node whose object or pods changed since the moment that `since` is,
     * once or more often; 0, and a moment too long ago: with every node. Returns this moment. Nodes that
     * went are not told of. Needs BERTH_READS_OTHERS. */
    uint64_t (*changed)(struct berth_call *c, uint64_t since,
                        void (*fn)(void *arg, const struct berth_node *node), void *arg);
    /* Since 1.1. How many of its pods are being deleted; how many pods of the queue are nominated to it,
     * because preemption made room for them there. Need BERTH_READS_PODS. */
    uint32_t (*n_terminating)(struct berth_call *c, const struct berth_node *node);
    uint32_t (*n_nominated)(struct berth_call *c, const struct berth_node *node);
};
#define BERTH_NO_SCHEDULE        1
#define BERTH_PREFER_NO_SCHEDULE 2
#define BERTH_NO_EXECUTE         3

/* One value a row, for batch forms. Arrays are aligned to 64 bytes, readable up to a multiple of 64
 * rows, valid until the callback returns; a row that was not asked about may hold anything. */
struct berth_host_columns {
    uint32_t size;
    uint32_t reserved;
    /* NULL: no column of this resource ("pods" has none, an extended resource that no node offers, or
     * the 65th): ask the nodes. Need what the node's accessors of the same names need. */
    const int64_t *(*allocatable)(struct berth_call *c, berth_sym resource);
    const int64_t *(*requested)(struct berth_call *c, berth_sym resource);
    /* The nodes' values of one label, BERTH_SYM_ABSENT without. Kept up to date by the host, for at
     * most 8 keys an instance. NULL: a ninth key. Needs BERTH_READS_NODE. */
    const berth_sym *(*label)(struct berth_call *c, berth_sym key);
    /* One bit a row, bit row % 64 of word row / 64: BERTH_FACT_... Needs BERTH_READS_NODE. NULL: no
     * such fact. */
    const uint64_t *(*fact)(struct berth_call *c, uint32_t which);
    /* The node of a row; NULL: there is none. Without BERTH_READS_OTHERS of rows that the callback was
     * given only. */
    const struct berth_node *(*node)(struct berth_call *c, uint32_t row);
    /* Rows are 0 to n_rows - 1, some of them without a node. Needs BERTH_READS_OTHERS. */
    uint32_t (*n_rows)(struct berth_call *c);
    /* Since 1.1. The rows whose node, or pods on it, may be others than before *at, which goes on; at most
     * max of them (one may come twice, or have no node any more), so call it until it says fewer. *at 0
     * is the beginning. UINT32_MAX: all rows are to be looked at; *at is now. So what a plugin counts of
     * other nodes' pods it need not count anew for each pod. In Idle, PreFilter, PostFilter and tend(). Needs
     * BERTH_READS_OTHERS. */
    uint32_t (*changed)(struct berth_call *c, uint64_t *at, uint32_t *rows, uint32_t max);
};
#define BERTH_FACT_UNSCHEDULABLE 1 /* spec.unschedulable */
#define BERTH_FACT_HARD_TAINT    2 /* some NoSchedule or NoExecute taint */
#define BERTH_FACT_SOFT_TAINT    3 /* some PreferNoSchedule taint */

/* Pods that wait: because the plugin's Permit said so, or in the queue. Inside callbacks, of any pod. */
struct berth_host_waiting {
    uint32_t size;
    uint32_t reserved;
    /* Of the plugin's part in it. 1; 0: no such pod waits, or it was decided before. */
    int32_t (*allow)(struct berth_home *home, struct berth_str uid);
    int32_t (*reject)(struct berth_home *home, struct berth_str uid, struct berth_str reason);
    /* The pod, which waits in the queue, is tried next, whatever back-off it has left: as
     * kube-scheduler's PodsToActivate. One that waits at Permit gets another try when it is rejected; one
     * that is not there, or is gated, is passed over. At most 65536 at a time. */
    void (*activate)(struct berth_home *home, struct berth_str uid);
    /* ---- since ABI 1.1 ---- */
    /* The uids of the pods that wait at Permit, for whichever plugin, in no order. fn may allow and
     * reject. */
    void (*each)(struct berth_home *home, void (*fn)(void *arg, struct berth_str uid), void *arg);
    /* One of them, and the node that it has (node may be NULL); NULL: no such pod waits. Needs
     * BERTH_READS_OTHERS. */
    const struct berth_pod *(*get)(struct berth_call *c, struct berth_str uid, berth_sym *node);
};

/* Numbers of the plugin's own, one a node, that it was told or measured outside of callbacks. A plugin
 * with BERTH_USER_COLUMNS in its flags has 8 of them. */
struct berth_host_user {
    uint32_t size;
    uint32_t reserved;
    /* Replaces a column: nodes[i] has values[i], every other node NaN; of a node that comes twice the
     * last value counts. Copied. Callbacks see it as a whole, from a later pod on; answers that are
     * kept are made anew. Any thread. 1; 0: no such column, or more than 1048576 nodes. */
    int32_t (*publish)(struct berth_home *home, uint32_t column, const struct berth_str *nodes,
                       const double *values, uint64_t n);
    /* One value a row, as other columns; NULL: no such column. Needs BERTH_READS_NODE. */
    const double *(*column)(struct berth_call *c, uint32_t column);
    /* ---- since 1.1 ---- */
    /* When what the columns say was measured, ns since 1970, and of how many nodes: metrics and
     * `berth plugins` show its age. Until the first call nothing is shown. Any thread. */
    void (*measured)(struct berth_home *home, int64_t at_ns, uint64_t n_nodes);
};

#define BERTH_EVENT_NORMAL  0
#define BERTH_EVENT_WARNING 1

/* Since ABI 1.1. Events of the cluster (kubectl get events) about pods, in the name of the pod's
 * profile. In PreEnqueue, PostFilter and from Reserve on: other answers may be kept, and their
 * callbacks are not called for each pod then. */
struct berth_host_events {
    uint32_t size;
    uint32_t reserved;
    /* reason: letters and digits, at most 128, as GangComplete; note: printable, at most 1024 bytes. A
     * binder writes it, as kube-scheduler's own: soon, but it is the first thing to be given up. 1; 0:
     * it is dropped, as more than 32 a second of one instance are, and all in simulations. */
    int32_t (*emit)(struct berth_call *c, const struct berth_pod *pod, uint32_t type,
                    struct berth_str reason, struct berth_str note);
};

#define BERTH_PATCH_MERGE 0u /* RFC 7386 */
#define BERTH_PATCH_JSON  1u /* RFC 6902: test, add, replace and remove */

/* What is to be written: a patch of the object that was seen, which may be repeated. */
struct berth_patch {
    uint32_t size; /* sizeof(struct berth_patch) */
    uint32_t type;
    struct berth_str api_version, resource; /* "apps/v1", "deployments" */
    struct berth_str subresource;           /* "status"; empty: the object itself */
    struct berth_str namespace_, name;      /* namespace_ empty: of a resource of the cluster */
    /* Of the object that is meant: with another the patch is a conflict. One of them at least, or a
     * JSON patch that begins with a test of its own. */
    struct berth_str uid, resource_version;
    struct berth_str body; /* JSON, at most 65535 bytes */
};

/* Since ABI 1.1. Writes are requests: the scheduler has no credentials. A binder makes them, for
 * resources that its --plugin-writes names. */
struct berth_host_writes {
    uint32_t size;
    uint32_t reserved;
    /* In pre_bind(): before the pod is bound; at most 16 for a pod and plugin. In bind(): in the
     * Binding's place; one. In tend(): soon, or never; at most 64. 1; 2: it is done, this is pre_bind()
     * asked again; 0: it is not a patch, and the callback is an Error that says what is wrong; of
     * tend() also: there are 64 already, or it is a simulation. */
    int32_t (*patch)(struct berth_call *c, const struct berth_patch *patch);
};

#define BERTH_COUNTER   0u
#define BERTH_GAUGE     1u
#define BERTH_HISTOGRAM 2u

/* Since ABI 1.1. Metrics of the plugin, at the scheduler's /metrics. Instances of one plugin share
 * them. */
struct berth_host_metrics {
    uint32_t size;
    uint32_t reserved;
    /* In create(): the metric berth_plugin_<name of the plugin>_<name>. name: lower case letters,
     * digits, _; at most 64 bytes; help: printable, at most 256. bounds: of a histogram's buckets,
     * ascending, at most 32, without the infinite one; else NULL, 0. Its number, from 1 on; 0: that is
     * no metric, or the 33rd of the plugin, or the name is taken. */
    uint32_t (*define)(struct berth_home *home, uint32_t kind, struct berth_str name,
                       struct berth_str help, const double *bounds, uint64_t n_bounds);
    /* Counter (v from 0 on) and gauge; gauge; histogram. Any thread. A number that is none, another
     * kind, and what is not finite: nothing happens. */
    void (*add)(const struct berth_home *home, uint32_t metric, double v);
    void (*set)(const struct berth_home *home, uint32_t metric, double v);
    void (*observe)(const struct berth_home *home, uint32_t metric, double v);
};

/* Since 1.1. Objects of the plugin's `kinds`, as the API server told them last. Need
 * BERTH_READS_OBJECTS; handles live until the callback returns. kind: index in `kinds`. */
struct berth_host_objects {
    uint32_t size;
    uint32_t reserved;
    /* namespace_: empty for kinds without. NULL: there is none. */
    const struct berth_object *(*find)(struct berth_call *c, uint32_t kind,
                                       struct berth_str namespace_, struct berth_str name);
    /* All of a kind, in no order that would mean anything, until NULL. */
    const struct berth_object *(*first)(struct berth_call *c, uint32_t kind);
    const struct berth_object *(*next)(struct berth_call *c, const struct berth_object *o);
    struct berth_str (*namespace_)(struct berth_call *c, const struct berth_object *o);
    struct berth_str (*name)(struct berth_call *c, const struct berth_object *o);
    struct berth_str (*uid)(struct berth_call *c, const struct berth_object *o);
    /* p NULL: it has no such label. */
    struct berth_str (*label)(struct berth_call *c, const struct berth_object *o,
                              struct berth_str key);
    /* The whole of it, but for metadata.managedFields: values->path(v, "spec.from"). */
    const struct berth_value *(*value)(struct berth_call *c, const struct berth_object *o);
    /* Another number when an object of the kind came, changed or went. */
    uint64_t (*version)(struct berth_call *c, uint32_t kind);
};

/* A flag: evicts() is asked about the least important pods first. */
#define BERTH_PREEMPT_ASCENDING 1u

/* When check() is asked. */
#define BERTH_EVICT_NONE 0u /* evicts() named no pod of the node */
#define BERTH_EVICT_OFF  1u /* all that it named are off the node, and the pod fits */
#define BERTH_EVICT_FITS 2u /* one of them is back on the node, and the pod still fits */
#define BERTH_EVICT_GONE 3u /* one was back, the pod did not fit, and it is off the node again */

/* Since 1.1. How a plugin would make room for the pod at hand: kube-scheduler's preemption, with the
 * plugin's word on whom it may hit. For each node that may become feasible: evicts() of each of its
 * pods, those for which it says 1 are taken off; filters and check() say whether that would do; then as
 * many as possible are put back, the most important first, those covered by an exhausted disruption
 * budget before the others. Of the nodes the one is chosen where it hurts least. Nothing of this changes
 * anything: filters see a copy of the node, these calls the node with all of its pods. They come while
 * run() does, from the same thread. */
struct berth_preemption {
    uint32_t size; /* sizeof(struct berth_preemption) */
    uint32_t flags;
    void *arg; /* the first of each of these */
    /* DefaultPreemption's arguments: 100 looks at all nodes. */
    int32_t min_candidates_percentage, min_candidates_absolute;
    /* A pod that is terminating on the node that was nominated for the pod at hand: 1, the pod waits for
     * it, and evicts nobody else meanwhile. */
    int32_t (*waits_for)(void *arg, struct berth_call *c, const struct berth_pod *pod);
    int32_t (*evicts)(void *arg, struct berth_call *c, const struct berth_pod *pod);
    /* May be NULL. Another node's turn, with everything as it is; a pod was taken off (-1), which may be
     * seen in what evicts() says of the next, or was put back (1). */
    void (*begin)(void *arg, struct berth_call *c, const struct berth_node *node);
    void (*moved)(void *arg, struct berth_call *c, const struct berth_pod *pod, int32_t by);
    /* May be NULL. when: BERTH_EVICT_. NONE, OFF: other than SUCCESS, the node is none, and why. FITS:
     * UNSCHEDULABLE, the pod that was put back has to go all the same (it then counts as no violated
     * budget). ERROR: the node is none. */
    int32_t (*check)(void *arg, struct berth_call *c, const struct berth_node *node, uint32_t when,
                     struct berth_why *why);
};

/* Since 1.1. In a process of the plugin's own no plugin of its file may have Filter or AddPod. */
struct berth_host_preemption {
    uint32_t size;
    uint32_t reserved;
    /* In post_filter(), once. SUCCESS: a node is found; when post_filter() says SUCCESS, too, its pods are
     * evicted and it is nominated. Else what post_filter() is to say, and why. */
    int32_t (*run)(struct berth_call *c, const struct berth_preemption *how, struct berth_why *why);
};

struct berth_host {
    uint32_t size;
    uint32_t abi_minor; /* of BERTH_ABI_MAJOR */
    struct berth_str version;
    const struct berth_host_base *base;
    const struct berth_host_values *values;
    const struct berth_host_pods *pods;
    const struct berth_host_nodes *nodes;
    const struct berth_host_columns *columns;
    const struct berth_host_waiting *waiting;
    const struct berth_host_user *user;
    /* ---- since ABI 1.1 ---- */
    const struct berth_host_events *events;
    const struct berth_host_writes *writes;
    const struct berth_host_metrics *metrics;
    const struct berth_host_objects *objects;       /* since 1.1 */
    const struct berth_host_preemption *preemption; /* since 1.1 */
};

/* ---- what a plugin is ------------------------------------------------------------------------ */

/* What PreFilter, Filter, PreScore, Score and their batch forms may look at besides what pods of one
 * template share. Within NODE, SUMS, PODS, OBJECTS and ANNOTATIONS the host keeps answers from pod to pod and asks
 * anew about nodes that changed only (of OBJECTS: about all, when an object of the plugin's kinds did);
 * with anything else, or 0 (= everything), every node is asked for every pod. */
#define BERTH_READS_NODE     1u  /* of the node at hand: its object */
#define BERTH_READS_SUMS     2u  /* of the node at hand: sums over its pods, their number */
#define BERTH_READS_PODS     4u  /* of the node at hand: its pods, but for their identity */
#define BERTH_READS_IDENTITY 8u  /* of pods: name, uid, times, nomination */
#define BERTH_READS_OTHERS   16u /* nodes other than the one at hand, and how many there are */
#define BERTH_READS_TIME     32u /* now() */
#define BERTH_READS_OBJECTS  64u /* objects of `kinds`; since 1.1 */
/* Annotations: of nodes with NODE, of pods with IDENTITY. Not part of 0 (= everything): they are kept
 * for plugins that ask for them only, which costs the watcher and the scheduler a copy of each object.
 * With those of pods a few things more are kept: see berth_host_pods.
 * Those of nodes leave answers kept. Since 1.1. */
#define BERTH_READS_ANNOTATIONS 128u

/* How a score follows from what score() said of all feasible nodes, where there is no normalize(). */
#define BERTH_NORMAL_NONE        0u /* it is final: 0 to 100 */
#define BERTH_NORMAL_MAX         1u /* 100 * score / the largest; scores from 0 on */
#define BERTH_NORMAL_MAX_REVERSE 2u /* 100 minus that */

#define BERTH_USER_COLUMNS 1u /* a flag: it publishes user columns */
/* A flag, since 1.1: a profile may leave its PreFilter or PreScore out. Filter and Score find NULL as their
 * state then, and say the same; so answers are kept, which they are not without this flag. */
#define BERTH_STANDS_ALONE 2u

#define BERTH_ON_POD     1u
#define BERTH_ON_NODE    2u
#define BERTH_ON_KIND(i) (16u + (i)) /* objects of kinds[i]: ADD, UPDATE, DELETE; since 1.1 */
/* Actions, kube-scheduler's bits. */
#define BERTH_ADD              1u
#define BERTH_DELETE           2u
#define BERTH_NODE_ALLOCATABLE 4u
#define BERTH_NODE_LABEL       8u
#define BERTH_NODE_TAINT       16u
#define BERTH_NODE_CONDITION   32u
#define BERTH_NODE_ANNOTATION  64u
#define BERTH_POD_LABEL        256u
#define BERTH_POD_SCALE_DOWN   512u
#define BERTH_POD_TOLERATION   1024u
#define BERTH_POD_GATES        2048u
#define BERTH_UPDATE           8188u
#define BERTH_ALL              8191u

/* After which changes a pod that the plugin rejected is worth another attempt. */
struct berth_event {
    uint32_t on;      /* BERTH_ON_... */
    uint32_t actions; /* bits */
};

/* A change that `events` names, for hint(). */
struct berth_change {
    uint32_t size;
    uint32_t on;
    uint32_t action; /* one bit, or BERTH_UPDATE */
    uint32_t reserved;
    /* NULL = absent. Of these nodes only what their objects say is known. */
    const struct berth_node *old_node, *new_node;
    const struct berth_pod *old_pod, *new_pod;
    /* ---- since 1.1; of BERTH_ON_KIND ---- */
    struct berth_str object_namespace, object_name;
    const struct berth_object *object; /* as it is now; NULL: there is none */
};

/* A pod of the queue, for less(). */
struct berth_queued {
    uint32_t size;
    uint32_t attempts; /* made before */
    const struct berth_pod *pod;
    /* Nanoseconds since 1970: when it came, or was last rejected; when it was first ready to be tried,
     * 0 = not yet. */
    int64_t timestamp, initial_attempt;
};

/* What PostFilter found. */
struct berth_post_filter {
    uint32_t size;
    berth_sym nominate; /* SUCCESS: the node that is to be the pod's; 0 = none */
};

/* Since 1.1. Objects that the plugin reads, of any kind: custom resources, ConfigMaps. The watcher lists
 * and watches them as long as a profile uses the plugin, and needs the rights for that. One that the
 * server does not have (yet) has no objects. While they are not known, because the watcher may not
 * list or watch them, profiles with the plugin decide nothing. At most 16 of all plugins together. */
struct berth_kind {
    struct berth_str group, version, resource; /* "" = core; "v1"; its plural */
    uint32_t namespaced;                       /* 1 or 0 */
    uint32_t reserved;
};

/* A plugin. Every callback may be NULL; those that are not are its extension points. `self` is what
 * create() left. Callbacks without a result cannot fail. */
struct berth_plugin {
    uint32_t size; /* sizeof(struct berth_plugin) */
    /* BERTH_USER_COLUMNS, BERTH_STANDS_ALONE. Of bits that the host does not know, those from
     * 1 << 16 on refuse the plugin. */
    uint32_t flags;
    struct berth_str name; /* one of the note's; as in the configuration */
    uint32_t reads;        /* BERTH_READS_... */
    uint32_t normal;       /* BERTH_NORMAL_... */
    /* NULL: every change; n_events 0 and not NULL: none. */
    const struct berth_event *events;
    uint64_t n_events;

    /* ---- configuration ---- */
    /* Tells everything that is wrong with the arguments, also to `berth config check`. Without an
     * instance. */
    void (*check_args)(const struct berth_value *args, struct berth_errors *errors);
    /* Makes an instance of arguments that check_args() had nothing against. SUCCESS, or ERROR and
     * why: the scheduler does not start. */
    int32_t (*create)(struct berth_home *home, const struct berth_value *args, void **ret_self,
                      struct berth_why *why);
    void (*destroy)(void *self);
    /* A number that changes whenever answers may, for a reason that is neither in the pod nor in what
     * the plugin reads. Asked for each pod: cheap. Since 1.1 also right before pre_filter(), and now()
     * may be used whatever `reads` says: so answers that hold for a while are kept for as long. Identity, pods
     * and other nodes are free there, too: what of them changes answers changes the number, or is about a
     * node that changed and `reads` says so. */
    uint64_t (*epoch)(void *self, struct berth_call *c);

    /* ---- queue ---- */
    /* SUCCESS lets the pod into the queue; anything else holds it back until a change of `events`. */
    int32_t (*pre_enqueue)(void *self, struct berth_call *c, struct berth_why *why);
    /* Is the change worth another attempt of the pod (pods->current) that the plugin rejected? 1 yes,
     * 0 no. NULL: yes. May look at the pod, at the change's handles, at objects of `kinds`, and at
     * nothing else. */
    int32_t (*hint)(void *self, struct berth_call *c, const struct berth_change *change);

    /* ---- filtering ---- */
    /* Once a pod. SUCCESS; SKIP: not asked further (no Filter); UNSCHEDULABLE, UNRESOLVABLE: no node
     * will do. *names, *n_names: only these nodes may do; NULL leaves all. */
    int32_t (*pre_filter)(void *self, struct berth_call *c, const berth_sym **names,
                          uint64_t *n_names, struct berth_why *why);
    /* What filter_state says once a pod is added to a node (by 1) or taken away (-1), with
     * clone_state: a copy of it, in memory of alloc(). Both or none. Since 1.1 the identity of the pod that is
     * added or taken away may be asked for whatever `reads` says. */
    int32_t (*change_pod)(void *self, struct berth_call *c, const struct berth_pod *pod,
                          const struct berth_node *node, int32_t by, struct berth_why *why);
    void *(*clone_state)(void *self, struct berth_call *c, const void *state);
    /* SUCCESS, UNSCHEDULABLE, UNRESOLVABLE, PENDING. */
    int32_t (*filter)(void *self, struct berth_call *c, const struct berth_node *node,
                      struct berth_why *why);
    /* The same for many rows: sets bit i % 64 of keep[i / 64] (0 before) where rows[i] passes. Equals
     * filter(), which says why. SUCCESS or ERROR. */
    int32_t (*filter_rows)(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                           uint64_t *keep, struct berth_why *why);
    /* No node will do. SUCCESS: the pod is tried again, maybe on the node nominated; UNSCHEDULABLE:
     * the next plugin is asked; UNRESOLVABLE: none is. */
    int32_t (*post_filter)(void *self, struct berth_call *c, struct berth_post_filter *ret,
                           struct berth_why *why);

    /* ---- scoring ---- */
    /* Before Score. SUCCESS; SKIP: the plugin scores no node. rows: the feasible ones where reads has
     * OTHERS, else NULL, 0. */
    int32_t (*pre_score)(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                         struct berth_why *why);
    int32_t (*score)(void *self, struct berth_call *c, const struct berth_node *node, int64_t *ret,
                     struct berth_why *why);
    /* The same for many rows: fills ret[0..n). Equals score(). */
    int32_t (*score_rows)(void *self, struct berth_call *c, const uint32_t *rows, uint64_t n,
                          int64_t *ret, struct berth_why *why);
    /* In place, over the scores of all feasible nodes: 0 to 100 each. May not call accessors of
     * nodes. */
    int32_t (*normalize)(void *self, struct berth_call *c, int64_t *scores, uint64_t n,
                         struct berth_why *why);

    /* ---- after a node was chosen: identity, other nodes and now() are free ---- */
    int32_t (*reserve)(void *self, struct berth_call *c, berth_sym node, struct berth_why *why);
    /* Undoes it; also where reserve() of another plugin failed, and more than once. */
    void (*unreserve)(void *self, struct berth_call *c, berth_sym node);
    /* SUCCESS; WAIT for at most *wait_ns (15 minutes at most), until waiting->allow() or reject();
     * UNSCHEDULABLE and others: back to the queue. When the plugin's own process ends, pods that wait for it
     * fail, and permit() is called for them again. */
    int32_t (*permit)(void *self, struct berth_call *c, berth_sym node, int64_t *wait_ns,
                      struct berth_why *why);

    /* ======== since ABI 1.1 ======== */
    /* QueueSort: 1, a is tried before b; 0. The same plugin for all profiles, and one instance of it:
     * the first profile's. May look at both pods, and at objects of `kinds` as far as they are known, at
     * nothing else: there is no current pod, no time and no alloc(). What it says may change while pods
     * wait: the queue asks again about those at its head. */
    int32_t (*less)(void *self, struct berth_call *c, const struct berth_queued *a,
                    const struct berth_queued *b);
    /* 1: as things stand the plugin has no say about the pod: neither PreFilter and Filter nor PreScore
     * and Score are called. Asked for each pod, before anything else: cheap. With `reads` beyond NODE,
     * SUMS and PODS, or without, it keeps the fast path open for such pods. Asked at PreFilter and
     * PreScore: the plugin is enabled there as well. */
    int32_t (*idle)(void *self, struct berth_call *c);
    /* After Permit, before the pod is bound: says with writes->patch() what is to be written first, and
     * is asked again when that is done, and while another plugin waits: so it says the same of the
     * same. SUCCESS; WAIT: it is asked again within a second; others: back to the queue, what was
     * written stays. A scheduler that is killed begins anew, with patches that are done already. */
    int32_t (*pre_bind)(void *self, struct berth_call *c, berth_sym node, struct berth_why *why);
    /* SUCCESS: a binder shall bind the pod to the node, by a Binding or as writes->patch() says; SKIP:
     * the next Bind plugin's turn (DefaultBinder is one); others: back to the queue. Asked again where
     * it is not known what came of it, for the same node. */
    int32_t (*bind)(void *self, struct berth_call *c, berth_sym node, struct berth_why *why);
    /* The pod is bound there. */
    void (*post_bind)(void *self, struct berth_call *c, berth_sym node);
    /* ---- since 1.1 ---- */
    const struct berth_kind *kinds; /* that it reads */
    uint64_t n_kinds;
    /* Not about a pod (pods->current() is NULL): what the plugin writes about the cluster, as controllers do.
     * Called about once a second, of one profile's instance, while this scheduler leads, everything is known and there are nodes;
     * identity, other nodes and now() are free. It says with writes->patch() what is not as it should be, and is not
     * called while what it said before is under way; where that was refused, later and later, up to five minutes. */
    void (*tend)(void *self, struct berth_call *c);
};

/* ---- the file -------------------------------------------------------------------------------- */

/* The oldest minor that the plugin can do with. */
#ifndef BERTH_NEEDS_MINOR
#define BERTH_NEEDS_MINOR BERTH_ABI_MINOR
#endif

/* Once in a file: read before anything of the file runs. names: of its plugins, with one space
 * between; license: SPDX. All are string literals. */
#define BERTH_NOTE(names, version, license)                                                        \
    __attribute__((section(".note.berth"), used, aligned(4))) static const struct {                \
        uint32_t n_owner, n_rest, type;                                                            \
        char owner[8];                                                                             \
        uint32_t major, minor, flags, reserved;                                                    \
        char texts[(sizeof(names) + sizeof(version) + sizeof(license) + 3) & ~(size_t)3];          \
    } berth_note_ = {6,                                                                            \
                     16 + ((sizeof(names) + sizeof(version) + sizeof(license) + 3) & ~(size_t)3),  \
                     1,                                                                            \
                     "Berth",                                                                      \
                     BERTH_ABI_MAJOR,                                                              \
                     BERTH_NEEDS_MINOR,                                                            \
                     0,                                                                            \
                     0,                                                                            \
                     names "\0" version "\0" license}

struct berth_entry {
    uint32_t size; /* set by the host */
    uint32_t reserved;
    const struct berth_plugin *const *plugins; /* set by the plugin; stay as they are */
    uint64_t n;
};

#define BERTH_EXPORT __attribute__((visibility("default")))
/* Called once, before anything else. host stays. 0, or another number: the file is refused. */
BERTH_EXPORT int32_t berth_plugin_entry_v1(const struct berth_host *host, struct berth_entry *ret);

/* ---- for check_args() ------------------------------------------------------------------------ */

/* Is it one of the names, which have one space between? */
static inline int32_t berth_str_among(struct berth_str s, const char *names)
{
    while (*names) {
        struct berth_str name = {names, 0};
        while (names[name.n] && names[name.n] != ' ')
            name.n++;
        if (berth_str_equal(s, name))
            return 1;
        names += name.n + (names[name.n] == ' ');
    }
    return 0;
}
/* An error, unknown field "cache.period", for each member of the object that is not among the names. at: where the
 * object is, with a point behind ("cache."), or "". errors NULL: there is nobody to tell. */
static inline void berth_check_fields(const struct berth_host_values *h,
                                      const struct berth_value *object, const char *at,
                                      const char *names, struct berth_errors *errors)
{
    for (const struct berth_value *m = h->first(object); m; m = h->next(m)) {
        const struct berth_str key = h->key(m), whole = {"", 0};
        char text[256];
        int n = snprintf(text, sizeof text, "unknown field \"%.120s%.*s\"", at,
                         (int)(key.n < 100 ? key.n : 100), key.p);
        const struct berth_str said = {text, (uint64_t)n};
        if (errors && !berth_str_among(key, names))
            h->error(errors, whole, said);
    }
}

#ifdef __cplusplus
}
#endif
#endif
