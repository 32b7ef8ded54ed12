/* SPDX-License-Identifier: Apache-2.0
 *
 * scheduler/wasm/event.c - Events that a guest records
 *
 * A guest could record one in every score of every node, so each has a bucket: a burst, and then so
 * many a second; what is above is counted and dropped. What an API server would refuse is told in
 * the log, as upstream's recorder does.
 *
 * Runs in:  the engine's thread.
 * Upstream: kube-scheduler-wasm-extension, scheduler/plugin/host.go (k8sSchedulerHandleEventRecorder);
 *           differences: the note is written as it is, there it is a format; the related object is
 *           left out.
 */
#include "common/base/log.h"
#include "scheduler/wasm/guest_int.h"

#define BURST          100.0 /* of one guest */
#define A_SECOND       10.0
#define NOTE_MAX       1024u
#define NAME_MAX_BYTES 253u
#define WORD_MAX       128u /* of a reason and an action, as events.k8s.io has it */

static struct {
    void (*fn)(void *arg, const struct bh_guest_event *e);
    void *arg;
} sink;

void bh_guest_set_events(void (*fn)(void *arg, const struct bh_guest_event *e), void *arg)
{
    sink.fn = fn;
    sink.arg = arg;
}

static bool may_record(struct bh_guest_plugin *p)
{
    uint64_t now = bh_mono_ns();

    if (!p->events_ns)
        p->events_left = BURST;
    else
        p->events_left =
            BH_MIN(BURST, p->events_left + A_SECOND * 1e-9 * (double)(now - p->events_ns));
    p->events_ns = now;
    if (p->events_left < 1) {
        if (!p->events_dropped++)
            bh_log_warn("Events of a guest are dropped: it records more than are written",
                        bh_kv_s("plugin", p->name), bh_kv_u("burst", (uint64_t)BURST),
                        bh_kv_u("aSecond", (uint64_t)A_SECOND));
        return false;
    }
    p->events_left -= 1;
    p->events++;
    return true;
}

static const char *text_or_null(const struct bh_json *o, const char *key)
{
    const char *s = bh_json_get_text(o, key);

    return *s ? s : NULL;
}

/* What an API server would not take; NULL: it does. */
static const char *fault(const struct bh_guest_event *e, const char *kind)
{
    size_t reason = strlen(e->reason), action = strlen(e->action);

    if (!bh_streq(kind, "Pod") && !bh_streq(kind, "Node"))
        return "RegardingReference.Kind: Pod or Node is needed";
    if (!*e->name || strlen(e->name) > NAME_MAX_BYTES)
        return "RegardingReference.Name: 1 to 253 bytes are needed";
    if (strlen(e->namespace_) > NAME_MAX_BYTES || (e->uid && strlen(e->uid) > NAME_MAX_BYTES) ||
        (e->resource_version && strlen(e->resource_version) > NAME_MAX_BYTES))
        return "RegardingReference: 253 bytes at most are a name";
    if (!bh_streq(e->type, "Normal") && !bh_streq(e->type, "Warning"))
        return "Eventtype: Normal or Warning is needed";
    if (!reason || reason > WORD_MAX)
        return "Reason: 1 to 128 bytes are needed";
    if (!action || action > WORD_MAX)
        return "Action: 1 to 128 bytes are needed";
    return NULL;
}

static void record(struct bh_guest_run *r, const struct bh_json *v)
{
    const struct bh_str said = bh_str_c(bh_json_get_text(v, "Note"));
    const struct bh_json *about = bh_json_get(v, "RegardingReference");
    const char *kind = bh_json_get_text(about, "Kind");
    const char *ns = text_or_null(about, "Namespace");
    char note[NOTE_MAX + 1];
    struct bh_guest_event e = {
        .plugin = r->g->of->name,
        .profile = r->c ? bh_sym_text(r->c->tab, r->c->pod->shape->scheduler_name) : "",
        .of_node = bh_streq(kind, "Node"),
        .namespace_ = ns ? ns : "default",
        .name = bh_json_get_text(about, "Name"),
        .uid = text_or_null(about, "UID"),
        .resource_version = text_or_null(about, "ResourceVersion"),
        .type = bh_json_get_text(v, "Eventtype"),
        .reason = bh_json_get_text(v, "Reason"),
        .action = bh_json_get_text(v, "Action"),
        .note = note,
    };
    const char *why = fault(&e, kind);

    /* Not in the arena of the text: one that fills it has no room for a copy. */
    snprintf(note, sizeof note, "%.*s", (int)bh_guest_fits(said, NOTE_MAX), said.p);
    if (why)
        bh_log_warn("An event of a guest is not written", bh_kv_s("plugin", e.plugin),
                    bh_kv_s("why", why), bh_kv_s("note", e.note));
    else if (sink.fn)
        sink.fn(sink.arg, &e);
    else
        bh_log_info("Event of a guest", bh_kv_s("plugin", e.plugin), bh_kv_s("object", e.name),
                    bh_kv_s("type", e.type), bh_kv_s("reason", e.reason),
                    bh_kv_s("action", e.action), bh_kv_s("note", e.note));
}

bool bh_guest_eventf(struct bh_guest_run *r, struct bh_str json)
{
    struct bh_json *v = NULL;
    struct bh_err err = {0};
    struct bh_arena a = {0};

    bh_arena_init(&a, (size_t)1 << 20);
    bool good = bh_json_parse(&a, json.p, json.n, 0, &v, &err) == 0 && v->type == BH_JSON_OBJECT;
    if (good && !r->again && may_record(r->g->of))
        record(r, v);
    bh_arena_fini(&a);
    return good || bh_wasm_fail(r->w, "event: %s", *err.msg ? err.msg : "an object is needed");
}
