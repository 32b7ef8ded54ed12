/* SPDX-License-Identifier: Apache-2.0
 *
 * common/control/pods.c - a pod of the queue as a document
 */
#include "common/control/ask.h"

#include "common/k8s/quantity.h"

const char *bh_queue_place_name(Berth__QueuePlace p)
{
    static const char *const names[] = {"gone",          "active",        "backoff",
                                        "error-backoff", "unschedulable", "gated",
                                        "in-flight",     "binding",       "waiting"};
    return names[(size_t)p < BH_ARRAY_LEN(names) ? p : BERTH__QUEUE_PLACE__QUEUE_NONE];
}

static void set_time(struct bh_arena *a, struct bh_json *o, const char *key, int64_t ns)
{
    char text[40];

    if (!ns)
        return;
    bh_time_format_micro(text, ns / 1000000000, (int32_t)(ns % 1000000000));
    bh_json_set_str(a, o, key, text);
}

static void set_binding(struct bh_arena *a, struct bh_json *o, const Berth__QueuePod *p)
{
    if (!p->node)
        return;
    struct bh_json *b = bh_json_set(a, o, "binding", bh_json_new(a, BH_JSON_OBJECT));
    bh_json_set_text(a, b, "node", p->node);
    bh_json_set_text(a, b, "binder", p->binder);
    bh_json_set_i64(a, b, "attempt", p->bind_attempt);
    set_time(a, b, "since", p->bind_ns);
}

static void set_group(struct bh_arena *a, struct bh_json *o, const Berth__QueueGroup *g)
{
    struct bh_buf b BH_CLEANUP(bh_buf_fini) = {0};

    if (!g)
        return;
    struct bh_json *v = bh_json_set(a, o, "group", bh_json_new(a, BH_JSON_OBJECT));
    bh_json_set_str(a, v, "name", g->name);
    bh_json_set_bool(a, v, "found", g->found);
    bh_json_set_i64(a, v, "minCount", g->min_count);
    bh_json_set_i64(a, v, "members", g->members);
    bh_json_set_i64(a, v, "scheduled", g->scheduled);
    if (!g->found)
        bh_buf_adds(&b, "there is no PodGroup");
    else if (g->min_count)
        bh_buf_addf(&b, "%u of %u scheduled", g->scheduled, g->min_count);
    else
        bh_buf_addf(&b, "%u of %u scheduled, any may go", g->scheduled, g->members);
    if (g->min_count > g->members)
        bh_buf_addf(&b, ", %u missing", g->min_count - g->members);
    bh_json_set_str(a, v, "state", bh_buf_str(&b));
}

struct bh_json *bh_queue_pod_json(struct bh_arena *a, const Berth__QueuePod *p)
{
    struct bh_json *o = bh_json_new(a, BH_JSON_OBJECT), *plugins;

    bh_json_set_str(a, o, "namespace", p->namespace_);
    bh_json_set_str(a, o, "name", p->name);
    bh_json_set_str(a, o, "uid", p->uid);
    bh_json_set_text(a, o, "schedulerName", p->profile);
    bh_json_set_i64(a, o, "priority", p->priority);
    bh_json_set_str(a, o, "queue", bh_queue_place_name(p->place));
    bh_json_set_i64(a, o, "attempts", p->attempts);
    set_time(a, o, "createdAt", p->created_ns);
    set_time(a, o, "queuedAt", p->added_ns);
    set_time(a, o, "firstAttemptAt", p->first_attempt_ns);
    set_time(a, o, "backoffUntil", p->backoff_ns);
    set_time(a, o, "permitUntil", p->permit_ns);
    plugins = bh_json_set(a, o, "plugins", bh_json_new(a, BH_JSON_ARRAY));
    for (size_t i = 0; i < p->n_plugin; i++)
        bh_json_push(plugins, bh_json_new_cstr(a, p->plugin[i]));
    bh_json_set_text(a, o, "reason", p->reason);
    bh_json_set_text(a, o, "message", p->message);
    bh_json_set_text(a, o, "nominatedNode", p->nominated_node);
    set_binding(a, o, p);
    set_group(a, o, p->group);
    return o;
}
