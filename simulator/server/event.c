/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator/server/event.c - Events that the simulator's own controllers and kubelet write, and their end
 *
 * A repeated event (same object, type, reason, source, message) counts up the last one of its key
 * instead of adding another, as client-go's recorder does within its window.
 * Events are forgotten an hour after their last write, as kube-apiserver's --event-ttl does; age is
 * told by revision, so nothing has to be parsed.
 */
#include "simulator/server/sim_int.h"

#include <stdio.h>

#define MINUTE_NS ((uint64_t)60 * 1000000000)

struct text {
    const char *type, *reason, *component, *message;
};

static bool count_up(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_set_i64(a, obj, "count", bh_json_get_i64(obj, "count", 1) + 1);
    bh_json_set_str(a, obj, "lastTimestamp", arg);
    return true;
}

static struct bh_json *event_tree(struct bh_arena *a, const struct bh_sim_obj *o,
                                  const struct text *t, const char *name, const char *now)
{
    char api_version[80], rv[24];
    bh_sim_type_api_version(o->type, api_version);
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long)o->rv);
    struct bh_json *ev = bh_json_new(a, BH_JSON_OBJECT);
    bh_json_set_str(a, bh_json_obj_at(a, ev, "metadata"), "name", name);
    struct bh_json *r = bh_json_obj_at(a, ev, "involvedObject");
    bh_json_set_str(a, r, "kind", o->type->kind);
    if (*o->ns)
        bh_json_set_str(a, r, "namespace", o->ns);
    bh_json_set_str(a, r, "name", o->name);
    bh_json_set_str(a, r, "uid", o->uid);
    bh_json_set_str(a, r, "apiVersion", api_version);
    bh_json_set_str(a, r, "resourceVersion", rv);
    bh_json_set_str(a, ev, "reason", t->reason);
    bh_json_set_str(a, ev, "message", t->message);
    bh_json_set_str(a, bh_json_obj_at(a, ev, "source"), "component", t->component);
    bh_json_set_str(a, ev, "firstTimestamp", now);
    bh_json_set_str(a, ev, "lastTimestamp", now);
    bh_json_set_i64(a, ev, "count", 1);
    bh_json_set_str(a, ev, "type", t->type);
    bh_json_set(a, ev, "eventTime", bh_json_new(a, BH_JSON_NULL));
    bh_json_set_str(a, ev, "reportingComponent", t->component);
    bh_json_set_str(a, ev, "reportingInstance", "");
    return ev;
}

void bh_sim_event(struct bh_sim *s, const struct bh_sim_obj *regarding, const char *type,
                  const char *reason, const char *component, const char *fmt, ...)
{
    char message[1024], now[32], name[280];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    const struct text t = {type, reason, component, message};
    const char *ns = *regarding->ns ? regarding->ns : "default";
    const struct bh_sim_type *events = bh_sim_type_find("", "v1", "events");
    uint64_t key = bh_hash(message, strlen(message), 0) ^ bh_hash(reason, strlen(reason), 1) ^
                   bh_hash(regarding->uid, strlen(regarding->uid), 2);
    snprintf(name, sizeof(name), "%.236s.%016llx", regarding->name, (unsigned long long)key);
    bh_time_format_ns(now, bh_sim_now_ns(s));
    if (bh_sim_get(s, events, ns, name)) {
        bh_sim_edit(s, events, ns, name, NULL, BH_SIM_STATUS, count_up, now, NULL, NULL);
        return;
    }
    struct bh_arena a;
    bh_arena_init(&a, 0);
    bh_sim_create(s, events, ns, &a, event_tree(&a, regarding, &t, name, now), NULL, NULL);
    bh_arena_fini(&a);
}

#define EXPIRE_BURST 1000

static void expire_some(void *arg)
{
    struct bh_sim *s = arg;
    size_t end = BH_MIN(s->expired_at + EXPIRE_BURST, s->expired.n);
    for (; s->expired_at < end; s->expired_at++) {
        const struct bh_sim_obj *o = s->expired.v[s->expired_at];
        const struct bh_sim_delete_options d = {.grace_s = 0, .uid = o->uid};
        if (bh_sim_get(s, o->type, o->ns, o->name) == o)
            bh_sim_delete(s, o->type, o->ns, o->name, &d, NULL);
    }
    if (end < s->expired.n)
        bh_sim_after(s, 0, expire_some, s);
    else
        bh_sim_objs_fini(&s->expired);
}

void bh_sim_events_expire(struct bh_sim *s, uint64_t rv)
{
    struct bh_sim_objs l;
    size_t n = 0;
    if (s->expired.n) /* the last portion is still at work */
        return;
    bh_sim_list(s, bh_sim_type_find("", "v1", "events"), NULL, &l);
    for (size_t i = 0; i < l.n; i++) {
        if (l.v[i]->rv <= rv)
            l.v[n++] = l.v[i];
        else
            bh_sim_obj_unref(l.v[i]);
    }
    l.n = n;
    s->expired = l;
    s->expired_at = 0;
    if (n)
        bh_sim_after(s, 0, expire_some, s);
    else
        bh_sim_objs_fini(&s->expired);
}

void bh_sim_events_tick(struct bh_sim *s)
{
    uint64_t now = bh_sim_mono_ns(s), old = 0;
    uint64_t minutes = s->minute_ns ? (now - s->minute_ns) / MINUTE_NS : 1;
    if (!minutes)
        return;
    s->minute_ns = now;
    /* A clock that is moved by hand can skip minutes: nothing was written in those. */
    for (uint64_t i = 0; i < BH_MIN(minutes, BH_ARRAY_LEN(s->minute_rv) + 1); i++) {
        old = BH_MAX(old, s->minute_rv[s->minute]);
        s->minute_rv[s->minute] = s->rv;
        s->minute = (s->minute + 1) % BH_ARRAY_LEN(s->minute_rv);
    }
    if (old)
        bh_sim_events_expire(s, old);
}

void bh_sim_events_fini(struct bh_sim *s)
{
    bh_sim_objs_fini(&s->expired);
}
