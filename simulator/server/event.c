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

static bool count_up(void *arg, struct bh_arena *a, struct bh_json *obj)
{
    bh_json_set_i64(a, obj, "count", bh_json_get_i64(obj, "count", 1) + 1);
    bh_json_set_str(a, obj, "lastTimestamp", arg);
    return true;
}

void bh_sim_event(struct bh_sim *s, const struct bh_sim_obj *regarding, const char *type,
                  const char *reason, const char *component, const char *fmt, ...)
{
    char message[1024], now[32], name[280];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
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
    char api_version[80], rv[21];
    bh_sim_type_api_version(regarding->type, api_version);
    bh_dec_u64(rv, regarding->rv);
    struct bh_arena a;
    bh_arena_init(&a, 0);
    struct bh_json *ev = bh_json_make(
        &a,
        "metadata: {name: %s}, involvedObject: {kind: %s, namespace?: %s, name: %s, uid: %s, "
        "apiVersion: %s, resourceVersion: %s}, reason: %s, message: %s, source: {component: %s}, "
        "firstTimestamp: %s, lastTimestamp: %s, count: 1, type: %s, eventTime: null, "
        "reportingComponent: %s, reportingInstance: ''",
        name, regarding->type->kind, regarding->ns, regarding->name, regarding->uid, api_version,
        rv, reason, message, component, now, now, type, component);
    bh_sim_create(s, events, ns, &a, ev, NULL, NULL);
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
