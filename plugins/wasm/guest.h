/* SPDX-License-Identifier: Apache-2.0
 *
 * guest.h - a scheduler plugin as a WebAssembly guest, in C
 *
 * The interface of kube-scheduler-wasm-extension: what a guest imports and exports. Nothing else is
 * needed, no library and no allocator:
 *
 *   clang --target=wasm32 -O2 -nostdlib -ffreestanding -mbulk-memory -Wl,--no-entry -o x.wasm x.c
 *
 *   #include "guest.h"
 *   GUEST_HOOK(filter, int32_t)
 *   {
 *       char name[254];
 *       uint32_t n = guest_current_node_name(name, sizeof name);
 *       if (n && name[n - 1] != '0')
 *           return GUEST_SUCCESS;
 *       return guest_status(GUEST_UNSCHEDULABLE, "its name ends in 0");
 *   }
 *
 * Readers: the length of the value; it is written only when it is not above the limit.
 * State: a pod's hooks run in one instance, from prefilter on; others' may run in between.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUEST_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
/* GUEST_HOOK(filter, int32_t) { ... }: int32_t: a status; int64_t: score, postfilter, permit, see
 * guest_scored() and so on; void: enqueue, unreserve, postbind. */
#define GUEST_HOOK(hook, type)                                                                     \
    type guest_##hook(void) __attribute__((export_name(#hook)));                                   \
    type guest_##hook(void)

enum guest_code {
    GUEST_SUCCESS,
    GUEST_ERROR,
    GUEST_UNSCHEDULABLE,
    GUEST_UNRESOLVABLE, /* removing pods would not help */
    GUEST_WAIT,         /* permit */
    GUEST_SKIP          /* prefilter, prescore, bind */
};

/* ---- what the scheduler knows ---------------------------------------------------------------- */
#define GUEST_READER(c_name, module, name)                                                         \
    GUEST_IMPORT(module, name) uint32_t c_name(void *buf, uint32_t limit)

GUEST_READER(guest_config, "k8s.io/scheduler", "get_config");
GUEST_READER(guest_current_pod, "k8s.io/scheduler", "currentPod"); /* v1.Pod as protobuf */
GUEST_READER(guest_target_pod, "k8s.io/scheduler", "targetPod");   /* addpod, removepod */
GUEST_READER(guest_current_node_name, "k8s.io/scheduler", "currentNodeName");
GUEST_READER(guest_filtered_nodes, "k8s.io/scheduler", "filteredNodeList"); /* JSON, prescore */
GUEST_READER(guest_node_scores, "k8s.io/scheduler", "nodeScoreList");     /* JSON, normalizescore */
GUEST_READER(guest_node_statuses, "k8s.io/scheduler", "nodeToStatusMap"); /* JSON, postfilter */
GUEST_READER(guest_all_nodes, "k8s.io/api", "nodeList"); /* v1.NodeList as protobuf */
GUEST_IMPORT("k8s.io/api", "node") /* v1.Node as protobuf; 0: there is none of that name */
uint32_t guest_node(const char *name, uint32_t n, void *buf, uint32_t limit);
GUEST_IMPORT("k8s.io/scheduler", "nodeImageStates")
uint32_t guest_node_images(const char *name, uint32_t n, void *buf, uint32_t limit);

/* ---- what the guest says --------------------------------------------------------------------- */
GUEST_IMPORT("k8s.io/scheduler", "result.status_reason")
void guest_reason(const char *text, uint32_t n);
GUEST_IMPORT("k8s.io/scheduler", "result.node_names") /* prefilter: "a\0b\0"; none: all nodes */
void guest_only_nodes(const char *names, uint32_t n);
GUEST_IMPORT("k8s.io/scheduler", "result.nominated_node_name") /* postfilter */
void guest_nominate(const char *name, uint32_t n);
GUEST_IMPORT("k8s.io/scheduler", "result.normalized_score_list") /* {"node":1} */
void guest_normalized(const char *json, uint32_t n);
GUEST_IMPORT("k8s.io/scheduler", "result.cluster_events") /* enqueue */
void guest_events(const void *events, uint32_t n);
GUEST_IMPORT("k8s.io/klog", "log") /* severity: 0 information, 1 warning, 2 error */
void guest_log(int32_t severity, const char *text, uint32_t n);
/* kvs: key, value, key ..., a NUL behind each; none of them empty. */
GUEST_IMPORT("k8s.io/klog", "logs")
void guest_log_with(int32_t severity, const char *text, uint32_t n, const char *kvs,
                    uint32_t n_kvs);
GUEST_IMPORT("k8s.io/klog", "severity") /* args.logSeverity: below it nothing is written */
int32_t guest_log_severity(void);
GUEST_IMPORT("k8s.io/scheduler", "handle.eventrecorder.eventf") /* guest_record() is easier */
void guest_event_json(const char *json, uint32_t n);
/* By a waiting pod's uid. *ret: was it waiting? */
GUEST_IMPORT("k8s.io/scheduler", "handle.reject_waiting_pod")
void guest_reject(const char *uid, uint32_t n, uint64_t *ret, uint32_t limit);
/* Its protobuf; eight zeros: it does not wait. */
GUEST_IMPORT("k8s.io/scheduler", "handle.get_waiting_pod")
void guest_waiting_pod(const char *uid, uint32_t n, void *buf, uint32_t limit);

struct guest_event { /* resource: 0 pods, 1 nodes, ... 10 anything; actions: 63 all */
    uint32_t resource, actions;
};

static inline uint32_t guest_length(const char *s)
{
    uint32_t n = 0;

    while (s[n])
        n++;
    return n;
}
static inline int32_t guest_status(enum guest_code code, const char *reason)
{
    guest_reason(reason, guest_length(reason));
    return code;
}
static inline int64_t guest_scored(int32_t score, int32_t code)
{
    return (int64_t)((uint64_t)(uint32_t)score << 32 | (uint32_t)code);
}
/* Of postfilter: after guest_nominate(). */
static inline int64_t guest_nominated(bool override, int32_t code)
{
    return guest_scored(override, code);
}
static inline int64_t guest_permitted(int32_t code, uint32_t timeout_ms)
{
    return guest_scored(code, (int32_t)timeout_ms);
}

/* ---- protobuf, field by field ---------------------------------------------------------------- */
struct guest_field {
    uint32_t number, wire; /* wire 0: value; 2: bytes and n */
    uint64_t value;
    const uint8_t *bytes;
    uint32_t n;
};
struct guest_message {
    const uint8_t *p, *end;
};
static inline struct guest_message guest_open(const void *p, uint32_t n)
{
    return (struct guest_message){p, (const uint8_t *)p + n};
}
static inline bool guest_varint(struct guest_message *m, uint64_t *ret)
{
    *ret = 0;
    for (unsigned shift = 0; m->p < m->end && shift < 64; shift += 7) {
        uint8_t b = *m->p++;
        *ret |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return true;
    }
    return false;
}
/* The next field; false: there is none, or what follows is no protobuf. */
static inline bool guest_next(struct guest_message *m, struct guest_field *f)
{
    uint64_t v;

    if (!guest_varint(m, &v))
        return false;
    f->number = (uint32_t)(v >> 3);
    f->wire = v & 7;
    f->n = 0;
    if (f->wire == 0)
        return guest_varint(m, &f->value);
    uint64_t n = f->wire == 1 ? 8 : f->wire == 5 ? 4 : 0;
    if (f->wire == 2 ? !guest_varint(m, &n) : !n)
        return false;
    if (n > (uint64_t)(m->end - m->p))
        return false;
    f->bytes = m->p;
    f->n = (uint32_t)n;
    m->p += n;
    return true;
}
/* The first field of that number; false: there is none. */
static inline bool guest_find(struct guest_message m, uint32_t number, struct guest_field *f)
{
    while (guest_next(&m, f))
        if (f->number == number)
            return true;
    return false;
}
static inline bool guest_is(const void *p, uint32_t n, const char *text)
{
    const char *s = p;

    for (uint32_t i = 0; i < n; i++)
        if (s[i] != text[i])
            return false;
    return !text[n];
}
/* Down through messages, the first field of each number: guest_path(pod, GUEST_METADATA, META_NAME, 0)
 * and so on; 0 ends. false: there is none. */
#define guest_path(m, f, ...) guest_walk(m, (const uint32_t[]){__VA_ARGS__, 0}, f)
static inline bool guest_walk(struct guest_message m, const uint32_t *numbers,
                              struct guest_field *f)
{
    for (;; numbers++, m = guest_open(f->bytes, f->n))
        if (!guest_find(m, *numbers, f))
            return false;
        else if (!numbers[1])
            return true;
        else if (f->wire != 2)
            return false;
}
/* An entry of a map of texts, as of labels: map is its field number in the message. */
static inline bool guest_entry(struct guest_message m, uint32_t map, const char *key,
                               struct guest_field *value)
{
    struct guest_field e, k;

    while (guest_next(&m, &e))
        if (e.number == map && e.wire == 2 && guest_find(guest_open(e.bytes, e.n), 1, &k) &&
            guest_is(k.bytes, k.n, key))
            return guest_find(guest_open(e.bytes, e.n), 2, value);
    return false;
}
/* A label of a Pod or a Node. */
static inline bool guest_label(struct guest_message object, const char *key,
                               struct guest_field *value)
{
    struct guest_field metadata;

    return guest_find(object, 1, &metadata) &&
           guest_entry(guest_open(metadata.bytes, metadata.n), 11, key, value);
}
/* Field numbers that guests want most; all of them: k8s.io/api/core/v1/generated.proto. */
enum {
    GUEST_METADATA = 1, /* of Pod and Node */
    GUEST_SPEC = 2,
    GUEST_STATUS = 3,
    GUEST_META_NAME = 1, /* of metadata */
    GUEST_META_NAMESPACE = 3,
    GUEST_META_UID = 5,
    GUEST_META_RESOURCE_VERSION = 6,
    GUEST_META_LABELS = 11, /* maps of texts: guest_entry() */
    GUEST_META_ANNOTATIONS = 12,
    GUEST_POD_CONTAINERS = 2, /* of a pod's spec, repeated */
    GUEST_POD_NODE_SELECTOR = 7,
    GUEST_POD_NODE_NAME = 10,
    GUEST_POD_TOLERATIONS = 22,
    GUEST_POD_PRIORITY = 25,
    GUEST_CONTAINER_NAME = 1,
    GUEST_CONTAINER_IMAGE = 2,
    GUEST_CONTAINER_RESOURCES = 8, /* limits 1, requests 2: a map to a message with a text 1 */
    GUEST_NODE_UNSCHEDULABLE = 4,  /* of a node's spec */
    GUEST_NODE_TAINTS = 5,
    GUEST_NODE_CAPACITY = 1, /* of a node's status */
    GUEST_NODE_ALLOCATABLE = 2,
};

/* ---- Events ---------------------------------------------------------------------------------- */
/* What an Event is about: texts out of its object, which need no NUL. */
struct guest_about {
    const char *kind; /* "Pod" or "Node" */
    struct guest_field name, namespace_, uid, version;
};
/* Of the protobuf that guest_current_pod() or guest_node() gave. */
static inline struct guest_about guest_about(const char *kind, const void *object, uint32_t n)
{
    struct guest_about a = {.kind = kind};
    struct guest_field f, m;

    if (!guest_find(guest_open(object, n), GUEST_METADATA, &m))
        return a;
    struct guest_message metadata = guest_open(m.bytes, m.n);
    if (guest_find(metadata, GUEST_META_NAME, &f))
        a.name = f;
    if (guest_find(metadata, GUEST_META_NAMESPACE, &f))
        a.namespace_ = f;
    if (guest_find(metadata, GUEST_META_UID, &f))
        a.uid = f;
    if (guest_find(metadata, GUEST_META_RESOURCE_VERSION, &f))
        a.version = f;
    return a;
}
struct guest_text {
    char *p;
    uint32_t n, max;
};
static inline void guest_add(struct guest_text *t, const void *p, uint32_t n, bool quoted)
{
    const char *s = p, hex[] = "0123456789abcdef";

    for (uint32_t i = 0; i < n && t->n + 6 < t->max; i++) {
        bool control = quoted && (uint8_t)s[i] < 32,
             escape = quoted && (s[i] == '"' || s[i] == '\\');
        if (control || escape)
            t->p[t->n++] = '\\';
        for (const char *u = "u00"; control && *u; u++)
            t->p[t->n++] = *u;
        if (control)
            t->p[t->n++] = hex[s[i] >> 4];
        t->p[t->n++] = control ? hex[s[i] & 15] : s[i];
    }
}
static inline void guest_member(struct guest_text *t, const char *key, const void *p, uint32_t n)
{
    guest_add(t, key, guest_length(key), false);
    guest_add(t, p, n, true);
}
/* reason and action: words such as "Refused" and "Filtering". The scheduler writes the Event; of many at once
 * from one guest it drops some. */
static inline void guest_record(const struct guest_about *a, bool warning, const char *reason,
                                const char *action, const char *note)
{
    static char json[4096];
    struct guest_text t = {json, 0, sizeof json - 4};

    guest_member(&t, "{\"RegardingReference\":{\"APIVersion\":\"v1\",\"Kind\":\"", a->kind,
                 guest_length(a->kind));
    guest_member(&t, "\",\"Name\":\"", a->name.bytes, a->name.n);
    guest_member(&t, "\",\"Namespace\":\"", a->namespace_.bytes, a->namespace_.n);
    guest_member(&t, "\",\"UID\":\"", a->uid.bytes, a->uid.n);
    guest_member(&t, "\",\"ResourceVersion\":\"", a->version.bytes, a->version.n);
    guest_member(&t, "\"},\"Eventtype\":\"", warning ? "Warning" : "Normal", warning ? 7 : 6);
    guest_member(&t, "\",\"Reason\":\"", reason, guest_length(reason));
    guest_member(&t, "\",\"Action\":\"", action, guest_length(action));
    guest_member(&t, "\",\"Note\":\"", note, guest_length(note));
    t.max = sizeof json + 4; /* what closes it always fits */
    guest_add(&t, "\"}", 2, false);
    guest_event_json(json, t.n);
}
#endif
